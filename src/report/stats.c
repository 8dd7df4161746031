// Statistics over seeds, see stats.h. Numbers come from table.c. The draws of the bootstrap are a
// function of (seed, resample, task, seed's index), so a report has the same bytes on any machine.
#include "report/stats.h"

#include "base/philox.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

dc_spread dc_stats_spread(const double *x, int count) {
    dc_spread s = {.mean = NAN, .sd = 0, .count = count};
    if (!count) return s;
    double sum = 0, square = 0;
    for (int i = 0; i < count; i++)
        sum += x[i];
    s.mean = sum / count;
    for (int i = 0; i < count; i++)
        square += (x[i] - s.mean) * (x[i] - s.mean);
    if (count > 1) s.sd = sqrt(square / (count - 1));
    return s;
}

static int by_value(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static void sort(double *x, int count) {
    if (count > 1) qsort(x, (size_t)count, sizeof *x, by_value);
}

// Where the values are sorted: as numpy.percentile does, linear between neighbours.
static double quantile(const double *x, int count, double q) {
    double at = q * (count - 1);
    int below = (int)floor(at);
    int above = below + 1 < count ? below + 1 : below;
    return x[below] + (at - below) * (x[above] - x[below]);
}

double dc_stats_median(const double *x, int count) {
    double *copy = count ? malloc((size_t)count * sizeof *copy) : NULL;
    if (!copy) return NAN;
    memcpy(copy, x, (size_t)count * sizeof *copy);
    sort(copy, count);
    double median = quantile(copy, count, 0.5);
    free(copy);
    return median;
}

double dc_stats_iqm(double *x, int count) {
    if (!count) return NAN;
    sort(x, count);
    int cut = count / 4;
    double sum = 0;
    for (int i = cut; i < count - cut; i++)
        sum += x[i];
    return sum / (count - 2 * cut);
}

// One resample: in every task each seed is replaced by a seed drawn at random.
static void draw(const double *x, int seeds, int tasks, uint64_t seed, int resample, double *out) {
    for (int t = 0; t < tasks; t++)
        for (int s = 0; s < seeds; s++) {
            int cell = t * seeds + s;
            uint32_t word =
                dc_philox(seed, DC_STREAM_BOOTSTRAP, (uint64_t)resample, (uint32_t)cell).v[0];
            out[cell] = x[(int)dc_below(word, (uint32_t)seeds) * tasks + t];
        }
}

dc_status dc_stats_bootstrap(const double *x, int seeds, int tasks, int resamples, uint64_t seed,
                             dc_interval *out) {
    *out = (dc_interval){NAN, NAN};
    int cells = seeds * tasks;
    if (!cells || !resamples) return DC_OK;
    double *sample = malloc((size_t)cells * sizeof *sample);
    double *means = malloc((size_t)resamples * sizeof *means);
    dc_status status = DC_OK;
    if (sample && means) {
        for (int r = 0; r < resamples; r++) {
            draw(x, seeds, tasks, seed, r, sample);
            means[r] = dc_stats_iqm(sample, cells);
        }
        sort(means, resamples);
        *out = (dc_interval){quantile(means, resamples, 0.025), quantile(means, resamples, 0.975)};
    } else {
        status = dc_fail(DC_NO_MEMORY, NULL, "no memory for a bootstrap of %d values", cells);
    }
    free(sample);
    free(means);
    return status;
}
