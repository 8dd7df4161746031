// Inference, see infer.h.
#include "algo/infer.h"

#include "algo/batch.h"
#include "algo/infer_gpu.h"
#include "backend/cpu/cpu.h"
#include "sample/noise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- description ----

// Columns of a goal.
static int goal_width(const dc_infer *q) {
    return q->data_goals ? q->method->obs : q->method->goal;
}

static int field_width(const dc_infer *q, const dc_field *f) {
    dc_field one[] = {*f, {DC_FIELD_NONE, 0, NULL, NULL}};
    return f->kind == DC_FIELD_GOAL ? goal_width(q) : dc_fields_width(q->method, one);
}

dc_ref dc_infer_input(dc_infer *q, const char *name, const dc_field *fields) {
    DC_CHECK(q->inputs < DC_INFER_INPUTS);
    int n = q->inputs++, width = 0, count = 0;
    for (; fields->kind != DC_FIELD_NONE; fields++, count++) {
        DC_CHECK(count < DC_INFER_FIELDS);
        q->input[n].kinds[count] = (int)fields->kind;
        q->input[n].widths[count] = field_width(q, fields);
        width += q->input[n].widths[count];
    }
    q->input[n].count = count;
    return q->input[n].node = dc_input(&q->graph, name, q->rows, width);
}

dc_ref dc_infer_net(dc_infer *q, const char *name, dc_ref x) {
    return dc_net_apply(&q->graph, q->nets, name, x, DC_STOPPED);
}

dc_ref dc_infer_noise(dc_infer *q, const char *name, int candidates, int width) {
    DC_CHECK(q->noises < DC_INFER_NOISES);
    int n = q->noises++;
    q->noise[n].candidates = candidates;
    q->noise[n].width = width;
    if (n)
        q->noise[n].first =
            q->noise[n - 1].first + (uint32_t)(q->noise[n - 1].candidates * q->noise[n - 1].width);
    return q->noise[n].node = dc_input(&q->graph, name, q->rows * candidates, width);
}

dc_ref dc_infer_flow(dc_infer *q, const char *name, dc_ref rows, int at, dc_ref x, int steps) {
    dc_graph *g = &q->graph;
    double dt = 1.0 / steps;
    int cols = g->nodes[x].cols;
    dc_ref zero = dc_input(g, "zero", g->nodes[x].rows, 1); // an input is zero until it is written
    for (int i = 0; i < steps; i++) {
        dc_ref t = dc_affine(g, dc_affine(g, zero, 1, i), dt, 0); // i dt, rounded as i * dt is
        dc_ref timed = dc_splice(g, "timed", rows, t, at + cols);
        dc_ref seen = dc_splice(g, "seen", timed, x, at);
        dc_ref v = dc_net_apply(g, q->nets, name, seen, DC_STOPPED);
        x = dc_add(g, x, dc_affine(g, v, dt, 0));
    }
    return x;
}

// ---- what depends on the goal alone ----

// Whether a node has columns of a goal alone.
static bool takes_goal(const dc_infer *q, const dc_node *n) {
    for (int i = 0; n->op == DC_OP_columns && i < q->inputs; i++) {
        int first = 0;
        for (int f = 0; n->in[0] == q->input[i].node && f < q->input[i].count; f++) {
            int width = q->input[i].widths[f];
            if (q->input[i].kinds[f] == DC_FIELD_GOAL && n->a >= first &&
                n->a + n->b <= first + width)
                return true;
            first += width;
        }
    }
    return false;
}

// Whether all that a node reads depends on the goal alone, and its rows are situations.
static bool follows_goal(const dc_infer *q, const dc_node *n) {
    bool any = false;
    for (int i = 0; i < n->in_count; i++) {
        dc_ref from = n->in[i];
        if (q->graph.nodes[from].op != DC_OP_PARAM && !q->of_goal[from]) return false;
        any |= q->of_goal[from];
    }
    return any && n->rows == q->rows && n->e == 1;
}

// A node that others read.
static void add_encoding(dc_infer *q, dc_ref r) {
    if (!q->of_goal[r]) return;
    for (int i = 0; i < q->encodings; i++)
        if (q->encoded[i] == r) return;
    DC_CHECK(q->encodings < DC_NETS_MAX);
    q->encoded[q->encodings++] = r;
}

int dc_infer_known(const dc_infer *q) {
    int cells = 0;
    for (int i = 0; i < q->encodings && !q->gpu; i++)
        cells += q->graph.nodes[q->encoded[i]].cols;
    return cells;
}

static dc_status find_known(dc_infer *q) {
    const dc_graph *g = &q->graph;
    if (!q->method->picture.height || q->method->rep) return DC_OK;
    q->of_goal = calloc((size_t)g->count + 1, sizeof *q->of_goal);
    if (!q->of_goal) return dc_fail(DC_NO_MEMORY, NULL, "no memory to keep encodings of goals");
    for (dc_ref r = 0; r < g->count; r++) {
        const dc_node *n = &g->nodes[r];
        if (n->op >= DC_FIRST_COMPUTED) q->of_goal[r] = takes_goal(q, n) || follows_goal(q, n);
        for (int i = 0; i < n->in_count && !q->of_goal[r]; i++)
            add_encoding(q, n->in[i]);
    }
    return DC_OK;
}

static dc_status describe(dc_infer *q, dc_infer_use use) {
    const dc_method *m = q->method;
    const dc_algo *algo = m->algo;
    if (use == DC_INFER_ACT) {
        dc_ref action = algo->act(q, m);
        if (action < 0)
            return dc_fail(DC_BAD_INPUT, "train with policy=ddpgbc or rejection in the value form",
                           "the run has no policy");
        // A choice is the largest of its values, which a clip would make equal.
        q->out = m->actions ? action : dc_clip(&q->graph, action, -1, 1);
    } else {
        if (!algo->query)
            return dc_fail(DC_UNSUPPORTED, "use a method that learns distances or values",
                           "%s learns no distance or value", algo->name);
        q->out = algo->query(q, m);
    }
    dc_keep(&q->graph, q->out);
    if (use == DC_INFER_ACT) DC_TRY(find_known(q));
    return dc_graph_finish(&q->graph, -1);
}

// ---- on the CPU ----

static dc_cells cells(const dc_infer *q, dc_ref r) {
    dc_tensor v = dc_value(&q->exec, r);
    return (dc_cells){v.p, v.cols};
}

static dc_status prepare_cpu(dc_infer *q, const dc_slabs *slabs, dc_pool *pool) {
    DC_TRY(dc_exec_init(&q->exec, &q->graph, slabs, pool));
    for (int i = 0; i < q->inputs; i++)
        q->input[i].cells = cells(q, q->input[i].node);
    for (int i = 0; i < q->noises; i++)
        q->noise[i].cells = cells(q, q->noise[i].node);
    q->out_cells = cells(q, q->out);
    return DC_OK;
}

static dc_status build(dc_infer *q, dc_infer_use use, const dc_slabs *slabs, dc_pool *pool) {
    DC_TRY(dc_graph_init(&q->graph));
    DC_TRY(describe(q, use));
    return prepare_cpu(q, slabs, pool);
}

dc_status dc_infer_new(dc_infer **out, dc_infer_use use, const dc_method *method,
                       const dc_nets *nets, const dc_slabs *slabs, int rows, dc_pool *pool) {
    *out = NULL;
    dc_infer *q = calloc(1, sizeof *q);
    if (!q) return dc_fail(DC_NO_MEMORY, NULL, "no memory");
    q->method = method;
    q->nets = nets;
    q->rows = rows;
    q->data_goals = use == DC_INFER_QUERY_DATA;
    dc_status status = build(q, use, slabs, pool);
    if (status != DC_OK) return dc_infer_free(q), status;
    *out = q;
    return DC_OK;
}

void dc_infer_free(dc_infer *q) {
    if (!q) return;
    dc_infer_gpu_free(q->gpu);
    dc_exec_fini(&q->exec);
    dc_graph_fini(&q->graph);
    free(q->of_goal);
    free(q);
}

dc_status dc_infer_to_gpu(dc_infer *q, const dc_slabs *slabs, int precision) {
    if (q->gpu) return dc_infer_gpu_refresh(q->gpu, slabs);
    return dc_infer_gpu_new(&q->gpu, q, slabs, precision);
}

// ---- use ----

static dc_real *row_of(dc_cells m, int64_t row) {
    return m.p + row * m.ld;
}

// How a field is scaled: as in training.
static const dc_scale *scale_of(const dc_infer *q, int kind) {
    if (kind == DC_FIELD_OBS || (kind == DC_FIELD_GOAL && q->data_goals))
        return q->method->obs_scale;
    if (kind == DC_FIELD_ACT && q->method->act_scale) return &q->method->act_scale->scale;
    return kind == DC_FIELD_GOAL ? q->method->goal_scale : NULL;
}

void dc_infer_write(dc_infer *q, int row, const float *obs, const float *goal, const float *act) {
    for (int i = 0; i < q->inputs; i++) {
        dc_real *out = row_of(q->input[i].cells, row);
        for (int f = 0; f < q->input[i].count; f++) {
            int width = q->input[i].widths[f];
            const float *from = q->input[i].kinds[f] == DC_FIELD_OBS    ? obs
                                : q->input[i].kinds[f] == DC_FIELD_GOAL ? goal
                                : q->input[i].kinds[f] == DC_FIELD_ACT  ? act
                                                                        : NULL;
            DC_CHECK(from || q->input[i].kinds[f] == DC_FIELD_BLANK);
            const dc_scale *scale = scale_of(q, q->input[i].kinds[f]);
            for (int c = 0; from && c < width; c++)
                out[c] =
                    scale ? ((dc_real)from[c] - (dc_real)scale->mean[c]) * (dc_real)scale->rate[c]
                          : (dc_real)from[c];
            out += width;
        }
    }
}

void dc_infer_draw(dc_infer *q, int row, uint64_t seed, uint64_t moment) {
    for (int i = 0; i < q->noises; i++)
        for (int k = 0; k < q->noise[i].candidates; k++) {
            dc_real *out = row_of(q->noise[i].cells, (int64_t)row * q->noise[i].candidates + k);
            for (int c = 0; c < q->noise[i].width; c++)
                out[c] = (dc_real)dc_draw_normal(seed, DC_STREAM_CANDIDATE, moment,
                                                 q->noise[i].first +
                                                     (uint32_t)(k * q->noise[i].width + c));
        }
}

static void use_rows(dc_infer *q, int count) {
    for (int i = 0; i < q->inputs; i++)
        q->exec.used[q->input[i].node] = count;
    for (int i = 0; i < q->noises; i++)
        q->exec.used[q->noise[i].node] = count * q->noise[i].candidates;
}

dc_status dc_infer_run(dc_infer *q, int count) {
    if (q->gpu) return dc_infer_gpu_run(q->gpu); // all rows: what follows `count` is not read
    use_rows(q, count);
    dc_exec_run(&q->exec, &dc_backend_cpu);
    return DC_OK;
}

typedef struct passing {
    const dc_infer *q;
    dc_real *known; // (count, dc_infer_known)
    int count;
    bool given;
} passing;

static void pass(void *ctx, dc_ref r) {
    const passing *j = ctx;
    const dc_infer *q = j->q;
    for (int i = 0, at = 0; i < q->encodings; i++) {
        dc_tensor v = dc_value(&q->exec, q->encoded[i]);
        for (int row = 0; q->encoded[i] == r && row < j->count; row++) {
            dc_real *here = v.p + (int64_t)row * v.cols;
            dc_real *there = j->known + (int64_t)row * dc_infer_known(q) + at;
            memcpy(j->given ? here : there, j->given ? there : here, (size_t)v.cols * sizeof *here);
        }
        at += v.cols;
    }
}

dc_status dc_infer_run_known(dc_infer *q, int count, dc_real *known, bool given) {
    passing j = {q, known, count, given};
    use_rows(q, count);
    dc_exec_run_watched(&q->exec, &dc_backend_cpu, q->of_goal, given, pass, &j);
    return DC_OK;
}

double dc_reading_steps(dc_reading reading, double gamma, double x) {
    switch (reading) {
    case DC_READ_STEPS:
        return x;
    case DC_READ_LOGIT: // log of sigmoid(x) to the base gamma, in a form that does not round to 0 or overflow
        return (fmax(-x, 0) + log1p(exp(-fabs(x)))) / -log(gamma);
    case DC_READ_RETURN: // below -1 / (1 - gamma), the least that a return can be: very far
        return log(fmax(1 + (1 - gamma) * x, 1e-9)) / log(gamma);
    case DC_READ_LOG_RATIO:
        return x / log(gamma);
    }
    return x;
}
