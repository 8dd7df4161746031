// Networks of equal layers (256, 512 or 1024 wide) in bf16 or TF32 on Hopper, a launch a layer (mlp_forward.cu,
// mlp_backward.cu), and one for a head of few outputs and for the gradient of inputs (mlp_thin.cu).
#include "backend/cuda/mlp.cuh"

bool dc_mlp_fits(const dc_cuda *cuda, int width, int in) {
    return cuda->hopper && (width == 256 || width == 512 || width == 1024) && in <= width;
}

int dc_mlp_tiles(int e, int rows, int width) {
    return div_up(rows, MLP_TILE) * (width / COLUMNS) * e;
}

int dc_mlp_across(int width, bool few) {
    return width / (few && width / NARROW <= row_sums::MOST ? NARROW : COLUMNS);
}

typedef CUresult encode_fn(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *,
                           const cuuint64_t *, const cuuint64_t *, const cuuint32_t *,
                           const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                           CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

// The driver is asked for by name, so that the program starts where there is none.
dc_status dc_mlp_map(mlp *j) {
    void *found = NULL;
    cudaDriverEntryPointQueryResult result;
#if CUDART_VERSION >= 12050
    CU(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault,
                                        &result));
#else
    CU(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &found, cudaEnableDefault, &result));
#endif
    cuuint64_t sizes[2] = {(cuuint64_t)j->x.ld, (cuuint64_t)j->x.rows},
               stride = (cuuint64_t)j->x.ld * (j->tf32 ? 4 : 2);
    cuuint32_t box[2] = {(cuuint32_t)line_of(j->tf32), X_ROWS}, steps[2] = {1, 1};
    CUtensorMapDataType type =
        j->tf32 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    CUresult done =
        result != cudaDriverEntryPointSuccess
            ? CUDA_ERROR_NOT_FOUND
            : ((encode_fn *)found)(&j->x_map, type, 2, j->x.p, sizes, &stride, box, steps,
                                   CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                   CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                                   CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return dc_cuda_check(done == CUDA_SUCCESS ? cudaSuccess : cudaErrorNotSupported,
                         "cuTensorMapEncodeTiled(");
}
dc_status dc_mlp_forward(dc_cuda *cuda, const mlp *j) {
    for (int i = 0; i < j->layers; i++)
        DC_TRY(dc_mlp_forward_layer(cuda, j, i));
    return dc_mlp_head(cuda, j);
}

int dc_mlp_parts(const mlp *j) {
    return div_up(j->hi - j->lo, MLP_TILE);
}

dc_status dc_mlp_backward(dc_cuda *cuda, const mlp *j) {
    for (int i = j->layers - 1; i >= 0; i--)
        DC_TRY(dc_mlp_backward_layer(cuda, j, i));
    return j->dx ? dc_mlp_dx(cuda, j) : DC_OK;
}
