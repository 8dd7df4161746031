// Slots: S trees in flight, each over a random segment, that hand out their nodes in order,
// children before parents (or the reverse). Midpoint trees have a closed form (sample/tree.h), so a
// slot of theirs is these few integers; other splits keep explicit trees (sample/forest.h). A slot
// that is asked for a node and has none left draws its next segment first.
#ifndef DC_SLOTS_H
#define DC_SLOTS_H

#include "sample/draw.h"
#include "sample/rows.h"

#include <stddef.h>

typedef struct dc_slot {
    int64_t generation;    // segments drawn so far; the present one is number generation - 1
    int64_t cursor;        // nodes handed out of the present tree
    int64_t nodes;         // of the present tree: 2 length - 1, or 0 before the first
    int64_t start, length; // its segment: first row and steps
} dc_slot;

typedef struct dc_slots dc_slots;

// The slots of a table's TREE rule. Borrows: set, rows.
dc_status dc_slots_new(dc_slots **slots, const dc_trajectories *set, const dc_row_table *rows);
void dc_slots_free(dc_slots *slots); // Nullable
// MAX: build every tree anew, over new segments.
dc_status dc_slots_rebuild(dc_slots *slots);
// Take the next node of slot pick[row] for every row: rows (i, k, j) of the data set, each (count).
dc_status dc_slots_take(dc_slots *slots, const int32_t *pick, int count, int64_t *i, int64_t *k,
                        int64_t *j);

// State as words: how many there are, writing them, and reading them back with every word checked.
// A failed load leaves the slots as they were when new.
size_t dc_slots_word_count(const dc_slots *slots);
void dc_slots_save(const dc_slots *slots, int64_t *words);
dc_status dc_slots_load(dc_slots *slots, const int64_t *words, size_t count);
// Bytes taken from the system.
size_t dc_slots_bytes(const dc_slots *slots);

#endif
