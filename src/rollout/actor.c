// Actor, see actor.h.
#include "rollout/actor.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Candidates handled together: bounds memory. A GPU always computes all of them, so fewer waste less when few
// environments are left, and these keep it busy.
enum { AT_ONCE = 1 << 14, AT_ONCE_GPU = 1 << 11, AT_ONCE_PICTURES = 64 };

// ---- opening ----

// Rows per call of the graph: equal parts of all, none above what is allowed.
static int part_of(const dc_actor *a, int candidates, int most) {
    int allowed = most / candidates < 1 ? 1 : most / candidates;
    int parts = (a->rows + allowed - 1) / allowed;
    return (a->rows + parts - 1) / parts;
}

static dc_status not_this_policy(const dc_actor *a, bool samples) {
    const char *name = a->from.method.algo->name;
    if (samples)
        return dc_fail(DC_USAGE, "leave it out",
                       "--samples is for policies that take the best of several actions or "
                       "subgoals (policy=rejection); this one of %s does not",
                       name);
    return dc_fail(DC_USAGE, "leave it out",
                   "--flow-steps is for policies that are flows; this one of %s is none", name);
}

static dc_status override(dc_actor *a, const char *key, int value) {
    char text[32];
    if (!value) return DC_OK;
    if (!dc_options_find(a->from.method.algo->options, key))
        return not_this_policy(a, !strcmp(key, "samples"));
    snprintf(text, sizeof text, "%d", value);
    return dc_options_set(a->from.method.algo->options, a->from.config, key, text);
}

// How many candidates the policy compares per row, found by describing it for one row.
static dc_status count_candidates(const dc_actor *a, int *candidates) {
    dc_infer *one;
    DC_TRY(dc_infer_new(&one, DC_INFER_ACT, &a->from.method, &a->from.nets, &a->from.params.slabs,
                        1, NULL));
    *candidates = 1;
    for (int i = 0; i < one->noises; i++)
        if (one->noise[i].candidates > *candidates) *candidates = one->noise[i].candidates;
    dc_infer_free(one);
    return DC_OK;
}

// Memory for what is known of goals.
static dc_status keep_known(dc_actor *a) {
    size_t rows = (size_t)a->rows;
    a->known.cells = dc_infer_known(a->policy);
    if (!a->known.cells) return DC_OK;
    a->known.goals = calloc(rows * (size_t)a->goal, sizeof *a->known.goals);
    a->known.numbers = calloc(rows * (size_t)a->known.cells, sizeof *a->known.numbers);
    a->known.there = calloc(rows, sizeof *a->known.there);
    if (a->known.goals && a->known.numbers && a->known.there) return DC_OK;
    return dc_fail(DC_NO_MEMORY, "act for fewer rows at once", "no memory to keep %zu goals", rows);
}

static dc_status build(dc_actor *a, const char *path, const dc_actor_options *o) {
    const dc_checkpoint_policy *f = &a->from;
    int candidates;
    DC_TRY(dc_checkpoint_open(&a->from, path, NULL, 0));
    DC_TRY(override(a, "samples", o->samples));
    DC_TRY(override(a, "flow_steps", o->flow_steps));
    a->obs = f->method.obs;
    a->goal = f->method.goal;
    a->act = f->method.act;
    a->in = a->obs + a->goal;
    DC_TRY(count_candidates(a, &candidates));
    int pictures = f->method.picture.height ? AT_ONCE_PICTURES : a->rows;
    a->at_once = candidates > 1 ? part_of(a, candidates, o->cuda ? AT_ONCE_GPU : AT_ONCE) : a->rows;
    if (a->at_once > pictures) a->at_once = pictures;
    DC_TRY(dc_infer_new(&a->policy, DC_INFER_ACT, &f->method, &f->nets, &f->params.slabs,
                        a->at_once, a->pool));
    a->policy->exec.quick_row = a->quick_row;
    if (!a->policy->noises && (o->samples || o->flow_steps)) return not_this_policy(a, o->samples);
    if (o->cuda) DC_TRY(dc_infer_to_gpu(a->policy, &f->params.slabs, o->precision));
    DC_TRY(keep_known(a));
    return o->value ? dc_actor_add_value(a) : DC_OK;
}

dc_status dc_actor_add_value(dc_actor *a) {
    const dc_checkpoint_policy *f = &a->from;
    if (a->value) return DC_OK;
    dc_status status = dc_infer_new(&a->value, DC_INFER_QUERY, &f->method, &f->nets,
                                    &f->params.slabs, a->at_once, a->pool);
    if (a->value) a->value->exec.quick_row = a->quick_row;
    return status;
}

dc_status dc_actor_open(dc_actor *a, const char *checkpoint, const dc_actor_options *options,
                        dc_pool *pool) {
    *a = (dc_actor){.rows = options->rows,
                    .quick_row = options->quick_row,
                    .seed = options->seed,
                    .pool = pool};
    DC_CHECK(a->rows > 0);
    dc_status status = build(a, checkpoint, options);
    if (status != DC_OK) dc_actor_fini(a);
    return status;
}

void dc_actor_fini(dc_actor *a) {
    dc_infer_free(a->policy);
    dc_infer_free(a->value);
    dc_checkpoint_close(&a->from);
    free(a->known.goals);
    free(a->known.numbers);
    free(a->known.there);
    *a = (dc_actor){0};
}

// ---- acting ----

static dc_status not_finite(const char *what) {
    return dc_fail(DC_NOT_FINITE, "ask within what it was trained on",
                   "NaN or Inf in %s of the policy", what);
}

typedef struct act_job { // rows that are handled together
    dc_actor *actor;
    const float *rows;
    const uint64_t *moments;
    int first; // of all rows of the call
} act_job;

static void write_row(void *ctx, int r) {
    const act_job *q = ctx;
    const dc_actor *a = q->actor;
    const float *row = q->rows + (int64_t)r * a->in;
    dc_infer_write(a->policy, r, row, row + a->obs, NULL);
    dc_infer_draw(a->policy, r, a->seed, q->moments[r]);
}

// Whether all goals are those that rows of these numbers had in the last call, as within episodes.
static bool goals_known(const act_job *q, int count) {
    const dc_actor *a = q->actor;
    bool all = true;
    for (int r = 0; all && r < count; r++) {
        const float *was = a->known.goals + (int64_t)(q->first + r) * a->goal;
        const float *is = q->rows + (int64_t)r * a->in + a->obs;
        all = a->known.there[q->first + r] && !memcmp(was, is, (size_t)a->goal * sizeof *is);
    }
    return all;
}

// Pictures of goals are encoded when they change, and not at every step.
static dc_status compute(act_job *q, int count) {
    dc_actor *a = q->actor;
    if (!a->known.cells) return dc_infer_run(a->policy, count);
    bool given = goals_known(q, count);
    for (int r = 0; r < count && !given; r++) {
        memcpy(a->known.goals + (int64_t)(q->first + r) * a->goal,
               q->rows + (int64_t)r * a->in + a->obs, (size_t)a->goal * sizeof *q->rows);
        a->known.there[q->first + r] = true;
    }
    return dc_infer_run_known(a->policy, count,
                              a->known.numbers + (int64_t)q->first * a->known.cells, given);
}

static dc_status act_some(act_job *q, int count, float *actions) {
    dc_actor *a = q->actor;
    const dc_act_scale *scale = a->from.method.act_scale;
    if (a->policy->noises)
        dc_pool_run(a->pool, write_row, q, count);
    else
        for (int r = 0; r < count; r++)
            write_row(q, r);
    DC_TRY(compute(q, count));
    for (int r = 0; r < count; r++) {
        const dc_real *from = a->policy->out_cells.p + (int64_t)r * a->policy->out_cells.ld;
        for (int c = 0; c < a->act; c++) {
            if (!isfinite((float)from[c])) return not_finite("an action");
            actions[(int64_t)r * a->act + c] = (float)from[c];
        }
        if (scale) dc_act_scale_undo(scale, actions + (int64_t)r * a->act);
    }
    return DC_OK;
}

dc_status dc_actor_act(dc_actor *a, int count, const float *rows, const uint64_t *moments,
                       float *actions) {
    DC_CHECK(count >= 0 && count <= a->rows);
    for (int from = 0; from < count; from += a->at_once) {
        int some = count - from < a->at_once ? count - from : a->at_once;
        act_job q = {a, rows + (int64_t)from * a->in, moments + from, from};
        DC_TRY(act_some(&q, some, actions + (int64_t)from * a->act));
    }
    return DC_OK;
}

// ---- the value ----

// NaN or Inf if any member says so.
static double largest_steps(const dc_actor *a, int row) {
    const dc_infer *q = a->value;
    const dc_node *out = &q->graph.nodes[q->out];
    double most = -INFINITY;
    for (int e = 0; e < out->e; e++) {
        double x = (double)q->out_cells.p[((int64_t)e * out->rows + row) * q->out_cells.ld];
        double steps = dc_reading_steps(q->reading, a->from.method.gamma, x);
        if (!isfinite((float)steps)) return NAN;
        most = fmax(most, steps);
    }
    return most;
}

dc_status dc_actor_steps(dc_actor *a, int count, const float *rows, const float *actions,
                         float *steps) {
    DC_CHECK(a->value);
    for (int from = 0; from < count; from += a->at_once) {
        int some = count - from < a->at_once ? count - from : a->at_once;
        for (int r = 0; r < some; r++) {
            const float *row = rows + (int64_t)(from + r) * a->in;
            dc_infer_write(a->value, r, row, row + a->obs, actions + (int64_t)(from + r) * a->act);
        }
        DC_TRY(dc_infer_run(a->value, some));
        for (int r = 0; r < some; r++) {
            steps[from + r] = (float)largest_steps(a, r);
            if (isnan(steps[from + r])) return not_finite("a distance");
        }
    }
    return DC_OK;
}
