// An ant in the middle of a hallway touches no wall, and MuJoCo need not compare it with all of them, which took over
// a third of an ant's time (docs/lab/simulation.md). No point of the robot is farther from its torso than its links are
// long, so where no wall is as near as that, a step is taken by a second model: the same arrays, but the world's body has
// its first geom alone, the floor. Contacts, and with them all bits, are the same (tests/env/test_open.c).
#include "env/maze/robots.h"
#include "env/mujoco/engine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct dc_maze_open {
    mjModel model; // a shallow copy, but for `geoms`
    int *geoms;    // (bodies) how many each has
    double reach;  // of the robot, from its torso
    int count;
    double walls[][4]; // (count) low x and y, high x and y
};

// A box along the axes, a geom that touches nothing, or something else.
static bool is_box(const mjModel *m, int g) {
    const double *q = m->geom_quat + (ptrdiff_t)4 * g;
    return m->geom_type[g] == mjGEOM_BOX && q[0] == 1;
}

static bool touches(const mjModel *m, int g) {
    return m->geom_contype[g] || m->geom_conaffinity[g];
}

// One robot with a free torso, a floor that comes first, and boxes.
static bool fits(const mjModel *m) {
    bool ok = m->geom_type[0] == mjGEOM_PLANE && m->geom_bodyid[0] == 0 &&
              m->jnt_type[0] == mjJNT_FREE && m->jnt_bodyid[0] == 1;
    for (int b = 1; b < m->nbody; b++)
        ok = ok && m->body_rootid[b] == 1;
    for (int g = 1; g < m->body_geomnum[0]; g++)
        ok = ok && (!touches(m, g) || is_box(m, g));
    return ok;
}

static void put_walls(dc_maze_open *o, const mjModel *m) {
    for (int g = 1; g < m->body_geomnum[0]; g++) {
        const double *at = m->geom_pos + (ptrdiff_t)3 * g, *half = m->geom_size + (ptrdiff_t)3 * g;
        for (int k = 0; k < 2 && touches(m, g); k++) {
            o->walls[o->count][k] = at[k] - half[k];
            o->walls[o->count][2 + k] = at[k] + half[k];
        }
        o->count += touches(m, g);
    }
}

dc_status dc_maze_open_new(dc_world *world) {
    const mjModel *m = world->model;
    if (!fits(m)) return DC_OK; // every step looks at everything
    dc_maze_open *o = calloc(1, sizeof *o + (size_t)m->ngeom * sizeof o->walls[0]);
    if (!o) return dc_fail(DC_NO_MEMORY, NULL, "no memory for %s", world->spec.name);
    world->own = o;
    o->geoms = malloc((size_t)m->nbody * sizeof *o->geoms);
    if (!o->geoms) return dc_fail(DC_NO_MEMORY, NULL, "no memory for %s", world->spec.name);
    memcpy(o->geoms, m->body_geomnum, (size_t)m->nbody * sizeof *o->geoms);
    o->geoms[0] = 1;
    o->model = *m;
    o->model.body_geomnum = o->geoms;
    o->reach = dc_model_reach(m, m->nbody, 1) + 1e-3;
    put_walls(o, m);
    return DC_OK;
}

void dc_maze_open_free(dc_world *world) {
    dc_maze_open *o = world->own;
    if (o) free(o->geoms);
    free(o);
}

// NaN counts as near.
static bool near_wall(const dc_maze_open *o, const double *xy) {
    for (int k = 0; k < o->count; k++) {
        const double *w = o->walls[k];
        double x = fmax(0, fmax(w[0] - xy[0], xy[0] - w[2]));
        double y = fmax(0, fmax(w[1] - xy[1], xy[1] - w[3]));
        if (!(x * x + y * y > o->reach * o->reach)) return true;
    }
    return !(xy[0] == xy[0] && xy[1] == xy[1]);
}

const mjModel *dc_maze_now(const dc_env *env) {
    const dc_maze_open *o = env->world->own;
    return o && !near_wall(o, env->qpos) ? &o->model : dc_model_of(env);
}
