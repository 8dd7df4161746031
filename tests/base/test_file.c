// Files: whole reads with a bound, and saves that appear whole or not at all, also when the Nth
// write, sync or rename fails, when writes are short or interrupted, when the disk is full, and
// after kill -9.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"

static char folder[] = "/tmp/dcrl_file_XXXXXX";

static const char *in_folder(const char *name) {
    static char paths[4][512];
    static int turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void remove_all(void) {
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));)
        if (e->d_name[0] != '.') assert_int_equal(remove(in_folder(e->d_name)), 0);
    closedir(dir);
}

static int count_files(void) {
    int count = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));)
        count += e->d_name[0] != '.';
    closedir(dir);
    return count;
}

static void expect(const char *path, const char *bytes, size_t n) {
    char *got;
    size_t size;
    assert_int_equal(dc_file_read(path, (size_t)1 << 26, &got, &size), DC_OK);
    assert_int_equal(size, n);
    assert_memory_equal(got, bytes, n);
    assert_int_equal(got[n], 0);
    free(got);
}

// ---- faults

static dc_file_calls real;
static int write_fails_at, sync_fails_at, rename_fails_at, calls, fault;
static size_t longest; // write at most this many bytes a call; 0: all
static int interrupts; // every second call is interrupted

static ssize_t faulty_write(int fd, const void *bytes, size_t n) {
    calls++;
    if (interrupts && calls % 2) return errno = EINTR, -1;
    if (write_fails_at && --write_fails_at == 0) return errno = fault, fault ? -1 : 0;
    return real.write(fd, bytes, longest && n > longest ? longest : n);
}

static int faulty_sync(int fd) {
    calls++;
    if (interrupts && calls % 2) return errno = EINTR, -1;
    if (sync_fails_at && --sync_fails_at == 0) return errno = fault, -1;
    return real.fsync(fd);
}

static int faulty_rename(const char *from, const char *to) {
    if (rename_fails_at && --rename_fails_at == 0) return errno = fault, -1;
    return real.rename(from, to);
}

static int set_up(void **state) {
    (void)state;
    remove_all();
    real = (dc_file_calls){write, fsync, rename};
    dc_file_system = (dc_file_calls){faulty_write, faulty_sync, faulty_rename};
    write_fails_at = sync_fails_at = rename_fails_at = calls = interrupts = 0;
    longest = 0;
    fault = ENOSPC;
    return 0;
}

enum { BIG = 1000003 };
static char big[BIG];

// A save with all that a save can do: small and large writes, a patch, more.
static dc_status save_big(const char *path) {
    dc_save save;
    char zeros[8] = {0};
    DC_TRY(dc_save_open(&save, path));
    DC_TRY(dc_save_write(&save, zeros, 8));
    for (size_t at = 8; at < 5000; at += 16)
        DC_TRY(dc_save_write(&save, big + at, 16));
    DC_TRY(dc_save_patch(&save, 0, big, 8));
    DC_TRY(dc_save_write(&save, big + 5000, BIG - 5000));
    return dc_save_commit(&save);
}

static void expect_old(const char *path) {
    expect(path, "old", 3);
    assert_int_equal(count_files(), 1);
    assert_non_null(strstr(dc_error(), path));
}

// ---- tests

static void test_read(void **state) {
    (void)state;
    const char *path = in_folder("a");
    assert_int_equal(dc_file_write(path, "hello", 5), DC_OK);
    expect(path, "hello", 5);
    char *bytes;
    size_t n;
    assert_int_equal(dc_file_read(path, 5, &bytes, &n), DC_OK);
    free(bytes);
    assert_int_equal(dc_file_read(path, 4, &bytes, &n), DC_BAD_INPUT);
    assert_non_null(strstr(dc_error(), "larger than the 4 bytes"));
    assert_null(bytes);
    assert_int_equal(dc_file_read(path, 0, &bytes, &n), DC_BAD_INPUT);
    assert_int_equal(dc_file_read(in_folder("absent"), 9, &bytes, &n), DC_IO);
    assert_non_null(strstr(dc_error(), "No such file"));
    assert_non_null(strstr(dc_error(), "check the path"));
    assert_int_equal(dc_file_read(folder, 9, &bytes, &n), DC_IO);
    assert_non_null(strstr(dc_error(), "give a file, not a folder"));
    // Files that tell no size.
    assert_int_equal(dc_file_read("/proc/self/status", 1 << 20, &bytes, &n), DC_OK);
    assert_true(n > 100 && strlen(bytes) == n);
    free(bytes);
    assert_int_equal(dc_file_read("/dev/zero", 100000, &bytes, &n), DC_BAD_INPUT);
    assert_int_equal(dc_file_write(path, "", 0), DC_OK);
    expect(path, "", 0);
}

static void test_map(void **state) {
    (void)state;
    const char *path = in_folder("a");
    dc_map map;
    assert_int_equal(dc_file_write(path, "hello", 5), DC_OK);
    assert_int_equal(dc_map_open(&map, path), DC_OK);
    assert_int_equal(map.size, 5);
    assert_memory_equal(map.bytes, "hello", 5);
    // A save replaces the name; a mapping of the old file still reads the old one.
    assert_int_equal(dc_file_write(path, "HELLO", 5), DC_OK);
    assert_memory_equal(map.bytes, "hello", 5);
    dc_map_close(&map);
    dc_map_close(&map);
    assert_int_equal(dc_file_write(path, "", 0), DC_OK);
    assert_int_equal(dc_map_open(&map, path), DC_OK);
    assert_null(map.bytes);
    dc_map_close(&map);
    assert_int_equal(dc_map_open(&map, in_folder("absent")), DC_IO);
    assert_int_equal(dc_map_open(&map, folder), DC_IO);
    assert_int_equal(dc_map_open(&map, "/dev/null"), DC_IO);
    assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
    assert_int_equal(dc_map_open(&map, in_folder("pipe")), DC_IO);
}

static void test_save(void **state) {
    (void)state;
    const char *path = in_folder("a");
    assert_int_equal(dc_file_write(path, "old", 3), DC_OK);
    assert_int_equal(save_big(path), DC_OK);
    expect(path, big, BIG);
    assert_int_equal(count_files(), 1);
    dc_save save;
    assert_int_equal(dc_save_open(&save, path), DC_OK);
    assert_int_equal(count_files(), 2);
    assert_int_equal(dc_save_write(&save, "new", 3), DC_OK);
    assert_int_equal(save.offset, 3);
    expect(path, big, BIG);
    dc_save_abort(&save);
    dc_save_abort(&save);
    expect(path, big, BIG);
    assert_int_equal(count_files(), 1);
    assert_int_equal(dc_save_open(&save, path), DC_OK);
    assert_int_equal(dc_save_commit(&save), DC_OK);
    dc_save_abort(&save);
    expect(path, "", 0);
}

// Every write, every sync, the rename: each fails once, on every file the same promise.
static void test_faults(void **state) {
    (void)state;
    const char *path = in_folder("a");
    int *const counters[] = {&write_fails_at, &rename_fails_at, &sync_fails_at};
    static const int errors[] = {ENOSPC, EIO, EDQUOT};
    int failures = 0;
    for (int which = 0; which < 3; which++) {
        for (int nth = 1; nth < 100; nth++) {
            assert_int_equal(dc_file_write(path, "old", 3), DC_OK);
            longest = 50000;
            fault = errors[nth % 3];
            *counters[which] = nth;
            dc_status status = save_big(path);
            bool reached = *counters[which] == 0;
            *counters[which] = 0;
            longest = 0;
            if (!reached) {
                assert_int_equal(status, DC_OK);
                break;
            }
            failures++;
            assert_int_equal(status, DC_IO);
            // The second sync is the folder's: the new file is in place by then, and whole.
            if (which == 2 && nth == 2)
                expect(path, big, BIG);
            else
                expect_old(path);
            assert_int_equal(count_files(), 1);
        }
    }
    print_message("%d faults\n", failures);
    assert_true(failures > 20);
}

static void test_sticky(void **state) {
    (void)state;
    const char *path = in_folder("a");
    dc_save save;
    assert_int_equal(dc_file_write(path, "old", 3), DC_OK);
    assert_int_equal(dc_save_open(&save, path), DC_OK);
    write_fails_at = 1;
    assert_int_equal(dc_save_write(&save, big, BIG), DC_IO);
    assert_int_equal(dc_save_write(&save, big, BIG), DC_IO);
    assert_int_equal(dc_save_patch(&save, 0, "x", 1), DC_IO);
    assert_int_equal(dc_save_commit(&save), DC_IO);
    dc_save_abort(&save);
    assert_non_null(strstr(dc_error(), "No space left"));
    assert_non_null(strstr(dc_error(), "free some space"));
    expect_old(path);
    // A write that takes nothing and says nothing must not hang.
    fault = 0;
    write_fails_at = 1;
    assert_int_equal(save_big(path), DC_IO);
    expect_old(path);
    // A folder that cannot be synced at all (some network file systems) is no error.
    fault = EINVAL;
    sync_fails_at = 2;
    assert_int_equal(save_big(path), DC_OK);
    expect(path, big, BIG);
}

static void test_short_and_interrupted(void **state) {
    (void)state;
    interrupts = 1;
    longest = 777;
    assert_int_equal(save_big(in_folder("a")), DC_OK);
    expect(in_folder("a"), big, BIG);
}

static void test_bad_places(void **state) {
    (void)state;
    assert_int_equal(dc_file_write(in_folder("no/such/folder"), "x", 1), DC_IO);
    assert_non_null(strstr(dc_error(), "check the path"));
    assert_int_equal(dc_file_write(folder, "x", 1), DC_IO);
    assert_int_equal(dc_file_write("", "x", 1), DC_IO);
    assert_int_equal(dc_file_write(in_folder("a"), "old", 3), DC_OK);
    assert_int_equal(dc_file_write(in_folder("a/b"), "x", 1), DC_IO);
    assert_non_null(strstr(dc_error(), "not a folder"));
    assert_int_equal(count_files(), 1);
    dc_save save;
    assert_int_equal(dc_save_open(&save, folder), DC_IO);
    assert_int_equal(dc_save_write(&save, "x", 1), DC_IO);
    assert_int_equal(dc_save_commit(&save), DC_IO);
    dc_save_abort(&save);
}

// A name without a folder is saved here; "/x" has the root as its folder.
static void test_plain_name(void **state) {
    (void)state;
    char here[512];
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(folder), 0);
    dc_status status = dc_file_write("plain", "x", 1);
    assert_int_equal(chdir(here), 0);
    assert_int_equal(status, DC_OK);
    expect(in_folder("plain"), "x", 1);
}

// A link to a file on another disk stays a link.
static void test_link(void **state) {
    (void)state;
    struct stat info;
    assert_int_equal(dc_file_write(in_folder("a"), "old", 3), DC_OK);
    assert_int_equal(symlink("a", in_folder("link")), 0);
    assert_int_equal(dc_file_write(in_folder("link"), "new", 3), DC_OK);
    expect(in_folder("a"), "new", 3);
    assert_int_equal(lstat(in_folder("link"), &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    // A link to nothing has nothing to keep.
    assert_int_equal(remove(in_folder("a")), 0);
    assert_int_equal(dc_file_write(in_folder("link"), "new", 3), DC_OK);
    expect(in_folder("link"), "new", 3);
    assert_int_equal(count_files(), 1);
}

// Devices are written through, never replaced.
static void test_devices(void **state) {
    (void)state;
    struct stat info;
    assert_int_equal(dc_file_write("/dev/null", big, BIG), DC_OK);
    assert_int_equal(stat("/dev/null", &info), 0);
    assert_true(S_ISCHR(info.st_mode));
    if (stat("/dev/full", &info) != 0) skip();
    assert_int_equal(dc_file_write("/dev/full", big, BIG), DC_IO);
    assert_non_null(strstr(dc_error(), "No space left"));
    assert_int_equal(dc_file_write("/dev/full", "x", 1), DC_IO);
    assert_int_equal(stat("/dev/full", &info), 0);
    assert_true(S_ISCHR(info.st_mode));
}

// What a killed process left behind, even one of our own number, blocks nothing.
static void test_stale(void **state) {
    (void)state;
    const char *path = in_folder("a");
    char stale[600];
    dc_save save;
    assert_int_equal(dc_save_open(&save, path), DC_OK);
    // Take the next few names that this process would choose.
    char *dot = strrchr(save.temp, '.');
    unsigned next = (unsigned)strtoul(dot + 1, NULL, 10);
    int stem = (int)(dot - save.temp);
    for (unsigned i = 1; i <= 3; i++) {
        snprintf(stale, sizeof stale, "%.*s.%u", stem, save.temp, next + i);
        FILE *f = fopen(stale, "w");
        assert_non_null(f);
        fclose(f);
    }
    dc_save_abort(&save);
    assert_int_equal(dc_file_write(path, "new", 3), DC_OK);
    expect(path, "new", 3);
    assert_int_equal(count_files(), 4); // not ours to remove
}

// kill -9 in the middle of saves: the file is always one of those that were saved.
static void test_kill(void **state) {
    (void)state;
    const char *path = in_folder("a");
    memset(big, 'a', BIG);
    assert_int_equal(dc_file_write(path, big, BIG), DC_OK);
    for (int round = 0; round < 20; round++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            for (int i = 0;; i++) {
                memset(big, 'a' + i % 26, BIG);
                if (dc_file_write(path, big, BIG) != DC_OK) _exit(1);
            }
        }
        nanosleep(&(struct timespec){.tv_nsec = 3000000L + 2500000L * round}, NULL);
        assert_int_equal(kill(child, SIGKILL), 0);
        int how;
        assert_int_equal(waitpid(child, &how, 0), child);
        assert_true(WIFSIGNALED(how));
        char *got;
        size_t n;
        assert_int_equal(dc_file_read(path, BIG, &got, &n), DC_OK);
        assert_int_equal(n, BIG);
        for (size_t i = 1; i < n; i++)
            if (got[i] != got[0]) fail_msg("a mixture after round %d", round);
        free(got);
    }
    assert_int_equal(dc_file_write(path, "x", 1), DC_OK);
}

// A real disk that is full, as near as a test without privileges comes: the limit on file size.
static void test_limit(void **state) {
    (void)state;
    const char *path = in_folder("a");
    assert_int_equal(dc_file_write(path, "old", 3), DC_OK);
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 300000;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    dc_status status = save_big(path);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    assert_int_equal(status, DC_IO);
    assert_non_null(strstr(dc_error(), "ulimit -f"));
    expect_old(path);
}

// And a full one, where we may mount (as root in a test machine).
static void test_full_disk(void **state) {
    (void)state;
    const char *mount_point = in_folder("small");
    char command[700], path[600];
    assert_int_equal(dc_folder_make(mount_point), DC_OK);
    snprintf(command, sizeof command, "mount -t tmpfs -o size=512k none %s 2>/dev/null",
             mount_point);
    if (system(command) != 0) {
        print_message("mounting is not allowed here\n");
        skip();
    }
    snprintf(path, sizeof path, "%s/a", mount_point);
    dc_status first = dc_file_write(path, "old", 3), second = save_big(path);
    char message[600];
    snprintf(message, sizeof message, "%s", dc_error());
    char *got = NULL;
    size_t n = 0;
    dc_status third = dc_file_read(path, 100, &got, &n);
    bool same = third == DC_OK && n == 3 && !memcmp(got, "old", 3);
    free(got);
    snprintf(command, sizeof command, "ls %s | wc -l | grep -qx 1", mount_point);
    int alone = system(command);
    snprintf(command, sizeof command, "umount %s", mount_point);
    assert_int_equal(system(command), 0);
    assert_int_equal(first, DC_OK);
    assert_int_equal(second, DC_IO);
    assert_non_null(strstr(message, "No space left"));
    assert_true(same);
    assert_int_equal(alone, 0);
}

static void test_folders(void **state) {
    (void)state;
    const char *deep = in_folder("x/y//z/");
    assert_int_equal(dc_folder_make(deep), DC_OK);
    assert_int_equal(dc_folder_make(deep), DC_OK);
    assert_true(access(in_folder("x/y/z"), F_OK) == 0);
    assert_int_equal(dc_folder_make("/"), DC_OK);
    assert_int_equal(dc_folder_make("."), DC_OK);
    assert_int_equal(dc_folder_make(""), DC_IO);
    assert_int_equal(dc_file_write(in_folder("x/f"), "x", 1), DC_OK);
    assert_int_equal(dc_folder_make(in_folder("x/f")), DC_IO);
    assert_non_null(strstr(dc_error(), "in the way"));
    assert_int_equal(dc_folder_make(in_folder("x/f/g")), DC_IO);
    // What cannot be looked for is not missing.
    bool exists;
    assert_int_equal(dc_file_find(in_folder("x/f/g"), &exists), DC_IO);
    assert_int_equal(dc_file_find(in_folder("x/g"), &exists), DC_OK);
    assert_false(exists);
    assert_int_equal(dc_file_find(in_folder("x/f"), &exists), DC_OK);
    assert_true(exists);
    assert_int_equal(remove(in_folder("x/f")), 0);
    assert_int_equal(remove(in_folder("x/y/z")), 0);
    assert_int_equal(remove(in_folder("x/y")), 0);
}

static int make_folder(void **state) {
    (void)state;
    for (size_t i = 0; i < BIG; i++)
        big[i] = (char)(i * 2654435761u >> 13);
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    remove_all();
    return rmdir(folder);
}

#define TEST(f) cmocka_unit_test_setup(f, set_up)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_read),       TEST(test_map),        TEST(test_save),
        TEST(test_faults),     TEST(test_sticky),     TEST(test_short_and_interrupted),
        TEST(test_bad_places), TEST(test_plain_name), TEST(test_devices),
        TEST(test_link),       TEST(test_stale),      TEST(test_limit),
        TEST(test_full_disk),  TEST(test_folders),    TEST(test_kill),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
