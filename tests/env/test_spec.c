// Facts of the environments: every name form, the maps' outlines, tasks on free cells that a way
// connects (by teleports where there is no other), and the round trip between cells and places.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "env/arm/arm.h"
#include "env/gen.h"
#include "env/maze/maze.h"

static void test_rows_find_themselves(void **state) {
    (void)state;
    dc_env_spec row, found;
    int count = 0;
    for (; dc_env_row(&row, count); count++) {
        assert_int_equal(dc_env_find(&found, row.name), DC_OK);
        assert_string_equal(found.name, row.name);
        assert_true(found.maze == row.maze && found.goal == row.family->obs && found.task == 0);
        assert_true(found.obs == found.goal && !found.visual);
        assert_true(found.tasks && found.tasks == row.tasks && found.horizon == row.horizon);
        assert_true(!found.maze == (found.family->ops == &dc_arm));
    }
    assert_int_equal(count, 23);
    assert_false(dc_env_row(&row, -1));
}

static void test_forms(void **state) {
    (void)state;
    dc_env_spec s;
    assert_int_equal(dc_env_find(&s, "antmaze-giant-navigate-oraclerep-v0"), DC_OK);
    assert_true(s.oracle && s.goal == 2 && s.data == DC_DATA_NAVIGATE && s.task == 0);
    assert_string_equal(s.name, "antmaze-giant-oraclerep-v0");
    assert_int_equal(dc_env_find(&s, "antsoccer-arena-stitch-singletask-v0"), DC_OK);
    assert_true(s.task == 4 && s.data == DC_DATA_STITCH && s.family->goal_at == 15);
    assert_int_equal(dc_env_find(&s, "pointmaze-large-singletask-task3"), DC_OK);
    assert_true(s.task == 3 && s.goal == 2 && !s.oracle);
    assert_string_equal(s.name, "pointmaze-large-singletask-task3-v0");
    const char *bad[] = {"",
                         "pointmaze",
                         "pointmaze-",
                         "pointmaze-arena",
                         "pointmaze-medium-",
                         "pointmaze-medium-v1",
                         "pointmaze-mediumv0",
                         "pointmaze-medium-v0-v0",
                         "pointmaze-medium-navigate-stitch-v0",
                         "pointmaze-medium-oraclerep-navigate",
                         "pointmaze-medium-singletask-task6",
                         "pointmaze-medium-singletask-task0",
                         "humanoidmaze-teleport-v0",
                         "antsoccer-large",
                         "cube-single-navigate-v0",
                         "antmaze-medium-play-v0",
                         "antmaze-medium-navigate-100m-v0",
                         "cube-single-100m-v0",
                         "cube",
                         "scene-",
                         "visual-cube-octuple-v0",
                         "visual-pointmaze-medium-v0",
                         "visual-antsoccer-arena-v0",
                         "visual-visual-scene-v0",
                         "visual-",
                         "visualscene-v0",
                         "scene-visual-v0"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(dc_env_find(&s, bad[i]), DC_USAGE);
    assert_int_equal(dc_env_find(&s, "pointmase-medium"), DC_USAGE);
    assert_non_null(strstr(dc_error(), "did you mean 'pointmaze-medium'?"));
}

// The visual form of an environment differs from it by name and sizes alone.
static void test_visual(void **state) {
    (void)state;
    dc_env_spec s, plain;
    char name[DC_ENV_NAME_MAX + 16];
    int count = 0;
    for (int r = 0; dc_env_row(&plain, r); r++) {
        s = plain;
        if (!dc_env_make_visual(&s)) continue;
        snprintf(name, sizeof name, "visual-%s", plain.name);
        assert_string_equal(s.name, name);
        assert_int_equal(dc_env_find(&s, name), DC_OK);
        assert_string_equal(s.name, name);
        assert_true(s.visual && s.obs == 64 * 64 * 3 && s.goal == s.obs);
        assert_true(s.family == plain.family && s.maze == plain.maze && s.tasks == plain.tasks);
        count++;
    }
    assert_int_equal(count, 4 + 3 + 4 + 1 + 4);
    assert_int_equal(dc_env_find(&s, "visual-antmaze-giant-navigate-oraclerep"), DC_OK);
    assert_true(s.obs == DC_VISUAL_OBS && s.goal == 2 && s.data == DC_DATA_NAVIGATE);
    assert_string_equal(s.name, "visual-antmaze-giant-oraclerep-v0");
    dc_env_data_name(&s, s.data, false, name);
    assert_string_equal(name, "visual-antmaze-giant-navigate-v0");
    dc_env_plain(&s);
    assert_string_equal(s.name, "visual-antmaze-giant-v0");
    assert_int_equal(s.goal, DC_VISUAL_OBS);
    assert_int_equal(dc_env_find(&s, "visual-puzle-3x3"), DC_USAGE);
    assert_non_null(strstr(dc_error(), "did you mean 'visual-puzzle-3x3'?"));
}

// Of the arm's environments: what a goal is made of lies inside an observation and has the right
// size, and tasks say something about every button.
static void test_arms(void **state) {
    (void)state;
    dc_env_spec s;
    assert_int_equal(dc_env_find(&s, "cube-octuple-play-oraclerep-v0"), DC_OK);
    assert_true(s.goal == 24 && s.family->obs == 91 && s.data == DC_DATA_PLAY && s.horizon == 1500);
    assert_string_equal(s.name, "cube-octuple-oraclerep-v0");
    assert_int_equal(dc_env_find(&s, "puzzle-4x6-noisy-singletask"), DC_OK);
    assert_true(s.task == 2 && s.data == DC_DATA_NOISY && s.family->obs == 115);
    assert_int_equal(dc_env_find(&s, "humanoidmaze-giant-navigate-100m-v0"), DC_OK);
    assert_true(s.large && dc_gen_hundred(&s) == 25000);
    assert_int_not_equal(dc_env_find(&s, "humanoidmaze-giant-stitch-100m-v0"), DC_OK);
    assert_int_not_equal(dc_env_find(&s, "humanoidmaze-large-navigate-100m-v0"), DC_OK);
    assert_int_equal(dc_env_find(&s, "puzzle-4x6-play-100m-oraclerep-v0"), DC_OK);
    assert_true(s.large && s.oracle);
    assert_string_equal(s.name, "puzzle-4x6-oraclerep-v0");
    dc_env_plain(&s);
    assert_string_equal(s.name, "puzzle-4x6-v0");
    assert_true(!s.large && !s.oracle && s.goal == 115);
    assert_int_equal(dc_env_find(&s, "scene-oraclerep"), DC_OK);
    assert_false(s.large);
    assert_true(s.goal == 7 && s.family->obs == 40 && s.family->nq == 25 && s.family->nv == 24);
    int arms = 0;
    for (int r = 0; dc_env_row(&s, r); r++) {
        int count = 0;
        for (int p = 0; p < DC_PICKS_MAX; p++) {
            const dc_pick *k = &s.family->picks[p];
            count += k->count * k->times;
            assert_true(k->first + k->step * (k->times - 1) + k->count <= s.family->obs);
        }
        assert_int_equal(count, s.family->oracle);
        assert_true(s.family->oracle <= DC_TARGET_MAX);
        for (int t = 0; t < DC_TASKS && s.family->ops == &dc_arm; t++, arms++) {
            int buttons = dc_arm_table_of(s.family)->buttons;
            assert_int_equal(buttons, s.family->extra);
            if (!buttons) continue;
            assert_int_equal(strspn(dc_arm_task_of(&s, t)->start.buttons, "01"), buttons);
            assert_int_equal(strlen(dc_arm_task_of(&s, t)->goal.buttons), buttons);
        }
    }
    assert_int_equal(arms, 10 * DC_TASKS);
}

static void test_maps(void **state) {
    (void)state;
    dc_env_spec s;
    for (int r = 0; dc_env_row(&s, r) && s.maze; r++) {
        const dc_maze *m = s.maze;
        assert_int_equal(strlen(m->cells), m->rows * m->cols);
        assert_true(m->rows * m->cols <= DC_MAZE_CELLS);
        for (int c = 0; c < m->rows * m->cols; c++) {
            dc_cell cell = {c / m->cols, c % m->cols};
            bool rim = !cell.i || !cell.j || cell.i == m->rows - 1 || cell.j == m->cols - 1;
            assert_true(!rim || dc_maze_wall(m, cell));
            double xy[2];
            dc_maze_xy(cell, xy);
            for (int side = -1; side <= 1; side++) {
                dc_cell back = dc_maze_cell((double[]){xy[0] + 1.9 * side, xy[1] - 1.9 * side});
                assert_true(back.i == cell.i && back.j == cell.j);
            }
        }
    }
}

static void test_tasks(void **state) {
    (void)state;
    dc_env_spec s;
    int steps[DC_MAZE_CELLS];
    for (int r = 0; dc_env_row(&s, r) && s.maze; r++)
        for (int t = 0; t < DC_TASKS; t++) {
            const dc_maze_task *k = dc_maze_task_of(&s, t);
            assert_false(dc_maze_wall(s.maze, k->start) || dc_maze_wall(s.maze, k->goal));
            assert_false(s.family->ops == &dc_soccer && dc_maze_wall(s.maze, k->ball));
            dc_maze_steps(s.maze, k->goal, steps, NULL);
            assert_true(s.maze->in_count || steps[k->start.i * s.maze->cols + k->start.j] >= 0);
        }
    assert_int_equal(dc_env_find(&s, "pointmaze-medium"), DC_OK);
    dc_maze_steps(s.maze, (dc_cell){6, 6}, steps, NULL);
    assert_int_equal(steps[1 * 8 + 1], 10); // counted by hand on the map
    assert_int_equal(steps[0], -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_find_themselves),
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_visual),
        cmocka_unit_test(test_arms),
        cmocka_unit_test(test_maps),
        cmocka_unit_test(test_tasks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
