// Rows of eval.csv, see eval_log.h.
#include "rollout/eval_log.h"

#include "base/file.h"
#include "train/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

enum { LOG_MAX = 1 << 26 };

static const char header[] = "step,overall_success,task1_success,task2_success,task3_success,"
                             "task4_success,task5_success,episodes,seed\n";

typedef struct edit {
    int64_t step;    // of the row
    int64_t last;    // rows after this step go
    const char *row; // to put in its place; Nullable
    bool has;        // the step had a row
} edit;

// Copy complete rows, edited. All have been checked.
static void copy_rows(edit *e, const char *line, dc_text *out) {
    bool placed = !e->row;
    for (const char *end; line && (end = strchr(line, '\n')); line = end + 1) {
        int64_t at = strtoll(line, NULL, 10);
        if (at > e->last) break;
        e->has = e->has || at == e->step;
        if (!placed && at >= e->step) dc_text_add(out, "%s", e->row);
        placed = placed || at >= e->step;
        if (at != e->step || !e->row) dc_text_bytes(out, line, (size_t)(end + 1 - line));
    }
    if (!placed) dc_text_add(out, "%s", e->row);
}

// Nothing that dcrl did not write is lost by writing the file anew.
static dc_status check(const char *path, const char *old, size_t n) {
    dc_log_part part = dc_folder_log_part(old, n, header, INT64_MAX);
    if (part.bad_line == 1)
        return dc_fail(DC_BAD_INPUT, "move it away", "%s has other columns than dcrl writes", path);
    if (part.bad_line)
        return dc_fail(DC_BAD_INPUT, "repair it or move it away",
                       "%s:%d is no row that dcrl writes after the one before", path,
                       part.bad_line);
    return DC_OK;
}

static dc_status apply(edit *e, const char *path, const char *old, size_t n) {
    DC_TRY(check(path, old, n));
    dc_text out;
    dc_text_init(&out);
    dc_text_add(&out, "%s", header);
    copy_rows(e, n ? old + sizeof header - 1 : NULL, &out);
    dc_status status = dc_text_status(&out);
    bool same = old && out.used == n && !memcmp(out.bytes, old, n);
    if (status == DC_OK && !same) status = dc_file_write_inside(path, out.bytes, out.used);
    dc_text_fini(&out);
    return status;
}

// Nullable: e, to look only
static dc_status read_and_apply(const char *folder, edit *e) {
    char path[DC_PATH_MAX], *old = NULL;
    size_t n = 0;
    bool exists;
    DC_TRY(dc_folder_path(path, folder, "eval.csv"));
    DC_TRY(dc_file_find(path, &exists));
    if (exists) DC_TRY(dc_file_read_inside(path, LOG_MAX, &old, &n));
    dc_status status = e ? apply(e, path, old, n) : check(path, old, n);
    free(old);
    return status;
}

dc_status dc_eval_log_check(const char *folder) {
    DC_TRY(read_and_apply(folder, NULL));
    if (access(folder, W_OK | X_OK) == 0) return DC_OK;
    return dc_fail(DC_IO, "check its permissions", "eval.csv cannot be written into %s (%s)",
                   folder, strerror(errno));
}

// Take the lock, looking again and again, so that a stop ends the waiting. File systems that know no locks are not
// waited for.
static dc_status lock_file(int fd, const char *path, const atomic_int *stop) {
    while (flock(fd, LOCK_EX | LOCK_NB) != 0 && (errno == EWOULDBLOCK || errno == EINTR)) {
        if (stop && atomic_load(stop))
            return dc_fail(DC_INTERRUPTED, "find out with lsof who holds it",
                           "stopped while another process held the lock on %s", path);
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    return DC_OK;
}

// One process at a time, or rows of the others are lost. A process that trains holds the lock of the folder itself, so config.json stands for
// the file; where there is none, no process waits.
static dc_status rewrite(const char *folder, edit *e, const atomic_int *stop) {
    char config[DC_PATH_MAX];
    int lock = -1;
    bool exists;
    DC_TRY(dc_folder_path(config, folder, "config.json"));
    DC_TRY(dc_file_find(config, &exists));
    if (exists) DC_TRY(dc_open_inside(config, O_RDONLY, &lock));
    dc_status status = exists ? lock_file(lock, config, stop) : DC_OK;
    dc_folder_sweep(folder);
    if (status == DC_OK) status = read_and_apply(folder, e);
    if (lock >= 0) close(lock);
    return status;
}

dc_status dc_eval_log_put(const char *folder, int64_t step, uint64_t seed, const dc_eval_score *s,
                          const atomic_int *stop) {
    dc_text row;
    dc_text_init(&row);
    dc_text_add(&row, "%" PRId64 ",%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%d,%" PRIu64 "\n", step,
                s->overall, s->task[0], s->task[1], s->task[2], s->task[3], s->task[4],
                s->episodes * DC_TASKS, seed);
    dc_status status = dc_text_status(&row);
    if (status == DC_OK)
        status = rewrite(folder, &(edit){.step = step, .last = INT64_MAX, .row = row.bytes}, stop);
    dc_text_fini(&row);
    return status;
}

dc_status dc_eval_log_cut(const char *folder, int64_t step, bool *has, const atomic_int *stop) {
    edit e = {.step = step, .last = step};
    DC_TRY(rewrite(folder, &e, stop));
    *has = e.has;
    return DC_OK;
}
