// Checkpoint: the complete state of a run as one safetensors file, so that any framework can read
// the weights and this program can go on to the bit. Weights are named net/layer/part, their
// targets target_net/..., Adam's moments adam_m/... and adam_v/...; `sampler` holds the slots'
// words, `log` the sums of the log row in the making. The metadata carries a hash over all tensors,
// so that a flipped bit is found when the file is read, not hours later in a result.
#include "base/hash.h"
#include "train/run.h"
#include "train/safetensors.h"
#include "train/weights.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLABS = 4 };

// The slabs of a checkpoint and how their tensors' names begin. Targets exist for leading rows
// only.
static const struct {
    const char *prefix;
    size_t slab; // offset of the pointer in dc_slabs
    bool target;
} slabs[SLABS] = {
    {"", offsetof(dc_slabs, live), false},
    {"target_", offsetof(dc_slabs, ema), true},
    {"adam_m/", offsetof(dc_slabs, m), false},
    {"adam_v/", offsetof(dc_slabs, v), false},
};

static dc_real *slab_of(const dc_params *params, int s) {
    dc_real *p;
    memcpy(&p, (const char *)&params->slabs + slabs[s].slab, sizeof p);
    return p;
}

// Describe matrix `row` of slab s; false if that slab does not hold it.
static bool describe(const dc_params *params, int s, const dc_param_row *row, char *name,
                     dc_st_tensor *t) {
    if (slabs[s].target && row->offset >= params->slabs.ema_size) return false;
    dc_weight_describe(row, slab_of(params, s), slabs[s].prefix, name, t);
    return true;
}

void dc_checkpoint_find_bad(const dc_run *run, char name[DC_WEIGHT_NAME]) {
    name[0] = 0;
    for (int s = 0; s < SLABS && !*name; s++) {
        const char *bad = dc_params_find_bad(&run->agent.params, slab_of(&run->agent.params, s));
        if (bad) snprintf(name, DC_WEIGHT_NAME, "%s%s", slabs[s].prefix, bad);
    }
    for (size_t i = 0; i < sizeof run->sums / sizeof run->sums[0] && !*name; i++)
        if (!isfinite(run->sums[i])) snprintf(name, DC_WEIGHT_NAME, "log");
}

// Hash of all tensors, in the order in which they lie in the file.
static void hash_tensors(const dc_st_tensor *tensors, size_t count, char out[32]) {
    uint64_t hash = count;
    for (size_t i = 0; i < count; i++) {
        hash = dc_hash(tensors[i].name, strlen(tensors[i].name), hash);
        hash = dc_hash(tensors[i].bytes, tensors[i].size, hash);
    }
    snprintf(out, 32, "%016" PRIx64, hash);
}

static dc_status write_all(const dc_run *run, const char *path, dc_st_tensor *tensors,
                           char (*names)[DC_WEIGHT_NAME], const int64_t *words, size_t word_count) {
    const dc_params *params = &run->agent.params;
    size_t count = 0;
    double log[DC_METRICS_MAX + 3] = {(double)run->sum_count};
    memcpy(log + 1, run->sums, sizeof run->sums);
    // Eight-byte types first keep everything aligned.
    tensors[count++] =
        (dc_st_tensor){"sampler", DC_ST_I64, 1, {(int64_t)word_count}, words, word_count * 8};
    tensors[count++] = (dc_st_tensor){"log", DC_ST_F64, 1, {DC_METRICS_MAX + 3}, log, sizeof log};
    for (int s = 0; s < SLABS; s++)
        for (int i = 0; i < params->count; i++)
            if (describe(params, s, &params->rows[i], names[count], &tensors[count])) count++;
    char step[32], seed[32], hash[32], obs[32];
    hash_tensors(tensors, count, hash);
    snprintf(step, sizeof step, "%" PRId64, run->step);
    snprintf(seed, sizeof seed, "%" PRId64, run->options.seed);
    snprintf(obs, sizeof obs, "%d", dc_dataset_column(run->data, "obs")->width);
    dc_st_meta metas[] = {{"format", "dcrl checkpoint 1"},
                          {"agent", run->algo->name},
                          {"step", step},
                          {"seed", seed},
                          {"obs", obs},
                          {"hash", hash}};
    return dc_st_write(path, tensors, count, metas, sizeof metas / sizeof metas[0]);
}

dc_status dc_checkpoint_write(const dc_run *run, const char *path) {
    size_t most = (size_t)run->agent.params.count * SLABS + 2;
    int64_t *words = NULL;
    size_t word_count = 0;
    dc_st_tensor *tensors = calloc(most, sizeof *tensors);
    char(*names)[DC_WEIGHT_NAME] = calloc(most, sizeof *names);
    dc_status status = DC_NO_MEMORY;
    if (!tensors || !names)
        status = dc_fail(DC_NO_MEMORY, NULL, "no memory to write %s", path);
    else
        status = dc_sampler_save(run->agent.sampler, &words, &word_count);
    if (status == DC_OK) status = write_all(run, path, tensors, names, words, word_count);
    free(words);
    free(names);
    free(tensors);
    return status;
}

static dc_status read_weights(dc_run *run, const dc_st_file *file, const char *path) {
    const dc_params *params = &run->agent.params;
    for (int s = 0; s < SLABS; s++) {
        for (int i = 0; i < params->count; i++) {
            char name[DC_WEIGHT_NAME];
            dc_st_tensor want;
            if (!describe(params, s, &params->rows[i], name, &want)) continue;
            DC_TRY(dc_weight_copy(file, path, &want));
        }
    }
    char bad[DC_WEIGHT_NAME];
    dc_checkpoint_find_bad(run, bad);
    if (*bad) return dc_fail(DC_BAD_INPUT, NULL, "%s: tensor %s is not finite", path, bad);
    return DC_OK;
}

static dc_status read_sampler(dc_run *run, const dc_st_file *file, const char *path) {
    const dc_st_tensor *t = dc_st_find(file, "sampler");
    if (!t || t->dtype != DC_ST_I64)
        return dc_fail(DC_BAD_INPUT, NULL, "%s has no sampler state", path);
    int64_t *words = malloc(t->size + 1); // a foreign file may not be aligned
    if (!words) return dc_fail(DC_NO_MEMORY, NULL, "no memory to read %s", path);
    memcpy(words, t->bytes, t->size);
    dc_status status = dc_sampler_load(run->agent.sampler, words, t->size / 8);
    free(words);
    if (status != DC_OK) return dc_fail_prefix(status, path);
    if (dc_sampler_step(run->agent.sampler) != (uint64_t)run->step)
        return dc_fail(DC_BAD_INPUT, NULL, "%s: its sampler stands at another step", path);
    return DC_OK;
}

static dc_status read_log(dc_run *run, const dc_st_file *file, const char *path) {
    double log[DC_METRICS_MAX + 3];
    dc_st_tensor want = {"log", DC_ST_F64, 1, {DC_METRICS_MAX + 3}, log, sizeof log};
    DC_TRY(dc_weight_copy(file, path, &want));
    // Sums are taken since the last row, and the last step closes a row.
    const dc_run_options *o = &run->options;
    bool good = log[0] == (double)(run->step == o->steps ? 0 : run->step % o->log_every);
    for (size_t i = 0; i < sizeof log / sizeof log[0]; i++)
        good = good && isfinite(log[i]);
    if (!good) return dc_fail(DC_BAD_INPUT, NULL, "%s: tensor log holds impossible numbers", path);
    run->sum_count = (int64_t)log[0];
    memcpy(run->sums, log + 1, sizeof run->sums);
    return DC_OK;
}

// What the metadata says: the right format, agent and content.
static dc_status check_metas(const dc_run *run, const dc_st_file *file, const char *path) {
    const char *format = dc_st_meta_get(file, "format"), *agent = dc_st_meta_get(file, "agent");
    const char *hash = dc_st_meta_get(file, "hash");
    if (!format || strcmp(format, "dcrl checkpoint 1") != 0 || !agent || !hash)
        return dc_fail(DC_BAD_INPUT, NULL, "%s is not a dcrl checkpoint", path);
    if (strcmp(agent, run->algo->name) != 0)
        return dc_fail(DC_BAD_INPUT, NULL, "%s was written by agent %s, not %s", path, agent,
                       run->algo->name);
    char is[32];
    hash_tensors(file->tensors, file->count, is);
    if (strcmp(hash, is) != 0)
        return dc_fail(DC_BAD_INPUT, NULL, "%s is damaged (hash %s, should be %s)", path, is, hash);
    return DC_OK;
}

static dc_status read_step(dc_run *run, const dc_st_file *file, const char *path) {
    const char *step = dc_st_meta_get(file, "step");
    char *end = NULL;
    long long n = step ? strtoll(step, &end, 10) : -1;
    if (n < 0 || *end || !*step)
        return dc_fail(DC_BAD_INPUT, NULL, "%s: impossible step (%s)", path, step ? step : "none");
    if (n > run->options.steps)
        return dc_fail(DC_BAD_INPUT, NULL, "%s lies past the last step of the run (%" PRId64 ")",
                       path, run->options.steps);
    run->step = n;
    return DC_OK;
}

dc_status dc_checkpoint_read(dc_run *run, const char *path) {
    dc_st_file file;
    DC_TRY(dc_st_open(&file, path));
    dc_status status = check_metas(run, &file, path);
    if (status == DC_OK) status = read_step(run, &file, path);
    if (status == DC_OK) status = read_weights(run, &file, path);
    if (status == DC_OK) status = read_sampler(run, &file, path);
    if (status == DC_OK) status = read_log(run, &file, path);
    dc_st_close(&file);
    return status;
}
