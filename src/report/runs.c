// Run folders, see runs.h. Folders are listed first, each run is then read whole into one arena,
// and groups are made at the end, when all options are known.
#include "report/runs.h"

#include "algo/agent.h"
#include "base/file.h"
#include "base/names.h"
#include "base/number.h"
#include "train/folder.h"
#include "train/presets.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    RUNS_MAX = 10000,
    DEPTH_MAX = 4,      // folders of folders of runs
    CSV_MAX = 1 << 26,  // bytes of a log
    MAP_MAX = 1 << 24,  // bytes of a map
    JSON_MAX = 1 << 20, // bytes of config.json or result.json
    STEP_MAX = 1 << 30, // (in units of 2^23) a step that a double holds exactly
};

// --- one run ---

static dc_status cannot_open(const char *path) {
    return dc_fail(DC_IO, "check the path and its permissions", "cannot open folder %s (%s)", path,
                   strerror(errno));
}

static dc_status path_of(dc_runs *runs, const char *folder, const char *name, const char **out) {
    char path[DC_PATH_MAX];
    DC_TRY(dc_folder_path(path, folder, name));
    *out = dc_arena_text(&runs->arena, path, strlen(path));
    return *out ? DC_OK : DC_NO_MEMORY;
}

static dc_status read_json(dc_runs *runs, const char *path, const dc_json **root) {
    char *bytes;
    size_t n;
    DC_TRY(dc_file_read_inside(path, JSON_MAX, &bytes, &n));
    dc_status status = dc_json_parse(&runs->arena, path, bytes, n, root);
    free(bytes);
    return status;
}

static bool get_text(const dc_json *object, const char *key, const char **out) {
    const dc_json *v = dc_json_get(object, key);
    if (!v || v->kind != DC_JSON_STRING || strlen(v->text) != v->text_length) return false;
    *out = v->text;
    return true;
}

// What stands for the environment of data that have none: the last part of their path, which is not the
// name of an environment.
static dc_status name_by_data(dc_runs *runs, dc_report_run *run) {
    const char *path = "", *slash;
    run->alone = !*run->env;
    if (!run->alone) return DC_OK;
    get_text(run->config, "data", &path);
    slash = strrchr(path, '/');
    path = *path ? (slash ? slash + 1 : path) : "data of a program";
    char name[DC_TEXT_MAX];
    snprintf(name, sizeof name, "%.200s%s", path, strpbrk(path, ". ") ? "" : " (store)");
    run->env = dc_arena_text(&runs->arena, name, strlen(name));
    return run->env ? DC_OK : DC_NO_MEMORY;
}

static dc_status read_config(dc_runs *runs, dc_report_run *run) {
    const char *path;
    DC_TRY(path_of(runs, run->folder, "config.json", &path));
    DC_TRY(read_json(runs, path, &run->config));
    const dc_json *seed = dc_json_get(run->config, "seed");
    if (!get_text(run->config, "env", &run->env) || !get_text(run->config, "agent", &run->agent) ||
        !seed || !dc_json_int(seed, &run->seed))
        return dc_fail(DC_BAD_INPUT, "every run folder has one, written by dcrl train",
                       "%s:1: env, agent and seed of a run are missing", path);
    DC_TRY(name_by_data(runs, run));
    const dc_json *size = dc_json_get(run->config, "transitions");
    if (size && (!dc_json_int(size, &run->transitions) || run->transitions < 0))
        return dc_fail(DC_BAD_INPUT, "restore that file", "%s: impossible transitions", path);
    return DC_OK;
}

static dc_status check_steps(const dc_csv *csv, const char *path) {
    int step = dc_csv_column(csv, "step");
    if (step < 0)
        return dc_fail(DC_BAD_INPUT, "docs/formats.md lists the columns",
                       "%s:1: there is no column 'step'", path);
    for (int r = 0; r < csv->rows; r++) {
        double x = dc_csv_at(csv, r, step), before = r ? dc_csv_at(csv, r - 1, step) : -1;
        if (!(x > before) || x > STEP_MAX * 0x1p23)
            return dc_fail(DC_BAD_INPUT, "repair the file or leave the run out",
                           "%s:%d: steps must rise from row to row", path, r + 2);
    }
    return DC_OK;
}

// A log that may be missing.
static dc_status read_csv(dc_runs *runs, const dc_report_run *run, const char *name, dc_csv *csv) {
    const char *path;
    bool exists;
    DC_TRY(path_of(runs, run->folder, name, &path));
    DC_TRY(dc_file_find(path, &exists));
    if (!exists) return DC_OK;
    char *bytes;
    size_t n;
    DC_TRY(dc_file_read_inside(path, CSV_MAX, &bytes, &n));
    dc_status status = dc_csv_parse(csv, &runs->arena, path, bytes, n);
    free(bytes);
    return status == DC_OK ? check_steps(csv, path) : status;
}

size_t dc_runs_task(const char *column) {
    static const char tail[] = "_success";
    size_t n = strlen(column), t = sizeof tail - 1;
    return n > t && !strcmp(column + n - t, tail) ? n - t : 0;
}

static dc_status check_success(const dc_csv *csv, const char *path, int column) {
    if (!dc_runs_task(csv->names[column])) return DC_OK;
    for (int r = 0; r < csv->rows; r++) {
        double x = dc_csv_at(csv, r, column);
        if (!(x >= 0 && x <= 1))
            return dc_fail(DC_BAD_INPUT, "write fractions, not percent",
                           "%s:%d: %s must lie between 0 and 1", path, r + 2, csv->names[column]);
    }
    return DC_OK;
}

// OGBench writes its columns as evaluation/overall_success; both forms are taken.
static dc_status read_eval(dc_runs *runs, dc_report_run *run) {
    static const char prefix[] = "evaluation/";
    const char *path;
    DC_TRY(path_of(runs, run->folder, "eval.csv", &path));
    DC_TRY(read_csv(runs, run, "eval.csv", &run->eval));
    dc_csv *csv = &run->eval;
    if (!csv->columns) return DC_OK;
    for (int c = 0; c < csv->columns; c++)
        if (!strncmp(csv->names[c], prefix, sizeof prefix - 1)) csv->names[c] += sizeof prefix - 1;
    if (dc_csv_column(csv, "overall_success") < 0)
        return dc_fail(DC_BAD_INPUT, "docs/formats.md lists the columns",
                       "%s:1: there is no column 'overall_success'", path);
    for (int c = 0; c < csv->columns; c++)
        DC_TRY(check_success(csv, path, c));
    return DC_OK;
}

static dc_status read_result(dc_runs *runs, dc_report_run *run) {
    const char *path;
    bool exists;
    DC_TRY(path_of(runs, run->folder, "result.json", &path));
    DC_TRY(dc_file_find(path, &exists));
    if (!exists) return DC_OK;
    const dc_json *root;
    DC_TRY(read_json(runs, path, &root));
    dc_lock_result *result = dc_arena_take(&runs->arena, sizeof *result);
    if (!result) return DC_NO_MEMORY;
    run->result = result;
    return dc_lock_result_read(root, path, result);
}

static int is_map(const struct dirent *entry) {
    size_t n = strlen(entry->d_name);
    return n > 8 && !strncmp(entry->d_name, "map-", 4) && !strcmp(entry->d_name + n - 4, ".svg");
}

static dc_status read_map(dc_runs *runs, dc_report_run *run, const char *name) {
    const char *path;
    char *bytes;
    dc_report_map *map = &run->maps[run->map_count];
    DC_TRY(path_of(runs, run->folder, name, &path));
    DC_TRY(dc_file_read_inside(path, MAP_MAX, &bytes, &map->size));
    map->bytes = dc_arena_text(&runs->arena, bytes, map->size);
    map->name = dc_arena_text(&runs->arena, name + 4, strlen(name) - 8);
    free(bytes);
    run->map_count++;
    return map->bytes && map->name ? DC_OK : DC_NO_MEMORY;
}

static dc_status read_maps(dc_runs *runs, dc_report_run *run) {
    struct dirent **names;
    int count = scandir(run->folder, &names, is_map, alphasort);
    if (count < 0) return cannot_open(run->folder);
    run->maps = dc_arena_take(&runs->arena, ((size_t)count + 1) * sizeof *run->maps);
    dc_status status = run->maps ? DC_OK : DC_NO_MEMORY;
    for (int i = 0; i < count; i++) {
        if (status == DC_OK) status = read_map(runs, run, names[i]->d_name);
        free(names[i]);
    }
    free(names);
    return status;
}

static dc_status read_run(dc_runs *runs, dc_report_run *run) {
    DC_TRY(read_config(runs, run));
    DC_TRY(read_csv(runs, run, "train.csv", &run->train));
    DC_TRY(read_csv(runs, run, "timing.csv", &run->timing));
    DC_TRY(read_eval(runs, run));
    DC_TRY(read_maps(runs, run));
    DC_TRY(dc_run_done(run->folder, &run->done));
    return read_result(runs, run);
}

// --- all runs ---

typedef struct finder {
    dc_runs *runs;
    dc_names folders; // device and inode, which tell whether two paths are one folder
    int found;        // in one path, with those that were added before
} finder;

// Add a folder to the list, unless it is there under another name.
static dc_status add_run(finder *f, const char *folder) {
    dc_runs *runs = f->runs;
    struct stat info;
    char name[64];
    int place;
    if (stat(folder, &info) != 0) return cannot_open(folder);
    snprintf(name, sizeof name, "%jx:%jx", (uintmax_t)info.st_dev, (uintmax_t)info.st_ino);
    DC_TRY(dc_names_put(&f->folders, name, &place));
    if (place < runs->count) return DC_OK;
    if (runs->count == RUNS_MAX)
        return dc_fail(DC_BAD_INPUT, "report on fewer at a time", "more than %d runs", RUNS_MAX);
    if ((runs->count & (runs->count - 1)) == 0) { // room is the next power of two
        size_t room = runs->count ? (size_t)runs->count * 2 : 1;
        dc_report_run *more = realloc(runs->runs, room * sizeof *more);
        if (!more) return dc_fail(DC_NO_MEMORY, NULL, "no memory for the list of runs");
        runs->runs = more;
    }
    dc_report_run *run = &runs->runs[runs->count];
    *run = (dc_report_run){0};
    run->folder = dc_arena_text(&runs->arena, folder, strlen(folder));
    if (!run->folder) return DC_NO_MEMORY;
    runs->count++;
    return DC_OK;
}

static dc_status find_runs(finder *f, const char *path, int depth);

// Names in their order, numbers in them by value: H32 before H128.
static int by_name(const struct dirent **x, const struct dirent **y) {
    static const char digits[] = "0123456789";
    const char *a = (*x)->d_name, *b = (*y)->d_name;
    for (;;) {
        size_t n = strspn(a, digits), m = strspn(b, digits);
        int order = n != m ? (n < m ? -1 : 1) : strncmp(a, b, n);
        if (n && m && order) return order;
        if (n != m || a[n] != b[n] || !a[n]) return strcmp(a, b);
        a += n + 1;
        b += n + 1;
    }
}

static dc_status find_at(finder *f, const char *path, int depth) {
    struct stat info;
    if (stat(path, &info) == 0) return S_ISDIR(info.st_mode) ? find_runs(f, path, depth) : DC_OK;
    return errno == ENOENT || errno == ELOOP ? DC_OK : cannot_open(path); // a link to nowhere
}

// Folders inside a folder, in the order of their names.
static dc_status find_inside(finder *f, const char *path, int depth) {
    struct dirent **names;
    int count = scandir(path, &names, NULL, by_name);
    if (count < 0) return cannot_open(path);
    dc_status status = DC_OK;
    for (int i = 0; i < count; i++) {
        char inner[DC_PATH_MAX];
        if (status == DC_OK && names[i]->d_name[0] != '.') {
            status = dc_folder_path(inner, path, names[i]->d_name);
            if (status == DC_OK) status = find_at(f, inner, depth + 1);
        }
        free(names[i]);
    }
    free(names);
    return status;
}

// Add the run at a path, or the runs in it.
static dc_status find_runs(finder *f, const char *path, int depth) {
    char config[DC_PATH_MAX];
    bool exists;
    DC_TRY(dc_folder_path(config, path, "config.json"));
    DC_TRY(dc_file_find(config, &exists));
    if (!exists) return depth < DEPTH_MAX ? find_inside(f, path, depth) : DC_OK;
    f->found++;
    return add_run(f, path);
}

// The path of a folder without slashes at its end.
static dc_status find_path(finder *f, const char *path) {
    char plain[DC_PATH_MAX];
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    if (!n || n >= sizeof plain)
        return dc_fail(DC_USAGE, "name a run folder", "the path of a run is empty or too long");
    memcpy(plain, path, n);
    plain[n] = 0;
    f->found = 0;
    DC_TRY(find_runs(f, plain, 0));
    if (!f->found)
        return dc_fail(DC_IO, "name a folder that dcrl train or dcrl lock --out made",
                       "there is no run in %s", plain);
    return DC_OK;
}

// --- options ---

bool dc_runs_counts(const dc_report_run *run, const char *key) {
    static const char *const beside[] = {"seed", "env", "agent", "data", "log_every"};
    const dc_option *row = dc_options_find(dc_run_table, key);
    if (row && row->role == DC_BESIDE) return false;
    for (size_t i = 0; i < sizeof beside / sizeof beside[0]; i++)
        if (!strcmp(key, beside[i])) return false;
    if (strcmp(key, "data_hash") != 0) return !dc_run_is_record(key);
    // An environment that makes its own data makes it anew for each seed.
    const char *data;
    return get_text(run->config, "data", &data) && *data;
}

bool dc_runs_same_value(const dc_json *a, const dc_json *b) {
    if (!a || !b) return a == b;
    if (a->kind != b->kind || a->count != b->count || a->truth != b->truth) return false;
    if (a->text && b->text && strcmp(a->text, b->text) != 0) return false;
    const dc_json *x = a->child, *y = b->child;
    while (x && y && dc_runs_same_value(x, y))
        x = x->next, y = y->next;
    return !x && !y;
}

void dc_runs_value(const dc_json *v, dc_text *out) {
    if (v->kind == DC_JSON_ARRAY)
        for (const dc_json *m = v->child; m; m = m->next)
            dc_text_add(out, "%s%s", m->text ? m->text : "?", m->next ? "," : "");
    else if (v->kind == DC_JSON_BOOL)
        dc_text_add(out, v->truth ? "on" : "off");
    else
        dc_text_add(out, "%s", v->text ? v->text : "");
}

static bool same_number(const char *a, const char *b) {
    double x, y;
    return dc_number_scan(a, strlen(a), DC_GRAMMAR_LOOSE) == strlen(a) && *a && *b &&
           dc_number_scan(b, strlen(b), DC_GRAMMAR_LOOSE) == strlen(b) && dc_number_real(a, &x) &&
           dc_number_real(b, &y) && x == y;
}

// The row of a method's own table; NULL for other keys and for methods that are not known here.
static const dc_option *own_row(const dc_report_run *run, const char *key) {
    const dc_algo *algo;
    return dc_algo_find(run->agent, &algo) == DC_OK ? dc_options_find(algo->options, key) : NULL;
}

// Whether a value is written as `what`, or is the same number.
static bool says(const dc_json *v, const char *what) {
    if (v->kind == DC_JSON_BOOL) return !strcmp(v->truth ? "on" : "off", what);
    if (v->kind != DC_JSON_ARRAY) {
        const char *text = v->text ? v->text : "";
        return !strcmp(text, what) || same_number(text, what);
    }
    for (const dc_json *m = v->child; m; m = m->next) {
        const char *text = m->text ? m->text : "?";
        size_t n = strlen(text);
        if (strncmp(what, text, n) != 0 || (m->next && what[n] != ',')) return false;
        what += n + (m->next != NULL);
    }
    return !*what;
}

bool dc_runs_default(const dc_report_run *run, const dc_json *option) {
    const dc_option *row = dc_options_find(dc_run_table, option->key);
    if (!row) row = own_row(run, option->key);
    return row && says(option, row->init);
}

// --- groups ---

static int by_key(const void *x, const void *y) {
    const dc_json *const *a = x, *const *b = y;
    return strcmp((*a)->key, (*b)->key);
}

static dc_status sort_options(dc_runs *runs, dc_report_run *run) {
    run->options = dc_arena_take(&runs->arena, (run->config->count + 1) * sizeof *run->options);
    if (!run->options) return DC_NO_MEMORY;
    for (const dc_json *m = run->config->child; m; m = m->next)
        if (dc_runs_counts(run, m->key)) run->options[run->option_count++] = m;
    if (run->option_count)
        qsort(run->options, (size_t)run->option_count, sizeof *run->options, by_key);
    return DC_OK;
}

static int key_of(const void *key, const void *option) {
    const dc_json *const *o = option;
    return strcmp(key, (*o)->key);
}

const dc_json *dc_runs_option(const dc_report_run *run, const char *key) {
    const dc_json **found =
        run->option_count
            ? bsearch(key, run->options, (size_t)run->option_count, sizeof *run->options, key_of)
            : NULL;
    return found ? *found : NULL;
}

// A value so that equal ones, and no others, are equal texts.
static void add_value(const dc_json *v, dc_text *out) {
    dc_text_add(out, "%d%d", v->kind, v->truth);
    if (v->text) dc_json_quote(out, v->text);
    if (!v->child) return;
    dc_text_add(out, "[");
    for (const dc_json *m = v->child; m; m = m->next)
        add_value(m, out);
    dc_text_add(out, "]");
}

// What the runs of a group have in common, as one name.
static dc_status name_common(const dc_report_run *run, dc_names *names, int *place) {
    dc_text text;
    dc_text_init(&text);
    dc_json_quote(&text, run->env);
    dc_json_quote(&text, run->agent);
    for (int i = 0; i < run->option_count; i++) {
        dc_json_quote(&text, run->options[i]->key);
        add_value(run->options[i], &text);
    }
    dc_status status = dc_text_status(&text);
    if (status == DC_OK) status = dc_names_put(names, text.bytes, place);
    dc_text_fini(&text);
    return status;
}

static int by_seed(const void *x, const void *y) {
    const dc_report_run *a = *(const dc_report_run *const *)x,
                        *b = *(const dc_report_run *const *)y;
    if (a->seed != b->seed) return a->seed < b->seed ? -1 : 1;
    return a < b ? -1 : a > b; // in the order of the paths
}

static dc_status sort_seeds(dc_report_group *g) {
    qsort(g->runs, (size_t)g->count, sizeof *g->runs, by_seed);
    for (int i = 1; i < g->count; i++)
        if (g->runs[i - 1]->seed == g->runs[i]->seed)
            return dc_fail(DC_BAD_INPUT, "leave one out: a seed counts once",
                           "%s and %s are the same run", g->runs[i - 1]->folder,
                           g->runs[i]->folder);
    return DC_OK;
}

static dc_status make_groups(dc_runs *runs) {
    dc_names names;
    size_t n = (size_t)runs->count;
    dc_names_init(&names, &runs->arena);
    int *place = dc_arena_take(&runs->arena, n * sizeof *place);
    const dc_report_run **all = dc_arena_take(&runs->arena, n * sizeof *all);
    runs->groups = dc_arena_take(&runs->arena, n * sizeof *runs->groups);
    if (!place || !all || !runs->groups) return DC_NO_MEMORY;
    for (int i = 0; i < runs->count; i++) {
        DC_TRY(name_common(&runs->runs[i], &names, &place[i]));
        runs->groups[place[i]].count++;
    }
    runs->group_count = names.count;
    for (int g = 0; g < runs->group_count; all += runs->groups[g++].count)
        runs->groups[g] =
            (dc_report_group){.runs = all, .count = runs->groups[g].count, .place = g};
    for (int i = runs->count; i-- > 0;) { // from the back, so that counts tell where there is room
        dc_report_group *g = &runs->groups[place[i]];
        g->env = runs->runs[i].env;
        g->agent = runs->runs[i].agent;
        g->runs[--g->count] = &runs->runs[i];
    }
    for (int i = 0; i < runs->count; i++)
        runs->groups[place[i]].count++;
    for (int g = 0; g < runs->group_count; g++)
        DC_TRY(sort_seeds(&runs->groups[g]));
    return DC_OK;
}

// Count an environment's groups and runs, by their places in the lists of all.
static dc_status count_envs(dc_runs *runs, dc_names *names) {
    dc_names_init(names, &runs->arena);
    for (int g = 0; g < runs->group_count; g++) {
        dc_report_group *group = &runs->groups[g];
        DC_TRY(dc_names_put(names, group->env, &group->env_place));
        runs->envs[group->env_place].count++;
        runs->envs[group->env_place].run_count += group->count;
    }
    runs->env_count = names->count;
    return DC_OK;
}

static dc_status make_envs(dc_runs *runs) {
    dc_names names;
    size_t n = (size_t)runs->group_count;
    dc_report_group **groups = dc_arena_take(&runs->arena, n * sizeof *groups);
    const dc_report_run **all = dc_arena_take(&runs->arena, (size_t)runs->count * sizeof *all);
    runs->envs = dc_arena_take(&runs->arena, n * sizeof *runs->envs);
    if (!groups || !all || !runs->envs) return DC_NO_MEMORY;
    DC_TRY(count_envs(runs, &names));
    for (int e = 0; e < runs->env_count; e++) {
        dc_report_env *env = &runs->envs[e];
        int count = env->count, run_count = env->run_count;
        *env = (dc_report_env){.name = names.name[e], .groups = groups, .runs = all};
        groups += count;
        all += run_count;
    }
    for (int g = 0; g < runs->group_count; g++) {
        dc_report_env *env = &runs->envs[runs->groups[g].env_place];
        env->groups[env->count++] = &runs->groups[g];
    }
    for (int i = 0; i < runs->count; i++) {
        dc_report_env *env = &runs->envs[dc_names_find(&names, runs->runs[i].env)];
        env->runs[env->run_count++] = &runs->runs[i];
    }
    return DC_OK;
}

// --- labels ---

// The place of a pair as one name; with `put` it is put there if it is new.
static dc_status pair_place(dc_names *names, const char *a, const char *b, bool put, int *place) {
    dc_text text;
    dc_text_init(&text);
    dc_json_quote(&text, a);
    dc_json_quote(&text, b);
    dc_status status = dc_text_status(&text);
    if (status == DC_OK && put) status = dc_names_put(names, text.bytes, place);
    if (status == DC_OK && !put) *place = dc_names_find(names, text.bytes);
    dc_text_fini(&text);
    return status;
}

typedef struct labels {
    dc_runs *runs;
    dc_names
        telling; // agent and key: two groups of this agent differ by it in the same environment
} labels;

// The keys by which two runs of an agent differ tell its groups apart, whichever the environment is:
// a label then reads the same in all of them.
static dc_status add_telling(labels *l, const dc_report_run *x, const dc_report_run *y) {
    for (int i = 0, k = 0, place; i < x->option_count || k < y->option_count;) {
        int order = i == x->option_count   ? 1
                    : k == y->option_count ? -1
                                           : strcmp(x->options[i]->key, y->options[k]->key);
        const char *key = order <= 0 ? x->options[i]->key : y->options[k]->key;
        if (order || !dc_runs_same_value(x->options[i], y->options[k]))
            DC_TRY(pair_place(&l->telling, x->agent, key, true, &place));
        i += order <= 0;
        k += order >= 0;
    }
    return DC_OK;
}

// Each group against the first of its agent and environment: what differs between two, differs from that.
static dc_status find_telling(labels *l) {
    dc_runs *runs = l->runs;
    dc_names pairs;
    const dc_report_group **first =
        dc_arena_take(&runs->arena, (size_t)runs->group_count * sizeof *first);
    if (!first) return DC_NO_MEMORY;
    dc_names_init(&pairs, &runs->arena);
    for (int g = 0; g < runs->group_count; g++) {
        const dc_report_group *group = &runs->groups[g];
        int place;
        DC_TRY(pair_place(&pairs, group->env, group->agent, true, &place));
        if (!first[place]) first[place] = group;
        DC_TRY(add_telling(l, first[place]->runs[0], group->runs[0]));
    }
    return DC_OK;
}

// What an environment's preset has for a method: settings that belong to the environment. Not `known`
// where there is no preset.
typedef struct usual {
    dc_run run;
    bool known;
} usual;

static dc_status find_usual(const char *env, const char *agent, usual *out) {
    dc_preset preset;
    dc_arena arena;
    out->run = DC_RUN_NONE;
    out->known = false;
    dc_arena_init(&arena, 0);
    dc_status status = dc_preset_of(&arena, env, &preset);
    if (status == DC_OK && preset.levels) {
        status = dc_run_configure(&out->run, agent);
        if (status == DC_OK) status = dc_preset_apply(&out->run, &preset);
        out->known = status == DC_OK;
    }
    dc_arena_fini(&arena);
    if (status != DC_OK) dc_run_fini(&out->run);
    return status;
}

static dc_status as_usual(const usual *u, const dc_option *row, const dc_json *option, bool *same) {
    dc_text value;
    dc_text_init(&value);
    dc_options_value(row, u->run.config, &value);
    dc_status status = dc_text_status(&value);
    *same = status == DC_OK && says(option, value.bytes ? value.bytes : "");
    dc_text_fini(&value);
    return status;
}

// A switch of the method that is neither at its default nor as the environment's preset has it makes
// another method of it ("dcrl:order=down"), and is always shown; a number, or what a preset says, only
// where it distinguishes groups.
static dc_status in_label(labels *l, const dc_report_run *run, const dc_json *option,
                          const usual *u, bool *in) {
    *in = false;
    if (!dc_runs_counts(run, option->key) || dc_runs_default(run, option)) return DC_OK;
    const dc_option *row = own_row(run, option->key);
    bool usual_value = false;
    if (row && (row->kind == DC_BOOL || row->kind == DC_CHOICE)) {
        if (u->known) DC_TRY(as_usual(u, row, option, &usual_value));
        *in = !usual_value;
    }
    if (*in) return DC_OK;
    int place;
    DC_TRY(pair_place(&l->telling, run->agent, option->key, false, &place));
    *in = place >= 0;
    return DC_OK;
}

static dc_status add_label(labels *l, const dc_report_group *group, const usual *u,
                           const char *without, dc_text *label) {
    const dc_report_run *run = group->runs[0];
    dc_text_add(label, "%s", group->agent);
    for (const dc_json *m = run->config->child; m; m = m->next) {
        bool in;
        if (!strcmp(m->key, without)) continue;
        DC_TRY(in_label(l, run, m, u, &in));
        if (!in) continue;
        dc_text_add(label, ":%s=", m->key);
        dc_runs_value(m, label);
    }
    return dc_text_status(label);
}

static dc_status name_group(labels *l, const dc_report_group *group, const usual *u,
                            const char *without, const char **out) {
    dc_text label;
    dc_text_init(&label);
    dc_status status = add_label(l, group, u, without, &label);
    *out = status == DC_OK ? dc_arena_text(&l->runs->arena, label.bytes, label.used) : NULL;
    dc_text_fini(&label);
    return status == DC_OK && !*out ? DC_NO_MEMORY : status;
}

static dc_status name_both(labels *l, dc_report_group *group, const usual *u) {
    DC_TRY(name_group(l, group, u, "", &group->label));
    return name_group(l, group, u, "policy", &group->method);
}

// Name an environment's groups of one method, by what its preset has for that.
static dc_status name_agent(labels *l, const dc_report_env *env, const char *agent) {
    usual u = {.known = false};
    dc_status status = DC_OK;
    bool found = false;
    for (int g = 0; g < env->count && status == DC_OK; g++) {
        if (strcmp(env->groups[g]->agent, agent) != 0) continue;
        if (!found) status = find_usual(env->name, agent, &u);
        found = true;
        if (status == DC_OK) status = name_both(l, env->groups[g], &u);
    }
    if (found) dc_run_fini(&u.run);
    return status;
}

// A label has one style wherever it stands: its place among all labels.
static dc_status give_styles(dc_runs *runs) {
    dc_names names;
    dc_names_init(&names, &runs->arena);
    for (int g = 0; g < runs->group_count; g++)
        DC_TRY(dc_names_put(&names, runs->groups[g].label, &runs->groups[g].style));
    return DC_OK;
}

static dc_status name_groups(dc_runs *runs) {
    labels l = {.runs = runs};
    dc_names_init(&l.telling, &runs->arena);
    DC_TRY(find_telling(&l));
    for (int e = 0; e < runs->env_count; e++)
        for (int a = 0; dc_algos[a]; a++)
            DC_TRY(name_agent(&l, &runs->envs[e], dc_algos[a]->name));
    for (int g = 0; g < runs->group_count; g++) // of methods that are not known here
        if (!runs->groups[g].label) DC_TRY(name_both(&l, &runs->groups[g], &(usual){0}));
    return give_styles(runs);
}

static dc_status read_all(dc_runs *runs, const char *const *paths, int count) {
    finder f = {.runs = runs};
    dc_names_init(&f.folders, &runs->arena);
    for (int i = 0; i < count; i++)
        DC_TRY(find_path(&f, paths[i]));
    for (int i = 0; i < runs->count; i++) {
        DC_TRY(read_run(runs, &runs->runs[i]));
        DC_TRY(sort_options(runs, &runs->runs[i]));
    }
    DC_TRY(make_groups(runs));
    DC_TRY(make_envs(runs));
    return name_groups(runs);
}

dc_status dc_runs_read(dc_runs *runs, const char *const *paths, int count) {
    *runs = (dc_runs){0};
    dc_arena_init(&runs->arena, 0);
    dc_status status = read_all(runs, paths, count);
    if (status != DC_OK) dc_runs_fini(runs);
    return status;
}

void dc_runs_fini(dc_runs *runs) {
    dc_arena_fini(&runs->arena);
    free(runs->runs);
    *runs = (dc_runs){0};
}
