// Feeder, see feeder.h. A chunk is made in two parts: its integers, member by member, then its rows, as
// many small blocks for the pool. Of a mapped data set the integers are drawn a chunk early, so that the
// disk can be asked for the rows of the next chunk before those of this one are copied. Like
// sample/ahead.h, that is done only while it helps.
//
// A sampler that has run ahead cannot go back, and a checkpoint wants it as of the step that is trained.
// So its state is kept for the chunks of late, and the few steps from there are drawn again.
#include "sample/feeder.h"

#include "base/pages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT = 16, ALIGN = 256, CHUNKS_READ_AHEAD = 8, FAULTS = 16, ERROR_BYTES = 256 };

typedef struct block {
    int feed; // the first that takes it
    int skip, take;
    size_t offset; // within a member's part of a step
} block;

typedef struct kept {
    uint64_t step;
    int64_t *words; // NULL: none
    size_t count;
} kept;

typedef struct member {
    dc_sampler *sampler; // runs ahead
    const dc_feeds *feeds;
    kept kept[KEPT];
    dc_status status; // of drawing
    char error[ERROR_BYTES];
} member;

typedef struct draft { // the integers of a chunk
    uint64_t first;
    int steps;     // 0: none
    int64_t *rows; // (member, DC_FEEDER_STEPS, block, batch)
} draft;

struct dc_feeder {
    member *members;
    int count, batch, block_count;
    block blocks[DC_FEEDS_MAX];
    int block_of[DC_FEEDS_MAX]; // of each feed; -1: none
    size_t member_bytes;
    dc_pool *pool;
    draft now, next;
    uint64_t step;
    bool mapped;
    int left; // chunks to read ahead before it is tried without
    long faults;
};

// ---- building ----

static bool needs_block(const dc_feed *f) {
    return f->draw == DC_DRAW_NONE && (f->column || !f->one_hot);
}

static block block_for(const dc_feed *f, int feed) {
    block b = {.feed = feed, .take = 1};
    if (f->column && !f->one_hot) {
        b.skip = f->skip;
        b.take = f->take ? f->take : f->column->width;
    }
    return b;
}

static bool same_block(const dc_feeds *feeds, const block *a, const block *b) {
    const dc_feed *x = &feeds->feeds[a->feed], *y = &feeds->feeds[b->feed];
    const float *p = x->column ? x->column->values : NULL,
                *q = y->column ? y->column->values : NULL;
    return p == q && x->stream == y->stream && a->skip == b->skip && a->take == b->take;
}

// Feeds that take the same numbers share a block.
static void list_blocks(dc_feeder *f, const dc_feeds *feeds) {
    size_t at = 0;
    for (int i = 0; i < feeds->feed_count; i++) {
        f->block_of[i] = -1;
        if (!needs_block(&feeds->feeds[i])) continue;
        block b = block_for(&feeds->feeds[i], i);
        int k = 0;
        while (k < f->block_count && !same_block(feeds, &f->blocks[k], &b))
            k++;
        f->block_of[i] = k;
        if (k < f->block_count) continue;
        b.offset = at;
        f->blocks[f->block_count++] = b;
        size_t bytes = (size_t)f->batch * (size_t)b.take * sizeof(float);
        at += (bytes + ALIGN - 1) / ALIGN * ALIGN;
    }
    f->member_bytes = at;
}

static dc_status make_draft(const dc_feeder *f, draft *d) {
    size_t rows = (size_t)f->count * DC_FEEDER_STEPS * (size_t)f->block_count * (size_t)f->batch;
    d->rows = malloc((rows + 1) * sizeof *d->rows);
    return d->rows ? DC_OK : dc_fail(DC_NO_MEMORY, "lower batch", "no memory to draw rows ahead");
}

static dc_status build(dc_feeder *f, const dc_feeder_source *sources) {
    f->batch = sources->feeds->batch;
    list_blocks(f, sources->feeds);
    for (int m = 0; m < f->count; m++) {
        const dc_feeder_source *s = &sources[m];
        const dc_sampler_spec *spec = dc_sampler_spec_of(s->sampler);
        if (spec->split == DC_SPLIT_MAX)
            return dc_fail(
                DC_UNSUPPORTED, "use split=midpoint or random, or --device cpu",
                "trees whose splits the critic chooses (split=max) cannot be drawn ahead");
        f->members[m].feeds = s->feeds;
        DC_TRY(dc_sampler_new(&f->members[m].sampler, s->data, spec));
        DC_TRY(dc_feeder_seek(f, m, s->sampler));
        for (int i = 0; i < s->feeds->feed_count; i++)
            f->mapped |= s->feeds->feeds[i].column && s->feeds->feeds[i].column->mapped;
    }
    f->left = CHUNKS_READ_AHEAD;
    f->faults = dc_disk_faults();
    DC_TRY(make_draft(f, &f->now));
    return make_draft(f, &f->next);
}

dc_status dc_feeder_new(dc_feeder **out, const dc_feeder_source *sources, int count,
                        dc_pool *pool) {
    *out = NULL;
    dc_feeder *f = calloc(1, sizeof *f);
    if (f) f->members = calloc((size_t)count, sizeof *f->members);
    if (!f || !f->members) {
        free(f);
        return dc_fail(DC_NO_MEMORY, NULL, "no memory for %d samplers", count);
    }
    f->count = count;
    f->pool = pool;
    dc_status status = build(f, sources);
    if (status != DC_OK) return dc_feeder_free(f), status;
    *out = f;
    return DC_OK;
}

void dc_feeder_free(dc_feeder *f) {
    if (!f) return;
    for (int m = 0; m < f->count; m++) {
        dc_sampler_free(f->members[m].sampler);
        for (int k = 0; k < KEPT; k++)
            free(f->members[m].kept[k].words);
    }
    free(f->now.rows);
    free(f->next.rows);
    free(f->members);
    free(f);
}

size_t dc_feeder_bytes(const dc_feeder *f) {
    return (size_t)f->count * f->member_bytes;
}

dc_feeder_block dc_feeder_find(const dc_feeder *f, int number, int feed) {
    int k = f->block_of[feed];
    if (k < 0) return (dc_feeder_block){0};
    return (dc_feeder_block){.used = true,
                             .offset = (size_t)number * f->member_bytes + f->blocks[k].offset,
                             .width = f->blocks[k].take};
}

uint64_t dc_feeder_step(const dc_feeder *f) {
    return f->step;
}

// ---- state ----

static dc_status copy_state(dc_sampler *to, const dc_sampler *from) {
    int64_t *words;
    size_t count;
    DC_TRY(dc_sampler_save(from, &words, &count));
    dc_status status = dc_sampler_load(to, words, count);
    free(words);
    return status;
}

dc_status dc_feeder_seek(dc_feeder *f, int number, const dc_sampler *sampler) {
    member *m = &f->members[number];
    for (int k = 0; k < KEPT; k++) {
        free(m->kept[k].words);
        m->kept[k] = (kept){0};
    }
    f->step = dc_sampler_step(sampler);
    f->now.steps = f->next.steps = 0;
    return copy_state(m->sampler, sampler);
}

static kept *kept_for(member *m, uint64_t step) {
    return &m->kept[step / DC_FEEDER_STEPS % KEPT];
}

static dc_status keep_state(member *m) {
    uint64_t step = dc_sampler_step(m->sampler);
    kept *k = kept_for(m, step);
    free(k->words);
    *k = (kept){.step = step};
    return dc_sampler_save(m->sampler, &k->words, &k->count);
}

dc_status dc_feeder_state(const dc_feeder *f, int number, uint64_t step, dc_sampler *sampler) {
    member *m = &f->members[number];
    const kept *k = kept_for(m, step);
    bool near = k->words && k->step <= step && k->step / DC_FEEDER_STEPS == step / DC_FEEDER_STEPS;
    if (dc_sampler_step(m->sampler) == step)
        DC_TRY(copy_state(sampler, m->sampler));
    else if (near)
        DC_TRY(dc_sampler_load(sampler, k->words, k->count));
    DC_CHECK(dc_sampler_step(sampler) <= step);
    while (dc_sampler_step(sampler) < step) // all the way, if no state of that chunk is kept
        DC_TRY(dc_sampler_next(sampler, dc_sampler_step(sampler)));
    return DC_OK;
}

// ---- integers ----

typedef struct job {
    dc_feeder *f;
    draft *d;
    char *out;
} job;

static int64_t *rows_of(const dc_feeder *f, const draft *d, int number, int step, int k) {
    int64_t at = ((int64_t)number * DC_FEEDER_STEPS + step) * f->block_count + k;
    return d->rows + at * f->batch;
}

static dc_status draw_member(const job *j, int number) {
    dc_feeder *f = j->f;
    member *m = &f->members[number];
    DC_TRY(keep_state(m));
    for (int s = 0; s < j->d->steps; s++) {
        DC_TRY(dc_sampler_next(m->sampler, j->d->first + (uint64_t)s));
        for (int k = 0; k < f->block_count; k++)
            memcpy(rows_of(f, j->d, number, s, k),
                   dc_sampler_stream(m->sampler, m->feeds->feeds[f->blocks[k].feed].stream),
                   (size_t)f->batch * sizeof(int64_t));
    }
    return DC_OK;
}

static void draw_block(void *ctx, int number) {
    const job *j = ctx;
    member *m = &j->f->members[number];
    m->status = draw_member(j, number);
    if (m->status != DC_OK) snprintf(m->error, sizeof m->error, "%s", dc_error()); // of this thread
}

// The integers of the chunk that the samplers stand at.
static dc_status draw_chunk(dc_feeder *f, draft *d) {
    d->first = dc_sampler_step(f->members->sampler);
    d->steps = DC_FEEDER_STEPS - (int)(d->first % DC_FEEDER_STEPS);
    for (int m = 1; m < f->count; m++)
        DC_CHECK(dc_sampler_step(f->members[m].sampler) == d->first);
    job j = {.f = f, .d = d};
    dc_pool_run(f->pool, draw_block, &j, f->count);
    for (int m = 0; m < f->count; m++)
        if (f->members[m].status != DC_OK)
            return dc_fail(f->members[m].status, NULL, "%s", f->members[m].error);
    return DC_OK;
}

// ---- rows ----

typedef struct place {
    int number, step, k;
} place;

static place place_of(const job *j, int index) {
    const dc_feeder *f = j->f;
    int per_member = j->d->steps * f->block_count;
    return (place){index / per_member, index % per_member / f->block_count, index % f->block_count};
}

static void copy_block(void *ctx, int index) {
    const job *j = ctx;
    const dc_feeder *f = j->f;
    place p = place_of(j, index);
    const block *b = &f->blocks[p.k];
    const dc_column *column = f->members[p.number].feeds->feeds[b->feed].column;
    const int64_t *rows = rows_of(f, j->d, p.number, p.step, p.k);
    int slot = (int)(j->d->first % DC_FEEDER_STEPS) + p.step;
    float *out = (float *)(j->out + (size_t)slot * dc_feeder_bytes(f) +
                           (size_t)p.number * f->member_bytes + b->offset);
    for (int r = 0; r < f->batch; r++, out += b->take) {
        if (column)
            memcpy(out, column->values + rows[r] * column->width + b->skip,
                   (size_t)b->take * sizeof *out);
        else
            *out = (float)rows[r];
    }
}

static void want_block(void *ctx, int index) {
    const job *j = ctx;
    const dc_feeder *f = j->f;
    place p = place_of(j, index);
    const block *b = &f->blocks[p.k];
    const dc_column *column = f->members[p.number].feeds->feeds[b->feed].column;
    if (!column || !column->mapped) return;
    const int64_t *rows = rows_of(f, j->d, p.number, p.step, p.k);
    for (int r = 0; r < f->batch; r++)
        dc_pages_want(column->values + rows[r] * column->width + b->skip,
                      (size_t)b->take * sizeof(float));
}

// Draw the chunk after this one, and have the disk fetch its rows while it still waits now and then.
static dc_status read_ahead(dc_feeder *f) {
    DC_TRY(draw_chunk(f, &f->next));
    long faults = dc_disk_faults();
    if (faults - f->faults >= FAULTS) f->left = CHUNKS_READ_AHEAD;
    f->faults = faults;
    if (!f->left) return DC_OK;
    f->left--;
    job j = {.f = f, .d = &f->next};
    dc_pool_run(f->pool, want_block, &j, f->count * f->next.steps * f->block_count);
    return DC_OK;
}

dc_status dc_feeder_fill(dc_feeder *f, void *out) {
    draft spare = f->now;
    f->now = f->next;
    f->next = spare;
    f->next.steps = 0;
    if (!f->now.steps) DC_TRY(draw_chunk(f, &f->now));
    if (f->mapped) DC_TRY(read_ahead(f));
    job j = {.f = f, .d = &f->now, .out = out};
    dc_pool_run(f->pool, copy_block, &j, f->count * f->now.steps * f->block_count);
    f->step = f->now.first + (uint64_t)f->now.steps;
    f->now.steps = 0;
    return DC_OK;
}
