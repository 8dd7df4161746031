// Presets: options by name, from the files of configs/, embedded at build time (tools/embed.cmake).
// A preset is an object of options, for any method: those that a method lacks are passed over. "like"
// names another one to start from, which may name one in turn, and a member named after a method holds
// what differs for it, which counts more than what any of them says to all.
#ifndef DC_PRESETS_H
#define DC_PRESETS_H

#include "train/run.h"

typedef struct dc_preset_file {
    const char *name; // file name without .json
    const char *json; // its text
} dc_preset_file;

extern const dc_preset_file dc_preset_files[]; // ends with a NULL name

enum { DC_PRESET_LEVELS = 4 };

typedef struct dc_preset {
    const dc_json *level[DC_PRESET_LEVELS]; // (levels) itself, then what it is like, and so on
    int levels;                             // 0: none
} dc_preset;

// By name; an unknown one is a usage error with the nearest. Borrows: arena.
dc_status dc_preset_find(dc_arena *arena, const char *name, dc_preset *preset);
// The first one of an environment, or else of its other kind of goals (-oraclerep); no levels: there is
// none.
dc_status dc_preset_of(dc_arena *arena, const char *env, dc_preset *preset);
// The method that it names. Nullable.
const char *dc_preset_agent(const dc_preset *preset);
// Set its options on a run whose method is chosen, which need not be the preset's own.
dc_status dc_preset_apply(dc_run *run, const dc_preset *preset);

#endif
