/* What the streamed and the whole answer have in common: ids, names, usage. */
#ifndef HEARTH_SERVE_REPLY_PARTS_H
#define HEARTH_SERVE_REPLY_PARTS_H

#include "base/memory.h"
#include "hearth.h"

enum { REPLY_ID_SIZE = 40 };
/* prefix and 24 random letters and digits: unique without a registry, also over restarts. */
void reply_id(char out[REPLY_ID_SIZE], const char *prefix);

/* What every object of one answer says about itself. */
typedef struct reply_identity {
    char id[REPLY_ID_SIZE];
    int64_t created;
    const char *model; /* borrowed */
} reply_identity;
/* "id":...,"object":...,"created":...,"model":...,"system_fingerprint":... */
void reply_write_identity(buffer *out, const reply_identity *identity, const char *object);

const char *reply_finish_reason(hearth_finish finish);
/* {"prompt_tokens":...} */
void reply_write_usage(buffer *out, const hearth_usage *usage);

#endif
