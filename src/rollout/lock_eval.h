// How well an agent knows a combination-lock: its distances against the true ones, over all pairs s
// < g.
#ifndef DC_LOCK_EVAL_H
#define DC_LOCK_EVAL_H

#include "algo/agent.h"

#include <stdatomic.h>

enum { DC_LOCK_BINS = 32 };

typedef struct dc_lock_score {
    double accumulated_error; // A(H): mean |d - (g - s)| over pairs with g - s >= H / 2
    int bins;                 // DC_LOCK_BINS, or fewer for short locks
    double distance[DC_LOCK_BINS],
        error[DC_LOCK_BINS]; // middle of each bin of g - s, mean error there
} dc_lock_score;

// The agent's data set must be the lock's single trajectory.
// Makes O(H^2) queries; a non-zero *stop ends it with DC_INTERRUPTED. Nullable: stop
dc_status dc_lock_evaluate(dc_agent *agent, const atomic_int *stop, dc_lock_score *score);

#endif
