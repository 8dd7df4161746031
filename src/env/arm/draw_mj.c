// What the reference paints by state on a table: marks of targets, cubes that are where they should be,
// buttons, handles that are locked. All of that is a function of the state and its target.
#include "env/arm/arm.h"
#include "env/mujoco/engine.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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

static int named(const dc_scene *v, int type, const char *format, int k) {
    char name[32];
    snprintf(name, sizeof name, format, k);
    return mj_name2id(v->model, type, name);
}

// All geoms of a numbered body.
static void paint_body(const dc_scene *v, const char *format, int k, const colour rgb,
                       float alpha) {
    mjModel *m = v->model;
    int body = named(v, mjOBJ_BODY, format, k);
    if (body < 0) return;
    for (int g = m->body_geomadr[body], n = m->body_geomnum[body]; n > 0; n--, g++)
        paint(m->geom_rgba + (ptrdiff_t)4 * g, rgb, alpha);
}

static void paint_cube(const dc_scene *v, int k) {
    const dc_states *s = v->states;
    const double *is = v->data->qpos + DC_ARM_THINGS + (ptrdiff_t)DC_ARM_CUBE * k,
                 *want = s->target + (ptrdiff_t)3 * k;
    double x = is[0] - want[0], y = is[1] - want[1], z = is[2] - want[2];
    bool marked = s->aimed && !v->spec->visual; // else neither target nor success is shown
    bool there = marked && sqrt(x * x + y * y + z * z) <= v->spec->family->tolerance;
    int mark = named(v, mjOBJ_BODY, "object_target_%d", k),
        mocap = mark < 0 ? -1 : v->model->body_mocapid[mark];
    paint_body(v, "object_%d", k, cubes[k][there], 1);
    paint_body(v, "object_target_%d", k, cubes[k][0], marked ? 0.2F : 0);
    if (mocap < 0 || !marked) return;
    memcpy(v->data->mocap_pos + (ptrdiff_t)3 * mocap, want, 3 * sizeof *want);
    memcpy(v->data->mocap_quat + (ptrdiff_t)4 * mocap, (double[4]){1, 0, 0, 0}, 4 * sizeof(double));
}

// Buttons, and in a scene the handles that they lock.
static void paint_button(const dc_scene *v, bool on, int k) {
    static const char *const handles[2] = {"drawer_handle", "window_handle"};
    mjModel *m = v->model;
    bool slides = dc_arm_table_of(v->spec->family)->slides;
    int geom = named(v, mjOBJ_GEOM, "btngeom_%d", k);
    if (geom >= 0) paint(m->geom_rgba + (ptrdiff_t)4 * geom, !on ? red : slides ? white : blue, 1);
    int material = slides ? mj_name2id(m, mjOBJ_MATERIAL, handles[k & 1]) : -1;
    if (material >= 0) paint(m->mat_rgba + (ptrdiff_t)4 * material, on ? white : red, 1);
}

void dc_arm_paint(const dc_scene *v) {
    const dc_arm_table *t = dc_arm_table_of(v->spec->family);
    for (int k = 0; k < t->cubes; k++)
        paint_cube(v, k);
    for (int k = 0; k < t->buttons; k++)
        paint_button(v, v->states->extra[v->row * t->buttons + k] != 0, k);
}
