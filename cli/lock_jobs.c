// Jobs of `dcrl lock`, see lock_jobs.h. Each worker is a thread with its own run; runs share
// nothing.
#include "lock_jobs.h"

#include "runs.h"

#include "api/setup.h"
#include "base/file.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// --- configuring ---

static dc_status set_int(dc_run *run, const char *key, int64_t value) {
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, value);
    return dc_run_set(run, key, text);
}

// Options behind the agent's name: ":recursion=off:order=down".
static dc_status set_suffix(dc_run *run, char *rest) {
    for (char *pair; (pair = cli_split(&rest, ':'));) {
        char *equals = strchr(pair, '=');
        if (!equals)
            return dc_fail(DC_USAGE, "write name:key=value", "an agent's option has no value (%s)",
                           pair);
        *equals = 0;
        DC_TRY(dc_run_set(run, pair, equals + 1));
    }
    return DC_OK;
}

static dc_status set_flags(dc_run *run, const lock_flags *f, int64_t horizon, int64_t seed) {
    snprintf(run->options.env, sizeof run->options.env, "lock-%" PRId64, horizon);
    run->options.hidden = f->hidden;
    run->options.device = f->device;
    DC_TRY(set_int(run, "seed", seed));
    DC_TRY(set_int(run, "steps", f->steps));
    DC_TRY(set_int(run, "batch", f->batch));
    // Not every method has these.
    if (dc_options_find(run->algo->options, "n")) DC_TRY(set_int(run, "n", f->n));
    if (dc_options_find(run->algo->options, "slots")) DC_TRY(set_int(run, "slots", f->slots));
    return DC_OK;
}

static int64_t get_int(const dc_run *run, const char *key) {
    const dc_option *o = dc_options_find(run->algo->options, key);
    int64_t value = -1;
    if (o) memcpy(&value, (const char *)run->config + o->offset, sizeof value);
    return value;
}

static void describe(lock_job *job, const char *agent, int64_t horizon) {
    const dc_run_options *o = &job->run.options;
    job->result = (dc_lock_result){.horizon = horizon,
                                   .steps = o->steps,
                                   .seed = o->seed,
                                   .batch = o->batch,
                                   .hidden = o->hidden};
    snprintf(job->result.agent, sizeof job->result.agent, "%s", agent);
    job->result.n = get_int(&job->run, "n");
    job->result.slots = get_int(&job->run, "slots");
}

// What the sweep itself lays down cannot be another for one run.
static dc_status check_fixed(const lock_job *job, int64_t horizon, int64_t seed) {
    const dc_run_options *o = &job->run.options;
    char env[32];
    snprintf(env, sizeof env, "lock-%" PRId64, horizon);
    if (strcmp(o->env, env) != 0 || *o->data)
        return dc_fail(DC_USAGE, "use --horizon",
                       "dcrl lock makes its own data (--set env or data)");
    if (o->seed != seed)
        return dc_fail(DC_USAGE, "use --seed",
                       "seeds are not set like an option (seed=%" PRId64 ")", o->seed);
    return DC_OK;
}

dc_status lock_job_init(lock_job *job, const lock_flags *f, const cli_args *args, const char *agent,
                        int64_t horizon, int64_t seed) {
    char name[DC_TEXT_MAX], *rest = name;
    snprintf(name, sizeof name, "%s", agent);
    const char *bare = cli_split(&rest, ':');
    DC_TRY(dc_run_configure(&job->run, bare));
    if (!job->run.algo->query)
        return dc_fail(DC_UNSUPPORTED, "use a method that learns distances or values",
                       "%s has no distances whose error a lock could measure", bare);
    DC_TRY(set_flags(&job->run, f, horizon, seed));
    DC_TRY(cli_run_sets(&job->run, args));
    if (rest) DC_TRY(set_suffix(&job->run, rest));
    DC_TRY(check_fixed(job, horizon, seed));
    describe(job, agent, horizon);
    if (*f->out) {
        int n = snprintf(job->folder, sizeof job->folder, "%s/%s-H%" PRId64 "-s%" PRId64, f->out,
                         agent, horizon, seed);
        if (n >= (int)sizeof job->folder)
            return dc_fail(DC_USAGE, "choose a shorter one", "the path of --out is too long");
        for (char *c = job->folder + strlen(f->out) + 1; *c; c++)
            if (*c == ':' || *c == '*' || *c == '/') *c = '_';
        DC_TRY(dc_folder_inside(job->folder));
    }
    return DC_OK;
}

// --- one job ---

static void progress(void *ctx, const dc_run *run, double seconds) {
    lock_job *job = ctx;
    (void)seconds;
    atomic_store(&job->step, run->step);
}

// All options as text, less those that do not change results.
static dc_status options_text(dc_run *run, dc_text *out) {
    int64_t threads = run->options.threads;
    run->options.threads = 0;
    dc_options_json(dc_run_table, &run->options, out);
    dc_options_json(run->algo->options, run->config, out);
    run->options.threads = threads;
    return dc_text_status(out);
}

// A folder from an earlier call must hold the very same run.
static dc_status check_same(lock_job *job, dc_run *old) {
    dc_text a, b;
    dc_text_init(&a);
    dc_text_init(&b);
    dc_status status = options_text(&job->run, &a);
    if (status == DC_OK) status = options_text(old, &b);
    if (status == DC_OK && strcmp(a.bytes, b.bytes) != 0)
        status = dc_fail(DC_USAGE, "give another --out, or the same options as before",
                         "%s holds a run with other options", job->folder);
    dc_text_fini(&a);
    dc_text_fini(&b);
    return status;
}

static dc_status open_run(lock_job *job, dc_dataset *data) {
    char path[1100];
    snprintf(path, sizeof path, "%s/config.json", job->folder);
    bool exists = false;
    if (*job->folder) DC_TRY(dc_file_find(path, &exists));
    if (!exists) {
        DC_TRY(dc_setup_data(&job->run, data));
        return dc_run_start(&job->run, data, *job->folder ? job->folder : NULL);
    }
    dc_run old = DC_RUN_NONE;
    dc_status status = dc_setup_reopen(&old, data, job->folder, NULL);
    if (status == DC_OK) status = check_same(job, &old);
    dc_run_fini(&old);
    DC_TRY(status);
    return dc_run_resume(&job->run, data, job->folder);
}

static dc_status write_result(const lock_job *job) {
    if (!*job->folder) return DC_OK;
    char path[1100];
    snprintf(path, sizeof path, "%s/result.json", job->folder);
    dc_text text;
    dc_text_init(&text);
    dc_lock_result_json(&job->result, &text);
    dc_text_add(&text, "\n");
    dc_status status = dc_text_status(&text);
    if (status == DC_OK) status = dc_file_write_inside(path, text.bytes, text.used);
    dc_text_fini(&text);
    return status;
}

// Train and evaluate; times are of this process's part.
static dc_status train(lock_job *job, dc_dataset *data) {
    job->run.stop = &cli_stop;
    job->run.progress = progress;
    job->run.progress_ctx = job;
    DC_TRY(open_run(job, data));
    atomic_store(&job->step, job->run.step);
    atomic_store(&job->before, job->run.step);
    double start = dc_now();
    DC_TRY(dc_run_train(&job->run));
    job->result.seconds = dc_now() - start;
    job->result.steps_per_second =
        (double)(job->run.step - job->run.first_step) / (job->result.seconds + 1e-9);
    if (job->run.options.device) DC_TRY(dc_agent_query_on_gpu(&job->run.agent));
    DC_TRY(dc_lock_evaluate(&job->run.agent, &cli_stop, &job->result.score));
    return write_result(job);
}

// A result.json that says another run than the folder is for was put there by somebody.
static dc_status check_result(const lock_job *job, const dc_lock_result *old) {
    const dc_lock_result *r = &job->result;
    bool same = !strcmp(old->agent, r->agent) && old->horizon == r->horizon && old->n == r->n &&
                old->steps == r->steps && old->seed == r->seed && old->batch == r->batch &&
                old->slots == r->slots && old->hidden.count == r->hidden.count;
    for (int i = 0; same && i < r->hidden.count; i++)
        same = old->hidden.v[i] == r->hidden.v[i];
    if (same) return DC_OK;
    return dc_fail(DC_BAD_INPUT, "remove it to evaluate this run again",
                   "%s/result.json is the result of another run (agent %s, horizon %" PRId64
                   ", seed %" PRId64 ", %" PRId64 " steps)",
                   job->folder, old->agent, old->horizon, old->seed, old->steps);
}

// The result of a job that was finished by an earlier call, if there is one.
static dc_status read_result(const lock_job *job, dc_lock_result *old, bool *found) {
    char path[1100], *bytes;
    size_t n;
    snprintf(path, sizeof path, "%s/result.json", job->folder);
    *found = false;
    if (!*job->folder) return DC_OK;
    DC_TRY(dc_file_find(path, found));
    if (!*found) return DC_OK;
    DC_TRY(dc_file_read_inside(path, 1 << 20, &bytes, &n));
    dc_arena arena;
    dc_arena_init(&arena, 0);
    const dc_json *root;
    *found = dc_json_parse(&arena, path, bytes, n, &root) == DC_OK &&
             dc_lock_result_read(root, path, old) == DC_OK;
    free(bytes);
    dc_arena_fini(&arena);
    return DC_OK;
}

static dc_status finished_earlier(lock_job *job, bool *finished) {
    dc_lock_result result;
    DC_TRY(read_result(job, &result, finished));
    if (!*finished) return DC_OK;
    dc_run old = DC_RUN_NONE;
    dc_dataset data = {0};
    dc_status status = dc_setup_reopen(&old, &data, job->folder, NULL);
    if (status == DC_OK) status = check_same(job, &old);
    if (status == DC_OK) status = check_result(job, &result);
    if (status == DC_OK) job->result = result;
    dc_run_fini(&old);
    dc_dataset_fini(&data);
    return status;
}

static dc_status run_job(lock_job *job) {
    bool finished;
    DC_TRY(finished_earlier(job, &finished));
    if (finished) {
        atomic_store(&job->step, job->run.options.steps);
        atomic_store(&job->before, job->run.options.steps);
        return DC_OK;
    }
    dc_dataset data = {0};
    dc_status status = train(job, &data);
    dc_run_fini(&job->run); // its memory; the result stays
    dc_dataset_fini(&data);
    return status;
}

// --- all jobs ---

static void *worker(void *ctx) {
    lock_sweep *sweep = ctx;
    for (int i;
         !atomic_load(&sweep->failed) && (i = atomic_fetch_add(&sweep->next, 1)) < sweep->count;) {
        lock_job *job = &sweep->jobs[i];
        job->run.options.threads = sweep->threads_each;
        job->status = run_job(job);
        if (job->status != DC_OK) {
            snprintf(job->error, sizeof job->error, "%s", dc_error());
            atomic_store(&sweep->failed, 1);
            if (job->status != DC_INTERRUPTED)
                atomic_store(&cli_stop, 1); // the others save and stop
        }
        atomic_fetch_add(&sweep->done, 1);
    }
    atomic_fetch_sub(&sweep->active, 1);
    return NULL;
}

// Steps done, and of those the ones that earlier calls did.
static int64_t steps_done(lock_sweep *sweep, int64_t *before) {
    int64_t done = *before = 0;
    for (int i = 0; i < sweep->count; i++) {
        done += atomic_load(&sweep->jobs[i].step);
        *before += atomic_load(&sweep->jobs[i].before);
    }
    return done;
}

static void show(lock_sweep *sweep, cli_line *line, double start) {
    int64_t before, done = steps_done(sweep, &before), all = sweep->steps;
    double rate = (double)(done - before) / (dc_now() - start + 1e-9);
    char text[160], eta[32];
    snprintf(text, sizeof text, "%d of %d runs done  %.0f%% of the steps  %.0f steps/s  ETA %s",
             atomic_load(&sweep->done), sweep->count, 100.0 * (double)done / (double)all, rate,
             rate > 0 ? cli_duration((double)(all - done) / rate, eta) : "?");
    cli_line_show(line, text);
}

static void watch(lock_sweep *sweep) {
    cli_line line;
    cli_line_init(&line);
    double start = dc_now();
    while (atomic_load(&sweep->active) > 0) {
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        if (dc_now() - start > 1) show(sweep, &line, start);
    }
    cli_line_clear(&line);
}

static dc_status first_error(const lock_sweep *sweep) {
    const lock_job *stopped = NULL;
    for (int i = 0; i < sweep->count; i++) {
        const lock_job *job = &sweep->jobs[i];
        if (job->status == DC_INTERRUPTED) stopped = job;
        if (job->status != DC_OK && job->status != DC_INTERRUPTED)
            return sweep->count == 1
                       ? dc_fail(job->status, NULL, "%s", job->error)
                       : dc_fail(job->status, NULL,
                                 "agent %s, horizon %" PRId64 ", seed %" PRId64 ": %s",
                                 job->result.agent, job->result.horizon, job->result.seed,
                                 job->error);
    }
    if (!stopped) return DC_OK;
    if (*stopped->folder)
        return dc_fail(DC_INTERRUPTED, "the same command continues", "stopped; state is saved");
    return dc_fail(DC_INTERRUPTED, "with --out DIR a run can be continued", "stopped");
}

dc_status lock_sweep_run(lock_sweep *sweep) {
    int cores = sweep->threads ? sweep->threads : dc_core_count();
    int workers = sweep->count < cores ? sweep->count : cores;
    sweep->threads_each = cores / workers;
    for (int i = 0; i < sweep->count; i++)
        sweep->steps += sweep->jobs[i].result.steps;
    cli_catch_signals();
    pthread_t *ids = calloc((size_t)workers, sizeof *ids);
    if (!ids) return dc_fail(DC_NO_MEMORY, NULL, "no memory for workers");
    int started = 0;
    atomic_store(&sweep->active, workers);
    while (started < workers && pthread_create(&ids[started], NULL, worker, sweep) == 0)
        started++;
    atomic_fetch_sub(&sweep->active, workers - started);
    watch(sweep);
    for (int i = 0; i < started; i++)
        pthread_join(ids[i], NULL);
    free(ids);
    if (!started) return dc_fail(DC_NO_MEMORY, "lower --threads", "no thread could be started");
    return first_error(sweep);
}

void lock_sweep_fini(lock_sweep *sweep) {
    for (int i = 0; i < sweep->count; i++)
        dc_run_fini(&sweep->jobs[i].run);
    free(sweep->jobs);
}
