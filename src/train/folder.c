// Run folders, see folder.h and run.h. A process that trains holds a lock on the folder itself: two
// that wrote the same logs and checkpoints would leave bytes that no run ever had. The system drops
// the lock with the process, also after kill -9. While it is held, temporary files of
// training's own can only be leftovers, and are removed; other files' by the process that is to write them.
#include "train/folder.h"

#include "base/build.h"
#include "base/file.h"
#include "base/log.h"
#include "base/number.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
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

// Room is the next power of two.
static dc_status append(int64_t **numbers, int *count, int64_t number, const char *folder) {
    if ((*count & (*count - 1)) == 0) {
        size_t room = *count ? (size_t)*count * 2 : 1;
        int64_t *more = realloc(*numbers, room * sizeof *more);
        if (!more) return dc_fail(DC_NO_MEMORY, NULL, "no memory to list %s", folder);
        *numbers = more;
    }
    (*numbers)[(*count)++] = number;
    return DC_OK;
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
    dc_status status;
    const char *name;
    while ((status = dc_folder_next(dir, folder, &name)) == DC_OK && name) {
        int64_t number = number_of(name);
        if (number >= 0 && (status = append(numbers, count, number, folder)) != DC_OK) break;
    }
    closedir(dir);
    if (status != DC_OK) {
        free(*numbers);
        *numbers = NULL;
        *count = 0;
    }
    return status;
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

dc_status dc_folder_inner(char out[DC_PATH_MAX], const char *folder) {
    dc_status status;
    const char *name;
    char inner[DC_PATH_MAX], config[DC_PATH_MAX];
    DIR *dir = opendir(folder);
    if (!dir)
        return dc_fail(DC_IO, "check the path and its permissions", "cannot open folder %s (%s)",
                       folder, strerror(errno));
    *out = 0;
    while ((status = dc_folder_next(dir, folder, &name)) == DC_OK && name && !*out) {
        if ((status = dc_folder_path(inner, folder, name)) != DC_OK) break;
        if ((status = dc_folder_path(config, inner, "config.json")) != DC_OK) break;
        if (access(config, F_OK) == 0) memcpy(out, inner, sizeof inner);
    }
    closedir(dir);
    return status;
}

dc_status dc_folder_run(char out[DC_PATH_MAX], const char *folder) {
    bool begun, exists;
    DC_TRY(dc_folder_path(out, folder, ""));
    out[strlen(folder)] = 0; // no slash
    DC_TRY(dc_run_begun(folder, &begun));
    DC_TRY(dc_folder_find(folder, &exists));
    if (begun || !exists) return DC_OK;
    int64_t *seeds;
    int count;
    DC_TRY(dc_folder_members(folder, &seeds, &count));
    dc_status status = count ? dc_folder_member(out, folder, seeds[0]) : DC_OK;
    if (count && status == DC_OK)
        dc_log(DC_INFO, "%s holds runs of seeds (%d): that of seed %" PRId64 " is taken", folder,
               count, seeds[0]);
    free(seeds);
    return status;
}

// --- lock and leftovers ---

static bool is_map(const char *name, size_t n) {
    return n > 8 && !strncmp(name, "map-", 4) && !strcmp(name + n - 4, ".svg");
}

// What only a process that trains writes.
static bool is_of_training(const char *name) {
    static const char *const names[] = {"config.json", "train.csv", "timing.csv", "result.json",
                                        "DONE"};
    bool is = step_of(name) >= 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        is = is || !strcmp(name, names[i]);
    return is;
}

// Its process is no more. This one has nothing open there yet: the number is that of an earlier one.
static bool is_gone(long pid) {
    return pid == (long)getpid() || (kill((pid_t)pid, 0) != 0 && errno == ESRCH);
}

// Is this NAME.tmp.PID.N (base/file.c), NAME being one of a run's files, and nobody at work on it?
static bool is_leftover(const char *entry, bool held) {
    char name[NAME_MAX + 1];
    const char *temp = strstr(entry, ".tmp.");
    long pid = dc_save_owner(entry);
    if (!temp || !pid || temp - entry > NAME_MAX) return false;
    snprintf(name, sizeof name, "%.*s", (int)(temp - entry), entry);
    if (is_of_training(name)) return held || is_gone(pid);
    bool ours = !strcmp(name, "eval.csv") || !strcmp(name, "lock.svg") ||
                !strcmp(name, "report.html") || is_map(name, strlen(name));
    return ours && is_gone(pid);
}

static void sweep(const char *folder, bool held) {
    const char *name;
    char path[DC_PATH_MAX];
    DIR *dir = opendir(folder);
    if (!dir) return;
    while (dc_folder_next(dir, folder, &name) == DC_OK && name)
        if (is_leftover(name, held) && dc_folder_path(path, folder, name) == DC_OK) unlink(path);
    closedir(dir);
}

void dc_folder_sweep(const char *folder) {
    sweep(folder, false);
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
    sweep(run->folder, true);
    return DC_OK;
}

void dc_folder_unlock(dc_run *run) {
    if (run->lock >= 0) close(run->lock);
    run->lock = -1;
}

// --- config and logs ---

// The data's path as seen from the folder, so that both can be moved together.
static void put_data_from_run(const dc_run *run, dc_text *out) {
    char path[DC_PATH_MAX];
    if (!*run->options.data || !dc_path_from(run->folder, run->options.data, path)) return;
    dc_text_add(out, ",\n  \"data_from_run\": ");
    dc_json_quote(out, path);
}

// The range of each action, where act_scale is on: "act_low": [-3.1, -2.4]
static void add_range(dc_text *text, const char *name, const float *values, int width) {
    dc_text_add(text, ",\n  \"%s\": [", name);
    for (int c = 0; c < width; c++) {
        if (c) dc_text_add(text, ", ");
        dc_json_number(text, (double)values[c]);
    }
    dc_text_add(text, "]");
}

dc_status dc_folder_write_config(const dc_run *run) {
    char path[DC_PATH_MAX];
    DC_TRY(dc_folder_path(path, run->folder, "config.json"));
    dc_text text;
    dc_text_init(&text);
    dc_text_add(&text, "{\n");
    dc_options_json(dc_run_table, &run->options, &text);
    dc_text_add(&text, ",\n");
    dc_options_json(run->algo->options, run->config, &text);
    put_data_from_run(run, &text);
    const dc_act_scale *s = run->agent.method.act_scale;
    if (s) add_range(&text, "act_low", s->low, s->width);
    if (s) add_range(&text, "act_high", s->high, s->width);
    if (run->val) dc_text_add(&text, ",\n  \"val_hash\": \"%016" PRIx64 "\"", run->val->hash);
    char arithmetic[DC_ARITHMETIC_MAX];
    dc_run_arithmetic(run, arithmetic);
    dc_text_add(&text,
                ",\n  \"transitions\": %" PRId64 ",\n  \"data_hash\": \"%016" PRIx64
                "\",\n  \"build\": \"%s\",\n  \"arithmetic\": ",
                run->data->rows - run->data->traj_count, run->data->hash, dc_build_id());
    dc_json_quote(&text, arithmetic);
    dc_text_add(&text, "\n}\n");
    dc_status status = dc_text_status(&text);
    if (status == DC_OK) status = dc_file_write_inside(path, text.bytes, text.used);
    dc_text_fini(&text);
    return status;
}

// DONE goes first: killed in between, the run is as it was, and its last step is done again.
dc_status dc_folder_rewrite_config(const dc_run *run) {
    char done[DC_PATH_MAX];
    DC_TRY(dc_folder_path(done, run->folder, "DONE"));
    if (unlink(done) != 0 && errno != ENOENT)
        return dc_fail(DC_IO, "check the folder's permissions", "cannot remove %s (%s)", done,
                       strerror(errno));
    return dc_folder_write_config(run);
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

// A row begins with a step past the last one and has as many fields as the header, of numbers.
static bool is_row(const char *line, size_t n, int commas, int64_t *step) {
    int64_t before = *step;
    for (size_t i = 0; i < n; i++) {
        bool comma = line[i] == ',';
        if (!line[i] || !strchr("0123456789+-.,einfa", line[i])) return false;
        if (comma && (i + 1 == n || line[i + 1] == ',')) return false; // an empty field
        commas -= comma;
    }
    if (commas != 0 || *line < '0' || *line > '9' || (*line == '0' && line[1] != ',')) return false;
    *step = strtoll(line, NULL, 10);
    return *step > before;
}

dc_log_part dc_folder_log_part(const char *bytes, size_t n, const char *header, int64_t until) {
    dc_log_part part = {.bad_line = n ? 1 : 0};
    size_t at = strlen(header);
    int commas = 0;
    if (n < at || memcmp(bytes, header, at) != 0) return part;
    for (const char *c = header; *c; c++)
        commas += *c == ',';
    part = (dc_log_part){.good = at};
    int line = 1;
    for (int64_t step = -1; at < n;) {
        const char *end = memchr(bytes + at, '\n', n - at);
        if (!end) break; // a writer was killed
        line++;
        if (!is_row(bytes + at, (size_t)(end - bytes) - at, commas, &step)) {
            part.bad_line = line;
            break;
        }
        at = (size_t)(end - bytes) + 1;
        if (step <= until) part.good = at;
    }
    return part;
}

// Put the bytes of a damaged log into a file beside it, of a name that is free.
static dc_status keep_aside(const char *path, const char *bytes, size_t n, int line) {
    char aside[DC_PATH_MAX + 32];
    bool exists = true;
    for (int k = 1; exists; k++) {
        snprintf(aside, sizeof aside, "%s.kept-%d", path, k);
        DC_TRY(dc_file_find(aside, &exists));
    }
    DC_TRY(dc_file_write_inside(aside, bytes, n));
    dc_log(DC_WARN,
           "%s:%d is no line that this run wrote: the file is kept as %s, and the run goes on with "
           "the rows before that line",
           path, line, aside);
    return DC_OK;
}

// Cut a log to its rows up to `step`. What is no log of this run is put aside first.
static dc_status cut_csv(const char *path, const char *header, int64_t step) {
    char *bytes;
    size_t n;
    DC_TRY(dc_file_read_inside(path, (size_t)1 << 32, &bytes, &n));
    dc_log_part part = dc_folder_log_part(bytes, n, header, step);
    dc_status status = part.bad_line ? keep_aside(path, bytes, n, part.bad_line) : DC_OK;
    if (status == DC_OK && !part.good)
        status = dc_file_write_inside(path, header, strlen(header));
    else if (status == DC_OK && part.good < n)
        status = dc_file_write_inside(path, bytes, part.good);
    free(bytes);
    return status;
}

// Open a CSV for appending, without the rows of steps that will be done again.
static dc_status open_csv(const char *folder, const char *name, const char *header, int64_t step,
                          int *fd) {
    char path[DC_PATH_MAX];
    bool exists;
    DC_TRY(dc_folder_path(path, folder, name));
    DC_TRY(dc_file_find(path, &exists));
    DC_TRY(exists ? cut_csv(path, header, step)
                  : dc_file_write_inside(path, header, strlen(header)));
    return dc_open_inside(path, O_WRONLY | O_APPEND, fd);
}

static const char timing_header[] = "step,seconds,steps_per_second,together\n";
static const char old_timing[] =
    "step,seconds,steps_per_second\n"; // of earlier programs, which goes on

// A log keeps the columns that it began with.
static dc_status open_timing(dc_run *run, int64_t step) {
    char path[DC_PATH_MAX], *bytes = NULL;
    size_t n = 0, old = sizeof old_timing - 1;
    bool exists;
    DC_TRY(dc_folder_path(path, run->folder, "timing.csv"));
    DC_TRY(dc_file_find(path, &exists));
    if (exists) DC_TRY(dc_file_read_inside(path, (size_t)1 << 32, &bytes, &n));
    run->old_timing = n >= old && !memcmp(bytes, old_timing, old);
    free(bytes);
    return open_csv(run->folder, "timing.csv", run->old_timing ? old_timing : timing_header, step,
                    &run->timing);
}

dc_status dc_folder_open_logs(dc_run *run, int64_t step) {
    dc_text header;
    dc_text_init(&header);
    dc_text_add(&header, "step");
    for (int i = 0; i < dc_run_column_count(run); i++)
        dc_text_add(&header, ",%s", dc_run_column_name(run, i));
    dc_text_add(&header, "\n");
    dc_status status = dc_text_status(&header);
    if (status == DC_OK) status = open_csv(run->folder, "train.csv", header.bytes, step, &run->csv);
    dc_text_fini(&header);
    return status == DC_OK ? open_timing(run, step) : status;
}

dc_status dc_folder_log(dc_run *run, double seconds, double rate, int together) {
    char line[64 + 32 * DC_LOG_COLUMNS], time[128];
    locale_t before = dc_locale_enter();
    int n = snprintf(line, sizeof line, "%" PRId64, run->step);
    for (int i = 0; i < dc_run_column_count(run); i++)
        n += snprintf(line + n, sizeof line - (size_t)n, ",%.9g", run->last[i]);
    n += snprintf(line + n, sizeof line - (size_t)n, "\n");
    int m = snprintf(time, sizeof time, "%" PRId64 ",%.3f,%.1f", run->step, seconds, rate);
    m += snprintf(time + m, sizeof time - (size_t)m, run->old_timing ? "\n" : ",%d\n", together);
    dc_locale_leave(before);
    DC_TRY(put(run->csv, run, "train.csv", line, (size_t)n));
    return put(run->timing, run, "timing.csv", time, (size_t)m);
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
