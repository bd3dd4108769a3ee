/* Counts checks. A program is one test: its last line is "1 passed, 0 failed", or the other way round. */
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
    printf("%d checks were right, %d were not\n%d passed, %d failed\n", passed, failed, failed == 0, failed != 0);
    return failed != 0;
}
#endif
