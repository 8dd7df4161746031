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
// Copy trajectories out of memory: observations (rows, obs), actions (rows, act) within [-1, 1],
// ends (rows), non-zero at the last row of each trajectory, whose action is never used.
DCRL_API dcrl_status dcrl_dataset_make(dcrl_dataset **data, int64_t rows, int obs, int act,
                                       const float *observations, const float *actions,
                                       const unsigned char *ends);
// Rows of all trajectories together.
DCRL_API int64_t dcrl_dataset_rows(const dcrl_dataset *data);
// Number of trajectories.
DCRL_API int64_t dcrl_dataset_trajectories(const dcrl_dataset *data);
// Free a data set that no run uses any more. Nullable: data
DCRL_API void dcrl_dataset_close(dcrl_dataset *data);

#ifdef __cplusplus
}
#endif
#endif
