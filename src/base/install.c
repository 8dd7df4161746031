// Where this code lies, see install.h. The kernel's list of mappings names the file of every address, be it
// a program or a library, with its whole path; argv[0] and dladdr may give a relative one.
#include "base/install.h"

#include "base/file.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_SIZE = 4352 }; // a path of 4096 bytes and what stands before it

// The file of a line "from-to rights offset device inode path", if it is mapped at `address`.
static char *file_at(char *line, uintptr_t address) {
    char *end;
    uintptr_t from = strtoul(line, &end, 16);
    if (*end != '-' || address < from || address >= strtoul(end + 1, &end, 16)) return NULL;
    char *path = strchr(end, '/');
    if (path) path[strcspn(path, "\n")] = 0;
    return path;
}

// Folder of the file that this code was loaded from.
static bool own_folder(char *folder, size_t size) {
    static const char here = 0;
    char line[LINE_SIZE], *path = NULL;
    FILE *maps = fopen("/proc/self/maps", "r");
    if (!maps) return false;
    while (!path && fgets(line, sizeof line, maps))
        path = file_at(line, (uintptr_t)&here);
    fclose(maps);
    if (!path || strlen(path) >= size) return false;
    memcpy(folder, path, strlen(path) + 1);
    *strrchr(folder, '/') = 0;
    return true;
}

bool dc_install_folder(const char *name, char *path, size_t size) {
    static const char *const up[] = {"..", "../.."}; // from bin/ and lib/, from lib/ARCHITECTURE/
    char folder[LINE_SIZE];
    if (!own_folder(folder, sizeof folder)) return false;
    for (size_t i = 0; i < sizeof up / sizeof up[0]; i++) {
        int n = snprintf(path, size, "%s/%s/share/dcrl/%s", folder, up[i], name);
        bool exists = false;
        if (n > 0 && (size_t)n < size && dc_folder_find(path, &exists) == DC_OK && exists)
            return true;
    }
    return false;
}
