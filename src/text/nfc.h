/* Unicode normalisation form C (UAX #15), with the way back to the offsets of the source.
 *
 * Text is nearly always in this form already, so the work is to see that fast and to copy nothing then. */
#ifndef HEARTH_TEXT_NFC_H
#define HEARTH_TEXT_NFC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"

/* A stretch that changed: source bytes [source_start, source_end) became out bytes [out_start, out_end). */
typedef struct nfc_change {
    size_t source_start, source_end, out_start, out_end;
} nfc_change;

/* Working memory and result; zero-initialise, may be used again and again. */
typedef struct nfc {
    buffer out;          /* the normalised text, when it differs from the source */
    nfc_change *changes; /* owned, ascending */
    size_t change_count, change_capacity;
    int32_t *points; /* owned: code points of one stretch */
    size_t point_capacity;
    buffer stretch;
} nfc;
void nfc_deinit(nfc *n);

/* Normalises valid UTF-8. The result is text itself when nothing changes (change_count is 0), else n->out. */
span nfc_normalize(nfc *n, span text);

/* Whether a code point is known to be the same in form C whatever precedes it: never reordered, never composed with
 * what stands before, never replaced. Says false for some that are. */
bool nfc_is_inert(uint32_t code_point);

#endif
