/* See support.h. */
#include "support.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char paths[8][1024];
static unsigned next_path;

static char *path_slot(void) { return paths[next_path++ % 8]; }

const char *test_shared(const char *relative) {
    const char *root = getenv("HEARTH_SHARED");
    char *path = path_slot();
    snprintf(path, sizeof paths[0], "%s/%s", root && *root ? root : "../shared", relative);
    return access(path, R_OK) == 0 ? path : NULL;
}

const char *test_need_shared(const char *relative) {
    const char *path = test_shared(relative);
    if (!path) {
        print_message("skip: reference data '%s' is not here (HEARTH_SHARED or ../shared)\n", relative);
        skip();
    }
    return path;
}

static char temp_dir[64];

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw) {
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static void remove_temp(void) { nftw(temp_dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS); }

const char *test_temp(const char *name) {
    if (!temp_dir[0]) {
        snprintf(temp_dir, sizeof temp_dir, "/tmp/hearth-test-XXXXXX");
        if (!mkdtemp(temp_dir)) abort();
        atexit(remove_temp);
    }
    char *path = path_slot();
    snprintf(path, sizeof paths[0], "%s/%s", temp_dir, name);
    return path;
}
