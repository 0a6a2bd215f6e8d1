"""The checks, in the order in which they run: one line a check. Each half has what tells most in
the least time first."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import NamedTuple

from jobs import Jobs
from table import Row


class Check(NamedTuple):
    name: str
    question: str
    about_s: int  # it takes so long; a limit that leaves less does not begin it
    limit_s: int
    run: Callable[[Jobs], Iterator[Row]]
    needs_torch: bool = False  # with CUDA


def checks(table: str) -> list[Check]:
    """A line a check: module.function (=its name, if it is another), about_s, limit_s, whether it
    needs PyTorch, the question."""

    def check(line: str) -> Check:
        place, about_s, limit_s, needs, question = line.split(maxsplit=4)
        module, function, *name = re.split("[.=]", place)
        run = getattr(import_module(f"{__name__}.{module}"), function)
        return Check(
            (name or [function])[0], question, int(about_s), int(limit_s), run, needs == "torch"
        )

    return [check(line) for line in table.splitlines() if line]


# No GPU has measured about_s yet: three to five seconds a process, ten with PyTorch, and what the
# programs wait for. The script prints what each check took beside it.
# Checks on which the most depends, most wanted first, in eight minutes.
FIRST = checks("""
planted.records 10 40 - Are kernels' names, devices, streams and durations those planted?
planted.clock 10 40 - Do kernels lie between their launch and the return of the wait for them?
streams.capturing 20 60 - Does a capture go on while tracing begins, collects, goes off and on?
training.overhead 140 180 torch What does a training step cost more?
nccl.through_pytorch=nccl 60 110 torch Are NCCL's calls and bytes exact, of one rank and of two?
coexistence.kineto 35 80 torch Does PyTorch's profiler see all, and do we go on afterwards?
windows.busy 25 60 - How much of a device that never idles is known after a kill?
planted.graph 20 60 - Are a graph's kernels counted, wherever the graph was created?
planted.cycle 30 50 - Does tracing go off and on again and again, and lose nothing?
windows.attached 60 90 - What does a launch cost traced, between windows, and with CUPTI detached?
""")
# Remaining checks, most wanted first, each as far as it fits.
REST = checks("""
windows.stalls 20 60 - How long is a launch held up when tracing begins, goes off and goes on?
windows.many 130 190 - Do 25 million kernels of a graph that is replayed have time stamps?
windows.memory 15 30 - How much memory of the device does tracing take, and does it grow?
nccl.without_pytorch=nccl_times 40 90 - Are NCCL's times on the device those of CUDA's events?
sensors.nvml 12 40 - Does NVML say clock, memory and limits, and does PCIe carry what was copied?
planted.overlap 20 50 - Is exposed communication what CUDA's events say?
ends.ends 60 130 - Does every way to end keep the profile and hang nothing?
ends.ranks 20 60 - Do the ranks of an MPI share a GPU, each with its own kernels?
streams.capture 10 40 - Can a stream's id, context and number be asked for in a capture?
versions.minor 15 60 - Does a carried CUPTI work that is newer than the driver's CUDA?
planted.copies 6 30 - Are bytes of copies and memsets exact, pageable memory told from pinned?
planted.correlation 10 30 - Do activities have correlation ids though no API calls are traced?
planted.memory_kinds 6 30 - Are the memory kinds of MPI calls' buffers reported?
training.step 100 130 torch What does a step of 5,000 kernels cost more, traced and between windows?
nccl.by_name=plugin 30 60 - Is NCCL seen that is called by name?
training.against_pytorch=pytorch 30 80 torch Are kernels and times those of PyTorch's profiler?
coexistence.tools 45 90 - Do we give way to NVIDIA's tools?
jax.jax 60 130 - Are JAX's kernels counted, and does its profiler see them beside us?
ends.untouched 20 60 - Does a process that imports PyTorch and uses no GPU keep what is open?
streams.destroyed 12 40 - What do driver and CUPTI answer about a stream that was destroyed?
costs.costs 20 90 - What do single calls cost?
""")
CHECKS = [*FIRST, *REST]
