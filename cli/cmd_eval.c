// dcrl eval: plays the five tasks with a run's policy and prints how often it reaches the goal. The result is
// also a row of RUN/eval.csv, where dcrl report finds it. Of several runs it prints the report's table of
// methods and tasks, from those files.
#include "args.h"
#include "cli.h"
#include "ranks.h"
#include "runs.h"

#include "base/file.h"
#include "report/compare.h"
#include "rollout/eval_log.h"
#include "train/folder.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: dcrl eval RUN... [--step N] [--episodes N] [--seed S] [--samples N] [--flow-steps N] "
    "[--device cpu|cuda] [--threads T] [--json]\n"
    "\n"
    "Plays every task of the run's environment with the policy of a checkpoint, all episodes side "
    "by side, and\n"
    "adds a row to RUN/eval.csv. The same seed gives the same result for any number of threads,\n"
    "and of processes that mpirun or srun starts.\n"
    "A policy that is a flow acts as the run's config says; with --samples or --flow-steps it "
    "tries\n"
    "another way, and no row is added. With --device cuda the policy runs on a GPU and the cores "
    "simulate.\n"
    "Of several runs, or folders of runs, each is played, and then methods and tasks are set side "
    "by "
    "side with\n"
    "published figures: the mean over a run's last three evaluations, and over seeds.\n"
    "\n"
    "example: dcrl eval runs/pointmaze --episodes 15\n"
    "         dcrl eval runs/bc runs/iql runs/hiql\n";

typedef struct flags {
    int64_t step, episodes, seed, samples, flow_steps, threads;
    int device, precision;
} flags;

static const dc_option table[] = {
    DC_OPTION_INT(flags, step, "-1", -1, 1e12, "checkpoint to take; -1: the newest"),
    DC_OPTION_INT(flags, episodes, "15", 1, 10000, "episodes of each task"),
    DC_OPTION_INT(flags, seed, "0", 0, 9e15, "seed of starts, goals and noise"),
    DC_OPTION_INT(
        flags, samples, "0", 0, 4096,
        "flow policies: candidates, of which the best is taken; 0: as the run was configured"),
    DC_OPTION_INT(flags, flow_steps, "0", 0, 1000,
                  "flow policies: Euler steps; 0: as the run was configured"),
    DC_OPTION_CHOICE(flags, device, "cpu", "cpu|cuda", "where the policy runs"),
    DC_OPTION_CHOICE(flags, precision, "fp32", "fp32|tf32", "of a GPU's matrix products"),
    DC_OPTION_INT(flags, threads, "0", 0, 1024, "threads; 0: all cores"),
    {0},
};

static void print_json(const cli_pick *pick, const dc_eval_score *s, double seconds) {
    printf("{\"env\": \"%s\", \"step\": %" PRId64
           ", \"episodes\": %d, \"overall_success\": %.6g, \"task_success\": [",
           pick->env, pick->step, s->episodes * DC_TASKS, s->overall);
    for (int t = 0; t < DC_TASKS; t++)
        printf("%s%.6g", t ? ", " : "", s->task[t]);
    printf("], \"std_over_tasks\": %.6g, \"mean_steps\": ", s->sd);
    if (s->overall > 0)
        printf("%.1f", s->mean_steps);
    else
        printf("null"); // without a success there is no mean
    printf(", \"seconds\": %.2f}", seconds);
}

static void print_result(const cli_pick *pick, const dc_eval_score *s, double seconds) {
    int own = pick->spec.task; // the one task of a single-task form, 0: five
    char steps[32] = "-";
    if (s->overall > 0) snprintf(steps, sizeof steps, "%.0f", s->mean_steps);
    printf("%s at step %" PRId64 ", %d episodes%s, %.1f s\n\n", pick->env, pick->step,
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
    line.quiet = !cli_ranks_leads();
    cli_progress progress;
    dc_eval_progress steps = cli_progress_on(&progress, &line, "evaluating", "steps");
    dc_status status = dc_evaluate_on_ranks(world, actor, (int)f->episodes, (uint64_t)f->seed, pool,
                                            &cli_stop, &steps, cli_ranks, score);
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
    int threads = (int)f->threads ? (int)f->threads : dc_ranks_cores(cli_ranks);
    dc_status status = dc_pool_new(&pool, threads);
    if (status == DC_OK) status = dc_actor_open(&actor, pick->path, &options, pool);
    if (status == DC_OK) status = dc_world_new(&world, &pick->spec);
    if (status == DC_OK) status = evaluate(world, &actor, f, pool, score);
    dc_world_free(world);
    dc_actor_fini(&actor);
    dc_pool_free(pool);
    return status;
}

typedef struct played {
    cli_pick pick;
    dc_eval_score score;
    double seconds;
    dc_status kept; // what was played is shown even if it cannot be kept
} played;

// Play a run's checkpoint, and put the score into its eval.csv if it acted as its config says.
static dc_status play_run(const char *folder, const flags *f, played *out) {
    double start = dc_now();
    DC_TRY(cli_run_pick(&out->pick, folder, f->step));
    if (!tries_other(f)) DC_TRY(dc_eval_log_check(out->pick.folder));
    DC_TRY(play(&out->pick, f, &out->score));
    bool keep = !tries_other(f) && cli_ranks_leads();
    out->kept = keep ? dc_eval_log_put(out->pick.folder, out->pick.step, (uint64_t)f->seed,
                                       &out->score, &cli_stop)
                     : DC_OK;
    cli_ranks_wait(); // the file is there for all
    out->seconds = dc_now() - start;
    return DC_OK;
}

static dc_status eval_one(const char *folder, const flags *f, bool json) {
    played p;
    DC_TRY(play_run(folder, f, &p));
    (json ? print_json : print_result)(&p.pick, &p.score, p.seconds);
    if (json) printf("\n");
    return p.kept;
}

// --- several runs ---

static dc_status play_all(const dc_runs *runs, const flags *f, bool json) {
    played p;
    for (int i = 0; i < runs->count;
         i++) // what is wrong with the last shows before the first plays
        DC_TRY(cli_run_pick(&p.pick, runs->runs[i].folder, f->step));
    for (int i = 0; i < runs->count; i++) {
        DC_TRY(play_run(runs->runs[i].folder, f, &p));
        if (json) {
            printf("%s", i ? ",\n  " : "{\"runs\": [");
            print_json(&p.pick, &p.score, p.seconds);
        } else {
            printf("%s at step %" PRId64 ": %.1f %%, %.1f s\n", p.pick.folder, p.pick.step,
                   100 * p.score.overall, p.seconds);
            fflush(stdout);
        }
        DC_TRY(p.kept);
    }
    printf(json ? "],\n \"table\": " : "\n");
    return DC_OK;
}

static dc_status compare(const dc_runs *runs, bool json) {
    dc_table scores;
    dc_compare pairs;
    dc_arena arena;
    dc_text out;
    dc_arena_init(&arena, 0);
    dc_text_init(&out);
    dc_status status = dc_table_build(&scores, runs, false, &arena);
    if (status == DC_OK) status = dc_compare_build(&pairs, &scores, &arena);
    if (status == DC_OK) (json ? dc_compare_json : dc_compare_text)(&pairs, &out);
    if (status == DC_OK) status = dc_text_status(&out);
    if (status == DC_OK) printf("%s%s", out.bytes, json ? "}\n" : "");
    dc_text_fini(&out);
    dc_arena_fini(&arena);
    return status;
}

static dc_status eval_many(const dc_runs *runs, const cli_args *args, const flags *f) {
    dc_runs after;
    if (tries_other(f))
        return dc_fail(DC_USAGE, "name one run",
                       "--samples and --flow-steps leave no row to compare %d runs by",
                       runs->count);
    DC_TRY(play_all(runs, f, args->json));
    DC_TRY(dc_runs_read(&after, (const char *const *)args->words, args->word_count));
    dc_status status = compare(&after, args->json);
    dc_runs_fini(&after);
    return status;
}

// Whether the words name one run by itself.
static dc_status names_one(const cli_args *args, bool *one) {
    char config[DC_PATH_MAX];
    *one = false;
    if (args->word_count != 1) return DC_OK;
    DC_TRY(dc_folder_path(config, args->words[0], "config.json"));
    return dc_file_find(config, one);
}

dc_status cmd_eval(int argc, char **argv) {
    flags f;
    dc_runs runs;
    cli_args args = {.usage = usage, .flags = table, .config = &f, .takes = CLI_JSON | CLI_WORDS};
    DC_TRY(cli_ranks_join());
    DC_TRY(cli_args_parse(&args, argc, argv));
    if (args.help) return DC_OK;
    if (!args.word_count) return dc_fail(DC_USAGE, "dcrl eval RUN...", "a run folder is needed");
    cli_catch_signals();
    bool one;
    DC_TRY(names_one(&args, &one));
    if (one) return eval_one(args.words[0], &f, args.json);
    DC_TRY(dc_runs_read(&runs, (const char *const *)args.words, args.word_count));
    dc_status status = runs.count == 1 ? eval_one(runs.runs[0].folder, &f, args.json)
                                       : eval_many(&runs, &args, &f);
    dc_runs_fini(&runs);
    return status;
}
