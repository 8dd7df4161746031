// What all methods share: building in the right order, one step's gradients, asking the critic.
#include "algo/agent.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ALGO(row) extern const dc_algo row;
#include "algo/algos.def"
#undef ALGO

const dc_algo *const dc_algos[] = {
#define ALGO(row) &row,
#include "algo/algos.def"
#undef ALGO
    NULL,
};

dc_status dc_algo_find(const char *name, const dc_algo **algo) {
    const char *names[64];
    size_t count = 0;
    for (; dc_algos[count]; count++) {
        names[count] = dc_algos[count]->name;
        if (!strcmp(name, names[count])) {
            *algo = dc_algos[count];
            return DC_OK;
        }
    }
    const char *near = dc_nearest(name, names, count);
    if (near) return dc_fail(DC_USAGE, NULL, "unknown agent '%s': did you mean '%s'?", name, near);
    return dc_fail(DC_USAGE, "dcrl list agents shows them", "unknown agent '%s'", name);
}

void dc_agent_feed(dc_agent *a, dc_feed feed) {
    DC_CHECK(a->feeds.feed_count < DC_FEEDS_MAX);
    a->feeds.feeds[a->feeds.feed_count++] = feed;
}

dc_status dc_agent_count_actions(dc_agent *a) {
    const dc_column *act = dc_dataset_column(a->data, "act");
    if (!act)
        return dc_fail(DC_BAD_INPUT, "use form=distance, or a data set with actions",
                       "the data set has no actions");
    if (!act->whole) return DC_OK;
    if (act->width != 1)
        return dc_fail(DC_UNSUPPORTED,
                       "store them as floating-point numbers, or as one number a row",
                       "discrete actions of %d numbers", act->width);
    for (int64_t r = 0; r < a->data->rows; r++) {
        float x = act->values[r];
        if (!(x >= 0 && x < DC_ACTIONS_MAX) || x != (float)(int)x)
            return dc_fail(DC_BAD_INPUT, "number them from 0, 256 at most",
                           "impossible discrete action (row %lld, %g)", (long long)r, (double)x);
        if ((int)x >= a->actions) a->actions = (int)x + 1;
    }
    return DC_OK;
}

int dc_agent_act_width(const dc_agent *a) {
    return a->actions ? a->actions : dc_dataset_column(a->data, "act")->width;
}

void dc_agent_feed_action(dc_agent *a, dc_ref input, int row0, int col0, dc_stream stream,
                          dc_pack *pack) {
    dc_agent_feed(a, (dc_feed){.input = input,
                               .row0 = row0,
                               .col0 = col0,
                               .column = dc_dataset_column(a->data, "act"),
                               .stream = stream,
                               .pack = pack,
                               .one_hot = a->actions});
}

dc_pack *dc_agent_pack(dc_agent *a, dc_ref input, int fixed_rows, const char *name, dc_stream steps,
                       int known) {
    DC_CHECK(a->feeds.pack_count < DC_PACKS_MAX);
    dc_pack *p = &a->feeds.packs[a->feeds.pack_count];
    a->feeds.fixed_rows[a->feeds.pack_count++] = fixed_rows;
    *p = (dc_pack){.input = input, .steps = steps, .known = known};
    p->index = dc_input(&a->graph, name, a->options.batch, 1);
    p->rows = dc_arena_take(&a->graph.arena, (size_t)a->options.batch * sizeof *p->rows);
    if (!p->rows) a->graph.status = DC_NO_MEMORY;
    return p;
}

void dc_agent_metric(dc_agent *a, const char *name, dc_ref node) {
    DC_CHECK(a->metric_count < DC_METRICS_MAX);
    dc_keep(&a->graph, node);
    a->metrics[a->metric_count].name = name;
    a->metrics[a->metric_count++].node = node;
}

// The forward-only graph over the same weights.
static dc_status build_ask(dc_agent *a) {
    DC_TRY(dc_graph_init(&a->ask_graph));
    a->ask_in = dc_input(&a->ask_graph, "rows", DC_ASK_ROWS, a->critic.in);
    a->ask_out = dc_mlp_apply(&a->ask_graph, &a->critic, a->ask_in, DC_STOPPED);
    dc_keep(&a->ask_graph, a->ask_out);
    DC_TRY(dc_graph_finish(&a->ask_graph, -1));
    return dc_exec_init(&a->ask, &a->ask_graph, &a->params.slabs, a->pool);
}

// The columns that stand for a goal. Neighbours stay where they are; others are copied out of the
// observations once, because rows are gathered whole.
static dc_status take_goals(dc_agent *a) {
    const dc_column *obs = dc_dataset_column(a->data, "obs");
    const dc_agent_options *o = &a->options;
    bool apart = false;
    for (int k = 0; k < o->rep_size; k++) {
        if (o->rep[k] < 0 || o->rep[k] >= obs->width)
            return dc_fail(DC_USAGE, "give first column and count, for instance rep=0,2",
                           "the goal representation lies outside an observation of %d columns",
                           obs->width);
        apart = apart || o->rep[k] != o->rep[0] + k;
    }
    a->goals = o->goals ? *o->goals : *obs;
    if (!apart || o->goals) return DC_OK;
    int64_t rows = a->data->rows;
    a->goal_values = malloc((size_t)rows * (size_t)o->rep_size * sizeof *a->goal_values);
    if (!a->goal_values)
        return dc_fail(DC_NO_MEMORY, NULL, "no memory for goals of %lld rows", (long long)rows);
    for (int64_t r = 0; r < rows; r++)
        for (int k = 0; k < o->rep_size; k++)
            a->goal_values[r * o->rep_size + k] = obs->values[r * obs->width + o->rep[k]];
    a->goals = (dc_column){.name = "goals", .values = a->goal_values, .width = o->rep_size};
    return DC_OK;
}

static dc_status build(dc_agent *a, const void *config) {
    DC_TRY(dc_graph_init(&a->graph));
    a->feeds.batch = a->options.batch;
    a->feeds.seed = a->options.seed;
    if (!dc_dataset_column(a->data, "obs"))
        return dc_fail(DC_BAD_INPUT, NULL, "the data set has no observations");
    DC_TRY(take_goals(a));
    DC_TRY(a->algo->build(a, config)); // declares networks, describes the loss, makes the sampler
    return DC_OK;
}

dc_status dc_agent_init(dc_agent *a, const dc_algo *algo, const void *config,
                        const dc_agent_options *options, const dc_dataset *data, dc_pool *pool) {
    *a = (dc_agent){.algo = algo, .data = data, .options = *options, .pool = pool};
    dc_status status = build(a, config);
    if (status != DC_OK) dc_agent_fini(a);
    return status;
}

dc_status dc_agent_finish(dc_agent *a, dc_ref loss, const dc_sampler_spec *spec) {
    DC_TRY(dc_graph_finish(&a->graph, loss));
    DC_TRY(dc_params_alloc(&a->params, a->options.seed));
    DC_TRY(dc_exec_init(&a->exec, &a->graph, &a->params.slabs, a->pool));
    DC_TRY(build_ask(a));
    DC_TRY(dc_ahead_init(&a->ahead, a->data, spec));
    return dc_sampler_new(&a->sampler, a->data, spec);
}

void dc_agent_fini(dc_agent *a) {
    dc_sampler_free(a->sampler);
    dc_ahead_fini(&a->ahead);
    dc_exec_fini(&a->ask);
    dc_exec_fini(&a->exec);
    dc_graph_fini(&a->ask_graph);
    dc_graph_fini(&a->graph);
    dc_params_free(&a->params);
    free(a->goal_values);
    *a = (dc_agent){0};
}

void dc_agent_run(dc_agent *a) {
    dc_gather(&a->feeds, a->sampler, &a->exec); // rows
    dc_exec_run(&a->exec, &dc_backend_cpu);     // forward + backward
}

dc_status dc_agent_gradients(dc_agent *a, uint64_t step) {
    a->step = step;
    DC_TRY(dc_sampler_next(a->sampler, step));                        // integers
    dc_gather(&a->feeds, a->sampler, &a->exec);                       // rows
    DC_TRY(dc_ahead_next(&a->ahead, &a->feeds, a->sampler, a->pool)); // of the next step
    dc_exec_run(&a->exec, &dc_backend_cpu);                           // forward + backward
    return DC_OK;
}

dc_adam dc_agent_adam(const dc_agent *a, double lr, double tau, int64_t done) {
    dc_adam adam = {.lr = lr, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .tau = tau};
    bool late = a->policy_after && done >= a->policy_after;
    adam.step = done + 1 - (late ? a->policy_after : 0); // the policy's moments begin at zero
    adam.first = late ? a->policy_first : 0;
    adam.last = a->policy_after && !late ? a->policy_first : a->params.slabs.size;
    return adam;
}

// Question number r: [s | g], and in the value form the action taken at s.
static void put_question(const dc_agent *a, dc_real *row, int64_t s, int64_t g) {
    const dc_column *obs = dc_dataset_column(a->data, "obs"),
                    *act = dc_dataset_column(a->data, "act");
    int w = obs->width;
    for (int c = 0; c < w; c++) {
        row[c] = (dc_real)obs->values[s * w + c];
        row[w + c] = (dc_real)obs->values[g * w + c];
    }
    if (a->options.form == DC_FORM_DISTANCE) return;
    for (int c = 0; c < dc_agent_act_width(a); c++) {
        float x =
            a->actions ? (float)(act->values[s] == (float)c) : act->values[s * act->width + c];
        row[2 * w + c] = (dc_real)x;
    }
}

static float answer(const dc_agent *a, dc_view out, int r) {
    if (a->options.form == DC_FORM_DISTANCE) return (float)out.p[r];
    double sum = 0; // of -log sigmoid(logit)
    for (int e = 0; e < out.e; e++) {
        double logit = (double)out.p[e * out.step + r];
        sum += fmax(-logit, 0) + log1p(exp(-fabs(logit)));
    }
    return (float)(sum / (out.e * -log(a->options.gamma)));
}

dc_status dc_agent_distances(dc_agent *a, int64_t count, const int64_t *s, const int64_t *g,
                             float *d) {
    dc_view in = dc_value(&a->ask, a->ask_in), out = dc_value(&a->ask, a->ask_out);
    for (int64_t from = 0; from < count; from += DC_ASK_ROWS) {
        int rows = (int)(count - from < DC_ASK_ROWS ? count - from : DC_ASK_ROWS);
        for (int r = 0; r < rows; r++)
            put_question(a, in.p + (int64_t)r * in.cols, s[from + r], g[from + r]);
        a->ask.used[a->ask_in] = rows;
        if (a->ask_by)
            DC_TRY(a->ask_by(a->ask_ctx));
        else
            dc_exec_run(&a->ask, &dc_backend_cpu);
        for (int r = 0; r < rows; r++)
            d[from + r] = answer(a, out, r);
    }
    return DC_OK;
}
