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

// Copy complete rows whose steps rise, edited.
static void copy_rows(edit *e, const char *line, dc_text *out) {
    bool placed = !e->row;
    int64_t before = -1;
    for (const char *end; line && (end = strchr(line, '\n')); line = end + 1) {
        int64_t at = strtoll(line, NULL, 10);
        if (at <= before || at > e->last) break;
        before = at;
        e->has = e->has || at == e->step;
        if (!placed && at >= e->step) dc_text_add(out, "%s", e->row);
        placed = placed || at >= e->step;
        if (at != e->step || !e->row) dc_text_bytes(out, line, (size_t)(end + 1 - line));
    }
    if (!placed) dc_text_add(out, "%s", e->row);
}

static dc_status apply(edit *e, const char *path, const char *old, size_t n) {
    size_t head = sizeof header - 1;
    if (n && (n < head || memcmp(old, header, head) != 0))
        return dc_fail(DC_BAD_INPUT, "move it away", "%s has other columns than dcrl writes", path);
    dc_text out;
    dc_text_init(&out);
    dc_text_add(&out, "%s", header);
    copy_rows(e, n ? old + head : NULL, &out);
    dc_status status = dc_text_status(&out);
    bool same = old && out.used == n && !memcmp(out.bytes, old, n);
    if (status == DC_OK && !same) status = dc_file_write(path, out.bytes, out.used);
    dc_text_fini(&out);
    return status;
}

static dc_status read_and_apply(const char *folder, edit *e) {
    char path[DC_PATH_MAX], *old = NULL;
    size_t n = 0;
    DC_TRY(dc_folder_path(path, folder, "eval.csv"));
    if (dc_file_exists(path)) DC_TRY(dc_file_read(path, LOG_MAX, &old, &n));
    dc_status status = apply(e, path, old, n);
    free(old);
    return status;
}

// One process at a time, or rows of the others are lost. A process that trains holds the lock of the folder itself, so config.json stands for
// the file; where there is none, or the file system knows no locks, no process waits.
static dc_status rewrite(const char *folder, edit *e) {
    char config[DC_PATH_MAX];
    DC_TRY(dc_folder_path(config, folder, "config.json"));
    int lock = open(config, O_RDONLY | O_CLOEXEC);
    while (lock >= 0 && flock(lock, LOCK_EX) != 0 && errno == EINTR)
        ;
    dc_status status = read_and_apply(folder, e);
    if (lock >= 0) close(lock);
    return status;
}

dc_status dc_eval_log_put(const char *folder, int64_t step, uint64_t seed, const dc_eval_score *s) {
    dc_text row;
    dc_text_init(&row);
    dc_text_add(&row, "%" PRId64 ",%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%d,%" PRIu64 "\n", step,
                s->overall, s->task[0], s->task[1], s->task[2], s->task[3], s->task[4],
                s->episodes * DC_TASKS, seed);
    dc_status status = dc_text_status(&row);
    if (status == DC_OK)
        status = rewrite(folder, &(edit){.step = step, .last = INT64_MAX, .row = row.bytes});
    dc_text_fini(&row);
    return status;
}

dc_status dc_eval_log_cut(const char *folder, int64_t step, bool *has) {
    edit e = {.step = step, .last = step};
    DC_TRY(rewrite(folder, &e));
    *has = e.has;
    return DC_OK;
}
