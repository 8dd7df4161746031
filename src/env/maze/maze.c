// Mazes, see maze.h; facts of the robots in them, see robots.h.
#include "env/maze/robots.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- maps and tasks ----

const dc_maze dc_maze_plane = {
    .name = "plane", .rows = 6, .cols = 6, .cells = "000000000000000000000000000000000000"};

const dc_maze dc_maze_arena = {
    .name = "arena",
    .rows = 8,
    .cols = 8,
    .cells = "11111111"
             "10000001"
             "10000001"
             "10000001"
             "10000001"
             "10000001"
             "10000001"
             "11111111",
};

const dc_maze dc_maze_medium = {
    .name = "medium",
    .rows = 8,
    .cols = 8,
    .cells = "11111111"
             "10011001"
             "10010001"
             "11000111"
             "10010001"
             "10100101"
             "10001001"
             "11111111",
};

const dc_maze dc_maze_large = {
    .name = "large",
    .rows = 9,
    .cols = 12,
    .cells = "111111111111"
             "100001000001"
             "101101010101"
             "100000010001"
             "101111011101"
             "100101000001"
             "110101010111"
             "100100010001"
             "111111111111",
};

const dc_maze dc_maze_giant = {
    .name = "giant",
    .rows = 12,
    .cols = 16,
    .cells = "1111111111111111"
             "1010000001100001"
             "1010110101001101"
             "1000100100010001"
             "1011101111110101"
             "1000100010000101"
             "1110101001010111"
             "1000100100010001"
             "1010101111110101"
             "1011100010001101"
             "1000001000100001"
             "1111111111111111",
};

const dc_maze dc_maze_teleport = {
    .name = "teleport",
    .rows = 9,
    .cols = 12,
    .cells = "111111111111"
             "100000101001"
             "110100010011"
             "110111000001"
             "100001010101"
             "101101010101"
             "101101010101"
             "100001000101"
             "111111111111",
    .in_count = 2,
    .out_count = 3,
    .in = {{4, 6}, {5, 1}},
    .out = {{1, 7}, {6, 1}, {6, 10}},
};

const dc_maze_task dc_maze_medium_tasks[DC_TASKS] = {
    {.start = {1, 1}, .goal = {6, 6}}, {.start = {6, 1}, .goal = {1, 6}},
    {.start = {5, 3}, .goal = {4, 2}}, {.start = {6, 5}, .goal = {6, 1}},
    {.start = {2, 6}, .goal = {1, 1}},
};
const dc_maze_task dc_maze_large_tasks[DC_TASKS] = {
    {.start = {1, 1}, .goal = {7, 10}}, {.start = {5, 4}, .goal = {7, 1}},
    {.start = {7, 4}, .goal = {1, 10}}, {.start = {3, 8}, .goal = {5, 4}},
    {.start = {1, 1}, .goal = {5, 4}},
};
const dc_maze_task dc_maze_giant_tasks[DC_TASKS] = {
    {.start = {1, 1}, .goal = {10, 14}}, {.start = {1, 14}, .goal = {10, 1}},
    {.start = {8, 14}, .goal = {1, 1}},  {.start = {8, 3}, .goal = {5, 12}},
    {.start = {5, 9}, .goal = {3, 8}},
};
const dc_maze_task dc_maze_teleport_tasks[DC_TASKS] = {
    {.start = {1, 10}, .goal = {7, 1}}, {.start = {1, 1}, .goal = {7, 10}},
    {.start = {5, 6}, .goal = {7, 10}}, {.start = {7, 1}, .goal = {7, 10}},
    {.start = {5, 6}, .goal = {7, 1}},
};
// ---- geometry ----

bool dc_maze_wall(const dc_maze *maze, dc_cell cell) {
    if (cell.i < 0 || cell.j < 0 || cell.i >= maze->rows || cell.j >= maze->cols) return true;
    return maze->cells[cell.i * maze->cols + cell.j] == '1';
}

void dc_maze_xy(dc_cell cell, double xy[2]) {
    xy[0] = 4.0 * cell.j - 4.0;
    xy[1] = 4.0 * cell.i - 4.0;
}

dc_cell dc_maze_cell(const double xy[2]) {
    return (dc_cell){(int)((xy[1] + 6.0) / 4.0), (int)((xy[0] + 6.0) / 4.0)};
}

int dc_maze_steps(const dc_maze *maze, dc_cell goal, int *steps, dc_cell *order) {
    static const dc_cell around[4] = {{-1, 0}, {0, -1}, {1, 0}, {0, 1}};
    dc_cell own[DC_MAZE_CELLS], *queue = order ? order : own;
    int head = 0, tail = 0;
    for (int c = 0; c < maze->rows * maze->cols; c++)
        steps[c] = -1;
    if (goal.i < 0 || goal.j < 0 || goal.i >= maze->rows || goal.j >= maze->cols) return 0;
    steps[goal.i * maze->cols + goal.j] = 0;
    queue[tail++] = goal;
    while (head < tail) {
        dc_cell at = queue[head++];
        for (int k = 0; k < 4; k++) {
            dc_cell next = {at.i + around[k].i, at.j + around[k].j};
            if (dc_maze_wall(maze, next) || steps[next.i * maze->cols + next.j] >= 0) continue;
            steps[next.i * maze->cols + next.j] = steps[at.i * maze->cols + at.j] + 1;
            queue[tail++] = next;
        }
    }
    return tail;
}

// ---- facts ----

const char *const dc_maze_words[] = {"maze", "soccer", NULL};

const dc_maze_task *dc_maze_task_of(const dc_env_spec *spec, int task) {
    return (const dc_maze_task *)spec->tasks + task;
}

double dc_maze_reward(const dc_env_spec *spec, const float *qpos, const float *extra) {
    const dc_env_family *f = spec->family;
    double goal[2];
    (void)extra;
    dc_maze_xy(dc_maze_task_of(spec, spec->task - 1)->goal, goal);
    double x = (double)qpos[f->goal_at] - goal[0], y = (double)qpos[f->goal_at + 1] - goal[1];
    return sqrt(x * x + y * y) <= f->tolerance ? 0 : -1;
}

void dc_maze_task_json(const dc_env_spec *spec, int task, dc_text *out) {
    const dc_maze_task *t = dc_maze_task_of(spec, task);
    dc_text_add(out, "{\"start\": [%d, %d], \"goal\": [%d, %d]}", t->start.i, t->start.j, t->goal.i,
                t->goal.j);
}

// Numbers of a body in motion: of a published set of a humanoid's 537 bytes of 581.
double dc_maze_packed(const dc_env_family *family) {
    int numbers = family->obs + family->act + family->nq + family->nv;
    return (double)((size_t)numbers * sizeof(float) + 1) * 0.95;
}

// The row of a kind; `maze` NULL: of any.
static const dc_maze_data *find_set(const dc_maze_data *sets, dc_data_kind kind,
                                    const dc_maze *maze) {
    for (const dc_maze_data *s = sets; s->kind != DC_DATA_ANY; s++)
        if (s->kind == kind && (!s->maze || s->maze == maze)) return s;
    return NULL;
}

static dc_status no_set(const dc_gen *gen, const dc_env_spec *spec, const dc_maze_data *sets) {
    char hint[64] = "--type";
    size_t n = strlen(hint);
    for (int kind = DC_DATA_NAVIGATE; kind <= (int)DC_DATA_EXPLORE; kind++)
        if (find_set(sets, (dc_data_kind)kind, spec->maze))
            n += (size_t)snprintf(hint + n, sizeof hint - n, "%s%s", hint[6] ? "|" : " ",
                                  dc_data_word((dc_data_kind)kind));
    return dc_fail(DC_USAGE, hint, "there is no %s data of %s", dc_data_word(gen->kind),
                   spec->name);
}

dc_status dc_maze_plan(dc_gen *gen, const dc_env_spec *spec, const dc_maze_data *sets,
                       int64_t *episodes) {
    if (gen->kind == DC_DATA_ANY) gen->kind = DC_DATA_NAVIGATE;
    const dc_maze_data *set = find_set(sets, gen->kind, spec->maze);
    if (!set) return no_set(gen, spec, sets);
    gen->noise = set->noise;
    gen->rows = set->rows;
    *episodes = set->episodes;
    return DC_OK;
}
