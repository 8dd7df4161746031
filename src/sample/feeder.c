// Feeder, see feeder.h. It is a line of three chunks: the first is copied, in many small blocks for the
// pool, while the integers of the third are drawn; of a mapped data set the disk is asked for the rows of
// the second. Like sample/prefetch.h, that is done only while it helps.
//
// Drawing would be the slowest part if one thread did it. Only trees have a memory and must be drawn step
// by step; everything else is a function of the step, and each step of a chunk has a sampler for it.
//
// A sampler that has run ahead cannot go back, and a checkpoint wants it as of the step that is trained.
// So the state of the trees is kept for the chunks of late, and the few steps from there are drawn again.
#include "sample/feeder.h"

#include "base/pages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 3, KEPT = 16, ALIGN = 256, CHUNKS_READ_AHEAD = 8, FAULTS = 16, ERROR_BYTES = 256 };

typedef struct block {
    int feed; // the first that takes it
    int skip, take;
    int rows;      // the batch, or `times` it
    int64_t row0;  // rows of the blocks before it
    size_t offset; // within a member's part of a step
} block;

typedef struct kept {
    uint64_t step;
    int64_t *words; // NULL: none
    size_t count;
} kept;

typedef struct member {
    dc_sampler *trees;                 // runs ahead; without trees it only has the state
    dc_sampler *rest[DC_FEEDER_STEPS]; // Nullable: what else is drawn
    bool has_trees;
    const dc_feeds *feeds;
    kept kept[KEPT];
    dc_status status; // of drawing trees
    char error[ERROR_BYTES];
} member;

typedef struct draft { // the integers of a chunk
    uint64_t first;
    int steps;     // 0: none
    int64_t *rows; // (member, DC_FEEDER_STEPS, rows of all blocks)
} draft;

struct dc_feeder {
    member *members;
    int count, batch, block_count;
    int64_t step_rows; // of all blocks
    block blocks[DC_FEEDS_MAX];
    int block_of[DC_FEEDS_MAX]; // of each feed; -1: none
    size_t member_bytes;
    dc_pool *pool;
    draft line[LINE];
    uint64_t step;
    bool mapped;
    int left; // chunks to read ahead before it is tried without
    long faults;
};

// ---- building ----

static bool needs_block(const dc_feed *f) {
    return !f->draw && (f->column || !f->one_hot);
}

static block block_for(const dc_feed *f, int feed, int batch) {
    block b = {.feed = feed, .take = 1, .rows = batch * (f->times > 1 ? f->times : 1)};
    if (f->column && !f->one_hot) {
        b.skip = f->skip;
        b.take = f->take ? f->take : f->column->width;
    }
    return b;
}

static bool same_block(const dc_feeds *feeds, const block *a, const block *b) {
    const dc_feed *x = &feeds->feeds[a->feed], *y = &feeds->feeds[b->feed];
    const void *p = x->column ? dc_column_at(x->column, 0, 0) : NULL,
               *q = y->column ? dc_column_at(y->column, 0, 0) : NULL;
    return p == q && x->rule == y->rule && a->skip == b->skip && a->take == b->take;
}

// Feeds that take the same numbers share a block.
static void list_blocks(dc_feeder *f, const dc_feeds *feeds) {
    size_t at = 0;
    for (int i = 0; i < feeds->feed_count; i++) {
        f->block_of[i] = -1;
        if (!needs_block(&feeds->feeds[i])) continue;
        block b = block_for(&feeds->feeds[i], i, f->batch);
        int k = 0;
        while (k < f->block_count && !same_block(feeds, &f->blocks[k], &b))
            k++;
        f->block_of[i] = k;
        if (k < f->block_count) continue;
        b.offset = at;
        b.row0 = f->step_rows;
        f->step_rows += b.rows;
        f->blocks[f->block_count++] = b;
        size_t bytes = (size_t)b.rows * (size_t)b.take * sizeof(float);
        at += (bytes + ALIGN - 1) / ALIGN * ALIGN;
    }
    f->member_bytes = at;
}

static dc_status make_draft(const dc_feeder *f, draft *d) {
    size_t rows = (size_t)f->count * DC_FEEDER_STEPS * (size_t)f->step_rows;
    d->rows = malloc((rows + 1) * sizeof *d->rows);
    return d->rows ? DC_OK : dc_fail(DC_NO_MEMORY, "lower batch", "no memory to draw rows ahead");
}

static bool any_off_tree(const dc_row_laws *laws) {
    for (int r = 0; r < laws->count; r++)
        if (!laws->rule[r].on_tree) return true;
    return false;
}

static dc_status make_samplers(member *m, const dc_feeder_source *s) {
    const dc_row_laws *laws = dc_sampler_laws(s->sampler);
    const dc_row_table *rows = dc_sampler_rows(s->sampler);
    m->has_trees = laws->tree >= 0;
    DC_TRY(dc_sampler_new_part(&m->trees, s->data, rows,
                               m->has_trees ? DC_ROWS_ON_TREE : DC_ROWS_ALL));
    for (int k = 0; any_off_tree(laws) && k < DC_FEEDER_STEPS; k++)
        DC_TRY(dc_sampler_new_part(&m->rest[k], s->data, rows, DC_ROWS_OFF_TREE));
    return DC_OK;
}

static dc_status build(dc_feeder *f, const dc_feeder_source *sources) {
    f->batch = sources->feeds->batch;
    list_blocks(f, sources->feeds);
    for (int m = 0; m < f->count; m++) {
        const dc_feeder_source *s = &sources[m];
        const dc_row_rule *tree = dc_rows_tree(dc_sampler_rows(s->sampler));
        if (tree && tree->split == DC_SPLIT_MAX)
            return dc_fail(
                DC_UNSUPPORTED, "use split=midpoint or random, or --device cpu",
                "trees whose splits the critic chooses (split=max) cannot be drawn ahead");
        f->members[m].feeds = s->feeds;
        DC_TRY(make_samplers(&f->members[m], s));
        DC_TRY(dc_feeder_seek(f, m, s->sampler));
        for (int i = 0; i < s->feeds->feed_count; i++)
            f->mapped |= s->feeds->feeds[i].column && s->feeds->feeds[i].column->mapped;
    }
    f->left = CHUNKS_READ_AHEAD;
    f->faults = dc_disk_faults();
    for (int i = 0; i < LINE; i++)
        DC_TRY(make_draft(f, &f->line[i]));
    return DC_OK;
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
        dc_sampler_free(f->members[m].trees);
        for (int s = 0; s < DC_FEEDER_STEPS; s++)
            dc_sampler_free(f->members[m].rest[s]);
        for (int k = 0; k < KEPT; k++)
            free(f->members[m].kept[k].words);
    }
    for (int i = 0; i < LINE; i++)
        free(f->line[i].rows);
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

dc_status dc_feeder_seek(dc_feeder *f, int number, const dc_sampler *sampler) {
    member *m = &f->members[number];
    for (int k = 0; k < KEPT; k++) {
        free(m->kept[k].words);
        m->kept[k] = (kept){0};
    }
    f->step = dc_sampler_step(sampler);
    for (int i = 0; i < LINE; i++)
        f->line[i].steps = 0;
    return dc_sampler_copy(m->trees, sampler);
}

static kept *kept_for(member *m, uint64_t step) {
    return &m->kept[step / DC_FEEDER_STEPS % KEPT];
}

static dc_status keep_state(member *m) {
    uint64_t step = dc_sampler_step(m->trees);
    kept *k = kept_for(m, step);
    free(k->words);
    *k = (kept){.step = step};
    return dc_sampler_save(m->trees, &k->words, &k->count);
}

dc_status dc_feeder_state(const dc_feeder *f, int number, uint64_t step, dc_sampler *sampler) {
    member *m = &f->members[number];
    const kept *k = kept_for(m, step);
    bool near = k->words && k->step <= step && k->step / DC_FEEDER_STEPS == step / DC_FEEDER_STEPS;
    if (dc_sampler_step(m->trees) == step)
        DC_TRY(dc_sampler_copy(sampler, m->trees));
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
    draft *draw, *copy; // Nullable
    char *out;
} job;

static int64_t *rows_of(const dc_feeder *f, const draft *d, int number, int step, int k) {
    int64_t at = ((int64_t)number * DC_FEEDER_STEPS + step) * f->step_rows;
    return d->rows + at + f->blocks[k].row0;
}

// Copy their numbers out of a sampler that it fills.
static void take_drawn(const job *j, int number, int step, const dc_sampler *from) {
    const dc_feeder *f = j->f;
    for (int k = 0; k < f->block_count; k++) {
        int rule = f->members[number].feeds->feeds[f->blocks[k].feed].rule;
        const int64_t *rows = dc_sampler_drawn(from, rule);
        int times = f->blocks[k].rows / f->batch, first = f->members[number].feeds->first * times;
        if (rows)
            memcpy(rows_of(f, j->draw, number, step, k), rows + first,
                   (size_t)f->blocks[k].rows * sizeof *rows);
    }
}

static dc_status draw_trees(const job *j, int number) {
    member *m = &j->f->members[number];
    DC_TRY(keep_state(m));
    if (!m->has_trees) dc_sampler_skip(m->trees, j->draw->first + (uint64_t)j->draw->steps);
    for (int s = 0; m->has_trees && s < j->draw->steps; s++) {
        DC_TRY(dc_sampler_next(m->trees, j->draw->first + (uint64_t)s));
        take_drawn(j, number, s, m->trees);
    }
    return DC_OK;
}

static void draw_rest(const job *j, int number, int s) {
    dc_sampler *rest = j->f->members[number].rest[s];
    uint64_t step = j->draw->first + (uint64_t)s;
    if (!rest) return;
    dc_sampler_skip(rest, step);
    dc_status status = dc_sampler_next(rest, step);
    DC_CHECK(status == DC_OK); // only trees can fail
    take_drawn(j, number, s, rest);
}

// First the trees of all members, which take longest, then the steps of each.
static int draw_blocks(const job *j) {
    return j->draw ? j->f->count * (1 + j->draw->steps) : 0;
}

static void draw_block(const job *j, int index) {
    int count = j->f->count;
    if (index >= count) {
        draw_rest(j, index % count, index / count - 1);
        return;
    }
    member *m = &j->f->members[index];
    m->status = draw_trees(j, index);
    if (m->status != DC_OK) snprintf(m->error, sizeof m->error, "%s", dc_error()); // of this thread
}

// The chunk that the trees stand at.
static void begin_draft(const dc_feeder *f, draft *d) {
    d->first = dc_sampler_step(f->members->trees);
    d->steps = DC_FEEDER_STEPS - (int)(d->first % DC_FEEDER_STEPS);
    for (int m = 1; m < f->count; m++)
        DC_CHECK(dc_sampler_step(f->members[m].trees) == d->first);
}

// ---- rows ----

typedef struct copy_task { // one of a job's: a block of columns, at one step, of one member
    int number, step, k;   // member, step within the copy, block
} copy_task;

static copy_task copy_task_of(const job *j, int index) {
    const dc_feeder *f = j->f;
    int per_member = j->copy->steps * f->block_count;
    return (copy_task){index / per_member, index % per_member / f->block_count,
                       index % f->block_count};
}

static void copy_block(const job *j, int index) {
    const dc_feeder *f = j->f;
    copy_task p = copy_task_of(j, index);
    const block *b = &f->blocks[p.k];
    const dc_column *column = f->members[p.number].feeds->feeds[b->feed].column;
    const int64_t *rows = rows_of(f, j->copy, p.number, p.step, p.k);
    int at = (int)(j->copy->first % DC_FEEDER_STEPS) + p.step;
    float *out = (float *)(j->out + (size_t)at * dc_feeder_bytes(f) +
                           (size_t)p.number * f->member_bytes + b->offset);
    for (int r = 0; r < b->rows; r++, out += b->take) {
        if (column)
            dc_column_floats(column, rows[r], b->skip, b->take, out);
        else
            *out = (float)rows[r];
    }
}

static void want_block(void *ctx, int index) {
    const job *j = ctx;
    const dc_feeder *f = j->f;
    copy_task p = copy_task_of(j, index);
    const block *b = &f->blocks[p.k];
    const dc_column *column = f->members[p.number].feeds->feeds[b->feed].column;
    if (!column || !column->mapped) return;
    const int64_t *rows = rows_of(f, j->copy, p.number, p.step, p.k);
    for (int r = 0; r < b->rows; r++)
        dc_pages_want(dc_column_at(column, rows[r], b->skip),
                      (size_t)b->take * dc_type_size(column->type));
}

// Have the disk fetch the rows of a chunk, while it still has to be waited for now and then.
static void read_ahead(dc_feeder *f, draft *d) {
    long faults = dc_disk_faults();
    if (faults - f->faults >= FAULTS) f->left = CHUNKS_READ_AHEAD;
    f->faults = faults;
    if (!f->left) return;
    f->left--;
    job j = {.f = f, .copy = d};
    dc_pool_run(f->pool, want_block, &j, f->count * d->steps * f->block_count);
}

static void work_block(void *ctx, int index) {
    const job *j = ctx;
    int draws = draw_blocks(j);
    if (index < draws)
        draw_block(j, index);
    else
        copy_block(j, index - draws);
}

// Draw a chunk, and copy one that was drawn. Nullable: copy
static dc_status work(dc_feeder *f, draft *draw, draft *copy, char *out) {
    begin_draft(f, draw);
    job j = {.f = f, .draw = draw, .copy = copy, .out = out};
    int copies = copy ? f->count * copy->steps * f->block_count : 0;
    dc_pool_run(f->pool, work_block, &j, draw_blocks(&j) + copies);
    for (int m = 0; m < f->count; m++)
        if (f->members[m].status != DC_OK)
            return dc_fail(f->members[m].status, NULL, "%s", f->members[m].error);
    return DC_OK;
}

dc_status dc_feeder_fill(dc_feeder *f, void *out) {
    for (int i = 0; i + 1 < LINE; i++)
        if (!f->line[i].steps) DC_TRY(work(f, &f->line[i], NULL, NULL)); // the line begins
    if (f->mapped) read_ahead(f, &f->line[1]);
    DC_TRY(work(f, &f->line[LINE - 1], &f->line[0], out));
    draft done = f->line[0];
    f->step = done.first + (uint64_t)done.steps;
    memmove(f->line, f->line + 1, (LINE - 1) * sizeof *f->line);
    done.steps = 0;
    f->line[LINE - 1] = done;
    return DC_OK;
}
