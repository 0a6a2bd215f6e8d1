#include "kept.h"

#include <pthread.h>
#include <stdlib.h>

unsigned kept_count;

static struct kept {
    struct kept *next;
    mpi_handle request;
    void *memory;
} * kept;
static pthread_mutex_t keeping = PTHREAD_MUTEX_INITIALIZER;

void kept_add(mpi_handle request, void *memory)
{
    struct kept *entry = malloc(sizeof *entry);
    if (!entry)
        return;
    pthread_mutex_lock(&keeping);
    *entry = (struct kept){kept, mpi_handle_bits(request), memory};
    kept = entry;
    __atomic_add_fetch(&kept_count, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&keeping);
}

void kept_free(mpi_handle request)
{
    mpi_handle bits = mpi_handle_bits(request);
    pthread_mutex_lock(&keeping);
    for (struct kept **link = &kept; *link; link = &(*link)->next)
        if ((*link)->request == bits) {
            struct kept *entry = *link;
            *link = entry->next;
            free(entry->memory);
            free(entry);
            __atomic_sub_fetch(&kept_count, 1, __ATOMIC_RELAXED);
            break;
        }
    pthread_mutex_unlock(&keeping);
}
