// Sampler on a GPU, see gpu_sampler.h. One kernel draws the integers of a batch, one gathers the rows. Rows of
// a batch that take the same slot take its nodes in order, so a row counts those before it that took the same
// slot; slots themselves are four words each, whatever the length of their trees.
extern "C" {
#include "base/pages.h"
#include "sample/gpu_sampler.h"
#include "sample/noise.h"
#include "sample/row_draw.h"
}

#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <vector>

enum { BATCH_MAX = 8192, ROWS = 64, COUNTERS = 8 }; // COUNTERS: threads that count for a row

typedef struct slot_words {
    int64_t generation, cursor, start, length;
} slot_words;

typedef struct draw_job {
    dc_row_laws laws; // laws.tree < 0: no trees
    int batch;
    int first; // dc_feeds.first, where rows are fed
    const dc_cuda_state *state;
    slot_words *slot;    // (slots)
    slot_words *renewed; // (batch) what the slot becomes after this batch, at its last row
    int32_t *last;       // (batch) slot whose last row this is, else -1
    int64_t *stream[DC_RULES_MAX]; // (batch * times) each: what is drawn
    int ring_steps;                // fed: steps that lie in the ring; 0: rows are drawn here
    int64_t step_bytes;
} draw_job;
static_assert(sizeof(draw_job) + 64 <= 4096, "parameters of a kernel");

typedef struct feed_job {
    void *out;
    int ld;
    bool half;
    bool copies;              // floats of a column, as they are
    const void *column;       // NULL: the rule's integer itself
    dc_type type;             // of its values
    const float *mean, *rate; // Nullable: what `take` values are scaled by
    int width, skip, take, one_hot, repeat;
    bool crop;
    dc_crop crop_by;
    bool drawn; // takes random numbers, of `draw`
    dc_draw draw;
    const int64_t *rows; // NULL: in order, as a feeder leaves them
    int stride;          // from one of them to the next
    const float *place; // Nullable: the row of the input that a row goes to, -1 if it is not needed
} feed_job;

typedef struct pack_job {
    float *index; // (batch) see feed_job.place
    const int64_t *steps;
    int64_t known;
    int fixed; // rows before the first pack of the input
    int *used; // rows of the input that are wanted; Nullable
    int next;  // pack of the same input, -1: the last one
} pack_job;

struct dc_gpu_columns {
    dc_cuda *cuda;
    std::vector<const void *> seen, sent; // arrays of the host, and their copies
};

struct dc_gpu_sampler {
    dc_cuda *cuda;
    draw_job job;
    feed_job *feeds; // device
    int feed_count;
    pack_job *packs; // device; NULL: every row has a place of its own
    int *firsts;     // (pack_inputs) first pack of each input
    int pack_inputs;
};

// ---- kernels ----

// Node number `rank` from where the slot stands; leaves it one further in *slot.
__device__ static dc_segment pop(const draw_job &j, uint32_t number, slot_words *slot,
                                 int64_t rank) {
    int64_t t = slot->cursor + rank, nodes = slot->length ? 2 * slot->length - 1 : 0;
    while (t >= nodes) {
        t -= nodes;
        dc_pair pair =
            dc_draw_segment(&j.laws.set, j.laws.seed, number, (uint64_t)slot->generation);
        slot->generation++;
        slot->start = pair.i;
        slot->length = pair.j - pair.i;
        nodes = 2 * slot->length - 1;
    }
    slot->cursor = t + 1;
    return dc_tree_segment(&j.laws, slot->start, slot->length, t);
}

// The slot of every row, and for each row of the block how many before and after took the same. One of a row's threads gets
// the node that its slot hands out; the others false.
__device__ static bool draw_node(const draw_job &j, uint64_t step, int row, dc_segment *node) {
    extern __shared__ uint32_t pick[];
    for (int row = threadIdx.x; row < j.batch; row += blockDim.x)
        pick[row] = dc_draw_slot(&j.laws, step, (uint32_t)row);
    __syncthreads();
    int part = threadIdx.x % COUNTERS, before = 0, after = 0;
    uint32_t mine = row < j.batch ? pick[row] : ~0u;
    for (int r = part; r < j.batch; r += COUNTERS) {
        bool same = pick[r] == mine;
        before += same && r < row;
        after += same && r > row;
    }
    for (int d = COUNTERS / 2; d; d >>= 1) {
        before += __shfl_xor_sync(~0u, before, d);
        after += __shfl_xor_sync(~0u, after, d);
    }
    if (part || row >= j.batch) return false;
    slot_words slot = j.slot[mine];
    *node = pop(j, mine, &slot, before);
    j.last[row] = after ? -1 : (int32_t)mine;
    if (!after) j.renewed[row] = slot;
    return true;
}

// The first blocks draw the rules on the tree, the others the rest, each for their own rows. Both call one copy of the
// rules' code, which is long, and fetched anew each time the kernel runs.
__global__ static void __launch_bounds__(ROWS *COUNTERS)
    draw(const __grid_constant__ draw_job j, int ahead) {
    uint64_t step = j.state->step + (uint64_t)ahead;
    int trees = j.laws.tree >= 0 ? (j.batch + ROWS - 1) / ROWS : 0;
    bool tree = (int)blockIdx.x < trees;
    int row = tree ? blockIdx.x * ROWS + threadIdx.x / COUNTERS
                   : ((int)blockIdx.x - trees) * blockDim.x + threadIdx.x;
    dc_segment node = {0, 0, 0};
    bool mine = tree ? draw_node(j, step, row, &node) : row < j.batch;
    if (!mine) return;
    dc_row_part part = tree ? DC_ROWS_ON_TREE : DC_ROWS_OFF_TREE;
    dc_draw_rows(&j.laws, part, step, (uint32_t)row, node, j.stream);
}

__device__ static float value(const feed_job &f, int64_t at) {
    return f.type == DC_TYPE_U8 ? (float)((const uint8_t *)f.column)[at]
                                : ((const float *)f.column)[at];
}

// Column c of a row of a feed; `copy` numbers its repetitions.
__device__ static float cell(const draw_job &j, const feed_job &f, uint64_t step, int row, int copy,
                             int64_t from, int c) {
    if (f.drawn && f.draw.kind == DC_DRAW_TIME)
        return dc_draw_time(j.laws.seed, f.draw.stream, step, (uint32_t)(j.first + row));
    if (f.drawn)
        return dc_draw_normal(j.laws.seed, f.draw.stream, step,
                              (uint32_t)((j.first + row) * f.draw.columns + c));
    if (f.one_hot) return c == (f.column ? (int)value(f, from * f.width) : copy);
    if (!f.column) return (float)from;
    if (f.crop)
        c = dc_crop_from(&f.crop_by, dc_crop_draw(&f.crop_by, j.laws.seed, step, (uint32_t)row), c);
    float x = value(f, from * f.width + f.skip + c);
    return f.mean ? (x - f.mean[c]) * f.rate[c] : x;
}

// Children whose span is known need no network: the others are packed, a block for each input.
__global__ static void pack_rows(const pack_job *packs, const int *firsts, int batch) {
    __shared__ int counts[32];
    int lane = threadIdx.x & 31, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    int number = firsts[blockIdx.x], base = packs[number].fixed;
    int *used = packs[number].used;
    for (; number >= 0; number = packs[number].next) {
        const pack_job p = packs[number];
        for (int row0 = 0; row0 < batch; row0 += blockDim.x) {
            int row = row0 + threadIdx.x, before = 0, all = 0;
            bool needed = row < batch && p.steps[row] > p.known;
            unsigned mask = __ballot_sync(~0u, needed);
            if (lane == 0) counts[warp] = __popc(mask);
            __syncthreads();
            for (int w = 0; w < warps; w++) {
                before += w < warp ? counts[w] : 0;
                all += counts[w];
            }
            before += __popc(mask & ((1u << lane) - 1));
            if (row < batch) p.index[row] = needed ? (float)(base + before) : -1;
            base += all;
            __syncthreads();
        }
    }
    if (threadIdx.x == 0 && used) *used = base;
}

__device__ static void put(const feed_job &f, int64_t at, float v) {
    if (f.half)
        ((__nv_bfloat16 *)f.out)[at] = __float2bfloat16(v);
    else
        ((float *)f.out)[at] = v;
}

// A warp copies a row of a feed. Slots move on here, when no row reads them any more.
__global__ static void gather(const __grid_constant__ draw_job j, const feed_job *feeds,
                              int feed_count, int ahead) {
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x & 31;
    int f = warp / j.batch, row = warp % j.batch;
    if (f >= feed_count) return;
    if (f == 0 && j.laws.tree >= 0 && lane == 0 && j.last[row] >= 0)
        j.slot[j.last[row]] = j.renewed[row];
    feed_job feed = feeds[f];
    uint64_t step = j.state->step + (uint64_t)ahead;
    if (j.ring_steps && feed.column)
        feed.column = (const char *)feed.column + (int64_t)(step % j.ring_steps) * j.step_bytes;
    int64_t from = feed.drawn ? 0 : feed.rows ? feed.rows[(int64_t)row * feed.stride] : row;
    int place = feed.place ? (int)feed.place[row] : row;
    if (place < 0) return;
    if (feed.copies) { // what most are, and what is soon done
        const float *row_at = (const float *)feed.column + from * feed.width + feed.skip;
        for (int c = lane; c < feed.take; c += 32)
            put(feed, (int64_t)place * feed.ld + c, row_at[c]);
        return;
    }
    for (int copy = 0; copy < feed.repeat; copy++) {
        int64_t to = ((int64_t)place * feed.repeat + copy) * feed.ld;
        for (int c = lane; c < feed.take; c += 32)
            put(feed, to + c, cell(j, feed, step, row, copy, from, c));
    }
}

// ---- building ----

static dc_status send(dc_cuda *cuda, const void *host, size_t bytes, const char *what,
                      void **device) {
    DC_TRY(dc_cuda_take(cuda, bytes, what, "use feed=host, a smaller data set or a larger GPU",
                        device));
    // A mapped store is set for single rows (dc_range_random): asked for ahead, it is read in long stretches.
    const size_t piece = (size_t)64 << 20;
    for (size_t at = 0; at < bytes; at += piece) {
        size_t left = bytes - at;
        dc_pages_want((const char *)host + at, left < 2 * piece ? left : 2 * piece);
        DC_TRY(dc_cuda_put(cuda, (char *)*device + at, (const char *)host + at,
                           left < piece ? left : piece));
    }
    return DC_OK;
}

// The copy of an array that samplers share.
static dc_status send_once(dc_gpu_columns *shared, const void *host, size_t bytes, const char *what,
                           const void **device) {
    for (size_t i = 0; i < shared->seen.size(); i++)
        if (shared->seen[i] == host) {
            *device = shared->sent[i];
            return DC_OK;
        }
    void *p;
    DC_TRY(send(shared->cuda, host, bytes, what, &p));
    shared->seen.push_back(host);
    shared->sent.push_back(p);
    *device = p;
    return DC_OK;
}

// Where the rows of a pack start: packs of one input follow each other, each a whole batch.
static int pack_row(const dc_feeds *feeds, const dc_pack *pack) {
    int index = (int)(pack - feeds->packs), row0 = feeds->fixed_rows[index];
    for (int p = 0; p < index; p++)
        if (feeds->packs[p].input == pack->input) row0 += feeds->batch;
    return row0;
}

// Where the rows of feeds come from: columns on the device, or what a feeder leaves there.
typedef struct origin {
    dc_gpu_columns *shared;
    const dc_dataset *data;
    const dc_feeder *feeder; // NULL: columns
    int member;
    const char *ring;
} origin;

static dc_status take_column(const origin *o, const dc_feed *feed, feed_job *job) {
    job->width = feed->column->width;
    job->skip = feed->skip;
    job->type = feed->column->type;
    return send_once(o->shared, dc_column_at(feed->column, 0, 0),
                     (size_t)o->data->rows * dc_column_row_size(feed->column), "the data set",
                     &job->column);
}

// What the feed's values are scaled by, from the first one that it takes on.
static dc_status take_scale(dc_gpu_sampler *t, const dc_feed *feed, feed_job *job) {
    size_t bytes = (size_t)job->take * sizeof(float);
    DC_TRY(send(t->cuda, feed->scale->mean + feed->skip, bytes, "feeds", (void **)&job->mean));
    return send(t->cuda, feed->scale->rate + feed->skip, bytes, "feeds", (void **)&job->rate);
}

static void take_block(const origin *o, int feed, feed_job *job) {
    dc_feeder_block block = dc_feeder_find(o->feeder, o->member, feed);
    job->rows = NULL;
    if (block.used) job->column = o->ring + block.offset;
    job->width = block.width;
}

// Rows that a feeder sent are not packed: every one has its place.
static dc_status place_packs(dc_gpu_sampler *t, dc_program *program, const dc_feeds *feeds) {
    for (int p = 0; p < feeds->pack_count; p++) {
        std::vector<float> index((size_t)feeds->batch);
        for (int r = 0; r < feeds->batch; r++)
            index[(size_t)r] = (float)(pack_row(feeds, &feeds->packs[p]) + r);
        dc_cuda_input in = dc_program_input(program, feeds->packs[p].index);
        DC_TRY(dc_cuda_put(t->cuda, in.p, index.data(), index.size() * sizeof(float)));
    }
    return DC_OK;
}

static dc_status send_packs(dc_gpu_sampler *t, dc_program *program, const dc_feeds *feeds) {
    std::vector<pack_job> list;
    std::vector<int> firsts;
    for (int p = 0; p < feeds->pack_count; p++) {
        const dc_pack *pack = &feeds->packs[p];
        pack_job job = {(float *)dc_program_input(program, pack->index).p,
                        t->job.stream[pack->steps],
                        (int64_t)pack->known,
                        feeds->fixed_rows[p],
                        dc_program_used(program, pack->input),
                        -1};
        int before = -1;
        for (int q = 0; q < p; q++)
            if (feeds->packs[q].input == pack->input) before = q;
        if (before < 0)
            firsts.push_back(p);
        else
            list[(size_t)before].next = p;
        list.push_back(job);
    }
    t->pack_inputs = (int)firsts.size();
    if (list.empty()) return DC_OK;
    DC_TRY(send(t->cuda, list.data(), list.size() * sizeof(pack_job), "feeds", (void **)&t->packs));
    return send(t->cuda, firsts.data(), firsts.size() * sizeof(int), "feeds", (void **)&t->firsts);
}

// A feed of a rule that gives several rows for every row of the batch is as many jobs, each for one of them: it writes
// every so-many-th row of the input, and reads every so-many-th of what is drawn, or of what a feeder left.
static void add_jobs(std::vector<feed_job> *list, const feed_job *job, int times) {
    for (int k = 0; k < times; k++) {
        feed_job one = *job;
        one.out = (char *)job->out + (int64_t)k * job->ld * (job->half ? 2 : 4);
        one.ld = times * job->ld;
        one.stride = times;
        if (job->rows) {
            one.rows = job->rows + k;
        } else if (job->column) {
            one.column = (const float *)job->column + (int64_t)k * job->width;
            one.width = times * job->width;
        }
        list->push_back(one);
    }
}

static dc_status send_feeds(dc_gpu_sampler *t, const origin *o, dc_program *program,
                            const dc_feeds *feeds) {
    std::vector<feed_job> list;
    for (int f = 0; f < feeds->feed_count; f++) {
        const dc_feed *feed = &feeds->feeds[f];
        dc_cuda_input in = dc_program_input(program, feed->input);
        bool packed = feed->pack && !o->feeder;
        int row0 = packed ? 0 : feed->pack ? pack_row(feeds, feed->pack) : feed->row0;
        feed_job job = {};
        if (packed) job.place = (const float *)dc_program_input(program, feed->pack->index).p;
        job.out = (char *)in.p + ((int64_t)row0 * in.ld + feed->col0) * (in.half ? 2 : 4);
        job.ld = in.ld;
        job.half = in.half;
        job.rows = t->job.stream[feed->rule];
        job.take = feed->draw ? feed->take : feed->one_hot ? feed->one_hot : 1;
        job.drawn = feed->draw > 0;
        job.crop = feed->crop;
        job.crop_by = feeds->crop;
        job.draw = feeds->draws[feed->draw];
        job.one_hot = feed->one_hot;
        job.repeat = feed->repeat ? feed->repeat : 1;
        if (feed->column && !feed->one_hot)
            job.take = feed->take ? feed->take : feed->column->width;
        if (feed->scale) DC_TRY(take_scale(t, feed, &job));
        if (o->feeder)
            take_block(o, f, &job);
        else if (feed->column)
            DC_TRY(take_column(o, feed, &job));
        job.copies = job.column && job.type == DC_TYPE_F32 && !job.drawn && !job.one_hot &&
                     !job.crop && !job.mean && job.repeat == 1;
        add_jobs(&list, &job, feed->times > 1 ? feed->times : 1);
    }
    t->feed_count = (int)list.size();
    DC_TRY(send(t->cuda, list.data(), list.size() * sizeof(feed_job), "feeds", (void **)&t->feeds));
    return o->feeder ? place_packs(t, program, feeds) : send_packs(t, program, feeds);
}

extern "C" bool dc_gpu_sampler_draws(const dc_row_table *rows) {
    const dc_row_rule *tree = dc_rows_tree(rows);
    return !(tree && tree->split != DC_SPLIT_MIDPOINT) && rows->batch <= BATCH_MAX;
}

static dc_status check(const dc_row_table *rows) {
    if (dc_gpu_sampler_draws(rows)) return DC_OK;
    if (rows->batch <= BATCH_MAX)
        return dc_fail(DC_UNSUPPORTED, "use split=midpoint, feed=host, or --device cpu",
                       "the GPU cannot draw trees with chosen splits");
    return dc_fail(DC_UNSUPPORTED, "lower batch, or use feed=host",
                   "the GPU draws batches of at most %d rows (%d)", (int)BATCH_MAX, rows->batch);
}

static dc_status build(dc_gpu_sampler *t, dc_gpu_columns *shared, dc_program *program,
                       const dc_sampler *sampler, const dc_feeds *feeds, const dc_dataset *data) {
    const dc_row_table *rows = dc_sampler_rows(sampler);
    DC_TRY(check(rows));
    DC_CHECK(feeds->first == 0 && feeds->batch == rows->batch);
    draw_job *j = &t->job;
    j->laws = *dc_sampler_laws(sampler);
    j->batch = rows->batch;
    j->state = dc_program_state(program);
    size_t batch = (size_t)rows->batch, slots = j->laws.tree >= 0 ? (size_t)j->laws.slots : 1;
    DC_TRY(send_once(shared, j->laws.set.start, ((size_t)j->laws.set.count + 1) * sizeof(int64_t),
                     "trajectories", (const void **)&j->laws.set.start));
    if (j->laws.set.grown)
        DC_TRY(send_once(shared, j->laws.set.grown, sizeof(int64_t), "trajectories",
                         (const void **)&j->laws.set.grown));
    DC_TRY(dc_cuda_take(t->cuda, slots * sizeof(slot_words), "slots", "lower slots",
                        (void **)&j->slot));
    DC_TRY(dc_cuda_take(t->cuda, batch * sizeof(slot_words), "slots", NULL, (void **)&j->renewed));
    DC_TRY(dc_cuda_take(t->cuda, batch * sizeof(int32_t), "slots", NULL, (void **)&j->last));
    for (int s = 0; s < rows->count; s++)
        DC_TRY(dc_cuda_take(t->cuda, batch * (size_t)dc_row_times(&rows->rule[s]) * sizeof(int64_t),
                            "a batch", "lower batch", (void **)&j->stream[s]));
    origin o = {};
    o.shared = shared;
    o.data = data;
    DC_TRY(send_feeds(t, &o, program, feeds));
    return dc_gpu_sampler_put(t, sampler);
}

extern "C" dc_status dc_gpu_columns_new(dc_gpu_columns **out, dc_cuda *cuda) {
    *out = new dc_gpu_columns();
    (*out)->cuda = cuda;
    return DC_OK;
}

extern "C" void dc_gpu_columns_free(dc_gpu_columns *shared) {
    delete shared;
}

// The copy of an array; NULL: there is none.
static char *copy_of(const dc_gpu_columns *shared, const void *host) {
    for (size_t i = 0; i < shared->seen.size(); i++)
        if (shared->seen[i] == host) return (char *)shared->sent[i];
    return NULL;
}

extern "C" dc_status dc_gpu_columns_renew(dc_gpu_columns *shared, const dc_dataset *data,
                                          int64_t first, int64_t count) {
    for (int c = 0; c < data->column_count; c++) {
        const dc_column *column = &data->columns[c];
        char *copy = copy_of(shared, dc_column_at(column, 0, 0));
        size_t row = dc_column_row_size(column);
        if (copy)
            DC_TRY(dc_cuda_put(shared->cuda, copy + (size_t)first * row,
                               dc_column_at(column, first, 0), (size_t)count * row));
    }
    char *grown = data->grown ? copy_of(shared, data->grown) : NULL;
    return grown ? dc_cuda_put(shared->cuda, grown, data->grown, sizeof *data->grown) : DC_OK;
}

extern "C" dc_status dc_gpu_sampler_new(dc_gpu_sampler **out, dc_gpu_columns *shared,
                                        dc_program *program, const dc_sampler *sampler,
                                        const dc_feeds *feeds, const dc_dataset *data) {
    *out = NULL;
    dc_gpu_sampler *t = new dc_gpu_sampler();
    t->cuda = shared->cuda;
    dc_status status = build(t, shared, program, sampler, feeds, data);
    if (status != DC_OK)
        dc_gpu_sampler_free(t);
    else
        *out = t;
    return status;
}

extern "C" dc_status dc_gpu_sampler_fed(dc_gpu_sampler **out, dc_cuda *cuda, dc_program *program,
                                        const dc_sampler *sampler, const dc_feeds *feeds,
                                        const dc_feeder *feeder, int member, const void *ring,
                                        int steps) {
    *out = NULL;
    dc_gpu_sampler *t = new dc_gpu_sampler();
    t->cuda = cuda;
    t->job.laws.seed = dc_sampler_laws(sampler)->seed; // of noise
    t->job.laws.tree = -1;
    t->job.batch = feeds->batch;
    t->job.first = feeds->first;
    t->job.state = dc_program_state(program);
    t->job.ring_steps = steps;
    t->job.step_bytes = (int64_t)dc_feeder_bytes(feeder);
    origin o = {};
    o.feeder = feeder;
    o.member = member;
    o.ring = (const char *)ring;
    dc_status status = send_feeds(t, &o, program, feeds);
    if (status != DC_OK)
        dc_gpu_sampler_free(t);
    else
        *out = t;
    return status;
}

extern "C" void dc_gpu_sampler_free(dc_gpu_sampler *t) {
    delete t;
}

extern "C" dc_status dc_gpu_sampler_draw(dc_gpu_sampler *t, int ahead) {
    const draw_job *j = &t->job;
    bool drawn = !j->ring_steps, tree = drawn && j->laws.tree >= 0, rest = false;
    for (int r = 0; drawn && r < j->laws.count; r++)
        rest = rest || !j->laws.rule[r].on_tree;
    int threads = ROWS * COUNTERS, trees = tree ? (j->batch + ROWS - 1) / ROWS : 0;
    int blocks = trees + (rest ? (j->batch + threads - 1) / threads : 0);
    cudaStream_t stream = dc_cuda_stream(t->cuda);
    DC_TRY(dc_cuda_want_shared(t->cuda, (const void *)draw));
    if (blocks) draw<<<blocks, threads, tree ? (size_t)j->batch * 4 : 0, stream>>>(*j, ahead);
    return dc_cuda_started("sampling");
}

extern "C" dc_status dc_gpu_sampler_pack(dc_gpu_sampler *t) {
    if (!t->packs) return DC_OK;
    DC_TRY(dc_cuda_want_shared(t->cuda, (const void *)pack_rows));
    pack_rows<<<t->pack_inputs, 1024, 0, dc_cuda_stream(t->cuda)>>>(t->packs, t->firsts,
                                                                    t->job.batch);
    return dc_cuda_started("sampling");
}

extern "C" dc_status dc_gpu_sampler_gather(dc_gpu_sampler *t, int ahead) {
    int warps = t->feed_count * t->job.batch;
    DC_TRY(dc_cuda_want_shared(t->cuda, (const void *)gather));
    gather<<<(warps + 7) / 8, 256, 0, dc_cuda_stream(t->cuda)>>>(t->job, t->feeds, t->feed_count,
                                                                 ahead);
    return dc_cuda_started("sampling");
}

// ---- state ----

static size_t slot_bytes(const dc_gpu_sampler *t) {
    static_assert(sizeof(slot_words) == DC_SLOT_WORDS * sizeof(int64_t), "words of a slot");
    return (size_t)t->job.laws.slots * sizeof(slot_words);
}

extern "C" dc_status dc_gpu_sampler_put(dc_gpu_sampler *t, const dc_sampler *sampler) {
    if (t->job.laws.tree < 0) return DC_OK;
    std::vector<int64_t> words(slot_bytes(t) / sizeof(int64_t));
    dc_sampler_get_slots(sampler, words.data());
    return dc_cuda_put(t->cuda, t->job.slot, words.data(), slot_bytes(t));
}

extern "C" dc_status dc_gpu_sampler_get(dc_gpu_sampler *t, dc_sampler *sampler, uint64_t step) {
    if (t->job.laws.tree < 0) {
        dc_sampler_skip(sampler, step);
        return DC_OK;
    }
    std::vector<int64_t> words(slot_bytes(t) / sizeof(int64_t));
    DC_TRY(dc_cuda_get(t->cuda, words.data(), t->job.slot, slot_bytes(t)));
    return dc_sampler_set_slots(sampler, words.data(), step);
}
