// The kernels of encoders' convolutions (backend/cuda/trunk_kernels.cuh), run on the CPU: outputs and gradients beside
// loops in double over the same numbers, rounded to bf16 where the kernels round.
#include "cuda_on_host.h"

#include "backend/cuda/trunk_kernels.cuh"

#include <algorithm>

enum { ROWS = 3, BLOCKS = 2 };

static uint64_t state = 1;

static float uniform() { // in [-1, 1)
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (float)(int32_t)(state >> 33) / (1 << 30) - 1;
}

static std::vector<float> numbers(size_t count, float scale) {
    std::vector<float> v(count);
    for (float &x : v)
        x = scale * uniform();
    return v;
}

static double round_of(double x) {
    return float_of(bits_of((float)x));
}

typedef std::vector<double> picture; // (side, side, channels)

struct conv_weights {
    int c, d;
    std::vector<float> w, b;
    std::vector<double> dw, db;
};

static picture convolution(const conv_weights &k, const picture &x, int side) {
    picture y((size_t)(side * side * k.d));
    for (int p = 0; p < side * side; p++)
        for (int o = 0; o < k.d; o++) {
            double sum = k.b[(size_t)o];
            for (int tap = 0; tap < 9; tap++) {
                int v = p / side + tap / 3 - 1, u = p % side + tap % 3 - 1;
                if (v < 0 || u < 0 || v >= side || u >= side) continue;
                for (int c = 0; c < k.c; c++)
                    sum += x[(size_t)((v * side + u) * k.c + c)] *
                           round_of(k.w[(size_t)((tap * k.c + c) * k.d + o)]);
            }
            y[(size_t)(p * k.d + o)] = sum;
        }
    return y;
}

// Adds to dW and db, and returns dx.
static picture convolution_back(conv_weights *k, const picture &x, const picture &dy, int side) {
    picture dx(x.size());
    for (int p = 0; p < side * side; p++)
        for (int o = 0; o < k->d; o++) {
            double g = dy[(size_t)(p * k->d + o)];
            k->db[(size_t)o] += g;
            for (int tap = 0; g != 0 && tap < 9; tap++) { // behind a pool most are 0
                int v = p / side + tap / 3 - 1, u = p % side + tap % 3 - 1;
                if (v < 0 || u < 0 || v >= side || u >= side) continue;
                for (int c = 0; c < k->c; c++) {
                    size_t at = (size_t)((v * side + u) * k->c + c),
                           w = (size_t)((tap * k->c + c) * k->d + o);
                    dx[at] += g * round_of(k->w[w]);
                    k->dw[w] += g * x[at];
                }
            }
        }
    return dx;
}

static picture rounded(picture x) {
    for (double &v : x)
        v = round_of(v);
    return x;
}

static picture positive(picture x) {
    for (double &v : x)
        v = v > 0 ? v : 0;
    return x;
}

static picture where(const picture &by, picture x) {
    for (size_t i = 0; i < x.size(); i++)
        x[i] = by[i] > 0 ? x[i] : 0;
    return x;
}

struct stage_values {
    picture x, p, m, out;
    std::vector<int> from; // number of the convolution that p took
};

static stage_values stage_reference(conv_weights *k, const picture &x, int side, bool last) {
    stage_values s;
    int out = side / 2, d = k[0].d;
    s.x = x;
    picture y = rounded(convolution(k[0], x, side));
    for (int i = 0; i < out * out * d; i++) {
        int c = i % d, u0 = i / d % out * 2, v0 = i / d / out * 2, best = -1;
        for (int v = v0; v < v0 + 3 && v < side; v++)
            for (int u = u0; u < u0 + 3 && u < side; u++) {
                int at = (v * side + u) * d + c;
                if (best < 0 || y[(size_t)at] > y[(size_t)best]) best = at;
            }
        s.p.push_back(y[(size_t)best]);
        s.from.push_back(best);
    }
    s.m = positive(rounded(convolution(k[1], positive(s.p), out)));
    s.out = convolution(k[2], s.m, out);
    for (size_t i = 0; i < s.out.size(); i++)
        s.out[i] = round_of(s.out[i] + s.p[i]);
    if (last) s.out = positive(s.out);
    return s;
}

static picture stage_back(conv_weights *k, const stage_values &s, const picture &dout, int side) {
    int out = side / 2, d = k[0].d;
    picture dm = rounded(where(s.m, convolution_back(&k[2], s.m, dout, out)));
    picture dp = where(s.p, convolution_back(&k[1], positive(s.p), dm, out));
    picture dy((size_t)(side * side * d));
    for (size_t i = 0; i < dp.size(); i++)
        dy[(size_t)s.from[i]] += round_of(dp[i] + dout[i]);
    return rounded(convolution_back(&k[0], s.x, rounded(dy), side));
}

static int failures;

static void compare(const char *what, int number, double got, double want, double scale,
                    double within) {
    if (fabs(got - want) <= within * scale) return;
    if (failures++ < 20)
        printf("%s, number %d: %g, and it should be %g (of %g)\n", what, number, got, want, scale);
}

template <typename A, typename B>
static void compare_all(const char *what, const A &got, const B &want, int count, double within) {
    double most = 0;
    for (int i = 0; i < count; i++)
        most = fmax(most, fabs((double)want[i]));
    for (int i = 0; i < count; i++)
        compare(what, i, (double)got[i], (double)want[i], most, within);
}

template <typename T> static T *room(std::vector<std::vector<T>> *all, size_t count) {
    all->emplace_back(count);
    return all->back().data();
}

// One block's shared memory; what lies behind it must stay as it is.
static std::vector<uint16_t> shared_memory(int bytes) {
    return std::vector<uint16_t>((size_t)bytes / 2 + 64, 0x7fc0); // NaN
}

static void run(const trunk &t, int blocks, int bytes, void (*block)(const trunk &, bits *)) {
    std::vector<uint16_t> memory = shared_memory(bytes);
    bits *at = (bits *)(((uintptr_t)memory.data() + 15) / 16 * 16);
    host::launch(blocks, TRUNK_THREADS, [&] { block(t, at); });
    for (bits *end = at + bytes / 2; end < memory.data() + memory.size(); end++)
        if (*end != 0x7fc0) host::fail("wrote beyond shared memory");
}

static void test_trunk(int channels) {
    conv_weights k[CONVS];
    std::vector<std::vector<bits>> memory;
    std::vector<std::vector<uint8_t>> places;
    memory.reserve(32);
    places.reserve(8);
    trunk t = {};
    t.rows = ROWS;
    t.channels = channels;
    for (int i = 0; i < CONVS; i++) {
        k[i].c = inputs_of(t, i);
        k[i].d = channels_of(i / 3);
        k[i].w = numbers((size_t)(9 * k[i].c * k[i].d), 1.5f / sqrtf(9.0f * (float)k[i].c));
        k[i].b = numbers((size_t)k[i].d, 0.3f);
        k[i].dw.resize(k[i].w.size());
        k[i].db.resize(k[i].b.size());
        t.w[i] = k[i].w.data();
        t.b[i] = k[i].b.data();
    }
    t.x_step = SIDE * SIDE * channels;
    std::vector<float> x = numbers((size_t)(ROWS * t.x_step), 1);
    for (float &v : x)
        v = (float)round_of(v);
    std::fill(x.begin(), x.begin() + t.x_step, 0.5f); // of equals the first counts
    t.x = x.data();
    for (int s = 0; s < STAGES; s++) {
        size_t cells = (size_t)(ROWS * cells_of_stage(s));
        t.pool[s] = room(&memory, cells);
        t.middle[s] = room(&memory, cells);
        t.out[s] = room(&memory, cells);
        t.grad[s] = room(&memory, cells);
        t.argmax[s] = room(&places, cells);
    }
    run(t, BLOCKS, TRUNK_FORWARD_BYTES, trunk_forward_block);

    t.lo = 1;
    t.hi = ROWS;
    std::vector<bits> dout((size_t)((ROWS - 1) * cells_of_stage(STAGES - 1)));
    for (bits &v : dout)
        v = bits_of(uniform());
    t.dout = dout.data();
    std::vector<float> parts((size_t)(BLOCKS * trunk_parts(t)), NAN);
    t.parts = parts.data();
    run(t, BLOCKS, TRUNK_BACKWARD_BYTES, trunk_backward_block);

    for (int r = 0; r < ROWS; r++) {
        picture at(x.begin() + r * t.x_step, x.begin() + (r + 1) * t.x_step);
        stage_values s[STAGES];
        for (int i = 0; i < STAGES; i++) {
            s[i] = stage_reference(k + 3 * i, i ? s[i - 1].out : at, SIDE >> i, i == STAGES - 1);
            int cells = cells_of_stage(i);
            std::vector<float> out, pool;
            for (int c = 0; c < cells; c++) {
                out.push_back(float_of(t.out[i][r * cells + c]));
                pool.push_back(float_of(t.pool[i][r * cells + c]));
            }
            compare_all("pool", pool, s[i].p, cells, 0.01);
            compare_all("output", out, s[i].out, cells, 0.01);
            // From here on with the kernels' own numbers: a place that is taken by a hair is no error.
            s[i].out.assign(out.begin(), out.end());
            s[i].p.assign(pool.begin(), pool.end());
            for (int c = 0; c < cells; c++) {
                s[i].m[(size_t)c] = float_of(t.middle[i][r * cells + c]);
                int d = k[3 * i].d, side = SIDE >> (i + 1), place = t.argmax[i][r * cells + c];
                int v = c / d / side * 2 + place / 3, u = c / d % side * 2 + place % 3;
                int from = (v * 2 * side + u) * d + c % d;
                if (r == 0) compare("place", c, from, s[i].from[(size_t)c], 1, 0);
                s[i].from[(size_t)c] = from;
            }
        }
        if (r < t.lo) continue;
        picture gradient;
        int cells = cells_of_stage(STAGES - 1);
        for (int c = 0; c < cells; c++)
            gradient.push_back(float_of(dout[(size_t)((r - t.lo) * cells + c)]));
        gradient = where(s[STAGES - 1].out, gradient);
        for (int i = STAGES - 1; i >= 0; i--)
            gradient = stage_back(k + 3 * i, s[i], gradient, SIDE >> i);
    }
    for (int i = 0; i < CONVS; i++) {
        int weights = 9 * k[i].c * k[i].d;
        std::vector<double> sum((size_t)(weights + k[i].d));
        for (int b = 0; b < BLOCKS; b++)
            for (size_t c = 0; c < sum.size(); c++)
                sum[c] += parts[(size_t)(b * trunk_parts(t) + part_of(t, i)) + c];
        char name[32];
        snprintf(name, sizeof name, "dW of conv%d", i);
        compare_all(name, sum, k[i].dw, weights, 0.01);
        snprintf(name, sizeof name, "db of conv%d", i);
        compare_all(name, sum.data() + weights, k[i].db, k[i].d, 0.01);
    }
    printf("%d channels: shared memory %d and %d bytes\n", channels, TRUNK_FORWARD_BYTES,
           TRUNK_BACKWARD_BYTES);
}

int main() {
    test_trunk(3);
    test_trunk(6);
    if (failures) printf("%d numbers differ\n", failures);
    return failures ? 1 : 0;
}
