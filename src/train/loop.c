// The training loop, see run.h. It works in turns. In a turn a trainer (trainer.h), on the CPU or on a GPU, computes
// all steps up to the next log row, checkpoint or evaluation; then that row, checkpoint or evaluation is made.
// Checkpoints and logs go to the run's folder, progress to a callback.
//
// Several runs (seeds) train together as members of a population. The member with the fewest steps trains next, together
// with all members at the same step. So members that were stopped at different steps catch up with each other, and
// since each is a function of its own state alone, a member's results are those of a run by itself, to the bit.
#include "train/run.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "train/folder.h"
#include "train/held_out.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct loop {
    dc_run *runs;
    int count;
    // Wall clock when training began, moved forward by the time that evaluations take; and of the last progress.
    double start, last_progress;
    double rate;    // steps per second of the last turn; 0: there was none
    bool on_device; // the trainer has the latest state, not the host
    bool agreed;    // all ranks know that training stops
} loop;

enum { NO_MORE = -1 }; // steps of a turn, from rank 0 to the others: it was stopped

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
    // A score is the mean of the last evaluations, so as many evaluated checkpoints are kept, too.
    int64_t kept = 0, evaluated = 0;
    for (int i = 0; i < count; i++) {
        char path[DC_PATH_MAX];
        // A newer one could not be read when this run was resumed: a good one is not deleted for it.
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
                       "step %" PRId64
                       " is not saved: after a failure the device is at another step",
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

// Where NaN or Inf came from, by the same step on the CPU: the first node in forward order, else the gradient of a
// weight, else squares of gradients that Adam's second moment cannot hold.
static dc_status not_finite_where(dc_run *run) {
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

// Time that is none of training's.
static void pause_clock(loop *l, double seconds) {
    l->start += seconds;
    for (int i = 0; i < l->count; i++)
        l->runs[i].log_time += seconds;
}

// The time of an evaluation does not count as training. One that was stopped is repeated when the run goes on,
// since its row is missing.
static dc_status evaluate(loop *l, dc_run *run) {
    if (!run->evaluate || !run->folder) return DC_OK;
    double before = dc_now();
    dc_status status = run->evaluate(run->evaluate_ctx, run, dc_run_evaluates(run, run->step));
    pause_clock(l, dc_now() - before);
    return status == DC_INTERRUPTED ? stopped(run) : status;
}

// Held-out rows by the weights of now, on the CPU. The time that it takes is none of training's.
static dc_status measure_held_out(loop *l, dc_run *run) {
    if (!run->held_out || dc_ranks_rank(run->ranks) > 0) return DC_OK; // who keeps no log
    double before = dc_now();
    dc_status status = fetch(run);
    if (status == DC_OK)
        status =
            dc_held_out_measure(run->held_out, &run->agent, run->last + dc_run_metric_count(run));
    pause_clock(l, dc_now() - before);
    return status;
}

static dc_status log_row(loop *l, dc_run *run, double t) {
    double rate = (double)(run->step - run->log_step) / (t - run->log_time + 1e-9);
    double seconds = t - l->start;
    close_sums(run);
    run->log_time = t;
    run->log_step = run->step;
    DC_TRY(measure_held_out(l, run));
    int together = 0; // they share this time
    for (int i = 0; i < l->count; i++)
        together += l->runs[i].member >= 0;
    if (run->folder) DC_TRY(dc_folder_log(run, seconds, rate, together));
    if (run->on_row) run->on_row(run->on_row_ctx, run, seconds, rate);
    return DC_OK;
}

// Where training pauses or ends: a checkpoint, or for a run without a folder the weights back from the device.
static dc_status save_or_fetch(dc_run *run) {
    return run->folder ? dc_run_save(run) : fetch(run);
}

static dc_status finish(dc_run *run) {
    char path[DC_PATH_MAX];
    DC_TRY(save_or_fetch(run));
    if (!run->folder) return DC_OK;
    DC_TRY(dc_folder_path(path, run->folder, "DONE"));
    return dc_file_write_inside(path, "done\n", 5);
}

static bool is_log_step(const dc_run *run) {
    return run->step % run->options.log_every == 0 || run->step == run->options.steps;
}

// After the steps of a turn: log, save, evaluate, tell progress; at the end or when stopped, finish.
static dc_status after_steps(loop *l, dc_run *run) {
    const dc_run_options *o = &run->options;
    double t = dc_now();
    if (is_log_step(run)) DC_TRY(log_row(l, run, t));
    bool last = run->step == o->steps;
    bool stop = dc_ranks_any(run->ranks, run->stop && atomic_load(run->stop));
    l->agreed = l->agreed || stop;
    bool evaluates = dc_run_evaluates(run, run->step);
    if (run->step % o->save_every == 0 || evaluates || last || stop) DC_TRY(dc_run_save(run));
    if (evaluates) {
        DC_TRY(evaluate(l, run));
        t = dc_now();
    }
    if (run->progress && (t - l->last_progress > 0.2 || last)) {
        l->last_progress = t;
        run->progress(run->progress_ctx, run, t - l->start);
    }
    if (last) return finish(run);
    return stop ? stopped(run) : DC_OK;
}

// Record a failure in its run. After NaN or Inf in one member the others continue, so OK is returned then.
static dc_status keep_failure(loop *l, dc_run *run, dc_status status) {
    if (status == DC_OK || status == DC_INTERRUPTED) return status;
    run->ended = status;
    snprintf(run->error, sizeof run->error, "%s", dc_error());
    if (status != DC_NOT_FINITE) return status;
    if (l->count > 1) dc_log(DC_WARN, "seed %" PRId64 " stops: %s", run->options.seed, run->error);
    return DC_OK;
}

static bool is_training(const dc_run *run) {
    return run->ended == DC_OK && run->step < run->options.steps;
}

// --- turns ---

// Steps of the next turn: up to a log row, checkpoint, evaluation or the step of another member, and no more than take
// about a tenth of a second, so that progress and a stop do not wait.
static int64_t steps_until_event(const loop *l, const dc_run *run) {
    const dc_run_options *o = &run->options;
    const int64_t every[] = {o->log_every, o->save_every, o->eval_every ? o->eval_every : o->steps,
                             o->steps};
    int64_t least = run->trainer->ops->least_steps;
    int64_t most = l->rate * 0.1 < (double)least ? least : (int64_t)(l->rate * 0.1);
    for (int i = 0; i < 4; i++) {
        int64_t left = every[i] - run->step % every[i];
        most = left < most ? left : most;
    }
    for (int i = 0; i < l->count; i++) {
        int64_t left = l->runs[i].step - run->step;
        if (is_training(&l->runs[i]) && left > 0) most = left < most ? left : most;
    }
    return most;
}

// Give the trainer the members that stand at this step, and no others.
static dc_status select_members(loop *l, int64_t step) {
    bool marked[DC_RUNS_MAX], same = true;
    for (int i = 0; i < l->count; i++) {
        dc_run *run = &l->runs[i];
        marked[i] = is_training(run) && run->step == step;
        same = same && marked[i] == (run->member >= 0);
    }
    if (same && l->on_device) return DC_OK;
    for (int i = 0; i < l->count && l->on_device; i++)
        if (is_training(&l->runs[i])) DC_TRY(fetch(&l->runs[i]));
    if (!same) DC_TRY(dc_population_select(l->runs, l->count, marked));
    for (int i = 0; i < l->count; i++) {
        dc_run *run = &l->runs[i];
        if (marked[i])
            DC_TRY(run->trainer->ops->send(run->trainer, run->member, (uint64_t)step, run->sums));
    }
    l->on_device = true;
    return DC_OK;
}

// After a turn: the step of a member; of one with NaN or Inf, the node where they came from.
static dc_status after_turn(loop *l, dc_run *run, int64_t count, int64_t bad) {
    if (bad >= 0) {
        run->step = bad - 1;
        DC_TRY(run->trainer->ops->retrace(run->trainer, run->member, (uint64_t)run->step));
        return not_finite_where(run);
    }
    run->step += count;
    run->sum_count += count;
    return after_steps(l, run);
}

static dc_status train_steps(loop *l, dc_run *first, int64_t *count, int64_t *bad) {
    double *sums[DC_RUNS_MAX];
    DC_TRY(select_members(l, first->step));
    for (int i = 0; i < l->count; i++)
        if (l->runs[i].member >= 0) sums[l->runs[i].member] = l->runs[i].sums;
    *count = steps_until_event(l, first); // by this rank's clock
    dc_ranks_broadcast(first->ranks, 0, count, sizeof *count);
    if (*count == NO_MORE) return stopped(first);
    double start = dc_now();
    DC_TRY(first->trainer->ops->step(first->trainer, *count, bad, sums));
    l->rate = (double)*count / (dc_now() - start + 1e-9);
    return DC_OK;
}

// Train all members that are at the same step as `first`. Sums of metrics stay with the trainer until a log row closes
// them, so that they do not depend on how steps are divided into turns. Members log at the same steps (log_every is one
// for all), so the trainer's sums are cleared for all of them at once.
static dc_status train_turn(loop *l, dc_run *first) {
    int64_t count = 0, bad[DC_RUNS_MAX];
    DC_TRY(keep_failure(l, first, train_steps(l, first, &count, bad)));
    dc_status status = DC_OK;
    bool closed = false;
    for (int i = 0; i < l->count; i++) { // every member, also after one was stopped
        dc_run *run = &l->runs[i];
        if (run->member < 0) continue;
        dc_status own = keep_failure(l, run, after_turn(l, run, count, bad[run->member]));
        closed = closed || (run->ended == DC_OK && is_log_step(run));
        if (status == DC_OK || status == DC_INTERRUPTED) status = own != DC_OK ? own : status;
    }
    if (status == DC_OK && closed)
        status = keep_failure(l, first, first->trainer->ops->clear(first->trainer));
    return status;
}

// --- all together ---

// Of the members that train, the one with the fewest steps.
static dc_run *fewest_steps(const loop *l) {
    dc_run *found = NULL;
    for (int i = 0; i < l->count; i++)
        if (is_training(&l->runs[i]) && (!found || l->runs[i].step < found->step))
            found = &l->runs[i];
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
        DC_TRY(keep_failure(l, run, evaluate(l, run)));
        if (run->step >= run->options.steps) DC_TRY(keep_failure(l, run, finish(run)));
    }
    return DC_OK;
}

// One status for all members: the first error that is not NaN or Inf, else that training was stopped, else NaN or Inf.
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
        status = train_turn(&l, run);
    // Others wait for rank 0, which alone evaluates, and may have been stopped there.
    int64_t no_more = NO_MORE;
    if (status == DC_INTERRUPTED && !l.agreed && dc_ranks_rank(runs->ranks) == 0 &&
        fewest_steps(&l))
        dc_ranks_broadcast(runs->ranks, 0, &no_more, sizeof no_more);
    for (int i = 0; status != DC_OK && i < count; i++) // of what has not ended
        if (is_training(&runs[i])) (void)keep_failure(&l, &runs[i], save_or_fetch(&runs[i]));
    return outcome(&l, status);
}

dc_status dc_run_train(dc_run *run) {
    return dc_population_train(run, 1);
}
