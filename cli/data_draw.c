// dcrl data draw: a file of states becomes one of pictures. Observations are drawn from each row's qpos, by several
// threads; every other array is copied as it is.
//
// A row's state is what is drawn. OGBench's own pictures of cubes and ants show kinematics of the physics step before
// (env/sim.h), which no file holds: those of dcrl gen are drawn while episodes are played.
#include "data_draw.h"

#include "args.h"
#include "runs.h"

#include "base/arena.h"
#include "base/file.h"
#include "data/npz.h"
#include "env/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: dcrl data draw FILE.npz ENV -o OUT.npz [--level L] [--threads T]\n"
    "\n"
    "Makes data of a visual environment from data of states: observations (N,64,64,3) of uint8, "
    "drawn from qpos, and\n"
    "from button_states where there are buttons; all other arrays stay. ENV is the visual "
    "environment, or the one that\n"
    "the data is of.\n"
    "\n"
    "example: dcrl data draw cube-single-play-v0.npz visual-cube-single-play-v0 -o visual.npz\n";

typedef struct flags {
    char out[DC_TEXT_MAX];
    int64_t level, threads;
} flags;

static const dc_option table[] = {
    DC_OPTION_TEXT(flags, out, "", "file to write"),
    DC_OPTION_INT(flags, level, "6", 0, 9, "0 stores, 1 (fast) to 9 (small) deflates"),
    DC_OPTION_INT(flags, threads, "0", 0, 1024, "0: one for every core"),
    {0},
};

enum { FRAMES = 512 }; // at a time

typedef struct drawing {
    const flags *f;
    dc_env_spec spec;
    dc_npz npz;
    dc_states states;
    dc_arena arena;
    dc_pool *pool;
    dc_view *view;
    dc_npz_writer *writer;
} drawing;

static dc_status find_spec(dc_env_spec *spec, const char *name) {
    DC_TRY(dc_env_find(spec, name));
    dc_env_plain(spec);
    if (dc_env_make_visual(spec)) return DC_OK;
    return dc_fail(DC_USAGE, "dcrl list envs shows those that have one", "%s has no visual form",
                   spec->name);
}

// Hours of drawing should not end at a full disk.
static dc_status check_room(const drawing *d) {
    char folder[DC_TEXT_MAX];
    const char *slash = strrchr(d->f->out, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - d->f->out) + 1 : 1,
             slash ? d->f->out : ".");
    double row = d->f->level ? dc_gen_packed_bytes(&d->spec) : DC_VISUAL_OBS;
    double need = 2 * (double)d->states.count * row; // what is packed, and the file made of it
    double room = (double)dc_folder_free(folder);
    if (need <= room) return DC_OK;
    return dc_fail(DC_IO, "free some space on that disk or choose another",
                   "about %.1f GB are needed but only %.1f GB are free (%s)", need / 1e9,
                   room / 1e9, folder);
}

// What cannot be copied in the end is told before the work begins.
static dc_status check_arrays(drawing *d) {
    for (size_t k = 0; k < d->npz.count; k++) {
        const dc_npz_entry *entry = &d->npz.entries[k];
        dc_npy npy;
        if (!strcmp(entry->name, "observations")) continue;
        DC_TRY(dc_npz_head(&d->npz, entry, &npy));
        if (!entry->name[0] || strlen(entry->name) > DC_NPZ_WRITE_NAME)
            return dc_fail(DC_BAD_INPUT, "give it a name of 1 to 200 bytes",
                           "an array has the name '%.40s' (%s)", entry->name, d->npz.path);
        bool rows = !strcmp(entry->name, "actions") || !strcmp(entry->name, "terminals");
        if (rows && (npy.ndim < 1 || npy.shape[0] != d->states.count))
            return dc_fail(DC_BAD_INPUT, "give a row for each of qpos",
                           "'%s' has not %" PRId64 " rows (%s)", entry->name, d->states.count,
                           d->npz.path);
    }
    if (d->npz.count < DC_NPZ_WRITE_ARRAYS) return DC_OK; // observations may be one more
    return dc_fail(DC_BAD_INPUT, "leave out what is not needed", "more than %d arrays (%s)",
                   DC_NPZ_WRITE_ARRAYS - 1, d->npz.path);
}

static dc_status copy_array(drawing *d, const dc_npz_entry *entry) {
    dc_npy npy;
    dc_arena values;
    void *rows;
    dc_arena_init(&values, 0);
    dc_status status = dc_npz_head(&d->npz, entry, &npy);
    if (status == DC_OK) status = dc_npz_values(&d->npz, entry, &npy, &values, &rows);
    if (status == DC_OK)
        status = dc_npz_writer_put(d->writer, entry->name, npy.type, npy.ndim, npy.shape, rows);
    dc_arena_fini(&values);
    return status;
}

static dc_status draw_all(drawing *d) {
    static const int64_t shape[] = {DC_VISUAL_SIDE, DC_VISUAL_SIDE, 3};
    cli_line line;
    cli_progress progress;
    int array;
    int64_t rows[FRAMES];
    uint8_t *rgb = dc_arena_take(&d->arena, (size_t)FRAMES * DC_VISUAL_OBS);
    if (!rgb) return DC_NO_MEMORY;
    cli_line_init(&line);
    cli_progress_on(&progress, &line, "drawing", "frames");
    dc_status status = dc_npz_writer_add(d->writer, "observations", DC_U1, 3, shape, &array);
    for (int64_t done = 0, n; status == DC_OK && done < d->states.count; done += n) {
        n = d->states.count - done < FRAMES ? d->states.count - done : FRAMES;
        cli_progress_show(&progress, done, d->states.count);
        for (int64_t k = 0; k < n; k++)
            rows[k] = done + k;
        if (atomic_load(&cli_stop)) status = dc_fail(DC_INTERRUPTED, NULL, "stopped");
        if (status == DC_OK) status = dc_view_draw(d->view, &d->states, rows, (int)n, rgb);
        if (status == DC_OK) status = dc_npz_writer_append(d->writer, array, rgb, n);
    }
    cli_line_clear(&line);
    return status;
}

static dc_status run(drawing *d, const char *in) {
    dc_view_options options = {.width = DC_VISUAL_SIDE, .height = DC_VISUAL_SIDE};
    DC_TRY(dc_npz_open(&d->npz, in));
    DC_TRY(dc_states_rows(&d->states, &d->spec, &d->npz));
    DC_TRY(check_arrays(d));
    DC_TRY(check_room(d));
    DC_TRY(dc_pool_new(&d->pool, (int)d->f->threads));
    options.pool = d->pool;
    DC_TRY(dc_view_new(&d->view, &d->spec, &options));
    DC_TRY(dc_npz_writer_new(&d->writer, d->f->out, (int)d->f->level));
    cli_catch_signals();
    DC_TRY(draw_all(d));
    for (size_t k = 0; k < d->npz.count; k++)
        if (strcmp(d->npz.entries[k].name, "observations") != 0)
            DC_TRY(copy_array(d, &d->npz.entries[k]));
    return dc_npz_writer_save(d->writer);
}

dc_status cli_data_draw(int argc, char **argv) {
    flags f;
    cli_args args = {.usage = usage, .flags = table, .config = &f, .takes = CLI_WORDS};
    DC_TRY(cli_args_parse(&args, argc, argv));
    if (args.help) return DC_OK;
    if (args.word_count != 2)
        return dc_fail(DC_USAGE, "dcrl data draw FILE.npz ENV -o OUT.npz",
                       "a file and an environment are needed");
    DC_TRY(cli_args_need(&args, "out"));
    DC_TRY(cli_check_name(f.out, ".npz", false));
    drawing d = {.f = &f};
    DC_TRY(find_spec(&d.spec, args.words[1]));
    dc_arena_init(&d.arena, 0);
    dc_status status = run(&d, args.words[0]);
    if (status == DC_OK)
        printf("wrote %s: %" PRId64 " pictures of %s\n", f.out, d.states.count, d.spec.name);
    dc_npz_writer_free(d.writer);
    dc_view_free(d.view);
    dc_pool_free(d.pool);
    dc_states_free(&d.states);
    dc_npz_close(&d.npz);
    dc_arena_fini(&d.arena);
    return status;
}
