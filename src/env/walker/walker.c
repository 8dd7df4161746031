// antmaze and humanoidmaze: robots that walk to a place. Facts; they move in ant_mj.c, humanoid_mj.c.
// Data of theirs needs a trained policy: `plan` says so, and there is no `play`.
#include "env/walker/walker.h"

// ---- ant ----

static const dc_env_family ant = {.name = "antmaze",
                                  .about = "an ant walks to a place",
                                  .ops = &dc_ant,
                                  .obs = 29,
                                  .act = 8,
                                  .nq = 15,
                                  .nv = 14,
                                  .goal_at = 0,
                                  .tolerance = 0.5,
                                  .settle = 5,
                                  .task = 1,
                                  .oracle = 2,
                                  .picks = {{0, 2, 0, 1}}};

static const dc_env_entry ant_entries[] = {
    {&ant, "medium", &dc_maze_medium, dc_maze_medium_tasks, 1000},
    {&ant, "large", &dc_maze_large, dc_maze_large_tasks, 1000},
    {&ant, "giant", &dc_maze_giant, dc_maze_giant_tasks, 1000},
    {&ant, "teleport", &dc_maze_teleport, dc_maze_teleport_tasks, 1000},
    {0},
};

const dc_family_ops dc_ant = {
    .noun = "a maze",
    .words = dc_maze_words,
    .entries = ant_entries,
    .target = "goal_xy",
    .data = {.first = DC_DATA_NAVIGATE, .last = DC_DATA_EXPLORE, .plan = dc_maze_plan_none},
    .reward = dc_maze_reward,
    .task_json = dc_maze_task_json,
    .sim = DC_NEEDS_MUJOCO(dc_ant_sim),
};

// ---- humanoid ----

static const dc_env_family humanoid = {.name = "humanoidmaze",
                                       .about = "a humanoid walks to a place",
                                       .ops = &dc_humanoid,
                                       .obs = 69,
                                       .act = 21,
                                       .nq = 28,
                                       .nv = 27,
                                       .goal_at = 0,
                                       .tolerance = 0.5,
                                       .settle = 40,
                                       .task = 1,
                                       .oracle = 2,
                                       .picks = {{0, 2, 0, 1}}};

static const dc_env_entry humanoid_entries[] = {
    {&humanoid, "medium", &dc_maze_medium, dc_maze_medium_tasks, 2000},
    {&humanoid, "large", &dc_maze_large, dc_maze_large_tasks, 2000},
    {&humanoid, "giant", &dc_maze_giant, dc_maze_giant_tasks, 4000},
    {0},
};

const dc_family_ops dc_humanoid = {
    .noun = "a maze",
    .words = dc_maze_words,
    .entries = humanoid_entries,
    .target = "goal_xy",
    .data = {.first = DC_DATA_NAVIGATE, .last = DC_DATA_EXPLORE, .plan = dc_maze_plan_none},
    .reward = dc_maze_reward,
    .task_json = dc_maze_task_json,
    .sim = DC_NEEDS_MUJOCO(dc_humanoid_sim),
};
