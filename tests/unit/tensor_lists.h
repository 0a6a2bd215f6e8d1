/* Lists of tensors as Horovod's ranks send them by name (its wire/message.fbs), of one length a
 * name: flatbuffers, and one byte of 0 behind. */
#ifndef TENSOR_LISTS_H
#define TENSOR_LISTS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TENSOR_NAME_BYTES = 48,   /* with its length and 0, padded */
    TENSOR_LIST_OF_NONE = 68, /* bytes */
    TENSOR_LIST_TABLE = 16,   /* where it is */
    TENSOR_BYTES = TENSOR_NAME_BYTES + 12,
};
static unsigned char *list_bytes;
static unsigned list_length;

static inline unsigned list_word(uint32_t word)
{
    memcpy(list_bytes + list_length, &word, sizeof word);
    list_length += (unsigned)sizeof word;
    return list_length - (unsigned)sizeof word;
}

/* The offset at that place leads here. */
static inline void list_lead(unsigned from)
{
    uint32_t offset = list_length - from;
    memcpy(list_bytes + from, &offset, sizeof offset);
}

/* For tables whose last field, of so many, is an offset: all others are absent. */
static inline unsigned list_vtable(unsigned fields)
{
    unsigned at = list_length;
    uint16_t vtable[6] = {(uint16_t)(4 + 2 * fields), 8};
    vtable[1 + fields] = 4;
    memcpy(list_bytes + at, vtable, sizeof vtable);
    list_length += (unsigned)sizeof vtable;
    return at;
}

/* Returns the place of its field. */
static inline unsigned list_table(unsigned vtable)
{
    list_word(list_length - vtable);
    return list_word(0);
}

static inline void list_name(int tensor)
{
    char name[TENSOR_NAME_BYTES - 4] = "";
    list_word(
        (uint32_t)snprintf(name, sizeof name, "DistributedOptimizer.layer.%d.weight", tensor));
    memcpy(list_bytes + list_length, name, sizeof name);
    list_length += (unsigned)sizeof name;
}

static inline unsigned list_vector(unsigned field, int count)
{
    list_lead(field);
    list_word((uint32_t)count);
    unsigned first = list_length;
    for (int i = 0; i < count; i++)
        list_word(0);
    return first;
}

/* The list's own table: field 0, whose place is returned, and 1, whether it is the last list. */
static inline unsigned list_begin(void *bytes, int is_last)
{
    const uint16_t vtable[6] = {8, 12, 4, 8};
    list_bytes = bytes;
    list_length = 0;
    list_word(TENSOR_LIST_TABLE);
    memcpy(list_bytes + list_length, vtable, sizeof vtable);
    list_length = TENSOR_LIST_TABLE;
    unsigned field = list_table(TENSOR_LIST_TABLE - (unsigned)sizeof vtable);
    list_word((uint32_t)is_last);
    return field;
}

/* Return the length in bytes, of which there must be room for TENSOR_LIST_OF_NONE, and
 * TENSOR_BYTES for each tensor. */
static inline unsigned list_requests(void *bytes, const int *tensors, int count, int is_last)
{
    unsigned first = list_vector(list_begin(bytes, is_last), count), vtable = list_vtable(4);
    for (int i = 0; i < count; i++) {
        list_lead(first + 4 * (unsigned)i);
        list_lead(list_table(vtable));
        list_name(tensors[i]);
    }
    list_bytes[list_length] = 0;
    return list_length + 1;
}

/* One response of all of them, fused; none if there are none. */
static inline unsigned list_responses(void *bytes, const int *tensors, int count, int is_last)
{
    unsigned response = list_vector(list_begin(bytes, is_last), count > 0), vtable = list_vtable(2);
    if (count > 0) {
        list_lead(response);
        unsigned first = list_vector(list_table(vtable), count);
        for (int i = 0; i < count; i++) {
            list_lead(first + 4 * (unsigned)i);
            list_name(tensors[i]);
        }
    }
    list_bytes[list_length] = 0;
    return list_length + 1;
}

#endif
