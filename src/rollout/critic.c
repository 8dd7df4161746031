// Critic, see critic.h. As in actor.c, the network's shape is read off the weights.
#include "rollout/critic.h"

#include "train/weights.h"

#include <stdio.h>

typedef struct shape {
    const char *net;
    int e, in, out;
    dc_int_list hidden;
} shape;

static const dc_st_tensor *weight(const dc_st_file *file, const char *net, int layer) {
    char name[64];
    snprintf(name, sizeof name, "%s/%d/w", net, layer);
    return dc_st_find(file, name);
}

static dc_status read_shape(shape *s, const dc_st_file *file, const char *path) {
    s->net = weight(file, "oracle_critic", 0) ? "oracle_critic" : "critic";
    const dc_st_tensor *w = weight(file, s->net, 0);
    if (!w)
        return dc_fail(DC_BAD_INPUT, "train a method that learns one, in the value form",
                       "%s has no critic", path);
    for (int layer = 0; w; w = weight(file, s->net, ++layer)) {
        bool bad = w->ndim != 3 || layer > DC_LIST_MAX || w->shape[0] < 1 || w->shape[0] > 64 ||
                   w->shape[1] < 1 || w->shape[1] > 1 << 20 || w->shape[2] < 1 ||
                   w->shape[2] > 8192;
        if (bad)
            return dc_fail(DC_BAD_INPUT, NULL, "%s: tensor %s/%d/w has an impossible shape", path,
                           s->net, layer);
        if (layer == 0) s->in = (int)w->shape[1];
        if (layer > 0) s->hidden.v[s->hidden.count++] = s->out; // what the layer before gave
        s->e = (int)w->shape[0];
        s->out = (int)w->shape[2];
    }
    if (s->out != 1)
        return dc_fail(DC_BAD_INPUT, NULL, "%s: the critic gives %d values, not one", path, s->out);
    return DC_OK;
}

static dc_status build(dc_critic *c, const dc_st_file *file, const char *path, dc_pool *pool) {
    shape s = {0};
    DC_TRY(read_shape(&s, file, path));
    c->in = s.in;
    dc_mlp_declare(&c->mlp, &c->params, s.net, s.e, s.in, &s.hidden, 1, 1, false);
    DC_TRY(dc_params_alloc(&c->params, 0));
    for (int i = 0; i < c->params.count; i++) {
        char name[DC_WEIGHT_NAME];
        dc_st_tensor want;
        dc_weight_describe(&c->params.rows[i], c->params.slabs.live, "", name, &want);
        DC_TRY(dc_weight_copy(file, path, &want));
    }
    const char *bad = dc_params_find_bad(&c->params, c->params.slabs.live);
    if (bad) return dc_fail(DC_BAD_INPUT, NULL, "%s: tensor %s is not finite", path, bad);
    DC_TRY(dc_graph_init(&c->graph));
    c->input = dc_input(&c->graph, "rows", c->rows, c->in);
    c->least = dc_ensemble_min(&c->graph, dc_mlp_apply(&c->graph, &c->mlp, c->input, DC_STOPPED));
    dc_keep(&c->graph, c->least);
    DC_TRY(dc_graph_finish(&c->graph, -1));
    return dc_exec_init(&c->exec, &c->graph, &c->params.slabs, pool);
}

dc_status dc_critic_open(dc_critic *c, const char *checkpoint, int rows, dc_pool *pool) {
    *c = (dc_critic){.rows = rows};
    dc_st_file file;
    DC_TRY(dc_st_open(&file, checkpoint));
    dc_status status = build(c, &file, checkpoint, pool);
    dc_st_close(&file);
    if (status != DC_OK) dc_critic_fini(c);
    return status;
}

void dc_critic_fini(dc_critic *c) {
    dc_exec_fini(&c->exec);
    dc_graph_fini(&c->graph);
    dc_params_free(&c->params);
    *c = (dc_critic){0};
}

void dc_critic_ask(dc_critic *c, int count, const float *rows, float *logits) {
    DC_CHECK(count >= 0 && count <= c->rows);
    dc_view in = dc_value(&c->exec, c->input), out = dc_value(&c->exec, c->least);
    for (int64_t i = 0; i < (int64_t)count * c->in; i++)
        in.p[i] = (dc_real)rows[i];
    c->exec.used[c->input] = count;
    dc_exec_run(&c->exec, &dc_backend_cpu);
    for (int i = 0; i < count; i++)
        logits[i] = (float)out.p[i];
}
