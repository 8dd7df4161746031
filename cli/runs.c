// Shared handling of runs, see runs.h.
#include "runs.h"

#include "base/file.h"
#include "base/log.h"
#include "train/folder.h"
#include "train/pick.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

atomic_int
    cli_stop; // an atomic, not sig_atomic_t: other threads than the one with the signal read it

enum { QUIET_SECONDS = 2 }; // what is over by then needs no progress

static void on_signal(int number) {
    (void)number;
    atomic_store(&cli_stop, 1);
}

static bool is_stopped(void) {
    return atomic_load(&cli_stop) != 0;
}

void cli_catch_signals(void) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    dc_file_stop = is_stopped;
    sigemptyset(&action.sa_mask);
    static const int stops[] = {SIGINT, SIGTERM, SIGUSR1, SIGXCPU, SIGHUP};
    struct sigaction before;
    for (size_t i = 0; i < sizeof stops / sizeof stops[0]; i++) {
        bool hangup = stops[i] == SIGHUP && sigaction(SIGHUP, NULL, &before) == 0;
        if (hangup && before.sa_handler == SIG_IGN)
            continue; // nohup: it goes on without a terminal
        sigaction(stops[i], &action, NULL);
    }
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

dc_status cli_seeds(const char *text, int64_t *seeds, int max, int *count) {
    const char *hint = "write --seed 0, --seed 0,1,2 or --seed 0-2";
    *count = 0;
    for (const char *c = text;;) {
        char *end;
        if (*c < '0' || *c > '9')
            return dc_fail(DC_USAGE, hint, "seeds are whole numbers (%s)", text);
        long long first = strtoll(c, &end, 10), last = first;
        if (*end == '-' && end[1] >= '0' && end[1] <= '9') last = strtoll(end + 1, &end, 10);
        if (first > 9000000000000000 || last < first || last - first >= max ||
            *count + (int)(last - first) >= max)
            return dc_fail(DC_USAGE, hint, "impossible or too many seeds (%s)", text);
        for (long long s = first; s <= last; s++)
            seeds[(*count)++] = s;
        if (!*end) return DC_OK;
        if (*end != ',') return dc_fail(DC_USAGE, hint, "seeds are whole numbers (%s)", text);
        c = end + 1;
    }
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
    if (line->quiet) return;
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

void cli_progress_show(void *ctx, int64_t done, int64_t all) {
    cli_progress *p = ctx;
    double now = dc_now();
    if (!done) p->start = now;
    double seconds = now - p->start, rate = (double)done / (seconds + 1e-9);
    if (seconds < QUIET_SECONDS || now - p->shown < 0.1) return;
    p->shown = now;
    char text[160], eta[32];
    snprintf(text, sizeof text, "%s %" PRId64 "/%" PRId64 " %s (%.0f%%)  %.*f %s/s  ETA %s",
             p->what, done, all, p->unit, 100.0 * (double)done / (double)all, rate < 10, rate,
             p->unit, cli_duration((double)(all - done) / (rate + 1e-9), eta));
    cli_line_show(p->line, text);
}

dc_eval_progress cli_progress_on(cli_progress *progress, cli_line *line, const char *what,
                                 const char *unit) {
    *progress = (cli_progress){line, what, unit, 0, 0};
    return (dc_eval_progress){cli_progress_show, progress};
}

dc_status cli_run_pick(cli_pick *pick, const char *folder, int64_t step) {
    *pick = (cli_pick){.step = step};
    DC_TRY(dc_folder_run(pick->folder, folder));
    folder = pick->folder;
    DC_TRY(dc_run_env(folder, pick->env));
    if (!*pick->env)
        return dc_fail(DC_BAD_INPUT,
                       "dcrl report RUN -o page.html shows what it learned on held-out rows; "
                       "docs/api.md plays a policy in a program of your own; data of dcrl list "
                       "envs are trained on with dcrl train --env",
                       "%s was trained on data without an environment", folder);
    DC_TRY(dc_env_find(&pick->spec, pick->env));
    DC_TRY(dc_pick_in(folder, &pick->step));
    if (pick->step < 0) return dc_fail(DC_BAD_INPUT, "train first", "%s has no checkpoint", folder);
    return dc_folder_checkpoint(pick->path, folder, pick->step);
}
