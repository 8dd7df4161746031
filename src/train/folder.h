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

// Hold the folder until dc_folder_unlock or the end of the process, and remove what killed
// processes left half-written in it. A folder that another process holds is refused.
dc_status dc_folder_lock(dc_run *run);
void dc_folder_unlock(dc_run *run);

dc_status dc_folder_write_config(const dc_run *run);
// Open train.csv and timing.csv for appending; rows after `step` are dropped first.
dc_status dc_folder_open_logs(dc_run *run, int64_t step);
dc_status dc_folder_log(dc_run *run, double seconds, double rate);
// Push the logs to the disk: what a checkpoint says must be there before it.
dc_status dc_folder_sync_logs(dc_run *run);
void dc_folder_close_logs(dc_run *run);

#endif
