"""MPI calls with buffers of each kind of memory. The MPI is the one of one rank, which touches no
buffer."""

from __future__ import annotations

from device import Device, mpi, tell, wait_until

if __name__ == "__main__":
    mpi().calls_begin()
    device = Device()
    wait_until("tracing")
    makers = {
        "host": device.pageable,
        "pinned": device.pinned,
        "managed": device.managed,
        "device": device.device,
    }
    buffers = {kind: (make(1 << 20), make(1 << 20)) for kind, make in makers.items()}
    sizes = {}
    for i, (kind, (source, to)) in enumerate(buffers.items(), 1):
        for _ in range(100):
            mpi().calls_allreduce(source + 4096, to + 4096, 1000 * i)
        sizes[1000 * i] = kind
    for _ in range(100):
        mpi().calls_allreduce(buffers["device"][0], buffers["host"][0], 9000)
    sizes[9000] = "device>host"
    tell(sizes=sizes)
    mpi().calls_end()
