/* /v1/models, /tokenize and /detokenize. Text of any size is handled by the worker. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "serve/server_inner.h"

#define TYPE_JSON "application/json; charset=utf-8"

/* ---- models: the loaded one */

static void write_model(const server *s, buffer *out) {
    buffer_text(out, "{\"id\":");
    json_write_bytes(out, span_text(s->info.name));
    buffer_printf(out, ",\"object\":\"model\",\"created\":%lld,\"owned_by\":\"hearth\",\"max_model_len\":%d}",
                  (long long)s->info.created, s->info.context_max);
}

void api_models(server *s, http_exchange *x) {
    buffer body = {0};
    buffer_text(&body, "{\"object\":\"list\",\"data\":[");
    write_model(s, &body);
    buffer_text(&body, "]}\n");
    server_reply(s, x, 200, TYPE_JSON, NULL, span_make(body.data, body.size));
    buffer_deinit(&body);
}

void api_model(server *s, http_exchange *x) {
    const char *id = x->path.data + strlen("/v1/models/");
    if (strcmp(id, s->info.name)) {
        api_error e;
        api_fail(&e, 404, "model_not_found", "model", "the model '%.100s' does not exist; this server has '%s'", id,
                 s->info.name);
        server_reply_error(s, x, &e);
        return;
    }
    buffer body = {0};
    write_model(s, &body);
    buffer_char(&body, '\n');
    server_reply(s, x, 200, TYPE_JSON, NULL, span_make(body.data, body.size));
    buffer_deinit(&body);
}

/* ---- text to tokens and back */

typedef struct text_job {
    owner owner; /* first */
    job job;
    server *server;
    http_exchange *x; /* NULL once the client left */
    bool (*work)(struct text_job *t, const json *root);
    const char *field; /* the one that is needed */
    buffer body, answer;
    api_error error;
    bool ok;
} text_job;

static bool tokenize(text_job *t, const json *root) {
    const json *content = json_get(root, "content");
    if (!json_is(content, JSON_STRING))
        return api_fail(&t->error, 400, "invalid_value", "content", "content must be a string");
    int32_t *ids;
    size_t count;
    hearth_error why;
    if (hearth_tokenize(t->server->engine, content->text.data, content->text.size, &ids, &count, &why)) {
        api_error_from(&t->error, &why);
        return false;
    }
    buffer_text(&t->answer, "{\"tokens\":[");
    for (size_t i = 0; i < count; i++) buffer_printf(&t->answer, "%s%d", i ? "," : "", (int)ids[i]);
    buffer_text(&t->answer, "]}\n");
    free(ids);
    return true;
}

static bool read_ids(text_job *t, const json *tokens, int32_t *ids) {
    size_t index = 0;
    for (const json *item = tokens->first; item; item = item->next) {
        int64_t id;
        char name[48];
        snprintf(name, sizeof name, "tokens[%zu]", index);
        if (!json_integer(item, &id) || id < 0 || id > INT32_MAX)
            return api_fail(&t->error, 400, "invalid_value", name, "%s must be a token id", name);
        ids[index++] = (int32_t)id;
    }
    return true;
}

static bool detokenize(text_job *t, const json *root) {
    const json *tokens = json_get(root, "tokens");
    if (!json_is(tokens, JSON_ARRAY))
        return api_fail(&t->error, 400, "invalid_value", "tokens", "tokens must be an array of token ids");
    int32_t *ids = mem_alloc((tokens->count + (size_t)1) * sizeof *ids);
    char *text = NULL;
    size_t size;
    hearth_error why;
    bool ok = read_ids(t, tokens, ids);
    if (ok && hearth_detokenize(t->server->engine, ids, tokens->count, &text, &size, &why)) {
        api_error_from(&t->error, &why);
        ok = false;
    }
    if (ok) {
        buffer_text(&t->answer, "{\"content\":");
        json_write_bytes(&t->answer, span_make(text, size));
        buffer_text(&t->answer, "}\n");
    }
    free(text);
    free(ids);
    return ok;
}

/* As in a chat request: model must be the loaded one, and nothing else is ignored. */
static bool check_fields(text_job *t, const json *root) {
    for (const json *m = root->first; m; m = m->next) {
        if (span_is(m->key, t->field)) continue;
        char name[64];
        snprintf(name, sizeof name, "%.*s", m->key.size > 60 ? 60 : (int)m->key.size, m->key.data);
        if (!span_is(m->key, "model"))
            return api_fail(&t->error, 400, "unknown_field", name, "unknown field '%s'; no field is ignored silently",
                            name);
        if (!json_is(m, JSON_NULL) && !json_string_is(m, t->server->info.name))
            return api_fail(&t->error, 404, "model_not_found", "model", "this server has the model '%s' only",
                            t->server->info.name);
    }
    return true;
}

static text_job *of_job(job *j) { return (text_job *)((char *)j - offsetof(text_job, job)); }

static void text_run(job *j) {
    text_job *t = of_job(j);
    arena *memory = arena_create();
    const json *root;
    error why;
    if (json_parse(memory, span_make(t->body.data, t->body.size), JSON_DEPTH_DEFAULT, &root, &why))
        t->ok = api_fail(&t->error, 400, "invalid_json", NULL, "the body is not valid JSON: %s", why.message);
    else if (!json_is(root, JSON_OBJECT))
        t->ok = api_fail(&t->error, 400, "invalid_json", NULL, "the body must be a JSON object");
    else
        t->ok = check_fields(t, root) && t->work(t, root);
    arena_destroy(memory);
}

static void text_done(job *j) {
    text_job *t = of_job(j);
    if (t->x) {
        t->x->user = NULL;
        if (t->ok)
            server_reply(t->server, t->x, 200, TYPE_JSON, NULL, span_make(t->answer.data, t->answer.size));
        else
            server_reply_error(t->server, t->x, &t->error);
    }
    buffer_deinit(&t->body);
    buffer_deinit(&t->answer);
    free(t);
}

static void text_gone(owner *o) { ((text_job *)o)->x = NULL; }

static void start_job(server *s, http_exchange *x, bool (*work)(text_job *, const json *), const char *field) {
    text_job *t = mem_zero(1, sizeof *t);
    t->owner = (owner){.gone = text_gone};
    t->job = (job){.run = text_run, .done = text_done};
    t->server = s;
    t->x = x;
    t->work = work;
    t->field = field;
    http_take_body(x, &t->body);
    x->user = &t->owner;
    if (job_queue_add(s->jobs, &t->job)) return;
    api_fail(&t->error, 503, "overloaded", NULL, "too many requests are waiting; try again later");
    t->error.retry_after_s = 1;
    text_done(&t->job);
}

void api_tokenize(server *s, http_exchange *x) { start_job(s, x, tokenize, "content"); }
void api_detokenize(server *s, http_exchange *x) { start_job(s, x, detokenize, "tokens"); }
