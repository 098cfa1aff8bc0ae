/* See turn_chart.h.
 *
 * Two panels over one axis of turns. TTFT follows the tokens that had to be computed, so the lower panel explains the
 * upper one: a tall bar above a prompt that is mostly cached is worth a look. The TTFT axis is logarithmic when the
 * slowest turn (often the first, which has nothing cached) would flatten all others. Plain SVG 1.1 without scripts or
 * fonts to load, so that every browser and document shows the same. */
#include "bench/turn_chart.h"

#include <math.h>
#include <stdio.h>

static const double WIDTH = 960, HEIGHT = 540, LEFT = 76, RIGHT = 20;
static const double TOP[2] = {84, 326}, PANEL_HEIGHT = 168;
static const char *const TTFT_COLOR = "#2b6cb0", *const CACHED_COLOR = "#bcd4ec", *const NEW_COLOR = "#dd6b20",
                         *const BAD_COLOR = "#c53030";

typedef struct axis {
    double low, high, top; /* values at the bottom and at the top; y of the top */
    bool logarithmic;
} axis;

static double axis_y(const axis *a, double value) {
    double share = a->logarithmic ? log(fmax(value, a->low) / a->low) / log(a->high / a->low)
                                  : (value - a->low) / (a->high - a->low);
    return a->top + PANEL_HEIGHT * (1 - fmin(fmax(share, 0), 1));
}

/* The least of 1, 2, 5 times a power of ten that is not below value. */
static double round_up(double value) {
    double power = pow(10, floor(log10(value)));
    static const double steps[] = {1, 2, 5, 10};
    for (int i = 0; i < 4; i++)
        if (steps[i] * power >= value * (1 - 1e-9)) return steps[i] * power;
    return 10 * power;
}

static axis make_axis(const series *s, double top, bool may_be_logarithmic) {
    axis a = {0, 1, top, false};
    if (!s->count) return a;
    double least = s->values[0], most = s->values[s->count - 1];
    a.logarithmic = may_be_logarithmic && least > 0 && most > 8 * series_percentile(s, 50);
    if (a.logarithmic) {
        a.low = pow(10, floor(log10(least)));
        a.high = pow(10, ceil(log10(most)));
        if (a.high <= a.low) a.high = a.low * 10;
    } else if (most > 0) {
        double step = round_up(most / 4);
        a.high = step * ceil(most / step * (1 - 1e-9));
    }
    return a;
}

static void text(buffer *out, double x, double y, const char *anchor, int size, const char *color, const char *format,
                 ...) __attribute__((format(printf, 7, 8)));

/* Escapes what the format made, since names come from files and servers. */
static void text(buffer *out, double x, double y, const char *anchor, int size, const char *color, const char *format,
                 ...) {
    buffer raw = {0}, plain = {0};
    va_list args;
    va_start(args, format);
    char line[256];
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    buffer_text(&raw, line);
    for (size_t i = 0; i < raw.size; i++) {
        char c = raw.data[i];
        if (c == '<')
            buffer_text(&plain, "&lt;");
        else if (c == '>')
            buffer_text(&plain, "&gt;");
        else if (c == '&')
            buffer_text(&plain, "&amp;");
        else
            buffer_char(&plain, c);
    }
    buffer_printf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" font-size=\"%d\" fill=\"%s\">%s</text>\n", x, y,
                  anchor, size, color, plain.size ? plain.data : "");
    buffer_deinit(&raw);
    buffer_deinit(&plain);
}

static void rect(buffer *out, double x, double y, double width, double height, const char *color) {
    if (height <= 0) return;
    buffer_printf(out, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\"/>\n", x, y, width,
                  height, color);
}

static void line(buffer *out, double x1, double y1, double x2, double y2, const char *color) {
    buffer_printf(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n", x1, y1, x2, y2,
                  color);
}

static void grid_line(buffer *out, const axis *a, double value, void (*format)(buffer *, double)) {
    double y = axis_y(a, value);
    line(out, LEFT, y, WIDTH - RIGHT, y, "#e2e8f0");
    buffer label = {0};
    format(&label, value);
    text(out, LEFT - 8, y + 4, "end", 11, "#4a5568", "%s", label.data);
    buffer_deinit(&label);
}

static void grid(buffer *out, const axis *a, void (*format)(buffer *, double)) {
    if (a->logarithmic) {
        for (double v = a->low; v <= a->high * 1.01; v *= 10) grid_line(out, a, v, format);
        return;
    }
    double step = round_up(a->high / 5);
    for (double v = 0; v <= a->high * 1.001; v += step) grid_line(out, a, v, format);
}

/* Axis labels are round numbers: no decimals. */
static void format_time(buffer *out, double ns) {
    if (ns == 0)
        buffer_text(out, "0");
    else if (ns < 1e6)
        buffer_printf(out, "%g us", ns / 1e3);
    else if (ns < 1e9)
        buffer_printf(out, "%g ms", ns / 1e6);
    else
        buffer_printf(out, "%g s", ns / 1e9);
}

static void key(buffer *out, double x, double y, const char *color, const char *label) {
    rect(out, x, y - 9, 10, 10, color);
    text(out, x + 15, y, "start", 12, "#2d3748", "%s", label);
}

static double slot_width(const perf_report *r) { return (WIDTH - LEFT - RIGHT) / (double)r->result->count; }

static void draw_turn(const perf_report *r, buffer *out, size_t at, const axis *ttft, const axis *tokens) {
    const turn_result *turn = &r->result->turns[at];
    double slot = slot_width(r), x = LEFT + slot * (double)at + slot * 0.1, width = slot * 0.8;
    if (turn->state != TURN_ANSWERED) {
        for (int i = 0; i < 2; i++) rect(out, x, TOP[i] + PANEL_HEIGHT - 6, fmax(width, 1), 6, BAD_COLOR);
        return;
    }
    double bottom = TOP[0] + PANEL_HEIGHT, floor_y = TOP[1] + PANEL_HEIGHT;
    if (turn->answer.first_ns) {
        double y = axis_y(ttft, (double)(turn->answer.first_ns - turn->start_ns));
        rect(out, x, y, width, fmax(bottom - y, 0.5), TTFT_COLOR);
    }
    if (turn->prompt_tokens < 0) return;
    double prompt_y = axis_y(tokens, (double)turn->prompt_tokens), cached_y = floor_y;
    if (turn->answer.usage.cached_known) cached_y = axis_y(tokens, (double)turn->answer.usage.cached_tokens);
    rect(out, x, cached_y, width, floor_y - cached_y, CACHED_COLOR);
    rect(out, x, prompt_y, width, cached_y - prompt_y, NEW_COLOR);
}

/* Where a conversation begins, and its name where there is room. */
static void draw_conversations(const perf_report *r, buffer *out) {
    double slot = slot_width(r);
    size_t at = 0;
    for (size_t i = 0; i < r->trace->count; at += r->trace->conversations[i++].turn_count) {
        const trace_conversation *c = &r->trace->conversations[i];
        double x = LEFT + slot * (double)at, width = slot * (double)c->turn_count;
        if (i)
            for (int panel = 0; panel < 2; panel++) line(out, x, TOP[panel], x, TOP[panel] + PANEL_HEIGHT, "#a0aec0");
        double room = width / 6.2; /* characters */
        if (room >= (double)c->id.size)
            text(out, x + width / 2, TOP[1] + PANEL_HEIGHT + 34, "middle", 11, "#4a5568", "%.*s", (int)c->id.size,
                 c->id.data);
    }
}

static void draw_turn_axis(const perf_report *r, buffer *out) {
    double slot = slot_width(r);
    size_t step = (size_t)round_up(fmax((double)r->result->count / 15, 1));
    for (size_t i = 0; i < r->result->count; i += step)
        text(out, LEFT + slot * ((double)i + 0.5), TOP[1] + PANEL_HEIGHT + 16, "middle", 11, "#4a5568", "%zu", i + 1);
}

static void draw_titles(const perf_report *r, buffer *out, const axis *ttft) {
    text(out, LEFT, 28, "start", 16, "#1a202c", "%s: %zu recorded turns", r->result->model, r->result->count);
    buffer summary = {0};
    buffer_text(&summary, "TTFT median ");
    report_duration(&summary, series_percentile(&r->ttft, 50));
    if (r->tpot.count) {
        buffer_text(&summary, ", TPOT median ");
        report_duration(&summary, series_percentile(&r->tpot, 50));
    }
    if (r->cached_of)
        buffer_printf(&summary, ", %.1f %% of prompt tokens cached",
                      100.0 * (double)r->cached_tokens / (double)r->cached_of);
    if (r->answered < r->result->count)
        buffer_printf(&summary, ", %zu missing, %zu unfinished", perf_report_missing(r), r->unfinished);
    text(out, LEFT, 47, "start", 12, "#4a5568", "%s", summary.data);
    buffer_deinit(&summary);
    text(out, LEFT, TOP[0] - 10, "start", 13, "#1a202c", "Time to first token%s",
         ttft->logarithmic ? " (logarithmic)" : "");
    text(out, LEFT, TOP[1] - 10, "start", 13, "#1a202c", "Prompt tokens");
    if (r->cached_known) key(out, LEFT + 120, TOP[1] - 10, CACHED_COLOR, "cached");
    key(out, LEFT + 200, TOP[1] - 10, NEW_COLOR,
        r->cached_known ? "computed" : "all (the server does not say what was cached)");
    if (r->answered < r->result->count) key(out, WIDTH - RIGHT - 160, TOP[0] - 10, BAD_COLOR, "missing or unfinished");
}

void turn_chart(const perf_report *r, buffer *out) {
    buffer_printf(out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" "
                  "font-family=\"Helvetica, Arial, sans-serif\">\n",
                  WIDTH, HEIGHT, WIDTH, HEIGHT);
    rect(out, 0, 0, WIDTH, HEIGHT, "#ffffff");
    axis ttft = make_axis(&r->ttft, TOP[0], true), tokens = make_axis(&r->input, TOP[1], false);
    grid(out, &ttft, format_time);
    grid(out, &tokens, report_count);
    draw_titles(r, out, &ttft);
    for (size_t i = 0; i < r->result->count; i++) draw_turn(r, out, i, &ttft, &tokens);
    draw_conversations(r, out);
    draw_turn_axis(r, out);
    buffer_text(out, "</svg>\n");
}
