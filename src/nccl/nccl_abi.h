/* NCCL's types, as far as our wrappers need them: the same in every version since 2.0. Streams,
 * communicators and configurations are passed on unchanged. */
#ifndef COMMPROF_NCCL_ABI_H
#define COMMPROF_NCCL_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int nccl_result;
enum { NCCL_SUCCESS = 0, NCCL_SYSTEM_ERROR = 2, NCCL_IN_PROGRESS = 7 };

struct nccl_unique_id { /* passed by value */
    char internal[128];
};

enum { NCCL_INT8 = 0, NCCL_DATATYPES = 12, NCCL_SPLIT_NOCOLOR = -1 };

/* Bytes of an element; 0: a type newer than this table. */
static inline uint64_t nccl_type_bytes(int datatype)
{
    /* int8, uint8, int32, uint32, int64, uint64, float16, float32, float64, bfloat16, float8e4m3,
     * float8e5m2 */
    static const uint8_t BYTES[NCCL_DATATYPES] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    return datatype >= 0 && datatype < NCCL_DATATYPES ? BYTES[datatype] : 0;
}

/* The part of ncclConfig_t up to the communicator's name (PyTorch: the purpose of its process
 * group). New fields are appended; the name was added in 2.27. */
struct nccl_config {
    size_t size;
    unsigned magic, version;
    int blocking, cga_cluster_size, least_ctas, most_ctas;
    const char *network;
    int splits_share, traffic_class;
    const char *name;
};
enum { NCCL_VERSION_WITH_NAMES = 22700 };
#define NCCL_CONFIG_MAGIC 0xcafebeefu

/* NULL: no name. */
static inline const char *nccl_config_name(const struct nccl_config *config)
{
    bool has_one = config && config->size >= sizeof *config && config->magic == NCCL_CONFIG_MAGIC &&
                   config->version >= NCCL_VERSION_WITH_NAMES;
    return has_one ? config->name : NULL;
}

#endif
