// What the runs of a plan found, see experiment.h: each cell's folder is read as a report reads it (runs.h, table.h),
// and what the page needs is kept.
#include "report/experiment.h"

#include "base/file.h"
#include "report/facts.h"
#include "report/table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PATH = 4096 };

typedef struct reader {
    dc_plan *plan;
    const dc_experiment *experiment;
    const dc_runs *runs;
    const dc_report_group *group;
    dc_reached *out;
} reader;

static dc_status no_memory(void) {
    return dc_fail(DC_NO_MEMORY, NULL, "no memory for the results");
}

static dc_status keep(dc_plan *plan, const char *text, const char **out) {
    *out = dc_arena_text(&plan->arena, text, strlen(text));
    return *out ? DC_OK : no_memory();
}

// --- numbers ---

static dc_status take_success(const reader *r, const dc_table *table) {
    const dc_score *s = dc_table_find(table, r->group, "overall_success");
    if (!s) return DC_OK;
    r->out->success = s->over;
    r->out->mean95 = s->mean95;
    r->out->steps = s->steps;
    return DC_OK;
}

static void take_error(const reader *r) {
    double x[DC_RUNS_MAX];
    int count = 0;
    for (int i = 0; i < r->group->count && count < DC_RUNS_MAX; i++) {
        const dc_lock_result *result = r->group->runs[i]->result;
        if (!result) continue;
        x[count++] = result->score.accumulated_error;
        r->out->steps = result->steps;
    }
    if (!count) return;
    r->out->success = dc_stats_spread(x, count);
    r->out->mean95 = dc_stats_student(x, count);
}

static dc_status take_facts(const reader *r, const dc_table *table) {
    const dc_score *speed = dc_table_find(table, r->group, "steps_per_second");
    dc_text device;
    if (speed) r->out->speed = speed->over;
    r->out->transitions = r->group->runs[0]->transitions;
    dc_text_init(&device);
    dc_facts_device(r->group->runs[0], &device);
    dc_status status = dc_text_status(&device);
    if (status == DC_OK && device.used) status = keep(r->plan, device.bytes, &r->out->device);
    dc_text_fini(&device);
    return status;
}

// Success at each evaluation, the mean over seeds, against the hours that training took until then.
static dc_status take_curve(const reader *r) {
    const dc_csv *first = &r->group->runs[0]->eval;
    int step = dc_csv_column(first, "step"), count = first->rows;
    if (step < 0 || !count || !r->out->speed.count) return DC_OK;
    r->out->hours = dc_arena_take(&r->plan->arena, 2 * (size_t)count * sizeof(double));
    if (!r->out->hours) return no_memory();
    r->out->curve = r->out->hours + count;
    r->out->points = count;
    for (int i = 0; i < count; i++) {
        double sum = 0;
        int runs = 0;
        for (int k = 0; k < r->group->count; k++) {
            const dc_csv *csv = &r->group->runs[k]->eval;
            int c = dc_csv_column(csv, "overall_success");
            if (c < 0 || i >= csv->rows) continue;
            sum += dc_csv_at(csv, i, c);
            runs++;
        }
        r->out->hours[i] = dc_csv_at(first, i, step) / r->out->speed.mean / 3600;
        r->out->curve[i] = runs ? 100 * sum / runs : NAN;
    }
    return DC_OK;
}

static dc_status take_maps(const reader *r) {
    const dc_report_run *run = r->group->runs[0];
    r->out->map = dc_arena_take(&r->plan->arena, ((size_t)run->map_count + 1) * sizeof(char *));
    if (!r->out->map) return no_memory();
    for (int i = 0; i < run->map_count; i++)
        r->out->map[i] = dc_arena_text(&r->plan->arena, run->maps[i].bytes, run->maps[i].size);
    r->out->maps = run->map_count;
    return DC_OK;
}

static dc_status take(reader *r) {
    dc_table table;
    dc_arena arena;
    bool done = r->runs->count >= r->experiment->scale.seeds;
    for (int i = 0; i < r->runs->count; i++)
        done = done && r->runs->runs[i].done && (!r->experiment->lock || r->runs->runs[i].result);
    r->out->begun = true;
    r->out->done = done;
    dc_arena_init(&arena, 0);
    dc_status status = dc_table_build(&table, r->runs, false, &arena);
    if (status == DC_OK && r->experiment->lock) take_error(r);
    if (status == DC_OK && !r->experiment->lock) status = take_success(r, &table);
    if (status == DC_OK) status = take_facts(r, &table);
    if (status == DC_OK) status = take_curve(r);
    if (status == DC_OK && r->experiment->view == DC_VIEW_MAPS) status = take_maps(r);
    dc_arena_fini(&arena);
    return status;
}

// --- cells ---

static dc_status has_begun(const dc_experiment *e, const dc_cell *c, const char *dir, bool *begun) {
    char folder[PATH];
    *begun = false;
    for (int64_t s = 0; s < e->scale.seeds && !*begun; s++) {
        DC_TRY(dc_cell_member(e, c, dir, s, folder, sizeof folder));
        DC_TRY(dc_run_begun(folder, begun));
    }
    return DC_OK;
}

static dc_status read_cell(dc_plan *plan, const dc_experiment *e, dc_cell *c, const char *dir) {
    char folder[PATH], page[PATH + 16];
    const char *paths[] = {folder};
    bool begun;
    dc_runs runs;
    c->reached = (dc_reached){.begun = false};
    DC_TRY(has_begun(e, c, dir, &begun));
    if (!begun) return DC_OK;
    snprintf(folder, sizeof folder, "%s/%s", dir, c->folder);
    dc_status status = dc_runs_read(&runs, paths, 1);
    if (status == DC_BAD_INPUT) return keep(plan, dc_error(), &c->reached.note);
    DC_TRY(status);
    reader r = {plan, e, &runs, runs.groups, &c->reached};
    status = take(&r);
    dc_runs_fini(&runs);
    snprintf(page, sizeof page, "%s/report.html", folder);
    return status == DC_OK ? dc_file_find(page, &c->reached.page) : status;
}

dc_status dc_plan_read(dc_plan *plan, const char *dir) {
    for (int i = 0; i < plan->count; i++) {
        dc_experiment *e = &plan->experiments[i];
        for (int k = 0; k < dc_experiment_cells(e); k++)
            DC_TRY(read_cell(plan, e, &e->cells[k], dir));
    }
    return DC_OK;
}
