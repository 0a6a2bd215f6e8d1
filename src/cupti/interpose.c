/* The real function is looked up as the caller would find it: in its own object and that object's
 * dependencies. RTLD_NEXT does not cover libraries that Python has opened privately, and there may
 * be several copies of CUPTI. These calls are rare, so nothing is cached.
 *
 * A client may register its callbacks and enable kinds much later, or repeatedly. It cannot know
 * that ours are registered now, so its own are restored first. Buffers that it still had when we
 * registered ours are passed on to it (buffers_forward). */
#include "interpose.h"

#include "base/scope.h"
#include "buffers.h"
#include "cupti_clock.h"
#include "cupti_library.h"
#include "gpu/backend.h"

#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int cuptiSubscribe(void **subscriber, void (*callback)(void), void *data);
EXPORT int cuptiSubscribe_v2(void **subscriber, void (*callback)(void), void *data,
                             struct cupti_subscriber *parameters);
EXPORT int cuptiActivityRegisterCallbacks(cupti_request request, cupti_complete complete);
EXPORT int cuptiActivityRegisterTimestampCallback(uint64_t (*now)(void));
EXPORT int cuptiActivityEnable(int kind);
EXPORT int cuptiActivityDisable(int kind);
EXPORT int cuptiFinalize(void);
EXPORT int InitializeInjection(void);

static struct {
    bool is_seen;
    bool callbacks_are_ours;
    cupti_request request;
    cupti_complete complete;
    uint64_t enabled; /* one bit per kind; all relevant kinds are below 64 */
} client;

bool interpose_has_seen_a_client(void)
{
    return __atomic_load_n(&client.is_seen, __ATOMIC_RELAXED);
}

bool interpose_callbacks_are_ours(void)
{
    return __atomic_load_n(&client.callbacks_are_ours, __ATOMIC_RELAXED);
}

void interpose_callbacks_become_ours(void)
{
    __atomic_store_n(&client.callbacks_are_ours, true, __ATOMIC_RELAXED);
}

void interpose_callbacks_become_another_s(void)
{
    __atomic_store_n(&client.callbacks_are_ours, false, __ATOMIC_RELAXED);
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void *real(const char *name, const void *return_address)
{
    Dl_info caller = {NULL, NULL, NULL, NULL}, found;
    bool is_named = dladdr(return_address, &caller) && caller.dli_fname;
    bool is_there = (is_named && scope_of_caller(&caller, name, &found)) ||
                    scope_definer(RTLD_NEXT, name, &found) ||
                    scope_anywhere("/libcupti.so", name, NULL, &found);
    return is_there ? found.dli_saddr : NULL;
}

static void yield_to(const void *return_address)
{
    Dl_info caller = {NULL, NULL, NULL, NULL};
    const char *file = dladdr(return_address, &caller) && caller.dli_fname
                           ? file_name(caller.dli_fname)
                           : "a client of CUPTI";
    __atomic_store_n(&client.is_seen, true, __ATOMIC_RELAXED);
    gpu_yield(strncmp(file, "libtorch", 8) == 0 || strncmp(file, "libkineto", 9) == 0
                  ? "PyTorch's profiler"
                  : file);
}

/* If they trace nothing, our tracing may resume. */
static void unyield_if_idle(void)
{
    if (!__atomic_load_n(&client.enabled, __ATOMIC_ACQUIRE))
        gpu_unyield();
}

static uint64_t bit_of(int kind)
{
    return kind >= 0 && kind < 64 ? UINT64_C(1) << kind : 0;
}

static void put_their_callbacks_back(const void *return_address)
{
    __typeof__(cuptiActivityRegisterCallbacks) *real_register =
        real("cuptiActivityRegisterCallbacks", return_address);
    if (real_register && client.request &&
        __atomic_exchange_n(&client.callbacks_are_ours, false, __ATOMIC_ACQ_REL))
        real_register(client.request, client.complete);
}

int cuptiActivityRegisterCallbacks(cupti_request request, cupti_complete complete)
{
    const void *caller = __builtin_return_address(0);
    __typeof__(cuptiActivityRegisterCallbacks) *real_register = real(__func__, caller);
    if (!real_register)
        return CUPTI_NOT_INITIALIZED;
    yield_to(caller);
    int result = real_register(request, complete);
    if (result == CUPTI_SUCCESS) {
        __atomic_store_n(&client.callbacks_are_ours, false, __ATOMIC_RELAXED);
        client.request = request;
        client.complete = complete;
        buffers_forward(complete);
    }
    unyield_if_idle();
    return result;
}

int cuptiActivityRegisterTimestampCallback(uint64_t (*now)(void))
{
    const void *caller = __builtin_return_address(0);
    __typeof__(cuptiActivityRegisterTimestampCallback) *real_register = real(__func__, caller);
    if (!real_register)
        return CUPTI_NOT_INITIALIZED;
    yield_to(caller);
    int result = real_register(now);
    if (result == CUPTI_SUCCESS)
        cupti_clock_is_foreign(now);
    unyield_if_idle();
    return result;
}

int cuptiActivityEnable(int kind)
{
    const void *caller = __builtin_return_address(0);
    __typeof__(cuptiActivityEnable) *real_enable = real(__func__, caller);
    if (!real_enable)
        return CUPTI_NOT_INITIALIZED;
    yield_to(caller);
    put_their_callbacks_back(caller);
    int result = real_enable(kind);
    if (result == CUPTI_SUCCESS)
        __atomic_fetch_or(&client.enabled, bit_of(kind), __ATOMIC_RELEASE);
    unyield_if_idle();
    return result;
}

int cuptiActivityDisable(int kind)
{
    __typeof__(cuptiActivityDisable) *real_disable = real(__func__, __builtin_return_address(0));
    if (!real_disable)
        return CUPTI_NOT_INITIALIZED;
    int result = real_disable(kind);
    if (__atomic_fetch_and(&client.enabled, ~bit_of(kind), __ATOMIC_ACQ_REL))
        unyield_if_idle();
    return result;
}

/* CUPTI detaches from the process and attaches again at the next call; then no callbacks are
 * registered and no kind is enabled. It must not be called while other calls are in progress.
 * PyTorch's profiler calls it after its session if TEARDOWN_CUPTI=1. */
int cuptiFinalize(void)
{
    const void *caller = __builtin_return_address(0);
    __typeof__(cuptiFinalize) *real_finalize = real(__func__, caller);
    if (!real_finalize)
        return CUPTI_NOT_INITIALIZED;
    yield_to(caller);
    int result = real_finalize();
    if (result == CUPTI_SUCCESS) {
        interpose_callbacks_become_another_s();
        __atomic_store_n(&client.enabled, 0, __ATOMIC_RELEASE);
    }
    unyield_if_idle();
    return result;
}

int cuptiSubscribe(void **subscriber, void (*callback)(void), void *data)
{
    __typeof__(cuptiSubscribe) *real_subscribe = real(__func__, __builtin_return_address(0));
    __atomic_store_n(&client.is_seen, true, __ATOMIC_RELAXED);
    return real_subscribe ? real_subscribe(subscriber, callback, data) : CUPTI_NOT_INITIALIZED;
}

int cuptiSubscribe_v2(void **subscriber, void (*callback)(void), void *data,
                      struct cupti_subscriber *parameters)
{
    __typeof__(cuptiSubscribe_v2) *real_subscribe = real(__func__, __builtin_return_address(0));
    __atomic_store_n(&client.is_seen, true, __ATOMIC_RELAXED);
    return real_subscribe ? real_subscribe(subscriber, callback, data, parameters)
                          : CUPTI_NOT_INITIALIZED;
}

/* At its initialization the CUDA driver opens the library that CUDA_INJECTION64_PATH names and
 * calls this function. */
int InitializeInjection(void)
{
    gpu_wake();
    return 1;
}
