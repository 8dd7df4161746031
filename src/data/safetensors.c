// Safetensors, see safetensors.h. The format is defined by its reference implementation (Rust,
// behind Python's `safetensors`), so we refuse what it refuses: a header past the
// end of the file, offsets that overlap, leave holes or stop short of the end of the file, sizes
// that disagree with type and shape. On top of that a name may stand only once (base/json.c sees to
// it), eight dimensions must do, and a header has at most 1 MB, not 100: ours have a twentieth of that. Memory is bounded by a multiple of the header, not by what the
// header claims.
#include "data/safetensors.h"

#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PREFIX = 8, ALIGN = 8, HEADER_MAX = 1 << 20 };

// An entry of the header, `"a":{"dtype":"F32","shape":[1,1],...}`, costs at most about 20 times its
// bytes; a header that needs more is not one.
enum { MEMORY_FACTOR = 40, MEMORY_BASE = 1 << 20 };

static const struct {
    const char *name;
    size_t size;
} dtypes[DC_ST_DTYPES] = {
    [DC_ST_F32] = {"F32", 4}, [DC_ST_F64] = {"F64", 8},   [DC_ST_I32] = {"I32", 4},
    [DC_ST_I64] = {"I64", 8}, [DC_ST_U8] = {"U8", 1},     [DC_ST_BOOL] = {"BOOL", 1},
    [DC_ST_F16] = {"F16", 2}, [DC_ST_BF16] = {"BF16", 2}, [DC_ST_I8] = {"I8", 1},
    [DC_ST_I16] = {"I16", 2}, [DC_ST_U16] = {"U16", 2},   [DC_ST_U32] = {"U32", 4},
    [DC_ST_U64] = {"U64", 8},
};

static const char META[] = "__metadata__";

const char *dc_st_dtype_name(dc_st_dtype dtype) {
    DC_CHECK(dtype < DC_ST_DTYPES);
    return dtypes[dtype].name;
}

size_t dc_st_dtype_size(dc_st_dtype dtype) {
    DC_CHECK(dtype < DC_ST_DTYPES);
    return dtypes[dtype].size;
}

static dc_status fail(const char *what, const char *message) {
    return dc_fail(DC_BAD_INPUT, "write or fetch the file again", "not a safetensors file, %s (%s)",
                   message, what);
}

static dc_status fail_tensor(const char *what, const char *name, const char *message) {
    return dc_fail(DC_BAD_INPUT, "write or fetch the file again", "tensor '%.200s' %s (%s)", name,
                   message, what);
}

// Bytes that a tensor of this type and shape takes; false when that is past any memory.
static bool tensor_size(const dc_st_tensor *t, size_t *out) {
    uint64_t size = dtypes[t->dtype].size;
    for (int i = 0; i < t->ndim; i++)
        if (__builtin_mul_overflow(size, (uint64_t)t->shape[i], &size)) return false;
    *out = (size_t)size;
    return size <= SIZE_MAX / 2;
}

// ---- reading

// The part of a file behind its header, while its entries are read.
typedef struct source {
    const char *what;
    const uint8_t *data;
    size_t size;
} source;

static dc_status read_dtype(const source *from, const dc_json *entry, dc_st_tensor *t) {
    const dc_json *name = dc_json_get(entry, "dtype");
    if (!name || name->kind != DC_JSON_STRING)
        return fail_tensor(from->what, t->name, "has no dtype");
    for (t->dtype = 0; t->dtype < DC_ST_DTYPES; t->dtype++)
        if (!strcmp(dtypes[t->dtype].name, name->text)) return DC_OK;
    return fail_tensor(from->what, t->name, "has an unknown dtype");
}

static dc_status read_shape(const source *from, const dc_json *entry, dc_st_tensor *t) {
    const dc_json *shape = dc_json_get(entry, "shape");
    if (!shape || shape->kind != DC_JSON_ARRAY)
        return fail_tensor(from->what, t->name, "has no shape");
    if (shape->count > DC_ST_DIMS)
        return fail_tensor(from->what, t->name, "has more than 8 dimensions");
    for (const dc_json *c = shape->child; c; c = c->next) {
        int64_t *n = &t->shape[t->ndim++];
        if (!dc_json_int(c, n) || *n < 0)
            return fail_tensor(from->what, t->name, "has a malformed shape");
    }
    return DC_OK;
}

static dc_status read_offsets(const source *from, const dc_json *entry, dc_st_tensor *t) {
    const dc_json *pair = dc_json_get(entry, "data_offsets");
    int64_t start, end;
    if (!pair || pair->kind != DC_JSON_ARRAY || pair->count != 2 ||
        !dc_json_int(pair->child, &start) || !dc_json_int(pair->child->next, &end))
        return fail_tensor(from->what, t->name, "has no data_offsets");
    if (start < 0 || end < start || (uint64_t)end > from->size)
        return fail_tensor(from->what, t->name, "lies outside the file");
    size_t size = 0;
    if (!tensor_size(t, &size) || size != (size_t)(end - start))
        return fail_tensor(from->what, t->name, "has a size that disagrees with its shape");
    t->bytes = from->data + start;
    t->size = size;
    return DC_OK;
}

static dc_status read_tensor(const source *from, const dc_json *entry, dc_st_tensor *t) {
    t->name = entry->key;
    if (entry->kind != DC_JSON_OBJECT)
        return fail_tensor(from->what, t->name, "is described by something else than an object");
    DC_TRY(read_dtype(from, entry, t));
    DC_TRY(read_shape(from, entry, t));
    return read_offsets(from, entry, t);
}

static dc_status read_metas(dc_st_file *file, const char *what, const dc_json *object) {
    if (object->kind != DC_JSON_OBJECT) return fail(what, "its metadata is not an object");
    dc_st_meta *metas = dc_arena_take(&file->arena, object->count * sizeof *metas);
    if (!metas) return DC_NO_MEMORY;
    for (const dc_json *c = object->child; c; c = c->next) {
        if (c->kind != DC_JSON_STRING || strlen(c->text) != c->text_length)
            return fail(what, "its metadata is not all text");
        metas[file->meta_count++] = (dc_st_meta){c->key, c->text};
    }
    file->metas = metas;
    return DC_OK;
}

// By place in the file; empty tensors share a place and stand before the one that fills it.
static int by_place(const void *a, const void *b) {
    const dc_st_tensor *x = a, *y = b;
    if (x->bytes != y->bytes) return (const uint8_t *)x->bytes < (const uint8_t *)y->bytes ? -1 : 1;
    if (x->size != y->size) return x->size < y->size ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b) {
    const dc_st_tensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

// Each tensor must begin where the one before it ends, and the last must end with the file.
static dc_status check_cover(const source *from, const dc_st_tensor *tensors, size_t count) {
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        if ((const uint8_t *)tensors[i].bytes != from->data + at)
            return fail_tensor(from->what, tensors[i].name, "overlaps another or leaves a hole");
        at += tensors[i].size;
    }
    if (at != from->size) return fail(from->what, "bytes follow its last tensor");
    return DC_OK;
}

static dc_status index_names(dc_st_file *file) {
    const dc_st_tensor **sorted = dc_arena_take(&file->arena, file->count * sizeof *sorted);
    if (!sorted) return DC_NO_MEMORY;
    for (size_t i = 0; i < file->count; i++)
        sorted[i] = &file->tensors[i];
    if (file->count) qsort(sorted, file->count, sizeof *sorted, by_name);
    file->by_name = sorted;
    return DC_OK;
}

static dc_status read_entries(dc_st_file *file, const source *from, const dc_json *header) {
    dc_st_tensor *tensors = dc_arena_take(&file->arena, header->count * sizeof *tensors);
    if (!tensors) return DC_NO_MEMORY;
    for (const dc_json *c = header->child; c; c = c->next) {
        if (!strcmp(c->key, META))
            DC_TRY(read_metas(file, from->what, c));
        else
            DC_TRY(read_tensor(from, c, &tensors[file->count++]));
    }
    if (file->count) qsort(tensors, file->count, sizeof *tensors, by_place);
    DC_TRY(check_cover(from, tensors, file->count));
    file->tensors = tensors;
    return index_names(file);
}

static dc_status parse(dc_st_file *file, const char *what, const uint8_t *bytes, size_t size) {
    if (size < PREFIX) return fail(what, "it is shorter than 8 bytes");
    uint64_t n = 0;
    for (int i = PREFIX; i-- > 0;)
        n = n << 8 | bytes[i];
    if (n > HEADER_MAX) return fail(what, "its header would be longer than 1 MB");
    if (n > size - PREFIX) return fail(what, "its header would be longer than the file");
    if (n == 0 || bytes[PREFIX] != '{') return fail(what, "its header does not begin with '{'");
    dc_arena_init(&file->arena, (size_t)n * MEMORY_FACTOR + MEMORY_BASE);
    const dc_json *header;
    DC_TRY(dc_json_parse(&file->arena, what, (const char *)bytes + PREFIX, (size_t)n, &header));
    source from = {what, bytes + PREFIX + n, size - PREFIX - (size_t)n};
    return read_entries(file, &from, header);
}

dc_status dc_st_parse(dc_st_file *file, const char *what, const void *bytes, size_t size) {
    *file = (dc_st_file){0};
    dc_status status = parse(file, what, bytes, size);
    if (status != DC_OK) dc_st_close(file);
    return status;
}

static dc_status parse_map(dc_st_file *file, const char *path, dc_map map) {
    dc_status status = dc_st_parse(file, path, map.bytes, map.size);
    if (status == DC_OK)
        file->map = map;
    else
        dc_map_close(&map);
    return status;
}

dc_status dc_st_open(dc_st_file *file, const char *path) {
    dc_map map;
    *file = (dc_st_file){0};
    DC_TRY(dc_map_open(&map, path));
    return parse_map(file, path, map);
}

dc_status dc_st_open_inside(dc_st_file *file, const char *path) {
    dc_map map;
    *file = (dc_st_file){0};
    DC_TRY(dc_map_open_inside(&map, path));
    return parse_map(file, path, map);
}

void dc_st_close(dc_st_file *file) {
    dc_arena_fini(&file->arena);
    dc_map_close(&file->map);
    *file = (dc_st_file){0};
}

static int name_of(const void *name, const void *entry) {
    const dc_st_tensor *const *t = entry;
    return strcmp(name, (*t)->name);
}

const dc_st_tensor *dc_st_find(const dc_st_file *file, const char *name) {
    if (!file->count) return NULL;
    const dc_st_tensor *const *found =
        bsearch(name, file->by_name, file->count, sizeof *file->by_name, name_of);
    return found ? *found : NULL;
}

const char *dc_st_meta_get(const dc_st_file *file, const char *key) {
    for (size_t i = 0; i < file->meta_count; i++)
        if (!strcmp(file->metas[i].key, key)) return file->metas[i].value;
    return NULL;
}

// ---- hash

static uint64_t hash_text(const char *text, uint64_t hash) {
    return dc_hash(text, strlen(text) + 1, hash);
}

void dc_st_hash(const dc_st_tensor *tensors, size_t count, const dc_st_meta *metas,
                size_t meta_count, char out[DC_ST_HASH]) {
    uint64_t hash = count;
    for (size_t i = 0; i < meta_count; i++)
        if (strcmp(metas[i].key, "hash") != 0)
            hash = hash_text(metas[i].value, hash_text(metas[i].key, hash));
    for (size_t i = 0; i < count; i++) {
        hash = hash_text(tensors[i].name, hash);
        hash = dc_hash(tensors[i].bytes, tensors[i].size, hash);
    }
    snprintf(out, DC_ST_HASH, "%016" PRIx64, hash);
}

// ---- writing

static void put_metas(dc_text *out, const dc_st_meta *metas, size_t count) {
    dc_text_add(out, "\"%s\":{", META);
    for (size_t i = 0; i < count; i++) {
        if (i) dc_text_add(out, ",");
        dc_json_quote(out, metas[i].key);
        dc_text_add(out, ":");
        dc_json_quote(out, metas[i].value);
    }
    dc_text_add(out, "}");
}

static void put_tensor(dc_text *out, const dc_st_tensor *t, uint64_t start) {
    dc_json_quote(out, t->name);
    dc_text_add(out, ":{\"dtype\":\"%s\",\"shape\":[", dc_st_dtype_name(t->dtype));
    for (int i = 0; i < t->ndim; i++)
        dc_text_add(out, "%s%lld", i ? "," : "", (long long)t->shape[i]);
    dc_text_add(out, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)start,
                (unsigned long long)(start + t->size));
}

static void check_tensor(const dc_st_tensor *t) {
    size_t size = 0;
    DC_CHECK(strcmp(t->name, META) != 0);
    DC_CHECK(t->dtype < DC_ST_DTYPES && t->ndim >= 0 && t->ndim <= DC_ST_DIMS);
    for (int i = 0; i < t->ndim; i++)
        DC_CHECK(t->shape[i] >= 0);
    DC_CHECK(tensor_size(t, &size) && size == t->size && (t->bytes || size == 0));
}

// The header, with its padding.
static dc_status make_header(dc_text *out, const dc_st_tensor *tensors, size_t count,
                             const dc_st_meta *metas, size_t meta_count) {
    uint64_t at = 0;
    dc_text_add(out, "{");
    if (meta_count) put_metas(out, metas, meta_count);
    for (size_t i = 0; i < count; i++) {
        check_tensor(&tensors[i]);
        if (i || meta_count) dc_text_add(out, ",");
        put_tensor(out, &tensors[i], at);
        at += tensors[i].size;
    }
    dc_text_add(out, "}");
    while (out->status == DC_OK && out->used % ALIGN)
        dc_text_add(out, " ");
    return dc_text_status(out);
}

// Parse what will be written: names that stand twice must not make a file that cannot be opened.
static dc_status check_header(const char *path, const dc_text *header) {
    if (header->used > HEADER_MAX)
        return dc_fail(DC_BAD_INPUT, NULL, "names and metadata take more than 1 MB (%s)", path);
    dc_arena arena;
    const dc_json *root;
    dc_arena_init(&arena, 0);
    dc_status status = dc_json_parse(&arena, path, header->bytes, header->used, &root);
    dc_arena_fini(&arena);
    return status;
}

static dc_status save(const char *path, bool inside, const dc_text *header,
                      const dc_st_tensor *tensors, size_t count) {
    uint8_t prefix[PREFIX];
    for (int i = 0; i < PREFIX; i++)
        prefix[i] = (uint8_t)((uint64_t)header->used >> (8 * i));
    dc_save out;
    DC_TRY(inside ? dc_save_open_inside(&out, path) : dc_save_open(&out, path));
    DC_TRY(dc_save_write(&out, prefix, PREFIX));
    DC_TRY(dc_save_write(&out, header->bytes, header->used));
    for (size_t i = 0; i < count; i++)
        DC_TRY(dc_save_write(&out, tensors[i].bytes, tensors[i].size));
    return dc_save_commit(&out);
}

static dc_status write_file(const char *path, bool inside, const dc_st_tensor *tensors,
                            size_t count, const dc_st_meta *metas, size_t meta_count) {
    dc_text header;
    dc_text_init(&header);
    dc_status status = make_header(&header, tensors, count, metas, meta_count);
    if (status == DC_OK) status = check_header(path, &header);
    if (status == DC_OK) status = save(path, inside, &header, tensors, count);
    dc_text_fini(&header);
    return status;
}

dc_status dc_st_write(const char *path, const dc_st_tensor *tensors, size_t count,
                      const dc_st_meta *metas, size_t meta_count) {
    return write_file(path, false, tensors, count, metas, meta_count);
}

dc_status dc_st_write_inside(const char *path, const dc_st_tensor *tensors, size_t count,
                             const dc_st_meta *metas, size_t meta_count) {
    return write_file(path, true, tensors, count, metas, meta_count);
}
