// Learning curves, see curves.h. Logs come from runs.c, panels go to plot.c. A curve has at most
// POINTS points: the rows of the group's longest log, in blocks; a seed's value is its mean over
// the block's steps, so that seeds with logs of another rhythm, or stopped early, still count. An environment's
// panels are made from its own runs, each column looked up once a run, so that time grows with the logs.
#include "report/curves.h"

#include "base/names.h"

#include "report/stats.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { POINTS = 200, LABEL = 128 };

typedef struct builder {
    dc_curves *curves;
    const dc_runs *runs;
    dc_arena *arena;
    dc_series **series; // (panels) those of each panel
    double *seeds;      // (count of runs) values of one point
    int *column;        // (count of runs) of the metric in a group's runs
} builder;

typedef struct metric {
    const dc_report_env *env;
    const char *name;
    bool success;     // eval.csv, in percent; else train.csv
    const char *task; // of a success; NULL: overall
} metric;

static const char held_out[] = "val_"; // how columns of held-out rows begin

static const dc_csv *log_of(const dc_report_run *run, const metric *m) {
    return m->success ? &run->eval : &run->train;
}

// The first row with a later step than `low`.
static int row_after(const dc_csv *csv, int step, double low) {
    int from = 0, to = csv->rows;
    while (from < to) {
        int middle = from + (to - from) / 2;
        if (dc_csv_at(csv, middle, step) > low)
            to = middle;
        else
            from = middle + 1;
    }
    return from;
}

// Mean of column c over the rows with low < step <= high; NaN if there are none.
static double mean_between(const dc_csv *csv, int c, double low, double high) {
    if (c < 0) return NAN;
    int step = dc_csv_column(csv, "step"), count = 0;
    double sum = 0;
    for (int r = row_after(csv, step, low); r < csv->rows && dc_csv_at(csv, r, step) <= high; r++) {
        double v = dc_csv_at(csv, r, c);
        if (!isfinite(v)) continue;
        sum += v;
        count++;
    }
    return count ? sum / count : NAN;
}

// The longest log of a group that has the metric; Nullable. Finds the metric's column in all of them.
static const dc_csv *longest(const builder *b, const dc_report_group *g, const metric *m) {
    const dc_csv *best = NULL;
    for (int i = 0; i < g->count; i++) {
        const dc_csv *csv = log_of(g->runs[i], m);
        b->column[i] = dc_csv_column(csv, m->name);
        if (b->column[i] >= 0 && csv->rows && (!best || csv->rows > best->rows)) best = csv;
    }
    return best;
}

static dc_spread point(const builder *b, const dc_report_group *g, const metric *m, double low,
                       double high) {
    int count = 0;
    for (int i = 0; i < g->count; i++) {
        double v = mean_between(log_of(g->runs[i], m), b->column[i], low, high);
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
    *out = (dc_series){g->label, count, x, y, lo, hi, g->style, false};
    return DC_OK;
}

// The same of held-out rows, if there are some.
static dc_status add_held_out(builder *b, const dc_report_group *g, const metric *m,
                              dc_panel *panel, int most) {
    char text[LABEL];
    snprintf(text, sizeof text, "%s%.100s", held_out, m->name);
    const metric held = {m->env, dc_arena_text(b->arena, text, strlen(text)), false, NULL};
    if (!held.name) return DC_NO_MEMORY;
    const dc_csv *csv = longest(b, g, &held);
    if (!csv) return DC_OK;
    if (panel->count == most) return b->curves->cut = true, DC_OK;
    dc_series *series = &b->series[b->curves->count][panel->count];
    DC_TRY(make_series(b, g, &held, csv, series));
    snprintf(text, sizeof text, "%.100s, held out", g->label);
    series->name = dc_arena_text(b->arena, text, strlen(text));
    series->dotted = true;
    panel->count++;
    return series->name ? DC_OK : DC_NO_MEMORY;
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

// The curves of an environment's groups.
static dc_status add_series(builder *b, const metric *m, dc_panel *panel) {
    const dc_report_env *env = m->env;
    int most = 2 * env->count < DC_CURVES_MAX ? 2 * env->count : DC_CURVES_MAX;
    dc_series *series = dc_arena_take(b->arena, (size_t)most * sizeof *series);
    if (!series) return DC_NO_MEMORY;
    panel->series = b->series[b->curves->count] = series;
    for (int g = 0; g < env->count; g++) {
        const dc_csv *csv = longest(b, env->groups[g], m);
        if (csv && panel->count == most) return b->curves->cut = true, DC_OK;
        if (csv) DC_TRY(make_series(b, env->groups[g], m, csv, &series[panel->count++]));
        if (csv && !m->success) DC_TRY(add_held_out(b, env->groups[g], m, panel, most));
    }
    return DC_OK;
}

static dc_status add_panel(builder *b, const metric *m) {
    char label[LABEL];
    const char *env = m->env->name;
    snprintf(label, sizeof label, m->success ? "step" : "step on %.100s", env);
    const char *x_label = dc_arena_text(b->arena, label, strlen(label));
    if (!x_label) return DC_NO_MEMORY;
    dc_panel *panel = &b->curves->panels[b->curves->count];
    *panel = (dc_panel){.x_label = x_label, .percent = m->success, .from_zero = true};
    panel->title = m->task ? m->task : m->success ? env : m->name;
    panel->y_label = m->success ? "success (%)" : m->name;
    DC_TRY(add_series(b, m, panel));
    if (!panel->count) return DC_OK;
    panel->log_y = !m->success && wants_log(panel);
    b->curves->env[b->curves->count++] = env;
    b->curves->success += m->success && !m->task;
    b->curves->tasks += m->task != NULL;
    return DC_OK;
}

// A panel for every task that a run of the environment was evaluated on.
static dc_status add_tasks(builder *b, const dc_report_env *env) {
    dc_names known;
    int place;
    dc_names_init(&known, b->arena);
    DC_TRY(dc_names_put(&known, "overall_success", &place));
    for (int i = 0; i < env->run_count; i++) {
        const dc_csv *csv = &env->runs[i]->eval;
        for (int c = 0; c < csv->columns; c++) {
            size_t n = dc_runs_task(csv->names[c]);
            int before = known.count;
            if (!n) continue;
            DC_TRY(dc_names_put(&known, csv->names[c], &place));
            if (place < before) continue;
            const char *task = dc_arena_text(b->arena, csv->names[c], n);
            if (!task) return DC_NO_MEMORY;
            DC_TRY(add_panel(b, &(metric){env, csv->names[c], true, task}));
        }
    }
    return DC_OK;
}

// Whether a column is that of held-out rows, which has no panel of its own.
static bool stands_beside(const dc_csv *csv, const char *name) {
    size_t n = sizeof held_out - 1;
    return !strncmp(name, held_out, n) && dc_csv_column(csv, name + n) >= 0;
}

// A panel for every column that a run of the environment logs, in the order of the runs.
static dc_status add_training(builder *b, const dc_report_env *env) {
    dc_names known;
    int place;
    dc_names_init(&known, b->arena);
    DC_TRY(dc_names_put(&known, "step", &place));
    for (int i = 0; i < env->run_count; i++) {
        const dc_csv *csv = &env->runs[i]->train;
        for (int c = 0; c < csv->columns; c++) {
            int before = known.count;
            DC_TRY(dc_names_put(&known, csv->names[c], &place));
            if (place == before && !stands_beside(csv, csv->names[c]))
                DC_TRY(add_panel(b, &(metric){env, csv->names[c], false, NULL}));
        }
    }
    return DC_OK;
}

dc_status dc_curves_build(dc_curves *curves, const dc_runs *runs, dc_arena *arena) {
    *curves = (dc_curves){0};
    builder b = {.curves = curves, .runs = runs, .arena = arena};
    size_t most = 1;
    for (int i = 0; i < runs->count; i++)
        most += (size_t)(runs->runs[i].train.columns + runs->runs[i].eval.columns) + 1;
    curves->panels = dc_arena_take(arena, most * sizeof *curves->panels);
    curves->env = dc_arena_take(arena, most * sizeof *curves->env);
    b.series = dc_arena_take(arena, most * sizeof *b.series);
    b.seeds = dc_arena_take(arena, (size_t)(runs->count + 1) * sizeof *b.seeds);
    b.column = dc_arena_take(arena, (size_t)(runs->count + 1) * sizeof *b.column);
    if (!curves->panels || !curves->env || !b.series || !b.seeds || !b.column) return DC_NO_MEMORY;
    for (int e = 0; e < runs->env_count; e++)
        DC_TRY(add_panel(&b, &(metric){&runs->envs[e], "overall_success", true, NULL}));
    for (int e = 0; e < runs->env_count; e++)
        DC_TRY(add_tasks(&b, &runs->envs[e]));
    for (int e = 0; e < runs->env_count; e++)
        DC_TRY(add_training(&b, &runs->envs[e]));
    return DC_OK;
}
