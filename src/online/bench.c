// How fast robots act, see bench.h.
#include "online/bench.h"

#include "base/clock.h"
#include "online/learner.h"

#include <stdlib.h>

enum { BLOCK = 8 }; // robots of a block, as in a crowd

typedef struct herd { // the same robots once more, by given actions
    dc_learn *learn;
    dc_walk *walks;
    dc_philox_draws *draws;
    dc_status status;
} herd;

// A robot's steps of the round; ends begin anew.
static dc_status walk(const herd *h, int number) {
    const dc_learn *l = h->learn;
    dc_walk *w = &h->walks[number];
    for (int64_t s = 0; s < l->options.round_steps; s++) {
        float *row = l->rows + (s * l->options.envs + number) * l->replay.width;
        const float *taken = dc_replay_unpack(&l->replay, row).act;
        double action[DC_PLANE_ACT_MAX];
        dc_walk_step step;
        for (int k = 0; k < l->plane->family->act; k++)
            action[k] = (double)taken[k];
        DC_TRY(dc_walk_step_by(w, action, &step));
        if (step.ended || step.cut) DC_TRY(dc_walk_start(w));
    }
    return DC_OK;
}

static void walk_block(void *ctx, int block) {
    herd *h = ctx;
    for (int i = block * BLOCK; i < (block + 1) * BLOCK && i < h->learn->options.envs; i++)
        if (walk(h, i) != DC_OK) h->status = DC_NOT_FINITE;
}

static dc_status open_herd(herd *h) {
    const dc_learn *l = h->learn;
    size_t count = (size_t)l->options.envs;
    h->walks = calloc(count, sizeof *h->walks);
    h->draws = calloc(count, sizeof *h->draws);
    if (!h->walks || !h->draws) return dc_fail(DC_NO_MEMORY, NULL, "no memory");
    for (size_t i = 0; i < count; i++) { // as the crowd's first episodes
        dc_draws draws = dc_draws_philox(&h->draws[i], (uint64_t)l->options.seed, i);
        DC_TRY(dc_walk_init(&h->walks[i], l->plane, l->world, draws));
        DC_TRY(dc_walk_start(&h->walks[i]));
    }
    return DC_OK;
}

static void close_herd(herd *h) {
    for (int64_t i = 0; h->walks && i < h->learn->options.envs; i++)
        dc_walk_fini(&h->walks[i]);
    free(h->walks);
    free(h->draws);
}

static dc_status take_turns(herd *h, double seconds, dc_learn_rates *rates) {
    dc_learn *l = h->learn;
    int64_t round = l->options.envs * l->options.round_steps, rounds = 0;
    int blocks = (int)((l->options.envs + BLOCK - 1) / BLOCK);
    double acting = 0, bare = 0, acting_cpu = 0, bare_cpu = 0;
    for (double start = dc_now(); dc_now() - start < seconds && h->status == DC_OK; rounds++) {
        double t = dc_now(), cpu = dc_clock(CLOCK_PROCESS_CPUTIME_ID);
        DC_TRY(dc_crowd_round(l->crowd, (int)l->options.round_steps, false, l->rows));
        dc_replay_add(&l->replay, l->rows, round);
        acting += dc_now() - t;
        acting_cpu += dc_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu;
        t = dc_now();
        cpu = dc_clock(CLOCK_PROCESS_CPUTIME_ID);
        dc_pool_run(l->pool, walk_block, h, blocks);
        bare += dc_now() - t;
        bare_cpu += dc_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    }
    double steps = (double)(rounds * round);
    *rates = (dc_learn_rates){steps / acting, steps / bare, bare_cpu / acting_cpu};
    return h->status;
}

dc_status dc_learn_measure(dc_learn *l, double seconds, dc_learn_rates *rates) {
    herd h = {.learn = l};
    DC_TRY(dc_learn_build(l));
    dc_status status = open_herd(&h);
    if (status == DC_OK) status = take_turns(&h, seconds, rates);
    close_herd(&h);
    return status;
}
