/* See serve_metrics.h. Prometheus text format 0.0.4. */
#include "serve/serve_metrics.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"

static const char *const endpoint_names[METRIC_ENDPOINTS] = {
    "/v1/chat/completions", "/v1/models", "/tokenize", "/detokenize", "/health", "/metrics", "other"};
/* The last stands for all others. */
static const int statuses[METRIC_STATUSES] = {200, 204, 400, 401, 404, 405, 408, 413, 417,
                                              429, 431, 499, 500, 501, 503, 505, 0};
static const double bounds[HISTOGRAM_BOUNDS] = {0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 600};

void histogram_add(histogram *h, double seconds) {
    int i = 0;
    while (i < HISTOGRAM_BOUNDS && seconds > bounds[i]) i++;
    h->counts[i]++;
    h->count++;
    h->sum += seconds;
}

void serve_metrics_count(serve_metrics *m, const char *path, int status) {
    int endpoint = 0, slot = 0;
    if (!strncmp(path, "/v1/models/", 11)) path = "/v1/models";
    while (endpoint < METRIC_ENDPOINTS - 1 && strcmp(path, endpoint_names[endpoint])) endpoint++;
    while (slot < METRIC_STATUSES - 1 && statuses[slot] != status) slot++;
    m->requests[endpoint][slot]++;
}

static void describe(buffer *out, const char *name, const char *type, const char *help) {
    buffer_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void number(buffer *out, double value) {
    json_write_double(out, value);
    buffer_char(out, '\n');
}

static void counter(buffer *out, const char *name, const char *help, uint64_t value) {
    describe(out, name, "counter", help);
    buffer_printf(out, "%s %llu\n", name, (unsigned long long)value);
}

static void gauge(buffer *out, const char *name, const char *help, double value) {
    describe(out, name, "gauge", help);
    buffer_printf(out, "%s ", name);
    number(out, value);
}

static void write_histogram(buffer *out, const char *name, const char *help, const histogram *h) {
    describe(out, name, "histogram", help);
    uint64_t below = 0;
    for (int i = 0; i < HISTOGRAM_BOUNDS; i++) {
        below += h->counts[i];
        buffer_printf(out, "%s_bucket{le=\"", name);
        json_write_double(out, bounds[i]);
        buffer_printf(out, "\"} %llu\n", (unsigned long long)below);
    }
    buffer_printf(out, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum ", name, (unsigned long long)h->count, name);
    number(out, h->sum);
    buffer_printf(out, "%s_count %llu\n", name, (unsigned long long)h->count);
}

/* Label values escape backslash, quote and newline. */
static void label(buffer *out, const char *text) {
    for (; *text; text++) {
        if (*text == '\n') {
            buffer_text(out, "\\n");
            continue;
        }
        if (*text == '\\' || *text == '"') buffer_char(out, '\\');
        buffer_char(out, *text);
    }
}

static void write_requests(const serve_metrics *m, buffer *out) {
    describe(out, "hearth_http_requests_total", "counter",
             "HTTP requests by endpoint and status; 499 = the client left first");
    for (int e = 0; e < METRIC_ENDPOINTS; e++)
        for (int s = 0; s < METRIC_STATUSES; s++)
            if (m->requests[e][s])
                buffer_printf(out, "hearth_http_requests_total{endpoint=\"%s\",status=\"%d\"} %llu\n",
                              endpoint_names[e], statuses[s], (unsigned long long)m->requests[e][s]);
}

static void by_reuse(buffer *out, const char *name, const char *about, const uint64_t *values) {
    describe(out, name, "counter", about);
    for (int i = 0; i < HEARTH_REUSE_COUNT; i++)
        buffer_printf(out, "%s{reason=\"%s\"} %llu\n", name, hearth_reuse_name((hearth_reuse)i),
                      (unsigned long long)values[i]);
}

static void write_engine(const hearth_stats *s, buffer *out) {
    describe(out, "hearth_requests_total", "counter", "Requests to the engine by how they ended");
    buffer_printf(out,
                  "hearth_requests_total{result=\"finished\"} %llu\nhearth_requests_total{result=\"failed\"} %llu\n"
                  "hearth_requests_total{result=\"cancelled\"} %llu\nhearth_requests_total{result=\"refused\"} %llu\n",
                  (unsigned long long)s->requests_finished, (unsigned long long)s->requests_failed,
                  (unsigned long long)s->requests_cancelled, (unsigned long long)s->requests_refused);
    counter(out, "hearth_prompt_tokens_total", "Tokens of all prompts", s->prompt_tokens);
    counter(out, "hearth_cached_tokens_total", "Prompt tokens whose state was reused", s->cached_tokens);
    counter(out, "hearth_prefilled_tokens_total", "Prompt tokens computed", s->prefilled_tokens);
    counter(out, "hearth_generated_tokens_total", "Tokens generated", s->generated_tokens);
    counter(out, "hearth_steps_total", "Forward steps", s->steps);
    describe(out, "hearth_step_seconds_total", "counter", "Time inside forward steps");
    buffer_text(out, "hearth_step_seconds_total ");
    number(out, s->step_seconds);
    gauge(out, "hearth_seconds_since_step", "Time since the last step while work is pending; 0 when idle",
          s->seconds_since_step);
    gauge(out, "hearth_requests_running", "Requests running", s->running);
    gauge(out, "hearth_requests_queued", "Requests waiting", s->queued);
    gauge(out, "hearth_kv_pages_used", "KV pages in use", s->kv_pages_used);
    gauge(out, "hearth_kv_pages_capacity", "KV pages there are", s->kv_pages_total);
    gauge(out, "hearth_snapshots_used", "State snapshots in use", s->snapshots_used);
    gauge(out, "hearth_snapshots_capacity", "State snapshots there are", s->snapshots_total);
    counter(out, "hearth_cache_evictions_total", "Snapshots given up for others", s->cache_evictions);
    by_reuse(out, "hearth_reuse_requests_total", "Requests begun, by why their prompt was not reused further",
             s->reuse_requests);
    by_reuse(out, "hearth_reuse_lost_tokens_total", "Prompt tokens known from earlier prompts, but computed again",
             s->reuse_lost_tokens);
}

static double resident_bytes(void) {
    FILE *f = fopen("/proc/self/statm", "re");
    unsigned long total, resident = 0;
    if (!f) return 0;
    if (fscanf(f, "%lu %lu", &total, &resident) != 2) resident = 0;
    fclose(f);
    return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

static void write_process(buffer *out) {
    struct timespec cpu;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    describe(out, "process_cpu_seconds_total", "counter", "CPU time used");
    buffer_text(out, "process_cpu_seconds_total ");
    number(out, (double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9);
    gauge(out, "process_resident_memory_bytes", "Resident memory", resident_bytes());
}

static void write_info(const hearth_info *info, buffer *out) {
    describe(out, "hearth_info", "gauge", "Version and model");
    buffer_text(out, "hearth_info{version=\"" HEARTH_VERSION "\",model=\"");
    label(out, info->name);
    buffer_text(out, "\"} 1\n");
    gauge(out, "hearth_context_tokens_max", "Tokens of one request, prompt and answer", info->context_max);
    describe(out, "hearth_memory_bytes", "gauge", "The memory plan by use");
    buffer_printf(out,
                  "hearth_memory_bytes{use=\"weights\"} %llu\nhearth_memory_bytes{use=\"kv\"} %llu\n"
                  "hearth_memory_bytes{use=\"state\"} %llu\nhearth_memory_bytes{use=\"workspace\"} %llu\n",
                  (unsigned long long)info->weight_bytes, (unsigned long long)info->kv_bytes,
                  (unsigned long long)info->state_bytes, (unsigned long long)info->workspace_bytes);
}

void serve_metrics_write(const serve_metrics *m, const serve_gauges *g, buffer *out) {
    gauge(out, "hearth_ready", "1 when the model is loaded", g->ready);
    gauge(out, "hearth_load_progress", "Share of the model that is loaded", g->load_progress);
    if (g->info) write_info(g->info, out);
    write_requests(m, out);
    gauge(out, "hearth_http_connections", "Open connections", g->connections);
    counter(out, "hearth_http_connections_refused_total", "Connections refused or displaced at the limit",
            g->connections_refused);
    gauge(out, "hearth_chat_requests_in_flight", "Chat completions being answered", m->in_flight);
    write_histogram(out, "hearth_time_to_first_token_seconds",
                    "Chat completions: from the request to the first text or call", &m->first_token);
    write_histogram(out, "hearth_chat_duration_seconds", "Chat completions: from the request to the end", &m->duration);
    if (g->stats) write_engine(g->stats, out);
    write_process(out);
}
