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

static dcrl_run *make_run_of(const char *agent, const char *steps) {
    static const char *const options[][2] = {
        {"batch", "16"}, {"hidden", "16,16"}, {"threads", "1"}, {"log_every", "1"}};
    dcrl_run *run;
    assert_int_equal(dcrl_run_new(&run, NULL, agent), DCRL_OK);
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        assert_int_equal(dcrl_run_set(run, options[i][0], options[i][1]), DCRL_OK);
    assert_int_equal(dcrl_run_set(run, "steps", steps), DCRL_OK);
    return run;
}

static dcrl_run *make_run(const char *steps) {
    dcrl_run *run = make_run_of("dcrl", steps);
    assert_int_equal(dcrl_run_set(run, "n", "4"), DCRL_OK);
    return run;
}

static void assert_told(dcrl_status got, dcrl_status want, const char *word) {
    assert_int_equal(got, want);
    if (!strstr(dcrl_message(), word)) fail_msg("'%s' lacks '%s'", dcrl_message(), word);
}

// The headers' version is the library's, and a call that succeeds forgets the message of one that failed.
static void test_version_and_message(void **state) {
    (void)state;
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d ", DCRL_VERSION_MAJOR, DCRL_VERSION_MINOR,
             DCRL_VERSION_PATCH);
    if (!strstr(dcrl_version(), version)) fail_msg("'%s' lacks '%s'", dcrl_version(), version);
    dcrl_dataset *data;
    assert_told(dcrl_dataset_open(&data, NULL), DCRL_USAGE, "dcrl_dataset_open: path is NULL");
    data = make_data();
    assert_string_equal(dcrl_message(), "");
    dcrl_dataset_close(data);
}

static void test_data_from_memory(void **state) {
    (void)state;
    dcrl_dataset *data = make_data();
    assert_int_equal(dcrl_dataset_rows(data), ROWS);
    assert_int_equal(dcrl_dataset_trajectories(data), ROWS / LENGTH);
    dcrl_dataset_close(data);
}

// Columns are looked at where they lie; borrowed observations are the caller's own.
static void test_columns(void **state) {
    (void)state;
    walks w = make_walks();
    dcrl_dataset *made = make_data(), *borrowed, *none;
    dcrl_column column;
    assert_int_equal(dcrl_dataset_borrow(&borrowed, ROWS, OBS, ACT, w.obs, w.act, w.ends), DCRL_OK);
    assert_int_equal(dcrl_dataset_columns(borrowed), 2);
    assert_int_equal(dcrl_dataset_column(borrowed, 0, &column), DCRL_OK);
    assert_string_equal(column.name, "obs");
    assert_ptr_equal(column.values, w.obs);
    assert_int_equal(column.width, OBS);
    assert_null(column.bytes);
    assert_int_equal(dcrl_dataset_column(made, 0, &column), DCRL_OK);
    assert_ptr_not_equal(column.values, w.obs);
    assert_memory_equal(column.values, w.obs, sizeof w.obs);
    assert_int_equal(dcrl_dataset_column(made, 1, &column), DCRL_OK);
    assert_string_equal(column.name, "act");
    const int64_t *starts = dcrl_dataset_starts(made);
    for (int t = 0; t <= ROWS / LENGTH; t++)
        assert_int_equal(starts[t], t * LENGTH);
    assert_int_equal(dcrl_dataset_choices(made), 0);
    assert_told(dcrl_dataset_column(made, 2, &column), DCRL_USAGE, "(2 of 2)");
    assert_told(dcrl_dataset_column(made, -1, &column), DCRL_USAGE, "(-1 of 2)");
    assert_told(dcrl_dataset_column(made, 0, NULL), DCRL_USAGE, "column is NULL");
    assert_told(dcrl_dataset_borrow(&none, ROWS, OBS, 0, w.obs, w.act, w.ends), DCRL_USAGE,
                "actions 0");
    assert_null(dcrl_dataset_starts(NULL));
    assert_int_equal(dcrl_dataset_columns(NULL), 0);
    assert_null(none);
    dcrl_dataset_close(borrowed);
    dcrl_dataset_close(made);
}

// The same bytes are trained on, and found again after a stop, whoever owns them.
static void test_borrowed_data_trains(void **state) {
    (void)state;
    walks w = make_walks();
    dcrl_dataset *data;
    dcrl_run *run = make_run("12");
    assert_int_equal(dcrl_dataset_borrow(&data, ROWS, OBS, ACT, w.obs, w.act, w.ends), DCRL_OK);
    assert_int_equal(dcrl_run_start(run, data, inside("borrowed")), DCRL_OK);
    assert_int_equal(dcrl_run_train(run, NULL, NULL), DCRL_OK);
    dcrl_run_free(run);
    dcrl_dataset_close(data);
    char command[256];
    snprintf(command, sizeof command,
             "cd %s && cmp borrowed/step-*12.safetensors whole/step-*12.safetensors", folder);
    assert_int_equal(system(command), 0);
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

typedef struct rows_seen {
    int rows;
    int64_t last, stop_at;
    double loss, scores;
} rows_seen;

static int see_row(void *ctx, const dcrl_row *row) {
    rows_seen *seen = ctx;
    assert_int_equal(row->step, ++seen->last);
    assert_true(row->count > 1 && row->seconds >= 0 && row->rate > 0);
    assert_non_null(strstr(row->names[0], "loss"));
    seen->loss = row->values[0];
    seen->rows++;
    return row->step == seen->stop_at;
}

// Every row of train.csv is told as it is written, and may stop the run at its step.
static void test_rows(void **state) {
    (void)state;
    dcrl_dataset *data = make_data();
    dcrl_run *run = make_run("12");
    rows_seen seen = {.stop_at = 5};
    assert_int_equal(dcrl_run_on_row(run, see_row, &seen), DCRL_OK);
    assert_int_equal(dcrl_run_start(run, data, inside("rows")), DCRL_OK);
    assert_told(dcrl_run_train(run, NULL, NULL), DCRL_INTERRUPTED, "step 5");
    assert_int_equal(seen.rows, 5);
    assert_int_equal(dcrl_run_train(run, NULL, NULL), DCRL_OK);
    assert_int_equal(seen.rows, 12);
    assert_true(seen.loss > 0);
    assert_told(dcrl_run_on_row(NULL, see_row, &seen), DCRL_USAGE, "run is NULL");
    dcrl_run_free(run);
    dcrl_dataset_close(data);
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
    // What is finite but overflows within the networks is an error, and no action is left to take.
    for (int i = 0; i < OBS; i++)
        obs[7 * OBS + i] = i % 2 ? 3e38f : -3e38f;
    assert_told(dcrl_policy_act(policy, MANY, obs, goals, actions), DCRL_NOT_FINITE, "an action");
    for (int i = 0; i < MANY * ACT; i++)
        assert_true(actions[i] == 0);
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

// Distances of given actions and of the policy's own; an agent without a value has none.
static void test_distance(void **state) {
    (void)state;
    enum { MANY = 300 };
    dcrl_policy *policy;
    float obs[MANY * OBS], goals[MANY * OBS], actions[MANY * ACT], own[MANY], given[MANY], alone;
    for (int i = 0; i < MANY * OBS; i++) {
        obs[i] = 0.01f * (float)i;
        goals[i] = 1 - obs[i];
    }
    assert_int_equal(dcrl_policy_open(&policy, inside("small"), 1), DCRL_OK);
    assert_int_equal(dcrl_policy_act(policy, MANY, obs, goals, actions), DCRL_OK);
    assert_int_equal(dcrl_policy_distance(policy, MANY, obs, goals, NULL, own), DCRL_OK);
    assert_int_equal(dcrl_policy_distance(policy, MANY, obs, goals, actions, given), DCRL_OK);
    assert_memory_equal(own, given, sizeof own);
    const float *row = obs + 270 * OBS, *goal = goals + 270 * OBS;
    assert_int_equal(dcrl_policy_distance(policy, 1, row, goal, NULL, &alone), DCRL_OK);
    assert_true(alone > 0 && fabsf(alone - own[270]) < 1e-4f * alone);
    for (int i = 0; i < MANY * ACT; i++)
        actions[i] = -actions[i];
    assert_int_equal(dcrl_policy_distance(policy, MANY, obs, goals, actions, given), DCRL_OK);
    assert_memory_not_equal(own, given, sizeof own);
    actions[3 * ACT] = NAN;
    assert_told(dcrl_policy_distance(policy, MANY, obs, goals, actions, given), DCRL_BAD_INPUT,
                "action 3");
    assert_true(isnan(given[0]) && isnan(given[MANY - 1]));
    assert_told(dcrl_policy_distance(policy, -1, obs, goals, NULL, own), DCRL_USAGE, "count");
    assert_told(dcrl_policy_distance(policy, 1, obs, goals, NULL, NULL), DCRL_USAGE, "steps");
    assert_told(dcrl_policy_distance(NULL, 1, obs, goals, NULL, own), DCRL_USAGE, "policy");
    dcrl_policy_close(policy);
}

static void test_no_distance(void **state) {
    (void)state;
    dcrl_dataset *data = make_data();
    dcrl_run *run = make_run_of("bc", "2");
    dcrl_policy *policy;
    float row[OBS] = {0}, steps = 0;
    assert_int_equal(dcrl_run_start(run, data, inside("bc")), DCRL_OK);
    assert_int_equal(dcrl_run_train(run, NULL, NULL), DCRL_OK);
    dcrl_run_free(run);
    dcrl_dataset_close(data);
    assert_int_equal(dcrl_policy_open(&policy, inside("bc"), 1), DCRL_OK);
    assert_told(dcrl_policy_distance(policy, 1, row, row, NULL, &steps), DCRL_UNSUPPORTED, "bc");
    assert_true(isnan(steps));
    assert_int_equal(dcrl_policy_distance(policy, 0, NULL, NULL, NULL, NULL), DCRL_UNSUPPORTED);
    dcrl_policy_close(policy);
}

// A run's older checkpoints can be opened, too.
static void test_policy_step(void **state) {
    (void)state;
    dcrl_policy *policy;
    char folder_of[64], file[96];
    snprintf(folder_of, sizeof folder_of, "%s", inside("parts"));
    snprintf(file, sizeof file, "%s/step-0000000002.safetensors", folder_of);
    assert_int_equal(dcrl_policy_open_step(&policy, folder_of, 2, 1), DCRL_OK);
    assert_int_equal(dcrl_policy_step(policy), 2);
    dcrl_policy_close(policy);
    assert_int_equal(dcrl_policy_open_step(&policy, folder_of, -1, 1), DCRL_OK);
    assert_int_equal(dcrl_policy_step(policy), 12);
    dcrl_policy_close(policy);
    assert_int_equal(dcrl_policy_open_step(&policy, file, 2, 1), DCRL_OK);
    dcrl_policy_close(policy);
    assert_told(dcrl_policy_open_step(&policy, file, 3, 1), DCRL_USAGE, "not of 3");
    assert_told(dcrl_policy_open_step(&policy, folder_of, 3, 1), DCRL_USAGE, "step 3");
    assert_told(dcrl_policy_open_step(&policy, folder_of, -2, 1), DCRL_USAGE, "-2");
    assert_null(policy);
    assert_int_equal(dcrl_policy_step(NULL), -1);
}

static void test_bad_policies(void **state) {
    (void)state;
    dcrl_policy *policy;
    assert_told(dcrl_policy_open(&policy, "/nowhere", 1), DCRL_IO, "/nowhere");
    assert_told(dcrl_policy_open(&policy, folder, 1), DCRL_BAD_INPUT, "is not a run folder");
    assert_told(dcrl_policy_open(&policy, inside("whole/train.csv"), 1), DCRL_BAD_INPUT, "csv");
    assert_told(dcrl_policy_open(NULL, "x", 1), DCRL_USAGE, "policy is NULL");
    assert_told(dcrl_policy_open(&policy, "x", -1), DCRL_USAGE, "threads (-1)");
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

// Facts need no simulator.
static void test_facts(void **state) {
    (void)state;
    dcrl_env_facts facts;
    assert_int_equal(dcrl_env_find("antmaze-large-navigate-oraclerep-v0", &facts), DCRL_OK);
    assert_string_equal(facts.name, "antmaze-large-oraclerep-v0");
    assert_true(facts.sizes.obs == 29 && facts.sizes.goal == 2 && facts.sizes.act == 8);
    assert_true(facts.tasks == 5 && facts.horizon == 1000);
    assert_int_equal(dcrl_env_find("cube-single-play-singletask-task2-v0", &facts), DCRL_OK);
    assert_int_equal(facts.tasks, 1);
    assert_told(dcrl_env_find("antmaze-larg", &facts), DCRL_USAGE, "antmaze-large");
    int count = 0;
    while (dcrl_env_list(count, &facts) == DCRL_OK)
        count++;
    assert_true(count > 35);
    assert_int_equal(dcrl_env_list(count - 1, &facts), DCRL_OK);
    assert_string_equal(facts.name, "visual-puzzle-4x6-v0");
    assert_true(facts.sizes.obs == 64 * 64 * 3 && facts.sizes.goal == facts.sizes.obs);
    assert_told(dcrl_env_list(-1, &facts), DCRL_USAGE, "(-1)");
    assert_told(dcrl_env_list(0, NULL), DCRL_USAGE, "facts is NULL");
}

static dcrl_status open_vec(dcrl_vec **vec, int count, dcrl_autoreset autoreset, int threads) {
    return dcrl_vec_open(vec, "pointmaze-medium-v0", count, 3, autoreset, threads);
}

// Every copy plays the episodes of an environment by itself with its seed, on any number of threads.
static void test_vec(void **state) {
    (void)state;
    enum { COPIES = 5, STEPS = 40 };
    dcrl_vec *vec, *alone;
    dcrl_status status = open_vec(&vec, COPIES, DCRL_RESET_NEXT_STEP, 3);
    if (status == DCRL_UNSUPPORTED || status == DCRL_IO) skip(); // a build without MuJoCo
    assert_int_equal(status, DCRL_OK);
    assert_int_equal(open_vec(&alone, COPIES, DCRL_RESET_NEXT_STEP, 1), DCRL_OK);
    double obs[2][COPIES * 2], goals[2][COPIES * 2], rewards[COPIES], actions[COPIES * 2];
    dcrl_vec_step_out out[2] = {{.observations = obs[0], .rewards = rewards},
                                {.observations = obs[1]}};
    int tasks[COPIES] = {1, 2, 3, 4, 0};
    assert_int_equal(dcrl_vec_count(vec), COPIES);
    assert_told(dcrl_vec_step(vec, obs[0], 0, out), DCRL_USAGE, "copy 0 has no episode");
    assert_int_equal(dcrl_vec_set_tasks(vec, tasks), DCRL_OK);
    assert_int_equal(dcrl_vec_set_tasks(alone, tasks), DCRL_OK);
    assert_int_equal(dcrl_vec_reset(vec, NULL, obs[0], goals[0]), DCRL_OK);
    assert_int_equal(dcrl_vec_reset(alone, NULL, obs[1], goals[1]), DCRL_OK);
    assert_memory_equal(obs[0], obs[1], sizeof obs[0]);
    assert_int_equal(dcrl_env_task(dcrl_vec_env(vec, 2)), 3);
    assert_in_range(dcrl_env_task(dcrl_vec_env(vec, 4)), 1, 5);
    dcrl_env *one;
    float x[2], goal[2], action[2];
    int success;
    assert_int_equal(dcrl_env_open(&one, "pointmaze-medium-v0", 3 + 1), DCRL_OK);
    assert_int_equal(dcrl_env_reset(one, 2, x, goal), DCRL_OK);
    for (int t = 0; t < STEPS; t++) {
        for (int k = 0; k < COPIES * 2; k++)
            actions[k] = (double)(float)sin(t + 0.7 * k);
        for (int k = 0; k < 2; k++)
            action[k] = (float)actions[2 + k];
        assert_int_equal(dcrl_vec_step(vec, actions, 1, &out[0]), DCRL_OK);
        assert_int_equal(dcrl_vec_step(alone, actions, 1, &out[1]), DCRL_OK);
        assert_memory_equal(obs[0], obs[1], sizeof obs[0]);
        assert_int_equal(dcrl_env_step(one, action, x, &success), DCRL_OK);
        assert_true(x[0] == (float)obs[0][2] && x[1] == (float)obs[0][3]);
        assert_true(rewards[1] == success);
    }
    assert_int_equal(dcrl_vec_goals(vec, goals[1]), DCRL_OK);
    assert_memory_equal(goals[0], goals[1], sizeof goals[0]);
    actions[3] = NAN;
    assert_told(dcrl_vec_step(vec, actions, 1, &out[0]), DCRL_BAD_INPUT, "action 1");
    tasks[1] = 6;
    assert_told(dcrl_vec_set_tasks(vec, tasks), DCRL_USAGE, "6 of 5, copy 1");
    assert_null(dcrl_vec_env(vec, COPIES));
    assert_null(dcrl_vec_env(vec, -1));
    dcrl_env_close(one);
    dcrl_env_close(dcrl_vec_env(vec, 1)); // which is not ours
    assert_int_equal(dcrl_vec_reset(vec, NULL, obs[0], goals[0]), DCRL_OK);
    dcrl_vec_close(vec);
    dcrl_vec_close(alone);
    assert_told(open_vec(&vec, 0, DCRL_RESET_NEVER, 1), DCRL_USAGE, "environments (0)");
    assert_told(open_vec(&vec, 1, (dcrl_autoreset)7, 1), DCRL_USAGE, "autoreset (7)");
    assert_told(dcrl_vec_open(&vec, NULL, 1, 0, DCRL_RESET_NEVER, 1), DCRL_USAGE, "name is NULL");
    assert_null(vec);
    dcrl_vec_close(NULL);
}

// What a time limit leads to: a step later a new episode, the same step with the last observation apart, or nothing.
static void test_autoreset(void **state) {
    (void)state;
    double rest[2] = {0}, first[2], goal[2], obs[2], last[2], reward;
    unsigned char success, truncated, began;
    dcrl_vec_step_out out = {obs, &reward, &success, &truncated, &began, last};
    for (int mode = DCRL_RESET_NEVER; mode <= DCRL_RESET_SAME_STEP; mode++) {
        dcrl_vec *vec;
        int task = 1;
        dcrl_status status = open_vec(&vec, 1, (dcrl_autoreset)mode, 1);
        if (status == DCRL_UNSUPPORTED || status == DCRL_IO) skip(); // a build without MuJoCo
        assert_int_equal(dcrl_vec_set_tasks(vec, &task), DCRL_OK);
        assert_int_equal(dcrl_vec_reset(vec, NULL, first, goal), DCRL_OK);
        for (int t = 1; t <= 1000; t++) {
            assert_int_equal(dcrl_vec_step(vec, rest, 0, &out), DCRL_OK);
            assert_int_equal(truncated, t == 1000);
            assert_int_equal(began, t == 1000 && mode == DCRL_RESET_SAME_STEP);
        }
        const double *there = mode == DCRL_RESET_SAME_STEP ? last : obs;
        assert_true(fabs(there[0] - first[0]) < 1e-3); // it rested
        assert_int_equal(dcrl_vec_step(vec, rest, 0, &out), DCRL_OK);
        assert_int_equal(began, mode == DCRL_RESET_NEXT_STEP);
        assert_int_equal(truncated, mode == DCRL_RESET_NEVER);
        assert_true((fabs(obs[0] - first[0]) < 1e-3) == (mode == DCRL_RESET_NEVER));
        dcrl_vec_close(vec);
    }
}

// State, columns of the goal, seeds, given draws, a picture.
static void test_env_more(void **state) {
    (void)state;
    dcrl_env *env;
    float x[2], y[2], goal[2], low[2], high[2];
    double qpos[2], qvel[2], draws[4 + 2 + 2 + 10 + 2 + 2] = {0};
    int columns[2];
    dcrl_status status = dcrl_env_open(&env, "pointmaze-medium-v0", 3);
    if (status == DCRL_UNSUPPORTED || status == DCRL_IO) skip(); // a build without MuJoCo
    assert_int_equal(dcrl_env_task(env), 0);
    assert_int_equal(dcrl_env_reset(env, 0, x, goal), DCRL_OK);
    assert_in_range(dcrl_env_task(env), 1, 5);
    assert_int_equal(dcrl_env_goal_columns(env, columns), 2);
    assert_true(columns[0] == 0 && columns[1] == 1);
    assert_int_equal(dcrl_env_choices(env), 0);
    assert_int_equal(dcrl_env_action_range(env, low, high), DCRL_OK);
    assert_true(low[1] == -1 && high[1] == 1);
    assert_int_equal(dcrl_env_state_sizes(env).qpos, 2);
    assert_int_equal(dcrl_env_state(env, qpos, qvel, NULL), DCRL_OK);
    assert_true((float)qpos[0] == x[0] && (float)qpos[1] == x[1]);
    assert_int_equal(dcrl_env_seed(env, 3), DCRL_OK);
    assert_int_equal(dcrl_env_reset(env, 0, y, goal), DCRL_OK);
    assert_memory_equal(x, y, sizeof x);
    draws[0] = 0.25; // start x, y, goal x, y, then what is overwritten
    assert_int_equal(dcrl_env_give_draws(env, sizeof draws / sizeof *draws, draws), DCRL_OK);
    assert_int_equal(dcrl_env_reset(env, 1, x, goal), DCRL_OK);
    assert_true(x[0] == 0.25f && x[1] == 0 && goal[0] == 20 && goal[1] == 20);
    assert_int_equal(dcrl_env_give_draws(env, 3, draws), DCRL_OK);
    assert_told(dcrl_env_reset(env, 1, x, goal), DCRL_BAD_INPUT, "was given 3");
    assert_int_equal(dcrl_env_reset(env, 1, x, goal), DCRL_OK);
    assert_told(dcrl_env_give_draws(env, 0, draws), DCRL_USAGE, "draws (0)");
    unsigned char rgb[24 * 16 * 3] = {0};
    status = dcrl_env_render(env, 24, 16, rgb);
    if (status != DCRL_UNSUPPORTED) { // where there is OpenGL
        assert_int_equal(status, DCRL_OK);
        int bright = 0;
        for (size_t k = 0; k < sizeof rgb; k++)
            bright += rgb[k] > 0;
        assert_true(bright > 100);
    }
    assert_told(dcrl_env_render(env, 0, 16, rgb), DCRL_USAGE, "0 x 16");
    assert_told(dcrl_env_render(env, 24, 16, NULL), DCRL_USAGE, "rgb is NULL");
    dcrl_env_close(env);
    assert_int_equal(dcrl_env_goal_columns(NULL, columns), 0);
    assert_int_equal(dcrl_env_state_sizes(NULL).qvel, 0);
}

static int stop_at_once(void *ctx, int64_t done, int64_t all) {
    *(int64_t *)ctx = all;
    return done == 0;
}

// A policy is evaluated as the program would, and the score of a run on its way is told.
static int see_score(void *ctx, int64_t step, const dcrl_score *score) {
    rows_seen *seen = ctx;
    seen->last = step;
    seen->scores += score->episodes;
    return 0;
}

static void check_evaluation(const char *run) {
    dcrl_policy *policy;
    dcrl_score score = {0}, again = {0};
    int64_t all = 0;
    assert_int_equal(dcrl_policy_open(&policy, run, 0), DCRL_OK);
    assert_int_equal(dcrl_policy_evaluate(policy, NULL, 1, 0, NULL, NULL, &score), DCRL_OK);
    assert_int_equal(score.episodes, 1);
    assert_int_equal(dcrl_policy_evaluate(policy, "pointmaze-medium-v0", 1, 0, NULL, NULL, &again),
                     DCRL_OK);
    assert_memory_equal(&score, &again, sizeof score);
    assert_int_equal(dcrl_policy_evaluate(policy, NULL, 1, 0, stop_at_once, &all, &score),
                     DCRL_INTERRUPTED);
    assert_int_equal(all, 5 * 1000);
    assert_told(dcrl_policy_evaluate(policy, NULL, 0, 0, NULL, NULL, &score), DCRL_USAGE, "(0)");
    assert_told(dcrl_policy_evaluate(policy, "antmaze-medium-v0", 1, 0, NULL, NULL, &score),
                DCRL_BAD_INPUT, "antmaze-medium");
    assert_told(dcrl_policy_evaluate(policy, NULL, 1, 0, NULL, NULL, NULL), DCRL_USAGE, "score");
    float low[2], high[2];
    assert_int_equal(dcrl_policy_action_range(policy, low, high), DCRL_OK);
    assert_true(low[0] == -1 && high[1] == 1);
    assert_int_equal(dcrl_policy_choices(policy), 0);
    dcrl_policy_close(policy);
    assert_int_equal(dcrl_policy_open(&policy, inside("small"), 1), DCRL_OK);
    assert_told(dcrl_policy_evaluate(policy, NULL, 1, 0, NULL, NULL, &score), DCRL_USAGE,
                "trained for none");
    dcrl_policy_close(policy);
}

// A run that evaluates on the way leaves its scores in the folder.
static void test_evaluates(void **state) {
    (void)state;
    dcrl_dataset *data = make_data();
    dcrl_run *run = make_run("2");
    assert_int_equal(dcrl_run_set(run, "env", "pointmaze-medium-v0"), DCRL_OK);
    assert_int_equal(dcrl_run_set(run, "eval_every", "2"), DCRL_OK);
    assert_int_equal(dcrl_run_set(run, "eval_episodes", "1"), DCRL_OK);
    rows_seen seen = {0};
    assert_int_equal(dcrl_run_on_score(run, see_score, &seen), DCRL_OK);
    dcrl_status status = dcrl_run_start(run, data, inside("watched"));
    if (status == DCRL_OK) status = dcrl_run_train(run, NULL, NULL);
    dcrl_run_free(run);
    dcrl_dataset_close(data);
    if (status == DCRL_UNSUPPORTED || status == DCRL_IO) skip(); // a build without MuJoCo
    assert_int_equal(status, DCRL_OK);
    assert_int_equal(access(inside("watched/eval.csv"), R_OK), 0);
    assert_true(seen.last == 2 && seen.scores == 1);
    check_evaluation(inside("watched"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_version_and_message),
        cmocka_unit_test(test_data_from_memory),
        cmocka_unit_test(test_columns),
        cmocka_unit_test(test_bad_data),
        cmocka_unit_test(test_train_stop_resume),
        cmocka_unit_test(test_borrowed_data_trains),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_bad_runs),
        cmocka_unit_test(test_policy),
        cmocka_unit_test(test_policy_file),
        cmocka_unit_test(test_distance),
        cmocka_unit_test(test_no_distance),
        cmocka_unit_test(test_policy_step),
        cmocka_unit_test(test_bad_policies),
        cmocka_unit_test(test_env),
        cmocka_unit_test(test_env_more),
        cmocka_unit_test(test_facts),
        cmocka_unit_test(test_vec),
        cmocka_unit_test(test_autoreset),
        cmocka_unit_test(test_evaluates),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
