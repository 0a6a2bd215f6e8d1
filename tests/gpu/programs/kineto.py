"""PyTorch's profiler, twice, in a process that is traced: kernels before, during, between and
after."""

from __future__ import annotations

import json
import os
import sys
import tempfile

import torch
from device import Device, mpi, tell, wait_until

KERNELS = 100


def launch(device: Device, name: str) -> None:
    for _ in range(KERNELS):
        device.spin(name, 10_000)
    device.wait_for_all()


def kernels_in_a_session(device: Device, name: str) -> int:
    """How many kernels of this name PyTorch's profiler saw."""
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    ) as profiler:
        launch(device, name)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        profiler.export_chrome_trace(path)
        with open(path) as file:
            events = json.load(file)["traceEvents"]
    return sum(event.get("cat") == "kernel" and event["name"] == name for event in events)


if __name__ == "__main__":
    profiled = sys.argv[1:] != ["alone"]
    if profiled:
        mpi().calls_begin()
    torch.zeros(1, device="cuda")
    gpu = Device()
    gpu.load(
        "planted_before", "planted_during", "planted_between", "planted_again", "planted_after"
    )
    seen = []
    for outside, inside in (
        ("planted_before", "planted_during"),
        ("planted_between", "planted_again"),
    ):
        if profiled and not wait_until("tracing"):
            tell(failed=f"not traced before {outside}")
        launch(gpu, outside)
        seen.append(kernels_in_a_session(gpu, inside))
    if profiled and not wait_until("tracing"):
        tell(failed="not traced any more after PyTorch's profiler")
    launch(gpu, "planted_after")
    tell(kernels=KERNELS, kineto=seen)
    if profiled:
        mpi().calls_end()
