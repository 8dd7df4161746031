// dcrl bench env: environment steps per second on one core, beside a bare loop of as many mj_step
// calls from the same states with the same actions, and what each of several threads does beside
// others (--threads 1,2,4,8,16). The two loops take turns episode by episode, so that a busy machine
// slows both alike; the same figures by the threads' processor time do not see other processes at all.
//
// What threads lose has causes that the figures tell apart. Beside steps every thread runs a chain of multiplications,
// each of which waits for the one before: it needs neither memory nor much of a core, so it is as fast beside a
// hyper-thread as alone, and loses only what the clock loses. What steps lose more than that, by processor time, is
// what threads share: a core's units where two of them run on one, caches and memory.
#include "args.h"
#include "bench.h"

#include "base/pool.h"
#include "env/sim.h"

#include <stddef.h>
#include <stdio.h>

typedef struct flags {
    int64_t seed;
    dc_int_list threads;
    double seconds;
} flags;

static const dc_option flag_table[] = {
    DC_OPTION_INT(flags, seed, "0", 0, 9e15, "seed of starts and actions"),
    DC_OPTION_LIST(flags, threads, "0", 0, 1024,
                   "of the second measurement, or several such; 0: every core"),
    DC_OPTION_REAL(flags, seconds, "2", 0.01, 3600, "time for each environment"),
    {0},
};

static const char usage[] =
    "usage: dcrl bench env [ENV] [--seconds T] [--threads T,...] [--json]\n\n"
    "Steps per second of an environment (of one per family, if none is named) "
    "under random actions on one core, the same\n"
    "for a bare loop of MuJoCo's steps, and on all cores, or for each number of threads.\n\n"
    "example: dcrl bench env antmaze-medium-v0 --json\n"
    "         dcrl bench env puzzle-4x5 --threads 1,2,4,8,16 --seconds 20\n";

enum { CHAIN = 1 << 16, EPISODE = 200, ACT_MAX = 32, OBS_MAX = 128, RESULTS_MAX = 8 };

typedef struct crowd_result {
    int threads;
    double steps, scale; // a second on all threads; that over threads times one thread's
    double cpu_scale;    // by processor time
    double clock;        // of a chain of multiplications, by that time: over one thread's
} crowd_result;

typedef struct result {
    dc_env_spec spec;
    double steps, bare; // per second, one thread
    double cpu_steps;   // per second of processor time, one thread
    double cpu_ratio;   // steps over bare, by that time
    double chains;      // per second of that time, one thread
    int crowds;
    crowd_result crowd[DC_LIST_MAX];
} result;

typedef struct player { // one thread's work
    const dc_world *world;
    uint64_t seed, episode;
    double own, bare;         // seconds spent
    double own_cpu, bare_cpu; // of them on a processor
    double chain_cpu;         // for chains
    int64_t steps, chains;
    dc_status status;
} player;

// Multiplications in a row, each of which needs the one before.
static void run_chain(player *p) {
    double start = dc_now_busy();
    volatile uint64_t from = 3;
    uint64_t x = from;
    for (int k = 0; k < CHAIN; k++)
        x *= x;
    from = x;
    p->chain_cpu += dc_now_busy() - start;
    p->chains++;
}

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
        run_chain(p);
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

static dc_status measure_crowd(const flags *f, const dc_world *world, int64_t asked, result *r) {
    enum { MOST = 1024 };
    static player players[MOST];
    dc_pool *pool;
    DC_TRY(dc_pool_new(&pool, (int)asked));
    int threads = dc_pool_threads(pool) < MOST ? dc_pool_threads(pool) : MOST;
    for (int t = 0; t < threads; t++)
        players[t] =
            (player){.world = world, .seed = (uint64_t)f->seed, .episode = (uint64_t)t << 32};
    dc_pool_run(pool, play_one, &(crowd){players, f->seconds / 2}, threads);
    dc_pool_free(pool);
    crowd_result *c = &r->crowd[r->crowds++];
    double by_cpu = 0, chains = 0;
    *c = (crowd_result){.threads = threads};
    for (int t = 0; t < threads; t++) {
        DC_TRY(players[t].status);
        c->steps += (double)players[t].steps / players[t].own;
        by_cpu += (double)players[t].steps / players[t].own_cpu;
        chains += (double)players[t].chains / players[t].chain_cpu;
    }
    c->scale = c->steps / (threads * r->steps);
    c->cpu_scale = by_cpu / (threads * r->cpu_steps);
    c->clock = chains / (threads * r->chains);
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
    r->chains = (double)p.chains / p.chain_cpu;
    for (int k = 0; status == DC_OK && k < f->threads.count; k++)
        status = measure_crowd(f, world, f->threads.v[k], r);
    dc_world_free(world);
    return status;
}

// Members of the last crowd as they always were, then all crowds.
static void print_crowds(const result *r) {
    const crowd_result *last = &r->crowd[r->crowds - 1];
    printf("\"all_threads_steps_per_second\": %.0f, \"scaling\": %.3f, ", last->steps, last->scale);
    printf("\"cpu_ratio\": %.3f, \"cpu_scaling\": %.3f, \"crowds\": [", r->cpu_ratio,
           last->cpu_scale);
    for (int k = 0; k < r->crowds; k++) {
        const crowd_result *c = &r->crowd[k];
        printf("%s{\"threads\": %d, \"steps_per_second\": %.0f, \"scaling\": %.3f, "
               "\"cpu_scaling\": %.3f, \"clock\": %.3f}",
               k ? ", " : "", c->threads, c->steps, c->scale, c->cpu_scale, c->clock);
    }
    printf("]}");
}

static void print_json(const result *results, int count) {
    printf("{\"bench\": \"env\", \"steps_per_second\": %.0f, \"envs\": [", results[0].steps);
    for (int k = 0; k < count; k++) {
        const result *r = &results[k];
        printf("%s{\"name\": \"%s\", \"steps_per_second\": %.0f, \"bare_steps_per_second\": %.0f, "
               "\"ratio\": %.3f, ",
               k ? ", " : "", r->spec.name, r->steps, r->bare, r->steps / r->bare);
        print_crowds(r);
    }
    puts("]}");
}

static void print_text(const result *r) {
    printf("%-24s %9.0f steps per second, %5.2f of a bare loop's", r->spec.name, r->steps,
           r->steps / r->bare);
    if (r->crowds == 1) {
        const crowd_result *c = &r->crowd[0];
        printf("; on %d thread%s %9.0f, %.0f%% of perfect scaling\n", c->threads,
               c->threads > 1 ? "s" : "", c->steps, 100 * c->scale);
        return;
    }
    printf("\n  threads   steps/s  a thread   of one's: wall  processor time  clock\n");
    for (int k = 0; k < r->crowds; k++) {
        const crowd_result *c = &r->crowd[k];
        printf("  %7d %9.0f %9.0f %15.2f %15.2f %6.2f\n", c->threads, c->steps,
               c->steps / c->threads, c->scale, c->cpu_scale, c->clock);
    }
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
        DC_TRY(measure(&f, &results[k]));
        if (!args.json) print_text(&results[k]);
    }
    if (args.json) print_json(results, count);
    return DC_OK;
}
