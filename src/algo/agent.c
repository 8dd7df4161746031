// What all methods share: building in the right order, one step's gradients, asking the value.
#include "algo/agent.h"

#include "algo/backup.h"
#include "backend/cpu/cpu.h"

#include <math.h>
#include <stdio.h>
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
    if (!strcmp(name, dc_algo_sac.name)) return *algo = &dc_algo_sac, DC_OK;
    const char *near = dc_nearest(name, names, count);
    if (near) return dc_fail(DC_USAGE, NULL, "unknown agent '%s': did you mean '%s'?", name, near);
    return dc_fail(DC_USAGE, "dcrl list agents shows them", "unknown agent '%s'", name);
}

dc_status dc_need_actions(const dc_method *m) {
    if (m->act) return DC_OK;
    if (!m->form->acts)
        return dc_fail(DC_USAGE, "use form=value (locks take form=distance by themselves)",
                       "%s learns from actions, which form=distance leaves out", m->algo->name);
    return dc_fail(DC_BAD_INPUT, "use a data set with actions, or a method with form=distance",
                   "the data set has no actions that %s could learn from", m->algo->name);
}

dc_status dc_need_real_actions(const dc_method *m) {
    if (!m->form->acts)
        return dc_fail(
            DC_USAGE, "use form=value; for a lock, whose actions are discrete, use another method",
            "%s learns from real-valued actions, which form=distance leaves out", m->algo->name);
    DC_TRY(dc_need_actions(m));
    if (!m->actions) return DC_OK;
    return dc_fail(DC_UNSUPPORTED, "use another method (dcrl list agents), or real-valued actions",
                   "%s needs real-valued actions, the data has %d discrete ones", m->algo->name,
                   m->actions);
}

void dc_agent_metric(dc_agent *a, const char *name, dc_ref node) {
    DC_CHECK(a->metric_count < DC_METRICS_MAX);
    dc_keep(&a->graph, node);
    a->metrics[a->metric_count].name = name;
    a->metrics[a->metric_count++].node = node;
}

dc_ref dc_agent_net(dc_agent *a, const char *name, dc_ref x, dc_use use) {
    return dc_net_apply(&a->graph, &a->nets, name, x, use);
}

dc_ref dc_agent_scalar(dc_agent *a, const char *name, dc_use use) {
    return dc_net_scalar(&a->graph, &a->nets, name, use);
}

// ---- what the method sees of the data ----

dc_status dc_count_actions(const dc_dataset *data, const dc_column *act, int *actions) {
    *actions = 0;
    if (!act->whole) return DC_OK;
    if (act->width != 1)
        return dc_fail(DC_UNSUPPORTED,
                       "store them as floating-point numbers, or as one number per row",
                       "discrete actions of %d numbers", act->width);
    for (int64_t r = 0; r < data->rows; r++) {
        float x = act->values[r];
        if (!(x >= 0 && x < DC_ACTIONS_MAX) || x != (float)(int)x)
            return dc_fail(DC_BAD_INPUT, "number them from 0, 256 at most",
                           "impossible discrete action (row %lld, %g)", (long long)r, (double)x);
        if ((int)x >= *actions) *actions = (int)x + 1;
    }
    return DC_OK;
}

static double longest(const dc_dataset *data) {
    int64_t most = 0;
    for (int64_t t = 0; t < data->traj_count; t++) {
        int64_t rows = data->traj_start[t + 1] - data->traj_start[t];
        if (rows > most) most = rows;
    }
    return (double)most;
}

// Whether data have the form of those of another agent.
static dc_status check_like(const dc_agent *a) {
    const char *names[] = {"obs", "act"};
    for (int c = 0; a->options.like && c < 2; c++) {
        const dc_column *is = dc_dataset_column(a->data, names[c]),
                        *was = dc_dataset_column(a->options.like->data, names[c]);
        if (!is && !was) continue;
        if (!is || !was || is->width != was->width || is->type != was->type ||
            is->whole != was->whole)
            return dc_fail(DC_BAD_INPUT, NULL,
                           "'%s' has another size or type than in the run's data", names[c]);
    }
    return DC_OK;
}

dc_status dc_pictures_parse(const char *text, dc_pictures *pictures, dc_picture *given) {
    char rest;
    *given = (dc_picture){0};
    *pictures = !strcmp(text, "off") ? DC_PICTURES_OFF : DC_PICTURES_AUTO;
    if (!strcmp(text, "auto") || *pictures == DC_PICTURES_OFF) return DC_OK;
    *pictures = DC_PICTURES_GIVEN;
    int found =
        sscanf(text, "%4d,%4d,%4d%c", &given->height, &given->width, &given->channels, &rest);
    bool fits = found == 3 && given->height >= 1 && given->height <= DC_PICTURE_MOST &&
                given->width >= 1 && given->width <= DC_PICTURE_MOST && given->channels >= 1 &&
                given->channels <= DC_PICTURE_CHANNELS;
    if (fits) return DC_OK;
    return dc_fail(DC_USAGE, NULL,
                   "picture must be auto, off or HEIGHT,WIDTH,CHANNELS, such as 64,64,3 (%.60s)",
                   text);
}

static bool side(int64_t places) {
    return places >= DC_PICTURE_LEAST && places <= DC_PICTURE_MOST;
}

// What an observation shows, if it is a picture.
static dc_status find_picture(const dc_agent *a, const dc_column *obs, dc_picture *out) {
    const dc_agent_options *o = &a->options;
    const int64_t *shape = obs->type == DC_TYPE_U8 && obs->ndim == 3 ? obs->shape : NULL;
    *out = o->picture;
    if (o->pictures == DC_PICTURES_AUTO && shape && side(shape[0]) && side(shape[1]) &&
        shape[2] <= DC_PICTURE_CHANNELS)
        *out = (dc_picture){(int)shape[0], (int)shape[1], (int)shape[2]};
    if (o->crop > 0 && o->crop_pad > 0 && !out->height)
        return dc_fail(DC_USAGE, "leave crop out",
                       "observations are no pictures that could be cropped");
    if (o->concat && !out->height)
        return dc_fail(DC_USAGE, "leave fusion out",
                       "observations are no pictures that an encoder could see side by side");
    if (!out->height || dc_picture_cells(*out) == obs->width) return DC_OK;
    return dc_fail(DC_USAGE, "give the shape that the data have, or picture=auto",
                   "an observation has %d values, a picture of %d,%d,%d has %d", obs->width,
                   out->height, out->width, out->channels, dc_picture_cells(*out));
}

static dc_status make_method(dc_agent *a, const dc_algo *algo, const void *config) {
    const dc_agent_options *o = &a->options;
    const dc_column *obs = dc_dataset_column(a->data, "obs"),
                    *act = dc_dataset_column(a->data, "act");
    if (!obs) return dc_fail(DC_BAD_INPUT, NULL, "the data set has no observations");
    a->method = (dc_method){.algo = algo,
                            .config = config,
                            .form = o->form,
                            .gamma = o->gamma,
                            .hidden = o->hidden,
                            .seed = o->seed,
                            .batch = o->part ? o->part : o->batch,
                            .steps = o->steps,
                            .longest = o->longest > 0 ? o->longest : longest(a->data),
                            .obs = obs->width,
                            .goal = o->rep_size ? o->rep_size : obs->width,
                            .acted = o->acted,
                            .averaged = o->averaged,
                            .concat = o->concat,
                            .rep = o->rep_size > 0};
    DC_TRY(find_picture(a, obs, &a->method.picture));
    if (!act || !o->form->acts) return DC_OK;
    DC_TRY(dc_count_actions(a->data, act, &a->method.actions));
    if (o->like && a->method.actions > o->like->method.actions)
        return dc_fail(DC_BAD_INPUT, NULL, "there is an action %d, the run has %d",
                       a->method.actions - 1, o->like->method.actions);
    if (o->like) a->method.actions = o->like->method.actions;
    a->method.act = a->method.actions ? a->method.actions : act->width;
    return DC_OK;
}

static const char *goal_column(const dc_agent_options *o) {
    return o->rep_size && o->goal_column && *o->goal_column ? o->goal_column : "obs";
}

// The columns that stand for a goal. Neighbours in an observation stay where they are; others are copied out
// once, because rows are gathered whole.
static dc_status take_goals(dc_agent *a) {
    const dc_agent_options *o = &a->options;
    const char *name = goal_column(o);
    const dc_column *from = dc_dataset_column(a->data, name);
    bool apart = strcmp(name, "obs") != 0;
    if (!from)
        return dc_fail(DC_BAD_INPUT,
                       "give data with it, or take goals from observations: --goal-column obs",
                       "the data set has no array %s to take goals from", name);
    for (int k = 0; k < o->rep_size; k++) {
        if (o->rep[k] < 0 || o->rep[k] >= from->width)
            return dc_fail(DC_USAGE, "give first column and count, for instance rep=0,2",
                           "the goal representation lies outside %s of %d columns",
                           apart && strcmp(name, "obs") != 0 ? name : "an observation",
                           from->width);
        apart = apart || o->rep[k] != o->rep[0] + k;
    }
    a->goals = o->goals ? *o->goals : *from;
    if (!apart || o->goals) return DC_OK;
    int64_t rows = a->data->rows;
    a->goal_values = malloc((size_t)rows * (size_t)o->rep_size * sizeof *a->goal_values);
    if (!a->goal_values)
        return dc_fail(DC_NO_MEMORY, NULL, "no memory for goals of %lld rows", (long long)rows);
    for (int64_t r = 0; r < rows; r++)
        for (int k = 0; k < o->rep_size; k++)
            a->goal_values[r * o->rep_size + k] = dc_column_value(from, r, o->rep[k]);
    a->goals = (dc_column){.name = "goals", .values = a->goal_values, .width = o->rep_size};
    return DC_OK;
}

int dc_agent_goal_skip(const dc_agent *a) {
    const dc_column *obs = dc_dataset_column(a->data, "obs");
    bool part = dc_column_at(&a->goals, 0, 0) == dc_column_at(obs, 0, 0);
    return part && a->options.rep_size ? a->options.rep[0] : 0; // else copied out already
}

// Means and rates of observations; goals have those of the columns that they are.
static dc_status take_scales(dc_agent *a) {
    const dc_column *obs = dc_dataset_column(a->data, "obs");
    const dc_agent_options *o = &a->options;
    bool bytes = obs->type == DC_TYPE_U8;
    if (o->like) {
        a->method.obs_scale = o->like->method.obs_scale;
        a->method.goal_scale = o->like->method.goal_scale;
        return DC_OK;
    }
    if (o->scaling == DC_SCALING_OFF || (o->scaling == DC_SCALING_AUTO && !bytes)) return DC_OK;
    size_t width = (size_t)obs->width, goal = (size_t)a->method.goal;
    double *moments = malloc(2 * width * sizeof *moments);
    a->scales = calloc(2 * (width + goal), sizeof *a->scales);
    dc_status status = moments && a->scales
                           ? dc_dataset_moments(a->data, "obs", a->pool, moments, moments + width)
                           : dc_fail(DC_NO_MEMORY, NULL, "no memory to scale observations");
    float *mean = a->scales, *rate = mean + width, *goal_mean = rate + width;
    for (size_t c = 0; status == DC_OK && c < width; c++) {
        mean[c] = (float)moments[c];
        rate[c] = (float)(1 / moments[width + c]);
    }
    bool other = strcmp(goal_column(o), "obs") != 0; // beside pictures such goals stay as they are
    if (status == DC_OK && other && dc_dataset_column(a->data, "obs")->type != DC_TYPE_U8)
        return free(moments), dc_fail(DC_UNSUPPORTED, "use obs_scale=off, or --goal-column obs",
                                      "goals from %s cannot be scaled", goal_column(o));
    for (size_t k = 0; status == DC_OK && k < goal; k++) {
        size_t c = o->rep_size ? (size_t)o->rep[k] : k;
        goal_mean[k] = other ? 0 : mean[c];
        goal_mean[goal + k] = other ? 1 : rate[c];
    }
    free(moments);
    DC_TRY(status);
    a->obs_scale = (dc_scale){mean, rate};
    a->goal_scale = (dc_scale){goal_mean, goal_mean + goal};
    a->method.obs_scale = &a->obs_scale;
    a->method.goal_scale = &a->goal_scale;
    return DC_OK;
}

// What real actions are scaled by. Discrete ones have no units.
static dc_status take_act_scale(dc_agent *a) {
    const dc_agent_options *o = &a->options;
    if (!a->method.act) return DC_OK;
    if (o->like && o->like->method.act_scale) {
        a->method.act_scale = o->like->method.act_scale;
        return DC_OK;
    }
    if (a->method.actions && o->act_scaling != DC_ACTIONS_AS_THEY_ARE)
        return dc_fail(DC_USAGE, "leave act_scale out", "discrete actions are not scaled");
    if (a->method.actions) return DC_OK;
    DC_TRY(dc_act_scale_take(&a->act_scale, a->data, o->act_scaling, o->act_given));
    if (a->act_scale.width) a->method.act_scale = &a->act_scale;
    return DC_OK;
}

// ---- building ----

static int need_width(const dc_method *m, const dc_need *need) {
    return need->width == DC_NEED_OBS ? m->obs : need->width == DC_NEED_GOAL ? m->goal : 1;
}

static dc_status check_needs(const dc_agent *a, const dc_algo *algo) {
    const char *hint = "docs/agents.md says what these arrays are; dcrl expert train makes its own";
    for (const dc_need *need = algo->needs; need && need->name; need++) {
        const dc_column *column = dc_dataset_column(a->data, need->name);
        int width = need_width(&a->method, need);
        if (!column)
            return dc_fail(DC_BAD_INPUT, hint, "%s needs an array '%s', which the data set lacks",
                           algo->name, need->name);
        if (column->width != width || column->type != DC_TYPE_F32)
            return dc_fail(DC_BAD_INPUT, hint, "%s needs %d numbers in each row of '%s'",
                           algo->name, width, need->name);
    }
    return DC_OK;
}

// Plan, memory, weights, sampler.
static dc_status finish(dc_agent *a, dc_ref loss) {
    DC_TRY(dc_graph_finish(&a->graph, loss));
    DC_TRY(dc_params_alloc(&a->params, a->options.seed));
    DC_TRY(dc_exec_init(&a->exec, &a->graph, &a->params.slabs, a->pool));
    if (a->method.algo->query)
        DC_TRY(dc_infer_new(&a->query,
                            a->method.algo->whole_goals ? DC_INFER_QUERY_DATA : DC_INFER_QUERY,
                            &a->method, &a->nets, &a->params.slabs,
                            a->method.picture.height ? DC_QUERY_PICTURES : DC_QUERY_ROWS, a->pool));
    DC_TRY(dc_prefetch_init(&a->ahead, a->data, &a->rows));
    return dc_sampler_new(&a->sampler, a->data, &a->rows);
}

static void take_crop(dc_agent *a) {
    dc_picture p = a->method.picture;
    if (!p.height || !(a->options.crop > 0)) return;
    a->feeds.crop = (dc_crop){.rate = (float)a->options.crop,
                              .pad = a->options.crop_pad,
                              .height = p.height,
                              .width = p.width,
                              .channels = p.channels};
}

static dc_status build(dc_agent *a, const dc_algo *algo, const void *config) {
    const dc_method *m = &a->method;
    DC_TRY(dc_graph_init(&a->graph));
    DC_TRY(check_like(a));
    DC_TRY(make_method(a, algo, config));
    DC_TRY(take_goals(a));
    DC_TRY(take_scales(a));
    DC_TRY(take_act_scale(a));
    a->scratch = malloc((size_t)(2 * m->obs) * sizeof *a->scratch);
    if (!a->scratch) return dc_fail(DC_NO_MEMORY, NULL, "no memory");
    if (algo->check) DC_TRY(algo->check(m));
    DC_TRY(check_needs(a, algo));
    a->rows = (dc_row_table){.seed = m->seed, .batch = a->options.batch};
    a->feeds.batch = m->batch;
    a->feeds.first = a->options.first;
    a->feeds.seed = m->seed;
    take_crop(a);
    algo->rows(&a->rows, m);
    a->nets.picture = m->picture;
    a->nets.concat = m->concat;
    algo->networks(&a->nets, m);
    DC_TRY(dc_nets_check(&a->nets));
    a->nets.averaged = m->averaged;
    dc_nets_place(&a->nets, &a->params, &m->hidden);
    a->policy_after = algo->policy_after ? algo->policy_after(m) : 0;
    return finish(a, algo->losses(a, m));
}

dc_status dc_agent_init(dc_agent *a, const dc_algo *algo, const void *config,
                        const dc_agent_options *options, const dc_dataset *data, dc_pool *pool) {
    *a = (dc_agent){.data = data, .options = *options, .pool = pool};
    dc_status status = options->gamma >= 0
                           ? build(a, algo, config)
                           : dc_fail(DC_USAGE, "give a number",
                                     "gamma=auto is found where a run starts, not here");
    if (status != DC_OK) dc_agent_fini(a);
    return status;
}

void dc_agent_fini(dc_agent *a) {
    dc_sampler_free(a->sampler);
    dc_prefetch_fini(&a->ahead);
    dc_infer_free(a->query);
    dc_exec_fini(&a->exec);
    dc_graph_fini(&a->graph);
    dc_params_free(&a->params);
    free(a->goal_values);
    free(a->scales);
    dc_act_scale_fini(&a->act_scale);
    free(a->scratch);
    *a = (dc_agent){0};
}

// ---- a step ----

void dc_agent_run(dc_agent *a) {
    dc_gather(&a->feeds, a->sampler, &a->exec); // rows
    dc_exec_run(&a->exec, &dc_backend_cpu);     // forward + backward
}

dc_status dc_agent_gradients(dc_agent *a, uint64_t step) {
    a->step = step;
    DC_TRY(dc_sampler_next(a->sampler, step));                           // integers
    dc_gather(&a->feeds, a->sampler, &a->exec);                          // rows
    DC_TRY(dc_prefetch_next(&a->ahead, &a->feeds, a->sampler, a->pool)); // of the next step
    dc_exec_run(&a->exec, &dc_backend_cpu);                              // forward + backward
    return DC_OK;
}

dc_adam dc_agent_adam(const dc_agent *a, double lr, double tau, int64_t done) {
    dc_adam adam = {.lr = lr, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .tau = tau};
    bool late = a->policy_after && done >= a->policy_after;
    adam.step = done + 1 - (late ? a->policy_after : 0); // the policy's moments begin at zero
    adam.first = late ? a->nets.policy_first : 0;
    adam.last = a->policy_after && !late ? a->nets.policy_first : a->params.slabs.size;
    return adam;
}

// ---- queries ----

// `count` values of a row as floats: where they lie, or a copy in scratch.
static const float *floats_of(const dc_column *column, int64_t row, int first, int count,
                              float *scratch) {
    if (column->type == DC_TYPE_F32) return column->values + row * column->width + first;
    dc_column_floats(column, row, first, count, scratch);
    return scratch;
}

static void write_query(dc_agent *a, int row, int64_t s, int64_t g) {
    const dc_column *obs = dc_dataset_column(a->data, "obs"),
                    *act = dc_dataset_column(a->data, "act");
    float choice[DC_ACTIONS_MAX];
    const float *taken = NULL, *goal;
    if (a->method.actions) {
        for (int c = 0; c < a->method.actions; c++)
            choice[c] = (float)(act->values[s] == (float)c);
        taken = choice;
    } else if (a->method.act) {
        taken = act->values + s * act->width;
    }
    if (a->query->data_goals)
        goal = floats_of(obs, g, 0, obs->width, a->scratch);
    else
        goal = floats_of(&a->goals, g, dc_agent_goal_skip(a), a->method.goal, a->scratch);
    dc_infer_write(a->query, row, floats_of(obs, s, 0, obs->width, a->scratch + obs->width), goal,
                   taken);
}

// Mean over the ensemble. Logits are averaged as -log value.
static float read_answer(const dc_agent *a, int row) {
    const dc_infer *q = a->query;
    const dc_node *out = &q->graph.nodes[q->out];
    double sum = 0, unit = q->reading == DC_READ_LOGIT ? -log(a->method.gamma) : 1;
    for (int e = 0; e < out->e; e++) {
        double x = (double)q->out_cells.p[((int64_t)e * out->rows + row) * q->out_cells.ld];
        sum += q->reading == DC_READ_LOGIT ? fmax(-x, 0) + log1p(exp(-fabs(x)))
                                           : dc_reading_steps(q->reading, a->method.gamma, x);
    }
    return (float)(sum / (out->e * unit));
}

dc_status dc_agent_query_on_gpu(dc_agent *a) {
    DC_CHECK(a->query);
    return dc_infer_to_gpu(a->query, &a->params.slabs, 0);
}

dc_status dc_agent_distances(dc_agent *a, int64_t count, const int64_t *s, const int64_t *g,
                             float *d) {
    DC_CHECK(a->query);
    int most = a->query->rows;
    for (int64_t from = 0; from < count; from += most) {
        int rows = (int)(count - from < most ? count - from : most);
        for (int r = 0; r < rows; r++)
            write_query(a, r, s[from + r], g[from + r]);
        DC_TRY(dc_infer_run(a->query, rows));
        for (int r = 0; r < rows; r++)
            d[from + r] = read_answer(a, r);
    }
    return DC_OK;
}
