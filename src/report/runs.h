// Run folders as a report reads them. A path is a run (it holds config.json) or a folder of runs,
// such as `dcrl lock --out` makes. Runs that differ only by their seed are one group: the unit of
// every table and curve. Files come from disk and may be damaged; each error names file and line.
#ifndef DC_RUNS_H
#define DC_RUNS_H

#include "base/arena.h"
#include "base/json.h"
#include "report/csv.h"
#include "report/lock_report.h"

#include <stdbool.h>
#include <stdint.h>

// A picture that lies in a run folder as map-NAME.svg: a value map with rollouts, for instance.
typedef struct dc_report_map {
    const char *name; // of the file, without map- and .svg
    const char *bytes;
    size_t size;
} dc_report_map;

typedef struct dc_report_run {
    const char *folder;
    const char *env, *agent; // of config.json, as is the seed
    bool alone;              // data without an environment: env is the name of their file
    int64_t seed;
    int64_t transitions; // of its data; 0: config.json, of an older program, does not say
    const dc_json *config;
    dc_csv train, timing, eval;   // rows 0: the file is missing or empty
    const dc_lock_result *result; // of `dcrl lock`; Nullable
    dc_report_map *maps;          // (map_count) by name
    int map_count;
    bool done;
    const dc_json **options; // (option_count) of the config, those that count, by key
    int option_count;
} dc_report_run;

typedef struct dc_report_group {
    const char *env, *agent;
    const char *label;  // the agent, with what sets it apart from others: "dcrl:recursion=off"
    const char *method; // the label as the paper would have it: how a policy is extracted is its
                        // setting of an environment, not another method
    const dc_report_run **runs; // (count) by seed
    int count;
    int place, env_place; // in dc_runs: of the group, of its environment
    int style;            // of the label, on the whole page
} dc_report_group;

typedef struct dc_report_env {
    const char *name;
    dc_report_group **groups;   // (count) in their order
    const dc_report_run **runs; // (run_count) in theirs
    int count, run_count;
} dc_report_env;

typedef struct dc_runs {
    dc_arena arena;
    dc_report_run *runs; // (count) in the order of the paths, then by name
    int count;
    dc_report_group *groups; // (group_count) in order of first appearance
    int group_count;
    dc_report_env *envs; // (env_count) in order of first appearance
    int env_count;
} dc_runs;

// Read every run of the paths and group them.
// Errors: DC_IO (no such folder, no run in it), DC_BAD_INPUT (a damaged file, a run given twice).
dc_status dc_runs_read(dc_runs *runs, const char *const *paths, int count);
void dc_runs_fini(dc_runs *runs);

// Whether an option can change what a run learns; seed, threads and paths of files cannot.
bool dc_runs_counts(const dc_report_run *run, const char *key);
// Whether a run's option has its default value (false for a key that no table knows).
bool dc_runs_default(const dc_report_run *run, const dc_json *option);
bool dc_runs_same_value(const dc_json *a, const dc_json *b); // Nullable: both
// Append an option's value as a command line takes it: 0.7, on, 512,512.
void dc_runs_value(const dc_json *option, dc_text *out);
// An option of a run; NULL if it has none of that name, or if that does not count.
const dc_json *dc_runs_option(const dc_report_run *run, const char *key);
// Length of the name of the task whose success a column of eval.csv holds: of "task1" in "task1_success",
// "overall"; 0 for other columns.
size_t dc_runs_task(const char *column);

#endif
