// dcrl list: what there is: environments, agents with their options, presets. One list each, the
// same that training reads.
#include "args.h"
#include "cli.h"

#include "algo/agent.h"
#include "base/json.h"
#include "train/presets.h"

#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: dcrl list envs|agents|presets [--json]\n"
    "\n"
    "Names that other commands take, with what they mean; agents with their options.\n"
    "\n"
    "example: dcrl list agents\n";

static const dc_option no_flags[] = {{0}};

static const struct {
    const char *name, *about;
} envs[] = {{"lock-H", "combination-lock of H states, for instance lock-512"}};

static void list_envs(bool json, dc_text *out) {
    size_t count = sizeof envs / sizeof envs[0];
    for (size_t i = 0; i < count; i++) {
        if (!json) {
            dc_text_add(out, "%-10s %s\n", envs[i].name, envs[i].about);
            continue;
        }
        dc_text_add(out, "%s{\"name\": ", i ? ", " : "{\"envs\": [");
        dc_json_quote(out, envs[i].name);
        dc_text_add(out, ", \"about\": ");
        dc_json_quote(out, envs[i].about);
        dc_text_add(out, i + 1 == count ? "}]}\n" : "}");
    }
}

static void agent_json(const dc_algo *a, dc_text *out) {
    dc_text_add(out, "{\"name\": ");
    dc_json_quote(out, a->name);
    dc_text_add(out, ", \"about\": ");
    dc_json_quote(out, a->about);
    dc_text_add(out, ", \"options\": [");
    for (const dc_option *o = a->options; o->name; o++) {
        dc_text_add(out, "%s{\"name\": \"%s\", \"default\": ", o == a->options ? "" : ", ",
                    o->name);
        dc_json_quote(out, o->init);
        if (o->choices) {
            dc_text_add(out, ", \"choices\": ");
            dc_json_quote(out, o->choices);
        }
        dc_text_add(out, ", \"help\": ");
        dc_json_quote(out, o->help);
        dc_text_add(out, "}");
    }
    dc_text_add(out, "]}");
}

static void list_agents(bool json, dc_text *out) {
    if (json) dc_text_add(out, "{\"agents\": [");
    for (int i = 0; dc_algos[i]; i++) {
        if (json) {
            if (i) dc_text_add(out, ", ");
            agent_json(dc_algos[i], out);
            continue;
        }
        dc_text_add(out, "%s%s: %s; options for --set:\n", i ? "\n" : "", dc_algos[i]->name,
                    dc_algos[i]->about);
        dc_options_help(dc_algos[i]->options, false, out);
    }
    if (json) dc_text_add(out, "]}\n");
}

static void value_text(const dc_json *v, dc_text *out) {
    if (v->kind == DC_JSON_ARRAY)
        for (const dc_json *m = v->child; m; m = m->next)
            dc_text_add(out, "%s%s", m->text ? m->text : "?", m->next ? "," : "");
    else if (v->kind == DC_JSON_BOOL)
        dc_text_add(out, v->truth ? "on" : "off");
    else
        dc_text_add(out, "%s", v->text ? v->text : "");
}

static dc_status list_presets(bool json, dc_text *out) {
    dc_arena arena;
    dc_arena_init(&arena, 0);
    dc_status status = DC_OK;
    if (json) dc_text_add(out, "{\"presets\": [");
    bool first = true;
    for (const dc_preset_file *f = dc_preset_files; f->name && status == DC_OK; f++) {
        const dc_json *root = NULL;
        status = dc_json_parse(&arena, f->name, f->json, strlen(f->json), &root);
        for (const dc_json *p = status == DC_OK ? root->child : NULL; p;
             p = p->next, first = false) {
            dc_text_add(out, json ? "%s{\"name\": \"%s\"" : "%s%-12s", json && !first ? ", " : "",
                        p->key);
            for (const dc_json *m = p->child; m; m = m->next) {
                dc_text_add(out, json ? ", \"%s\": \"" : " %s=", m->key);
                value_text(m, out);
                if (json) dc_text_add(out, "\"");
            }
            dc_text_add(out, json ? "}" : "\n");
        }
    }
    if (json) dc_text_add(out, "]}\n");
    dc_arena_fini(&arena);
    return status;
}

dc_status cmd_list(int argc, char **argv) {
    static const char *const names[] = {"envs", "agents", "presets"};
    char config;
    cli_args args = {
        .usage = usage, .flags = no_flags, .config = &config, .takes = CLI_JSON | CLI_WORDS};
    DC_TRY(cli_args_parse(&args, argc, argv));
    if (args.help) return DC_OK;
    if (args.word_count != 1)
        return dc_fail(DC_USAGE, "dcrl list envs|agents|presets", "one word says what to list");
    const char *word = args.words[0];
    dc_text out;
    dc_text_init(&out);
    dc_status status = DC_OK;
    if (!strcmp(word, names[0]))
        list_envs(args.json, &out);
    else if (!strcmp(word, names[1]))
        list_agents(args.json, &out);
    else if (!strcmp(word, names[2]))
        status = list_presets(args.json, &out);
    else {
        const char *near = dc_nearest(word, names, 3);
        status =
            near ? dc_fail(DC_USAGE, NULL, "unknown list '%s': did you mean '%s'?", word, near)
                 : dc_fail(DC_USAGE, "dcrl list envs|agents|presets", "unknown list '%s'", word);
    }
    if (status == DC_OK) status = dc_text_status(&out);
    if (status == DC_OK && out.bytes) fputs(out.bytes, stdout);
    dc_text_fini(&out);
    return status;
}
