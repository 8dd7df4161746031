// Data of pointmaze, made as OGBench makes it: a point is led from cell to cell along the shortest
// way to a goal, its actions shaken by Gaussian noise. `navigate` takes a new goal whenever one is
// reached; `stitch` goes to a place four cells away and stays. Ants and humanoids need a trained
// policy for the same, which is not here.
//
//     episode number -> draws -> actions -> env/sim -> rows -> cli/cmd_gen -> NAME.npz,
//     NAME-val.npz
#ifndef DC_ENV_GEN_H
#define DC_ENV_GEN_H

#include "base/pool.h"
#include "env/sim.h"

#include <stdint.h>

typedef struct dc_gen {
    const dc_world *world;
    dc_data_kind kind;
    int64_t rows;        // of an episode: transitions + 1
    double noise;        // of actions
    uint64_t seed;       // an episode is a function of seed and its number
    const double *draws; // (episodes, draw_count) in place of random numbers; NULL: none
    int64_t draw_count;
} dc_gen;

// Rows of episodes, one after the other.
typedef struct dc_gen_rows {
    float *obs;         // (rows, obs)
    float *act;         // (rows, act)
    float *qpos;        // (rows, nq)
    float *qvel;        // (rows, nv)
    uint8_t *terminals; // (rows) 1 at the end of an episode
} dc_gen_rows;

// The published data set's size. Errors: DC_USAGE for kinds that do not exist, DC_UNSUPPORTED for
// robots that need a trained policy; the hint says how to come by such data.
dc_status dc_gen_init(dc_gen *gen, const dc_env_spec *spec, dc_data_kind kind, int64_t *episodes);
// Play episodes first ... first + count - 1; the same rows for any number of threads.
dc_status dc_gen_play(const dc_gen *gen, int64_t first, int64_t count, const dc_gen_rows *out,
                      dc_pool *pool);

#endif
