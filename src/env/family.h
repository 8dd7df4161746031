// A family of environments, as a table of functions: the environments of one robot and kind of task, such
// as all mazes of the ant. Everything that is particular to them lies behind the table: env/sim, env/view,
// env/gen, env/replay and the commands call it and never test which robot it is.
//
//     dc_family_ops  facts, always there: names, rewards of recorded states, sizes of data sets
//       dc_sim       how it moves, is drawn and makes data; NULL in a build without its simulator
//         dc_engine  what the simulator itself does, alike for every family on it (env/mujoco/engine.c)
//
// A dc_world is an environment's compiled model, read-only; a dc_env is one copy of its state (env/sim.h).
// A form is how a task is put: goals as whole observations, as the few numbers that count (-oraclerep), or
// a single task with rewards (-singletask).
//
// A new family: a folder with these tables and a row in families.def (CONTRIBUTING.md).
#ifndef DC_ENV_FAMILY_H
#define DC_ENV_FAMILY_H

#include "base/text.h"
#include "env/gen.h"
#include "env/sim.h"
#include "env/view.h"

struct mjModel_; // MuJoCo's
struct mjData_;
struct mjvCamera_;

// A table that needs MuJoCo: NULL in a build without.
#ifdef DC_MUJOCO
#define DC_NEEDS_MUJOCO(table) (&(table))
#else
#define DC_NEEDS_MUJOCO(table) NULL
#endif

// ---- what moves ----

struct dc_world {
    dc_env_spec spec;
    struct mjModel_ *model; // of families on MuJoCo: what is simulated; never written to
    void *own;     // Nullable: the family's own data that copies share, made by dc_sim.prepare
    dc_view *view; // Nullable: draws observations, in visual form
};

typedef void dc_work(void *ctx);

typedef struct dc_engine {
    // Call work(ctx), which calls into the simulator. What goes wrong there becomes a status, also
    // numbers in the copy's state that are not finite. Nullable: env
    dc_status (*guard)(dc_work *work, void *ctx, const dc_env *env);
    // The state of a copy, at rest: data, qpos, qvel. Runs in the guard; false without memory.
    bool (*open)(dc_env *env);
    void (*close)(dc_env *env); // safe on a zeroed struct, and twice
    // A copy's complete state as numbers, from which it goes on to the bit; all three Nullable, together.
    int (*words)(const dc_env *env);
    void (*get)(const dc_env *env, double *words);
    void (*put)(dc_env *env, const double *words);
    dc_status (*save)(const struct mjModel_ *model, const char *path);
    void (*drop)(struct mjModel_ *model); // Nullable: model
    dc_status (*view)(dc_view **view, const dc_env_spec *spec, const dc_view_options *options);
    // What is seen of a copy as it stands, as numbers for dc_view_ops.develop: where its bodies are, whether or not
    // that was computed anew after the last physics step. Nullable, together: no visual form.
    int (*shot_size)(const dc_world *world);
    void (*shoot)(const dc_env *env, double *shot);
} dc_engine;

// A renderer's side of env/view.h. Its own struct begins with a dc_view.
typedef struct dc_view_ops {
    dc_status (*draw)(dc_view *view, const dc_states *states, const int64_t *rows, int count,
                      uint8_t *rgb);
    // Draw what was seen (dc_engine.shoot) of a state with these extra numbers. By any number of threads at a time.
    // Nullable: no visual form
    dc_status (*develop)(dc_view *view, const double *shot, const double *extra, uint8_t *rgb);
    double (*rate)(const dc_view *view);
    void (*free)(dc_view *view);
} dc_view_ops;

struct dc_view {
    const dc_view_ops *ops;
    dc_env_spec spec;
};

// What is being drawn: the family paints what does not follow from qpos.
typedef struct dc_scene {
    const dc_env_spec *spec;
    struct mjModel_ *model; // the view's own: colours and positions of marks are written to it
    struct mjData_ *data;   // has the state's qpos, and is computed forward afterwards
    const dc_states *states;
    int64_t row;
} dc_scene;

typedef struct dc_sim {
    const dc_engine *engine;
    int substeps; // physics steps of a control step

    // Worlds. `whole`: with everything that is drawn, in visual form in its colours; else only what physics needs. The
    // caller owns *model.
    dc_status (*model)(const dc_env_spec *spec, bool whole, struct mjModel_ **model);
    dc_status (*prepare)(dc_world *world); // Nullable: fill in world->own
    void (*release)(dc_world *world); // Nullable: free what prepare made, also if it failed halfway

    // Copies, all in the engine's guard.
    size_t own;                 // bytes of env->own, zeros to begin with; 0: none
    bool (*open)(dc_env *env);  // Nullable: fill in env->own; false without memory
    void (*close)(dc_env *env); // Nullable: free what lies in env->own
    // Start an episode of spec->tasks[task], task 0 ... 4, and write the goal as a policy sees it (spec.goal).
    // Nullable: goal
    void (*reset)(dc_env *env, int task, double *goal);
    void (*set)(dc_env *env, const double *qpos, const double *qvel, const double *extra);
    void (*step)(dc_env *env, const double *action); // a control step
    void (*after)(dc_env *env); // Nullable: follows observe and outcome, such as a teleport
    void (*observe)(const dc_env *env, double *obs); // the state's observation, in visual form, too
    dc_outcome (*outcome)(const dc_env *env);
    // Nullable: numbers of a state beside qpos and qvel.
    void (*extra)(const dc_env *env, double *extra);
    // MuJoCo steps alone, for benchmarks.
    void (*physics)(dc_env *env, const double *action, int steps);

    // Pictures. OGBench's view is the model's camera of that name, or one that is set up.
    const char *camera;                                              // Nullable
    const char *visual_camera;                                       // Nullable: no visual form
    void (*aim)(const dc_env_spec *spec, struct mjvCamera_ *camera); // if camera is NULL
    void (*paint)(const dc_scene *scene);                            // Nullable

    // Data: play an episode by the family's script and write its rows; time that script alone, in seconds per
    // row.
    dc_status (*play)(const dc_gen *gen, dc_env *env, const dc_gen_rows *out); // Nullable
    dc_status (*time_script)(const dc_gen *gen, dc_env *env, double *seconds); // Nullable
} dc_sim;

// ---- what is known ----

typedef struct dc_family_data {
    dc_data_kind first, last; // the kinds of data that names may have: "navigate" to "explore"
    // Episodes of a set of 100 million transitions, -100m; 0: there is none of these data. Nullable: none
    int64_t (*hundred)(const dc_env_spec *spec);
    int expert_count; // that `play` needs (dc_gen.experts), and whose they are
    dc_expert_kind experts[DC_GEN_EXPERTS];
    bool slow;  // takes long: dcrl gen keeps finished files and goes on with a set that was begun
    bool trace; // `play` also fills the fields of dc_gen_rows that no data set holds
    // Sizes and noise of the published set of gen->kind. Errors as dc_gen_init.
    dc_status (*plan)(dc_gen *gen, const dc_env_spec *spec, int64_t *episodes);
    // Bytes of a compressed row, an upper estimate. Nullable: two thirds of an uncompressed one
    double (*packed)(const dc_env_family *family);
} dc_family_data;

// An environment, before its name is given a form.
typedef struct dc_env_entry {
    const dc_env_family *family; // NULL ends a list
    const char *variant;         // Nullable: its name is FAMILY-VARIANT, else FAMILY
    const struct dc_maze *maze;  // Nullable
    const void *tasks;           // (DC_TASKS)
    int horizon;
} dc_env_entry;

typedef struct dc_family_ops {
    const char *noun; // for messages: "a maze"
    // Every name contains one of these, by which the family of a misspelt one is found. NULL ends them.
    const char *const *words;
    const dc_env_entry *entries;
    const char *target; // array name, in files, of the numbers that say what a task wants
    dc_extra extra;     // numbers of a state beside qpos and qvel; name NULL: none
    dc_family_data data;
    // Minus the number of a single task's conditions that do not hold (env/rewards.h).
    double (*reward)(const dc_env_spec *spec, const float *qpos, const float *extra);
    void (*task_json)(const dc_env_spec *spec, int task, dc_text *out); // task: 0 ... 4
    const dc_sim *sim;            // NULL: this build cannot simulate it
    const struct dc_plane *plane; // Nullable: the robot on the open plane (env/plane.h)
} dc_family_ops;

#define DC_FAMILY(name) extern const dc_family_ops dc_##name;
#include "env/families.def"
#undef DC_FAMILY

// For resets: the goal, as a policy sees it, is what would be observed now. In visual form it is written when the reset
// is over, and must not be oracle.
void dc_goal_is_now(dc_env *env, double *goal);

// The simulation of an environment (sim.c). Errors: DC_UNSUPPORTED where this build has none.
dc_status dc_sim_need(const dc_env_spec *spec, const dc_sim **sim);

static inline const dc_sim *dc_sim_of(const dc_env *env) {
    return env->world->spec.family->ops->sim;
}

#endif
