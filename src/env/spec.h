// Environments as facts: names, sizes, maps, tasks, goals and time limits of OGBench's mazes and of
// its tables with a robot arm, with no simulator behind them. data/ and cli/ ask here what a name
// means; env/sim builds a world from it.
//
// A name is OGBench's, with the parts in brackets left out at will:
//     FAMILY-MAZE[-navigate|-stitch|-explore][-oraclerep | -singletask[-taskK]][-v0]
//     TABLE[-play[-100m]|-noisy[-100m]][-oraclerep | -singletask[-taskK]][-v0]
#ifndef DC_ENV_SPEC_H
#define DC_ENV_SPEC_H

#include "base/status.h"

#include <stdbool.h>

enum {
    DC_TASKS = 5,
    DC_PADS_MAX = 3,
    DC_ENV_NAME_MAX = 64,
    DC_CUBES_MAX = 8,
    DC_BUTTONS_MAX = 24,
    DC_TARGET_MAX = 24, // numbers that say what a task wants
    DC_PICKS_MAX = 3,
};

typedef enum dc_robot { DC_POINT, DC_ANT, DC_HUMANOID, DC_ARM } dc_robot;

typedef enum dc_data_kind {
    DC_DATA_ANY,
    DC_DATA_NAVIGATE,
    DC_DATA_STITCH,
    DC_DATA_EXPLORE,
    DC_DATA_PLAY,
    DC_DATA_NOISY
} dc_data_kind;

const char *dc_data_word(dc_data_kind kind); // "navigate" and so on

typedef struct dc_cell {
    int i, j; // row, column
} dc_cell;

typedef struct dc_maze_task {
    dc_cell start, goal, ball; // ball: antsoccer only
} dc_maze_task;

typedef struct dc_maze {
    const char *name;
    int rows, cols;
    const char *cells;       // (rows, cols) '1' is a wall, '0' is free
    int in_count, out_count; // teleport pads
    dc_cell in[DC_PADS_MAX], out[DC_PADS_MAX];
} dc_maze;

// How the things on a table lie.
typedef struct dc_things {
    double cubes[DC_CUBES_MAX][3]; // xyz
    const char *buttons;           // '0' or '1' each
    double drawer, window;         // positions along their slides
} dc_things;

typedef struct dc_manip_task {
    dc_things start, goal;
} dc_manip_task;

// Columns of an observation: `count` from `first` on, the same again `step` further, `times` times.
typedef struct dc_pick {
    int first, count, step, times;
} dc_pick;

typedef struct dc_env_family {
    const char *name, *about;
    dc_robot robot;
    bool ball;
    int obs, act, nq, nv;
    int goal_at;      // mazes: the goal's xy is qpos[goal_at], qpos[goal_at + 1]
    double tolerance; // success: place within this of the goal
    int settle;       // random steps before the goal's observation is taken
    int task;         // default task of the single-task form
    int oracle;       // values of a goal in oraclerep form, and numbers that say what a task wants
    dc_pick picks[DC_PICKS_MAX]; // where an observation has them, in order
    // Tables only:
    int cubes, buttons; // how many
    int cols;           // of a grid of buttons that toggle their neighbours, too; 0: no grid
    int slides;         // drawer and window: 2 or 0
} dc_env_family;

// What a name means.
typedef struct dc_env_spec {
    char name[DC_ENV_NAME_MAX]; // written out, with -v0 and without the data's word
    const dc_env_family *family;
    const dc_maze *maze;        // Nullable: a table has none
    const dc_maze_task *tasks;  // (DC_TASKS) of a maze
    const dc_manip_task *manip; // (DC_TASKS) of a table
    dc_data_kind data;          // the data's word in the name
    bool large;                 // of it the set of 100 million transitions
    bool oracle;                // goals are what counts of an observation, not all of it
    int task;                   // 1 ... 5: single-task form; 0: goal-conditioned
    int goal;                   // values of a goal
    int horizon;                // steps before an episode is cut off
} dc_env_spec;

// Read a name. Errors: DC_USAGE, with the nearest name.
dc_status dc_env_find(dc_env_spec *spec, const char *name);
// The plain environment of a form: neither data's word, nor oraclerep, nor single task.
void dc_env_plain(dc_env_spec *spec);
// OGBench's name of a set of data: "cube-single-play-100m-v0". The form of the task does not matter.
void dc_env_data_name(const dc_env_spec *spec, dc_data_kind kind, bool hundred,
                      char name[DC_ENV_NAME_MAX]);
// Whether a name looks like one of a maze or table (and not a lock's), however misspelt.
bool dc_env_has_tasks(const char *name);
// The plain environments one by one: false when there is no row `index`.
bool dc_env_row(dc_env_spec *spec, int index);

// manip.c: the tables with a robot arm.
typedef struct dc_manip_row {
    dc_env_family family;
    const dc_manip_task *tasks; // (DC_TASKS)
    int horizon;
    // Of its data:
    int episodes;    // of the published set
    double random;   // noisy data: part of actions that are random
    double stack[2]; // range of an episode's chance that a cube goes onto another
} dc_manip_row;
enum { DC_MANIPS = 10 };
extern const dc_manip_row dc_manip_rows[DC_MANIPS];
// Where arm and things may be put: low and high corners.
typedef struct dc_reach {
    double arm[2][3], things[2][2];
} dc_reach;
const dc_reach *dc_manip_reach(const dc_env_family *family);

bool dc_maze_wall(const dc_maze *maze, dc_cell cell); // true outside of the map, too
void dc_maze_xy(dc_cell cell, double xy[2]);
// The cell of a place; rounds towards zero, as the reference does.
dc_cell dc_maze_cell(const double xy[2]);
// Steps from every cell to `goal` by the shortest way: steps (rows, cols), -1 where there is none.
// Returns how many cells have a way, and lists them nearest first: order (rows * cols). Nullable:
// order
enum { DC_MAZE_CELLS = 256 };
int dc_maze_steps(const dc_maze *maze, dc_cell goal, int *steps, dc_cell *order);

#endif
