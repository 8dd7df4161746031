// Tests of data/store and data/convert from inside: shards read as one array, a failing write
// leaves nothing, readers deliver what whole reads do, reading ahead changes no number, and
// sampling a store of several hundred megabytes keeps little of it when memory is wanted back.
#define _DEFAULT_SOURCE // madvise
#include "../sample/row_spec.h"
#include "base/file.h"
#include "base/philox.h"
#include "data/convert.h"
#include "data/store.h"
#include "sample/prefetch.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { ROWS = 5000, OBS = 3, ACT = 2, TRAJ = 50 };

static char folder[] = "/tmp/dcrl-store-XXXXXX", npz[64], store[64];
static float obs[ROWS][OBS], act[ROWS][ACT], ends[ROWS];

static void write_npz(int level) {
    dc_npz_writer *w;
    assert_int_equal(dc_npz_writer_new(&w, npz, level), DC_OK);
    assert_int_equal(dc_npz_writer_put(w, "observations", DC_F4, 2, (int64_t[]){ROWS, OBS}, obs),
                     DC_OK);
    assert_int_equal(dc_npz_writer_put(w, "actions", DC_F4, 2, (int64_t[]){ROWS, ACT}, act), DC_OK);
    assert_int_equal(dc_npz_writer_put(w, "terminals", DC_F4, 1, (int64_t[]){ROWS}, ends), DC_OK);
    assert_int_equal(dc_npz_writer_save(w), DC_OK);
    dc_npz_writer_free(w);
}

static int set_up(void **state) {
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(npz, sizeof npz, "%s/a.npz", folder);
    snprintf(store, sizeof store, "%s/store", folder);
    for (int r = 0; r < ROWS; r++) {
        for (int c = 0; c < OBS; c++)
            obs[r][c] = (float)(r * OBS + c);
        act[r][0] = (float)(r % 7) / 10;
        ends[r] = r % TRAJ == TRAJ - 1;
    }
    write_npz(1);
    return 0;
}

static void remove_store(void) {
    dc_store_index index;
    dc_arena arena;
    dc_arena_init(&arena, 0);
    assert_int_equal(dc_store_index_read(&index, &arena, store), DC_OK);
    dc_store_remove(store, &index);
    assert_false(access(store, F_OK) == 0);
    dc_arena_fini(&arena);
}

static int tear_down(void **state) {
    (void)state;
    unlink(npz);
    return rmdir(folder);
}

static dc_status convert(int64_t rows_per_shard, dc_convert_progress *progress, void *ctx) {
    dc_convert c;
    dc_convert_options options = {rows_per_shard, 0};
    const char *inputs[] = {npz};
    dc_status status = dc_convert_open(&c, inputs, 1, store, &options);
    if (status == DC_OK) status = dc_convert_run(&c, progress, ctx);
    dc_convert_close(&c);
    return status;
}

static bool stop_half(void *ctx, uint64_t done, uint64_t total) {
    *(uint64_t *)ctx = total;
    return done < total / 2;
}

static void test_one_array(void **state) {
    (void)state;
    dc_dataset file, data;
    assert_int_equal(dc_dataset_load(&file, npz), DC_OK);
    for (int64_t shard = DC_STORE_UNIT; shard <= 8 * DC_STORE_UNIT; shard *= 2) {
        assert_int_equal(convert(shard, NULL, NULL), DC_OK);
        assert_int_equal(dc_dataset_load(&data, store), DC_OK);
        assert_true(data.hash == file.hash && dc_dataset_hash(&data) == file.hash);
        assert_int_equal(data.rows, ROWS);
        assert_int_equal(data.traj_count, ROWS / TRAJ);
        assert_memory_equal(dc_dataset_column(&data, "obs")->values, obs, sizeof obs);
        assert_memory_equal(dc_dataset_column(&data, "act")->values, act, sizeof act);
        assert_memory_equal(data.traj_start, file.traj_start, (ROWS / TRAJ + 1) * sizeof(int64_t));
        dc_dataset_fini(&data);
        dc_dataset_fini(&data);
        remove_store();
    }
    dc_dataset_fini(&file);
}

// ---- bytes ----

enum { PIXELS = 12, KEYS = 3 };

static uint8_t pictures[ROWS][2][2][3], keys[ROWS][KEYS];

static void write_pictures(const char *path, bool with_keys) {
    dc_npz_writer *w;
    for (int i = 0; i < ROWS * PIXELS; i++)
        (&pictures[0][0][0][0])[i] = (uint8_t)(i + i / 251);
    for (int i = 0; i < ROWS * KEYS; i++)
        (&keys[0][0])[i] = (uint8_t)(i * i);
    assert_int_equal(dc_npz_writer_new(&w, path, 1), DC_OK);
    assert_int_equal(
        dc_npz_writer_put(w, "observations", DC_U1, 4, (int64_t[]){ROWS, 2, 2, 3}, pictures),
        DC_OK);
    assert_int_equal(dc_npz_writer_put(w, "actions", DC_F4, 2, (int64_t[]){ROWS, ACT}, act), DC_OK);
    assert_int_equal(dc_npz_writer_put(w, "terminals", DC_F4, 1, (int64_t[]){ROWS}, ends), DC_OK);
    if (with_keys)
        assert_int_equal(dc_npz_writer_put(w, "keys", DC_U1, 2, (int64_t[]){ROWS, KEYS}, keys),
                         DC_OK);
    assert_int_equal(dc_npz_writer_save(w), DC_OK);
    dc_npz_writer_free(w);
}

// The store has the bytes, shape and hash of the file that it came from.
static void same_pictures(const dc_dataset *file) {
    dc_dataset data;
    assert_int_equal(dc_dataset_load(&data, store), DC_OK);
    const dc_column *column = dc_dataset_column(&data, "obs");
    assert_true(data.hash == file->hash && dc_dataset_hash(&data) == file->hash);
    assert_int_equal(column->type, DC_TYPE_U8);
    assert_null(column->values);
    assert_true(column->mapped && column->whole && column->width == PIXELS && column->ndim == 3);
    assert_memory_equal(column->shape, ((int64_t[]){2, 2, 3}), 3 * sizeof(int64_t));
    assert_memory_equal(column->bytes, pictures, sizeof pictures);
    assert_memory_equal(dc_dataset_column(&data, "act")->values, act, sizeof act);
    column = dc_dataset_column(&data, "keys");
    if (column) assert_memory_equal(column->bytes, keys, sizeof keys);
    dc_dataset_fini(&data);
}

// Shards of 1024 rows of 12 bytes are whole pages, of 3 bytes they are not.
static void test_bytes(void **state) {
    (void)state;
    for (int with_keys = 0; with_keys <= 1; with_keys++) {
        dc_dataset file;
        uint64_t total = 0;
        write_pictures(npz, with_keys);
        assert_int_equal(dc_dataset_load(&file, npz), DC_OK);
        for (int64_t shard = DC_STORE_UNIT; shard <= 8 * DC_STORE_UNIT; shard *= 2) {
            dc_status status = convert(shard, NULL, NULL);
            if (with_keys && shard < 4 * DC_STORE_UNIT) {
                assert_int_equal(status, DC_BAD_INPUT);
                assert_non_null(strstr(dc_error(), "4096"));
                assert_false(access(store, F_OK) == 0);
                continue;
            }
            assert_int_equal(status, DC_OK);
            same_pictures(&file);
            remove_store();
        }
        assert_int_equal(convert(8 * DC_STORE_UNIT, stop_half, &total), DC_INTERRUPTED);
        assert_int_equal(total, sizeof pictures + sizeof act + (with_keys ? sizeof keys : 0));
        dc_dataset_fini(&file);
    }
    write_npz(1);
}

// ---- failures ----

static int writes_left;

static ssize_t failing_write(int fd, const void *bytes, size_t n) {
    if (writes_left-- > 0) return write(fd, bytes, n);
    errno = ENOSPC;
    return -1;
}

static int failing_sync(int fd) {
    if (writes_left-- > 0) return fsync(fd);
    errno = EIO;
    return -1;
}

// Let the n-th write or sync fail, for every n: an error each time, and no folder after it.
static void test_disk_full(void **state) {
    (void)state;
    dc_file_calls calls = dc_file_system;
    int failures = 0;
    for (;; failures++) {
        dc_file_system.write = failing_write;
        dc_file_system.fsync = failing_sync;
        writes_left = failures;
        dc_status status = convert(DC_STORE_UNIT, NULL, NULL);
        dc_file_system = calls;
        if (status == DC_OK) break;
        assert_int_equal(status, DC_IO);
        assert_non_null(strstr(dc_error(), store));
        assert_false(access(store, F_OK) == 0);
    }
    assert_true(failures > 2 * (5 + 5 + 1));
    remove_store();
}

static void test_interrupted(void **state) {
    (void)state;
    uint64_t total = 0;
    assert_int_equal(convert(DC_STORE_UNIT, stop_half, &total), DC_INTERRUPTED);
    assert_int_equal(total, sizeof obs + sizeof act);
    assert_false(access(store, F_OK) == 0);
}

// ---- readers of entries ----

static void test_reader(void **state) {
    (void)state;
    for (int level = 0; level <= 1; level++) {
        write_npz(level);
        dc_npz file;
        dc_npy npy;
        assert_int_equal(dc_npz_open(&file, npz), DC_OK);
        const dc_npz_entry *entry = dc_npz_find(&file, "observations");
        assert_int_equal(dc_npz_head(&file, entry, &npy), DC_OK);
        dc_npz_reader *reader;
        static float got[ROWS * OBS];
        assert_int_equal(dc_npz_reader_open(&reader, &file, entry, &npy), DC_OK);
        for (uint64_t at = 0, n = 1; at < npy.count; at += n, n = n * 3 % 1009) {
            if (n > npy.count - at) n = npy.count - at;
            if (n % 2)
                assert_int_equal(dc_npz_reader_floats(reader, n, got + at), DC_OK);
            else
                assert_int_equal(dc_npz_reader_values(reader, n, got + at), DC_OK);
        }
        dc_npz_reader_close(reader);
        assert_memory_equal(got, obs, sizeof obs);
        dc_npz_close(&file);
    }
}

// ---- reading ahead ----

static void test_ahead(void **state) {
    (void)state;
    assert_int_equal(convert(DC_STORE_UNIT, NULL, NULL), DC_OK);
    dc_dataset data;
    assert_int_equal(dc_dataset_load(&data, store), DC_OK);
    row_spec spec = {.seed = 3,
                     .batch = 64,
                     .segments = SEG_TREE,
                     .slots = 8,
                     .propagation = true,
                     .n = 5,
                     .gamma = 0.9,
                     .goal_future = 1};
    dc_row_table rows = row_table(&spec);
    int end = dc_rows_find(&rows, "segment_end");
    dc_feeds feeds = {.batch = 64, .feed_count = 1};
    feeds.feeds[0] = (dc_feed){.column = dc_dataset_column(&data, "obs"), .rule = end};
    dc_sampler *sampler;
    dc_prefetch ahead;
    assert_int_equal(dc_sampler_new(&sampler, &data, &rows), DC_OK);
    assert_int_equal(dc_prefetch_init(&ahead, &data, &rows), DC_OK);
    assert_non_null(ahead.sampler);
    int64_t next[64];
    for (uint64_t step = 0; step < 200; step++) {
        assert_int_equal(dc_sampler_next(sampler, step), DC_OK);
        if (step) assert_memory_equal(dc_sampler_drawn(sampler, end), next, sizeof next);
        assert_int_equal(dc_prefetch_next(&ahead, &feeds, sampler, NULL), DC_OK);
        memcpy(next, dc_sampler_drawn(ahead.sampler, end), sizeof next);
    }
    dc_prefetch_fini(&ahead);
    dc_sampler_free(sampler);
    dc_dataset_fini(&data);
    remove_store();
    // A file in memory needs no prefetching.
    assert_int_equal(dc_dataset_load(&data, npz), DC_OK);
    assert_int_equal(dc_prefetch_init(&ahead, &data, &rows), DC_OK);
    assert_null(ahead.sampler);
    dc_dataset_fini(&data);
}

// ---- resident size ----

enum { BIG_ROWS = 1 << 21, BIG_WIDTH = 40, BIG_TRAJ = 1024 }; // 336 MB

static size_t resident(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    size_t all = 0, here = 0;
    if (file && fscanf(file, "%zu %zu", &all, &here) != 2) here = 0;
    if (file) fclose(file);
    return here * dc_page_size();
}

// A large store, straight from the writer.
static void write_big(dc_store_index *index, int64_t *shards) {
    *index = (dc_store_index){.rows = BIG_ROWS, .traj_count = BIG_ROWS / BIG_TRAJ};
    index->column_count = 2;
    index->columns[0] = (dc_store_column){"obs", DC_TYPE_F32, DC_F4, 1, {BIG_WIDTH}, BIG_WIDTH};
    index->columns[1] = (dc_store_column){"act", DC_TYPE_F32, DC_F4, 1, {1}, 1};
    index->shard_count = 4;
    index->shards = shards;
    for (int s = 0; s < 4; s++)
        shards[s] = BIG_ROWS / 4;
    assert_int_equal(dc_folder_make(store), DC_OK);
    static int64_t table[BIG_ROWS / BIG_TRAJ + 1];
    for (int64_t t = 0; t <= index->traj_count; t++)
        table[t] = t * BIG_TRAJ;
    char path[DC_STORE_PATH_MAX];
    assert_int_equal(dc_store_path(path, store, dc_store_table_name), DC_OK);
    assert_int_equal(dc_file_write(path, table, sizeof table), DC_OK);
    dc_store_writer w;
    dc_store_writer_init(&w, store, index);
    static float rows[1024 * BIG_WIDTH];
    for (int c = 0; c < 2; c++)
        for (int64_t r = 0; r < BIG_ROWS; r += 1024) {
            rows[0] = (float)(r + c);
            assert_int_equal(dc_store_writer_append(&w, rows, 1024), DC_OK);
        }
    dc_store_writer_fini(&w);
    assert_int_equal(dc_store_index_write(index, store), DC_OK);
}

// Opening takes no memory; what random reads bring in belongs to the system, which can take it
// back.
static void test_resident(void **state) {
    (void)state;
    dc_store_index index;
    int64_t shards[4];
    write_big(&index, shards);
    dc_dataset data;
    size_t before = resident();
    assert_int_equal(dc_dataset_load(&data, store), DC_OK);
    assert_true(resident() < before + (4 << 20));
    const dc_column *column = dc_dataset_column(&data, "obs");
    double sum = 0;
    for (uint64_t i = 0; i < 20000; i++) {
        int64_t row = (int64_t)dc_below64(dc_philox(1, 2, i, 0).v[0], 0, BIG_ROWS) & ~1023;
        sum += (double)column->values[row * BIG_WIDTH] - (double)row;
    }
    assert_true(sum == 0);
    void *start = (void *)(uintptr_t)column->values;
    assert_int_equal(madvise(start, (size_t)BIG_ROWS * BIG_WIDTH * sizeof(float), MADV_DONTNEED),
                     0);
    assert_true(resident() < before + (8 << 20)); // clean pages of files: nothing had to be kept
    assert_true(column->values[1024 * BIG_WIDTH] == 1024);
    dc_dataset_fini(&data);
    remove_store();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_array), cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_disk_full), cmocka_unit_test(test_interrupted),
        cmocka_unit_test(test_reader),    cmocka_unit_test(test_ahead),
        cmocka_unit_test(test_resident),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
