/* The engine over hearth.h, on a small checkpoint without a tokenizer: prompts are ids, an answer's text is its ids.
 *
 * What an answer should be comes from running the model directly, in one piece and without any cache; every way to the
 * same prompt (extended, edited, forked, cancelled and sent again, among neighbours) must give the same ids. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "decode/sampler.h"
#include "golden_files.h"
#include "hearth.h"
#include "model/synth_text.h"
#include "model_lab.h"
#include "support.h"

static const char SMALL[] = "tests/golden/small";
enum { VOCABULARY = 120, PROMPT_MAX = 700, ANSWER_MAX = 64 };

/* ---- prompts, the truth, and answers */

typedef struct prompt {
    int32_t ids[PROMPT_MAX];
    int count;
} prompt;

static prompt make_prompt(uint64_t seed, int count) {
    prompt p = {.count = count};
    for (int i = 0; i < PROMPT_MAX; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        p.ids[i] = (int32_t)((seed >> 33) % 107); /* no stop id */
    }
    return p;
}

typedef struct answer {
    int32_t ids[ANSWER_MAX];
    int count;
    hearth_event last;
    int starts;
} answer;

static const sampler_params GREEDY = {.top_p = 1};

static lab truth_lab;

/* Goes on from a sequence that has run a prompt whose last row gave `logits` (used up). */
static answer go_on(agent *s, float *logits, int max, const sampler_params *sampling) {
    answer a = {0};
    sampler *chooser = sampler_create(VOCABULARY);
    for (;;) {
        int32_t id;
        assert_int_equal(sampler_choose(chooser, sampling, logits, s->seq.length, &id, NULL), ERR_OK);
        if (id == 107 || id == 108) break;
        a.ids[a.count++] = id;
        if (a.count == max) break;
        lab_chain(&truth_lab, s, &id, 1, 0, logits, NULL);
    }
    sampler_destroy(chooser);
    return a;
}

/* The prompt's ids from the sequence's end on, at most 256 at a time. */
static void run_prompt(agent *s, const prompt *p, float *logits) {
    while (s->seq.length < p->count) {
        int n = p->count - s->seq.length < 256 ? p->count - s->seq.length : 256;
        lab_chain(&truth_lab, s, p->ids + s->seq.length, n, n - 1, logits, NULL);
    }
}

/* The model alone: the whole prompt in one go, then token by token. */
static answer truth(const prompt *p, int max, const sampler_params *sampling) {
    truth_lab.next_page = 0; /* one sequence at a time */
    agent s = lab_agent(&truth_lab, p->count + max);
    float *logits = lab_floats(VOCABULARY);
    run_prompt(&s, p, logits);
    answer a = go_on(&s, logits, max, sampling);
    free(logits);
    agent_free(&s);
    return a;
}

static hearth_request_params params_for(const prompt *p, int max) {
    hearth_request_params params = hearth_request_defaults();
    params.prompt_ids = p->ids;
    params.prompt_id_count = (size_t)p->count;
    params.raw_output = true;
    params.max_tokens = max;
    params.temperature = 0;
    return params;
}

static hearth_request *start(hearth_engine *e, const hearth_request_params *params) {
    hearth_request *r = NULL;
    hearth_error fault;
    if (hearth_request_create(e, params, &r, &fault) != HEARTH_OK) fail_msg("%s", fault.message);
    return r;
}

static void add_ids(answer *a, const char *text) {
    char *end;
    for (; *text; text = end) {
        assert_true(a->count < ANSWER_MAX);
        a->ids[a->count++] = (int32_t)strtol(text, &end, 10);
        assert_int_equal(*end++, ' ');
    }
}

static answer collect(hearth_request *r) {
    answer a = {0};
    hearth_event event;
    while (hearth_request_next(r, &event, 60000)) {
        if (event.type == HEARTH_EVENT_START) a.starts++;
        if (event.type == HEARTH_EVENT_CONTENT) add_ids(&a, event.text);
        a.last = event;
    }
    assert_true(hearth_request_finished(r));
    assert_true(a.last.type == HEARTH_EVENT_FINISH || a.last.type == HEARTH_EVENT_ERROR);
    hearth_request_destroy(r);
    return a;
}

static answer ask(hearth_engine *e, const prompt *p, int max) {
    hearth_request_params params = params_for(p, max);
    return collect(start(e, &params));
}

static void same_answer(const answer *a, const answer *b) {
    assert_int_equal(a->count, b->count);
    assert_memory_equal(a->ids, b->ids, (size_t)a->count * sizeof *a->ids);
}

static hearth_engine *open_engine(const char *dir, int context, int parallel, int queue) {
    hearth_options options = {
        .context_max = context, .parallel = parallel, .queue_max = queue, .threads = parallel > 2 ? 2 : 1};
    hearth_engine *e = NULL;
    hearth_error fault;
    if (hearth_engine_open(dir, &options, &e, &fault) != HEARTH_OK) fail_msg("%s", fault.message);
    return e;
}

/* Asks and compares; returns cached_tokens. */
static int check_against(hearth_engine *e, const prompt *p, int max, const answer *expected) {
    answer a = ask(e, p, max);
    assert_int_equal(a.last.type, HEARTH_EVENT_FINISH);
    assert_int_equal(a.starts, 1);
    same_answer(&a, expected);
    assert_int_equal(a.last.usage.prompt_tokens, p->count);
    assert_int_equal(a.last.usage.completion_tokens, a.count);
    assert_int_equal(a.last.finish, a.count == max ? HEARTH_FINISH_LENGTH : HEARTH_FINISH_STOP);
    assert_true(a.last.usage.cached_tokens < p->count);
    return a.last.usage.cached_tokens;
}

static int check(hearth_engine *e, const prompt *p, int max) {
    answer expected = truth(p, max, &GREEDY);
    return check_against(e, p, max, &expected);
}

static int open_truth(void **state) {
    (void)state;
    lab_place place = {.kv_type = DTYPE_BF16};
    lab_open(&truth_lab, SMALL, &place, 256, 256);
    return 0;
}

static int close_truth(void **state) {
    (void)state;
    lab_close(&truth_lab);
    return 0;
}

/* ---- opening */

static void opening_reports_the_plan(void **state) {
    (void)state;
    hearth_engine *e = open_engine(SMALL, 1000, 2, 0);
    hearth_info info = hearth_engine_info(e);
    assert_string_equal(info.name, "small");
    assert_int_equal(info.context_max, 1000);
    assert_int_equal(info.vocabulary, VOCABULARY);
    assert_int_equal(info.parallel, 2);
    assert_true(info.weight_bytes > 0 && info.kv_bytes > 0 && info.state_bytes > 0 && info.workspace_bytes > 0);
    hearth_error fault;
    int32_t *ids;
    size_t count;
    assert_int_equal(hearth_tokenize(e, "x", 1, &ids, &count, &fault), HEARTH_UNSUPPORTED);
    assert_non_null(strstr(fault.message, "tokenizer.json"));
    hearth_engine_close(e);
}

static void the_cache_gets_what_is_asked_for(void **state) {
    (void)state;
    uint64_t before = 0;
    for (uint64_t mib = 4; mib <= 64; mib *= 4) {
        hearth_options options = {.context_max = 500, .cache_bytes = mib << 20, .threads = 1};
        hearth_engine *e;
        hearth_error fault;
        if (hearth_engine_open(SMALL, &options, &e, &fault) != HEARTH_OK) fail_msg("%s", fault.message);
        hearth_info info = hearth_engine_info(e);
        uint64_t bytes = info.kv_bytes + info.state_bytes;
        assert_true(bytes <= options.cache_bytes && bytes > before);
        before = bytes;
        hearth_engine_close(e);
    }
}

static void opening_refuses(void **state) {
    (void)state;
    hearth_engine *e;
    hearth_error fault;
    hearth_options small = {.context_max = 1000, .cache_bytes = 1000};
    assert_int_equal(hearth_engine_open(SMALL, &small, &e, &fault), HEARTH_MEMORY);
    assert_non_null(strstr(fault.message, "cache_bytes is 1000: 1 requests of 1000 tokens need"));
    assert_int_equal(hearth_engine_open("/nowhere/model", NULL, &e, &fault), HEARTH_NOT_FOUND);
    hearth_options wrong[] = {{.context_max = 300000},   {.parallel = 65},
                              {.queue_max = -1},         {.threads = -1},
                              {.kv = (hearth_kv_type)4}, {.activations = (hearth_activations)3}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(hearth_engine_open(SMALL, &wrong[i], &e, &fault), HEARTH_INVALID);
        assert_true(strlen(fault.message) > 10);
    }
}

/* What the KV cache is stored as: the choice, and what is usual for the checkpoint. */
static void opening_chooses_the_kv_type(void **state) {
    (void)state;
    const struct {
        const char *dir;
        hearth_kv_type wanted, chosen;
    } cases[] = {
        {SMALL, HEARTH_KV_AUTO, HEARTH_KV_BF16},
        {SMALL, HEARTH_KV_FP32, HEARTH_KV_FP32},
        {SMALL, HEARTH_KV_FP8, HEARTH_KV_FP8},
        {test_shared("oracle/ckpt/tiny-b-nvfp4"), HEARTH_KV_AUTO, HEARTH_KV_FP8},
    };
    uint64_t bytes[4] = {0};
    for (int i = 0; i < 4; i++) {
        hearth_engine *e;
        hearth_error fault;
        if (!cases[i].dir) continue; /* the reference checkpoints are not here */
        hearth_options options = {.kv = cases[i].wanted, .context_max = 512, .threads = 1};
        if (hearth_engine_open(cases[i].dir, &options, &e, &fault)) fail_msg("%s", fault.message);
        hearth_info info = hearth_engine_info(e);
        assert_int_equal(info.kv, cases[i].chosen);
        bytes[i] = info.kv_bytes;
        hearth_engine_close(e);
    }
    assert_true(bytes[2] < bytes[0] && bytes[0] < bytes[1]);
    hearth_engine *e;
    hearth_error fault;
    const hearth_options nvfp4 = {.activations = HEARTH_ACTIVATIONS_NVFP4};
    assert_int_equal(hearth_engine_open(SMALL, &nvfp4, &e, &fault), HEARTH_UNSUPPORTED);
}

static void copy_file(const char *dir, const char *name, const char *to_dir) {
    buffer bytes = {0};
    char *from = file_join(dir, name), *to = file_join(to_dir, name);
    assert_int_equal(file_read(from, 1 << 24, &bytes, NULL), ERR_OK);
    assert_int_equal(file_write_atomic(to, span_make(bytes.data, bytes.size), NULL), ERR_OK);
    buffer_deinit(&bytes);
    free(from);
    free(to);
}

/* A copy of the small checkpoint that a test may spoil. Static storage. */
static const char *copy_model(const char *name) {
    static char dir[256];
    snprintf(dir, sizeof dir, "%s", test_temp(name));
    assert_int_equal(file_make_dirs(dir, NULL), ERR_OK);
    copy_file(SMALL, "config.json", dir);
    copy_file(SMALL, "generation_config.json", dir);
    copy_file(SMALL, "model.safetensors", dir);
    return dir;
}

static void a_tokenizer_must_fit_the_model_and_be_whole(void **state) {
    (void)state;
    const char *dir = copy_model("with-tokenizer");
    char *path = file_join(dir, "tokenizer.json");
    buffer text = {0};
    synth_tokenizer_json(&text); /* more ids than the model has rows */
    hearth_engine *e;
    hearth_error fault;
    assert_int_equal(file_write_atomic(path, span_make(text.data, text.size), NULL), ERR_OK);
    assert_int_equal(hearth_engine_open(dir, NULL, &e, &fault), HEARTH_FORMAT);
    assert_non_null(strstr(fault.message, "120 rows"));
    assert_int_equal(file_write_atomic(path, span_make(text.data, text.size / 2), NULL), ERR_OK);
    assert_int_equal(hearth_engine_open(dir, NULL, &e, &fault), HEARTH_FORMAT);
    buffer_deinit(&text);
    free(path);
}

static void parameters_are_checked(void **state) {
    (void)state;
    hearth_engine *e = open_engine(SMALL, 100, 1, 0);
    prompt p = make_prompt(1, 10);
    static const char *const empty[] = {""};
    static const char *const invalid[] = {"ok", "\xff"};
    struct {
        const char *param;
        hearth_request_params params;
    } cases[10];
    int n = 0;
#define CASE(name, change) cases[n].param = name, cases[n].params = params_for(&p, 5), cases[n].params.change, n++
    CASE("max_tokens", max_tokens = -1);
    CASE("temperature", temperature = 101);
    CASE("temperature", temperature = (double)NAN);
    CASE("top_p", top_p = 1.01);
    CASE("min_p", min_p = 2);
    CASE("stop", stop_count = 17);
    CASE("prompt", prompt_id_count = 0);
    CASE("messages", messages = "[]");
    CASE("stop", stop = empty);
    cases[n - 1].params.stop_count = 1;
    CASE("stop", stop = invalid);
    cases[n - 1].params.stop_count = 2;
    for (int i = 0; i < n; i++) {
        hearth_request *r;
        hearth_error fault;
        assert_int_equal(hearth_request_create(e, &cases[i].params, &r, &fault), HEARTH_INVALID);
        assert_string_equal(fault.param, cases[i].param);
    }
    p.ids[3] = VOCABULARY;
    hearth_request_params params = params_for(&p, 5);
    hearth_request *r;
    hearth_error fault;
    assert_int_equal(hearth_request_create(e, &params, &r, &fault), HEARTH_INVALID);
    hearth_engine_close(e);
}

static void messages_without_a_tokenizer_fail_by_name(void **state) {
    (void)state;
    hearth_engine *e = open_engine(SMALL, 100, 1, 0);
    hearth_request_params params = hearth_request_defaults();
    params.messages = "[{\"role\":\"user\",\"content\":\"hi\"}]";
    answer a = collect(start(e, &params));
    assert_int_equal(a.last.type, HEARTH_EVENT_ERROR);
    assert_int_equal(a.last.error.status, HEARTH_UNSUPPORTED);
    assert_non_null(strstr(a.last.error.message, "tokenizer.json"));
    assert_int_equal(hearth_engine_stats(e).requests_failed, 1);
    hearth_engine_close(e);
}

static void what_does_not_fit_is_refused_with_both_numbers(void **state) {
    (void)state;
    hearth_engine *e = open_engine(SMALL, 100, 1, 0);
    static const struct {
        int prompt, max;
        bool fits;
    } cases[] = {{60, 40, true}, {60, 41, false}, {99, 1, true}, {100, 0, false}, {99, 0, true}, {300, 1, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        prompt p = make_prompt(9, cases[i].prompt);
        hearth_request_params params = params_for(&p, cases[i].max);
        params.ignore_stop_ids = true;
        answer a = collect(start(e, &params));
        assert_int_equal(a.starts, cases[i].fits);
        if (cases[i].fits) {
            assert_int_equal(a.last.finish, HEARTH_FINISH_LENGTH);
            assert_int_equal(a.count, cases[i].max ? cases[i].max : 100 - cases[i].prompt);
            continue;
        }
        char number[16];
        snprintf(number, sizeof number, "%d", cases[i].prompt);
        assert_int_equal(a.last.error.status, HEARTH_CONTEXT_EXCEEDED);
        assert_non_null(strstr(a.last.error.message, "100"));
        assert_non_null(strstr(a.last.error.message, number));
    }
    hearth_engine_close(e);
}

/* ---- reuse */

static void a_hit_gives_the_cold_answer(void **state) {
    (void)state;
    hearth_engine *e = open_engine(SMALL, 1100, 1, 0);
    prompt a = make_prompt(1, 90), b = make_prompt(2, 200);
    assert_int_equal(check(e, &a, 12), 0);
    assert_int_equal(check(e, &b, 12), 0);
    assert_int_equal(check(e, &a, 12), 89); /* A, B, A */
    a.count = 250;
    assert_true(check(e, &a, 12) >= 89); /* extended by something else than the answer */
    prompt edited = b;
    edited.ids[120] ^= 1;
    check(e, &edited, 12);
    assert_int_equal(check(e, &b, 12), 199);
    hearth_stats stats = hearth_engine_stats(e);
    assert_int_equal(stats.requests_finished, 6);
    assert_int_equal(stats.prompt_tokens, 90 + 200 + 90 + 250 + 200 + 200);
    assert_int_equal(stats.prompt_tokens, stats.cached_tokens + stats.prefilled_tokens);
    assert_int_equal(stats.running, 0);
    assert_int_equal(stats.queued, 0);
    assert_true(stats.seconds_since_step == 0);
    hearth_engine_close(e);
}

static void an_answer_sent_back_is_not_computed_again(void **state) {
    (void)state;
    hearth_engine *e = open_engine(SMALL, 1100, 1, 0);
    prompt p = make_prompt(3, 50);
    int expected = 0;
    for (int turn = 0; turn < 6; turn++) {
        answer a = truth(&p, 9, &GREEDY);
        assert_int_equal(check(e, &p, 9), expected);
        memcpy(p.ids + p.count, a.ids, (size_t)a.count * sizeof *a.ids);
        /* The last token of a full answer was never run. */
        expected = p.count + (a.count == 9 ? 8 : a.count);
        p.count += a.count + 30;
    }
    hearth_engine_close(e);
}

static void lengths_around_edges(void **state) {
    (void)state;
    hearth_engine *e = open_engine(SMALL, 1100, 1, 0);
    static const int lengths[] = {1, 2, 3, 62, 63, 64, 65, 66, 76, 126, 127, 128, 129, 140, 255, 256, 257};
    static const int more[] = {0, 1, 50, 376};
    float *logits = lab_floats(VOCABULARY);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        prompt p = make_prompt(100 + i, lengths[i]);
        truth_lab.next_page = 0;
        agent growing = lab_agent(&truth_lab, PROMPT_MAX);
        check(e, &p, 3);
        truth_lab.next_page = 16; /* past the pages of `growing` */
        for (size_t k = 0; k < sizeof more / sizeof *more; k++) {
            p.count = lengths[i] + more[k];
            run_prompt(&growing, &p, logits);
            agent s = lab_clone(&truth_lab, &growing);
            answer expected = go_on(&s, logits, 3, &GREEDY);
            assert_true(check_against(e, &p, 3, &expected) >= lengths[i] - 1);
            agent_free(&s);
        }
        agent_free(&growing);
    }
    free(logits);
    hearth_engine_close(e);
}

static void a_cancelled_prefill_is_kept(void **state) {
    (void)state;
    hearth_engine *e = open_engine(SMALL, 1100, 1, 0);
    int kept = 0;
    for (int i = 0; i < 40; i++) {
        prompt p = make_prompt(500 + (uint64_t)i, 650);
        hearth_request_params params = params_for(&p, 4);
        hearth_request *r = start(e, &params);
        hearth_event event;
        assert_true(hearth_request_next(r, &event, 60000)); /* START: it is about to run, or runs */
        uint64_t until = clock_ns() + (uint64_t)i * 100000u;
        while (clock_ns() < until) {
        }
        hearth_request_cancel(r);
        answer a = collect(r);
        if (a.last.type == HEARTH_EVENT_ERROR) assert_int_equal(a.last.error.status, HEARTH_CANCELLED);
        int cached = check(e, &p, 4);
        if (a.last.type == HEARTH_EVENT_ERROR) kept += cached > 0 && cached < 649;
    }
    print_message("%d of 40 cancelled within the prefill\n", kept);
    hearth_engine_close(e);
}

/* ---- neighbours */

static void neighbours_do_not_change_an_answer(void **state) {
    (void)state;
    enum { N = 12 };
    hearth_engine *e = open_engine(SMALL, 700, 4, 0);
    for (int round = 0; round < 3; round++) {
        hearth_request *requests[N];
        answer expected[N];
        for (int i = 0; i < N; i++) {
            /* Pairs share a prefix; some rounds repeat, some are new. */
            prompt p = make_prompt((uint64_t)(i / 2 + 10 * (round / 2)), 40 + 37 * (i % 6));
            if (i % 2) p.ids[30] ^= 1;
            sampler_params sampling = {.temperature = 0.9, .top_p = 0.9, .top_k = 50, .seed = (uint64_t)i};
            expected[i] = truth(&p, 20, &sampling);
            hearth_request_params params = params_for(&p, 20);
            params.temperature = 0.9, params.top_p = 0.9, params.top_k = 50, params.min_p = 0;
            params.has_seed = true, params.seed = (uint64_t)i;
            requests[i] = start(e, &params);
        }
        for (int i = 0; i < N; i++) {
            answer a = collect(requests[i]);
            assert_int_equal(a.last.type, HEARTH_EVENT_FINISH);
            same_answer(&a, &expected[i]);
        }
    }
    assert_true(hearth_engine_stats(e).cached_tokens > 0);
    hearth_engine_close(e);
}

/* Agents that extend, edit, cut and fork each other's prompts, several at a time, some cancelled: every answer that ends is
 * the cold one, and every prompt is accounted for. */
static void random_traffic(hearth_engine *e, uint64_t seed, int agents, int rounds, double cached_min) {
    print_message("seed %llu\n", (unsigned long long)seed);
#define RANDOM(n) (seed = seed * 6364136223846793005u + 1442695040888963407u, (int)((seed >> 33) % (unsigned)(n)))
    prompt *prompts = mem_zero((size_t)agents, sizeof *prompts);
    hearth_request **requests = mem_zero((size_t)agents, sizeof *requests);
    for (int i = 0; i < agents; i++) prompts[i] = make_prompt((uint64_t)i, 20);
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < agents; i++) {
            prompt *p = &prompts[i];
            if (RANDOM(4) == 0) *p = prompts[RANDOM(agents)];
            int from = RANDOM(4) ? p->count + RANDOM(12) : RANDOM(p->count);
            if (from > 400) from = RANDOM(40);
            for (int k = from; k < PROMPT_MAX; k++) p->ids[k] = RANDOM(107);
            p->count = from + 1 + RANDOM(60);
            hearth_request_params params = params_for(p, 6);
            requests[i] = start(e, &params);
            if (RANDOM(6) == 0) hearth_request_cancel(requests[i]);
        }
        for (int i = 0; i < agents; i++) {
            answer a = collect(requests[i]), expected = truth(&prompts[i], 6, &GREEDY);
            if (a.last.type == HEARTH_EVENT_FINISH) {
                same_answer(&a, &expected);
                const hearth_usage *u = &a.last.usage;
                int reach = u->common_tokens < u->prompt_tokens ? u->common_tokens : u->prompt_tokens - 1;
                assert_true(u->cached_tokens <= reach);
                if (u->common_tokens) assert_true((u->cached_tokens == reach) == (u->reuse == HEARTH_REUSE_FULL));
            } else {
                assert_int_equal(a.last.error.status, HEARTH_CANCELLED);
            }
        }
    }
    hearth_stats stats = hearth_engine_stats(e);
    print_message("%d finished, %d cancelled, %d of %d prompt tokens cached\n", (int)stats.requests_finished,
                  (int)stats.requests_cancelled, (int)stats.cached_tokens, (int)stats.prompt_tokens);
    assert_true((double)stats.cached_tokens > (double)stats.prompt_tokens * cached_min);
    uint64_t begun = 0;
    for (int i = 0; i < HEARTH_REUSE_COUNT; i++) begun += stats.reuse_requests[i];
    assert_true(begun >= stats.requests_finished && begun <= stats.requests_finished + stats.requests_cancelled);
    free(prompts);
    free(requests);
}

static void random_traffic_gives_cold_answers(void **state) {
    (void)state;
    hearth_engine *e = open_engine(SMALL, 500, 3, 0);
    random_traffic(e, 2024, 5, 40, 0.33);
    hearth_engine_close(e);
}

/* 16 agents at once in memory that is just enough to run them. */
static void sixteen_agents_in_hardly_any_memory(void **state) {
    (void)state;
    hearth_options options = {.context_max = 500, .parallel = 16, .threads = 2, .cache_bytes = 1};
    hearth_engine *e;
    hearth_error fault;
    assert_int_equal(hearth_engine_open(SMALL, &options, &e, &fault), HEARTH_MEMORY);
    const char *least = strstr(fault.message, "= "); /* what is needed at least ends the message */
    assert_non_null(least);
    options.cache_bytes = strtoull(least + 2, NULL, 10);
    if (hearth_engine_open(SMALL, &options, &e, &fault) != HEARTH_OK) fail_msg("%s", fault.message);
    hearth_info info = hearth_engine_info(e);
    assert_int_equal(info.kv_bytes + info.state_bytes, options.cache_bytes);
    assert_non_null(strstr(info.chat_error, "no tokenizer.json"));
    random_traffic(e, 77, 16, 10, 0.2);
    hearth_stats stats = hearth_engine_stats(e);
    assert_true(stats.cache_evictions > 0);
    assert_true(stats.kv_pages_used <= stats.kv_pages_total && stats.snapshots_used <= stats.snapshots_total);
    hearth_engine_close(e);
}

/* A prompt of several chunks leaves room for a running answer's token in every step. */
static void a_long_prompt_does_not_stop_an_answer(void **state) {
    (void)state;
    hearth_engine *e = open_engine(SMALL, 30000, 2, 0);
    prompt p = make_prompt(21, 20);
    hearth_request_params params = params_for(&p, 0);
    params.ignore_stop_ids = true;
    hearth_request *talking = start(e, &params);
    hearth_event event;
    while (hearth_request_next(talking, &event, 10000) && event.type != HEARTH_EVENT_CONTENT) {
    }
    hearth_stats before = hearth_engine_stats(e);
    prompt longer = make_prompt(22, 700);
    answer a = ask(e, &longer, 1);
    assert_int_equal(a.last.type, HEARTH_EVENT_FINISH);
    hearth_stats after = hearth_engine_stats(e);
    int tokens = 0;
    while (hearth_request_next(talking, &event, 0)) tokens += event.type == HEARTH_EVENT_CONTENT;
    assert_true(after.steps - before.steps >= 3);
    assert_true(tokens >= (int)(after.steps - before.steps) - 1);
    hearth_request_destroy(talking);
    hearth_engine_close(e);
}

static void a_seed_decides(void **state) {
    (void)state;
    hearth_engine *e = open_engine(SMALL, 200, 1, 0);
    prompt p = make_prompt(7, 20);
    hearth_request_params params = params_for(&p, 30);
    params.temperature = 2, params.top_k = 0, params.top_p = 1;
    params.has_seed = params.ignore_stop_ids = true;
    params.seed = 5;
    answer a = collect(start(e, &params)), b = collect(start(e, &params));
    same_answer(&a, &b);
    params.seed = 6;
    b = collect(start(e, &params));
    assert_true(memcmp(a.ids, b.ids, sizeof a.ids) != 0);
    params.has_seed = false; /* drawn */
    a = collect(start(e, &params)), b = collect(start(e, &params));
    assert_true(memcmp(a.ids, b.ids, sizeof a.ids) != 0);
    hearth_engine_close(e);
}

/* ---- ends */

static void max_tokens_and_stop_strings_end_an_answer(void **state) {
    (void)state;
    hearth_engine *e = open_engine(SMALL, 700, 1, 0);
    prompt p = make_prompt(11, 30);
    hearth_request_params params = params_for(&p, 20);
    params.ignore_stop_ids = true;
    answer full = collect(start(e, &params));
    assert_int_equal(full.count, 20);
    for (int max = 1; max <= 8; max++) {
        params.max_tokens = max;
        answer a = collect(start(e, &params));
        assert_int_equal(a.count, max);
        assert_int_equal(a.last.finish, HEARTH_FINISH_LENGTH);
        assert_memory_equal(a.ids, full.ids, (size_t)max * sizeof *a.ids);
    }
    params.max_tokens = 20;
    for (int at = 1; at < 8; at++) {
        /* " 57 1" stops within a token's text; the ids before it are whole. */
        char stop[32];
        snprintf(stop, sizeof stop, " %d ", full.ids[at]);
        const char *stops[] = {"never", stop};
        params.stop = stops, params.stop_count = 2;
        hearth_request *r = start(e, &params);
        buffer text = {0}, all = {0};
        hearth_event event;
        while (hearth_request_next(r, &event, 60000)) {
            if (event.type == HEARTH_EVENT_CONTENT) buffer_append(&text, event.text, event.text_size);
        }
        assert_int_equal(event.type, HEARTH_EVENT_FINISH);
        assert_int_equal(event.finish, HEARTH_FINISH_STOP);
        for (int i = 0; i < 20; i++) buffer_printf(&all, "%d ", full.ids[i]);
        ptrdiff_t end = span_find(span_make(all.data, all.size), span_text(stop));
        assert_int_equal(text.size, end);
        assert_memory_equal(text.data, all.data, text.size);
        hearth_request_destroy(r);
        buffer_deinit(&text);
        buffer_deinit(&all);
    }
    hearth_engine_close(e);
}

/* Destroyed requests end within a step; this waits for it. */
static void wait_until_idle(hearth_engine *e) {
    uint64_t start_ns = clock_ns();
    while (hearth_engine_stats(e).running + hearth_engine_stats(e).queued > 0)
        assert_true(clock_ms_since(start_ns) < 10000);
}

static void a_full_queue_says_when_to_come_back(void **state) {
    (void)state;
    hearth_engine *e = open_engine(SMALL, 30000, 1, 1);
    prompt p = make_prompt(12, 40);
    hearth_request_params params = params_for(&p, 0);
    params.ignore_stop_ids = true; /* runs for long */
    hearth_request *running = start(e, &params), *queued = start(e, &params), *third;
    hearth_error fault;
    assert_int_equal(hearth_request_create(e, &params, &third, &fault), HEARTH_BUSY);
    assert_in_range(fault.retry_after_s, 1, 60);
    hearth_stats stats = hearth_engine_stats(e);
    assert_int_equal(stats.running + stats.queued, 2);
    assert_int_equal(stats.requests_refused, 1);
    /* Waiting requests can be cancelled while another runs. */
    hearth_request_cancel(queued);
    hearth_event event;
    while (hearth_request_next(queued, &event, 10000)) {
    }
    assert_int_equal(event.error.status, HEARTH_CANCELLED);
    hearth_request_destroy(queued);
    assert_int_equal(hearth_request_create(e, &params, &third, &fault), HEARTH_OK);
    hearth_request_destroy(third); /* never read */
    hearth_request_destroy(running);
    wait_until_idle(e);
    check(e, &p, 5);
    hearth_engine_close(e);
}

static void closing_ends_what_runs(void **state) {
    (void)state;
    for (int i = 0; i < 10; i++) {
        hearth_engine *e = open_engine(SMALL, 5000, 2, 8);
        prompt p = make_prompt(13, 300);
        hearth_request_params params = params_for(&p, 0);
        params.ignore_stop_ids = true;
        hearth_request *requests[5];
        for (int k = 0; k < 5; k++) requests[k] = start(e, &params);
        hearth_event event;
        if (i % 2) hearth_request_next(requests[0], &event, 1000);
        for (int k = 0; k < 5; k++) hearth_request_destroy(requests[k]);
        hearth_engine_close(e);
    }
}

typedef struct doorbell {
    pthread_mutex_t lock;
    int rings;
} doorbell;

static void ring(void *context) {
    doorbell *d = context;
    pthread_mutex_lock(&d->lock);
    d->rings++;
    pthread_mutex_unlock(&d->lock);
}

static void ready_rings_for_every_event_and_never_after_destroy(void **state) {
    (void)state;
    hearth_engine *e = open_engine(SMALL, 700, 1, 0);
    prompt p = make_prompt(14, 30);
    doorbell d = {.lock = PTHREAD_MUTEX_INITIALIZER};
    hearth_request_params params = params_for(&p, 6);
    params.ignore_stop_ids = true;
    params.ready = ring;
    params.ready_context = &d;
    collect(start(e, &params));
    assert_in_range(d.rings, 8 - 1, 8); /* START, 6 texts, FINISH, whose ring may come after it was taken */
    for (int i = 0; i < 50; i++) {
        params.max_tokens = 200;
        hearth_request *r = start(e, &params);
        uint64_t until = clock_ns() + (uint64_t)i * 30000u;
        while (clock_ns() < until) {
        }
        hearth_request_destroy(r);
        int rings = d.rings;
        pthread_mutex_lock(&d.lock);
        assert_int_equal(d.rings, rings);
        pthread_mutex_unlock(&d.lock);
    }
    hearth_engine_close(e);
}

static void polling_returns_at_once(void **state) {
    (void)state;
    hearth_engine *e = open_engine(SMALL, 30000, 1, 0);
    prompt p = make_prompt(15, 30);
    hearth_request_params params = params_for(&p, 0);
    params.ignore_stop_ids = true;
    hearth_request *first = start(e, &params), *second = start(e, &params);
    hearth_event event;
    assert_true(hearth_request_next(second, &event, 10000)); /* START; then it waits for the first */
    uint64_t before = clock_ns();
    assert_false(hearth_request_next(second, &event, 0));
    assert_false(hearth_request_next(second, &event, 20));
    assert_true(clock_ms_since(before) < 2000);
    assert_false(hearth_request_finished(second));
    hearth_request_destroy(second);
    hearth_request_destroy(first);
    hearth_engine_close(e);
}

/* ---- a checkpoint whose embedding of one id is not a number */

/* Overwrites row `id` of the embedding (bf16, width 36) with NaN. */
static void poison(const char *dir, int id) {
    buffer bytes = {0};
    char *path = file_join(dir, "model.safetensors");
    assert_int_equal(file_read(path, 1 << 24, &bytes, NULL), ERR_OK);
    uint64_t header;
    memcpy(&header, bytes.data, sizeof header);
    arena *a = arena_create();
    const json *root;
    assert_int_equal(json_parse(a, span_make(bytes.data + 8, header), 8, &root, NULL), ERR_OK);
    const json *embedding = json_get(root, "model.language_model.embed_tokens.weight");
    int64_t offset;
    assert_true(json_integer(json_at(json_get(embedding, "data_offsets"), 0), &offset));
    memset(bytes.data + 8 + header + offset + id * 36 * 2, 0xff, 36 * 2);
    assert_int_equal(file_write_atomic(path, span_make(bytes.data, bytes.size), NULL), ERR_OK);
    arena_destroy(a);
    buffer_deinit(&bytes);
    free(path);
}

static void a_non_finite_logit_fails_its_request_alone(void **state) {
    (void)state;
    const char *dir = copy_model("poisoned");
    poison(dir, 106);
    hearth_engine *e = open_engine(dir, 700, 2, 0);
    prompt good = make_prompt(16, 80), bad;
    for (int i = 0; i < good.count; i++)
        if (good.ids[i] == 106) good.ids[i] = 1;
    bad = good;
    bad.ids[70] = 106;
    answer before = ask(e, &good, 5);
    hearth_request_params good_params = params_for(&good, 5), bad_params = params_for(&bad, 5);
    hearth_request *r = start(e, &bad_params), *neighbour = start(e, &good_params);
    answer failed = collect(r), beside = collect(neighbour);
    assert_int_equal(failed.last.error.status, HEARTH_INTERNAL);
    assert_int_equal(failed.count, 0);
    same_answer(&beside, &before);
    /* Nothing of it is reused, by itself or by a prompt that shares its start. */
    failed = ask(e, &bad, 5);
    assert_int_equal(failed.last.error.status, HEARTH_INTERNAL);
    answer after = ask(e, &good, 5);
    same_answer(&after, &before);
    hearth_engine_close(e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening_reports_the_plan),
        cmocka_unit_test(the_cache_gets_what_is_asked_for),
        cmocka_unit_test(opening_refuses),
        cmocka_unit_test(opening_chooses_the_kv_type),
        cmocka_unit_test(a_tokenizer_must_fit_the_model_and_be_whole),
        cmocka_unit_test(parameters_are_checked),
        cmocka_unit_test(messages_without_a_tokenizer_fail_by_name),
        cmocka_unit_test(what_does_not_fit_is_refused_with_both_numbers),
        cmocka_unit_test(a_hit_gives_the_cold_answer),
        cmocka_unit_test(an_answer_sent_back_is_not_computed_again),
        cmocka_unit_test(lengths_around_edges),
        cmocka_unit_test(a_cancelled_prefill_is_kept),
        cmocka_unit_test(neighbours_do_not_change_an_answer),
        cmocka_unit_test(random_traffic_gives_cold_answers),
        cmocka_unit_test(sixteen_agents_in_hardly_any_memory),
        cmocka_unit_test(a_long_prompt_does_not_stop_an_answer),
        cmocka_unit_test(a_seed_decides),
        cmocka_unit_test(max_tokens_and_stop_strings_end_an_answer),
        cmocka_unit_test(a_full_queue_says_when_to_come_back),
        cmocka_unit_test(closing_ends_what_runs),
        cmocka_unit_test(ready_rings_for_every_event_and_never_after_destroy),
        cmocka_unit_test(polling_returns_at_once),
        cmocka_unit_test(a_non_finite_logit_fails_its_request_alone),
    };
    return cmocka_run_group_tests_name("engine", tests, open_truth, close_truth);
}
