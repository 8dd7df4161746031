// Run folders, see folder.h and run.h.
#include "train/folder.h"

#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

dc_status dc_folder_path(char *out, const char *folder, const char *name) {
    int n = snprintf(out, DC_PATH_MAX, "%s/%s", folder, name);
    if (n < 0 || n >= DC_PATH_MAX) return dc_fail(DC_USAGE, "choose a shorter one", "the path %.60s... is too long", folder);
    return DC_OK;
}

dc_status dc_folder_checkpoint(char *out, const char *folder, int64_t step) {
    char name[64];
    snprintf(name, sizeof name, "step-%010" PRId64 ".safetensors", step);
    return dc_folder_path(out, folder, name);
}

// "step-0000040000.safetensors" -> 40000, anything else -> -1.
static int64_t step_of(const char *name) {
    char *end;
    if (strncmp(name, "step-", 5) != 0 || name[5] < '0' || name[5] > '9') return -1;
    long long step = strtoll(name + 5, &end, 10);
    return strcmp(end, ".safetensors") == 0 ? step : -1;
}

static int newest_first(const void *x, const void *y) {
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
    return a < b ? 1 : a > b ? -1 : 0;
}

dc_status dc_folder_checkpoints(const char *folder, int64_t **steps, int *count) {
    *steps = NULL;
    *count = 0;
    DIR *dir = opendir(folder);
    if (!dir) return dc_fail(DC_IO, "check the path and its permissions", "cannot open folder %s (%s)", folder, strerror(errno));
    int room = 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        int64_t step = step_of(entry->d_name);
        if (step < 0) continue;
        if (*count == room) {
            room = room ? room * 2 : 16;
            int64_t *more = realloc(*steps, (size_t)room * sizeof *more);
            if (!more) {
                free(*steps);
                *steps = NULL;
                closedir(dir);
                return dc_fail(DC_NO_MEMORY, NULL, "no memory to list %s", folder);
            }
            *steps = more;
        }
        (*steps)[(*count)++] = step;
    }
    closedir(dir);
    if (*count) qsort(*steps, (size_t)*count, sizeof **steps, newest_first);
    return DC_OK;
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
    dc_text_add(&text, ",\n  \"data_hash\": \"%016" PRIx64 "\",\n  \"build\": \"%s\"\n}\n", run->data->hash, DCRL_BUILD);
    dc_status status = dc_text_status(&text);
    if (status == DC_OK) status = dc_file_write(path, text.bytes, text.used);
    dc_text_fini(&text);
    return status;
}

static dc_status put(int fd, const char *path, const char *line, size_t n) {
    while (n > 0) {
        ssize_t done = dc_file_system.write(fd, line, n);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return dc_fail(DC_IO, "free some space, then --resume", "cannot write %s (%s)", path, strerror(errno));
        line += done;
        n -= (size_t)done;
    }
    return DC_OK;
}

// Length of the leading part of a CSV that holds the header and complete rows up to `step`.
static size_t rows_until(const char *bytes, size_t n, int64_t step) {
    size_t good = 0;
    for (size_t at = 0; at < n;) {
        const char *end = memchr(bytes + at, '\n', n - at);
        if (!end) break;
        if (at > 0 && strtoll(bytes + at, NULL, 10) > step) break;
        at = good = (size_t)(end - bytes) + 1;
    }
    return good;
}

// Open a CSV for appending, without the rows of steps that will be done again.
static dc_status open_csv(const char *folder, const char *name, const char *header, int64_t step, int *fd) {
    char path[DC_PATH_MAX];
    DC_TRY(dc_folder_path(path, folder, name));
    if (dc_file_exists(path)) {
        char *bytes;
        size_t n;
        DC_TRY(dc_file_read(path, (size_t)1 << 32, &bytes, &n));
        size_t good = rows_until(bytes, n, step);
        dc_status status = good == 0 ? dc_file_write(path, header, strlen(header))
                           : good < n ? dc_file_write(path, bytes, good)
                                      : DC_OK;
        free(bytes);
        DC_TRY(status);
    } else {
        DC_TRY(dc_file_write(path, header, strlen(header)));
    }
    *fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (*fd < 0) return dc_fail(DC_IO, "check its permissions", "cannot open %s (%s)", path, strerror(errno));
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
        status = open_csv(run->folder, "timing.csv", "step,seconds,steps_per_second\n", step, &run->timing);
    return status;
}

dc_status dc_folder_log(dc_run *run, double seconds, double rate) {
    char line[64 + 32 * (DC_METRICS_MAX + 2)];
    int n = snprintf(line, sizeof line, "%" PRId64, run->step);
    for (int i = 0; i < dc_run_metric_count(run); i++)
        n += snprintf(line + n, sizeof line - (size_t)n, ",%.9g", run->last[i]);
    n += snprintf(line + n, sizeof line - (size_t)n, "\n");
    DC_TRY(put(run->csv, "train.csv", line, (size_t)n));
    n = snprintf(line, sizeof line, "%" PRId64 ",%.3f,%.1f\n", run->step, seconds, rate);
    return put(run->timing, "timing.csv", line, (size_t)n);
}

dc_status dc_folder_sync_logs(dc_run *run) {
    if (run->csv >= 0 && dc_file_system.fsync(run->csv) != 0)
        return dc_fail(DC_IO, "check the disk, then --resume", "cannot sync %s/train.csv (%s)", run->folder, strerror(errno));
    return DC_OK;
}

void dc_folder_close_logs(dc_run *run) {
    if (run->csv >= 0) close(run->csv);
    if (run->timing >= 0) close(run->timing);
    run->csv = run->timing = -1;
}
