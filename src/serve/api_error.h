/* Errors as the OpenAI API writes them: {"error":{"message","type","param","code"}} and an HTTP status. */
#ifndef HEARTH_SERVE_API_ERROR_H
#define HEARTH_SERVE_API_ERROR_H

#include "base/memory.h"
#include "hearth.h"

typedef struct api_error {
    int status;
    const char *code;  /* stable, lower case, static; docs/http-api.md lists them */
    int retry_after_s; /* 0 = no Retry-After */
    const char *allow; /* the methods that a 405 names, static; else NULL */
    char param[64];    /* "" = null */
    char message[512];
} api_error;

/* Fills *e and returns false, so that a parser can `return api_fail(...)`. param may be NULL. */
bool api_fail(api_error *e, int status, const char *code, const char *param, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* What the library reports, as an answer. */
void api_error_from(api_error *e, const hearth_error *from);
/* {"error":{...}} without a newline. */
void api_error_write(buffer *out, const api_error *e);

#endif
