// A family of environments, as a table of functions. Everything that is particular to a robot and to
// what it plays with lies behind it: env/sim, env/view, env/gen, env/replay and the commands call
// these and never ask which robot it is.
//
//     dc_family_ops  facts, always there: names, rewards of recorded states, sizes of data sets
//       dc_sim       how it moves, is seen and is collected from; NULL in a build without its simulator
//         dc_engine  what the simulator does for every family on it (env/mujoco/engine.c)
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
    void *own;              // Nullable: what else the copies share, of the family's type
};

typedef void dc_work(void *ctx);

typedef struct dc_engine {
    // Call work(ctx), which calls into the simulator. What goes wrong there becomes a status, also
    // what the copy's state tells (numbers that are not finite). Nullable: env
    dc_status (*guard)(dc_work *work, void *ctx, const dc_env *env);
    // The state of a copy, at rest: data, qpos, qvel. Runs in the guard; false without memory.
    bool (*open)(dc_env *env);
    void (*close)(dc_env *env); // safe on a zeroed struct, and twice
    dc_status (*save)(const struct mjModel_ *model, const char *path);
    void (*drop)(struct mjModel_ *model); // Nullable: model
    dc_status (*view)(dc_view **view, const dc_env_spec *spec, const dc_view_options *options);
} dc_engine;

// A renderer's side of env/view.h. Its own struct begins with a dc_view.
typedef struct dc_view_ops {
    dc_status (*draw)(dc_view *view, const dc_states *states, int64_t row, uint8_t *rgb);
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
    struct mjModel_ *model; // the view's own: colours and places of marks are written to it
    struct mjData_ *data;   // has the state's qpos, and is computed forward afterwards
    const dc_states *states;
    int64_t row;
} dc_scene;

typedef struct dc_sim {
    const dc_engine *engine;
    int substeps; // physics steps of a control step

    // Worlds. `whole`: with everything that can be seen, not only what is simulated. Owns: *model.
    dc_status (*model)(const dc_env_spec *spec, bool whole, struct mjModel_ **model);
    dc_status (*prepare)(dc_world *world); // Nullable: fill in world->own
    void (*release)(dc_world *world);      // Nullable: free what prepare made, of any part of it

    // Copies, all in the engine's guard.
    size_t own;                 // bytes of env->own, zeros to begin with; 0: none
    bool (*open)(dc_env *env);  // Nullable: fill in env->own; false without memory
    void (*close)(dc_env *env); // Nullable: free what lies in env->own
    // Start an episode of spec->tasks[task] and write what a policy sees of its goal. Nullable: goal
    void (*reset)(dc_env *env, int task, double *goal);
    void (*set)(dc_env *env, const double *qpos, const double *qvel, const double *extra);
    void (*step)(dc_env *env, const double *action); // a control step
    void (*after)(dc_env *env); // Nullable: what happens when the step has been observed and judged
    void (*observe)(const dc_env *env, double *obs);
    dc_outcome (*judge)(const dc_env *env);
    void (*extra)(const dc_env *env, double *extra); // Nullable: if the family has extra numbers
    void (*physics)(dc_env *env, const double *action, int steps); // see dc_env_physics

    // Pictures. OGBench's view is the model's camera of that name, or one that is set up.
    const char *camera;                                              // Nullable
    void (*aim)(const dc_env_spec *spec, struct mjvCamera_ *camera); // if camera is NULL
    void (*paint)(const dc_scene *scene);                            // Nullable

    // Data: an episode into its rows; what the script alone takes of it, in seconds a row.
    dc_status (*play)(const dc_gen *gen, dc_env *env, const dc_gen_rows *out); // Nullable
    dc_status (*time_script)(const dc_gen *gen, dc_env *env, double *seconds); // Nullable
} dc_sim;

// ---- what is known ----

typedef struct dc_family_data {
    dc_data_kind first, last; // words for data that its names may have
    bool hundred;             // and behind them -100m
    bool slow;  // takes long to make: files that are there stay, and what was begun is gone on with
    bool trace; // `play` also fills in what no data set holds, where rows ask for it
    // Sizes and noise of the published set of gen->kind. Errors as dc_gen_init.
    dc_status (*plan)(dc_gen *gen, const dc_env_spec *spec, int64_t *episodes);
    // Bytes of a packed row, a few more than were seen. Nullable: two thirds of what it is unpacked
    double (*packed)(const dc_env_family *family);
} dc_family_data;

// An environment without any form.
typedef struct dc_env_entry {
    const dc_env_family *family; // NULL ends a list
    const char *variant;         // Nullable: its name is FAMILY-VARIANT, else FAMILY
    const struct dc_maze *maze;  // Nullable
    const void *tasks;           // (DC_TASKS)
    int horizon;
} dc_env_entry;

typedef struct dc_family_ops {
    const char *noun;         // for messages: "a maze"
    const char *const *words; // one of which is in every name; NULL ends them
    const dc_env_entry *entries;
    const char *target; // what files call the numbers that say what a task wants
    dc_extra extra;     // no name: there are none
    dc_family_data data;
    // Minus the number of a single task's conditions that do not hold (env/rewards.h).
    double (*reward)(const dc_env_spec *spec, const float *qpos, const float *extra);
    void (*task_json)(const dc_env_spec *spec, int task, dc_text *out); // task: 0 ... 4
    const dc_sim *sim; // NULL: this build cannot simulate it
} dc_family_ops;

#define DC_FAMILY(name) extern const dc_family_ops dc_##name;
#include "env/families.def"
#undef DC_FAMILY

// The simulation of an environment (sim.c). Errors: DC_UNSUPPORTED where this build has none.
dc_status dc_sim_need(const dc_env_spec *spec, const dc_sim **sim);

static inline const dc_sim *dc_sim_of(const dc_env *env) {
    return env->world->spec.family->ops->sim;
}

#endif
