// What do the tables with an arm cost? One JSON line, for each environment (or those named):
//
//   steps_per_second     environment steps on one core
//   of_bare              that over a bare loop of MuJoCo's steps with the same controls from the same state
//   scaling              steps of a thread when two play side by side, over those of one alone
//   mb_per_env           resident memory of each further environment of the kind, played
//
// The machine may be busy: all sides play the same episodes in turns, several times, and of each episode
// the least time counts; figures that end in _cpu take the threads' processor time, the others wall time.
#include "base/clock.h"
#include "base/pool.h"
#include "env/sim.h"

#include <malloc.h>
#include <mujoco/mujoco.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { EPISODES = 5, STEPS = 40, ROUNDS = 6, ACT = 5, CONTROLS = 7, OBS_MAX = 128, MORE = 32 };
typedef enum side { OWN, BARE, PAIR, SIDES } side;
enum { WALL, CPU, CLOCKS };

typedef struct bench {
    dc_world *world;
    double controls[EPISODES][STEPS][CONTROLS]; // of the environment's own steps
    double best[SIDES][EPISODES][CLOCKS];       // seconds
} bench;

typedef struct player { // a thread
    bench *b;
    dc_env env;
    side side;
    int episode;
    double spent[CLOCKS];
    dc_status status;
} player;

static dc_status step(player *p, dc_draws *draws, int t) {
    double action[ACT], obs[OBS_MAX], *kept = p->b->controls[p->episode][t];
    size_t bytes = sizeof p->b->controls[0][0];
    dc_outcome outcome;
    for (int k = 0; k < ACT; k++)
        action[k] = draws->uniform(draws->ctx, -1, 1);
    if (p->side == BARE) {
        memcpy(p->env.data->ctrl, kept, bytes);
        return dc_env_physics(&p->env, NULL, 1);
    }
    DC_TRY(dc_env_step(&p->env, action, obs, &outcome));
    if (p->side == OWN) memcpy(kept, p->env.data->ctrl, bytes);
    return DC_OK;
}

static dc_status play(player *p) {
    dc_philox_draws state, own;
    dc_draws draws = dc_draws_philox(&state, 1, (uint64_t)p->episode);
    p->env.draws = dc_draws_philox(&own, 0, (uint64_t)p->episode);
    DC_TRY(dc_env_reset(&p->env, p->episode % DC_TASKS + 1, NULL));
    double wall = dc_now(), cpu = dc_now_busy();
    for (int t = 0; t < STEPS; t++)
        DC_TRY(step(p, &draws, t));
    p->spent[WALL] = dc_now() - wall;
    p->spent[CPU] = dc_now_busy() - cpu;
    return DC_OK;
}

static void play_block(void *ctx, int block) {
    player *p = (player *)ctx + block;
    p->status = play(p);
}

// An episode on one thread, or on two at once; the slower one's wall time counts.
static dc_status play_side(bench *b, player players[2], dc_pool *pool, side s, int episode) {
    int count = s == PAIR ? 2 : 1;
    for (int k = 0; k < count; k++) {
        players[k].side = s;
        players[k].episode = episode;
    }
    dc_pool_run(pool, play_block, players, count);
    for (int k = 0; k < count; k++)
        DC_TRY(players[k].status);
    for (int c = 0; c < CLOCKS; c++) {
        double spent = players[0].spent[c];
        if (s == PAIR && players[1].spent[c] > spent) spent = players[1].spent[c];
        double *best = &b->best[s][episode][c];
        if (*best == 0 || spent < *best) *best = spent;
    }
    return DC_OK;
}

static dc_status play_all(bench *b, dc_pool *pool) {
    player players[2] = {{.b = b}, {.b = b}};
    dc_status status = dc_env_new(&players[0].env, b->world, (dc_draws){0});
    if (status == DC_OK) status = dc_env_new(&players[1].env, b->world, (dc_draws){0});
    for (int k = 0; k < ROUNDS * EPISODES * SIDES && status == DC_OK; k++)
        status = play_side(b, players, pool, (side)(k % SIDES), k / SIDES % EPISODES);
    dc_env_free(&players[0].env);
    dc_env_free(&players[1].env);
    return status;
}

static double total(const bench *b, side s, int clock) {
    double sum = 0;
    for (int e = 0; e < EPISODES; e++)
        sum += b->best[s][e][clock];
    return sum;
}

static double resident_mb(void) {
    long size = 0, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%ld %ld", &size, &pages) != 2) pages = 0;
    if (file) fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1e6;
}

// Memory of further environments, after one has been played.
static dc_status weigh(bench *b, double *mb) {
    player players[MORE + 1] = {0};
    double before = 0;
    dc_status status = DC_OK;
    for (int k = 0; k <= MORE && status == DC_OK; k++) {
        players[k] = (player){.b = b, .episode = k % EPISODES};
        status = dc_env_new(&players[k].env, b->world, (dc_draws){0});
        if (status == DC_OK) status = play(&players[k]);
        if (k == 0) { // what compiling the model left behind must not be taken for room
            malloc_trim(0);
            before = resident_mb();
        }
    }
    *mb = (resident_mb() - before) / MORE;
    for (int k = 0; k <= MORE; k++)
        dc_env_free(&players[k].env);
    return status;
}

static dc_status measure(const dc_env_spec *spec, dc_pool *pool, bool first) {
    static bench b;
    double mb = 0;
    memset(&b, 0, sizeof b);
    DC_TRY(dc_world_new(&b.world, spec));
    dc_status status = weigh(&b, &mb);
    if (status == DC_OK) status = play_all(&b, pool);
    dc_world_free(b.world);
    DC_TRY(status);
    double steps = EPISODES * STEPS, own = total(&b, OWN, WALL), own_cpu = total(&b, OWN, CPU);
    printf("%s{\"name\": \"%s\", \"steps_per_second\": %.0f, \"steps_per_second_cpu\": %.0f, ",
           first ? "" : ", ", spec->name, steps / own, steps / own_cpu);
    printf("\"of_bare\": %.3f, \"of_bare_cpu\": %.3f, ", total(&b, BARE, WALL) / own,
           total(&b, BARE, CPU) / own_cpu);
    printf("\"scaling\": %.3f, \"scaling_cpu\": %.3f, ", own / total(&b, PAIR, WALL),
           own_cpu / total(&b, PAIR, CPU));
    printf("\"mb_per_env\": %.2f}", mb);
    fflush(stdout);
    return DC_OK;
}

static dc_status run(int argc, char **argv) {
    dc_pool *pool;
    dc_env_spec spec;
    DC_TRY(dc_pool_new(&pool, 2));
    dc_status status = DC_OK;
    bool first = true;
    printf("{\"bench\": \"arm\", \"envs\": [");
    for (int k = 1; k < argc && status == DC_OK; k++, first = false) {
        status = dc_env_find(&spec, argv[k]);
        if (status == DC_OK) status = measure(&spec, pool, first);
    }
    for (int row = 0; argc < 2 && dc_env_row(&spec, row) && status == DC_OK; row++) {
        if (spec.maze) continue;
        status = measure(&spec, pool, first);
        first = false;
    }
    puts("]}");
    dc_pool_free(pool);
    return status;
}

int main(int argc, char **argv) {
    if (run(argc, argv) == DC_OK) return 0;
    fprintf(stderr, "%s\n", dc_error());
    return 1;
}
