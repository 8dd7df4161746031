// Data sets: from the arrays of an npz file to columns of float32 and a table of trajectories, see
// dataset.h. Environments that make their own data come in by the second half of the loader (_make,
// _add, _seal); sample/ and the gather read the result.
//
// All values live in the data set's arena as float32, row after row, because the gather copies
// rows. A file's float32 array is unpacked straight into its column. The arena may not outgrow the
// machine's memory: a file that is too large is refused instead of making the system kill somebody.
//
// Files come from anywhere, so a file is checked here once and nowhere later: sizes agree,
// observations and actions are finite, every trajectory has at least two rows and the last one
// ends.
#include "data/dataset.h"

#include "base/hash.h"
#include "base/log.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WIDTH_MAX = 1 << 24 }; // values of a row: sums of a few widths stay within int

static const char layout[] =
    "a data set has arrays observations (N, ...), actions (N, ...) and terminals (N)";

// ---- making ----

// Bytes of memory that this machine has; 0 when it does not tell.
static size_t machine_memory(void) {
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (size_t)pages * (size_t)size : 0;
}

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
    dc_arena_init(&data->arena, machine_memory());
}

dc_status dc_dataset_make(dc_dataset *data, int64_t rows, int64_t traj_count,
                          int64_t **traj_start) {
    init(data, rows);
    return make_table(data, traj_count, traj_start);
}

// Enter a column whose values exist already.
static dc_status enter(dc_dataset *data, const char *name, int64_t width, const float *values) {
    if (dc_dataset_column(data, name))
        return dc_fail(DC_BAD_INPUT, "rename one of them", "two columns of one name (%s)", name);
    if (data->column_count == DC_COLUMNS_MAX)
        return dc_fail(DC_BAD_INPUT, "leave out arrays that training does not need",
                       "more than %d columns (%s)", DC_COLUMNS_MAX, name);
    const char *copy = dc_arena_text(&data->arena, name, strlen(name));
    if (!copy) return DC_NO_MEMORY;
    data->columns[data->column_count++] = (dc_column){copy, values, (int)width};
    return DC_OK;
}

static dc_status check_width(const char *name, int64_t width) {
    if (width >= 1 && width <= WIDTH_MAX) return DC_OK;
    return dc_fail(DC_BAD_INPUT, "give every row 1 to 2^24 values",
                   "impossible row size (%s: %lld values)", name, (long long)width);
}

static dc_status take_values(dc_dataset *data, int64_t width, float **values) {
    if (data->rows > INT64_MAX / (4 * width))
        return dc_fail(DC_NO_MEMORY, NULL, "no memory for 2^63 bytes");
    *values = dc_arena_take(&data->arena, (size_t)(data->rows * width) * sizeof **values);
    return *values ? DC_OK : DC_NO_MEMORY;
}

dc_status dc_dataset_add(dc_dataset *data, const char *name, int64_t width, float **values) {
    DC_TRY(check_width(name, width));
    DC_TRY(take_values(data, width, values));
    return enter(data, name, width, *values);
}

dc_status dc_dataset_seal(dc_dataset *data) {
    const int64_t *start = data->traj_start;
    DC_CHECK(start[0] == 0 && start[data->traj_count] == data->rows);
    for (int64_t t = 0; t < data->traj_count; t++)
        if (start[t + 1] - start[t] < 2)
            return dc_fail(
                DC_BAD_INPUT, "a trajectory needs two rows or more, its last one terminal",
                "trajectory %lld has a single row (row %lld)", (long long)t, (long long)start[t]);
    data->hash = dc_dataset_hash(data);
    return DC_OK;
}

void dc_dataset_fini(dc_dataset *data) {
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

uint64_t dc_dataset_hash(const dc_dataset *data) {
    const dc_column *sorted[DC_COLUMNS_MAX];
    for (int c = 0; c < data->column_count; c++)
        sorted[c] = &data->columns[c];
    qsort(sorted, (size_t)data->column_count, sizeof sorted[0], by_name);
    uint64_t h = dc_hash(data->traj_start, (size_t)(data->traj_count + 1) * sizeof(int64_t),
                         (uint64_t)data->rows);
    for (int c = 0; c < data->column_count; c++) {
        size_t values = (size_t)data->rows * (size_t)sorted[c]->width;
        h = dc_hash(sorted[c]->name, strlen(sorted[c]->name), h);
        h = dc_hash(sorted[c]->values, values * sizeof(float), h ^ (uint64_t)sorted[c]->width);
    }
    return h;
}

// ---- reading ----

// An array of the file and what its header says.
typedef struct array {
    const dc_npz_entry *entry;
    dc_npy npy;
} array;

static int64_t row_width(const dc_npy *npy) {
    return npy->shape[0] ? (int64_t)(npy->count / (uint64_t)npy->shape[0]) : 0;
}

// The names of what a file holds, for the error that says what it does not hold.
static dc_status missing(const dc_npz *npz, const char *name) {
    char list[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < npz->count && used + 40 < sizeof list; i++) {
        const char *text = npz->entries[i].name;
        size_t n = strlen(text) < 30 ? strlen(text) : 30;
        if (used) list[used++] = ' ';
        memcpy(list + used, text, n);
        used += n;
        list[used] = 0;
    }
    return dc_fail(DC_BAD_INPUT, layout, "no array '%s' (%s has: %s)", name, npz->path,
                   used ? list : "nothing");
}

static dc_status find(const dc_npz *npz, const char *name, array *a) {
    a->entry = dc_npz_find(npz, name);
    if (!a->entry) return missing(npz, name);
    DC_TRY(dc_npz_head(npz, a->entry, &a->npy));
    if (a->npy.ndim == 0 || a->npy.count == 0)
        return dc_fail(DC_BAD_INPUT, layout, "array '%s' has no rows (%s)", name, npz->path);
    return DC_OK;
}

// Index of the first value that is NaN or infinite, or n. Blocks keep the loop free of exits.
static size_t first_not_finite(const float *v, size_t n) {
    enum { BLOCK = 4096 };
    for (size_t start = 0; start < n; start += BLOCK) {
        size_t end = n - start < BLOCK ? n : start + BLOCK;
        uint32_t most = 0;
        for (size_t i = start; i < end; i++) {
            uint32_t bits;
            memcpy(&bits, v + i, sizeof bits);
            bits &= 0x7fffffff;
            most = bits > most ? bits : most;
        }
        if (most < 0x7f800000) continue;
        while (isfinite(v[start]))
            start++;
        return start;
    }
    return n;
}

static dc_status check_finite(const dc_npz *npz, const array *a, const float *values) {
    size_t at = first_not_finite(values, a->npy.count);
    if (at == a->npy.count) return DC_OK;
    return dc_fail(DC_BAD_INPUT, "repair or remove that trajectory",
                   "NaN, or infinite as float32, in '%s' at row %lld (%s)", a->entry->name,
                   (long long)(at / (size_t)row_width(&a->npy)), npz->path);
}

static void clip(float *v, size_t n) {
    const float most = (float)(1 - 1e-5);
    for (size_t i = 0; i < n; i++) {
        float x = v[i] < -most ? -most : v[i];
        v[i] = x > most ? most : x;
    }
}

// One array becomes one column; float32 is unpacked in place.
static dc_status read_column(dc_dataset *data, const dc_npz *npz, const array *a, const char *name,
                             float **values) {
    int64_t width = row_width(&a->npy);
    DC_TRY(check_width(name, width));
    if (a->npy.type == DC_F4) {
        void *memory = NULL;
        DC_TRY(dc_npz_values(npz, a->entry, &a->npy, &data->arena, &memory));
        *values = memory;
    } else {
        DC_TRY(take_values(data, width, values));
        DC_TRY(dc_npz_floats(npz, a->entry, &a->npy, *values));
    }
    dc_status status = enter(data, name, width, *values);
    return status == DC_OK ? DC_OK : dc_fail_prefix(status, npz->path);
}

static dc_status read_main(dc_dataset *data, const dc_npz *npz, const array *obs,
                           const array *act) {
    float *values = NULL;
    DC_TRY(read_column(data, npz, obs, "obs", &values));
    DC_TRY(check_finite(npz, obs, values));
    DC_TRY(read_column(data, npz, act, "act", &values));
    DC_TRY(check_finite(npz, act, values));
    if (dc_dtype_is_float(act->npy.type)) clip(values, act->npy.count);
    return DC_OK;
}

// All other arrays of as many rows; what is not made of numbers is passed over.
static dc_status read_others(dc_dataset *data, const dc_npz *npz) {
    static const char *const done[] = {"observations", "actions", "terminals"};
    for (size_t i = 0; i < npz->count; i++) {
        array a = {.entry = &npz->entries[i]};
        bool skip = false;
        for (int d = 0; d < 3; d++)
            skip |= strcmp(a.entry->name, done[d]) == 0;
        if (skip) continue;
        dc_status status = dc_npz_head(npz, a.entry, &a.npy);
        if (status == DC_UNSUPPORTED) {
            dc_log(DC_WARN, "left out: %s", dc_error());
            continue;
        }
        DC_TRY(status);
        if (a.npy.ndim == 0 || a.npy.shape[0] != data->rows || a.npy.count == 0) continue;
        float *values = NULL;
        DC_TRY(read_column(data, npz, &a, a.entry->name, &values));
    }
    return DC_OK;
}

// ---- trajectories ----

static dc_status check_terminals(const dc_npz *npz, const float *flags, int64_t rows,
                                 int64_t *ends) {
    *ends = 0;
    for (int64_t r = 0; r < rows; r++) {
        if (flags[r] != 0 && flags[r] != 1)
            return dc_fail(DC_BAD_INPUT, "1 marks the last row of a trajectory, 0 the others",
                           "'terminals' holds %g at row %lld (%s)", (double)flags[r], (long long)r,
                           npz->path);
        *ends += flags[r] != 0;
    }
    if (flags[rows - 1] != 1)
        return dc_fail(DC_BAD_INPUT,
                       "set terminals of that row to 1, or remove the unfinished rows",
                       "the last trajectory does not end: 'terminals' is 0 at row %lld (%s)",
                       (long long)rows - 1, npz->path);
    return DC_OK;
}

static dc_status make_trajectories(dc_dataset *data, const dc_npz *npz, const float *flags) {
    int64_t ends = 0, *start = NULL, t = 0;
    DC_TRY(check_terminals(npz, flags, data->rows, &ends));
    DC_TRY(make_table(data, ends, &start));
    for (int64_t r = 0; r < data->rows; r++)
        if (flags[r] != 0) start[++t] = r + 1;
    return DC_OK;
}

static dc_status read_terminals(dc_dataset *data, const dc_npz *npz, const array *a) {
    if (row_width(&a->npy) != 1)
        return dc_fail(DC_BAD_INPUT, layout, "'terminals' has more than one value a row (%s)",
                       npz->path);
    float *flags = malloc((size_t)data->rows * sizeof *flags);
    if (!flags) return dc_fail(DC_NO_MEMORY, NULL, "no memory for the terminals of %s", npz->path);
    dc_status status = dc_npz_floats(npz, a->entry, &a->npy, flags);
    if (status == DC_OK) status = make_trajectories(data, npz, flags);
    free(flags);
    return status;
}

static dc_status same_rows(const dc_npz *npz, const array *obs, const array *other) {
    if (other->npy.shape[0] == obs->npy.shape[0]) return DC_OK;
    return dc_fail(DC_BAD_INPUT, layout, "'observations' has %lld rows but '%s' has %lld (%s)",
                   (long long)obs->npy.shape[0], other->entry->name, (long long)other->npy.shape[0],
                   npz->path);
}

static dc_status read_all(dc_dataset *data, const dc_npz *npz) {
    array obs = {0}, act = {0}, terminals = {0};
    DC_TRY(find(npz, "observations", &obs));
    DC_TRY(find(npz, "actions", &act));
    DC_TRY(find(npz, "terminals", &terminals));
    DC_TRY(same_rows(npz, &obs, &act));
    DC_TRY(same_rows(npz, &obs, &terminals));
    init(data, obs.npy.shape[0]);
    DC_TRY(read_terminals(data, npz, &terminals));
    DC_TRY(read_main(data, npz, &obs, &act));
    DC_TRY(read_others(data, npz));
    dc_status status = dc_dataset_seal(data);
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
    dc_npz npz;
    DC_TRY(dc_npz_open(&npz, path));
    dc_status status = dc_dataset_read(data, &npz);
    dc_npz_close(&npz);
    return status;
}
