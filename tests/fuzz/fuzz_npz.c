// Fuzz target: npz files, from bytes in memory to a data set. Checksums are not checked, so that
// damaged bytes get as far as they can. Every array is read in all three ways, and they must agree
// that it can be.
#include "data/dataset.h"
#include "data/npz.h"
#include "zip_repair.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

// Values as double: unpacked in pieces by zlib, and, where libdeflate takes the bytes too, from the
// values that it unpacked. (The two differ in what they refuse, never in what they make of the same
// bytes.)
static void read_entry(dc_npz *npz, const dc_npz_entry *entry) {
    dc_npy npy;
    if (dc_npz_head(npz, entry, &npy) != DC_OK) return;
    DC_CHECK(npy.header + npy.bytes == entry->size);
    dc_arena arena;
    void *values;
    dc_arena_init(&arena, 0);
    double *pieces = malloc(npy.count * sizeof *pieces + 1),
           *whole = malloc(npy.count * sizeof *whole + 1);
    DC_CHECK(pieces && whole);
    npz->whole_max = 0;
    dc_status status = dc_npz_doubles(npz, entry, &npy, pieces);
    npz->whole_max = UINT64_MAX;
    if (dc_npz_values(npz, entry, &npy, &arena, &values) == DC_OK && status == DC_OK) {
        dc_npy_doubles(npy.type, values, npy.count, whole);
        DC_CHECK(memcmp(pieces, whole, npy.count * sizeof *whole) == 0);
    }
    free(pieces);
    free(whole);
    dc_arena_fini(&arena);
}

// A column has values of its type and no others; its shape makes its width; actions are no bytes.
static void check_column(const dc_column *c) {
    int64_t width = 1;
    for (int d = 0; d < c->ndim; d++)
        width *= c->shape[d];
    DC_CHECK(width == c->width);
    DC_CHECK((c->type == DC_TYPE_F32) == (c->values != NULL));
    DC_CHECK((c->type == DC_TYPE_U8) == (c->bytes != NULL));
    DC_CHECK(c->type == DC_TYPE_F32 || strcmp(c->name, "act") != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    dc_npz npz;
    if (dc_npz_open_memory(&npz, "fuzz.npz", bytes, n) != DC_OK) return 0;
    npz.skip_crc = true;
    for (size_t i = 0; i < npz.count; i++)
        read_entry(&npz, &npz.entries[i]);
    dc_dataset data;
    if (dc_dataset_read(&data, &npz) == DC_OK) {
        DC_CHECK(data.hash == dc_dataset_hash(&data));
        DC_CHECK(data.traj_count > 0 && data.traj_start[data.traj_count] == data.rows);
        for (int c = 0; c < data.column_count; c++)
            check_column(&data.columns[c]);
    }
    dc_dataset_fini(&data);
    dc_npz_close(&npz);
    return 0;
}
