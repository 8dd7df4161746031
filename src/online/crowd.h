// Crowd: many robots on their planes, each an environment of its own, all led by one policy of a learner. They act
// for a round at a time: blocks of robots go to the threads, and every block takes all steps of the round by itself.
// What a robot sees and does is a function of (seed, its number, its step) and the weights, so a round is the same
// for any number of threads.
#ifndef DC_CROWD_H
#define DC_CROWD_H

#include "algo/infer.h"
#include "base/pool.h"
#include "online/replay.h"

typedef struct dc_crowd dc_crowd;

// What went on, summed over robots and rounds since it was last cleared.
typedef struct dc_crowd_sums {
    double steps, reward;
    double
        along; // way along the command, or of the ball towards its goal: reward without its factors
    double ended, episodes; // ended: by the rules; episodes: those and the cut ones
} dc_crowd_sums;

typedef struct dc_crowd_spec {
    const dc_plane *plane;
    const dc_world *world;
    int count; // robots
    uint64_t seed;
    const float *rates; // (state + DC_COMMAND) what is seen is multiplied by these
    const dc_method *method;
    const dc_nets *nets;
    const dc_slabs *slabs; // weights that act
} dc_crowd_spec;

// Borrows: all of spec, replay (layout of rows) and pool, until free.
dc_status dc_crowd_new(dc_crowd **crowd, const dc_crowd_spec *spec, const dc_replay *replay,
                       dc_pool *pool);
void dc_crowd_free(dc_crowd *crowd); // Nullable
// Let all take `steps` steps, by the policy or (random) by uniform actions, into packed rows: (steps, count, width).
dc_status dc_crowd_round(dc_crowd *crowd, int steps, bool random, float *rows);
dc_crowd_sums dc_crowd_take(dc_crowd *crowd); // and clear
// Where all robots stand, as numbers (words), but for the sums; they go on from there to the bit.
int64_t dc_crowd_words(const dc_crowd *crowd);
void dc_crowd_save(const dc_crowd *crowd, double *words);
dc_status dc_crowd_load(dc_crowd *crowd, const double *words);

#endif
