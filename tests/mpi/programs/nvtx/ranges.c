/* Ranges by NVIDIA's own headers. With the argument `profiled`, checks their return values: nesting
 * levels, which a tool counts. */
#include <string.h>

#include <mpi.h>
#include <nvtx3/nvToolsExt.h>

#include "../check.h"

static int is_profiled;

static void barrier(void)
{
    MPI_Barrier(MPI_COMM_SELF);
}

static void check_level(int returned, int level)
{
    CHECK(!is_profiled || returned == level);
}

static nvtxEventAttributes_t event(nvtxMessageType_t type, nvtxMessageValue_t message)
{
    nvtxEventAttributes_t attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = type;
    attributes.message = message;
    return attributes;
}

static void in_range_of(nvtxEventAttributes_t attributes, int level)
{
    check_level(nvtxRangePushEx(&attributes), level);
    barrier();
    check_level(nvtxRangePop(), level);
}

int main(int argc, char **argv)
{
    is_profiled = argc > 1 && strcmp(argv[1], "profiled") == 0;
    nvtxRangePushA("early");
    nvtxRangePop();
    MPI_Init(&argc, &argv);
    nvtxDomainHandle_t domain = nvtxDomainCreateA("library");
    nvtxMessageValue_t message;
    barrier();
    check_level(nvtxRangePushA("epoch"), 0);
    message.ascii = "forward";
    in_range_of(event(NVTX_MESSAGE_TYPE_ASCII, message), 1);
    in_range_of(event(NVTX_MESSAGE_TYPE_ASCII, message), 1);
    message.unicode = L"wide";
    in_range_of(event(NVTX_MESSAGE_TYPE_UNICODE, message), 1);
    message.registered = nvtxDomainRegisterStringA(NULL, "registered");
    in_range_of(event(NVTX_MESSAGE_TYPE_REGISTERED, message), 1);
    for (int i = 0; i < 2; i++) {
        char name[16];
        snprintf(name, sizeof name, "step %d", i);
        nvtxRangePushA(name);
        barrier();
        nvtxRangePop();
    }
    barrier();
    check_level(nvtxRangePop(), 0);
    message.ascii = "kernel";
    nvtxEventAttributes_t kernel = event(NVTX_MESSAGE_TYPE_ASCII, message);
    check_level(nvtxDomainRangePushEx(domain, &kernel), 0);
    barrier();
    check_level(nvtxRangePop(), NVTX_NO_PUSH_POP_TRACKING);
    check_level(nvtxDomainRangePop(domain), 0);
    barrier();
    nvtxMarkA("mark");
    nvtxRangeEnd(nvtxRangeStartA("from one thread to another"));
    MPI_Finalize();
    nvtxRangePushA("late");
    nvtxRangePop();
    return 0;
}
