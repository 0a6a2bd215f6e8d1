/* Names in the lists of tensors that Horovod's ranks send each other without its response cache: to
 * rank 0 the requests of a rank, back the responses. A list is a flatbuffer (Horovod's
 * wire/message.fbs), and behind it one byte of 0.
 *
 *     request list     table: field 0 a vector of requests       table: field 3 the name
 *     response list    table: field 0 a vector of responses      table: field 1 a vector of names
 *
 * The bytes may be anything: every offset is checked before it is followed. */
#ifndef COMMPROF_TENSOR_NAMES_H
#define COMMPROF_TENSOR_NAMES_H

#include <stdbool.h>
#include <stdint.h>

enum {
    TENSOR_NAMES_MOST = 4096, /* of a list */
    TENSOR_LIST_BYTES_MOST = 1 << 22,
};

/* Whether a list may have so many bytes. */
bool tensor_names_may_be(int64_t length);

/* Called with the hash of each name, in their order. */
typedef void (*tensor_name_found)(void *context, uint64_t hash);

/* False: the bytes are no such list, or a damaged one; some of its names may have been found. */
bool tensor_names_requested(const void *bytes, uint64_t length, tensor_name_found found,
                            void *context);
bool tensor_names_answered(const void *bytes, uint64_t length, tensor_name_found found,
                           void *context);

#endif
