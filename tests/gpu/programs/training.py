"""Training steps of two models: a small transformer (a few large kernels) and a launch-bound one
(many tiny kernels).

training.py steps N      N steps of each while the profiler traces; with `kineto` PyTorch's profiler
                         counts them instead
training.py turns S      the time of a step of about 5,000 kernels over S seconds, under the
                         profiler in turns traced and between windows
training.py time S       the time of a step of each, over S seconds; `late T`: only of those from T
                         seconds on
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time

import torch
from device import mpi, switch, tell, wait_until

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
LARGE = 1024 if DEVICE == "cuda" else 32


class Transformer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = torch.nn.TransformerEncoderLayer(LARGE, 8, 4 * LARGE, dropout=0.0, batch_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        return self.layers(data).square().mean()


class Tiny(torch.nn.Module):
    """A few hundred kernels of a few microseconds a step."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(16, 16) for _ in range(40))

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            data = torch.relu(layer(data)) + data
        return data.mean()


class ManyKernels(torch.nn.Module):
    """Layers that are small, one kernel after the other: about ten a layer with backward and
    optimizer."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(
            torch.nn.Linear(64, 64) for _ in range(500 if DEVICE == "cuda" else 2)
        )

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            data = torch.relu(layer(data)) + data
        return data.mean()


MODELS = {"transformer": (Transformer, (8, 128, LARGE)), "tiny kernels": (Tiny, (8, 16))}
MANY_KERNELS = (ManyKernels, (64, 64))
STEPS_A_TURN = 5


class Training:
    def __init__(self, made: tuple) -> None:
        torch.manual_seed(0)
        make, shape = made
        self.model = make().to(DEVICE)
        self.data = torch.randn(*shape, device=DEVICE)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-4, foreach=False)

    def step(self) -> None:
        self.optimizer.zero_grad()
        self.model(self.data).backward()
        self.optimizer.step()


def wait() -> None:
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def take_steps(count: int) -> None:
    for made in MODELS.values():
        training = Training(made)
        for _ in range(count):
            training.step()
    wait()


def counted_by_kineto(count: int) -> None:
    """Kernels and their time, of the same steps."""
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    ) as profiler:
        take_steps(count)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        profiler.export_chrome_trace(path)
        with open(path) as file:
            kernels = [
                event for event in json.load(file)["traceEvents"] if event.get("cat") == "kernel"
            ]
    tell(
        kernels=len(kernels),
        ns=round(sum(event["dur"] for event in kernels) * 1e3),
        names=len({event["name"] for event in kernels}),
    )


def median_step_ms(name: str, seconds: float, late_s: float) -> float:
    """Over groups of steps, each waited for."""
    training = Training(MODELS[name])
    for _ in range(10):
        training.step()
    wait()
    times, began = [], time.perf_counter()
    while time.perf_counter() - began < seconds:
        start = time.perf_counter()
        for _ in range(5):
            training.step()
        wait()
        if start - began >= late_s:
            times.append((time.perf_counter() - start) / 5)
    return statistics.median(times) * 1e3


def take_turns(seconds: float) -> None:
    """ms of a step, turn by turn."""
    training, kinds = (
        Training(MANY_KERNELS),
        ("traced", "off") if os.environ.get("COMMPROF_OUTPUT") else ("without",),
    )
    turns_ms: dict[str, list[float]] = {kind: [] for kind in kinds}
    traced_steps, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds or not traced_steps:
        for kind in kinds:
            if kind != "without" and not switch(kind == "traced"):
                tell(failed=f"the profiler does not go to '{kind}'")
            training.step()
            wait()
            start = time.perf_counter()
            for _ in range(STEPS_A_TURN):
                training.step()
            wait()
            turns_ms[kind].append((time.perf_counter() - start) / STEPS_A_TURN * 1e3)
        traced_steps += STEPS_A_TURN + 1
    tell(turns_ms=turns_ms, traced_steps=traced_steps)


if __name__ == "__main__":
    what, amount, *rest = sys.argv[1:]
    mpi().calls_begin()
    torch.zeros(1, device=DEVICE)
    if DEVICE == "cuda" and rest[:1] != ["kineto"]:
        wait_until("tracing" if os.environ.get("COMMPROF_GPU") != "off" else None)
    if what == "steps" and rest == ["kineto"]:
        counted_by_kineto(int(amount))
    elif what == "steps":
        take_steps(int(amount))
    elif what == "turns":
        take_turns(float(amount))
    else:
        late_s = float(rest[1]) if rest[:1] == ["late"] else 0.0
        tell(step_ms={name: median_step_ms(name, float(amount), late_s) for name in MODELS})
    mpi().calls_end()
