// Episodes are played in batches. While one is played, one thread packs the batch before into the
// file, and puts it aside as it is (a part), so that neither costs time of its own.
#include "gen_set.h"

#include "ranks.h"
#include "runs.h"

#include "base/arena.h"
#include "base/build.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "data/npz.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Episodes; zlib's level, numpy's own; bytes.
enum { BATCH = 128, VISUAL_BATCH = 32, LEVEL = 6, FACTS_MAX = 1 << 16, PATH = DC_TEXT_MAX + 64 };
enum { PART_PATH = PATH + 32 };
static const double LARGE = 1e8; // bytes that are worth a word before they are written

typedef struct batch {
    int64_t first, count; // episodes
    bool kept;            // its part is there
} batch;

// An array of a file: where its rows lie in a dc_gen_rows, and what they are.
typedef struct column {
    const char *name;
    dc_dtype type;
    int width; // numbers of a row; 0: one, and no dimension of its own
    size_t at; // offset of the pointer
    bool trace;
} column;
enum { COLUMNS_MAX = 16, FILES_MAX = 2 * 999 };

typedef struct maker {
    gen_set *set;
    const dc_env_spec *spec;
    const dc_env_family *family;
    int batch; // episodes
    int column_count;
    column columns[COLUMNS_MAX]; // in the order of files and of parts
    dc_pool *pool;
    dc_arena arena;      // owns rows
    dc_gen_rows rows[2]; // (a batch of episodes) being played, being packed
    // The file being made:
    dc_npz_writer *file, *trace; // Nullable: trace
    int array[COLUMNS_MAX];      // number of each column there
    const char *path;
    int64_t first; // episode
    bool keeps;    // parts
    batch waiting; // is to be packed, of rows[1]
    // Progress:
    int64_t all;       // episodes of what is missing
    int64_t largest;   // of a file
    double need, most; // bytes of disk for it: likely, and if nothing could be packed
    bool missing[FILES_MAX];
    _Atomic int64_t made; // so far
    atomic_flag showing;
    cli_line line;
    double start, shown;
} maker;

// ---- rows ----

static void list_columns(maker *m) {
    const dc_env_family *f = m->family;
    bool trace = m->set->trace[0] != 0;
    const column all[] = {
        {"observations", DC_F4, f->obs, offsetof(dc_gen_rows, obs), false},
        {"observations", DC_U1, DC_VISUAL_OBS, offsetof(dc_gen_rows, pictures), false},
        {"actions", DC_F4, f->act, offsetof(dc_gen_rows, act), false},
        {"terminals", DC_B1, 0, offsetof(dc_gen_rows, terminals), false},
        {"qpos", DC_F4, f->nq, offsetof(dc_gen_rows, qpos), false},
        {"qvel", DC_F4, f->nv, offsetof(dc_gen_rows, qvel), false},
        {dc_env_extra_facts(f)->name, DC_I8, f->extra, offsetof(dc_gen_rows, extra), false},
        {"qpos", DC_F8, f->nq, offsetof(dc_gen_rows, exact), true},
        {"actions", DC_F8, f->act, offsetof(dc_gen_rows, exact_act), true},
        {"aim", DC_U1, 0, offsetof(dc_gen_rows, aim), true},
        {"success", DC_B1, 0, offsetof(dc_gen_rows, success), true},
        {"ended", DC_B1, 0, offsetof(dc_gen_rows, ended), true},
    };
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) {
        size_t other =
            m->spec->visual ? offsetof(dc_gen_rows, obs) : offsetof(dc_gen_rows, pictures);
        bool absent =
            (all[k].at == offsetof(dc_gen_rows, extra) && !f->extra) || all[k].at == other;
        if (!absent && (trace || !all[k].trace)) m->columns[m->column_count++] = all[k];
    }
}

static size_t row_bytes(const column *c) {
    return dc_dtype_size(c->type) * (size_t)(c->width ? c->width : 1);
}

static void *rows_of(const dc_gen_rows *r, const column *c) {
    void *rows;
    memcpy(&rows, (const char *)r + c->at, sizeof rows);
    return rows;
}

static dc_status take_rows(maker *m, dc_gen_rows *r) {
    size_t n = (size_t)((m->largest < m->batch ? m->largest : m->batch) * m->set->gen.rows);
    for (int k = 0; k < m->column_count; k++) {
        void *rows = dc_arena_take(&m->arena, n * row_bytes(&m->columns[k]));
        if (!rows) return DC_NO_MEMORY;
        memcpy((char *)r + m->columns[k].at, &rows, sizeof rows);
    }
    return DC_OK;
}

// ---- a file ----

static dc_status open_file(maker *m, const char *path, bool trace) {
    DC_TRY(dc_npz_writer_new(&m->file, path, LEVEL));
    if (trace) DC_TRY(dc_npz_writer_new(&m->trace, m->set->trace, LEVEL));
    for (int k = 0; k < m->column_count; k++) {
        const column *c = &m->columns[k];
        dc_npz_writer *w = c->trace ? m->trace : m->file;
        bool picture = c->at == offsetof(dc_gen_rows, pictures);
        const int64_t *shape =
            picture ? (int64_t[]){DC_VISUAL_SIDE, DC_VISUAL_SIDE, 3} : (int64_t[]){c->width};
        int ndim = picture ? 3 : c->width ? 1 : 0;
        if (w) DC_TRY(dc_npz_writer_add(w, c->name, c->type, ndim, shape, &m->array[k]));
    }
    return DC_OK;
}

static dc_status append(const maker *m, int64_t n) {
    for (int k = 0; k < m->column_count; k++) {
        const column *c = &m->columns[k];
        dc_npz_writer *w = c->trace ? m->trace : m->file;
        if (w) DC_TRY(dc_npz_writer_append(w, m->array[k], rows_of(&m->rows[1], c), n));
    }
    return DC_OK;
}

// ---- parts ----

// Of what a set is made, in one line; it stands in STEM.gen.json and at the head of every part.
static void add_facts(const gen_set *s, dc_text *out) {
    dc_text_add(out, "{\"env\": \"%s\", \"type\": \"%s\", \"seed\": %" PRIu64, s->env,
                dc_data_word(s->gen.kind), s->gen.seed);
    dc_text_add(out, ", \"episodes\": %" PRId64 ", \"rows\": %" PRId64 ", \"shards\": %d",
                s->episodes, s->gen.rows, s->shards);
    for (int k = 0; s->gen.experts && k < s->gen.experts->count; k++) {
        const dc_expert *e = &s->gen.experts->of[k];
        dc_text_add(out, "%s\"%s\": \"%s\"", k ? ", " : ", \"experts\": {",
                    dc_expert_facts_of(e->kind)->name, e->hash);
    }
    dc_text_add(out, s->gen.experts && s->gen.experts->count ? "}}\n" : "}\n");
}

// The hash is that of the rows, array after array, each with the one before as its seed.
static dc_status part_head(const maker *m, const batch *b, uint64_t hash, dc_text *out) {
    add_facts(m->set, out);
    dc_text_add(out, "{\"first\": %" PRId64 ", \"count\": %" PRId64, b->first, b->count);
    dc_text_add(out, ", \"hash\": \"%016" PRIx64 "\"}\n", hash);
    return dc_text_status(out);
}

// Bytes of an array of a batch.
static size_t part_bytes(const maker *m, const batch *b, int array) {
    return (size_t)(b->count * m->set->gen.rows) * row_bytes(&m->columns[array]);
}

static uint64_t hash_rows(const maker *m, const batch *b, const dc_gen_rows *rows) {
    uint64_t hash = 0;
    for (int k = 0; k < m->column_count; k++)
        hash = dc_hash(rows_of(rows, &m->columns[k]), part_bytes(m, b, k), hash);
    return hash;
}

// Where the batch lies that begins with this episode of a file.
static void part_path(const maker *m, const char *file, int64_t episode, char path[PART_PATH]) {
    snprintf(path, PART_PATH, "%s.part-%04" PRId64, file, episode / m->batch);
}

static dc_status keep(const maker *m, const batch *b) {
    char path[PART_PATH];
    dc_text head;
    dc_save save;
    part_path(m, m->path, b->first - m->first, path);
    dc_text_init(&head);
    dc_status status = part_head(m, b, hash_rows(m, b, &m->rows[1]), &head);
    if (status == DC_OK) status = dc_save_open_inside(&save, path);
    if (status == DC_OK) {
        dc_save_write(&save, head.bytes, head.used); // a failure sticks
        for (int k = 0; k < m->column_count; k++)
            dc_save_write(&save, rows_of(&m->rows[1], &m->columns[k]), part_bytes(m, b, k));
        status = dc_save_commit(&save);
    }
    dc_text_fini(&head);
    return status;
}

// Rows of a part into rows[0]; false if it is not the one, or not whole.
static dc_status copy_part(const maker *m, const batch *b, const dc_map *map, bool *whole) {
    dc_text head;
    size_t size = 0;
    for (int k = 0; k < m->column_count; k++)
        size += part_bytes(m, b, k);
    *whole = map->size > size;
    if (!*whole) return DC_OK;
    size_t at = map->size - size; // what stands before the rows is compared in the end
    for (int k = 0; k < m->column_count; k++) {
        memcpy(rows_of(&m->rows[0], &m->columns[k]), map->bytes + at, part_bytes(m, b, k));
        at += part_bytes(m, b, k);
    }
    dc_text_init(&head);
    dc_status status = part_head(m, b, hash_rows(m, b, &m->rows[0]), &head);
    *whole = status == DC_OK && map->size - size == head.used &&
             memcmp(map->bytes, head.bytes, head.used) == 0;
    dc_text_fini(&head);
    return status;
}

static dc_status recall(const maker *m, batch *b) {
    char path[PART_PATH];
    dc_map map;
    part_path(m, m->path, b->first - m->first, path);
    b->kept = false;
    bool exists = false;
    if (m->keeps) DC_TRY(dc_file_find(path, &exists));
    if (!exists) return DC_OK;
    DC_TRY(dc_map_open_inside(&map, path));
    dc_status status = copy_part(m, b, &map, &b->kept);
    dc_map_close(&map);
    if (status == DC_OK && !b->kept)
        dc_log(DC_WARN, "%s is damaged or of another build: its episodes are made anew", path);
    return status;
}

static void drop_parts(const maker *m, const char *file, int64_t count) {
    char path[PART_PATH];
    for (int64_t done = 0; done < count; done += m->batch) {
        part_path(m, file, done, path);
        unlink(path);
    }
}

// Episodes of parts that are there.
static int64_t count_kept(const maker *m, const char *file, int64_t count) {
    char path[PART_PATH];
    int64_t kept = 0;
    for (int64_t done = 0; done < count; done += m->batch) {
        part_path(m, file, done, path);
        bool exists;
        if (dc_file_find(path, &exists) == DC_OK && exists)
            kept += count - done < m->batch ? count - done : m->batch;
    }
    return kept;
}

// ---- rows into a file ----

// Pack the rows that wait. Called beside the playing of others.
static dc_status pack(void *ctx) {
    maker *m = ctx;
    batch b = m->waiting;
    m->waiting.count = 0;
    if (!b.count) return DC_OK;
    if (m->keeps && !b.kept) DC_TRY(keep(m, &b));
    return append(m, b.count * m->set->gen.rows);
}

// The rows of a batch into rows[0], from its part or by playing, and those before it into the file.
static dc_status make_batch(maker *m, batch *b) {
    DC_TRY(recall(m, b));
    if (!b->kept) return dc_gen_play(&m->set->gen, b->first, b->count, &m->rows[0], m->pool);
    m->all -= b->count;
    return pack(m);
}

static dc_status make_rows(maker *m, int64_t count) {
    for (int64_t done = 0; done < count; done += m->batch) {
        batch b = {.first = m->first + done,
                   .count = count - done < m->batch ? count - done : m->batch};
        DC_TRY(make_batch(m, &b));
        dc_gen_rows made = m->rows[0];
        m->rows[0] = m->rows[1];
        m->rows[1] = made;
        m->waiting = b;
    }
    DC_TRY(pack(m));
    if (m->trace) DC_TRY(dc_npz_writer_save(m->trace));
    DC_TRY(dc_npz_writer_save(m->file));
    if (m->keeps) drop_parts(m, m->path, count);
    return DC_OK;
}

// Episodes first ... first + count - 1 as a file.
static dc_status make_file(maker *m, const char *path, int64_t first, int64_t count) {
    bool trace = m->set->trace[0] && first == 0; // of the first file
    m->path = path;
    m->first = first;
    m->waiting.count = 0;
    dc_status status = open_file(m, path, trace);
    if (status == DC_OK) status = make_rows(m, count);
    dc_npz_writer_free(m->file);
    dc_npz_writer_free(m->trace);
    m->file = m->trace = NULL;
    return status;
}

// ---- progress ----

static void show(maker *m) {
    char bar[21] = "....................", text[160], left[32];
    int64_t made = atomic_load(&m->made) * dc_ranks_count(cli_ranks); // of others it is a guess
    if (made > m->all) made = m->all;
    double seconds = dc_now() - m->start, part = (double)made / (double)m->all;
    memset(bar, '#', (size_t)(part * 20));
    snprintf(text, sizeof text,
             "[%s] %3.0f%%  %" PRId64 "/%" PRId64 " episodes  %.0f rows/s  ETA %s", bar, part * 100,
             made, m->all, (double)(made * m->set->gen.rows) / seconds,
             cli_duration(seconds / part - seconds, left));
    cli_line_show(&m->line, text);
}

static bool progress(void *ctx) {
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
    char path[PATH];
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

// Whether what is there stays as it is: sets that take long.
static bool lasts(const gen_set *s) {
    return dc_gen_is_slow(dc_world_spec(s->gen.world)->family) || s->shards > 1;
}

// Whether what is there is gone on with; not by what tests ask for.
static bool goes_on(const gen_set *s) {
    return lasts(s) && !s->gen.draws && !s->trace[0];
}

static dc_status find_missing(const gen_set *s, const part *p, bool *missing) {
    bool exists = false;
    if (p->count > 0 && goes_on(s)) DC_TRY(dc_file_find(p->path, &exists));
    *missing = p->count > 0 && !exists;
    return DC_OK;
}

static dc_status check_file(const char *path) {
    bool exists;
    DC_TRY(dc_file_find(path, &exists));
    if (!exists) return DC_OK;
    return dc_fail(DC_BAD_INPUT, "remove it, or choose another name",
                   "a file of that name is there (%s)", path);
}

// Files whose origin is unknown are not replaced. Of what is made anew only the name that the user wrote may be a link.
static dc_status check_absent(const gen_set *s) {
    for (int k = 0; k < 2 * s->shards; k++) {
        part p = part_of(s, k / 2, k % 2);
        bool theirs = s->named && s->shards == 1 && k == 0;
        if (p.count && lasts(s)) DC_TRY(check_file(p.path));
        if (p.count && !theirs) DC_TRY(dc_file_inside(p.path));
    }
    return DC_OK;
}

// The build that began the set stands in a line of its own: episodes of two builds may be mixed, with a warning.
static void tell_build(const char *path, const char *line, const char *ours) {
    char theirs[128];
    if (strcmp(line, ours) == 0 || sscanf(line, "{\"build\": \"%127[^\"]", theirs) != 1) return;
    dc_log(DC_WARN, "%s was begun by build %s, this is %s: episodes may differ from what that made",
           path, theirs, dc_build_id());
}

static void name_facts(const gen_set *s, char path[PATH]) {
    snprintf(path, PATH, "%s.gen.json", s->stem);
}

static dc_status list_facts(const gen_set *s, dc_text *out) {
    add_facts(s, out);
    dc_text_add(out, "{\"build\": \"%s\"}\n", dc_build_id());
    return dc_text_status(out);
}

// What is there must be of the same set.
static dc_status check_facts(const char *path, const dc_text *ours) {
    char *bytes;
    size_t n, line = strcspn(ours->bytes, "\n") + 1;
    DC_TRY(dc_file_read_inside(path, FACTS_MAX, &bytes, &n));
    bool same = n >= line && !memcmp(bytes, ours->bytes, line);
    if (same) tell_build(path, bytes + line, ours->bytes + line);
    free(bytes);
    if (same) return DC_OK;
    return dc_fail(DC_BAD_INPUT,
                   "give the options of that file, remove it to make all anew, or choose another "
                   "name",
                   "another set was begun there (%s)", path);
}

static dc_status check_begun(const gen_set *s) {
    char path[PATH];
    dc_text text;
    bool exists;
    name_facts(s, path);
    // What is not gone on with must not come among files that this one vouches for, either.
    if (!goes_on(s)) DC_TRY(check_file(path));
    DC_TRY(dc_file_find(path, &exists));
    if (!exists) return check_absent(s);
    dc_text_init(&text);
    dc_status status = list_facts(s, &text);
    if (status == DC_OK) status = check_facts(path, &text);
    dc_text_fini(&text);
    return status;
}

static dc_status begin(const gen_set *s) {
    char path[PATH];
    dc_text text;
    name_facts(s, path);
    bool exists;
    DC_TRY(dc_file_find(path, &exists));
    if (!goes_on(s) || exists) return DC_OK;
    dc_text_init(&text);
    dc_status status = list_facts(s, &text);
    if (status == DC_OK) status = dc_file_write_inside(path, text.bytes, text.used);
    dc_text_fini(&text);
    return status;
}

// ---- the disk ----

static void name_folder(const gen_set *s, char folder[DC_TEXT_MAX]) {
    const char *slash = strrchr(s->stem, '/');
    snprintf(folder, DC_TEXT_MAX, "%.*s", slash ? (int)(slash - s->stem) + 1 : 1,
             slash ? s->stem : ".");
}

// How much is missing, and the disk for it: for all of it packed, and of one file more for what it is
// put together from and for its parts, less those that are there.
static dc_status look(maker *m) {
    const gen_set *s = m->set;
    int64_t kept = 0;
    DC_CHECK(2 * s->shards <= FILES_MAX);
    for (int k = 0; k < 2 * s->shards; k++) {
        part p = part_of(s, k / 2, k % 2);
        DC_TRY(find_missing(s, &p, &m->missing[k]));
        if (!m->missing[k]) continue;
        if (m->keeps) kept += count_kept(m, p.path, p.count);
        m->all += p.count;
        m->largest = p.count > m->largest ? p.count : m->largest;
    }
    double rows = (double)s->gen.rows, row = (double)dc_gen_row_bytes(m->spec);
    double raw = m->keeps && m->largest > kept ? (double)(m->largest - kept) * row * rows : 0;
    double twice = (double)(m->all + m->largest) * rows; // rows in files and in what makes one
    m->need = twice * dc_gen_packed_bytes(m->spec) + raw;
    m->most = twice * row + raw;
    return DC_OK;
}

// Say what is needed, then whether it is there: too little is refused, what may not suffice is a warning.
static dc_status check_room(const maker *m) {
    char folder[DC_TEXT_MAX];
    name_folder(m->set, folder);
    double room = (double)dc_folder_free(folder);
    if (m->need > room)
        return dc_fail(DC_IO, "free some space on that disk or choose another",
                       "about %.1f GB are needed but only %.1f GB are free (%s)", m->need / 1e9,
                       room / 1e9, folder);
    if (m->need > LARGE && !m->set->quiet)
        fprintf(stderr, "%" PRId64 " episodes, %.3g million rows: about %.1f GB of disk\n", m->all,
                (double)(m->all * m->set->gen.rows) / 1e6, m->need / 1e9);
    if (m->most > room)
        dc_log(DC_WARN, "%.1f GB are free (%s): too little if rows pack badly (%.1f GB at most)",
               room / 1e9, folder, m->most / 1e9);
    return DC_OK;
}

// ---- what a kill left ----

// Unfinished files of this set (STEM*.tmp.PID.N) whose process is no more; another may be at work.
static void drop_unfinished(const gen_set *s) {
    char folder[DC_TEXT_MAX];
    name_folder(s, folder);
    const char *slash = strrchr(s->stem, '/'), *name = slash ? slash + 1 : s->stem;
    size_t n = strlen(name);
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        long pid = dc_save_owner(e->d_name);
        bool ours = !strncmp(e->d_name, name, n) && (e->d_name[n] == '-' || e->d_name[n] == '.');
        if (pid && ours && kill((pid_t)pid, 0) != 0 && errno == ESRCH)
            unlinkat(dirfd(dir), e->d_name, 0);
    }
    if (dir) closedir(dir);
}

// Also parts of files that are there: their maker came as far as that.
static void drop_leftovers(const maker *m) {
    const gen_set *s = m->set;
    bool missing;
    drop_unfinished(s);
    for (int k = 0; m->keeps && k < 2 * s->shards; k++) {
        part p = part_of(s, k / 2, k % 2);
        if (find_missing(s, &p, &missing) == DC_OK && !missing) drop_parts(m, p.path, p.count);
    }
}

// ---- all of them ----

// For --json: a file of the set, whether made now or there before.
static void tell_file(const gen_set *s, const part *p, bool val, bool made) {
    dc_text *out = s->files;
    if (!out || !p->count) return;
    dc_text_add(out, "%s{\"path\": ", out->used ? ", " : "");
    dc_json_quote(out, p->path);
    dc_text_add(out, ", \"episodes\": %" PRId64 ", \"rows\": %" PRId64, p->count,
                p->count * s->gen.rows);
    dc_text_add(out, ", \"validation\": %s, \"made\": %s}", val ? "true" : "false",
                made ? "true" : "false");
}

static bool is_ours(int number) {
    return number % dc_ranks_count(cli_ranks) == dc_ranks_rank(cli_ranks);
}

// Shards go round the ranks, or the two files of one. All are told by the first rank.
static bool file_is_ours(const gen_set *s, int number) {
    return is_ours(s->shards > 1 ? number / 2 : number);
}

static dc_status make_missing(maker *m) {
    const gen_set *s = m->set;
    for (int k = 0; k < 2 * s->shards; k++) {
        part p = part_of(s, k / 2, k % 2);
        bool missing = m->missing[k];
        if (missing && file_is_ours(s, k)) DC_TRY(make_file(m, p.path, p.first, p.count));
        cli_line_clear(&m->line);
        tell_file(s, &p, k % 2, missing);
        if (!missing || s->quiet) continue;
        printf("wrote %s: %" PRId64 " episodes of %" PRId64 " rows%s\n", p.path, p.count,
               s->gen.rows, k % 2 ? ", for validation" : "");
    }
    return DC_OK;
}

// The batches of a file that are this rank's, from number *batch on, each as a part.
static dc_status play_parts(maker *m, const part *p, int *number) {
    m->path = p->path;
    m->first = p->first;
    for (int64_t done = 0; done < p->count; done += m->batch) {
        int64_t left = p->count - done;
        batch b = {.first = p->first + done, .count = left < m->batch ? left : m->batch};
        if (!is_ours((*number)++)) continue;
        DC_TRY(make_batch(m, &b));
        dc_gen_rows made = m->rows[0];
        m->rows[0] = m->rows[1];
        m->rows[1] = made;
        if (!b.kept) DC_TRY(keep(m, &b));
    }
    return DC_OK;
}

// Where there are fewer shards than ranks: every rank plays a part of each file's episodes, and puts them aside for the
// one that writes it.
static dc_status play_together(maker *m) {
    const gen_set *s = m->set;
    int number = 0;
    if (!m->keeps || s->shards >= dc_ranks_count(cli_ranks)) return DC_OK;
    for (int k = 0; k < 2 * s->shards; k++) {
        part p = part_of(s, k / 2, k % 2);
        dc_status status = m->missing[k] ? play_parts(m, &p, &number) : DC_OK;
        m->path = NULL;
        DC_TRY(status);
    }
    return DC_OK;
}

// Ranks wait for each other, and stop together.
static dc_status all_ranks(dc_status status) {
    if (status != DC_OK && status != DC_INTERRUPTED) return status;
    bool stop = dc_ranks_any(cli_ranks, status == DC_INTERRUPTED);
    return stop ? DC_INTERRUPTED : DC_OK;
}

static dc_status make_all(maker *m) {
    if (cli_ranks) DC_TRY(all_ranks(play_together(m)));
    return all_ranks(make_missing(m));
}

static dc_status stopped(const gen_set *s) {
    if (goes_on(s)) return dc_fail(DC_INTERRUPTED, "the same command goes on", "stopped");
    return dc_fail(DC_INTERRUPTED, NULL, "stopped; an unfinished file is not kept");
}

// What is there and what is needed. The first rank does so while the others wait, as it also clears what a kill left.
static dc_status look_first(maker *m) {
    const gen_set *s = m->set;
    if (cli_ranks_leads()) {
        DC_TRY(check_begun(s));
        drop_leftovers(m);
        DC_TRY(look(m));
        if (m->all) DC_TRY(check_room(m));
        if (m->all) DC_TRY(begin(s));
    }
    cli_ranks_wait();
    if (!cli_ranks_leads()) DC_TRY(look(m));
    cli_ranks_wait(); // nobody makes a file before all have looked
    return DC_OK;
}

static dc_status make_set(maker *m) {
    gen_set *s = m->set;
    m->keeps = goes_on(s) && dc_gen_is_slow(m->family);
    DC_TRY(look_first(m));
    if (!m->all && !s->quiet) printf("nothing to do: %s is there, all of it\n", s->stem);
    if (!m->all) return make_missing(m);
    list_columns(m);
    DC_TRY(take_rows(m, &m->rows[0]));
    DC_TRY(take_rows(m, &m->rows[1]));
    DC_TRY(dc_pool_new(&m->pool, s->threads ? s->threads : dc_ranks_cores(cli_ranks)));
    cli_catch_signals();
    cli_line_init(&m->line);
    m->line.quiet = s->quiet;
    m->start = dc_now();
    s->gen.progress = progress;
    s->gen.aside = pack;
    s->gen.ctx = m;
    dc_status status = make_all(m);
    cli_line_clear(&m->line);
    return status == DC_INTERRUPTED ? stopped(s) : status;
}

dc_status gen_set_make(gen_set *set) {
    const dc_env_spec *spec = dc_world_spec(set->gen.world);
    maker m = {.set = set, .spec = spec, .family = spec->family, .showing = ATOMIC_FLAG_INIT};
    m.batch = spec->visual ? VISUAL_BATCH : BATCH;
    dc_arena_init(&m.arena, 0);
    dc_status status = make_set(&m);
    dc_pool_free(m.pool);
    dc_arena_fini(&m.arena);
    return status;
}
