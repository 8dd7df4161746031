// SIGBUS of a mapped file, see mapped.h. The kernel's list of mappings tells which file lies at an address, so the
// library need not keep one. Everything here may be called by a signal handler.
#define _XOPEN_SOURCE 700 // siginfo_t
#include "mapped.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

enum { LINE_SIZE = 4352 }; // a path of 4096 bytes and what stands before it

static bool read_line(int fd, char *line) {
    size_t n = 0;
    char c;
    while (read(fd, &c, 1) == 1 && c != '\n')
        if (n < LINE_SIZE - 1) line[n++] = c;
    line[n] = 0;
    return n > 0;
}

static uintptr_t read_hex(const char **text) {
    uintptr_t value = 0;
    for (;; (*text)++) {
        char c = **text;
        if (c >= '0' && c <= '9')
            value = value << 4 | (uintptr_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            value = value << 4 | (uintptr_t)(c - 'a' + 10);
        else
            return value;
    }
}

// The path of a line "from-to rights offset device inode path", if a file is mapped there.
static char *file_at(char *line, uintptr_t address) {
    const char *text = line;
    uintptr_t from = read_hex(&text), to = *text == '-' ? (text++, read_hex(&text)) : 0;
    return address >= from && address < to ? strchr(line, '/') : NULL;
}

static void tell(const char *text) {
    ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written; // there is nobody else to tell
}

static void on_bus(int number, siginfo_t *info, void *context) {
    static atomic_flag told = ATOMIC_FLAG_INIT;
    static char line[LINE_SIZE];
    (void)context;
    while (atomic_flag_test_and_set(&told)) // another thread tells
        pause();
    char *path = NULL;
    int fd = open("/proc/self/maps", O_RDONLY);
    while (!path && fd >= 0 && read_line(fd, line))
        path = file_at(line, (uintptr_t)info->si_addr);
    if (!path) {
        signal(number, SIG_DFL); // a bug: the instruction is tried again, and ends the program
        return;
    }
    for (char *c = path; *c; c++)
        if ((unsigned char)*c < 32 || *c == 127) *c = '?';
    tell(isatty(STDERR_FILENO) == 1 ? "\r\033[Kdcrl: " : "dcrl: "); // over a progress line
    tell(path);
    tell(" was shortened while it was read, or its disk failed: restore it; what was saved before "
         "is "
         "whole, and a run goes on with dcrl train --resume\n");
    _exit(1);
}

void cli_watch_mapped(void) {
    struct sigaction action = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}
