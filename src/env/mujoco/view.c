// Pictures of MuJoCo's scenes, see env/view.h: by our own renderer, or by MuJoCo's on OpenGL. A state is put into the
// whole model, with everything that is seen of it, as positions of joints or, for observations, as places of bodies
// (a shot); then the family paints what the reference paints by state. All of that is a function of the state and its
// target, so a picture never depends on the one before.
#include "env/mujoco/engine.h"
#include "env/mujoco/gl.h"
#include "env/mujoco/stage.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MORE_GEOMS = 1000, ERROR_TEXT = 400 }; // of a scene, beside a model's own

// What draws one picture at a time. It shares the view's model but for what is painted.
typedef struct lane {
    struct mj_view *view;
    mjModel model; // arrays that are written to are its own
    mjData *data;
    mjvScene scene;
    bool has_scene;
    dc_set set; // of our own renderer
    dc_canvas *canvas;
    const dc_states *states; // what it is to draw
    int64_t row;
    const double *shot; // Nullable: where bodies are, in place of the row's joints
    uint8_t *rgb;
    dc_status status;
    char error[ERROR_TEXT]; // messages belong to threads
    struct lane *next;      // in the list of those that are free
} lane;

typedef struct mj_view {
    dc_view base;
    int width, height;
    mjModel *model;
    mjvCamera camera;
    mjvOption option;
    bool has_context, own; // own: our renderer, else OpenGL
    mjrContext context;
    dc_gl gl;
    dc_stage stage;
    lane **lane; // (lanes) of dc_view_draw
    int lanes;
    dc_pool *pool; // Nullable
    pthread_mutex_t lock;
    lane *free; // lanes of dc_view_ops.develop that nobody uses
} mj_view;

// ---- a state in the model ----

static void place_joints(const lane *l) {
    const mjModel *m = &l->model;
    mj_resetData(m, l->data);
    memcpy(l->data->qpos, l->states->qpos + l->row * m->nq, (size_t)m->nq * sizeof(double));
}

static void refresh(const lane *l) { // of what mj_forward computes, what is seen
    mj_kinematics(&l->model, l->data);
    mj_comPos(&l->model, l->data);
    mj_camlight(&l->model, l->data);
    mj_tendon(&l->model, l->data);
}

// A shot is each body's position and orientation.
static int shot_size(const mjModel *m) {
    return 7 * m->nbody;
}

// What mj_kinematics computes of them for what hangs on bodies.
static void place_bodies(const lane *l) {
    const mjModel *m = &l->model;
    mjData *d = l->data;
    size_t bodies = (size_t)m->nbody;
    memcpy(d->xpos, l->shot, 3 * bodies * sizeof *l->shot);
    memcpy(d->xquat, l->shot + 3 * bodies, 4 * bodies * sizeof *l->shot);
    for (ptrdiff_t k = 0; k < m->nbody; k++) {
        mju_quat2Mat(d->xmat + 9 * k, d->xquat + 4 * k);
        mj_local2Global(d, d->xipos + 3 * k, d->ximat + 9 * k, m->body_ipos + 3 * k,
                        m->body_iquat + 4 * k, (int)k, m->body_sameframe[k]);
    }
    for (ptrdiff_t k = 0; k < m->ngeom; k++)
        mj_local2Global(d, d->geom_xpos + 3 * k, d->geom_xmat + 9 * k, m->geom_pos + 3 * k,
                        m->geom_quat + 4 * k, m->geom_bodyid[k], m->geom_sameframe[k]);
    for (ptrdiff_t k = 0; k < m->nsite; k++)
        mj_local2Global(d, d->site_xpos + 3 * k, d->site_xmat + 9 * k, m->site_pos + 3 * k,
                        m->site_quat + 4 * k, m->site_bodyid[k], m->site_sameframe[k]);
    mj_comPos(m, d);
    mj_camlight(m, d);
}

static void look(void *ctx) {
    lane *l = ctx;
    mj_view *v = l->view;
    const dc_sim *sim = v->base.spec.family->ops->sim;
    if (!l->shot) place_joints(l);
    if (sim->paint) sim->paint(&(dc_scene){&v->base.spec, &l->model, l->data, l->states, l->row});
    if (l->shot)
        place_bodies(l);
    else
        refresh(l);
    mjv_updateScene(&l->model, l->data, &v->option, NULL, &v->camera, mjCAT_ALL, &l->scene);
}

// ---- drawing ----

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

static void draw_gl(void *ctx) {
    lane *l = ctx;
    mj_view *v = l->view;
    mjrRect all = {0, 0, v->width, v->height};
    look(l);
    mjr_render(all, &l->scene, &v->context);
    mjr_readPixels(l->rgb, NULL, all, &v->context);
    flip(l->rgb, 3 * (size_t)v->width, (size_t)v->height); // OpenGL begins at the bottom
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

static dc_status draw_by_gl(lane *l) {
    mj_view *v = l->view;
    DC_TRY(dc_gl_enter(&v->gl));
    dc_status status = dc_mujoco_guard(draw_gl, l, l->data);
    dc_gl_leave(&v->gl);
    return status;
}

static dc_status draw_by_own(lane *l) {
    const mj_view *v = l->view;
    DC_TRY(dc_mujoco_guard(look, l, l->data));
    dc_set_fill(&l->set, &v->stage, &l->model, &l->scene, v->width, v->height);
    if (dc_canvas_draw(l->canvas, &l->set.scene, l->rgb) == DC_OK) return DC_OK;
    return dc_fail(DC_NO_MEMORY, "draw smaller", "no memory for a picture");
}

static void draw_lane(void *ctx, int k) {
    lane *l = ((mj_view *)ctx)->lane[k];
    l->status = draw_by_own(l);
    if (l->status != DC_OK) snprintf(l->error, sizeof l->error, "%s", dc_error());
}

static dc_status draw_rows(dc_view *view, const dc_states *states, const int64_t *rows, int count,
                           uint8_t *rgb) {
    mj_view *v = (mj_view *)view;
    size_t size = (size_t)v->width * (size_t)v->height * 3;
    for (int k = 0, n; k < count; k += n) { // as many as there are lanes
        n = count - k < v->lanes ? count - k : v->lanes;
        for (int i = 0; i < n; i++) {
            lane *l = v->lane[i];
            DC_TRY(check_row(v, states, rows[k + i]));
            l->states = states;
            l->row = rows[k + i];
            l->rgb = rgb + size * (size_t)(k + i);
        }
        if (!v->own) DC_TRY(draw_by_gl(v->lane[0]));
        if (v->own) dc_pool_run(v->pool, draw_lane, v, n);
        for (int i = 0; v->own && i < n; i++)
            if (v->lane[i]->status != DC_OK)
                return dc_fail(v->lane[i]->status, NULL, "%s", v->lane[i]->error);
    }
    return DC_OK;
}

// ---- lanes ----

static void free_lane(lane *l) {
    if (!l) return;
    free(l->model.geom_pos);
    free(l->model.geom_group);
    free(l->model.geom_rgba);
    free(l->model.mat_rgba);
    if (l->has_scene) mjv_freeScene(&l->scene);
    mj_deleteData(l->data);
    dc_canvas_free(l->canvas);
    dc_set_fini(&l->set);
    free(l);
}

static void *copy(const void *from, size_t size) {
    void *to = malloc(size + 1);
    if (to) memcpy(to, from, size);
    return to;
}

// What families paint.
static bool own_paint(lane *l, const mjModel *m) {
    size_t geoms = (size_t)m->ngeom, materials = (size_t)m->nmat;
    l->model = *m;
    l->model.geom_pos = copy(m->geom_pos, 3 * geoms * sizeof *m->geom_pos);
    l->model.geom_group = copy(m->geom_group, geoms * sizeof *m->geom_group);
    l->model.geom_rgba = copy(m->geom_rgba, 4 * geoms * sizeof *m->geom_rgba);
    l->model.mat_rgba = copy(m->mat_rgba, 4 * materials * sizeof *m->mat_rgba);
    return l->model.geom_pos && l->model.geom_group && l->model.geom_rgba && l->model.mat_rgba;
}

static void open_scene(void *ctx) {
    lane *l = ctx;
    const mjModel *m = l->view->model;
    l->data = mj_makeData(m);
    if (!l->data) return;
    mjv_defaultScene(&l->scene);
    mjv_makeScene(m, &l->scene, m->ngeom + m->nsite + MORE_GEOMS);
    l->has_scene = true;
}

static dc_status fill_lane(lane *l) {
    const mj_view *v = l->view;
    bool room = own_paint(l, v->model);
    if (room) DC_TRY(dc_mujoco_guard(open_scene, l, NULL));
    if (!room || !l->data)
        return dc_fail(DC_NO_MEMORY, "take fewer --threads", "no memory for a view of %s",
                       v->base.spec.name);
    if (!v->own) return DC_OK;
    DC_TRY(dc_set_init(&l->set, l->scene.maxgeom));
    return dc_canvas_new(&l->canvas, v->width, v->height);
}

static dc_status new_lane(mj_view *v, lane **made) {
    lane *l = calloc(1, sizeof *l);
    if (!l) return dc_fail(DC_NO_MEMORY, "take fewer --threads", "no memory for a view");
    l->view = v;
    dc_status status = fill_lane(l);
    if (status == DC_OK)
        *made = l;
    else
        free_lane(l);
    return status;
}

// ---- observations ----

static lane *take_free(mj_view *v) { // Nullable: result
    pthread_mutex_lock(&v->lock);
    lane *l = v->free;
    if (l) v->free = l->next;
    pthread_mutex_unlock(&v->lock);
    return l;
}

static void give_back(mj_view *v, lane *l) {
    pthread_mutex_lock(&v->lock);
    l->next = v->free;
    v->free = l;
    pthread_mutex_unlock(&v->lock);
}

// There are as many lanes as threads that were here at a time. Which one draws makes no difference.
static dc_status develop(dc_view *view, const double *shot, const double *extra, uint8_t *rgb) {
    mj_view *v = (mj_view *)view;
    double numbers[DC_EXTRA_MAX];
    dc_states states = {.family = v->base.spec.family, .count = 1, .extra = numbers};
    lane *l = take_free(v);
    if (!l) DC_TRY(new_lane(v, &l));
    memcpy(numbers, extra, sizeof numbers);
    l->states = &states;
    l->row = 0;
    l->shot = shot;
    l->rgb = rgb;
    dc_status status = draw_by_own(l);
    give_back(v, l);
    return status;
}

int dc_mujoco_shot_size(const dc_world *world) {
    return shot_size(world->model);
}

// The simulated model has the same bodies as the whole one.
void dc_mujoco_shoot(const dc_env *env, double *shot) {
    size_t bodies = (size_t)env->world->model->nbody;
    memcpy(shot, env->data->xpos, 3 * bodies * sizeof *shot);
    memcpy(shot + 3 * bodies, env->data->xquat, 4 * bodies * sizeof *shot);
}

// ---- making ----

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
    if (!camera) camera = v->base.spec.visual ? sim->visual_camera : sim->camera;
    if (!camera) {
        sim->aim(&v->base.spec, &v->camera);
        return DC_OK;
    }
    v->camera.type = mjCAMERA_FIXED;
    v->camera.fixedcamid = mj_name2id(v->model, mjOBJ_CAMERA, camera);
    return v->camera.fixedcamid < 0 ? no_camera(v, camera) : DC_OK;
}

static dc_status open_own(mj_view *v, dc_pool *pool) {
    v->pool = pool;
    return dc_stage_init(&v->stage, v->model);
}

static dc_status open_lanes(mj_view *v) {
    int count = v->own && v->pool ? dc_pool_threads(v->pool) : 1;
    v->lane = calloc((size_t)count, sizeof(lane *));
    if (!v->lane) return dc_fail(DC_NO_MEMORY, "take fewer --threads", "no memory for a view");
    for (; v->lanes < count; v->lanes++)
        DC_TRY(new_lane(v, &v->lane[v->lanes]));
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
    mjv_defaultOption(&v->option);
    DC_TRY(v->own ? open_own(v, o->pool) : open_gl(v, o->gl));
    return open_lanes(v);
}

static void free_view(dc_view *view) {
    mj_view *v = (mj_view *)view;
    if (v->has_context && dc_gl_enter(&v->gl) == DC_OK) mjr_freeContext(&v->context);
    for (int k = 0; k < v->lanes; k++)
        free_lane(v->lane[k]);
    for (lane *l; (l = take_free(v));)
        free_lane(l);
    free(v->lane);
    dc_stage_fini(&v->stage);
    mj_deleteModel(v->model);
    dc_gl_close(&v->gl);
    pthread_mutex_destroy(&v->lock);
    free(v);
}

static double rate(const dc_view *view) {
    const mj_view *v = (const mj_view *)view;
    return 1 / (v->model->opt.timestep * view->spec.family->ops->sim->substeps);
}

dc_status dc_mujoco_view(dc_view **view, const dc_env_spec *spec, const dc_view_options *options) {
    static const dc_view_ops ops = {draw_rows, develop, rate, free_view};
    *view = NULL;
    mj_view *v = calloc(1, sizeof *v);
    if (!v) return dc_fail(DC_NO_MEMORY, NULL, "no memory for a view of %s", spec->name);
    v->base = (dc_view){&ops, *spec};
    pthread_mutex_init(&v->lock, NULL);
    v->width = options->width;
    v->height = options->height;
    dc_status status = build(v, options);
    if (status == DC_OK)
        *view = &v->base;
    else
        free_view(&v->base);
    return status;
}
