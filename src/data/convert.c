// Conversion, see convert.h.
//
// npz -> store: the table of trajectories first, then column after column, because that is how npz
// files hold them: each array of each file is unpacked once, in order, and shards are filled as the
// rows come. Actions are read twice: whether they are clipped depends on all of them. Values are
// checked and clipped as data/dataset would, so both paths into the program give the same numbers and
// the same hash. The hash is taken over the mapped result, which also
// proves that it can be read.
//
// store -> npz: arrays get back the names, row shapes and whole-number types that they came with.
// Floats of other sizes stay float32, as training sees them. Arrays of uint8 are bytes on both
// sides and on the way.
#include "data/convert.h"

#include "base/file.h"

#include <stdlib.h>
#include <string.h>

enum { BUFFER = 1 << 18 }; // values that are in flight at a time

static dc_status no_memory(const dc_convert *c) {
    return dc_fail(DC_NO_MEMORY, NULL, "no memory to convert to %s", c->output);
}

// Count finished bytes and tell.
static dc_status advance(dc_convert *c, uint64_t bytes) {
    c->done += bytes;
    if (!c->progress || c->progress(c->progress_ctx, c->done, c->bytes)) return DC_OK;
    return dc_fail(DC_INTERRUPTED, NULL, "stopped; nothing was written (%s)", c->output);
}

// ---- opening npz files ----

static dc_status differs(const dc_convert *c, int input, const char *name) {
    return dc_fail(DC_BAD_INPUT, "convert files of one data set, with the same arrays",
                   "array '%s' is not alike in %s and %s", name, c->inputs[0].path,
                   c->inputs[input].path);
}

static bool same_row(const dc_npy *a, const dc_npy *b) {
    bool same = a->type == b->type && a->ndim == b->ndim;
    for (int d = 1; same && d < a->ndim; d++)
        same = a->shape[d] == b->shape[d];
    return same;
}

static const dc_layout_column *find_column(const dc_layout *l, const char *name) {
    for (int i = 0; i < l->count; i++)
        if (!strcmp(l->columns[i].name, name)) return &l->columns[i];
    return NULL;
}

// Does file `input` have the columns of the first one, in any order?
static dc_status check_alike(const dc_convert *c, int input) {
    const dc_layout *first = &c->layouts[0], *other = &c->layouts[input];
    for (int i = 0; i < first->count; i++) {
        const dc_layout_column *column = find_column(other, first->columns[i].name);
        if (!column || !same_row(&column->npy, &first->columns[i].npy))
            return differs(c, input, first->columns[i].entry->name);
    }
    for (int i = 0; i < other->count; i++)
        if (!find_column(first, other->columns[i].name))
            return differs(c, input, other->columns[i].entry->name);
    return DC_OK;
}

static dc_status open_inputs(dc_convert *c, const char *const *inputs, int count) {
    c->inputs = calloc((size_t)count, sizeof *c->inputs);
    c->layouts = calloc((size_t)count, sizeof *c->layouts);
    if (!c->inputs || !c->layouts) return no_memory(c);
    for (int i = 0; i < count; i++) {
        bool folder;
        DC_TRY(dc_folder_find(inputs[i], &folder));
        if (folder)
            return dc_fail(DC_BAD_INPUT, "give an output that ends in .npz, or .npz files as input",
                           "a folder cannot be converted into a folder (%s)", inputs[i]);
        DC_TRY(dc_npz_open(&c->inputs[i], inputs[i]));
        c->input_count++;
        DC_TRY(dc_layout_read(&c->layouts[i], &c->inputs[i]));
        DC_TRY(check_alike(c, i));
        c->index.rows += c->layouts[i].rows;
    }
    return DC_OK;
}

static dc_status plan_columns(dc_convert *c) {
    const dc_layout *l = &c->layouts[0];
    for (int i = 0; i < l->count; i++) {
        const dc_npy *npy = &l->columns[i].npy;
        dc_store_column *column = &c->index.columns[i];
        if (!dc_store_name_ok(l->columns[i].name))
            return dc_fail(DC_BAD_INPUT, "rename it: letters, digits, '_', '-' and '.', at most 64",
                           "the name cannot be that of a file (array '%s' of %s)",
                           l->columns[i].name, l->npz->path);
        *column = (dc_store_column){
            .type = l->columns[i].type, .source = npy->type, .width = l->columns[i].width};
        memcpy(column->name, l->columns[i].name, strlen(l->columns[i].name));
        column->ndim = npy->ndim - 1;
        for (int d = 0; d < column->ndim; d++)
            column->shape[d] = npy->shape[d + 1];
        c->bytes += (uint64_t)c->index.rows * dc_store_row_size(column);
    }
    c->index.column_count = l->count;
    c->index.terminals = l->terminals_npy.type;
    return DC_OK;
}

static dc_status plan_shards(dc_convert *c) {
    int64_t each = c->options.rows_per_shard, rows = c->index.rows;
    DC_CHECK(each > 0 && each % DC_STORE_UNIT == 0);
    int64_t count = rows / each + (rows % each != 0);
    if (count > 1 && !dc_store_whole_pages(&c->index, each))
        return dc_fail(DC_BAD_INPUT, "give a multiple of 4096",
                       "shards of %lld rows are no whole pages of each column of bytes",
                       (long long)each);
    if (count > DC_STORE_FILES_MAX / c->index.column_count)
        return dc_fail(DC_BAD_INPUT, "give more rows a shard",
                       "%lld shards of %d columns are too many files", (long long)count,
                       c->index.column_count);
    int64_t *shards = dc_arena_take(&c->arena, (size_t)count * sizeof *shards);
    if (!shards) return DC_NO_MEMORY;
    for (int64_t s = 0; s < count; s++)
        shards[s] = s + 1 < count ? each : rows - s * each;
    c->index.shards = shards;
    c->index.shard_count = (int)count;
    return DC_OK;
}

static dc_status open_to_store(dc_convert *c, const char *const *inputs, int count) {
    if (!dc_folder_empty(c->output))
        return dc_fail(DC_BAD_INPUT, "remove it, or choose another name",
                       "something is there already (%s)", c->output);
    DC_TRY(open_inputs(c, inputs, count));
    DC_TRY(plan_columns(c));
    DC_TRY(plan_shards(c));
    c->disk = c->bytes + c->bytes / 64 + (1 << 20); // the table, and what a file system needs
    return DC_OK;
}

// ---- npz -> store ----

// Trajectories as they are found.
typedef struct table {
    dc_save *save;
    int64_t count, start; // of the trajectory that is open
} table;

static dc_status end_trajectory(table *t, int64_t end) {
    DC_TRY(dc_layout_check_length(t->count, t->start, end - t->start));
    t->count++;
    t->start = end;
    return dc_save_write(t->save, &end, sizeof end);
}

// An array of flags that is read in order.
typedef struct flag_reader {
    const dc_layout *layout;
    const char *name;
    dc_npz_reader *reader; // NULL: the file has no such array
    float *flags;          // (BUFFER)
} flag_reader;

static dc_status next_flags(const flag_reader *f, int64_t row, int64_t n) {
    DC_TRY(dc_npz_reader_floats(f->reader, (uint64_t)n, f->flags));
    return dc_layout_check_flags(f->layout, f->name, row, f->flags, n);
}

// The flags of one file, whose first row is row `base` of the store.
static dc_status scan_flags(dc_convert *c, const dc_layout *l, const flag_reader *terminals,
                            const flag_reader *timeouts, int64_t base, table *t) {
    int64_t before = t->count;
    for (int64_t row = 0, n; row < l->rows; row += n) {
        n = l->rows - row < BUFFER ? l->rows - row : BUFFER;
        DC_TRY(next_flags(terminals, row, n));
        if (timeouts->reader) DC_TRY(next_flags(timeouts, row, n));
        for (int64_t r = 0; r < n; r++)
            if (terminals->flags[r] != 0 || (timeouts->reader && timeouts->flags[r] != 0))
                DC_TRY(end_trajectory(t, base + row + r + 1));
        DC_TRY(advance(c, 0));
    }
    DC_TRY(dc_layout_check_end(l, t->count - before, t->start - base));
    return t->start < base + l->rows ? end_trajectory(t, base + l->rows) : DC_OK;
}

static dc_status scan_file(dc_convert *c, int input, int64_t base, table *t) {
    const dc_layout *l = &c->layouts[input];
    flag_reader terminals = {l, "terminals", NULL, c->buffer};
    flag_reader timeouts = {l, "timeouts", NULL, (float *)(void *)c->whole};
    dc_status status =
        dc_npz_reader_open(&terminals.reader, l->npz, l->terminals, &l->terminals_npy);
    if (status == DC_OK && l->timeouts)
        status = dc_npz_reader_open(&timeouts.reader, l->npz, l->timeouts, &l->timeouts_npy);
    if (status == DC_OK) status = scan_flags(c, l, &terminals, &timeouts, base, t);
    dc_npz_reader_close(terminals.reader);
    dc_npz_reader_close(timeouts.reader);
    return status;
}

static dc_status scan_all(dc_convert *c, dc_save *save) {
    table t = {.save = save};
    int64_t base = 0;
    DC_TRY(dc_save_write(save, &base, sizeof base));
    for (int i = 0; i < c->input_count; base += c->layouts[i++].rows)
        DC_TRY(scan_file(c, i, base, &t));
    c->index.traj_count = t.count;
    return dc_save_commit(save);
}

static dc_status write_table(dc_convert *c) {
    char path[DC_STORE_PATH_MAX];
    dc_save save;
    DC_TRY(dc_store_path(path, c->output, dc_store_table_name));
    DC_TRY(dc_save_open_inside(&save, path));
    dc_status status = scan_all(c, &save);
    dc_save_abort(&save);
    return status;
}

// The next `count` values of an array, the first of which is its number `first`.
static dc_status unpack(dc_convert *c, const dc_layout *l, int column, dc_npz_reader *reader,
                        uint64_t first, uint64_t count) {
    if (l->columns[column].type == DC_TYPE_U8)
        return dc_npz_reader_values(reader, count, c->buffer);
    DC_TRY(dc_npz_reader_floats(reader, count, c->buffer));
    DC_TRY(dc_layout_check(l, column, first, c->buffer, count));
    if (l->columns[column].real && dc_layout_in_range(c->actions)) dc_layout_clip(c->buffer, count);
    return DC_OK;
}

// The bounds of the real actions of one file.
static dc_status bound_actions(dc_convert *c, const dc_layout *l) {
    const dc_layout_column *act = find_column(l, "act");
    dc_npz_reader *reader;
    dc_status status = dc_npz_reader_open(&reader, l->npz, act->entry, &act->npy);
    for (uint64_t at = 0, n; status == DC_OK && at < act->npy.count; at += n) {
        n = act->npy.count - at < BUFFER ? act->npy.count - at : BUFFER;
        status = dc_npz_reader_floats(reader, n, c->buffer);
        if (status == DC_OK) dc_layout_bound(&c->actions, c->buffer, n);
        if (status == DC_OK) status = advance(c, 0);
    }
    dc_npz_reader_close(reader);
    return status;
}

// Those of all files, for the index if they are not what a store without a word of them has.
static dc_status bound_all(dc_convert *c) {
    c->actions = DC_BOUNDS_NONE;
    for (int i = 0; i < c->input_count && c->layouts[i].columns[1].real; i++)
        DC_TRY(bound_actions(c, &c->layouts[i]));
    if (!dc_layout_in_range(c->actions)) c->index.actions = c->actions;
    return DC_OK;
}

// One array of one file: unpack, check, append.
static dc_status copy_array(dc_convert *c, dc_store_writer *w, const dc_layout *l, int column,
                            dc_npz_reader *reader) {
    int64_t width = l->columns[column].width, most = width < BUFFER ? BUFFER / width : 1;
    for (int64_t row = 0, n; row < l->rows; row += n) {
        n = l->rows - row < most ? l->rows - row : most;
        uint64_t first = (uint64_t)(row * width), count = (uint64_t)(n * width);
        DC_TRY(unpack(c, l, column, reader, first, count));
        DC_TRY(dc_store_writer_append(w, c->buffer, n));
        DC_TRY(advance(c, count * dc_type_size(l->columns[column].type)));
    }
    return DC_OK;
}

static dc_status copy_column(dc_convert *c, dc_store_writer *w, int column) {
    for (int i = 0; i < c->input_count; i++) {
        const dc_layout *l = &c->layouts[i];
        const dc_layout_column *from = find_column(l, c->index.columns[column].name);
        DC_CHECK(from);
        dc_npz_reader *reader;
        dc_status status = dc_npz_reader_open(&reader, l->npz, from->entry, &from->npy);
        if (status == DC_OK) status = copy_array(c, w, l, (int)(from - l->columns), reader);
        dc_npz_reader_close(reader);
        DC_TRY(status);
    }
    return DC_OK;
}

static dc_status copy_columns(dc_convert *c) {
    dc_store_writer writer;
    dc_store_writer_init(&writer, c->output, &c->index);
    dc_status status = DC_OK;
    for (int i = 0; status == DC_OK && i < c->index.column_count; i++)
        status = copy_column(c, &writer, i);
    dc_store_writer_fini(&writer);
    return status;
}

static dc_status write_index(dc_convert *c) {
    dc_dataset data;
    DC_TRY(dc_store_map(&data, c->output, &c->index));
    c->index.hash = dc_dataset_hash(&data);
    dc_dataset_fini(&data);
    return dc_store_index_write(&c->index, c->output);
}

static dc_status check_disk(const dc_convert *c, const char *folder) {
    uint64_t room = dc_folder_free(folder);
    if (room >= c->disk) return DC_OK;
    return dc_fail(DC_IO, "free some space on that disk or choose another",
                   "%.1f GB are needed but only %.1f GB are free (%s)", (double)c->disk / 1e9,
                   (double)room / 1e9, c->output);
}

static dc_status write_store(dc_convert *c) {
    DC_TRY(check_disk(c, c->output));
    DC_TRY(write_table(c));
    DC_TRY(bound_all(c));
    DC_TRY(copy_columns(c));
    return write_index(c);
}

static dc_status run_to_store(dc_convert *c) {
    dc_status status = dc_folder_make(c->output);
    if (status == DC_OK) status = write_store(c);
    if (status != DC_OK) dc_store_remove(c->output, &c->index);
    return status;
}

// ---- store -> npz ----

static dc_status open_to_npz(dc_convert *c, const char *folder) {
    bool exists;
    DC_TRY(dc_folder_find(folder, &exists));
    if (!exists)
        return dc_fail(DC_BAD_INPUT, "only a store, which is a folder, is converted to .npz",
                       "not a folder (%s)", folder);
    DC_TRY(dc_store_index_read(&c->index, &c->arena, folder));
    DC_TRY(dc_store_map(&c->data, folder, &c->index));
    for (int i = 0; i < c->data.column_count; i++)
        c->bytes += (uint64_t)c->data.rows * dc_column_row_size(&c->data.columns[i]);
    c->disk = 2 * c->bytes + (1 << 20); // arrays are spooled before they are put together
    return DC_OK;
}

// The type that an array is written in: whole numbers as they were, anything else as float32.
static dc_dtype written_type(dc_dtype source) {
    return dc_dtype_is_float(source) ? DC_F4 : source;
}

// float32 to whole numbers of `size` bytes.
static void to_whole(const float *from, int64_t n, size_t size, uint8_t *to) {
    for (int64_t i = 0; i < n; i++, to += size) {
        float x = from[i] >= -0x1p63f && from[i] < 0x1p63f ? from[i] : 0;
        int64_t whole = (int64_t)x;
        memcpy(to, &whole, size); // little-endian
    }
}

// Append rows of float32 in the type of their array.
static dc_status append(dc_convert *c, dc_npz_writer *w, int array, dc_dtype type,
                        const float *values, int64_t rows, int64_t width) {
    if (type == DC_F4) return dc_npz_writer_append(w, array, values, rows);
    to_whole(values, rows * width, dc_dtype_size(type), c->whole);
    return dc_npz_writer_append(w, array, c->whole, rows);
}

static dc_status put_rows(dc_convert *c, dc_npz_writer *w, int array, int column, dc_dtype type) {
    const dc_column *from = &c->data.columns[column];
    int64_t width = from->width, most = width < BUFFER ? BUFFER / width : 1;
    for (int64_t row = 0, n; row < c->data.rows; row += n) {
        n = c->data.rows - row < most ? c->data.rows - row : most;
        if (from->type == DC_TYPE_U8)
            DC_TRY(dc_npz_writer_append(w, array, dc_column_at(from, row, 0), n));
        else
            DC_TRY(append(c, w, array, type, dc_column_at(from, row, 0), n, width));
        DC_TRY(advance(c, (uint64_t)n * dc_column_row_size(from)));
    }
    return DC_OK;
}

static const char *array_name(const char *column) {
    if (!strcmp(column, "obs")) return "observations";
    return !strcmp(column, "act") ? "actions" : column;
}

static dc_status put_column(dc_convert *c, dc_npz_writer *w, int column) {
    const dc_store_column *from = &c->index.columns[column];
    dc_dtype type = from->type == DC_TYPE_U8 ? DC_U1 : written_type(from->source);
    int array;
    DC_TRY(dc_npz_writer_add(w, array_name(from->name), type, from->ndim, from->shape, &array));
    return put_rows(c, w, array, column, type);
}

static dc_status put_terminals(dc_convert *c, dc_npz_writer *w) {
    dc_dtype type = written_type(c->index.terminals);
    int array;
    DC_TRY(dc_npz_writer_add(w, "terminals", type, 0, NULL, &array));
    const int64_t *end = c->data.traj_start + 1;
    for (int64_t row = 0, n; row < c->data.rows; row += n) {
        n = c->data.rows - row < BUFFER ? c->data.rows - row : BUFFER;
        float *flags = c->buffer;
        memset(flags, 0, (size_t)n * sizeof *flags);
        for (; *end - row <= n && *end < c->data.rows; end++)
            flags[*end - row - 1] = 1;
        if (row + n == c->data.rows) flags[n - 1] = 1;
        DC_TRY(append(c, w, array, type, flags, n, 1));
    }
    return DC_OK;
}

static dc_status write_npz(dc_convert *c, dc_npz_writer *w) {
    for (int i = 0; i < c->index.column_count; i++)
        DC_TRY(put_column(c, w, i));
    DC_TRY(put_terminals(c, w));
    return dc_npz_writer_save(w);
}

static dc_status run_to_npz(dc_convert *c) {
    const char *slash = strrchr(c->output, '/');
    size_t n = slash ? (size_t)(slash - c->output) : 0;
    const char *folder = slash ? dc_arena_text(&c->arena, c->output, n ? n : 1) : ".";
    if (!folder) return DC_NO_MEMORY;
    DC_TRY(check_disk(c, folder));
    dc_npz_writer *writer;
    DC_TRY(dc_npz_writer_new(&writer, c->output, c->options.level));
    dc_status status = write_npz(c, writer);
    dc_npz_writer_free(writer);
    return status;
}

// ---- both ways ----

static bool is_npz(const char *path) {
    size_t n = strlen(path);
    return n >= 4 && !strcmp(path + n - 4, ".npz");
}

// Room for BUFFER values or the widest row, as float and as the widest whole number.
static dc_status take_buffer(dc_convert *c) {
    size_t values = BUFFER;
    for (int i = 0; i < c->index.column_count; i++)
        if ((size_t)c->index.columns[i].width > values) values = (size_t)c->index.columns[i].width;
    c->buffer = malloc(values * sizeof(float));
    c->whole = malloc(values * 8); // bytes of the widest type
    return c->buffer && c->whole ? DC_OK : no_memory(c);
}

dc_status dc_convert_open(dc_convert *c, const char *const *inputs, int count, const char *output,
                          const dc_convert_options *options) {
    *c = (dc_convert){.output = output, .options = *options, .to_store = !is_npz(output)};
    dc_arena_init(&c->arena, 0);
    DC_CHECK(count >= 1);
    if (c->to_store)
        DC_TRY(open_to_store(c, inputs, count));
    else if (count == 1)
        DC_TRY(open_to_npz(c, inputs[0]));
    else
        return dc_fail(DC_USAGE, "give one store, or a folder as the output",
                       "several inputs cannot become one file (%s)", output);
    return take_buffer(c);
}

dc_status dc_convert_run(dc_convert *c, dc_convert_progress *progress, void *ctx) {
    c->progress = progress;
    c->progress_ctx = ctx;
    return c->to_store ? run_to_store(c) : run_to_npz(c);
}

void dc_convert_close(dc_convert *c) {
    for (int i = 0; i < c->input_count; i++)
        dc_npz_close(&c->inputs[i]);
    free(c->inputs);
    free(c->layouts);
    free(c->buffer);
    free(c->whole);
    dc_dataset_fini(&c->data);
    dc_arena_fini(&c->arena);
    *c = (dc_convert){0};
}
