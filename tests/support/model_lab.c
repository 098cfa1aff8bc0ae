/* See model_lab.h. */
#include "model_lab.h"

#include <stdlib.h>

#include "base/memory.h"
#include "support.h"

static void must(err_code code, const error *err) {
    if (code) fail_msg("%s", err->message);
}

const ops *lab_avx2(void) {
    const char *set = getenv("HEARTH_ISA");
    if (set) return ops_cpu_best(); /* the caller caps the whole run */
    setenv("HEARTH_ISA", "avx2", 1);
    const ops *table = ops_cpu_best();
    unsetenv("HEARTH_ISA");
    return table;
}

void lab_open(lab *l, const char *dir, const lab_place *place, int rows_max, int page_count) {
    error err;
    model_options options = {
        .ops = place->table, .pool = place->pool, .rows_max = rows_max, .activations = place->activations};
    *l = (lab){.page_step = page_count % 7 ? 7 : 5};
    if (page_count % 7 == 0 && page_count % 5 == 0) l->page_step = 1;
    must(model_open(dir, &options, &l->m, &err), &err);
    l->c = model_get_config(l->m);
    must(model_kv_init(l->c, place->kv_type, page_count, &l->kv, &err), &err);
}

void lab_close(lab *l) {
    model_kv_deinit(&l->kv);
    model_close(l->m);
}

agent lab_agent(lab *l, int tokens_max) {
    int count = (tokens_max + KV_PAGE - 1) / KV_PAGE;
    agent a = {.pages = mem_alloc((size_t)count * sizeof *a.pages), .pages_count = count};
    a.recurrent = lab_floats(model_recurrent_count(l->c));
    a.conv = lab_floats(model_conv_count(l->c));
    for (int i = 0; i < count; i++) {
        assert_true(l->next_page < l->kv.page_count);
        a.pages[i] = (int32_t)((int64_t)l->next_page++ * l->page_step % l->kv.page_count);
    }
    a.seq = (sequence){.pages = a.pages, .recurrent = a.recurrent, .conv = a.conv};
    return a;
}

static void copy_page(const kv_pool *kv, void *base, int32_t to, int32_t from) {
    size_t page = (size_t)kv->kv_heads * KV_PAGE * (size_t)kv->head_dim * dtype_size(kv->type);
    for (int layer = 0; layer < kv->layers; layer++) {
        char *first = (char *)base + (size_t)layer * (size_t)kv->page_count * page;
        memcpy(first + (size_t)to * page, first + (size_t)from * page, page);
    }
}

agent lab_clone(lab *l, const agent *from) {
    agent a = lab_agent(l, from->pages_count * KV_PAGE);
    for (int i = 0; i < a.pages_count; i++) {
        copy_page(&l->kv, l->kv.k, a.pages[i], from->pages[i]);
        copy_page(&l->kv, l->kv.v, a.pages[i], from->pages[i]);
    }
    memcpy(a.recurrent, from->recurrent, (size_t)model_recurrent_count(l->c) * sizeof *a.recurrent);
    memcpy(a.conv, from->conv, (size_t)model_conv_count(l->c) * sizeof *a.conv);
    a.seq.length = from->seq.length;
    return a;
}

void agent_free(agent *a) {
    free(a->pages);
    free(a->recurrent);
    free(a->conv);
}

void lab_chain(lab *l, agent *a, const int32_t *ids, int count, int logits_from, float *logits, float *hidden) {
    error err;
    model_segment s = {.seq = &a->seq,
                       .count = count,
                       .tokens = ids,
                       .logits_from = logits ? logits_from : count,
                       .logits = logits,
                       .hidden = hidden};
    must(model_forward(l->m, &l->kv, &s, 1, &err), &err);
}

void lab_tree(lab *l, agent *a, const int32_t *ids, const int32_t *parents, int count, float *logits, float *hidden) {
    error err;
    model_segment s = {
        .seq = &a->seq, .count = count, .tokens = ids, .parents = parents, .logits = logits, .hidden = hidden};
    must(model_forward(l->m, &l->kv, &s, 1, &err), &err);
}

int32_t lab_argmax(const float *row, int count) {
    int32_t best = 0;
    for (int32_t i = 1; i < count; i++)
        if (row[i] > row[best]) best = i;
    return best;
}

float *lab_floats(int64_t count) { return mem_zero((size_t)count, sizeof(float)); }
