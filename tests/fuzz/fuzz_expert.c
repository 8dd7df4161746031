// Fuzz target: any bytes as an expert file. What is taken must act, in [-1, 1] wherever that is a number, and
// must be written again. The hash is put right, or hardly an input would get past it.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "env/expert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// The digits of "hash" in the header become those of the file.
static void put_hash(uint8_t *bytes, size_t size) {
    dc_st_file file;
    if (dc_st_parse(&file, "fuzz", bytes, size) != DC_OK) return;
    char hash[DC_ST_HASH];
    const char *old = dc_st_meta_get(&file, "hash");
    dc_st_hash(file.tensors, file.count, file.metas, file.meta_count, hash);
    size_t n = old ? strlen(old) : 0;
    for (size_t at = 0; n == DC_ST_HASH - 1 && at + n <= size; at++)
        if (!memcmp(bytes + at, old, n)) {
            memcpy(bytes + at, hash, n);
            break;
        }
    dc_st_close(&file);
}

static void act(const dc_expert *e) {
    const dc_expert_facts *f = dc_expert_facts_of(e->kind);
    float obs[128], action[32];
    for (int k = 0; k < f->obs; k++)
        obs[k] = (float)(k % 7) - 3;
    dc_expert_act(e, obs, action);
    for (int k = 0; k < f->act; k++)
        DC_CHECK(!(action[k] < -1) && !(action[k] > 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t *bytes = malloc(size + 1);
    if (!bytes) return 0;
    memcpy(bytes, data, size);
    put_hash(bytes, size);
    dc_expert e;
    if (dc_expert_parse(&e, "fuzz", bytes, size) == DC_OK) {
        act(&e);
        DC_CHECK(dc_expert_save("/dev/null", &e) == DC_OK);
        dc_expert_close(&e);
    }
    free(bytes);
    return 0;
}
