// Environments as facts: names, sizes, tasks, goals and time limits of OGBench's mazes and of its
// tables with a robot arm, with no simulator behind them. data/ and cli/ ask here what a name means;
// env/sim builds a world from it. The facts themselves stand in the families' folders (families.def).
//
// A name is OGBench's, with the parts in brackets left out at will:
//     [visual-]FAMILY[-VARIANT][-DATA[-100m]][-oraclerep | -singletask[-taskK]][-v0]
// where DATA is navigate, stitch or explore of a maze, play or noisy of an arm, and 100m an arm's or
// humanoidmaze-giant-navigate's.
//
// In the visual form of an environment observations are pictures. Nothing else of it differs: what they
// show is the family's model with other colours, seen by another camera (dc_sim.visual_camera).
#ifndef DC_ENV_SPEC_H
#define DC_ENV_SPEC_H

#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    DC_TASKS = 5,
    DC_ENV_NAME_MAX = 64,
    DC_TARGET_MAX = 24, // numbers that say what a task wants
    DC_EXTRA_MAX = 24,  // numbers of a state beside qpos and qvel
    DC_PICKS_MAX = 3,
    DC_VISUAL_SIDE = 64, // of a picture
    DC_VISUAL_OBS = DC_VISUAL_SIDE * DC_VISUAL_SIDE * 3,
    DC_OBS_MAX = DC_VISUAL_OBS, // values of an observation
};

typedef enum dc_data_kind {
    DC_DATA_ANY,
    DC_DATA_NAVIGATE,
    DC_DATA_STITCH,
    DC_DATA_EXPLORE,
    DC_DATA_PLAY,
    DC_DATA_NOISY
} dc_data_kind;

const char *dc_data_word(dc_data_kind kind); // "navigate" and so on

// Columns of an observation: `count` from `first` on; if `step` is not 0 the same again `step`
// further, `times` times in all.
typedef struct dc_pick {
    int first, count, step, times;
} dc_pick;

// Numbers of a state beside qpos and qvel, as arrays of files call them: whole, from low to high.
typedef struct dc_extra {
    const char *name, *what; // "button_states", "buttons"; NULL: a family has none
    int low, high;
} dc_extra;

// What all environments with the same name in front have in common: "antmaze", "cube-double".
typedef struct dc_env_family {
    const char *name, *about;
    const struct dc_family_ops *ops; // what it can do: env/family.h
    const void *own;                 // Nullable: facts that only its ops know
    int obs, act, nq, nv;            // obs: of a state's observation
    bool visual;                     // there is a visual form
    int extra;        // numbers of a state beside qpos and qvel; ops->extra says what they are
    int goal_at;      // mazes: the goal's xy is qpos[goal_at], qpos[goal_at + 1]
    double tolerance; // success: position within this of the goal
    int settle;       // random steps before the goal's observation is taken
    int task;         // default task of the single-task form
    int oracle;       // values of a goal in oraclerep form, and numbers that say what a task wants
    dc_pick picks[DC_PICKS_MAX]; // where an observation has them, in order
} dc_env_family;

// What a name means.
typedef struct dc_env_spec {
    char name[DC_ENV_NAME_MAX]; // written out, with -v0 and without the data's word
    const dc_env_family *family;
    const char *variant;        // Nullable: "medium" of antmaze-medium
    const struct dc_maze *maze; // Nullable: the floor plan (env/maze/maze.h), which dcrl map draws
    const void *tasks;          // (DC_TASKS) of the family's own type
    dc_data_kind data;          // the data's word in the name
    bool large;                 // of it the set of 100 million transitions
    bool oracle;                // goals are what counts of an observation, not all of it
    bool visual;                // observations are pictures, (side, side, 3) numbers 0 ... 255
    int task;                   // 1 ... 5: single-task form; 0: goal-conditioned
    int obs;                    // values of an observation
    int goal;                   // values of a goal
    int horizon;                // steps before an episode is cut off
} dc_env_spec;

// Read a name. Errors: DC_USAGE, with the nearest name.
dc_status dc_env_find(dc_env_spec *spec, const char *name);
// The plain environment of a form, visual or not: neither data's word, nor oraclerep, nor single task.
void dc_env_plain(dc_env_spec *spec);
// The visual form of a plain environment; false if there is none.
bool dc_env_make_visual(dc_env_spec *spec);
// OGBench's name of a set of data: "cube-single-play-100m-v0". The form of the task does not matter.
void dc_env_data_name(const dc_env_spec *spec, dc_data_kind kind, bool hundred,
                      char name[DC_ENV_NAME_MAX]);
// Whether a name looks like one of a family's (and not a lock's), however misspelt.
bool dc_env_has_tasks(const char *name);
// The plain environments one by one: false when there is no row `index`.
bool dc_env_row(dc_env_spec *spec, int index);

// The same, and then the visual forms of those that have one.
bool dc_env_listed(dc_env_spec *spec, int index);

// What files call the numbers that say what a task wants; what a state has beside qpos and qvel.
const char *dc_env_target_name(const dc_env_family *family);
const dc_extra *dc_env_extra_facts(const dc_env_family *family);
// A task, 0 ... 4, as a JSON object.
void dc_env_task_json(const dc_env_spec *spec, int task, dc_text *out);
// Arrays of files that hold something else than qpos and qvel belong to families. The names that an
// environment does not know, one by one, with what to say; false after the last.
typedef struct dc_foreign {
    const char *name;
    char hint[64];
} dc_foreign;
bool dc_env_foreign(const dc_env_family *family, int index, dc_foreign *foreign);

#endif
