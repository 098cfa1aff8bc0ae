/* See event_stream.h. Bytes are gathered into a line, lines into an event; a blank line hands the event over. */
#include "bench/event_stream.h"

void event_stream_deinit(event_stream *s) {
    buffer_deinit(&s->line);
    buffer_deinit(&s->data);
}

static err_code end_event(event_stream *s, error *err) {
    if (!s->has_data) return ERR_OK;
    s->has_data = false;
    return s->on_event(s->context, span_make(s->data.data, s->data.size), err);
}

static void add_data(event_stream *s, span value) {
    if (value.size && value.data[0] == ' ') value = span_make(value.data + 1, value.size - 1);
    if (s->has_data)
        buffer_char(&s->data, '\n');
    else
        buffer_clear(&s->data);
    buffer_append(&s->data, value.data, value.size);
    s->has_data = true;
}

static err_code end_line(event_stream *s, error *err) {
    span line = span_make(s->line.data, s->line.size);
    if (!s->began && span_starts(line, span_text("\xef\xbb\xbf"))) line = span_make(line.data + 3, line.size - 3);
    s->began = true;
    err_code code = ERR_OK;
    if (!line.size)
        code = end_event(s, err);
    else if (span_starts(line, span_text("data:")))
        add_data(s, span_make(line.data + 5, line.size - 5));
    else if (span_is(line, "data"))
        add_data(s, (span){0});
    buffer_clear(&s->line);
    return code;
}

err_code event_stream_feed(event_stream *s, span bytes, error *err) {
    for (size_t i = 0; i < bytes.size;) {
        if (s->after_cr && bytes.data[i] == '\n') i++; /* the second half of a CR LF */
        s->after_cr = false;
        size_t start = i;
        while (i < bytes.size && bytes.data[i] != '\n' && bytes.data[i] != '\r') i++;
        buffer_append(&s->line, bytes.data + start, i - start);
        if (s->line.size + s->data.size > EVENT_BYTES_MAX)
            ERR_FAIL(err, ERR_LIMIT, "an event of more than %d bytes", EVENT_BYTES_MAX);
        if (i == bytes.size) return ERR_OK;
        s->after_cr = bytes.data[i++] == '\r';
        ERR_TRY(end_line(s, err));
    }
    return ERR_OK;
}
