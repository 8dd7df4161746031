// Expert files: what is written is read, acts as the equations say and with the same bits everywhere; and files
// that are damaged, too large or another robot's are refused with one clear error.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/hash.h"
#include "made_up.h"

static char folder[] = "/tmp/dcrl_expert_XXXXXX";

static const char *in_folder(const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_expert(const char *name, dc_expert_kind kind, bool norm, uint64_t seed) {
    made_up m;
    made_up_expert(&m, kind, (int[]){256, 256}, 3, norm, seed);
    assert_int_equal(dc_expert_save(in_folder(name), &m.expert), DC_OK);
    free(m.numbers);
}

// The equations in double, with the libraries' own functions.
static void act_in_double(const dc_expert *e, const float *obs, double *out) {
    static double rows[2][DC_EXPERT_WIDTH];
    for (int i = 0; i < e->layers[0].in; i++)
        rows[1][i] = (double)obs[i];
    for (int n = 0; n < e->layer_count; n++) {
        const dc_expert_layer *l = &e->layers[n];
        double *x = rows[(n + 1) % 2], *y = rows[n % 2], mean = 0, var = 0;
        for (int j = 0; j < l->out; j++) {
            y[j] = (double)l->b[j];
            for (int i = 0; i < l->in; i++)
                y[j] += x[i] * (double)l->w[i * l->out + j];
            out[j % 32] = y[j];
            if (n + 1 == e->layer_count) continue;
            y[j] *= 0.5 * (1 + tanh(0.7978845608028654 * (y[j] + 0.044715 * y[j] * y[j] * y[j])));
            mean += y[j] / l->out;
        }
        for (int j = 0; j < l->out; j++)
            var += (y[j] - mean) * (y[j] - mean) / l->out;
        for (int j = 0; l->scale && j < l->out; j++)
            y[j] = (y[j] - mean) / sqrt(var + 1e-6) * (double)l->scale[j] + (double)l->bias[j];
    }
    for (int k = 0; k < dc_expert_facts_of(e->kind)->act; k++)
        out[k] = tanh(out[k]);
}

static void make_obs(float *obs, int count, int row) {
    for (int k = 0; k < count; k++)
        obs[k] = (float)((k * 37 + row * 101) % 64 - 32) / 16;
}

static void test_acts_as_the_equations_say(void **state) {
    (void)state;
    for (dc_expert_kind kind = 0; kind < DC_EXPERT_KINDS; kind++) {
        const dc_expert_facts *f = dc_expert_facts_of(kind);
        dc_expert e;
        write_expert("a", kind, kind == 1, 3);
        assert_int_equal(dc_expert_open(&e, in_folder("a")), DC_OK);
        assert_int_equal(dc_expert_need(&e, "a", kind), DC_OK);
        assert_int_equal(dc_expert_need(&e, "a", (kind + 1) % 3), DC_BAD_INPUT);
        assert_string_equal(e.command, "made up by a test");
        double spread = 0;
        for (int row = 0; row < 50; row++) {
            float obs[128], action[32];
            double exact[32];
            make_obs(obs, f->obs, row);
            dc_expert_act(&e, obs, action);
            act_in_double(&e, obs, exact);
            for (int k = 0; k < f->act; k++) {
                assert_true(fabs((double)action[k] - exact[k]) < 3e-6);
                spread += exact[k] * exact[k] / (50 * f->act);
            }
        }
        assert_true(spread > 0.1 && spread < 0.9);
        dc_expert_close(&e);
        dc_expert_close(&e);
    }
}

// Of every build and machine: with and without vector registers, gcc and clang.
static void test_bits_are_fixed(void **state) {
    (void)state;
    static const uint64_t want[DC_EXPERT_KINDS] = {0xa0d2ff485bb2be4b, 0x187831065eca21c5,
                                                   0xb2f4d39475c9f841};
    bool wrong = false;
    for (dc_expert_kind kind = 0; kind < DC_EXPERT_KINDS; kind++) {
        dc_expert e;
        uint64_t hash = 0;
        write_expert("b", kind, kind == 1, 4);
        assert_int_equal(dc_expert_open(&e, in_folder("b")), DC_OK);
        for (int row = 0; row < 200; row++) {
            float obs[128], action[32];
            make_obs(obs, dc_expert_facts_of(kind)->obs, row);
            dc_expert_act(&e, obs, action);
            hash = dc_hash(action, (size_t)dc_expert_facts_of(kind)->act * sizeof *action, hash);
        }
        dc_expert_close(&e);
        if (hash != want[kind])
            print_error("robot %d: 0x%016llx\n", kind, (unsigned long long)hash);
        wrong |= hash != want[kind];
    }
    assert_false(wrong);
}

// Extreme activations end within [-1, 1].
static void test_extremes(void **state) {
    (void)state;
    dc_expert e;
    write_expert("c", DC_EXPERT_ANT, false, 5);
    assert_int_equal(dc_expert_open(&e, in_folder("c")), DC_OK);
    float obs[29], action[8];
    for (int k = 0; k < 29; k++)
        obs[k] = k % 2 ? 1e30f : -1e30f;
    dc_expert_act(&e, obs, action);
    for (int k = 0; k < 8; k++)
        assert_true(fabsf(action[k]) <= 1);
    dc_expert_close(&e);
}

// ---- what is refused ----

static void refuse(const char *bytes, size_t n, const char *word) {
    dc_expert e;
    assert_int_equal(dc_expert_parse(&e, "x", bytes, n), DC_BAD_INPUT);
    if (!strstr(dc_error(), word)) print_error("'%s' is not in: %s\n", word, dc_error());
    assert_non_null(strstr(dc_error(), word));
    dc_expert_close(&e);
}

static void test_damaged_files(void **state) {
    (void)state;
    char *bytes;
    size_t n;
    write_expert("d", DC_EXPERT_ANT, true, 6);
    assert_int_equal(dc_file_read(in_folder("d"), 1 << 24, &bytes, &n), DC_OK);
    dc_expert e;
    assert_int_equal(dc_expert_parse(&e, "x", bytes, n), DC_OK);
    dc_expert_close(&e);
    for (size_t cut = 0; cut < n; cut += 1 + n / 61)
        refuse(bytes, cut, "(x)");
    bytes[n - 1] ^= 1;
    refuse(bytes, n, "damaged");
    bytes[n - 1] ^= 1;
    char *robot = strstr(bytes + 8, "\"ant\"");
    memcpy(robot, "\"bee\"", 5);
    refuse(bytes, n, "none of ant, antball, humanoid");
    free(bytes);
}

// A file with a right hash whose content is wrong.
static void refuse_saved(const dc_st_tensor *tensors, size_t count, const char *robot,
                         const char *hidden, const char *word) {
    char hash[DC_ST_HASH];
    dc_st_meta metas[] = {{"format", "dcrl expert 1"},
                          {"robot", robot},
                          {"obs", "29"},
                          {"act", "8"},
                          {"hidden", hidden},
                          {"seed", "0"},
                          {"command", ""},
                          {"scores", "{}"},
                          {"hash", hash}};
    dc_st_hash(tensors, count, metas, 9, hash);
    assert_int_equal(dc_st_write(in_folder("e"), tensors, count, metas, 9), DC_OK);
    dc_expert e;
    assert_int_equal(dc_expert_open(&e, in_folder("e")), DC_BAD_INPUT);
    if (!strstr(dc_error(), word)) print_error("'%s' is not in: %s\n", word, dc_error());
    assert_non_null(strstr(dc_error(), word));
}

static void test_wrong_content(void **state) {
    (void)state;
    static float w[29 * 2048], nan[8] = {0, NAN};
    dc_st_tensor t[] = {
        {.name = "0/w", .ndim = 2, .shape = {29, 8}, .bytes = w, .size = 29 * 8 * 4},
        {.name = "0/b", .ndim = 1, .shape = {8}, .bytes = w, .size = 32},
        {.name = "0/scale", .ndim = 1, .shape = {8}, .bytes = w, .size = 32},
    };
    refuse_saved(t, 3, "ant", "", "half a LayerNorm");
    refuse_saved(t, 2, "ant", "8", "disagree");
    refuse_saved(t, 2, "humanoid", "", "'0/w'");
    refuse_saved(t, 1, "ant", "", "'0/b'");
    refuse_saved(t + 1, 1, "ant", "", "last layer");
    t[2].name = "1/b";
    refuse_saved(t, 3, "ant", "", "no layer");
    t[1].bytes = nan;
    refuse_saved(t, 2, "ant", "", "NaN");
    t[1].dtype = DC_ST_I32;
    refuse_saved(t, 2, "ant", "", "'0/b'");
    t[0].shape[1] = 2048;
    t[0].size = sizeof w;
    refuse_saved(t, 1, "ant", "", "wide");
    t[0].shape[0] = 0;
    t[0].size = 0;
    refuse_saved(t, 1, "ant", "", "wide");
}

static void test_save_refuses_nan(void **state) {
    (void)state;
    made_up m;
    made_up_expert(&m, DC_EXPERT_ANT, NULL, 1, false, 7);
    m.numbers[5] = INFINITY;
    assert_int_equal(dc_expert_save(in_folder("f"), &m.expert), DC_BAD_INPUT);
    assert_int_not_equal(access(in_folder("f"), F_OK), 0);
    free(m.numbers);
}

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    char command[64];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_acts_as_the_equations_say),
        cmocka_unit_test(test_bits_are_fixed),
        cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_damaged_files),
        cmocka_unit_test(test_wrong_content),
        cmocka_unit_test(test_save_refuses_nan),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
