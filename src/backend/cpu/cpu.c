// The CPU backend's table, made from the list of ops.
#include "backend/cpu/cpu.h"

const dc_backend dc_backend_cpu = {
    .name = "cpu",
#define OP(name, ...) .fwd[DC_OP_##name] = dc_cpu_##name##_fwd,
#include "tensor/ops.def"
#undef OP
#define OP(name, ...) .bwd[DC_OP_##name] = dc_cpu_##name##_bwd,
#include "tensor/ops.def"
#undef OP
    .grad_norm2 = dc_cpu_grad_norm2,
    .update = dc_cpu_update,
};
