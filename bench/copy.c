/* Time that a copy of a ledger takes: bench/copy FOLDER ... prints, for each folder that is copied
 * to, a table of ledger sizes. The thread that makes copies is not the job's, so this is time
 * beside it, on another core where there is one. */
#include "base/clock.h"
#include "ledger/copy.h"
#include "ledger/ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COPIES = 15 };

static int ascending(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

static double median_ms(const char *path)
{
    int64_t taken_ns[COPIES];
    for (int i = 0; i < COPIES; i++) {
        int64_t began_ns = clock_monotonic_ns();
        int error = ledger_copy(path);
        taken_ns[i] = clock_monotonic_ns() - began_ns;
        if (error) {
            fprintf(stderr, "%s: %s\n", path, strerror(error));
            exit(EXIT_FAILURE);
        }
    }
    qsort(taken_ns, COPIES, sizeof taken_ns[0], ascending);
    return (double)taken_ns[COPIES / 2] / 1e6;
}

static void grow_to(uint32_t chunks)
{
    while (the_ledger.header->chunk_count < chunks) {
        struct ledger_chunk *chunk = ledger_chunk(LEDGER_CELLS, sizeof(struct ledger_cell), 0);
        memset(ledger_entry(chunk, 0), 1, LEDGER_CHUNK_BYTES - LEDGER_CHUNK_HEADER_BYTES);
    }
}

int main(int count, char **folders)
{
    static const uint32_t CHUNKS[] = {6, 16, 160, 1000};
    char path[PATH_MAX];
    if (count < 2)
        return EXIT_FAILURE;
    snprintf(path, sizeof path, "%s/ledger", folders[1]);
    if (ledger_open(path, 64 << 20) != 0)
        return EXIT_FAILURE;
    for (size_t i = 0; i < sizeof CHUNKS / sizeof CHUNKS[0]; i++) {
        grow_to(CHUNKS[i]);
        printf("%8.1f MB", (LEDGER_HEADER_BYTES + CHUNKS[i] * (double)LEDGER_CHUNK_BYTES) / 1e6);
        for (int to = 1; to < count; to++) {
            snprintf(path, sizeof path, "%s/copy", folders[to]);
            printf("  %8.2f ms", median_ms(path));
            remove(path);
        }
        printf("\n");
    }
    ledger_remove();
    return EXIT_SUCCESS;
}
