// Results of combination-lock runs: as JSON (one object a run), as a table for people, as a plot,
// and in one sentence.
#ifndef DC_LOCK_REPORT_H
#define DC_LOCK_REPORT_H

#include "base/json.h"
#include "base/options.h"
#include "base/text.h"
#include "report/plot.h"
#include "rollout/lock_eval.h"

enum { DC_LOCK_AGENTS_MAX = 32 }; // of one table

typedef struct dc_lock_result {
    char agent[DC_TEXT_MAX];                       // as asked for: "dcrl:recursion=off"
    int64_t horizon, n, steps, seed, batch, slots; // n and slots -1: the method has none
    dc_int_list hidden;
    double steps_per_second, seconds;
    dc_lock_score score;
} dc_lock_result;

void dc_lock_result_json(const dc_lock_result *result, dc_text *out);
// Read what dc_lock_result_json wrote; `what` names the file in errors.
dc_status dc_lock_result_read(const dc_json *object, const char *what, dc_lock_result *result);

// Rows by agent, columns by horizon, mean and standard deviation over seeds.
void dc_lock_table(const dc_lock_result *results, int count, dc_text *out);
// A(H) with seed bands where there are several horizons, and error by distance at the longest.
dc_status dc_lock_plot(const dc_lock_result *results, int count, dc_text *out);
// The same as figures apart, `each` called with every panel of the plot in turn. Nullable: style, (count)
// that of each result's agent; else by order.
typedef dc_status dc_lock_panel_fn(void *ctx, const dc_panel *panels, int count, int which);
dc_status dc_lock_panels(const dc_lock_result *results, const int *style, int count,
                         dc_lock_panel_fn *each, void *ctx);
// Which method has the lowest long-range error at the longest horizon, and by how much.
void dc_lock_sentence(const dc_lock_result *results, int count, dc_text *out);

#endif
