// Fuzz target: npz files, from bytes in memory to a data set. Checksums are not checked, so that
// damaged bytes get as far as they can. Every array is read in all three ways, and they must agree
// that it can be.
#include "data/dataset.h"
#include "data/npz.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void read_entry(const dc_npz *npz, const dc_npz_entry *entry) {
    dc_npy npy;
    if (dc_npz_head(npz, entry, &npy) != DC_OK) return;
    DC_CHECK(npy.header + npy.bytes == entry->size);
    dc_arena arena;
    void *values;
    dc_arena_init(&arena, 0);
    dc_status raw = dc_npz_values(npz, entry, &npy, &arena, &values);
    float *floats = malloc(npy.count * sizeof *floats + 1);
    double *doubles = malloc(npy.count * sizeof *doubles + 1);
    DC_CHECK(floats && doubles);
    DC_CHECK(dc_npz_floats(npz, entry, &npy, floats) == raw);
    DC_CHECK(dc_npz_doubles(npz, entry, &npy, doubles) == raw);
    free(floats);
    free(doubles);
    dc_arena_fini(&arena);
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
    }
    dc_dataset_fini(&data);
    dc_npz_close(&npz);
    return 0;
}
