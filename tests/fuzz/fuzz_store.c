// Fuzz target: any bytes as the index of a store. What is taken must keep every promise that
// mapping relies on: sizes that add up and cannot overflow, names that stay inside the folder.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "data/store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_column(const dc_store_index *index, const dc_store_column *c) {
    int64_t width = 1;
    for (int d = 0; d < c->ndim; d++)
        width *= c->shape[d];
    DC_CHECK(width == c->width && width >= 1 && c->source < DC_DTYPES && c->type < DC_TYPES);
    DC_CHECK((uint64_t)index->rows <= (uint64_t)INT64_MAX / sizeof(float) / (uint64_t)width);
    for (int s = 0; s + 1 < index->shard_count; s++)
        DC_CHECK((uint64_t)index->shards[s] * dc_store_row_size(c) % DC_STORE_PAGE == 0);
    DC_CHECK(c->type == DC_TYPE_F32 || strcmp(c->name, "act") != 0);
    DC_CHECK(dc_store_name_ok(c->name) && !strchr(c->name, '/') && strcmp(c->name, "..") != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    dc_store_index index;
    dc_arena arena;
    dc_arena_init(&arena, 0);
    if (dc_store_index_parse(&index, &arena, "fuzz", (const char *)data, size) == DC_OK) {
        int64_t rows = 0;
        for (int s = 0; s < index.shard_count; s++) {
            DC_CHECK(index.shards[s] >= 1 && rows % DC_STORE_UNIT == 0);
            rows += index.shards[s];
        }
        DC_CHECK(rows == index.rows && index.traj_count >= 1 && index.traj_count <= rows / 2);
        for (int c = 0; c < index.column_count; c++)
            check_column(&index, &index.columns[c]);
    }
    dc_arena_fini(&arena);
    return 0;
}
