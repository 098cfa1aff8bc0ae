/* What tests share: where the reference data lies, and skipping with a reason. */
#ifndef HEARTH_TESTS_SUPPORT_H
#define HEARTH_TESTS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Path of a file under the shared reference data (HEARTH_SHARED, else ../shared), or NULL when it is not there.
 * Static storage, valid until the next 8 calls. */
const char *test_shared(const char *relative);

/* Same, but prints the reason and skips the running test when the file is absent. */
const char *test_need_shared(const char *relative);

/* A path in a fresh temporary directory of this process, removed at exit. Static storage as above. */
const char *test_temp(const char *name);

#endif
