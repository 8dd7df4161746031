// Actor: a policy from a checkpoint, ready to act for many environments at once. Comes from train/'s
// step-*.safetensors, whose metadata says which method it is of, with which options, for what sizes; so
// a checkpoint is all that is needed. Goes to rollout/eval and to programs that drive a robot with it.
//
// How a policy acts is its method's (dc_algo.act): by its mean, by the best of many candidates, by a
// subgoal first. Noise depends on (seed, moment) alone, so what happens in one environment never
// depends on the other rows of the call.
#ifndef DC_ACTOR_H
#define DC_ACTOR_H

#include "algo/infer.h"
#include "base/pool.h"
#include "train/checkpoint.h"

typedef struct dc_actor {
    int obs, goal, act; // values of an observation, a goal and an action
    int in;             // obs + goal: values of an input row
    int rows;           // most rows per call
    bool quick_row;
    uint64_t seed;
    int at_once;               // rows handled together
    dc_checkpoint_policy from; // method, options and weights
    dc_infer *policy, *value;  // value: if it was asked for
    struct {
        int cells; // numbers that the policy knows of a goal that is a picture; 0: nothing is kept
        float *goals;     // (rows, goal) goals of the last call
        dc_real *numbers; // (rows, cells)
        bool *there;      // (rows)
    } known;
    dc_pool *pool;
} dc_actor;

typedef struct dc_actor_options {
    int samples, flow_steps; // of a policy that has those options; 0: as the run was configured
    int rows;                // most rows per call
    uint64_t seed;           // of candidates
    bool
        quick_row; // a row that is alone goes quicker, with other last bits than among others; on the CPU
    bool value;    // take the value along, for dc_actor_steps; on the CPU only
    bool cuda;     // act on a GPU
    int precision; // of its matrix products: 0 fp32, 1 tf32
} dc_actor_options;

// Borrows: pool (until fini). Nullable: pool. Errors: a file that is damaged or of another version; a
// run without a policy, or without the value that was asked for; no GPU.
dc_status dc_actor_open(dc_actor *actor, const char *checkpoint, const dc_actor_options *options,
                        dc_pool *pool);
void dc_actor_fini(dc_actor *actor);
// Actions (count, act) of input rows [observation | goal] (count, in), each clipped to [-1, 1], or to the
// data's own range if the run has one (act_scale). A row's
// moment names the situation that its noise belongs to: never the same twice, see dc_actor_moment.
// Errors: of a GPU; DC_NOT_FINITE for rows whose actions would be NaN or Inf.
dc_status dc_actor_act(dc_actor *actor, int count, const float *rows, const uint64_t *moments,
                       float *actions);
// Take the value along, if it is not there yet. Errors: DC_UNSUPPORTED for a method without one.
dc_status dc_actor_add_value(dc_actor *actor);
// Steps to the goal that the method's value predicts for actions (count, act) at input rows (count, in):
// (count), the largest of the ensemble. For actors that were opened with a value.
dc_status dc_actor_steps(dc_actor *actor, int count, const float *rows, const float *actions,
                         float *steps);

// Step of an episode of a task, as a moment.
static inline uint64_t dc_actor_moment(int task, int episode, int step) {
    return (uint64_t)task << 48 | (uint64_t)episode << 32 | (uint64_t)step;
}

#endif
