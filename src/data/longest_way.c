// The longest ways of a data set, see longest_way.h.
#include "data/longest_way.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    LANDMARKS = 256,
    ROWS_MAX = 1 << 18,
    TRAJECTORIES_LEAST = 64,
    SPREAD_ROWS = 1 << 14,
    AHEAD = 3,
    FAR = 1 << 29,
    APART = 8,
    SPACINGS = 4
};
static const double OF_PAIRS = 0.99, REST = 0.05; // REST: of the distance between landmarks

// A stay of a trajectory near one landmark: its rows that are as near as it comes.
typedef struct visit {
    int landmark, trajectory;
    int64_t arrival, departure; // first and last of these rows
} visit;

typedef struct edge {
    int pair; // from * LANDMARKS + to
    int steps;
} edge;

typedef struct ways {
    int width;
    int64_t rows, trajectories, visits, edges;
    float *points;   // (rows, width) of the trajectories that are looked at
    int64_t *starts; // (trajectories + 1)
    int landmarks;   // LANDMARKS, or less where rows are alike
    float *landmark; // (landmarks, width)
    float spacing;   // in steps; of the rows that were looked at none is further from its landmark
    visit *visit;    // (visits)
    edge *edge;      // (edges)
    int (*steps)[LANDMARKS]; // between landmarks, FAR where there is no way
} ways;

static float squared_distance(const float *a, const float *b, int width) {
    float sum = 0;
    for (int c = 0; c < width; c++)
        sum += (a[c] - b[c]) * (a[c] - b[c]);
    return sum;
}

// Copy every so many-th trajectory, or the beginnings of all where they are few and long.
static void take_points(ways *w, const dc_dataset *data, const dc_column *column, const int *index,
                        int count, int64_t room) {
    int64_t mean = data->rows / data->traj_count + 1, fit = room / mean;
    if (fit < TRAJECTORIES_LEAST) fit = TRAJECTORIES_LEAST;
    int64_t apart = (data->traj_count + fit - 1) / fit;
    int64_t most = room / ((data->traj_count + apart - 1) / apart);
    for (int64_t t = 0; t < data->traj_count; t += apart) {
        int64_t first = data->traj_start[t], end = data->traj_start[t + 1];
        if (end - first > most) end = first + most;
        for (int64_t r = first; r < end; r++, w->rows++)
            for (int c = 0; c < w->width; c++)
                w->points[w->rows * w->width + c] =
                    column->values[r * column->width + (count ? index[c] : c)];
        w->starts[++w->trajectories] = w->rows;
    }
}

// A column is measured in steps, by its mean change in one: what swings (a velocity) spans few of them, what gets
// somewhere (a coordinate) many.
static void measure_in_steps(ways *w) {
    for (int c = 0; c < w->width; c++) {
        double sum = 0;
        for (int64_t t = 0; t < w->trajectories; t++)
            for (int64_t r = w->starts[t] + 1; r < w->starts[t + 1]; r++)
                sum += fabs((double)w->points[r * w->width + c] -
                            (double)w->points[(r - 1) * w->width + c]);
        double change = sum / (double)w->rows;
        for (int64_t r = 0; r < w->rows; r++)
            w->points[r * w->width + c] *= change > 0 ? (float)(1 / change) : 0;
    }
}

// Landmarks are spread by taking, again and again, the row that is furthest from all of them. Closer than APART steps,
// what a way loses or gains as whole steps are counted would add up.
static void spread_landmarks(ways *w, float *nearest) {
    int64_t apart = w->rows / SPREAD_ROWS + 1, looked = (w->rows + apart - 1) / apart, furthest = 0;
    for (int64_t i = 0; i < looked; i++)
        nearest[i] = INFINITY;
    while (w->landmarks < LANDMARKS) {
        float *mark = w->landmark + (int64_t)w->landmarks++ * w->width;
        memcpy(mark, w->points + furthest * apart * w->width, (size_t)w->width * sizeof *mark);
        furthest = 0;
        for (int64_t i = 0; i < looked; i++) {
            float d = squared_distance(w->points + i * apart * w->width, mark, w->width);
            if (d < nearest[i]) nearest[i] = d;
            if (nearest[i] > nearest[furthest]) furthest = i;
        }
        w->spacing = sqrtf(nearest[furthest]);
        if (!(w->spacing >= APART)) break;
    }
}

static int nearest_landmark(const ways *w, const float *point, float *distance) {
    int nearest = 0;
    float least = INFINITY;
    for (int k = 0; k < w->landmarks; k++) {
        float d = squared_distance(point, w->landmark + (int64_t)k * w->width, w->width);
        if (d < least) {
            least = d;
            nearest = k;
        }
    }
    *distance = sqrtf(least);
    return nearest;
}

// The rows first ... end - 1 of a trajectory, `distance` from the landmark, are one visit.
static void add_visit(ways *w, int landmark, int64_t trajectory, int64_t first, int64_t end,
                      const float *distance) {
    float least = INFINITY;
    for (int64_t r = first; r < end; r++)
        least = fminf(least, distance[r]);
    least += (float)REST * w->spacing;
    visit v = {.landmark = landmark, .trajectory = (int)trajectory, .arrival = -1};
    for (int64_t r = first; r < end; r++) {
        if (distance[r] > least) continue;
        if (v.arrival < 0) v.arrival = r;
        v.departure = r;
    }
    w->visit[w->visits++] = v;
}

static void find_visits(ways *w, float *distance) {
    for (int64_t t = 0; t < w->trajectories; t++) {
        int64_t first = w->starts[t];
        int at = -1;
        for (int64_t r = first; r < w->starts[t + 1]; r++) {
            int near = nearest_landmark(w, w->points + r * w->width, &distance[r]);
            if (near != at && r > w->starts[t]) {
                add_visit(w, at, t, first, r, distance);
                first = r;
            }
            at = near;
        }
        if (at >= 0) add_visit(w, at, t, first, w->starts[t + 1], distance);
    }
}

static void find_edges(ways *w) {
    for (int64_t i = 0; i < w->visits; i++)
        for (int64_t j = i + 1; j <= i + AHEAD && j < w->visits; j++) {
            const visit *a = &w->visit[i], *b = &w->visit[j];
            if (a->trajectory != b->trajectory || a->landmark == b->landmark) continue;
            w->edge[w->edges++] = (edge){.pair = a->landmark * LANDMARKS + b->landmark,
                                         .steps = (int)(b->arrival - a->departure)};
        }
}

static int compare_edges(const void *a, const void *b) {
    const edge *x = a, *y = b;
    if (x->pair != y->pair) return x->pair < y->pair ? -1 : 1;
    return (x->steps > y->steps) - (x->steps < y->steps);
}

static int compare_ints(const void *a, const void *b) {
    const int *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

// Medians of edges, then the shortest paths along them (Floyd and Warshall).
static void find_paths(ways *w) {
    for (int a = 0; a < LANDMARKS; a++)
        for (int b = 0; b < LANDMARKS; b++)
            w->steps[a][b] = FAR;
    qsort(w->edge, (size_t)w->edges, sizeof *w->edge, compare_edges);
    for (int64_t first = 0, end; first < w->edges; first = end) {
        int pair = w->edge[first].pair;
        for (end = first; end < w->edges && w->edge[end].pair == pair;)
            end++;
        w->steps[pair / LANDMARKS][pair % LANDMARKS] = w->edge[first + (end - first) / 2].steps;
    }
    for (int k = 0; k < w->landmarks; k++)
        for (int a = 0; a < w->landmarks; a++)
            for (int b = 0; b < w->landmarks; b++)
                if (w->steps[a][k] + w->steps[k][b] < w->steps[a][b])
                    w->steps[a][b] = w->steps[a][k] + w->steps[k][b];
}

static int64_t long_path(ways *w) {
    int *all = w->steps[0];
    int64_t count = 0;
    for (int a = 0; a < w->landmarks; a++)
        for (int b = 0; b < w->landmarks; b++)
            if (a != b && w->steps[a][b] < FAR) all[count++] = w->steps[a][b];
    qsort(all, (size_t)count, sizeof *all, compare_ints);
    if (2 * count < (int64_t)w->landmarks * (w->landmarks - 1) || !count) return 0;
    int longest = all[(int64_t)(OF_PAIRS * (double)(count - 1))];
    return (float)longest >= (float)SPACINGS * w->spacing ? longest : 0;
}

dc_status dc_longest_way(const dc_dataset *data, const dc_column *column, const int *index,
                         int count, int64_t *steps) {
    ways w = {.width = count ? count : column->width};
    int64_t room = data->rows < ROWS_MAX ? data->rows : ROWS_MAX;
    size_t width = (size_t)w.width, rows = (size_t)room;
    float *distance = calloc(rows, sizeof *distance);
    w.points = malloc(rows * width * sizeof *w.points);
    w.starts = calloc((size_t)data->traj_count + 1, sizeof *w.starts);
    w.landmark = malloc(LANDMARKS * width * sizeof *w.landmark);
    w.visit = malloc(rows * sizeof *w.visit);
    w.edge = malloc(rows * AHEAD * sizeof *w.edge);
    w.steps = malloc(LANDMARKS * sizeof *w.steps);
    bool there = distance && w.points && w.starts && w.landmark && w.visit && w.edge && w.steps;
    if (there) {
        take_points(&w, data, column, index, count, room);
        measure_in_steps(&w);
        spread_landmarks(&w, distance);
        find_visits(&w, distance);
        find_edges(&w);
        find_paths(&w);
        *steps = long_path(&w);
    }
    free(distance);
    free(w.points);
    free(w.starts);
    free(w.landmark);
    free(w.visit);
    free(w.edge);
    free(w.steps);
    return there ? DC_OK : dc_fail(DC_NO_MEMORY, NULL, "no memory to measure ways in the data");
}
