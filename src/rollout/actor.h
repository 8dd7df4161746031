// Actor: a policy from a checkpoint, ready to act for many environments at once. Comes from train/'s
// step-*.safetensors; goes to rollout/eval and to whoever drives a robot with it.
//
// ddpgbc acts by its mean. rejection draws `samples` starts for each row, follows the flow from each in
// `flow_steps` Euler steps, clips, and takes the candidate that the least of the critics likes best: all
// candidates of all rows in one go. Its noise depends on (seed, moment, candidate) alone, so what happens
// in one environment never depends on which others are asked with it.
//
// Each network is a graph that the CPU runs; on a GPU the same graphs are programs, and all of a call's work is
// one recorded graph (gpu_actor.h). The host draws the noise and compares the candidates' worth either way.
#ifndef DC_ACTOR_H
#define DC_ACTOR_H

#include "algo/policy.h"
#include "base/pool.h"
#include "nn/mlp.h"
#include "tensor/run.h"

typedef struct dc_net { // a network on its own, forward only
    dc_mlp mlp;
    dc_graph graph;
    dc_exec exec;  // where the CPU acts
    dc_ref rows;   // input: [observation | goal], with room for the columns that are spliced in
    dc_ref x;      // flow and judge, input: candidates (n, act)
    dc_ref step;   // flow, input: Euler steps done (n, 1)
    dc_ref seen;   // what the network is applied to
    dc_ref action; // mean and judge: clipped (n, act)
    dc_ref moved;  // flow: x, one step on
    dc_ref next;   // flow: step + 1
    dc_ref worth;  // judge: least logit of the ensemble (n, 1)
} dc_net;

typedef struct dc_cells { // a matrix of the host's memory
    dc_real *p;
    int ld; // numbers from a row to the next
} dc_cells;

typedef struct dc_gpu_actor dc_gpu_actor;

typedef struct dc_actor {
    int in, act; // values of an input row [observation | goal] and of an action
    int rows;    // most rows a call
    int kind, samples, flow_steps;
    uint64_t seed;
    int at_once; // rejection: rows whose candidates are handled together
    dc_params params;
    dc_net policy, judge; // judge: rejection, or where it was asked for
    dc_pool *pool;
    dc_gpu_actor *gpu; // NULL: the CPU acts
    struct {           // where the networks' inputs are written and their outputs are read
        dc_cells rows, x, judged, action, worth;
    } host;
} dc_actor;

typedef struct dc_actor_options {
    int kind, samples, flow_steps; // as the run was configured
    int rows;                      // most rows a call
    uint64_t seed;                 // of candidates
    bool judge;                    // take the critic along, for dc_actor_judge; on the CPU only
    bool cuda;                     // act on a GPU
    int precision;                 // of its matrix products: 0 fp32, 1 tf32
} dc_actor_options;

// Read the weights of a checkpoint: actor/..., and for rejection oracle_critic/... or critic/....
// Borrows: pool (until fini). Nullable: pool. Errors: weights that do not fit the kind of policy; no GPU.
dc_status dc_actor_open(dc_actor *actor, const char *checkpoint, const dc_actor_options *options,
                        dc_pool *pool);
void dc_actor_fini(dc_actor *actor);
// Actions (count, act) of input rows (count, in), each clipped to [-1, 1]. A row's moment names the
// situation that its noise belongs to: never the same twice, see dc_actor_moment. Errors: of a GPU only.
dc_status dc_actor_act(dc_actor *actor, int count, const float *rows, const uint64_t *moments,
                       float *actions);

// What the least of the critics thinks of actions (count, act) at input rows (count, in): logits
// (count), sigmoid(logit) = gamma^steps. For actors that were opened with a judge.
void dc_actor_judge(dc_actor *actor, int count, const float *rows, const float *actions,
                    float *logits);

// Step of an episode of a task, as a moment.
static inline uint64_t dc_actor_moment(int task, int episode, int step) {
    return (uint64_t)task << 48 | (uint64_t)episode << 32 | (uint64_t)step;
}

#endif
