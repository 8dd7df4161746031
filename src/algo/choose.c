// split=max: the critic says where a segment is divided. Of some states between i and j the
// one is taken whose two parts are shortest under the present weights,
//
//   m* = argmin d(i, m) + d(m, j),   in the value form argmax Q(i, m) Q(m, j), d = log_gamma Q,
//
// a part whose span is known being exact. The value form has two critics; its d is their mean, so
// the product is that of their geometric mean. Segments come from the sampler's trees, level by
// level; the critic is queried in blocks, so that any number of slots takes the same memory.
#include "algo/backup.h"

#include "base/philox.h"

// Two queries per candidate, (i, m) and (m, j), side by side.
typedef struct queries {
    int count;
    int64_t s[DC_QUERY_ROWS], g[DC_QUERY_ROWS];
    float d[DC_QUERY_ROWS]; // the answers
} queries;

static int candidates_of(const dc_agent *a, int64_t i, int64_t j) {
    return (int)(j - i - 1 < a->candidates ? j - i - 1 : a->candidates);
}

// Candidate number c of segment (i, j): all states between when there are few, else drawn by (step,
// i, j).
static int64_t candidate(const dc_agent *a, int64_t i, int64_t j, int c) {
    int64_t inside = j - i - 1;
    if (inside <= a->candidates) return i + 1 + c;
    dc_u32x4 word = dc_philox(a->method.seed, DC_STREAM_SPLIT | (uint32_t)(c / 2) << 8,
                              a->step << 32 ^ (uint64_t)j, (uint32_t)i);
    return i + 1 + (int64_t)dc_below64(word.v[c % 2 * 2], word.v[c % 2 * 2 + 1], (uint64_t)inside);
}

static void add_candidates(const dc_agent *a, queries *q, int64_t i, int64_t j) {
    for (int c = 0; c < candidates_of(a, i, j); c++) {
        int64_t mid = candidate(a, i, j, c);
        q->s[q->count] = i;
        q->g[q->count++] = mid;
        q->s[q->count] = mid;
        q->g[q->count++] = j;
    }
}

static float span(const dc_agent *a, const queries *q, int at) {
    int64_t steps = q->g[at] - q->s[at];
    return steps <= a->known ? (float)steps : q->d[at];
}

// The best of the candidates whose queries begin at `first`; the earliest of equals.
static int64_t best(const dc_agent *a, const queries *q, int first, int candidates) {
    int least = first;
    for (int at = first; at < first + 2 * candidates; at += 2)
        if (span(a, q, at) + span(a, q, at + 1) < span(a, q, least) + span(a, q, least + 1))
            least = at;
    return q->g[least];
}

// As many segments from number *done on as their queries fit; *done is where it stopped.
static dc_status choose_some(dc_agent *a, int64_t *done, int64_t count, const int64_t *i,
                             const int64_t *j, int64_t *k) {
    queries q = {0};
    int64_t from = *done, end = from;
    for (; end < count && q.count + 2 * candidates_of(a, i[end], j[end]) <= DC_QUERY_ROWS; end++)
        add_candidates(a, &q, i[end], j[end]);
    DC_TRY(dc_agent_distances(a, q.count, q.s, q.g, q.d));
    for (int64_t x = from, at = 0; x < end; x++) {
        int candidates = candidates_of(a, i[x], j[x]);
        k[x] = best(a, &q, (int)at, candidates);
        at += 2 * candidates;
    }
    *done = end;
    return DC_OK;
}

dc_status dc_choose_split(void *ctx, int64_t count, const int64_t *i, const int64_t *j,
                          int64_t *k) {
    for (int64_t done = 0; done < count;)
        DC_TRY(choose_some(ctx, &done, count, i, j, k));
    return DC_OK;
}
