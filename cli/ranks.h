// A command that was started as several ranks (mpirun -n R, srun): joining them, and ending alike.
#ifndef CLI_RANKS_H
#define CLI_RANKS_H

#include "base/ranks.h"

// All ranks of this command; NULL: this process is alone.
extern dc_ranks *cli_ranks;

// Meet the other ranks, if there are any. From then on ranks other than 0 print nothing.
dc_status cli_ranks_join(void);
// Whether this rank writes files and prints.
bool cli_ranks_leads(void);
// All ranks are here when it returns.
void cli_ranks_wait(void);
// At the end of the program: tell an error once, and part.
void cli_ranks_end(dc_status status, int code);

#endif
