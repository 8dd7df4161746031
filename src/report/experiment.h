// The paper's tables and figures as data: which methods on which tasks, along which option, and what is published
// (configs/paper/experiments.json); and at which scale they are repeated (configs/paper/scales.json, or a
// file of the user's). Both travel inside the library. An experiment at a scale becomes cells, one for
// each task, method and value: the runs that cli/ makes and the page (experiment_page.h) shows.
#ifndef DC_EXPERIMENT_H
#define DC_EXPERIMENT_H

#include "base/options.h"
#include "report/stats.h"
#include "train/run.h"

#include <stdbool.h>
#include <stdint.h>

extern const char dc_experiments_json[], dc_scales_json[]; // the embedded files

enum { DC_OTHER_TASK = 1 }; // of the bits of `differs`: another task stands in

typedef enum dc_view { DC_VIEW_TABLE, DC_VIEW_CURVES, DC_VIEW_PARETO, DC_VIEW_MAPS } dc_view;

typedef struct dc_lock_scale { // of combination locks, which make their own data
    int64_t n, batch, steps;
    dc_int_list hidden;
} dc_lock_scale;

typedef struct dc_paper_scale {
    int64_t steps, seeds, evaluations, episodes;
    int64_t batch;      // 0: as the preset has it
    dc_int_list hidden; // empty: as the preset has it
    int64_t data, rows; // transitions, rows of an episode; 0: as OGBench's set has them
    dc_lock_scale lock;
    // By name, of the scale's file; all Nullable.
    const dc_json *values;          // of an option: these in place of the experiment's
    const dc_json *instead;         // of a task: the preset that stands for it
    const dc_json *sizes;           // of a task: transitions, where they are not `data`
    const dc_json *tasks, *methods; // of the experiment: these alone
    bool own;                       // settings differ from those of the scale's other experiments
} dc_paper_scale;

typedef struct dc_quoted { // a published figure
    double mean, sd;       // NaN: there is none
    bool other_goals;      // of goals that are whole observations
} dc_quoted;

typedef struct dc_reached { // what the runs of a cell found
    bool begun, done;       // some run has begun; all have ended
    dc_spread success;      // percent, or A(H), over seeds; count 0: not evaluated
    dc_interval mean95;
    int64_t steps, transitions;
    dc_spread speed;       // gradient steps per second
    const char *device;    // Nullable
    const char *note;      // Nullable: why the runs cannot be read
    bool page;             // the folder has a report.html
    int points;            // of the curve of success over time
    double *hours, *curve; // (points)
    const char **map;      // (maps) pictures, as SVG
    int maps;
} dc_reached;

typedef struct dc_cell {
    const char *task, *method; // as the paper has them
    const char *preset;        // what is trained: the task's own, or what stands for it; "lock"
    const char *value;         // Nullable: of the option that the experiment goes along
    double x;                  // the same as a number
    const char *missing;       // Nullable: why there can be no run
    const char *env;           // Nullable: the preset's environment
    int64_t transitions;       // wanted of its data; 0: as OGBench's set has them
    const char *folder;        // of its runs, inside the folder of all
    unsigned differs;          // what is not as in the paper: bits, dc_cell_differs says them
    dc_quoted success, speed;
    dc_reached reached;
} dc_cell;

typedef struct dc_experiment {
    const char *name, *title, *says, *found;
    const char *missing; // Nullable: why nothing of it can be made
    const char *along;   // Nullable: an option, "n"
    dc_view view;
    dc_paper_scale scale;
    bool lock;
    bool whole_goals; // whole observations, where the presets' goals are representations
    const char **tasks, **methods, **values; // (task_count), (method_count), (value_count >= 1)
    int task_count, method_count, value_count;
    int tasks_left;                     // of the paper's tasks, how many this scale leaves out
    dc_cell *cells;                     // (tasks, methods, values)
    dc_quoted *average, *average_speed; // (methods) over all tasks
} dc_experiment;

typedef struct dc_plan {
    dc_arena arena;
    const char *scale, *says;      // its name and sentence
    const char *settings;          // the scale as JSON, always in the same words
    const dc_json *all;            // experiments.json
    const dc_json *chosen, *paper; // the scale, and the paper's own
    const dc_json *figures;        // paper.json
    dc_experiment *experiments;    // (count)
    int count;
} dc_plan;

// Open the list of experiments and a scale by name, from a file of scales if one is given.
// Nullable: file. Errors: DC_BAD_INPUT with file and member; DC_USAGE for an unknown scale.
dc_status dc_plan_open(dc_plan *plan, const char *file, const char *scale);
void dc_plan_fini(dc_plan *plan);
// Add experiments by name, "all" for every one; a name that is there already is passed over.
dc_status dc_plan_add(dc_plan *plan, const char *name);

static inline dc_cell *dc_experiment_cell(const dc_experiment *e, int task, int method, int value) {
    return &e->cells[(task * e->method_count + method) * e->value_count + value];
}
static inline int dc_experiment_cells(const dc_experiment *e) {
    return e->task_count * e->method_count * e->value_count;
}

// Each option that a cell sets beside preset, agent and scale, as key and value.
typedef dc_status dc_set_fn(void *ctx, const char *key, const char *value);
dc_status dc_cell_sets(const dc_experiment *e, const dc_cell *cell, dc_set_fn *set, void *ctx);
// The agent's name of a method ("dcrl" of "dcrl:order=down").
void dc_cell_agent(const dc_cell *cell, char agent[DC_TEXT_MAX]);
// Append what the bits of `differs` say: "task, steps".
void dc_cell_differs(unsigned differs, dc_text *out);
// The folder of a run below `dir`.
dc_status dc_cell_member(const dc_experiment *e, const dc_cell *cell, const char *dir, int64_t seed,
                         char *out, size_t size);
// Configure a run as the cell's runs will be. The caller ends it with dc_run_fini.
dc_status dc_cell_configure(const dc_experiment *e, const dc_cell *cell, dc_run *run);

// Fill `reached` of every cell from the folders below `dir`.
dc_status dc_plan_read(dc_plan *plan, const char *dir);

#endif
