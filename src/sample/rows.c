// The table of rules: adding, checking, and the table as numbers for a data set, see rows.h.
#include "sample/rows.h"

#include "sample/row_draw.h"

#include <math.h>
#include <string.h>

enum { SLOTS_MAX = 1 << 20, BATCH_MAX = 1 << 24 };

int dc_rows_find(const dc_row_table *rows, const char *name) {
    for (int r = 0; name && r < rows->count; r++)
        if (!strcmp(rows->rule[r].name, name)) return r;
    return -1;
}

int dc_rows_add(dc_row_table *rows, dc_row_rule rule) {
    DC_CHECK(rows->count < DC_RULES_MAX && dc_rows_find(rows, rule.name) < 0);
    const char *builds_on[] = {rule.of, rule.to};
    for (int k = 0; k < 2; k++) {
        int source = dc_rows_find(rows, builds_on[k]);
        DC_CHECK(!builds_on[k] || (source >= 0 && dc_row_times(&rows->rule[source]) == 1));
    }
    DC_CHECK(rule.times <= 1 || (rule.kind == DC_ROW_START && rule.times <= DC_TIMES_MAX));
    DC_CHECK(rule.kind != DC_ROW_TREE || !dc_rows_tree(rows)); // one set of slots per table
    rows->rule[rows->count] = rule;
    return rows->count++;
}

const dc_row_rule *dc_rows_tree(const dc_row_table *rows) {
    for (int r = 0; r < rows->count; r++)
        if (rows->rule[r].kind == DC_ROW_TREE) return &rows->rule[r];
    return NULL;
}

bool dc_row_counts(const dc_row_rule *rule) {
    return rule->kind == DC_ROW_STEPS;
}

int dc_row_times(const dc_row_rule *rule) {
    return rule->times > 1 ? rule->times : 1;
}

// ---- checks of what users give ----

static dc_status check_mix(const dc_row_rule *rule) {
    const dc_goal_mix *m = &rule->mix;
    double sum = m->current + m->next + m->future + m->random;
    bool shares = m->current >= 0 && m->next >= 0 && m->future >= 0 && m->random >= 0;
    if (shares && fabs(sum - 1) < 1e-6) return DC_OK;
    if (m->next > 0)
        return dc_fail(DC_USAGE,
                       "goal_current, goal_next, goal_future and goal_random must add up to 1",
                       "impossible mixture of goals (%g, %g, %g, %g)", m->current, m->next,
                       m->future, m->random);
    return dc_fail(DC_USAGE, "goal_current, goal_future and goal_random must add up to 1",
                   "impossible mixture of goals (%g, %g, %g)", m->current, m->future, m->random);
}

static dc_status check_tree(const dc_row_table *rows, const dc_row_rule *rule) {
    if (rule->slots < 1 || rule->slots > SLOTS_MAX)
        return dc_fail(DC_USAGE, "give 1 to 1048576", "impossible number of slots (%d)",
                       rule->slots);
    if (rule->split == DC_SPLIT_MAX) DC_CHECK(rows->choose && rule->rebuild_every >= 1);
    return DC_OK;
}

static dc_status check_rule(const dc_row_table *rows, const dc_row_rule *rule) {
    if (!(rule->gamma >= 0 && rule->gamma < 1))
        return dc_fail(DC_USAGE, "give 0 <= gamma < 1", "impossible discount (gamma=%g)",
                       rule->gamma);
    bool walks = rule->kind == DC_ROW_AFTER || rule->kind == DC_ROW_TOWARD;
    if (walks && rule->steps < 1)
        return dc_fail(DC_USAGE, "give at least 1", "impossible number of steps to '%s' (%lld)",
                       rule->name, (long long)rule->steps);
    if (rule->kind == DC_ROW_GOAL) return check_mix(rule);
    return rule->kind == DC_ROW_TREE ? check_tree(rows, rule) : DC_OK;
}

dc_status dc_rows_check(const dc_row_table *rows) {
    if (rows->batch < 1 || rows->batch > BATCH_MAX)
        return dc_fail(DC_USAGE, "give 1 to 16777216", "impossible batch (%d)", rows->batch);
    for (int r = 0; r < rows->count; r++)
        DC_TRY(check_rule(rows, &rows->rule[r]));
    return DC_OK;
}

// ---- the table as numbers ----

// Shares of goals: the state itself, the next one, later states, and any row for the rest.
static dc_goal_law goal_law(const dc_goal_mix *mix) {
    const double words = 4294967296.0;
    dc_goal_law law = {.uniform = mix->law == DC_LAW_UNIFORM};
    law.current = (uint64_t)(mix->current * words + 0.5);
    law.next = (uint64_t)((mix->current + mix->next) * words + 0.5);
    // Where there are no random goals the last kind is the future: no rounding may leave a gap.
    law.future = mix->random <= 0 ? (uint64_t)words : (uint64_t)((1 - mix->random) * words + 0.5);
    return law;
}

// Number of the geometric law of a discount; made where there is none yet.
static int geometric_of(dc_row_laws *laws, double *gammas, int *count, double gamma) {
    for (int g = 0; g < *count; g++)
        if (fabs(gammas[g] - gamma) <= 0) return g;
    DC_CHECK(*count < DC_GEOMETRICS_MAX);
    laws->geometric[*count] = dc_geometric_of(gamma, laws->set.longest);
    gammas[*count] = gamma;
    return (*count)++;
}

static bool draws_geometric(const dc_row_rule *rule) {
    if (rule->kind == DC_ROW_PAIR) return rule->law == DC_LAW_GEOMETRIC && !rule->stage_length;
    return rule->kind == DC_ROW_GOAL && rule->mix.law == DC_LAW_GEOMETRIC;
}

static void set_stages(dc_rule_law *law, const dc_row_rule *rule, const dc_trajectories *set) {
    law->stage_length = rule->stage_length;
    if (rule->stage_length <= 0) return;
    law->stages = (set->longest - 2) / rule->stage_length + 1;
    law->stage_steps = rule->stage_total / (uint64_t)law->stages;
}

// Where a rule lies, and what builds on the tree.
static void set_links(dc_row_laws *laws, int number) {
    dc_rule_law *law = &laws->rule[number];
    bool own = law->of < 0 || law->kind == DC_ROW_GOAL; // a goal may lie in any trajectory
    law->origin = own ? number : laws->rule[law->of].origin;
    law->inside =
        law->kind == DC_ROW_STEPS && laws->rule[law->of].origin == laws->rule[law->to].origin;
    law->on_tree = law->kind == DC_ROW_TREE || (law->of >= 0 && laws->rule[law->of].on_tree) ||
                   (law->to >= 0 && laws->rule[law->to].on_tree);
    if (law->kind == DC_ROW_TREE) laws->tree = number;
}

static void mark_serving(dc_row_laws *laws) {
    for (int r = laws->count - 1; r >= 0; r--) {
        const dc_rule_law *law = &laws->rule[r];
        if (!law->on_tree && !law->serves_tree) continue;
        int sources[] = {law->of, law->to};
        for (int k = 0; k < 2; k++)
            if (sources[k] >= 0 && !laws->rule[sources[k]].on_tree)
                laws->rule[sources[k]].serves_tree = true;
    }
}

void dc_row_laws_init(dc_row_laws *laws, const dc_row_table *rows, const dc_trajectories *set) {
    double gammas[DC_GEOMETRICS_MAX];
    int geometrics = 0;
    const dc_row_rule *tree = dc_rows_tree(rows);
    *laws = (dc_row_laws){.set = *set, .seed = rows->seed, .count = rows->count, .tree = -1};
    if (tree) laws->slots = tree->slots;
    if (tree) laws->down = tree->order == DC_ORDER_DOWN;
    for (int r = 0; r < rows->count; r++) {
        const dc_row_rule *rule = &rows->rule[r];
        laws->rule[r] = (dc_rule_law){.kind = rule->kind,
                                      .of = dc_rows_find(rows, rule->of),
                                      .to = dc_rows_find(rows, rule->to),
                                      .uniform = rule->law == DC_LAW_UNIFORM,
                                      .random_split = rule->split == DC_SPLIT_RANDOM,
                                      .times = dc_row_times(rule),
                                      .stream = rule->draws,
                                      .goals = goal_law(&rule->mix),
                                      .steps = rule->steps,
                                      .acted = rule->acted};
        if (draws_geometric(rule))
            laws->rule[r].geometric = geometric_of(laws, gammas, &geometrics, rule->gamma);
        set_stages(&laws->rule[r], rule, set);
        set_links(laws, r);
    }
    mark_serving(laws);
}
