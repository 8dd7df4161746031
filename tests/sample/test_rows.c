// Tables of rules: every rule that methods put together (steps toward a goal, mixtures, counts, several
// rules on one start, rules on a tree beside others) gives exactly the rows that its definition names,
// with the distribution that follows from it; and a table drawn in two parts is the table drawn at once.
#include "row_spec.h"
#include "sets.h"

#include "sample/row_draw.h"

#include <stdio.h>
#include <string.h>

enum { BATCH = 1000, OWN_STREAM = 99 };

static dc_row_table table_of(uint64_t seed) {
    return (dc_row_table){.seed = seed, .batch = BATCH};
}

static dc_sampler *make(const dc_dataset *data, const dc_row_table *rows) {
    dc_sampler *sampler;
    if (dc_sampler_new(&sampler, data, rows) != DC_OK) fail_msg("%s", dc_error());
    return sampler;
}

static void next(dc_sampler *sampler, uint64_t step) {
    assert_int_equal(dc_sampler_next(sampler, step), DC_OK);
}

static void start(dc_row_table *rows, const char *name, uint32_t draws) {
    dc_rows_add(rows, (dc_row_rule){name, DC_ROW_START, .draws = draws});
}

static void after(dc_row_table *rows, const char *name, const char *of, int64_t steps) {
    dc_rows_add(rows, (dc_row_rule){name, DC_ROW_AFTER, .of = of, .steps = steps});
}

static void toward(dc_row_table *rows, const char *name, const char *of, const char *to,
                   int64_t steps) {
    dc_rows_add(rows, (dc_row_rule){name, DC_ROW_TOWARD, .of = of, .to = to, .steps = steps});
}

static void count(dc_row_table *rows, const char *name, const char *of, const char *to) {
    dc_rows_add(rows, (dc_row_rule){name, DC_ROW_STEPS, .of = of, .to = to});
}

static void goal(dc_row_table *rows, const char *name, const char *of, uint32_t draws,
                 dc_goal_mix mix, double gamma) {
    dc_rows_add(rows, (dc_row_rule){name, DC_ROW_GOAL, .of = of, .draws = draws, .mix = mix,
                                    .gamma = gamma});
}

// ---- what rules mean, said once more by looking through the whole table of trajectories ----

static int64_t trajectory(const dc_dataset *data, int64_t row) {
    assert_true(row >= 0 && row < data->rows);
    int64_t t = 0;
    while (data->traj_start[t + 1] <= row)
        t++;
    return t;
}

static int64_t end_of(const dc_dataset *data, int64_t row) {
    return data->traj_start[trajectory(data, row) + 1] - 1;
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t steps_between(const dc_dataset *data, int64_t from, int64_t to) {
    return to >= from && to <= end_of(data, from) ? to - from : -1;
}

// ---- walking ----

// AFTER: steps taken are uniform below k, and k wherever so many are left.
static void walks_stop_at_the_end(void **state) {
    (void)state;
    enum { STATES = 30, K = 7 };
    dc_dataset data = equal_data(STATES, 4), mixed = mixed_data();
    dc_row_table rows = table_of(2);
    start(&rows, "state", DC_STREAM_STATE);
    after(&rows, "next", "state", 1);
    after(&rows, "later", "state", K);
    after(&rows, "latest", "later", K);
    count(&rows, "steps", "state", "later");
    dc_sampler *sampler = make(&data, &rows), *uneven = make(&mixed, &rows);
    double seen[K] = {0}, expected[K];
    for (uint64_t step = 0; step < 100; step++) {
        next(sampler, step);
        next(uneven, step);
        for (int r = 0; r < BATCH; r++) {
            seen[values_of(sampler, "steps")[r] - 1]++;
            int64_t at = values_of(uneven, "state")[r], end = end_of(&mixed, at);
            assert_int_equal(values_of(uneven, "next")[r], at + 1);
            assert_int_equal(values_of(uneven, "later")[r], least(at + K, end));
            assert_int_equal(values_of(uneven, "latest")[r], least(at + 2 * K, end));
            assert_int_equal(values_of(uneven, "steps")[r], least(K, end - at));
        }
    }
    for (int x = 1; x <= K; x++) // STATES - 1 starts
        expected[x - 1] = 100.0 * BATCH * (x < K ? 1 : STATES - K) / (STATES - 1);
    check_counts(seen, expected, K);
    dc_sampler_free(sampler);
    dc_sampler_free(uneven);
    drop(&data);
    drop(&mixed);
}

// TOWARD: min(i + k, g) for a goal ahead, min(i + k, end) for one that lies elsewhere.
static void waypoints_do_not_pass_the_goal(void **state) {
    (void)state;
    enum { K = 4 };
    dc_dataset data = mixed_data();
    dc_row_table rows = table_of(3);
    start(&rows, "state", DC_STREAM_STATE);
    goal(&rows, "goal", "state", DC_STREAM_GOAL, (dc_goal_mix){0.1, 0.4, 0.5, DC_LAW_UNIFORM, 0},
         0.9);
    toward(&rows, "waypoint", "state", "goal", K);
    dc_sampler *sampler = make(&data, &rows);
    int at_goal = 0, short_of_it = 0, behind = 0, elsewhere = 0, at_end = 0, here = 0;
    for (uint64_t step = 0; step < 50; step++) {
        next(sampler, step);
        for (int r = 0; r < BATCH; r++) {
            int64_t i = values_of(sampler, "state")[r], g = values_of(sampler, "goal")[r];
            int64_t end = end_of(&data, i), w = values_of(sampler, "waypoint")[r];
            bool ahead = g >= i && g <= end;
            assert_int_equal(w, least(i + K, ahead ? g : end));
            at_goal += ahead && w == g && g > i;
            here += g == i;
            short_of_it += ahead && w < g;
            behind += g < i && trajectory(&data, g) == trajectory(&data, i);
            elsewhere += trajectory(&data, g) != trajectory(&data, i);
            at_end += !ahead && w == end && end - i < K;
        }
    }
    assert_true(at_goal > 1000 && short_of_it > 1000 && behind > 1000);
    assert_true(elsewhere > 1000 && at_end > 100 && here > 1000);
    dc_sampler_free(sampler);
    drop(&data);
}

// Stretches of up to K steps, with their length, as sharsa takes them: golden cases of a trajectory that ends at row
// 999, and the share of stretches that end short of K because the trajectory does, though the goal lies elsewhere.
static void stretches_have_their_length(void **state) {
    (void)state;
    enum { K = 25, STATES = 101, STEPS = 100 };
    static const struct {
        int64_t i, g, n;
    } golden[] = {{970, 980, 10}, {970, 5000, 25}, {990, 5000, 9},
                  {100, 125, 25}, {100, 100, 0},   {100, 90, 25}};
    for (size_t c = 0; c < sizeof golden / sizeof *golden; c++)
        assert_int_equal(dc_step_toward((dc_row_at){golden[c].i, 999}, K, golden[c].g),
                         golden[c].i + golden[c].n);
    dc_dataset data = equal_data(STATES, 400);
    dc_row_table rows = table_of(13);
    start(&rows, "state", DC_STREAM_STATE);
    goal(&rows, "goal", "state", DC_STREAM_GOAL, (dc_goal_mix){0, 0, 1, DC_LAW_UNIFORM, 0}, 0.9);
    toward(&rows, "subgoal", "state", "goal", K);
    count(&rows, "steps", "state", "subgoal");
    count(&rows, "goal_steps", "state", "goal");
    dc_sampler *sampler = make(&data, &rows);
    double seen[K + 1] = {0}, expected[K + 1];
    for (uint64_t step = 0; step < STEPS; step++) {
        next(sampler, step);
        for (int r = 0; r < BATCH; r++) {
            int64_t n = values_of(sampler, "steps")[r], ahead = values_of(sampler, "goal_steps")[r];
            assert_true(ahead < 0 || ahead >= K || n == ahead);
            if (ahead < 0) seen[n]++;
        }
    }
    double total = 0;
    for (int n = 0; n <= K; n++)
        total += seen[n];
    expected[0] = 0; // a state with an action has a step ahead
    for (int n = 1; n <= K; n++)
        expected[n] = total * (n < K ? 1 : STATES - K) / (STATES - 1);
    assert_true(seen[0] == 0 && total > 0.99 * STEPS * BATCH);
    check_counts(seen + 1, expected + 1, K);
    dc_sampler_free(sampler);
    drop(&data);
}

// Steps to a waypoint of geometric goals: their own law below k, all the rest at k.
static void waypoints_follow_the_goals(void **state) {
    (void)state;
    enum { STATES = 500, K = 6 };
    const double gamma = 0.8;
    dc_dataset data = equal_data(STATES, 3);
    dc_row_table rows = table_of(4);
    start(&rows, "state", DC_STREAM_STATE);
    goal(&rows, "goal", "state", DC_STREAM_GOAL, (dc_goal_mix){0, 1, 0, DC_LAW_GEOMETRIC, 0},
         gamma);
    toward(&rows, "waypoint", "state", "goal", K);
    dc_sampler *sampler = make(&data, &rows);
    double seen[K] = {0}, expected[K], total = 0;
    for (uint64_t step = 0; step < 100; step++) {
        next(sampler, step);
        for (int r = 0; r < BATCH; r++) {
            int64_t i = values_of(sampler, "state")[r];
            if (STATES - 1 - i % STATES < K) continue; // the trajectory ends first
            seen[values_of(sampler, "waypoint")[r] - i - 1]++;
            total++;
        }
    }
    for (int x = 1; x <= K; x++)
        expected[x - 1] = total * (x < K ? (1 - gamma) * pow(gamma, x - 1) : pow(gamma, K - 1));
    check_counts(seen, expected, K);
    dc_sampler_free(sampler);
    drop(&data);
}

// ---- goals ----

// The goals of a value (20 % the state itself, 50 % later, 30 % anywhere) beside those of its policy, on
// the same states: each by its own law, and neither knows the other.
static void goals_of_one_state(void **state) {
    (void)state;
    enum { STATES = 200, STEPS = 200, KINDS = 3 };
    const double share[KINDS] = {0.2, 0.5, 0.3};
    dc_dataset data = equal_data(STATES, 50);
    dc_row_table rows = table_of(5);
    start(&rows, "state", DC_STREAM_STATE);
    goal(&rows, "goal", "state", DC_STREAM_GOAL,
         (dc_goal_mix){share[0], share[1], share[2], DC_LAW_GEOMETRIC, 0}, 0.5);
    goal(&rows, "actor_goal", "state", DC_STREAM_ACTOR_GOAL,
         (dc_goal_mix){0, 1, 0, DC_LAW_UNIFORM, 0}, 0.5);
    count(&rows, "steps", "state", "actor_goal");
    dc_sampler *sampler = make(&data, &rows);
    // Kind of the value's goal and half of the trajectory that the policy's lies in.
    double seen[2 * KINDS] = {0}, expected[2 * KINDS] = {0};
    for (uint64_t step = 0; step < STEPS; step++) {
        next(sampler, step);
        for (int r = 0; r < BATCH; r++) {
            int64_t i = values_of(sampler, "state")[r], g = values_of(sampler, "goal")[r];
            int64_t left = STATES - 1 - i % STATES, steps = values_of(sampler, "steps")[r];
            assert_true(steps >= 1 && steps <= left);
            if (left < 100) continue; // geometric goals lie within 50 steps, but for 2^-50
            int kind = g == i ? 0 : g > i && g <= i + 50 ? 1 : 2;
            double near = 50.0 / (double)data.rows, any = 1.0 / (double)data.rows;
            double p[KINDS] = {share[0] + share[2] * any, share[1] + share[2] * near,
                               share[2] * (1 - any - near)};
            double half = (double)(left / 2) / (double)left;
            seen[2 * kind + (steps > left / 2)]++;
            for (int k = 0; k < KINDS; k++) {
                expected[2 * k] += p[k] * half;
                expected[2 * k + 1] += p[k] * (1 - half);
            }
        }
    }
    check_counts(seen, expected, 2 * KINDS);
    dc_sampler_free(sampler);
    drop(&data);
}

// Goals from anywhere are uniform over all rows, last ones too; goals that are the state itself are that.
static void pure_goals(void **state) {
    (void)state;
    dc_dataset data = mixed_data();
    dc_row_table rows = table_of(6);
    start(&rows, "state", DC_STREAM_STATE);
    after(&rows, "next", "state", 1);
    goal(&rows, "any", "state", DC_STREAM_GOAL, (dc_goal_mix){0, 0, 1, DC_LAW_UNIFORM, 0}, 0);
    goal(&rows, "same", "state", DC_STREAM_ACTOR_GOAL, (dc_goal_mix){1, 0, 0, DC_LAW_UNIFORM, 0},
         0);
    goal(&rows, "step", "state", OWN_STREAM, (dc_goal_mix){0, 1, 0, DC_LAW_GEOMETRIC, 0}, 0);
    dc_sampler *sampler = make(&data, &rows);
    double *seen = calloc((size_t)data.rows, sizeof *seen),
           *expected = calloc((size_t)data.rows, 8);
    assert_true(seen && expected);
    for (uint64_t step = 0; step < 100; step++) {
        next(sampler, step);
        for (int r = 0; r < BATCH; r++) {
            seen[values_of(sampler, "any")[r]]++;
            assert_int_equal(values_of(sampler, "same")[r], values_of(sampler, "state")[r]);
            assert_int_equal(values_of(sampler, "step")[r], values_of(sampler, "next")[r]);
        }
    }
    for (int64_t row = 0; row < data.rows; row++)
        expected[row] = 100.0 * BATCH / (double)data.rows;
    check_counts(seen, expected, (int)data.rows);
    free(seen);
    free(expected);
    dc_sampler_free(sampler);
    drop(&data);
}

// Goals of a goal, and two discounts in one table.
static void discounts_are_the_rules_own(void **state) {
    (void)state;
    enum { STATES = 400, CELLS = 8 };
    const double gammas[2] = {0.5, 0.8};
    static const char *const names[2] = {"near", "far"};
    dc_dataset data = equal_data(STATES, 5);
    dc_row_table rows = table_of(7);
    start(&rows, "state", DC_STREAM_STATE);
    goal(&rows, "near", "state", DC_STREAM_GOAL, (dc_goal_mix){0, 1, 0, DC_LAW_GEOMETRIC, 0},
         gammas[0]);
    goal(&rows, "far", "near", DC_STREAM_ACTOR_GOAL, (dc_goal_mix){0, 1, 0, DC_LAW_GEOMETRIC, 0},
         gammas[1]);
    dc_sampler *sampler = make(&data, &rows);
    double seen[2][CELLS] = {0}, expected[2][CELLS], total = 0;
    for (uint64_t step = 0; step < 100; step++) {
        next(sampler, step);
        for (int r = 0; r < BATCH; r++) {
            int64_t at = values_of(sampler, "state")[r];
            if (STATES - 1 - at % STATES < 200) continue; // far from the end
            total++;
            for (int k = 0; k < 2; k++) {
                int64_t g = values_of(sampler, names[k])[r], steps = g - at;
                assert_true(steps >= 1);
                seen[k][steps < CELLS ? steps - 1 : CELLS - 1]++;
                at = g;
            }
        }
    }
    for (int k = 0; k < 2; k++) {
        for (int x = 1; x <= CELLS; x++)
            expected[k][x - 1] = total * (x < CELLS ? (1 - gammas[k]) * pow(gammas[k], x - 1)
                                                    : pow(gammas[k], CELLS - 1));
        check_counts(seen[k], expected[k], CELLS);
    }
    dc_sampler_free(sampler);
    drop(&data);
}

// A random goal may be the last state of its trajectory: nothing lies after it, and goals ahead of it or
// walks from it stay there.
static void last_states_have_nothing_ahead(void **state) {
    (void)state;
    dc_dataset data = mixed_data();
    dc_row_table rows = table_of(8);
    start(&rows, "state", DC_STREAM_STATE);
    goal(&rows, "any", "state", DC_STREAM_GOAL, (dc_goal_mix){0, 0, 1, DC_LAW_UNIFORM, 0}, 0.9);
    after(&rows, "beyond", "any", 3);
    goal(&rows, "ahead", "any", DC_STREAM_ACTOR_GOAL, (dc_goal_mix){0, 1, 0, DC_LAW_GEOMETRIC, 0},
         0.9);
    dc_sampler *sampler = make(&data, &rows);
    int last = 0;
    for (uint64_t step = 0; step < 20; step++) {
        next(sampler, step);
        for (int r = 0; r < BATCH; r++) {
            int64_t g = values_of(sampler, "any")[r], end = end_of(&data, g);
            int64_t ahead = values_of(sampler, "ahead")[r];
            last += g == end;
            assert_int_equal(values_of(sampler, "beyond")[r], least(g + 3, end));
            assert_true(g == end ? ahead == end : ahead > g && ahead <= end);
        }
    }
    assert_true(last > 100);
    dc_sampler_free(sampler);
    drop(&data);
}

// ---- counts ----

// STEPS between rows of any kind: 0, above it, or -1 for a row behind or elsewhere.
static void steps_have_their_sign(void **state) {
    (void)state;
    static const char *const pairs[][2] = {
        {"state", "goal"},  {"goal", "state"}, {"state", "other"}, {"state", "later"},
        {"later", "state"}, {"later", "goal"}, {"later", "later"}, {"goal", "other"},
        {"start", "end"},   {"end", "start"},  {"split", "start"}, {"split", "end"},
        {"start", "state"}};
    enum { PAIRS = sizeof pairs / sizeof *pairs };
    char names[PAIRS][24];
    dc_dataset data = mixed_data();
    dc_row_table rows = table_of(9);
    start(&rows, "state", DC_STREAM_STATE);
    start(&rows, "other", DC_STREAM_GROUND);
    after(&rows, "later", "state", 3);
    goal(&rows, "goal", "state", DC_STREAM_GOAL, (dc_goal_mix){0.3, 0.3, 0.4, DC_LAW_UNIFORM, 0},
         0);
    dc_rows_add(&rows, (dc_row_rule){"start", DC_ROW_PAIR, .draws = DC_STREAM_PAIR});
    dc_rows_add(&rows, (dc_row_rule){"split", DC_ROW_SPLIT, .of = "start", .split = DC_SPLIT_RANDOM,
                                     .draws = DC_STREAM_SUBGOAL});
    dc_rows_add(&rows, (dc_row_rule){"end", DC_ROW_END, .of = "start"});
    for (int p = 0; p < PAIRS; p++) {
        snprintf(names[p], sizeof names[p], "%s_%s", pairs[p][0], pairs[p][1]);
        count(&rows, names[p], pairs[p][0], pairs[p][1]);
    }
    dc_sampler *sampler = make(&data, &rows);
    int behind = 0, none = 0, ahead = 0;
    for (uint64_t step = 0; step < 20; step++) {
        next(sampler, step);
        for (int p = 0; p < PAIRS; p++)
            for (int r = 0; r < BATCH; r++) {
                int64_t want = steps_between(&data, values_of(sampler, pairs[p][0])[r],
                                             values_of(sampler, pairs[p][1])[r]);
                assert_int_equal(values_of(sampler, names[p])[r], want);
                behind += want < 0;
                none += want == 0;
                ahead += want > 0;
            }
    }
    assert_true(behind > 10000 && none > 10000 && ahead > 10000);
    dc_sampler_free(sampler);
    drop(&data);
}

// ---- several rows for every row of the batch ----

// Number r times + k is what a START rule of the same stream gives row r times + k of a larger batch: uniform over all
// states with an action, and fresh for every row.
static void many_states_are_starts(void **state) {
    (void)state;
    enum { TIMES = 7, SMALL = 45, STEPS = 300 };
    dc_dataset data = mixed_data();
    dc_row_table rows = {.seed = 12, .batch = SMALL}, wide = {.seed = 12, .batch = SMALL * TIMES};
    start(&rows, "state", DC_STREAM_STATE);
    dc_rows_add(&rows, DC_STARTS("via", TIMES, DC_STREAM_VIA, "states"));
    after(&rows, "next", "state", 1); // rules behind it find their own numbers
    start(&wide, "via", DC_STREAM_VIA);
    dc_sampler *sampler = make(&data, &rows), *all = make(&data, &wide);
    double *seen = calloc((size_t)data.rows, sizeof *seen),
           *expected = calloc((size_t)data.rows, 8);
    assert_true(seen && expected);
    for (uint64_t step = 0; step < STEPS; step++) {
        next(sampler, step);
        next(all, step);
        assert_memory_equal(values_of(sampler, "via"), values_of(all, "via"),
                            SMALL * TIMES * sizeof(int64_t));
        for (int r = 0; r < SMALL * TIMES; r++)
            seen[values_of(sampler, "via")[r]]++;
        for (int r = 0; r < SMALL; r++)
            assert_int_equal(values_of(sampler, "next")[r], values_of(sampler, "state")[r] + 1);
    }
    int cells = 0;
    for (int64_t row = 0; row < data.rows; row++) {
        if (row == end_of(&data, row)) {
            assert_true(seen[row] <= 0);
            continue;
        }
        seen[cells] = seen[row];
        expected[cells++] = (double)STEPS * SMALL * TIMES / (double)(data.rows - data.traj_count);
    }
    check_counts(seen, expected, cells);
    free(seen);
    free(expected);
    dc_sampler_free(sampler);
    dc_sampler_free(all);
    drop(&data);
}

// ---- between two rows ----

static void between_lies_between(void **state) {
    (void)state;
    enum { STATES = 30, GAP = 6 };
    dc_dataset data = equal_data(STATES, 20);
    dc_row_table rows = table_of(13);
    start(&rows, "state", DC_STREAM_STATE);
    goal(&rows, "goal", "state", DC_STREAM_GOAL, (dc_goal_mix){0.1, 0.5, 0.3, DC_LAW_UNIFORM, 0.1},
         0);
    dc_rows_add(&rows, DC_BETWEEN("middle", "state", "goal", DC_SPLIT_MIDPOINT, ""));
    dc_rows_add(&rows, DC_BETWEEN("any", "state", "goal", DC_SPLIT_RANDOM, ""));
    count(&rows, "steps", "state", "any"); // lies in the trajectory of the state
    dc_sampler *sampler = make(&data, &rows);
    double seen[GAP - 1] = {0}, expected[GAP - 1], total = 0;
    int none = 0;
    for (uint64_t step = 0; step < 200; step++) {
        next(sampler, step);
        for (int r = 0; r < BATCH; r++) {
            int64_t i = values_of(sampler, "state")[r], g = values_of(sampler, "goal")[r],
                    k = values_of(sampler, "any")[r], far = steps_between(&data, i, g);
            assert_int_equal(values_of(sampler, "middle")[r], far > 1 ? i + far / 2 : i);
            assert_int_equal(values_of(sampler, "steps")[r], k - i);
            assert_true(far > 1 ? k > i && k < g : k == i);
            none += far < 0;
            if (far != GAP) continue;
            seen[k - i - 1]++;
            total++;
        }
    }
    for (int x = 0; x < GAP - 1; x++)
        expected[x] = total / (GAP - 1);
    check_counts(seen, expected, GAP - 1);
    assert_true(none > 1000);
    dc_sampler_free(sampler);
    drop(&data);
}

// A share of goals is the very next state, beside those that lie ahead by their law.
static void next_states_are_goals(void **state) {
    (void)state;
    enum { STATES = 300, STEPS = 200, KINDS = 4 };
    dc_dataset data = equal_data(STATES, 30);
    dc_row_table rows = table_of(14);
    start(&rows, "state", DC_STREAM_STATE);
    goal(&rows, "goal", "state", DC_STREAM_GOAL, (dc_goal_mix){0.1, 0.4, 0, DC_LAW_UNIFORM, 0.5},
         0);
    count(&rows, "steps", "state", "goal");
    dc_sampler *sampler = make(&data, &rows);
    double seen[KINDS] = {0}, expected[KINDS] = {0}; // 0, 1, 2 steps, more
    for (uint64_t step = 0; step < STEPS; step++) {
        next(sampler, step);
        for (int r = 0; r < BATCH; r++) {
            int64_t left = STATES - 1 - values_of(sampler, "state")[r] % STATES,
                    steps = values_of(sampler, "steps")[r];
            assert_true(steps >= 0);
            seen[steps < 3 ? steps : 3]++;
            double each = 0.4 / (double)left, two = left > 1 ? each : 0;
            expected[0] += 0.1;
            expected[1] += 0.5 + each;
            expected[2] += two;
            expected[3] += 0.4 - each - two;
        }
    }
    check_counts(seen, expected, KINDS);
    dc_sampler_free(sampler);
    drop(&data);
}

// ---- trees beside other rules ----

static dc_status middle(void *ctx, int64_t n, const int64_t *i, const int64_t *j, int64_t *k) {
    (void)ctx;
    for (int64_t m = 0; m < n; m++)
        k[m] = i[m] + 1 + (j[m] - i[m] - 1) / 3;
    return DC_OK;
}

// A tree, rules on it, rules that only serve those, and rules that have nothing to do with it.
static dc_row_table mixed_table(dc_split split) {
    dc_row_table rows = {.seed = 10, .batch = 70, .choose = middle};
    start(&rows, "state", DC_STREAM_STATE);
    goal(&rows, "goal", "state", DC_STREAM_GOAL, (dc_goal_mix){0.2, 0.5, 0.3, DC_LAW_GEOMETRIC, 0},
         0.9);
    dc_rows_add(&rows, (dc_row_rule){"node", DC_ROW_TREE, .draws = DC_STREAM_SLOT, .slots = 6,
                                     .split = split, .order = DC_ORDER_DOWN, .rebuild_every = 5});
    dc_rows_add(&rows, (dc_row_rule){"split", DC_ROW_SPLIT, .of = "node"});
    dc_rows_add(&rows, (dc_row_rule){"end", DC_ROW_END, .of = "node"});
    count(&rows, "first_steps", "node", "split");
    after(&rows, "beyond", "node", 2);
    toward(&rows, "waypoint", "node", "goal", 3);
    goal(&rows, "node_goal", "node", DC_STREAM_ACTOR_GOAL,
         (dc_goal_mix){0, 0.5, 0.5, DC_LAW_UNIFORM, 0}, 0.9);
    count(&rows, "node_to_goal", "node", "goal");
    count(&rows, "goal_to_node", "goal", "node");
    start(&rows, "other", DC_STREAM_GROUND);
    after(&rows, "other_next", "other", 1);
    dc_rows_add(&rows, DC_STARTS("vias", 3, DC_STREAM_VIA, ""));
    dc_rows_add(&rows, DC_BETWEEN("between", "node", "goal", DC_SPLIT_RANDOM, ""));
    return rows;
}

static bool is_on_tree(const char *name) {
    static const char *const on[] = {"node",         "split",    "end",       "first_steps",
                                     "beyond",       "waypoint", "node_goal", "node_to_goal",
                                     "goal_to_node", "between"};
    for (size_t k = 0; k < sizeof on / sizeof *on; k++)
        if (!strcmp(on[k], name)) return true;
    return false;
}

static void rules_meet_on_a_tree(void **state) {
    (void)state;
    dc_dataset data = mixed_data();
    dc_row_table rows = mixed_table(DC_SPLIT_MIDPOINT);
    dc_sampler *sampler = make(&data, &rows);
    for (uint64_t step = 0; step < 200; step++) {
        next(sampler, step);
        for (int r = 0; r < rows.batch; r++) {
            int64_t i = values_of(sampler, "node")[r], k = values_of(sampler, "split")[r],
                    j = values_of(sampler, "end")[r], g = values_of(sampler, "goal")[r];
            int64_t end = end_of(&data, i), h = values_of(sampler, "node_goal")[r];
            assert_true(i <= k && k < j && j <= end);
            assert_int_equal(values_of(sampler, "first_steps")[r], k - i);
            assert_int_equal(values_of(sampler, "beyond")[r], least(i + 2, end));
            assert_int_equal(values_of(sampler, "waypoint")[r],
                             least(i + 3, g >= i && g <= end ? g : end));
            assert_int_equal(values_of(sampler, "node_to_goal")[r], steps_between(&data, i, g));
            assert_int_equal(values_of(sampler, "goal_to_node")[r], steps_between(&data, g, i));
            assert_true(h >= 0 && h < data.rows);
        }
    }
    dc_sampler_free(sampler);
    drop(&data);
}

// The parts of a table, each in a sampler of its own, are the rules of the whole.
static void check_parts(const dc_dataset *data, const dc_row_table *rows) {
    dc_sampler *all = make(data, rows), *part[2];
    static const dc_row_part parts[2] = {DC_ROWS_ON_TREE, DC_ROWS_OFF_TREE};
    for (int p = 0; p < 2; p++)
        assert_int_equal(dc_sampler_new_part(&part[p], data, rows, parts[p]), DC_OK);
    for (uint64_t step = 0; step < 60; step++) {
        next(all, step);
        for (int p = 0; p < 2; p++)
            next(part[p], step);
        for (int rule = 0; rule < rows->count; rule++) {
            int owner = is_on_tree(rows->rule[rule].name) ? 0 : 1;
            const int64_t *is = dc_sampler_drawn(part[owner], rule);
            assert_non_null(is);
            assert_null(dc_sampler_drawn(part[1 - owner], rule));
            size_t numbers = (size_t)(rows->batch * dc_row_times(&rows->rule[rule]));
            assert_memory_equal(is, dc_sampler_drawn(all, rule), numbers * sizeof *is);
        }
    }
    assert_null(dc_sampler_slot(part[1]));
    for (int p = 0; p < 2; p++)
        dc_sampler_free(part[p]);
    dc_sampler_free(all);
}

static void parts_are_the_whole(void **state) {
    (void)state;
    dc_dataset data = mixed_data(), equal = equal_data(20, 5);
    for (dc_split split = DC_SPLIT_MIDPOINT; split <= DC_SPLIT_MAX; split++) {
        dc_row_table rows = mixed_table(split);
        check_parts(&data, &rows);
        check_parts(&equal, &rows);
    }
    dc_row_table none = table_of(11); // without a tree all rules are off it
    start(&none, "state", DC_STREAM_STATE);
    after(&none, "later", "state", 4);
    check_parts(&data, &none);
    drop(&data);
    drop(&equal);
}

// ---- tables ----

static void tables_are_checked(void **state) {
    (void)state;
    dc_dataset data = mixed_data();
    dc_sampler *sampler;
    for (int bad = 0; bad < 8; bad++) {
        dc_row_table rows = table_of(12);
        start(&rows, "state", DC_STREAM_STATE);
        dc_goal_mix mix = {0, bad == 0 ? 0.5 : 1, bad == 1 ? 0.5 : 0, DC_LAW_GEOMETRIC, 0};
        mix.next = bad == 6 ? 0.1 : bad == 7 ? -0.1 : 0;
        if (bad == 7) mix.current = 0.1;
        goal(&rows, "goal", "state", DC_STREAM_GOAL, mix, bad == 2 ? 1 : 0.5);
        toward(&rows, "waypoint", "state", "goal", bad == 3 ? 0 : 4);
        after(&rows, "later", "state", bad == 4 ? -1 : 4);
        if (bad == 5) rows.batch = (1 << 24) + 1;
        assert_int_equal(dc_sampler_new(&sampler, &data, &rows), DC_USAGE);
        assert_null(sampler);
        if (bad == 3) assert_non_null(strstr(dc_error(), "'waypoint'"));
        if (bad == 6) assert_non_null(strstr(dc_error(), "goal_next"));
    }
    drop(&data);
}

static void rules_are_found(void **state) {
    (void)state;
    dc_row_table rows = mixed_table(DC_SPLIT_MIDPOINT);
    assert_int_equal(dc_rows_find(&rows, "state"), 0);
    assert_string_equal(rows.rule[dc_rows_find(&rows, "waypoint")].name, "waypoint");
    assert_int_equal(dc_rows_find(&rows, "nothing"), -1);
    assert_string_equal(dc_rows_tree(&rows)->name, "node");
    assert_true(dc_row_counts(&rows.rule[dc_rows_find(&rows, "first_steps")]));
    assert_false(dc_row_counts(&rows.rule[dc_rows_find(&rows, "node")]));
    dc_row_table none = table_of(1);
    assert_null(dc_rows_tree(&none));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(walks_stop_at_the_end),
        cmocka_unit_test(waypoints_do_not_pass_the_goal),
        cmocka_unit_test(stretches_have_their_length),
        cmocka_unit_test(waypoints_follow_the_goals),
        cmocka_unit_test(goals_of_one_state),
        cmocka_unit_test(pure_goals),
        cmocka_unit_test(discounts_are_the_rules_own),
        cmocka_unit_test(last_states_have_nothing_ahead),
        cmocka_unit_test(steps_have_their_sign),
        cmocka_unit_test(many_states_are_starts),
        cmocka_unit_test(between_lies_between),
        cmocka_unit_test(next_states_are_goals),
        cmocka_unit_test(rules_meet_on_a_tree),
        cmocka_unit_test(parts_are_the_whole),
        cmocka_unit_test(tables_are_checked),
        cmocka_unit_test(rules_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
