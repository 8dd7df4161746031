// dcrl eval: plays the five tasks with a run's policy and tells how often it reaches the goal. The result is
// also a row of RUN/eval.csv, where dcrl report finds it.
#include "args.h"
#include "cli.h"
#include "runs.h"

#include "base/file.h"
#include "rollout/eval.h"
#include "train/folder.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: dcrl eval RUN [--step N] [--episodes N] [--seed S] [--samples N] [--flow-steps N] "
    "[--threads T] [--json]\n"
    "\n"
    "Plays every task of the run's environment with the policy of a checkpoint, all episodes side "
    "by side, and\n"
    "adds a row to RUN/eval.csv. The same seed gives the same result for any number of threads.\n"
    "A policy of kind rejection acts as the run's config says; with --samples or --flow-steps it "
    "tries\n"
    "another way, and no row is added.\n"
    "\n"
    "example: dcrl eval runs/pointmaze --episodes 15\n";

typedef struct flags {
    int64_t step, episodes, seed, samples, flow_steps, threads;
} flags;

static const dc_option table[] = {
    {"step", DC_INT, offsetof(flags, step), "-1", -1, 1e12, NULL,
     "checkpoint to take; -1: the newest"},
    {"episodes", DC_INT, offsetof(flags, episodes), "15", 1, 10000, NULL, "episodes of each task"},
    {"seed", DC_INT, offsetof(flags, seed), "0", 0, 9e15, NULL, "of starts, goals and noise"},
    {"samples", DC_INT, offsetof(flags, samples), "0", 0, 4096, NULL,
     "policy=rejection: candidates; 0: as the run was configured"},
    {"flow_steps", DC_INT, offsetof(flags, flow_steps), "0", 0, 1000, NULL,
     "policy=rejection: Euler steps; 0: as the run was configured"},
    {"threads", DC_INT, offsetof(flags, threads), "0", 0, 1024, NULL, "threads; 0: all cores"},
    {0},
};

// What a run's config says of playing: the environment, and how the policy acts.
typedef struct setting {
    char env[DC_TEXT_MAX];
    dc_policy policy;
} setting;

static const dc_option setting_table[] = {
    {"env", DC_TEXT, offsetof(setting, env), "", 0, 0, NULL, ""}, DC_POLICY_ACTING(setting), {0}};

static dc_status read_known(const dc_json *config, setting *out) {
    for (const dc_json *m = config->child; m; m = m->next) {
        dc_json member = *m, alone = {.kind = DC_JSON_OBJECT, .child = &member, .count = 1};
        member.next = NULL;
        if (dc_options_find(setting_table, m->key))
            DC_TRY(dc_options_read(setting_table, out, &alone));
    }
    return DC_OK;
}

static dc_status read_setting(const char *folder, setting *out) {
    dc_arena arena;
    dc_arena_init(&arena, 0);
    dc_options_init(setting_table, out);
    const dc_json *config;
    dc_status status = dc_run_read_config(folder, &arena, &config);
    if (status == DC_OK && config->kind != DC_JSON_OBJECT)
        status = dc_fail(DC_BAD_INPUT, NULL, "%s/config.json is not a JSON object", folder);
    if (status == DC_OK) status = read_known(config, out);
    if (status == DC_OK && !*out->env)
        status = dc_fail(DC_BAD_INPUT, "train with --env", "%s names no environment", folder);
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

// Rewrite eval.csv with this row in its place, so that steps rise and a repeated call changes nothing.
static dc_status write_row(const char *folder, int64_t step, uint64_t seed,
                           const dc_eval_score *s) {
    char path[DC_PATH_MAX], *old = NULL;
    size_t n = 0;
    dc_text out;
    DC_TRY(dc_folder_path(path, folder, "eval.csv"));
    if (dc_file_exists(path)) DC_TRY(dc_file_read(path, 1 << 26, &old, &n));
    dc_text_init(&out);
    dc_text_add(&out, "step,overall_success,task1_success,task2_success,task3_success,task4_"
                      "success,task5_success,"
                      "episodes,seed\n");
    bool placed = false;
    char *line = old ? strchr(old, '\n') : NULL;
    for (line = line ? line + 1 : NULL; !placed || (line && *line);) {
        char *end = line && *line ? strchr(line, '\n') : NULL;
        int64_t at = end ? strtoll(line, NULL, 10) : INT64_MAX;
        if (!placed && at >= step) {
            placed = true;
            dc_text_add(&out, "%" PRId64 ",%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%d,%" PRIu64 "\n", step,
                        s->overall, s->task[0], s->task[1], s->task[2], s->task[3], s->task[4],
                        s->episodes * DC_TASKS, seed);
        }
        if (!end) break;
        if (at != step) dc_text_bytes(&out, line, (size_t)(end + 1 - line));
        line = end + 1;
    }
    dc_status status = dc_text_status(&out);
    if (status == DC_OK) status = dc_file_write(path, out.bytes, out.used);
    dc_text_fini(&out);
    free(old);
    return status;
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

static bool tries_other(const flags *f) {
    return f->samples || f->flow_steps;
}

static dc_status play(const char *folder, const setting *set, int64_t step, const flags *f,
                      dc_eval_score *score) {
    dc_env_spec spec;
    DC_TRY(dc_env_find(&spec, set->env));
    const dc_policy *policy = &set->policy;
    if (tries_other(f) && policy->kind != DC_POLICY_REJECTION)
        return dc_fail(DC_USAGE, "leave them out",
                       "--samples and --flow-steps are for runs with policy=rejection");
    dc_actor_options options = {.kind = policy->kind,
                                .samples = (int)(f->samples ? f->samples : policy->samples),
                                .flow_steps =
                                    (int)(f->flow_steps ? f->flow_steps : policy->flow_steps),
                                .rows = (int)f->episodes * DC_TASKS,
                                .seed = (uint64_t)f->seed};
    char path[DC_PATH_MAX];
    DC_TRY(dc_folder_checkpoint(path, folder, step));
    dc_pool *pool = NULL;
    dc_world *world = NULL;
    dc_actor actor = {0};
    dc_status status = dc_pool_new(&pool, (int)f->threads);
    if (status == DC_OK) status = dc_actor_open(&actor, path, &options, pool);
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
    setting set;
    dc_eval_score score;
    int64_t step = f.step;
    DC_TRY(read_setting(folder, &set));
    DC_TRY(find_step(folder, &step));
    cli_catch_signals();
    double start = dc_now();
    DC_TRY(play(folder, &set, step, &f, &score));
    if (!tries_other(&f)) DC_TRY(write_row(folder, step, (uint64_t)f.seed, &score));
    tell(set.env, step, &score, dc_now() - start, args.json);
    return DC_OK;
}
