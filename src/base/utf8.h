/* UTF-8: validation, decoding, and cutting at character borders. */
#ifndef HEARTH_BASE_UTF8_H
#define HEARTH_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"

/* Decodes one character at data[0..size), size >= 1. Returns its length 1..4 and the code point, or 0 when the bytes
 * are not a valid encoding (overlong, surrogate, above U+10FFFF, truncated). */
int utf8_decode(const char *data, size_t size, uint32_t *code_point);
int utf8_encode(uint32_t code_point, char out[4]);
bool utf8_valid(span text);
/* Length of the longest prefix that ends at a character border or in an invalid byte: what a stream may send now.
 * The remaining at most 3 bytes are the start of a character that may still be completed. */
size_t utf8_complete(span text);
/* Appends text with each maximal invalid part replaced by U+FFFD (Unicode's recommended practice, as Python does). */
void utf8_repair(buffer *out, span text);

#endif
