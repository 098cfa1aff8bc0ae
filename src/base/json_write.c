/* The JSON writer: tree or bytes to text, in the two layouts of Python's json.dumps; see json.h. */
#include "base/json.h"
#include "base/json_inner.h"
#include "base/utf8.h"

static void write_unit(buffer *out, unsigned unit) {
    static const char digits[] = "0123456789abcdef";
    char text[6] = {'\\', 'u', digits[unit >> 12], digits[unit >> 8 & 15], digits[unit >> 4 & 15], digits[unit & 15]};
    buffer_append(out, text, sizeof text);
}

/* The \u form of a code point: one unit, or a surrogate pair. */
static void write_code_point(buffer *out, uint32_t code_point) {
    if (code_point >= 0x10000) {
        write_unit(out, 0xD800 + ((code_point - 0x10000) >> 10));
        code_point = 0xDC00 + ((code_point - 0x10000) & 0x3FF);
    }
    write_unit(out, code_point);
}

/* A quote, a backslash or a control character. */
static void write_escape(buffer *out, unsigned char c) {
    static const char letters[] = {
        ['"'] = '"', ['\\'] = '\\', ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
    if (c < sizeof letters && letters[c])
        buffer_append(out, (char[]){'\\', letters[c]}, 2);
    else
        write_unit(out, c);
}

/* End of the run of bytes that stand for themselves. Python escapes DEL in its ASCII mode only. */
static const char *plain_end(const char *p, const char *end, bool ascii) {
    if (!ascii) return json_scan_plain(p, end, JSON_HIGH_PASS);
    const char *stop = json_scan_plain(p, end, JSON_HIGH_STOP);
    const char *del = memchr(p, 0x7F, (size_t)(stop - p));
    return del ? del : stop;
}

void json_write_string(buffer *out, span text, json_style style) {
    HEARTH_ASSERT(utf8_valid(text));
    bool ascii = style & JSON_ASCII;
    const char *p = text.size ? text.data : "", *end = p + text.size;
    buffer_reserve(out, text.size + 2);
    buffer_char(out, '"');
    while (p < end) {
        const char *stop = plain_end(p, end, ascii);
        buffer_append(out, p, (size_t)(stop - p));
        p = stop;
        if (p == end) break;
        unsigned char c = (unsigned char)*p;
        uint32_t code_point;
        if (c < 0x7F) {
            write_escape(out, c);
            p++;
        } else {
            p += utf8_decode(p, (size_t)(end - p), &code_point);
            write_code_point(out, code_point);
        }
    }
    buffer_char(out, '"');
}

void json_write_bytes(buffer *out, span bytes) {
    if (utf8_valid(bytes)) {
        json_write_string(out, bytes, JSON_COMPACT);
        return;
    }
    buffer repaired = {0};
    utf8_repair(&repaired, bytes);
    json_write_string(out, span_make(repaired.data, repaired.size), JSON_COMPACT);
    buffer_deinit(&repaired);
}

/* A scalar whole, of a container the opening bracket. */
static void write_start(buffer *out, const json *value, json_style style) {
    switch (value->type) {
        case JSON_NULL:
            buffer_text(out, "null");
            break;
        case JSON_FALSE:
            buffer_text(out, "false");
            break;
        case JSON_TRUE:
            buffer_text(out, "true");
            break;
        case JSON_NUMBER:
            buffer_append(out, value->text.data, value->text.size);
            break;
        case JSON_STRING:
            json_write_string(out, value->text, style);
            break;
        case JSON_ARRAY:
            buffer_char(out, '[');
            break;
        case JSON_OBJECT:
            buffer_char(out, '{');
            break;
    }
}

static void write_end(buffer *out, const json *container) {
    buffer_char(out, container->type == JSON_OBJECT ? '}' : ']');
}

void json_write(buffer *out, const json *value, json_style style) {
    bool spaced = style & JSON_SPACED;
    write_start(out, value, style);
    if (!json_is_container(value)) return;
    json_stack open = {0};
    json_push(&open, value, NULL);
    const json *child = value->first;
    while (open.count) {
        const json *container = json_top(&open).from;
        if (!child) { /* climb: go on after the container that ends here, unless it is the one we were given */
            write_end(out, container);
            open.count--;
            child = container->next;
            continue;
        }
        if (child != container->first) buffer_text(out, spaced ? ", " : ",");
        if (container->type == JSON_OBJECT) {
            json_write_string(out, child->key, style);
            buffer_text(out, spaced ? ": " : ":");
        }
        write_start(out, child, style);
        if (json_is_container(child)) {
            json_push(&open, child, NULL);
            child = child->first;
        } else {
            child = child->next;
        }
    }
    free(open.frames);
}
