// Settings of play, see setting.h. The rows of the policy are those that training was configured by.
#include "rollout/setting.h"

#include "train/run.h"

static const dc_option table[] = {
    {"env", DC_TEXT, offsetof(dc_setting, env), "", 0, 0, NULL, ""},
    {"gamma", DC_REAL, offsetof(dc_setting, gamma), "0.99", 1e-9, 0.9999999, NULL, ""},
    DC_POLICY_ACTING(dc_setting),
    {0}};

static dc_status read_known(dc_setting *setting, const dc_json *config) {
    for (const dc_json *m = config->child; m; m = m->next) {
        dc_json member = *m, alone = {.kind = DC_JSON_OBJECT, .child = &member, .count = 1};
        member.next = NULL;
        if (dc_options_find(table, m->key)) DC_TRY(dc_options_read(table, setting, &alone));
    }
    return DC_OK;
}

dc_status dc_setting_read(dc_setting *setting, const char *folder) {
    dc_arena arena;
    dc_arena_init(&arena, 0);
    dc_options_init(table, setting);
    const dc_json *config;
    dc_status status = dc_run_read_config(folder, &arena, &config);
    if (status == DC_OK && config->kind != DC_JSON_OBJECT)
        status = dc_fail(DC_BAD_INPUT, NULL, "%s/config.json is not a JSON object", folder);
    if (status == DC_OK) status = read_known(setting, config);
    dc_arena_fini(&arena);
    return status;
}

dc_actor_options dc_setting_actor(const dc_setting *setting, int rows, uint64_t seed) {
    const dc_policy *p = &setting->policy;
    return (dc_actor_options){.kind = p->kind,
                              .samples = (int)p->samples,
                              .flow_steps = (int)p->flow_steps,
                              .rows = rows,
                              .seed = seed};
}
