// Sampler, see sampler.h: checks the table of rules once, then draws the rules of a step by
// sample/row_draw.h and the slots. Rows draw independently of each other; only slots carry state from
// step to step, and that state is what dc_sampler_save writes.
#include "sample/sampler.h"

#include "sample/slots.h"

#include <stdlib.h>
#include <string.h>

enum {
    STATE_VERSION = 1,
    HEADER_WORDS = 9, // version, seed, batch, segments, split, order, slots, rows, next step
};

struct dc_sampler {
    dc_row_table rows;
    dc_row_laws laws;
    dc_row_part part;
    uint64_t next;   // step to come
    dc_slots *slots; // NULL: no trees are drawn here
    int32_t *pick;   // (batch) slot of each row
    bool copies;     // what is on the tree are parts of its nodes alone
    int64_t *nodes;  // (3, batch) what the slots hand out: start, split, end
    int64_t *memory; // the numbers of all rules drawn here
    int64_t *drawn[DC_RULES_MAX];
};

// ---- construction ----

// Read the trajectory table and check it: the draws rely on it.
static dc_status take_table(dc_trajectories *set, const dc_dataset *data) {
    const int64_t *start = data->traj_start;
    *set = (dc_trajectories){.start = start, .count = data->traj_count, .rows = data->rows};
    if (set->count < 1 || start[0] != 0 || start[set->count] != set->rows)
        return dc_fail(DC_BAD_INPUT, NULL, "the table of trajectories does not cover the data set");
    set->each = start[1] - start[0];
    set->grown = data->grown;
    for (int64_t t = 0; t < set->count; t++) {
        int64_t n = start[t + 1] - start[t];
        if (n < 2 || n > DC_TREE_STEPS_MAX)
            return dc_fail(DC_BAD_INPUT, "a trajectory has 2 to 2^40 states",
                           "impossible trajectory (number %lld, %lld states)", (long long)t,
                           (long long)n);
        if (n != set->each) set->each = 0;
        set->longest = n > set->longest ? n : set->longest;
    }
    return DC_OK;
}

// Does a rule follow from what the slots hand out by itself: a node's start, split or end, or steps between them?
static bool is_node_part(const dc_row_laws *laws, int rule) {
    const dc_rule_law *law = &laws->rule[rule];
    if (law->kind == DC_ROW_TREE) return true;
    if (law->kind == DC_ROW_SPLIT || law->kind == DC_ROW_END) return law->of == laws->tree;
    return law->kind == DC_ROW_STEPS && law->inside && is_node_part(laws, law->of) &&
           is_node_part(laws, law->to);
}

// The same for all rules on the tree: they are then copied, a whole batch at a time.
static bool copies_nodes(const dc_row_laws *laws) {
    for (int r = 0; r < laws->count; r++)
        if (laws->rule[r].on_tree && !is_node_part(laws, r)) return false;
    return true;
}

static bool fills(const dc_sampler *s, int rule) {
    bool on_tree = s->laws.rule[rule].on_tree;
    return s->part == DC_ROWS_ALL || on_tree == (s->part == DC_ROWS_ON_TREE);
}

static bool draws_trees(const dc_sampler *s) {
    return s->laws.tree >= 0 && s->part != DC_ROWS_OFF_TREE;
}

// Numbers that are drawn here for a row of the batch.
static int drawn_count(const dc_sampler *s) {
    int used = 0;
    for (int r = 0; r < s->rows.count; r++)
        if (fills(s, r)) used += s->laws.rule[r].times;
    return used;
}

static dc_status allocate(dc_sampler *s) {
    size_t batch = (size_t)s->rows.batch, count = (size_t)drawn_count(s);
    bool trees = draws_trees(s);
    s->memory = calloc(count * batch + 1, sizeof *s->memory);
    if (trees) s->pick = calloc(batch, sizeof *s->pick);
    if (trees) s->nodes = calloc(3 * batch, sizeof *s->nodes);
    if (!s->memory || (trees && (!s->pick || !s->nodes)))
        return dc_fail(DC_NO_MEMORY, "lower batch", "no memory for a batch of %zu rows", batch);
    int64_t *at = s->memory;
    for (int r = 0; r < s->rows.count; r++) {
        if (!fills(s, r)) continue;
        s->drawn[r] = at;
        at += batch * (size_t)s->laws.rule[r].times;
    }
    return trees ? dc_slots_new(&s->slots, &s->laws.set, &s->rows) : DC_OK;
}

dc_status dc_sampler_new_part(dc_sampler **out, const dc_dataset *data, const dc_row_table *rows,
                              dc_row_part part) {
    *out = NULL;
    dc_trajectories set;
    DC_TRY(dc_rows_check(rows));
    DC_TRY(take_table(&set, data));
    dc_sampler *sampler = calloc(1, sizeof *sampler);
    if (!sampler) return dc_fail(DC_NO_MEMORY, NULL, "no memory for a sampler");
    sampler->rows = *rows;
    sampler->part = part;
    dc_row_laws_init(&sampler->laws, rows, &set);
    sampler->copies = copies_nodes(&sampler->laws);
    dc_status status = allocate(sampler);
    if (status != DC_OK) return dc_sampler_free(sampler), status;
    *out = sampler;
    return DC_OK;
}

dc_status dc_sampler_new(dc_sampler **out, const dc_dataset *data, const dc_row_table *rows) {
    return dc_sampler_new_part(out, data, rows, DC_ROWS_ALL);
}

void dc_sampler_free(dc_sampler *sampler) {
    if (!sampler) return;
    dc_slots_free(sampler->slots);
    free(sampler->pick);
    free(sampler->nodes);
    free(sampler->memory);
    free(sampler);
}

// ---- one step ----

// Which slot each row takes: a call of Philox serves four rows.
static void pick_slots(dc_sampler *s, uint64_t step) {
    uint32_t slots = (uint32_t)s->laws.slots, stream = s->laws.rule[s->laws.tree].stream;
    int batch = s->rows.batch;
    for (int row = 0; row < batch; row += 4) {
        dc_u32x4 words = dc_philox(s->rows.seed, stream, step, (uint32_t)row >> 2);
        for (int q = 0; q < 4 && row + q < batch; q++)
            s->pick[row + q] = (int32_t)dc_below(words.v[q], slots);
    }
}

static dc_status take_nodes(dc_sampler *s, uint64_t step) {
    const dc_row_rule *tree = dc_rows_tree(&s->rows);
    int batch = s->rows.batch;
    if (tree->split == DC_SPLIT_MAX && step % (uint64_t)tree->rebuild_every == 0)
        DC_TRY(dc_slots_rebuild(s->slots));
    pick_slots(s, step);
    return dc_slots_take(s->slots, s->pick, batch, s->nodes, s->nodes + batch,
                         s->nodes + 2 * (size_t)batch);
}

static void copy_nodes(dc_sampler *s) {
    size_t batch = (size_t)s->rows.batch;
    for (int r = 0; r < s->rows.count; r++) {
        const dc_rule_law *law = &s->laws.rule[r];
        int part = law->kind == DC_ROW_SPLIT ? 1 : law->kind == DC_ROW_END ? 2 : 0;
        if (!law->on_tree) continue;
        if (law->kind != DC_ROW_STEPS) {
            memcpy(s->drawn[r], s->nodes + (size_t)part * batch, batch * sizeof *s->nodes);
            continue;
        }
        const int64_t *from = s->drawn[law->of], *to = s->drawn[law->to];
        for (size_t row = 0; row < batch; row++)
            s->drawn[r][row] = to[row] >= from[row] ? to[row] - from[row] : -1;
    }
}

// Rules of a part, row by row.
static void draw_part(dc_sampler *s, dc_row_part part, uint64_t step) {
    int batch = s->rows.batch;
    dc_segment tree = {0, 0, 0};
    for (int row = 0; row < batch; row++) {
        if (s->slots)
            tree = (dc_segment){s->nodes[row], s->nodes[batch + row], s->nodes[2 * batch + row]};
        dc_draw_rows(&s->laws, part, step, (uint32_t)row, tree, s->drawn);
    }
}

static bool any_off_tree(const dc_row_laws *laws) {
    for (int r = 0; r < laws->count; r++)
        if (!laws->rule[r].on_tree) return true;
    return false;
}

dc_status dc_sampler_next(dc_sampler *s, uint64_t step) {
    DC_CHECK(step == s->next);
    if (s->slots) DC_TRY(take_nodes(s, step));
    if (!s->slots || !s->copies) {
        draw_part(s, s->part, step);
    } else {
        copy_nodes(s);
        if (s->part == DC_ROWS_ALL && any_off_tree(&s->laws)) draw_part(s, DC_ROWS_OFF_TREE, step);
    }
    s->next = step + 1;
    return DC_OK;
}

void dc_sampler_skip(dc_sampler *sampler, uint64_t step) {
    DC_CHECK(!sampler->slots);
    sampler->next = step;
}

int64_t *dc_sampler_fix(dc_sampler *sampler, int rule) {
    return sampler->drawn[rule];
}

const int64_t *dc_sampler_drawn(const dc_sampler *sampler, int rule) {
    return sampler->drawn[rule];
}

uint64_t dc_sampler_step(const dc_sampler *sampler) {
    return sampler->next;
}

const dc_row_laws *dc_sampler_laws(const dc_sampler *sampler) {
    return &sampler->laws;
}

const dc_row_table *dc_sampler_rows(const dc_sampler *sampler) {
    return &sampler->rows;
}

const int32_t *dc_sampler_slot(const dc_sampler *sampler) {
    return sampler->pick;
}

size_t dc_sampler_bytes(const dc_sampler *s) {
    size_t batch = (size_t)s->rows.batch;
    size_t bytes = sizeof *s + (size_t)drawn_count(s) * batch * sizeof **s->drawn;
    if (!s->slots) return bytes;
    return bytes + batch * (sizeof *s->pick + 3 * sizeof *s->nodes) + dc_slots_bytes(s->slots);
}

// ---- state as words: what gives it meaning, the next step, the slots ----

enum { NO_SEGMENTS, TREES, PAIRS }; // word "segments"

// The rule that segments start from, and the one that splits them; NULL without segments.
static void find_segments(const dc_row_table *rows, const dc_row_rule **start,
                          const dc_row_rule **split) {
    *start = *split = NULL;
    for (int r = 0; r < rows->count && !*split; r++)
        if (rows->rule[r].kind == DC_ROW_SPLIT) *split = &rows->rule[r];
    if (*split) *start = &rows->rule[dc_rows_find(rows, (*split)->of)];
}

static void header(const dc_sampler *s, int64_t words[HEADER_WORDS]) {
    const dc_row_rule *start, *split;
    find_segments(&s->rows, &start, &split);
    int64_t at = 0;
    words[at++] = STATE_VERSION;
    words[at++] = (int64_t)s->rows.seed;
    words[at++] = s->rows.batch;
    words[at++] = !start ? NO_SEGMENTS : start->kind == DC_ROW_TREE ? TREES : PAIRS;
    words[at++] = split ? (int64_t)split->split : 0;
    words[at++] = start ? (int64_t)start->order : 0;
    words[at++] = start ? start->slots : 0;
    words[at++] = s->laws.set.rows;
    words[at++] = (int64_t)s->next;
}

dc_status dc_sampler_save(const dc_sampler *sampler, int64_t **words, size_t *count) {
    size_t slots = sampler->slots ? dc_slots_word_count(sampler->slots) : 0;
    *count = HEADER_WORDS + slots;
    *words = malloc(*count * sizeof **words);
    if (!*words) return dc_fail(DC_NO_MEMORY, NULL, "no memory for %zu words of state", *count);
    header(sampler, *words);
    if (sampler->slots) dc_slots_save(sampler->slots, *words + HEADER_WORDS);
    return DC_OK;
}

static dc_status check_header(const dc_sampler *sampler, const int64_t *words, size_t count) {
    static const char *const names[HEADER_WORDS] = {
        "version", "seed", "batch", "segments", "split", "order", "slots", "rows", "step"};
    int64_t expected[HEADER_WORDS];
    header(sampler, expected);
    if (count < HEADER_WORDS)
        return dc_fail(DC_BAD_INPUT, "take an earlier checkpoint",
                       "the sampler's state is broken (%zu words)", count);
    for (int w = 0; w < HEADER_WORDS - 1; w++)
        if (words[w] != expected[w])
            return dc_fail(DC_BAD_INPUT, "resume with the config and data of the run",
                           "the sampler's state is of another run (%s %lld, here %lld)", names[w],
                           (long long)words[w], (long long)expected[w]);
    if (words[HEADER_WORDS - 1] < 0)
        return dc_fail(DC_BAD_INPUT, "take an earlier checkpoint",
                       "the sampler's state is broken (step %lld)",
                       (long long)words[HEADER_WORDS - 1]);
    return DC_OK;
}

dc_status dc_sampler_load(dc_sampler *sampler, const int64_t *words, size_t count) {
    DC_TRY(check_header(sampler, words, count));
    if (sampler->slots)
        DC_TRY(dc_slots_load(sampler->slots, words + HEADER_WORDS, count - HEADER_WORDS));
    else if (count != HEADER_WORDS)
        return dc_fail(DC_BAD_INPUT, "take an earlier checkpoint",
                       "the sampler's state is broken (%zu words)", count);
    sampler->next = (uint64_t)words[HEADER_WORDS - 1];
    return DC_OK;
}

dc_status dc_sampler_copy(dc_sampler *to, const dc_sampler *from) {
    int64_t *words;
    size_t count;
    DC_TRY(dc_sampler_save(from, &words, &count));
    dc_status status = dc_sampler_load(to, words, count);
    free(words);
    return status;
}

void dc_sampler_get_slots(const dc_sampler *sampler, int64_t *words) {
    DC_CHECK(dc_slots_word_count(sampler->slots) == (size_t)sampler->laws.slots * DC_SLOT_WORDS);
    dc_slots_save(sampler->slots, words);
}

dc_status dc_sampler_set_slots(dc_sampler *sampler, const int64_t *words, uint64_t step) {
    DC_TRY(dc_slots_load(sampler->slots, words, (size_t)sampler->laws.slots * DC_SLOT_WORDS));
    sampler->next = step;
    return DC_OK;
}
