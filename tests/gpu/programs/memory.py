"""How much of the device's memory is left: before tracing, and after each of several windows full
of kernels."""

from __future__ import annotations

from device import Device, mpi, switch, tell, wait_until

WINDOWS, KERNELS_A_WINDOW = 8, 20_000

if __name__ == "__main__":
    mpi().calls_begin()
    device = Device()
    stream, function = device.stream(), device.empty("planted_empty")
    device.launch(function, stream)
    device.wait(stream)
    begin = device.available_bytes()
    if not wait_until("tracing"):
        tell(failed="the profiler does not trace")
    used = []
    for _ in range(WINDOWS):
        for _ in range(KERNELS_A_WINDOW):
            device.launch(function, stream)
        device.wait(stream)
        used.append(begin - device.available_bytes())
        switch(False)
        used.append(begin - device.available_bytes())
        switch(True)
    tell(in_windows=used[::2], between=used[1::2])
    mpi().calls_end()
