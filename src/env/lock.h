// combination-lock: H states in a line, two actions. Each state has one answer action, drawn by the
// seed, that leads one state on; the other leads back to state 0. States look like ceil(log2 H)-bit
// codes under a seeded permutation, so their order cannot be read off. Distances forward are known:
// d(s, g) = g - s.
#ifndef DC_LOCK_H
#define DC_LOCK_H

#include "base/status.h"
#include "data/dataset.h"

#include <stdint.h>

typedef struct dc_lock {
    int horizon; // states
    int bits;    // of a code
    int *code;   // (horizon) number whose bits are shown
    int *answer; // (horizon) 0 or 1
    int state;
} dc_lock;

dc_status dc_lock_init(dc_lock *lock, int horizon, uint64_t seed);
void dc_lock_fini(dc_lock *lock);
void dc_lock_reset(dc_lock *lock);
// Take an action (0 or 1); returns the new state.
int dc_lock_step(dc_lock *lock, int action);
// Write the code of a state: (bits) of 0 or 1.
void dc_lock_observe(const dc_lock *lock, int state, float *obs);
// The data set: one trajectory through all states by the answers.
dc_status dc_lock_data(const dc_lock *lock, dc_dataset *data);
// "lock-512" -> 512; a usage error if the name is not of that form or the horizon is out of range.
dc_status dc_lock_horizon(const char *env, int *horizon);

#endif
