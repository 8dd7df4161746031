// A mutator for targets that read zip files: half of what the fuzzer made is repaired, so that sizes and offsets of
// the directory and of local headers agree again and bytes get as far as what is behind them.
#ifndef ZIP_REPAIR_H
#define ZIP_REPAIR_H

#include "data/zip.h"

#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *bytes, size_t n, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n, size_t max, unsigned seed);

// Offset of the next record of a kind, or `end`.
static size_t next_record(const uint8_t *bytes, size_t from, size_t end, uint32_t kind) {
    for (; from + 4 <= end; from++)
        if (zip_get32(bytes + from) == kind) return from;
    return end;
}

// Make the local header at `at` say what the directory's record says, its content ending at `end`.
static void repair_entry(uint8_t *bytes, size_t at, size_t end, uint8_t *central) {
    uint8_t *local = bytes + at;
    size_t head = (size_t)ZIP_LOCAL_SIZE + zip_get16(local + 26) + zip_get16(local + 28);
    if (end - at < head) return;
    uint64_t packed = end - at - head;
    zip_put(central + 20, 4, packed);
    if (zip_get16(central + 10) == ZIP_STORED) zip_put(central + 24, 4, packed);
    zip_put(central + 42, 4, at);
    memcpy(local + 4, central + 6, 22); // version needed ... uncompressed size
}

static void repair(uint8_t *bytes, size_t n) {
    size_t end = next_record(bytes, 0, n, ZIP_END), start = next_record(bytes, 0, n, ZIP_CENTRAL);
    if (n < ZIP_END_SIZE || end > n - ZIP_END_SIZE || start > end) return;
    if (next_record(bytes, 0, end, ZIP_END64) < end) return; // 64-bit files are left as they are
    size_t local = next_record(bytes, 0, start, ZIP_LOCAL), central = start, count = 0;
    while (central + ZIP_CENTRAL_SIZE <= end && local + ZIP_LOCAL_SIZE <= start) {
        size_t next = next_record(bytes, local + 4, start, ZIP_LOCAL);
        repair_entry(bytes, local, next, bytes + central);
        local = next;
        central = next_record(bytes, central + 4, end, ZIP_CENTRAL);
        count++;
    }
    zip_put(zip_put(bytes + end + 8, 2, count), 2, count);
    zip_put(zip_put(bytes + end + 12, 4, end - start), 4, start);
    zip_put(bytes + end + 20, 2, n - end - ZIP_END_SIZE);
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n, size_t max, unsigned seed) {
    n = LLVMFuzzerMutate(bytes, n, max);
    if (seed & 1) repair(bytes, n);
    return n;
}

#endif
