// The index of a store, see store.h: index.json, parsed with every check that needs no other file,
// and written. The index may be hostile. File names are made from checked names and numbers, never
// read, so an index cannot point outside of its folder; sizes are multiplied without overflow here,
// and compared with the true sizes of files where they are mapped.
#include "data/store.h"

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char format[] = "dcrl store 1", again[] = "convert the data again";
const char dc_store_index_name[] = "index.json", dc_store_table_name[] = "trajectories.i64";

// ---- names ----

// Letters that are safe in every file system; and the arrays that have other names as columns, so
// that a store can always become an npz file.
bool dc_store_name_ok(const char *name) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789_-.";
    static const char *const taken[] = {"observations", "actions", "terminals"};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (!strcmp(name, taken[i])) return false;
    size_t n = strlen(name);
    return n >= 1 && n <= DC_STORE_NAME_MAX && name[0] != '.' && strspn(name, letters) == n;
}

dc_status dc_store_path(char out[DC_STORE_PATH_MAX], const char *folder, const char *file) {
    int n = snprintf(out, DC_STORE_PATH_MAX, "%s/%s", folder, file);
    if (n > 0 && n < DC_STORE_PATH_MAX) return DC_OK;
    return dc_fail(DC_IO, "choose a shorter path", "the path is too long (%.40s...)", folder);
}

// The types of columns: as a file's ending, and in the index.
static const struct {
    const char *ending;
    dc_dtype dtype;
} types[DC_TYPES] = {[DC_TYPE_F32] = {"f32", DC_F4}, [DC_TYPE_U8] = {"u8", DC_U1}};

dc_status dc_store_column_path(char out[DC_STORE_PATH_MAX], const char *folder,
                               const dc_store_column *column, int shard) {
    char file[DC_STORE_NAME_MAX + 32];
    snprintf(file, sizeof file, "%s-%05d.%s", column->name, shard, types[column->type].ending);
    return dc_store_path(out, folder, file);
}

// ---- sizes ----

size_t dc_store_row_size(const dc_store_column *column) {
    return (size_t)column->width * dc_type_size(column->type);
}

bool dc_store_whole_pages(const dc_store_index *index, int64_t rows) {
    bool whole = rows % DC_STORE_UNIT == 0;
    for (int c = 0; c < index->column_count; c++) // a product that wraps has the same remainder
        whole &= (uint64_t)rows * dc_store_row_size(&index->columns[c]) % DC_STORE_PAGE == 0;
    return whole;
}

// ---- parsing ----

// What is being parsed, for errors.
typedef struct parser {
    dc_store_index *index;
    dc_arena *arena;
    const char *what;
} parser;

static dc_status bad(const parser *p, const char *about) {
    return dc_fail(DC_BAD_INPUT, again, "the index of the store is malformed: %s (%s)", about,
                   p->what);
}

// A member of an object that must be a whole number from low to high.
static dc_status take_int(const parser *p, const dc_json *value, const char *name, int64_t low,
                          int64_t high, int64_t *out) {
    if (value && dc_json_int(value, out) && *out >= low && *out <= high) return DC_OK;
    return dc_fail(DC_BAD_INPUT, again,
                   "the index of the store is malformed: '%s' is no whole number from %lld to %lld "
                   "(%s)",
                   name, (long long)low, (long long)high, p->what);
}

// A string without NUL.
static const char *text_of(const dc_json *value) {
    if (!value || value->kind != DC_JSON_STRING) return NULL;
    return strlen(value->text) == value->text_length ? value->text : NULL;
}

static dc_status take_type(const parser *p, const dc_json *value, dc_dtype *type) {
    const char *text = text_of(value);
    return text && dc_dtype_find(text, type) ? DC_OK : bad(p, "an unknown type of numbers");
}

// Only the keys of a list, each once (the JSON reader refuses duplicates), and `more` that were found.
static dc_status check_keys(const parser *p, const dc_json *object, const char *const *keys,
                            size_t count, size_t more) {
    if (object->kind != DC_JSON_OBJECT) return bad(p, "not an object");
    for (size_t k = 0; k < count; k++)
        if (!dc_json_get(object, keys[k]))
            return dc_fail(DC_BAD_INPUT, again, "the index of the store is malformed: no '%s' (%s)",
                           keys[k], p->what);
    return object->count == count + more ? DC_OK : bad(p, "an unknown key");
}

// "actions": [low, high], which only a store has whose actions are not within [-1, 1].
static dc_status take_actions(const parser *p, const dc_json *list) {
    const dc_json *low = list->kind == DC_JSON_ARRAY && list->count == 2 ? list->child : NULL;
    const dc_json *high = low ? low->next : NULL;
    if (!high || low->kind != DC_JSON_NUMBER || high->kind != DC_JSON_NUMBER)
        return bad(p, "'actions' is no pair of numbers");
    dc_bounds b = {(float)low->number, (float)high->number};
    if (!isfinite(b.low) || !isfinite(b.high) || b.low > b.high || dc_layout_in_range(b))
        return bad(p, "'actions' is an impossible range");
    p->index->actions = b;
    return DC_OK;
}

// The type of the values here: one of `types`.
static dc_status take_column_type(const parser *p, const dc_json *value, dc_type *type) {
    dc_dtype dtype = DC_F4;
    DC_TRY(take_type(p, value, &dtype));
    for (int t = 0; t < DC_TYPES; t++)
        if (types[t].dtype == dtype) return *type = (dc_type)t, DC_OK;
    return dc_fail(DC_UNSUPPORTED, "use a newer dcrl, or convert the data again",
                   "columns of %s cannot be read yet (%s)", dc_dtype_name(dtype), p->what);
}

static dc_status take_shape(const parser *p, const dc_json *shape, dc_store_column *c) {
    if (shape->kind != DC_JSON_ARRAY || shape->count >= DC_NPY_DIMS)
        return bad(p, "'shape' is no short list");
    int64_t width = 1;
    for (const dc_json *d = shape->child; d; d = d->next) {
        int64_t *size = &c->shape[c->ndim++];
        DC_TRY(take_int(p, d, "shape", 1, DC_WIDTH_MAX, size));
        if (width > DC_WIDTH_MAX / *size) return bad(p, "a row of more than 2^24 values");
        width *= *size;
    }
    c->width = (int)width;
    return DC_OK;
}

static dc_status take_column(const parser *p, const dc_json *object) {
    static const char *const keys[] = {"name", "dtype", "shape", "source"};
    DC_TRY(check_keys(p, object, keys, 4, 0));
    dc_store_index *index = p->index;
    dc_store_column *c = &index->columns[index->column_count];
    const char *name = text_of(dc_json_get(object, "name"));
    if (!name || !dc_store_name_ok(name)) return bad(p, "an impossible column name");
    for (int i = 0; i < index->column_count; i++)
        if (!strcmp(index->columns[i].name, name)) return bad(p, "two columns of one name");
    snprintf(c->name, sizeof c->name, "%s", name);
    DC_TRY(take_column_type(p, dc_json_get(object, "dtype"), &c->type));
    if (c->type == DC_TYPE_U8 && !strcmp(name, "act")) return bad(p, "actions are no bytes");
    DC_TRY(take_type(p, dc_json_get(object, "source"), &c->source));
    DC_TRY(take_shape(p, dc_json_get(object, "shape"), c));
    if (index->rows > INT64_MAX / 8 / c->width) return bad(p, "a column of more than 2^63 bytes");
    index->column_count++;
    return DC_OK;
}

static dc_status take_columns(const parser *p, const dc_json *list) {
    if (list->kind != DC_JSON_ARRAY || list->count > DC_COLUMNS_MAX)
        return bad(p, "'columns' is no list of at most 16");
    bool obs = false, act = false;
    for (const dc_json *c = list->child; c; c = c->next) {
        DC_TRY(take_column(p, c));
        obs |= !strcmp(p->index->columns[p->index->column_count - 1].name, "obs");
        act |= !strcmp(p->index->columns[p->index->column_count - 1].name, "act");
    }
    return obs && act ? DC_OK : bad(p, "no column 'obs' or 'act'");
}

static dc_status take_shards(const parser *p, const dc_json *list) {
    dc_store_index *index = p->index;
    if (list->kind != DC_JSON_ARRAY || list->count < 1 ||
        list->count * (size_t)index->column_count > DC_STORE_FILES_MAX)
        return bad(p, "'shards' is no list of a possible length");
    int64_t *shards = dc_arena_take(p->arena, list->count * sizeof *shards), left = index->rows;
    if (!shards) return DC_NO_MEMORY;
    for (const dc_json *s = list->child; s; s = s->next) {
        int64_t *rows = &shards[index->shard_count++];
        DC_TRY(take_int(p, s, "shards", 1, left, rows));
        left -= *rows;
        if (s->next && !dc_store_whole_pages(index, *rows))
            return bad(p, "a shard before the last that is no multiple of 1024 rows, or no whole "
                          "pages");
    }
    index->shards = shards;
    return left == 0 ? DC_OK : bad(p, "the shards do not add up to the rows");
}

static dc_status take_hash(const parser *p, const dc_json *value) {
    const char *text = text_of(value);
    if (!text || strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
        return bad(p, "'hash' is no text of 16 hexadecimal digits");
    p->index->hash = strtoull(text, NULL, 16);
    return DC_OK;
}

static dc_status take_index(const parser *p, const dc_json *root) {
    static const char *const keys[] = {"format", "rows",    "trajectories", "terminals",
                                       "hash",   "columns", "shards"};
    const char *version = text_of(dc_json_get(root, "format"));
    if (!version) return bad(p, "no 'format'");
    if (strcmp(version, format) != 0)
        return dc_fail(DC_UNSUPPORTED, "use the dcrl that wrote it, or convert the data again",
                       "a store of format '%.40s', this is for '%s' (%s)", version, format,
                       p->what);
    const dc_json *actions = dc_json_get(root, "actions");
    DC_TRY(check_keys(p, root, keys, sizeof keys / sizeof *keys, actions != NULL));
    dc_store_index *index = p->index;
    if (actions) DC_TRY(take_actions(p, actions));
    DC_TRY(take_int(p, dc_json_get(root, "rows"), "rows", 2, INT64_MAX / 8, &index->rows));
    DC_TRY(take_int(p, dc_json_get(root, "trajectories"), "trajectories", 1, index->rows / 2,
                    &index->traj_count));
    DC_TRY(take_type(p, dc_json_get(root, "terminals"), &index->terminals));
    DC_TRY(take_hash(p, dc_json_get(root, "hash")));
    DC_TRY(take_columns(p, dc_json_get(root, "columns")));
    return take_shards(p, dc_json_get(root, "shards"));
}

dc_status dc_store_index_parse(dc_store_index *index, dc_arena *arena, const char *what,
                               const char *bytes, size_t n) {
    *index = (dc_store_index){0};
    const dc_json *root;
    DC_TRY(dc_json_parse(arena, what, bytes, n, &root));
    return take_index(&(parser){index, arena, what}, root);
}

dc_status dc_store_index_read(dc_store_index *index, dc_arena *arena, const char *folder) {
    char path[DC_STORE_PATH_MAX];
    bool exists;
    *index = (dc_store_index){0};
    DC_TRY(dc_store_path(path, folder, dc_store_index_name));
    DC_TRY(dc_file_find(path, &exists));
    if (!exists)
        return dc_fail(DC_BAD_INPUT,
                       "give an .npz file or a store; if its conversion was cut off, convert again",
                       "no finished store: index.json is missing (%s)", folder);
    dc_map map;
    DC_TRY(dc_map_open_inside(&map, path));
    dc_status status = DC_OK;
    if (map.size > DC_STORE_INDEX_MAX)
        status = dc_fail(DC_BAD_INPUT, again, "an index of more than 4 MiB (%s)", path);
    else
        status = dc_store_index_parse(index, arena, path, (const char *)map.bytes, map.size);
    dc_map_close(&map);
    return status;
}

// ---- writing ----

static void add_column(dc_text *out, const dc_store_column *c) {
    dc_text_add(out, "{\"name\": \"%s\", \"dtype\": \"%s\", \"shape\": [", c->name,
                dc_dtype_name(types[c->type].dtype));
    for (int d = 0; d < c->ndim; d++)
        dc_text_add(out, "%s%lld", d ? ", " : "", (long long)c->shape[d]);
    dc_text_add(out, "], \"source\": \"%s\"}", dc_dtype_name(c->source));
}

// In as many digits as give the same float32 again.
static void add_actions(dc_text *out, dc_bounds b) {
    dc_text_add(out, "  \"actions\": [");
    dc_json_number(out, (double)b.low);
    dc_text_add(out, ", ");
    dc_json_number(out, (double)b.high);
    dc_text_add(out, "],\n");
}

static void add_index(dc_text *out, const dc_store_index *index) {
    dc_text_add(out, "{\n  \"format\": \"%s\",\n  \"rows\": %lld,\n  \"trajectories\": %lld,\n",
                format, (long long)index->rows, (long long)index->traj_count);
    if (!dc_layout_in_range(index->actions)) add_actions(out, index->actions);
    dc_text_add(out, "  \"terminals\": \"%s\",\n  \"hash\": \"%016llx\",\n  \"columns\": [",
                dc_dtype_name(index->terminals), (unsigned long long)index->hash);
    for (int c = 0; c < index->column_count; c++) {
        dc_text_add(out, c ? ",\n    " : "\n    ");
        add_column(out, &index->columns[c]);
    }
    dc_text_add(out, "\n  ],\n  \"shards\": [");
    for (int s = 0; s < index->shard_count; s++)
        dc_text_add(out, "%s%lld", s ? ", " : "", (long long)index->shards[s]);
    dc_text_add(out, "]\n}\n");
}

dc_status dc_store_index_write(const dc_store_index *index, const char *folder) {
    char path[DC_STORE_PATH_MAX];
    dc_text out;
    dc_text_init(&out);
    add_index(&out, index);
    dc_status status = dc_text_status(&out);
    if (status == DC_OK) status = dc_store_path(path, folder, dc_store_index_name);
    if (status == DC_OK) status = dc_file_write_inside(path, out.bytes, out.used);
    dc_text_fini(&out);
    return status;
}
