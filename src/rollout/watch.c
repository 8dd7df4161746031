// Evaluation on the way, see watch.h. The policy comes from the checkpoint that was just saved, not
// from the run's memory: the row is then the one that `dcrl eval` gives for that file on the same
// device. What trains on a GPU also plays there (in fp32), since a policy of kind rejection is mostly
// arithmetic; the cores simulate.
#include "rollout/watch.h"

#include "rollout/eval_log.h"
#include "train/folder.h"

#include <stdlib.h>
#include <string.h>

static bool has_policy(const dc_run *run, const dc_agent_options *agent) {
    const dc_option *row = dc_options_find(run->algo->options, "policy");
    if (!dc_form_acts(agent->form)) return false;
    if (!row) return true; // the method is one
    dc_text value;
    dc_text_init(&value);
    dc_options_value(row, run->config, &value);
    bool none = value.bytes && !strcmp(value.bytes, "none");
    dc_text_fini(&value);
    return !none;
}

// The sizes that dc_evaluate will ask for, told before a single step is trained.
static dc_status check_sizes(const dc_env_spec *spec, const dc_agent_options *agent,
                             const dc_dataset *data) {
    const dc_column *obs = dc_dataset_column(data, "obs"), *act = dc_dataset_column(data, "act");
    int width = obs ? obs->width : 0, actions = act ? act->width : 0;
    int goal = agent->rep_size ? agent->rep_size : width;
    if (width == spec->obs && actions == spec->family->act && goal == spec->goal) return DC_OK;
    return dc_fail(DC_BAD_INPUT, "train with the environment of the data, or without eval_every",
                   "%s has observations, goals and actions of %d, %d and %d values, the data %d, "
                   "%d and %d",
                   spec->name, spec->obs, spec->goal, spec->family->act, width, goal, actions);
}

static dc_status check(const dc_run *run, const dc_dataset *data, dc_env_spec *spec) {
    const dc_run_options *o = &run->options;
    dc_agent_options agent;
    DC_TRY(dc_run_agent_options(run, &agent));
    if (!*o->env)
        return dc_fail(DC_USAGE,
                       "leave eval_every out; held-out rows (--val) give a curve, or --env names "
                       "the environment of the data",
                       "there is nothing to evaluate in without an environment");
    if (!dc_env_has_tasks(o->env))
        return dc_fail(DC_USAGE,
                       "give --env of a maze or of an arm's tasks, or leave eval_every out",
                       "there are no tasks to evaluate in the environment '%s'", o->env);
    DC_TRY(dc_env_find(spec, o->env));
    if (!has_policy(run, &agent))
        return dc_fail(DC_USAGE, "train one (value form, policy=ddpgbc), or leave eval_every out",
                       "there is no policy to evaluate");
    return check_sizes(spec, &agent, data);
}

dc_status dc_watch_open(dc_watch *watch, const dc_run *run, const dc_dataset *data) {
    dc_env_spec spec;
    *watch = (dc_watch){0};
    DC_TRY(check(run, data, &spec));
    return dc_world_new(&watch->world, &spec);
}

void dc_watch_close(dc_watch *watch) {
    dc_world_free(watch->world);
    *watch = (dc_watch){0};
}

static dc_status evaluate(dc_watch *watch, const dc_run *run, dc_actor *actor,
                          dc_eval_score *score) {
    int episodes = (int)run->options.eval_episodes;
    char path[DC_PATH_MAX];
    dc_actor_options options = {
        .rows = episodes * DC_TASKS, .seed = DC_EVAL_SEED, .cuda = run->options.device != 0};
    DC_TRY(dc_folder_checkpoint(path, run->folder, run->step));
    DC_TRY(dc_actor_open(actor, path, &options, run->pool));
    dc_status status = dc_evaluate(watch->world, actor, episodes, DC_EVAL_SEED, run->pool,
                                   run->stop, watch->steps, score);
    dc_actor_fini(actor);
    return status;
}

dc_status dc_watch_evaluate(void *ctx, const dc_run *run, bool due) {
    dc_watch *watch = ctx;
    dc_eval_score score;
    bool has;
    DC_TRY(dc_eval_log_cut(run->folder, run->step, &has, run->stop));
    if (!due || has) return DC_OK;
    dc_actor *actor = malloc(sizeof *actor); // too large for a small stack
    if (!actor) return dc_fail(DC_NO_MEMORY, NULL, "no memory to evaluate %s", run->folder);
    dc_status status = evaluate(watch, run, actor, &score);
    free(actor);
    DC_TRY(status);
    DC_TRY(dc_eval_log_put(run->folder, run->step, DC_EVAL_SEED, &score, run->stop));
    if (watch->on_score) watch->on_score(watch->on_score_ctx, run, &score);
    return DC_OK;
}
