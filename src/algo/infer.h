// Inference: a forward-only graph over a method's networks. Two uses: a policy that acts (dc_algo.act) and
// a value that is queried for distances (dc_algo.query). A method's file describes the graph. The caller
// (rollout/actor, algo/agent) fills its inputs with situations, runs it on the CPU or on a GPU, and reads
// the result. A situation is one observation with its goal and, for a value of actions, its action: one
// row of every input, and one row of the result.
//
//   dc_infer_new -> [dc_infer_to_gpu ->] for each batch: dc_infer_write and dc_infer_draw per row,
//   dc_infer_run, read q->out_cells
#ifndef DC_INFER_H
#define DC_INFER_H

#include "algo/method.h"
#include "base/pool.h"
#include "tensor/run.h"

struct dc_field;

enum { DC_INFER_INPUTS = 6, DC_INFER_FIELDS = 6, DC_INFER_NOISES = 2 };

// What the numbers x of a query mean; dc_reading_steps turns them into steps.
typedef enum dc_reading {
    DC_READ_STEPS,     // a distance in steps
    DC_READ_LOGIT,     // sigmoid(x) = gamma^steps
    DC_READ_RETURN,    // -(1 - gamma^steps) / (1 - gamma): -1 per step
    DC_READ_LOG_RATIO, // x + constant = steps * log gamma: distances up to a constant
} dc_reading;

typedef struct dc_cells { // a matrix in host memory: of the graph on the CPU, of a copy with a GPU
    dc_real *p;
    int ld; // numbers from the start of a row to that of the next
} dc_cells;

typedef struct dc_infer_gpu dc_infer_gpu;

struct dc_infer {
    const dc_method *method;
    const dc_nets *nets;
    int rows;        // most situations per run
    bool data_goals; // DC_INFER_QUERY_DATA: goals are whole observations, not what a task gives
    dc_graph graph;
    dc_exec exec; // where the CPU computes
    struct {
        dc_ref node;
        int kinds[DC_INFER_FIELDS], widths[DC_INFER_FIELDS], count; // dc_field_kind
        dc_cells cells;
    } input[DC_INFER_INPUTS]; // written per situation
    int inputs;
    struct {
        dc_ref node;
        int candidates, width; // rows per situation, columns
        uint32_t first;        // where its numbers begin among a situation's normals
        dc_cells cells;
    } noise[DC_INFER_NOISES]; // drawn per situation
    int noises;
    dc_ref out;
    dc_cells out_cells;
    dc_reading reading; // set by dc_algo.query
    dc_infer_gpu *gpu;  // NULL: the CPU computes
    // Where goals are pictures, what depends on them alone, the same at every step of an episode:
    bool *of_goal;               // (nodes) Nullable: there is none
    dc_ref encoded[DC_NETS_MAX]; // those of them that other nodes read
    int encodings;
};

// ---- for a method's file ----

// An input (1, rows, width) of fields OBS, GOAL, ACT and BLANK (algo/batch.h), side by side. Their rows
// have no names here: OBS(NULL) is the situation's observation.
dc_ref dc_infer_input(dc_infer *q, const char *name, const struct dc_field *fields);
#define DC_INFER_INPUT(q, name, ...) dc_infer_input(q, name, DC_FIELDS(__VA_ARGS__))
// y (ensemble, n, out) of a network for x (1 or ensemble, n, in), by its live weights.
dc_ref dc_infer_net(dc_infer *q, const char *name, dc_ref x);
// Standard normals (rows * candidates, width), drawn anew for every situation.
dc_ref dc_infer_noise(dc_infer *q, const char *name, int candidates, int width);
// Follow a flow network from x (n, c) at t = 0 to t = 1 in `steps` Euler steps. `rows` (n, in) is its
// input with c + 1 columns left for x and t from column `at` on.
dc_ref dc_infer_flow(dc_infer *q, const char *name, dc_ref rows, int at, dc_ref x, int steps);

// ---- for callers ----

typedef enum dc_infer_use {
    DC_INFER_ACT, // the policy; real actions are clipped to [-1, 1], of discrete ones each has a value
    DC_INFER_QUERY,      // the value, of goals as a task gives them
    DC_INFER_QUERY_DATA, // the value, of goals that are whole observations
} dc_infer_use;

// Describe and prepare a graph. Borrows: method, nets, slabs, pool (until free). Nullable: pool.
// rows: most situations per run. Errors: DC_BAD_INPUT if there is no policy, DC_UNSUPPORTED if no value.
dc_status dc_infer_new(dc_infer **q, dc_infer_use use, const dc_method *method, const dc_nets *nets,
                       const dc_slabs *slabs, int rows, dc_pool *pool);
void dc_infer_free(dc_infer *q); // Nullable
// From now on a GPU computes, with a copy of the weights as they are now. Called again, it copies them
// again. precision: 0 fp32, 1 tf32. Errors: no GPU, no CUDA in this build.
dc_status dc_infer_to_gpu(dc_infer *q, const dc_slabs *slabs, int precision);
// Write situation number `row`. Nullable: goal, act (where the graph has none)
void dc_infer_write(dc_infer *q, int row, const float *obs, const float *goal, const float *act);
// Draw the noise of a situation (nothing in a graph without): a function of (seed, moment) alone, where
// `moment` numbers the situation, say by task, episode and step (rollout/actor.h).
void dc_infer_draw(dc_infer *q, int row, uint64_t seed, uint64_t moment);
// Compute the first `count` situations.
dc_status dc_infer_run(dc_infer *q, int count);
// Numbers of a situation that depend on its goal alone and cost much: encodings of a picture. 0: there are none, or a GPU
// computes.
int dc_infer_known(const dc_infer *q);
// As dc_infer_run, and those of each situation are written to known (count, dc_infer_known); given: they are read from there
// and not computed.
dc_status dc_infer_run_known(dc_infer *q, int count, dc_real *known, bool given);
// Steps that x means: the distance.
double dc_reading_steps(dc_reading reading, double gamma, double x);

#endif
