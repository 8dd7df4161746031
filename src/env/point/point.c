// pointmaze: a point mass finds its way. Facts; it moves in point_mj.c.
#include "env/point/point.h"

static const dc_env_family family = {.name = "pointmaze",
                                     .about = "a point mass finds its way",
                                     .ops = &dc_point,
                                     .obs = 2,
                                     .act = 2,
                                     .nq = 2,
                                     .nv = 2,
                                     .goal_at = 0,
                                     .tolerance = 1.0,
                                     .settle = 5,
                                     .task = 1,
                                     .oracle = 2,
                                     .picks = {{0, 2, 0, 1}}};

static const dc_env_entry entries[] = {
    {&family, "medium", &dc_maze_medium, dc_maze_medium_tasks, 1000},
    {&family, "large", &dc_maze_large, dc_maze_large_tasks, 1000},
    {&family, "giant", &dc_maze_giant, dc_maze_giant_tasks, 1000},
    {&family, "teleport", &dc_maze_teleport, dc_maze_teleport_tasks, 1000},
    {0},
};

static const dc_maze_data sets[] = {
    {DC_DATA_NAVIGATE, &dc_maze_giant, 500, 2001, 0.5},
    {DC_DATA_NAVIGATE, NULL, 1000, 1001, 0.5},
    {DC_DATA_STITCH, NULL, 5000, 201, 0.5},
    {0},
};

static dc_status plan(dc_gen *gen, const dc_env_spec *spec, int64_t *episodes) {
    return dc_maze_plan(gen, spec, sets, episodes);
}

const dc_family_ops dc_point = {
    .noun = "a maze",
    .words = dc_maze_words,
    .entries = entries,
    .target = "goal_xy",
    .data = {.first = DC_DATA_NAVIGATE, .last = DC_DATA_EXPLORE, .plan = plan},
    .reward = dc_maze_reward,
    .task_json = dc_maze_task_json,
    .sim = DC_NEEDS_MUJOCO(dc_point_sim),
};
