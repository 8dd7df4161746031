// Twin: a sampler and its gather on the GPU. It draws the same rows as the CPU's from the same laws
// (sample/laws.h) and writes them into a program's inputs; nothing but the weights' own state is on
// the host. Children are packed as on the CPU, unless a feeder sends the rows.
#ifndef DC_TWIN_H
#define DC_TWIN_H

#include "backend/cuda/cuda.h"
#include "sample/feeder.h"
#include "sample/gather.h"
#include "sample/sampler.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dc_twin dc_twin;
typedef struct dc_twin_data dc_twin_data;

// Data sets on a device: what is sent for one twin is there for all. Borrows: cuda. The memory stays
// with the device.
dc_status dc_twin_data_new(dc_twin_data **shared, dc_cuda *cuda);
void dc_twin_data_free(dc_twin_data *shared); // Nullable
// Copies the columns and tables that are not in `shared` yet. Borrows: shared, program. Errors: explicit
// trees (split=random or max) and batches of more than 8192 rows cannot be drawn there, and the data set
// must fit.
dc_status dc_twin_new(dc_twin **twin, dc_twin_data *shared, dc_program *program,
                      const dc_sampler *sampler, const dc_feeds *feeds, const dc_dataset *data);
// Whether a twin can draw what such a sampler draws.
bool dc_twin_draws(const dc_sampler_spec *spec);
// A twin that draws nothing: it takes the rows of its member that a feeder left on the device. `ring` is
// device memory, (steps, bytes of a step); the rows of step t are number t mod steps. Random numbers that
// are no rows are still drawn there.
dc_status dc_twin_fed(dc_twin **twin, dc_cuda *cuda, dc_program *program, const dc_sampler *sampler,
                      const dc_feeds *feeds, const dc_feeder *feeder, int member, const void *ring,
                      int steps);
void dc_twin_free(dc_twin *twin); // Nullable
// Enqueue the rows of the program's next step: sample, find places for the children that need a network, gather into
// its inputs. `ahead` 1: those of the step after the one under way.
dc_status dc_twin_draw(dc_twin *twin, int ahead);
dc_status dc_twin_pack(dc_twin *twin);
dc_status dc_twin_gather(dc_twin *twin, int ahead);
// Slots from and to the host's sampler, for checkpoints; a fed twin has none.
dc_status dc_twin_put(dc_twin *twin, const dc_sampler *sampler);
dc_status dc_twin_get(dc_twin *twin, dc_sampler *sampler, uint64_t step);

#ifdef __cplusplus
}
#endif

#endif
