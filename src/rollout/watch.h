// Evaluation on the way: a run's dc_evaluate_fn. train/ knows nothing of environments, so the
// program that starts a run opens a watch first, which also says before training what could not be evaluated:
//
//     dc_watch watch;
//     DC_TRY(dc_watch_open(&watch, &run, &data));     // options are set, nothing is built yet
//     run.evaluate = dc_watch_evaluate, run.evaluate_ctx = &watch;
#ifndef DC_WATCH_H
#define DC_WATCH_H

#include "rollout/eval.h"
#include "train/run.h"

enum { DC_EVAL_SEED = 0 }; // of starts, goals and noise, here and by default in `dcrl eval`

typedef void dc_watch_fn(void *ctx, const dc_run *run, const dc_eval_score *score);

typedef struct dc_watch {
    dc_world *world;
    dc_watch_fn *on_score; // Nullable: called with every new score
    void *on_score_ctx;
    const dc_eval_progress *steps; // Nullable: called with how far an evaluation is
} dc_watch;

// Check that the run's environment has tasks and that its policy will fit them, and build the world.
// Errors: DC_USAGE (no tasks, no policy), DC_BAD_INPUT (other data), DC_UNSUPPORTED (no simulation)
dc_status dc_watch_open(dc_watch *watch, const dc_run *run, const dc_dataset *data);
void dc_watch_close(dc_watch *watch); // safe on a zeroed struct
// ctx is the watch. Evaluates the checkpoint of run->step into RUN/eval.csv.
dc_status dc_watch_evaluate(void *ctx, const dc_run *run, bool due);

#endif
