/* Counts checks; the last line of a program is "N passed, N failed", a check being a test. */
#ifndef CHECK_H
#define CHECK_H
#include <stdio.h>

static int passed, failed;

#define CHECK(right)                                                          \
    do {                                                                      \
        if (right) {                                                          \
            passed++;                                                         \
        } else {                                                              \
            failed++;                                                         \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #right); \
        }                                                                     \
    } while (0)

static int finish(void) {
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
#endif
