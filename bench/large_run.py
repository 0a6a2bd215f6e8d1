"""Cost of reports on a large run: CPU time and peak memory of each command, on a run folder that is
written first if it is not there.

    bench/large_run.py FOLDER --ranks 512
    bench/large_run.py FOLDER --ranks 4000 --samples 1000 --counters

The run: training, tensor-parallel within hosts of eight ranks and data-parallel over hosts. All
steps make the same calls, all of which are sampled. The last rank of the first host is late.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from multiprocessing import Pool
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "report")]

from planted import (  # noqa: E402
    WORLD,
    WORLD_IDENTITY,
    Cell,
    Collective,
    Communicator,
    Rank,
    Sample,
    Signature,
    Window,
    write_database,
)

COMMANDS = (
    ("summary",),
    ("late",),
    ("steps",),
    ("advise",),
    ("html", "--output", os.devnull),
    ("replay kit", "--output", "large_run.kit"),
)
OF_COUNTERS = (("calls",), ("sizes",), ("summary",))
# seconds on two cores without other work, for so many ranks with so many samples; for more ranks
# in proportion
GOALS = {"summary": 7, "late": 8, "steps": 9, "html": 20}
GOAL_RANKS, GOAL_SAMPLES, GOAL_MIB = 2_048, 1_000, 1_024
TENSOR, DATA = 4, 5  # a rank's numbers for its communicators
ON_HOST = 8
LATE_RANK = ON_HOST - 1
MS, STEP_MS = 1_000_000, 100
SHORT_NS, EARLY_NS = 40_000, 800_000  # the late rank's calls; ranks arrive up to so much earlier
SPREAD = 16  # durations in a cell


class Call(NamedTuple):
    """A call of each step; times since the step's begin. towards: of a message, how far the peer's
    rank is from the own one."""

    call: str
    communicator: int
    return_ms: int  # on all ranks
    bytes: int
    towards: int | None = None
    completed_ms: int | None = None


STEP = (
    Call("MPI_Bcast", WORLD, 2, 64),
    *(Call("MPI_Allreduce", TENSOR, 4 + 4 * layer, 4 << 20) for layer in range(6)),
    Call("MPI_Send", WORLD, 28, 1 << 20, 1),
    Call("MPI_Recv", WORLD, 30, 1 << 20, -1),
    Call("MPI_Irecv", WORLD, 32, 1 << 16, 1, 40),
    Call("MPI_Isend", WORLD, 34, 1 << 16, -1, 40),
    Call("MPI_Waitall", WORLD, 40, 1 << 16),
    *(Call("MPI_Allreduce", DATA, 50 + 10 * bucket, 16 << 20) for bucket in range(4)),
    Call("MPI_Allreduce", WORLD, 90, 8),
)
COLLECTIVES = ("MPI_Bcast", "MPI_Allreduce")
SIGNED = sorted({(call.call, call.bytes) for call in STEP if call.call != "MPI_Waitall"})
SIGNATURES = [
    Signature(number, count=size // 4, op="MPI_SUM" if call == "MPI_Allreduce" else "")
    for number, (call, size) in enumerate(SIGNED, 1)
]
MEASURED = """
import os, sys
folder, *words = sys.argv[1:]
sys.path.insert(0, folder)
from commprof_report.main import main
status, times = main(words), os.times()
print(times.user + times.system, times.children_user + times.children_system, file=sys.stderr)
sys.exit(status)
"""


def rank_of(world_rank: int, world_size: int, steps: int) -> Rank:
    host, place = divmod(world_rank, ON_HOST)
    wall_ns = (steps + 1) * STEP_MS * MS
    return Rank(
        world_rank,
        world_size,
        wall_ns=wall_ns,
        facts={
            "host": f"node{host:03d}",
            "boot_id": f"boot{host:03d}",
            "time_namespace": "time:[1]",
            "program": "train",
            "command_line": f"train --steps {steps}",
        },
        communicators=[
            communicator_of(WORLD, world_rank, range(world_size), steps),
            communicator_of(
                TENSOR,
                world_rank,
                range(host * ON_HOST, min((host + 1) * ON_HOST, world_size)),
                steps,
            ),
            communicator_of(DATA, world_rank, range(place, world_size, ON_HOST), steps),
        ],
        cells=list(cells_of(world_rank, steps)),
        peers=[peer_of(call, world_rank, world_size, steps) for call in STEP if call.towards],
        samples=list(samples_of(world_rank, world_size, steps)),
        windows=[Window(0, wall_ns)],
        signatures=SIGNATURES,
    )


def communicator_of(number: int, world_rank: int, ranks: range, steps: int) -> Communicator:
    identity = WORLD_IDENTITY + (number << 32) + ranks[0]
    members = f"{ranks[0]}-{ranks[-1]}:{ranks.step}".removesuffix(":1")
    begun = [
        Collective(call.call, call.bytes)
        for call in STEP
        if call.communicator == number and call.call in COLLECTIVES
    ] * steps
    name = {WORLD: "MPI_COMM_WORLD", TENSOR: "tensor", DATA: "data"}[number]
    return Communicator(
        number, identity, members, len(ranks), ranks.index(world_rank), name=name, begun=begun
    )


def cells_of(world_rank: int, steps: int) -> Iterator[Cell]:
    """Sums of the calls that samples_of gives; their durations are spread evenly."""
    early_ns = 0 if world_rank == LATE_RANK else EARLY_NS
    durations = [SHORT_NS + early_ns * part // SPREAD for part in range(SPREAD)]
    for (call, communicator, size, completed_ms), times in Counter(
        call[:2] + (call.bytes, call.completed_ms) for call in STEP
    ).items():
        counted = {"communicator": communicator, "times": times * steps // SPREAD}
        yield Cell(call, size, durations, **counted)
        if completed_ms:
            yield Cell(call, size, [5 * MS] * SPREAD, measure="completion", **counted)


def peer_of(call: Call, world_rank: int, world_size: int, steps: int) -> tuple:
    direction = "received" if "recv" in call.call.lower() else "sent"
    return (
        call.call,
        direction,
        (world_rank + call.towards) % world_size,
        steps,
        steps * call.bytes,
        steps * SHORT_NS,
    )


def samples_of(world_rank: int, world_size: int, steps: int) -> Iterator[Sample]:
    chance, begun = random.Random(world_rank), Counter()
    for step in range(steps):
        begin_ns = step * STEP_MS * MS
        for call in STEP:
            end_ns = begin_ns + call.return_ms * MS
            early_ns = 0 if world_rank == LATE_RANK else round(chance.random() * EARLY_NS)
            sample = Sample(
                call.call, end_ns - SHORT_NS - early_ns, end_ns, call.communicator, bytes=call.bytes
            )
            if (call.call, call.bytes) in SIGNED:
                sample.signature = SIGNED.index((call.call, call.bytes)) + 1
            if call.call in COLLECTIVES:
                begun[call.communicator] += 1
                sample.sequence = begun[call.communicator]
                sample.root = 0 if call.call == "MPI_Bcast" else None
            if call.towards:
                sample.peer, sample.tag, sample.number = (
                    (world_rank + call.towards) % world_size,
                    call.bytes,
                    step % 65_535 + 1,
                )
            if call.completed_ms:
                sample.completed_ns = begin_ns + call.completed_ms * MS
            if call.call == "MPI_Waitall":
                sample.request_call = "MPI_Irecv"
            yield sample


def rank_write(
    folder: Path, world_size: int, steps: int, has_samples: bool, world_rank: int
) -> None:
    rank = rank_of(world_rank, world_size, steps)
    if not has_samples:
        rank.samples = []
    write_database(folder / f"rank-{world_rank}.db", rank)


def run_write(folder: Path, ranks: int, samples: int, has_samples: bool) -> None:
    folder.mkdir(parents=True)
    write = partial(rank_write, folder, ranks, samples // len(STEP), has_samples)
    with Pool() as pool:
        pool.map(write, range(ranks))


class Cost(NamedTuple):
    first_s: float  # CPU time of the process that was started
    others_s: float  # of those that it has started
    mebibytes: float  # peak memory of the largest one

    @property
    def two_cores_s(self) -> float:
        """Time on two cores without other work: the others run side by side, mostly while the first
        one waits."""
        return self.first_s + self.others_s / 2


def cost(command: tuple[str, ...], folder: Path) -> Cost:
    name, *options = command
    words = [sys.executable, "-c", MEASURED, ROOT / "report", *name.split(), ".", *options]
    process = subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=folder
    )
    *_, times = process.stderr.read().splitlines() or [""]
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"large_run: {name} failed")
    return Cost(*map(float, times.split()), usage.ru_maxrss / 1024)


def goal(command: str, ranks: int, samples: int) -> str:
    if command not in GOALS or samples != GOAL_SAMPLES or ranks < GOAL_RANKS:
        return "-"
    return f"{GOALS[command] * ranks / GOAL_RANKS:.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ranks", type=int, default=512)
    parser.add_argument("--samples", type=int, default=64_000, help="of a rank")
    parser.add_argument("--counters", action="store_true", help="count the samples, write none")
    arguments = parser.parse_args()
    if not arguments.folder.exists():
        run_write(arguments.folder, arguments.ranks, arguments.samples, not arguments.counters)
    print(
        "| command | CPU time, first process, s | others, s | on two cores, s | goal, s "
        f"| peak memory, MiB (goal: {GOAL_MIB:,}) |\n|---|---:|---:|---:|---:|---:|"
    )
    for command in OF_COUNTERS if arguments.counters else COMMANDS:
        found = cost(command, arguments.folder)
        print(
            f"| `{command[0]}` | {found.first_s:.1f} | {found.others_s:.1f} | "
            f"{found.two_cores_s:.1f} | {goal(command[0], arguments.ranks, arguments.samples)} | "
            f"{found.mebibytes:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
