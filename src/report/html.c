// The report's page, see html.h. Sections are written in the order in which a reader asks: what
// came out, how it was learned, how fast, what differed, how to repeat it. A section without data
// is left out. All text from outside goes through dc_markup_text; pictures that lie in run folders
// are shown as images, where nothing in them can act on the page.
//
// Tables carry their roles and each cell the name of its column, so that on a narrow screen the
// style can lay a row out as a card and a screen reader still reads a table.
#include "report/html.h"

#include "base/build.h"

#include "report/commands.h"
#include "report/markup.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct page {
    dc_text *out;
    const dc_runs *runs;
    const dc_table *table;
    const dc_curves *curves;
    dc_lock_result *locks; // (lock_count) under the labels of their groups
    int lock_count;
} page;

// --- parts of a page ---

static void text(dc_text *out, const char *s) {
    dc_markup_text(out, s, DC_MARKUP_ALL);
}

// <tag>escaped</tag>
static void element(dc_text *out, const char *tag, const char *s) {
    dc_text_add(out, "<%s>", tag);
    text(out, s);
    dc_text_add(out, "</%s>\n", tag);
}

static void mean_sd(dc_text *out, double mean, double sd, int decimals) {
    dc_markup_fixed(out, mean, decimals);
    dc_text_add(out, " <small>± ");
    dc_markup_fixed(out, sd, decimals);
    dc_text_add(out, "</small>");
}

// One seed has no deviation.
static void spread(dc_text *out, const dc_spread *s, int decimals) {
    if (s->count > 1)
        mean_sd(out, s->mean, s->sd, decimals);
    else
        dc_markup_fixed(out, s->mean, decimals);
}

static void table_open(dc_text *out, const char *caption) {
    dc_text_add(out, "<div class=\"table\"><table role=\"table\">\n<caption>");
    text(out, caption);
    dc_text_add(out, "</caption>\n<thead role=\"rowgroup\"><tr role=\"row\">");
}

static void head(dc_text *out, const char *name) {
    dc_text_add(out, "<th role=\"columnheader\" scope=\"col\">");
    text(out, name);
    dc_text_add(out, "</th>");
}

static void body(dc_text *out) {
    dc_text_add(out, "</tr></thead>\n<tbody role=\"rowgroup\">\n");
}

static void row_open(dc_text *out, const char *name) {
    dc_text_add(out, "<tr role=\"row\"><th role=\"rowheader\" scope=\"row\">");
    text(out, name);
    dc_text_add(out, "</th>");
}

static void cell_open(dc_text *out, const char *column, const char *class) {
    dc_text_add(out, "<td role=\"cell\" class=\"%s\" data-label=\"", class);
    text(out, column);
    dc_text_add(out, "\"><span>");
}

static void cell_close(dc_text *out) {
    dc_text_add(out, "</span></td>");
}

static void row_close(dc_text *out) {
    dc_text_add(out, "</tr>\n");
}

static void table_close(dc_text *out) {
    dc_text_add(out, "</tbody></table></div>\n");
}

// A bar under a number; the number itself says what the bar shows.
static void meter(dc_text *out, double part) {
    double percent = isfinite(part) ? fmin(fmax(part, 0), 1) * 100 : 0;
    dc_text_add(out, "<span class=\"meter\" aria-hidden=\"true\"><i style=\"width:");
    dc_markup_fixed(out, percent, 1);
    dc_text_add(out, "%%\"></i></span>");
}

static void section(dc_text *out, const char *id, const char *title) {
    dc_text_add(out, "<section aria-labelledby=\"%s\">\n<h2 id=\"%s\">", id, id);
    text(out, title);
    dc_text_add(out, "</h2>\n");
}

static void section_end(dc_text *out) {
    dc_text_add(out, "</section>\n");
}

static void figure_open(dc_text *out, const char *about) {
    dc_text_add(out, "<figure><div class=\"picture\" role=\"img\" aria-label=\"");
    text(out, about);
    dc_text_add(out, "\">\n");
}

static void figure_close(dc_text *out, const char *title) {
    dc_text_add(out, "</div><figcaption>");
    text(out, title);
    dc_text_add(out, "</figcaption></figure>\n");
}

void dc_html_figure(dc_text *out, const char *title, const char *about, const dc_text *svg) {
    figure_open(out, about);
    dc_text_bytes(out, svg->bytes, svg->used);
    figure_close(out, title);
}

// --- ranks ---

static int distinct_envs(const page *p) {
    int count = 0;
    for (int g = 0; g < p->runs->group_count; g++) {
        int before = 0;
        while (strcmp(p->runs->groups[before].env, p->runs->groups[g].env) != 0)
            before++;
        count += before == g;
    }
    return count;
}

// Whether group g is the first of those with a score of this metric in its environment (or with its
// label).
static bool first_with(const page *p, int g, const char *metric, bool by_label) {
    const dc_report_group *groups = p->runs->groups;
    if (!dc_table_find(p->table, &groups[g], metric)) return false;
    for (int b = 0; b < g; b++)
        if (!strcmp(by_label ? groups[b].label : groups[b].env,
                    by_label ? groups[g].label : groups[g].env) &&
            dc_table_find(p->table, &groups[b], metric))
            return false;
    return true;
}

static const dc_score *best_success(const page *p, const char *env) {
    const dc_score *best = NULL;
    for (int i = 0; i < p->table->count; i++) {
        const dc_score *s = &p->table->scores[i];
        if (s->metric == DC_METRIC_OVERALL && (!env || !strcmp(s->group->env, env)) &&
            (!best || s->over.mean > best->over.mean))
            best = s;
    }
    return best;
}

// The first score of an environment that the paper has a figure for; NULL if there is none.
static const dc_score *published(const page *p, const char *env) {
    for (int i = 0; i < p->table->count; i++) {
        const dc_score *s = &p->table->scores[i];
        if (s->metric == DC_METRIC_OVERALL && s->published && !strcmp(s->group->env, env)) return s;
    }
    return NULL;
}

// --- header ---

static void default_title(const page *p, dc_text *out) {
    const dc_report_group *g = p->runs->groups;
    int envs = distinct_envs(p), count = p->runs->group_count;
    if (count == 1)
        dc_text_add(out, "%s on %s", g->label, g->env);
    else if (envs == 1)
        dc_text_add(out, "%d agents on %s", count, g->env);
    else
        dc_text_add(out, "%d runs on %d environments", p->runs->count, envs);
}

static void summary_success(const dc_score *best, dc_text *out) {
    dc_text_add(out, "On %s, %s reaches ", best->group->env, best->group->label);
    dc_markup_fixed(out, best->over.mean, 1);
    dc_text_add(out, " %% success");
    if (best->over.count > 1) {
        dc_text_add(out, " (± ");
        dc_markup_fixed(out, best->over.sd, 1);
        dc_text_add(out, " over %d seeds)", best->over.count);
    }
    if (best->published) {
        dc_text_add(out, "; published: ");
        dc_markup_fixed(out, best->paper.mean, 0);
        dc_text_add(out, " ± ");
        dc_markup_fixed(out, best->paper.sd, 0);
    }
    dc_text_add(out, ".");
}

// The sentence of `dcrl lock`, without the end of its line.
static void lock_sentence(const page *p, dc_text *out) {
    dc_lock_sentence(p->locks, p->lock_count, out);
    if (out->used && out->bytes[out->used - 1] == '\n') out->bytes[--out->used] = 0;
}

static void summary(const page *p, dc_text *out) {
    const dc_score *best = best_success(p, NULL);
    if (best)
        summary_success(best, out);
    else if (p->lock_count)
        lock_sentence(p, out);
    else
        dc_text_add(out, "%d run%s trained, none evaluated yet.", p->runs->count,
                    p->runs->count == 1 ? "" : "s");
}

static void fact(dc_text *out, int value, const char *name) {
    dc_text_add(out, "<div><dt>%s%s</dt><dd>%d</dd></div>\n", name, value == 1 ? "" : "s", value);
}

static void write_header(const page *p, const char *title) {
    dc_text line;
    dc_text_init(&line);
    summary(p, &line);
    dc_text_add(p->out, "<header>\n<p class=\"kicker\">dcrl report</p>\n");
    element(p->out, "h1", title);
    dc_text_add(p->out, "<p class=\"lead\">");
    text(p->out, line.bytes);
    dc_text_add(p->out, "</p>\n<dl class=\"facts\">\n");
    int open = 0;
    for (int i = 0; i < p->runs->count; i++)
        open += !p->runs->runs[i].done;
    fact(p->out, p->runs->count, "run");
    fact(p->out, distinct_envs(p), "environment");
    fact(p->out, p->runs->group_count, "group");
    if (open) dc_text_add(p->out, "<div><dt>still training</dt><dd>%d</dd></div>\n", open);
    dc_text_add(p->out, "</dl>\n</header>\n");
    dc_text_fini(&line);
}

// --- success ---

static void success_cell(const page *p, const dc_score *s, const char *column) {
    cell_open(p->out, column, "number");
    if (s)
        spread(p->out, &s->over, 1);
    else
        dc_text_add(p->out, "–");
    if (s && s->published && s->metric == DC_METRIC_TASK) {
        dc_text_add(p->out, "<br><small class=\"paper\">published ");
        dc_markup_fixed(p->out, s->paper.mean, 0);
        dc_text_add(p->out, "</small>");
    }
    cell_close(p->out);
}

static void paper_cell(const page *p, const dc_score *s) {
    cell_open(p->out, "paper", "number paper");
    if (s->published)
        mean_sd(p->out, s->paper.mean, s->paper.sd, 0);
    else
        dc_text_add(p->out, "–");
    cell_close(p->out);
}

// The paper marks what comes within 95 % of the best; so do we.
static void overall_cells(const page *p, const dc_score *s, const dc_score *best) {
    bool good = s->over.mean >= 0.95 * best->over.mean;
    cell_open(p->out, "overall", good ? "number best" : "number");
    spread(p->out, &s->over, 1);
    meter(p->out, s->over.mean / 100);
    cell_close(p->out);
    cell_open(p->out, "IQM [95 %]", "number");
    dc_markup_fixed(p->out, s->iqm, 1);
    if (isfinite(s->interval.low)) {
        dc_text_add(p->out, " <small>[");
        dc_markup_fixed(p->out, s->interval.low, 1);
        dc_text_add(p->out, ", ");
        dc_markup_fixed(p->out, s->interval.high, 1);
        dc_text_add(p->out, "]</small>");
    }
    cell_close(p->out);
    if (published(p, s->group->env)) paper_cell(p, s);
    cell_open(p->out, "seeds", "number");
    dc_text_add(p->out, "%d", s->over.count);
    cell_close(p->out);
}

static void success_row(const page *p, const dc_report_group *first, const dc_score *overall,
                        const dc_score *best) {
    row_open(p->out, overall->group->label);
    for (int i = 0; i < p->table->count; i++) {
        const dc_score *s = &p->table->scores[i];
        if (s->group == first && s->metric == DC_METRIC_TASK)
            success_cell(p, dc_table_find(p->table, overall->group, s->name), s->task);
    }
    overall_cells(p, overall, best);
    row_close(p->out);
}

static void success_head(const page *p, const dc_report_group *first) {
    table_open(p->out, first->env);
    head(p->out, "agent");
    for (int i = 0; i < p->table->count; i++)
        if (p->table->scores[i].group == first && p->table->scores[i].metric == DC_METRIC_TASK)
            head(p->out, p->table->scores[i].task);
    head(p->out, "overall");
    head(p->out, "IQM [95 %]");
    if (published(p, first->env)) head(p->out, "published");
    head(p->out, "seeds");
    body(p->out);
}

// How the numbers of one environment came about.
static void success_note(const page *p, const char *env) {
    int least = DC_LAST_EVALUATIONS;
    const dc_score *paper = published(p, env);
    for (int i = 0; i < p->table->count; i++) {
        const dc_score *s = &p->table->scores[i];
        if (s->metric == DC_METRIC_OVERALL && !strcmp(s->group->env, env) && s->evaluations < least)
            least = s->evaluations;
    }
    dc_text_add(p->out, "<p class=\"note\">");
    if (least < DC_LAST_EVALUATIONS)
        dc_text_add(p->out, "Some run has only %d evaluation%s yet. ", least,
                    least == 1 ? "" : "s");
    if (paper) {
        dc_text_add(p->out, "The published figures are of data of ");
        text(p->out, paper->paper.data);
        dc_text_add(p->out, " transitions (");
        text(p->out, paper->paper.source);
        dc_text_add(p->out, ").");
    } else {
        dc_text_add(p->out, "There is no published figure for this environment and these agents.");
    }
    dc_text_add(p->out, "</p>\n");
}

static void success_env(const page *p, const dc_report_group *first) {
    const dc_score *best = best_success(p, first->env);
    success_head(p, first);
    for (int g = 0; g < p->runs->group_count; g++) {
        const dc_report_group *group = &p->runs->groups[g];
        const dc_score *s = dc_table_find(p->table, group, "overall_success");
        if (s && !strcmp(group->env, first->env)) success_row(p, first, s, best);
    }
    table_close(p->out);
    success_note(p, first->env);
}

// Panels from .. to - 1 of the curves.
static dc_status write_panels(const page *p, int from, int to) {
    dc_status status = DC_OK;
    dc_text_add(p->out, "<div class=\"grid\">\n");
    for (int i = from; i < to && status == DC_OK; i++) {
        const dc_panel *panel = &p->curves->panels[i];
        char about[512];
        snprintf(about, sizeof about, "%.200s: %.100s against steps, %d curve%s", p->curves->env[i],
                 panel->y_label, panel->count, panel->count == 1 ? "" : "s");
        dc_text svg;
        dc_text_init(&svg);
        status = dc_plot_panel(&svg, p->curves->panels, p->curves->count, i);
        if (status == DC_OK) dc_html_figure(p->out, panel->title, about, &svg);
        dc_text_fini(&svg);
    }
    dc_text_add(p->out, "</div>\n");
    return status;
}

static dc_status write_success(const page *p) {
    if (!best_success(p, NULL)) return DC_OK;
    section(p->out, "success", "Success");
    dc_text_add(p->out,
                "<p>Percent of episodes that reach the goal: the mean over a run's last three "
                "evaluations, then mean and standard deviation over seeds. Marked: within 95 %% of "
                "the best. IQM: interquartile mean over tasks and seeds, with its 95 %% interval "
                "(stratified bootstrap).</p>\n");
    for (int g = 0; g < p->runs->group_count; g++)
        if (first_with(p, g, "overall_success", false)) success_env(p, &p->runs->groups[g]);
    dc_text_add(p->out, "<h3>Learning curves</h3>\n<p class=\"note\">Band: one standard deviation "
                        "over seeds.</p>\n");
    dc_status status = write_panels(p, 0, p->curves->success);
    section_end(p->out);
    return status;
}

// --- one metric, agents by environments ---

// The least or greatest mean of a metric in one environment.
static double extreme(const page *p, const char *metric, const char *env, bool least) {
    double best = NAN;
    for (int i = 0; i < p->table->count; i++) {
        const dc_score *s = &p->table->scores[i];
        if (strcmp(s->name, metric) != 0 || strcmp(s->group->env, env) != 0) continue;
        best = least ? fmin(best, s->over.mean) : fmax(best, s->over.mean);
    }
    return best;
}

static void matrix_cell(const page *p, const char *metric, const char *label, const char *env,
                        bool least) {
    const dc_score *s = NULL;
    for (int g = 0; g < p->runs->group_count && !s; g++)
        if (!strcmp(p->runs->groups[g].env, env) && !strcmp(p->runs->groups[g].label, label))
            s = dc_table_find(p->table, &p->runs->groups[g], metric);
    bool best = s && least && s->over.mean <= extreme(p, metric, env, true);
    cell_open(p->out, env, !s ? "number none" : best ? "number best" : "number");
    if (s) {
        spread(p->out, &s->over, least && s->over.mean < 1000 ? 2 : 0);
        if (!least) meter(p->out, s->over.mean / extreme(p, metric, env, false));
    } else {
        dc_text_add(p->out, "–");
    }
    cell_close(p->out);
}

// Rows by agent, columns by environment; `least`: the smallest is the best, and is marked.
static void matrix(const page *p, const char *metric, const char *caption, bool least) {
    const dc_report_group *groups = p->runs->groups;
    table_open(p->out, caption);
    head(p->out, "agent");
    for (int g = 0; g < p->runs->group_count; g++)
        if (first_with(p, g, metric, false)) head(p->out, groups[g].env);
    body(p->out);
    for (int r = 0; r < p->runs->group_count; r++) {
        if (!first_with(p, r, metric, true)) continue;
        row_open(p->out, groups[r].label);
        for (int g = 0; g < p->runs->group_count; g++)
            if (first_with(p, g, metric, false))
                matrix_cell(p, metric, groups[r].label, groups[g].env, least);
        row_close(p->out);
    }
    table_close(p->out);
}

static dc_status lock_panel(void *ctx, const dc_panel *panels, int count, int which) {
    dc_text svg;
    dc_text_init(&svg);
    dc_status status = dc_plot_panel(&svg, panels, count, which);
    char about[256];
    snprintf(about, sizeof about, "%s: %s against %s, one curve an agent", panels[which].title,
             panels[which].y_label, panels[which].x_label);
    if (status == DC_OK) dc_html_figure(ctx, panels[which].title, about, &svg);
    dc_text_fini(&svg);
    return status;
}

static dc_status write_lock(const page *p) {
    if (!p->lock_count) return DC_OK;
    section(p->out, "lock", "Combination lock");
    if (best_success(p, NULL)) { // else it is the page's summary
        dc_text line;
        dc_text_init(&line);
        lock_sentence(p, &line);
        element(p->out, "p", line.bytes);
        dc_text_fini(&line);
    }
    matrix(p, "accumulated_error",
           "A(H): mean |error| of distances of at least H/2; less is better", true);
    dc_text_add(p->out, "<div class=\"grid\">\n");
    dc_status status = dc_lock_panels(p->locks, p->lock_count, lock_panel, p->out);
    dc_text_add(p->out, "</div>\n");
    section_end(p->out);
    return status;
}

static void write_speed(const page *p) {
    bool any = false;
    for (int i = 0; i < p->table->count; i++)
        any = any || p->table->scores[i].metric == DC_METRIC_THROUGHPUT;
    if (!any) return;
    section(p->out, "speed", "Throughput");
    matrix(p, "steps_per_second",
           "gradient steps per second: median of a run's log, mean over seeds", false);
    section_end(p->out);
}

static dc_status write_training(const page *p) {
    const dc_curves *c = p->curves;
    if (c->count == c->success) return DC_OK;
    section(p->out, "training", "Training");
    dc_text_add(p->out,
                "<p class=\"note\">Losses and norms as logged; band: one standard deviation "
                "over seeds.</p>\n");
    dc_status status = DC_OK;
    for (int i = c->success, end; i < c->count && status == DC_OK; i = end) {
        for (end = i; end < c->count && !strcmp(c->env[end], c->env[i]);)
            end++;
        dc_text_add(p->out, "<details%s><summary>", i == c->success ? " open" : "");
        text(p->out, c->env[i]);
        dc_text_add(p->out, "</summary>\n");
        status = write_panels(p, i, end);
        dc_text_add(p->out, "</details>\n");
    }
    section_end(p->out);
    return status;
}

// --- maps ---

// Such a picture comes from disk: as an image it can neither run a script nor load a file.
static void write_map(dc_text *out, const dc_report_run *run, const dc_report_map *map) {
    char about[512];
    snprintf(about, sizeof about, "%.150s, %.100s, seed %" PRId64 ": %.150s", run->env, run->agent,
             run->seed, map->name);
    figure_open(out, about);
    dc_text_add(out, "<img alt=\"\" src=\"data:image/svg+xml;base64,");
    dc_markup_base64(out, map->bytes, map->size);
    dc_text_add(out, "\">\n");
    figure_close(out, map->name);
}

// Pictures of one run, under its name.
static void write_run_maps(const page *p, const dc_report_group *g, const dc_report_run *run,
                           bool open) {
    char name[512];
    if (!run->map_count) return;
    snprintf(name, sizeof name, "%.200s · %.250s · seed %" PRId64, g->env, g->label, run->seed);
    dc_text_add(p->out, "<details%s>", open ? " open" : "");
    element(p->out, "summary", name);
    dc_text_add(p->out, "<div class=\"grid maps\">\n");
    for (int m = 0; m < run->map_count; m++)
        write_map(p->out, run, &run->maps[m]);
    dc_text_add(p->out, "</div></details>\n");
}

static void write_maps(const page *p) {
    int count = 0;
    for (int i = 0; i < p->runs->count; i++)
        count += p->runs->runs[i].map_count;
    if (!count) return;
    section(p->out, "maps", "Maps");
    dc_text_add(p->out,
                "<p>What a run believes about its maze, and what it does there. Colour: the "
                "steps to the goal that the critic predicts from a place, where the policy "
                "chooses the action. Lines: episodes of the policy, white if they reach the "
                "goal.</p>\n");
    for (int g = 0; g < p->runs->group_count; g++)
        for (int i = 0; i < p->runs->groups[g].count; i++)
            write_run_maps(p, &p->runs->groups[g], p->runs->groups[g].runs[i], i == 0);
    section_end(p->out);
}

// --- options ---

// Nullable: an option that the group's method does not have, or that does not count.
static const dc_json *option_of(const dc_report_group *g, const char *key) {
    return dc_runs_counts(g->runs[0], key) ? dc_json_get(g->runs[0]->config, key) : NULL;
}

// The value of the first group that has the option.
static const dc_json *first_value(const page *p, const char *key) {
    const dc_json *value = NULL;
    for (int g = 0; g < p->runs->group_count && !value; g++)
        value = option_of(&p->runs->groups[g], key);
    return value;
}

// Whether two groups that have the option disagree.
static bool differs(const page *p, const char *key) {
    const dc_json *first = first_value(p, key);
    for (int g = 0; g < p->runs->group_count; g++) {
        const dc_json *value = option_of(&p->runs->groups[g], key);
        if (value && !dc_runs_same_value(value, first)) return true;
    }
    return false;
}

// Whether an earlier group has the option too.
static bool known_before(const page *p, int group, const char *key) {
    for (int g = 0; g < group; g++)
        if (option_of(&p->runs->groups[g], key)) return true;
    return false;
}

static void value_cell(const page *p, const dc_report_group *g, const char *key) {
    const dc_json *option = option_of(g, key);
    dc_text value;
    dc_text_init(&value);
    if (option) dc_runs_value(option, &value);
    cell_open(p->out, key, option ? "value" : "value none");
    text(p->out, value.used ? value.bytes : option ? "(empty)" : "–");
    cell_close(p->out);
    dc_text_fini(&value);
}

// Call for every option that counts and, as asked, differs or is the same in all groups.
typedef void option_fn(const page *p, const dc_report_group *g, const char *key);
static int each_option(const page *p, bool different, option_fn *call, const dc_report_group *g) {
    int count = 0;
    for (int k = 0; k < p->runs->group_count; k++) {
        const dc_report_run *run = p->runs->groups[k].runs[0];
        for (const dc_json *m = run->config->child; m; m = m->next) {
            if (!dc_runs_counts(run, m->key) || known_before(p, k, m->key) ||
                differs(p, m->key) != different)
                continue;
            if (call) call(p, g, m->key);
            count++;
        }
    }
    return count;
}

static void key_head(const page *p, const dc_report_group *g, const char *key) {
    (void)g;
    head(p->out, key);
}

static void key_value(const page *p, const dc_report_group *g, const char *key) {
    dc_text value;
    (void)g;
    dc_text_init(&value);
    dc_runs_value(first_value(p, key), &value);
    dc_text_add(p->out, "<div><dt>");
    text(p->out, key);
    dc_text_add(p->out, "</dt><dd>");
    text(p->out, value.used ? value.bytes : "(empty)");
    dc_text_add(p->out, "</dd></div>\n");
    dc_text_fini(&value);
}

static void write_options(const page *p) {
    section(p->out, "options", "Options");
    if (each_option(p, true, NULL, NULL)) {
        table_open(p->out, "what differs between groups");
        head(p->out, "group");
        each_option(p, true, key_head, NULL);
        body(p->out);
        for (int g = 0; g < p->runs->group_count; g++) {
            char name[512];
            const dc_report_group *group = &p->runs->groups[g];
            snprintf(name, sizeof name, "%.200s · %.250s", group->env, group->label);
            row_open(p->out, name);
            each_option(p, true, value_cell, group);
            row_close(p->out);
        }
        table_close(p->out);
    }
    if (each_option(p, false, NULL, NULL)) {
        bool one = p->runs->group_count == 1;
        dc_text_add(p->out, "<details%s><summary>%s</summary>\n<dl class=\"same\">\n",
                    one ? " open" : "", one ? "All options" : "Same in all groups that have it");
        each_option(p, false, key_value, NULL);
        dc_text_add(p->out, "</dl></details>\n");
    }
    section_end(p->out);
}

// --- how to repeat it ---

// The distinct values of a text option over a group's runs.
static void provenance(const page *p, const dc_report_group *g, const char *key, const char *name) {
    const char *join = "";
    dc_text_add(p->out, "<div><dt>%s</dt><dd>", name);
    for (int i = 0; i < g->count; i++) {
        const dc_json *v = dc_json_get(g->runs[i]->config, key);
        bool seen = !v || v->kind != DC_JSON_STRING;
        for (int k = 0; k < i && !seen; k++)
            seen = dc_runs_same_value(v, dc_json_get(g->runs[k]->config, key));
        if (seen) continue;
        dc_text_add(p->out, "%s", join);
        text(p->out, v->text);
        join = ", ";
    }
    dc_text_add(p->out, "</dd></div>\n");
}

static dc_status write_recipe(const page *p, const dc_report_group *g) {
    dc_text command;
    dc_text_init(&command);
    dc_command_of(g, &command);
    dc_text_add(p->out, "<details%s><summary>", p->runs->group_count == 1 ? " open" : "");
    text(p->out, g->env);
    dc_text_add(p->out, " · ");
    text(p->out, g->label);
    dc_text_add(p->out, "</summary>\n<pre tabindex=\"0\"><code>");
    text(p->out, command.bytes);
    dc_text_add(p->out, "</code></pre>\n<dl class=\"same\">\n<div><dt>runs</dt><dd>");
    for (int i = 0; i < g->count; i++) {
        dc_text_add(p->out, i ? ", " : "");
        text(p->out, g->runs[i]->folder);
    }
    dc_text_add(p->out, "</dd></div>\n");
    provenance(p, g, "build", "build");
    provenance(p, g, "data_hash", "data hash");
    dc_text_add(p->out, "</dl></details>\n");
    dc_status status = dc_text_status(&command);
    dc_text_fini(&command);
    return status;
}

static dc_status write_recipes(const page *p) {
    section(p->out, "repeat", "How to repeat it");
    dc_text_add(p->out, "<p class=\"note\">The same build, options, data and seed give the same "
                        "numbers. Options at their defaults are left out.</p>\n");
    for (int g = 0; g < p->runs->group_count; g++)
        DC_TRY(write_recipe(p, &p->runs->groups[g]));
    section_end(p->out);
    return DC_OK;
}

// --- the page ---

// Lock results under the labels that the tables use.
static dc_status collect_locks(page *p) {
    p->locks = calloc((size_t)p->runs->count, sizeof *p->locks);
    if (!p->locks) return dc_fail(DC_NO_MEMORY, NULL, "no memory for the results");
    for (int g = 0; g < p->runs->group_count; g++)
        for (int i = 0; i < p->runs->groups[g].count; i++) {
            const dc_lock_result *result = p->runs->groups[g].runs[i]->result;
            if (!result) continue;
            dc_lock_result *copy = &p->locks[p->lock_count++];
            *copy = *result;
            snprintf(copy->agent, sizeof copy->agent, "%s", p->runs->groups[g].label);
        }
    return DC_OK;
}

static void write_start(const page *p, const char *title) {
    dc_text_add(p->out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                        "<meta name=\"color-scheme\" content=\"light dark\">\n");
    element(p->out, "title", title);
    dc_text_add(p->out, "<style>\n%s</style>\n</head>\n<body>\n<main>\n", dc_page_css);
}

static dc_status write_page(const page *p, const char *title) {
    write_start(p, title);
    write_header(p, title);
    DC_TRY(write_success(p));
    write_maps(p);
    DC_TRY(write_lock(p));
    write_speed(p);
    DC_TRY(write_training(p));
    write_options(p);
    DC_TRY(write_recipes(p));
    dc_text_add(p->out, "<footer>Written by dcrl %s</footer>\n</main>\n</body>\n</html>\n",
                dc_build_id());
    return dc_text_status(p->out);
}

dc_status dc_html_page(const dc_runs *runs, const dc_table *table, const dc_curves *curves,
                       const char *title, dc_text *out) {
    page p = {.out = out, .runs = runs, .table = table, .curves = curves};
    dc_text made;
    dc_text_init(&made);
    default_title(&p, &made);
    dc_status status = dc_text_status(&made);
    if (status == DC_OK) status = collect_locks(&p);
    if (status == DC_OK) status = write_page(&p, title ? title : made.bytes);
    dc_text_fini(&made);
    free(p.locks);
    return status;
}
