// Actor, see actor.h. The network's shape is read off the weights, so a checkpoint is all that is needed.
#include "rollout/actor.h"

#include "train/weights.h"

#include <stdio.h>

// Widths of all layers, as the weights have them: in, hidden ..., act.
static dc_status read_shape(dc_actor *a, const dc_st_file *file, const char *path,
                            dc_int_list *hidden) {
    hidden->count = 0;
    for (int layer = 0;; layer++) {
        char name[32];
        snprintf(name, sizeof name, "actor/%d/w", layer);
        const dc_st_tensor *w = dc_st_find(file, name);
        if (!w && layer > 0) break;
        if (!w)
            return dc_fail(DC_BAD_INPUT, "train with policy=ddpgbc in the value form",
                           "%s has no policy", path);
        if (w->ndim != 3 || w->shape[0] != 1 || layer > DC_LIST_MAX || w->shape[1] < 1 ||
            w->shape[1] > 1 << 20 || w->shape[2] < 1 || w->shape[2] > 8192)
            return dc_fail(DC_BAD_INPUT, NULL, "%s: tensor %s has an impossible shape", path, name);
        if (layer == 0) a->in = (int)w->shape[1];
        if (layer > 0) hidden->v[hidden->count++] = a->act; // what the layer before gave
        a->act = (int)w->shape[2];
    }
    return DC_OK;
}

static dc_status build(dc_actor *a, const dc_st_file *file, const char *path, dc_pool *pool) {
    dc_int_list hidden;
    DC_TRY(read_shape(a, file, path, &hidden));
    dc_mlp_declare(&a->mlp, &a->params, "actor", 1, a->in, &hidden, a->act, 1, false);
    DC_TRY(dc_params_alloc(&a->params, 0));
    for (int i = 0; i < a->params.count; i++) {
        char name[DC_WEIGHT_NAME];
        dc_st_tensor want;
        dc_weight_describe(&a->params.rows[i], a->params.slabs.live, "", name, &want);
        DC_TRY(dc_weight_copy(file, path, &want));
    }
    const char *bad = dc_params_find_bad(&a->params, a->params.slabs.live);
    if (bad) return dc_fail(DC_BAD_INPUT, NULL, "%s: tensor %s is not finite", path, bad);
    DC_TRY(dc_graph_init(&a->graph));
    a->input = dc_input(&a->graph, "rows", a->rows, a->in);
    a->mean = dc_clip(&a->graph, dc_mlp_apply(&a->graph, &a->mlp, a->input, DC_STOPPED), -1, 1);
    dc_keep(&a->graph, a->mean);
    DC_TRY(dc_graph_finish(&a->graph, -1));
    return dc_exec_init(&a->exec, &a->graph, &a->params.slabs, pool);
}

dc_status dc_actor_open(dc_actor *a, const char *checkpoint, int rows, dc_pool *pool) {
    *a = (dc_actor){.rows = rows};
    dc_st_file file;
    DC_TRY(dc_st_open(&file, checkpoint));
    dc_status status = build(a, &file, checkpoint, pool);
    dc_st_close(&file);
    if (status != DC_OK) dc_actor_fini(a);
    return status;
}

void dc_actor_fini(dc_actor *a) {
    dc_exec_fini(&a->exec);
    dc_graph_fini(&a->graph);
    dc_params_free(&a->params);
    *a = (dc_actor){0};
}

void dc_actor_act(dc_actor *a, int count, const float *rows, float *actions) {
    DC_CHECK(count >= 0 && count <= a->rows);
    dc_view in = dc_value(&a->exec, a->input), out = dc_value(&a->exec, a->mean);
    for (int64_t i = 0; i < (int64_t)count * a->in; i++)
        in.p[i] = (dc_real)rows[i];
    a->exec.used[a->input] = count;
    dc_exec_run(&a->exec, &dc_backend_cpu);
    for (int64_t i = 0; i < (int64_t)count * a->act; i++)
        actions[i] = (float)out.p[i];
}
