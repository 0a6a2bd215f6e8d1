/* The part of the ABI of NVTX version 3 that a tool needs, from NVIDIA's headers
 * nvtx3/nvtxDetail/nvtxTypes.h (tables and numbers of callbacks) and nvtx3/nvToolsExt.h (event
 * attributes). NVIDIA keeps it stable so that a tool may be older than the program.
 * tests/abi/test_nvtx.py compares with these headers if they are installed. */
#ifndef COMMPROF_NVTX_ABI_H
#define COMMPROF_NVTX_ABI_H

#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

enum { NVTX_EXPORT_CALLBACKS = 1 };
enum { NVTX_MODULE_CORE = 1, NVTX_MODULE_CORE2 = 5 };
enum {
    NVTX_CORE_RANGE_PUSH_EX = 8,
    NVTX_CORE_RANGE_PUSH_A = 9,
    NVTX_CORE_RANGE_PUSH_W = 10,
    NVTX_CORE_RANGE_POP = 11
};
enum {
    NVTX_CORE2_DOMAIN_RANGE_PUSH_EX = 4,
    NVTX_CORE2_DOMAIN_RANGE_POP = 5,
    NVTX_CORE2_DOMAIN_REGISTER_STRING_A = 10,
    NVTX_CORE2_DOMAIN_REGISTER_STRING_W = 11,
    NVTX_CORE2_DOMAIN_CREATE_A = 12,
    NVTX_CORE2_DOMAIN_CREATE_W = 13,
};
enum { NVTX_NOT_TRACKED = -2 }; /* returned by push and pop when there is no tool */

typedef void (*nvtx_function)(void);

/* The program's copy of NVTX has a pointer for each function, which the tool sets; `table[number]`
 * points to it. */
typedef const void *(*nvtx_get_export_table)(uint32_t id);
struct nvtx_callbacks {
    size_t struct_bytes;
    int (*get_module_table)(int module, nvtx_function ***table, unsigned *size); /* 1: done */
};

enum nvtx_message_type {
    NVTX_MESSAGE_ASCII = 1,
    NVTX_MESSAGE_UNICODE = 2,
    NVTX_MESSAGE_REGISTERED = 3
};

struct nvtx_event {
    uint16_t version;
    uint16_t size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type;
    int32_t reserved;
    uint64_t payload;
    int32_t message_type;
    union {
        const char *ascii;
        const wchar_t *unicode;
        const void *registered; /* the handle that the tool returned at registration */
    } message;
};

#endif
