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
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OLD_FILES = 9, PATH_SIZE = 4096 };

typedef struct writer {
    char path[PATH_SIZE];
    FILE *file;
    uint64_t written;
    uint64_t max;
} writer;

static int32_t fail(telering_plugin_failure *failure, const char *what, const char *path) {
    snprintf(failure->message, sizeof failure->message, "%s: %s: %s", what, path, strerror(errno));
    return 1;
}

/* The file must not exist: another agent may have the same name. */
static int32_t start_file(writer *csv, telering_plugin_failure *failure) {
    csv->file = fopen(csv->path, "wx");
    if (csv->file == NULL) return fail(failure, "can't make a CSV file", csv->path);
    csv->written = (uint64_t)fprintf(csv->file, "timestamp_us,category,name,value\n");
    return 0;
}

static int32_t start_next_file(writer *csv, telering_plugin_failure *failure) {
    char from[PATH_SIZE + 8], to[PATH_SIZE + 8];
    int bad = fclose(csv->file);
    csv->file = NULL;
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

/* Names have no control characters; quotes are doubled, as RFC 4180 says. */
static int write_name(FILE *file, const char *name) {
    int written = 2;
    putc('"', file);
    for (; *name != '\0'; name++, written++) {
        if (*name == '"') putc('"', file), written++;
        putc(*name, file);
    }
    putc('"', file);
    return written;
}

static int32_t csv_export(void *state, const telering_plugin_event *events, uint64_t count,
                          telering_plugin_failure *failure) {
    writer *csv = state;
    for (uint64_t i = 0; i < count; i++) {
        failure->lost = count - i;
        /* A file that could not be made is tried again with every batch. */
        if (csv->file == NULL && start_file(csv, failure) != 0) return 1;
        if (csv->written >= csv->max && start_next_file(csv, failure) != 0) return 1;
        int before = fprintf(csv->file, "%" PRIu64 ",%" PRId32 ",", events[i].timestamp_us, events[i].category);
        int name = write_name(csv->file, events[i].name);
        int after = fprintf(csv->file, ",%" PRIu64 "\n", events[i].value);
        if (before < 0 || after < 0) return fail(failure, "can't write", csv->path);
        csv->written += (uint64_t)(before + name + after);
    }
    failure->lost = count;
    if (fflush(csv->file) != 0) return fail(failure, "can't write", csv->path);
    return 0;
}

static int32_t csv_close(void *state, uint64_t now_us, telering_plugin_failure *failure) {
    writer *csv = state;
    (void)now_us;
    int32_t status = 0;
    if (csv->file != NULL && fclose(csv->file) != 0) status = fail(failure, "can't finish a CSV file", csv->path);
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
