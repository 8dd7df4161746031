// Playing, see play.h.
#include "online/play.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SKIP = 30, PROGRESS = 200, UP = 120, MARKS_MAX = 64 };
static const double cell = 4, stood = 1.2, fallen = 0.8, near_goal = 0.5;

typedef struct fact {
    const char *name, *unit, *about;
} fact;

static const fact facts[DC_SCORES] = {
#define SCORE(name, unit, about) {#name, unit, about},
#include "online/scores.def"
#undef SCORE
};

const char *dc_score_name(dc_score score) {
    return facts[score].name;
}

const char *dc_score_unit(dc_score score) {
    return facts[score].unit;
}

const char *dc_score_about(dc_score score) {
    return facts[score].about;
}

// ---- an episode ----

typedef struct episode {
    int steps;
    float *moved, *height, *jerk; // (steps)
    double speed, tilt;           // sums over steps that count
    int speed_steps, back, falls;
    double progress; // in the first PROGRESS steps
    bool progressed, ended, up, reached;
    int cells[MARKS_MAX], cell_count; // steps that commands took to their 4 m
    dc_status status;
    char error[256];
} episode;

typedef struct playing { // what an episode remembers while it goes on
    const dc_play_spec *spec;
    episode *e;
    dc_walk walk;
    double command[DC_COMMAND], way; // of the command that holds; way along it
    int since;                       // steps since it came
    bool crossed, standing;
    double state[DC_PLANE_STATE_MAX];
    float action[DC_PLANE_ACT_MAX];
} playing;

static double upright(const double *q) { // qpos 3 to 6
    return 1 - 2 * (q[1] * q[1] + q[2] * q[2]);
}

static double goal_distance(const playing *p) {
    const double *ball = p->walk.env.qpos + p->spec->plane->ball;
    double x = ball[0] - p->walk.command[0], y = ball[1] - p->walk.command[1];
    return sqrt(x * x + y * y);
}

// The expert's action with noise, clipped: what `dcrl gen` does. Returns how far it is from the one before.
static double choose(playing *p, double *action) {
    const dc_play_spec *s = p->spec;
    double command[DC_COMMAND], sum = 0;
    float seen[DC_PLANE_STATE_MAX + DC_COMMAND], wanted[DC_PLANE_ACT_MAX];
    int width = s->plane->state;
    dc_walk_see(&p->walk, p->state, command);
    for (int k = 0; k < width; k++)
        seen[k] = (float)p->state[k];
    for (int k = 0; k < DC_COMMAND; k++)
        seen[width + k] = (float)command[k];
    dc_expert_act(s->expert, seen, wanted);
    for (int k = 0; k < s->plane->family->act; k++) {
        dc_draws *d = &p->walk.env.draws;
        double a = (double)wanted[k] + (s->noise > 0 ? s->noise * d->normal(d->ctx) : 0);
        a = a < -1 ? -1 : a > 1 ? 1 : a;
        sum += (a - (double)p->action[k]) * (a - (double)p->action[k]);
        action[k] = a;
        p->action[k] = (float)a;
    }
    return sqrt(sum);
}

// Of robots that follow a direction.
static void count_along(playing *p, const dc_walk_step *step, int t) {
    episode *e = p->e;
    double along = step->moved[0] * p->command[0] + step->moved[1] * p->command[1];
    p->way += along;
    if (t < PROGRESS) e->progress += along;
    e->progressed = e->progressed || t + 1 == PROGRESS;
    if (p->since >= SKIP) {
        e->speed += along / p->spec->plane->seconds;
        e->speed_steps++;
    }
    p->since++;
    if (!p->crossed && p->way >= cell && e->cell_count < MARKS_MAX) {
        e->cells[e->cell_count++] = p->since;
        p->crossed = true;
    }
    if (p->spec->plane->redraw && p->walk.step % p->spec->plane->redraw == 0) {
        p->since = 0;
        p->way = 0;
        p->crossed = false;
    }
}

static void count_posture(playing *p, int t) {
    episode *e = p->e;
    double zz = upright(p->walk.env.qpos + 3), head = p->state[p->spec->plane->head];
    e->tilt += zz;
    e->back += zz < 0;
    e->height[t] = (float)p->walk.env.qpos[2];
    if (!p->spec->plane->head) return;
    if (t < UP) return; // it begins with a fall
    if (t == UP) e->up = head >= stood;
    if (head >= stood) p->standing = true;
    if (p->standing && head < fallen) {
        e->falls++;
        p->standing = false;
    }
}

static dc_status play_step(playing *p, int t, bool *over) {
    episode *e = p->e;
    bool ball = p->spec->plane->ball > 0;
    double action[DC_PLANE_ACT_MAX], before = ball ? goal_distance(p) : 0;
    dc_walk_step step;
    e->jerk[t] = (float)choose(p, action);
    memcpy(p->command, p->walk.command, sizeof p->command);
    DC_TRY(dc_walk_step_by(&p->walk, action, &step));
    e->steps = t + 1;
    e->moved[t] = (float)sqrt(step.moved[0] * step.moved[0] + step.moved[1] * step.moved[1]);
    if (ball) {
        e->speed += (before - goal_distance(p)) / p->spec->plane->seconds;
        e->speed_steps++;
        e->reached = e->reached || goal_distance(p) <= near_goal;
    } else {
        count_along(p, &step, t);
    }
    count_posture(p, t);
    e->ended = step.ended && !(p->spec->plane->final && p->walk.step >= p->spec->plane->horizon);
    *over = step.ended || step.cut;
    return DC_OK;
}

static dc_status play_episode(const dc_play_spec *s, episode *e, uint64_t number) {
    playing p = {.spec = s, .e = e};
    dc_philox_draws draws;
    bool over = false;
    DC_TRY(dc_walk_init(&p.walk, s->plane, s->world, dc_draws_philox(&draws, s->seed, number)));
    dc_status status = dc_walk_start(&p.walk);
    for (int t = 0; status == DC_OK && t < s->steps && !over; t++)
        status = play_step(&p, t, &over);
    dc_walk_fini(&p.walk);
    return status;
}

// ---- from episodes to scores ----

static int by_size(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

// All values of the episodes in one sorted array; returns how many. out has room for all.
static size_t pool_values(const episode *e, int count, size_t field, float *out) {
    size_t n = 0;
    for (int k = 0; k < count; k++) {
        const float *from;
        memcpy(&from, (const char *)&e[k] + field, sizeof from);
        memcpy(out + n, from, (size_t)e[k].steps * sizeof *out);
        n += (size_t)e[k].steps;
    }
    qsort(out, n, sizeof *out, by_size);
    return n;
}

static double quantile(const float *sorted, size_t n, double share) {
    return n ? (double)sorted[(size_t)(share * (double)(n - 1) + 0.5)] : NAN;
}

static double mean(const float *values, size_t n) {
    double sum = 0;
    for (size_t k = 0; k < n; k++)
        sum += (double)values[k];
    return n ? sum / (double)n : NAN;
}

static void sum_histograms(const episode *e, int count, float *room, double *v) {
    size_t n = pool_values(e, count, offsetof(episode, moved), room);
    v[DC_SCORE_step] = mean(room, n);
    static const double steps[] = {.05, .25, .5, .75, .95, .99},
                        heights[] = {.05, .25, .5, .75, .95};
    for (int k = 0; k < 6; k++)
        v[DC_SCORE_step_5 + k] = quantile(room, n, steps[k]);
    n = pool_values(e, count, offsetof(episode, height), room);
    v[DC_SCORE_height] = mean(room, n);
    for (int k = 0; k < 5; k++)
        v[DC_SCORE_height_5 + k] = quantile(room, n, heights[k]);
    n = pool_values(e, count, offsetof(episode, jerk), room);
    v[DC_SCORE_jerk] = mean(room, n);
    v[DC_SCORE_jerk_50] = quantile(room, n, .5);
}

static void sum_cells(const episode *e, int count, float *room, double *v) {
    size_t n = 0;
    for (int k = 0; k < count; k++)
        for (int i = 0; i < e[k].cell_count; i++)
            room[n++] = (float)e[k].cells[i];
    qsort(room, n, sizeof *room, by_size);
    v[DC_SCORE_cell] = quantile(room, n, .5);
    v[DC_SCORE_cell_fast] = quantile(room, n, .1);
}

static double ratio(double a, double b) {
    return b > 0 ? a / b : NAN;
}

static void sum_episodes(const dc_plane *plane, const episode *e, int count, double *v) {
    double steps = 0, speed = 0, speed_steps = 0, back = 0, tilt = 0, falls = 0, up = 0, ended = 0;
    double progress = 0, progressed = 0, reached = 0;
    for (int k = 0; k < count; k++) {
        steps += e[k].steps;
        speed += e[k].speed;
        speed_steps += e[k].speed_steps;
        back += e[k].back;
        tilt += e[k].tilt;
        falls += e[k].falls;
        up += e[k].up;
        ended += e[k].ended;
        reached += e[k].reached;
        progress += e[k].progressed ? e[k].progress : 0;
        progressed += e[k].progressed;
    }
    v[DC_SCORE_speed] = ratio(speed, speed_steps);
    v[DC_SCORE_progress] = plane->ball ? NAN : ratio(progress, progressed);
    v[DC_SCORE_ends] = plane->high > plane->low ? ratio(1000 * ended, steps) : NAN;
    v[DC_SCORE_falls] = plane->head ? ratio(1000 * falls, steps) : NAN;
    v[DC_SCORE_up] = plane->head ? ratio(up, count) : NAN;
    v[DC_SCORE_back] = ratio(back, steps);
    v[DC_SCORE_tilt] = ratio(tilt, steps);
    v[DC_SCORE_reach] = plane->ball ? ratio(reached, count) : NAN;
}

// ---- all episodes ----

typedef struct match {
    const dc_play_spec *spec;
    episode *episodes;
} match;

static void run_episode(void *ctx, int number) {
    match *m = ctx;
    episode *e = &m->episodes[number];
    e->status = play_episode(m->spec, e, (uint64_t)number);
    if (e->status != DC_OK) snprintf(e->error, sizeof e->error, "%s", dc_error());
}

static dc_status play_all(const dc_play_spec *s, dc_pool *pool, episode *e, float *values,
                          dc_scores *scores) {
    size_t each = (size_t)s->steps, all = each * (size_t)s->episodes;
    for (int k = 0; k < s->episodes; k++) {
        e[k].moved = values + (size_t)k * each;
        e[k].height = e[k].moved + all;
        e[k].jerk = e[k].height + all;
    }
    dc_pool_run(pool, run_episode, &(match){s, e}, s->episodes);
    for (int k = 0; k < s->episodes; k++)
        if (e[k].status != DC_OK) return dc_fail(e[k].status, NULL, "%s", e[k].error);
    sum_episodes(s->plane, e, s->episodes, scores->value);
    sum_histograms(e, s->episodes, values + 3 * all, scores->value);
    sum_cells(e, s->episodes, values + 3 * all, scores->value);
    return DC_OK;
}

dc_status dc_play(const dc_play_spec *s, dc_pool *pool, dc_scores *scores) {
    size_t all = (size_t)s->steps * (size_t)s->episodes,
           room = all + MARKS_MAX * (size_t)s->episodes;
    episode *e = calloc((size_t)s->episodes, sizeof *e);
    float *values = malloc((3 * all + room) * sizeof *values);
    dc_status status = e && values
                           ? play_all(s, pool, e, values, scores)
                           : dc_fail(DC_NO_MEMORY, NULL, "no memory for %d episodes", s->episodes);
    free(e);
    free(values);
    return status;
}
