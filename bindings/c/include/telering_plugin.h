/* An exporter for Telering that is a library of its own. C99 and C++11; this file needs no other.
 *
 * Build a shared library libtelering_exporter_NAME.so that defines one constant, `telering_exporter_plugin`, and put
 * it into the folder TELERING_PLUGIN_DIR. NIXL_TELEMETRY_EXPORTER=NAME chooses it. docs/plugins.md has the walk.
 *
 * Rules:
 *  - All calls for one state come one at a time, in the order open, any of the others, close. They come from the
 *    agent's flush thread: the program's transfers never wait for them. Close may never come.
 *  - 0 is success, anything else a failure: write a text into failure->message. It becomes one line of warning until
 *    the same call works again. TELERING_PLUGIN_GONE says also that no call may come any more, not even close.
 *  - No exception, no longjmp and no pthread_exit may leave a call; telering_plugin.hpp catches exceptions.
 *  - What a call gets is there until the call returns. Only *agent stays for ever.
 *  - The library is never unloaded. It may start threads; they may run until the process ends.
 *  - The table must be a constant that needs no code to initialise: it is read before the library is loaded.
 */
#ifndef TELERING_PLUGIN_H
#define TELERING_PLUGIN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of everything here. A table of another version is refused. */
#define TELERING_PLUGIN_ABI_VERSION 1u

/* The id of a custom or backend event; ids of built-in events are in FORMAT.md, section 17. */
#define TELERING_PLUGIN_EVENT_NAMED UINT32_MAX

/* The outcome of a call after which there is no exporter any more. */
#define TELERING_PLUGIN_GONE (-1)

#if defined(__GNUC__)
#define TELERING_PLUGIN_EXPORT __attribute__((visibility("default")))
#else
#define TELERING_PLUGIN_EXPORT
#endif

/* One event. Categories: 0 memory, 1 transfer, 2 connection, 3 backend, 4 error, 5 performance, 6 system, 7 custom. */
typedef struct telering_plugin_event {
    uint64_t timestamp_us; /* when it completed: Unix microseconds */
    uint64_t value;        /* bytes, a count, or microseconds */
    uint32_t id;           /* event type, or TELERING_PLUGIN_EVENT_NAMED */
    int32_t category;
    uint32_t group; /* events of this group from here on, itself included: 4, 3, 2, 1 for a transfer, else 1 */
    uint32_t reserved;
    char name[32]; /* UTF-8, ends in a NUL; without control characters */
} telering_plugin_event;

/* Whose events these are. Texts are UTF-8, never null, may be empty, and are any text: escape them. */
typedef struct telering_plugin_agent {
    uint64_t size;        /* bytes of this structure: look before reading a field of a later version */
    const char *name;     /* of the agent */
    const char *rank;     /* of the process within its job */
    const char *hostname; /* of the machine */
    const char *host;     /* who calls: "telering 0.1.0" */
    uint64_t instance;    /* agents of this process before this one */
    uint64_t pid;
    uint64_t started_us; /* Unix microseconds */
    const uint64_t *histogram_bounds; /* upper bounds in microseconds, inclusive, increasing */
    uint64_t histogram_bounds_count;
    /* Tells the user one line that no failure carries. From any thread, at any time. */
    void (*warn)(void *warn_context, const char *message);
    void *warn_context;
} telering_plugin_agent;

/* Running totals of one kind of event. */
typedef struct telering_plugin_total {
    uint64_t sum;
    uint64_t count;
    uint64_t last;    /* value of the last event */
    uint64_t last_us; /* when it completed, 0 before the first */
    uint32_t id;
    int32_t category;
    char name[32];
} telering_plugin_total;

/* One latency histogram. */
typedef struct telering_plugin_histogram {
    uint64_t sum;         /* microseconds */
    uint64_t buckets[33]; /* one for each bound, and behind the last bound the overflow; not cumulative */
    uint32_t id;
    uint32_t reserved;
} telering_plugin_histogram;

/* All numbers of an agent at one moment. recorded = exported + lost_*, while nobody records. */
typedef struct telering_plugin_totals {
    uint64_t size; /* bytes of this structure */
    uint64_t now_us;
    uint64_t recorded;
    uint64_t exported;
    uint64_t lost_staging;     /* overwritten before the flush thread came */
    uint64_t lost_exporter;    /* not taken by the exporter */
    uint64_t lost_interrupted; /* announced and never finished */
    uint64_t lost_backend;     /* over what a backend keeps */
    uint64_t lost_closing;     /* not out when closing took too long */
    uint64_t names_changed;
    uint64_t dynamic_overflow;
    uint64_t refused;
    uint64_t file_trouble;
    const telering_plugin_total *totals;
    uint64_t totals_count;
    const telering_plugin_histogram *histograms;
    uint64_t histograms_count;
    const uint64_t *errors; /* by status: errors[0] counts status -1, errors[1] status -2, ... */
    uint64_t errors_count;
} telering_plugin_totals;

/* Where a call that fails says why. */
typedef struct telering_plugin_failure {
    uint64_t size;     /* bytes of this structure */
    uint64_t lost;     /* events of the batch that were not taken; all of them unless you say less */
    char message[256]; /* ends in a NUL; empty when the call begins */
} telering_plugin_failure;

/* What a plug-in offers. Functions that are not needed may be null, but for open and export_events. */
typedef struct telering_plugin {
    uint32_t abi_version; /* TELERING_PLUGIN_ABI_VERSION */
    uint32_t size;        /* sizeof(telering_plugin) */
    const char *name;
    const char *version;
    /* Makes the state of one agent. After a failure no other call comes: leave nothing behind. */
    int32_t (*open)(void **state, const telering_plugin_agent *agent, telering_plugin_failure *failure);
    /* Takes a batch, in the order of completion; count is never 0. */
    int32_t (*export_events)(void *state, const telering_plugin_event *events, uint64_t count,
                             telering_plugin_failure *failure);
    /* Takes the numbers, after each flush. */
    int32_t (*publish)(void *state, const telering_plugin_totals *totals, telering_plugin_failure *failure);
    /* About once a second, also when nothing happens. */
    int32_t (*housekeep)(void *state, uint64_t now_us, telering_plugin_failure *failure);
    /* The last call: free the state. */
    int32_t (*close)(void *state, uint64_t now_us, telering_plugin_failure *failure);
} telering_plugin;

/* The one symbol. */
extern TELERING_PLUGIN_EXPORT const telering_plugin telering_exporter_plugin;

#ifdef __cplusplus
}
#endif

#endif
