"""What is checked, in the order in which it is: one line a check. Each half has what tells most in the least time first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from jobs import Jobs
from table import Row

from . import coexistence, costs, ends, jax, nccl, planted, streams, training, versions, windows


class Check(NamedTuple):
    name: str
    question: str
    limit_s: int
    run: Callable[[Jobs], Iterator[Row]]
    needs_torch: bool = False  # with CUDA


# The first call of ten minutes: what the most depends on. Their limits add up to less than that.
FIRST = [
    Check("records", "Are kernels' names, devices, streams and durations those that were planted?", 40, planted.records),
    Check("clock", "Do kernels lie between their launch and the return of the wait for them?", 40, planted.clock),
    Check("graph", "Are a graph's kernels counted, wherever the graph was created?", 60, planted.graph),
    Check("cycle", "Does tracing go off and on again and again, and lose nothing?", 50, planted.cycle),
    Check("overhead", "What does a training step cost more?", 160, training.overhead, True),
    Check("nccl", "Are NCCL's calls and bytes exact, on one rank and on two of one GPU?", 110, nccl.through_pytorch, True),
    Check("kineto", "Does PyTorch's profiler see all its kernels, and do we go on afterwards?", 80, coexistence.kineto, True),
]
# The second call: what is left of it when its time is over is to be run alone.
REST = [
    Check("stalls", "How long is a launch held up when tracing begins, goes off and goes on?", 60, windows.stalls),
    Check("attached", "What does a launch cost traced, between windows, and with CUPTI detached?", 90, windows.attached),
    Check("memory", "How much memory of the device does tracing take, and does it grow?", 30, windows.memory),
    Check("capture", "Can a stream's id, context and number be asked for while a stream captures?", 40, streams.capture),
    Check("destroyed", "What do driver and CUPTI answer about a stream that was destroyed?", 40, streams.destroyed),
    Check("minor", "Does a carried CUPTI work that is newer than the driver's CUDA?", 60, versions.minor),
    Check("overlap", "Is exposed communication what CUDA's events say?", 50, planted.overlap),
    Check("nccl_times", "Are NCCL's times on the device those of CUDA's events?", 90, nccl.without_pytorch),
    Check("step", "What does a training step of 5,000 kernels cost more, traced and between windows?", 120, training.step, True),
    Check("copies", "Are the bytes of copies and memsets exact, and pageable memory told from pinned?", 30, planted.copies),
    Check("correlation", "Do activities have correlation ids though no API calls are traced?", 30, planted.correlation),
    Check("memory_kinds", "Are the memory kinds of MPI calls' buffers reported?", 30, planted.memory_kinds),
    Check("ranks", "Do the ranks of an MPI share a GPU, each with its own kernels?", 60, ends.ranks),
    Check("plugin", "Is NCCL seen that is called by name?", 60, nccl.by_name),
    Check("jax", "Are JAX's kernels counted, and does its profiler see them beside us?", 130, jax.jax),
    Check("pytorch", "Are kernels and their time those that PyTorch's profiler sees?", 80, training.against_pytorch, True),
    Check("untouched", "Does a process that imports PyTorch and uses no GPU keep what it has open?", 60, ends.untouched),
    Check("ends", "Does every way to end keep the profile and hang nothing?", 120, ends.ends),
    Check("tools", "Do we give way to NVIDIA's tools?", 90, coexistence.tools),
    Check("costs", "What do single calls cost?", 90, costs.costs),
    Check("many", "Do kernels of 25 million have time stamps, in a graph that is replayed all the time?", 150, windows.many),
]
CHECKS = [*FIRST, *REST]
