// Sweeps, see sweep.h. A command becomes axes (what has several values), axes become command lines of single runs,
// and those run as children of this process: a run that fails or is killed takes no other one with it, and each
// goes on by itself when its command comes again.
#include "sweep.h"

#include "jobs.h"
#include "runs.h"

#include "base/file.h"
#include "base/json.h"
#include "train/folder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { AXES_MAX = 8, VALUES_MAX = 64, SWEEP_MAX = 1000 };

typedef struct axis {
    const char *key; // "alpha", "agent", "preset"
    char text[4096]; // the values, split
    char *value[VALUES_MAX];
    int count;
    int set; // number among --set; -1: a flag or the preset
} axis;

typedef struct sweep {
    const cli_sweep_command *command;
    axis axes[AXES_MAX];
    int axis_count;
    cli_job *jobs;
    int count, side_by_side, threads; // threads 0: as the command says
} sweep;

// ---- axes ----

// Whether a comma separates values of a key: not in a list (hidden=16,16), nor in free text.
static bool takes_many(const char *key) {
    const dc_option *o = dc_options_find(dc_run_table, key);
    for (int i = 0; !o && dc_algos[i]; i++)
        o = dc_options_find(dc_algos[i]->options, key);
    return o && o->kind != DC_LIST && o->kind != DC_TEXT;
}

static bool set_has_many(const char *pair, char key[64]) {
    size_t n = strcspn(pair, "=");
    snprintf(key, 64, "%.*s", (int)(n < 63 ? n : 63), pair);
    return strchr(pair + n, ',') && takes_many(key);
}

bool cli_sweeps(const cli_args *args, const dc_run_options *run) {
    char key[64];
    bool many = args->word_count > 1 || strchr(run->agent, ',') || strchr(run->env, ',');
    for (int i = 0; i < args->set_count; i++)
        many = many || set_has_many(args->sets[i], key);
    return many;
}

static dc_status add_value(axis *a, char *value) {
    if (!*value)
        return dc_fail(DC_USAGE, "write key=1,2,3", "a value of the sweep is empty (%s)", a->key);
    for (int i = 0; i < a->count; i++)
        if (!strcmp(a->value[i], value))
            return dc_fail(DC_USAGE, "name each value once", "two runs are the same (%s=%s)",
                           a->key, value);
    if (a->count == VALUES_MAX)
        return dc_fail(DC_USAGE, NULL, "more than %d values (%s)", VALUES_MAX, a->key);
    a->value[a->count++] = value;
    return DC_OK;
}

static dc_status add_axis(sweep *s, const char *key, const char *values, int set) {
    if (s->axis_count == AXES_MAX)
        return dc_fail(DC_USAGE, NULL, "more than %d options have several values", AXES_MAX);
    axis *a = &s->axes[s->axis_count++];
    *a = (axis){.key = key, .set = set};
    if (strlen(values) >= sizeof a->text)
        return dc_fail(DC_USAGE, NULL, "too many values (%s)", key);
    snprintf(a->text, sizeof a->text, "%s", values);
    char *rest = a->text;
    for (char *v; (v = cli_split(&rest, ','));)
        DC_TRY(add_value(a, v));
    return DC_OK;
}

static dc_status find_axes(sweep *s) {
    const cli_args *args = s->command->args;
    const dc_run_options *run = s->command->run;
    if (args->word_count > 1) {
        dc_text names;
        dc_text_init(&names);
        for (int i = 0; i < args->word_count; i++)
            dc_text_add(&names, "%s%s", i ? "," : "", args->words[i]);
        dc_status status = dc_text_status(&names);
        if (status == DC_OK) status = add_axis(s, "preset", names.bytes, -1);
        dc_text_fini(&names);
        DC_TRY(status);
    }
    if (strchr(run->agent, ',')) DC_TRY(add_axis(s, "agent", run->agent, -1));
    if (strchr(run->env, ',')) DC_TRY(add_axis(s, "env", run->env, -1));
    for (int i = 0; i < args->set_count; i++) {
        char key[64];
        if (!set_has_many(args->sets[i], key)) continue;
        const dc_option *o = dc_options_find(dc_run_table, key);
        for (int k = 0; !o; k++)
            o = dc_options_find(dc_algos[k]->options, key);
        DC_TRY(add_axis(s, o->name, strchr(args->sets[i], '=') + 1, i));
    }
    return DC_OK;
}

// ---- command lines ----

// The value of an axis in combination number `number`; NULL: there is no such axis.
static const char *value_of(const sweep *s, const char *key, int set, int number) {
    for (int i = s->axis_count; i-- > 0;) {
        const axis *a = &s->axes[i];
        if (a->set == set && (set >= 0 || !strcmp(a->key, key))) return a->value[number % a->count];
        number /= a->count;
    }
    return NULL;
}

// {env} and {preset} in the data's path stand for those of the run.
static dc_status data_word(const sweep *s, cli_job *j, int number) {
    char path[DC_PATH_MAX] = "";
    const char *from = s->command->run->data;
    static const char *const keys[] = {"env", "preset"};
    for (size_t used = 0; *from && used + 300 < sizeof path;) {
        const char *value = NULL;
        size_t n = 0;
        for (int k = 0; k < 2 && !value; k++) {
            n = strlen(keys[k]) + 2;
            if (*from == '{' && !strncmp(from + 1, keys[k], n - 2) && from[n - 1] == '}')
                value = value_of(s, keys[k], -1, number);
        }
        if (!value) n = 1;
        used += (size_t)snprintf(path + used, sizeof path - used, "%.*s",
                                 value ? (int)strlen(value) : 1, value ? value : from);
        from += n;
    }
    return cli_job_word(j, "--data=%s", path);
}

static dc_status flag_words(const sweep *s, cli_job *j, int number) {
    const cli_args *args = s->command->args;
    for (const dc_option *o = args->flags; o->name; o++) {
        static const char *const own[] = {"agent", "env", "data", "out", "jobs", "dry-run"};
        bool mine = !cli_args_given(args, o->name);
        for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
            mine = mine || !strcmp(o->name, own[i]);
        if (mine) continue;
        dc_text value;
        dc_text_init(&value);
        dc_options_value(o, args->config, &value);
        dc_status status = dc_text_status(&value);
        char flag[64];
        snprintf(flag, sizeof flag, "%s", o->name);
        for (char *c = flag; *c; c++)
            if (*c == '_') *c = '-';
        if (status == DC_OK)
            status = cli_job_word(j, "--%s=%s", flag, value.bytes ? value.bytes : "");
        dc_text_fini(&value);
        DC_TRY(status);
    }
    if (cli_args_given(args, "data")) DC_TRY(data_word(s, j, number));
    return s->threads ? cli_job_word(j, "--threads=%d", s->threads) : DC_OK;
}

static dc_status job_words(const sweep *s, cli_job *j, int number) {
    const cli_args *args = s->command->args;
    const char *preset = value_of(s, "preset", -1, number);
    DC_TRY(cli_job_word(j, "dcrl"));
    DC_TRY(cli_job_word(j, "train"));
    if (!preset && args->word_count) preset = args->words[0];
    if (preset) DC_TRY(cli_job_word(j, "%s", preset));
    for (int k = 0; k < 2; k++) {
        const char *key = k ? "env" : "agent", *value = value_of(s, key, -1, number);
        if (!value && cli_args_given(args, key))
            value = k ? s->command->run->env : s->command->run->agent;
        if (value) DC_TRY(cli_job_word(j, "--%s=%s", key, value));
    }
    DC_TRY(flag_words(s, j, number));
    for (int i = 0; i < args->set_count; i++) {
        const char *value = value_of(s, NULL, i, number), *pair = args->sets[i];
        size_t n = strcspn(pair, "=");
        DC_TRY(cli_job_word(j, "--set=%.*s=%s", (int)n, pair, value ? value : pair + n + 1));
    }
    return cli_job_word(j, "--out=%s", j->folder);
}

// OUT/agent=td-n,alpha=0.3
static dc_status name_job(const sweep *s, cli_job *j, int number) {
    size_t used = (size_t)snprintf(j->folder, sizeof j->folder, "%s/", s->command->out);
    for (int i = 0; i < s->axis_count && used < sizeof j->folder; i++) {
        const axis *a = &s->axes[i];
        used += (size_t)snprintf(j->folder + used, sizeof j->folder - used, "%s%s=%s", i ? "," : "",
                                 a->key, value_of(s, a->key, a->set, number));
    }
    if (used >= sizeof j->folder || used - strlen(s->command->out) > 240)
        return dc_fail(DC_USAGE, "sweep fewer options at once",
                       "the name of a run's folder would be too long");
    for (char *c = j->folder + strlen(s->command->out) + 1; *c; c++)
        if (*c == '/') *c = '_';
    snprintf(j->log, sizeof j->log, "%s.log", j->folder);
    return DC_OK;
}

static dc_status make_jobs(sweep *s) {
    int64_t all = 1;
    for (int i = 0; i < s->axis_count; i++)
        all *= s->axes[i].count;
    if (all > SWEEP_MAX)
        return dc_fail(DC_USAGE, "sweep fewer values at once", "%" PRId64 " runs are too many",
                       all);
    s->jobs = calloc((size_t)all, sizeof *s->jobs);
    if (!s->jobs) return dc_fail(DC_NO_MEMORY, NULL, "no memory for %" PRId64 " runs", all);
    s->count = (int)all;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int64_t jobs = s->command->jobs;
    if (!jobs) jobs = s->command->run->device ? 1 : cores;
    s->side_by_side = (int)(jobs < all ? jobs : all);
    if (!cli_args_given(s->command->args, "threads") && s->side_by_side > 1)
        s->threads = cores > s->side_by_side ? (int)(cores / s->side_by_side) : 1;
    for (int i = 0; i < s->count; i++) {
        DC_TRY(name_job(s, &s->jobs[i], i));
        DC_TRY(job_words(s, &s->jobs[i], i));
    }
    return DC_OK;
}

// ---- the end ----

// The page lies inside of the folder, so it is ours to open, which follows no link: `report` prints it.
static dc_status make_report(const sweep *s) {
    cli_job report = {.over = false};
    char path[DC_PATH_MAX];
    dc_save page;
    snprintf(report.log, sizeof report.log, "%s/report.log", s->command->out);
    DC_TRY(dc_folder_path(path, s->command->out, "report.html"));
    dc_folder_sweep(s->command->out);
    DC_TRY(dc_save_open_inside(&page, path));
    dc_status status = cli_job_word(&report, "dcrl");
    if (status == DC_OK) status = cli_job_word(&report, "report");
    if (status == DC_OK) status = cli_job_word(&report, "%s", s->command->out);
    if (status == DC_OK) status = cli_job_word(&report, "--format=html");
    if (status == DC_OK) status = cli_job_start(&report, page.fd);
    int code = 0;
    while (status == DC_OK && waitpid(report.pid, &code, 0) < 0 && errno == EINTR) {
    }
    cli_job_fini(&report);
    if (status == DC_OK && code != 0)
        status = dc_fail(DC_IO, "it says why", "there is no report: see %s", report.log);
    if (status == DC_OK) return dc_save_commit(&page);
    dc_save_abort(&page);
    return status;
}

static dc_status print_json(const sweep *s) {
    dc_text out;
    dc_text_init(&out);
    dc_text_add(&out, "{\"folder\": ");
    dc_json_quote(&out, s->command->out);
    dc_text_add(&out, ", \"report\": \"report.html\", \"runs\": [");
    for (int i = 0; i < s->count; i++) {
        dc_text_add(&out, "%s", i ? ", " : "");
        dc_json_quote(&out, s->jobs[i].folder);
    }
    dc_text_add(&out, "]}\n");
    dc_status status = dc_text_status(&out);
    if (status == DC_OK) fputs(out.bytes, stdout);
    dc_text_fini(&out);
    return status;
}

static dc_status outcome(const sweep *s) {
    int failed = 0, done = 0;
    const cli_job *first = NULL;
    for (int i = 0; i < s->count; i++) {
        const cli_job *j = &s->jobs[i];
        done += j->over && j->status == 0;
        if (!j->over || j->status == 0 || j->status == CLI_STOPPED) continue;
        failed++;
        if (!first) first = j;
    }
    if (failed)
        return dc_fail(DC_BAD_INPUT, "the log says why; the same command tries again",
                       "%d of %d runs failed (%s)", failed, s->count, first->log);
    if (done < s->count)
        return dc_fail(DC_INTERRUPTED, "the same command goes on",
                       "stopped; %d of %d runs are done", done, s->count);
    DC_TRY(make_report(s));
    if (s->command->args->json) return print_json(s);
    if (s->command->args->quiet) return DC_OK;
    printf("trained %d runs in %s; %s/report.html compares them\n", s->count, s->command->out,
           s->command->out);
    return DC_OK;
}

static dc_status run_sweep(sweep *s) {
    DC_TRY(find_axes(s));
    DC_TRY(make_jobs(s));
    for (int i = 0; i < s->count; i++) {
        DC_TRY(dc_folder_inside(s->jobs[i].folder));
        DC_TRY(cli_job_check(&s->jobs[i]));
    }
    DC_TRY(dc_run_refuse(s->command->out));
    DC_TRY(dc_folder_make(s->command->out));
    if (!s->command->args->quiet)
        printf("%d runs, %d at a time, in %s\n", s->count, s->side_by_side, s->command->out);
    fflush(stdout);
    cli_catch_signals();
    DC_TRY(
        cli_jobs_run(s->jobs, s->count, s->side_by_side, s->command->args->quiet ? NULL : "runs"));
    return outcome(s);
}

dc_status cli_sweep(const cli_sweep_command *command) {
    if (!*command->out)
        return dc_fail(DC_USAGE, "write --out DIR", "a folder for the runs is missing");
    sweep *s = calloc(1, sizeof *s);
    if (!s) return dc_fail(DC_NO_MEMORY, NULL, "no memory for a sweep");
    s->command = command;
    dc_status status = run_sweep(s);
    for (int i = 0; i < s->count; i++)
        cli_job_fini(&s->jobs[i]);
    free(s->jobs);
    free(s);
    return status;
}
