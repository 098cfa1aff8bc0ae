/* UTF-8 by the table of well-formed sequences (Unicode 15, table 3-7).
 *
 * Everything rests on one question: how many bytes here are the start of a well-formed sequence, and how long would it
 * be? A full match is a character; a match that stops at the end of the text may still be completed; any other is a
 * "maximal subpart", which becomes one U+FFFD. Only the second byte has a range of its own (that is what excludes
 * overlong forms, surrogates and values past U+10FFFF), so the table is a few comparisons on the first byte. */
#include "base/utf8.h"

#include <string.h>

/* Length of the sequence that starts with lead (0: none does), and the range of its second byte. */
static int sequence_length(unsigned char lead, unsigned char *second_min, unsigned char *second_max) {
    *second_min = 0x80;
    *second_max = 0xBF;
    if (lead < 0x80) return 1;
    if (lead < 0xC2) return 0;
    if (lead < 0xE0) return 2;
    if (lead < 0xF0) {
        if (lead == 0xE0) *second_min = 0xA0;
        if (lead == 0xED) *second_max = 0x9F;
        return 3;
    }
    if (lead > 0xF4) return 0;
    if (lead == 0xF0) *second_min = 0x90;
    if (lead == 0xF4) *second_max = 0x8F;
    return 4;
}

/* Bytes at data[0..size) that begin a well-formed sequence of *length bytes; 0 when no sequence starts like this. */
static int sequence_match(const char *data, size_t size, int *length) {
    const unsigned char *s = (const unsigned char *)data;
    unsigned char min, max;
    *length = sequence_length(s[0], &min, &max);
    if (*length < 2) return *length;
    if (size < 2 || s[1] < min || s[1] > max) return 1;
    int matched = 2;
    while (matched < *length && (size_t)matched < size && (s[matched] & 0xC0) == 0x80) matched++;
    return matched;
}

int utf8_decode(const char *data, size_t size, uint32_t *code_point) {
    static const unsigned char lead_bits[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    int length;
    if (sequence_match(data, size, &length) < length || length == 0) return 0;
    uint32_t c = (unsigned char)data[0] & lead_bits[length];
    for (int i = 1; i < length; i++) c = c << 6 | ((unsigned char)data[i] & 0x3F);
    *code_point = c;
    return length;
}

int utf8_encode(uint32_t c, char out[4]) {
    HEARTH_ASSERT(c <= 0x10FFFF && (c < 0xD800 || c > 0xDFFF));
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xC0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3F));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xE0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3F));
        out[2] = (char)(0x80 | (c & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3F));
    out[2] = (char)(0x80 | (c >> 6 & 0x3F));
    out[3] = (char)(0x80 | (c & 0x3F));
    return 4;
}

/* First byte of p[0..end) that is not ASCII, 16 bytes a step. */
static const char *skip_ascii(const char *p, const char *end) {
    for (; end - p >= 16; p += 16) {
        uint64_t words[2];
        memcpy(words, p, sizeof words);
        if ((words[0] | words[1]) & 0x8080808080808080u) break;
    }
    while (p < end && (unsigned char)*p < 0x80) p++;
    return p;
}

/* First byte of p[0..end) that is not part of a valid character; end when all are. */
static const char *skip_valid(const char *p, const char *end) {
    while ((p = skip_ascii(p, end)) < end) {
        do {
            int length;
            int matched = sequence_match(p, (size_t)(end - p), &length);
            if (matched < length || length == 0) return p;
            p += length;
        } while (p < end && (unsigned char)*p >= 0x80);
    }
    return end;
}

bool utf8_valid(span text) {
    if (text.size == 0) return true;
    return skip_valid(text.data, text.data + text.size) == text.data + text.size;
}

size_t utf8_complete(span text) {
    for (size_t back = 1; back <= 3 && back <= text.size; back++) {
        const char *p = text.data + text.size - back;
        if (((unsigned char)*p & 0xC0) == 0x80) continue;
        int length;
        int matched = sequence_match(p, back, &length);
        return matched == (int)back && matched < length ? text.size - back : text.size;
    }
    return text.size;
}

void utf8_repair(buffer *out, span text) {
    if (text.size == 0) return;
    const char *p = text.data, *end = text.data + text.size;
    buffer_reserve(out, text.size);
    for (;;) {
        const char *bad = skip_valid(p, end);
        buffer_append(out, p, (size_t)(bad - p));
        if (bad == end) return;
        buffer_append(out, "\xEF\xBF\xBD", 3);
        int length;
        int matched = sequence_match(bad, (size_t)(end - bad), &length);
        p = bad + (matched > 0 ? matched : 1);
    }
}
