// Mapping a store, and writing its columns, see store.h. The index was checked by itself
// (store_index.c); here its sizes meet the files. A mapped file is read by the system when a row of
// it is touched and may be dropped again under memory pressure, so a store costs addresses, not
// memory.
#include "data/store.h"

#include "data/layout.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// What is mapped; owned by the data set.
struct dc_store {
    dc_range table, columns[DC_COLUMNS_MAX];
};

void dc_store_free(dc_store *store) {
    if (!store) return;
    dc_range_free(&store->table);
    for (int c = 0; c < DC_COLUMNS_MAX; c++)
        dc_range_free(&store->columns[c]);
    free(store);
}

// ---- reading ----

// The shards of a column, one behind the other.
static dc_status map_column(dc_range *range, const char *folder, const dc_store_index *index,
                            int column) {
    const dc_store_column *c = &index->columns[column];
    size_t row_size = dc_store_row_size(c), at = 0;
    DC_TRY(dc_range_reserve(range, (size_t)index->rows * row_size));
    for (int s = 0; s < index->shard_count; s++) {
        char path[DC_STORE_PATH_MAX];
        size_t size = (size_t)index->shards[s] * row_size;
        DC_TRY(dc_store_column_path(path, folder, c, s));
        DC_TRY(dc_range_fill(range, at, path, size));
        at += size;
    }
    return DC_OK;
}

static dc_status check_table(const dc_store_index *index, const int64_t *start, const char *path) {
    bool good = start[0] == 0 && start[index->traj_count] == index->rows;
    for (int64_t t = 0; good && t < index->traj_count; t++)
        good = start[t + 1] >= start[t] && start[t + 1] - start[t] >= 2;
    if (good) return DC_OK;
    return dc_fail(DC_BAD_INPUT, "convert the data again",
                   "the table of trajectories does not fit the rows (%s)", path);
}

static dc_status map_table(dc_dataset *data, const char *folder, const dc_store_index *index) {
    char path[DC_STORE_PATH_MAX];
    size_t size = ((size_t)index->traj_count + 1) * sizeof(int64_t);
    dc_range *range = &data->store->table;
    DC_TRY(dc_store_path(path, folder, dc_store_table_name));
    DC_TRY(dc_range_reserve(range, size));
    DC_TRY(dc_range_fill(range, 0, path, size));
    data->traj_count = index->traj_count;
    data->traj_start = (const int64_t *)(const void *)range->bytes;
    return check_table(index, data->traj_start, path);
}

// The data set's column number `c`, with copies of what the index says of it.
static dc_status enter_column(dc_dataset *data, const dc_store_index *index, int c) {
    const dc_store_column *from = &index->columns[c];
    char *name = dc_arena_text(&data->arena, from->name, strlen(from->name));
    int64_t *shape = dc_arena_take(&data->arena, sizeof from->shape);
    if (!name || !shape) return DC_NO_MEMORY;
    memcpy(shape, from->shape, sizeof from->shape);
    dc_column *column = &data->columns[data->column_count++];
    *column = (dc_column){.name = name,
                          .type = from->type,
                          .shape = shape,
                          .ndim = from->ndim,
                          .width = from->width,
                          .mapped = true,
                          .whole = !dc_dtype_is_float(from->source)};
    dc_column_set(column, data->store->columns[c].bytes);
    return DC_OK;
}

static dc_status map_all(dc_dataset *data, const char *folder, const dc_store_index *index) {
    data->store = calloc(1, sizeof *data->store);
    if (!data->store) return dc_fail(DC_NO_MEMORY, NULL, "no memory to open %s", folder);
    DC_TRY(map_table(data, folder, index));
    for (int c = 0; c < index->column_count; c++) {
        DC_TRY(map_column(&data->store->columns[c], folder, index, c));
        DC_TRY(enter_column(data, index, c));
    }
    return DC_OK;
}

dc_status dc_store_map(dc_dataset *data, const char *folder, const dc_store_index *index) {
    *data = (dc_dataset){.rows = index->rows, .hash = index->hash, .actions = index->actions};
    dc_arena_init(&data->arena, 0);
    dc_status status = DC_OK;
    if (DC_STORE_PAGE % dc_page_size())
        status = dc_fail(DC_UNSUPPORTED, "convert it to .npz on another machine",
                         "this machine's pages are larger than a store's: %zu bytes, not %d (%s)",
                         dc_page_size(), DC_STORE_PAGE, folder);
    if (status == DC_OK) status = map_all(data, folder, index);
    if (status != DC_OK) dc_dataset_fini(data);
    return status;
}

dc_status dc_store_load(dc_dataset *data, const char *folder) {
    *data = (dc_dataset){0};
    dc_store_index index;
    dc_arena arena;
    dc_arena_init(&arena, 0);
    dc_status status = dc_store_index_read(&index, &arena, folder);
    if (status == DC_OK) status = dc_store_map(data, folder, &index);
    for (int c = 0; c < data->column_count; c++)
        dc_range_random(&data->store->columns[c]);
    dc_arena_fini(&arena);
    return status;
}

// ---- writing ----

void dc_store_writer_init(dc_store_writer *writer, const char *folder,
                          const dc_store_index *index) {
    *writer = (dc_store_writer){.folder = folder, .index = index};
}

void dc_store_writer_fini(dc_store_writer *writer) {
    if (writer->open) dc_save_abort(&writer->save);
    writer->open = false;
}

static dc_status open_shard(dc_store_writer *w) {
    char path[DC_STORE_PATH_MAX];
    DC_TRY(dc_store_column_path(path, w->folder, &w->index->columns[w->column], w->shard));
    DC_TRY(dc_save_open_inside(&w->save, path));
    w->open = true;
    return DC_OK;
}

// Publish a full shard and step to the next, or to the next column.
static dc_status close_shard(dc_store_writer *w) {
    DC_TRY(dc_save_commit(&w->save));
    w->open = false;
    w->row = 0;
    if (++w->shard < w->index->shard_count) return DC_OK;
    w->shard = 0;
    w->column++;
    return DC_OK;
}

dc_status dc_store_writer_append(dc_store_writer *w, const void *rows, int64_t count) {
    int column = w->column;
    DC_CHECK(column < w->index->column_count);
    size_t row_size = dc_store_row_size(&w->index->columns[column]);
    const uint8_t *bytes = rows;
    while (count) {
        DC_CHECK(w->column == column);
        int64_t room = w->index->shards[w->shard] - w->row, n = count < room ? count : room;
        if (!w->open) DC_TRY(open_shard(w));
        DC_TRY(dc_save_write(&w->save, bytes, (size_t)n * row_size));
        bytes += (size_t)n * row_size;
        count -= n;
        w->row += n;
        if (n == room) DC_TRY(close_shard(w));
    }
    return DC_OK;
}

static void remove_file(const char *folder, const char *file) {
    char path[DC_STORE_PATH_MAX];
    if (dc_store_path(path, folder, file) == DC_OK) (void)unlink(path);
}

void dc_store_remove(const char *folder, const dc_store_index *index) {
    char path[DC_STORE_PATH_MAX];
    remove_file(folder, dc_store_index_name); // first: from here on it is unfinished
    for (int c = 0; c < index->column_count; c++)
        for (int s = 0; s < index->shard_count; s++)
            if (dc_store_column_path(path, folder, &index->columns[c], s) == DC_OK)
                (void)unlink(path);
    remove_file(folder, dc_store_table_name);
    (void)rmdir(folder);
}
