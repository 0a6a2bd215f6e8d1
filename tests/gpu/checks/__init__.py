"""The checks, in the order in which they run: one line a check. Each half has what tells most in
the least time first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from jobs import Jobs
from table import Row

from . import (
    coexistence,
    costs,
    ends,
    jax,
    nccl,
    planted,
    sensors,
    streams,
    training,
    versions,
    windows,
)


class Check(NamedTuple):
    name: str
    question: str
    about_s: int  # it takes so long; a limit that leaves less does not begin it
    limit_s: int
    run: Callable[[Jobs], Iterator[Row]]
    needs_torch: bool = False  # with CUDA


# No GPU has measured about_s yet: three to five seconds a process, ten with PyTorch, and what the
# programs wait for. The script prints what each check took beside it.
# What the most depends on, most wanted first, in eight minutes.
FIRST = [
    Check(
        "records",
        "Are kernels' names, devices, streams and durations those that were planted?",
        10,
        40,
        planted.records,
    ),
    Check(
        "clock",
        "Do kernels lie between their launch and the return of the wait for them?",
        10,
        40,
        planted.clock,
    ),
    Check(
        "capturing",
        "Does a capture go on while tracing begins, collects, goes off and on?",
        20,
        60,
        streams.capturing,
    ),
    Check("overhead", "What does a training step cost more?", 140, 180, training.overhead, True),
    Check(
        "nccl",
        "Are NCCL's calls and bytes exact, on one rank and on two of one GPU?",
        60,
        110,
        nccl.through_pytorch,
        True,
    ),
    Check(
        "kineto",
        "Does PyTorch's profiler see all its kernels, and do we go on afterwards?",
        35,
        80,
        coexistence.kineto,
        True,
    ),
    Check(
        "busy",
        "How much of a device that never idles is known after its process was killed?",
        25,
        60,
        windows.busy,
    ),
    Check(
        "graph",
        "Are a graph's kernels counted, wherever the graph was created?",
        20,
        60,
        planted.graph,
    ),
    Check(
        "cycle",
        "Does tracing go off and on again and again, and lose nothing?",
        30,
        50,
        planted.cycle,
    ),
    Check(
        "attached",
        "What does a launch cost traced, between windows, and with CUPTI detached?",
        60,
        90,
        windows.attached,
    ),
]
# Remaining checks, most wanted first, each as far as it fits.
REST = [
    Check(
        "stalls",
        "How long is a launch held up when tracing begins, goes off and goes on?",
        20,
        60,
        windows.stalls,
    ),
    Check(
        "many",
        "Do kernels of 25 million have time stamps, in a graph that is replayed all the time?",
        130,
        190,
        windows.many,
    ),
    Check(
        "memory",
        "How much memory of the device does tracing take, and does it grow?",
        15,
        30,
        windows.memory,
    ),
    Check(
        "nccl_times",
        "Are NCCL's times on the device those of CUDA's events?",
        40,
        90,
        nccl.without_pytorch,
    ),
    Check(
        "nvml",
        "Does NVML say clock, memory and limits, and does PCIe carry what was copied?",
        12,
        40,
        sensors.nvml,
    ),
    Check("overlap", "Is exposed communication what CUDA's events say?", 20, 50, planted.overlap),
    Check("ends", "Does every way to end keep the profile and hang nothing?", 60, 130, ends.ends),
    Check(
        "ranks",
        "Do the ranks of an MPI share a GPU, each with its own kernels?",
        20,
        60,
        ends.ranks,
    ),
    Check(
        "capture",
        "Can a stream's id, context and number be asked for while a stream captures?",
        10,
        40,
        streams.capture,
    ),
    Check(
        "minor",
        "Does a carried CUPTI work that is newer than the driver's CUDA?",
        15,
        60,
        versions.minor,
    ),
    Check(
        "copies",
        "Are the bytes of copies and memsets exact, and pageable memory told from pinned?",
        6,
        30,
        planted.copies,
    ),
    Check(
        "correlation",
        "Do activities have correlation ids though no API calls are traced?",
        10,
        30,
        planted.correlation,
    ),
    Check(
        "memory_kinds",
        "Are the memory kinds of MPI calls' buffers reported?",
        6,
        30,
        planted.memory_kinds,
    ),
    Check(
        "step",
        "What does a training step of 5,000 kernels cost more, traced and between windows?",
        100,
        130,
        training.step,
        True,
    ),
    Check("plugin", "Is NCCL seen that is called by name?", 30, 60, nccl.by_name),
    Check(
        "pytorch",
        "Are kernels and their time those that PyTorch's profiler sees?",
        30,
        80,
        training.against_pytorch,
        True,
    ),
    Check("tools", "Do we give way to NVIDIA's tools?", 45, 90, coexistence.tools),
    Check(
        "jax",
        "Are JAX's kernels counted, and does its profiler see them beside us?",
        60,
        130,
        jax.jax,
    ),
    Check(
        "untouched",
        "Does a process that imports PyTorch and uses no GPU keep what it has open?",
        20,
        60,
        ends.untouched,
    ),
    Check(
        "destroyed",
        "What do driver and CUPTI answer about a stream that was destroyed?",
        12,
        40,
        streams.destroyed,
    ),
    Check("costs", "What do single calls cost?", 20, 90, costs.costs),
]
CHECKS = [*FIRST, *REST]
