// dcrl eval: plays the five tasks with a run's policy and prints how often it reaches the goal. The result is
// also a row of RUN/eval.csv, where dcrl report finds it.
#include "args.h"
#include "cli.h"
#include "runs.h"

#include "rollout/eval_log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: dcrl eval RUN [--step N] [--episodes N] [--seed S] [--samples N] [--flow-steps N] "
    "[--device cpu|cuda] [--threads T] [--json]\n"
    "\n"
    "Plays every task of the run's environment with the policy of a checkpoint, all episodes side "
    "by side, and\n"
    "adds a row to RUN/eval.csv. The same seed gives the same result for any number of threads.\n"
    "A policy of kind rejection acts as the run's config says; with --samples or --flow-steps it "
    "tries\n"
    "another way, and no row is added. With --device cuda the policy runs on a GPU and the cores "
    "simulate.\n"
    "\n"
    "example: dcrl eval runs/pointmaze --episodes 15\n";

typedef struct flags {
    int64_t step, episodes, seed, samples, flow_steps, threads;
    int device, precision;
} flags;

static const dc_option table[] = {
    DC_OPTION_INT(flags, step, "-1", -1, 1e12, "checkpoint to take; -1: the newest"),
    DC_OPTION_INT(flags, episodes, "15", 1, 10000, "episodes of each task"),
    DC_OPTION_INT(flags, seed, "0", 0, 9e15, "of starts, goals and noise"),
    DC_OPTION_INT(flags, samples, "0", 0, 4096,
                  "policy=rejection: candidates; 0: as the run was configured"),
    DC_OPTION_INT(flags, flow_steps, "0", 0, 1000,
                  "policy=rejection: Euler steps; 0: as the run was configured"),
    DC_OPTION_CHOICE(flags, device, "cpu", "cpu|cuda", "where the policy runs"),
    DC_OPTION_CHOICE(flags, precision, "fp32", "fp32|tf32", "of a GPU's matrix products"),
    DC_OPTION_INT(flags, threads, "0", 0, 1024, "threads; 0: all cores"),
    {0},
};

// `own`: the one task of a single-task form, 0: five.
static void print_result(const char *env, int own, int64_t step, const dc_eval_score *s,
                         double seconds, bool json) {
    char steps[32]; // without a success there is no mean
    snprintf(steps, sizeof steps, "%s", json ? "null" : "-");
    if (s->overall > 0) snprintf(steps, sizeof steps, "%.*f", json, s->mean_steps);
    if (json) {
        printf("{\"env\": \"%s\", \"step\": %" PRId64
               ", \"episodes\": %d, \"overall_success\": %.6g, \"task_success\": [",
               env, step, s->episodes * DC_TASKS, s->overall);
        for (int t = 0; t < DC_TASKS; t++)
            printf("%s%.6g", t ? ", " : "", s->task[t]);
        printf("], \"std_over_tasks\": %.6g, \"mean_steps\": %s, \"seconds\": %.2f}\n", s->sd,
               steps, seconds);
        return;
    }
    printf("%s at step %" PRId64 ", %d episodes%s, %.1f s\n\n", env, step,
           own ? s->episodes * DC_TASKS : s->episodes, own ? "" : " a task", seconds);
    if (own) {
        printf("  task %d   %5.1f %%, %s steps to a goal on average\n", own, 100 * s->overall,
               steps);
        return;
    }
    for (int t = 0; t < DC_TASKS; t++)
        printf("  task %d   %5.1f %%\n", t + 1, 100 * s->task[t]);
    printf("  overall  %5.1f %% (+- %.1f over tasks), %s steps to a goal on average\n",
           100 * s->overall, 100 * s->sd, steps);
}

static bool tries_other(const flags *f) {
    return f->samples || f->flow_steps;
}

static dc_status evaluate(const dc_world *world, dc_actor *actor, const flags *f, dc_pool *pool,
                          dc_eval_score *score) {
    cli_line line;
    cli_line_init(&line);
    cli_progress progress;
    dc_eval_progress steps = cli_progress_on(&progress, &line, "evaluating", "steps");
    dc_status status = dc_evaluate(world, actor, (int)f->episodes, (uint64_t)f->seed, pool,
                                   &cli_stop, &steps, score);
    cli_line_clear(&line);
    return status;
}

static dc_status play(const cli_pick *pick, const flags *f, dc_eval_score *score) {
    if (!f->device && f->precision)
        return dc_fail(DC_USAGE, "use --device cuda, or --precision fp32",
                       "the CPU multiplies in fp32 only");
    dc_actor_options options = {.samples = (int)f->samples,
                                .flow_steps = (int)f->flow_steps,
                                .rows = (int)f->episodes * DC_TASKS,
                                .seed = (uint64_t)f->seed,
                                .cuda = f->device,
                                .precision = f->precision};
    dc_pool *pool = NULL;
    dc_world *world = NULL;
    dc_actor actor = {0};
    dc_status status = dc_pool_new(&pool, (int)f->threads);
    if (status == DC_OK) status = dc_actor_open(&actor, pick->path, &options, pool);
    if (status == DC_OK) status = dc_world_new(&world, &pick->spec);
    if (status == DC_OK) status = evaluate(world, &actor, f, pool, score);
    dc_world_free(world);
    dc_actor_fini(&actor);
    dc_pool_free(pool);
    return status;
}

dc_status cmd_eval(int argc, char **argv) {
    flags f;
    cli_args args = {.usage = usage, .flags = table, .config = &f, .takes = CLI_JSON | CLI_WORDS};
    DC_TRY(cli_args_parse(&args, argc, argv));
    if (args.help) return DC_OK;
    if (args.word_count != 1) return dc_fail(DC_USAGE, "dcrl eval RUN", "one run folder is needed");
    cli_pick pick;
    dc_eval_score score;
    DC_TRY(cli_run_pick(&pick, args.words[0], f.step));
    cli_catch_signals();
    double start = dc_now();
    DC_TRY(play(&pick, &f, &score));
    if (!tries_other(&f)) DC_TRY(dc_eval_log_put(pick.folder, pick.step, (uint64_t)f.seed, &score));
    print_result(pick.env, pick.spec.task, pick.step, &score, dc_now() - start, args.json);
    return DC_OK;
}
