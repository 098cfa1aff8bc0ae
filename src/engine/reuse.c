/* The reasons of hearth.h for a short reuse are those of the prefix tree. In a file of its own: a server with another
 * engine behind hearth.h needs the names too. */
#include <assert.h>

#include "cache/prefix_tree.h"
#include "hearth.h"

static_assert((int)HEARTH_REUSE_FULL == MISS_NONE && (int)HEARTH_REUSE_COLD == MISS_COLD &&
                  (int)HEARTH_REUSE_BEFORE_FIRST_SNAPSHOT == MISS_BEFORE_FIRST &&
                  (int)HEARTH_REUSE_BETWEEN_SNAPSHOTS == MISS_BETWEEN &&
                  (int)HEARTH_REUSE_SNAPSHOT_EVICTED == MISS_SNAPSHOT_EVICTED &&
                  (int)HEARTH_REUSE_PAGES_EVICTED == MISS_PAGES_EVICTED && (int)HEARTH_REUSE_COUNT == MISS_REASONS,
              "one list of reasons");

const char *hearth_reuse_name(hearth_reuse reuse) {
    if ((unsigned)reuse >= HEARTH_REUSE_COUNT) return "unknown";
    return reuse == HEARTH_REUSE_FULL ? "full" : prefix_miss_name((prefix_miss)reuse);
}
