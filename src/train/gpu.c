// GPU, see gpu.h: puts together backend/cuda (the loss graph), sample/twin (the rows) and replay. A
// member is a program and its twin; recorded steps are theirs, members side by side.
#include "train/gpu.h"

#include "backend/cuda/cuda.h"
#include "sample/twin.h"
#include "train/gpu_feed.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
    UNROLL = 10
}; // steps of a recorded graph: the gap between two launches is paid once for all

typedef struct member {
    dc_agent *agent;
    dc_program *program;
    dc_twin *twin;
    dc_cuda *cuda;
    dc_program *ask; // Nullable: the agent's questions
    dc_recording *answer;
    float *rows; // of the questions, as the program has them
} member;

struct dc_gpu {
    dc_cuda *cuda;
    dc_twin_data *data; // what the twins share
    dc_gpu_feed *feed;  // NULL: the twins draw
    member *members;    // (count)
    int count;
    dc_recording *one, *many;
    int metrics;
    uint64_t step; // where all members stand
};

typedef struct stretch { // steps to record
    dc_gpu *gpu;
    int steps;
} stretch;

static dc_status draw_next(void *ctx) {
    const member *m = ctx;
    return dc_twin_draw(m->twin, 1);
}

static dc_status pack_next(void *ctx) {
    const member *m = ctx;
    return dc_twin_pack(m->twin);
}

static dc_status gather_next(void *ctx) {
    const member *m = ctx;
    return dc_twin_gather(m->twin, 1);
}

static dc_status make_rows(member *m) {
    DC_TRY(dc_twin_draw(m->twin, 0));
    DC_TRY(dc_twin_pack(m->twin));
    return dc_twin_gather(m->twin, 0);
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
        DC_TRY(enqueue_member(&s->gpu->members[i], s->steps));
    }
    return dc_cuda_join(s->gpu->cuda, s->gpu->count);
}

static dc_status record(dc_gpu *gpu, int steps, dc_recording **out) {
    stretch s = {gpu, steps};
    return dc_recording_new(out, gpu->cuda, enqueue, &s);
}

static dc_status build_program(dc_gpu *gpu, member *m, const dc_gpu_spec *spec) {
    dc_agent *a = m->agent;
    dc_ref metrics[DC_METRICS_MAX];
    for (int i = 0; i < a->metric_count; i++)
        metrics[i] = a->metrics[i].node;
    dc_program_spec program = {.graph = &a->graph,
                               .size = a->params.slabs.size,
                               .ema_size = a->params.slabs.ema_size,
                               .precision = (dc_precision)spec->precision,
                               .metrics = metrics,
                               .metric_count = a->metric_count,
                               .lr = spec->lr,
                               .beta1 = 0.9,
                               .beta2 = 0.999,
                               .eps = 1e-8,
                               .tau = spec->tau,
                               .policy_first = a->policy_first,
                               .policy_after = a->policy_after,
                               .beside = gpu->count};
    return dc_program_new(&m->program, gpu->cuda, &program);
}

// Bytes of the columns that feeds take, each counted once: members may share them.
static size_t data_bytes(const dc_gpu *gpu) {
    const float *seen[DC_FEEDS_MAX];
    size_t bytes = 0;
    for (int m = 0; m < gpu->count; m++) {
        const dc_agent *a = gpu->members[m].agent;
        int count = 0;
        for (int f = 0; f < a->feeds.feed_count; f++) {
            const dc_column *column = a->feeds.feeds[f].column;
            bool known = !column || (m && a->data == gpu->members[0].agent->data);
            for (int i = 0; i < count && !known; i++)
                known = seen[i] == column->values;
            if (known) continue;
            seen[count++] = column->values;
            bytes += (size_t)a->data->rows * (size_t)column->width * sizeof(float);
        }
    }
    return bytes;
}

static dc_status choose_feed(dc_gpu *gpu, dc_gpu_origin wanted, bool *host) {
    size_t left, all;
    *host = wanted == DC_FEED_HOST;
    if (wanted != DC_FEED_AUTO) return DC_OK;
    DC_TRY(dc_cuda_room(gpu->cuda, &left, &all));
    bool draws = dc_twin_draws(dc_sampler_spec_of(gpu->members[0].agent->sampler));
    *host = !draws || data_bytes(gpu) + all / 8 > left;
    return DC_OK;
}

static dc_status build_twins(dc_gpu *gpu, dc_agent *const *agents, bool host) {
    if (host) DC_TRY(dc_gpu_feed_new(&gpu->feed, gpu->cuda, agents, gpu->count));
    if (!host) DC_TRY(dc_twin_data_new(&gpu->data, gpu->cuda));
    for (int i = 0; i < gpu->count; i++) {
        member *m = &gpu->members[i];
        dc_agent *a = m->agent;
        DC_TRY(host ? dc_gpu_feed_twin(gpu->feed, i, m->program, &m->twin)
                    : dc_twin_new(&m->twin, gpu->data, m->program, a->sampler, &a->feeds, a->data));
    }
    return DC_OK;
}

static dc_status build(dc_gpu *gpu, dc_agent *const *agents, const dc_gpu_spec *spec) {
    double none[DC_CUDA_SUMS] = {0};
    bool host;
    gpu->metrics = agents[0]->metric_count;
    DC_TRY(dc_cuda_open(&gpu->cuda));
    for (int i = 0; i < gpu->count; i++) {
        gpu->members[i].agent = agents[i];
        gpu->members[i].cuda = gpu->cuda;
        DC_TRY(build_program(gpu, &gpu->members[i], spec));
    }
    DC_TRY(choose_feed(gpu, spec->feed, &host));
    DC_TRY(build_twins(gpu, agents, host));
    for (int i = 0; i < gpu->count; i++)
        DC_TRY(dc_gpu_send(gpu, i, dc_sampler_step(agents[i]->sampler), none));
    DC_TRY(dc_cuda_branches(gpu->cuda, gpu->count));
    DC_TRY(record(gpu, 1, &gpu->one));
    return record(gpu, UNROLL, &gpu->many);
}

dc_status dc_gpu_new(dc_gpu **out, dc_agent *const *agents, int count, const dc_gpu_spec *spec) {
    *out = NULL;
    dc_gpu *gpu = calloc(1, sizeof *gpu);
    if (gpu) gpu->members = calloc((size_t)count, sizeof *gpu->members);
    if (!gpu || !gpu->members) return dc_gpu_free(gpu), dc_fail(DC_NO_MEMORY, NULL, "no memory");
    gpu->count = count;
    dc_cuda_alone();
    dc_status status = build(gpu, agents, spec);
    dc_cuda_together();
    if (status != DC_OK) return dc_gpu_free(gpu), status;
    *out = gpu;
    return DC_OK;
}

void dc_gpu_free(dc_gpu *gpu) {
    if (!gpu) return;
    dc_cuda_alone();
    dc_recording_free(gpu->one);
    dc_recording_free(gpu->many);
    for (int i = 0; i < gpu->count; i++) {
        member *m = &gpu->members[i];
        dc_twin_free(m->twin);
        dc_program_free(m->program);
        dc_recording_free(m->answer);
        dc_program_free(m->ask);
        free(m->rows);
        if (m->agent && m->agent->ask_ctx == m) m->agent->ask_by = NULL;
    }
    dc_twin_data_free(gpu->data);
    dc_gpu_feed_free(gpu->feed);
    dc_cuda_close(gpu->cuda);
    dc_cuda_together();
    free(gpu->members);
    free(gpu);
}

const char *dc_gpu_name(const dc_gpu *gpu) {
    return dc_cuda_name(gpu->cuda);
}

bool dc_gpu_fed(const dc_gpu *gpu) {
    return gpu->feed != NULL;
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

dc_status dc_gpu_send(dc_gpu *gpu, int number, uint64_t step, const double *sums) {
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
    return gpu->feed ? dc_gpu_feed_seek(gpu->feed, number)
                     : dc_twin_put(m->twin, m->agent->sampler);
}

static dc_status read_state(dc_gpu *gpu, const member *m, dc_cuda_state *state) {
    return dc_cuda_get(gpu->cuda, state, dc_program_state(m->program), sizeof *state);
}

// Start `count` steps, 1 or UNROLL. The host makes rows between two starts, for starts to come.
static dc_status start(dc_gpu *gpu, int count) {
    if (gpu->feed) DC_TRY(dc_gpu_feed_need(gpu->feed, gpu->step, count));
    DC_TRY(dc_recording_run(count == 1 ? gpu->one : gpu->many));
    gpu->step += (uint64_t)count;
    if (!gpu->feed) return DC_OK;
    DC_TRY(dc_gpu_feed_started(gpu->feed, gpu->step));
    return dc_gpu_feed_ahead(gpu->feed, 1);
}

dc_status dc_gpu_train(dc_gpu *gpu, int64_t steps, int64_t *bad, double *const *sums) {
    for (int count; steps > 0; steps -= count) {
        count = steps >= UNROLL ? UNROLL : 1;
        DC_TRY(start(gpu, count));
    }
    if (gpu->feed) DC_TRY(dc_gpu_feed_ahead(gpu->feed, INT_MAX)); // rather than wait
    for (int i = 0; i < gpu->count; i++) {
        dc_cuda_state state;
        DC_TRY(read_state(gpu, &gpu->members[i], &state));
        bad[i] = state.bad_step;
        memcpy(sums[i], state.sums, (size_t)(gpu->metrics + 1) * sizeof *state.sums);
    }
    return DC_OK;
}

dc_status dc_gpu_clear(dc_gpu *gpu) {
    static const double none[DC_CUDA_SUMS];
    for (int i = 0; i < gpu->count; i++)
        DC_TRY(dc_cuda_put(gpu->cuda, dc_program_state(gpu->members[i].program)->sums, none,
                           sizeof none));
    return DC_OK;
}

// Steps that were started after one with NaN moved the twin's slots; the host's sampler still stands
// where it was fetched last, and draws its way to the step that was trained.
static dc_status catch_up(dc_sampler *sampler, uint64_t step) {
    while (dc_sampler_step(sampler) < step)
        DC_TRY(dc_sampler_next(sampler, dc_sampler_step(sampler)));
    return DC_OK;
}

dc_status dc_gpu_fetch(dc_gpu *gpu, int number) {
    member *m = &gpu->members[number];
    dc_real *host[4], *device[4];
    int64_t size[4];
    for (int i = 0, n = slab_pairs(m, host, device, size); i < n; i++)
        DC_TRY(dc_cuda_get(gpu->cuda, host[i], device[i], (size_t)size[i] * sizeof(dc_real)));
    dc_cuda_state state;
    DC_TRY(read_state(gpu, m, &state));
    if (gpu->feed) return dc_gpu_feed_fetch(gpu->feed, number, state.step);
    if (state.bad_step < 0) return dc_twin_get(m->twin, m->agent->sampler, state.step);
    return catch_up(m->agent->sampler, state.step);
}

// ---- questions ----

static dc_status enqueue_answer(void *ctx) {
    const member *m = ctx;
    return dc_program_gradients(m->ask); // forward alone: there is no loss
}

static dc_status answer(void *ctx) {
    member *m = ctx;
    dc_agent *a = m->agent;
    dc_view in = dc_value(&a->ask, a->ask_in), out = dc_value(&a->ask, a->ask_out);
    dc_cuda_input there = dc_program_input(m->ask, a->ask_in);
    for (int r = 0; r < in.rows; r++)
        memcpy(m->rows + (size_t)r * (size_t)there.ld, in.p + (size_t)r * (size_t)in.cols,
               (size_t)in.cols * sizeof(float));
    DC_TRY(
        dc_cuda_put(m->cuda, there.p, m->rows, (size_t)in.rows * (size_t)there.ld * sizeof(float)));
    DC_TRY(dc_recording_run(m->answer));
    return dc_program_value(m->ask, a->ask_out, out.p);
}

static dc_status build_answer(member *m) {
    dc_agent *a = m->agent;
    const dc_slabs *s = &a->params.slabs;
    dc_program_spec spec = {
        .graph = &a->ask_graph, .size = s->size, .ema_size = s->ema_size, .precision = DC_FP32};
    DC_TRY(dc_program_new(&m->ask, m->cuda, &spec));
    DC_TRY(dc_recording_new(&m->answer, m->cuda, enqueue_answer, m));
    dc_cuda_input there = dc_program_input(m->ask, a->ask_in);
    m->rows = calloc((size_t)DC_ASK_ROWS * (size_t)there.ld, sizeof *m->rows);
    return m->rows ? DC_OK : dc_fail(DC_NO_MEMORY, NULL, "no memory");
}

dc_status dc_gpu_answer(dc_gpu *gpu, int number) {
    member *m = &gpu->members[number];
    const dc_slabs *s = &m->agent->params.slabs;
    if (!m->ask) {
        dc_cuda_alone();
        dc_status status = build_answer(m);
        dc_cuda_together();
        DC_TRY(status);
    }
    DC_TRY(dc_cuda_put(gpu->cuda, dc_program_slabs(m->ask)->live, s->live,
                       (size_t)s->size * sizeof(dc_real)));
    DC_TRY(dc_program_refresh(m->ask));
    m->agent->ask_by = answer;
    m->agent->ask_ctx = m;
    return DC_OK;
}

dc_status dc_gpu_gradients(dc_gpu *gpu, int number, float *values) {
    member *m = &gpu->members[number];
    dc_agent *a = m->agent;
    if (gpu->feed) DC_TRY(dc_gpu_feed_need(gpu->feed, gpu->step, 1));
    DC_TRY(make_rows(m));
    DC_TRY(dc_program_gradients(m->program));
    DC_TRY(dc_cuda_get(gpu->cuda, a->params.slabs.grad, dc_program_slabs(m->program)->grad,
                       (size_t)a->params.slabs.size * sizeof(dc_real)));
    for (int i = 0; i < a->metric_count; i++)
        DC_TRY(dc_program_value(m->program, a->metrics[i].node, &values[i]));
    return DC_OK;
}
