// Data sets of which only the table of trajectories matters, and chi-square, for tests of what is drawn.
#ifndef SETS_H
#define SETS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "data/dataset.h"

// Trajectories with these numbers of states (count).
static inline dc_dataset make_data(const int64_t *states, int64_t count) {
    int64_t *start = calloc((size_t)count + 1, sizeof *start);
    assert_non_null(start);
    for (int64_t t = 0; t < count; t++)
        start[t + 1] = start[t] + states[t];
    return (dc_dataset){.rows = start[count], .traj_count = count, .traj_start = start};
}

static inline dc_dataset equal_data(int64_t states, int64_t count) {
    int64_t *each = calloc((size_t)count, sizeof *each);
    assert_non_null(each);
    for (int64_t t = 0; t < count; t++)
        each[t] = states;
    dc_dataset data = make_data(each, count);
    free(each);
    return data;
}

static inline dc_dataset mixed_data(void) {
    static const int64_t states[] = {5, 2, 41, 17, 3, 9, 2, 30};
    return make_data(states, sizeof states / sizeof *states);
}

static inline void drop(dc_dataset *data) {
    free((void *)(uintptr_t)data->traj_start);
}

// Chi-square of counts against expected counts; five standard deviations above the mean is beyond
// what any seed should give (about one in a million), and far below what a wrong law gives.
static inline void check_counts(const double *seen, const double *expected, int cells) {
    double chi = 0;
    for (int c = 0; c < cells; c++) {
        assert_true(expected[c] >= 5);
        chi += (seen[c] - expected[c]) * (seen[c] - expected[c]) / expected[c];
    }
    double df = cells - 1;
    if (chi > df + 5 * sqrt(2 * df) + 10)
        fail_msg("chi-square %.1f with %g degrees of freedom", chi, df);
}

#endif
