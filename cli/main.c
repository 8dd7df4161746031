// dcrl: finds the command, runs it, prints its error in one line and turns it into an exit status.
// What the library has to say meanwhile goes to standard error as warnings.
#include "cli.h"

#include "base/build.h"
#include "base/log.h"
#include "base/options.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct row {
    const char *name;
    cli_command *run;
    const char *help;
} row;

static const row commands[] = {
#define COMMAND(name, function, help) {#name, function, help},
#include "commands.def"
#undef COMMAND
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static void help(void) {
    puts("dcrl: offline goal-conditioned reinforcement learning over long horizons\n\n"
         "usage: dcrl COMMAND [...]      dcrl COMMAND --help says more\n");
    for (size_t i = 0; i < COMMANDS; i++)
        printf("  %-8s %s\n", commands[i].name, commands[i].help);
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

static dc_status dispatch(int argc, char **argv) {
    if (argc < 2) return dc_fail(DC_USAGE, "dcrl --help lists them", "a command is missing");
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help"))
        return help(), DC_OK;
    if (!strcmp(argv[1], "--version")) return puts(dc_build_id()), DC_OK;
    for (size_t i = 0; i < COMMANDS; i++)
        if (!strcmp(argv[1], commands[i].name)) return commands[i].run(argc - 2, argv + 2);
    return unknown(argv[1]);
}

static void show_log(void *ctx, dc_level level, const char *line) {
    (void)ctx;
    if (isatty(2) == 1) fprintf(stderr, "\r\033[K"); // over a progress line
    fprintf(stderr, "dcrl: %s%s\n", level == DC_WARN ? "warning: " : "", line);
}

// A standard stream that the caller closed would be the next file that is opened, and messages
// would go into a checkpoint. Opened the wrong way round, its use fails instead.
static void guard_streams(void) {
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) < 0) return;
}

int main(int argc, char **argv) {
    guard_streams();
    signal(SIGXFSZ, SIG_IGN); // a file past ulimit -f is an error of its write, not the end
    dc_log_set(show_log, NULL);
    dc_status status = dispatch(argc, argv);
    if (status == DC_OK && (fflush(stdout) != 0 || ferror(stdout)))
        status = dc_fail(DC_IO, "check where it goes: a full disk, a closed pipe",
                         "standard output could not be written");
    if (status == DC_OK) return 0;
    fprintf(stderr, "dcrl: %s\n", dc_error());
    return status == DC_USAGE ? 2 : 1;
}
