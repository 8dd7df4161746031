// Reading a command's arguments, see args.h. Values are checked by base/options.h; here only the
// shape of the command line is known.
#include "args.h"

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

static dc_status unknown_flag(const cli_args *args, const char *word, size_t n) {
    char flags[CLI_FLAGS_MAX][NAME_MAX_BYTES], given[NAME_MAX_BYTES];
    const char *names[CLI_FLAGS_MAX + 3];
    size_t count = 0;
    for (; args->flags[count].name; count++) {
        flag_of(args->flags[count].name, flags[count]);
        names[count] = flags[count];
    }
    names[count++] = "help";
    if (args->takes & CLI_JSON) names[count++] = "json";
    if (args->takes & CLI_SET) names[count++] = "set";
    snprintf(given, sizeof given, "%.*s", (int)(n < sizeof given ? n : sizeof given - 1), word);
    const char *near = dc_nearest(given, names, count);
    if (near)
        return dc_fail(DC_USAGE, NULL, "unknown flag (--%s): did you mean '--%s'?", given, near);
    return dc_fail(DC_USAGE, "--help lists them", "unknown flag (--%s)", given);
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

static dc_status take_row(cli_args *args, words *in, const char *flag, size_t n, int row) {
    const dc_option *option = &args->flags[row];
    const char *value = "on";
    if (option->kind != DC_BOOL || flag[n] == '=') DC_TRY(take_value(in, flag, n, &value));
    args->given |= (uint64_t)1 << row;
    return dc_options_set(args->flags, args->config, option->name, value);
}

static dc_status take_flag(cli_args *args, words *in, const char *flag) {
    size_t n = strcspn(flag, "=");
    int row = find_flag(args, flag, n);
    if (row >= 0) return take_row(args, in, flag, n, row);
    if ((args->takes & CLI_SET) && n == 3 && !memcmp(flag, "set", 3))
        return take_set(args, in, flag, n);
    if ((args->takes & CLI_JSON) && !strcmp(flag, "json")) return args->json = true, DC_OK;
    if (!strcmp(flag, "help")) return args->help = true, DC_OK;
    return unknown_flag(args, flag, n);
}

static dc_status take_plain(cli_args *args, char *word) {
    if (!(args->takes & CLI_WORDS))
        return dc_fail(DC_USAGE, "--help lists what the command takes", "a word too many (%s)",
                       word);
    args->words[args->word_count++] = word;
    return DC_OK;
}

// One word of the command line, and its value where it has one.
static dc_status take_word(cli_args *args, words *in) {
    char *word = *in->at++;
    if (!strcmp(word, "-h")) return args->help = true, DC_OK;
    if (!strcmp(word, "-o")) return take_flag(args, in, "out");
    if (!strncmp(word, "--", 2) && word[2]) return take_flag(args, in, word + 2);
    if (word[0] == '-' && word[1] && !strchr("0123456789.", word[1]))
        return unknown_flag(args, word + 1, strlen(word) - 1);
    return take_plain(args, word);
}

static dc_status print_help(const cli_args *args) {
    dc_text text;
    dc_text_init(&text);
    dc_text_add(&text, "%s\nflags:\n", args->usage);
    dc_options_help(args->flags, true, &text);
    if (args->takes & CLI_JSON)
        dc_text_add(&text, "  %-26s one JSON object on standard output, nothing else\n", "--json");
    if (args->takes & CLI_SET)
        dc_text_add(&text, "  %-26s set an option; may be repeated\n", "--set KEY=VALUE");
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
    return args->help ? print_help(args) : DC_OK;
}

bool cli_args_given(const cli_args *args, const char *name) {
    for (int row = 0; args->flags[row].name; row++)
        if (!strcmp(args->flags[row].name, name)) return args->given >> row & 1;
    dc_bug(__FILE__, __LINE__, "a flag of the table");
}

dc_status cli_args_need(const cli_args *args, const char *name) {
    if (cli_args_given(args, name)) return DC_OK;
    char flag[NAME_MAX_BYTES];
    flag_of(name, flag);
    return dc_fail(DC_USAGE, "--help lists what the command takes", "a flag is missing (--%s)",
                   flag);
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
