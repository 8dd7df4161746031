// A small run for tests: a combination-lock of 32 states, two hidden layers of 8, in a folder of
// its own. A run is trained in parts by a stop flag that is always set: each dc_run_train does one
// step and saves.
#ifndef SMALL_RUN_H
#define SMALL_RUN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file.h"
#include "env/lock.h"
#include "train/folder.h"
#include "train/run.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static dc_dataset small_data;
static const atomic_int small_stop = 1;

static inline void small_data_init(void) {
    dc_lock lock;
    assert_int_equal(dc_lock_init(&lock, 32, 0), DC_OK);
    assert_int_equal(dc_lock_data(&lock, &small_data), DC_OK);
    dc_lock_fini(&lock);
}

// Options in pairs "key", "value", ..., NULL on top of the small ones.
static inline void small_configure(dc_run *run, const char *agent, ...) {
    static const char *const base[][2] = {
        {"env", "lock-32"}, {"hidden", "8,8"}, {"batch", "16"},    {"threads", "1"},
        {"n", "4"},         {"steps", "12"},   {"log_every", "1"}, {"save_every", "1000"}};
    assert_int_equal(dc_run_configure(run, agent), DC_OK);
    for (size_t i = 0; i < sizeof base / sizeof base[0]; i++)
        assert_int_equal(dc_run_set(run, base[i][0], base[i][1]), DC_OK);
    va_list pairs;
    va_start(pairs, agent);
    for (const char *key; (key = va_arg(pairs, const char *));)
        assert_int_equal(dc_run_set(run, key, va_arg(pairs, const char *)), DC_OK);
    va_end(pairs);
}

// Some steps, each followed by a save.
static inline void small_steps(dc_run *run, int count) {
    run->stop = &small_stop;
    for (int i = 0; i < count; i++)
        assert_int_equal(dc_run_train(run), DC_INTERRUPTED);
}

// To the last step.
static inline void small_finish(dc_run *run) {
    run->stop = NULL;
    assert_int_equal(dc_run_train(run), DC_OK);
    dc_run_fini(run);
}

static inline void small_remove(const char *folder) {
    DIR *dir = opendir(folder);
    if (!dir) return;
    for (struct dirent *e; (e = readdir(dir));) {
        char path[DC_PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_name[0] != '.') unlink(path);
    }
    closedir(dir);
    rmdir(folder);
}

typedef struct small_bytes {
    char *checkpoint, *csv;
    size_t checkpoint_size, csv_size;
} small_bytes;

static inline char *small_file(const char *folder, const char *name, size_t *n) {
    char path[DC_PATH_MAX], *bytes;
    assert_int_equal(dc_folder_path(path, folder, name), DC_OK);
    assert_int_equal(dc_file_read(path, 1 << 24, &bytes, n), DC_OK);
    return bytes;
}

// The last checkpoint and the log of a finished run of 12 steps.
static inline small_bytes small_read(const char *folder) {
    small_bytes b;
    b.checkpoint = small_file(folder, "step-0000000012.safetensors", &b.checkpoint_size);
    b.csv = small_file(folder, "train.csv", &b.csv_size);
    return b;
}

static inline void small_free(small_bytes *b) {
    free(b->checkpoint);
    free(b->csv);
}

static inline void small_expect(const char *folder, const small_bytes *want) {
    small_bytes is = small_read(folder);
    assert_int_equal(is.csv_size, want->csv_size);
    assert_memory_equal(is.csv, want->csv, want->csv_size);
    assert_int_equal(is.checkpoint_size, want->checkpoint_size);
    assert_memory_equal(is.checkpoint, want->checkpoint, want->checkpoint_size);
    small_free(&is);
}

#endif
