// dcrl expert train: a robot learns to walk.
#include "args.h"
#include "expert.h"
#include "runs.h"

#include "base/json.h"
#include "online/learn.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: dcrl expert train ant|antball|humanoid -o FILE [--seed S] [--steps N] [--threads T] "
    "[--device cuda]\n"
    "                         [--resume] [--set key=value]...\n"
    "\n"
    "Many robots act side by side on an open plane, and soft actor-critic learns from their steps. "
    "Every eval_every\n"
    "steps the policy is played without and with noise; the best one so far lies at FILE. A signal "
    "stops it, with\n"
    "FILE.state beside, from which --resume goes on with the same bytes as if it had never been "
    "stopped.\n"
    "Each robot begins with settings of its own (docs/experts.md), which --set overrides.\n"
    "\n"
    "example: dcrl expert train ant -o ant.safetensors --seed 1\n"
    "         dcrl expert train ant -o ant.safetensors --steps 1000000 --set lr=1e-4 --set "
    "updates=128\n";

typedef struct flags {
    char out[DC_TEXT_MAX];
    int64_t seed, steps, threads;
    int device;
    bool resume;
} flags;

static const dc_option table[] = {
    DC_OPTION_TEXT(flags, out, "", "expert file to write; FILE.state is kept beside it"),
    DC_OPTION_INT(flags, seed, "0", 0, 9e15,
                  "the same seed gives the same bytes, for any number of threads"),
    DC_OPTION_INT(flags, steps, "0", 0, 1e12, "of all robots together; 0: the robot's own"),
    DC_OPTION_INT(flags, threads, "0", 0, 1024, "0: one for every core"),
    DC_OPTION_CHOICE(flags, device, "cpu", "cpu|cuda", "where to learn; robots act on the CPU"),
    DC_OPTION_BOOL(flags, resume, "off", "go on from FILE.state"),
    {0},
};

typedef struct view {
    cli_line line;
    const dc_plane *plane;
    bool json, headed;
    dc_scores best[2];
    int64_t steps, updates;
    double seconds;
} view;

// ---- what is seen on the way ----

static void show_line(view *v, const dc_learn_report *r) {
    char eta[32], text[256];
    double rate = (double)(r->steps - r->resumed) / (r->seconds + 1e-9);
    int n = snprintf(text, sizeof text, "step %" PRId64 "/%" PRId64 " (%.0f%%)", r->steps, r->all,
                     100 * (double)r->steps / (double)r->all);
    if (!v->plane->ball)
        n += snprintf(text + n, sizeof text - (size_t)n, "  %.2f m/s along", r->along);
    snprintf(text + n, sizeof text - (size_t)n,
             "  reward %.3f  %.1f ends/1000  %.0f steps/s  ETA %s", r->reward, r->ended, rate,
             cli_duration((double)(r->all - r->steps) / (rate + 1e-9), eta));
    cli_line_show(&v->line, text);
}

static void show_scores(view *v, const dc_learn_report *r) {
    const double *a = r->scores[0].value, *b = r->scores[1].value;
    bool ball = v->plane->ball > 0, head = v->plane->head > 0;
    cli_line_clear(&v->line);
    if (!v->headed)
        printf("%10s %9s  %-15s  %-15s  %s\n", "steps", "updates",
               ball ? "goals, + noise" : "m/s, with noise", head ? "falls, up" : "ends, upturned",
               "length of a step");
    v->headed = true;
    printf("%10" PRId64 " %9" PRId64 "  %6.2f %6.2f    %6.2f %6.2f    %.3f%s\n", r->steps,
           r->updates, ball ? a[DC_SCORE_reach] : a[DC_SCORE_speed],
           ball ? b[DC_SCORE_reach] : b[DC_SCORE_speed],
           head ? b[DC_SCORE_falls] : b[DC_SCORE_ends], head ? b[DC_SCORE_up] : b[DC_SCORE_back],
           b[DC_SCORE_step], r->best ? "  best" : "");
    fflush(stdout);
}

static void show(void *ctx, const dc_learn_report *r) {
    view *v = ctx;
    v->steps = r->steps;
    v->updates = r->updates;
    v->seconds = r->seconds;
    if (r->best) memcpy(v->best, r->scores, sizeof v->best);
    show_line(v, r);
    if (r->scores && !v->json) show_scores(v, r);
}

// ---- the command ----

// What the file says it was made by: nothing in it depends on threads or on where it is written.
static void add_command(const flags *f, const cli_args *args, dc_text *out) {
    dc_text_add(out, "dcrl expert train %s --seed %" PRId64, args->words[0], f->seed);
    if (f->steps) dc_text_add(out, " --steps %" PRId64, f->steps);
    if (f->device) dc_text_add(out, " --device cuda");
    for (int i = 0; i < args->set_count; i++)
        dc_text_add(out, " --set %s", args->sets[i]);
}

dc_status cli_learn_sets(dc_learn *l, const cli_args *args) {
    for (int i = 0; i < args->set_count; i++) {
        char key[DC_TEXT_MAX];
        size_t n = strcspn(args->sets[i], "=");
        if (n >= sizeof key)
            return dc_fail(DC_USAGE, NULL, "a key is too long (--set %.40s...)", args->sets[i]);
        snprintf(key, sizeof key, "%.*s", (int)n, args->sets[i]);
        DC_TRY(dc_learn_set(l, key, args->sets[i] + n + 1));
    }
    return DC_OK;
}

static dc_status set_number(dc_learn *l, const char *key, int64_t value) {
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, value);
    return dc_learn_set(l, key, text);
}

static dc_status configure(dc_learn *l, const flags *f, const cli_args *args) {
    DC_TRY(set_number(l, "seed", f->seed));
    DC_TRY(set_number(l, "threads", f->threads));
    if (f->steps) DC_TRY(set_number(l, "steps", f->steps));
    DC_TRY(dc_learn_set(l, "device", f->device ? "cuda" : "cpu"));
    return cli_learn_sets(l, args);
}

static dc_status print_end(const view *v, const char *path, bool json) {
    dc_expert e;
    dc_text scores;
    DC_TRY(dc_expert_open(&e, path));
    dc_text_init(&scores);
    if (json) {
        dc_text_add(&scores, "{\"robot\": \"%s\", \"expert\": ", v->plane->name);
        dc_json_quote(&scores, path);
        dc_text_add(&scores,
                    ", \"hash\": \"%s\", \"steps\": %" PRId64 ", \"updates\": %" PRId64
                    ", \"seconds\": %.1f, \"scores\": %s}\n",
                    e.hash, v->steps, v->updates, v->seconds, e.scores);
    } else {
        dc_text_add(&scores, "wrote %s: %s, %s\n", path, v->plane->about, e.hash);
    }
    dc_status status = dc_text_status(&scores);
    if (status == DC_OK) fputs(scores.bytes, stdout);
    dc_text_fini(&scores);
    dc_expert_close(&e);
    return status;
}

static dc_status train(dc_learn *l, const flags *f, const cli_args *args, const dc_plane *plane) {
    view v = {.plane = plane, .json = args->json};
    dc_text command;
    cli_line_init(&v.line);
    cli_catch_signals();
    dc_text_init(&command);
    add_command(f, args, &command);
    dc_status status = dc_text_status(&command);
    dc_learn_job job = {f->out, command.bytes, f->resume, &cli_stop, show, &v};
    if (status == DC_OK) status = dc_learn_run(l, &job);
    cli_line_clear(&v.line);
    dc_text_fini(&command);
    return status == DC_OK ? print_end(&v, f->out, args->json) : status;
}

// The learner's keys and those of its method, for --help.
static const dc_option *all_keys(void) {
    static dc_option keys[64];
    int n = 0;
    const dc_option *tables[] = {dc_learn_table, dc_learn_method_options()};
    for (int t = 0; t < 2; t++)
        for (const dc_option *o = tables[t]; o->name && n < 63; o++)
            keys[n++] = *o;
    return keys;
}

dc_status cli_expert_train(int argc, char **argv) {
    flags f;
    const dc_plane *plane;
    dc_learn *learn;
    cli_args args = {.usage = usage,
                     .flags = table,
                     .config = &f,
                     .keys = all_keys(),
                     .takes = CLI_JSON | CLI_SET | CLI_WORDS};
    DC_TRY(cli_args_parse(&args, argc, argv));
    if (args.help) return DC_OK;
    if (args.word_count != 1)
        return dc_fail(DC_USAGE, "dcrl expert train ant|antball|humanoid -o FILE",
                       "one robot is needed");
    DC_TRY(dc_plane_find(&plane, args.words[0]));
    DC_TRY(cli_args_need(&args, "out"));
    if (!f.out[0]) return dc_fail(DC_USAGE, "-o FILE.safetensors", "--out names no file");
    DC_TRY(dc_learn_new(&learn, plane));
    dc_status status = configure(learn, &f, &args);
    if (status == DC_OK) status = train(learn, &f, &args, plane);
    dc_learn_free(learn);
    return status;
}
