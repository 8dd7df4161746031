// Run: trains an agent and keeps what it does in a folder that survives anything.
//
//   RUN/config.json          fully resolved options, the data's size and hash, the build's id
//   RUN/train.csv            means of the metrics between two log steps, and those of held-out rows
//                            (held_out.h): same seed, same bytes
//   RUN/timing.csv           wall-clock seconds and steps per second, and of how many runs together, apart: they are
//                            never the same
//   RUN/step-*.safetensors   complete state: weights, targets, Adam moments, sampler, log sums
//   RUN/eval.csv             evaluations on the way, if `evaluate` is set
//   RUN/DONE                 written last
//
// Stopping anywhere and resuming gives the same bytes as never having stopped.
//
// Runs that differ in nothing but their seed can be trained side by side, as a population: an array of
// runs that share threads, device and data, each with its folder and equal to its single run. A GPU trains
// all of them in one recorded graph; on the CPU they take turns. Every function of one run is the
// population's with one member.
#ifndef DC_RUN_FOLDER_H
#define DC_RUN_FOLDER_H

#include "algo/agent.h"
#include "base/options.h"
#include "train/checkpoint.h"
#include "train/trainer.h"

#include <stdatomic.h>

enum { DC_RUNS_MAX = 64, DC_RUN_ERROR = 1024 }; // members of a population
enum { DC_LOG_COLUMNS = 2 * DC_METRICS_MAX + 3 };

typedef struct dc_held_out dc_held_out;

typedef struct dc_run_options {
    char agent[DC_TEXT_MAX], env[DC_TEXT_MAX], data[DC_TEXT_MAX], goal_column[DC_TEXT_MAX];
    int64_t steps, seed, batch, crop_pad, threads, log_every, save_every, keep, eval_every,
        eval_episodes;
    dc_int_list hidden;
    double lr, tau, gamma, crop;
    int device, precision, feed, form, obs_scale, fusion;
    dc_int_list rep;
    char act_scale[DC_TEXT_MAX], picture[DC_TEXT_MAX], val[DC_TEXT_MAX];
    bool last_action, average;
} dc_run_options;

extern const dc_option dc_run_table[]; // over dc_run_options

typedef void dc_progress_fn(void *ctx, const dc_run *run, double seconds);
// A row of train.csv was written: run->last, at run->step; rate: updates per second since the row before.
typedef void dc_row_fn(void *ctx, const dc_run *run, double seconds, double rate);
// Brings eval.csv in line with run->step, whose checkpoint is saved: rows of later steps go, and if
// this step is `due` and has no row yet, it gets one. The stages after this one know how.
typedef dc_status dc_evaluate_fn(void *ctx, const dc_run *run, bool due);

struct dc_run {
    dc_run_options options;
    const dc_algo *algo;
    void *config; // the method's own options (algo->config_size)
    const dc_dataset *data;
    dc_pool *pool;
    dc_agent agent;
    dc_trainer *trainer;
    int member;   // its number there; -1: it is not there now
    bool shares;  // pool and trainer belong to the population's first run, which outlives this
    char *folder; // NULL: nothing is written

    int64_t step;                    // updates done
    int64_t first_step;              // that this process started from
    int64_t saved_step;              // of the newest checkpoint; -1: none
    double sums[DC_METRICS_MAX + 2]; // metrics and gradient norm since the last log row
    int64_t sum_count;
    double last[DC_LOG_COLUMNS]; // columns of the last log row
    dc_held_out *held_out;       // Nullable; belongs to the population's first run
    double log_time;             // when the last log row was closed, and at which step
    int64_t log_step;
    dc_status ended; // DC_NOT_FINITE: it trains no more, for the reason in `error`
    char error[DC_RUN_ERROR];
    bool changed, other_steps; // options were given anew to go on with; steps among them
    int csv, timing;           // file descriptors, -1 when closed
    bool old_timing;           // timing.csv is of a program that wrote fewer columns
    int lock;                  // on the folder, against a second process; -1: none

    const dc_dataset *val; // Nullable: held-out rows, set by the caller before start or resume
    // Nullable: the ranks that train together, set by the caller before start. Every one has the same runs, of which
    // those of rank 0 alone have folders and may resume; dc_population_meet brings the others there.
    dc_ranks *ranks;
    // Set by the caller before dc_run_train; all Nullable.
    const atomic_int *stop;   // non-zero: save and stop
    dc_progress_fn *progress; // called about five times per second
    void *progress_ctx;
    dc_row_fn *on_row;
    void *on_row_ctx;
    dc_evaluate_fn *evaluate; // called at the start and every eval_every steps; its time is not
    void *evaluate_ctx;       // counted as training
};

// A run that holds nothing yet; dc_run_fini does nothing to it.
#define DC_RUN_NONE ((dc_run){.saved_step = -1, .csv = -1, .timing = -1, .lock = -1})

// Options from text: the name of the method decides which further keys exist. `config` is taken
// with calloc(algo->config_size) by dc_run_configure and freed by dc_run_fini.
dc_status dc_run_configure(dc_run *run, const char *agent);
// The options of the agent that the run would build.
dc_status dc_run_agent_options(const dc_run *run, dc_agent_options *out);
// Set one key, of the run or of the method.
dc_status dc_run_set(dc_run *run, const char *key, const char *value);
// Set every member of a JSON object (config.json or a preset); "agent" must have been configured.
dc_status dc_run_set_json(dc_run *run, const dc_json *object);

// Configure a run as the config.json of a folder says.
dc_status dc_run_reconfigure(dc_run *run, const dc_json *config, const char *folder);
// An error that names that file, with its remedy: what is wrong with it is no fault of the command line.
// Whether config.json says this beside options: of its data and of the program.
bool dc_run_is_record(const char *key);
// What decides the last bits of the run's numbers, in words: config.json says it as "arithmetic".
void dc_run_arithmetic(const dc_run *run, char out[DC_ARITHMETIC_MAX]);
dc_status dc_run_config_error(const char *folder, dc_status status, const char *what);

// Build the agent. folder NULL: train in memory. A folder that holds a run already is refused.
// Borrows: data (until fini).
dc_status dc_run_start(dc_run *run, const dc_dataset *data, const char *folder);
// Continue from the newest good checkpoint of the folder (from step 0 if there is none yet). A
// checkpoint that cannot be read is passed over with a warning; if none can, that is an error.
dc_status dc_run_resume(dc_run *run, const dc_dataset *data, const char *folder);
// Train to options.steps. DC_INTERRUPTED after a stop; state was saved then.
dc_status dc_run_train(dc_run *run);

// The same for a population; data and folders are one for each run, and data sets may be the same one.
// A member that had not begun when its population was stopped begins with a resume, as it is configured.
// Members that stand at different steps after a resume are brought to the same one first. NaN or Inf
// ends its member (ended, error) and the others go on, then it is the status of the whole; after a stop
// or any other failure all are saved.
dc_status dc_population_start(dc_run *runs, int count, const dc_dataset *const *data,
                              const char *const *folders);
dc_status dc_population_resume(dc_run *runs, int count, const dc_dataset *const *data,
                               const char *const *folders);
// Between start or resume and training, on all ranks: rank 0's state for everyone. Errors: DC_USAGE if the ranks have
// different commands.
dc_status dc_population_meet(dc_run *runs, int count);
dc_status dc_population_train(dc_run *runs, int count);
void dc_population_fini(dc_run *runs, int count);
// For training: give the runs that are marked a trainer of their own, in order; the others leave it.
dc_status dc_population_select(dc_run *runs, int count, const bool *marked);
// Whether a step is one to evaluate: every eval_every steps, and the last.
bool dc_run_evaluates(const dc_run *run, int64_t step);
// Write a checkpoint now. DC_NOT_FINITE, and nothing written, if the state holds NaN or Inf.
dc_status dc_run_save(dc_run *run);
void dc_run_fini(dc_run *run);

// Columns of train.csv after "step": metrics of training, then those of held-out rows.
int dc_run_column_count(const dc_run *run);
const char *dc_run_column_name(const dc_run *run, int i);
// The first of them, which are means over the steps since the last row.
int dc_run_metric_count(const dc_run *run);
const char *dc_run_metric_name(const dc_run *run, int i);

// Read RUN/config.json into an arena.
dc_status dc_run_read_config(const char *folder, dc_arena *arena, const dc_json **root);
// Name of the environment of RUN/config.json, "" if it names none.
dc_status dc_run_env(const char *folder, char env[DC_TEXT_MAX]);
// Whether a folder holds a run: its config.json is there, which is written first.
dc_status dc_run_begun(const char *folder, bool *begun);
dc_status dc_run_done(const char *folder, bool *done);
// Errors: DC_USAGE if a folder holds a run already.
dc_status dc_run_refuse(const char *folder);

#endif
