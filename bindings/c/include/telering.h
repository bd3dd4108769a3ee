/* Telering for programs in C: record transfers of an engine, and whatever else it does. C99 and C++11.
 *
 * Nothing here fails a transfer: whatever is wrong with telemetry ends in one warning and in less telemetry. Every
 * function returns a status that may be ignored. docs/embedding.md has the walk, telering.hpp the same for C++17.
 *
 * Handles are numbers. One of an object that is closed, of another kind, or made up is told by
 * TELERING_ERR_INVALID_HANDLE, also when its place is used by another object by now. A pointer may be null where that
 * is said, and gives NIXL_ERR_INVALID_PARAM elsewhere. Texts are UTF-8.
 *
 * Threads: every function may be called from any thread at any time, also with one agent or backend from several. One
 * transfer is one thread's at a time; it may begin on one and finish on another. Not from signal handlers.
 *
 * fork: in the child, the parent's objects give TELERING_ERR_FORKED and do nothing; its transfers may be released. The
 * child opens agents of its own.
 *
 * Which functions wait: telering_agent_open (for an exporter, two seconds at the most), telering_agent_close and
 * telering_agent_flush (as long as you allow), telering_agent_render_prometheus (50 ms). The others never do.
 */
#ifndef TELERING_H
#define TELERING_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 0 is success. -1 to -12 are NIXL's codes, for the engine's own failures and for arguments. */
typedef int32_t telering_status;
#define TELERING_OK 0
#define TELERING_IN_PROGRESS 1
#define TELERING_NIXL_ERR_NOT_POSTED (-1)
#define TELERING_NIXL_ERR_INVALID_PARAM (-2)
#define TELERING_NIXL_ERR_BACKEND (-3)
#define TELERING_NIXL_ERR_NOT_FOUND (-4)
#define TELERING_NIXL_ERR_MISMATCH (-5)
#define TELERING_NIXL_ERR_NOT_ALLOWED (-6)
#define TELERING_NIXL_ERR_REPOST_ACTIVE (-7)
#define TELERING_NIXL_ERR_UNKNOWN (-8)
#define TELERING_NIXL_ERR_NOT_SUPPORTED (-9)
#define TELERING_NIXL_ERR_REMOTE_DISCONNECT (-10)
#define TELERING_NIXL_ERR_CANCELED (-11)
#define TELERING_NIXL_ERR_NO_TELEMETRY (-12)
#define TELERING_ERR_INVALID_HANDLE (-101)
#define TELERING_ERR_FORKED (-102)
#define TELERING_ERR_LIMIT (-103) /* 1024 agents, 4096 backends, a million transfers at once */
#define TELERING_ERR_INTERNAL (-104)
#define TELERING_ERR_NOT_STARTED (-105)
#define TELERING_ERR_TIMEOUT (-106)
#define TELERING_ERR_BUFFER_TOO_SMALL (-107)

/* A sentence about a status; a constant, never null. */
const char *telering_status_text(telering_status status);

/* The version of the library: "0.1.0". */
const char *telering_version(void);

/* Handles. {0} is never one. */
typedef struct telering_agent {
    uint64_t handle;
} telering_agent;
typedef struct telering_transfer {
    uint64_t handle;
} telering_transfer;
typedef struct telering_backend {
    uint64_t handle;
} telering_backend;

/* ---- Agents ------------------------------------------------------------------------------------------------ */

/* Hears of a warning: kind is "config", "file", "exporter", "clock", "fork" or "recording"; message is one line. From
 * any thread, several at once; never after telering_agent_close has returned. One that closes an agent in here waits
 * for no call: those that run end later, and no other begins. No exception and no longjmp may leave it. */
typedef void (*telering_on_warning)(void *user, const char *kind, const char *message);

/* How an agent is made. Set all to zero, then size, then what you want: zero is the default everywhere. What is set
 * here wins over the environment (NIXL_TELEMETRY_*, TELERING_*), but for an ENABLE that is off there. */
typedef struct telering_options {
    size_t size;                 /* sizeof(telering_options) */
    uint32_t enable;             /* 0 as the environment says, 1 on, 2 off */
    uint32_t capture_telemetry;  /* 1: time transfers in any case, so that each has its own telemetry */
    uint32_t ignore_environment; /* 1: the environment counts for nothing */
    uint32_t strict;             /* 1: a warning at the start is TELERING_ERR_NOT_STARTED */
    const char *dir;             /* directory of the telemetry file */
    const char *exporter;        /* "BUFFER", "NOP", "prometheus", or the name of a plug-in */
    const char *plugin_dir;      /* directory of plug-ins */
    const char *metrics;         /* patterns of the events that are recorded: "agent_tx_*,agent_err_*" */
    const char *rank;            /* of this process within its job */
    uint64_t buffer_size;        /* events in the telemetry file */
    uint64_t run_interval_ms;    /* longest time between two flushes */
    uint64_t staging_records;    /* records in each thread's ring */
    uint64_t close_patience_ms;  /* how long closing may take; default 2000, UINT64_MAX: not at all */
    uint32_t file_mode;          /* permissions of the telemetry file: 0600 */
    uint32_t reserved;           /* 0 */
    telering_on_warning on_warning; /* null: warnings are lines on stderr */
    void *on_warning_user;          /* its first argument */
} telering_options;

/* Opens an agent. options may be null. message may be null; else it gets the reason of TELERING_ERR_NOT_STARTED. */
telering_status telering_agent_open(const char *name, const telering_options *options, telering_agent *agent,
                                    char *message, size_t message_capacity);

/* Application events: recorded = exported + lost_*, while nobody records. All 0 for an agent that exports nothing. */
typedef struct telering_counts {
    uint64_t recorded;
    uint64_t exported;
    uint64_t lost_staging;     /* overwritten before the flush thread came */
    uint64_t lost_exporter;    /* not taken by the exporter */
    uint64_t lost_interrupted; /* announced and never finished */
    uint64_t lost_backend;     /* over the 1000 that a backend keeps */
    uint64_t lost_closing;     /* not out when closing took too long */
} telering_counts;

/* Exports what is there and closes the agent. The handle is gone, whatever the status. counts may be null. Transfers
 * and backends of the agent stay valid handles; they record nothing any more. */
telering_status telering_agent_close(telering_agent agent, telering_counts *counts);

/* Exports what was recorded before this call; TELERING_ERR_TIMEOUT if that took longer. */
telering_status telering_agent_flush(telering_agent agent, uint64_t patience_ms);

/* 0 off, 1 captured in the process, 2 exported. */
telering_status telering_agent_mode(telering_agent agent, uint32_t *mode);

/* The telemetry file, NIXL_ERR_NOT_FOUND if there is none. As long texts everywhere: buffer gets what fits, with a NUL
 * behind it; *length gets the whole length without NUL; TELERING_ERR_BUFFER_TOO_SMALL if they differ. Either of
 * buffer and length may be null. */
telering_status telering_agent_path(telering_agent agent, char *buffer, size_t capacity, size_t *length);

telering_status telering_agent_counts(telering_agent agent, telering_counts *counts);

/* Running totals of one kind of event. Events that were lost on their way are in them. */
typedef struct telering_total {
    uint64_t sum;
    uint64_t count;
    uint64_t last;    /* value of the last event */
    uint64_t last_us; /* when it completed: Unix microseconds, 0 before the first */
} telering_total;

/* Event types for telering_agent_total; FORMAT.md, section 17, has all of them. */
#define TELERING_EVENT_TX_BYTES 0u
#define TELERING_EVENT_RX_BYTES 1u
#define TELERING_EVENT_TX_REQUESTS 2u
#define TELERING_EVENT_RX_REQUESTS 3u
#define TELERING_EVENT_MEMORY_REGISTERED 4u
#define TELERING_EVENT_MEMORY_DEREGISTERED 5u
#define TELERING_EVENT_XFER_TIME 6u
#define TELERING_EVENT_XFER_POST_TIME 7u

/* NIXL_ERR_NOT_FOUND for errors (see below) and for types that do not exist. */
telering_status telering_agent_total(telering_agent agent, uint32_t event_type, telering_total *total);

/* How many errors of a status (-1 to -12) there were. */
telering_status telering_agent_errors(telering_agent agent, telering_status status, uint64_t *count);

/* The agent's numbers as text for Prometheus, for a /metrics of your own with the content type
 * "text/plain; version=0.0.4; charset=utf-8". Numbers move between two calls: take a buffer with room to spare. */
telering_status telering_agent_render_prometheus(telering_agent agent, char *buffer, size_t capacity, size_t *length);

/* The same for all agents of this process. */
telering_status telering_render_prometheus(char *buffer, size_t capacity, size_t *length);

/* ---- What happens besides transfers -------------------------------------------------------------------------- */

telering_status telering_memory_registered(telering_agent agent, uint64_t bytes);
telering_status telering_memory_deregistered(telering_agent agent, uint64_t bytes);
telering_status telering_metadata_sent(telering_agent agent, uint64_t bytes);
telering_status telering_metadata_received(telering_agent agent, uint64_t bytes);
telering_status telering_connected(telering_agent agent);
telering_status telering_disconnected(telering_agent agent);

/* An operation failed, with one of NIXL's codes from -1 to -12. */
telering_status telering_error(telering_agent agent, telering_status status);

/* An event of the application's own. Names are cut to 31 bytes; the first 64 have totals. */
telering_status telering_event(telering_agent agent, const char *name, uint64_t value);

/* ---- Transfers ----------------------------------------------------------------------------------------------- */

#define TELERING_WRITE 0u
#define TELERING_READ 1u

/* Begins a transfer: reads the clock. Every transfer that was begun is released once. While telemetry is off it
 * costs nothing, and all calls for the transfer succeed. */
telering_status telering_transfer_begin(telering_agent agent, uint32_t operation, uint64_t bytes, uint32_t descriptors,
                                        telering_transfer *transfer);

/* The backend has the request. A transfer that completes inside the post needs no such call. */
telering_status telering_transfer_posted(telering_transfer transfer);

/* It completed, or failed with one of NIXL's codes. A second call of either does nothing. */
telering_status telering_transfer_finish(telering_transfer transfer);
telering_status telering_transfer_fail(telering_transfer transfer, telering_status status);

/* What one transfer did. */
typedef struct telering_transfer_telemetry {
    uint64_t start_us; /* Unix microseconds */
    uint64_t post_duration_us;
    uint64_t xfer_duration_us; /* includes the post */
    uint64_t total_bytes;
    uint64_t descriptor_count;
} telering_transfer_telemetry;

/* TELERING_IN_PROGRESS before it has finished; NIXL_ERR_NO_TELEMETRY when it failed, and while telemetry is off. The
 * structure is untouched then. */
telering_status telering_transfer_get_telemetry(telering_transfer transfer, telering_transfer_telemetry *telemetry);

/* Lets go of a transfer; the handle is gone. One still under way counts as cancelled. */
telering_status telering_transfer_release(telering_transfer transfer);

/* Records a transfer that the engine timed itself: one call, no handle. It completed now. */
telering_status telering_record_transfer(telering_agent agent, uint32_t operation, uint64_t bytes, uint32_t descriptors,
                                         uint64_t post_duration_us, uint64_t xfer_duration_us);

/* ---- A backend's own events ---------------------------------------------------------------------------------- */

typedef struct telering_backend_event {
    uint64_t timestamp_us; /* when it was added: Unix microseconds */
    uint64_t value;
    char name[32]; /* UTF-8, ends in a NUL */
} telering_backend_event;

telering_status telering_backend_open(telering_agent agent, telering_backend *backend);

/* Keeps an event until the next flush exports it; 1000 at the most, the excess is counted as lost. */
telering_status telering_backend_add_event(telering_backend backend, const char *name, uint64_t value);

/* Takes the oldest events back that no flush has taken; they are not exported then. *count: how many were taken. */
telering_status telering_backend_take_events(telering_backend backend, telering_backend_event *events, size_t capacity,
                                             size_t *count);

telering_status telering_backend_close(telering_backend backend);

#ifdef __cplusplus
}
#endif

#endif
