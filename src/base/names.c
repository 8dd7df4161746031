// Names, see names.h. Open addressing in a table of a power of two that is at most half full.
#include "base/names.h"

#include "base/hash.h"

#include <limits.h>
#include <string.h>

enum { FIRST_SLOTS = 32 };

void dc_names_init(dc_names *names, dc_arena *arena) {
    *names = (dc_names){.arena = arena};
}

static uint64_t hash_of(const char *name) {
    return dc_hash(name, strlen(name), 0);
}

// The slot of a name, or the free one where it belongs.
static int slot_of(const dc_names *n, const char *name, uint64_t hash) {
    int mask = n->slots - 1, s = (int)(hash & (uint64_t)mask);
    for (; n->slot[s]; s = (s + 1) & mask) {
        int place = n->slot[s] - 1;
        if (n->hash[place] == hash && !strcmp(n->name[place], name)) break;
    }
    return s;
}

static dc_status grow(dc_names *n) {
    if (n->slots > INT_MAX / 2) return dc_fail(DC_NO_MEMORY, NULL, "too many names");
    size_t slots = n->slots ? (size_t)n->slots * 2 : FIRST_SLOTS, room = slots / 2;
    const char **name = dc_arena_take(n->arena, room * sizeof *name);
    uint64_t *hash = dc_arena_take(n->arena, room * sizeof *hash);
    int *slot = dc_arena_take(n->arena, slots * sizeof *slot);
    if (!name || !hash || !slot) return DC_NO_MEMORY;
    if (n->count) memcpy(name, n->name, (size_t)n->count * sizeof *name);
    if (n->count) memcpy(hash, n->hash, (size_t)n->count * sizeof *hash);
    n->name = name;
    n->hash = hash;
    n->slot = slot;
    n->slots = (int)slots;
    for (int i = 0; i < n->count; i++)
        n->slot[slot_of(n, name[i], hash[i])] = i + 1;
    return DC_OK;
}

dc_status dc_names_put(dc_names *n, const char *name, int *place) {
    uint64_t hash = hash_of(name);
    if (n->count == n->slots / 2) DC_TRY(grow(n));
    int s = slot_of(n, name, hash);
    if (!n->slot[s]) {
        const char *copy = dc_arena_text(n->arena, name, strlen(name));
        if (!copy) return DC_NO_MEMORY;
        n->name[n->count] = copy;
        n->hash[n->count] = hash;
        n->slot[s] = ++n->count;
    }
    *place = n->slot[s] - 1;
    return DC_OK;
}

int dc_names_find(const dc_names *n, const char *name) {
    return n->slots ? n->slot[slot_of(n, name, hash_of(name))] - 1 : -1;
}
