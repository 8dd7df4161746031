// Hash, see hash.h. Input comes in words of 8 bytes; four lanes take turns and are folded at the
// end.
#include "base/hash.h"

#include <string.h>

__extension__ typedef unsigned __int128 u128;

// Fold the product of two words: every bit of the result depends on every bit of both.
static inline uint64_t fold(uint64_t a, uint64_t b) {
    u128 product = (u128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t word_at(const uint8_t *p) {
    uint64_t w;
    memcpy(&w, p, sizeof w);
    return w;
}

// Four independent lanes of 16 bytes keep the multipliers busy. A lane adds to what it was, so that
// no input can wipe out what came before.
uint64_t dc_hash(const void *bytes, size_t n, uint64_t seed) {
    static const uint64_t key[4] = {0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f, 0x165667b19e3779f9,
                                    0xd6e8feb86659fd93};
    uint64_t lane[4];
    for (int i = 0; i < 4; i++)
        lane[i] = seed ^ key[3 - i];
    const uint8_t *p = bytes;
    size_t left = n;
    for (; left >= 64; left -= 64, p += 64)
        for (int i = 0; i < 4; i++)
            lane[i] += fold(word_at(p + 16 * i) ^ key[i], word_at(p + 16 * i + 8) ^ lane[i]);
    uint8_t tail[64] = {0};
    if (left) memcpy(tail, p, left);
    for (int i = 0; i < 4; i++)
        lane[i] += fold(word_at(tail + 16 * i) ^ key[i], word_at(tail + 16 * i + 8) ^ lane[i]);
    uint64_t h = seed ^ n;
    for (int i = 0; i < 4; i++)
        h = fold(h ^ lane[i], key[i] ^ (h >> 32)) + lane[i];
    return h;
}
