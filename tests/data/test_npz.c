// Tests of data/npz from C: what the writer writes is read again, bytes are the same every time,
// every kind of damage gets its own message, and a failing disk leaves nothing behind. The other
// direction, files made and read by numpy, is test_npz_py.py.
#include "data/npz.h"
#include "data/zip.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/dcrl-npz-XXXXXX", path[64];

static int make_folder(void **state) {
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/a.npz", folder);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    unlink(path);
    return rmdir(folder); // fails if anything was left behind
}

// Three arrays: "a" of rows (n, 3) float32 in uneven pieces, in turns with "b" of n bytes; "c" of
// shape ().
static dc_status write_sample(int level, int64_t n) {
    dc_npz_writer *w;
    int a, b;
    double c = 2.5;
    DC_TRY(dc_npz_writer_new(&w, path, level));
    dc_status status = dc_npz_writer_add(w, "a", DC_F4, 1, (int64_t[]){3}, &a);
    if (status == DC_OK) status = dc_npz_writer_add(w, "b", DC_U1, 0, NULL, &b);
    for (int64_t row = 0, step = 1; status == DC_OK && row < n; row += step, step = row % 7) {
        float rows[7][3];
        uint8_t bytes[7];
        if (step > n - row) step = n - row;
        for (int64_t i = 0; i < step; i++) {
            for (int k = 0; k < 3; k++)
                rows[i][k] = (float)((row + i) * 3 + k);
            bytes[i] = (uint8_t)(row + i);
        }
        status = dc_npz_writer_append(w, a, rows, step);
        if (status == DC_OK) status = dc_npz_writer_append(w, b, bytes, step);
        if (step == 0) step = 1, row--;
    }
    if (status == DC_OK) status = dc_npz_writer_put(w, "c", DC_F8, 0, NULL, &c);
    if (status == DC_OK) status = dc_npz_writer_save(w);
    dc_npz_writer_free(w);
    return status;
}

static void check_sample(int64_t n) {
    dc_npz npz;
    dc_npy npy;
    void *values;
    assert_int_equal(dc_npz_open(&npz, path), DC_OK);
    assert_int_equal(npz.count, 3);
    const dc_npz_entry *a = dc_npz_find(&npz, "a");
    assert_int_equal(dc_npz_head(&npz, a, &npy), DC_OK);
    assert_int_equal(npy.ndim, 2);
    assert_int_equal(npy.shape[0], n);
    assert_int_equal(npy.shape[1], 3);
    assert_int_equal((a->offset + npy.header) % 64, 0);
    assert_int_equal(dc_npz_values(&npz, a, &npy, &npz.arena, &values), DC_OK);
    float *again = malloc((size_t)(n * 3 + 1) * sizeof *again);
    assert_int_equal(dc_npz_floats(&npz, a, &npy, again), DC_OK);
    for (int64_t i = 0; i < n * 3; i++)
        assert_true(((float *)values)[i] == (float)i && again[i] == (float)i);
    free(again);
    const dc_npz_entry *c = dc_npz_find(&npz, "c");
    double number;
    assert_int_equal(dc_npz_head(&npz, c, &npy), DC_OK);
    assert_int_equal(npy.ndim, 0);
    assert_int_equal(dc_npz_doubles(&npz, c, &npy, &number), DC_OK);
    assert_true(number == 2.5);
    assert_null(dc_npz_find(&npz, "d"));
    dc_npz_close(&npz);
}

static void test_round_trip(void **state) {
    (void)state;
    static const int64_t sizes[] = {0, 1, 2, 100, 70000};
    for (int level = 0; level <= 9; level += 3)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            assert_int_equal(write_sample(level, sizes[i]), DC_OK);
            check_sample(sizes[i]);
        }
}

static void test_same_bytes(void **state) {
    (void)state;
    for (int level = 0; level <= 1; level++) {
        char *first, *second;
        size_t n, m;
        assert_int_equal(write_sample(level, 1000), DC_OK);
        assert_int_equal(dc_file_read(path, 1 << 20, &first, &n), DC_OK);
        assert_int_equal(write_sample(level, 1000), DC_OK);
        assert_int_equal(dc_file_read(path, 1 << 20, &second, &m), DC_OK);
        assert_int_equal(n, m);
        assert_memory_equal(first, second, n);
        free(first);
        free(second);
    }
}

// ---- damage ----

typedef struct image {
    uint8_t *bytes;
    size_t size;
    uint8_t *local, *central, *end64, *locator, *end; // first records of each kind
} image;

static image load_image(int level) {
    image im;
    assert_int_equal(write_sample(level, 100), DC_OK);
    assert_int_equal(dc_file_read(path, 1 << 20, (char **)&im.bytes, &im.size), DC_OK);
    im.local = im.bytes;
    im.end = im.bytes + im.size - ZIP_END_SIZE;
    im.locator = im.end - ZIP_LOCATOR64_SIZE;
    im.end64 = im.locator - ZIP_END64_SIZE;
    im.central = im.bytes + zip_get64(im.end64 + 48);
    return im;
}

// Open and read all: the first failure, or DC_OK.
static dc_status read_image(const uint8_t *bytes, size_t size) {
    dc_npz npz;
    DC_TRY(dc_npz_open_memory(&npz, "image.npz", bytes, size));
    dc_status status = DC_OK;
    for (size_t i = 0; status == DC_OK && i < npz.count; i++) {
        dc_npy npy;
        void *values;
        dc_arena arena;
        dc_arena_init(&arena, 0);
        status = dc_npz_head(&npz, &npz.entries[i], &npy);
        if (status == DC_OK) status = dc_npz_values(&npz, &npz.entries[i], &npy, &arena, &values);
        dc_arena_fini(&arena);
    }
    dc_npz_close(&npz);
    return status;
}

static void expect_damage(const image *im, const char *message) {
    dc_status status = read_image(im->bytes, im->size);
    if (status == DC_OK || !strstr(dc_error(), message) || !strstr(dc_error(), "image.npz"))
        fail_msg("wanted '%s', got %d '%s'", message, (int)status, dc_error());
    free(im->bytes);
}

static void test_damage(void **state) {
    (void)state;
    image im = load_image(0);
    assert_int_equal(read_image(im.bytes, im.size), DC_OK);
    free(im.bytes);
#define DAMAGE(level, edit, message)                                                               \
    do {                                                                                           \
        im = load_image(level);                                                                    \
        edit;                                                                                      \
        expect_damage(&im, message);                                                               \
    } while (0)
    uint8_t *second; // the directory's second record
#define SECOND (second = im.central + ZIP_CENTRAL_SIZE + 5 + 28)
    DAMAGE(0, zip_put(im.end, 4, 0), "not an npz file");
    DAMAGE(0, im.size -= 1, "not an npz file");
    DAMAGE(0, im.size = 10, "not an npz file");
    DAMAGE(0, zip_put(im.locator, 4, 0), "zip64 end record");
    DAMAGE(0, zip_put(im.locator + 8, 8, UINT64_MAX), "zip64 end record");
    DAMAGE(0, zip_put(im.end64, 4, 0), "zip64 end record");
    DAMAGE(0, zip_put(im.end64 + 16, 4, 1), "several parts");
    DAMAGE(0, zip_put(im.end64 + 40, 8, 1), "not where the end record says");
    DAMAGE(0, zip_put(im.end64 + 48, 8, UINT64_MAX), "not where the end record says");
    DAMAGE(0, zip_put(zip_put(im.end64 + 24, 8, 1u << 30), 8, 1u << 30), "number of entries");
    DAMAGE(0, zip_put(zip_put(im.end64 + 24, 8, 2), 8, 2), "left over");
    DAMAGE(0, zip_put(im.central, 4, 0), "directory is malformed");
    DAMAGE(0, zip_put(im.central + 28, 2, 60000), "directory is malformed");
    DAMAGE(0, zip_put(im.central + 8, 2, 1), "encrypted");
    DAMAGE(0, zip_put(im.central + 10, 2, 14), "compression method 14");
    DAMAGE(0, zip_put(im.central + 34, 2, 1), "another disk");
    DAMAGE(0, zip_put(im.central + 46, 1, 0), "name is malformed");
    DAMAGE(0, zip_put(im.central + 46, 1, 'x'), "does not agree");
    DAMAGE(0, zip_put(im.central + 16, 4, 0), "does not agree");
    DAMAGE(0, zip_put(im.central + 46 + 5, 2, 77), "extra field");
    DAMAGE(0, zip_put(im.central + 46 + 5 + 4, 8, 7), "two sizes");
    DAMAGE(1, zip_put(im.central + 46 + 5 + 4, 8, (uint64_t)1 << 40), "impossible size");
    DAMAGE(1, zip_put(im.central + 46 + 5 + 12, 8, (uint64_t)1 << 40), "impossible size");
    DAMAGE(0, zip_put(im.central + 46 + 5 + 20, 8, UINT64_MAX), "outside of the file");
    DAMAGE(0, zip_put(im.central + 46 + 5 + 20, 8, 1), "local header is missing");
    DAMAGE(0, zip_put(im.local, 4, 0), "local header is missing");
    DAMAGE(0, zip_put(im.local + 14, 4, 0), "does not agree");
    DAMAGE(0, zip_put(im.local + 28, 2, 65535), "cut short");
    DAMAGE(0, memcpy(SECOND, im.central, 46 + 5 + 28), "two entries of one name");
}

static void test_damaged_bytes(void **state) {
    (void)state;
    image im;
    DAMAGE(0, im.central[-1] ^= 1, "checksum");
    DAMAGE(1, im.central[-3] ^= 1, "'c'");
    for (int level = 0; level <= 1; level++) { // every truncation is noticed
        im = load_image(level);
        for (size_t n = 0; n < im.size; n++)
            assert_int_not_equal(read_image(im.bytes, n), DC_OK);
        free(im.bytes);
    }
}

// ---- a failing disk ----

static int calls_left;

static ssize_t failing_write(int fd, const void *bytes, size_t n) {
    if (calls_left-- > 0) return write(fd, bytes, n);
    errno = ENOSPC;
    return -1;
}

static int failing_fsync(int fd) {
    if (calls_left-- > 0) return fsync(fd);
    errno = EIO;
    return -1;
}

static int failing_rename(const char *from, const char *to) {
    if (calls_left-- > 0) return rename(from, to);
    errno = EACCES;
    return -1;
}

static int count_files(void) {
    DIR *dir = opendir(folder);
    int n = 0;
    while (dir && readdir(dir))
        n++;
    closedir(dir);
    return n - 2; // . and ..
}

static int64_t rows_saved(void) {
    dc_npz npz;
    dc_npy npy;
    assert_int_equal(dc_npz_open(&npz, path), DC_OK);
    assert_int_equal(dc_npz_head(&npz, dc_npz_find(&npz, "a"), &npy), DC_OK);
    dc_npz_close(&npz);
    return npy.shape[0];
}

// Whichever call fails, there is one file, the old one. (Only when the very last call fails, which
// syncs the folder, the new one is there already.)
static void test_failing_disk(void **state) {
    (void)state;
    enum { OLD = 123, NEW = 100000 };
    dc_file_calls real = dc_file_system;
    assert_int_equal(write_sample(0, OLD), DC_OK);
    int failures = 0;
    for (bool renamed = false;; failures++) {
        calls_left = failures;
        dc_file_system = (dc_file_calls){failing_write, failing_fsync, failing_rename};
        dc_status status = write_sample(0, NEW);
        dc_file_system = real;
        assert_int_equal(count_files(), 1);
        if (status == DC_OK) break;
        assert_int_equal(status, DC_IO);
        assert_false(renamed);
        renamed = rows_saved() == NEW;
        check_sample(renamed ? NEW : OLD);
    }
    assert_true(failures > 5);
    check_sample(NEW);
}

static void test_discard(void **state) {
    (void)state;
    dc_npz_writer *w;
    int a;
    unlink(path);
    assert_int_equal(dc_npz_writer_new(&w, path, 1), DC_OK);
    assert_int_equal(dc_npz_writer_add(w, "a", DC_F4, 0, NULL, &a), DC_OK);
    dc_npz_writer_free(w);
    assert_int_equal(count_files(), 0);
    assert_int_equal(dc_npz_writer_new(&w, "/nowhere/at/all.npz", 1), DC_IO);
    dc_npz_writer_free(NULL);
}

static void test_missing_file(void **state) {
    (void)state;
    dc_npz npz;
    assert_int_equal(dc_npz_open(&npz, "/nowhere/at/all.npz"), DC_IO);
    dc_npz_close(&npz);
    assert_int_equal(dc_npz_open_memory(&npz, "image.npz", NULL, 0), DC_BAD_INPUT);
    dc_npz_close(&npz);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),   cmocka_unit_test(test_same_bytes),
        cmocka_unit_test(test_damage),       cmocka_unit_test(test_damaged_bytes),
        cmocka_unit_test(test_failing_disk), cmocka_unit_test(test_discard),
        cmocka_unit_test(test_missing_file),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
