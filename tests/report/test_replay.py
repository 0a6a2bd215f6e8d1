"""Kits: written from a run, read again, refused where they are damaged; and whether replays stand
for the job. Real jobs and their replays: tests/mpi/test_replay.py."""

from __future__ import annotations

import gzip
import hashlib
import json
import random
from pathlib import Path

import planted
import pytest
from commprof_report.base.errors import ReportError
from commprof_report.replay import kit as kits
from commprof_report.replay.from_run import kit_of
from commprof_report.replay.kit import WORLD, Call, Comm, Made, Type
from commprof_report.run.run import run_open
from parallel import split, world
from planted import Cell, Rank, Sample, Signature

MS = 1_000_000
SPLIT, TAG, FLOATS, SUM = 4, 7, 1, 2
SIGNATURES = [Signature(FLOATS), Signature(SUM, op="MPI_SUM", is_commutative=1)]


def kit(tmp_path: Path, *samples: list[Sample]) -> kits.Kit:
    """A run of two ranks, which have a communicator of each alone beside the world."""
    ranks = [
        Rank(
            rank, 2, communicators=[world(rank, 2), split(SPLIT, rank, [rank], 9)],
            samples=own, signatures=SIGNATURES,
        )
        for rank, own in enumerate(samples)
    ]
    run = run_open([planted.write_databases(tmp_path / "run", ranks)], False, True, None)
    return kit_of(run)


def allreduce(at: int, sequence: int, **other: object) -> Sample:
    return Sample(
        "MPI_Allreduce", at * MS, (at + 1) * MS, sequence=sequence, signature=SUM, **other
    )


def message(call: str, at: int, peer: int, number: int = 1, **other: object) -> Sample:
    return Sample(
        call, at * MS, (at + 1) * MS, peer=peer, tag=TAG, number=number, signature=FLOATS, **other
    )


def test_a_kit_has_the_calls_and_the_times_between_them(tmp_path):
    found = kit(
        tmp_path,
        [allreduce(2, 1), message("MPI_Send", 6, 1), allreduce(9, 2)],
        [allreduce(1, 1), message("MPI_Recv", 6, 0), allreduce(9, 2)],
    )
    assert found.comms[WORLD] == Comm(WORLD, 0, "world", (0, 1))
    assert found.types == [Type("MPI_FLOAT", 4, 4, 1)]
    sums = Call("MPI_Allreduce", WORLD, 0, 250, "MPI_SUM", in_place=0)
    send = Call("MPI_Send", WORLD, 0, 250, peer=1, tag=TAG, in_place=0)
    receive = Call("MPI_Recv", WORLD, 0, 250, peer=0, tag=TAG, in_place=0)
    assert found.calls == [sums, send, receive]
    assert found.programs == {
        (0, 0): [Made(0, 0), Made(3 * MS, 1), Made(2 * MS, 0)],
        (1, 0): [Made(0, 0), Made(4 * MS, 2), Made(2 * MS, 0)],
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


def test_what_other_ranks_lack_is_left_out_on_all(tmp_path):
    found = kit(
        tmp_path,
        [allreduce(1, 1), allreduce(3, 2), message("MPI_Send", 5, 1), message("MPI_Send", 7, 1, 2)],
        [allreduce(1, 1), message("MPI_Recv", 7, 0, 2)],
    )
    assert found.made == {"MPI_Allreduce": 2, "MPI_Send": 1, "MPI_Recv": 1}
    assert {name: calls for (name, _), calls in found.left_out.items()} == {
        "MPI_Allreduce": 1, "MPI_Send": 1,
    }


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
    assert [made.gap_ns for made in found.programs[1, 0]] == [0, MS]  # the second and the third
    assert sum(found.left_out.values()) == 1


def test_a_posted_receive_takes_a_smaller_message_of_any_tag_or_of_nobody(tmp_path):
    posted = {"completed_ns": 9 * MS, "signature": FLOATS, "bytes": 32_768}
    found = kit(
        tmp_path, [message("MPI_Send", 3, 1)],
        [
            Sample("MPI_Irecv", MS, 2 * MS, peer=0, **posted),
            Sample("MPI_Irecv", 3 * MS, 4 * MS, tag=TAG, **posted),
            Sample("MPI_Waitall", 8 * MS, 9 * MS, bytes=0),
        ],
    )
    assert [call.peer for call in found.calls if call.name == "MPI_Irecv"] == [0, None]
    assert found.made["MPI_Irecv"] == 2 and not found.left_out


def test_calls_that_cannot_be_made_are_counted_with_the_reason(tmp_path):
    own = [Sample("MPI_Alltoallv", MS, 2 * MS, sequence=1), Sample("MPI_Put", 3 * MS, 4 * MS)]
    found = kit(tmp_path, own, own)
    assert not found.made and sum(found.left_out.values()) == 4


def test_a_kit_is_read_as_it_was_written(tmp_path):
    made = kit(
        tmp_path, [allreduce(1, 1), allreduce(3, 1, communicator=SPLIT)],
        [allreduce(1, 1), Sample("MPI_Put", 3 * MS, 4 * MS)],
    )
    digest = kits.write(made, tmp_path / "job.kit")
    assert kits.read(tmp_path / "job.kit") == (made, digest)
    assert made.comms[2] == Comm(WORLD, 2, "split", (0,))
    text = gzip.decompress((tmp_path / "job.kit").read_bytes())
    assert not any(word in text for word in (b"/", b"host", b"train"))


def test_a_run_of_which_a_kit_would_be_nothing_is_refused(report, tmp_path):
    bare = planted.write_databases(tmp_path / "bare", of_calls(50_000))
    part = planted.write_databases(tmp_path / "part", of_calls(50_000)[:1])
    for folder, why in ((bare, "all calls of all ranks were sampled"), (part, "not all ranks")):
        answer = report("replay", "kit", folder, "-o", tmp_path / "job.kit")
        assert answer.status == 1 and why in answer.err
        assert not (tmp_path / "job.kit").exists()


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
call 0 MPI_Bcast 0 0 250 - 1 - - 0 - - - - -
program 0 0 0
5 0
"""


@pytest.mark.parametrize(
    "old, new",
    [
        ("ranks 2", "ranks two"), ("0,1", "0,2"), ("call 0", "call 1"), (" 250 ", " -250 "),
        ("MPI_Bcast", "MPI_Abort"), ("5 0", "5 1"), ("5 0", "-5 0"), ("- 1 -", "- 2 -"),
        ("program 0", "program 9"), ("type 0", "tape 0"), ("comm 1 1", "comm 1 2"),
    ],
)
def test_a_kit_with_a_wrong_number_is_refused_in_one_line(report, tmp_path, old, new):
    path = tmp_path / "job.kit"
    path.write_bytes(signed(WHOLE))
    assert report("replay", "show", path).status == 0
    path.write_bytes(signed(WHOLE.replace(old, new, 1)))
    answer = report("replay", "show", path)
    assert (answer.status, answer.err.count("\n")) == (1, 1)
    assert str(path) in answer.err


def test_a_damaged_kit_is_refused(tmp_path):
    """By gzip's sum or by ours; nothing else comes of it."""
    path, whole, dice = tmp_path / "job.kit", signed(WHOLE), random.Random(1)
    for _ in range(500):
        damaged = bytearray(whole)
        for _ in range(dice.randint(1, 3)):
            damaged[dice.randrange(10, len(whole))] ^= 1 << dice.randrange(8)
        path.write_bytes(bytes(damaged[: dice.choice((len(whole), dice.randrange(len(whole))))]))
        with pytest.raises(ReportError):
            if bytes(damaged) == whole:
                raise ReportError(path, "is whole")
            kits.read(path)


def of_calls(mean_ns: int, calls: int = 40) -> list[Rank]:
    return [
        Rank(
            rank, 2, communicators=[world(rank, 2)],
            cells=[
                Cell("MPI_Allreduce", 1_000, [mean_ns] * calls), Cell("MPI_Bcast", 8, [900] * 9),
            ],
        )
        for rank in range(2)
    ]


def test_replays_stand_for_rows_with_equal_calls_and_times(report, tmp_path):
    """Four of each: Allreduces that take as long, and in other replays twice as long."""
    def folders(name: str, mean_ns: int, times: int, calls: int = 40) -> list[Path]:
        return [
            planted.write_databases(tmp_path / f"{name}-{place}", of_calls(mean_ns + place, calls))
            for place in range(times)
        ]

    jobs = folders("job", 50_000, 6)
    stands = report("replay", "check", *jobs, "--", *folders("same", 50_200, 6), "--json").out
    assert [row["verdict"] for row in json.loads(stands)][0] == "stands"
    longer = report("replay", "check", *jobs, "--", *folders("slow", 99_000, 6))
    assert "no: longer" in longer.out
    other = report("replay", "check", *jobs, "--", *folders("other", 50_000, 1, calls=39))
    assert "no: other calls" in other.out
