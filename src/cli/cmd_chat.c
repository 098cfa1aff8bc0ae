/* hearth chat: a conversation in the terminal, over hearth.h like any other program.
 *
 * The answer goes to stdout as it is made, everything else to stderr, so that `echo question | hearth chat MODEL` can be
 * piped on. Ctrl-C stops the answer being made; at the prompt it leaves. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/json.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "hearth.h"

typedef struct chat {
    hearth_engine *engine;
    hearth_request_params params; /* but for messages */
    buffer messages;              /* "[{...},{...}" */
    bool color;                   /* dim the reasoning */
} chat;

static volatile sig_atomic_t interrupted;
static int interrupt_fd; /* readable since a Ctrl-C: a signal just before a read blocks must not be lost */

static void on_interrupt(int number) {
    (void)number;
    int why = errno;
    interrupted = 1;
    eventfd_write(interrupt_fd, 1);
    errno = why;
}

static void catch_interrupt(void) {
    struct sigaction action = {.sa_handler = on_interrupt}; /* no SA_RESTART: reading a line gives up */
    interrupt_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    HEARTH_ASSERT(interrupt_fd >= 0);
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
}

static void forget_interrupt(void) {
    eventfd_t count;
    interrupted = 0;
    (void)!eventfd_read(interrupt_fd, &count);
}

/* Prints the prompt; true when a line can be read, false at Ctrl-C. A terminal hands out line by line, so none waits in
 * the buffer of stdin. */
static bool wait_at_prompt(void) {
    struct pollfd sources[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = interrupt_fd, .events = POLLIN}};
    fputs("> ", stderr);
    while (poll(sources, 2, -1) < 0 && errno == EINTR) continue;
    return !sources[1].revents;
}

/* ---- the conversation as JSON */

static void add_field(buffer *b, const char *name, span text) {
    buffer_printf(b, "\"%s\":", name);
    json_write_bytes(b, text);
}

static void add_message(chat *c, const char *role, span content, span reasoning) {
    buffer *b = &c->messages;
    buffer_char(b, b->size ? ',' : '[');
    buffer_printf(b, "{\"role\":\"%s\",", role);
    add_field(b, "content", content);
    if (reasoning.size) {
        buffer_char(b, ',');
        add_field(b, "reasoning_content", reasoning);
    }
    buffer_char(b, '}');
}

/* ---- an answer */

typedef struct answer {
    buffer content, reasoning;
    hearth_event last;
    bool dimmed;
} answer;

static void dim(const chat *c, answer *a, bool on) {
    if (on == a->dimmed) return;
    a->dimmed = on;
    if (c->color) fputs(on ? "\x1b[2m" : "\x1b[0m", stdout);
    if (!on) fputs("\n\n", stdout);
}

static void show(const chat *c, answer *a, const hearth_event *event) {
    bool reasoning = event->type == HEARTH_EVENT_REASONING;
    if (!reasoning && event->type != HEARTH_EVENT_CONTENT) return;
    dim(c, a, reasoning);
    fwrite(event->text, 1, event->text_size, stdout);
    fflush(stdout);
    buffer_append(reasoning ? &a->reasoning : &a->content, event->text, event->text_size);
}

static void report(const hearth_event *last) {
    double tokens = last->usage.completion_tokens, seconds = last->timing.decode_ms / 1e3;
    double first_ms = last->timing.queue_ms + last->timing.prepare_ms + last->timing.prefill_ms;
    /* The first token comes with the prefill; the rate is that of the others. */
    double rate = tokens > 1 && seconds > 0 ? (tokens - 1) / seconds : 0;
    fprintf(stderr, "[%d tokens, %.1f tokens/s, first after %.0f ms, %d of %d prompt tokens cached%s]\n",
            last->usage.completion_tokens, rate, first_ms, last->usage.cached_tokens, last->usage.prompt_tokens,
            last->finish == HEARTH_FINISH_LENGTH ? ", cut at the limit" : "");
}

/* Runs the request to its end; Ctrl-C cancels it, and so does an output that nobody can read. */
static void follow(const chat *c, hearth_request *request, answer *a) {
    while (!hearth_request_finished(request)) {
        if (interrupted || ferror(stdout)) hearth_request_cancel(request);
        if (!hearth_request_next(request, &a->last, 100)) continue;
        show(c, a, &a->last);
    }
    dim(c, a, false);
    putchar('\n');
    fflush(stdout);
}

static int close_answer(chat *c, answer *a, size_t before) {
    int status = 0;
    if (a->last.type == HEARTH_EVENT_FINISH) {
        report(&a->last);
    } else if (a->last.error.status == HEARTH_CANCELLED) {
        fputs("[stopped]\n", stderr);
    } else {
        fprintf(stderr, "hearth: %s\n", a->last.error.message);
        status = 1;
    }
    if (a->content.size || a->reasoning.size)
        add_message(c, "assistant", span_make(a->content.data, a->content.size),
                    span_make(a->reasoning.data, a->reasoning.size));
    else
        c->messages.size = before; /* nothing was said: the question does not stay either */
    return status;
}

static int ask(chat *c, span question) {
    size_t before = c->messages.size;
    add_message(c, "user", question, (span){0});
    buffer text = {0};
    buffer_append(&text, c->messages.data, c->messages.size);
    buffer_char(&text, ']');
    hearth_request_params params = c->params;
    params.messages = text.data;
    params.messages_size = text.size;
    hearth_request *request;
    hearth_error fault;
    answer a = {0};
    int status = 1;
    if (hearth_request_create(c->engine, &params, &request, &fault) == HEARTH_OK) {
        follow(c, request, &a);
        status = close_answer(c, &a, before);
        hearth_request_destroy(request);
    } else {
        fprintf(stderr, "hearth: %s\n", fault.message);
        c->messages.size = before;
    }
    forget_interrupt();
    buffer_deinit(&text);
    buffer_deinit(&a.content);
    buffer_deinit(&a.reasoning);
    return status;
}

/* Lines until end of input or Ctrl-C. A failed answer is not the end in a terminal, but shows in the exit status. */
static int converse(chat *c) {
    bool terminal = isatty(STDIN_FILENO);
    char *line = NULL;
    size_t capacity = 0;
    int status = 0;
    while (!ferror(stdout)) {
        if (terminal && !wait_at_prompt()) break;
        ssize_t size = getline(&line, &capacity, stdin);
        if (size < 0) break;
        while (size && (line[size - 1] == '\n' || line[size - 1] == '\r')) size--;
        if (size) status |= ask(c, span_make(line, (size_t)size));
    }
    if (terminal) fputc('\n', stderr);
    free(line);
    return terminal ? 0 : status;
}

/* ---- options */

int cmd_chat(int argc, char **argv) {
    hearth_options options = {0};
    chat c = {.params = hearth_request_defaults(), .color = isatty(STDOUT_FILENO)};
    const char *system = NULL, *prompt = NULL;
    uint64_t seed = UINT64_MAX;
    const flag flags[] = {
        {"system", FLAG_TEXT, &system, "TEXT", "system message", 0, 0},
        {"prompt", FLAG_TEXT, &prompt, "TEXT", "answer this one message and leave", 0, 0},
        {"reasoning", FLAG_ON_OFF, &options.reasoning, "on|off", "let the model think first (off)", 0, 0},
        {"context", FLAG_INT, &options.context_max, "N", "tokens of the conversation (32768)", 1, 1 << 30},
        {"threads", FLAG_INT, &options.threads, "N", "CPU threads (all)", 1, 4096},
        {"kv", FLAG_CHOICE, &options.kv, KV_WORDS, "KV cache (fp8 where the checkpoint has scales for it, else bf16)",
         0, 0},
        {"activations", FLAG_CHOICE, &options.activations, ACTIVATIONS_WORDS,
         "nvfp4 quantises inputs as the checkpoint says, for comparison (exact)", 0, 0},
        {"max-tokens", FLAG_INT, &c.params.max_tokens, "N", "longest answer (what fits)", 1, 1 << 30},
        {"temperature", FLAG_NUMBER, &c.params.temperature, "T", "0 is greedy (the checkpoint's)", 0, 2},
        {"top-p", FLAG_NUMBER, &c.params.top_p, "P", "share of probability to choose from (the checkpoint's)", 0, 1},
        {"seed", FLAG_U64, &seed, "N", "the same seed gives the same answers (random)", 0, 0},
        {0},
    };
    const cli_spec spec = {
        .command = "chat",
        .operands = "MODEL [options]",
        .about = "Talks to a checkpoint in the terminal. Ctrl-C stops an answer; at the prompt it leaves.",
        .flags = flags,
        .arguments_min = 1,
        .arguments_max = 1,
    };
    cli_arguments arguments;
    int status;
    if (!cli_parse(&spec, argc, argv, &arguments, &status)) return status;
    c.params.has_seed = seed != UINT64_MAX;
    c.params.seed = seed;
    progress_bar bar;
    progress_begin(&bar, "loading");
    options.progress = progress_update;
    options.progress_context = &bar;
    hearth_error fault;
    hearth_status opened = hearth_engine_open(arguments.items[0], &options, &c.engine, &fault);
    progress_end(&bar);
    if (opened != HEARTH_OK) {
        fprintf(stderr, "hearth: %s\n", fault.message);
        return 1;
    }
    catch_interrupt();
    if (system) add_message(&c, "system", span_text(system), (span){0});
    status = prompt ? ask(&c, span_text(prompt)) : converse(&c);
    hearth_engine_close(c.engine);
    buffer_deinit(&c.messages);
    return status;
}
