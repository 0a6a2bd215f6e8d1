"""src/record/nvtx_abi.h against NVIDIA's own headers, where setup/nvtx.sh has fetched them or CUDA
has brought them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PLACES = (REPOSITORY / "build/nvtx/nvidia/nvtx/include", Path("/usr/local/cuda/include"))

SAME = """
#include <nvtx3/nvToolsExt.h>
#include "record/nvtx_abi.h"
#define SAME(OURS, THEIRS) _Static_assert((long)(OURS) == (long)(THEIRS), #OURS)
#define SAME_PLACE(FIELD, THEIRS) \
    SAME(offsetof(struct nvtx_event, FIELD), offsetof(nvtxEventAttributes_t, THEIRS))
SAME(NVTX_EXPORT_CALLBACKS, NVTX_ETID_CALLBACKS);
SAME(NVTX_MODULE_CORE, NVTX_CB_MODULE_CORE);
SAME(NVTX_MODULE_CORE2, NVTX_CB_MODULE_CORE2);
SAME(NVTX_CORE_RANGE_PUSH_EX, NVTX_CBID_CORE_RangePushEx);
SAME(NVTX_CORE_RANGE_PUSH_A, NVTX_CBID_CORE_RangePushA);
SAME(NVTX_CORE_RANGE_PUSH_W, NVTX_CBID_CORE_RangePushW);
SAME(NVTX_CORE_RANGE_POP, NVTX_CBID_CORE_RangePop);
SAME(NVTX_CORE2_DOMAIN_RANGE_PUSH_EX, NVTX_CBID_CORE2_DomainRangePushEx);
SAME(NVTX_CORE2_DOMAIN_RANGE_POP, NVTX_CBID_CORE2_DomainRangePop);
SAME(NVTX_CORE2_DOMAIN_REGISTER_STRING_A, NVTX_CBID_CORE2_DomainRegisterStringA);
SAME(NVTX_CORE2_DOMAIN_REGISTER_STRING_W, NVTX_CBID_CORE2_DomainRegisterStringW);
SAME(NVTX_CORE2_DOMAIN_CREATE_A, NVTX_CBID_CORE2_DomainCreateA);
SAME(NVTX_CORE2_DOMAIN_CREATE_W, NVTX_CBID_CORE2_DomainCreateW);
SAME(NVTX_NOT_TRACKED, NVTX_NO_PUSH_POP_TRACKING);
SAME(NVTX_MESSAGE_ASCII, NVTX_MESSAGE_TYPE_ASCII);
SAME(NVTX_MESSAGE_UNICODE, NVTX_MESSAGE_TYPE_UNICODE);
SAME(NVTX_MESSAGE_REGISTERED, NVTX_MESSAGE_TYPE_REGISTERED);
SAME(sizeof(struct nvtx_event), sizeof(nvtxEventAttributes_t));
SAME_PLACE(version, version);
SAME_PLACE(size, size);
SAME_PLACE(payload, payload);
SAME_PLACE(message_type, messageType);
SAME_PLACE(message, message);
SAME(sizeof(struct nvtx_callbacks), sizeof(NvtxExportTableCallbacks));
SAME(offsetof(struct nvtx_callbacks, get_module_table),
     offsetof(NvtxExportTableCallbacks, GetModuleFunctionTable));
"""


def test_numbers_and_layouts_are_nvidia_s():
    headers = next((place for place in PLACES if (place / "nvtx3/nvToolsExt.h").exists()), None)
    if not headers:
        pytest.skip("NVTX's headers are not here (setup/nvtx.sh fetches them)")
    flags = ["-std=c11", "-D_GNU_SOURCE", f"-I{headers}", f"-I{REPOSITORY / 'src'}"]
    command = ["cc", *flags, "-fsyntax-only", "-x", "c", "-"]
    done = subprocess.run(command, input=SAME, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
