"""Imports PyTorch, calls MPI for three seconds, uses no GPU; then tells what of NVIDIA's is open
here and whether there is a context."""

from __future__ import annotations

import time

from device import Device, mpi, tell

try:
    import torch
except ModuleNotFoundError:
    torch = None

if __name__ == "__main__":
    mpi().calls_begin()
    until = time.monotonic() + 3
    while time.monotonic() < until:
        mpi().calls_barrier()
        time.sleep(0.01)
    with open("/proc/self/maps") as maps:
        paths = {line.split()[-1] for line in maps if "/" in line}
    libraries = sorted(
        path.rpartition("/")[2]
        for path in paths
        if any(name in path for name in ("libcuda.", "libcupti", "libnccl"))
    )
    tell(libraries=libraries, torch=torch is not None, context=Device(context=False).has_context())
    mpi().calls_end()
