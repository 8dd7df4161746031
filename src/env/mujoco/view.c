// Pictures of MuJoCo's scenes, see env/view.h: by our own renderer, or by MuJoCo's on OpenGL. A state is put into the
// whole model, with everything that is seen of it; then the family paints what the reference paints by state. All of
// that is a function of the state and its target, so a picture never depends on the one before.
#include "env/mujoco/engine.h"
#include "env/mujoco/gl.h"
#include "env/mujoco/stage.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GEOMS = 10000 };

typedef struct mj_view {
    dc_view base;
    int width, height;
    mjModel *model; // its own: colours are written to it
    mjData *data;
    mjvCamera camera;
    mjvOption option;
    mjvScene scene;
    bool has_scene, has_context, own; // own: our renderer, else OpenGL
    mjrContext context;
    dc_gl gl;
    dc_stage stage;
    struct lane *lane; // (lanes)
    int lanes;
    dc_pool *pool; // Nullable
} mj_view;

// What a thread of our own renderer draws. States are put into the one model in turn.
typedef struct lane {
    dc_set set;
    dc_canvas *canvas;
    uint8_t *rgb;
    dc_status status;
} lane;

// ---- drawing ----

typedef struct drawing {
    mj_view *view;
    const dc_states *states;
    int64_t row;
    uint8_t *rgb;
} drawing;

static void place(mj_view *v, const dc_states *s, int64_t row) {
    const dc_env_family *f = v->base.spec.family;
    mj_resetData(v->model, v->data);
    memcpy(v->data->qpos, s->qpos + row * f->nq, (size_t)f->nq * sizeof *s->qpos);
    const dc_sim *sim = f->ops->sim;
    if (sim->paint) sim->paint(&(dc_scene){&v->base.spec, v->model, v->data, s, row});
    mj_kinematics(v->model, v->data); // of what mj_forward computes, what is seen
    mj_comPos(v->model, v->data);
    mj_camlight(v->model, v->data);
    mj_tendon(v->model, v->data);
}

static void flip(uint8_t *rgb, size_t row, size_t rows) {
    for (size_t k = 0; k < rows / 2; k++) {
        uint8_t *a = rgb + k * row, *b = rgb + (rows - 1 - k) * row;
        for (size_t c = 0; c < row; c++) {
            uint8_t kept = a[c];
            a[c] = b[c];
            b[c] = kept;
        }
    }
}

static void look(void *ctx) {
    drawing *d = ctx;
    mj_view *v = d->view;
    place(v, d->states, d->row);
    mjv_updateScene(v->model, v->data, &v->option, NULL, &v->camera, mjCAT_ALL, &v->scene);
}

static void draw_gl(void *ctx) {
    drawing *d = ctx;
    mj_view *v = d->view;
    mjrRect all = {0, 0, v->width, v->height};
    look(d);
    mjr_render(all, &v->scene, &v->context);
    mjr_readPixels(d->rgb, NULL, all, &v->context);
    flip(d->rgb, 3 * (size_t)v->width, (size_t)v->height); // OpenGL begins at the bottom
}

static bool all_fit(const double *x, int count) {
    for (int k = 0; k < count; k++)
        if (!(fabs(x[k]) <= mjMAXVAL)) return false;
    return true;
}

static dc_status check_row(const mj_view *v, const dc_states *states, int64_t row) {
    const dc_env_family *f = v->base.spec.family;
    if (all_fit(states->qpos + row * f->nq, f->nq) && all_fit(states->target, f->oracle))
        return DC_OK;
    return dc_fail(DC_BAD_INPUT, "check where it comes from",
                   "state %lld of %s has numbers that are not finite or too large", (long long)row,
                   v->base.spec.name);
}

static dc_status draw_row_gl(mj_view *v, drawing d) {
    DC_TRY(dc_gl_enter(&v->gl));
    dc_status status = dc_mujoco_guard(draw_gl, &d, v->data);
    dc_gl_leave(&v->gl);
    return status;
}

static void draw_lane(void *ctx, int k) {
    lane *l = &((mj_view *)ctx)->lane[k];
    l->status = dc_canvas_draw(l->canvas, &l->set.scene, l->rgb);
}

// As many pictures as there are lanes.
static dc_status draw_lanes(mj_view *v, const dc_states *states, const int64_t *rows, int count,
                            uint8_t *rgb) {
    size_t size = (size_t)v->width * (size_t)v->height * 3;
    for (int k = 0; k < count; k++) {
        lane *l = &v->lane[k];
        DC_TRY(check_row(v, states, rows[k]));
        DC_TRY(dc_mujoco_guard(look, &(drawing){v, states, rows[k], NULL}, v->data));
        dc_set_fill(&l->set, &v->stage, v->model, &v->scene, v->width, v->height);
        l->rgb = rgb + size * (size_t)k;
    }
    dc_pool_run(v->pool, draw_lane, v, count);
    for (int k = 0; k < count; k++)
        if (v->lane[k].status != DC_OK)
            return dc_fail(v->lane[k].status, "draw smaller", "no memory for a picture");
    return DC_OK;
}

static dc_status draw_rows(dc_view *view, const dc_states *states, const int64_t *rows, int count,
                           uint8_t *rgb) {
    mj_view *v = (mj_view *)view;
    size_t size = (size_t)v->width * (size_t)v->height * 3;
    for (int k = 0; k < count;) {
        int n = v->own ? count - k < v->lanes ? count - k : v->lanes : 1;
        if (v->own) {
            DC_TRY(draw_lanes(v, states, rows + k, n, rgb + size * (size_t)k));
        } else {
            DC_TRY(check_row(v, states, rows[k]));
            DC_TRY(draw_row_gl(v, (drawing){v, states, rows[k], rgb + size * (size_t)k}));
        }
        k += n;
    }
    return DC_OK;
}

// ---- making ----

static void prepare(void *ctx) {
    mj_view *v = ctx;
    v->data = mj_makeData(v->model);
    if (!v->data) return;
    mjv_defaultOption(&v->option);
    mjv_defaultScene(&v->scene);
    mjv_makeScene(v->model, &v->scene, GEOMS);
    v->has_scene = true;
}

static void prepare_gl(void *ctx) {
    mj_view *v = ctx;
    v->model->vis.global.offwidth = v->width;
    v->model->vis.global.offheight = v->height;
    mjr_defaultContext(&v->context);
    mjr_makeContext(v->model, &v->context, mjFONTSCALE_150);
    v->has_context = true;
    mjr_setBuffer(mjFB_OFFSCREEN, &v->context);
}

static dc_status no_camera(const mj_view *v, const char *name) {
    char known[256] = "leave it out";
    for (int k = 0; k < v->model->ncam; k++) {
        const char *one = mj_id2name(v->model, mjOBJ_CAMERA, k);
        size_t n = strlen(known);
        if (one) snprintf(known + n, sizeof known - n, "%s%s", k ? ", " : ", or take ", one);
    }
    return dc_fail(DC_USAGE, known, "%s has no camera '%s'", v->base.spec.name, name);
}

// OGBench's own view is the family's.
static dc_status aim(mj_view *v, const char *camera) {
    const dc_sim *sim = v->base.spec.family->ops->sim;
    mjv_defaultCamera(&v->camera);
    if (!camera && !sim->camera) {
        sim->aim(&v->base.spec, &v->camera);
        return DC_OK;
    }
    if (!camera) camera = sim->camera;
    v->camera.type = mjCAMERA_FIXED;
    v->camera.fixedcamid = mj_name2id(v->model, mjOBJ_CAMERA, camera);
    return v->camera.fixedcamid < 0 ? no_camera(v, camera) : DC_OK;
}

static dc_status open_own(mj_view *v, dc_pool *pool) {
    int threads = pool ? dc_pool_threads(pool) : 1;
    DC_TRY(dc_stage_init(&v->stage, v->model));
    v->pool = pool;
    v->lane = calloc((size_t)threads, sizeof *v->lane);
    if (!v->lane) return dc_fail(DC_NO_MEMORY, "take fewer --threads", "no memory for a view");
    while (v->lanes < threads) {
        lane *l = &v->lane[v->lanes++];
        DC_TRY(dc_set_init(&l->set, GEOMS));
        DC_TRY(dc_canvas_new(&l->canvas, v->width, v->height));
    }
    return DC_OK;
}

static dc_status open_gl(mj_view *v, dc_gl_kind kind) {
    DC_TRY(dc_gl_open(&v->gl, kind));
    dc_status status = dc_mujoco_guard(prepare_gl, v, NULL);
    dc_gl_leave(&v->gl);
    DC_TRY(status);
    if (v->context.currentBuffer == mjFB_OFFSCREEN) return DC_OK;
    return dc_fail(DC_UNSUPPORTED, "try --gl osmesa, or another driver",
                   "OpenGL draws to no picture in memory");
}

static dc_status build(mj_view *v, const dc_view_options *o) {
    v->own = o->gl == DC_GL_OFF;
    DC_TRY(v->base.spec.family->ops->sim->model(&v->base.spec, true, &v->model));
    DC_TRY(aim(v, o->camera));
    DC_TRY(dc_mujoco_guard(prepare, v, NULL));
    if (!v->data)
        return dc_fail(DC_NO_MEMORY, NULL, "no memory for the state of %s", v->base.spec.name);
    return v->own ? open_own(v, o->pool) : open_gl(v, o->gl);
}

static void free_view(dc_view *view) {
    mj_view *v = (mj_view *)view;
    if (v->has_context && dc_gl_enter(&v->gl) == DC_OK) mjr_freeContext(&v->context);
    for (int k = 0; k < v->lanes; k++) {
        dc_canvas_free(v->lane[k].canvas);
        dc_set_fini(&v->lane[k].set);
    }
    free(v->lane);
    dc_stage_fini(&v->stage);
    if (v->has_scene) mjv_freeScene(&v->scene);
    mj_deleteData(v->data);
    mj_deleteModel(v->model);
    dc_gl_close(&v->gl);
    free(v);
}

static double rate(const dc_view *view) {
    const mj_view *v = (const mj_view *)view;
    return 1 / (v->model->opt.timestep * view->spec.family->ops->sim->substeps);
}

dc_status dc_mujoco_view(dc_view **view, const dc_env_spec *spec, const dc_view_options *options) {
    static const dc_view_ops ops = {draw_rows, rate, free_view};
    *view = NULL;
    mj_view *v = calloc(1, sizeof *v);
    if (!v) return dc_fail(DC_NO_MEMORY, NULL, "no memory for a view of %s", spec->name);
    v->base = (dc_view){&ops, *spec};
    v->width = options->width;
    v->height = options->height;
    dc_status status = build(v, options);
    if (status == DC_OK)
        *view = &v->base;
    else
        free_view(&v->base);
    return status;
}
