// Philox4x32-10, the counter-based random generator (Salmon et al. 2011). A draw is a pure function
// of (seed, stream, step, index), so the same seed gives the same numbers on any device, with any
// number of threads, and after a resume. Both compilers, C and CUDA, take this header.
#ifndef DC_PHILOX_H
#define DC_PHILOX_H

#include <stdint.h>

#ifdef __CUDACC__
#define DC_HD static __host__ __device__ inline
#else
#define DC_HD static inline
#endif

// Names of the random streams. A number once given is never reused: it is part of every run's identity.
enum {
    DC_STREAM_SLOT = 1,        // which slot a row takes
    DC_STREAM_SEGMENT = 2,     // a slot's next segment: (slot, generation)
    DC_STREAM_SPLIT = 3,       // random splits and candidates of explicit trees
    DC_STREAM_STATE = 4,       // states that a value is trained at
    DC_STREAM_GOAL = 5,        // and their goals
    DC_STREAM_PAIR = 6,        // i.i.d. pairs (methods without recursion)
    DC_STREAM_SUBGOAL = 7,     // random subgoals of transitive methods
    DC_STREAM_INIT = 8,        // network weights
    DC_STREAM_LOCK = 9,        // combination-lock: permutation and answers
    DC_STREAM_GROUND = 10,     // one-step grounding rows
    DC_STREAM_ENV = 11,        // environments: (episode, draw)
    DC_STREAM_ACTOR = 20,      // states that a policy is trained at
    DC_STREAM_ACTOR_GOAL = 21, // and their goals
    DC_STREAM_NOISE = 22,      // a batch's normals: where a flow's path starts, a sampled action
    DC_STREAM_TIME = 23,       // flow policies: time on the path
    DC_STREAM_CANDIDATE = 24,  // flow policies: starts of candidates, when acting
    DC_STREAM_HELD_OUT = 25,   // pairs of held-out states
    DC_STREAM_VIA = 26,        // states that a route may pass through
    DC_STREAM_FAR = 27,        // states that are taken to be far
    DC_STREAM_EXPLORE = 28,    // uniform actions before learning begins: (step, robot and action)
    DC_STREAM_CROP = 29,       // random crops: whether, and each row's offset
    DC_STREAM_BOOTSTRAP = 32,  // reports: seeds drawn for an interval
    DC_STREAM_AGAIN = 256,     // from one NOISE or TIME of a batch to its next
};

typedef struct dc_u32x4 {
    uint32_t v[4];
} dc_u32x4;

DC_HD dc_u32x4 dc_philox(uint64_t seed, uint32_t stream, uint64_t step, uint32_t index) {
    uint32_t c0 = index, c1 = (uint32_t)step, c2 = (uint32_t)(step >> 32), c3 = stream;
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    dc_u32x4 out = {{c0, c1, c2, c3}};
    return out;
}

// Uniform in [0, n) for n up to 2^32, from one word; the bias is below n / 2^32.
DC_HD uint32_t dc_below(uint32_t word, uint32_t n) {
    return (uint32_t)(((uint64_t)word * n) >> 32);
}

// Uniform in [0, n) for n up to 2^63, from two words; the bias is below n / 2^64.
DC_HD uint64_t dc_below64(uint32_t hi, uint32_t lo, uint64_t n) {
    // High 64 bits of the 128-bit product, in halves that both compilers know.
    uint64_t x1 = hi, x0 = lo, n1 = n >> 32, n0 = (uint32_t)n;
    uint64_t mid = x1 * n0 + ((x0 * n0) >> 32);
    uint64_t mid2 = x0 * n1 + (uint32_t)mid;
    return x1 * n1 + (mid >> 32) + (mid2 >> 32);
}

// Uniform in [0, 1) with 24 bits: the same number as float and as double.
DC_HD float dc_unit(uint32_t word) {
    return (float)(word >> 8) * (1.0f / 16777216.0f);
}

#endif
