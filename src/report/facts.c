// Facts of a page's header, see facts.h.
#include "report/facts.h"

#include "report/markup.h"
#include "report/table.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

// The clock of timing.csv starts anew with each go.
double dc_facts_seconds(const dc_report_run *run) {
    const dc_csv *csv = &run->timing;
    int c = dc_csv_column(csv, "seconds");
    double sum = 0, before = 0;
    if (c < 0 || !csv->rows) return run->result ? run->result->seconds : NAN;
    for (int r = 0; r < csv->rows; r++) {
        double now = dc_csv_at(csv, r, c);
        if (!isfinite(now)) continue;
        sum += now >= before ? now - before : now;
        before = now;
    }
    return sum;
}

void dc_facts_duration(double seconds, dc_text *out) {
    int64_t s = llround(fmin(seconds, 1e15));
    if (s < 60)
        dc_markup_fixed(out, seconds, 1);
    else if (s < 3600)
        dc_text_add(out, "%" PRId64 " min %" PRId64, s / 60, s % 60);
    else
        dc_text_add(out, "%" PRId64 " h %" PRId64 " min", s / 3600, s % 3600 / 60);
    if (s < 3600) dc_text_add(out, " s");
}

static const char *text_of(const dc_report_run *run, const char *key) {
    const dc_json *v = dc_json_get(run->config, key);
    return v && v->kind == DC_JSON_STRING ? v->text : "";
}

void dc_facts_device(const dc_report_run *run, dc_text *out) {
    const char *device = text_of(run, "device"), *name = text_of(run, "arithmetic");
    bool named = *name && strcmp(device, "cpu") != 0;
    dc_text_add(out, named ? "%s (%s)" : "%s", device, name);
}

static const dc_csv *log_of(const dc_report_group *g, int run, bool eval) {
    return eval ? &g->runs[run]->eval : &g->runs[run]->train;
}

// Mean over those runs of a group that have a row of this step at the same place.
static double mean_at(const dc_report_group *g, bool eval, const char *column, int row,
                      double step) {
    double sum = 0;
    int count = 0;
    for (int i = 0; i < g->count; i++) {
        const dc_csv *csv = log_of(g, i, eval);
        int c = dc_csv_column(csv, column);
        if (c < 0 || row >= csv->rows) continue;
        double v = dc_csv_at(csv, row, c);
        if (!isfinite(v) || dc_csv_at(csv, row, dc_csv_column(csv, "step")) != step) continue;
        sum += v;
        count++;
    }
    return count ? sum / count : NAN;
}

static dc_best find(const dc_report_group *g, bool eval, const char *column, double sign) {
    dc_best out = {.best = NAN, .last = NAN};
    const dc_csv *csv = log_of(g, 0, eval);
    for (int i = 1; i < g->count; i++)
        if (log_of(g, i, eval)->rows > csv->rows) csv = log_of(g, i, eval);
    for (int r = 0; r < csv->rows; r++) {
        double step = dc_csv_at(csv, r, dc_csv_column(csv, "step"));
        double v = mean_at(g, eval, column, r, step);
        if (!isfinite(v)) continue;
        out.last = v;
        out.last_step = (int64_t)step;
        if (isfinite(out.best) && sign * v <= sign * out.best) continue;
        out.best = v;
        out.best_step = (int64_t)step;
    }
    return out;
}

dc_best dc_facts_success(const dc_report_group *g) {
    dc_best b = find(g, true, "overall_success", 1);
    b.best *= 100;
    b.last *= 100;
    return b;
}

dc_best dc_facts_held_out(const dc_report_group *g) {
    return find(g, false, DC_HELD_OUT_ERROR, -1);
}

int64_t dc_facts_episodes(const dc_report_run *run) {
    const dc_csv *csv = &run->eval;
    int c = dc_csv_column(csv, "episodes");
    double n = c >= 0 && csv->rows ? dc_csv_at(csv, csv->rows - 1, c) : 0;
    return n > 0 && n < 1e15 ? (int64_t)n : 0;
}
