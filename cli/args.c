// Reading a command's arguments, see args.h. Values are checked by base/options.h; here only the
// shape of the command line is known.
#include "args.h"

#include "base/file.h"
#include "base/text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { NAME_MAX_BYTES = 64 };

// An option's name as it stands behind "--".
static void flag_of(const char *name, char flag[NAME_MAX_BYTES]) {
    snprintf(flag, NAME_MAX_BYTES, "%s", name);
    for (char *c = flag; *c; c++)
        if (*c == '_') *c = '-';
}

// Row of the flag that stands in the first n bytes of word, or -1.
static int find_flag(const cli_args *args, const char *word, size_t n) {
    for (int row = 0; args->flags[row].name; row++) {
        DC_CHECK(row < CLI_FLAGS_MAX);
        char flag[NAME_MAX_BYTES];
        flag_of(args->flags[row].name, flag);
        if (strlen(flag) == n && !memcmp(flag, word, n)) return row;
    }
    return -1;
}

// What a command takes beside its table, by `takes`.
typedef struct extra {
    unsigned bit;
    const char *name, *shown, *help;
} extra;
static const extra extras[] = {
    {CLI_QUIET, "quiet", "--quiet", "say nothing but errors and warnings"},
    {CLI_JSON, "json", "--json", "one JSON object on standard output, nothing else"},
    {CLI_SET, "set", "--set KEY=VALUE", "set an option; may be repeated"},
};
enum { EXTRAS = sizeof extras / sizeof extras[0] };

// `dashes` as they were typed.
static dc_status unknown_flag(const cli_args *args, const char *dashes, const char *word,
                              size_t n) {
    char flags[CLI_FLAGS_MAX][NAME_MAX_BYTES], given[NAME_MAX_BYTES];
    const char *names[CLI_FLAGS_MAX + EXTRAS + 1];
    size_t count = 0;
    for (; args->flags[count].name; count++) {
        flag_of(args->flags[count].name, flags[count]);
        names[count] = flags[count];
    }
    names[count++] = "help";
    for (int i = 0; i < EXTRAS; i++)
        if (args->takes & extras[i].bit) names[count++] = extras[i].name;
    snprintf(given, sizeof given, "%.*s", (int)(n < sizeof given ? n : sizeof given - 1), word);
    const char *near = dc_nearest(given, names, count);
    if (near)
        return dc_fail(DC_USAGE, NULL, "unknown flag (%s%s): did you mean '--%s'?", dashes, given,
                       near);
    return dc_fail(DC_USAGE, "--help lists them", "unknown flag (%s%s)", dashes, given);
}

// The words still to be read.
typedef struct words {
    char **at, **end;
} words;

// The value of a flag: what stands behind '=', or the next word.
static dc_status take_value(words *in, const char *flag, size_t n, const char **value) {
    if (flag[n] == '=') return *value = flag + n + 1, DC_OK;
    if (in->at == in->end || !strncmp(*in->at, "--", 2))
        return dc_fail(DC_USAGE, NULL, "a value is missing (--%s): write --%s VALUE", flag, flag);
    *value = *in->at++;
    return DC_OK;
}

static dc_status take_set(cli_args *args, words *in, const char *flag, size_t n) {
    const char *pair = NULL;
    DC_TRY(take_value(in, flag, n, &pair));
    if (!strchr(pair, '='))
        return dc_fail(DC_USAGE, "write --set key=value", "no value for a key (--set %s)", pair);
    if (args->set_count == CLI_SETS_MAX)
        return dc_fail(DC_USAGE, NULL, "more than %d times --set", CLI_SETS_MAX);
    args->sets[args->set_count++] = pair;
    return DC_OK;
}

// An error names the option as it was typed: a row of a table of its own, called "--log-every".
static dc_status take_row(cli_args *args, words *in, const char *flag, size_t n, int row) {
    char typed[NAME_MAX_BYTES + 2];
    dc_option alone[] = {args->flags[row], {0}};
    const char *value = "on";
    if (alone->kind != DC_BOOL || flag[n] == '=') DC_TRY(take_value(in, flag, n, &value));
    args->given |= (uint64_t)1 << row;
    snprintf(typed, sizeof typed, "--%.*s", (int)n, flag);
    alone->name = typed;
    return dc_options_set(alone, args->config, typed, value);
}

static dc_status take_flag(cli_args *args, words *in, const char *flag) {
    size_t n = strcspn(flag, "=");
    int row = find_flag(args, flag, n);
    if (row >= 0) return take_row(args, in, flag, n, row);
    if ((args->takes & CLI_SET) && n == 3 && !memcmp(flag, "set", 3))
        return take_set(args, in, flag, n);
    if ((args->takes & CLI_JSON) && !strcmp(flag, "json"))
        return args->json = args->quiet = true, DC_OK;
    if ((args->takes & CLI_QUIET) && !strcmp(flag, "quiet")) return args->quiet = true, DC_OK;
    if (!strcmp(flag, "help")) return args->help = true, DC_OK;
    return unknown_flag(args, "--", flag, n);
}

static dc_status take_plain(cli_args *args, char *word) {
    if (!(args->takes & CLI_WORDS))
        return dc_fail(DC_USAGE, "--help lists what the command takes", "a word too many (%s)",
                       word);
    args->words[args->word_count++] = word;
    return DC_OK;
}

// ---- completion: --complete PREVIOUS CURRENT, which a shell's script asks for (complete.c) ----

static bool begins(const char *word, const char *with, size_t n) {
    return !strncmp(word, with, strlen(with) < n ? strlen(with) : n);
}

// The values of the flag before, if they can be listed.
static bool print_values(const cli_args *args, const char *flag, const char *current) {
    int row = strncmp(flag, "--", 2) ? -1 : find_flag(args, flag + 2, strlen(flag) - 2);
    const dc_option *o = row < 0 ? NULL : &args->flags[row];
    if (!o || o->kind == DC_BOOL) return false;
    for (const char *c = o->choices; c && *c;) {
        size_t n = strcspn(c, "|");
        if (strlen(current) <= n && begins(c, current, n)) printf("%.*s\n", (int)n, c);
        c += n + (c[n] == '|');
    }
    return true; // any other value is the user's, or a file's name
}

static void print_flag(const char *flag, const char *help, const char *current) {
    char word[NAME_MAX_BYTES + 2];
    snprintf(word, sizeof word, "--%s", flag);
    if (!strncmp(word, current, strlen(current))) printf("%s\t%s\n", word, help);
}

static void print_completions(const cli_args *args, const char *previous, const char *current) {
    if (print_values(args, previous, current) || *current != '-') return;
    for (const dc_option *o = args->flags; o->name; o++) {
        char flag[NAME_MAX_BYTES];
        flag_of(o->name, flag);
        print_flag(flag, o->help, current);
    }
    for (int i = 0; i < EXTRAS; i++)
        if (args->takes & extras[i].bit) print_flag(extras[i].name, extras[i].help, current);
    print_flag("help", "what the command does, with all flags", current);
}

// One word of the command line, and its value where it has one.
static dc_status take_word(cli_args *args, words *in) {
    char *word = *in->at++;
    if (!strcmp(word, "-h")) return args->help = true, DC_OK;
    if (!strcmp(word, CLI_COMPLETE) && in->end - in->at == 2) {
        print_completions(args, in->at[0], in->at[1]);
        return args->help = args->completed = true, DC_OK;
    }
    if (!strcmp(word, "-o")) return take_flag(args, in, "out");
    if (!strncmp(word, "--", 2) && word[2]) return take_flag(args, in, word + 2);
    if (word[0] == '-' && word[1] && !strchr("0123456789.", word[1]))
        return unknown_flag(args, "-", word + 1, strlen(word) - 1);
    return take_plain(args, word);
}

static dc_status print_help(const cli_args *args) {
    dc_text text;
    dc_text_init(&text);
    bool flags = args->flags->name || args->takes & (CLI_QUIET | CLI_JSON | CLI_SET);
    dc_text_add(&text, "%s%s", args->usage, flags ? "\nflags:\n" : "");
    dc_options_help(args->flags, true, &text);
    for (int i = 0; i < EXTRAS; i++)
        if (args->takes & extras[i].bit)
            dc_text_add(&text, "  %-26s %s\n", extras[i].shown, extras[i].help);
    if (args->keys) dc_text_add(&text, "\nkeys of --set:\n");
    if (args->keys) dc_options_help(args->keys, false, &text);
    dc_status status = dc_text_status(&text);
    if (status == DC_OK) fputs(text.bytes, stdout);
    dc_text_fini(&text);
    return status;
}

dc_status cli_args_parse(cli_args *args, int argc, char **argv) {
    dc_options_init(args->flags, args->config);
    args->words = argv; // plain words are moved to the front: reading is never behind writing
    words in = {argv, argv + argc};
    while (in.at < in.end && !args->help)
        DC_TRY(take_word(args, &in));
    return args->help && !args->completed ? print_help(args) : DC_OK;
}

bool cli_args_given(const cli_args *args, const char *name) {
    for (int row = 0; args->flags[row].name; row++)
        if (!strcmp(args->flags[row].name, name)) return args->given >> row & 1;
    dc_bug(__FILE__, __LINE__, "a flag of the table");
}

// Whether an option is called by its own name: it was set so, or is written as the flag is.
static bool keeps_name(const cli_args *args, const char *name) {
    size_t n = strlen(name);
    for (int i = 0; i < args->set_count; i++)
        if (!strncmp(args->sets[i], name, n) && args->sets[i][n] == '=') return true;
    return !strchr(name, '_');
}

// The option whose name is the first n bytes of a word; NULL if it is another word.
static const char *option_at(const cli_args *args, const char *word, size_t n) {
    for (const dc_option *o = args->flags; o->name; o++)
        if (strlen(o->name) == n && !memcmp(o->name, word, n) && !keeps_name(args, o->name))
            return o->name;
    return NULL;
}

// Whether a byte beside a word makes it part of a longer one, such as a path.
static bool is_within(char c) {
    return isalnum((unsigned char)c) || c == '-' || c == '.' || c == '/';
}

dc_status cli_args_say(const cli_args *args, dc_status status) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";
    dc_text out;
    if (status != DC_USAGE) return status;
    dc_text_init(&out);
    for (const char *c = dc_error(), *before = " "; *c; before = c - 1) {
        size_t n = strspn(c, letters), more = n ? n : 1;
        bool alone = n && !is_within(*before) && !is_within(c[n]);
        const char *name = alone ? option_at(args, c, n) : NULL;
        char flag[NAME_MAX_BYTES];
        if (name) flag_of(name, flag);
        dc_text_add(&out, name ? "--" : "");
        dc_text_bytes(&out, name ? flag : c, more);
        c += more;
    }
    if (dc_text_status(&out) == DC_OK && out.used) status = dc_fail(status, NULL, "%s", out.bytes);
    dc_text_fini(&out);
    return status;
}

dc_status cli_args_need(const cli_args *args, const char *name) {
    if (cli_args_given(args, name)) return DC_OK;
    char flag[NAME_MAX_BYTES];
    flag_of(name, flag);
    return dc_fail(DC_USAGE, "--help lists what the command takes", "a flag is missing (--%s)",
                   flag);
}

// Whether a name ends in one of "a|b|c", and has something before it.
static bool ends_in(const char *name, const char *ends) {
    size_t all = strlen(name), n;
    for (; *ends; ends += n + (ends[n] == '|')) {
        n = strcspn(ends, "|");
        if (all > n && !memcmp(name + all - n, ends, n)) return true;
    }
    return false;
}

dc_status cli_check_name(const char *path, const char *ends, bool folder) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    bool device =
        name == path + 5 && !strncmp(path, "/dev/", 5); // /dev/null, and not what lies in /dev/shm
    if (ends_in(name, ends) || device) return DC_OK;
    const char *dot = strrchr(name, '.');
    bool there = !dot || dot == name;
    if (folder && !there) DC_TRY(dc_folder_find(path, &there));
    if (folder && there) return DC_OK;
    char hint[128] = "FILE";
    size_t used = strlen(hint);
    for (; *ends && used + 12 < sizeof hint; ends++) { // "FILE.gif, FILE.mp4"
        if (*ends == '|')
            used += (size_t)snprintf(hint + used, sizeof hint - used, ", FILE");
        else
            hint[used++] = *ends, hint[used] = 0;
    }
    if (folder) snprintf(hint + used, sizeof hint - used, ", or FOLDER/");
    return dc_fail(DC_USAGE, NULL, "the name does not say what to write (%s): give %s", path, hint);
}

dc_status cli_args_apply(const cli_args *args, const dc_option *table, void *config) {
    for (int m = 0; m < args->set_count; m++) {
        const char *value = strchr(args->sets[m], '=');
        char key[NAME_MAX_BYTES];
        size_t n = (size_t)(value - args->sets[m]);
        snprintf(key, sizeof key, "%.*s", (int)(n < sizeof key ? n : sizeof key - 1),
                 args->sets[m]);
        DC_TRY(dc_options_set(table, config, key, value + 1));
    }
    return DC_OK;
}
