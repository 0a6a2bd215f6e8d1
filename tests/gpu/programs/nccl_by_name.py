"""NCCL looked up by name, as JAX and vLLM do: no wrapper of a preloaded library is met.
nccl_by_name.py LIBNCCL STORE"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p

from device import Device, tell

FLOAT, SUM, ELEMENTS, TIMES = 7, 0, 1000, 5


class UniqueId(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]


def shared_id(nccl: ctypes.CDLL, rank: int, path: str) -> UniqueId:
    """Rank 0's, over a file."""
    unique = UniqueId()
    if rank == 0:
        assert nccl.ncclGetUniqueId(byref(unique)) == 0
        with open(path + ".new", "wb") as file:
            file.write(bytes(unique))
        os.rename(path + ".new", path)
    while not os.path.exists(path):
        time.sleep(0.01)
    with open(path, "rb") as file:
        return UniqueId.from_buffer_copy(file.read())


if __name__ == "__main__":
    rank, size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    os.environ["NCCL_HOSTID"] = f"rank-{rank}"
    device = Device()
    nccl = ctypes.CDLL(sys.argv[1])
    communicator = c_void_p()
    error = nccl.ncclCommInitRank(
        byref(communicator), c_int(size), shared_id(nccl, rank, sys.argv[2]), c_int(rank)
    )
    if error:
        sys.exit(f"ncclCommInitRank: {error}")
    buffer, stream = device.device(4 * ELEMENTS), device.stream()
    for _ in range(TIMES):
        at = c_uint64(buffer)
        assert (
            nccl.ncclAllReduce(
                at, at, c_size_t(ELEMENTS), c_int(FLOAT), c_int(SUM), communicator, stream
            )
            == 0
        )
    device.wait(stream)
    nccl.ncclCommDestroy(communicator)
    tell(rank=rank, operations={"ncclAllReduce": [TIMES, 4 * ELEMENTS]})
