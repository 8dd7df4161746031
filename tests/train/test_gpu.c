// The GPU against the CPU: rows equal to the bit, losses and gradients of a whole step within the
// precision's tolerance, the same bytes twice, resume to the bit. Skipped where there is no GPU.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/philox.h"
#include "env/lock.h"
#include "train/cuda_batch.h"
#include "train/held_out.h"
#include "train/run.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static dc_dataset maze, spiked, lock;
static bool present;  // a GPU
static uint64_t seed; // of weights, rows and data
static int failed;    // comparisons out of tolerance: all are printed, then told

typedef struct test_case {
    const char *agent, *sets; // "key=value key=value"
    bool lock;
} test_case;

static const test_case cases[] = {
    {"dcrl", "n=16 batch=512 hidden=512,512,512", true},
    {"dcrl", "recursion=off n=8", true},
    {"dcrl", "propagation=off targets=ema*online", true},
    {"td-n", "n=8", true},
    {"trl", "kappa=0.7", true},
    {"trl-n", "n=8 kappa=0.7 lambda=0.5", true},
    {"dcrl", "rep=0,2 n=25 batch=1024 hidden=512,512,512", false},
    {"dcrl", "n=25 hidden=100,60", false},
    {"dcrl", "rep=1,3 order=down policy=none hidden=37,33", false},
    {"dcrl", "recursion=off rep=0,2 actor_random=0.5 actor_law=geometric", false},
    {"dcrl", "propagation=off targets=online*online hidden=1024,1024", false},
    {"dcrl", "rep=0,2 policy=rejection", false},
    {"dcrl", "rep=0,2 policy_after=30", false},
    {"dcrl", "form=value rep=0,2", true}, // discrete actions
    {"td-n", "rep=0,2 n=5 alpha=2", false},
    {"dcrl", "rep=0,2 hidden=256,256,256 batch=100 targets=ema*ema",
     false}, // two packs in one input
    {"trl-n", "rep=0,2 n=5", false},
    {"trl", "rep=0,2 lambda=1", false},
    {"curriculum", "delta=30 n=8", true},
    {"td", "rep=0,2", false},
    {"mc", "rep=0,2", false},
    {"iql", "rep=0,2", false},
    {"iql", "policy=awr actor_layernorm=on hidden=100,60", false},
    {"crl", "rep=0,2 latent=64", false}, // a product of all pairs of rows
    {"crl", "q_floor=-0.1 hidden=100,60", false},
    {"qrl", "rep=0,2", false},
    {"gcivl", "rep=0,2", false},
    {"sacbc", "rep=0,2", false}, // two draws of noise
    {"sacbc", "agg=mean alpha=0.3 actor_layernorm=off hidden=100,60", false},
    {"fbc", "rep=0,2", false},
    {"tmd", "hidden=256,256 batch=300", false},
    {"tmd", "rep=0,2 latent=64 zeta=1", false},
    {"qrl", "rep=0,2 quasimetric=mrn", false},
    {"sharsa", "rep=0,2 subgoal_steps=8", false}, // two flows
    {"sharsa", "agg=mean end_success=off actor_layernorm=off hidden=100,60", false},
    {"por", "", false}, // ReLU, deviations, widths of their own
    {"hbc", "actor_hidden=100,60", false},
    {"hbc", "rep=0,2 actors=flow actor_layernorm=on subgoal_steps=8", false},
    {"hiql", "rep=0,2", false}, // a network that another looks through
    {"hiql", "goal_rep=off high_target=difference", false},
    {"bc", "actor_hidden=64 actor_activation=relu actor_std=free", false},
    {"tdp", "rep=0,2", false}, // several rows for every row of the batch
    {"tdp", "far=pairs candidates=3 policy=rejection hidden=100,60", false},
    {"tdp", "far=off candidates=16 hidden=256,256,256 form=value", true}, // discrete actions
    {"coe", "rep=0,2 goal_random=0.2 goal_future=0.6", false},
    {"coe", "subgoal=midpoint hidden=256,256,256", false}, // gradient to several columns
    // What the device cannot draw is fed from the host.
    {"dcrl", "split=random n=8 order=down", true},
    {"td-n", "batch=8200 hidden=32,32", true},
    {"dcrl", "split=random rep=0,2", false},
    {"tdp", "rep=0,2 batch=8200 candidates=2 hidden=32,32", false},
};
enum { CASES = sizeof cases / sizeof cases[0], DRAWN = CASES - 4 }; // DRAWN: by the device

static float uniform(uint32_t index) {
    return 2 * dc_unit(dc_philox(seed, 99, 0, index).v[0]) - 1;
}

// Trajectories of very different lengths. A spike is a state that no float32 network survives.
static void make_maze(dc_dataset *d, bool spike) {
    enum { TRAJ = 40, OBS = 6, ACT = 3 };
    int64_t *start, at = 0;
    static const int lengths[] = {2, 3, 700, 51, 64, 129, 1001, 12, 200, 33};
    int64_t rows = 0;
    for (int t = 0; t < TRAJ; t++)
        rows += lengths[t % 10];
    assert_int_equal(dc_dataset_make(d, rows, TRAJ, &start), DC_OK);
    for (int t = 0; t < TRAJ; t++) {
        start[t] = at;
        at += lengths[t % 10];
    }
    start[TRAJ] = at;
    float *obs, *act;
    assert_int_equal(dc_dataset_add(d, "obs", OBS, &obs), DC_OK);
    assert_int_equal(dc_dataset_add(d, "act", ACT, &act), DC_OK);
    for (int64_t i = 0; i < rows * OBS; i++)
        obs[i] = uniform((uint32_t)i);
    for (int64_t i = 0; i < rows * ACT; i++)
        act[i] = uniform((uint32_t)(i + 1000000));
    for (int c = 0; spike && c < OBS; c++)
        obs[1500 * OBS + c] = 3e38f;
    assert_int_equal(dc_dataset_seal(d), DC_OK);
}

static int tear_down(void **state) {
    (void)state;
    dc_dataset_fini(&maze);
    dc_dataset_fini(&spiked);
    dc_dataset_fini(&lock);
    return 0;
}

static void configure(dc_run *run, const test_case *c, const char *precision, const char *more) {
    char text[512], *save = NULL;
    assert_int_equal(dc_run_configure(run, c->agent), DC_OK);
    snprintf(text, sizeof text,
             "env=%s hidden=128,128 batch=256 threads=2 device=cuda precision=%s %s %s",
             c->lock ? "lock-300" : "maze", precision, c->sets, more);
    for (char *pair = strtok_r(text, " ", &save); pair; pair = strtok_r(NULL, " ", &save)) {
        char *value = strchr(pair, '=');
        *value++ = 0;
        if (dc_run_set(run, pair, value) != DC_OK) fail_msg("%s", dc_error());
    }
    run->options.seed = (int64_t)(seed % 1000);
}

static int set_up(void **state) {
    (void)state;
    printf("DCRL_SEED=%llu repeats what follows\n", (unsigned long long)seed);
    make_maze(&maze, false);
    make_maze(&spiked, true);
    dc_lock l;
    assert_int_equal(dc_lock_init(&l, 300, 0), DC_OK);
    assert_int_equal(dc_lock_data(&l, &lock), DC_OK);
    dc_lock_fini(&l);
    dc_run run;
    configure(&run, &cases[3], "fp32", "");
    present = dc_run_start(&run, &lock, NULL) == DC_OK;
    printf("GPU: %s\n", present ? run.trainer->name : dc_error());
    dc_run_fini(&run);
    return 0;
}

static void start(dc_run *run, const test_case *c, const char *precision, const char *more,
                  const char *folder) {
    configure(run, c, precision, more);
    if (dc_run_start(run, c->lock ? &lock : &maze, folder) != DC_OK) fail_msg("%s", dc_error());
}

// Train a little, so that weights and targets differ and biases are not zero.
static void warm(dc_run *run, int64_t steps) {
    run->options.steps = steps;
    if (dc_run_train(run) != DC_OK) fail_msg("%s", dc_error());
    assert_int_equal(run->trainer->ops->fetch(run->trainer, 0), DC_OK);
}

static double distance(const float *a, const float *b, int64_t n, double *size) {
    double d = 0, s = 0;
    for (int64_t i = 0; i < n; i++) {
        d += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        s += (double)b[i] * b[i];
    }
    *size = sqrt(s);
    return sqrt(d);
}

// The CPU's gradients and metrics of the step that comes next; the sampler stays where it is.
static void reference(dc_run *run, float *grad, double *metrics) {
    dc_agent *a = &run->agent;
    int64_t *words;
    size_t count;
    assert_int_equal(dc_sampler_save(a->sampler, &words, &count), DC_OK);
    assert_int_equal(dc_agent_gradients(a, (uint64_t)run->step), DC_OK);
    assert_int_equal(dc_sampler_load(a->sampler, words, count), DC_OK);
    free(words);
    memcpy(grad, a->params.slabs.grad, (size_t)a->params.slabs.size * sizeof(float));
    for (int i = 0; i < a->metric_count; i++)
        metrics[i] = (double)*dc_value(&a->exec, a->metrics[i].node).p;
}

// Keep so many bits of each number's fraction, rounded up or down by chance.
static void round_all(float *v, const float *from, int64_t n, int bits, uint32_t draw) {
    for (int64_t i = 0; i < n; i++) {
        int exponent;
        double fraction = frexp(from[i], &exponent), unit = ldexp(1, -bits - 1);
        double chance = 0.5 + 0.5 * (double)uniform(draw * 7919u + (uint32_t)i);
        v[i] = (float)ldexp(floor(fraction / unit + chance) * unit, exponent);
    }
}

static double metrics_distance(const dc_agent *a, const double *x, const double *want) {
    double most = 0;
    for (int i = 0; i < a->metric_count; i++)
        most = fmax(most, fabs(x[i] - want[i]) / (fabs(want[i]) + 1e-3));
    return most;
}

static double worst_tensor(const dc_agent *a, const float *grad, const float *want, double size,
                           const char **where) {
    double worst = 0;
    for (int i = 0; i < a->params.count; i++) {
        const dc_param_row *row = &a->params.rows[i];
        double part, far = distance(grad + row->offset, want + row->offset,
                                    (int64_t)row->e * row->rows * row->cols, &part);
        if (part < 1e-3 * size) continue; // hardly any gradient there
        if (far / part > worst) {
            worst = far / part;
            *where = row->name;
        }
    }
    return worst;
}

typedef struct gap { // how far a step is from the one that is wanted
    double gradient, tensor, metrics;
    const char *where;
} gap;

typedef struct one_step {
    float *grad;
    double metrics[DC_METRICS_MAX];
} one_step;

static gap gap_of(const dc_agent *a, const one_step *step, const one_step *want) {
    gap g = {.where = ""};
    double size;
    g.gradient = distance(step->grad, want->grad, a->params.slabs.size, &size) / size;
    g.tensor = worst_tensor(a, step->grad, want->grad, size, &g.where);
    g.metrics = metrics_distance(a, step->metrics, want->metrics);
    return g;
}

static float *new_floats(int64_t n) {
    float *p = malloc((size_t)n * sizeof *p);
    assert_non_null(p);
    return p;
}

// How far rounded weights move the CPU's own step, at most of several ways to round them: a row at a kink, such as the
// least of an ensemble, is moved by one and not by another.
static gap sway(dc_run *run, const one_step *want, int bits) {
    enum { DRAWS = 12 };
    const dc_slabs *s = &run->agent.params.slabs;
    float *live = new_floats(s->size), *ema = new_floats(s->size);
    one_step rounded = {.grad = new_floats(s->size)};
    memcpy(live, s->live, (size_t)s->size * sizeof *live);
    memcpy(ema, s->ema, (size_t)s->ema_size * sizeof *ema);
    gap most = {.where = ""};
    for (uint32_t draw = 0; draw < DRAWS; draw++) {
        round_all(s->live, live, s->size, bits, 2 * draw);
        round_all(s->ema, ema, s->ema_size, bits, 2 * draw + 1);
        reference(run, rounded.grad, rounded.metrics);
        gap g = gap_of(&run->agent, &rounded, want);
        most.gradient = fmax(most.gradient, g.gradient);
        most.tensor = fmax(most.tensor, g.tensor);
        most.metrics = fmax(most.metrics, g.metrics);
    }
    free(live);
    free(ema);
    free(rounded.grad);
    return most;
}

static bool within(const gap *far, const gap *may, double tolerance) {
    return far->gradient < fmax(tolerance, 3 * may->gradient) &&
           far->tensor < fmax(20 * tolerance, 3 * may->tensor) &&
           far->metrics < fmax(tolerance, 3 * may->metrics);
}

// Gradients of the same step on both, from the same weights. Where a gradient is a small difference of
// large numbers, or a row stands at a kink, rounding moves it far: by how much is told by the CPU
// itself, with weights that are rounded; the GPU may be three times as far off as that.
static bool close_enough(const test_case *c, const char *precision, double tolerance, int bits,
                         int64_t steps) {
    dc_run run;
    start(&run, c, precision, "log_every=7", NULL);
    warm(&run, steps);
    const dc_slabs *s = &run.agent.params.slabs;
    float values[DC_METRICS_MAX];
    one_step want = {.grad = new_floats(s->size)}, got = {.grad = new_floats(s->size)};
    reference(&run, want.grad, want.metrics);
    assert_int_equal(run.trainer->ops->gradients(run.trainer, 0, values), DC_OK);
    memcpy(got.grad, s->grad, (size_t)s->size * sizeof(float));
    for (int i = 0; i < run.agent.metric_count; i++)
        got.metrics[i] = (double)values[i];
    gap far = gap_of(&run.agent, &got, &want), may = {0};
    printf("%-6s %-5s %-62s gradient %.1e, worst tensor %.1e (%s), metrics %.1e", precision,
           c->agent, c->sets, far.gradient, far.tensor, far.where, far.metrics);
    bool close = within(&far, &may, tolerance);
    if (!close) {
        may = sway(&run, &want, bits);
        printf(", rounded weights %.1e, %.1e, %.1e", may.gradient, may.tensor, may.metrics);
        close = within(&far, &may, tolerance);
    }
    printf("\n");
    free(want.grad);
    free(got.grad);
    dc_run_fini(&run);
    return close;
}

static void compare(const test_case *c, const char *precision, double tolerance, int bits) {
    failed += !close_enough(c, precision, tolerance, bits, 60);
}

// Needs no GPU: a method without a case would be compared nowhere.
static void test_every_method(void **state) {
    (void)state;
    for (int m = 0; dc_algos[m]; m++) {
        int found = 0;
        for (int i = 0; i < DRAWN; i++)
            found += !strcmp(cases[i].agent, dc_algos[m]->name);
        if (!found) fail_msg("no case compares %s with the CPU", dc_algos[m]->name);
    }
}

static void test_gradients(void **state) {
    (void)state;
    if (!present) skip();
    for (int i = 0; i < CASES; i++) {
        compare(&cases[i], "fp32", 1e-5, 23);
        compare(&cases[i], "tf32", 3e-3, 10);
        compare(&cases[i], "bf16", 2e-2, 7);
    }
    assert_int_equal(failed, 0);
}

static const test_case batches[] = {
    {"bc", "rep=0,2", false},
    {"iql", "rep=0,2", false},
    {"crl", "latent=64", false},
    {"dcrl", "rep=0,2 hidden=256,256,256 batch=100", false}, // packs
    {"dcrl", "n=16 hidden=512,512", true},
    {"dcrl", "rep=0,2 policy=rejection", false},
    {"sacbc", "rep=0,2", false}};

// The rows of the next step, as dcrl grad --device cuda takes them; the sampler stays where it is.
static dc_cuda_batch *send_rows(dc_run *run) {
    dc_agent *a = &run->agent;
    dc_trainer_spec spec = {.precision = run->options.precision - 1, .lr = 3e-4, .tau = 0.005};
    dc_cuda_batch *batch;
    int64_t *words;
    size_t count;
    assert_int_equal(dc_sampler_save(a->sampler, &words, &count), DC_OK);
    assert_int_equal(dc_agent_gradients(a, (uint64_t)run->step), DC_OK);
    if (dc_cuda_batch_new(&batch, a, &spec) != DC_OK) fail_msg("%s", dc_error());
    assert_int_equal(dc_sampler_load(a->sampler, words, count), DC_OK);
    free(words);
    return batch;
}

// Adam's first update goes lr along the sign of each gradient. The largest difference from that.
static double update_off(dc_agent *a, dc_cuda_batch *batch, const float *grad) {
    const dc_slabs *s = &a->params.slabs;
    float *before = new_floats(s->size);
    double off = 0;
    assert_int_equal(dc_cuda_batch_fetch(batch), DC_OK);
    memcpy(before, s->live, (size_t)s->size * sizeof *before);
    assert_int_equal(dc_cuda_batch_update(batch), DC_OK);
    assert_int_equal(dc_cuda_batch_fetch(batch), DC_OK);
    for (int64_t i = 0; i < s->size; i++) {
        double g = (double)grad[i], step = 3e-4 * g / (fabs(g) + 1e-8);
        off = fmax(off, fabs((double)s->live[i] - ((double)before[i] - step)));
    }
    free(before);
    return off;
}

static bool given_close(const test_case *c, const char *precision, double tolerance, int bits) {
    dc_run run;
    start(&run, c, precision, "log_every=7", NULL);
    warm(&run, 60);
    dc_agent *a = &run.agent;
    const dc_slabs *s = &a->params.slabs;
    float values[DC_METRICS_MAX];
    one_step want = {.grad = new_floats(s->size)}, got = {.grad = new_floats(s->size)};
    reference(&run, want.grad, want.metrics);
    dc_cuda_batch *batch = send_rows(&run);
    assert_int_equal(dc_cuda_batch_gradients(batch, values), DC_OK);
    memcpy(got.grad, s->grad, (size_t)s->size * sizeof(float));
    for (int i = 0; i < a->metric_count; i++)
        got.metrics[i] = (double)values[i];
    gap far = gap_of(a, &got, &want), may = {0};
    bool close = within(&far, &may, tolerance);
    if (!close) may = sway(&run, &want, bits);
    close = close || within(&far, &may, tolerance);
    double off = update_off(a, batch, got.grad);
    printf("%-6s %-5s %-40s gradient %.1e, worst tensor %.1e (%s), metrics %.1e, update %.1e\n",
           precision, c->agent, c->sets, far.gradient, far.tensor, far.where, far.metrics, off);
    dc_cuda_batch_free(batch);
    free(want.grad);
    free(got.grad);
    dc_run_fini(&run);
    return close && off < 2e-6;
}

static void test_given_batch(void **state) {
    (void)state;
    if (!present) skip();
    int bad = 0;
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++) {
        bad += !given_close(&batches[i], "fp32", 1e-5, 23);
        bad += !given_close(&batches[i], "tf32", 3e-3, 10);
        bad += !given_close(&batches[i], "bf16", 2e-2, 7);
    }
    assert_int_equal(bad, 0);
}

static void test_rows(void **state) {
    (void)state;
    if (!present) skip();
    for (int i = 0; i < CASES; i++)
        for (int s = 0; s < 3; s++) {
            dc_run run;
            char more[64];
            snprintf(more, sizeof more, "%s%s", !strcmp(cases[i].agent, "dcrl") ? "slots=" : "",
                     strcmp(cases[i].agent, "dcrl") ? ""
                     : s == 0                       ? "1"
                     : s == 1                       ? "128"
                                                    : "5000");
            start(&run, &cases[i], "tf32", more, NULL);
            for (int64_t step = 1; step <= 40; step++) {
                int64_t bad;
                double *sums = run.sums;
                assert_int_equal(run.trainer->ops->step(run.trainer, 1, &bad, &sums), DC_OK);
                assert_int_equal(bad, -1);
                assert_int_equal(dc_sampler_next(run.agent.sampler, (uint64_t)step - 1), DC_OK);
                int64_t *words, *others;
                size_t n, m;
                assert_int_equal(dc_sampler_save(run.agent.sampler, &words, &n), DC_OK);
                assert_int_equal(run.trainer->ops->fetch(run.trainer, 0), DC_OK);
                assert_int_equal(dc_sampler_save(run.agent.sampler, &others, &m), DC_OK);
                assert_int_equal(n, m);
                assert_memory_equal(words, others, n * sizeof *words);
                free(words);
                free(others);
            }
            dc_run_fini(&run);
        }
}

static char *slurp(const char *folder, const char *name, long *n) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    *n = ftell(f);
    rewind(f);
    char *bytes = malloc((size_t)*n + 1);
    assert_int_equal(fread(bytes, 1, (size_t)*n, f), (size_t)*n);
    fclose(f);
    return bytes;
}

static void expect_equal(const char *a, const char *b) {
    static const char *const names[] = {"train.csv", "step-0000000130.safetensors"};
    for (int i = 0; i < 2; i++) {
        long n, m;
        char *x = slurp(a, names[i], &n), *y = slurp(b, names[i], &m);
        assert_int_equal(n, m);
        assert_memory_equal(x, y, (size_t)n);
        free(x);
        free(y);
    }
}

static atomic_int stop;
static void remove_folder(const char *folder) {
    char command[600];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}

// Host threads, as a sweep has them, start programs of different sizes at once and do not disturb each other.
typedef struct thread_job {
    dc_run run;
    const test_case *kind;
    dc_status status;
    char error[512];
    pthread_t thread;
} thread_job;

static void *train_beside(void *ctx) {
    thread_job *j = ctx;
    j->status = dc_run_start(&j->run, j->kind->lock ? &lock : &maze, NULL);
    if (j->status == DC_OK) j->status = dc_run_train(&j->run);
    if (j->status != DC_OK) snprintf(j->error, sizeof j->error, "%s", dc_error());
    dc_run_fini(&j->run);
    return NULL;
}

static void test_threads(void **state) {
    (void)state;
    if (!present) skip();
    enum { COUNT = 8 };
    static const test_case kinds[] = {{"dcrl", "hidden=512,512", true},
                                      {"td-n", "hidden=32,32", true},
                                      {"dcrl", "hidden=1024,1024", false},
                                      {"dcrl", "hidden=256,256 precision=fp32", false}};
    static thread_job jobs[COUNT];
    for (int i = 0; i < COUNT; i++) {
        jobs[i].kind = &kinds[i % 4];
        configure(&jobs[i].run, jobs[i].kind, "bf16", "steps=30");
    }
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(pthread_create(&jobs[i].thread, NULL, train_beside, &jobs[i]), 0);
    for (int i = 0; i < COUNT; i++)
        pthread_join(jobs[i].thread, NULL);
    for (int i = 0; i < COUNT; i++)
        if (jobs[i].status != DC_OK) fail_msg("%s: %s", jobs[i].kind->sets, jobs[i].error);
}

// What an agent is asked is answered alike by both.
static void test_answers(void **state) {
    (void)state;
    if (!present) skip();
    enum { COUNT = 2500 };
    static int64_t s[COUNT], g[COUNT];
    static float cpu[COUNT], gpu[COUNT];
    for (int i = 0; i < COUNT; i++) {
        s[i] = i * 7919 % 300;
        g[i] = i * 104729 % 299;
    }
    dc_run run;
    start(&run, &cases[3], "fp32", "", NULL);
    warm(&run, 40);
    assert_int_equal(dc_agent_distances(&run.agent, COUNT, s, g, cpu), DC_OK);
    assert_int_equal(dc_agent_query_on_gpu(&run.agent), DC_OK);
    assert_int_equal(dc_agent_distances(&run.agent, COUNT, s, g, gpu), DC_OK);
    double size, far = distance(gpu, cpu, COUNT, &size) / size;
    printf("answers within %.1e\n", far);
    assert_true(far < 1e-5);
    dc_run_fini(&run);
}

// The same seed twice, and stopped and resumed again and again: the same bytes.
static void test_bytes(void **state) {
    (void)state;
    if (!present) skip();
    static const char *const precisions[] = {"fp32", "tf32", "bf16"};
    for (int i = 0; i < CASES; i += 3)
        for (int p = 0; p < 3; p++) {
            char folders[3][64];
            for (int k = 0; k < 3; k++) {
                snprintf(folders[k], sizeof folders[k], "/tmp/test_gpu.%d.%d", (int)getpid(), k);
                remove_folder(folders[k]);
            }
            for (int k = 0; k < 2; k++) {
                dc_run run;
                start(&run, &cases[i], precisions[p], "steps=130 log_every=20 save_every=1000",
                      folders[k]);
                if (dc_run_train(&run) != DC_OK) fail_msg("%s", dc_error());
                dc_run_fini(&run);
            }
            expect_equal(folders[0], folders[1]);
            dc_run run;
            start(&run, &cases[i], precisions[p], "steps=130 log_every=20 save_every=1000",
                  folders[2]);
            for (int parts = 0;; parts++) {
                stop = 1;
                run.stop = &stop;
                dc_status status = dc_run_train(&run);
                dc_run_fini(&run);
                if (status == DC_OK) break;
                assert_int_equal(status, DC_INTERRUPTED);
                assert_true(parts < 130);
                configure(&run, &cases[i], precisions[p], "steps=130 log_every=20 save_every=1000");
                if (dc_run_resume(&run, cases[i].lock ? &lock : &maze, folders[2]) != DC_OK)
                    fail_msg("%s", dc_error());
            }
            expect_equal(folders[0], folders[2]);
            for (int k = 0; k < 3; k++)
                remove_folder(folders[k]);
        }
}

// ---- populations ----

enum { MEMBERS = 3 };
typedef struct population {
    dc_run runs[MEMBERS];
    const dc_dataset *data[MEMBERS];
    char folders[MEMBERS][64];
    const char *paths[MEMBERS];
} population;
#define POPULATION_MORE "steps=130 log_every=20 save_every=1000"

static const char *feed; // of populations, as an option

static void set_up_population(population *p, const test_case *c, const char *name) {
    char more[128];
    snprintf(more, sizeof more, POPULATION_MORE " %s", feed);
    for (int k = 0; k < MEMBERS; k++) {
        configure(&p->runs[k], c, "tf32", more);
        p->runs[k].options.seed += k;
        p->data[k] = c->lock ? &lock : &maze;
        snprintf(p->folders[k], sizeof p->folders[k], "/tmp/test_gpu.%d.%s%d", (int)getpid(), name,
                 k);
        p->paths[k] = p->folders[k];
    }
}

static void remove_population(population *p) {
    for (int k = 0; k < MEMBERS; k++)
        remove_folder(p->folders[k]);
}

// Every member alone.
static void train_alone(population *p, const test_case *c) {
    set_up_population(p, c, "alone");
    remove_population(p);
    for (int k = 0; k < MEMBERS; k++) {
        if (dc_run_start(&p->runs[k], p->data[k], p->folders[k]) != DC_OK)
            fail_msg("%s", dc_error());
        if (dc_run_train(&p->runs[k]) != DC_OK) fail_msg("%s", dc_error());
        dc_run_fini(&p->runs[k]);
    }
}

static void start_together(population *p, const test_case *c, const char *name) {
    set_up_population(p, c, name);
    remove_population(p);
    if (dc_population_start(p->runs, MEMBERS, p->data, p->paths) != DC_OK)
        fail_msg("%s", dc_error());
}

// Stop after the first stretch: the first `part` members of them, so that they stand apart.
static void train_part(population *p, const test_case *c, int part) {
    set_up_population(p, c, "apart");
    remove_population(p);
    for (int k = 0; k < MEMBERS; k++) {
        if (dc_run_start(&p->runs[k], p->data[k], p->folders[k]) != DC_OK)
            fail_msg("%s", dc_error());
        stop = 1;
        p->runs[k].stop = &stop;
        if (k < part) assert_int_equal(dc_run_train(&p->runs[k]), DC_INTERRUPTED);
        dc_run_fini(&p->runs[k]);
    }
    set_up_population(p, c, "apart");
}

// A population's members have the bytes of their single runs: trained in one go, from different steps,
// and beside one that meets NaN.
static void test_population(void **state) {
    (void)state;
    if (!present) skip();
    static const int chosen[] = {3, 6, 13, 0};
    for (int i = 0; i < 8; i++) {
        const test_case *c = &cases[chosen[i / 2]];
        population alone, all, apart, nan;
        feed = "feed=device";
        train_alone(&alone, c);
        if (i % 2) feed = "feed=host";
        start_together(&all, c, "all");
        if (dc_population_train(all.runs, MEMBERS) != DC_OK) fail_msg("%s", dc_error());
        dc_population_fini(all.runs, MEMBERS);
        train_part(&apart, c, 2);
        if (dc_population_resume(apart.runs, MEMBERS, apart.data, apart.paths) != DC_OK)
            fail_msg("%s", dc_error());
        assert_true(apart.runs[0].step > 0 && apart.runs[MEMBERS - 1].step == 0);
        if (dc_population_train(apart.runs, MEMBERS) != DC_OK) fail_msg("%s", dc_error());
        dc_population_fini(apart.runs, MEMBERS);
        start_together(&nan, c, "nan");
        nan.runs[1].agent.params.slabs.live[5] = NAN;
        assert_int_equal(dc_population_train(nan.runs, MEMBERS), DC_NOT_FINITE);
        assert_int_equal(nan.runs[1].ended, DC_NOT_FINITE);
        assert_non_null(strstr(dc_error(), "1 of 3 runs failed"));
        dc_population_fini(nan.runs, MEMBERS);
        for (int k = 0; k < MEMBERS; k++) {
            expect_equal(alone.folders[k], all.folders[k]);
            expect_equal(alone.folders[k], apart.folders[k]);
            if (k != 1) expect_equal(alone.folders[k], nan.folders[k]);
        }
        remove_population(&alone);
        remove_population(&all);
        remove_population(&apart);
        remove_population(&nan);
    }
}

// ---- rows from the host ----

static void train_in(const char *folder, const test_case *c, const char *precision,
                     const char *more) {
    dc_run run;
    remove_folder(folder);
    start(&run, c, precision, more, folder);
    if (dc_run_train(&run) != DC_OK) fail_msg("%s", dc_error());
    dc_run_fini(&run);
}

// The same, stopped after every stretch and resumed.
static void train_in_parts(const char *folder, const test_case *c, const char *precision,
                           const char *more) {
    dc_run run;
    remove_folder(folder);
    start(&run, c, precision, more, folder);
    for (int parts = 0;; parts++) {
        stop = 1;
        run.stop = &stop;
        dc_status status = dc_run_train(&run);
        dc_run_fini(&run);
        if (status == DC_OK) return;
        assert_int_equal(status, DC_INTERRUPTED);
        assert_true(parts < 130);
        configure(&run, c, precision, more);
        if (dc_run_resume(&run, c->lock ? &lock : &maze, folder) != DC_OK)
            fail_msg("%s", dc_error());
    }
}

// Rows that the host sends give the bytes of rows that the device draws, in one go and in parts; the
// steps of a log row are no multiple of a chunk's.
static void test_feed(void **state) {
    (void)state;
    if (!present) skip();
    static const char *const precisions[] = {"fp32", "tf32", "bf16"};
    char folders[3][64];
    for (int k = 0; k < 3; k++)
        snprintf(folders[k], sizeof folders[k], "/tmp/test_gpu.%d.feed%d", (int)getpid(), k);
    for (int i = 0; i < DRAWN; i++) {
        const char *precision = precisions[i % 3];
        train_in(folders[0], &cases[i], precision, POPULATION_MORE " log_every=23 feed=device");
        train_in(folders[1], &cases[i], precision, POPULATION_MORE " log_every=23 feed=host");
        train_in_parts(folders[2], &cases[i], precision, POPULATION_MORE " log_every=23 feed=host");
        expect_equal(folders[0], folders[1]);
        expect_equal(folders[0], folders[2]);
    }
    for (int k = 0; k < 3; k++)
        remove_folder(folders[k]);
}

// A run without a folder goes on from where it was stopped, too.
static void test_in_memory(void **state) {
    (void)state;
    if (!present) skip();
    static const char *const feeds[] = {"steps=60 log_every=20 feed=device",
                                        "steps=60 log_every=20 feed=host"};
    for (int i = 0; i < 2; i++) {
        dc_run whole, parts;
        dc_status status = DC_INTERRUPTED;
        start(&whole, &cases[0], "tf32", feeds[i], NULL);
        start(&parts, &cases[0], "tf32", feeds[i], NULL);
        if (dc_run_train(&whole) != DC_OK) fail_msg("%s", dc_error());
        stop = 1;
        parts.stop = &stop;
        for (int k = 0; k < 100 && status == DC_INTERRUPTED; k++)
            status = dc_run_train(&parts);
        if (status != DC_OK) fail_msg("%s", dc_error());
        const dc_slabs *a = &whole.agent.params.slabs, *b = &parts.agent.params.slabs;
        assert_memory_equal(a->live, b->live, (size_t)a->size * sizeof *a->live);
        dc_run_fini(&whole);
        dc_run_fini(&parts);
    }
}

// Held-out rows are measured with the weights of now, and training has the same bytes with them.
static void test_held_out(void **state) {
    (void)state;
    if (!present) skip();
    dc_run with, without;
    double again[DC_LOG_COLUMNS];
    configure(&with, &cases[0], "tf32", "steps=40 log_every=20");
    with.val = &maze;
    if (dc_run_start(&with, &maze, NULL) != DC_OK) fail_msg("%s", dc_error());
    start(&without, &cases[0], "tf32", "steps=40 log_every=20", NULL);
    if (dc_run_train(&with) != DC_OK || dc_run_train(&without) != DC_OK) fail_msg("%s", dc_error());
    const dc_slabs *a = &with.agent.params.slabs, *b = &without.agent.params.slabs;
    assert_memory_equal(a->live, b->live, (size_t)a->size * sizeof *a->live);
    int count = dc_held_out_count(with.held_out);
    assert_int_equal(dc_held_out_measure(with.held_out, &with.agent, again), DC_OK);
    assert_memory_equal(again, with.last + dc_run_metric_count(&with),
                        (size_t)count * sizeof *again);
    dc_run_fini(&with);
    dc_run_fini(&without);
}

// Where rows are drawn with feed=auto: this data fits, but not every sampler is known there.
static void test_feed_choice(void **state) {
    (void)state;
    if (!present) skip();
    for (int i = 0; i < CASES; i++) {
        dc_run run;
        start(&run, &cases[i], "tf32", "", NULL);
        assert_int_equal(run.trainer->fed, i >= DRAWN);
        dc_run_fini(&run);
    }
    dc_run run;
    configure(&run, &cases[DRAWN], "tf32", "feed=device");
    assert_int_equal(dc_run_start(&run, &lock, NULL), DC_UNSUPPORTED);
    dc_run_fini(&run);
    configure(&run, &cases[0], "tf32", "split=max");
    assert_int_equal(dc_run_start(&run, &lock, NULL), DC_UNSUPPORTED);
    assert_non_null(strstr(dc_error(), "split=max"));
    dc_run_fini(&run);
}

// A number in the data that breaks arithmetic is met at the CPU's step, and blamed as there.
static void test_nan_rows(void **state) {
    (void)state;
    if (!present) skip();
    static const char *const mores[] = {"device=cpu", "feed=device", "feed=host"};
    char said[3][512];
    for (int k = 0; k < 3; k++) {
        dc_run run;
        configure(&run, &cases[7], "fp32", mores[k]);
        run.options.seed = 3;
        if (dc_run_start(&run, &spiked, NULL) != DC_OK) fail_msg("%s", dc_error());
        assert_int_equal(dc_run_train(&run), DC_NOT_FINITE);
        snprintf(said[k], sizeof said[k], "%s", dc_error());
        dc_run_fini(&run);
    }
    assert_string_equal(said[0], said[1]);
    assert_string_equal(said[0], said[2]);
    static const char *const precisions[] = {"tf32", "bf16"};
    for (int k = 0; k < 2; k++) { // where weights are updated with their dW
        dc_run run;
        configure(&run, &cases[7], precisions[k], "hidden=256,256");
        run.options.seed = 3;
        if (dc_run_start(&run, &spiked, NULL) != DC_OK) fail_msg("%s", dc_error());
        assert_int_equal(dc_run_train(&run), DC_NOT_FINITE);
        const dc_slabs *s = &run.agent.params.slabs;
        for (int64_t i = 0; i < s->size; i++)
            assert_true(isfinite(s->live[i]) && isfinite(s->m[i]) && isfinite(s->v[i]));
        dc_run_fini(&run);
    }
}

// NaN in the weights is found at its step and named, and nothing is updated.
static void test_nan(void **state) {
    (void)state;
    if (!present) skip();
    dc_run run;
    start(&run, &cases[6], "bf16", "", NULL);
    warm(&run, 20);
    const dc_slabs *s = &run.agent.params.slabs;
    size_t bytes = (size_t)s->size * sizeof(float);
    s->live[5] = NAN;
    float *before = malloc(bytes);
    assert_non_null(before);
    memcpy(before, s->live, bytes);
    run.options.steps = 100;
    assert_int_equal(dc_run_train(&run), DC_NOT_FINITE);
    assert_non_null(strstr(dc_error(), "at step 21"));
    assert_non_null(strstr(dc_error(), "critic/0"));
    assert_memory_equal(s->live, before, bytes);
    free(before);
    dc_run_fini(&run);
}

// By a fixed seed, and steps by a fresh one as well; DCRL_SEED runs all by that one. With an argument only the tests that
// it names: "test_r*".
int main(int argc, char **argv) {
    const char *given = getenv("DCRL_SEED");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),         cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_answers),      cmocka_unit_test(test_threads),
        cmocka_unit_test(test_bytes),        cmocka_unit_test(test_population),
        cmocka_unit_test(test_feed),         cmocka_unit_test(test_feed_choice),
        cmocka_unit_test(test_nan_rows),     cmocka_unit_test(test_nan),
        cmocka_unit_test(test_every_method), cmocka_unit_test(test_given_batch),
        cmocka_unit_test(test_in_memory),    cmocka_unit_test(test_held_out),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest steps[] = {cmocka_unit_test(test_gradients)};
    seed = given ? strtoull(given, NULL, 10) : 20260101;
    int bad = cmocka_run_group_tests(tests, set_up, tear_down);
    if (given || !present) return bad;
    seed = (uint64_t)time(NULL);
    return bad + cmocka_run_group_tests_name("steps by a fresh seed", steps, set_up, tear_down);
}
