#include "request_memory.h"

#include "base/memory.h"
#include "base/quiet.h"

unsigned request_memory_count;

static struct retained {
    struct retained *next;
    mpi_handle request;
    void *memory;
} * retained;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void request_memory_add(mpi_handle request, void *memory)
{
    struct retained *entry = memory_take(sizeof *entry);
    if (!entry)
        return;
    struct quiet before = quiet_lock(&lock);
    *entry = (struct retained){retained, mpi_handle_bits(request), memory};
    retained = entry;
    __atomic_add_fetch(&request_memory_count, 1, __ATOMIC_RELAXED);
    quiet_unlock(&lock, &before);
}

void request_memory_free(mpi_handle request)
{
    mpi_handle bits = mpi_handle_bits(request);
    struct quiet before = quiet_lock(&lock);
    for (struct retained **link = &retained; *link; link = &(*link)->next)
        if ((*link)->request == bits) {
            struct retained *entry = *link;
            *link = entry->next;
            memory_give(entry->memory);
            memory_give(entry);
            __atomic_sub_fetch(&request_memory_count, 1, __ATOMIC_RELAXED);
            break;
        }
    quiet_unlock(&lock, &before);
}
