// How to run a group again: a command line that gives the same runs, made from their config.json.
#ifndef DC_COMMANDS_H
#define DC_COMMANDS_H

#include "report/runs.h"

// Append one line for a POSIX shell: `dcrl lock` for runs of that command, `dcrl train` for others,
// in a loop over seeds where there are several.
void dc_command_of(const dc_report_group *group, dc_text *out);

#endif
