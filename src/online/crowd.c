// Crowd, see crowd.h.
#include "online/crowd.h"

#include "base/philox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 8 }; // robots that share a policy's batch

typedef struct robot {
    dc_walk walk;
    dc_philox_draws draws;
    uint64_t number, episode;
    int64_t steps; // of all episodes
    float state[DC_PLANE_STATE_MAX], command[DC_COMMAND];
} robot;

typedef struct block {
    robot *robots; // (count)
    int count;
    dc_infer *policy;
    dc_crowd_sums sums;
    dc_status status;
    char error[512];
} block;

struct dc_crowd {
    dc_crowd_spec spec;
    const dc_replay *replay;
    dc_pool *pool;
    robot *robots; // (spec.count)
    block *blocks;
    int block_count;
    // Of the round under way:
    int steps;
    bool random;
    float *rows;
};

// ---- one robot ----

static void look(const dc_crowd *c, robot *r) {
    double state[DC_PLANE_STATE_MAX], command[DC_COMMAND];
    int width = c->spec.plane->state;
    dc_walk_see(&r->walk, state, command);
    for (int k = 0; k < width; k++)
        r->state[k] = (float)state[k] * c->spec.rates[k];
    for (int k = 0; k < DC_COMMAND; k++)
        r->command[k] = (float)command[k] * c->spec.rates[width + k];
}

// Episodes of all robots have different numbers.
static dc_status begin(const dc_crowd *c, robot *r) {
    uint64_t episode = r->episode++ * (uint64_t)c->spec.count + r->number;
    r->walk.env.draws = dc_draws_philox(&r->draws, c->spec.seed, episode);
    DC_TRY(dc_walk_start(&r->walk));
    look(c, r);
    return DC_OK;
}

static void add_sums(dc_crowd_sums *s, const robot *r, const dc_walk_step *step) {
    s->steps++;
    s->reward += step->reward;
    for (int k = 0; k < 2; k++)
        s->along += r->walk.plane->ball ? 0 : step->moved[k] * (double)r->command[k];
    s->ended += step->ended;
    s->episodes += step->ended || step->cut;
}

// A step, its row, and the next episode where this one is over.
static dc_status advance(const dc_crowd *c, block *b, robot *r, const float *action, float *row) {
    dc_packed p = dc_replay_unpack(c->replay, row);
    const dc_plane *plane = c->spec.plane;
    double wanted[DC_PLANE_ACT_MAX];
    dc_walk_step step;
    size_t state = (size_t)plane->state * sizeof *r->state;
    memcpy(p.obs, r->state, state);
    memcpy(p.command, r->command, sizeof r->command);
    for (int k = 0; k < plane->family->act; k++)
        wanted[k] = (double)(p.act[k] = action[k]);
    DC_TRY(dc_walk_step_by(&r->walk, wanted, &step));
    add_sums(&b->sums, r, &step);
    look(c, r);
    memcpy(p.next_obs, r->state, state);
    memcpy(p.next_command, r->command, sizeof r->command);
    *p.base = (float)step.base;
    for (int k = 0; k < DC_COMMAND; k++)
        p.pull[k] = (float)step.pull[k];
    *p.mask = step.ended ? 0 : 1;
    r->steps++;
    return step.ended || step.cut ? begin(c, r) : DC_OK;
}

// ---- a block ----

static void draw_random(const dc_crowd *c, const robot *r, float *action) {
    for (int k = 0; k < c->spec.plane->family->act; k++) {
        dc_u32x4 words = dc_philox(c->spec.seed, DC_STREAM_EXPLORE, (uint64_t)r->steps,
                                   (uint32_t)r->number << 8 | (uint32_t)k);
        action[k] = 2 * dc_unit(words.v[0]) - 1;
    }
}

static dc_status ask(const dc_crowd *c, block *b) {
    for (int i = 0; i < b->count; i++) {
        const robot *r = &b->robots[i];
        uint64_t moment = (uint64_t)r->steps * (uint64_t)c->spec.count + r->number;
        dc_infer_write(b->policy, i, r->state, r->command, NULL);
        dc_infer_draw(b->policy, i, c->spec.seed, moment);
    }
    return dc_infer_run(b->policy, b->count);
}

static dc_status take_steps(const dc_crowd *c, block *b) {
    float action[DC_PLANE_ACT_MAX] = {0};
    int act = c->spec.plane->family->act;
    for (int s = 0; s < c->steps; s++) {
        if (!c->random) DC_TRY(ask(c, b));
        for (int i = 0; i < b->count; i++) {
            robot *r = &b->robots[i];
            const dc_real *out = b->policy->out_cells.p + (ptrdiff_t)i * b->policy->out_cells.ld;
            for (int k = 0; k < act; k++)
                action[k] = (float)out[k];
            if (c->random) draw_random(c, r, action);
            int64_t row = (int64_t)s * c->spec.count + (int64_t)r->number;
            DC_TRY(advance(c, b, r, action, c->rows + row * c->replay->width));
        }
    }
    return DC_OK;
}

static void run_block(void *ctx, int number) {
    dc_crowd *c = ctx;
    block *b = &c->blocks[number];
    b->status = take_steps(c, b);
    if (b->status != DC_OK) snprintf(b->error, sizeof b->error, "%s", dc_error());
}

dc_status dc_crowd_round(dc_crowd *c, int steps, bool random, float *rows) {
    c->steps = steps;
    c->random = random;
    c->rows = rows;
    dc_pool_run(c->pool, run_block, c, c->block_count);
    for (int b = 0; b < c->block_count; b++)
        if (c->blocks[b].status != DC_OK)
            return dc_fail(c->blocks[b].status, NULL, "%s", c->blocks[b].error);
    return DC_OK;
}

dc_crowd_sums dc_crowd_take(dc_crowd *c) {
    dc_crowd_sums sum = {0};
    for (int b = 0; b < c->block_count; b++) {
        dc_crowd_sums *s = &c->blocks[b].sums;
        sum.steps += s->steps;
        sum.reward += s->reward;
        sum.along += s->along;
        sum.ended += s->ended;
        sum.episodes += s->episodes;
        *s = (dc_crowd_sums){0};
    }
    return sum;
}

// ---- states: the walk, then what draws and counts ----

enum { COUNTS = 6 };

int64_t dc_crowd_words(const dc_crowd *c) {
    return (int64_t)c->spec.count * (dc_walk_words(&c->robots[0].walk) + COUNTS);
}

void dc_crowd_save(const dc_crowd *c, double *words) {
    for (int i = 0; i < c->spec.count; i++) {
        const robot *r = &c->robots[i];
        dc_walk_save(&r->walk, words);
        words += dc_walk_words(&r->walk);
        const double counts[COUNTS] = {(double)r->episode,       (double)r->steps,
                                       (double)r->draws.episode, (double)r->draws.index,
                                       r->draws.has_spare,       r->draws.spare};
        memcpy(words, counts, sizeof counts);
        words += COUNTS;
    }
}

// Whether numbers of a file are counts.
static bool are_counts(const double *x, int n) {
    for (int k = 0; k < n; k++)
        if (!(x[k] >= 0 && x[k] < 0x1p53)) return false;
    return true;
}

dc_status dc_crowd_load(dc_crowd *c, const double *words) {
    for (int i = 0; i < c->spec.count; i++, words += COUNTS) {
        robot *r = &c->robots[i];
        DC_TRY(dc_walk_load(&r->walk, words));
        words += dc_walk_words(&r->walk);
        if (!are_counts(words, 5) || words[3] > UINT32_MAX)
            return dc_fail(DC_BAD_INPUT, "remove it to begin anew",
                           "impossible counts of robot %d in a learner's state", i);
        r->episode = (uint64_t)words[0];
        r->steps = (int64_t)words[1];
        r->walk.env.draws = dc_draws_philox(&r->draws, c->spec.seed, (uint64_t)words[2]);
        r->draws.index = (uint32_t)words[3];
        r->draws.has_spare = words[4] > 0;
        r->draws.spare = words[5];
        look(c, r);
    }
    return DC_OK;
}

// ---- all of them ----

static dc_status build_block(dc_crowd *c, int number) {
    block *b = &c->blocks[number];
    int first = number * BLOCK, left = c->spec.count - first;
    b->robots = c->robots + first;
    b->count = left < BLOCK ? left : BLOCK;
    for (int i = 0; i < b->count; i++) {
        robot *r = &b->robots[i];
        r->number = (uint64_t)(first + i);
        DC_TRY(dc_walk_init(&r->walk, c->spec.plane, c->spec.world, (dc_draws){0}));
        DC_TRY(begin(c, r));
    }
    return dc_infer_new(&b->policy, DC_INFER_ACT, c->spec.method, c->spec.nets, c->spec.slabs,
                        BLOCK, NULL);
}

dc_status dc_crowd_new(dc_crowd **out, const dc_crowd_spec *spec, const dc_replay *replay,
                       dc_pool *pool) {
    dc_crowd *c = *out = calloc(1, sizeof *c);
    if (!c) return dc_fail(DC_NO_MEMORY, NULL, "no memory");
    *c = (dc_crowd){.spec = *spec, .replay = replay, .pool = pool};
    int blocks = (spec->count + BLOCK - 1) / BLOCK;
    c->robots = calloc((size_t)spec->count, sizeof *c->robots);
    c->blocks = calloc((size_t)blocks, sizeof *c->blocks);
    dc_status status =
        c->robots && c->blocks ? DC_OK : dc_fail(DC_NO_MEMORY, NULL, "no memory for robots");
    for (; status == DC_OK && c->block_count < blocks; c->block_count++)
        status = build_block(c, c->block_count);
    if (status == DC_OK) return DC_OK;
    dc_crowd_free(c);
    *out = NULL;
    return status;
}

void dc_crowd_free(dc_crowd *c) {
    if (!c) return;
    for (int i = 0; c->robots && i < c->spec.count; i++)
        dc_walk_fini(&c->robots[i].walk);
    for (int b = 0; c->blocks && b <= c->block_count && b < (c->spec.count + BLOCK - 1) / BLOCK;
         b++)
        dc_infer_free(c->blocks[b].policy);
    free(c->robots);
    free(c->blocks);
    free(c);
}
