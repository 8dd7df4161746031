// Completion, see complete.h. Names come from the lists themselves, flags and their values from the command's option
// table: the command is called with CLI_COMPLETE (args.h) behind its plain words.
#include "complete.h"

#include "args.h"
#include "cli.h"

#include <stdio.h>
#include <string.h>

enum { WORDS_MAX = 16 };

static bool starts(const char *word, const char *with) {
    return !strncmp(word, with, strlen(with));
}

// `dcrl list WHAT --names`; the shell keeps those that begin as what is typed.
static dc_status print_names(const char *what) {
    char word[16], names[] = "--names";
    snprintf(word, sizeof word, "%s", what);
    return cmd_list(2, (char *[]){word, names, NULL});
}

// `dcrl paper list --names`, behind `dcrl paper run`.
static dc_status print_experiments(void) {
    char list[] = "list", names[] = "--names";
    return cmd_paper(2, (char *[]){list, names, NULL});
}

// Parts of a command, which stand where another has its first plain word.
static const char *const parts[][6] = {{"data", "info", "convert", "draw", "rewards"},
                                       {"env", "model", "replay"},
                                       {"paper", "list", "run"},
                                       {"expert", "train", "eval"},
                                       {"list", "envs", "agents", "presets"},
                                       {"completion", "bash", "zsh", "fish"}};

static bool print_parts(const char *command, const char *current) {
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (strcmp(parts[i][0], command) != 0) continue;
        for (int k = 1; k < 6 && parts[i][k]; k++)
            if (starts(parts[i][k], current)) puts(parts[i][k]);
        return true;
    }
    return false;
}

// What goes behind a flag whose values are names, or stands without a flag. NULL: nothing that has a list.
static const char *list_for(const char *command, const char *previous, const char *current,
                            int words) {
    if (!strcmp(previous, "--agent")) return "agents";
    if (!strcmp(previous, "--env")) return "envs";
    bool plain = *current != '-' && *previous != '-' && words == 0;
    if (plain && !strcmp(command, "train")) return "presets";
    if (plain && (!strcmp(command, "gen") || !strcmp(command, "render"))) return "envs";
    return NULL;
}

dc_status cli_complete(const cli_row *commands, int count, int argc, char **argv) {
    static char complete[] = CLI_COMPLETE, none[] = "";
    char *current = argc ? argv[argc - 1] : none, *previous = argc > 1 ? argv[argc - 2] : none;
    bool about = argc == 2 && !strcmp(argv[0], "help"); // dcrl help COMMAND
    if (argc <= 1 || about) {
        for (int i = 0; i < count; i++)
            if (starts(commands[i].name, current))
                printf("%s\t%s\n", commands[i].name, commands[i].help);
        return DC_OK;
    }
    char *words[WORDS_MAX];
    int n = 0; // plain words in front: a preset, or the name of a part of the command
    while (n + 2 < argc && n < WORDS_MAX - 4 && *argv[n + 1] != '-') {
        words[n] = argv[n + 1];
        n++;
    }
    if (n == 0 && *current != '-' && *previous != '-' && print_parts(argv[0], current))
        return DC_OK;
    bool named = n > 0 && !strcmp(words[0], "run") && *current != '-' && *previous != '-';
    if (named && !strcmp(argv[0], "paper")) return print_experiments();
    const char *list = list_for(argv[0], previous, current, n);
    if (list) return print_names(list);
    words[n] = complete;
    words[n + 1] = previous;
    words[n + 2] = current;
    words[n + 3] = NULL;
    for (int i = 0; i < count; i++)
        if (!strcmp(argv[0], commands[i].name)) commands[i].run(n + 3, words);
    return DC_OK; // a line that is not yet right offers nothing
}
