// Expert files, see expert.h. What is read may be hostile: everything is checked before it is used, and
// copied, so that the file may change afterwards.
#include "env/expert.h"

#include "base/file.h"
#include "base/install.h"
#include "places.h" // of the build folder

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define FORMAT "dcrl expert 1"

enum { BLOCK = 32, NAME = 32, TENSORS = 4 * DC_EXPERT_LAYERS, METAS = 9, NUMBER = 16 };
_Static_assert(FLT_EVAL_METHOD == 0, "sums of float must be rounded to float");

static const dc_expert_facts facts[DC_EXPERT_KINDS] = {
    [DC_EXPERT_ANT] = {"ant", 29, 8},
    [DC_EXPERT_ANTBALL] = {"antball", 42, 8},
    [DC_EXPERT_HUMANOID] = {"humanoid", 69, 21},
};

const dc_expert_facts *dc_expert_facts_of(dc_expert_kind kind) {
    DC_CHECK(kind < DC_EXPERT_KINDS);
    return &facts[kind];
}

dc_expert_kind dc_expert_kind_of(const char *name) {
    dc_expert_kind k = 0;
    while (k < DC_EXPERT_KINDS && strcmp(facts[k].name, name) != 0)
        k++;
    return k;
}

// ---- tensors and metadata of an expert ----

typedef struct part {
    const char *name;
    size_t at; // of its pointer in a layer
    int ndim;
    bool norm; // of LayerNorm
} part;

enum { PARTS = 4 };
static const part parts[PARTS] = {
    {"w", offsetof(dc_expert_layer, w), 2, false},
    {"b", offsetof(dc_expert_layer, b), 1, false},
    {"scale", offsetof(dc_expert_layer, scale), 1, true},
    {"bias", offsetof(dc_expert_layer, bias), 1, true},
};

static const float *values_of(const dc_expert_layer *l, const part *p) {
    const float *values;
    memcpy(&values, (const char *)l + p->at, sizeof values);
    return values;
}

static void name_tensor(int layer, const part *p, char name[NAME]) {
    snprintf(name, NAME, "%d/%s", layer, p->name);
}

static bool is_finite(const float *values, size_t count) {
    bool finite = true;
    for (size_t k = 0; k < count; k++)
        finite &= fabsf(values[k]) <= FLT_MAX;
    return finite;
}

// ---- reading ----

static dc_status fail(const char *what, const char *message) {
    return dc_fail(DC_BAD_INPUT, "dcrl expert train writes such files",
                   "not an expert file, %s (%s)", message, what);
}

typedef struct source {
    const char *what;
    const dc_st_file *file;
    size_t used; // tensors
} source;

static dc_status copy_text(dc_expert *e, const source *from, const char *key, const char **out) {
    const char *text = dc_st_meta_get(from->file, key);
    if (!text) return fail(from->what, "its metadata lack seed, command or scores");
    *out = dc_arena_text(&e->arena, text, strlen(text));
    return *out ? DC_OK : DC_NO_MEMORY;
}

static dc_status read_metas(dc_expert *e, const source *from) {
    const dc_st_file *f = from->file;
    const char *format = dc_st_meta_get(f, "format"), *robot = dc_st_meta_get(f, "robot");
    const char *hash = dc_st_meta_get(f, "hash");
    if (!format || strcmp(format, FORMAT) != 0)
        return fail(from->what, "its metadata do not say \"format\": \"" FORMAT "\"");
    e->kind = robot ? dc_expert_kind_of(robot) : DC_EXPERT_KINDS;
    if (e->kind == DC_EXPERT_KINDS)
        return fail(from->what, "its robot is none of ant, antball, humanoid");
    dc_st_hash(f->tensors, f->count, f->metas, f->meta_count, e->hash);
    if (!hash || strcmp(hash, e->hash) != 0)
        return dc_fail(DC_BAD_INPUT, "write or fetch the file again",
                       "an expert is damaged: its hash is %s (%s)", e->hash, from->what);
    DC_TRY(copy_text(e, from, "seed", &e->seed));
    DC_TRY(copy_text(e, from, "command", &e->command));
    return copy_text(e, from, "scores", &e->scores);
}

// A tensor of `width` columns, copied. `height`: what its rows must be.
static dc_status copy_tensor(dc_expert *e, source *from, const dc_st_tensor *t, float **out) {
    *out = dc_arena_take(&e->arena, t->size);
    if (!*out) return DC_NO_MEMORY;
    memcpy(*out, t->bytes, t->size);
    if (!is_finite(*out, t->size / sizeof **out))
        return dc_fail(DC_BAD_INPUT, "train or fetch it again",
                       "tensor '%s' of an expert holds NaN or Inf (%s)", t->name, from->what);
    from->used++;
    return DC_OK;
}

static bool has_shape(const dc_st_tensor *t, const part *p, const dc_expert_layer *l) {
    if (t->dtype != DC_ST_F32 || t->ndim != p->ndim || t->shape[p->ndim - 1] != l->out)
        return false;
    return p->ndim == 1 || t->shape[0] == l->in;
}

static dc_status read_part(dc_expert *e, source *from, int layer, const part *p) {
    dc_expert_layer *l = &e->layers[layer];
    char name[NAME];
    float *values;
    name_tensor(layer, p, name);
    const dc_st_tensor *t = dc_st_find(from->file, name);
    if (!t && p->norm) return DC_OK;
    if (!t || !has_shape(t, p, l))
        return dc_fail(DC_BAD_INPUT, "dcrl expert train writes such files",
                       "tensor '%s' of an expert is missing or has another type or shape (%s)",
                       name, from->what);
    DC_TRY(copy_tensor(e, from, t, &values));
    memcpy((char *)l + p->at, &values, sizeof values);
    return DC_OK;
}

// How wide a layer is follows from its weights.
static dc_status read_layer(dc_expert *e, source *from, int layer, int in) {
    dc_expert_layer *l = &e->layers[layer];
    char name[NAME];
    name_tensor(layer, &parts[0], name);
    const dc_st_tensor *w = dc_st_find(from->file, name);
    if (!w || w->ndim != 2 || w->shape[1] < 1 || w->shape[1] > DC_EXPERT_WIDTH)
        return fail(from->what, "a layer has no weights or is not 1 to 1024 wide");
    *l = (dc_expert_layer){.in = in, .out = (int)w->shape[1]};
    for (int p = 0; p < PARTS; p++)
        DC_TRY(read_part(e, from, layer, &parts[p]));
    if (!l->scale != !l->bias) return fail(from->what, "a layer has half a LayerNorm");
    return DC_OK;
}

static dc_status read_layers(dc_expert *e, source *from) {
    const dc_expert_facts *f = &facts[e->kind];
    char name[NAME];
    int in = f->obs;
    for (;; e->layer_count++) {
        name_tensor(e->layer_count, &parts[0], name);
        if (!dc_st_find(from->file, name)) break;
        if (e->layer_count == DC_EXPERT_LAYERS) return fail(from->what, "it has over 8 layers");
        DC_TRY(read_layer(e, from, e->layer_count, in));
        in = e->layers[e->layer_count].out;
    }
    const dc_expert_layer *last = e->layer_count ? &e->layers[e->layer_count - 1] : NULL;
    if (!last || last->out != f->act || last->scale)
        return fail(from->what, "its last layer is not this robot's");
    if (from->used != from->file->count)
        return fail(from->what, "it has tensors that belong to no layer");
    return DC_OK;
}

// What the metadata say of sizes must agree with the tensors.
static void list_hidden(const dc_expert *e, char out[8 * DC_EXPERT_LAYERS]) {
    int n = 0;
    out[0] = 0;
    for (int k = 0; k + 1 < e->layer_count; k++)
        n += snprintf(out + n, 8 * DC_EXPERT_LAYERS - (size_t)n, "%s%d", k ? "," : "",
                      e->layers[k].out);
}

static bool says(const dc_st_file *file, const char *key, const char *what) {
    const char *value = dc_st_meta_get(file, key);
    return value && !strcmp(value, what);
}

static dc_status check_sizes(const dc_expert *e, const source *from) {
    char obs[NUMBER], act[NUMBER], hidden[8 * DC_EXPERT_LAYERS];
    snprintf(obs, sizeof obs, "%d", facts[e->kind].obs);
    snprintf(act, sizeof act, "%d", facts[e->kind].act);
    list_hidden(e, hidden);
    if (says(from->file, "obs", obs) && says(from->file, "act", act) &&
        says(from->file, "hidden", hidden))
        return DC_OK;
    return fail(from->what, "its metadata and tensors disagree about obs, act or hidden");
}

// Columns in blocks, so that a block's sums stay in registers: (blocks, in, BLOCK), zeros past the last.
static dc_status pack(dc_expert *e) {
    for (int n = 0; n < e->layer_count; n++) {
        const dc_expert_layer *l = &e->layers[n];
        int blocks = (l->out + BLOCK - 1) / BLOCK;
        size_t size = (size_t)blocks * (size_t)l->in * BLOCK * sizeof(float);
        float *to = e->packed[n] = dc_arena_take(&e->arena, size);
        if (!to) return DC_NO_MEMORY;
        for (int i = 0; i < l->in; i++)
            for (int j = 0; j < l->out; j++)
                to[((size_t)(j / BLOCK) * (size_t)l->in + (size_t)i) * BLOCK +
                   (size_t)(j % BLOCK)] = l->w[(size_t)i * (size_t)l->out + (size_t)j];
    }
    return DC_OK;
}

static dc_status read_file(dc_expert *e, source *from) {
    DC_TRY(read_metas(e, from));
    DC_TRY(read_layers(e, from));
    DC_TRY(check_sizes(e, from));
    return pack(e);
}

static dc_status take(dc_expert *e, const char *what, dc_st_file *file) {
    *e = (dc_expert){0};
    dc_arena_init(&e->arena, 0);
    dc_status status = read_file(e, &(source){what, file, 0});
    dc_st_close(file);
    if (status != DC_OK) dc_expert_close(e);
    return status;
}

dc_status dc_expert_open(dc_expert *expert, const char *path) {
    dc_st_file file;
    *expert = (dc_expert){0};
    DC_TRY(dc_st_open(&file, path));
    return take(expert, path, &file);
}

dc_status dc_expert_parse(dc_expert *expert, const char *what, const void *bytes, size_t size) {
    dc_st_file file;
    *expert = (dc_expert){0};
    DC_TRY(dc_st_parse(&file, what, bytes, size));
    return take(expert, what, &file);
}

void dc_expert_close(dc_expert *expert) {
    dc_arena_fini(&expert->arena);
    *expert = (dc_expert){0};
}

dc_status dc_expert_need(const dc_expert *expert, const char *path, dc_expert_kind kind) {
    if (expert->kind == kind) return DC_OK;
    return dc_fail(DC_BAD_INPUT, "give an expert of that robot",
                   "an expert of the %s is needed, this one is of the %s (%s)", facts[kind].name,
                   facts[expert->kind].name, path);
}

dc_status dc_expert_find(dc_expert_kind kind, char path[DC_EXPERT_PATH]) {
    char folder[DC_EXPERT_PATH - NAME];
    bool installed = dc_install_folder("experts", folder, sizeof folder), exists = false;
    snprintf(path, DC_EXPERT_PATH, "%s/%s.safetensors", installed ? folder : DC_EXPERTS,
             facts[kind].name);
    DC_TRY(dc_file_find(path, &exists));
    if (exists) return DC_OK;
    char hint[128];
    snprintf(hint, sizeof hint, "dcrl expert train %s -o FILE makes one, --expert FILE takes it",
             facts[kind].name);
    return dc_fail(DC_IO, hint, "there is no trained expert of the %s (%s)", facts[kind].name,
                   path);
}

// ---- acting ----

// exp(x) on [-87, 88], flat outside: as env/ needs it, with steps that may never change.
static inline float exp_of(float x) {
    x = x < -87.0f ? -87.0f : x;
    x = x > 88.0f ? 88.0f : x;
    float shifted = x * 1.44269504f + 12582912.0f; // 1.5 * 2^23: rounds to the nearest whole number
    float k = shifted - 12582912.0f;
    float r = x - k * 0.693359375f; // ln 2 in two parts, the first exact in few bits
    r = r + k * 2.12194440e-4f;
    float p = 1.38888889e-3f;
    p = p * r + 8.33333333e-3f;
    p = p * r + 4.16666667e-2f;
    p = p * r + 1.66666667e-1f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    uint32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits << 23) + 0x3f800000; // low bits of `shifted` are k
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    return p * scale;
}

// x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3): the tanh form.
static inline float gelu_of(float x) {
    float u2 = 1.59576912f * x * (1.0f + 0.044715f * x * x);
    return x / (1.0f + exp_of(-u2));
}

static float tanh_of(float x) {
    float t = exp_of(-2.0f * fabsf(x)), y = (1.0f - t) / (1.0f + t);
    return x < 0 ? -y : y;
}

// y = x w + b: each output is its bias, then its products in the order of inputs. (out), rounded up to
// whole blocks.
static void apply(const dc_expert_layer *l, const float *packed, const float *x, float *y) {
    DC_CHECK(l->in > 0 && l->out > 0);
    for (int first = 0; first < l->out; first += BLOCK, packed += (ptrdiff_t)l->in * BLOCK) {
        int count = l->out - first < BLOCK ? l->out - first : BLOCK;
        float sum[BLOCK] = {0};
        for (int j = 0; j < count; j++)
            sum[j] = l->b[first + j];
        for (int i = 0; i < l->in; i++) {
            const float *w = packed + (ptrdiff_t)i * BLOCK;
#pragma omp simd
            for (int j = 0; j < BLOCK; j++)
                sum[j] += x[i] * w[j];
        }
        memcpy(y + first, sum, sizeof sum);
    }
}

// (y - mean) / sqrt(var + 1e-6) * scale + bias; sums one after the other.
static void normalise(const dc_expert_layer *l, float *y) {
    float sum = 0, squares = 0, count = (float)l->out;
    for (int j = 0; j < l->out; j++)
        sum += y[j];
    float mean = sum / count;
    for (int j = 0; j < l->out; j++)
        squares += (y[j] - mean) * (y[j] - mean);
    float rate = 1.0f / sqrtf(squares / count + 1e-6f);
    for (int j = 0; j < l->out; j++)
        y[j] = (y[j] - mean) * rate * l->scale[j] + l->bias[j];
}

void dc_expert_act(const dc_expert *expert, const float *obs, float *action) {
    float rows[2][DC_EXPERT_WIDTH];
    const float *x = obs;
    for (int n = 0; n < expert->layer_count; n++) {
        const dc_expert_layer *l = &expert->layers[n];
        float *y = rows[n % 2];
        apply(l, expert->packed[n], x, y);
        x = y;
        if (n + 1 == expert->layer_count) break;
#pragma omp simd
        for (int j = 0; j < l->out; j++)
            y[j] = gelu_of(y[j]);
        if (l->scale) normalise(l, y);
    }
    for (int k = 0; k < facts[expert->kind].act; k++)
        action[k] = tanh_of(x[k]);
}

// ---- writing ----

typedef struct writing {
    dc_st_tensor tensors[TENSORS];
    char names[TENSORS][NAME];
    size_t count;
    char obs[NUMBER], act[NUMBER], hidden[8 * DC_EXPERT_LAYERS], hash[DC_ST_HASH];
} writing;

static void add_tensor(writing *w, int layer, const part *p, const dc_expert_layer *l) {
    dc_st_tensor *t = &w->tensors[w->count];
    char *name = w->names[w->count++];
    name_tensor(layer, p, name);
    *t =
        (dc_st_tensor){.name = name, .dtype = DC_ST_F32, .ndim = p->ndim, .bytes = values_of(l, p)};
    int64_t rows = p->ndim == 2 ? l->in : 1;
    if (p->ndim == 2) t->shape[0] = l->in;
    t->shape[p->ndim - 1] = l->out;
    t->size = (size_t)(rows * l->out) * sizeof(float);
}

static dc_status list_tensors(const dc_expert *e, const char *path, writing *w) {
    for (int n = 0; n < e->layer_count; n++)
        for (int p = 0; p < PARTS; p++)
            if (values_of(&e->layers[n], &parts[p])) add_tensor(w, n, &parts[p], &e->layers[n]);
    for (size_t k = 0; k < w->count; k++)
        if (!is_finite(w->tensors[k].bytes, w->tensors[k].size / sizeof(float)))
            return dc_fail(DC_BAD_INPUT, "nothing was written",
                           "tensor '%s' of an expert holds NaN or Inf (%s)", w->names[k], path);
    return DC_OK;
}

// Bugs of the caller's.
static void check_layers(const dc_expert *e) {
    DC_CHECK(e->kind < DC_EXPERT_KINDS && e->layer_count >= 1 &&
             e->layer_count <= DC_EXPERT_LAYERS);
    int in = facts[e->kind].obs;
    for (int n = 0; n < e->layer_count; n++) {
        const dc_expert_layer *l = &e->layers[n];
        DC_CHECK(l->in == in && l->out >= 1 && l->out <= DC_EXPERT_WIDTH && l->w && l->b);
        DC_CHECK(!l->scale == !l->bias);
        in = l->out;
    }
    DC_CHECK(in == facts[e->kind].act && !e->layers[e->layer_count - 1].scale);
}

dc_status dc_expert_save(const char *path, const dc_expert *e) {
    writing w = {.count = 0};
    check_layers(e);
    snprintf(w.obs, sizeof w.obs, "%d", facts[e->kind].obs);
    snprintf(w.act, sizeof w.act, "%d", facts[e->kind].act);
    list_hidden(e, w.hidden);
    const dc_st_meta metas[METAS] = {
        {"format", FORMAT},      {"robot", facts[e->kind].name}, {"obs", w.obs},
        {"act", w.act},          {"hidden", w.hidden},           {"seed", e->seed},
        {"command", e->command}, {"scores", e->scores},          {"hash", w.hash},
    };
    DC_TRY(list_tensors(e, path, &w));
    dc_st_hash(w.tensors, w.count, metas, METAS, w.hash);
    return dc_st_write(path, w.tensors, w.count, metas, METAS);
}
