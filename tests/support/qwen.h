/* The Qwen tokenizer of the shared reference data, unpacked once under build/ for the tests and benches of a tree. */
#ifndef HEARTH_TESTS_QWEN_H
#define HEARTH_TESTS_QWEN_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A directory with tokenizer.json and tokenizer_config.json, or NULL where the reference data is absent. Unpacks to a
 * name of this process and renames, so that programs may run side by side. */
static inline const char *qwen_tokenizer_dir(void) {
    static const char dir[] = "build/qwen-tokenizer", ready[] = "build/qwen-tokenizer/tokenizer.json";
    const char *root = getenv("HEARTH_SHARED");
    if (!root || !*root) root = "../shared";
    char command[4096];
    snprintf(command, sizeof command, "%s/qwen/tokenizer.json.gz", root);
    if (access(command, R_OK) != 0) return NULL;
    if (access(ready, R_OK) == 0) return dir;
    snprintf(
        command, sizeof command,
        "mkdir -p %s && cp -f '%s/qwen/tokenizer_config.json' %s/ && gzip -dc '%s/qwen/tokenizer.json.gz' >%s.%d && "
        "mv %s.%d %s",
        dir, root, dir, root, ready, (int)getpid(), ready, (int)getpid(), ready);
    return system(command) == 0 ? dir : NULL;
}

#endif
