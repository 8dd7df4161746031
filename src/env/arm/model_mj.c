// Models of the tables with a robot arm. OGBench puts them together with dm_control; here the same
// description files, taken from the ogbench wheel, go through MuJoCo's C API, in an order that makes
// every array of the compiled model equal (tests/env/test_manip_parity.py).
//
//     floor_wall.xml, an empty body for the robot, the things on the table, cameras  -> arena
//     2f85.xml -> wrist of ur5e.xml -> that body -> mjModel
//
// The robot is attached before the things, because MuJoCo only appends and the robot has the
// first joints. A part's options are not taken along when it is attached, so the arena states them.
//
// Two kinds come out of it: the whole model, with everything that can be seen, and the one that is
// simulated, without. The latter is smaller and compiles in a fraction of the time; masses
// that follow from visible meshes stay, because MuJoCo computes them before it discards those.
#include "env/arm/motion.h"

#include "base/file.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH = 4352, TEXT_MAX = 1 << 20, GAINS = 6 };

// ---- the arena, as text ----

static void add_escaped(dc_text *out, const char *path) {
    for (; *path; path++) {
        if (strchr("&<>\"'", *path))
            dc_text_add(out, "&#%d;", *path);
        else
            dc_text_bytes(out, path, 1);
    }
}

static void include(dc_text *out, const char *folder, const char *file) {
    dc_text_add(out, "<include file=\"");
    add_escaped(out, folder);
    dc_text_add(out, "/%s\"/>\n", file);
}

// The body of a file once for each number: names that end in _0 end in that number.
static void add_copies(dc_text *out, const char *body, size_t n, int count) {
    for (int k = 0; k < count; k++) {
        const char *from = body, *end = body + n;
        for (const char *p = body; p + 3 <= end; p++) {
            if (memcmp(p, "_0\"", 3) != 0) continue;
            dc_text_bytes(out, from, (size_t)(p - from));
            dc_text_add(out, "_%d\"", k);
            from = p + 3;
        }
        dc_text_bytes(out, from, (size_t)(end - from));
    }
}

static dc_status add_numbered(dc_text *out, const char *folder, const char *file, int count) {
    char path[PATH + 64], *bytes;
    size_t n;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    DC_TRY(dc_file_read(path, TEXT_MAX, &bytes, &n));
    const char open[] = "<worldbody>", close[] = "</worldbody>";
    char *from = n ? strstr(bytes, open) : NULL, *end = from ? strstr(from, close) : NULL;
    if (end) {
        from += sizeof open - 1;
        dc_text_add(out, "<worldbody>\n");
        add_copies(out, from, (size_t)(end - from), count);
        dc_text_add(out, "</worldbody>\n");
    }
    free(bytes);
    if (end) return DC_OK;
    return dc_fail(DC_BAD_INPUT, "tools/setup.sh build fetches the files of the version that fits",
                   "there is no worldbody in %s", path);
}

static dc_status add_things(dc_text *out, const dc_arm_table *t, const char *folder) {
    if (t->slides) {
        static const char *const files[] = {"cube.xml", "buttons.xml", "drawer.xml", "window.xml"};
        for (size_t k = 0; k < sizeof files / sizeof files[0]; k++)
            include(out, folder, files[k]);
        return DC_OK;
    }
    include(out, folder, t->cubes ? "cube_outer.xml" : "button_outer.xml");
    return t->cubes ? add_numbered(out, folder, "cube_inner.xml", t->cubes)
                    : add_numbered(out, folder, "button_inner.xml", t->buttons);
}

// A box that only shows bounds.
static void add_bounds(dc_text *out, const char *name, const char *rgba, const double low[3],
                       const double high[3]) {
    dc_text_add(out, "<site name=\"%s\" type=\"box\" group=\"4\" rgba=\"%s\" pos=\"", name, rgba);
    for (int k = 0; k < 3; k++)
        dc_text_add(out, "%.17g ", (low[k] + high[k]) / 2);
    dc_text_add(out, "\" size=\"");
    for (int k = 0; k < 3; k++)
        dc_text_add(out, "%.17g ", (high[k] - low[k]) / 2 + 1e-7);
    dc_text_add(out, "\"/>\n");
}

static void add_views(dc_text *out, const dc_arm_table *t) {
    bool cubes = t->cubes && !t->slides;
    dc_text_add(out, cubes ? "<camera name=\"front\" pos=\"1.287 0 0.509\" "
                             "xyaxes=\"0 1 0 -0.342 0 0.94\"/>\n"
                             "<camera name=\"front_pixels\" pos=\"1.053 -0.014 0.639\" "
                             "xyaxes=\"0 1 0 -0.628 0.001 0.778\"/>\n"
                           : "<camera name=\"front\" pos=\"1.139 0 0.821\" "
                             "xyaxes=\"0 1 0 -0.627 0 0.779\"/>\n"
                             "<camera name=\"front_pixels\" pos=\"0.905 0 0.762\" "
                             "xyaxes=\"0 1 0 -0.771 0 0.637\"/>\n");
    const dc_reach *r = dc_arm_reach(t);
    add_bounds(out, "object_bounds", "0.6 0.3 0.3 0.2",
               (double[3]){r->things[0][0], r->things[0][1], 0.02},
               (double[3]){r->things[1][0], r->things[1][1], 0.02});
    add_bounds(out, "arm_bounds", "0.3 0.6 0.3 0.2", r->arm[0], r->arm[1]);
}

static dc_status write_arena(dc_text *out, const dc_arm_table *t, int side, const char *folder) {
    dc_text_add(out, "<mujoco model=\"ur5e_arena\">\n"
                     "<compiler angle=\"radian\" autolimits=\"true\"/>\n"
                     "<option integrator=\"implicitfast\" cone=\"elliptic\" impratio=\"10\"/>\n");
    include(out, folder, "floor_wall.xml");
    dc_text_add(out,
                "<statistic center=\"0.3 0 0.15\" extent=\"0.7\" meansize=\"0.04\"/>\n"
                "<visual><map znear=\"0.1\" zfar=\"10\"/>\n"
                "<global azimuth=\"180\" elevation=\"-20\" offwidth=\"%d\" "
                "offheight=\"%d\"/></visual>\n"
                "<worldbody><body name=\"ur5e/\"/></worldbody>\n",
                side, side);
    DC_TRY(add_things(out, t, folder));
    dc_text_add(out, "<worldbody>\n");
    add_views(out, t);
    dc_text_add(out, "</worldbody>\n</mujoco>\n");
    return dc_text_status(out);
}

// ---- putting together ----

typedef struct assembly {
    const dc_arm_table *table;
    const char *folder, *arena_text;
    bool slim;                    // without what is only seen
    mjSpec *arena, *robot, *grip; // owned
    mjModel *model;
    char error[512];
} assembly;

// One of the robot's parts. Its meshes lie beside it.
static mjSpec *parse_part(assembly *a, const char *part, const char *file) {
    char path[PATH + 64];
    snprintf(path, sizeof path, "%s/%s/%s", a->folder, part, file);
    mjSpec *spec = mj_parseXML(path, NULL, a->error, sizeof a->error);
    if (!spec) return NULL;
    snprintf(path, sizeof path, "%s/%s/assets", a->folder, part);
    mjs_setString(spec->compiler.meshdir, path);
    spec->compiler.discardvisual = a->slim;
    return spec;
}

static void delete_all(mjSpec *spec, mjtObj type) {
    for (mjsElement *e = mjs_firstElement(spec, type), *next; e; e = next) {
        next = mjs_nextElement(spec, e);
        mjs_delete(spec, e);
    }
}

// What is only seen of the arm: each of its bodies states its inertia, so nothing hangs on it.
static void undress(mjSpec *robot) {
    for (mjsElement *e = mjs_firstElement(robot, mjOBJ_GEOM), *next; e; e = next) {
        next = mjs_nextElement(robot, e);
        if (mjs_asGeom(e)->type == mjGEOM_MESH) mjs_delete(robot, e);
    }
    delete_all(robot, mjOBJ_MESH);
}

// The arm alone, without light and keyframe.
static bool take_robot(assembly *a) {
    a->robot = parse_part(a, "universal_robots_ur5e", "ur5e.xml");
    if (!a->robot) return false;
    delete_all(a->robot, mjOBJ_LIGHT);
    delete_all(a->robot, mjOBJ_KEY);
    if (a->slim) undress(a->robot);
    return true;
}

// Hang a part's body into another, by way of a frame.
static bool attach(assembly *a, mjsBody *to, mjSpec *part, const char *body, const char *prefix) {
    mjsBody *child = mjs_findBody(part, body);
    mjsFrame *frame = to ? mjs_addFrame(to, NULL) : NULL;
    if (frame && child && mjs_attach(frame->element, child->element, prefix, "")) return true;
    snprintf(a->error, sizeof a->error, "the body '%s' cannot be attached", body);
    return false;
}

static bool attach_gripper(assembly *a) {
    mjsBody *wrist = mjs_findBody(a->robot, "wrist_3_link");
    mjsElement *site = mjs_findElement(a->robot, mjOBJ_SITE, "attachment_site");
    if (!wrist || !site) {
        snprintf(a->error, sizeof a->error, "the arm has no place for a gripper");
        return false;
    }
    mjsBody *flange = mjs_addBody(wrist, NULL);
    mjs_setName(flange->element, "robotiq/");
    memcpy(flange->pos, mjs_asSite(site)->pos, sizeof flange->pos);
    memcpy(flange->quat, mjs_asSite(site)->quat, sizeof flange->quat);
    return attach(a, flange, a->grip, "base_mount", "robotiq/");
}

// Rows of things, 10 cm apart.
static bool spread(assembly *a) {
    const dc_arm_table *t = a->table;
    double half = 0.05;
    int count = t->cubes ? t->cubes : t->buttons, cols = t->cols ? t->cols : count;
    for (int k = 0; k < count && !t->slides; k++) {
        int row = k / cols, rows = count / cols;
        double y = -half * (cols - 1) + 2 * half * (k % cols);
        char names[2][32] = {""};
        snprintf(names[0], sizeof names[0], t->cubes ? "object_%d" : "buttonbox_%d", k);
        snprintf(names[1], sizeof names[1], t->cubes ? "object_target_%d" : "button_%d", k);
        mjsBody *one = mjs_findBody(a->arena, names[0]), *two = mjs_findBody(a->arena, names[1]);
        if (!one || !two) {
            snprintf(a->error, sizeof a->error, "there is no body '%s'", names[one != NULL]);
            return false;
        }
        one->pos[1] = y;
        if (t->cubes)
            two->pos[1] = y;
        else
            one->pos[0] = 0.425 - half * (rows - 1) + 2 * half * row;
    }
    return true;
}

static void compile(assembly *a, mjSpec *spec) {
    a->model = mj_compile(spec, NULL);
    if (!a->model) snprintf(a->error, sizeof a->error, "%s", mjs_getError(spec));
}

static void assemble(void *ctx) {
    assembly *a = ctx;
    if (!take_robot(a)) return;
    if (!a->arena_text) { // the arm alone
        compile(a, a->robot);
        return;
    }
    a->grip = parse_part(a, "robotiq_2f85", "2f85.xml");
    if (!a->grip || !attach_gripper(a)) return;
    a->arena = mj_parseXMLString(a->arena_text, NULL, a->error, sizeof a->error);
    if (!a->arena) return;
    mjs_setString(a->arena->compiler.meshdir, a->folder);
    mjs_setString(a->arena->compiler.texturedir, a->folder);
    a->arena->compiler.discardvisual = a->slim;
    if (!spread(a)) return;
    if (attach(a, mjs_findBody(a->arena, "ur5e/"), a->robot, "base", "ur5e/")) compile(a, a->arena);
}

// The gains that OGBench writes into the compiled model. The third number of a fixed gain does
// nothing; it is there to be equal.
static void set_gains(mjModel *m) {
    static const double gains[GAINS] = {4500, 4500, 4500, 2000, 2000, 500};
    for (int k = 0; k < GAINS && k < m->nu; k++) {
        m->actuator_gainprm[k * mjNGAIN] = gains[k];
        m->actuator_gainprm[k * mjNGAIN + 2] = -gains[k] / 10;
        m->actuator_biasprm[k * mjNBIAS + 1] = -gains[k];
    }
    m->opt.timestep = 0.002;
}

static float *material(mjModel *m, const char *part) { // Nullable: result
    char name[64];
    snprintf(name, sizeof name, "ur5e/%s", part);
    int id = mj_name2id(m, mjOBJ_MATERIAL, name);
    return id < 0 ? NULL : m->mat_rgba + (ptrdiff_t)4 * id;
}

// The visual form's colours: a purple gripper, and an arm that is hardly there but for its shadow.
static void colour(mjModel *m) {
    static const char *const faint[] = {
        "robotiq/metal", "robotiq/silicone", "robotiq/gray", "robotiq/black",
        "black",         "jointgray",        "linkgray",     "lightblue"};
    static const char *const purple[] = {"robotiq/black", "robotiq/pad_gray"};
    for (size_t k = 0; k < sizeof purple / sizeof purple[0]; k++) {
        float *rgba = material(m, purple[k]);
        if (rgba) memcpy(rgba, (float[4]){0.61F, 0.28F, 0.82F, 0.5F}, 4 * sizeof *rgba);
    }
    for (size_t k = 0; k < sizeof faint / sizeof faint[0]; k++) {
        float *rgba = material(m, faint[k]);
        if (rgba) rgba[3] = 0.1F;
    }
}

static dc_status finish(assembly *a, mjModel **model) {
    dc_status status = dc_mujoco_guard(assemble, a, NULL);
    mj_deleteSpec(a->arena);
    mj_deleteSpec(a->robot);
    mj_deleteSpec(a->grip);
    if (status == DC_OK && !a->model)
        status = dc_fail(DC_BAD_INPUT, NULL, "%s (%s)", a->error, a->folder);
    if (status == DC_OK)
        *model = a->model;
    else
        mj_deleteModel(a->model);
    return status;
}

static dc_status find_parts(char folder[PATH]) {
    char path[PATH + 64];
    DC_TRY(dc_model_folder("manipspace/descriptions", folder, PATH));
    snprintf(path, sizeof path, "%s/universal_robots_ur5e/ur5e.xml", folder);
    return dc_model_need(path);
}

dc_status dc_arm_model(const dc_env_spec *spec, bool whole, mjModel **model) {
    const dc_arm_table *table = dc_arm_table_of(spec->family);
    char folder[PATH];
    dc_text text;
    *model = NULL;
    DC_TRY(find_parts(folder));
    dc_text_init(&text);
    int side = spec->visual ? DC_VISUAL_SIDE : DC_VIEW_SIZE;
    dc_status status = write_arena(&text, table, side, folder);
    assembly a = {.table = table, .folder = folder, .arena_text = text.bytes, .slim = !whole};
    if (status == DC_OK) status = finish(&a, model);
    dc_text_fini(&text);
    DC_TRY(status);
    set_gains(*model);
    if (spec->visual && whole) colour(*model);
    status = dc_model_check(*model, spec->family, 7, folder);
    if (status == DC_OK) return DC_OK;
    mj_deleteModel(*model);
    *model = NULL;
    return status;
}

dc_status dc_arm_model_alone(mjModel **model) {
    char folder[PATH];
    *model = NULL;
    DC_TRY(find_parts(folder));
    assembly a = {.folder = folder, .slim = true};
    return finish(&a, model);
}
