// dcrl train: one run, or one for each of several seeds, from a preset, a config file, flags or an
// earlier run's folder.
#include "args.h"
#include "cli.h"
#include "ranks.h"
#include "runs.h"
#include "sweep.h"

#include "api/setup.h"
#include "base/file.h"
#include "base/log.h"
#include "report/live.h"
#include "rollout/watch.h"
#include "train/events.h"
#include "train/presets.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: dcrl train [PRESET] --env ENV [--agent AGENT] [--data PATH] --out RUN [--set "
    "key=value]...\n"
    "       dcrl train --resume RUN [--steps N] [--data PATH] [--device D] [--precision P] "
    "[--eval-every N] ...\n"
    "\n"
    "Trains an agent and keeps config, logs and checkpoints in the folder RUN. Ctrl-C (or SIGTERM, "
    "SIGUSR1, SIGXCPU,\n"
    "or SIGHUP but under nohup) saves and stops, with exit status 75; the same command, or "
    "--resume "
    "RUN, goes on to the\n"
    "same bytes as if it had never stopped. Options come, each overriding the one before, from the "
    "preset, --config,\n"
    "flags and --set.\n"
    "A run that goes on may be given more steps, another place of the same data, another device, "
    "and "
    "other\n"
    "intervals of saving and evaluating; all else is fixed.\n"
    "\n"
    "Several seeds (--seed 0-7, --seed 0,3,5) train together, on one copy of the data; seed K has "
    "the "
    "folder\n"
    "RUN/seed-K, equal to that of a run of its own. --resume RUN goes on with all of them.\n"
    "\n"
    "Options with several values make a sweep: --set alpha=0.1,0.3, --agent dcrl,td-n, --env "
    "A,B, or several presets.\n"
    "Each combination is a run in OUT/agent=dcrl,alpha=0.1 and so on, side by side on this "
    "machine; the same command\n"
    "goes on with those that are not done, and OUT/report.html compares them. {env} and {preset} "
    "in --data stand\n"
    "for those of the run.\n"
    "\n"
    "mpirun -n R dcrl train ..., or srun, splits a run's batch over R processes, to the same bytes "
    "(docs/cluster.md).\n"
    "\n"
    "With --eval-every N, the environment's tasks are played every N steps and at the end, into "
    "RUN/eval.csv.\n"
    "\n"
    "example: dcrl train pointmaze-large --data pointmaze.npz --out runs/pointmaze\n"
    "         dcrl train antmaze-large --agent td-n --data antmaze.npz --out runs/antmaze\n"
    "         dcrl train --env lock-512 --agent dcrl --steps 40000 --out runs/lock --set n=16\n"
    "         dcrl train antmaze-large --data antmaze.npz --seed 0-7 --device cuda --out "
    "runs/antmaze\n"
    "         dcrl train --env lock-64 --agent dcrl,td-n --set n=4,8 --seed 0-2 --out runs/sweep\n"
    "         dcrl train --resume runs/lock\n";

typedef struct flags {
    dc_run_options run; // first: dc_run_table's offsets are ours too
    char out[DC_TEXT_MAX], resume[DC_TEXT_MAX], config[DC_TEXT_MAX], seeds[DC_TEXT_MAX];
    bool dry_run, report, tensorboard;
    int64_t jobs;
} flags;

// In place of the row of one seed.
static const dc_option seed_row = DC_OPTION_TEXT_AS(
    "seed", flags, seeds, "0",
    "the same seed gives the same bytes; a list 0,3,5 or a range 0-7 trains several runs together");
static const dc_option more[] = {
    DC_OPTION_TEXT(flags, out, "", "folder of the run, made if missing"),
    DC_OPTION_TEXT(flags, resume, "", "folder of a run to go on with"),
    DC_OPTION_TEXT(flags, config, "", "JSON file with options, such as another run's config.json"),
    DC_OPTION_BOOL_AS("dry-run", flags, dry_run, "off",
                      "print the options that the run would have, as JSON, and stop"),
    DC_OPTION_BOOL(
        flags, report, "off",
        "write the page report.html in the run's folder after every evaluation and at the end; "
        "it reloads itself while the run is at work"),
    DC_OPTION_BOOL(
        flags, tensorboard, "off",
        "write what the CSV files say also as events for TensorBoard, into the run's folder"),
    DC_OPTION_INT(flags, jobs, "0", 0, 1024,
                  "of a sweep: runs at a time; 0: one for each core, on a GPU one"),
    {0},
};

enum { ROWS_MAX = 64 };

// The runs of a command: one for each seed. Their data sets are the first one's, unless an environment
// makes its own for every seed.
typedef struct training {
    int count;
    dc_run *runs;
    dc_dataset *own;         // (count) empty where another's is used
    const dc_dataset **data; // (count)
    dc_dataset val;          // held-out rows of all; empty: there are none
    char (*folders)[DC_PATH_MAX];
    const char **paths; // of the folders
    const char *folder; // of all
    dc_watch watch;
    bool quiet, json; // nothing on the way; json: one object at the end
    double start;
    dc_ranks_cost before;        // training
    double success[DC_RUNS_MAX]; // of each run's last evaluation; below 0: none
    cli_line line;
    cli_progress playing; // an evaluation's, on the same line
    dc_eval_progress steps;
    bool report, tensorboard; // are wanted
    dc_events *events;        // (count) for TensorBoard; NULL: none
} training;

static dc_status training_init(training *t, int count) {
    size_t n = (size_t)count;
    t->runs = calloc(n, sizeof *t->runs);
    t->own = calloc(n, sizeof *t->own);
    t->data = calloc(n, sizeof *t->data);
    t->folders = calloc(n, sizeof *t->folders);
    t->paths = calloc(n, sizeof *t->paths);
    if (!t->runs || !t->own || !t->data || !t->folders || !t->paths)
        return dc_fail(DC_NO_MEMORY, NULL, "no memory for %d runs", count);
    for (int i = 0; i < count; i++) {
        t->runs[i] = DC_RUN_NONE;
        t->data[i] = &t->own[i];
        t->paths[i] = t->folders[i];
    }
    t->count = count;
    return DC_OK;
}

static void training_fini(training *t) {
    dc_watch_close(&t->watch);
    dc_population_fini(t->runs, t->count);
    for (int i = 0; i < t->count; i++)
        dc_dataset_fini(&t->own[i]);
    dc_dataset_fini(&t->val);
    for (int i = 0; t->events && i < t->count; i++)
        dc_events_close(&t->events[i]);
    free(t->events);
    free(t->runs);
    free(t->own);
    free(t->data);
    free(t->folders);
    free(t->paths);
}

static void join(dc_option table[ROWS_MAX]) {
    int n = 0;
    for (const dc_option *o = dc_run_table; o->name; o++)
        table[n++] = strcmp(o->name, seed_row.name) ? *o : seed_row;
    for (const dc_option *o = more; o->name; o++)
        table[n++] = *o;
    DC_CHECK(n < ROWS_MAX);
    table[n] = (dc_option){0};
}

static double mean_of(const training *t, int column) {
    double mean = 0;
    for (int k = 0; k < t->count; k++)
        mean += t->runs[k].last[column] / t->count;
    return mean;
}

// Losses and metrics of the last log row, each with what it is on held-out rows, while there is room.
static void add_numbers(const training *t, char *text, size_t size) {
    const dc_run *run = t->runs;
    int metrics = run->agent.metric_count, first = dc_run_metric_count(run), n = 0;
    int held_out = dc_run_column_count(run) - first;
    for (int i = 0; i < metrics && n + 60 < (int)size; i++) {
        n += snprintf(text + n, size - (size_t)n, "  %s %.4g", dc_run_metric_name(run, i),
                      mean_of(t, i));
        if (held_out)
            n += snprintf(text + n, size - (size_t)n, " (held out %.4g)", mean_of(t, first + i));
    }
    if (held_out > metrics && n + 40 < (int)size)
        snprintf(text + n, size - (size_t)n, "  held-out value off by %.4g steps",
                 mean_of(t, first + metrics));
}

// One line for all: the mean of their steps, the sum of their rates.
static void progress(void *ctx, const dc_run *run, double seconds) {
    training *t = ctx;
    char text[512], eta[32], seeds[32] = "";
    int64_t step = 0, before = 0, all = t->count * run->options.steps;
    bool logged = true; // else there is nothing yet
    for (int i = 0; i < t->count; i++) {
        const dc_run *r = &t->runs[i];
        step += r->step;
        before += r->first_step;
        logged = logged && r->step - r->first_step >= r->options.log_every;
    }
    double rate = (double)(step - before) / (seconds + 1e-9);
    if (t->count > 1) snprintf(seeds, sizeof seeds, " x %d seeds", t->count);
    int n =
        snprintf(text, sizeof text, "step %" PRId64 "/%" PRId64 "%s (%.0f%%)  %.0f steps/s  ETA %s",
                 step / t->count, run->options.steps, seeds, 100.0 * (double)step / (double)all,
                 rate, cli_duration((double)(all - step) / (rate + 1e-9), eta));
    if (logged) add_numbers(t, text + n, sizeof text - (size_t)n);
    cli_line_show(&t->line, text);
}

static dc_status read_config(dc_arena *arena, const char *path, const dc_json **root) {
    char *bytes;
    size_t n;
    DC_TRY(dc_file_read(path, 1 << 20, &bytes, &n));
    dc_status status = dc_json_parse(arena, path, bytes, n, root);
    free(bytes);
    return status;
}

static const char *agent_of(const dc_json *object) {
    const dc_json *agent = object ? dc_json_get(object, "agent") : NULL;
    return agent && agent->kind == DC_JSON_STRING ? agent->text : NULL;
}

// Flags that stand on the command line, over whatever a preset or file said.
static dc_status apply_flags(dc_run *run, const cli_args *args, const flags *f,
                             const int64_t *seed) {
    if (seed) run->options.seed = *seed;
    for (const dc_option *o = dc_run_table; o->name; o++) {
        if (!strcmp(o->name, "agent") || !strcmp(o->name, "seed")) continue; // not set like others
        if (!cli_args_given(args, o->name)) continue;
        dc_text value;
        dc_text_init(&value);
        dc_options_value(o, f, &value);
        dc_status status = dc_text_status(&value);
        if (status == DC_OK) status = dc_run_set(run, o->name, value.bytes ? value.bytes : "");
        dc_text_fini(&value);
        DC_TRY(status);
    }
    return cli_run_sets(run, args);
}

// What is wrong with a file is no fault of the command line.
static dc_status config_error(dc_status status, const char *path) {
    return status == DC_OK ? DC_OK : dc_fail_prefix(DC_BAD_INPUT, path);
}

// Nullable: seed, if no flag gives one
static dc_status configure(dc_run *run, const cli_args *args, const flags *f, const int64_t *seed,
                           dc_arena *arena) {
    dc_preset preset = {0};
    const dc_json *config = NULL;
    if (args->word_count > 1)
        return dc_fail(DC_USAGE, NULL, "one preset at a time (%s)", args->words[1]);
    if (args->word_count == 1) DC_TRY(dc_preset_find(arena, args->words[0], &preset));
    if (cli_args_given(args, "config")) DC_TRY(read_config(arena, f->config, &config));
    const char *agent = f->run.agent;
    if (!cli_args_given(args, "agent") && preset.levels && dc_preset_agent(&preset))
        agent = dc_preset_agent(&preset);
    if (!cli_args_given(args, "agent") && agent_of(config)) {
        const dc_algo *algo;
        agent = agent_of(config);
        DC_TRY(config_error(dc_algo_find(agent, &algo), f->config));
    }
    DC_TRY(dc_run_configure(run, agent));
    if (preset.levels) DC_TRY(dc_preset_apply(run, &preset));
    if (config) DC_TRY(config_error(dc_run_set_json(run, config), f->config));
    return apply_flags(run, args, f, seed);
}

// A page that cannot be written is no reason to stop.
static void write_page(const training *t, bool alive) {
    if (!t->report || dc_live_page(t->folder, alive) == DC_OK) return;
    dc_log(DC_WARN, "no report.html: %s", dc_error());
}

// One line an evaluation.
static void show_score(void *ctx, const dc_run *run, const dc_eval_score *s) {
    training *t = ctx;
    t->success[run - t->runs] = s->overall;
    if (t->quiet) return;
    cli_line_clear(&t->line);
    if (t->count > 1) printf("seed %" PRId64 ", ", run->options.seed);
    printf("step %" PRId64 ": success %.1f %%, tasks", run->step, 100 * s->overall);
    for (int k = 0; k < DC_TASKS; k++)
        printf(" %.0f", 100 * s->task[k]);
    printf(" (%d episode%s each)\n", s->episodes, s->episodes == 1 ? "" : "s");
    fflush(stdout);
}

// ---- for TensorBoard ----

// What cannot be written is told once, and is no reason to stop.
static void put(training *t, const dc_run *run, const char *group, const char *const *names,
                const double *values, int count) {
    dc_events *events = t->events ? &t->events[run - t->runs] : NULL;
    if (!events || !events->file) return;
    if (dc_events_put(events, run->step, group, names, values, count) == DC_OK) return;
    dc_log(DC_WARN, "%s has no further events: %s", run->folder, dc_error());
    dc_events_close(events);
}

// What train.csv and timing.csv get.
static void put_row(void *ctx, const dc_run *run, double seconds, double rate) {
    const char *names[DC_LOG_COLUMNS];
    static const char *const speed[] = {"seconds", "steps_per_second"};
    int count = dc_run_column_count(run);
    for (int i = 0; i < count; i++)
        names[i] = dc_run_column_name(run, i);
    put(ctx, run, "train", names, run->last, count);
    put(ctx, run, "timing", speed, (const double[]){seconds, rate}, 2);
}

// What eval.csv gets.
static void take_score(void *ctx, const dc_run *run, const dc_eval_score *s) {
    training *t = ctx;
    const char *names[1 + DC_TASKS] = {"overall_success"};
    char tasks[DC_TASKS][32];
    double values[1 + DC_TASKS] = {s->overall};
    for (int k = 0; k < DC_TASKS; k++) {
        snprintf(tasks[k], sizeof tasks[k], "task%d_success", k + 1);
        names[1 + k] = tasks[k];
        values[1 + k] = s->task[k];
    }
    show_score(ctx, run, s);
    put(t, run, "eval", names, values, 1 + DC_TASKS);
    write_page(t, true);
}

static dc_status open_events(training *t) {
    if (!t->tensorboard) return DC_OK;
    t->events = calloc((size_t)t->count, sizeof *t->events);
    if (!t->events) return dc_fail(DC_NO_MEMORY, NULL, "no memory for events");
    for (int i = 0; i < t->count; i++) {
        DC_TRY(dc_events_open(&t->events[i], t->paths[i], t->runs[i].step));
        t->runs[i].on_row = put_row;
        t->runs[i].on_row_ctx = t;
    }
    return DC_OK;
}

static int64_t least_step(const training *t) {
    int64_t step = INT64_MAX;
    for (int i = 0; i < t->count; i++)
        step = t->runs[i].step < step ? t->runs[i].step : step;
    return step;
}

static void end_line(const training *t) {
    if (t->count > 1) printf(" (%d seeds)", t->count);
    printf("\n");
}

// {"folder": ..., "agent": ..., "seconds": ..., "steps_per_second": ..., "runs": [{"folder": ..., "seed": ...}]}
static dc_status print_json(const training *t) {
    dc_text out;
    int64_t steps = 0;
    double seconds = dc_now() - t->start;
    for (int i = 0; i < t->count; i++)
        steps += t->runs[i].step - t->runs[i].first_step;
    dc_text_init(&out);
    dc_text_add(&out, "{\"folder\": ");
    dc_json_quote(&out, t->folder);
    dc_text_add(&out, ", \"agent\": \"%s\", \"seconds\": %.3f, \"steps_per_second\": %.1f, ",
                t->runs->algo->name, seconds, (double)steps / (seconds + 1e-9));
    for (int i = 0; i < t->count; i++) {
        dc_text_add(&out, "%s{\"folder\": ", i ? ", " : "\"runs\": [");
        dc_json_quote(&out, t->paths[i]);
        dc_text_add(&out, ", \"seed\": %" PRId64 ", \"step\": %" PRId64 ", \"success\": ",
                    t->runs[i].options.seed, t->runs[i].step);
        dc_text_add(&out, t->success[i] < 0 ? "null}" : "%.6g}", t->success[i]);
    }
    dc_text_add(&out, "]}\n");
    dc_status status = dc_text_status(&out);
    if (status == DC_OK) fputs(out.bytes, stdout);
    dc_text_fini(&out);
    return status;
}

// What it cost that there were several ranks, as rank 0 saw it.
static void tell_ranks(const training *t) {
    dc_ranks_cost cost = dc_ranks_so_far(cli_ranks), before = t->before;
    double steps = 0, seconds = dc_now() - t->start;
    for (int i = 0; i < t->count; i++)
        steps += (double)(t->runs[i].step - t->runs[i].first_step);
    if (!cli_ranks || steps < 1) return;
    printf("%d ranks: the first sent %.3f MB in %.0f messages a step, and waited %.0f %% of the "
           "time\n",
           dc_ranks_count(cli_ranks), (double)(cost.bytes - before.bytes) / steps / 1e6,
           (double)(cost.messages - before.messages) / steps,
           100 * (cost.waited - before.waited) / (seconds + 1e-9));
}

// Where several runs are, their common folder is the one to go on with.
static dc_status outcome(training *t, dc_status status) {
    if (status == DC_IO)
        return dc_fail(status, NULL, "%s; then go on with dcrl train --resume %s", dc_error(),
                       t->folder);
    if (status == DC_INTERRUPTED && t->count > 1)
        return dc_fail(status, NULL,
                       "stopped at step %" PRId64 " of %d seeds; continue with dcrl train --resume "
                       "%s",
                       least_step(t), t->count, t->folder);
    if (status != DC_OK) return status;
    if (t->json) return print_json(t);
    if (t->quiet) return DC_OK;
    printf("trained %s to step %" PRId64 " in %s", t->runs->algo->name, t->runs->step, t->folder);
    end_line(t);
    tell_ranks(t);
    return DC_OK;
}

// What computes and how, where that is not plain: a path that is slower than it could be must show.
static dc_status show_trainer(const dc_trainer *trainer) {
    dc_text text;
    dc_text_init(&text);
    dc_status status = trainer->ops->describe(trainer, &text);
    if (status == DC_OK) puts(text.bytes);
    fflush(stdout);
    dc_text_fini(&text);
    return status;
}

static dc_status train(training *t) {
    cli_line_init(&t->line);
    t->line.quiet = t->quiet;
    t->start = dc_now();
    t->before = dc_ranks_so_far(cli_ranks);
    for (int i = 0; i < t->count; i++)
        t->success[i] = -1;
    if (t->runs->options.device && !t->quiet) DC_TRY(show_trainer(t->runs->trainer));
    t->watch.on_score = take_score;
    t->watch.on_score_ctx = t;
    t->steps = cli_progress_on(&t->playing, &t->line, "evaluating", "steps");
    t->watch.steps = &t->steps;
    for (int i = 0; i < t->count; i++) {
        dc_run *run = &t->runs[i];
        run->stop = &cli_stop;
        run->evaluate = t->watch.world ? dc_watch_evaluate : NULL;
        run->evaluate_ctx = &t->watch;
        run->progress = progress;
        run->progress_ctx = t;
    }
    DC_TRY(open_events(t));
    dc_status status = dc_population_train(t->runs, t->count);
    cli_line_clear(&t->line);
    status = outcome(t, status);
    char error[1024]; // of training, which a page must not hide
    snprintf(error, sizeof error, "%s", status == DC_OK ? "" : dc_error());
    write_page(t, false);
    return status == DC_OK ? DC_OK : dc_fail(status, NULL, "%s", error);
}

static dc_status open_watch(training *t) {
    return t->runs->options.eval_every ? dc_watch_open(&t->watch, t->runs, t->data[0]) : DC_OK;
}

static dc_status configure_all(training *t, const cli_args *args, const flags *f,
                               const int64_t *seeds) {
    dc_arena arena;
    dc_arena_init(&arena, 0);
    dc_status status = DC_OK;
    for (int i = 0; i < t->count && status == DC_OK; i++) {
        const int64_t *seed = cli_args_given(args, "seed") ? &seeds[i] : NULL;
        status = configure(&t->runs[i], args, f, seed, &arena);
        if (status == DC_OK) status = dc_setup_goal(&t->runs[i]);
    }
    dc_arena_fini(&arena);
    return status;
}

// Held-out rows are the same for all. Nullable: folder (of a run that goes on)
static dc_status load_val(training *t, const char *folder) {
    DC_TRY(dc_setup_val(t->runs, &t->val, folder));
    for (int i = 1; i < t->count; i++) {
        t->runs[i].val = t->runs->val;
        memcpy(t->runs[i].options.val, t->runs->options.val, sizeof t->runs->options.val);
    }
    return DC_OK;
}

// A data set that is given is loaded once.
static dc_status load_data(training *t) {
    for (int i = 0; i < t->count; i++) {
        dc_run_options *o = &t->runs[i].options;
        if (i == 0 || !*o->data) {
            DC_TRY(dc_setup_data(&t->runs[i], &t->own[i]));
            continue;
        }
        t->data[i] = t->data[0];
        memcpy(o->data, t->runs->options.data, sizeof o->data);
    }
    return load_val(t, NULL);
}

static dc_status read_seeds(const cli_args *args, const flags *f, int64_t *seeds, int *count) {
    DC_TRY(cli_seeds(f->seeds, seeds, DC_RUNS_MAX, count));
    for (int a = 0; a < *count; a++)
        for (int b = 0; b < a; b++)
            if (seeds[a] == seeds[b])
                return dc_fail(DC_USAGE, "name each seed once",
                               "two runs are the same (seed %" PRId64 ")", seeds[a]);
    for (int i = 0; *count > 1 && i < args->set_count; i++)
        if (!strncmp(args->sets[i], "seed=", 5))
            return dc_fail(DC_USAGE, "leave one of them out", "seeds are given twice (--set %s)",
                           args->sets[i]);
    return DC_OK;
}

// What config.json would say of the (first) run, before any data is read.
static dc_status show_options(const dc_run *run) {
    dc_text text;
    dc_text_init(&text);
    dc_options_json(dc_run_table, &run->options, &text);
    dc_text_add(&text, ",\n");
    dc_options_json(run->algo->options, run->config, &text);
    dc_status status = dc_text_status(&text);
    if (status == DC_OK) printf("{\n%s\n}\n", text.bytes);
    dc_text_fini(&text);
    return status;
}

// ---- which runs ----

typedef struct members { // the runs that a command is about, and what their folders hold
    bool alone;          // one run, in the folder itself; else one for each seed, in folder/seed-K
    int64_t seeds[DC_RUNS_MAX];
    int count;                 // of those that have steps to do, whose seeds are above
    char pattern[DC_PATH_MAX]; // a run that has begun; "": none has
} members;

static dc_status member_path(char path[DC_PATH_MAX], const char *folder, bool alone, int64_t seed) {
    if (!alone) return dc_folder_member(path, folder, seed);
    snprintf(path, DC_PATH_MAX, "%s", folder);
    return DC_OK;
}

// Whether a run is done, with the steps that are wanted now (0: any).
static dc_status is_finished(const char *folder, int64_t steps, bool *finished) {
    dc_arena arena;
    const dc_json *config;
    dc_run old = DC_RUN_NONE;
    DC_TRY(dc_run_done(folder, finished));
    if (!*finished) return DC_OK;
    dc_arena_init(&arena, 0);
    dc_status status = dc_run_read_config(folder, &arena, &config);
    if (status == DC_OK) status = dc_run_reconfigure(&old, config, folder);
    *finished = status == DC_OK && (!steps || old.options.steps == steps);
    dc_run_fini(&old);
    dc_arena_fini(&arena);
    return status;
}

// Nullable: wanted, which a run that has begun must be
static dc_status look_at(members *m, const char *folder, int64_t seed, int64_t steps,
                         dc_run *wanted) {
    char path[DC_PATH_MAX];
    bool finished, begun;
    DC_TRY(member_path(path, folder, m->alone, seed));
    DC_TRY(dc_run_begun(path, &begun));
    if (begun && wanted) {
        wanted->options.seed = seed;
        DC_TRY(dc_setup_same(wanted, path));
    }
    DC_TRY(is_finished(path, steps, &finished));
    if (begun && !*m->pattern) memcpy(m->pattern, path, sizeof path);
    if (!finished && m->count < DC_RUNS_MAX) m->seeds[m->count++] = seed;
    return DC_OK;
}

// Room for them, and their folders.
static dc_status name_folders(training *t, const char *folder, const members *m) {
    t->folder = folder;
    DC_TRY(training_init(t, m->count));
    for (int i = 0; i < m->count; i++)
        DC_TRY(member_path(t->folders[i], folder, m->alone, m->seeds[i]));
    for (int i = 0; i < m->count && !m->alone; i++)
        DC_TRY(dc_folder_inside(t->folders[i]));
    return DC_OK;
}

// One run and several never share a folder.
static dc_status refuse_mixture(const char *folder, bool alone) {
    int64_t *seeds;
    int found;
    bool exists;
    if (!alone) return dc_run_refuse(folder);
    DC_TRY(dc_folder_find(folder, &exists));
    if (!exists) return DC_OK;
    DC_TRY(dc_folder_members(folder, &seeds, &found));
    free(seeds);
    if (found)
        return dc_fail(DC_USAGE, "give another --out, or the seeds that it holds",
                       "%s holds runs of seeds (%d)", folder, found);
    char inner[DC_PATH_MAX];
    DC_TRY(
        dc_run_begun(folder, &exists)); // one that is there goes on, whatever lies beside its files
    if (exists) return DC_OK;
    DC_TRY(dc_folder_inner(inner, folder));
    if (!*inner) return DC_OK;
    return dc_fail(DC_USAGE, "name a new folder in it, --out FOLDER/NAME",
                   "%s holds another run (%s)", folder, inner);
}

// Of several ranks the first has the folders; all have looked at them before it changes anything there.
static dc_status start(training *t, bool goes_on) {
    static const char *const nowhere[DC_RUNS_MAX];
    bool leads = cli_ranks_leads();
    for (int i = 0; i < t->count; i++)
        t->runs[i].ranks = cli_ranks;
    cli_catch_signals(); // from here on there is something to save
    cli_ranks_wait();
    DC_TRY(goes_on && leads
               ? dc_population_resume(t->runs, t->count, t->data, t->paths)
               : dc_population_start(t->runs, t->count, t->data, leads ? t->paths : nowhere));
    return dc_population_meet(t->runs, t->count);
}

// ---- going on ----

// What a run is, from its folder; of one that has not begun, from another one's.
static dc_status reopen(training *t, int i, const members *m, const dc_changes *changes) {
    bool same = i > 0 && *t->runs->options.data; // else the environment makes it
    dc_dataset *data = same ? &t->own[0] : &t->own[i];
    bool begun;
    t->data[i] = data;
    DC_TRY(dc_run_begun(t->paths[i], &begun));
    DC_TRY(begun || !*m->pattern
               ? dc_setup_reopen(&t->runs[i], data, t->paths[i], changes)
               : dc_setup_member(&t->runs[i], data, m->pattern, m->seeds[i], changes));
    if (same) memcpy(t->runs[i].options.data, t->runs->options.data, sizeof t->runs->options.data);
    return DC_OK;
}

static dc_status go_on(training *t, const char *folder, const members *m,
                       const dc_changes *changes) {
    if (!m->count && t->json) {
        dc_text out;
        dc_text_init(&out);
        dc_text_add(&out, "{\"folder\": ");
        dc_json_quote(&out, folder);
        dc_text_add(&out, ", \"done\": true, \"runs\": []}");
        if (out.bytes) puts(out.bytes);
        dc_text_fini(&out);
    }
    if (!m->count && !t->quiet) printf("%s is done already\n", folder);
    if (!m->count) return DC_OK;
    DC_TRY(name_folders(t, folder, m));
    for (int i = 0; i < t->count; i++)
        DC_TRY(reopen(t, i, m, changes));
    DC_TRY(load_val(t, *m->pattern ? m->pattern : t->paths[0]));
    DC_TRY(open_watch(t));
    DC_TRY(start(t, true));
    if (!t->quiet) {
        printf("%s goes on at step %" PRId64 " of %" PRId64, folder, least_step(t),
               t->runs->options.steps);
        end_line(t);
        fflush(stdout);
    }
    return train(t);
}

// ---- a command with --out: new runs, or the same ones again ----

static dc_status begin(training *t, const cli_args *args, const flags *f, const members *m) {
    DC_TRY(name_folders(t, f->out, m));
    DC_TRY(configure_all(t, args, f, m->seeds));
    DC_TRY(load_data(t));
    DC_TRY(open_watch(t));
    DC_TRY(start(t, false));
    return train(t);
}

// Of what a run that goes on may take, all that this command says.
static dc_status all_changes(const dc_run *run, dc_changes *changes) {
    for (const dc_option *o = dc_run_table; o->name; o++)
        if (o->role != DC_FIXED) DC_TRY(dc_changes_add(changes, o, &run->options));
    return DC_OK;
}

// `first` is the run of the first seed as the command has it.
static dc_status begin_or_go_on(training *t, const cli_args *args, const flags *f, dc_run *first,
                                const int64_t *seeds, int count) {
    members m = {.alone = count == 1};
    dc_changes changes = {.count = 0};
    if (!*f->out) return dc_fail(DC_USAGE, "write --out RUN", "a folder for the run is missing");
    DC_TRY(refuse_mixture(f->out, m.alone));
    for (int i = 0; i < count; i++)
        DC_TRY(look_at(&m, f->out, seeds[i], first->options.steps, first));
    if (!*m.pattern) return begin(t, args, f, &m);
    DC_TRY(all_changes(first, &changes));
    return go_on(t, f->out, &m, &changes);
}

static dc_status fresh(training *t, const cli_args *args, const flags *f) {
    int64_t seeds[DC_RUNS_MAX];
    int count;
    training first = {0};
    DC_TRY(read_seeds(args, f, seeds, &count));
    dc_status status = training_init(&first, 1);
    if (status == DC_OK) status = configure_all(&first, args, f, seeds);
    if (status == DC_OK)
        status = f->dry_run ? show_options(first.runs)
                            : begin_or_go_on(t, args, f, first.runs, seeds, count);
    training_fini(&first);
    return status;
}

// ---- --resume ----

static dc_status given_changes(const cli_args *args, const flags *f, dc_changes *changes) {
    for (const dc_option *o = dc_run_table; o->name; o++)
        if (cli_args_given(args, o->name)) DC_TRY(dc_changes_add(changes, o, &f->run));
    if (args->set_count || args->word_count || *f->out || *f->config || f->dry_run)
        return dc_fail(DC_USAGE, "give --steps, --data, --device and their like as flags",
                       "a run that goes on takes no preset, --config, --set or --out");
    if (*f->resume) return DC_OK;
    return dc_fail(DC_USAGE, "write --resume RUN", "a folder is missing (--resume)");
}

// Every run of a folder.
static dc_status find_members(const char *folder, int64_t steps, members *m) {
    int64_t *seeds;
    int found;
    DC_TRY(dc_folder_members(folder, &seeds, &found));
    dc_status status = DC_OK;
    m->alone = !found;
    for (int i = 0; status == DC_OK && i < found; i++)
        status = look_at(m, folder, seeds[i], steps, NULL);
    free(seeds);
    return status;
}

static dc_status resume(training *t, const cli_args *args, const flags *f) {
    dc_changes changes = {.count = 0};
    members m = {.alone = true};
    bool begun, folder = false;
    DC_TRY(given_changes(args, f, &changes));
    int64_t steps = cli_args_given(args, "steps") ? f->run.steps : 0;
    DC_TRY(dc_run_begun(f->resume, &begun));
    if (!begun) DC_TRY(dc_folder_find(f->resume, &folder));
    if (folder) DC_TRY(find_members(f->resume, steps, &m));
    if (m.alone) DC_TRY(look_at(&m, f->resume, 0, steps, NULL));
    return go_on(t, f->resume, &m, &changes);
}

dc_status cmd_train(int argc, char **argv) {
    dc_option table[ROWS_MAX];
    flags f = {0};
    join(table);
    cli_args args = {.usage = usage,
                     .flags = table,
                     .config = &f,
                     .takes = CLI_SET | CLI_WORDS | CLI_JSON | CLI_QUIET};
    DC_TRY(cli_ranks_join());
    DC_TRY(cli_args_parse(&args, argc, argv));
    if (args.help) return DC_OK;
    if (cli_ranks && !cli_args_given(&args, "resume") && cli_sweeps(&args, &f.run))
        return dc_fail(DC_USAGE, "give one value each, or start it without mpirun",
                       "a sweep is not split over ranks");
    if (!cli_args_given(&args, "resume") && cli_sweeps(&args, &f.run))
        return cli_sweep(&(cli_sweep_command){&args, &f.run, f.out, f.jobs});
    bool leads = cli_ranks_leads();
    training t = {.quiet = args.quiet || !leads,
                  .json = args.json && leads,
                  .report = f.report && leads,
                  .tensorboard = f.tensorboard && leads};
    dc_status status =
        cli_args_given(&args, "resume") ? resume(&t, &args, &f) : fresh(&t, &args, &f);
    status = cli_args_say(&args, status);
    training_fini(&t);
    return status;
}
