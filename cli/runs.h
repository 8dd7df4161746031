// What `train` and `lock` share: the data of a run, going on with a folder, stop signals, progress
// lines.
#ifndef CLI_RUNS_H
#define CLI_RUNS_H

#include "args.h"

#include "base/clock.h"
#include "env/spec.h"
#include "rollout/eval.h"
#include "train/folder.h"
#include "train/run.h"

#include <stdatomic.h>

// Non-zero once one of these arrived: SIGINT, SIGTERM, SIGUSR1, SIGXCPU (ulimit -t), SIGHUP unless it is ignored (nohup).
extern atomic_int cli_stop;
void cli_catch_signals(void);

// Set --set key=value pairs on a run.
dc_status cli_run_sets(dc_run *run, const cli_args *args);

// Numbers of a list "0,1,5" or a range "0-7", at most `max`.
dc_status cli_seeds(const char *text, int64_t *seeds, int max, int *count);

// A checkpoint of a run to play with.
typedef struct cli_pick {
    char folder[DC_PATH_MAX]; // of the run
    int64_t step;
    char path[DC_PATH_MAX]; // of the checkpoint
    char env[DC_TEXT_MAX];
    dc_env_spec spec;
} cli_pick;
// The checkpoint of a step; -1: the newest. Of a folder of seeds the least one's.
dc_status cli_run_pick(cli_pick *pick, const char *folder, int64_t step);

// A status line on standard error: rewritten in place on a terminal, else a plain line now and
// then.
typedef struct cli_line {
    bool terminal, shown;
    bool quiet;  // shows nothing
    double last; // of a plain line
} cli_line;
void cli_line_init(cli_line *line);
void cli_line_show(cli_line *line, const char *text);
void cli_line_clear(cli_line *line);

// What is counted and takes more than two seconds, on such a line: "drawing 30/1001 frames (3%)  5 frames/s  ETA 3:14".
typedef struct cli_progress {
    cli_line *line;
    const char *what, *unit;
    double start, shown;
} cli_progress;
// ctx is the progress; the clock starts when none is done.
void cli_progress_show(void *ctx, int64_t done, int64_t all);
// Set it up; the result is the callback that shows it.
dc_eval_progress cli_progress_on(cli_progress *progress, cli_line *line, const char *what,
                                 const char *unit);

// The next part of *rest before `mark`, which is overwritten; NULL when there is none left.
char *cli_split(char **rest, char mark);
// "1:02:03", "2:03"
const char *cli_duration(double seconds, char out[32]);

#endif
