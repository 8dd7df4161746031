// How fast robots act: for `dcrl bench expert`.
#ifndef DC_ONLINE_BENCH_H
#define DC_ONLINE_BENCH_H

#include "online/learn.h"

typedef struct dc_learn_rates { // steps of the environment per second, all threads together
    double acting;              // with the policy and the replay
    double bare;                // the same robots' simulation alone, by the same actions
    double cpu_ratio;           // of the processor time of the second to that of the first
} dc_learn_rates;

// Let a learner's robots act for `seconds`, and the simulation alone take the same actions from the same states, by
// turns of a round: a busy machine slows both alike. Nothing is learned.
dc_status dc_learn_measure(dc_learn *learn, double seconds, dc_learn_rates *rates);

#endif
