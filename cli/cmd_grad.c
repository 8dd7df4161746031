// dcrl grad: loss and gradients of a method on a batch and weights that come from elsewhere, so
// that any other framework can check them. Every number that a step uses is in the batch; nothing
// is drawn.
#include "args.h"
#include "cli.h"
#include "runs.h"

#include "base/json.h"
#include "data/npz.h"
#include "train/weights.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: dcrl grad --agent AGENT --weights W.safetensors --batch B.npz "
    "--out G.safetensors [--updates N] [--set key=value]...\n"
    "       dcrl grad --agent AGENT --describe [--set key=value]...\n"
    "\n"
    "Evaluates the loss on the batch and writes the gradient of every "
    "weight under the weight's own name, and the\n"
    "losses as scalars. With --updates N it then trains N steps on this "
    "batch and writes after/NAME and\n"
    "after/target_NAME too, and path/LOSS: the losses before each update and "
    "after the last (N + 1).\n"
    "--describe lists the arrays of the batch.\n"
    "\n"
    "example: dcrl grad --agent dcrl --describe --set n=16\n";

typedef struct flags {
    char agent[DC_TEXT_MAX], weights[DC_TEXT_MAX], batch[DC_TEXT_MAX], out[DC_TEXT_MAX];
    bool describe;
    int64_t updates;
} flags;

static const dc_option table[] = {
    {"agent", DC_TEXT, offsetof(flags, agent), "dcrl", 0, 0, NULL, "method; dcrl list agents"},
    {"weights", DC_TEXT, offsetof(flags, weights), "", 0, 0, NULL,
     "tensors net/layer/{w,b,scale,bias}, and target_net/..."},
    {"batch", DC_TEXT, offsetof(flags, batch), "", 0, 0, NULL, "arrays that --describe lists"},
    {"out", DC_TEXT, offsetof(flags, out), "", 0, 0, NULL, "gradients and losses"},
    {"describe", DC_BOOL, offsetof(flags, describe), "off", 0, 0, NULL,
     "list the batch's arrays and stop"},
    {"updates", DC_INT, offsetof(flags, updates), "0", 0, 1e6, NULL,
     "Adam steps to take afterwards"},
    {0},
};

// Names of the streams in a batch: rows come as observations, counts as numbers.
static const struct {
    const char *name, *meaning;
    bool row;
} streams[DC_STREAMS] = {
    [DC_I] = {"obs_i", "start of a segment", true},
    [DC_K] = {"obs_k", "its split", true},
    [DC_J] = {"obs_j", "its end", true},
    [DC_P] = {"obs_p", "start of a propagation row", true},
    [DC_N] = {"obs_n", "the state n' steps later", true},
    [DC_G] = {"obs_g", "its goal", true},
    [DC_A] = {"obs_a", "start of a single step", true},
    [DC_A1] = {"obs_a1", "its end", true},
    [DC_S] = {"obs_s", "state of a policy row", true},
    [DC_AG] = {"obs_ag", "its goal", true},
    [DC_LEFT] = {"left", "steps from i to k", false},
    [DC_RIGHT] = {"right", "steps from k to j", false},
    [DC_NSTEPS] = {"nsteps", "n', steps from p to n", false},
    [DC_OFF] = {"off", "steps from p to g if the goal is ahead in the same trajectory, else -1",
                false},
};

// Random numbers of a step: they are given too.
static const struct {
    const char *name, *shape, *meaning;
    int ndim;
} draws[DC_DRAWS] = {
    [DC_DRAW_NOISE] = {"noise", "(batch, actions)", "where a flow policy's path starts", 2},
    [DC_DRAW_TIME] = {"time", "(batch)", "time on that path, 0 to 1", 1},
};

static bool uses_draw(const dc_agent *agent, int draw) {
    for (int i = 0; i < agent->feeds.feed_count; i++)
        if (draw != DC_DRAW_NONE && (int)agent->feeds.feeds[i].draw == draw) return true;
    return false;
}

// A batch read from a file: a data set whose row s * size + r is row r of stream s. Actions, where
// the method has them, stand beside the observations: act_i beside obs_i.
typedef struct batch {
    int64_t size, width, act_width; // act_width 0: no actions
    bool whole;                     // actions are whole numbers: discrete
    double longest;
    dc_dataset data;
    int64_t *counts[DC_STREAMS]; // (size), count streams only
    float *draws[DC_DRAWS];      // (size) or (size, act_width), those that the method uses
} batch;

static dc_status read_doubles(const dc_npz *npz, const char *name, int ndim, dc_npy *npy,
                              double **values) {
    const dc_npz_entry *entry = dc_npz_find(npz, name);
    if (!entry)
        return dc_fail(DC_BAD_INPUT, "dcrl grad --describe lists what is needed",
                       "%s has no array %s", npz->path, name);
    DC_TRY(dc_npz_head(npz, entry, npy));
    if (npy->ndim != ndim || npy->count == 0)
        return dc_fail(DC_BAD_INPUT, NULL, "%s: array %s must have %d dimension%s", npz->path, name,
                       ndim, ndim == 1 ? "" : "s");
    *values = malloc((size_t)npy->count * sizeof **values);
    if (!*values) return dc_fail(DC_NO_MEMORY, NULL, "no memory for array %s", name);
    dc_status status = dc_npz_doubles(npz, entry, npy, *values);
    if (status != DC_OK) free(*values);
    return status;
}

// Size and width of the batch, from its first observation array.
static dc_status read_shape(const dc_npz *npz, batch *b) {
    for (int s = 0; s < DC_STREAMS; s++) {
        const dc_npz_entry *entry = streams[s].row ? dc_npz_find(npz, streams[s].name) : NULL;
        dc_npy npy;
        if (!entry) continue;
        DC_TRY(dc_npz_head(npz, entry, &npy));
        if (npy.ndim != 2 || npy.shape[0] < 1 || npy.shape[0] > 1 << 20 || npy.shape[1] < 1 ||
            npy.shape[1] > 1 << 20)
            return dc_fail(DC_BAD_INPUT, NULL, "%s: array %s must be (batch, width)", npz->path,
                           streams[s].name);
        b->size = npy.shape[0];
        b->width = npy.shape[1];
        return DC_OK;
    }
    return dc_fail(DC_BAD_INPUT, "dcrl grad --describe lists what is needed",
                   "%s has no observations", npz->path);
}

// "obs_i" -> "act_i".
static void action_name(int s, char out[16]) {
    snprintf(out, 16, "act%s", streams[s].name + 3);
}

static dc_status read_action_width(const dc_npz *npz, batch *b) {
    for (int s = 0; s < DC_STREAMS && !b->act_width; s++) {
        char name[16];
        dc_npy npy;
        action_name(s, name);
        const dc_npz_entry *entry = streams[s].row ? dc_npz_find(npz, name) : NULL;
        if (!entry) continue;
        DC_TRY(dc_npz_head(npz, entry, &npy));
        if (npy.ndim != 2 || npy.shape[1] < 1 || npy.shape[1] > 1 << 20)
            return dc_fail(DC_BAD_INPUT, NULL, "%s: array %s must be (batch, width)", npz->path,
                           name);
        b->act_width = npy.shape[1];
        b->whole = !dc_dtype_is_float(npy.type);
    }
    return DC_OK;
}

static dc_status read_actions(const dc_npz *npz, int s, const batch *b, float *act) {
    char name[16];
    dc_npy npy;
    double *values;
    action_name(s, name);
    if (!streams[s].row || !dc_npz_find(npz, name)) return DC_OK; // goals have none
    DC_TRY(read_doubles(npz, name, 2, &npy, &values));
    bool fits = npy.shape[0] == b->size && npy.shape[1] == b->act_width;
    for (int64_t i = 0; fits && i < b->size * b->act_width; i++)
        act[s * b->size * b->act_width + i] = (float)values[i];
    free(values);
    return fits ? DC_OK
                : dc_fail(DC_BAD_INPUT, NULL, "%s: array %s does not fit the batch", npz->path,
                          name);
}

static dc_status read_stream(const dc_npz *npz, int s, batch *b, float *obs) {
    dc_npy npy;
    double *values;
    if (!dc_npz_find(npz, streams[s].name))
        return DC_OK; // the method may not need it; checked later
    DC_TRY(read_doubles(npz, streams[s].name, streams[s].row ? 2 : 1, &npy, &values));
    bool fits = npy.shape[0] == b->size && (!streams[s].row || npy.shape[1] == b->width);
    if (fits && streams[s].row)
        for (int64_t i = 0; i < b->size * b->width; i++)
            obs[s * b->size * b->width + i] = (float)values[i];
    if (fits && !streams[s].row) {
        b->counts[s] = calloc((size_t)b->size, sizeof *b->counts[s]);
        for (int64_t i = 0; b->counts[s] && i < b->size; i++)
            b->counts[s][i] = values[i] > -1e15 && values[i] < 1e15 ? (int64_t)values[i] : -1;
    }
    free(values);
    if (!fits)
        return dc_fail(DC_BAD_INPUT, NULL, "%s: array %s does not fit the batch", npz->path,
                       streams[s].name);
    return streams[s].row || b->counts[s] ? DC_OK
                                          : dc_fail(DC_NO_MEMORY, NULL, "no memory for the batch");
}

static dc_status read_batch(const dc_npz *npz, batch *b) {
    int64_t *starts;
    float *obs;
    DC_TRY(read_shape(npz, b));
    DC_TRY(dc_dataset_make(&b->data, DC_STREAMS * b->size, 1, &starts));
    starts[0] = 0;
    starts[1] = DC_STREAMS * b->size;
    DC_TRY(dc_dataset_add(&b->data, "obs", b->width, &obs));
    for (int s = 0; s < DC_STREAMS; s++)
        DC_TRY(read_stream(npz, s, b, obs));
    DC_TRY(read_action_width(npz, b));
    float *act = NULL;
    if (b->act_width) DC_TRY(dc_dataset_add(&b->data, "act", b->act_width, &act));
    if (act) b->data.columns[b->data.column_count - 1].whole = b->whole;
    for (int s = 0; act && s < DC_STREAMS; s++)
        DC_TRY(read_actions(npz, s, b, act));
    if (dc_npz_find(npz, "longest")) {
        dc_npy npy;
        double *longest;
        DC_TRY(read_doubles(npz, "longest", 0, &npy, &longest));
        b->longest = *longest;
        free(longest);
    }
    return dc_dataset_seal(&b->data);
}

// Put the batch where the sampler would have put its draws.
static dc_status fix_streams(dc_agent *agent, const batch *b, const dc_npz *npz) {
    for (int s = 0; s < DC_STREAMS; s++) {
        int64_t *stream = dc_sampler_fix(agent->sampler, (dc_stream)s);
        if (!stream) continue;
        if (!dc_npz_find(npz, streams[s].name))
            return dc_fail(DC_BAD_INPUT, "dcrl grad --describe lists what is needed",
                           "%s has no array %s", npz->path, streams[s].name);
        for (int64_t r = 0; r < b->size; r++)
            stream[r] = streams[s].row ? s * b->size + r : b->counts[s][r];
    }
    return DC_OK;
}

static dc_status read_draw(const dc_npz *npz, batch *b, int d) {
    dc_npy npy;
    double *values;
    DC_TRY(read_doubles(npz, draws[d].name, draws[d].ndim, &npy, &values));
    bool fits = npy.shape[0] == b->size && (draws[d].ndim == 1 || npy.shape[1] == b->act_width);
    b->draws[d] = fits ? malloc((size_t)npy.count * sizeof(float)) : NULL;
    for (int64_t i = 0; b->draws[d] && i < (int64_t)npy.count; i++)
        b->draws[d][i] = (float)values[i];
    free(values);
    if (!fits)
        return dc_fail(DC_BAD_INPUT, NULL, "%s: array %s does not fit the batch", npz->path,
                       draws[d].name);
    return b->draws[d] ? DC_OK : dc_fail(DC_NO_MEMORY, NULL, "no memory for the batch");
}

static dc_status give_draws(dc_agent *agent, batch *b, const dc_npz *npz) {
    for (int d = 0; d < DC_DRAWS; d++) {
        if (!uses_draw(agent, d)) continue;
        DC_TRY(read_draw(npz, b, d));
        agent->feeds.given[d] = b->draws[d];
    }
    return DC_OK;
}

// Hidden widths, as the weights have them.
static dc_status read_hidden(const dc_st_file *file, const char *path, dc_int_list *hidden) {
    hidden->count = 0;
    for (int layer = 0; layer <= DC_LIST_MAX; layer++) {
        char name[64];
        snprintf(name, sizeof name, "critic/%d/w", layer);
        const dc_st_tensor *t = dc_st_find(file, name);
        if (!t) break;
        if (t->ndim != 3 || t->shape[2] < 1 || t->shape[2] > 8192)
            return dc_fail(DC_BAD_INPUT, NULL, "%s: tensor %s must be (ensemble, in, out)", path,
                           name);
        if (layer == DC_LIST_MAX)
            return dc_fail(DC_BAD_INPUT, NULL, "%s has too many layers", path);
        hidden->v[hidden->count++] = t->shape[2];
    }
    if (hidden->count < 2)
        return dc_fail(DC_BAD_INPUT, "name them critic/0/w, critic/0/b, ...", "%s has no critic",
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
        o->losses[m] = (float)*dc_value(&agent->exec, agent->metrics[m].node).p;
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

// Train on the batch, which has been run once; the losses of every run are kept.
static void train(dc_agent *agent, const dc_run *run, int64_t updates, float *path) {
    for (int64_t u = 0; u <= updates; u++) {
        if (u > 0) {
            dc_adam adam = dc_agent_adam(agent, run->options.lr, run->options.tau, u - 1);
            dc_backend_cpu.update(&agent->params.slabs, &adam, agent->pool);
            dc_agent_run(agent);
        }
        for (int m = 0; m < agent->metric_count; m++)
            path[m * (updates + 1) + u] = (float)*dc_value(&agent->exec, agent->metrics[m].node).p;
    }
}

static void print_losses(const dc_agent *agent, const float *losses, bool json) {
    dc_text out;
    dc_text_init(&out);
    for (int m = 0; m < agent->metric_count; m++) {
        dc_text_add(&out, json ? "%s\"%s\": " : "%s%s ", json ? (m ? ", " : "{") : "",
                    agent->metrics[m].name);
        dc_json_number(&out, (double)losses[m]);
        if (!json) dc_text_add(&out, "\n");
    }
    printf(json ? "%s}\n" : "%s", out.bytes ? out.bytes : "");
    dc_text_fini(&out);
}

static dc_status evaluate(dc_agent *agent, const dc_run *run, const flags *f, bool json) {
    const dc_slabs *slabs = &agent->params.slabs;
    size_t most = (size_t)agent->params.count * 3 + 2 * DC_METRICS_MAX;
    float losses[DC_METRICS_MAX] = {0};
    output o = {calloc(most, sizeof *o.tensors),
                calloc(most, sizeof *o.names),
                losses,
                0,
                malloc((size_t)slabs->size * sizeof(dc_real)),
                calloc(DC_METRICS_MAX * ((size_t)f->updates + 1), sizeof(float))};
    dc_status status = o.tensors && o.names && o.grad && o.path
                           ? DC_OK
                           : dc_fail(DC_NO_MEMORY, NULL, "no memory for the gradients");
    if (status == DC_OK) {
        dc_agent_run(agent);
        memcpy(o.grad, slabs->grad, (size_t)slabs->size * sizeof(dc_real));
        put_losses(&o, agent);
        put_slab(&o, &agent->params, o.grad, "", slabs->size);
        train(agent, run, f->updates, o.path);
        if (f->updates) put_slab(&o, &agent->params, slabs->live, "after/", slabs->size);
        if (f->updates) put_slab(&o, &agent->params, slabs->ema, "after/target_", slabs->ema_size);
        if (f->updates) put_path(&o, agent, f->updates);
        status = dc_st_write(f->out, o.tensors, o.count, NULL, 0);
    }
    if (status == DC_OK) print_losses(agent, losses, json);
    free(o.path);
    free(o.grad);
    free(o.names);
    free(o.tensors);
    return status;
}

static dc_status with_files(dc_run *run, const flags *f, const dc_npz *npz,
                            const dc_st_file *weights, bool json) {
    batch b = {0};
    dc_agent agent = {0};
    dc_agent_options options;
    DC_TRY(dc_run_agent_options(run, &options));
    dc_status status = read_batch(npz, &b);
    if (status == DC_OK) status = read_hidden(weights, f->weights, &options.hidden);
    options.batch = (int)b.size;
    options.longest = b.longest;
    if (status == DC_OK)
        status = dc_agent_init(&agent, run->algo, run->config, &options, &b.data, NULL);
    if (status == DC_OK) status = fix_streams(&agent, &b, npz);
    if (status == DC_OK) status = give_draws(&agent, &b, npz);
    if (status == DC_OK) status = read_weights(&agent, weights, f->weights);
    if (status == DC_OK) status = evaluate(&agent, run, f, json);
    dc_agent_fini(&agent);
    for (int s = 0; s < DC_STREAMS; s++)
        free(b.counts[s]);
    for (int d = 0; d < DC_DRAWS; d++)
        free(b.draws[d]);
    dc_dataset_fini(&b.data);
    return status;
}

static dc_status grad(dc_run *run, const flags *f, bool json) {
    dc_npz npz;
    dc_st_file weights;
    DC_TRY(dc_npz_open(&npz, f->batch));
    dc_status status = dc_st_open(&weights, f->weights);
    if (status == DC_OK) {
        status = with_files(run, f, &npz, &weights, json);
        dc_st_close(&weights);
    }
    dc_npz_close(&npz);
    return status;
}

// Which streams a method fills, by building it on a tiny data set.
static dc_status tiny_data(dc_dataset *data) {
    int64_t *starts;
    float *values;
    DC_TRY(dc_dataset_make(data, 4, 1, &starts));
    starts[1] = 4;
    DC_TRY(dc_dataset_add(data, "obs", 4, &values));
    DC_TRY(dc_dataset_add(data, "act", 1, &values));
    return dc_dataset_seal(data);
}

static void describe_stream(int s, bool value, bool json, bool first) {
    const char *shape = streams[s].row ? "(batch, width)" : "(batch)";
    bool goal = s == DC_J || s == DC_G || s == DC_A1 || s == DC_AG;
    if (json)
        printf("%s{\"name\": \"%s\", \"shape\": \"%s\", \"type\": \"number\", \"meaning\": \"%s\"}",
               first ? "{\"inputs\": [" : ", ", streams[s].name, shape, streams[s].meaning);
    else
        printf("%-8s %-15s %s\n", streams[s].name, shape, streams[s].meaning);
    if (!value || !streams[s].row || goal) return;
    const char *letter = streams[s].name + 3;
    if (json)
        printf(", {\"name\": \"act%s\", \"shape\": \"(batch, actions)\", \"type\": \"number\", "
               "\"meaning\": "
               "\"action there\"}",
               letter);
    else
        printf("act%-5s (batch, actions) action there\n", letter);
}

static void describe_draw(int d, bool json) {
    if (json)
        printf(", {\"name\": \"%s\", \"shape\": \"%s\", \"type\": \"number\", \"meaning\": \"%s\"}",
               draws[d].name, draws[d].shape, draws[d].meaning);
    else
        printf("%-8s %-15s %s\n", draws[d].name, draws[d].shape, draws[d].meaning);
}

static dc_status describe(dc_run *run, bool json) {
    dc_dataset data = {0};
    dc_agent agent = {0};
    dc_agent_options options;
    DC_TRY(dc_run_agent_options(run, &options));
    options.batch = 1;
    options.hidden = (dc_int_list){1, {1}};
    dc_status status = tiny_data(&data);
    if (status == DC_OK)
        status = dc_agent_init(&agent, run->algo, run->config, &options, &data, NULL);
    bool first = true;
    for (int s = 0; status == DC_OK && s < DC_STREAMS; s++) {
        if (!dc_sampler_stream(agent.sampler, (dc_stream)s)) continue;
        describe_stream(s, options.form == DC_FORM_VALUE, json, first);
        first = false;
    }
    for (int d = 0; status == DC_OK && d < DC_DRAWS; d++)
        if (uses_draw(&agent, d)) describe_draw(d, json);
    if (status == DC_OK && json) puts("]}");
    if (status == DC_OK && !json && options.form == DC_FORM_DISTANCE)
        puts("longest  ()              states of the longest trajectory, where targets are clipped "
             "(optional)");
    dc_agent_fini(&agent);
    dc_dataset_fini(&data);
    return status;
}

dc_status cmd_grad(int argc, char **argv) {
    flags f;
    cli_args args = {.usage = usage, .flags = table, .config = &f, .takes = CLI_JSON | CLI_SET};
    DC_TRY(cli_args_parse(&args, argc, argv));
    if (args.help) return DC_OK;
    dc_run run = DC_RUN_NONE;
    dc_status status = dc_run_configure(&run, f.agent);
    if (status == DC_OK) status = cli_run_sets(&run, &args);
    for (int i = 0; status == DC_OK && !f.describe && i < 3; i++)
        status = cli_args_need(&args, (const char *const[]){"weights", "batch", "out"}[i]);
    if (status == DC_OK)
        status = f.describe ? describe(&run, args.json) : grad(&run, &f, args.json);
    dc_run_fini(&run);
    return status;
}
