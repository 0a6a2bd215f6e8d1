/* Turns the ranges that a program marks with NVTX (push and pop) into regions. NVTX is header-only.
 * At the program's first NVTX call it opens the library that NVTX_INJECTION64_PATH names, which
 * commprof-run sets to this one, and calls InitializeInjectionNvtx2. That may happen before
 * MPI_Init, or in a program without MPI: then strings are registered and nothing is recorded.
 *
 * Numbers in range names become #: "step 12" is "step #". Programs often number their ranges, and
 * one region per number would fill the ledger. */
#include "base/memory.h"
#include "base/quiet.h"
#include "base/settings.h"
#include "nvtx_abi.h"
#include "regions.h"

static const char DEFAULT_DOMAIN[] = "NVTX";

/* Registered strings and domain names. Their address here is the handle that NVTX uses. They are
 * never freed, as in other tools. */
struct known {
    struct known *next;
    char text[];
};

static struct known *known_texts[256];
static pthread_mutex_t registering = PTHREAD_MUTEX_INITIALIZER;

static unsigned place_of(const char *text)
{
    unsigned hash = 2166136261u;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    return (hash ^ hash >> 16) % (sizeof known_texts / sizeof *known_texts);
}

static struct known *add(struct known **place, const char *text)
{
    struct known *fresh = memory_take(sizeof *fresh + strlen(text) + 1);
    if (!fresh)
        return NULL;
    strcpy(fresh->text, text);
    fresh->next = *place;
    return *place = fresh;
}

/* Returns the same address for equal texts. NULL when out of memory; NVTX takes that as "not
 * tracked". */
static const void *known(const char *text)
{
    struct known **place = &known_texts[place_of(text)];
    struct quiet before = quiet_lock(&registering);
    struct known *found = *place;
    while (found && strcmp(found->text, text) != 0)
        found = found->next;
    if (!found)
        found = add(place, text);
    quiet_unlock(&registering, &before);
    return found;
}

/* Room for the longest region name and one byte more, so that a longer name is recognised as too
 * long. */
struct name {
    char text[REGION_NAME_BYTES + 1];
    size_t bytes;
};

static void put(struct name *name, uint32_t byte)
{
    if (name->bytes < sizeof name->text - 1)
        name->text[name->bytes++] = (char)byte;
}

static void put_utf8(struct name *name, uint32_t character)
{
    if (character < 0x80)
        put(name, character);
    else if (character < 0x800) {
        put(name, 0xc0 | character >> 6);
        put(name, 0x80 | (character & 0x3f));
    } else if (character < 0x10000) {
        put(name, 0xe0 | character >> 12);
        put(name, 0x80 | (character >> 6 & 0x3f));
        put(name, 0x80 | (character & 0x3f));
    } else {
        put(name, 0xf0 | (character >> 18 & 0x07));
        put(name, 0x80 | (character >> 12 & 0x3f));
        put(name, 0x80 | (character >> 6 & 0x3f));
        put(name, 0x80 | (character & 0x3f));
    }
}

static struct name from_wide(const wchar_t *text)
{
    struct name name = {.bytes = 0};
    for (; text && *text && name.bytes < REGION_NAME_BYTES; text++)
        put_utf8(&name, (uint32_t)*text);
    return name;
}

static bool is_digit(char character)
{
    return character >= '0' && character <= '9';
}

static struct name without_numbers(const char *text)
{
    struct name name = {.bytes = 0};
    for (size_t i = 0; text[i] && name.bytes < REGION_NAME_BYTES; i++)
        if (!is_digit(text[i]))
            put(&name, (unsigned char)text[i]);
        else if (i == 0 || !is_digit(text[i - 1]))
            put(&name, '#');
    return name;
}

/* The settings are read when MPI is initialized, and nothing is recorded before. */
static struct thread *thread_of(void *frame)
{
    return settings.nvtx ? regions_thread(frame) : NULL;
}

static int push(void *frame, const void *domain, const char *text)
{
    struct thread *thread = thread_of(frame);
    if (!thread)
        return NVTX_NOT_TRACKED;
    struct name name = without_numbers(text ? text : "");
    int level = regions_begin(thread, name.text, domain);
    thread_return(thread);
    return level;
}

/* The message of an event; NULL if it has none. `wide` is a buffer for converted wide strings. */
static const char *message_of(const struct nvtx_event *event, struct name *wide)
{
    if (!event)
        return NULL;
    if (event->message_type == NVTX_MESSAGE_ASCII)
        return event->message.ascii;
    if (event->message_type == NVTX_MESSAGE_REGISTERED && event->message.registered)
        return ((const struct known *)event->message.registered)->text;
    if (event->message_type != NVTX_MESSAGE_UNICODE)
        return NULL;
    *wide = from_wide(event->message.unicode);
    return wide->text;
}

static int push_event(void *frame, const void *domain, const struct nvtx_event *event)
{
    struct name wide;
    return push(frame, domain, message_of(event, &wide));
}

static int pop(void *frame, const void *domain)
{
    struct thread *thread = thread_of(frame);
    if (!thread)
        return NVTX_NOT_TRACKED;
    int level = regions_end(thread, domain);
    thread_return(thread);
    return level < 0 ? NVTX_NOT_TRACKED : level;
}

static int range_push_a(const char *text)
{
    return push(__builtin_frame_address(0), DEFAULT_DOMAIN, text);
}

static int range_push_w(const wchar_t *text)
{
    struct name name = from_wide(text);
    return push(__builtin_frame_address(0), DEFAULT_DOMAIN, name.text);
}

static int range_push_ex(const struct nvtx_event *event)
{
    return push_event(__builtin_frame_address(0), DEFAULT_DOMAIN, event);
}

static int range_pop(void)
{
    return pop(__builtin_frame_address(0), DEFAULT_DOMAIN);
}

static int domain_range_push_ex(const void *domain, const struct nvtx_event *event)
{
    return push_event(__builtin_frame_address(0), domain ? domain : DEFAULT_DOMAIN, event);
}

static int domain_range_pop(const void *domain)
{
    return pop(__builtin_frame_address(0), domain ? domain : DEFAULT_DOMAIN);
}

static const void *domain_register_string_a(const void *domain, const char *text)
{
    (void)domain;
    return text ? known(text) : NULL;
}

static const void *domain_register_string_w(const void *domain, const wchar_t *text)
{
    struct name name = from_wide(text);
    return domain_register_string_a(domain, name.text);
}

static const void *domain_create_a(const char *name)
{
    return name ? known(name) : NULL;
}

static const void *domain_create_w(const wchar_t *text)
{
    struct name name = from_wide(text);
    return domain_create_a(name.text);
}

static const struct callback {
    int module;
    unsigned number;
    nvtx_function function;
} CALLBACKS[] = {
    {NVTX_MODULE_CORE, NVTX_CORE_RANGE_PUSH_A, (nvtx_function)range_push_a},
    {NVTX_MODULE_CORE, NVTX_CORE_RANGE_PUSH_W, (nvtx_function)range_push_w},
    {NVTX_MODULE_CORE, NVTX_CORE_RANGE_PUSH_EX, (nvtx_function)range_push_ex},
    {NVTX_MODULE_CORE, NVTX_CORE_RANGE_POP, (nvtx_function)range_pop},
    {NVTX_MODULE_CORE2, NVTX_CORE2_DOMAIN_RANGE_PUSH_EX, (nvtx_function)domain_range_push_ex},
    {NVTX_MODULE_CORE2, NVTX_CORE2_DOMAIN_RANGE_POP, (nvtx_function)domain_range_pop},
    {NVTX_MODULE_CORE2, NVTX_CORE2_DOMAIN_REGISTER_STRING_A,
     (nvtx_function)domain_register_string_a},
    {NVTX_MODULE_CORE2, NVTX_CORE2_DOMAIN_REGISTER_STRING_W,
     (nvtx_function)domain_register_string_w},
    {NVTX_MODULE_CORE2, NVTX_CORE2_DOMAIN_CREATE_A, (nvtx_function)domain_create_a},
    {NVTX_MODULE_CORE2, NVTX_CORE2_DOMAIN_CREATE_W, (nvtx_function)domain_create_w},
};

static void attach(const struct nvtx_callbacks *callbacks, const struct callback *ours)
{
    nvtx_function **table = NULL;
    unsigned size = 0;
    if (callbacks->get_module_table(ours->module, &table, &size) == 1 && ours->number < size &&
        table[ours->number])
        *table[ours->number] = ours->function;
}

__attribute__((visibility("default"))) int
InitializeInjectionNvtx2(nvtx_get_export_table get_export_table);

/* Returns 0 for an unknown version of NVTX, which then runs without a tool. */
int InitializeInjectionNvtx2(nvtx_get_export_table get_export_table)
{
    const struct nvtx_callbacks *callbacks = get_export_table(NVTX_EXPORT_CALLBACKS);
    if (!callbacks || callbacks->struct_bytes < sizeof *callbacks)
        return 0;
    for (size_t i = 0; i < sizeof CALLBACKS / sizeof *CALLBACKS; i++)
        attach(callbacks, &CALLBACKS[i]);
    return 1;
}
