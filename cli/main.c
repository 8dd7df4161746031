// dcrl: finds the command, runs it, prints its error in one line and turns it into an exit status.
// What the library has to say meanwhile goes to standard error as warnings.
#define _GNU_SOURCE // pthread_setattr_default_np
#include "cli.h"
#include "complete.h"
#include "mapped.h"
#include "ranks.h"

#include "base/build.h"
#include "base/log.h"
#include "base/options.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static const cli_row commands[] = {
#define COMMAND(name, function, help) {#name, function, help},
#include "commands.def"
#undef COMMAND
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static void help(void) {
    puts("dcrl: offline goal-conditioned reinforcement learning over long horizons\n\n"
         "usage: dcrl COMMAND [...]      dcrl help COMMAND says more      dcrl -V: version\n");
    for (size_t i = 0; i < COMMANDS; i++)
        printf("  %-10s %s\n", commands[i].name, commands[i].help);
    puts("\nexit status: 0 success, 1 failure, 2 wrong command line, 75 stopped by a signal: the "
         "same "
         "command goes on");
}

static dc_status unknown(const char *word) {
    const char *names[COMMANDS];
    for (size_t i = 0; i < COMMANDS; i++)
        names[i] = commands[i].name;
    const char *near = dc_nearest(word, names, COMMANDS);
    if (near)
        return dc_fail(DC_USAGE, NULL, "unknown command (%s): did you mean '%s'?", word, near);
    return dc_fail(DC_USAGE, "dcrl --help lists them", "unknown command (%s)", word);
}

static bool is(const char *word, const char *a, const char *b) {
    return !strcmp(word, a) || !strcmp(word, b);
}

static dc_status dispatch(int argc, char **argv) {
    static char asks[] = "--help";
    if (argc < 2 || is(argv[1], "--help", "-h")) return help(), DC_OK;
    if (is(argv[1], "--version", "-V")) return puts(dc_build_id()), DC_OK;
    if (!strcmp(argv[1], "complete")) return cli_complete(commands, COMMANDS, argc - 2, argv + 2);
    if (!strcmp(argv[1], "help")) { // dcrl help COMMAND [PART]: COMMAND [PART] --help
        if (argc == 2) return help(), DC_OK;
        for (int i = 1; i + 1 < argc; i++)
            argv[i] = argv[i + 1];
        argv[argc - 1] = asks;
    }
    for (size_t i = 0; i < COMMANDS; i++)
        if (!strcmp(argv[1], commands[i].name)) return commands[i].run(argc - 2, argv + 2);
    return unknown(argv[1]);
}

static void show_log(void *ctx, dc_level level, const char *line) {
    (void)ctx;
    if (!cli_ranks_leads()) return;                  // the others have the same to say
    if (isatty(2) == 1) fprintf(stderr, "\r\033[K"); // over a progress line
    fprintf(stderr, "dcrl: %s%s\n", level == DC_WARN ? "warning: " : "", line);
}

// A standard stream that the caller closed would be the next file that is opened, and messages
// would go into a checkpoint. Opened the wrong way round, its use fails instead.
static void guard_streams(void) {
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) < 0) return;
}

// A stack that overflows ends the process without a word. So it may grow to what suffices, here and in threads,
// and where it may not nothing is begun.
static dc_status grow_stack(void) {
    enum { STACK = 1 << 20, LEAST = 1 << 19 };
    struct rlimit limit;
    pthread_attr_t threads;
    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= STACK) return DC_OK;
    limit.rlim_cur = limit.rlim_max < STACK ? limit.rlim_max : STACK;
    if (limit.rlim_cur < LEAST || setrlimit(RLIMIT_STACK, &limit) != 0)
        return dc_fail(DC_UNSUPPORTED, "raise the limit (ulimit -s)",
                       "a stack of %lld KB is too small", (long long)(limit.rlim_cur >> 10));
    if (pthread_getattr_default_np(&threads) != 0) return DC_OK;
    if (pthread_attr_setstacksize(&threads, limit.rlim_cur) == 0)
        (void)pthread_setattr_default_np(&threads);
    pthread_attr_destroy(&threads);
    return DC_OK;
}

// Where a process may have so much address space and no more (ulimit -v), a stack that cannot grow ends it without a word,
// too. So what commands need of it is taken while that can be told.
__attribute__((noinline)) static void touch_stack(void) {
    enum { NEED = 3 << 17, PAGE = 4096 };
    char room[NEED];
    volatile char *at = room + NEED;
    for (int page = 1; page <= NEED / PAGE; page++)
        at[-PAGE * page] = 0;
}

static dc_status take_stack(void) {
    enum { ROOM = 1 << 20 };
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return DC_OK;
    void *room = mmap(NULL, ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return dc_fail(DC_NO_MEMORY, "raise the limit (ulimit -v)", "no memory for a stack");
    munmap(room, ROOM);
    touch_stack();
    return DC_OK;
}

// Exit status of what a signal stopped and may go on: sysexits.h's "try again", for schedulers.
enum { STOPPED = 75 };

int main(int argc, char **argv) {
    guard_streams();
    signal(SIGXFSZ, SIG_IGN); // a file past ulimit -f is an error of its write, not the end
    cli_watch_mapped();
    dc_log_set(show_log, NULL);
    dc_status status = grow_stack();
    if (status == DC_OK) status = take_stack();
    if (status == DC_OK) status = dispatch(argc, argv);
    if (status == DC_OK && (fflush(stdout) != 0 || ferror(stdout)))
        status = dc_fail(DC_IO, "check where it goes: a full disk, a closed pipe",
                         "standard output could not be written");
    int code = status == DC_OK            ? 0
               : status == DC_USAGE       ? 2
               : status == DC_INTERRUPTED ? STOPPED
                                          : 1;
    cli_ranks_end(status, code);
    return code;
}
