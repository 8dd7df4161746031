// Shared handling of runs, see runs.h.
#include "runs.h"

#include "base/build.h"

#include "base/log.h"
#include "env/lock.h"
#include "train/folder.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

atomic_int
    cli_stop; // an atomic, not sig_atomic_t: other threads than the one with the signal read it

static void on_signal(int number) {
    (void)number;
    atomic_store(&cli_stop, 1);
}

void cli_catch_signals(void) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
}

dc_status cli_run_sets(dc_run *run, const cli_args *args) {
    for (int i = 0; i < args->set_count; i++) {
        char key[DC_TEXT_MAX];
        size_t n = strcspn(args->sets[i], "=");
        if (n >= sizeof key)
            return dc_fail(DC_USAGE, NULL, "a key is too long (--set %.40s...)", args->sets[i]);
        memcpy(key, args->sets[i], n);
        key[n] = 0;
        DC_TRY(dc_run_set(run, key, args->sets[i] + n + 1));
    }
    return DC_OK;
}

dc_status cli_run_data(const dc_run *run, dc_dataset *data) {
    const dc_run_options *o = &run->options;
    if (*o->data) return dc_dataset_load(data, o->data);
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
    dc_status status = cli_run_data(run, data);
    if (status == DC_USAGE) return config_error(folder, status, dc_error());
    DC_TRY(status);
    return check_hash(hash, data, folder);
}

dc_status cli_run_reopen(dc_run *run, dc_dataset *data, const char *folder, int64_t threads) {
    dc_arena arena;
    dc_arena_init(&arena, 0);
    const dc_json *config;
    dc_status status = dc_run_read_config(folder, &arena, &config);
    if (status == DC_OK) status = reopen(run, data, folder, config, threads);
    dc_arena_fini(&arena);
    return status;
}

char *cli_split(char **rest, char mark) {
    char *part = *rest, *at = part ? strchr(part, mark) : NULL;
    if (at) *at++ = 0;
    *rest = at;
    return part;
}

const char *cli_duration(double seconds, char out[32]) {
    int64_t s = seconds > 0 && seconds < 1e9 ? (int64_t)(seconds + 0.5) : 0;
    if (s >= 3600)
        snprintf(out, 32, "%" PRId64 ":%02d:%02d", s / 3600, (int)(s / 60 % 60), (int)(s % 60));
    else
        snprintf(out, 32, "%d:%02d", (int)(s / 60), (int)(s % 60));
    return out;
}

void cli_line_init(cli_line *line) {
    *line = (cli_line){.terminal = isatty(2) == 1, .last = dc_now()};
}

void cli_line_show(cli_line *line, const char *text) {
    double t = dc_now();
    if (line->terminal) {
        fprintf(stderr, "\r\033[K%s", text);
        line->shown = true;
    } else if (t - line->last >= 10) {
        fprintf(stderr, "%s\n", text);
        line->last = t;
    }
}

void cli_line_clear(cli_line *line) {
    if (line->terminal && line->shown) fprintf(stderr, "\r\033[K");
    line->shown = false;
}

static dc_status find_step(cli_pick *pick) {
    int64_t *steps;
    int count;
    DC_TRY(dc_folder_checkpoints(pick->folder, &steps, &count));
    bool found = false;
    for (int i = 0; i < count && !found; i++)
        found = pick->step < 0 || steps[i] == pick->step;
    if (found && pick->step < 0) pick->step = steps[0];
    free(steps);
    if (found) return DC_OK;
    if (pick->step < 0)
        return dc_fail(DC_BAD_INPUT, "train first", "%s has no checkpoint", pick->folder);
    return dc_fail(DC_USAGE, "ls shows the steps that are kept",
                   "%s has no checkpoint of step %" PRId64, pick->folder, pick->step);
}

dc_status cli_run_pick(cli_pick *pick, const char *folder, int64_t step) {
    *pick = (cli_pick){.folder = folder, .step = step};
    DC_TRY(dc_setting_read(&pick->setting, folder));
    DC_TRY(find_step(pick));
    DC_TRY(dc_env_find(&pick->spec, pick->setting.env));
    return dc_folder_checkpoint(pick->path, folder, pick->step);
}
