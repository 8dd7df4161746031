// Data is read through maps of its files. A file that is shortened meanwhile, or whose disk fails, is a SIGBUS:
// there is no call that could return an error.
#ifndef CLI_MAPPED_H
#define CLI_MAPPED_H

// From here on such a SIGBUS ends the program with one line that names the file, and exit status 1.
void cli_watch_mapped(void);

#endif
