#include "record/nvtx_abi.h"
#include "record/recording.h"

#include "base/settings.h"
#include "fake_mpi.h"
#include "record/regions.h"
#include "ledger_reader.h"
#include "unit.h"

int InitializeInjectionNvtx2(nvtx_get_export_table get_export_table);

/* A program's copy of NVTX: a pointer for each function, null until a tool sets it. */
enum { CORE_SIZE = 16, CORE2_SIZE = 16 };
static nvtx_function core[CORE_SIZE], core2[CORE2_SIZE];
static nvtx_function *core_table[CORE_SIZE], *core2_table[CORE2_SIZE];

static int get_module_table(int module, nvtx_function ***table, unsigned *size)
{
    *table = module == NVTX_MODULE_CORE ? core_table : core2_table;
    *size = module == NVTX_MODULE_CORE ? CORE_SIZE : CORE2_SIZE;
    return module == NVTX_MODULE_CORE || module == NVTX_MODULE_CORE2;
}

static struct nvtx_callbacks callbacks = {sizeof callbacks, get_module_table};

static const void *get_export_table(uint32_t id)
{
    return id == NVTX_EXPORT_CALLBACKS ? &callbacks : NULL;
}

static void attach(void)
{
    for (unsigned i = 1; i < CORE_SIZE; i++) {
        core_table[i] = &core[i];
        core2_table[i] = &core2[i];
    }
    CHECK_EQUAL(InitializeInjectionNvtx2(get_export_table), 1);
}

static int push(const char *text)
{
    return ((int (*)(const char *))core[NVTX_CORE_RANGE_PUSH_A])(text);
}

static int push_wide(const wchar_t *text)
{
    return ((int (*)(const wchar_t *))core[NVTX_CORE_RANGE_PUSH_W])(text);
}

static int push_event(const struct nvtx_event *event)
{
    return ((int (*)(const struct nvtx_event *))core[NVTX_CORE_RANGE_PUSH_EX])(event);
}

static int pop(void)
{
    return ((int (*)(void))core[NVTX_CORE_RANGE_POP])();
}

static const void *domain_create(const char *name)
{
    return ((const void *(*)(const char *))core2[NVTX_CORE2_DOMAIN_CREATE_A])(name);
}

static const void *register_text(const void *domain, const char *text)
{
    return (
        (const void *(*)(const void *, const char *))core2[NVTX_CORE2_DOMAIN_REGISTER_STRING_A])(
        domain, text);
}

static int domain_push(const void *domain, const struct nvtx_event *event)
{
    return (
        (int (*)(const void *, const struct nvtx_event *))core2[NVTX_CORE2_DOMAIN_RANGE_PUSH_EX])(
        domain, event);
}

static int domain_pop(const void *domain)
{
    return ((int (*)(const void *))core2[NVTX_CORE2_DOMAIN_RANGE_POP])(domain);
}

static void begin(void)
{
    attach();
    settings_read(NULL);
    fake_mpi_speak("open_mpi");
    clock_begin(CLOCK_AUTO);
    clock_calibrate();
    CHECK_EQUAL(ledger_open("ledger", 4 << 20), 0);
    fake_world(8, 3);
    recording_begin();
}

static const char *here(void)
{
    uint32_t region = (uint32_t)(this_thread->region >> CELL_KEY_REGION_BIT);
    const struct ledger_region *entry =
        region ? reader_nth(the_ledger.header, LEDGER_REGIONS, region - 1) : NULL;
    return entry ? entry->name : "";
}

TEST(all_forms_of_a_message_are_names)
{
    static const wchar_t SNOWMAN[] = {'s', 0xe9, 0x2603, 0x1f40d, 0};
    begin();
    push_wide(SNOWMAN);
    CHECK_TEXT(here(), "s\xc3\xa9\xe2\x98\x83\xf0\x9f\x90\x8d");
    pop();
    push_event(
        &(struct nvtx_event){.message_type = NVTX_MESSAGE_UNICODE, .message.unicode = L"wide"});
    CHECK_TEXT(here(), "wide");
    pop();
    push_event(&(struct nvtx_event){.message_type = NVTX_MESSAGE_ASCII, .message.ascii = "plain"});
    CHECK_TEXT(here(), "plain");
    pop();
    const void *registered = register_text(NULL, "registered");
    CHECK(registered == register_text(NULL, "registered"));
    CHECK(registered != register_text(NULL, "another"));
    push_event(&(struct nvtx_event){.message_type = NVTX_MESSAGE_REGISTERED,
                                    .message.registered = registered});
    CHECK_TEXT(here(), "registered");
    pop();
}

TEST(each_domain_has_levels_of_its_own)
{
    begin();
    const void *domain = domain_create("library");
    CHECK(domain != NULL && domain == domain_create("library"));
    push("forward");
    CHECK_EQUAL(domain_push(domain, &(struct nvtx_event){.message_type = NVTX_MESSAGE_ASCII,
                                                         .message.ascii = "kernel"}),
                0);
    CHECK_TEXT(here(), "forward/kernel");
    CHECK_EQUAL(pop(), 0);
    CHECK_TEXT(here(), "forward/kernel");
    CHECK_EQUAL(domain_pop(domain), 0);
    CHECK_TEXT(here(), "");
    push("forward");
    CHECK_EQUAL(domain_pop(NULL), 0); /* the default one */
}
