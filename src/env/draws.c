// The two sources of env/draws.h.
#include "env/draws.h"

#include "base/philox.h"

#include <math.h>

// ---- Philox ----

static dc_u32x4 next_block(dc_philox_draws *s) {
    return dc_philox(s->seed, DC_STREAM_ENV, s->episode, s->index++);
}

// 53 bits of two words, in [0, 1).
static double unit53(uint32_t hi, uint32_t lo) {
    return (double)((uint64_t)(hi >> 5) << 26 | lo >> 6) * 0x1p-53;
}

static double philox_uniform(void *ctx, double low, double high) {
    dc_u32x4 b = next_block(ctx);
    return low + (high - low) * unit53(b.v[0], b.v[1]);
}

// Box and Muller: two at a time.
static double philox_normal(void *ctx) {
    dc_philox_draws *s = ctx;
    s->has_spare = !s->has_spare;
    if (!s->has_spare) return s->spare;
    dc_u32x4 b = next_block(s);
    double radius = sqrt(-2 * log(1 - unit53(b.v[0], b.v[1])));
    double angle = 6.283185307179586 * unit53(b.v[2], b.v[3]);
    s->spare = radius * sin(angle);
    return radius * cos(angle);
}

static int philox_below(void *ctx, int n) {
    return (int)dc_below(next_block(ctx).v[0], (uint32_t)n);
}

dc_draws dc_draws_philox(dc_philox_draws *state, uint64_t seed, uint64_t episode) {
    *state = (dc_philox_draws){.seed = seed, .episode = episode};
    return (dc_draws){philox_uniform, philox_normal, philox_below, state};
}

// ---- a list ----

static double list_next(dc_list_draws *s) {
    int64_t at = s->used++;
    return at < s->count ? s->values[at] : 0;
}

static double list_uniform(void *ctx, double low, double high) {
    (void)low, (void)high;
    return list_next(ctx);
}

static double list_normal(void *ctx) {
    return list_next(ctx);
}

static int list_below(void *ctx, int n) {
    double value = list_next(ctx);
    return value >= 0 && value < n ? (int)value : 0;
}

dc_draws dc_draws_list(dc_list_draws *state, const double *values, int64_t count) {
    *state = (dc_list_draws){.values = values, .count = count};
    return (dc_draws){list_uniform, list_normal, list_below, state};
}
