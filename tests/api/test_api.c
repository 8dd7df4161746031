// The public API as a caller sees it: data from memory, a tiny run, its policy, a maze; and every kind of
// wrong call, which must come back as a status with a sentence. Only public headers are included.
#include "dcrl/dcrl.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { ROWS = 64, LENGTH = 16, OBS = 2, ACT = 2 };

static char folder[] = "/tmp/dcrl_api_XXXXXX";

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

static const char *inside(const char *name) {
    static char path[64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

// Walks along x: each trajectory goes right by 0.2 a step.
typedef struct walks {
    float obs[ROWS * OBS], act[ROWS * ACT];
    unsigned char ends[ROWS];
} walks;

static walks make_walks(void) {
    walks w = {0};
    for (int r = 0; r < ROWS; r++) {
        w.obs[r * OBS] = 0.2f * (float)(r % LENGTH);
        w.obs[r * OBS + 1] = (float)(r / LENGTH);
        w.act[r * ACT] = 1;
        w.ends[r] = r % LENGTH == LENGTH - 1;
    }
    return w;
}

static dcrl_dataset *make_data(void) {
    walks w = make_walks();
    dcrl_dataset *data;
    assert_int_equal(dcrl_dataset_make(&data, ROWS, OBS, ACT, w.obs, w.act, w.ends), DCRL_OK);
    return data;
}

static dcrl_run *make_run(const char *steps) {
    static const char *const options[][2] = {
        {"batch", "16"}, {"hidden", "16,16"}, {"n", "4"}, {"threads", "1"}, {"log_every", "1"}};
    dcrl_run *run;
    assert_int_equal(dcrl_run_new(&run, NULL, "dcrl"), DCRL_OK);
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        assert_int_equal(dcrl_run_set(run, options[i][0], options[i][1]), DCRL_OK);
    assert_int_equal(dcrl_run_set(run, "steps", steps), DCRL_OK);
    return run;
}

static void assert_told(dcrl_status got, dcrl_status want, const char *word) {
    assert_int_equal(got, want);
    if (!strstr(dcrl_message(), word)) fail_msg("'%s' lacks '%s'", dcrl_message(), word);
}

static void test_data_from_memory(void **state) {
    (void)state;
    dcrl_dataset *data = make_data();
    assert_int_equal(dcrl_dataset_rows(data), ROWS);
    assert_int_equal(dcrl_dataset_trajectories(data), ROWS / LENGTH);
    dcrl_dataset_close(data);
}

static void test_bad_data(void **state) {
    (void)state;
    dcrl_dataset *data;
    walks w = make_walks();
    assert_told(dcrl_dataset_open(&data, "/nowhere.npz"), DCRL_IO, "/nowhere.npz");
    assert_null(data);
    assert_told(dcrl_dataset_open(&data, NULL), DCRL_USAGE, "path");
    assert_told(dcrl_dataset_make(&data, 0, OBS, ACT, w.obs, w.act, w.ends), DCRL_USAGE, "rows");
    w.obs[7 * OBS] = NAN;
    assert_told(dcrl_dataset_make(&data, ROWS, OBS, ACT, w.obs, w.act, w.ends), DCRL_BAD_INPUT,
                "row 7");
    w = make_walks();
    w.ends[ROWS - 1] = 0;
    assert_told(dcrl_dataset_make(&data, ROWS, OBS, ACT, w.obs, w.act, w.ends), DCRL_BAD_INPUT,
                "no end");
    w = make_walks();
    w.ends[0] = 1; // a trajectory of one row
    assert_int_equal(dcrl_dataset_make(&data, ROWS, OBS, ACT, w.obs, w.act, w.ends),
                     DCRL_BAD_INPUT);
    assert_null(data);
    dcrl_dataset_close(NULL);
}

static int stop_at_three(void *ctx, const dcrl_progress *p) {
    *(dcrl_progress *)ctx = *p;
    return p->step >= 3;
}

// Stop, go on in the same handle and in a new one: the same bytes as never having stopped.
static void test_train_stop_resume(void **state) {
    (void)state;
    dcrl_dataset *data = make_data();
    dcrl_progress last = {0};
    dcrl_run *run = make_run("12"), *whole = make_run("12"), *again;
    assert_int_equal(dcrl_run_start(run, data, inside("parts")), DCRL_OK);
    dcrl_run_stop(run);
    assert_told(dcrl_run_train(run, stop_at_three, &last), DCRL_INTERRUPTED, "step 1");
    dcrl_run_stop(run);
    assert_told(dcrl_run_train(run, NULL, NULL), DCRL_INTERRUPTED, "step 2");
    dcrl_run_free(run);
    assert_int_equal(dcrl_run_resume(&again, data, inside("parts"), 1), DCRL_OK);
    assert_int_equal(dcrl_run_step(again), 2);
    assert_int_equal(dcrl_run_train(again, stop_at_three, &last), DCRL_OK);
    assert_int_equal(last.step, 12);
    assert_true(last.loss > 0);
    dcrl_run_free(again);
    assert_int_equal(dcrl_run_start(whole, data, inside("whole")), DCRL_OK);
    assert_int_equal(dcrl_run_train(whole, NULL, NULL), DCRL_OK);
    dcrl_run_free(whole);
    dcrl_dataset_close(data);
    char command[256];
    snprintf(command, sizeof command,
             "cd %s && cmp parts/step-*12.safetensors whole/step-*12.safetensors", folder);
    assert_int_equal(system(command), 0);
}

static void test_bad_runs(void **state) {
    (void)state;
    dcrl_run *run;
    dcrl_dataset *data = make_data();
    assert_told(dcrl_run_new(&run, "no-such-preset", NULL), DCRL_USAGE, "no-such-preset");
    assert_null(run);
    assert_told(dcrl_run_new(&run, NULL, "dcrll"), DCRL_USAGE, "dcrl");
    run = make_run("2");
    assert_told(dcrl_run_set(run, "batsh", "2"), DCRL_USAGE, "batch");
    assert_int_not_equal(dcrl_run_set(run, "batch", "-1"), DCRL_OK);
    assert_told(dcrl_run_set(run, NULL, "2"), DCRL_USAGE, "key");
    assert_told(dcrl_run_train(run, NULL, NULL), DCRL_USAGE, "not started");
    assert_told(dcrl_run_start(run, NULL, inside("none")), DCRL_USAGE, "nothing to train on");
    assert_told(dcrl_run_start(run, data, inside("none")), DCRL_USAGE, "once");
    assert_told(dcrl_run_train(run, NULL, NULL), DCRL_USAGE, "not started");
    dcrl_run_free(run);
    assert_int_not_equal(dcrl_run_resume(&run, data, inside("none"), 1), DCRL_OK);
    assert_null(run);
    run = make_run("2");
    assert_int_equal(dcrl_run_start(run, data, inside("two")), DCRL_OK);
    assert_told(dcrl_run_set(run, "steps", "3"), DCRL_USAGE, "fixed");
    assert_int_equal(dcrl_run_train(run, NULL, NULL), DCRL_OK);
    dcrl_run_free(run);
    dcrl_run_stop(NULL);
    dcrl_run_free(NULL);
    dcrl_dataset_close(data);
}

static const char *train_small(dcrl_dataset *data) {
    static char path[64];
    snprintf(path, sizeof path, "%s", inside("small"));
    dcrl_run *run = make_run("20");
    assert_int_equal(dcrl_run_start(run, data, path), DCRL_OK);
    assert_int_equal(dcrl_run_train(run, NULL, NULL), DCRL_OK);
    dcrl_run_free(run);
    return path;
}

// Many rows are asked in pieces; each row gets the answer that it gets alone.
static void test_policy(void **state) {
    (void)state;
    enum { MANY = 300 };
    dcrl_dataset *data = make_data();
    dcrl_policy *policy;
    assert_int_equal(dcrl_policy_open(&policy, train_small(data), 1), DCRL_OK);
    dcrl_sizes sizes = dcrl_policy_sizes(policy);
    assert_int_equal(sizes.obs, OBS);
    assert_int_equal(sizes.goal, OBS);
    assert_int_equal(sizes.act, ACT);
    assert_string_equal(dcrl_policy_env(policy), "");
    float obs[MANY * OBS], goals[MANY * OBS], actions[MANY * ACT], alone[ACT];
    for (int i = 0; i < MANY * OBS; i++) {
        obs[i] = 0.01f * (float)i;
        goals[i] = 1 - obs[i];
    }
    assert_int_equal(dcrl_policy_act(policy, MANY, obs, goals, actions), DCRL_OK);
    for (int r = 0; r < MANY; r += 23) {
        assert_int_equal(dcrl_policy_act(policy, 1, obs + r * OBS, goals + r * OBS, alone),
                         DCRL_OK);
        for (int c = 0; c < ACT; c++)
            assert_true(fabsf(alone[c] - actions[r * ACT + c]) < 1e-5f);
    }
    assert_true(fabsf(actions[0] - actions[(MANY - 1) * ACT]) > 1e-6f);
    goals[5 * OBS] = INFINITY;
    assert_told(dcrl_policy_act(policy, MANY, obs, goals, actions), DCRL_BAD_INPUT, "goal 5");
    assert_told(dcrl_policy_act(policy, -1, obs, goals, actions), DCRL_USAGE, "count");
    assert_told(dcrl_policy_act(policy, 1, NULL, goals, actions), DCRL_USAGE, "observations");
    assert_int_equal(dcrl_policy_act(policy, 0, NULL, NULL, NULL), DCRL_OK);
    dcrl_policy_close(policy);
    dcrl_dataset_close(data);
}

// A checkpoint file alone is enough; one that was edited to say something else of its observations is refused.
static void test_policy_file(void **state) {
    (void)state;
    dcrl_policy *policy;
    char command[256];
    snprintf(command, sizeof command,
             "cd %s && cp whole/step-*12.safetensors good && sed 's/obs\\\\\": 2/obs\\\\\": 4/' "
             "good >bad && ! cmp -s good bad",
             folder);
    assert_int_equal(system(command), 0);
    assert_int_equal(dcrl_policy_open(&policy, inside("good"), 2), DCRL_OK);
    assert_int_equal(dcrl_policy_sizes(policy).obs, OBS);
    dcrl_policy_close(policy);
    assert_told(dcrl_policy_open(&policy, inside("bad"), 1), DCRL_BAD_INPUT, "is damaged");
    assert_null(policy);
}

static void test_bad_policies(void **state) {
    (void)state;
    dcrl_policy *policy;
    assert_told(dcrl_policy_open(&policy, "/nowhere", 1), DCRL_IO, "/nowhere");
    assert_told(dcrl_policy_open(&policy, folder, 1), DCRL_BAD_INPUT, "has no checkpoint");
    assert_told(dcrl_policy_open(&policy, inside("whole/train.csv"), 1), DCRL_BAD_INPUT, "csv");
    assert_told(dcrl_policy_open(NULL, "x", 1), DCRL_USAGE, "policy");
    assert_null(policy);
    assert_int_equal(dcrl_policy_sizes(NULL).obs, 0);
    dcrl_policy_close(NULL);
}

// A point that walks is where its actions lead; the same seed gives the same episodes.
static void test_env(void **state) {
    (void)state;
    dcrl_env *a, *b;
    dcrl_status status = dcrl_env_open(&a, "pointmaze-medium-oraclerep-v0", 3);
    if (status == DCRL_UNSUPPORTED || status == DCRL_IO) skip(); // a build without MuJoCo
    assert_int_equal(status, DCRL_OK);
    assert_int_equal(dcrl_env_open(&b, "pointmaze-medium-oraclerep-v0", 3), DCRL_OK);
    dcrl_sizes sizes = dcrl_env_sizes(a);
    assert_int_equal(sizes.obs, 2);
    assert_int_equal(sizes.goal, 2);
    assert_int_equal(sizes.act, 2);
    assert_int_equal(dcrl_env_tasks(a), 5);
    assert_int_equal(dcrl_env_horizon(a), 1000);
    float x[2], y[2], goal[2], goal_b[2], first[2], action[2] = {7, 0};
    int success = -1;
    assert_int_equal(dcrl_env_reset(a, 1, x, goal), DCRL_OK);
    assert_int_equal(dcrl_env_reset(b, 1, y, goal_b), DCRL_OK);
    assert_memory_equal(x, y, sizeof x);
    assert_memory_equal(goal, goal_b, sizeof goal);
    memcpy(first, x, sizeof x);
    assert_int_equal(dcrl_env_step(a, action, x, &success), DCRL_OK);
    assert_true(fabsf(x[0] - first[0] - 0.2f) < 1e-5f); // cut to 1, at 0.2 a step
    assert_int_equal(success, 0);
    action[1] = NAN;
    assert_told(dcrl_env_step(a, action, x, &success), DCRL_BAD_INPUT, "action");
    assert_told(dcrl_env_reset(a, 6, x, goal), DCRL_USAGE, "6");
    assert_told(dcrl_env_reset(a, 1, NULL, goal), DCRL_USAGE, "observation");
    assert_int_equal(dcrl_env_reset(a, 1, x, goal), DCRL_OK);
    assert_memory_not_equal(x, first, sizeof x); // the next episode
    dcrl_env_close(a);
    dcrl_env_close(b);
    assert_int_equal(dcrl_env_open(&a, "pointmaze-medium-singletask-task3-v0", 3), DCRL_OK);
    assert_int_equal(dcrl_env_tasks(a), 1); // its own
    assert_int_equal(dcrl_env_reset(a, 1, x, goal), DCRL_OK);
    assert_told(dcrl_env_reset(a, 3, x, goal), DCRL_USAGE, "3 of 1");
    dcrl_env_close(a);
    assert_told(dcrl_env_open(&a, "pointmaze-medum-v0", 0), DCRL_USAGE, "pointmaze-medium");
    assert_null(a);
    dcrl_env_close(NULL);
}

// A run that evaluates on the way leaves its scores in the folder.
static void test_evaluates(void **state) {
    (void)state;
    dcrl_dataset *data = make_data();
    dcrl_run *run = make_run("2");
    assert_int_equal(dcrl_run_set(run, "env", "pointmaze-medium-v0"), DCRL_OK);
    assert_int_equal(dcrl_run_set(run, "eval_every", "2"), DCRL_OK);
    assert_int_equal(dcrl_run_set(run, "eval_episodes", "1"), DCRL_OK);
    dcrl_status status = dcrl_run_start(run, data, inside("watched"));
    if (status == DCRL_OK) status = dcrl_run_train(run, NULL, NULL);
    dcrl_run_free(run);
    dcrl_dataset_close(data);
    if (status == DCRL_UNSUPPORTED || status == DCRL_IO) skip(); // a build without MuJoCo
    assert_int_equal(status, DCRL_OK);
    assert_int_equal(access(inside("watched/eval.csv"), R_OK), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data_from_memory),
        cmocka_unit_test(test_bad_data),
        cmocka_unit_test(test_train_stop_resume),
        cmocka_unit_test(test_bad_runs),
        cmocka_unit_test(test_policy),
        cmocka_unit_test(test_policy_file),
        cmocka_unit_test(test_bad_policies),
        cmocka_unit_test(test_env),
        cmocka_unit_test(test_evaluates),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
