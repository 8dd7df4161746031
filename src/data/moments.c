// Mean and deviation of a column, see dataset.h: the numbers that observations are scaled by.
//
// A column is cut into blocks of ROWS rows, whatever the number of threads. A block takes the sum
// of its values x and of their squares, both about the column's first row: d = x - x0, since that
// keeps precision where the values are far from 0, and since a value that never varies gives d = 0
// exactly. Blocks are put together in their order by the rule of Chan, Golub and LeVeque,
//
//     n = n_a + n_b,  delta = mean_b - mean_a
//     mean = mean_a + delta n_b / n,  square = square_a + square_b + delta^2 n_a n_b / n
//
// where square is the sum of squared distances from the mean. At most WAVE blocks are in memory at
// a time; how many does not change the result.
#include "data/dataset.h"

#include "base/pool.h"

#include <math.h>
#include <stdlib.h>

enum { ROWS = 4096, WAVE = 64, WAVE_VALUES = 1 << 20, LOOK_ROWS = 1 << 12 };

typedef struct part {
    double mean, square; // of d
} part;

typedef struct job {
    const dc_column *column;
    int64_t rows, first; // first row of this wave
    part *parts;         // (blocks of the wave, width)
} job;

static int64_t block_rows(const job *j, int block) {
    int64_t left = j->rows - (j->first + (int64_t)block * ROWS);
    return left < ROWS ? left : ROWS;
}

// Two passes over rows that lie in the cache: the mean, then the squares about it.
static void measure_block(void *ctx, int block) {
    job *j = ctx;
    int width = j->column->width;
    int64_t n = block_rows(j, block);
    const float *origin = j->column->values,                         // (width)
        *rows = origin + (j->first + (int64_t)block * ROWS) * width; // (n, width)
    part *parts = j->parts + (int64_t)block * width;                 // (width)
    for (int c = 0; c < width; c++)
        parts[c] = (part){0, 0};
    for (int64_t r = 0; r < n; r++)
        for (int c = 0; c < width; c++)
            parts[c].mean += (double)rows[r * width + c] - (double)origin[c];
    for (int c = 0; c < width; c++)
        parts[c].mean /= (double)n;
    for (int64_t r = 0; r < n; r++)
        for (int c = 0; c < width; c++) {
            double x = (double)rows[r * width + c] - (double)origin[c] - parts[c].mean;
            parts[c].square += x * x;
        }
}

// Put a block of n rows behind `before` rows: parts (width) into mean and square (width).
static void append_block(const part *parts, int width, double before, double n, double *mean,
                         double *square) {
    for (int c = 0; c < width; c++) {
        double delta = parts[c].mean - mean[c], share = n / (before + n);
        mean[c] += delta * share;
        square[c] += parts[c].square + delta * delta * before * share;
    }
}

static void measure(job *j, int wave, dc_pool *pool, double *mean, double *square) {
    int width = j->column->width;
    for (; j->first < j->rows; j->first += (int64_t)wave * ROWS) {
        int64_t left = (j->rows - j->first + ROWS - 1) / ROWS;
        int blocks = left < wave ? (int)left : wave;
        dc_pool_run(pool, measure_block, j, blocks);
        for (int b = 0; b < blocks; b++)
            append_block(j->parts + (int64_t)b * width, width,
                         (double)(j->first + (int64_t)b * ROWS), (double)block_rows(j, b), mean,
                         square);
    }
}

// From sums about the first row to moments.
static dc_status finish(const job *j, double *mean, double *deviation) {
    for (int c = 0; c < j->column->width; c++) {
        if (!isfinite(mean[c]) || !isfinite(deviation[c]))
            return dc_fail(DC_BAD_INPUT, "repair or remove that trajectory",
                           "NaN or Inf among value %d of '%s'", c, j->column->name);
        mean[c] += (double)j->column->values[c];
        deviation[c] = deviation[c] > 0 ? sqrt(deviation[c] / (double)j->rows) : 1;
    }
    return DC_OK;
}

static dc_status moments_of_floats(const dc_dataset *data, const dc_column *column, dc_pool *pool,
                                   double *mean, double *deviation) {
    int wave = WAVE_VALUES / column->width;
    wave = wave < 1 ? 1 : wave > WAVE ? WAVE : wave;
    job j = {.column = column, .rows = data->rows};
    j.parts = malloc((size_t)wave * (size_t)column->width * sizeof *j.parts);
    if (!j.parts) return dc_fail(DC_NO_MEMORY, NULL, "no memory to measure '%s'", column->name);
    measure(&j, wave, pool, mean, deviation);
    free(j.parts);
    return finish(&j, mean, deviation);
}

dc_status dc_dataset_moments(const dc_dataset *data, const char *column, dc_pool *pool,
                             double *mean, double *deviation) {
    const dc_column *c = dc_dataset_column(data, column);
    if (!c) return dc_fail(DC_BAD_INPUT, NULL, "the data has no column '%s'", column);
    for (int k = 0; k < c->width; k++) {
        mean[k] = 0;
        deviation[k] = c->type == DC_TYPE_U8 ? 255 : 0;
    }
    if (c->type == DC_TYPE_U8) return DC_OK;
    return moments_of_floats(data, c, pool, mean, deviation);
}

// ---- how differently columns vary ----

typedef struct varying {
    int value;
    double deviation;
} varying;

static int by_deviation(const void *a, const void *b) {
    const varying *x = a, *y = b;
    if (x->deviation != y->deviation) return x->deviation < y->deviation ? -1 : 1;
    return x->value - y->value;
}

// Deviation of one value over every step-th row; 0 where it does not vary or is not finite.
static double deviation_of(const dc_column *column, int value, int64_t rows, int64_t step) {
    double origin = (double)column->values[value], sum = 0, square = 0, n = 0;
    for (int64_t r = 0; r < rows; r += step, n++) {
        double d = (double)column->values[r * column->width + value] - origin;
        sum += d;
        square += d * d;
    }
    double variance = square / n - (sum / n) * (sum / n);
    return isfinite(variance) && variance > 1e-12 * (square / n) ? sqrt(variance) : 0;
}

dc_status dc_dataset_variation(const dc_dataset *data, dc_variation *out) {
    const dc_column *obs = dc_dataset_column(data, "obs");
    *out = (dc_variation){0};
    if (!obs || obs->type == DC_TYPE_U8) return DC_OK;
    varying *found = malloc((size_t)obs->width * sizeof *found);
    if (!found) return dc_fail(DC_NO_MEMORY, NULL, "no memory to measure observations");
    int count = 0;
    int64_t step = data->rows / LOOK_ROWS + 1;
    for (int k = 0; k < obs->width; k++) {
        double deviation = deviation_of(obs, k, data->rows, step);
        if (deviation > 0) found[count++] = (varying){k, deviation};
    }
    qsort(found, (size_t)count, sizeof *found, by_deviation);
    if (count) {
        const varying *wide = &found[count - 1], *narrow = &found[(count - 1) / 4];
        *out = (dc_variation){wide->value, narrow->value, wide->deviation, narrow->deviation};
    }
    free(found);
    return DC_OK;
}
