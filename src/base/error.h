/* Errors: an operating error is a code and one message, written once where it happens and passed up unchanged.
 *
 * A fallible function returns err_code (ERR_OK = 0) and takes `error *err` as its last parameter. It fills *err exactly
 * when it fails, through ERR_FAIL, which also records the place; callers pass the failure on with ERR_TRY. The message
 * names the thing and the number ("model.safetensors: tensor 'x': offset 10 past end 8"), fits a user's terminal, and
 * ends without a full stop or newline. A programmer's mistake is not an error: use HEARTH_ASSERT, which stays on in
 * release builds. */
#ifndef HEARTH_BASE_ERROR_H
#define HEARTH_BASE_ERROR_H

typedef enum {
    ERR_OK = 0,
    ERR_INVALID,     /* the caller's input is wrong: a field, a flag, a value */
    ERR_NOT_FOUND,   /* a named thing does not exist */
    ERR_IO,          /* the operating system refused; the message ends with strerror */
    ERR_FORMAT,      /* a file or message is malformed */
    ERR_UNSUPPORTED, /* well formed, but not something this build can do */
    ERR_LIMIT,       /* a stated limit is exceeded; the message has both numbers */
    ERR_MEMORY,      /* an allocation or a memory plan failed */
    ERR_CANCELLED,   /* the caller asked to stop */
    ERR_INTERNAL,    /* a result that cannot be right, such as a non-finite logit */
} err_code;

typedef struct error {
    err_code code;
    int line;          /* where the error was made */
    const char *file;  /* static string, base name of the source file */
    char message[512]; /* NUL-terminated UTF-8, cut at the end if longer */
} error;

/* Fills *err (which may be NULL) and returns code. Use through ERR_FAIL. */
err_code error_set(error *err, err_code code, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* "not_found", "limit", ...: a stable lower-case name for logs. */
const char *error_name(err_code code);

/* The code goes round error_set, so that the compiler sees that it is not ERR_OK. */
#define ERR_FAIL(err, code, ...)                                      \
    do {                                                              \
        err_code err_fail_ = (code);                                  \
        error_set((err), err_fail_, __FILE__, __LINE__, __VA_ARGS__); \
        return err_fail_;                                             \
    } while (0)
#define ERR_TRY(expression)                      \
    do {                                         \
        err_code err_try_ = (expression);        \
        if (err_try_ != ERR_OK) return err_try_; \
    } while (0)

/* Prints the condition and the place to stderr and aborts. */
void assert_failed(const char *condition, const char *file, int line) __attribute__((noreturn));
#define HEARTH_ASSERT(condition) ((condition) ? (void)0 : assert_failed(#condition, __FILE__, __LINE__))

#endif
