// Files, see file.h. Reads come from a path the user gave; saves go to a path that may hold the
// only copy of a week of training. So a save follows the one order that POSIX lets us trust:
//
//     write PATH.tmp.PID.N  ->  fsync it  ->  rename over PATH  ->  fsync the folder
//
// Before the rename the old file is untouched, after it the new one is whole. The temporary name
// carries the process and a count, and a name that is taken is simply passed over, so what a killed
// process left behind never blocks a later save. The first failure closes and removes the temporary
// file at once; a caller that returns early leaks nothing.
//
// What lies inside a run or data folder comes from anywhere: there the functions that end in _inside open
// regular files only, and put a new file in the place of whatever has the name. Only a path that the user
// wrote out may be a link.
//
// Such a path that is a device or a pipe (/dev/stdout, /dev/null) is written straight: renaming over it
// would replace the device itself.
//
// Every error names the file, what the system said, and a remedy.
#define _XOPEN_SOURCE 700 // realpath
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { BUFFER = 1 << 18, NAME_TRIES = 10000, FIRST_READ = 1 << 16 };
static const size_t WRITE_MAX = (size_t)1 << 30; // Linux writes at most 2 GiB at once

dc_file_calls dc_file_system = {.write = write, .fsync = fsync, .rename = rename};
bool (*dc_file_stop)(void);

// ---- errors

typedef struct remedy {
    int error;
    const char *hint;
} remedy;

static const remedy remedies[] = {
    {ENOENT, "check the path"},
    {ENOTDIR, "a part of the path is a file, not a folder"},
    {EACCES, "check the permissions of the file and its folder"},
    {EPERM, "check the permissions of the file and its folder"},
    {EISDIR, "give a file, not a folder"},
    {EEXIST, "a file of that name is in the way"},
    {ENOSPC, "free some space on that disk or choose another"},
    {EDQUOT, "free some of your quota or choose another disk"},
    {EFBIG, "raise the limit on file size (ulimit -f)"},
    {EROFS, "choose a folder that can be written"},
    {EMFILE, "raise the limit on open files (ulimit -n)"},
    {ENFILE, "raise the limit on open files (ulimit -n)"},
    {ENAMETOOLONG, "choose a shorter path"},
    {ELOOP, "the path is a loop of symbolic links"},
    {ENOMEM, "free some memory"},
    {EIO, "check the disk"},
};

static dc_status fail(const char *what, const char *path, int error) {
    const char *hint = "check the path, or choose another place";
    for (size_t i = 0; i < sizeof remedies / sizeof remedies[0]; i++)
        if (remedies[i].error == error) hint = remedies[i].hint;
    char text[128];
    if (strerror_r(error, text, sizeof text) != 0) snprintf(text, sizeof text, "error %d", error);
    return dc_fail(DC_IO, hint, "%s: %s (%s)", what, text, path);
}

static dc_status no_memory(const char *path) {
    return dc_fail(DC_NO_MEMORY, "free some memory", "no memory to handle the file (%s)", path);
}

// ---- small calls that survive signals

static int open_file(const char *path, int flags) {
    int fd;
    do
        fd = open(path, flags | O_CLOEXEC, 0666);
    while (fd < 0 && errno == EINTR);
    return fd;
}

// Until somebody reads a pipe; -1 with EINTR if the program is asked to stop.
static int wait_for_reader(int fd) {
    if (dc_file_stop && dc_file_stop()) return errno = EINTR, -1;
    struct pollfd full = {.fd = fd, .events = POLLOUT};
    (void)poll(&full, fd >= 0, 20);
    return 0;
}

// A pipe that nobody reads yet is waited for.
static int open_special(const char *path, bool pipe) {
    int fd;
    while ((fd = open_file(path, O_WRONLY | O_NONBLOCK)) < 0 && pipe && errno == ENXIO)
        if (wait_for_reader(-1) != 0) return -1;
    return fd;
}

// 0 or -1 with errno; a call that takes nothing counts as an error, else this could spin for ever.
static int write_all(int fd, const char *bytes, size_t n) {
    while (n > 0) {
        ssize_t got = dc_file_system.write(fd, bytes, n < WRITE_MAX ? n : WRITE_MAX);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN && wait_for_reader(fd) == 0) continue;
        if (got == 0) errno = EIO;
        if (got <= 0) return -1;
        bytes += got;
        n -= (size_t)got;
    }
    return 0;
}

static int sync_file(int fd) {
    int rc;
    do
        rc = dc_file_system.fsync(fd);
    while (rc != 0 && errno == EINTR);
    return rc;
}

// ---- inside folders of ours

static dc_status not_a_file(const char *path, const char *what) {
    return dc_fail(DC_BAD_INPUT, "put the file itself there, or remove it",
                   "%s lies where a file belongs (%s)", what, path);
}

static const char *kind_of(mode_t mode) {
    return S_ISLNK(mode)                      ? "a symbolic link"
           : S_ISDIR(mode)                    ? "a folder"
           : S_ISFIFO(mode) || S_ISSOCK(mode) ? "a pipe or socket"
                                              : "something else";
}

dc_status dc_open_inside(const char *path, int flags, int *fd) {
    struct stat info;
    *fd = open_file(path, flags | O_NOFOLLOW | O_NONBLOCK); // a FIFO must not hang here
    if (*fd < 0 && errno == ELOOP) return not_a_file(path, "a symbolic link");
    if (*fd < 0 && errno == ENXIO) return not_a_file(path, "a pipe or socket");
    if (*fd < 0) return fail("cannot open", path, errno);
    int error = fstat(*fd, &info) != 0 ? errno : 0;
    if (!error && S_ISREG(info.st_mode)) return DC_OK;
    close(*fd);
    *fd = -1;
    if (error) return fail("cannot open", path, error);
    return not_a_file(path, kind_of(info.st_mode));
}

dc_status dc_file_inside(const char *path) {
    struct stat info;
    if (lstat(path, &info) != 0) return errno == ENOENT ? DC_OK : fail("cannot open", path, errno);
    return S_ISREG(info.st_mode) ? DC_OK : not_a_file(path, kind_of(info.st_mode));
}

dc_status dc_file_find(const char *path, bool *exists) {
    struct stat info;
    *exists = lstat(path, &info) == 0;
    return *exists || errno == ENOENT ? DC_OK : fail("cannot open", path, errno);
}

// ---- reading

static dc_status too_large(const char *path, size_t max) {
    return dc_fail(DC_BAD_INPUT, "check that it is the right file",
                   "larger than the %zu bytes allowed here (%s)", max, path);
}

// Read to the end of fd into *bytes, growing as needed; more than max bytes is an error.
static dc_status read_all(int fd, const char *path, size_t max, size_t room, char **bytes,
                          size_t *n) {
    size_t used = 0;
    char *buffer = NULL;
    for (;;) {
        char *grown = realloc(buffer, room + 1);
        if (!grown) {
            free(buffer);
            return no_memory(path);
        }
        buffer = grown;
        ssize_t got = 1;
        while (used < room && got != 0) {
            size_t want = room - used < WRITE_MAX ? room - used : WRITE_MAX;
            got = read(fd, buffer + used, want);
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) {
                int error = errno;
                free(buffer);
                return fail("cannot read", path, error);
            }
            used += (size_t)got;
        }
        if (got == 0) break;
        if (used > max) {
            free(buffer);
            return too_large(path, max);
        }
        room = room <= max / 2 ? room * 2 : max + 1;
    }
    buffer[used] = 0;
    *bytes = buffer;
    *n = used;
    return DC_OK;
}

static dc_status read_whole(int fd, const char *path, size_t max, char **bytes, size_t *n) {
    // The size is a hint only: pipes and /proc say 0, and a file may grow. One byte more than the
    // bound is read, so that a file which is too large shows itself.
    struct stat info;
    size_t room = FIRST_READ;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
        if ((uintmax_t)info.st_size > max) return close(fd), too_large(path, max);
        room = (size_t)info.st_size + 1;
    }
    if (room > max + 1) room = max + 1;
    dc_status status = read_all(fd, path, max, room, bytes, n);
    close(fd);
    return status;
}

dc_status dc_file_read(const char *path, size_t max, char **bytes, size_t *n) {
    *bytes = NULL;
    *n = 0;
    DC_CHECK(max < SIZE_MAX / 4);
    int fd = open_file(path, O_RDONLY);
    return fd < 0 ? fail("cannot open", path, errno) : read_whole(fd, path, max, bytes, n);
}

dc_status dc_file_read_inside(const char *path, size_t max, char **bytes, size_t *n) {
    int fd;
    *bytes = NULL;
    *n = 0;
    DC_CHECK(max < SIZE_MAX / 4);
    DC_TRY(dc_open_inside(path, O_RDONLY, &fd));
    return read_whole(fd, path, max, bytes, n);
}

static dc_status map_file(dc_map *map, const char *path, int fd) {
    struct stat info;
    dc_status status = DC_OK;
    if (fstat(fd, &info) != 0) {
        status = fail("cannot read", path, errno);
    } else if (S_ISDIR(info.st_mode)) {
        status = fail("cannot read", path, EISDIR);
    } else if (!S_ISREG(info.st_mode)) {
        status = dc_fail(DC_IO, "save it to a file first", "not a regular file (%s)", path);
    } else if (info.st_size > 0) {
        size_t size = (size_t)info.st_size;
        void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bytes == MAP_FAILED)
            status = fail("cannot map", path, errno);
        else
            *map = (dc_map){bytes, size};
    }
    close(fd);
    return status;
}

dc_status dc_map_open(dc_map *map, const char *path) {
    *map = (dc_map){0};
    int fd = open_file(path, O_RDONLY | O_NONBLOCK); // a FIFO must not hang here
    return fd < 0 ? fail("cannot open", path, errno) : map_file(map, path, fd);
}

dc_status dc_map_open_inside(dc_map *map, const char *path) {
    int fd;
    *map = (dc_map){0};
    DC_TRY(dc_open_inside(path, O_RDONLY, &fd));
    return map_file(map, path, fd);
}

void dc_map_close(dc_map *map) {
    if (map->bytes) munmap((void *)(uintptr_t)map->bytes, map->size);
    *map = (dc_map){0};
}

// ---- saving

// Give everything back; the temporary file goes too. An open save is one with a buffer.
static void release(dc_save *save) {
    if (!save->buffer) return;
    if (save->fd >= 0) close(save->fd);
    if (save->temp) unlink(save->temp);
    free(save->buffer);
    free(save->temp);
    free(save->path);
    save->fd = -1;
    save->buffer = save->temp = save->path = NULL;
    save->pending = 0;
}

static dc_status give_up(dc_save *save, const char *what, int error) {
    if (error == EINTR)
        save->status =
            dc_fail(DC_INTERRUPTED, NULL, "stopped, since nobody reads it (%s)", save->path);
    else
        save->status = fail(what, save->path, error);
    release(save);
    return save->status;
}

// Open a temporary file of an unused name; 0 or -1 with errno.
static int open_temp(dc_save *save) {
    static atomic_uint count;
    size_t room = strlen(save->path) + 40;
    save->temp = malloc(room);
    if (!save->temp) return errno = ENOMEM, -1;
    for (int i = 0; i < NAME_TRIES; i++) {
        unsigned number = atomic_fetch_add(&count, 1);
        snprintf(save->temp, room, "%s.tmp.%ld.%u", save->path, (long)getpid(), number);
        save->fd = open_file(save->temp, O_RDWR | O_CREAT | O_EXCL);
        if (save->fd >= 0) return 0;
        if (errno != EEXIST) break;
    }
    // Not ours to remove.
    int error = errno;
    free(save->temp);
    save->temp = NULL;
    return errno = error, -1;
}

// The name to rename to: a symbolic link stays, and the file that it names is replaced. /dev/stdout may lead to a pipe,
// which has no name.
static char *real_name(const char *path) {
    struct stat info;
    bool link = lstat(path, &info) == 0 && S_ISLNK(info.st_mode) && stat(path, &info) == 0;
    return link && S_ISREG(info.st_mode) ? realpath(path, NULL) : strdup(path);
}

// Takes over `name`, which is where `path` leads.
static dc_status begin(dc_save *save, const char *path, char *name) {
    *save = (dc_save){.fd = -1, .path = name, .buffer = malloc(BUFFER)};
    if (save->path && save->buffer) return DC_OK;
    free(save->path);
    free(save->buffer);
    *save = (dc_save){.fd = -1, .status = no_memory(path)};
    return save->status;
}

dc_status dc_save_open_inside(dc_save *save, const char *path) {
    DC_TRY(begin(save, path, strdup(path)));
    return open_temp(save) == 0 ? DC_OK : give_up(save, "cannot write", errno);
}

dc_status dc_save_open(dc_save *save, const char *path) {
    DC_TRY(begin(save, path, real_name(path)));
    struct stat info;
    bool exists = stat(path, &info) == 0;
    if (exists && S_ISDIR(info.st_mode)) return give_up(save, "cannot write", EISDIR);
    if (exists && !S_ISREG(info.st_mode))
        save->fd = open_special(path, S_ISFIFO(info.st_mode));
    else
        (void)open_temp(save);
    if (save->fd < 0) return give_up(save, "cannot write", errno);
    return DC_OK;
}

static dc_status flush(dc_save *save) {
    size_t n = save->pending;
    save->pending = 0;
    if (write_all(save->fd, save->buffer, n) != 0) return give_up(save, "cannot write", errno);
    return DC_OK;
}

dc_status dc_save_write(dc_save *save, const void *bytes, size_t n) {
    if (save->status != DC_OK) return save->status;
    if (n > BUFFER - save->pending) DC_TRY(flush(save));
    DC_CHECK(save->buffer);
    if (n >= BUFFER) {
        if (write_all(save->fd, bytes, n) != 0) return give_up(save, "cannot write", errno);
    } else if (n) {
        memcpy(save->buffer + save->pending, bytes, n);
        save->pending += n;
    }
    save->offset += n;
    return DC_OK;
}

dc_status dc_save_patch(dc_save *save, uint64_t offset, const void *bytes, size_t n) {
    if (save->status != DC_OK) return save->status;
    DC_CHECK(save->buffer && offset <= save->offset && n <= save->offset - offset);
    DC_TRY(flush(save));
    if (lseek(save->fd, (off_t)offset, SEEK_SET) < 0 || write_all(save->fd, bytes, n) != 0 ||
        lseek(save->fd, (off_t)save->offset, SEEK_SET) < 0)
        return give_up(save, "cannot write", errno);
    return DC_OK;
}

// Sync the folder that holds `path`, so that the name itself is on the disk. File systems that know
// no such sync answer EINVAL, and that is fine.
static int sync_folder(const char *path) {
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) + (slash == path) : 0;
    char *folder = n ? strndup(path, n) : strdup(".");
    if (!folder) return errno = ENOMEM, -1;
    int fd = open_file(folder, O_RDONLY | O_DIRECTORY);
    free(folder);
    if (fd < 0) return errno == EACCES ? 0 : -1; // a folder may be writable but not readable
    int rc = sync_file(fd), error = errno;
    close(fd);
    if (rc != 0 && error == EINVAL) rc = 0;
    return errno = error, rc;
}

dc_status dc_save_commit(dc_save *save) {
    if (save->status != DC_OK) return save->status;
    DC_CHECK(save->buffer);
    DC_TRY(flush(save));
    if (save->temp && sync_file(save->fd) != 0) return give_up(save, "cannot sync", errno);
    int fd = save->fd;
    save->fd = -1;
    if (close(fd) != 0 && errno != EINTR) return give_up(save, "cannot close", errno);
    if (save->temp) {
        if (dc_file_system.rename(save->temp, save->path) != 0)
            return give_up(save, "cannot rename the finished file", errno);
        free(save->temp);
        save->temp = NULL;
        if (sync_folder(save->path) != 0) return give_up(save, "cannot sync the folder of", errno);
    }
    release(save);
    return DC_OK;
}

void dc_save_abort(dc_save *save) {
    release(save);
}

long dc_save_owner(const char *name) {
    static const char digits[] = "0123456789";
    const char *temp = strstr(name, ".tmp.");
    const char *pid = temp ? temp + 5 : "", *number = pid + strspn(pid, digits);
    if (number == pid || *number++ != '.') return 0;
    if (!*number || number[strspn(number, digits)]) return 0;
    return strtol(pid, NULL, 10);
}

static dc_status write_whole(dc_save *save, const void *bytes, size_t n) {
    DC_TRY(dc_save_write(save, bytes, n));
    return dc_save_commit(save);
}

dc_status dc_file_write(const char *path, const void *bytes, size_t n) {
    dc_save save;
    DC_TRY(dc_save_open(&save, path));
    return write_whole(&save, bytes, n);
}

dc_status dc_file_write_inside(const char *path, const void *bytes, size_t n) {
    dc_save save;
    DC_TRY(dc_save_open_inside(&save, path));
    return write_whole(&save, bytes, n);
}

// ---- folders

static dc_status make_one(const char *path) {
    if (mkdir(path, 0777) == 0) {
        if (sync_folder(path) != 0) return fail("cannot sync the folder of", path, errno);
        return DC_OK;
    }
    int error = errno;
    struct stat info;
    if (stat(path, &info) == 0) {
        if (S_ISDIR(info.st_mode)) return DC_OK;
        error = EEXIST;
    }
    return fail("cannot make the folder", path, error);
}

dc_status dc_folder_make(const char *path) {
    size_t n = strlen(path);
    if (n == 0) return fail("cannot make the folder", path, ENOENT);
    char *part = strdup(path);
    if (!part) return no_memory(path);
    while (n > 1 && part[n - 1] == '/') // "a/b/" is "a/b"
        part[--n] = 0;
    dc_status status = DC_OK;
    for (size_t i = 1; i < n && status == DC_OK; i++) {
        if (part[i] != '/' || part[i - 1] == '/') continue;
        part[i] = 0;
        status = make_one(part);
        part[i] = '/';
    }
    if (status == DC_OK) status = make_one(part);
    free(part);
    return status;
}

bool dc_path_from(const char *folder, const char *path, char out[DC_FILE_PATH_MAX]) {
    char from[PATH_MAX], to[PATH_MAX]; // so that memory cannot run out
    size_t same = 0;                   // bytes of the folders that both are in
    bool good = realpath(folder, from) && realpath(path, to);
    for (size_t i = 0; good && (from[i] == to[i] || !from[i]); i++) {
        if (to[i] == '/') same = i;
        if (!from[i]) break;
    }
    size_t used = 0;
    for (const char *up = good ? from + same : ""; *up; up++)
        if (*up == '/' && up[1] && used + 4 < DC_FILE_PATH_MAX)
            memcpy(out + used, "../", 3), used += 3;
    good = good && used + strlen(to + same) < DC_FILE_PATH_MAX;
    if (good) snprintf(out + used, DC_FILE_PATH_MAX - used, "%s", to + same + 1);
    return good;
}

dc_status dc_folder_find(const char *path, bool *exists) {
    struct stat info;
    int failed = stat(path, &info) == 0 ? 0 : errno;
    *exists = !failed && S_ISDIR(info.st_mode);
    bool told = !failed || failed == ENOENT || failed == ENOTDIR || failed == ENAMETOOLONG ||
                failed == ELOOP;
    return told ? DC_OK : fail("cannot open", path, failed);
}

dc_status dc_folder_inside(const char *path) {
    struct stat info;
    if (lstat(path, &info) != 0) return errno == ENOENT ? DC_OK : fail("cannot open", path, errno);
    if (!S_ISLNK(info.st_mode)) return DC_OK;
    return dc_fail(DC_BAD_INPUT, "put the folder itself there, or remove it",
                   "a symbolic link lies where a folder belongs (%s)", path);
}

// readdir says the end and an error in the same way, but for errno.
dc_status dc_folder_next(DIR *folder, const char *path, const char **name) {
    errno = 0;
    const struct dirent *entry = readdir(folder);
    *name = entry ? entry->d_name : NULL;
    return entry || !errno ? DC_OK : fail("cannot list the folder", path, errno);
}

bool dc_folder_empty(const char *path) {
    DIR *folder = opendir(path);
    if (!folder) return errno == ENOENT;
    const char *name;
    bool empty = true;
    while (empty && (empty = dc_folder_next(folder, path, &name) == DC_OK) && name)
        empty = !strcmp(name, ".") || !strcmp(name, "..");
    closedir(folder);
    return empty;
}

uint64_t dc_folder_free(const char *path) {
    struct statvfs disk;
    if (statvfs(path, &disk) != 0) return UINT64_MAX;
    return (uint64_t)disk.f_bavail * disk.f_frsize;
}
