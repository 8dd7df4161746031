// What the commands share: exit codes and the way errors are printed.
#ifndef CLI_H
#define CLI_H

#include "base/status.h"

// A command gets the words after its own name; it returns a status, and main.c prints the error.
typedef dc_status cli_command(int argc, char **argv);

#define COMMAND(name, function, help) cli_command function;
#include "commands.def"
#undef COMMAND

#endif
