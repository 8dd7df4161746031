// HDF5 files to npz, see hdf5.h. A file is looked through first: which layout it has, its episodes in the order
// of their numbers, the shape of every array. Then array after array is copied, episode by episode, a piece at
// a time, because that is how an npz file holds them.
//
// Every array is reached from the root by names that are followed one at a time, and only as far as they lie
// within the file.
#include "data/hdf5.h"

#include "data/hdf5_lib.h"
#include "data/npz.h"

#include <string.h>

bool dc_hdf5_is(const char *path) {
    static const char *const ends[] = {".hdf5", ".h5", ".hdf"};
    size_t n = strlen(path);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (n > strlen(ends[i]) && !strcmp(path + n - strlen(ends[i]), ends[i])) return true;
    return false;
}

dc_status dc_hdf5_refuse(const char *path) {
    if (!dc_hdf5_is(path)) return DC_OK;
    return dc_fail(DC_BAD_INPUT, "dcrl data convert FILE.hdf5 FILE.npz makes one",
                   "HDF5 is no data set yet (%s)", path);
}

#ifndef DC_HDF5

dc_status dc_hdf5_to_npz(const char *input, const char *output, const dc_hdf5_options *options,
                         dc_hdf5_progress *progress, void *ctx, dc_hdf5_done *done) {
    (void)input, (void)output, (void)options, (void)progress, (void)ctx, (void)done;
    return dc_hdf5_load();
}

#else

#include "base/file.h"
#include "data/layout.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    PIECE = 1 << 22,      // bytes that are in flight at a time, or one row
    CHUNKS_MAX = 1 << 28, // bytes of the chunks that one row touches: they are unpacked together
    EPISODES_MAX = 1 << 22,
    KEYS_MAX = 32,
    NAME = 64,    // bytes of a name, with its end
    PATH = 320,   // of a path inside a file
    RATIO = 1100, // no filter of the format packs tighter
    READ_ONLY = 0 // H5F_ACC_RDONLY, which would call into the library
};

typedef enum layout { D4RL, MINARI, ROBOMIMIC } layout;

// What each layout calls its parts.
static const struct {
    const char *name, *folder, *episode, *obs;
} layouts[] = {
    [D4RL] = {"D4RL", "", "", "observations"},
    [MINARI] = {"Minari", "", "episode_", "observations"},
    [ROBOMIMIC] = {"robomimic", "data/", "demo_", "obs"},
};

typedef struct episode {
    int64_t number, rows;
} episode;

// An array of numbers, ready to be read.
typedef struct array {
    hid_t id;
    int64_t rows, width;
    int64_t shape[DC_NPY_DIMS];
    int ndim;          // of a row
    bool whole, bytes; // whole numbers; of uint8
} array;

typedef struct reader {
    const char *path;
    hid_t file;
    uint64_t size; // bytes of the file
    layout layout;
    episode *episodes; // (count)
    int64_t count, room;
    char keys[KEYS_MAX]
             [NAME]; // arrays of observations, below an episode's group of them; "": it is an array
    int key_count;
    int64_t widths[KEYS_MAX], width; // of each, and of all
    array first, act;                // shapes of the first episode's; closed
    int64_t rows, done;
    dc_hdf5_progress *progress;
    void *ctx;
    void *buffer; // (PIECE), or the widest row
    size_t buffer_size;
    dc_npz_writer *writer;
} reader;

// What the library fails at. Only what it says is missing is missing.
static dc_status broken(const reader *r, const char *name) {
    return dc_fail(DC_IO, "look at it with h5dump -H, or fetch it again",
                   "HDF5 cannot read '%s' (%s)", name, r->path);
}

// ---- reaching an array ----

// Whether a name, whose way is known to lie within the file, does so itself.
static dc_status is_inside(const reader *r, const char *path, bool *inside) {
    H5L_info_t info = {0};
    htri_t there = *path ? dc_h5.H5Lexists(r->file, path, H5P_DEFAULT) : 0;
    if (there < 0 || (there > 0 && dc_h5.H5Lget_info(r->file, path, &info, H5P_DEFAULT) < 0))
        return broken(r, path);
    *inside = there > 0 && info.type == H5L_TYPE_HARD;
    return DC_OK;
}

// What lies at a path that leads there by names within the file; H5I_BADID: nothing.
static dc_status find_kind(const reader *r, const char *path, H5I_type_t *kind) {
    char part[PATH];
    bool inside = true;
    *kind = H5I_BADID;
    for (const char *slash = strchr(path, '/'); slash && inside; slash = strchr(slash + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        DC_TRY(is_inside(r, part, &inside));
    }
    if (inside) DC_TRY(is_inside(r, path, &inside));
    if (!inside) return DC_OK;
    hid_t id = dc_h5.H5Oopen(r->file, path, H5P_DEFAULT);
    if (id < 0) return broken(r, path);
    *kind = dc_h5.H5Iget_type(id);
    dc_h5.H5Oclose(id);
    return DC_OK;
}

// Where an array of an episode lies: "data/demo_3/obs/eef_pos".
static dc_status path_of(const reader *r, int64_t e, const char *part, const char *key,
                         char out[PATH]) {
    char group[NAME] = "";
    if (r->layout != D4RL)
        snprintf(group, sizeof group, "%s%s%lld/", layouts[r->layout].folder,
                 layouts[r->layout].episode, (long long)r->episodes[e].number);
    int n = snprintf(out, PATH, "%s%s%s%s", group, part, *key ? "/" : "", key);
    return n < PATH ? DC_OK : broken(r, part);
}

static void close_array(array *a) {
    if (a->id > 0) dc_h5.H5Dclose(a->id);
    a->id = 0;
}

// Its numbers: which, and how many.
static dc_status take_type(const reader *r, const char *path, array *a, size_t *size) {
    hid_t type = dc_h5.H5Dget_type(a->id);
    if (type < 0) return broken(r, path);
    H5T_class_t kind = dc_h5.H5Tget_class(type); // h5py keeps bool as an enum of two
    *size = dc_h5.H5Tget_size(type);
    a->whole = kind == H5T_INTEGER || kind == H5T_ENUM;
    a->bytes = kind == H5T_INTEGER && *size == 1 && dc_h5.H5Tget_sign(type) == H5T_SGN_NONE;
    dc_h5.H5Tclose(type);
    if ((a->whole || kind == H5T_FLOAT) && *size >= 1 && *size <= 16) return DC_OK;
    return dc_fail(DC_UNSUPPORTED, "store them as numbers", "'%s' holds no numbers (%s)", path,
                   r->path);
}

static dc_status take_shape(const reader *r, const char *path, array *a) {
    hsize_t dims[H5S_MAX_RANK];
    hid_t space = dc_h5.H5Dget_space(a->id);
    int ndim = space < 0 ? -1 : dc_h5.H5Sget_simple_extent_ndims(space);
    bool good = ndim >= 1 && ndim <= DC_NPY_DIMS && ndim <= H5S_MAX_RANK &&
                dc_h5.H5Sget_simple_extent_dims(space, dims, NULL) == ndim;
    if (space >= 0) dc_h5.H5Sclose(space);
    if (!good)
        return dc_fail(DC_BAD_INPUT, "an array has one row for each step",
                       "'%s' has an impossible shape (%s)", path, r->path);
    a->ndim = ndim - 1;
    a->width = 1;
    for (int d = 1; d < ndim && good; d++) {
        good =
            dims[d] >= 1 && dims[d] <= DC_WIDTH_MAX && a->width <= DC_WIDTH_MAX / (int64_t)dims[d];
        if (good) a->width *= a->shape[d - 1] = (int64_t)dims[d];
    }
    if (!good || dims[0] < 1 || dims[0] > (hsize_t)INT64_MAX / 16 / DC_WIDTH_MAX)
        return dc_fail(DC_BAD_INPUT, "give it 1 row or more, of 1 to 2^24 values",
                       "'%s' has an impossible size (%s)", path, r->path);
    a->rows = (int64_t)dims[0];
    return DC_OK;
}

// How its bytes lie: within the file, no more than it could hold, in chunks that fit into memory. `chunks`:
// bytes of the chunks that a row touches, 0 where there are none.
static dc_status check_storage(const reader *r, const char *path, const array *a, size_t size,
                               uint64_t *chunks) {
    hid_t plist = dc_h5.H5Dget_create_plist(a->id);
    hsize_t chunk[H5S_MAX_RANK] = {0};
    if (plist < 0) return broken(r, path);
    H5D_layout_t way = dc_h5.H5Pget_layout(plist);
    bool inside = dc_h5.H5Pget_external_count(plist) == 0 &&
                  (way == H5D_COMPACT || way == H5D_CONTIGUOUS || way == H5D_CHUNKED);
    bool cut = way == H5D_CHUNKED && dc_h5.H5Pget_chunk(plist, H5S_MAX_RANK, chunk) == a->ndim + 1;
    dc_h5.H5Pclose(plist);
    if (!inside || (way == H5D_CHUNKED && !cut))
        return dc_fail(DC_UNSUPPORTED, "copy it into the file with h5repack",
                       "the values of '%s' lie outside of the file (%s)", path, r->path);
    uint64_t row = (uint64_t)a->width * size, all = (uint64_t)a->rows * row;
    uint64_t held = dc_h5.H5Dget_storage_size(a->id);
    if (held > r->size || all / RATIO > held + 64)
        return dc_fail(DC_BAD_INPUT, "it is damaged: fetch it again",
                       "'%s' claims %llu bytes, of which the file holds %llu (%s)", path,
                       (unsigned long long)all, (unsigned long long)held, r->path);
    *chunks = 0;
    if (!cut) return DC_OK;
    uint64_t values = chunk[0], most = CHUNKS_MAX / (size ? size : 1);
    for (int d = 0; d < a->ndim && values <= most; d++) { // chunks may reach past the array's end
        uint64_t side = (uint64_t)a->shape[d], one = chunk[d + 1] ? chunk[d + 1] : 1;
        uint64_t covered = one > most ? most : (side + one - 1) / one * one;
        bool fits = covered && covered <= most && values <= most / covered;
        values = fits ? values * covered : most + 1;
    }
    if (values <= most) return *chunks = values * size, DC_OK;
    return dc_fail(DC_UNSUPPORTED, "cut it into smaller chunks with h5repack -l",
                   "chunks of '%s' are too large to be unpacked (%s)", path, r->path);
}

// Open again with room for the chunks that a row touches, or each would be unpacked again and again.
static dc_status reopen(const reader *r, const char *path, array *a, uint64_t chunks) {
    hid_t access = dc_h5.H5Pcreate(dc_h5.access);
    bool good = access >= 0 && dc_h5.H5Pset_chunk_cache(access, 12421, chunks * 2, 1) >= 0;
    close_array(a);
    if (good) a->id = dc_h5.H5Dopen2(r->file, path, access);
    if (access >= 0) dc_h5.H5Pclose(access);
    return good && a->id >= 0 ? DC_OK : broken(r, path);
}

static dc_status open_array(const reader *r, const char *path, array *a) {
    H5I_type_t kind;
    *a = (array){.id = 0};
    DC_TRY(find_kind(r, path, &kind));
    if (kind != H5I_DATASET)
        return dc_fail(DC_BAD_INPUT, "D4RL, Minari and robomimic files can be read",
                       "no array '%s' (%s)", path, r->path);
    a->id = dc_h5.H5Dopen2(r->file, path, H5P_DEFAULT);
    if (a->id < 0) return broken(r, path);
    size_t size = 1;
    uint64_t chunks = 0;
    dc_status status = take_type(r, path, a, &size);
    if (status == DC_OK) status = take_shape(r, path, a);
    if (status == DC_OK) status = check_storage(r, path, a, size, &chunks);
    if (status == DC_OK && chunks) status = reopen(r, path, a, chunks);
    if (status != DC_OK) close_array(a);
    return status;
}

// Rows first ... first + n - 1 into columns `at` on of rows that are `width` wide, of a type in memory.
static bool read_rows(const array *a, int64_t first, int64_t n, hid_t type, int64_t width,
                      int64_t at, void *out) {
    hsize_t from[H5S_MAX_RANK] = {(hsize_t)first}, count[H5S_MAX_RANK] = {(hsize_t)n};
    for (int d = 0; d < a->ndim; d++)
        count[d + 1] = (hsize_t)a->shape[d];
    hsize_t memory[2] = {(hsize_t)n, (hsize_t)width}, to[2] = {0, (hsize_t)at};
    hsize_t part[2] = {(hsize_t)n, (hsize_t)a->width};
    hid_t file = dc_h5.H5Dget_space(a->id), mem = dc_h5.H5Screate_simple(2, memory, NULL);
    bool good = file >= 0 && mem >= 0 &&
                dc_h5.H5Sselect_hyperslab(file, H5S_SELECT_SET, from, NULL, count, NULL) >= 0 &&
                dc_h5.H5Sselect_hyperslab(mem, H5S_SELECT_SET, to, NULL, part, NULL) >= 0 &&
                dc_h5.H5Dread(a->id, type, mem, file, H5P_DEFAULT, out) >= 0;
    if (file >= 0) dc_h5.H5Sclose(file);
    if (mem >= 0) dc_h5.H5Sclose(mem);
    return good;
}

// ---- looking through ----

static int by_number(const void *a, const void *b) {
    int64_t x = ((const episode *)a)->number, y = ((const episode *)b)->number;
    return (x > y) - (x < y);
}

static bool add_episode(reader *r, int64_t number) {
    if (r->count == r->room) {
        int64_t room = r->room ? 2 * r->room : 64;
        episode *more = realloc(r->episodes, (size_t)room * sizeof *more);
        if (!more) return false;
        r->episodes = more;
        if (room > EPISODES_MAX) return false;
        r->room = room;
    }
    r->episodes[r->count++] = (episode){number, 0};
    return true;
}

// "episode_12" is episode 12; other names are passed over.
static herr_t list_one(hid_t group, const char *name, const H5L_info_t *info, void *ctx) {
    reader *r = ctx;
    const char *start = layouts[r->layout].episode;
    size_t n = strlen(start), digits = strlen(name) > n ? strspn(name + n, "0123456789") : 0;
    (void)group;
    if (info->type != H5L_TYPE_HARD || strncmp(name, start, n) != 0) return 0;
    if (!digits || digits > 15 || name[n + digits] || (digits > 1 && name[n] == '0')) return 0;
    return add_episode(r, strtoll(name + n, NULL, 10)) ? 0 : -1;
}

static dc_status list_episodes(reader *r) {
    if (r->layout == D4RL) return add_episode(r, 0) ? DC_OK : broken(r, "/");
    const char *folder = r->layout == ROBOMIMIC ? "data" : "/";
    hid_t group = dc_h5.H5Oopen(r->file, folder, H5P_DEFAULT);
    hsize_t at = 0;
    bool good =
        group >= 0 && dc_h5.H5Literate(group, H5_INDEX_NAME, H5_ITER_NATIVE, &at, list_one, r) >= 0;
    if (group >= 0) dc_h5.H5Oclose(group);
    if (!good) return broken(r, folder);
    if (r->count) qsort(r->episodes, (size_t)r->count, sizeof *r->episodes, by_number);
    return DC_OK;
}

static dc_status find_layout(reader *r) {
    H5I_type_t observations, actions, data;
    DC_TRY(find_kind(r, "observations", &observations));
    DC_TRY(find_kind(r, "actions", &actions));
    DC_TRY(find_kind(r, "data", &data));
    if (observations != H5I_BADID && actions == H5I_DATASET) {
        r->layout = D4RL;
        return list_episodes(r);
    }
    r->layout = data == H5I_GROUP ? ROBOMIMIC : MINARI;
    DC_TRY(list_episodes(r));
    if (r->count) return DC_OK;
    return dc_fail(DC_BAD_INPUT, "D4RL, Minari and robomimic files can be read",
                   "no observations at the root, no groups episode_N or data/demo_N (%s)", r->path);
}

// ---- observations ----

static dc_status add_key(reader *r, const char *name, size_t n) {
    if (r->key_count == KEYS_MAX || n >= NAME)
        return dc_fail(DC_BAD_INPUT, "name some with --obs", "too many arrays of observations (%s)",
                       r->path);
    snprintf(r->keys[r->key_count++], NAME, "%.*s", (int)n, name);
    return DC_OK;
}

typedef struct candidates {
    reader *r;
    dc_status status;
} candidates;

// What stands in a row when nothing is said: numbers, but no goal and no picture.
static herr_t consider(hid_t group, const char *name, const H5L_info_t *info, void *ctx) {
    candidates *c = ctx;
    char path[PATH];
    array a;
    H5I_type_t kind = H5I_BADID;
    (void)group;
    if (info->type != H5L_TYPE_HARD || !strcmp(name, "desired_goal")) return 0;
    c->status = path_of(c->r, 0, layouts[c->r->layout].obs, name, path);
    if (c->status == DC_OK) c->status = find_kind(c->r, path, &kind);
    if (c->status != DC_OK) return -1;
    if (kind != H5I_DATASET) return 0;
    dc_status status = open_array(c->r, path, &a);
    if (status == DC_IO) c->status = status;
    if (status != DC_OK) return status == DC_IO ? -1 : 0;
    close_array(&a);
    if (!(a.bytes && a.ndim >= 2)) c->status = add_key(c->r, name, strlen(name));
    return c->status == DC_OK ? 0 : -1;
}

static dc_status choose_keys(reader *r, const char *named) {
    char path[PATH];
    DC_TRY(path_of(r, 0, layouts[r->layout].obs, "", path));
    H5I_type_t kind;
    DC_TRY(find_kind(r, path, &kind));
    bool group = kind == H5I_GROUP;
    if (!group && *named)
        return dc_fail(DC_USAGE, "leave --obs out", "observations are one array (%s)", r->path);
    if (!group) return add_key(r, "", 0);
    for (const char *at = named, *end; *named && at; at = end ? end + 1 : NULL) {
        end = strchr(at, ',');
        DC_TRY(add_key(r, at, end ? (size_t)(end - at) : strlen(at)));
    }
    if (*named) return DC_OK;
    candidates c = {r, DC_OK};
    hid_t id = dc_h5.H5Oopen(r->file, path, H5P_DEFAULT);
    hsize_t from = 0;
    bool good =
        id >= 0 && dc_h5.H5Literate(id, H5_INDEX_NAME, H5_ITER_INC, &from, consider, &c) >= 0;
    if (id >= 0) dc_h5.H5Oclose(id);
    DC_TRY(c.status);
    if (!good) return broken(r, path);
    if (r->key_count) return DC_OK;
    return dc_fail(DC_BAD_INPUT, "name some with --obs", "no arrays of numbers in '%s' (%s)", path,
                   r->path);
}

static dc_status differs(const reader *r, const char *path) {
    return dc_fail(DC_BAD_INPUT, "all episodes have the same arrays, with a row a step",
                   "'%s' does not go with the others (%s)", path, r->path);
}

// One array of observations of an episode: as wide as in the first, as long as the others.
static dc_status check_key(reader *r, int64_t e, int k) {
    char path[PATH];
    array a;
    DC_TRY(path_of(r, e, layouts[r->layout].obs, r->keys[k], path));
    DC_TRY(open_array(r, path, &a));
    close_array(&a);
    if (e == 0) {
        r->widths[k] = a.width;
        r->width += a.width;
        if (k == 0) r->first = a;
    }
    if (k == 0) r->episodes[e].rows = a.rows;
    bool whole = r->key_count > 1 || (a.whole == r->first.whole && a.bytes == r->first.bytes);
    bool same = a.width == r->widths[k] && a.rows == r->episodes[e].rows && whole;
    return same && r->width <= DC_WIDTH_MAX ? DC_OK : differs(r, path);
}

static dc_status check_actions(reader *r, int64_t e) {
    char path[PATH];
    array a;
    DC_TRY(path_of(r, e, "actions", "", path));
    DC_TRY(open_array(r, path, &a));
    close_array(&a);
    if (e == 0) r->act = a;
    int64_t rows = r->episodes[e].rows;
    bool last = a.rows == rows || (r->layout != D4RL && a.rows == rows - 1);
    return last && a.width == r->act.width && a.whole == r->act.whole ? DC_OK : differs(r, path);
}

static dc_status check_episode(reader *r, int64_t e) {
    for (int k = 0; k < r->key_count; k++)
        DC_TRY(check_key(r, e, k));
    DC_TRY(check_actions(r, e));
    int64_t rows = r->episodes[e].rows;
    if (rows < 2)
        return dc_fail(DC_BAD_INPUT, "remove that episode", "episode %lld has a single row (%s)",
                       (long long)r->episodes[e].number, r->path);
    if (r->rows > INT64_MAX / 16 - rows) return differs(r, "/");
    r->rows += rows;
    return DC_OK;
}

// ---- copying ----

static dc_status advance(reader *r, int64_t rows) {
    r->done += rows;
    if (!r->progress || r->progress(r->ctx, r->done)) return DC_OK;
    return dc_fail(DC_INTERRUPTED, NULL, "stopped; nothing was written (%s)", r->path);
}

static hid_t type_of(const array *a) {
    return a->bytes ? dc_h5.uint8 : a->whole ? dc_h5.int64 : dc_h5.float32;
}

static dc_dtype written(const array *a) {
    return a->bytes ? DC_U1 : a->whole ? DC_I8 : DC_F4;
}

// Room for a piece of rows, or one row, of an array.
static dc_status take_buffer(reader *r, int64_t width) {
    size_t row = (size_t)width * sizeof(int64_t), bytes = row > PIECE ? row : PIECE;
    if (bytes <= r->buffer_size) return DC_OK;
    void *more = realloc(r->buffer, bytes);
    if (!more) return dc_fail(DC_NO_MEMORY, NULL, "no memory to convert %s", r->path);
    r->buffer = more;
    r->buffer_size = bytes;
    return DC_OK;
}

// All keys side by side: floats, or what a single array is of.
static dc_status copy_observations(reader *r, int64_t e, int out, const array *as) {
    array open[KEYS_MAX];
    char path[PATH] = "";
    int64_t rows = r->episodes[e].rows, size = (int64_t)dc_dtype_size(written(as));
    int64_t most = PIECE / (r->width * size) > 1 ? PIECE / (r->width * size) : 1;
    int opened = 0;
    dc_status status = DC_OK;
    for (; status == DC_OK && opened < r->key_count; opened += status == DC_OK) {
        status = path_of(r, e, layouts[r->layout].obs, r->keys[opened], path);
        if (status == DC_OK) status = open_array(r, path, &open[opened]);
    }
    for (int64_t row = 0, n; status == DC_OK && row < rows; row += n) {
        n = rows - row < most ? rows - row : most;
        int64_t at = 0;
        for (int k = 0; status == DC_OK && k < r->key_count; at += r->widths[k++])
            if (!read_rows(&open[k], row, n, type_of(as), r->width, at, r->buffer))
                status = broken(r, r->keys[k]);
        if (status == DC_OK) status = dc_npz_writer_append(r->writer, out, r->buffer, n);
        if (status == DC_OK) status = advance(r, n);
    }
    while (opened--)
        close_array(&open[opened]);
    return status;
}

// An array by its path; with `more` rows than it has, its last one again.
static dc_status copy_array(reader *r, const char *path, int out, const array *as, int64_t rows) {
    array a;
    DC_TRY(open_array(r, path, &a));
    int64_t row_size = a.width * (int64_t)dc_dtype_size(written(as));
    int64_t most = PIECE / row_size > 1 ? PIECE / row_size : 1;
    dc_status status = a.width == as->width ? DC_OK : differs(r, path);
    for (int64_t row = 0, n; status == DC_OK && row < rows; row += n) {
        int64_t left = row < a.rows ? a.rows - row : 1, from = row < a.rows ? row : a.rows - 1;
        n = left < most ? left : most;
        if (n > rows - row) n = rows - row;
        if (!read_rows(&a, from, n, type_of(as), a.width, 0, r->buffer)) status = broken(r, path);
        if (status == DC_OK) status = dc_npz_writer_append(r->writer, out, r->buffer, n);
        if (status == DC_OK) status = advance(r, 0);
    }
    close_array(&a);
    return status;
}

static dc_status put_observations(reader *r) {
    array as = r->first; // several arrays become one row of floats
    int out;
    if (r->key_count > 1) as = (array){.ndim = 1, .shape = {r->width}};
    DC_TRY(dc_npz_writer_add(r->writer, "observations", written(&as), as.ndim, as.shape, &out));
    for (int64_t e = 0; e < r->count; e++)
        DC_TRY(copy_observations(r, e, out, &as));
    return DC_OK;
}

static dc_status put_actions(reader *r) {
    char path[PATH];
    int out;
    DC_TRY(
        dc_npz_writer_add(r->writer, "actions", written(&r->act), r->act.ndim, r->act.shape, &out));
    for (int64_t e = 0; e < r->count; e++) {
        DC_TRY(path_of(r, e, "actions", "", path));
        DC_TRY(copy_array(r, path, out, &r->act, r->episodes[e].rows));
    }
    return DC_OK;
}

// An array at the root that need not be there, under another name.
static dc_status put_root(reader *r, const char *path, const char *name) {
    array a;
    H5I_type_t kind;
    int out;
    DC_TRY(find_kind(r, path, &kind));
    if (kind != H5I_DATASET) return DC_OK;
    DC_TRY(open_array(r, path, &a));
    close_array(&a);
    if (a.rows != r->rows) return differs(r, path);
    DC_TRY(take_buffer(r, a.width));
    DC_TRY(dc_npz_writer_add(r->writer, name, written(&a), a.ndim, a.shape, &out));
    return copy_array(r, path, out, &a, r->rows);
}

// 1 on the last row of each episode.
static dc_status put_ends(reader *r) {
    uint8_t *flags = r->buffer;
    int out;
    DC_TRY(dc_npz_writer_add(r->writer, "terminals", DC_U1, 0, NULL, &out));
    for (int64_t e = 0; e < r->count; e++) {
        int64_t left = r->episodes[e].rows;
        for (int64_t n; left; left -= n) {
            n = left < PIECE ? left : PIECE;
            memset(flags, 0, (size_t)n);
            if (n == left) flags[n - 1] = 1;
            DC_TRY(dc_npz_writer_append(r->writer, out, flags, n));
        }
    }
    return DC_OK;
}

static dc_status write_all(reader *r) {
    DC_TRY(put_observations(r));
    DC_TRY(put_actions(r));
    if (r->layout != D4RL) {
        DC_TRY(put_ends(r));
    } else {
        H5I_type_t kind;
        DC_TRY(find_kind(r, "terminals", &kind));
        if (kind != H5I_DATASET)
            return dc_fail(DC_BAD_INPUT, "D4RL, Minari and robomimic files can be read",
                           "no array 'terminals' (%s)", r->path);
        DC_TRY(put_root(r, "terminals", "terminals"));
        DC_TRY(put_root(r, "timeouts", "timeouts"));
        DC_TRY(put_root(r, "infos/qpos", "qpos"));
        DC_TRY(put_root(r, "infos/qvel", "qvel"));
    }
    return dc_npz_writer_save(r->writer);
}

// ---- all together ----

static dc_status convert(reader *r, const char *output, const dc_hdf5_options *options) {
    DC_TRY(find_layout(r));
    DC_TRY(choose_keys(r, options->obs));
    for (int64_t e = 0; e < r->count; e++) {
        DC_TRY(check_episode(r, e));
        DC_TRY(advance(r, 0));
    }
    DC_TRY(take_buffer(r, r->width > r->act.width ? r->width : r->act.width));
    DC_TRY(dc_npz_writer_new(&r->writer, output, options->level));
    return write_all(r);
}

static void describe(const reader *r, dc_hdf5_done *done) {
    *done = (dc_hdf5_done){r->rows, r->count, layouts[r->layout].name, ""};
    size_t n = 0;
    for (int k = 0; k < r->key_count && n + NAME + 32 < sizeof done->obs; k++)
        n += (size_t)snprintf(done->obs + n, sizeof done->obs - n, "%s%s (%lld)", k ? ", " : "",
                              *r->keys[k] ? r->keys[k] : layouts[r->layout].obs,
                              (long long)r->widths[k]);
}

dc_status dc_hdf5_to_npz(const char *input, const char *output, const dc_hdf5_options *options,
                         dc_hdf5_progress *progress, void *ctx, dc_hdf5_done *done) {
    reader r = {.path = input, .progress = progress, .ctx = ctx};
    dc_map map; // only asked for its size, and whether it can be opened
    DC_TRY(dc_hdf5_load());
    DC_TRY(dc_map_open(&map, input));
    r.size = map.size;
    dc_map_close(&map);
    r.file = dc_h5.H5Fopen(input, READ_ONLY, H5P_DEFAULT);
    if (r.file < 0)
        return dc_fail(DC_BAD_INPUT, "give an HDF5 file", "not an HDF5 file, or damaged (%s)",
                       input);
    dc_status status = convert(&r, output, options);
    if (status == DC_OK) describe(&r, done);
    dc_npz_writer_free(r.writer);
    dc_h5.H5Fclose(r.file);
    free(r.episodes);
    free(r.buffer);
    return status;
}

#endif
