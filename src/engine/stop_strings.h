/* Stop strings in streamed text: sends what can be sent, holds back what may turn out to be one.
 *
 * The first stop string to be complete ends the text; of several that end at the same byte the longest. This is decided
 * byte by byte, so it does not depend on how the text is cut into pieces. Held back is only the longest end of the text
 * that begins a stop string; a near miss is sent as soon as it is one. Stop strings and text are whole UTF-8 characters,
 * so what is sent is too. */
#ifndef HEARTH_ENGINE_STOP_STRINGS_H
#define HEARTH_ENGINE_STOP_STRINGS_H

#include "base/memory.h"

typedef struct stop_strings {
    char **items; /* [count], owned */
    size_t *sizes;
    int count;
    buffer held; /* begins a stop string, is none */
    bool hit;
} stop_strings;

/* Copies the strings; none may be empty. */
void stop_strings_init(stop_strings *s, const char *const *items, int count);
void stop_strings_deinit(stop_strings *s);
/* Appends to out what may be sent now. True when a stop string is complete: text after it is dropped, also later. */
bool stop_strings_feed(stop_strings *s, span text, buffer *out);
/* The text ends or is interrupted here: appends what was held back. */
void stop_strings_flush(stop_strings *s, buffer *out);

#endif
