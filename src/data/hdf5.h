// HDF5 files to npz, in the three layouts that offline data come in:
//
//   D4RL       observations, actions, terminals and timeouts at the root, one row a transition; infos/qpos
//              and infos/qvel become qpos and qvel
//   Minari     a group episode_N each, with one observation more than actions
//   robomimic  a group data/demo_N each, with observations by name in obs/
//
// Where observations are a group of arrays, they stand side by side in a row, in the order of their names;
// desired_goal, which is no state, and pictures are left out unless they are named. What has one action less
// than observations gets the last one twice; of the last row's action docs/formats.md says who reads it.
//
// Rows are copied in pieces, so memory does not grow with a file. A file is not trusted: links out of it,
// virtual and external arrays, filters that would have to be loaded, and arrays that claim more than their
// bytes could hold are refused. The library itself is loaded when it is needed (hdf5_lib.h).
#ifndef DC_HDF5_H
#define DC_HDF5_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct dc_hdf5_options {
    const char *obs; // names of arrays of observations, with commas; "": all that fit
    int level;       // of the npz, see data/npz.h
} dc_hdf5_options;

typedef struct dc_hdf5_done {
    int64_t rows, episodes;
    const char *layout; // "Minari"
    char obs[512]; // what a row of observations is made of: "achieved_goal (2), observation (27)"
} dc_hdf5_done;

typedef bool dc_hdf5_progress(void *ctx, int64_t rows); // false stops

// Whether a path ends like an HDF5 file.
bool dc_hdf5_is(const char *path);
// Errors: it does, and says how to convert it.
dc_status dc_hdf5_refuse(const char *path);
// Errors: DC_UNSUPPORTED in a build without HDF5; DC_INTERRUPTED when progress (nullable) said so; nothing is
// left behind then.
dc_status dc_hdf5_to_npz(const char *input, const char *output, const dc_hdf5_options *options,
                         dc_hdf5_progress *progress, void *ctx, dc_hdf5_done *done);

#endif
