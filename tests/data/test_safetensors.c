// Safetensors: what is written comes back, its bytes are fixed, and malformed files are refused.
// Against the reference implementation see test_safetensors_py.py.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "data/safetensors.h"

static char folder[] = "/tmp/dcrl_st_XXXXXX";

static const char *in_folder(const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static const float weights[6] = {1, 2, 3, 4, 5, 6};
static const int64_t step = 12345678901;
static const uint8_t flags[3] = {1, 0, 1};

static void test_round_trip(void **state) {
    (void)state;
    const dc_st_tensor tensors[] = {
        {.name = "step", .dtype = DC_ST_I64, .bytes = &step, .size = 8},
        {.name = "critic/l0/w", .ndim = 2, .shape = {2, 3}, .bytes = weights, .size = 24},
        {.name = "empty \"q\" \xc3\xa9", .ndim = 2, .shape = {0, 7}},
        {.name = "flags", .dtype = DC_ST_BOOL, .ndim = 1, .shape = {3}, .bytes = flags, .size = 3},
    };
    const dc_st_meta metas[] = {{"agent", "dcrl"}, {"note", "line\n\"two\""}};
    const char *path = in_folder("a.safetensors");
    assert_int_equal(dc_st_write(path, tensors, 4, metas, 2), DC_OK);
    dc_st_file file;
    assert_int_equal(dc_st_open(&file, path), DC_OK);
    assert_int_equal(file.count, 4);
    for (int i = 0; i < 4; i++) {
        const dc_st_tensor *t = dc_st_find(&file, tensors[i].name);
        assert_non_null(t);
        assert_ptr_equal(t, &file.tensors[i]);
        assert_int_equal(t->dtype, tensors[i].dtype);
        assert_int_equal(t->ndim, tensors[i].ndim);
        assert_memory_equal(t->shape, tensors[i].shape, sizeof t->shape);
        assert_int_equal(t->size, tensors[i].size);
        if (t->size) assert_memory_equal(t->bytes, tensors[i].bytes, t->size);
    }
    assert_true((uintptr_t)file.tensors[0].bytes % 8 == 0);
    assert_null(dc_st_find(&file, "critic"));
    assert_string_equal(dc_st_meta_get(&file, "agent"), "dcrl");
    assert_string_equal(dc_st_meta_get(&file, "note"), "line\n\"two\"");
    assert_null(dc_st_meta_get(&file, "absent"));
    dc_st_close(&file);
    dc_st_close(&file);
}

static void test_bytes(void **state) {
    (void)state;
    const dc_st_tensor t = {
        .name = "a", .dtype = DC_ST_U8, .ndim = 1, .shape = {3}, .bytes = flags, .size = 3};
    assert_int_equal(dc_st_write(in_folder("b"), &t, 1, NULL, 0), DC_OK);
    char *bytes;
    size_t n;
    assert_int_equal(dc_file_read(in_folder("b"), 1000, &bytes, &n), DC_OK);
    const char *header = "{\"a\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]}}   ";
    assert_int_equal(strlen(header) % 8, 0);
    assert_int_equal(n, 8 + strlen(header) + 3);
    assert_int_equal(bytes[0], (int)strlen(header));
    assert_memory_equal(bytes + 1, "\0\0\0\0\0\0\0", 7);
    assert_memory_equal(bytes + 8, header, strlen(header));
    assert_memory_equal(bytes + 8 + strlen(header), flags, 3);
    free(bytes);
}

static void test_nothing(void **state) {
    (void)state;
    dc_st_file file;
    assert_int_equal(dc_st_write(in_folder("none"), NULL, 0, NULL, 0), DC_OK);
    assert_int_equal(dc_st_open(&file, in_folder("none")), DC_OK);
    assert_int_equal(file.count, 0);
    assert_null(dc_st_find(&file, "a"));
    dc_st_close(&file);
    const dc_st_meta meta = {"k", ""};
    assert_int_equal(dc_st_write(in_folder("none"), NULL, 0, &meta, 1), DC_OK);
    assert_int_equal(dc_st_open(&file, in_folder("none")), DC_OK);
    assert_string_equal(dc_st_meta_get(&file, "k"), "");
    dc_st_close(&file);
}

static void test_twice(void **state) {
    (void)state;
    const dc_st_tensor t[2] = {{.name = "a", .ndim = 1, .shape = {0}},
                               {.name = "a", .ndim = 1, .shape = {0}}};
    assert_int_equal(dc_st_write(in_folder("twice"), t, 2, NULL, 0), DC_BAD_INPUT);
    assert_false(access(in_folder("twice"), F_OK) == 0);
}

// A file from a header as text and some bytes of data, given exactly on the heap.
static dc_status parse(const char *header, size_t data, dc_st_file *file, uint8_t **owner) {
    size_t n = strlen(header);
    uint8_t *bytes = calloc(1, 8 + n + data);
    assert_non_null(bytes);
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)((uint64_t)n >> (8 * i));
    memcpy(bytes + 8, header, n);
    *owner = bytes;
    return dc_st_parse(file, "test", bytes, 8 + n + data);
}

#define A(dtype, shape, offsets)                                                                   \
    "\"a\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define B(dtype, shape, offsets)                                                                   \
    "\"b\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static void test_takes(void **state) {
    (void)state;
    static const struct {
        const char *header;
        size_t data;
    } rows[] = {
        {"{}", 0},
        {"{}      ", 0},
        {"{" A("F32", "[1]", "[0,4]") "}", 4},
        {"{" A("F32", "[]", "[0,4]") "}", 4},
        {"{" A("BF16", "[2,2]", "[4,12]") "," B("I16", "[2]", "[0,4]") "}", 12},
        {"{" A("F64", "[0]", "[8,8]") "," B("U64", "[1]", "[0,8]") "}", 8},
        {"{" A("F64", "[0,9223372036854775807]", "[0,0]") "}", 0},
        {"{" A("I8", "[1,1,1,1,1,1,1,1]", "[0,1]") "}", 1},
        {"{\"__metadata__\":{}}", 0},
        {"{\"a\":{\"extra\":{},\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        dc_st_file file;
        uint8_t *owner;
        if (parse(rows[i].header, rows[i].data, &file, &owner) != DC_OK)
            fail_msg("refused %s: %s", rows[i].header, dc_error());
        dc_st_close(&file);
        free(owner);
    }
}

static void test_refuses(void **state) {
    (void)state;
    static const struct {
        const char *header;
        size_t data;
    } rows[] = {
        {"", 0},
        {" {}", 0},
        {"[]", 0},
        {"{", 0},
        {"{}x", 0},
        {"{}", 1},                                                          // bytes left
        {"{" A("F32", "[1]", "[0,4]") "}", 3},                              // cut short
        {"{" A("F32", "[1]", "[0,4]") "}", 5},                              // bytes left
        {"{" A("F32", "[1]", "[1,5]") "}", 5},                              // hole in front
        {"{" A("F32", "[1]", "[0,4]") "," B("F32", "[1]", "[5,9]") "}", 9}, // hole
        {"{" A("F32", "[1]", "[0,4]") "," B("F32", "[1]", "[2,6]") "}", 6}, // overlap
        {"{" A("F32", "[1]", "[0,4]") "," B("F32", "[1]", "[0,4]") "}", 4}, // same place
        {"{" A("F32", "[0]", "[3,3]") "," B("U8", "[4]", "[0,4]") "}", 4},  // inside another
        {"{" A("F32", "[1]", "[4,0]") "}", 4},                              // backwards
        {"{" A("F32", "[2]", "[0,4]") "}", 4},                              // shape
        {"{" A("F32", "[-1]", "[0,4]") "}", 4},                             // negative
        {"{" A("F32", "[1.5]", "[0,6]") "}", 6},                            // not whole
        {"{" A("F32", "[1]", "[0,4,4]") "}", 4},                            // three offsets
        {"{" A("F32", "[1]", "[0]") "}", 4},                                // one
        {"{" A("F32", "[1]", "{}") "}", 4},                                 // none
        {"{" A("F32", "{}", "[0,4]") "}", 4},                               // no shape
        {"{" A("F33", "[1]", "[0,4]") "}", 4},                              // unknown type
        {"{" A("F32", "[4611686018427387904,4]", "[0,0]") "}", 0},          // overflow to 0
        {"{" A("F32", "[9223372036854775807,9223372036854775807]", "[0,4]") "}", 4},
        {"{" A("F32", "[1]", "[-4,0]") "}", 4},
        {"{" A("F32", "[1]", "[0,9223372036854775807]") "}", 4},
        {"{" A("F32", "[1]", "[0,99999999999999999999]") "}", 4},
        {"{" A("I8", "[1,1,1,1,1,1,1,1,1]", "[0,1]") "}", 1},               // nine dimensions
        {"{" A("F32", "[1]", "[0,4]") "," A("F32", "[1]", "[0,4]") "}", 4}, // twice
        {"{\"a\":1}", 0},
        {"{\"a\":{}}", 0},
        {"{\"a\":{\"dtype\":1,\"shape\":[],\"data_offsets\":[0,4]}}", 4},
        {"{\"__metadata__\":1}", 0},
        {"{\"__metadata__\":{\"a\":1}}", 0},
        {"{\"__metadata__\":{\"a\":\"\\u0000\"}}", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        dc_st_file file;
        uint8_t *owner;
        if (parse(rows[i].header, rows[i].data, &file, &owner) != DC_BAD_INPUT)
            fail_msg("took %s", rows[i].header);
        assert_non_null(strstr(dc_error(), "test"));
        free(owner);
    }
}

static void test_header_length(void **state) {
    (void)state;
    dc_st_file file;
    uint8_t bytes[10] = {2, 0, 0, 0, 0, 0, 0, 0, '{', '}'};
    assert_int_equal(dc_st_parse(&file, "test", bytes, 10), DC_OK);
    dc_st_close(&file);
    for (size_t n = 0; n < 10; n++)
        assert_int_equal(dc_st_parse(&file, "test", bytes, n), DC_BAD_INPUT);
    bytes[0] = 3;
    assert_int_equal(dc_st_parse(&file, "test", bytes, 10), DC_BAD_INPUT);
    memset(bytes, 255, 8);
    assert_int_equal(dc_st_parse(&file, "test", bytes, 10), DC_BAD_INPUT);
    assert_int_equal(dc_st_open(&file, in_folder("absent")), DC_IO);
    assert_int_equal(dc_st_open(&file, folder), DC_IO);
    assert_int_equal(dc_file_write(in_folder("zero"), "", 0), DC_OK);
    assert_int_equal(dc_st_open(&file, in_folder("zero")), DC_BAD_INPUT);
}

// A file cut short anywhere is refused.
static void test_cut(void **state) {
    (void)state;
    const dc_st_tensor t = {.name = "w", .ndim = 2, .shape = {2, 3}, .bytes = weights, .size = 24};
    const dc_st_meta meta = {"k", "v"};
    char *bytes;
    size_t n;
    assert_int_equal(dc_st_write(in_folder("b"), &t, 1, &meta, 1), DC_OK);
    assert_int_equal(dc_file_read(in_folder("b"), 1000, &bytes, &n), DC_OK);
    dc_st_file file;
    for (size_t cut = 0; cut < n; cut++) {
        uint8_t *part = malloc(cut ? cut : 1);
        assert_non_null(part);
        memcpy(part, bytes, cut);
        assert_int_equal(dc_st_parse(&file, "cut", part, cut), DC_BAD_INPUT);
        free(part);
    }
    free(bytes);
}

static ssize_t no_write(int fd, const void *bytes, size_t n) {
    (void)fd, (void)bytes, (void)n;
    errno = ENOSPC;
    return -1;
}

// A full disk costs nothing of what was there.
static void test_full(void **state) {
    (void)state;
    const dc_st_tensor t = {.name = "w", .ndim = 2, .shape = {2, 3}, .bytes = weights, .size = 24};
    assert_int_equal(dc_st_write(in_folder("b"), &t, 1, NULL, 0), DC_OK);
    dc_file_calls before = dc_file_system;
    dc_file_system.write = no_write;
    dc_status status = dc_st_write(in_folder("b"), NULL, 0, NULL, 0);
    dc_file_system = before;
    assert_int_equal(status, DC_IO);
    assert_non_null(strstr(dc_error(), "free some space"));
    dc_st_file file;
    assert_int_equal(dc_st_open(&file, in_folder("b")), DC_OK);
    assert_non_null(dc_st_find(&file, "w"));
    dc_st_close(&file);
}

// A header made to cost memory is refused, not served.
static void test_memory_bound(void **state) {
    (void)state;
    enum { N = 1 << 21 };
    char *header = malloc(N + 1);
    assert_non_null(header);
    memcpy(header, "{\"a\":[1", 7);
    for (int i = 7; i + 2 <= N - 3; i += 2)
        memcpy(header + i, ",1", 2);
    memcpy(header + N - 3, "]} ", 4);
    header[N - 4] = ' ';
    dc_st_file file;
    uint8_t *owner;
    assert_int_not_equal(parse(header, 0, &file, &owner), DC_OK);
    free(owner);
    free(header);
}

// A header as the reference writes it, dense: many small tensors must fit the bound on memory.
static void test_many(void **state) {
    (void)state;
    enum { N = 10000 };
    dc_st_tensor *tensors = calloc(N, sizeof *tensors);
    char(*names)[8] = calloc(N, sizeof *names);
    assert_true(tensors && names);
    for (int i = 0; i < N; i++) {
        snprintf(names[i], sizeof names[i], "%x", i);
        tensors[i] = (dc_st_tensor){
            .name = names[i], .dtype = DC_ST_U8, .ndim = 8, .bytes = flags, .size = 1};
        for (int k = 0; k < 8; k++)
            tensors[i].shape[k] = 1;
    }
    assert_int_equal(dc_st_write(in_folder("many"), tensors, N, NULL, 0), DC_OK);
    dc_st_file file;
    assert_int_equal(dc_st_open(&file, in_folder("many")), DC_OK);
    assert_int_equal(file.count, N);
    for (int i = 0; i < N; i++)
        assert_ptr_equal(dc_st_find(&file, names[i]), &file.tensors[i]);
    dc_st_close(&file);
    free(names);
    free(tensors);
}

static void test_dtypes(void **state) {
    (void)state;
    for (dc_st_dtype d = 0; d < DC_ST_DTYPES; d++) {
        assert_non_null(dc_st_dtype_name(d));
        assert_in_range(dc_st_dtype_size(d), 1, 8);
    }
}

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    static const char *const names[] = {"a.safetensors", "b", "none", "zero", "many"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unlink(in_folder(names[i]));
    return rmdir(folder); // fails if anything was left over
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),    cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_nothing),       cmocka_unit_test(test_twice),
        cmocka_unit_test(test_takes),         cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_header_length), cmocka_unit_test(test_cut),
        cmocka_unit_test(test_full),          cmocka_unit_test(test_memory_bound),
        cmocka_unit_test(test_many),          cmocka_unit_test(test_dtypes),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
