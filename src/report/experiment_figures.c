// Figures of an experiment, see experiment_page.h: panels for plot.c, one for each task; of value maps the pictures
// that dcrl map drew.
#include "report/experiment_page.h"

#include "report/parts.h"

#include <stdio.h>
#include <string.h>

enum { TITLE = 200 };

static dc_status no_memory(void) {
    return dc_fail(DC_NO_MEMORY, NULL, "no memory for a figure");
}

static const char *keep(dc_arena *arena, const char *text) {
    return dc_arena_text(arena, text, strlen(text));
}

static dc_status write_panel(const dc_panel *panel, const char *note, dc_text *out) {
    char about[2 * TITLE];
    dc_text svg;
    dc_text_init(&svg);
    dc_status status = dc_plot_figure(&svg, panel, 1);
    snprintf(about, sizeof about, "%s: %s against %s, one curve for each method", panel->title,
             panel->y_label, panel->x_label);
    if (status == DC_OK) status = dc_text_status(&svg);
    if (status == DC_OK) figure(out, panel->title, about, &svg, note);
    dc_text_fini(&svg);
    return status;
}

static void name_panel(const dc_cell *c, char title[TITLE]) {
    bool same = !strcmp(c->task, c->preset);
    snprintf(title, TITLE, same ? "%.90s" : "%.90s for %.90s", c->preset, c->task);
}

// --- along an option ---

typedef struct line { // x, y and a band of (count) numbers
    double *x, *y, *low, *high;
} line;

static bool take_line(dc_arena *arena, int count, line *l) {
    l->x = dc_arena_take(arena, 4 * (size_t)count * sizeof *l->x);
    l->y = l->x ? l->x + count : NULL;
    l->low = l->x ? l->y + count : NULL;
    l->high = l->x ? l->low + count : NULL;
    return l->x != NULL;
}

static double or_else(double x, double y) {
    return isfinite(x) ? x : y;
}

// Ours, and dotted the published curve, where there is one.
static dc_status curves_of(const dc_experiment *e, int task, int method, dc_arena *arena,
                           dc_series *series, int *count) {
    line ours, theirs;
    bool any = false, published = false;
    char name[TITLE];
    if (!take_line(arena, e->value_count, &ours) || !take_line(arena, e->value_count, &theirs))
        return no_memory();
    for (int v = 0; v < e->value_count; v++) {
        const dc_cell *c = dc_experiment_cell(e, task, method, v);
        const dc_reached *r = &c->reached;
        ours.x[v] = theirs.x[v] = c->x;
        ours.y[v] = r->success.count ? r->success.mean : NAN;
        ours.low[v] = or_else(r->mean95.low, ours.y[v]);
        ours.high[v] = or_else(r->mean95.high, ours.y[v]);
        if (!r->success.count) ours.low[v] = ours.high[v] = NAN;
        theirs.y[v] = c->success.mean;
        any = any || r->success.count;
        published = published || isfinite(c->success.mean);
    }
    snprintf(name, sizeof name, "%.100s, published", e->methods[method]);
    if (any)
        series[(*count)++] = (dc_series){e->methods[method], e->value_count, ours.x, ours.y,
                                         ours.low,           ours.high,      method, false};
    if (published)
        series[(*count)++] = (dc_series){
            keep(arena, name), e->value_count, theirs.x, theirs.y, NULL, NULL, method, true};
    return !published || series[*count - 1].name ? DC_OK : no_memory();
}

static dc_status curves_panel(const dc_experiment *e, int task, dc_arena *arena, dc_text *out) {
    char title[TITLE];
    const dc_cell *first = dc_experiment_cell(e, task, 0, 0);
    dc_series *series = dc_arena_take(arena, 2 * (size_t)e->method_count * sizeof *series);
    if (!series) return no_memory();
    name_panel(first, title);
    bool log = first->x > 0 && dc_experiment_cell(e, task, 0, e->value_count - 1)->x > 4 * first->x;
    dc_panel panel = {.title = e->lock ? "combination lock" : title,
                      .x_label = e->along,
                      .y_label = e->lock ? "A(H), steps" : "success, %",
                      .log_x = log,
                      .series = series,
                      .percent = !e->lock};
    for (int m = 0; m < e->method_count; m++)
        DC_TRY(curves_of(e, task, m, arena, series, &panel.count));
    if (!panel.count) return DC_OK;
    return write_panel(&panel, first->missing, out);
}

// --- success over time ---

typedef struct unit {
    const char *label;
    double hours;
} unit;

static unit unit_for(double longest) {
    if (longest > 2) return (unit){"training, hours", 1};
    if (longest > 2.0 / 60) return (unit){"training, minutes", 1.0 / 60};
    return (unit){"training, seconds", 1.0 / 3600};
}

static dc_status pareto_panel(const dc_experiment *e, int task, dc_arena *arena, dc_text *out) {
    char title[TITLE];
    double longest = 0;
    dc_series *series = dc_arena_take(arena, (size_t)e->method_count * sizeof *series);
    if (!series) return no_memory();
    for (int m = 0; m < e->method_count; m++) {
        const dc_reached *r = &dc_experiment_cell(e, task, m, 0)->reached;
        if (r->points) longest = fmax(longest, r->hours[r->points - 1]);
    }
    const unit by = unit_for(longest);
    name_panel(dc_experiment_cell(e, task, 0, 0), title);
    dc_panel panel = {.title = title,
                      .x_label = by.label,
                      .y_label = "success, %",
                      .series = series,
                      .percent = true,
                      .from_zero = true};
    for (int m = 0; m < e->method_count; m++) {
        const dc_reached *r = &dc_experiment_cell(e, task, m, 0)->reached;
        if (!r->points) continue;
        double *x = dc_arena_take(arena, (size_t)r->points * sizeof *x);
        if (!x) return no_memory();
        for (int i = 0; i < r->points; i++)
            x[i] = r->hours[i] / by.hours;
        series[panel.count++] = (dc_series){
            .name = e->methods[m], .count = r->points, .x = x, .y = r->curve, .style = m};
    }
    return panel.count ? write_panel(&panel, NULL, out) : DC_OK;
}

// --- maps ---

static void write_map(const dc_cell *c, int number, dc_text *out) {
    char about[TITLE];
    if (number >= c->reached.maps) return;
    snprintf(about, sizeof about, "distances that %.80s predicts to goal %d", c->method,
             number + 1);
    figure_open(out, about);
    dc_text_add(out, "<img alt=\"\" src=\"data:image/svg+xml;base64,");
    dc_markup_base64(out, c->reached.map[number], strlen(c->reached.map[number]));
    dc_text_add(out, "\">");
    figure_close(out, about, c->method);
}

// The maps of a goal side by side, a method each.
static void write_maps(const dc_experiment *e, int task, dc_text *out) {
    int most = 0;
    for (int m = 0; m < e->method_count; m++) {
        const dc_reached *r = &dc_experiment_cell(e, task, m, 0)->reached;
        most = r->maps > most ? r->maps : most;
    }
    for (int i = 0; i < most; i++) {
        dc_text_add(out, "<h3>");
        text(out, dc_experiment_cell(e, task, 0, 0)->preset);
        dc_text_add(out, ", goal %d</h3>\n<div class=\"grid maps\">\n", i + 1);
        for (int m = 0; m < e->method_count; m++)
            write_map(dc_experiment_cell(e, task, m, 0), i, out);
        dc_text_add(out, "</div>\n");
    }
}

dc_status dc_experiment_figures(const dc_experiment *e, dc_arena *arena, dc_text *out) {
    for (int t = 0; t < e->task_count && e->view == DC_VIEW_MAPS; t++)
        write_maps(e, t, out);
    if (e->view == DC_VIEW_MAPS || e->view == DC_VIEW_TABLE || e->missing) return DC_OK;
    dc_text_add(out, "<div class=\"grid\">\n");
    for (int t = 0; t < e->task_count; t++)
        DC_TRY(e->view == DC_VIEW_CURVES ? curves_panel(e, t, arena, out)
                                         : pareto_panel(e, t, arena, out));
    dc_text_add(out, "</div>\n");
    return DC_OK;
}
