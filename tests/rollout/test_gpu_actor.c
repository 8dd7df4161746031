// A policy on the GPU against the same policy on the CPU: its actions, for the sizes of a maze and of a humanoid, in fp32 and
// TF32, and the success rate of a small trained one. Skipped where there is no GPU.
#include "played.h"

#include "env/gen.h"
#include "rollout/eval.h"
#include "sample/noise.h"

#include <unistd.h>

typedef struct size {
    const char *name;
    int obs, in, act; // columns of an observation, with its goal, of an action
    const char *rep, *samples, *flow_steps, *hidden;
    int rows;
} size;

static const size sizes[] = {
    {"pointmaze", 2, 4, 2, "", "32", "10", "512,512,512", 75},
    {"odd", 10, 13, 5, "4,3", "7", "3", "100,60", 11},
    {"humanoid", 69, 71, 21, "0,2", "32", "10", "1024,1024,1024,1024", 75}};
enum { SIZES = sizeof sizes / sizeof sizes[0], SEED = 9, EPISODES = 3 };

typedef struct form {
    const char *name;
    int precision;    // as dc_actor_options has it
    double tolerance; // of actions, and of the worth of another candidate
    int ties;         // rows that may take one, beside a tenth of them
} form;

// In TF32 rounding the weights alone moves the CPU's actions by up to 7e-3.
static const form fp32 = {"fp32", 0, 1e-4, 0}, tf32 = {"tf32", 1, 2e-2, 1};

static char folder[64], path[DC_PATH_MAX];
static bool present; // a GPU
static dc_pool *pool;

// ---- actions ----

// A run of a size with options "key", "value", ..., NULL, saved at `path`.
static void save_agent(const size *s, const char *agent, const char *const *pairs) {
    char run_folder[96];
    dc_dataset data;
    dc_run run;
    snprintf(run_folder, sizeof run_folder, "%s/size", folder);
    remove_tree(run_folder);
    make_walk(&data, s->obs, s->act);
    start_played(&run, &data, run_folder, agent, pairs);
    save_played(&run, path);
    dc_run_fini(&run);
    dc_dataset_fini(&data);
}

// A run of a size with a kind of policy.
static void save_size(const size *s, const char *policy) {
    const char *const pairs[] = {"form",    "value",   "policy",     policy,        "rep",   s->rep,
                                 "hidden",  s->hidden, "samples",    s->samples,    "seed",  "4",
                                 "batch",   "8",       "flow_steps", s->flow_steps, "slots", "2",
                                 "threads", "2",       NULL};
    save_agent(s, "dcrl", pairs);
}

static void open_actor(dc_actor *actor, const size *s, const form *gpu) { // NULL: CPU
    dc_actor_options o = {.rows = s->rows,
                          .seed = SEED,
                          .value = !gpu,
                          .cuda = gpu != NULL,
                          .precision = gpu ? gpu->precision : 0};
    if (dc_actor_open(actor, path, &o, pool) != DC_OK) fail_msg("%s", dc_error());
    assert_int_equal(actor->in, s->in);
}

typedef struct batch {
    float *rows, *actions[2], *steps[2]; // of CPU and GPU; steps to the goal as the CPU sees it
    uint64_t *moments;
} batch;

static void make_batch(batch *b, const size *s, int moment) {
    size_t n = (size_t)s->rows;
    b->rows = calloc(n * (size_t)s->in, sizeof *b->rows);
    b->moments = calloc(n, sizeof *b->moments);
    for (int k = 0; k < 2; k++) {
        b->actions[k] = calloc(n * (size_t)s->act, sizeof *b->actions[k]);
        b->steps[k] = calloc(n, sizeof *b->steps[k]);
    }
    for (int r = 0; r < s->rows; r++) {
        b->moments[r] = dc_actor_moment(r % 5, r / 5, moment);
        for (int c = 0; c < s->in; c++)
            b->rows[r * s->in + c] = dc_draw_normal((uint64_t)moment, 99, (uint64_t)r, (uint32_t)c);
    }
}

static void free_batch(batch *b) {
    free(b->rows);
    free(b->moments);
    for (int k = 0; k < 2; k++) {
        free(b->actions[k]);
        free(b->steps[k]);
    }
}

// The critics' least logit, from the steps that it means: sigmoid(logit) = gamma^steps.
static double worth(float steps) {
    double q = pow(0.99, (double)steps); // the default of gamma
    return log(q / (1 - q));
}

// Actions are equal, or both are candidates that the critics like equally well.
static void compare(const batch *b, const size *s, bool best, const form *f, int count) {
    double worst = 0, gap = 0;
    int others = 0;
    for (int r = 0; r < count; r++) {
        double off = 0;
        for (int c = 0; c < s->act; c++) {
            int i = r * s->act + c;
            assert_true(isfinite(b->actions[1][i]));
            off = fmax(off, fabs((double)b->actions[0][i] - (double)b->actions[1][i]));
        }
        if (off < f->tolerance) {
            worst = fmax(worst, off);
            continue;
        }
        others++;
        gap = fmax(gap, fabs(worth(b->steps[0][r]) - worth(b->steps[1][r])));
    }
    printf("%-10s %-9s %s %3d rows: actions within %.1e, %d by another candidate, "
           "worth within %.1e\n",
           s->name, best ? "rejection" : "mean", f->name, count, worst, others, gap);
    if (!best) assert_int_equal(others, 0);
    assert_true(gap < f->tolerance);
    assert_true(others <= count / 10 + f->ties);
}

// The same actors are asked again and again, with fewer and fewer rows, as in an evaluation.
static void compare_actors(const size *s, const char *policy, const form *f) {
    dc_actor cpu, gpu;
    save_size(s, policy);
    open_actor(&cpu, s, NULL);
    open_actor(&gpu, s, f);
    for (int count = s->rows, moment = 0; count > 0; count /= 3, moment++) {
        batch b;
        make_batch(&b, s, moment);
        assert_int_equal(dc_actor_act(&cpu, count, b.rows, b.moments, b.actions[0]), DC_OK);
        if (dc_actor_act(&gpu, count, b.rows, b.moments, b.actions[1]) != DC_OK)
            fail_msg("%s", dc_error());
        for (int k = 0; k < 2; k++)
            assert_int_equal(dc_actor_steps(&cpu, count, b.rows, b.actions[k], b.steps[k]), DC_OK);
        compare(&b, s, !strcmp(policy, "rejection"), f, count);
        free_batch(&b);
    }
    dc_actor_fini(&gpu);
    dc_actor_fini(&cpu);
}

// Two levels: hbc's actions are the same; sharsa's are but where rounding takes another subgoal of a tie, which leads
// elsewhere.
static void compare_levels(const size *s, const char *agent, const char *key, const char *word,
                           const form *f) {
    const char *const pairs[] = {"rep",         s->rep, "hidden", s->hidden, "flow_steps",
                                 s->flow_steps, "seed", "4",      "batch",   "8",
                                 "threads",     "2",    key,      word,      NULL};
    dc_actor actor[2];
    batch b;
    int others = 0;
    save_agent(s, agent, pairs);
    make_batch(&b, s, 1);
    for (int k = 0; k < 2; k++) {
        dc_actor_options o = {
            .rows = s->rows, .seed = SEED, .cuda = k, .precision = k ? f->precision : 0};
        if (dc_actor_open(&actor[k], path, &o, pool) != DC_OK) fail_msg("%s", dc_error());
        if (dc_actor_act(&actor[k], s->rows, b.rows, b.moments, b.actions[k]) != DC_OK)
            fail_msg("%s", dc_error());
        dc_actor_fini(&actor[k]);
    }
    for (int r = 0; r < s->rows; r++) {
        double off = 0;
        for (int i = r * s->act; i < (r + 1) * s->act; i++)
            off = fmax(off, fabs((double)b.actions[0][i] - (double)b.actions[1][i]));
        others += !(off < f->tolerance);
    }
    printf("%-10s %-9s %s %3d rows: %d other actions\n", s->name, agent, f->name, s->rows, others);
    bool exact = strcmp(agent, "sharsa") != 0 && !f->precision;
    assert_true(others <= (exact ? 0 : s->rows / 10 + f->ties));
    free_batch(&b);
}

static void compare_sizes(const form *f) {
    if (!present) skip();
    for (int i = 0; i < SIZES; i++) {
        compare_actors(&sizes[i], "ddpgbc", f);
        compare_actors(&sizes[i], "rejection", f);
        compare_levels(&sizes[i], "hbc", "actors", "gaussian", f);
        compare_levels(&sizes[i], "hbc", "actors", "flow", f);
        compare_levels(&sizes[i], "sharsa", "samples", sizes[i].samples, f);
    }
}

static void test_actions(void **state) {
    (void)state;
    compare_sizes(&fp32);
}

// The sizes of a maze and of a humanoid run as whole networks on Hopper.
static void test_actions_tf32(void **state) {
    (void)state;
    compare_sizes(&tf32);
}

// ---- evaluation ----

enum { DATA_EPISODES = 40 };
#define ENV "pointmaze-medium-navigate-oraclerep-v0"

static void make_data(const dc_world *world, dc_dataset *data) {
    dc_gen gen;
    int64_t published, *starts;
    const dc_env_family *f = dc_world_spec(world)->family;
    assert_int_equal(dc_gen_init(&gen, dc_world_spec(world), DC_DATA_NAVIGATE, &published), DC_OK);
    gen.world = world;
    size_t rows = (size_t)gen.rows * DATA_EPISODES;
    dc_gen_rows out = {.qpos = calloc(rows * (size_t)f->nq, sizeof *out.qpos),
                       .qvel = calloc(rows * (size_t)f->nv, sizeof *out.qvel),
                       .terminals = calloc(rows, 1)};
    assert_int_equal(dc_dataset_make(data, (int64_t)rows, DATA_EPISODES, &starts), DC_OK);
    for (int64_t t = 0; t <= DATA_EPISODES; t++)
        starts[t] = t * gen.rows;
    assert_int_equal(dc_dataset_add(data, "obs", f->obs, &out.obs), DC_OK);
    assert_int_equal(dc_dataset_add(data, "act", f->act, &out.act), DC_OK);
    assert_int_equal(dc_gen_play(&gen, 0, DATA_EPISODES, &out, pool), DC_OK);
    assert_int_equal(dc_dataset_seal(data), DC_OK);
    free(out.qpos);
    free(out.qvel);
    free(out.terminals);
}

static void train(const dc_dataset *data, const char *out, const char *policy) {
    const char *sets[][2] = {{"env", ENV},     {"rep", "0,2"},    {"hidden", "64,64"},
                             {"batch", "256"}, {"steps", "1500"}, {"policy", policy},
                             {"alpha", "3"},   {"samples", "8"},  {"flow_steps", "5"},
                             {"threads", "2"}};
    dc_run run;
    assert_int_equal(dc_run_configure(&run, "dcrl"), DC_OK);
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++)
        if (dc_run_set(&run, sets[i][0], sets[i][1]) != DC_OK) fail_msg("%s", dc_error());
    if (dc_run_start(&run, data, out) != DC_OK) fail_msg("%s", dc_error());
    if (dc_run_train(&run) != DC_OK) fail_msg("%s", dc_error());
    dc_run_fini(&run);
}

static void play(const dc_world *world, const char *run, bool cuda, dc_eval_score *score) {
    dc_actor actor;
    char checkpoint[DC_PATH_MAX];
    dc_actor_options options = {.rows = EPISODES * DC_TASKS, .seed = SEED, .cuda = cuda};
    assert_int_equal(dc_folder_checkpoint(checkpoint, run, 1500), DC_OK);
    if (dc_actor_open(&actor, checkpoint, &options, pool) != DC_OK) fail_msg("%s", dc_error());
    if (dc_evaluate(world, &actor, EPISODES, SEED, pool, NULL, NULL, score) != DC_OK)
        fail_msg("%s", dc_error());
    dc_actor_fini(&actor);
}

// A goal or none: the mean's actions differ by rounding, which moves no episode over the line. Once in a while
// rounding takes another candidate of a tie, and the way goes on elsewhere: one episode may then end otherwise.
static void compare_scores(const dc_world *world, const dc_dataset *data, const char *policy,
                           double allowed) {
    char run[96];
    dc_eval_score cpu, gpu;
    snprintf(run, sizeof run, "%s/%s", folder, policy);
    train(data, run, policy);
    play(world, run, false, &cpu);
    play(world, run, true, &gpu);
    printf("%-9s success %.1f %% on the CPU, %.1f %% on the GPU\n", policy, 100 * cpu.overall,
           100 * gpu.overall);
    assert_true(cpu.overall > 0.1); // else nothing is compared
    assert_true(fabs(cpu.overall - gpu.overall) <= allowed + 1e-9);
}

static void test_scores(void **state) {
    (void)state;
    dc_env_spec spec;
    dc_world *world;
    dc_dataset data = {0};
    if (!present) skip();
    assert_int_equal(dc_env_find(&spec, ENV), DC_OK);
    if (dc_world_new(&world, &spec) != DC_OK) {
        printf("no evaluation: %s\n", dc_error());
        skip();
    }
    make_data(world, &data);
    compare_scores(world, &data, "ddpgbc", 0);
    compare_scores(world, &data, "rejection", 1.0 / (EPISODES * DC_TASKS));
    dc_dataset_fini(&data);
    dc_world_free(world);
}

static int set_up(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/test_gpu_actor.%ld", (long)getpid());
    assert_int_equal(dc_folder_make(folder), DC_OK);
    assert_int_equal(dc_pool_new(&pool, 0), DC_OK);
    dc_actor actor;
    dc_actor_options o = {.rows = 1, .cuda = true};
    save_size(&sizes[0], "ddpgbc");
    dc_status status = dc_actor_open(&actor, path, &o, pool);
    present = status == DC_OK;
    if (!present) printf("no GPU: %s\n", dc_error());
    if (present) dc_actor_fini(&actor);
    return present || status == DC_UNSUPPORTED ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    dc_pool_free(pool);
    remove_tree(folder);
    return 0;
}

int main(int argc, char **argv) { // with an argument only the tests that it names: "test_r*"
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_actions),
                                       cmocka_unit_test(test_actions_tf32),
                                       cmocka_unit_test(test_scores)};
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
