// Run folders, see folder.h and run.h. A process that trains holds a lock on the folder itself: two
// that wrote the same logs and checkpoints would leave bytes that no run ever had. The system drops
// the lock with the process, also after kill -9. While it is held, temporary files in the folder
// can only be leftovers, and are removed.
#include "train/folder.h"

#include "base/build.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

dc_status dc_folder_path(char *out, const char *folder, const char *name) {
    int n = snprintf(out, DC_PATH_MAX, "%s/%s", folder, name);
    if (n < 0 || n >= DC_PATH_MAX)
        return dc_fail(DC_USAGE, "choose a shorter one", "the path %.60s... is too long", folder);
    return DC_OK;
}

static void checkpoint_name(char name[64], int64_t step) {
    snprintf(name, 64, "step-%010" PRId64 ".safetensors", step);
}

dc_status dc_folder_checkpoint(char *out, const char *folder, int64_t step) {
    char name[64];
    checkpoint_name(name, step);
    return dc_folder_path(out, folder, name);
}

// The number after the dash, if `write` gives it the same name; else -1.
static int64_t read_name(const char *name, void (*write)(char name[64], int64_t)) {
    char same[64];
    const char *dash = strchr(name, '-');
    if (!dash) return -1;
    int64_t number = strtoll(dash + 1, NULL, 10);
    write(same, number);
    return strcmp(name, same) == 0 ? number : -1;
}

// "step-0000040000.safetensors" -> 40000, anything else -> -1.
static int64_t step_of(const char *name) {
    return read_name(name, checkpoint_name);
}

static void member_name(char name[64], int64_t seed) {
    snprintf(name, 64, "seed-%" PRId64, seed);
}

dc_status dc_folder_member(char *out, const char *folder, int64_t seed) {
    char name[64];
    member_name(name, seed);
    return dc_folder_path(out, folder, name);
}

// "seed-7" -> 7, anything else -> -1.
static int64_t seed_of(const char *name) {
    return read_name(name, member_name);
}

static int least_first(const void *x, const void *y) {
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
    return a < b ? -1 : a > b ? 1 : 0;
}

static int newest_first(const void *x, const void *y) {
    return least_first(y, x);
}

// The numbers in a folder's names, -1 for a name that is of another kind.
static dc_status list_numbers(const char *folder, int64_t (*number_of)(const char *),
                              int64_t **numbers, int *count) {
    *numbers = NULL;
    *count = 0;
    DIR *dir = opendir(folder);
    if (!dir)
        return dc_fail(DC_IO, "check the path and its permissions", "cannot open folder %s (%s)",
                       folder, strerror(errno));
    int room = 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        int64_t number = number_of(entry->d_name);
        if (number < 0) continue;
        if (*count == room) {
            room = room ? room * 2 : 16;
            int64_t *more = realloc(*numbers, (size_t)room * sizeof *more);
            if (!more) {
                free(*numbers);
                *numbers = NULL;
                closedir(dir);
                return dc_fail(DC_NO_MEMORY, NULL, "no memory to list %s", folder);
            }
            *numbers = more;
        }
        (*numbers)[(*count)++] = number;
    }
    closedir(dir);
    return DC_OK;
}

dc_status dc_folder_checkpoints(const char *folder, int64_t **steps, int *count) {
    DC_TRY(list_numbers(folder, step_of, steps, count));
    if (*count) qsort(*steps, (size_t)*count, sizeof **steps, newest_first);
    return DC_OK;
}

dc_status dc_folder_members(const char *folder, int64_t **seeds, int *count) {
    DC_TRY(list_numbers(folder, seed_of, seeds, count));
    if (*count) qsort(*seeds, (size_t)*count, sizeof **seeds, least_first);
    return DC_OK;
}

// --- lock and leftovers ---

// Is this NAME.tmp.PID.N (base/file.c), NAME being one of a run's files?
static bool is_leftover(const char *entry) {
    static const char *const names[] = {"config.json", "train.csv",   "timing.csv",
                                        "eval.csv",    "result.json", "DONE"};
    char name[NAME_MAX + 1];
    const char *temp = strstr(entry, ".tmp.");
    if (!temp || temp - entry > NAME_MAX) return false;
    snprintf(name, sizeof name, "%.*s", (int)(temp - entry), entry);
    bool ours = step_of(name) >= 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        ours = ours || !strcmp(name, names[i]);
    return ours && dc_save_owner(entry);
}

static void remove_leftovers(const char *folder) {
    DIR *dir = opendir(folder);
    if (!dir) return;
    for (struct dirent *entry; (entry = readdir(dir));) {
        char path[DC_PATH_MAX];
        if (is_leftover(entry->d_name) && dc_folder_path(path, folder, entry->d_name) == DC_OK)
            unlink(path);
    }
    closedir(dir);
}

dc_status dc_folder_lock(dc_run *run) {
    run->lock = open(run->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (run->lock < 0)
        return dc_fail(DC_IO, "check the path and its permissions", "cannot open folder %s (%s)",
                       run->folder, strerror(errno));
    // Some network file systems know no locks; there the user must take care.
    if (flock(run->lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return dc_fail(DC_IO, "wait for it, or stop it first", "another process is training in %s",
                       run->folder);
    remove_leftovers(run->folder);
    return DC_OK;
}

void dc_folder_unlock(dc_run *run) {
    if (run->lock >= 0) close(run->lock);
    run->lock = -1;
}

// --- config and logs ---

dc_status dc_folder_write_config(const dc_run *run) {
    char path[DC_PATH_MAX];
    DC_TRY(dc_folder_path(path, run->folder, "config.json"));
    dc_text text;
    dc_text_init(&text);
    dc_text_add(&text, "{\n");
    dc_options_json(dc_run_table, &run->options, &text);
    dc_text_add(&text, ",\n");
    dc_options_json(run->algo->options, run->config, &text);
    dc_text_add(&text, ",\n  \"data_hash\": \"%016" PRIx64 "\",\n  \"build\": \"%s\"\n}\n",
                run->data->hash, dc_build_id());
    dc_status status = dc_text_status(&text);
    if (status == DC_OK) status = dc_file_write(path, text.bytes, text.used);
    dc_text_fini(&text);
    return status;
}

static dc_status put(int fd, const dc_run *run, const char *name, const char *line, size_t n) {
    while (n > 0) {
        ssize_t done = dc_file_system.write(fd, line, n);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) // taking nothing for ever would be no better
            return dc_fail(DC_IO, "free some space there, then --resume", "cannot write %s/%s (%s)",
                           run->folder, name, done < 0 ? strerror(errno) : "it takes no bytes");
        line += done;
        n -= (size_t)done;
    }
    return DC_OK;
}

// Length of the leading part of a CSV that holds the header and complete rows up to `step`. What a
// power cut left behind the last sync can be anything, so rows must rise.
static size_t rows_until(const char *bytes, size_t n, const char *header, int64_t step) {
    size_t good = strlen(header);
    if (n < good || memcmp(bytes, header, good) != 0) return 0;
    for (int64_t row = 0, last = 0; good < n; last = row) {
        const char *end = memchr(bytes + good, '\n', n - good);
        if (!end) break;
        row = strtoll(bytes + good, NULL, 10);
        if (row <= last || row > step) break;
        good = (size_t)(end - bytes) + 1;
    }
    return good;
}

// Open a CSV for appending, without the rows of steps that will be done again.
static dc_status open_csv(const char *folder, const char *name, const char *header, int64_t step,
                          int *fd) {
    char path[DC_PATH_MAX];
    DC_TRY(dc_folder_path(path, folder, name));
    if (dc_file_exists(path)) {
        char *bytes;
        size_t n;
        DC_TRY(dc_file_read(path, (size_t)1 << 32, &bytes, &n));
        size_t good = rows_until(bytes, n, header, step);
        dc_status status = good == 0  ? dc_file_write(path, header, strlen(header))
                           : good < n ? dc_file_write(path, bytes, good)
                                      : DC_OK;
        free(bytes);
        DC_TRY(status);
    } else {
        DC_TRY(dc_file_write(path, header, strlen(header)));
    }
    *fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (*fd < 0)
        return dc_fail(DC_IO, "check its permissions", "cannot open %s (%s)", path,
                       strerror(errno));
    return DC_OK;
}

dc_status dc_folder_open_logs(dc_run *run, int64_t step) {
    dc_text header;
    dc_text_init(&header);
    dc_text_add(&header, "step");
    for (int i = 0; i < dc_run_metric_count(run); i++)
        dc_text_add(&header, ",%s", dc_run_metric_name(run, i));
    dc_text_add(&header, "\n");
    dc_status status = dc_text_status(&header);
    if (status == DC_OK) status = open_csv(run->folder, "train.csv", header.bytes, step, &run->csv);
    dc_text_fini(&header);
    if (status == DC_OK)
        status = open_csv(run->folder, "timing.csv", "step,seconds,steps_per_second\n", step,
                          &run->timing);
    return status;
}

dc_status dc_folder_log(dc_run *run, double seconds, double rate) {
    char line[64 + 32 * (DC_METRICS_MAX + 2)];
    int n = snprintf(line, sizeof line, "%" PRId64, run->step);
    for (int i = 0; i < dc_run_metric_count(run); i++)
        n += snprintf(line + n, sizeof line - (size_t)n, ",%.9g", run->last[i]);
    n += snprintf(line + n, sizeof line - (size_t)n, "\n");
    DC_TRY(put(run->csv, run, "train.csv", line, (size_t)n));
    n = snprintf(line, sizeof line, "%" PRId64 ",%.3f,%.1f\n", run->step, seconds, rate);
    return put(run->timing, run, "timing.csv", line, (size_t)n);
}

dc_status dc_folder_sync_logs(dc_run *run) {
    if (run->csv >= 0 && dc_file_system.fsync(run->csv) != 0)
        return dc_fail(DC_IO, "check the disk, then --resume", "cannot sync %s/train.csv (%s)",
                       run->folder, strerror(errno));
    return DC_OK;
}

void dc_folder_close_logs(dc_run *run) {
    if (run->csv >= 0) close(run->csv);
    if (run->timing >= 0) close(run->timing);
    run->csv = run->timing = -1;
}
