// Rows: which rows of the data set a batch consists of, as a table of rules. A method's file fills the
// table (algo/*.c, `rows`); one function, compiled for the CPU and for CUDA, draws any table
// (sample/row_draw.h). Nothing here knows a method by name.
//
// Every rule gives one number per row of the batch: the number of a row of the data set, or a count of
// steps (STEPS). A rule may build on rules that stand before it (`of`, `to`). A START rule may give several
// (`times`): number r times + k is the k-th of row r; no rule builds on those.
//
//   START    a state that has an action, uniform over all of them
//   TREE     start of a segment: the next node of a slot's binary tree (sample/slots.h)
//   PAIR     start of a segment: an i.i.d. pair of one trajectory
//   SPLIT    where the segment of `of` is split; its start if it is a single step
//   END      the end of the segment of `of`
//   AFTER    the state `steps` after `of`, at most the last of the trajectory
//   TOWARD   the same, but not past `to` where `to` lies ahead in the trajectory
//   BETWEEN  a state between `of` and `to`, in the middle or uniform, where `to` lies two steps or more ahead
//            in the trajectory; else `of`
//   GOAL     a goal for `of`, by the mixture `mix`
//   STEPS    steps from `of` to `to` where `to` lies at or after it in the same trajectory, else -1
//
// To add a kind: a row here, a case in dc_draw_rule (row_draw.h), a check in rows.c, and a test of its
// distribution (tests/sample/test_sampler.c).
#ifndef DC_ROWS_H
#define DC_ROWS_H

#include "base/philox.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { DC_RULES_MAX = 24, DC_TIMES_MAX = 64 };

typedef enum dc_row_kind {
    DC_ROW_START,
    DC_ROW_TREE,
    DC_ROW_PAIR,
    DC_ROW_SPLIT,
    DC_ROW_END,
    DC_ROW_AFTER,
    DC_ROW_TOWARD,
    DC_ROW_BETWEEN,
    DC_ROW_GOAL,
    DC_ROW_STEPS,
} dc_row_kind;

typedef enum dc_split { DC_SPLIT_MIDPOINT, DC_SPLIT_RANDOM, DC_SPLIT_MAX } dc_split;
typedef enum dc_order { DC_ORDER_UP, DC_ORDER_DOWN } dc_order; // leaves first, or the root first
// A law is a distribution of rows; the options goal_law and actor_law name one of these.
typedef enum dc_law { DC_LAW_UNIFORM, DC_LAW_GEOMETRIC } dc_law;

// Goals: shares of the state itself, of later states of its trajectory, of any row, and of the very next state; and
// the distribution (law) of the later state: uniform over them, or geometric with the rule's gamma, cut at the
// trajectory's end.
typedef struct dc_goal_mix {
    double current, future, random; // sum 1, with `next`
    int law;                        // dc_law
    double next;
} dc_goal_mix;

typedef struct dc_row_rule {
    const char *name; // "goal": what inputs, `dcrl sample` and `dcrl grad` call it
    dc_row_kind kind;
    const char *of, *to; // names of rules that stand before this one
    const char *about;   // a few words for `dcrl grad --describe`
    uint32_t
        draws; // random stream (base/philox.h) of what draws: all but END, AFTER, TOWARD and STEPS
    int times; // START: above 1, so many for every row of the batch
    int64_t steps; // AFTER, TOWARD
    bool acted; // AFTER: stop at the last row that has an action, one before the trajectory's last
    dc_goal_mix mix; // GOAL
    double gamma;    // of the geometric law: GOAL, PAIR
    dc_law law; // PAIR: uniform over pairs i < j of a trajectory, or i uniform and j - i geometric
    // PAIR: above 0, lengths grow by stages: stage s has s * stage_length + 1 to (s + 1) * stage_length
    // steps, and the stages share stage_total updates equally.
    int64_t stage_length;
    uint64_t stage_total;
    dc_split split;    // TREE, SPLIT (of a PAIR: MIDPOINT or RANDOM), BETWEEN (likewise)
    dc_order order;    // TREE
    int slots;         // TREE: trees in flight
    int rebuild_every; // TREE with split MAX: build all trees anew at steps divisible by this
} dc_row_rule;

// Rules as method files write them; TREE and PAIR, which have more to say, are written out.
#define DC_START(name_, draws_, about_)                                                            \
    ((dc_row_rule){.name = name_, .kind = DC_ROW_START, .draws = draws_, .about = about_})
#define DC_STARTS(name_, times_, draws_, about_)                                                   \
    ((dc_row_rule){                                                                                \
        .name = name_, .kind = DC_ROW_START, .times = times_, .draws = draws_, .about = about_})
#define DC_SPLIT(name_, of_, split_, about_)                                                       \
    ((dc_row_rule){.name = name_,                                                                  \
                   .kind = DC_ROW_SPLIT,                                                           \
                   .of = of_,                                                                      \
                   .split = split_,                                                                \
                   .draws = DC_STREAM_SUBGOAL,                                                     \
                   .about = about_})
#define DC_END(name_, of_, about_)                                                                 \
    ((dc_row_rule){.name = name_, .kind = DC_ROW_END, .of = of_, .about = about_})
#define DC_AFTER(name_, of_, steps_, about_)                                                       \
    ((dc_row_rule){                                                                                \
        .name = name_, .kind = DC_ROW_AFTER, .of = of_, .steps = steps_, .about = about_})
#define DC_TOWARD(name_, of_, to_, steps_, about_)                                                 \
    ((dc_row_rule){.name = name_,                                                                  \
                   .kind = DC_ROW_TOWARD,                                                          \
                   .of = of_,                                                                      \
                   .to = to_,                                                                      \
                   .steps = steps_,                                                                \
                   .about = about_})
#define DC_BETWEEN(name_, of_, to_, split_, about_)                                                \
    ((dc_row_rule){.name = name_,                                                                  \
                   .kind = DC_ROW_BETWEEN,                                                         \
                   .of = of_,                                                                      \
                   .to = to_,                                                                      \
                   .split = split_,                                                                \
                   .draws = DC_STREAM_SUBGOAL,                                                     \
                   .about = about_})
#define DC_GOAL(name_, of_, draws_, mix_, gamma_, about_)                                          \
    ((dc_row_rule){.name = name_,                                                                  \
                   .kind = DC_ROW_GOAL,                                                            \
                   .of = of_,                                                                      \
                   .draws = draws_,                                                                \
                   .mix = mix_,                                                                    \
                   .gamma = gamma_,                                                                \
                   .about = about_})
#define DC_STEPS(name_, of_, to_, about_)                                                          \
    ((dc_row_rule){.name = name_, .kind = DC_ROW_STEPS, .of = of_, .to = to_, .about = about_})

// Chooses a split for each of `count` segments (i[m], j[m]) of at least two steps: i < k < j.
typedef dc_status dc_split_fn(void *ctx, int64_t count, const int64_t *i, const int64_t *j,
                              int64_t *k);

typedef struct dc_row_table {
    uint64_t seed;
    int batch;
    int count;
    dc_row_rule rule[DC_RULES_MAX];
    dc_split_fn *choose; // Nullable: called for split MAX
    void *choose_ctx;
} dc_row_table;

// Add a rule; returns its number. One that names an unknown rule, or a name used twice, is a bug and aborts.
int dc_rows_add(dc_row_table *rows, dc_row_rule rule);
// Number of a rule; -1 if there is none.
int dc_rows_find(const dc_row_table *rows, const char *name);
// The TREE rule; NULL if there is none.
const dc_row_rule *dc_rows_tree(const dc_row_table *rows);
// Whether a rule gives a count of steps, not a row of the data set.
bool dc_row_counts(const dc_row_rule *rule);
// Numbers that a rule gives for every row of the batch: 1, or `times`.
int dc_row_times(const dc_row_rule *rule);
// Do numbers that users give (mixtures, gamma, batch ...) make sense? Errors: DC_USAGE.
dc_status dc_rows_check(const dc_row_table *rows);

#endif
