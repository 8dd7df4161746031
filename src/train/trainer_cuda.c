// Training on a CUDA device, see trainer.h: puts together backend/cuda (the loss graph), sample/gpu_sampler (the
// rows) and recorded steps. A member is a program and its sampler; all members' steps are one recorded graph,
// members side by side.
#include "train/trainer.h"

#include "backend/cuda/cuda.h"
#include "sample/gpu_sampler.h"
#include "train/cuda_batch.h"
#include "train/cuda_feed.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    UNROLL = 10
}; // steps of a recorded graph: the gap between two launches is paid once for all

typedef struct member {
    dc_agent *agent;
    dc_program *program;
    dc_gpu_sampler *sampler;
    dc_cuda *cuda;
} member;

typedef struct cuda_trainer {
    dc_trainer head;
    dc_cuda *cuda;
    dc_gpu_columns *data; // of the data sets, sent once
    dc_cuda_feed *feed;   // NULL: rows are drawn on the device
    member *members;      // (count)
    int count;
    dc_cuda_ranks *ranks; // NULL: this GPU alone
    dc_recording *one, *many;
    int metrics;
    uint64_t step; // where all members stand
} cuda_trainer;

static cuda_trainer *of(dc_trainer *t) {
    return (cuda_trainer *)t;
}

typedef struct stretch { // steps to record
    cuda_trainer *gpu;
    int steps;
} stretch;

static dc_status draw_next(void *ctx) {
    const member *m = ctx;
    return dc_gpu_sampler_draw(m->sampler, 1);
}

static dc_status pack_next(void *ctx) {
    const member *m = ctx;
    return dc_gpu_sampler_pack(m->sampler);
}

static dc_status gather_next(void *ctx) {
    const member *m = ctx;
    return dc_gpu_sampler_gather(m->sampler, 1);
}

static dc_status make_rows(member *m) {
    DC_TRY(dc_gpu_sampler_draw(m->sampler, 0));
    DC_TRY(dc_gpu_sampler_pack(m->sampler));
    return dc_gpu_sampler_gather(m->sampler, 0);
}

// With several GPUs, one thing after the other: rows, gradients, their mean, the update.
static dc_status enqueue_with_ranks(cuda_trainer *gpu, member *m, int steps) {
    const dc_slabs *slabs = dc_program_slabs(m->program);
    for (int i = 0; i < steps; i++) {
        DC_TRY(make_rows(m));
        DC_TRY(dc_program_gradients(m->program));
        DC_TRY(dc_cuda_ranks_average(gpu->ranks, slabs->grad, slabs->size));
        DC_TRY(dc_program_update(m->program));
    }
    return DC_OK;
}

// The rows of a step are made beside the one before.
static dc_status enqueue_member(member *m, int steps) {
    dc_beside next = {draw_next, pack_next, gather_next, m};
    DC_TRY(make_rows(m));
    for (int i = 0; i < steps; i++)
        DC_TRY(dc_program_step(m->program, i + 1 < steps ? &next : NULL));
    return DC_OK;
}

static dc_status enqueue(void *ctx) {
    const stretch *s = ctx;
    for (int i = 0; i < s->gpu->count; i++) {
        DC_TRY(dc_cuda_branch(s->gpu->cuda, i));
        member *m = &s->gpu->members[i];
        DC_TRY(s->gpu->ranks ? enqueue_with_ranks(s->gpu, m, s->steps)
                             : enqueue_member(m, s->steps));
    }
    return dc_cuda_join(s->gpu->cuda, s->gpu->count);
}

static dc_status record(cuda_trainer *gpu, int steps, dc_recording **out) {
    stretch s = {gpu, steps};
    return dc_recording_new(out, gpu->cuda, enqueue, &s);
}

// Bytes of the columns that feeds take, each counted once: members may share them.
static size_t data_bytes(const cuda_trainer *gpu) {
    const void *seen[DC_FEEDS_MAX];
    size_t bytes = 0;
    for (int m = 0; m < gpu->count; m++) {
        const dc_agent *a = gpu->members[m].agent;
        int count = 0;
        for (int f = 0; f < a->feeds.feed_count; f++) {
            const dc_column *column = a->feeds.feeds[f].column;
            bool known = !column || (m && a->data == gpu->members[0].agent->data);
            for (int i = 0; i < count && !known; i++)
                known = seen[i] == dc_column_at(column, 0, 0);
            if (known) continue;
            seen[count++] = dc_column_at(column, 0, 0);
            bytes += (size_t)a->data->rows * dc_column_row_size(column);
        }
    }
    return bytes;
}

static dc_status choose_feed(cuda_trainer *gpu, dc_feed_place wanted, bool *host) {
    size_t left, all;
    *host = wanted == DC_FEED_HOST || gpu->members[0].agent->options.part;
    if (*host || wanted != DC_FEED_AUTO) return DC_OK;
    DC_TRY(dc_cuda_room(gpu->cuda, &left, &all));
    bool draws = dc_gpu_sampler_draws(&gpu->members[0].agent->rows);
    *host = !draws || data_bytes(gpu) + all / 8 > left;
    return DC_OK;
}

static dc_status build_samplers(cuda_trainer *gpu, dc_agent *const *agents, bool host) {
    if (host) DC_TRY(dc_cuda_feed_new(&gpu->feed, gpu->cuda, agents, gpu->count));
    if (!host) DC_TRY(dc_gpu_columns_new(&gpu->data, gpu->cuda));
    for (int i = 0; i < gpu->count; i++) {
        member *m = &gpu->members[i];
        dc_agent *a = m->agent;
        DC_TRY(host ? dc_cuda_feed_sampler(gpu->feed, i, m->program, &m->sampler)
                    : dc_gpu_sampler_new(&m->sampler, gpu->data, m->program, a->sampler, &a->feeds,
                                         a->data));
    }
    return DC_OK;
}

// Pairs of host and device slabs that make up the state.
static int slab_pairs(const member *m, dc_real *host[4], dc_real *device[4], int64_t size[4]) {
    const dc_slabs *h = &m->agent->params.slabs, *d = dc_program_slabs(m->program);
    dc_real *hosts[] = {h->live, h->m, h->v, h->ema}, *devices[] = {d->live, d->m, d->v, d->ema};
    for (int i = 0; i < 4; i++) {
        host[i] = hosts[i];
        device[i] = devices[i];
        size[i] = i < 3 ? h->size : h->ema_size;
    }
    return 4;
}

static dc_status send(dc_trainer *t, int number, uint64_t step, const double *sums) {
    cuda_trainer *gpu = of(t);
    member *m = &gpu->members[number];
    dc_real *host[4], *device[4];
    int64_t size[4];
    for (int i = 0, n = slab_pairs(m, host, device, size); i < n; i++)
        DC_TRY(dc_cuda_put(gpu->cuda, device[i], host[i], (size_t)size[i] * sizeof(dc_real)));
    DC_TRY(dc_program_refresh(m->program));
    dc_cuda_state state = {.step = step, .bad_step = -1};
    memcpy(state.sums, sums, (size_t)(gpu->metrics + 1) * sizeof *sums);
    DC_TRY(dc_cuda_put(gpu->cuda, dc_program_state(m->program), &state, sizeof state));
    gpu->step = step;
    return gpu->feed ? dc_cuda_feed_seek(gpu->feed, number)
                     : dc_gpu_sampler_put(m->sampler, m->agent->sampler);
}

// Of the GPUs that ranks on a machine can all see, each takes one of its own.
static void choose_gpu(const dc_ranks *ranks) {
    char own[256] = "";
    const char *given = getenv("CUDA_VISIBLE_DEVICES");
    int number = dc_ranks_before(ranks);
    if (given && !strchr(given, ',')) return; // the launcher gave it one
    for (int k = 0; given && k < number; k++) {
        given = strchr(given, ',');
        if (given) given++;
    }
    if (given)
        snprintf(own, sizeof own, "%.*s", (int)strcspn(given, ","), given);
    else
        snprintf(own, sizeof own, "%d", number);
    setenv("CUDA_VISIBLE_DEVICES", own, 1);
}

static dc_status build(cuda_trainer *gpu, dc_agent *const *agents, const dc_trainer_spec *spec) {
    double none[DC_CUDA_SUMS] = {0};
    bool host;
    const char *trial = getenv("DCRL_NCCL"); // one GPU goes the way of several
    gpu->metrics = agents[0]->metric_count;
    if (spec->ranks) choose_gpu(spec->ranks);
    DC_TRY(dc_cuda_open(&gpu->cuda));
    if (spec->ranks || trial) DC_TRY(dc_cuda_ranks_new(&gpu->ranks, gpu->cuda, spec->ranks));
    for (int i = 0; i < gpu->count; i++) {
        gpu->members[i].agent = agents[i];
        gpu->members[i].cuda = gpu->cuda;
        DC_TRY(dc_cuda_compile(&gpu->members[i].program, gpu->cuda, agents[i], spec, gpu->count,
                               gpu->ranks != NULL));
    }
    DC_TRY(choose_feed(gpu, spec->feed, &host));
    DC_TRY(build_samplers(gpu, agents, host));
    for (int i = 0; i < gpu->count; i++)
        DC_TRY(send(&gpu->head, i, dc_sampler_step(agents[i]->sampler), none));
    DC_TRY(dc_cuda_branches(gpu->cuda, gpu->count));
    DC_TRY(record(gpu, 1, &gpu->one));
    return record(gpu, UNROLL, &gpu->many);
}

static void free_trainer(dc_trainer *t) {
    cuda_trainer *gpu = of(t);
    dc_cuda_alone();
    dc_recording_free(gpu->one);
    dc_recording_free(gpu->many);
    for (int i = 0; i < gpu->count; i++) {
        dc_gpu_sampler_free(gpu->members[i].sampler);
        dc_program_free(gpu->members[i].program);
    }
    dc_gpu_columns_free(gpu->data);
    dc_cuda_feed_free(gpu->feed);
    dc_cuda_ranks_free(gpu->ranks);
    dc_cuda_close(gpu->cuda);
    dc_cuda_together();
    free(gpu->members);
    free(gpu);
}

static dc_status compile(dc_trainer **out, dc_agent *const *agents, int count,
                         const dc_trainer_spec *spec) {
    cuda_trainer *gpu = calloc(1, sizeof *gpu);
    if (!gpu) return dc_fail(DC_NO_MEMORY, NULL, "no memory");
    gpu->members = calloc((size_t)count, sizeof *gpu->members);
    gpu->count = gpu->members ? count : 0;
    dc_cuda_alone();
    dc_status status =
        gpu->members ? build(gpu, agents, spec) : dc_fail(DC_NO_MEMORY, NULL, "no memory");
    dc_cuda_together();
    if (status != DC_OK) return free_trainer(&gpu->head), status;
    gpu->head.name = dc_cuda_name(gpu->cuda);
    gpu->head.fed = gpu->feed != NULL;
    *out = &gpu->head;
    return DC_OK;
}

static dc_status read_state(cuda_trainer *gpu, const member *m, dc_cuda_state *state) {
    return dc_cuda_get(gpu->cuda, state, dc_program_state(m->program), sizeof *state);
}

// Start `count` steps, 1 or UNROLL. The host makes rows between two starts, for starts to come.
static dc_status start(cuda_trainer *gpu, int count) {
    if (gpu->feed) DC_TRY(dc_cuda_feed_need(gpu->feed, gpu->step, count));
    DC_TRY(dc_recording_run(count == 1 ? gpu->one : gpu->many));
    gpu->step += (uint64_t)count;
    if (!gpu->feed) return DC_OK;
    DC_TRY(dc_cuda_feed_started(gpu->feed, gpu->step));
    return dc_cuda_feed_ahead(gpu->feed, 1);
}

static dc_status step(dc_trainer *t, int64_t steps, int64_t *bad, double *const *sums) {
    cuda_trainer *gpu = of(t);
    for (int count; steps > 0; steps -= count) {
        count = steps >= UNROLL ? UNROLL : 1;
        DC_TRY(start(gpu, count));
    }
    if (gpu->feed) DC_TRY(dc_cuda_feed_ahead(gpu->feed, INT_MAX)); // rather than wait
    if (gpu->ranks) DC_TRY(dc_cuda_ranks_wait(gpu->ranks));
    for (int i = 0; i < gpu->count; i++) {
        dc_cuda_state state;
        DC_TRY(read_state(gpu, &gpu->members[i], &state));
        bad[i] = state.bad_step;
        memcpy(sums[i], state.sums, (size_t)(gpu->metrics + 1) * sizeof *state.sums);
    }
    return DC_OK;
}

static dc_status renew(dc_trainer *t, int64_t first, int64_t count) {
    cuda_trainer *gpu = of(t);
    if (gpu->feed)
        return dc_fail(DC_UNSUPPORTED, "use feed=device",
                       "rows that change cannot be fed by the host, which draws ahead");
    return dc_gpu_columns_renew(gpu->data, gpu->members[0].agent->data, first, count);
}

static dc_status clear(dc_trainer *t) {
    cuda_trainer *gpu = of(t);
    static const double none[DC_CUDA_SUMS];
    for (int i = 0; i < gpu->count; i++)
        DC_TRY(dc_cuda_put(gpu->cuda, dc_program_state(gpu->members[i].program)->sums, none,
                           sizeof none));
    return DC_OK;
}

// Steps that were started after one with NaN moved the slots on the device; the host's sampler still stands
// where it was fetched last, and draws its way to the step that was trained.
static dc_status catch_up(dc_sampler *sampler, uint64_t step) {
    while (dc_sampler_step(sampler) < step)
        DC_TRY(dc_sampler_next(sampler, dc_sampler_step(sampler)));
    return DC_OK;
}

static dc_status fetch(dc_trainer *t, int number) {
    cuda_trainer *gpu = of(t);
    member *m = &gpu->members[number];
    dc_real *host[4], *device[4];
    int64_t size[4];
    for (int i = 0, n = slab_pairs(m, host, device, size); i < n; i++)
        DC_TRY(dc_cuda_get(gpu->cuda, host[i], device[i], (size_t)size[i] * sizeof(dc_real)));
    dc_cuda_state state;
    DC_TRY(read_state(gpu, m, &state));
    if (gpu->feed) return dc_cuda_feed_fetch(gpu->feed, number, state.step);
    if (state.bad_step < 0) return dc_gpu_sampler_get(m->sampler, m->agent->sampler, state.step);
    return catch_up(m->agent->sampler, state.step);
}

static dc_status gradients(dc_trainer *t, int number, float *values) {
    cuda_trainer *gpu = of(t);
    member *m = &gpu->members[number];
    dc_agent *a = m->agent;
    if (gpu->feed) DC_TRY(dc_cuda_feed_need(gpu->feed, gpu->step, 1));
    DC_TRY(make_rows(m));
    DC_TRY(dc_program_gradients(m->program));
    DC_TRY(dc_cuda_get(gpu->cuda, a->params.slabs.grad, dc_program_slabs(m->program)->grad,
                       (size_t)a->params.slabs.size * sizeof(dc_real)));
    for (int i = 0; i < a->metric_count; i++)
        DC_TRY(dc_program_value(m->program, a->metrics[i].node, &values[i]));
    return DC_OK;
}

// The host's sampler may stand elsewhere after a stretch that was cut off: fetch brings it to the step.
static dc_status retrace(dc_trainer *t, int number, uint64_t at) {
    DC_TRY(fetch(t, number));
    return dc_agent_gradients(of(t)->members[number].agent, at);
}

static dc_status describe(const dc_trainer *t, dc_text *out) {
    dc_text_add(out, "%s, %s", t->name,
                t->fed ? "rows are drawn and gathered on the host, ahead of it (feed=host)"
                       : "which holds the data set and draws its rows (feed=device)");
    dc_text_add(out, "\n");
    return dc_program_describe(((const cuda_trainer *)t)->members->program, out);
}

const dc_trainer_ops dc_trainer_cuda = {.device = "cuda",
                                        .least_steps = UNROLL,
                                        .compile = compile,
                                        .free = free_trainer,
                                        .send = send,
                                        .step = step,
                                        .renew = renew,
                                        .clear = clear,
                                        .fetch = fetch,
                                        .retrace = retrace,
                                        .gradients = gradients,
                                        .describe = describe};
