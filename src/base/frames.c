/* The unwinder walks the stack as for a C++ exception. It is libgcc_s, which glibc itself loads for backtrace() and pthread_cancel(); it is
 * loaded at first use. */
#include "frames.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unwind.h>

static _Unwind_Reason_Code (*backtrace_with)(_Unwind_Trace_Fn, void *);
static _Unwind_Word (*frame_begin)(struct _Unwind_Context *);
static _Unwind_Ptr (*instruction)(struct _Unwind_Context *);

static void load_unwinder(void)
{
    void *unwinder = dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!unwinder)
        return;
    frame_begin = (_Unwind_Word(*)(struct _Unwind_Context *))dlsym(unwinder, "_Unwind_GetCFA");
    instruction = (_Unwind_Ptr(*)(struct _Unwind_Context *))dlsym(unwinder, "_Unwind_GetIP");
    if (frame_begin && instruction)
        backtrace_with = (_Unwind_Reason_Code(*)(_Unwind_Trace_Fn, void *))dlsym(unwinder, "_Unwind_Backtrace");
}

struct walk {
    uintptr_t outer, inner;
    uintptr_t code, begin; /* of the frame visited last */
    bool left;
};

static bool is_ours(uintptr_t code)
{
    Dl_info us, there;
    return dladdr((void *)load_unwinder, &us) && dladdr((void *)code, &there) && us.dli_fbase == there.dli_fbase;
}

/* Called for each frame, innermost first; a frame ends where the next one begins. The function of `outer` is still active if the frame that
 * contains `outer` is a function of this library and does not contain `inner` as well. */
static _Unwind_Reason_Code visit(struct _Unwind_Context *frame, void *data)
{
    struct walk *walk = data;
    uintptr_t begin = frame_begin(frame);
    if (begin > walk->outer) {
        walk->left = walk->begin <= walk->inner || !is_ours(walk->code);
        return _URC_NORMAL_STOP;
    }
    walk->begin = begin;
    walk->code = instruction(frame);
    return _URC_NO_REASON;
}

bool frames_was_left(uintptr_t outer, uintptr_t inner)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_unwinder);
    struct walk walk = {.outer = outer, .inner = inner};
    if (backtrace_with)
        backtrace_with(visit, &walk);
    return walk.left;
}
