// An expert with made-up weights: a function of robot, widths and seed, for tests of what experts are used for.
#ifndef MADE_UP_H
#define MADE_UP_H

#include "base/philox.h"
#include "env/expert.h"

#include <math.h>
#include <stdlib.h>

enum { MADE_UP_NUMBERS = 4 * DC_EXPERT_WIDTH * DC_EXPERT_WIDTH };

typedef struct made_up {
    dc_expert expert;
    float *numbers; // (MADE_UP_NUMBERS)
    int64_t used;
} made_up;

// Uniform, with a deviation of about `scale`.
static float *made_up_numbers(made_up *m, uint64_t seed, int64_t count, float centre, float scale) {
    float *to = m->numbers + m->used;
    DC_CHECK(m->used + count <= MADE_UP_NUMBERS);
    for (int64_t k = 0; k < count; k++) {
        dc_u32x4 block = dc_philox(seed, DC_STREAM_INIT, (uint64_t)(m->used + k), 0);
        to[k] = centre + scale * (float)(block.v[0] * 0x1p-31 - 1) * 1.7f;
    }
    m->used += count;
    return to;
}

// widths (layers - 1) of hidden layers. Free m->numbers.
static inline void made_up_expert(made_up *m, dc_expert_kind kind, const int *widths, int layers,
                                  bool norm, uint64_t seed) {
    const dc_expert_facts *f = dc_expert_facts_of(kind);
    *m = (made_up){.numbers = calloc(MADE_UP_NUMBERS, sizeof(float))};
    DC_CHECK(m->numbers);
    m->expert = (dc_expert){.kind = kind,
                            .layer_count = layers,
                            .seed = "0",
                            .command = "made up by a test",
                            .scores = "{\"speed\": 0}"};
    int in = f->obs;
    for (int n = 0; n < layers; n++) {
        dc_expert_layer *l = &m->expert.layers[n];
        bool last = n == layers - 1;
        l->in = in;
        l->out = in = last ? f->act : widths[n];
        l->w = made_up_numbers(m, seed, (int64_t)l->in * l->out, 0, 1.5f / sqrtf((float)l->in));
        l->b = made_up_numbers(m, seed, l->out, 0, 0.1f);
        if (last || !norm) continue;
        l->scale = made_up_numbers(m, seed, l->out, 1, 0.1f);
        l->bias = made_up_numbers(m, seed, l->out, 0, 0.1f);
    }
}

#endif
