/* See http_message.h. The head is cut at CR LF into lines; each line is checked as it is cut, then the few headers that
 * decide the framing are interpreted together, since only together they can contradict each other. */
#include "serve/http_message.h"

#include <string.h>
#include <strings.h>

static bool fail(http_fault *fault, int status, const char *message) {
    *fault = (http_fault){status, message};
    return false;
}

static bool is_token_char(unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_token(span s) {
    for (size_t i = 0; i < s.size; i++)
        if (!is_token_char((unsigned char)s.data[i])) return false;
    return s.size > 0;
}

static bool is_no_case(span s, const char *text) {
    return s.size == strlen(text) && strncasecmp(s.data, text, s.size) == 0;
}

static span trim(span s) {
    while (s.size && (s.data[0] == ' ' || s.data[0] == '\t')) s.data++, s.size--;
    while (s.size && (s.data[s.size - 1] == ' ' || s.data[s.size - 1] == '\t')) s.size--;
    return s;
}

size_t http_head_end(span bytes, size_t *scanned) {
    size_t from = *scanned > 3 ? *scanned - 3 : 0;
    ptrdiff_t at = span_find(span_make(bytes.data + from, bytes.size - from), span_text("\r\n\r\n"));
    *scanned = bytes.size;
    return at < 0 ? 0 : from + (size_t)at + 4;
}

bool http_head_plausible(span bytes) {
    if (!bytes.size) return true;
    unsigned char c = (unsigned char)bytes.data[0];
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* Cuts the next line off *rest, without its CR LF. */
static bool next_line(span *rest, span *line) {
    ptrdiff_t end = span_find(*rest, span_text("\r\n"));
    if (end < 0) return false;
    *line = span_make(rest->data, (size_t)end);
    rest->data += end + 2;
    rest->size -= (size_t)end + 2;
    return true;
}

/* "http://host/path" as a proxy would write it: the path begins after the host. */
static bool target_path(span target, span *path) {
    if (target.size > 7 && strncasecmp(target.data, "http://", 7) == 0) {
        const char *slash = memchr(target.data + 7, '/', target.size - 7);
        if (!slash) return false;
        target = span_make(slash, target.size - (size_t)(slash - target.data));
    }
    bool any = span_is(target, "*");
    if (!any && (!target.size || target.data[0] != '/')) return false;
    for (size_t i = 0; i < target.size; i++)
        if ((unsigned char)target.data[i] <= ' ' || target.data[i] == 0x7f || target.data[i] == '#') return false;
    const char *question = memchr(target.data, '?', target.size);
    *path = question ? span_make(target.data, (size_t)(question - target.data)) : target;
    return true;
}

static bool parse_request_line(span line, http_head *head, http_fault *fault) {
    const char *first = memchr(line.data, ' ', line.size);
    if (!first) return fail(fault, 400, "the request line is malformed");
    head->method = span_make(line.data, (size_t)(first - line.data));
    span rest = span_make(first + 1, line.size - head->method.size - 1);
    const char *second = memchr(rest.data, ' ', rest.size);
    if (!is_token(head->method) || !second) return fail(fault, 400, "the request line is malformed");
    span target = span_make(rest.data, (size_t)(second - rest.data));
    span version = span_make(second + 1, rest.size - target.size - 1);
    if (version.size != 8 || memcmp(version.data, "HTTP/", 5) || version.data[6] != '.')
        return fail(fault, 400, "the request line is malformed");
    if (version.data[5] != '1' || version.data[7] < '0' || version.data[7] > '9')
        return fail(fault, 505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
    head->minor = version.data[7] - '0';
    if (!target_path(target, &head->path)) return fail(fault, 400, "the request target is malformed");
    return true;
}

static bool parse_header_line(span line, http_head *head, http_fault *fault) {
    if (line.data[0] == ' ' || line.data[0] == '\t') return fail(fault, 400, "folded header lines are not accepted");
    const char *colon = memchr(line.data, ':', line.size);
    if (!colon) return fail(fault, 400, "a header line has no colon");
    http_header h = {span_make(line.data, (size_t)(colon - line.data)),
                     trim(span_make(colon + 1, line.size - (size_t)(colon - line.data) - 1))};
    if (!is_token(h.name)) return fail(fault, 400, "a header name is malformed");
    for (size_t i = 0; i < h.value.size; i++) {
        unsigned char c = (unsigned char)h.value.data[i];
        if ((c < ' ' && c != '\t') || c == 0x7f) return fail(fault, 400, "a header value has a control character");
    }
    if (head->header_count == HTTP_HEADERS_MAX) return fail(fault, 431, "there are more than 64 header lines");
    head->headers[head->header_count++] = h;
    return true;
}

static int count_headers(const http_head *head, const char *name, span *value) {
    int count = 0;
    for (int i = 0; i < head->header_count; i++)
        if (is_no_case(head->headers[i].name, name)) *value = head->headers[i].value, count++;
    return count;
}

span http_head_get(const http_head *head, const char *name) {
    span value = {0};
    count_headers(head, name, &value);
    return value;
}

static bool parse_length(span text, uint64_t *out) {
    *out = 0;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') return false;
        if (__builtin_mul_overflow(*out, 10, out) || __builtin_add_overflow(*out, text.data[i] - '0', out))
            *out = UINT64_MAX;
    }
    return text.size > 0;
}

/* Whether the comma-separated header value holds the token. */
static bool has_token(span value, const char *token) {
    while (value.size) {
        const char *comma = memchr(value.data, ',', value.size);
        size_t size = comma ? (size_t)(comma - value.data) : value.size;
        if (is_no_case(trim(span_make(value.data, size)), token)) return true;
        size += comma != NULL;
        value = span_make(value.data + size, value.size - size);
    }
    return false;
}

static bool interpret_framing(http_head *head, http_fault *fault) {
    span value = {0};
    int hosts = count_headers(head, "Host", &value);
    if (hosts > 1 || (hosts == 0 && head->minor > 0)) return fail(fault, 400, "exactly one Host header is needed");
    int codings = count_headers(head, "Transfer-Encoding", &value);
    if (codings) {
        if (codings > 1 || !is_no_case(value, "chunked"))
            return fail(fault, 501, "of the transfer codings only 'chunked' is known");
        if (head->minor == 0) return fail(fault, 400, "HTTP/1.0 has no Transfer-Encoding");
        head->chunked = true;
    }
    int lengths = count_headers(head, "Content-Length", &value);
    if (lengths > 1 || (lengths && head->chunked))
        return fail(fault, 400, "the length of the body is given more than once");
    if (lengths && !parse_length(value, &head->content_length))
        return fail(fault, 400, "Content-Length is not a number");
    span connection = http_head_get(head, "Connection");
    head->keep_alive = head->minor > 0 ? !has_token(connection, "close") : has_token(connection, "keep-alive");
    if (count_headers(head, "Expect", &value)) {
        if (!is_no_case(value, "100-continue")) return fail(fault, 417, "of Expect only '100-continue' is known");
        head->expect_continue = head->minor > 0;
    }
    return true;
}

bool http_head_parse(span bytes, http_head *head, http_fault *fault) {
    memset(head, 0, sizeof *head);
    span line;
    if (!next_line(&bytes, &line)) return fail(fault, 400, "the request line is malformed");
    if (!parse_request_line(line, head, fault)) return false;
    while (next_line(&bytes, &line) && line.size)
        if (!parse_header_line(line, head, fault)) return false;
    return interpret_framing(head, fault);
}

static int hex_value(unsigned char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

bool http_path_decode(span path, buffer *out) {
    for (size_t i = 0; i < path.size; i++) {
        int c = (unsigned char)path.data[i];
        if (c == '%') {
            if (i + 2 >= path.size) return false;
            int high = hex_value((unsigned char)path.data[i + 1]), low = hex_value((unsigned char)path.data[i + 2]);
            if (high < 0 || low < 0) return false;
            c = high * 16 + low;
            i += 2;
        }
        if (c < ' ' || c == 0x7f) return false;
        buffer_char(out, (char)c);
    }
    return true;
}

/* ---- chunked coding */

enum { CHUNK_SIZE, CHUNK_EXTENSION, CHUNK_SIZE_LF, CHUNK_DATA, CHUNK_DATA_CR, CHUNK_DATA_LF, TRAILER, TRAILER_LF };
enum { OVERHEAD_MAX = 1 << 20 };

static http_chunks_result chunk_fault(http_fault *fault, int status, const char *message) {
    fail(fault, status, message);
    return HTTP_CHUNKS_FAULT;
}

/* One byte of framing. True: go on. */
static bool chunk_step(http_chunks *c, unsigned char byte, bool *done) {
    *done = false;
    switch (c->state) {
        case CHUNK_SIZE: {
            int digit = hex_value(byte);
            if (digit >= 0) {
                c->left = c->left * 16 + (uint64_t)digit;
                return ++c->digits <= 12;
            }
            if (!c->digits) return false;
            if (byte == '\r')
                c->state = CHUNK_SIZE_LF;
            else if (byte == ';' || byte == ' ' || byte == '\t')
                c->state = CHUNK_EXTENSION;
            else
                return false;
            return true;
        }
        case CHUNK_EXTENSION:
            if (byte == '\r') c->state = CHUNK_SIZE_LF;
            return byte != '\n';
        case CHUNK_SIZE_LF:
            c->state = c->left ? CHUNK_DATA : TRAILER;
            c->digits = 0;
            c->line_size = 0;
            return byte == '\n';
        case CHUNK_DATA_CR:
            c->state = CHUNK_DATA_LF;
            return byte == '\r';
        case CHUNK_DATA_LF:
            c->state = CHUNK_SIZE;
            return byte == '\n';
        case TRAILER:
            if (byte == '\r')
                c->state = TRAILER_LF;
            else
                c->line_size++;
            return byte != '\n';
        case TRAILER_LF:
            *done = c->line_size == 0;
            c->state = TRAILER;
            c->line_size = 0;
            return byte == '\n';
    }
    return false;
}

http_chunks_result http_chunks_feed(http_chunks *c, span bytes, size_t *used, buffer *body, size_t body_max,
                                    http_fault *fault) {
    *used = 0;
    while (*used < bytes.size) {
        if (c->state == CHUNK_DATA) {
            size_t take = bytes.size - *used;
            if (take > c->left) take = (size_t)c->left;
            buffer_append(body, bytes.data + *used, take);
            c->left -= take;
            *used += take;
            if (!c->left) c->state = CHUNK_DATA_CR;
            continue;
        }
        bool done;
        if (!chunk_step(c, (unsigned char)bytes.data[(*used)++], &done))
            return chunk_fault(fault, 400, "the chunked body is malformed");
        if (done) return HTTP_CHUNKS_DONE;
        if (c->state == CHUNK_DATA && c->left > body_max - body->size)
            return chunk_fault(fault, 413, "the request body is too large");
        if (++c->overhead > OVERHEAD_MAX) return chunk_fault(fault, 400, "the chunked body has too much framing");
    }
    return HTTP_CHUNKS_MORE;
}
