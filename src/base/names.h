// Names in the order in which they were first put, each found again in constant time: what turns "was this one there
// before?" from a walk over a list into a look. A key of several parts is one name; dc_json_quote keeps them apart.
#ifndef DC_NAMES_H
#define DC_NAMES_H

#include "base/arena.h"
#include "base/status.h"

#include <stdint.h>

typedef struct dc_names {
    dc_arena *arena;
    const char **name; // (count)
    uint64_t *hash;    // (count) of the names
    int *slot;         // (slots) a place plus 1; 0: free
    int count, slots;
} dc_names;

// Borrows: the arena, where all of it lives.
void dc_names_init(dc_names *names, dc_arena *arena);
// The place of a name, which is put there if it is new.
// Errors: DC_NO_MEMORY.
dc_status dc_names_put(dc_names *names, const char *name, int *place);
// The place of a name; -1 if it was never put.
int dc_names_find(const dc_names *names, const char *name);

#endif
