// Learning from own steps, see learn.h.
#include "online/learner.h"

#include "algo/backup.h"
#include "base/clock.h"
#include "base/file.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STEPS = 300 }; // of an episode in an evaluation
static const double noise = 0.2;

const dc_option dc_learn_table[] = {
    DC_OPTION_INT_ROLE(DC_LATER, dc_learn_options, steps, "600000", 1, 1e12,
                       "steps of all robots together"),
    DC_OPTION_INT(dc_learn_options, seed, "0", 0, 9e15, "the same seed gives the same bytes"),
    DC_OPTION_INT_ROLE(DC_BESIDE, dc_learn_options, threads, "0", 0, 1024,
                       "0: all cores. Results do not depend on it"),
    DC_OPTION_CHOICE(dc_learn_options, device, "cpu", "cpu|cuda", "where to learn"),
    DC_OPTION_CHOICE(dc_learn_options, precision, "auto", "auto|fp32|tf32|bf16",
                     "of matrix products; auto: fp32 on the CPU, tf32 on a GPU"),
    DC_OPTION_INT(dc_learn_options, envs, "32", 1, 4096, "robots that act side by side"),
    DC_OPTION_INT(dc_learn_options, round_steps, "4", 1, 1000, "steps of each robot in a round"),
    DC_OPTION_INT(dc_learn_options, updates, "32", 1, 100000, "updates in a round"),
    DC_OPTION_INT(dc_learn_options, batch, "256", 1, 1 << 20, "rows of an update"),
    DC_OPTION_INT(dc_learn_options, replay, "1000000", 1000, 1e9,
                  "newest steps that are kept to learn from"),
    DC_OPTION_INT(dc_learn_options, random, "10000", 1, 1e9,
                  "first steps, by uniform actions, without updates"),
    DC_OPTION_INT(dc_learn_options, eval_every, "50000", 1, 1e12, "steps between evaluations"),
    DC_OPTION_INT(
        dc_learn_options, eval_episodes, "16", 1, 10000,
        "episodes of an evaluation without noise, and as many with it, of 300 steps each"),
    DC_OPTION_INT_ROLE(DC_BESIDE, dc_learn_options, save_every, "500000", 1, 1e12,
                       "steps between states that are kept to go on from"),
    DC_OPTION_LIST(dc_learn_options, hidden, "256,256", 1, 8192,
                   "widths of the critics' hidden layers"),
    DC_OPTION_REAL(dc_learn_options, lr, "3e-4", 0, 10, "Adam's step size"),
    DC_OPTION_REAL(dc_learn_options, tau, "0.005", 0, 1, "rate of the target weights"),
    DC_OPTION_REAL(dc_learn_options, gamma, "0.99", 0, 0.9999999, "discount"),
    {0},
};

// ---- options ----

dc_status dc_learn_new(dc_learn **out, const dc_plane *plane) {
    dc_learn *l = *out = calloc(1, sizeof *l);
    if (!l) return dc_fail(DC_NO_MEMORY, NULL, "no memory");
    l->plane = plane;
    l->robot = dc_robot_of(plane);
    l->best = -INFINITY;
    dc_options_init(dc_learn_table, &l->options);
    l->config = calloc(1, dc_algo_sac.config_size);
    if (!l->config) return dc_learn_free(l), *out = NULL, dc_fail(DC_NO_MEMORY, NULL, "no memory");
    dc_options_init(dc_algo_sac.options, l->config);
    for (const dc_robot_option *o = l->robot->options; o->key; o++)
        DC_CHECK(dc_learn_set(l, o->key, o->value) == DC_OK);
    return DC_OK;
}

static dc_status unknown_key(const char *key) {
    const char *names[64];
    size_t count = 0;
    const dc_option *tables[] = {dc_learn_table, dc_algo_sac.options};
    for (int t = 0; t < 2; t++)
        for (const dc_option *o = tables[t]; o->name && count < 64; o++)
            names[count++] = o->name;
    const char *near = dc_nearest(key, names, count);
    if (near) return dc_fail(DC_USAGE, NULL, "unknown option '%s': did you mean '%s'?", key, near);
    return dc_fail(DC_USAGE, "dcrl expert train --help lists them", "unknown option '%s'", key);
}

// Rewards must be linear in commands for another row's to say what a step is worth.
static dc_status check_relabel(const dc_learn *l) {
    dc_text share;
    dc_text_init(&share);
    dc_options_value(dc_options_find(dc_algo_sac.options, "relabel"), l->config, &share);
    dc_status status = dc_text_status(&share);
    if (status == DC_OK && l->plane->ball && strcmp(share.bytes, "0") != 0)
        status =
            dc_fail(DC_USAGE, "leave relabel out",
                    "a ball's rewards are not known for another goal (relabel=%s)", share.bytes);
    dc_text_fini(&share);
    return status;
}

dc_status dc_learn_set(dc_learn *l, const char *key, const char *value) {
    if (dc_options_find(dc_algo_sac.options, key)) {
        DC_TRY(dc_options_set(dc_algo_sac.options, l->config, key, value));
        return !strcmp(key, "relabel") ? check_relabel(l) : DC_OK;
    }
    if (dc_options_find(dc_learn_table, key))
        return dc_options_set(dc_learn_table, &l->options, key, value);
    return unknown_key(key);
}

const dc_option *dc_learn_method_options(void) {
    return dc_algo_sac.options;
}

void dc_learn_free(dc_learn *l) {
    if (!l) return;
    dc_trainer_free(l->trainer);
    dc_crowd_free(l->crowd);
    if (l->built) dc_agent_fini(&l->agent);
    dc_replay_fini(&l->replay);
    dc_world_free(l->world);
    dc_pool_free(l->pool);
    free(l->acting.live);
    free(l->rows);
    free(l->rates);
    free(l->config);
    free(l);
}

// ---- building ----

// Whether an expert file can hold such a policy.
static dc_status check_actor(const dc_mlp *actor) {
    bool fits = actor->layers <= DC_EXPERT_LAYERS;
    for (int n = 0; n < actor->hidden.count; n++)
        fits = fits && actor->hidden.v[n] <= DC_EXPERT_WIDTH;
    if (fits) return DC_OK;
    return dc_fail(DC_USAGE, "lower actor_hidden", "an expert has at most %d layers, %d wide",
                   (int)DC_EXPERT_LAYERS, (int)DC_EXPERT_WIDTH);
}

static dc_status build_agent(dc_learn *l) {
    const dc_learn_options *o = &l->options;
    dc_agent_options options = {.form = dc_form_find("value"),
                                .gamma = o->gamma,
                                .rep_size = DC_COMMAND,
                                .rep = {0, 1},
                                .goal_column = "command",
                                .goals = dc_dataset_column(&l->replay.data, "command"),
                                .seed = (uint64_t)o->seed,
                                .batch = (int)o->batch,
                                .hidden = o->hidden,
                                .steps = o->steps,
                                .longest = l->plane->horizon,
                                .scaling = DC_SCALING_OFF,
                                .act_scaling = DC_ACTIONS_AS_THEY_ARE};
    DC_TRY(dc_agent_init(&l->agent, &dc_algo_sac, l->config, &options, &l->replay.data, l->pool));
    l->built = true;
    l->acting = (dc_slabs){.size = l->agent.params.slabs.size};
    l->acting.live = malloc((size_t)l->acting.size * sizeof *l->acting.live);
    if (!l->acting.live) return dc_fail(DC_NO_MEMORY, NULL, "no memory");
    return check_actor(&dc_nets_find(&l->agent.nets, "actor")->mlp);
}

static dc_status build_trainer(dc_learn *l) {
    const dc_learn_options *o = &l->options;
    bool gpu = o->device == DC_DEVICE_CUDA;
    dc_trainer_spec spec = {.feed = DC_FEED_DEVICE,
                            .precision = o->precision ? o->precision - 1 : gpu,
                            .lr = o->lr,
                            .tau = o->tau};
    return dc_trainer_new(&l->trainer, (dc_device)o->device, (dc_agent *[]){&l->agent}, 1, &spec);
}

dc_status dc_learn_build(dc_learn *l) {
    const dc_learn_options *o = &l->options;
    int64_t round = o->envs * o->round_steps;
    DC_TRY(dc_pool_new(&l->pool, (int)o->threads));
    DC_TRY(dc_plane_world(l->plane, &l->world));
    DC_TRY(dc_replay_init(&l->replay, l->plane, o->replay));
    l->rates = calloc((size_t)dc_plane_input(l->plane), sizeof *l->rates);
    l->rows = calloc((size_t)round * (size_t)l->replay.width, sizeof *l->rows);
    if (!l->rates || !l->rows) return dc_fail(DC_NO_MEMORY, "lower envs", "no memory for a round");
    dc_robot_rates(l->plane, l->rates);
    DC_TRY(build_agent(l));
    DC_TRY(build_trainer(l));
    dc_crowd_spec crowd = {.plane = l->plane,
                           .world = l->world,
                           .count = (int)o->envs,
                           .seed = (uint64_t)o->seed,
                           .rates = l->rates,
                           .method = &l->agent.method,
                           .nets = &l->agent.nets,
                           .slabs = &l->acting};
    return dc_crowd_new(&l->crowd, &crowd, &l->replay, l->pool);
}

// ---- the policy as a file ----

static dc_status copy_floats(const dc_real *from, int count, dc_arena *arena, const float **out) {
    float *to = dc_arena_take(arena, (size_t)count * sizeof *to);
    if (!to) return dc_fail(DC_NO_MEMORY, NULL, "no memory");
    for (int k = 0; k < count; k++)
        to[k] = (float)from[k];
    *out = to;
    return DC_OK;
}

// The mean's columns of the last layer, and the first with the factors of what is seen: room for both.
static dc_status fold(const dc_learn *l, dc_expert *e, dc_arena *arena) {
    const dc_mlp *net = &dc_nets_find(&l->agent.nets, "actor")->mlp;
    const dc_real *live = l->agent.params.slabs.live;
    int in = net->in, act = l->agent.method.act;
    for (int n = 0; n < net->layers; n++) {
        bool last = n == net->layers - 1;
        int wide = last ? net->out : (int)net->hidden.v[n], out = last ? act : wide;
        float *w = dc_arena_take(arena, (size_t)in * (size_t)out * sizeof *w);
        float *b = dc_arena_take(arena, (size_t)out * sizeof *b);
        if (!w || !b) return dc_fail(DC_NO_MEMORY, NULL, "no memory");
        for (int i = 0; i < in; i++)
            for (int k = 0; k < out; k++)
                w[i * out + k] =
                    (float)live[net->layer[n].w + i * wide + k] * (n ? 1 : l->rates[i]);
        for (int k = 0; k < out; k++)
            b[k] = (float)live[net->layer[n].b + k];
        e->layers[n] = (dc_expert_layer){.in = in, .out = out, .w = w, .b = b};
        if (net->layernorm && !last) {
            DC_TRY(copy_floats(live + net->layer[n].scale, out, arena, &e->layers[n].scale));
            DC_TRY(copy_floats(live + net->layer[n].bias, out, arena, &e->layers[n].bias));
        }
        in = out;
    }
    e->layer_count = net->layers;
    return DC_OK;
}

static dc_status write_expert(const dc_learn *l, const char *path, const char *command,
                              const char *scores) {
    char seed[32];
    dc_arena arena;
    dc_expert e = {.kind = l->robot->kind, .seed = seed, .command = command, .scores = scores};
    snprintf(seed, sizeof seed, "%lld", (long long)l->options.seed);
    dc_arena_init(&arena, 0);
    dc_status status = fold(l, &e, &arena);
    if (status == DC_OK) status = dc_expert_save(path, &e);
    dc_arena_fini(&arena);
    return status;
}

enum { PATH = 4096, TRIES = 10000 };

// A name beside `path` that nothing has, since what has it is removed.
static dc_status trial_path(const char *path, char trial[PATH]) {
    bool exists = true;
    for (int k = 0; exists && k < TRIES; k++) {
        int n = snprintf(trial, PATH, "%s.tmp.%ld.%d", path, (long)getpid(), k);
        if (n >= PATH) return dc_fail(DC_USAGE, NULL, "the name is too long (%.40s...)", path);
        DC_TRY(dc_file_find(trial, &exists));
    }
    return exists ? dc_fail(DC_IO, "remove it", "a file is in the way (%s)", trial) : DC_OK;
}

// Whether files can be written there at all.
static dc_status write_trial(const dc_learn *l, const char *path) {
    char trial[PATH];
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return dc_fail(DC_USAGE, "-o FILE.safetensors",
                       "an expert is played from its file, which cannot be a pipe, a device or a "
                       "folder (%s)",
                       path);
    DC_TRY(trial_path(path, trial));
    dc_status status = write_expert(l, trial, "", "{}");
    unlink(trial);
    return status;
}

static dc_status play(dc_learn *l, const char *path) {
    dc_expert e;
    DC_TRY(dc_expert_open(&e, path));
    dc_status status = DC_OK;
    for (int k = 0; k < 2 && status == DC_OK; k++) {
        dc_play_spec spec = {.plane = l->plane,
                             .world = l->world,
                             .expert = &e,
                             .episodes = (int)l->options.eval_episodes,
                             .steps = STEPS,
                             .noise = k ? noise : 0};
        status = dc_play(&spec, l->pool, &l->scores[k]);
    }
    dc_expert_close(&e);
    return status;
}

// Play the policy as it is now, from a file beside `path`; if none was better, it takes that place.
static dc_status evaluate(dc_learn *l, const char *path, const char *command, bool *best) {
    char trial[PATH];
    dc_text json;
    DC_TRY(trial_path(path, trial));
    dc_text_init(&json);
    dc_status status = write_expert(l, trial, command, "{}");
    if (status == DC_OK) status = play(l, trial);
    unlink(trial);
    double worth = status == DC_OK ? dc_play_worth(l->plane, l->scores) : -INFINITY;
    *best = worth > l->best;
    if (*best) {
        l->best = worth;
        dc_scores_json(l->scores, noise, &json);
        status = dc_text_status(&json);
        if (status == DC_OK) status = write_expert(l, path, command, json.bytes);
    }
    dc_text_fini(&json);
    return status;
}

// ---- rounds ----

// Updates on the rows that are there; the first of them may come only when the robots no longer act at random.
static dc_status learn(dc_learn *l) {
    int64_t bad = -1;
    double *sums[] = {l->sums};
    if (l->replay.added < l->options.random) return DC_OK;
    DC_TRY(l->trainer->ops->step(l->trainer, l->options.updates, &bad, sums));
    if (bad >= 0)
        return dc_fail(DC_NOT_FINITE, "lower lr", "NaN or Inf in update %lld", (long long)bad);
    l->updates += l->options.updates;
    l->summed += l->options.updates;
    return l->trainer->ops->fetch(l->trainer, 0);
}

// Learning in a thread of its own, beside the robots: for a device that computes by itself.
typedef struct aside {
    dc_learn *learn;
    dc_status status;
    char error[512];
} aside;

static void *learn_aside(void *ctx) {
    aside *a = ctx;
    a->status = learn(a->learn);
    if (a->status != DC_OK) snprintf(a->error, sizeof a->error, "%s", dc_error());
    return NULL;
}

static dc_status act(dc_learn *l) {
    bool random = l->replay.added < l->options.random;
    return dc_crowd_round(l->crowd, (int)l->options.round_steps, random, l->rows);
}

static dc_status act_and_learn(dc_learn *l) {
    aside a = {.learn = l};
    pthread_t thread;
    if (l->options.device == DC_DEVICE_CPU) { // both would use the same cores
        DC_TRY(act(l));
        return learn(l);
    }
    if (pthread_create(&thread, NULL, learn_aside, &a))
        return dc_fail(DC_NO_MEMORY, NULL, "no thread to learn in");
    dc_status status = act(l);
    pthread_join(thread, NULL);
    return status == DC_OK && a.status != DC_OK ? dc_fail(a.status, NULL, "%s", a.error) : status;
}

// The round's rows, which may go on at the ring's beginning.
static dc_status append(dc_learn *l, int64_t count) {
    dc_replay *r = &l->replay;
    int64_t first = r->added % r->room, until = r->room - first;
    int64_t here = count < until ? count : until;
    dc_replay_add(r, l->rows, count);
    DC_TRY(l->trainer->ops->renew(l->trainer, first, here));
    return count > here ? l->trainer->ops->renew(l->trainer, 0, count - here) : DC_OK;
}

static dc_status play_round(dc_learn *l) {
    int64_t count = l->options.envs * l->options.round_steps;
    memcpy(l->acting.live, l->agent.params.slabs.live,
           (size_t)l->acting.size * sizeof *l->acting.live);
    DC_TRY(act_and_learn(l));
    l->steps += count;
    return append(l, count);
}

typedef struct telling {
    const dc_learn_job *job;
    double start, last;
    char state[PATH];
} telling;

static dc_status tell(dc_learn *l, telling *t, const dc_scores *scores, bool best) {
    const char *names[DC_METRICS_MAX];
    dc_crowd_sums sums = dc_crowd_take(l->crowd);
    dc_learn_report r = {.steps = l->steps,
                         .all = l->options.steps,
                         .updates = l->updates,
                         .resumed = l->resumed,
                         .seconds = dc_now() - t->start,
                         .along = sums.along / (sums.steps + 1e-9) / l->plane->seconds,
                         .reward = sums.reward / (sums.steps + 1e-9),
                         .ended = 1000 * sums.ended / (sums.steps + 1e-9),
                         .names = names,
                         .count = l->agent.metric_count,
                         .scores = scores,
                         .best = best};
    for (int m = 0; m < r.count; m++) {
        names[m] = l->agent.metrics[m].name;
        r.metrics[m] = l->summed ? l->sums[m] / (double)l->summed : 0;
    }
    if (t->job->report) t->job->report(t->job->ctx, &r);
    t->last = dc_now();
    l->summed = 0;
    memset(l->sums, 0, sizeof l->sums);
    return l->trainer->ops->clear(l->trainer);
}

static bool passed(int64_t before, int64_t now, int64_t every) {
    return now / every > before / every;
}

static dc_status stopped(const dc_learn *l, const telling *t) {
    DC_TRY(dc_learn_save(l, t->state));
    return dc_fail(DC_INTERRUPTED, "the same command with --resume goes on",
                   "stopped at step %lld, %s holds its state", (long long)l->steps, t->state);
}

// After a round: evaluate, save, tell, stop.
static dc_status after_round(dc_learn *l, telling *t, int64_t before) {
    const dc_learn_options *o = &l->options;
    const dc_learn_job *job = t->job;
    bool last = l->steps >= o->steps, best = false;
    bool plays = l->updates && (last || passed(before, l->steps, o->eval_every));
    if (plays) DC_TRY(evaluate(l, job->path, job->command, &best));
    if (plays || dc_now() - t->last > 1) DC_TRY(tell(l, t, plays ? l->scores : NULL, best));
    if (last) return DC_OK;
    if (job->stop && atomic_load(job->stop)) return stopped(l, t);
    return passed(before, l->steps, o->save_every) ? dc_learn_save(l, t->state) : DC_OK;
}

// A training that was stopped is not replaced by one that begins.
static dc_status check_state(const telling *t) {
    bool exists;
    DC_TRY(dc_file_find(t->state, &exists));
    if (t->job->resume || !exists) return DC_OK;
    return dc_fail(DC_USAGE, "add --resume to go on with it, or remove it to begin anew",
                   "a training was stopped here (%s)", t->state);
}

static dc_status start(dc_learn *l, const telling *t) {
    DC_TRY(dc_learn_build(l));
    DC_TRY(write_trial(l, t->job->path)); // rather than after an hour
    if (!t->job->resume) return DC_OK;
    DC_TRY(dc_learn_load(l, t->state));
    l->resumed = l->steps;
    DC_TRY(l->trainer->ops->renew(l->trainer, 0, l->replay.filled));
    static const double none[DC_METRICS_MAX + 1];
    return l->trainer->ops->send(l->trainer, 0, (uint64_t)l->updates, none);
}

static dc_status check_options(const dc_learn *l) {
    const dc_learn_options *o = &l->options;
    if (o->device == DC_DEVICE_CPU && o->precision == 2)
        return dc_fail(DC_USAGE, "use --device cuda, or precision=fp32 or bf16",
                       "the CPU has no tf32");
    int64_t round = o->envs * o->round_steps;
    if (o->random >= o->replay || round > o->replay)
        return dc_fail(DC_USAGE, "raise replay, or lower random, envs or round_steps",
                       "a replay of %lld steps is too small", (long long)o->replay);
    if ((o->steps - 1) / round * round >= o->random) return DC_OK; // the last round learns
    return dc_fail(DC_USAGE, "raise steps, or lower random, envs or round_steps",
                   "nothing would be learned: the first %lld steps are random, and there are %lld",
                   (long long)o->random, (long long)o->steps);
}

dc_status dc_learn_run(dc_learn *l, const dc_learn_job *job) {
    telling t = {.job = job};
    DC_TRY(check_options(l));
    snprintf(t.state, sizeof t.state, "%s.state", job->path);
    DC_TRY(check_state(&t));
    DC_TRY(start(l, &t));
    t.start = t.last = dc_now();
    while (l->steps < l->options.steps) {
        int64_t before = l->steps;
        DC_TRY(play_round(l));
        DC_TRY(after_round(l, &t, before));
    }
    if (!isfinite(l->best))
        return dc_fail(
            DC_BAD_INPUT, "train for more steps, or with more eval_episodes",
            "no policy stayed up for long enough to be measured, and none was written (%s)",
            job->path);
    unlink(t.state);
    return DC_OK;
}
