// The numbers of a report: one list of scores, a row for each group and metric, that the page, the
// CSV and the Markdown all read. A run's success is the mean over its last three evaluations (the
// paper's rule), in percent; a score is its mean and standard deviation over seeds.
#ifndef DC_TABLE_H
#define DC_TABLE_H

#include "report/paper.h"
#include "report/runs.h"
#include "report/stats.h"

enum { DC_LAST_EVALUATIONS = 3 };
#define DC_HELD_OUT_ERROR "val_value_error" // in train.csv

typedef enum dc_metric {
    DC_METRIC_TASK,       // success of one task, percent
    DC_METRIC_OVERALL,    // success over all tasks, percent
    DC_METRIC_LOCK,       // A(H) of a combination lock
    DC_METRIC_HELD_OUT,   // error of predicted distances on held-out rows, steps
    DC_METRIC_THROUGHPUT, // gradient steps per second
} dc_metric;

typedef struct dc_score {
    const dc_report_group *group;
    dc_metric metric;
    const char *name;     // as in the CSV: "task1_success", "steps_per_second"
    const char *task;     // of a success: "task1", "overall"; else NULL
    int evaluations;      // fewest that a run's success is the mean of; 0 for other metrics
    dc_spread over;       // seeds
    dc_interval mean95;   // of a success, percent: 95 % of its mean; NaN where it cannot be told
    bool over_seeds;      // that interval: over seeds (Student's t), else over episodes (Wilson)
    int64_t steps;        // of a success: last step evaluated, the least over seeds
    bool best;            // overall: within 95 % of the best of its environment, as the paper marks
    int beyond;           // 1, -1: the published figure lies below, above that interval; else 0
    double iqm;           // overall: of all tasks and seeds
    dc_interval interval; // 95 % of the iqm; NaN for fewer than two seeds, or if not asked for
    bool published;
    dc_paper_figure paper;
} dc_score; // what is left out is 0

typedef struct dc_table {
    dc_score *scores; // (count) by group, then by metric
    int count;
    int *first; // (groups + 1) a group's scores are first[place] .. first[place + 1] - 1
} dc_table;

// Score every group; with `every`, each score gets the interval of its iqm, which takes most of the time, else
// the overall success alone. Borrows: runs. The rows live in the arena.
dc_status dc_table_build(dc_table *table, const dc_runs *runs, bool every, dc_arena *arena);
// The score of a group by name ("overall_success"); NULL when there is none.
const dc_score *dc_table_find(const dc_table *table, const dc_report_group *group,
                              const char *name);
// The scores of a group.
const dc_score *dc_table_of(const dc_table *table, const dc_report_group *group, int *count);

// Append text to Markdown: what that or HTML would take as their own becomes a character reference.
void dc_table_md_text(dc_text *out, const char *s);
// Append a field of a CSV line and the comma behind it: a text, quoted where it must be (RFC 4180); a number, nothing if
// it is not there or not finite.
void dc_table_csv_text(dc_text *out, const char *s);
void dc_table_csv_number(dc_text *out, double x, bool there);

// Held-out error of every group that has one, a line each; nothing where none has.
void dc_table_held_out(const dc_table *table, dc_text *out);
// One line a score, full precision.
void dc_table_csv(const dc_table *table, dc_text *out);
// One table for each environment with evaluations, then A(H), held-out error, throughput.
void dc_table_markdown(const dc_table *table, const dc_runs *runs, dc_text *out);

#endif
