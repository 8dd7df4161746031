// Learning curves, see curves.h. Logs come from runs.c, panels go to plot.c. A curve has at most
// POINTS points: the rows of the group's longest log, in blocks; a seed's value is its mean over
// the block's steps, so that seeds with logs of another rhythm, or stopped early, still count.
#include "report/curves.h"

#include "report/stats.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { POINTS = 200, LABEL = 128 };

typedef struct builder {
    dc_curves *curves;
    const dc_runs *runs;
    dc_arena *arena;
    double *seeds; // (count of runs) values of one point
} builder;

typedef struct metric {
    const char *env, *name;
    bool success; // eval.csv, in percent; else train.csv
} metric;

static const dc_csv *log_of(const dc_report_run *run, const metric *m) {
    return m->success ? &run->eval : &run->train;
}

// Mean of a column over the rows with low < step <= high; NaN if there are none.
static double mean_between(const dc_csv *csv, const char *column, double low, double high) {
    int c = dc_csv_column(csv, column), step = dc_csv_column(csv, "step"), count = 0;
    double sum = 0;
    for (int r = 0; c >= 0 && r < csv->rows && dc_csv_at(csv, r, step) <= high; r++) {
        double v = dc_csv_at(csv, r, c);
        if (dc_csv_at(csv, r, step) <= low || !isfinite(v)) continue;
        sum += v;
        count++;
    }
    return count ? sum / count : NAN;
}

static const dc_csv *longest(const dc_report_group *g, const metric *m) {
    const dc_csv *best = NULL;
    for (int i = 0; i < g->count; i++) {
        const dc_csv *csv = log_of(g->runs[i], m);
        if (dc_csv_column(csv, m->name) >= 0 && csv->rows && (!best || csv->rows > best->rows))
            best = csv;
    }
    return best;
}

static dc_spread point(const builder *b, const dc_report_group *g, const metric *m, double low,
                       double high) {
    int count = 0;
    for (int i = 0; i < g->count; i++) {
        double v = mean_between(log_of(g->runs[i], m), m->name, low, high);
        if (isfinite(v)) b->seeds[count++] = m->success ? 100 * v : v;
    }
    return dc_stats_spread(b->seeds, count);
}

static dc_status make_series(const builder *b, const dc_report_group *g, const metric *m,
                             const dc_csv *csv, dc_series *out) {
    int stride = (csv->rows + POINTS - 1) / POINTS, count = (csv->rows + stride - 1) / stride;
    double *x = dc_arena_take(b->arena, 4 * (size_t)count * sizeof *x);
    if (!x) return DC_NO_MEMORY;
    double *y = x + count, *lo = y + count, *hi = lo + count, low = -1;
    int step = dc_csv_column(csv, "step");
    for (int i = 0; i < count; i++) {
        int last = (i + 1) * stride < csv->rows ? (i + 1) * stride - 1 : csv->rows - 1;
        x[i] = dc_csv_at(csv, last, step);
        dc_spread s = point(b, g, m, low, x[i]);
        y[i] = s.mean;
        lo[i] = m->success ? fmax(0, s.mean - s.sd) : s.mean - s.sd;
        hi[i] = m->success ? fmin(100, s.mean + s.sd) : s.mean + s.sd;
        low = x[i];
    }
    *out = (dc_series){g->label, count, x, y, lo, hi};
    return DC_OK;
}

// A metric that stays positive and spans more than a decade and a half is shown by decades.
static bool wants_log(const dc_panel *p) {
    double least = INFINITY, most = 0;
    for (int s = 0; s < p->count; s++)
        for (int i = 0; i < p->series[s].count; i++) {
            double v = p->series[s].y[i];
            if (!isfinite(v)) continue;
            least = fmin(least, v);
            most = fmax(most, v);
        }
    return least > 0 && most > 30 * least;
}

static dc_status add_panel(builder *b, const metric *m) {
    char label[LABEL];
    snprintf(label, sizeof label, m->success ? "step" : "step on %.100s", m->env);
    const char *x_label = dc_arena_text(b->arena, label, strlen(label));
    if (!x_label) return DC_NO_MEMORY;
    dc_panel *panel = &b->curves->panels[b->curves->count];
    *panel = (dc_panel){.title = m->success ? m->env : m->name, .x_label = x_label};
    panel->percent = m->success;
    panel->y_label = m->success ? "success (%)" : m->name;
    dc_series *series = dc_arena_take(b->arena, (size_t)b->runs->group_count * sizeof *series);
    if (!series) return DC_NO_MEMORY;
    panel->series = series;
    for (int i = 0; i < b->runs->group_count; i++) {
        const dc_report_group *g = &b->runs->groups[i];
        const dc_csv *csv = strcmp(g->env, m->env) ? NULL : longest(g, m);
        if (csv) DC_TRY(make_series(b, g, m, csv, &series[panel->count++]));
    }
    if (!panel->count) return DC_OK;
    panel->log_y = !m->success && wants_log(panel);
    b->curves->env[b->curves->count++] = m->env;
    b->curves->success += m->success;
    return DC_OK;
}

// Whether an earlier run of the environment has the column, so that its panel is there already.
static bool seen(const dc_runs *runs, int run, const char *column) {
    for (int i = 0; i < run; i++)
        if (!strcmp(runs->runs[i].env, runs->runs[run].env) &&
            (!column || dc_csv_column(&runs->runs[i].train, column) >= 0))
            return true;
    return false;
}

static dc_status add_training(builder *b, const char *env) {
    for (int i = 0; i < b->runs->count; i++) {
        const dc_report_run *run = &b->runs->runs[i];
        if (strcmp(run->env, env) != 0) continue;
        for (int c = 0; c < run->train.columns; c++) {
            const char *name = run->train.names[c];
            if (!strcmp(name, "step") || seen(b->runs, i, name)) continue;
            DC_TRY(add_panel(b, &(metric){env, name, false}));
        }
    }
    return DC_OK;
}

dc_status dc_curves_build(dc_curves *curves, const dc_runs *runs, dc_arena *arena) {
    *curves = (dc_curves){0};
    builder b = {.curves = curves, .runs = runs, .arena = arena};
    size_t most = 1;
    for (int i = 0; i < runs->count; i++)
        most += (size_t)runs->runs[i].train.columns + 1;
    curves->panels = dc_arena_take(arena, most * sizeof *curves->panels);
    curves->env = dc_arena_take(arena, most * sizeof *curves->env);
    b.seeds = dc_arena_take(arena, (size_t)(runs->count + 1) * sizeof *b.seeds);
    if (!curves->panels || !curves->env || !b.seeds) return DC_NO_MEMORY;
    for (int i = 0; i < runs->count; i++)
        if (!seen(runs, i, NULL))
            DC_TRY(add_panel(&b, &(metric){runs->runs[i].env, "overall_success", true}));
    for (int i = 0; i < runs->count; i++)
        if (!seen(runs, i, NULL)) DC_TRY(add_training(&b, runs->runs[i].env));
    return DC_OK;
}
