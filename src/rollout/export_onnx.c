// A policy as an ONNX model, see export.h. ONNX is protocol buffers: a message is fields one behind the other, each a key
// (number and wire type) and a value; a message within a message is its length and its bytes. Those that a
// model needs are few:
//
//   ModelProto      1 ir_version  2 producer_name  7 graph  8 opset_import {2 version}
//   GraphProto      1 node*  2 name  5 initializer*  11 input*  12 output*
//   NodeProto       1 input*  2 output*  4 op_type  5 attribute*
//   AttributeProto  1 name  3 i  8 ints*  20 type (2 int, 7 ints)
//   TensorProto     1 dims*  2 data_type (1 float, 7 int64)  8 name  9 raw_data
//   ValueInfoProto  1 name  2 type {1 tensor_type {1 elem_type, 2 shape {1 dim* {1 value | 2 name}}}}
//
// Tensors have the graph's own shape, (e, rows, columns); ONNX's MatMul and its pointwise ops stretch e = 1 over
// all members as ours do. The number of rows is free: rows that a candidate adds are made by reshaping.
#include "rollout/export.h"

#include "algo/batch.h"
#include "base/file.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VARINT = 0, BYTES = 2, FLOAT = 1, INT64 = 7, OPSET = 13, IR = 7, NAME = 32 };

// ---- protocol buffers ----

static void put_varint(dc_text *out, uint64_t value) {
    char bytes[10];
    size_t n = 0;
    do {
        bytes[n] = (char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
        n++;
    } while (value);
    dc_text_bytes(out, bytes, n);
}

static void put_int(dc_text *out, int field, int64_t value) {
    put_varint(out, (uint64_t)field << 3 | VARINT);
    put_varint(out, (uint64_t)value);
}

static void put_bytes(dc_text *out, int field, const void *bytes, size_t n) {
    put_varint(out, (uint64_t)field << 3 | BYTES);
    put_varint(out, n);
    dc_text_bytes(out, bytes, n);
}

static void put_text(dc_text *out, int field, const char *text) {
    put_bytes(out, field, text, strlen(text));
}

// A message as a field of another one; it is freed.
static void put_message(dc_text *out, int field, dc_text *message) {
    if (message->status != DC_OK) out->status = message->status;
    put_bytes(out, field, message->bytes ? message->bytes : "", message->used);
    dc_text_fini(message);
}

// ---- the model's parts ----

typedef struct writer {
    const dc_actor *actor;
    const dc_infer *q;
    dc_text nodes, weights, inputs; // fields of GraphProto
    char (*name)[NAME];             // (nodes of the graph) of each value
    int fresh;                      // number of the next made-up name
    dc_status status;               // first failure
} writer;

static const dc_node *node_of(const writer *w, dc_ref r) {
    return &w->q->graph.nodes[r];
}

static void fresh_name(writer *w, char out[NAME]) {
    snprintf(out, NAME, "t%d", w->fresh++);
}

static void put_tensor(writer *w, const char *name, int type, const int64_t *dims, int ndim,
                       const void *bytes, size_t n) {
    dc_text t;
    dc_text_init(&t);
    for (int i = 0; i < ndim; i++)
        put_int(&t, 1, dims[i]);
    put_int(&t, 2, type);
    put_text(&t, 8, name);
    put_bytes(&t, 9, bytes, n);
    put_message(&w->weights, 5, &t);
}

// A constant (1, 1, n) of floats, or a list of whole numbers.
static void put_floats(writer *w, const float *numbers, int n, char out[NAME]) {
    fresh_name(w, out);
    put_tensor(w, out, FLOAT, (int64_t[]){1, 1, n}, 3, numbers, (size_t)n * sizeof *numbers);
}

static void put_number(writer *w, double x, char out[NAME]) {
    float number = (float)x;
    put_floats(w, &number, 1, out);
}

static void put_ints(writer *w, int n, char out[NAME], ...) {
    int64_t numbers[4];
    va_list values;
    va_start(values, out);
    for (int i = 0; i < n; i++)
        numbers[i] = va_arg(values, int);
    va_end(values);
    fresh_name(w, out);
    put_tensor(w, out, INT64, (int64_t[]){n}, 1, numbers, (size_t)n * sizeof *numbers);
}

static void put_attribute(dc_text *node, const char *name, int64_t value, bool list) {
    dc_text a;
    dc_text_init(&a);
    put_text(&a, 1, name);
    put_int(&a, list ? 8 : 3, value);
    put_int(&a, 20, list ? 7 : 2);
    put_message(node, 5, &a);
}

// A node of type `op` with inputs up to NULL, one output, and an attribute: `axis` is one number, `axes` a list.
// Nullable: attribute
static void emit_with(writer *w, const char *op, const char *out, const char *attribute,
                      int64_t value, ...) {
    dc_text n;
    va_list inputs;
    dc_text_init(&n);
    va_start(inputs, value);
    for (const char *x; (x = va_arg(inputs, const char *));)
        put_text(&n, 1, x);
    va_end(inputs);
    put_text(&n, 2, out);
    put_text(&n, 4, op);
    if (attribute) put_attribute(&n, attribute, value, !strcmp(attribute, "axes"));
    put_message(&w->nodes, 1, &n);
}
typedef struct list { // of whole numbers, as an attribute
    const char *name;
    int count;
    int64_t values[4];
} list;

// A node of one output with inputs up to NULL and lists as attributes, up to one without a name.
static void emit_lists(writer *w, const char *op, const char *out, const char *const *inputs,
                       const list *lists) {
    dc_text n;
    dc_text_init(&n);
    for (; *inputs; inputs++)
        put_text(&n, 1, *inputs);
    put_text(&n, 2, out);
    put_text(&n, 4, op);
    for (; lists->name; lists++) {
        dc_text a;
        dc_text_init(&a);
        put_text(&a, 1, lists->name);
        for (int i = 0; i < lists->count; i++)
            put_int(&a, 8, lists->values[i]);
        put_int(&a, 20, 7);
        put_message(&n, 5, &a);
    }
    put_message(&w->nodes, 1, &n);
}
#define EMIT(w, op, out, ...) emit_with(w, op, out, NULL, 0, __VA_ARGS__, NULL)

// An input or output (rows, width), the number of rows being free.
static void put_value(dc_text *out, int field, const char *name, int width) {
    dc_text value, type, tensor, shape, dim;
    dc_text_init(&dim);
    dc_text_init(&shape);
    put_text(&dim, 2, "rows");
    put_message(&shape, 1, &dim);
    dc_text_init(&dim);
    put_int(&dim, 1, width);
    put_message(&shape, 1, &dim);
    dc_text_init(&tensor);
    put_int(&tensor, 1, FLOAT);
    put_message(&tensor, 2, &shape);
    dc_text_init(&type);
    put_message(&type, 1, &tensor);
    dc_text_init(&value);
    put_text(&value, 1, name);
    put_message(&value, 2, &type);
    put_message(out, field, &value);
}

// ---- inputs ----

// x as (1, rows, width), from (rows, n * width).
static void to_rows(writer *w, const char *x, int width, char out[NAME]) {
    char shape[NAME];
    put_ints(w, 3, shape, 1, -1, width);
    fresh_name(w, out);
    EMIT(w, "Reshape", out, x, shape);
}

// Zeros (1, times * rows, width): observations times a matrix of zeros.
static void put_zeros(writer *w, int times, int width, char out[NAME]) {
    char zeros[NAME], product[NAME];
    int in = w->actor->obs, columns = times * width;
    float *numbers = calloc((size_t)in * (size_t)columns, sizeof *numbers);
    if (!numbers) {
        w->status = dc_fail(DC_NO_MEMORY, NULL, "no memory to export a policy");
        return;
    }
    fresh_name(w, zeros);
    put_tensor(w, zeros, FLOAT, (int64_t[]){in, columns}, 2, numbers,
               (size_t)in * (size_t)columns * sizeof *numbers);
    free(numbers);
    fresh_name(w, product);
    EMIT(w, "MatMul", product, "observation", zeros);
    to_rows(w, product, width, out);
}

static void put_scaled(writer *w, const char *from, const dc_scale *scale, int width,
                       char out[NAME]) {
    char rows[NAME], mean[NAME], rate[NAME], less[NAME];
    to_rows(w, from, width, rows);
    if (!scale) {
        memcpy(out, rows, NAME);
        return;
    }
    put_floats(w, scale->mean, width, mean);
    put_floats(w, scale->rate, width, rate);
    fresh_name(w, less);
    fresh_name(w, out);
    EMIT(w, "Sub", less, rows, mean);
    EMIT(w, "Mul", out, less, rate);
}

// The fields of an input side by side.
static void put_input(writer *w, int i) {
    const dc_infer *q = w->q;
    const dc_method *m = &w->actor->from.method;
    char part[DC_INFER_FIELDS][NAME];
    dc_text n;
    dc_text_init(&n);
    for (int f = 0; f < q->input[i].count; f++) {
        int kind = q->input[i].kinds[f], width = q->input[i].widths[f];
        if (kind == DC_FIELD_OBS)
            put_scaled(w, "observation", m->obs_scale, width, part[f]);
        else if (kind == DC_FIELD_GOAL)
            put_scaled(w, "goal", m->goal_scale, width, part[f]);
        else
            put_zeros(w, 1, width, part[f]);
        put_text(&n, 1, part[f]);
    }
    put_text(&n, 2, w->name[q->input[i].node]);
    put_text(&n, 4, "Concat");
    put_attribute(&n, "axis", 2, false);
    put_message(&w->nodes, 1, &n);
}

static void put_inputs(writer *w) {
    const dc_infer *q = w->q;
    const dc_graph *g = &q->graph;
    bool *given = calloc((size_t)g->count + 1, sizeof *given);
    if (!given) {
        w->status = dc_fail(DC_NO_MEMORY, NULL, "no memory to export a policy");
        return;
    }
    put_value(&w->inputs, 11, "observation", w->actor->obs);
    put_value(&w->inputs, 11, "goal", w->actor->goal);
    for (int i = 0; i < q->inputs; i++) {
        put_input(w, i);
        given[q->input[i].node] = true;
    }
    for (int i = 0; i < q->noises; i++) {
        char name[NAME], shape[NAME];
        snprintf(name, NAME, i ? "noise%d" : "noise", i + 1);
        put_value(&w->inputs, 11, name, q->noise[i].candidates * q->noise[i].width);
        put_ints(w, 3, shape, 1, -1, q->noise[i].width);
        EMIT(w, "Reshape", w->name[q->noise[i].node], name, shape);
        given[q->noise[i].node] = true;
    }
    for (dc_ref r = 0; r < g->count; r++) // what nobody writes is zero
        if (g->nodes[r].op == DC_OP_INPUT && !given[r])
            put_zeros(w, g->nodes[r].rows, g->nodes[r].cols, w->name[r]);
    free(given);
}

// ---- weights ----

static void put_param(writer *w, dc_ref r) {
    const dc_node *n = node_of(w, r);
    for (dc_ref s = 0; s < r; s++)
        if (node_of(w, s)->op == DC_OP_PARAM && node_of(w, s)->offset == n->offset) {
            memcpy(w->name[r], w->name[s], NAME);
            return;
        }
    size_t count = (size_t)n->e * (size_t)n->rows * (size_t)n->cols;
    const dc_real *from = w->actor->from.params.slabs.live + n->offset;
    for (size_t i = 0; i < count; i++)
        if (!isfinite((double)from[i]))
            w->status =
                dc_fail(DC_NOT_FINITE, "export another checkpoint", "a weight is NaN or Inf");
    put_tensor(w, w->name[r], FLOAT, (int64_t[]){n->e, n->rows, n->cols}, 3, from,
               count * sizeof(float));
}

// ---- ops ----

// gelu(x) = x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3)
static void put_gelu(writer *w, const char *x, const char *out) {
    char a[NAME], b[NAME], square[NAME], scaled[NAME], one[NAME], slope[NAME], u[NAME], gate[NAME];
    put_number(w, 2 * 0.7978845608028654 * 0.044715, a);
    put_number(w, 2 * 0.7978845608028654, b);
    fresh_name(w, square), fresh_name(w, scaled), fresh_name(w, slope), fresh_name(w, u);
    fresh_name(w, gate);
    memcpy(one, b, NAME);
    EMIT(w, "Mul", square, x, x);
    EMIT(w, "Mul", scaled, square, a);
    EMIT(w, "Add", slope, scaled, one);
    EMIT(w, "Mul", u, slope, x);
    EMIT(w, "Sigmoid", gate, u);
    EMIT(w, "Mul", out, x, gate);
}

static void put_layernorm(writer *w, const char *h, const char *scale, const char *bias,
                          const char *out) {
    char mean[NAME], less[NAME], square[NAME], var[NAME], eps[NAME], sum[NAME], root[NAME],
        norm[NAME], scaled[NAME];
    fresh_name(w, mean), fresh_name(w, less), fresh_name(w, square), fresh_name(w, var);
    fresh_name(w, sum), fresh_name(w, root), fresh_name(w, norm), fresh_name(w, scaled);
    put_number(w, 1e-6, eps);
    emit_with(w, "ReduceMean", mean, "axes", 2, h, NULL);
    EMIT(w, "Sub", less, h, mean);
    EMIT(w, "Mul", square, less, less);
    emit_with(w, "ReduceMean", var, "axes", 2, square, NULL);
    EMIT(w, "Add", sum, var, eps);
    EMIT(w, "Sqrt", root, sum);
    EMIT(w, "Div", norm, less, root);
    EMIT(w, "Mul", scaled, norm, scale);
    EMIT(w, "Add", out, scaled, bias);
}

static void put_slice(writer *w, const char *x, int from, int to, char out[NAME]) {
    char first[NAME], last[NAME], axis[NAME];
    put_ints(w, 1, first, from);
    put_ints(w, 1, last, to);
    put_ints(w, 1, axis, 2);
    fresh_name(w, out);
    EMIT(w, "Slice", out, x, first, last, axis);
}

static void put_splice(writer *w, const dc_node *n, const char *x, const char *out) {
    int at = (int)n->a, wide = node_of(w, n->in[1])->cols, end = n->cols;
    char left[NAME], right[NAME];
    dc_text node;
    dc_text_init(&node);
    if (at > 0) {
        put_slice(w, x, 0, at, left);
        put_text(&node, 1, left);
    }
    put_text(&node, 1, w->name[n->in[1]]);
    if (at + wide < end) {
        put_slice(w, x, at + wide, end, right);
        put_text(&node, 1, right);
    }
    put_text(&node, 2, out);
    put_text(&node, 4, "Concat");
    put_attribute(&node, "axis", 2, false);
    put_message(&w->nodes, 1, &node);
}

// Rows of a candidate each: (e, n, c) -> (e, n, a, c) -> (e, n a, c)
static void put_repeat(writer *w, const dc_node *n, const char *x, const char *out) {
    char four[NAME], times[NAME], three[NAME], apart[NAME], many[NAME];
    put_ints(w, 4, four, n->e, -1, 1, n->cols);
    put_ints(w, 4, times, 1, 1, (int)n->a, 1);
    put_ints(w, 3, three, n->e, -1, n->cols);
    fresh_name(w, apart), fresh_name(w, many);
    EMIT(w, "Reshape", apart, x, four);
    EMIT(w, "Expand", many, apart, times);
    EMIT(w, "Reshape", out, many, three);
}

// The row of largest worth among every a: its number by ArgMax, its columns by GatherElements.
static void put_pick_best(writer *w, const dc_node *n, const char *worth, const char *x,
                          const char *out) {
    char groups[NAME], cells[NAME], three[NAME], wide[NAME], worths[NAME], rows[NAME], best[NAME],
        all[NAME], picked[NAME];
    put_ints(w, 3, groups, -1, (int)n->a, 1);
    put_ints(w, 3, cells, -1, (int)n->a, n->cols);
    put_ints(w, 3, three, 1, -1, n->cols);
    put_ints(w, 3, wide, 1, 1, n->cols);
    fresh_name(w, worths), fresh_name(w, rows), fresh_name(w, best), fresh_name(w, all);
    fresh_name(w, picked);
    EMIT(w, "Reshape", worths, worth, groups);
    EMIT(w, "Reshape", rows, x, cells);
    emit_with(w, "ArgMax", best, "axis", 1, worths, NULL); // (n, 1, 1), the first of equals
    EMIT(w, "Expand", all, best, wide);
    emit_with(w, "GatherElements", picked, "axis", 1, rows, all, NULL);
    EMIT(w, "Reshape", out, picked, three);
}

static void put_normalise(writer *w, const dc_node *n, const char *x, const char *out) {
    char size[NAME], least[NAME], root[NAME], safe[NAME], unit[NAME];
    put_number(w, 1e-6, least);
    put_number(w, sqrt((double)n->cols), root);
    fresh_name(w, size), fresh_name(w, safe), fresh_name(w, unit);
    emit_with(w, "ReduceL2", size, "axes", 2, x, NULL);
    EMIT(w, "Max", safe, size, least);
    EMIT(w, "Div", unit, x, safe);
    EMIT(w, "Mul", out, unit, root);
}

// A bound of Clip is a tensor without dimensions.
static void put_bound(writer *w, double x, char out[NAME]) {
    float number = (float)x;
    fresh_name(w, out);
    put_tensor(w, out, FLOAT, NULL, 0, &number, sizeof number);
}

// ---- pictures: rows are (height, width, channels), ONNX's convolutions and pools want (channels, height, width) ----

static void put_transpose(writer *w, const char *x, const int64_t order[4], const char *out) {
    list lists[] = {{"perm", 4, {order[0], order[1], order[2], order[3]}}, {0}};
    emit_lists(w, "Transpose", out, (const char *[]){x, NULL}, lists);
}

static void put_channels_first(writer *w, const char *x, int height, int width, int channels,
                               char out[NAME]) {
    char shape[NAME], picture[NAME];
    put_ints(w, 4, shape, -1, height, width, channels);
    fresh_name(w, picture), fresh_name(w, out);
    EMIT(w, "Reshape", picture, x, shape);
    put_transpose(w, picture, (int64_t[]){0, 3, 1, 2}, out);
}

static void put_channels_last(writer *w, const char *x, int cols, const char *out) {
    char shape[NAME], picture[NAME];
    put_ints(w, 3, shape, 1, -1, cols);
    fresh_name(w, picture);
    put_transpose(w, x, (int64_t[]){0, 2, 3, 1}, picture);
    EMIT(w, "Reshape", out, picture, shape);
}

static void put_conv(writer *w, const dc_node *n, const char *out) {
    int h = (int)n->a, width = (int)n->b;
    int c = node_of(w, n->in[0])->cols / (h * width), d = n->cols / (h * width);
    char x[NAME], taps[NAME], rows[NAME], kernel[NAME], one[NAME], bias[NAME], y[NAME];
    put_channels_first(w, w->name[n->in[0]], h, width, c, x);
    put_ints(w, 4, taps, 3, 3, c, d);
    put_ints(w, 1, one, d);
    fresh_name(w, rows), fresh_name(w, kernel), fresh_name(w, bias), fresh_name(w, y);
    EMIT(w, "Reshape", rows, w->name[n->in[1]], taps);
    put_transpose(w, rows, (int64_t[]){3, 2, 0, 1}, kernel);
    EMIT(w, "Reshape", bias, w->name[n->in[2]], one);
    emit_lists(w, "Conv", y, (const char *[]){x, kernel, bias, NULL},
               (list[]){{"kernel_shape", 2, {3, 3}}, {"pads", 4, {1, 1, 1, 1}}, {0}});
    put_channels_last(w, y, n->cols, out);
}

static void put_max_pool(writer *w, const dc_node *n, const char *out) {
    int h = (int)n->a, width = (int)n->b, up = dc_pool_before(h), left = dc_pool_before(width);
    char x[NAME], y[NAME];
    put_channels_first(w, w->name[n->in[0]], h, width, node_of(w, n->in[0])->cols / (h * width), x);
    fresh_name(w, y);
    emit_lists(w, "MaxPool", y, (const char *[]){x, NULL},
               (list[]){{"kernel_shape", 2, {3, 3}},
                        {"strides", 2, {2, 2}},
                        {"pads", 4, {up, left, 1, 1}},
                        {0}});
    put_channels_last(w, y, n->cols, out);
}

static void put_interleave(writer *w, const dc_node *n, const char *x, const char *out) {
    int pictures = (int)n->a, channels = (int)n->b;
    char four[NAME], three[NAME], apart[NAME], mixed[NAME];
    put_ints(w, 4, four, -1, pictures, n->cols / (pictures * channels), channels);
    put_ints(w, 3, three, 1, -1, n->cols);
    fresh_name(w, apart), fresh_name(w, mixed);
    EMIT(w, "Reshape", apart, x, four);
    put_transpose(w, apart, (int64_t[]){0, 2, 1, 3}, mixed);
    EMIT(w, "Reshape", out, mixed, three);
}

static bool put_picture_op(writer *w, const dc_node *n, const char *out) {
    if (n->op == DC_OP_conv3x3)
        put_conv(w, n, out);
    else if (n->op == DC_OP_max_pool)
        put_max_pool(w, n, out);
    else if (n->op == DC_OP_interleave)
        put_interleave(w, n, w->name[n->in[0]], out);
    else
        return false;
    return true;
}

// Ops that are one op of ONNX with the same inputs.
static const char *same_op(dc_op op) {
    switch (op) {
    case DC_OP_add:
        return "Add";
    case DC_OP_mul:
        return "Mul";
    case DC_OP_exp:
        return "Exp";
    case DC_OP_tanh:
        return "Tanh";
    case DC_OP_abs:
        return "Abs";
    case DC_OP_sigmoid:
        return "Sigmoid";
    case DC_OP_relu:
        return "Relu";
    default:
        return NULL;
    }
}

// Layers: x W + b, and what follows one.
static void put_layer(writer *w, const dc_node *n, const char *out) {
    const char *x = w->name[n->in[0]], *y = w->name[n->in[1]], *z = w->name[n->in[2]];
    char t[NAME];
    fresh_name(w, t);
    if (n->op == DC_OP_linear) {
        EMIT(w, "MatMul", t, x, y);
        EMIT(w, "Add", out, t, z);
    } else {
        put_gelu(w, x, t);
        put_layernorm(w, t, y, z, out);
    }
}

static void put_affine(writer *w, const dc_node *n, const char *x, const char *out) {
    char a[NAME], b[NAME], t[NAME];
    put_number(w, n->a, a);
    put_number(w, n->b, b);
    fresh_name(w, t);
    EMIT(w, "Mul", t, x, a);
    EMIT(w, "Add", out, t, b);
}

static void put_clip(writer *w, const dc_node *n, const char *x, const char *out) {
    char a[NAME], b[NAME];
    put_bound(w, n->a, a);
    put_bound(w, n->b, b);
    EMIT(w, "Clip", out, x, a, b);
}

static void put_columns(writer *w, const dc_node *n, const char *x, const char *out) {
    char t[NAME];
    put_slice(w, x, (int)n->a, (int)n->a + (int)n->b, t);
    EMIT(w, "Identity", out, t);
}

static void put_op(writer *w, dc_ref r) {
    const dc_node *n = node_of(w, r);
    const char *x = w->name[n->in[0]], *out = w->name[r];
    const char *y = n->in_count > 1 ? w->name[n->in[1]] : NULL;
    if (put_picture_op(w, n, out)) return;
    switch (n->op) {
    case DC_OP_linear:
    case DC_OP_gelu_layernorm:
        put_layer(w, n, out);
        break;
    case DC_OP_affine:
        put_affine(w, n, x, out);
        break;
    case DC_OP_clip:
        put_clip(w, n, x, out);
        break;
    case DC_OP_gelu:
        put_gelu(w, x, out);
        break;
    case DC_OP_ensemble_min:
        emit_with(w, "ReduceMin", out, "axes", 0, x, NULL);
        break;
    case DC_OP_ensemble_mean:
        emit_with(w, "ReduceMean", out, "axes", 0, x, NULL);
        break;
    case DC_OP_normalise:
        put_normalise(w, n, x, out);
        break;
    case DC_OP_columns:
        put_columns(w, n, x, out);
        break;
    case DC_OP_join:
        emit_with(w, "Concat", out, "axis", 2, x, y, NULL);
        break;
    case DC_OP_splice:
        put_splice(w, n, x, out);
        break;
    case DC_OP_repeat:
        put_repeat(w, n, x, out);
        break;
    case DC_OP_pick_best:
        put_pick_best(w, n, x, y, out);
        break;
    default:
        if (same_op(n->op))
            EMIT(w, same_op(n->op), out, x, n->in_count > 1 ? y : NULL); // inputs end at NULL
        else
            w->status = dc_fail(DC_UNSUPPORTED, "play it with dcrl, or its C API",
                                "a policy with op %s cannot be written as ONNX", dc_op_name(n->op));
    }
}

// ---- the whole ----

// What 1 of an action is in the data's units.
static void put_reach(writer *w, const dc_act_scale *s, char out[NAME]) {
    float *reach = calloc((size_t)s->width, sizeof *reach);
    for (int c = 0; reach && c < s->width; c++)
        reach[c] = dc_act_reach(s, c);
    if (reach)
        put_floats(w, reach, s->width, out);
    else
        w->status = dc_fail(DC_NO_MEMORY, NULL, "no memory to export a policy");
    free(reach);
}

// Actions in the data's units, cut to their range; else as the graph clips them.
static void put_output(writer *w) {
    const dc_act_scale *s = w->actor->from.method.act_scale;
    char shape[NAME], mean[NAME], reach[NAME], low[NAME], high[NAME], wide[NAME], moved[NAME],
        above[NAME], cut[NAME];
    const char *action = w->name[w->q->out];
    put_ints(w, 2, shape, -1, w->actor->act);
    if (s) {
        put_floats(w, s->mean, s->width, mean);
        put_reach(w, s, reach);
        put_floats(w, s->low, s->width, low);
        put_floats(w, s->high, s->width, high);
        fresh_name(w, wide), fresh_name(w, moved), fresh_name(w, above), fresh_name(w, cut);
        EMIT(w, "Mul", wide, action, reach);
        EMIT(w, "Add", moved, wide, mean);
        EMIT(w, "Max", above, moved, low);
        EMIT(w, "Min", cut, above, high);
        action = cut;
    }
    EMIT(w, "Reshape", "action", action, shape);
    put_value(&w->inputs, 12, "action", w->actor->act);
}

static void put_view(writer *w, dc_ref r) {
    const dc_node *n = node_of(w, r);
    memcpy(w->name[r], w->name[n->in[0]], NAME);
    if (n->rows != node_of(w, n->in[0])->rows)
        w->status = dc_fail(DC_UNSUPPORTED, "play it with dcrl, or its C API",
                            "a policy that looks at some rows cannot be written as ONNX");
}

static dc_status build(writer *w) {
    const dc_graph *g = &w->q->graph;
    for (dc_ref r = 0; r < g->count; r++)
        snprintf(w->name[r], NAME, "n%d", r);
    put_inputs(w);
    for (dc_ref r = 0; r < g->count && w->status == DC_OK; r++) {
        const dc_node *n = node_of(w, r);
        if (n->op == DC_OP_PARAM)
            put_param(w, r);
        else if (n->op >= DC_FIRST_COMPUTED)
            put_op(w, r);
        else if (n->op != DC_OP_INPUT) // a view: acting has none of some rows alone
            put_view(w, r);
    }
    DC_TRY(w->status);
    put_output(w);
    return w->status;
}

static dc_status write_model(writer *w, const char *path) {
    dc_text graph, model, opset;
    dc_text_init(&graph);
    dc_text_init(&model);
    dc_text_init(&opset);
    put_text(&graph, 2, w->actor->from.method.algo->name);
    dc_text *parts[] = {&w->nodes, &w->weights, &w->inputs};
    for (int i = 0; i < 3; i++) {
        if (parts[i]->status != DC_OK) graph.status = parts[i]->status;
        dc_text_bytes(&graph, parts[i]->bytes ? parts[i]->bytes : "", parts[i]->used);
    }
    put_int(&model, 1, IR);
    put_text(&model, 2, "dcrl");
    put_message(&model, 7, &graph);
    put_int(&opset, 2, OPSET);
    put_message(&model, 8, &opset);
    dc_status status = dc_text_status(&model);
    if (status == DC_OK && model.used > (size_t)INT32_MAX)
        status = dc_fail(DC_UNSUPPORTED, "export it as .c",
                         "the model has %zu bytes, and ONNX takes 2 GiB", model.used);
    if (status == DC_OK) status = dc_file_write(path, model.bytes, model.used);
    dc_text_fini(&model);
    return status;
}

dc_status dc_export_onnx(const dc_actor *actor, const char *path) {
    writer w = {.actor = actor, .q = actor->policy};
    w.name = calloc((size_t)w.q->graph.count + 1, sizeof *w.name);
    if (!w.name) return dc_fail(DC_NO_MEMORY, NULL, "no memory to export a policy");
    dc_text_init(&w.nodes);
    dc_text_init(&w.weights);
    dc_text_init(&w.inputs);
    dc_status status = build(&w);
    if (status == DC_OK) status = write_model(&w, path);
    dc_text_fini(&w.nodes);
    dc_text_fini(&w.weights);
    dc_text_fini(&w.inputs);
    free(w.name);
    return status;
}
