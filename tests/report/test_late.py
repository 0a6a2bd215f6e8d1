"""Who is late: planted jobs in which every rank's coming is known."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import planted
import pytest
from cases import Columns, No, Row, by_seed, check, of
from commprof_report.base import Texts, side_by_side
from commprof_report.late import verdict
from commprof_report.late.verdict import Participants, blame, costs_of, enough_arrivals
from planted import SECOND
from planted_job import HostClock, Job, Program, repeated, waits_for

US, MS = 1_000, 1_000_000
KINDS = [
    f"MPI_{name}"
    for name in (
        "Allreduce Allgather Allgatherv Alltoall Alltoallv Alltoallw Barrier Reduce_scatter "
        "Reduce_scatter_block Bcast Scatter Reduce Gather Scan Exscan"
    ).split()
]
TWO_CALLS = Texts()
TWO_CALLS.all(["MPI_Allreduce", "MPI_Barrier"])
ALIKE = [HostClock()] * 4
APART = [HostClock()] * 2 + [HostClock(SECOND)] * 2


def named(ranks: str | None, **more: object) -> tuple:
    return ("late --by run", {"verdict": "imbalance", "late_ranks": ranks, **more})


def nobody(**more: object) -> tuple:
    return ("late --by run", {"late_ranks": None, **more})


def by_rank(words: str = "", **columns: list) -> tuple:
    return (f"late --by rank {words}", Columns(columns))


def one_host(ranks: int) -> Job:
    return Job([HostClock(77)] * ranks)


# The split of a call into waiting and transfer


def called(call: str, arrivals: list[int], transfers: list[int], root: int | None = None) -> Job:
    job = one_host(len(arrivals))
    job.collective(call, arrivals, transfers, root=root)
    return job


def nothing_to_receive() -> Job:
    """A rank that leaves an Alltoallv before the last one comes."""
    job = called("MPI_Alltoallv", [0, 9_000], [100, 100])
    job.rows["sample"][0]["end_ns"] = job.rows["sample"][0]["start_ns"] + 50
    job.made[0]["duration_ns"] = 50
    return job


def ibcast(arrivals: list[int], waited_ns: int) -> Job:
    job = one_host(2)
    for rank, end_ns in enumerate(job.collective("MPI_Ibcast", arrivals, [50, 50], root=0)):
        job.call("MPI_Wait", end_ns - waited_ns, end_ns, rank)
    return job


def two_groups() -> Job:
    job = one_host(2)
    job.collective("MPI_Allreduce", [0, 500], [100, 100], message_bytes=8)
    job.collective("MPI_Allreduce", [10_000, 10_050], [100, 100], message_bytes=1 << 20, region=1)
    for rank in range(2):
        job.add("region", world_rank=rank, region=1, name="epoch/sum")
    half = job.group((0, 1), "tensor")
    job.collective("MPI_Barrier", [MS + 900, MS], [10, 10], group=half, message_bytes=0)
    return job


def not_split() -> Job:
    job = one_host(2)
    job.collective("MPI_Barrier", [0, 50], [10, 10], group=job.group((0, 1), is_inter=1))
    job.collective("MPI_Neighbor_alltoall", [0, 50], [10, 10])
    job.collective("MPI_Allreduce", [0], [10], group=job.group((0,)))
    return job


def a_file_missing() -> Job:
    job = Job(ALIKE, missing=(3,))
    job.collective("MPI_Bcast", [0, 5, 9, 100], [10] * 4, root=3)
    job.collective("MPI_Barrier", [1_000, 1_005, 1_009, 1_100], [10] * 4)
    return job


def clocks_that_do_not_tell(call: str, root: int | None = None) -> Job:
    job = Job([HostClock(), HostClock(9 * SECOND, wall_ns=300 * MS)])
    job.collective(call, [0, 400 * US], [10 * US, 20 * US], root=root)
    return job


def lacking_a_sample() -> Job:
    job = one_host(3)
    for step in range(2):
        job.collective("MPI_Barrier", [step * MS, step * MS + 5, step * MS + 9], [10] * 3)
    gone = (1, 2)
    job.rows["sample"] = [
        row for row in job.rows["sample"] if of(row, "world_rank sequence") != gone
    ]
    return job


SPLIT = {
    "others wait for the root of a Bcast and it for nobody": (  # nor for rank 2, who came last
        lambda: called("MPI_Bcast", [5_000, 1_000, 9_000], [100] * 3, 0),
        by_rank(wait_ns=[0, 4_000, 0], last_count=[1, 0, 0], cost_ns=[4_000, 0, 0]),
    ),
    "a wait is no longer than the call": (
        nothing_to_receive,
        by_rank(wait_ns=[50, 0], transfer_ns=[0, 100]),
    ),
    "nobody waits for a leaf": (lambda: ibcast([0, 7_000], 10), by_rank(last_count=[0, 0])),
    "neighborhoods, inter-communicators and lonely ranks are not split": (
        not_split,
        ("late --by run", {"verdict": "none", "total_ns": 60 + 10 + 60 + 10 + 10, "coverage": 0}),
        ("late", "no call was split into waiting and transfer. Not split 35 ns per rank in MPI_B"),
    ),
    "calls say for whom they wait most": (
        two_groups,
        (
            "late --by call",
            Columns(communicator=["MPI_COMM_WORLD", "tensor"], top_rank=[1, 0]),
            Columns(wait_ns=[550, 900], transfer_ns=[400, 20], total_ns=[950, 920]),
        ),
        by_rank("--call Barrier", wait_ns=[0, 900]),
        by_rank("--communicator tensor", wait_ns=[0, 900]),
        by_rank("--bytes 1K:", wait_ns=[50, 0]),
        by_rank("--region epoch", wait_ns=[50, 0]),
        by_rank("--rank 1", rank=[1]),
    ),
    "a collective of which a rank has no sample is left out": (
        lacking_a_sample,
        ("late --by run", {"collectives": 1}),
    ),
    "ranks whose files are missing may be the late ones": (  # when the root came is not known
        a_file_missing,
        ("late --by run", {"collectives": 1, "unsure": 1}),
        ("late", "rank 3: late ranks may be among them"),
    ),
    "where clocks do not tell, durations do": (
        lambda: clocks_that_do_not_tell("MPI_Alltoallv"),
        ("late --by run", {"unconnected_clocks": 1, "estimate_share": 1, "error_ns": 0}),
        by_rank(wait_ns=[390 * US, 0], transfer_ns=[20 * US] * 2, cost_ns=[0, 390 * US]),
        ("late", "without a common collective"),
        ("late --by call", "~"),
    ),
    "of a Bcast they do not": (
        lambda: clocks_that_do_not_tell("MPI_Bcast", 0),
        ("late --by run", {"verdict": "none", "unsure": 1, "total_ns": 30 * US}),
    ),
}


@pytest.mark.parametrize("name", SPLIT)
def test_a_call_is_split_at_the_last_arrival_that_it_needs(report, tmp_path, name):
    check(report, tmp_path / "run.db", *SPLIT[name])


@pytest.mark.parametrize("seed", by_seed(range(10), 4))
def test_sums_are_those_of_the_definition(late, seed):
    """Such calls all move data for as long: nobody is held up."""
    chance = random.Random(seed)
    job = one_host(5)
    moving_ns = {call: chance.randrange(1, 50 * US) for call in KINDS}
    groups = [job.world, job.group((1, 3, 4)), job.group((0, 2))]
    sums = {"wait_ns": [0] * 5, "cost_ns": [0] * 5, "transfer_ns": [0] * 5}
    for step in range(60):
        group, call = chance.choice(groups), chance.choice(KINDS)
        arrivals = [step * MS + chance.randrange(300 * US) for _ in group.ranks]
        spent, root = [moving_ns[call]] * len(group.ranks), chance.randrange(len(group.ranks))
        job.collective(call, arrivals, spent, root, group)
        for place, rank in enumerate(group.ranks):
            sums["transfer_ns"][rank] += spent[place]
            others = waits_for(call, place, len(group.ranks), root)
            last_ns, last = max(
                ((arrivals[other], group.ranks[other]) for other in others), default=(0, 0)
            )
            sums["wait_ns"][rank] += max(0, last_ns - arrivals[place])
            sums["cost_ns"][last] += max(0, last_ns - arrivals[place])
    assert {key: [row[key] for row in late(job)] for key in sums} == sums


FACTORS = {
    "MPI_Allreduce": 1.5,
    "MPI_Allgather": 3,
    "MPI_Reduce_scatter_block": 0.75,
    "MPI_Bcast": None,
    "MPI_Scan": None,
}


@pytest.mark.parametrize("call", FACTORS)
def test_bus_bandwidth_of_a_size_is_over_the_library_s_own_time(late, call):
    what = {"message_bytes": 4096, "root": 0 if call == "MPI_Bcast" else None}
    job = repeated([HostClock(77)] * 4, 20, MS, lambda *_: 0, 50 * US, call, **what)
    (row,) = late(job, "size")
    factor = FACTORS[call]
    assert row["busbw_bytes_per_s"] == (factor and pytest.approx(factor * 4096 / 50e-6))


# Who is named, and who is not


def late_job(late_rank: int | None, hosts: list[HostClock], calls: int = 100, seed: int = 2) -> Job:
    """By half a millisecond; None: each time another one, by chance."""
    chance = random.Random(seed)
    job = Job(hosts, wall_ns=calls * 20 * MS)
    for step in range(calls):
        last = chance.randrange(len(hosts)) if late_rank is None else late_rank
        arrivals = [
            step * 20 * MS + chance.randrange(20 * US) + (500 * US if rank == last else 0)
            for rank in range(len(hosts))
        ]
        job.collective(
            "MPI_Allreduce", arrivals, [10 * US + chance.randrange(5 * US) for _ in hosts]
        )
    return job


def late_by(late_ns: Callable[[int, int], float], ranks: int = 4, times: int = 60) -> Job:
    """Every 100 ms; late_ns(step, rank), and a little by chance."""
    chance = random.Random(1)
    return repeated(
        [HostClock()] * ranks,
        times,
        100 * MS,
        lambda step, rank: chance.randrange(10 * US) + round(late_ns(step, rank)),
    )


def rooted(call: str, ranks: int, seed: int, late_ns: int = 0) -> Job:
    """Only some ranks can be waited for: the root, rank 1, or all but it. It or rank 0 works longer
    by late_ns."""
    chance, program = random.Random(seed), Program(ranks)
    late_rank = 0 if call == "MPI_Reduce" else 1
    for _ in range(40):
        for rank in range(ranks):
            own_ns = late_ns if rank == late_rank else 0
            program.compute(rank, MS + round(chance.expovariate(1 / MS)) + own_ns)
        program.collective(call, program.job.world, root=1)
    return program.end()


def passing(shape: str, ranks: int, seed: int, late: int | None = None) -> Job:
    """Passes messages; only the sender of an eager one can be waited for. `fan`: rank 0 sends to
    all; `line`: to the next rank; `rendezvous`: to the next one, which both wait for. A late rank
    works for 5 ms longer."""
    chance, program = random.Random(seed), Program(ranks)
    for _ in range(60):
        for rank in range(ranks):
            program.compute(rank, MS + round(chance.expovariate(1 / MS)) + 5 * MS * (rank == late))
        for rank in range(1, ranks):
            sender = 0 if shape == "fan" else rank - 1
            if shape == "rendezvous":
                program.meet(sender, rank)
            else:
                program.send(sender, rank)
                program.receive(rank, sender)
    return program.end()


def tasks(ranks: int, task_ns: Callable[[int], int], first_ns: Callable[[int], int]) -> Job:
    """Rank 0 hands out tasks and takes each result as it comes. How long a rank needs for a task,
    and before its first one."""
    program = Program(ranks)

    def task(rank: int) -> None:
        program.send(0, rank)
        program.receive(rank, 0)
        program.compute(rank, task_ns(rank))
        program.send(rank, 0)

    for rank in range(1, ranks):
        program.compute(rank, first_ns(rank))
        task(rank)
    for _ in range(300 * (ranks - 1)):
        rank = min(range(1, ranks), key=program.now_ns.__getitem__)
        program.receive(0, rank)
        task(rank)
    return program.end()


def collected(seed: int, late: int | None = None) -> Job:
    """Rank 0 takes a message from each other rank, whichever is ready first, and answers all. A
    late rank works for 5 ms longer."""
    chance, program = random.Random(seed), Program(5)
    for _ in range(60):
        for rank in range(1, 5):
            program.compute(rank, MS + round(chance.expovariate(1 / MS)) + 5 * MS * (rank == late))
        for rank in sorted(range(1, 5), key=program.now_ns.__getitem__):
            program.send(rank, 0)
            program.receive(0, rank)
        for rank in range(1, 5):
            program.send(0, rank)
            program.receive(rank, 0)
    return program.end()


def in_a_pair(how: str, seed: int, late: int | None = None) -> Job:
    """Ranks 0 and 1 of 12 wait for each other, on a communicator of their own or by messages; the
    others only come to a barrier. A late rank works for 10 ms longer each time."""
    chance, program = random.Random(seed), Program(12)
    pair = program.job.group((0, 1), "pair")
    for _ in range(60):
        for rank in (0, 1):
            program.compute(rank, 2 * MS + chance.randrange(12 * MS) + 10 * MS * (rank == late))
        if how == "messages":
            program.meet(0, 1)
        else:
            program.collective("MPI_Allreduce", pair)
        for rank in range(2, 12):
            program.compute(rank, 2 * MS + chance.randrange(12 * MS))
        program.collective("MPI_Barrier", program.job.world)
    return program.end()


def in_a_grid(seed: int) -> Job:
    """Ranks in rows of two and columns of four. How late a rank is lasts for some ten
    collectives."""
    chance, program, late_ns = random.Random(seed), Program(8), [0.0] * 8
    rows = [program.job.group((first, first + 1), f"row {first}") for first in range(0, 8, 2)]
    columns = [program.job.group(range(first, 8, 2), f"column {first}") for first in range(2)]
    for _ in range(100):
        for rank in range(8):
            late_ns[rank] = 0.9 * late_ns[rank] + 0.1 * chance.expovariate(1 / (10 * MS))
            program.compute(rank, MS + round(late_ns[rank]))
        for row in rows:
            program.collective("MPI_Allreduce", row)
        for column in columns:
            program.collective("MPI_Allgather", column)
    return program.end()


def few_of_the_messages() -> Job:
    """Rank 0 receives most from others, and waits for each of them."""
    program = Program(24)
    for _ in range(40):
        for rank in range(1, 24):
            program.compute(rank, 10 * rank * US + (9 * MS if rank == 23 else 0))
            program.send(rank, 0)
        for rank in range(1, 24):
            program.receive(0, rank)
        program.collective("MPI_Bcast", program.job.world, root=0)
    return program.end()


def few_of_the_collectives() -> Job:
    """The others meet nine times before each of rank 3's."""
    program = Program(4)
    three = program.job.group((0, 1, 2), "three")
    for step in range(300):
        for rank in range(4):
            own_ns = (step * 7 + rank * 3) % 11 * 10 * US + (4 * MS if rank == 3 else 0)
            program.compute(rank, 5 * MS + own_ns)
        program.collective("MPI_Allreduce", program.job.world if step % 10 == 9 else three)
    return program.end()


def on_files(late_ns: int) -> Job:
    """Ranks that write two files by turns; each has a count of its own. Rank 1 comes later."""
    late = (0, late_ns or 1, 2, 3)
    write = "MPI_File_write_all"
    job = repeated(ALIKE, 40, 20 * MS, lambda _, rank: late[rank], 5 * MS, write)
    for row in job.rows["sample"]:
        turn = row["sequence"] - 1
        row.update(sequence=None, object=1 + turn % 2, object_sequence=1 + turn // 2)
    return job


def started(transfer_ns: int, later_ns: int) -> Job:
    """A run of 60 ms, whose rank 0 comes 1.6 ms after the others to the first collective, and
    later_ns after them to all others."""

    def late_ns(step: int, rank: int) -> int:
        return (7 if step else 5) * MS + (rank == 0) * (later_ns if step else 1_600 * US)

    return repeated([HostClock()] * 8, 1_000, 50 * US, late_ns, transfer_ns, wall_ns=60 * MS)


def hiccups(ranks: Callable[[int], int]) -> Job:
    """A rank comes 90 ms late to every 20th of 400 collectives, as one that writes a checkpoint;
    which rank, by the number of the hiccup."""
    return late_by(
        lambda step, rank: 5 * MS + 90 * MS * (step % 20 == 19 and rank == ranks(step // 20)),
        times=400,
    )


def ending(ends_ms: list[int], arrivals_ms: list[int]) -> Job:
    """Ranks that enter MPI_Finalize and return from it."""
    job = Job([HostClock(77)] * len(ends_ms), wall_ns=2 * SECOND)
    job.collective("MPI_Barrier", [0] * len(ends_ms), [MS] * len(ends_ms))
    for rank, (arrival_ms, end_ms) in enumerate(zip(arrivals_ms, ends_ms)):
        job.rows["rank"][rank] |= {"wall_ns": end_ms * MS, "counted_ns": end_ms * MS}
        job.call("MPI_Finalize", arrival_ms * MS, end_ms * MS, rank)
    return job


def mostly_in_a_receive() -> Job:
    job = late_job(1, ALIKE[:2])
    job.call("MPI_Recv", 0, 2 * SECOND)
    return job


def polling() -> Job:
    job = late_job(2, ALIKE)
    for rank in range(4):
        job.receive(rank, (rank + 1) % 4, 0, 200 * US, call="MPI_Irecv")
        job.call("MPI_Test", SECOND, SECOND + 9 * MS, rank)
    return job


def on_background_threads(job: Job) -> Job:
    for rank in range(len(job.hosts)):
        job.thread(rank, is_main=0)
    return job


BITS = {
    **{"datatype": "MPI_LONG_LONG", "type_bytes": 8, "extent": 8, "blocks": 1, "count": 1},
    **{"op": "MPI_BAND", "is_in_place": 0},
}


def negotiated(job: Job, is_main: int = 0) -> Job:
    """All calls on the world are a framework's, that agrees on what to send."""
    job.world.signature = 1
    for rank in range(len(job.hosts)):
        job.thread(rank, is_main, job.world.thread)
        job.add("signature", world_rank=rank, signature=1, memory_kind="host", **BITS)
    for row in job.rows["sample"]:
        row["signature"] = 1 if row["communicator"] == job.world.communicator else None
    return job


def beside_negotiation(late_ns: int, transfer_ns: int, negotiated_late_ns: int) -> Job:
    """Ranks wait for rank 1 in the calls of their main threads, and for rank 0 in those of threads
    that negotiate."""
    chance, job = random.Random(5), Job([HostClock(77)] * 2, wall_ns=60 * 20 * MS)
    job.world.thread, main = 1, job.group(range(2))
    for step in range(60):
        begins = [step * 20 * MS + chance.randrange(100 * US) for _ in range(2)]
        arrivals = [begins[0] + negotiated_late_ns, begins[1]]
        job.collective("MPI_Allreduce", arrivals, [50 * US] * 2, message_bytes=8)
        begins = [step * 20 * MS + 10 * MS + chance.randrange(100 * US) for _ in range(2)]
        arrivals = [begins[0], begins[1] + late_ns]
        job.collective("MPI_Allreduce", arrivals, [transfer_ns] * 2, group=main)
    for rank in range(2):
        job.thread(rank, is_main=1)
    return negotiated(job)


def halves(*late: int) -> Job:
    """Two pairs of ranks that nothing joins; these come later to their own."""
    job = Job(ALIKE, wall_ns=40 * 100 * MS)
    pairs = job.group((0, 1), "first"), job.group((2, 3), "second")
    for step in range(40):
        for pair in pairs:
            arrivals = [step * 100 * MS + 40 * MS * (rank in late) for rank in pair.ranks]
            job.collective("MPI_Allreduce", arrivals, [2 * MS] * 2, group=pair)
    return job


def sampled_allreduces(
    sampled: Callable[[int], bool], transfer_ns: Callable[[int], int], late_ns: int = 0
) -> Job:
    """120 Allreduces of four ranks, of which some are sampled. late_ns: of rank 2."""
    job = Job(ALIKE, wall_ns=12 * SECOND)
    for step in range(120):
        arrivals = [step * 100 * MS + late_ns * (rank == 2) for rank in range(4)]
        job.collective("MPI_Allreduce", arrivals, [transfer_ns(step)] * 4, is_sampled=sampled(step))
    return job


def read(ranks: int, read: int, call: str, **communicator: int) -> list[planted.Rank]:
    """The first ranks of a job; all make the same calls."""
    members = f"0-{ranks - 1}" if ranks > 1 else "0"
    world = planted.Communicator(planted.WORLD, planted.WORLD_IDENTITY, members, ranks, 0)
    known = [replace(world, comm_rank=rank, **communicator) for rank in range(read)]
    cells = [planted.Cell(call, 1 << 20, [MS] * 30)]
    return [
        planted.Rank(rank, ranks, communicators=[known[rank]], cells=cells) for rank in range(read)
    ]


def third_rank(**fields: list) -> list[planted.Rank]:
    """Two ranks whose calls are sampled, and one with these fields."""
    ranks = read(3, 3, "MPI_Recv")
    for rank in ranks[:2]:
        rank.samples = [planted.Sample("MPI_Recv", 1_000, 1_000 + MS, bytes=1 << 20)]
        rank.windows = [planted.Window(0, rank.wall_ns)]
    return [*ranks[:2], replace(ranks[2], **fields)]


FEW = "rank 1 causes 99.8 % of the waiting, half of that in 3 late arrivals; 8 could name it"
TOO_FEW = "half of the transfer is in 1 of 1 analysed call, too few to stand for all."
NEGOTIATES = " is on threads that negotiate, where nobody is judged"
UNSAMPLED = "not known: single calls are not sampled on all ranks"
JUDGED = {
    **{
        f"a late host is named though a rank is last by little in 1 of {often}": (
            partial(
                repeated,
                APART,
                48,
                20 * MS,
                lambda step, rank, often=often: (0, US, MS + 3 * US * (step % often == 0), MS + US)[
                    rank
                ],
            ),
            named("2-3", late_hosts="node01", late_gain_ns=pytest.approx(48 * MS, rel=0.02)),
        )
        for often in (3, 8)
    },
    "of two ranks that are late by chance one causes half": (
        lambda: late_job(None, ALIKE[:2]),
        nobody(verdict="spread", late_gain_ns=None),
        ("late", "No rank is late beyond chance: ", " causes 5", " % of that"),
    ),
    "a late root": (lambda: rooted("MPI_Bcast", 2, 1, 5 * MS), named("1")),
    "a late root of four": (lambda: rooted("MPI_Bcast", 4, 1, 5 * MS), named("1")),
    "a late leaf": (lambda: rooted("MPI_Reduce", 4, 1, 5 * MS), named("0")),
    "a late rank of a line": (lambda: passing("line", 3, 1, 1), named("1")),
    "a late sender to all": (lambda: passing("fan", 5, 1, 0), named("0")),
    "a late sender of a rendezvous": (lambda: passing("rendezvous", 2, 1, 0), named("0")),
    "a late receiver of a rendezvous": (lambda: passing("rendezvous", 2, 1, 1), named("1")),
    "a late one of a pair": (lambda: in_a_pair("collectives", 1, 1), named("1")),
    "a late one of two that pass messages": (lambda: in_a_pair("messages", 1, 1), named("1")),
    "a late one of those whose messages are collected": (lambda: collected(1, 2), named("2")),
    "the root of a balanced Bcast has all the cost and is not called late": (
        lambda: rooted("MPI_Bcast", 4, seed=1),
        ("late", "No rank is late beyond chance: ", " rank 1 causes 100.0 % of that"),
    ),
    # rank 2 needs 2 us more than rank 1 for a task and comes 2 ms before it with each result
    "a rank that is always the first to be waited for is not late by that": (
        lambda: tasks(
            3, lambda rank: 6 * MS + (rank == 2) * 2_000, lambda rank: (rank == 1) * 2 * MS
        ),
        nobody(),
    ),
    # without it the run would hardly gain: the other is waited for then
    "of two ranks that are nearly as late the later one is not late by chance": (
        lambda: late_by(lambda _, rank: (0, 0, 30 * MS, 31 * MS)[rank]),
        nobody(verdict="spread"),
        ("late", "Rank 3 is late, but that costs ", " late arrivals."),
    ),
    "one extreme wait names nobody": (
        lambda: late_by(lambda step, rank: 900 * MS * ((step, rank) == (30, 1)), 3),
        nobody(),
    ),
    "time in files is said to be in files and names nobody": (
        lambda: on_files(0),
        nobody(verdict="transfer", collectives=40),
        ("late", "Reading and writing of files costs most: 25.0 %"),
    ),
    "waiting at the start is no verdict on a rank": (
        lambda: started(200, 100),
        nobody(verdict="unknown"),
        ("late", "Who is late is not known: rank 0 causes ", " in 1 late arrival; "),
    ),
    "a rank that is late in few steps can be neither named nor denied": (
        lambda: late_by(lambda step, rank: 40 * MS * (rank == 1 and 8 <= step < 12), times=100),
        ("late", f"Who is late is not known: {FEW}."),
        ("advise", "Not known: a rank that the others wait for", FEW),
        ("late --rank 0", FEW),
    ),
    # whatever delays a rank for so long is one event, which may have met any of them
    "a rank that is late in one stretch can be neither named nor denied": (
        lambda: late_by(lambda step, rank: 40 * MS * (rank == 1 and 16 <= step < 32), 3, 48),
        ("late", "half of that in 8 late arrivals, too close together to name it."),
    ),
    # so that nobody seeks a slow host
    "a rank that is late now and then is named with the number of its late arrivals": (
        lambda: hiccups(lambda _: 2),
        ("late", "rank 2 on node00 causes 99.9 % of the waiting, nearly all of it in 19 of 400 "),
        (
            "advise",
            Row(
                {"rule": "imbalance"},
                suggestion="look at what it does before these arrivals and not otherwise: a "
                "checkpoint, an evaluation, reading data",
            ),
        ),
    ),
    "waiting for changing ranks names nobody": (
        lambda: hiccups(lambda number: (0, 2, 1, 3, 3, 1, 0, 2)[number % 8]),
        ("late", "No rank is late beyond chance: ", " of that, the most."),
    ),
    "a rank that takes part in few collectives is not late in few": (
        few_of_the_collectives,
        ("late", "Cause rank 3 on node00 causes 9", " % of the waiting ", No("nearly all of it")),
    ),
    "a rank that sends few of the messages is not late in few": (
        few_of_the_messages,
        ("late", "rank 23 on node00 causes 9", No(" nearly all of it in ")),
    ),
    "a rank that returned before the last came waits for nobody": (
        lambda: ending([1_000, 2_000, 2_000], [500, 1_900, 700]),
        ("late --by run", {"finalize_last_rank": None}),
        ("late", No("At the end")),
    ),
    "where all come together to MPI_Finalize nothing is said": (
        lambda: ending([2_000] * 3, [1_500, 1_501, 1_500]),
        ("late", No("At the end")),
    ),
    "less than half of the time gives no verdict and says where the rest is": (
        mostly_in_a_receive,
        nobody(verdict="unknown", coverage=lambda share: share < 0.05),
        ("late", "not known: only", "per rank in MPI_Recv"),
    ),
    "polls and requests that are freed are said where they are not split": (
        polling,
        (
            "late",
            "9.00 ms per rank in MPI_Test; polls, between which a rank may work; 4 nonblocking "
            "operations whose request was freed",
        ),
    ),
    "a late rank is named by the calls of background threads": (
        lambda: on_background_threads(late_job(1, ALIKE[:2])),
        named("1", background_share=1, negotiated_share=0),
        ("late", "100.0 % of that time on background threads"),
    ),
    "nobody is, where they come by chance": (
        lambda: on_background_threads(late_job(None, ALIKE[:2])),
        nobody(),
    ),
    **{
        f"the cause of waiting is followed through background threads to rank {rank}": (
            partial(lambda rank: on_background_threads(passing("line", 4, 1, rank)), rank),
            named(str(rank)),
        )
        for rank in (0, 1)
    },
    "a thread that negotiates accuses nobody": (
        lambda: negotiated(late_job(1, ALIKE[:2])),
        nobody(verdict="unknown", negotiated_share=1),
        ("late", "100.0 % of the time inside MPI is on a thread that negotiates", No("times last")),
    ),
    "a main thread that reduces bits does not negotiate": (
        lambda: negotiated(late_job(1, ALIKE[:2]), is_main=1),
        named("1", negotiated_share=0),
    ),
    "beside negotiation a late rank is named": (
        lambda: beside_negotiation(2 * MS, 50 * US, MS),
        named("1"),
        ("late", NEGOTIATES),
    ),
    "clocks that have run for ages are no error": (
        lambda: repeated([HostClock(1 << 62), HostClock(0)], 1, 1 << 61, lambda _, rank: rank),
        by_rank(collectives=[1, 1]),
    ),
    "one half of a job has a late rank": (lambda: halves(1), ("late", "Rank 1 is late: ")),
    "each half of a job has a late rank": (
        lambda: halves(1, 3),
        ("late", "Different ranks are late in different calls: rank 1 in MPI_Allreduce on first, "),
    ),
    "ranks that come late together wait for nobody": (
        lambda: halves(0, 1),
        ("late", "Transfer costs most: "),
    ),
    # the one that was sampled stands for 120 with nothing known of the others
    "one long call of a thinned log makes no verdict": (
        lambda: sampled_allreduces(lambda step: step == 50, lambda _: 10 * MS),
        nobody(verdict="unknown", transfer_calls=1, coverage=1),
        ("late", f"Who is late is not known: {TOO_FEW}", " in 1 collective, scaled to all "),
        ("summary", f"Who is late is not known: {TOO_FEW}"),
    ),
    "an outlier of a thinned log makes no verdict": (
        lambda: sampled_allreduces(
            lambda step: step % 12 == 0, lambda step: 40 * MS if step == 60 else MS
        ),
        nobody(verdict="unknown", transfer_calls=1, collectives=10),
    ),
    **{
        f"waiting in every {every}th call of a log is {certainty} advice": (
            partial(
                lambda every: sampled_allreduces(
                    lambda step: step % every == 0, lambda _: MS, 30 * MS
                ),
                every,
            ),
            ("advise", Row({"rule": rule, "found": 1}, certainty=certainty)),
        )
        for every, rule, certainty in (
            (120, "waiting", "possible"),
            (3, "imbalance", "likely"),
            (1, "imbalance", "likely"),
        )
    },
    "a rank without any call does not make the others unsampled": (
        lambda: third_rank(cells=[]),
        ("late", No(UNSAMPLED)),
    ),
}


@pytest.mark.parametrize("name", JUDGED)
def test_a_planted_job_is_judged_by_what_was_planted(report, tmp_path, name):
    check(report, tmp_path / "run.db", *JUDGED[name])


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 4, 8])
@pytest.mark.parametrize("memory", [0, 0.9], ids=["independent", "slowly-changing"])
def test_of_100_balanced_runs_at_most_5_name_a_rank(ranks, memory):
    """All ranks are alike; with memory, a rank that is late stays so for about ten collectives."""
    accused = 0
    for seed in range(100):
        chance = random.Random(seed)
        drift, late = [0.0] * ranks, []
        for _ in range(400):
            drift = [memory * own + chance.gauss(0, 1) for own in drift]
            arrivals = [own + chance.expovariate(0.5) for own in drift]
            last = max(range(ranks), key=arrivals.__getitem__)
            late.append((last, sum(arrivals[last] - arrival for arrival in arrivals)))
        costs = costs_of(range(400), *zip(*late)).changed(call=np.arange(400) % 2)
        hosts = {rank: f"node{2 * rank // ranks}" for rank in range(ranks)}
        found = blame(costs, Participants(range(ranks), hosts, {0: range(ranks)}, TWO_CALLS))
        accused += found.named is not None or bool(found.calls)
    assert accused <= 5


# The root of a Bcast has all the cost, late or not, and so has the sender of an eager message; in
# MPI_Recv only senders have a cost, in MPI_Send only receivers. One of a pair has more than half of
# the waiting, though the ten others have none.
BALANCED = {
    **{
        f"{call} of {ranks}": partial(rooted, call, ranks)
        for call in ("MPI_Bcast", "MPI_Reduce", "MPI_Scan")
        for ranks in (2, 4)
    },
    **{
        f"{shape} of {ranks}": partial(passing, shape, ranks)
        for shape, ranks in (("line", 2), ("line", 3), ("fan", 5), ("rendezvous", 2))
    },
    "collected": collected,
    "pair by collectives": partial(in_a_pair, "collectives"),
    "pair by messages": partial(in_a_pair, "messages"),
    "grid": in_a_grid,
    "each late by chance": lambda seed: late_job(None, ALIKE, seed=seed),
    "a late start": lambda seed: started(10 * US, 100),
    "late by less than a microsecond": lambda seed: repeated(
        ALIKE, 1_000, US + 300, lambda _, rank: MS + 300 * (rank == 0), 100, wall_ns=6 * MS
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BALANCED)
def test_of_10_balanced_runs_at_most_1_names_a_rank(late, name):
    runs = [late(BALANCED[name](seed), "run")[0] for seed in range(10)]
    accused = [run for run in runs if run["verdict"] == "by-call" or run["late_ranks"] is not None]
    assert len(accused) <= 1


def test_a_host_is_named_though_its_rank_does_not_call_on_the_communicator():
    """Rank 3 of host b delays the others through one of them."""
    costs = costs_of(range(32), [3] * 32, [1_000] * 32)
    hosts = {0: "a", 1: "a", 2: "c", 3: "b"}
    found = blame(costs, Participants(range(3), hosts, {0: range(3)}, TWO_CALLS)).named
    assert (found.ranks, found.share) == ((3,), 1)


@pytest.mark.parametrize(("ranks", "enough"), [(2, 9), (3, 8), (64, 8)])
def test_so_many_late_arrivals_of_one_rank_are_beyond_chance(ranks, enough):
    assert enough_arrivals(ranks) == enough
    assert enough == 8 or ranks * ranks**-enough < 0.004 <= ranks * ranks ** (1 - enough)


@pytest.fixture
def parts(monkeypatch) -> list[int]:
    """How many parts of the analysis were called side by side, each time: on three cores, now also
    those of few rows and ranks."""
    found: list[int] = []

    def noted(function, arguments, **how):
        found.append(len(arguments))
        return side_by_side(function, arguments, **how)

    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(3))
    monkeypatch.setattr(verdict, "MANY_ROWS", 0)
    monkeypatch.setattr(verdict, "MANY_RANKS", 0)
    monkeypatch.setattr(verdict, "side_by_side", noted)
    return found


DIVIDED = {
    "late ranks of calls": lambda: halves(1, 3),
    "a late rank": lambda: halves(1),
    "nobody": lambda: rooted("MPI_Bcast", 4, 1),
    "messages": lambda: passing("line", 4, 1, 2),
    "waits for other waits": lambda: in_a_grid(1),
}


@pytest.mark.parametrize("name", DIVIDED)
def test_several_processes_find_what_one_does(report, parts, monkeypatch, tmp_path, name):
    path = DIVIDED[name]().write(tmp_path / "run.db")
    of_several = report("late", path)
    assert parts[0] == 3 and len(parts) > 1
    monkeypatch.setattr(verdict, "MANY_ROWS", 1_000_000)
    parts.clear()
    assert report("late", path) == of_several
    assert not parts
