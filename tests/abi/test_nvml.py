"""src/cupti/nvml_abi.h against NVIDIA's own nvml.h: all that setup/cupti.sh has fetched or CUDA has
brought."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PLACES = [
    *REPOSITORY.glob("build/cupti/*/nvidia/*/include"),
    *Path("/usr/local").glob("cuda*/include"),
]
SOURCE = """
#include <nvml.h>
#include <stddef.h>
#include "cupti/nvml_abi.h"
#define SAME(OURS, THEIRS) _Static_assert((long long)(OURS) == (long long)(THEIRS), #THEIRS)
#define SAME_PLACE(OURS, FIELD, THEIRS, THEIR_FIELD) \
    SAME(offsetof(struct OURS, FIELD), offsetof(THEIRS, THEIR_FIELD)); \
    SAME(sizeof(((struct OURS *)0)->FIELD), sizeof(((THEIRS *)0)->THEIR_FIELD))
SAME(NVML_OK, NVML_SUCCESS);
SAME(NVML_SM_CLOCK, NVML_CLOCK_SM);
SAME(NVML_FIELD_NVLINK_SENT, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX);
SAME(NVML_FIELD_NVLINK_RECEIVED, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX);
#ifdef NVML_FI_DEV_PCIE_COUNT_TX_BYTES
SAME(NVML_FIELD_PCIE_SENT, NVML_FI_DEV_PCIE_COUNT_TX_BYTES);
SAME(NVML_FIELD_PCIE_RECEIVED, NVML_FI_DEV_PCIE_COUNT_RX_BYTES);
#endif
SAME(NVML_UNSIGNED_LONG, NVML_VALUE_TYPE_UNSIGNED_LONG);
SAME(NVML_UNSIGNED_LONG_LONG, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG);
SAME(sizeof(struct nvml_field), sizeof(nvmlFieldValue_t));
SAME_PLACE(nvml_field, field, nvmlFieldValue_t, fieldId);
SAME_PLACE(nvml_field, scope, nvmlFieldValue_t, scopeId);
SAME_PLACE(nvml_field, type, nvmlFieldValue_t, valueType);
SAME_PLACE(nvml_field, result, nvmlFieldValue_t, nvmlReturn);
SAME_PLACE(nvml_field, value, nvmlFieldValue_t, value.ullVal);
SAME(sizeof(struct nvml_memory), sizeof(nvmlMemory_t));
SAME_PLACE(nvml_memory, total_bytes, nvmlMemory_t, total);
SAME_PLACE(nvml_memory, used_bytes, nvmlMemory_t, used);
SAME(NVML_GPU_IDLE, nvmlClocksThrottleReasonGpuIdle);
SAME(NVML_POWER_CAP, nvmlClocksThrottleReasonSwPowerCap);
SAME(NVML_HARDWARE_SLOWDOWN, nvmlClocksThrottleReasonHwSlowdown);
SAME(NVML_SOFTWARE_THERMAL, nvmlClocksThrottleReasonSwThermalSlowdown);
SAME(NVML_HARDWARE_THERMAL, nvmlClocksThrottleReasonHwThermalSlowdown);
SAME(NVML_POWER_BRAKE, nvmlClocksThrottleReasonHwPowerBrakeSlowdown);
"""


@pytest.mark.parametrize(
    "place", [place for place in PLACES if (place / "nvml.h").exists()] or [None], ids=str
)
def test_our_view_of_nvml_is_nvidia_s(place: Path | None, tmp_path: Path):
    if place is None:
        pytest.skip("nvml.h is not here (setup/cupti.sh fetches it)")
    source = tmp_path / "nvml.c"
    source.write_text(SOURCE)
    folders = [f"-isystem{place}", f"-I{REPOSITORY / 'src'}"]
    command = ["cc", "-std=gnu11", "-fsyntax-only", *folders, str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
