"""Kits: written from a run, read again, refused where they are damaged; and whether replays stand
for the job. Real jobs and their replays: tests/mpi/test_replay.py."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import tracemalloc
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import compared_runs
import planted
import pytest
from commprof_report.base import ReportError
from commprof_report.replay import kit as kits
from commprof_report.replay.from_run import kit_of
from commprof_report.replay.kit import WORLD, Call, Comm, Made, Type
from commprof_report.replay.traffic import Memory
from commprof_report.run.run import run_open
from parallel import split, world
from planted import Cell, CpuTime, Message, Rank, Sample, Signature, Start

pytestmark = pytest.mark.usefixtures("figures_once")

MS = 1_000_000
SPLIT, TAG, FLOATS, SUM = 4, 7, 1, 2
ONE_CLOCK = {"boot_id": "one", "time_namespace": "time:[1]"}
SIGNATURES = [Signature(FLOATS), Signature(SUM, op="MPI_SUM", is_commutative=1)]


def kit_from(tmp_path: Path, *fields: dict) -> kits.Kit:
    """A run of so many ranks with these fields."""
    size = len(fields)
    ranks = [
        Rank(rank, size, **{"communicators": [world(rank, size)], "signatures": SIGNATURES, **own})
        for rank, own in enumerate(fields)
    ]
    run = run_open([planted.write_databases(tmp_path / "run", ranks)], False, True, None)
    return kit_of(run)


def kit(
    tmp_path: Path,
    *samples: list[Sample],
    messages: Sequence[list[Message]] = ([], []),
    starts: Sequence[list[Start]] = ([], []),
) -> kits.Kit:
    """A run of two ranks, which have a communicator of each alone beside the world."""
    alone = [[world(rank, 2), split(SPLIT, rank, [rank], 9)] for rank in range(2)]
    columns = {"samples": samples, "messages": messages, "starts": starts, "communicators": alone}
    rows = zip(*columns.values())
    return kit_from(tmp_path, *[{**dict(zip(columns, row)), "facts": ONE_CLOCK} for row in rows])


def check_written(made: kits.Kit, path: Path) -> None:
    """The facts that a kit tells are read as they were written."""
    digest = kits.write(made, path)
    tables = {"comms": [], "types": [], "vectors": [], "calls": [], "programs": {}, "before": {}}
    assert kits.read(path) == (replace(made, **tables), digest)


def allreduce(at: int, sequence: int, **other: object) -> Sample:
    what = {"sequence": sequence, "signature": SUM, **other}
    return Sample("MPI_Allreduce", at * MS, (at + 1) * MS, **what)


def message(call: str, at: int, peer: int, number: int | None = 1, **other: object) -> Sample:
    what = {"peer": peer, "tag": TAG, "number": number, "signature": FLOATS, **other}
    return Sample(call, at * MS, (at + 1) * MS, **what)


def test_a_kit_has_the_calls_and_the_times_between_them(tmp_path):
    found = kit(
        tmp_path,
        [allreduce(2, 1), message("MPI_Send", 6, 1), allreduce(9, 2)],
        [replace(allreduce(1, 1), end_ns=3 * MS), message("MPI_Recv", 6, 0), allreduce(9, 2)],
    )
    assert found.comms[WORLD] == Comm(WORLD, 0, "world", (0, 1))
    assert found.types == [Type("MPI_FLOAT", 4, 4, 1)]
    sums = Call("MPI_Allreduce", WORLD, 0, 250, "MPI_SUM", in_place=0)
    send = Call("MPI_Send", WORLD, 0, 250, peer=1, tag=TAG, in_place=0)
    receive = Call("MPI_Recv", WORLD, 0, 250, peer=0, tag=TAG, in_place=0)
    assert found.calls == [sums, send, receive]
    assert found.programs == {
        (0, 0): [Made(MS, 0), Made(3 * MS, 1), Made(2 * MS, 0)],  # a millisecond after rank 1
        (1, 0): [Made(0, 0), Made(3 * MS, 2), Made(2 * MS, 0)],
    }
    assert not found.left_out and found.made == {"MPI_Allreduce": 4, "MPI_Send": 1, "MPI_Recv": 1}


def test_a_completion_has_the_requests_that_it_completed(tmp_path):
    """Two operations that one Waitall completes, then one more with a request that is free."""

    def own(rank: int) -> list[Sample]:
        return [
            message("MPI_Irecv", 1, 1 - rank, completed_ns=10 * MS),
            message("MPI_Isend", 3, 1 - rank, completed_ns=10 * MS),
            Sample("MPI_Waitall", 8 * MS, 10 * MS, bytes=0),
            Sample("MPI_Ibarrier", 11 * MS, 12 * MS, sequence=1, bytes=0, completed_ns=14 * MS),
            Sample("MPI_Wait", 13 * MS, 14 * MS, bytes=0),
        ]

    found = kit(tmp_path, own(0), own(1))
    names = [found.calls[made.call].name for made in found.programs[0, 0]]
    assert names == ["MPI_Irecv", "MPI_Isend", "MPI_Waitall", "MPI_Ibarrier", "MPI_Wait"]
    assert [made.requests for made in found.programs[0, 0]] == [(0,), (1,), (0, 1), (0,), (0,)]


def gaps(tmp_path: Path, *readings: tuple[str, tuple[int, int], int]) -> dict[str, bool]:
    """For a rank in steps of 10 ms, in which a Bcast follows an Allreduce: before which calls the
    kit sleeps. Readings: before which call, how many were ready and asleep, how many rows of
    these."""
    steps = 1 + sum(rows for *_, rows in readings)
    samples = []
    for step in range(steps):
        of_bcast = {"sequence": 2 * step + 2, "root": 0, "number": None}
        samples.append(allreduce(10 * step + 4, 2 * step + 1))
        samples.append(message("MPI_Bcast", 10 * step + 8, 0, **of_bcast))
    each = [(call, states) for call, states, rows in readings for _ in range(rows)]
    ready, asleep, cpu_times = 0, 0, [CpuTime(0, 0)]
    for step, (call, states) in enumerate(each, 1):  # before the first call there is no gap
        ready, asleep = ready + states[0], asleep + states[1]
        at_ns = (10 * step + (3 if call == "MPI_Allreduce" else 7)) * MS
        cpu_times.append(CpuTime(at_ns, 0, seen=(ready, asleep, 0, 0, 0, 0)))
    made = kit_from(tmp_path, {"samples": samples, "cpu_times": cpu_times})
    check_written(made, tmp_path / "job.kit")
    (found,) = {
        tuple(sorted({(made.calls[one.call].name, one.is_asleep) for one in program}))
        for program in made.programs.values()
    }
    return dict(found)


def test_a_kit_sleeps_before_the_calls_before_which_the_job_mostly_slept(tmp_path):
    readings = ("MPI_Allreduce", (1, 0), 20), ("MPI_Bcast", (0, 1), 6), ("MPI_Bcast", (1, 0), 5)
    assert gaps(tmp_path, *readings) == {"MPI_Allreduce": False, "MPI_Bcast": True}


def recorded(tmp_path: Path, *records: dict) -> kits.Kit:
    """Two ranks that reduce once a millisecond; each has been asked to record, or not."""
    samples = [allreduce(2 * at, 1 + at) for at in range(200)]
    usual = {"samples": samples, "wall_ns": 500 * MS, "start_unix_ns": BEGIN_UNIX_NS}
    ranks = []
    for own in records:
        asked = {"record_asked_ns": 200 * MS, **own}
        times = asked.pop("times", None)
        ranks.append({**usual, **asked, "record": windows(*times)} if times else usual)
    return kit_from(tmp_path, *ranks)


BEGIN_UNIX_NS = 1_000_000 * planted.WINDOW_NS


def windows(begin_ms: int, end_ms: int) -> tuple[int, int]:
    """The first and last window between two times of a rank."""
    first, last = (at * MS // planted.WINDOW_NS for at in (begin_ms, end_ms))
    return 1_000_000 + first + 1, 1_000_000 + last - 1


def test_a_kit_covers_what_the_records_of_all_ranks_have_in_common(tmp_path):
    found = recorded(tmp_path, {"times": (100, 300)}, {"times": (110, 310)})
    assert 185 * MS < found.window_ns == found.record.ns < 190 * MS
    assert found.record.asked_ns == 200 * MS and found.record.why is None
    assert 90 <= found.made["MPI_Allreduce"] / 2 <= 95


FULL = {"times": (100, 150), "record_is_full": 1}
SHORT = {
    "full": ([FULL, {"times": (100, 300)}], "no more room on 1 of 2 ranks (COMMPROF_MEMORY)"),
    "ended": ([{"times": (400, 600)}] * 2, "the job ended before"),
    "not begun": ([{"times": (600, 800)}] * 2, "the job ended before"),
    "alone": ([{"times": (100, 300)}, {}], "only 1 of 2 ranks were asked to"),
}


@pytest.mark.parametrize("case", SHORT)
def test_what_a_record_lacks_is_said(tmp_path, case):
    records, why = SHORT[case]
    found = recorded(tmp_path, *records)
    assert found.record.why == why
    if case in ("not begun", "alone"):
        assert found.record.ns == 0 and found.window_ns > 490 * MS
    else:
        assert 40 * MS < found.window_ns == found.record.ns < 105 * MS


def set_up(call: str, at: int, **other: object) -> Sample:
    return Sample(call, at * MS, (at + 1) * MS, signature=FLOATS, **other)


def started(call: str, at: int, peer: int, number: int, **other: object) -> Message:
    """A message that a start begins, and a Waitall completes 3 ms later."""
    direction = "received" if "Recv" in call else "sent"
    what = {"peer": peer, "tag": TAG, "number": number, "completed_ns": (at + 3) * MS, **other}
    return Message(call, direction, at * MS, (at + 1) * MS, **what)


def persistent(begin: int) -> list[Sample]:
    return [
        Sample("MPI_Startall", begin * MS, (begin + 1) * MS, bytes=0),
        Sample("MPI_Waitall", (begin + 2) * MS, (begin + 3) * MS, bytes=0),
    ]


def test_starts_have_the_requests_that_were_set_up(tmp_path):
    """A receive that is set up first, a send; both started twice, and the send freed."""
    own = [
        set_up("MPI_Recv_init", 1),
        set_up("MPI_Send_init", 2),
        *persistent(4),
        *persistent(8),
        Sample("MPI_Request_free", 12 * MS, 13 * MS, bytes=0),
    ]
    calls = product(((4, 1), (8, 2)), ("MPI_Send_init", "MPI_Recv_init"))
    made = [(call, at, number) for (at, number), call in calls]
    both = [[started(call, at, peer, number) for call, at, number in made] for peer in (1, 0)]
    found = kit(tmp_path, own, own, messages=both)
    program = found.programs[0, 0]
    receive, send = (found.calls[made.call] for made in program[:2])
    assert receive == Call("MPI_Recv_init", WORLD, 0, 250, peer=1, tag=TAG, in_place=0)
    assert send == receive._replace(name="MPI_Send_init")
    assert [made.requests for made in program] == [(0,), (1,), (1, 0), (1, 0), (1, 0), (1, 0), (1,)]
    assert not found.before and not found.left_out


def test_what_was_set_up_in_another_time_is_set_up_before(tmp_path):
    """Without bytes there is no datatype to know; with bytes the start is left out."""
    messages = [
        [started("MPI_Send_init", 1, 1, 1, bytes=0), started("MPI_Send_init", 5, 1, 2)],
        [started("MPI_Recv_init", 1, 0, 1, bytes=0), started("MPI_Recv_init", 5, 0, 2)],
    ]
    own = [*persistent(1), *persistent(5)]
    found = kit(tmp_path, own, own, messages=messages)
    assert found.made == {"MPI_Startall": 2, "MPI_Waitall": 2}
    assert found.before[0, 0] == [Made(0, 0, (0,))]
    assert found.calls[0].name == "MPI_Send_init"
    assert sum(found.left_out.values()) == 4
    check_written(found, tmp_path / "job.kit")


def collectives(rank: int, orders: str) -> tuple[list[Sample], list[Start]]:
    """An Allreduce and a Barrier, set up in this order, started in the given one; the Allreduce is
    freed, and set up and started again."""

    def start(what: str, at: int, number: int, operation: int) -> Start:
        call, size = {"A": ("MPI_Allreduce_init", 1_000), "B": ("MPI_Barrier_init", 0)}[what]
        more = {"bytes": size, "completed_ns": (at + 3) * MS}
        return Start(call, operation, number, at * MS, (at + 1) * MS, **more)

    at = {what: 5 + 4 * place for place, what in enumerate(orders)}
    samples = [
        Sample("MPI_Allreduce_init", 1 * MS, 2 * MS, sequence=1, signature=SUM),
        Sample("MPI_Barrier_init", 3 * MS, 4 * MS, sequence=2, bytes=0),
        *persistent(5),
        *persistent(9),
        Sample("MPI_Request_free", 13 * MS, 14 * MS, bytes=0),
        Sample("MPI_Allreduce_init", 15 * MS, 16 * MS, sequence=3, signature=SUM),
        *persistent(17),
        *persistent(21),
    ]
    first = [start("A", at["A"], 1, 1), start("B", at["B"], 1, 2)]
    return samples, [*first, start("A", 17, 1, 3), start("B", 21, 2, 2)]


def test_persistent_collectives_set_up_in_another_time_are_set_up_before(tmp_path, monkeypatch):
    """In the same order on all ranks."""
    monkeypatch.setattr("commprof_report.replay.from_run.window", lambda *_: (5 * MS, 30 * MS))
    ranks = [collectives(0, "AB"), collectives(1, "BA")]
    found = kit(tmp_path, *(own for own, _ in ranks), starts=[own for _, own in ranks])
    for rank in range(2):
        before = [found.calls[made.call].name for made in found.before[rank, 0]]
        assert before == ["MPI_Allreduce_init", "MPI_Barrier_init"]
    assert found.made["MPI_Startall"] == 8 and found.made["MPI_Allreduce_init"] == 2


def test_starts_of_which_a_set_up_is_missing_are_left_out(tmp_path):
    """Else the n-th that was sampled would be taken for the n-th."""
    ranks = [collectives(0, "AB"), collectives(1, "AB")]
    found = kit(tmp_path, *(own[1:] for own, _ in ranks), starts=[own for _, own in ranks])
    assert "MPI_Startall" not in found.made and sum(found.left_out.values()) >= 16


def test_probes_are_made_with_their_messages(tmp_path):
    """A matched message has a number until it is received; a probe of none is left out."""
    found = kit(
        tmp_path,
        [message("MPI_Send", 1, 1), message("MPI_Send", 3, 1, 2)],
        [
            message("MPI_Probe", 1, 0),
            message("MPI_Mprobe", 3, 0),
            message("MPI_Iprobe", 5, 0, 9),
            message("MPI_Mrecv", 7, 0),
            message("MPI_Recv", 9, 0, 2),
            message("MPI_Mprobe", 11, 0, 3),
        ],
    )
    program = found.programs[1, 0]
    names = [found.calls[made.call].name for made in program]
    assert names == ["MPI_Probe", "MPI_Mprobe", "MPI_Mrecv", "MPI_Recv"]
    assert [made.requests for made in program] == [(), (0,), (0,), ()]
    assert {name for name, _ in found.left_out} == {"MPI_Iprobe", "MPI_Mprobe"}


def test_what_other_ranks_lack_is_left_out_on_all(tmp_path):
    found = kit(
        tmp_path,
        [allreduce(1, 1), allreduce(3, 2), message("MPI_Send", 5, 1), message("MPI_Send", 7, 1, 2)],
        [allreduce(1, 1), message("MPI_Recv", 7, 0, 2)],
    )
    assert found.made == {"MPI_Allreduce": 2, "MPI_Send": 1, "MPI_Recv": 1}
    left_out = {name: calls for (name, _), calls in found.left_out.items()}
    assert left_out == {"MPI_Allreduce": 1, "MPI_Send": 1}


@pytest.mark.parametrize("first_at", [1, 5])
def test_a_receive_of_any_tag_has_the_tag_of_the_message_that_it_got(tmp_path, first_at):
    """The first receive has a message from before the window: its size is another, or it was
    complete before the first one in the window was sent."""
    size = 1_000 if first_at == 1 else 2_000
    known = {"signature": FLOATS, "bytes": 1_000}
    sends = [
        Sample("MPI_Send", at * MS, (at + 1) * MS, peer=1, tag=tag, number=5, **known)
        for at, tag in [(3, 3), (7, 4)]
    ]
    any_tag = [
        Sample("MPI_Recv", at * MS, (at + 1) * MS, peer=0, **{**known, "bytes": own})
        for at, own in [(first_at, size), (6, 1_000), (8, 1_000)]
    ]
    found = kit(tmp_path, sends, any_tag)
    assert [call.tag for call in found.calls if call.name == "MPI_Recv"] == [3, 4]
    assert [made.gap_ns for made in found.programs[1, 0]] == [3 * MS, MS]  # the last two
    assert sum(found.left_out.values()) == 1


def test_a_posted_receive_takes_a_smaller_message_of_any_tag_or_of_nobody(tmp_path):
    posted = {"completed_ns": 9 * MS, "signature": FLOATS, "bytes": 32_768}
    found = kit(
        tmp_path,
        [message("MPI_Send", 3, 1)],
        [
            Sample("MPI_Irecv", MS, 2 * MS, peer=0, **posted),
            Sample("MPI_Irecv", 3 * MS, 4 * MS, tag=TAG, **posted),
            Sample("MPI_Waitall", 8 * MS, 9 * MS, bytes=0),
        ],
    )
    assert [call.peer for call in found.calls if call.name == "MPI_Irecv"] == [0, None]
    assert found.made["MPI_Irecv"] == 2 and not found.left_out


def test_calls_that_cannot_be_made_are_counted_with_the_reason(tmp_path):
    own = [
        Sample("MPI_Alltoallv", MS, 2 * MS, sequence=1),
        Sample("MPI_Put", 3 * MS, 4 * MS),
        Sample("MPI_Neighbor_allgather", 5 * MS, 6 * MS, sequence=2),
        Sample("MPI_Bsend_init", 7 * MS, 8 * MS),
        Sample("MPI_Start", 9 * MS, 10 * MS),
    ]
    found = kit(tmp_path, own, own)
    assert not found.made
    assert found.left_out == {
        ("MPI_Alltoallv", "its counts are not recorded (commprof-run --record)"): 2,
        ("MPI_Put", "is none of the calls that can be made again"): 2,
        ("MPI_Neighbor_allgather", "the order of its communicator's neighbors is not recorded"): 2,
        ("MPI_Bsend_init", "is none of the calls that can be made again"): 2,
        ("MPI_Start", "which requests it starts, or what they move, is not recorded"): 2,
    }


INTS = 3  # of a type as large as floats; or of one that is larger
COUNTED = [
    *SIGNATURES,
    Signature(INTS, "MPI_INT", counts_hash="0" * 16),
    Signature(4, "MPI_DOUBLE", 8, 8, counts_hash="0" * 16),
    Signature(5, "", None, None, None, None, counts_hash="0" * 16),
]


def vectors(tmp_path: Path, call: str, *own: tuple[int, str, int]) -> list[list[object]]:
    """One collective with these signatures, counts and bytes of ranks: of each rank its type's name
    and bytes, its elements, and the counts that it sends and receives."""
    ranks = []
    for number, counts, size in own:
        what = {"signature": number, "bytes": size, "sequence": 1, "root": 0}
        facts = {f"counts.{number}": counts} if counts else {}
        samples = [Sample(call, MS, 2 * MS, **what)]
        ranks.append({"samples": samples, "facts": facts, "signatures": COUNTED})
    made = kit_from(tmp_path, *ranks)
    calls = [made.calls[program[0].call] for _, program in sorted(made.programs.items())]
    return [
        [None if one.type is None else made.types[one.type].name, one.count]
        + [made.vectors[one.vector], one.received_vector and made.vectors[one.received_vector]]
        for one in calls
    ]


def test_ranks_receive_what_the_others_send_them(tmp_path):
    found = vectors(tmp_path, "MPI_Ialltoallv", (INTS, "1 2", 12), (FLOATS, "3 4", 28))
    assert [row[2:] for row in found] == [[(1, 2), (1, 3)], [(3, 4), (2, 4)]]


def test_counts_of_types_of_other_sizes_are_made_in_bytes(tmp_path):
    found = vectors(tmp_path, "MPI_Alltoallv", (INTS, "1 2", 12), (4, "3 4", 56))
    made = [[row[0], *row[2:]] for row in found]
    assert made == [["MPI_BYTE", (4, 8), (4, 24)], ["MPI_BYTE", (24, 32), (8, 32)]]
    found = vectors(tmp_path / "w", "MPI_Alltoallw", (5, "0 6", 6), (5, "0 0", 0))
    made = [[row[0], *row[2:]] for row in found]
    assert made == [["MPI_BYTE", (0, 6), (0, 0)], [None, (0, 0), (6, 0)]]


def test_the_root_scatters_what_the_others_receive_and_keeps_the_rest(tmp_path):
    found = vectors(tmp_path, "MPI_Scatterv", (FLOATS, "", 1000), (FLOATS, "", 1000))
    assert found == [["MPI_FLOAT", 0, (0, 250), None], ["MPI_FLOAT", 250, (0, 250), None]]
    found = vectors(tmp_path / "sum", "MPI_Reduce_scatter", (INTS, "7 9", 64), (INTS, "7 9", 64))
    assert [row[2] for row in found] == [(7, 9)] * 2


def test_buffers_that_overlap_do_so_again_and_others_stand_behind_each_other():
    memory = Memory([(9_000, 100), (1_000_050, 50), (1_000_000, 60), (9_099, 10_000), (20_480, 8)])
    places = [memory.at(at) for at in (9_000, 9_099, 1_000_000, 1_000_050, 20_480)]
    assert places == [808, 907, 12_864, 12_914, 16_384]


def test_a_kit_is_read_as_it_was_written(tmp_path):
    made = kit(
        tmp_path,
        [allreduce(1, 1), allreduce(3, 1, communicator=SPLIT)],
        [allreduce(1, 1), Sample("MPI_Put", 3 * MS, 4 * MS)],
    )
    check_written(made, tmp_path / "job.kit")
    assert made.comms[2] == Comm(WORLD, 2, "split", (0,))
    text = gzip.decompress((tmp_path / "job.kit").read_bytes())
    assert not any(word in text for word in (b"/", b"host", b"train"))


def test_a_kit_as_a_program_has_the_same_text(report, tmp_path):
    """Also where it is not of numbers and plain letters."""
    found = kit(tmp_path, [allreduce(2, 1)], [allreduce(1, 1)])
    found.library = 'a "library" ??/ \\n \t 7 MPI für %d'
    path, program = tmp_path / "job.kit", tmp_path / "text"
    kits.write(found, path)
    assert report("replay", "source", path, "-o", tmp_path / "job.c").status == 0
    inside = (tmp_path / "job.c").read_text().rpartition("\nconst char kit_inside")[2]
    text = (
        f"#include <stdio.h>\nconst char kit_inside{inside}"
        "int main(void) { fwrite(kit_inside, 1, sizeof kit_inside - 1, stdout); }\n"
    )
    compiler = ["gcc", "-std=c99", "-Wall", "-Werror", "-x", "c", "-", "-o", program]
    subprocess.run(compiler, input=text.encode(), check=True)
    written = subprocess.run([program], capture_output=True, check=True).stdout
    assert written == gzip.decompress(path.read_bytes())


def test_a_run_of_which_a_kit_would_be_nothing_is_refused(report, tmp_path):
    bare = planted.write_databases(tmp_path / "bare", of_calls(50_000))
    part = planted.write_databases(tmp_path / "part", of_calls(50_000)[:1])
    for folder, why in ((bare, "all calls of all ranks were sampled"), (part, "not all ranks")):
        answer = report("replay", "kit", folder, "-o", tmp_path / "job.kit")
        assert answer.status == 1 and why in answer.err
        assert not (tmp_path / "job.kit").exists()


def test_noise_of_the_job_is_no_agreement(report, tmp_path):
    """Its Allreduces differ by half between two runs, its Bcasts do not."""
    made = jobs(tmp_path / "job", 50_000, 2, 25_000)
    again = planted.write_databases(tmp_path / "again", of_calls(60_000))
    rows = report("replay", "check", "--json", *made, "--", again).rows
    verdicts = {row["call"]: row["verdict"] for row in rows}
    assert verdicts == {"MPI_Allreduce": "unknown", "MPI_Bcast": "near"}
    found = report("replay", "check", *made, "--", again).out
    assert "Known           for 0.40 % of the job's time inside MPI; in the rest runs of" in found
    assert "Stands          for 100.0 % of that, 0.00 % by a test, within 10.0 %" in found


def test_a_replay_under_another_library_is_no_check(report, tmp_path):
    job, again = (
        planted.write_databases(tmp_path / name, of_calls(50_000, mpi_version=version))
        for name, version in (("job", "MPICH Version: 4.0.2"), ("again", "Open MPI v4.1.4"))
    )
    answer = report("replay", "check", job, "--", again)
    assert answer.status == 2
    assert "the job ran under MPICH 4.0.2, its replay under Open MPI 4.1.4" in answer.err


def test_a_kit_of_a_small_part_of_the_job_is_no_check(report, tmp_path):
    job, again = (
        planted.write_databases(tmp_path / name, of_calls(50_000, calls=calls))
        for name, calls in (("job", 100), ("again", 20))
    )
    answer = report("replay", "check", job, "--", again)
    assert answer.status == 2
    assert "a kit of the whole job: a replay made 58 of its 218 calls" in answer.err


def signed(text: str) -> bytes:
    digest = hashlib.sha256(text.encode()).hexdigest()
    return gzip.compress(f"commprof-kit 1\nsha256 {digest}\n{text}".encode())


WHOLE = """\
library Open MPI 4.1.4
ranks 2
window 1000
comm 0 0 0 world 0,1
comm 1 1 0 self -
type 0 MPI_FLOAT 4 4 1
call 0 MPI_Bcast 0 0 250 - 1 - - 0 - - - - - - - - -
program 0 0 0
5 0
"""


def polled(tmp_path: Path, polls: int) -> list[tuple]:
    """For a rank that receives, and polls from 3 ms on, 1 ms in all, until 8 ms: each call with the
    gap before it, in milliseconds, and the pause between its polls."""
    own = [
        message("MPI_Irecv", 1, 1, completed_ns=9 * MS),
        Sample("MPI_Test", 8 * MS, 9 * MS, bytes=0, polled=(3 * MS, MS)),
    ]
    others = [message("MPI_Send", 7, 0)]
    cells = [Cell("MPI_Test", 0, [MS // polls], measure="poll", times=polls)]
    usual = {"cells": cells, "facts": ONE_CLOCK}
    made = kit_from(tmp_path, *[{"samples": samples, **usual} for samples in (own, others)])
    calls = [(made.calls[one.call], one.gap_ns / MS) for one in made.programs[0, 0]]
    return [(call.name, gap_ms, call.pause_ns) for call, gap_ms in calls]


@pytest.mark.parametrize(
    "polls, gap_ms, pause_ns", [(1000, 1.0, 4000), (100, 6.0, None)], ids=["waits", "computes"]
)
def test_a_loop_of_polls_begins_at_its_first_one(tmp_path, polls, gap_ms, pause_ns):
    """And waits for the message, as long as that takes; who polls now and then has computed."""
    *_, test = polled(tmp_path, polls)
    assert test == ("MPI_Test", gap_ms, pause_ns)


WRONG = [
    tuple(change.split(" => "))
    for change in (
        "ranks 2 => ranks two; 0,1 => 0,2; call 0 => call 1; MPI_Bcast => MPI_Abort; 5 0 => 5 1; "
        "5 0 => -5 0; - 1 - => - 2 -; program 0 => program 9; type 0 => tape 0; 0,1 => 1,0; "
        "comm 1 1 => comm 1 2; 0,1 => 0; 0,1 => 0,1,1; self - => self 0; 5 0 => ~~5 0; "
        "MPI_Bcast 0 => MPI_Bcast -1; program 0 => program -1; 5 0 => 5 0 -1"
    ).split("; ")
]
WRONG += [(" 250 ", " -250 "), ("0 - - - - - - - - -", "0 - - - - - - - - -1")]
MANY = """\
library Open MPI 4.1.4
ranks 4
window 1000
left-out 3 MPI_Put is none of the calls that can be made again
late 1 MPI_Isend
comm 0 0 0 world 0,1,2,3
comm 1 1 0 self -
comm 2 0 2 split 0,2
comm 3 0 2 split 3,1
comm 4 2 4 dup 0,2
type 0 MPI_FLOAT 4 4 1
type 1 vector 8 -16 2
vector 0 10 20 30 40
call 0 MPI_Allreduce 4 0 250 MPI_SUM - - - 0 - - - - - - - - -
call 1 MPI_Isend 0 1 7 - - 1 99 0 - - - - - - - - -
call 2 MPI_Testall - - - - - - - - - - - - - - - - 2400
call 3 MPI_Allgatherv 0 0 10 - - - - 0 0 - - - - - - - -
call 4 MPI_Sendrecv 3 0 10 - - 0 5 0 - 1 3 1 6 - - - -
program 0 0 0
0 0
~12 1 0
5 2 0
program 1 0 0
3 3
1 4
"""


NO_COMMUNICATORS = [
    tuple(change.split(" => "))
    for change in (
        "split 0,2 => split 0,4; split 0,2 => split 0,0; split 3,1 => split 2,1; dup 0,2 => dup 0; "
        "comm 3 0 2 => comm 3 2 2; comm 3 0 2 => comm 3 0 0; comm 4 2 4 => comm 4 2 2; "
        "split 0,2 => world 0,2; 10 20 30 40 => 10 20 30; comm 4 2 4 dup 0,2 => comm 4 1 4 dup -"
    ).split("; ")
]
EVERYTHING = (
    MANY
    + """\
~7 4
program 2 0 2
0 5 0
0 6 1
1 7 0 1
1 8 0 1
"""
)
EVERYTHING = EVERYTHING.replace(
    "program 0 0 0",
    "call 5 MPI_Send_init 0 0 7 - - 1 99 0 - - - - - - - - -\n"
    "call 6 MPI_Allreduce_init 0 0 7 MPI_SUM - - - 0 - - - - - - - - -\n"
    "call 7 MPI_Startall" + 17 * " -" + "\ncall 8 MPI_Waitall" + 17 * " -" + "\nprogram 0 0 0",
).replace("late 1", "recorded 5 7 the record of rank 1 was full\nlate 1")


def mutants() -> Iterator[str]:
    """With other characters, words, and lines."""
    dice = random.Random(2)
    words = ["", "-", "~", "1 1", "+1", "01", "-1", str(2**31), str(2**40), str(10**18)]
    words += ["\t", "MPI_Isendrecv"]
    for number in range(600):
        lines = EVERYTHING.splitlines(keepends=True)
        for _ in range(dice.randint(1, 2)):
            at = dice.randrange(len(lines))
            if number % 3 == 0:
                text = list(lines[at])
                text[dice.randrange(len(text))] = dice.choice("0123456789 -,\nx\0\r\u00e4")
                lines[at] = "".join(text)
            elif number % 3 == 1:
                parts = lines[at].rstrip("\n").split(" ")
                parts[dice.randrange(len(parts))] = dice.choice(words)
                lines[at] = " ".join(parts) + "\n"
            else:
                lines[at] = dice.choice(("", 2 * lines[at], lines[dice.randrange(len(lines))]))
        yield "".join(lines)


SMALL = {"TEXT": 1 << 19, "LINE": 1 << 17, "TABLE_LINES": 1 << 10}


def large(*lines: str) -> bytes:
    return signed(EVERYTHING.partition("program")[0] + "".join(lines))


def files() -> Iterator[tuple[bytes, str]]:
    """With other heads and other streams; and why they are refused, if they are."""
    whole = signed(EVERYTHING)
    text = gzip.decompress(whole)
    stream, other = "is damaged: it is not one whole gzip stream", "is a kit of another version"
    digest = "is damaged: its SHA-256 is another one"
    yield from ((whole, ""), (text, ""), (gzip.compress(text, 0), ""))
    yield from ((whole + tail, stream) for tail in (b"\0", b"x", b"\x1f", b"\x1f\x8b", whole))
    yield from ((whole[:end], stream) for end in (1, 9, 30, len(whole) - 9, len(whole) - 1))
    for place in (-1, -5, len(whole) // 2):  # length, CRC, data
        wrong = bytearray(whole)
        wrong[place] ^= 1
        yield bytes(wrong), stream
    yield gzip.compress(text[:500]) + gzip.compress(text[500:]), stream
    for old, new, why in (
        (b"", b"", ""),
        (b"kit 1\n", b"kit 1\0x\n", other),
        (b"kit 1\n", b"kit 2\n", other),
        (b"kit 1\n", b"kit 1\r\n", other),
        (b"commprof", b"Commprof", "is no kit"),
        (b"\nlibrary", b"\0\nlibrary", digest),
        (b"sha256 ", b"sha256  ", digest),
        (b"sha256 ", b"", digest),
        (b"~7 4", b"~7 5", digest),
        (b"\nlibrary", b"library", digest),
    ):
        changed = text.replace(old, new, 1)
        yield from ((changed, why), (gzip.compress(changed), why))
    yield from ((text[:end], why) for end, why in ((0, "is no kit"), (14, digest), (60, digest)))
    yield from ((signed(WHOLE), ""), (signed(MANY), ""))
    for kit_text, changes in ((WHOLE, WRONG), (MANY, NO_COMMUNICATORS)):
        yield from ((signed(kit_text.replace(*change, 1)), "line") for change in changes)
    head = len(gzip.decompress(large()))
    line = "library " + (SMALL["LINE"] - 8) * "x"
    yield large(line), ""
    yield from ((large(line, more), "line 26: a line is too") for more in ("x", "x\n", 2 * line))
    lines = (SMALL["TEXT"] - head) // 999 * ("library " + 990 * "x" + "\n")
    rest = "library " + (SMALL["TEXT"] - head - len(lines) - 8) * "x"
    yield from ((large(lines, rest, more), why) for more, why in (("", ""), ("x", "is too large")))
    notes = (SMALL["TABLE_LINES"] - 23) * "library \n"
    yield from ((large(notes, *more), why) for more, why in (((), ""), (["library \n"], "line")))


def test_a_kit_of_anybody_is_replayed_or_refused(tmp_path):
    """Also damaged before it was signed: nothing but an error of ours comes of it, and what can be
    replayed can be shown."""
    source, program = Path(__file__).parents[2] / "src", tmp_path / "reads_kits"
    others = [source / f"{name}.c" for name in ("mpi/mpi_abi", "mpi/datatypes", "base/host")]
    shutil.copytree(source / "tools/replay", tmp_path / "tools/replay")
    grammar = tmp_path / "tools/replay/kit.def"
    for name, most in SMALL.items():
        line = f"KIT_SIZE({name}, {most})"
        grammar.write_text(re.sub(rf"KIT_SIZE\({name}, \d+\)", line, grammar.read_text()))
    flags = "-std=c11 -D_GNU_SOURCE -O1 -fsanitize=address,undefined -fno-sanitize-recover"
    parts = [f"-I{tmp_path}", f"-I{source}", Path(__file__).with_name("reads_kits.c"), *others]
    build = ["gcc", *flags.split(), *parts, "-ldl", "-lpthread", "-o", program]
    subprocess.run(build, check=True)
    rows = [*files(), *((signed(text), None) for text in mutants())]
    paths = [tmp_path / f"{number}.kit" for number in range(len(rows))]
    for path, (content, _) in zip(paths, rows):
        path.write_bytes(content)
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    of_c = subprocess.run(
        [program, *paths], check=True, capture_output=True, text=True, env=environment
    ).stdout.splitlines()
    read = 0
    for path, (_, expected), why in zip(paths, rows, of_c):
        assert bool(why) == bool(why if expected is None else expected), path
        assert why.startswith(expected or "") or "made again" in why, path
        read += not why
        try:
            kits.read(path)
        except ReportError:
            assert why, path
    assert 60 < read < len(rows) - 60


def test_a_kit_that_unpacks_to_too_much_is_refused_in_little_memory(tmp_path):
    path = tmp_path / "job.kit"
    head = f"commprof-kit 1\nsha256 {'0' * 64}\n".encode()
    path.write_bytes(gzip.compress(head) + (1 << 8) * gzip.compress((1 << 20) * b"x"))
    tracemalloc.start()
    with pytest.raises(ReportError, match="is too large"):
        kits.read(path)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1 << 25


def of_calls(mean_ns: int, calls: int = 40, **facts: str) -> list[Rank]:
    cells = [Cell("MPI_Allreduce", 1_000, [mean_ns] * calls), Cell("MPI_Bcast", 8, [900] * 9)]
    return [
        Rank(rank, 2, communicators=[world(rank, 2)], facts=facts, cells=cells) for rank in range(2)
    ]


def test_replays_stand_for_rows_with_equal_calls_and_times(report, tmp_path):
    """Six of each: Allreduces that take as long, and in other replays twice as long."""
    made = jobs(tmp_path / "job", 50_000, 6, 1)
    same, slow = (jobs(tmp_path / f"{ns}", ns, 6, 1) for ns in (50_200, 99_000))
    other = planted.write_databases(tmp_path / "other", of_calls(50_000, 39))
    rows = report("replay", "check", "--json", *made, "--", *same).rows
    assert rows[0]["verdict"] == "stands"
    assert "no: longer" in report("replay", "check", *made, "--", *slow).out
    assert "no: other calls" in report("replay", "check", *made, "--", other).out


KIT = "ab" * 32


def replays(folder: Path, mean_ns: int, times: int = 1, kit: str = KIT, **options: str) -> list:
    """Runs whose profiles say which kit they replay, and with which options."""
    facts = {f"env.COMMPROF_REPLAY_{name}": value for name, value in options.items()}
    return jobs(folder, mean_ns, times, 1, **{"env.COMMPROF_REPLAY_KIT": kit, **facts})


def jobs(folder: Path, mean_ns: int, times: int = 1, more: int = 0, **facts: str) -> list[Path]:
    """more: by how much the calls of each take longer than those of the one before."""
    return [
        planted.write_databases(
            folder.with_name(f"{folder.name}-{place}"), of_calls(mean_ns + more * place, **facts)
        )
        for place in range(times)
    ]


def test_a_comparison_of_replays_says_for_which_share_of_the_job_they_stand(report, tmp_path):
    sides = [*replays(tmp_path / "a", 50_000, 2), "--", *replays(tmp_path / "b", 70_000, 2)]
    found = " ".join(report("compare", *sides).out.split())
    assert f"Program replay of kit {KIT[:12]}; 2 ranks on 1 host" in found
    assert "Stands for an unknown share of the job: no check of the kit is at hand" in found
    check = tmp_path / "job.kit.check"
    sides_of_check = [*jobs(tmp_path / "job", 50_000), "--", *replays(tmp_path / "own", 51_000)]
    answer = report("replay", "check", *sides_of_check, "-o", check)
    share = answer.out.split("Stands          for ")[1].split(" of that")[0]
    said = report("compare", *sides, "--check", check)
    found = " ".join(said.out.split())
    own = "as an estimate, within 10.0 %: 1 replay against 1 run of the job under unknown library"
    assert f"Stands for {share} of the job's time inside MPI, {own}" in found
    (verdict,) = report("compare", *sides, "--check", check, "--by", "verdict", "--json").rows
    assert (verdict["kit"], f"{100 * verdict['stands_for']:.1f} %") == (KIT, share)


def test_the_arms_of_an_experiment_are_job_and_replay_in_any_order(report, tmp_path):
    runs = [*jobs(tmp_path / "b", 50_000), *replays(tmp_path / "a", 51_000)]
    folder, check = compared_runs.experiment(tmp_path, runs), tmp_path / "job.kit.check"
    found = report("replay", "check", folder, "-o", check).out
    assert found == report("replay", "check", runs[0], "--", runs[1]).out
    assert json.loads(check.read_text())["kit"] == KIT


def test_a_check_of_another_kit_or_of_other_gaps_says_nothing(report, tmp_path):
    check = tmp_path / "job.kit.check"
    own = replays(tmp_path / "own", 51_000)
    report("replay", "check", *jobs(tmp_path / "job", 50_000), "--", *own, "-o", check)
    for other, why in (({"kit": "cd" * 32}, "unknown share"), ({"GAPS": "none"}, "gaps none")):
        name = why.partition(" ")[2]
        first, second = (
            replays(tmp_path / f"{name}-{side}", mean_ns, **other)
            for side, mean_ns in (("a", 50_000), ("b", 70_000))
        )
        answer = report("compare", *first, *second, "--check", check)
        line = answer.out.partition("Stands for ")[2].partition("\n\n")[0]
        assert why in line and " %" not in line
        by_verdict = ("--check", check, "--by", "verdict", "--json")
        (row,) = report("compare", *first, *second, *by_verdict).rows
        assert row["stands_for"] is None


def test_a_file_that_is_no_result_of_a_check_is_refused_in_one_line(report, tmp_path):
    sides = [*replays(tmp_path / "a", 50_000), *replays(tmp_path / "b", 70_000)]
    check = tmp_path / "job.kit.check"
    sides_of_check = [*jobs(tmp_path / "job", 50_000), "--", *replays(tmp_path / "own", 51_000)]
    report("replay", "check", *sides_of_check, "-o", check)
    whole = json.loads(check.read_text())
    for wrong in ({}, [], {**whole, "share": 2}, {**whole, "version": 9}, {**whole, "failing": 1}):
        check.write_text(json.dumps(wrong))
        answer = report("compare", *sides, "--check", check)
        assert (answer.status, answer.err.count("\n")) == (1, 1) and str(check) in answer.err


def test_replays_of_one_kit_from_two_folders_are_one_program(report, tmp_path):
    first = replays(tmp_path / "a", 50_000)
    second = replays(tmp_path / "b", 51_000, REPEAT="1")
    assert "Stands for" in (found := report("compare", *first, *second).out)
    assert "Refused" not in found
    third = replays(tmp_path / "c", 52_000, ARRIVAL="barrier")
    found = " ".join(report("compare", *first, *third).out.split())
    assert "Also different COMMPROF_REPLAY_ARRIVAL (not set; c-0: barrier)" in found
    assert "Stands for not the job as it ran: arrival barrier" in found and "Refused" not in found
    other = replays(tmp_path / "d", 53_000, kit="cd" * 32)
    found = " ".join(report("compare", *first, *other).out.split())
    assert f"replay of kit {KIT[:12]} in a-0; replay of kit {'cd' * 6} in d-0." in found
