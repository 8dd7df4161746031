// What a run is before it trains, see run.h: its options, its agent, its folder. The loop is in loop.c.
#include "train/run.h"

#include "algo/backup.h"
#include "base/file.h"
#include "base/log.h"
#include "data/longest_way.h"
#include "train/folder.h"
#include "train/held_out.h"
#include "train/pick.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Bounds of gamma=auto. Tables have short ways between places of things, and the hand's own way comes on top.
static const double GAMMA_LEAST = 0.99, GAMMA_MOST = 0.9999;
enum { GOALS_WIDEST = 512 }; // that it measures ways between

const dc_option dc_run_table[] = {
    DC_OPTION_TEXT(dc_run_options, agent, "dcrl", "method; dcrl list agents shows them"),
    DC_OPTION_TEXT(dc_run_options, env, "", "environment; dcrl list envs shows them"),
    DC_OPTION_TEXT_ROLE(DC_BESIDE, dc_run_options, data, "",
                        "data set (.npz file or store); empty: the environment makes its own"),
    DC_OPTION_TEXT_ROLE(DC_BESIDE, dc_run_options, val, "auto",
                        "held-out data set, for losses and value error on rows that are not "
                        "trained on; auto: X-val.npz beside X.npz, if it is there (on a GPU, "
                        "which waits for them, only without an environment); off: none"),
    DC_OPTION_INT_ROLE(DC_LATER, dc_run_options, steps, "100000", 1, 1e12, "updates to train"),
    DC_OPTION_INT(dc_run_options, seed, "0", 0, 9e15, "the same seed gives the same bytes"),
    DC_OPTION_INT(dc_run_options, batch, "512", 1, 1 << 20, "rows per loss"),
    DC_OPTION_LIST(dc_run_options, hidden, "512,512,512", 1, 8192, "widths of the hidden layers"),
    DC_OPTION_REAL(dc_run_options, lr, "3e-4", 0, 10, "Adam's step size"),
    DC_OPTION_REAL(dc_run_options, tau, "0.005", 0, 1, "rate of the target weights"),
    DC_OPTION_CHOICE(dc_run_options, form, "auto", "auto|distance|value",
                     "what is learned: steps d(s, g), or Q(s, a, g) = gamma^steps; auto: distance "
                     "for lock, else value"),
    DC_OPTION_REAL_OR_AUTO(
        dc_run_options, gamma, "0.99", 0, 0.9999999,
        "discount of the value form; auto: 1 - 1/D, D the longest way in the data, at least 0.99"),
    DC_OPTION_CHOICE(dc_run_options, obs_scale, "auto", "auto|off|on",
                     "networks see observations less their mean, divided by their deviation in the "
                     "data; auto: bytes as 0 to 1, floats as they are"),
    DC_OPTION_TEXT(
        dc_run_options, act_scale, "off",
        "off: actions lie within [-1, 1]; auto: each column has the range that it has in "
        "the data; LOW,HIGH: that range. Policies answer in the data's units"),
    DC_OPTION_TEXT(dc_run_options, picture, "auto",
                   "auto: observations of bytes that are pictures of at least 16 x 16 go through "
                   "encoders (" DC_ENCODER_NAME "); HEIGHT,WIDTH,CHANNELS: so do these; off: none"),
    DC_OPTION_CHOICE(dc_run_options, fusion, "separate", "separate|concat",
                     "where a network sees pictures of a state and of a goal: an encoder for each, "
                     "or one of both, channel by channel"),
    DC_OPTION_REAL(dc_run_options, crop, "0", 0, 1,
                   "share of batches whose pictures are cropped at random"),
    DC_OPTION_INT(dc_run_options, crop_pad, "3", 0, 64,
                  "crop: most places that a picture is moved each way, its edge repeated"),
    DC_OPTION_LIST(dc_run_options, rep, "", 0, 1e6,
                   "goal representation, columns of an observation: first,count, or any number of "
                   "first,count,step,times; empty: all of it"),
    DC_OPTION_TEXT(dc_run_options, goal_column, "obs",
                   "array of the data whose columns rep names: obs, or for instance qpos"),
    DC_OPTION_BOOL(
        dc_run_options, last_action, "on",
        "n-step targets that reach the end of a trajectory read the action of its last row; "
        "off: they stop one step before"),
    DC_OPTION_BOOL(dc_run_options, average, "off",
                   "the policy acts by the average of its weights (EMA at rate tau), which swings "
                   "less between checkpoints; training is the same"),
    DC_OPTION_INT_ROLE(DC_BESIDE, dc_run_options, threads, "0", 0, 1024,
                       "threads; 0: all cores. Results do not depend on it"),
    DC_OPTION_CHOICE_ROLE(DC_LATER, dc_run_options, device, "cpu", "cpu|cuda", "where to train"),
    DC_OPTION_CHOICE_ROLE(DC_LATER, dc_run_options, precision, "auto", "auto|fp32|tf32|bf16",
                          "of matrix products; auto: fp32 on the CPU, tf32 on a GPU. bf16 on a CPU "
                          "needs AVX512-BF16"),
    DC_OPTION_CHOICE_ROLE(
        DC_BESIDE, dc_run_options, feed, "auto", "auto|device|host",
        "where rows for a GPU are drawn and gathered: in its memory, which must hold "
        "the data set, or on the host, ahead of it; auto: on the GPU if the data set "
        "fits. Results do not depend on it"),
    DC_OPTION_INT(dc_run_options, log_every, "1000", 1, 1e12, "steps between rows of train.csv"),
    DC_OPTION_INT_ROLE(DC_BESIDE, dc_run_options, save_every, "10000", 1, 1e12,
                       "steps between checkpoints"),
    DC_OPTION_INT_ROLE(DC_BESIDE, dc_run_options, keep, "3", 0, 1e9,
                       "newest checkpoints kept, and as many evaluated ones; 0: all"),
    DC_OPTION_INT_ROLE(DC_BESIDE, dc_run_options, eval_every, "0", 0, 1e12,
                       "steps between evaluations (saved, with a row in eval.csv); 0: none"),
    DC_OPTION_INT_ROLE(DC_BESIDE, dc_run_options, eval_episodes, "15", 1, 10000,
                       "episodes of each task in an evaluation"),
    {0},
};

// --- options ---

dc_status dc_run_configure(dc_run *run, const char *agent) {
    *run = DC_RUN_NONE;
    dc_options_init(dc_run_table, &run->options);
    DC_TRY(dc_algo_find(agent, &run->algo));
    snprintf(run->options.agent, sizeof run->options.agent, "%s", agent);
    run->config = calloc(1, run->algo->config_size);
    if (!run->config) return dc_fail(DC_NO_MEMORY, NULL, "no memory for options");
    dc_options_init(run->algo->options, run->config);
    return DC_OK;
}

static dc_status unknown_key(const dc_run *run, const char *key) {
    const char *names[128];
    size_t count = 0;
    const dc_option *tables[] = {run->algo->options, dc_run_table};
    for (int t = 0; t < 2; t++)
        for (const dc_option *o = tables[t]; o->name && count < 128; o++)
            names[count++] = o->name;
    const char *near = dc_nearest(key, names, count);
    if (near)
        return dc_fail(DC_USAGE, NULL, "unknown option '%s' of agent %s: did you mean '%s'?", key,
                       run->algo->name, near);
    return dc_fail(DC_USAGE, "dcrl list agents shows its options",
                   "unknown option '%s' of agent %s", key, run->algo->name);
}

dc_status dc_run_set(dc_run *run, const char *key, const char *value) {
    if (!strcmp(key, "agent"))
        return !strcmp(value, run->options.agent)
                   ? DC_OK
                   : dc_fail(DC_USAGE, "use --agent", "the agent cannot be set like an option");
    if (dc_options_find(run->algo->options, key))
        return dc_options_set(run->algo->options, run->config, key, value);
    if (dc_options_find(dc_run_table, key))
        return dc_options_set(dc_run_table, &run->options, key, value);
    return unknown_key(run, key);
}

dc_status dc_run_config_error(const char *folder, dc_status status, const char *what) {
    return dc_fail(status == DC_USAGE ? DC_BAD_INPUT : status,
                   "restore that file, or start a new run", "%s/config.json: %s", folder, what);
}

dc_status dc_run_reconfigure(dc_run *run, const dc_json *config, const char *folder) {
    const dc_json *agent = dc_json_get(config, "agent");
    if (!agent || agent->kind != DC_JSON_STRING)
        return dc_run_config_error(folder, DC_BAD_INPUT, "agent is missing");
    dc_status status = dc_run_configure(run, agent->text);
    if (status == DC_OK) status = dc_run_set_json(run, config);
    return status == DC_OK ? DC_OK : dc_run_config_error(folder, status, dc_error());
}

bool dc_run_is_record(const char *key) {
    static const char *const records[] = {"transitions", "data_from_run", "data_hash",
                                          "build",       "act_low",       "act_high",
                                          "val_hash",    "arithmetic"};
    for (size_t i = 0; i < sizeof records / sizeof records[0]; i++)
        if (!strcmp(key, records[i])) return true;
    return false;
}

dc_status dc_run_set_json(dc_run *run, const dc_json *object) {
    if (object->kind != DC_JSON_OBJECT)
        return dc_fail(DC_BAD_INPUT, NULL, "a config must be a JSON object");
    for (const dc_json *m = object->child; m; m = m->next) {
        if (dc_run_is_record(m->key) || !strcmp(m->key, "agent")) continue;
        dc_json alone = {.kind = DC_JSON_OBJECT, .child = NULL, .count = 1};
        dc_json member = *m;
        member.next = NULL;
        alone.child = &member;
        bool own = dc_options_find(run->algo->options, m->key) != NULL;
        if (!own && !dc_options_find(dc_run_table, m->key)) return unknown_key(run, m->key);
        DC_TRY(dc_options_read(own ? run->algo->options : dc_run_table,
                               own ? run->config : (void *)&run->options, &alone));
    }
    return DC_OK;
}

// --- building ---

// Columns first ... first + count - 1, the same `step` further, and so on, `times` times.
static dc_status add_columns(const int64_t v[4], dc_agent_options *out) {
    for (int64_t t = 0; t < v[3]; t++)
        for (int64_t k = 0; k < v[1]; k++) {
            if (out->rep_size == DC_REP_MAX)
                return dc_fail(DC_USAGE, "name fewer columns", "rep has more than %d columns",
                               DC_REP_MAX);
            out->rep[out->rep_size++] = (int)(v[0] + t * v[2] + k);
        }
    return DC_OK;
}

static dc_status read_rep(const dc_int_list *rep, dc_agent_options *out) {
    if (rep->count == 2) return add_columns((int64_t[]){rep->v[0], rep->v[1], 0, 1}, out);
    if (rep->count % 4 != 0)
        return dc_fail(DC_USAGE, "give first column and count, for instance rep=0,2",
                       "rep has %d numbers", rep->count);
    for (int k = 0; k < rep->count; k += 4)
        DC_TRY(add_columns(rep->v + k, out));
    return DC_OK;
}

dc_status dc_run_agent_options(const dc_run *run, dc_agent_options *out) {
    const dc_run_options *o = &run->options;
    bool lock = !strncmp(o->env, "lock-", 5);
    *out = (dc_agent_options){.seed = (uint64_t)o->seed,
                              .batch = (int)o->batch,
                              .hidden = o->hidden,
                              .gamma = o->gamma,
                              .steps = o->steps,
                              .scaling = (dc_scaling)o->obs_scale,
                              .acted = !o->last_action,
                              .averaged = o->average,
                              .goal_column = o->goal_column};
    if (o->device && run->ranks) {
        out->part = (int)o->batch / dc_ranks_count(run->ranks);
        out->first = out->part * dc_ranks_rank(run->ranks);
    }
    out->form = o->form == 1 || (o->form == 0 && lock) ? &dc_form_distance : &dc_form_value;
    out->concat = o->fusion;
    out->crop = o->crop;
    out->crop_pad = (int)o->crop_pad;
    DC_TRY(dc_pictures_parse(o->picture, &out->pictures, &out->picture));
    DC_TRY(dc_act_scale_parse(o->act_scale, &out->act_scaling, &out->act_given));
    return read_rep(&o->rep, out);
}

// gamma=auto: the sum of discounted steps, 1 / (1 - gamma), is the longest way D. With cross-entropy on
// v = gamma^d, a small error of d steps costs x^2 / (e^x - 1) of d^2 at x = d log(1 / gamma): most about x = 1.6,
// and nearly nothing where x is large. At x = 1 for the longest way, all shorter ones are told apart, too.
static dc_status find_gamma(dc_run *run, const dc_dataset *data) {
    const char *const name = run->options.goal_column;
    dc_agent_options agent = {0};
    DC_TRY(read_rep(&run->options.rep, &agent));
    const dc_column *goals = dc_dataset_column(data, agent.rep_size && *name ? name : "obs");
    if (!goals || goals->type != DC_TYPE_F32)
        return dc_fail(DC_UNSUPPORTED, "give a number", "gamma=auto needs goals of real numbers");
    if (!agent.rep_size && goals->width > GOALS_WIDEST)
        return dc_fail(DC_UNSUPPORTED, "give a number, or rep",
                       "gamma=auto measures ways between goals of at most %d numbers, not %d",
                       GOALS_WIDEST, goals->width);
    for (int k = 0; k < agent.rep_size; k++)
        if (agent.rep[k] >= goals->width)
            return dc_fail(DC_USAGE, "see dcrl data info", "rep has column %d, %s has %d",
                           agent.rep[k], goals->name, goals->width);
    int64_t longest;
    DC_TRY(dc_longest_way(data, goals, agent.rep, agent.rep_size, &longest));
    double found = longest ? round(1e4 * (1 - 1 / (double)longest)) / 1e4 : GAMMA_LEAST;
    run->options.gamma = fmin(fmax(found, GAMMA_LEAST), GAMMA_MOST);
    if (longest)
        dc_log(DC_INFO, "gamma=auto: %g, the longest ways in the data have %" PRId64 " steps",
               run->options.gamma, longest);
    else
        dc_log(DC_INFO,
               "gamma=auto: %g, since goals differ in too much to measure ways in the data",
               run->options.gamma);
    return DC_OK;
}

static dc_status settle_gamma(dc_run *runs, int count, const dc_dataset *data) {
    for (int i = 0; i < count; i++)
        if (runs[i].options.gamma <= DC_AUTO) {
            if (i == 0)
                DC_TRY(find_gamma(runs, data));
            else
                runs[i].options.gamma = runs->options.gamma;
        }
    return DC_OK;
}

// GPUs of several ranks take equal parts of a batch each.
static dc_status check_gpus(const dc_run *run, bool alone) {
    const dc_run_options *o = &run->options;
    if (!alone)
        return dc_fail(DC_UNSUPPORTED, "give one seed, or use --device cpu",
                       "several seeds are not trained on the GPUs of several ranks");
    if (o->feed == 1)
        return dc_fail(DC_UNSUPPORTED, "use feed=host, or auto",
                       "ranks draw rows for their GPUs on the host (feed=device)");
    if (o->batch % dc_ranks_count(run->ranks) == 0) return DC_OK;
    return dc_fail(DC_USAGE, "give a multiple of it",
                   "%d GPUs cannot share a batch of %" PRId64 " rows alike",
                   dc_ranks_count(run->ranks), o->batch);
}

// The mean of parts' losses is that of the batch, unless rows are compared with all others of it.
static dc_status check_parts(const dc_run *run) {
    const dc_graph *g = &run->agent.graph;
    for (dc_ref r = 0; r < g->count; r++)
        if (g->nodes[r].op == DC_OP_pair_dot || dc_rule(g->nodes[r].op)->op_class == DC_CLASS_PAIRS)
            return dc_fail(DC_UNSUPPORTED, "use one GPU, or --device cpu",
                           "%s compares all rows of a batch, which GPUs of several ranks do not",
                           run->algo->name);
    return DC_OK;
}

// `first` is the population's first run; what can be shared is that one's.
static dc_status build(dc_run *run, const dc_run *first, const dc_dataset *data,
                       const char *folder) {
    const dc_run_options *o = &run->options;
    if (o->device == 0 && o->precision == 2)
        return dc_fail(DC_USAGE, "use --device cuda, or precision=fp32 or bf16",
                       "the CPU multiplies in fp32 or bf16, not in tf32");
    if (o->device && run->ranks) DC_TRY(check_gpus(run, run == first));
    run->data = data;
    if (folder) {
        run->folder = strdup(folder);
        if (!run->folder) return dc_fail(DC_NO_MEMORY, NULL, "no memory");
    }
    run->shares = run != first;
    run->pool = first->pool;
    int threads = (int)o->threads ? (int)o->threads : dc_ranks_cores(run->ranks);
    if (run == first) DC_TRY(dc_pool_new(&run->pool, threads));
    dc_agent_options options;
    DC_TRY(dc_run_agent_options(run, &options));
    if (run != first && data == first->data) options.goals = &first->agent.goals;
    DC_TRY(dc_agent_init(&run->agent, run->algo, run->config, &options, data, run->pool));
    if (o->device && run->ranks) DC_TRY(check_parts(run));
    if (!o->device) run->agent.exec.ranks = run->ranks;
    if (run->agent.policy_after >= o->steps)
        return dc_fail(DC_USAGE, "give more steps than policy_after",
                       "the policy would never be trained (policy_after=%" PRId64 ", steps=%" PRId64
                       ")",
                       run->agent.policy_after, o->steps);
    return DC_OK;
}

dc_status dc_population_select(dc_run *runs, int count, const bool *marked) {
    dc_agent *agents[DC_RUNS_MAX];
    int selected = 0;
    for (int i = 0; i < count; i++) {
        runs[i].member = marked[i] ? selected : -1;
        if (marked[i]) agents[selected++] = &runs[i].agent;
    }
    const dc_run_options *o = &runs->options;
    int usual = o->device ? 1 : 0; // tf32 on a GPU, else fp32
    dc_trainer_spec spec = {.precision = o->precision ? o->precision - 1 : usual,
                            .lr = o->lr,
                            .tau = o->tau,
                            .feed = (dc_feed_place)o->feed,
                            .ranks = runs->ranks};
    dc_trainer *trainer;
    dc_trainer_free(runs->trainer);
    dc_status status = dc_trainer_new(&trainer, (dc_device)o->device, agents, selected, &spec);
    for (int i = 0; i < count; i++) {
        runs[i].trainer = trainer;
        if (status != DC_OK) runs[i].member = -1; // the host has the state of record
    }
    return status;
}

// All options as text, less those in which members of a population may differ.
static dc_status common_options(const dc_run *run, dc_text *out) {
    dc_run_options o = run->options;
    o.seed = o.threads = 0;
    dc_options_json(dc_run_table, &o, out);
    dc_options_json(run->algo->options, run->config, out);
    return dc_text_status(out);
}

static dc_status check_alike(const dc_run *a, const dc_run *b) {
    dc_text x, y;
    dc_text_init(&x);
    dc_text_init(&y);
    dc_status status = common_options(a, &x);
    if (status == DC_OK) status = common_options(b, &y);
    if (status == DC_OK && strcmp(x.bytes, y.bytes) != 0)
        status = dc_fail(DC_BAD_INPUT, "train it on its own",
                         "the run of seed %" PRId64 " has other options than that of seed %" PRId64,
                         b->options.seed, a->options.seed);
    dc_text_fini(&x);
    dc_text_fini(&y);
    return status;
}

// One for all members: the rows are the same, and weights are copied for each measurement.
static dc_status hold_out(dc_run *runs, int count) {
    if (runs->val) DC_TRY(dc_held_out_new(&runs->held_out, runs, runs->val));
    for (int i = 1; i < count; i++)
        runs[i].held_out = runs->held_out;
    return DC_OK;
}

static dc_status build_all(dc_run *runs, int count, const dc_dataset *const *data,
                           const char *const *folders) {
    bool all[DC_RUNS_MAX];
    DC_CHECK(count >= 1 && count <= DC_RUNS_MAX);
    DC_TRY(settle_gamma(runs, count, data[0]));
    for (int i = 1; i < count; i++)
        DC_TRY(check_alike(&runs[0], &runs[i]));
    for (int i = 0; i < count; i++) {
        all[i] = true;
        DC_TRY(build(&runs[i], runs, data[i], folders[i]));
    }
    DC_TRY(hold_out(runs, count));
    return dc_population_select(runs, count, all);
}

dc_status dc_run_begun(const char *folder, bool *begun) {
    char path[DC_PATH_MAX];
    DC_TRY(dc_folder_path(path, folder, "config.json"));
    return dc_file_find(path, begun);
}

dc_status dc_run_refuse(const char *folder) {
    bool begun;
    DC_TRY(dc_run_begun(folder, &begun));
    if (!begun) return DC_OK;
    return dc_fail(DC_USAGE, "give another --out, or continue it with --resume",
                   "%s holds a run already", folder);
}

dc_status dc_population_start(dc_run *runs, int count, const dc_dataset *const *data,
                              const char *const *folders) {
    for (int i = 0; i < count; i++) // soon, before the work of building
        if (folders[i]) DC_TRY(dc_run_refuse(folders[i]));
    DC_TRY(build_all(runs, count, data, folders));
    for (int i = 0; i < count;
         i++) // all of them first: what is killed in between shows by a folder
        if (folders[i]) DC_TRY(dc_folder_make(folders[i]));
    for (int i = 0; i < count; i++) {
        if (!folders[i]) continue;
        DC_TRY(dc_folder_lock(&runs[i]));
        DC_TRY(dc_run_refuse(folders[i]));
        DC_TRY(dc_folder_write_config(&runs[i]));
        DC_TRY(dc_folder_open_logs(&runs[i], -1));
    }
    return DC_OK;
}

dc_status dc_run_start(dc_run *run, const dc_dataset *data, const char *folder) {
    return dc_population_start(run, 1, &data, &folder);
}

// Read the newest checkpoint up to `from` that can be read; with none in the folder the run stands at
// step 0.
static dc_status read_newest(dc_run *run, int64_t from) {
    int64_t *steps;
    int count;
    DC_TRY(dc_folder_checkpoints(run->folder, &steps, &count));
    dc_status status = DC_OK;
    for (int i = 0; i < count && run->saved_step < 0; i++) {
        char path[DC_PATH_MAX];
        if (steps[i] > from) continue;
        status = dc_folder_checkpoint(path, run->folder, steps[i]);
        if (status == DC_OK) status = dc_checkpoint_read(run, path);
        if (status == DC_OK)
            run->saved_step = run->step;
        else if (status != DC_BAD_INPUT)
            break; // the system failed, not the file: going back would lose what was saved
        else if (i + 1 < count)
            dc_log(DC_WARN, "%s; an older checkpoint is tried", dc_error());
    }
    free(steps);
    return status == DC_OK ? DC_OK : dc_pick_none(status, run->folder);
}

// A curriculum's stages share the steps of the whole run.
static dc_status check_steps(const dc_run *run) {
    const dc_row_table *rows = &run->agent.rows;
    for (int r = 0; run->other_steps && r < rows->count; r++)
        if (rows->rule[r].stage_length > 0)
            return dc_fail(DC_USAGE, "leave --steps out, or begin a new run",
                           "the stages of %s are parts of its steps, which cannot change",
                           run->algo->name);
    return DC_OK;
}

// Bits of another library or processor are as good, but not those of the run that began here.
static dc_status compare_arithmetic(const dc_run *run) {
    char is[DC_ARITHMETIC_MAX];
    dc_arena arena;
    const dc_json *config;
    dc_run_arithmetic(run, is);
    dc_arena_init(&arena, 0);
    dc_status status = dc_run_read_config(run->folder, &arena, &config);
    const dc_json *was = status == DC_OK ? dc_json_get(config, "arithmetic") : NULL;
    if (was && was->kind == DC_JSON_STRING && strcmp(was->text, is) != 0)
        dc_log(DC_WARN,
               "%s was begun with %s, this is %s: from here on its numbers may differ in the last "
               "bits from what it would have computed there",
               run->folder, was->text, is);
    dc_arena_fini(&arena);
    return status;
}

dc_status dc_population_resume(dc_run *runs, int count, const dc_dataset *const *data,
                               const char *const *folders) {
    int64_t from[DC_RUNS_MAX];
    DC_CHECK(count >= 1 && count <= DC_RUNS_MAX);
    for (int i = 0; i < count; i++) { // before memory is taken for what config.json only says
        from[i] = -1;
        DC_TRY(dc_folder_make(folders[i])); // of a member that has not begun
        DC_TRY(dc_pick_for(&runs[i], data[i]->hash, folders[i], &from[i]));
        if (runs[i].other_steps && from[i] > runs[i].options.steps)
            return dc_fail(DC_USAGE, "give more steps",
                           "%s stands at step %" PRId64 " already, past %" PRId64, folders[i],
                           from[i], runs[i].options.steps);
    }
    DC_TRY(build_all(runs, count, data, folders));
    for (int i = 0; i < count; i++) {
        bool begun;
        DC_TRY(dc_folder_lock(&runs[i]));
        DC_TRY(dc_run_begun(folders[i], &begun));
        DC_TRY(check_steps(&runs[i]));
        DC_TRY(begun ? compare_arithmetic(&runs[i]) : dc_folder_write_config(&runs[i]));
        DC_TRY(read_newest(&runs[i], from[i]));
        if (begun && runs[i].changed) DC_TRY(dc_folder_rewrite_config(&runs[i]));
        DC_TRY(dc_folder_open_logs(&runs[i], runs[i].step));
    }
    return DC_OK;
}

dc_status dc_run_resume(dc_run *run, const dc_dataset *data, const char *folder) {
    return dc_population_resume(run, 1, &data, &folder);
}

void dc_run_fini(dc_run *run) {
    dc_folder_close_logs(run);
    dc_folder_unlock(run);
    if (!run->shares) dc_trainer_free(run->trainer);
    if (!run->shares) dc_held_out_free(run->held_out);
    dc_agent_fini(&run->agent);
    if (!run->shares) dc_pool_free(run->pool);
    free(run->config);
    free(run->folder);
    *run = DC_RUN_NONE;
}

void dc_population_fini(dc_run *runs, int count) {
    for (int i = count - 1; i >= 0; i--) // the first owns what they share
        dc_run_fini(&runs[i]);
}

dc_status dc_run_read_config(const char *folder, dc_arena *arena, const dc_json **root) {
    char path[DC_PATH_MAX], *bytes;
    size_t n;
    bool exists;
    DC_TRY(dc_folder_path(path, folder, "config.json"));
    DC_TRY(dc_file_find(path, &exists));
    if (!exists)
        return dc_fail(DC_BAD_INPUT, "give a folder that dcrl train or dcrl lock --out wrote",
                       "%s is not a run folder", folder);
    DC_TRY(dc_file_read_inside(path, 1 << 20, &bytes, &n));
    dc_status status = dc_json_parse(arena, path, bytes, n, root);
    free(bytes);
    return status;
}

dc_status dc_run_env(const char *folder, char env[DC_TEXT_MAX]) {
    dc_arena arena;
    const dc_json *config;
    *env = 0;
    dc_arena_init(&arena, 0);
    dc_status status = dc_run_read_config(folder, &arena, &config);
    const dc_json *name = status == DC_OK ? dc_json_get(config, "env") : NULL;
    if (name && (name->kind != DC_JSON_STRING || name->text_length >= DC_TEXT_MAX))
        status = dc_fail(DC_BAD_INPUT, NULL, "%s/config.json: impossible env", folder);
    else if (name)
        snprintf(env, DC_TEXT_MAX, "%s", name->text);
    dc_arena_fini(&arena);
    return status;
}

dc_status dc_run_done(const char *folder, bool *done) {
    char path[DC_PATH_MAX];
    DC_TRY(dc_folder_path(path, folder, "DONE"));
    return dc_file_find(path, done);
}

void dc_run_arithmetic(const dc_run *run, char out[DC_ARITHMETIC_MAX]) {
    if (run->options.device)
        snprintf(out, DC_ARITHMETIC_MAX, "%s", run->trainer ? run->trainer->name : "");
    else
        dc_cpu_arithmetic(run->options.precision == 3, out);
}

// --- metrics ---

int dc_run_column_count(const dc_run *run) {
    int held_out = run->held_out ? dc_held_out_count(run->held_out) : 0;
    return dc_run_metric_count(run) + held_out;
}

const char *dc_run_column_name(const dc_run *run, int i) {
    int metrics = dc_run_metric_count(run);
    return i < metrics ? dc_run_metric_name(run, i) : dc_held_out_name(run->held_out, i - metrics);
}

int dc_run_metric_count(const dc_run *run) {
    return run->agent.metric_count + 1;
}

const char *dc_run_metric_name(const dc_run *run, int i) {
    return i < run->agent.metric_count ? run->agent.metrics[i].name : "grad_norm";
}
