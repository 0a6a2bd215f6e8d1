/* Nodes are small and have four children each, so one path down a heap of a hundred thousand
 * touches eight cache lines; the events themselves do not move. The nodes' event numbers are always
 * a permutation: those behind the end of the heap are free. */
#include "reorder.h"

#include <stdlib.h>

enum { FIRST_ROOM = 4096, CHILDREN = 4 };

struct reorder_node {
    int64_t start_ns;
    uint32_t event;
};

static bool grow(struct reorder *reorder)
{
    uint32_t room = reorder->room ? 2 * reorder->room : FIRST_ROOM;
    room = room < reorder->most ? room : reorder->most;
    if (room == reorder->room)
        return false;
    struct reorder_event *events = realloc(reorder->events, room * sizeof *events);
    if (events)
        reorder->events = events;
    struct reorder_node *heap = realloc(reorder->heap, room * sizeof *heap);
    if (heap)
        reorder->heap = heap;
    if (!events || !heap)
        return false;
    for (uint32_t i = reorder->room; i < room; i++)
        heap[i].event = i;
    reorder->room = room;
    return true;
}

bool reorder_put(struct reorder *reorder, const struct reorder_event *event)
{
    if (reorder->count == reorder->room && !grow(reorder))
        return false;
    struct reorder_node *heap = reorder->heap, node = {event->start_ns, heap[reorder->count].event};
    uint32_t at = reorder->count++;
    for (uint32_t parent; at && heap[parent = (at - 1) / CHILDREN].start_ns > node.start_ns;
         at = parent)
        heap[at] = heap[parent];
    heap[at] = node;
    reorder->events[node.event] = *event;
    return true;
}

int64_t reorder_first_ns(const struct reorder *reorder)
{
    return reorder->count ? reorder->heap[0].start_ns : INT64_MAX;
}

static uint32_t least_child(const struct reorder *reorder, uint32_t first)
{
    uint32_t least = first,
             end = first + CHILDREN < reorder->count ? first + CHILDREN : reorder->count;
    for (uint32_t child = first + 1; child < end; child++)
        if (reorder->heap[child].start_ns < reorder->heap[least].start_ns)
            least = child;
    return least;
}

struct reorder_event reorder_take(struct reorder *reorder)
{
    struct reorder_node *heap = reorder->heap;
    uint32_t taken = heap[0].event, at = 0;
    struct reorder_node last = heap[--reorder->count];
    for (uint32_t child = 1; child < reorder->count; child = CHILDREN * at + 1) {
        child = least_child(reorder, child);
        if (heap[child].start_ns >= last.start_ns)
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    heap[reorder->count].event = taken;
    return reorder->events[taken];
}
