// Models of the mazes. OGBench edits a robot's XML text and compiles that; here the same robot
// file, taken from the ogbench wheel, is parsed into an mjSpec and the maze is added through
// MuJoCo's C API, in the same order and with the same defaults, so that every array of the compiled
// model is equal (tests/env/test_maze_parity.py).
//
//     deps/ogbench/locomaze/assets/ROBOT.xml -> mjSpec -> floor, walls, pads, target, ball ->
//     mjModel
#include "env/mujoco/model.h"

#include "base/file.h"
#include "base/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef DC_DESCRIPTIONS
#define DC_DESCRIPTIONS "deps/ogbench"
#endif

static const double wall_half[3] = {2, 2, 1}, pad_half[3] = {1, 0.05, 0},
                    mark_half[3] = {0.5, 0.05, 0};

// A geom of the world with the file's own defaults.
static mjsGeom *add_geom(mjSpec *spec, mjsBody *body, const char *name, const char *material) {
    mjsGeom *g = mjs_addGeom(body, mjs_getSpecDefault(spec));
    mjs_setName(g->element, name);
    mjs_setString(g->material, material);
    return g;
}

static void add_walls(mjSpec *spec, mjsBody *world, const dc_maze *maze) {
    for (int c = 0; c < maze->rows * maze->cols; c++) {
        dc_cell cell = {c / maze->cols, c % maze->cols};
        if (!dc_maze_wall(maze, cell)) continue;
        char name[32];
        snprintf(name, sizeof name, "block_%d_%d", cell.i, cell.j);
        mjsGeom *g = add_geom(spec, world, name, "wall");
        g->type = mjGEOM_BOX;
        dc_maze_xy(cell, g->pos);
        g->pos[2] = wall_half[2];
        memcpy(g->size, wall_half, sizeof wall_half);
        g->contype = g->conaffinity = 1;
    }
}

// A flat cylinder that is only seen.
static void add_disc(mjSpec *spec, mjsBody *world, const char *name, const char *material,
                     const double xy[2], const double size[3]) {
    mjsGeom *g = add_geom(spec, world, name, material);
    g->type = mjGEOM_CYLINDER;
    memcpy(g->pos, xy, 2 * sizeof *xy);
    g->pos[2] = 0.05;
    memcpy(g->size, size, 3 * sizeof *size);
    g->contype = g->conaffinity = 0;
}

static void add_pads(mjSpec *spec, mjsBody *world, const char *kind, const dc_cell *cells,
                     int count) {
    for (int k = 0; k < count; k++) {
        char name[32];
        double xy[2];
        snprintf(name, sizeof name, "%s_%d", kind, k);
        dc_maze_xy(cells[k], xy);
        add_disc(spec, world, name, kind, xy, pad_half);
    }
}

static void add_ball(mjSpec *spec, mjsBody *world) {
    mjsBody *ball = mjs_addBody(world, NULL);
    mjs_setName(ball->element, "ball");
    ball->pos[2] = 0.5;
    mjs_setName(mjs_addFreeJoint(ball)->element, "ball_root");
    mjsGeom *g = add_geom(spec, ball, "ball", "ball");
    g->size[0] = 0.25;
    g->priority = g->conaffinity = 1;
    g->condim = 6;
    mjsLight *light = mjs_addLight(ball, mjs_getSpecDefault(spec));
    mjs_setName(light->element, "ball_light");
    light->pos[2] = 4;
    light->mode = mjCAMLIGHT_TRACKCOM;
}

static void fit_floor(mjsGeom *floor, const dc_maze *maze) {
    double pos[3] = {2 * (maze->cols - 3), 2 * (maze->rows - 3), 0};
    double size[3] = {2 * maze->cols, 2 * maze->rows, 0.2};
    memcpy(floor->pos, pos, sizeof pos);
    memcpy(floor->size, size, sizeof size);
}

typedef struct composing {
    const dc_env_spec *env;
    const char *path;
    mjSpec *spec;
    mjModel *model;
    bool floorless;
    char error[512];
} composing;

static void compose(void *ctx) {
    composing *c = ctx;
    const dc_maze *maze = c->env->maze;
    c->spec = mj_parseXML(c->path, NULL, c->error, sizeof c->error);
    if (!c->spec) return;
    mjsBody *world = mjs_findBody(c->spec, "world");
    mjsElement *floor = mjs_findElement(c->spec, mjOBJ_GEOM, "floor");
    c->floorless = !floor;
    if (!floor) return;
    add_walls(c->spec, world, maze);
    fit_floor(mjs_asGeom(floor), maze);
    add_pads(c->spec, world, "teleport_in", maze->in, maze->in_count);
    add_pads(c->spec, world, "teleport_out", maze->out, maze->out_count);
    add_disc(c->spec, world, "target", "target", (double[2]){0, 0}, mark_half);
    if (c->env->family->ball) add_ball(c->spec, world);
    c->model = mj_compile(c->spec, NULL);
    if (!c->model) snprintf(c->error, sizeof c->error, "%s", mjs_getError(c->spec));
}

dc_status dc_model_check(const mjModel *m, const dc_env_family *f, int controls, const char *path) {
    if (m->nq == f->nq && m->nv == f->nv && m->nu == controls && m->na == 0) return DC_OK;
    return dc_fail(DC_BAD_INPUT, "tools/setup.sh build fetches the files of the version that fits",
                   "another robot than expected: nq %d, nv %d, nu %d (%s)", (int)m->nq, (int)m->nv,
                   (int)m->nu, path);
}

// The folder of descriptions: what the user names, else the installed one, else the one of set-up.
static const char *descriptions(char *path, size_t size) {
    const char *named = getenv("DCRL_OGBENCH");
    if (named) return named;
    return dc_place_shared("ogbench", path, size) ? path : DC_DESCRIPTIONS;
}

dc_status dc_model_folder(const char *name, char *path, size_t size) {
    char folder[4096];
    int n = snprintf(path, size, "%s/%s", descriptions(folder, sizeof folder), name);
    if (n > 0 && (size_t)n < size) return DC_OK;
    return dc_fail(DC_IO, "move it to a place with a shorter name",
                   "the path of the descriptions is too long (%.60s...)", path);
}

dc_status dc_model_need(const char *path) {
    if (dc_file_exists(path)) return DC_OK;
    return dc_fail(DC_IO,
                   "`make` fetches OGBench's description files into deps/; the variable "
                   "DCRL_OGBENCH names another "
                   "folder that holds locomaze/ and manipspace/",
                   "a robot's description is missing (%s)", path);
}

static dc_status robot_path(dc_robot robot, char *path, size_t size) {
    static const char *const files[] = {[DC_POINT] = "locomaze/assets/point.xml",
                                        [DC_ANT] = "locomaze/assets/ant.xml",
                                        [DC_HUMANOID] = "locomaze/assets/humanoid.xml"};
    DC_TRY(dc_model_folder(files[robot], path, size));
    return dc_model_need(path);
}

dc_status dc_model_compose(const dc_env_spec *spec, mjModel **model) {
    char path[4352];
    *model = NULL;
    DC_TRY(robot_path(spec->family->robot, path, sizeof path));
    composing c = {.env = spec, .path = path};
    dc_status status = dc_mujoco_guard(compose, &c, NULL);
    mj_deleteSpec(c.spec);
    if (status == DC_OK && c.floorless)
        snprintf(c.error, sizeof c.error, "there is no geom 'floor'");
    if (status == DC_OK && !c.model) status = dc_fail(DC_BAD_INPUT, NULL, "%s (%s)", c.error, path);
    if (status == DC_OK) status = dc_model_check(c.model, spec->family, spec->family->act, path);
    if (status == DC_OK)
        *model = c.model;
    else
        mj_deleteModel(c.model);
    return status;
}
