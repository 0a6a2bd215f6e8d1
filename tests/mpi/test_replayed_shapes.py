"""Every call that a kit may have is replayed with its own arguments: blocking, nonblocking,
persistent and in place, by two ranks that pass unlike counts, with root 1."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from .libraries import Mpi
from .reporter import the_program
from .test_replay import OF_TWO_RANKS, PASSES, counted, replayed, signed

pytestmark = pytest.mark.slow

HEAD = (
    OF_TWO_RANKS
    + """\
vector 0 5 3
vector 1 5 1
vector 2 1 3
vector 3 3 3
"""
)
CALL = (
    "MPI_{} {comm} 0 {count} MPI_SUM {root} {peer} 7 {in_place} {sent} "
    "{received_type} {received_count} {peer} 7 {received} - - -"
)
ALIKE = {"comm": 0, "count": 5, "root": 1, "in_place": 0, "sent": 0}
ALIKE |= {"received_type": "-", "received_count": "-", "received": "-"}
UNLIKE: dict[str, tuple[dict, dict]] = {  # each rank's arguments, and bytes if they are not 40
    "barrier": ({"bytes": 0}, {"bytes": 0}),
    "gatherv": ({}, {"count": 3, "bytes": 24}),
    "allgatherv": ({}, {"count": 3, "bytes": 24}),
    "scatterv": ({}, {"count": 3, "bytes": 64}),
    "alltoallv": ({"received": 1, "bytes": 64}, {"sent": 2, "received": 3, "bytes": 32}),
    "alltoallw": ({"received": 1, "bytes": 8}, {"sent": 2, "received": 3, "bytes": 4}),
    "reduce_scatter": ({"bytes": 64}, {"bytes": 64}),
    "reduce_scatter_block": ({"bytes": 80}, {"bytes": 80}),
}
ROOTED = ("gather", "gatherv", "scatter", "scatterv", "reduce")
IN_PLACE = (*ROOTED, *"allgather allgatherv alltoall allreduce scan exscan".split())
IN_PLACE += ("reduce_scatter", "reduce_scatter_block")
SENDS, RECEIVES = ("send", "ssend", "rsend"), ("recv",)
COMPLETE_ALL = ("Waitall", "Testall", "Waitany", "Testany", "Waitsome", "Testsome")
AGAIN = ("Waitany", "Waitsome", "Iprobe", "Improbe", "Test", "Testall", "Testany", "Testsome")


class Job:
    """Programs of two ranks."""

    def __init__(self) -> None:
        self.calls: dict[str, int] = {}
        self.programs: tuple[list[str], list[str]] = ([], [])
        self.made: Counter[tuple[str, int]] = Counter()  # by name and bytes

    def make(self, rank: int, name: str, *requests: int, bytes: int = 0, **own: object) -> None:
        line = CALL.format(name, **{**ALIKE, "peer": 1 - rank, **own})
        number = self.calls.setdefault(line, len(self.calls))
        self.programs[rank].append(" ".join(map(str, (0, number, *requests))))
        self.made[f"MPI_{name}", bytes] += 1

    def message(self, rank: int, name: str, *requests: int, **own: object) -> None:
        self.make(rank, name, *requests, **{"bytes": 40, **own})

    def text(self) -> str:
        calls = [f"call {number} {line}" for line, number in self.calls.items()]
        programs = [
            line
            for rank, program in enumerate(self.programs)
            for line in (f"program {rank} 0 0", *program)
        ]
        return HEAD + "\n".join((*calls, *programs, ""))


def kinds_of(library: Mpi) -> dict[str, str]:
    """The calls that can be made again and that it has."""
    the_program()
    from commprof_report.replay.kit import KINDS  # here, where reporter.py has set the path

    return {call[4:]: kind for call, kind in KINDS.items() if library.has(call)}


def operation(name: str) -> str:
    return name.removeprefix("I").removesuffix("_init").lower()


def move(job: Job, rank: int, name: str, kind: str, **own: object) -> None:
    """A call that moves data, and those that complete it."""
    job.message(rank, name, *([] if kind == "blocking" else [0]), **own)
    if kind == "preparing":
        job.make(rank, "Start", 0)
    if kind != "blocking":
        job.make(rank, "Wait", 0)
    if kind == "preparing":
        job.make(rank, "Request_free", 0)


def add_collective(job: Job, name: str, kind: str) -> None:
    own = UNLIKE.get(operation(name), ({}, {}))
    for rank in range(2):
        move(job, rank, name, kind, **own[rank])
    if kind == "blocking" and operation(name) in IN_PLACE:
        for rank in range(2):
            in_place = int(rank == 1 or operation(name) not in ROOTED)
            move(job, rank, name, kind, **own[rank], in_place=in_place)


def add_send(job: Job, name: str, kind: str) -> None:
    """MPI_Rsend needs a receive that is posted."""
    job.message(1, "Irecv", 1)
    for rank in range(2):
        job.make(rank, "Barrier")
    move(job, 0, name, kind)
    job.make(1, "Wait", 1)


def add_receive(job: Job, name: str, kind: str) -> None:
    job.message(0, "Send")
    move(job, 1, name, kind)


def add_probes(job: Job) -> None:
    for probe in ("Probe", "Iprobe", "Mprobe", "Improbe"):
        job.message(0, "Send")
        matched = [0] * ("m" in probe.lower())
        job.message(1, probe, *matched)
        job.message(1, "Imrecv" if probe == "Improbe" else "Mrecv" if matched else "Recv", *matched)
    job.make(1, "Wait", 0)


def add_completions(job: Job) -> None:
    """Rank 0 sends to itself, and each call completes it."""
    itself = {"comm": 1, "root": 0, "peer": 0, "sent": "-"}
    for complete in (*COMPLETE_ALL, "Test"):
        job.message(0, "Irecv", 0, **itself)
        job.message(0, "Isend", 1, **itself)
        for requests in ((0,), (1,)) if complete == "Test" else ((0, 1),):
            job.make(0, complete, *requests)
    job.message(0, "Recv_init", 0, **itself)
    job.message(0, "Send_init", 1, **itself)
    job.make(0, "Startall", 0, 1)
    job.make(0, "Waitall", 0, 1)


def test_each_call_is_made_with_its_arguments(mpi: Mpi, tmp_path: Path) -> None:
    job, kinds = Job(), kinds_of(mpi)
    for name, kind in kinds.items():
        if operation(name) in SENDS:
            add_send(job, name, kind)
        elif operation(name) in RECEIVES:
            add_receive(job, name, kind)
        elif name == "Sendrecv":
            for rank in range(2):
                job.message(rank, name, received_type=0, received_count=5)
        elif kind in ("blocking", "starting", "preparing"):
            add_collective(job, name, kind)
    add_probes(job)
    add_completions(job)
    assert {name for name, _ in job.made} == {f"MPI_{name}" for name in kinds}
    kit = tmp_path / "job.kit"
    kit.write_bytes(signed(job.text()))
    calls, sizes = counted(replayed(mpi, 2, kit, tmp_path / "replay"))
    made: Counter[str] = Counter()
    for (name, _), count in job.made.items():
        made[name] += PASSES * count
    for name, count in made.items():  # polls and the like: as often as it takes
        assert calls[name] == count or (calls[name] > count and name[4:] in AGAIN), name
    assert {key: count for key, count in job.made.items() if key[1]} == {
        (name, size): count / PASSES
        for (name, size, measure), count in sizes.items()
        if size and measure == "call"
    }
