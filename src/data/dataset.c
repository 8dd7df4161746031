// Data sets: from the arrays of an npz file to columns and a table of trajectories, see dataset.h. Environments that make their own data come in by the second half of the loader (_make,
// _add, _seal); sample/ and the gather read the result.
//
// All values of a file live in the data set's arena, row after row, because the gather copies rows:
// arrays of uint8 as bytes, all others as float32. An array that has its column's type in the file
// is unpacked straight into the column, several columns at a time. The arena may not outgrow the machine's memory: a file that is too large is refused instead
// of making the system kill somebody. What a file must look like is said by data/layout.
#include "data/dataset.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/pages.h"
#include "base/pool.h"
#include "data/hdf5.h"
#include "data/layout.h"
#include "data/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- making ----

static dc_status make_table(dc_dataset *data, int64_t traj_count, int64_t **traj_start) {
    DC_CHECK(traj_count >= 0 && traj_count < INT64_MAX / 64);
    int64_t *table = dc_arena_take(&data->arena, (size_t)(traj_count + 1) * sizeof *table);
    if (!table) return DC_NO_MEMORY;
    data->traj_count = traj_count;
    data->traj_start = *traj_start = table;
    return DC_OK;
}

static void init(dc_dataset *data, int64_t rows) {
    *data = (dc_dataset){.rows = rows};
    dc_arena_init(&data->arena, dc_machine_memory());
}

dc_status dc_dataset_make(dc_dataset *data, int64_t rows, int64_t traj_count,
                          int64_t **traj_start) {
    init(data, rows);
    return make_table(data, traj_count, traj_start);
}

// Enter a column whose values exist already: its name and shape are copied.
static dc_status enter(dc_dataset *data, dc_column column) {
    const char *name = column.name;
    if (dc_dataset_column(data, name))
        return dc_fail(DC_BAD_INPUT, "rename one of them", "two columns of one name (%s)", name);
    if (data->column_count == DC_COLUMNS_MAX)
        return dc_fail(DC_BAD_INPUT, "leave out arrays that training does not need",
                       "more than %d columns (%s)", DC_COLUMNS_MAX, name);
    column.name = dc_arena_text(&data->arena, name, strlen(name));
    int64_t *shape = dc_arena_take(&data->arena, (size_t)column.ndim * sizeof *shape + 1);
    if (!column.name || !shape) return DC_NO_MEMORY;
    for (int d = 0; d < column.ndim; d++)
        shape[d] = column.shape[d];
    column.shape = shape;
    data->columns[data->column_count++] = column;
    return DC_OK;
}

static dc_status check_width(const char *name, int64_t width) {
    if (width >= 1 && width <= DC_WIDTH_MAX) return DC_OK;
    return dc_fail(DC_BAD_INPUT, "give every row 1 to 2^24 values",
                   "impossible row size (%s: %lld values)", name, (long long)width);
}

static dc_status take_values(dc_dataset *data, dc_type type, int64_t width, void **values) {
    int64_t size = (int64_t)dc_type_size(type);
    if (data->rows > INT64_MAX / (size * width))
        return dc_fail(DC_NO_MEMORY, NULL, "no memory for 2^63 bytes");
    *values = dc_arena_take(&data->arena, (size_t)(data->rows * width * size));
    return *values ? DC_OK : DC_NO_MEMORY;
}

dc_status dc_dataset_add(dc_dataset *data, const char *name, int64_t width, float **values) {
    void *memory = NULL;
    DC_TRY(check_width(name, width));
    DC_TRY(take_values(data, DC_TYPE_F32, width, &memory));
    *values = memory;
    return enter(data, (dc_column){.name = name, .values = *values, .width = (int)width});
}

dc_status dc_dataset_lend(dc_dataset *data, const char *name, int64_t width, const float *values) {
    DC_TRY(check_width(name, width));
    return enter(data, (dc_column){.name = name, .values = values, .width = (int)width});
}

dc_status dc_dataset_add_bytes(dc_dataset *data, const char *name, int ndim, const int64_t *shape,
                               uint8_t **bytes) {
    dc_npy row; // checks a shape
    void *memory = NULL;
    DC_TRY(dc_npy_make(&row, DC_U1, ndim, shape));
    DC_TRY(check_width(name, (int64_t)row.count));
    DC_TRY(take_values(data, DC_TYPE_U8, (int64_t)row.count, &memory));
    *bytes = memory;
    return enter(data, (dc_column){.name = name,
                                   .type = DC_TYPE_U8,
                                   .bytes = *bytes,
                                   .width = (int)row.count,
                                   .ndim = ndim,
                                   .shape = shape,
                                   .whole = true});
}

dc_status dc_dataset_seal(dc_dataset *data) {
    const int64_t *start = data->traj_start;
    DC_CHECK(start[0] == 0 && start[data->traj_count] == data->rows);
    for (int64_t t = 0; t < data->traj_count; t++)
        DC_TRY(dc_layout_check_length(t, start[t], start[t + 1] - start[t]));
    data->hash = dc_dataset_hash(data);
    return DC_OK;
}

void dc_dataset_settle_actions(dc_dataset *data, float *actions, int width) {
    uint64_t n = (uint64_t)data->rows * (uint64_t)width;
    data->actions = DC_BOUNDS_NONE;
    dc_layout_bound(&data->actions, actions, n);
    if (dc_layout_in_range(data->actions)) dc_layout_clip(actions, n);
}

void dc_dataset_fini(dc_dataset *data) {
    dc_store_free(data->store);
    dc_arena_fini(&data->arena);
    *data = (dc_dataset){0};
}

const dc_column *dc_dataset_column(const dc_dataset *data, const char *name) {
    for (int c = 0; c < data->column_count; c++)
        if (strcmp(data->columns[c].name, name) == 0) return &data->columns[c];
    return NULL;
}

// ---- the hash ----

static int by_name(const void *a, const void *b) {
    const dc_column *x = *(const dc_column *const *)a, *y = *(const dc_column *const *)b;
    return strcmp(x->name, y->name);
}

static uint64_t hash_column(const dc_dataset *data, const dc_column *c, uint64_t h) {
    h = dc_hash(c->name, strlen(c->name), h);
    h ^= (uint64_t)c->width | (uint64_t)c->type << 32;
    return dc_hash(dc_column_at(c, 0, 0), (size_t)data->rows * dc_column_row_size(c), h);
}

uint64_t dc_dataset_hash(const dc_dataset *data) {
    const dc_column *sorted[DC_COLUMNS_MAX];
    for (int c = 0; c < data->column_count; c++)
        sorted[c] = &data->columns[c];
    qsort(sorted, (size_t)data->column_count, sizeof sorted[0], by_name);
    uint64_t h = dc_hash(data->traj_start, (size_t)(data->traj_count + 1) * sizeof(int64_t),
                         (uint64_t)data->rows);
    for (int c = 0; c < data->column_count; c++)
        h = hash_column(data, sorted[c], h);
    return h;
}

// ---- reading ----

enum {
    CHUNK = 1 << 16,       // values that are read and checked while they are in cache
    THREADS_MIN = 1 << 22, // bytes of a file that is worth starting threads for
};

// A column to be read by some thread. Errors of that thread come back as text.
typedef struct job {
    const dc_layout *layout;
    void *values[DC_COLUMNS_MAX]; // (rows, width)
    dc_status status[DC_COLUMNS_MAX];
    char error[DC_COLUMNS_MAX][512];
} job;

static dc_status read_chunks(const dc_layout *l, int column, dc_npz_reader *reader, float *values) {
    uint64_t count = l->columns[column].npy.count;
    for (uint64_t at = 0, n; at < count; at += n) {
        n = count - at < CHUNK ? count - at : CHUNK;
        DC_TRY(dc_npz_reader_floats(reader, n, values + at));
        DC_TRY(dc_layout_check(l, column, at, values + at, n));
    }
    return DC_OK;
}

// Bytes need no check. Of floats, stored arrays are checked chunk by chunk, deflated ones as a
// whole: libdeflate knows no chunks.
static dc_status read_values(const dc_layout *l, int column, void *values) {
    const dc_layout_column *c = &l->columns[column];
    if (c->type == DC_TYPE_U8) return dc_npz_fill(l->npz, c->entry, &c->npy, values);
    if (!c->entry->deflated) {
        dc_npz_reader *reader;
        dc_status status = dc_npz_reader_open(&reader, l->npz, c->entry, &c->npy);
        if (status == DC_OK) status = read_chunks(l, column, reader, values);
        dc_npz_reader_close(reader);
        return status;
    }
    if (dc_layout_same_bytes(c))
        DC_TRY(dc_npz_fill(l->npz, c->entry, &c->npy, values));
    else
        DC_TRY(dc_npz_floats(l->npz, c->entry, &c->npy, values));
    return dc_layout_check(l, column, 0, values, c->npy.count);
}

static void read_block(void *ctx, int column) {
    job *j = ctx;
    j->status[column] = read_values(j->layout, column, j->values[column]);
    if (j->status[column] != DC_OK)
        snprintf(j->error[column], sizeof j->error[column], "%s", dc_error());
}

// A column and its memory; an array that is not converted brings its npy header along.
static dc_status make_column(dc_dataset *data, const dc_layout_column *from, void **values) {
    dc_column column = {.name = from->name,
                        .type = from->type,
                        .width = from->width,
                        .ndim = from->npy.ndim - 1,
                        .shape = from->npy.shape + 1,
                        .whole = !dc_dtype_is_float(from->npy.type)};
    if (dc_layout_same_bytes(from))
        DC_TRY(dc_npz_room(&from->npy, &data->arena, values));
    else
        DC_TRY(take_values(data, from->type, from->width, values));
    dc_column_set(&column, *values);
    return enter(data, column);
}

static dc_status read_columns(dc_dataset *data, job *j, dc_pool *pool) {
    for (int c = 0; c < j->layout->count; c++)
        DC_TRY(make_column(data, &j->layout->columns[c], &j->values[c]));
    dc_pool_run(pool, read_block, j, j->layout->count);
    for (int c = 0; c < j->layout->count; c++)
        if (j->status[c] != DC_OK) return dc_fail(j->status[c], NULL, "%s", j->error[c]);
    const dc_layout_column *act = &j->layout->columns[1];
    if (act->real) dc_dataset_settle_actions(data, j->values[1], act->width);
    return DC_OK;
}

static dc_status read_flags(const dc_layout *l, const char *name, const dc_npz_entry *entry,
                            const dc_npy *npy, float *flags) {
    DC_TRY(dc_npz_floats(l->npz, entry, npy, flags));
    return dc_layout_check_flags(l, name, 0, flags, l->rows);
}

// Trajectories from the flags of their last rows; the last one also ends with the file.
static dc_status make_trajectories(dc_dataset *data, const dc_layout *l, const float *flags) {
    int64_t ends = 0, open = 0, *start = NULL, t = 0;
    for (int64_t r = 0; r < data->rows; r++)
        if (flags[r] != 0) ends++, open = r + 1;
    DC_TRY(dc_layout_check_end(l, ends, open));
    DC_TRY(make_table(data, ends + (open < data->rows), &start));
    for (int64_t r = 0; r < data->rows; r++)
        if (flags[r] != 0 || r == data->rows - 1) start[++t] = r + 1;
    return DC_OK;
}

// flags (2, rows): room for those of terminals and those of timeouts
static dc_status read_ends(dc_dataset *data, const dc_layout *l, float *flags) {
    float *timeouts = flags + data->rows;
    DC_TRY(read_flags(l, "terminals", l->terminals, &l->terminals_npy, flags));
    if (l->timeouts) DC_TRY(read_flags(l, "timeouts", l->timeouts, &l->timeouts_npy, timeouts));
    for (int64_t r = 0; l->timeouts && r < data->rows; r++)
        flags[r] = flags[r] != 0 || timeouts[r] != 0;
    return make_trajectories(data, l, flags);
}

static dc_status read_table(dc_dataset *data, const dc_layout *l) {
    float *flags = malloc((size_t)data->rows * (l->timeouts ? 2 : 1) * sizeof *flags);
    if (!flags)
        return dc_fail(DC_NO_MEMORY, NULL, "no memory for the terminals of %s", l->npz->path);
    dc_status status = read_ends(data, l, flags);
    free(flags);
    return status;
}

static dc_status read_all(dc_dataset *data, const dc_npz *npz) {
    dc_layout layout;
    DC_TRY(dc_layout_read(&layout, npz));
    init(data, layout.rows);
    DC_TRY(read_table(data, &layout));
    dc_pool *pool = NULL;
    if (npz->size >= THREADS_MIN)
        (void)dc_pool_new(&pool, 0); // without one, this thread reads alone
    job j = {.layout = &layout};
    dc_status status = read_columns(data, &j, pool);
    dc_pool_free(pool);
    DC_TRY(status);
    status = dc_dataset_seal(data);
    return status == DC_OK ? DC_OK : dc_fail_prefix(status, npz->path);
}

dc_status dc_dataset_read(dc_dataset *data, const dc_npz *npz) {
    *data = (dc_dataset){0};
    dc_status status = read_all(data, npz);
    if (status != DC_OK) dc_dataset_fini(data);
    if (status == DC_NO_MEMORY)
        return dc_fail(status, "take a machine with more memory, or fewer rows",
                       "the data set does not fit into memory (%s: %s)", npz->path, dc_error());
    return status;
}

dc_status dc_dataset_load(dc_dataset *data, const char *path) {
    *data = (dc_dataset){0};
    bool store;
    DC_TRY(dc_folder_find(path, &store));
    if (store) return dc_store_load(data, path);
    DC_TRY(dc_hdf5_refuse(path));
    dc_npz npz;
    DC_TRY(dc_npz_open(&npz, path));
    dc_status status = dc_dataset_read(data, &npz);
    dc_npz_close(&npz);
    return status;
}
