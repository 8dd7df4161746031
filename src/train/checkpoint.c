// Checkpoint, see checkpoint.h.
#include "train/checkpoint.h"

#include "algo/backup.h"
#include "base/hash.h"
#include "data/safetensors.h"
#include "train/run.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT "dcrl checkpoint 2"

enum { SLABS = 4 };

// The slabs of a checkpoint and how their tensors' names begin. Targets exist for leading rows
// only.
static const struct {
    const char *prefix;
    size_t slab; // offset of the pointer in dc_slabs
    bool target;
} slabs[SLABS] = {
    {"", offsetof(dc_slabs, live), false},
    {"target_", offsetof(dc_slabs, ema), true},
    {"adam_m/", offsetof(dc_slabs, m), false},
    {"adam_v/", offsetof(dc_slabs, v), false},
};

static dc_real *slab_of(const dc_params *params, int s) {
    dc_real *p;
    memcpy(&p, (const char *)&params->slabs + slabs[s].slab, sizeof p);
    return p;
}

// Describe matrix `row` of slab s; false if that slab does not hold it.
static bool describe(const dc_params *params, int s, const dc_param_row *row, char *name,
                     dc_st_tensor *t) {
    if (slabs[s].target && row->offset >= params->slabs.ema_size) return false;
    dc_weight_describe(row, slab_of(params, s), slabs[s].prefix, name, t);
    return true;
}

void dc_checkpoint_find_bad(const dc_run *run, char name[DC_WEIGHT_NAME]) {
    name[0] = 0;
    for (int s = 0; s < SLABS && !*name; s++) {
        const char *bad = dc_params_find_bad(&run->agent.params, slab_of(&run->agent.params, s));
        if (bad) snprintf(name, DC_WEIGHT_NAME, "%s%s", slabs[s].prefix, bad);
    }
    for (size_t i = 0; i < sizeof run->sums / sizeof run->sums[0] && !*name; i++)
        if (!isfinite(run->sums[i])) snprintf(name, DC_WEIGHT_NAME, "log");
}

// ---- the method, as metadata ----

typedef struct facts { // of a method, beside its options
    int64_t obs, goal, act, actions, batch, steps, seed;
    bool rep, averaged, concat;
    double gamma, longest;
    dc_int_list hidden, picture;
    char form[DC_TEXT_MAX];
} facts;

#define FACT(name, kind, least, most)                                                              \
    { #name, kind, DC_FIXED, offsetof(facts, name), "0", least, most, NULL, "" }
static const dc_option fact_table[] = {
    FACT(obs, DC_INT, 0, 1 << 24),
    FACT(goal, DC_INT, 0, 1 << 24),
    FACT(act, DC_INT, 0, 1 << 20),
    FACT(actions, DC_INT, 0, DC_ACTIONS_MAX),
    FACT(batch, DC_INT, 0, 1 << 24),
    FACT(steps, DC_INT, 0, 1e15),
    FACT(seed, DC_INT, 0, 9e15),
    FACT(rep, DC_BOOL, 0, 0),
    FACT(averaged, DC_BOOL, 0, 0),
    FACT(gamma, DC_REAL, 0, 1),
    FACT(longest, DC_REAL, 0, 1e15),
    {"hidden", DC_LIST, DC_FIXED, offsetof(facts, hidden), "", 1, 8192, NULL, ""},
    {"form", DC_TEXT, DC_FIXED, offsetof(facts, form), "", 0, 0, NULL, ""},
    {0},
};
// Where observations are pictures: height, width, channels. Other files have no word of it.
static const dc_option picture_table[] = {
    {"picture", DC_LIST, DC_FIXED, offsetof(facts, picture), "", 1, DC_PICTURE_MOST, NULL, ""},
    {0},
};
// Where one encoder sees all pictures of a network.
static const dc_option concat_table[] = {FACT(concat, DC_BOOL, 0, 0), {0}};

static facts facts_of(const dc_method *m, int64_t batch) {
    facts f = {.obs = m->obs,
               .goal = m->goal,
               .act = m->act,
               .actions = m->actions,
               .batch = batch,
               .steps = m->steps,
               .seed = (int64_t)m->seed,
               .rep = m->rep,
               .averaged = m->averaged,
               .concat = m->concat,
               .gamma = m->gamma,
               .longest = m->longest,
               .hidden = m->hidden};
    snprintf(f.form, sizeof f.form, "%s", m->form->name);
    dc_picture p = m->picture;
    if (p.height) f.picture = (dc_int_list){3, {p.height, p.width, p.channels}};
    return f;
}

// Whether a run's files have a word of an option. Some are said of runs with pictures alone, or with one encoder of them, so
// that the files of all others are as they were before there were any.
static bool says(const dc_run *run, const dc_option *o) {
    const dc_method *m = &run->agent.method;
    if (!strcmp(o->name, "fusion")) return m->concat;
    bool of_pictures =
        !strcmp(o->name, "picture") || !strcmp(o->name, "crop") || !strcmp(o->name, "crop_pad");
    return m->picture.height || !of_pictures;
}

// The options of config.json that must be those of the whole run, a line each, and the data's hash. all: also those that the
// run's files have no word of
static void describe_config(const dc_run *run, uint64_t data_hash, bool all, dc_text *out) {
    dc_option counts[64] = {0};
    int n = 0;
    for (const dc_option *o = dc_run_table; o->name; o++)
        if (o->role == DC_FIXED && (all || says(run, o))) counts[n++] = *o;
    DC_CHECK(n < 64);
    dc_text_add(out, "{\n");
    dc_options_json(counts, &run->options, out);
    dc_text_add(out, ",\n");
    if (run->algo->options->name) {
        dc_options_json(run->algo->options, run->config, out);
        dc_text_add(out, ",\n");
    }
    dc_text_add(out, "  \"data_hash\": \"%016" PRIx64 "\"\n}", data_hash);
}

// {"obs": 4, ..., "alpha": 0.3, ...}
static void describe_method(const dc_method *m, int64_t batch, dc_text *out) {
    facts f = facts_of(m, batch);
    dc_text_add(out, "{\n");
    dc_options_json(fact_table, &f, out);
    if (f.picture.count) {
        dc_text_add(out, ",\n");
        dc_options_json(picture_table, &f, out);
    }
    if (f.concat) {
        dc_text_add(out, ",\n");
        dc_options_json(concat_table, &f, out);
    }
    if (m->algo->options->name) dc_text_add(out, ",\n");
    dc_options_json(m->algo->options, m->config, out);
    dc_text_add(out, "\n}");
}

enum { SCALES = 4 };
static const char *const scale_names[SCALES] = {"scale/obs_mean", "scale/obs_rate",
                                                "scale/goal_mean", "scale/goal_rate"};

// What observations and goals are scaled by, if they are; returns how many tensors that is.
static size_t list_scales(const dc_method *m, dc_st_tensor *tensors) {
    if (!m->obs_scale) return 0;
    const float *values[SCALES] = {m->obs_scale->mean, m->obs_scale->rate, m->goal_scale->mean,
                                   m->goal_scale->rate};
    for (int i = 0; i < SCALES; i++) {
        int width = i < 2 ? m->obs : m->goal;
        tensors[i] = (dc_st_tensor){scale_names[i], DC_ST_F32, 1,
                                    {width},        values[i], (size_t)width * sizeof(float)};
    }
    return SCALES;
}

enum { RANGES = 2 };
static const char *const range_names[RANGES] = {"scale/act_low", "scale/act_high"};

// The ranges of actions that have units of their own.
static size_t list_ranges(const dc_act_scale *s, dc_st_tensor *tensors) {
    if (!s) return 0;
    const float *values[RANGES] = {s->low, s->high};
    for (int i = 0; i < RANGES; i++)
        tensors[i] = (dc_st_tensor){range_names[i], DC_ST_F32, 1,
                                    {s->width},     values[i], (size_t)s->width * sizeof(float)};
    return RANGES;
}

// Tensors of the state, wide types first so that everything stays aligned.
static size_t list_tensors(const dc_run *run, dc_st_tensor *tensors, char (*names)[DC_WEIGHT_NAME],
                           const int64_t *words, size_t word_count, const double *log) {
    const dc_params *params = &run->agent.params;
    size_t count = 0;
    tensors[count++] =
        (dc_st_tensor){"sampler", DC_ST_I64, 1, {(int64_t)word_count}, words, word_count * 8};
    tensors[count++] =
        (dc_st_tensor){"log", DC_ST_F64, 1, {DC_METRICS_MAX + 3}, log, (DC_METRICS_MAX + 3) * 8};
    for (int s = 0; s < SLABS; s++)
        for (int i = 0; i < params->count; i++)
            if (describe(params, s, &params->rows[i], names[count], &tensors[count])) count++;
    count += list_scales(&run->agent.method, tensors + count);
    return count + list_ranges(run->agent.method.act_scale, tensors + count);
}

typedef struct writing { // what a file is made of
    dc_st_tensor *tensors;
    char (*names)[DC_WEIGHT_NAME];
    int64_t *words;
    size_t word_count;
    dc_text method, networks, config;
} writing;

static dc_status write_all(const dc_run *run, const char *path, writing *w) {
    double log[DC_METRICS_MAX + 3] = {(double)run->sum_count};
    char step[32], seed[32], hash[DC_ST_HASH];
    memcpy(log + 1, run->sums, sizeof run->sums);
    DC_TRY(dc_sampler_save(run->agent.sampler, &w->words, &w->word_count));
    describe_method(&run->agent.method, run->options.batch, &w->method);
    dc_nets_describe(&run->agent.nets, &w->networks);
    describe_config(run, run->data->hash, false, &w->config);
    DC_TRY(dc_text_status(&w->method));
    DC_TRY(dc_text_status(&w->networks));
    DC_TRY(dc_text_status(&w->config));
    size_t count = list_tensors(run, w->tensors, w->names, w->words, w->word_count, log);
    snprintf(step, sizeof step, "%" PRId64, run->step);
    snprintf(seed, sizeof seed, "%" PRId64, run->options.seed);
    dc_st_meta metas[] = {{"format", FORMAT},
                          {"agent", run->algo->name},
                          {"env", run->options.env},
                          {"step", step},
                          {"seed", seed},
                          {"method", w->method.bytes},
                          {"networks", w->networks.bytes},
                          {"config", w->config.bytes},
                          {"hash", hash}};
    size_t meta_count = sizeof metas / sizeof metas[0];
    dc_st_hash(w->tensors, count, metas, meta_count, hash);
    return dc_st_write_inside(path, w->tensors, count, metas, meta_count);
}

dc_status dc_checkpoint_write(const dc_run *run, const char *path) {
    size_t most = (size_t)run->agent.params.count * SLABS + 2 + SCALES + RANGES;
    writing w = {.tensors = calloc(most, sizeof *w.tensors),
                 .names = calloc(most, sizeof *w.names)};
    dc_text_init(&w.method);
    dc_text_init(&w.networks);
    dc_text_init(&w.config);
    dc_status status = w.tensors && w.names
                           ? write_all(run, path, &w)
                           : dc_fail(DC_NO_MEMORY, NULL, "no memory to write %s", path);
    dc_text_fini(&w.method);
    dc_text_fini(&w.networks);
    dc_text_fini(&w.config);
    free(w.words);
    free(w.names);
    free(w.tensors);
    return status;
}

static dc_status read_weights(dc_run *run, const dc_st_file *file, const char *path) {
    const dc_params *params = &run->agent.params;
    for (int s = 0; s < SLABS; s++) {
        for (int i = 0; i < params->count; i++) {
            char name[DC_WEIGHT_NAME];
            dc_st_tensor want;
            if (!describe(params, s, &params->rows[i], name, &want)) continue;
            DC_TRY(dc_weight_copy(file, path, &want));
        }
    }
    char bad[DC_WEIGHT_NAME];
    dc_checkpoint_find_bad(run, bad);
    if (*bad) return dc_fail(DC_BAD_INPUT, NULL, "%s: tensor %s is not finite", path, bad);
    return DC_OK;
}

static dc_status read_sampler(dc_run *run, const dc_st_file *file, const char *path) {
    const dc_st_tensor *t = dc_st_find(file, "sampler");
    if (!t || t->dtype != DC_ST_I64)
        return dc_fail(DC_BAD_INPUT, NULL, "%s has no sampler state", path);
    int64_t *words = malloc(t->size + 1); // a foreign file may not be aligned
    if (!words) return dc_fail(DC_NO_MEMORY, NULL, "no memory to read %s", path);
    memcpy(words, t->bytes, t->size);
    dc_status status = dc_sampler_load(run->agent.sampler, words, t->size / 8);
    free(words);
    if (status != DC_OK) return dc_fail_prefix(status, path);
    if (dc_sampler_step(run->agent.sampler) != (uint64_t)run->step)
        return dc_fail(DC_BAD_INPUT, NULL, "%s: its sampler stands at another step", path);
    return DC_OK;
}

static dc_status read_log(dc_run *run, const dc_st_file *file, const char *path) {
    double log[DC_METRICS_MAX + 3];
    dc_st_tensor want = {"log", DC_ST_F64, 1, {DC_METRICS_MAX + 3}, log, sizeof log};
    DC_TRY(dc_weight_copy(file, path, &want));
    // Sums are taken since the last row, and the last step of a run closes a row, also if the run then got more steps.
    bool good = log[0] == 0 || log[0] == (double)(run->step % run->options.log_every);
    for (size_t i = 0; i < sizeof log / sizeof log[0]; i++)
        good = good && isfinite(log[i]);
    if (!good) return dc_fail(DC_BAD_INPUT, NULL, "%s: tensor log holds impossible numbers", path);
    run->sum_count = (int64_t)log[0];
    memcpy(run->sums, log + 1, sizeof run->sums);
    return DC_OK;
}

dc_status dc_checkpoint_check(const dc_st_file *file, const char *path) {
    const char *format = dc_st_meta_get(file, "format"), *hash = dc_st_meta_get(file, "hash");
    if (format && !strcmp(format, "dcrl checkpoint 1"))
        return dc_fail(DC_BAD_INPUT, "train anew, or use the dcrl that wrote it",
                       "%s was written by an older dcrl", path);
    if (!format || strcmp(format, FORMAT) != 0 || !dc_st_meta_get(file, "agent") || !hash)
        return dc_fail(DC_BAD_INPUT, NULL, "%s is not a dcrl checkpoint", path);
    char is[DC_ST_HASH];
    dc_st_hash(file->tensors, file->count, file->metas, file->meta_count, is);
    if (strcmp(hash, is) != 0)
        return dc_fail(DC_BAD_INPUT, NULL, "%s is damaged (hash %s, should be %s)", path, is, hash);
    return DC_OK;
}

static dc_status check_agent(const dc_run *run, const dc_st_file *file, const char *path) {
    const char *agent = dc_st_meta_get(file, "agent");
    if (!strcmp(agent, run->algo->name)) return DC_OK;
    return dc_fail(DC_BAD_INPUT, NULL, "%s was written by agent %s, not %s", path, agent,
                   run->algo->name);
}

static dc_status read_step(const dc_st_file *file, const char *path, int64_t *out) {
    const char *step = dc_st_meta_get(file, "step");
    char *end = NULL;
    long long n = step ? strtoll(step, &end, 10) : -1;
    if (n < 0 || *end || !*step)
        return dc_fail(DC_BAD_INPUT, NULL, "%s: impossible step (%s)", path, step ? step : "none");
    *out = n;
    return DC_OK;
}

static dc_status check_step(const dc_run *run, const char *path) {
    if (run->step <= run->options.steps) return DC_OK;
    return dc_fail(DC_BAD_INPUT, NULL, "%s lies past the last step of the run (%" PRId64 ")", path,
                   run->options.steps);
}

// Whether `line` is one of the lines of a text.
static bool has_line(const char *text, const char *line, size_t n) {
    for (const char *at = text, *end; at; at = end ? end + 1 : NULL) {
        end = strchr(at, '\n');
        size_t length = end ? (size_t)(end - at) : strlen(at);
        if (length == n && !memcmp(at, line, n)) return true;
    }
    return false;
}

// Every option that the file names must be that of the run. Files from before they named any are taken.
static dc_status check_config(const dc_run *run, uint64_t data_hash, const dc_st_file *file,
                              const char *path) {
    const char *said = dc_st_meta_get(file, "config");
    dc_text is;
    dc_text_init(&is);
    describe_config(run, data_hash, true, &is);
    dc_status status = dc_text_status(&is);
    for (const char *at = said, *end; status == DC_OK && at; at = end ? end + 1 : NULL) {
        end = strchr(at, '\n');
        size_t n = end ? (size_t)(end - at) : strlen(at);
        if (has_line(is.bytes, at, n)) continue;
        while (n && (*at == ' ' || at[n - 1] == ','))
            *at == ' ' ? (at++, n--) : n--;
        status =
            dc_fail(DC_BAD_INPUT, "it is of another run, or config.json was edited",
                    "%s was trained with %.*s, which config.json does not say", path, (int)n, at);
    }
    dc_text_fini(&is);
    return status;
}

dc_status dc_checkpoint_read(dc_run *run, const char *path) {
    dc_st_file file;
    DC_TRY(dc_st_open_inside(&file, path));
    dc_status status = dc_checkpoint_check(&file, path);
    if (status == DC_OK) status = check_agent(run, &file, path);
    if (status == DC_OK) status = check_config(run, run->data->hash, &file, path);
    if (status == DC_OK) status = read_step(&file, path, &run->step);
    if (status == DC_OK) status = check_step(run, path);
    if (status == DC_OK) status = read_weights(run, &file, path);
    if (status == DC_OK) status = read_sampler(run, &file, path);
    if (status == DC_OK) status = read_log(run, &file, path);
    dc_st_close(&file);
    return status;
}

// ---- opening for acting ----

static dc_status bad_method(const char *path) {
    return dc_fail(DC_BAD_INPUT, "it may be of another version of dcrl",
                   "%s describes no method that this program has (%s)", path, dc_error());
}

// Every member of the description belongs to the facts or to the method's options.
static dc_status need_members(const dc_option *table, const dc_json *object) {
    for (; table->name; table++)
        if (!dc_json_get(object, table->name))
            return dc_fail(DC_BAD_INPUT, NULL, "no word of %s", table->name);
    return DC_OK;
}

static dc_status read_members(const dc_algo *algo, void *config, facts *f, const dc_json *object) {
    DC_TRY(need_members(fact_table, object));
    DC_TRY(need_members(algo->options, object));
    for (const dc_json *m = object->child; m; m = m->next) {
        dc_json member = *m, alone = {.kind = DC_JSON_OBJECT, .child = &member, .count = 1};
        member.next = NULL;
        const dc_option *of = dc_options_find(fact_table, m->key)      ? fact_table
                              : dc_options_find(picture_table, m->key) ? picture_table
                              : dc_options_find(concat_table, m->key)  ? concat_table
                                                                       : algo->options;
        DC_TRY(dc_options_read(of, of == algo->options ? config : (void *)f, &alone));
    }
    return DC_OK;
}

static dc_status read_facts(dc_checkpoint_policy *p, const dc_algo *algo, const dc_st_file *file,
                            facts *f) {
    const char *text = dc_st_meta_get(file, "method");
    const dc_json *object;
    dc_arena arena;
    if (!text) return dc_fail(DC_BAD_INPUT, NULL, "no description");
    p->config = calloc(1, algo->config_size);
    if (!p->config) return dc_fail(DC_NO_MEMORY, NULL, "no memory for options");
    dc_options_init(algo->options, p->config);
    dc_options_init(fact_table, f);
    dc_options_init(picture_table, f);
    dc_options_init(concat_table, f);
    dc_arena_init(&arena, 0);
    dc_status status = dc_json_parse(&arena, "its method", text, strlen(text), &object);
    if (status == DC_OK && object->kind != DC_JSON_OBJECT)
        status = dc_fail(DC_BAD_INPUT, NULL, "the description is not a JSON object");
    if (status == DC_OK) status = read_members(algo, p->config, f, object);
    dc_arena_fini(&arena);
    return status;
}

static dc_status read_method(dc_checkpoint_policy *p, const dc_st_file *file) {
    const dc_algo *algo;
    facts f;
    DC_TRY(dc_algo_find(dc_st_meta_get(file, "agent"), &algo));
    DC_TRY(read_facts(p, algo, file, &f));
    const dc_form *form = dc_form_find(f.form);
    bool fits = f.obs >= 1 && f.goal >= 1 && f.hidden.count && f.gamma < 1 && f.batch >= 1 &&
                (f.rep || f.goal == f.obs) && (!f.actions || f.act == f.actions);
    dc_picture picture = {0};
    if (f.picture.count == 3)
        picture = (dc_picture){(int)f.picture.v[0], (int)f.picture.v[1], (int)f.picture.v[2]};
    fits = fits && (!f.concat || f.picture.count) &&
           (!f.picture.count || (f.picture.count == 3 && picture.channels <= DC_PICTURE_CHANNELS &&
                                 dc_picture_cells(picture) == f.obs));
    if (!form || !fits) return dc_fail(DC_BAD_INPUT, NULL, "impossible sizes");
    p->method = (dc_method){.algo = algo,
                            .config = p->config,
                            .form = form,
                            .gamma = f.gamma,
                            .hidden = f.hidden,
                            .seed = (uint64_t)f.seed,
                            .batch = (int)f.batch,
                            .steps = f.steps,
                            .longest = f.longest,
                            .obs = (int)f.obs,
                            .goal = (int)f.goal,
                            .picture = picture,
                            .averaged = f.averaged,
                            .concat = f.concat,
                            .rep = f.rep,
                            .act = (int)f.act,
                            .actions = (int)f.actions};
    return algo->check ? algo->check(&p->method) : DC_OK;
}

// The networks that the description leads to must be those that were trained.
static dc_status check_networks(const dc_checkpoint_policy *p, const dc_st_file *file,
                                const char *path) {
    const char *said = dc_st_meta_get(file, "networks");
    dc_text text;
    dc_text_init(&text);
    dc_nets_describe(&p->nets, &text);
    dc_status status = dc_text_status(&text);
    if (status == DC_OK && (!said || strcmp(said, text.bytes) != 0))
        status = dc_fail(DC_BAD_INPUT, NULL, "%s holds networks (%s), not those of its method (%s)",
                         path, said ? said : "none", text.bytes);
    dc_text_fini(&text);
    return status;
}

// What observations and goals are scaled by, if the file says so.
static dc_status read_scales(dc_checkpoint_policy *p, const dc_st_file *file, const char *path) {
    size_t obs = (size_t)p->method.obs, goal = (size_t)p->method.goal;
    int found = 0;
    for (int i = 0; i < SCALES; i++)
        found += dc_st_find(file, scale_names[i]) != NULL;
    if (!found) return DC_OK;
    p->scales = calloc(2 * (obs + goal), sizeof *p->scales);
    if (!p->scales) return dc_fail(DC_NO_MEMORY, NULL, "no memory to read %s", path);
    float *at = p->scales;
    p->obs_scale = (dc_scale){at, at + obs};
    p->goal_scale = (dc_scale){at + 2 * obs, at + 2 * obs + goal};
    p->method.obs_scale = &p->obs_scale;
    p->method.goal_scale = &p->goal_scale;
    dc_st_tensor want[SCALES];
    list_scales(&p->method, want);
    for (int i = 0; i < SCALES; i++)
        DC_TRY(dc_weight_copy(file, path, &want[i]));
    for (size_t i = 0; i < 2 * (obs + goal); i++)
        if (!isfinite(at[i])) return dc_fail(DC_BAD_INPUT, NULL, "%s: scales are not finite", path);
    return DC_OK;
}

// The ranges of actions, if the file says that they have some.
static dc_status read_ranges(dc_checkpoint_policy *p, const dc_st_file *file, const char *path) {
    dc_st_tensor want[RANGES];
    int found = 0;
    for (int i = 0; i < RANGES; i++)
        found += dc_st_find(file, range_names[i]) != NULL;
    if (!found) return DC_OK;
    if (!p->method.act || p->method.actions)
        return dc_fail(DC_BAD_INPUT, NULL, "%s: ranges of actions that have none", path);
    DC_TRY(dc_act_scale_init(&p->act_scale, p->method.act));
    list_ranges(&p->act_scale, want);
    for (int i = 0; i < RANGES; i++)
        DC_TRY(dc_weight_copy(file, path, &want[i]));
    p->method.act_scale = &p->act_scale;
    dc_status status = dc_act_scale_settle(&p->act_scale);
    return status == DC_OK ? DC_OK : dc_fail_prefix(status, path);
}

// Every weight must be in the file, with its shape.
static dc_status check_shapes(const dc_checkpoint_policy *p, const dc_st_file *file,
                              const char *path) {
    static const dc_real nothing;
    for (int i = 0; i < p->params.count; i++) {
        char name[DC_WEIGHT_NAME];
        dc_param_row row = p->params.rows[i];
        dc_st_tensor want;
        row.offset = 0;
        dc_weight_describe(&row, &nothing, "", name, &want);
        DC_TRY(dc_weight_check(file, path, &want));
    }
    return DC_OK;
}

static dc_status read_networks(dc_checkpoint_policy *p, const dc_st_file *file, const char *path) {
    const char *env = dc_st_meta_get(file, "env");
    snprintf(p->env, sizeof p->env, "%s", env ? env : "");
    p->nets.picture = p->method.picture;
    p->nets.concat = p->method.concat;
    p->method.algo->networks(&p->nets, &p->method);
    DC_TRY(dc_nets_check(&p->nets));
    p->nets.averaged = p->method.averaged;
    dc_nets_place(&p->nets, &p->params, &p->method.hidden);
    DC_TRY(check_networks(p, file, path));
    DC_TRY(check_shapes(p, file, path)); // before memory is taken for what the file only says
    DC_TRY(dc_params_alloc(&p->params, 0));
    for (int i = 0; i < p->params.count; i++) {
        char name[DC_WEIGHT_NAME];
        dc_st_tensor want;
        bool average = p->nets.averaged && p->params.rows[i].offset >= p->nets.policy_first;
        dc_weight_describe(&p->params.rows[i], p->params.slabs.live, average ? "target_" : "", name,
                           &want);
        DC_TRY(dc_weight_copy(file, path, &want));
    }
    const char *bad = dc_params_find_bad(&p->params, p->params.slabs.live);
    return bad ? dc_fail(DC_BAD_INPUT, NULL, "%s: tensor %s is not finite", path, bad) : DC_OK;
}

dc_status dc_checkpoint_open(dc_checkpoint_policy *p, const char *path, const dc_run *run,
                             uint64_t data_hash) {
    dc_st_file file;
    *p = (dc_checkpoint_policy){0};
    DC_TRY(run ? dc_st_open_inside(&file, path) : dc_st_open(&file, path));
    dc_status status = dc_checkpoint_check(&file, path);
    if (status == DC_OK && run) status = check_agent(run, &file, path);
    if (status == DC_OK && run) status = check_config(run, data_hash, &file, path);
    if (status == DC_OK) status = read_step(&file, path, &p->step);
    if (status == DC_OK && (status = read_method(p, &file)) != DC_OK && status != DC_NO_MEMORY)
        status = bad_method(path);
    if (status == DC_OK) status = read_scales(p, &file, path);
    if (status == DC_OK) status = read_ranges(p, &file, path);
    if (status == DC_OK) status = read_networks(p, &file, path);
    dc_st_close(&file);
    if (status != DC_OK) dc_checkpoint_close(p);
    return status;
}

void dc_checkpoint_close(dc_checkpoint_policy *p) {
    dc_params_free(&p->params);
    free(p->config);
    free(p->scales);
    dc_act_scale_fini(&p->act_scale);
    *p = (dc_checkpoint_policy){0};
}
