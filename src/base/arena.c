// Arena blocks, see arena.h. Blocks double in size so that a parsed document of n bytes costs
// O(log n) calls of the system's allocator. Large blocks are pages of the system's own: they come
// zeroed, and columns of a data set are the main guest, for which one pass less over memory and
// huge pages halve the time to load a stored file.
#include "base/arena.h"

#include "base/pages.h"
#include "base/status.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64, FIRST_BLOCK = 4096, PAGED_MIN = 1 << 20 };

struct dc_arena_block {
    dc_arena_block *next;
    size_t paged; // bytes of the whole block when it is made of pages, else 0
    char pad[ALIGN - sizeof(void *) - sizeof(size_t)];
    char bytes[];
};

void dc_arena_init(dc_arena *arena, size_t limit) {
    *arena = (dc_arena){.limit = limit};
}

void dc_arena_fini(dc_arena *arena) {
    for (dc_arena_block *b = arena->head, *next; b; b = next) {
        next = b->next;
        if (b->paged)
            dc_pages_free(b, b->paged);
        else
            free(b);
    }
    *arena = (dc_arena){.limit = arena->limit};
}

static dc_arena_block *new_block(size_t whole) {
    bool paged = whole >= PAGED_MIN;
    dc_arena_block *b = paged ? dc_pages_take(whole) : aligned_alloc(ALIGN, whole);
    if (b) b->paged = paged ? whole : 0;
    return b;
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
    dc_arena_block *b = new_block(whole);
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
    DC_CHECK(arena->head != NULL);
    void *p = arena->head->bytes + arena->used;
    arena->used += size;
    return arena->head->paged ? p : memset(p, 0, size); // pages are zero, and none is taken twice
}

char *dc_arena_text(dc_arena *arena, const char *text, size_t n) {
    char *p = dc_arena_take(arena, n < SIZE_MAX ? n + 1 : n);
    if (p && n) memcpy(p, text, n);
    return p;
}
