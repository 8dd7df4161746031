// Ranks of a command, see ranks.h.
#include "ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

dc_ranks *cli_ranks;

static int exit_code = 1;

// The launcher ends what is left a second after a rank was killed: time enough for one line.
static void on_lost(int rank, bool tells) {
    char who[32] = "a rank";
    if (rank >= 0) snprintf(who, sizeof who, "rank %d", rank);
    if (tells)
        fprintf(stderr,
                "dcrl: %s is gone, so all ranks end: the same command goes on from what was saved "
                "last, with any number of ranks\n",
                who);
    else
        nanosleep(&(struct timespec){0, 200000000}, NULL);
    _exit(exit_code);
}

dc_status cli_ranks_join(void) {
    if (cli_ranks || !dc_ranks_started()) return DC_OK;
    DC_TRY(dc_ranks_join(&cli_ranks, on_lost));
    if (!cli_ranks_leads() && !freopen("/dev/null", "w", stdout))
        return dc_fail(DC_IO, NULL, "/dev/null cannot be opened");
    return DC_OK;
}

bool cli_ranks_leads(void) {
    return dc_ranks_rank(cli_ranks) == 0;
}

void cli_ranks_wait(void) {
    (void)dc_ranks_any(cli_ranks, false);
}

// What is wrong with a command is wrong on every rank, and told by rank 0. What only another rank met is told by that
// rank, once rank 0 has had the time to fail as well.
void cli_ranks_end(dc_status status, int code) {
    if (!cli_ranks) {
        if (status != DC_OK) fprintf(stderr, "dcrl: %s\n", dc_error());
        return;
    }
    if (status != DC_OK && status != DC_INTERRUPTED) {
        exit_code = code;
        if (!cli_ranks_leads()) dc_ranks_watch(cli_ranks, 1);
        if (cli_ranks_leads())
            fprintf(stderr, "dcrl: %s\n", dc_error());
        else
            fprintf(stderr, "dcrl: rank %d: %s\n", dc_ranks_rank(cli_ranks), dc_error());
        dc_ranks_desert(cli_ranks);
        _exit(code);
    }
    if (status != DC_OK && cli_ranks_leads()) fprintf(stderr, "dcrl: %s\n", dc_error());
    dc_ranks_leave(cli_ranks);
    cli_ranks = NULL;
}
