// Drives a trained policy from a C program: one episode of each task of the environment that the run was
// trained for, and what became of it.
//
//     dcrl gen pointmaze-medium-navigate -o maze.npz
//     dcrl train --env pointmaze-medium-navigate-oraclerep-v0 --data maze.npz --steps 100000 --out run
//     ./drive run
//
// A build without CMake:
//     cc drive.c -o drive $(pkg-config --cflags --libs dcrl) -Wl,-rpath,$(pkg-config --variable=libdir dcrl)
#include <dcrl/dcrl.h>
#include <stdio.h>
#include <stdlib.h>

static int complain(void) {
    fprintf(stderr, "drive: %s\n", dcrl_message());
    return 1;
}

// Play one episode; steps taken, or -1 after an error. A robot of your own would take the environment's
// place: fill `obs` from its sensors, send `action` to its motors.
static int play(dcrl_env *env, dcrl_policy *policy, int task, float *obs, float *goal,
                float *action, int *success) {
    int steps = 0;
    *success = 0;
    if (dcrl_env_reset(env, task, obs, goal) != DCRL_OK) return -1;
    while (!*success && steps < dcrl_env_horizon(env)) {
        if (dcrl_policy_act(policy, 1, obs, goal, action) != DCRL_OK) return -1;
        if (dcrl_env_step(env, action, obs, success) != DCRL_OK) return -1;
        steps++;
    }
    return steps;
}

static int drive(dcrl_env *env, dcrl_policy *policy) {
    dcrl_sizes sizes = dcrl_env_sizes(env), wants = dcrl_policy_sizes(policy);
    if (wants.obs != sizes.obs || wants.goal != sizes.goal || wants.act != sizes.act) {
        fprintf(stderr, "drive: the policy was trained for another environment\n");
        return 1;
    }
    float *numbers = calloc((size_t)(sizes.obs + sizes.goal + sizes.act), sizeof *numbers);
    if (!numbers) return 1;
    float *obs = numbers, *goal = obs + sizes.obs, *action = goal + sizes.goal;
    int status = 0;
    for (int task = 1; task <= dcrl_env_tasks(env) && status == 0; task++) {
        int success, steps = play(env, policy, task, obs, goal, action, &success);
        if (steps < 0)
            status = complain();
        else
            printf("task %d: %s after %d steps\n", task, success ? "there" : "lost", steps);
    }
    free(numbers);
    return status;
}

int main(int argc, char **argv) {
    dcrl_policy *policy = NULL;
    dcrl_env *env = NULL;
    if (argc != 2) return fprintf(stderr, "usage: drive RUN\n"), 2;
    int status = 1;
    if (dcrl_policy_open(&policy, argv[1], 1) != DCRL_OK ||
        dcrl_env_open(&env, dcrl_policy_env(policy), 0) != DCRL_OK)
        complain();
    else
        status = drive(env, policy);
    dcrl_env_close(env);
    dcrl_policy_close(policy);
    return status;
}
