// The table of methods and tasks, see compare.h.
#include "report/compare.h"

#include "base/names.h"

#include "report/markup.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char oracle[] = "-oraclerep";

enum {
    CELLS_MAX = 500000, // of a table
    WIDTH_MAX = 200,    // of a column with names
};

// Names of a score's row and column.
static dc_status name_score(const dc_score *s, dc_arena *arena, const char **task,
                            const char **method) {
    const char *env = s->group->env, *at = strstr(env, oracle);
    *task = env;
    *method = s->group->label;
    if (!at) return DC_OK;
    dc_text t, m;
    dc_text_init(&t);
    dc_text_init(&m);
    dc_text_add(&t, "%.*s%s", (int)(at - env), env, at + sizeof oracle - 1);
    dc_text_add(&m, "%s, oraclerep", s->group->label);
    bool good = t.status == DC_OK && m.status == DC_OK;
    *task = good ? dc_arena_text(arena, t.bytes, t.used) : NULL;
    *method = good ? dc_arena_text(arena, m.bytes, m.used) : NULL;
    dc_text_fini(&t);
    dc_text_fini(&m);
    return *task && *method ? DC_OK : DC_NO_MEMORY;
}

static int64_t transitions(const dc_score *s) {
    return s->group->runs[0]->transitions;
}

static int by_place(const void *x, const void *y) {
    const dc_compare_cell *a = x, *b = y;
    if (a->task != b->task) return a->task - b->task;
    return a->method - b->method;
}

// Sort cells; of a pair that was named twice the last score counts.
static void sort_cells(dc_compare *c) {
    int kept = 0;
    if (c->count) qsort(c->cell, (size_t)c->count, sizeof *c->cell, by_place);
    for (int i = 0; i < c->count; i++) {
        if (kept && !by_place(&c->cell[kept - 1], &c->cell[i])) {
            if (c->cell[kept - 1].score < c->cell[i].score) c->cell[kept - 1] = c->cell[i];
            continue;
        }
        c->cell[kept++] = c->cell[i];
    }
    c->count = kept;
}

static void find_common(dc_compare *c) {
    c->same_seeds = c->same_steps = c->same_data = true;
    for (int i = 0; i < c->count; i++) {
        const dc_score *s = c->cell[i].score;
        c->same_seeds &= s->over.count == c->any->over.count;
        c->same_steps &= s->steps == c->any->steps;
        c->same_data &= transitions(s) == transitions(c->any);
    }
}

dc_status dc_compare_build(dc_compare *c, const dc_table *table, dc_arena *arena) {
    dc_names tasks, methods;
    *c = (dc_compare){0};
    dc_names_init(&tasks, arena);
    dc_names_init(&methods, arena);
    c->cell = dc_arena_take(arena, ((size_t)table->count + 1) * sizeof *c->cell);
    if (!c->cell) return DC_NO_MEMORY;
    for (int i = 0; i < table->count; i++) {
        const char *task, *method;
        dc_compare_cell *cell = &c->cell[c->count];
        if (table->scores[i].metric != DC_METRIC_OVERALL) continue;
        cell->score = &table->scores[i];
        DC_TRY(name_score(cell->score, arena, &task, &method));
        DC_TRY(dc_names_put(&tasks, task, &cell->task));
        DC_TRY(dc_names_put(&methods, method, &cell->method));
        c->count++;
    }
    c->any = c->count ? c->cell[0].score : NULL;
    c->task = tasks.name;
    c->method = methods.name;
    c->tasks = tasks.count;
    c->methods = methods.count;
    find_common(c);
    sort_cells(c);
    return DC_OK;
}

static void add_behind(const dc_score *s, bool seeds, bool steps, bool data, dc_text *out) {
    char text[DC_COUNT_MAX];
    if (seeds) dc_text_add(out, "%d seed%s", s->over.count, s->over.count == 1 ? "" : "s");
    if (steps) {
        dc_text_add(out, seeds ? ", " : "");
        dc_text_add(out, "%s steps", dc_markup_count(s->steps, text));
    }
    if (data) {
        dc_text_add(out, seeds || steps ? ", data %s" : "data %s",
                    dc_markup_count(transitions(s), text));
    }
}

void dc_compare_common(const dc_compare *c, dc_text *out) {
    if (c->any) add_behind(c->any, c->same_seeds, c->same_steps, c->same_data, out);
}

void dc_compare_behind(const dc_compare *c, const dc_score *s, dc_text *out) {
    add_behind(s, !c->same_seeds, !c->same_steps, !c->same_data, out);
}

dc_compare_grid dc_compare_lay(const dc_compare *c) {
    if (c->tasks < c->methods)
        return (dc_compare_grid){c, "method", c->method, c->task, c->methods, c->tasks};
    return (dc_compare_grid){c, "task", c->task, c->method, c->tasks, c->methods};
}

bool dc_compare_too_large(int rows, int columns) {
    return columns > 0 && rows > CELLS_MAX / columns;
}

const dc_score *dc_compare_at(const dc_compare_grid *g, int row, int column) {
    const dc_compare *c = g->compare;
    bool by_task = g->row == c->task;
    dc_compare_cell want = {by_task ? row : column, by_task ? column : row, NULL};
    const dc_compare_cell *found =
        c->count ? bsearch(&want, c->cell, (size_t)c->count, sizeof want, by_place) : NULL;
    return found ? found->score : NULL;
}

static bool same_source(const dc_score *a, const dc_score *b) {
    return a->published && b->published && !strcmp(a->paper.source, b->paper.source) &&
           !strcmp(a->paper.data, b->paper.data);
}

// The end of the cells of the task that begin at `from`.
static int task_end(const dc_compare *c, int from) {
    int end = from;
    while (end < c->count && c->cell[end].task == c->cell[from].task)
        end++;
    return end;
}

// Those of the cells from .. end - 1, which are of one task.
static void task_sources(const dc_compare *c, int from, int end, dc_compare_source_fn *call,
                         void *ctx) {
    for (int i = from; i < end; i++) {
        const dc_score *s = c->cell[i].score;
        bool seen = !s->published; // few are: the published methods
        for (int k = from; k < i && !seen; k++)
            seen = same_source(c->cell[k].score, s);
        if (!seen) call(ctx, c->task[c->cell[i].task], &s->paper);
    }
}

void dc_compare_sources(const dc_compare *c, dc_compare_source_fn *call, void *ctx) {
    for (int i = 0, end; i < c->count; i = end) {
        end = task_end(c, i);
        task_sources(c, i, end, call, ctx);
    }
}

// --- Markdown ---

static void md_figure(const dc_score *s, dc_text *out) {
    dc_text_add(out, "<br>published ");
    dc_markup_fixed(out, s->paper.mean, 0);
    if (isfinite(s->paper.sd)) {
        dc_text_add(out, " ± ");
        dc_markup_fixed(out, s->paper.sd, 0);
    }
    if (s->beyond && s->over.count > 1) {
        dc_text_add(out, " %s", s->beyond > 0 ? "▲ +" : "▼ ");
        dc_markup_fixed(out, s->over.mean - s->paper.mean, 1);
    }
}

static void md_cell(const dc_compare *c, const dc_score *s, dc_text *out) {
    const char *bold = s->best ? "**" : "";
    dc_text_add(out, "%s", bold);
    dc_markup_fixed(out, s->over.mean, 1);
    dc_text_add(out, "%s", bold);
    if (s->over.count > 1) {
        dc_text_add(out, " [");
        dc_markup_fixed(out, s->mean95.low, 1);
        dc_text_add(out, ", ");
        dc_markup_fixed(out, s->mean95.high, 1);
        dc_text_add(out, "]");
    }
    if (s->published) md_figure(s, out);
    if (c->same_seeds && c->same_steps && c->same_data) return;
    dc_text_add(out, "<br>");
    dc_compare_behind(c, s, out);
}

static void md_source(void *ctx, const char *task, const dc_paper_figure *f) {
    dc_text *out = ctx;
    dc_text_add(out, "- published, ");
    dc_table_md_text(out, task);
    dc_text_add(out, ": %s; data of %s, %s steps\n", f->source, f->data, f->steps);
}

void dc_compare_markdown(const dc_compare *c, dc_text *out) {
    dc_compare_grid g = dc_compare_lay(c);
    if (dc_compare_too_large(g.rows, g.columns)) return;
    dc_text_add(
        out,
        "## Methods and tasks\n\nOverall success in percent; where there are several seeds, with a "
        "95 %% "
        "interval over them (Student's t; where they all agree, over their episodes, Wilson). "
        "Bold: within "
        "95 %% of the best of the same task and goals. Below it what is published for the same "
        "kind of goals; "
        "▲ ▼: that lies below, above our interval, and by how much our mean differs.\n\n| %s",
        g.what);
    for (int k = 0; k < g.columns; k++) {
        dc_text_add(out, " | ");
        dc_table_md_text(out, g.column[k]);
    }
    dc_text_add(out, " |\n|---|");
    for (int k = 0; k < g.columns; k++)
        dc_text_add(out, "---:|");
    for (int r = 0; r < g.rows; r++) {
        dc_text_add(out, "\n| ");
        dc_table_md_text(out, g.row[r]);
        for (int k = 0; k < g.columns; k++) {
            const dc_score *s = dc_compare_at(&g, r, k);
            dc_text_add(out, " | ");
            if (s)
                md_cell(c, s, out);
            else
                dc_text_add(out, "–");
        }
        dc_text_add(out, " |");
    }
    dc_text_add(out, "\n\n");
    dc_compare_sources(c, md_source, out);
    dc_text_add(out, "\n");
}

// --- a terminal ---

// Room for a number or a count as text; a dash is one byte here.
typedef struct word {
    char text[48];
} word;

static word count_word(int64_t n) {
    word w = {"-"};
    if (n > 0) dc_markup_count(n, w.text);
    return w;
}

static word interval_word(const dc_interval *i) {
    word w = {"-"};
    if (isfinite(i->low)) snprintf(w.text, sizeof w.text, "[%.1f, %.1f]", i->low, i->high);
    return w;
}

static word figure_word(const dc_score *s) {
    word w = {"-"};
    if (s->published && isfinite(s->paper.sd))
        snprintf(w.text, sizeof w.text, "%.0f +- %.0f", s->paper.mean, s->paper.sd);
    else if (s->published)
        snprintf(w.text, sizeof w.text, "%.0f", s->paper.mean);
    return w;
}

static word difference_word(const dc_score *s) {
    word w = {"-"};
    if (s->published)
        snprintf(w.text, sizeof w.text, "%+.1f%s", s->over.mean - s->paper.mean,
                 s->beyond ? " *" : "  ");
    return w;
}

static const char *basis(const dc_score *s) {
    return !isfinite(s->mean95.low) ? "-" : s->over_seeds ? "seeds" : "episodes";
}

static void text_line(const dc_score *s, const char *method, int width, dc_text *out) {
    int start = (int)out->used;
    dc_text_add(out, "  ");
    dc_text_name(out, method);
    int used = (int)out->used - start - 2; // of the column
    dc_text_add(out, "%*s %7.1f %14s %-8s %9s %10s %5d %6s %6s\n", used < width ? width - used : 0,
                "", s->over.mean, interval_word(&s->mean95).text, basis(s), figure_word(s).text,
                difference_word(s).text, s->over.count, count_word(s->steps).text,
                count_word(transitions(s)).text);
}

static void text_source(void *ctx, const char *task, const dc_paper_figure *f) {
    (void)task;
    dc_text_add(ctx, "  published: %s; data of %s, %s steps\n", f->source, f->data, f->steps);
}

void dc_compare_text(const dc_compare *c, dc_text *out) {
    int width = 6;
    for (int m = 0; m < c->methods; m++) {
        size_t n = strlen(c->method[m]);
        width = n > WIDTH_MAX ? WIDTH_MAX : (int)n > width ? (int)n : width;
    }
    for (int i = 0, end; i < c->count; i = end) {
        dc_text_add(out, "%s", i ? "\n" : "");
        dc_text_name(out, c->task[c->cell[i].task]);
        dc_text_add(out, "\n  %-*s %7s %14s %-8s %9s %10s %5s %6s %6s\n", width, "method",
                    "success", "95 %", "over", "published", "difference", "seeds", "steps", "data");
        end = task_end(c, i);
        for (int k = i; k < end; k++)
            text_line(c->cell[k].score, c->method[c->cell[k].method], width, out);
        task_sources(c, i, end, text_source, out);
    }
    dc_text_add(out,
                "\nSuccess over all tasks in percent, mean over the last three evaluations. 95 "
                "%%: over seeds by Student's t, of one\nseed over its episodes by Wilson's "
                "score. *: the published figure lies outside.\n");
}

// --- JSON ---

static void member(dc_text *out, const char *key, double x) {
    dc_text_add(out, ", \"%s\": ", key);
    dc_json_number(out, x);
}

static void json_score(const dc_score *s, dc_text *out) {
    dc_text_add(out, "{\"env\": ");
    dc_json_quote(out, s->group->env);
    dc_text_add(out, ", \"agent\": ");
    dc_json_quote(out, s->group->label);
    member(out, "success", s->over.mean);
    member(out, "low", s->mean95.low);
    member(out, "high", s->mean95.high);
    dc_text_add(out, ", \"over\": \"%s\", \"seeds\": %d, \"steps\": %" PRId64, basis(s),
                s->over.count, s->steps);
    dc_text_add(out, ", \"transitions\": %" PRId64, transitions(s));
    if (s->published) {
        member(out, "published", s->paper.mean);
        member(out, "published_sd", s->paper.sd);
        dc_text_add(out, ", \"published_data\": ");
        dc_json_quote(out, s->paper.data);
        dc_text_add(out, ", \"source\": ");
        dc_json_quote(out, s->paper.source);
        dc_text_add(out, ", \"beyond\": %s", s->beyond ? "true" : "false");
    }
    dc_text_add(out, "}");
}

void dc_compare_json(const dc_compare *c, dc_text *out) {
    const char *join = "";
    dc_text_add(out, "[");
    for (int i = 0; i < c->count; i++) {
        dc_text_add(out, "%s", join);
        json_score(c->cell[i].score, out);
        join = ",\n  ";
    }
    dc_text_add(out, "]");
}
