// dcrl bench train: steps per second of the whole training loop, logging included, and where the time
// goes. With it, how close the matrix products come to what products alone reach on the same
// shapes.
#include "args.h"
#include "bench.h"
#include "runs.h"
#include "step_count.h"

#include "api/setup.h"
#include "backend/cpu/cpu.h"
#include "base/philox.h"
#include "sample/feeder.h"
#include "sample/noise.h"
#include "train/presets.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: dcrl bench train [--work lock|standard|long|pictures] [--agent AGENT] [--seeds N] "
    "[--seconds T] "
    "[--threads T] "
    "[--out RUN] "
    "[--part all|count|feed] "
    "[--set key=value]... [--json]\n"
    "\n"
    "Trains the named work and prints steps per second, the share of each op, and the rate of its "
    "matrix products\n"
    "beside products alone, of the same shapes and on as many threads.\n"
    "\n"
    "  lock      d(s, g) of a lock of 2048 states: 3x512, batch 512, n 64\n"
    "  standard  antmaze-large's sizes: 3x512, batch 1024, n 25, oracle critic, ddpgbc policy\n"
    "  long      humanoidmaze-giant's: 4x1024, batch 1024, n 100, oracle critic, flow policy\n"
    "  pictures  observations of 64 x 64 x 3 bytes: 3x512 behind encoders, batch 256\n"
    "\n"
    "All but the first train on a million random rows (of pictures 20,000), so that nothing must "
    "be fetched. With --seeds N, "
    "N seeds train\n"
    "together, as dcrl train --seed 0-... does, and the rate is the sum of theirs. With --out, "
    "logs "
    "are kept as\n"
    "dcrl train keeps them, and the time of a checkpoint is printed apart from the rate. --part "
    "prints JSON.\n"
    "\n"
    "example: dcrl bench train --work standard --seconds 10 --threads 2 --json\n";

// What is trained: an environment that makes its own data, or a preset on random rows.
typedef struct work {
    const char *name, *env, *preset;
    int obs, act, states; // columns, and rows of a trajectory
    int rows, side;       // of the data; side of the pictures that observations are, 0: numbers
} work;

static const work works[] = {{"lock", "lock-2048", NULL, 0, 0, 0, 0, 0},
                             {"standard", NULL, "standard", 29, 8, 1000, 1000000, 0},
                             {"long", NULL, "long", 69, 21, 4000, 1000000, 0},
                             {"pictures", NULL, "standard", 64 * 64 * 3, 5, 1000, 20000, 64}};
#define WORKS "lock|standard|long|pictures" // names of the rows above

enum { ALL, COUNT, FEED }; // --part

typedef struct flags {
    int work, device, precision, part;
    int64_t threads, seeds;
    double seconds;
    char agent[DC_TEXT_MAX], out[DC_TEXT_MAX];
} flags;

static const dc_option table[] = {
    DC_OPTION_CHOICE(flags, work, "lock", WORKS, "what to train"),
    DC_OPTION_TEXT(flags, agent, "dcrl", "method that is trained at those sizes"),
    DC_OPTION_CHOICE(flags, device, "cpu", "cpu|cuda", "where"),
    DC_OPTION_CHOICE(flags, precision, "auto", "auto|fp32|tf32|bf16",
                     "of matrix products; auto: fp32 on the CPU, tf32 on a GPU"),
    DC_OPTION_INT(flags, threads, "0", 0, 1024, "threads; 0: all cores"),
    DC_OPTION_INT(flags, seeds, "1", 1, DC_RUNS_MAX, "seeds to train together"),
    DC_OPTION_REAL(flags, seconds, "5", 0.1, 600, "how long to measure"),
    DC_OPTION_CHOICE(flags, part, "all", "all|count|feed",
                     "all: train; count: only print what a step computes; feed: only draw and "
                     "gather rows, as the host does for a GPU with feed=host"),
    DC_OPTION_TEXT(
        flags, out, "",
        "folder of a run to write, with logs and a checkpoint; empty: nothing is written"),
    {0},
};

typedef struct watch {
    atomic_int stop;
    double seconds; // to go on
    double passed;  // when it was last looked at
} watch;

typedef struct result {
    double steps, seconds; // trained, without the checkpoint at the end
    double save_seconds;   // of a checkpoint; 0 without --out
} result;

static void progress(void *ctx, const dc_run *run, double seconds) {
    (void)run;
    watch *w = ctx;
    if (w->stop) return; // others of a population report theirs after checkpoints were written
    w->passed = seconds;
    if (seconds >= w->seconds) w->stop = 1;
}

// Matrix products of one step, as the linear ops split them: (rows, in, out) of every block.
typedef struct product {
    int m, n, k;
    bool a_t, b_t;
} product;

typedef struct products {
    product *list;
    int count;
    double flops; // of one step
    bool bf16;
    dc_real *a, *b;
    dc_real **c; // (count) outputs
} products;

static void push(products *p, int m, int n, int k, bool a_t, bool b_t) {
    product *list = realloc(p->list, sizeof *list * (size_t)(p->count + 1));
    DC_CHECK(list != NULL);
    p->list = list;
    list[p->count++] = (product){m, n, k, a_t, b_t};
    p->flops += 2.0 * m * n * k;
}

static void collect_member(const dc_exec *exec, dc_ref r, products *p) {
    const dc_node *n = &exec->graph->nodes[r], *x = &exec->graph->nodes[n->in[0]];
    int used = exec->used[r]; // of the last step
    for (int row = 0; row < used; row += DC_ROW_BLOCK)
        push(p, used - row < DC_ROW_BLOCK ? used - row : DC_ROW_BLOCK, n->cols, x->cols, false,
             false);
    int trained = n->hi - n->lo;
    bool live = exec->graph->nodes[n->in[1]].needs; // else the weights are held
    for (int row = 0; x->needs && row < trained; row += DC_ROW_BLOCK)
        push(p, trained - row < DC_ROW_BLOCK ? trained - row : DC_ROW_BLOCK, x->cols, n->cols,
             false, true);
    for (int col = 0; live && trained && col < x->cols; col += 128)
        push(p, x->cols - col < 128 ? x->cols - col : 128, n->cols, trained, true, false);
}

// The products of all linear nodes, in blocks as backend/cpu/linear.c makes them.
static void collect(const dc_exec *exec, products *p) {
    p->bf16 = exec->bf16;
    const dc_graph *g = exec->graph;
    for (dc_ref r = 0; r < g->count; r++) {
        const dc_node *n = &g->nodes[r];
        if (n->op != DC_OP_linear) continue;
        for (int e = 0; e < n->e; e++)
            collect_member(exec, r, p);
    }
}

static void product_block(void *ctx, int block) {
    const products *p = ctx;
    const product *q = &p->list[block];
    dc_gemm(p->bf16, q->a_t, q->b_t, q->m, q->n, q->k, p->a, q->a_t ? q->m : q->k, p->b,
            q->b_t ? q->k : q->n, 0, p->c[block], q->n);
}

// GFLOP/s of those products alone.
static double measure_products(products *p, dc_pool *pool) {
    size_t most = (size_t)4096 * 4096;
    p->a = calloc(most, sizeof *p->a);
    p->b = calloc(most, sizeof *p->b);
    p->c = calloc((size_t)p->count, sizeof *p->c);
    DC_CHECK(p->a && p->b && p->c);
    for (int i = 0; i < p->count; i++) {
        p->c[i] = calloc((size_t)p->list[i].m * (size_t)p->list[i].n, sizeof(dc_real));
        DC_CHECK(p->c[i]);
    }
    for (size_t i = 0; i < most; i++)
        p->a[i] = p->b[i] = (dc_real)(i % 7) * (dc_real)0.1;
    int rounds = 0;
    dc_pool_run(pool, product_block, p, p->count);
    double start = dc_now(), spent = 0;
    for (; spent < 1; spent = dc_now() - start, rounds++)
        dc_pool_run(pool, product_block, p, p->count);
    for (int i = 0; i < p->count; i++)
        free(p->c[i]);
    free(p->c);
    free(p->a);
    free(p->b);
    return p->flops * rounds / spent * 1e-9;
}

static dc_status apply_preset(dc_run *run, const char *name) {
    dc_arena arena;
    dc_preset preset;
    dc_arena_init(&arena, 0);
    dc_status status = dc_preset_find(&arena, name, &preset);
    if (status == DC_OK) status = dc_preset_apply(run, &preset);
    dc_arena_fini(&arena);
    return status;
}

static dc_status configure(dc_run *run, const flags *f) {
    const work *w = &works[f->work];
    DC_TRY(dc_run_configure(run, f->agent));
    if (w->env) DC_TRY(dc_run_set(run, "env", w->env));
    if (w->preset) {
        DC_TRY(apply_preset(run, w->preset));
        DC_TRY(w->side ? dc_run_set(run, "batch", "256")
                       : dc_run_set(run, "rep", "0,2")); // goals are positions
    }
    DC_TRY(dc_run_set(run, "steps", "1000000000"));
    run->options.threads = f->threads;
    run->options.device = f->device;
    run->options.precision = f->precision;
    return DC_OK;
}

static void fill(float *values, int64_t rows, int width, uint32_t stream, float most) {
    for (int64_t row = 0; row < rows; row++)
        for (int c = 0; c < width; c++) {
            float x = dc_draw_normal(0, stream, (uint64_t)row, (uint32_t)c);
            values[row * width + c] = x > most ? most : x < -most ? -most : x;
        }
}

static dc_status random_pictures(const work *w, dc_dataset *data) {
    uint8_t *bytes;
    DC_TRY(dc_dataset_add_bytes(data, "obs", 3, (int64_t[]){w->side, w->side, 3}, &bytes));
    for (int64_t i = 0; i < (int64_t)w->rows * w->obs / 16; i++) {
        dc_u32x4 words = dc_philox(0, DC_STREAM_ENV, 0, (uint32_t)i);
        memcpy(bytes + 16 * i, words.v, 16);
    }
    return DC_OK;
}

// Normal observations or pictures of noise, clipped normal actions, trajectories of one length.
static dc_status random_data(const work *w, dc_dataset *data) {
    int64_t *starts;
    float *obs = NULL, *act;
    DC_TRY(dc_dataset_make(data, w->rows, w->rows / w->states, &starts));
    for (int64_t t = 0; t <= w->rows / w->states; t++)
        starts[t] = t * w->states;
    DC_TRY(w->side ? random_pictures(w, data) : dc_dataset_add(data, "obs", w->obs, &obs));
    DC_TRY(dc_dataset_add(data, "act", w->act, &act));
    if (obs) fill(obs, w->rows, w->obs, DC_STREAM_ENV, 100);
    fill(act, w->rows, w->act, DC_STREAM_LOCK, 1);
    return dc_dataset_seal(data);
}

// To count needs no more than a few trajectories.
static dc_status make_data(dc_run *run, const flags *f, dc_dataset *data) {
    work w = works[f->work];
    if (f->part == COUNT && !w.side) w.rows = 4 * w.states;
    return w.env ? dc_setup_data(run, data) : random_data(&w, data);
}

// One JSON object, also without --json: a script reads it.
static dc_status print_count(const dc_run *run, const flags *f) {
    dc_text text;
    dc_text_init(&text);
    cli_count_print(run->agent.exec.graph, &text);
    dc_status status = dc_text_status(&text);
    if (status == DC_OK)
        printf("{\"bench\": \"train\", \"work\": \"%s\", \"agent\": \"%s\", %s}\n",
               works[f->work].name, f->agent, text.bytes);
    dc_text_fini(&text);
    return status;
}

// Of several runs, and on a GPU: there the step is one recorded graph; a profiler sees its parts, this
// program does not. The device says which path each network took.
static dc_status tell_rate(const dc_run *runs, const flags *f, bool json, const result *r) {
    static const char *const names[] = {"tf32", "fp32", "tf32", "bf16"}; // of the option's choices
    const dc_trainer *t = runs->trainer;
    bool gpu = runs->options.device != 0, bf16 = runs->agent.exec.bf16;
    const char *sizes = works[f->work].name, *feed = t->fed ? "host" : "device",
               *precision = gpu    ? names[runs->options.precision]
                            : bf16 ? "bf16"
                                   : "fp32";
    double rate = r->steps / r->seconds;
    dc_text path, quoted;
    dc_text_init(&path);
    dc_text_init(&quoted);
    dc_status status = t->ops->describe(t, &path);
    if (status == DC_OK) dc_json_quote(&quoted, path.bytes);
    if (status == DC_OK) status = dc_text_status(&quoted);
    if (status == DC_OK && json)
        printf("{\"bench\": \"train\", \"work\": \"%s\", \"agent\": \"%s\", \"device\": \"%s\", "
               "\"name\": \"%s\", \"precision\": \"%s\", \"feed\": \"%s\", \"seeds\": %d, "
               "\"steps_per_second\": %.1f, \"save_seconds\": %.4f, \"paths\": %s}\n",
               sizes, f->agent, t->ops->device, t->name, precision, feed, (int)f->seeds, rate,
               r->save_seconds, quoted.bytes);
    if (status == DC_OK && !json)
        printf("%s, %s on %s, %s, rows from the %s, %d run%s: %.1f steps/s, %.3f s a checkpoint\n"
               "%s\n",
               sizes, f->agent, t->name, precision, feed, (int)f->seeds, f->seeds > 1 ? "s" : "",
               rate, r->save_seconds, path.bytes);
    dc_text_fini(&path);
    dc_text_fini(&quoted);
    return status;
}

static void print_result(const dc_run *run, const flags *f, bool json, const result *r,
                         const double *times, products *p) {
    double done = r->steps, seconds = r->seconds, rate = done / seconds,
           alone = measure_products(p, run->pool);
    double linear = (times[DC_OP_linear] + times[DC_OPS + DC_OP_linear]) / done;
    double reached = p->flops / linear * 1e-9;
    if (json) {
        printf("{\"bench\": \"train\", \"work\": \"%s\", \"device\": \"cpu\", \"precision\": "
               "\"%s\", \"threads\": %d, "
               "\"steps_per_second\": %.2f, \"gflop_per_step\": %.3f, \"linear_gflops\": %.1f, "
               "\"alone_gflops\": %.1f, "
               "\"linear_share\": %.3f, \"save_seconds\": %.4f}\n",
               works[f->work].name, p->bf16 ? "bf16" : "fp32", dc_pool_threads(run->pool), rate,
               p->flops * 1e-9, reached, alone, linear * rate, r->save_seconds);
        return;
    }
    printf("%s on cpu, %d threads: %.1f steps/s over %.1f s\n\n", works[f->work].name,
           dc_pool_threads(run->pool), rate, seconds);
    for (int op = DC_FIRST_COMPUTED; op < DC_OPS; op++)
        if (times[op] > 0)
            printf("  %-16s forward %6.2f ms  backward %6.2f ms\n", dc_op_name((dc_op)op),
                   1e3 * times[op] / done, 1e3 * times[DC_OPS + op] / done);
    double ops = 0;
    for (int i = 0; i < 2 * DC_OPS; i++)
        ops += times[i] / done;
    printf("  %-16s %.2f ms (sample, gather, Adam, log)\n", "the rest",
           1e3 * (seconds / done - ops));
    printf("\nmatrix products: %.1f GFLOP/s inside training, %.1f by products alone of the same "
           "blocks (%.0f %%)\n",
           reached, alone, 100 * reached / alone);
}

// Write the checkpoints of this step once more.
static dc_status time_save(dc_run *runs, const flags *f, result *r) {
    if (!runs->folder) return DC_OK;
    double start = dc_now();
    for (int64_t i = 0; i < f->seeds; i++) {
        runs[i].saved_step = -1;
        DC_TRY(dc_run_save(&runs[i]));
    }
    r->save_seconds = (dc_now() - start) / (double)f->seeds;
    return DC_OK;
}

static dc_status measure(dc_run *runs, const flags *f, bool json) {
    double times[2 * DC_OPS] = {0};
    watch w = {.seconds = 0.5};
    for (int64_t i = 0; i < f->seeds; i++) {
        runs[i].stop = &w.stop;
        runs[i].progress = progress;
        runs[i].progress_ctx = &w;
    }
    if (dc_population_train(runs, (int)f->seeds) != DC_INTERRUPTED) return DC_BAD_INPUT; // warm-up
    w = (watch){.seconds = f->seconds};
    runs->agent.exec.times = times;
    dc_status status = dc_population_train(runs, (int)f->seeds);
    if (status != DC_INTERRUPTED) return status;
    // Until the stop was asked for: the checkpoints that it wrote are not counted.
    result r = {.seconds = w.passed};
    for (int64_t i = 0; i < f->seeds; i++) // on the CPU seeds take turns, and one may be ahead
        r.steps += (double)(runs[i].step - runs[i].first_step);
    DC_TRY(time_save(runs, f, &r));
    if (runs->options.device || f->seeds > 1) return tell_rate(runs, f, json, &r);
    products p = {0};
    collect(&runs->agent.exec, &p);
    print_result(runs, f, json, &r, times, &p);
    free(p.list);
    return DC_OK;
}

// Chunks of steps for as long as it was asked for; rates by wall and by processor time of this thread, which counts with
// --threads 1. One JSON object.
static dc_status fill_chunks(dc_feeder *feeder, void *chunk, double seconds, double times[2]) {
    DC_TRY(dc_feeder_fill(feeder, chunk)); // pages are taken now
    double start = dc_now(), busy = dc_now_busy(), chunks = 0;
    for (; dc_now() - start < seconds; chunks++)
        DC_TRY(dc_feeder_fill(feeder, chunk));
    times[0] = (dc_now() - start) / chunks / DC_FEEDER_STEPS;
    times[1] = (dc_now_busy() - busy) / chunks / DC_FEEDER_STEPS;
    return DC_OK;
}

static dc_status measure_feed(const dc_run *run, const flags *f) {
    dc_feeder *feeder;
    double times[2] = {0};
    dc_feeder_source source = {run->agent.sampler, &run->agent.feeds, run->agent.data};
    DC_TRY(dc_feeder_new(&feeder, &source, 1, run->pool));
    size_t bytes = dc_feeder_bytes(feeder);
    void *chunk = malloc(DC_FEEDER_STEPS * bytes);
    dc_status status = chunk ? fill_chunks(feeder, chunk, f->seconds, times)
                             : dc_fail(DC_NO_MEMORY, NULL, "no memory for rows");
    if (status == DC_OK)
        printf("{\"bench\": \"train\", \"work\": \"%s\", \"threads\": %d, \"fed_bytes\": %zu, "
               "\"fed_steps_per_second\": %.1f, \"fed_cpu_us\": %.1f}\n",
               works[f->work].name, dc_pool_threads(run->pool), bytes, 1 / times[0],
               1e6 * times[1]);
    free(chunk);
    dc_feeder_free(feeder);
    return status;
}

// All on one data set.
static dc_status start(dc_run *runs, const flags *f, const cli_args *args, dc_dataset *data) {
    const dc_dataset *shared[DC_RUNS_MAX];
    const char *folders[DC_RUNS_MAX] = {*f->out ? f->out : NULL};
    static char members[DC_RUNS_MAX][DC_PATH_MAX];
    for (int64_t i = 0; i < f->seeds; i++) {
        DC_TRY(configure(&runs[i], f));
        DC_TRY(cli_run_sets(&runs[i], args));
        runs[i].options.seed += i;
        shared[i] = data;
        if (!*f->out || f->seeds == 1) continue;
        DC_TRY(dc_folder_member(members[i], f->out, runs[i].options.seed));
        folders[i] = members[i];
    }
    DC_TRY(make_data(runs, f, data));
    return dc_population_start(runs, (int)f->seeds, shared, folders);
}

dc_status bench_train(int argc, char **argv) {
    flags f;
    cli_args args = {.usage = usage, .flags = table, .config = &f, .takes = CLI_JSON | CLI_SET};
    DC_TRY(cli_args_parse(&args, argc, argv));
    if (args.help) return DC_OK;
    dc_run *runs = calloc((size_t)f.seeds, sizeof *runs);
    if (!runs) return dc_fail(DC_NO_MEMORY, NULL, "no memory for %d seeds", (int)f.seeds);
    for (int64_t i = 0; i < f.seeds; i++)
        runs[i] = DC_RUN_NONE;
    dc_dataset data = {0};
    dc_status status = start(runs, &f, &args, &data);
    if (status == DC_OK)
        status = f.part == COUNT  ? print_count(runs, &f)
                 : f.part == FEED ? measure_feed(runs, &f)
                                  : measure(runs, &f, args.json);
    dc_population_fini(runs, (int)f.seeds);
    dc_dataset_fini(&data);
    free(runs);
    return status;
}
