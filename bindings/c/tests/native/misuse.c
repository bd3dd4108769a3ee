/* Whatever is handed over ends in a status: null, closed, closed twice, another kind, made up, a parent's. */
#define _DEFAULT_SOURCE
#include "check.h"
#include "telering.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const telering_status gone = TELERING_ERR_INVALID_HANDLE, null = TELERING_NIXL_ERR_INVALID_PARAM;

static telering_agent open_agent(const char *name) {
    telering_options options = {0};
    telering_agent agent;
    options.size = sizeof options;
    options.enable = 1;
    options.ignore_environment = 1;
    options.exporter = "NOP";
    CHECK(telering_agent_open(name, &options, &agent, NULL, 0) == TELERING_OK);
    return agent;
}

/* Every function with a handle that is none. */
static void every_function(uint64_t handle, telering_status agent_is, telering_status transfer_is,
                           telering_status backend_is) {
    telering_agent agent = {handle};
    telering_transfer transfer = {handle}, begun;
    telering_backend backend = {handle}, opened;
    telering_counts counts;
    telering_total total;
    telering_transfer_telemetry telemetry;
    telering_backend_event events[2];
    char text[64];
    size_t length;
    uint64_t number;
    uint32_t mode;
    CHECK(telering_agent_close(agent, &counts) == agent_is);
    CHECK(telering_agent_flush(agent, 1) == agent_is);
    CHECK(telering_agent_mode(agent, &mode) == agent_is);
    CHECK(telering_agent_path(agent, text, sizeof text, &length) == agent_is);
    CHECK(telering_agent_counts(agent, &counts) == agent_is);
    CHECK(telering_agent_total(agent, 0, &total) == agent_is);
    CHECK(telering_agent_errors(agent, -1, &number) == agent_is);
    CHECK(telering_agent_render_prometheus(agent, text, sizeof text, &length) == agent_is);
    CHECK(telering_memory_registered(agent, 1) == agent_is);
    CHECK(telering_memory_deregistered(agent, 1) == agent_is);
    CHECK(telering_metadata_sent(agent, 1) == agent_is);
    CHECK(telering_metadata_received(agent, 1) == agent_is);
    CHECK(telering_connected(agent) == agent_is);
    CHECK(telering_disconnected(agent) == agent_is);
    CHECK(telering_error(agent, -3) == agent_is);
    CHECK(telering_event(agent, "one", 1) == agent_is);
    CHECK(telering_record_transfer(agent, TELERING_WRITE, 1, 1, 1, 1) == agent_is);
    CHECK(telering_backend_open(agent, &opened) == agent_is && opened.handle == 0);
    CHECK(telering_transfer_begin(agent, TELERING_WRITE, 1, 1, &begun) == agent_is && begun.handle == 0);
    CHECK(telering_transfer_posted(transfer) == transfer_is);
    CHECK(telering_transfer_finish(transfer) == transfer_is);
    CHECK(telering_transfer_fail(transfer, -3) == transfer_is);
    CHECK(telering_transfer_get_telemetry(transfer, &telemetry) == transfer_is);
    CHECK(telering_transfer_release(transfer) == transfer_is);
    CHECK(telering_backend_add_event(backend, "one", 1) == backend_is);
    CHECK(telering_backend_take_events(backend, events, 2, &length) == backend_is);
    CHECK(telering_backend_close(backend) == backend_is);
}

static void made_up(void) {
    static const uint64_t numbers[] = {0, 1, 0x1000000000000000, 0x2000000000000001, 0x3000000000000002,
                                       0x8000000000000000, 0x10000000000fffff, UINT64_MAX, 0x7f3c00001000};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) every_function(numbers[i], gone, gone, gone);
}

static void closed_and_of_another_kind(void) {
    telering_agent agent = open_agent("one");
    telering_transfer transfer = {0};
    telering_backend backend = {0};
    CHECK(telering_transfer_begin(agent, TELERING_WRITE, 1, 1, &transfer) == TELERING_OK);
    CHECK(telering_backend_open(agent, &backend) == TELERING_OK);
    /* A handle of one kind is none of the others. */
    telering_transfer agent_as_transfer = {agent.handle};
    telering_agent transfer_as_agent = {transfer.handle}, backend_as_agent = {backend.handle};
    telering_backend agent_as_backend = {agent.handle};
    CHECK(telering_transfer_finish(agent_as_transfer) == gone && telering_backend_close(agent_as_backend) == gone);
    CHECK(telering_agent_close(transfer_as_agent, NULL) == gone && telering_agent_close(backend_as_agent, NULL) == gone);
    /* Whatever outlives its agent does nothing, and is closed as ever. */
    CHECK(telering_agent_close(agent, NULL) == TELERING_OK);
    CHECK(telering_transfer_finish(transfer) == TELERING_OK && telering_transfer_release(transfer) == TELERING_OK);
    CHECK(telering_backend_add_event(backend, "late", 1) == TELERING_OK);
    CHECK(telering_backend_close(backend) == TELERING_OK);
    every_function(agent.handle, gone, gone, gone);
    every_function(transfer.handle, gone, gone, gone);
    every_function(backend.handle, gone, gone, gone);
    /* Their places are used again; the old handles stay what they are. */
    telering_agent next = open_agent("two");
    telering_transfer after;
    CHECK(telering_transfer_begin(next, TELERING_WRITE, 1, 1, &after) == TELERING_OK);
    CHECK(next.handle != agent.handle && after.handle != transfer.handle);
    every_function(agent.handle, gone, gone, gone);
    every_function(transfer.handle, gone, gone, gone);
    CHECK(telering_transfer_release(after) == TELERING_OK && telering_agent_close(next, NULL) == TELERING_OK);
}

static void nulls_and_nonsense(void) {
    telering_agent agent = open_agent("nulls"), other;
    telering_transfer transfer = {0};
    telering_backend backend = {0};
    CHECK(telering_agent_open(NULL, NULL, &other, NULL, 0) == null && other.handle == 0);
    CHECK(telering_agent_open("x", NULL, NULL, NULL, 0) == null);
    CHECK(telering_agent_open("\xff", NULL, &other, NULL, 0) == null);
    telering_options bad = {0};
    bad.size = sizeof bad;
    bad.enable = 3;
    CHECK(telering_agent_open("x", &bad, &other, NULL, 0) == null);
    bad.enable = 0;
    bad.metrics = "\xc3";
    CHECK(telering_agent_open("x", &bad, &other, NULL, 0) == null);
    CHECK(telering_agent_mode(agent, NULL) == null && telering_agent_counts(agent, NULL) == null);
    CHECK(telering_agent_total(agent, 0, NULL) == null && telering_agent_errors(agent, -1, NULL) == null);
    CHECK(telering_agent_errors(agent, 0, &(uint64_t){0}) == null && telering_agent_errors(agent, -13, NULL) == null);
    CHECK(telering_agent_render_prometheus(agent, NULL, 0, NULL) == null && telering_render_prometheus(NULL, 5, NULL) == null);
    CHECK(telering_error(agent, 0) == null && telering_error(agent, 1) == null && telering_error(agent, -13) == null);
    CHECK(telering_event(agent, NULL, 1) == null && telering_event(agent, "\xff\xfe", 1) == null);
    CHECK(telering_transfer_begin(agent, 2, 1, 1, &transfer) == null && transfer.handle == 0);
    CHECK(telering_transfer_begin(agent, TELERING_READ, 1, 1, NULL) == null);
    CHECK(telering_record_transfer(agent, 9, 1, 1, 1, 1) == null);
    CHECK(telering_record_transfer(agent, 0, UINT64_MAX, UINT32_MAX, UINT64_MAX, 0) == TELERING_OK);
    CHECK(telering_transfer_begin(agent, TELERING_READ, UINT64_MAX, UINT32_MAX, &transfer) == TELERING_OK);
    CHECK(telering_transfer_get_telemetry(transfer, NULL) == null && telering_transfer_fail(transfer, 7) == null);
    CHECK(telering_transfer_release(transfer) == TELERING_OK && telering_transfer_release(transfer) == gone);
    CHECK(telering_backend_open(agent, NULL) == null && telering_backend_open(agent, &backend) == TELERING_OK);
    CHECK(telering_backend_add_event(backend, NULL, 1) == null);
    CHECK(telering_backend_take_events(backend, NULL, 1, &(size_t){0}) == null);
    CHECK(telering_backend_take_events(backend, NULL, 0, NULL) == null);
    CHECK(telering_backend_close(backend) == TELERING_OK && telering_backend_close(backend) == gone);
    char name[5000];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    CHECK(telering_event(agent, name, 1) == TELERING_OK && telering_event(agent, "", 1) == TELERING_OK);
    CHECK(telering_agent_close(agent, NULL) == TELERING_OK && telering_agent_close(agent, NULL) == gone);
    for (int status = -200; status < 10; status++) CHECK(telering_status_text(status) != NULL);
    CHECK(strcmp(telering_status_text(-101), "unknown status") != 0 && strlen(telering_version()) >= 5);
}

static void too_many(void) {
    static telering_agent agents[1100];
    int opened = 0;
    telering_options options = {0};
    options.size = sizeof options;
    options.ignore_environment = 1;
    for (int i = 0; i < 1100; i++)
        if (telering_agent_open("many", &options, &agents[i], NULL, 0) == TELERING_OK) opened++;
        else CHECK(agents[i].handle == 0);
    CHECK(opened == 1024);
    for (int i = 0; i < 1100; i++)
        if (agents[i].handle != 0) CHECK(telering_agent_close(agents[i], NULL) == TELERING_OK);
}

/* A function that hears of warnings may close its agent; it is not called again. */
static uint64_t heard;
static int calls, wrong_calls;

/* On the flush thread. */
static void close_it(void *user, const char *kind, const char *message) {
    telering_agent agent = {__atomic_load_n(&heard, __ATOMIC_SEQ_CST)};
    int right = user == &heard && strcmp(kind, "file") == 0 && strlen(message) > 10;
    if (!right || telering_agent_close(agent, NULL) != TELERING_OK) __atomic_fetch_add(&wrong_calls, 1, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&calls, 1, __ATOMIC_SEQ_CST);
}

static void closed_by_its_warning(void) {
    char folder[] = "/tmp/telering-misuse-XXXXXX", path[256] = "";
    telering_options options = {0};
    telering_agent agent;
    telering_backend backend;
    if (mkdtemp(folder) == NULL) exit(2);
    options.size = sizeof options;
    options.enable = 1;
    options.ignore_environment = 1;
    options.dir = folder;
    options.run_interval_ms = 5;
    options.close_patience_ms = 50;
    options.on_warning = close_it;
    options.on_warning_user = &heard;
    CHECK(telering_agent_open("heard", &options, &agent, NULL, 0) == TELERING_OK);
    __atomic_store_n(&heard, agent.handle, __ATOMIC_SEQ_CST);
    CHECK(telering_backend_open(agent, &backend) == TELERING_OK);
    CHECK(telering_agent_path(agent, path, sizeof path, NULL) == TELERING_OK);
    /* Somebody makes the file longer: that is worth a word. Shorter would be as well, and could meet the flush thread in
       the midst of a batch (README, limits). */
    CHECK(truncate(path, 1 << 24) == 0);
    for (int i = 0; i < 10000 && __atomic_load_n(&calls, __ATOMIC_SEQ_CST) == 0; i++) usleep(1000);
    CHECK(__atomic_load_n(&calls, __ATOMIC_SEQ_CST) == 1 && wrong_calls == 0);
    CHECK(telering_event(agent, "late", 1) == gone);
    /* The agent has another word to say about this one, and nobody to say it to. */
    CHECK(telering_backend_add_event(backend, "late", 1) == TELERING_OK && __atomic_load_n(&calls, __ATOMIC_SEQ_CST) == 1);
    CHECK(telering_backend_close(backend) == TELERING_OK);
    unlink(path);
    rmdir(folder);
}

/* Handles that other threads close while they are used. */
static telering_agent raced;
static telering_transfer raced_transfers[64];

static void *use(void *unused) {
    (void)unused;
    for (int i = 0; i < 20000; i++) {
        telering_transfer *one = &raced_transfers[i % 64];
        uint64_t handle = __atomic_load_n(&one->handle, __ATOMIC_RELAXED);
        telering_transfer begun = {0};
        telering_event(raced, "raced", 1);
        telering_transfer_finish((telering_transfer){handle});
        telering_transfer_release((telering_transfer){handle});
        telering_transfer_begin(raced, TELERING_WRITE, 1, 1, &begun);
        __atomic_store_n(&one->handle, begun.handle, __ATOMIC_RELAXED);
        if (i == 10000) telering_agent_close(raced, NULL);
    }
    return NULL;
}

static void races(void) {
    raced = open_agent("raced");
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, use, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    CHECK(telering_agent_close(raced, NULL) == gone);
    for (int i = 0; i < 64; i++) telering_transfer_release(raced_transfers[i]);
}

#ifndef NO_FORK
static void in_a_child(void) {
    telering_agent agent = open_agent("parent");
    telering_transfer transfer = {0};
    telering_backend backend = {0};
    CHECK(telering_transfer_begin(agent, TELERING_WRITE, 1, 1, &transfer) == TELERING_OK);
    CHECK(telering_backend_open(agent, &backend) == TELERING_OK);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        passed = failed = 0;
        every_function(agent.handle, TELERING_ERR_FORKED, gone, gone);
        CHECK(telering_backend_add_event(backend, "one", 1) == TELERING_ERR_FORKED);
        CHECK(telering_backend_close(backend) == TELERING_ERR_FORKED);
        CHECK(telering_transfer_finish(transfer) == TELERING_ERR_FORKED);
        telering_agent own = open_agent("child");
        telering_transfer mine;
        telering_counts counts;
        CHECK(telering_transfer_begin(own, TELERING_WRITE, 1, 1, &mine) == TELERING_OK);
        CHECK(telering_transfer_finish(mine) == TELERING_OK && telering_transfer_release(mine) == TELERING_OK);
        CHECK(telering_agent_close(own, &counts) == TELERING_OK && counts.recorded == 4);
        _exit(failed == 0 ? 0 : 1);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(telering_transfer_finish(transfer) == TELERING_OK && telering_transfer_release(transfer) == TELERING_OK);
    telering_counts counts;
    CHECK(telering_agent_close(agent, &counts) == TELERING_OK && counts.recorded == 4 && counts.exported == 4);
    CHECK(telering_backend_close(backend) == TELERING_OK);
}

#ifndef NO_BUSY_FORK
/* Known case 43: children that are forked while threads record, begin and release hang nowhere and change nothing. */
static telering_agent busy;
static int stop;

static void *keep_busy(void *counted) {
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        telering_transfer held[100];
        for (int i = 0; i < 100; i++) telering_transfer_begin(busy, TELERING_WRITE, 1, 1, &held[i]);
        for (int i = 0; i < 100; i++) {
            telering_transfer_finish(held[i]);
            telering_transfer_release(held[i]);
        }
        telering_agent other = {0};
        telering_agent_open("other", NULL, &other, NULL, 0);
        telering_event(busy, "one", 1);
        telering_agent_close(other, NULL);
        __atomic_fetch_add((uint64_t *)counted, 401, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void many_children(void) {
    const char *fewer = getenv("TELERING_CHILDREN");
    int children = fewer != NULL ? atoi(fewer) : 200;
    pthread_t threads[2];
    uint64_t events = 0;
    busy = open_agent("busy");
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, keep_busy, &events);
    int well = 0;
    for (int i = 0; i < children; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(30);
            telering_transfer mine[40];
            telering_counts counts;
            telering_event(busy, "not counted", 1);
            telering_agent own = open_agent("child");
            for (int j = 0; j < 40; j++) telering_transfer_begin(own, TELERING_WRITE, 1, 1, &mine[j]);
            for (int j = 0; j < 40; j++) {
                telering_transfer_finish(mine[j]);
                telering_transfer_release(mine[j]);
            }
            int right = telering_agent_close(own, &counts) == TELERING_OK && counts.recorded == 160;
            _exit(right && telering_agent_close(busy, NULL) == TELERING_ERR_FORKED ? 0 : 1);
        }
        int status = -1;
        well += waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    CHECK(well == children && well > 0);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    telering_counts counts;
    CHECK(telering_agent_close(busy, &counts) == TELERING_OK && counts.recorded == events);
}
#endif
#endif

int main(void) {
    made_up();
    closed_and_of_another_kind();
    nulls_and_nonsense();
    too_many();
    closed_by_its_warning();
    races();
#ifndef NO_FORK
    in_a_child();
#ifndef NO_BUSY_FORK
    many_children();
#endif
#endif
    return finish();
}
