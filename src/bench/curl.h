/* libcurl, opened when `bench` first needs it.
 *
 * It is not linked: only the benchmark client wants it, a device that serves may lack it, and a static libcurl would drag
 * Kerberos and LDAP into the binary. The table holds the few functions that are used; the constants and types come from
 * its header at build time, and its ABI has been stable since 2006 (libcurl.so.4). */
#ifndef HEARTH_BENCH_CURL_H
#define HEARTH_BENCH_CURL_H

#include <curl/curl.h>

#include "base/error.h"

typedef struct curl_library {
    CURL *(*easy_init)(void);
    void (*easy_cleanup)(CURL *);
    CURLcode (*easy_setopt)(CURL *, CURLoption, ...);
    CURLcode (*easy_perform)(CURL *);
    CURLcode (*easy_getinfo)(CURL *, CURLINFO, ...);
    const char *(*easy_strerror)(CURLcode);
    struct curl_slist *(*slist_append)(struct curl_slist *, const char *);
    void (*slist_free_all)(struct curl_slist *);
    char *(*version)(void);
} curl_library;

/* The table, valid until the process ends. ERR_UNSUPPORTED names the package when the library is not there. Call it from
 * one thread. */
err_code curl_library_open(const curl_library **out, error *err);

#endif
