// Tables with a robot arm: what is known of them without a simulator. Tasks and sizes stand in
// tasks.c.
#include "env/arm/arm.h"

#include "base/json.h"

#include <math.h>

enum { ROWS = 1001, HUNDRED = 100000 };

const dc_arm_table *dc_arm_table_of(const dc_env_family *family) {
    return family->own;
}

const dc_arm_task *dc_arm_task_of(const dc_env_spec *spec, int task) {
    return (const dc_arm_task *)spec->tasks + task;
}

const dc_reach *dc_arm_reach(const dc_arm_table *t) {
    static const dc_reach cubes = {{{0.25, -0.35, 0.20}, {0.6, 0.35, 0.35}},
                                   {{0.3, -0.3}, {0.55, 0.3}}};
    static const dc_reach scene = {{{0.25, -0.2, 0.20}, {0.6, 0.2, 0.35}},
                                   {{0.3, -0.07}, {0.45, 0.18}}};
    static const dc_reach puzzle = {{{0.25, -0.2, 0.20}, {0.6, 0.2, 0.25}},
                                    {{0.3, -0.3}, {0.55, 0.3}}};
    return t->slides ? &scene : t->cubes ? &cubes : &puzzle;
}

// ---- rewards ----

static bool within(const float *is, const double *want, int n, double tolerance) {
    double sum = 0;
    for (int k = 0; k < n; k++)
        sum += ((double)is[k] - want[k]) * ((double)is[k] - want[k]);
    return sqrt(sum) <= tolerance;
}

// As arm_mj.c judges, from the same task.
static double reward(const dc_env_spec *spec, const float *qpos, const float *buttons) {
    const dc_env_family *f = spec->family;
    const dc_arm_table *t = dc_arm_table_of(f);
    const dc_things *want = &dc_arm_task_of(spec, spec->task - 1)->goal;
    const float *slides = qpos + DC_ARM_THINGS + DC_ARM_CUBE * t->cubes + t->buttons;
    const double to[2] = {want->drawer, want->window};
    int wrong = 0;
    for (int k = 0; k < t->cubes; k++)
        wrong += !within(qpos + DC_ARM_THINGS + DC_ARM_CUBE * k, want->cubes[k], 3, f->tolerance);
    for (int k = 0; k < t->buttons; k++)
        wrong += buttons[k] != (want->buttons[k] == '1' ? 1.0F : 0.0F);
    for (int k = 0; t->slides && k < 2; k++)
        wrong += !within(slides + k, &to[k], 1, f->tolerance);
    return -wrong;
}

// ---- tasks in JSON ----

static void xyz_json(const double xyz[3], dc_text *out) {
    for (int k = 0; k < 3; k++) {
        dc_text_add(out, k ? ", " : "[");
        dc_json_number(out, xyz[k]);
    }
    dc_text_add(out, "]");
}

static void things_json(const dc_arm_table *t, const dc_things *things, dc_text *out) {
    dc_text_add(out, "{\"cubes\": [");
    for (int c = 0; c < t->cubes; c++) {
        dc_text_add(out, c ? ", " : "");
        xyz_json(things->cubes[c], out);
    }
    dc_text_add(out,
                "], \"buttons\": \"%s\", \"drawer\": ", things->buttons ? things->buttons : "");
    dc_json_number(out, things->drawer);
    dc_text_add(out, ", \"window\": ");
    dc_json_number(out, things->window);
    dc_text_add(out, "}");
}

static void task_json(const dc_env_spec *spec, int task, dc_text *out) {
    const dc_arm_table *t = dc_arm_table_of(spec->family);
    dc_text_add(out, "{\"start\": ");
    things_json(t, &dc_arm_task_of(spec, task)->start, out);
    dc_text_add(out, ", \"goal\": ");
    things_json(t, &dc_arm_task_of(spec, task)->goal, out);
    dc_text_add(out, "}");
}

// ---- data ----

static dc_status plan(dc_gen *gen, const dc_env_spec *spec, int64_t *episodes) {
    const dc_arm_table *t = dc_arm_table_of(spec->family);
    bool noisy = gen->kind == DC_DATA_NOISY;
    if (gen->kind != DC_DATA_ANY && gen->kind != DC_DATA_PLAY && !noisy)
        return dc_fail(DC_USAGE, "--type play|noisy", "there is no %s data of %s",
                       dc_data_word(gen->kind), spec->family->name);
    gen->kind = noisy ? DC_DATA_NOISY : DC_DATA_PLAY;
    gen->noise = 0.1;
    gen->rows = ROWS;
    *episodes = t->episodes;
    return DC_OK;
}

static int64_t hundred(const dc_env_spec *spec) {
    (void)spec;
    return HUNDRED;
}

// 235 to 527 were seen, play or noisy: cubes that lie still and buttons hardly ever change.
static double packed(const dc_env_family *family) {
    const dc_arm_table *t = dc_arm_table_of(family);
    return 235 + 42 * t->cubes + 3 * t->buttons;
}

// ---- the table ----

static const char *const words[] = {"cube", "scene", "puzzle", NULL};

const dc_family_ops dc_arm = {
    .noun = "an arm",
    .words = words,
    .entries = dc_arm_entries,
    .target = "target",
    .extra = {.name = "button_states", .what = "buttons", .low = 0, .high = 1},
    .data = {.first = DC_DATA_PLAY,
             .last = DC_DATA_NOISY,
             .hundred = hundred,
             .slow = true,
             .trace = true,
             .plan = plan,
             .packed = packed},
    .reward = reward,
    .task_json = task_json,
    .sim = DC_NEEDS_MUJOCO(dc_arm_sim),
};
