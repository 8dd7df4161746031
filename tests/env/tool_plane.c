// Plays recorded actions on a robot's plane with recorded draws, for test_plane_parity.py.
//
//     tool_plane ROBOT IN.npz OUT.npz     actions (T, A), draws (D) -> what a policy sees, rewards, ends
//
// A new episode begins where one is over, as the test does it.
#include "data/npz.h"
#include "env/plane.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct play {
    const dc_plane *plane;
    int64_t steps, draw_count;
    double *actions, *draws;
    double *seen, *reward,
        *linear; // (T + 1 + episodes ...): a row before each step and after it, (2T, input)
    unsigned char *ended, *cut;
} play;

static dc_status read_array(const dc_npz *npz, const char *name, int64_t *rows, double **out) {
    dc_npy npy;
    const dc_npz_entry *entry = dc_npz_find(npz, name);
    if (!entry) return dc_fail(DC_BAD_INPUT, NULL, "no %s", name);
    DC_TRY(dc_npz_head(npz, entry, &npy));
    *rows = npy.shape[0];
    *out = malloc((size_t)npy.count * sizeof **out);
    return *out ? dc_npz_doubles(npz, entry, &npy, *out) : DC_NO_MEMORY;
}

static void look(const dc_walk *w, double *row) {
    dc_walk_see(w, row, row + w->plane->state);
}

static dc_status run(play *p, dc_walk *w) {
    int input = dc_plane_input(p->plane), act = p->plane->family->act;
    DC_TRY(dc_walk_start(w));
    for (int64_t t = 0; t < p->steps; t++) {
        dc_walk_step step;
        double command[DC_COMMAND];
        memcpy(command, w->command, sizeof command);
        look(w, p->seen + 2 * t * input);
        DC_TRY(dc_walk_step_by(w, p->actions + t * act, &step));
        look(w, p->seen + (2 * t + 1) * input);
        p->reward[t] = step.reward;
        p->linear[t] = step.base + step.pull[0] * command[0] + step.pull[1] * command[1];
        p->ended[t] = step.ended;
        p->cut[t] = step.cut;
        if (step.ended || step.cut) DC_TRY(dc_walk_start(w));
    }
    return DC_OK;
}

static dc_status simulate(play *p) {
    dc_list_draws list;
    dc_world *world;
    dc_walk walk;
    DC_TRY(dc_plane_world(p->plane, &world));
    DC_TRY(dc_walk_init(&walk, p->plane, world, dc_draws_list(&list, p->draws, p->draw_count)));
    DC_TRY(run(p, &walk));
    dc_walk_fini(&walk);
    dc_world_free(world);
    if (list.used == p->draw_count) return DC_OK;
    return dc_fail(DC_BAD_INPUT, NULL, "%lld draws of %lld", (long long)list.used,
                   (long long)p->draw_count);
}

static dc_status put(const play *p, const char *path) {
    dc_npz_writer *w;
    int64_t t = p->steps;
    DC_TRY(dc_npz_writer_new(&w, path, 1));
    DC_TRY(dc_npz_writer_put(w, "seen", DC_F8, 3, (int64_t[]){t, 2, dc_plane_input(p->plane)},
                             p->seen));
    DC_TRY(dc_npz_writer_put(w, "reward", DC_F8, 1, &t, p->reward));
    DC_TRY(dc_npz_writer_put(w, "linear", DC_F8, 1, &t, p->linear));
    DC_TRY(dc_npz_writer_put(w, "ended", DC_B1, 1, &t, p->ended));
    DC_TRY(dc_npz_writer_put(w, "cut", DC_B1, 1, &t, p->cut));
    dc_status status = dc_npz_writer_save(w);
    dc_npz_writer_free(w);
    return status;
}

static dc_status play_file(play *p, char **argv) {
    dc_npz npz;
    DC_TRY(dc_plane_find(&p->plane, argv[1]));
    DC_TRY(dc_npz_open(&npz, argv[2]));
    DC_TRY(read_array(&npz, "actions", &p->steps, &p->actions));
    DC_TRY(read_array(&npz, "draws", &p->draw_count, &p->draws));
    dc_npz_close(&npz);
    size_t t = (size_t)p->steps;
    p->seen = calloc(2 * t * (size_t)dc_plane_input(p->plane), sizeof *p->seen);
    p->reward = calloc(2 * t, sizeof *p->reward);
    p->ended = calloc(2 * t, 1);
    if (!p->seen || !p->reward || !p->ended) return DC_NO_MEMORY;
    p->linear = p->reward + t;
    p->cut = p->ended + t;
    DC_TRY(simulate(p));
    return put(p, argv[3]);
}

int main(int argc, char **argv) {
    play p = {0};
    dc_status status = argc == 4 ? play_file(&p, argv) : DC_USAGE;
    free(p.actions);
    free(p.draws);
    free(p.seen);
    free(p.reward);
    free(p.ended);
    if (status != DC_OK) fprintf(stderr, "%s\n", dc_error());
    return status == DC_OK ? 0 : 1;
}
