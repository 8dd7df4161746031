// Files: whole reads with a bound, and writes that appear whole or not at all. A write goes to a
// temporary name beside the target, is synced, renamed over it, and the folder is synced too, so
// that neither kill -9 nor a full disk can cost what was there before.
#ifndef DC_FILE_H
#define DC_FILE_H

#include "base/status.h"

#include <dirent.h>
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
// Nullable: whether the program is asked to stop, so that nobody waits for the reader of a pipe (DC_INTERRUPTED).
extern bool (*dc_file_stop)(void);

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

// The same for files inside of a run or data folder, whose content may come from anywhere: no symbolic link
// is followed, no pipe or device opened (DC_BAD_INPUT), and a new file replaces whatever had its name.
dc_status dc_open_inside(const char *path, int flags, int *fd);
dc_status dc_file_read_inside(const char *path, size_t max, char **bytes, size_t *n);
dc_status dc_map_open_inside(dc_map *map, const char *path);
dc_status dc_save_open_inside(dc_save *save, const char *path);
dc_status dc_file_write_inside(const char *path, const void *bytes, size_t n);

// `path` as seen from an existing folder ("../data/x.npz"); false where that cannot be said.
enum { DC_FILE_PATH_MAX = 4096 };
bool dc_path_from(const char *folder, const char *path, char out[DC_FILE_PATH_MAX]);

// mkdir -p; an existing folder is fine.
dc_status dc_folder_make(const char *path);
// Whether something has that name, a link included. It is missing if the system says so and nothing else:
// what cannot be looked for is an error.
dc_status dc_file_find(const char *path, bool *exists);
// The same of a folder; a link to one is followed.
dc_status dc_folder_find(const char *path, bool *exists);
// Before a file inside of a folder is opened by its path alone: what has that name must be a regular file.
dc_status dc_file_inside(const char *path);
// Before a folder inside of another one is written to: a link of that name is an error.
dc_status dc_folder_inside(const char *path);
// Whether a folder can be filled as one's own: it is empty, or there is none of that name.
bool dc_folder_empty(const char *path);
// The next name in an open folder, NULL at its end. A listing that breaks off is an error: what is missing from it
// would pass for what is not there.
dc_status dc_folder_next(DIR *folder, const char *path, const char **name);
// Bytes that may still be written to the disk of an existing folder; UINT64_MAX when it does not
// tell.
uint64_t dc_folder_free(const char *path);

#endif
