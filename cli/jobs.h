// Commands of this program as processes of their own, side by side: what a sweep and the paper's experiments consist
// of. One that fails or is killed takes no other with it.
#ifndef CLI_JOBS_H
#define CLI_JOBS_H

#include "runs.h"

#include <stdbool.h>
#include <sys/types.h>

enum {
    CLI_STOPPED = 75
}; // exit status of what a signal stopped, and the same command goes on with

typedef struct cli_job {
    char **words; // (word_count) of its command line, "dcrl" first; NULL follows
    int word_count, room;
    char folder[DC_PATH_MAX], log[DC_PATH_MAX + 8]; // its output is appended to the log
    pid_t pid;                                      // 0: does not run
    int status;                                     // once it is over
    bool over;
} cli_job;

// Add a word to its command line.
dc_status cli_job_word(cli_job *job, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cli_job_fini(cli_job *job);
// Run it with --dry-run as the last word; its error is ours.
dc_status cli_job_check(cli_job *job);
// What it says goes into its log; what it prints, too, or into `out`, unless that is -1.
dc_status cli_job_start(cli_job *job, int out);
// Run those that are not over, so many at a time, with a line of progress that counts `what` (nullable: without). A signal reaches
// those that run, and no more are started; then the status is DC_OK, as after one that failed, and some are not over.
dc_status cli_jobs_run(cli_job *jobs, int count, int side_by_side, const char *what);

#endif
