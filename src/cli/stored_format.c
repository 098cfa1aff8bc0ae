/* See stored_format.h. Names and dtypes are those of docs/formats.md. */
#include "cli/stored_format.h"

#include <stdio.h>
#include <string.h>

static const char *const scale_suffixes[] = {".weight_scale",        ".weight_scale_2", ".weight_scale_inv",
                                             ".weight_global_scale", ".input_scale",    ".input_global_scale"};

/* The length of name without the suffix, or 0. */
static int without(const char *name, const char *suffix) {
    size_t size = strlen(name), cut = strlen(suffix);
    return size > cut && !strcmp(name + size - cut, suffix) ? (int)(size - cut) : 0;
}

static const tensor *part(const checkpoint *c, const char *name, int length, const char *suffix) {
    char full[512];
    snprintf(full, sizeof full, "%.*s%s", length, name, suffix);
    return checkpoint_find(c, full);
}

static stored_format matrix_format(const checkpoint *c, const tensor *t) {
    stored_format plain = {dtype_name(t->type), t, 1}, nvfp4 = {"NVFP4", t, 2};
    int length = without(t->name, ".weight");
    if (without(t->name, ".weight_packed")) return nvfp4;
    if (!length) return plain;
    if (t->type == DTYPE_U8 && part(c, t->name, length, ".weight_scale_2")) return nvfp4;
    if (t->type != DTYPE_F8_E4M3) return plain;
    if (part(c, t->name, length, ".weight_scale_inv")) return (stored_format){"FP8 blocks", t, 1};
    return part(c, t->name, length, ".weight_scale") ? (stored_format){"FP8", t, 1} : plain;
}

stored_format stored_format_of(const checkpoint *c, const tensor *t) {
    for (size_t i = 0; i < sizeof scale_suffixes / sizeof *scale_suffixes; i++) {
        int length = without(t->name, scale_suffixes[i]);
        const tensor *owner = length ? part(c, t->name, length, ".weight") : NULL;
        if (length && !owner) owner = part(c, t->name, length, ".weight_packed");
        if (owner) return matrix_format(c, owner);
    }
    return matrix_format(c, t);
}
