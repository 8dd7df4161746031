// Preset files of configs/, embedded at build time (tools/embed.cmake).
#ifndef DC_PRESETS_H
#define DC_PRESETS_H

typedef struct dc_preset_file {
    const char *name; // file name without .json
    const char *json; // its text
} dc_preset_file;

extern const dc_preset_file dc_preset_files[]; // ends with a NULL name

#endif
