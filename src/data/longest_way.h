// How long the longest ways in a data set are: what a discount has to resolve (gamma=auto, train/run.c).
//
// Goals that lie far apart are seldom met in one trajectory, so ways are put together. Landmarks are spread
// over the data, so that every row is near one of them. Two landmarks that a trajectory passes one soon after
// the other are as far apart as the steps between, the median over all who went there. All other distances
// are the shortest paths along such pairs. Where a thing rests beside a landmark, that time does not count.
#ifndef DC_LONGEST_WAY_H
#define DC_LONGEST_WAY_H

#include "data/dataset.h"

// Steps that 99 of 100 pairs of landmarks do not exceed, of those with a way from one to the other; 0 where
// that cannot be told: fewer than half have one, or ways are not much longer than landmarks are apart. Landmarks are rows in the columns index[0 .. count - 1] of the array `column`, which must be
// there and be float32; count 0: in all of its columns. A large data set is judged by 2^18 rows of its
// trajectories. Errors: DC_NO_MEMORY.
dc_status dc_longest_way(const dc_dataset *data, const dc_column *column, const int *index,
                         int count, int64_t *steps);

#endif
