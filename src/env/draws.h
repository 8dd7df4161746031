// Where an environment's random numbers come from: a table of three functions. The usual source is
// Philox on (seed, episode), so that an episode is the same whatever thread plays it; tests put in
// a list of numbers that the Python package drew, and get its resets and episodes.
#ifndef DC_DRAWS_H
#define DC_DRAWS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct dc_draws {
    double (*uniform)(void *ctx, double low, double high); // in [low, high)
    double (*normal)(void *ctx);                           // mean 0, deviation 1
    int (*below)(void *ctx, int n);                        // in [0, n)
    void *ctx;
} dc_draws;

typedef struct dc_philox_draws {
    uint64_t seed, episode;
    uint32_t index; // blocks taken so far
    double spare;   // second half of the last pair of normals
    bool has_spare;
} dc_philox_draws;

// A source that is a function of seed and episode. Borrows: state.
dc_draws dc_draws_philox(dc_philox_draws *state, uint64_t seed, uint64_t episode);

typedef struct dc_list_draws {
    const double *values; // (count)
    int64_t count, used;  // used > count: the list was too short, and zeros were given out
} dc_list_draws;

// A source that hands out a list in order, whatever is asked for. Borrows: state and its values.
dc_draws dc_draws_list(dc_list_draws *state, const double *values, int64_t count);

#endif
