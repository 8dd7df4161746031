// Episodes of tables with an arm: an oracle serves one aim after the other; see env/gen.h.
//
// Two habits of the reference are kept. A hand that has just been given a new aim acts once more on
// what the last step told, in which the old one still stands; only an oracle that reacts notices. And
// an episode of a scene in which the cube got out of sight is played again, with new draws (here also
// one in which numbers ceased to be finite, where the reference would go on from zeros).
#include "base/clock.h"
#include "env/arm/oracle.h"

#include <math.h>
#include <string.h>

enum { TRIES = 100, AIMS_TIMED = 1000, AIM_ROWS = 30 };

typedef struct episode {
    const dc_gen *gen;
    const dc_env_family *family;
    const dc_arm_table *table;
    dc_env *env;
    const dc_gen_rows *out;
    dc_oracle oracle;
    dc_sight sight;         // what the last step told
    double obs[DC_OBS_MAX]; // before the step
    double random;          // part of actions that are random
    double stack, shaking;  // of this episode
    bool lost;              // the cube is out of sight
} episode;

static double draw(const episode *e, double low, double high) {
    return e->env->draws.uniform(e->env->draws.ctx, low, high);
}

// ---- a row ----

// Either at random, in float32 as the reference's spaces draw, or the oracle's; noisy ones are
// shaken.
static void act(episode *e, double action[DC_HAND]) {
    static const double weight[DC_HAND] = {1, 1, 1, 3, 10};
    e->env->float_actions = draw(e, 0, 1) < e->random;
    if (e->env->float_actions) {
        for (int k = 0; k < DC_HAND; k++)
            action[k] = (double)(float)draw(e, -1, 1);
        return;
    }
    dc_oracle_act(&e->oracle, &e->sight, action);
    for (int k = 0; k < DC_HAND && !e->oracle.plans; k++)
        action[k] += e->shaking * weight[k] * e->env->draws.normal(e->env->draws.ctx);
    for (int k = 0; k < DC_HAND; k++)
        action[k] = fmin(fmax(action[k], -1), 1);
}

static void put(float *to, int64_t row, const double *from, int n) {
    for (int k = 0; k < n; k++)
        to[row * n + k] = (float)from[k];
}

static void record(const episode *e, int64_t row, const double *action) {
    const dc_env_family *f = e->family;
    const dc_gen_rows *o = e->out;
    dc_gen_put_obs(o, dc_world_spec(e->gen->world), row, e->obs);
    put(o->act, row, action, f->act);
    put(o->qpos, row, dc_env_qpos(e->env), f->nq);
    put(o->qvel, row, dc_env_qvel(e->env), f->nv);
    for (int k = 0; k < f->extra; k++)
        o->extra[row * f->extra + k] = dc_arm_state_of(e->env)->buttons[k];
    o->terminals[row] = row + 1 == e->gen->rows;
    if (o->exact)
        memcpy(o->exact + row * f->nq, dc_env_qpos(e->env), (size_t)f->nq * sizeof *o->exact);
    if (o->exact_act) memcpy(o->exact_act + row * f->act, action, (size_t)f->act * sizeof *action);
    if (o->aim) o->aim[row] = (uint8_t)dc_arm_state_of(e->env)->aim.at;
}

// Beside or behind the table, and not inside the drawer.
static bool is_lost(const episode *e) {
    const double *cube = dc_env_qpos(e->env) + DC_ARM_THINGS;
    return e->table->slides &&
           (cube[1] >= 0.29 || (cube[1] <= -0.3 && (cube[2] < 0.06 || cube[2] > 0.08)));
}

static dc_status renew_aim(episode *e) {
    dc_sight now;
    DC_TRY(dc_arm_aim(e->env, e->stack));
    dc_arm_see(e->env, &now);
    dc_oracle_begin(&e->oracle, &now, &e->env->draws);
    return DC_OK;
}

static dc_status play_row(episode *e, int64_t row) {
    double action[DC_HAND];
    dc_outcome outcome;
    act(e, action);
    record(e, row, action);
    DC_TRY(dc_env_step(e->env, action, e->obs, &outcome));
    if (e->out->success) e->out->success[row] = outcome.success;
    if (e->out->ended) e->out->ended[row] = e->oracle.done;
    dc_arm_see(e->env, &e->sight);
    e->lost = e->lost || is_lost(e);
    return e->oracle.done ? renew_aim(e) : DC_OK;
}

// ---- an episode ----

static dc_status play_once(episode *e) {
    const dc_gen *gen = e->gen;
    DC_TRY(dc_arm_collect(e->env));
    DC_TRY(dc_env_observe(e->env, e->obs));
    dc_arm_see(e->env, &e->sight);
    const double *stack = e->table->stack;
    e->stack = stack[0] < stack[1] ? draw(e, stack[0], stack[1]) : stack[0];
    if (!e->oracle.plans) e->shaking = draw(e, 0, gen->noise);
    dc_oracle_begin(&e->oracle, &e->sight, &e->env->draws);
    e->lost = false;
    for (int64_t row = 0; row < gen->rows; row++)
        DC_TRY(play_row(e, row));
    return DC_OK;
}

dc_status dc_arm_play(const dc_gen *gen, dc_env *env, const dc_gen_rows *out) {
    const dc_env_family *f = dc_world_spec(gen->world)->family;
    const dc_arm_table *t = dc_arm_table_of(f);
    episode e = {.gen = gen, .family = f, .table = t, .env = env, .out = out};
    e.random = gen->kind == DC_DATA_NOISY ? t->random : 0;
    e.oracle = dc_oracle_of(t, gen->kind);
    for (int k = 0; k < TRIES; k++) {
        dc_status status = play_once(&e);
        bool unstable = status == DC_NOT_FINITE && !gen->draws;
        if (status != DC_OK && !unstable) return status;
        if (status == DC_OK && !e.lost) return DC_OK;
    }
    return dc_fail(DC_NOT_FINITE, NULL, "%d episodes of %s in a row were unusable", TRIES, f->name);
}

// ---- what is not simulation ----

// Looking and acting every row, and once an aim a new aim and what begins with it.
dc_status dc_arm_time_script(const dc_gen *gen, dc_env *env, double *seconds) {
    const dc_env_family *f = dc_world_spec(gen->world)->family;
    dc_oracle o = dc_oracle_of(dc_arm_table_of(f), gen->kind);
    dc_sight sight;
    double action[DC_HAND];
    int64_t rows = 0;
    DC_TRY(dc_arm_collect(env));
    double start = dc_now_busy();
    for (int k = 0; k < AIMS_TIMED; k++) {
        DC_TRY(dc_arm_aim(env, 0.5));
        dc_arm_see(env, &sight);
        dc_oracle_begin(&o, &sight, &env->draws);
        rows += o.plans ? o.rows : AIM_ROWS;
    }
    for (int64_t k = 0; k < rows; k++) {
        dc_arm_see(env, &sight);
        dc_oracle_act(&o, &sight, action);
    }
    *seconds = (dc_now_busy() - start) / (double)rows;
    return DC_OK;
}
