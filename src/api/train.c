// Runs of the public API: train/run.h behind a handle, with its data set and its wish to stop.
#include "api/api.h"
#include "api/setup.h"
#include "rollout/watch.h"
#include "train/presets.h"

#include <stdio.h>
#include <stdlib.h>

struct dcrl_run {
    dc_run run;
    dc_dataset val; // held-out rows, if the options name some
    dc_dataset own; // loaded by the run's options; empty if the caller gave the data
    dc_watch watch; // evaluates on the way, if eval_every is set
    bool started;
    atomic_int stop;
    dcrl_progress_fn *progress; // of the call of dcrl_run_train that runs now
    void *ctx;
    dcrl_row_fn *on_row;
    void *on_row_ctx;
    dcrl_score_fn *on_score;
    void *on_score_ctx;
};

static dc_status new_handle(dcrl_run **run) {
    *run = calloc(1, sizeof **run);
    if (!*run) return dc_fail(DC_NO_MEMORY, NULL, "no memory for a run");
    (*run)->run = DC_RUN_NONE;
    return DC_OK;
}

static dcrl_status give(dcrl_run **run, dc_status status) {
    if (status == DC_OK) return dc_api_status(DC_OK);
    dcrl_run_free(*run);
    *run = NULL;
    return dc_api_status(status);
}

static dc_status configure(dc_run *run, dc_arena *arena, const char *preset, const char *agent) {
    dc_preset options = {0};
    if (preset) DC_TRY(dc_preset_find(arena, preset, &options));
    if (!agent && preset) agent = dc_preset_agent(&options);
    DC_TRY(dc_run_configure(run, agent ? agent : "dcrl"));
    return preset ? dc_preset_apply(run, &options) : DC_OK;
}

dcrl_status dcrl_run_new(dcrl_run **run, const char *preset, const char *agent) {
    DC_API_GIVEN(run);
    dc_status status = new_handle(run);
    if (status != DC_OK) return dc_api_status(status);
    dc_arena arena;
    dc_arena_init(&arena, 0);
    status = configure(&(*run)->run, &arena, preset, agent);
    dc_arena_fini(&arena);
    return give(run, status);
}

dcrl_status dcrl_run_set(dcrl_run *run, const char *key, const char *value) {
    DC_API_GIVEN(run);
    DC_API_GIVEN(key);
    DC_API_GIVEN(value);
    if (run->started)
        return dc_api_status(dc_fail(DC_USAGE, "set options before dcrl_run_start",
                                     "the options of a started run are fixed (%s)", key));
    return dc_api_status(dc_run_set(&run->run, key, value));
}

// Evaluation on the way, if the options ask for it.
static dc_status open_watch(dcrl_run *run, const dc_dataset *data) {
    if (!run->run.options.eval_every) return DC_OK;
    DC_TRY(dc_watch_open(&run->watch, &run->run, data));
    run->run.evaluate = dc_watch_evaluate;
    run->run.evaluate_ctx = &run->watch;
    return DC_OK;
}

static dc_status start(dcrl_run *run, const dcrl_dataset *data, const char *folder) {
    DC_TRY(dc_setup_goal(&run->run));
    if (!data) DC_TRY(dc_setup_data(&run->run, &run->own));
    DC_TRY(dc_setup_val(&run->run, &run->val, NULL));
    const dc_dataset *rows = data ? &data->data : &run->own;
    DC_TRY(open_watch(run, rows));
    return dc_run_start(&run->run, rows, folder);
}

dcrl_status dcrl_run_start(dcrl_run *run, const dcrl_dataset *data, const char *folder) {
    DC_API_GIVEN(run);
    DC_API_GIVEN(folder);
    if (run->started)
        return dc_api_status(dc_fail(DC_USAGE, "make another with dcrl_run_new",
                                     "a run starts only once (%s)", folder));
    run->started = true; // also after a failure: half-built runs can only be freed
    dc_status status = start(run, data, folder);
    if (status != DC_OK) dc_run_fini(&run->run);
    return dc_api_status(status);
}

static dc_status resume(dcrl_run *run, const dcrl_dataset *data, const char *folder, int threads) {
    dc_dataset given = {0};
    if (data) given = data->data; // a look at it; the caller stays the owner
    dc_changes changes = {.count = 1, .change = {{.name = "threads"}}};
    snprintf(changes.change[0].value, DC_TEXT_MAX, "%d", threads);
    DC_TRY(dc_setup_reopen(&run->run, data ? &given : &run->own, folder, &changes));
    DC_TRY(dc_setup_val(&run->run, &run->val, folder));
    run->started = true;
    const dc_dataset *rows = data ? &data->data : &run->own;
    DC_TRY(open_watch(run, rows));
    return dc_run_resume(&run->run, rows, folder);
}

dcrl_status dcrl_run_resume(dcrl_run **run, const dcrl_dataset *data, const char *folder,
                            int threads) {
    DC_API_GIVEN(run);
    *run = NULL;
    DC_API_GIVEN(folder);
    DC_API_THREADS(threads);
    dc_status status = new_handle(run);
    if (status == DC_OK) status = resume(*run, data, folder, threads);
    return give(run, status);
}

static void tell(void *ctx, const dc_run *inner, double seconds) {
    dcrl_run *run = ctx;
    dcrl_progress p = {inner->step, inner->options.steps, seconds, inner->last[0]};
    if (run->progress(run->ctx, &p) != 0) atomic_store(&run->stop, 1);
}

static void tell_row(void *ctx, const dc_run *inner, double seconds, double rate) {
    dcrl_run *run = ctx;
    const char *names[DC_LOG_COLUMNS];
    int count = dc_run_column_count(inner);
    for (int i = 0; i < count; i++)
        names[i] = dc_run_column_name(inner, i);
    dcrl_row row = {inner->step, seconds, rate, count, names, inner->last};
    if (run->on_row(run->on_row_ctx, &row) != 0) atomic_store(&run->stop, 1);
}

static void tell_score(void *ctx, const dc_run *inner, const dc_eval_score *score) {
    dcrl_run *run = ctx;
    dcrl_score told = dc_api_score(score);
    if (run->on_score(run->on_score_ctx, inner->step, &told) != 0) atomic_store(&run->stop, 1);
}

dcrl_status dcrl_run_on_row(dcrl_run *run, dcrl_row_fn *fn, void *ctx) {
    DC_API_GIVEN(run);
    run->on_row = fn;
    run->on_row_ctx = ctx;
    return dc_api_status(DC_OK);
}

dcrl_status dcrl_run_on_score(dcrl_run *run, dcrl_score_fn *fn, void *ctx) {
    DC_API_GIVEN(run);
    run->on_score = fn;
    run->on_score_ctx = ctx;
    return dc_api_status(DC_OK);
}

dcrl_status dcrl_run_train(dcrl_run *run, dcrl_progress_fn *progress, void *ctx) {
    DC_API_GIVEN(run);
    if (!run->started || !run->run.folder)
        return dc_api_status(
            dc_fail(DC_USAGE, "call dcrl_run_start first", "the run has not started"));
    run->progress = progress;
    run->ctx = ctx;
    run->run.progress = progress ? tell : NULL;
    run->run.progress_ctx = run;
    run->run.on_row = run->on_row ? tell_row : NULL;
    run->run.on_row_ctx = run;
    run->watch.on_score = run->on_score ? tell_score : NULL;
    run->watch.on_score_ctx = run;
    run->run.stop = &run->stop;
    dc_status status = dc_run_train(&run->run);
    atomic_store(&run->stop, 0);
    return dc_api_status(status);
}

void dcrl_run_stop(dcrl_run *run) {
    if (run) atomic_store(&run->stop, 1);
}

int64_t dcrl_run_step(const dcrl_run *run) {
    return run ? run->run.step : 0;
}

void dcrl_run_free(dcrl_run *run) {
    if (!run) return;
    dc_run_fini(&run->run);
    dc_watch_close(&run->watch);
    dc_dataset_fini(&run->own);
    dc_dataset_fini(&run->val);
    free(run);
}
