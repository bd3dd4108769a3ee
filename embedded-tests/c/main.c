/* Firmware in C: records around its ring, is reset, goes on, dumps its image. */

#include "telering_firmware.h"

#define CAPACITY 16

/* Survives a reset: the start-up code below leaves this section alone. */
static _Alignas(8) unsigned char black_box[TELERING_BYTES(CAPACITY)] __attribute__((section(".noinit")));
static telering_recorder recorder;
static telering_event step, sent;
static uint32_t looks;

_Static_assert(TELERING_BYTES(16) == 1216 && TELERING_BYTES(64) == 3904 && TELERING_BYTES(2) == 448, "as in the core");

/* The same in every run: each look is 1000 ticks after the one before. */
static uint64_t ticks(void) {
    return ++looks * 1000ull;
}

static int call(int operation, const void *argument) {
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

static void leave(int well) {
    for (;;) call(0x18, (const void *)(well ? 0x20026 : 0x20023));
}

static int dump(void) {
    static const char name[] = "c.bin";
    const uintptr_t file[] = {(uintptr_t)name, 5, sizeof name - 1};
    const int handle = call(0x01, file);
    const uintptr_t block[] = {(uintptr_t)handle, (uintptr_t)black_box, sizeof black_box};
    return handle != -1 && call(0x05, block) == 0 && call(0x02, block) == 0;
}

/* Memory of any content becomes an image, and nothing that is refused or not there yet harms the program. */
static int anything_goes(void) {
    static _Alignas(8) unsigned char memory[TELERING_BYTES(4)];
    static telering_recorder other, none;
    static telering_event nameless;
    static const unsigned char noise[] = {0xff, 0x00, 0xa5, 'T'};
    uint32_t interrupted = 99;

    /* An interrupt may come before there is a recorder. */
    telering_record(&other, &nameless, 1);
    telering_heartbeat(&other);
    telering_record(0, &nameless, 1);
    telering_record(&other, 0, 1);
    if (telering_written(&other) != 0 || telering_boots(&other) != 0 || looks != 0) return 0;

    for (uint32_t kind = 0; kind < sizeof noise; kind++) {
        for (uint32_t at = 0; at < sizeof memory; at++) memory[at] = noise[kind];
        interrupted = 99;
        if (telering_attach(&other, memory, sizeof memory, 4, 7, 32768, ticks, &interrupted) != TELERING_FORMATTED || interrupted != 0) return 0;
        if (telering_written(&other) != 0 || telering_boots(&other) != 0) return 0;
    }
    telering_record(&other, &nameless, 1);
    /* Refused before anything is changed: the image is the one of before, and so are its boots. */
    if (telering_attach(0, memory, sizeof memory, 4, 7, 32768, ticks, 0) != TELERING_WRONG_MEMORY) return 0;
    if (telering_attach(&none, memory, sizeof memory, 4, 0, 32768, ticks, 0) != TELERING_WRONG_ARGUMENT) return 0;
    if (telering_attach(&none, memory, sizeof memory, 4, 7, 0, ticks, 0) != TELERING_WRONG_ARGUMENT) return 0;
    if (telering_attach(&none, memory, sizeof memory, 4, 7, 32768, 0, 0) != TELERING_WRONG_ARGUMENT) return 0;
    if (telering_attach(&none, 0, sizeof memory, 4, 7, 32768, ticks, 0) != TELERING_WRONG_MEMORY) return 0;
    if (telering_attach(&none, memory, 0, 4, 7, 32768, ticks, 0) != TELERING_WRONG_MEMORY) return 0;
    if (telering_attach(&none, memory, sizeof memory, 0, 7, 32768, ticks, 0) != TELERING_WRONG_CAPACITY) return 0;
    if (telering_attach(&none, memory, sizeof memory, 0x80000000u, 7, 32768, ticks, 0) != TELERING_WRONG_CAPACITY) return 0;
    telering_record(&none, &nameless, 1);
    if (telering_attach(&other, memory, sizeof memory, 4, 9, 1000000, ticks, 0) != TELERING_ATTACHED) return 0;
    if (telering_written(&other) != 1 || telering_boots(&other) != 1) return 0;
    /* An image of another capacity can't go on. */
    if (telering_attach(&other, memory, TELERING_BYTES(2), 2, 9, 1000000, ticks, 0) != TELERING_FORMATTED) return 0;
    looks = 0;
    return telering_written(&other) == 0;
}

static void run(void) {
    uint32_t interrupted = 99;
    if (!anything_goes()) leave(0);
    /* What can't be is refused. */
    if (telering_init(&recorder, black_box + 4, sizeof black_box - 8, CAPACITY, 1, 32768, ticks) != TELERING_WRONG_MEMORY) leave(0);
    if (telering_init(&recorder, black_box, sizeof black_box, CAPACITY + 1, 1, 32768, ticks) != TELERING_WRONG_CAPACITY) leave(0);
    if (telering_init(&recorder, black_box, sizeof black_box - 8, CAPACITY, 1, 32768, ticks) != TELERING_WRONG_MEMORY) leave(0);
    if (telering_init(&recorder, black_box, sizeof black_box, CAPACITY, 0, 32768, ticks) != TELERING_WRONG_ARGUMENT) leave(0);

    telering_event_init(&step, TELERING_CUSTOM, "c_step");
    telering_event_init(&sent, TELERING_TRANSFER, "agent_tx_bytes");
    const int32_t found = telering_attach(&recorder, black_box, sizeof black_box, CAPACITY, 0x0123456789abcdefull, 32768, ticks, &interrupted);
    if (found == TELERING_FORMATTED) {
        while (telering_written(&recorder) < 20) telering_record(&recorder, &step, telering_written(&recorder));
        *(volatile uint32_t *)0xe000ed0c = 0x05fa0004; /* reset */
        for (;;) {}
    }
    if (found != TELERING_ATTACHED || interrupted != 0 || telering_boots(&recorder) != 1) leave(0);
    for (uint32_t number = 0; number < 3; number++) telering_record(&recorder, &sent, 0x100000000ull + number);
    telering_heartbeat(&recorder);
    leave(dump());
}

/* The start-up code: data from flash, zeros, and off. */
extern uint32_t data_start, data_end, data_load, bss_start, bss_end, stack_top;

static void reset(void) {
    for (uint32_t *to = &data_start, *from = &data_load; to < &data_end;) *to++ = *from++;
    for (uint32_t *to = &bss_start; to < &bss_end;) *to++ = 0;
    run();
}

static void fault(void) {
    leave(0);
}

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
    &stack_top, (void *)reset, (void *)fault, (void *)fault, (void *)fault, (void *)fault, (void *)fault,
};
