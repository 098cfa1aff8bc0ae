/* Finding tensors by name; see binder.h. */
#include "model/binder.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { PROBLEMS_SHOWN = 8, PROBLEMS_BYTES = 420 };

void binder_problem(binder *b, const char *format, ...) {
    char line[BINDER_NAME_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    b->problem_count++;
    bool full = b->problems_shown == PROBLEMS_SHOWN || b->problems.size + strlen(line) > PROBLEMS_BYTES;
    if (full && b->problems_shown) return; /* counted only: the message has room for so much */
    buffer_printf(&b->problems, "%s%s", b->problems_shown++ ? "; " : "", line);
}

void binder_warn(binder *b, const char *format, ...) {
    char line[2 * BINDER_NAME_MAX];
    va_list args;
    if (!b->warnings) b->warnings = arena_alloc(b->memory, WARNINGS_MAX * sizeof *b->warnings);
    b->warning_count++;
    if (b->warning_count > WARNINGS_MAX) {
        snprintf(line, sizeof line, "and %d more", b->warning_count - WARNINGS_MAX + 1);
    } else {
        va_start(args, format);
        vsnprintf(line, sizeof line, format, args);
        va_end(args);
    }
    int at = b->warning_count > WARNINGS_MAX ? WARNINGS_MAX - 1 : b->warning_count - 1;
    b->warnings[at] = arena_copy(b->memory, line, strlen(line));
}

void binder_shape_text(char out[64], const int64_t *shape, int rank) {
    size_t n = (size_t)snprintf(out, 64, "[");
    for (int i = 0; i < rank && n < 48; i++)
        n += (size_t)snprintf(out + n, 64 - n, i ? ",%lld" : "%lld", (long long)shape[i]);
    snprintf(out + n, 64 - n, "]");
}

static int index_of(const binder *b, const tensor *t) { return (int)(t - checkpoint_at(b->ckpt, 0)); }

const tensor *binder_find(binder *b, const char *prefix, const char *name) {
    char full[2 * BINDER_NAME_MAX];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    const tensor *t = checkpoint_find(b->ckpt, full);
    if (t) b->used[index_of(b, t)] = true;
    return t;
}

static bool same_shape(const tensor *t, const int64_t *shape, int rank) {
    return t->rank == rank && !memcmp(t->shape, shape, (size_t)rank * sizeof *shape);
}

const tensor *binder_need(binder *b, const char *prefix, const char *name, const int64_t *shape, int rank) {
    const tensor *t = binder_find(b, prefix, name);
    if (!t) {
        binder_problem(b, "%s%s is missing", prefix, name);
        return NULL;
    }
    if (t->type != DTYPE_BF16 && t->type != DTYPE_F16 && t->type != DTYPE_F32) {
        binder_problem(b, "%s has dtype %s (known: BF16, F16, F32)", t->name, dtype_name(t->type));
        return NULL;
    }
    if (!same_shape(t, shape, rank)) {
        char is[64], want[64];
        binder_shape_text(is, t->shape, t->rank);
        binder_shape_text(want, shape, rank);
        binder_problem(b, "%s is %s, must be %s", t->name, is, want);
        return NULL;
    }
    b->bytes += t->bytes;
    return t;
}

float binder_scale(binder *b, const char *prefix, const char *name, float absent) {
    const tensor *t = binder_find(b, prefix, name);
    if (!t) return absent;
    if (t->count != 1 || t->rank > 1) {
        char is[64];
        binder_shape_text(is, t->shape, t->rank);
        binder_problem(b, "%s is %s, must be one number", t->name, is);
        return 1;
    }
    if (t->type != DTYPE_BF16 && t->type != DTYPE_F16 && t->type != DTYPE_F32) {
        binder_problem(b, "%s has dtype %s (known: BF16, F16, F32)", t->name, dtype_name(t->type));
        return 1;
    }
    float value = binder_element(t, 0);
    if (isfinite(value) && value > 0) return value;
    binder_problem(b, "%s is %g, must be a finite number above 0", t->name, (double)value);
    return 1;
}

float binder_element(const tensor *t, uint64_t i) {
    float f;
    uint16_t h;
    if (t->type == DTYPE_F32) {
        memcpy(&f, (const char *)t->data + 4 * i, 4);
        return f;
    }
    memcpy(&h, (const char *)t->data + 2 * i, 2);
    return t->type == DTYPE_BF16 ? bf16_to_f32(h) : f16_to_f32(h);
}

float *binder_vector(binder *b, const tensor *t) {
    uintptr_t at = (uintptr_t)arena_alloc(b->memory, t->count * sizeof(float) + 63);
    float *out = (float *)((at + 63) & ~(uintptr_t)63);
    for (uint64_t i = 0; i < t->count; i++) out[i] = binder_element(t, i);
    return out;
}
