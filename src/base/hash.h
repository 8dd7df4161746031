// Hash: 64 bits over a block of memory, fast enough to be taken over every byte of a data set or a
// checkpoint. Finds what went wrong by accident; it is no defence against intent.
#ifndef DC_HASH_H
#define DC_HASH_H

#include <stddef.h>
#include <stdint.h>

// Hash of n bytes; pass the hash of what came before as the seed to chain blocks.
uint64_t dc_hash(const void *bytes, size_t n, uint64_t seed);

#endif
