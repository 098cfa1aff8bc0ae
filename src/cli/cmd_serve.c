/* hearth serve: a checkpoint over the OpenAI HTTP API. The port is open from the start, and answers 503 with the progress
 * while a thread loads the model. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "hearth.h"
#include "serve/server.h"

enum { KEYS_MAX = 256 };

typedef struct serve_command {
    const char *model;
    server_options options;
    hearth_options engine_options;
    const char *port_file, *api_key_file;
    flag_list api_keys;
    uint64_t body_max, head_max;
    int idle_s, read_s, stall_s, drain_s;
    const char *keys[KEYS_MAX];
    buffer key_text; /* owns what keys of the file point to */

    server *server;
    pthread_t loader;
    hearth_engine *engine;
    hearth_error why;
    atomic_bool loaded, failed;
    uint64_t load_start_ns;
    progress_bar bar;
    int shown_percent;
    bool terminal;
} serve_command;

static server *stopping; /* for the signal handler */

static void on_signal(int number) {
    (void)number;
    server_stop(stopping);
}

/* One key a line; blank lines are nothing. */
static err_code read_keys(serve_command *c, error *err) {
    ERR_TRY(file_read(c->api_key_file, 1 << 20, &c->key_text, err));
    int before = c->options.api_key_count;
    char *line = c->key_text.data;
    for (char *end = line + c->key_text.size; line && line < end;) {
        char *next = memchr(line, '\n', (size_t)(end - line));
        char *stop = next ? next : end;
        while (stop > line && (stop[-1] == '\r' || stop[-1] == ' ' || stop[-1] == '\t')) stop--;
        *stop = 0;
        if (stop > line) {
            if (c->options.api_key_count == KEYS_MAX)
                ERR_FAIL(err, ERR_LIMIT, "%s: more than %d keys", c->api_key_file, KEYS_MAX);
            c->keys[c->options.api_key_count++] = line;
        }
        line = next ? next + 1 : end;
    }
    if (c->options.api_key_count == before)
        ERR_FAIL(err, ERR_INVALID, "%s: there is no key in this file", c->api_key_file);
    return ERR_OK;
}

static err_code gather_options(serve_command *c, error *err) {
    server_options *o = &c->options;
    for (int i = 0; i < c->api_keys.count; i++) {
        if (!c->api_keys.items[i][0]) ERR_FAIL(err, ERR_INVALID, "--api-key: the key is empty");
        c->keys[o->api_key_count++] = c->api_keys.items[i];
    }
    if (c->api_key_file) ERR_TRY(read_keys(c, err));
    o->api_keys = c->keys;
    if (o->cors_origin && strpbrk(o->cors_origin, "\r\n"))
        ERR_FAIL(err, ERR_INVALID, "--cors: the origin has a line break");
    if (c->body_max < 1024 || c->body_max > (uint64_t)1 << 30)
        ERR_FAIL(err, ERR_INVALID, "--body-max: expected 1K to 1G");
    if (c->head_max < 1024 || c->head_max > 1 << 20) ERR_FAIL(err, ERR_INVALID, "--header-max: expected 1K to 1M");
    o->limits.body_max = c->body_max;
    o->limits.head_max = c->head_max;
    if (o->limits.bodies_max < 2 * c->body_max) o->limits.bodies_max = 2 * c->body_max;
    o->limits.idle_ms = c->idle_s * 1000;
    o->limits.head_ms = c->read_s * 1000;
    o->limits.stall_ms = c->stall_s * 1000;
    o->drain_ms = c->drain_s * 1000;
    return ERR_OK;
}

/* The bar on a terminal; lines at tenths elsewhere. */
static void show_progress(serve_command *c, uint64_t done, uint64_t total) {
    progress_update(&c->bar, done, total);
    int percent = total ? (int)(100 * (double)done / (double)total) : 0;
    if (!c->terminal && percent / 10 > c->shown_percent / 10)
        fprintf(stderr, "loading %s: %d %% of %.2f GB\n", c->model, percent, (double)total / 1e9);
    c->shown_percent = percent;
}

static void on_progress(void *context, uint64_t done, uint64_t total) {
    serve_command *c = context;
    server_set_progress(c->server, done, total);
    show_progress(c, done, total);
}

static void print_size(const char *name, uint64_t bytes) {
    fprintf(stderr, "  %-10s %9.1f MB\n", name, (double)bytes / 1e6);
}

static void print_ready(const serve_command *c) {
    hearth_info info = hearth_engine_info(c->engine);
    fprintf(stderr, "loaded %s in %.1f s; memory plan:\n", info.name, clock_ms_since(c->load_start_ns) / 1e3);
    print_size("weights", info.weight_bytes);
    static const char *const kv_names[] = {"KV cache", "KV fp32", "KV bf16", "KV fp8"};
    print_size(kv_names[info.kv], info.kv_bytes);
    print_size("state", info.state_bytes);
    print_size("workspace", info.workspace_bytes);
    print_size("together", info.weight_bytes + info.kv_bytes + info.state_bytes + info.workspace_bytes);
    if (info.chat_error) fprintf(stderr, "warning: every conversation will be refused: %s\n", info.chat_error);
    fprintf(stderr, "ready: model '%s', %d at once, %d tokens of context each\n", info.name, info.parallel,
            info.context_max);
}

static void *load(void *context) {
    serve_command *c = context;
    c->load_start_ns = clock_ns();
    progress_begin(&c->bar, "loading");
    hearth_status status = hearth_engine_open(c->model, &c->engine_options, &c->engine, &c->why);
    progress_end(&c->bar);
    if (status) {
        atomic_store(&c->failed, true);
        server_stop(c->server);
        server_stop(c->server);
        return NULL;
    }
    print_ready(c);
    atomic_store(&c->loaded, true);
    server_set_engine(c->server, c->engine);
    return NULL;
}

static err_code announce(const serve_command *c, error *err) {
    int port = server_port(c->server);
    bool v6 = strchr(c->options.host, ':') != NULL;
    fprintf(stderr, "listening on http://%s%s%s:%d\n", v6 ? "[" : "", c->options.host, v6 ? "]" : "", port);
    bool local = !strncmp(c->options.host, "127.", 4) || !strcmp(c->options.host, "::1") ||
                 !strcmp(c->options.host, "localhost");
    if (!local && !c->options.api_key_count)
        fprintf(stderr, "warning: anyone who reaches %s may use this server; --api-key-file sets a key\n",
                c->options.host);
    if (!c->port_file) return ERR_OK;
    char text[16];
    int size = snprintf(text, sizeof text, "%d\n", port);
    return file_write_atomic(c->port_file, span_make(text, (size_t)size), err);
}

static void set_signals(serve_command *c) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    stopping = c->server;
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
}

/* After the loop: exit status. While the model is loading, or when told twice, nothing is waited for. */
static int finish(serve_command *c, bool clean) {
    if (atomic_load(&c->failed)) {
        pthread_join(c->loader, NULL);
        server_destroy(c->server);
        fprintf(stderr, "hearth: %s\n", c->why.message);
        return 1;
    }
    if (!clean || !atomic_load(&c->loaded)) {
        pthread_detach(c->loader);
        _exit(clean ? 0 : 1);
    }
    pthread_join(c->loader, NULL);
    server_destroy(c->server);
    hearth_engine_close(c->engine);
    fprintf(stderr, "stopped\n");
    return 0;
}

static int run(serve_command *c) {
    error err;
    if (gather_options(c, &err) || server_create(&c->options, &c->server, &err)) return cli_fail(&err);
    set_signals(c);
    if (announce(c, &err)) {
        server_destroy(c->server);
        return cli_fail(&err);
    }
    c->engine_options.progress = on_progress;
    c->engine_options.progress_context = c;
    c->terminal = isatty(STDERR_FILENO);
    int status = pthread_create(&c->loader, NULL, load, c);
    HEARTH_ASSERT(status == 0);
    status = finish(c, server_run(c->server));
    buffer_deinit(&c->key_text);
    return status;
}

int cmd_serve(int argc, char **argv) {
    serve_command c = {.options = server_options_default()};
    server_options *o = &c.options;
    hearth_options *e = &c.engine_options;
    c.body_max = o->limits.body_max;
    c.head_max = o->limits.head_max;
    c.idle_s = o->limits.idle_ms / 1000;
    c.read_s = o->limits.head_ms / 1000;
    c.stall_s = o->limits.stall_ms / 1000;
    c.drain_s = o->drain_ms / 1000;
    e->reasoning = true;
    const flag flags[] = {
        {"host", FLAG_TEXT, &o->host, "HOST", "address to listen on (127.0.0.1)", 0, 0},
        {"port", FLAG_INT, &o->port, "PORT", "port, 0 = any free one (8080)", 0, 65535},
        {"port-file", FLAG_TEXT, &c.port_file, "FILE", "write the port there, for scripts", 0, 0},
        {"model-name", FLAG_TEXT, &e->name, "NAME", "model id (the directory's name)", 0, 0},
        {"context", FLAG_INT, &e->context_max, "N", "tokens of one request (min of 32768 and the model's)", 1, 1 << 24},
        {"parallel", FLAG_INT, &e->parallel, "N", "requests running at once (1)", 1, HEARTH_PARALLEL_MAX},
        {"queue", FLAG_INT, &e->queue_max, "N", "requests waiting beyond those (64)", 1, 100000},
        {"cache-bytes", FLAG_BYTES, &e->cache_bytes, "SIZE",
         "memory of KV pages, states and snapshots (a quarter of what is there)", 0, 0},
        {"threads", FLAG_INT, &e->threads, "N", "CPU threads (all)", 1, 4096},
        {"kv", FLAG_CHOICE, &e->kv, KV_WORDS, "KV cache (fp8 where the checkpoint has scales for it, else bf16)", 0, 0},
        {"activations", FLAG_CHOICE, &e->activations, ACTIVATIONS_WORDS,
         "nvfp4 quantises inputs as the checkpoint says, for comparison (exact)", 0, 0},
        {"reasoning", FLAG_ON_OFF, &e->reasoning, "on|off", "thinking when a request does not say (on)", 0, 0},
        {"api-key", FLAG_REPEAT, &c.api_keys, "KEY", "accept this key (others see it in the process list)", 0, 0},
        {"api-key-file", FLAG_TEXT, &c.api_key_file, "FILE", "accept the keys in FILE, one a line", 0, 0},
        {"cors", FLAG_TEXT, &o->cors_origin, "ORIGIN", "let pages of this origin use the server (none)", 0, 0},
        {"body-max", FLAG_BYTES, &c.body_max, "SIZE", "largest request body (16M)", 0, 0},
        {"header-max", FLAG_BYTES, &c.head_max, "SIZE", "largest request head (16K)", 0, 0},
        {"connections", FLAG_INT, &o->limits.connections_max, "N", "connections at once (256)", 1, 100000},
        {"idle-timeout", FLAG_INT, &c.idle_s, "S", "seconds between requests (60)", 1, 86400},
        {"read-timeout", FLAG_INT, &c.read_s, "S", "seconds for a request to arrive (30)", 1, 86400},
        {"stall-timeout", FLAG_INT, &c.stall_s, "S", "seconds a client may read nothing (60)", 1, 86400},
        {"drain-timeout", FLAG_INT, &c.drain_s, "S", "seconds for running requests at SIGTERM (30)", 1, 86400},
        {0},
    };
    const cli_spec spec = {
        .command = "serve",
        .operands = "MODEL [options]",
        .about =
            "Serves a checkpoint directory over the OpenAI HTTP API (docs/http-api.md). SIGTERM or Ctrl-C\n"
            "finishes what runs and stops; a second one stops at once.",
        .flags = flags,
        .arguments_min = 1,
        .arguments_max = 1,
    };
    cli_arguments arguments;
    int status;
    if (!cli_parse(&spec, argc, argv, &arguments, &status)) return status;
    c.model = arguments.items[0];
    return run(&c);
}
