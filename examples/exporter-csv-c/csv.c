/* Writes each event as a line of CSV, and starts a new file when one is full: an exporter plug-in in plain C.
 *
 *     cc -std=c99 -O2 -shared -fPIC -I bindings/c/include csv.c -o libtelering_exporter_csv.so
 *
 * CSV_EXPORTER_DIR is the folder of the files (default: the current one), CSV_EXPORTER_MAX_BYTES the size at which
 * a file is full (default 64 MiB). A full file becomes NAME.csv.1, the one before it NAME.csv.2, up to 9.
 */
#define _POSIX_C_SOURCE 200809L
#include "telering_plugin.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OLD_FILES = 9, PATH_SIZE = 4096, LINES_SIZE = 1 << 16, LINE_MAX_SIZE = 160 };

/* A file descriptor, not a FILE: what a FILE keeps would be written once more by each child that the program forks. */
typedef struct writer {
    char path[PATH_SIZE];
    int file; /* -1 after a failure; tried again with the next batch */
    uint64_t written;
    uint64_t max;
    size_t length; /* of the lines that wait */
    char lines[LINES_SIZE];
} writer;

static int32_t fail(telering_plugin_failure *failure, const char *what, const char *path) {
    snprintf(failure->message, sizeof failure->message, "%s: %.160s: %s", what, path, strerror(errno));
    return 1;
}

/* Writes the lines that wait; they are gone in any case. */
static int32_t write_lines(writer *csv, telering_plugin_failure *failure) {
    size_t done = 0, length = csv->length;
    csv->length = 0;
    while (done < length) {
        ssize_t more = write(csv->file, csv->lines + done, length - done);
        if (more < 0 && errno == EINTR) continue;
        if (more < 0) return fail(failure, "can't write", csv->path);
        done += (size_t)more;
    }
    csv->written += done;
    return 0;
}

/* The file must not exist: another agent may have the same name. */
static int32_t start_file(writer *csv, telering_plugin_failure *failure) {
    csv->file = open(csv->path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
    if (csv->file < 0) return fail(failure, "can't make a CSV file", csv->path);
    csv->written = 0;
    csv->length = (size_t)snprintf(csv->lines, LINES_SIZE, "timestamp_us,category,name,value\n");
    return write_lines(csv, failure);
}

static int32_t start_next_file(writer *csv, telering_plugin_failure *failure) {
    char from[PATH_SIZE + 8], to[PATH_SIZE + 8];
    int bad = close(csv->file);
    csv->file = -1;
    if (bad != 0) return fail(failure, "can't finish a CSV file", csv->path);
    for (int old = OLD_FILES - 1; old >= 0; old--) {
        snprintf(from, sizeof from, old == 0 ? "%s" : "%s.%d", csv->path, old);
        snprintf(to, sizeof to, "%s.%d", csv->path, old + 1);
        if (rename(from, to) != 0 && errno != ENOENT) return fail(failure, "can't rename a CSV file", from);
    }
    return start_file(csv, failure);
}

/* The agent's name may be any text: what could be a path or needs quotes becomes '_'. */
static void add_safely(char *path, size_t size, const char *name) {
    size_t at = strlen(path);
    for (; *name != '\0' && at + 32 < size; name++) {
        int plain = (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') || (*name >= '0' && *name <= '9');
        path[at++] = plain || *name == '-' ? *name : '_';
    }
    path[at] = '\0';
}

static int32_t csv_open(void **state, const telering_plugin_agent *agent, telering_plugin_failure *failure) {
    const char *folder = getenv("CSV_EXPORTER_DIR"), *max = getenv("CSV_EXPORTER_MAX_BYTES");
    writer *made = calloc(1, sizeof *made);
    if (made == NULL) return fail(failure, "no memory", "csv");
    made->max = max != NULL ? strtoull(max, NULL, 10) : 0;
    if (made->max == 0) made->max = UINT64_C(64) << 20;
    snprintf(made->path, sizeof made->path - 512, "%s/", folder != NULL && *folder != '\0' ? folder : ".");
    add_safely(made->path, sizeof made->path, agent->name);
    snprintf(made->path + strlen(made->path), 32, "-%" PRIu64 ".csv", agent->pid);
    if (start_file(made, failure) != 0) {
        free(made);
        return 1;
    }
    *state = made;
    return 0;
}

/* Adds a line to those that wait. Names have no control characters; quotes are doubled, as RFC 4180 says. */
static void add_line(writer *csv, const telering_plugin_event *event) {
    char name[2 * sizeof event->name];
    size_t at = 0;
    for (const char *from = event->name; *from != '\0'; from++) {
        if (*from == '"') name[at++] = '"';
        name[at++] = *from;
    }
    name[at] = '\0';
    csv->length += (size_t)snprintf(csv->lines + csv->length, LINE_MAX_SIZE,
                                    "%" PRIu64 ",%" PRId32 ",\"%s\",%" PRIu64 "\n", event->timestamp_us,
                                    event->category, name, event->value);
}

static int32_t csv_export(void *state, const telering_plugin_event *events, uint64_t count,
                          telering_plugin_failure *failure) {
    writer *csv = state;
    uint64_t safe = 0; /* events before this one are in a file */
    int32_t status = 0;
    for (uint64_t i = 0; i < count && status == 0; i++) {
        if (csv->file < 0) status = start_file(csv, failure);
        int full = csv->written + csv->length >= csv->max;
        if (status == 0 && (full || csv->length > LINES_SIZE - LINE_MAX_SIZE)) {
            status = write_lines(csv, failure);
            if (status == 0) safe = i;
            if (status == 0 && full) status = start_next_file(csv, failure);
        }
        if (status == 0) add_line(csv, &events[i]);
    }
    if (status == 0) status = write_lines(csv, failure);
    csv->length = 0;
    failure->lost = count - safe;
    return status;
}

static int32_t csv_close(void *state, uint64_t now_us, telering_plugin_failure *failure) {
    writer *csv = state;
    (void)now_us;
    int32_t status = 0;
    if (csv->file >= 0 && close(csv->file) != 0) status = fail(failure, "can't finish a CSV file", csv->path);
    free(csv);
    return status;
}

TELERING_PLUGIN_EXPORT const telering_plugin telering_exporter_plugin = {
    .abi_version = TELERING_PLUGIN_ABI_VERSION,
    .size = sizeof(telering_plugin),
    .name = "csv",
    .version = "1.0.0",
    .open = csv_open,
    .export_events = csv_export,
    .close = csv_close,
};
