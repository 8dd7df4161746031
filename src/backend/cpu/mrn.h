// What mrn and mrn_pairs share: how a row is cut into chunks, and a chunk into halves.
#ifndef DC_CPU_MRN_H
#define DC_CPU_MRN_H

#include "backend/cpu/cpu.h"

#include <math.h>

typedef struct dc_mrn_shape {
    int chunks, chunk, half; // chunks of a row; columns of a chunk, of its halves
    int most, square; // where in a chunk the half of the largest difference begins, and the other
    bool qrl;
} dc_mrn_shape;

static inline dc_mrn_shape dc_mrn_shape_of(const dc_node *n, int cols) {
    int chunk = cols / (int)n->a, half = chunk / 2;
    bool qrl = n->b == DC_MRN_QRL;
    return (dc_mrn_shape){(int)n->a, chunk, half, qrl ? half : 0, qrl ? 0 : half, qrl};
}

// The length, of a sum of squares. NaN stays NaN.
static inline dc_real dc_mrn_length(const dc_mrn_shape *s, dc_real squares) {
    dc_real kept = squares < (dc_real)1e-12 ? (dc_real)1e-12 : squares;
    return (dc_real)sqrt((double)(s->qrl ? kept : squares + (dc_real)1e-6));
}

// What x - y is multiplied by for its gradient, 1 / length; 0 where the length does not move.
static inline dc_real dc_mrn_slope(const dc_mrn_shape *s, dc_real squares) {
    return s->qrl && squares < (dc_real)1e-12 ? 0 : 1 / dc_mrn_length(s, squares);
}

#endif
