// The page of a plan, see experiment_page.h. An experiment is a section: its sentence and what the paper found, its
// figures, the paper's table (tasks down, methods across) where there are several tasks, then every cell in a
// line of its own.
#include "report/experiment_page.h"

#include "base/build.h"
#include "base/names.h"
#include "report/html.h"
#include "report/parts.h"
#include "report/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char page_style[] =
    "main { max-width: 1500px; }\n"
    ".contents { display: flex; flex-wrap: wrap; gap: 6px 18px; margin: 20px 0 0; padding: 0; "
    "list-style: none; font-size: .92rem; }\n"
    "a { color: var(--accent); text-decoration-thickness: 1px; text-underline-offset: 2px; }\n"
    "td a { color: inherit; text-decoration-color: var(--accent); }\n"
    ".matrix td, .matrix th { padding: 8px 7px; }\n"
    ".paper small { font-size: .9em; }\n"
    "@media (max-width: 680px) { .matrix br { display: none; } .matrix small.paper { margin-left: "
    "10px; } }\n"
    ".matrix thead th { white-space: nowrap; }\n"
    ".last > * { border-top: 2px solid var(--line); }\n";

// --- numbers ---

static void ours(const dc_cell *c, const dc_experiment *e, dc_text *out) {
    const dc_reached *r = &c->reached;
    int decimals = e->lock ? 2 : 1;
    if (!r->begun) {
        dc_text_add(out, "–");
        return;
    }
    dc_text_add(out, "<a href=\"");
    text(out, c->folder);
    dc_text_add(out, r->page ? "/report.html\">" : "/\">");
    if (r->success.count)
        dc_markup_fixed(out, r->success.mean, decimals);
    else
        dc_text_add(out, "begun");
    dc_text_add(out, "</a>%s", r->done || !r->success.count ? "" : "<small> so far</small>");
}

// A figure with its deviation; † marks goals of the other kind.
static void published(const dc_quoted *q, int decimals, dc_text *out) {
    mean_sd(out, q->mean, q->sd, decimals);
    if (q->other_goals) dc_text_add(out, "†");
}

// The same in small under ours.
static void below(const dc_quoted *q, dc_text *out) {
    dc_text_add(out, "<br><small class=\"paper\">");
    published(q, 0, out);
    dc_text_add(out, "</small>");
}

static int quoted_decimals(const dc_experiment *e) {
    return e->lock ? 2 : e->missing ? 1 : 0;
}

// Whether any cell has what `has` asks for.
static bool any_cell(const dc_experiment *e, bool has(const dc_cell *)) {
    for (int k = 0; k < dc_experiment_cells(e); k++)
        if (has(&e->cells[k])) return true;
    return false;
}
static bool has_speed(const dc_cell *c) {
    return isfinite(c->speed.mean);
}
static bool has_figure(const dc_cell *c) {
    return isfinite(c->success.mean);
}
static bool has_other_goals(const dc_cell *c) {
    return has_figure(c) && c->success.other_goals;
}
static bool is_done(const dc_cell *c) {
    return c->reached.done;
}
static bool can_be(const dc_cell *c) {
    return !c->missing;
}

static int count_cells(const dc_experiment *e, bool has(const dc_cell *)) {
    int count = 0;
    for (int k = 0; k < dc_experiment_cells(e); k++)
        count += has(&e->cells[k]);
    return count;
}

// What no cell has as in the paper.
static unsigned differs_everywhere(const dc_experiment *e) {
    unsigned all = ~0u;
    for (int k = 0; k < dc_experiment_cells(e); k++)
        if (!e->cells[k].missing) all &= e->cells[k].differs;
    return any_cell(e, can_be) ? all : 0;
}

// Mean over tasks of one method, and how many tasks that is.
static double mean_over_tasks(const dc_experiment *e, int method, bool speed, int *count) {
    double sum = 0;
    *count = 0;
    for (int t = 0; t < e->task_count; t++) {
        const dc_reached *r = &dc_experiment_cell(e, t, method, 0)->reached;
        const dc_spread *s = speed ? &r->speed : &r->success;
        if (!s->count) continue;
        sum += s->mean;
        ++*count;
    }
    return *count ? sum / *count : NAN;
}

// The published average: as it is printed, else of all tasks of the row.
static dc_quoted published_average(const dc_experiment *e, int method) {
    double sum = 0;
    if (isfinite(e->average[method].mean)) return e->average[method];
    for (int t = 0; t < e->task_count; t++) {
        const dc_quoted *q = &dc_experiment_cell(e, t, method, 0)->success;
        sum += q->other_goals ? NAN : q->mean;
    }
    return (dc_quoted){sum / e->task_count, NAN, false};
}

// --- tasks down, methods across ---

static void matrix_cell(const dc_experiment *e, const dc_cell *c, double best, dc_text *out) {
    bool marked = c->reached.success.count && best > 0 && c->reached.success.mean >= 0.95 * best;
    cell_open(out, c->method, marked ? "number best" : "number");
    ours(c, e, out);
    if (any_cell(e, has_figure)) below(&c->success, out);
    cell_close(out);
}

// A task, what stands for it, and why it is missing if it is.
static void task_head(const dc_cell *c, unsigned everywhere, dc_text *out) {
    everywhere |= DC_OTHER_TASK; // which is said by its name
    dc_text_add(out, "<tr role=\"row\"><th role=\"rowheader\" scope=\"row\">");
    text(out, c->task);
    if (strcmp(c->task, c->preset) != 0) {
        dc_text_add(out, "<small>stand-in: ");
        text(out, c->preset);
        dc_text_add(out, "</small>");
    }
    if (c->missing) dc_text_add(out, "<small>missing</small>");
    if (!c->missing && c->differs & ~everywhere) {
        dc_text_add(out, "<small>≠ ");
        dc_cell_differs(c->differs & ~everywhere, out);
        dc_text_add(out, "</small>");
    }
    dc_text_add(out, "</th>");
}

static void matrix_row(const dc_experiment *e, int task, dc_text *out) {
    double best = 0;
    for (int m = 0; m < e->method_count; m++) {
        const dc_reached *r = &dc_experiment_cell(e, task, m, 0)->reached;
        if (r->success.count) best = fmax(best, r->success.mean);
    }
    task_head(dc_experiment_cell(e, task, 0, 0), differs_everywhere(e), out);
    for (int m = 0; m < e->method_count; m++)
        matrix_cell(e, dc_experiment_cell(e, task, m, 0), best, out);
    row_close(out);
}

static void average_row(const dc_experiment *e, bool speed, dc_text *out) {
    dc_text_add(out, "<tr role=\"row\" class=\"last\"><th role=\"rowheader\" scope=\"row\">%s</th>",
                speed ? "steps/s" : "average");
    for (int m = 0; m < e->method_count; m++) {
        int tasks;
        double mean = mean_over_tasks(e, m, speed, &tasks);
        dc_quoted q = speed ? e->average_speed[m] : published_average(e, m);
        cell_open(out, e->methods[m], "number");
        if (speed) dc_text_add(out, "<span class=\"rate\">");
        dc_markup_fixed(out, mean, speed ? 0 : 1);
        if (speed) dc_text_add(out, "</span>");
        if (tasks && tasks < e->task_count) dc_text_add(out, "<small> of %d</small>", tasks);
        below(&q, out);
        cell_close(out);
    }
    row_close(out);
}

static void write_matrix(const dc_experiment *e, dc_text *out) {
    bool speed = false;
    for (int m = 0; m < e->method_count; m++)
        speed = speed || isfinite(e->average_speed[m].mean);
    dc_text_add(out, "<div class=\"matrix\">");
    table_open(out, "success in percent: ours, below it published");
    head(out, "task");
    for (int m = 0; m < e->method_count; m++)
        head(out, e->methods[m]);
    body(out);
    for (int t = 0; t < e->task_count; t++)
        matrix_row(e, t, out);
    average_row(e, false, out);
    if (speed) average_row(e, true, out);
    table_close(out);
    dc_text_add(out, "</div>\n");
}

// --- a line for each cell ---

static void number_cell(dc_text *out, const char *column, int64_t n, bool known) {
    char text_of[DC_COUNT_MAX];
    cell_open(out, column, "number");
    dc_text_add(out, "%s", known ? dc_markup_count(n, text_of) : "–");
    cell_close(out);
}

static void interval_cell(dc_text *out, const dc_experiment *e, const dc_reached *r) {
    cell_open(out, "95 %", "number");
    if (r->success.count && isfinite(r->mean95.low)) {
        dc_text_add(out, "[");
        dc_markup_fixed(out, r->mean95.low, e->lock ? 2 : 1);
        dc_text_add(out, ", ");
        dc_markup_fixed(out, r->mean95.high, e->lock ? 2 : 1);
        dc_text_add(out, "]");
    } else {
        dc_text_add(out, "–");
    }
    cell_close(out);
}

static void published_cell(dc_text *out, const char *column, const dc_quoted *q, int decimals) {
    cell_open(out, column, "number paper");
    published(q, decimals, out);
    cell_close(out);
}

static void speed_cells(const dc_experiment *e, const dc_cell *c, dc_text *out) {
    if (any_cell(e, has_speed)) published_cell(out, "steps/s, published", &c->speed, 0);
    cell_open(out, "steps/s", "number");
    dc_text_add(out, "<span class=\"rate\">");
    dc_markup_fixed(out, c->reached.speed.count ? c->reached.speed.mean : NAN, 0);
    dc_text_add(out, "</span>");
    cell_close(out);
}

static void behind_cells(const dc_cell *c, dc_text *out) {
    const dc_reached *r = &c->reached;
    number_cell(out, "seeds", r->success.count, r->success.count > 0);
    number_cell(out, "steps", r->steps, r->success.count > 0);
    number_cell(out, "rows of data", r->transitions, r->begun);
}

// What a cell alone does not have as in the paper, or why it has no numbers.
static void line_note(const dc_cell *c, unsigned everywhere, dc_text *out) {
    everywhere |= DC_OTHER_TASK; // which is said by its name
    if (c->missing || c->reached.note) {
        dc_text_add(out, "<small>");
        text(out, c->missing ? "missing" : c->reached.note);
        dc_text_add(out, "</small>");
    } else if (c->differs & ~everywhere) {
        dc_text_add(out, "<small>≠ ");
        dc_cell_differs(c->differs & ~everywhere, out);
        dc_text_add(out, "</small>");
    }
}

static void line_head(const dc_experiment *e, const dc_cell *c, int method, unsigned everywhere,
                      dc_text *out) {
    bool other = strcmp(c->task, c->preset) != 0;
    dc_text_add(out, "<tr role=\"row\"><th role=\"rowheader\" scope=\"row\">");
    dc_plot_key(out, method);
    text(out, c->method);
    if (c->value) {
        dc_text_add(out, ", ");
        text(out, e->along);
        dc_text_add(out, " ");
        text(out, c->value);
    }
    if (other || e->task_count > 1) {
        dc_text_add(out, "<small>");
        text(out, c->preset);
        dc_text_add(out, other ? " for " : "");
        if (other) text(out, c->task);
        dc_text_add(out, "</small>");
    }
    line_note(c, everywhere, out);
    dc_text_add(out, "</th>");
}

static void write_line(const dc_experiment *e, const dc_cell *c, int method, unsigned everywhere,
                       dc_text *out) {
    line_head(e, c, method, everywhere, out);
    if (any_cell(e, has_figure)) published_cell(out, "published", &c->success, quoted_decimals(e));
    cell_open(out, "ours", "number");
    ours(c, e, out);
    cell_close(out);
    interval_cell(out, e, &c->reached);
    behind_cells(c, out);
    speed_cells(e, c, out);
    row_close(out);
}

static void write_lines(const dc_experiment *e, dc_text *out) {
    unsigned everywhere = differs_everywhere(e);
    table_open(out, e->lock ? "A(H): mean |error| of distances of at least H/2, in steps"
                            : "success in percent, over all tasks of an environment");
    head(out, e->task_count > 1 ? "method, task" : "method");
    if (any_cell(e, has_figure)) head(out, "published");
    head(out, "ours");
    head(out, "95 %");
    head(out, "seeds");
    head(out, "steps");
    head(out, "rows of data");
    if (any_cell(e, has_speed)) head(out, "steps/s, published");
    head(out, "steps/s");
    body(out);
    for (int t = 0; t < e->task_count; t++)
        for (int m = 0; m < e->method_count; m++)
            for (int v = 0; v < e->value_count; v++)
                write_line(e, dc_experiment_cell(e, t, m, v), m, everywhere, out);
    table_close(out);
}

// --- a section ---

static bool has_pictures(const dc_experiment *e) {
    if (e->view == DC_VIEW_TABLE) return false;
    for (int k = 0; k < dc_experiment_cells(e); k++) {
        const dc_reached *r = &e->cells[k].reached;
        if (e->view == DC_VIEW_MAPS ? r->maps > 0 : r->success.count > 0) return true;
    }
    return false;
}

// Each reason once.
static dc_status write_missing(const dc_experiment *e, dc_arena *arena, dc_text *out) {
    dc_names reasons;
    int place;
    dc_names_init(&reasons, arena);
    for (int k = 0; k < dc_experiment_cells(e); k++) {
        const dc_cell *c = &e->cells[k];
        int before = reasons.count;
        if (!c->missing) continue;
        DC_TRY(dc_names_put(&reasons, c->missing, &place));
        if (reasons.count == before) continue;
        dc_text_add(out, "<p class=\"note\">Missing");
        if (e->task_count > 1 && !e->missing) {
            dc_text_add(out, " (");
            text(out, c->task);
            dc_text_add(out, ")");
        }
        dc_text_add(out, ": ");
        text(out, c->missing);
        dc_text_add(out, ".</p>\n");
    }
    return DC_OK;
}

// Devices that our rates are of.
static dc_status write_devices(const dc_experiment *e, dc_arena *arena, dc_text *out) {
    dc_names devices;
    int place;
    dc_names_init(&devices, arena);
    for (int k = 0; k < dc_experiment_cells(e); k++)
        if (e->cells[k].reached.device)
            DC_TRY(dc_names_put(&devices, e->cells[k].reached.device, &place));
    if (!devices.count) return DC_OK;
    dc_text_add(out,
                "<p class=\"note\">steps/s: gradient steps per second of a process, all of its "
                "seeds together, on ");
    for (int i = 0; i < devices.count; i++) {
        dc_text_add(out, i ? ", " : "");
        text(out, devices.name[i]);
    }
    dc_text_add(out, "%s.</p>\n",
                any_cell(e, has_speed) || isfinite(e->average_speed[0].mean)
                    ? "; published: one run on an NVIDIA L40S"
                    : "");
    return DC_OK;
}

static dc_status write_notes(const dc_experiment *e, dc_arena *arena, dc_text *out) {
    unsigned everywhere = differs_everywhere(e);
    if (everywhere) {
        dc_text_add(out, "<p class=\"note\">≠ Not as in the paper, everywhere: ");
        dc_cell_differs(everywhere, out);
        dc_text_add(out, ".</p>\n");
    }
    if (e->tasks_left > 0)
        dc_text_add(out,
                    "<p class=\"note\">%d of the paper’s tasks %s no part of this scale.</p>\n",
                    e->tasks_left, e->tasks_left == 1 ? "is" : "are");
    if (e->view == DC_VIEW_PARETO)
        dc_text_add(out, "<p class=\"note\">Time is that of one seed: its share of a process that "
                         "trains all of them.</p>\n");
    if (any_cell(e, has_other_goals))
        dc_text_add(out, "<p class=\"note\">† OGBench’s own table, of agents whose goals are whole "
                         "observations.</p>\n");
    DC_TRY(write_devices(e, arena, out));
    return write_missing(e, arena, out);
}

static dc_status write_section(const dc_experiment *e, dc_arena *arena, dc_text *out) {
    bool matrix = e->task_count > 1 && e->view == DC_VIEW_TABLE;
    bool folded = matrix || has_pictures(e);
    section(out, e->name, e->title);
    element(out, "p", e->says);
    dc_text_add(out, "<p class=\"note\">The paper: ");
    text(out, e->found);
    dc_text_add(out, "</p>\n");
    DC_TRY(dc_experiment_figures(e, arena, out));
    if (matrix) write_matrix(e, out);
    if (folded)
        dc_text_add(out, "<details><summary>Every number, with what stands behind it</summary>\n");
    write_lines(e, out);
    dc_text_add(out, folded ? "</details>\n" : "");
    DC_TRY(write_notes(e, arena, out));
    dc_text_add(out, "<p class=\"note\"><a href=\"%s.csv\">%s.csv</a> has the same numbers.</p>\n",
                e->name, e->name);
    section_end(out);
    return DC_OK;
}

// --- the page ---

static void write_start(const dc_plan *plan, dc_text *out) {
    dc_text_add(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                     "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                     "<meta name=\"color-scheme\" content=\"light dark\">\n<title>The paper at "
                     "scale ");
    text(out, plan->scale);
    dc_text_add(out, "</title>\n<style>\n%s%s%s</style>\n</head>\n<body>\n<main>\n", dc_page_css,
                dc_plot_dark, page_style);
}

static void write_contents(const dc_plan *plan, dc_text *out) {
    dc_text_add(out, "<ul class=\"contents\">\n");
    for (int i = 0; i < plan->count; i++) {
        const dc_experiment *e = &plan->experiments[i];
        int done = count_cells(e, is_done), all = count_cells(e, can_be);
        dc_text_add(out, "<li><a href=\"#%s\">", e->name);
        text(out, e->title);
        dc_text_add(
            out, all ? "</a> <small>%d of %d</small></li>\n" : "</a> <small>missing</small></li>\n",
            done, all);
    }
    dc_text_add(out, "</ul>\n");
}

static void fact(dc_text *out, int value, const char *name) {
    dc_text_add(out, "<div><dt>%s</dt><dd>%d</dd></div>\n", name, value);
}

static void write_header(const dc_plan *plan, dc_text *out) {
    int done = 0, all = 0, possible = 0;
    for (int i = 0; i < plan->count; i++) {
        done += count_cells(&plan->experiments[i], is_done);
        possible += count_cells(&plan->experiments[i], can_be);
        all += dc_experiment_cells(&plan->experiments[i]);
    }
    dc_text_add(out,
                "<header>\n<p class=\"kicker\">dcrl paper</p>\n<h1>Recursive Value Learning for "
                "Long-Horizon Offline Goal-Conditioned RL, repeated</h1>\n<p class=\"lead\">"
                "Scale ");
    text(out, plan->scale);
    dc_text_add(out, *plan->says ? ": " : "");
    text(out, plan->says);
    dc_text_add(out, ".</p>\n<dl class=\"facts\">\n");
    fact(out, plan->count, plan->count == 1 ? "experiment" : "experiments");
    fact(out, all, "cells");
    fact(out, done, "done");
    fact(out, possible - done, "to do");
    fact(out, all - possible, "missing");
    dc_text_add(out, "</dl>\n");
    write_contents(plan, out);
    dc_text_add(out, "</header>\n");
}

dc_status dc_experiment_page(const dc_plan *plan, dc_text *out) {
    dc_arena arena;
    dc_status status = DC_OK;
    dc_arena_init(&arena, 0);
    write_start(plan, out);
    write_header(plan, out);
    for (int i = 0; i < plan->count && status == DC_OK; i++)
        status = write_section(&plan->experiments[i], &arena, out);
    dc_text_add(
        out,
        "<footer>Intervals: 95 %% of the mean, over seeds by Student’s t; of one seed, or "
        "where all agree, over episodes by Wilson’s score. Marked: within 95 %% of the best "
        "of its row. ≠: what is not as in the paper. Written by dcrl %s</footer>\n</main>\n"
        "</body>\n</html>\n",
        dc_build_id());
    dc_arena_fini(&arena);
    return status == DC_OK ? dc_text_status(out) : status;
}

// --- CSV ---

static void csv_cell(const dc_experiment *e, const dc_cell *c, dc_text *out) {
    const dc_reached *r = &c->reached;
    bool any = r->success.count > 0;
    dc_table_csv_text(out, e->name);
    dc_table_csv_text(out, c->task);
    dc_table_csv_text(out, c->preset);
    dc_table_csv_text(out, c->method);
    dc_table_csv_text(out, c->value ? e->along : "");
    dc_table_csv_text(out, c->value ? c->value : "");
    dc_table_csv_number(out, c->success.mean, true);
    dc_table_csv_number(out, c->success.sd, true);
    dc_table_csv_text(out, c->success.other_goals ? "whole observations" : "");
    dc_table_csv_number(out, r->success.mean, any);
    dc_table_csv_number(out, r->mean95.low, any);
    dc_table_csv_number(out, r->mean95.high, any);
    dc_table_csv_number(out, r->success.count, true);
    dc_table_csv_number(out, (double)r->steps, any);
    dc_table_csv_number(out, (double)r->transitions, r->begun && !e->lock);
    dc_table_csv_number(out, c->speed.mean, true);
    dc_table_csv_number(out, r->speed.mean, r->speed.count > 0);
    dc_table_csv_text(out, r->device ? r->device : "");
    dc_text_add(out, "\"");
    dc_cell_differs(c->differs, out);
    dc_text_add(out, "\",");
    dc_table_csv_text(out, c->missing ? "missing"
                           : r->done  ? "done"
                           : r->begun ? "begun"
                                      : "to do");
    dc_text_add(out, "%s\n", c->folder);
}

void dc_experiment_csv(const dc_experiment *e, dc_text *out) {
    dc_text_add(out,
                "experiment,task,trained,method,along,value,published,published_sd,"
                "published_goals,%s,low,high,seeds,steps,rows,published_steps_per_second,"
                "steps_per_second,device,differs,state,runs\n",
                e->lock ? "error" : "success");
    for (int k = 0; k < dc_experiment_cells(e); k++)
        csv_cell(e, &e->cells[k], out);
}
