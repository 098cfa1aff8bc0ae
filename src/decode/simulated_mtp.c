/* See simulated_mtp.h. */
#include "decode/simulated_mtp.h"

#include <stdbool.h>

#include "base/json.h"

/* One number of a list, in JSON's spelling or with the leading zero left out. Not strtod: its decimal point depends on
 * the locale. */
static bool parse_share(const char *text, size_t size, double *out) {
    buffer digits = {0};
    if (size && text[0] == '.') buffer_char(&digits, '0');
    buffer_append(&digits, text, size);
    arena *a = arena_create();
    const json *value;
    bool good = digits.size && json_parse(a, span_make(digits.data, digits.size), 1, &value, NULL) == ERR_OK &&
                json_double(value, out) && *out >= 0 && *out <= 1;
    arena_destroy(a);
    buffer_deinit(&digits);
    return good;
}

static err_code parse_list(const char *name, const char *text, double out[SIMULATED_DEPTHS_MAX], error *err) {
    int count = 0;
    for (const char *at = text, *end;; at = end + 1) {
        for (end = at; *end && *end != ',';) end++;
        if (count == SIMULATED_DEPTHS_MAX)
            ERR_FAIL(err, ERR_INVALID, "%s: more than %d values", name, SIMULATED_DEPTHS_MAX);
        if (!parse_share(at, (size_t)(end - at), &out[count]))
            ERR_FAIL(err, ERR_INVALID, "%s: value %d of '%.100s' must be a number from 0 to 1", name, count + 1, text);
        count++;
        if (!*end) break;
    }
    for (int i = count; i < SIMULATED_DEPTHS_MAX; i++) out[i] = out[count - 1];
    return ERR_OK;
}

err_code simulated_mtp_parse(const char *top1, const char *top2, simulated_mtp *out, error *err) {
    ERR_TRY(parse_list("acceptance", top1, out->top1, err));
    ERR_TRY(parse_list("top-2 acceptance", top2, out->top2, err));
    for (int i = 0; i < SIMULATED_DEPTHS_MAX; i++)
        if (out->top2[i] < out->top1[i])
            ERR_FAIL(err, ERR_INVALID, "top-2 acceptance at depth %d is %g, less than the best one's %g", i + 1,
                     out->top2[i], out->top1[i]);
    return ERR_OK;
}

static int depth_index(int depth) {
    HEARTH_ASSERT(depth >= 1);
    return depth < SIMULATED_DEPTHS_MAX ? depth - 1 : SIMULATED_DEPTHS_MAX - 1;
}

double simulated_mtp_acceptance(const simulated_mtp *m, int depth, int rank) {
    int i = depth_index(depth);
    return rank == 0 ? m->top1[i] : rank == 1 ? m->top2[i] - m->top1[i] : 0;
}

/* The finaliser of SplitMix64 (Steele, Lea, Flood 2014). */
static uint64_t mix(uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* A token that follows the parent somewhere in the context, looked for from a hashed place on and round, SCAN_MAX tokens
 * far; where there is none, the smallest number that is neither the target nor the other proposal. */
enum { SCAN_MAX = 4096 };
static int32_t wrong_token(uint64_t hash, const simulated_place *place, const int32_t *context, int32_t count,
                           int32_t other) {
    int32_t pairs = count - 1, at = pairs > 0 ? (int32_t)(hash % (uint32_t)pairs) : 0;
    for (int32_t i = 0; i < pairs && i < SCAN_MAX; i++, at = at + 1 < pairs ? at + 1 : 0)
        if (context[at] == place->parent && context[at + 1] != place->target && context[at + 1] != other)
            return context[at + 1];
    int32_t token = 0;
    while (token == place->target || token == other) token++;
    return token;
}

void simulated_mtp_propose(const simulated_mtp *m, const simulated_place *place, const int32_t *context, int32_t count,
                           int32_t out[2]) {
    int i = depth_index(place->depth);
    uint64_t hash = mix(mix(place->turn + 0x9e3779b97f4a7c15u) ^ ((uint64_t)place->position + 1) * 0xd1342543de82ef95u);
    double luck = (double)(hash >> 11) * 0x1p-53;
    int right = place->target < 0 ? -1 : luck < m->top1[i] ? 0 : luck < m->top2[i] ? 1 : -1;
    out[0] = out[1] = -1;
    if (right >= 0) out[right] = place->target;
    for (int rank = 0; rank < 2; rank++)
        if (rank != right) out[rank] = wrong_token(mix(hash + (uint64_t)rank), place, context, count, out[1 - rank]);
}
