// Inputs of a loss, see batch.h: every field of an input becomes a feed of the gather.
#include "algo/batch.h"

static const dc_column *column(const dc_agent *a, const char *name) {
    return dc_dataset_column(a->data, name);
}

static int field_width(const dc_method *m, const dc_field *f) {
    switch (f->kind) {
    case DC_FIELD_OBS:
        return m->obs;
    case DC_FIELD_GOAL:
        return m->goal;
    case DC_FIELD_ACT:
        return m->act;
    case DC_FIELD_CHOICE:
        return m->actions;
    case DC_FIELD_STEPS:
        return 1;
    case DC_FIELD_BLANK:
    case DC_FIELD_NOISE:
    case DC_FIELD_TIME:
    case DC_FIELD_COLUMN:
        return f->width;
    case DC_FIELD_NONE:
        break;
    }
    return 0;
}

int dc_fields_width(const dc_method *m, const dc_field *fields) {
    int width = 0;
    for (; fields->kind != DC_FIELD_NONE; fields++)
        width += field_width(m, fields);
    return width;
}

static int rule(const dc_agent *a, const char *name) {
    int number = dc_rows_find(&a->rows, name);
    DC_CHECK(number >= 0); // a method feeds a row that it does not draw
    return number;
}

// Rows that a field's rule gives for every row of the batch.
static int field_times(const dc_agent *a, const dc_field *f) {
    int number = f->row ? dc_rows_find(&a->rows, f->row) : -1; // a draw has a name, too
    return number < 0 ? 1 : dc_row_times(&a->rows.rule[number]);
}

// Of the column that goals are taken from: all of an observation, or copied out.
static const dc_scale *goal_scale(const dc_agent *a) {
    bool part = dc_column_at(&a->goals, 0, 0) == dc_column_at(column(a, "obs"), 0, 0);
    return part ? a->method.obs_scale : a->method.goal_scale;
}

// The column, draw or count of a field.
static void fill_feed(dc_agent *a, const dc_field *f, dc_feed *feed) {
    bool drawn = f->kind == DC_FIELD_NOISE || f->kind == DC_FIELD_TIME;
    if (f->row && !drawn) feed->rule = rule(a, f->row);
    switch (f->kind) {
    case DC_FIELD_OBS:
        feed->column = column(a, "obs");
        feed->scale = a->method.obs_scale;
        feed->crop = a->feeds.crop.pad > 0;
        break;
    case DC_FIELD_GOAL:
        feed->column = &a->goals;
        feed->skip = dc_agent_goal_skip(a);
        feed->take = a->method.goal;
        feed->scale = goal_scale(a);
        feed->crop = a->feeds.crop.pad > 0 && !a->method.rep;
        break;
    case DC_FIELD_ACT:
        feed->column = column(a, "act");
        feed->one_hot = a->method.actions;
        feed->scale = a->method.act_scale ? &a->method.act_scale->scale : NULL;
        break;
    case DC_FIELD_COLUMN:
        feed->column = column(a, f->column);
        DC_CHECK(feed->column && feed->column->width == f->width); // dc_algo.needs names it
        break;
    case DC_FIELD_CHOICE:
        feed->one_hot = a->method.actions;
        break;
    case DC_FIELD_NOISE:
        feed->draw = dc_feeds_draw(&a->feeds, f->row, DC_DRAW_NOISE, f->width);
        feed->take = f->width;
        break;
    case DC_FIELD_TIME:
        feed->draw = dc_feeds_draw(&a->feeds, f->row, DC_DRAW_TIME, 1);
        feed->take = f->width;
        break;
    case DC_FIELD_STEPS:
    case DC_FIELD_BLANK:
    case DC_FIELD_NONE:
        break;
    }
}

void dc_batch_feed(dc_agent *a, dc_ref input, int row0, const dc_field *fields, int times,
                   dc_pack *pack) {
    int col = 0;
    for (; fields->kind != DC_FIELD_NONE; fields++) {
        dc_feed feed = {.input = input, .row0 = row0, .col0 = col, .pack = pack};
        int own = field_times(a, fields);
        DC_CHECK(own == 1 || own == times);
        feed.times = own > 1 ? own : 0;
        feed.repeat = times > own ? times : 0;
        col += field_width(&a->method, fields);
        if (fields->kind == DC_FIELD_BLANK) continue; // memory of inputs starts as zeros
        fill_feed(a, fields, &feed);
        DC_CHECK(a->feeds.feed_count < DC_FEEDS_MAX);
        a->feeds.feeds[a->feeds.feed_count++] = feed;
    }
}

dc_ref dc_batch_repeated(dc_agent *a, const char *name, int times, const dc_field *fields) {
    dc_ref x =
        dc_input(&a->graph, name, a->method.batch * times, dc_fields_width(&a->method, fields));
    dc_batch_feed(a, x, 0, fields, times, NULL);
    return x;
}

dc_ref dc_batch_input(dc_agent *a, const char *name, const dc_field *fields) {
    return dc_batch_repeated(a, name, 1, fields);
}

dc_ref dc_batch_stack(dc_agent *a, const char *name, int count, const dc_field *const *parts) {
    int width = dc_fields_width(&a->method, parts[0]);
    dc_ref x = dc_input(&a->graph, name, a->method.batch * count, width);
    for (int i = 0; i < count; i++) {
        DC_CHECK(dc_fields_width(&a->method, parts[i]) == width);
        dc_batch_feed(a, x, i * a->method.batch, parts[i], 1, NULL);
    }
    return x;
}

dc_ref dc_batch_part(dc_agent *a, dc_ref x, int part) {
    return dc_rows(&a->graph, x, part * a->method.batch, a->method.batch);
}

dc_pack *dc_batch_pack(dc_agent *a, dc_ref input, int fixed_rows, const char *name,
                       const char *steps, int known) {
    DC_CHECK(a->feeds.pack_count < DC_PACKS_MAX);
    dc_pack *p = &a->feeds.packs[a->feeds.pack_count];
    a->feeds.fixed_rows[a->feeds.pack_count++] = fixed_rows;
    *p = (dc_pack){.input = input, .steps = rule(a, steps), .known = known};
    p->index = dc_input(&a->graph, name, a->method.batch, 1);
    p->rows = dc_arena_take(&a->graph.arena, (size_t)a->method.batch * sizeof *p->rows);
    if (!p->rows) a->graph.status = DC_NO_MEMORY;
    return p;
}

dc_ref dc_batch_loss(dc_agent *a, const char *name, dc_ref total, dc_ref loss) {
    dc_agent_metric(a, name, loss);
    return total < 0 ? loss : dc_add(&a->graph, total, loss);
}
