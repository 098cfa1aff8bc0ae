/* See curl.h. */
#include "bench/curl.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

static const char *const library_names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};

/* POSIX lets dlsym's object pointer be read as a function pointer, ISO C does not convert one into the other: copy. */
static bool find(void *library, const char *name, void *slot) {
    void *symbol = dlsym(library, name);
    memcpy(slot, &symbol, sizeof symbol);
    return symbol != NULL;
}

static bool find_all(void *library, curl_library *t) {
    CURLcode (*global_init)(long);
    bool found =
        find(library, "curl_easy_init", &t->easy_init) && find(library, "curl_easy_cleanup", &t->easy_cleanup) &&
        find(library, "curl_easy_setopt", &t->easy_setopt) && find(library, "curl_easy_perform", &t->easy_perform) &&
        find(library, "curl_easy_getinfo", &t->easy_getinfo) &&
        find(library, "curl_easy_strerror", &t->easy_strerror) &&
        find(library, "curl_slist_append", &t->slist_append) &&
        find(library, "curl_slist_free_all", &t->slist_free_all) && find(library, "curl_version", &t->version) &&
        find(library, "curl_global_init", &global_init);
    return found && global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}

err_code curl_library_open(const curl_library **out, error *err) {
    static curl_library table;
    static bool open;
    void *library = NULL;
    for (size_t i = 0; !open && !library && i < sizeof library_names / sizeof *library_names; i++)
        library = dlopen(library_names[i], RTLD_NOW | RTLD_LOCAL);
    if (!open && !library)
        ERR_FAIL(err, ERR_UNSUPPORTED,
                 "the benchmark client needs libcurl.so.4: install it with `apt-get install libcurl4` (Ubuntu 24.04: "
                 "libcurl4t64); the system says: %s",
                 dlerror());
    if (!open && !find_all(library, &table))
        ERR_FAIL(err, ERR_UNSUPPORTED, "libcurl.so.4 is there but lacks a function that every version should have");
    open = true;
    *out = &table;
    return ERR_OK;
}
