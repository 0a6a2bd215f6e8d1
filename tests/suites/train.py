#!/usr/bin/python3
"""Trains a ResNet-50 of a quarter of the width by Horovod or DistributedDataParallel over MPI,
with faults planted by options. At the end each rank writes the file log-RANK.json: what it did and
when, by its own monotonic clock. The suite compares what the reports say with these logs.

The network has the 161 parameter tensors of ResNet-50, 64 B to 590 KB: 6.1 MB of gradients a
step."""

from __future__ import annotations

import argparse
import contextlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import commprof_marks
import torch
from torch import nn
from torch.nn import functional

WIDTH, CLASSES, BATCH, PIXELS = 16, 100, 4, 8
STAGES = ((1, 3, 1), (2, 4, 2), (4, 6, 2), (8, 3, 2))  # width, blocks, stride of the first


def convolution(inputs: int, outputs: int, size: int, stride: int = 1) -> nn.Sequential:
    layer = nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(outputs))


class Bottleneck(nn.Module):
    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.narrow = convolution(inputs, width, 1)
        self.middle = convolution(width, width, 3, stride)
        self.widen = convolution(width, 4 * width, 1)
        is_first = inputs != 4 * width or stride > 1
        self.beside = convolution(inputs, 4 * width, 1, stride) if is_first else nn.Identity()

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        inner = functional.relu(self.middle(functional.relu(self.narrow(inputs))))
        return functional.relu(self.widen(inner) + self.beside(inputs))


def resnet_50(width: int) -> nn.Module:
    torch.manual_seed(1)
    layers: list[nn.Module] = [convolution(3, width, 7, 2), nn.ReLU()]
    inputs = width
    for factor, blocks, stride in STAGES:
        for block in range(blocks):
            layers.append(Bottleneck(inputs, factor * width, stride if block == 0 else 1))
            inputs = 4 * factor * width
    pooled = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, CLASSES))
    return nn.Sequential(*layers, *pooled)


class Framework(NamedTuple):
    """A model whose gradients are averaged over the ranks."""

    rank: int
    model: nn.Module
    update: Callable[[], None]  # applies the gradients, after waiting for them if need be
    not_yet: Callable[[], contextlib.AbstractContextManager[object]]  # no averaging within
    evaluate: Callable[[torch.Tensor], torch.Tensor]
    end: Callable[[], None]


class Log:
    """Times of CLOCK_MONOTONIC, by step."""

    def __init__(self) -> None:
        self.steps: list[dict[str, int]] = []

    def now(self, what: str) -> None:
        self.steps[-1][what] = time.monotonic_ns()


@contextlib.contextmanager
def waiting(log: Log, options: argparse.Namespace) -> Iterator[None]:
    """The main thread begins to wait for gradients."""
    log.now("wait_begin_ns")
    if options.mark:
        commprof_marks.step()
    if options.region:
        commprof_marks.region_begin(b"wait for gradients")
    yield
    if options.region:
        commprof_marks.region_end()
    log.now("wait_end_ns")


def horovod(options: argparse.Namespace, log: Log) -> Framework:
    import horovod.torch as hvd

    hvd.init()
    model = resnet_50(options.width)
    plain = torch.optim.SGD(model.parameters(), lr=0.05)
    named, passes = model.named_parameters(), options.accumulate
    optimizer = hvd.DistributedOptimizer(plain, named, backward_passes_per_step=passes)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)

    def update() -> None:
        with waiting(log, options):
            optimizer.synchronize()
        with optimizer.skip_synchronize():
            optimizer.step()
        optimizer.zero_grad()

    not_yet = contextlib.nullcontext  # Horovod counts the passes itself
    return Framework(hvd.rank(), model, update, not_yet, hvd.allreduce, hvd.shutdown)


def ddp(options: argparse.Namespace, log: Log) -> Framework:
    """The backward pass ends when the gradients are averaged: the wait begins in a hook of the
    first parameter, which is the last to get its gradient."""
    import torch.distributed as dist

    dist.init_process_group("mpi")
    network = resnet_50(options.width)
    has_buffers = options.broadcast_buffers
    model: Any = nn.parallel.DistributedDataParallel(
        network, bucket_cap_mb=options.bucket_mb, broadcast_buffers=has_buffers
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    in_wait = contextlib.ExitStack()

    def gradients_are_ready(gradient: torch.Tensor) -> torch.Tensor:
        if model.require_backward_grad_sync:
            in_wait.enter_context(waiting(log, options))
        return gradient

    next(network.parameters()).register_hook(gradients_are_ready)

    def update() -> None:
        in_wait.close()
        optimizer.step()
        optimizer.zero_grad()

    def evaluate(value: torch.Tensor) -> torch.Tensor:
        dist.all_reduce(value)
        return value

    end = dist.destroy_process_group
    return Framework(dist.get_rank(), model, update, model.no_sync, evaluate, end)


def train(framework: Framework, options: argparse.Namespace, log: Log) -> None:
    data = torch.Generator().manual_seed(1000 + framework.rank)
    for number in range(options.steps):
        log.steps.append({})
        log.now("begin_ns")
        delay_s = options.slow_ms / 1e3 if framework.rank == options.slow else 0
        for micro_batch in range(options.accumulate):
            inputs = torch.randn(BATCH, 3, PIXELS, PIXELS, generator=data)
            labels = torch.randint(CLASSES, (BATCH,), generator=data)
            is_last = micro_batch == options.accumulate - 1
            with contextlib.nullcontext() if is_last else framework.not_yet():
                loss = functional.cross_entropy(framework.model(inputs), labels)
                time.sleep(delay_s / options.accumulate)
                loss.backward()
        log.now("backward_end_ns")
        framework.update()
        if options.evaluate and number % options.evaluate == options.evaluate - 1:
            with torch.no_grad():
                framework.evaluate(loss.detach())
    log.steps.append({})
    log.now("begin_ns")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("framework", choices=("horovod", "ddp"))
    parser.add_argument("steps", type=int)
    parser.add_argument("--slow", type=int, metavar="RANK", default=-1, help="sleeps in each step")
    parser.add_argument("--slow-ms", type=float, metavar="MS", default=60, help="how long (60)")
    parser.add_argument("--accumulate", type=int, metavar="N", default=1, help="passes a step (1)")
    parser.add_argument("--evaluate", type=int, metavar="N", default=0, help="every N steps")
    parser.add_argument("--width", type=int, default=WIDTH, help=f"of the network ({WIDTH})")
    parser.add_argument("--bucket-mb", type=float, default=1, help="DDP's bucket_cap_mb (1)")
    parser.add_argument("--broadcast-buffers", action="store_true", help="DDP's; its default")
    parser.add_argument("--mark", action="store_true", help="commprof_step where the wait begins")
    parser.add_argument("--region", action="store_true", help="a region around the wait")
    options = parser.parse_args()
    torch.set_num_threads(1)  # the ranks share the cores

    log = Log()
    framework = {"horovod": horovod, "ddp": ddp}[options.framework](options, log)
    train(framework, options, log)
    sizes = [4 * parameter.numel() for parameter in framework.model.parameters()]
    said = {"gradient_bytes": sum(sizes), "tensors": len(sizes), "steps": log.steps}
    Path(f"log-{framework.rank}.json").write_text(json.dumps(vars(options) | said))
    framework.end()


if __name__ == "__main__":
    main()
