"""Runs made up for the tests, written as the library would: through schema.sql, and byte by byte as
ledgers.

Nothing here uses the reporter's code, so that a mistake there is not repeated here.
"""

from __future__ import annotations

import os
import re
import sqlite3
import struct
import tarfile
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory

from known_calls import CALLS

ROOT = Path(__file__).resolve().parent.parent.parent
SCHEMA = ROOT / "src" / "output" / "schema.sql"
SECOND = 1_000_000_000
START_NS = 5_000  # on the rank's monotonic clock
CLOCK_TICKS, CLOCK_NS, CLOCK_SCALE = 1_000_000, 7_000, 1 << 31  # two ticks a nanosecond
NO_RANK, BYTES_UNKNOWN = -(1 << 31), (1 << 64) - 1
ANY_SOURCE = -2
START_UNIX_NS = 1_790_000_000 * SECOND
WORLD, SELF, DATA = 2, 3, 4  # a rank's numbers for its communicators
WORLD_IDENTITY, SELF_IDENTITY = 0x1F0AB22D9C7E6A51, 0x8D4A90C1E2F35B70
HALF_IDENTITIES = 0xC3D17E0065FA9B12, 0x0B6E4F7A21D8C395
CALL_NUMBERS = {name: number for number, name in enumerate(CALLS, 1)}
MEASURES = {"call": 0, "completion": 1, "poll": 2, "device": 3, "captured": 4}
MEMORY_KINDS = ("host", "device", "managed", "pinned")
ENDED = {"running": 0, "finalize": 1, "exit": 2, "abort": 3}
BUCKETS = 346
CELL_BYTES, BLOCK_BYTES, BLOCKS = 256, 64, 45
COMMUNICATOR_BYTES, THREAD_BYTES = 768, 128
PAGE_BYTES, PAGE_SAMPLES, REGION_BYTES = 3648, 64, 128
WINDOW_NS, GAP_NS = 1 << 20, 1 << 30
USAGE_BYTES = 208
STRETCH = 10  # bit of a mask: of the numbers of stretches of GAP_NS it is the lowest
OF_THREAD, OF_STREAM, OF_STEPS = 1, 2, 3
GPU_STATES = ("none", "dormant", "tracing", "paused", "yielded", "refused", "stopped")
COUNTERS_FILE = ROOT / "src" / "ledger" / "counters.def"
COUNTERS, GPU_COUNTERS = (
    re.findall(rf"^{macro}\((\w+)\)", COUNTERS_FILE.read_text(), re.M)
    for macro in ("COUNTER", "GPU_COUNTER")
)
ACTIVITY_KINDS = {"kernel": 1, "copy": 2, "memset": 3}
COPIES = ("", "to device", "to host", "on device", "on host", "to peer", "other")
BUSY_BITS = {"C": 1, "K": 2, "D": 4, "M": 8}  # computing, communicating, copying, in MPI
TRACING_ENDED = ("goes on", "duty", "yielded", "off", "stopped", "lost")
ACTIVITY_BYTES, STREAM_BYTES, DEVICE_BYTES, TRACING_BYTES, ALGORITHM_BYTES = 2880, 64, 320, 64, 64
READING_BYTES = CPU_TIME_BYTES = 64
SIGNATURE_BYTES, SAMPLE_BYTES_UNKNOWN = 112, (1 << 48) - 1


def bucket_of(ns: int) -> int:
    """The bucket of ledger_format.h: below 16 ns, eight an octave from 2^4 to 2^40 ns, above."""
    if ns < 16:
        return 0
    octave = ns.bit_length() - 1
    return 1 + (octave - 4) * 8 + ((ns >> (octave - 3)) & 7) if octave < 47 else 345


class Durations:
    """Durations of calls or activities, each met `times` times."""

    bytes: int
    durations: list[int]
    volume_bytes: int | None
    times: int

    @property
    def count(self) -> int:
        return self.times * len(self.durations)

    @property
    def volume(self) -> int:
        return self.bytes * self.count if self.volume_bytes is None else self.volume_bytes

    @property
    def spread(self) -> tuple[int, int, int]:
        """Total, least, most."""
        return (
            self.times * sum(self.durations),
            min(self.durations, default=0),
            max(self.durations, default=0),
        )

    @property
    def buckets(self) -> dict[int, int]:
        counts: dict[int, int] = {}
        for duration in self.durations:
            counts[bucket_of(duration)] = counts.get(bucket_of(duration), 0) + self.times
        return counts


@dataclass
class Cell(Durations):
    call: str
    bytes: int
    durations: list[int]
    communicator: int = WORLD
    measure: str = "call"
    volume_bytes: int | None = None
    blocked_ns: int = 0
    thread: int = 0
    memory_kind: str = "host"
    is_folded: int = 0
    region: int = 0
    times: int = 1


@dataclass
class Collective:
    call: str
    bytes: int | None = 0
    root: int | None = None


@dataclass
class Doing:
    """Call that a thread is in, or has left last."""

    call: str
    since_ns: int = 0  # since the rank's start; even, so that ticks can say it
    is_inside: int = 1
    communicator: int = WORLD
    bytes: int | None = None
    peer: int | None = None
    tag: int | None = None
    request_call: str = ""


@dataclass
class Communicator:
    communicator: int
    identity: int
    members: str
    size: int
    comm_rank: int
    name: str = ""
    constructor: str = ""
    ordinal: int = 0
    parent_identity: int = 0
    remote_size: int = 0
    is_inter: int = 0
    begun: list[Collective] = field(default_factory=list)
    library: str = "mpi"

    @property
    def recent(self) -> dict[int, Collective]:
        """By sequence, those of which a reader can be sure."""
        return {
            sequence: self.begun[sequence - 1]
            for sequence in range(max(1, len(self.begun) - 14), len(self.begun) + 1)
        }


@dataclass
class Sample:
    """A call that was kept. All times since the rank's start are even, so that ticks can say them;
    a kernel of NCCL's lasts a multiple of 16 ns."""

    call: str
    start_ns: int
    end_ns: int
    communicator: int = WORLD
    sequence: int | None = None
    completed_ns: int | None = None
    bytes: int | None = 1_000
    peer: int | None = None
    root: int | None = None
    request_call: str = ""
    region: int = 0
    thread: int = 0
    device_ns: tuple[int, int] | None = None  # of an NCCL operation: its kernel
    is_shared: int = 0
    tag: int | None = None
    number: int | None = None
    signature: int | None = None
    # of a collective on a window or a file: the object, and the collective's number on it
    on_object: tuple[int, int] | None = None
    # unsuccessful polls before it: begin of the first, and how long all lasted
    polled: tuple[int, int] | None = None
    # of a round of a negotiation: tensors offered and agreed on
    agreement: tuple[int, int] | None = None

    @property
    def completed(self) -> int | None:
        return self.device_ns[1] if self.device_ns else self.completed_ns


@dataclass
class Message:
    """A further message of a sampled call, whose times these are."""

    call: str
    direction: str
    start_ns: int
    end_ns: int
    communicator: int = WORLD
    peer: int | None = None
    tag: int | None = None
    number: int | None = None
    bytes: int | None = 1_000
    completed_ns: int | None = None
    thread: int = 0


@dataclass
class Start:
    """The start of a persistent collective by a sampled call, whose times these are."""

    call: str
    operation: int
    number: int
    start_ns: int
    end_ns: int
    communicator: int = WORLD
    root: int | None = None
    bytes: int | None = 1_000
    completed_ns: int | None = None
    thread: int = 0


@dataclass
class Epoch:
    """A partner of a sampled call that opens or closes an epoch of a window, whose times these are;
    peer None: all of them, which are not known."""

    call: str
    start_ns: int
    end_ns: int
    peer: int | None = None
    number: int | None = None
    partners: int = 1
    communicator: int = WORLD
    object: int = 1
    thread: int = 0


@dataclass
class Window:
    """All calls of a thread that returned from here to there are sampled. Ranks given to
    write_ledger must be such as a ledger can hold: one window a thread, to the rank's end."""

    begin_ns: int
    end_ns: int
    thread: int = 0


@dataclass
class Step:
    step: int
    begin_ns: int
    end_ns: int
    thread: int = 0


@dataclass
class Span:
    """A thread was in a region."""

    region: int
    begin_ns: int
    end_ns: int
    thread: int = 0


@dataclass
class Device:
    """A GPU. `busy`: how long it was in which states together, by their letters: computing,
    communicating (K), copying (D), in MPI; {"": 7} is idle."""

    device: int = 1
    busy: dict[str, int] = field(default_factory=dict)
    number: int = 0
    name: str = "NVIDIA H100 80GB HBM3"
    uuid: str = ""
    first_ns: int | None = None  # since the rank's start
    last_ns: int | None = None
    kernels: int = 0
    copies: int = 0
    sets: int = 0
    sms: int | None = None
    communication: tuple[int, int, int] = (0, 0, 0)  # ns of its kernels, ns x SMs, the most SMs
    memory_bytes: int | None = None

    @property
    def states(self) -> dict[int, int]:
        return {
            sum(BUSY_BITS[letter] for letter in letters): ns for letters, ns in self.busy.items()
        }


@dataclass
class CpuTime:
    """A row of table cpu_time. `seen`: readings outside MPI, ready, asleep, and at a disk; inside,
    likewise. `waiting_ns`: None: not known."""

    at_ns: int  # since the rank's start
    core_ns: int
    waiting_ns: int | None = None
    seen: tuple[int, int, int, int, int, int] = (0,) * 6
    thread: int = 0


@dataclass
class Negotiation:
    """A row of table negotiation, of a thread that is not the main one. All times are even."""

    rounds: int
    ahead: tuple[int, int] = (0, 0)  # how many of the rounds, ns
    ahead_moving_ns: int = 0
    idle: tuple[int, int] = (0, 0)
    rounds_by_name: int = 0
    disbelieved: int = 0
    agreed: int = 0
    steps: int = 0
    others_ns: int = 0
    exposed_ns: int = 0
    uncertain_ns: int = 0
    first_ns: int = 2
    last_ns: int = 4
    ahead_since_ns: int | None = None
    last: tuple[int, int] = (0, 0)  # offered and agreed in the last round
    offered_most: int = 0
    words: int = 1
    thread: int = 1
    communicator: int = WORLD
    epoch: int = 0

    @property
    def sums(self) -> tuple[int, ...]:
        return (self.agreed, self.steps, self.others_ns, self.exposed_ns, self.uncertain_ns)


@dataclass
class Place:
    """How often a place of the words of a negotiation was agreed on."""

    place: int
    agreed: int
    thread: int = 1
    communicator: int = WORLD
    epoch: int = 0


@dataclass
class NegotiatedStep:
    """`times_ns`: of the end of the step before; of the first offer; after and before the last
    hand-over; of the agreement on the
    last tensor; when all sums were there."""

    step: int
    times_ns: tuple[int, int, int, int, int, int]
    tensors: int = 28
    thread: int = 1
    communicator: int = WORLD


@dataclass
class Reading:
    """Readings of a device's sensors. `links`: bytes sent and received over NVLink, and over PCIe.
    `limits`: letters of idle, power, heat, slowed down by the hardware; None: not known."""

    at_ns: int  # since the rank's start
    device: int = 1
    clock_mhz: int | None = None
    memory_used_bytes: int | None = None
    links: tuple[int | None, ...] = (None,) * 4
    limits: str | None = None


@dataclass
class Stream:
    """`begin_ns`: from here to the rank's end all its activities were kept; None: table
    gpu_sample_window has nothing of it."""

    stream: int = 1
    device: int = 1
    context: int = 1
    number: int = 7
    begin_ns: int | None = None


@dataclass
class Activity(Durations):
    """Kernels of one name (by number), copies or memsets."""

    durations: list[int]
    kernel: int = 0
    kind: str = "kernel"
    stream: int = 1
    bytes: int = 0  # the size class
    copy: str = ""
    is_graph: int = 0
    is_pageable: int = 0
    is_managed: int = 0
    volume_bytes: int | None = None
    times: int = 1

    @property
    def flags(self) -> int:
        return self.is_graph | self.is_pageable << 1 | self.is_managed << 2


@dataclass
class GpuSample:
    """A single activity. Times since the rank's start are even."""

    start_ns: int
    end_ns: int
    kernel: int = 0
    kind: str = "kernel"
    stream: int = 1
    copy: str = ""
    bytes: int = 0
    is_graph: int = 0
    communicator: int = 0


@dataclass
class Signature:
    """Request of sampled calls."""

    signature: int
    datatype: str = "MPI_FLOAT"
    type_bytes: int | None = 4
    extent: int | None = 4
    blocks: int | None = 1
    count: int | None = 250
    op: str = ""
    is_commutative: int | None = None
    is_in_place: int = 0
    counts_hash: str | None = None
    memory_kind: str = "host"
    buffer_at: int | None = None
    received_at: int | None = None


@dataclass
class Algorithm:
    """How NCCL carried out a collective."""

    call: str
    bytes: int
    algorithm: str
    protocol: str
    channels: int
    count: int
    communicator: int = 0
    is_folded: int = 0


@dataclass
class Tracing:
    """A time in which GPUs were traced, since the rank's start."""

    begin_ns: int
    end_ns: int
    ended: str = "duty"
    clock_error_ns: int | None = 2_000
    records: int = 0
    part: int = 0  # in a ledger


@dataclass
class Rank:
    world_rank: int
    world_size: int
    run_id: str = "job-1"
    start_unix_ns: int = START_UNIX_NS
    start_monotonic_ns: int = START_NS
    wall_ns: int = 10 * SECOND
    end_unix_ns: int | None = None  # None: as far from the start as on the monotonic clock
    pid: int | None = None  # None: 4000 and more
    ended: str = "finalize"
    abort_code: int = 0
    counted_ns: int | None = None  # None: from start to end
    reset_unix_ns: int | None = None
    epoch: int = 0
    folds: tuple[int, int] = (0, 0)
    copied_unix_ns: int = 0
    dropped_calls: int = 0
    dropped_messages: int = 0
    dropped_completions: int = 0
    interrupted_calls: int = 0
    untracked_requests: int = 0
    folded_cells: int = 0
    folded_communicators: int = 0
    cost_init_ns: int = 2_000_000
    cost_finalize_ns: int = 1_000_000
    cost_per_call_ps: int = 25_000
    facts: dict[str, str] = field(default_factory=dict)
    communicators: list[Communicator] = field(default_factory=list)
    threads: list[tuple[int, str, int]] = field(default_factory=lambda: [(0, "python3", 1)])
    doing: dict[int, Doing] = field(default_factory=dict)
    cells: list[Cell] = field(default_factory=list)
    # call, direction, peer, count, bytes, time_ns, communicator (by default 0)
    peers: list[tuple] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    signatures: list[Signature] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    starts: list[Start] = field(default_factory=list)
    epochs: list[Epoch] = field(default_factory=list)
    windows: list[Window] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    regions: dict[int, str] = field(default_factory=dict)
    spans: list[Span] = field(default_factory=list)
    cpu_times: list[CpuTime] = field(default_factory=list)
    negotiations: list[Negotiation] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    negotiated_steps: list[NegotiatedStep] = field(default_factory=list)
    gpu_state: str = "none"
    gpu_epoch: int = 0  # of activities and what devices did; they count if it is `epoch`
    # by column of table rank without gpu_; else 0
    gpu_counts: dict[str, int] = field(default_factory=dict)
    cost_gpu: tuple[int, int] = (0, 0)  # begin, end
    devices: list[Device] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)
    kernels: dict[int, tuple[str, int]] = field(default_factory=dict)  # name, is_communication
    activities: list[Activity] = field(default_factory=list)
    gpu_samples: list[GpuSample] = field(default_factory=list)
    tracings: list[Tracing] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    algorithms: list[Algorithm] = field(default_factory=list)
    window_mask: int = 0
    record: tuple[int, int] | None = None  # its first and last window
    record_asked_ns: int | None = None
    record_is_full: int = 0

    @property
    def record_columns(self) -> tuple[int | None, ...]:
        """The columns of table `rank`, with the mask that readers hold against it."""
        first, last = self.record or (0, 0)
        begin_ns = first * WINDOW_NS - self.start_unix_ns
        end_ns = max(begin_ns, min((last + 1) * WINDOW_NS - self.start_unix_ns, self.wall_ns))
        span = (begin_ns, end_ns) if self.record else (None, None)
        return (self.window_mask, *span, self.record_asked_ns, self.record_is_full)

    def counters(self, names: list[str]) -> list[int]:
        """The values of the ledger's counters; 0 for one that no test is about."""
        begin_ns, end_ns = self.cost_gpu
        of_gpu = {
            "cost_gpu_begin_ns": begin_ns,
            "cost_gpu_end_ns": end_ns,
            **{f"gpu_{name}": count for name, count in self.gpu_counts.items()},
        }
        return [of_gpu.get(name, getattr(self, name, 0)) for name in names]

    @property
    def process(self) -> int:
        return 4_000 + self.world_rank if self.pid is None else self.pid

    @property
    def has_ended(self) -> bool:
        return self.ended != "running"

    @property
    def end(self) -> int:
        return self.start_unix_ns + self.wall_ns if self.end_unix_ns is None else self.end_unix_ns

    @property
    def all_facts(self) -> dict[str, str]:
        return {"run_id": self.run_id, **self.facts}


def offsets(layout) -> dict[str, int]:
    """By field of a struct of the ledger."""
    return {name: layout.dtype.fields[name][1] for name in layout.dtype.names}


def facts_of(world_rank: int) -> dict[str, str]:
    return {
        "host": f"node{world_rank // 2:02d}",
        "program": "python3",
        "command_line": "python3 train.py --epochs 3",
        "working_directory": "/home/ada/net",
        "mpi_library": "/usr/lib/x86_64-linux-gnu/libmpi.so.40",
        "mpi_version": "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4",
        "mpi_abi": "Open MPI",
        "clock": "processor counter",
        "commprof_version": "0.1",
        "settings.COMMPROF_OUTPUT": "run",
        "env.OMPI_COMM_WORLD_SIZE": "4",
    }


def communicators_of(world_rank: int) -> list[Communicator]:
    """World, self, and one of two halves."""
    half = world_rank // 2
    begun = training_collectives()
    pair = (HALF_IDENTITIES[half % 2] + half // 2, f"{2 * half}-{2 * half + 1}", 2, world_rank % 2)
    made = {"constructor": "MPI_Comm_split", "parent_identity": WORLD_IDENTITY}
    return [
        Communicator(WORLD, WORLD_IDENTITY, "0-3", 4, world_rank, "MPI_COMM_WORLD", begun=begun),
        Communicator(SELF, SELF_IDENTITY, str(world_rank), 1, 0, name="MPI_COMM_SELF"),
        Communicator(DATA, *pair, **made),
    ]


def training_collectives() -> list[Collective]:
    """The first of all that the planted run has begun on MPI_COMM_WORLD."""
    return [Collective("MPI_Bcast", 1 << 20, 0), Collective("MPI_Alltoallv", None)] + [
        Collective("MPI_Allreduce", 1_000)
    ] * 20


def training_run() -> list[Rank]:
    """Four ranks; rank 3 always comes last, so its Allreduces are shortest. Every number is chosen,
    none is random."""
    return [training_rank(world_rank) for world_rank in range(4)]


def training_rank(world_rank: int) -> Rank:
    wait_ns = (3 - world_rank) * 1_000_000
    bcast_bytes = (4 << 20) if world_rank == 0 else 0
    cells = [
        Cell("MPI_Init_thread", 0, [300_000_000], communicator=0),
        Cell("MPI_Allreduce", 4 << 20, [2_000_000 + wait_ns] * 100),
        Cell("MPI_Allreduce", 1_000, [20_000 + 100 * step for step in range(50)]),
        Cell("MPI_Allreduce", 1_000, [30_000] * 10, thread=1),
        Cell("MPI_Bcast", 1 << 20, [1_000_000] * 4, volume_bytes=bcast_bytes),
        Cell("MPI_Allgather", 256, [50_000] * 8, communicator=DATA),
        Cell("MPI_Alltoallv", 512 + 512 * world_rank, [80_000] * 2),
        Cell("MPI_Iallreduce", 65_536, [1_500] * 20, communicator=DATA),
        Cell("MPI_Iallreduce", 65_536, [400_000] * 20, DATA, "completion", 0, 2_000_000),
        Cell("MPI_Wait", 0, [100_000] * 20, communicator=0),
        Cell("MPI_Test", 0, [500] * 5, communicator=0),
        Cell("MPI_Test", 0, [200] * 995, communicator=0, measure="poll"),
        Cell("MPI_Send", 8_192, [5_000] * 30),
        Cell("MPI_Recv", 8_192, [9_000] * 30, volume_bytes=0),
    ]
    right, left = (world_rank + 1) % 4, (world_rank - 1) % 4
    at = 3 * SECOND
    start = {"root": 0, "completed_ns": at + 6_000}
    return Rank(
        world_rank,
        4,
        facts=facts_of(world_rank),
        communicators=communicators_of(world_rank),
        threads=[(0, "python3", 1), (1, "pt_mpi", 0)],
        doing={0: Doing("MPI_Recv", 9 * SECOND, 0, bytes=8_192, peer=left, tag=7)},
        cells=cells,
        peers=[
            ("MPI_Send", "sent", right, 30, 30 * 8_192, 150_000),
            ("MPI_Recv", "received", left, 30, 30 * 8_192, 270_000),
        ],
        samples=training_samples(world_rank),
        signatures=training_signatures(),
        messages=[training_message(world_rank)],
        starts=[Start("MPI_Bcast_init", 1, 3, at, at + 4_000, **start)],
        epochs=[Epoch("MPI_Win_post", at + 7_000, at + 8_000, peer=0, number=1)],
        windows=[Window(400_000_000, 10 * SECOND, 0), Window(500_000_000, 10 * SECOND, 1)],
        steps=[Step(step, step * 500_000_000, (step + 1) * 500_000_000) for step in range(1, 19)],
        regions={1: "epoch", 2: "epoch/forward"},
        spans=[Span(1, SECOND, 9 * SECOND), Span(2, SECOND, 5 * SECOND)],
    )


def training_samples(world_rank: int) -> list[Sample]:
    """A Bcast; twenty Allreduces half a second apart, into which rank 3 comes last and which all
    leave together; a Wait for each of two nonblocking ones; and a message to the right."""
    wait_ns = (3 - world_rank) * 1_000_000
    samples = [Sample("MPI_Bcast", 500_000_000, 501_000_000, sequence=1, bytes=1 << 20, root=0)]
    for step in range(1, 19):
        end_ns = step * 500_000_000 + 102_000_000 + 3_000_000
        what = {"sequence": 2 + step, "bytes": 1_000, "region": 1, "signature": 1}
        samples.append(Sample("MPI_Allreduce", end_ns - 2_000_000 - wait_ns, end_ns, **what))
    for step in (1, 2):
        at_ns = step * 500_000_000 + 200_000_000
        end_ns = at_ns + 400_000
        what = {"bytes": 65_536, "thread": 1}
        waited = {**what, "request_call": "MPI_Iallreduce"}
        samples += [
            Sample("MPI_Iallreduce", at_ns, at_ns + 1_500, DATA, step, end_ns, **what),
            Sample("MPI_Wait", at_ns + 300_000, end_ns, DATA, **waited),
        ]
    what = {"peer": (world_rank + 1) % 4, "tag": 7, "number": 20, "bytes": 8_192, "signature": 2}
    return [*samples, Sample("MPI_Send", 3 * SECOND, 3 * SECOND + 5_000, **what)]


def training_signatures() -> list[Signature]:
    """The Allreduces' and the message's; and one of many types."""
    types = {"type_bytes": None, "extent": None, "blocks": None, "count": None}
    return [
        Signature(1, op="MPI_SUM", is_commutative=1, is_in_place=1),
        Signature(2, "vector", 16, 56, 4, 512, memory_kind="device>host", received_at=1 << 46),
        Signature(3, "", op="user", is_commutative=0, counts_hash="00000000000000ff", **types),
    ]


def training_message(world_rank: int) -> Message:
    """A persistent receive from the left."""
    at = 3 * SECOND
    what = {"peer": (world_rank - 1) % 4, "tag": 7, "number": 20, "bytes": 8_192}
    return Message("MPI_Recv_init", "received", at, at + 4_000, completed_ns=at + 6_000, **what)


NCCL = 5
NCCL_IDENTITY = 0x5C0FFEE05C0FFEE0
GEMM = "_Z16ampere_sgemm_128ILi32EEvPfS0_i"
ALL_REDUCE = "_Z40ncclDevKernel_AllReduce_Sum_f32_RING_LLv"


def gpu_run() -> list[Rank]:
    """The training run, whose ranks have a GPU each: they compute, reduce gradients with NCCL, and
    copy through the host for MPI."""
    return [gpu_rank(world_rank) for world_rank in range(4)]


def gpu_rank(world_rank: int) -> Rank:
    """Twenty steps: 200 ms of GEMM, of whose last 50 ms are beside an AllReduce of 80 ms; a copy to
    the host of 10 ms; 10 ms of it inside MPI_Allreduce. Rank 0's kernel of a group of two is
    shared."""
    rank = training_rank(world_rank)
    begun = [Collective("ncclAllReduce", 16 << 20)] * 20
    made = {"constructor": "ncclCommInitRank", "begun": begun, "library": "nccl"}
    rank.communicators.append(Communicator(NCCL, NCCL_IDENTITY, "", 4, world_rank, **made))
    reduced, device = ("ncclAllReduce", 16 << 20), {"memory_kind": "device"}
    rank.cells += [
        Cell("ncclCommInitRank", 0, [90_000_000], NCCL),
        Cell(*reduced, [8_000], NCCL, times=20, **device),
        Cell(*reduced, [80_000_000], NCCL, "device", times=20, **device),
        Cell(*reduced, [7_000], NCCL, "captured", **device),
        Cell("MPI_Allreduce", 2 << 20, [10_000_000], memory_kind="device>host", times=20),
    ]
    rank.gpu_state, rank.cost_gpu = "stopped", (5_000_000, 70_000_000)
    rank.gpu_counts = {"records": 60, "memory_kind_queries": 3}
    busy_ms = {"C": 3_000, "CK": 1_000, "K": 600, "DM": 200, "": 5_000}
    busy = {states: ms * 1_000_000 for states, ms in busy_ms.items()}
    own = {"first_ns": 100_000_000, "last_ns": 9_900_000_000, "kernels": 40, "copies": 20}
    own |= {"communication": (1_600_000_000, 16 * 1_600_000_000, 16), "sms": 132}
    rank.devices = [Device(busy=busy, uuid=f"GPU-{world_rank}", memory_bytes=80 << 30, **own)]
    rank.cpu_times = [CpuTime(10, 0, 0), CpuTime(20, 7, 2, (1, 0, 0, 2, 3, 0))]
    sums = (280, 9, 70, 90, 10, 1_000, 2_000, 1_500, (3, 2), 28)
    rank.negotiations = [
        Negotiation(90, (50, 600), 400, (20, 300), 5, 1, *sums),
        Negotiation(0, disbelieved=3, thread=0, communicator=0),
    ]
    rank.places = [Place(3, 9), Place(64, 8), Place(65_535, 1, 0)]
    rank.negotiated_steps = [NegotiatedStep(2, (6, 10, 20, 30, 40, 50))]
    for second in range(1, 10):
        links = tuple(second << bits for bits in (30, 29, 20, 19))
        rank.readings.append(Reading(second * SECOND, 1, 1_980, 61 << 30, links, ""))
    rank.streams = [Stream(1, begin_ns=0), Stream(2, number=13, begin_ns=400_000_000)]
    rank.kernels = {1: (GEMM, 0), 2: (ALL_REDUCE, 1)}
    copy = {"kind": "copy", "copy": "to host"}
    rank.activities = [
        Activity([200_000_000], 1, times=20),
        Activity([80_000_000], 2, stream=2, times=20, is_graph=1),
        Activity([10_000_000], bytes=2 << 20, times=20, is_pageable=1, **copy),
    ]
    rank.tracings = [Tracing(0, 9_800_000_000, "stopped", records=60)]
    rank.algorithms = [Algorithm("ncclAllReduce", 16 << 20, "RING", "SIMPLE", 16, 20, NCCL)]
    for step in range(1, 19):
        at = step * 500_000_000
        kernel_ns = (at + 150_000_000, at + 230_000_000)
        what = {"bytes": 16 << 20, "device_ns": kernel_ns}
        what["is_shared"] = int(world_rank == 0 and step == 1)
        rank.samples.append(Sample("ncclAllReduce", at + 20_000, at + 28_000, NCCL, step, **what))
        rank.gpu_samples += [
            GpuSample(at, at + 200_000_000, 1),
            GpuSample(*kernel_ns, 2, stream=2, communicator=NCCL, is_graph=1),
            GpuSample(at + 240_000_000, at + 250_000_000, bytes=(2 << 20) - 8, **copy),
        ]
    return rank


def process_facts(pid: int) -> dict[str, str]:
    """Facts that the library records of a process of this machine."""
    start = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return {
        "boot_id": boot_id,
        "pid_namespace": os.readlink("/proc/self/ns/pid"),
        "process_start": start,
    }


def write_databases(folder: Path, ranks: list[Rank]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for rank in ranks:
        write_database(folder / f"rank-{rank.world_rank}.db", rank)
    return folder


def write_ledgers(folder: Path, ranks: list[Rank]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for rank in ranks:
        write_ledger(folder / f"rank-{rank.world_rank}.ledger", rank)
    return folder


def archive(run: Path, name: str, ranks: range) -> Path:
    """Moves databases of ranks into a node's archive, as any tar writes it."""
    with tarfile.open(run / name, "w", format=tarfile.USTAR_FORMAT) as tar:
        for path in (run / f"rank-{rank}.db" for rank in ranks):
            tar.add(path, path.name)
            path.unlink()
    return run / name


def execute(path: Path, statements: str) -> None:
    """Changes a database, whatever its schema forbids."""
    connection = sqlite3.connect(path)
    connection.executescript(
        f"PRAGMA synchronous = OFF; PRAGMA ignore_check_constraints = ON; {statements}"
    )
    connection.close()


@lru_cache
def empty_database(page_bytes: int) -> bytes:
    """The tables of schema.sql without a row: copied, not made for each file."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "empty.db"
        connection = sqlite3.connect(path)
        connection.executescript(
            f"PRAGMA page_size = {page_bytes}; BEGIN; {SCHEMA.read_text()}; COMMIT"
        )
        connection.close()
        return path.read_bytes()


def write_database(path: Path, rank: Rank) -> Path:
    path.write_bytes(empty_database(512))
    connection = sqlite3.connect(path)
    connection.executescript("PRAGMA synchronous = OFF; PRAGMA ignore_check_constraints = ON;")
    for table, rows in rows_of(rank).items():
        if rows:
            connection.executemany(
                f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows
            )
    connection.commit()
    connection.close()
    return path


# tables whose rows are objects of a rank: the columns are their fields
ROWS = {
    "sample_message": "messages",
    "sample_start": "starts",
    "sample_epoch": "epochs",
    "signature": "signatures",
    "negotiated_place": "places",
    "sample_window": "windows",
    "step": "steps",
    "region_span": "spans",
    "gpu_stream": "streams",
    "nccl_algorithm": "algorithms",
    "gpu_tracing": "tracings",
    "gpu_sample": "gpu_samples",
}


@lru_cache
def fields_of(table: str) -> attrgetter:
    """By the columns after the rank's."""
    connection = sqlite3.connect(":memory:")
    connection.executescript(SCHEMA.read_text())
    return attrgetter(*[row[1] for row in connection.execute(f"PRAGMA table_info({table})")][1:])


def rows_of(rank: Rank) -> dict[str, list[tuple]]:
    own = rank.world_rank
    return {
        "rank": [rank_row(rank)],
        "fact": [(own, key, value) for key, value in rank.all_facts.items()],
        "thread": [thread_row(rank, *thread) for thread in rank.threads],
        "call": list(CALLS.values()),
        "communicator": [communicator_row(own, known) for known in rank.communicators],
        "recent_collective": [
            (own, known.communicator, sequence, one.call, one.bytes, one.root)
            for known in rank.communicators
            for sequence, one in known.recent.items()
        ],
        "cell": [cell_row(number, own, cell) for number, cell in enumerate(rank.cells, 1)],
        "bucket": bucket_rows(rank.cells),
        # a communicator may be left out: 0
        "peer": [(own, *peer[:2], *(peer[6:] or (0,)), *peer[2:6]) for peer in rank.peers],
        "sample": [sample_row(own, sample) for sample in rank.samples],
        "region": [(own, region, name) for region, name in rank.regions.items()],
        "cpu_time": [
            (own, one.thread, one.at_ns, one.core_ns, one.waiting_ns, *one.seen)
            for one in rank.cpu_times
        ],
        "negotiation": [negotiation_row(own, one) for one in rank.negotiations],
        "negotiated_step": [
            (own, one.thread, one.communicator, one.step, one.tensors, *one.times_ns)
            for one in rank.negotiated_steps
        ],
        **{
            table: [(own, *fields_of(table)(one)) for one in getattr(rank, objects)]
            for table, objects in ROWS.items()
        },
        **gpu_rows(rank),
    }


def rank_row(rank: Rank) -> tuple:
    end = (rank.end, rank.wall_ns) if rank.has_ended else (None, None)
    counted_ns = rank.wall_ns if rank.counted_ns is None else rank.counted_ns
    process = (rank.world_rank, rank.world_size, rank.run_id, rank.process, 3)
    times = (rank.start_unix_ns, rank.start_monotonic_ns, *end, counted_ns, rank.reset_unix_ns)
    counts = (rank.ended, rank.abort_code, *rank.counters(COUNTERS), 0, *rank.record_columns)
    return (*process, *times, *counts, rank.gpu_state, *rank.counters(GPU_COUNTERS))


def counts_of(counted: Durations) -> list[int]:
    met = counted.buckets
    return [met.get(bucket, 0) for bucket in range(BUCKETS)]


def bucket_rows(counted: list[Durations]) -> list[tuple]:
    return [
        (number, *bucket) for number, one in enumerate(counted, 1) for bucket in one.buckets.items()
    ]


def gpu_rows(rank: Rank) -> dict[str, list[tuple]]:
    own = rank.world_rank
    return {
        "gpu_device": [device_row(own, device) for device in rank.devices],
        "gpu_reading": [reading_row(own, reading) for reading in rank.readings],
        "gpu_busy": [
            (own, device.device, *(int(state & bit != 0) for bit in BUSY_BITS.values()), ns)
            for device in rank.devices
            for state, ns in device.states.items()
        ],
        "gpu_kernel": [(own, kernel, *about) for kernel, about in rank.kernels.items()],
        "gpu_activity": [
            activity_row(number, own, one) for number, one in enumerate(rank.activities, 1)
        ],
        "gpu_bucket": bucket_rows(rank.activities),
        "gpu_sample_window": [
            (own, one.stream, one.begin_ns, rank.wall_ns)
            for one in rank.streams
            if one.begin_ns is not None
        ],
    }


def device_row(own: int, device: Device) -> tuple:
    about = (device.number, device.name, device.uuid, device.first_ns, device.last_ns)
    occupied = (device.sms, *device.communication, device.memory_bytes)
    return (own, device.device, *about, device.kernels, device.copies, device.sets, *occupied)


def reading_row(own: int, reading: Reading) -> tuple:
    levels = (reading.clock_mhz, reading.memory_used_bytes, *reading.links)
    limits = (
        None if reading.limits is None else int(letter in reading.limits) for letter in "iphs"
    )
    return (own, reading.device, reading.at_ns, *levels, *limits)


def activity_row(number: int, own: int, activity: Activity) -> tuple:
    flags = (activity.is_graph, activity.is_pageable, activity.is_managed)
    key = (activity.stream, activity.kind, activity.kernel, activity.copy, *flags, activity.bytes)
    return (number, own, *key, activity.count, activity.volume, *activity.spread)


def thread_row(rank: Rank, thread: int, name: str, is_main: int) -> tuple:
    row = (rank.world_rank, thread, 4_000 + thread, name, is_main)
    if thread not in rank.doing:
        return (*row, "", 0, 0, 0, None, None, None, "")
    doing = rank.doing[thread]
    where = (doing.call, doing.communicator, doing.is_inside, doing.since_ns)
    return (*row, *where, doing.bytes, doing.peer, doing.tag, doing.request_call)


def communicator_row(world_rank: int, known: Communicator) -> tuple:
    parent = f"{known.parent_identity:016x}" if known.parent_identity else None
    made = (f"{known.identity:016x}", parent, known.name, known.constructor, known.ordinal)
    size = (known.size, known.remote_size, known.comm_rank, known.members, known.is_inter, 0)
    return (world_rank, known.communicator, *made, *size, len(known.begun), known.library)


def sample_row(own: int, sample: Sample) -> tuple:
    names = (
        "thread call communicator sequence start_ns end_ns completed bytes peer root request_call"
    )
    on_device = (*sample.device_ns, sample.is_shared) if sample.device_ns else (None, None, None)
    last = (*on_device, sample.tag, sample.number, sample.signature)
    for pair in (sample.on_object, sample.polled, sample.agreement):
        last += pair or (None, None)
    return (own, *attrgetter(*names.split())(sample), sample.region, *last)


def negotiation_row(own: int, one: Negotiation) -> tuple:
    rounds = (one.rounds, one.ahead[0], one.idle[0], one.rounds_by_name, one.disbelieved)
    times = (one.ahead[1], one.ahead_moving_ns, one.idle[1], one.offered_most)
    last = (one.first_ns, one.last_ns, *one.last, one.ahead_since_ns)
    return (own, one.thread, one.communicator, one.words, *rounds, *times, *one.sums, *last)


def cell_row(number: int, world_rank: int, cell: Cell) -> tuple:
    names = "thread call communicator bytes measure memory_kind region is_folded count volume"
    key = attrgetter(*names.split())(cell)
    return (number, world_rank, *key, *cell.spread, cell.blocked_ns)


def write_ledger(path: Path, rank: Rank) -> Path:
    path.write_bytes(ledger_bytes(rank))
    return path


def ledger_bytes(rank: Rank) -> bytes:
    chunks = [*ledger_facts(rank), *ledger_calls(), *ledger_communicators(rank)]
    for thread, _, _ in rank.threads:
        entries = [ledger_cell(cell) for cell in rank.cells if cell.thread == thread]
        chunks += ledger_cell_chunks(entries, thread)
    names = rank.regions.items()
    for kind, entry_bytes, entries in (
        (5, 32, [ledger_peer(*peer) for peer in rank.peers]),
        (6, THREAD_BYTES, [ledger_thread_of(rank, *thread) for thread in rank.threads]),
        (7, PAGE_BYTES, ledger_pages(rank)),
        (8, REGION_BYTES, [struct.pack("<2I120s", at, 0, name.encode()) for at, name in names]),
        (15, SIGNATURE_BYTES, [ledger_signature(one) for one in rank.signatures]),
    ):
        chunks += ledger_chunks(kind, entry_bytes, entries)
    chunks += ledger_gpu(rank)
    return ledger_header(rank, len(chunks)) + b"".join(chunks)


def ledger_header(rank: Rank, chunk_count: int) -> bytes:
    own = rank.world_rank
    end = (rank.end, rank.start_monotonic_ns + rank.wall_ns) if rank.has_ended else (0, 0)
    counting = (0, rank.start_monotonic_ns) if rank.counted_ns is None else (rank.counted_ns, 0)
    sizes = (4096, 65536, 64, CELL_BYTES, BUCKETS, chunk_count)
    reset = (rank.reset_unix_ns or 0, rank.epoch, 0, rank.window_mask, 0, 0)
    gpu = rank.counters(GPU_COUNTERS)
    state = (GPU_STATES.index(rank.gpu_state), rank.gpu_epoch)
    record = (*(rank.record or (0, 0)), rank.record_is_full, rank.record_asked_ns or 0)
    parts = (
        ("8I", 11, *sizes, ENDED[rank.ended]),
        ("2iq2i", own, rank.world_size, rank.process, 3, rank.abort_code),
        ("4q", rank.start_unix_ns, rank.start_monotonic_ns, *end),
        ("QqQ", CLOCK_TICKS, clock_ns(rank), CLOCK_SCALE),
        ("3q2I3Q", *counting, *reset),
        ("2Q", len(rank.steps), 0),
        ("2Qq", *rank.folds, rank.copied_unix_ns),
        (f"{len(COUNTERS)}Qq", *rank.counters(COUNTERS), 0),
        (f"2I{len(gpu)}Q", *state, *gpu),
        (f"{2 * USAGE_BYTES + 16}x4Q", *record),
    )
    header = b"".join(struct.pack("<" + form, *values) for form, *values in parts)
    return (b"commprof-ledger\n" + header).ljust(4096, b"\0")


def clock_ns(rank: Rank) -> int:
    return rank.start_monotonic_ns + CLOCK_NS - START_NS


def ticks_at(ns: int) -> int:
    """Ticks at a time since the rank's start."""
    return CLOCK_TICKS + 2 * (ns + START_NS - CLOCK_NS)


def ledger_chunks(
    kind: int, entry_bytes: int, entries: list[bytes], thread: int = 0
) -> list[bytes]:
    """As many chunks as the entries need."""
    fit = (65536 - 64) // entry_bytes
    parts = [entries[at : at + fit] for at in range(0, len(entries), fit)]
    return [ledger_chunk(kind, entry_bytes, len(part), b"".join(part), thread) for part in parts]


def ledger_chunk(kind: int, entry_bytes: int, used: int, data: bytes, thread: int = 0) -> bytes:
    return (struct.pack("<4I48x", kind, entry_bytes, used, thread) + data).ljust(65536, b"\0")


def ledger_facts(rank: Rank) -> list[bytes]:
    data = b""
    for fact in rank.all_facts.items():
        key, value = (text.encode() for text in fact)
        entry = struct.pack("<2I", len(key), len(value)) + key + value
        data += entry.ljust((len(entry) + 7) // 8 * 8, b"\0")
    return [ledger_chunk(2, 1, len(data), data)]


def ledger_calls() -> list[bytes]:
    form = "<I36s16s8s12s16s20s"
    entries = [
        struct.pack(form, CALL_NUMBERS[call.name], *(text.encode() for text in call))
        for call in CALLS.values()
    ]
    return ledger_chunks(1, 112, entries)


def ledger_communicators(rank: Rank) -> list[bytes]:
    entries = [ledger_communicator(known) for known in rank.communicators]
    return ledger_chunks(3, COMMUNICATOR_BYTES, entries)


def ledger_communicator(known: Communicator) -> bytes:
    made_by = CALL_NUMBERS.get(known.constructor, 0)
    flags = known.is_inter | (known.library == "nccl") << 2
    numbers = struct.pack("<2Q2I", known.identity, known.parent_identity, known.communicator, flags)
    size = (known.size, known.remote_size, known.comm_rank)
    numbers += struct.pack("<3i3I", *size, made_by, known.ordinal, 0)
    names = struct.pack("<128s328s", known.name.encode(), known.members.encode())
    recent = bytearray(16 * 16)
    for place, one in enumerate(known.begun):
        entry = (unknown(one.bytes), CALL_NUMBERS[one.call], no_rank(one.root))
        struct.pack_into("<QIi", recent, place % 16 * 16, *entry)
    return numbers + names + struct.pack("<Q", len(known.begun)) + recent


def unknown(message_bytes: int | None) -> int:
    return BYTES_UNKNOWN if message_bytes is None else message_bytes


def no_rank(rank: int | None) -> int:
    return NO_RANK if rank is None else rank


def ledger_cell_chunks(cells: list[bytes], thread: int = 0) -> list[bytes]:
    """Chunks of cells, the blocks of each chunk's cells at its end."""
    chunks, whole = [], BLOCKS * BLOCK_BYTES
    while cells:
        room, heads, blocks = 65536 - 64, [], b""
        while cells and room >= CELL_BYTES + whole:
            cell, *cells = cells
            counts = (bytes(BLOCK_BYTES - 8) + cell[BLOCK_BYTES:]).ljust(whole, b"\0")
            places = []
            for at in range(0, whole, BLOCK_BYTES):
                block = counts[at : at + BLOCK_BYTES]
                blocks = block + blocks if any(block) else blocks
                place = 65536 - 64 - len(blocks) - len(heads) * CELL_BYTES
                places.append(place if any(block) else 0)
            last = (BLOCKS, 0, cell[56:64], *places, len(heads) + 1)
            heads.append(cell[:56] + struct.pack(f"<Ii8s{BLOCKS}iI", *last))
            room = 65536 - 64 - len(heads) * CELL_BYTES - len(blocks)
        data = b"".join(heads).ljust(65536 - 64 - len(blocks), b"\0") + blocks
        chunks.append(ledger_chunk(4, CELL_BYTES, len(heads), data, thread))
    return chunks


def ledger_cell(cell: Cell, live: int = 1) -> bytes:
    """A cell's fields before its blocks, and its buckets; see ledger_cell_chunks."""
    flags = MEASURES[cell.measure] | cell.is_folded << 4
    where = (CALL_NUMBERS[cell.call], cell.communicator, cell.region)
    key = (cell.bytes, *where, flags, memory_kind_of(cell.memory_kind))
    sums = (*cell.spread, cell.volume, cell.blocked_ns, live)
    return struct.pack(f"<Q3H2B6Q{BUCKETS}Q", *key, *sums, *counts_of(cell))


def memory_kind_of(kind: str) -> int:
    sent, _, received = kind.partition(">")
    return MEMORY_KINDS.index(sent) | MEMORY_KINDS.index(received or sent) << 4


def ledger_peer(
    call: str,
    direction: str,
    peer: int,
    count: int,
    volume_bytes: int,
    time_ns: int,
    communicator: int = 0,
) -> bytes:
    where = communicator << 4 | (direction == "received")
    return struct.pack("<iHH3Q", peer, CALL_NUMBERS[call], where, count, volume_bytes, time_ns)


def ledger_thread_of(rank: Rank, thread: int, name: str, is_main: int) -> bytes:
    since = [ticks_at(window.begin_ns) for window in rank.windows if window.thread == thread]
    doing, ticks = rank.doing.get(thread), min(since, default=0)
    return ledger_thread(thread, name, is_main, 0, doing, rank.epoch, ticks)


def ledger_thread(
    thread: int,
    name: str,
    is_main: int,
    folding: int = 0,
    doing: Doing | None = None,
    epoch: int = 0,
    sampled_since_ticks: int = 0,
) -> bytes:
    entry = ledger_doing(doing) if doing else bytes(32)
    about = (thread, is_main, 4_000 + thread, epoch, 0, folding, name.encode())
    return entry + struct.pack("<Q24x2Iq2IQ16s16x", sampled_since_ticks, *about)


def ledger_doing(doing: Doing) -> bytes:
    packed = CALL_NUMBERS[doing.call] | doing.communicator << 16 | doing.is_inside << 32
    packed |= CALL_NUMBERS.get(doing.request_call, 0) << 48
    what = (unknown(doing.bytes), no_rank(doing.peer), no_rank(doing.tag))
    return struct.pack("<3Q2i", packed, ticks_at(doing.since_ns), *what)


def ledger_pages(rank: Rank) -> list[bytes]:
    """Samples by their owners and places: of a thread or a stream in their order, of the steps by
    number."""
    pages: dict[tuple[int, int], dict[int, bytes]] = {}
    of_threads = (
        (rank.samples, ledger_sample),
        (rank.messages, ledger_message),
        (rank.starts, ledger_start),
        (rank.epochs, ledger_epoch),
        (rank.spans, ledger_span),
    )
    for entries, packed in of_threads:
        for one in entries:
            page_add(pages, OF_THREAD | one.thread << 8, packed(one))
    for step in rank.steps:
        page, place = divmod(step.step - 1, PAGE_SAMPLES)
        pages.setdefault((OF_STEPS, page), {})[place] = ledger_span(step)
    for activity in rank.gpu_samples:
        page_add(pages, OF_STREAM | activity.stream << 8, ledger_gpu_sample(activity))
    first = rank.start_unix_ns // WINDOW_NS
    return [
        ledger_page(owner, number if owner == OF_STEPS else first, samples)
        for (owner, number), samples in pages.items()
    ]


def page_add(pages: dict, owner: int, entry: bytes) -> None:
    number = 0
    while len(samples := pages.setdefault((owner, number), {})) == PAGE_SAMPLES:
        number += 1
    samples[len(samples)] = entry


def end_of_gap(start_unix_ns: int, until_ns: int) -> int:
    """The last window of the rest of a second without room."""
    return ((start_unix_ns + until_ns) // GAP_NS + 1) * GAP_NS // WINDOW_NS - 1


def ledger_page(owner: int, first: int, samples: dict[int, bytes]) -> bytes:
    entries = b"".join(samples.get(place, bytes(56)) for place in range(PAGE_SAMPLES))
    return struct.pack("<2Q48x", owner, first % (1 << 64)) + entries


def ledger_sample(sample: Sample) -> bytes:
    completed_ticks = 0 if sample.completed is None else ticks_at(sample.completed)
    times = (ticks_at(sample.start_ns), ticks_at(sample.end_ns), completed_ticks)
    sequence = sample.sequence or 0
    if sample.on_object:
        sequence = 1 << 61 | sample.on_object[0] << 40 | sample.on_object[1]
    peer = no_rank(sample.root if sequence else sample.peer)
    call_and_flags = CALL_NUMBERS[sample.call]
    if sample.polled:
        call_and_flags |= 8 << 12
        times, sequence = (*times[:2], ticks_at(sample.polled[0])), 2 * sample.polled[1]
    form, place, last = "I", sample.thread, CALL_NUMBERS.get(sample.request_call, 0)
    if sample.tag is not None or sample.number is not None:
        call_and_flags |= 1 << 12
        form, place, last = "i", sample.number or 0, no_rank(sample.tag)
    elif sample.agreement:
        call_and_flags |= 2 << 12
        last = sample.agreement[0] | sample.agreement[1] << 16
    elif sample.device_ns and sample.device_ns[1] > sample.device_ns[0]:
        last = (sample.device_ns[1] - sample.device_ns[0]) // 16 << 1 | sample.is_shared
    what = (call_and_flags, sample.communicator, place, sample.region, last, sequence)
    amount = bytes_and_signature(sample.bytes, sample.signature)
    return struct.pack(f"<4Qi4H{form}Q", *times, amount, peer, *what)


def bytes_and_signature(amount: int | None, signature: int | None = None) -> int:
    return (SAMPLE_BYTES_UNKNOWN if amount is None else amount) | (signature or 0) << 48


def ledger_entry(
    one: Message | Start | Epoch,
    flags: int,
    completed_ns: int | None,
    peer: int | None,
    amount: int,
    what: tuple[int, int],
    last: int,
) -> bytes:
    """An entry beside the samples. what: two numbers of its kind."""
    completed_ticks = 0 if completed_ns is None else ticks_at(completed_ns)
    times = (ticks_at(one.start_ns), ticks_at(one.end_ns), completed_ticks)
    call = (CALL_NUMBERS[one.call] | flags << 12, one.communicator, what[0], 0, what[1], last)
    return struct.pack("<4Qi4HiQ", *times, amount, no_rank(peer), *call)


def ledger_start(start: Start) -> bytes:
    amount = bytes_and_signature(start.bytes)
    what = (start.operation, start.number)
    return ledger_entry(start, 4, start.completed_ns, start.root, amount, what, 0)


def ledger_epoch(epoch: Epoch) -> bytes:
    what = (epoch.partners, epoch.number or 0)
    return ledger_entry(epoch, 6, None, epoch.peer, 0, what, epoch.object)


def ledger_signature(one: Signature) -> bytes:
    flags = one.is_in_place | bool(one.is_commutative) << 1 | (one.counts_hash is not None) << 2
    kinds = [MEMORY_KINDS.index(kind) for kind in one.memory_kind.split(">")]
    known = (one.count, one.type_bytes, one.extent, one.blocks)
    places = (int(one.counts_hash or "0", 16), one.buffer_at or 0, one.received_at or 0)
    numbers = (*(number or 0 for number in known), *places)
    names = (one.datatype.encode(), one.op.encode())
    kind = kinds[0] | kinds[-1] << 4
    return struct.pack("<IH2B2Qq4Q32s16s", one.signature, flags, kind, 0, *numbers, *names)


def ledger_message(message: Message) -> bytes:
    amount = bytes_and_signature(message.bytes)
    flags = 5 | (message.direction == "received") << 1
    what = (message.number or 0, no_rank(message.tag))
    return ledger_entry(message, flags, message.completed_ns, message.peer, amount, what, 0)


def ledger_span(one: Span | Step) -> bytes:
    times = (ticks_at(one.begin_ns), ticks_at(one.end_ns), 0, 0)
    region = one.region if isinstance(one, Span) else 0
    return struct.pack("<4Qi6HQ", *times, NO_RANK, 0, 0, one.thread, region, 0, 0, 0)


def ledger_gpu(rank: Rank) -> list[bytes]:
    """The chunks of what GPUs did, in sums."""
    names = b"".join(ledger_kernel(kernel, *about) for kernel, about in rank.kernels.items())
    chunks = [ledger_chunk(9, 1, len(names), names)] if names else []
    for kind, entry_bytes, entries in (
        (10, ACTIVITY_BYTES, map(ledger_activity, rank.activities)),
        (11, STREAM_BYTES, map(ledger_stream, rank.streams)),
        (12, DEVICE_BYTES, (ledger_device(rank, one) for one in rank.devices)),
        (13, TRACING_BYTES, (ledger_tracing(rank, one) for one in rank.tracings)),
        (14, ALGORITHM_BYTES, (ledger_algorithm(rank, one) for one in rank.algorithms)),
        (16, READING_BYTES, (ledger_reading(rank, one) for one in rank.readings)),
        (17, CPU_TIME_BYTES, (ledger_cpu_time(rank, one) for one in rank.cpu_times)),
        (18, 192, map(ledger_negotiation, rank.negotiations)),
        (19, 528, map(ledger_place, rank.places)),
        (20, 64, map(ledger_negotiated_step, rank.negotiated_steps)),
    ):
        chunks += ledger_chunks(kind, entry_bytes, list(entries))
    return chunks


def ledger_cpu_time(rank: Rank, one: CpuTime) -> bytes:
    waiting_ns = (1 << 64) - 1 if one.waiting_ns is None else one.waiting_ns
    at_ns = rank.start_monotonic_ns + one.at_ns
    return struct.pack("<q2Q6IQI2H", at_ns, one.core_ns, waiting_ns, *one.seen, 0, 0, one.thread, 1)


def ledger_negotiation(one: Negotiation) -> bytes:
    rounds = (one.rounds, one.ahead[0], one.idle[0], one.rounds_by_name, one.disbelieved)
    since = 0 if one.ahead_since_ns is None else ticks_at(one.ahead_since_ns)
    times = (one.ahead[1], one.idle[1], one.ahead_moving_ns, *one.sums)
    ticks = (ticks_at(one.first_ns), ticks_at(one.last_ns), since)
    what = (*one.last, one.offered_most, one.words, one.thread, one.communicator, one.epoch)
    return struct.pack("<16Q7I36x", *rounds, *times, *ticks, *what)


def ledger_place(one: Place) -> bytes:
    """A word of its own."""
    word, index = divmod(one.place, 64)
    counts = [one.agreed if place == index else 0 for place in range(64)]
    return struct.pack("<4I64Q", one.thread, one.communicator, word, one.epoch, *counts)


def ledger_negotiated_step(one: NegotiatedStep) -> bytes:
    what = (one.tensors, one.thread, one.communicator, one.step, 0, 1)
    return struct.pack("<6QI2HI2H", *map(ticks_at, one.times_ns), *what)


def ledger_kernel(kernel: int, name: str, is_communication: int) -> bytes:
    data = struct.pack("<4I", kernel, len(name.encode()), is_communication, 0) + name.encode()
    return data.ljust((len(data) + 7) // 8 * 8, b"\0")


def ledger_activity(activity: Activity, live: int = 1) -> bytes:
    kinds = (ACTIVITY_KINDS[activity.kind], COPIES.index(activity.copy))
    what = (activity.bytes, activity.kernel, activity.stream, *kinds, activity.flags, live)
    sums = (*activity.spread, activity.volume, *counts_of(activity))
    return struct.pack(f"<QIH4B6x4Q{BUCKETS}Q56x", *what, *sums)


def ledger_stream(stream: Stream) -> bytes:
    since = ticks_at(stream.begin_ns) if stream.begin_ns else 0
    what = (stream.stream, stream.device, stream.context, stream.number)
    return struct.pack("<4IQ40x", *what, since)


def ledger_device(rank: Rank, device: Device) -> bytes:
    times = (
        0 if moment_ns is None else rank.start_monotonic_ns + moment_ns
        for moment_ns in (device.first_ns, device.last_ns)
    )
    states = [device.states.get(state, 0) for state in range(16)]
    about = (device.device, device.number, device.name.encode(), device.uuid.encode())
    communication_ns, sm_ns, most_sms = device.communication
    counts = (device.kernels, device.copies, device.sets)
    occupied = (device.sms or 0, most_sms, communication_ns, sm_ns, device.memory_bytes or 0)
    return struct.pack("<2I64s48s16Q2q3Q2I3Q", *about, *states, *times, *counts, *occupied)


def ledger_reading(rank: Rank, reading: Reading) -> bytes:
    amounts = [unknown(amount) for amount in (*reading.links, reading.memory_used_bytes)]
    limits = 0
    if reading.limits is not None:
        limits = 1 + sum(2 << place for place, one in enumerate("iphs") if one in reading.limits)
    what = (reading.device, reading.clock_mhz or 0, 0, limits, 1)
    return struct.pack("<q5Q3I2H", rank.start_monotonic_ns + reading.at_ns, *amounts, *what)


def ledger_algorithm(rank: Rank, one: Algorithm) -> bytes:
    names = one.algorithm.encode(), one.protocol.encode()
    numbers = (CALL_NUMBERS[one.call], one.communicator, one.channels, one.is_folded, rank.epoch)
    return struct.pack("<2Q3HBxI4x16s16s", one.bytes, one.count, *numbers, *names)


def ledger_tracing(rank: Rank, tracing: Tracing) -> bytes:
    begin_ns, end_ns = (
        rank.start_monotonic_ns + moment_ns for moment_ns in (tracing.begin_ns, tracing.end_ns)
    )
    error_ns = (1 << 32) - 1 if tracing.clock_error_ns is None else tracing.clock_error_ns
    end_ns = 0 if tracing.ended == "goes on" else end_ns
    what = (TRACING_ENDED.index(tracing.ended), error_ns, tracing.records, tracing.part)
    return struct.pack("<2q2IQI28x", begin_ns, end_ns, *what)


def ledger_gpu_sample(sample: GpuSample) -> bytes:
    times = (ticks_at(sample.start_ns), ticks_at(sample.end_ns), 0, sample.bytes)
    what = (sample.stream, ACTIVITY_KINDS[sample.kind], COPIES.index(sample.copy), sample.is_graph)
    return struct.pack("<4QI3H3B11x", *times, sample.kernel, 0, sample.communicator, *what)
