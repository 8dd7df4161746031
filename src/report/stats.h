// Statistics over seeds: mean and standard deviation, intervals of a mean and of a probability, the
// interquartile mean, and its interval by a stratified bootstrap (Agarwal et al. 2021, "Deep RL at the edge of the statistical precipice"):
// tasks are the strata, and in each one the seeds are drawn anew with replacement.
#ifndef DC_STATS_H
#define DC_STATS_H

#include "base/status.h"

#include <stdint.h>

enum { DC_RESAMPLES = 10000 }; // draws behind the intervals of a report

typedef struct dc_spread {
    double mean, sd; // sd divides by count - 1; 0 for one value; mean NaN for none
    int count;
} dc_spread;

typedef struct dc_interval {
    double low, high;
} dc_interval;

dc_spread dc_stats_spread(const double *x, int count);
double dc_stats_median(double *x, int count); // sorts x; NaN for none

// Mean of what is left when a quarter of the values (rounded down) is cut off at each end; x is
// sorted. NaN for no values.
double dc_stats_iqm(double *x, int count);
// 95 % interval of the mean of count values by Student's t; NaN for fewer than two.
dc_interval dc_stats_student(const double *x, int count);
// 95 % interval of a probability of which `part` of `count` trials came true, by Wilson's score: it is
// as honest at 0 and at 1 as between. NaN for no trials.
dc_interval dc_stats_wilson(double part, double count);
// 95 % percentile interval of the interquartile mean of all values of x (seeds, tasks).
dc_status dc_stats_bootstrap(const double *x, int seeds, int tasks, int resamples, uint64_t seed,
                             dc_interval *out);

#endif
