#include "cupti/cupti_backend.h"

#include "base/clock.h"
#include "base/host.h"
#include "base/settings.h"
#include "cupti/cuda_driver.h"
#include "cupti/cupti_clock.h"
#include "cupti/cupti_library.h"
#include "cupti_replay.h"
#include "ledger/ledger.h"
#include "stub_cupti.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/uio.h>

/* CUPTI's functions as another client calls them: through our wrappers. */
int cuptiSubscribe(void **subscriber, void (*callback)(void), void *data);
int cuptiActivityRegisterCallbacks(cupti_request request, cupti_complete complete);
int cuptiActivityRegisterTimestampCallback(uint64_t (*now)(void));
int cuptiActivityEnable(int kind);
int cuptiActivityDisable(int kind);
int cuptiFinalize(void);

static const struct gpu_backend *const BACKEND = &cupti_backend;
static const uint64_t OUR_KINDS =
    1u << CUPTI_CONCURRENT_KERNEL | 1u << CUPTI_MEMCPY | 1u << CUPTI_MEMCPY2 | 1u << CUPTI_MEMSET;

static struct stub_cuda *cuda;
static struct stub_cupti *cupti;
static char reason[512];

/* In place of the system's, for the profiler and the stubs: all clocks are ahead by what the test
 * has skipped. */
static int64_t skipped_ns;

int clock_gettime(clockid_t clock, struct timespec *now)
{
    long result = syscall(SYS_clock_gettime, clock, now);
    int64_t ns = now->tv_sec * INT64_C(1000000000) + now->tv_nsec + skipped_ns;
    *now = (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    return (int)result;
}

static void skip(int64_t ns)
{
    skipped_ns += ns;
}

static void *stub(const char *file, const char *variable)
{
    char path[1024];
    snprintf(path, sizeof path, UNIT_BUILD "/%s", file);
    void *library = dlopen(path, RTLD_NOW);
    CHECK(library != NULL);
    return dlsym(library, variable);
}

/* A process that uses a GPU and has a libcupti. */
static void begin(void)
{
    settings_read(NULL);
    clock_begin(CLOCK_GETTIME);
    CHECK_EQUAL(ledger_open("ledger", 4 << 20), 0);
    cuda = stub("libcuda.so.1", "stub_cuda");
    cupti = stub("libcupti.so.13", "stub_cupti");
    cuda->init_result = 0;
    cuda->is_active = 1;
    CHECK_EQUAL(BACKEND->look(), GPU_IN_USE);
}

static void begin_armed(void)
{
    begin();
    CHECK_EQUAL(BACKEND->arm(reason, sizeof reason), GPU_ARMED);
}

static void begin_tracing(void)
{
    begin_armed();
    CHECK(BACKEND->resume(reason, sizeof reason));
}

static bool says(const char *text)
{
    if (!strstr(reason, text))
        fprintf(stderr, "it says: %s\n", reason);
    return strstr(reason, text) != NULL;
}

static int64_t unix_now(void)
{
    return clock_unix_ns();
}

/* The profiler reads only its first bytes. */
static struct cupti_kernel *kernel_in(uint8_t record[STUB_KERNEL_BYTES])
{
    memset(record, 0xee, STUB_KERNEL_BYTES);
    struct cupti_kernel *kernel = (struct cupti_kernel *)record;
    *kernel = (struct cupti_kernel){.kind = CUPTI_CONCURRENT_KERNEL,
                                    .device = 1,
                                    .context = 1,
                                    .stream = 7,
                                    .name = "_Z6kernelv"};
    return kernel;
}

/* A kernel that ended this long ago. */
static void run_kernel(int64_t ago_ns, int64_t duration_ns)
{
    uint64_t memory[STUB_KERNEL_BYTES / 8];
    struct cupti_kernel *kernel = kernel_in((uint8_t *)memory);
    kernel->end = (uint64_t)(unix_now() - ago_ns);
    kernel->start = kernel->end - (uint64_t)duration_ns;
    cupti->write(memory, sizeof memory);
}

static void run_copy(uint64_t bytes)
{
    uint64_t memory[STUB_COPY_BYTES / 8] = {0};
    struct cupti_copy *copy = (struct cupti_copy *)memory;
    *copy = (struct cupti_copy){.kind = CUPTI_MEMCPY,
                                .copy_kind = 1,
                                .source_kind = 1,
                                .destination_kind = 3,
                                .bytes = bytes};
    copy->start = copy->end = (uint64_t)unix_now();
    cupti->write(memory, sizeof memory);
}

static struct gpu_event events[64];
static char names[64][64];
static unsigned event_count;

static void take(const struct gpu_event *event)
{
    CHECK(event_count < 64);
    snprintf(names[event_count], sizeof names[0], "%s", event->name ? event->name : "");
    events[event_count++] = *event;
}

static struct gpu_collected collect(bool everything)
{
    event_count = 0;
    return BACKEND->collect(take, everything);
}

/* A kernel of this name that ends now, and is collected. */
static void collect_named(const char *name)
{
    uint64_t memory[STUB_KERNEL_BYTES / 8];
    struct cupti_kernel *kernel = kernel_in((uint8_t *)memory);
    kernel->name = name;
    kernel->start = kernel->end = (uint64_t)unix_now();
    cupti->write(memory, sizeof memory);
    CHECK_EQUAL(collect(false).records, 1);
}

/* Detection */

TEST(a_process_without_the_driver_uses_no_gpu)
{
    bool has_driver = access("/dev/nvidiactl", F_OK) == 0 ||
                      access("/proc/driver/nvidia/version", F_OK) == 0 ||
                      access("/dev/dxg", F_OK) == 0;
    CHECK_EQUAL(BACKEND->look(), has_driver ? GPU_UNUSED : GPU_ABSENT);
    CHECK(dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD) == NULL);
    CHECK_EQUAL(BACKEND->memory_kind(&has_driver), -1);
    CHECK(!BACKEND->find_stream(NULL, &(struct gpu_stream){0, 0}));
}

TEST(the_gpu_is_in_use_when_a_device_has_a_context)
{
    cuda = stub("libcuda.so.1", "stub_cuda");
    CHECK_EQUAL(BACKEND->look(), GPU_UNUSED); /* cuInit was not called */
    cuda->init_result = 0;
    CHECK_EQUAL(BACKEND->look(), GPU_UNUSED);
    cuda->is_active = 1;
    CHECK_EQUAL(BACKEND->look(), GPU_IN_USE);
}

static int memory_kind_with(unsigned type, unsigned is_managed)
{
    cuda->memory_type = type;
    cuda->is_managed = is_managed;
    return BACKEND->memory_kind(&cuda);
}

TEST(the_driver_says_where_a_buffer_lies)
{
    begin();
    CHECK_EQUAL(memory_kind_with(0, 0), -1);
    CHECK_EQUAL(memory_kind_with(1, 0), LEDGER_PINNED);
    CHECK_EQUAL(memory_kind_with(2, 0), LEDGER_DEVICE);
    CHECK_EQUAL(memory_kind_with(2, 1), LEDGER_MANAGED);
    CHECK_EQUAL(memory_kind_with(4, 0), LEDGER_MANAGED);
    CHECK_EQUAL(BACKEND->memory_kind(NULL), -1); /* an invalid value */
    cuda->init_result = 4;
    CHECK_EQUAL(memory_kind_with(2, 0), -1); /* the driver has shut down */
}

TEST(a_device_has_a_name_and_a_number_of_its_own)
{
    struct gpu_device_facts facts;
    begin();
    BACKEND->device_facts(1, &facts);
    CHECK_TEXT(facts.name, "Stub 1");
    CHECK_TEXT(facts.uuid, "GPU-10111213-1415-1617-1819-1a1b1c1d1e1f");
    BACKEND->device_facts(7, &facts);
    CHECK_TEXT(facts.name, "");
    CHECK_TEXT(facts.uuid, "");
    cuda->is_mig = 1;
    BACKEND->device_facts(1, &facts);
    CHECK_TEXT(facts.uuid, "MIG-ff111213-1415-1617-1819-1a1b1c1d1e1f");
}

/* Arming */

static void refused_with(const char *why)
{
    CHECK_EQUAL(BACKEND->arm(reason, sizeof reason), GPU_ARM_REFUSED);
    CHECK(says(why));
    CHECK_EQUAL(cupti->registrations, 0);
}

/* Settings, and the reason for a refusal; NULL: it arms. */
static const struct {
    const char *why, *variable, *value, *library, *holder;
    uint32_t version;
    int driver, version_result;
} SETS[] = {
    {"NSYS_PROFILING_SESSION_ID", .variable = "NSYS_PROFILING_SESSION_ID", .value = "1"},
    {"NV_NSIGHT_INJECTION_PORT_BASE", .variable = "NV_NSIGHT_INJECTION_PORT_BASE", .value = "1"},
    {"NVPROF_ID", .variable = "NVPROF_ID", .value = "1"},
    {"/opt/libtool.so", .variable = "CUDA_INJECTION64_PATH", .value = "/opt/libtool.so"},
    {NULL, .variable = "CUDA_INJECTION64_PATH", .value = "/opt/commprof/lib/libcommprof.so"},
    {NULL, .variable = "CUDA_INJECTION64_PATH", .value = "none"},
    {"CUPTI for Score-P", .holder = "CUPTI for Score-P"},
    {"Update 1", .version = 130000},
    {"newer than the driver", .driver = 12080},
    {"999", .version_result = 999}, /* like that of CUDA 13.5 without a driver */
    {"COMMPROF_CUPTI=off", .library = "off"},
    {"/nowhere/libcupti.so.13", .library = "/nowhere/libcupti.so.13"},
    {"has no cuptiGetVersion", .library = UNIT_BUILD "/libcuda.so.1"},
    {NULL, .library = UNIT_BUILD "/libcupti.so.13"},
};
static size_t row;

static void arm_with_the_row(void)
{
    begin();
    if (SETS[row].variable)
        setenv(SETS[row].variable, SETS[row].value, 1);
    if (SETS[row].library)
        snprintf(settings.cupti, sizeof settings.cupti, "%s", SETS[row].library);
    if (SETS[row].holder)
        cupti->subscriber = SETS[row].holder;
    cupti->version = SETS[row].version ? SETS[row].version : cupti->version;
    cuda->version = SETS[row].driver ? SETS[row].driver : cuda->version;
    cupti->version_result = SETS[row].version_result;
    if (SETS[row].why)
        refused_with(SETS[row].why);
    else
        CHECK_EQUAL(BACKEND->arm(reason, sizeof reason), GPU_ARMED);
    CHECK_EQUAL(cupti->subscriptions, 0);
    unlink("ledger");
}

TEST(what_forbids_tracing_is_said_and_nothing_is_registered)
{
    for (row = 0; row < sizeof SETS / sizeof *SETS; row++)
        unit_elsewhere(arm_with_the_row);
}

TEST(a_holder_whose_calls_we_see_can_be_yielded_to)
{
    void *subscriber;
    begin();
    CHECK_EQUAL(cuptiSubscribe(&subscriber, NULL, NULL), CUPTI_SUCCESS);
    CHECK_EQUAL(cupti->subscriptions, 1);
    cupti->subscriber = "CUPTI for PyTorch";
    CHECK_EQUAL(BACKEND->arm(reason, sizeof reason), GPU_ARMED);
}

TEST(versions_with_known_faults_are_not_used)
{
    CHECK(cupti_version_trap(7) != NULL);
    CHECK(cupti_version_trap(130000) != NULL);
    static const uint32_t USED[] = {8, 13, 28, 130001, 130200, 130500, 140000};
    for (unsigned i = 0; i < sizeof USED / sizeof *USED; i++)
        CHECK(cupti_version_trap(USED[i]) == NULL);
}

TEST(versions_belong_to_cudas)
{
    CHECK_EQUAL(cupti_cuda_major(12), 10);
    CHECK_EQUAL(cupti_cuda_major(13), 11);
    CHECK_EQUAL(cupti_cuda_major(18), 11);
    CHECK_EQUAL(cupti_cuda_major(19), 12);
    CHECK_EQUAL(cupti_cuda_major(28), 12);
    CHECK_EQUAL(cupti_cuda_major(130001), 13);
}

/* Its first call crashes if it cannot initialize; observed only without a driver. */
static void begin_beside_13_2(int driver)
{
    begin();
    cuda->version = driver;
    cupti = stub("libcupti-13.2.so", "stub_cupti");
    cupti->version = 130202;
    snprintf(settings.cupti, sizeof settings.cupti, "%s", UNIT_BUILD "/libcupti-13.2.so");
}

TEST(cupti_13_2_is_called_beside_an_older_driver_only_if_the_user_says_so)
{
    begin_beside_13_2(13000);
    refused_with("COMMPROF_CUPTI_ANY_MINOR=1");
    CHECK_EQUAL(cupti->versions_asked_for, 0);
    settings.cupti_any_minor = true;
    CHECK_EQUAL(BACKEND->arm(reason, sizeof reason), GPU_ARMED);
}

TEST(no_setting_lets_a_cupti_of_a_newer_major_version_be_used)
{
    begin_beside_13_2(12080);
    settings.cupti_any_minor = true;
    refused_with("newer than the driver");
    CHECK_EQUAL(cupti->versions_asked_for, 0);
}

/* Tracing */

TEST(four_kinds_are_traced_and_no_more)
{
    begin_tracing();
    CHECK_EQUAL(cupti->enabled, OUR_KINDS);
    CHECK_EQUAL(cupti->registrations, 1);
    BACKEND->pause();
    CHECK_EQUAL(cupti->enabled, 0);
    CHECK(BACKEND->resume(reason, sizeof reason));
    CHECK_EQUAL(cupti->enabled, OUR_KINDS);
    CHECK_EQUAL(cupti->registrations, 1); /* ours are there still */
}

TEST(what_cannot_be_traced_leaves_nothing_enabled)
{
    begin_armed();
    cupti->next_kind_refused = CUPTI_MEMCPY2;
    CHECK(!BACKEND->resume(reason, sizeof reason));
    CHECK(says("to trace copies") && says("(14)"));
    CHECK_EQUAL(cupti->enabled, 0);
    cupti->enable_result = 35;
    CHECK(!BACKEND->resume(reason, sizeof reason));
    CHECK(says("to trace kernels") && says("(35)"));
}

TEST(records_become_events_on_our_clock)
{
    begin_tracing();
    int64_t before_ns = clock_monotonic_ns();
    run_kernel(0, 1000000);
    int64_t after_ns = clock_monotonic_ns();
    run_copy(4096);
    struct gpu_collected collected = collect(false);
    CHECK_EQUAL(collected.records, 2);
    CHECK_EQUAL(collected.implausible + collected.dropped, 0);
    CHECK(!collected.is_foreign);
    CHECK(collected.clock_error_ns < 1000000);
    CHECK_EQUAL(event_count, 2);
    CHECK_TEXT(names[0], "_Z6kernelv");
    int64_t duration_ns = events[0].end_ns - events[0].start_ns;
    CHECK(duration_ns > 990000 &&
          duration_ns < 1010000); /* both clocks are read one after the other */
    CHECK(events[0].end_ns > before_ns - 1000000 && events[0].end_ns < after_ns + 1000000);
    CHECK_EQUAL(events[1].flags, LEDGER_ACTIVITY_PAGEABLE);
    CHECK_EQUAL(events[1].bytes, 4096);
    CHECK_EQUAL(collect(false).records, 0);
}

/* Without it (qemu-user, some sandboxes) names are read unchecked. */
static bool memory_can_be_asked_for(void)
{
    char from = 'x', to = 0;
    struct iovec ours = {&to, 1}, theirs = {&from, 1};
    return process_vm_readv(getpid(), &ours, 1, &theirs, 1, 0) == 1;
}

TEST(a_name_that_cannot_be_read_is_none)
{
    if (!memory_can_be_asked_for())
        unit_skip("process_vm_readv is not to be had");
    begin_tracing();
    collect_named((const char *)16); /* a module that was unloaded */
    CHECK(events[0].name == NULL);
}

TEST(the_same_address_may_be_another_name_later)
{
    char name[] = "first";
    begin_tracing();
    collect_named(name);
    CHECK_TEXT(names[0], "first");
    strcpy(name, "other");
    collect_named(name);
    CHECK_TEXT(names[0], "other");
}

static void implausible_with(uint64_t start, uint64_t end)
{
    uint64_t memory[STUB_KERNEL_BYTES / 8];
    struct cupti_kernel *kernel = kernel_in((uint8_t *)memory);
    kernel->start = start;
    kernel->end = end;
    cupti->write(memory, sizeof memory);
    struct gpu_collected collected = collect(false);
    CHECK_EQUAL(collected.records, 0);
    CHECK_EQUAL(collected.implausible, 1);
    CHECK_EQUAL(event_count, 0);
}

TEST(times_that_cannot_be_are_counted_and_left_out)
{
    begin_tracing();
    uint64_t now = (uint64_t)unix_now();
    implausible_with(0, 0);
    implausible_with(now, 0); /* it has not ended */
    implausible_with(0, now);
    implausible_with(now, now - 1);
    implausible_with(now - UINT64_C(700000000000), now);
    implausible_with(now - UINT64_C(60000000000),
                     now - UINT64_C(59000000000)); /* before tracing began */
    implausible_with(now + UINT64_C(59000000000), now + UINT64_C(60000000000));
    implausible_with(12345, 67890); /* on another clock */
}

/* Up to when all records have arrived */

TEST(where_kernels_take_longer_it_is_waited_for_longer)
{
    begin_tracing();
    run_kernel(0, 900000000);
    CHECK(collect(false).complete_until_ns <= clock_monotonic_ns() - 900000000);
}

/* At 3 kernels a second a buffer takes 101 s to fill; on a device that never idles it does not come
 * back before. */
TEST(what_lies_in_a_buffer_that_is_not_back_is_waited_for_however_long_it_takes)
{
    begin_tracing();
    cupti->is_unfinished = 1;
    int64_t before_ns = clock_monotonic_ns();
    run_kernel(0, 1000);
    int64_t after_ns = clock_monotonic_ns();
    skip(100000000000);
    int64_t until_ns = collect(false).complete_until_ns;
    CHECK(until_ns <= after_ns && until_ns >= before_ns - 1000000);
    CHECK_EQUAL(event_count, 0);
    CHECK_EQUAL(collect(false).complete_until_ns, until_ns);
    CHECK(BACKEND->uncollected_since_ns() >= before_ns &&
          BACKEND->uncollected_since_ns() <= after_ns);
    cupti->is_unfinished = 0;
    CHECK(collect(false).complete_until_ns > after_ns);
    CHECK_EQUAL(event_count, 1);
}

/* Other clients */

static unsigned their_requests, their_completions;
static uint64_t their_memory[1024];

static void their_request(uint8_t **buffer, size_t *bytes, size_t *most_records)
{
    *buffer = (uint8_t *)their_memory;
    *bytes = sizeof their_memory;
    *most_records = 0;
    their_requests++;
}

static void their_complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
                           size_t valid_bytes)
{
    (void)context, (void)stream, (void)buffer, (void)bytes, (void)valid_bytes;
    their_completions++;
}

TEST(another_client_gets_its_callbacks_and_ours_come_back_after_it)
{
    begin_tracing();
    BACKEND->pause(); /* as gpu_yield does */
    CHECK_EQUAL(cuptiActivityRegisterCallbacks(their_request, their_complete), CUPTI_SUCCESS);
    CHECK(cupti->request == their_request);
    CHECK_EQUAL(cuptiActivityEnable(CUPTI_CONCURRENT_KERNEL), CUPTI_SUCCESS);
    run_kernel(0, 1000);
    CHECK_EQUAL(their_requests, 1);
    CHECK_EQUAL(cuptiActivityDisable(CUPTI_CONCURRENT_KERNEL), CUPTI_SUCCESS);
    CHECK(BACKEND->resume(reason, sizeof reason));
    CHECK(cupti->request != their_request);
    CHECK_EQUAL(collect(false).records, 0); /* that buffer is the other client's, which gets it */
    CHECK_EQUAL(their_completions, 1);
    run_kernel(0, 1000);
    CHECK_EQUAL(collect(false).records, 1);
}

TEST(a_client_that_only_enables_kinds_again_finds_its_callbacks_there)
{
    begin_armed();
    cuptiActivityRegisterCallbacks(their_request, their_complete);
    CHECK(BACKEND->resume(reason, sizeof reason));
    BACKEND->pause();
    CHECK(cupti->request != their_request);
    CHECK_EQUAL(cuptiActivityEnable(CUPTI_MEMCPY), CUPTI_SUCCESS);
    CHECK(cupti->request == their_request && cupti->complete == their_complete);
}

TEST(a_client_that_detaches_cupti_detaches_us_and_we_come_back)
{
    begin_tracing();
    BACKEND->pause();
    CHECK_EQUAL(cuptiActivityRegisterCallbacks(their_request, their_complete), CUPTI_SUCCESS);
    CHECK_EQUAL(cuptiActivityEnable(CUPTI_CONCURRENT_KERNEL), CUPTI_SUCCESS);
    CHECK_EQUAL(cuptiActivityDisable(CUPTI_CONCURRENT_KERNEL), CUPTI_SUCCESS);
    CHECK(BACKEND->resume(reason, sizeof reason));
    BACKEND->pause();
    CHECK_EQUAL(cuptiFinalize(), CUPTI_SUCCESS);
    CHECK(BACKEND->resume(reason, sizeof reason));
    run_kernel(0, 1000);
    CHECK_EQUAL(collect(false).records, 1);
}

static uint64_t their_clock(void)
{
    return (uint64_t)clock_monotonic_ns() * 2 + 12345;
}

TEST(the_clock_that_another_client_has_left_is_understood)
{
    begin_armed();
    CHECK_EQUAL(cuptiActivityRegisterTimestampCallback(their_clock), CUPTI_SUCCESS);
    CHECK(cupti->clock == their_clock);
    CHECK(BACKEND->resume(reason, sizeof reason));
    int64_t began_ns = clock_monotonic_ns();
    while (clock_monotonic_ns() < began_ns + 20000000) {
    }
    uint64_t memory[STUB_KERNEL_BYTES / 8];
    struct cupti_kernel *kernel = kernel_in((uint8_t *)memory);
    int64_t before_ns = clock_monotonic_ns();
    kernel->end = their_clock();
    int64_t after_ns = clock_monotonic_ns();
    kernel->start = kernel->end - 2 * 1000000;
    cupti->write(memory, sizeof memory);
    CHECK_EQUAL(collect(false).records, 1);
    CHECK(events[0].end_ns > before_ns - 1000000 && events[0].end_ns < after_ns + 1000000);
    int64_t duration_ns = events[0].end_ns - events[0].start_ns;
    CHECK(duration_ns > 900000 && duration_ns < 1100000);
}

TEST(a_client_that_is_not_seen_is_noticed_when_no_buffer_comes_back)
{
    begin_tracing();
    run_kernel(0, 1000);
    cupti->complete = their_complete; /* by a function that is not intercepted: their callback has
                                         our buffer now */
    BACKEND->pause();
    CHECK(collect(true).is_foreign);
    CHECK_EQUAL(their_completions, 1);
    CHECK(!collect(false).is_foreign);
    CHECK(BACKEND->resume(reason, sizeof reason));
    CHECK_EQUAL(cupti->registrations, 2); /* their session is over: we must get the records again */
    run_kernel(0, 1000);
    CHECK_EQUAL(collect(false).records, 1);
}

TEST(a_client_that_was_not_seen_and_is_still_there_is_left_alone)
{
    begin_tracing();
    run_kernel(0, 1000);
    cupti->complete = their_complete;
    cupti->subscriber = "CUPTI for XLA";
    BACKEND->pause();
    CHECK(collect(true).is_foreign);
    CHECK(!BACKEND->resume(reason, sizeof reason));
    CHECK(says("CUPTI for XLA"));
    CHECK_EQUAL(cupti->registrations, 1);
    CHECK_EQUAL(cupti->enabled, 0);
}

TEST(who_takes_our_buffers_twice_may_keep_the_interface)
{
    begin_tracing();
    for (unsigned i = 0; i < 2; i++) {
        CHECK(BACKEND->resume(reason, sizeof reason));
        run_kernel(0, 1000);
        cupti->complete = their_complete;
        CHECK(collect(true).is_foreign);
    }
    CHECK(!BACKEND->resume(reason, sizeof reason));
    CHECK(says("another client"));
}

/* Device memory */

enum { LIMIT = 2 };

TEST(cupti_takes_a_bounded_part_of_the_device_s_memory_while_we_trace)
{
    begin_armed();
    CHECK_EQUAL(cupti->attributes[LIMIT], 250);
    CHECK(BACKEND->resume(reason, sizeof reason));
    CHECK_EQUAL(cupti->attributes[LIMIT], 32);
    BACKEND->pause();
    CHECK_EQUAL(cupti->attributes[LIMIT], 250); /* as other clients have set it */
    CHECK(BACKEND->resume(reason, sizeof reason));
    CHECK_EQUAL(cupti->attributes[LIMIT], 32);
}

/* Unknown versions */

TEST(records_of_a_newer_cupti_are_examined_first)
{
    begin();
    cupti->version = 130900;
    CHECK_EQUAL(BACKEND->arm(reason, sizeof reason), GPU_ARMED);
    CHECK(BACKEND->resume(reason, sizeof reason));
    for (unsigned i = 0; i < 10; i++)
        run_kernel(0, 1000);
    CHECK_EQUAL(collect(false).records, 10);
}

TEST(a_layout_that_has_changed_is_not_read)
{
    uint64_t memory[STUB_KERNEL_BYTES / 8];
    begin();
    cupti->version = 130900;
    CHECK_EQUAL(BACKEND->arm(reason, sizeof reason), GPU_ARMED);
    CHECK(BACKEND->resume(reason, sizeof reason));
    for (unsigned i = 0; i < 10; i++) {
        struct cupti_kernel *kernel = kernel_in((uint8_t *)memory);
        kernel->end = (uint64_t)unix_now(); /* its begin is now one field further */
        kernel->completed = kernel->end + 1000;
        kernel->device = 1000000;
        cupti->write(memory, sizeof memory);
    }
    struct gpu_collected collected = collect(false);
    CHECK_EQUAL(collected.records, 0);
    CHECK(collected.is_foreign); /* no records will arrive */
    CHECK(!BACKEND->resume(reason, sizeof reason));
    CHECK(says("130900"));
}

/* Streams */

static void check_stream(uintptr_t handle, uint32_t number)
{
    struct gpu_stream stream;
    CHECK(BACKEND->find_stream((void *)handle, &stream));
    CHECK_EQUAL(stream.number, number);
    CHECK_EQUAL(stream.context, 3);
}

TEST(streams_have_the_numbers_that_their_records_have)
{
    begin_armed();
    cuda->context = &cuda;
    check_stream(100, 107);
    check_stream(0, 7);
    check_stream(1, 7); /* the legacy default stream by its handle */
    check_stream(2, 9); /* the calling thread's default stream */
    cuda->context = NULL;
    CHECK(!BACKEND->find_stream((void *)100, &(struct gpu_stream){0, 0}));
}

TEST(cupti_is_asked_once_for_a_stream_and_again_when_its_handle_is_given_to_another)
{
    begin_armed();
    cuda->context = &cuda;
    cuda->stream_id = 41;
    check_stream(100, 107);
    check_stream(100, 107);
    CHECK_EQUAL(cupti->streams_asked_for, 1);
    cuda->stream_id = 49;
    check_stream(100, 107);
    CHECK_EQUAL(cupti->streams_asked_for, 2);
}

/* Dumps */

TEST(what_was_dumped_gives_the_same_events_again)
{
    char path[512];
    begin_armed();
    snprintf(settings.gpu_dump, sizeof settings.gpu_dump, ".");
    snprintf(path, sizeof path, "cupti-%s-%d.dump", host_name(), (int)getpid());
    CHECK(BACKEND->resume(reason, sizeof reason));
    run_kernel(0, 1000);
    run_copy(4096);
    collect(false);
    run_kernel(0, 5000);
    collect(true);
    event_count = 0;
    CHECK_EQUAL(replay(path, take), 130001);
    CHECK_EQUAL(event_count, 3);
    CHECK_TEXT(names[0], "_Z6kernelv");
    // begin and end are rounded when they go from the GPU's clock to the host's
    CHECK(llabs(events[0].end_ns - events[0].start_ns - 1000) <= 1);
    CHECK_EQUAL(events[1].bytes, 4096);
    CHECK(llabs(events[2].end_ns - events[2].start_ns - 5000) <= 1);
}

TEST(a_version_that_is_slowed_down_by_many_calls_is_flushed_seldom)
{
    begin();
    cupti->version = 130200;
    CHECK_EQUAL(BACKEND->arm(reason, sizeof reason), GPU_ARMED);
    CHECK(BACKEND->resume(reason, sizeof reason));
    collect(false);
    collect(false);
    CHECK_EQUAL(cupti->flushes, 1);
    collect(true);
    CHECK_EQUAL(cupti->flushes, 2);
}
