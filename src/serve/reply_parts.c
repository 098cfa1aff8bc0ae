/* See reply_parts.h. */
#include "serve/reply_parts.h"

#include <string.h>
#include <sys/random.h>

#include "base/json.h"

void reply_id(char out[REPLY_ID_SIZE], const char *prefix) {
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    enum { LETTERS = 24 };
    unsigned char random[LETTERS];
    size_t size = strlen(prefix);
    HEARTH_ASSERT(size + LETTERS < REPLY_ID_SIZE);
    ssize_t got = getrandom(random, sizeof random, 0);
    HEARTH_ASSERT(got == LETTERS);
    memcpy(out, prefix, size);
    for (int i = 0; i < LETTERS; i++) out[size + (size_t)i] = digits[random[i] % 62];
    out[size + LETTERS] = 0;
}

void reply_write_identity(buffer *out, const reply_identity *identity, const char *object) {
    buffer_printf(out, "\"id\":\"%s\",\"object\":\"%s\",\"created\":%lld,\"model\":", identity->id, object,
                  (long long)identity->created);
    json_write_bytes(out, span_text(identity->model));
    buffer_text(out, ",\"system_fingerprint\":\"hearth-" HEARTH_VERSION "\"");
}

const char *reply_finish_reason(hearth_finish finish) {
    switch (finish) {
        case HEARTH_FINISH_STOP:
            return "stop";
        case HEARTH_FINISH_LENGTH:
            return "length";
        case HEARTH_FINISH_TOOL_CALLS:
            return "tool_calls";
    }
    return "stop";
}

void reply_write_usage(buffer *out, const hearth_usage *usage) {
    buffer_printf(out,
                  "{\"prompt_tokens\":%d,\"completion_tokens\":%d,\"total_tokens\":%d,"
                  "\"prompt_tokens_details\":{\"cached_tokens\":%d},"
                  "\"completion_tokens_details\":{\"reasoning_tokens\":%d}}",
                  usage->prompt_tokens, usage->completion_tokens, usage->prompt_tokens + usage->completion_tokens,
                  usage->cached_tokens, usage->reasoning_tokens);
}
