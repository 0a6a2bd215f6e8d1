"""Ranks of a real MPI on one GPU: each plants kernels of its own number; buffers are the host's.
several.py [abort]"""

from __future__ import annotations

import sys
import time

from device import Device, mpi, tell, wait_until

if __name__ == "__main__":
    mpi().calls_begin()
    rank = mpi().calls_rank()
    device = Device()
    device.load("planted_rank")
    traced = wait_until("tracing")
    for _ in range(20 * (rank + 1)):
        device.spin("planted_rank", 10_000)
    device.wait_for_all()
    wait_until(records=20 * (rank + 1))
    pinned = device.pinned(4096)
    mpi().calls_allreduce(pinned, device.pageable(4096), 4096)
    tell(**{f"rank {rank}": [20 * (rank + 1), traced]})
    mpi().calls_barrier()
    if sys.argv[1:] == ["abort"]:
        if rank == 0:
            mpi().calls_abort(3)
        time.sleep(30)
    mpi().calls_end()
