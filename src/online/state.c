// A learner's state as one safetensors file, FILE.state: weights with targets and Adam's moments, the replay's rows, and
// where every robot stands. Whoever goes on from it computes what would have been computed without a stop.
#include "online/learner.h"

#include "train/weights.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT "dcrl learner 1"

enum { SLABS = 4, COUNTS = 4, TENSORS = SLABS + DC_REPLAY_COLUMNS + 2, METAS = 4 };

typedef struct writing {
    dc_st_tensor tensors[TENSORS];
    size_t count;
    double counts[COUNTS];
    double *crowd;
    dc_text config;
    char hash[DC_ST_HASH];
} writing;

// The options that decide what is learned, a line each.
static void describe(const dc_learn *l, dc_text *out) {
    dc_option fixed[64] = {0};
    int n = 0;
    for (const dc_option *o = dc_learn_table; o->name && n < 63; o++)
        if (o->role == DC_FIXED) fixed[n++] = *o;
    dc_options_json(fixed, &l->options, out);
    dc_text_add(out, ",\n");
    dc_options_json(dc_algo_sac.options, l->config, out);
}

static void add(writing *w, const char *name, dc_st_dtype type, int64_t rows, int64_t cols,
                const void *bytes) {
    w->tensors[w->count++] = (dc_st_tensor){.name = name,
                                            .dtype = type,
                                            .ndim = 2,
                                            .shape = {rows, cols},
                                            .bytes = bytes,
                                            .size = (size_t)(rows * cols) * dc_st_dtype_size(type)};
}

// Every tensor that the state consists of, over the learner's own memory; wide types first.
static void list(const dc_learn *l, writing *w) {
    static const char *const names[SLABS] = {"live", "ema", "adam_m", "adam_v"};
    const dc_slabs *s = &l->agent.params.slabs;
    const dc_real *slabs[SLABS] = {s->live, s->ema, s->m, s->v};
    dc_st_dtype real = sizeof(dc_real) == 8 ? DC_ST_F64 : DC_ST_F32;
    add(w, "counts", DC_ST_F64, 1, COUNTS, w->counts);
    add(w, "robots", DC_ST_F64, 1, dc_crowd_words(l->crowd), w->crowd);
    for (int k = 0; k < SLABS; k++)
        add(w, names[k], real, 1, k == 1 ? s->ema_size : s->size, slabs[k]);
    for (int c = 0; c < DC_REPLAY_COLUMNS; c++)
        add(w, l->replay.data.columns[c].name, DC_ST_F32,
            (int64_t)w->counts[2] < l->replay.room ? (int64_t)w->counts[2] : l->replay.room,
            l->replay.widths[c], l->replay.values[c]);
}

static dc_status prepare(const dc_learn *l, writing *w) {
    w->crowd = malloc((size_t)dc_crowd_words(l->crowd) * sizeof *w->crowd);
    if (!w->crowd) return dc_fail(DC_NO_MEMORY, NULL, "no memory");
    describe(l, &w->config);
    return dc_text_status(&w->config);
}

static dc_status write_file(const dc_learn *l, const char *path, writing *w) {
    DC_TRY(prepare(l, w));
    const double counts[COUNTS] = {(double)l->steps, (double)l->updates, (double)l->replay.added,
                                   l->best};
    memcpy(w->counts, counts, sizeof counts);
    dc_crowd_save(l->crowd, w->crowd);
    list(l, w);
    const dc_st_meta metas[METAS] = {{"format", FORMAT},
                                     {"robot", l->plane->name},
                                     {"config", w->config.bytes},
                                     {"hash", w->hash}};
    dc_st_hash(w->tensors, w->count, metas, METAS, w->hash);
    return dc_st_write_inside(path, w->tensors, w->count, metas, METAS);
}

dc_status dc_learn_save(const dc_learn *l, const char *path) {
    writing w = {0};
    dc_text_init(&w.config);
    dc_status status = write_file(l, path, &w);
    dc_text_fini(&w.config);
    free(w.crowd);
    return status;
}

// ---- reading ----

static dc_status check_metas(const dc_learn *l, const dc_st_file *file, const char *path,
                             const writing *w) {
    const char *format = dc_st_meta_get(file, "format"), *robot = dc_st_meta_get(file, "robot"),
               *config = dc_st_meta_get(file, "config"), *hash = dc_st_meta_get(file, "hash");
    char own[DC_ST_HASH];
    if (!format || strcmp(format, FORMAT) != 0)
        return dc_fail(DC_BAD_INPUT, "remove it to begin anew", "not a learner's state (%s)", path);
    dc_st_hash(file->tensors, file->count, file->metas, file->meta_count, own);
    if (!hash || strcmp(hash, own) != 0)
        return dc_fail(DC_BAD_INPUT, "remove it to begin anew", "a learner's state is damaged (%s)",
                       path);
    if (robot && config && !strcmp(robot, l->plane->name) && !strcmp(config, w->config.bytes))
        return DC_OK;
    return dc_fail(DC_USAGE, "resume with the robot and the options that it was begun with",
                   "%s is of another training", path);
}

// Counts first: they say how many rows the replay has.
static dc_status read_counts(dc_learn *l, const dc_st_file *file, const char *path, writing *w) {
    const dc_st_tensor want = {"counts", DC_ST_F64, 2, {1, COUNTS}, w->counts, sizeof w->counts};
    DC_TRY(dc_weight_copy(file, path, &want));
    bool good =
        w->counts[COUNTS - 1] < INFINITY; // the best worth so far: -INFINITY before the first
    for (int k = 0; k < COUNTS - 1; k++)
        good =
            good && w->counts[k] >= 0 && w->counts[k] < 1e15 && w->counts[k] == rint(w->counts[k]);
    if (!good)
        return dc_fail(DC_BAD_INPUT, "remove it to begin anew",
                       "impossible counts in a learner's state (%s)", path);
    l->steps = (int64_t)w->counts[0];
    l->updates = (int64_t)w->counts[1];
    l->replay.added = (int64_t)w->counts[2];
    l->replay.filled = l->replay.added < l->replay.room ? l->replay.added : l->replay.room;
    l->best = w->counts[3];
    return DC_OK;
}

static bool is_finite(const dc_st_tensor *t) {
    bool wide = t->dtype == DC_ST_F64;
    for (size_t k = 0; k < t->size / dc_st_dtype_size(t->dtype); k++)
        if (!isfinite(wide ? ((const double *)t->bytes)[k] : (double)((const float *)t->bytes)[k]))
            return false;
    return true;
}

static dc_status read_tensor(const dc_st_file *file, const char *path, const dc_st_tensor *to) {
    DC_TRY(dc_weight_copy(file, path, to));
    if (!strcmp(to->name, "counts") || is_finite(to)) return DC_OK;
    return dc_fail(DC_BAD_INPUT, "remove it to begin anew",
                   "tensor '%s' of a learner's state holds NaN or Inf (%s)", to->name, path);
}

static dc_status read_file(dc_learn *l, const dc_st_file *file, const char *path, writing *w) {
    DC_TRY(prepare(l, w));
    DC_TRY(check_metas(l, file, path, w));
    DC_TRY(read_counts(l, file, path, w));
    list(l, w);
    for (size_t t = 0; t < w->count; t++)
        DC_TRY(read_tensor(file, path, &w->tensors[t]));
    dc_sampler_skip(l->agent.sampler, (uint64_t)l->updates);
    dc_status status = dc_crowd_load(l->crowd, w->crowd);
    return status == DC_OK ? DC_OK : dc_fail_prefix(status, path);
}

dc_status dc_learn_load(dc_learn *l, const char *path) {
    writing w = {0};
    dc_st_file file;
    DC_TRY(dc_st_open_inside(&file, path));
    dc_text_init(&w.config);
    dc_status status = read_file(l, &file, path, &w);
    dc_text_fini(&w.config);
    free(w.crowd);
    dc_st_close(&file);
    return status;
}
