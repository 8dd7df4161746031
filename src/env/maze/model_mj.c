// Models of the mazes. OGBench edits a robot's XML text and compiles that; here the same robot
// file, taken from the ogbench wheel, is parsed into an mjSpec and the maze is added through
// MuJoCo's C API, in the same order and with the same defaults, so that every array of the compiled
// model is equal (tests/env/test_maze_parity.py).
//
//     deps/ogbench/locomaze/assets/ROBOT.xml -> mjSpec -> floor, walls, pads, target, ball ->
//     mjModel
#include "env/maze/robots.h"
#include "env/mujoco/engine.h"

#include <stdio.h>
#include <string.h>

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

static void fit_floor(mjsGeom *floor, const dc_maze *maze) {
    double pos[3] = {2 * (maze->cols - 3), 2 * (maze->rows - 3), 0};
    double size[3] = {2 * maze->cols, 2 * maze->rows, 0.2};
    memcpy(floor->pos, pos, sizeof pos);
    memcpy(floor->size, size, sizeof size);
}

// The visual form's colours: grey walls, one texture over all of the floor, and no light but the sun's.
static bool colour(mjSpec *spec) {
    mjsElement *wall = mjs_findElement(spec, mjOBJ_MATERIAL, "wall"),
               *grid = mjs_findElement(spec, mjOBJ_MATERIAL, "grid"),
               *sun = mjs_findElement(spec, mjOBJ_LIGHT, "global"),
               *lamp = mjs_findElement(spec, mjOBJ_LIGHT, "torso_light");
    if (!wall || !grid || !sun || !lamp) return false;
    memcpy(mjs_asMaterial(wall)->rgba, (float[4]){0.6F, 0.6F, 0.6F, 1}, 4 * sizeof(float));
    mjs_asMaterial(grid)->texuniform = 0;
    memset(mjs_asLight(sun)->ambient, 0, sizeof mjs_asLight(sun)->ambient);
    mjs_delete(spec, lamp);
    return true;
}

// The floor's colour tells where one is: red along its rows, green along its columns.
static bool paint_floor(mjModel *m) {
    int grid = mj_name2id(m, mjOBJ_TEXTURE, "grid");
    if (grid < 0 || m->tex_nchannel[grid] != 3) return false;
    int rows = m->tex_height[grid], cols = m->tex_width[grid];
    mjtByte *at = m->tex_data + m->tex_adr[grid];
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < cols; c++) {
            *at++ = (mjtByte)((double)r / rows * 192);
            *at++ = (mjtByte)((double)c / cols * 192);
            *at++ = 128;
        }
    return true;
}

typedef struct composing {
    const dc_maze *maze;
    bool visual;
    const char *path;
    void (*more)(mjSpec *, mjsBody *world); // Nullable
    mjSpec *spec;
    mjModel *model;
    bool incomplete;
    char error[512];
} composing;

static void compose(void *ctx) {
    composing *c = ctx;
    const dc_maze *maze = c->maze;
    c->spec = mj_parseXML(c->path, NULL, c->error, sizeof c->error);
    if (!c->spec) return;
    mjsBody *world = mjs_findBody(c->spec, "world");
    mjsElement *floor = mjs_findElement(c->spec, mjOBJ_GEOM, "floor");
    c->incomplete = !floor;
    if (!floor) return;
    add_walls(c->spec, world, maze);
    fit_floor(mjs_asGeom(floor), maze);
    add_pads(c->spec, world, "teleport_in", maze->in, maze->in_count);
    add_pads(c->spec, world, "teleport_out", maze->out, maze->out_count);
    if (c->visual)
        c->incomplete = !colour(c->spec);
    else
        add_disc(c->spec, world, "target", "target", (double[2]){0, 0}, mark_half);
    if (c->incomplete) return;
    if (c->more) c->more(c->spec, world);
    c->model = mj_compile(c->spec, NULL);
    if (!c->model) snprintf(c->error, sizeof c->error, "%s", mjs_getError(c->spec));
    if (c->model && c->visual) c->incomplete = !paint_floor(c->model);
}

dc_status dc_maze_model(const dc_env_spec *spec, bool visual, const char *file,
                        void (*more)(mjSpec *, mjsBody *world), mjModel **model) {
    char path[4352];
    *model = NULL;
    DC_TRY(dc_model_folder(file, path, sizeof path));
    DC_TRY(dc_model_need(path));
    composing c = {.maze = spec->maze, .visual = visual, .path = path, .more = more};
    dc_status status = dc_mujoco_guard(compose, &c, NULL);
    mj_deleteSpec(c.spec);
    if (c.incomplete) snprintf(c.error, sizeof c.error, "a part of the maze is not there");
    if (status == DC_OK && (c.incomplete || !c.model))
        status = dc_fail(DC_BAD_INPUT, NULL, "%s (%s)", c.error, path);
    if (status == DC_OK) status = dc_model_check(c.model, spec->family, spec->family->act, path);
    if (status == DC_OK)
        *model = c.model;
    else
        mj_deleteModel(c.model);
    return status;
}
