// Arena: memory with one owner and one end. Everything that lives as long as a graph, a parsed
// document or a run is taken from an arena and freed with it.
#ifndef DC_ARENA_H
#define DC_ARENA_H

#include <stddef.h>

typedef struct dc_arena_block dc_arena_block;

typedef struct dc_arena {
    dc_arena_block *head; // newest block
    size_t used, size;    // bytes of the newest block
    size_t total;         // bytes taken from the system
    size_t limit;         // refuse to grow past this many bytes; 0: no limit
} dc_arena;

// Start empty; limit 0 means none.
void dc_arena_init(dc_arena *arena, size_t limit);
// Free all that was taken.
void dc_arena_fini(dc_arena *arena);
// Zeroed bytes aligned to 64; NULL (with the status record set) when memory or the limit is spent.
void *dc_arena_take(dc_arena *arena, size_t size);
// A copy of n bytes of text with a closing NUL; NULL as above.
char *dc_arena_text(dc_arena *arena, const char *text, size_t n);

#endif
