// Setting runs up, see setup.h.
#define _XOPEN_SOURCE 700 // realpath
#include "api/setup.h"

#include "base/build.h"
#include "base/file.h"
#include "base/log.h"
#include "env/lock.h"
#include "env/maze/maze.h"
#include "env/spec.h"
#include "train/folder.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

dc_status dc_setup_goal(dc_run *run) {
    dc_run_options *o = &run->options;
    if (!dc_env_has_tasks(o->env)) return DC_OK;
    dc_env_spec spec;
    DC_TRY(dc_env_find(&spec, o->env));
    if (!spec.oracle || o->rep.count) return DC_OK;
    if (spec.visual && !spec.maze)
        return dc_fail(DC_UNSUPPORTED, "train without -oraclerep, on pictures of goals",
                       "what counts on a table is no part of a picture (%s)", spec.name);
    // Observations are those before a teleport, and OGBench takes such goals from where the robot is then.
    if (spec.maze && (spec.visual || spec.maze->in_count))
        snprintf(o->goal_column, sizeof o->goal_column, "qpos");
    for (const dc_pick *p = spec.family->picks; p < spec.family->picks + DC_PICKS_MAX; p++) {
        int64_t v[] = {p->first, p->count, p->step, p->times};
        int n = p->step ? 4 : 2; // a single range, or one that comes again
        memcpy(o->rep.v + o->rep.count, v, (size_t)n * sizeof *v);
        if (p->times) o->rep.count += n;
    }
    return DC_OK;
}

static void whole_path(char path[DC_TEXT_MAX]) {
    char *whole = realpath(path, NULL);
    if (whole && strlen(whole) < DC_TEXT_MAX) memcpy(path, whole, strlen(whole) + 1);
    free(whole);
}

// An environment's data has its sizes.
static dc_status check_sizes(const dc_run_options *o, const dc_dataset *data) {
    dc_env_spec spec;
    const char *names[] = {"obs", "act"};
    if (!dc_env_has_tasks(o->env)) return DC_OK;
    DC_TRY(dc_env_find(&spec, o->env));
    for (int c = 0; c < 2; c++) {
        const dc_column *column = dc_dataset_column(data, names[c]);
        int want = c == 0 ? spec.obs : spec.family->act, is = column ? column->width : 0;
        if (is != want)
            return dc_fail(DC_BAD_INPUT, "give the data of that environment",
                           "%s of %s have %d columns, %s has %d",
                           c == 0 ? "observations" : "actions", o->data, is, spec.name, want);
    }
    return DC_OK;
}

// A word where the widest values of an observation drown the others.
static dc_status look_at_spread(const dc_run_options *o, const dc_dataset *data) {
    dc_variation spread;
    if (o->obs_scale != DC_SCALING_AUTO) return DC_OK;
    DC_TRY(dc_dataset_variation(data, &spread));
    if (dc_variation_uneven(&spread))
        dc_log(DC_WARN,
               "columns of very different scale: observation %d varies by %.3g, %d by %.3g (%s); "
               "--obs-scale on lets networks see all of them",
               spread.wide, spread.most, spread.narrow, spread.least, o->data);
    return DC_OK;
}

dc_status dc_setup_data(dc_run *run, dc_dataset *data) {
    dc_run_options *o = &run->options;
    if (*o->data) {
        DC_TRY(dc_dataset_load(data, o->data));
        DC_TRY(check_sizes(o, data));
        DC_TRY(look_at_spread(o, data));
        whole_path(o->data);
        return DC_OK;
    }
    if (!*o->env)
        return dc_fail(DC_USAGE, "give --data FILE.npz, or --env lock-512",
                       "there is nothing to train on");
    int horizon;
    dc_lock lock;
    DC_TRY(dc_lock_horizon(o->env, &horizon));
    DC_TRY(dc_lock_init(&lock, horizon, (uint64_t)o->seed));
    dc_status status = dc_lock_data(&lock, data);
    dc_lock_fini(&lock);
    return status;
}

static const char *text_of(const dc_json *config, const char *key) {
    const dc_json *member = dc_json_get(config, key);
    return member && member->kind == DC_JSON_STRING ? member->text : NULL;
}

static dc_status check_hash(const char *was, const dc_dataset *data, const char *folder) {
    char hash[32];
    snprintf(hash, sizeof hash, "%016" PRIx64, data->hash);
    if (strcmp(was, hash) != 0)
        return dc_fail(DC_BAD_INPUT, "restore the data set, or start a new run",
                       "the data of %s has changed (hash %s, was %s)", folder, hash, was);
    return DC_OK;
}

// ---- going on ----

static dc_status value_text(const dc_option *option, const void *options, char out[DC_TEXT_MAX]) {
    dc_text text;
    dc_text_init(&text);
    dc_options_value(option, options, &text);
    dc_status status = dc_text_status(&text);
    snprintf(out, DC_TEXT_MAX, "%s", status == DC_OK && text.bytes ? text.bytes : "");
    dc_text_fini(&text);
    return status;
}

dc_status dc_changes_add(dc_changes *changes, const dc_option *option,
                         const dc_run_options *options) {
    if (option->role == DC_FIXED)
        return dc_fail(DC_USAGE, "leave it out, or begin a new run",
                       "a run that goes on keeps its %s", option->name);
    DC_CHECK(changes->count < DC_CHANGES_MAX);
    dc_change *c = &changes->change[changes->count++];
    c->name = option->name;
    return value_text(option, options, c->value);
}

// The recorded path of the data, or where the data lies as seen from the run's folder, if only that is there.
static dc_status find_data(dc_run *run, const char *folder, const dc_json *config) {
    const char *beside = text_of(config, "data_from_run");
    char path[DC_PATH_MAX];
    bool there = true;
    if (!*run->options.data || !beside) return DC_OK;
    DC_TRY(dc_file_find(run->options.data, &there));
    if (there) return DC_OK;
    DC_TRY(dc_folder_path(path, folder, beside));
    DC_TRY(dc_file_find(path, &there));
    if (there && strlen(path) < DC_TEXT_MAX) memcpy(run->options.data, path, strlen(path) + 1);
    return DC_OK;
}

static dc_status apply_changes(dc_run *run, const dc_changes *changes) {
    for (int i = 0; changes && i < changes->count; i++)
        DC_TRY(dc_run_set(run, changes->change[i].name, changes->change[i].value));
    return DC_OK;
}

// The data of a run that goes on. What is missing may have moved, and that can be said.
static dc_status load_again(dc_run *run, dc_dataset *data, const char *folder) {
    bool there = true;
    if (data->rows) return DC_OK;
    if (!*run->options.data && (!*run->options.env || dc_env_has_tasks(run->options.env)))
        return dc_fail(DC_BAD_INPUT,
                       "hand them in again, or give a file with the same rows (--data PATH)",
                       "the data of %s were a program's, in its memory", folder);
    if (*run->options.data) DC_TRY(dc_file_find(run->options.data, &there));
    if (!there)
        return dc_fail(DC_IO, "say where it is now (--data PATH)",
                       "the data of %s is not at %s any more", folder, run->options.data);
    dc_status status = dc_setup_data(run, data);
    return status == DC_USAGE ? dc_run_config_error(folder, status, dc_error()) : status;
}

// What the run's folder does not say yet, other than threads, which are this machine's, and val (below).
static dc_status note_changes(dc_run *run, const dc_run_options *before) {
    for (const dc_option *o = dc_run_table; o->name; o++) {
        char was[DC_TEXT_MAX], is[DC_TEXT_MAX];
        DC_TRY(value_text(o, before, was));
        DC_TRY(value_text(o, &run->options, is));
        if (!strcmp(was, is) || !strcmp(o->name, "threads") || !strcmp(o->name, "val")) continue;
        run->changed = true;
        run->other_steps = run->other_steps || !strcmp(o->name, "steps");
    }
    return DC_OK;
}

static dc_status reopen(dc_run *run, dc_dataset *data, const char *folder, const dc_json *config,
                        const dc_changes *changes) {
    const char *hash = text_of(config, "data_hash"), *build = text_of(config, "build");
    DC_TRY(dc_run_reconfigure(run, config, folder));
    if (!hash || !build)
        return dc_run_config_error(folder, DC_BAD_INPUT, "data_hash or build is missing");
    if (strcmp(build, dc_build_id()) != 0)
        dc_log(DC_WARN, "%s was begun by build %s, this is %s: results may differ in the last bits",
               folder, build, dc_build_id());
    const dc_run_options before = run->options;
    run->options.threads = 0; // this machine may be another one
    DC_TRY(find_data(run, folder, config));
    DC_TRY(apply_changes(run, changes));
    DC_TRY(load_again(run, data, folder));
    DC_TRY(note_changes(run, &before));
    return check_hash(hash, data, folder);
}

// As the member of `pattern` is configured, with another seed.
static dc_status open_member(dc_run *run, dc_dataset *data, const char *pattern,
                             const dc_json *config, int64_t seed, const dc_changes *changes) {
    DC_TRY(dc_run_reconfigure(run, config, pattern));
    run->options.seed = seed;
    DC_TRY(find_data(run, pattern, config));
    DC_TRY(apply_changes(run, changes));
    DC_TRY(load_again(run, data, pattern));
    const char *hash = text_of(config, "data_hash");
    if (!*run->options.data) return DC_OK; // every seed has its own
    return hash ? check_hash(hash, data, pattern)
                : dc_run_config_error(pattern, DC_BAD_INPUT, "data_hash is missing");
}

dc_status dc_setup_member(dc_run *run, dc_dataset *data, const char *pattern, int64_t seed,
                          const dc_changes *changes) {
    dc_arena arena;
    dc_arena_init(&arena, 0);
    const dc_json *config;
    dc_status status = dc_run_read_config(pattern, &arena, &config);
    if (status == DC_OK) status = open_member(run, data, pattern, config, seed, changes);
    dc_arena_fini(&arena);
    return status;
}

dc_status dc_setup_reopen(dc_run *run, dc_dataset *data, const char *folder,
                          const dc_changes *changes) {
    dc_arena arena;
    dc_arena_init(&arena, 0);
    const dc_json *config;
    dc_status status = dc_run_read_config(folder, &arena, &config);
    if (status == DC_OK) status = reopen(run, data, folder, config, changes);
    dc_arena_fini(&arena);
    return status;
}

// The first option of a table that must stay and differs.
static dc_status same_options(const dc_option *table, const void *want, const void *is,
                              const char *folder) {
    for (const dc_option *o = table; o->name; o++) {
        char a[DC_TEXT_MAX], b[DC_TEXT_MAX];
        if (o->role != DC_FIXED || dc_options_is_auto(o, want)) continue; // which it has settled
        DC_TRY(value_text(o, want, a));
        DC_TRY(value_text(o, is, b));
        if (strcmp(a, b) != 0)
            return dc_fail(DC_USAGE, "give another --out, or the options it was begun with",
                           "%s holds a run with %s=%s, not %s", folder, o->name, b, a);
    }
    return DC_OK;
}

dc_status dc_setup_same(const dc_run *run, const char *folder) {
    dc_arena arena;
    const dc_json *config;
    dc_run old = DC_RUN_NONE;
    dc_arena_init(&arena, 0);
    dc_status status = dc_run_read_config(folder, &arena, &config);
    if (status == DC_OK) status = dc_run_reconfigure(&old, config, folder);
    if (status == DC_OK) status = same_options(dc_run_table, &run->options, &old.options, folder);
    if (status == DC_OK) status = same_options(run->algo->options, run->config, old.config, folder);
    dc_run_fini(&old);
    dc_arena_fini(&arena);
    return status;
}

// ---- held-out rows ----

// X-val.npz of X.npz, or the store X-val of the store X, if it is there.
static dc_status find_beside(const char *data, char val[DC_TEXT_MAX], bool *exists) {
    static const char ending[] = ".npz";
    size_t n = strlen(data), e = sizeof ending - 1;
    bool file = n > e && !strcmp(data + n - e, ending);
    *exists = false;
    n -= file ? e : 0;
    while (n > 1 && data[n - 1] == '/')
        n--;
    int length = snprintf(val, DC_TEXT_MAX, "%.*s-val%s", (int)n, data, file ? ending : "");
    if (n == 0 || length >= DC_TEXT_MAX) return DC_OK;
    return file ? dc_file_find(val, exists) : dc_folder_find(val, exists);
}

// What `val` says, as a path or "off". The CPU measures held-out rows, for which a GPU waits: where tasks are played, only
// those that were asked for.
static dc_status resolve_val(dc_run_options *o) {
    char beside[DC_TEXT_MAX];
    bool by_itself = !strcmp(o->val, "auto"), none = !strcmp(o->val, "off") || !*o->val;
    bool found = false;
    if (by_itself && *o->data) DC_TRY(find_beside(o->data, beside, &found));
    if (by_itself) none = !found;
    if (found && o->device && dc_env_has_tasks(o->env)) {
        dc_log(DC_INFO, "held-out rows of %s are not measured; --val %s has the GPU wait for that",
               beside, beside);
        none = true;
    }
    if (!none && found) memcpy(o->val, beside, sizeof beside);
    if (none) snprintf(o->val, sizeof o->val, "off");
    return DC_OK;
}

static bool is_off(const char *val) {
    return !*val || !strcmp(val, "off");
}

// A run that goes on has the held-out rows that it began with, or none: they are columns of its log. They
// are where they were, or beside the data. One from before there were any has none.
static dc_status recall_val(dc_run *run, const dc_json *config) {
    dc_run_options *o = &run->options;
    const char *was = text_of(config, "val");
    bool there, found = false;
    if (!was || strlen(was) >= DC_TEXT_MAX) was = "off";
    if (!strcmp(o->val, "auto")) snprintf(o->val, sizeof o->val, "%s", was);
    if (is_off(o->val) != is_off(was))
        return dc_fail(DC_USAGE, "leave --val out, or begin a new run",
                       "a run that goes on keeps its held-out rows (val=%s)", was);
    if (is_off(was)) return DC_OK;
    DC_TRY(dc_file_find(o->val, &there));
    char beside[DC_TEXT_MAX];
    if (!there && *o->data) DC_TRY(find_beside(o->data, beside, &found));
    if (found) memcpy(o->val, beside, sizeof beside);
    return DC_OK;
}

static dc_status load_val(dc_run *run, dc_dataset *val, const char *hash, const char *folder) {
    dc_run_options *o = &run->options;
    DC_TRY(resolve_val(o));
    if (is_off(o->val)) return DC_OK;
    dc_status status = dc_dataset_load(val, o->val);
    if (status != DC_OK) return dc_fail(status, NULL, "held-out data: %s", dc_error());
    whole_path(o->val);
    if (hash) DC_TRY(check_hash(hash, val, folder));
    run->val = val;
    return DC_OK;
}

dc_status dc_setup_val(dc_run *run, dc_dataset *val, const char *folder) {
    if (!folder) return load_val(run, val, NULL, NULL);
    dc_arena arena;
    dc_arena_init(&arena, 0);
    const dc_json *config;
    dc_status status = dc_run_read_config(folder, &arena, &config);
    if (status == DC_OK) status = recall_val(run, config);
    if (status == DC_OK) status = load_val(run, val, text_of(config, "val_hash"), folder);
    dc_arena_fini(&arena);
    return status;
}
