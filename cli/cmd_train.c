// dcrl train: one run, from a preset, a config file, flags or an earlier run's folder.
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
    "With --eval-every N, the environment's tasks are played every N steps and at the end, into "
    "RUN/eval.csv.\n"
    "\n"
    "example: dcrl train pointmaze-large --data pointmaze.npz --out runs/pointmaze\n"
    "         dcrl train antmaze-large --agent td-n --data antmaze.npz --out runs/antmaze\n"
    "         dcrl train --env lock-512 --agent dcrl --steps 40000 --out runs/lock --set n=16\n"
    "         dcrl train --resume runs/lock\n";

typedef struct flags {
    dc_run_options run; // first: dc_run_table's offsets are ours too
    char out[DC_TEXT_MAX], resume[DC_TEXT_MAX], config[DC_TEXT_MAX];
} flags;

static const dc_option more[] = {
    {"out", DC_TEXT, offsetof(flags, out), "", 0, 0, NULL, "folder of the run, made if missing"},
    {"resume", DC_TEXT, offsetof(flags, resume), "", 0, 0, NULL, "folder of a run to go on with"},
    {"config", DC_TEXT, offsetof(flags, config), "", 0, 0, NULL,
     "JSON file with options, such as another run's config.json"},
    {0},
};

enum { ROWS_MAX = 64 };

static void join(dc_option table[ROWS_MAX]) {
    int n = 0;
    for (const dc_option *o = dc_run_table; o->name; o++)
        table[n++] = *o;
    for (const dc_option *o = more; o->name; o++)
        table[n++] = *o;
    DC_CHECK(n < ROWS_MAX);
    table[n] = (dc_option){0};
}

static void progress(void *ctx, const dc_run *run, double seconds) {
    char text[256], eta[32];
    double rate = (double)(run->step - run->first_step) / (seconds + 1e-9);
    int n = snprintf(
        text, sizeof text, "step %" PRId64 "/%" PRId64 " (%.0f%%)  %.0f steps/s  ETA %s", run->step,
        run->options.steps, 100.0 * (double)run->step / (double)run->options.steps, rate,
        cli_duration((double)(run->options.steps - run->step) / (rate + 1e-9), eta));
    bool logged =
        run->step - run->first_step >= run->options.log_every; // else there is nothing yet
    for (int i = 0; logged && i < run->agent.metric_count && n < 200; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "  %s %.4g", dc_run_metric_name(run, i),
                      run->last[i]);
    cli_line_show(ctx, text);
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
static dc_status apply_flags(dc_run *run, const cli_args *args, const flags *f) {
    for (const dc_option *o = dc_run_table; o->name; o++) {
        if (!strcmp(o->name, "agent") || !cli_args_given(args, o->name)) continue;
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

static dc_status configure(dc_run *run, const cli_args *args, const flags *f, dc_arena *arena) {
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
    return apply_flags(run, args, f);
}

// One line an evaluation.
static void tell(void *ctx, const dc_run *run, const dc_eval_score *s) {
    cli_line_clear(ctx);
    printf("step %" PRId64 ": success %.1f %%, tasks", run->step, 100 * s->overall);
    for (int t = 0; t < DC_TASKS; t++)
        printf(" %.0f", 100 * s->task[t]);
    printf(" (%d episode%s each)\n", s->episodes, s->episodes == 1 ? "" : "s");
    fflush(stdout);
}

static dc_status train(dc_run *run, dc_watch *watch) {
    cli_line line;
    cli_line_init(&line);
    run->stop = &cli_stop;
    if (watch->world) {
        watch->tell = tell;
        watch->tell_ctx = &line;
        run->evaluate = dc_watch_evaluate;
        run->evaluate_ctx = watch;
    }
    run->progress = progress;
    run->progress_ctx = &line;
    dc_status status = dc_run_train(run);
    cli_line_clear(&line);
    if (status == DC_IO)
        return dc_fail(status, NULL, "%s; then go on with dcrl train --resume %s", dc_error(),
                       run->folder);
    if (status == DC_OK)
        printf("trained %s to step %" PRId64 " in %s\n", run->algo->name, run->step, run->folder);
    return status;
}

static dc_status open_watch(dc_watch *watch, const dc_run *run, const dc_dataset *data) {
    return run->options.eval_every ? dc_watch_open(watch, run, data) : DC_OK;
}

static dc_status fresh(dc_run *run, dc_dataset *data, dc_watch *watch, const cli_args *args,
                       const flags *f) {
    dc_arena arena;
    dc_arena_init(&arena, 0);
    dc_status status = configure(run, args, f, &arena);
    dc_arena_fini(&arena);
    DC_TRY(status);
    DC_TRY(dc_setup_goal(run));
    if (!*f->out) return dc_fail(DC_USAGE, "write --out RUN", "a folder for the run is missing");
    DC_TRY(dc_setup_data(run, data));
    DC_TRY(open_watch(watch, run, data));
    cli_catch_signals(); // from here on there is something to save
    DC_TRY(dc_run_start(run, data, f->out));
    return train(run, watch);
}

static dc_status resume(dc_run *run, dc_dataset *data, dc_watch *watch, const cli_args *args,
                        const flags *f) {
    if (!*f->resume)
        return dc_fail(DC_USAGE, "write --resume RUN", "a folder is missing (--resume)");
    for (const dc_option *o = dc_run_table; o->name; o++)
        if (cli_args_given(args, o->name) && strcmp(o->name, "threads") != 0)
            return dc_fail(DC_USAGE, "only --threads goes with --resume",
                           "a run's options are fixed (--%s)", o->name);
    if (args->set_count || args->word_count || *f->out || *f->config)
        return dc_fail(DC_USAGE, "only --threads goes with --resume", "a run's options are fixed");
    DC_TRY(dc_setup_reopen(run, data, f->resume, f->run.threads));
    if (dc_run_done(f->resume)) {
        printf("%s is done already (step %" PRId64 ")\n", f->resume, run->options.steps);
        return DC_OK;
    }
    DC_TRY(open_watch(watch, run, data));
    cli_catch_signals();
    DC_TRY(dc_run_resume(run, data, f->resume));
    printf("%s goes on at step %" PRId64 " of %" PRId64 "\n", f->resume, run->step,
           run->options.steps);
    fflush(stdout);
    return train(run, watch);
}

dc_status cmd_train(int argc, char **argv) {
    dc_option table[ROWS_MAX];
    flags f = {0};
    join(table);
    cli_args args = {.usage = usage, .flags = table, .config = &f, .takes = CLI_SET | CLI_WORDS};
    DC_TRY(cli_args_parse(&args, argc, argv));
    if (args.help) return DC_OK;
    dc_run run = DC_RUN_NONE;
    dc_dataset data = {0};
    dc_watch watch = {0};
    dc_status status = cli_args_given(&args, "resume") ? resume(&run, &data, &watch, &args, &f)
                                                       : fresh(&run, &data, &watch, &args, &f);
    dc_watch_close(&watch);
    dc_run_fini(&run);
    dc_dataset_fini(&data);
    return status;
}
