// Data sets: trajectories of observations and actions, from a file or from memory.
#ifndef DCRL_DATASET_H
#define DCRL_DATASET_H

#include <dcrl/status.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dcrl_dataset dcrl_dataset;

// Open an OGBench .npz file or a store folder.
DCRL_API dcrl_status dcrl_dataset_open(dcrl_dataset **data, const char *path);
// Copy trajectories out of memory: observations (rows, obs), actions (rows, act), ends (rows), non-zero
// at the last row of each trajectory, whose action only n-step targets that reach the end read, and none with
// the option last_action=off. Runs take actions within [-1, 1], and any others with the option act_scale ("auto",
// or "LOW,HIGH").
DCRL_API dcrl_status dcrl_dataset_make(dcrl_dataset **data, int64_t rows, int obs, int act,
                                       const float *observations, const float *actions,
                                       const unsigned char *ends);
// The same, but observations stay where they are: they must not change or go before the data set does.
DCRL_API dcrl_status dcrl_dataset_borrow(dcrl_dataset **data, int64_t rows, int obs, int act,
                                         const float *observations, const float *actions,
                                         const unsigned char *ends);
// Rows of all trajectories together.
DCRL_API int64_t dcrl_dataset_rows(const dcrl_dataset *data);
// Number of trajectories.
DCRL_API int64_t dcrl_dataset_trajectories(const dcrl_dataset *data);
// First row of each trajectory, and the number of rows: (trajectories + 1). Borrows: data
DCRL_API const int64_t *dcrl_dataset_starts(const dcrl_dataset *data);

// What a data set holds of its rows. "obs" and "act" are observations and actions, further columns have the names of a
// file's arrays.
typedef struct dcrl_column {
    const char *name;
    const float *values;        // (rows, width), or NULL if they are bytes
    const unsigned char *bytes; // (rows, width), or NULL
    const int64_t *shape;       // (ndim) of a row, whose product is the width
    int ndim;                   // 0: it is not known, or a row is one number
    int width;                  // values of a row
} dcrl_column;

// Number of columns.
DCRL_API int dcrl_dataset_columns(const dcrl_dataset *data);
// Look at a column, 0 ... columns - 1, without a copy. Borrows: data
DCRL_API dcrl_status dcrl_dataset_column(const dcrl_dataset *data, int index, dcrl_column *column);
// Number of discrete actions, which are numbered from 0; 0 if actions are real numbers, or there are none.
DCRL_API int dcrl_dataset_choices(const dcrl_dataset *data);
// Free a data set that no run uses any more. Nullable: data
DCRL_API void dcrl_dataset_close(dcrl_dataset *data);

#ifdef __cplusplus
}
#endif
#endif
