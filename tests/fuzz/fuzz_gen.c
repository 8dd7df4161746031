// Fuzz target: what `dcrl gen` finds of a set that was begun: the facts beside it, and a part with rows. It must go on
// or refuse, and a file that it makes is one that can be read.
#include "files.h"

#include "base/file.h"
#include "base/text.h"
#include "data/dataset.h"
#include "gen_set.h"

size_t LLVMFuzzerMutate(uint8_t *bytes, size_t n, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n, size_t max, unsigned seed);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {"x.gen.json", "x.npz.part-0000"};
static dc_world *world;
static dc_gen gen;
static char stem[256];

static char *fresh; // facts and part as this build leaves them
static size_t fresh_size;

// Stops a set before its file has its name, so that its part stays.
static int no_file(const char *from, const char *to) {
    size_t n = strlen(to);
    return n > 4 && !strcmp(to + n - 4, ".npz") ? -1 : rename(from, to);
}

static void keep_fresh(void) {
    dc_text text;
    dc_text_init(&text);
    for (int i = 0; i < 2; i++) {
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

static gen_set a_set(void) {
    return (gen_set){.gen = gen,
                     .env = "cube-single-v0",
                     .stem = stem,
                     .episodes = 1,
                     .shards = 1,
                     .threads = 1,
                     .trace = ""};
}

static void begin(void) {
    dc_env_spec spec;
    int64_t episodes;
    files_begin();
    snprintf(stem, sizeof stem, "%s", files_path("x"));
    DC_CHECK(dc_env_find(&spec, "cube-single-play-v0") == DC_OK);
    DC_CHECK(dc_world_new(&world, &spec) == DC_OK);
    DC_CHECK(dc_gen_init(&gen, dc_world_spec(world), spec.data, &episodes) == DC_OK);
    gen.world = world;
    gen.rows = 2;
    gen_set set = a_set();
    dc_file_system.rename = no_file;
    DC_CHECK(gen_set_make(&set) != DC_OK);
    dc_file_system.rename = rename;
    keep_fresh();
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n, size_t max, unsigned seed) {
    if (seed % 16 || !fresh_size || fresh_size > max) return LLVMFuzzerMutate(bytes, n, max);
    memcpy(bytes, fresh, fresh_size);
    return fresh_size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!world) begin();
    files_split(names, 2, (const char *)data, size);
    unlink(files_path("x.npz"));
    gen_set set = a_set();
    if (gen_set_make(&set) != DC_OK) return 0;
    dc_dataset made;
    dc_status status = dc_dataset_load(&made, files_path("x.npz"));
    dc_dataset_fini(&made);
    (void)status;
    DC_CHECK(access(files_path(names[1]), F_OK) != 0);
    return 0;
}
