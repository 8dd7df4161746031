// Seconds of clocks that only go forward: of the world, and of this thread's work.
#ifndef DC_CLOCK_H
#define DC_CLOCK_H

#include <time.h>

static inline double dc_clock(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline double dc_now(void) {
    return dc_clock(CLOCK_MONOTONIC);
}

static inline double dc_now_busy(void) {
    return dc_clock(CLOCK_THREAD_CPUTIME_ID);
}

#endif
