// A sweep: a train command in which options have several values stands for one run of each combination. The runs
// are processes of their own, side by side on this machine, each in a folder of its own; the same command goes on
// with those that are not done. At the end there is one report.
#ifndef CLI_SWEEP_H
#define CLI_SWEEP_H

#include "args.h"

#include "train/run.h"

// What of a train command a sweep is about.
typedef struct cli_sweep_command {
    const cli_args *args;
    const dc_run_options *run; // as the flags say
    const char *out;
    int64_t jobs; // runs at a time; 0: one for each core, on a GPU one
} cli_sweep_command;

// Whether options have several values: more than one preset, --agent A,B, --env A,B, --set key=1,2.
bool cli_sweeps(const cli_args *args, const dc_run_options *run);
dc_status cli_sweep(const cli_sweep_command *command);

#endif
