/* An exporter plug-in that does what its agent's name says, and worse things by -D when it is compiled. */
#define _GNU_SOURCE
#include "telering_plugin.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef VERSION
#define VERSION TELERING_PLUGIN_ABI_VERSION
#endif
#ifndef SIZE
#define SIZE sizeof(telering_plugin)
#endif

#ifndef OPEN
#define OPEN open_it
#endif
#ifndef EXPORT
#define EXPORT export_it
#endif

#ifdef ABORTS
/* Whoever loads this library dies of it. */
__attribute__((constructor)) static void on_load(void) { abort(); }
#endif

typedef struct state {
    char name[64];
    uint64_t events;
} state;

static int32_t fail(telering_plugin_failure *failure, const char *call) {
    snprintf(failure->message, sizeof failure->message, "hostile: %s failed on purpose\n\x1b[31m", call);
    return 7;
}

/* A thread that outlives its agent. */
static void *spin(void *unused) {
    static atomic_ulong rounds;
    (void)unused;
    for (;;) {
        atomic_fetch_add(&rounds, 1);
        usleep(1000);
    }
    return NULL;
}

static int32_t open_it(void **out, const telering_plugin_agent *agent, telering_plugin_failure *failure) {
    if (strstr(agent->name, "fail-open")) return fail(failure, "open");
    if (strstr(agent->name, "slow-open")) sleep(5);
    if (strstr(agent->name, "thread")) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, spin, NULL) != 0) return fail(failure, "thread");
        pthread_detach(thread);
        agent->warn(agent->warn_context, "hostile: a thread runs");
    }
    state *made = calloc(1, sizeof *made);
    if (made == NULL) return 1;
    snprintf(made->name, sizeof made->name, "%s", agent->name);
    *out = made;
    return 0;
}

static int32_t export_it(void *in, const telering_plugin_event *events, uint64_t count,
                         telering_plugin_failure *failure) {
    state *state = in;
    (void)events;
    state->events += count;
    if (strstr(state->name, "slow-export")) sleep(5);
    if (strstr(state->name, "silent")) return 3;
    if (strstr(state->name, "greedy")) {
        failure->lost = UINT64_MAX;
        return fail(failure, "export");
    }
    if (strstr(state->name, "endless")) {
        memset(failure->message, 'x', sizeof failure->message);
        return 1;
    }
    return strstr(state->name, "fail-export") ? fail(failure, "export") : 0;
}

static int32_t publish_it(void *in, const telering_plugin_totals *totals, telering_plugin_failure *failure) {
    state *state = in;
    (void)totals;
    return strstr(state->name, "fail-publish") ? fail(failure, "publish") : 0;
}

static int32_t housekeep_it(void *in, uint64_t now_us, telering_plugin_failure *failure) {
    state *state = in;
    (void)now_us;
    return strstr(state->name, "fail-housekeep") ? fail(failure, "housekeep") : 0;
}

static int32_t close_it(void *in, uint64_t now_us, telering_plugin_failure *failure) {
    state *state = in;
    (void)now_us;
    int bad = strstr(state->name, "fail-close") != NULL;
    free(state);
    return bad ? fail(failure, "close") : 0;
}

#ifdef FUNCTION
TELERING_PLUGIN_EXPORT int telering_exporter_plugin_(void) __asm__("telering_exporter_plugin");
int telering_exporter_plugin_(void) { return 0; }
#else
#ifndef SYMBOL
#define SYMBOL telering_exporter_plugin
#endif
#ifdef LONGER
/* What a later header of this version could say. */
typedef struct longer {
    telering_plugin known;
    void (*later)(void);
} longer;
extern TELERING_PLUGIN_EXPORT const longer telering_exporter_longer __asm__("telering_exporter_plugin");
const longer telering_exporter_longer = {
    {VERSION, sizeof(longer), "hostile", "1", open_it, export_it, publish_it, housekeep_it, close_it}, abort};
#elif defined(NO_CALLS)
extern TELERING_PLUGIN_EXPORT const telering_plugin SYMBOL;
const telering_plugin SYMBOL = {VERSION, SIZE, NULL, NULL, OPEN, EXPORT, NULL, NULL, NULL};
#else
extern TELERING_PLUGIN_EXPORT const telering_plugin SYMBOL;
const telering_plugin SYMBOL = {
    VERSION, SIZE, "hostile", "1", open_it, export_it, publish_it, housekeep_it, close_it,
};
#endif
#endif

#ifdef NIXL
TELERING_PLUGIN_EXPORT void *nixl_telemetry_plugin_init(void);
void *nixl_telemetry_plugin_init(void) { return NULL; }
#endif
