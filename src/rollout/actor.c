// Actor, see actor.h. The networks' shapes are read off the weights, so a checkpoint and the kind of policy
// are all that is needed.
#include "rollout/actor.h"

#include "sample/noise.h"
#include "train/weights.h"

#include <stdio.h>
#include <stdlib.h>

enum { AT_ONCE = 1 << 14, ENSEMBLE_MAX = 64 }; // candidates handled together: bounds memory

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

static dc_status build_net(dc_actor *a, dc_net *net, int rows, dc_pool *pool) {
    DC_TRY(dc_graph_init(&net->graph));
    net->input = dc_input(&net->graph, "rows", rows, net->mlp.in);
    net->output = dc_mlp_apply(&net->graph, &net->mlp, net->input, DC_STOPPED);
    dc_keep(&net->graph, net->output);
    DC_TRY(dc_graph_finish(&net->graph, -1));
    return dc_exec_init(&net->exec, &net->graph, &a->params.slabs, pool);
}

static void free_net(dc_net *net) {
    dc_exec_fini(&net->exec);
    dc_graph_fini(&net->graph);
}

static dc_real *row_of(dc_net *net, int64_t row) {
    return dc_value(&net->exec, net->input).p + row * net->mlp.in;
}

static void run_net(dc_net *net, int count) {
    net->exec.used[net->input] = count;
    dc_exec_run(&net->exec, &dc_backend_cpu);
}

static dc_status build(dc_actor *a, const dc_st_file *file, const char *path, bool with_judge,
                       dc_pool *pool) {
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
    if (a->kind == DC_POLICY_REJECTION || with_judge) declare(a, &a->judge, critic, &judge);
    DC_TRY(read_weights(a, file, path));
    if (a->kind != DC_POLICY_REJECTION) {
        if (with_judge) DC_TRY(build_net(a, &a->judge, a->rows, pool));
        return build_net(a, &a->policy, a->rows, pool);
    }
    int most = AT_ONCE / a->samples;
    a->at_once = most < 1 ? 1 : most < a->rows ? most : a->rows;
    int total = a->at_once * a->samples;
    a->candidates = malloc((size_t)total * (size_t)a->act * sizeof *a->candidates);
    if (!a->candidates)
        return dc_fail(DC_NO_MEMORY, "lower samples", "no memory for %d candidates", total);
    DC_TRY(build_net(a, &a->policy, total, pool));
    return build_net(a, &a->judge, total, pool);
}

dc_status dc_actor_open(dc_actor *a, const char *checkpoint, const dc_actor_options *options,
                        dc_pool *pool) {
    *a = (dc_actor){.rows = options->rows,
                    .kind = options->kind,
                    .samples = options->samples,
                    .flow_steps = options->flow_steps,
                    .seed = options->seed};
    DC_CHECK(a->rows > 0 &&
             (a->kind != DC_POLICY_REJECTION || (a->samples > 0 && a->flow_steps > 0)));
    dc_st_file file;
    DC_TRY(dc_st_open(&file, checkpoint));
    dc_status status = build(a, &file, checkpoint, options->judge, pool);
    dc_st_close(&file);
    if (status != DC_OK) dc_actor_fini(a);
    return status;
}

void dc_actor_fini(dc_actor *a) {
    free_net(&a->policy);
    free_net(&a->judge);
    dc_params_free(&a->params);
    free(a->candidates);
    *a = (dc_actor){0};
}

// ---- acting ----

static float clip(float x) {
    return x < -1 ? -1 : x > 1 ? 1 : x;
}

static void act_by_mean(dc_actor *a, int count, const float *rows, float *actions) {
    dc_real *in = row_of(&a->policy, 0);
    for (int64_t i = 0; i < (int64_t)count * a->in; i++)
        in[i] = (dc_real)rows[i];
    run_net(&a->policy, count);
    const dc_real *out = dc_value(&a->policy.exec, a->policy.output).p;
    for (int64_t i = 0; i < (int64_t)count * a->act; i++)
        actions[i] = clip((float)out[i]);
}

// Write every row `samples` times, without what follows it.
static void repeat_rows(const dc_actor *a, dc_net *net, int count, const float *rows) {
    for (int r = 0; r < count * a->samples; r++) {
        dc_real *out = row_of(net, r);
        for (int c = 0; c < a->in; c++)
            out[c] = (dc_real)rows[(int64_t)(r / a->samples) * a->in + c];
    }
}

static void draw_starts(dc_actor *a, int count, const uint64_t *moments) {
    int each = a->samples * a->act;
    for (int r = 0; r < count; r++)
        for (int i = 0; i < each; i++)
            a->candidates[(int64_t)r * each + i] =
                dc_draw_normal(a->seed, DC_STREAM_CANDIDATE, moments[r], (uint32_t)i);
}

static void write_candidates(const dc_actor *a, dc_net *net, int total) {
    for (int r = 0; r < total; r++)
        for (int c = 0; c < a->act; c++)
            row_of(net, r)[a->in + c] = (dc_real)a->candidates[(int64_t)r * a->act + c];
}

// Euler's method from t = 0 to 1.
static void follow_flow(dc_actor *a, int total) {
    for (int step = 0; step < a->flow_steps; step++) {
        write_candidates(a, &a->policy, total);
        for (int r = 0; r < total; r++)
            row_of(&a->policy, r)[a->in + a->act] = (dc_real)step / (dc_real)a->flow_steps;
        run_net(&a->policy, total);
        const dc_real *v = dc_value(&a->policy.exec, a->policy.output).p;
        for (int64_t i = 0; i < (int64_t)total * a->act; i++)
            a->candidates[i] += (float)v[i] / (float)a->flow_steps;
    }
    for (int64_t i = 0; i < (int64_t)total * a->act; i++)
        a->candidates[i] = clip(a->candidates[i]);
}

// Least value of a candidate over the ensemble.
static dc_real worth(const dc_actor *a, int64_t candidate) {
    dc_view q = dc_value(&a->judge.exec, a->judge.output);
    dc_real least = q.p[candidate];
    for (int e = 1; e < q.e; e++)
        least = q.p[e * q.step + candidate] < least ? q.p[e * q.step + candidate] : least;
    return least;
}

static void take_best(dc_actor *a, int count, float *actions) {
    for (int r = 0; r < count; r++) {
        int64_t first = (int64_t)r * a->samples, best = first;
        for (int64_t i = first + 1; i < first + a->samples; i++)
            if (worth(a, i) > worth(a, best)) best = i;
        for (int c = 0; c < a->act; c++)
            actions[(int64_t)r * a->act + c] = a->candidates[best * a->act + c];
    }
}

static void act_by_rejection(dc_actor *a, int count, const float *rows, const uint64_t *moments,
                             float *actions) {
    int total = count * a->samples;
    draw_starts(a, count, moments);
    repeat_rows(a, &a->policy, count, rows);
    follow_flow(a, total);
    repeat_rows(a, &a->judge, count, rows);
    write_candidates(a, &a->judge, total);
    run_net(&a->judge, total);
    take_best(a, count, actions);
}

void dc_actor_act(dc_actor *a, int count, const float *rows, const uint64_t *moments,
                  float *actions) {
    DC_CHECK(count >= 0 && count <= a->rows);
    if (a->kind == DC_POLICY_DDPGBC) {
        act_by_mean(a, count, rows, actions);
        return;
    }
    for (int from = 0; from < count; from += a->at_once) {
        int some = count - from < a->at_once ? count - from : a->at_once;
        act_by_rejection(a, some, rows + (int64_t)from * a->in, moments + from,
                         actions + (int64_t)from * a->act);
    }
}

void dc_actor_judge(dc_actor *a, int count, const float *rows, const float *actions,
                    float *logits) {
    int most = a->judge.mlp.layers ? dc_value(&a->judge.exec, a->judge.input).rows : 0;
    DC_CHECK(most > 0);
    for (int from = 0; from < count; from += most) {
        int some = count - from < most ? count - from : most;
        for (int r = 0; r < some; r++) {
            dc_real *out = row_of(&a->judge, r);
            for (int c = 0; c < a->in; c++)
                out[c] = (dc_real)rows[(int64_t)(from + r) * a->in + c];
            for (int c = 0; c < a->act; c++)
                out[a->in + c] = (dc_real)actions[(int64_t)(from + r) * a->act + c];
        }
        run_net(&a->judge, some);
        for (int r = 0; r < some; r++)
            logits[from + r] = (float)worth(a, r);
    }
}
