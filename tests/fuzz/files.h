// A folder in memory for targets whose reader takes paths, and inputs that hold several files.
//
//     === config.json        a line with a name, then the file's bytes up to the next such line
//     {...}
//     === train.csv
#ifndef FUZZ_FILES_H
#define FUZZ_FILES_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char files_root[64];

static inline const char *files_path(const char *name) {
    static char path[4][256];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", files_root, name);
    return path[turn];
}

static void files_end(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", files_root);
    (void)!system(command);
}

static inline void files_begin(void) {
    if (files_root[0]) return;
    snprintf(files_root, sizeof files_root, "%s/dcrl_fuzz_XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    DC_CHECK(mkdtemp(files_root));
    atexit(files_end);
    // What a reader has to say goes nowhere; the fuzzer speaks on standard error.
    DC_CHECK(freopen("/dev/null", "w", stdout));
}

static inline void files_put(const char *name, const void *bytes, size_t n) {
    FILE *file = fopen(files_path(name), "wb");
    DC_CHECK(file);
    DC_CHECK(fwrite(bytes, 1, n, file) == n);
    DC_CHECK(fclose(file) == 0);
}

static const char files_mark[] = "=== ";

// The next mark that begins a line, or the end.
static inline const char *files_next(const char *at, const char *end) {
    for (; at < end; at++) {
        if ((size_t)(end - at) > sizeof files_mark - 1 &&
            !memcmp(at, files_mark, sizeof files_mark - 1))
            return at;
        at = memchr(at, '\n', (size_t)(end - at));
        if (!at) return end;
    }
    return end;
}

// Write the files of an input under those of the given names that it uses, and remove the others.
static inline void files_split(const char *const *names, int count, const char *bytes, size_t n) {
    const char *end = bytes + n;
    for (int i = 0; i < count; i++)
        unlink(files_path(names[i]));
    for (const char *at = files_next(bytes, end); at < end;) {
        const char *name = at + sizeof files_mark - 1,
                   *line = memchr(name, '\n', (size_t)(end - name));
        if (!line) return;
        at = files_next(line + 1, end);
        for (int i = 0; i < count; i++)
            if (strlen(names[i]) == (size_t)(line - name) &&
                !memcmp(names[i], name, strlen(names[i])))
                files_put(names[i], line + 1, (size_t)(at - line - 1));
    }
}

#endif
