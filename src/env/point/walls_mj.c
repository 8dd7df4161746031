// The point at a wall. MuJoCo's step would compute twenty times what does not change here: the poses of
// a hundred walls, the mass of a ball, and that no far wall is touched. This is its step (RK4, 3.3.7)
// with only the parts that the point needs: collisions with the nine cells around it, by MuJoCo's own
// function, then MuJoCo's constraints and solver. All arithmetic that decides a bit is MuJoCo's, in
// its order, and the parity test compares whole episodes along walls with the Python package.
//
// Why the parts that are left out do not matter: the two slides have no damping and no gravity along
// them, so every force but the walls' is zero; their axes, and so Jacobians and mass, are the same
// everywhere; the floor's contact has distance 0, which MuJoCo excludes.
#include "env/point/walls.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { STAGES = 4, AXES = 2 };

// What the walls have in common: a contact that MuJoCo itself makes of the ball inside the first one.
static void find_touch(const dc_world *w, dc_point_walls *own, mjData *d, int wall) {
    const mjModel *m = w->model;
    memcpy(d->qpos, m->geom_pos + 3 * (ptrdiff_t)wall, AXES * sizeof *d->qpos);
    mj_kinematics(m, d);
    mj_comPos(m, d);
    mj_collision(m, d);
    for (int c = 0; c < d->ncon; c++)
        if (d->contact[c].geom[1] == wall) own->touch = d->contact[c];
}

void dc_point_look(const dc_world *w, dc_point_walls *own) {
    const dc_maze *maze = w->spec.maze;
    int first = -1;
    for (int c = 0; c < maze->rows * maze->cols; c++) {
        char name[32];
        snprintf(name, sizeof name, "block_%d_%d", c / maze->cols, c % maze->cols);
        own->walls[c] = mj_name2id(w->model, mjOBJ_GEOM, name);
        if (first < 0) first = own->walls[c];
    }
    own->ball = w->model->body_geomadr[1];
    mjData *d = mj_makeData(w->model);
    if (d && first >= 0) find_touch(w, own, d, first);
    mj_deleteData(d);
}

// Complete a contact's frame from its normal.
static void complete_frame(double frame[9]) {
    double *x = frame, *y = frame + 3, along[3];
    mju_normalize3(x);
    bool free = x[1] < 0.5 && x[1] > -0.5;
    memcpy(y, (const double[3]){0, free, !free}, 3 * sizeof *y);
    mju_scl3(along, x, mju_dot3(x, y));
    mju_subFrom3(y, along);
    mju_normalize3(y);
    mju_cross(frame + 6, x, y);
}

// Whether a wall, two to each side, is certainly out of reach of the ball's radius of 0.7.
static bool is_far(const double *wall, const double *ball) {
    return fabs(wall[0] - ball[0]) > 2.71 || fabs(wall[1] - ball[1]) > 2.71;
}

// Add the ball's contacts with the walls of nine cells. Rows and columns rise, and with them the walls'
// numbers, which is the order in which MuJoCo sorts contacts.
static void add_contacts(const dc_world *w, const dc_point_walls *own, mjData *d) {
    const dc_maze *maze = w->spec.maze;
    dc_cell at = dc_maze_cell(d->qpos);
    for (int k = 0; k < 9; k++) {
        dc_cell cell = {at.i + k / 3 - 1, at.j + k % 3 - 1};
        if (cell.i < 0 || cell.j < 0 || cell.i >= maze->rows || cell.j >= maze->cols) continue;
        int wall = own->walls[cell.i * maze->cols + cell.j];
        if (wall < 0 || is_far(w->model->geom_pos + 3 * (ptrdiff_t)wall, d->qpos)) continue;
        mjContact contact = own->touch;
        if (!mjCOLLISIONFUNC[mjGEOM_SPHERE][mjGEOM_BOX](w->model, d, &contact, own->ball, wall, 0))
            continue;
        contact.geom[1] = contact.geom2 = wall;
        contact.exclude = contact.dist >= 0;
        complete_frame(contact.frame);
        mj_addContact(w->model, d, &contact);
    }
}

// qacc at qpos and qvel.
static void accelerate(const dc_world *w, const dc_point_walls *own, mjData *d) {
    memcpy(d->geom_xpos + 3 * (ptrdiff_t)own->ball, d->qpos, AXES * sizeof *d->qpos);
    d->ncon = 0;
    add_contacts(w, own, d);
    if (!d->ncon) {
        memset(d->qacc, 0, AXES * sizeof *d->qacc);
        return;
    }
    mj_makeConstraint(w->model, d);
    d->nisland = 0; // one body is one island; solved as a whole, it gives the same bits
    mj_referenceConstraint(w->model, d);
    mj_fwdConstraint(w->model, d);
}

typedef struct slope {
    double v[AXES], a[AXES];
} slope;

static void add_slope(slope *sum, const slope *s, double weight) {
    mju_addToScl(sum->v, s->v, weight, AXES);
    mju_addToScl(sum->a, s->a, weight, AXES);
}

// Put the point at x + h v with velocity v0 + h a.
static void go(const mjModel *m, mjData *d, const double *x, const double *v0, const slope *s) {
    memcpy(d->qpos, x, AXES * sizeof *x);
    memcpy(d->qvel, v0, AXES * sizeof *v0);
    mju_addToScl(d->qvel, s->a, m->opt.timestep, AXES);
    mj_integratePos(m, d->qpos, s->v, m->opt.timestep);
}

void dc_point_push(const dc_world *w, const dc_point_walls *own, mjData *d) {
    static const double reach[STAGES] = {0, 0.5, 0.5, 1};
    static const double weight[STAGES] = {1.0 / 6, 1.0 / 3, 1.0 / 3, 1.0 / 6};
    slope s[STAGES], sum;
    double x[AXES] = {d->qpos[0], d->qpos[1]};
    for (int i = 0; i < STAGES; i++) {
        if (i > 0) {
            sum = (slope){0};
            add_slope(&sum, &s[i - 1], reach[i]);
            go(w->model, d, x, s[0].v, &sum);
        }
        accelerate(w, own, d);
        memcpy(s[i].v, d->qvel, sizeof s[i].v);
        memcpy(s[i].a, d->qacc, sizeof s[i].a);
    }
    sum = (slope){0};
    for (int i = 0; i < STAGES; i++)
        add_slope(&sum, &s[i], weight[i]);
    go(w->model, d, x, s[0].v, &sum);
    memcpy(d->qacc_warmstart, d->qacc, AXES * sizeof *d->qacc);
}
