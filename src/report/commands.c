// Command lines, see commands.h. Options at their defaults are left out; those of the run are
// flags, those of the method go through --set. `dcrl lock` has defaults of its own for some, so
// these are always written.
#include "report/commands.h"

#include "train/run.h"

#include <inttypes.h>
#include <string.h>

// A word as the shell must see it.
static void add_word(dc_text *out, const char *word) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-+=.,:/@%";
    if (*word && !word[strspn(word, plain)]) {
        dc_text_add(out, "%s", word);
        return;
    }
    dc_text_add(out, "'");
    for (; *word; word++)
        dc_text_add(out, "%s%c", *word == '\'' ? "'\\'" : "", *word);
    dc_text_add(out, "'");
}

static void add_flag(dc_text *out, const dc_json *option) {
    dc_text value;
    dc_text_init(&value);
    dc_runs_value(option, &value);
    dc_text_follow(out, &value);
    dc_text_add(out, " --");
    for (const char *c = option->key; *c; c++)
        dc_text_bytes(out, *c == '_' ? "-" : c, 1);
    dc_text_add(out, " ");
    add_word(out, value.bytes ? value.bytes : "");
    dc_text_fini(&value);
}

static void add_set(dc_text *out, const dc_json *option) {
    dc_text pair;
    dc_text_init(&pair);
    dc_text_add(&pair, "%s=", option->key);
    dc_runs_value(option, &pair);
    dc_text_follow(out, &pair);
    dc_text_add(out, " --set ");
    add_word(out, pair.bytes ? pair.bytes : "");
    dc_text_fini(&pair);
}

static bool is_one_of(const char *key, const char *const *list) {
    for (; *list; list++)
        if (!strcmp(key, *list)) return true;
    return false;
}

// What a command does not say: options at their defaults, and what is no option.
static bool is_beside(const dc_report_group *g, const dc_json *m, const char *const *other) {
    return is_one_of(m->key, other) || dc_run_is_record(m->key) || dc_runs_default(g->runs[0], m);
}

static void add_seeds(const dc_report_group *g, const char *join, dc_text *out) {
    for (int i = 0; i < g->count; i++)
        dc_text_add(out, "%s%" PRId64, i ? join : "", g->runs[i]->seed);
}

static void lock_command(const dc_report_group *g, dc_text *out) {
    static const char *const own[] = {"steps", "batch", "hidden", "n", "slots", "device", NULL};
    static const char *const other[] = {"agent", "env", "data", "seed", "threads", NULL};
    dc_text_add(out, "dcrl lock --agent ");
    add_word(out, g->agent);
    dc_text_add(out, " --horizon %" PRId64 " --seed ", g->runs[0]->result->horizon);
    add_seeds(g, ",", out);
    for (const dc_json *m = g->runs[0]->config->child; m; m = m->next) {
        if (is_one_of(m->key, own))
            add_flag(out, m);
        else if (!is_beside(g, m, other))
            add_set(out, m);
    }
    dc_text_add(out, " --out runs");
}

static void train_command(const dc_report_group *g, dc_text *out) {
    static const char *const other[] = {"agent", "env", "seed", "threads", NULL};
    bool many = g->count > 1;
    if (many) {
        dc_text_add(out, "for seed in ");
        add_seeds(g, " ", out);
        dc_text_add(out, "; do ");
    }
    dc_text_add(out, "dcrl train --env ");
    add_word(out, g->env);
    dc_text_add(out, " --agent ");
    add_word(out, g->agent);
    for (const dc_json *m = g->runs[0]->config->child; m; m = m->next) {
        if (is_beside(g, m, other)) continue;
        (dc_options_find(dc_run_table, m->key) ? add_flag : add_set)(out, m);
    }
    if (many)
        dc_text_add(out, " --seed $seed --out runs/seed-$seed; done");
    else
        dc_text_add(out, " --seed %" PRId64 " --out runs/seed-%" PRId64, g->runs[0]->seed,
                    g->runs[0]->seed);
}

void dc_command_of(const dc_report_group *group, dc_text *out) {
    if (group->runs[0]->result)
        lock_command(group, out);
    else
        train_command(group, out);
}
