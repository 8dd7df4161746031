// Option tables: one table of rows describes the fields of a config struct, and from it come the
// command-line flags, the config-file keys, the help text, the recorded config and the
// documentation card. A value passes the same check wherever it comes from.
#ifndef DC_OPTIONS_H
#define DC_OPTIONS_H

#include "base/json.h"
#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DC_TEXT_MAX = 256, DC_LIST_MAX = 16 };
// What a real option holds that was given as `auto`; less than its least number.
#define DC_AUTO (-1.0)

typedef enum dc_kind {
    DC_INT,    // int64_t
    DC_REAL,   // double
    DC_BOOL,   // bool: on|off (true/false, 1/0 are taken too)
    DC_TEXT,   // char[DC_TEXT_MAX]
    DC_CHOICE, // int: index into `choices`, written by name
    DC_LIST,   // dc_int_list, written 512,512,512; empty only if the default is
} dc_kind;

// Whether an option may be given anew to a run that goes on.
typedef enum dc_role {
    DC_FIXED, // it decides what is learned, from the first step on
    DC_LATER, // it may change; what is learned from there on is another thing than without the change
    DC_BESIDE, // it may change, and never decides what is learned
} dc_role;

typedef struct dc_int_list {
    int count;
    int64_t v[DC_LIST_MAX];
} dc_int_list;

typedef struct dc_option {
    const char *name; // key in files; flag is --name with '_' as '-'
    dc_kind kind;
    dc_role role;
    size_t offset;    // offsetof the field in the config struct
    const char *init; // default, as text
    double min, max;  // inclusive bounds of INT, REAL and each member of LIST
    const char *
        choices; // "a|b|c" for CHOICE; "auto" for a REAL that may be found by the program; else NULL
    const char *help; // one line
} dc_option;

// Rows of a table over `struct config`: one call for each option, with the field that it sets, its
// default as text, what it may be and what it means. The option has the field's name; the forms
// ending in _AS give it another one. A field of the wrong type does not compile.
//
//     static const dc_option table[] = {
//         DC_OPTION_REAL(config, lr, "3e-4", 0, 10, "Adam's step size"),
//         DC_OPTION_CHOICE(config, device, "cpu", "cpu|cuda", "where to train"),
//         DC_OPTION_REAL_AS("goal_random", config, goals.random, "0.3", 0, 1, "share of goals"),
//         {0},
//     };
#define DC_OPTION_INT_AS(name, config, field, init, min, max, help)                                \
    DC_OPTION_ROW(name, DC_INT, DC_FIELD(config, field, int64_t *), init, min, max, NULL, help)
#define DC_OPTION_REAL_AS(name, config, field, init, min, max, help)                               \
    DC_OPTION_ROW(name, DC_REAL, DC_FIELD(config, field, double *), init, min, max, NULL, help)
#define DC_OPTION_LIST_AS(name, config, field, init, min, max, help)                               \
    DC_OPTION_ROW(name, DC_LIST, DC_FIELD(config, field, dc_int_list *), init, min, max, NULL, help)
#define DC_OPTION_BOOL_AS(name, config, field, init, help)                                         \
    DC_OPTION_ROW(name, DC_BOOL, DC_FIELD(config, field, bool *), init, 0, 0, NULL, help)
#define DC_OPTION_TEXT_AS(name, config, field, init, help)                                         \
    DC_OPTION_ROW(name, DC_TEXT, DC_FIELD(config, field, dc_option_text *), init, 0, 0, NULL, help)
#define DC_OPTION_CHOICE_AS(name, config, field, init, choices, help)                              \
    DC_OPTION_ROW(name, DC_CHOICE, DC_FIELD(config, field, int *), init, 0, 0, choices, help)

#define DC_OPTION_INT(config, field, init, min, max, help)                                         \
    DC_OPTION_INT_AS(#field, config, field, init, min, max, help)
#define DC_OPTION_REAL(config, field, init, min, max, help)                                        \
    DC_OPTION_REAL_AS(#field, config, field, init, min, max, help)
#define DC_OPTION_REAL_OR_AUTO(config, field, init, min, max, help)                                \
    DC_OPTION_ROW(#field, DC_REAL, DC_FIELD(config, field, double *), init, min, max, "auto", help)
#define DC_OPTION_LIST(config, field, init, min, max, help)                                        \
    DC_OPTION_LIST_AS(#field, config, field, init, min, max, help)
#define DC_OPTION_BOOL(config, field, init, help)                                                  \
    DC_OPTION_BOOL_AS(#field, config, field, init, help)
#define DC_OPTION_TEXT(config, field, init, help)                                                  \
    DC_OPTION_TEXT_AS(#field, config, field, init, help)
#define DC_OPTION_CHOICE(config, field, init, choices, help)                                       \
    DC_OPTION_CHOICE_AS(#field, config, field, init, choices, help)

// The same with a role other than DC_FIXED.
#define DC_OPTION_INT_ROLE(role, config, field, init, min, max, help)                              \
    DC_OPTION_ROW_ROLE(role, #field, DC_INT, DC_FIELD(config, field, int64_t *), init, min, max,   \
                       NULL, help)
#define DC_OPTION_TEXT_ROLE(role, config, field, init, help)                                       \
    DC_OPTION_ROW_ROLE(role, #field, DC_TEXT, DC_FIELD(config, field, dc_option_text *), init, 0,  \
                       0, NULL, help)
#define DC_OPTION_CHOICE_ROLE(role, config, field, init, choices, help)                            \
    DC_OPTION_ROW_ROLE(role, #field, DC_CHOICE, DC_FIELD(config, field, int *), init, 0, 0,        \
                       choices, help)

// What they are made of: a row, and the offset of a field, whose address has the given type.
typedef char dc_option_text[DC_TEXT_MAX];
#define DC_OPTION_ROW(name, kind, offset, init, min, max, choices, help)                           \
    DC_OPTION_ROW_ROLE(DC_FIXED, name, kind, offset, init, min, max, choices, help)
#define DC_OPTION_ROW_ROLE(role, name, kind, offset, init, min, max, choices, help)                \
    { name, kind, role, offset, init, min, max, choices, help }
#define DC_FIELD(config, field, type)                                                              \
    _Generic(&((config *)0)->field, type : offsetof(config, field))

// A table ends with a row whose name is NULL. Fill the struct with the defaults (a bad default is a
// bug).
void dc_options_init(const dc_option *table, void *config);
// Set one option from text. Unknown names get DC_USAGE and the nearest name; bad values the allowed
// range.
dc_status dc_options_set(const dc_option *table, void *config, const char *name, const char *value);
const dc_option *dc_options_find(const dc_option *table, const char *name);
// Whether a real option was left to the program.
bool dc_options_is_auto(const dc_option *option, const void *config);
// Format the current value of one option as text (not JSON-quoted).
void dc_options_value(const dc_option *option, const void *config, dc_text *out);
// Append "name": value members, comma-separated, each on a line of its own with two spaces of
// indent; no newline before the first or after the last.
void dc_options_json(const dc_option *table, const void *config, dc_text *out);
// Set every member of a JSON object; numbers, booleans, strings and arrays of numbers are accepted.
// Errors: DC_BAD_INPUT, with what stood before the faulty member already set.
dc_status dc_options_read(const dc_option *table, void *config, const dc_json *object);
// Help: one line an option: name as a flag (--name N) or as a key (name=N), meaning, default, range
// or choices.
void dc_options_help(const dc_option *table, bool flags, dc_text *out);

// Nearest of `count` names to a misspelt word, or NULL if none is near.
const char *dc_nearest(const char *word, const char *const *names, size_t count);

#endif
