// Arguments of a command, read against option tables: `--flag value`, `--flag=value`, `--set key=value`, `--json`,
// `--quiet`, `--help`, `-o` (short for --out) and plain words. A command fills in the first part of cli_args, calls cli_args_parse, and returns at once when `help` is true:
//
//     cli_args args = {.usage = "...", .flags = flags, .config = &config, .takes = CLI_JSON};
//     DC_TRY(cli_args_parse(&args, argc, argv));
//     if (args.help) return DC_OK;
//     DC_TRY(cli_args_need(&args, "data"));
//     DC_TRY(cli_args_apply(&args, keys, &key_config)); // with CLI_SET, once the table is known
//
// What the command does not take is a usage error, with the nearest flag named.
#ifndef CLI_ARGS_H
#define CLI_ARGS_H

#include "base/options.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { CLI_SETS_MAX = 256, CLI_FLAGS_MAX = 64 };

#define CLI_COMPLETE "--complete" // followed by the word before and the word that is being typed

// What a command takes beside its flags.
enum {
    CLI_JSON = 1,  // --json
    CLI_SET = 2,   // --set key=value, any number of times
    CLI_WORDS = 4, // plain words
    CLI_QUIET = 8, // --quiet
};

typedef struct cli_args {
    // By the command:
    const char *usage;      // head of --help: synopsis, meaning, examples
    const dc_option *flags; // table of its flags; a DC_BOOL flag may stand without a value
    void *config;           // the struct that `flags` describes; defaults are filled in first
    const dc_option *keys;  // Nullable: keys of --set, for --help only
    unsigned takes;         // CLI_JSON, CLI_SET, CLI_WORDS, CLI_QUIET
    // By cli_args_parse:
    bool help, json;
    bool quiet; // --quiet or --json: nothing but the object, errors and warnings
    bool
        completed; // it was asked for the words that may follow, and has printed them; help is set, too
    uint64_t given; // bit b: row b of `flags` was on the command line
    char **words;   // (word_count) plain words in order; they live in argv
    int word_count;
    const char *sets[CLI_SETS_MAX]; // (set_count) "key=value" in order
    int set_count;
} cli_args;

// Read the words after the command's name (argv is reordered). --help is printed here.
dc_status cli_args_parse(cli_args *args, int argc, char **argv);
// Whether a flag of the table (by its option name) was given.
bool cli_args_given(const cli_args *args, const char *name);
// A usage error of the library's, in which options that are flags of the table are called as flags, but those that
// --set named; another status as it is.
dc_status cli_args_say(const cli_args *args, dc_status status);
// DC_USAGE unless the flag was given.
dc_status cli_args_need(const cli_args *args, const char *name);
// DC_USAGE unless the name of a file to write ends in one of `ends`, ".gif|.mp4". Where a folder may be written, too, that is
// one with a slash at the end, one that is there, or a name without a dot.
dc_status cli_check_name(const char *path, const char *ends, bool folder);
// Set every --set key=value in a table's struct.
dc_status cli_args_apply(const cli_args *args, const dc_option *table, void *config);

#endif
