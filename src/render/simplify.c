// Levels of detail: a mesh loses vertices one by one, each to a neighbour, those first whose loss moves the surface least.
// How far it moves is judged by the mean square distance to the planes of all triangles that were ever joined at a vertex
// (Garland and Heckbert, 1997: quadrics). Corners keep their normals. A level is what is left when the next loss would be too large.
#include "render/shape.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FORM = 10, NONE = -1 };

typedef struct loss { // of vertex `from`, to `to`
    double cost;
    int32_t from, to, from_age, to_age;
} loss;

typedef struct mesh {
    const dc_shape *shape;
    int32_t *corner;      // (triangles, 3); the first is NONE if the triangle is gone
    double (*form)[FORM]; // (vertices) sum of squared distances to planes, as x A x + 2 b x + c
    int32_t *first, *last, *next; // of a vertex's corners, as a list; next (triangles * 3)
    int32_t *age;                 // (vertices) how often it changed; NONE: gone
    loss *heap;
    int losses, most, left; // left: triangles
    bool failed;
} mesh;

static void find_point(const mesh *m, int v, double p[3]) {
    for (int a = 0; a < 3; a++)
        p[a] = (double)m->shape->at[a][v];
}

static bool plane_of(const double a[3], const double b[3], const double c[3], double n[4]) {
    double u[3], v[3], length = 0;
    for (int k = 0; k < 3; k++) {
        u[k] = b[k] - a[k];
        v[k] = c[k] - a[k];
    }
    for (int k = 0; k < 3; k++) {
        int i = (k + 1) % 3, j = (k + 2) % 3;
        n[k] = u[i] * v[j] - u[j] * v[i];
        length += n[k] * n[k];
    }
    length = sqrt(length);
    if (!(length > 1e-24)) return false;
    for (int k = 0; k < 3; k++)
        n[k] /= length;
    n[3] = -(n[0] * a[0] + n[1] * a[1] + n[2] * a[2]);
    return true;
}

static void add_plane(double form[FORM], const double n[4]) {
    for (int i = 0, k = 0; i < 4; i++)
        for (int j = i; j < 4; j++)
            form[k++] += n[i] * n[j];
}

static double cost_at(const double a[FORM], const double b[FORM], const double p[3]) {
    double x[4] = {p[0], p[1], p[2], 1}, sum = 0;
    for (int i = 0, k = 0; i < 4; i++)
        for (int j = i; j < 4; j++, k++)
            sum += (i == j ? 1 : 2) * (a[k] + b[k]) * x[i] * x[j];
    double planes = a[0] + a[4] + a[7] + b[0] + b[4] + b[7]; // squares of unit vectors
    return sum > 0 ? sum / planes : 0;
}

// ---- the cheapest loss first ----

static bool before(const loss *a, const loss *b) {
    if (a->cost != b->cost) return a->cost < b->cost;
    return a->from != b->from ? a->from < b->from : a->to < b->to;
}

static void push(mesh *m, int from, int to) {
    if (m->losses == m->most) {
        int most = 2 * m->most + 1024;
        loss *heap = most < DC_SHAPE_MOST ? realloc(m->heap, (size_t)most * sizeof *heap) : NULL;
        if (!heap) {
            m->failed = true;
            return;
        }
        m->heap = heap;
        m->most = most;
    }
    double p[3];
    find_point(m, to, p);
    loss new = {cost_at(m->form[from], m->form[to], p), from, to, m->age[from], m->age[to]};
    int k = m->losses++;
    for (; k > 0 && before(&new, &m->heap[(k - 1) / 2]); k = (k - 1) / 2)
        m->heap[k] = m->heap[(k - 1) / 2];
    m->heap[k] = new;
}

static loss pop(mesh *m) {
    loss top = m->heap[0], last = m->heap[--m->losses];
    int k = 0;
    for (int child; (child = 2 * k + 1) < m->losses; k = child) {
        if (child + 1 < m->losses && before(&m->heap[child + 1], &m->heap[child])) child++;
        if (!before(&m->heap[child], &last)) break;
        m->heap[k] = m->heap[child];
    }
    m->heap[k] = last;
    return top;
}

// ---- losing a vertex ----

// Whether a triangle that stays would turn over.
static bool turns(const mesh *m, int from, int to) {
    for (int c = m->first[from]; c != NONE; c = m->next[c]) {
        const int32_t *corner = m->corner + c / 3 * 3;
        double p[3][3], old[4], new[4];
        if (corner[0] == NONE || corner[0] == to || corner[1] == to || corner[2] == to) continue;
        for (int k = 0; k < 3; k++)
            find_point(m, corner[k], p[k]);
        if (!plane_of(p[0], p[1], p[2], old)) continue;
        find_point(m, to, p[c % 3]);
        if (!plane_of(p[0], p[1], p[2], new)) return true;
        if (old[0] * new[0] + old[1] * new[1] + old[2] * new[2] < 0.3) return true;
    }
    return false;
}

static void merge(mesh *m, int from, int to) {
    for (int c = m->first[from]; c != NONE; c = m->next[c]) {
        int32_t *corner = m->corner + c / 3 * 3;
        if (corner[0] == NONE) continue;
        if (corner[0] == to || corner[1] == to || corner[2] == to) {
            corner[0] = NONE;
            m->left--;
        } else {
            corner[c % 3] = to;
        }
    }
    if (m->first[to] == NONE)
        m->first[to] = m->first[from];
    else
        m->next[m->last[to]] = m->first[from];
    if (m->first[from] != NONE) m->last[to] = m->last[from];
    for (int k = 0; k < FORM; k++)
        m->form[to][k] += m->form[from][k];
    m->age[from] = NONE;
    m->age[to]++;
    for (int c = m->first[to]; c != NONE && !m->failed; c = m->next[c]) {
        const int32_t *corner = m->corner + c / 3 * 3;
        for (int k = 0; k < 3 && corner[0] != NONE; k++)
            if (corner[k] != to) {
                push(m, to, corner[k]);
                push(m, corner[k], to);
            }
    }
}

static void lose_until(mesh *m, double error) {
    while (m->losses && !m->failed && m->heap[0].cost <= error * error) {
        loss l = pop(m);
        if (m->age[l.from] != l.from_age || m->age[l.to] != l.to_age) continue;
        if (!turns(m, l.from, l.to)) merge(m, l.from, l.to);
    }
}

// ---- before and after ----

typedef struct edge {
    int32_t a, b, triangle;
} edge;

static int compare_edges(const void *x, const void *y) {
    const edge *p = x, *q = y;
    if (p->a != q->a) return p->a < q->a ? -1 : 1;
    if (p->b != q->b) return p->b < q->b ? -1 : 1;
    return (p->triangle > q->triangle) - (p->triangle < q->triangle);
}

// A plane through an edge of one triangle alone, upright on it, so that the outline stays.
static void hold_edge(mesh *m, const edge *e) {
    const int32_t *corner = m->shape->corner + 3 * e->triangle;
    double p[3][3], flat[4], away[3], wall[4];
    for (int k = 0; k < 3; k++)
        find_point(m, corner[k], p[k]);
    if (!plane_of(p[0], p[1], p[2], flat)) return;
    find_point(m, e->a, p[0]);
    find_point(m, e->b, p[1]);
    for (int k = 0; k < 3; k++)
        away[k] = p[0][k] + flat[k];
    if (!plane_of(p[0], p[1], away, wall)) return;
    add_plane(m->form[e->a], wall);
    add_plane(m->form[e->b], wall);
}

static bool hold_edges(mesh *m) {
    int n = 3 * m->shape->triangles;
    edge *list = malloc(((size_t)n + 1) * sizeof *list);
    if (!list) return false;
    for (int k = 0; k < n; k++) {
        int a = m->corner[k], b = m->corner[k / 3 * 3 + (k + 1) % 3];
        list[k] = (edge){a < b ? a : b, a < b ? b : a, k / 3};
    }
    qsort(list, (size_t)n, sizeof *list, compare_edges);
    for (int k = 0, same; k < n; k += same) {
        for (same = 1;
             k + same < n && list[k].a == list[k + same].a && list[k].b == list[k + same].b;)
            same++;
        if (same == 1 && list[k].a != list[k].b) hold_edge(m, &list[k]);
    }
    for (int k = 0; k < n && !m->failed; k++)
        if (list[k].a != list[k].b &&
            (!k || list[k].a != list[k - 1].a || list[k].b != list[k - 1].b)) {
            push(m, list[k].a, list[k].b);
            push(m, list[k].b, list[k].a);
        }
    free(list);
    return !m->failed;
}

static void set_forms(mesh *m) {
    const dc_shape *s = m->shape;
    for (int v = 0; v < s->vertices; v++)
        m->first[v] = m->last[v] = NONE;
    for (int t = 0; t < s->triangles; t++) {
        double p[3][3], n[4];
        for (int k = 0; k < 3; k++)
            find_point(m, m->corner[3 * t + k], p[k]);
        bool flat = plane_of(p[0], p[1], p[2], n);
        for (int k = 0; k < 3; k++) {
            int v = m->corner[3 * t + k];
            if (flat) add_plane(m->form[v], n);
            m->next[3 * t + k] = NONE;
            if (m->last[v] == NONE)
                m->first[v] = 3 * t + k;
            else
                m->next[m->last[v]] = 3 * t + k;
            m->last[v] = 3 * t + k;
        }
    }
}

static bool open_mesh(mesh *m, const dc_shape *s) {
    size_t v = (size_t)s->vertices + 1, c = 3 * (size_t)s->triangles + 1;
    *m = (mesh){.shape = s, .left = s->triangles};
    m->corner = malloc(c * sizeof *m->corner);
    m->next = malloc(c * sizeof *m->next);
    m->form = calloc(v, sizeof *m->form);
    m->first = malloc(v * sizeof *m->first);
    m->last = malloc(v * sizeof *m->last);
    m->age = calloc(v, sizeof *m->age);
    if (!m->corner || !m->next || !m->form || !m->first || !m->last || !m->age) return false;
    memcpy(m->corner, s->corner, 3 * (size_t)s->triangles * sizeof *m->corner);
    set_forms(m);
    return hold_edges(m);
}

static void close_mesh(mesh *m) {
    void *all[] = {m->corner, m->next, m->form, m->first, m->last, m->age, m->heap};
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
        free(all[k]);
}

// What is left, as a shape; `number` (vertices) is scratch.
static bool take_level(mesh *m, dc_shape *to, int32_t *number) {
    const dc_shape *s = m->shape;
    *to = (dc_shape){0};
    if (!dc_shape_reserve(to, s->vertices, m->left)) return false;
    for (int v = 0; v < s->vertices; v++)
        number[v] = NONE;
    for (int t = 0; t < s->triangles; t++) {
        const int32_t *corner = m->corner + 3 * t;
        if (corner[0] == NONE) continue;
        memcpy(to->normal + 9 * to->triangles, s->normal + 9 * t, 9 * sizeof(float));
        for (int k = 0; k < 3; k++) {
            int v = corner[k];
            if (number[v] == NONE) {
                for (int a = 0; a < 3; a++)
                    to->at[a][to->vertices] = s->at[a][v];
                number[v] = to->vertices++;
            }
            to->corner[3 * to->triangles + k] = number[v];
        }
        to->triangles++;
    }
    return true;
}

dc_status dc_shapes_simplify(dc_shapes *s) {
    mesh m;
    int32_t *number = malloc(((size_t)s->level[0].vertices + 1) * sizeof *number);
    bool done = open_mesh(&m, &s->level[0]) && number;
    double error = (double)s->radius / 1600;
    for (; done && s->levels < DC_SHAPE_LEVELS && m.left > 16; error *= 3) {
        lose_until(&m, error);
        dc_shape *to = &s->level[s->levels];
        done = !m.failed && take_level(&m, to, number);
        to->error = (float)error;
        s->levels++;
    }
    close_mesh(&m);
    free(number);
    if (done) return DC_OK;
    dc_shapes_fini(s);
    return dc_fail(DC_NO_MEMORY, NULL, "no memory for a mesh");
}
