// Scores of groups, see table.h. Runs come from runs.c, statistics from stats.c, published figures
// from paper.c; rows go to html.c, and to CSV and Markdown below.
#include "report/table.h"

#include "report/markup.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BOOTSTRAP_SEED = 0 };

// Values of one metric: a row a seed, a column a stratum.
typedef struct sample {
    double *x; // (seeds, strata)
    int seeds, strata;
} sample;

typedef struct builder {
    dc_table *table;
    const dc_runs *runs;
    dc_arena *arena;
    const dc_json *paper;
    double *x; // room for any sample
} builder;

// --- values of a run ---

// A run's success in one column of eval.csv, percent; NaN without evaluations.
static double run_success(const dc_report_run *run, const char *column, int *evaluations) {
    int c = dc_csv_column(&run->eval, column);
    if (c < 0 || !run->eval.rows) return NAN;
    int used = run->eval.rows < DC_LAST_EVALUATIONS ? run->eval.rows : DC_LAST_EVALUATIONS;
    double sum = 0;
    for (int r = run->eval.rows - used; r < run->eval.rows; r++)
        sum += dc_csv_at(&run->eval, r, c);
    if (!*evaluations || used < *evaluations) *evaluations = used;
    return 100 * sum / used;
}

// The median over the log: pauses of the machine do not count.
static double run_speed(const dc_report_run *run) {
    int c = dc_csv_column(&run->timing, "steps_per_second");
    double *x = c >= 0 && run->timing.rows ? malloc((size_t)run->timing.rows * sizeof *x) : NULL;
    if (!x) return run->result ? run->result->steps_per_second : NAN;
    int count = 0;
    for (int r = 0; r < run->timing.rows; r++)
        if (isfinite(dc_csv_at(&run->timing, r, c))) x[count++] = dc_csv_at(&run->timing, r, c);
    double speed = dc_stats_median(x, count);
    free(x);
    return speed;
}

static double run_error(const dc_report_run *run) {
    return run->result ? run->result->score.accumulated_error : NAN;
}

// --- scores of a group ---

static void publish(const builder *b, dc_score *score) {
    const dc_report_group *g = score->group;
    score->published =
        score->task && dc_paper_find(b->paper, g->env, g->method, score->task, &score->paper);
}

// The interquartile mean and its interval; `over` is there already.
static dc_status finish(builder *b, dc_score *score, const sample *s) {
    score->interval = (dc_interval){NAN, NAN};
    if (s->seeds > 1)
        DC_TRY(dc_stats_bootstrap(s->x, s->seeds, s->strata, DC_RESAMPLES, BOOTSTRAP_SEED,
                                  &score->interval));
    score->iqm = dc_stats_iqm(s->x, s->seeds * s->strata);
    publish(b, score);
    b->table->scores[b->table->count++] = *score;
    return DC_OK;
}

// A metric with one value a run.
static dc_status score_plain(builder *b, dc_score score) {
    sample s = {b->x, 0, 1};
    for (int i = 0; i < score.group->count; i++) {
        const dc_report_run *run = score.group->runs[i];
        double v = score.metric == DC_METRIC_LOCK ? run_error(run)
                   : score.metric == DC_METRIC_THROUGHPUT
                       ? run_speed(run)
                       : run_success(run, score.name, &score.evaluations);
        if (isfinite(v)) s.x[s.seeds++] = v;
    }
    if (!s.seeds) return DC_OK;
    score.over = dc_stats_spread(s.x, s.seeds);
    return finish(b, &score, &s);
}

// The run of a group whose eval.csv names the tasks; NULL without evaluations.
static const dc_report_run *evaluated(const dc_report_group *g) {
    for (int i = 0; i < g->count; i++)
        if (g->runs[i]->eval.rows) return g->runs[i];
    return NULL;
}

static bool is_task(builder *b, const char *column, const char **task) {
    *task = dc_runs_task(b->arena, column);
    return *task && strcmp(*task, "overall") != 0;
}

// Success of all runs that have every task, (seeds, tasks); without tasks, the overall column.
static void gather_tasks(builder *b, const dc_report_group *g, const dc_csv *columns, sample *s) {
    const char *task;
    int ignored = 0, tasks = 0;
    for (int c = 0; c < columns->columns; c++)
        tasks += is_task(b, columns->names[c], &task);
    *s = (sample){b->x, 0, tasks ? tasks : 1};
    for (int i = 0; i < g->count; i++) {
        double *row = s->x + (size_t)s->seeds * (size_t)s->strata;
        int t = 0;
        for (int c = 0; c < columns->columns; c++)
            if (is_task(b, columns->names[c], &task))
                row[t++] = run_success(g->runs[i], columns->names[c], &ignored);
        if (!tasks) row[0] = run_success(g->runs[i], "overall_success", &ignored);
        bool whole = true;
        for (t = 0; t < s->strata; t++)
            whole = whole && isfinite(row[t]);
        s->seeds += whole;
    }
}

static dc_status score_overall(builder *b, const dc_report_group *g, const dc_csv *columns) {
    dc_score score = {
        .group = g, .metric = DC_METRIC_OVERALL, .name = "overall_success", .task = "overall"};
    int seeds = 0;
    for (int i = 0; i < g->count; i++) {
        double v = run_success(g->runs[i], score.name, &score.evaluations);
        if (isfinite(v)) b->x[seeds++] = v;
    }
    score.over = dc_stats_spread(b->x, seeds);
    sample s;
    gather_tasks(b, g, columns, &s);
    return finish(b, &score, &s);
}

static dc_status score_success(builder *b, const dc_report_group *g) {
    const dc_report_run *first = evaluated(g);
    if (!first) return DC_OK;
    for (int c = 0; c < first->eval.columns; c++) {
        const char *task, *name = first->eval.names[c];
        if (is_task(b, name, &task))
            DC_TRY(score_plain(b, (dc_score){g, DC_METRIC_TASK, .name = name, .task = task}));
    }
    return score_overall(b, g, &first->eval);
}

static dc_status score_group(builder *b, const dc_report_group *g) {
    DC_TRY(score_success(b, g));
    DC_TRY(score_plain(b, (dc_score){g, DC_METRIC_LOCK, .name = "accumulated_error"}));
    return score_plain(b, (dc_score){g, DC_METRIC_THROUGHPUT, .name = "steps_per_second"});
}

dc_status dc_table_build(dc_table *table, const dc_runs *runs, dc_arena *arena) {
    *table = (dc_table){0};
    builder b = {.table = table, .runs = runs, .arena = arena};
    size_t scores = 0, most = 1;
    for (int g = 0; g < runs->group_count; g++) {
        const dc_report_run *first = evaluated(&runs->groups[g]);
        size_t columns = first ? (size_t)first->eval.columns : 0;
        size_t values = (size_t)runs->groups[g].count * (columns + 1);
        scores += columns + 2;
        most = values > most ? values : most;
    }
    table->scores = dc_arena_take(arena, scores * sizeof *table->scores);
    b.x = dc_arena_take(arena, most * sizeof *b.x);
    if (!table->scores || !b.x) return DC_NO_MEMORY;
    DC_TRY(dc_paper_open(arena, &b.paper));
    for (int g = 0; g < runs->group_count; g++)
        DC_TRY(score_group(&b, &runs->groups[g]));
    return DC_OK;
}

const dc_score *dc_table_find(const dc_table *table, const dc_report_group *group,
                              const char *name) {
    for (int i = 0; i < table->count; i++)
        if (table->scores[i].group == group && !strcmp(table->scores[i].name, name))
            return &table->scores[i];
    return NULL;
}

// --- CSV ---

// Quoted where it must be (RFC 4180).
static void csv_text(dc_text *out, const char *s) {
    if (!strpbrk(s, ",\"\r\n")) {
        dc_text_add(out, "%s,", s);
        return;
    }
    dc_text_add(out, "\"");
    for (; *s; s++)
        dc_text_add(out, "%s%c", *s == '"' ? "\"" : "", *s);
    dc_text_add(out, "\",");
}

static void csv_number(dc_text *out, double x, bool there) {
    if (there && isfinite(x)) dc_json_number(out, x);
    dc_text_add(out, ",");
}

void dc_table_csv(const dc_table *table, dc_text *out) {
    dc_text_add(out, "env,agent,metric,mean,sd,iqm,iqm_low,iqm_high,paper_mean,paper_sd,seeds\n");
    for (int i = 0; i < table->count; i++) {
        const dc_score *s = &table->scores[i];
        csv_text(out, s->group->env);
        csv_text(out, s->group->label);
        csv_text(out, s->name);
        csv_number(out, s->over.mean, true);
        csv_number(out, s->over.sd, true);
        csv_number(out, s->iqm, true);
        csv_number(out, s->interval.low, true);
        csv_number(out, s->interval.high, true);
        csv_number(out, s->paper.mean, s->published);
        csv_number(out, s->paper.sd, s->published);
        dc_text_add(out, "%d\n", s->over.count);
    }
}

// --- Markdown ---

// What Markdown or HTML would take as their own is written as a character reference.
static void md_text(dc_text *out, const char *s) {
    for (; *s; s++) {
        if (strchr("|*_`[]<>&\\\"'\n\r", *s))
            dc_text_add(out, "&#%d;", *s);
        else
            dc_text_add(out, "%c", *s);
    }
}

static void md_mean_sd(dc_text *out, double mean, double sd, int decimals) {
    dc_markup_fixed(out, mean, decimals);
    dc_text_add(out, " ± ");
    dc_markup_fixed(out, sd, decimals);
}

// One seed has no deviation.
static void md_spread(dc_text *out, const dc_spread *s, int decimals) {
    if (s->count > 1)
        md_mean_sd(out, s->mean, s->sd, decimals);
    else
        dc_markup_fixed(out, s->mean, decimals);
}

static void md_overall(const dc_score *s, dc_text *out) {
    dc_text_add(out, " | **");
    md_spread(out, &s->over, 1);
    dc_text_add(out, "** | ");
    dc_markup_fixed(out, s->iqm, 1);
    if (isfinite(s->interval.low)) {
        dc_text_add(out, " [");
        dc_markup_fixed(out, s->interval.low, 1);
        dc_text_add(out, ", ");
        dc_markup_fixed(out, s->interval.high, 1);
        dc_text_add(out, "]");
    }
    dc_text_add(out, " | ");
    if (s->published)
        md_mean_sd(out, s->paper.mean, s->paper.sd, 0);
    else
        dc_text_add(out, "–");
    dc_text_add(out, " | %d |\n", s->over.count);
}

// Header of an environment's table: the tasks of its first group.
static void md_head(const dc_table *t, const dc_score *first, dc_text *out) {
    dc_text_add(out, "## ");
    md_text(out, first->group->env);
    dc_text_add(out, "\n\n| agent");
    int columns = 5;
    for (int i = 0; i < t->count; i++)
        if (t->scores[i].group == first->group && t->scores[i].metric == DC_METRIC_TASK) {
            dc_text_add(out, " | ");
            md_text(out, t->scores[i].task);
            columns++;
        }
    dc_text_add(out, " | overall | IQM [95 %%] | paper | seeds |\n|");
    for (int c = 0; c < columns; c++)
        dc_text_add(out, c ? "---:|" : "---|");
    dc_text_add(out, "\n");
}

static void md_group(const dc_table *t, const dc_report_group *first, const dc_score *overall,
                     dc_text *out) {
    dc_text_add(out, "| ");
    md_text(out, overall->group->label);
    for (int i = 0; i < t->count; i++) {
        if (t->scores[i].group != first || t->scores[i].metric != DC_METRIC_TASK) continue;
        const dc_score *s = dc_table_find(t, overall->group, t->scores[i].name);
        dc_text_add(out, " | ");
        if (s)
            md_spread(out, &s->over, 1);
        else
            dc_text_add(out, "–");
    }
    md_overall(overall, out);
}

static void md_success(const dc_table *t, dc_text *out) {
    for (int i = 0; i < t->count; i++) {
        const dc_score *first = &t->scores[i];
        bool seen = first->metric != DC_METRIC_OVERALL;
        for (int k = 0; k < i && !seen; k++)
            seen = t->scores[k].metric == DC_METRIC_OVERALL &&
                   !strcmp(t->scores[k].group->env, first->group->env);
        if (seen) continue;
        md_head(t, first, out);
        for (int k = i; k < t->count; k++)
            if (t->scores[k].metric == DC_METRIC_OVERALL &&
                !strcmp(t->scores[k].group->env, first->group->env))
                md_group(t, first->group, &t->scores[k], out);
        dc_text_add(out, "\n");
    }
}

static void md_list(const dc_table *t, dc_metric metric, const char *title, const char *unit,
                    int decimals, dc_text *out) {
    bool any = false;
    for (int i = 0; i < t->count; i++) {
        const dc_score *s = &t->scores[i];
        if (s->metric != metric) continue;
        if (!any)
            dc_text_add(out, "## %s\n\n| environment | agent | %s | seeds |\n|---|---|---:|---:|\n",
                        title, unit);
        any = true;
        dc_text_add(out, "| ");
        md_text(out, s->group->env);
        dc_text_add(out, " | ");
        md_text(out, s->group->label);
        dc_text_add(out, " | ");
        md_spread(out, &s->over, decimals);
        dc_text_add(out, " | %d |\n", s->over.count);
    }
    if (any) dc_text_add(out, "\n");
}

void dc_table_markdown(const dc_table *table, const dc_runs *runs, dc_text *out) {
    dc_text_add(out, "# dcrl: %d run%s\n\n", runs->count, runs->count == 1 ? "" : "s");
    dc_text_add(out, "Success in percent, mean over the last three evaluations; ± is the standard "
                     "deviation over seeds.\n\n");
    md_success(table, out);
    md_list(table, DC_METRIC_LOCK, "Combination lock", "A(H)", 2, out);
    md_list(table, DC_METRIC_THROUGHPUT, "Throughput", "steps/s", 0, out);
}
