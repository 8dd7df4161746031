// Making what a plan wants, see paper.h: data sets one after the other, then runs side by side, then maps and the
// page. Whatever was made stays, so the same command goes on with the rest; what fails takes nothing else with it.
#define _DEFAULT_SOURCE // usleep, flock
#include "paper.h"

#include "base/file.h"
#include "report/experiment_page.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { PATIENCE = 60 }; // seconds for processes of a killed command to save and end

typedef struct outcome {
    int failed, open;          // jobs; open: not begun, or stopped
    char log[DC_PATH_MAX + 8]; // of the first that failed
} outcome;

static dc_status no_memory(void) {
    return dc_fail(DC_NO_MEMORY, NULL, "no memory for the list of runs");
}

// ---- one command at a time ----

// Lock a file until it is closed. Children inherit it, so that those of a killed command still hold it.
// limit: seconds; 0: none.
static dc_status hold(const char *path, int how, double limit, int *fd) {
    double start = dc_now();
    DC_TRY(dc_open_inside(path, O_RDWR | O_CREAT, fd));
    fcntl(*fd, F_SETFD, 0);
    while (flock(*fd, how | LOCK_NB) != 0) {
        bool waits = errno == EWOULDBLOCK || errno == EINTR;
        bool late = limit > 0 && dc_now() - start > limit;
        if (waits && !late && !atomic_load(&cli_stop)) {
            usleep(20000);
            continue;
        }
        dc_status status =
            atomic_load(&cli_stop)
                ? dc_fail(DC_INTERRUPTED, "the same command goes on", "stopped before it began")
            : waits ? dc_fail(DC_IO, "wait for it, or give another --out",
                              "another dcrl paper is at work here (%s)", path)
                    : dc_fail(DC_IO, "see the disk's file system", "%s cannot be locked (%s)", path,
                              strerror(errno));
        close(*fd);
        *fd = -1;
        return status;
    }
    return DC_OK;
}

// ---- jobs ----

static void count(const cli_job *jobs, int job_count, outcome *o) {
    for (int i = 0; i < job_count; i++) {
        const cli_job *j = &jobs[i];
        bool open = !j->over || j->status == CLI_STOPPED;
        o->open += open;
        if (open || j->status == 0) continue;
        if (!o->failed) snprintf(o->log, sizeof o->log, "%s", j->log);
        o->failed++;
    }
}

static dc_status run_jobs(cli_job *jobs, int job_count, int side_by_side, const char *what,
                          outcome *o) {
    for (int i = 0; i < job_count; i++) { // the log lies beside what is made
        char folder[DC_PATH_MAX];
        snprintf(folder, sizeof folder, "%s", jobs[i].folder);
        char *slash = strrchr(folder, '/');
        if (slash) *slash = 0;
        DC_TRY(dc_folder_make(folder));
    }
    DC_TRY(cli_jobs_run(jobs, job_count, side_by_side, what));
    count(jobs, job_count, o);
    return DC_OK;
}

static void free_jobs(cli_job *jobs, int job_count) {
    for (int i = 0; jobs && i < job_count; i++)
        cli_job_fini(&jobs[i]);
    free(jobs);
}

// ---- data ----

// What a stopped conversion left: a folder of files.
static dc_status clear_part(const char *path) {
    const char *name;
    DC_TRY(dc_folder_inside(path));
    DIR *folder = opendir(path);
    if (!folder) return DC_OK;
    dc_status status = DC_OK;
    while ((status = dc_folder_next(folder, path, &name)) == DC_OK && name) {
        if (!strcmp(name, ".") || !strcmp(name, "..")) continue;
        unlinkat(dirfd(folder), name, 0);
    }
    closedir(folder);
    if (status == DC_OK && rmdir(path) != 0)
        status = dc_fail(DC_IO, "remove it", "%s cannot be cleared (%s)", path, strerror(errno));
    return status;
}

// Rename the finished store of a set to its own name.
static dc_status take_store(paper_set *set) {
    char part[DC_PATH_MAX + 8];
    snprintf(part, sizeof part, "%s.part", set->path);
    if (rename(part, set->path) == 0) return DC_OK;
    return dc_fail(DC_IO, "check the folder", "%s cannot be renamed (%s)", part, strerror(errno));
}

// One step of all sets that `which` marks: 0 gen, 1 convert.
static dc_status make_step(paper *p, paper_set *const *sets, int set_count, int which, outcome *o) {
    cli_job *jobs = calloc((size_t)set_count + 1, sizeof *jobs);
    int job_count = 0;
    dc_status status = jobs ? DC_OK : no_memory();
    for (int i = 0; i < set_count && status == DC_OK; i++) {
        char part[DC_PATH_MAX + 8];
        if (which && !sets[i]->shards) continue;
        snprintf(part, sizeof part, "%s.part", sets[i]->path);
        if (which) status = clear_part(part);
        if (status == DC_OK) status = paper_set_words(p, sets[i], which, &jobs[job_count++]);
    }
    if (status == DC_OK) status = run_jobs(jobs, job_count, 1, which ? "stores" : "data sets", o);
    for (int i = 0, k = 0; i < set_count && status == DC_OK; i++) {
        if (which && !sets[i]->shards) continue;
        const cli_job *j = &jobs[k++];
        sets[i]->there = j->over && j->status == 0 && (which || !sets[i]->shards);
        if (which && sets[i]->there) status = take_store(sets[i]);
    }
    free_jobs(jobs, job_count);
    return status;
}

static bool is_needed(const paper *p, int set) {
    for (int i = 0; i < p->run_count; i++)
        if (p->runs[i].set == set && (!p->runs[i].done || p->flags->only_data)) return true;
    return false;
}

static dc_status make_data(paper *p, outcome *o) {
    paper_set **sets = calloc((size_t)p->set_count + 1, sizeof *sets);
    int set_count = 0;
    if (!sets) return no_memory();
    for (int i = 0; i < p->set_count; i++)
        if (!p->sets[i].there && !p->sets[i].missing && is_needed(p, i))
            sets[set_count++] = &p->sets[i];
    dc_status status = make_step(p, sets, set_count, 0, o);
    if (status == DC_OK && !o->failed && !o->open) status = make_step(p, sets, set_count, 1, o);
    free(sets);
    return status;
}

// ---- runs ----

static int at_a_time(const paper *p, int job_count) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int64_t jobs = p->flags->jobs ? p->flags->jobs : p->flags->device ? 1 : cores;
    return (int)(jobs < job_count ? jobs : job_count > 0 ? job_count : 1);
}

// Cores of each of them.
static int threads_each(const paper *p, int side_by_side) {
    int64_t cores = p->flags->threads ? p->flags->threads : sysconf(_SC_NPROCESSORS_ONLN);
    return cores > side_by_side ? (int)(cores / side_by_side) : 1;
}

static bool can_run(const paper_run *r, const paper *p) {
    return !r->done && (r->set < 0 || p->sets[r->set].there);
}

static dc_status map_words(const paper_run *r, const paper *p, int threads, cli_job *job) {
    DC_TRY(paper_path(p, job->folder, r->cell->folder));
    snprintf(job->log, sizeof job->log, "%s.log", job->folder);
    DC_TRY(cli_job_word(job, "dcrl"));
    DC_TRY(cli_job_word(job, "map"));
    DC_TRY(cli_job_word(job, "%s", job->folder));
    DC_TRY(cli_job_word(job, "--episodes=%d", r->experiment->scale.episodes < 5 ? 1 : 5));
    return cli_job_word(job, "--threads=%d", threads);
}

// Train and evaluate, or (map) draw what was learned.
static dc_status make_runs(paper *p, bool map, outcome *o) {
    cli_job *jobs = calloc((size_t)p->run_count + 1, sizeof *jobs);
    int job_count = 0, left = 0;
    dc_status status = jobs ? DC_OK : no_memory();
    for (int i = 0; i < p->run_count; i++)
        left += can_run(&p->runs[i], p);
    int side_by_side = at_a_time(p, left), threads = threads_each(p, side_by_side);
    for (int i = 0; i < p->run_count && status == DC_OK; i++) {
        const paper_run *r = &p->runs[i];
        if (!can_run(r, p) || (map && r->experiment->view != DC_VIEW_MAPS)) continue;
        status = map ? map_words(r, p, threads, &jobs[job_count])
                     : paper_run_words(p, r, threads, &jobs[job_count]);
        job_count++;
    }
    if (status == DC_OK) status = run_jobs(jobs, job_count, side_by_side, map ? "maps" : "runs", o);
    free_jobs(jobs, job_count);
    return status;
}

// ---- the whole ----

static dc_status end(const paper *p, const outcome *o) {
    if (o->failed)
        return dc_fail(DC_BAD_INPUT, "the log says why; the same command tries again",
                       "%d of the data sets and runs failed (%s)", o->failed, o->log);
    if (o->open)
        return dc_fail(DC_INTERRUPTED, "the same command goes on",
                       "stopped; %d of the data sets and runs are not done", o->open);
    if (p->flags->task >= 0 || p->flags->only_data) return DC_OK;
    printf("%s/index.html: %d experiment%s, %d runs\n", p->flags->out, p->plan.count,
           p->plan.count == 1 ? "" : "s", p->run_count);
    return DC_OK;
}

static void announce(const paper *p) {
    int sets = 0, runs = 0;
    for (int i = 0; i < p->set_count; i++)
        sets += !p->sets[i].there && !p->sets[i].missing && is_needed(p, i);
    for (int i = 0; i < p->run_count; i++)
        runs += !p->runs[i].done;
    printf("%d data set%s and %d run%s to make in %s\n", sets, sets == 1 ? "" : "s", runs,
           runs == 1 ? "" : "s", p->flags->out);
    fflush(stdout);
}

// What is there is left as it is.
static dc_status make_all(paper *p, outcome *o) {
    if (!o->failed && !o->open) DC_TRY(make_data(p, o));
    if (p->flags->only_data || atomic_load(&cli_stop)) return DC_OK;
    DC_TRY(make_runs(p, false, o));
    return o->failed || o->open ? DC_OK : make_runs(p, true, o);
}

// The run of an array's task, alone; its data are made by the first task that needs them.
static dc_status choose_task(paper *p, int *fd) {
    char path[DC_PATH_MAX + 8];
    int64_t task = p->flags->task;
    if (task >= p->run_count)
        return dc_fail(DC_USAGE, "dcrl paper run --dry-run counts them",
                       "there is no task %d; tasks are 0 to %d", (int)task, p->run_count - 1);
    p->runs[0] = p->runs[task];
    p->run_count = 1;
    int set = p->runs[0].set;
    if (set < 0 || p->sets[set].there || p->runs[0].done) return DC_OK;
    DC_TRY(paper_path(p, path, "data"));
    DC_TRY(dc_folder_make(path));
    snprintf(path, sizeof path, "%s.lock", p->sets[set].path);
    DC_TRY(hold(path, LOCK_EX, 0, fd));
    return paper_look(&p->sets[set]); // another task may have made it
}

// Of a task the data, for which others wait, then the run.
static dc_status make_task(paper *p, outcome *o) {
    int fd = -1;
    dc_status status = choose_task(p, &fd);
    if (status == DC_OK) status = make_data(p, o);
    if (fd >= 0) close(fd);
    return status == DC_OK ? make_all(p, o) : status;
}

// Half-written files of a killed command: nobody else is at work here.
static dc_status clear_leftovers(const char *path) {
    const char *name;
    DIR *folder = opendir(path);
    if (!folder)
        return dc_fail(DC_IO, "check the path", "%s cannot be listed (%s)", path, strerror(errno));
    dc_status status;
    while ((status = dc_folder_next(folder, path, &name)) == DC_OK && name)
        if (dc_save_owner(name)) unlinkat(dirfd(folder), name, 0);
    closedir(folder);
    return status;
}

static dc_status make_held(paper *p) {
    outcome o = {.failed = 0};
    if (p->flags->task >= 0) {
        DC_TRY(make_task(p, &o));
        return end(p, &o);
    }
    DC_TRY(clear_leftovers(p->flags->out));
    DC_TRY(paper_write_plan(p));
    announce(p);
    DC_TRY(make_all(p, &o));
    if (!p->flags->only_data) DC_TRY(paper_write_page(p));
    return end(p, &o);
}

dc_status paper_make(paper *p) {
    char path[DC_PATH_MAX];
    int fd;
    DC_TRY(dc_folder_make(p->flags->out));
    DC_TRY(paper_path(p, path, "lock"));
    cli_catch_signals();
    DC_TRY(hold(path, p->flags->task < 0 ? LOCK_EX : LOCK_SH, PATIENCE, &fd));
    dc_status status = make_held(p);
    close(fd);
    return status;
}

// ---- the page ----

static dc_status write_text(const paper *p, const char *name, const dc_text *text) {
    char path[DC_PATH_MAX];
    DC_TRY(dc_text_status(text));
    DC_TRY(paper_path(p, path, name));
    return dc_file_write_inside(path, text->bytes ? text->bytes : "", text->used);
}

static dc_status write_csv(const paper *p, const dc_experiment *e) {
    char name[DC_TEXT_MAX];
    dc_text text;
    dc_text_init(&text);
    dc_experiment_csv(e, &text);
    snprintf(name, sizeof name, "%s.csv", e->name);
    dc_status status = write_text(p, name, &text);
    dc_text_fini(&text);
    return status;
}

dc_status paper_write_page(paper *p) {
    dc_text text;
    DC_TRY(dc_plan_read(&p->plan, p->flags->out));
    for (int i = 0; i < p->plan.count; i++)
        DC_TRY(write_csv(p, &p->plan.experiments[i]));
    dc_text_init(&text);
    dc_status status = dc_experiment_page(&p->plan, &text);
    if (status == DC_OK) status = write_text(p, "index.html", &text);
    dc_text_fini(&text);
    return status;
}
