// The tables behind env/spec.h. Cell (i, j) is a square of 4 x 4 whose centre is x = 4j - 4, y = 4i
// - 4, so that cell (1, 1) lies at the origin; maps are written top row first, as OGBench does.
// Tables with a robot arm have their rows in manip.c.
#include "env/spec.h"

#include "base/options.h"

#include <stdio.h>
#include <string.h>

// ---- tables ----

static const dc_maze arena = {
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

static const dc_maze medium = {
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

static const dc_maze large = {
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

static const dc_maze giant = {
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

static const dc_maze teleport = {
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

// Start, goal and, for antsoccer, where the ball starts.
static const dc_maze_task medium_tasks[DC_TASKS] = {
    {.start = {1, 1}, .goal = {6, 6}}, {.start = {6, 1}, .goal = {1, 6}},
    {.start = {5, 3}, .goal = {4, 2}}, {.start = {6, 5}, .goal = {6, 1}},
    {.start = {2, 6}, .goal = {1, 1}},
};
static const dc_maze_task large_tasks[DC_TASKS] = {
    {.start = {1, 1}, .goal = {7, 10}}, {.start = {5, 4}, .goal = {7, 1}},
    {.start = {7, 4}, .goal = {1, 10}}, {.start = {3, 8}, .goal = {5, 4}},
    {.start = {1, 1}, .goal = {5, 4}},
};
static const dc_maze_task giant_tasks[DC_TASKS] = {
    {.start = {1, 1}, .goal = {10, 14}}, {.start = {1, 14}, .goal = {10, 1}},
    {.start = {8, 14}, .goal = {1, 1}},  {.start = {8, 3}, .goal = {5, 12}},
    {.start = {5, 9}, .goal = {3, 8}},
};
static const dc_maze_task teleport_tasks[DC_TASKS] = {
    {.start = {1, 10}, .goal = {7, 1}}, {.start = {1, 1}, .goal = {7, 10}},
    {.start = {5, 6}, .goal = {7, 10}}, {.start = {7, 1}, .goal = {7, 10}},
    {.start = {5, 6}, .goal = {7, 1}},
};
static const dc_maze_task soccer_arena_tasks[DC_TASKS] = {
    {.start = {1, 6}, .ball = {2, 3}, .goal = {5, 2}},
    {.start = {2, 2}, .ball = {5, 5}, .goal = {2, 2}},
    {.start = {6, 1}, .ball = {2, 3}, .goal = {6, 6}},
    {.start = {6, 6}, .ball = {1, 1}, .goal = {6, 1}},
    {.start = {4, 6}, .ball = {6, 2}, .goal = {1, 6}},
};
static const dc_maze_task soccer_medium_tasks[DC_TASKS] = {
    {.start = {1, 1}, .ball = {3, 4}, .goal = {6, 6}},
    {.start = {6, 1}, .ball = {6, 5}, .goal = {1, 1}},
    {.start = {5, 3}, .ball = {4, 2}, .goal = {6, 5}},
    {.start = {6, 5}, .ball = {1, 1}, .goal = {5, 3}},
    {.start = {1, 6}, .ball = {6, 1}, .goal = {1, 6}},
};

#define MAZE(robot_, obs_, act_, nq_, nv_, at, reach, settle_, task_)                              \
    .robot = robot_, .obs = obs_, .act = act_, .nq = nq_, .nv = nv_, .goal_at = at,                \
    .tolerance = reach, .settle = settle_, .task = task_, .oracle = 2, .picks = {{at, 2, 0, 1}}

static const dc_env_family point_maze = {.name = "pointmaze",
                                         .about = "a point mass finds its way",
                                         MAZE(DC_POINT, 2, 2, 2, 2, 0, 1.0, 5, 1)};
static const dc_env_family ant_maze = {.name = "antmaze",
                                       .about = "an ant walks to a place",
                                       MAZE(DC_ANT, 29, 8, 15, 14, 0, 0.5, 5, 1)};
static const dc_env_family humanoid_maze = {.name = "humanoidmaze",
                                            .about = "a humanoid walks to a place",
                                            MAZE(DC_HUMANOID, 69, 21, 28, 27, 0, 0.5, 40, 1)};
static const dc_env_family ant_soccer = {.name = "antsoccer",
                                         .about = "an ant dribbles a ball to a place",
                                         .ball = true,
                                         MAZE(DC_ANT, 42, 8, 22, 20, 15, 0.5, 10, 4)};

static const struct {
    const dc_env_family *family;
    const dc_maze *maze;
    const dc_maze_task *tasks;
    int horizon;
} mazes[] = {
    {&point_maze, &medium, medium_tasks, 1000},
    {&point_maze, &large, large_tasks, 1000},
    {&point_maze, &giant, giant_tasks, 1000},
    {&point_maze, &teleport, teleport_tasks, 1000},
    {&ant_maze, &medium, medium_tasks, 1000},
    {&ant_maze, &large, large_tasks, 1000},
    {&ant_maze, &giant, giant_tasks, 1000},
    {&ant_maze, &teleport, teleport_tasks, 1000},
    {&humanoid_maze, &medium, medium_tasks, 2000},
    {&humanoid_maze, &large, large_tasks, 2000},
    {&humanoid_maze, &giant, giant_tasks, 4000},
    {&ant_soccer, &arena, soccer_arena_tasks, 1000},
    {&ant_soccer, &medium, soccer_medium_tasks, 1000},
};
enum { MAZES = sizeof mazes / sizeof mazes[0], ROWS = MAZES + DC_MANIPS };

// ---- names ----

// FAMILY-MAZE or TABLE, then the tail.
static void write_name(dc_env_spec *spec, const char *tail) {
    snprintf(spec->name, sizeof spec->name, "%s%s%s%s", spec->family->name, spec->maze ? "-" : "",
             spec->maze ? spec->maze->name : "", tail);
}

bool dc_env_row(dc_env_spec *spec, int index) {
    if (index < 0 || index >= ROWS) return false;
    if (index < MAZES) {
        *spec = (dc_env_spec){.family = mazes[index].family,
                              .maze = mazes[index].maze,
                              .tasks = mazes[index].tasks,
                              .horizon = mazes[index].horizon};
    } else {
        const dc_manip_row *row = &dc_manip_rows[index - MAZES];
        *spec = (dc_env_spec){.family = &row->family, .manip = row->tasks, .horizon = row->horizon};
    }
    spec->goal = spec->family->obs;
    write_name(spec, "-v0");
    return true;
}

bool dc_env_has_tasks(const char *name) {
    static const char *const words[] = {"maze", "soccer", "cube", "scene", "puzzle"};
    for (size_t w = 0; w < sizeof words / sizeof words[0]; w++)
        if (strstr(name, words[w])) return true;
    return false;
}

// Whether *rest starts with "-word" as a whole part; steps over it if so.
static bool take(const char **rest, const char *word) {
    size_t n = strlen(word);
    const char *p = *rest;
    if (p[0] != '-' || strncmp(p + 1, word, n) != 0 || (p[n + 1] && p[n + 1] != '-')) return false;
    *rest = p + n + 1;
    return true;
}

static void take_single(dc_env_spec *spec, const char **rest) {
    spec->task = spec->family->task;
    char word[] = "task1";
    for (int k = 1; k <= DC_TASKS; k++, word[4]++)
        if (take(rest, word)) {
            spec->task = k;
            return;
        }
}

const char *dc_data_word(dc_data_kind kind) {
    static const char *const words[] = {
        [DC_DATA_ANY] = "any",         [DC_DATA_NAVIGATE] = "navigate", [DC_DATA_STITCH] = "stitch",
        [DC_DATA_EXPLORE] = "explore", [DC_DATA_PLAY] = "play",         [DC_DATA_NOISY] = "noisy"};
    return words[kind];
}

// What stands behind FAMILY-MAZE or TABLE; false if something is left that means nothing.
static bool read_tail(dc_env_spec *spec, const char *rest) {
    int first = spec->maze ? DC_DATA_NAVIGATE : DC_DATA_PLAY;
    int last = spec->maze ? DC_DATA_EXPLORE : DC_DATA_NOISY;
    for (int w = first; w <= last; w++)
        if (spec->data == DC_DATA_ANY && take(&rest, dc_data_word((dc_data_kind)w)))
            spec->data = (dc_data_kind)w;
    spec->large = !spec->maze && spec->data != DC_DATA_ANY && take(&rest, "100m");
    if (take(&rest, "oraclerep"))
        spec->oracle = true;
    else if (take(&rest, "singletask"))
        take_single(spec, &rest);
    take(&rest, "v0");
    return *rest == 0;
}

// The name written out, and the goal's size that follows from it.
static void complete(dc_env_spec *spec) {
    char tail[32] = "-v0";
    if (spec->oracle) snprintf(tail, sizeof tail, "-oraclerep-v0");
    if (spec->task) snprintf(tail, sizeof tail, "-singletask-task%d-v0", spec->task);
    write_name(spec, tail);
    if (spec->oracle) spec->goal = spec->family->oracle;
}

void dc_env_plain(dc_env_spec *spec) {
    spec->data = DC_DATA_ANY;
    spec->large = false;
    spec->oracle = false;
    spec->task = 0;
    spec->goal = spec->family->obs;
    complete(spec);
}

void dc_env_data_name(const dc_env_spec *spec, dc_data_kind kind, bool hundred,
                      char name[DC_ENV_NAME_MAX]) {
    dc_env_spec set = *spec;
    char tail[32];
    snprintf(tail, sizeof tail, "-%s%s-v0", dc_data_word(kind), hundred ? "-100m" : "");
    write_name(&set, tail);
    memcpy(name, set.name, DC_ENV_NAME_MAX);
}

static dc_status unknown(const char *name) {
    dc_env_spec base[ROWS];
    const char *list[ROWS];
    for (int r = 0; dc_env_row(&base[r], r); r++) {
        write_name(&base[r], "");
        list[r] = base[r].name;
    }
    const char *near = dc_nearest(name, list, ROWS);
    if (near)
        return dc_fail(DC_USAGE, NULL, "unknown environment '%s': did you mean '%s'?", name, near);
    return dc_fail(DC_USAGE, "dcrl list envs shows them, and how a name is put together",
                   "unknown environment '%s'", name);
}

dc_status dc_env_find(dc_env_spec *spec, const char *name) {
    for (int r = 0; dc_env_row(spec, r); r++) {
        size_t n = strlen(spec->name) - strlen("-v0");
        if (strncmp(name, spec->name, n) != 0 || !read_tail(spec, name + n)) continue;
        complete(spec);
        return DC_OK;
    }
    return unknown(name);
}

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
