// Install: where this code lies on the disk, so that an installed tree finds its own files wherever it is
// moved.
#ifndef DC_INSTALL_H
#define DC_INSTALL_H

#include <stdbool.h>
#include <stddef.h>

// The folder share/dcrl/NAME beside the bin/ or lib/ that this code was loaded from; false if there is
// none, as in a build folder.
bool dc_install_folder(const char *name, char *path, size_t size);

#endif
