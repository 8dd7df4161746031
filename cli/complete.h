// Completion of command lines in bash, zsh and fish. The scripts (cmd_completion.c) know nothing of commands and
// flags: at each press of the key they run `dcrl complete WORDS...`, the last word being the one that is typed, and
// offer what it prints: a candidate on each line, with a tab and its meaning where there is one.
#ifndef CLI_COMPLETE_H
#define CLI_COMPLETE_H

#include "base/status.h"

typedef struct cli_row { // of commands.def
    const char *name;
    dc_status (*run)(int argc, char **argv);
    const char *help;
} cli_row;

// Print what may stand in place of the last of the words behind "dcrl".
dc_status cli_complete(const cli_row *commands, int count, int argc, char **argv);

#endif
