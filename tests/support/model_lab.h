/* A model with a KV pool and a few sequences, for tests that run it directly, without the engine. Every failure of a call
 * fails the running test. */
#ifndef HEARTH_TESTS_MODEL_LAB_H
#define HEARTH_TESTS_MODEL_LAB_H

#include "model/model.h"

typedef struct lab {
    model *m;
    const model_config *c;
    kv_pool kv;
    int page_step, next_page; /* pages are handed out in a mixed order, so that a wrong page table shows */
} lab;

/* Where a test runs: a table of operators and a pool. */
typedef struct lab_place {
    const ops *table; /* NULL = the best one */
    pool *pool;
    dtype kv_type;
    model_activations activations;
} lab_place;

void lab_open(lab *l, const char *dir, const lab_place *place, int rows_max, int page_count);
void lab_close(lab *l);

const ops *lab_avx2(void); /* the AVX2 table, or what is best below it on this machine */

typedef struct agent {
    sequence seq;
    int32_t *pages;
    float *recurrent, *conv;
    int pages_count;
} agent;

agent lab_agent(lab *l, int tokens_max);
agent lab_clone(lab *l, const agent *from); /* same state, pages of its own with the same contents */
void agent_free(agent *a);                  /* its pages are not given back: a lab is short-lived */

/* Runs a chain. logits [count - logits_from, vocab_rows]; logits and hidden may be NULL (then logits_from is ignored). */
void lab_chain(lab *l, agent *a, const int32_t *ids, int count, int logits_from, float *logits, float *hidden);
/* Runs a tree; logits [count, vocab_rows]. */
void lab_tree(lab *l, agent *a, const int32_t *ids, const int32_t *parents, int count, float *logits, float *hidden);

int32_t lab_argmax(const float *row, int count); /* ties to the lower id */
float *lab_floats(int64_t count);                /* zeroed; free() */

#endif
