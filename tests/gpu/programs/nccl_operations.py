"""NCCL through torch.distributed: a rank of RANK, WORLD_SIZE, which meet over a file. All ranks may
be on one GPU.

nccl_operations.py STORE"""

from __future__ import annotations

import os
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
from device import tell, wait_until

HAS_GPU = torch.cuda.is_available()  # without one: over Gloo, which shows that this program works
DEVICE, BACKEND = ("cuda", "nccl") if HAS_GPU else ("cpu", "gloo")
TIMES, ELEMENTS, IN_A_GROUP, REPLAYS = 5, 1000, 8, 10


def wait() -> None:
    if HAS_GPU:
        torch.cuda.synchronize()


def operations(ranks: int) -> dict[str, list[int]]:
    """Each so often; call -> how often, and the bytes it is counted with."""
    mine, all_of_them = (
        torch.ones(ELEMENTS, device=DEVICE),
        torch.ones(ranks * ELEMENTS, device=DEVICE),
    )
    for _ in range(TIMES):
        dist.all_reduce(mine)
        dist.broadcast(mine, 0)
        dist.all_gather_into_tensor(all_of_them, mine)
        dist.reduce_scatter_tensor(mine, all_of_them)
    wait()
    size = 4 * ELEMENTS
    return {
        "ncclAllReduce": [TIMES, size],
        "ncclBcast": [TIMES, size],  # ProcessGroupNCCL calls the old name
        "ncclAllGather": [TIMES, size],
        "ncclReduceScatter": [TIMES, ranks * size],
    }


def group() -> list[int]:
    """Several operations in one ncclGroup. Their sizes are no others'."""
    parts = [torch.ones(2 * ELEMENTS, device=DEVICE) for _ in range(IN_A_GROUP)]
    with dist._coalescing_manager(device=torch.device(DEVICE, 0)):
        for part in parts:
            dist.all_reduce(part)
    wait()
    return [IN_A_GROUP, 4 * 2 * ELEMENTS]


def captured() -> list[int]:
    """In a graph that is replayed: one captured operation, so many kernels."""
    part = torch.ones(3 * ELEMENTS, device=DEVICE)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        dist.all_reduce(part)
    wait()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        dist.all_reduce(part)
    for _ in range(REPLAYS):
        graph.replay()
    wait()
    return [1, 4 * 3 * ELEMENTS, REPLAYS]


if __name__ == "__main__":
    rank, size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    os.environ["NCCL_HOSTID"] = f"rank-{rank}"
    if HAS_GPU:
        torch.cuda.set_device(0)
    dist.init_process_group(
        BACKEND,
        init_method=f"file://{sys.argv[1]}",
        rank=rank,
        world_size=size,
        timeout=timedelta(seconds=60),
    )
    dist.all_reduce(torch.ones(1, device=DEVICE))  # makes the communicator
    wait()
    wait_until("tracing")
    told: dict[str, object] = {"rank": rank, "operations": operations(size)}
    tell(**told)
    for name, part in (("group", group), ("captured", captured)):
        try:
            told[name] = part()
        # other versions of PyTorch
        except (RuntimeError, AttributeError, TypeError, AssertionError) as error:
            told[name] = None
            told[f"why_no_{name}"] = str(error).splitlines()[0]
    tell(**told)
    dist.destroy_process_group()
