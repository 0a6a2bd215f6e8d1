"""Jobs whose collectives are made up call by call, on hosts whose clocks are made up too: the truth
of every moment is known."""

from __future__ import annotations

import sqlite3
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from known_calls import CALLS
from planted import COUNTERS, GPU_COUNTERS, START_UNIX_NS, bucket_of, empty_database

WORLD = 2
ROOT_FIRST, ROOT_LAST = ("MPI_Bcast", "MPI_Scatter", "MPI_Ibcast"), ("MPI_Reduce", "MPI_Gather")
LOWER = ("MPI_Scan", "MPI_Exscan")
PLAIN = {"thread": 0, "request_call": "", "is_shared": None, "device_start_ns": None}
SENDING, RECEIVING = "sent", "received"
LAUNCH_NS = 200  # from an NCCL call to its kernel, which waits on the device


@dataclass
class HostClock:
    """Reads offset_ns at the true moment 0, and runs too fast by `drift`. wall_ns: by how much the
    wall clock is wrong."""

    offset_ns: int = 0
    drift: float = 0.0
    wall_ns: int = 0

    def reading(self, true_ns: int) -> int:
        return self.offset_ns + true_ns + round(self.drift * true_ns)


@dataclass
class Group:
    """A communicator, the thread of each rank that calls on it, and what it is
    asked to move there."""

    communicator: int
    ranks: Sequence[int]
    name: str = ""
    is_inter: int = 0
    begun: int = 0
    library: str = "mpi"
    thread: int = 0
    signature: int | None = None

    @property
    def identity(self) -> str:
        return f"{0xABC0 + self.communicator:016x}"

    @property
    def members(self) -> str:
        return ",".join(map(str, self.ranks)) if self.library == "mpi" else ""


@dataclass
class Job:
    """hosts: the clock of each, by rank."""

    hosts: Sequence[HostClock]
    missing: Sequence[int] = ()
    wall_ns: int = 10_000_000_000
    true_start_ns: int = 0
    groups: list[Group] = field(default_factory=list)
    rows: dict[str, list[dict]] = field(default_factory=dict)
    made: list[dict] = field(default_factory=list)  # all calls, sampled or not
    # of the last message, by communicator, rank, direction, peer and tag
    numbers: dict[tuple, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.world = self.group(range(len(self.hosts)), "MPI_COMM_WORLD")
        self.names = {}
        for rank, clock in enumerate(self.hosts):
            self.names.setdefault(id(clock), f"node{len(self.names):02d}")
            start_unix_ns = START_UNIX_NS + clock.wall_ns
            times = {"start_unix_ns": start_unix_ns, "end_unix_ns": start_unix_ns + self.wall_ns}
            self.add("rank", **self.rank_row(rank), **times)
            name = self.name(rank)
            for key, value in zip(("host", "boot_id", "time_namespace"), (name, name, "time:[1]")):
                self.add("fact", world_rank=rank, key=key, value=value)

    def name(self, rank: int) -> str:
        return self.names[id(self.hosts[rank])]

    def rank_row(self, rank: int) -> dict:
        start = self.hosts[rank].reading(self.true_start_ns)
        unlike = ("abort_code", "clock_error_ppb", "window_mask", "record_is_full")
        numbers = dict.fromkeys((*unlike, *COUNTERS, *GPU_COUNTERS), 0)
        process = {"world_rank": rank, "world_size": len(self.hosts), "run_id": "job-1"}
        process |= {"pid": 4_000 + rank, "thread_level": 0}
        times = {"start_monotonic_ns": start, "wall_ns": self.wall_ns, "counted_ns": self.wall_ns}
        return {**process, **numbers, **times, "ended": "finalize", "gpu_state": "none"}

    def add(self, table: str, **row: object) -> None:
        if row.get("world_rank") not in self.missing:
            self.rows.setdefault(table, []).append(row)

    def group(
        self, ranks: Sequence[int], name: str = "", is_inter: int = 0, library: str = "mpi"
    ) -> Group:
        self.groups.append(Group(WORLD + len(self.groups), ranks, name, is_inter, library=library))
        return self.groups[-1]

    def time(self, rank: int, true_ns: int) -> int:
        """A rank's own time at a true moment."""
        clock = self.hosts[rank]
        return clock.reading(true_ns) - clock.reading(self.true_start_ns)

    def collective(
        self,
        call: str,
        arrivals: Sequence[int],
        transfers: Sequence[int],
        root: int | None = None,
        group: Group | None = None,
        message_bytes: int = 1 << 20,
        is_sampled: bool = True,
        region: int = 0,
    ) -> list[int]:
        """A collective of ranks that come at true moments and need some time once they need not
        wait any longer. When each returns; of NCCL's operations, when each kernel ends."""
        group = group or self.world
        group.begun += 1
        ends = []
        for place, rank in enumerate(group.ranks):
            others = waits_for(call, place, len(group.ranks), root)
            last = max([arrivals[place], *(arrivals[other] for other in others)])
            ends.append(last + transfers[place])
            is_nonblocking = call.startswith(("MPI_I", "nccl"))
            end_ns = self.time(rank, arrivals[place] + 100 if is_nonblocking else ends[-1])
            completed_ns = self.time(rank, ends[-1]) if is_nonblocking else None
            start_ns = self.time(rank, arrivals[place])
            moments = {"start_ns": start_ns, "end_ns": end_ns, "completed_ns": completed_ns}
            what = {"world_rank": rank, "call": call, "communicator": group.communicator}
            what |= {"bytes": message_bytes, "region": region, "thread": group.thread}
            if rank not in self.missing:
                self.made.append({**what, "duration_ns": end_ns - start_ns})
            if CALLS[call].library == "nccl":
                moments["device_start_ns"] = self.time(rank, arrivals[place] + LAUNCH_NS)
                moments |= {"device_end_ns": completed_ns, "is_shared": 0}
            if is_sampled:
                about = {"sequence": group.begun, "peer": None, "root": root}
                about["signature"] = group.signature
                self.add("sample", **{**PLAIN, **what, **moments, **about})
        return ends

    def send(self, rank: int, peer: int, begin_ns: int, end_ns: int, **more: object) -> None:
        """MPI_Send from a true moment to another; of a nonblocking call, the operation from its
        start to its completion."""
        self.message(rank, SENDING, peer, begin_ns, end_ns, **{"call": "MPI_Send", **more})

    def receive(self, rank: int, peer: int, begin_ns: int, end_ns: int, **more: object) -> None:
        self.message(rank, RECEIVING, peer, begin_ns, end_ns, **{"call": "MPI_Recv", **more})

    def message(
        self,
        rank: int,
        direction: str,
        peer: int,
        begin_ns: int,
        end_ns: int,
        call: str,
        tag: int = 0,
        group: Group | None = None,
        message_bytes: int = 1_000,
        is_sampled: bool = True,
        is_numbered: bool = True,
    ) -> None:
        group = group or self.world
        key = (group.communicator, rank, direction, peer, tag)
        number = self.numbers[key] = self.numbers.get(key, 0) + 1
        is_nonblocking = call.startswith("MPI_I")
        times = {
            "start_ns": self.time(rank, begin_ns),
            "end_ns": self.time(rank, begin_ns + 100 if is_nonblocking else end_ns),
            "completed_ns": self.time(rank, end_ns) if is_nonblocking else None,
        }
        what = {"world_rank": rank, "call": call, "communicator": group.communicator}
        what["bytes"] = message_bytes
        known = {"peer": peer, "tag": tag}
        known["number"] = (number - 1) % 65_535 + 1 if is_numbered else None
        if rank not in self.missing and call != "MPI_Sendrecv":
            spent_ns = times["end_ns"] - times["start_ns"]
            self.made.append({**what, "region": 0, "duration_ns": spent_ns})
        if is_sampled and call == "MPI_Sendrecv" and direction == RECEIVING:
            self.add("sample_message", **what, **times, **known, thread=0, direction=direction)
        elif is_sampled:
            none = {"region": 0, "sequence": None, "root": None}
            self.add("sample", **{**PLAIN, **what, **times, **known, **none})

    def exchange(self, rank: int, to: int, source: int, begin_ns: int, end_ns: int) -> None:
        """MPI_Sendrecv."""
        self.message(rank, SENDING, to, begin_ns, end_ns, "MPI_Sendrecv")
        self.message(rank, RECEIVING, source, begin_ns, end_ns, "MPI_Sendrecv")
        what = {"world_rank": rank, "call": "MPI_Sendrecv", "communicator": WORLD, "bytes": 1_000}
        spent_ns = self.time(rank, end_ns) - self.time(rank, begin_ns)
        self.made.append({**what, "region": 0, "duration_ns": spent_ns})

    def window(self, rank: int, begin_ns: int, end_ns: int) -> None:
        """All calls of this rank are sampled between two true moments."""
        begin_ns, end_ns = self.time(rank, begin_ns), self.time(rank, end_ns)
        self.add("sample_window", world_rank=rank, thread=0, begin_ns=begin_ns, end_ns=end_ns)

    def call(self, name: str, begin_ns: int, end_ns: int, rank: int = 0) -> None:
        """A call that is no collective, at true moments."""
        times = {"start_ns": self.time(rank, begin_ns), "end_ns": self.time(rank, end_ns)}
        times["completed_ns"] = None
        what = {"world_rank": rank, "call": name, "communicator": 0, "bytes": 0, "region": 0}
        self.made.append({**what, "duration_ns": times["end_ns"] - times["start_ns"]})
        self.add("sample", **{**PLAIN, **what, **times}, sequence=None, peer=None, root=None)

    def thread(self, rank: int, is_main: int, thread: int = 0) -> None:
        numbers = ("communicator", "is_inside", "since_ns")
        doing = {"doing_call": "", "doing_request_call": ""}
        doing |= {f"doing_{name}": 0 for name in numbers}
        own = {"tid": 1_000 * thread + rank + 1, "name": "python3", "is_main": is_main}
        self.add("thread", world_rank=rank, thread=thread, **own, **doing)

    def connection(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        """All of it in an empty database of the schema. All calls are sampled, unless there are
        windows."""
        if "sample_window" not in self.rows:
            threads = {(rank, 0) for rank in range(len(self.hosts))}
            threads |= {(row["world_rank"], row["thread"]) for row in self.rows.get("thread", ())}
            for rank, thread in sorted(threads):
                always = {"thread": thread, "begin_ns": 0, "end_ns": 1 << 62}
                self.add("sample_window", world_rank=rank, **always)
        tables = {**self.rows, "communicator": self.communicator_rows(), **self.cell_rows()}
        for table, rows in tables.items():
            for row in rows:
                insert = f"INSERT INTO {table} ({', '.join(row)}) VALUES "
                connection.execute(f"{insert} ({', '.join('?' * len(row))})", list(row.values()))
        return connection

    def communicator_rows(self) -> list[dict]:
        rows = []
        for group in self.groups:
            size = len(group.ranks)
            known = {"communicator": group.communicator, "identity": group.identity}
            known |= {"name": group.name, "constructor": "", "ordinal": 0, "is_freed": 0}
            known |= {"size": size, "remote_size": group.is_inter * size, "members": group.members}
            known |= {"is_inter": group.is_inter, "library": group.library}
            known["collectives"] = group.begun
            rows += [
                {"world_rank": rank, "comm_rank": place, **known}
                for place, rank in enumerate(group.ranks)
                if rank not in self.missing
            ]
        return rows

    def cell_rows(self) -> dict[str, list[dict]]:
        """Sums of the calls made."""
        durations: dict[tuple, list[int]] = {}
        blocked_ns: Counter[tuple] = Counter()
        keys = ("thread", "world_rank", "call", "communicator", "bytes", "region", "measure")
        for row in self.made:
            key = tuple({"thread": 0, "measure": "call", **row}[column] for column in keys)
            durations.setdefault(key, []).append(row["duration_ns"])
            blocked_ns[key] += row.get("blocked_ns", 0)
        cells = []
        for number, (key, spent) in enumerate(durations.items(), 1):
            cell = {"cell": number, **dict(zip(keys, key)), "memory_kind": "host", "is_folded": 0}
            cell |= {"count": len(spent), "volume_bytes": 0, "blocked_ns": blocked_ns[key]}
            cell |= {"total_ns": sum(spent), "min_ns": min(spent), "max_ns": max(spent)}
            cells.append(cell)
        buckets = [
            {"cell": number, "bucket": bucket, "count": count}
            for number, spent in enumerate(durations.values(), 1)
            for bucket, count in Counter(map(bucket_of, spent)).items()
        ]
        calls = [CALLS[call]._asdict() for call in sorted({cell["call"] for cell in cells})]
        return {"call": calls, "cell": cells, "bucket": buckets}

    def write(self, path: Path) -> Path:
        """As `hvprof-report merge` would."""
        path.unlink(missing_ok=True)
        path.write_bytes(empty_database(4096))
        connection = sqlite3.connect(path)
        connection.executescript("PRAGMA synchronous = OFF")
        self.connection(connection).commit()
        connection.close()
        return path


def repeated(
    hosts: Sequence[HostClock],
    times: int,
    every_ns: int,
    late_ns: Callable[[int, int], int],
    transfer_ns: int = 10_000,
    call: str = "MPI_Allreduce",
    wall_ns: int = 0,
    **what: object,
) -> Job:
    """A collective every `every_ns`; late_ns(number, rank): by how much a rank comes later to it.
    wall_ns: of a run that does not last as long as these."""
    job = Job(hosts, wall_ns=wall_ns or times * every_ns)
    for number in range(times):
        arrivals = [number * every_ns + late_ns(number, rank) for rank in range(len(hosts))]
        job.collective(call, arrivals, [transfer_ns] * len(hosts), **what)
    return job


def waits_for(call: str, place: int, size: int, root: int | None) -> Sequence[int]:
    """Which places of the communicator must have come before this one may return."""
    if call in ROOT_FIRST:
        return [root]
    if call in ROOT_LAST:
        return range(size) if place == root else []
    return range(place) if call in LOWER else range(size)


class Program:
    """A job whose ranks compute, enter collectives and pass messages, each after the one before.
    `job` has the calls; `now_ns`: where each rank is."""

    def __init__(
        self, ranks: int, hosts: Sequence[HostClock] = (), start_ns: int = 1_000_000
    ) -> None:
        self.job = Job(hosts or [HostClock(77)] * ranks)
        self.now_ns = [start_ns] * ranks
        # of messages on their way, by sender and receiver
        self.sent_ns: dict[tuple[int, int], deque[int]] = {}

    def compute(self, rank: int, ns: int) -> None:
        self.now_ns[rank] += ns

    def collective(
        self, call: str, group: Group, transfer_ns: int = 10_000, **what: object
    ) -> None:
        arrivals = [self.now_ns[rank] for rank in group.ranks]
        ends = self.job.collective(
            call, arrivals, [transfer_ns] * len(arrivals), group=group, **what
        )
        for rank, end_ns in zip(group.ranks, ends):
            self.now_ns[rank] = end_ns

    def send(self, rank: int, peer: int) -> None:
        """An eager message: the call returns at once."""
        begin_ns = self.now_ns[rank]
        self.now_ns[rank] += 300
        self.sent_ns.setdefault((rank, peer), deque()).append(begin_ns)
        self.job.send(rank, peer, begin_ns, self.now_ns[rank])

    def receive(self, rank: int, peer: int) -> None:
        begin_ns = self.now_ns[rank]
        self.now_ns[rank] = max(begin_ns, self.sent_ns[peer, rank].popleft()) + 2_000
        self.job.receive(rank, peer, begin_ns, self.now_ns[rank])

    def meet(self, sender: int, receiver: int) -> None:
        """A message by rendezvous: both calls wait for the other."""
        end_ns = max(self.now_ns[sender], self.now_ns[receiver]) + 20_000
        self.job.send(sender, receiver, self.now_ns[sender], end_ns)
        self.job.receive(receiver, sender, self.now_ns[receiver], end_ns)
        self.now_ns[sender] = self.now_ns[receiver] = end_ns

    def start_and_wait(self, transfer_ns: int) -> None:
        """An Iallreduce of all ranks that each waits for at once."""
        begins = list(self.now_ns)
        ends = self.job.collective("MPI_Iallreduce", begins, [transfer_ns] * len(begins))
        for rank, (begin_ns, end_ns) in enumerate(zip(begins, ends)):
            self.job.call("MPI_Wait", begin_ns + 200, end_ns, rank)
            what = {"world_rank": rank, "call": "MPI_Iallreduce", "bytes": 1 << 20, "region": 0}
            what |= {"communicator": self.job.world.communicator, "measure": "completion"}
            spent_ns = end_ns - begin_ns
            self.job.made.append({**what, "duration_ns": spent_ns, "blocked_ns": spent_ns})
            self.now_ns[rank] = end_ns

    def end(self) -> Job:
        """The job, which lasts until its last call."""
        self.job.wall_ns = max(self.now_ns) + 1_000_000
        wall_ns = self.job.wall_ns
        for row in self.job.rows["rank"]:
            row |= {"wall_ns": wall_ns, "counted_ns": wall_ns}
            row["end_unix_ns"] = row["start_unix_ns"] + wall_ns
        return self.job
