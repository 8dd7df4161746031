// Training: a run takes options as text, the keys that `dcrl train --help` and `dcrl list agents` show,
// and keeps its checkpoints in a folder. A run is used by one thread at a time, except for
// dcrl_run_stop.
//
//     dcrl_run_new -> dcrl_run_set ... -> dcrl_run_start -> dcrl_run_train -> dcrl_run_free
//     dcrl_run_resume                                    -> dcrl_run_train -> dcrl_run_free
#ifndef DCRL_TRAIN_H
#define DCRL_TRAIN_H

#include <dcrl/dataset.h>
#include <dcrl/policy.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dcrl_run dcrl_run;

typedef struct dcrl_progress {
    int64_t step, steps; // updates done, and to do in all
    double seconds;      // since dcrl_run_train was called
    double loss;         // mean of the last log row; 0 before the first
} dcrl_progress;

// Called about five times per second; anything but 0 saves and stops the run.
typedef int dcrl_progress_fn(void *ctx, const dcrl_progress *progress);

// A row of train.csv, as it is written every "log_every" updates.
typedef struct dcrl_row {
    int64_t step;
    double seconds,
        rate;  // since dcrl_run_train was called; updates per second since the row before
    int count; // of metrics
    const char *const *names; // (count)
    const double *values;     // (count) means since the row before
} dcrl_row;

// Called by the thread that trains, which waits; what is pointed to stays until the call ends. Anything but 0 saves and
// stops the run.
typedef int dcrl_row_fn(void *ctx, const dcrl_row *row);
// The same after every evaluation on the way (option "eval_every").
typedef int dcrl_score_fn(void *ctx, int64_t step, const dcrl_score *score);

// A run with the options of a preset, an agent's defaults, or both. Nullable: preset, agent
DCRL_API dcrl_status dcrl_run_new(dcrl_run **run, const char *preset, const char *agent);
// Set an option by name, before the run starts ("steps", "seed", "hidden", "gamma", ...).
DCRL_API dcrl_status dcrl_run_set(dcrl_run *run, const char *key, const char *value);
// Build the agent in a folder that holds no run yet; without data the options "data" and "env" name it.
// Nullable: data. Borrows: data, until dcrl_run_free.
DCRL_API dcrl_status dcrl_run_start(dcrl_run *run, const dcrl_dataset *data, const char *folder);
// Go on with a run folder from its newest checkpoint, on the same data; threads 0 takes all cores.
// Nullable: data. Borrows: data, until dcrl_run_free.
DCRL_API dcrl_status dcrl_run_resume(dcrl_run **run, const dcrl_dataset *data, const char *folder,
                                     int threads);
// Train to the last step; DCRL_INTERRUPTED after a stop, and then it may be called again.
// Nullable: progress
DCRL_API dcrl_status dcrl_run_train(dcrl_run *run, dcrl_progress_fn *progress, void *ctx);
// Be told of rows and scores by the following calls of dcrl_run_train. Nullable: fn
DCRL_API dcrl_status dcrl_run_on_row(dcrl_run *run, dcrl_row_fn *fn, void *ctx);
DCRL_API dcrl_status dcrl_run_on_score(dcrl_run *run, dcrl_score_fn *fn, void *ctx);
// Ask a run to save and stop, from any thread or signal handler.
DCRL_API void dcrl_run_stop(dcrl_run *run);
// Updates done so far.
DCRL_API int64_t dcrl_run_step(const dcrl_run *run);
// Free a run; its folder stays. Nullable: run
DCRL_API void dcrl_run_free(dcrl_run *run);

#ifdef __cplusplus
}
#endif
#endif
