// Option tables, see options.h. A row says where a field lies in its struct and what it may hold;
// all that is done with options walks the rows. Text is the common form: defaults, flags, and
// members of a config file all end in set_value(), so a value passes one check, wherever it comes
// from. Files and flags come in through dc_options_read and dc_options_set; values go out through
// dc_options_json to a run's config.json, which reads back to the same bits.
#include "base/options.h"

#include "base/number.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { WORD_MAX = 64, NAMES_MAX = 256, HELP_COLUMN = 26 };

// ---- fields

static void *field(const dc_option *o, void *config) {
    return (char *)config + o->offset;
}

static const void *field_of(const dc_option *o, const void *config) {
    return (const char *)config + o->offset;
}

// ---- choices: "a|b|c"

// The text and length of choice number `index`, or NULL past the last.
static const char *choice_at(const char *choices, int index, size_t *length) {
    while (choices && index-- > 0) {
        choices = strchr(choices, '|');
        if (choices) choices++;
    }
    if (choices) *length = strcspn(choices, "|");
    return choices;
}

static int choice_index(const char *choices, const char *word) {
    size_t length, n = strlen(word);
    const char *c;
    for (int i = 0; (c = choice_at(choices, i, &length)); i++)
        if (length == n && !memcmp(c, word, n)) return i;
    return -1;
}

// ---- errors: each says what the option takes, and what it got

// A bound, with 1000000000000 as 1e12.
static void write_bound(double x, char out[DC_NUMBER_MAX]) {
    size_t n = dc_number_write(x, out), zeros = 0;
    while (zeros < n && out[n - 1 - zeros] == '0')
        zeros++;
    if (zeros >= 6 && !strpbrk(out, ".e"))
        snprintf(out + n - zeros, 8, "e%u", (unsigned)zeros % 100);
    char *plus = strchr(out, '+'); // "1e+15"
    if (plus) memmove(plus, plus + 1, strlen(plus));
}

static const char *range(const dc_option *o, char out[2 * DC_NUMBER_MAX + 8]) {
    char min[DC_NUMBER_MAX], max[DC_NUMBER_MAX];
    write_bound(o->min, min);
    write_bound(o->max, max);
    snprintf(out, 2 * DC_NUMBER_MAX + 8, "%s and %s", min, max);
    return out;
}

static dc_status fail_range(const dc_option *o, const char *kind, const char *value) {
    char text[2 * DC_NUMBER_MAX + 8];
    return dc_fail(DC_USAGE, NULL, "%s must be %sbetween %s (%.100s)", o->name, kind,
                   range(o, text), value);
}

// The choices as "a, b, c".
static void list_choices(const char *choices, char *out, size_t room) {
    size_t used = 0;
    for (; *choices && used + 3 < room; choices++) {
        out[used++] = *choices == '|' ? ',' : *choices;
        if (*choices == '|') out[used++] = ' ';
    }
    out[used] = 0;
}

static dc_status fail_choice(const dc_option *o, const char *value) {
    char list[512];
    list_choices(o->choices, list, sizeof list);
    return dc_fail(DC_USAGE, NULL, "%s must be one of %s (%.100s)", o->name, list, value);
}

// ---- setting one value from text

static bool scan_all(const char *s) {
    size_t n = strlen(s);
    return n && dc_number_scan(s, n, DC_GRAMMAR_LOOSE) == n;
}

static dc_status set_int(const dc_option *o, const char *value, int64_t *out) {
    int64_t x;
    if (!scan_all(value)) return fail_range(o, "a whole number ", value);
    if (!dc_number_int(value, &x)) {
        // Too large, or not whole: tell which.
        double real;
        bool large = !dc_number_real(value, &real) || real < o->min || real > o->max;
        return fail_range(o, large ? "" : "a whole number ", value);
    }
    if ((double)x < o->min || (double)x > o->max) return fail_range(o, "", value);
    *out = x;
    return DC_OK;
}

static dc_status set_real(const dc_option *o, const char *value, double *out) {
    double x;
    if (choice_index(o->choices, value) == 0) {
        *out = DC_AUTO;
        return DC_OK;
    }
    if (!scan_all(value))
        return fail_range(o, o->choices ? "auto, or a number " : "a number ", value);
    if (!dc_number_real(value, &x) || x < o->min || x > o->max) return fail_range(o, "", value);
    *out = x;
    return DC_OK;
}

static dc_status set_bool(const dc_option *o, const char *value, bool *out) {
    int i = choice_index("off|on|false|true|0|1", value);
    if (i < 0) return dc_fail(DC_USAGE, NULL, "%s must be on or off (%.100s)", o->name, value);
    *out = i & 1;
    return DC_OK;
}

static dc_status set_text(const dc_option *o, const char *value, char *out) {
    size_t n = strlen(value);
    if (n >= DC_TEXT_MAX)
        return dc_fail(DC_USAGE, NULL, "%s must be at most %d bytes long (%zu)", o->name,
                       DC_TEXT_MAX - 1, n);
    if (!dc_json_utf8(value, n))
        return dc_fail(DC_USAGE, NULL, "%s must be valid UTF-8 (%s)", o->name, value);
    memset(out, 0, DC_TEXT_MAX); // equal values are equal bytes
    memcpy(out, value, n);
    return DC_OK;
}

static dc_status set_choice(const dc_option *o, const char *value, int *out) {
    int i = choice_index(o->choices, value);
    if (i < 0) return fail_choice(o, value);
    *out = i;
    return DC_OK;
}

static dc_status set_list(const dc_option *o, const char *value, dc_int_list *out) {
    dc_int_list list = {0};
    const char *at = value;
    bool more = *value || *o->init; // an empty list only where the default is one
    while (more) {
        char item[WORD_MAX];
        size_t n = strcspn(at, ",");
        if (n >= sizeof item) return fail_range(o, "whole numbers ", value);
        memcpy(item, at, n);
        item[n] = 0;
        if (list.count == DC_LIST_MAX)
            return dc_fail(DC_USAGE, NULL, "%s must be a list of at most %d numbers (%.100s)",
                           o->name, DC_LIST_MAX, value);
        if (set_int(o, item, &list.v[list.count++]) != DC_OK)
            return fail_range(o, "comma-separated whole numbers ", value);
        more = at[n] == ',';
        at += n + 1;
    }
    *out = list;
    return DC_OK;
}

static dc_status set_value(const dc_option *o, void *config, const char *value) {
    void *to = field(o, config);
    switch (o->kind) {
    case DC_INT:
        return set_int(o, value, to);
    case DC_REAL:
        return set_real(o, value, to);
    case DC_BOOL:
        return set_bool(o, value, to);
    case DC_TEXT:
        return set_text(o, value, to);
    case DC_CHOICE:
        return set_choice(o, value, to);
    case DC_LIST:
        return set_list(o, value, to);
    }
    dc_bug(__FILE__, __LINE__, "a known kind of option");
}

// ---- names

static char plain(char c) {
    return c == '-' ? '_' : (char)tolower((unsigned char)c);
}

static int min2(int a, int b) {
    return a < b ? a : b;
}

// Edits from a to b: insert, delete, replace, or swap two neighbours; '-' and '_' are the same, so
// are capitals. Words past WORD_MAX are far from everything.
static int distance(const char *a, const char *b) {
    int rows[3][WORD_MAX + 1];
    size_t m = strlen(a), n = strlen(b);
    if (m > WORD_MAX || n > WORD_MAX) return WORD_MAX;
    int *before = rows[0], *last = rows[1], *now = rows[2];
    for (size_t j = 0; j <= n; j++)
        last[j] = (int)j;
    for (size_t i = 1; i <= m; i++) {
        now[0] = (int)i;
        for (size_t j = 1; j <= n; j++) {
            char x = plain(a[i - 1]), y = plain(b[j - 1]);
            now[j] = min2(last[j - 1] + (x != y), 1 + min2(last[j], now[j - 1]));
            if (i > 1 && j > 1 && x == plain(b[j - 2]) && plain(a[i - 2]) == y)
                now[j] = min2(now[j], before[j - 2] + 1);
        }
        int *spare = before;
        before = last;
        last = now;
        now = spare;
    }
    return last[n];
}

const char *dc_nearest(const char *word, const char *const *names, size_t count) {
    const char *best = NULL;
    int least = WORD_MAX;
    for (size_t i = 0; i < count; i++) {
        int d = distance(word, names[i]);
        if (d >= least) continue;
        least = d;
        best = names[i];
    }
    // Near means: about one slip in three letters.
    return best && least <= 1 + (int)strlen(best) / 4 && least < (int)strlen(best) ? best : NULL;
}

static dc_status fail_unknown(const dc_option *table, const char *name) {
    const char *names[NAMES_MAX] = {NULL};
    size_t count = 0;
    for (; table->name && count < NAMES_MAX; table++)
        names[count++] = table->name;
    const char *near = dc_nearest(name, names, count);
    if (near)
        return dc_fail(DC_USAGE, NULL, "unknown option '%.100s': did you mean '%s'?", name, near);
    // Else all there are.
    char list[512];
    size_t used = 0;
    for (size_t i = 0; i < count && used + 80 < sizeof list; i++)
        used +=
            (size_t)snprintf(list + used, sizeof list - used, "%s%.70s", i ? ", " : "", names[i]);
    return dc_fail(DC_USAGE, NULL, "unknown option '%.100s': the options are %s", name,
                   count ? list : "none");
}

const dc_option *dc_options_find(const dc_option *table, const char *name) {
    for (; table->name; table++)
        if (!strcmp(table->name, name)) return table;
    return NULL;
}

// ---- the interface

void dc_options_init(const dc_option *table, void *config) {
    for (; table->name; table++)
        if (set_value(table, config, table->init) != DC_OK) dc_bug(__FILE__, __LINE__, dc_error());
}

dc_status dc_options_set(const dc_option *table, void *config, const char *name,
                         const char *value) {
    const dc_option *o = dc_options_find(table, name);
    return o ? set_value(o, config, value) : fail_unknown(table, name);
}

bool dc_options_is_auto(const dc_option *o, const void *config) {
    return o->kind == DC_REAL && o->choices && *(const double *)field_of(o, config) <= DC_AUTO;
}

void dc_options_value(const dc_option *o, const void *config, dc_text *out) {
    const void *from = field_of(o, config);
    switch (o->kind) {
    case DC_INT:
        dc_text_add(out, "%lld", (long long)*(const int64_t *)from);
        break;
    case DC_REAL:
        if (dc_options_is_auto(o, config))
            dc_text_add(out, "auto");
        else
            dc_json_number(out, *(const double *)from);
        break;
    case DC_BOOL:
        dc_text_add(out, "%s", *(const bool *)from ? "on" : "off");
        break;
    case DC_TEXT:
        dc_text_add(out, "%s", (const char *)from);
        break;
    case DC_CHOICE: {
        size_t n = 0;
        const char *c = choice_at(o->choices, *(const int *)from, &n);
        DC_CHECK(c);
        dc_text_bytes(out, c, n);
        break;
    }
    case DC_LIST: {
        const dc_int_list *list = from;
        for (int i = 0; i < list->count; i++)
            dc_text_add(out, "%s%lld", i ? "," : "", (long long)list->v[i]);
        break;
    }
    }
}

// One value in JSON: text and choices are quoted, lists are bracketed.
static void value_json(const dc_option *o, const void *config, dc_text *out) {
    dc_text plain_value;
    dc_text_init(&plain_value);
    dc_options_value(o, config, &plain_value);
    const char *s = plain_value.bytes ? plain_value.bytes : "";
    if (o->kind == DC_TEXT || o->kind == DC_CHOICE || dc_options_is_auto(o, config))
        dc_json_quote(out, s);
    else if (o->kind == DC_LIST)
        dc_text_add(out, "[%s]", s);
    else if (o->kind == DC_BOOL)
        dc_text_add(out, "%s", *(const bool *)field_of(o, config) ? "true" : "false");
    else
        dc_text_add(out, "%s", s);
    dc_text_follow(out, &plain_value);
    dc_text_fini(&plain_value);
}

void dc_options_json(const dc_option *table, const void *config, dc_text *out) {
    for (const dc_option *o = table; o->name; o++) {
        dc_text_add(out, "%s  ", o == table ? "" : ",\n");
        dc_json_quote(out, o->name);
        dc_text_add(out, ": ");
        value_json(o, config, out);
    }
}

// ---- reading from JSON

// An array of numbers as a,b,c.
static dc_status array_text(const dc_option *o, const dc_json *array, dc_text *out) {
    for (const dc_json *c = array->child; c; c = c->next) {
        if (c->kind != DC_JSON_NUMBER)
            return dc_fail(DC_BAD_INPUT, NULL, "%s must be an array of whole numbers", o->name);
        dc_text_add(out, "%s%s", c == array->child ? "" : ",", c->text);
    }
    return DC_OK;
}

static dc_status member_text(const dc_option *o, const dc_json *member, dc_text *out) {
    bool text = o->kind == DC_TEXT || o->kind == DC_CHOICE;
    switch (member->kind) {
    case DC_JSON_STRING:
        if (strlen(member->text) != member->text_length)
            return dc_fail(DC_BAD_INPUT, NULL, "%s must not hold NUL", o->name);
        dc_text_add(out, "%s", member->text);
        return DC_OK;
    case DC_JSON_NUMBER:
        if (text) break;
        dc_text_add(out, "%s", member->text);
        return DC_OK;
    case DC_JSON_BOOL:
        if (o->kind != DC_BOOL) break;
        dc_text_add(out, "%s", member->truth ? "true" : "false");
        return DC_OK;
    case DC_JSON_ARRAY:
        if (o->kind != DC_LIST) break;
        return array_text(o, member, out);
    case DC_JSON_NULL:
    case DC_JSON_OBJECT:
        break;
    }
    static const char *const takes[] = {"a whole number", "a number", "true or false",
                                        "a string",       "a string", "an array of whole numbers"};
    return dc_fail(DC_BAD_INPUT, NULL, "%s must be %s", o->name, takes[o->kind]);
}

static dc_status read_member(const dc_option *table, void *config, const dc_json *member) {
    const dc_option *o = dc_options_find(table, member->key);
    if (!o) return fail_unknown(table, member->key);
    dc_text text;
    dc_text_init(&text);
    dc_status status = member_text(o, member, &text);
    if (status == DC_OK) status = dc_text_status(&text);
    if (status == DC_OK) status = set_value(o, config, text.bytes ? text.bytes : "");
    dc_text_fini(&text);
    return status;
}

dc_status dc_options_read(const dc_option *table, void *config, const dc_json *object) {
    if (!object || object->kind != DC_JSON_OBJECT)
        return dc_fail(DC_BAD_INPUT, NULL, "options must be a JSON object");
    for (const dc_json *c = object->child; c; c = c->next) {
        dc_status status = read_member(table, config, c);
        // What is a usage error on the command line is a malformed file here.
        if (status != DC_OK) return status == DC_USAGE ? DC_BAD_INPUT : status;
    }
    return DC_OK;
}

// ---- help

// What stands behind the flag.
static const char *value_word(const dc_option *o) {
    static const char *const words[] = {"N", "X", "on|off", "TEXT", "WORD", "N,N,.."};
    return words[o->kind];
}

static void help_row(const dc_option *o, bool as_flag, dc_text *out) {
    char flag[128], text[2 * DC_NUMBER_MAX + 8];
    const char *shape = !as_flag ? "%s=%s" : o->kind == DC_BOOL ? "--%s[=%s]" : "--%s %s";
    snprintf(flag, sizeof flag, shape, o->name, value_word(o));
    for (char *c = flag; as_flag && *c && *c != ' ' && *c != '['; c++)
        if (*c == '_') *c = '-';
    dc_text_add(out, "  %-*s %s (", HELP_COLUMN, flag, o->help);
    if (*o->init) dc_text_add(out, "default %s", o->init);
    const char *comma = *o->init ? "; " : "";
    if (o->kind == DC_INT || o->kind == DC_REAL || o->kind == DC_LIST)
        dc_text_add(out, "%s%sbetween %s", comma, o->choices ? "auto, or " : "", range(o, text));
    else if (o->kind == DC_CHOICE)
        dc_text_add(out, "%s%s", comma, o->choices);
    else if (!*o->init)
        dc_text_add(out, "no default");
    dc_text_add(out, ")\n");
}

void dc_options_help(const dc_option *table, bool flags, dc_text *out) {
    for (; table->name; table++)
        help_row(table, flags, out);
}
