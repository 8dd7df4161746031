// antmaze and humanoidmaze: robots that walk to a place. Facts; they move in ant_mj.c, humanoid_mj.c, and trained experts
// move them when data are made (collect_mj.c). Both also walk on the open plane (env/plane.h), where experts learn.
#include "env/walker/walker.h"

// ---- ant ----

static const dc_env_family ant = {.name = "antmaze",
                                  .about = "an ant walks to a place",
                                  .ops = &dc_ant,
                                  .obs = 29,
                                  .act = 8,
                                  .visual = true,
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

static const dc_plane ant_plane = {.name = "ant",
                                   .about = "an ant walks in a direction",
                                   .family = &ant,
                                   .state = 27,
                                   .redraw = 100,
                                   .seconds = 0.1,
                                   .horizon = 1000,
                                   .low = 0.2,
                                   .high = 1,
                                   .sim = DC_NEEDS_MUJOCO(dc_ant_plane)};

static const dc_maze_data ant_sets[] = {
    {DC_DATA_NAVIGATE, &dc_maze_giant, 500, 2001, 0.2},
    {DC_DATA_NAVIGATE, NULL, 1000, 1001, 0.2},
    {DC_DATA_STITCH, NULL, 5000, 201, 0.2},
    {DC_DATA_EXPLORE, &dc_maze_medium, 10000, 501, 1.0},
    {DC_DATA_EXPLORE, &dc_maze_large, 10000, 501, 1.0},
    {DC_DATA_EXPLORE, &dc_maze_teleport, 10000, 501, 1.0},
    {0},
};

static dc_status ant_plan(dc_gen *gen, const dc_env_spec *spec, int64_t *episodes) {
    return dc_maze_plan(gen, spec, ant_sets, episodes);
}

const dc_family_ops dc_ant = {
    .noun = "a maze",
    .words = dc_maze_words,
    .entries = ant_entries,
    .target = "goal_xy",
    .data = {.first = DC_DATA_NAVIGATE,
             .last = DC_DATA_EXPLORE,
             .expert_count = 1,
             .experts = {DC_EXPERT_ANT},
             .slow = true,
             .trace = true,
             .plan = ant_plan,
             .packed = dc_maze_packed},
    .reward = dc_maze_reward,
    .task_json = dc_maze_task_json,
    .sim = DC_NEEDS_MUJOCO(dc_ant_sim),
    .plane = &ant_plane,
};

// ---- humanoid ----

static const dc_env_family humanoid = {.name = "humanoidmaze",
                                       .about = "a humanoid walks to a place",
                                       .ops = &dc_humanoid,
                                       .obs = 69,
                                       .act = 21,
                                       .visual = true,
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

static const dc_plane humanoid_plane = {.name = "humanoid",
                                        .about = "a humanoid gets up and walks in a direction",
                                        .family = &humanoid,
                                        .state = 67,
                                        .redraw = 200,
                                        .seconds = 0.025,
                                        .head = 21,
                                        .horizon = 1000,
                                        .sim = DC_NEEDS_MUJOCO(dc_humanoid_plane)};

static const dc_maze_data humanoid_sets[] = {
    {DC_DATA_NAVIGATE, &dc_maze_giant, 1000, 4001, 0.2},
    {DC_DATA_NAVIGATE, NULL, 1000, 2001, 0.2},
    {DC_DATA_STITCH, &dc_maze_giant, 10000, 401, 0.2},
    {DC_DATA_STITCH, NULL, 5000, 401, 0.2},
    {0},
};

static dc_status humanoid_plan(dc_gen *gen, const dc_env_spec *spec, int64_t *episodes) {
    return dc_maze_plan(gen, spec, humanoid_sets, episodes);
}

// The only published large set of a walker's.
static int64_t hundred(const dc_env_spec *spec) {
    return spec->maze == &dc_maze_giant && spec->data == DC_DATA_NAVIGATE ? 25000 : 0;
}

const dc_family_ops dc_humanoid = {
    .noun = "a maze",
    .words = dc_maze_words,
    .entries = humanoid_entries,
    .target = "goal_xy",
    .data = {.first = DC_DATA_NAVIGATE,
             .last = DC_DATA_EXPLORE,
             .hundred = hundred,
             .expert_count = 1,
             .experts = {DC_EXPERT_HUMANOID},
             .slow = true,
             .trace = true,
             .plan = humanoid_plan,
             .packed = dc_maze_packed},
    .reward = dc_maze_reward,
    .task_json = dc_maze_task_json,
    .sim = DC_NEEDS_MUJOCO(dc_humanoid_sim),
    .plane = &humanoid_plane,
};
