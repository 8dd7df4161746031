// Files: whole reads with a bound, and writes that appear whole or not at all. A write goes to a
// temporary name beside the target, is synced, renamed over it, and the folder is synced too, so
// that neither kill -9 nor a full disk can cost what was there before.
#ifndef DC_FILE_H
#define DC_FILE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// The system calls that can fail while saving; tests swap them to make the Nth one fail.
typedef struct dc_file_calls {
    ssize_t (*write)(int fd, const void *bytes, size_t n);
    int (*fsync)(int fd);
    int (*rename)(const char *from, const char *to);
} dc_file_calls;
extern dc_file_calls dc_file_system;

// Read a whole file of at most `max` bytes into memory that the caller frees; a NUL follows the
// bytes.
dc_status dc_file_read(const char *path, size_t max, char **bytes, size_t *n);

// A regular file mapped read-only; size 0 maps to NULL. The file must not be shortened meanwhile.
typedef struct dc_map {
    const uint8_t *bytes;
    size_t size;
} dc_map;
dc_status dc_map_open(dc_map *map, const char *path);
void dc_map_close(dc_map *map);

// An atomic write in progress. A failed call has already closed and removed the temporary file.
// A path that is a device or a pipe (/dev/stdout) is written straight, and cannot be patched.
typedef struct dc_save {
    int fd;
    char *path, *temp; // final and temporary name
    char *buffer;      // pending bytes
    size_t pending;
    uint64_t offset;  // bytes accepted so far
    dc_status status; // first failure; later calls return it
} dc_save;
dc_status dc_save_open(dc_save *save, const char *path);
dc_status dc_save_write(dc_save *save, const void *bytes, size_t n);
// Overwrite earlier bytes (headers whose content is known last); offset + n must not exceed
// save->offset.
dc_status dc_save_patch(dc_save *save, uint64_t offset, const void *bytes, size_t n);
// Sync and rename. On failure the temporary file is removed and the old file is still in place (the
// one exception: if only the last step, syncing the folder, fails, the new file is in place and
// whole).
dc_status dc_save_commit(dc_save *save);
// Give up: remove the temporary file. Safe after commit or a failed open (does nothing).
void dc_save_abort(dc_save *save);
// The process that writes a file of this temporary name (NAME.tmp.PID.N); 0: it is not such a name.
long dc_save_owner(const char *name);
// All in one.
dc_status dc_file_write(const char *path, const void *bytes, size_t n);

// mkdir -p; an existing folder is fine.
dc_status dc_folder_make(const char *path);
bool dc_file_exists(const char *path);
bool dc_folder_exists(const char *path);
// Whether a folder can be filled as one's own: it is empty, or there is none of that name.
bool dc_folder_empty(const char *path);
// Bytes that may still be written to the disk of an existing folder; UINT64_MAX when it does not
// tell.
uint64_t dc_folder_free(const char *path);

#endif
