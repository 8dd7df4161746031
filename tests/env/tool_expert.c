// tool_expert ROBOT SEED FILE: writes an expert with made-up weights, 64 and 48 wide, with LayerNorm if the
// seed is odd.
#include "made_up.h"

#include <stdio.h>

int main(int argc, char **argv) {
    dc_expert_kind kind = argc == 4 ? dc_expert_kind_of(argv[1]) : DC_EXPERT_KINDS;
    if (kind == DC_EXPERT_KINDS) return 2;
    uint64_t seed = strtoull(argv[2], NULL, 10);
    made_up m;
    made_up_expert(&m, kind, (int[]){64, 48}, 3, seed % 2 == 1, seed);
    dc_status status = dc_expert_save(argv[3], &m.expert);
    if (status != DC_OK) fprintf(stderr, "%s\n", dc_error());
    free(m.numbers);
    return status == DC_OK ? 0 : 1;
}
