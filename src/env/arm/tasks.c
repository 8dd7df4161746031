// The tables with a robot arm: cubes to be moved to targets, buttons that toggle their neighbours, and a
// scene of a cube, a drawer and a window with a button each that locks them. Goes to arm.c.
//
// An observation is arm and gripper (19 values), then 9 values per cube (position, quaternion, yaw), 4 per
// button (one-hot state, position, speed), 2 for the drawer and 2 for the window (position, speed).
// What counts of it, the oraclerep form, is each cube's position, each button's state, and the
// positions of drawer and window: columns of the observation, as arm_mj.c fills them.
#include "env/arm/arm.h"

// ---- tasks ----

static const dc_arm_task cube_single[DC_TASKS] = {
    {.start = {.cubes = {{0.425, 0.1, 0.02}}},
     .goal = {.cubes = {{0.425, -0.1, 0.02}}}},                                        // horizontal
    {.start = {.cubes = {{0.35, 0, 0.02}}}, .goal = {.cubes = {{0.5, 0, 0.02}}}},      // vertical1
    {.start = {.cubes = {{0.5, 0, 0.02}}}, .goal = {.cubes = {{0.35, 0, 0.02}}}},      // vertical2
    {.start = {.cubes = {{0.35, -0.2, 0.02}}}, .goal = {.cubes = {{0.5, 0.2, 0.02}}}}, // diagonal1
    {.start = {.cubes = {{0.35, 0.2, 0.02}}}, .goal = {.cubes = {{0.5, -0.2, 0.02}}}}, // diagonal2
};

static const dc_arm_task cube_double[DC_TASKS] = {
    {.start = {.cubes = {{0.425, 0, 0.02}, {0.425, -0.1, 0.02}}},
     .goal = {.cubes = {{0.425, 0, 0.02}, {0.425, 0.1, 0.02}}}}, // single pnp
    {.start = {.cubes = {{0.35, -0.1, 0.02}, {0.5, -0.1, 0.02}}},
     .goal = {.cubes = {{0.35, 0.1, 0.02}, {0.5, 0.1, 0.02}}}}, // double pnp1
    {.start = {.cubes = {{0.35, 0, 0.02}, {0.5, 0, 0.02}}},
     .goal = {.cubes = {{0.425, -0.2, 0.02}, {0.425, 0.2, 0.02}}}}, // double pnp2
    {.start = {.cubes = {{0.425, -0.1, 0.02}, {0.425, 0.1, 0.02}}},
     .goal = {.cubes = {{0.425, 0.1, 0.02}, {0.425, -0.1, 0.02}}}}, // swap
    {.start = {.cubes = {{0.425, -0.2, 0.02}, {0.425, 0.2, 0.02}}},
     .goal = {.cubes = {{0.425, 0, 0.02}, {0.425, 0, 0.06}}}}, // stack
};

static const dc_arm_task cube_triple[DC_TASKS] = {
    {.start = {.cubes = {{0.35, -0.1, 0.02}, {0.35, 0.1, 0.02}, {0.5, -0.1, 0.02}}},
     .goal = {.cubes = {{0.35, -0.1, 0.02}, {0.35, 0.1, 0.02}, {0.5, 0.1, 0.02}}}}, // single pnp
    {.start = {.cubes = {{0.35, -0.2, 0.02}, {0.35, 0, 0.02}, {0.35, 0.2, 0.02}}},
     .goal = {.cubes = {{0.5, 0, 0.02}, {0.5, 0.2, 0.02}, {0.5, -0.2, 0.02}}}}, // triple pnp
    {.start = {.cubes = {{0.425, 0.2, 0.02}, {0.425, 0.2, 0.06}, {0.425, 0.2, 0.1}}},
     .goal = {.cubes = {{0.35, -0.1, 0.02}, {0.5, -0.2, 0.02}, {0.5, 0, 0.02}}}}, // pnp from stack
    {.start = {.cubes = {{0.35, 0, 0.02}, {0.5, -0.1, 0.02}, {0.5, 0.1, 0.02}}},
     .goal = {.cubes = {{0.5, -0.1, 0.02}, {0.5, 0.1, 0.02}, {0.35, 0, 0.02}}}}, // cycle
    {.start = {.cubes = {{0.35, -0.1, 0.02}, {0.5, -0.2, 0.02}, {0.5, 0, 0.02}}},
     .goal = {.cubes = {{0.425, 0.2, 0.02}, {0.425, 0.2, 0.06}, {0.425, 0.2, 0.1}}}}, // stack
};

static const dc_arm_task cube_quadruple[DC_TASKS] = {
    {.start =
         {.cubes = {{0.35, -0.1, 0.02}, {0.35, 0.1, 0.02}, {0.5, -0.1, 0.02}, {0.5, 0.1, 0.02}}},
     .goal = {.cubes = {{0.35, -0.25, 0.02},
                        {0.35, 0.1, 0.02},
                        {0.5, -0.1, 0.02},
                        {0.5, 0.25, 0.02}}}}, // double pnp
    {.start = {.cubes = {{0.325, -0.2, 0.02},
                         {0.325, 0.2, 0.02},
                         {0.525, -0.2, 0.02},
                         {0.525, 0.2, 0.02}}},
     .goal = {.cubes = {{0.375, 0.1, 0.02},
                        {0.475, 0.1, 0.02},
                        {0.375, -0.1, 0.02},
                        {0.475, -0.1, 0.02}}}}, // quadruple pnp
    {.start = {.cubes = {{0.425, -0.02, 0.02},
                         {0.425, 0.02, 0.02},
                         {0.425, -0.02, 0.06},
                         {0.425, 0.02, 0.06}}},
     .goal = {.cubes = {{0.525, -0.2, 0.02},
                        {0.325, 0.2, 0.02},
                        {0.325, -0.2, 0.02},
                        {0.525, 0.2, 0.02}}}}, // pnp from square
    {.start = {.cubes = {{0.525, -0.1, 0.02},
                         {0.525, 0.1, 0.02},
                         {0.325, 0.1, 0.02},
                         {0.325, -0.1, 0.02}}},
     .goal = {.cubes = {{0.525, 0.1, 0.02},
                        {0.325, 0.1, 0.02},
                        {0.325, -0.1, 0.02},
                        {0.525, -0.1, 0.02}}}}, // cycle
    {.start = {.cubes = {{0.5, -0.05, 0.02},
                         {0.5, -0.2, 0.02},
                         {0.35, -0.2, 0.02},
                         {0.35, -0.05, 0.02}}},
     .goal = {.cubes = {{0.425, 0.2, 0.02},
                        {0.425, 0.2, 0.06},
                        {0.425, 0.2, 0.1},
                        {0.425, 0.2, 0.14}}}}, // stack
};

static const dc_arm_task cube_octuple[DC_TASKS] = {
    {.start = {.cubes = {{0.325, -0.15, 0.02},
                         {0.425, -0.15, 0.02},
                         {0.425, -0.05, 0.02},
                         {0.525, -0.05, 0.02},
                         {0.325, 0.05, 0.02},
                         {0.425, 0.05, 0.02},
                         {0.425, 0.15, 0.02},
                         {0.525, 0.15, 0.02}}},
     .goal = {.cubes = {{0.525, 0.05, 0.02},
                        {0.425, -0.15, 0.02},
                        {0.425, -0.05, 0.02},
                        {0.325, 0.15, 0.02},
                        {0.525, -0.15, 0.02},
                        {0.425, 0.05, 0.02},
                        {0.425, 0.15, 0.02},
                        {0.325, -0.05, 0.02}}}}, // quadruple pnp
    {.start = {.cubes = {{0.4, -0.15, 0.02},
                         {0.4, -0.05, 0.02},
                         {0.4, 0.05, 0.02},
                         {0.4, 0.15, 0.02},
                         {0.45, -0.15, 0.02},
                         {0.45, -0.05, 0.02},
                         {0.45, 0.05, 0.02},
                         {0.45, 0.15, 0.02}}},
     .goal = {.cubes = {{0.525, 0.2, 0.02},
                        {0.525, 0, 0.02},
                        {0.525, -0.2, 0.02},
                        {0.425, -0.2, 0.02},
                        {0.325, -0.2, 0.02},
                        {0.325, 0, 0.02},
                        {0.325, 0.2, 0.02},
                        {0.425, 0.2, 0.02}}}}, // octuple pnp1
    {.start = {.cubes = {{0.32, -0.15, 0.02},
                         {0.32, 0.05, 0.02},
                         {0.39, -0.05, 0.02},
                         {0.39, 0.15, 0.02},
                         {0.46, -0.15, 0.02},
                         {0.46, 0.05, 0.02},
                         {0.53, -0.05, 0.02},
                         {0.53, 0.15, 0.02}}},
     .goal = {.cubes = {{0.32, 0.15, 0.02},
                        {0.46, 0.15, 0.02},
                        {0.39, 0.05, 0.02},
                        {0.53, 0.05, 0.02},
                        {0.32, -0.05, 0.02},
                        {0.46, -0.05, 0.02},
                        {0.39, -0.15, 0.02},
                        {0.53, -0.15, 0.02}}}}, // octuple pnp2
    {.start = {.cubes = {{0.4, -0.025, 0.02},
                         {0.4, -0.025, 0.06},
                         {0.4, 0.025, 0.02},
                         {0.4, 0.025, 0.06},
                         {0.45, -0.025, 0.02},
                         {0.45, -0.025, 0.06},
                         {0.45, 0.025, 0.02},
                         {0.45, 0.025, 0.06}}},
     .goal = {.cubes = {{0.525, 0.05, 0.02},
                        {0.525, -0.05, 0.02},
                        {0.425, -0.15, 0.06},
                        {0.425, -0.15, 0.02},
                        {0.425, 0.15, 0.06},
                        {0.425, 0.15, 0.02},
                        {0.325, -0.05, 0.02},
                        {0.325, 0.05, 0.02}}}}, // stack1
    {.start = {.cubes = {{0.5, 0.2, 0.06},
                         {0.5, 0.2, 0.02},
                         {0.5, -0.2, 0.06},
                         {0.5, -0.2, 0.02},
                         {0.35, -0.2, 0.06},
                         {0.35, -0.2, 0.02},
                         {0.35, 0.2, 0.06},
                         {0.35, 0.2, 0.02}}},
     .goal = {.cubes = {{0.325, 0, 0.02},
                        {0.325, 0, 0.06},
                        {0.425, 0.2, 0.02},
                        {0.425, 0.2, 0.06},
                        {0.525, 0, 0.02},
                        {0.525, 0, 0.06},
                        {0.425, -0.2, 0.02},
                        {0.425, -0.2, 0.06}}}}, // stack2
};

static const dc_arm_task scene_tasks[DC_TASKS] = {
    {.start = {.cubes = {{0.35, 0.05, 0.02}}, .buttons = "11", .drawer = 0, .window = 0},
     .goal =
         {.cubes = {{0.35, 0.05, 0.02}}, .buttons = "11", .drawer = -0.16, .window = 0.2}}, // open
    {.start = {.cubes = {{0.35, -0.05, 0.02}}, .buttons = "00", .drawer = -0.16, .window = 0.2},
     .goal = {.cubes = {{0.35, -0.05, 0.02}},
              .buttons = "00",
              .drawer = 0,
              .window = 0}}, // unlock and lock
    {.start = {.cubes = {{0.4, -0.05, 0.02}}, .buttons = "10", .drawer = 0, .window = 0.2},
     .goal = {.cubes = {{0.4, 0.15, 0.02}},
              .buttons = "11",
              .drawer = -0.16,
              .window = 0}}, // rearrange medium
    {.start = {.cubes = {{0.35, 0.05, 0.02}}, .buttons = "00", .drawer = 0, .window = 0},
     .goal = {.cubes = {{0.33, -0.356, 0.065986}},
              .buttons = "10",
              .drawer = 0,
              .window = 0}}, // put in drawer
    {.start = {.cubes = {{0.35, 0.15, 0.02}}, .buttons = "00", .drawer = 0, .window = 0},
     .goal = {.cubes = {{0.33, -0.356, 0.065986}},
              .buttons = "00",
              .drawer = 0,
              .window = 0.2}}, // rearrange hard
};

static const dc_arm_task puzzle_3x3[DC_TASKS] = {
    {.start = {.buttons = "000"
                          "000"
                          "000"},
     .goal = {.buttons = "110"
                         "101"
                         "011"}},
    {.start = {.buttons = "111"
                          "111"
                          "111"},
     .goal = {.buttons = "011"
                         "111"
                         "111"}},
    {.start = {.buttons = "010"
                          "111"
                          "010"},
     .goal = {.buttons = "101"
                         "010"
                         "101"}},
    {.start = {.buttons = "010"
                          "101"
                          "010"},
     .goal = {.buttons = "111"
                         "111"
                         "111"}},
    {.start = {.buttons = "111"
                          "111"
                          "111"},
     .goal = {.buttons = "101"
                         "101"
                         "101"}},
};

static const dc_arm_task puzzle_4x4[DC_TASKS] = {
    {.start = {.buttons = "0000"
                          "0000"
                          "0000"
                          "0000"},
     .goal = {.buttons = "1111"
                         "1111"
                         "1111"
                         "1111"}},
    {.start = {.buttons = "1111"
                          "1111"
                          "1111"
                          "1111"},
     .goal = {.buttons = "1111"
                         "1001"
                         "1001"
                         "1111"}},
    {.start = {.buttons = "1000"
                          "0000"
                          "0000"
                          "0001"},
     .goal = {.buttons = "0101"
                         "1010"
                         "0101"
                         "1010"}},
    {.start = {.buttons = "1001"
                          "1001"
                          "1001"
                          "1001"},
     .goal = {.buttons = "0000"
                         "0000"
                         "0000"
                         "0000"}},
    {.start = {.buttons = "0101"
                          "0010"
                          "0001"
                          "1000"},
     .goal = {.buttons = "0000"
                         "0000"
                         "0000"
                         "0000"}},
};

static const dc_arm_task puzzle_4x5[DC_TASKS] = {
    {.start = {.buttons = "11011"
                          "01010"
                          "01010"
                          "11011"},
     .goal = {.buttons = "00000"
                         "00000"
                         "00000"
                         "00000"}},
    {.start = {.buttons = "00000"
                          "00000"
                          "00000"
                          "00000"},
     .goal = {.buttons = "11111"
                         "11111"
                         "11111"
                         "11111"}},
    {.start = {.buttons = "00000"
                          "00100"
                          "00100"
                          "00000"},
     .goal = {.buttons = "11111"
                         "10001"
                         "10001"
                         "11111"}},
    {.start = {.buttons = "00000"
                          "00000"
                          "00000"
                          "00000"},
     .goal = {.buttons = "00000"
                         "00100"
                         "00100"
                         "00000"}},
    {.start = {.buttons = "00000"
                          "00000"
                          "00000"
                          "00000"},
     .goal = {.buttons = "10001"
                         "01110"
                         "01110"
                         "10001"}},
};

static const dc_arm_task puzzle_4x6[DC_TASKS] = {
    {.start = {.buttons = "110111"
                          "001010"
                          "010100"
                          "111011"},
     .goal = {.buttons = "000000"
                         "000000"
                         "000000"
                         "000000"}},
    {.start = {.buttons = "111111"
                          "111111"
                          "111111"
                          "111111"},
     .goal = {.buttons = "000000"
                         "000000"
                         "000000"
                         "000000"}},
    {.start = {.buttons = "000000"
                          "000000"
                          "000000"
                          "000000"},
     .goal = {.buttons = "111110"
                         "110101"
                         "101011"
                         "011111"}},
    {.start = {.buttons = "010101"
                          "101010"
                          "010101"
                          "101010"},
     .goal = {.buttons = "100001"
                         "000000"
                         "000000"
                         "100001"}},
    {.start = {.buttons = "000000"
                          "000000"
                          "000000"
                          "000000"},
     .goal = {.buttons = "100001"
                         "011110"
                         "011110"
                         "100001"}},
};

// ---- sizes ----

enum { ARM = 19, CUBE = 9, BUTTON = 4, ARM_DOF = 14 };

// Number of cubes, buttons and slides; random steps behind a goal; default single task.
#define TABLE(cubes, buttons, slides, settle_, task_)                                              \
    .ops = &dc_arm, .act = 5, .obs = ARM + CUBE * (cubes) + BUTTON * (buttons) + 2 * (slides),     \
    .nq = ARM_DOF + 7 * (cubes) + (buttons) + (slides),                                            \
    .nv = ARM_DOF + 6 * (cubes) + (buttons) + (slides), .extra = buttons, .tolerance = 0.04,       \
    .settle = settle_, .task = task_, .oracle = 3 * (cubes) + (buttons) + (slides),                \
    .visual = (cubes) <= 4 /* as registered by OGBench */
// What the arm alone must know: cubes, buttons, columns, slides; of the data: episodes, random actions
// of noisy ones, range of the chance to stack.
#define OWN(...)                                                                                   \
    .own = &(const dc_arm_table) {                                                                 \
        __VA_ARGS__                                                                                \
    }
#define CUBES(n)        TABLE(n, 0, 0, 2, 2), .picks = {{ARM, 3, CUBE, n}}
#define PUZZLE(n, task) TABLE(0, n, 0, 5, task), .picks = {{ARM + 1, 1, BUTTON, n}}

static const dc_env_family cube_1 = {.name = "cube-single",
                                     .about = "an arm moves a cube",
                                     OWN(1, 0, 0, 0, 1000, 0.1, {0, 0}),
                                     CUBES(1)};
static const dc_env_family cube_2 = {.name = "cube-double",
                                     .about = "an arm moves two cubes",
                                     OWN(2, 0, 0, 0, 1000, 0.1, {0, 0.25}),
                                     CUBES(2)};
static const dc_env_family cube_3 = {.name = "cube-triple",
                                     .about = "an arm moves three cubes",
                                     OWN(3, 0, 0, 0, 3000, 0.1, {0.05, 0.35}),
                                     CUBES(3)};
static const dc_env_family cube_4 = {.name = "cube-quadruple",
                                     .about = "an arm moves four cubes",
                                     OWN(4, 0, 0, 0, 5000, 0.1, {0.1, 0.5}),
                                     CUBES(4)};
static const dc_env_family cube_8 = {.name = "cube-octuple",
                                     .about = "an arm moves eight cubes",
                                     OWN(8, 0, 0, 0, 100000, 0.1, {0, 0.35}),
                                     CUBES(8)};
static const dc_env_family scene = {
    .name = "scene",
    .about = "an arm moves a cube, presses buttons, opens a drawer and a window",
    OWN(1, 2, 0, 2, 1000, 0.1, {0.5, 0.5}),
    TABLE(1, 2, 2, 2, 2),
    .picks = {{ARM, 3, CUBE, 1}, {ARM + CUBE + 1, 1, BUTTON, 2}, {ARM + CUBE + 8, 1, 2, 2}}};
static const dc_env_family puzzle_9 = {.name = "puzzle-3x3",
                                       .about = "an arm presses 9 buttons",
                                       OWN(0, 9, 3, 0, 1000, 0.2, {0.5, 0.5}),
                                       PUZZLE(9, 4)};
static const dc_env_family puzzle_16 = {.name = "puzzle-4x4",
                                        .about = "an arm presses 16 buttons",
                                        OWN(0, 16, 4, 0, 1000, 0.2, {0.5, 0.5}),
                                        PUZZLE(16, 4)};
static const dc_env_family puzzle_20 = {.name = "puzzle-4x5",
                                        .about = "an arm presses 20 buttons",
                                        OWN(0, 20, 5, 0, 3000, 0.2, {0.5, 0.5}),
                                        PUZZLE(20, 2)};
static const dc_env_family puzzle_24 = {.name = "puzzle-4x6",
                                        .about = "an arm presses 24 buttons",
                                        OWN(0, 24, 6, 0, 5000, 0.2, {0.5, 0.5}),
                                        PUZZLE(24, 2)};

const dc_env_entry dc_arm_entries[] = {
    {&cube_1, NULL, NULL, cube_single, 200},
    {&cube_2, NULL, NULL, cube_double, 500},
    {&cube_3, NULL, NULL, cube_triple, 1000},
    {&cube_4, NULL, NULL, cube_quadruple, 1000},
    {&cube_8, NULL, NULL, cube_octuple, 1500},
    {&scene, NULL, NULL, scene_tasks, 750},
    {&puzzle_9, NULL, NULL, puzzle_3x3, 500},
    {&puzzle_16, NULL, NULL, puzzle_4x4, 500},
    {&puzzle_20, NULL, NULL, puzzle_4x5, 1000},
    {&puzzle_24, NULL, NULL, puzzle_4x6, 1000},
    {0},
};
