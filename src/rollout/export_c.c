// A policy as one C99 file, see export.h. Every node of the graph becomes a call of a small function over the same
// plan of memory that the actor uses; only functions that are called are written. Noise is drawn as the actor draws
// it, by the very headers that it is compiled from, so that a policy of candidates acts as in this program.
#include "rollout/export.h"

#include "algo/batch.h"
#include "base/file.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Texts of base/philox.h and sample/noise.h, put into the library by CMake.
extern const char dc_philox_text[], dc_noise_text[];

// Ops as C. x, y and o are inputs and output; s(x) is the distance from one member of an ensemble to the next.
typedef struct form {
    dc_op op;
    const char *code;
} form;

#define UNARY(name, value)                                                                         \
    "static void " name "(int e, int n, const float *x, int sx, float *o, int so, float a, "       \
    "float b) {\n    (void)a, (void)b;\n"                                                          \
    "    for (int k = 0; k < e; k++, x += sx, o += so)\n"                                          \
    "        for (int i = 0; i < n; i++) o[i] = " value ";\n}\n"
#define BINARY(name, value)                                                                        \
    "static void " name                                                                            \
    "(int e, int n, const float *x, int sx, const float *y, int sy, float *o, "                    \
    "int so) {\n"                                                                                  \
    "    for (int k = 0; k < e; k++, x += sx, y += sy, o += so)\n"                                 \
    "        for (int i = 0; i < n; i++) o[i] = " value ";\n}\n"

static const char gelu_code[] = "static float gelu1(float x) {\n"
                                "    float u = 0.7978845608f * (x + 0.044715f * x * x * x);\n"
                                "    return x / (1 + expf(-2 * u));\n}\n";

static const form forms[] = {
    {DC_OP_linear,
     "static void linear(int e, int n, int in, int out, const float *x, int sx, const float *w,\n"
     "                   const float *b, float *o, int so) {\n"
     "    for (int k = 0; k < e; k++, x += sx, w += in * out, b += out, o += so)\n"
     "        for (int r = 0; r < n; r++) {\n"
     "            float *row = o + r * out;\n"
     "            for (int c = 0; c < out; c++) row[c] = b[c];\n"
     "            for (int i = 0; i < in; i++)\n"
     "                for (int c = 0; c < out; c++) row[c] += x[r * in + i] * w[i * out + c];\n"
     "        }\n}\n"},
    {DC_OP_gelu_layernorm,
     "static void gelu_layernorm(int e, int n, int c, const float *x, int sx, const float *scale,\n"
     "                           const float *bias, float *o, int so) {\n"
     "    for (int k = 0; k < e; k++, x += sx, scale += c, bias += c, o += so)\n"
     "        for (int r = 0; r < n; r++) {\n"
     "            float *row = o + r * c, mean = 0, var = 0;\n"
     "            for (int i = 0; i < c; i++) mean += row[i] = gelu1(x[r * c + i]);\n"
     "            mean /= (float)c;\n"
     "            for (int i = 0; i < c; i++) var += (row[i] - mean) * (row[i] - mean);\n"
     "            float rate = 1 / sqrtf(var / (float)c + 1e-6f);\n"
     "            for (int i = 0; i < c; i++) row[i] = (row[i] - mean) * rate * scale[i] + "
     "bias[i];\n"
     "        }\n}\n"},
    {DC_OP_add, BINARY("add", "x[i] + y[i]")},
    {DC_OP_mul, BINARY("mul", "x[i] * y[i]")},
    {DC_OP_affine, UNARY("affine", "a * x[i] + b")},
    {DC_OP_clip, UNARY("clip", "x[i] < a ? a : x[i] > b ? b : x[i]")},
    {DC_OP_exp, UNARY("exponential", "expf(x[i])")},
    {DC_OP_tanh, UNARY("tanh1", "tanhf(x[i])")},
    {DC_OP_abs, UNARY("abs1", "fabsf(x[i])")},
    {DC_OP_sigmoid, UNARY("sigmoid", "1 / (1 + expf(-x[i]))")},
    {DC_OP_gelu, UNARY("gelu", "gelu1(x[i])")},
    {DC_OP_relu, UNARY("relu", "x[i] > 0 ? x[i] : 0")},
    {DC_OP_ensemble_min,
     "static void ensemble_min(int e, int n, const float *x, int sx, float *o) {\n"
     "    for (int i = 0; i < n; i++) {\n"
     "        o[i] = x[i];\n"
     "        for (int k = 1; k < e; k++) if (x[k * sx + i] < o[i]) o[i] = x[k * sx + i];\n"
     "    }\n}\n"},
    {DC_OP_ensemble_mean,
     "static void ensemble_mean(int e, int n, const float *x, int sx, float *o) {\n"
     "    for (int i = 0; i < n; i++) {\n"
     "        float sum = 0;\n"
     "        for (int k = 0; k < e; k++) sum += x[k * sx + i];\n"
     "        o[i] = sum / (float)e;\n"
     "    }\n}\n"},
    {DC_OP_normalise,
     "static void normalise(int e, int n, int c, const float *x, int sx, float *o, int so) {\n"
     "    for (int k = 0; k < e; k++, x += sx, o += so)\n"
     "        for (int r = 0; r < n; r++) {\n"
     "            double size = 0;\n"
     "            for (int i = 0; i < c; i++) size += (double)x[r * c + i] * x[r * c + i];\n"
     "            size = sqrt(size);\n"
     "            float rate = (float)(sqrt((double)c) / (size < 1e-6 ? 1e-6 : size));\n"
     "            for (int i = 0; i < c; i++) o[r * c + i] = x[r * c + i] * rate;\n"
     "        }\n}\n"},
    {DC_OP_columns,
     "static void columns(int e, int n, int c, int first, int count, const float *x, int sx,\n"
     "                    float *o, int so) {\n"
     "    for (int k = 0; k < e; k++)\n"
     "        for (int r = 0; r < n; r++)\n"
     "            memmove(o + k * so + r * count, x + k * sx + r * c + first, (size_t)count * "
     "sizeof *o);\n}\n"},
    {DC_OP_splice,
     "static void splice(int n, int c, int d, int at, const float *x, const float *y, float *o) {\n"
     "    for (int r = 0; r < n; r++) {\n"
     "        memmove(o + r * c, x + r * c, (size_t)c * sizeof *o);\n"
     "        memmove(o + r * c + at, y + r * d, (size_t)d * sizeof *o);\n"
     "    }\n}\n"},
    {DC_OP_join,
     "static void join(int n, int c, int d, const float *x, const float *y, float *o) {\n"
     "    for (int r = 0; r < n; r++, x += c, y += d, o += c + d) {\n"
     "        memcpy(o, x, (size_t)c * sizeof *o);\n"
     "        memcpy(o + c, y, (size_t)d * sizeof *o);\n"
     "    }\n}\n"},
    {DC_OP_interleave,
     "static void interleave(int n, int pictures, int places, int c, const float *x, float *o) {\n"
     "    for (int r = 0; r < n; r++, x += pictures * places * c)\n"
     "        for (int p = 0; p < places; p++)\n"
     "            for (int k = 0; k < pictures; k++, o += c)\n"
     "                memcpy(o, x + (k * places + p) * c, (size_t)c * sizeof *o);\n}\n"},
    {DC_OP_conv3x3,
     "static void conv3x3(int n, int h, int w, int c, int d, const float *x, const float *weight,\n"
     "                    const float *bias, float *o) {\n"
     "    for (int r = 0; r < n; r++, x += h * w * c)\n"
     "        for (int p = 0; p < h * w; p++, o += d) {\n"
     "            memcpy(o, bias, (size_t)d * sizeof *o);\n"
     "            for (int tap = 0; tap < 9; tap++) {\n"
     "                int v = p / w + tap / 3 - 1, u = p % w + tap % 3 - 1;\n"
     "                if (v < 0 || v >= h || u < 0 || u >= w) continue;\n"
     "                const float *from = x + (v * w + u) * c, *row = weight + tap * c * d;\n"
     "                for (int i = 0; i < c; i++, row += d)\n"
     "                    for (int k = 0; k < d; k++) o[k] += from[i] * row[k];\n"
     "            }\n        }\n}\n"},
    {DC_OP_max_pool,
     "static void max_pool(int n, int h, int w, int c, const float *x, float *o) {\n"
     "    for (int r = 0; r < n; r++, x += h * w * c)\n"
     "        for (int v = -(h % 2); v < h - 1 + h % 2; v += 2)\n"
     "            for (int u = -(w % 2); u < w - 1 + w % 2; u += 2, o += c)\n"
     "                for (int k = 0; k < c; k++) {\n"
     "                    o[k] = -INFINITY;\n"
     "                    for (int t = 0; t < 9; t++) {\n"
     "                        int y = v + t / 3, z = u + t % 3;\n"
     "                        if (y < 0 || y >= h || z < 0 || z >= w) continue;\n"
     "                        if (x[(y * w + z) * c + k] > o[k]) o[k] = x[(y * w + z) * c + k];\n"
     "                    }\n                }\n}\n"},
    {DC_OP_repeat, "static void repeat(int n, int c, int times, const float *x, float *o) {\n"
                   "    for (int r = 0; r < n * times; r++)\n"
                   "        memcpy(o + r * c, x + r / times * c, (size_t)c * sizeof *o);\n}\n"},
    {DC_OP_pick_best,
     "static void pick_best(int n, int c, int group, const float *worth, const float *x, float *o) "
     "{\n"
     "    for (int r = 0; r < n; r++) {\n"
     "        int best = r * group;\n"
     "        for (int i = best; i < (r + 1) * group; i++) if (worth[i] > worth[best]) best = i;\n"
     "        memcpy(o + r * c, x + best * c, (size_t)c * sizeof *o);\n"
     "    }\n}\n"},
};

static const char *code_of(dc_op op) {
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        if (forms[i].op == op) return forms[i].code;
    return NULL;
}

typedef struct writer {
    const dc_actor *actor;
    const dc_infer *q;
    dc_save save;
    dc_text text;    // not yet written
    int64_t *place;  // (nodes) where a parameter's numbers begin in the file's weights
    int64_t weights; // numbers so far
} writer;

static dc_status flush(writer *w) {
    DC_TRY(dc_text_status(&w->text));
    DC_TRY(dc_save_write(&w->save, w->text.bytes ? w->text.bytes : "", w->text.used));
    w->text.used = 0;
    return DC_OK;
}

static const dc_node *node_of(const writer *w, dc_ref r) {
    return &w->q->graph.nodes[r];
}

// ---- parts of the file ----

// Of a name that a checkpoint says, what cannot end the comment that it stands in.
static void put_name(writer *w, const char *name) {
    for (const char *c = name; *c; c++) {
        bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                     (*c >= '0' && *c <= '9') || strchr("-_.:=,", *c);
        dc_text_add(&w->text, "%c", plain ? *c : '_');
    }
}

static void put_head(writer *w) {
    const dc_actor *a = w->actor;
    dc_text_add(&w->text, "/* A policy of agent %s, step %" PRId64 "%s", a->from.method.algo->name,
                a->from.step, *a->from.env ? ", environment " : "");
    put_name(w, a->from.env);
    dc_text_add(
        &w->text,
        ", written by dcrl export. C99; needs the maths library.\n *\n"
        " *     static policy_memory memory;                     one for each thread, zero at "
        "first\n"
        " *     policy_act(&memory, observation, goal, moment, action);\n *\n"
        " * observation: %d numbers, goal: %d, action: %d%s. Nothing else is kept between "
        "calls.\n",
        a->obs, a->goal, a->act,
        a->from.method.act_scale ? ", in the data's units"
        : a->from.method.actions ? ", a value for each choice: take the one with the largest"
                                 : ", each within [-1, 1]");
    dc_text_add(&w->text,
                " * moment: any number that is never the same twice; the noise of candidates is a "
                "function of it%s.\n */\n",
                w->q->noises ? "" : " (this policy draws none)");
    dc_text_add(
        &w->text,
        "#include <math.h>\n#include <stdint.h>\n#include <string.h>\n\n"
        "enum { POLICY_OBSERVATION = %d, POLICY_GOAL = %d, POLICY_ACTION = %d };\n"
        "typedef struct policy_memory { float numbers[%" PRId64 "]; } policy_memory;\n"
        "void policy_act(policy_memory *memory, const float *observation, const float *goal,\n"
        "                uint64_t moment, float *action);\n\n",
        a->obs, a->goal, a->act, w->q->graph.temp_size);
}

// A header of ours, less its includes and guards.
static void put_header(writer *w, const char *text) {
    for (const char *at = text, *end; *at; at = end + 1) {
        end = strchr(at, '\n');
        if (!end) break;
        bool skip = !strncmp(at, "#include", 8) || !strncmp(at, "#ifndef", 7) ||
                    !strncmp(at, "#define DC_PHILOX_H", 19) ||
                    !strncmp(at, "#define DC_NOISE_H", 18);
        bool last = !strncmp(at, "#endif", 6) && !end[1]; // of the guard
        if (!skip && !last) dc_text_bytes(&w->text, at, (size_t)(end - at) + 1);
    }
}

static dc_status put_functions(writer *w) {
    const dc_graph *g = &w->q->graph;
    bool done[DC_OPS] = {false};
    bool gelus = false;
    for (dc_ref r = 0; r < g->count; r++) {
        dc_op op = g->nodes[r].op;
        if (op < DC_FIRST_COMPUTED || done[op]) continue;
        if (!code_of(op))
            return dc_fail(DC_UNSUPPORTED, "play it with dcrl, or its C API",
                           "a policy with op %s cannot be written as C", dc_op_name(op));
        if (!gelus && (op == DC_OP_gelu || op == DC_OP_gelu_layernorm)) {
            dc_text_add(&w->text, "%s", gelu_code);
            gelus = true;
        }
        dc_text_add(&w->text, "%s", code_of(op));
        done[op] = true;
    }
    return DC_OK;
}

static dc_status put_numbers(writer *w, const dc_real *from, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite((double)from[i]))
            return dc_fail(DC_NOT_FINITE, "export another checkpoint", "a weight is NaN or Inf");
        dc_text_add(&w->text, "%.8ef,%c", (double)from[i], (w->weights + i) % 8 == 7 ? '\n' : ' ');
        if (w->text.used > 1 << 16) DC_TRY(flush(w));
    }
    w->weights += n;
    return DC_OK;
}

static void put_scale(writer *w, const char *name, const float *numbers, int n) {
    dc_text_add(&w->text, "static const float %s[] = {", name);
    for (int i = 0; i < n; i++)
        dc_text_add(&w->text, "%s%.8ef", i ? ", " : "", (double)numbers[i]);
    dc_text_add(&w->text, "};\n");
}

// What 1 of an action is in the data's units.
static void put_reach(writer *w, const dc_act_scale *s) {
    dc_text_add(&w->text, "static const float act_reach[] = {");
    for (int c = 0; c < s->width; c++)
        dc_text_add(&w->text, "%s%.8ef", c ? ", " : "", (double)dc_act_reach(s, c));
    dc_text_add(&w->text, "};\n");
}

static dc_status put_weights(writer *w) {
    const dc_graph *g = &w->q->graph;
    const dc_method *m = &w->actor->from.method;
    dc_text_add(&w->text, "\nstatic const float weights[] = {\n");
    for (dc_ref r = 0; r < g->count; r++) {
        const dc_node *n = &g->nodes[r];
        if (n->op != DC_OP_PARAM) continue;
        w->place[r] = -1;
        for (dc_ref s = 0; s < r && w->place[r] < 0; s++) // a network may be applied many times
            if (g->nodes[s].op == DC_OP_PARAM && g->nodes[s].offset == n->offset)
                w->place[r] = w->place[s];
        if (w->place[r] >= 0) continue;
        w->place[r] = w->weights;
        DC_TRY(put_numbers(w, w->actor->from.params.slabs.live + n->offset,
                           (int64_t)n->e * n->rows * n->cols));
    }
    dc_text_add(&w->text, "0};\n");
    if (m->obs_scale) {
        put_scale(w, "obs_mean", m->obs_scale->mean, m->obs);
        put_scale(w, "obs_rate", m->obs_scale->rate, m->obs);
        put_scale(w, "goal_mean", m->goal_scale->mean, m->goal);
        put_scale(w, "goal_rate", m->goal_scale->rate, m->goal);
    }
    if (m->act_scale) {
        put_scale(w, "act_mean", m->act_scale->mean, m->act);
        put_reach(w, m->act_scale);
        put_scale(w, "act_low", m->act_scale->low, m->act);
        put_scale(w, "act_high", m->act_scale->high, m->act);
    }
    return DC_OK;
}

// ---- the calls ----

// An expression for a node's first number.
static const char *at(const writer *w, dc_ref r, char out[64]) {
    const dc_node *n = node_of(w, r), *owner = node_of(w, n->base);
    bool weights = owner->op == DC_OP_PARAM;
    int64_t first = (weights ? w->place[n->base] : owner->offset) + (int64_t)n->row0 * n->cols;
    snprintf(out, 64, "%s + %" PRId64, weights ? "weights" : "m", first);
    return out;
}

// From one member to the next; 0 where one serves all.
static int64_t stride(const writer *w, dc_ref r) {
    const dc_node *owner = node_of(w, node_of(w, r)->base);
    return owner->e == 1 ? 0 : (int64_t)owner->rows * owner->cols;
}

// Of ops that encoders are made of, which have one member.
static bool put_picture_arguments(writer *w, const dc_node *n, const char *x, const char *y,
                                  const char *z, const char *o) {
    int a = (int)n->a, b = (int)n->b, in = node_of(w, n->in[0])->cols;
    switch (n->op) {
    case DC_OP_interleave:
        dc_text_add(&w->text, "%d, %d, %d, %d, %s, %s", n->rows, a, in / (a * b), b, x, o);
        return true;
    case DC_OP_conv3x3:
        dc_text_add(&w->text, "%d, %d, %d, %d, %d, %s, %s, %s, %s", n->rows, a, b, in / (a * b),
                    n->cols / (a * b), x, y, z, o);
        return true;
    case DC_OP_max_pool:
        dc_text_add(&w->text, "%d, %d, %d, %d, %s, %s", n->rows, a, b, in / (a * b), x, o);
        return true;
    case DC_OP_join:
        dc_text_add(&w->text, "%d, %d, %d, %s, %s, %s", n->rows, in, n->cols - in, x, y, o);
        return true;
    default:
        return false;
    }
}

static void put_call(writer *w, dc_ref r) {
    const dc_node *n = node_of(w, r), *in = node_of(w, n->in[0]);
    char x[64], y[64] = "", z[64] = "", o[64];
    at(w, n->in[0], x);
    if (n->in_count > 1) at(w, n->in[1], y);
    if (n->in_count > 2) at(w, n->in[2], z);
    at(w, r, o);
    int64_t sx = stride(w, n->in[0]), so = stride(w, r);
    int64_t sy = n->in_count > 1 ? stride(w, n->in[1]) : 0;
    int count = n->rows * n->cols;
    const char *code = code_of(n->op), *name = code + strlen("static void ");
    int length = (int)strcspn(name, "(");
    dc_text_add(&w->text, "    %.*s(", length, name);
    switch (n->op) {
    case DC_OP_linear:
        dc_text_add(&w->text, "%d, %d, %d, %d, %s, %" PRId64 ", %s, %s, %s, %" PRId64, n->e,
                    n->rows, in->cols, n->cols, x, sx, y, z, o, so);
        break;
    case DC_OP_gelu_layernorm:
        dc_text_add(&w->text, "%d, %d, %d, %s, %" PRId64 ", %s, %s, %s, %" PRId64, n->e, n->rows,
                    n->cols, x, sx, y, z, o, so);
        break;
    case DC_OP_add:
    case DC_OP_mul:
        dc_text_add(&w->text, "%d, %d, %s, %" PRId64 ", %s, %" PRId64 ", %s, %" PRId64, n->e, count,
                    x, sx, y, sy, o, so);
        break;
    case DC_OP_ensemble_min:
    case DC_OP_ensemble_mean:
        dc_text_add(&w->text, "%d, %d, %s, %" PRId64 ", %s", in->e, count, x, sx, o);
        break;
    case DC_OP_normalise:
        dc_text_add(&w->text, "%d, %d, %d, %s, %" PRId64 ", %s, %" PRId64, n->e, n->rows, n->cols,
                    x, sx, o, so);
        break;
    case DC_OP_columns:
        dc_text_add(&w->text, "%d, %d, %d, %d, %d, %s, %" PRId64 ", %s, %" PRId64, n->e, n->rows,
                    in->cols, (int)n->a, (int)n->b, x, sx, o, so);
        break;
    case DC_OP_splice:
        dc_text_add(&w->text, "%d, %d, %d, %d, %s, %s, %s", n->rows, n->cols,
                    node_of(w, n->in[1])->cols, (int)n->a, x, y, o);
        break;
    case DC_OP_repeat:
        dc_text_add(&w->text, "%d, %d, %d, %s, %s", in->rows, n->cols, (int)n->a, x, o);
        break;
    case DC_OP_pick_best:
        dc_text_add(&w->text, "%d, %d, %d, %s, %s, %s", n->rows, n->cols, (int)n->a, x, y, o);
        break;
    default:
        if (put_picture_arguments(w, n, x, y, z, o)) break;
        // Number by number, of one input.
        dc_text_add(&w->text, "%d, %d, %s, %" PRId64 ", %s, %" PRId64 ", %.8ef, %.8ef", n->e, count,
                    x, sx, o, so, (double)(float)n->a, (double)(float)n->b);
    }
    dc_text_add(&w->text, ");\n");
}

static void put_input(writer *w, int i) {
    const dc_infer *q = w->q;
    bool scaled = w->actor->from.method.obs_scale;
    char o[64];
    int64_t column = 0;
    at(w, q->input[i].node, o);
    for (int f = 0; f < q->input[i].count; f++) {
        int kind = q->input[i].kinds[f], width = q->input[i].widths[f];
        const char *from = kind == DC_FIELD_OBS ? "observation" : "goal";
        const char *scale = kind == DC_FIELD_OBS ? "obs" : "goal";
        if (kind == DC_FIELD_OBS || kind == DC_FIELD_GOAL) {
            dc_text_add(&w->text,
                        "    for (int i = 0; i < %d; i++) (%s)[%" PRId64 " + i] = ", width, o,
                        column);
            if (scaled)
                dc_text_add(&w->text, "(%s[i] - %s_mean[i]) * %s_rate[i];\n", from, scale, scale);
            else
                dc_text_add(&w->text, "%s[i];\n", from);
        }
        column += width;
    }
}

static void put_act(writer *w) {
    const dc_infer *q = w->q;
    char o[64];
    dc_text_add(
        &w->text,
        "\nvoid policy_act(policy_memory *memory, const float *observation, const float *goal,\n"
        "                uint64_t moment, float *action) {\n    float *m = memory->numbers;\n"
        "    (void)goal, (void)moment;\n");
    for (int i = 0; i < q->inputs; i++)
        put_input(w, i);
    for (int i = 0; i < q->noises; i++)
        dc_text_add(&w->text,
                    "    for (uint32_t i = 0; i < %d; i++) (%s)[i] = dc_draw_normal(%" PRIu64
                    "u, %d, moment, %u + i);\n",
                    q->noise[i].candidates * q->noise[i].width, at(w, q->noise[i].node, o),
                    w->actor->seed, DC_STREAM_CANDIDATE, q->noise[i].first);
    for (dc_ref r = 0; r < q->graph.count; r++)
        if (q->graph.nodes[r].op >= DC_FIRST_COMPUTED) put_call(w, r);
    dc_text_add(&w->text, "    memcpy(action, %s, sizeof(float) * %d);\n", at(w, q->out, o),
                w->actor->act);
    if (w->actor->from.method.act_scale)
        dc_text_add(
            &w->text,
            "    for (int i = 0; i < %d; i++) {\n"
            "        float x = act_mean[i] + action[i] * act_reach[i];\n"
            "        action[i] = x < act_low[i] ? act_low[i] : x > act_high[i] ? act_high[i] : "
            "x;\n    }\n",
            w->actor->act);
    dc_text_add(&w->text, "}\n");
}

static dc_status write_all(writer *w) {
    put_head(w);
    if (w->q->noises) {
        put_header(w, dc_philox_text);
        put_header(w, dc_noise_text);
    }
    DC_TRY(put_functions(w));
    DC_TRY(put_weights(w));
    put_act(w);
    return flush(w);
}

dc_status dc_export_c(const dc_actor *actor, const char *path) {
    writer w = {.actor = actor, .q = actor->policy};
    w.place = calloc((size_t)w.q->graph.count + 1, sizeof *w.place);
    if (!w.place) return dc_fail(DC_NO_MEMORY, NULL, "no memory to write %s", path);
    dc_text_init(&w.text);
    dc_status status = dc_save_open(&w.save, path);
    if (status == DC_OK) {
        status = write_all(&w);
        if (status == DC_OK)
            status = dc_save_commit(&w.save);
        else
            dc_save_abort(&w.save);
    }
    dc_text_fini(&w.text);
    free(w.place);
    return status;
}
