// Episodes are played in batches. While one is played, one thread packs the batch before into the
// file, so that packing costs no time of its own.
#include "gen_set.h"

#include "runs.h"

#include "base/arena.h"
#include "base/json.h"
#include "data/npz.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BATCH = 128, LEVEL = 6, MANIFEST_MAX = 1 << 16 }; // episodes; zlib's level, numpy's own
enum { OBS, ACT, TERMINALS, QPOS, QVEL, BUTTONS, EXACT, AIM, SUCCESS, ENDED, ARRAYS };
static const double LARGE = 1e9; // bytes that are worth a word before they are written

typedef struct maker {
    gen_set *set;
    const dc_env_family *family;
    dc_pool *pool;
    dc_arena arena;      // owns rows
    dc_gen_rows rows[2]; // (BATCH episodes) being played, being packed
    // The file being made:
    dc_npz_writer *file, *trace; // Nullable: trace
    int array[ARRAYS];
    int64_t waiting; // rows that are to be packed, of rows[1]
    // Progress:
    int64_t all;          // episodes of what is missing
    _Atomic int64_t made; // so far
    atomic_flag showing;
    cli_line line;
    double start, shown;
} maker;

// ---- rows ----

static void *take(maker *m, size_t each, bool wanted) {
    size_t n = (size_t)(BATCH * m->set->gen.rows);
    return wanted ? dc_arena_take(&m->arena, n * each) : NULL;
}

static dc_status take_rows(maker *m, dc_gen_rows *r) {
    const dc_env_family *f = m->family;
    bool trace = m->set->trace[0] != 0;
    r->obs = take(m, (size_t)f->obs * sizeof *r->obs, true);
    r->act = take(m, (size_t)f->act * sizeof *r->act, true);
    r->qpos = take(m, (size_t)f->nq * sizeof *r->qpos, true);
    r->qvel = take(m, (size_t)f->nv * sizeof *r->qvel, true);
    r->terminals = take(m, 1, true);
    r->buttons = take(m, (size_t)f->buttons * sizeof *r->buttons, f->buttons > 0);
    r->exact = take(m, (size_t)f->nq * sizeof *r->exact, trace);
    r->aim = take(m, 1, trace);
    r->success = take(m, 1, trace);
    r->ended = take(m, 1, trace);
    bool all = r->obs && r->act && r->qpos && r->qvel && r->terminals &&
               (r->buttons || !f->buttons) &&
               (!trace || (r->exact && r->aim && r->success && r->ended));
    return all ? DC_OK : DC_NO_MEMORY;
}

// ---- a file ----

static dc_status add(dc_npz_writer *w, const char *name, dc_dtype type, int width, int *array) {
    return dc_npz_writer_add(w, name, type, width ? 1 : 0, (int64_t[]){width}, array);
}

static dc_status open_file(maker *m, const char *path) {
    const dc_env_family *f = m->family;
    int *a = m->array;
    DC_TRY(dc_npz_writer_new(&m->file, path, LEVEL));
    DC_TRY(add(m->file, "observations", DC_F4, f->obs, &a[OBS]));
    DC_TRY(add(m->file, "actions", DC_F4, f->act, &a[ACT]));
    DC_TRY(add(m->file, "terminals", DC_B1, 0, &a[TERMINALS]));
    DC_TRY(add(m->file, "qpos", DC_F4, f->nq, &a[QPOS]));
    DC_TRY(add(m->file, "qvel", DC_F4, f->nv, &a[QVEL]));
    return f->buttons ? add(m->file, "button_states", DC_I8, f->buttons, &a[BUTTONS]) : DC_OK;
}

static dc_status open_trace(maker *m) {
    int *a = m->array;
    DC_TRY(dc_npz_writer_new(&m->trace, m->set->trace, LEVEL));
    DC_TRY(add(m->trace, "qpos", DC_F8, m->family->nq, &a[EXACT]));
    DC_TRY(add(m->trace, "aim", DC_U1, 0, &a[AIM]));
    DC_TRY(add(m->trace, "success", DC_B1, 0, &a[SUCCESS]));
    return add(m->trace, "ended", DC_B1, 0, &a[ENDED]);
}

// Pack the rows that wait. Called beside the playing of others.
static dc_status pack(void *ctx) {
    maker *m = ctx;
    const dc_gen_rows *r = &m->rows[1];
    const int *a = m->array;
    int64_t n = m->waiting;
    m->waiting = 0;
    if (!n) return DC_OK;
    DC_TRY(dc_npz_writer_append(m->file, a[OBS], r->obs, n));
    DC_TRY(dc_npz_writer_append(m->file, a[ACT], r->act, n));
    DC_TRY(dc_npz_writer_append(m->file, a[TERMINALS], r->terminals, n));
    DC_TRY(dc_npz_writer_append(m->file, a[QPOS], r->qpos, n));
    DC_TRY(dc_npz_writer_append(m->file, a[QVEL], r->qvel, n));
    if (r->buttons) DC_TRY(dc_npz_writer_append(m->file, a[BUTTONS], r->buttons, n));
    if (!m->trace) return DC_OK;
    DC_TRY(dc_npz_writer_append(m->trace, a[EXACT], r->exact, n));
    DC_TRY(dc_npz_writer_append(m->trace, a[AIM], r->aim, n));
    DC_TRY(dc_npz_writer_append(m->trace, a[SUCCESS], r->success, n));
    return dc_npz_writer_append(m->trace, a[ENDED], r->ended, n);
}

static dc_status make_rows(maker *m, int64_t first, int64_t count) {
    for (int64_t done = 0, part; done < count; done += part) {
        part = count - done < BATCH ? count - done : BATCH;
        DC_TRY(dc_gen_play(&m->set->gen, first + done, part, &m->rows[0], m->pool));
        dc_gen_rows played = m->rows[0];
        m->rows[0] = m->rows[1];
        m->rows[1] = played;
        m->waiting = part * m->set->gen.rows;
    }
    DC_TRY(pack(m));
    if (m->trace) DC_TRY(dc_npz_writer_save(m->trace));
    return dc_npz_writer_save(m->file);
}

// Episodes first ... first + count - 1 as a file.
static dc_status make_file(maker *m, const char *path, int64_t first, int64_t count) {
    bool trace = m->set->trace[0] && first == 0; // of the first file
    m->waiting = 0;
    dc_status status = open_file(m, path);
    if (status == DC_OK && trace) status = open_trace(m);
    if (status == DC_OK) status = make_rows(m, first, count);
    dc_npz_writer_free(m->file);
    dc_npz_writer_free(m->trace);
    m->file = m->trace = NULL;
    return status;
}

// ---- progress ----

static void show(maker *m) {
    char bar[21] = "....................", text[160], left[32];
    int64_t made = atomic_load(&m->made);
    double seconds = dc_now() - m->start, part = (double)made / (double)m->all;
    memset(bar, '#', (size_t)(part * 20));
    snprintf(text, sizeof text,
             "[%s] %3.0f%%  %" PRId64 "/%" PRId64 " episodes  %.0f rows/s  ETA %s", bar, part * 100,
             made, m->all, (double)(made * m->set->gen.rows) / seconds,
             cli_duration(seconds / part - seconds, left));
    cli_line_show(&m->line, text);
}

static bool tell(void *ctx) {
    maker *m = ctx;
    atomic_fetch_add(&m->made, 1);
    if (!atomic_flag_test_and_set(&m->showing)) { // else another thread is at it
        double now = dc_now();
        if (now - m->shown > 0.1) {
            m->shown = now;
            show(m);
        }
        atomic_flag_clear(&m->showing);
    }
    return !atomic_load(&cli_stop);
}

// ---- which files ----

typedef struct part {
    char path[DC_TEXT_MAX + 64];
    int64_t first, count; // episodes
} part;

// The file of shard k, for training or for validation; episodes are numbered alike however many
// shards there are.
static part part_of(const gen_set *s, int k, bool val) {
    int64_t all = val ? s->episodes / 10 : s->episodes, first = all * k / s->shards;
    part p = {.first = first + (val ? s->episodes : 0), .count = all * (k + 1) / s->shards - first};
    const char *tail = val ? "-val" : "";
    if (s->shards > 1)
        snprintf(p.path, sizeof p.path, "%s-%03d%s.npz", s->stem, k, tail);
    else
        snprintf(p.path, sizeof p.path, "%s%s.npz", s->stem, tail);
    return p;
}

// Shards that are there stay as they are.
static bool is_missing(const gen_set *s, const part *p) {
    return p->count > 0 && (s->shards == 1 || !dc_file_exists(p->path));
}

static dc_status write_manifest(const gen_set *s, dc_text *out) {
    dc_text_add(out, "{\"env\": \"%s\", \"type\": \"%s\", \"seed\": %" PRIu64, s->env,
                dc_data_word(s->gen.kind), s->gen.seed);
    dc_text_add(out, ", \"episodes\": %" PRId64 ", \"rows\": %" PRId64 ", \"shards\": %d}\n",
                s->episodes, s->gen.rows, s->shards);
    return dc_text_status(out);
}

// What is there must be of the same set.
static dc_status check_manifest(const gen_set *s, const char *path, const dc_text *ours) {
    char *bytes;
    size_t n;
    (void)s;
    if (!dc_file_exists(path)) return dc_file_write(path, ours->bytes, ours->used);
    DC_TRY(dc_file_read(path, MANIFEST_MAX, &bytes, &n));
    bool same = n == ours->used && !memcmp(bytes, ours->bytes, n);
    free(bytes);
    if (same) return DC_OK;
    return dc_fail(DC_BAD_INPUT, "give the options it was begun with, or another folder",
                   "another set was begun there (%s)", path);
}

static dc_status begin_shards(const gen_set *s) {
    char path[DC_TEXT_MAX + 64];
    dc_text text;
    snprintf(path, sizeof path, "%s.gen.json", s->stem);
    dc_text_init(&text);
    dc_status status = write_manifest(s, &text);
    if (status == DC_OK) status = check_manifest(s, path, &text);
    dc_text_fini(&text);
    return status;
}

// How much is missing, and whether the disk has room for it: the bytes of the values, and of one
// file more while it is put together.
static dc_status look(maker *m) {
    const gen_set *s = m->set;
    int64_t largest = 0;
    char folder[DC_TEXT_MAX];
    for (int k = 0; k < 2 * s->shards; k++) {
        part p = part_of(s, k / 2, k % 2);
        if (!is_missing(s, &p)) continue;
        m->all += p.count;
        largest = p.count > largest ? p.count : largest;
    }
    double need =
        (double)(m->all + largest) * (double)s->gen.rows * (double)dc_gen_row_bytes(m->family);
    const char *slash = strrchr(s->stem, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - s->stem) + 1 : 1,
             slash ? s->stem : ".");
    double room = (double)dc_folder_free(folder);
    if (need > LARGE)
        fprintf(stderr, "%" PRId64 " episodes, %.3g million rows: up to %.1f GB of disk\n", m->all,
                (double)(m->all * s->gen.rows) / 1e6, need / 1e9);
    if (need <= room) return DC_OK;
    return dc_fail(DC_IO, "free some space on that disk or choose another",
                   "up to %.1f GB are needed but only %.1f GB are free (%s)", need / 1e9,
                   room / 1e9, folder);
}

// ---- all of them ----

static dc_status make_missing(maker *m) {
    const gen_set *s = m->set;
    for (int k = 0; k < 2 * s->shards; k++) {
        part p = part_of(s, k / 2, k % 2);
        if (!is_missing(s, &p)) continue;
        DC_TRY(make_file(m, p.path, p.first, p.count));
        cli_line_clear(&m->line);
        printf("wrote %s: %" PRId64 " episodes of %" PRId64 " rows%s\n", p.path, p.count,
               s->gen.rows, k % 2 ? ", for validation" : "");
    }
    return DC_OK;
}

static dc_status stopped(const gen_set *s) {
    if (s->shards == 1)
        return dc_fail(DC_INTERRUPTED, NULL, "stopped; an unfinished file is not kept");
    int there = 0;
    for (int k = 0; k < s->shards; k++)
        there += dc_file_exists(part_of(s, k, false).path);
    return dc_fail(DC_INTERRUPTED, "the same command goes on", "stopped; %d of %d shards are there",
                   there, s->shards);
}

static dc_status make_set(maker *m) {
    gen_set *s = m->set;
    if (s->shards > 1) DC_TRY(begin_shards(s));
    DC_TRY(look(m));
    if (!m->all) {
        printf("nothing to do: all %d shards are there (%s)\n", s->shards, s->stem);
        return DC_OK;
    }
    DC_TRY(take_rows(m, &m->rows[0]));
    DC_TRY(take_rows(m, &m->rows[1]));
    DC_TRY(dc_pool_new(&m->pool, s->threads));
    cli_catch_signals();
    cli_line_init(&m->line);
    m->start = dc_now();
    s->gen.tell = tell;
    s->gen.aside = pack;
    s->gen.ctx = m;
    dc_status status = make_missing(m);
    cli_line_clear(&m->line);
    return status == DC_INTERRUPTED ? stopped(s) : status;
}

dc_status gen_set_make(gen_set *set) {
    maker m = {
        .set = set, .family = dc_world_spec(set->gen.world)->family, .showing = ATOMIC_FLAG_INIT};
    dc_arena_init(&m.arena, 0);
    dc_status status = make_set(&m);
    dc_pool_free(m.pool);
    dc_arena_fini(&m.arena);
    return status;
}
