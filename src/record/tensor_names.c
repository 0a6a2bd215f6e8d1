/* Positions count from the list's first byte; 0, where no table, vector or string can be, stands
 * for one that is absent or not sound. All but vtables are aligned to 4 bytes. */
#include "tensor_names.h"

#include <stddef.h>
#include <string.h>

enum {
    WORD = sizeof(uint32_t), /* of offsets, lengths and counts */
    FIRST_FIELD = 4,         /* in a vtable, behind its own size and the table's */
    FIELD = sizeof(uint16_t),
    LIST = 0,
    REQUEST_NAME = 3,
    RESPONSE_NAMES = 1, /* fields */
};

struct list {
    const unsigned char *bytes;
    uint64_t length; /* without the byte behind it */
    uint64_t hashed; /* bytes of all names so far: at most the length, so that names that overlap
                        take no longer */
    unsigned names;
    tensor_name_found found;
    void *context;
};

static uint32_t word_at(const struct list *list, uint64_t at)
{
    uint32_t word;
    memcpy(&word, list->bytes + at, sizeof word);
    return word;
}

static uint16_t half_at(const struct list *list, uint64_t at)
{
    uint16_t half;
    memcpy(&half, list->bytes + at, sizeof half);
    return half;
}

static bool fits(const struct list *list, uint64_t at, uint64_t bytes)
{
    return at <= list->length && bytes <= list->length - at;
}

/* The place to which the offset at that position leads. */
static uint64_t follow(const struct list *list, uint64_t at)
{
    uint64_t to = at + word_at(list, at);
    return to > at && to % WORD == 0 && fits(list, to, WORD) ? to : 0;
}

/* The place to which a table's field, which is an offset, leads. */
static uint64_t follow_field(const struct list *list, uint64_t table, unsigned field)
{
    int64_t vtable = (int64_t)table - (int32_t)word_at(list, table);
    unsigned own = FIRST_FIELD + field * FIELD;
    if (vtable < WORD || vtable % FIELD || !fits(list, (uint64_t)vtable, own + FIELD))
        return 0;
    unsigned vtable_bytes = half_at(list, (uint64_t)vtable);
    unsigned table_bytes = half_at(list, (uint64_t)vtable + FIELD);
    unsigned offset = half_at(list, (uint64_t)vtable + own);
    bool is_sound = vtable_bytes >= own + FIELD && offset >= WORD && offset % WORD == 0 &&
                    offset + WORD <= table_bytes && fits(list, table, table_bytes);
    return is_sound ? follow(list, table + offset) : 0;
}

/* FNV-1a */
static uint64_t hash_of(const unsigned char *name, uint32_t length)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (uint32_t i = 0; i < length; i++)
        hash = (hash ^ name[i]) * 0x100000001b3;
    return hash;
}

static bool find_name(struct list *list, uint64_t string)
{
    uint32_t length = string ? word_at(list, string) : 0;
    if (!string || !fits(list, string + WORD, (uint64_t)length + 1) ||
        list->bytes[string + WORD + length] != 0)
        return false;
    list->hashed += length;
    if (list->hashed > list->length || ++list->names > TENSOR_NAMES_MOST)
        return false;
    list->found(list->context, hash_of(list->bytes + string + WORD, length));
    return true;
}

typedef bool (*find_names)(struct list *list, uint64_t at);

static bool for_each(struct list *list, uint64_t vector, find_names find)
{
    uint64_t count = vector ? word_at(list, vector) : 0;
    bool is_sound = vector && count <= TENSOR_NAMES_MOST && fits(list, vector + WORD, count * WORD);
    for (uint64_t i = 0; is_sound && i < count; i++) {
        uint64_t to = follow(list, vector + WORD + i * WORD);
        is_sound = to && find(list, to);
    }
    return is_sound;
}

static bool find_in_request(struct list *list, uint64_t table)
{
    return find_name(list, follow_field(list, table, REQUEST_NAME));
}

static bool find_in_response(struct list *list, uint64_t table)
{
    return for_each(list, follow_field(list, table, RESPONSE_NAMES), find_name);
}

bool tensor_names_may_be(int64_t length)
{
    return length > 2 * WORD && length <= TENSOR_LIST_BYTES_MOST && length % WORD == 1;
}

static bool read_list(const void *bytes, uint64_t length, find_names find, tensor_name_found found,
                      void *context)
{
    struct list list = {.bytes = bytes, .length = length - 1, .found = found, .context = context};
    if (!tensor_names_may_be((int64_t)length) || list.bytes[list.length] != 0)
        return false;
    uint64_t table = follow(&list, 0);
    return table && for_each(&list, follow_field(&list, table, LIST), find);
}

bool tensor_names_requested(const void *bytes, uint64_t length, tensor_name_found found,
                            void *context)
{
    return read_list(bytes, length, find_in_request, found, context);
}

bool tensor_names_answered(const void *bytes, uint64_t length, tensor_name_found found,
                           void *context)
{
    return read_list(bytes, length, find_in_response, found, context);
}
