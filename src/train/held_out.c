// Held-out rows, see held_out.h.
//
// Which rows a batch has depends on the step that it is drawn for: a curriculum's segments grow, and trees
// are handed out leaves first. So the batches are spread over the steps of the run, and trees are drawn from
// until every slot has handed out about one of them, before the first batch; the state that the sampler is
// in then is what every measurement begins with.
#include "train/held_out.h"

#include "base/philox.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCHES = 4, PAIRS = 1024, WARM_UP_MAX = 2000, NAME_SIZE = 64 };
static const uint64_t SEED = 0x68656c64; // of all held-out batches

struct dc_held_out {
    dc_agent agent;
    int64_t steps;  // of the run
    int64_t *words; // NULL: its batches have no memory; else the sampler's state before the first
    size_t word_count;
    int64_t from[PAIRS], to[PAIRS]; // rows
    bool pairs;                     // its value predicts steps
    float distances[PAIRS];
    char names[DC_METRICS_MAX + 1][NAME_SIZE];
};

// ---- making ----

// Later states of the same trajectory, uniform over what lies ahead of a uniform state.
static void draw_pairs(dc_held_out *h, const dc_dataset *data) {
    for (int p = 0; p < PAIRS; p++) {
        dc_u32x4 w = dc_philox(SEED, DC_STREAM_HELD_OUT, (uint64_t)p, 0);
        uint64_t a = (uint64_t)w.v[0] << 32 | w.v[1], b = (uint64_t)w.v[2] << 32 | w.v[3];
        int64_t row = (int64_t)(a % (uint64_t)data->rows), low = 0, high = data->traj_count;
        while (high - low > 1) {
            int64_t middle = low + (high - low) / 2;
            if (data->traj_start[middle] <= row)
                low = middle;
            else
                high = middle;
        }
        int64_t last = data->traj_start[low + 1] - 1;
        h->from[p] = row == last ? row - 1 : row;
        h->to[p] = h->from[p] + 1 + (int64_t)(b % (uint64_t)(last - h->from[p]));
    }
}

// Draw from the trees until their slots stand at different places.
static dc_status warm_up(dc_held_out *h) {
    dc_agent *a = &h->agent;
    const dc_row_rule *tree = dc_rows_tree(&a->rows);
    if (!tree) return DC_OK;
    double nodes = 2 * a->method.longest * tree->slots / a->method.batch;
    int64_t steps = tree->split == DC_SPLIT_MAX ? 0 // each would ask the networks
                    : nodes < WARM_UP_MAX       ? (int64_t)nodes
                                                : WARM_UP_MAX;
    for (int64_t s = 0; s < steps; s++)
        DC_TRY(dc_sampler_next(a->sampler, (uint64_t)s));
    return dc_sampler_save(a->sampler, &h->words, &h->word_count);
}

static dc_status build(dc_held_out *h, const dc_run *run, const dc_dataset *data) {
    dc_agent_options options;
    DC_TRY(dc_run_agent_options(run, &options));
    options.seed = SEED;
    options.like = &run->agent;
    options.crop = 0; // what a policy will see
    options.longest = run->agent.method.longest;
    h->steps = run->options.steps;
    DC_TRY(dc_agent_init(&h->agent, run->algo, run->config, &options, data, run->pool));
    h->pairs = h->agent.query && h->agent.query->reading != DC_READ_LOG_RATIO;
    for (int i = 0; i < h->agent.metric_count; i++)
        snprintf(h->names[i], NAME_SIZE, "val_%s", h->agent.metrics[i].name);
    snprintf(h->names[h->agent.metric_count], NAME_SIZE, "val_value_error");
    draw_pairs(h, data);
    return warm_up(h);
}

dc_status dc_held_out_new(dc_held_out **out, const dc_run *run, const dc_dataset *data) {
    dc_held_out *h = *out = calloc(1, sizeof *h);
    if (!h) return dc_fail(DC_NO_MEMORY, NULL, "no memory for held-out rows");
    dc_status status = build(h, run, data);
    if (status == DC_OK) return DC_OK;
    dc_held_out_free(h);
    *out = NULL;
    return dc_fail(status, "give held-out rows of the same kind, or --val off",
                   "held-out data %s: %s", run->options.val, dc_error());
}

void dc_held_out_free(dc_held_out *h) {
    if (!h) return;
    dc_agent_fini(&h->agent);
    free(h->words);
    free(h);
}

int dc_held_out_count(const dc_held_out *h) {
    return h->agent.metric_count + h->pairs;
}

const char *dc_held_out_name(const dc_held_out *h, int i) {
    return h->names[i];
}

// ---- measuring ----

// The rows of batch number k.
static dc_status draw_batch(dc_held_out *h, int k) {
    dc_agent *a = &h->agent;
    uint64_t spread = (uint64_t)((double)h->steps * (k + 0.5) / BATCHES);
    if (!h->words)
        dc_sampler_skip(a->sampler, spread);
    else if (k == 0)
        DC_TRY(dc_sampler_load(a->sampler, h->words, h->word_count));
    a->step = dc_sampler_step(a->sampler);
    return dc_sampler_next(a->sampler, a->step);
}

static dc_status measure_value(dc_held_out *h, double *error) {
    double sum = 0;
    DC_TRY(dc_agent_distances(&h->agent, PAIRS, h->from, h->to, h->distances));
    for (int p = 0; p < PAIRS; p++)
        sum += fabs((double)h->distances[p] - (double)(h->to[p] - h->from[p]));
    *error = sum / PAIRS;
    return DC_OK;
}

dc_status dc_held_out_measure(dc_held_out *h, const dc_agent *trained, double *values) {
    dc_agent *a = &h->agent;
    dc_slabs *mine = &a->params.slabs;
    const dc_slabs *its = &trained->params.slabs;
    memcpy(mine->live, its->live, (size_t)its->size * sizeof *its->live);
    memcpy(mine->ema, its->ema, (size_t)its->ema_size * sizeof *its->ema);
    for (int i = 0; i < a->metric_count; i++)
        values[i] = 0;
    for (int k = 0; k < BATCHES; k++) {
        DC_TRY(draw_batch(h, k));
        dc_agent_run(a);
        for (int i = 0; i < a->metric_count; i++)
            values[i] += (double)*dc_value(&a->exec, a->metrics[i].node).p / BATCHES;
    }
    return h->pairs ? measure_value(h, &values[a->metric_count]) : DC_OK;
}
