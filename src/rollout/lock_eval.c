// Evaluation on the combination-lock, see lock_eval.h. All pairs of distance h are one stretch of
// rows (s, s + h), asked in chunks.
#include "rollout/lock_eval.h"

#include <math.h>
#include <stdlib.h>

typedef struct buffers {
    int64_t *s, *g; // (horizon)
    float *d;       // (horizon)
} buffers;

// Sum of |d - h| over all pairs at distance h.
static dc_status error_at(dc_agent *agent, int64_t horizon, int64_t h, buffers *b, double *sum) {
    int64_t pairs = horizon - h;
    for (int64_t s = 0; s < pairs; s++) {
        b->s[s] = s;
        b->g[s] = s + h;
    }
    DC_TRY(dc_agent_distances(agent, pairs, b->s, b->g, b->d));
    *sum = 0;
    for (int64_t s = 0; s < pairs; s++)
        *sum += fabs((double)b->d[s] - (double)h);
    return DC_OK;
}

// Middle of the distances whose bin (h - 1) bins / longest is number i.
static double middle(int64_t i, int64_t bins, int64_t longest) {
    int64_t from = (i * longest + bins - 1) / bins,
            to = ((i + 1) * longest + bins - 1) / bins; // of h - 1
    return 1 + (double)(from + to - 1) / 2;
}

static dc_status score_all(dc_agent *agent, const atomic_int *stop, dc_lock_score *score,
                           buffers *b) {
    int64_t horizon = agent->data->rows, longest = horizon - 1;
    double sums[DC_LOCK_BINS] = {0}, far = 0;
    int64_t counts[DC_LOCK_BINS] = {0}, far_count = 0;
    score->bins = (int)(longest < DC_LOCK_BINS ? longest : DC_LOCK_BINS);
    for (int64_t h = 1; h <= longest; h++) {
        if (stop && atomic_load(stop))
            return dc_fail(DC_INTERRUPTED, NULL, "stopped while evaluating");
        double sum;
        DC_TRY(error_at(agent, horizon, h, b, &sum));
        int64_t bin = (h - 1) * score->bins / longest;
        sums[bin] += sum;
        counts[bin] += horizon - h;
        if (2 * h < horizon) continue;
        far += sum;
        far_count += horizon - h;
    }
    score->accumulated_error = far / (double)far_count;
    for (int i = 0; i < score->bins; i++) {
        score->distance[i] = middle(i, score->bins, longest);
        score->error[i] = sums[i] / (double)counts[i];
    }
    return DC_OK;
}

dc_status dc_lock_evaluate(dc_agent *agent, const atomic_int *stop, dc_lock_score *score) {
    size_t n = (size_t)agent->data->rows;
    buffers b = {calloc(n, sizeof *b.s), calloc(n, sizeof *b.g), calloc(n, sizeof *b.d)};
    dc_status status = DC_OK;
    if (b.s && b.g && b.d)
        status = score_all(agent, stop, score, &b);
    else
        status = dc_fail(DC_NO_MEMORY, NULL, "no memory to evaluate a lock of %zu states", n);
    free(b.s);
    free(b.g);
    free(b.d);
    return status;
}
