// tool_measure OUT KILOBYTES COMMAND...: runs a command under a limit on its address space and writes its seconds of the
// processor, largest resident kilobytes and exit status. A small program does that, because a process begins with the memory of
// the one that starts it, and a script's is larger than what is to be measured.
#define _DEFAULT_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static double seconds(struct timeval t) {
    return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    struct rlimit limit = {strtoull(argv[2], NULL, 10) << 10, RLIM_INFINITY};
    pid_t child = fork();
    if (child == 0) {
        if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(127);
        execv(argv[3], argv + 3);
        _exit(127);
    }
    int status;
    struct rusage used;
    if (child < 0 || wait4(child, &status, 0, &used) != child) return 2;
    FILE *out = fopen(argv[1], "w");
    if (!out) return 2;
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    fprintf(out, "%.6f %ld %d\n", seconds(used.ru_utime) + seconds(used.ru_stime), used.ru_maxrss,
            code);
    return fclose(out) != 0;
}
