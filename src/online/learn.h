// Learning from own steps: a crowd of robots acts on the open plane, and a method learns from what they did.
//
//     round:  crowd (envs x round_steps steps, weights W of the round before) -> rows
//             trainer (`updates` updates on rows of rounds before) -> next W
//             rows -> replay
//
// Acting and learning of a round read nothing that the other writes: on a GPU they go on at the same time, on the CPU
// one after the other, and either way the schedule is fixed. So the same seed gives the same bytes for any number of
// threads (by one build on one kind of processor or of GPU, as dcrl train).
//
// A resumed run gives the bytes of one that was never stopped: replay, robots and weights are all in PATH.state.
//
// Every eval_every steps the policy is written as an expert file and played (play.h); the best one so far stays at
// the path that was asked for.
#ifndef DC_LEARN_H
#define DC_LEARN_H

#include "algo/agent.h"
#include "online/play.h"
#include "online/robots.h"

#include <stdatomic.h>

typedef struct dc_learn_options {
    int64_t steps, seed, threads, envs, round_steps, updates, batch, replay, random, eval_every,
        eval_episodes, save_every;
    dc_int_list hidden;
    double lr, tau, gamma;
    int device, precision;
} dc_learn_options;

extern const dc_option dc_learn_table[]; // over dc_learn_options

typedef struct dc_learn dc_learn;

// What is told on the way.
typedef struct dc_learn_report {
    int64_t steps, all, updates,
        resumed;    // env steps done (and of them before this process), to do; updates done
    double seconds; // that this process has learned
    double along, reward,
        ended; // of acting since the last report: metres per second, reward and ends per 1000 steps
    double metrics[DC_METRICS_MAX]; // of learning, means
    const char *const *names;       // of metrics (count)
    int count;
    const dc_scores
        *scores; // Nullable: of an evaluation that was just made, without and with noise (2)
    bool best;   // it is the best so far
} dc_learn_report;
typedef void dc_learn_fn(void *ctx, const dc_learn_report *report);

// Options of a robot: of the learner and of its method, by key.
dc_status dc_learn_new(dc_learn **learn, const dc_plane *plane);
dc_status dc_learn_set(dc_learn *learn, const char *key, const char *value);
const dc_option *dc_learn_method_options(void);
// A job: leave the best policy at `path`. `command`: what the file says it was made by. `resume`: go on from
// PATH.state, which a stop and every save_every steps leave there; it is removed at the end. Nullable: stop, report
typedef struct dc_learn_job {
    const char *path, *command;
    bool resume;
    const atomic_int *stop;
    dc_learn_fn *report;
    void *ctx;
} dc_learn_job;
// Errors: DC_INTERRUPTED after a stop.
dc_status dc_learn_run(dc_learn *learn, const dc_learn_job *job);
void dc_learn_free(dc_learn *learn); // Nullable

#endif
