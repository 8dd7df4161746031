// The training loop, see run.h: one stretch of steps after the other, and what falls due after it. Steps come from
// a trainer (trainer.h), on the CPU or on a GPU; checkpoints and logs go to the folder, progress to a callback.
//
// The run with the fewest steps trains next, with all others that stand at that step. So members that a stop left at
// different steps come together again by themselves, and since each is a function of its own state, no member's bytes
// depend on the others.
#include "train/run.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "train/folder.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct loop {
    dc_run *runs;
    int count;
    double start, last_progress; // wall clock of this process's part; evaluations move start ahead
    bool sent;                   // the trainer holds the state of record, not the host
} loop;

// --- metrics ---

static void close_sums(dc_run *run) {
    for (int i = 0; i < dc_run_metric_count(run); i++)
        run->last[i] = run->sums[i] / (double)run->sum_count;
    memset(run->sums, 0, sizeof run->sums);
    run->sum_count = 0;
}

// --- saving ---

static dc_status not_finite(const dc_run *run, const char *part, const char *name, int64_t step) {
    char path[DC_PATH_MAX] = "no checkpoint";
    bool saved = run->saved_step >= 0;
    if (saved) DC_TRY(dc_folder_checkpoint(path, run->folder, run->saved_step));
    return dc_fail(DC_NOT_FINITE, "lower lr, or look at the data with dcrl data info",
                   "NaN or Inf in the %s %s at step %" PRId64 " (%s %s)", part, name, step, path,
                   saved ? "is intact" : "had been written");
}

static dc_status drop_old(const dc_run *run) {
    if (!run->options.keep) return DC_OK;
    int64_t *steps;
    int count;
    DC_TRY(dc_folder_checkpoints(run->folder, &steps, &count));
    int64_t kept = 0, evaluated = 0; // a score is the mean of the last evaluations: they stay, too
    for (int i = 0; i < count; i++) {
        char path[DC_PATH_MAX];
        // A newer one could not be read when this run was resumed: it must not push out a good one.
        if (steps[i] > run->step) continue;
        bool counts = dc_run_evaluates(run, steps[i]) && evaluated++ < run->options.keep;
        if (kept++ < run->options.keep || counts) continue;
        if (dc_folder_checkpoint(path, run->folder, steps[i]) == DC_OK) unlink(path);
    }
    free(steps);
    return DC_OK;
}

static dc_status fetch(dc_run *run) {
    return run->member >= 0 ? run->trainer->ops->fetch(run->trainer, run->member) : DC_OK;
}

dc_status dc_run_save(dc_run *run) {
    if (!run->folder || run->saved_step == run->step) return DC_OK;
    char path[DC_PATH_MAX];
    char bad[DC_WEIGHT_NAME];
    DC_TRY(fetch(run));
    if (dc_sampler_step(run->agent.sampler) != (uint64_t)run->step)
        return dc_fail(DC_IO, "dcrl train --resume goes on from the checkpoint before",
                       "step %" PRId64 " is not saved: a failure left the device further",
                       run->step);
    dc_checkpoint_find_bad(run, bad);
    if (*bad) return not_finite(run, "tensor", bad, run->step);
    DC_TRY(dc_folder_checkpoint(path, run->folder, run->step));
    DC_TRY(dc_folder_sync_logs(run));
    DC_TRY(dc_checkpoint_write(run, path));
    run->saved_step = run->step;
    return drop_old(run);
}

// --- the loop ---

// Where NaN or Inf came from: the first node in forward order, else the gradient of a weight, else
// squares of gradients that Adam's second moment could not hold.
static dc_status blame(dc_run *run) {
    const char *name = dc_exec_find_bad(&run->agent.exec, &dc_backend_cpu);
    if (name) return not_finite(run, "value of", name, run->step + 1);
    name = dc_params_find_bad(&run->agent.params, run->agent.params.slabs.grad);
    if (name) return not_finite(run, "gradient of", name, run->step + 1);
    return not_finite(run, "squared norm of", "the gradient", run->step + 1);
}

bool dc_run_evaluates(const dc_run *run, int64_t step) {
    const dc_run_options *o = &run->options;
    return o->eval_every && step > 0 && (step % o->eval_every == 0 || step == o->steps);
}

static dc_status stopped(const dc_run *run) {
    return dc_fail(DC_INTERRUPTED, NULL, "stopped at step %" PRId64 "%s%s", run->step,
                   run->folder ? "; continue with dcrl train --resume " : "",
                   run->folder ? run->folder : "");
}

// Evaluation takes its time beside the clock of training. One that was stopped is made up for when
// the run goes on, since its row is missing.
static dc_status evaluate(loop *l, dc_run *run) {
    if (!run->evaluate || !run->folder) return DC_OK;
    double before = dc_now();
    dc_status status = run->evaluate(run->evaluate_ctx, run, dc_run_evaluates(run, run->step));
    double seconds = dc_now() - before;
    l->start += seconds;
    for (int i = 0; i < l->count; i++)
        l->runs[i].log_time += seconds;
    return status == DC_INTERRUPTED ? stopped(run) : status;
}

static dc_status log_row(const loop *l, dc_run *run, double t) {
    close_sums(run);
    double rate = (double)(run->step - run->log_step) / (t - run->log_time + 1e-9);
    if (run->folder) DC_TRY(dc_folder_log(run, t - l->start, rate));
    run->log_time = t;
    run->log_step = run->step;
    return DC_OK;
}

static dc_status finish(dc_run *run) {
    char path[DC_PATH_MAX];
    if (!run->folder) return fetch(run);
    DC_TRY(dc_run_save(run));
    DC_TRY(dc_folder_path(path, run->folder, "DONE"));
    return dc_file_exists(path) ? DC_OK : dc_file_write(path, "done\n", 5);
}

static bool logs(const dc_run *run) {
    return run->step % run->options.log_every == 0 || run->step == run->options.steps;
}

// What falls due after a step: log, save, evaluate, progress, stop, the end.
static dc_status due(loop *l, dc_run *run) {
    const dc_run_options *o = &run->options;
    double t = dc_now();
    bool last = run->step == o->steps, stop = run->stop && atomic_load(run->stop);
    if (logs(run)) DC_TRY(log_row(l, run, t));
    bool evaluates = dc_run_evaluates(run, run->step);
    if (run->step % o->save_every == 0 || evaluates || last || stop) DC_TRY(dc_run_save(run));
    if (evaluates) DC_TRY(evaluate(l, run));
    if (evaluates) t = dc_now();
    if (run->progress && (t - l->last_progress > 0.2 || last)) {
        l->last_progress = t;
        run->progress(run->progress_ctx, run, t - l->start);
    }
    if (last) return finish(run);
    return stop ? stopped(run) : DC_OK;
}

// A failure is its run's. After NaN or Inf the others go on.
static dc_status settle(loop *l, dc_run *run, dc_status status) {
    if (status == DC_OK || status == DC_INTERRUPTED) return status;
    run->ended = status;
    snprintf(run->error, sizeof run->error, "%s", dc_error());
    if (status != DC_NOT_FINITE) return status;
    if (l->count > 1) dc_log(DC_WARN, "seed %" PRId64 " stops: %s", run->options.seed, run->error);
    return DC_OK;
}

static bool trains(const dc_run *run) {
    return run->ended == DC_OK && run->step < run->options.steps;
}

// --- stretches of steps ---

// Steps until something falls due or other members are reached, and no more than about a tenth of a second
// of them.
static int64_t stretch(const loop *l, const dc_run *run) {
    const dc_run_options *o = &run->options;
    const int64_t every[] = {o->log_every, o->save_every, o->eval_every ? o->eval_every : o->steps,
                             o->steps};
    double rate = (double)(run->step - run->first_step) / (dc_now() - l->start + 1e-9);
    int64_t least = run->trainer->ops->least_steps;
    int64_t most = rate * 0.1 < (double)least ? least : (int64_t)(rate * 0.1);
    for (int i = 0; i < 4; i++) {
        int64_t left = every[i] - run->step % every[i];
        most = left < most ? left : most;
    }
    for (int i = 0; i < l->count; i++) {
        int64_t left = l->runs[i].step - run->step;
        if (trains(&l->runs[i]) && left > 0) most = left < most ? left : most;
    }
    return most;
}

// Give the trainer the members that stand at this step, and no others.
static dc_status select_members(loop *l, int64_t step) {
    bool marked[DC_RUNS_MAX], same = true;
    for (int i = 0; i < l->count; i++) {
        dc_run *run = &l->runs[i];
        marked[i] = trains(run) && run->step == step;
        same = same && marked[i] == (run->member >= 0);
    }
    if (same && l->sent) return DC_OK;
    for (int i = 0; i < l->count && l->sent; i++)
        if (trains(&l->runs[i])) DC_TRY(fetch(&l->runs[i]));
    if (!same) DC_TRY(dc_population_select(l->runs, l->count, marked));
    for (int i = 0; i < l->count; i++) {
        dc_run *run = &l->runs[i];
        if (marked[i])
            DC_TRY(run->trainer->ops->send(run->trainer, run->member, (uint64_t)step, run->sums));
    }
    l->sent = true;
    return DC_OK;
}

// After a stretch: the step of a member; of one with NaN or Inf, the node where they came from.
static dc_status after(loop *l, dc_run *run, int64_t count, int64_t bad) {
    if (bad >= 0) {
        run->step = bad - 1;
        DC_TRY(run->trainer->ops->retrace(run->trainer, run->member, (uint64_t)run->step));
        return blame(run);
    }
    run->step += count;
    run->sum_count += count;
    return due(l, run);
}

static dc_status train_steps(loop *l, dc_run *first, int64_t *count, int64_t *bad) {
    double *sums[DC_RUNS_MAX];
    DC_TRY(select_members(l, first->step));
    for (int i = 0; i < l->count; i++)
        if (l->runs[i].member >= 0) sums[l->runs[i].member] = l->runs[i].sums;
    *count = stretch(l, first);
    return first->trainer->ops->step(first->trainer, *count, bad, sums);
}

// All members that stand where `first` does go on together. Sums stay with the trainer until a log row closes
// them, so that they do not depend on the stretches.
static dc_status turn(loop *l, dc_run *first) {
    int64_t count = 0, bad[DC_RUNS_MAX];
    DC_TRY(settle(l, first, train_steps(l, first, &count, bad)));
    if (first->ended != DC_OK) return DC_OK;
    dc_status status = DC_OK;
    bool closed = false;
    for (int i = 0; i < l->count; i++) { // all of them, also after one was stopped
        dc_run *run = &l->runs[i];
        if (run->member < 0) continue;
        dc_status own = settle(l, run, after(l, run, count, bad[run->member]));
        closed = closed || (run->ended == DC_OK && logs(run));
        if (status == DC_OK || status == DC_INTERRUPTED) status = own != DC_OK ? own : status;
    }
    if (status == DC_OK && closed)
        status = settle(l, first, first->trainer->ops->clear(first->trainer));
    return status;
}

// --- all together ---

// The run with the fewest steps, of those that train.
static dc_run *fewest_steps(const loop *l) {
    dc_run *found = NULL;
    for (int i = 0; i < l->count; i++)
        if (trains(&l->runs[i]) && (!found || l->runs[i].step < found->step)) found = &l->runs[i];
    return found;
}

static dc_status begin(loop *l) {
    for (int i = 0; i < l->count; i++) {
        dc_run *run = &l->runs[i];
        run->first_step = run->log_step = run->step;
        run->log_time = l->start;
        run->ended = DC_OK;
    }
    for (int i = 0; i < l->count; i++) {
        dc_run *run = &l->runs[i];
        DC_TRY(settle(l, run, evaluate(l, run)));
        if (run->step >= run->options.steps) DC_TRY(settle(l, run, finish(run)));
    }
    return DC_OK;
}

// One error for all: the first that was no NaN, a stop, then NaN.
static dc_status outcome(const loop *l, dc_status status) {
    const dc_run *worst = NULL;
    int ended = 0;
    for (int i = 0; i < l->count; i++) {
        const dc_run *run = &l->runs[i];
        if (run->ended == DC_OK) continue;
        ended++;
        bool worse = worst && worst->ended == DC_NOT_FINITE && run->ended != DC_NOT_FINITE;
        if (!worst || worse) worst = run;
    }
    if (!worst || (worst->ended == DC_NOT_FINITE && status == DC_INTERRUPTED)) return status;
    if (l->count == 1) return dc_fail(worst->ended, NULL, "%s", worst->error);
    return dc_fail(worst->ended, NULL, "%d of %d runs failed; seed %" PRId64 ": %s", ended,
                   l->count, worst->options.seed, worst->error);
}

dc_status dc_population_train(dc_run *runs, int count) {
    loop l = {.runs = runs, .count = count, .start = dc_now()};
    l.last_progress = l.start;
    dc_status status = begin(&l);
    for (dc_run *run; status == DC_OK && (run = fewest_steps(&l));)
        status = turn(&l, run);
    for (int i = 0; status != DC_OK && i < count; i++) // the others are at rest
        if (trains(&runs[i])) (void)settle(&l, &runs[i], dc_run_save(&runs[i]));
    return outcome(&l, status);
}

dc_status dc_run_train(dc_run *run) {
    return dc_population_train(run, 1);
}
