// Experiments at a scale, see experiment.h. experiments.json is our own, so a mistake in it is a bug; a file of
// scales is the user's, and every member of it is checked.
#include "report/experiment.h"

#include "base/file.h"
#include "env/lock.h"
#include "env/spec.h"
#include "report/paper.h"
#include "train/presets.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES_MAX = 64, FILE_MAX = 1 << 20 };

static const dc_option scale_table[] = {
    DC_OPTION_INT(dc_paper_scale, steps, "1000000", 1, 1e12, "updates of a run"),
    DC_OPTION_INT(dc_paper_scale, seeds, "4", 1, DC_RUNS_MAX, "runs of a cell"),
    DC_OPTION_INT(dc_paper_scale, evaluations, "10", 1, 1000, "on the way, evenly spread"),
    DC_OPTION_INT(dc_paper_scale, episodes, "15", 1, 10000, "of a task in an evaluation"),
    DC_OPTION_INT(dc_paper_scale, batch, "0", 0, 1 << 20, "rows a loss"),
    DC_OPTION_LIST(dc_paper_scale, hidden, "", 1, 8192, "widths of the hidden layers"),
    DC_OPTION_INT(dc_paper_scale, data, "0", 0, 1e12, "transitions of a data set"),
    DC_OPTION_INT(dc_paper_scale, rows, "0", 0, 20000, "of an episode of data, 2 or more"),
    {0},
};
static const dc_option lock_table[] = {
    DC_OPTION_INT(dc_lock_scale, n, "64", 1, 1e6, "steps of a propagation target"),
    DC_OPTION_INT(dc_lock_scale, batch, "512", 1, 1 << 20, "rows a loss"),
    DC_OPTION_INT(dc_lock_scale, steps, "5000000", 1, 1e12, "updates of a run"),
    DC_OPTION_LIST(dc_lock_scale, hidden, "512,512,512", 1, 8192, "widths of the hidden layers"),
    {0},
};

static dc_status no_memory(void) {
    return dc_fail(DC_NO_MEMORY, NULL, "no memory for the list of runs");
}

// --- scales ---

static bool is_text(const dc_json *v) {
    return v->kind == DC_JSON_STRING && *v->text && strlen(v->text) == v->text_length;
}

static bool is_size(const dc_json *v) {
    int64_t n;
    return dc_json_int(v, &n) && n > 0;
}

static bool is_number(const dc_json *v) {
    return v->kind == DC_JSON_NUMBER;
}

static bool is_list(const dc_json *v, bool good(const dc_json *)) {
    if (v->kind != DC_JSON_ARRAY || !v->count || v->count > VALUES_MAX) return false;
    for (const dc_json *m = v->child; m; m = m->next)
        if (!good(m)) return false;
    return true;
}

static bool is_numbers(const dc_json *v) {
    return is_list(v, is_number);
}

static bool is_object(const dc_json *v) {
    return v->kind == DC_JSON_OBJECT;
}

// The members of a scale that are no options: what each must be, and what its own members must be.
typedef struct part {
    const char *key, *must;
    bool (*member)(const dc_json *); // NULL: it is a list of texts
    size_t offset;                   // in dc_paper_scale
    bool chooses;                    // it says which cells there are, and changes no cell's runs
} part;
static const part parts[] = {
    {"values", "an object of lists of numbers, at most 64 each", is_numbers,
     offsetof(dc_paper_scale, values), true},
    {"instead", "an object of presets by task", is_text, offsetof(dc_paper_scale, instead), false},
    {"sizes", "an object of whole numbers of transitions by task", is_size,
     offsetof(dc_paper_scale, sizes), false},
    {"tasks", "a list of the experiment's tasks", NULL, offsetof(dc_paper_scale, tasks), true},
    {"methods", "a list of the experiment's methods", NULL, offsetof(dc_paper_scale, methods),
     true},
};

static bool part_is_good(const part *p, const dc_json *v) {
    if (!p->member) return is_list(v, is_text);
    if (v->kind != DC_JSON_OBJECT) return false;
    for (const dc_json *m = v->child; m; m = m->next)
        if (!p->member(m)) return false;
    return true;
}

// changes: whether the member changes runs.
static dc_status apply_member(dc_paper_scale *s, const dc_json *m, bool *changes) {
    *changes = true;
    if (!strcmp(m->key, "lock")) return dc_options_read(lock_table, &s->lock, m);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (strcmp(m->key, parts[i].key) != 0) continue;
        if (!part_is_good(&parts[i], m))
            return dc_fail(DC_BAD_INPUT, NULL, "%s must be %s", m->key, parts[i].must);
        memcpy((char *)s + parts[i].offset, &m, sizeof m);
        *changes = !parts[i].chooses;
        return DC_OK;
    }
    dc_json member = *m, alone = {.kind = DC_JSON_OBJECT, .child = &member, .count = 1};
    member.next = NULL;
    return dc_options_read(scale_table, s, &alone);
}

// Nullable: own, told whether anything is set that changes runs.
static dc_status apply(dc_paper_scale *s, const dc_json *object, bool *own) {
    if (!is_object(object)) return dc_fail(DC_BAD_INPUT, NULL, "it must be an object");
    for (const dc_json *m = object->child; m; m = m->next) {
        bool changes;
        if (!own && (!strcmp(m->key, "says") || !strcmp(m->key, "only"))) continue;
        DC_TRY(apply_member(s, m, &changes));
        if (own) *own = *own || changes;
    }
    if (s->rows == 1) return dc_fail(DC_BAD_INPUT, NULL, "rows must be 2 or more, or 0");
    return DC_OK;
}

static dc_status scale_of(const dc_json *json, const char *experiment, dc_paper_scale *out) {
    *out = (dc_paper_scale){.own = false};
    dc_options_init(scale_table, out);
    dc_options_init(lock_table, &out->lock);
    DC_TRY(apply(out, json, NULL));
    const dc_json *only = dc_json_get(json, "only");
    const dc_json *more = only ? dc_json_get(only, experiment) : NULL;
    return more ? apply(out, more, &out->own) : DC_OK;
}

// --- opening ---

static dc_status unknown(const dc_json *object, const char *what, const char *name,
                         const char *hint) {
    const char *names[VALUES_MAX];
    size_t count = 0;
    for (const dc_json *m = object->child; m && count < VALUES_MAX; m = m->next)
        names[count++] = m->key;
    const char *near = dc_nearest(name, names, count);
    if (near)
        return dc_fail(DC_USAGE, NULL, "unknown %s '%s': did you mean '%s'?", what, name, near);
    return dc_fail(DC_USAGE, hint, "unknown %s '%s'", what, name);
}

static dc_status read_file(dc_plan *plan, const char *path, const dc_json **root) {
    char *bytes;
    size_t n;
    DC_TRY(dc_file_read(path, FILE_MAX, &bytes, &n));
    dc_status status = dc_json_parse(&plan->arena, path, bytes, n, root);
    free(bytes);
    if (status == DC_OK && !is_object(*root))
        status = dc_fail(DC_BAD_INPUT, "write {\"NAME\": {...}}", "%s must be an object of scales",
                         path);
    return status;
}

static dc_status parse(dc_plan *plan, const char *name, const char *text, const dc_json **root) {
    return dc_json_parse(&plan->arena, name, text, strlen(text), root);
}

// A scale as one line of JSON.
static void put_json(const dc_json *v, dc_text *out) {
    bool object = v->kind == DC_JSON_OBJECT;
    if (v->key) dc_json_quote(out, v->key);
    if (v->key) dc_text_add(out, ": ");
    if (v->kind == DC_JSON_STRING) dc_json_quote(out, v->text);
    if (v->kind == DC_JSON_NUMBER) dc_text_add(out, "%s", v->text);
    if (v->kind == DC_JSON_BOOL) dc_text_add(out, "%s", v->truth ? "true" : "false");
    if (v->kind == DC_JSON_NULL) dc_text_add(out, "null");
    if (!object && v->kind != DC_JSON_ARRAY) return;
    dc_text_add(out, object ? "{" : "[");
    for (const dc_json *m = v->child; m; m = m->next) {
        put_json(m, out);
        if (m->next) dc_text_add(out, ", ");
    }
    dc_text_add(out, object ? "}" : "]");
}

static dc_status write_settings(dc_plan *plan) {
    dc_text text;
    dc_text_init(&text);
    put_json(plan->chosen, &text);
    dc_status status = dc_text_status(&text);
    if (status == DC_OK) plan->settings = dc_arena_text(&plan->arena, text.bytes, text.used);
    dc_text_fini(&text);
    return status == DC_OK && !plan->settings ? no_memory() : status;
}

static bool has_text(const dc_json *list, const char *text) {
    for (const dc_json *m = list->child; m; m = m->next)
        if (!strcmp(m->text, text)) return true;
    return false;
}

// Members of a list that the experiment does not have.
static dc_status check_subset(const dc_json *list, const dc_json *all, const char *what,
                              const char *experiment) {
    for (const dc_json *m = list ? list->child : NULL; m; m = m->next)
        if (!has_text(all, m->text))
            return dc_fail(DC_BAD_INPUT, "dcrl paper list --json shows them", "%s has no %s '%s'",
                           experiment, what, m->text);
    return DC_OK;
}

static const char *env_of(const dc_preset *preset) {
    const dc_json *env = NULL;
    for (int i = 0; i < preset->levels && !env; i++)
        env = dc_json_get(preset->level[i], "env");
    return env ? env->text : NULL;
}

// What stands for a task has tasks itself.
static dc_status check_stand_in(dc_plan *plan, const char *name) {
    dc_preset preset;
    DC_TRY(dc_preset_find(&plan->arena, name, &preset));
    const char *env = env_of(&preset);
    if (env && dc_env_has_tasks(env)) return DC_OK;
    return dc_fail(DC_BAD_INPUT, "dcrl list presets shows them",
                   "the preset '%s' has no environment with tasks", name);
}

static dc_status check_stand_ins(dc_plan *plan, const dc_paper_scale *s) {
    for (const dc_json *m = s->instead ? s->instead->child : NULL; m; m = m->next)
        DC_TRY(check_stand_in(plan, m->text));
    return DC_OK;
}

static dc_status check_only(dc_plan *plan, const dc_json *only) {
    if (!is_object(only))
        return dc_fail(DC_BAD_INPUT, NULL, "only must be an object of settings by experiment");
    for (const dc_json *m = only->child; m; m = m->next) {
        dc_paper_scale s;
        const dc_json *e = dc_json_get(plan->all, m->key);
        if (!e) return unknown(plan->all, "experiment", m->key, "dcrl paper list shows them");
        DC_TRY(scale_of(plan->chosen, m->key, &s));
        DC_TRY(check_subset(s.tasks, dc_json_get(e, "tasks"), "task", m->key));
        DC_TRY(check_subset(s.methods, dc_json_get(e, "methods"), "method", m->key));
        DC_TRY(check_stand_ins(plan, &s));
    }
    return DC_OK;
}

// All that can be known of a scale before an experiment is chosen.
static dc_status check_scale(dc_plan *plan) {
    dc_paper_scale s;
    const dc_json *says = NULL, *only = NULL;
    DC_TRY(scale_of(plan->chosen, "", &s));
    says = dc_json_get(plan->chosen, "says");
    if (says && !is_text(says)) return dc_fail(DC_BAD_INPUT, NULL, "says must be a sentence");
    plan->says = says ? says->text : "";
    only = dc_json_get(plan->chosen, "only");
    if (s.tasks || s.methods)
        return dc_fail(DC_BAD_INPUT, "write \"only\": {EXPERIMENT: {...}}",
                       "tasks and methods belong to an experiment");
    DC_TRY(check_stand_ins(plan, &s));
    return only ? check_only(plan, only) : DC_OK;
}

static dc_status open_scale(dc_plan *plan, const char *file, const char *scale) {
    const dc_json *own, *root = NULL;
    DC_TRY(parse(plan, "experiments.json", dc_experiments_json, &plan->all));
    DC_TRY(parse(plan, "scales.json", dc_scales_json, &own));
    DC_TRY(dc_paper_open(&plan->arena, &plan->figures));
    plan->paper = dc_json_get(own, "paper");
    if (file) DC_TRY(read_file(plan, file, &root));
    plan->chosen = root ? dc_json_get(root, scale) : NULL;
    bool theirs = plan->chosen != NULL;
    if (!theirs) plan->chosen = dc_json_get(own, scale);
    if (!plan->chosen)
        return unknown(root ? root : own, "scale", scale, "smoke, small, medium or paper");
    plan->scale = plan->chosen->key;
    dc_status status = check_scale(plan);
    if (status == DC_OK || status == DC_NO_MEMORY) return status;
    char where[512];
    snprintf(where, sizeof where, "%s, scale '%.100s'", theirs ? file : "scales.json", scale);
    return dc_fail_prefix(DC_BAD_INPUT, where);
}

dc_status dc_plan_open(dc_plan *plan, const char *file, const char *scale) {
    *plan = (dc_plan){.count = 0};
    dc_arena_init(&plan->arena, 0);
    dc_status status = open_scale(plan, file, scale);
    if (status == DC_OK) status = write_settings(plan);
    if (status == DC_OK) {
        plan->experiments =
            dc_arena_take(&plan->arena, plan->all->count * sizeof *plan->experiments);
        if (!plan->experiments) status = no_memory();
    }
    if (status != DC_OK) dc_plan_fini(plan);
    return status;
}

void dc_plan_fini(dc_plan *plan) {
    dc_arena_fini(&plan->arena);
}

// --- figures ---

static dc_quoted quote(const dc_json *pair) {
    dc_quoted q = {NAN, NAN, false};
    if (!pair || pair->kind != DC_JSON_ARRAY) return q;
    q.mean = pair->child->number;
    if (pair->count > 1) q.sd = pair->child->next->number;
    return q;
}

// By task, then by method; along an option a list of pairs, in the order of the experiment's values.
static dc_quoted quoted(const dc_json *json, const char *key, const char *task, const char *method,
                        const char *value) {
    const dc_json *found = dc_json_get(json, key), *values = dc_json_get(json, "values");
    found = found ? dc_json_get(found, task) : NULL;
    found = found ? dc_json_get(found, method) : NULL;
    if (!found || !value) return quote(found);
    const dc_json *pair = found->child;
    for (const dc_json *v = values->child; v && pair; v = v->next, pair = pair->next)
        if (!strcmp(v->text, value)) return quote(pair);
    return quote(NULL);
}

// The environment whose goals are whole observations. False: `env` is.
static bool plain_goals(const char *env, char out[DC_TEXT_MAX]) {
    const char *goals = strstr(env, "-oraclerep");
    if (!goals) return false;
    snprintf(out, DC_TEXT_MAX, "%.*s%s", (int)(goals - env), env, goals + strlen("-oraclerep"));
    return true;
}

// Of paper.json: the paper's own for goals of the same kind, else OGBench's for whole observations.
static dc_quoted quoted_elsewhere(const dc_plan *plan, const char *env, const char *method) {
    dc_paper_figure f;
    dc_quoted q = quote(NULL);
    char plain[DC_TEXT_MAX];
    if (!env) return q;
    if (dc_paper_find(plan->figures, env, method, "overall", &f))
        q = (dc_quoted){f.mean, f.sd, false};
    else if (plain_goals(env, plain) && dc_paper_find(plan->figures, plain, method, "overall", &f))
        q = (dc_quoted){f.mean, f.sd, true};
    return q;
}

// --- cells ---

static const char *text_of(const dc_json *json, const char *key) {
    const dc_json *v = dc_json_get(json, key);
    return v ? v->text : NULL;
}

static dc_status take_texts(dc_plan *plan, const dc_json *list, const char ***out, int *count) {
    *count = 0;
    *out = dc_arena_take(&plan->arena, (list->count + 1) * sizeof **out);
    if (!*out) return no_memory();
    for (const dc_json *m = list->child; m; m = m->next)
        (*out)[(*count)++] = m->text;
    return DC_OK;
}

static const dc_json *or_else(const dc_json *a, const dc_json *b) {
    return a ? a : b;
}

static dc_status lay_out(dc_plan *plan, const dc_json *json, dc_experiment *e) {
    static const dc_json nothing = {.kind = DC_JSON_ARRAY};
    const dc_json *tasks = dc_json_get(json, "tasks"), *methods = dc_json_get(json, "methods");
    const dc_json *values = dc_json_get(json, "values");
    DC_CHECK(tasks && methods && !values == !e->along);
    if (e->along && e->scale.values)
        values = or_else(dc_json_get(e->scale.values, e->along), values);
    DC_TRY(take_texts(plan, or_else(e->scale.tasks, tasks), &e->tasks, &e->task_count));
    DC_TRY(take_texts(plan, or_else(e->scale.methods, methods), &e->methods, &e->method_count));
    DC_TRY(take_texts(plan, values ? values : &nothing, &e->values, &e->value_count));
    if (!e->value_count) e->value_count = 1;
    e->tasks_left = (int)tasks->count - e->task_count;
    e->lock = !strcmp(e->tasks[0], "lock");
    size_t methods_n = (size_t)e->method_count;
    e->cells = dc_arena_take(&plan->arena, (size_t)dc_experiment_cells(e) * sizeof *e->cells);
    e->average = dc_arena_take(&plan->arena, methods_n * sizeof *e->average);
    e->average_speed = dc_arena_take(&plan->arena, methods_n * sizeof *e->average_speed);
    return e->cells && e->average && e->average_speed ? DC_OK : no_memory();
}

// runs/pointmaze-giant/dcrl,order=down,n=25
static dc_status name_folder(dc_plan *plan, const dc_experiment *e, dc_cell *c) {
    char name[512], *at = name;
    bool own = e->scale.own || e->whole_goals;
    int n = snprintf(name, sizeof name, "runs/%s%s%s/%s%s%s%s%s", own ? e->name : "",
                     own ? "/" : "", c->preset, c->method, c->value ? "," : "",
                     c->value ? e->along : "", c->value ? "=" : "", c->value ? c->value : "");
    if (n < 0 || n >= (int)sizeof name)
        return dc_fail(DC_BAD_INPUT, NULL, "the name of a run's folder is too long (%.60s)",
                       c->value);
    for (; *at; at++)
        *at = *at == ':' ? ',' : *at == '*' ? '-' : *at;
    c->folder = dc_arena_text(&plan->arena, name, strlen(name));
    return c->folder ? DC_OK : no_memory();
}

static int64_t size_of(const dc_paper_scale *s, const char *task) {
    const dc_json *size = s->sizes ? dc_json_get(s->sizes, task) : NULL;
    int64_t n = s->data;
    if (size) dc_json_int(size, &n);
    return n;
}

static bool same_widths(const dc_int_list *a, const dc_int_list *b) {
    bool same = a->count == b->count;
    for (int i = 0; same && i < a->count; i++)
        same = a->v[i] == b->v[i];
    return same;
}

// What of a cell is not as in the paper.
static dc_status compare(dc_plan *plan, const dc_experiment *e, dc_cell *c) {
    dc_paper_scale paper;
    DC_TRY(scale_of(plan->paper, e->name, &paper));
    const dc_paper_scale *s = &e->scale;
    const dc_lock_scale *l = &s->lock, *pl = &paper.lock;
    bool differs[] = {
        strcmp(c->task, c->preset) != 0,
        !e->lock && (size_of(s, c->task) != size_of(&paper, c->task) || s->rows != paper.rows),
        e->lock ? l->steps != pl->steps : s->steps != paper.steps,
        e->lock ? !same_widths(&l->hidden, &pl->hidden) : !same_widths(&s->hidden, &paper.hidden),
        e->lock ? l->batch != pl->batch : s->batch != paper.batch,
        e->lock && l->n != pl->n,
        s->seeds != paper.seeds,
    };
    c->differs = 0;
    for (unsigned i = 0; i < sizeof differs / sizeof *differs; i++)
        c->differs |= (unsigned)differs[i] << i;
    return DC_OK;
}

void dc_cell_differs(unsigned differs, dc_text *out) {
    static const char *const words[] = {"task", "data", "steps", "network", "batch", "n", "seeds"};
    const char *join = "";
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++) {
        if (!(differs >> i & 1)) continue;
        dc_text_add(out, "%s%s", join, words[i]);
        join = ", ";
    }
}

// The environment of a preset, with the experiment's goals; NULL: there is no such preset, and so no environment.
static dc_status find_env(dc_plan *plan, const dc_experiment *e, const char *name,
                          const char **env) {
    char text[DC_TEXT_MAX];
    dc_preset preset;
    dc_arena arena; // all presets are read anew
    *env = NULL;
    dc_arena_init(&arena, 0);
    dc_status status = dc_preset_find(&arena, name, &preset);
    const char *found = status == DC_OK ? env_of(&preset) : NULL;
    if (found) {
        snprintf(text, sizeof text, "%s", found);
        if (e->whole_goals) plain_goals(found, text);
        *env = dc_arena_text(&plan->arena, text, strlen(text));
        if (!*env) status = no_memory();
    }
    dc_arena_fini(&arena);
    return status == DC_USAGE ? DC_OK : status;
}

// Why a cell has no runs, if it cannot have any.
static dc_status find_missing(dc_plan *plan, const dc_experiment *e, dc_cell *c) {
    char text[256];
    c->missing = e->missing;
    if (e->lock || c->missing) return DC_OK;
    DC_TRY(find_env(plan, e, c->preset, &c->env));
    if (c->env && dc_env_has_tasks(c->env)) return DC_OK;
    if (c->env)
        snprintf(text, sizeof text, "dcrl has no environment '%.100s'", c->env);
    else
        snprintf(text, sizeof text, "dcrl has no preset '%.100s'", c->preset);
    c->missing = dc_arena_text(&plan->arena, text, strlen(text));
    return c->missing ? DC_OK : no_memory();
}

static dc_status make_cell(dc_plan *plan, const dc_json *json, dc_experiment *e, dc_cell *c) {
    const dc_json *stand_in = e->scale.instead ? dc_json_get(e->scale.instead, c->task) : NULL;
    c->preset = stand_in ? stand_in->text : c->task;
    c->x = c->value ? strtod(c->value, NULL) : NAN;
    c->transitions = size_of(&e->scale, c->task);
    c->success = quoted(json, "published", c->task, c->method, c->value);
    c->speed = quoted(json, "speed", c->task, c->method, c->value);
    DC_TRY(find_missing(plan, e, c));
    if (isnan(c->success.mean) && !c->value) {
        const char *env = c->env;
        if (strcmp(c->task, c->preset) != 0) DC_TRY(find_env(plan, e, c->task, &env));
        c->success = quoted_elsewhere(plan, env, c->method);
    }
    DC_TRY(name_folder(plan, e, c));
    DC_TRY(compare(plan, e, c));
    if (c->missing) return DC_OK;
    dc_run run = DC_RUN_NONE;
    dc_status status = dc_cell_configure(e, c, &run);
    dc_run_fini(&run);
    if (status == DC_OK || status == DC_NO_MEMORY) return status;
    char where[512];
    snprintf(where, sizeof where, "scale '%.100s', %s, %.100s", plan->scale, e->name, c->folder);
    return dc_fail_prefix(DC_BAD_INPUT, where);
}

static dc_status make_cells(dc_plan *plan, const dc_json *json, dc_experiment *e) {
    for (int t = 0; t < e->task_count; t++)
        for (int m = 0; m < e->method_count; m++)
            for (int v = 0; v < e->value_count; v++) {
                dc_cell *c = dc_experiment_cell(e, t, m, v);
                c->task = e->tasks[t];
                c->method = e->methods[m];
                c->value = e->along ? e->values[v] : NULL;
                DC_TRY(make_cell(plan, json, e, c));
            }
    for (int m = 0; m < e->method_count; m++) {
        e->average[m] = quoted(json, "published", "average", e->methods[m], NULL);
        e->average_speed[m] = quoted(json, "speed", "average", e->methods[m], NULL);
    }
    return DC_OK;
}

static dc_view view_of(const dc_json *json) {
    static const char *const views[] = {"table", "curves", "pareto", "maps"};
    int view = 0;
    while (view < 4 && strcmp(text_of(json, "view"), views[view]) != 0)
        view++;
    DC_CHECK(view < 4);
    return (dc_view)view;
}

static dc_status add_one(dc_plan *plan, const dc_json *json) {
    for (int i = 0; i < plan->count; i++)
        if (!strcmp(plan->experiments[i].name, json->key)) return DC_OK;
    dc_experiment *e = &plan->experiments[plan->count];
    *e = (dc_experiment){.name = json->key,
                         .title = text_of(json, "title"),
                         .says = text_of(json, "says"),
                         .found = text_of(json, "found"),
                         .missing = text_of(json, "missing"),
                         .along = text_of(json, "along"),
                         .view = view_of(json),
                         .whole_goals = dc_json_get(json, "goals") != NULL};
    DC_TRY(scale_of(plan->chosen, e->name, &e->scale));
    DC_TRY(lay_out(plan, json, e));
    DC_TRY(make_cells(plan, json, e));
    plan->count++;
    return DC_OK;
}

dc_status dc_plan_add(dc_plan *plan, const char *name) {
    const dc_json *json = dc_json_get(plan->all, name);
    if (json) return add_one(plan, json);
    if (strcmp(name, "all") != 0)
        return unknown(plan->all, "experiment", name, "dcrl paper list shows them");
    for (json = plan->all->child; json; json = json->next)
        DC_TRY(add_one(plan, json));
    return DC_OK;
}

// --- what a cell trains ---

void dc_cell_agent(const dc_cell *c, char agent[DC_TEXT_MAX]) {
    snprintf(agent, DC_TEXT_MAX, "%.*s", (int)strcspn(c->method, ":"), c->method);
}

dc_status dc_cell_sets(const dc_experiment *e, const dc_cell *c, dc_set_fn *set, void *ctx) {
    for (const char *at = c->method + strcspn(c->method, ":"); *at;) {
        char pair[DC_TEXT_MAX];
        size_t n = strcspn(++at, ":");
        snprintf(pair, sizeof pair, "%.*s", (int)n, at);
        char *equals = strchr(pair, '=');
        DC_CHECK(equals);
        *equals = 0;
        DC_TRY(set(ctx, pair, equals + 1));
        at += n;
    }
    if (e->whole_goals) DC_TRY(set(ctx, "env", c->env));
    return c->value && !e->lock ? set(ctx, e->along, c->value) : DC_OK;
}

dc_status dc_cell_member(const dc_experiment *e, const dc_cell *c, const char *dir, int64_t seed,
                         char *out, size_t size) {
    char agent[DC_TEXT_MAX];
    int n;
    snprintf(agent, sizeof agent, "%s", c->method);
    for (char *at = agent; *at; at++) // as dcrl lock names them
        if (*at == ':' || *at == '*' || *at == '/') *at = '_';
    if (e->lock)
        n = snprintf(out, size, "%s/%s/%s-H%s-s%" PRId64, dir, c->folder, agent, c->value, seed);
    else if (e->scale.seeds > 1)
        n = snprintf(out, size, "%s/%s/seed-%" PRId64, dir, c->folder, seed);
    else
        n = snprintf(out, size, "%s/%s", dir, c->folder);
    if (n < (int)size) return DC_OK;
    return dc_fail(DC_USAGE, "choose a shorter one", "the path of --out is too long");
}

static dc_status set_key(void *run, const char *key, const char *value) {
    return dc_run_set(run, key, value);
}

static dc_status configure_lock(const dc_lock_scale *l, const dc_cell *c, dc_run *run) {
    dc_run_options *o = &run->options;
    char env[64];
    int horizon;
    snprintf(env, sizeof env, "lock-%.40s", c->value);
    DC_TRY(dc_lock_horizon(env, &horizon));
    DC_TRY(dc_run_set(run, "env", env));
    o->hidden = l->hidden;
    o->batch = l->batch;
    o->steps = l->steps;
    return DC_OK;
}

dc_status dc_cell_configure(const dc_experiment *e, const dc_cell *c, dc_run *run) {
    char agent[DC_TEXT_MAX];
    dc_preset preset;
    const dc_paper_scale *s = &e->scale;
    dc_cell_agent(c, agent);
    DC_TRY(dc_run_configure(run, agent));
    if (e->lock) {
        DC_TRY(configure_lock(&s->lock, c, run));
    } else {
        dc_arena arena;
        dc_arena_init(&arena, 0);
        dc_status status = dc_preset_find(&arena, c->preset, &preset);
        if (status == DC_OK) status = dc_preset_apply(run, &preset);
        dc_arena_fini(&arena);
        DC_TRY(status);
        run->options.steps = s->steps;
        if (s->batch) run->options.batch = s->batch;
        if (s->hidden.count) run->options.hidden = s->hidden;
    }
    return dc_cell_sets(e, c, set_key, run);
}
