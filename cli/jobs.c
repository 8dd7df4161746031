// Jobs, see jobs.h. A child gets SIGTERM when this process dies, so that none is left behind by kill -9.
#define _DEFAULT_SOURCE // usleep
#include "jobs.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS_MAX = 4096 };

// ---- command lines ----

static dc_status no_memory(void) {
    return dc_fail(DC_NO_MEMORY, NULL, "no memory for a command line");
}

// Room for one more word, a flag for a check, and the NULL behind it.
static dc_status make_room(cli_job *j) {
    if (j->word_count + 3 <= j->room) return DC_OK;
    if (j->room >= WORDS_MAX) return dc_fail(DC_USAGE, NULL, "the command line is too long");
    int room = j->room ? 2 * j->room : 32;
    char **words = realloc(j->words, (size_t)room * sizeof *words);
    if (!words) return no_memory();
    j->words = words;
    j->room = room;
    return DC_OK;
}

dc_status cli_job_word(cli_job *j, const char *format, ...) {
    va_list values;
    char word[8192];
    va_start(values, format);
    int n = vsnprintf(word, sizeof word, format, values);
    va_end(values);
    if (n < 0 || n >= (int)sizeof word)
        return dc_fail(DC_USAGE, NULL, "the command line is too long");
    DC_TRY(make_room(j));
    char *copy = strdup(word);
    if (!copy) return no_memory();
    j->words[j->word_count++] = copy;
    j->words[j->word_count] = NULL;
    return DC_OK;
}

void cli_job_fini(cli_job *j) {
    for (int i = 0; i < j->word_count; i++)
        free(j->words[i]);
    free(j->words);
    j->words = NULL;
    j->word_count = j->room = 0;
}

// ---- processes ----

// Become the program with these words; output goes where the file descriptors say. Does not return.
static void become(char *const *words, int out, int error, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(CLI_STOPPED); // it died before that was said
    dup2(out, 1);
    dup2(error, 2);
    execv("/proc/self/exe", words);
    dprintf(2, "dcrl: the program cannot be started again (%s)\n", strerror(errno));
    _exit(1);
}

static dc_status no_process(void) {
    return dc_fail(DC_IO, "see ulimit -u", "no process for a run can be started (%s)",
                   strerror(errno));
}

dc_status cli_job_check(cli_job *j) {
    int ends[2], none = open("/dev/null", O_RDWR | O_CLOEXEC), status = 0;
    char text[2048] = "", flag[] = "--dry-run";
    if (none < 0 || pipe(ends) != 0) return no_process();
    pid_t self = getpid();
    j->words[j->word_count] = flag;
    j->words[j->word_count + 1] = NULL;
    pid_t pid = fork();
    if (pid == 0) become(j->words, none, ends[1], self);
    j->words[j->word_count] = NULL;
    close(none);
    close(ends[1]);
    for (size_t used = 0; pid > 0 && used + 1 < sizeof text;) {
        ssize_t n = read(ends[0], text + used, sizeof text - 1 - used);
        if (n <= 0) break;
        used += (size_t)n;
    }
    close(ends[0]);
    if (pid < 0) return no_process();
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return DC_OK;
    text[strcspn(text, "\n")] = 0;
    const char *said = !strncmp(text, "dcrl: ", 6) ? text + 6 : text;
    return dc_fail(DC_USAGE, NULL, "%s", *said ? said : "a run cannot be checked");
}

dc_status cli_job_start(cli_job *j, int out) {
    int log;
    pid_t self = getpid();
    DC_TRY(dc_open_inside(j->log, O_WRONLY | O_CREAT | O_APPEND, &log));
    j->pid = fork();
    if (j->pid == 0) become(j->words, out < 0 ? log : out, log, self);
    close(log);
    if (j->pid > 0) return DC_OK;
    j->pid = 0;
    return no_process();
}

// Children that ended since the last call.
static void collect(cli_job *jobs, int count) {
    for (int i = 0; i < count; i++) {
        cli_job *j = &jobs[i];
        int status;
        if (!j->pid || waitpid(j->pid, &status, WNOHANG) != j->pid) continue;
        j->pid = 0;
        j->over = true;
        bool stopped = WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM; // before it caught that
        j->status = WIFEXITED(status) ? WEXITSTATUS(status)
                    : stopped         ? CLI_STOPPED
                                      : 128 + WTERMSIG(status);
    }
}

// ---- many ----

typedef struct tally {
    int running, over, next; // next: the first that is to be started; -1: none
    int before;              // were over at the start
    double start;
} tally;

static tally count_jobs(const cli_job *jobs, int count, const tally *before) {
    tally t = {.next = -1, .before = before->before, .start = before->start};
    for (int i = count; i-- > 0;) {
        t.running += jobs[i].pid != 0;
        t.over += jobs[i].over;
        if (!jobs[i].pid && !jobs[i].over) t.next = i;
    }
    return t;
}

static void show(const tally *t, int count, const char *what, cli_line *line) {
    char text[160], eta[32];
    int done = t->over - t->before;
    double each = (dc_now() - t->start) / (done ? done : 1);
    if (!what) return;
    int n = snprintf(text, sizeof text, "%d of %d %s done, %d running", t->over, count, what,
                     t->running);
    if (done)
        snprintf(text + n, sizeof text - (size_t)n, "  ETA %s",
                 cli_duration(each * (count - t->over), eta));
    cli_line_show(line, text);
}

static void stop_all(const cli_job *jobs, int count) {
    for (int i = 0; i < count; i++)
        if (jobs[i].pid) kill(jobs[i].pid, SIGTERM);
}

dc_status cli_jobs_run(cli_job *jobs, int count, int side_by_side, const char *what) {
    cli_line line;
    cli_line_init(&line);
    line.quiet = !what;
    bool told = false;
    dc_status status = DC_OK;
    tally t = {.start = dc_now()};
    t.before = count_jobs(jobs, count, &t).over;
    for (;;) {
        collect(jobs, count);
        t = count_jobs(jobs, count, &t);
        bool stop = status != DC_OK || atomic_load(&cli_stop);
        if (stop && !told) stop_all(jobs, count);
        told = told || stop;
        if (!t.running && (stop || t.next < 0)) break;
        if (!stop && t.next >= 0 && t.running < side_by_side) {
            status = cli_job_start(&jobs[t.next], -1);
            continue;
        }
        show(&t, count, what, &line);
        usleep(10000);
    }
    cli_line_clear(&line);
    return status;
}
