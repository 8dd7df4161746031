// What was recorded elsewhere and is to be played here: states and actions of a replay, random numbers in place of
// drawn ones. The files are npz and may come from anywhere.
//
//     npz -> data/npz -> checked arrays -> env/replay, env/gen
#ifndef DC_RECORDED_H
#define DC_RECORDED_H

#include "base/arena.h"
#include "env/gen.h"
#include "env/replay.h"

// Inputs of a replay; `dcrl env --help` lists the arrays. They live in the arena.
// Errors: DC_BAD_INPUT for arrays that are missing, of another shape, or not of this environment.
dc_status dc_replay_read(dc_replay *replay, const dc_env_spec *spec, const char *path,
                         dc_arena *arena);
// Numbers in place of random ones, a row for each episode; *values is the caller's to free, also after an error.
dc_status dc_gen_read_draws(dc_gen *gen, const char *path, int64_t episodes, double **values);

#endif
