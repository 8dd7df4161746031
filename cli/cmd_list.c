// dcrl list: what there is: environments, agents with their options, presets. One list each, the
// same that training reads.
#include "args.h"
#include "cli.h"

#include "algo/agent.h"
#include "base/json.h"
#include "env/spec.h"
#include "report/runs.h"
#include "train/presets.h"

#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: dcrl list envs|agents|presets [--names] [--json]\n"
    "\n"
    "Names that other commands take, with what they mean; agents with their options.\n"
    "\n"
    "example: dcrl list agents\n";

typedef struct flags {
    bool names;
} flags;

static const dc_option table[] = {
    DC_OPTION_BOOL(flags, names, "off", "names alone, one on each line"),
    {0},
};

static const char lock_about[] = "combination-lock of H states, for instance lock-512";
static const char forms[] =
    "\nOf visual environments observations and goals are pictures.\n"
    "A name may go on with its data: -navigate, -stitch or -explore (mazes), -play or -noisy "
    "(the arm's), then\n"
    "-100m for 100 million transitions (the arm's, humanoidmaze-giant-navigate); then with\n"
    "-oraclerep (goals are only what counts: xy, positions of cubes, states of buttons) or "
    "-singletask[-taskK] (one task,\n"
    "rewards of 0 and less); then with -v0.\n";

static void env_json(const dc_env_spec *e, dc_text *out) {
    dc_text_add(out, ", {\"name\": \"%s\", \"about\": \"%s\", ", e->name, e->family->about);
    dc_text_add(out,
                "\"obs\": %d, \"act\": %d, \"goal\": %d, \"oracle_goal\": %d, \"goal_at\": %d, ",
                e->obs, e->family->act, e->goal, e->family->oracle, e->family->goal_at);
    dc_text_add(out, "\"nq\": %d, \"nv\": %d, \"horizon\": %d, \"tolerance\": ", e->family->nq,
                e->family->nv, e->horizon);
    dc_json_number(out, e->family->tolerance);
    dc_text_add(out, ", \"tasks\": [");
    for (int t = 0; t < DC_TASKS; t++) {
        dc_text_add(out, t ? ", " : "");
        dc_env_task_json(e, t, out);
    }
    dc_text_add(out, "]}");
}

static void list_env(const dc_env_spec *e, bool json, dc_text *out) {
    char obs[32];
    if (json) {
        env_json(e, out);
        return;
    }
    snprintf(obs, sizeof obs, "%d", e->family->obs);
    if (e->visual) snprintf(obs, sizeof obs, "%d x %d x 3", DC_VISUAL_SIDE, DC_VISUAL_SIDE);
    dc_text_add(out, "%-29s %s: obs %s, act %d, %d tasks, %d steps\n", e->name, e->family->about,
                obs, e->family->act, DC_TASKS, e->horizon);
}

static void list_envs(bool json, dc_text *out) {
    dc_env_spec e;
    if (json)
        dc_text_add(out, "{\"envs\": [{\"name\": \"lock-H\", \"about\": \"%s\"}", lock_about);
    else
        dc_text_add(out, "%-29s %s\n", "lock-H", lock_about);
    for (int r = 0; dc_env_listed(&e, r); r++)
        list_env(&e, json, out);
    dc_text_add(out, json ? "]}\n" : forms);
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

// Members of a preset; what differs for a method reads td:alpha=10.
static void preset_members(const dc_json *p, const char *method, bool json, dc_text *out) {
    for (const dc_json *m = p->child; m; m = m->next) {
        if (m->kind == DC_JSON_OBJECT) {
            preset_members(m, m->key, json, out);
            continue;
        }
        dc_text_add(out, json ? ", \"%s%s%s\": \"" : " %s%s%s=", method, *method ? ":" : "",
                    m->key);
        dc_runs_value(m, out);
        if (json) dc_text_add(out, "\"");
    }
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
            dc_text_add(out, json ? "%s{\"name\": \"%s\"" : "%s%-19s", json && !first ? ", " : "",
                        p->key);
            preset_members(p, "", json, out);
            dc_text_add(out, json ? "}" : "\n");
        }
    }
    if (json) dc_text_add(out, "]}\n");
    dc_arena_fini(&arena);
    return status;
}

// ---- names alone ----

static dc_status preset_names(dc_text *out) {
    dc_arena arena;
    dc_arena_init(&arena, 0);
    dc_status status = DC_OK;
    for (const dc_preset_file *f = dc_preset_files; f->name && status == DC_OK; f++) {
        const dc_json *root = NULL;
        status = dc_json_parse(&arena, f->name, f->json, strlen(f->json), &root);
        for (const dc_json *p = status == DC_OK ? root->child : NULL; p; p = p->next)
            if (dc_json_get(p, "env")) dc_text_add(out, "%s\n", p->key);
    }
    dc_arena_fini(&arena);
    return status;
}

static dc_status list_names(const char *what, dc_text *out) {
    dc_env_spec e;
    if (!strcmp(what, "presets")) return preset_names(out);
    for (int i = 0; !strcmp(what, "agents") && dc_algos[i]; i++)
        dc_text_add(out, "%s\n", dc_algos[i]->name);
    for (int r = 0; !strcmp(what, "envs") && dc_env_listed(&e, r); r++)
        dc_text_add(out, "%s\n", e.name);
    return DC_OK;
}

dc_status cmd_list(int argc, char **argv) {
    static const char *const names[] = {"envs", "agents", "presets"};
    flags f;
    cli_args args = {.usage = usage, .flags = table, .config = &f, .takes = CLI_JSON | CLI_WORDS};
    DC_TRY(cli_args_parse(&args, argc, argv));
    if (args.help) return DC_OK;
    if (args.word_count != 1)
        return dc_fail(DC_USAGE, "dcrl list envs|agents|presets", "one word says what to list");
    const char *word = args.words[0];
    dc_text out;
    dc_text_init(&out);
    dc_status status = DC_OK;
    bool known = false;
    for (int i = 0; i < 3; i++)
        known = known || !strcmp(word, names[i]);
    if (f.names && known)
        status = list_names(word, &out);
    else if (!strcmp(word, names[0]))
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
