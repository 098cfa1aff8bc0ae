/* Any bytes as a tokenizer.json; when it opens, the same bytes and a fixed text are encoded, remembered and decoded. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "text/tokenizer_parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char sample[] =
    "The robot's e\xCC\x81 12\n\n  <|im_end|>\xFF<a>b\xE4\xBD\xA0\xE5\xA5\xBD "
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

static void use(const tokenizer *t, token_memo *m, span text) {
    const int32_t *ids = NULL;
    size_t count = 0;
    if (token_memo_encode(m, t, text, &ids, &count, NULL, NULL) != ERR_OK) return; /* a pattern that runs away */
    token_list cold = {0};
    if (tokenizer_encode(t, text, true, &cold, NULL) == ERR_OK) {
        HEARTH_ASSERT(cold.count == count && (count == 0 || memcmp(cold.ids, ids, count * sizeof *ids) == 0));
        buffer back = {0};
        tokenizer_decode(t, ids, count, false, &back);
        if (!t->normalizes) HEARTH_ASSERT(span_equal(span_make(back.data, back.size), text));
        buffer_deinit(&back);
    }
    token_list_deinit(&cold);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    span text = span_make((const char *)data, size);
    tokenizer_files files = {.name = "tokenizer.json", .text = text};
    tokenizer *t = NULL;
    if (tokenizer_load(&files, &t, NULL) != ERR_OK) return 0;
    token_memo *m = token_memo_create();
    use(t, m, span_make(sample, sizeof sample - 1));
    use(t, m, span_make(sample, sizeof sample - 9));
    use(t, m, span_make(text.data, size < 4096 ? size : 4096));
    token_memo_destroy(m);
    tokenizer_close(t);
    return 0;
}
