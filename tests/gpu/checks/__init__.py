"""What is checked, in the order in which it is: one line a check."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from jobs import Jobs
from table import Row

from . import coexistence, costs, ends, nccl, planted, training


class Check(NamedTuple):
    name: str
    question: str
    limit_s: int
    run: Callable[[Jobs], Iterator[Row]]
    needs_torch: bool = False  # with CUDA


CHECKS = [
    Check("records", "Are kernels' names, devices, streams and durations those that were planted?", 60, planted.records),
    Check("copies", "Are the bytes of copies and memsets exact, and pageable memory told from pinned?", 60, planted.copies),
    Check("correlation", "Do activities have correlation ids though no API calls are traced?", 60, planted.correlation),
    Check("graph", "Are a replayed graph's kernels counted?", 60, planted.graph),
    Check("clock", "Do kernels lie between their launch and the return of the wait for them?", 60, planted.clock),
    Check("overlap", "Is exposed communication what CUDA's events say?", 60, planted.overlap),
    Check("places", "Is it told where the buffers of MPI calls lie?", 60, planted.places),
    Check("ranks", "Do the ranks of an MPI share a GPU, each with its own kernels?", 90, ends.ranks),
    Check("ends", "Does every way to end keep the profile and hang nothing?", 180, ends.ends),
    Check("untouched", "Does a process that imports PyTorch and uses no GPU keep what it has open?", 90, ends.untouched),
    Check("pytorch", "Are kernels and their time those that PyTorch's profiler sees?", 120, training.against_pytorch, True),
    Check("kineto", "Does PyTorch's profiler see all its kernels, and do we go on afterwards?", 120, coexistence.kineto, True),
    Check("tools", "Do we give way to NVIDIA's tools?", 120, coexistence.tools),
    Check("nccl", "Are NCCL's calls and bytes exact, on one rank and on two of one GPU?", 180, nccl.through_pytorch, True),
    Check("plugin", "Is NCCL seen that is called by name?", 90, nccl.by_name),
    Check("cycle", "Does tracing go off and on again and again, and lose nothing?", 90, planted.cycle),
    Check("costs", "What do single calls cost?", 120, costs.costs),
    Check("overhead", "What does a training step cost more?", 240, training.overhead, True),
]
