// Arena blocks, see arena.h. Blocks double in size so that a parsed document of n bytes costs
// O(log n) calls of the system's allocator.
#include "base/arena.h"

#include "base/status.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64, FIRST_BLOCK = 4096 };

struct dc_arena_block {
    dc_arena_block *next;
    char pad[ALIGN - sizeof(void *)];
    char bytes[];
};

void dc_arena_init(dc_arena *arena, size_t limit) {
    *arena = (dc_arena){.limit = limit};
}

void dc_arena_fini(dc_arena *arena) {
    for (dc_arena_block *b = arena->head, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    *arena = (dc_arena){.limit = arena->limit};
}

static dc_status grow(dc_arena *arena, size_t need) {
    size_t size = arena->size < FIRST_BLOCK / 2 ? FIRST_BLOCK : arena->size * 2;
    if (size > (size_t)1 << 26) size = (size_t)1 << 26;
    if (size < need) size = need;
    size_t whole = size + sizeof(dc_arena_block);
    if (arena->limit && arena->total + whole > arena->limit) {
        if (arena->total + need + sizeof(dc_arena_block) > arena->limit)
            return dc_fail(DC_NO_MEMORY, NULL, "more than %zu bytes would be needed", arena->limit);
        size = need;
        whole = need + sizeof(dc_arena_block);
    }
    whole = (whole + ALIGN - 1) / ALIGN * ALIGN;
    dc_arena_block *b = aligned_alloc(ALIGN, whole);
    if (!b) return dc_fail(DC_NO_MEMORY, NULL, "no memory for %zu bytes", whole);
    b->next = arena->head;
    arena->head = b;
    arena->used = 0;
    arena->size = size;
    arena->total += whole;
    return DC_OK;
}

void *dc_arena_take(dc_arena *arena, size_t size) {
    if (size > SIZE_MAX / 4) {
        (void)dc_fail(DC_NO_MEMORY, NULL, "no memory for %zu bytes", size);
        return NULL;
    }
    size = (size + ALIGN - 1) / ALIGN * ALIGN;
    if (!arena->head || arena->size - arena->used < size)
        if (grow(arena, size) != DC_OK) return NULL;
    void *p = arena->head->bytes + arena->used;
    arena->used += size;
    return memset(p, 0, size);
}

char *dc_arena_text(dc_arena *arena, const char *text, size_t n) {
    char *p = dc_arena_take(arena, n < SIZE_MAX ? n + 1 : n);
    if (p && n) memcpy(p, text, n);
    return p;
}
