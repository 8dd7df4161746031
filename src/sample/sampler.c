// Sampler, see sampler.h: checks the spec once, then fills the streams of a step from the laws in
// sample/rows.h and the slots. Rows draw independently of each other; only slots carry state from
// step to step, and that state is what dc_sampler_save writes.
#include "sample/sampler.h"

#include "sample/laws.h"
#include "sample/slots.h"

#include <math.h>
#include <stdlib.h>

enum {
    STATE_VERSION = 1,
    HEADER_WORDS = 9, // version, seed, batch, segments, split, order, slots, rows, next step
    SLOTS_MAX = 1 << 20,
    BATCH_MAX = 1 << 24,
};

struct dc_sampler {
    dc_sampler_spec spec;
    dc_laws laws;
    uint64_t next;   // step to come
    dc_slots *slots; // TREE only
    int32_t *pick;   // (batch) slot of each row; TREE only
    int64_t *memory; // (streams in use, batch)
    int64_t *stream[DC_STREAMS];
};

// ---- checks ----

static dc_status check_law(const dc_sampler_spec *spec) {
    double sum = spec->goal_current + spec->goal_future + spec->goal_random;
    if (!(spec->gamma >= 0 && spec->gamma < 1))
        return dc_fail(DC_USAGE, "give 0 <= gamma < 1", "impossible discount (gamma=%g)",
                       spec->gamma);
    if (!spec->propagation) return DC_OK;
    if (spec->n < 1)
        return dc_fail(DC_USAGE, "give at least 1", "impossible horizon (n=%d)", spec->n);
    if (spec->goal_pairs) return DC_OK;
    if (!(spec->goal_current >= 0 && spec->goal_future >= 0 && spec->goal_random >= 0 &&
          fabs(sum - 1) < 1e-6))
        return dc_fail(DC_USAGE, "goal_current, goal_future and goal_random must add up to 1",
                       "impossible mixture of goals (%g, %g, %g)", spec->goal_current,
                       spec->goal_future, spec->goal_random);
    return DC_OK;
}

static dc_status check_spec(const dc_sampler_spec *spec) {
    if (spec->batch < 1 || spec->batch > BATCH_MAX)
        return dc_fail(DC_USAGE, "give 1 to 16777216", "impossible batch (%d)", spec->batch);
    if (spec->segments == DC_SEG_TREE && (spec->slots < 1 || spec->slots > SLOTS_MAX))
        return dc_fail(DC_USAGE, "give 1 to 1048576", "impossible number of slots (%d)",
                       spec->slots);
    if (spec->segments == DC_SEG_PAIRS && spec->split == DC_SPLIT_MAX)
        return dc_fail(DC_UNSUPPORTED, "use split=midpoint or split=random",
                       "pairs without a tree have no max-based split");
    if (spec->segments == DC_SEG_TREE && spec->split == DC_SPLIT_MAX)
        DC_CHECK(spec->choose && spec->rebuild_every >= 1);
    return check_law(spec);
}

// Read the trajectory table and check it: the draws rely on it.
static dc_status take_table(dc_trajectories *set, const dc_dataset *data) {
    const int64_t *start = data->traj_start;
    *set = (dc_trajectories){.start = start, .count = data->traj_count, .rows = data->rows};
    if (set->count < 1 || start[0] != 0 || start[set->count] != set->rows)
        return dc_fail(DC_BAD_INPUT, NULL, "the table of trajectories does not cover the data set");
    set->each = start[1] - start[0];
    for (int64_t t = 0; t < set->count; t++) {
        int64_t n = start[t + 1] - start[t];
        if (n < 2 || n > DC_TREE_STEPS_MAX)
            return dc_fail(DC_BAD_INPUT, "a trajectory has 2 to 2^40 states",
                           "impossible trajectory (number %lld, %lld states)", (long long)t,
                           (long long)n);
        if (n != set->each) set->each = 0;
        set->longest = n > set->longest ? n : set->longest;
    }
    return DC_OK;
}

// ---- construction ----

// Shares of goals: the state itself, later states, and any row for the rest.
static dc_goal_law goal_law(double current, double random, dc_law law_ahead,
                            const dc_geometric *geometric) {
    const double words = 4294967296.0;
    dc_goal_law law = {.uniform = law_ahead == DC_LAW_UNIFORM, .geometric = *geometric};
    law.current = (uint64_t)(current * words + 0.5);
    // Where there are no random goals the last kind is the future: no rounding may leave a gap.
    law.future = random <= 0 ? (uint64_t)words : (uint64_t)((1 - random) * words + 0.5);
    return law;
}

static dc_laws laws_of(const dc_sampler_spec *spec, const dc_trajectories *set) {
    dc_laws laws = {.set = *set, .seed = spec->seed, .n = spec->n, .goal_pairs = spec->goal_pairs};
    laws.pairs = dc_geometric_of(spec->gamma, set->longest);
    laws.goals = goal_law(spec->goal_current, spec->goal_random, spec->goal_law, &laws.pairs);
    laws.actor_goals = goal_law(0, spec->actor_random, spec->actor_law, &laws.pairs);
    laws.stage_length = spec->stage_length;
    if (laws.stage_length > 0) {
        laws.stages = (set->longest - 2) / laws.stage_length + 1;
        laws.stage_steps = spec->stage_total / (uint64_t)laws.stages;
    }
    laws.pairs_uniform = spec->pair_law == DC_LAW_UNIFORM;
    laws.split_random = spec->split == DC_SPLIT_RANDOM;
    laws.down = spec->order == DC_ORDER_DOWN;
    return laws;
}

static bool fills(const dc_sampler_spec *spec, dc_stream stream) {
    switch (stream) {
    case DC_I:
    case DC_K:
    case DC_J:
    case DC_LEFT:
    case DC_RIGHT:
        return spec->segments != DC_SEG_NONE;
    case DC_P:
    case DC_N:
    case DC_G:
    case DC_NSTEPS:
    case DC_OFF:
        return spec->propagation;
    case DC_A:
    case DC_A1:
        return spec->grounding;
    case DC_S:
    case DC_AG:
        return spec->actor;
    case DC_STREAMS:
        break;
    }
    return false;
}

static dc_status allocate(dc_sampler *sampler) {
    size_t batch = (size_t)sampler->spec.batch, used = 0;
    for (dc_stream stream = 0; stream < DC_STREAMS; stream++)
        used += fills(&sampler->spec, stream);
    sampler->memory = calloc(used * batch + 1, sizeof *sampler->memory);
    if (sampler->spec.segments == DC_SEG_TREE) sampler->pick = calloc(batch, sizeof *sampler->pick);
    if (!sampler->memory || (sampler->spec.segments == DC_SEG_TREE && !sampler->pick))
        return dc_fail(DC_NO_MEMORY, "lower batch", "no memory for a batch of %zu rows", batch);
    int64_t *at = sampler->memory;
    for (dc_stream stream = 0; stream < DC_STREAMS; stream++) {
        if (!fills(&sampler->spec, stream)) continue;
        sampler->stream[stream] = at;
        at += batch;
    }
    if (sampler->spec.segments != DC_SEG_TREE) return DC_OK;
    return dc_slots_new(&sampler->slots, &sampler->laws.set, &sampler->spec);
}

dc_status dc_sampler_new(dc_sampler **out, const dc_dataset *data, const dc_sampler_spec *spec) {
    *out = NULL;
    dc_trajectories set;
    DC_TRY(check_spec(spec));
    DC_TRY(take_table(&set, data));
    dc_sampler *sampler = calloc(1, sizeof *sampler);
    if (!sampler) return dc_fail(DC_NO_MEMORY, NULL, "no memory for a sampler");
    sampler->spec = *spec;
    sampler->laws = laws_of(spec, &set);
    dc_status status = allocate(sampler);
    if (status != DC_OK) return dc_sampler_free(sampler), status;
    *out = sampler;
    return DC_OK;
}

void dc_sampler_free(dc_sampler *sampler) {
    if (!sampler) return;
    dc_slots_free(sampler->slots);
    free(sampler->pick);
    free(sampler->memory);
    free(sampler);
}

// ---- one step ----

// Which slot each row takes: a call of Philox serves four rows.
static void pick_slots(dc_sampler *sampler, uint64_t step) {
    uint32_t slots = (uint32_t)sampler->spec.slots;
    int batch = sampler->spec.batch;
    for (int row = 0; row < batch; row += 4) {
        dc_u32x4 words = dc_philox(sampler->spec.seed, DC_STREAM_SLOT, step, (uint32_t)row >> 2);
        for (int q = 0; q < 4 && row + q < batch; q++)
            sampler->pick[row + q] = (int32_t)dc_below(words.v[q], slots);
    }
}

static dc_status fill_trees(dc_sampler *sampler, uint64_t step) {
    const dc_sampler_spec *spec = &sampler->spec;
    if (spec->split == DC_SPLIT_MAX && step % (uint64_t)spec->rebuild_every == 0)
        DC_TRY(dc_slots_rebuild(sampler->slots));
    pick_slots(sampler, step);
    return dc_slots_take(sampler->slots, sampler->pick, spec->batch, sampler->stream[DC_I],
                         sampler->stream[DC_K], sampler->stream[DC_J]);
}

static void fill_pairs(dc_sampler *sampler, uint64_t step) {
    for (uint32_t row = 0; row < (uint32_t)sampler->spec.batch; row++) {
        dc_segment s = dc_row_pair(&sampler->laws, step, row);
        sampler->stream[DC_I][row] = s.i;
        sampler->stream[DC_K][row] = s.k;
        sampler->stream[DC_J][row] = s.j;
    }
}

static void fill_lengths(dc_sampler *sampler) {
    const int64_t *i = sampler->stream[DC_I], *k = sampler->stream[DC_K],
                  *j = sampler->stream[DC_J];
    for (int row = 0; row < sampler->spec.batch; row++) {
        sampler->stream[DC_LEFT][row] = k[row] - i[row];
        sampler->stream[DC_RIGHT][row] = j[row] - k[row];
    }
}

static void fill_propagation(dc_sampler *sampler, uint64_t step) {
    for (uint32_t row = 0; row < (uint32_t)sampler->spec.batch; row++) {
        int64_t goal;
        dc_place place = dc_row_propagation(&sampler->laws, step, row, &goal);
        int64_t steps = dc_steps_ahead(place, sampler->spec.n);
        sampler->stream[DC_P][row] = place.row;
        sampler->stream[DC_N][row] = place.row + steps;
        sampler->stream[DC_G][row] = goal;
        sampler->stream[DC_NSTEPS][row] = steps;
        sampler->stream[DC_OFF][row] = dc_goal_offset(place, goal);
    }
}

static void fill_actor(dc_sampler *sampler, uint64_t step) {
    for (uint32_t row = 0; row < (uint32_t)sampler->spec.batch; row++)
        sampler->stream[DC_S][row] =
            dc_row_actor(&sampler->laws, step, row, &sampler->stream[DC_AG][row]).row;
}

static void fill_grounding(dc_sampler *sampler, uint64_t step) {
    for (uint32_t row = 0; row < (uint32_t)sampler->spec.batch; row++) {
        int64_t at = dc_row_ground(&sampler->laws, step, row);
        sampler->stream[DC_A][row] = at;
        sampler->stream[DC_A1][row] = at + 1;
    }
}

dc_status dc_sampler_next(dc_sampler *sampler, uint64_t step) {
    DC_CHECK(step == sampler->next);
    const dc_sampler_spec *spec = &sampler->spec;
    if (spec->segments == DC_SEG_TREE) DC_TRY(fill_trees(sampler, step));
    if (spec->segments == DC_SEG_PAIRS) fill_pairs(sampler, step);
    if (spec->segments != DC_SEG_NONE) fill_lengths(sampler);
    if (spec->propagation) fill_propagation(sampler, step);
    if (spec->actor) fill_actor(sampler, step);
    if (spec->grounding) fill_grounding(sampler, step);
    sampler->next = step + 1;
    return DC_OK;
}

void dc_sampler_skip(dc_sampler *sampler, uint64_t step) {
    DC_CHECK(!sampler->slots);
    sampler->next = step;
}

int64_t *dc_sampler_fix(dc_sampler *sampler, dc_stream stream) {
    return sampler->stream[stream];
}

const int64_t *dc_sampler_stream(const dc_sampler *sampler, dc_stream stream) {
    return sampler->stream[stream];
}

uint64_t dc_sampler_step(const dc_sampler *sampler) {
    return sampler->next;
}

const dc_laws *dc_sampler_laws(const dc_sampler *sampler) {
    return &sampler->laws;
}

const dc_sampler_spec *dc_sampler_spec_of(const dc_sampler *sampler) {
    return &sampler->spec;
}

const int32_t *dc_sampler_slot(const dc_sampler *sampler) {
    return sampler->pick;
}

size_t dc_sampler_bytes(const dc_sampler *sampler) {
    size_t batch = (size_t)sampler->spec.batch, bytes = sizeof *sampler;
    for (dc_stream stream = 0; stream < DC_STREAMS; stream++)
        if (sampler->stream[stream]) bytes += batch * sizeof **sampler->stream;
    if (sampler->slots) bytes += batch * sizeof *sampler->pick + dc_slots_bytes(sampler->slots);
    return bytes;
}

// ---- state as words: the spec that gave it meaning, the next step, the slots ----

static void header(const dc_sampler *sampler, int64_t words[HEADER_WORDS]) {
    const dc_sampler_spec *spec = &sampler->spec;
    const int64_t values[HEADER_WORDS] = {
        STATE_VERSION,         (int64_t)spec->seed,  spec->batch, (int64_t)spec->segments,
        (int64_t)spec->split,  (int64_t)spec->order, spec->slots, sampler->laws.set.rows,
        (int64_t)sampler->next};
    for (int w = 0; w < HEADER_WORDS; w++)
        words[w] = values[w];
}

dc_status dc_sampler_save(const dc_sampler *sampler, int64_t **words, size_t *count) {
    size_t slots = sampler->slots ? dc_slots_word_count(sampler->slots) : 0;
    *count = HEADER_WORDS + slots;
    *words = malloc(*count * sizeof **words);
    if (!*words) return dc_fail(DC_NO_MEMORY, NULL, "no memory for %zu words of state", *count);
    header(sampler, *words);
    if (sampler->slots) dc_slots_save(sampler->slots, *words + HEADER_WORDS);
    return DC_OK;
}

static dc_status check_header(const dc_sampler *sampler, const int64_t *words, size_t count) {
    static const char *const names[HEADER_WORDS] = {
        "version", "seed", "batch", "segments", "split", "order", "slots", "rows", "step"};
    int64_t expected[HEADER_WORDS];
    header(sampler, expected);
    if (count < HEADER_WORDS)
        return dc_fail(DC_BAD_INPUT, "take an earlier checkpoint",
                       "the sampler's state is broken (%zu words)", count);
    for (int w = 0; w < HEADER_WORDS - 1; w++)
        if (words[w] != expected[w])
            return dc_fail(DC_BAD_INPUT, "resume with the config and data of the run",
                           "the sampler's state is of another run (%s %lld, here %lld)", names[w],
                           (long long)words[w], (long long)expected[w]);
    if (words[HEADER_WORDS - 1] < 0)
        return dc_fail(DC_BAD_INPUT, "take an earlier checkpoint",
                       "the sampler's state is broken (step %lld)",
                       (long long)words[HEADER_WORDS - 1]);
    return DC_OK;
}

dc_status dc_sampler_load(dc_sampler *sampler, const int64_t *words, size_t count) {
    DC_TRY(check_header(sampler, words, count));
    if (sampler->slots)
        DC_TRY(dc_slots_load(sampler->slots, words + HEADER_WORDS, count - HEADER_WORDS));
    else if (count != HEADER_WORDS)
        return dc_fail(DC_BAD_INPUT, "take an earlier checkpoint",
                       "the sampler's state is broken (%zu words)", count);
    sampler->next = (uint64_t)words[HEADER_WORDS - 1];
    return DC_OK;
}

dc_status dc_sampler_copy(dc_sampler *to, const dc_sampler *from) {
    int64_t *words;
    size_t count;
    DC_TRY(dc_sampler_save(from, &words, &count));
    dc_status status = dc_sampler_load(to, words, count);
    free(words);
    return status;
}
