// Published figures, see paper.h. The file is our own, so a mistake in it is a bug.
#include "report/paper.h"

#include <math.h>
#include <string.h>

dc_status dc_paper_open(dc_arena *arena, const dc_json **paper) {
    return dc_json_parse(arena, "paper.json", dc_paper_json, strlen(dc_paper_json), paper);
}

static const char *text(const dc_json *object, const char *key) {
    const dc_json *v = dc_json_get(object, key);
    DC_CHECK(v && v->kind == DC_JSON_STRING);
    return v->text;
}

// Our name is the published one, then the size of the data if it has one of its own (-100m), the kind of
// goals and -v0. Nothing else may follow: -singletask forms have other rewards.
static bool same_env(const dc_json *table, const char *published, const char *ours) {
    bool oracle = !strcmp(text(table, "goals"), "oraclerep");
    size_t n = strlen(published);
    if (strncmp(published, ours, n) != 0) return false;
    const char *rest = ours + n;
    if (oracle && !strncmp(rest, "-100m", 5)) rest += 5;
    return !strcmp(rest, oracle ? "-oraclerep-v0" : "-v0");
}

// A method's figures are a pair for all tasks, or an object of pairs by task; a pair is [mean, sd], or
// [mean] where no deviation was published.
static const dc_json *pair_of(const dc_json *figures, const char *label, const char *task) {
    const dc_json *found = dc_json_get(figures, label);
    if (found && found->kind == DC_JSON_OBJECT) return dc_json_get(found, task);
    return !strcmp(task, "overall") ? found : NULL;
}

bool dc_paper_find(const dc_json *paper, const char *env, const char *label, const char *task,
                   dc_paper_figure *out) {
    const dc_json *tables = dc_json_get(paper, "tables");
    DC_CHECK(tables);
    for (const dc_json *t = tables->child; t; t = t->next)
        for (const dc_json *row = dc_json_get(t, "rows")->child; row; row = row->next) {
            if (!same_env(t, text(row, "env"), env)) continue;
            const dc_json *pair = pair_of(dc_json_get(row, "figures"), label, task);
            if (!pair) continue;
            DC_CHECK(pair->kind == DC_JSON_ARRAY && pair->count >= 1 && pair->count <= 2);
            *out = (dc_paper_figure){.mean = pair->child->number,
                                     .sd = pair->count == 2 ? pair->child->next->number : NAN,
                                     .data = text(row, "data"),
                                     .steps = text(t, "steps"),
                                     .source = text(t, "source")};
            return true;
        }
    return false;
}
