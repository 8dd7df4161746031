// Weights as tensors of a safetensors file: what checkpoints and `dcrl grad` share.
#ifndef DC_WEIGHTS_H
#define DC_WEIGHTS_H

#include "data/safetensors.h"
#include "nn/params.h"

enum { DC_WEIGHT_NAME = 96 };

// Describe a matrix of a slab as the tensor prefix + net/layer/part; name is storage for that.
void dc_weight_describe(const dc_param_row *row, const dc_real *slab, const char *prefix,
                        char name[DC_WEIGHT_NAME], dc_st_tensor *tensor);
// Has the file a tensor of that name, type and shape?
dc_status dc_weight_check(const dc_st_file *file, const char *path, const dc_st_tensor *want);
// Copy the file's tensor of that name into want->bytes, if type and shape are the same.
dc_status dc_weight_copy(const dc_st_file *file, const char *path, const dc_st_tensor *want);

#endif
