// View, see env/view.h. A state is put into the whole model, with everything that is seen of it; then
// what the reference paints by state is painted: marks of targets, cubes that are where they should
// be, buttons, handles that are locked. All of that is a function of the state and its target, so a
// picture never depends on the one before.
#include "env/mujoco/gl.h"
#include "env/mujoco/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GEOMS = 10000, HIDDEN = 5, THINGS = 14, MAZE_STEPS = 5, ARM_STEPS = 25 };

struct dc_view {
    dc_env_spec spec;
    int width, height;
    mjModel *model; // its own: colours are written to it
    mjData *data;
    mjvCamera camera;
    mjvOption option;
    mjvScene scene;
    mjrContext context;
    bool has_scene, has_context, plain;
    dc_gl gl;
};

// ---- colours ----

typedef float colour[3];
static const colour red = {0.96F, 0.26F, 0.33F}, blue = {0.35F, 0.55F, 0.91F},
                    white = {0.9F, 0.9F, 0.9F};
// Of each cube, elsewhere and at its target.
static const colour cubes[DC_CUBES_MAX][2] = {
    {{0.96F, 0.26F, 0.33F}, {0.99F, 0.85F, 0.86F}}, {{0.35F, 0.55F, 0.91F}, {0.86F, 0.9F, 0.98F}},
    {{1.0F, 0.69F, 0.21F}, {1.0F, 0.94F, 0.84F}},   {{0.06F, 0.74F, 0.21F}, {0.77F, 0.95F, 0.81F}},
    {{0.61F, 0.28F, 0.82F}, {0.91F, 0.84F, 0.96F}}, {{0.76F, 0.96F, 0.04F}, {0.95F, 0.99F, 0.8F}},
    {{0.82F, 0.28F, 0.61F}, {0.96F, 0.84F, 0.91F}}, {{0.5F, 0.5F, 0.5F}, {0.9F, 0.9F, 0.9F}},
};

static void paint(float *rgba, const colour rgb, float alpha) {
    memcpy(rgba, rgb, sizeof(colour));
    rgba[3] = alpha;
}

static int named(const dc_view *v, int type, const char *format, int k) {
    char name[32];
    snprintf(name, sizeof name, format, k);
    return mj_name2id(v->model, type, name);
}

// All geoms of a numbered body.
static void paint_body(dc_view *v, const char *format, int k, const colour rgb, float alpha) {
    mjModel *m = v->model;
    int body = named(v, mjOBJ_BODY, format, k);
    if (body < 0) return;
    for (int g = m->body_geomadr[body], n = m->body_geomnum[body]; n > 0; n--, g++)
        paint(m->geom_rgba + (ptrdiff_t)4 * g, rgb, alpha);
}

static void paint_cube(dc_view *v, const dc_states *s, int k) {
    const double *is = v->data->qpos + THINGS + (ptrdiff_t)7 * k,
                 *want = s->target + (ptrdiff_t)3 * k;
    double x = is[0] - want[0], y = is[1] - want[1], z = is[2] - want[2];
    bool there = s->aimed && sqrt(x * x + y * y + z * z) <= v->spec.family->tolerance;
    int mark = named(v, mjOBJ_BODY, "object_target_%d", k),
        slot = mark < 0 ? -1 : v->model->body_mocapid[mark];
    paint_body(v, "object_%d", k, cubes[k][there], 1);
    paint_body(v, "object_target_%d", k, cubes[k][0], s->aimed ? 0.2F : 0);
    if (slot < 0 || !s->aimed) return;
    memcpy(v->data->mocap_pos + (ptrdiff_t)3 * slot, want, 3 * sizeof *want);
    memcpy(v->data->mocap_quat + (ptrdiff_t)4 * slot, (double[4]){1, 0, 0, 0}, 4 * sizeof(double));
}

// Buttons, and in a scene the handles that they lock.
static void paint_button(dc_view *v, bool on, int k) {
    static const char *const handles[2] = {"drawer_handle", "window_handle"};
    mjModel *m = v->model;
    bool slides = v->spec.family->slides;
    int geom = named(v, mjOBJ_GEOM, "btngeom_%d", k);
    if (geom >= 0) paint(m->geom_rgba + (ptrdiff_t)4 * geom, !on ? red : slides ? white : blue, 1);
    int material = slides ? mj_name2id(m, mjOBJ_MATERIAL, handles[k & 1]) : -1;
    if (material >= 0) paint(m->mat_rgba + (ptrdiff_t)4 * material, on ? white : red, 1);
}

static void paint_maze(dc_view *v, const dc_states *s) {
    int target = mj_name2id(v->model, mjOBJ_GEOM, "target");
    if (target < 0) return;
    v->model->geom_group[target] = s->aimed ? 0 : HIDDEN;
    memcpy(v->model->geom_pos + (ptrdiff_t)3 * target, s->target, 2 * sizeof *s->target);
}

// ---- drawing ----

typedef struct drawing {
    dc_view *view;
    const dc_states *states;
    int64_t row;
    uint8_t *rgb;
} drawing;

static void place(dc_view *v, const dc_states *s, int64_t row) {
    const dc_env_family *f = v->spec.family;
    mj_resetData(v->model, v->data);
    memcpy(v->data->qpos, s->qpos + row * f->nq, (size_t)f->nq * sizeof *s->qpos);
    if (v->spec.maze) paint_maze(v, s);
    for (int k = 0; k < f->cubes; k++)
        paint_cube(v, s, k);
    for (int k = 0; k < f->buttons; k++)
        paint_button(v, s->buttons[row * f->buttons + k] != 0, k);
    mj_forward(v->model, v->data);
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

static void draw(void *ctx) {
    drawing *d = ctx;
    dc_view *v = d->view;
    mjrRect all = {0, 0, v->width, v->height};
    place(v, d->states, d->row);
    mjv_updateScene(v->model, v->data, &v->option, NULL, &v->camera, mjCAT_ALL, &v->scene);
    mjr_render(all, &v->scene, &v->context);
    mjr_readPixels(d->rgb, NULL, all, &v->context);
    flip(d->rgb, 3 * (size_t)v->width, (size_t)v->height); // OpenGL begins at the bottom
}

static bool all_fit(const double *x, int count) {
    for (int k = 0; k < count; k++)
        if (!(fabs(x[k]) <= mjMAXVAL)) return false;
    return true;
}

dc_status dc_view_draw(dc_view *view, const dc_states *states, int64_t row, uint8_t *rgb) {
    const dc_env_family *f = view->spec.family;
    DC_CHECK(states->family == f && row >= 0 && row < states->count);
    if (!all_fit(states->qpos + row * f->nq, f->nq) || !all_fit(states->target, f->oracle))
        return dc_fail(DC_BAD_INPUT, "check where it comes from",
                       "state %lld of %s has numbers that are not finite or too large",
                       (long long)row, view->spec.name);
    return dc_mujoco_guard(draw, &(drawing){view, states, row, rgb}, view->data);
}

// ---- making ----

static void prepare(void *ctx) {
    dc_view *v = ctx;
    v->data = mj_makeData(v->model);
    if (!v->data) return;
    v->model->vis.global.offwidth = v->width;
    v->model->vis.global.offheight = v->height;
    mjv_defaultOption(&v->option);
    mjv_defaultScene(&v->scene);
    mjr_defaultContext(&v->context);
    mjv_makeScene(v->model, &v->scene, GEOMS);
    v->has_scene = true;
    if (v->plain) v->scene.flags[mjRND_SHADOW] = v->scene.flags[mjRND_REFLECTION] = 0;
    mjr_makeContext(v->model, &v->context, mjFONTSCALE_150);
    v->has_context = true;
    mjr_setBuffer(mjFB_OFFSCREEN, &v->context);
}

static dc_status no_camera(const dc_view *v, const char *name) {
    char known[256] = "leave it out";
    for (int k = 0; k < v->model->ncam; k++) {
        const char *one = mj_id2name(v->model, mjOBJ_CAMERA, k);
        size_t n = strlen(known);
        if (one) snprintf(known + n, sizeof known - n, "%s%s", k ? ", " : ", or take ", one);
    }
    return dc_fail(DC_USAGE, known, "%s has no camera '%s'", v->spec.name, name);
}

// A maze is seen from above, a table from its front.
static dc_status aim(dc_view *v, const char *camera) {
    const dc_maze *maze = v->spec.maze;
    mjv_defaultCamera(&v->camera);
    if (!camera && maze) {
        v->camera.lookat[0] = 2 * (maze->cols - 3);
        v->camera.lookat[1] = 2 * (maze->rows - 3);
        v->camera.distance = 5 * (maze->cols - 2);
        v->camera.elevation = -90;
        return DC_OK;
    }
    if (!camera) camera = "front";
    v->camera.type = mjCAMERA_FIXED;
    v->camera.fixedcamid = mj_name2id(v->model, mjOBJ_CAMERA, camera);
    return v->camera.fixedcamid < 0 ? no_camera(v, camera) : DC_OK;
}

static dc_status build(dc_view *v, const dc_view_options *o) {
    if (v->spec.maze)
        DC_TRY(dc_model_compose(&v->spec, &v->model));
    else
        DC_TRY(dc_arm_compose(&v->spec, false, &v->model));
    DC_TRY(aim(v, o->camera));
    DC_TRY(dc_gl_open(&v->gl, o->gl));
    DC_TRY(dc_mujoco_guard(prepare, v, NULL));
    if (!v->data) return dc_fail(DC_NO_MEMORY, NULL, "no memory for the state of %s", v->spec.name);
    if (v->context.currentBuffer == mjFB_OFFSCREEN) return DC_OK;
    return dc_fail(DC_UNSUPPORTED, "try --gl osmesa, or another driver",
                   "OpenGL draws to no picture in memory");
}

dc_status dc_view_new(dc_view **view, const dc_env_spec *spec, const dc_view_options *options) {
    DC_CHECK(options->width > 0 && options->width <= DC_VIEW_MOST);
    DC_CHECK(options->height > 0 && options->height <= DC_VIEW_MOST);
    *view = NULL;
    dc_view *v = calloc(1, sizeof *v);
    if (!v) return dc_fail(DC_NO_MEMORY, NULL, "no memory for a view of %s", spec->name);
    v->spec = *spec;
    v->width = options->width;
    v->height = options->height;
    v->plain = options->plain;
    dc_status status = build(v, options);
    if (status == DC_OK)
        *view = v;
    else
        dc_view_free(v);
    return status;
}

void dc_view_free(dc_view *view) {
    if (!view) return;
    if (view->has_context) mjr_freeContext(&view->context);
    if (view->has_scene) mjv_freeScene(&view->scene);
    mj_deleteData(view->data);
    mj_deleteModel(view->model);
    dc_gl_close(&view->gl);
    free(view);
}

double dc_view_rate(const dc_view *view) {
    return 1 / (view->model->opt.timestep * (view->spec.maze ? MAZE_STEPS : ARM_STEPS));
}
