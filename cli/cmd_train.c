// dcrl train: one run, or one for each of several seeds, from a preset, a config file, flags or an
// earlier run's folder.
#include "args.h"
#include "cli.h"
#include "runs.h"

#include "api/setup.h"
#include "base/file.h"
#include "rollout/watch.h"
#include "train/presets.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: dcrl train [PRESET] --env ENV [--agent AGENT] [--data PATH] --out RUN [--set "
    "key=value]...\n"
    "       dcrl train --resume RUN\n"
    "\n"
    "Trains an agent and keeps config, logs and checkpoints in the folder RUN. Ctrl-C (or SIGTERM, "
    "SIGUSR1)\n"
    "saves and stops; --resume goes on to the same bytes as if it had never stopped. Options come, "
    "each\n"
    "overriding the one before, from the preset, --config, flags and --set.\n"
    "\n"
    "Several seeds (--seed 0-7, --seed 0,3,5) train together, on one copy of the data; seed K has "
    "the "
    "folder\n"
    "RUN/seed-K, equal to that of a run of its own. --resume RUN goes on with all of them.\n"
    "\n"
    "With --eval-every N, the environment's tasks are played every N steps and at the end, into "
    "RUN/eval.csv.\n"
    "\n"
    "example: dcrl train pointmaze-large --data pointmaze.npz --out runs/pointmaze\n"
    "         dcrl train antmaze-large --agent td-n --data antmaze.npz --out runs/antmaze\n"
    "         dcrl train --env lock-512 --agent dcrl --steps 40000 --out runs/lock --set n=16\n"
    "         dcrl train antmaze-large --data antmaze.npz --seed 0-7 --device cuda --out "
    "runs/antmaze\n"
    "         dcrl train --resume runs/lock\n";

typedef struct flags {
    dc_run_options run; // first: dc_run_table's offsets are ours too
    char out[DC_TEXT_MAX], resume[DC_TEXT_MAX], config[DC_TEXT_MAX], seeds[DC_TEXT_MAX];
} flags;

// In place of the row of one seed.
static const dc_option seed_row = DC_OPTION_TEXT_AS(
    "seed", flags, seeds, "0",
    "the same seed gives the same bytes; a list 0,3,5 or a range 0-7 trains several runs together");
static const dc_option more[] = {
    DC_OPTION_TEXT(flags, out, "", "folder of the run, made if missing"),
    DC_OPTION_TEXT(flags, resume, "", "folder of a run to go on with"),
    DC_OPTION_TEXT(flags, config, "", "JSON file with options, such as another run's config.json"),
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
    char (*folders)[DC_PATH_MAX];
    const char **paths; // of the folders
    const char *folder; // of all
    dc_watch watch;
    cli_line line;
    cli_progress playing; // an evaluation's, on the same line
    dc_eval_progress steps;
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

// One line for all: the mean of their steps, the sum of their rates.
static void progress(void *ctx, const dc_run *run, double seconds) {
    training *t = ctx;
    char text[256], eta[32], seeds[32] = "";
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
    for (int i = 0; logged && i < run->agent.metric_count && n < 200; i++) {
        double mean = 0;
        for (int k = 0; k < t->count; k++)
            mean += t->runs[k].last[i] / t->count;
        n += snprintf(text + n, sizeof text - (size_t)n, "  %s %.4g", dc_run_metric_name(run, i),
                      mean);
    }
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
    if (!cli_args_given(args, "agent") && preset.own && dc_preset_agent(&preset))
        agent = dc_preset_agent(&preset);
    if (!cli_args_given(args, "agent") && agent_of(config)) {
        const dc_algo *algo;
        agent = agent_of(config);
        DC_TRY(config_error(dc_algo_find(agent, &algo), f->config));
    }
    DC_TRY(dc_run_configure(run, agent));
    if (preset.own) DC_TRY(dc_preset_apply(run, &preset));
    if (config) DC_TRY(config_error(dc_run_set_json(run, config), f->config));
    return apply_flags(run, args, f, seed);
}

// One line an evaluation.
static void show_score(void *ctx, const dc_run *run, const dc_eval_score *s) {
    training *t = ctx;
    cli_line_clear(&t->line);
    if (t->count > 1) printf("seed %" PRId64 ", ", run->options.seed);
    printf("step %" PRId64 ": success %.1f %%, tasks", run->step, 100 * s->overall);
    for (int k = 0; k < DC_TASKS; k++)
        printf(" %.0f", 100 * s->task[k]);
    printf(" (%d episode%s each)\n", s->episodes, s->episodes == 1 ? "" : "s");
    fflush(stdout);
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
    printf("trained %s to step %" PRId64 " in %s", t->runs->algo->name, t->runs->step, t->folder);
    end_line(t);
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
    if (t->runs->options.device) DC_TRY(show_trainer(t->runs->trainer));
    t->watch.on_score = show_score;
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
    dc_status status = dc_population_train(t->runs, t->count);
    cli_line_clear(&t->line);
    return outcome(t, status);
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
    return DC_OK;
}

// RUN for one run, RUN/seed-K for each of several.
static dc_status name_folders(training *t, const char *folder, const int64_t *seeds) {
    t->folder = folder;
    if (t->count > 1) DC_TRY(dc_run_refuse(folder));
    for (int i = 0; i < t->count; i++)
        if (t->count > 1)
            DC_TRY(dc_folder_member(t->folders[i], folder, seeds[i]));
        else
            t->paths[i] = folder;
    return DC_OK;
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

static dc_status fresh(training *t, const cli_args *args, const flags *f) {
    int64_t seeds[DC_RUNS_MAX];
    int count;
    DC_TRY(read_seeds(args, f, seeds, &count));
    DC_TRY(training_init(t, count));
    DC_TRY(configure_all(t, args, f, seeds));
    if (!*f->out) return dc_fail(DC_USAGE, "write --out RUN", "a folder for the run is missing");
    DC_TRY(name_folders(t, f->out, seeds));
    DC_TRY(load_data(t));
    DC_TRY(open_watch(t));
    cli_catch_signals(); // from here on there is something to save
    DC_TRY(dc_population_start(t->runs, t->count, t->data, t->paths));
    return train(t);
}

static dc_status check_resume(const cli_args *args, const flags *f) {
    if (!*f->resume)
        return dc_fail(DC_USAGE, "write --resume RUN", "a folder is missing (--resume)");
    for (const dc_option *o = dc_run_table; o->name; o++)
        if (cli_args_given(args, o->name) && strcmp(o->name, "threads") != 0)
            return dc_fail(DC_USAGE, "only --threads goes with --resume",
                           "a run's options are fixed (--%s)", o->name);
    if (args->set_count || args->word_count || *f->out || *f->config)
        return dc_fail(DC_USAGE, "only --threads goes with --resume", "a run's options are fixed");
    return DC_OK;
}

// A population's members that are not done, or the first if all are; none where there is no population.
static dc_status find_members(const char *folder, int64_t *seeds, int *count) {
    int64_t *all;
    int found;
    *count = 0;
    DC_TRY(dc_folder_members(folder, &all, &found));
    for (int i = 0; i < found && *count < DC_RUNS_MAX; i++) {
        char path[DC_PATH_MAX];
        bool done = dc_folder_member(path, folder, all[i]) == DC_OK && dc_run_done(path);
        if (!done) seeds[(*count)++] = all[i];
    }
    if (found && !*count) seeds[(*count)++] = all[0];
    free(all);
    return DC_OK;
}

// The run of a folder, or those of its members.
static dc_status find_runs(training *t, const char *folder) {
    char path[DC_PATH_MAX];
    int64_t seeds[DC_RUNS_MAX];
    int count = 0;
    t->folder = folder;
    DC_TRY(dc_folder_path(path, folder, "config.json"));
    if (!dc_file_exists(path) && dc_folder_exists(folder))
        DC_TRY(find_members(folder, seeds, &count));
    DC_TRY(training_init(t, count ? count : 1));
    for (int i = 0; i < count; i++)
        DC_TRY(dc_folder_member(t->folders[i], folder, seeds[i]));
    if (!count) t->paths[0] = folder;
    return DC_OK;
}

static dc_status resume(training *t, const cli_args *args, const flags *f) {
    DC_TRY(check_resume(args, f));
    DC_TRY(find_runs(t, f->resume));
    for (int i = 0; i < t->count; i++) {
        bool same = i > 0 && *t->runs->options.data; // else the environment makes it
        dc_dataset *data = same ? &t->own[0] : &t->own[i];
        DC_TRY(dc_setup_reopen(&t->runs[i], data, t->paths[i], f->run.threads));
        t->data[i] = data;
    }
    int64_t steps = t->runs->options.steps;
    if (dc_run_done(t->paths[0])) {
        printf("%s is done already (step %" PRId64 ")\n", t->folder, steps);
        return DC_OK;
    }
    DC_TRY(open_watch(t));
    cli_catch_signals();
    DC_TRY(dc_population_resume(t->runs, t->count, t->data, t->paths));
    printf("%s goes on at step %" PRId64 " of %" PRId64, t->folder, least_step(t), steps);
    end_line(t);
    fflush(stdout);
    return train(t);
}

dc_status cmd_train(int argc, char **argv) {
    dc_option table[ROWS_MAX];
    flags f = {0};
    join(table);
    cli_args args = {.usage = usage, .flags = table, .config = &f, .takes = CLI_SET | CLI_WORDS};
    DC_TRY(cli_args_parse(&args, argc, argv));
    if (args.help) return DC_OK;
    training t = {0};
    dc_status status =
        cli_args_given(&args, "resume") ? resume(&t, &args, &f) : fresh(&t, &args, &f);
    training_fini(&t);
    return status;
}
