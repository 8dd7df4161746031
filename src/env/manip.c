// The tables with a robot arm: cubes to be put in places, buttons that toggle their neighbours, and a
// scene of a cube, a drawer and a window with a button each that locks them. Goes to env/spec.c.
//
// An observation is arm and gripper (19 values), then 9 values a cube (place, quaternion, yaw), 4 a
// button (one-hot state, position, speed), 2 for the drawer and 2 for the window (position, speed).
// What counts of it, the oraclerep form, is each cube's place, each button's state, and the
// positions of drawer and window: columns of the observation, as env/mujoco/arm.c fills them.
#include "env/spec.h"

// ---- tasks ----

static const dc_manip_task cube_single[DC_TASKS] = {
    {.start = {.cubes = {{0.425, 0.1, 0.02}}},
     .goal = {.cubes = {{0.425, -0.1, 0.02}}}},                                        // horizontal
    {.start = {.cubes = {{0.35, 0, 0.02}}}, .goal = {.cubes = {{0.5, 0, 0.02}}}},      // vertical1
    {.start = {.cubes = {{0.5, 0, 0.02}}}, .goal = {.cubes = {{0.35, 0, 0.02}}}},      // vertical2
    {.start = {.cubes = {{0.35, -0.2, 0.02}}}, .goal = {.cubes = {{0.5, 0.2, 0.02}}}}, // diagonal1
    {.start = {.cubes = {{0.35, 0.2, 0.02}}}, .goal = {.cubes = {{0.5, -0.2, 0.02}}}}, // diagonal2
};

static const dc_manip_task cube_double[DC_TASKS] = {
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

static const dc_manip_task cube_triple[DC_TASKS] = {
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

static const dc_manip_task cube_quadruple[DC_TASKS] = {
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

static const dc_manip_task cube_octuple[DC_TASKS] = {
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

static const dc_manip_task scene_tasks[DC_TASKS] = {
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

static const dc_manip_task puzzle_3x3[DC_TASKS] = {
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

static const dc_manip_task puzzle_4x4[DC_TASKS] = {
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

static const dc_manip_task puzzle_4x5[DC_TASKS] = {
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

static const dc_manip_task puzzle_4x6[DC_TASKS] = {
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

#define TABLE(cubes_, buttons_, slides_, settle_, task_)                                           \
    .robot = DC_ARM, .act = 5, .obs = ARM + CUBE * (cubes_) + BUTTON * (buttons_) + 2 * (slides_), \
    .nq = ARM_DOF + 7 * (cubes_) + (buttons_) + (slides_),                                         \
    .nv = ARM_DOF + 6 * (cubes_) + (buttons_) + (slides_), .tolerance = 0.04, .settle = settle_,   \
    .task = task_, .oracle = 3 * (cubes_) + (buttons_) + (slides_), .cubes = cubes_,               \
    .buttons = buttons_, .slides = slides_
#define CUBES(n) TABLE(n, 0, 0, 2, 2), .picks = {{ARM, 3, CUBE, n}}
#define PUZZLE(rows, cols_, task_)                                                                 \
    TABLE(0, (rows) * (cols_), 0, 5, task_), .cols = cols_,                                        \
                                             .picks = {{ARM + 1, 1, BUTTON, (rows) * (cols_)}}

// Time limit; of the data: episodes, random actions of noisy ones, range of the chance to stack.
const dc_manip_row dc_manip_rows[DC_MANIPS] = {
    {{.name = "cube-single", .about = "an arm moves a cube", CUBES(1)},
     cube_single,
     200,
     1000,
     0.1,
     {0, 0}},
    {{.name = "cube-double", .about = "an arm moves two cubes", CUBES(2)},
     cube_double,
     500,
     1000,
     0.1,
     {0, 0.25}},
    {{.name = "cube-triple", .about = "an arm moves three cubes", CUBES(3)},
     cube_triple,
     1000,
     3000,
     0.1,
     {0.05, 0.35}},
    {{.name = "cube-quadruple", .about = "an arm moves four cubes", CUBES(4)},
     cube_quadruple,
     1000,
     5000,
     0.1,
     {0.1, 0.5}},
    {{.name = "cube-octuple", .about = "an arm moves eight cubes", CUBES(8)},
     cube_octuple,
     1500,
     100000,
     0.1,
     {0, 0.35}},
    {{.name = "scene",
      .about = "an arm moves a cube, presses buttons, opens a drawer and a window",
      TABLE(1, 2, 2, 2, 2),
      .picks = {{ARM, 3, CUBE, 1}, {ARM + CUBE + 1, 1, BUTTON, 2}, {ARM + CUBE + 8, 1, 2, 2}}},
     scene_tasks,
     750,
     1000,
     0.1,
     {0.5, 0.5}},
    {{.name = "puzzle-3x3", .about = "an arm presses 9 buttons", PUZZLE(3, 3, 4)},
     puzzle_3x3,
     500,
     1000,
     0.2,
     {0.5, 0.5}},
    {{.name = "puzzle-4x4", .about = "an arm presses 16 buttons", PUZZLE(4, 4, 4)},
     puzzle_4x4,
     500,
     1000,
     0.2,
     {0.5, 0.5}},
    {{.name = "puzzle-4x5", .about = "an arm presses 20 buttons", PUZZLE(4, 5, 2)},
     puzzle_4x5,
     1000,
     3000,
     0.2,
     {0.5, 0.5}},
    {{.name = "puzzle-4x6", .about = "an arm presses 24 buttons", PUZZLE(4, 6, 2)},
     puzzle_4x6,
     1000,
     5000,
     0.2,
     {0.5, 0.5}},
};

// ---- places ----

const dc_reach *dc_manip_reach(const dc_env_family *f) {
    static const dc_reach cubes = {{{0.25, -0.35, 0.20}, {0.6, 0.35, 0.35}},
                                   {{0.3, -0.3}, {0.55, 0.3}}};
    static const dc_reach scene = {{{0.25, -0.2, 0.20}, {0.6, 0.2, 0.35}},
                                   {{0.3, -0.07}, {0.45, 0.18}}};
    static const dc_reach puzzle = {{{0.25, -0.2, 0.20}, {0.6, 0.2, 0.25}},
                                    {{0.3, -0.3}, {0.55, 0.3}}};
    return f->slides ? &scene : f->cubes ? &cubes : &puzzle;
}
