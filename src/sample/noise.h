// Random numbers that are not rows: the standard normals and times of flow matching, as functions of
// Philox's counter. The CPU and a CUDA kernel compile this header and get the same bits: there is no
// libm function in it but fmaf and sqrtf, which, like + * /, IEEE 754 rounds correctly, and no sum of a
// product that a compiler could fuse or not (every one is an fmaf).
//
//   stream     step     index          words
//   NOISE      step     number >> 2    a normal each; number = row * columns + column
//   TIME       step     row >> 2       word (row & 3): time of the row
//   + k AGAIN                          the same for a method's further draws, k = 1, 2, ... (sample/gather.h)
//   CANDIDATE  moment   number >> 2    as NOISE, for a policy that acts; see rollout/actor.h
#ifndef DC_NOISE_H
#define DC_NOISE_H

#include "base/philox.h"

#include <math.h>

// -log(n / 2^24) for 0 < n < 2^24, by log m = 2 atanh((m - 1) / (m + 1)) with m in [1/sqrt 2, sqrt 2).
DC_HD float dc_minus_log(uint32_t n) {
    int halvings = 0;
    for (; n < 1u << 23; n <<= 1)
        halvings++;
    float m = (float)n * (1.0f / 16777216.0f); // [1/2, 1), exact
    if (m < 0.70710678f) {
        m += m;
        halvings++;
    }
    float s = (1 - m) / (1 + m), s2 = s * s; // 1 - m is exact, 1 + m is rounded
    float p = fmaf(s2, fmaf(s2, fmaf(s2, fmaf(s2, 1 / 9.0f, 1 / 7.0f), 1 / 5.0f), 1 / 3.0f), 1);
    return fmaf((float)halvings, 0.69314718f, 2 * s * p);
}

// Two independent standard normals by Box and Muller: radius from one word, angle from the other. Off
// by less than 1e-6 from exact arithmetic; the radius has 23 bits, so no number exceeds 5.8.
DC_HD void dc_normals(uint32_t radius, uint32_t angle, float out[2]) {
    float r = sqrtf(2 * dc_minus_log(radius >> 8 | 1));
    // A quarter of the circle by the upper two bits, within it +-pi/4 by Taylor's series.
    float a = fmaf((float)(angle << 2 >> 8), 1.0f / 16777216.0f, -0.5f) * 1.57079633f, a2 = a * a;
    float s = fmaf(a2, fmaf(a2, fmaf(a2, 1 / 362880.0f, -1 / 5040.0f), 1 / 120.0f), -1 / 6.0f);
    float c = fmaf(a2, fmaf(a2, fmaf(a2, -1 / 3628800.0f, 1 / 40320.0f), -1 / 720.0f), 1 / 24.0f);
    float sine = a * fmaf(a2, s, 1), cosine = fmaf(a2, fmaf(a2, c, -0.5f), 1);
    uint32_t quarter = angle >> 30;
    float x = quarter & 1 ? sine : cosine, y = quarter & 1 ? cosine : sine;
    out[0] = r * (quarter == 1 || quarter == 2 ? -x : x);
    out[1] = r * (quarter & 2 ? -y : y);
}

// Standard normal number `number` of a stream at a step.
DC_HD float dc_draw_normal(uint64_t seed, uint32_t stream, uint64_t step, uint32_t number) {
    dc_u32x4 words = dc_philox(seed, stream, step, number >> 2);
    uint32_t pair = number & 2;
    float two[2];
    dc_normals(words.v[pair], words.v[pair + 1], two);
    return two[number & 1];
}

// Time of a row, uniform in [0, 1).
DC_HD float dc_draw_time(uint64_t seed, uint32_t stream, uint64_t step, uint32_t row) {
    return dc_unit(dc_philox(seed, stream, step, row >> 2).v[row & 3]);
}

#endif
