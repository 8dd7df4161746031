// Published figures, see paper.h. The file is our own, so a mistake in it is a bug.
#include "report/paper.h"

#include <string.h>

dc_status dc_paper_open(dc_arena *arena, const dc_json **paper) {
    return dc_json_parse(arena, "paper.json", dc_paper_json, strlen(dc_paper_json), paper);
}

static const char *text(const dc_json *row, const char *key) {
    const dc_json *v = dc_json_get(row, key);
    DC_CHECK(v && v->kind == DC_JSON_STRING);
    return v->text;
}

// Our name is the paper's, or goes on with a dash.
static bool same_env(const char *paper, const char *ours) {
    size_t n = strlen(paper);
    return !strncmp(paper, ours, n) && (!ours[n] || ours[n] == '-');
}

bool dc_paper_find(const dc_json *paper, const char *env, const char *label, const char *task,
                   dc_paper_figure *out) {
    const dc_json *results = dc_json_get(paper, "results");
    DC_CHECK(results);
    for (const dc_json *row = results->child; row; row = row->next) {
        if (strcmp(text(row, "method"), label) != 0 || !same_env(text(row, "env"), env)) continue;
        if (dc_json_get(row, "plain") && strstr(env, "-oraclerep")) continue; // another kind of goals
        const dc_json *pair = dc_json_get(row, task);
        if (!pair || pair->kind != DC_JSON_ARRAY) return false; // a task may be called "data"
        DC_CHECK(pair->count == 2);
        *out = (dc_paper_figure){pair->child->number, pair->child->next->number, text(row, "data"),
                                 text(row, "source")};
        return true;
    }
    return false;
}
