// A policy from a checkpoint of a run: its actions are those of a plain reference in double, whichever rows are
// asked with it; the steps that its value predicts are the reference's; and a file that was changed, or that
// describes something else than it holds, is refused in one line.
#include "../train/edit.h"
#include "played.h"

#include "rollout/actor.h"
#include "sample/noise.h"

#include <unistd.h>

enum { OBS = 3, ACT = 2, ROWS = 40, SAMPLES = 7, STEPS = 4, SEED = 9, IN_MAX = 2 * OBS };

static char root[] = "/tmp/dcrl_actor_XXXXXX", folder[64], path[DC_PATH_MAX];
static dc_dataset data;

// A run of some kind, saved at `path`.
typedef struct kind {
    const char *policy, *rep, *layernorm;
} kind;

static void make(dc_run *run, kind k) {
    const char *const pairs[] = {
        "form",       "value",  "policy", k.policy, "rep", k.rep,     "actor_layernorm",
        k.layernorm,  "hidden", "24,16",  "batch",  "8",   "samples", "7",
        "flow_steps", "4",      "seed",   "4",      "env", "maze",    "threads",
        "1",          NULL};
    remove_tree(folder);
    start_played(run, &data, folder, "dcrl", pairs);
    save_played(run, path);
}

static const dc_mlp *mlp_of(const dc_run *run, const char *name) {
    const dc_net *net = dc_nets_find(&run->agent.nets, name);
    assert_non_null(net);
    return &net->mlp;
}

// Member e of a network on one row.
static void apply(const dc_run *run, const char *net, int e, const double *row, double *out) {
    double x[256], y[256];
    const dc_mlp *m = mlp_of(run, net);
    const dc_real *p = run->agent.params.slabs.live;
    int in = m->in;
    memcpy(x, row, (size_t)in * sizeof *x);
    for (int l = 0; l < m->layers; l++) {
        int width = l < m->hidden.count ? (int)m->hidden.v[l] : m->out;
        double mean = 0, var = 0;
        for (int o = 0; o < width; o++) {
            y[o] = (double)p[m->layer[l].b + e * width + o];
            for (int i = 0; i < in; i++)
                y[o] += x[i] * (double)p[m->layer[l].w + ((int64_t)e * in + i) * width + o];
            if (l == m->layers - 1) continue;
            double z = y[o] + 0.044715 * y[o] * y[o] * y[o];
            y[o] = m->relu ? fmax(y[o], 0) : y[o] * 0.5 * (1 + tanh(sqrt(2 / acos(-1.0)) * z));
            mean += y[o] / width;
        }
        for (int o = 0; o < width; o++)
            var += (y[o] - mean) * (y[o] - mean) / width;
        bool plain = l == m->layers - 1 || !m->layernorm;
        for (int o = 0; o < width; o++)
            x[o] = plain ? y[o]
                         : (y[o] - mean) / sqrt(var + 1e-6) *
                                   (double)p[m->layer[l].scale + e * width + o] +
                               (double)p[m->layer[l].bias + e * width + o];
        in = width;
    }
    memcpy(out, x, (size_t)m->out * sizeof *out);
}

static double clip(double x) {
    return fmax(-1, fmin(1, x));
}

// The value of both members at [s | g | x], `width` columns of x.
static void judge_by(const dc_run *run, const char *critic, const float *row, int in,
                     const double *a, int width, double q[2]) {
    double x[2 * IN_MAX];
    for (int c = 0; c < in; c++)
        x[c] = (double)row[c];
    for (int c = 0; c < width; c++)
        x[in + c] = a[c];
    for (int e = 0; e < 2; e++)
        apply(run, critic, e, x, &q[e]);
}

static void judge(const dc_run *run, const float *row, int in, const double *a, double q[2]) {
    judge_by(run, in == IN_MAX ? "critic" : "oracle_critic", row, in, a, ACT, q);
}

// A sample (width) of a flow at a row (in), by Euler's method; its noise begins at number `first`.
static void euler(const dc_run *run, const char *net, const double *row, int in, int width,
                  uint64_t moment, int first, double *a) {
    double x[2 * IN_MAX + 1], v[IN_MAX];
    memcpy(x, row, (size_t)in * sizeof *x);
    for (int c = 0; c < width; c++)
        a[c] = (double)dc_draw_normal(SEED, DC_STREAM_CANDIDATE, moment, (uint32_t)(first + c));
    for (int s = 0; s < STEPS; s++) {
        memcpy(x + in, a, (size_t)width * sizeof *a);
        x[in + width] = (double)s / STEPS;
        apply(run, net, 0, x, v);
        for (int c = 0; c < width; c++)
            a[c] += v[c] / STEPS;
    }
}

// One candidate and its worth.
static double candidate(const dc_run *run, const float *row, int in, uint64_t moment, int number,
                        double *a) {
    double x[IN_MAX], q[2];
    for (int c = 0; c < in; c++)
        x[c] = (double)row[c];
    euler(run, "actor", x, in, ACT, moment, number * ACT, a);
    for (int c = 0; c < ACT; c++)
        a[c] = clip(a[c]);
    judge(run, row, in, a, q);
    return fmin(q[0], q[1]);
}

typedef struct asked { // rows are packed: (ROWS, in) of the actor that is asked
    float rows[ROWS * IN_MAX], actions[ROWS][ACT];
    uint64_t moments[ROWS];
} asked;

static void ask(asked *q, int in) {
    for (int r = 0; r < ROWS; r++)
        q->moments[r] = dc_actor_moment(r % 5, r / 5, 3 * r);
    for (int i = 0; i < ROWS * in; i++)
        q->rows[i] = dc_draw_normal(1, 99, (uint64_t)i, 0);
}

static void open_actor(dc_actor *actor, const dc_actor_options *o, dc_pool *pool) {
    if (dc_actor_open(actor, path, o, pool) != DC_OK) fail_msg("%s", dc_error());
    assert_true(actor->obs == OBS && actor->act == ACT && actor->in == actor->obs + actor->goal);
}

static void act(dc_actor *actor, asked *q) {
    assert_int_equal(dc_actor_act(actor, ROWS, q->rows, q->moments, q->actions[0]), DC_OK);
}

static const dc_actor_options options = {.rows = ROWS, .seed = SEED};

static const kind means[] = {{"ddpgbc", "", "on"}, {"ddpgbc", "0,2", "on"}, {"ddpgbc", "", "off"}},
                  flows[] = {{"rejection", "", "on"},
                             {"rejection", "1,2", "on"},
                             {"rejection", "", "off"}};

static void test_mean(void **state) {
    (void)state;
    for (int k = 0; k < 3; k++) {
        dc_run run;
        asked q;
        dc_actor actor;
        make(&run, means[k]);
        open_actor(&actor, &options, NULL);
        assert_int_equal(actor.in, k == 1 ? OBS + 2 : 2 * OBS);
        assert_string_equal(actor.from.env, "maze");
        ask(&q, actor.in);
        act(&actor, &q);
        for (int r = 0; r < ROWS; r++) {
            double row[IN_MAX], want[ACT];
            for (int c = 0; c < actor.in; c++)
                row[c] = (double)q.rows[r * actor.in + c];
            apply(&run, "actor", 0, row, want);
            for (int c = 0; c < ACT; c++)
                assert_true(fabs((double)q.actions[r][c] - clip(want[c])) < 1e-5);
        }
        dc_actor_fini(&actor);
        dc_run_fini(&run);
    }
}

// The action is a candidate, and none is worth more. (Several may be the same corner of the square.)
static void check_best(const dc_run *run, const float *row, int in, uint64_t moment,
                       const float *is) {
    double best = -INFINITY, own = -INFINITY, a[ACT];
    for (int i = 0; i < SAMPLES; i++) {
        double q = candidate(run, row, in, moment, i, a), off = 0;
        for (int c = 0; c < ACT; c++)
            off = fmax(off, fabs((double)is[c] - a[c]));
        best = fmax(best, q);
        if (off < 1e-5) own = fmax(own, q);
    }
    assert_true(own > best - 1e-5);
}

static void test_rejection(void **state) {
    (void)state;
    for (int k = 0; k < 3; k++) {
        dc_run run;
        asked q;
        dc_actor actor;
        make(&run, flows[k]);
        open_actor(&actor, &options, NULL);
        ask(&q, actor.in);
        act(&actor, &q);
        for (int r = 0; r < ROWS; r++)
            check_best(&run, q.rows + r * actor.in, actor.in, q.moments[r], q.actions[r]);
        dc_actor_fini(&actor);
        dc_run_fini(&run);
    }
}

// ---- two levels ----

static void make_levels(dc_run *run, const char *agent, const char *rep, const char *const *more) {
    const char *pairs[32] = {"rep",  rep, "hidden", "24,16", "batch",   "8",
                             "seed", "4", "env",    "maze",  "threads", "1"};
    for (int n = 12; *more; more++, n++)
        pairs[n] = *more;
    remove_tree(folder);
    start_played(run, &data, folder, agent, pairs);
    save_played(run, path);
}

// Distance of an action from the low flow's, when it goes to subgoal number i of n; and the subgoal's worth.
static double level_off(const dc_run *run, const float *row, int in, uint64_t moment, int i, int n,
                        const float *is, double *worth) {
    double x[2 * IN_MAX], a[ACT], q[2], off = 0;
    int goal = in - OBS;
    for (int c = 0; c < in; c++)
        x[c] = (double)row[c];
    double w[IN_MAX];
    euler(run, "high_actor", x, in, goal, moment, i * goal, w);
    if (n > 1) judge_by(run, "critic", row, in, w, goal, q);
    *worth = n > 1 ? fmin(q[0], q[1]) : 0;
    memcpy(x + OBS, w, (size_t)goal * sizeof *w);
    euler(run, "low_actor", x, in, ACT, moment, n * goal, a);
    for (int c = 0; c < ACT; c++)
        off = fmax(off, fabs((double)is[c] - clip(a[c])));
    return off;
}

// The action goes to a subgoal than which none is worth more; subgoals are not clipped.
static void check_levels(const char *agent, const char *rep, int n, const char *const *more) {
    dc_run run;
    asked q;
    dc_actor actor;
    make_levels(&run, agent, rep, more);
    open_actor(&actor, &options, NULL);
    actor.at_once = 9;
    ask(&q, actor.in);
    act(&actor, &q);
    for (int r = 0; r < ROWS; r++) {
        double best = -INFINITY, own = -INFINITY, worth;
        for (int i = 0; i < n; i++) {
            double off = level_off(&run, q.rows + r * actor.in, actor.in, q.moments[r], i, n,
                                   q.actions[r], &worth);
            best = fmax(best, worth);
            if (off < 1e-4) own = fmax(own, worth);
        }
        assert_true(own > best - 1e-5);
    }
    dc_actor_fini(&actor);
    dc_run_fini(&run);
}

static void test_two_levels(void **state) {
    (void)state;
    static const char *const seven[] = {"samples", "7", "flow_steps", "4", NULL};
    check_levels("sharsa", "", SAMPLES, seven);
    check_levels("sharsa", "1,2", SAMPLES, seven);
    static const char *const flow[] = {"actors", "flow", "actor_layernorm", "on", "flow_steps",
                                       "4",      NULL};
    check_levels("hbc", "", 1, flow);
    check_levels("hbc", "0,2", 1, flow);
}

// By means: w = high(s, g), which is a difference to s where goals are whole observations, then low(s, w).
static void check_means(const char *agent, const char *rep, bool difference,
                        const char *const *more) {
    dc_run run;
    asked q;
    dc_actor actor;
    make_levels(&run, agent, rep, more);
    open_actor(&actor, &options, NULL);
    ask(&q, actor.in);
    act(&actor, &q);
    for (int r = 0; r < ROWS; r++) {
        double x[IN_MAX], w[IN_MAX], want[ACT];
        for (int c = 0; c < actor.in; c++)
            x[c] = (double)q.rows[r * actor.in + c];
        apply(&run, "high_actor", 0, x, w);
        for (int c = 0; c < actor.goal; c++)
            x[OBS + c] = w[c] + (difference ? x[c] : 0);
        apply(&run, "low_actor", 0, x, want);
        for (int c = 0; c < ACT; c++)
            assert_true(fabs((double)q.actions[r][c] - clip(want[c])) < 1e-5);
    }
    dc_actor_fini(&actor);
    dc_run_fini(&run);
}

static void test_two_means(void **state) {
    (void)state;
    static const char *const none[] = {NULL}, *const plain[] = {"goal_rep", "off", NULL},
                             *const apart[] = {"actor_hidden", "11", "actor_activation", "gelu",
                                               NULL};
    static const char *const far[] = {"goal_rep", "off", "high_target", "difference", NULL};
    check_means("hbc", "", true, none);
    check_means("hbc", "1,2", false, none);
    check_means("hbc", "", true, apart);
    check_means("por", "", true, none);
    check_means("hiql", "", false, plain);
    check_means("hiql", "", true, far);
}

// A difference has no meaning for a representation; actors of ReLU have no LayerNorm: it says so.
static void test_refused_forms(void **state) {
    (void)state;
    static const char *const wrong[][5] = {
        {"por", "rep", "0,2", "high_target", "difference"},
        {"hbc", "rep", "0,2", "high_target", "difference"},
        {"hiql", "goal_rep", "on", "high_target", "difference"},
        {"por", "actor_layernorm", "on", "actor_activation", "relu"},
        {"hbc", "actor_layernorm", "on", "actor_activation", "relu"},
        {"bc", "actor_layernorm", "on", "actor_activation", "relu"}};
    for (size_t c = 0; c < sizeof wrong / sizeof *wrong; c++) {
        dc_run run;
        remove_tree(folder);
        assert_int_equal(dc_run_configure(&run, wrong[c][0]), DC_OK);
        for (int k = 1; k < 5; k += 2)
            assert_int_equal(dc_run_set(&run, wrong[c][k], wrong[c][k + 1]), DC_OK);
        assert_int_equal(dc_run_start(&run, &data, folder), DC_USAGE);
        assert_non_null(strstr(dc_error(), c < 3 ? "difference" : "ReLU"));
        dc_run_fini(&run);
    }
}

// A row's action does not change with its index, with the other rows asked, with threads, or when memory allows only
// a part of the rows at once. Sums may be taken in another order, so it is equal to rounding, not to the bit.
static void test_alone(void **state) {
    (void)state;
    dc_run run;
    asked all, q;
    dc_pool *pool;
    dc_actor actor;
    int moved = 0;
    make(&run, flows[0]);
    assert_int_equal(dc_pool_new(&pool, 2), DC_OK);
    open_actor(&actor, &options, pool);
    ask(&all, actor.in);
    act(&actor, &all);
    q = all;
    actor.at_once = 9; // five parts
    act(&actor, &q);
    for (int i = 0; i < ROWS * ACT; i++)
        assert_true(fabsf(q.actions[i / ACT][i % ACT] - all.actions[i / ACT][i % ACT]) < 1e-5f);
    for (int r = 0; r < ROWS; r++) {
        const float *row = q.rows + r * actor.in;
        float is[ACT];
        assert_int_equal(dc_actor_act(&actor, 1, row, &q.moments[r], is), DC_OK);
        for (int c = 0; c < ACT; c++)
            assert_true(fabsf(is[c] - all.actions[r][c]) < 1e-5f);
        assert_int_equal(dc_actor_act(&actor, 1, row, &(uint64_t){q.moments[r] + 1}, is), DC_OK);
        moved += memcmp(is, all.actions[r], sizeof is) != 0; // other noise, another action
    }
    assert_true(moved > ROWS / 2);
    dc_actor_fini(&actor);
    dc_pool_free(pool);
    dc_run_fini(&run);
}

// Fewer candidates and Euler steps than the run was configured with, if so asked; a policy that has none
// says so.
static void test_other_samples(void **state) {
    (void)state;
    dc_run run;
    asked few, all;
    dc_actor actor;
    dc_actor_options one = {.rows = ROWS, .seed = SEED, .samples = 1};
    make(&run, flows[0]);
    ask(&few, IN_MAX);
    all = few;
    open_actor(&actor, &options, NULL);
    act(&actor, &all);
    dc_actor_fini(&actor);
    open_actor(&actor, &one, NULL);
    act(&actor, &few);
    dc_actor_fini(&actor);
    int others = 0;
    for (int r = 0; r < ROWS; r++) {
        double a[ACT];
        candidate(&run, few.rows + r * IN_MAX, IN_MAX, few.moments[r], 0, a);
        for (int c = 0; c < ACT; c++)
            assert_true(fabs((double)few.actions[r][c] - a[c]) < 1e-5);
        others += memcmp(few.actions[r], all.actions[r], sizeof few.actions[r]) != 0;
    }
    assert_true(others > ROWS / 4);
    dc_run_fini(&run);
    make(&run, means[0]);
    assert_int_equal(dc_actor_open(&actor, path, &one, NULL), DC_USAGE);
    assert_non_null(strstr(dc_error(), "policy=rejection"));
    dc_run_fini(&run);
}

// Steps by the value: log_gamma of sigmoid(logit), the larger of two members, in parts or at once.
static void test_steps(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        dc_run run;
        asked q;
        dc_actor actor;
        dc_actor_options o = options;
        float steps[ROWS];
        o.value = true;
        make(&run, k ? means[1] : flows[0]);
        open_actor(&actor, &o, NULL);
        ask(&q, actor.in);
        act(&actor, &q);
        if (k) actor.at_once = 7;
        assert_int_equal(dc_actor_steps(&actor, ROWS, q.rows, q.actions[0], steps), DC_OK);
        for (int r = 0; r < ROWS; r++) {
            double a[ACT], logit[2], most = 0;
            for (int c = 0; c < ACT; c++)
                a[c] = (double)q.actions[r][c];
            judge(&run, q.rows + r * actor.in, actor.in, a, logit);
            for (int e = 0; e < 2; e++)
                most = fmax(most, log(1 / (1 + exp(-logit[e]))) / log(run.options.gamma));
            assert_true(fabs((double)steps[r] - most) < 1e-3 * (1 + most));
        }
        dc_actor_fini(&actor);
        dc_run_fini(&run);
    }
}

// ---- files that are refused ----

// Both ways to open it say so, with one line that names the file and holds `text`.
static void refuse(dc_status status, const char *text) {
    dc_actor actor;
    dc_checkpoint_policy policy;
    assert_int_equal(dc_checkpoint_open(&policy, path, NULL, 0), status);
    for (int way = 0; way < 2; way++) {
        if (way) assert_int_equal(dc_actor_open(&actor, path, &options, NULL), status);
        if (!strstr(dc_error(), text)) fail_msg("'%s' lacks '%s'", dc_error(), text);
        const char *named = strstr(dc_error(), path);
        if (!named || strstr(named + 1, path)) fail_msg("'%s' names its file not once", dc_error());
    }
}

static void expect_open(void) {
    dc_checkpoint_policy policy;
    if (dc_checkpoint_open(&policy, path, NULL, 0) != DC_OK) fail_msg("%s", dc_error());
    dc_checkpoint_close(&policy);
    dc_checkpoint_close(&policy); // and twice
}

static void no_policy(const char *agent, const char *const *pairs) {
    dc_run run;
    dc_actor actor;
    remove_tree(folder);
    start_played(&run, &data, folder, agent, pairs);
    save_played(&run, path);
    expect_open();
    assert_int_equal(dc_actor_open(&actor, path, &options, NULL), DC_BAD_INPUT);
    assert_non_null(strstr(dc_error(), "has no policy"));
    dc_run_fini(&run);
}

static void test_no_policy(void **state) {
    (void)state;
    no_policy("dcrl",
              (const char *const[]){"form", "value", "policy", "none", "hidden", "8", NULL});
    no_policy("td-n",
              (const char *const[]){"form", "distance", "hidden", "8,8", "batch", "4", NULL});
}

// The bytes of the good file with those from `at` on exchanged.
static void edit(const char *bytes, size_t n, size_t at, const char *other, size_t m) {
    char *copy = malloc(n);
    assert_non_null(copy);
    memcpy(copy, bytes, n);
    memcpy(copy + at, other, m);
    assert_int_equal(dc_file_write(path, copy, n), DC_OK);
    free(copy);
}

// Every word of the metadata, a letter changed.
static void test_edited_metadata(void **state) {
    (void)state;
    dc_run run;
    dc_st_file file;
    char *bytes;
    size_t n;
    make(&run, flows[0]);
    assert_int_equal(dc_file_read(path, 1 << 24, &bytes, &n), DC_OK);
    assert_int_equal(dc_st_parse(&file, "good", bytes, n), DC_OK);
    int edits = 0;
    for (size_t m = 0; m < file.meta_count; m++) {
        const char *value = file.metas[m].value;
        if (!strcmp(file.metas[m].key, "format") || strchr(value, '\n')) continue;
        char quoted[2 * DC_PATH_MAX];
        snprintf(quoted, sizeof quoted, "\"%s\"", value);
        size_t at = 8, length = strlen(quoted);
        while (at + length < n && memcmp(bytes + at, quoted, length) != 0)
            at++;
        assert_true(at + length < n);
        char last = quoted[length - 2], other = last == '1'   ? '2'
                                                : last == 'e' ? 'f'
                                                              : (char)(last ^ 1);
        edit(bytes, n, at + length - 2, &other, 1);
        refuse(DC_BAD_INPUT, "is damaged");
        edits++;
    }
    assert_int_equal(edits, 6); // agent, env, step, seed, networks, hash
    static const char *const words[] = {"gamma", "alpha", "flow_steps", "\\\"obs\\\": 3",
                                        "actor_gain"};
    for (size_t w = 0; w < sizeof words / sizeof *words; w++) { // in the method's options
        size_t at = 8, length = strlen(words[w]);
        while (at + length < n && memcmp(bytes + at, words[w], length) != 0)
            at++;
        if (at + length >= n) fail_msg("no %s", words[w]);
        char other = (char)(bytes[at + length - 1] ^ 1);
        edit(bytes, n, at + length - 1, &other, 1);
        refuse(DC_BAD_INPUT, "is damaged");
    }
    dc_st_close(&file);
    assert_int_equal(dc_file_write(path, bytes, n), DC_OK);
    expect_open();
    free(bytes);
    dc_run_fini(&run);
}

// One bit of each matrix of the policy and of its critic.
static void test_flipped_weights(void **state) {
    (void)state;
    dc_run run;
    dc_st_file file;
    char *bytes;
    size_t n;
    int flips = 0;
    make(&run, flows[0]);
    assert_int_equal(dc_file_read(path, 1 << 24, &bytes, &n), DC_OK);
    assert_int_equal(dc_st_parse(&file, "good", bytes, n), DC_OK);
    for (size_t t = 0; t < file.count; t++) {
        const dc_st_tensor *tensor = &file.tensors[t];
        size_t at = (size_t)((const char *)tensor->bytes - bytes) + tensor->size * t / file.count;
        char other = (char)(bytes[at] ^ 1 << t % 8);
        edit(bytes, n, at, &other, 1);
        refuse(DC_BAD_INPUT, "is damaged");
        flips++;
    }
    assert_true(flips > 40);
    dc_st_close(&file);
    free(bytes);
    dc_run_fini(&run);
}

// Files with a hash that fits, whose content does not.
static void more_gamma(parts *p) {
    static char text[1 << 14];
    snprintf(text, sizeof text, "%s", find_meta(p, "method")->value);
    char *at = strstr(text, "\"gamma\": 0");
    assert_non_null(at);
    at[9] = '1';
    set_meta(p, "method", text);
}
static void unknown_option(parts *p) {
    static char text[1 << 14];
    snprintf(text, sizeof text, "%s", find_meta(p, "method")->value);
    char *at = strstr(text, "\"alpha\"");
    assert_non_null(at);
    at[2] = 'x';
    set_meta(p, "method", text);
}
static void no_object(parts *p) {
    set_meta(p, "method", "[1, 2]");
}
static void no_json(parts *p) {
    set_meta(p, "method", "{\"obs\": 3,");
}
static void no_method(parts *p) {
    drop_meta(p, "method");
}
static void no_networks(parts *p) {
    drop_meta(p, "networks");
}
static void other_networks(parts *p) {
    set_meta(p, "networks", "critic mlp 2 x (8,24,16,1) target");
}
static void unknown_agent(parts *p) {
    set_meta(p, "agent", "dcrll");
}
static void no_agent(parts *p) {
    drop_meta(p, "agent");
}
static void no_hash(parts *p) {
    drop_meta(p, "hash");
}
static void no_metas(parts *p) {
    p->meta_count = 0;
}
static void later_format(parts *p) {
    set_meta(p, "format", "dcrl checkpoint 9");
}
static void old_format(parts *p) {
    set_meta(p, "format", "dcrl checkpoint 1");
}
static void no_weight(parts *p) {
    drop_tensor(p, "actor/1/w");
}
static void short_vector(parts *p) {
    dc_st_tensor *t = find_tensor(p, "actor/0/scale");
    t->shape[t->ndim - 1]--;
    t->size -= sizeof(float);
}
static void whole_numbers(parts *p) {
    find_tensor(p, "critic/0/b")->dtype = DC_ST_I32;
}
static void nan_weight(parts *p) {
    floats_of(p, "critic/1/w")[3] = NAN;
}

static void test_other_content(void **state) {
    (void)state;
    static const struct {
        void (*change)(parts *);
        const char *text;
    } changes[] = {{more_gamma, "describes no method"},
                   {unknown_option, "describes no method"},
                   {no_object, "describes no method"},
                   {no_json, "describes no method"},
                   {no_method, "describes no method"},
                   {unknown_agent, "did you mean"},
                   {no_networks, "holds networks (none)"},
                   {other_networks, "not those of its method"},
                   {no_agent, "is not a dcrl checkpoint"},
                   {no_hash, "is not a dcrl checkpoint"},
                   {no_metas, "is not a dcrl checkpoint"},
                   {later_format, "is not a dcrl checkpoint"},
                   {old_format, "was written by an older dcrl: train anew"},
                   {no_weight, "actor/1/w"},
                   {short_vector, "actor/0/scale has another type or shape"},
                   {whole_numbers, "critic/0/b has another type or shape"},
                   {nan_weight, "critic/1/w is not finite"}};
    dc_run run;
    char *bytes;
    size_t n;
    make(&run, flows[0]);
    assert_int_equal(dc_file_read(path, 1 << 24, &bytes, &n), DC_OK);
    for (size_t c = 0; c < sizeof changes / sizeof *changes; c++) {
        parts p;
        take_apart(&p, bytes, n);
        changes[c].change(&p);
        set_hash(&p);
        put_together(&p, path);
        refuse(DC_BAD_INPUT, changes[c].text);
    }
    assert_int_equal(dc_file_write(path, bytes, n / 2), DC_OK); // cut short
    refuse(DC_BAD_INPUT, path);
    assert_int_equal(dc_file_write(path, bytes, n), DC_OK);
    expect_open();
    free(bytes);
    dc_run_fini(&run);
}

static int set_up(void **state) {
    (void)state;
    if (!mkdtemp(root)) return -1;
    snprintf(folder, sizeof folder, "%s/run", root);
    make_walk(&data, OBS, ACT);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    dc_dataset_fini(&data);
    remove_tree(root);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_mean),
                                       cmocka_unit_test(test_rejection),
                                       cmocka_unit_test(test_two_levels),
                                       cmocka_unit_test(test_two_means),
                                       cmocka_unit_test(test_refused_forms),
                                       cmocka_unit_test(test_alone),
                                       cmocka_unit_test(test_other_samples),
                                       cmocka_unit_test(test_steps),
                                       cmocka_unit_test(test_no_policy),
                                       cmocka_unit_test(test_edited_metadata),
                                       cmocka_unit_test(test_flipped_weights),
                                       cmocka_unit_test(test_other_content)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
