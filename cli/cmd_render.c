// dcrl render: an episode as pictures. Its states come from a run's policy, a data set, a file, the
// script that makes data, or a reset; the frames go to a GIF, an MP4, a PNG or a folder of them.
#include "args.h"
#include "cli.h"
#include "runs.h"

#include "base/file.h"
#include "env/view.h"
#include "report/film.h"
#include "rollout/show.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: dcrl render RUN -o FILE [--task T] [--episode K] [--step N]     a policy's episode\n"
    "       dcrl render ENV -o FILE --data DATA [--episode K]               an episode of a data "
    "set\n"
    "       dcrl render ENV -o FILE --script [--episode K]                  as dcrl gen plays\n"
    "       dcrl render ENV -o FILE --states STATES.npz                     given states\n"
    "       dcrl render ENV -o FILE [--task T]                              the start of a task\n"
    "\n"
    "Shows an episode as OGBench's render() does, without a screen and without OpenGL. "
    "FILE ends in\n"
    ".gif, .mp4 (needs ffmpeg) or .png (one frame, --at); any other name is a folder for PNG "
    "files.\n"
    "STATES.npz has qpos (nq) or (T,nq), and optionally button_states and the target: goal_xy "
    "(2) "
    "of a maze,\n"
    "target of an arm (docs/envs.md).\n"
    "\n"
    "example: dcrl render runs/pointmaze --task 3 -o way.gif\n"
    "         dcrl render cube-double-v0 --data cube-double-play-v0.npz --episode 7 -o frames/\n";

enum { SAMPLES = 8, BATCH = 64, BATCH_BYTES = 64 << 20 }; // BATCH: frames at a time

typedef struct flags {
    char out[DC_TEXT_MAX], data[DC_TEXT_MAX], states[DC_TEXT_MAX], camera[DC_TEXT_MAX];
    char expert[DC_TEXT_MAX], ball_expert[DC_TEXT_MAX];
    bool script;
    int64_t task, episode, episodes, step, seed, at, every, width, height, threads;
    double fps;
    int gl;
} flags;

static const dc_option table[] = {
    DC_OPTION_TEXT(flags, out, "", "FILE.gif, FILE.mp4, FILE.png or a folder"),
    DC_OPTION_TEXT(flags, data, "", "data set with qpos"),
    DC_OPTION_TEXT(flags, states, "", "npz with qpos"),
    DC_OPTION_BOOL(flags, script, "off", "the script behind dcrl gen plays"),
    DC_OPTION_TEXT(flags, expert, "", "of a script: that walks, as for dcrl gen"),
    DC_OPTION_TEXT(flags, ball_expert, "", "of a script: that dribbles, as for dcrl gen"),
    DC_OPTION_INT(flags, task, "1", 1, DC_TASKS, "task to play or to start"),
    DC_OPTION_INT(flags, episode, "0", 0, 1e9, "number of the episode, from 0"),
    DC_OPTION_INT(flags, episodes, "15", 1, 10000,
                  "of a run: episodes per task of the dcrl eval that is shown"),
    DC_OPTION_INT(flags, step, "-1", -1, 1e12, "of a run: checkpoint to take; -1: the newest"),
    DC_OPTION_INT(flags, seed, "0", 0, 9e15, "seed of starts, goals and noise"),
    DC_OPTION_INT(flags, at, "0", -1, 1e9, "FILE.png: the state to show, from 0; -1: the last"),
    DC_OPTION_INT(flags, every, "1", 1, 1e6, "take every Nth state"),
    DC_OPTION_REAL(flags, fps, "0", 0, 1000,
                   "frames per second; 0: as time runs in the environment"),
    DC_OPTION_INT(flags, width, "200", 1, DC_VIEW_MOST, "of a frame"),
    DC_OPTION_INT(flags, height, "200", 1, DC_VIEW_MOST, "of a frame"),
    DC_OPTION_TEXT(flags, camera, "", "a camera of the model; empty: OGBench's view"),
    DC_OPTION_CHOICE(flags, gl, "off", "off|auto|egl|osmesa",
                     "draw by OpenGL without a screen, as OGBench does; auto: egl, else osmesa"),
    DC_OPTION_INT(flags, threads, "0", 0, 1024, "threads; 0: all cores"),
    {0},
};

typedef struct studio {
    const flags *f;
    bool run; // the word was a run folder, and pick is filled in
    cli_pick pick;
    dc_env_spec spec;
    dc_view *view;
    dc_film *film;
    dc_states states;
    bool success; // of a policy
    dc_pool *pool;
    uint8_t *rgb; // (batch, height, width, 3)
    int batch;
    int64_t frames, drawn, to_draw; // written, drawn: with samples of a GIF's colours
    cli_line line;
    cli_progress drawing; // on the line
} studio;

// ---- where states come from ----

static dc_status play_policy(studio *s, const dc_world *world) {
    const flags *f = s->f;
    cli_progress progress;
    dc_eval_progress steps = cli_progress_on(&progress, &s->line, "playing", "steps");
    dc_show show = {(int)f->task, (int)f->episode, (int)f->episodes, (uint64_t)f->seed, &steps};
    if (f->episode >= f->episodes)
        return dc_fail(DC_USAGE, "give --episodes as well",
                       "there is no episode %" PRId64 " of %" PRId64, f->episode, f->episodes);
    dc_actor_options options = {.rows = 1, .seed = show.seed};
    dc_actor actor = {0};
    dc_status status = dc_actor_open(&actor, s->pick.path, &options, s->pool);
    if (status == DC_OK)
        status = dc_show_play(&show, world, &actor, &cli_stop, &s->states, &s->success);
    dc_actor_fini(&actor);
    return status;
}

static dc_status play_script(studio *s, const dc_world *world) {
    const flags *f = s->f;
    int64_t episodes;
    dc_gen gen;
    dc_gen_experts experts;
    DC_TRY(dc_gen_init(&gen, &s->spec, s->spec.data, &episodes));
    DC_TRY(dc_gen_experts_open(&experts, &s->spec,
                               (const char *const[DC_GEN_EXPERTS]){f->expert, f->ball_expert}));
    gen.world = world;
    gen.seed = (uint64_t)f->seed;
    gen.experts = &experts;
    dc_status status = dc_states_script(&s->states, &gen, f->episode);
    dc_gen_experts_close(&experts);
    return status;
}

static dc_status simulate(studio *s) {
    const flags *f = s->f;
    dc_world *world;
    DC_TRY(dc_world_new(&world, &s->spec));
    dc_status status = s->run ? play_policy(s, world)
                       : f->script
                           ? play_script(s, world)
                           : dc_states_start(&s->states, world, (int)f->task, (uint64_t)f->seed);
    dc_world_free(world);
    return status;
}

static dc_status load(studio *s) {
    dc_dataset data;
    dc_status status = dc_dataset_load(&data, s->f->data);
    if (status == DC_OK) status = dc_states_data(&s->states, &s->spec, &data, s->f->episode);
    dc_dataset_fini(&data);
    return status;
}

static dc_status find_states(studio *s) {
    if (s->f->data[0]) return load(s);
    if (s->f->states[0]) return dc_states_file(&s->states, &s->spec, s->f->states);
    return simulate(s);
}

// ---- where frames go ----

// Every `apart`th state: to the film, or only its colours.
static dc_status shoot(studio *s, int64_t from, int64_t to, int64_t apart, bool sample) {
    size_t size = (size_t)s->f->width * (size_t)s->f->height * 3;
    int64_t rows[BATCH];
    while (from < to) {
        int n = 0;
        if (atomic_load(&cli_stop)) return dc_fail(DC_INTERRUPTED, NULL, "stopped");
        for (; n < s->batch && from < to; from += apart)
            rows[n++] = from;
        cli_progress_show(&s->drawing, s->drawn, s->to_draw);
        DC_TRY(dc_view_draw(s->view, &s->states, rows, n, s->rgb));
        s->drawn += n;
        for (int k = 0; k < n; k++)
            if (sample)
                dc_film_sample(s->film, s->rgb + size * (size_t)k);
            else
                DC_TRY(dc_film_add(s->film, s->rgb + size * (size_t)k));
        s->frames += sample ? 0 : n;
    }
    return DC_OK;
}

// A single state, counted from the end if negative.
static dc_status shoot_still(studio *s) {
    int64_t row = s->f->at < 0 ? s->states.count + s->f->at : s->f->at;
    s->to_draw = 1;
    if (row >= 0 && row < s->states.count) return shoot(s, row, row + 1, 1, false);
    return dc_fail(DC_USAGE, "--at -1 is the last", "there is no state %" PRId64 " of %" PRId64,
                   s->f->at, s->states.count);
}

static dc_status shoot_all(studio *s) {
    int64_t count = s->states.count, apart = count / SAMPLES + 1;
    bool samples = dc_film_wants_samples(s->film);
    s->to_draw = (count - 1) / s->f->every + 1 + (samples ? (count - 1) / apart + 1 : 0);
    if (samples) DC_TRY(shoot(s, 0, count, apart, true));
    return shoot(s, 0, count, s->f->every, false);
}

static dc_status make(studio *s) {
    const flags *f = s->f;
    dc_view_options options = {.width = (int)f->width,
                               .height = (int)f->height,
                               .camera = f->camera[0] ? f->camera : NULL,
                               .gl = (dc_gl_kind)f->gl,
                               .pool = s->pool};
    size_t size = (size_t)f->width * (size_t)f->height * 3;
    s->batch = f->gl == DC_GL_OFF && size * BATCH <= BATCH_BYTES ? BATCH : 1;
    s->rgb = malloc(size * (size_t)s->batch);
    if (!s->rgb) return dc_fail(DC_NO_MEMORY, "draw smaller", "no memory for a frame");
    bool file = f->data[0] || f->states[0]; // read before OpenGL is opened for it
    if (file) DC_TRY(find_states(s));
    DC_TRY(dc_view_new(&s->view, &s->spec, &options));
    double rate = f->fps > 0 ? f->fps : dc_view_rate(s->view) / (double)f->every;
    if (!file) DC_TRY(find_states(s));
    DC_TRY(dc_film_new(&s->film, f->out, options.width, options.height, rate));
    DC_TRY(dc_film_is_still(f->out) ? shoot_still(s) : shoot_all(s));
    return dc_film_save(s->film);
}

// ---- the command ----

// An environment's name, unless there is a folder of that name.
static dc_status find_subject(studio *s, const char *word) {
    const flags *f = s->f;
    int sources = (f->data[0] != 0) + (f->states[0] != 0) + f->script;
    s->run = !dc_env_has_tasks(word);
    if (!s->run) DC_TRY(dc_folder_find(word, &s->run));
    if (sources + s->run > 1)
        return dc_fail(DC_USAGE, "see dcrl render --help",
                       "a run, --data, --states and --script exclude each other");
    if (!s->run) return dc_env_find(&s->spec, word);
    DC_TRY(cli_run_pick(&s->pick, word, f->step));
    s->spec = s->pick.spec;
    return DC_OK;
}

static void print_result(const studio *s) {
    printf("wrote %s: %" PRId64 " frame%s of %" PRId64 " x %" PRId64, s->f->out, s->frames,
           s->frames == 1 ? "" : "s", s->f->width, s->f->height);
    if (s->run)
        printf("; the policy of step %" PRId64 " %s task %" PRId64 " in %" PRId64 " steps",
               s->pick.step, s->success ? "reaches the goal of" : "does not reach the goal of",
               s->f->task, s->states.count - 1);
    puts("");
}

dc_status cmd_render(int argc, char **argv) {
    flags f;
    cli_args args = {.usage = usage, .flags = table, .config = &f, .takes = CLI_WORDS};
    DC_TRY(cli_args_parse(&args, argc, argv));
    if (args.help) return DC_OK;
    if (args.word_count != 1)
        return dc_fail(DC_USAGE, "dcrl render RUN -o FILE.gif", "one run or environment is needed");
    DC_TRY(cli_args_need(&args, "out"));
    if (!f.out[0]) return dc_fail(DC_USAGE, "-o FILE.gif", "--out names no file");
    DC_TRY(cli_check_name(f.out, ".gif|.mp4|.png", true));
    studio s = {.f = &f};
    DC_TRY(find_subject(&s, args.words[0]));
    cli_catch_signals();
    cli_line_init(&s.line);
    cli_progress_on(&s.drawing, &s.line, "drawing", "frames");
    dc_status status = dc_pool_new(&s.pool, (int)f.threads);
    if (status == DC_OK) status = make(&s);
    cli_line_clear(&s.line);
    if (status == DC_OK) print_result(&s);
    dc_film_free(s.film);
    dc_states_free(&s.states);
    dc_view_free(s.view);
    dc_pool_free(s.pool);
    free(s.rgb);
    return status;
}
