/* Telemetry for firmware in C: an image in memory of yours, one recorder, a counter that you have anyway.
 *
 *     static _Alignas(8) unsigned char image[TELERING_BYTES(64)];      dump these bytes: they are a telemetry file
 *     static telering_recorder recorder;
 *     static telering_event sent;
 *
 *     telering_init(&recorder, image, sizeof image, 64, serial_number, 32768, ticks);
 *     telering_event_init(&sent, TELERING_TRANSFER, "agent_tx_bytes");
 *     telering_record(&recorder, &sent, 1500);
 *
 * For a chip with one core: each 64-bit word is written with the interrupts switched off for some instructions, so the
 * processor must run in a mode that may do that. Nothing here waits, allocates, or uses floating point.
 *
 * A recorder is used by one context at a time: one interrupt, or the main loop. Where several share it, switch the
 * interrupts off around telering_record. docs/embedded.md tells the rest.
 */
#ifndef TELERING_FIRMWARE_H
#define TELERING_FIRMWARE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of an image of so many events: a power of two, 2 at the least. 64 events take 3904 bytes, 16 take 1216. */
#define TELERING_ROUND_UP(n) (((n) + 63u) / 64u * 64u)
#define TELERING_BYTES(capacity) (TELERING_ROUND_UP(TELERING_ROUND_UP(40u + 56u * (capacity)) + 152u) + 64u)

enum telering_category {
    TELERING_MEMORY = 0, TELERING_TRANSFER = 1, TELERING_CONNECTION = 2, TELERING_BACKEND = 3, TELERING_ERROR = 4,
    TELERING_PERFORMANCE = 5, TELERING_SYSTEM = 6, TELERING_CUSTOM = 7,
};

enum telering_result {
    TELERING_FORMATTED = 0,       /* a new image */
    TELERING_ATTACHED = 1,        /* the image of the run before goes on */
    TELERING_WRONG_MEMORY = -1,   /* null, not aligned to 8 bytes, or not TELERING_BYTES(capacity) long; or no recorder */
    TELERING_WRONG_CAPACITY = -2, /* no power of two from 2 to 2^24 */
    TELERING_WRONG_ARGUMENT = -3, /* instance or ticks_per_second is 0, or there is no ticks */
};

/* What is in them is nobody's business but the library's. A recorder that is all zero, as a static one is at first and
 * after a call that was refused, records nothing: an interrupt may come before the recorder is made. Keep both static;
 * an event that is all zero has no name. */
typedef struct { uint64_t opaque[12]; } telering_recorder;
typedef struct { uint64_t opaque[8]; } telering_event;

/* Formats the memory, whatever it holds, and makes its recorder. The memory is the library's until the next reset: one
 * call of telering_init or telering_attach for it, for two recorders would write over each other's events.
 * instance: a number that names this image among all others, not 0: random, or made of a serial number and a counter.
 * ticks: a counter since boot that never wraps, ticks_per_second its rate. Gives an enum telering_result. */
int32_t telering_init(telering_recorder *recorder, void *memory, size_t bytes, uint32_t capacity, uint64_t instance,
                      uint32_t ticks_per_second, uint64_t (*ticks)(void));

/* The same for memory that the start-up code leaves alone: goes on with the image that survived the reset, if there is
 * one. interrupted, unless null, becomes how many records the reset cut short: readers count them as lost. Whatever else
 * the memory holds, it is formatted: noise, another capacity, an image of another version of this library.
 * The memory must not lie behind a write-back cache. */
int32_t telering_attach(telering_recorder *recorder, void *memory, size_t bytes, uint32_t capacity, uint64_t instance,
                        uint32_t ticks_per_second, uint64_t (*ticks)(void), uint32_t *interrupted);

/* What all events of one name have in common, made once. Names have 31 bytes of UTF-8; longer ones are cut. */
void telering_event_init(telering_event *event, int32_t category, const char *name);

/* Records one event that happens now, over the oldest. */
void telering_record(telering_recorder *recorder, const telering_event *event, uint64_t value);

/* Events recorded since the memory was formatted, interrupted ones included. */
uint64_t telering_written(const telering_recorder *recorder);

/* Resets that the image survived. */
uint32_t telering_boots(const telering_recorder *recorder);

/* Says in the image that the device is at work. */
void telering_heartbeat(telering_recorder *recorder);

#ifdef __cplusplus
}
#endif

#endif
