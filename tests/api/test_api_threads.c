// The public API where programs are hard on it: threads with small stacks, handles in several threads at once, a
// handle that two threads take turns with, and fork. ThreadSanitizer watches it, too.
#include "dcrl/dcrl.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { ROWS = 600, LENGTH = 30, OBS = 2, ACT = 2, ASKED = 300, THREADS = 4 };
#ifdef __SANITIZE_ADDRESS__ // whose frames are larger
enum { SMALL_STACK = 2 << 20 };
#else
enum { SMALL_STACK = 256 << 10 }; // what docs/api.md asks for
#endif

#ifdef __SANITIZE_THREAD__ // which does not allow a child to start threads
enum { CHILD_THREADS = 1 };
#else
enum { CHILD_THREADS = 3 };
#endif

static char folder[] = "/tmp/dcrl_api_threads_XXXXXX";
static float asked[ASKED * OBS], wanted[ASKED * OBS], expected[ASKED * ACT];

static void write_path(char path[64], const char *name) {
    snprintf(path, 64, "%s/%s", folder, name);
}

static dcrl_status make_data(dcrl_dataset **data) {
    float obs[ROWS * OBS], act[ROWS * ACT];
    unsigned char ends[ROWS];
    for (int r = 0; r < ROWS; r++) {
        obs[r * OBS] = 0.1f * (float)(r % LENGTH);
        obs[r * OBS + 1] = (float)(r / LENGTH);
        act[r * ACT] = 0.5f;
        act[r * ACT + 1] = (float)(r % 3) - 1;
        ends[r] = r % LENGTH == LENGTH - 1;
    }
    return dcrl_dataset_make(data, ROWS, OBS, ACT, obs, act, ends);
}

// A run on two threads into folder/name.
static dcrl_status train(const char *name) {
    static const char *const options[][2] = {{"batch", "300"}, {"hidden", "16,16"},
                                             {"threads", "2"}, {"steps", "20"},
                                             {"n", "4"},       {"log_every", "10"}};
    char path[64];
    dcrl_dataset *data = NULL;
    dcrl_run *run = NULL;
    write_path(path, name);
    dcrl_status status = make_data(&data);
    if (!status) status = dcrl_run_new(&run, NULL, "dcrl");
    for (size_t i = 0; !status && i < sizeof options / sizeof options[0]; i++)
        status = dcrl_run_set(run, options[i][0], options[i][1]);
    if (!status) status = dcrl_run_start(run, data, path);
    if (!status) status = dcrl_run_train(run, NULL, NULL);
    dcrl_run_free(run);
    dcrl_dataset_close(data);
    return status;
}

static int prepare(void **state) {
    (void)state;
    dcrl_policy *policy;
    char path[64];
    if (!mkdtemp(folder) || train("run")) return -1;
    for (int i = 0; i < ASKED * OBS; i++) {
        asked[i] = 0.01f * (float)(i % 97);
        wanted[i] = 0.02f * (float)(i % 89);
    }
    write_path(path, "run");
    if (dcrl_policy_open(&policy, path, 1) ||
        dcrl_policy_act(policy, ASKED, asked, wanted, expected))
        return -1;
    dcrl_policy_close(policy);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

static int act_as_expected(dcrl_policy *policy) {
    static _Thread_local float actions[ASKED * ACT];
    if (dcrl_policy_act(policy, ASKED, asked, wanted, actions)) return 1;
    return memcmp(actions, expected, sizeof expected) != 0;
}

// ---- threads ----

// Everything a thread may do with its own handles; 0 if all went well.
static void *use_all(void *arg) {
    const char *name = arg;
    char path[64];
    dcrl_policy *policy = NULL, *none = NULL;
    dcrl_env *env = NULL;
    write_path(path, "run");
    intptr_t bad = train(name) != DCRL_OK;
    bad += dcrl_policy_open(&policy, path, 2) || act_as_expected(policy);
    bad += dcrl_policy_open(&none, "/nowhere", 1) == DCRL_OK || !*dcrl_message();
    dcrl_policy_close(policy);
    if (dcrl_env_open(&env, "pointmaze-medium", 0) == DCRL_OK) { // a build may have no simulator
        float obs[2], goal[2], action[2] = {1, 0};
        int success;
        bad += dcrl_env_reset(env, 1, obs, goal) || dcrl_env_step(env, action, obs, &success);
    }
    dcrl_env_close(env);
    return (void *)bad;
}

static void check_threads(size_t stack, const char *prefix) {
    pthread_attr_t attributes;
    pthread_t threads[THREADS];
    char names[THREADS][32];
    pthread_attr_init(&attributes);
    if (stack) assert_int_equal(pthread_attr_setstacksize(&attributes, stack), 0);
    for (int i = 0; i < THREADS; i++) {
        snprintf(names[i], sizeof names[i], "%s-%d", prefix, i);
        assert_int_equal(pthread_create(&threads[i], &attributes, use_all, names[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *bad;
        pthread_join(threads[i], &bad);
        assert_null(bad);
    }
    pthread_attr_destroy(&attributes);
}

static void test_handles_of_their_own(void **state) {
    (void)state;
    check_threads(0, "own");
}

static void test_small_stacks(void **state) {
    (void)state;
    check_threads(SMALL_STACK, "small");
}

// One handle for all, under a lock of theirs.
typedef struct turns {
    dcrl_policy *policy;
    pthread_mutex_t lock;
} turns;

static void *take_turns(void *arg) {
    turns *t = arg;
    intptr_t bad = 0;
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&t->lock);
        bad += act_as_expected(t->policy);
        pthread_mutex_unlock(&t->lock);
    }
    return (void *)bad;
}

static void test_turns(void **state) {
    (void)state;
    turns t = {.lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t threads[THREADS];
    char path[64];
    write_path(path, "run");
    assert_int_equal(dcrl_policy_open(&t.policy, path, 3), DCRL_OK);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_turns, &t), 0);
    for (int i = 0; i < THREADS; i++) {
        void *bad;
        pthread_join(threads[i], &bad);
        assert_null(bad);
    }
    dcrl_policy_close(t.policy);
}

// ---- fork ----

static void assert_ends_well(pid_t child) {
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    if (!WIFEXITED(how)) fail_msg("the child ended by signal %d", WTERMSIG(how));
    assert_int_equal(WEXITSTATUS(how), 0);
}

// A child has its parent's handles without their threads: it may act with them and close them.
static void test_fork(void **state) {
    (void)state;
    char path[64];
    dcrl_policy *policy, *own;
    write_path(path, "run");
    assert_int_equal(dcrl_policy_open(&policy, path, 3), DCRL_OK);
    assert_int_equal(act_as_expected(policy), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(60); // else it would hang
        int bad = act_as_expected(policy);
        dcrl_policy_close(policy);
        bad += dcrl_policy_open(&own, path, CHILD_THREADS) || act_as_expected(own);
        dcrl_policy_close(own);
        _exit(bad);
    }
    assert_ends_well(child);
    assert_int_equal(act_as_expected(policy), 0);
    dcrl_policy_close(policy);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handles_of_their_own),
        cmocka_unit_test(test_small_stacks),
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_fork),
    };
    return cmocka_run_group_tests(tests, prepare, remove_folder);
}
