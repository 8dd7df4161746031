// The sampler on data sets made in memory: order of the nodes within every slot, laws of all draws
// by chi-square with a fixed seed, exact continuation after save and load, hostile states, and
// memory.
#include "row_spec.h"
#include "sets.h"

#include <malloc.h>
#include <string.h>

static dc_sampler *make(const dc_dataset *data, row_spec spec) {
    dc_sampler *sampler;
    assert_int_equal(new_sampler(&sampler, data, &spec), DC_OK);
    return sampler;
}

// Any chooser will do, as long as its answers change over time: then a tree that was built twice
// shows.
typedef struct chooser {
    uint64_t calls;
    int fail_at; // fail at this call; -1: never
} chooser;

static dc_status choose_any(void *ctx, int64_t count, const int64_t *i, const int64_t *j,
                            int64_t *k) {
    chooser *c = ctx;
    if (c->fail_at >= 0 && c->calls == (uint64_t)c->fail_at)
        return dc_fail(DC_NOT_FINITE, NULL, "NaN");
    for (int64_t m = 0; m < count; m++) {
        assert_true(j[m] - i[m] >= 2);
        uint32_t word = dc_philox(5, 77, c->calls, (uint32_t)(i[m] * 1000 + j[m])).v[0];
        k[m] = i[m] + 1 + dc_below(word, (uint32_t)(j[m] - i[m] - 1));
    }
    c->calls++;
    return DC_OK;
}

static row_spec tree_spec(dc_split split, dc_order order, chooser *c) {
    return (row_spec){.seed = 42,
                      .batch = 50,
                      .segments = SEG_TREE,
                      .split = split,
                      .order = order,
                      .slots = 7,
                      .rebuild_every = 13,
                      .choose = choose_any,
                      .choose_ctx = c};
}

// ---- order of the nodes ----

typedef struct node {
    int64_t i, k, j;
} node;

enum { SLOTS = 7, NODES = 128 };

typedef struct trace {
    node nodes[NODES];
    int count;
    uint64_t generation;
} trace;

// Nodes root first: each must have been announced by its parent, and depth never falls.
static void check_tree(const node *nodes, int count, dc_pair root, dc_split split) {
    struct {
        int64_t i, j;
        int depth;
    } open[NODES] = {{root.i, root.j, 0}};
    int opened = 1, depth = 0;
    assert_int_equal(count, 2 * (root.j - root.i) - 1);
    for (int m = 0; m < count; m++) {
        int at = 0;
        while (at < opened && (open[at].i != nodes[m].i || open[at].j != nodes[m].j))
            at++;
        assert_true(at < opened);
        assert_true(open[at].depth >= depth);
        depth = open[at].depth;
        open[at] = open[--opened];
        if (nodes[m].j - nodes[m].i == 1) {
            assert_int_equal(nodes[m].k, nodes[m].i);
            continue;
        }
        assert_true(nodes[m].i < nodes[m].k && nodes[m].k < nodes[m].j);
        if (split == DC_SPLIT_MIDPOINT) assert_int_equal(nodes[m].k, (nodes[m].i + nodes[m].j) / 2);
        assert_true(opened + 2 <= NODES);
        open[opened].i = nodes[m].i, open[opened].j = nodes[m].k, open[opened++].depth = depth + 1;
        open[opened].i = nodes[m].k, open[opened].j = nodes[m].j, open[opened++].depth = depth + 1;
    }
    assert_int_equal(opened, 0);
}

static void reverse(node *nodes, int count) {
    for (int a = 0, b = count - 1; a < b; a++, b--) {
        node keep = nodes[a];
        nodes[a] = nodes[b];
        nodes[b] = keep;
    }
}

// Add a row to its slot's trace; check the tree when it is complete.
static int follow(const dc_trajectories *set, const row_spec *spec, trace *slot, int32_t s,
                  node row) {
    dc_pair root = dc_draw_segment(set, spec->seed, (uint32_t)s, slot->generation);
    assert_true(slot->count < NODES);
    slot->nodes[slot->count++] = row;
    if (slot->count < 2 * (root.j - root.i) - 1) return 0;
    if (spec->order == DC_ORDER_UP) reverse(slot->nodes, slot->count);
    check_tree(slot->nodes, slot->count, root, spec->split);
    slot->count = 0;
    slot->generation++;
    return 1;
}

static void check_order(const dc_dataset *data, dc_split split, dc_order order) {
    chooser c = {0, -1};
    row_spec spec = tree_spec(split, order, &c);
    dc_sampler *sampler = make(data, spec);
    dc_trajectories set = {.start = data->traj_start, .count = data->traj_count};
    static trace traces[SLOTS];
    memset(traces, 0, sizeof traces);
    int trees = 0;
    for (uint64_t step = 0; step < 200; step++) {
        if (split == DC_SPLIT_MAX && step % 13 == 0) // all trees are cut off and built anew
            for (int s = 0; s < SLOTS; s++)
                traces[s].generation += step > 0 && traces[s].count > 0, traces[s].count = 0;
        assert_int_equal(dc_sampler_next(sampler, step), DC_OK);
        for (int row = 0; row < spec.batch; row++) {
            node n = {values_of(sampler, "segment_start")[row],
                      values_of(sampler, "segment_split")[row],
                      values_of(sampler, "segment_end")[row]};
            assert_int_equal(values_of(sampler, "first_steps")[row], n.k - n.i);
            assert_int_equal(values_of(sampler, "second_steps")[row], n.j - n.k);
            int32_t s = dc_sampler_slot(sampler)[row];
            assert_true(s >= 0 && s < SLOTS);
            trees += follow(&set, &spec, &traces[s], s, n);
        }
    }
    assert_true(trees > 200);
    dc_sampler_free(sampler);
}

static void children_before_parents(void **state) {
    (void)state;
    dc_dataset data = mixed_data();
    for (dc_split split = DC_SPLIT_MIDPOINT; split <= DC_SPLIT_MAX; split++)
        for (dc_order order = DC_ORDER_UP; order <= DC_ORDER_DOWN; order++)
            check_order(&data, split, order);
    drop(&data);
}

// ---- laws ----

static void slots_are_uniform(void **state) {
    (void)state;
    dc_dataset data = equal_data(100, 10);
    row_spec spec = {.seed = 3, .batch = 1024, .segments = SEG_TREE, .slots = 128, .gamma = 0.9};
    dc_sampler *sampler = make(&data, spec);
    double seen[128] = {0}, expected[128];
    for (uint64_t step = 0; step < 1000; step++) {
        assert_int_equal(dc_sampler_next(sampler, step), DC_OK);
        for (int row = 0; row < spec.batch; row++)
            seen[dc_sampler_slot(sampler)[row]]++;
    }
    for (int s = 0; s < 128; s++)
        expected[s] = 1000.0 * 1024 / 128;
    check_counts(seen, expected, 128);
    dc_sampler_free(sampler);
    drop(&data);
}

// Cells of all pairs i < j of the trajectories, trajectory by trajectory.
enum { PAIRS = 10 + 1 + 21 };
static const int64_t pair_states[] = {5, 2, 7};

static int pair_cell(const dc_dataset *data, int64_t i, int64_t j) {
    int cell = 0;
    for (int64_t t = 0; t < data->traj_count; t++)
        for (int64_t a = data->traj_start[t]; a < data->traj_start[t + 1]; a++)
            for (int64_t b = a + 1; b < data->traj_start[t + 1]; b++, cell++)
                if (a == i && b == j) return cell;
    fail_msg("no pair (%d, %d)", (int)i, (int)j);
    return 0;
}

static void check_pairs(const dc_dataset *data, const double seen[PAIRS], double draws) {
    double expected[PAIRS];
    int cell = 0;
    for (int t = 0; t < 3; t++) {
        int pairs = (int)(pair_states[t] * (pair_states[t] - 1) / 2);
        for (int p = 0; p < pairs; p++)
            expected[cell++] = draws / 3 / pairs;
    }
    assert_int_equal(cell, PAIRS);
    assert_int_equal(data->rows, 14);
    check_counts(seen, expected, PAIRS);
}

static void pairs_are_uniform(void **state) {
    (void)state;
    dc_dataset data = make_data(pair_states, 3);
    dc_trajectories set = {.start = data.traj_start, .count = data.traj_count};
    double segments[PAIRS] = {0}, pairs[PAIRS] = {0}, goals[PAIRS] = {0};
    for (uint32_t m = 0; m < 200000; m++) {
        dc_pair pair = dc_draw_segment(&set, 9, m % 100, m / 100);
        segments[pair_cell(&data, pair.i, pair.j)]++;
    }
    check_pairs(&data, segments, 200000);
    row_spec spec = {.seed = 4,
                     .batch = 1000,
                     .segments = SEG_PAIRS,
                     .propagation = true,
                     .n = 3,
                     .goal_pairs = true};
    dc_sampler *sampler = make(&data, spec);
    for (uint64_t step = 0; step < 200; step++) {
        assert_int_equal(dc_sampler_next(sampler, step), DC_OK);
        for (int row = 0; row < spec.batch; row++) {
            int64_t i = values_of(sampler, "segment_start")[row],
                    j = values_of(sampler, "segment_end")[row];
            int64_t p = values_of(sampler, "state")[row], g = values_of(sampler, "goal")[row];
            pairs[pair_cell(&data, i, j)]++;
            goals[pair_cell(&data, p, g)]++;
            assert_int_equal(values_of(sampler, "segment_split")[row], (i + j) / 2);
            assert_int_equal(values_of(sampler, "goal_steps")[row], g - p);
        }
    }
    check_pairs(&data, pairs, 200000);
    check_pairs(&data, goals, 200000);
    assert_null(dc_sampler_slot(sampler));
    assert_null(values_of(sampler, "step_start"));
    dc_sampler_free(sampler);
    drop(&data);
}

// i uniform over transitions; j - i geometric, with the rest of the mass at the end; k uniform
// between.
static void geometric_pairs(void **state) {
    (void)state;
    enum { STATES = 40 };
    dc_dataset data = equal_data(STATES, 3);
    row_spec spec = {.seed = 8,
                     .batch = 1000,
                     .segments = SEG_PAIRS,
                     .split = DC_SPLIT_RANDOM,
                     .pair_law = DC_LAW_GEOMETRIC,
                     .gamma = 0.9};
    dc_sampler *sampler = make(&data, spec);
    double starts[STATES - 1] = {0}, uniform[STATES - 1], steps[20] = {0}, law[20], splits[9] = {0};
    double at_start = 0, tens = 0;
    for (uint64_t step = 0; step < 1000; step++) {
        assert_int_equal(dc_sampler_next(sampler, step), DC_OK);
        for (int row = 0; row < spec.batch; row++) {
            int64_t i = values_of(sampler, "segment_start")[row] % STATES;
            int64_t left = values_of(sampler, "first_steps")[row];
            int64_t length = left + values_of(sampler, "second_steps")[row];
            assert_true(i < STATES - 1 && length >= 1 && i + length < STATES);
            assert_true(length == 1 ? left == 0 : left >= 1 && left < length);
            starts[i]++;
            if (length == 10) splits[left - 1]++, tens++;
            if (i != STATES - 21) continue; // 20 steps left
            steps[length - 1]++;
            at_start++;
        }
    }
    for (int c = 0; c < STATES - 1; c++)
        uniform[c] = 1e6 / (STATES - 1);
    for (int x = 1; x <= 20; x++)
        law[x - 1] = at_start * (x < 20 ? 0.1 * pow(0.9, x - 1) : pow(0.9, 19));
    check_counts(starts, uniform, STATES - 1);
    check_counts(steps, law, 20);
    for (int c = 0; c < 9; c++)
        uniform[c] = tens / 9;
    check_counts(splits, uniform, 9);
    dc_sampler_free(sampler);
    drop(&data);
}

// Stages: lengths of one stage only, uniform in it, starts uniform; the last stage stays.
static void staged_pairs(void **state) {
    (void)state;
    enum { STATES = 24, DELTA = 10, STAGES = 3, STEPS = 90, BATCH = 1000 }; // 23 steps: 10, 10, 3
    dc_dataset data = equal_data(STATES, 2);
    row_spec spec = {.seed = 6,
                     .batch = BATCH,
                     .segments = SEG_PAIRS,
                     .stage_length = DELTA,
                     .stage_total = STEPS};
    dc_sampler *sampler = make(&data, spec);
    double lengths[STATES] = {0}, starts[STATES] = {0}, expected[STATES];
    for (uint64_t step = 0; step < STEPS + 30; step++) {
        assert_int_equal(dc_sampler_next(sampler, step), DC_OK);
        int64_t stage = step / 30 < STAGES ? (int64_t)(step / 30) : STAGES - 1;
        for (int row = 0; row < BATCH; row++) {
            int64_t i = values_of(sampler, "segment_start")[row],
                    length = values_of(sampler, "segment_end")[row] - i;
            assert_true(length > stage * DELTA && length <= (stage + 1) * DELTA);
            assert_true(i % STATES + length < STATES);
            lengths[length - 1]++;
            if (length == 4) starts[i % STATES]++;
        }
    }
    for (int x = 0; x < STATES - 1; x++)
        expected[x] = x < 2 * DELTA ? 30.0 * BATCH / DELTA : 60.0 * BATCH / 3;
    check_counts(lengths, expected, STATES - 1);
    for (int x = 0; x < STATES - 4; x++)
        expected[x] = lengths[3] / (STATES - 4);
    check_counts(starts, expected, STATES - 4);
    dc_sampler_free(sampler);
    drop(&data);
}

// Splits of random trees are uniform over the inner states.
static void random_tree_splits(void **state) {
    (void)state;
    dc_dataset data = equal_data(12, 2);
    row_spec spec = {
        .seed = 6, .batch = 1024, .segments = SEG_TREE, .split = DC_SPLIT_RANDOM, .slots = 64};
    dc_sampler *sampler = make(&data, spec);
    double seen[7] = {0}, expected[7], total = 0;
    for (uint64_t step = 0; step < 1000; step++) {
        assert_int_equal(dc_sampler_next(sampler, step), DC_OK);
        for (int row = 0; row < spec.batch; row++) {
            int64_t left = values_of(sampler, "first_steps")[row];
            if (left + values_of(sampler, "second_steps")[row] == 8) seen[left - 1]++, total++;
        }
    }
    for (int c = 0; c < 7; c++)
        expected[c] = total / 7;
    check_counts(seen, expected, 7);
    dc_sampler_free(sampler);
    drop(&data);
}

// Starts of propagation and grounding rows: uniform over transitions, whatever the lengths.
static void check_starts(const dc_dataset *data) {
    row_spec spec = {.seed = 12,
                     .batch = 1000,
                     .propagation = true,
                     .n = 4,
                     .goal_random = 1,
                     .grounding = true};
    dc_sampler *sampler = make(data, spec);
    double *starts = calloc(2 * (size_t)data->rows, sizeof *starts), *grounds = starts + data->rows;
    double *expected = calloc((size_t)data->rows, sizeof *expected);
    assert_true(starts && expected);
    int cells = (int)(data->rows - data->traj_count);
    for (uint64_t step = 0; step < 200; step++) {
        assert_int_equal(dc_sampler_next(sampler, step), DC_OK);
        for (int row = 0; row < spec.batch; row++) {
            starts[values_of(sampler, "state")[row]]++;
            grounds[values_of(sampler, "step_start")[row]]++;
            assert_int_equal(values_of(sampler, "step_end")[row],
                             values_of(sampler, "step_start")[row] + 1);
        }
    }
    int cell = 0; // squeeze out the last rows, which must never start anything
    for (int64_t t = 0; t < data->traj_count; t++) {
        int64_t end = data->traj_start[t + 1] - 1;
        assert_true(starts[end] == 0 && grounds[end] == 0);
        for (int64_t row = data->traj_start[t]; row < end; row++, cell++) {
            starts[cell] = starts[row];
            grounds[cell] = grounds[row];
            expected[cell] = 200000.0 / cells;
        }
    }
    assert_int_equal(cell, cells);
    check_counts(starts, expected, cells);
    check_counts(grounds, expected, cells);
    free(starts);
    free(expected);
    dc_sampler_free(sampler);
}

static void starts_are_uniform(void **state) {
    (void)state;
    dc_dataset mixed = mixed_data(), equal = equal_data(11, 9);
    check_starts(&mixed);
    check_starts(&equal);
    drop(&mixed);
    drop(&equal);
}

// The mixture of goals on one long trajectory among others: offsets tell the kinds apart.
static void check_goals(dc_law law) {
    enum { STATES = 400, N = 25, CELLS = 30 };
    const double gamma = 0.9;
    dc_dataset data = equal_data(STATES, 50);
    row_spec spec = {.seed = 21,
                     .batch = 1000,
                     .gamma = gamma,
                     .propagation = true,
                     .n = N,
                     .goal_current = 0.2,
                     .goal_future = 0.5,
                     .goal_random = 0.3,
                     .goal_law = law};
    dc_sampler *sampler = make(&data, spec);
    double seen[CELLS + 2] = {0}, expected[CELLS + 2] = {0}; // offset 0, 1 ... CELLS, all others
    for (uint64_t step = 0; step < 500; step++) {
        assert_int_equal(dc_sampler_next(sampler, step), DC_OK);
        for (int row = 0; row < spec.batch; row++) {
            int64_t p = values_of(sampler, "state")[row], g = values_of(sampler, "goal")[row];
            int64_t off = values_of(sampler, "goal_steps")[row], left = STATES - 1 - p % STATES;
            int64_t steps = values_of(sampler, "later_steps")[row];
            assert_true(g >= 0 && g < data.rows);
            assert_int_equal(off, p / STATES == g / STATES && g >= p ? g - p : -1);
            assert_int_equal(steps, left < N ? left : N);
            assert_int_equal(values_of(sampler, "later")[row], p + steps);
            seen[off < 0 || off > CELLS ? CELLS + 1 : off]++;
            // What this row should add to each cell.
            double any = 0.3 / (double)data.rows, rest = 1;
            for (int x = 0; x <= CELLS && x <= left; x++) {
                double future = law == DC_LAW_UNIFORM ? 1.0 / (double)left
                                : x < left            ? (1 - gamma) * pow(gamma, x - 1)
                                                      : pow(gamma, x - 1);
                double add = any + (x ? 0.5 * future : 0.2);
                expected[x] += add;
                rest -= add;
            }
            expected[CELLS + 1] += rest;
        }
    }
    check_counts(seen, expected, CELLS + 2);
    dc_sampler_free(sampler);
    drop(&data);
}

static void goals_follow_the_mixture(void **state) {
    (void)state;
    check_goals(DC_LAW_UNIFORM);
    check_goals(DC_LAW_GEOMETRIC);
}

// Rows share calls of Philox, so neighbours are where a slip would show: equal ones must be as rare
// as chance makes them.
static void neighbours_are_independent(void **state) {
    (void)state;
    static const char *const streams[] = {"segment_start", "segment_split", "segment_end",
                                          "state",         "goal",          "step_start"};
    dc_dataset data = equal_data(1000, 1000);
    row_spec spec = {.seed = 31,
                     .batch = 1000,
                     .segments = SEG_PAIRS,
                     .split = DC_SPLIT_RANDOM,
                     .propagation = true,
                     .n = 1,
                     .goal_random = 1,
                     .grounding = true};
    dc_sampler *pairs = make(&data, spec);
    spec.segments = SEG_TREE;
    spec.slots = 100;
    dc_sampler *trees = make(&data, spec);
    int equal = 0, same_slot = 0;
    for (uint64_t step = 0; step < 100; step++) {
        assert_int_equal(dc_sampler_next(pairs, step), DC_OK);
        assert_int_equal(dc_sampler_next(trees, step), DC_OK);
        for (int row = 1; row < spec.batch; row++) {
            for (size_t s = 0; s < sizeof streams / sizeof *streams; s++)
                equal += values_of(pairs, streams[s])[row] == values_of(pairs, streams[s])[row - 1];
            equal += values_of(pairs, "state")[row] == values_of(pairs, "step_start")[row];
            same_slot += dc_sampler_slot(trees)[row] == dc_sampler_slot(trees)[row - 1];
        }
    }
    assert_true(equal < 10);                          // 0.7 expected
    assert_true(same_slot > 800 && same_slot < 1200); // 999 expected, deviation 31
    dc_sampler_free(pairs);
    dc_sampler_free(trees);
    drop(&data);
}

// The integer law against logarithms in long double: they may differ only on the edge of a step.
static void geometric_is_exact(void **state) {
    (void)state;
    static const double gammas[] = {0.01, 0.5, 0.9, 0.99, 0.995, 0.999, 0.99999};
    for (size_t c = 0; c < sizeof gammas / sizeof *gammas; c++) {
        dc_geometric law = dc_geometric_of(gammas[c], (int64_t)1 << 40);
        int edges = 0;
        for (uint32_t m = 0; m < 100000; m++) {
            dc_u32x4 w = dc_philox(1, 96, c, m);
            int64_t x = dc_draw_geometric(&law, w.v[0], w.v[1]);
            long double u =
                ((long double)w.v[0] * 4294967296.0L + w.v[1]) / 18446744073709551616.0L;
            // X - 1 = largest x with gamma^x > u, so gamma^(X-1) > u >= gamma^X.
            long double high = powl(gammas[c], (long double)(x - 1)), low = high * gammas[c];
            edges += !(u < high && u >= low);
            assert_true(u < high + 1e-12L && u >= low - 1e-12L);
        }
        assert_true(edges < 3);
    }
    dc_geometric never = dc_geometric_of(0, 1000);
    assert_int_equal(dc_draw_geometric(&never, 0, 0), 1);
}

// ---- state ----

static const char *const all_streams[] = {
    "segment_start", "segment_split", "segment_end", "first_steps", "second_steps",
    "state",         "later",         "goal",        "later_steps", "goal_steps",
    "step_start",    "step_end",      "actor_state", "actor_goal"};

static void check_same(const dc_sampler *a, const dc_sampler *b, int batch) {
    for (size_t s = 0; s < sizeof all_streams / sizeof *all_streams; s++) {
        const int64_t *x = values_of(a, all_streams[s]);
        const int64_t *y = values_of(b, all_streams[s]);
        assert_int_equal(!x, !y);
        if (x) assert_memory_equal(x, y, (size_t)batch * sizeof *x);
    }
}

// Stop after `stop` steps, go on in a new sampler, compare with one that never stopped.
static void check_resume(const dc_dataset *data, dc_split split, dc_order order, uint64_t stop) {
    chooser ca = {0, -1}, cb = {0, -1};
    row_spec spec = tree_spec(split, order, &ca);
    spec.propagation = spec.grounding = true;
    spec.n = 5;
    spec.gamma = 0.95;
    spec.goal_law = DC_LAW_GEOMETRIC;
    spec.goal_future = 1;
    dc_sampler *a = make(data, spec);
    for (uint64_t step = 0; step < stop; step++)
        assert_int_equal(dc_sampler_next(a, step), DC_OK);
    int64_t *words;
    size_t count;
    assert_int_equal(dc_sampler_save(a, &words, &count), DC_OK);
    spec.choose_ctx = &cb;
    cb = ca;
    dc_sampler *b = make(data, spec);
    assert_int_equal(dc_sampler_load(b, words, count), DC_OK);
    for (uint64_t step = stop; step < stop + 40; step++) {
        assert_int_equal(dc_sampler_next(a, step), DC_OK);
        assert_int_equal(dc_sampler_next(b, step), DC_OK);
        check_same(a, b, spec.batch);
        assert_memory_equal(dc_sampler_slot(a), dc_sampler_slot(b),
                            (size_t)spec.batch * sizeof(int32_t));
    }
    free(words);
    dc_sampler_free(a);
    dc_sampler_free(b);
}

static void resume_is_exact(void **state) {
    (void)state;
    dc_dataset data = mixed_data();
    for (dc_split split = DC_SPLIT_MIDPOINT; split <= DC_SPLIT_MAX; split++)
        for (dc_order order = DC_ORDER_UP; order <= DC_ORDER_DOWN; order++)
            for (uint64_t trial = 0; trial < 12; trial++)
                check_resume(&data, split, order,
                             trial < 2 ? trial : dc_below(dc_philox(2, 95, trial, 0).v[0], 60));
    drop(&data);
}

// The numbers themselves. They are part of every run's identity: the same on every machine and
// device, and never to be changed by accident. One hash (FNV-1a) over ten steps of all streams of a
// spec.
static uint64_t hash_of(const dc_dataset *data, row_spec spec) {
    dc_sampler *sampler = make(data, spec);
    uint64_t hash = 14695981039346656037u;
    for (uint64_t step = 0; step < 10; step++) {
        assert_int_equal(dc_sampler_next(sampler, step), DC_OK);
        for (size_t s = 0; s < sizeof all_streams / sizeof *all_streams; s++) {
            const int64_t *values = values_of(sampler, all_streams[s]);
            for (int row = 0; values && row < spec.batch; row++)
                hash = (hash ^ (uint64_t)values[row]) * 1099511628211u;
        }
    }
    dc_sampler_free(sampler);
    return hash;
}

static void numbers_stay(void **state) {
    (void)state;
    dc_dataset data = mixed_data();
    row_spec tree = tree_spec(DC_SPLIT_MIDPOINT, DC_ORDER_UP, NULL);
    assert_int_equal(hash_of(&data, tree), 0x205c2d6861ac31b7u);
    tree.split = DC_SPLIT_RANDOM;
    assert_int_equal(hash_of(&data, tree), 0x857ab89a53e313f3u);
    row_spec rows = {.seed = 5,
                     .batch = 300,
                     .segments = SEG_PAIRS,
                     .split = DC_SPLIT_RANDOM,
                     .pair_law = DC_LAW_GEOMETRIC,
                     .gamma = 0.95,
                     .propagation = true,
                     .n = 5,
                     .goal_current = 0.2,
                     .goal_future = 0.5,
                     .goal_random = 0.3,
                     .goal_law = DC_LAW_GEOMETRIC,
                     .grounding = true};
    assert_int_equal(hash_of(&data, rows), 0x4f50e46d9bb2bc9cu);
    rows.pair_law = rows.goal_law = DC_LAW_UNIFORM;
    assert_int_equal(hash_of(&data, rows), 0xc3c494bf34e96a56u);
    row_spec actor = {.seed = 5,
                      .batch = 300,
                      .gamma = 0.95,
                      .actor = true,
                      .actor_random = 0.5,
                      .actor_law = DC_LAW_GEOMETRIC};
    assert_int_equal(hash_of(&data, actor), 0xa69a7f4d851ea755u);
    actor.actor_law = DC_LAW_UNIFORM;
    assert_int_equal(hash_of(&data, actor), 0x7309cead4a9c8401u);
    row_spec staged = {.seed = 5,
                       .batch = 300,
                       .segments = SEG_PAIRS,
                       .stage_length = 7,
                       .stage_total = 12,
                       .propagation = true,
                       .goal_pairs = true,
                       .n = 3};
    assert_int_equal(hash_of(&data, staged), 0x702ca3fc01aab161u);
    drop(&data);
}

// A state with one word changed must be refused, or be one that the sampler could have reached.
static void check_hostile(const dc_dataset *data, dc_split split) {
    chooser c = {0, -1};
    row_spec spec = tree_spec(split, DC_ORDER_UP, &c);
    dc_sampler *a = make(data, spec), *b = make(data, spec);
    for (uint64_t step = 0; step < 9; step++)
        assert_int_equal(dc_sampler_next(a, step), DC_OK);
    int64_t *words;
    size_t count;
    assert_int_equal(dc_sampler_save(a, &words, &count), DC_OK);
    const int64_t poison[] = {
        -1, 0, 1, 1000, INT64_MAX, INT64_MIN, (int64_t)1 << 40, (int64_t)1 << 33};
    int refused = 0, taken = 0;
    for (size_t w = 0; w < count; w++)
        for (size_t p = 0; p < sizeof poison / sizeof *poison; p++) {
            int64_t keep = words[w];
            words[w] = poison[p];
            dc_status status = dc_sampler_load(b, words, count);
            assert_true(status == DC_OK || status == DC_BAD_INPUT);
            refused += status != DC_OK;
            taken += status == DC_OK && keep != poison[p];
            int64_t *again;
            size_t n;
            assert_int_equal(dc_sampler_save(b, &again, &n), DC_OK);
            if (status == DC_OK) assert_memory_equal(again, words, count * sizeof *words);
            free(again);
            words[w] = keep;
        }
    assert_true(refused > 8 * taken);
    for (size_t n = 0; n < count; n++) {
        int64_t *cut = malloc(n * sizeof *cut + 1); // its own block: reading past it is seen
        assert_non_null(cut);
        memcpy(cut, words, n * sizeof *cut);
        assert_int_equal(dc_sampler_load(b, cut, n), DC_BAD_INPUT);
        free(cut);
    }
    int64_t *longer = calloc(count + 1, sizeof *longer);
    assert_non_null(longer);
    memcpy(longer, words, count * sizeof *words);
    assert_int_equal(dc_sampler_load(b, longer, count + 1), DC_BAD_INPUT);
    assert_int_equal(dc_sampler_load(b, words, count), DC_OK); // and the right one is still taken
    assert_int_equal(dc_sampler_next(a, 9), DC_OK);
    c.calls = 0;
    assert_int_equal(dc_sampler_next(b, 9), DC_OK);
    free(longer);
    free(words);
    dc_sampler_free(a);
    dc_sampler_free(b);
}

static void hostile_words_are_refused(void **state) {
    (void)state;
    dc_dataset data = mixed_data();
    for (dc_split split = DC_SPLIT_MIDPOINT; split <= DC_SPLIT_MAX; split++)
        check_hostile(&data, split);
    drop(&data);
}

static void chooser_failure_is_told(void **state) {
    (void)state;
    dc_dataset data = mixed_data();
    for (int at = 0; at < 12; at++) {
        chooser c = {0, at};
        dc_sampler *sampler = make(&data, tree_spec(DC_SPLIT_MAX, DC_ORDER_UP, &c));
        dc_status status = DC_OK;
        for (uint64_t step = 0; step < 20 && status == DC_OK; step++)
            status = dc_sampler_next(sampler, step);
        assert_int_equal(status, DC_NOT_FINITE);
        int64_t *words;
        size_t count;
        assert_int_equal(dc_sampler_save(sampler, &words, &count), DC_OK);
        free(words);
        dc_sampler_free(sampler);
    }
    drop(&data);
}

static void impossible_specs_are_refused(void **state) {
    (void)state;
    dc_dataset data = mixed_data();
    const row_spec good = {.batch = 8,
                           .segments = SEG_TREE,
                           .slots = 4,
                           .propagation = true,
                           .n = 1,
                           .goal_random = 1};
    dc_sampler *sampler;
    row_spec bad[7];
    for (int b = 0; b < 7; b++)
        bad[b] = good;
    bad[0].batch = 0;
    bad[1].slots = 0;
    bad[2].gamma = 1;
    bad[3].gamma = NAN;
    bad[4].n = 0;
    bad[5].goal_random = 0.5;
    bad[6].goal_current = -0.5, bad[6].goal_random = 1.5;
    for (int b = 0; b < 7; b++) {
        assert_int_equal(new_sampler(&sampler, &data, &bad[b]), DC_USAGE);
        assert_null(sampler);
    }
    drop(&data);
    const int64_t single[] = {4, 1, 4};
    dc_dataset broken = make_data(single, 3);
    assert_int_equal(new_sampler(&sampler, &broken, &good), DC_BAD_INPUT);
    broken.traj_count = 0;
    assert_int_equal(new_sampler(&sampler, &broken, &good), DC_BAD_INPUT);
    drop(&broken);
}

// ---- memory ----

// Bytes in use, by the allocator's own books.
static size_t heap(void) {
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

static size_t check_memory(int64_t states) {
    dc_dataset data = equal_data(states, 4);
    row_spec spec = {.seed = 1,
                     .batch = 1024,
                     .segments = SEG_TREE,
                     .slots = 128,
                     .gamma = 0.999,
                     .propagation = true,
                     .n = 25,
                     .goal_future = 1,
                     .goal_law = DC_LAW_GEOMETRIC};
    size_t before = heap();
    dc_sampler *sampler = make(&data, spec);
    size_t made = heap() - before, bytes = dc_sampler_bytes(sampler);
    for (uint64_t step = 0; step < 300; step++)
        assert_int_equal(dc_sampler_next(sampler, step), DC_OK);
    assert_int_equal(heap() - before, made); // a step allocates nothing
    assert_int_equal(dc_sampler_bytes(sampler), bytes);
    assert_true(!made || (made >= bytes && made < bytes + 4096));
    dc_sampler_free(sampler);
    drop(&data);
    return bytes;
}

static void memory_does_not_grow(void **state) {
    (void)state;
    size_t small = check_memory(1001), large = check_memory(1000001);
    assert_int_equal(small, large);
    assert_true(large < 200000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(children_before_parents),
        cmocka_unit_test(slots_are_uniform),
        cmocka_unit_test(pairs_are_uniform),
        cmocka_unit_test(geometric_pairs),
        cmocka_unit_test(staged_pairs),
        cmocka_unit_test(random_tree_splits),
        cmocka_unit_test(starts_are_uniform),
        cmocka_unit_test(goals_follow_the_mixture),
        cmocka_unit_test(geometric_is_exact),
        cmocka_unit_test(neighbours_are_independent),
        cmocka_unit_test(numbers_stay),
        cmocka_unit_test(resume_is_exact),
        cmocka_unit_test(hostile_words_are_refused),
        cmocka_unit_test(chooser_failure_is_told),
        cmocka_unit_test(impossible_specs_are_refused),
        cmocka_unit_test(memory_does_not_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
