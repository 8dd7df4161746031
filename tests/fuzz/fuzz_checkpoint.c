// Fuzz target: any bytes as a checkpoint: opened as a file by the actor, in its run folder by the C API, or exported as
// C or ONNX; which of these, its size says. Most of what the fuzzer makes gets a right hash again, so that it reaches what is behind that.
#include "files.h"

#include "base/file.h"
#include "cli.h"
#include "rollout/actor.h"
#include "rollout/export.h"

#include <dcrl/dcrl.h>
#include <math.h>

size_t LLVMFuzzerMutate(uint8_t *bytes, size_t n, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n, size_t max, unsigned seed);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECKPOINT "run/step-0000000002.safetensors"
static char *fresh;
static size_t fresh_size;

static const char key[] = "\"hash\":\"";

// The error of the check names the hash that the file should have; put it there.
static void repair_hash(uint8_t *bytes, size_t n) {
    dc_st_file file;
    if (dc_st_parse(&file, "fuzz", bytes, n) != DC_OK) return;
    const char *is =
        dc_checkpoint_check(&file, "fuzz") == DC_OK ? NULL : strstr(dc_error(), "(hash ");
    for (size_t at = 8; is && at + sizeof key + 16 < n; at++)
        if (!memcmp(bytes + at, key, sizeof key - 1)) {
            memcpy(bytes + at + sizeof key - 1, is + 6, 16);
            break;
        }
    dc_st_close(&file);
}

// The length of the header, which ends with the brace before the tensors.
static void repair_length(uint8_t *bytes, size_t n) {
    int depth = 0;
    bool quoted = false;
    for (size_t at = 8; at < n; at++) {
        if (bytes[at] == '"' && bytes[at - 1] != '\\') quoted = !quoted;
        if (!quoted) depth += bytes[at] == '{' ? 1 : bytes[at] == '}' ? -1 : 0;
        if (depth || at == 8) continue;
        while (at + 1 < n && bytes[at + 1] == ' ')
            at++;
        uint64_t length = at + 1 - 8;
        memcpy(bytes, &length, 8);
        return;
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n, size_t max, unsigned seed) {
    if (seed % 64 == 0 && fresh_size && fresh_size <= max) {
        memcpy(bytes, fresh, fresh_size);
        return fresh_size;
    }
    n = LLVMFuzzerMutate(bytes, n, max);
    if (n < 16 || seed % 8 == 0) return n;
    if (seed & 1) repair_length(bytes, n);
    repair_hash(bytes, n);
    return n;
}

// An actor acts with finite numbers or says why not.
static void act(const char *path) {
    dc_actor actor = {0};
    dc_actor_options options = {.rows = 2, .value = true};
    if (dc_actor_open(&actor, path, &options, NULL) == DC_OK && actor.in < 1000) {
        float *rows = calloc(2 * (size_t)actor.in + 1, sizeof *rows);
        float *actions = calloc(2 * (size_t)actor.act + 1, sizeof *actions), steps[2];
        DC_CHECK(rows && actions);
        if (dc_actor_act(&actor, 2, rows, (uint64_t[]){1, 2}, actions) == DC_OK) {
            for (int i = 0; i < 2 * actor.act; i++)
                DC_CHECK(isfinite(actions[i]) && fabsf(actions[i]) <= 1);
            (void)dc_actor_steps(&actor, 2, rows, actions, steps);
        }
        free(actions);
        free(rows);
    }
    dc_actor_fini(&actor);
}

static bool act_by_api(const char *path) {
    dcrl_policy *policy;
    if (dcrl_policy_open(&policy, path, 1) != DCRL_OK) return false;
    dcrl_sizes s = dcrl_policy_sizes(policy);
    float *in = calloc((size_t)s.obs + (size_t)s.goal + (size_t)s.act + 1, sizeof *in);
    DC_CHECK(in && s.obs >= 0 && s.goal >= 0 && s.act >= 0);
    float *out = in + s.obs + s.goal;
    dcrl_status status = dcrl_policy_act(policy, 1, in, in + s.obs, out);
    for (int i = 0; i < s.act; i++)
        DC_CHECK(status == DCRL_OK ? isfinite(out[i]) : out[i] == 0);
    free(in);
    dcrl_policy_close(policy);
    return true;
}

static bool export_it(const char *path, bool c) {
    dc_actor actor = {0};
    dc_actor_options options = {.rows = 1};
    dc_status status = dc_actor_open(&actor, path, &options, NULL);
    if (status == DC_OK)
        status = c ? dc_export_c(&actor, files_path("p.c"))
                   : dc_export_onnx(&actor, files_path("p.onnx"));
    dc_actor_fini(&actor);
    return status == DC_OK;
}

// A run of two steps by this build: its config.json, and a checkpoint that belongs to it, which seeds of other builds
// may not.
static void begin(void) {
    static char gen[][256] = {"pointmaze-medium-navigate", "--episodes=10", "--rows=4", "-o", ""};
    static char train[][256] = {"--env=pointmaze-medium-navigate",
                                "--data",
                                "",
                                "--agent=bc",
                                "--hidden=2",
                                "--batch=2",
                                "--steps=2",
                                "--threads=1",
                                "--out",
                                ""};
    char *words[10];
    files_begin();
    snprintf(gen[4], sizeof gen[4], "%s", files_path("maze.npz"));
    snprintf(train[2], sizeof train[2], "%s", gen[4]);
    snprintf(train[9], sizeof train[9], "%s", files_path("run"));
    for (int i = 0; i < 5; i++)
        words[i] = gen[i];
    DC_CHECK(cmd_gen(5, words) == DC_OK);
    for (int i = 0; i < 10; i++)
        words[i] = train[i];
    DC_CHECK(cmd_train(10, words) == DC_OK);
    DC_CHECK(dc_file_read(files_path(CHECKPOINT), 1 << 20, &fresh, &fresh_size) == DC_OK);
    act(files_path(CHECKPOINT));
    DC_CHECK(act_by_api(files_path("run")));
    DC_CHECK(export_it(files_path(CHECKPOINT), true) && export_it(files_path(CHECKPOINT), false));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!files_root[0]) begin();
    files_put(CHECKPOINT, data, size);
    switch (size % 4) {
    case 0:
        (void)act_by_api(files_path("run"));
        break;
    case 1:
        (void)export_it(files_path(CHECKPOINT), size % 8 < 4);
        break;
    default:
        act(files_path(CHECKPOINT));
    }
    return 0;
}
