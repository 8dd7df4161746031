// States from where there are some, see states.h.
#include "env/states.h"

#include "env/family.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

dc_status dc_states_new(dc_states *states, const dc_env_spec *spec, int64_t count) {
    const dc_env_family *f = spec->family;
    *states = (dc_states){.family = f, .count = count};
    states->qpos = calloc((size_t)count, (size_t)f->nq * sizeof *states->qpos);
    states->extra = calloc((size_t)count, (size_t)(f->extra + 1) * sizeof *states->extra);
    if (states->qpos && states->extra) return DC_OK;
    dc_states_free(states);
    return dc_fail(DC_NO_MEMORY, NULL, "no memory for %" PRId64 " states of %s", count, spec->name);
}

void dc_states_free(dc_states *states) {
    free(states->qpos);
    free(states->extra);
    *states = (dc_states){0};
}

void dc_states_put(dc_states *states, int64_t row, const dc_env *env) {
    const dc_env_family *f = states->family;
    DC_CHECK(row >= 0 && row < states->count);
    memcpy(states->qpos + row * f->nq, dc_env_qpos(env), (size_t)f->nq * sizeof(double));
    dc_env_extra(env, states->extra + row * f->extra);
    memcpy(states->target, env->goal, sizeof states->target);
    states->aimed = true;
}

dc_status dc_states_start(dc_states *states, const dc_world *world, int task, uint64_t seed) {
    dc_philox_draws draws;
    dc_env env;
    *states = (dc_states){0};
    DC_TRY(dc_env_new(&env, world, dc_draws_philox(&draws, seed, 0)));
    dc_status status = dc_env_reset(&env, task, NULL);
    if (status == DC_OK) status = dc_states_new(states, dc_world_spec(world), 1);
    if (status == DC_OK) dc_states_put(states, 0, &env);
    dc_env_free(&env);
    return status;
}

// ---- data ----

static void widen(const float *from, int64_t count, double *to) {
    for (int64_t k = 0; k < count; k++)
        to[k] = (double)from[k];
}

// Rows first ... first + count - 1 of a column of any type.
static void widen_rows(const dc_column *from, int64_t first, int64_t count, double *to) {
    for (int64_t r = 0; r < count; r++)
        for (int k = 0; k < from->width; k++)
            *to++ = (double)dc_column_value(from, first + r, k);
}

static dc_status find_column(const dc_dataset *data, const dc_env_spec *spec, const char *name,
                             int width, const dc_column **column) {
    const dc_column *c = *column = dc_dataset_column(data, name);
    if (!c)
        return dc_fail(DC_BAD_INPUT, "OGBench's files have it",
                       "the data has no '%s', which says what a state looks like", name);
    if (c->width == width) return DC_OK;
    return dc_fail(DC_BAD_INPUT, "name the environment that the data is of",
                   "'%s' has %d values per row, %s has %d", name, c->width, spec->name, width);
}

dc_status dc_states_data(dc_states *states, const dc_env_spec *spec, const dc_dataset *data,
                         int64_t episode) {
    const dc_env_family *f = spec->family;
    const dc_column *qpos = NULL, *extra = NULL;
    *states = (dc_states){0};
    if (episode < 0 || episode >= data->traj_count)
        return dc_fail(DC_USAGE, "episodes are counted from 0",
                       "there is no episode %" PRId64 " in data of %" PRId64, episode,
                       data->traj_count);
    DC_TRY(find_column(data, spec, "qpos", f->nq, &qpos));
    if (f->extra) DC_TRY(find_column(data, spec, f->ops->extra.name, f->extra, &extra));
    int64_t first = data->traj_start[episode], count = data->traj_start[episode + 1] - first;
    DC_TRY(dc_states_new(states, spec, count));
    widen_rows(qpos, first, count, states->qpos);
    if (extra) widen_rows(extra, first, count, states->extra);
    return DC_OK;
}

// ---- scripts ----

dc_status dc_states_script(dc_states *states, const dc_gen *gen, int64_t episode) {
    const dc_env_spec *spec = dc_world_spec(gen->world);
    const dc_env_family *f = spec->family;
    dc_gen_rows rows = {0};
    dc_arena arena;
    *states = (dc_states){0};
    dc_arena_init(&arena, 0);
    size_t n = (size_t)gen->rows, word = sizeof(float);
    if (spec->visual)
        rows.pictures = dc_arena_take(&arena, n * DC_VISUAL_OBS);
    else
        rows.obs = dc_arena_take(&arena, n * (size_t)f->obs * word);
    rows.act = dc_arena_take(&arena, n * (size_t)f->act * word);
    rows.qpos = dc_arena_take(&arena, n * (size_t)f->nq * word);
    rows.qvel = dc_arena_take(&arena, n * (size_t)f->nv * word);
    rows.extra = dc_arena_take(&arena, n * (size_t)(f->extra + 1) * sizeof *rows.extra);
    rows.terminals = dc_arena_take(&arena, n);
    bool all = (rows.obs || rows.pictures) && rows.act && rows.qpos && rows.qvel && rows.extra &&
               rows.terminals;
    dc_status status = all ? dc_gen_play(gen, episode, 1, &rows, NULL) : DC_NO_MEMORY;
    if (status == DC_OK) status = dc_states_new(states, spec, gen->rows);
    if (status == DC_OK) widen(rows.qpos, gen->rows * f->nq, states->qpos);
    for (int64_t k = 0; status == DC_OK && k < gen->rows * f->extra; k++)
        states->extra[k] = (double)rows.extra[k];
    dc_arena_fini(&arena);
    return status;
}

// ---- files ----

// An array of rows of `width` numbers: (width) or (rows, width); -1 rows: as many as there are.
// Nullable: *values, if the file has none of that name.
static dc_status read_rows(const dc_npz *npz, dc_arena *arena, const char *name, int width,
                           int64_t *rows, double **values) {
    dc_npy npy;
    const dc_npz_entry *entry = dc_npz_find(npz, name);
    *values = NULL;
    if (!entry) return DC_OK;
    DC_TRY(dc_npz_head(npz, entry, &npy));
    int64_t has = npy.ndim == 2 ? npy.shape[0] : 1;
    bool fits = (npy.ndim == 1 || npy.ndim == 2) && npy.shape[npy.ndim - 1] == width && has > 0;
    if (!fits || (*rows >= 0 && has != *rows)) {
        char want[96];
        if (*rows == 1)
            snprintf(want, sizeof want, "(%d) or (1, %d) is needed", width, width);
        else if (*rows > 1)
            snprintf(want, sizeof want, "(%lld, %d) is needed", (long long)*rows, width);
        else
            snprintf(want, sizeof want, "(%d) or (rows, %d) is needed", width, width);
        return dc_fail(DC_BAD_INPUT, want, "'%s' has another shape (%s)", name, npz->path);
    }
    *rows = has;
    *values = dc_arena_take(arena, (size_t)npy.count * sizeof **values);
    return *values ? dc_npz_doubles(npz, entry, &npy, *values) : DC_NO_MEMORY;
}

// What such an environment does not have must not be passed over in silence.
static dc_status refuse_foreign(const dc_npz *npz, const dc_env_spec *spec) {
    dc_foreign foreign;
    for (int k = 0; dc_env_foreign(spec->family, k, &foreign); k++)
        if (dc_npz_find(npz, foreign.name))
            return dc_fail(DC_BAD_INPUT, "see dcrl render --help", "%s has no '%s' (%s)",
                           spec->name, foreign.name, npz->path);
    return DC_OK;
}

static dc_status check_extra(const dc_npz *npz, const dc_extra *extra, const double *values,
                             int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        double v = values[i];
        if (v >= extra->low && v <= extra->high && v == floor(v)) continue;
        char hint[64];
        snprintf(hint, sizeof hint, "whole numbers from %d to %d are needed", extra->low,
                 extra->high);
        return dc_fail(DC_BAD_INPUT, hint, "'%s' has %g at number %" PRId64 " (%s)", extra->name, v,
                       i, npz->path);
    }
    return DC_OK;
}

static dc_status read_states(dc_states *states, const dc_env_spec *spec, const dc_npz *npz,
                             dc_arena *arena) {
    const dc_env_family *f = spec->family;
    const dc_extra *e = &f->ops->extra;
    double *qpos, *extra = NULL, *target;
    int64_t count = -1, one = 1;
    DC_TRY(refuse_foreign(npz, spec));
    DC_TRY(read_rows(npz, arena, "qpos", f->nq, &count, &qpos));
    if (!qpos)
        return dc_fail(DC_BAD_INPUT, "see dcrl render --help", "there is no array 'qpos' (%s)",
                       npz->path);
    if (f->extra) DC_TRY(read_rows(npz, arena, e->name, f->extra, &count, &extra));
    if (extra) DC_TRY(check_extra(npz, e, extra, count * f->extra));
    DC_TRY(read_rows(npz, arena, f->ops->target, f->oracle, &one, &target));
    DC_TRY(dc_states_new(states, spec, count));
    memcpy(states->qpos, qpos, (size_t)(count * f->nq) * sizeof *qpos);
    if (extra) memcpy(states->extra, extra, (size_t)(count * f->extra) * sizeof *extra);
    if (target) memcpy(states->target, target, (size_t)f->oracle * sizeof *target);
    states->aimed = target != NULL;
    return DC_OK;
}

// Rows of data always have a state whole.
dc_status dc_states_rows(dc_states *states, const dc_env_spec *spec, const dc_npz *npz) {
    const dc_env_family *f = spec->family;
    const char *lacks = !dc_npz_find(npz, "qpos")                           ? "qpos"
                        : f->extra && !dc_npz_find(npz, f->ops->extra.name) ? f->ops->extra.name
                                                                            : NULL;
    dc_arena arena;
    *states = (dc_states){0};
    if (lacks)
        return dc_fail(DC_BAD_INPUT, "dcrl gen and OGBench write it", "there is no array '%s' (%s)",
                       lacks, npz->path);
    dc_arena_init(&arena, 0);
    dc_status status = read_states(states, spec, npz, &arena);
    dc_arena_fini(&arena);
    return status;
}

dc_status dc_states_file(dc_states *states, const dc_env_spec *spec, const char *path) {
    dc_npz npz = {0};
    dc_arena arena;
    *states = (dc_states){0};
    dc_arena_init(&arena, 0);
    dc_status status = dc_npz_open(&npz, path);
    if (status == DC_OK) status = read_states(states, spec, &npz, &arena);
    dc_npz_close(&npz);
    dc_arena_fini(&arena);
    return status;
}
