/* See safetensors_write.h. Format: u64 little-endian header length, JSON header padded with spaces to 8 bytes, data. */
#include "format/safetensors_write.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/memory.h"

struct safetensors_writer {
    int fd;
    char *path; /* owned */
    uint64_t expected, written;
};

uint64_t tensor_plan_count(const tensor_plan *t) {
    uint64_t count = 1;
    for (int i = 0; i < t->rank; i++) count *= (uint64_t)t->shape[i];
    return count;
}

uint64_t tensor_plan_bytes(const tensor_plan *t) { return tensor_plan_count(t) * dtype_size(t->type); }

static void append_entry(buffer *header, const tensor_plan *t, uint64_t begin) {
    buffer_char(header, ',');
    json_write_string(header, span_text(t->name), JSON_COMPACT);
    buffer_printf(header, ":{\"dtype\":\"%s\",\"shape\":[", dtype_name(t->type));
    for (int i = 0; i < t->rank; i++) buffer_printf(header, "%s%" PRId64, i ? "," : "", t->shape[i]);
    buffer_printf(header, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", begin, begin + tensor_plan_bytes(t));
}

static err_code write_all(safetensors_writer *w, const char *data, size_t size, error *err) {
    while (size) {
        ssize_t n = write(w->fd, data, size);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) ERR_FAIL(err, ERR_IO, "%s: cannot write: %s", w->path, strerror(errno));
        data += n;
        size -= (size_t)n;
    }
    return ERR_OK;
}

err_code safetensors_write_begin(const char *path, const tensor_plan *plan, int count, safetensors_writer **out,
                                 error *err) {
    buffer header = {0};
    uint64_t end = 0;
    buffer_text(&header, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (int i = 0; i < count; i++) {
        append_entry(&header, &plan[i], end);
        end += tensor_plan_bytes(&plan[i]);
    }
    buffer_char(&header, '}');
    while (header.size % 8) buffer_char(&header, ' ');
    safetensors_writer *w = mem_zero(1, sizeof *w);
    w->path = mem_copy(path, strlen(path));
    w->expected = end;
    w->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    err_code code = w->fd >= 0 ? ERR_OK : error_set(err, ERR_IO, __FILE__, __LINE__, "%s: %s", path, strerror(errno));
    unsigned char length[8];
    for (int i = 0; i < 8; i++) length[i] = (unsigned char)((uint64_t)header.size >> (8 * i));
    if (code == ERR_OK) code = write_all(w, (const char *)length, 8, err);
    if (code == ERR_OK) code = write_all(w, header.data, header.size, err);
    buffer_deinit(&header);
    if (code != ERR_OK) {
        safetensors_write_abort(w);
        return code;
    }
    *out = w;
    return ERR_OK;
}

err_code safetensors_write_data(safetensors_writer *w, const void *data, size_t size, error *err) {
    HEARTH_ASSERT(size <= w->expected - w->written);
    w->written += size;
    return write_all(w, data, size, err);
}

err_code safetensors_write_end(safetensors_writer *w, error *err) {
    HEARTH_ASSERT(w->written == w->expected);
    err_code code = ERR_OK;
    if (fdatasync(w->fd) != 0)
        code = error_set(err, ERR_IO, __FILE__, __LINE__, "%s: cannot sync: %s", w->path, strerror(errno));
    safetensors_write_abort(w);
    return code;
}

void safetensors_write_abort(safetensors_writer *w) {
    if (!w) return;
    if (w->fd >= 0) close(w->fd);
    free(w->path);
    free(w);
}
