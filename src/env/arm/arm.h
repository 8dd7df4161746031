// Tables with a robot arm: what the files of this folder share. Facts and tasks (arm.c, tasks.c), the
// scripted hands that data is collected with (oracle.h), and, with MuJoCo, the model (model_mj.c,
// world_mj.c, ik_mj.c), motion (arm_mj.c), starts and aims of data collection (aim_mj.c), its episodes
// (collect_mj.c) and pictures (draw_mj.c).
#ifndef DC_ARM_H
#define DC_ARM_H

#include "env/family.h"

enum { DC_CUBES_MAX = 8, DC_BUTTONS_MAX = DC_EXTRA_MAX, DC_ARM_OBS_MAX = 128 };

// ---- facts ----

// What lies on a table: own facts of its dc_env_family. The state's extra numbers are its buttons'.
typedef struct dc_arm_table {
    int cubes, buttons; // how many
    int cols;           // of a grid of buttons that toggle their neighbours, too; 0: no grid
    int slides;         // drawer and window: 2 or 0
    // Of its data:
    int episodes;    // of the published set
    double random;   // noisy data: part of actions that are random
    double stack[2]; // range of an episode's chance that a cube goes onto another
} dc_arm_table;

// How the things on a table lie.
typedef struct dc_things {
    double cubes[DC_CUBES_MAX][3]; // xyz
    const char *buttons;           // '0' or '1' each
    double drawer, window;         // positions along their slides
} dc_things;

typedef struct dc_arm_task {
    dc_things start, goal;
} dc_arm_task;

// Where arm and things may be put: low and high corners.
typedef struct dc_reach {
    double arm[2][3], things[2][2];
} dc_reach;

extern const dc_env_entry dc_arm_entries[]; // tasks.c
const dc_arm_table *dc_arm_table_of(const dc_env_family *family);
const dc_arm_task *dc_arm_task_of(const dc_env_spec *spec, int task); // 0 ... 4
const dc_reach *dc_arm_reach(const dc_arm_table *table);

// Where things begin in qpos: joints of arm and gripper, 7 numbers per cube, buttons, drawer and window.
enum { DC_ARM_THINGS = 14, DC_ARM_CUBE = 7 };

// ---- what is wanted ----

// A table's task, or, when data is collected, one thing at a time.
typedef enum dc_aim_kind {
    DC_AIM_TASK,
    DC_AIM_CUBE,
    DC_AIM_BUTTON,
    DC_AIM_DRAWER,
    DC_AIM_WINDOW
} dc_aim_kind;
enum { DC_AIMS = 5 };

typedef struct dc_aim {
    dc_aim_kind at;
    int cube, button; // the ones that were wanted last
    double turn[4];   // of the cube
} dc_aim;

// ---- with MuJoCo ----

extern const dc_sim dc_arm_sim;

// The state that an arm's dc_env has beside MuJoCo's.
typedef struct dc_arm_state {
    struct mjData_ *ik;              // of the arm alone, for inverse kinematics
    struct dc_touch *touch;          // what may touch what; owned
    uint8_t buttons[DC_BUTTONS_MAX]; // states: 0 or 1
    bool success;                    // of the last step
    dc_aim aim;
} dc_arm_state;

static inline dc_arm_state *dc_arm_state_of(const dc_env *env) {
    return env->own;
}

// aim_mj.c, each in the engine's guard: put everything somewhere and aim at something; aim at
// something else (`stack`: chance that a cube goes onto another). Then what an oracle is told
// (oracle.h).
struct dc_sight;
dc_status dc_arm_collect(dc_env *env);
dc_status dc_arm_aim(dc_env *env, double stack);
void dc_arm_see(const dc_env *env, struct dc_sight *sight);

// collect_mj.c: rows of the family's table (env/family.h).
dc_status dc_arm_play(const dc_gen *gen, dc_env *env, const dc_gen_rows *out);
dc_status dc_arm_time_script(const dc_gen *gen, dc_env *env, double *seconds);

// draw_mj.c: likewise.
void dc_arm_paint(const dc_scene *scene);

#endif
