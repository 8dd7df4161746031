// Run folders, see runs.h. Folders are listed first, each run is then read whole into one arena,
// and groups are made at the end, when all options are known.
#include "report/runs.h"

#include "algo/agent.h"
#include "base/file.h"
#include "base/number.h"
#include "train/folder.h"

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
    DC_TRY(dc_file_read(path, JSON_MAX, &bytes, &n));
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

static dc_status read_config(dc_runs *runs, dc_report_run *run) {
    const char *path;
    DC_TRY(path_of(runs, run->folder, "config.json", &path));
    DC_TRY(read_json(runs, path, &run->config));
    const dc_json *seed = dc_json_get(run->config, "seed");
    if (!get_text(run->config, "env", &run->env) || !get_text(run->config, "agent", &run->agent) ||
        !seed || !dc_json_int(seed, &run->seed))
        return dc_fail(DC_BAD_INPUT, "every run folder has one, written by dcrl train",
                       "%s:1: env, agent and seed of a run are missing", path);
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
    DC_TRY(path_of(runs, run->folder, name, &path));
    if (!dc_file_exists(path)) return DC_OK;
    char *bytes;
    size_t n;
    DC_TRY(dc_file_read(path, CSV_MAX, &bytes, &n));
    dc_status status = dc_csv_parse(csv, &runs->arena, path, bytes, n);
    free(bytes);
    return status == DC_OK ? check_steps(csv, path) : status;
}

const char *dc_runs_task(dc_arena *arena, const char *column) {
    static const char tail[] = "_success";
    size_t n = strlen(column), t = sizeof tail - 1;
    if (n <= t || strcmp(column + n - t, tail) != 0) return NULL;
    return dc_arena_text(arena, column, n - t);
}

static dc_status check_success(dc_runs *runs, const dc_csv *csv, const char *path, int column) {
    if (!dc_runs_task(&runs->arena, csv->names[column])) return DC_OK;
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
        DC_TRY(check_success(runs, csv, path, c));
    return DC_OK;
}

static dc_status read_result(dc_runs *runs, dc_report_run *run) {
    const char *path;
    DC_TRY(path_of(runs, run->folder, "result.json", &path));
    if (!dc_file_exists(path)) return DC_OK;
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
    DC_TRY(dc_file_read(path, MAP_MAX, &bytes, &map->size));
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
    run->done = dc_run_done(run->folder);
    return read_result(runs, run);
}

// --- all runs ---

// Add a folder to the list, unless it is there under another name.
static dc_status add_run(dc_runs *runs, const char *folder) {
    struct stat info;
    if (stat(folder, &info) != 0) return cannot_open(folder);
    for (int i = 0; i < runs->count; i++)
        if (runs->runs[i].device == info.st_dev && runs->runs[i].inode == info.st_ino) return DC_OK;
    if (runs->count == RUNS_MAX)
        return dc_fail(DC_BAD_INPUT, "report on fewer at a time", "more than %d runs", RUNS_MAX);
    if ((runs->count & (runs->count - 1)) == 0) { // room is the next power of two
        size_t room = runs->count ? (size_t)runs->count * 2 : 1;
        dc_report_run *more = realloc(runs->runs, room * sizeof *more);
        if (!more) return dc_fail(DC_NO_MEMORY, NULL, "no memory for the list of runs");
        runs->runs = more;
    }
    dc_report_run *run = &runs->runs[runs->count];
    *run = (dc_report_run){.device = info.st_dev, .inode = info.st_ino};
    run->folder = dc_arena_text(&runs->arena, folder, strlen(folder));
    if (!run->folder) return DC_NO_MEMORY;
    runs->count++;
    return DC_OK;
}

static dc_status find_runs(dc_runs *runs, const char *path, int depth, int *found);

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

// Folders inside a folder, in the order of their names.
static dc_status find_inside(dc_runs *runs, const char *path, int depth, int *found) {
    struct dirent **names;
    int count = scandir(path, &names, NULL, by_name);
    if (count < 0) return cannot_open(path);
    dc_status status = DC_OK;
    for (int i = 0; i < count; i++) {
        char inner[DC_PATH_MAX];
        struct stat info;
        if (status == DC_OK && names[i]->d_name[0] != '.') {
            status = dc_folder_path(inner, path, names[i]->d_name);
            if (status == DC_OK && stat(inner, &info) == 0 && S_ISDIR(info.st_mode))
                status = find_runs(runs, inner, depth + 1, found);
        }
        free(names[i]);
    }
    free(names);
    return status;
}

// Add the run at a path, or the runs in it; `found` counts those that were added before, too.
static dc_status find_runs(dc_runs *runs, const char *path, int depth, int *found) {
    char config[DC_PATH_MAX];
    DC_TRY(dc_folder_path(config, path, "config.json"));
    if (!dc_file_exists(config))
        return depth < DEPTH_MAX ? find_inside(runs, path, depth, found) : DC_OK;
    ++*found;
    return add_run(runs, path);
}

// The path of a folder without slashes at its end.
static dc_status find_path(dc_runs *runs, const char *path) {
    char plain[DC_PATH_MAX];
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    if (!n || n >= sizeof plain)
        return dc_fail(DC_USAGE, "name a run folder", "the path of a run is empty or too long");
    memcpy(plain, path, n);
    plain[n] = 0;
    int found = 0;
    DC_TRY(find_runs(runs, plain, 0, &found));
    if (!found)
        return dc_fail(DC_IO, "name a folder that dcrl train or dcrl lock --out made",
                       "there is no run in %s", plain);
    return DC_OK;
}

// --- options ---

bool dc_runs_counts(const dc_report_run *run, const char *key) {
    static const char *const beside[] = {"seed",       "threads", "feed",       "log_every",
                                         "save_every", "keep",    "eval_every", "eval_episodes",
                                         "data",       "build",   "env",        "agent"};
    for (size_t i = 0; i < sizeof beside / sizeof beside[0]; i++)
        if (!strcmp(key, beside[i])) return false;
    // An environment that makes its own data makes it anew for each seed.
    const char *data;
    return strcmp(key, "data_hash") != 0 || (get_text(run->config, "data", &data) && *data);
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

bool dc_runs_default(const dc_report_run *run, const dc_json *option) {
    const dc_option *row = dc_options_find(dc_run_table, option->key);
    if (!row) row = own_row(run, option->key);
    if (!row) return false;
    dc_text value;
    dc_text_init(&value);
    dc_text_add(&value, "%s", "");
    dc_runs_value(option, &value);
    bool same =
        value.bytes && (!strcmp(value.bytes, row->init) || same_number(value.bytes, row->init));
    dc_text_fini(&value);
    return same;
}

// --- groups ---

// Every option of a that counts has the same value in b.
static bool covers(const dc_report_run *a, const dc_report_run *b) {
    for (const dc_json *m = a->config->child; m; m = m->next)
        if (dc_runs_counts(a, m->key) && !dc_runs_same_value(m, dc_json_get(b->config, m->key)))
            return false;
    return true;
}

static bool same_group(const dc_report_run *a, const dc_report_run *b) {
    return !strcmp(a->env, b->env) && !strcmp(a->agent, b->agent) && covers(a, b) && covers(b, a);
}

// Put a run into its group, by seed.
static dc_status insert(dc_report_group *g, const dc_report_run *run) {
    int at = g->count;
    for (; at > 0 && g->runs[at - 1]->seed >= run->seed; at--) {
        if (g->runs[at - 1]->seed == run->seed)
            return dc_fail(DC_BAD_INPUT, "leave one out: a seed counts once",
                           "%s and %s are the same run", g->runs[at - 1]->folder, run->folder);
        g->runs[at] = g->runs[at - 1];
    }
    g->runs[at] = run;
    g->count++;
    return DC_OK;
}

static dc_status make_groups(dc_runs *runs) {
    runs->groups = dc_arena_take(&runs->arena, (size_t)runs->count * sizeof *runs->groups);
    if (!runs->groups) return DC_NO_MEMORY;
    for (int i = 0; i < runs->count; i++) {
        const dc_report_run *run = &runs->runs[i];
        int g = 0;
        while (g < runs->group_count && !same_group(runs->groups[g].runs[0], run))
            g++;
        dc_report_group *group = &runs->groups[g];
        if (g == runs->group_count) {
            *group = (dc_report_group){.env = run->env, .agent = run->agent};
            group->runs =
                dc_arena_take(&runs->arena, (size_t)(runs->count - i) * sizeof *group->runs);
            if (!group->runs) return DC_NO_MEMORY;
            runs->group_count++;
        }
        DC_TRY(insert(group, run));
    }
    return DC_OK;
}

// Whether two groups of this agent differ by this option in the same environment, whichever that
// is: a label then reads the same in all of them.
static bool tells_apart(const dc_runs *runs, const char *agent, const char *key) {
    for (int a = 0; a < runs->group_count; a++)
        for (int b = 0; b < a; b++) {
            const dc_report_group *x = &runs->groups[a], *y = &runs->groups[b];
            if (strcmp(x->agent, agent) != 0 || strcmp(y->agent, agent) != 0 ||
                strcmp(x->env, y->env) != 0)
                continue;
            if (!dc_runs_same_value(dc_json_get(x->runs[0]->config, key),
                                    dc_json_get(y->runs[0]->config, key)))
                return true;
        }
    return false;
}

// A switch of the method that is not as usual makes another method of it ("dcrl:order=down"), and
// is always shown; a number only where it distinguishes groups.
static bool in_label(const dc_runs *runs, const dc_report_run *run, const dc_json *option) {
    if (!dc_runs_counts(run, option->key) || dc_runs_default(run, option)) return false;
    const dc_option *row = own_row(run, option->key);
    bool is_switch = row && (row->kind == DC_BOOL || row->kind == DC_CHOICE);
    return is_switch || tells_apart(runs, run->agent, option->key);
}

static dc_status name_group(dc_runs *runs, const dc_report_group *group, const char *without,
                            const char **out) {
    const dc_report_run *run = group->runs[0];
    dc_text label;
    dc_text_init(&label);
    dc_text_add(&label, "%s", group->agent);
    for (const dc_json *m = run->config->child; m; m = m->next) {
        if (!strcmp(m->key, without) || !in_label(runs, run, m)) continue;
        dc_text_add(&label, ":%s=", m->key);
        dc_runs_value(m, &label);
    }
    dc_status status = dc_text_status(&label);
    *out = status == DC_OK ? dc_arena_text(&runs->arena, label.bytes, label.used) : NULL;
    dc_text_fini(&label);
    return status == DC_OK && !*out ? DC_NO_MEMORY : status;
}

static dc_status read_all(dc_runs *runs, const char *const *paths, int count) {
    for (int i = 0; i < count; i++)
        DC_TRY(find_path(runs, paths[i]));
    for (int i = 0; i < runs->count; i++)
        DC_TRY(read_run(runs, &runs->runs[i]));
    DC_TRY(make_groups(runs));
    for (int g = 0; g < runs->group_count; g++) {
        dc_report_group *group = &runs->groups[g];
        DC_TRY(name_group(runs, group, "", &group->label));
        DC_TRY(name_group(runs, group, "policy", &group->method));
    }
    return DC_OK;
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
