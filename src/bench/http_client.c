/* See http_client.h. The handle is kept from request to request, which is what keeps the connection.
 *
 * Proxies of the environment are ignored: a benchmark through one measures the proxy. An idle connection is not reused
 * after 4 s, as the official client does, so that a server which closes idle connections is not met half-way. For
 * https the certificates of the system are trusted, or those of SSL_CERT_FILE, which OpenSSL's own programs read too. */
#include "bench/http_client.h"

#include <stdlib.h>

#include "base/clock.h"
#include "bench/curl.h"

enum { IDLE_S_MAX = 4 };

struct http_client {
    const curl_library *lib; /* shared */
    CURL *handle;            /* owned */
    int timeout_s;
    char detail[CURL_ERROR_SIZE];
    const http_request *request; /* while one runs */
};

err_code http_client_open(int timeout_s, http_client **out, error *err) {
    const curl_library *lib;
    ERR_TRY(curl_library_open(&lib, err));
    CURL *handle = lib->easy_init();
    if (!handle) ERR_FAIL(err, ERR_MEMORY, "libcurl cannot create a handle");
    http_client *c = mem_zero(1, sizeof *c);
    *c = (http_client){.lib = lib, .handle = handle, .timeout_s = timeout_s};
    *out = c;
    return ERR_OK;
}

void http_client_close(http_client *c) {
    if (!c) return;
    c->lib->easy_cleanup(c->handle);
    free(c);
}

static int current_status(const http_client *c) {
    long status = 0;
    c->lib->easy_getinfo(c->handle, CURLINFO_RESPONSE_CODE, &status);
    return (int)status;
}

static size_t on_bytes(char *data, size_t size, size_t count, void *context) {
    uint64_t now = clock_ns();
    http_client *c = context;
    c->request->on_body(c->request->context, current_status(c), span_make(data, size * count), now);
    return size * count;
}

static int on_tick(void *context, curl_off_t a, curl_off_t b, curl_off_t d, curl_off_t e) {
    (void)a, (void)b, (void)d, (void)e;
    const http_request *request = ((http_client *)context)->request;
    return request->cancelled && request->cancelled(request->context);
}

static struct curl_slist *make_headers(const http_client *c, const http_request *request) {
    struct curl_slist *list = NULL;
    for (const char *const *h = request->headers; *h; h++) list = c->lib->slist_append(list, *h);
    return list;
}

static void prepare(http_client *c, const http_request *request, struct curl_slist *headers) {
    CURLcode (*set)(CURL *, CURLoption, ...) = c->lib->easy_setopt;
    CURL *h = c->handle;
    c->request = request;
    c->detail[0] = 0;
    set(h, CURLOPT_URL, request->url);
    set(h, CURLOPT_HTTPHEADER, headers);
    set(h, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    set(h, CURLOPT_PROXY, "");
    const char *roots = getenv("SSL_CERT_FILE");
    if (roots && *roots) set(h, CURLOPT_CAINFO, roots);
    set(h, CURLOPT_NOSIGNAL, 1L);
    set(h, CURLOPT_MAXAGE_CONN, (long)IDLE_S_MAX);
    set(h, CURLOPT_TIMEOUT, (long)c->timeout_s);
    set(h, CURLOPT_ERRORBUFFER, c->detail);
    set(h, CURLOPT_WRITEFUNCTION, on_bytes);
    set(h, CURLOPT_WRITEDATA, c);
    set(h, CURLOPT_NOPROGRESS, 0L);
    set(h, CURLOPT_XFERINFOFUNCTION, on_tick);
    set(h, CURLOPT_XFERINFODATA, c);
    if (request->body.data) {
        set(h, CURLOPT_POST, 1L);
        set(h, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.size);
        set(h, CURLOPT_POSTFIELDS, request->body.data);
    } else {
        set(h, CURLOPT_HTTPGET, 1L);
    }
}

err_code http_client_send(http_client *c, const http_request *request, http_outcome *outcome, error *err) {
    *outcome = (http_outcome){0};
    struct curl_slist *headers = make_headers(c, request);
    prepare(c, request, headers);
    outcome->start_ns = clock_ns();
    CURLcode code = c->lib->easy_perform(c->handle);
    outcome->end_ns = clock_ns();
    long connects = 0;
    c->lib->easy_getinfo(c->handle, CURLINFO_NUM_CONNECTS, &connects);
    outcome->status = current_status(c);
    outcome->new_connection = connects > 0;
    c->lib->easy_setopt(c->handle, CURLOPT_HTTPHEADER, NULL);
    c->lib->slist_free_all(headers);
    if (code == CURLE_ABORTED_BY_CALLBACK) ERR_FAIL(err, ERR_CANCELLED, "stopped");
    if (code == CURLE_OPERATION_TIMEDOUT) ERR_FAIL(err, ERR_LIMIT, "no whole answer within %d s", c->timeout_s);
    if (code != CURLE_OK) ERR_FAIL(err, ERR_IO, "%s", c->detail[0] ? c->detail : c->lib->easy_strerror(code));
    return ERR_OK;
}
