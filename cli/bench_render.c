// dcrl bench render: pictures per second of one thread, by its processor time. The states are those of random
// actions from the starts of all tasks, a few steps apart.
#include "args.h"
#include "bench.h"

#include "env/view.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct flags {
    int64_t seed, width, height;
    double seconds;
    char camera[DC_TEXT_MAX];
    int gl;
} flags;

static const dc_option flag_table[] = {
    DC_OPTION_INT(flags, seed, "0", 0, 9e15, "seed of starts and actions"),
    DC_OPTION_REAL(flags, seconds, "2", 0.01, 3600, "time for drawing"),
    DC_OPTION_INT(flags, width, "64", 1, DC_VIEW_MOST, "of a picture"),
    DC_OPTION_INT(flags, height, "64", 1, DC_VIEW_MOST, "of a picture"),
    DC_OPTION_TEXT(flags, camera, "", "a camera of the model; empty: OGBench's view"),
    DC_OPTION_CHOICE(flags, gl, "off", "off|auto|egl|osmesa", "as for dcrl render"),
    {0},
};

static const char usage[] =
    "usage: dcrl bench render ENV [--width W] [--height H] [--camera C] [--gl off] [--seconds T] "
    "[--json]\n\n"
    "Pictures per second of an environment's states on one core, the simulator's part of it "
    "included.\n\n"
    "example: dcrl bench render cube-single-v0 --camera front_pixels --json\n";

enum { STATES = 40, APART = 5, ACT_MAX = 32, OBS_MAX = 128 };

static dc_status play(dc_states *states, dc_env *env, const dc_env_spec *spec, uint64_t seed) {
    dc_philox_draws own, moves;
    dc_draws draws = dc_draws_philox(&moves, seed + 1, 0);
    env->draws = dc_draws_philox(&own, seed, 0);
    for (int row = 0; row < STATES; row++) {
        double action[ACT_MAX] = {0}, obs[OBS_MAX];
        dc_outcome outcome;
        if (row % (STATES / DC_TASKS) == 0)
            DC_TRY(dc_env_reset(env, row / (STATES / DC_TASKS) + 1, NULL));
        for (int t = 0; t < APART; t++) {
            for (int k = 0; k < spec->family->act; k++)
                action[k] = draws.uniform(draws.ctx, -1, 1);
            DC_TRY(dc_env_step(env, action, obs, &outcome));
        }
        dc_states_put(states, row, env);
    }
    return DC_OK;
}

static dc_status find_states(dc_states *states, const dc_env_spec *spec, uint64_t seed) {
    dc_world *world;
    dc_env env = {0};
    DC_TRY(dc_states_new(states, spec, STATES));
    DC_TRY(dc_world_new(&world, spec));
    dc_status status = dc_env_new(&env, world, (dc_draws){0});
    if (status == DC_OK) status = play(states, &env, spec, seed);
    dc_env_free(&env);
    dc_world_free(world);
    return status;
}

typedef struct figures {
    int64_t pictures;
    double busy, took;
} figures;

static dc_status draw(figures *out, dc_view *view, const dc_states *states, const flags *f) {
    uint8_t *rgb = malloc((size_t)f->width * (size_t)f->height * 3);
    if (!rgb) return dc_fail(DC_NO_MEMORY, "draw smaller", "no memory for a picture");
    dc_status status = dc_view_draw(view, states, &(int64_t){0}, 1, rgb);
    double start = dc_now(), busy = dc_now_busy();
    for (int64_t k = 0; status == DC_OK && (k == 0 || dc_now() - start < f->seconds); k++) {
        status = dc_view_draw(view, states, &(int64_t){k % STATES}, 1, rgb);
        out->pictures++;
    }
    out->busy = dc_now_busy() - busy;
    out->took = dc_now() - start;
    free(rgb);
    return status;
}

static dc_status measure(figures *out, const flags *f, const dc_env_spec *spec) {
    dc_view_options options = {.width = (int)f->width,
                               .height = (int)f->height,
                               .camera = f->camera[0] ? f->camera : NULL,
                               .gl = (dc_gl_kind)f->gl};
    dc_states states = {0};
    dc_view *view = NULL;
    dc_status status = find_states(&states, spec, (uint64_t)f->seed);
    if (status == DC_OK) status = dc_view_new(&view, spec, &options);
    if (status == DC_OK) status = draw(out, view, &states, f);
    dc_view_free(view);
    dc_states_free(&states);
    return status;
}

dc_status bench_render(int argc, char **argv) {
    flags f;
    dc_env_spec spec;
    figures out = {0};
    cli_args args = {
        .usage = usage, .flags = flag_table, .config = &f, .takes = CLI_JSON | CLI_WORDS};
    DC_TRY(cli_args_parse(&args, argc, argv));
    if (args.help) return DC_OK;
    if (args.word_count != 1)
        return dc_fail(DC_USAGE, "dcrl bench render ENV", "one environment is needed");
    DC_TRY(dc_env_find(&spec, args.words[0]));
    DC_TRY(measure(&out, &f, &spec));
    double rate = (double)out.pictures / out.busy;
    if (args.json)
        printf("{\"bench\": \"render\", \"env\": \"%s\", \"width\": %d, \"height\": %d, "
               "\"pictures_per_second\": %.1f, "
               "\"wall_pictures_per_second\": %.1f}\n",
               spec.name, (int)f.width, (int)f.height, rate, (double)out.pictures / out.took);
    else
        printf("%-24s %d x %d: %.1f pictures per second of a core\n", spec.name, (int)f.width,
               (int)f.height, rate);
    return DC_OK;
}
