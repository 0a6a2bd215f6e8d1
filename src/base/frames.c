/* The unwinder walks the stack as for a C++ exception, through signal handlers as well. It is
 * libgcc_s, which glibc itself loads for backtrace() and pthread_cancel(). It must be loaded in
 * advance: a signal handler's call may interrupt malloc. */
#include "frames.h"

#include <dlfcn.h>
#include <signal.h>
#include <unwind.h>

static _Unwind_Reason_Code (*backtrace_with)(_Unwind_Trace_Fn, void *);
static _Unwind_Word (*frame_begin)(struct _Unwind_Context *);
static _Unwind_Ptr (*instruction)(struct _Unwind_Context *);

struct walk {
    uintptr_t outer, inner;
    uintptr_t aside,
        aside_end; /* a signal handler's own stack; its frames are not in order with the others */
    uintptr_t code, begin; /* of the frame visited last */
    bool left;
};

static bool is_ours(uintptr_t code)
{
    Dl_info us, there;
    return dladdr((void *)frames_begin, &us) && dladdr((void *)code, &there) &&
           us.dli_fbase == there.dli_fbase;
}

/* Called for each frame, innermost first; a frame ends where the next one begins. The function of
 * `outer` is still active if the frame that contains `outer` is a function of this library and does
 * not contain `inner` as well. */
static _Unwind_Reason_Code visit(struct _Unwind_Context *frame, void *data)
{
    struct walk *walk = data;
    uintptr_t begin = frame_begin(frame);
    bool is_aside = begin >= walk->aside && begin <= walk->aside_end;
    if (begin > walk->outer && !is_aside) {
        walk->left = (walk->begin <= walk->inner && walk->inner < begin) || !is_ours(walk->code);
        return _URC_NORMAL_STOP;
    }
    walk->begin = begin;
    walk->code = instruction(frame);
    return _URC_NO_REASON;
}

/* If it runs on a signal stack and `outer` is elsewhere, that stack. */
static void put_aside(struct walk *walk)
{
    stack_t stack;
    if (sigaltstack(NULL, &stack) != 0 || !(stack.ss_flags & SS_ONSTACK))
        return;
    uintptr_t begin = (uintptr_t)stack.ss_sp, end = begin + stack.ss_size;
    if (walk->outer >= begin && walk->outer < end)
        return;
    walk->aside = begin;
    walk->aside_end = end;
}

bool frames_was_left(uintptr_t outer, uintptr_t inner)
{
    struct walk walk = {.outer = outer, .inner = inner};
    put_aside(&walk);
    if (!walk.aside && outer <= inner)
        return true;
    if (backtrace_with)
        backtrace_with(visit, &walk);
    return walk.left;
}

void frames_begin(void)
{
    void *unwinder = dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!unwinder)
        return;
    frame_begin = (_Unwind_Word(*)(struct _Unwind_Context *))dlsym(unwinder, "_Unwind_GetCFA");
    instruction = (_Unwind_Ptr(*)(struct _Unwind_Context *))dlsym(unwinder, "_Unwind_GetIP");
    if (frame_begin && instruction)
        backtrace_with =
            (_Unwind_Reason_Code(*)(_Unwind_Trace_Fn, void *))dlsym(unwinder, "_Unwind_Backtrace");
    struct walk first_frame = {.outer = 0};
    if (backtrace_with)
        backtrace_with(visit, &first_frame); /* the unwinder prepares itself at its first use */
}
