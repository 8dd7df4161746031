// dcrl bench gen: rows per second of data generation, in memory, on one thread and on all. What `dcrl gen` adds to it is
// compression by one thread beside the others.
//
// Of slow sets also what the script costs (an arm's oracles), alone and many times over, beside the rows of an episode;
// both by processor time, which does not see other processes.
#include "args.h"
#include "bench.h"

#include "base/clock.h"
#include "env/gen.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct flags {
    int64_t seed, threads;
    double seconds;
    char expert[DC_TEXT_MAX], ball_expert[DC_TEXT_MAX];
} flags;

static const dc_option flag_table[] = {
    DC_OPTION_INT(flags, seed, "0", 0, 9e15, "seed of all draws"),
    DC_OPTION_INT(flags, threads, "0", 0, 1024, "of the second measurement; 0: every core"),
    DC_OPTION_REAL(flags, seconds, "2", 0.01, 3600, "time to measure for"),
    DC_OPTION_TEXT(flags, expert, "", "that walks, of ants and humanoids, as for dcrl gen"),
    DC_OPTION_TEXT(flags, ball_expert, "", "that dribbles, of antsoccer"),
    {0},
};

static const char usage[] =
    "usage: dcrl bench gen [ENV] [--seconds T] [--threads T] [--expert FILE] [--ball-expert FILE] "
    "[--json]\n\n"
    "Rows per second of generated data (pointmaze-medium-navigate-v0 if none "
    "is named), without writing them.\n\n"
    "example: dcrl bench gen pointmaze-giant-stitch-v0 --json\n";

enum { EPISODES = 32 };

static dc_status measure(const dc_gen *gen, const dc_gen_rows *rows, int threads, double seconds,
                         double *per_second) {
    dc_pool *pool;
    DC_TRY(dc_pool_new(&pool, threads));
    dc_status status = DC_OK;
    double start = dc_now(), spent = 0;
    int64_t first = 0, batch = 2 * dc_pool_threads(pool); // a slow episode takes a second or two
    if (batch > EPISODES || !dc_gen_is_slow(dc_world_spec(gen->world)->family)) batch = EPISODES;
    for (; status == DC_OK && spent < seconds; first += batch) {
        status = dc_gen_play(gen, first, batch, rows, pool);
        spent = dc_now() - start;
    }
    *per_second = (double)(first * gen->rows) / spent;
    dc_pool_free(pool);
    return status;
}

// Room for the rows of EPISODES episodes in one piece.
static dc_status take_rows(const dc_gen *gen, void **whole, dc_gen_rows *rows) {
    const dc_env_spec *spec = dc_world_spec(gen->world);
    const dc_env_family *f = spec->family;
    size_t n = (size_t)(EPISODES * gen->rows);
    int64_t *p = *whole = calloc(n, dc_gen_row_bytes(spec));
    if (!p) return dc_fail(DC_NO_MEMORY, NULL, "no memory for %zu rows", n);
    *rows = (dc_gen_rows){.extra = p, .act = (float *)(p + n * (size_t)f->extra)};
    rows->qpos = rows->act + n * (size_t)f->act;
    rows->qvel = rows->qpos + n * (size_t)f->nq;
    float *end = rows->qvel + n * (size_t)f->nv;
    rows->obs = spec->visual ? NULL : end;
    rows->terminals = (uint8_t *)(end + (spec->visual ? 0 : n * (size_t)f->obs));
    rows->pictures = spec->visual ? rows->terminals + n : NULL;
    return DC_OK;
}

// ---- what is not simulation ----

typedef struct cost { // of a slow set
    double row;       // seconds of processor time
    double part;      // the script's time as a part of simulation's
} cost;

static dc_status measure_cost(const dc_gen *gen, const dc_gen_rows *rows, cost *out) {
    dc_philox_draws state;
    dc_env env;
    double own = 0;
    double start = dc_now_busy();
    DC_TRY(dc_gen_play(gen, 0, 1, rows, NULL));
    out->row = (dc_now_busy() - start) / (double)gen->rows;
    DC_TRY(dc_env_new(&env, gen->world, dc_draws_philox(&state, gen->seed, 0)));
    dc_status status = dc_gen_time_script(gen, &env, &own);
    out->part = own / (out->row - own);
    dc_env_free(&env);
    return status;
}

static dc_status measure_all(const flags *f, const dc_gen *gen, double speed[2], cost *own) {
    const dc_env_family *family = dc_world_spec(gen->world)->family;
    dc_gen_rows rows;
    void *whole = NULL;
    dc_status status = take_rows(gen, &whole, &rows);
    if (status == DC_OK) status = measure(gen, &rows, 1, f->seconds / 2, &speed[0]);
    if (status == DC_OK) status = measure(gen, &rows, (int)f->threads, f->seconds / 2, &speed[1]);
    if (status == DC_OK && dc_gen_is_slow(family)) status = measure_cost(gen, &rows, own);
    free(whole);
    return status;
}

static dc_status run(const flags *f, dc_env_spec *spec, double speed[2], cost *own) {
    dc_gen gen;
    int64_t episodes;
    dc_gen_experts experts;
    dc_world *world = NULL;
    DC_TRY(dc_gen_init(&gen, spec, spec->data, &episodes));
    spec->data = gen.kind; // if the name had no word of it
    DC_TRY(dc_gen_experts_open(&experts, spec,
                               (const char *const[DC_GEN_EXPERTS]){f->expert, f->ball_expert}));
    dc_status status = dc_world_new(&world, spec);
    gen.world = world;
    gen.seed = (uint64_t)f->seed;
    gen.experts = &experts;
    if (status == DC_OK) status = measure_all(f, &gen, speed, own);
    dc_world_free(world);
    dc_gen_experts_close(&experts);
    return status;
}

dc_status bench_gen(int argc, char **argv) {
    flags f;
    dc_env_spec spec;
    double speed[2];
    cost own = {0};
    cli_args args = {
        .usage = usage, .flags = flag_table, .config = &f, .takes = CLI_JSON | CLI_WORDS};
    DC_TRY(cli_args_parse(&args, argc, argv));
    if (args.help) return DC_OK;
    if (args.word_count > 1)
        return dc_fail(DC_USAGE, "dcrl bench gen [ENV]", "one environment at most");
    DC_TRY(dc_env_find(&spec, args.word_count ? args.words[0] : "pointmaze-medium-navigate-v0"));
    DC_TRY(run(&f, &spec, speed, &own));
    char name[DC_ENV_NAME_MAX];
    dc_env_data_name(&spec, spec.data, false, name);
    if (args.json)
        printf("{\"bench\": \"gen\", \"env\": \"%s\", \"rows_per_second\": %.0f, "
               "\"all_threads_rows_per_second\": %.0f, \"cpu_us_a_row\": %.0f, \"oracle_share\": "
               "%.5f}\n",
               name, speed[0], speed[1], 1e6 * own.row, own.part);
    else
        printf("%s: %.0f rows per second on one thread, %.0f on all\n", name, speed[0], speed[1]);
    if (!args.json && own.row > 0)
        printf("a row takes %.0f us of processor time; the script takes %.3f %% of simulation's\n",
               1e6 * own.row, 100 * own.part);
    return DC_OK;
}
