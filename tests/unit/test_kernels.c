#include "gpu/kernels.h"

#include "gpu/communication.h"
#include "ledger/ledger.h"
#include "unit.h"

static void begin_with(size_t ledger_bytes)
{
    CHECK_EQUAL(ledger_open("ledger", ledger_bytes), 0);
    kernels_begin();
}

static void begin(void)
{
    begin_with(64 << 20);
}

/* The name of a kernel in the ledger; NULL if it has none. */
static const struct ledger_kernel *entry_of(uint32_t number)
{
    for (uint32_t i = 0; i < the_ledger.header->chunk_count; i++) {
        const struct ledger_chunk *chunk = ledger_chunk_at(the_ledger.header, i);
        const char *at = (const char *)chunk + LEDGER_CHUNK_HEADER_BYTES, *end = at + chunk->used;
        while (chunk->kind == LEDGER_KERNELS && at < end) {
            const struct ledger_kernel *entry = (const struct ledger_kernel *)at;
            if (entry->kernel == number)
                return entry;
            at += (sizeof *entry + entry->name_bytes + 7) & ~7ull;
        }
    }
    return NULL;
}

static const char *name_of(uint32_t number)
{
    static char name[KERNELS_LONGEST_NAME + 1];
    const struct ledger_kernel *entry = entry_of(number);
    if (!entry)
        return NULL;
    memcpy(name, entry + 1, entry->name_bytes);
    name[entry->name_bytes] = '\0';
    return name;
}

TEST(kernels_beyond_the_most_are_others)
{
    begin();
    char name[64];
    for (int i = 0; i < KERNELS_MOST + 10; i++) {
        snprintf(name, sizeof name, "kernel_%d", i);
        CHECK_EQUAL(kernels_find(name).number, i < KERNELS_MOST ? i + 1 : LEDGER_KERNEL_OTHER);
    }
    CHECK(kernels_find("ncclDevKernel_SendRecv").is_communication);
    CHECK_EQUAL(kernels_find("ncclDevKernel_SendRecv").number, LEDGER_KERNEL_OTHER);
    CHECK_EQUAL(kernels_find("kernel_17").number, 18);
    CHECK_TEXT(name_of(KERNELS_MOST), "kernel_3999");
    CHECK_TEXT(name_of(LEDGER_KERNEL_OTHER), "other kernels");
}

/* The mangled names are written by hand from the libraries' sources. */
static const char *const COMMUNICATION[] = {
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
    "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LLP11ncclDevCommmP8ncclWork",
    "_Z22ncclDevKernel_SendRecv24ncclDevKernelArgsStorageILm4096EE",
    "_Z21ncclDevKernel_Generic24ncclDevKernelArgsStorageILm4096EE",
    "_Z39ncclKernel_AllReduce_RING_LL_Sum_int8_tP11ncclDevCommmP8ncclWork",
    "_Z33ncclAllReduceRingLLKernel_sum_f328ncclColl",
    "ncclSymDevKernel_AllGather_LL",
    "_Z43ncclSymkDevKernel_AllReduce_AGxLL_R_sum_f3221ncclSymkDevWorkArgs4K",
    "mscclKernel_Sum_half_Simple_false",
    "_Z25nvshmemi_signal_op_kernelPmmii",
    "_Z36barrier_on_stream_kernel_threadgroupIL13threadgroup_t1EEvii",
    "_Z25alltoall_on_stream_kernelIiEviPT_PKS0_m",
    "_Z31rdxn_float_sum_on_stream_kernelPfPKfiiiiS_Pl",
    "_ZN4vllm26cross_device_reduce_1stageIfLi2EEEvPNS_8RankDataENS_11RankSignalsEPNS_6SignalEPT_ii",
    "_ZN6sglang26cross_device_reduce_2stageI6__halfLi8EEEvv",
    "_ZN12_GLOBAL__N_126multimem_all_reduce_kernelIN3c108BFloat16ELi16EEEvPT_mPPjmm",
    ("_ZN56_GLOBAL__N__1b7cbd2f_26_CUDASymmetricMemoryOps_cu_abcdefL35multimem_one_shot_all_reduce_"
     "kernelIfLi16EEEvv"),
    "_ZN12_GLOBAL__N_134two_shot_all_reduce_kernel_inplaceIfLi16ELi8EEEvPPT_mmPPjmm",
    "one_shot_all_reduce_kernel_optimized",
    "_ZN4c10d17nvshmem_extension22exchangeSplitAndOffsetEv",
    "_ZN4c10d14nccl_extension12_GLOBAL__N_123lsa_all_to_all_nd_kernelILi16EEEvv",
    "_ZN7deep_ep9intranode8dispatchILi8ELi768ELi8192EEEvv",
    "_ZN7deep_ep12internode_ll7combineILb1ELi7168ELi9EEEvv",
    ("_ZN12tensorrt_llm7kernelsL22oneShotAllReduceKernelI6__halfLi8ELb1ELb0EEEvNS0_"
     "15AllReduceParamsE"),
    ("_ZN10flashinfer23trtllm_allreduce_fusion39allreduce_fusion_kernel_oneshot_lamportILNS0_"
     "22AllReduceFusionPatternE1EfLi2EEEvv"),
    "_Z38userbuffers_fp16_sum_inplace_gpu_rw_agILi8EEvv",
    "_Z21kuserbuffers_pushsendPiS_P4int4S1_i",
};

TEST(kernels_that_communicate_are_known_by_name)
{
    for (size_t i = 0; i < sizeof COMMUNICATION / sizeof *COMMUNICATION; i++) {
        unit_context = COMMUNICATION[i];
        CHECK(communication_has_kernel(COMMUNICATION[i]));
    }
}

TEST(names_take_a_bounded_part_of_the_ledger)
{
    begin();
    static char name[KERNELS_LONGEST_NAME + 1];
    memset(name, 'k', sizeof name - 1);
    for (int i = 0; i < KERNELS_MOST; i++) {
        memcpy(name, &i, 2);
        name[0] |= 0x40, name[1] |= 0x40;
        kernels_find(name);
    }
    name[0] = '!';
    CHECK_EQUAL(kernels_find(name).number, LEDGER_KERNEL_OTHER);
    CHECK_EQUAL(the_ledger.header->chunk_count, KERNELS_MOST_CHUNKS);
}
