// dcrl grad: loss and gradients of a method on a batch and weights that come from elsewhere, so
// that any other framework can check them. Every number that a step uses is in the batch; nothing
// is drawn.
#include "args.h"
#include "cli.h"
#include "grad_batch.h"
#include "runs.h"

#include "base/json.h"
#include "train/checkpoint.h"
#include "train/cuda_batch.h"
#include "train/weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: dcrl grad --agent AGENT --weights W.safetensors --batch B.npz "
    "--out G.safetensors [--updates N] [--hidden N,N]\n"
    "                 [--device cpu|cuda] [--precision P] [--set key=value]...\n"
    "       dcrl grad --agent AGENT --describe [--set key=value]...\n"
    "\n"
    "Evaluates the loss on the batch and writes the gradient of every "
    "weight under the weight's own name, and the\n"
    "losses as scalars. With --updates N it then trains N steps on this "
    "batch and writes after/NAME and\n"
    "after/target_NAME too, and path/LOSS: the losses before each update and "
    "after the last (N + 1).\n"
    "--describe lists the arrays of the batch. Observations are numbers as networks see them: "
    "scaled "
    "ones where\n"
    "a run has obs_scale, 0 to 1 where its data are bytes. On a GPU, products are in fp32 unless "
    "--precision says\n"
    "otherwise, and NaN or Inf ends the updates with an error.\n"
    "\n"
    "example: dcrl grad --agent dcrl --describe --set n=16\n";

typedef struct flags {
    char agent[DC_TEXT_MAX], weights[DC_TEXT_MAX], batch[DC_TEXT_MAX], out[DC_TEXT_MAX];
    dc_int_list hidden;
    bool describe;
    int64_t updates;
    int device, precision;
} flags;

static const dc_option table[] = {
    DC_OPTION_TEXT(flags, agent, "dcrl", "method; dcrl list agents"),
    DC_OPTION_TEXT(flags, weights, "", "tensors net/layer/{w,b,scale,bias}, and target_net/..."),
    DC_OPTION_TEXT(flags, batch, "", "arrays that --describe lists"),
    DC_OPTION_TEXT(flags, out, "", "gradients and losses"),
    DC_OPTION_LIST(flags, hidden, "", 1, 8192,
                   "widths of the hidden layers; none: those of the first network in the file"),
    DC_OPTION_BOOL(flags, describe, "off", "list the batch's arrays and stop"),
    DC_OPTION_INT(flags, updates, "0", 0, 1e6, "Adam steps to take afterwards"),
    DC_OPTION_CHOICE(flags, device, "cpu", "cpu|cuda", "what computes"),
    DC_OPTION_CHOICE(flags, precision, "fp32", "fp32|tf32|bf16", "of a GPU's matrix products"),
    {0},
};

// The part before "/0/w" of the first network in the file that is no target, which has the hidden widths of all.
static bool first_network(const dc_st_file *file, char net[64]) {
    for (size_t i = 0; i < file->count; i++) {
        const char *name = file->tensors[i].name;
        size_t n = strlen(name);
        if (n < 5 || n > 60 || strcmp(name + n - 4, "/0/w") != 0 || !strncmp(name, "target_", 7))
            continue;
        snprintf(net, 64, "%.*s", (int)n - 4, name);
        return true;
    }
    return false;
}

static dc_status read_hidden(const dc_st_file *file, const char *path, dc_int_list *hidden) {
    char net[64];
    hidden->count = 0;
    bool found = first_network(file, net);
    for (int layer = 0; found && layer <= DC_LIST_MAX; layer++) {
        char name[80];
        snprintf(name, sizeof name, "%s/%d/w", net, layer);
        const dc_st_tensor *t = dc_st_find(file, name);
        if (!t) break;
        // A width is believed only with the numbers that it says are there.
        bool follows = !layer || t->shape[1] == hidden->v[layer - 1];
        if (t->ndim != 3 || !t->size || t->shape[2] > 8192 || !follows)
            return dc_fail(DC_BAD_INPUT, NULL, "%s: tensor %s must be (ensemble, in, out)", path,
                           name);
        if (layer == DC_LIST_MAX)
            return dc_fail(DC_BAD_INPUT, NULL, "%s has too many layers", path);
        hidden->v[hidden->count++] = t->shape[2];
    }
    if (hidden->count < 2)
        return dc_fail(DC_BAD_INPUT, "name them critic/0/w, critic/0/b, ...", "%s has no network",
                       path);
    hidden->count--; // the last layer is the output
    return DC_OK;
}

static dc_status read_weights(dc_agent *agent, const dc_st_file *file, const char *path) {
    for (int i = 0; i < agent->params.count; i++) {
        const dc_param_row *row = &agent->params.rows[i];
        char name[DC_WEIGHT_NAME];
        dc_st_tensor want;
        dc_weight_describe(row, agent->params.slabs.live, "", name, &want);
        DC_TRY(dc_weight_copy(file, path, &want));
        if (row->offset >= agent->params.slabs.ema_size) continue;
        dc_weight_describe(row, agent->params.slabs.ema, "target_", name, &want);
        DC_TRY(dc_weight_copy(file, path, &want));
    }
    return DC_OK;
}

typedef struct output {
    dc_st_tensor *tensors;
    char (*names)[DC_WEIGHT_NAME];
    float *losses;
    size_t count;
    dc_real *grad; // a copy: updates overwrite the slab
    float *path;   // (metrics, updates + 1) losses on the way
} output;

static void put_slab(output *o, const dc_params *params, const dc_real *slab, const char *prefix,
                     int64_t until) {
    for (int i = 0; i < params->count; i++)
        if (params->rows[i].offset < until) {
            dc_weight_describe(&params->rows[i], slab, prefix, o->names[o->count],
                               &o->tensors[o->count]);
            o->count++;
        }
}

static void put_losses(output *o, const dc_agent *agent) {
    for (int m = 0; m < agent->metric_count; m++) {
        snprintf(o->names[o->count], DC_WEIGHT_NAME, "%s", agent->metrics[m].name);
        o->tensors[o->count] =
            (dc_st_tensor){o->names[o->count], DC_ST_F32, 0, {0}, &o->losses[m], sizeof(float)};
        o->count++;
    }
}

static void put_path(output *o, const dc_agent *agent, int64_t updates) {
    for (int m = 0; m < agent->metric_count; m++) {
        snprintf(o->names[o->count], DC_WEIGHT_NAME, "path/%s", agent->metrics[m].name);
        o->tensors[o->count] = (dc_st_tensor){o->names[o->count],
                                              DC_ST_F32,
                                              1,
                                              {updates + 1},
                                              o->path + m * (updates + 1),
                                              (size_t)(updates + 1) * sizeof(float)};
        o->count++;
    }
}

// ---- what computes ----

typedef struct engine {
    dc_agent *agent;
    const dc_run *run;
    dc_cuda_batch *gpu; // NULL: the CPU
} engine;

static dc_status engine_init(engine *e, dc_agent *agent, const dc_run *run) {
    const dc_run_options *o = &run->options;
    *e = (engine){.agent = agent, .run = run};
    if (!o->device && o->precision > 1)
        return dc_fail(DC_USAGE, "use --device cuda, or --precision fp32",
                       "dcrl grad computes in fp32 on the CPU");
    if (!o->device) return DC_OK;
    dc_trainer_spec spec = {
        .precision = o->precision ? o->precision - 1 : 0, .lr = o->lr, .tau = o->tau};
    return dc_cuda_batch_new(&e->gpu, agent, &spec);
}

// Gradients into the agent's slab, and what the losses are.
static dc_status gradients(engine *e, float *losses) {
    if (e->gpu) return dc_cuda_batch_gradients(e->gpu, losses);
    dc_agent_run(e->agent);
    for (int m = 0; m < e->agent->metric_count; m++)
        losses[m] = (float)*dc_value(&e->agent->exec, e->agent->metrics[m].node).p;
    return DC_OK;
}

static dc_status update(engine *e, int64_t done) {
    if (e->gpu) return dc_cuda_batch_update(e->gpu);
    dc_adam adam = dc_agent_adam(e->agent, e->run->options.lr, e->run->options.tau, done);
    dc_backend_cpu.update(&e->agent->params.slabs, &adam, e->agent->pool);
    return DC_OK;
}

// Train on the batch, whose gradients are there; the losses of every run are kept.
static dc_status train(engine *e, int64_t updates, output *o) {
    int count = e->agent->metric_count;
    float losses[DC_METRICS_MAX];
    memcpy(losses, o->losses, sizeof losses);
    for (int64_t u = 0; u <= updates; u++) {
        if (u > 0) {
            DC_TRY(update(e, u - 1));
            DC_TRY(gradients(e, losses));
        }
        for (int m = 0; m < count; m++)
            o->path[m * (updates + 1) + u] = losses[m];
    }
    return e->gpu ? dc_cuda_batch_fetch(e->gpu) : DC_OK;
}

static dc_status print_losses(const dc_agent *agent, const float *losses, bool json) {
    dc_text out;
    dc_text_init(&out);
    for (int m = 0; m < agent->metric_count; m++) {
        dc_text_add(&out, json ? "%s\"%s\": " : "%s%s ", json ? (m ? ", " : "{") : "",
                    agent->metrics[m].name);
        dc_json_number(&out, (double)losses[m]);
        if (!json) dc_text_add(&out, "\n");
    }
    dc_status status = dc_text_status(&out);
    if (status == DC_OK) printf(json ? "%s}\n" : "%s", out.bytes ? out.bytes : "");
    dc_text_fini(&out);
    return status;
}

static dc_status output_init(output *o, const dc_agent *agent, int64_t updates) {
    size_t most = (size_t)agent->params.count * 3 + 2 * DC_METRICS_MAX;
    *o = (output){.tensors = calloc(most, sizeof *o->tensors),
                  .names = calloc(most, sizeof *o->names),
                  .losses = calloc(DC_METRICS_MAX, sizeof *o->losses),
                  .grad = malloc((size_t)agent->params.slabs.size * sizeof *o->grad),
                  .path = calloc(DC_METRICS_MAX * ((size_t)updates + 1), sizeof *o->path)};
    if (o->tensors && o->names && o->losses && o->grad && o->path) return DC_OK;
    return dc_fail(DC_NO_MEMORY, NULL, "no memory for the gradients");
}

static void output_fini(output *o) {
    free(o->path);
    free(o->grad);
    free(o->losses);
    free(o->names);
    free(o->tensors);
}

// Run the batch once, keep losses and gradients, then train on it.
static dc_status compute(output *o, engine *e, int64_t updates) {
    const dc_params *params = &e->agent->params;
    const dc_slabs *slabs = &params->slabs;
    DC_TRY(gradients(e, o->losses));
    memcpy(o->grad, slabs->grad, (size_t)slabs->size * sizeof(dc_real));
    put_losses(o, e->agent);
    put_slab(o, params, o->grad, "", slabs->size);
    if (!updates) return DC_OK;
    DC_TRY(train(e, updates, o));
    put_slab(o, params, slabs->live, "after/", slabs->size);
    put_slab(o, params, slabs->ema, "after/target_", slabs->ema_size);
    put_path(o, e->agent, updates);
    return DC_OK;
}

static dc_status evaluate(dc_agent *agent, const dc_run *run, const flags *f, bool json) {
    output o;
    engine e = {0};
    dc_status status = output_init(&o, agent, f->updates);
    if (status == DC_OK) status = engine_init(&e, agent, run);
    if (status == DC_OK) status = compute(&o, &e, f->updates);
    if (status == DC_OK) status = dc_st_write(f->out, o.tensors, o.count, NULL, 0);
    if (status == DC_OK) status = print_losses(agent, o.losses, json);
    dc_cuda_batch_free(e.gpu);
    output_fini(&o);
    return status;
}

static dc_status with_weights(dc_run *run, const flags *f, const grad_inputs *in,
                              const grad_batch *b, const dc_st_file *weights, bool json) {
    dc_agent agent = {0};
    dc_agent_options options;
    DC_TRY(dc_run_agent_options(run, &options));
    options.hidden = f->hidden;
    if (!f->hidden.count) DC_TRY(read_hidden(weights, f->weights, &options.hidden));
    options.batch = (int)b->size;
    options.longest = b->longest;
    dc_status status = dc_agent_init(&agent, run->algo, run->config, &options, &b->data, NULL);
    if (status == DC_OK) status = grad_batch_give(b, in, &agent);
    if (status == DC_OK) status = read_weights(&agent, weights, f->weights);
    if (status == DC_OK) status = evaluate(&agent, run, f, json);
    dc_agent_fini(&agent);
    return status;
}

static dc_status grad(dc_run *run, const flags *f, bool json) {
    grad_inputs in;
    grad_batch batch;
    dc_st_file weights;
    DC_TRY(grad_inputs_find(&in, run));
    dc_status status = grad_batch_read(&batch, &in, f->batch);
    if (status == DC_OK && (status = dc_st_open(&weights, f->weights)) == DC_OK) {
        if (dc_st_meta_get(&weights, "hash")) status = dc_checkpoint_check(&weights, f->weights);
        if (status == DC_OK) status = with_weights(run, f, &in, &batch, &weights, json);
        dc_st_close(&weights);
    }
    grad_batch_free(&batch);
    return status;
}

static dc_status describe(const dc_run *run, bool json) {
    grad_inputs in;
    DC_TRY(grad_inputs_find(&in, run));
    grad_inputs_print(&in, json);
    return DC_OK;
}

// Moments and ranges of a batch are not those of the data it came from.
static dc_status refuse_scaling(const dc_run *run) {
    if (strcmp(run->options.act_scale, "off") != 0)
        return dc_fail(DC_USAGE, "scale the actions of the batch, and leave act_scale out",
                       "dcrl grad takes actions as networks see them (act_scale=%s)",
                       run->options.act_scale);
    if (run->options.obs_scale != DC_SCALING_ON) return DC_OK;
    return dc_fail(DC_USAGE, "scale the observations of the batch, and leave obs_scale out",
                   "dcrl grad takes observations as networks see them (obs_scale=on)");
}

dc_status cmd_grad(int argc, char **argv) {
    flags f;
    cli_args args = {.usage = usage, .flags = table, .config = &f, .takes = CLI_JSON | CLI_SET};
    DC_TRY(cli_args_parse(&args, argc, argv));
    if (args.help) return DC_OK;
    dc_run run = DC_RUN_NONE;
    dc_status status = dc_run_configure(&run, f.agent);
    run.options.device = f.device;
    run.options.precision = f.precision + 1;
    if (status == DC_OK) status = cli_run_sets(&run, &args);
    if (status == DC_OK) status = refuse_scaling(&run);
    for (int i = 0; status == DC_OK && !f.describe && i < 3; i++)
        status = cli_args_need(&args, (const char *const[]){"weights", "batch", "out"}[i]);
    if (status == DC_OK)
        status = f.describe ? describe(&run, args.json) : grad(&run, &f, args.json);
    dc_run_fini(&run);
    return status;
}
