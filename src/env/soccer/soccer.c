// antsoccer: an ant dribbles a ball to a place. Facts; it moves in soccer_mj.c.
#include "env/soccer/soccer.h"

static const dc_env_family family = {.name = "antsoccer",
                                     .about = "an ant dribbles a ball to a place",
                                     .ops = &dc_soccer,
                                     .obs = 42,
                                     .act = 8,
                                     .nq = 22,
                                     .nv = 20,
                                     .goal_at = DC_SOCCER_BALL,
                                     .tolerance = 0.5,
                                     .settle = 10,
                                     .task = 4,
                                     .oracle = 2,
                                     .picks = {{DC_SOCCER_BALL, 2, 0, 1}}};

static const dc_maze_task arena_tasks[DC_TASKS] = {
    {.start = {1, 6}, .ball = {2, 3}, .goal = {5, 2}},
    {.start = {2, 2}, .ball = {5, 5}, .goal = {2, 2}},
    {.start = {6, 1}, .ball = {2, 3}, .goal = {6, 6}},
    {.start = {6, 6}, .ball = {1, 1}, .goal = {6, 1}},
    {.start = {4, 6}, .ball = {6, 2}, .goal = {1, 6}},
};
static const dc_maze_task medium_tasks[DC_TASKS] = {
    {.start = {1, 1}, .ball = {3, 4}, .goal = {6, 6}},
    {.start = {6, 1}, .ball = {6, 5}, .goal = {1, 1}},
    {.start = {5, 3}, .ball = {4, 2}, .goal = {6, 5}},
    {.start = {6, 5}, .ball = {1, 1}, .goal = {5, 3}},
    {.start = {1, 6}, .ball = {6, 1}, .goal = {1, 6}},
};

static const dc_env_entry entries[] = {
    {&family, "arena", &dc_maze_arena, arena_tasks, 1000},
    {&family, "medium", &dc_maze_medium, medium_tasks, 1000},
    {0},
};

static void task_json(const dc_env_spec *spec, int task, dc_text *out) {
    const dc_maze_task *t = dc_maze_task_of(spec, task);
    dc_text_add(out, "{\"start\": [%d, %d], \"goal\": [%d, %d], \"ball\": [%d, %d]}", t->start.i,
                t->start.j, t->goal.i, t->goal.j, t->ball.i, t->ball.j);
}

static const dc_plane plane = {.name = "antball",
                               .about = "an ant dribbles a ball to a place",
                               .family = &family,
                               .state = 40,
                               .seconds = 0.1,
                               .horizon = 200,
                               .final = true,
                               .ball = DC_SOCCER_BALL,
                               .low = 0.2,
                               .high = 1,
                               .reach = 12,
                               .sim = DC_NEEDS_MUJOCO(dc_soccer_plane)};

static const dc_maze_data sets[] = {
    {DC_DATA_NAVIGATE, &dc_maze_arena, 1000, 1001, 0.2},
    {DC_DATA_NAVIGATE, &dc_maze_medium, 4000, 1001, 0.2},
    {DC_DATA_STITCH, &dc_maze_arena, 5000, 201, 0.2},
    {DC_DATA_STITCH, &dc_maze_medium, 8000, 501, 0.2},
    {0},
};

static dc_status plan(dc_gen *gen, const dc_env_spec *spec, int64_t *episodes) {
    return dc_maze_plan(gen, spec, sets, episodes);
}

const dc_family_ops dc_soccer = {
    .noun = "a maze",
    .words = dc_maze_words,
    .entries = entries,
    .target = "goal_xy",
    .data = {.first = DC_DATA_NAVIGATE,
             .last = DC_DATA_EXPLORE,
             .expert_count = 2,
             .experts = {DC_EXPERT_ANT, DC_EXPERT_ANTBALL},
             .slow = true,
             .trace = true,
             .plan = plan,
             .packed = dc_maze_packed},
    .reward = dc_maze_reward,
    .task_json = task_json,
    .sim = DC_NEEDS_MUJOCO(dc_soccer_sim),
    .plane = &plane,
};
