// The training loop and its run folder, see run.h. Data comes from data/ or env/, gradients from
// algo/; checkpoints and logs go to the folder, progress to whoever listens.
#include "train/run.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "train/folder.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AT(field) offsetof(dc_run_options, field)
const dc_option dc_run_table[] = {
    {"agent", DC_TEXT, AT(agent), "dcrl", 0, 0, NULL, "method; dcrl list agents shows them"},
    {"env", DC_TEXT, AT(env), "", 0, 0, NULL, "environment; dcrl list envs shows them"},
    {"data", DC_TEXT, AT(data), "", 0, 0, NULL,
     "data set (.npz file or store); empty: the environment makes its own"},
    {"steps", DC_INT, AT(steps), "100000", 1, 1e12, NULL, "updates to train"},
    {"seed", DC_INT, AT(seed), "0", 0, 9e15, NULL, "the same seed gives the same bytes"},
    {"batch", DC_INT, AT(batch), "512", 1, 1 << 20, NULL, "rows a loss"},
    {"hidden", DC_LIST, AT(hidden), "512,512,512", 1, 8192, NULL, "widths of the hidden layers"},
    {"lr", DC_REAL, AT(lr), "3e-4", 0, 10, NULL, "Adam's step size"},
    {"tau", DC_REAL, AT(tau), "0.005", 0, 1, NULL, "rate of the target weights"},
    {"form", DC_CHOICE, AT(form), "auto", 0, 0, "auto|distance|value",
     "what is learned: steps d(s, g), or Q(s, a, g) = gamma^steps; auto: distance for lock, else "
     "value"},
    {"gamma", DC_REAL, AT(gamma), "0.99", 0, 0.9999999, NULL, "discount of the value form"},
    {"rep", DC_LIST, AT(rep), "", 0, 1e6, NULL,
     "goal representation, columns of an observation: first,count, or any number of "
     "first,count,step,times; empty: all of it"},
    {"threads", DC_INT, AT(threads), "0", 0, 1024, NULL,
     "threads; 0: all cores. Results do not depend on it"},
    {"device", DC_CHOICE, AT(device), "cpu", 0, 0, "cpu|cuda", "where to train"},
    {"precision", DC_CHOICE, AT(precision), "auto", 0, 0, "auto|fp32|tf32|bf16",
     "of matrix products; auto: fp32 on the CPU, tf32 on a GPU"},
    {"log_every", DC_INT, AT(log_every), "1000", 1, 1e12, NULL, "steps between rows of train.csv"},
    {"save_every", DC_INT, AT(save_every), "10000", 1, 1e12, NULL, "steps between checkpoints"},
    {"keep", DC_INT, AT(keep), "3", 0, 1e9, NULL,
     "newest checkpoints kept, and as many evaluated ones; 0: all"},
    {"eval_every", DC_INT, AT(eval_every), "0", 0, 1e12, NULL,
     "steps between evaluations (saved, with a row in eval.csv); 0: none"},
    {"eval_episodes", DC_INT, AT(eval_episodes), "15", 1, 10000, NULL,
     "episodes of each task in an evaluation"},
    {0},
};
#undef AT

// --- options ---

dc_status dc_run_configure(dc_run *run, const char *agent) {
    *run = DC_RUN_NONE;
    dc_options_init(dc_run_table, &run->options);
    DC_TRY(dc_algo_find(agent, &run->algo));
    snprintf(run->options.agent, sizeof run->options.agent, "%s", agent);
    run->config = calloc(1, run->algo->config_size);
    if (!run->config) return dc_fail(DC_NO_MEMORY, NULL, "no memory for options");
    dc_options_init(run->algo->options, run->config);
    return DC_OK;
}

static dc_status unknown_key(const dc_run *run, const char *key) {
    const char *names[128];
    size_t count = 0;
    const dc_option *tables[] = {run->algo->options, dc_run_table};
    for (int t = 0; t < 2; t++)
        for (const dc_option *o = tables[t]; o->name && count < 128; o++)
            names[count++] = o->name;
    const char *near = dc_nearest(key, names, count);
    if (near)
        return dc_fail(DC_USAGE, NULL, "unknown option '%s' of agent %s: did you mean '%s'?", key,
                       run->algo->name, near);
    return dc_fail(DC_USAGE, "dcrl list agents shows its options",
                   "unknown option '%s' of agent %s", key, run->algo->name);
}

dc_status dc_run_set(dc_run *run, const char *key, const char *value) {
    if (!strcmp(key, "agent"))
        return !strcmp(value, run->options.agent)
                   ? DC_OK
                   : dc_fail(DC_USAGE, "use --agent", "the agent cannot be set like an option");
    if (dc_options_find(run->algo->options, key))
        return dc_options_set(run->algo->options, run->config, key, value);
    if (dc_options_find(dc_run_table, key))
        return dc_options_set(dc_run_table, &run->options, key, value);
    return unknown_key(run, key);
}

dc_status dc_run_set_json(dc_run *run, const dc_json *object) {
    if (object->kind != DC_JSON_OBJECT)
        return dc_fail(DC_BAD_INPUT, NULL, "a config must be a JSON object");
    for (const dc_json *m = object->child; m; m = m->next) {
        if (!strcmp(m->key, "data_hash") || !strcmp(m->key, "build") || !strcmp(m->key, "agent"))
            continue;
        dc_json alone = {.kind = DC_JSON_OBJECT, .child = NULL, .count = 1};
        dc_json member = *m;
        member.next = NULL;
        alone.child = &member;
        bool own = dc_options_find(run->algo->options, m->key) != NULL;
        if (!own && !dc_options_find(dc_run_table, m->key)) return unknown_key(run, m->key);
        DC_TRY(dc_options_read(own ? run->algo->options : dc_run_table,
                               own ? run->config : (void *)&run->options, &alone));
    }
    return DC_OK;
}

// --- building ---

// Columns first ... first + count - 1, the same `step` further, and so on, `times` times.
static dc_status add_columns(const int64_t v[4], dc_agent_options *out) {
    for (int64_t t = 0; t < v[3]; t++)
        for (int64_t k = 0; k < v[1]; k++) {
            if (out->rep_size == DC_REP_MAX)
                return dc_fail(DC_USAGE, "name fewer columns", "rep has more than %d columns",
                               DC_REP_MAX);
            out->rep[out->rep_size++] = (int)(v[0] + t * v[2] + k);
        }
    return DC_OK;
}

static dc_status read_rep(const dc_int_list *rep, dc_agent_options *out) {
    if (rep->count == 2) return add_columns((int64_t[]){rep->v[0], rep->v[1], 0, 1}, out);
    if (rep->count % 4 != 0)
        return dc_fail(DC_USAGE, "give first column and count, for instance rep=0,2",
                       "rep has %d numbers", rep->count);
    for (int k = 0; k < rep->count; k += 4)
        DC_TRY(add_columns(rep->v + k, out));
    return DC_OK;
}

dc_status dc_run_agent_options(const dc_run *run, dc_agent_options *out) {
    const dc_run_options *o = &run->options;
    bool lock = !strncmp(o->env, "lock-", 5);
    *out = (dc_agent_options){.seed = (uint64_t)o->seed,
                              .batch = (int)o->batch,
                              .hidden = o->hidden,
                              .gamma = o->gamma,
                              .steps = o->steps};
    out->form = o->form == 1 || (o->form == 0 && lock) ? DC_FORM_DISTANCE : DC_FORM_VALUE;
    return read_rep(&o->rep, out);
}

static dc_status build(dc_run *run, const dc_dataset *data, const char *folder) {
    const dc_run_options *o = &run->options;
    if (o->device == 0 && o->precision > 1)
        return dc_fail(DC_USAGE, "use --device cuda, or precision=fp32",
                       "the CPU multiplies in fp32 only");
    run->data = data;
    if (folder) {
        run->folder = strdup(folder);
        if (!run->folder) return dc_fail(DC_NO_MEMORY, NULL, "no memory");
    }
    DC_TRY(dc_pool_new(&run->pool, (int)o->threads));
    dc_agent_options options;
    DC_TRY(dc_run_agent_options(run, &options));
    DC_TRY(dc_agent_init(&run->agent, run->algo, run->config, &options, data, run->pool));
    if (run->agent.policy_after >= o->steps)
        return dc_fail(DC_USAGE, "give more steps than policy_after",
                       "the policy would never be trained (policy_after=%" PRId64 ", steps=%" PRId64
                       ")",
                       run->agent.policy_after, o->steps);
    if (o->device == 0) return DC_OK;
    dc_gpu_spec spec = {
        .precision = o->precision ? o->precision - 1 : 1, .lr = o->lr, .tau = o->tau};
    return dc_gpu_new(&run->gpu, &run->agent, &spec);
}

static dc_status refuse_old(const char *folder) {
    char path[DC_PATH_MAX];
    DC_TRY(dc_folder_path(path, folder, "config.json"));
    if (!dc_file_exists(path)) return DC_OK;
    return dc_fail(DC_USAGE, "give another --out, or continue it with --resume",
                   "%s holds a run already", folder);
}

dc_status dc_run_start(dc_run *run, const dc_dataset *data, const char *folder) {
    if (folder) DC_TRY(refuse_old(folder)); // soon, before the work of building
    DC_TRY(build(run, data, folder));
    if (!folder) return DC_OK;
    DC_TRY(dc_folder_make(folder));
    DC_TRY(dc_folder_lock(run));
    DC_TRY(refuse_old(folder));
    DC_TRY(dc_folder_write_config(run));
    return dc_folder_open_logs(run, -1);
}

// Read the newest checkpoint that can be read; with none in the folder the run stands at step 0.
static dc_status read_newest(dc_run *run) {
    int64_t *steps;
    int count;
    DC_TRY(dc_folder_checkpoints(run->folder, &steps, &count));
    dc_status status = DC_OK;
    for (int i = 0; i < count && run->saved_step < 0; i++) {
        char path[DC_PATH_MAX];
        status = dc_folder_checkpoint(path, run->folder, steps[i]);
        if (status == DC_OK) status = dc_checkpoint_read(run, path);
        if (status == DC_OK && run->step != steps[i])
            status = dc_fail(DC_BAD_INPUT, NULL,
                             "%s is of step %" PRId64 ", not of the one it is named for", path,
                             run->step);
        if (status == DC_OK)
            run->saved_step = run->step;
        else if (status != DC_BAD_INPUT)
            break; // the system failed, not the file: going back would lose what was saved
        else if (i + 1 < count)
            dc_log(DC_WARN, "%s; an older checkpoint is tried", dc_error());
    }
    free(steps);
    if (status == DC_OK) return DC_OK;
    return dc_fail(status, "restore a checkpoint, or remove them all to begin again at step 0",
                   "no checkpoint of %s can be read (%s)", run->folder, dc_error());
}

dc_status dc_run_resume(dc_run *run, const dc_dataset *data, const char *folder) {
    DC_TRY(build(run, data, folder));
    DC_TRY(dc_folder_lock(run));
    DC_TRY(read_newest(run));
    return dc_folder_open_logs(run, run->step);
}

void dc_run_fini(dc_run *run) {
    dc_folder_close_logs(run);
    dc_folder_unlock(run);
    dc_gpu_free(run->gpu);
    dc_agent_fini(&run->agent);
    dc_pool_free(run->pool);
    free(run->config);
    free(run->folder);
    *run = DC_RUN_NONE;
}

dc_status dc_run_read_config(const char *folder, dc_arena *arena, const dc_json **root) {
    char path[DC_PATH_MAX], *bytes;
    size_t n;
    DC_TRY(dc_folder_path(path, folder, "config.json"));
    if (!dc_file_exists(path))
        return dc_fail(DC_BAD_INPUT, "give a folder that dcrl train or dcrl lock --out wrote",
                       "%s is not a run folder", folder);
    DC_TRY(dc_file_read(path, 1 << 20, &bytes, &n));
    dc_status status = dc_json_parse(arena, path, bytes, n, root);
    free(bytes);
    return status;
}

bool dc_run_done(const char *folder) {
    char path[DC_PATH_MAX];
    return dc_folder_path(path, folder, "DONE") == DC_OK && dc_file_exists(path);
}

// --- metrics ---

int dc_run_metric_count(const dc_run *run) {
    return run->agent.metric_count + 1;
}

const char *dc_run_metric_name(const dc_run *run, int i) {
    return i < run->agent.metric_count ? run->agent.metrics[i].name : "grad_norm";
}

static void add_metrics(dc_run *run, double norm2) {
    int count = run->agent.metric_count;
    for (int i = 0; i < count; i++)
        run->sums[i] += (double)*dc_value(&run->agent.exec, run->agent.metrics[i].node).p;
    run->sums[count] += sqrt(norm2);
    run->sum_count++;
}

static dc_status close_sums(dc_run *run) {
    if (run->gpu) DC_TRY(dc_gpu_sums(run->gpu, run->sums, true));
    for (int i = 0; i < dc_run_metric_count(run); i++)
        run->last[i] = run->sums[i] / (double)run->sum_count;
    memset(run->sums, 0, sizeof run->sums);
    run->sum_count = 0;
    return DC_OK;
}

// --- saving ---

static dc_status not_finite(const dc_run *run, const char *part, const char *name, int64_t step) {
    char path[DC_PATH_MAX] = "no checkpoint";
    bool saved = run->saved_step >= 0;
    if (saved) DC_TRY(dc_folder_checkpoint(path, run->folder, run->saved_step));
    return dc_fail(DC_NOT_FINITE, "lower lr, or look at the data with dcrl data info",
                   "NaN or Inf in the %s %s at step %" PRId64 " (%s %s)", part, name, step, path,
                   saved ? "is intact" : "had been written");
}

static dc_status drop_old(const dc_run *run) {
    if (!run->options.keep) return DC_OK;
    int64_t *steps;
    int count;
    DC_TRY(dc_folder_checkpoints(run->folder, &steps, &count));
    int64_t kept = 0, evaluated = 0; // a score is the mean of the last evaluations: they stay, too
    for (int i = 0; i < count; i++) {
        char path[DC_PATH_MAX];
        // A newer one could not be read when this run was resumed: it must not push out a good one.
        if (steps[i] > run->step) continue;
        bool counts = dc_run_evaluates(run, steps[i]) && evaluated++ < run->options.keep;
        if (kept++ < run->options.keep || counts) continue;
        if (dc_folder_checkpoint(path, run->folder, steps[i]) == DC_OK) unlink(path);
    }
    free(steps);
    return DC_OK;
}

dc_status dc_run_save(dc_run *run) {
    if (!run->folder || run->saved_step == run->step) return DC_OK;
    char path[DC_PATH_MAX];
    char bad[DC_WEIGHT_NAME];
    if (run->gpu) DC_TRY(dc_gpu_fetch(run->gpu));
    dc_checkpoint_find_bad(run, bad);
    if (*bad) return not_finite(run, "tensor", bad, run->step);
    DC_TRY(dc_folder_checkpoint(path, run->folder, run->step));
    DC_TRY(dc_folder_sync_logs(run));
    DC_TRY(dc_checkpoint_write(run, path));
    run->saved_step = run->step;
    return drop_old(run);
}

// --- the loop ---

// Where NaN or Inf came from: the first node in forward order, else the gradient of a weight, else
// squares of gradients that Adam's second moment could not hold.
static dc_status blame(dc_run *run) {
    const char *name = dc_exec_find_bad(&run->agent.exec, &dc_backend_cpu);
    if (name) return not_finite(run, "value of", name, run->step + 1);
    name = dc_params_find_bad(&run->agent.params, run->agent.params.slabs.grad);
    if (name) return not_finite(run, "gradient of", name, run->step + 1);
    return not_finite(run, "squared norm of", "the gradient", run->step + 1);
}

static dc_status update(dc_run *run) {
    double norm2 = dc_backend_cpu.grad_norm2(&run->agent.params.slabs, run->pool);
    double loss = (double)*dc_value(&run->agent.exec, run->agent.graph.loss).p;
    if (!isfinite((dc_real)norm2) || !isfinite(loss)) return blame(run); // Adam squares in dc_real
    dc_adam adam = dc_agent_adam(&run->agent, run->options.lr, run->options.tau, run->step);
    dc_backend_cpu.update(&run->agent.params.slabs, &adam, run->pool);
    add_metrics(run, norm2);
    return DC_OK;
}

static dc_status cpu_step(dc_run *run) {
    DC_TRY(
        dc_agent_gradients(&run->agent, (uint64_t)run->step)); // sample, gather, forward, backward
    DC_TRY(update(run));                                       // guard, EMA, Adam
    run->step++;
    return DC_OK;
}

typedef struct clock_state { // wall clock of this process's part of the run
    double start, last_progress, last_log;
    int64_t log_step;
} clock_state;

bool dc_run_evaluates(const dc_run *run, int64_t step) {
    const dc_run_options *o = &run->options;
    return o->eval_every && step > 0 && (step % o->eval_every == 0 || step == o->steps);
}

static dc_status stopped(const dc_run *run) {
    return dc_fail(DC_INTERRUPTED, NULL, "stopped at step %" PRId64 "%s%s", run->step,
                   run->folder ? "; continue with dcrl train --resume " : "",
                   run->folder ? run->folder : "");
}

// Evaluation takes its time beside the clock of training. One that was stopped is made up for when
// the run goes on, since its row is missing.
static dc_status evaluate(dc_run *run, clock_state *clock) {
    if (!run->evaluate || !run->folder) return DC_OK;
    double before = dc_now();
    dc_status status = run->evaluate(run->evaluate_ctx, run, dc_run_evaluates(run, run->step));
    double seconds = dc_now() - before;
    clock->start += seconds;
    clock->last_log += seconds;
    return status == DC_INTERRUPTED ? stopped(run) : status;
}

// What falls due after a step: log, save, evaluate, progress, stop.
static dc_status due(dc_run *run, clock_state *clock) {
    const dc_run_options *o = &run->options;
    double t = dc_now();
    bool last = run->step == o->steps, stop = run->stop && atomic_load(run->stop);
    if (run->step % o->log_every == 0 || last) {
        DC_TRY(close_sums(run));
        double rate = (double)(run->step - clock->log_step) / (t - clock->last_log + 1e-9);
        if (run->folder) DC_TRY(dc_folder_log(run, t - clock->start, rate));
        clock->last_log = t;
        clock->log_step = run->step;
    }
    bool evaluates = dc_run_evaluates(run, run->step);
    if (run->step % o->save_every == 0 || evaluates || last || stop) DC_TRY(dc_run_save(run));
    if (evaluates) DC_TRY(evaluate(run, clock));
    if (evaluates) t = dc_now();
    if (run->progress && (t - clock->last_progress > 0.2 || last)) {
        clock->last_progress = t;
        run->progress(run->progress_ctx, run, t - clock->start);
    }
    return stop && !last ? stopped(run) : DC_OK;
}

// Steps until something falls due, and no more than about a tenth of a second of them.
static int64_t gpu_stretch(const dc_run *run, const clock_state *clock) {
    const dc_run_options *o = &run->options;
    const int64_t every[] = {o->log_every, o->save_every, o->eval_every ? o->eval_every : o->steps,
                             o->steps};
    double rate = (double)(run->step - run->first_step) / (dc_now() - clock->start + 1e-9);
    int64_t most = rate * 0.1 < 10 ? 10 : (int64_t)(rate * 0.1);
    for (int i = 0; i < 4; i++) {
        int64_t left = every[i] - run->step % every[i];
        most = left < most ? left : most;
    }
    return most;
}

// Sums stay on the device until a log row closes them, so that they do not depend on the stretches.
static dc_status gpu_steps(dc_run *run, const clock_state *clock) {
    int64_t bad, count = gpu_stretch(run, clock);
    DC_TRY(dc_gpu_train(run->gpu, count, &bad));
    if (bad >= 0) { // where it came from, the CPU finds out
        run->step = bad - 1;
        DC_TRY(dc_gpu_fetch(run->gpu));
        DC_TRY(dc_agent_gradients(&run->agent, (uint64_t)run->step));
        return blame(run);
    }
    run->step += count;
    run->sum_count += count;
    return dc_gpu_sums(run->gpu, run->sums, false);
}

static dc_status finish(dc_run *run) {
    char path[DC_PATH_MAX];
    if (!run->folder) return run->gpu ? dc_gpu_fetch(run->gpu) : DC_OK;
    DC_TRY(dc_run_save(run));
    DC_TRY(dc_folder_path(path, run->folder, "DONE"));
    return dc_file_exists(path) ? DC_OK : dc_file_write(path, "done\n", 5);
}

dc_status dc_run_train(dc_run *run) {
    clock_state clock = {.start = dc_now(), .log_step = run->step};
    clock.last_log = clock.last_progress = clock.start;
    run->first_step = run->step;
    if (run->gpu) DC_TRY(dc_gpu_send(run->gpu, (uint64_t)run->step, run->sums));
    DC_TRY(evaluate(run, &clock));
    while (run->step < run->options.steps) {
        DC_TRY(run->gpu ? gpu_steps(run, &clock) : cpu_step(run));
        DC_TRY(due(run, &clock)); // log, save, evaluate, tell, stop
    }
    return finish(run);
}
