// dcrl eval: plays the five tasks with a run's policy and tells how often it reaches the goal. The result is
// also a row of RUN/eval.csv, where dcrl report finds it.
#include "args.h"
#include "cli.h"
#include "runs.h"

#include "rollout/eval_log.h"
#include "train/folder.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: dcrl eval RUN [--step N] [--episodes N] [--seed S] [--threads T] [--json]\n"
    "\n"
    "Plays every task of the run's environment with the policy of a checkpoint, all episodes side "
    "by side, and\n"
    "adds a row to RUN/eval.csv. The same seed gives the same result for any number of threads.\n"
    "\n"
    "example: dcrl eval runs/pointmaze --episodes 15\n";

typedef struct flags {
    int64_t step, episodes, seed, threads;
} flags;

static const dc_option table[] = {
    {"step", DC_INT, offsetof(flags, step), "-1", -1, 1e12, NULL,
     "checkpoint to take; -1: the newest"},
    {"episodes", DC_INT, offsetof(flags, episodes), "15", 1, 10000, NULL, "episodes of each task"},
    {"seed", DC_INT, offsetof(flags, seed), "0", 0, 9e15, NULL, "of starts, goals and noise"},
    {"threads", DC_INT, offsetof(flags, threads), "0", 0, 1024, NULL, "threads; 0: all cores"},
    {0},
};

// The environment that a run's config names.
static dc_status read_env(const char *folder, char env[DC_TEXT_MAX]) {
    dc_arena arena;
    dc_arena_init(&arena, 0);
    const dc_json *config;
    dc_status status = dc_run_read_config(folder, &arena, &config);
    const dc_json *name = status == DC_OK ? dc_json_get(config, "env") : NULL;
    if (status == DC_OK && (!name || name->kind != DC_JSON_STRING || !name->text_length ||
                            name->text_length >= DC_TEXT_MAX))
        status = dc_fail(DC_BAD_INPUT, "train with --env", "%s names no environment", folder);
    if (status == DC_OK) snprintf(env, DC_TEXT_MAX, "%s", name->text);
    dc_arena_fini(&arena);
    return status;
}

static dc_status find_step(const char *folder, int64_t *step) {
    int64_t *steps;
    int count;
    DC_TRY(dc_folder_checkpoints(folder, &steps, &count));
    bool found = false;
    for (int i = 0; i < count && !found; i++)
        found = *step < 0 || steps[i] == *step;
    if (found && *step < 0) *step = steps[0];
    free(steps);
    if (found) return DC_OK;
    if (*step < 0) return dc_fail(DC_BAD_INPUT, "train first", "%s has no checkpoint", folder);
    return dc_fail(DC_USAGE, "ls shows the steps that are kept",
                   "%s has no checkpoint of step %" PRId64, folder, *step);
}

static void tell(const char *env, int64_t step, const dc_eval_score *s, double seconds, bool json) {
    if (json) {
        printf("{\"env\": \"%s\", \"step\": %" PRId64
               ", \"episodes\": %d, \"overall_success\": %.6g, \"task_success\": [",
               env, step, s->episodes * DC_TASKS, s->overall);
        for (int t = 0; t < DC_TASKS; t++)
            printf("%s%.6g", t ? ", " : "", s->task[t]);
        printf("], \"std_over_tasks\": %.6g, \"mean_steps\": %.1f, \"seconds\": %.2f}\n", s->sd,
               s->mean_steps, seconds);
        return;
    }
    printf("%s at step %" PRId64 ", %d episodes a task, %.1f s\n\n", env, step, s->episodes,
           seconds);
    for (int t = 0; t < DC_TASKS; t++)
        printf("  task %d   %5.1f %%\n", t + 1, 100 * s->task[t]);
    printf("  overall  %5.1f %% (+- %.1f over tasks), %.0f steps to a goal on average\n",
           100 * s->overall, 100 * s->sd, s->mean_steps);
}

static dc_status play(const char *folder, const char *env, int64_t step, const flags *f,
                      dc_eval_score *score) {
    dc_env_spec spec;
    DC_TRY(dc_env_find(&spec, env));
    char path[DC_PATH_MAX];
    DC_TRY(dc_folder_checkpoint(path, folder, step));
    dc_pool *pool = NULL;
    dc_world *world = NULL;
    dc_actor actor = {0};
    dc_status status = dc_pool_new(&pool, (int)f->threads);
    if (status == DC_OK) status = dc_actor_open(&actor, path, (int)f->episodes * DC_TASKS, pool);
    if (status == DC_OK) status = dc_world_new(&world, &spec);
    if (status == DC_OK)
        status =
            dc_evaluate(world, &actor, (int)f->episodes, (uint64_t)f->seed, pool, &cli_stop, score);
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
    const char *folder = args.words[0];
    char env[DC_TEXT_MAX];
    dc_eval_score score;
    int64_t step = f.step;
    DC_TRY(read_env(folder, env));
    DC_TRY(find_step(folder, &step));
    cli_catch_signals();
    double start = dc_now();
    DC_TRY(play(folder, env, step, &f, &score));
    DC_TRY(dc_eval_log_put(folder, step, (uint64_t)f.seed, &score));
    tell(env, step, &score, dc_now() - start, args.json);
    return DC_OK;
}
