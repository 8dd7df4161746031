// A policy on the GPU against the same policy on the CPU: its actions, for the sizes of a maze and of a humanoid, in fp32 and
// TF32, and the success rate of a small trained one. Skipped where there is no GPU.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "env/gen.h"
#include "rollout/eval.h"
#include "rollout/setting.h"
#include "sample/noise.h"
#include "train/folder.h"
#include "train/run.h"

typedef struct size {
    const char *name;
    int in, act, samples, flow_steps, rows;
    dc_int_list hidden;
} size;

static const size sizes[] = {{"pointmaze", 4, 2, 32, 10, 75, {3, {512, 512, 512}}},
                             {"odd", 13, 5, 7, 3, 11, {2, {100, 60}}},
                             {"humanoid", 71, 21, 32, 10, 75, {4, {1024, 1024, 1024, 1024}}}};
enum { SIZES = sizeof sizes / sizeof sizes[0], SEED = 9, EPISODES = 3 };

typedef struct form {
    const char *name;
    int precision;    // as dc_actor_options has it
    double tolerance; // of actions, and of the worth of another candidate
    int ties;         // rows that may take one, beside a tenth of them
} form;

// In TF32 rounding the weights alone moves the CPU's actions by up to 7e-3.
static const form fp32 = {"fp32", 0, 1e-4, 0}, tf32 = {"tf32", 1, 2e-2, 1};

static char folder[64], path[96];
static bool present; // a GPU
static dc_pool *pool;

// ---- actions ----

// Weights that matter: policies begin near zero, which would hide mistakes.
static void save_nets(const size *s, int kind) {
    dc_params params = {0};
    dc_mlp actor, critic;
    dc_mlp_declare(&actor, &params, "actor", 1, s->in + dc_policy_extra(kind, s->act), &s->hidden,
                   s->act, 1.5, false);
    dc_mlp_declare(&critic, &params, "critic", 2, s->in + s->act, &s->hidden, 1, 1, false);
    assert_int_equal(dc_params_alloc(&params, 4), DC_OK);
    dc_st_tensor tensors[DC_PARAMS_MAX];
    static char names[DC_PARAMS_MAX][DC_WEIGHT_NAME];
    for (int i = 0; i < params.count; i++) {
        const dc_param_row *row = &params.rows[i];
        for (int k = 0; row->init != DC_INIT_XAVIER && k < row->e * row->cols; k++)
            params.slabs.live[row->offset + k] += (dc_real)(0.1 * sin(i + 3 * k));
        dc_weight_describe(row, params.slabs.live, "", names[i], &tensors[i]);
    }
    assert_int_equal(dc_st_write(path, tensors, (size_t)params.count, NULL, 0), DC_OK);
    dc_params_free(&params);
}

static void open_actor(dc_actor *actor, const size *s, int kind, const form *gpu) { // NULL: CPU
    dc_actor_options o = {.kind = kind,
                          .samples = s->samples,
                          .flow_steps = s->flow_steps,
                          .rows = s->rows,
                          .seed = SEED,
                          .judge = !gpu,
                          .cuda = gpu != NULL,
                          .precision = gpu ? gpu->precision : 0};
    if (dc_actor_open(actor, path, &o, pool) != DC_OK) fail_msg("%s", dc_error());
}

typedef struct batch {
    float *rows, *actions[2], *worth[2]; // of CPU and GPU; worth as the CPU sees it
    uint64_t *moments;
} batch;

static void make_batch(batch *b, const size *s, int moment) {
    size_t n = (size_t)s->rows;
    b->rows = calloc(n * (size_t)s->in, sizeof *b->rows);
    b->moments = calloc(n, sizeof *b->moments);
    for (int k = 0; k < 2; k++) {
        b->actions[k] = calloc(n * (size_t)s->act, sizeof *b->actions[k]);
        b->worth[k] = calloc(n, sizeof *b->worth[k]);
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
        free(b->worth[k]);
    }
}

// Actions are equal, or both are candidates that the critics like equally well.
static void compare(const batch *b, const size *s, int kind, const form *f, int count) {
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
        gap = fmax(gap, fabs((double)b->worth[0][r] - (double)b->worth[1][r]));
    }
    printf("%-10s %-9s %s %3d rows: actions within %.1e, %d by another candidate, "
           "worth within %.1e\n",
           s->name, kind == DC_POLICY_REJECTION ? "rejection" : "mean", f->name, count, worst,
           others, gap);
    if (kind != DC_POLICY_REJECTION) assert_int_equal(others, 0);
    assert_true(gap < f->tolerance);
    assert_true(others <= count / 10 + f->ties);
}

// The same actors are asked again and again, with fewer and fewer rows, as in an evaluation.
static void compare_actors(const size *s, int kind, const form *f) {
    dc_actor cpu, gpu;
    save_nets(s, kind);
    open_actor(&cpu, s, kind, NULL);
    open_actor(&gpu, s, kind, f);
    for (int count = s->rows, moment = 0; count > 0; count /= 3, moment++) {
        batch b;
        make_batch(&b, s, moment);
        assert_int_equal(dc_actor_act(&cpu, count, b.rows, b.moments, b.actions[0]), DC_OK);
        if (dc_actor_act(&gpu, count, b.rows, b.moments, b.actions[1]) != DC_OK)
            fail_msg("%s", dc_error());
        for (int k = 0; k < 2; k++)
            dc_actor_judge(&cpu, count, b.rows, b.actions[k], b.worth[k]);
        compare(&b, s, kind, f, count);
        free_batch(&b);
    }
    dc_actor_fini(&gpu);
    dc_actor_fini(&cpu);
}

static void compare_sizes(const form *f) {
    if (!present) skip();
    for (int i = 0; i < SIZES; i++) {
        compare_actors(&sizes[i], DC_POLICY_DDPGBC, f);
        compare_actors(&sizes[i], DC_POLICY_REJECTION, f);
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
    dc_setting setting;
    dc_actor actor;
    char checkpoint[DC_PATH_MAX];
    assert_int_equal(dc_setting_read(&setting, run), DC_OK);
    dc_actor_options options = dc_setting_actor(&setting, EPISODES * DC_TASKS, SEED);
    options.cuda = cuda;
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
    snprintf(path, sizeof path, "%s/nets.safetensors", folder);
    assert_int_equal(dc_folder_make(folder), DC_OK);
    assert_int_equal(dc_pool_new(&pool, 0), DC_OK);
    dc_actor actor;
    dc_actor_options o = {.kind = DC_POLICY_DDPGBC, .rows = 1, .cuda = true};
    save_nets(&sizes[0], DC_POLICY_DDPGBC);
    dc_status status = dc_actor_open(&actor, path, &o, pool);
    present = status == DC_OK;
    if (!present) printf("no GPU: %s\n", dc_error());
    if (present) dc_actor_fini(&actor);
    return present || status == DC_UNSUPPORTED ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    char command[128];
    dc_pool_free(pool);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

int main(int argc, char **argv) { // with an argument only the tests that it names: "test_r*"
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_actions),
                                       cmocka_unit_test(test_actions_tf32),
                                       cmocka_unit_test(test_scores)};
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
