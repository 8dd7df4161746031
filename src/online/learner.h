// A learner's insides, for the files of this folder alone: learn.c, which runs it, and state.c, which keeps it.
#ifndef DC_LEARNER_H
#define DC_LEARNER_H

#include "online/crowd.h"
#include "online/learn.h"
#include "online/replay.h"
#include "train/trainer.h"

struct dc_learn {
    const dc_plane *plane;
    const dc_robot *robot;
    dc_learn_options options;
    void *config; // of the method
    // What learns:
    dc_world *world;
    dc_pool *pool;
    dc_replay replay;
    dc_agent agent;
    bool built; // the agent
    dc_trainer *trainer;
    dc_slabs acting; // weights of the round before
    dc_crowd *crowd;
    float *rows; // (round_steps, envs, width) of the round under way
    float *rates;
    // Where it stands:
    int64_t steps, updates, resumed; // resumed: steps that were done before this process
    double sums[DC_METRICS_MAX + 1]; // of metrics, since the last report
    int64_t summed;
    double best; // worth of the policy at the path
    dc_scores scores[2];
};

// Everything that acts and learns, as the options say.
dc_status dc_learn_build(dc_learn *learn);
// state.c: everything that a learner needs to go on. Errors: DC_BAD_INPUT for a file that is damaged or was written
// with other options.
dc_status dc_learn_save(const dc_learn *learn, const char *path);
dc_status dc_learn_load(dc_learn *learn, const char *path);

#endif
