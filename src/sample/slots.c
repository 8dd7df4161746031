// Slots, see slots.h. The midpoint path is the hot one: a serial pass pops cursors (rows of one
// batch may share a slot, and their order matters), then a second pass over a block of rows walks
// from root to node, all rows of the block one level at a time, which compilers turn into vector
// instructions.
//
// Explicit trees are popped in rounds. A row whose slot ran empty waits, with all later rows of
// that slot; at the end of a round all empty slots that have rows waiting are built together. What
// each slot hands out, and to which row, does not depend on the rounds.
#include "sample/slots.h"

#include "sample/forest.h"
#include "sample/tree.h"

#include <stdlib.h>

enum {
    BLOCK = 64,     // rows decoded together
    SLOT_WORDS = 4, // generation, cursor, start, length
};

// Generations are part of a 64-bit counter together with the slot's number, see rows.h.
#define GENERATION_MAX ((int64_t)1 << 40)

struct dc_slots {
    const dc_trajectories *set;
    const dc_row_table *rows;
    const dc_row_rule *tree; // its TREE rule
    int depth;               // of the deepest midpoint tree that this data set allows
    dc_slot *slot;           // (slots)
    dc_forest forest;        // explicit trees; empty for midpoints
    int32_t *list;           // (slots) slots to be built
    int32_t *waiting;        // (batch) rows to be served; explicit trees only
    bool *listed;            // (slots) whether a slot is in the list; explicit trees only
};

static bool is_explicit(const dc_slots *slots) {
    return slots->tree->split != DC_SPLIT_MIDPOINT;
}

static dc_status allocate(dc_slots *slots) {
    size_t count = (size_t)slots->tree->slots;
    slots->slot = calloc(count, sizeof *slots->slot);
    slots->list = calloc(count, sizeof *slots->list);
    if (!slots->slot || !slots->list) goto no_memory;
    if (!is_explicit(slots)) return DC_OK;
    slots->listed = calloc(count, sizeof *slots->listed);
    slots->waiting = calloc((size_t)slots->rows->batch, sizeof *slots->waiting);
    if (!slots->listed || !slots->waiting) goto no_memory;
    return dc_forest_init(&slots->forest, slots->tree->slots);
no_memory:
    return dc_fail(DC_NO_MEMORY, "lower slots", "no memory for %d slots", slots->tree->slots);
}

dc_status dc_slots_new(dc_slots **out, const dc_trajectories *set, const dc_row_table *rows) {
    *out = NULL;
    int64_t longest = set->longest - 1; // steps
    const dc_row_rule *tree = dc_rows_tree(rows);
    if (tree->split != DC_SPLIT_MIDPOINT && longest >= DC_FOREST_STEPS_MAX)
        return dc_fail(DC_UNSUPPORTED, "use split=midpoint",
                       "a trajectory is too long for trees in memory (%lld steps)",
                       (long long)longest);
    dc_slots *slots = calloc(1, sizeof *slots);
    if (!slots) return dc_fail(DC_NO_MEMORY, NULL, "no memory for slots");
    slots->set = set;
    slots->rows = rows;
    slots->tree = tree;
    slots->depth = dc_tree_depth((uint64_t)longest);
    dc_status status = allocate(slots);
    if (status != DC_OK) return dc_slots_free(slots), status;
    *out = slots;
    return DC_OK;
}

void dc_slots_free(dc_slots *slots) {
    if (!slots) return;
    dc_forest_fini(&slots->forest);
    free(slots->slot);
    free(slots->list);
    free(slots->listed);
    free(slots->waiting);
    free(slots);
}

size_t dc_slots_bytes(const dc_slots *slots) {
    size_t count = (size_t)slots->tree->slots;
    size_t bytes = sizeof *slots + count * (sizeof *slots->slot + sizeof *slots->list);
    if (!is_explicit(slots)) return bytes;
    return bytes + count * sizeof *slots->listed +
           (size_t)slots->rows->batch * sizeof *slots->waiting + dc_forest_bytes(&slots->forest);
}

// The next segment of a slot, with nothing handed out yet.
static void refill(dc_slots *slots, int32_t s) {
    dc_slot *slot = &slots->slot[s];
    dc_pair pair =
        dc_draw_segment(slots->set, slots->rows->seed, (uint32_t)s, (uint64_t)slot->generation);
    slot->generation++;
    slot->cursor = 0;
    slot->start = pair.i;
    slot->length = pair.j - pair.i;
    slot->nodes = 2 * slot->length - 1;
}

// ---- midpoint trees ----

typedef struct midpoint_block {
    uint64_t start[BLOCK];  // first row of the segment
    uint64_t length[BLOCK]; // steps of the segment, then of the nodes on the way down
    uint64_t right[BLOCK];  // turns to come
    uint64_t offset[BLOCK]; // of the node
    uint64_t steps[BLOCK];  // of the node
} midpoint_block;

// Pop a node's name for each of n rows.
static void pop_names(dc_slots *slots, const int32_t *pick, int n, midpoint_block *block) {
    bool down = slots->tree->order == DC_ORDER_DOWN;
    for (int q = 0; q < n; q++) {
        dc_slot *slot = &slots->slot[pick[q]];
        if (slot->cursor == slot->nodes) refill(slots, pick[q]);
        int64_t t = down ? slot->nodes - 1 - slot->cursor : slot->cursor;
        slot->cursor++;
        dc_tree_name name = dc_tree_name_of((uint64_t)slot->length, (uint64_t)t);
        block->start[q] = (uint64_t)slot->start;
        block->length[q] = (uint64_t)slot->length;
        block->right[q] = name.right;
        block->offset[q] = 0;
        block->steps[q] = dc_tree_length((uint64_t)slot->length, name);
    }
}

// Walk down to the nodes. A whole block every time: the loop's length is then known to the
// compiler.
static void walk_names(midpoint_block *block, int depth) {
    for (int level = 0; level < depth; level++)
        for (int q = 0; q < BLOCK; q++)
            dc_tree_turn(&block->offset[q], &block->length[q], &block->right[q]);
}

static void take_midpoints(dc_slots *slots, const int32_t *pick, int count, int64_t *i, int64_t *k,
                           int64_t *j) {
    midpoint_block block = {0};
    for (int row = 0; row < count; row += BLOCK) {
        int n = count - row < BLOCK ? count - row : BLOCK;
        pop_names(slots, pick + row, n, &block);
        walk_names(&block, slots->depth);
        for (int q = 0; q < n; q++) {
            int64_t first = (int64_t)(block.start[q] + block.offset[q]);
            i[row + q] = first;
            k[row + q] = first + (int64_t)(block.steps[q] >> 1);
            j[row + q] = first + (int64_t)block.steps[q];
        }
    }
}

// ---- explicit trees ----

// Split uniform over the inner states, a pure function of (slot, generation, node).
static dc_status choose_random(void *ctx, const dc_forest_level *level) {
    const dc_slots *slots = ctx;
    for (size_t q = 0; q < level->count; q++) {
        uint64_t tree = (uint64_t)level->tree[q];
        uint64_t generation = (uint64_t)slots->slot[tree].generation - 1;
        dc_u32x4 words = dc_philox(slots->rows->seed, DC_STREAM_SPLIT, tree << 40 | generation,
                                   level->node[q] >> 1);
        level->k[q] = dc_draw_split(level->i[q], level->j[q], words, level->node[q] & 1);
    }
    return DC_OK;
}

static dc_status choose_max(void *ctx, const dc_forest_level *level) {
    const dc_row_table *rows = ((const dc_slots *)ctx)->rows;
    return rows->choose(rows->choose_ctx, (int64_t)level->count, level->i, level->j, level->k);
}

// Build the trees of the `count` slots in slots->list over their segments.
static dc_status build(dc_slots *slots, int count, dc_forest_chooser *choose, void *ctx) {
    for (int m = 0; m < count; m++) {
        const dc_slot *slot = &slots->slot[slots->list[m]];
        dc_forest_tree *tree = &slots->forest.trees[slots->list[m]];
        tree->start = slot->start;
        tree->steps = (uint32_t)slot->length;
    }
    return dc_forest_build(&slots->forest, slots->list, count, choose, ctx);
}

// New segments and trees for the slots in slots->list. If that fails they are as they were when
// new.
static dc_status renew(dc_slots *slots, int count) {
    for (int m = 0; m < count; m++)
        refill(slots, slots->list[m]);
    dc_status status =
        build(slots, count, slots->tree->split == DC_SPLIT_MAX ? choose_max : choose_random, slots);
    for (int m = 0; status != DC_OK && m < count; m++)
        slots->slot[slots->list[m]] = (dc_slot){0};
    return status;
}

dc_status dc_slots_rebuild(dc_slots *slots) {
    for (int s = 0; s < slots->tree->slots; s++)
        slots->list[s] = s;
    return renew(slots, slots->tree->slots);
}

// Next node of a slot that has one.
static void pop_node(dc_slots *slots, int32_t s, int64_t *i, int64_t *k, int64_t *j) {
    dc_slot *slot = &slots->slot[s];
    bool down = slots->tree->order == DC_ORDER_DOWN;
    int64_t at = down ? slot->cursor : slot->nodes - 1 - slot->cursor;
    slot->cursor++;
    const dc_forest_node *node = &slots->forest.trees[s].nodes[at];
    *i = slot->start + node->offset;
    *k = *i + node->split;
    *j = *i + node->length;
}

// Serve the waiting rows whose slots are not empty; keep the others, and list their slots.
static int serve(dc_slots *slots, const int32_t *pick, int *waiting, int64_t *i, int64_t *k,
                 int64_t *j) {
    int kept = 0, listed = 0;
    for (int m = 0; m < *waiting; m++) {
        int32_t row = slots->waiting[m], s = pick[row];
        if (slots->slot[s].cursor < slots->slot[s].nodes) {
            pop_node(slots, s, &i[row], &k[row], &j[row]);
            continue;
        }
        slots->waiting[kept++] = row;
        if (!slots->listed[s]) slots->list[listed++] = s;
        slots->listed[s] = true;
    }
    for (int m = 0; m < listed; m++)
        slots->listed[slots->list[m]] = false;
    *waiting = kept;
    return listed;
}

static dc_status take_explicit(dc_slots *slots, const int32_t *pick, int count, int64_t *i,
                               int64_t *k, int64_t *j) {
    int waiting = count;
    for (int row = 0; row < count; row++)
        slots->waiting[row] = row;
    for (;;) {
        int listed = serve(slots, pick, &waiting, i, k, j);
        if (!listed) return DC_OK;
        DC_TRY(renew(slots, listed));
    }
}

dc_status dc_slots_take(dc_slots *slots, const int32_t *pick, int count, int64_t *i, int64_t *k,
                        int64_t *j) {
    DC_CHECK(count <= slots->rows->batch);
    if (is_explicit(slots)) return take_explicit(slots, pick, count, i, k, j);
    take_midpoints(slots, pick, count, i, k, j);
    return DC_OK;
}

// ---- state as words: SLOT_WORDS a slot; MAX adds the splits of the present trees, which no seed
// can give back: length - 1 numbers per tree, those of its inner nodes, breadth first ----

size_t dc_slots_word_count(const dc_slots *slots) {
    size_t count = (size_t)slots->tree->slots * SLOT_WORDS;
    for (int s = 0; slots->tree->split == DC_SPLIT_MAX && s < slots->tree->slots; s++)
        if (slots->slot[s].length) count += (size_t)slots->slot[s].length - 1;
    return count;
}

static int64_t *save_splits(const dc_slot *slot, const dc_forest_tree *tree, int64_t *words) {
    for (int64_t at = 0; at < slot->nodes; at++)
        if (tree->nodes[at].length > 1) *words++ = tree->nodes[at].split;
    return words;
}

void dc_slots_save(const dc_slots *slots, int64_t *words) {
    for (int s = 0; s < slots->tree->slots; s++) {
        const dc_slot *slot = &slots->slot[s];
        *words++ = slot->generation;
        *words++ = slot->cursor;
        *words++ = slot->start;
        *words++ = slot->length;
        if (slots->tree->split == DC_SPLIT_MAX)
            words = save_splits(slot, &slots->forest.trees[s], words);
    }
}

typedef struct word_reader {
    const int64_t *words;
    size_t count; // words left
} word_reader;

static dc_status bad_words(const char *what, int s) {
    return dc_fail(DC_BAD_INPUT, "take an earlier checkpoint",
                   "the sampler's state is broken (%s of slot %d)", what, s);
}

// A chooser that reads what save_splits wrote.
static dc_status choose_saved(void *ctx, const dc_forest_level *level) {
    word_reader *in = ctx;
    if (in->count < level->count) return bad_words("splits", level->tree[0]);
    for (size_t q = 0; q < level->count; q++) {
        int64_t split = in->words[q];
        if (split < 1 || split >= level->j[q] - level->i[q])
            return bad_words("splits", level->tree[q]);
        level->k[q] = level->i[q] + split;
    }
    in->words += level->count;
    in->count -= level->count;
    return DC_OK;
}

// Read one slot. Its segment follows from seed and generation, so it must be the one that was
// saved.
static dc_status load_slot(dc_slots *slots, int32_t s, word_reader *in) {
    if (in->count < SLOT_WORDS) return bad_words("end", s);
    const int64_t *w = in->words;
    int64_t generation = w[0], cursor = w[1];
    dc_slot *slot = &slots->slot[s];
    *slot = (dc_slot){0};
    if (generation < 0 || generation > GENERATION_MAX) return bad_words("generation", s);
    if (generation > 0) {
        slot->generation = generation - 1;
        refill(slots, s);
    }
    if (slot->start != w[2] || slot->length != w[3]) return bad_words("segment", s);
    if (cursor < 0 || cursor > slot->nodes) return bad_words("cursor", s);
    slot->cursor = cursor;
    in->words += SLOT_WORDS;
    in->count -= SLOT_WORDS;
    if (!is_explicit(slots) || !slot->length) return DC_OK;
    slots->list[0] = s;
    if (slots->tree->split == DC_SPLIT_MAX) return build(slots, 1, choose_saved, in);
    return build(slots, 1, choose_random, slots);
}

static dc_status load_all(dc_slots *slots, word_reader *in) {
    for (int s = 0; s < slots->tree->slots; s++)
        DC_TRY(load_slot(slots, s, in));
    return in->count ? bad_words("end", slots->tree->slots - 1) : DC_OK;
}

dc_status dc_slots_load(dc_slots *slots, const int64_t *words, size_t count) {
    word_reader in = {words, count};
    dc_status status = load_all(slots, &in);
    for (int s = 0; status != DC_OK && s < slots->tree->slots; s++)
        slots->slot[s] = (dc_slot){0};
    return status;
}
