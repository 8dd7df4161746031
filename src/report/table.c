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
    bool every;  // score gets the interval of its interquartile mean, not the overall success alone
    double *x;   // room for any sample
    double *log; // room for a column of any timing.csv
} builder;

// --- values of a run ---

// At the last row of the log.
static double run_held_out(const dc_report_run *run) {
    int c = dc_csv_column(&run->train, DC_HELD_OUT_ERROR);
    return c < 0 || !run->train.rows ? NAN : dc_csv_at(&run->train, run->train.rows - 1, c);
}

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

// Of the process, which may train several seeds at a time. The median over the log: pauses of the machine do not
// count.
static double run_speed(const builder *b, const dc_report_run *run) {
    int c = dc_csv_column(&run->timing, "steps_per_second"), count = 0;
    int all = dc_csv_column(&run->timing, "together");
    if (c < 0 || !run->timing.rows) return run->result ? run->result->steps_per_second : NAN;
    for (int r = 0; r < run->timing.rows; r++) {
        double rate = dc_csv_at(&run->timing, r, c);
        if (all >= 0) rate *= dc_csv_at(&run->timing, r, all);
        if (isfinite(rate)) b->log[count++] = rate;
    }
    return dc_stats_median(b->log, count);
}

static double run_error(const dc_report_run *run) {
    return run->result ? run->result->score.accumulated_error : NAN;
}

// --- scores of a group ---

static void publish(const builder *b, dc_score *score) {
    const dc_report_group *g = score->group;
    score->published =
        score->task && dc_paper_find(b->paper, g->env, g->method, score->task, &score->paper);
    if (!score->published) return;
    score->beyond = score->paper.mean < score->mean95.low    ? 1
                    : score->paper.mean > score->mean95.high ? -1
                                                             : 0;
}

// Episodes behind a run's success in one column, and the step of the last evaluation.
static double run_episodes(const dc_report_run *run, const char *task, int64_t *step) {
    const dc_csv *csv = &run->eval;
    int all = dc_csv_column(csv, "episodes"), tasks = -1; // overall is none
    for (int c = 0; c < csv->columns; c++)
        tasks += strstr(csv->names[c], "_success") != NULL;
    double sum = 0;
    for (int r = csv->rows - 1; r >= 0 && r >= csv->rows - DC_LAST_EVALUATIONS; r--)
        sum += all < 0 ? 0 : dc_csv_at(csv, r, all);
    if (csv->rows) *step = (int64_t)dc_csv_at(csv, csv->rows - 1, dc_csv_column(csv, "step"));
    return strcmp(task, "overall") != 0 && tasks > 0 ? sum / tasks : sum;
}

// The interval of a success whose values over seeds are x (seeds), percent. Seeds that all agree say
// nothing of how far they may differ; then, as for a single one, their episodes do.
static void success_interval(dc_score *score, const double *x, int seeds) {
    double episodes = 0;
    for (int i = 0; i < score->group->count; i++) {
        int64_t step = -1;
        double n = run_episodes(score->group->runs[i], score->task, &step);
        if (step < 0) continue;
        if (n > 0) episodes += n;
        if (!score->steps || step < score->steps) score->steps = step;
    }
    score->over_seeds = score->over.sd > 1e-9; // rounding is no difference
    if (score->over_seeds) {
        score->mean95 = dc_stats_student(x, seeds);
        score->mean95.low = fmax(score->mean95.low, 0);
        score->mean95.high = fmin(score->mean95.high, 100);
    } else {
        score->mean95 = dc_stats_wilson(score->over.mean / 100, episodes);
        score->mean95.low *= 100;
        score->mean95.high *= 100;
    }
}

// The interquartile mean and its interval; `over` is there already.
static dc_status finish(builder *b, dc_score *score, const sample *s) {
    score->interval = (dc_interval){NAN, NAN};
    if (s->seeds > 1 && (b->every || score->metric == DC_METRIC_OVERALL))
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
        double v = score.metric == DC_METRIC_LOCK       ? run_error(run)
                   : score.metric == DC_METRIC_HELD_OUT ? run_held_out(run)
                   : score.metric == DC_METRIC_THROUGHPUT
                       ? run_speed(b, run)
                       : run_success(run, score.name, &score.evaluations);
        if (isfinite(v)) s.x[s.seeds++] = v;
    }
    if (!s.seeds) return DC_OK;
    score.over = dc_stats_spread(s.x, s.seeds);
    if (score.task) success_interval(&score, s.x, s.seeds);
    return finish(b, &score, &s);
}

// The run of a group whose eval.csv names the tasks; NULL without evaluations.
static const dc_report_run *evaluated(const dc_report_group *g) {
    for (int i = 0; i < g->count; i++)
        if (g->runs[i]->eval.rows) return g->runs[i];
    return NULL;
}

static bool is_task(const char *column) {
    size_t n = dc_runs_task(column);
    return n && (n != strlen("overall") || memcmp(column, "overall", n) != 0);
}

// Success of all runs that have every task, (seeds, tasks); without tasks, the overall column.
static void gather_tasks(builder *b, const dc_report_group *g, const dc_csv *columns, sample *s) {
    int ignored = 0, tasks = 0;
    for (int c = 0; c < columns->columns; c++)
        tasks += is_task(columns->names[c]);
    *s = (sample){b->x, 0, tasks ? tasks : 1};
    for (int i = 0; i < g->count; i++) {
        double *row = s->x + (size_t)s->seeds * (size_t)s->strata;
        int t = 0;
        for (int c = 0; c < columns->columns; c++)
            if (is_task(columns->names[c]))
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
    success_interval(&score, b->x, seeds);
    sample s;
    gather_tasks(b, g, columns, &s);
    return finish(b, &score, &s);
}

static dc_status score_success(builder *b, const dc_report_group *g) {
    const dc_report_run *first = evaluated(g);
    if (!first) return DC_OK;
    for (int c = 0; c < first->eval.columns; c++) {
        const char *name = first->eval.names[c];
        if (!is_task(name)) continue;
        const char *task = dc_arena_text(b->arena, name, dc_runs_task(name));
        if (!task) return DC_NO_MEMORY;
        DC_TRY(score_plain(b, (dc_score){g, DC_METRIC_TASK, .name = name, .task = task}));
    }
    return score_overall(b, g, &first->eval);
}

static dc_status score_group(builder *b, const dc_report_group *g) {
    DC_TRY(score_success(b, g));
    DC_TRY(score_plain(b, (dc_score){g, DC_METRIC_LOCK, .name = "accumulated_error"}));
    DC_TRY(score_plain(b, (dc_score){g, DC_METRIC_HELD_OUT, .name = DC_HELD_OUT_ERROR}));
    return score_plain(b, (dc_score){g, DC_METRIC_THROUGHPUT, .name = "steps_per_second"});
}

static dc_status take_room(builder *b) {
    const dc_runs *runs = b->runs;
    size_t scores = 0, most = 1, log = 1;
    for (int g = 0; g < runs->group_count; g++) {
        const dc_report_run *first = evaluated(&runs->groups[g]);
        size_t columns = first ? (size_t)first->eval.columns : 0;
        size_t values = (size_t)runs->groups[g].count * (columns + 1);
        scores += columns + 3; // A(H), held-out error, throughput
        most = values > most ? values : most;
    }
    for (int i = 0; i < runs->count; i++)
        log = (size_t)runs->runs[i].timing.rows > log ? (size_t)runs->runs[i].timing.rows : log;
    b->table->scores = dc_arena_take(b->arena, scores * sizeof *b->table->scores);
    b->table->first =
        dc_arena_take(b->arena, ((size_t)runs->group_count + 1) * sizeof *b->table->first);
    b->x = dc_arena_take(b->arena, most * sizeof *b->x);
    b->log = dc_arena_take(b->arena, log * sizeof *b->log);
    return b->table->scores && b->table->first && b->x && b->log ? DC_OK : DC_NO_MEMORY;
}

// Every success that comes within 95 % of the best of its environment; none where all is 0.
static dc_status mark_best(builder *b) {
    double *most =
        dc_arena_take(b->arena, ((size_t)b->runs->env_count + 1) * sizeof *most); // zeroed
    if (!most) return DC_NO_MEMORY;
    for (int i = 0; i < b->table->count; i++) {
        const dc_score *s = &b->table->scores[i];
        if (s->metric == DC_METRIC_OVERALL)
            most[s->group->env_place] = fmax(most[s->group->env_place], s->over.mean);
    }
    for (int i = 0; i < b->table->count; i++) {
        dc_score *s = &b->table->scores[i];
        s->best = s->metric == DC_METRIC_OVERALL && s->over.mean > 0 &&
                  s->over.mean >= 0.95 * most[s->group->env_place];
    }
    return DC_OK;
}

dc_status dc_table_build(dc_table *table, const dc_runs *runs, bool every, dc_arena *arena) {
    *table = (dc_table){0};
    builder b = {.table = table, .runs = runs, .every = every, .arena = arena};
    DC_TRY(take_room(&b));
    DC_TRY(dc_paper_open(arena, &b.paper));
    for (int g = 0; g < runs->group_count; g++) {
        DC_TRY(score_group(&b, &runs->groups[g]));
        table->first[g + 1] = table->count;
    }
    return mark_best(&b);
}

const dc_score *dc_table_of(const dc_table *table, const dc_report_group *group, int *count) {
    int first = table->first[group->place];
    *count = table->first[group->place + 1] - first;
    return table->scores + first;
}

const dc_score *dc_table_find(const dc_table *table, const dc_report_group *group,
                              const char *name) {
    int count;
    const dc_score *scores = dc_table_of(table, group, &count);
    for (int i = 0; i < count; i++)
        if (!strcmp(scores[i].name, name)) return &scores[i];
    return NULL;
}

// --- CSV ---

void dc_table_csv_text(dc_text *out, const char *s) {
    if (!strpbrk(s, ",\"\r\n")) {
        dc_text_name(out, s);
        dc_text_add(out, ",");
        return;
    }
    dc_text_add(out, "\"");
    for (size_t n; *s; s += n) {
        n = dc_text_shown(s) ? dc_text_shown(s) : 1;
        if (*s == '"') dc_text_add(out, "\"");
        dc_text_bytes(out, dc_text_shown(s) || *s == '\n' ? s : "?", n);
    }
    dc_text_add(out, "\",");
}

void dc_table_csv_number(dc_text *out, double x, bool there) {
    if (there && isfinite(x)) dc_json_number(out, x);
    dc_text_add(out, ",");
}

// What only a success has.
static void csv_success(dc_text *out, const dc_score *s) {
    bool known = s->task && isfinite(s->mean95.low);
    dc_table_csv_number(out, s->mean95.low, known);
    dc_table_csv_number(out, s->mean95.high, known);
    dc_text_add(out, "%s,", !known ? "" : s->over_seeds ? "seeds" : "episodes");
    dc_text_add(out, "%s,",
                !s->published   ? ""
                : s->beyond > 0 ? "above"
                : s->beyond     ? "below"
                                : "no");
    dc_table_csv_number(out, (double)s->steps, s->task != NULL);
    dc_table_csv_number(out, (double)s->group->runs[0]->transitions,
                        s->group->runs[0]->transitions > 0);
    dc_table_csv_text(out, s->published ? s->paper.data : "");
    dc_table_csv_text(out, s->published ? s->paper.steps : "");
    dc_text_add(out, "%s", s->published ? s->paper.source : "");
}

void dc_table_csv(const dc_table *table, dc_text *out) {
    dc_text_add(out,
                "env,agent,metric,mean,sd,iqm,iqm_low,iqm_high,paper_mean,paper_sd,seeds,"
                "low,high,over,beyond,steps,transitions,paper_data,paper_steps,paper_source\n");
    for (int i = 0; i < table->count; i++) {
        const dc_score *s = &table->scores[i];
        dc_table_csv_text(out, s->group->env);
        dc_table_csv_text(out, s->group->label);
        dc_table_csv_text(out, s->name);
        dc_table_csv_number(out, s->over.mean, true);
        dc_table_csv_number(out, s->over.sd, true);
        dc_table_csv_number(out, s->iqm, true);
        dc_table_csv_number(out, s->interval.low, true);
        dc_table_csv_number(out, s->interval.high, true);
        dc_table_csv_number(out, s->paper.mean, s->published);
        dc_table_csv_number(out, s->paper.sd, s->published);
        dc_text_add(out, "%d,", s->over.count);
        csv_success(out, s);
        dc_text_add(out, "\n");
    }
}

// --- Markdown ---

void dc_table_md_text(dc_text *out, const char *s) {
    for (size_t n; *s; s += n) {
        n = dc_text_shown(s) ? dc_text_shown(s) : 1;
        if (strchr("|*_`[]<>&\\\"'\n\r", *s))
            dc_text_add(out, "&#%d;", *s);
        else
            dc_text_bytes(out, dc_text_shown(s) ? s : "?", n);
    }
}

static void md_mean_sd(dc_text *out, double mean, double sd, int decimals) {
    dc_markup_fixed(out, mean, decimals);
    if (!isfinite(sd)) return;
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
    const char *bold = s->best ? "**" : "";
    dc_text_add(out, " | %s", bold);
    md_spread(out, &s->over, 1);
    dc_text_add(out, "%s | ", bold);
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
static void md_head(const dc_table *t, const dc_report_group *first, dc_text *out) {
    int columns = 5, count;
    const dc_score *scores = dc_table_of(t, first, &count);
    dc_text_add(out, "## ");
    dc_table_md_text(out, first->env);
    dc_text_add(out, "\n\n| agent");
    for (int i = 0; i < count; i++)
        if (scores[i].metric == DC_METRIC_TASK) {
            dc_text_add(out, " | ");
            dc_table_md_text(out, scores[i].task);
            columns++;
        }
    dc_text_add(out, " | overall | IQM [95 %%] | paper | seeds |\n|");
    for (int c = 0; c < columns; c++)
        dc_text_add(out, c ? "---:|" : "---|");
    dc_text_add(out, "\n");
}

static void md_group(const dc_table *t, const dc_report_group *first, const dc_score *overall,
                     dc_text *out) {
    int count;
    const dc_score *scores = dc_table_of(t, first, &count);
    dc_text_add(out, "| ");
    dc_table_md_text(out, overall->group->label);
    for (int i = 0; i < count; i++) {
        if (scores[i].metric != DC_METRIC_TASK) continue;
        const dc_score *s = dc_table_find(t, overall->group, scores[i].name);
        dc_text_add(out, " | ");
        if (s)
            md_spread(out, &s->over, 1);
        else
            dc_text_add(out, "–");
    }
    md_overall(overall, out);
}

static void md_env(const dc_table *t, const dc_report_env *env, dc_text *out) {
    const dc_report_group *first = NULL;
    for (int g = 0; g < env->count; g++) {
        const dc_score *s = dc_table_find(t, env->groups[g], "overall_success");
        if (!s) continue;
        if (!first) md_head(t, env->groups[g], out);
        first = first ? first : env->groups[g];
        md_group(t, first, s, out);
    }
    if (first) dc_text_add(out, "\n");
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
        dc_table_md_text(out, s->group->env);
        dc_text_add(out, " | ");
        dc_table_md_text(out, s->group->label);
        dc_text_add(out, " | ");
        md_spread(out, &s->over, decimals);
        dc_text_add(out, " | %d |\n", s->over.count);
    }
    if (any) dc_text_add(out, "\n");
}

void dc_table_held_out(const dc_table *table, dc_text *out) {
    bool any = false;
    for (int i = 0; i < table->count; i++) {
        const dc_score *s = &table->scores[i];
        if (s->metric != DC_METRIC_HELD_OUT) continue;
        if (!any) dc_text_add(out, "   error       sd  seeds  method\n");
        any = true;
        dc_text_add(out, "%8.2f ", s->over.mean);
        dc_text_add(out, s->over.count > 1 ? "%8.2f" : "       -", s->over.sd);
        dc_text_add(out, "  %5d  ", s->over.count);
        dc_text_name(out, s->group->label);
        dc_text_add(out, " on ");
        dc_text_name(out, s->group->env);
        dc_text_add(out, "\n");
    }
    if (any)
        dc_text_add(out, "\nMean error of predicted distances between states of held-out "
                         "trajectories, in steps, at the end of training.\n");
}

void dc_table_markdown(const dc_table *table, const dc_runs *runs, dc_text *out) {
    dc_text_add(out, "# dcrl: %d run%s\n\n", runs->count, runs->count == 1 ? "" : "s");
    dc_text_add(out, "Success in percent, mean over the last three evaluations; ± is the standard "
                     "deviation over seeds. Bold: within 95 %% of the best.\n\n");
    for (int e = 0; e < runs->env_count; e++)
        md_env(table, &runs->envs[e], out);
    md_list(table, DC_METRIC_LOCK, "Combination lock", "A(H)", 2, out);
    md_list(table, DC_METRIC_HELD_OUT, "Held-out rows", "error of distances, steps", 2, out);
    md_list(table, DC_METRIC_THROUGHPUT, "Throughput", "steps/s", 0, out);
}
