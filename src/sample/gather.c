// Gather, see gather.h. Packs are laid out first; then each feed, a rectangle that no other
// touches, is one block of work for the pool.
#include "sample/gather.h"

#include "base/pages.h"
#include "sample/noise.h"

#include <string.h>

typedef struct job {
    dc_feeds *f;
    const dc_sampler *sampler;
    const dc_exec *exec;
} job;

// Which rows a pack needs, and where they go.
static void lay_out(dc_feeds *f, dc_pack *p, const dc_sampler *sampler, const dc_exec *exec) {
    const int64_t *steps = dc_sampler_drawn(sampler, p->steps) + f->first;
    dc_real *index = dc_value(exec, p->index).p;
    p->row0 = exec->used[p->input];
    p->count = 0;
    for (int b = 0; b < f->batch; b++) {
        bool needed = steps[b] > p->known;
        index[b] = needed ? (dc_real)(p->row0 + p->count) : -1;
        if (needed) p->rows[p->count++] = b;
    }
    exec->used[p->input] += p->count;
}

// Scale what copy_row or crop_row has taken.
static void scale_row(const dc_feed *f, int width, dc_real *out) {
    if (!f->scale) return;
    const float *mean = f->scale->mean + f->skip, *rate = f->scale->rate + f->skip;
    for (int c = 0; c < width; c++)
        out[c] = (out[c] - (dc_real)mean[c]) * (dc_real)rate[c];
}

static void copy_row(const dc_feed *f, int64_t row, dc_real *out) {
    const dc_column *column = f->column;
    int width = f->take ? f->take : column->width, skip = f->skip;
    if (column->type == DC_TYPE_F32)
        for (int c = 0; c < width; c++)
            out[c] = (dc_real)column->values[row * column->width + skip + c];
    else
        for (int c = 0; c < width; c++)
            out[c] = (dc_real)column->bytes[row * column->width + skip + c];
    scale_row(f, width, out);
}

// A row that is a picture, moved.
static void crop_row(const dc_feed *f, const dc_crop *crop, dc_offset at, int64_t row,
                     dc_real *out) {
    int width = f->column->width;
    for (int c = 0; c < width; c++)
        out[c] = (dc_real)dc_column_value(f->column, row, dc_crop_from(crop, at, c));
    scale_row(f, width, out);
}

int dc_feeds_draw(dc_feeds *f, const char *name, dc_draw_kind kind, int columns) {
    uint32_t same = 0; // draws of this kind
    for (int d = 1; d <= f->draw_count; d++) {
        const dc_draw *draw = &f->draws[d];
        same += draw->kind == kind;
        if (strcmp(draw->name, name) != 0) continue;
        DC_CHECK(draw->kind == kind && draw->columns == columns);
        return d;
    }
    DC_CHECK(f->draw_count < DC_DRAWS_MAX);
    uint32_t stream = kind == DC_DRAW_NOISE ? DC_STREAM_NOISE : DC_STREAM_TIME;
    f->draws[++f->draw_count] =
        (dc_draw){name, kind, columns, stream + same * DC_STREAM_AGAIN, NULL};
    return f->draw_count;
}

// Random numbers of the step that the sampler has just filled, or those given instead.
static void draw_feed(const job *j, const dc_feed *f) {
    const dc_draw *d = &j->f->draws[f->draw];
    uint64_t seed = j->f->seed, step = dc_sampler_step(j->sampler) - 1;
    dc_tensor in = dc_value(j->exec, f->input);
    for (int r = 0; r < j->f->batch; r++) {
        dc_real *out = in.p + (int64_t)(f->row0 + r) * in.cols + f->col0;
        int row = j->f->first + r;
        for (int c = 0; c < f->take; c++) {
            uint32_t number = (uint32_t)(d->kind == DC_DRAW_TIME ? row : row * d->columns + c);
            float x = d->given                  ? d->given[number]
                      : d->kind == DC_DRAW_TIME ? dc_draw_time(seed, d->stream, step, number)
                                                : dc_draw_normal(seed, d->stream, step, number);
            out[c] = (dc_real)x;
        }
    }
}

static void write_row(const dc_feed *f, int64_t row, int copy, dc_real *out) {
    if (f->one_hot) {
        int number = f->column ? (int)dc_column_value(f->column, row, 0) : copy;
        for (int c = 0; c < f->one_hot; c++)
            out[c] = c == number;
    } else if (f->column) {
        copy_row(f, row, out);
    } else {
        *out = (dc_real)row;
    }
}

// Where a feed's rows begin in what is drawn.
static const int64_t *first_of(const dc_feeds *feeds, const dc_feed *f, const dc_sampler *sampler) {
    return dc_sampler_drawn(sampler, f->rule) +
           (int64_t)feeds->first * (f->times > 1 ? f->times : 1);
}

// Rows of the data set that a feed takes.
static int rows_of(const dc_feeds *feeds, const dc_feed *f) {
    return feeds->batch * (f->times > 1 ? f->times : 1);
}

// Rows of pictures: row r of the batch has its offset, whatever it shows.
static void crop_feed(const job *j, const dc_feed *f) {
    const dc_feeds *feeds = j->f;
    const int64_t *rows = dc_sampler_drawn(j->sampler, f->rule);
    uint64_t step = dc_sampler_step(j->sampler) - 1;
    dc_tensor in = dc_value(j->exec, f->input);
    dc_real *out = in.p + (int64_t)(f->pack ? f->pack->row0 : f->row0) * in.cols + f->col0;
    int count = f->pack ? f->pack->count : rows_of(feeds, f), copies = f->repeat ? f->repeat : 1;
    for (int r = 0; r < count; r++) {
        int number = f->pack ? f->pack->rows[r] : r, times = f->times > 1 ? f->times : 1;
        dc_offset at = dc_crop_draw(&feeds->crop, feeds->seed, step, (uint32_t)(number / times));
        for (int copy = 0; copy < copies; copy++, out += in.cols)
            crop_row(f, &feeds->crop, at, rows[number], out);
    }
}

static void feed_block(void *ctx, int block) {
    const job *j = ctx;
    const dc_feed *f = &j->f->feeds[block];
    if (f->crop) {
        crop_feed(j, f);
        return;
    }
    if (f->draw) {
        draw_feed(j, f);
        return;
    }
    const int64_t *rows = first_of(j->f, f, j->sampler);
    dc_tensor in = dc_value(j->exec, f->input);
    dc_real *out = in.p + (int64_t)(f->pack ? f->pack->row0 : f->row0) * in.cols + f->col0;
    int count = f->pack ? f->pack->count : rows_of(j->f, f), copies = f->repeat ? f->repeat : 1;
    for (int r = 0; r < count; r++)
        for (int copy = 0; copy < copies; copy++, out += in.cols)
            write_row(f, rows[f->pack ? f->pack->rows[r] : r], copy, out);
}

void dc_gather(dc_feeds *f, const dc_sampler *sampler, const dc_exec *exec) {
    for (int p = 0; p < f->pack_count; p++)
        exec->used[f->packs[p].input] = f->fixed_rows[p];
    for (int p = 0; p < f->pack_count; p++)
        lay_out(f, &f->packs[p], sampler, exec);
    job j = {f, sampler, exec};
    dc_pool_run(exec->pool, feed_block, &j, f->feed_count);
}

// ---- reading ahead ----

typedef struct want {
    const dc_feeds *f;
    const dc_sampler *sampler;
} want;

static void want_block(void *ctx, int block) {
    const want *w = ctx;
    const dc_feed *f = &w->f->feeds[block];
    if (!f->column || !f->column->mapped) return;
    const int64_t *rows = first_of(w->f, f, w->sampler);
    const int64_t *steps =
        f->pack ? dc_sampler_drawn(w->sampler, f->pack->steps) + w->f->first : NULL;
    size_t bytes = dc_column_row_size(f->column);
    for (int b = 0; b < rows_of(w->f, f); b++)
        if (!steps || steps[b] > f->pack->known)
            dc_pages_want(dc_column_at(f->column, rows[b], 0), bytes);
}

void dc_gather_want(const dc_feeds *feeds, const dc_sampler *sampler, dc_pool *pool) {
    want w = {feeds, sampler};
    dc_pool_run(pool, want_block, &w, feeds->feed_count);
}
