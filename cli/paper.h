// `dcrl paper`: what stands between a plan (report/experiment.h: which cells there are) and the processes that make
// it: the data sets that its cells need, and its runs, each once however many tables show it.
//
//   DIR/plan.json     scale and experiments that this folder is about
//   DIR/lock          held while a command is at work here
//   DIR/data/         data sets that were made
//   DIR/runs/         PRESET/METHOD[,KEY=VALUE]/: run folders; beside each the log of its process
//   DIR/index.html    the page, DIR/NAME.csv the same numbers
#ifndef CLI_PAPER_H
#define CLI_PAPER_H

#include "jobs.h"

#include "report/experiment.h"

typedef struct paper_flags {
    char out[DC_TEXT_MAX], scale[DC_TEXT_MAX], scales[DC_TEXT_MAX], data[DC_TEXT_MAX];
    int device;
    int64_t jobs, threads, task;
    bool dry_run, slurm, only_data, only_page, names;
} paper_flags;

typedef struct paper_set {                        // a data set
    char env[DC_ENV_NAME_MAX], path[DC_PATH_MAX]; // path: an npz file or a store
    int64_t episodes, rows; // for training; rows of an episode, one more than transitions
    int shards;             // of what is made first; 0: one file
    bool there;
    const char *missing; // Nullable: why it cannot be made
    double bytes;        // of its files
    int obs, act, goal;  // values of a row
} paper_set;

typedef struct paper_run {
    const dc_experiment *experiment;
    dc_cell *cell;
    int set; // in sets; -1: it makes its own data
    bool done;
} paper_run;

typedef struct paper {
    const paper_flags *flags;
    dc_plan plan;
    int wanted;      // of the plan's experiments, the first ones: those that the command names
    paper_set *sets; // (set_count)
    int set_count;
    paper_run *runs; // (run_count)
    int run_count;
} paper;

// Read DIR/plan.json, if there is one: it must be of the same scale, and its experiments join the page.
dc_status paper_join(paper *p);
dc_status paper_write_plan(const paper *p);
// Find sets and runs, and which of them are there.
dc_status paper_find(paper *p);
void paper_fini(paper *p);

// The path of something in DIR: "DIR/NAME". (DC_PATH_MAX)
dc_status paper_path(const paper *p, char *out, const char *name);
// The same of a folder in DIR: neither it nor one on the way from DIR to it is a link.
dc_status paper_folder(const paper *p, char *out, const char *name);
// Whether a set that is made here is finished.
dc_status paper_look(paper_set *set);
// The command lines that make a set: gen, and of shards convert. `which` 0 or 1.
dc_status paper_set_words(const paper *p, const paper_set *set, int which, cli_job *job);
dc_status paper_run_words(const paper *p, const paper_run *run, int threads, cli_job *job);

// Make what is not there, then write the page. Failed runs are an error at the end.
dc_status paper_make(paper *p);
dc_status paper_write_page(paper *p);
// What would be made, and how long that takes.
dc_status paper_tell(const paper *p, bool json);
// Write the scripts of a job array.
dc_status paper_write_slurm(const paper *p);

#endif
