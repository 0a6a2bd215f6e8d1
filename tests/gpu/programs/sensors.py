"""Copies a known number of bytes to the device and back, in a few seconds, while NVML is read."""

from __future__ import annotations

import ctypes
import time
from ctypes import c_size_t, c_uint, c_uint64, c_void_p

from device import Device, mpi, tell, wait_until

BYTES, SECONDS = 256 << 20, 3.0

if __name__ == "__main__":
    mpi().calls_begin()
    device = Device()
    stream, function = device.stream(), device.empty("planted_empty")
    if not wait_until("tracing"):
        tell(failed="the profiler does not trace")
    device.launch(function, stream)
    device.wait(stream)
    memory, host = c_uint64(), c_void_p()
    device.call("cuMemAlloc_v2", ctypes.byref(memory), c_size_t(BYTES))
    device.call("cuMemHostAlloc", ctypes.byref(host), c_size_t(BYTES), c_uint(0))
    time.sleep(1)  # the device is known to the profiler, and has been read
    began, copies = time.monotonic(), 0
    while time.monotonic() < began + SECONDS:
        device.call("cuMemcpyAsync", memory, c_uint64(host.value or 0), c_size_t(BYTES), stream)
        device.wait(stream)
        copies += 1
    time.sleep(1)
    tell(copied_bytes=copies * BYTES, allocated_bytes=BYTES)
    mpi().calls_end()
