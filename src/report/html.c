// The report's page, see html.h. Sections are written in the order in which a reader asks: what
// came out, how it was learned, how fast, what differed, how to repeat it. A section without data
// is left out. All text from outside goes through dc_markup_text; pictures that lie in run folders
// are shown as images, where nothing in them can act on the page.
//
// Tables carry their roles and each cell the name of its column, so that on a narrow screen the
// style can lay a row out as a card and a screen reader still reads a table.
//
// What sections ask of all groups (the best of an environment, which options differ) is found once, before
// they are written, so that time and size grow with the runs and not with their square.
#include "report/html.h"

#include "base/build.h"
#include "base/names.h"

#include "report/commands.h"
#include "report/facts.h"
#include "report/markup.h"
#include "report/meaning.h"
#include "report/parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct env_facts {     // of an environment
    const dc_score *published; // the first score that the paper has a figure for; Nullable
    int evaluations;           // fewest that a run's success is the mean of
    int seeds;                 // most behind a success
} env_facts;

typedef struct option_facts { // of an option that counts
    const char *key;
    const dc_json *first; // its value in the first group that has it
    bool differs;         // two groups that have it disagree
} option_facts;

typedef struct page {
    dc_text *out;
    dc_arena *arena;
    const env_facts *envs;       // (environments)
    const dc_score *best;        // overall success; Nullable
    bool seeds;                  // some group has several
    const option_facts *options; // (option_count) in order of first appearance
    int option_count;
    const dc_runs *runs;
    const dc_table *table;
    const dc_compare *compare;
    const dc_curves *curves;
    dc_lock_result *locks; // (lock_count) under the labels of their groups
    int *lock_style;       // (lock_count) of the labels
    int refresh;           // seconds; 0: never
    int lock_count;
} page;

// --- facts ---

static void rank(page *p, env_facts *env, const dc_score *s) {
    if (!p->best || s->over.mean > p->best->over.mean) p->best = s;
    if (!env->published && s->published) env->published = s;
    if (s->evaluations < env->evaluations) env->evaluations = s->evaluations;
    if (s->over.count > env->seeds) env->seeds = s->over.count;
}

static dc_status find_envs(page *p) {
    const dc_runs *runs = p->runs;
    env_facts *envs = dc_arena_take(p->arena, (size_t)runs->env_count * sizeof *envs);
    if (!envs) return DC_NO_MEMORY;
    p->envs = envs;
    for (int e = 0; e < runs->env_count; e++)
        envs[e].evaluations = DC_LAST_EVALUATIONS;
    for (int g = 0; g < runs->group_count; g++)
        p->seeds = p->seeds || runs->groups[g].count > 1;
    for (int i = 0; i < p->table->count; i++) {
        const dc_score *s = &p->table->scores[i];
        if (s->metric == DC_METRIC_OVERALL) rank(p, &envs[s->group->env_place], s);
    }
    return DC_OK;
}

static dc_status find_options(page *p) {
    const dc_runs *runs = p->runs;
    dc_names names;
    size_t most = 0;
    dc_names_init(&names, p->arena);
    for (int g = 0; g < runs->group_count; g++)
        most += (size_t)runs->groups[g].runs[0]->option_count;
    option_facts *options = dc_arena_take(p->arena, (most + 1) * sizeof *options);
    if (!options) return DC_NO_MEMORY;
    p->options = options;
    for (int g = 0; g < runs->group_count; g++) {
        const dc_report_run *run = runs->groups[g].runs[0];
        for (const dc_json *m = run->config->child; m; m = m->next) {
            int place;
            if (!dc_runs_counts(run, m->key)) continue;
            DC_TRY(dc_names_put(&names, m->key, &place));
            option_facts *o = &options[place];
            if (!o->key) *o = (option_facts){.key = m->key, .first = m};
            o->differs = o->differs || !dc_runs_same_value(m, o->first);
        }
    }
    p->option_count = names.count;
    return DC_OK;
}

// --- header ---

// The last part of a path that names runs: seed-K is in the folder of its run.
static size_t folder_name(const char *path, bool several, const char **name) {
    size_t end = strlen(path), at = end;
    for (int level = 0; level < 2; level++) {
        for (at = end; at > 0 && path[at - 1] != '/';)
            at--;
        bool member = !strncmp(path + at, "seed-", 5) || several;
        if (level || !member || at < 2) break;
        end = at - 1;
    }
    *name = path + at;
    return end - at;
}

// Name of a run, or of the folder that has all runs of a group; nothing if no folder has.
static void group_name(const dc_report_group *g, dc_text *out) {
    const char *name;
    size_t n = folder_name(g->runs[0]->folder, g->count > 1, &name);
    size_t all = (size_t)(name - g->runs[0]->folder) + n;
    for (int i = 1; i < g->count; i++)
        if (strncmp(g->runs[0]->folder, g->runs[i]->folder, all) != 0 ||
            g->runs[i]->folder[all] != '/')
            return;
    dc_text_bytes(out, name, n);
}

static bool all_alone(const page *p) {
    bool all = true;
    for (int i = 0; i < p->runs->count; i++)
        all = all && p->runs->runs[i].alone;
    return all;
}

static void default_title(const page *p, dc_text *out) {
    const dc_report_group *g = p->runs->groups;
    int envs = p->runs->env_count, count = p->runs->group_count;
    if (count == 1)
        dc_text_add(out, "%s on %s", g->label, g->env);
    else if (envs == 1)
        dc_text_add(out, "%d agents on %s", count, g->env);
    else
        dc_text_add(out, "%d runs on %d %s", p->runs->count, envs,
                    all_alone(p) ? "data sets" : "environments");
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
        if (isfinite(best->paper.sd)) dc_text_add(out, " ± ");
        if (isfinite(best->paper.sd)) dc_markup_fixed(out, best->paper.sd, 0);
    }
    dc_text_add(out, ".");
}

// The sentence of `dcrl lock`, without the end of its line.
static void lock_sentence(const page *p, dc_text *out) {
    dc_lock_sentence(p->locks, p->lock_count, out);
    if (out->used && out->bytes[out->used - 1] == '\n') out->bytes[--out->used] = 0;
}

// Whether any run logged held-out rows.
static bool held_out(const page *p) {
    for (int i = 0; i < p->runs->count; i++)
        for (int c = 0; c < p->runs->runs[i].train.columns; c++)
            if (!strncmp(p->runs->runs[i].train.names[c], "val_", 4)) return true;
    return false;
}

static void summary(const page *p, dc_text *out) {
    if (p->best)
        summary_success(p->best, out);
    else if (p->lock_count)
        lock_sentence(p, out);
    else
        dc_text_add(out, "%d run%s trained%s.", p->runs->count, p->runs->count == 1 ? "" : "s",
                    !all_alone(p) ? ", none evaluated yet"
                    : held_out(p)
                        ? " on data without an environment, and measured on held-out rows. "
                          "To play a policy, use an environment of your own (docs/api.md)"
                        : " on data without an environment. To measure what was learned, "
                          "hold rows out: put X-val.npz beside X.npz, or give --val. To play a "
                          "policy, use an environment of your own (docs/api.md)");
}

static void fact(dc_text *out, int value, const char *name) {
    dc_text_add(out, "<div><dt>%s%s</dt><dd>%d</dd></div>\n", name, value == 1 ? "" : "s", value);
}

// An empty text; a failure of what it held is the page's.
static void start_again(dc_text *out, dc_text *value) {
    dc_text_follow(out, value);
    dc_text_fini(value);
    dc_text_init(value);
}

// A fact in words: <dt>name</dt><dd>what value ends with</dd>; follows and clears value. Nothing if it is empty.
static void fact_text(dc_text *out, const char *name, dc_text *value) {
    if (value->used) {
        dc_text_add(out, "<div><dt>%s</dt><dd>", name);
        text(out, value->bytes);
        dc_text_add(out, "</dd></div>\n");
    }
    start_again(out, value);
}

// A value, and under it at which step it was found.
static void value_fact(dc_text *out, const char *name, double x, const char *unit, int64_t step) {
    char count[DC_COUNT_MAX];
    if (!isfinite(x)) return;
    dc_text_add(out, "<div><dt>%s, step %s</dt><dd>", name, dc_markup_count(step, count));
    dc_markup_fixed(out, x, 1);
    dc_text_add(out, "%s</dd></div>\n", unit);
}

// Of the group whose result stands in the summary.
static void score_facts(const page *p, dc_text *value) {
    const dc_report_group *g = p->best ? p->best->group : p->runs->groups;
    bool held_out = !p->best && p->runs->group_count == 1;
    if (!p->best && !held_out) return;
    dc_best b = p->best ? dc_facts_success(g) : dc_facts_held_out(g);
    int64_t episodes = p->best ? dc_facts_episodes(g->runs[0]) : 0;
    const char *unit = p->best ? " %" : " steps";
    value_fact(p->out, p->best ? "best evaluation" : "best held-out error", b.best, unit,
               b.best_step);
    value_fact(p->out, p->best ? "last evaluation" : "last held-out error", b.last, unit,
               b.last_step);
    if (episodes) dc_text_add(value, "%" PRId64, episodes);
    fact_text(p->out, "episodes each", value);
}

static dc_status run_facts(const page *p, dc_text *value) {
    double longest = NAN;
    dc_names known;
    dc_text all;
    int place;
    dc_names_init(&known, p->arena);
    dc_text_init(&all);
    for (int i = 0; i < p->runs->count; i++) {
        const dc_report_run *run = &p->runs->runs[i];
        longest = fmax(longest, dc_facts_seconds(run));
        int before = known.count;
        dc_facts_device(run, value);
        if (value->used) DC_TRY(dc_names_put(&known, value->bytes, &place));
        if (known.count > before) dc_text_add(&all, "%s%s", place ? ", " : "", value->bytes);
        start_again(p->out, value);
    }
    fact_text(p->out, "device", &all);
    if (isfinite(longest)) dc_facts_duration(longest, value);
    fact_text(p->out, p->runs->count == 1 ? "training" : "training, longest run", value);
    return DC_OK;
}

static dc_status write_facts(const page *p) {
    int open = 0;
    dc_text value;
    dc_text_init(&value);
    dc_text_add(p->out, "<dl class=\"facts\">\n");
    for (int i = 0; i < p->runs->count; i++)
        open += !p->runs->runs[i].done;
    if (p->runs->count > 1) {
        fact(p->out, p->runs->count, "run");
        fact(p->out, p->runs->env_count, all_alone(p) ? "data set" : "environment");
        fact(p->out, p->runs->group_count, "group");
    }
    if (open) dc_text_add(p->out, "<div><dt>still training</dt><dd>%d</dd></div>\n", open);
    score_facts(p, &value);
    dc_status status = run_facts(p, &value);
    dc_text_add(p->out, "</dl>\n");
    dc_text_follow(p->out, &value);
    dc_text_fini(&value);
    return status;
}

static dc_status write_header(const page *p, const char *title) {
    dc_text line;
    dc_text_init(&line);
    dc_text_add(p->out, "<header>\n<p class=\"kicker\">dcrl report");
    if (p->runs->group_count == 1) group_name(p->runs->groups, &line);
    if (line.used) dc_text_add(p->out, " · <span>");
    if (line.used) text(p->out, line.bytes);
    dc_text_add(p->out, line.used ? "</span></p>\n" : "</p>\n");
    start_again(p->out, &line);
    element(p->out, "h1", title);
    summary(p, &line);
    dc_text_add(p->out, "<p class=\"lead\">");
    dc_text_follow(p->out, &line);
    text(p->out, line.bytes);
    dc_text_add(p->out, "</p>\n");
    dc_text_fini(&line);
    DC_TRY(write_facts(p));
    dc_text_add(p->out, "</header>\n");
    return DC_OK;
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
    group_name(g, &name);
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

static dc_status write_success(const page *p) {
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

static void write_compare(const page *p) {
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

static dc_status write_lock(const page *p) {
    if (!p->lock_count) return DC_OK;
    section(p->out, "lock", "Combination lock");
    if (p->best) { // else it is the page's summary
        dc_text line;
        dc_text_init(&line);
        lock_sentence(p, &line);
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

static dc_status write_held_out(const page *p) {
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

static dc_status write_speed(const page *p) {
    if (!has_metric(p, DC_METRIC_THROUGHPUT)) return DC_OK;
    section(p->out, "speed", "Throughput");
    DC_TRY(matrix(p, "steps_per_second",
                  "gradient steps per second of a process, its seeds together (median of the log, "
                  "mean over seeds)",
                  false));
    section_end(p->out);
    return DC_OK;
}

static dc_status write_training(const page *p) {
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

static void write_maps(const page *p) {
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

// --- options ---

static void value_cell(const page *p, const dc_report_group *g, const char *key) {
    const dc_json *option = dc_runs_option(g->runs[0], key);
    dc_text value;
    dc_text_init(&value);
    if (option) dc_runs_value(option, &value);
    dc_text_follow(p->out, &value);
    cell_open(p->out, key, option ? "value" : "value none");
    text(p->out, value.used ? value.bytes : option ? "(empty)" : "–");
    cell_close(p->out);
    dc_text_fini(&value);
}

static void key_value(const page *p, const option_facts *o) {
    dc_text value;
    dc_text_init(&value);
    dc_runs_value(o->first, &value);
    dc_text_follow(p->out, &value);
    dc_text_add(p->out, "<div><dt>");
    text(p->out, o->key);
    dc_text_add(p->out, "</dt><dd>");
    text(p->out, value.used ? value.bytes : "(empty)");
    dc_text_add(p->out, "</dd></div>\n");
    dc_text_fini(&value);
}

static void folder_small(const page *p, const dc_report_group *g) {
    dc_text folder;
    dc_text_init(&folder);
    group_name(g, &folder);
    dc_text_follow(p->out, &folder);
    if (folder.used) dc_text_add(p->out, " <small>");
    if (folder.used) text(p->out, folder.bytes);
    if (folder.used) dc_text_add(p->out, "</small>");
    dc_text_fini(&folder);
}

// A group, and the name of its folder.
static void folder_row(const page *p, const dc_report_group *g, const char *name) {
    dc_text_add(p->out, "<tr role=\"row\"><th role=\"rowheader\" scope=\"row\">");
    text(p->out, name);
    folder_small(p, g);
    dc_text_add(p->out, "</th>");
}

static void write_different(const page *p) {
    table_open(p->out, "what differs between groups");
    head(p->out, "group");
    for (int o = 0; o < p->option_count; o++)
        if (p->options[o].differs) head(p->out, p->options[o].key);
    body(p->out);
    for (int g = 0; g < p->runs->group_count; g++) {
        char name[512];
        const dc_report_group *group = &p->runs->groups[g];
        snprintf(name, sizeof name, "%.200s · %.250s", group->env, group->label);
        folder_row(p, group, name);
        for (int o = 0; o < p->option_count; o++)
            if (p->options[o].differs) value_cell(p, group, p->options[o].key);
        row_close(p->out);
    }
    table_close(p->out);
}

static void write_same(const page *p) {
    bool one = p->runs->group_count == 1;
    dc_text_add(p->out, "<details%s><summary>%s</summary>\n<dl class=\"same\">\n",
                one ? " open" : "", one ? "All options" : "Same in all groups that have it");
    for (int o = 0; o < p->option_count; o++)
        if (!p->options[o].differs) key_value(p, &p->options[o]);
    dc_text_add(p->out, "</dl></details>\n");
}

static void write_options(const page *p) {
    int different = 0;
    for (int o = 0; o < p->option_count; o++)
        different += p->options[o].differs;
    section(p->out, "options", "Options");
    if (different && dc_compare_too_large(p->runs->group_count, different))
        too_large(p->out, p->runs->group_count, different);
    else if (different)
        write_different(p);
    if (p->option_count > different) write_same(p);
    section_end(p->out);
}

// --- how to repeat it ---

// The distinct values of a text option over a group's runs.
static dc_status provenance(const page *p, const dc_report_group *g, const char *key,
                            const char *name) {
    dc_names known;
    dc_names_init(&known, p->arena);
    dc_text_add(p->out, "<div><dt>%s</dt><dd>", name);
    for (int i = 0; i < g->count; i++) {
        const dc_json *v = dc_json_get(g->runs[i]->config, key);
        int place, before = known.count;
        if (!v || v->kind != DC_JSON_STRING) continue;
        DC_TRY(dc_names_put(&known, v->text, &place));
        if (place < before) continue;
        dc_text_add(p->out, "%s", place ? ", " : "");
        text(p->out, v->text);
    }
    dc_text_add(p->out, "</dd></div>\n");
    return DC_OK;
}

// A command whose lines break between flags: each is a box with its value. The text is written over.
static void command_text(dc_text *out, char *line) {
    for (char *next; line; line = next) {
        next = strstr(line, " --");
        if (next) *next++ = 0;
        dc_text_add(out, "<span>");
        text(out, line);
        dc_text_add(out, "</span>%s", next ? " " : "");
    }
}

static dc_status write_recipe(const page *p, const dc_report_group *g) {
    dc_text command;
    dc_text_init(&command);
    dc_command_of(g, &command);
    dc_text_add(p->out, "<details%s><summary>", p->runs->group_count == 1 ? " open" : "");
    text(p->out, g->env);
    dc_text_add(p->out, " · ");
    text(p->out, g->label);
    folder_small(p, g);
    dc_text_add(p->out, "</summary>\n<pre tabindex=\"0\"><code>");
    command_text(p->out, command.bytes);
    dc_text_add(p->out, "</code></pre>\n<dl class=\"same\">\n<div><dt>runs</dt><dd>");
    for (int i = 0; i < g->count; i++) {
        dc_text_add(p->out, i ? ", " : "");
        text(p->out, g->runs[i]->folder);
    }
    dc_text_add(p->out, "</dd></div>\n");
    dc_text_follow(p->out, &command);
    dc_text_fini(&command);
    DC_TRY(provenance(p, g, "build", "build"));
    DC_TRY(provenance(p, g, "arithmetic", "computed with"));
    DC_TRY(provenance(p, g, "data_hash", "data hash"));
    dc_text_add(p->out, "</dl></details>\n");
    return DC_OK;
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
    p->lock_style = dc_arena_take(p->arena, (size_t)p->runs->count * sizeof *p->lock_style);
    if (!p->locks || !p->lock_style)
        return dc_fail(DC_NO_MEMORY, NULL, "no memory for the results");
    for (int g = 0; g < p->runs->group_count; g++)
        for (int i = 0; i < p->runs->groups[g].count; i++) {
            const dc_lock_result *result = p->runs->groups[g].runs[i]->result;
            if (!result) continue;
            p->lock_style[p->lock_count] = p->runs->groups[g].style;
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
    if (p->refresh)
        dc_text_add(p->out, "<meta http-equiv=\"refresh\" content=\"%d\">\n", p->refresh);
    element(p->out, "title", title);
    dc_text_add(p->out, "<style>\n%s%s</style>\n</head>\n<body>\n<main>\n", dc_page_css,
                dc_plot_dark);
}

static dc_status write_page(const page *p, const char *title) {
    write_start(p, title);
    DC_TRY(write_header(p, title));
    write_compare(p);
    DC_TRY(write_success(p));
    write_maps(p);
    DC_TRY(write_lock(p));
    DC_TRY(write_held_out(p));
    DC_TRY(write_speed(p));
    DC_TRY(write_training(p));
    write_options(p);
    DC_TRY(write_recipes(p));
    dc_text_add(p->out, "<footer>Written by dcrl %s</footer>\n</main>\n</body>\n</html>\n",
                dc_build_id());
    return dc_text_status(p->out);
}

dc_status dc_html_page(const dc_runs *runs, const dc_table *table, const dc_compare *compare,
                       const dc_curves *curves, const char *title, int refresh, dc_arena *arena,
                       dc_text *out) {
    page p = {.out = out,
              .arena = arena,
              .runs = runs,
              .table = table,
              .compare = compare,
              .curves = curves,
              .refresh = refresh};
    dc_text made;
    dc_text_init(&made);
    default_title(&p, &made);
    dc_status status = dc_text_status(&made);
    if (status == DC_OK) status = find_envs(&p);
    if (status == DC_OK) status = find_options(&p);
    if (status == DC_OK) status = collect_locks(&p);
    if (status == DC_OK) status = write_page(&p, title ? title : made.bytes);
    dc_text_fini(&made);
    free(p.locks);
    return status;
}
