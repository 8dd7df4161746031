// Which checkpoint of a run folder to take: the newest one that passes every check, for whatever opens one.
#ifndef DC_PICK_H
#define DC_PICK_H

#include "train/run.h"

// For a configured run and the hash of its data. *step: the one to take, -1 for the newest; then one that is
// damaged, or of another run than the folder's config.json says, is passed over with a warning. *step stays -1 if
// the folder has none. Errors: none can be read, or not the one that was asked for.
dc_status dc_pick_for(const dc_run *run, uint64_t data_hash, const char *folder, int64_t *step);
// The same, with config and hash as config.json says.
dc_status dc_pick_in(const char *folder, int64_t *step);
// The error for a folder of which no checkpoint can be read, with the reason that dc_error() tells.
dc_status dc_pick_none(dc_status status, const char *folder);

#endif
