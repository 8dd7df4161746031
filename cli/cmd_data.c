// dcrl data: look into a data set, convert it, or draw it. `info` opens a file or a store as training would,
// with every check, and prints what is in it: arrays as stored, trajectories, dimensions, ranges and
// the hash that a run records. Of a store it reads every value, too, and checks the hash.
// `convert` is in data_convert.c, `draw` in data_draw.c, `rewards` in data_rewards.c.
#include "cli.h"
#include "data_convert.h"
#include "data_draw.h"
#include "data_rewards.h"

#include "algo/agent.h"
#include "base/file.h"
#include "base/json.h"
#include "base/options.h"
#include "base/text.h"
#include "data/dataset.h"
#include "data/hdf5.h"
#include "data/npz.h"
#include "data/store.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "dcrl data: look into a data set, convert it, or draw it\n"
    "\n"
    "usage: dcrl data info PATH [--json]\n"
    "       dcrl data convert IN... OUT     (dcrl data convert --help says more)\n"
    "       dcrl data draw FILE ENV -o OUT          (observations become pictures)\n"
    "       dcrl data rewards FILE ENV -o OUT\n"
    "\n"
    "  info     check a file as training would, then print its arrays, trajectories, dimensions,\n"
    "           ranges and hash\n"
    "  convert  .npz files to a store, which may be larger than memory, or a store to .npz, or "
    "HDF5\n"
    "           (D4RL, Minari, robomimic) to .npz\n"
    "  draw     data of states to data of a visual environment\n"
    "  rewards  what a single task says of the rows of a file\n"
    "  --json   one JSON object instead of a table\n"
    "\n"
    "A data set is a store or an .npz file in OGBench's layout, as numpy.savez or `dcrl gen` write "
    "it:\n"
    "  observations (N, ...)   numbers; a row is a state, or a picture of uint8\n"
    "  actions      (N, ...)   float in [-1, 1] (else train with --act-scale), or whole numbers "
    "for "
    "discrete actions\n"
    "  terminals    (N)        1 on the last row of each trajectory, 0 elsewhere\n"
    "  timeouts     (N)        as in D4RL, if it is there: ends a trajectory like terminals\n"
    "Further arrays of N rows (qpos, qvel, button_states, ...) are kept as columns.\n"
    "\n"
    "example: dcrl data info pointmaze-large-navigate-v0.npz\n";

typedef struct lengths {
    int64_t min, max;
    double median;
} lengths;

typedef struct range {
    float min, max;
} range;

typedef struct info {
    const char *path;
    bool store;           // a folder; else a file
    dc_npz npz;           // of a file
    dc_store_index index; // of a store
    dc_arena arena;
    dc_dataset data;
    lengths length; // rows of a trajectory
    const dc_column *obs, *act;
    range obs_range, act_range;
    dc_variation spread; // of observations
} info;

static int by_value(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static dc_status measure_lengths(const dc_dataset *data, lengths *out) {
    size_t n = (size_t)data->traj_count;
    int64_t *sorted = malloc(n * sizeof *sorted);
    if (!sorted) return dc_fail(DC_NO_MEMORY, NULL, "no memory for %zu trajectories", n);
    for (size_t t = 0; t < n; t++)
        sorted[t] = data->traj_start[t + 1] - data->traj_start[t];
    qsort(sorted, n, sizeof *sorted, by_value);
    out->min = sorted[0];
    out->max = sorted[n - 1];
    size_t low = (n - 1) / 2, high = n / 2;
    out->median = ((double)sorted[low] + (double)sorted[high]) / 2;
    free(sorted);
    return DC_OK;
}

static range range_of_bytes(const uint8_t *bytes, size_t n) {
    uint8_t min = UINT8_MAX, max = 0;
    for (size_t i = 0; i < n; i++) {
        min = bytes[i] < min ? bytes[i] : min;
        max = bytes[i] > max ? bytes[i] : max;
    }
    return (range){(float)min, (float)max};
}

static range measure_range(const dc_dataset *data, const dc_column *column) {
    range r = {INFINITY, -INFINITY};
    size_t n = (size_t)data->rows * (size_t)column->width;
    if (column->type == DC_TYPE_U8) return range_of_bytes(column->bytes, n);
    for (size_t i = 0; i < n; i++) {
        r.min = column->values[i] < r.min ? column->values[i] : r.min;
        r.max = column->values[i] > r.max ? column->values[i] : r.max;
    }
    return r;
}

// Values of a store are not read when it is opened, so they are checked here.
static dc_status open_store(info *in) {
    DC_TRY(dc_store_index_read(&in->index, &in->arena, in->path));
    DC_TRY(dc_store_map(&in->data, in->path, &in->index));
    if (dc_dataset_hash(&in->data) == in->data.hash) return DC_OK;
    return dc_fail(DC_BAD_INPUT, "the files are damaged: convert the data again",
                   "the values do not match the hash of the store (%s)", in->path);
}

static dc_status open_file(info *in) {
    DC_TRY(dc_hdf5_refuse(in->path));
    DC_TRY(dc_npz_open(&in->npz, in->path));
    return dc_dataset_read(&in->data, &in->npz);
}

static dc_status gather(info *in) {
    DC_TRY(dc_folder_find(in->path, &in->store));
    DC_TRY(in->store ? open_store(in) : open_file(in));
    in->obs = dc_dataset_column(&in->data, "obs");
    in->act = dc_dataset_column(&in->data, "act");
    in->obs_range = measure_range(&in->data, in->obs);
    in->act_range = measure_range(&in->data, in->act);
    dc_bounds raw = in->data.actions;
    if (raw.low != 0 || raw.high != 0) in->act_range = (range){raw.low, raw.high};
    DC_TRY(dc_dataset_variation(&in->data, &in->spread));
    return measure_lengths(&in->data, &in->length);
}

// An array as it is stored.
typedef struct array {
    const char *name;
    bool known; // npy is set; else it is no array of numbers
    dc_npy npy;
    uint64_t size, packed; // bytes, and bytes on the disk
} array;

static dc_status file_array(const info *in, size_t i, array *a) {
    const dc_npz_entry *entry = &in->npz.entries[i];
    *a = (array){.name = entry->name, .size = entry->size, .packed = entry->packed};
    dc_status status = dc_npz_head(&in->npz, entry, &a->npy);
    a->known = status == DC_OK;
    return status == DC_UNSUPPORTED ? DC_OK : status;
}

static dc_status store_array(const info *in, size_t i, array *a) {
    const dc_store_column *c = &in->index.columns[i];
    int64_t shape[DC_NPY_DIMS] = {in->index.rows};
    for (int d = 0; d < c->ndim; d++)
        shape[d + 1] = c->shape[d];
    *a = (array){.name = c->name, .known = true};
    DC_TRY(dc_npy_make(&a->npy, c->type == DC_TYPE_U8 ? DC_U1 : DC_F4, c->ndim + 1, shape));
    a->size = a->packed = a->npy.bytes;
    return DC_OK;
}

// A name from a file, safe to show: what is not printable ASCII becomes '?'.
static const char *shown(const char *name, char *buffer, size_t size) {
    size_t n = 0;
    for (; name[n] && n + 1 < size; n++)
        buffer[n] = name[n] >= 32 && name[n] < 127 ? name[n] : '?';
    buffer[n] = 0;
    return buffer;
}

// (1000, 30), (1000,) or (); JSON has brackets and no lone comma.
static void add_shape(dc_text *out, const dc_npy *npy, bool json) {
    dc_text_add(out, json ? "[" : "(");
    for (int d = 0; d < npy->ndim; d++)
        dc_text_add(out, "%s%lld", d ? ", " : "", (long long)npy->shape[d]);
    dc_text_add(out, "%s%s", npy->ndim == 1 && !json ? "," : "", json ? "]" : ")");
}

// ---- the table ----

static void table_array(const array *a, dc_text *out) {
    char name[64];
    const dc_npy *npy = a->known ? &a->npy : NULL;
    dc_text_add(out, "%-16s %-8s %15llu %15llu  ", shown(a->name, name, sizeof name),
                npy ? dc_dtype_name(npy->type) : "other",
                (unsigned long long)(npy ? npy->bytes : a->size), (unsigned long long)a->packed);
    if (npy)
        add_shape(out, npy, false);
    else
        dc_text_add(out, "not used");
    dc_text_add(out, "\n");
}

static const char *type_name(const dc_column *column) {
    return dc_dtype_name(column->type == DC_TYPE_U8 ? DC_U1 : DC_F4);
}

static void table_column(const char *name, const dc_column *column, range r, dc_text *out) {
    dc_text_add(out, "%-14s%d values per row, %s, from %.6g to %.6g\n", name, column->width,
                type_name(column), (double)r.min, (double)r.max);
}

// Number of discrete actions; 0: real numbers, or whole ones that cannot be choices.
static int choices(const info *in) {
    int count = 0;
    return in->act->whole && dc_count_actions(&in->data, in->act, &count) == DC_OK ? count : 0;
}

static bool has_units(const info *in) {
    return !in->act->whole && !dc_layout_in_range(in->data.actions);
}

// What training will want to be told.
static void table_advice(const info *in, dc_text *out) {
    const dc_variation *s = &in->spread;
    if (has_units(in))
        dc_text_add(out,
                    "%-14sactions are not within [-1, 1]: train with --act-scale auto, or "
                    "--act-scale LOW,HIGH\n",
                    "note");
    if (dc_variation_uneven(s))
        dc_text_add(out,
                    "%-14scolumns of very different scale: observation %d varies by %.3g, %d "
                    "by %.3g: train with --obs-scale on\n",
                    "note", s->wide, s->most, s->narrow, s->least);
}

static void table_head(const info *in, dc_text *out) {
    const dc_dataset *d = &in->data;
    dc_text_add(out, "%-14s%s\n", in->store ? "store" : "file", in->path);
    if (in->store) dc_text_add(out, "%-14s%d\n", "shards", in->index.shard_count);
    dc_text_add(out, "%-14s%lld\n", "rows", (long long)d->rows);
    dc_text_add(out, "%-14s%lld, of %lld to %lld rows, median %g\n", "trajectories",
                (long long)d->traj_count, (long long)in->length.min, (long long)in->length.max,
                in->length.median);
    table_column("obs", in->obs, in->obs_range, out);
    if (choices(in))
        dc_text_add(out, "%-14sone of %d discrete actions, from 0\n", "act", choices(in));
    else
        table_column("act", in->act, in->act_range, out);
    dc_text_add(out, "%-14s%016llx\n", "hash", (unsigned long long)d->hash);
    table_advice(in, out);
    dc_text_add(out, "\n%-16s %-8s %15s %15s  %s\n", "array", "type", "bytes", "in file", "shape");
}

// ---- the JSON object ----

static void json_array(const array *a, bool first, dc_text *out) {
    const dc_npy *npy = a->known ? &a->npy : NULL;
    dc_text_add(out, "%s{\"name\": ", first ? "" : ", ");
    dc_json_quote(out, a->name);
    dc_text_add(out, ", \"dtype\": %s%s%s, \"shape\": ", npy ? "\"" : "",
                npy ? dc_dtype_name(npy->type) : "null", npy ? "\"" : "");
    if (npy)
        add_shape(out, npy, true);
    else
        dc_text_add(out, "null");
    dc_text_add(out, ", \"bytes\": %llu, \"bytes_in_file\": %llu}",
                (unsigned long long)(npy ? npy->bytes : a->size), (unsigned long long)a->packed);
}

static void json_column(const char *name, const dc_column *column, range r, dc_text *out) {
    dc_text_add(out, "\"%s_dim\": %d, \"%s_type\": \"%s\", \"%s_min\": ", name, column->width, name,
                type_name(column), name);
    dc_json_number(out, (double)r.min);
    dc_text_add(out, ", \"%s_max\": ", name);
    dc_json_number(out, (double)r.max);
    dc_text_add(out, ", ");
}

static void json_head(const info *in, dc_text *out) {
    const dc_dataset *d = &in->data;
    dc_text_add(out, "{\"path\": ");
    dc_json_quote(out, in->path);
    if (in->store) dc_text_add(out, ", \"shards\": %d", in->index.shard_count);
    dc_text_add(out, ", \"rows\": %lld, \"trajectories\": %lld, ", (long long)d->rows,
                (long long)d->traj_count);
    dc_text_add(out, "\"length_min\": %lld, \"length_median\": ", (long long)in->length.min);
    dc_json_number(out, in->length.median);
    dc_text_add(out, ", \"length_max\": %lld, ", (long long)in->length.max);
    json_column("obs", in->obs, in->obs_range, out);
    json_column("act", in->act, in->act_range, out);
    dc_text_add(out, "\"discrete_actions\": %d, ", choices(in));
    dc_text_add(out, "\"needs_act_scale\": %s, \"wants_obs_scale\": %s, ",
                has_units(in) ? "true" : "false",
                dc_variation_uneven(&in->spread) ? "true" : "false");
    dc_text_add(out, "\"columns\": [");
    for (int c = 0; c < d->column_count; c++) {
        if (c) dc_text_add(out, ", ");
        dc_json_quote(out, d->columns[c].name);
    }
    dc_text_add(out, "], \"hash\": \"%016llx\", \"arrays\": [", (unsigned long long)d->hash);
}

// ---- the command ----

static dc_status describe(const info *in, bool json, dc_text *out) {
    if (json)
        json_head(in, out);
    else
        table_head(in, out);
    size_t count = in->store ? (size_t)in->index.column_count : in->npz.count;
    for (size_t i = 0; i < count; i++) {
        array a;
        DC_TRY(in->store ? store_array(in, i, &a) : file_array(in, i, &a));
        if (json)
            json_array(&a, i == 0, out);
        else
            table_array(&a, out);
    }
    if (json) dc_text_add(out, "]}\n");
    return dc_text_status(out);
}

static dc_status run_info(const char *path, bool json) {
    info in = {.path = path};
    dc_text out;
    dc_text_init(&out);
    dc_arena_init(&in.arena, 0);
    dc_status status = gather(&in);
    if (status == DC_OK) status = describe(&in, json, &out);
    if (status == DC_OK) fwrite(out.bytes, 1, out.used, stdout);
    dc_text_fini(&out);
    dc_dataset_fini(&in.data);
    dc_npz_close(&in.npz);
    dc_arena_fini(&in.arena);
    return status;
}

static dc_status unknown(const char *what, const char *word, const char *const *known, size_t n) {
    const char *near = dc_nearest(word, known, n);
    if (near)
        return dc_fail(DC_USAGE, NULL, "unknown %s (%s): did you mean '%s'?", what, word, near);
    return dc_fail(DC_USAGE, "see dcrl data --help", "unknown %s (%s)", what, word);
}

static bool asks_help(const char *word) {
    return !strcmp(word, "--help") || !strcmp(word, "-h");
}

static dc_status info_command(int argc, char **argv) {
    static const char *const flags[] = {"--json"};
    const char *path = NULL;
    bool json = false;
    for (int i = 0; i < argc; i++) {
        if (asks_help(argv[i])) return fputs(help, stdout), DC_OK;
        if (!strcmp(argv[i], "--json"))
            json = true;
        else if (argv[i][0] == '-' && argv[i][1])
            return unknown("flag", argv[i], flags, 1);
        else if (path)
            return dc_fail(DC_USAGE, "give one path", "a second path (%s)", argv[i]);
        else
            path = argv[i];
    }
    if (!path) return dc_fail(DC_USAGE, "dcrl data info PATH", "a path is missing");
    return run_info(path, json);
}

dc_status cmd_data(int argc, char **argv) {
    static const char *const names[] = {"info", "convert", "draw", "rewards"};
    if (argc == 0) return dc_fail(DC_USAGE, "dcrl data info PATH", "a sub-command is missing");
    if (asks_help(argv[0])) return fputs(help, stdout), DC_OK;
    if (!strcmp(argv[0], "info")) return info_command(argc - 1, argv + 1);
    if (!strcmp(argv[0], "convert")) return cli_data_convert(argc - 1, argv + 1);
    if (!strcmp(argv[0], "draw")) return cli_data_draw(argc - 1, argv + 1);
    if (!strcmp(argv[0], "rewards")) return cli_data_rewards(argc - 1, argv + 1);
    return unknown("sub-command", argv[0], names, 4);
}
