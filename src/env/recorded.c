// Recorded states, actions and draws, see recorded.h.
#include "env/recorded.h"

#include "base/text.h"
#include "data/npz.h"
#include "env/family.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct source {
    dc_npz *npz;
    dc_arena *arena; // of what is read
} source;

static dc_status wrong_shape(const dc_npz *in, const char *name, const dc_npy *npy,
                             const char *want) {
    dc_text got;
    dc_text_init(&got);
    for (int d = 0; d < npy->ndim; d++)
        dc_text_add(&got, "%s%lld", d ? "," : "", (long long)npy->shape[d]);
    dc_status status = dc_fail(DC_BAD_INPUT, want, "%s has shape (%s) (%s)", name,
                               got.bytes ? got.bytes : "", in->path);
    dc_text_fini(&got);
    return status;
}

// An array as doubles; values stays NULL when the file has none. A dimension of -1 is filled in
// from the file.
static dc_status read_array(const source *from, const char *name, int ndim, int64_t *shape,
                            const double **values, bool *floats) {
    const dc_npz *in = from->npz;
    char want[96];
    dc_npy npy;
    const dc_npz_entry *entry = dc_npz_find(in, name);
    *values = NULL;
    if (!entry) return DC_OK;
    DC_TRY(dc_npz_head(in, entry, &npy));
    snprintf(want, sizeof want, "%d dimensions are needed", ndim);
    if (npy.ndim != ndim) return wrong_shape(in, name, &npy, want);
    for (int d = 0; d < ndim; d++) {
        if (shape[d] < 0) shape[d] = npy.shape[d];
        snprintf(want, sizeof want, "%lld is needed in dimension %d", (long long)shape[d], d);
        if (shape[d] != npy.shape[d]) return wrong_shape(in, name, &npy, want);
    }
    double *out = dc_arena_take(from->arena, (size_t)npy.count * sizeof *out);
    if (!out) return DC_NO_MEMORY;
    if (floats) *floats = npy.type == DC_F4;
    *values = out;
    return dc_npz_doubles(in, entry, &npy, out);
}

// An array that would not be looked at was meant for something else.
static dc_status refuse(const dc_npz *in, const char *name, const char *by, const char *hint) {
    if (!dc_npz_find(in, name)) return DC_OK;
    return dc_fail(DC_BAD_INPUT, hint, "%s takes no array '%s' (%s)", by, name, in->path);
}

static dc_status check_names(const dc_npz *in, const dc_env_spec *spec, const dc_replay *r) {
    const char *hint = "leave it out: a reset sets it";
    dc_foreign foreign;
    for (int k = 0; dc_env_foreign(spec->family, k, &foreign); k++)
        DC_TRY(refuse(in, foreign.name, spec->name, foreign.hint));
    if (!r->tasks) return DC_OK;
    DC_TRY(refuse(in, dc_env_target_name(spec->family), "a start by tasks", hint));
    if (!spec->family->extra) return DC_OK;
    return refuse(in, dc_env_extra_facts(spec->family)->name, "a start by tasks", hint);
}

// Values (starts, width) must be whole: others would be played as what they are not. Nullable: values
static dc_status check_whole(const dc_npz *in, const char *name, const double *values,
                             int64_t starts, int width, int low, int high) {
    for (int64_t k = 0; values && k < starts * width; k++) {
        double v = values[k];
        if (v >= low && v <= high && v == floor(v)) continue;
        char want[64], at[64];
        if (low == high)
            snprintf(want, sizeof want, "%d is needed", low);
        else
            snprintf(want, sizeof want, "whole numbers from %d to %d are needed", low, high);
        int n = snprintf(at, sizeof at, "%lld", (long long)(k / width));
        if (width > 1) snprintf(at + n, sizeof at - (size_t)n, ",%lld", (long long)(k % width));
        return dc_fail(DC_BAD_INPUT, want, "%s[%s] is %.9g (%s)", name, at, v, in->path);
    }
    return DC_OK;
}

static dc_status read_replay(const source *from, const dc_env_spec *spec, dc_replay *r) {
    const dc_npz *in = from->npz;
    const dc_env_family *f = spec->family;
    int64_t actions[3] = {-1, -1, f->act};
    DC_TRY(read_array(from, "actions", 3, actions, &r->actions, &r->float_actions));
    if (!r->actions)
        return dc_fail(DC_BAD_INPUT, "see dcrl env --help", "there is no array 'actions' (%s)",
                       in->path);
    int64_t s = r->starts = actions[0];
    r->steps = actions[1];
    if (s < 1) return dc_fail(DC_BAD_INPUT, NULL, "there is no start (%s)", in->path);
    int64_t draws[2] = {s, -1};
    DC_TRY(read_array(from, "qpos", 2, (int64_t[]){s, f->nq}, &r->qpos, NULL));
    DC_TRY(read_array(from, "qvel", 2, (int64_t[]){s, f->nv}, &r->qvel, NULL));
    DC_TRY(read_array(from, "tasks", 1, (int64_t[]){s}, &r->tasks, NULL));
    DC_TRY(read_array(from, dc_env_target_name(f), 2, (int64_t[]){s, f->oracle}, &r->target, NULL));
    if (f->extra)
        DC_TRY(read_array(from, dc_env_extra_facts(f)->name, 2, (int64_t[]){s, f->extra}, &r->extra,
                          NULL));
    DC_TRY(read_array(from, "draws", 2, draws, &r->draws, NULL));
    r->draw_count = draws[1];
    if (r->tasks ? r->qpos || r->qvel : !r->qpos || !r->qvel)
        return dc_fail(DC_BAD_INPUT, "see dcrl env --help",
                       "either qpos and qvel or tasks must be there (%s)", in->path);
    DC_TRY(check_names(in, spec, r));
    int own = spec->task; // of a single-task form
    DC_TRY(check_whole(in, "tasks", r->tasks, s, 1, own ? own : 1, own ? own : DC_TASKS));
    const dc_extra *e = dc_env_extra_facts(f);
    return check_whole(in, dc_env_extra_facts(f)->name, r->extra, s, f->extra, e->low, e->high);
}

dc_status dc_replay_read(dc_replay *r, const dc_env_spec *spec, const char *path, dc_arena *arena) {
    dc_npz npz = {0};
    dc_status status = dc_npz_open(&npz, path);
    if (status == DC_OK) status = read_replay(&(source){&npz, arena}, spec, r);
    dc_npz_close(&npz);
    return status;
}

dc_status dc_gen_read_draws(dc_gen *gen, const char *path, int64_t episodes, double **values) {
    dc_npz npz = {0};
    dc_npy npy;
    *values = NULL;
    dc_status status = dc_npz_open(&npz, path);
    const dc_npz_entry *entry = status == DC_OK ? dc_npz_find(&npz, "draws") : NULL;
    if (status == DC_OK && !entry)
        status = dc_fail(DC_BAD_INPUT, NULL, "there is no array 'draws' (%s)", path);
    if (status == DC_OK) status = dc_npz_head(&npz, entry, &npy);
    if (status == DC_OK && (npy.ndim != 2 || npy.shape[0] != episodes))
        status =
            dc_fail(DC_BAD_INPUT, NULL,
                    "draws must have a row for each of %" PRId64 " episodes (%s)", episodes, path);
    *values = status == DC_OK ? calloc((size_t)npy.count + 1, sizeof **values) : NULL;
    if (status == DC_OK && !*values)
        status = dc_fail(DC_NO_MEMORY, NULL, "no memory for the draws of %s", path);
    if (status == DC_OK) status = dc_npz_doubles(&npz, entry, &npy, *values);
    gen->draws = *values;
    gen->draw_count = status == DC_OK ? npy.shape[1] : 0;
    dc_npz_close(&npz);
    return status;
}
