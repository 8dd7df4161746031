// dcrl bench env: environment steps per second on one core, beside a bare loop of as many mj_step
// calls from the same states with the same actions, and how much of it every further core adds. The
// two loops take turns episode by episode, so that a busy machine slows both alike; the same figures by
// the threads' processor time do not see other processes at all.
#include "args.h"
#include "bench.h"

#include "base/pool.h"
#include "env/sim.h"

#include <stddef.h>
#include <stdio.h>

typedef struct flags {
    int64_t seed, threads;
    double seconds;
} flags;

static const dc_option flag_table[] = {
    DC_OPTION_INT(flags, seed, "0", 0, 9e15, "seed of starts and actions"),
    DC_OPTION_INT(flags, threads, "0", 0, 1024, "of the second measurement; 0: every core"),
    DC_OPTION_REAL(flags, seconds, "2", 0.01, 3600, "time for each environment"),
    {0},
};

static const char usage[] = "usage: dcrl bench env [ENV] [--seconds T] [--threads T] [--json]\n\n"
                            "Steps a second of an environment (of one per family, if none is named) "
                            "under random actions on one core, the same\n"
                            "for a bare loop of MuJoCo's steps, and on all cores.\n\n"
                            "example: dcrl bench env antmaze-medium-v0 --json\n";

enum { EPISODE = 200, ACT_MAX = 32, OBS_MAX = 128, RESULTS_MAX = 8 };

typedef struct result {
    dc_env_spec spec;
    double steps, bare;          // a second, one thread
    double spread, scale;        // a second on all threads; that over threads times one thread's
    double cpu_steps;            // a second of processor time, one thread
    double cpu_ratio, cpu_scale; // steps over bare, and scale, by that time
} result;

typedef struct player { // one thread's work
    const dc_world *world;
    uint64_t seed, episode;
    double own, bare;         // seconds spent
    double own_cpu, bare_cpu; // of them on a processor
    int64_t steps;
    dc_status status;
} player;

static void draw_action(dc_draws *draws, int n, double *action) {
    for (int k = 0; k < n; k++)
        action[k] = draws->uniform(draws->ctx, -1, 1);
}

// An episode in the environment, or the same in bare physics.
static dc_status play(player *p, dc_env *env, bool bare) {
    const dc_env_spec *spec = dc_world_spec(p->world);
    dc_philox_draws state, own;
    double action[ACT_MAX] = {0}, obs[OBS_MAX];
    dc_outcome outcome;
    dc_draws draws = dc_draws_philox(&state, p->seed + 1, p->episode);
    env->draws = dc_draws_philox(&own, p->seed, p->episode);
    DC_TRY(dc_env_reset(env, (int)(p->episode % DC_TASKS) + 1, NULL));
    double start = dc_now(), cpu = dc_now_busy();
    for (int t = 0; t < EPISODE; t++) {
        draw_action(&draws, spec->family->act, action);
        DC_TRY(bare ? dc_env_physics(env, action, 1) : dc_env_step(env, action, obs, &outcome));
    }
    *(bare ? &p->bare : &p->own) += dc_now() - start;
    *(bare ? &p->bare_cpu : &p->own_cpu) += dc_now_busy() - cpu;
    return DC_OK;
}

// Episodes until the time is spent; with `both`, each once more in bare physics.
static dc_status play_for(player *p, double seconds, bool both) {
    dc_env env;
    DC_TRY(dc_env_new(&env, p->world, (dc_draws){0}));
    dc_status status = DC_OK;
    for (double start = dc_now(); status == DC_OK && dc_now() - start < seconds; p->episode++) {
        status = play(p, &env, false);
        if (both && status == DC_OK) status = play(p, &env, true);
        p->steps += EPISODE;
    }
    dc_env_free(&env);
    return status;
}

typedef struct crowd {
    player *players; // (threads)
    double seconds;
} crowd;

static void play_one(void *ctx, int block) {
    crowd *c = ctx;
    c->players[block].status = play_for(&c->players[block], c->seconds, false);
}

static dc_status measure_crowd(const flags *f, const dc_world *world, result *r) {
    enum { MOST = 1024 };
    static player players[MOST];
    dc_pool *pool;
    DC_TRY(dc_pool_new(&pool, (int)f->threads));
    int threads = dc_pool_threads(pool) < MOST ? dc_pool_threads(pool) : MOST;
    for (int t = 0; t < threads; t++)
        players[t] =
            (player){.world = world, .seed = (uint64_t)f->seed, .episode = (uint64_t)t << 32};
    dc_pool_run(pool, play_one, &(crowd){players, f->seconds / 2}, threads);
    dc_pool_free(pool);
    double by_cpu = 0;
    for (int t = 0; t < threads; t++) {
        DC_TRY(players[t].status);
        r->spread += (double)players[t].steps / players[t].own;
        by_cpu += (double)players[t].steps / players[t].own_cpu;
    }
    r->scale = r->spread / (threads * r->steps);
    r->cpu_scale = by_cpu / (threads * r->cpu_steps);
    return DC_OK;
}

static dc_status measure(const flags *f, result *r) {
    dc_world *world;
    DC_TRY(dc_world_new(&world, &r->spec));
    player p = {.world = world, .seed = (uint64_t)f->seed};
    dc_status status = play_for(&p, f->seconds / 2, true);
    r->steps = (double)p.steps / p.own;
    r->bare = (double)p.steps / p.bare;
    r->cpu_ratio = p.bare_cpu / p.own_cpu;
    r->cpu_steps = (double)p.steps / p.own_cpu;
    if (status == DC_OK) status = measure_crowd(f, world, r);
    dc_world_free(world);
    return status;
}

static void print_json(const result *results, int count) {
    printf("{\"bench\": \"env\", \"steps_per_second\": %.0f, \"envs\": [", results[0].steps);
    for (int k = 0; k < count; k++) {
        const result *r = &results[k];
        printf("%s{\"name\": \"%s\", \"steps_per_second\": %.0f, \"bare_steps_per_second\": %.0f, "
               "\"ratio\": %.3f, ",
               k ? ", " : "", r->spec.name, r->steps, r->bare, r->steps / r->bare);
        printf("\"all_threads_steps_per_second\": %.0f, \"scaling\": %.3f, ", r->spread, r->scale);
        printf("\"cpu_ratio\": %.3f, \"cpu_scaling\": %.3f}", r->cpu_ratio, r->cpu_scale);
    }
    puts("]}");
}

// The environment that was named, or the first of each family.
static dc_status choose(const cli_args *args, result *results, int *count) {
    *count = 1;
    if (args->word_count > 1)
        return dc_fail(DC_USAGE, "dcrl bench env [ENV]", "one environment at most");
    if (args->word_count == 1) return dc_env_find(&results[0].spec, args->words[0]);
    dc_env_spec spec;
    *count = 0;
    for (int row = 0; dc_env_row(&spec, row) && *count < RESULTS_MAX; row++)
        if (*count == 0 || spec.family != results[*count - 1].spec.family)
            results[(*count)++].spec = spec;
    return DC_OK;
}

dc_status bench_env(int argc, char **argv) {
    flags f;
    result results[RESULTS_MAX] = {0};
    int count;
    cli_args args = {
        .usage = usage, .flags = flag_table, .config = &f, .takes = CLI_JSON | CLI_WORDS};
    DC_TRY(cli_args_parse(&args, argc, argv));
    if (args.help) return DC_OK;
    DC_TRY(choose(&args, results, &count));
    for (int k = 0; k < count; k++) {
        result *r = &results[k];
        DC_TRY(measure(&f, r));
        if (!args.json)
            printf("%-24s %9.0f steps per second, %5.2f of a bare loop's; all cores %9.0f, %.0f%% of "
                   "perfect scaling\n",
                   r->spec.name, r->steps, r->steps / r->bare, r->spread, 100 * r->scale);
    }
    if (args.json) print_json(results, count);
    return DC_OK;
}
