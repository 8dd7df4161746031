// Feeding a GPU, see cuda_feed.h. Chunk c of the feeder lies in place c mod CHUNKS of the ring. Its place
// is free once all steps of chunk c - CHUNKS were started, since copies wait on the device for what was
// started, not here.
#include "train/cuda_feed.h"

#include <stdlib.h>

enum { CHUNKS = 4 };

struct dc_cuda_feed {
    dc_cuda *cuda;
    dc_agent **agents; // (count)
    int count;
    dc_feeder *feeder;
    dc_ring *ring;
    uint64_t started; // steps before this one
};

static dc_status build(dc_cuda_feed *f, dc_agent *const *agents) {
    dc_feeder_source *sources = calloc((size_t)f->count, sizeof *sources);
    if (!sources) return dc_fail(DC_NO_MEMORY, NULL, "no memory");
    for (int i = 0; i < f->count; i++) {
        f->agents[i] = agents[i];
        sources[i] = (dc_feeder_source){agents[i]->sampler, &agents[i]->feeds, agents[i]->data};
    }
    dc_status status = dc_feeder_new(&f->feeder, sources, f->count, agents[0]->pool);
    free(sources);
    DC_TRY(status);
    return dc_ring_new(&f->ring, f->cuda, CHUNKS, DC_FEEDER_STEPS * dc_feeder_bytes(f->feeder));
}

dc_status dc_cuda_feed_new(dc_cuda_feed **out, dc_cuda *cuda, dc_agent *const *agents, int count) {
    *out = NULL;
    dc_cuda_feed *f = calloc(1, sizeof *f);
    if (f) f->agents = calloc((size_t)count, sizeof *f->agents);
    if (!f || !f->agents) return dc_cuda_feed_free(f), dc_fail(DC_NO_MEMORY, NULL, "no memory");
    f->cuda = cuda;
    f->count = count;
    dc_status status = build(f, agents);
    if (status != DC_OK) return dc_cuda_feed_free(f), status;
    *out = f;
    return DC_OK;
}

void dc_cuda_feed_free(dc_cuda_feed *f) {
    if (!f) return;
    dc_ring_free(f->ring);
    dc_feeder_free(f->feeder);
    free(f->agents);
    free(f);
}

dc_status dc_cuda_feed_sampler(dc_cuda_feed *f, int member, dc_program *program,
                               dc_gpu_sampler **out) {
    const dc_agent *a = f->agents[member];
    return dc_gpu_sampler_fed(out, f->cuda, program, a->sampler, &a->feeds, f->feeder, member,
                              dc_ring_device(f->ring), CHUNKS * DC_FEEDER_STEPS);
}

dc_status dc_cuda_feed_seek(dc_cuda_feed *f, int member) {
    const dc_sampler *sampler = f->agents[member]->sampler;
    f->started = dc_sampler_step(sampler);
    return dc_feeder_seek(f->feeder, member, sampler);
}

static int place_of(uint64_t step) {
    return (int)(step / DC_FEEDER_STEPS % CHUNKS);
}

static dc_status make_chunk(dc_cuda_feed *f) {
    int place = place_of(dc_feeder_step(f->feeder));
    void *host;
    DC_TRY(dc_ring_host(f->ring, place, &host));
    DC_TRY(dc_feeder_fill(f->feeder, host));
    return dc_ring_send(f->ring, place);
}

static bool has_room(const dc_cuda_feed *f) {
    return dc_feeder_step(f->feeder) / DC_FEEDER_STEPS < f->started / DC_FEEDER_STEPS + CHUNKS;
}

dc_status dc_cuda_feed_need(dc_cuda_feed *f, uint64_t step, int count) {
    uint64_t last = step + (uint64_t)count - 1;
    while (dc_feeder_step(f->feeder) <= last) {
        DC_CHECK(has_room(f));
        DC_TRY(make_chunk(f));
    }
    DC_TRY(dc_ring_await(f->ring, place_of(step)));
    return place_of(last) == place_of(step) ? DC_OK : dc_ring_await(f->ring, place_of(last));
}

dc_status dc_cuda_feed_started(dc_cuda_feed *f, uint64_t step) {
    for (uint64_t c = f->started / DC_FEEDER_STEPS; c < step / DC_FEEDER_STEPS; c++)
        DC_TRY(dc_ring_release(f->ring, (int)(c % CHUNKS)));
    f->started = step;
    return DC_OK;
}

dc_status dc_cuda_feed_ahead(dc_cuda_feed *f, int chunks) {
    for (; chunks > 0 && has_room(f); chunks--)
        DC_TRY(make_chunk(f));
    return DC_OK;
}

dc_status dc_cuda_feed_fetch(dc_cuda_feed *f, int member, uint64_t step) {
    return dc_feeder_state(f->feeder, member, step, f->agents[member]->sampler);
}
