// Several methods on several tasks, as one table: for each pair our success with its interval, the
// published figure, seeds, steps and data. Its cells are the overall scores of table.c. A task is an
// environment's name without -oraclerep; which goals a method was given stands with the method ("dcrl,
// oraclerep"), so that methods of either kind share a table and their figures stay apart. Goes to the
// page (html.c), and to Markdown, JSON and terminals here.
#ifndef DC_COMPARE_H
#define DC_COMPARE_H

#include "report/table.h"

typedef struct dc_compare_cell { // a method on a task
    int task, method;
    const dc_score *score;
} dc_compare_cell;

typedef struct dc_compare {
    const char **task;     // (tasks) in order of first appearance, as are methods
    const char **method;   // (methods) labels of groups, with their kind of goals
    dc_compare_cell *cell; // (count) by task, then by method: of most pairs there may be none
    int tasks, methods, count;
    const dc_score *any;                    // the first score
    bool same_seeds, same_steps, same_data; // in all scores
} dc_compare;

// Borrows: table, arena.
dc_status dc_compare_build(dc_compare *compare, const dc_table *table, dc_arena *arena);

// The table as it is best read: what there is more of, methods or tasks, goes down.
typedef struct dc_compare_grid {
    const dc_compare *compare;
    const char *what;           // the rows are: "method", "task"
    const char **row, **column; // (rows), (columns)
    int rows, columns;
} dc_compare_grid;

// Whether so many rows and columns are more than a table can show.
bool dc_compare_too_large(int rows, int columns);

dc_compare_grid dc_compare_lay(const dc_compare *compare);
const dc_score *dc_compare_at(const dc_compare_grid *grid, int row, int column); // Nullable

// Seeds, steps and data behind scores: append those that all scores have in common, or of one score
// those that they do not; nothing if there are none. "3 seeds, 300k steps, data 1M".
void dc_compare_common(const dc_compare *compare, dc_text *out);
void dc_compare_behind(const dc_compare *compare, const dc_score *score, dc_text *out);

// Call for every table that figures of a task come from, once each.
typedef void dc_compare_source_fn(void *ctx, const char *task, const dc_paper_figure *figure);
void dc_compare_sources(const dc_compare *compare, dc_compare_source_fn *call, void *ctx);

void dc_compare_markdown(const dc_compare *compare, dc_text *out);
// For a terminal, plain ASCII: a block a task, a line a method.
void dc_compare_text(const dc_compare *compare, dc_text *out);
// An array of objects, one for each pair that was evaluated.
void dc_compare_json(const dc_compare *compare, dc_text *out);

#endif
