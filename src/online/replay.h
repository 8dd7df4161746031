// Replay: the steps that robots took, as a data set that grows and then forgets the oldest: a ring of rows, one for
// each step with what was seen before and after it. Samplers draw among the rows that are there (dc_dataset.grown),
// and gather takes them like those of any data set, so a learner needs nothing of its own.
//
//     obs, command | act | next_obs, next_command | base, pull | mask      (env/plane.h; columns of the data)
#ifndef DC_REPLAY_H
#define DC_REPLAY_H

#include "data/dataset.h"
#include "env/plane.h"

enum { DC_REPLAY_COLUMNS = 8 };

typedef struct dc_replay {
    dc_dataset data;
    float *values[DC_REPLAY_COLUMNS]; // of the columns, in the order of a packed row
    int widths[DC_REPLAY_COLUMNS];
    int width;      // of a packed row
    int64_t room;   // rows at most
    int64_t added;  // rows so far
    int64_t filled; // rows that are there
} dc_replay;

// Columns within a packed row: one after the other.
typedef struct dc_packed {
    float *obs, *command, *act, *next_obs, *next_command, *base, *pull, *mask;
} dc_packed;

dc_status dc_replay_init(dc_replay *replay, const dc_plane *plane, int64_t room);
void dc_replay_fini(dc_replay *replay); // safe on a zeroed struct, and twice
// Where the columns of a packed row lie.
dc_packed dc_replay_unpack(const dc_replay *replay, float *row);
// Append packed rows (count, width).
void dc_replay_add(dc_replay *replay, const float *rows, int64_t count);

#endif
