// Sections of the report's page that show results: success by task and method, locks, held-out rows, speed, what was
// learned on the way, and maps. See html.c for the page.
#include "report/html_page.h"

#include "base/names.h"

#include "report/markup.h"
#include "report/meaning.h"
#include "report/parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

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

// The interquartile mean, with its interval where there is one.
static void iqm_cell(const page *p, const dc_score *s) {
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
}

// The paper marks what comes within 95 % of the best; so do we.
static void overall_cells(const page *p, const dc_score *s) {
    const env_facts *env = &p->envs[s->group->env_place];
    cell_open(p->out, "overall", s->best ? "number best" : "number");
    spread(p->out, &s->over, 1);
    meter(p->out, s->over.mean / 100);
    cell_close(p->out);
    if (env->seeds > 1) iqm_cell(p, s);
    if (env->published) paper_cell(p, s);
    cell_open(p->out, "seeds", "number");
    dc_text_add(p->out, "%d", s->over.count);
    cell_close(p->out);
}

// A group's name, that of its folder, and steps.
static void group_row(const page *p, const dc_score *overall) {
    const dc_report_group *g = overall->group;
    char count[DC_COUNT_MAX];
    dc_text name;
    dc_text_init(&name);
    dc_html_group_name(g, &name);
    dc_text_follow(p->out, &name);
    dc_text_add(p->out, "<tr role=\"row\"><th role=\"rowheader\" scope=\"row\">");
    dc_plot_key(p->out, g->style);
    text(p->out, g->label);
    dc_text_add(p->out, "<small>");
    text(p->out, name.bytes);
    dc_text_add(p->out, "%s%s steps</small></th>", name.used ? " · " : "",
                dc_markup_count(overall->steps, count));
    dc_text_fini(&name);
}

static void success_row(const page *p, const dc_report_group *first, const dc_score *overall) {
    int count;
    const dc_score *scores = dc_table_of(p->table, first, &count);
    group_row(p, overall);
    for (int i = 0; i < count; i++)
        if (scores[i].metric == DC_METRIC_TASK)
            success_cell(p, dc_table_find(p->table, overall->group, scores[i].name),
                         scores[i].task);
    overall_cells(p, overall);
    row_close(p->out);
}

static void success_head(const page *p, const dc_report_group *first) {
    int count;
    const dc_score *scores = dc_table_of(p->table, first, &count);
    table_open(p->out, first->env);
    head(p->out, "agent");
    for (int i = 0; i < count; i++)
        if (scores[i].metric == DC_METRIC_TASK) head(p->out, scores[i].task);
    head(p->out, "overall");
    if (p->envs[first->env_place].seeds > 1) head(p->out, "IQM [95 %]");
    if (p->envs[first->env_place].published) head(p->out, "published");
    head(p->out, "seeds");
    body(p->out);
}

// How the numbers of one environment came about.
static void success_note(const page *p, const env_facts *env) {
    int least = env->evaluations;
    const dc_score *paper = env->published;
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

static void success_env(const page *p, const dc_report_env *env) {
    const dc_report_group *first = NULL;
    for (int g = 0; g < env->count; g++) {
        const dc_score *s = dc_table_find(p->table, env->groups[g], "overall_success");
        if (!s) continue;
        if (!first) success_head(p, env->groups[g]);
        first = first ? first : env->groups[g];
        success_row(p, first, s);
    }
    if (!first) return;
    table_close(p->out);
    success_note(p, &p->envs[first->env_place]);
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
        status = dc_plot_figure(&svg, panel, 1);
        if (status == DC_OK)
            figure(p->out, panel->title, about, &svg,
                   panel->percent ? NULL : dc_meaning(panel->title));
        dc_text_fini(&svg);
    }
    dc_text_add(p->out, "</div>\n");
    return status;
}

// What bands are, and what is left out.
static void curves_note(const page *p, const char *what) {
    dc_text_add(p->out, "<p class=\"note\">%s", what);
    if (p->seeds) dc_text_add(p->out, "Band: one standard deviation over seeds.");
    if (p->curves->cut)
        dc_text_add(p->out, " The first %d groups of an environment are drawn.", DC_CURVES_MAX);
    dc_text_add(p->out, "</p>\n");
}

// Panels from .. to - 1, an element to open for each environment.
static dc_status write_by_env(const page *p, int from, int to, const char *what, bool open) {
    const dc_curves *c = p->curves;
    for (int i = from, end; i < to; i = end) {
        for (end = i; end < to && !strcmp(c->env[end], c->env[i]);)
            end++;
        dc_text_add(p->out, "<details%s><summary>", open && i == from ? " open" : "");
        text(p->out, c->env[i]);
        dc_text_add(p->out, "%s</summary>\n", what);
        DC_TRY(write_panels(p, i, end));
        dc_text_add(p->out, "</details>\n");
    }
    return DC_OK;
}

static dc_status write_tasks(const page *p) {
    const dc_curves *c = p->curves;
    return write_by_env(p, c->success, c->success + c->tasks, ", each task", false);
}

dc_status dc_html_success(const page *p) {
    if (!p->best) return DC_OK;
    section(p->out, "success", "Success");
    dc_text_add(p->out,
                "<p>Percent of episodes that reach the goal: the mean over a run's last three "
                "evaluations%s. Marked: within 95 %% of the best.%s</p>\n",
                p->seeds ? ", then mean and standard deviation over seeds"
                         : "; one seed each, so how far seeds differ is not known",
                p->seeds ? " IQM: interquartile mean over tasks and seeds, with its 95 % interval "
                           "(stratified bootstrap) where there are several seeds."
                         : "");
    for (int e = 0; e < p->runs->env_count; e++)
        success_env(p, &p->runs->envs[e]);
    dc_text_add(p->out, "<h3>Learning curves</h3>\n");
    curves_note(p, "");
    DC_TRY(write_panels(p, 0, p->curves->success));
    DC_TRY(write_tasks(p));
    section_end(p->out);
    return DC_OK;
}

// --- methods and tasks ---

static void compare_figure(dc_text *out, const dc_score *s) {
    dc_text_add(out, "<small class=\"paper\">published ");
    dc_markup_fixed(out, s->paper.mean, 0);
    if (isfinite(s->paper.sd)) dc_text_add(out, " ± ");
    if (isfinite(s->paper.sd)) dc_markup_fixed(out, s->paper.sd, 0);
    dc_text_add(out, "</small>");
    if (!s->beyond || s->over.count < 2) return; // no interval, no mark
    dc_text_add(out, " <b class=\"%s\">%s", s->beyond > 0 ? "above" : "below",
                s->beyond > 0 ? "▲ +" : "▼ ");
    dc_markup_fixed(out, s->over.mean - s->paper.mean, 1);
    dc_text_add(out, "</b>");
}

static void compare_interval(dc_text *out, const dc_score *s) {
    dc_text_add(out, " <small>[");
    dc_markup_fixed(out, s->mean95.low, 1);
    dc_text_add(out, ", ");
    dc_markup_fixed(out, s->mean95.high, 1);
    dc_text_add(out, "]</small>");
}

static void compare_cell(const page *p, const dc_score *s, const char *column) {
    cell_open(p->out, column, !s ? "number none" : s->best ? "number best" : "number");
    if (s) {
        dc_markup_fixed(p->out, s->over.mean, 1);
        if (s->over.count > 1) compare_interval(p->out, s);
        dc_text_add(p->out, "<br>");
        if (s->published) compare_figure(p->out, s);
        dc_text_add(p->out, "%s<small>", s->published ? "<br>" : "");
        dc_compare_behind(p->compare, s, p->out);
        dc_text_add(p->out, "</small>");
    } else {
        dc_text_add(p->out, "–");
    }
    cell_close(p->out);
}

static void compare_source(void *ctx, const char *task, const dc_paper_figure *f) {
    dc_text *out = ctx;
    dc_text_add(out, "<li>");
    text(out, task);
    dc_text_add(out, ": ");
    text(out, f->source);
    dc_text_add(out, "; data of %s, %s steps</li>\n", f->data, f->steps);
}

// That of a method; -1 for a task.
static int row_style(const dc_compare_grid *g, int row) {
    const dc_score *s = NULL;
    for (int k = 0; k < g->columns && !s && g->row == g->compare->method; k++)
        s = dc_compare_at(g, row, k);
    return s ? s->group->style : -1;
}

static void compare_table(const page *p, const dc_compare_grid *g) {
    table_open(p->out, "overall success");
    head(p->out, g->what);
    for (int k = 0; k < g->columns; k++)
        head(p->out, g->column[k]);
    body(p->out);
    for (int r = 0; r < g->rows; r++) {
        int style = row_style(g, r);
        if (style >= 0)
            row_open_as(p->out, g->row[r], style);
        else
            row_open(p->out, g->row[r]);
        for (int k = 0; k < g->columns; k++)
            compare_cell(p, dc_compare_at(g, r, k), g->column[k]);
        row_close(p->out);
    }
    table_close(p->out);
}

static void write_sources(const page *p) {
    dc_text sources;
    dc_text_init(&sources);
    dc_compare_sources(p->compare, compare_source, &sources);
    if (sources.used)
        dc_text_add(p->out,
                    "<details><summary>Where the published figures stand</summary>\n"
                    "<ul class=\"note\">\n%s</ul></details>\n",
                    sources.bytes);
    dc_text_follow(p->out, &sources);
    dc_text_fini(&sources);
}

static bool any_published(const dc_compare *c) {
    bool any = false;
    for (int i = 0; i < c->count; i++)
        any = any || c->cell[i].score->published;
    return any;
}

void dc_html_compare(const page *p) {
    const dc_compare *c = p->compare;
    if (c->count < 2) return;
    dc_compare_grid g = dc_compare_lay(c);
    bool published = any_published(c);
    section(p->out, "compare", "Methods and tasks");
    dc_text_add(
        p->out,
        "<p>Overall success in percent%s. %s%s%sMarked: within 95 %% of the best of the same "
        "task and goals.</p>\n",
        p->seeds ? "; where there are several seeds, with a 95 % interval over them "
                   "(Student’s t; where they all agree, over their episodes, Wilson)"
                 : "",
        published ? "Below it what is published for the same kind of goals" : "",
        published && p->seeds
            ? ", and <b class=\"above\">▲</b> or <b class=\"below\">▼</b> with the "
              "difference where that lies below or above our interval"
            : "",
        published ? ". " : "");
    if (c->same_seeds || c->same_steps || c->same_data) {
        dc_text_add(p->out, "<p class=\"note\">Everywhere: ");
        dc_compare_common(c, p->out);
        dc_text_add(p->out, ".</p>\n");
    }
    if (dc_compare_too_large(g.rows, g.columns))
        too_large(p->out, g.rows, g.columns);
    else
        compare_table(p, &g);
    write_sources(p);
    section_end(p->out);
}

// --- one metric, agents by environments ---

typedef struct matrix_of { // one metric
    const char *metric;
    bool least;              // the smallest is the best, and is marked
    dc_names labels;         // rows
    const dc_score **scores; // (labels, environments) Nullable each
    double *best;            // (environments) mean, NaN where there is none
    int *style;              // (labels)
} matrix_of;

static void matrix_cell(const page *p, const matrix_of *m, int row, int env) {
    const dc_score *s = m->scores[row * p->runs->env_count + env];
    bool best = s && m->least && s->over.mean <= m->best[env];
    cell_open(p->out, p->runs->envs[env].name,
              !s     ? "number none"
              : best ? "number best"
                     : "number");
    if (s) {
        spread(p->out, &s->over, m->least && s->over.mean < 1000 ? 2 : 0);
        if (!m->least) meter(p->out, s->over.mean / m->best[env]);
    } else {
        dc_text_add(p->out, "–");
    }
    cell_close(p->out);
}

// The scores of the metric, into rows by label: of two groups with one label the first.
static dc_status fill_matrix(const page *p, matrix_of *m) {
    int envs = p->runs->env_count;
    size_t cells = (size_t)m->labels.count * (size_t)envs;
    m->scores = dc_arena_take(p->arena, cells * sizeof *m->scores);
    m->best = dc_arena_take(p->arena, (size_t)envs * sizeof *m->best);
    m->style = dc_arena_take(p->arena, (size_t)m->labels.count * sizeof *m->style);
    if (!m->scores || !m->best || !m->style) return DC_NO_MEMORY;
    for (int e = 0; e < envs; e++)
        m->best[e] = NAN;
    for (int g = 0; g < p->runs->group_count; g++) {
        const dc_report_group *group = &p->runs->groups[g];
        const dc_score *s = dc_table_find(p->table, group, m->metric);
        if (!s) continue;
        int row = dc_names_find(&m->labels, group->label), e = group->env_place;
        m->style[row] = group->style;
        if (!m->scores[row * envs + e]) m->scores[row * envs + e] = s;
        m->best[e] = m->least ? fmin(m->best[e], s->over.mean) : fmax(m->best[e], s->over.mean);
    }
    return DC_OK;
}

static void write_matrix(const page *p, const matrix_of *m, const char *caption) {
    table_open(p->out, caption);
    head(p->out, "agent");
    for (int e = 0; e < p->runs->env_count; e++)
        if (isfinite(m->best[e])) head(p->out, p->runs->envs[e].name);
    body(p->out);
    for (int r = 0; r < m->labels.count; r++) {
        row_open_as(p->out, m->labels.name[r], m->style[r]);
        for (int e = 0; e < p->runs->env_count; e++)
            if (isfinite(m->best[e])) matrix_cell(p, m, r, e);
        row_close(p->out);
    }
    table_close(p->out);
}

// Rows by agent, columns by environment.
static dc_status matrix(const page *p, const char *metric, const char *caption, bool least) {
    matrix_of m = {.metric = metric, .least = least};
    int place;
    dc_names_init(&m.labels, p->arena);
    for (int g = 0; g < p->runs->group_count; g++)
        if (dc_table_find(p->table, &p->runs->groups[g], metric))
            DC_TRY(dc_names_put(&m.labels, p->runs->groups[g].label, &place));
    if (dc_compare_too_large(m.labels.count, p->runs->env_count))
        return too_large(p->out, m.labels.count, p->runs->env_count), DC_OK;
    DC_TRY(fill_matrix(p, &m));
    write_matrix(p, &m, caption);
    return DC_OK;
}

static dc_status lock_panel(void *ctx, const dc_panel *panels, int count, int which) {
    dc_text svg;
    dc_text_init(&svg);
    (void)count;
    dc_status status = dc_plot_figure(&svg, &panels[which], 1);
    char about[256];
    snprintf(about, sizeof about, "%s: %s against %s, one curve per agent", panels[which].title,
             panels[which].y_label, panels[which].x_label);
    if (status == DC_OK) figure(ctx, panels[which].title, about, &svg, NULL);
    dc_text_fini(&svg);
    return status;
}

dc_status dc_html_lock(const page *p) {
    if (!p->lock_count) return DC_OK;
    section(p->out, "lock", "Combination lock");
    if (p->best) { // else it is the page's summary
        dc_text line;
        dc_text_init(&line);
        dc_html_lock_sentence(p, &line);
        dc_text_follow(p->out, &line);
        element(p->out, "p", line.bytes);
        dc_text_fini(&line);
    }
    DC_TRY(matrix(p, "accumulated_error",
                  "A(H): mean |error| of distances of at least H/2; less is better", true));
    dc_text_add(p->out, "<div class=\"grid\">\n");
    dc_status status = dc_lock_panels(p->locks, p->lock_style, p->lock_count, lock_panel, p->out);
    dc_text_add(p->out, "</div>\n");
    section_end(p->out);
    return status;
}

static bool has_metric(const page *p, dc_metric metric) {
    for (int i = 0; i < p->table->count; i++)
        if (p->table->scores[i].metric == metric) return true;
    return false;
}

dc_status dc_html_held_out(const page *p) {
    if (!has_metric(p, DC_METRIC_HELD_OUT)) return DC_OK;
    section(p->out, "held-out", "Held-out rows");
    DC_TRY(matrix(
        p, DC_HELD_OUT_ERROR,
        "mean error of predicted distances between states of held-out trajectories, in steps, "
        "at the end of training; less is better",
        true));
    section_end(p->out);
    return DC_OK;
}

dc_status dc_html_speed(const page *p) {
    if (!has_metric(p, DC_METRIC_THROUGHPUT)) return DC_OK;
    section(p->out, "speed", "Throughput");
    DC_TRY(matrix(p, "steps_per_second",
                  "gradient steps per second of a process, its seeds together (median of the log, "
                  "mean over seeds)",
                  false));
    section_end(p->out);
    return DC_OK;
}

dc_status dc_html_training(const page *p) {
    const dc_curves *c = p->curves;
    int first = c->success + c->tasks;
    if (c->count == first) return DC_OK;
    section(p->out, "training", "Training");
    curves_note(p, "Losses and norms as logged. ");
    DC_TRY(write_by_env(p, first, c->count, "", true));
    section_end(p->out);
    return DC_OK;
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
    figure_close(out, map->name, NULL);
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

void dc_html_maps(const page *p) {
    int count = 0;
    for (int i = 0; i < p->runs->count; i++)
        count += p->runs->runs[i].map_count;
    if (!count) return;
    section(p->out, "maps", "Maps");
    dc_text_add(p->out,
                "<p>What a run believes about its maze, and what it does there. Colour: the "
                "steps to the goal that the critic predicts from a position, where the policy "
                "chooses the action. Lines: episodes of the policy, white if they reach the "
                "goal.</p>\n");
    for (int g = 0; g < p->runs->group_count; g++)
        for (int i = 0; i < p->runs->groups[g].count; i++)
            write_run_maps(p, &p->runs->groups[g], p->runs->groups[g].runs[i], i == 0);
    section_end(p->out);
}
