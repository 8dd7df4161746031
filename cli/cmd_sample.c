// dcrl sample: prints the integers that a learner would train on, as CSV. It is how one looks at
// the sampler, and how any other program can check it. The sampler runs here, batch by batch; its
// rows are collected, and blocks of them are turned into text by all threads and written in order,
// so the bytes do not depend on the number of threads.
#include "args.h"
#include "cli.h"
#include "sample_agent.h"

#include "base/pool.h"
#include "data/dataset.h"
#include "sample/rows.h"
#include "sample/sampler.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    COLUMNS = 6,                    // most that a stream prints
    BLOCK_ROWS = 4096,              // rows that one thread formats at a time
    BLOCKS = 16,                    // blocks that are collected before they are written
    ROW_BYTES = COLUMNS * (20 + 1), // a number of 64 bits and a comma or newline
    CHUNK_ROWS = BLOCK_ROWS * BLOCKS,
};

enum { STREAM_DC, STREAM_PROP };

typedef struct flags {
    char data[DC_TEXT_MAX], agent[DC_TEXT_MAX];
    int stream;
    int64_t count, slots, seed, threads;
} flags;

static const dc_option flag_table[] = {
    DC_OPTION_TEXT(flags, data, "", "data set to sample from"),
    DC_OPTION_TEXT(flags, agent, "",
                   "print all rows of this method, a column for each of its rules"),
    DC_OPTION_CHOICE(flags, stream, "dc", "dc|prop", "which rows to print"),
    DC_OPTION_INT(flags, count, "1024", 0, 1e15, "number of rows to print"),
    DC_OPTION_INT(flags, slots, "128", 1, 1 << 20, "dc: trees in flight"),
    DC_OPTION_INT(flags, seed, "0", 0, 9e15, "seed of all draws"),
    DC_OPTION_INT(flags, threads, "0", 0, 1024, "threads, 0 for all cores"),
    {0},
};

typedef struct keys {
    int64_t batch, n;
    int split, order;
    bool goal_pairs;
    double gamma;
    dc_goal_mix goals;
} keys;

static const dc_option key_table[] = {
    DC_OPTION_INT(keys, batch, "1024", 1, 1 << 24, "rows of a step"),
    DC_OPTION_CHOICE(keys, split, "midpoint", "midpoint|random", "dc: where a segment is divided"),
    DC_OPTION_CHOICE(keys, order, "up", "up|down", "dc: children before parents, or the reverse"),
    DC_OPTION_INT(keys, n, "25", 1, 1e9, "prop: steps to the n-step state"),
    DC_OPTION_REAL(keys, gamma, "0.99", 0, 0.9999999999, "prop: discount, of the geometric goal"),
    DC_OPTION_BOOL(keys, goal_pairs, "off",
                   "prop: start and goal uniform over pairs of a trajectory, no mixture"),
    DC_OPTION_REAL_AS("goal_current", keys, goals.current, "0.2", 0, 1,
                      "prop: share of goals that are the state itself"),
    DC_OPTION_REAL_AS("goal_future", keys, goals.future, "0.5", 0, 1,
                      "prop: share of goals later in the trajectory"),
    DC_OPTION_REAL_AS("goal_random", keys, goals.random, "0.3", 0, 1,
                      "prop: share of goals from anywhere"),
    DC_OPTION_CHOICE_AS("goal_law", keys, goals.law, "geometric", "uniform|geometric",
                        "prop: law of the later state"),
    {0},
};

static const char usage[] =
    "usage: dcrl sample --data PATH [--stream dc|prop] [--count N] [--set KEY=VALUE]...\n"
    "       dcrl sample --data PATH --agent AGENT [--count N] [--set KEY=VALUE]...\n\n"
    "Print, as CSV, the integers that a learner would train on: what a step takes, in its order.\n"
    "The same seed gives the same bytes, with any number of threads.\n\n"
    "  dc    step,slot,traj,i,k,j   a node of a slot's tree: segment (i, j) divided at k; i, k and "
    "j\n"
    "                               are positions within trajectory number traj\n"
    "  prop  step,i,n,goal          a propagation row: state, the state n steps later (or the last "
    "of\n"
    "                               the trajectory) and goal, all three as rows of the data set,\n"
    "                               since a goal may lie in another trajectory\n\n"
    "With --agent it prints every row of that method's batches, one column for each rule of its "
    "table\n"
    "(dcrl grad --agent AGENT --describe lists them); rows are rows of the data set, and\n"
    "--set takes the method's options.\n\n"
    "example: dcrl sample --data maze.npz --stream dc --count 4096 --slots 8 > nodes.csv\n"
    "         dcrl sample --data maze.npz --stream prop --set n=100 --set goal_law=uniform\n"
    "         dcrl sample --data maze.npz --agent hiql --set subgoal_steps=10\n";

// ---- text ----

// Rows that wait to be written, and their text.
typedef struct chunk {
    const dc_dataset *data;
    int stream;
    int64_t (
        *rows)[COLUMNS]; // (CHUNK_ROWS) dc: step, slot, i, k, j as data-set rows; prop: as printed
    int64_t used;
    char *text;           // (BLOCKS, BLOCK_ROWS * ROW_BYTES)
    size_t bytes[BLOCKS]; // of text in each block
} chunk;

static char *put_number(char *at, int64_t value, char after) {
    char digits[20];
    int n = 0;
    do {
        digits[n++] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    while (n)
        *at++ = digits[--n];
    *at++ = after;
    return at;
}

static char *put_row(const chunk *c, const dc_trajectories *set, const int64_t *row, char *at) {
    at = put_number(at, row[0], ',');
    at = put_number(at, row[1], ',');
    if (c->stream == STREAM_PROP) return put_number(put_number(at, row[2], ','), row[3], '\n');
    int64_t traj = dc_trajectory_of(set, row[2], 0), first = set->start[traj];
    at = put_number(at, traj, ',');
    for (int q = 2; q < 5; q++)
        at = put_number(at, row[q] - first, q < 4 ? ',' : '\n');
    return at;
}

static void format_block(void *ctx, int block) {
    chunk *c = ctx;
    dc_trajectories set = {.start = c->data->traj_start, .count = c->data->traj_count};
    int64_t first = (int64_t)block * BLOCK_ROWS, end = first + BLOCK_ROWS;
    char *text = c->text + (size_t)block * BLOCK_ROWS * ROW_BYTES, *at = text;
    for (int64_t row = first; row < end && row < c->used; row++)
        at = put_row(c, &set, c->rows[row], at);
    c->bytes[block] = (size_t)(at - text);
}

static dc_status write_chunk(chunk *c, dc_pool *pool) {
    int blocks = (int)((c->used + BLOCK_ROWS - 1) / BLOCK_ROWS);
    dc_pool_run(pool, format_block, c, blocks);
    for (int b = 0; b < blocks; b++)
        if (fwrite(c->text + (size_t)b * BLOCK_ROWS * ROW_BYTES, 1, c->bytes[b], stdout) !=
            c->bytes[b])
            return dc_fail(DC_IO, NULL, "standard output could not be written");
    c->used = 0;
    return DC_OK;
}

// ---- rows ----

// Row of the batch, as the chunk keeps it.
static void take_row(const chunk *c, const dc_sampler *sampler, int64_t step, int64_t row,
                     int64_t out[COLUMNS]) {
    int at = 0;
    out[at++] = step;
    if (c->stream == STREAM_DC) out[at++] = dc_sampler_slot(sampler)[row];
    for (int q = 0; q < 3; q++)
        out[at++] = dc_sampler_drawn(sampler, q)[row];
}

static dc_status stream_rows(chunk *c, dc_sampler *sampler, dc_pool *pool, int64_t count,
                             int64_t batch) {
    for (int64_t step = 0; step * batch < count; step++) {
        DC_TRY(dc_sampler_next(sampler, (uint64_t)step));
        int64_t left = count - step * batch;
        for (int64_t row = 0; row < batch && row < left; row++) {
            take_row(c, sampler, step, row, c->rows[c->used++]);
            if (c->used == CHUNK_ROWS) DC_TRY(write_chunk(c, pool));
        }
    }
    return write_chunk(c, pool);
}

// The three rules that are printed: a segment, or a propagation row.
static dc_row_table rows_of(const flags *f, const keys *k) {
    dc_row_table r = {.seed = (uint64_t)f->seed, .batch = (int)k->batch};
    if (f->stream == STREAM_DC) {
        dc_rows_add(&r, (dc_row_rule){.name = "segment_start",
                                      .kind = DC_ROW_TREE,
                                      .draws = DC_STREAM_SLOT,
                                      .split = (dc_split)k->split,
                                      .order = (dc_order)k->order,
                                      .slots = (int)f->slots});
        dc_rows_add(&r, (dc_row_rule){.name = "segment_split",
                                      .kind = DC_ROW_SPLIT,
                                      .of = "segment_start",
                                      .split = (dc_split)k->split});
        dc_rows_add(
            &r, (dc_row_rule){.name = "segment_end", .kind = DC_ROW_END, .of = "segment_start"});
        return r;
    }
    dc_rows_add(&r, (dc_row_rule){.name = "state",
                                  .kind = k->goal_pairs ? DC_ROW_PAIR : DC_ROW_START,
                                  .draws = DC_STREAM_STATE});
    dc_rows_add(&r,
                (dc_row_rule){.name = "later", .kind = DC_ROW_AFTER, .of = "state", .steps = k->n});
    if (k->goal_pairs)
        dc_rows_add(&r, (dc_row_rule){.name = "goal", .kind = DC_ROW_END, .of = "state"});
    else
        dc_rows_add(&r, (dc_row_rule){.name = "goal",
                                      .kind = DC_ROW_GOAL,
                                      .of = "state",
                                      .draws = DC_STREAM_GOAL,
                                      .mix = k->goals,
                                      .gamma = k->gamma});
    return r;
}

static dc_status print_stream(const dc_dataset *data, const flags *f, const keys *k) {
    chunk c = {.data = data, .stream = f->stream};
    dc_row_table rows = rows_of(f, k);
    dc_sampler *sampler = NULL;
    dc_pool *pool = NULL;
    c.rows = malloc(CHUNK_ROWS * sizeof *c.rows);
    c.text = malloc((size_t)CHUNK_ROWS * ROW_BYTES);
    dc_status status = DC_OK;
    if (!c.rows || !c.text) DC_GOTO(dc_fail(DC_NO_MEMORY, NULL, "no memory for rows"), done);
    DC_GOTO(dc_sampler_new(&sampler, data, &rows), done);
    DC_GOTO(dc_pool_new(&pool, (int)f->threads), done);
    fputs(f->stream == STREAM_DC ? "step,slot,traj,i,k,j\n" : "step,i,n,goal\n", stdout);
    status = stream_rows(&c, sampler, pool, f->count, k->batch);
done:
    dc_pool_free(pool);
    dc_sampler_free(sampler);
    free(c.rows);
    free(c.text);
    return status;
}

dc_status cmd_sample(int argc, char **argv) {
    flags f;
    keys k;
    cli_args args = {
        .usage = usage, .flags = flag_table, .config = &f, .keys = key_table, .takes = CLI_SET};
    DC_TRY(cli_args_parse(&args, argc, argv));
    if (args.help) return DC_OK;
    DC_TRY(cli_args_need(&args, "data"));
    dc_options_init(key_table, &k);
    if (!*f.agent) DC_TRY(cli_args_apply(&args, key_table, &k));
    dc_dataset data;
    DC_TRY(dc_dataset_load(&data, f.data));
    dc_status status = *f.agent ? cli_sample_agent(f.agent, &args, &data, f.seed, f.count)
                                : print_stream(&data, &f, &k);
    dc_dataset_fini(&data);
    return status;
}
