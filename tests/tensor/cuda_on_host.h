// CUDA kernels on a CPU, for tests on machines without a GPU: a block's threads are coroutines of one thread. They run one
// after the other until each has come to the same instruction that a warp or the block does together; that is then done
// for all of them. A warp whose lanes come to different ones, or a block that waits for who has ended, ends the program.
// Layouts of fragments are those of the PTX manual (mma.m16n8k16, ldmatrix).
#ifndef DC_CUDA_ON_HOST_H
#define DC_CUDA_ON_HOST_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <functional>
#include <vector>

#define __device__
#define __host__

struct index3 {
    unsigned x, y, z;
};
static index3 threadIdx, blockIdx, gridDim, blockDim;

namespace host {

enum waits { RUNS, AT_BLOCK, AT_LOAD, AT_TRANSPOSED, AT_MULTIPLY, AT_SHUFFLE, ENDED };
struct lane {
    ucontext_t context;
    std::vector<char> stack;
    waits at;
    const uint16_t *row; // of ldmatrix
    uint32_t *a;         // its result; the first factor
    const uint32_t *b;
    float *sums;
    float value; // of a shuffle
    int by;
};
static std::vector<lane> lanes;
static ucontext_t scheduler;
static lane *self;
static std::function<void()> kernel;

[[noreturn]] static void fail(const char *what) {
    fprintf(stderr, "thread %u of block %u: %s\n", threadIdx.x, blockIdx.x, what);
    abort();
}

static void wait_at(waits at) {
    self->at = at;
    swapcontext(&self->context, &scheduler);
}

static void enter() {
    kernel();
    wait_at(ENDED);
}

static float number_of(uint16_t bits) {
    uint32_t wide = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &wide, sizeof x);
    return x;
}

static uint16_t element(const uint32_t *registers, int i) {
    return (uint16_t)(registers[i / 2] >> (i % 2 * 16));
}

// Matrix i has the rows of lanes 8 i to 8 i + 7; every lane gets two numbers of it.
static void load(lane *w, bool transposed) {
    for (int l = 0; l < 32; l++)
        if ((uintptr_t)w[l].row % 16) fail("a row of a matrix is not aligned");
    for (int l = 0; l < 32; l++)
        for (int i = 0; i < 4; i++) {
            uint16_t two[2];
            for (int k = 0; k < 2; k++)
                two[k] = transposed ? w[8 * i + l % 4 * 2 + k].row[l / 4]
                                    : w[8 * i + l / 4].row[l % 4 * 2 + k];
            w[l].a[i] = two[0] | (uint32_t)two[1] << 16;
        }
}

static void multiply_warp(lane *w) {
    float a[16][16], b[16][8];
    for (int l = 0; l < 32; l++) {
        int g = l / 4, t = l % 4 * 2;
        for (int i = 0; i < 8; i++) // registers a0 to a3, two numbers each
            a[g + i / 2 % 2 * 8][t + i % 2 + i / 4 * 8] = number_of(element(w[l].a, i));
        for (int i = 0; i < 4; i++)
            b[t + i % 2 + i / 2 * 8][g] = number_of(element(w[l].b, i));
    }
    for (int l = 0; l < 32; l++)
        for (int i = 0; i < 4; i++) {
            int row = l / 4 + i / 2 * 8, column = l % 4 * 2 + i % 2;
            for (int k = 0; k < 16; k++)
                w[l].sums[i] += a[row][k] * b[k][column];
        }
}

static void shuffle_warp(lane *w) {
    float all[32];
    for (int l = 0; l < 32; l++)
        all[l] = w[l ^ w[l].by].value;
    for (int l = 0; l < 32; l++)
        w[l].value = all[l];
}

static void run_lane(int i) {
    self = &lanes[(size_t)i];
    threadIdx.x = (unsigned)i;
    swapcontext(&scheduler, &self->context);
}

// All lanes of a warp, until the block's barrier or the end.
static void run_warp(lane *w) {
    for (;;) {
        for (int l = 0; l < 32; l++)
            if (w[l].at == RUNS) run_lane((int)(w - lanes.data()) + l);
        waits at = w[0].at;
        for (int l = 1; l < 32; l++)
            if (w[l].at != at) fail("lanes of a warp have come to different instructions");
        if (at == AT_BLOCK || at == ENDED) return;
        if (at == AT_LOAD || at == AT_TRANSPOSED) load(w, at == AT_TRANSPOSED);
        if (at == AT_MULTIPLY) multiply_warp(w);
        if (at == AT_SHUFFLE) shuffle_warp(w);
        for (int l = 0; l < 32; l++)
            w[l].at = RUNS;
    }
}

static void run_block() {
    for (size_t i = 0; i < lanes.size(); i++) {
        lane *t = &lanes[i];
        getcontext(&t->context);
        t->stack.resize(1 << 17);
        t->context.uc_stack.ss_sp = t->stack.data();
        t->context.uc_stack.ss_size = t->stack.size();
        t->context.uc_link = NULL;
        t->at = RUNS;
        makecontext(&t->context, enter, 0);
    }
    for (;;) {
        for (size_t i = 0; i < lanes.size(); i += 32)
            run_warp(&lanes[i]);
        waits at = lanes[0].at;
        for (lane &t : lanes) {
            if (t.at != at) fail("a warp has ended, others wait at a barrier");
            t.at = RUNS;
        }
        if (at == ENDED) return;
    }
}

// A kernel of whole warps, block after block.
static void launch(int blocks, int threads, std::function<void()> body) {
    kernel = body;
    lanes.resize((size_t)threads);
    gridDim.x = (unsigned)blocks;
    blockDim.x = (unsigned)threads;
    for (int b = 0; b < blocks; b++) {
        blockIdx.x = (unsigned)b;
        run_block();
    }
}

} // namespace host

static inline void __syncthreads() {
    host::wait_at(host::AT_BLOCK);
}

static inline void load_matrices(uint32_t to[4], const uint16_t *row) {
    host::self->row = row;
    host::self->a = to;
    host::wait_at(host::AT_LOAD);
}

static inline void load_transposed(uint32_t to[4], const uint16_t *row) {
    host::self->row = row;
    host::self->a = to;
    host::wait_at(host::AT_TRANSPOSED);
}

static inline void multiply(float sums[4], uint32_t a[4], const uint32_t b[2]) {
    host::self->sums = sums;
    host::self->a = a;
    host::self->b = b;
    host::wait_at(host::AT_MULTIPLY);
}

static inline float shuffle_xor(float value, int by) {
    host::self->value = value;
    host::self->by = by;
    host::wait_at(host::AT_SHUFFLE);
    return host::self->value;
}

static inline float float_of(uint16_t bits) {
    return host::number_of(bits);
}

// To the nearest, of two the even one.
static inline uint16_t bits_of(float x) {
    uint32_t wide;
    memcpy(&wide, &x, sizeof wide);
    if (x != x) return 0x7fff;
    return (uint16_t)((wide + 0x7fff + (wide >> 16 & 1)) >> 16);
}

static inline uint32_t pair_of(float low, float high) {
    return bits_of(low) | (uint32_t)bits_of(high) << 16;
}

static inline float low_of(uint32_t pair) {
    return float_of((uint16_t)pair);
}

static inline float high_of(uint32_t pair) {
    return float_of((uint16_t)(pair >> 16));
}

static inline float sum_of_pair(uint32_t pair) {
    return low_of(pair) + high_of(pair);
}

static inline uint32_t relu_pair(uint32_t pair) {
    float a = low_of(pair), b = high_of(pair);
    return pair_of(a > 0 || a != a ? a : 0, b > 0 || b != b ? b : 0);
}

#endif
