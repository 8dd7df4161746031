// Sampler: emits the integers of a batch, never numbers of a network and never an algorithm's name.
// An algorithm says in dc_sampler_spec which rows it eats; dc_sampler_next fills the streams for
// one step. Every draw is a pure function of (seed, stream, step, row) or (seed, slot, generation),
// so the same seed gives the same batches with any number of threads, on any device, and after a
// resume.
#ifndef DC_SAMPLER_H
#define DC_SAMPLER_H

#include "base/status.h"
#include "data/dataset.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Streams of a batch, each (batch) of int64_t. Rows are rows of the data set.
typedef enum dc_stream {
    DC_I,  // segment start
    DC_K,  // its split
    DC_J,  // its end
    DC_P,  // propagation: start state
    DC_N,  // propagation: state n' steps later, n' = min(n, steps left in the trajectory)
    DC_G,  // propagation: goal
    DC_A,  // grounding: start of a single step; its end is the next row
    DC_A1, // the next row
    DC_S,  // policy: state
    DC_AG, // policy: goal
    // Step counts, not rows:
    DC_LEFT,   // K - I
    DC_RIGHT,  // J - K
    DC_NSTEPS, // N - P = n'
    DC_OFF,    // G - P if the goal lies in the same trajectory at or after P, else -1
    DC_STREAMS
} dc_stream;

typedef enum dc_segments { // where (I, K, J) come from
    DC_SEG_NONE,
    DC_SEG_TREE,  // slots that stream binary trees
    DC_SEG_PAIRS, // i.i.d. pairs, split once
} dc_segments;

typedef enum dc_split { DC_SPLIT_MIDPOINT, DC_SPLIT_RANDOM, DC_SPLIT_MAX } dc_split;
typedef enum dc_order { DC_ORDER_UP, DC_ORDER_DOWN } dc_order;
typedef enum dc_law { DC_LAW_UNIFORM, DC_LAW_GEOMETRIC } dc_law;

// Chooses a split for each of `count` segments (i[m], j[m]) of at least two steps: i < k < j.
typedef dc_status dc_split_fn(void *ctx, int64_t count, const int64_t *i, const int64_t *j,
                              int64_t *k);

typedef struct dc_sampler_spec {
    uint64_t seed;
    int batch;
    dc_segments segments;
    dc_split split;  // MIDPOINT, RANDOM, or MAX (choose decides); PAIRS take MIDPOINT or RANDOM
    dc_order order;  // UP: leaves first, root last
    int slots;       // trees in flight
    dc_law pair_law; // PAIRS: (i, j) uniform over pairs i < j of a trajectory, or i uniform, j - i
                     // geometric
    int64_t stage_length; // PAIRS: above 0, stage s has lengths s * stage_length + 1 to (s + 1) *
                          // stage_length only, from the shortest stage to that of whole
                          // trajectories
    uint64_t stage_total; // steps that the stages share; the last goes on after them
    double gamma; // of the geometric laws: steps ~ Geom(1 - gamma), cut at the trajectory's end
    int rebuild_every; // MAX: build all trees anew at steps divisible by this
    dc_split_fn *choose;
    void *choose_ctx;
    bool propagation; // fill P, N, G, NSTEPS, OFF
    int n;
    bool
        goal_pairs; // P < G uniform over pairs of one trajectory (the lock); else the mixture below
    double goal_current, goal_future, goal_random; // probabilities, sum 1
    dc_law goal_law;                               // of the future goal
    bool actor;          // fill S, AG: S uniform over states with an action, AG future or random
    double actor_random; // share of random goals, the others lie ahead
    dc_law actor_law;    // of goals that lie ahead
    bool grounding;      // fill A, A1
} dc_sampler_spec;

typedef struct dc_sampler dc_sampler;

// Borrows: data (until free).
dc_status dc_sampler_new(dc_sampler **sampler, const dc_dataset *data, const dc_sampler_spec *spec);
void dc_sampler_free(dc_sampler *sampler); // Nullable
// Fill all streams for `step`. Steps must come in order from 0, or from where a loaded state
// stopped. Errors: those of the chooser, and of memory for explicit trees; load a state before
// going on.
dc_status dc_sampler_next(dc_sampler *sampler, uint64_t step);
// Let the next step be any, without drawing those before: only of a sampler without trees, whose draws
// have no memory.
void dc_sampler_skip(dc_sampler *sampler, uint64_t step);
// A stream to write by hand, for batches that come from elsewhere; dc_sampler_next would overwrite
// it.
int64_t *dc_sampler_fix(dc_sampler *sampler, dc_stream stream);
// Values of a stream (batch), valid until the next call. NULL for streams that the spec does not
// fill.
const int64_t *dc_sampler_stream(const dc_sampler *sampler, dc_stream stream);
// Slot that each row came from (batch), for `dcrl sample` and tests; NULL unless segments == TREE.
const int32_t *dc_sampler_slot(const dc_sampler *sampler);
// Bytes that the sampler takes from the system now; midpoint trees of any length take the same.
size_t dc_sampler_bytes(const dc_sampler *sampler);
// Complete state as words, for checkpoints; the caller frees. Loading checks every word; after a
// refused state (DC_BAD_INPUT), load another or free the sampler.
dc_status dc_sampler_save(const dc_sampler *sampler, int64_t **words, size_t *count);
dc_status dc_sampler_load(dc_sampler *sampler, const int64_t *words, size_t count);
// Bring one to where another of the same spec stands.
dc_status dc_sampler_copy(dc_sampler *to, const dc_sampler *from);
// What it was made from, for a twin on another device (sample/twin.h).
typedef struct dc_laws dc_laws;
const dc_laws *dc_sampler_laws(const dc_sampler *sampler);
const dc_sampler_spec *dc_sampler_spec_of(const dc_sampler *sampler);
// The step that dc_sampler_next must be asked for.
uint64_t dc_sampler_step(const dc_sampler *sampler);

#endif
