// Names and what they mean, see spec.h; the rows come from the families' tables.
#include "env/spec.h"

#include "base/options.h"
#include "env/family.h"
#include "env/lock.h"

#include <stdio.h>
#include <string.h>

enum { ROWS_MAX = 64 };

static const dc_family_ops *const families[] = {
#define DC_FAMILY(name) &dc_##name,
#include "env/families.def"
#undef DC_FAMILY
};
enum { FAMILIES = sizeof families / sizeof families[0] };

// ---- names ----

static const char visual[] = "visual-";

// FAMILY-VARIANT or FAMILY, then the tail.
static void write_name(dc_env_spec *spec, const char *tail) {
    const char *variant = spec->variant;
    snprintf(spec->name, sizeof spec->name, "%s%s%s%s%s", spec->visual ? visual : "",
             spec->family->name, variant ? "-" : "", variant ? variant : "", tail);
}

bool dc_env_row(dc_env_spec *spec, int index) {
    if (index < 0) return false;
    for (int k = 0; k < FAMILIES; k++)
        for (const dc_env_entry *e = families[k]->entries; e->family; e++) {
            if (index--) continue;
            *spec = (dc_env_spec){.family = e->family,
                                  .variant = e->variant,
                                  .maze = e->maze,
                                  .tasks = e->tasks,
                                  .horizon = e->horizon};
            spec->obs = spec->goal = spec->family->obs;
            write_name(spec, "-v0");
            return true;
        }
    return false;
}

// Names of environments seen as pictures (visual-...) have such words, too, also where there is no such environment.
bool dc_env_has_tasks(const char *name) {
    for (int k = 0; k < FAMILIES; k++)
        for (const char *const *word = families[k]->words; *word; word++)
            if (strstr(name, *word)) return true;
    return false;
}

// Whether *rest starts with "-word" as a whole part; steps over it if so.
static bool take(const char **rest, const char *word) {
    size_t n = strlen(word);
    const char *p = *rest;
    if (p[0] != '-' || strncmp(p + 1, word, n) != 0 || (p[n + 1] && p[n + 1] != '-')) return false;
    *rest = p + n + 1;
    return true;
}

static void take_single(dc_env_spec *spec, const char **rest) {
    spec->task = spec->family->task;
    char word[] = "task1";
    for (int k = 1; k <= DC_TASKS; k++, word[4]++)
        if (take(rest, word)) {
            spec->task = k;
            return;
        }
}

const char *dc_data_word(dc_data_kind kind) {
    static const char *const words[] = {
        [DC_DATA_ANY] = "any",         [DC_DATA_NAVIGATE] = "navigate", [DC_DATA_STITCH] = "stitch",
        [DC_DATA_EXPLORE] = "explore", [DC_DATA_PLAY] = "play",         [DC_DATA_NOISY] = "noisy"};
    return words[kind];
}

// What stands behind FAMILY-VARIANT or FAMILY; false if something is left that means nothing.
static bool read_tail(dc_env_spec *spec, const char *rest) {
    const dc_family_data *data = &spec->family->ops->data;
    for (int w = (int)data->first; w <= (int)data->last; w++)
        if (spec->data == DC_DATA_ANY && take(&rest, dc_data_word((dc_data_kind)w)))
            spec->data = (dc_data_kind)w;
    bool hundred = spec->data != DC_DATA_ANY && data->hundred && data->hundred(spec) > 0;
    spec->large = hundred && take(&rest, "100m");
    if (take(&rest, "oraclerep"))
        spec->oracle = true;
    else if (take(&rest, "singletask"))
        take_single(spec, &rest);
    take(&rest, "v0");
    return *rest == 0;
}

// The name written out, and the sizes that follow from it.
static void complete(dc_env_spec *spec) {
    char tail[32] = "-v0";
    if (spec->oracle) snprintf(tail, sizeof tail, "-oraclerep-v0");
    if (spec->task) snprintf(tail, sizeof tail, "-singletask-task%d-v0", spec->task);
    write_name(spec, tail);
    spec->obs = spec->visual ? DC_VISUAL_OBS : spec->family->obs;
    spec->goal = spec->oracle ? spec->family->oracle : spec->obs;
}

void dc_env_plain(dc_env_spec *spec) {
    spec->data = DC_DATA_ANY;
    spec->large = false;
    spec->oracle = false;
    spec->task = 0;
    complete(spec);
}

bool dc_env_make_visual(dc_env_spec *spec) {
    if (!spec->family->visual) return false;
    spec->visual = true;
    complete(spec);
    return true;
}

bool dc_env_listed(dc_env_spec *spec, int index) {
    for (int r = 0; dc_env_row(spec, r); r++)
        if (index-- == 0) return true;
    for (int r = 0; dc_env_row(spec, r); r++)
        if (dc_env_make_visual(spec) && index-- == 0) return true;
    return false;
}

void dc_env_data_name(const dc_env_spec *spec, dc_data_kind kind, bool hundred,
                      char name[DC_ENV_NAME_MAX]) {
    dc_env_spec set = *spec;
    char tail[32];
    snprintf(tail, sizeof tail, "-%s%s-v0", dc_data_word(kind), hundred ? "-100m" : "");
    write_name(&set, tail);
    memcpy(name, set.name, DC_ENV_NAME_MAX);
}

static dc_status unknown(const char *name) {
    int horizon;
    if (dc_lock_horizon(name, &horizon) == DC_OK)
        return dc_fail(DC_USAGE,
                       "dcrl report shows its run, and dcrl lock how far off its distances are",
                       "%s has no tasks to play or to draw", name);
    dc_env_spec base[ROWS_MAX];
    const char *list[ROWS_MAX];
    size_t count = 0;
    bool pictures = strncmp(name, visual, strlen(visual)) == 0;
    for (int r = 0; count < ROWS_MAX && dc_env_row(&base[count], r); r++) {
        if (pictures && !dc_env_make_visual(&base[count])) continue;
        write_name(&base[count], "");
        list[count] = base[count].name;
        count++;
    }
    const char *near = dc_nearest(name, list, count);
    if (near)
        return dc_fail(DC_USAGE, NULL, "unknown environment '%s': did you mean '%s'?", name, near);
    return dc_fail(DC_USAGE, "dcrl list envs shows them, and how a name is put together",
                   "unknown environment '%s'", name);
}

dc_status dc_env_find(dc_env_spec *spec, const char *name) {
    bool pictures = strncmp(name, visual, strlen(visual)) == 0;
    const char *rest = pictures ? name + strlen(visual) : name;
    for (int r = 0; dc_env_row(spec, r); r++) {
        size_t n = strlen(spec->name) - strlen("-v0");
        if (strncmp(rest, spec->name, n) != 0 || !read_tail(spec, rest + n)) continue;
        if (pictures && !spec->family->visual) break;
        spec->visual = pictures;
        complete(spec);
        return DC_OK;
    }
    return unknown(name);
}

// ---- facts of the family ----

const char *dc_env_target_name(const dc_env_family *family) {
    return family->ops->target;
}

const dc_extra *dc_env_extra_facts(const dc_env_family *family) {
    return &family->ops->extra;
}

void dc_env_task_json(const dc_env_spec *spec, int task, dc_text *out) {
    spec->family->ops->task_json(spec, task, out);
}

// Each family's target array, then each family's extra array.
bool dc_env_foreign(const dc_env_family *family, int index, dc_foreign *foreign) {
    const dc_family_ops *own = family->ops;
    for (int k = 0; k < FAMILIES; k++) {
        const char *name = families[k]->target;
        if (strcmp(name, own->target) == 0 || index--) continue;
        foreign->name = name;
        snprintf(foreign->hint, sizeof foreign->hint, "%s's is '%s'", own->noun, own->target);
        return true;
    }
    for (int k = 0; k < FAMILIES; k++) {
        const dc_extra *extra = &families[k]->extra;
        bool has = family->extra && extra->name && !strcmp(own->extra.name, extra->name);
        if (!extra->name || has || index--) continue;
        foreign->name = extra->name;
        snprintf(foreign->hint, sizeof foreign->hint, "leave it out: there are no %s", extra->what);
        return true;
    }
    return false;
}
