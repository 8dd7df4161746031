// Data made as OGBench makes it, an episode at a time.
//
//     mazes (maze/collect_mj.c)  a point is led from cell to cell along the shortest way to a goal,
//                         its actions shaken by Gaussian noise. `navigate` takes a new goal whenever
//                         one is reached; `stitch` goes to a place four cells away and stays. Ants and
//                         humanoids need a trained policy for the same, which is not here.
//     tables (arm/collect_mj.c)  an arm is led by scripted oracles (arm/oracle.h) from one thing to
//                         the next. `play` follows plans; `noisy` reacts, is shaken, and now and then
//                         acts at random.
//
//     episode number -> draws -> actions -> env/sim -> rows -> cli/cmd_gen -> NAME.npz,
//     NAME-val.npz
#ifndef DC_ENV_GEN_H
#define DC_ENV_GEN_H

#include "base/pool.h"
#include "env/sim.h"

#include <stddef.h>
#include <stdint.h>

// Rows of episodes, one after the other.
typedef struct dc_gen_rows {
    float *obs;         // (rows, obs)
    float *act;         // (rows, act)
    float *qpos;        // (rows, nq)
    float *qvel;        // (rows, nv)
    int64_t *extra;     // (rows, extra) where a state has more than qpos and qvel
    uint8_t *terminals; // (rows) 1 at the end of an episode
    // What is not in data sets, of families with a trace, if wished:
    double *exact;     // (rows, nq) qpos before it was rounded; Nullable
    double *exact_act; // (rows, act) the same of actions; Nullable
    uint8_t *aim;      // (rows) what was wanted, a number of the family's; Nullable
    uint8_t *success;  // (rows) whether the row's step led to it; Nullable
    uint8_t *ended;    // (rows) whether the oracle ended with this step; Nullable
} dc_gen_rows;

typedef struct dc_gen dc_gen;
struct dc_gen {
    const dc_world *world;
    dc_data_kind kind;
    int64_t rows;        // of an episode: transitions + 1
    double noise;        // of actions
    uint64_t seed;       // an episode is a function of seed and its number
    const double *draws; // (episodes, draw_count) in place of random numbers; NULL: none
    int64_t draw_count;
    // Called after every episode, by the thread that played it; false stops. Nullable
    bool (*progress)(void *ctx);
    // Done by one thread beside the episodes: what to do with earlier rows. Nullable
    dc_status (*aside)(void *ctx);
    void *ctx; // of both
};

// The published data set's size. Errors: DC_USAGE for kinds that do not exist, DC_UNSUPPORTED for
// robots that need a trained policy; the hint says how to come by such data.
dc_status dc_gen_init(dc_gen *gen, const dc_env_spec *spec, dc_data_kind kind, int64_t *episodes);
// Play episodes first ... first + count - 1; the same rows for any number of threads. Errors:
// DC_INTERRUPTED when `progress` said so.
dc_status dc_gen_play(const dc_gen *gen, int64_t first, int64_t count, const dc_gen_rows *out,
                      dc_pool *pool);

// Rows of many episodes as one struct: memory for them, and the part that begins at a row.
size_t dc_gen_row_bytes(const dc_env_family *family); // of a row, in memory and unpacked in a file
dc_gen_rows dc_gen_rows_at(const dc_gen_rows *rows, const dc_env_family *family, int64_t row);

// What the script alone takes of a row, in seconds of this thread's processor time, measured on a
// copy; 0 where that is not known.
dc_status dc_gen_time_script(const dc_gen *gen, dc_env *env, double *seconds);
// What a family says of its sets (env/family.h).
bool dc_gen_is_slow(const dc_env_family *family); // files that are there stay, and are gone on with
bool dc_gen_has_trace(const dc_env_family *family);
double dc_gen_packed_bytes(const dc_env_family *family); // of a row in a file, with some to spare

#endif
