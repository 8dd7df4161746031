// Elementary functions that the compiler can put into vector registers.
#ifndef DC_FASTMATH_H
#define DC_FASTMATH_H

#include "tensor/real.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

// exp(x). In float: x = k ln 2 + r with |r| <= ln 2 / 2, a polynomial of degree 6 in r, then k goes
// into the exponent's bits; 1.1 ulp at worst on [-87, 88], flat outside. In double: the library's
// own.
static inline dc_real dc_fast_exp(dc_real x) {
#ifdef DC_DOUBLE
    return exp(x);
#else
    x = x < -87.0f ? -87.0f : x;
    x = x > 88.0f ? 88.0f : x;
    float shifted = x * 1.44269504f + 12582912.0f; // 1.5 * 2^23: rounds to the nearest whole number
    float k = shifted - 12582912.0f;
    float r = x - k * 0.693359375f; // ln 2 in two parts, the first exact in few bits
    r = r + k * 2.12194440e-4f;
    float p = 1.38888889e-3f;
    p = p * r + 8.33333333e-3f;
    p = p * r + 4.16666667e-2f;
    p = p * r + 1.66666667e-1f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    int32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (int32_t)((uint32_t)bits << 23) + 0x3f800000; // low bits of `shifted` are k
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    return p * scale;
#endif
}

// gelu in its tanh form, x s(x) with the gate s(x) = sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3).
static inline dc_real dc_fast_gelu_u2(dc_real x) {
    return (dc_real)1.5957691216057308 * x * (1 + (dc_real)0.044715 * x * x);
}

static inline dc_real dc_fast_gelu(dc_real x) {
    return x / (1 + dc_fast_exp(-dc_fast_gelu_u2(x)));
}

static inline dc_real dc_fast_gelu_gate(dc_real x) {
    return 1 / (1 + dc_fast_exp(-dc_fast_gelu_u2(x)));
}

// d gelu / dx, given the gate s and h = x s.
static inline dc_real dc_fast_gelu_slope(dc_real x, dc_real s, dc_real h) {
    return s + h * (1 - s) * (dc_real)1.5957691216057308 * (1 + (dc_real)0.134145 * x * x);
}

#endif
