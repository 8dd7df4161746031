// A library to preload into `dcrl`: the Nth call of a kind (memory, open, read, write, ...) fails, once or from then
// on. Driven by tests/faults/faults.py.
//
// It stands between the program and main: before main nothing is counted, and in place of main a server runs. It
// reads requests from standard input, and for each it forks a child that goes on into the program's own main, in a
// folder of its own, with one fault set. So a run costs no exec and no linking, and a thousand faults take seconds.
//
//     request   KIND NUMBER EVER FOLDER      (NUMBER 0: nothing fails, calls are only counted)
//     answer    PID, and at the child's end  STATUS FIRED COUNT COUNT ...     (a count for each kind)
//
// Only calls count that come from the program or from a library that works for it alone: the C library (opendir,
// scandir, strdup and realpath take memory there), zlib, libdeflate; FAULT_ALONE leaves those out, too. What MuJoCo,
// OpenGL and the dynamic loader call does not count.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MEMORY, MAP, OPEN, READ, WRITE, SYNC, RENAME, STAT, CLOSE, FOLDER, THREAD, KINDS };
static const char *const names[KINDS] = {"memory", "map",  "open",  "read",   "write", "sync",
                                         "rename", "stat", "close", "folder", "thread"};
static const int errors[KINDS] = {ENOMEM, ENOMEM, EMFILE, EIO,    ENOSPC, EIO,
                                  EIO,    ESTALE, EIO,    ENOSPC, EAGAIN};
enum { RANGES = 256 };

// In memory that parent and child share.
typedef struct tally {
    atomic_long count[KINDS];
    atomic_long fired;
} tally;

static tally *board;
static bool armed; // set in the child, before its main
static int kind = KINDS;
static long number;
static bool ever;

// ---- whose calls count ----

static struct { uintptr_t low, high; } ranges[RANGES];
static int range_count;

static bool ours(const char *path) {
    static const char *const libs[] = {"/libc.so", "/libz.so", "/libdeflate.so"};
    if (!*path) return true; // the program itself, which comes first
    for (size_t i = 0; i < sizeof libs / sizeof libs[0] && !getenv("FAULT_ALONE"); i++)
        if (strstr(path, libs[i])) return true;
    return false;
}

static int add_object(struct dl_phdr_info *info, size_t size, void *ctx) {
    (void)size, (void)ctx;
    for (int i = 0; ours(info->dlpi_name) && i < info->dlpi_phnum && range_count < RANGES; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
        ranges[range_count].low = info->dlpi_addr + part->p_vaddr;
        ranges[range_count++].high = info->dlpi_addr + part->p_vaddr + part->p_memsz;
    }
    return 0;
}

static void show_place(void) {
    void *frames[32];
    armed = false; // backtrace takes memory itself
    backtrace_symbols_fd(frames, backtrace(frames, 32), 2);
    armed = true;
}

// Count a call of our program, and say whether it is the one to fail.
static bool fails(int which, const void *caller) {
    if (!armed) return false;
    bool counts = false;
    for (int i = 0; i < range_count; i++)
        counts =
            counts || ((uintptr_t)caller >= ranges[i].low && (uintptr_t)caller < ranges[i].high);
    if (!counts) return false;
    long at = atomic_fetch_add(&board->count[which], 1) + 1;
    if (which != kind || number == 0 || (ever ? at < number : at != number)) return false;
    if (atomic_fetch_add(&board->fired, 1) == 0 && getenv("FAULT_PLACE")) show_place();
    errno = errors[which];
    return true;
}

#define CALLER      __builtin_return_address(0)
#define FAILS(kind) fails(kind, CALLER)

// ---- the calls ----

// The function of that name behind this library. dlsym takes memory when it fails alone, so this may be called by
// malloc itself.
#define REAL(function)                                                                             \
    static __typeof__(&function) real;                                                             \
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, #function)

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

void *malloc(size_t n) {
    return FAILS(MEMORY) ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size) {
    return FAILS(MEMORY) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *old, size_t n) {
    return FAILS(MEMORY) ? NULL : __libc_realloc(old, n);
}

void *aligned_alloc(size_t align, size_t n) {
    return FAILS(MEMORY) ? NULL : __libc_memalign(align, n);
}

int posix_memalign(void **out, size_t align, size_t n) {
    if (FAILS(MEMORY)) return ENOMEM;
    *out = __libc_memalign(align, n);
    return *out ? 0 : ENOMEM;
}

void *mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset) {
    REAL(mmap);
    return FAILS(MAP) ? MAP_FAILED : real(at, n, protection, flags, fd, offset);
}

static int mode_of(int flags, va_list more) {
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(more, int) : 0;
}

int open(const char *path, int flags, ...) {
    REAL(open);
    if (FAILS(OPEN)) return -1;
    va_list more;
    va_start(more, flags);
    int mode = mode_of(flags, more);
    va_end(more);
    return real(path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...) {
    REAL(openat);
    if (FAILS(OPEN)) return -1;
    va_list more;
    va_start(more, flags);
    int mode = mode_of(flags, more);
    va_end(more);
    return real(folder, path, flags, mode);
}

int mkstemp(char *name) {
    REAL(mkstemp);
    return FAILS(OPEN) ? -1 : real(name);
}

FILE *fopen(const char *path, const char *mode) {
    REAL(fopen);
    return FAILS(OPEN) ? NULL : real(path, mode);
}

DIR *opendir(const char *path) {
    REAL(opendir);
    return FAILS(OPEN) ? NULL : real(path);
}

ssize_t read(int fd, void *bytes, size_t n) {
    REAL(read);
    return FAILS(READ) ? -1 : real(fd, bytes, n);
}

ssize_t pread(int fd, void *bytes, size_t n, off_t offset) {
    REAL(pread);
    return FAILS(READ) ? -1 : real(fd, bytes, n, offset);
}

// A folder whose listing breaks off.
struct dirent *readdir(DIR *folder) {
    REAL(readdir);
    return FAILS(READ) ? NULL : real(folder);
}

// A full disk takes some bytes before it refuses the rest.
ssize_t write(int fd, const void *bytes, size_t n) {
    REAL(write);
    if (!FAILS(WRITE)) return real(fd, bytes, n);
    if (n > 1) (void)!real(fd, bytes, n / 2);
    errno = ENOSPC;
    return -1;
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t offset) {
    REAL(pwrite);
    return FAILS(WRITE) ? -1 : real(fd, bytes, n, offset);
}

off_t lseek(int fd, off_t offset, int whence) {
    REAL(lseek);
    return FAILS(WRITE) ? -1 : real(fd, offset, whence);
}

int ftruncate(int fd, off_t size) {
    REAL(ftruncate);
    return FAILS(WRITE) ? -1 : real(fd, size);
}

int fsync(int fd) { // syncing a test's files would only take time
    (void)fd;
    return FAILS(SYNC) ? -1 : 0;
}

int rename(const char *from, const char *to) {
    REAL(rename);
    return FAILS(RENAME) ? -1 : real(from, to);
}

int stat(const char *path, struct stat *info) {
    REAL(stat);
    return FAILS(STAT) ? -1 : real(path, info);
}

int lstat(const char *path, struct stat *info) {
    REAL(lstat);
    return FAILS(STAT) ? -1 : real(path, info);
}

int fstat(int fd, struct stat *info) {
    REAL(fstat);
    return FAILS(STAT) ? -1 : real(fd, info);
}

int access(const char *path, int mode) {
    REAL(access);
    return FAILS(STAT) ? -1 : real(path, mode);
}

int statvfs(const char *path, struct statvfs *info) {
    REAL(statvfs);
    return FAILS(STAT) ? -1 : real(path, info);
}

// The file is closed, and says only now that it lost something.
int close(int fd) {
    REAL(close);
    bool bad = FAILS(CLOSE);
    int rc = real(fd);
    if (bad) errno = EIO;
    return bad ? -1 : rc;
}

int mkdir(const char *path, mode_t mode) {
    REAL(mkdir);
    return FAILS(FOLDER) ? -1 : real(path, mode);
}

int pthread_create(pthread_t *id, const pthread_attr_t *how, void *(*start)(void *), void *ctx) {
    REAL(pthread_create);
    return FAILS(THREAD) ? EAGAIN : real(id, how, start, ctx);
}

// ---- the server ----

typedef int main_function(int, char **, char **);
static main_function *program;

static void redirect(const char *path, int flags, int fd) {
    int file = open(path, flags, 0666);
    if (file < 0 || dup2(file, fd) < 0) _exit(99);
    close(file);
}

// The program, in FOLDER, whose siblings FOLDER.out and FOLDER.err take what it prints.
static int run_here(const char *folder, int argc, char **argv, char **env) {
    char path[4096];
    redirect("/dev/null", O_RDONLY, 0);
    snprintf(path, sizeof path, "%s.out", folder);
    redirect(path, O_WRONLY | O_CREAT | O_TRUNC, 1);
    snprintf(path, sizeof path, "%s.err", folder);
    redirect(path, O_WRONLY | O_CREAT | O_TRUNC, 2);
    if (chdir(folder) != 0) _exit(99);
    unsetenv("FAULT_SERVER"); // processes that it starts run without faults
    armed = true;
    return program(argc, argv, env);
}

static void answer(pid_t child) {
    int status;
    dprintf(1, "%ld\n", (long)child);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    dprintf(1, "%d %ld", status, atomic_load(&board->fired));
    for (int k = 0; k < KINDS; k++)
        dprintf(1, " %ld", atomic_load(&board->count[k]));
    dprintf(1, "\n");
}

static int serve(int argc, char **argv, char **env) {
    char word[32], folder[3072];
    int always;
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED) return 99;
    dl_iterate_phdr(add_object, NULL);
    while (scanf("%31s %ld %d %3071s", word, &number, &always, folder) == 4) {
        memset(board, 0, sizeof *board);
        for (kind = 0; kind < KINDS && strcmp(word, names[kind]) != 0;)
            kind++;
        ever = always != 0;
        pid_t child = fork();
        if (child == 0) exit(run_here(folder, argc, argv, env));
        if (child < 0) return 99;
        answer(child);
    }
    return 0;
}

// What the C runtime calls with main. The child's exit() runs what main's return would.
int __libc_start_main(main_function *start, int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*rtld_fini)(void), void *stack_end);
int __libc_start_main(main_function *start, int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*rtld_fini)(void), void *stack_end) {
    REAL(__libc_start_main);
    program = start;
    return real(getenv("FAULT_SERVER") ? serve : start, argc, argv, init, fini, rtld_fini,
                stack_end);
}
