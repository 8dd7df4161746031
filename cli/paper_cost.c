// What a plan costs before it is made, see paper.h: rows, disk, updates, and a time from rates that were measured once
// (docs/performance.md, docs/lab/simulation.md). The time is a guide, right to a factor of two or so; a run itself
// tells better.
#include "paper.h"

#include "base/names.h"
#include "env/lock.h"
#include "report/markup.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// An update multiplies each weight of a network some 33 times a row: two critics on three kinds of rows forward, two
// of them backward, targets, oracle critic, and a policy through the critics. At 3 x 512 and a batch of 1024 two cores
// make 11 updates/s, an H200 4,200.
static const double passes = 2 * 33, core_flops = 2e11, gpu_flops = 1.5e14;
static const double start_seconds = 0.5; // of a run, until its first update
static const double script_share = 0.7;  // of simulation's rate, while data is made

typedef struct cost {
    double data, train, play; // seconds: of all cores, of one run after another, of all cores
    double bytes, updates;
} cost;

// Steps of simulation per second and core.
static double sim_rate(const char *env) {
    static const struct {
        const char *with;
        double rate;
    } rates[] = {{"pointmaze", 400000},  {"antmaze", 3200},     {"antsoccer", 3200},
                 {"humanoidmaze", 5900}, {"cube-octuple", 650}, {"cube", 1200},
                 {"scene", 970}};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        if (!strncmp(env, rates[i].with, strlen(rates[i].with))) return rates[i].rate;
    return 700; // puzzles
}

static double set_rows(const paper_set *set) {
    return (double)set->episodes * (double)set->rows;
}

static double set_seconds(const paper_set *set) {
    return 1.1 * set_rows(set) / (script_share * sim_rate(set->env));
}

// Weights of a network between its widths.
static double weights(double in, const dc_int_list *hidden, double out) {
    double sum = 0;
    for (int i = 0; i < hidden->count; i++) {
        sum += in * (double)hidden->v[i];
        in = (double)hidden->v[i];
    }
    return sum + in * out;
}

static dc_status add_run(const paper *p, const paper_run *r, cost *c) {
    const dc_paper_scale *s = &r->experiment->scale;
    const paper_set *set = r->set < 0 ? NULL : &p->sets[r->set];
    dc_run run = DC_RUN_NONE;
    dc_status status = dc_cell_configure(r->experiment, r->cell, &run);
    const dc_run_options *o = &run.options;
    double in = set ? set->obs + set->act + set->goal : 2 * log2(r->cell->x);
    double w = status == DC_OK ? weights(in, &o->hidden, 1) : 0;
    double seeds = (double)s->seeds, updates = seeds * (double)o->steps;
    c->updates += updates;
    c->bytes += seeds * 3 * 10 * w * sizeof(float); // three checkpoints: weights, averages, moments
    c->train += start_seconds + updates * passes * w * (double)o->batch * (set ? 1 : 0.3) /
                                    (p->flags->device ? gpu_flops : core_flops);
    dc_run_fini(&run);
    if (status != DC_OK || !set) return status;
    dc_env_spec spec;
    DC_TRY(dc_env_find(&spec, r->cell->env));
    double steps =
        seeds * (double)(s->evaluations + 1) * DC_TASKS * (double)s->episodes * spec.horizon;
    c->play += steps / sim_rate(set->env) + steps * 2 * w / core_flops;
    return DC_OK;
}

static dc_status add_up(const paper *p, cost *c) {
    *c = (cost){0};
    for (int i = 0; i < p->set_count; i++) {
        const paper_set *set = &p->sets[i];
        if (set->there || set->missing) continue;
        c->data += set_seconds(set);
        c->bytes += set->bytes;
    }
    for (int i = 0; i < p->run_count; i++)
        if (!p->runs[i].done) DC_TRY(add_run(p, &p->runs[i], c));
    return DC_OK;
}

static double seconds(const paper *p, const cost *c) {
    double cores = (double)(p->flags->threads ? p->flags->threads : sysconf(_SC_NPROCESSORS_ONLN));
    double train = p->flags->device ? c->train : c->train / cores;
    return c->data / cores + train + c->play / cores;
}

static int runs_left(const paper *p) {
    int count = 0;
    for (int i = 0; i < p->run_count; i++)
        count += !p->runs[i].done;
    return count;
}

// ---- for people ----

static void say_bytes(double bytes, dc_text *out) {
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    int unit = 0;
    while (bytes >= 1000 && unit < 4) {
        bytes /= 1000;
        unit++;
    }
    dc_markup_fixed(out, bytes, bytes < 10 && unit ? 1 : 0);
    dc_text_add(out, " %s", units[unit]);
}

static void say_seconds(double s, dc_text *out) {
    char text[32];
    if (s < 172800)
        dc_text_add(out, "%s", cli_duration(s, text));
    else if (s < 86400 * 3650.0)
        dc_text_add(out, "%.0f days", s / 86400);
    else
        dc_text_add(out, "%.0f years", s / 86400 / 365);
}

static void say_sets(const paper *p, dc_text *out) {
    char rows[DC_COUNT_MAX];
    if (p->set_count) dc_text_add(out, "data sets\n");
    for (int i = 0; i < p->set_count; i++) {
        const paper_set *set = &p->sets[i];
        dc_text_add(out, "  %-34s ", set->env);
        if (set->missing) {
            dc_text_add(out, "missing: %s\n", set->missing);
            continue;
        }
        if (set->there) {
            dc_text_add(out, "there: %s\n", set->path);
            continue;
        }
        dc_text_add(out, "%s rows, ", dc_markup_count(llround(set_rows(set)), rows));
        say_bytes(set->bytes, out);
        dc_text_add(out, "\n");
    }
}

static void say_experiments(const paper *p, dc_text *out) {
    dc_text_add(out, "experiments\n");
    for (int i = 0; i < p->wanted; i++) {
        const dc_experiment *e = &p->plan.experiments[i];
        int missing = 0, all = dc_experiment_cells(e);
        for (int k = 0; k < all; k++)
            missing += e->cells[k].missing != NULL;
        dc_text_add(out, "  %-16s %d tasks, %d methods, %d cells", e->name, e->task_count,
                    e->method_count, all);
        if (missing) dc_text_add(out, ", %d missing", missing);
        dc_text_add(out, e->missing ? ": %s\n" : "\n", e->missing);
    }
}

static void say(const paper *p, const cost *c, dc_text *out) {
    char count[DC_COUNT_MAX];
    dc_text_add(out, "scale %s: %s\n", p->plan.scale, p->plan.says);
    say_experiments(p, out);
    say_sets(p, out);
    dc_text_add(out, "runs      %d, %d to do\n", p->run_count, runs_left(p));
    dc_text_add(out, "updates   %s\n", dc_markup_count(llround(c->updates), count));
    dc_text_add(out, "disk      about ");
    say_bytes(c->bytes, out);
    dc_text_add(out, "\ntime      about ");
    say_seconds(seconds(p, c), out);
    dc_text_add(out, " %s\n",
                p->flags->device ? "with one H200; another GPU takes longer" : "on these cores");
}

// ---- as JSON ----

static void json_sets(const paper *p, dc_text *out) {
    dc_text_add(out, "\"data\": [");
    for (int i = 0; i < p->set_count; i++) {
        const paper_set *set = &p->sets[i];
        dc_text_add(out, "%s{\"name\": ", i ? ", " : "");
        dc_json_quote(out, set->env);
        dc_text_add(out, ", \"path\": ");
        dc_json_quote(out, set->path);
        dc_text_add(out, ", \"rows\": %.0f, \"bytes\": %.0f, \"state\": \"%s\"}", set_rows(set),
                    set->bytes,
                    set->missing ? "missing"
                    : set->there ? "there"
                                 : "to make");
    }
    dc_text_add(out, "]");
}

static void json_missing(const paper *p, dc_text *out) {
    const char *join = "";
    dc_text_add(out, "\"missing\": [");
    for (int i = 0; i < p->wanted; i++) {
        const dc_experiment *e = &p->plan.experiments[i];
        for (int t = 0; t < e->task_count; t++) {
            const dc_cell *c = dc_experiment_cell(e, t, 0, 0);
            if (!c->missing) continue;
            dc_text_add(out, "%s{\"experiment\": \"%s\", \"task\": \"%s\", \"why\": ", join,
                        e->name, c->task);
            dc_json_quote(out, c->missing);
            dc_text_add(out, "}");
            join = ", ";
        }
    }
    dc_text_add(out, "]");
}

static void json(const paper *p, const cost *c, dc_text *out) {
    dc_text_add(out, "{\"scale\": ");
    dc_json_quote(out, p->plan.scale);
    dc_text_add(out, ", ");
    json_sets(p, out);
    dc_text_add(out, ", ");
    json_missing(p, out);
    dc_text_add(out,
                ", \"runs\": %d, \"to_do\": %d, \"updates\": %.0f, \"bytes\": %.0f, \"seconds\": "
                "%.0f}\n",
                p->run_count, runs_left(p), c->updates, c->bytes, seconds(p, c));
}

dc_status paper_tell(const paper *p, bool as_json) {
    cost c;
    dc_text out;
    DC_TRY(add_up(p, &c));
    dc_text_init(&out);
    (as_json ? json : say)(p, &c, &out);
    dc_status status = dc_text_status(&out);
    if (status == DC_OK) fputs(out.bytes, stdout);
    dc_text_fini(&out);
    return status;
}
