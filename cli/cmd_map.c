// dcrl map: what a run believes about distances in its maze, and where its policy goes. Pictures lie
// in the run folder as map-taskT.svg, where dcrl report finds them.
#include "args.h"
#include "cli.h"
#include "runs.h"

#include "base/file.h"
#include "report/maze_plot.h"
#include "rollout/watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: dcrl map RUN [--task T,...] [--step N] [--episodes N] [--seed S] [-o FILE.svg]\n"
    "\n"
    "Draws, for the goal of each task, how many steps the critic predicts from every position in "
    "the "
    "maze when\n"
    "the policy acts, and the paths of some episodes. One picture per task goes to "
    "RUN/map-taskT.svg, "
    "where\n"
    "dcrl report shows it; with -o all tasks go into one file.\n"
    "\n"
    "example: dcrl map runs/pointmaze\n"
    "         dcrl map runs/pointmaze --task 1,5 -o map.svg\n";

enum { FINE = 8, EPISODES_MAX = 100 };

typedef struct flags {
    dc_int_list task;
    int64_t step, episodes, seed, threads;
    char out[DC_TEXT_MAX];
} flags;

static const dc_option table[] = {
    DC_OPTION_LIST(flags, task, "1,2,3,4,5", 1, DC_TASKS, "tasks to draw"),
    DC_OPTION_INT(flags, step, "-1", -1, 1e12, "checkpoint to take; -1: the newest"),
    DC_OPTION_INT(flags, episodes, "5", 1, EPISODES_MAX, "episodes of each task"),
    DC_OPTION_INT(flags, seed, "0", 0, 9e15, "seed of starts, goals and noise"),
    DC_OPTION_INT(flags, threads, "0", 0, 1024, "threads; 0: all cores"),
    DC_OPTION_TEXT(flags, out, "",
                   "one file with all tasks; empty: one file per task, in the run folder"),
    {0},
};

typedef struct atlas { // everything that is drawn
    dc_pool *pool;
    dc_world *world;
    dc_actor actor;
    dc_paths paths;
    dc_value_map maps[DC_LIST_MAX]; // by panel
    dc_maze_panel panels[DC_LIST_MAX];
    int count;
} atlas;

static dc_status open_all(atlas *a, const cli_pick *pick, const flags *f) {
    int rows = (int)f->episodes * DC_TASKS;
    DC_TRY(dc_pool_new(&a->pool, (int)f->threads));
    dc_actor_options options = {
        .rows = rows < DC_MAP_ROWS ? DC_MAP_ROWS : rows, .seed = (uint64_t)f->seed, .value = true};
    DC_TRY(dc_actor_open(&a->actor, pick->path, &options, a->pool));
    DC_TRY(dc_world_new(&a->world, &pick->spec));
    return dc_paths_new(&a->paths, &pick->spec, (int)f->episodes);
}

static dc_status compute(atlas *a, const flags *f) {
    dc_eval_score score;
    for (; a->count < f->task.count; a->count++) {
        int task = (int)f->task.v[a->count] - 1;
        DC_TRY(dc_value_map_make(&a->maps[a->count], a->world, &a->actor, task, FINE));
        a->panels[a->count] =
            (dc_maze_panel){.task = task + 1,
                            .map = &a->maps[a->count],
                            .paths = a->paths.path + (ptrdiff_t)task * a->paths.episodes,
                            .path_count = a->paths.episodes};
    }
    cli_line line;
    cli_line_init(&line);
    cli_progress progress;
    dc_eval_progress steps = cli_progress_on(&progress, &line, "playing", "steps");
    dc_status status = dc_evaluate_paths(a->world, &a->actor, (uint64_t)f->seed, a->pool, &cli_stop,
                                         &steps, &score, &a->paths);
    cli_line_clear(&line);
    return status;
}

static void close_all(atlas *a) {
    for (int i = 0; i < a->count; i++)
        dc_value_map_free(&a->maps[i]);
    dc_paths_free(&a->paths);
    dc_world_free(a->world);
    dc_actor_fini(&a->actor);
    dc_pool_free(a->pool);
}

static dc_status write_one(const char *path, const flags *f, const cli_pick *pick,
                           const dc_maze_panel *panels, int count, double most) {
    char title[DC_TEXT_MAX + 64];
    snprintf(title, sizeof title, "Predicted steps and routes on %s, step %" PRId64, pick->env,
             pick->step);
    dc_text svg;
    dc_text_init(&svg);
    dc_status status = dc_maze_svg(&svg, title, panels, count, most);
    bool given = path == f->out; // else it lies in the run folder
    if (status == DC_OK)
        status = given ? dc_file_write(path, svg.bytes, svg.used)
                       : dc_file_write_inside(path, svg.bytes, svg.used);
    if (status == DC_OK) printf("wrote %s\n", path);
    dc_text_fini(&svg);
    return status;
}

static dc_status write_all(const atlas *a, const cli_pick *pick, const flags *f) {
    double most = dc_maze_longest(a->panels, a->count); // one scale, so that tasks compare
    if (*f->out) return write_one(f->out, f, pick, a->panels, a->count, most);
    dc_folder_sweep(pick->folder);
    for (int i = 0; i < a->count; i++) {
        char name[32], path[DC_PATH_MAX];
        snprintf(name, sizeof name, "map-task%d.svg", a->panels[i].task);
        DC_TRY(dc_folder_path(path, pick->folder, name));
        DC_TRY(write_one(path, f, pick, &a->panels[i], 1, most));
    }
    return DC_OK;
}

dc_status cmd_map(int argc, char **argv) {
    flags f;
    cli_args args = {.usage = usage, .flags = table, .config = &f, .takes = CLI_WORDS};
    DC_TRY(cli_args_parse(&args, argc, argv));
    if (args.help) return DC_OK;
    if (args.word_count != 1) return dc_fail(DC_USAGE, "dcrl map RUN", "one run folder is needed");
    const char *dot = strrchr(f.out, '.');
    if (*f.out && strncmp(f.out, "/dev/", 5) != 0 && (!dot || strcmp(dot, ".svg") != 0))
        return dc_fail(
            DC_USAGE,
            "write -o map.svg; a browser, Inkscape or rsvg-convert turns it into PNG or PDF",
            "a map is an SVG (%s)", f.out);
    cli_pick pick;
    DC_TRY(cli_run_pick(&pick, args.words[0], f.step));
    if (!pick.spec.maze)
        return dc_fail(DC_UNSUPPORTED, "dcrl eval plays its tasks", "%s is no maze to draw",
                       pick.spec.name);
    if (pick.spec.visual)
        return dc_fail(DC_UNSUPPORTED, "dcrl render shows its episodes",
                       "there are no maps of %s: what is seen from a place is a picture",
                       pick.spec.name);
    cli_catch_signals();
    atlas a = {0};
    dc_status status = open_all(&a, &pick, &f);
    if (status == DC_OK) status = compute(&a, &f);
    if (status == DC_OK) status = write_all(&a, &pick, &f);
    close_all(&a);
    return status;
}
