"""Kernels under another tool: the profiler is expected not to trace. Tells its state."""

from __future__ import annotations

import time

from device import Device, look, mpi, tell

if __name__ == "__main__":
    mpi().calls_begin()
    device = Device()
    until = time.monotonic() + 10
    while (look() or ("refused",))[0] not in ("refused", "tracing") and time.monotonic() < until:
        time.sleep(0.05)
    for _ in range(20):
        device.spin("planted_beside_a_tool", 20_000)
    device.wait_for_all()
    tell(state=(look() or ("unprofiled",))[0])
    mpi().calls_end()
