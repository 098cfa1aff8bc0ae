/* See api_error.h. */
#include "serve/api_error.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/json.h"

bool api_fail(api_error *e, int status, const char *code, const char *param, const char *format, ...) {
    *e = (api_error){.status = status, .code = code};
    if (param) snprintf(e->param, sizeof e->param, "%s", param);
    va_list args;
    va_start(args, format);
    vsnprintf(e->message, sizeof e->message, format, args);
    va_end(args);
    return false;
}

void api_error_from(api_error *e, const hearth_error *from) {
    static const struct {
        hearth_status status;
        int http;
        const char *code;
    } map[] = {{HEARTH_INVALID, 400, "invalid_value"},   {HEARTH_NOT_FOUND, 404, "not_found"},
               {HEARTH_UNSUPPORTED, 400, "unsupported"}, {HEARTH_CONTEXT_EXCEEDED, 400, "context_length_exceeded"},
               {HEARTH_BUSY, 429, "queue_full"},         {HEARTH_MEMORY, 503, "out_of_memory"},
               {HEARTH_CANCELLED, 503, "cancelled"}};
    int http = 500;
    const char *code = "internal_error";
    for (size_t i = 0; i < sizeof map / sizeof *map; i++)
        if (map[i].status == from->status) http = map[i].http, code = map[i].code;
    api_fail(e, http, code, from->param, "%s", from->message);
    if (http == 429 || http == 503) e->retry_after_s = from->retry_after_s > 0 ? from->retry_after_s : 1;
}

static const char *error_type(int status) {
    if (status == 401) return "authentication_error";
    if (status == 429) return "rate_limit_error";
    return status >= 500 ? "server_error" : "invalid_request_error";
}

void api_error_write(buffer *out, const api_error *e) {
    buffer_text(out, "{\"error\":{\"message\":");
    json_write_bytes(out, span_text(e->message));
    buffer_printf(out, ",\"type\":\"%s\",\"param\":", error_type(e->status));
    if (e->param[0])
        json_write_bytes(out, span_text(e->param));
    else
        buffer_text(out, "null");
    buffer_printf(out, ",\"code\":\"%s\"}}", e->code);
}
