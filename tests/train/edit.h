// A checkpoint taken apart, changed, and written again with a hash that fits: files that are whole, but say
// something else.
#ifndef EDIT_H
#define EDIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/hash.h"
#include "data/safetensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TENSORS_MAX = 160, METAS_MAX = 12 };

typedef struct parts {
    dc_st_tensor tensors[TENSORS_MAX];
    dc_st_meta metas[METAS_MAX];
    size_t count, meta_count;
    dc_st_file file;
    char *copy; // the bytes that tensors point into
    char hash[32];
} parts;

static inline void take_apart(parts *p, const void *bytes, size_t n) {
    p->copy = malloc(n);
    assert_non_null(p->copy);
    memcpy(p->copy, bytes, n);
    assert_int_equal(dc_st_parse(&p->file, "copy", p->copy, n), DC_OK);
    assert_true(p->file.count <= TENSORS_MAX && p->file.meta_count <= METAS_MAX);
    p->count = p->file.count;
    p->meta_count = p->file.meta_count;
    memcpy(p->tensors, p->file.tensors, p->count * sizeof *p->tensors);
    memcpy(p->metas, p->file.metas, p->meta_count * sizeof *p->metas);
}

static inline dc_st_tensor *find_tensor(parts *p, const char *name) {
    for (size_t i = 0; i < p->count; i++)
        if (!strcmp(p->tensors[i].name, name)) return &p->tensors[i];
    fail_msg("no tensor %s", name);
    return NULL;
}

// Its numbers; they may be written.
static inline float *floats_of(parts *p, const char *name) {
    return (float *)(uintptr_t)find_tensor(p, name)->bytes;
}

static inline dc_st_meta *find_meta(parts *p, const char *key) {
    for (size_t i = 0; i < p->meta_count; i++)
        if (!strcmp(p->metas[i].key, key)) return &p->metas[i];
    return NULL;
}

static inline void set_meta(parts *p, const char *key, const char *value) {
    dc_st_meta *meta = find_meta(p, key);
    if (meta) meta->value = value;
}

static inline void drop_tensor(parts *p, const char *name) {
    dc_st_tensor *t = find_tensor(p, name);
    size_t at = (size_t)(t - p->tensors);
    memmove(t, t + 1, (p->count - at - 1) * sizeof *t);
    p->count--;
}

static inline void drop_meta(parts *p, const char *key) {
    dc_st_meta *m = find_meta(p, key);
    assert_non_null(m);
    size_t at = (size_t)(m - p->metas);
    memmove(m, m + 1, (p->meta_count - at - 1) * sizeof *m);
    p->meta_count--;
}

// The hash that the content should have: of all metadata but itself, then of all tensors.
static inline void set_hash(parts *p) {
    uint64_t h = p->count;
    for (size_t i = 0; i < p->meta_count; i++) {
        if (!strcmp(p->metas[i].key, "hash")) continue;
        h = dc_hash(p->metas[i].key, strlen(p->metas[i].key) + 1, h);
        h = dc_hash(p->metas[i].value, strlen(p->metas[i].value) + 1, h);
    }
    for (size_t i = 0; i < p->count; i++) {
        h = dc_hash(p->tensors[i].name, strlen(p->tensors[i].name) + 1, h);
        h = dc_hash(p->tensors[i].bytes, p->tensors[i].size, h);
    }
    snprintf(p->hash, sizeof p->hash, "%016" PRIx64, h);
    set_meta(p, "hash", p->hash);
}

static inline void put_together(parts *p, const char *path) {
    assert_int_equal(dc_st_write(path, p->tensors, p->count, p->metas, p->meta_count), DC_OK);
    dc_st_close(&p->file);
    free(p->copy);
}

#endif
