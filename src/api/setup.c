// Setting runs up, see setup.h.
#define _XOPEN_SOURCE 700 // realpath
#include "api/setup.h"

#include "base/build.h"
#include "base/log.h"
#include "env/lock.h"
#include "env/spec.h"

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
        int want = c == 0 ? spec.family->obs : spec.family->act, is = column ? column->width : 0;
        if (is != want)
            return dc_fail(DC_BAD_INPUT, "give the data of that environment",
                           "%s of %s have %d columns, %s has %d",
                           c == 0 ? "observations" : "actions", o->data, is, spec.name, want);
    }
    return DC_OK;
}

dc_status dc_setup_data(dc_run *run, dc_dataset *data) {
    dc_run_options *o = &run->options;
    if (*o->data) {
        DC_TRY(dc_dataset_load(data, o->data));
        DC_TRY(check_sizes(o, data));
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

// What is wrong with a config.json is no fault of the command line.
static dc_status config_error(const char *folder, dc_status status, const char *what) {
    return dc_fail(status == DC_USAGE ? DC_BAD_INPUT : status,
                   "restore that file, or start a new run", "%s/config.json: %s", folder, what);
}

static dc_status configure(dc_run *run, const dc_json *config, const char *folder) {
    const char *agent = text_of(config, "agent");
    if (!agent) return config_error(folder, DC_BAD_INPUT, "agent is missing");
    dc_status status = dc_run_configure(run, agent);
    if (status == DC_OK) status = dc_run_set_json(run, config);
    return status == DC_OK ? DC_OK : config_error(folder, status, dc_error());
}

static dc_status reopen(dc_run *run, dc_dataset *data, const char *folder, const dc_json *config,
                        int64_t threads) {
    const char *hash = text_of(config, "data_hash"), *build = text_of(config, "build");
    DC_TRY(configure(run, config, folder));
    if (!hash || !build) return config_error(folder, DC_BAD_INPUT, "data_hash or build is missing");
    if (strcmp(build, dc_build_id()) != 0)
        dc_log(DC_WARN, "%s was begun by build %s, this is %s: results may differ in the last bits",
               folder, build, dc_build_id());
    run->options.threads = threads;
    dc_status status = data->rows ? DC_OK : dc_setup_data(run, data);
    if (status == DC_USAGE) return config_error(folder, status, dc_error());
    DC_TRY(status);
    return check_hash(hash, data, folder);
}

dc_status dc_setup_reopen(dc_run *run, dc_dataset *data, const char *folder, int64_t threads) {
    dc_arena arena;
    dc_arena_init(&arena, 0);
    const dc_json *config;
    dc_status status = dc_run_read_config(folder, &arena, &config);
    if (status == DC_OK) status = reopen(run, data, folder, config, threads);
    dc_arena_fini(&arena);
    return status;
}
