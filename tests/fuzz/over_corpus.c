// In place of libFuzzer: every file of the folders that are named, once. tools/coverage.sh runs it to see what of a
// reader the corpus reaches.
#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t n, size_t max);

size_t LLVMFuzzerMutate(uint8_t *bytes, size_t n, size_t max) {
    (void)bytes, (void)max;
    return n;
}

static int over_folder(const char *folder) {
    int count = 0;
    const char *name;
    DIR *dir = opendir(folder);
    while (dir && dc_folder_next(dir, folder, &name) == DC_OK && name) {
        char path[4096], *bytes;
        size_t n;
        snprintf(path, sizeof path, "%s/%s", folder, name);
        if (*name == '.' || dc_file_read(path, 1 << 24, &bytes, &n) != DC_OK) continue;
        (void)LLVMFuzzerTestOneInput((const uint8_t *)bytes, n);
        free(bytes);
        count++;
    }
    if (dir) closedir(dir);
    return count;
}

int main(int argc, char **argv) {
    int count = 0;
    for (int i = 1; i < argc; i++)
        count += over_folder(argv[i]);
    fprintf(stderr, "%d inputs\n", count);
    return count ? 0 : 1;
}
