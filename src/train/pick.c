// Choosing a checkpoint, see pick.h. Training, eval, map, render and the C API all come through here, so that what
// one of them refuses none of them plays.
#include "train/pick.h"

#include "base/log.h"
#include "train/folder.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

// Whether it is whole and says what its place says. Its own words are compared before memory is taken for them.
static dc_status try_one(const dc_run *run, uint64_t data_hash, const char *folder, int64_t step) {
    char path[DC_PATH_MAX];
    DC_TRY(dc_folder_checkpoint(path, folder, step));
    dc_checkpoint_policy *policy = malloc(sizeof *policy); // too large for a small stack
    if (!policy) return dc_fail(DC_NO_MEMORY, NULL, "no memory to look at %s", path);
    dc_status status = dc_checkpoint_open(policy, path, run, data_hash);
    int64_t is = status == DC_OK ? policy->step : step;
    if (status == DC_OK) dc_checkpoint_close(policy);
    free(policy);
    DC_TRY(status);
    if (is == step) return DC_OK;
    return dc_fail(DC_BAD_INPUT, NULL, "%s is of step %" PRId64 ", not of the one it is named for",
                   path, is);
}

dc_status dc_pick_none(dc_status status, const char *folder) {
    return dc_fail(status, "restore a checkpoint, or remove them all to begin again at step 0",
                   "no checkpoint of %s can be read (%s)", folder, dc_error());
}

static dc_status try_all(const dc_run *run, uint64_t data_hash, const char *folder,
                         const int64_t *steps, int count, int64_t *step) {
    for (int i = 0; i < count; i++) {
        dc_status status = try_one(run, data_hash, folder, steps[i]);
        if (status == DC_OK) return *step = steps[i], DC_OK;
        // When the system failed and not the file, going back would lose what was saved.
        if (status != DC_BAD_INPUT || i + 1 == count) return dc_pick_none(status, folder);
        dc_log(DC_WARN, "%s; an older checkpoint is tried", dc_error());
    }
    return DC_OK;
}

dc_status dc_pick_for(const dc_run *run, uint64_t data_hash, const char *folder, int64_t *step) {
    int64_t *steps;
    int count;
    bool found = false;
    DC_TRY(dc_folder_checkpoints(folder, &steps, &count));
    for (int i = 0; i < count; i++)
        found = found || steps[i] == *step;
    dc_status status = DC_OK;
    if (*step < 0)
        status = try_all(run, data_hash, folder, steps, count, step);
    else if (found)
        status = try_one(run, data_hash, folder, *step);
    else
        status = dc_fail(DC_USAGE, "ls shows the steps that are kept",
                         "%s has no checkpoint of step %" PRId64, folder, *step);
    free(steps);
    return status;
}

static dc_status pick_as(const dc_json *config, const char *folder, int64_t *step) {
    const dc_json *hash = dc_json_get(config, "data_hash");
    if (!hash || hash->kind != DC_JSON_STRING)
        return dc_run_config_error(folder, DC_BAD_INPUT, "data_hash is missing");
    dc_run *run = malloc(sizeof *run); // too large for a small stack
    if (!run) return dc_fail(DC_NO_MEMORY, NULL, "no memory to look at %s", folder);
    *run = DC_RUN_NONE;
    dc_status status = dc_run_reconfigure(run, config, folder);
    if (status == DC_OK) status = dc_pick_for(run, strtoull(hash->text, NULL, 16), folder, step);
    dc_run_fini(run);
    free(run);
    return status;
}

dc_status dc_pick_in(const char *folder, int64_t *step) {
    dc_arena arena;
    const dc_json *config;
    dc_arena_init(&arena, 0);
    dc_status status = dc_run_read_config(folder, &arena, &config);
    if (status == DC_OK) status = pick_as(config, folder, step);
    dc_arena_fini(&arena);
    return status;
}
