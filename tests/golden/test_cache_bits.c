/* Cached is cold, bit for bit: logits of the next token and four chained MTP drafts, at every cut point of a
 * conversation, in every order, with forks, edits in the middle and hardly any memory.
 *
 * Every prompt is computed twice: through a cache that has everything before it, and through one that forgets. The MTP
 * layer is filled as an engine does it, the pair of the last resumed position included: its hidden row comes from the
 * snapshot, its slot belongs to the branch. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "cache/prefix_cache.h"
#include "model_lab.h"
#include "support.h"

enum { LENGTH = 150, CONTEXT = 192, DRAFTS = 4, CHUNK_MAX = 48, CONVERSATIONS = 3 };

static lab l;
static prefix_cache *warm, *cold;
static float *hidden, *pairs, *out; /* [CONTEXT + 1, hidden] */
static uint64_t random_state;

static int below(int n) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (int)((random_state >> 33) % (unsigned)n);
}

static prefix_cache *make_cache(uint64_t budget, dtype kv_type) {
    cache_plan plan;
    prefix_cache *c;
    cache_plan_make(l.c, kv_type, CONTEXT, 1, budget, &plan);
    assert_int_equal(prefix_cache_create(l.c, kv_type, &plan, &c, NULL), ERR_OK);
    return c;
}

static void open_all(uint64_t budget, dtype kv_type) {
    lab_place place = {.table = NULL, .pool = NULL, .kv_type = kv_type};
    lab_open(&l, "tests/golden/small", &place, 256, 1);
    warm = make_cache(budget, kv_type);
    cold = make_cache(0, kv_type);
    hidden = lab_floats((int64_t)(CONTEXT + 1) * l.c->hidden);
    pairs = lab_floats((int64_t)(CONTEXT + 1) * l.c->hidden);
    out = lab_floats((int64_t)(CONTEXT + 1) * l.c->hidden);
}

static void close_all(void) {
    prefix_cache_destroy(warm);
    prefix_cache_destroy(cold);
    free(hidden);
    free(pairs);
    free(out);
    lab_close(&l);
}

static void copy_row(float *to, int at, const float *from) {
    memcpy(to + (int64_t)at * l.c->hidden, from, (size_t)l.c->hidden * sizeof *to);
}

static const float *row(const float *rows, int at) { return rows + (int64_t)at * l.c->hidden; }

/* The pairs that `count` tokens after position `from` complete: the first one's hidden row is from before the step. */
static void fill_mtp(prefix_cache *c, cache_run *r, const int32_t *ids, int from, int count) {
    int n = 0, first = from ? 0 : 1;
    for (int i = first; i < count; i++) copy_row(pairs, n++, i ? row(hidden, i - 1) : cache_run_hidden(r));
    error err;
    if (n && model_mtp_forward(l.m, prefix_cache_kv(c), cache_run_sequence(r), from + first - 1, n, ids + from + first,
                               pairs, NULL, out, n, NULL, &err) != ERR_OK)
        fail_msg("%s", err.message);
}

static void step(prefix_cache *c, cache_run *r, const int32_t *ids, int count, float *logits) {
    capture captures[SNAPSHOT_WANTS_MAX];
    int from = cache_run_sequence(r)->length;
    model_segment run = {.seq = cache_run_sequence(r),
                         .count = count,
                         .tokens = ids + from,
                         .captures = captures,
                         .capture_count = cache_run_prepare(r, count, captures),
                         .logits_from = count - 1,
                         .logits = logits,
                         .hidden = hidden};
    error err;
    if (model_forward(l.m, prefix_cache_kv(c), &run, 1, &err) != ERR_OK) fail_msg("%s", err.message);
    fill_mtp(c, r, ids, from, count);
    copy_row(cache_run_hidden(r), 0, row(hidden, count - 1));
    cache_run_commit(r, ids + from, count);
}

/* Four drafts after the last token: their logits one after the other. They write MTP slots nobody may rely on. */
static void draft(prefix_cache *c, cache_run *r, const float *logits, float *drafted) {
    int length = cache_run_sequence(r)->length;
    int32_t token = lab_argmax(logits, l.c->vocab_rows);
    cache_run_reserve(r, DRAFTS);
    copy_row(pairs, 0, cache_run_hidden(r));
    for (int i = 0; i < DRAFTS; i++) {
        error err;
        float *made = drafted + (int64_t)i * l.c->vocab_rows;
        if (model_mtp_forward(l.m, prefix_cache_kv(c), cache_run_sequence(r), length - 1 + i, 1, &token, pairs, NULL,
                              out, 0, made, &err) != ERR_OK)
            fail_msg("%s", err.message);
        copy_row(pairs, 0, out);
        token = lab_argmax(made, l.c->vocab_rows);
    }
}

/* Runs the prompt; logits [1 + DRAFTS, vocab_rows]. Returns what was reused. */
static int answer(prefix_cache *c, const int32_t *ids, int count, bool keep, float *logits) {
    int ends[2] = {count / 4, count / 2};
    prompt_shape shape = {.count = count,
                          .history = count > 6 ? count - 6 : count,
                          .message_ends = ends,
                          .message_end_count = count > 8 ? 2 : 0};
    prefix_match found;
    cache_run *r = cache_run_begin(c, ids, &shape, &found);
    for (int at = found.resumed; at < count; at = cache_run_sequence(r)->length) {
        int chunk = 1 + below(CHUNK_MAX);
        step(c, r, ids, chunk < count - at ? chunk : count - at, logits);
    }
    draft(c, r, logits, logits + l.c->vocab_rows);
    cache_run_end(r, keep);
    prefix_cache_check(c);
    return found.resumed;
}

static int compare(const int32_t *ids, int count) {
    size_t floats = (size_t)(1 + DRAFTS) * (size_t)l.c->vocab_rows;
    float *a = lab_floats((int64_t)floats), *b = lab_floats((int64_t)floats);
    int reused = answer(warm, ids, count, true, a);
    assert_int_equal(answer(cold, ids, count, false, b), 0);
    if (memcmp(a, b, (size_t)l.c->vocab_rows * sizeof *a)) fail_msg("%d tokens, %d reused: logits", count, reused);
    if (memcmp(a, b, floats * sizeof *a)) fail_msg("%d tokens, %d reused: drafts", count, reused);
    free(a);
    free(b);
    return reused;
}

/* Ids of recorded conversations: the bytes of the trace, folded into the small vocabulary. */
static void read_conversations(int32_t ids[CONVERSATIONS][CONTEXT]) {
    buffer text = {0};
    error err;
    if (file_read("demo/agent_trace.jsonl", 64 << 20, &text, &err) != ERR_OK) fail_msg("%s", err.message);
    for (int i = 0; i < CONVERSATIONS; i++)
        for (int k = 0; k < CONTEXT; k++)
            ids[i][k] = (unsigned char)text.data[(size_t)i * 3000 + (size_t)k] % l.c->vocab_rows;
    buffer_deinit(&text);
}

/* ---- tests */

static void every_cut_point(void **state) {
    (void)state;
    int32_t ids[CONVERSATIONS][CONTEXT];
    for (int direction = 0; direction < 2; direction++) {
        open_all(64 << 20, direction ? DTYPE_F8_E4M3 : DTYPE_BF16);
        read_conversations(ids);
        int reused = 0;
        for (int i = 1; i <= LENGTH; i++) reused += compare(ids[0], direction ? LENGTH + 1 - i : i);
        assert_true(reused > LENGTH * LENGTH / 10);
        close_all();
    }
}

/* Two branches leave at a page's edge, in turn: the MTP pair before the edge is each one's own. */
static void branches_at_page_edges(void **state) {
    (void)state;
    open_all(64 << 20, DTYPE_BF16);
    for (int edge = KV_PAGE - 1; edge <= 2 * KV_PAGE + 1; edge++) {
        int32_t a[CONTEXT], b[CONTEXT];
        for (int i = 0; i < CONTEXT; i++) {
            a[i] = (edge * 7 + i * i) % l.c->vocab_rows;
            b[i] = i < edge ? a[i] : (a[i] + 1) % l.c->vocab_rows;
        }
        compare(a, edge);
        for (int more = 1; more < 50; more += 12) {
            assert_true(compare(a, edge + more) >= edge);
            assert_true(compare(b, edge + more) >= edge);
        }
    }
    close_all();
}

/* Conversations in turn, cut anywhere, edited in the middle, forked, sent again; memory for hardly anything or enough. */
static void any_order(void **state) {
    (void)state;
    for (int seed = 1; seed <= 4; seed++) {
        print_message("seed %d\n", seed);
        random_state = (uint64_t)seed;
        open_all(seed % 2 ? 0 : 64 << 20, seed > 2 ? DTYPE_F8_E4M3 : DTYPE_BF16);
        int32_t ids[CONVERSATIONS][CONTEXT];
        read_conversations(ids);
        int reused = 0, total = 0;
        for (int i = 0; i < 120; i++) {
            int32_t *one = ids[below(CONVERSATIONS)], count = 1 + below(LENGTH);
            if (below(4) == 0) one[below(LENGTH)] = below(l.c->vocab_rows); /* another tool result, from now on */
            if (below(6) == 0) memcpy(one, ids[0], (size_t)(1 + below(LENGTH)) * sizeof *one); /* a fork */
            reused += compare(one, count);
            total += count;
        }
        print_message("%d of %d tokens reused\n", reused, total);
        assert_true(reused > total / 10);
        close_all();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cut_point),
        cmocka_unit_test(branches_at_page_edges),
        cmocka_unit_test(any_order),
    };
    return cmocka_run_group_tests_name("cache_bits", tests, NULL, NULL);
}
