/* Runs a fuzz target as an ordinary test: every corpus file, and deterministic variants of it (truncations, flipped bits,
 * repeated and removed pieces), so that the corpora guard against regressions without a fuzzer. Linked with one
 * fuzz_<name>.c; usage: fuzz_<name> CORPUS_DIR. A finding is a crash or a sanitizer report. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t random_state = 1;

static uint32_t next_random(void) { /* xorshift32: the same variants on every machine */
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return random_state;
}

/* Exactly sized heap copies, so that the address sanitizer sees a read past the end. */
static void run_input(const char *data, size_t size) {
    char *copy = mem_alloc(size);
    if (size) memcpy(copy, data, size);
    LLVMFuzzerTestOneInput((const uint8_t *)copy, size);
    free(copy);
}

static void run_variant(const buffer *input) {
    buffer b = {0};
    buffer_append(&b, input->data, input->size);
    size_t at = next_random() % b.size, length = 1 + next_random() % 16;
    switch (next_random() % 5) {
        case 0: /* truncate */
            b.size = at;
            break;
        case 1: /* flip a bit */
            b.data[at] ^= (char)(1u << next_random() % 8);
            break;
        case 2: /* any byte */
            b.data[at] = (char)next_random();
            break;
        case 3: /* remove a piece */
            if (at + length <= b.size) {
                memmove(b.data + at, b.data + at + length, b.size - at - length);
                b.size -= length;
            }
            break;
        default: /* repeat a piece at the end */
            if (at + length <= b.size) {
                char piece[16];
                memcpy(piece, b.data + at, length);
                buffer_append(&b, piece, length);
            }
    }
    run_input(b.data, b.size);
    buffer_deinit(&b);
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    enum { VARIANTS = 100, LARGE = 1 << 18 };
    DIR *dir = opendir(argv[1]);
    if (!dir) {
        printf("%s: no corpus\n0 passed, 1 failed\n", argv[1]);
        return 1;
    }
    run_input("", 0);
    int files = 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.') continue;
        char *path = file_join(argv[1], entry->d_name);
        buffer input = {0};
        error err;
        if (file_read(path, 1u << 26, &input, &err) != ERR_OK) {
            printf("%s\n0 passed, 1 failed\n", err.message);
            return 1;
        }
        run_input(input.data, input.size);
        for (int i = 0; input.size && i < (input.size < LARGE ? VARIANTS : 2); i++) run_variant(&input);
        buffer_deinit(&input);
        free(path);
        files++;
    }
    closedir(dir);
    printf("%d passed, %d failed\n", files, files == 0);
    return files == 0;
}
