// Sampler and gather on a GPU: it draws the same rows as the CPU's sampler, by the same function
// (sample/row_draw.h), and writes them into a program's inputs, so that a step needs nothing of the host.
// Children are packed as on the CPU, unless a feeder sends the rows.
#ifndef DC_GPU_SAMPLER_H
#define DC_GPU_SAMPLER_H

#include "backend/cuda/cuda.h"
#include "sample/feeder.h"
#include "sample/gather.h"
#include "sample/sampler.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dc_gpu_sampler dc_gpu_sampler;
typedef struct dc_gpu_columns dc_gpu_columns;

// Columns of data sets on a device: what is sent for one sampler is there for all. Borrows: cuda. The memory stays
// with the device.
dc_status dc_gpu_columns_new(dc_gpu_columns **shared, dc_cuda *cuda);
void dc_gpu_columns_free(dc_gpu_columns *shared); // Nullable
// Send rows first ... first + count - 1 of a data set anew, and how many there are (dc_dataset.grown).
dc_status dc_gpu_columns_renew(dc_gpu_columns *shared, const dc_dataset *data, int64_t first,
                               int64_t count);
// Copies the columns and tables that are not in `shared` yet. Borrows: shared, program. Errors: explicit
// trees (split=random or max) and batches of more than 8192 rows cannot be drawn there, and the data set
// must fit.
dc_status dc_gpu_sampler_new(dc_gpu_sampler **out, dc_gpu_columns *shared, dc_program *program,
                             const dc_sampler *sampler, const dc_feeds *feeds,
                             const dc_dataset *data);
// Whether a GPU can draw such rows.
bool dc_gpu_sampler_draws(const dc_row_table *rows);
// A sampler that draws nothing: it takes the rows of its member that a feeder left on the device. `ring` is
// device memory, (steps, bytes of a step); the rows of step t are number t mod steps. Random numbers that
// are no rows are still drawn there.
dc_status dc_gpu_sampler_fed(dc_gpu_sampler **out, dc_cuda *cuda, dc_program *program,
                             const dc_sampler *sampler, const dc_feeds *feeds,
                             const dc_feeder *feeder, int member, const void *ring, int steps);
void dc_gpu_sampler_free(dc_gpu_sampler *s); // Nullable
// Enqueue the rows of the program's next step: sample, find places for the children that need a network, gather into
// its inputs. `ahead` 1: those of the step after the one under way.
dc_status dc_gpu_sampler_draw(dc_gpu_sampler *s, int ahead);
dc_status dc_gpu_sampler_pack(dc_gpu_sampler *s);
dc_status dc_gpu_sampler_gather(dc_gpu_sampler *s, int ahead);
// Slots from and to the host's sampler, for checkpoints; a fed sampler has none.
dc_status dc_gpu_sampler_put(dc_gpu_sampler *s, const dc_sampler *sampler);
dc_status dc_gpu_sampler_get(dc_gpu_sampler *s, dc_sampler *sampler, uint64_t step);

#ifdef __cplusplus
}
#endif

#endif
