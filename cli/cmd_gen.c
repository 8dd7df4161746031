// dcrl gen: writes the data set of an environment as npz files that OGBench's own loader takes. A
// maze's data comes in two files, for training and (a tenth as many episodes) for validation,
// NAME.npz and NAME-val.npz.
#include "args.h"
#include "cli.h"
#include "runs.h"

#include "base/arena.h"
#include "data/npz.h"
#include "env/gen.h"
#include "env/lock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: dcrl gen ENV -o FILE.npz|DIR [--type navigate|stitch] [--episodes N] [--seed S] "
    "[--threads T]\n"
    "\n"
    "Makes a data set: observations (N, ...), actions (N, ...), terminals (N), and of mazes qpos "
    "and qvel.\n"
    "A maze's data has a second file for validation, FILE-val.npz, with a tenth as many episodes.\n"
    "dcrl list envs shows the environments.\n"
    "\n"
    "example: dcrl gen lock-512 -o lock-512.npz\n"
    "         dcrl gen pointmaze-medium-navigate-v0 -o data/\n";

typedef struct flags {
    char out[DC_TEXT_MAX], draws[DC_TEXT_MAX];
    int type;
    int64_t episodes, seed, threads;
} flags;

static const dc_option table[] = {
    {"out", DC_TEXT, offsetof(flags, out), "", 0, 0, NULL,
     "file to write, or a folder for files under OGBench's names"},
    {"type", DC_CHOICE, offsetof(flags, type), "any", 0, 0, "any|navigate|stitch|explore",
     "kind of data; any: as the name says, else navigate"},
    {"episodes", DC_INT, offsetof(flags, episodes), "0", 0, 1e8, NULL,
     "for training; 0: as many as OGBench's"},
    {"seed", DC_INT, offsetof(flags, seed), "0", 0, 9e15, NULL,
     "the same seed gives the same bytes, for any number of threads"},
    {"threads", DC_INT, offsetof(flags, threads), "0", 0, 1024, NULL, "0: one for every core"},
    {"draws", DC_TEXT, offsetof(flags, draws), "", 0, 0, NULL,
     "npz with draws (episodes, D): numbers in place of random ones, to compare with another "
     "generator"},
    {0},
};

// ---- locks ----

static dc_status put_lock(dc_npz_writer *writer, const dc_dataset *data) {
    const dc_column *obs = dc_dataset_column(data, "obs"), *act = dc_dataset_column(data, "act");
    DC_TRY(dc_npz_writer_put(writer, "observations", DC_F4, 2, (int64_t[]){data->rows, obs->width},
                             obs->values));
    int32_t *whole = calloc((size_t)data->rows * 2, sizeof *whole), *terminals = whole + data->rows;
    if (!whole) return dc_fail(DC_NO_MEMORY, NULL, "no memory for %" PRId64 " rows", data->rows);
    for (int64_t r = 0; r < data->rows; r++) // whole numbers: discrete actions
        whole[r] = (int32_t)act->values[r];
    for (int64_t t = 0; t < data->traj_count; t++)
        terminals[data->traj_start[t + 1] - 1] = 1;
    dc_status status =
        dc_npz_writer_put(writer, "actions", DC_I4, 2, (int64_t[]){data->rows, 1}, whole);
    if (status == DC_OK)
        status = dc_npz_writer_put(writer, "terminals", DC_I4, 1, &data->rows, terminals);
    free(whole);
    DC_TRY(status);
    return dc_npz_writer_save(writer);
}

static dc_status write_lock(const char *env, const flags *f) {
    int horizon;
    dc_lock lock;
    dc_dataset data = {0};
    DC_TRY(dc_lock_horizon(env, &horizon));
    DC_TRY(dc_lock_init(&lock, horizon, (uint64_t)f->seed));
    dc_npz_writer *writer = NULL;
    dc_status status = dc_lock_data(&lock, &data);
    if (status == DC_OK) status = dc_npz_writer_new(&writer, f->out, 6);
    if (status == DC_OK) status = put_lock(writer, &data);
    dc_npz_writer_free(writer);
    dc_dataset_fini(&data);
    dc_lock_fini(&lock);
    if (status == DC_OK) printf("wrote %s: %d states of combination-lock\n", f->out, horizon);
    return status;
}

// ---- mazes ----

enum {
    BATCH = 128,
    LEVEL = 6
}; // episodes between two looks at the clock; zlib's level, numpy's own
enum { OBS, ACT, TERMINALS, QPOS, QVEL, ARRAYS };

typedef struct maker {
    dc_gen gen;
    int64_t episodes, made, all; // for training; so far; with validation
    dc_pool *pool;
    dc_arena arena;   // owns rows
    dc_gen_rows rows; // (BATCH episodes)
    cli_line line;
    double start;
} maker;

static dc_status take_rows(maker *m) {
    const dc_env_family *f = dc_world_spec(m->gen.world)->family;
    size_t n = (size_t)(BATCH * m->gen.rows), word = sizeof(float);
    m->rows.obs = dc_arena_take(&m->arena, n * (size_t)f->obs * word);
    m->rows.act = dc_arena_take(&m->arena, n * (size_t)f->act * word);
    m->rows.qpos = dc_arena_take(&m->arena, n * (size_t)f->nq * word);
    m->rows.qvel = dc_arena_take(&m->arena, n * (size_t)f->nv * word);
    m->rows.terminals = dc_arena_take(&m->arena, n);
    bool all = m->rows.obs && m->rows.act && m->rows.qpos && m->rows.qvel && m->rows.terminals;
    return all ? DC_OK : DC_NO_MEMORY;
}

static dc_status add_arrays(maker *m, dc_npz_writer *w, int *array) {
    const dc_env_family *f = dc_world_spec(m->gen.world)->family;
    DC_TRY(dc_npz_writer_add(w, "observations", DC_F4, 1, (int64_t[]){f->obs}, &array[OBS]));
    DC_TRY(dc_npz_writer_add(w, "actions", DC_F4, 1, (int64_t[]){f->act}, &array[ACT]));
    DC_TRY(dc_npz_writer_add(w, "terminals", DC_B1, 0, NULL, &array[TERMINALS]));
    DC_TRY(dc_npz_writer_add(w, "qpos", DC_F4, 1, (int64_t[]){f->nq}, &array[QPOS]));
    return dc_npz_writer_add(w, "qvel", DC_F4, 1, (int64_t[]){f->nv}, &array[QVEL]);
}

static dc_status append(const maker *m, dc_npz_writer *w, const int *array, int64_t rows) {
    DC_TRY(dc_npz_writer_append(w, array[OBS], m->rows.obs, rows));
    DC_TRY(dc_npz_writer_append(w, array[ACT], m->rows.act, rows));
    DC_TRY(dc_npz_writer_append(w, array[TERMINALS], m->rows.terminals, rows));
    DC_TRY(dc_npz_writer_append(w, array[QPOS], m->rows.qpos, rows));
    return dc_npz_writer_append(w, array[QVEL], m->rows.qvel, rows);
}

static void show(maker *m) {
    char bar[21] = "....................", text[160], left[32];
    double seconds = dc_now() - m->start, part = (double)m->made / (double)m->all;
    memset(bar, '#', (size_t)(part * 20));
    snprintf(text, sizeof text,
             "[%s] %3.0f%%  %" PRId64 "/%" PRId64 " episodes  %.0f rows/s  ETA %s", bar, part * 100,
             m->made, m->all, (double)(m->made * m->gen.rows) / seconds,
             cli_duration(seconds / part - seconds, left));
    cli_line_show(&m->line, text);
}

static dc_status make_rows(maker *m, dc_npz_writer *w, int64_t episodes) {
    int array[ARRAYS];
    DC_TRY(add_arrays(m, w, array));
    for (int64_t done = 0, part; done < episodes; done += part) {
        part = episodes - done < BATCH ? episodes - done : BATCH;
        DC_TRY(dc_gen_play(&m->gen, m->made, part, &m->rows, m->pool));
        DC_TRY(append(m, w, array, part * m->gen.rows));
        m->made += part;
        show(m);
        if (atomic_load(&cli_stop))
            return dc_fail(DC_INTERRUPTED, NULL, "stopped; nothing was written");
    }
    return dc_npz_writer_save(w);
}

static dc_status make_file(maker *m, const char *path, int64_t episodes) {
    dc_npz_writer *writer = NULL;
    dc_status status = dc_npz_writer_new(&writer, path, LEVEL);
    if (status == DC_OK) status = make_rows(m, writer, episodes);
    dc_npz_writer_free(writer);
    return status;
}

// Recorded numbers in place of random ones.
static dc_status read_draws(maker *m, const char *path) {
    dc_npz npz;
    dc_npy npy;
    dc_status status = dc_npz_open(&npz, path);
    const dc_npz_entry *entry = status == DC_OK ? dc_npz_find(&npz, "draws") : NULL;
    if (status == DC_OK && !entry)
        status = dc_fail(DC_BAD_INPUT, NULL, "there is no array 'draws' (%s)", path);
    if (status == DC_OK) status = dc_npz_head(&npz, entry, &npy);
    if (status == DC_OK && (npy.ndim != 2 || npy.shape[0] != m->all))
        status =
            dc_fail(DC_BAD_INPUT, NULL,
                    "draws must have a row for each of %" PRId64 " episodes (%s)", m->all, path);
    double *values = status == DC_OK ? dc_arena_take(&m->arena, (size_t)npy.bytes) : NULL;
    if (status == DC_OK && !values) status = DC_NO_MEMORY;
    if (status == DC_OK) status = dc_npz_doubles(&npz, entry, &npy, values);
    m->gen.draws = values;
    m->gen.draw_count = status == DC_OK ? npy.shape[1] : 0;
    dc_npz_close(&npz);
    return status;
}

// FILE.npz and FILE-val.npz, or in a folder OGBench's names.
static dc_status name_files(const flags *f, const dc_env_spec *spec, dc_data_kind kind,
                            dc_text *train, dc_text *val) {
    size_t n = strlen(f->out);
    bool file = n > 4 && !strcmp(f->out + n - 4, ".npz");
    int stem = (int)strlen(spec->name) - 3; // without -v0
    if (file) {
        dc_text_add(train, "%s", f->out);
        dc_text_add(val, "%.*s-val.npz", (int)n - 4, f->out);
    } else {
        DC_TRY(dc_folder_make(f->out));
        const char *word = kind == DC_DATA_STITCH ? "stitch" : "navigate",
                   *slash = f->out[n - 1] == '/' ? "" : "/";
        dc_text_add(train, "%s%s%.*s-%s-v0.npz", f->out, slash, stem, spec->name, word);
        dc_text_add(val, "%s%s%.*s-%s-v0-val.npz", f->out, slash, stem, spec->name, word);
    }
    DC_TRY(dc_text_status(train));
    return dc_text_status(val);
}

static dc_status make_files(maker *m, const flags *f, const char *train, const char *val) {
    m->all = m->episodes + m->episodes / 10;
    DC_TRY(take_rows(m));
    if (f->draws[0]) DC_TRY(read_draws(m, f->draws));
    DC_TRY(dc_pool_new(&m->pool, (int)f->threads));
    cli_catch_signals();
    cli_line_init(&m->line);
    m->start = dc_now();
    dc_status status = make_file(m, train, m->episodes);
    if (status == DC_OK && m->all > m->episodes) status = make_file(m, val, m->all - m->episodes);
    cli_line_clear(&m->line);
    if (status != DC_OK) return status;
    printf("wrote %s: %" PRId64 " episodes of %" PRId64 " rows\n", train, m->episodes, m->gen.rows);
    if (m->all > m->episodes)
        printf("wrote %s: %" PRId64 " episodes for validation\n", val, m->all - m->episodes);
    return DC_OK;
}

static dc_status write_maze(const char *env, const flags *f) {
    dc_env_spec spec;
    maker m = {0};
    dc_world *world = NULL;
    dc_text train, val;
    DC_TRY(dc_env_find(&spec, env));
    if (f->type && spec.data && f->type != (int)spec.data)
        return dc_fail(DC_USAGE, "leave one of them out",
                       "--type and the name '%s' say different things", env);
    DC_TRY(dc_gen_init(&m.gen, &spec, f->type ? (dc_data_kind)f->type : spec.data, &m.episodes));
    spec.oracle = false; // forms of a task share the same data
    spec.task = 0;
    snprintf(spec.name, sizeof spec.name, "%s-%s-v0", spec.family->name, spec.maze->name);
    if (f->episodes) m.episodes = f->episodes;
    m.gen.seed = (uint64_t)f->seed;
    dc_text_init(&train);
    dc_text_init(&val);
    dc_arena_init(&m.arena, 0);
    dc_status status = name_files(f, &spec, m.gen.kind, &train, &val);
    if (status == DC_OK) status = dc_world_new(&world, &spec);
    m.gen.world = world;
    if (status == DC_OK) status = make_files(&m, f, train.bytes, val.bytes);
    dc_pool_free(m.pool);
    dc_world_free(world);
    dc_arena_fini(&m.arena);
    dc_text_fini(&train);
    dc_text_fini(&val);
    return status;
}

dc_status cmd_gen(int argc, char **argv) {
    flags f;
    cli_args args = {.usage = usage, .flags = table, .config = &f, .takes = CLI_WORDS};
    DC_TRY(cli_args_parse(&args, argc, argv));
    if (args.help) return DC_OK;
    if (args.word_count != 1)
        return dc_fail(DC_USAGE, "dcrl gen ENV -o FILE.npz", "one environment is needed");
    DC_TRY(cli_args_need(&args, "out"));
    if (!f.out[0]) return dc_fail(DC_USAGE, "-o FILE.npz", "--out names no file");
    return dc_env_has_tasks(args.words[0]) ? write_maze(args.words[0], &f)
                                           : write_lock(args.words[0], &f);
}
