/* Choosing the next token from a row of logits: filters, temperature and Gumbel noise.
 *
 * The choice is a pure function of the row, the parameters and the absolute position. Instead of drawing from the
 * distribution with a generator that has a state, each token gets noise g = -log(-log(u)), where u comes from a hash of
 * (seed, position, token id), and the largest logit / T + g wins. That draws token i with probability softmax(logits/T)_i
 * (Gumbel 1954; Maddison et al. 2014, "A* sampling") and needs no order of evaluation: the same seed gives the same text
 * alone, among neighbours, after a cache hit, and whatever a drafter proposed.
 *
 * Order of the filters, as in Hugging Face's and vLLM's samplers, each on what the one before kept:
 *   temperature  p = softmax(logits / T) over the addressable ids;
 *   top-k        the k largest logits; of equal ones the lower ids;
 *   top-p        the shortest run of the remaining ones, largest first (equal ones: lower id first), whose share of the
 *                remaining probability reaches p; at least one;
 *   min-p        those whose probability is at least min_p times the largest.
 * T = 0 is argmax, the lower id of equal ones. Rows may have entries past the addressable ids: they are never read. */
#ifndef HEARTH_DECODE_SAMPLER_H
#define HEARTH_DECODE_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef struct sampler_params {
    double temperature; /* 0 = argmax */
    double top_p;       /* 1 = off */
    double min_p;       /* 0 = off */
    int top_k;          /* 0 = off */
    uint64_t seed;
} sampler_params;

typedef struct sampler sampler; /* working memory for one vocabulary; one thread */
sampler *sampler_create(int32_t vocabulary);
void sampler_destroy(sampler *s);

/* Chooses among ids 0 .. vocabulary-1 of logits for the token at `position`. ERR_INTERNAL when a logit is not finite. */
err_code sampler_choose(sampler *s, const sampler_params *params, const float *logits, int64_t position, int32_t *id,
                        error *err);

/* The noise of one token, for drafters that share it and for tests. */
double sampler_noise(uint64_t seed, int64_t position, int32_t id);

#endif
