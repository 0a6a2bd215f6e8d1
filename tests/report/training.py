"""Sequences of collectives as training jobs make them, with the truth about their steps. Times
jitter, by a seed of the test's own."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import planted

MS = 1_000_000
MB = 1_000_000


UNSEQUENCED = ("Wait", "Waitall", "Send", "Recv", "File_write_at")


@dataclass
class Made:
    """One call, and the step it belongs to."""

    call: str
    bytes: int
    begin_ns: int
    end_ns: int
    step: int | None = None
    sequence: int | None = 0
    communicator: int = planted.WORLD
    completed_ns: int | None = None
    request_call: str = ""
    pause_ns: int = 0  # since the call before has ended

    @property
    def last_ns(self) -> int:
        return self.completed_ns or self.end_ns


@dataclass
class Job:
    """A clock that runs, and the calls made meanwhile: those of the rank that comes last to all of
    them."""

    seed: int = 1
    now_ns: int = 50 * MS
    made: list[Made] = field(default_factory=list)
    begun: dict[int, int] = field(default_factory=dict)
    random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def compute(self, ns: float, jitter: float = 0.2) -> None:
        self.now_ns += 2 * round(ns / 2 * self.random.lognormvariate(0, jitter))

    def call(
        self,
        name: str,
        message_bytes: int,
        step: int | None = None,
        ns: float | None = None,
        on: int = planted.WORLD,
        request_call: str = "",
    ) -> None:
        begin_ns = self.now_ns
        self.compute(ns if ns is not None else 20_000 + message_bytes / 2)  # 2 GB/s
        sequence = None
        if name not in UNSEQUENCED:
            sequence = self.begun[on] = self.begun.get(on, 0) + 1
        pause_ns = begin_ns - self.made[-1].end_ns if self.made else begin_ns
        which = {"sequence": sequence, "communicator": on, "request_call": request_call}
        times = (begin_ns, self.now_ns)
        self.made.append(
            Made(f"MPI_{name}", message_bytes, *times, step, **which, pause_ns=pause_ns)
        )
        self.compute(2_000)

    @property
    def step_ends(self) -> list[int]:
        ends: dict[int, int] = {}
        for one in self.made:
            if one.step is not None:
                ends[one.step] = max(one.last_ns, ends.get(one.step, 0))
        return list(ends.values())


def marks(job: Job) -> list[planted.Step]:
    """As if the program marked each step."""
    edges = [job.made[0].begin_ns, *job.step_ends]
    times = zip(edges, edges[1:])
    return [planted.Step(number, *own) for number, own in enumerate(times, 1)]


def parameters(job: Job, sizes: list[int]) -> None:
    for size in sizes:
        job.call("Bcast", size)


def ddp(steps: int = 300, seed: int = 1, has_pauses: bool = True) -> Job:
    """Buckets; the first step has others; a metric now and then; every 100 steps a checkpoint, at
    the end an evaluation."""
    job = Job(seed)
    buckets = [4_280_000, 26_214_400, 26_214_400, 26_214_400, 19_000_000]
    parameters(job, [8, *buckets])
    for step in range(steps):
        job.compute(60 * MS)
        sizes = [1_000_000, 30_494_400, 26_214_400, 44_214_400] if step == 0 else buckets
        for size in sizes:
            job.compute(6 * MS)
            job.call("Allreduce", size, step)
        job.compute(4 * MS)
        if step % 10 == 9:
            job.call("Allreduce", 8)
        if has_pauses and step % 100 == 99:
            job.call("Barrier", 0)
            job.call("Gather", 3_000_000)
            job.call("File_write_at", 40_000_000, ns=300 * MS)
            job.compute(600 * MS)
            job.call("Bcast", 4_280_000)
    for _ in range(30 if has_pauses else 0):
        job.compute(30 * MS)
        job.call("Allreduce", 16)
    return job


def equal_layers(steps: int = 200, seed: int = 3, layers: int = 10) -> Job:
    job = Job(seed)
    parameters(job, [2_097_152] * layers)
    for step in range(steps):
        job.compute(20 * MS)
        for _ in range(layers):
            job.compute(2 * MS, 0.3)
            job.call("Allreduce", 2_097_152, step)
    return job


def one_allreduce(steps: int = 300, seed: int = 4, checkpoints: bool = True) -> Job:
    job = Job(seed)
    parameters(job, [40_000_000])
    for step in range(steps):
        job.compute(30 * MS, 0.25)
        job.call("Allreduce", 40_000_000, step)
        if checkpoints and step % 100 == 99:
            job.call("Gather", 10_000_000)
            job.compute(2_000 * MS)
    return job


def zero(steps: int = 150, seed: int = 5) -> Job:
    """Gradients scattered, parameters gathered."""
    job = Job(seed)
    for step in range(steps):
        job.compute(50 * MS)
        for size in (16_777_216, 16_777_216, 9_000_000):
            job.compute(5 * MS)
            job.call("Reduce_scatter", size, step)
        job.compute(3 * MS)
        for size in (8_388_608, 8_388_608, 4_500_000):
            job.call("Allgather", size, step)
    return job


def kmeans(steps: int = 203, seed: int = 6) -> Job:
    job = Job(seed)
    job.call("Bcast", 1_152)
    for step in range(steps):
        job.compute(5 * MS)
        for size in (1_152, 128, 4):
            job.call("Allreduce", size, step)
    return job


def waiting_in_control(steps: int = 203, seed: int = 14) -> Job:
    """k-means on a machine with fewer cores than ranks: after every second step the last value
    comes late."""
    job = Job(seed)
    job.call("Bcast", 1_152)
    for step in range(steps):
        job.compute(0.2 * MS)
        for size in (1_152, 128):
            job.call("Allreduce", size, step, ns=8 * MS)
        job.call("Allreduce", 4, ns=(8 if step % 2 else 0.01) * MS)
    return job


def control_in_flight(steps: int = 100, seed: int = 15) -> Job:
    """A metric of the step before is summed while the network runs forward, and is there after the
    first gradients."""
    job = Job(seed)
    for step in range(steps):
        if step:
            job.call("Iallreduce", 4, ns=3_000)
            in_flight = job.made[-1]
        job.compute(40 * MS)
        job.call("Allreduce", 2_097_152, step)
        if step:
            in_flight.completed_ns = job.now_ns
        job.compute(6 * MS)
        job.call("Allreduce", 4_096_000, step)
    return job


def caffe(steps: int = 120, seed: int = 7) -> Job:
    """Parameters from the root and gradients to it, layer by layer."""
    job = Job(seed)
    layers = [139_392, 1_228_800, 3_538_944, 151_000_000, 67_108_864, 16_384_000]
    for step in range(steps):
        job.compute(12 * MS)
        for size in layers:
            job.call("Bcast", size, step)
        job.compute(90 * MS)
        for size in reversed(layers):
            job.call("Reduce", size, step)
    return job


def nonblocking(steps: int = 200, seed: int = 8) -> Job:
    """Iallreduces, all completed by one Waitall: they end together."""
    job = Job(seed)
    for step in range(steps):
        job.compute(25 * MS)
        first = len(job.made)
        for size in (401_000, 200_000, 500, 96_000):
            job.compute(MS)
            job.call("Iallreduce", size, step, ns=3_000)
        job.compute(4 * MS)
        job.call("Waitall", 401_000, step, ns=2 * MS, request_call="MPI_Iallreduce")
        for one in job.made[first:-1]:
            one.completed_ns = job.made[-1].end_ns
    return job


def transformer(steps: int = 60, seed: int = 9, layers: int = 24) -> Job:
    """Unfused: the tensors of equal layers, and an embedding that is unlike them."""
    job = Job(seed)
    layer = (4_194_304, 4_096, 12_582_912, 12_288, 16_777_216, 16_384)
    parameters(job, [*layer * layers, 200_000_000])
    for step in range(steps):
        job.compute(100 * MS)
        for _ in range(layers):
            for size in layer:
                job.compute(MS)
                job.call("Allreduce", size, step)
        job.call("Allreduce", 200_000_000, step)
    return job


def solver(steps: int = 200, seed: int = 16, norms_every: int = 0) -> Job:
    """Halos in messages, a time step that all agree on; norms now and then, and a checkpoint."""
    job = Job(seed)
    job.call("Bcast", 20_000)
    for step in range(steps):
        for _ in range(4):
            job.call("Send", 65_536, ns=0.2 * MS)
        job.compute(8 * MS)
        job.call("Allreduce", 8, step)
        if norms_every and step % norms_every == norms_every - 1:
            job.compute(MS)
            job.call("Allreduce", 24)
        if step % 100 == 99:
            job.call("File_write_at", 40_000_000, ns=150 * MS)
    return job


def random_mix(calls: int = 600, seed: int = 10) -> Job:
    job = Job(seed)
    for _ in range(calls):
        job.compute(job.random.expovariate(1 / (5 * MS)), 0)
        job.call(
            job.random.choice(["Allreduce", "Bcast", "Allgather"]),
            job.random.choice([65_536, 262_144, 1_048_576, 3_000_000]),
        )
    return job


def poisson(calls: int = 400, seed: int = 11) -> Job:
    """All alike, at random times."""
    job = Job(seed)
    for _ in range(calls):
        job.compute(job.random.expovariate(1 / (20 * MS)), 0)
        job.call("Allreduce", 1_048_576)
    return job


def single_phase(seed: int = 12) -> Job:
    """Parameters handed out, and no more."""
    job = Job(seed)
    parameters(job, [job.random.randint(1_000, 9 * MB) for _ in range(60)])
    return job


JOBS = {  # how a step reads; are its gradients' bytes handed out before?
    "ddp": (ddp, "5 bulk MPI_Allreduce, 102 MB", True),
    "one allreduce": (one_allreduce, "1 bulk MPI_Allreduce, 40.0 MB", True),
    "equal layers": (equal_layers, "10 bulk MPI_Allreduce, 20 MiB", True),
    "zero": (zero, "3 bulk MPI_Reduce_scatter + 3 bulk MPI_Allgather, 63.8 MB", False),
    "k-means": (kmeans, "2 bulk MPI_Allreduce, 1,280 B", False),
    "caffe": (caffe, "6 bulk MPI_Bcast + 6 bulk MPI_Reduce, 479 MB", True),
    "nonblocking": (nonblocking, "4 bulk MPI_Iallreduce, 698 KB", False),
    "transformer": (transformer, "145 bulk MPI_Allreduce, 1.01 GB", True),
    "waiting in control": (waiting_in_control, "2 bulk MPI_Allreduce, 1,280 B", False),
    "control in flight": (control_in_flight, "2 bulk MPI_Allreduce, 6.19 MB", False),
    "solver": (solver, "1 MPI_Allreduce, 8 B", False),
}


def rank_of(
    job: Job,
    world_rank: int = 0,
    world_size: int = 2,
    early: float = 0.0,
    thread: int = 0,
    sampled: Sequence[tuple[int, int]] = (),
) -> planted.Rank:
    """A rank that has come to each call earlier than the last one by a part of the time that it
    computed before, and left it with that one. `sampled`: times outside of which no calls are
    sampled."""
    samples, cells = [], {}
    for one in job.made:
        waits = one.sequence and one.completed_ns is None
        start_ns = one.begin_ns - (2 * round(early * one.pause_ns / 2) if waits else 0)
        cells.setdefault((one.call, one.bytes, one.communicator), []).append(one.end_ns - start_ns)
        if not sampled or any(begin_ns <= one.end_ns < end_ns for begin_ns, end_ns in sampled):
            where = (one.communicator, one.sequence, one.completed_ns, one.bytes)
            more = {"request_call": one.request_call, "thread": thread}
            samples.append(planted.Sample(one.call, start_ns, one.end_ns, *where, **more))
    wall_ns = job.now_ns + 100 * MS
    command = f"python3 train.py --epochs 3 --steps {len(job.step_ends)}"
    communicators = planted.communicators_of(world_rank)
    for known in communicators:
        made = [one for one in job.made if one.communicator == known.communicator and one.sequence]
        known.begun = [planted.Collective(one.call, one.bytes) for one in made]
    if world_size == 2:
        communicators = [dataclasses.replace(communicators[0], members="0-1", size=2)]
    return planted.Rank(
        world_rank,
        world_size,
        wall_ns=wall_ns,
        facts={**planted.facts_of(0), "boot_id": "a1", "time_namespace": "time:[1]"}
        | {"command_line": command},
        communicators=communicators,
        threads=[(0, "python3", 1), *([(thread, "pt_mpi", 0)] if thread else [])],
        cells=[
            planted.Cell(call, size, times, on, thread=thread)
            for (call, size, on), times in cells.items()
        ],
        samples=samples,
        windows=[planted.Window(*times, thread) for times in sampled or [(0, wall_ns)]],
    )
