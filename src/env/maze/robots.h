// What the families that live in mazes have in common (point, ant, humanoid, ant with ball): parts of
// their tables (env/family.h).
#ifndef DC_MAZE_ROBOTS_H
#define DC_MAZE_ROBOTS_H

#include "env/family.h"
#include "env/maze/maze.h"

// ---- facts (maze.c) ----

extern const char *const dc_maze_words[];
double dc_maze_reward(const dc_env_spec *spec, const float *qpos, const float *extra);
void dc_maze_task_json(const dc_env_spec *spec, int task, dc_text *out);
// The published sets of a family: of each row the data of one maze, or of all that stand in no row before.
typedef struct dc_maze_data {
    dc_data_kind kind;   // DC_DATA_ANY ends a list
    const dc_maze *maze; // NULL: of every other
    int64_t episodes, rows;
    double noise;
} dc_maze_data;
// What gen->kind is of an environment: the body of a family's `plan`.
dc_status dc_maze_plan(dc_gen *gen, const dc_env_spec *spec, const dc_maze_data *sets,
                       int64_t *episodes);
double dc_maze_packed(const dc_env_family *family); // bytes of a walker's row, which packs badly

// ---- with MuJoCo (maze_mj.c, model_mj.c) ----

struct mjSpec_;
struct mjsBody_;

enum { DC_MAZE_SUBSTEPS = 5 };

// Compose the model of a robot in its maze from OGBench's description file, in the visual form's colours if so wished;
// `more` adds to the mjSpec what the file lacks. Nullable: more. Owns: *model.
dc_status dc_maze_model(const dc_env_spec *spec, bool visual, const char *file,
                        void (*more)(struct mjSpec_ *, struct mjsBody_ *world),
                        struct mjModel_ **model);

// What a reset must know of the robot.
typedef struct dc_maze_robot {
    void (*pose)(dc_env *env); // put it to rest, shaken a little
    int ball;                  // a ball's xy are qpos[ball], qpos[ball + 1]; 0: there is none
} dc_maze_robot;

// Start an episode of a task. Nullable: goal
void dc_maze_begin(dc_env *env, const dc_maze_robot *robot, const dc_maze_task *task, double *goal);
void dc_maze_set(dc_env *env, const double *qpos, const double *qvel, const double *extra);
dc_outcome dc_maze_outcome(const dc_env *env);
void dc_maze_jump(dc_env *env); // through a teleport, if the robot stands on one's entrance
void dc_maze_physics(dc_env *env, const double *action, int steps);
void dc_maze_aim(const dc_env_spec *spec, struct mjvCamera_ *camera);
void dc_maze_paint(const dc_scene *scene);
// The model's rest state, all joints moved by up to 0.1 and speeds drawn: how a point and ants begin.
void dc_maze_pose(dc_env *env);
// A cell's centre with the reference's noise of up to 1 per axis (two draws).
void dc_maze_near(dc_env *env, dc_cell cell, double xy[2]);

// ---- data: led along shortest paths (collect_mj.c) ----

enum { DC_MAZE_ACT_MAX = 32, DC_MAZE_OBS_MAX = 128 };

// The next action of a robot that is to go in a direction, a unit vector, before it is shaken.
typedef void dc_maze_act(const dc_gen *gen, dc_env *env, const double way[2], double *action);
// Play an episode of navigate, stitch or explore into its rows.
dc_status dc_maze_play(const dc_gen *gen, dc_env *env, const dc_gen_rows *out,
                       const dc_maze_robot *robot, dc_maze_act *act);

// Parts of it, for episodes of another kind:
typedef struct dc_maze_cells {
    int count;
    dc_cell at[DC_MAZE_CELLS];
} dc_maze_cells;
// Free cells row by row; without hallways if so wished.
void dc_maze_list_free(const dc_maze *maze, bool hallways, dc_maze_cells *out);
dc_cell dc_maze_pick(dc_env *env, const dc_maze_cells *from); // by lot
// The neighbour that is nearest by steps (rows, cols); the cell itself where no way leads on.
dc_cell dc_maze_next(const dc_maze *maze, const int *steps, dc_cell at);
void dc_maze_direct(double x, double y, double way[2]); // a unit vector, as the reference makes it
// Shake and clip an action, write the row that it belongs to, and take it; obs becomes the next one.
dc_status dc_maze_row(const dc_gen *gen, dc_env *env, const dc_gen_rows *out, int64_t row,
                      double *action, double *obs, dc_outcome *outcome);
// Play an episode, again and again while simulation breaks down.
dc_status dc_maze_try(const dc_gen *gen, dc_status (*play)(void *ctx), void *ctx);

#endif
