// Data made as OGBench makes it, an episode at a time.
//
//     mazes (maze/collect_mj.c)  a robot is led from cell to cell along the shortest path to a goal,
//                         its actions shaken by Gaussian noise. `navigate` takes a new goal whenever
//                         one is reached; `stitch` goes to a position four cells away and stays;
//                         `explore` has no goals and changes direction by lot. Ants and humanoids are
//                         moved by an expert (env/expert.h).
//     soccer (soccer/collect_mj.c)  an ant walks to a ball and dribbles it to a goal, by two experts.
//     tables (arm/collect_mj.c)  an arm is led by scripted oracles (arm/oracle.h) from one thing to
//                         the next. `play` follows plans; `noisy` reacts, is shaken, and now and then
//                         acts at random.
//
//     episode number -> draws -> actions -> env/sim -> rows -> cli/cmd_gen -> NAME.npz,
//     NAME-val.npz
#ifndef DC_ENV_GEN_H
#define DC_ENV_GEN_H

#include "base/pool.h"
#include "env/expert.h"
#include "env/sim.h"

#include <stddef.h>
#include <stdint.h>

// Rows of episodes, one after the other.
typedef struct dc_gen_rows {
    float *obs;         // (rows, obs) NULL in visual form
    uint8_t *pictures;  // (rows, DC_VISUAL_OBS) of the visual form alone; else NULL
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
    uint8_t *ended;    // (rows) whether the aim ended with this step; Nullable
} dc_gen_rows;

// The experts that lead a robot, in the order of its family's list (env/family.h).
enum { DC_GEN_EXPERTS = 2 };
typedef struct dc_gen_experts {
    int count;
    dc_expert of[DC_GEN_EXPERTS];
} dc_gen_experts;

typedef struct dc_gen dc_gen;
struct dc_gen {
    const dc_world *world;
    dc_data_kind kind;
    int64_t rows;                  // of an episode: transitions + 1
    double noise;                  // of actions
    uint64_t seed;                 // an episode is a function of seed, its number and the experts
    const dc_gen_experts *experts; // Nullable: of families that need none
    const double *draws;           // (episodes, draw_count) in place of random numbers; NULL: none
    int64_t draw_count;
    // Called after every episode, by the thread that played it; false stops. Nullable
    bool (*progress)(void *ctx);
    // Done by one thread beside the episodes: what to do with earlier rows. Nullable
    dc_status (*aside)(void *ctx);
    void *ctx; // of both
};

// Open the experts that a family needs: of each the named file, else the one that comes with the program.
// files: of walking and of dribbling, "" for none. Errors: DC_USAGE for files that are not needed.
dc_status dc_gen_experts_open(dc_gen_experts *experts, const dc_env_spec *spec,
                              const char *const files[DC_GEN_EXPERTS]);
// Whether those that come with the program are there. Errors: DC_IO with how to train one.
dc_status dc_gen_experts_find(const dc_env_spec *spec);
void dc_gen_experts_close(dc_gen_experts *experts); // safe on a zeroed struct, and twice

// The published data set's size. Errors: DC_USAGE for kinds that do not exist.
dc_status dc_gen_init(dc_gen *gen, const dc_env_spec *spec, dc_data_kind kind, int64_t *episodes);
// Play episodes first ... first + count - 1; the same rows for any number of threads. Errors:
// DC_INTERRUPTED when `progress` said so.
dc_status dc_gen_play(const dc_gen *gen, int64_t first, int64_t count, const dc_gen_rows *out,
                      dc_pool *pool);

size_t dc_gen_row_bytes(const dc_env_spec *spec); // of a row, in memory and unpacked in a file
// Write what is observed (spec.obs) into a row.
void dc_gen_put_obs(const dc_gen_rows *out, const dc_env_spec *spec, int64_t row,
                    const double *obs);

// What the script alone takes of a row, in seconds of this thread's processor time, measured on a
// copy; 0 where that is not known.
dc_status dc_gen_time_script(const dc_gen *gen, dc_env *env, double *seconds);
// What a family says of its sets (env/family.h).
bool dc_gen_is_slow(
    const dc_env_family *family); // finished files are kept, and an unfinished set is continued
bool dc_gen_has_trace(const dc_env_family *family);
double dc_gen_packed_bytes(const dc_env_spec *spec); // of a row in a file, with some to spare
int64_t
dc_gen_hundred(const dc_env_spec *spec); // episodes of its set of 100 million transitions; 0: none

#endif
