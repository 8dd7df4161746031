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

static const double normal = 1.959963984540054; // 97.5 % quantile

// 97.5 % quantile of Student's t: the first ones as they are, then the expansion in 1 / degrees about the
// normal's, which from there on is good to five digits.
static double student(int degrees) {
    static const double first[] = {12.706204736, 4.302652730, 3.182446305, 2.776445105,
                                   2.570581836,  2.446911851, 2.364624252, 2.306004135,
                                   2.262157163,  2.228138852};
    if (degrees <= (int)(sizeof first / sizeof first[0])) return first[degrees - 1];
    double z = normal, n = degrees, z2 = z * z, z4 = z2 * z2, z6 = z4 * z2, z8 = z4 * z4;
    return z * (1 + (z2 + 1) / (4 * n) + (5 * z4 + 16 * z2 + 3) / (96 * n * n) +
                (3 * z6 + 19 * z4 + 17 * z2 - 15) / (384 * n * n * n) +
                (79 * z8 + 776 * z6 + 1482 * z4 - 1920 * z2 - 945) / (92160 * n * n * n * n));
}

dc_interval dc_stats_student(const double *x, int count) {
    if (count < 2) return (dc_interval){NAN, NAN};
    dc_spread s = dc_stats_spread(x, count);
    double half = student(count - 1) * s.sd / sqrt(count);
    return (dc_interval){s.mean - half, s.mean + half};
}

dc_interval dc_stats_wilson(double part, double count) {
    if (!(count > 0)) return (dc_interval){NAN, NAN};
    double z2 = normal * normal / count, middle = (part + z2 / 2) / (1 + z2);
    double half = normal * sqrt(part * (1 - part) / count + z2 / (4 * count)) / (1 + z2);
    return (dc_interval){part > 0 ? middle - half : 0, part < 1 ? middle + half : 1};
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

double dc_stats_median(double *x, int count) {
    if (!count) return NAN;
    sort(x, count);
    return quantile(x, count, 0.5);
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
