// Fuzz target: the folder of a run that goes on, all but its checkpoint: config.json, the logs, DONE. It goes on, from the
// checkpoint's state, or is refused; what it trains then is whole.
#include "files.h"

#include "base/file.h"
#include "base/text.h"
#include "cli.h"

#include <dirent.h>

size_t LLVMFuzzerMutate(uint8_t *bytes, size_t n, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n, size_t max, unsigned seed);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {"run/config.json", "run/train.csv", "run/timing.csv",
                                    "run/eval.csv", "run/DONE"};
enum { NAMES = sizeof names / sizeof names[0] };
#define CHECKPOINT "run/step-0000000002.safetensors"

static char *checkpoint,
    *fresh; // as this build leaves them; the files but the checkpoint, as an input
static size_t checkpoint_size, fresh_size;

static dc_status call(dc_status command(int, char **), const char *const *words, int count) {
    char copies[12][256], *argv[12];
    DC_CHECK(count <= 12);
    for (int i = 0; i < count; i++) {
        snprintf(copies[i], sizeof copies[i], "%s", words[i]);
        argv[i] = copies[i];
    }
    return command(count, argv);
}

static void keep_fresh(void) {
    dc_text text;
    dc_text_init(&text);
    for (int i = 0; i < 3; i++) {
        char *bytes;
        size_t n;
        DC_CHECK(dc_file_read(files_path(names[i]), 1 << 20, &bytes, &n) == DC_OK);
        dc_text_add(&text, "%s%s\n", files_mark, names[i]);
        dc_text_bytes(&text, bytes, n);
        free(bytes);
    }
    fresh = text.bytes;
    fresh_size = text.used;
}

static void begin(void) {
    char run[256];
    files_begin();
    snprintf(run, sizeof run, "%s", files_path("run"));
    const char *words[] = {"--env=lock-8", "--agent=dcrl",  "--hidden=2", "--batch=2",
                           "--steps=2",    "--log-every=1", "--set",      "n=2",
                           "--threads=1",  "--quiet",       "--out",      run};
    DC_CHECK(call(cmd_train, words, 12) == DC_OK);
    DC_CHECK(dc_file_read(files_path(CHECKPOINT), 1 << 20, &checkpoint, &checkpoint_size) == DC_OK);
    keep_fresh();
}

// Bytes of this build's own run now and then: the corpus is of others.
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n, size_t max, unsigned seed) {
    if (seed % 32 || !fresh_size || fresh_size > max) return LLVMFuzzerMutate(bytes, n, max);
    memcpy(bytes, fresh, fresh_size);
    return LLVMFuzzerMutate(bytes, fresh_size, max);
}

static void empty(const char *folder) {
    struct dirent *entry;
    DIR *dir = opendir(folder);
    DC_CHECK(dir);
    while ((entry = readdir(dir))) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.') unlink(path);
    }
    closedir(dir);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char run[256];
    if (!fresh) begin();
    snprintf(run, sizeof run, "%s", files_path("run"));
    empty(run);
    files_split(names, NAMES, (const char *)data, size);
    files_put(CHECKPOINT, checkpoint, checkpoint_size);
    const char *words[] = {"--resume", run, "--steps=3", "--threads=1", "--quiet"};
    if (call(cmd_train, words, 5) != DC_OK) return 0;
    DC_CHECK(access(files_path("run/step-0000000003.safetensors"), F_OK) == 0);
    DC_CHECK(access(files_path("run/DONE"), F_OK) == 0);
    return 0;
}
