// Sampler: the integers of a batch, never numbers of a network. A method says in a table of rules which rows
// it trains on (sample/rows.h); dc_sampler_next draws one integer per rule and row of the batch. Every draw is a pure
// function of (seed, stream, step, row) or (seed, slot, generation), so the same seed gives the same batches
// with any number of threads, on any device, and after a resume.
#ifndef DC_SAMPLER_H
#define DC_SAMPLER_H

#include "data/dataset.h"
#include "sample/row_draw.h"
#include "sample/rows.h"

#include <stddef.h>

typedef struct dc_sampler dc_sampler;

// Borrows: data and rows' texts (until free). Errors: DC_USAGE, see dc_rows_check; trajectories that are
// too short or too long.
dc_status dc_sampler_new(dc_sampler **sampler, const dc_dataset *data, const dc_row_table *rows);
// The same for one part of the rules only; dc_sampler_drawn gives NULL for the others.
dc_status dc_sampler_new_part(dc_sampler **sampler, const dc_dataset *data,
                              const dc_row_table *rows, dc_row_part part);
void dc_sampler_free(dc_sampler *sampler); // Nullable
// Draw all rules for `step`. Steps must come in order from 0, or from where a loaded state
// stopped. Errors: those of the chooser, and of memory for explicit trees; load a state before
// going on.
dc_status dc_sampler_next(dc_sampler *sampler, uint64_t step);
// Let the next step be any, without drawing those before: only of a sampler without trees, whose draws
// have no memory.
void dc_sampler_skip(dc_sampler *sampler, uint64_t step);
// The numbers of a rule (batch * times), to be written by the caller for batches that come from elsewhere;
// dc_sampler_next would overwrite them.
int64_t *dc_sampler_fix(dc_sampler *sampler, int rule);
// The numbers drawn for a rule (batch * times), valid until the next call. NULL for rules that are not drawn here.
const int64_t *dc_sampler_drawn(const dc_sampler *sampler, int rule);
// Slot that each row came from (batch), for `dcrl sample` and tests; NULL without a TREE rule.
const int32_t *dc_sampler_slot(const dc_sampler *sampler);
// Bytes that the sampler takes from the system now; midpoint trees of any length take the same.
size_t dc_sampler_bytes(const dc_sampler *sampler);
// Complete state as words, for checkpoints; the caller frees. Loading checks every word; after a
// refused state (DC_BAD_INPUT), load another or free the sampler.
dc_status dc_sampler_save(const dc_sampler *sampler, int64_t **words, size_t *count);
dc_status dc_sampler_load(dc_sampler *sampler, const int64_t *words, size_t count);
// Bring one to where another of the same rows stands.
dc_status dc_sampler_copy(dc_sampler *to, const dc_sampler *from);
// The slots' part of that state, for a sampler on another device (sample/gpu_sampler.h): DC_SLOT_WORDS words
// per slot. Only of midpoint trees. Setting them also sets the step that comes next.
enum { DC_SLOT_WORDS = 4 }; // generation, cursor, start, length
void dc_sampler_get_slots(const dc_sampler *sampler, int64_t *words);
dc_status dc_sampler_set_slots(dc_sampler *sampler, const int64_t *words, uint64_t step);
// What it was made from.
const dc_row_laws *dc_sampler_laws(const dc_sampler *sampler);
const dc_row_table *dc_sampler_rows(const dc_sampler *sampler);
// The step that dc_sampler_next must be asked for.
uint64_t dc_sampler_step(const dc_sampler *sampler);

#endif
