// Many episodes at once, by numbered blocks; see env/gen.h.
#include "env/gen.h"

#include "env/family.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { BLOCKS_MAX = 128, ERROR_TEXT = 400, PICTURE_PACKED = 2500 };

// Of a row, but for pictures.
static size_t state_bytes(const dc_env_family *f) {
    return (size_t)(f->obs + f->act + f->nq + f->nv) * sizeof(float) +
           (size_t)f->extra * sizeof(int64_t) + 1;
}

size_t dc_gen_row_bytes(const dc_env_spec *spec) {
    size_t obs = (size_t)spec->family->obs * sizeof(float);
    return state_bytes(spec->family) + (spec->visual ? DC_VISUAL_OBS - obs : 0);
}

dc_status dc_gen_init(dc_gen *gen, const dc_env_spec *spec, dc_data_kind kind, int64_t *episodes) {
    *gen = (dc_gen){.kind = kind};
    return spec->family->ops->data.plan(gen, spec, episodes);
}

dc_status dc_gen_time_script(const dc_gen *gen, dc_env *env, double *seconds) {
    const dc_sim *sim = dc_sim_of(env);
    *seconds = 0;
    return sim->time_script ? sim->time_script(gen, env, seconds) : DC_OK;
}

bool dc_gen_is_slow(const dc_env_family *family) {
    return family->ops->data.slow;
}

bool dc_gen_has_trace(const dc_env_family *family) {
    return family->ops->data.trace;
}

int64_t dc_gen_hundred(const dc_env_spec *spec) {
    int64_t (*hundred)(const dc_env_spec *) = spec->family->ops->data.hundred;
    return hundred ? hundred(spec) : 0;
}

// Pictures were seen to take 1450 (a cube) to 2200 bytes (an ant) of 12,288.
double dc_gen_packed_bytes(const dc_env_spec *spec) {
    double (*packed)(const dc_env_family *) = spec->family->ops->data.packed;
    double states = packed ? packed(spec->family) : (double)state_bytes(spec->family) * 2 / 3;
    return states + (spec->visual ? PICTURE_PACKED : 0);
}

// ---- experts ----

static dc_status open_expert(dc_gen_experts *experts, dc_expert_kind kind, const char *file) {
    char path[DC_EXPERT_PATH];
    if (!file[0]) DC_TRY(dc_expert_find(kind, path));
    const char *from = file[0] ? file : path;
    DC_TRY(dc_expert_open(&experts->of[experts->count], from));
    return dc_expert_need(&experts->of[experts->count++], from, kind);
}

static dc_status open_experts(dc_gen_experts *experts, const dc_env_spec *spec,
                              const char *const files[DC_GEN_EXPERTS]) {
    const dc_family_data *data = &spec->family->ops->data;
    for (int k = 0; k < DC_GEN_EXPERTS; k++) {
        if (k < data->expert_count)
            DC_TRY(open_expert(experts, data->experts[k], files[k]));
        else if (files[k][0])
            return dc_fail(DC_USAGE, "leave it out", "no such expert leads the robot of %s (%s)",
                           spec->name, files[k]);
    }
    return DC_OK;
}

dc_status dc_gen_experts_open(dc_gen_experts *experts, const dc_env_spec *spec,
                              const char *const files[DC_GEN_EXPERTS]) {
    *experts = (dc_gen_experts){0};
    dc_status status = open_experts(experts, spec, files);
    if (status != DC_OK) dc_gen_experts_close(experts);
    return status;
}

dc_status dc_gen_experts_find(const dc_env_spec *spec) {
    const dc_family_data *data = &spec->family->ops->data;
    char path[DC_EXPERT_PATH];
    for (int k = 0; k < data->expert_count; k++)
        DC_TRY(dc_expert_find(data->experts[k], path));
    return DC_OK;
}

void dc_gen_experts_close(dc_gen_experts *experts) {
    for (int k = 0; k < experts->count; k++)
        dc_expert_close(&experts->of[k]);
    experts->count = 0;
}

// ---- rows ----

void dc_gen_put_obs(const dc_gen_rows *out, const dc_env_spec *spec, int64_t row,
                    const double *obs) {
    for (int k = 0; k < spec->obs; k++)
        if (spec->visual)
            out->pictures[row * spec->obs + k] = (uint8_t)obs[k];
        else
            out->obs[row * spec->obs + k] = (float)obs[k];
}

// The part that begins at a row.
static dc_gen_rows rows_from(const dc_gen_rows *r, const dc_env_family *f, int64_t at) {
    dc_gen_rows out = *r;
    if (out.obs) out.obs += at * f->obs;
    if (out.pictures) out.pictures += at * DC_VISUAL_OBS;
    out.act += at * f->act;
    out.qpos += at * f->nq;
    out.qvel += at * f->nv;
    out.terminals += at;
    if (out.extra) out.extra += at * f->extra;
    if (out.exact) out.exact += at * f->nq;
    if (out.exact_act) out.exact_act += at * f->act;
    if (out.aim) out.aim += at;
    if (out.success) out.success += at;
    if (out.ended) out.ended += at;
    return out;
}

// ---- many ----

typedef struct job {
    const dc_gen *gen;
    const dc_gen_rows *out;
    int64_t first, count;
    int blocks; // of episodes; one more if there is something to do aside
    atomic_bool stop;
    dc_status status[BLOCKS_MAX + 1];
    char error[BLOCKS_MAX + 1][ERROR_TEXT]; // of a block that failed: messages belong to threads
} job;

static dc_status play_numbered(const job *j, dc_env *env, int64_t k) {
    const dc_gen *gen = j->gen;
    dc_philox_draws philox;
    dc_list_draws list = {0};
    env->draws = gen->draws ? dc_draws_list(&list, gen->draws + (j->first + k) * gen->draw_count,
                                            gen->draw_count)
                            : dc_draws_philox(&philox, gen->seed, (uint64_t)(j->first + k));
    dc_gen_rows out = rows_from(j->out, dc_world_spec(gen->world)->family, k * gen->rows);
    DC_TRY(dc_sim_of(env)->play(gen, env, &out));
    if (gen->draws && list.used > list.count)
        return dc_fail(DC_BAD_INPUT, NULL, "episode %lld takes %lld draws and was given %lld",
                       (long long)(j->first + k), (long long)list.used, (long long)list.count);
    return DC_OK;
}

static dc_status play_block(job *j, int block) {
    dc_env env;
    DC_TRY(dc_env_new(&env, j->gen->world, (dc_draws){0}));
    dc_status status = DC_OK;
    int64_t end = j->count * (block + 1) / j->blocks;
    for (int64_t k = j->count * block / j->blocks; k < end && status == DC_OK; k++) {
        if (atomic_load(&j->stop)) break;
        status = play_numbered(j, &env, k);
        if (status == DC_OK && j->gen->progress && !j->gen->progress(j->gen->ctx))
            status = dc_fail(DC_INTERRUPTED, NULL, "stopped");
    }
    if (status != DC_OK) atomic_store(&j->stop, true);
    dc_env_free(&env);
    return status;
}

// Block 0 is what is done aside, so that it begins at once.
static void run_block(void *ctx, int block) {
    job *j = ctx;
    const dc_gen *gen = j->gen;
    bool aside = gen->aside && block == 0;
    j->status[block] = aside ? gen->aside(gen->ctx) : play_block(j, gen->aside ? block - 1 : block);
    if (j->status[block] != DC_OK) snprintf(j->error[block], ERROR_TEXT, "%s", dc_error());
}

dc_status dc_gen_play(const dc_gen *gen, int64_t first, int64_t count, const dc_gen_rows *out,
                      dc_pool *pool) {
    const dc_family_data *data = &dc_world_spec(gen->world)->family->ops->data;
    DC_CHECK(!data->expert_count || (gen->experts && gen->experts->count == data->expert_count));
    job j = {.gen = gen, .out = out, .first = first, .count = count};
    j.blocks = count < BLOCKS_MAX ? (int)count : BLOCKS_MAX;
    int all = j.blocks + (gen->aside ? 1 : 0);
    dc_pool_run(pool, run_block, &j, all);
    for (int b = 0; b < all; b++)
        if (j.status[b] != DC_OK) return dc_fail(j.status[b], NULL, "%s", j.error[b]);
    return DC_OK;
}
