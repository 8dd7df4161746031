// Presets, see presets.h.
#include "train/presets.h"

#include <string.h>

static dc_status find(dc_arena *arena, const char *name, const dc_json **found) {
    *found = NULL;
    for (const dc_preset_file *f = dc_preset_files; f->name && !*found; f++) {
        const dc_json *root;
        DC_TRY(dc_json_parse(arena, f->name, f->json, strlen(f->json), &root));
        *found = dc_json_get(root, name);
    }
    return DC_OK;
}

static dc_status unknown(dc_arena *arena, const char *name) {
    enum { MOST = 256 };
    const char *names[MOST];
    size_t count = 0;
    for (const dc_preset_file *f = dc_preset_files; f->name; f++) {
        const dc_json *root;
        DC_TRY(dc_json_parse(arena, f->name, f->json, strlen(f->json), &root));
        for (const dc_json *m = root->child; m && count < MOST; m = m->next)
            names[count++] = m->key;
    }
    const char *near = dc_nearest(name, names, count);
    if (near) return dc_fail(DC_USAGE, NULL, "unknown preset '%s': did you mean '%s'?", name, near);
    return dc_fail(DC_USAGE, "dcrl list presets shows them", "unknown preset '%s'", name);
}

dc_status dc_preset_find(dc_arena *arena, const char *name, dc_preset *preset) {
    *preset = (dc_preset){0};
    for (const char *next = name; next;) {
        const dc_json *found, *like;
        DC_TRY(find(arena, next, &found));
        if (!found && !preset->levels) return unknown(arena, name);
        DC_CHECK(found && preset->levels < DC_PRESET_LEVELS);
        preset->level[preset->levels++] = found;
        like = dc_json_get(found, "like");
        next = like ? like->text : NULL;
    }
    return DC_OK;
}

// Whether two names differ by nothing but -oraclerep.
static bool same_env(const char *a, const char *b) {
    static const char goals[] = "-oraclerep";
    size_t n = sizeof goals - 1;
    for (; *a || *b; a++, b++) {
        if (!strncmp(a, goals, n)) a += n;
        if (!strncmp(b, goals, n)) b += n;
        if (*a != *b) return false;
        if (!*a) return true;
    }
    return true;
}

static dc_status first_of(dc_arena *arena, const char *env, bool exact, dc_preset *preset) {
    for (const dc_preset_file *f = dc_preset_files; f->name && !preset->levels; f++) {
        const dc_json *root;
        DC_TRY(dc_json_parse(arena, f->name, f->json, strlen(f->json), &root));
        for (const dc_json *m = root->child; m && !preset->levels; m = m->next) {
            const dc_json *own = dc_json_get(m, "env");
            if (own && (exact ? !strcmp(own->text, env) : same_env(own->text, env)))
                DC_TRY(dc_preset_find(arena, m->key, preset));
        }
    }
    return DC_OK;
}

dc_status dc_preset_of(dc_arena *arena, const char *env, dc_preset *preset) {
    *preset = (dc_preset){0};
    DC_TRY(first_of(arena, env, true, preset));
    return preset->levels ? DC_OK : first_of(arena, env, false, preset);
}

const char *dc_preset_agent(const dc_preset *preset) {
    const dc_json *agent = NULL;
    for (int i = 0; i < preset->levels && !agent; i++)
        agent = dc_json_get(preset->level[i], "agent");
    return agent ? agent->text : NULL;
}

// Whether a method other than the run's has this option: a preset speaks to all of them.
static bool of_another(const dc_run *run, const char *key) {
    if (dc_options_find(run->algo->options, key) || dc_options_find(dc_run_table, key))
        return false;
    for (int i = 0; dc_algos[i]; i++)
        if (dc_options_find(dc_algos[i]->options, key)) return true;
    return false;
}

static dc_status set_members(dc_run *run, const dc_json *object) {
    for (const dc_json *m = object->child; m; m = m->next) {
        if (m->kind == DC_JSON_OBJECT || !strcmp(m->key, "like") || of_another(run, m->key))
            continue;
        dc_json member = *m, alone = {.kind = DC_JSON_OBJECT, .child = &member, .count = 1};
        member.next = NULL;
        DC_TRY(dc_run_set_json(run, &alone));
    }
    return DC_OK;
}

// What the preset says of the run's method alone.
static dc_status set_section(dc_run *run, const dc_json *object) {
    const dc_json *section = dc_json_get(object, run->options.agent);
    return section ? dc_run_set_json(run, section) : DC_OK;
}

dc_status dc_preset_apply(dc_run *run, const dc_preset *preset) {
    for (int i = preset->levels; i-- > 0;)
        DC_TRY(set_members(run, preset->level[i]));
    for (int i = preset->levels; i-- > 0;)
        DC_TRY(set_section(run, preset->level[i]));
    return DC_OK;
}
