// The runs of `dcrl lock`: each is configured first (so that a wrong option is reported before anything
// starts), then run by one of several workers side by side.
#ifndef LOCK_JOBS_H
#define LOCK_JOBS_H

#include "args.h"
#include "report/lock_report.h"
#include "train/run.h"

#include <stdatomic.h>

enum { LOCK_SEEDS_MAX = 1000 };

typedef struct lock_flags {
    char agent[DC_TEXT_MAX], seed[DC_TEXT_MAX], out[DC_TEXT_MAX];
    dc_int_list horizon, hidden;
    int64_t n, steps, slots, batch, threads;
    int device;
} lock_flags;

typedef struct lock_job {
    char folder[1024]; // "": in memory
    dc_run run;
    dc_lock_result result;
    _Atomic int64_t step;   // for the progress line
    _Atomic int64_t before; // of these, done by earlier calls
    dc_status status;
    char error[1024];
} lock_job;

typedef struct lock_sweep {
    lock_job *jobs; // (count)
    int count, threads;
    int64_t steps;                  // of all jobs
    _Atomic int next, done, active; // next job to take; finished jobs; workers still there
    _Atomic int failed;             // non-zero: take no further jobs
    int threads_each;
} lock_sweep;

// Configure one job; `agent` is "name:key=value:...".
dc_status lock_job_init(lock_job *job, const lock_flags *flags, const cli_args *args,
                        const char *agent, int64_t horizon, int64_t seed);
// Run all jobs, with a progress line. The first failure is returned.
dc_status lock_sweep_run(lock_sweep *sweep);
void lock_sweep_fini(lock_sweep *sweep);

#endif
