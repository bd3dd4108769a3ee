/* What a producer in C records is in the file, the totals and the metrics, to the byte. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include "telering.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/telering-c-XXXXXX";

static telering_options options(void) {
    telering_options options = {0};
    options.size = sizeof options;
    options.enable = 1;
    options.ignore_environment = 1;
    options.dir = folder;
    return options;
}

static telering_transfer transfer(telering_agent agent, uint32_t operation, uint64_t bytes) {
    telering_transfer transfer = {0};
    CHECK(telering_transfer_begin(agent, operation, bytes, 3, &transfer) == TELERING_OK);
    CHECK(telering_transfer_posted(transfer) == TELERING_OK);
    CHECK(telering_transfer_finish(transfer) == TELERING_OK);
    return transfer;
}

static void everything(void) {
    telering_options with = options();
    telering_agent agent;
    uint32_t mode;
    CHECK(telering_agent_open("everything", &with, &agent, NULL, 0) == TELERING_OK);
    CHECK(telering_agent_mode(agent, &mode) == TELERING_OK && mode == 2);
    char path[256], expected[256];
    size_t length;
    snprintf(expected, sizeof expected, "%s/everything", folder);
    CHECK(telering_agent_path(agent, path, sizeof path, &length) == TELERING_OK && strcmp(path, expected) == 0);
    CHECK(length == strlen(expected));
    CHECK(telering_agent_path(agent, path, 5, &length) == TELERING_ERR_BUFFER_TOO_SMALL && strcmp(path, "/tmp") == 0);
    CHECK(telering_agent_path(agent, NULL, 0, &length) == TELERING_ERR_BUFFER_TOO_SMALL);

    for (int i = 0; i < 100; i++) {
        telering_transfer one = transfer(agent, i % 2 == 0 ? TELERING_WRITE : TELERING_READ, UINT64_C(1) << 33);
        telering_transfer_telemetry told;
        CHECK(telering_transfer_get_telemetry(one, &told) == TELERING_OK);
        CHECK(told.total_bytes == UINT64_C(1) << 33 && told.descriptor_count == 3);
        CHECK(told.xfer_duration_us >= told.post_duration_us && told.start_us > UINT64_C(1700000000000000));
        CHECK(telering_transfer_release(one) == TELERING_OK);
    }
    CHECK(telering_record_transfer(agent, TELERING_WRITE, 5, 1, 10, 20) == TELERING_OK);
    CHECK(telering_memory_registered(agent, 4096) == TELERING_OK);
    CHECK(telering_memory_deregistered(agent, 4095) == TELERING_OK);
    CHECK(telering_metadata_sent(agent, 1) == TELERING_OK && telering_metadata_received(agent, 1) == TELERING_OK);
    CHECK(telering_connected(agent) == TELERING_OK && telering_disconnected(agent) == TELERING_OK);
    CHECK(telering_error(agent, TELERING_NIXL_ERR_BACKEND) == TELERING_OK);
    CHECK(telering_event(agent, "cache_hit", UINT64_MAX) == TELERING_OK);

    /* One that fails, one that is dropped under way: an error each. */
    telering_transfer bad;
    telering_transfer_telemetry told = {7, 7, 7, 7, 7};
    CHECK(telering_transfer_begin(agent, TELERING_READ, 1, 1, &bad) == TELERING_OK);
    CHECK(telering_transfer_get_telemetry(bad, &told) == TELERING_IN_PROGRESS && told.total_bytes == 7);
    CHECK(telering_transfer_fail(bad, TELERING_NIXL_ERR_NOT_FOUND) == TELERING_OK);
    CHECK(telering_transfer_get_telemetry(bad, &told) == TELERING_NIXL_ERR_NO_TELEMETRY && told.total_bytes == 7);
    CHECK(telering_transfer_finish(bad) == TELERING_OK); /* does nothing */
    CHECK(telering_transfer_release(bad) == TELERING_OK);
    CHECK(telering_transfer_begin(agent, TELERING_READ, 1, 1, &bad) == TELERING_OK);
    CHECK(telering_transfer_release(bad) == TELERING_OK);
    uint64_t errors;
    CHECK(telering_agent_errors(agent, TELERING_NIXL_ERR_NOT_FOUND, &errors) == TELERING_OK && errors == 1);
    CHECK(telering_agent_errors(agent, TELERING_NIXL_ERR_CANCELED, &errors) == TELERING_OK && errors == 1);

    telering_backend backend = {0};
    CHECK(telering_backend_open(agent, &backend) == TELERING_OK);
    CHECK(telering_backend_add_event(backend, "rail_switch", 3) == TELERING_OK);
    CHECK(telering_backend_close(backend) == TELERING_OK);

    CHECK(telering_agent_flush(agent, 10000) == TELERING_OK);
    telering_total total;
    CHECK(telering_agent_total(agent, TELERING_EVENT_TX_BYTES, &total) == TELERING_OK);
    CHECK(total.sum == 50 * (UINT64_C(1) << 33) + 5 && total.count == 51 && total.last == 5 && total.last_us > 0);
    CHECK(telering_agent_total(agent, TELERING_EVENT_RX_REQUESTS, &total) == TELERING_OK && total.sum == 50);
    CHECK(telering_agent_total(agent, TELERING_EVENT_MEMORY_REGISTERED, &total) == TELERING_OK && total.sum == 4096);
    CHECK(telering_agent_total(agent, 8, &total) == TELERING_NIXL_ERR_NOT_FOUND);

    static char page[1 << 16];
    CHECK(telering_agent_render_prometheus(agent, page, sizeof page, &length) == TELERING_OK && strlen(page) == length);
    CHECK(strstr(page, "agent_tx_bytes_total{agent_name=\"everything\"") != NULL);
    CHECK(strstr(page, " 429496729605\n") != NULL);
    CHECK(telering_render_prometheus(page, sizeof page, &length) == TELERING_OK && strstr(page, "everything") != NULL);
    CHECK(telering_agent_render_prometheus(agent, page, 100, &length) == TELERING_ERR_BUFFER_TOO_SMALL && length > 100);

    telering_counts counts;
    CHECK(telering_agent_close(agent, &counts) == TELERING_OK);
    CHECK(counts.recorded == 404 + 6 + 1 + 1 + 2 + 1 && counts.exported == counts.recorded);
    CHECK(access(expected, R_OK) == 0);
}

static void take_back(void) {
    telering_options with = options();
    with.run_interval_ms = 3600000;
    with.close_patience_ms = UINT64_MAX - 1; /* as good as for ever */
    telering_agent agent;
    telering_backend backend = {0};
    telering_backend_event events[4];
    size_t count;
    CHECK(telering_agent_open("take back", &with, &agent, NULL, 0) == TELERING_OK);
    CHECK(telering_backend_open(agent, &backend) == TELERING_OK);
    CHECK(telering_agent_flush(agent, 10000) == TELERING_OK);
    for (uint64_t i = 0; i < 6; i++) CHECK(telering_backend_add_event(backend, "one", i) == TELERING_OK);
    CHECK(telering_backend_take_events(backend, events, 4, &count) == TELERING_OK && count == 4);
    CHECK(events[0].value == 0 && events[3].value == 3 && strcmp(events[3].name, "one") == 0);
    CHECK(events[0].timestamp_us > UINT64_C(1700000000000000));
    CHECK(telering_backend_take_events(backend, events, 4, &count) == TELERING_OK && count == 2 && events[1].value == 5);
    CHECK(telering_backend_take_events(backend, NULL, 0, &count) == TELERING_OK && count == 0);
    CHECK(telering_backend_close(backend) == TELERING_OK);
    CHECK(telering_agent_close(agent, NULL) == TELERING_OK);
}

/* Begins on one thread what another ends. */
enum { THREADS = 4, EACH = 20000, PASSED_ON = 2000 };
static telering_transfer passed_on[THREADS][PASSED_ON];
static telering_agent shared;

static void *record(void *argument) {
    size_t thread = (size_t)argument;
    for (int i = 0; i < EACH; i++) {
        telering_transfer one = {0};
        telering_transfer_begin(shared, TELERING_WRITE, 1, 1, &one);
        telering_transfer_posted(one);
        telering_transfer_finish(one);
        telering_transfer_release(one);
    }
    for (int i = 0; i < PASSED_ON; i++) telering_transfer_begin(shared, TELERING_READ, 1, 1, &passed_on[thread][i]);
    return NULL;
}

static void *end(void *argument) {
    size_t thread = (size_t)argument;
    for (int i = 0; i < PASSED_ON; i++) {
        telering_transfer_finish(passed_on[thread][i]);
        telering_transfer_release(passed_on[thread][i]);
    }
    return NULL;
}

static void run(void *(*work)(void *)) {
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (size_t i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

static void threads(void) {
    telering_options with = options();
    CHECK(telering_agent_open("threads", &with, &shared, NULL, 0) == TELERING_OK);
    for (int round = 0; round < 3; round++) {
        run(record);
        run(end);
    }
    telering_total written, read;
    CHECK(telering_agent_total(shared, TELERING_EVENT_TX_REQUESTS, &written) == TELERING_OK);
    CHECK(telering_agent_total(shared, TELERING_EVENT_RX_REQUESTS, &read) == TELERING_OK);
    CHECK(written.sum == 3 * THREADS * EACH && read.sum == 3 * THREADS * PASSED_ON);
    telering_counts counts;
    CHECK(telering_agent_close(shared, &counts) == TELERING_OK);
    CHECK(counts.recorded == 3 * THREADS * 4 * (EACH + PASSED_ON));
    CHECK(counts.recorded == counts.exported + counts.lost_staging + counts.lost_exporter + counts.lost_closing);
}

/* Known case 30: telemetry that is off fails no transfer. */
static void off(void) {
    telering_options with = options();
    with.enable = 2;
    telering_agent agent;
    telering_transfer_telemetry told;
    CHECK(telering_agent_open("off", &with, &agent, NULL, 0) == TELERING_OK);
    for (int i = 0; i < 1000; i++) {
        telering_transfer one = transfer(agent, TELERING_WRITE, 1);
        CHECK(telering_transfer_get_telemetry(one, &told) == TELERING_NIXL_ERR_NO_TELEMETRY);
        CHECK(telering_transfer_release(one) == TELERING_OK);
    }
    CHECK(telering_event(agent, "one", 1) == TELERING_OK);
    CHECK(telering_agent_path(agent, NULL, 0, NULL) == TELERING_NIXL_ERR_NOT_FOUND);
    telering_counts counts;
    CHECK(telering_agent_close(agent, &counts) == TELERING_OK && counts.recorded == 0);
}

/* Failures count where they alone are wanted. */
static void failures_alone(void) {
    telering_options with = options();
    with.metrics = "agent_err_*";
    telering_agent agent;
    telering_transfer_telemetry told;
    CHECK(telering_agent_open("failures", &with, &agent, NULL, 0) == TELERING_OK);
    for (uint32_t operation = TELERING_WRITE; operation <= TELERING_READ; operation++) {
        telering_transfer one = transfer(agent, operation, 1);
        CHECK(telering_transfer_get_telemetry(one, &told) == TELERING_NIXL_ERR_NO_TELEMETRY);
        CHECK(telering_transfer_release(one) == TELERING_OK);
        CHECK(telering_transfer_begin(agent, operation, 1, 1, &one) == TELERING_OK);
        CHECK(telering_transfer_get_telemetry(one, &told) == TELERING_IN_PROGRESS);
        CHECK(telering_transfer_fail(one, TELERING_NIXL_ERR_NOT_FOUND) == TELERING_OK);
        CHECK(telering_transfer_release(one) == TELERING_OK);
        CHECK(telering_transfer_begin(agent, operation, 1, 1, &one) == TELERING_OK);
        CHECK(telering_transfer_release(one) == TELERING_OK);
    }
    uint64_t errors;
    CHECK(telering_agent_errors(agent, TELERING_NIXL_ERR_NOT_FOUND, &errors) == TELERING_OK && errors == 2);
    CHECK(telering_agent_errors(agent, TELERING_NIXL_ERR_CANCELED, &errors) == TELERING_OK && errors == 2);
    telering_counts counts;
    CHECK(telering_agent_close(agent, &counts) == TELERING_OK && counts.recorded == 4);
}

static int warnings;
static void hear(void *user, const char *kind, const char *message) {
    CHECK(user == &warnings && strcmp(kind, "config") == 0 && strstr(message, "nowhere") != NULL);
    warnings++;
}

static void options_and_warnings(void) {
    telering_options with = options();
    telering_agent agent;
    char why[200];
    with.exporter = "nowhere";
    with.plugin_dir = "";
    with.on_warning = hear;
    with.on_warning_user = &warnings;
    CHECK(telering_agent_open("warns", &with, &agent, why, sizeof why) == TELERING_OK);
    CHECK(warnings == 1 && why[0] == '\0');
    CHECK(telering_agent_close(agent, NULL) == TELERING_OK);
    with.strict = 1;
    CHECK(telering_agent_open("strict", &with, &agent, why, sizeof why) == TELERING_ERR_NOT_STARTED);
    CHECK(agent.handle == 0 && strstr(why, "nowhere") != NULL && warnings == 1);
    CHECK(telering_agent_open("strict", &with, &agent, NULL, 0) == TELERING_ERR_NOT_STARTED);

    /* Options of an older and of a later version. */
    struct {
        telering_options now;
        uint64_t later;
    } later = {options(), 0};
    later.now.size = sizeof later;
    CHECK(telering_agent_open("later", &later.now, &agent, NULL, 0) == TELERING_OK);
    CHECK(telering_agent_close(agent, NULL) == TELERING_OK);
    later.later = 1;
    CHECK(telering_agent_open("later", &later.now, &agent, NULL, 0) == TELERING_NIXL_ERR_NOT_SUPPORTED);
    later.now.size = offsetof(telering_options, dir);
    CHECK(telering_agent_open("older", &later.now, &agent, NULL, 0) == TELERING_OK);
    CHECK(telering_agent_path(agent, NULL, 0, NULL) == TELERING_NIXL_ERR_NOT_FOUND);
    CHECK(telering_agent_close(agent, NULL) == TELERING_OK);
    later.now.size = 3;
    CHECK(telering_agent_open("tiny", &later.now, &agent, NULL, 0) == TELERING_NIXL_ERR_INVALID_PARAM);
}

int main(void) {
    if (mkdtemp(folder) == NULL) return 2;
    everything();
    take_back();
    threads();
    off();
    failures_alone();
    options_and_warnings();
    return finish();
}
