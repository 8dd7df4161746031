// The files of a run folder other than checkpoints' content: names, config.json, CSV logs.
#ifndef DC_FOLDER_H
#define DC_FOLDER_H

#include "train/run.h"

// folder/name, in static storage of the caller: (DC_PATH_MAX).
enum { DC_PATH_MAX = 4096 };
dc_status dc_folder_path(char *out, const char *folder, const char *name);
dc_status dc_folder_checkpoint(char *out, const char *folder, int64_t step);
// Steps of all checkpoints in a folder, newest first; the caller frees.
dc_status dc_folder_checkpoints(const char *folder, int64_t **steps, int *count);
// folder/seed-K: where a member of a population has its run. Seeds of all members in a folder, least
// first; the caller frees.
dc_status dc_folder_member(char *out, const char *folder, int64_t seed);
dc_status dc_folder_members(const char *folder, int64_t **seeds, int *count);
// A run that lies in a folder, under any name; "" if none does.
dc_status dc_folder_inner(char out[DC_PATH_MAX], const char *folder);

// The run that a folder stands for when one is needed: its own, or in a folder of seeds that of the least seed.
dc_status dc_folder_run(char out[DC_PATH_MAX], const char *folder);

// Hold the folder until dc_folder_unlock or the end of the process, and remove what killed
// processes left half-written in it. A folder that another process holds is refused.
dc_status dc_folder_lock(dc_run *run);
void dc_folder_unlock(dc_run *run);
// Remove what killed processes left half-written: before a map, an evaluation or a plot is written there.
void dc_folder_sweep(const char *folder);

dc_status dc_folder_write_config(const dc_run *run);
// The same for a run that goes on with other options, and is done no longer.
dc_status dc_folder_rewrite_config(const dc_run *run);
// Open train.csv and timing.csv for appending; rows after `step` are dropped first. A file with anything else
// in it is kept under another name, with a warning.
dc_status dc_folder_open_logs(dc_run *run, int64_t step);
// What of a log is as its writer left it: bytes of the header and of complete rows up to step `until`, and the
// first line that is neither the header, nor a row of a later step than the one before, nor a last line that was
// cut by a kill (0: there is none).
typedef struct dc_log_part {
    size_t good;
    int bad_line;
} dc_log_part;
dc_log_part dc_folder_log_part(const char *bytes, size_t n, const char *header, int64_t until);
// `together` runs, this one among them, share the process and its time.
dc_status dc_folder_log(dc_run *run, double seconds, double rate, int together);
// Push the logs to the disk: what a checkpoint says must be there before it.
dc_status dc_folder_sync_logs(dc_run *run);
void dc_folder_close_logs(dc_run *run);

#endif
