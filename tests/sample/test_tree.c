// The closed form of midpoint trees against a tree built by recursion, for every length up to 4096
// and for huge ones by spot checks; and the facts about depth and routes that the paper's theory
// rests on.
#include "sample/tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LONGEST = 4096, DEEPEST = 13 };

// ---- oracle: bisection by recursion ----

typedef struct oracle {
    int steps;
    int leaves, nodes, depth;
    // What stands at (depth, offset): length of the node, 0 if none. Each pair names at most one
    // node.
    uint16_t length[DEEPEST][LONGEST];
} oracle;

static void bisect(oracle *tree, int depth, int offset, int length) {
    assert_int_equal(tree->length[depth][offset], 0);
    tree->length[depth][offset] = (uint16_t)length;
    tree->nodes++;
    tree->leaves += length == 1;
    if (depth > tree->depth) tree->depth = depth;
    if (length == 1) return;
    bisect(tree, depth + 1, offset, length / 2);
    bisect(tree, depth + 1, offset + length / 2, length - length / 2);
}

static int ceil_log2(uint64_t x) {
    int d = 0;
    while (((uint64_t)1 << d) < x)
        d++;
    return d;
}

// Every node once, level by level from the deepest: then every child also stands before its parent.
static void check_against(oracle *tree) {
    int last = tree->depth;
    for (int t = 0; t < tree->nodes; t++) {
        dc_tree_name name = dc_tree_name_of((uint64_t)tree->steps, (uint64_t)t);
        dc_tree_node node = dc_tree_find((uint64_t)tree->steps, (uint64_t)t);
        assert_true(name.depth == last || name.depth == last - 1);
        last = name.depth;
        assert_true(node.offset + node.length <= (uint64_t)tree->steps);
        assert_int_equal(node.length, dc_tree_length((uint64_t)tree->steps, name));
        uint16_t *cell = &tree->length[name.depth][node.offset];
        assert_int_equal(*cell, node.length);
        *cell = 0; // taken: a second visit would not match
    }
    assert_int_equal(last, 0);
}

static void every_length(void **state) {
    (void)state;
    oracle *tree = calloc(1, sizeof *tree);
    assert_non_null(tree);
    for (int steps = 1; steps <= LONGEST; steps++) {
        memset(tree, 0, sizeof *tree);
        tree->steps = steps;
        bisect(tree, 0, 0, steps);
        assert_int_equal(tree->nodes, 2 * steps - 1);
        assert_int_equal(tree->leaves, steps);
        assert_int_equal(tree->depth, ceil_log2((uint64_t)steps));
        assert_int_equal(dc_tree_depth((uint64_t)steps), tree->depth);
        assert_int_equal(dc_tree_nodes((uint64_t)steps), tree->nodes);
        check_against(tree);
    }
    free(tree);
}

// ---- huge lengths: a child's number is found by search, and must come before its parent's ----

// Number of the node with this name, by bisection over t: depth falls and, within a level, t is
// monotonic in the name (the deepest level excepted, where pairs of siblings alternate).
static uint64_t number_of(uint64_t steps, dc_tree_name want) {
    uint64_t whole = (uint64_t)1 << dc_tree_depth(steps), deepest = 2 * (steps - whole / 2);
    if (want.depth == dc_tree_depth(steps)) {
        uint64_t half = whole / 2;
        return 2 * ((want.right & (half - 1)) - (whole - steps)) + (want.right / half);
    }
    uint64_t shallower = ((uint64_t)2 << want.depth) - 1; // nodes from this level to the root
    return deepest + (whole - 1 - shallower) + want.right;
}

static void check_children(uint64_t steps, uint64_t t) {
    dc_tree_name name = dc_tree_name_of(steps, t);
    dc_tree_node node = dc_tree_find(steps, t);
    assert_int_equal(number_of(steps, name), t);
    assert_true(node.length >= 1 && node.offset + node.length <= steps);
    if (node.length == 1) return;
    dc_tree_name left = {name.right, name.depth + 1};
    dc_tree_name right = {name.right | (uint64_t)1 << name.depth, name.depth + 1};
    uint64_t tl = number_of(steps, left), tr = number_of(steps, right);
    assert_true(tl < t && tr < t && tl != tr);
    dc_tree_node l = dc_tree_find(steps, tl), r = dc_tree_find(steps, tr);
    assert_int_equal(l.offset, node.offset);
    assert_int_equal(l.length, node.length / 2);
    assert_int_equal(r.offset, node.offset + l.length);
    assert_int_equal(r.length, node.length - l.length);
}

static uint64_t draw(uint32_t index, uint64_t n) {
    dc_u32x4 words = dc_philox(7, 99, 0, index);
    return dc_below64(words.v[0], words.v[1], n);
}

static void huge_lengths(void **state) {
    (void)state;
    uint32_t index = 0;
    for (int trial = 0; trial < 2000; trial++) {
        uint64_t steps = 2 + draw(index++, (uint64_t)1 << (2 + trial % 39));
        if (trial % 10 == 0) steps = ((uint64_t)1 << (1 + trial / 10 % 40)) + (uint64_t)(trial % 3);
        uint64_t nodes = dc_tree_nodes(steps);
        check_children(steps, nodes - 1);
        for (int spot = 0; spot < 50; spot++)
            check_children(steps, draw(index++, nodes));
        dc_tree_node root = dc_tree_find(steps, nodes - 1);
        assert_int_equal(root.offset, 0);
        assert_int_equal(root.length, steps);
        assert_int_equal(dc_tree_find(steps, 0).length, 1);
    }
}

// ---- bootstrap depth: backups until every target is known exactly, children of at most n steps
// are ----

static int depth_dcrl(int steps, int n) {
    if (steps <= n) return 0;
    int left = depth_dcrl(steps / 2, n), right = depth_dcrl(steps - steps / 2, n);
    return 1 + (left > right ? left : right);
}

static int depth_td(int steps, int n) {
    return steps <= n ? 0 : 1 + depth_td(steps - n, n);
}

static void bootstrap_depth(void **state) {
    (void)state;
    for (int n = 1; n <= 64; n++)
        for (int h = 1; h <= 1024; h++) {
            int levels = 0;
            while (((int64_t)n << levels) < h) // ceil(log2(h / n)), in integers
                levels++;
            assert_int_equal(depth_dcrl(h, n), levels);
            assert_int_equal(depth_td(h, n), (h + n - 1) / n - 1);
        }
    assert_int_equal(depth_dcrl(2048, 64), 5);
    assert_int_equal(depth_td(2048, 64), 31);
}

// The same of the trees that the code hands out: every node in its order, one more than the deeper
// of its two children, which stand in the table already.
static int emitted_depth(int steps, int n,
                         int8_t *depth) { // depth (steps, steps + 1) of (offset, length)
    memset(depth, -1, (size_t)steps * (size_t)(steps + 1));
    int deepest = 0;
    for (int t = 0; t < 2 * steps - 1; t++) {
        dc_tree_node node = dc_tree_find((uint64_t)steps, (uint64_t)t);
        int a = (int)node.offset, length = (int)node.length, d = 0;
        if (length > n) {
            int left = depth[a * (steps + 1) + length / 2];
            int right = depth[(a + length / 2) * (steps + 1) + length - length / 2];
            assert_true(left >= 0 && right >= 0); // emitted before
            d = 1 + (left > right ? left : right);
        }
        depth[a * (steps + 1) + length] = (int8_t)d;
        if (d > deepest) deepest = d;
    }
    assert_int_equal(depth[steps], deepest); // the root is the deepest
    return deepest;
}

static void bootstrap_depth_of_emitted_trees(void **state) {
    (void)state;
    enum { MOST = 300 };
    int8_t *depth = malloc((size_t)MOST * (MOST + 1));
    assert_non_null(depth);
    for (int h = 1; h <= MOST; h++)
        for (int n = 1; n <= 64; n += n < 8 ? 1 : 7)
            assert_int_equal(emitted_depth(h, n, depth), depth_dcrl(h, n));
    free(depth);
}

// ---- route suboptimality is superadditive: a walk's excess over the shortest path, split at any
// of its states, is at least the sum of its parts' excesses ----

enum { STATES = 12, WALK = 40 };

static void shortest_paths(int d[STATES][STATES]) {
    for (int w = 0; w < STATES; w++)
        for (int a = 0; a < STATES; a++)
            for (int b = 0; b < STATES; b++)
                if (d[a][w] + d[w][b] < d[a][b]) d[a][b] = d[a][w] + d[w][b];
}

// A random directed graph with a cycle through all states, so that every distance is finite.
static void random_graph(int graph, bool edge[STATES][STATES], int d[STATES][STATES]) {
    for (int a = 0; a < STATES; a++)
        for (int b = 0; b < STATES; b++) {
            uint32_t index = (uint32_t)(a * STATES + b);
            uint32_t word = dc_philox(11, 98, (uint64_t)graph, index).v[0];
            edge[a][b] = b == (a + 1) % STATES || dc_below(word, 6) == 0;
            d[a][b] = a == b ? 0 : edge[a][b] ? 1 : 1000;
        }
    shortest_paths(d);
}

static void random_walk(int graph, bool edge[STATES][STATES], int walk[WALK + 1]) {
    walk[0] = 0;
    for (int t = 0; t < WALK; t++) {
        int next = (walk[t] + 1) % STATES;
        int pick = (int)dc_below(dc_philox(11, 97, (uint64_t)graph, (uint32_t)t).v[0], STATES);
        walk[t + 1] = edge[walk[t]][pick] ? pick : next;
    }
}

static void superadditive_routes(void **state) {
    (void)state;
    int strict = 0;
    for (int graph = 0; graph < 100; graph++) {
        bool edge[STATES][STATES];
        int d[STATES][STATES], walk[WALK + 1];
        random_graph(graph, edge, d);
        random_walk(graph, edge, walk);
        for (int i = 0; i < WALK; i++)
            for (int j = i + 1; j <= WALK; j++)
                for (int k = i; k <= j; k++) {
                    int whole = (j - i) - d[walk[i]][walk[j]];
                    int first = (k - i) - d[walk[i]][walk[k]];
                    int second = (j - k) - d[walk[k]][walk[j]];
                    assert_true(first >= 0 && second >= 0 && whole >= first + second);
                    strict += whole > first + second;
                }
    }
    assert_true(strict > 0); // the graphs do hold shortcuts
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_length),         cmocka_unit_test(huge_lengths),
        cmocka_unit_test(bootstrap_depth),      cmocka_unit_test(bootstrap_depth_of_emitted_trees),
        cmocka_unit_test(superadditive_routes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
