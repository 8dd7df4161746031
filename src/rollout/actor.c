// Actor, see actor.h. The networks' shapes are read off the weights, so a checkpoint and the kind of policy
// are all that is needed.
#include "rollout/gpu_actor.h"
#include "sample/noise.h"
#include "train/weights.h"

#include <stdio.h>
#include <string.h>

// Candidates handled together: bounds memory. A GPU always computes all of them, so fewer waste less when few
// environments are left, and these keep it busy.
enum { AT_ONCE = 1 << 14, AT_ONCE_GPU = 1 << 11, ENSEMBLE_MAX = 64 };

// ---- weights ----

typedef struct shape { // of a network, as its weights have it
    int e, in, out;
    dc_int_list hidden;
} shape;

static bool possible(const dc_st_tensor *w, int layer) {
    return w->ndim == 3 && w->shape[0] >= 1 && w->shape[0] <= ENSEMBLE_MAX && w->shape[1] >= 1 &&
           w->shape[1] <= 1 << 20 && w->shape[2] >= 1 && w->shape[2] <= 8192 &&
           layer <= DC_LIST_MAX;
}

// Shape of NET; in stays 0 if there is none.
static dc_status read_shape(const dc_st_file *file, const char *path, const char *net, shape *s) {
    *s = (shape){0};
    for (int layer = 0;; layer++) {
        char name[64];
        snprintf(name, sizeof name, "%s/%d/w", net, layer);
        const dc_st_tensor *w = dc_st_find(file, name);
        if (!w) return DC_OK;
        if (!possible(w, layer))
            return dc_fail(DC_BAD_INPUT, NULL, "%s: tensor %s has an impossible shape", path, name);
        if (layer == 0) s->in = (int)w->shape[1];
        if (layer > 0) s->hidden.v[s->hidden.count++] = s->out; // what the layer before gave
        s->e = (int)w->shape[0];
        s->out = (int)w->shape[2];
    }
}

// The critic that looks at goals as the task gives them.
static dc_status read_judge(const dc_st_file *file, const char *path, const char **net, shape *s) {
    *net = "oracle_critic";
    DC_TRY(read_shape(file, path, *net, s));
    if (s->in) return DC_OK;
    *net = "critic";
    DC_TRY(read_shape(file, path, *net, s));
    if (s->in) return DC_OK;
    return dc_fail(DC_BAD_INPUT, NULL, "%s has no critic", path);
}

// An actor sees what the critic sees but for the action, and what its kind adds.
static dc_status check_shapes(const dc_actor *a, const shape *actor, const shape *judge,
                              const char *path) {
    int rest = judge->in - actor->out;
    bool fits = actor->e == 1 && judge->out == 1 && rest >= 1 &&
                actor->in == rest + dc_policy_extra(a->kind, actor->out);
    if (fits) return DC_OK;
    return dc_fail(DC_BAD_INPUT, "the run's config.json must be that of the checkpoint",
                   "%s does not hold a policy of kind %s (actor %d to %d values, critic %d to %d)",
                   path, a->kind == DC_POLICY_REJECTION ? "rejection" : "ddpgbc", actor->in,
                   actor->out, judge->in, judge->out);
}

static dc_status read_weights(dc_actor *a, const dc_st_file *file, const char *path) {
    DC_TRY(dc_params_alloc(&a->params, 0));
    for (int i = 0; i < a->params.count; i++) {
        char name[DC_WEIGHT_NAME];
        dc_st_tensor want;
        dc_weight_describe(&a->params.rows[i], a->params.slabs.live, "", name, &want);
        DC_TRY(dc_weight_copy(file, path, &want));
    }
    const char *bad = dc_params_find_bad(&a->params, a->params.slabs.live);
    return bad ? dc_fail(DC_BAD_INPUT, NULL, "%s: tensor %s is not finite", path, bad) : DC_OK;
}

// ---- networks ----

static void declare(dc_actor *a, dc_net *net, const char *name, const shape *s) {
    dc_mlp_declare(&net->mlp, &a->params, name, s->e, s->in, &s->hidden, s->out, 1, false);
}

static dc_ref keep(dc_graph *g, dc_ref x) {
    dc_keep(g, x);
    return x;
}

static void describe_mean(const dc_actor *a, dc_net *net, int rows) {
    dc_graph *g = &net->graph;
    net->rows = net->seen = dc_input(g, "rows", rows, a->in);
    net->action = keep(g, dc_clip(g, dc_mlp_apply(g, &net->mlp, net->seen, DC_STOPPED), -1, 1));
}

// A step of Euler's method from t = 0 to 1, of candidates x.
static void describe_flow(const dc_actor *a, dc_net *net, int rows) {
    dc_graph *g = &net->graph;
    double dt = 1.0 / a->flow_steps;
    net->rows = dc_input(g, "rows", rows, net->mlp.in);
    net->x = dc_input(g, "x", rows, a->act);
    net->step = dc_input(g, "step", rows, 1);
    dc_ref t = dc_affine(g, net->step, dt, 0), timed;
    timed = dc_splice(g, "timed", net->rows, t, a->in + a->act);
    net->seen = dc_splice(g, "seen", timed, net->x, a->in);
    dc_ref v = dc_mlp_apply(g, &net->mlp, net->seen, DC_STOPPED);
    net->moved = keep(g, dc_add(g, net->x, dc_affine(g, v, dt, 0)));
    net->next = keep(g, dc_affine(g, net->step, 1, 1));
}

// The least of the critics on clipped candidates.
static void describe_judge(const dc_actor *a, dc_net *net, int rows) {
    dc_graph *g = &net->graph;
    net->rows = dc_input(g, "rows", rows, net->mlp.in);
    net->x = dc_input(g, "x", rows, a->act);
    net->action = keep(g, dc_clip(g, net->x, -1, 1));
    net->seen = dc_splice(g, "seen", net->rows, net->action, a->in);
    dc_ref q = dc_mlp_apply(g, &net->mlp, net->seen, DC_STOPPED);
    net->worth = keep(g, dc_ensemble_min(g, q));
}

typedef void describe_fn(const dc_actor *actor, dc_net *net, int rows);

static dc_status build_net(const dc_actor *a, dc_net *net, describe_fn *describe, int rows) {
    DC_TRY(dc_graph_init(&net->graph));
    describe(a, net, rows);
    return dc_graph_finish(&net->graph, -1);
}

static void free_net(dc_net *net) {
    dc_exec_fini(&net->exec);
    dc_graph_fini(&net->graph);
}

static bool rejects(const dc_actor *a) {
    return a->kind == DC_POLICY_REJECTION;
}

// Rows of candidates a go: equal parts of all, none above what is allowed.
static int part_of(const dc_actor *a, int most) {
    int allowed = most / a->samples < 1 ? 1 : most / a->samples;
    int parts = (a->rows + allowed - 1) / allowed;
    return (a->rows + parts - 1) / parts;
}

static dc_status build_nets(dc_actor *a, bool with_judge, bool cuda) {
    a->at_once = rejects(a) ? part_of(a, cuda ? AT_ONCE_GPU : AT_ONCE) : a->rows;
    int total = rejects(a) ? a->at_once * a->samples : a->rows;
    if (rejects(a) || with_judge) DC_TRY(build_net(a, &a->judge, describe_judge, total));
    return build_net(a, &a->policy, rejects(a) ? describe_flow : describe_mean, total);
}

// ---- on the CPU ----

static dc_cells cells(const dc_net *net, dc_ref r) {
    dc_view v = dc_value(&net->exec, r);
    return (dc_cells){v.p, v.cols};
}

static dc_status prepare_cpu(dc_actor *a) {
    DC_TRY(dc_exec_init(&a->policy.exec, &a->policy.graph, &a->params.slabs, a->pool));
    a->host.rows = cells(&a->policy, a->policy.rows);
    if (!rejects(a)) a->host.action = cells(&a->policy, a->policy.action);
    if (rejects(a)) a->host.x = cells(&a->policy, a->policy.x);
    if (!a->judge.mlp.layers) return DC_OK;
    DC_TRY(dc_exec_init(&a->judge.exec, &a->judge.graph, &a->params.slabs, a->pool));
    a->host.judged = cells(&a->judge, a->judge.rows);
    a->host.worth = cells(&a->judge, a->judge.worth);
    if (rejects(a)) a->host.action = cells(&a->judge, a->judge.action);
    return DC_OK;
}

static void run_net(dc_net *net, int count) {
    net->exec.used[net->seen] = count;
    dc_exec_run(&net->exec, &dc_backend_cpu);
}

static void copy(const dc_net *to, dc_ref x, const dc_net *from, dc_ref y) {
    dc_view in = dc_value(&to->exec, x), out = dc_value(&from->exec, y);
    memcpy(in.p, out.p, (size_t)out.rows * (size_t)out.cols * sizeof *out.p);
}

// From rows (and noise) in the host's cells to actions (and their worth) there.
static void run_cpu(dc_actor *a, int count) {
    dc_net *policy = &a->policy, *judge = &a->judge;
    if (!rejects(a)) {
        run_net(policy, count);
        return;
    }
    dc_view step = dc_value(&policy->exec, policy->step);
    memset(step.p, 0, (size_t)step.rows * sizeof *step.p);
    for (int i = 0; i < a->flow_steps; i++) {
        run_net(policy, count);
        copy(policy, policy->x, policy, policy->moved);
        copy(policy, policy->step, policy, policy->next);
    }
    copy(judge, judge->x, policy, policy->x);
    run_net(judge, count);
}

// ---- opening ----

static dc_status build(dc_actor *a, const dc_st_file *file, const char *path,
                       const dc_actor_options *o) {
    shape actor, judge;
    const char *critic;
    DC_TRY(read_shape(file, path, "actor", &actor));
    if (!actor.in || a->kind == DC_POLICY_NONE)
        return dc_fail(DC_BAD_INPUT, "train with policy=ddpgbc or rejection in the value form",
                       "%s has no policy", path);
    DC_TRY(read_judge(file, path, &critic, &judge));
    DC_TRY(check_shapes(a, &actor, &judge, path));
    a->act = actor.out;
    a->in = judge.in - actor.out;
    declare(a, &a->policy, "actor", &actor);
    if (rejects(a) || o->judge) declare(a, &a->judge, critic, &judge);
    DC_TRY(read_weights(a, file, path));
    DC_TRY(build_nets(a, o->judge, o->cuda));
    return o->cuda ? dc_gpu_actor_new(&a->gpu, a, o->precision) : prepare_cpu(a);
}

dc_status dc_actor_open(dc_actor *a, const char *checkpoint, const dc_actor_options *options,
                        dc_pool *pool) {
    *a = (dc_actor){.rows = options->rows,
                    .kind = options->kind,
                    .samples = options->samples,
                    .flow_steps = options->flow_steps,
                    .seed = options->seed,
                    .pool = pool};
    DC_CHECK(a->rows > 0 && (!rejects(a) || (a->samples > 0 && a->flow_steps > 0)));
    DC_CHECK(!options->cuda || !options->judge);
    dc_st_file file;
    DC_TRY(dc_st_open(&file, checkpoint));
    dc_status status = build(a, &file, checkpoint, options);
    dc_st_close(&file);
    if (status != DC_OK) dc_actor_fini(a);
    return status;
}

void dc_actor_fini(dc_actor *a) {
    dc_gpu_actor_free(a->gpu);
    free_net(&a->policy);
    free_net(&a->judge);
    dc_params_free(&a->params);
    *a = (dc_actor){0};
}

// ---- acting ----

static dc_real *row_of(dc_cells m, int64_t row) {
    return m.p + row * m.ld;
}

static void write_row(const dc_actor *a, dc_cells m, int64_t row, const float *values) {
    dc_real *out = row_of(m, row);
    for (int c = 0; c < a->in; c++)
        out[c] = (dc_real)values[c];
}

static void read_action(const dc_actor *a, int64_t row, float *action) {
    const dc_real *from = row_of(a->host.action, row);
    for (int c = 0; c < a->act; c++)
        action[c] = (float)from[c];
}

static dc_status run(dc_actor *a, int count) {
    if (a->gpu) return dc_gpu_actor_run(a->gpu);
    run_cpu(a, count);
    return DC_OK;
}

static dc_status act_by_mean(dc_actor *a, int count, const float *rows, float *actions) {
    for (int r = 0; r < count; r++)
        write_row(a, a->host.rows, r, rows + (int64_t)r * a->in);
    DC_TRY(run(a, count));
    for (int r = 0; r < count; r++)
        read_action(a, r, actions + (int64_t)r * a->act);
    return DC_OK;
}

typedef struct question { // rows whose candidates are handled together
    dc_actor *actor;
    const float *rows;
    const uint64_t *moments;
    float *actions;
} question;

// Write row number r once for each of its candidates, and draw where those start.
static void ask_row(void *ctx, int r) {
    const question *q = ctx;
    const dc_actor *a = q->actor;
    for (int i = 0; i < a->samples; i++) {
        int64_t at = (int64_t)r * a->samples + i;
        write_row(a, a->host.rows, at, q->rows + (int64_t)r * a->in);
        write_row(a, a->host.judged, at, q->rows + (int64_t)r * a->in);
        for (int c = 0; c < a->act; c++)
            row_of(a->host.x, at)[c] = (dc_real)dc_draw_normal(
                a->seed, DC_STREAM_CANDIDATE, q->moments[r], (uint32_t)(i * a->act + c));
    }
}

static void take_best(const question *q, int r) {
    const dc_actor *a = q->actor;
    int64_t first = (int64_t)r * a->samples, best = first;
    for (int64_t i = first + 1; i < first + a->samples; i++)
        if (*row_of(a->host.worth, i) > *row_of(a->host.worth, best)) best = i;
    read_action(a, best, q->actions + (int64_t)r * a->act);
}

static dc_status act_by_rejection(question *q, int count) {
    dc_actor *a = q->actor;
    dc_pool_run(a->pool, ask_row, q, count);
    DC_TRY(run(a, count * a->samples));
    for (int r = 0; r < count; r++)
        take_best(q, r);
    return DC_OK;
}

dc_status dc_actor_act(dc_actor *a, int count, const float *rows, const uint64_t *moments,
                       float *actions) {
    DC_CHECK(count >= 0 && count <= a->rows);
    if (!rejects(a)) return act_by_mean(a, count, rows, actions);
    for (int from = 0; from < count; from += a->at_once) {
        int some = count - from < a->at_once ? count - from : a->at_once;
        question q = {a, rows + (int64_t)from * a->in, moments + from,
                      actions + (int64_t)from * a->act};
        DC_TRY(act_by_rejection(&q, some));
    }
    return DC_OK;
}

void dc_actor_judge(dc_actor *a, int count, const float *rows, const float *actions,
                    float *logits) {
    DC_CHECK(a->judge.mlp.layers && !a->gpu);
    dc_cells x = cells(&a->judge, a->judge.x);
    int most = dc_value(&a->judge.exec, a->judge.x).rows;
    for (int from = 0; from < count; from += most) {
        int some = count - from < most ? count - from : most;
        for (int r = 0; r < some; r++) {
            write_row(a, a->host.judged, r, rows + (int64_t)(from + r) * a->in);
            for (int c = 0; c < a->act; c++)
                row_of(x, r)[c] = (dc_real)actions[(int64_t)(from + r) * a->act + c];
        }
        run_net(&a->judge, some);
        for (int r = 0; r < some; r++)
            logits[from + r] = (float)*row_of(a->host.worth, r);
    }
}
