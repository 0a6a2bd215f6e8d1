"""Who is late: planted jobs in which every rank's coming is known."""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import planted
import pytest
from commprof_report.base import Texts
from commprof_report.late.late_ranks import Late as answers
from commprof_report.late.verdict import Participants, blame, costs_of, enough_arrivals
from commprof_report.run.alignment import align
from commprof_report.run.run import run_open
from commprof_report.run.selection import FILTERS, select
from planted import SECOND
from planted_job import HostClock, Job, Program, repeated, waits_for

US, MS = 1_000, 1_000_000
KINDS = [
    *(
        "MPI_Allreduce",
        "MPI_Allgather",
        "MPI_Allgatherv",
        "MPI_Alltoall",
        "MPI_Alltoallv",
        "MPI_Alltoallw",
        "MPI_Barrier",
    ),
    *(
        "MPI_Reduce_scatter",
        "MPI_Reduce_scatter_block",
        "MPI_Bcast",
        "MPI_Scatter",
        "MPI_Reduce",
        "MPI_Gather",
        "MPI_Scan",
        "MPI_Exscan",
    ),
]
TWO_CALLS = Texts()
TWO_CALLS.all(["MPI_Allreduce", "MPI_Barrier"])


@pytest.fixture
def text(report, tmp_path):
    def ask(job: Job, *words: object) -> str:
        return report("late", job.write(tmp_path / "run.db"), *words).out

    return ask


def column(rows: list[dict], key: str) -> list:
    return [row[key] for row in rows]


def one_host(ranks: int) -> Job:
    return Job([HostClock(77)] * ranks)


SPLIT = {
    "all wait for the last one to come": (
        "MPI_Allreduce",
        [1_000, 5_000, 3_000],
        None,
        {"wait_ns": [4_000, 0, 2_000], "last": [0, 1, 0], "cost_ns": [0, 6_000, 0]},
    ),
    # the root did not come last: rank 2 had no need of it
    "others wait for the root of a Bcast and it for nobody": (
        "MPI_Bcast",
        [5_000, 1_000, 9_000],
        0,
        {"wait_ns": [0, 4_000, 0], "last": [1, 0, 0], "cost_ns": [4_000, 0, 0]},
    ),
    "the root of a Reduce waits for the last of the others": (
        "MPI_Reduce",
        [1_000, 9_000, 4_000, 6_000],
        2,
        {"wait_ns": [0, 0, 5_000, 0], "last": [0, 1, 0, 0], "cost_ns": [0, 5_000, 0, 0]},
    ),
    "a rank in a Scan waits for those below it": (
        "MPI_Scan",
        [4_000, 1_000, 9_000],
        None,
        {"wait_ns": [0, 3_000, 0], "last": [1, 0, 0], "cost_ns": [3_000, 0, 0]},
    ),
}


@pytest.mark.parametrize("who", SPLIT)
def test_a_call_is_split_at_the_last_arrival_that_it_needs(late, who):
    call, arrivals, root, expected = SPLIT[who]
    transfers = [100 * (rank + 1) for rank in range(len(arrivals))]
    job = one_host(len(arrivals))
    job.collective(call, arrivals, transfers, root=root)
    rows = late(job)
    assert column(rows, "transfer_ns") == transfers
    keys = ("wait_ns", "last_count", "cost_ns")
    assert [column(rows, key) for key in keys] == list(expected.values())


def test_a_wait_is_no_longer_than_the_call(late):
    job = one_host(2)
    job.collective("MPI_Alltoallv", [0, 9_000], [100, 100])
    # it had nothing to receive
    job.rows["sample"][0]["end_ns"] = job.rows["sample"][0]["start_ns"] + 50
    job.made[0]["duration_ns"] = 50
    assert (column(late(job), "wait_ns"), column(late(job), "transfer_ns")) == ([50, 0], [0, 100])


@pytest.mark.parametrize("seed", range(10))
def test_sums_are_those_of_the_definition(late, seed):
    """Such calls all move data for as long: nobody is held up."""
    chance = random.Random(seed)
    job = one_host(5)
    moving_ns = {call: chance.randrange(1, 50 * US) for call in KINDS}
    groups = [job.world, job.group((1, 3, 4)), job.group((0, 2))]
    waits, costs, transfers = [0] * 5, [0] * 5, [0] * 5
    for step in range(60):
        group, call = chance.choice(groups), chance.choice(KINDS)
        arrivals = [step * MS + chance.randrange(300 * US) for _ in group.ranks]
        spent, root = [moving_ns[call]] * len(group.ranks), chance.randrange(len(group.ranks))
        job.collective(call, arrivals, spent, root, group)
        for place, rank in enumerate(group.ranks):
            transfers[rank] += spent[place]
            others = [
                (arrivals[other], group.ranks[other])
                for other in waits_for(call, place, len(group.ranks), root)
            ]
            last_ns, last = max(others, default=(0, 0))
            waits[rank] += max(0, last_ns - arrivals[place])
            costs[last] += max(0, last_ns - arrivals[place])
    rows = late(job)
    assert (column(rows, "wait_ns"), column(rows, "transfer_ns"), column(rows, "cost_ns")) == (
        waits,
        transfers,
        costs,
    )


def late_job(
    late_rank: int | None,
    hosts: list[HostClock],
    calls: int = 100,
    transfer_ns: int = 10 * US,
    late_ns: int = 500 * US,
    seed: int = 2,
) -> Job:
    chance = random.Random(seed)
    job = Job(hosts, wall_ns=calls * 20 * MS)
    for step in range(calls):
        last = chance.randrange(len(hosts)) if late_rank is None else late_rank
        arrivals = [
            step * 20 * MS + chance.randrange(20 * US) + (late_ns if rank == last else 0)
            for rank in range(len(hosts))
        ]
        job.collective(
            "MPI_Allreduce", arrivals, [transfer_ns + chance.randrange(5 * US) for _ in hosts]
        )
    return job


def test_a_rank_that_is_late_is_named_first(late, text):
    job = late_job(2, [HostClock()] * 4)
    (row,) = late(job, "run")
    assert (row["verdict"], row["late_ranks"], row["clocks"], row["error_ns"]) == (
        "imbalance",
        "2",
        1,
        0,
    )
    assert row["late_share"] == 1
    first, *_ = text(job).splitlines()
    gain = "Without that the run is 49.4 ms (2.5 %) shorter."
    assert first == f"Rank 2 is late: it causes 100.0 % of the waiting. {gain}"


def test_ranks_of_a_host_that_are_equally_late_are_named(late):
    """Each alone would gain nothing; together they gain what they are late."""
    chance = random.Random(4)
    job = Job([HostClock()] * 2 + [HostClock(SECOND)] * 2, wall_ns=2 * SECOND)
    for step in range(40):
        begins = [step * 20 * MS + chance.randrange(US) for _ in range(4)]
        job.collective(
            "MPI_Allreduce", [*begins[:2], begins[2] + MS, begins[3] + MS], [100 * US] * 4
        )
        job.collective("MPI_Barrier", [begin + 10 * MS for begin in begins], [10 * US] * 4)
    (row,) = late(job, "run")
    assert (row["verdict"], row["late_ranks"]) == ("imbalance", "2-3")
    assert row["late_gain_ns"] == pytest.approx(40 * MS, rel=0.02)


def test_two_of_eight_ranks_that_are_equally_late_are_named_whichever_causes_half(late):
    """Rank 3 is the last one three times in five, and causes more than half. Alone it gains
    nothing."""
    job = repeated(
        [HostClock()] * 8,
        192,
        20 * MS,
        lambda step, rank: 5 * MS + {3: MS, 6: MS - US + 2 * US * (step % 5 < 2)}.get(rank, 0),
    )
    (row,) = late(job, "run")
    assert (row["verdict"], row["late_ranks"]) == ("imbalance", "3,6")
    assert row["late_gain_ns"] == pytest.approx(192 * MS, rel=0.02)


@pytest.mark.parametrize("often", (3, 4, 8))
def test_a_late_host_is_named_though_one_of_its_ranks_mostly_comes_last(late, often):
    """Rank 3 causes two thirds of the waiting, or more, but alone it gains nothing: rank 2 is
    nearly as late."""
    job = repeated(
        [HostClock()] * 2 + [HostClock(SECOND)] * 2,
        48,
        20 * MS,
        lambda step, rank: (0, US, MS + 3 * US * (step % often == 0), MS + US)[rank],
    )
    (row,) = late(job, "run")
    assert (row["verdict"], row["late_ranks"], row["late_hosts"]) == ("imbalance", "2-3", "node01")
    assert row["late_gain_ns"] == pytest.approx(48 * MS, rel=0.02)


def test_a_host_whose_ranks_take_turns_at_being_late_is_named(late):
    chance = random.Random(3)
    hosts = [HostClock(), HostClock(SECOND)]
    job = Job([hosts[0]] * 4 + [hosts[1]] * 4, wall_ns=4 * SECOND)
    for step in range(200):
        last = chance.randrange(4, 8)
        arrivals = [
            step * 20 * MS + chance.randrange(20 * US) + (MS if rank == last else 0)
            for rank in range(8)
        ]
        job.collective("MPI_Allreduce", arrivals, [10 * US] * 8)
        job.collective(
            "MPI_Barrier",
            [step * 20 * MS + 5 * MS + chance.randrange(20 * US) for _ in range(8)],
            [10 * US] * 8,
        )
    (row,) = late(job, "run")
    assert (row["verdict"], row["late_ranks"], row["late_hosts"]) == ("imbalance", "4-7", "node01")
    by_host = {host["host"]: host for host in late(job, "host")}
    assert by_host["node01"]["cost_ns"] > 20 * by_host["node00"]["cost_ns"]
    assert by_host["node01"]["ranks"] == 4


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_where_each_rank_is_late_by_chance_nobody_is_named(late, text, seed):
    job = late_job(None, [HostClock()] * 4, seed=seed)
    (row,) = late(job, "run")
    assert (row["verdict"], row["late_ranks"], row["late_gain_ns"]) == ("spread", None, None)
    assert text(job).startswith("No rank is late beyond chance: ")


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 4, 8])
@pytest.mark.parametrize("memory", [0, 0.9], ids=["independent", "slowly-changing"])
def test_of_100_balanced_runs_at_most_5_name_a_rank(ranks, memory):
    """All ranks are alike; with memory, a rank that is late stays so for about ten collectives."""
    accused = 0
    for seed in range(100):
        chance = random.Random(seed)
        drift, late = [0.0] * ranks, []
        for step in range(400):
            drift = [memory * own + chance.gauss(0, 1) for own in drift]
            arrivals = [own + chance.expovariate(0.5) for own in drift]
            last = max(range(ranks), key=arrivals.__getitem__)
            cost_ns = sum(arrivals[last] - arrival for arrival in arrivals)
            late.append((last, cost_ns))
        costs = costs_of(range(400), *zip(*late)).changed(call=np.arange(400) % 2)
        hosts = {rank: f"node{2 * rank // ranks}" for rank in range(ranks)}
        participants = Participants(range(ranks), hosts, {0: range(ranks)}, TWO_CALLS)
        found = blame(costs, participants)
        accused += found.named is not None or bool(found.calls)
    assert accused <= 5


def rooted(call: str, ranks: int, seed: int, late_ns: int = 0) -> Job:
    """Only some ranks can be waited for: the root, rank 1, or all but it. It or rank 0 works longer
    by late_ns."""
    chance, program = random.Random(seed), Program(ranks)
    late_rank = 0 if call == "MPI_Reduce" else 1
    for _ in range(40):
        for rank in range(ranks):
            program.compute(
                rank, MS + round(chance.expovariate(1 / MS)) + (late_ns if rank == late_rank else 0)
            )
        program.collective(call, program.job.world, root=1)
    return program.end()


def passing(shape: str, ranks: int, seed: int, late: int | None = None) -> Job:
    """Passes messages; only the sender of an eager one can be waited for. `fan`: rank 0 sends to
    all; `line`: to the next rank; `rendezvous`: to the next one, which both wait for. A late rank
    works for 5 ms longer."""
    chance, program = random.Random(seed), Program(ranks)
    for _ in range(60):
        for rank in range(ranks):
            program.compute(
                rank, MS + round(chance.expovariate(1 / MS)) + (5 * MS if rank == late else 0)
            )
        for rank in range(1, ranks):
            sender = 0 if shape == "fan" else rank - 1
            if shape == "rendezvous":
                program.meet(sender, rank)
            else:
                program.send(sender, rank)
                program.receive(rank, sender)
    return program.end()


def tasks(
    ranks: int,
    task_ns: Callable[[int], int],
    first_ns: Callable[[int], int] = lambda rank: 0,
    times: int = 60,
) -> Job:
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
    for _ in range(times * (ranks - 1)):
        rank = min(range(1, ranks), key=program.now_ns.__getitem__)
        program.receive(0, rank)
        task(rank)
    return program.end()


@pytest.mark.slow
@pytest.mark.parametrize("slow", [None, 2])
@pytest.mark.parametrize("ranks", [3, 4, 8])
def test_a_rank_that_hands_out_tasks_accuses_none_of_those_that_work_on_them(late, ranks, slow):
    """It waits for whoever is the first to be ready, and that may be the same one all the time."""
    for seed in range(5):
        chance = random.Random(seed)
        (run,) = late(
            tasks(
                ranks,
                lambda rank: (4 if rank == slow else 1) * (6 * MS + chance.randrange(MS // 10)),
            ),
            "run",
        )
        assert (run["late_ranks"], run["verdict"]) == (None, "spread")


def test_a_rank_that_is_always_the_first_to_be_waited_for_is_not_late_by_that(late, text):
    """Rank 2 needs 2 us more than rank 1 for a task, and comes 2 ms before it with each result.
    Rank 0 waits 4 of 6 ms for it."""
    job = tasks(
        3, lambda rank: 6 * MS + (rank == 2) * 2_000, lambda rank: (rank == 1) * 2 * MS, times=300
    )
    assert late(job, "run")[0]["late_ranks"] is None


def collected(seed: int, late: int | None = None) -> Job:
    """Rank 0 takes a message from each other rank, whichever is ready first, and answers all. A
    late rank works for 5 ms longer."""
    chance, program = random.Random(seed), Program(5)
    for _ in range(60):
        for rank in range(1, 5):
            program.compute(
                rank, MS + round(chance.expovariate(1 / MS)) + (5 * MS if rank == late else 0)
            )
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
            program.compute(
                rank, 2 * MS + chance.randrange(12 * MS) + (10 * MS if rank == late else 0)
            )
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
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BALANCED)
def test_of_10_balanced_runs_at_most_1_names_a_rank(late, name):
    runs = [late(BALANCED[name](seed), "run")[0] for seed in range(10)]
    accused = [
        run
        for run in runs
        if run["verdict"] in ("imbalance", "by-call") or run["late_ranks"] is not None
    ]
    assert len(accused) <= 1
    least_share = 0.9 if name.startswith("pair") else 0
    assert all(
        run["wait_ns"] >= least_share * (run["wait_ns"] + run["transfer_ns"]) for run in runs
    )


@pytest.mark.parametrize(
    ("make", "late_rank"),
    [
        (partial(rooted, "MPI_Bcast", 2, 1, 5 * MS), "1"),
        (partial(rooted, "MPI_Bcast", 4, 1, 5 * MS), "1"),
        (partial(rooted, "MPI_Reduce", 4, 1, 5 * MS), "0"),
        (partial(passing, "line", 3, 1, 1), "1"),
        (partial(passing, "fan", 5, 1, 0), "0"),
        (partial(passing, "rendezvous", 2, 1, 0), "0"),
        (partial(passing, "rendezvous", 2, 1, 1), "1"),
        (partial(in_a_pair, "collectives", 1, 1), "1"),
        (partial(in_a_pair, "messages", 1, 1), "1"),
        (partial(collected, 1, 2), "2"),
    ],
)
def test_a_late_rank_is_named_where_only_some_can_be_waited_for(late, make, late_rank):
    (run,) = late(make(), "run")
    assert (run["verdict"], run["late_ranks"]) == ("imbalance", late_rank)


def test_a_host_is_named_though_its_rank_does_not_call_on_the_communicator():
    """Rank 3 of host b delays the others through one of them."""
    costs = costs_of(range(32), [3] * 32, [1_000] * 32)
    hosts = {0: "a", 1: "a", 2: "c", 3: "b"}
    named = blame(costs, Participants(range(3), hosts, {0: range(3)}, TWO_CALLS)).named
    assert (named.ranks, named.share) == ((3,), 1)


def test_the_root_of_a_balanced_bcast_has_all_the_cost_and_is_not_called_late(text):
    said = text(rooted("MPI_Bcast", 4, seed=1))
    assert re.match("No rank is late beyond chance: .* rank 1 causes 100.0 % of that", said)


def test_of_two_ranks_that_are_nearly_as_late_the_later_one_is_not_said_to_be_late_by_chance(
    late, text
):
    """Without it the run would hardly gain: the other is waited for then."""
    chance, late_ns = random.Random(1), (0, 0, 30 * MS, 31 * MS)
    job = repeated(
        [HostClock()] * 4, 60, 100 * MS, lambda _, rank: chance.randrange(MS) + late_ns[rank]
    )
    (row,) = late(job, "run")
    assert (row["verdict"], row["late_ranks"]) == ("spread", None)
    assert text(job).startswith(
        "Rank 3 is late, but that costs 0.89 % of the run: it causes 100.0 % of the waiting, in 60 "
        "of 60 late arrivals."
    )


def test_one_extreme_wait_names_nobody(late):
    chance = random.Random(1)
    job = repeated(
        [HostClock()] * 3,
        60,
        SECOND,
        lambda step, rank: chance.randrange(MS) + 900 * MS * ((step, rank) == (30, 1)),
    )
    assert late(job, "run")[0]["late_ranks"] is None


def on_files(late_ns: int) -> Job:
    """Ranks that write two files by turns; each has a count of its own. Rank 1 comes later."""
    job = repeated(
        [HostClock()] * 4,
        40,
        20 * MS,
        lambda _, rank: late_ns if rank == 1 else rank,
        5 * MS,
        "MPI_File_write_all",
    )
    for row in job.rows["sample"]:
        turn = row["sequence"] - 1
        row.update(sequence=None, object=1 + turn % 2, object_sequence=1 + turn // 2)
    return job


def test_time_in_files_is_said_to_be_in_files_and_names_nobody(late, text):
    (row,) = late(on_files(0), "run")
    assert (row["verdict"], row["late_ranks"], row["collectives"]) == ("transfer", None, 40)
    assert text(on_files(0)).startswith("Reading and writing of files costs most: 25.0 %")


def test_the_rank_that_comes_late_to_its_files_is_named(late):
    (row,) = late(on_files(10 * MS), "run")
    assert (row["verdict"], row["late_ranks"]) == ("imbalance", "1")
    (state,) = late(on_files(10 * MS), "state")
    waited_ns = 3 * 40 * 10 * MS - 40 * (0 + 2 + 3)
    assert (state["wait_state"], state["wait_ns"]) == ("wait at file", waited_ns)


def started(ranks: int, transfer_ns: int, later_ns: int) -> Job:
    """A run of 60 ms, whose rank 0 comes 1.6 ms after the others to the first collective, and
    later_ns after them to all others."""
    return repeated(
        [HostClock()] * ranks,
        1_000,
        50 * US,
        lambda step, rank: (
            (7 if step else 5) * MS + (rank == 0) * (later_ns if step else 1_600 * US)
        ),
        transfer_ns,
        wall_ns=60 * MS,
    )


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 8])
def test_a_late_start_names_nobody_though_that_rank_is_always_a_little_later(late, text, ranks):
    job = started(ranks, 10 * US, 100)
    assert late(job, "run")[0]["late_ranks"] is None
    assert text(job).startswith("Transfer costs most: ")
    assert "rank 0" not in text(job).splitlines()[0]


@pytest.mark.parametrize("ranks", [2, 8])
def test_waiting_at_the_start_is_said_to_be_there_and_is_no_verdict_on_a_rank(late, text, ranks):
    job = started(ranks, 200, 100)
    assert late(job, "run")[0]["verdict"] == "unknown"
    assert re.match("Who is late is not known: rank 0 causes .* in 1 late arrival; ", text(job))


@pytest.mark.parametrize("ranks", [2, 8])
def test_a_rank_that_starts_late_and_stays_notably_late_is_named(late, ranks):
    assert late(started(ranks, 10 * US, 2 * US), "run")[0]["late_ranks"] == "0"


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 8])
@pytest.mark.parametrize(("later_ns", "named"), [(300, None), (3_000, "0")])
def test_a_rank_that_is_late_by_less_than_a_microsecond_is_not_named(
    late, text, ranks, later_ns, named
):
    """The profiler itself adds a tenth of that to a call. In a loop of short calls the others wait
    for most of the time inside MPI."""
    job = repeated(
        [HostClock()] * ranks,
        1_000,
        US + later_ns,
        lambda _, rank: MS + later_ns * (rank == 0),
        100,
        wall_ns=6 * MS,
    )
    assert late(job, "run")[0]["late_ranks"] == named
    said = "is late, but by less than 1.00 us each time: it causes "
    assert (said in text(job)) == (named is None)


@pytest.mark.parametrize("first", (0, 8), ids=["start", "checkpoint"])
def test_a_rank_that_is_late_in_few_steps_can_be_neither_named_nor_denied(
    report, text, tmp_path, first
):
    chance = random.Random(1)
    job = repeated(
        [HostClock()] * 4,
        100,
        100 * MS,
        lambda step, rank: (
            chance.randrange(10 * US) + 40 * MS * (rank == 1 and first <= step < first + 4)
        ),
    )
    why = "rank 1 causes 99.8 % of the waiting, half of that in 3 late arrivals; 8 could name it"
    assert text(job).startswith(f"Who is late is not known: {why}.\n")
    advised = " ".join(report("advise", tmp_path / "run.db").out.split())
    assert re.search(f"Not known: a rank that the others wait for.*{why}", advised)


def test_a_rank_that_is_late_in_one_stretch_can_be_neither_named_nor_denied(text):
    """Whatever delays a rank for so long is one event, which may have met any of them."""
    job = repeated(
        [HostClock()] * 3,
        48,
        100 * MS,
        lambda step, rank: rank * US + 40 * MS * (rank == 1 and 16 <= step < 32),
    )
    half = "half of that in 8 late arrivals, too close together to name it"
    assert f" % of the waiting, {half}.\n" in text(job)


def hiccups(ranks: Callable[[int], int]) -> Job:
    """A rank comes 90 ms late to every 20th of 400 collectives, as one that writes a checkpoint;
    which rank, by the number of the hiccup."""
    chance = random.Random(1)
    return repeated(
        [HostClock()] * 4,
        400,
        100 * MS,
        lambda step, rank: (
            5 * MS
            + chance.randrange(10 * US)
            + 90 * MS * (step % 20 == 19 and rank == ranks(step // 20))
        ),
    )


def test_a_rank_that_is_late_now_and_then_is_named_with_the_number_of_its_late_arrivals(
    report, tmp_path, text
):
    """So that nobody seeks a slow host."""
    said = "rank 2 on node00 causes 99.9 % of the waiting, nearly all of it in 19 of 400 late "
    assert f"Cause           {said}arrivals\n" in text(hiccups(lambda _: 2))
    (row,) = [
        row
        for row in report("advise", tmp_path / "run.db", "--json").rows
        if row["rule"] == "imbalance"
    ]
    assert (
        row["suggestion"]
        == "look at what it does before these arrivals and not otherwise: a checkpoint, an "
        "evaluation, reading data"
    )


def test_a_rank_that_takes_part_in_few_collectives_is_not_said_to_be_late_in_few(text):
    """The others meet nine times before each."""
    program = Program(4)
    three = program.job.group((0, 1, 2), "three")
    for step in range(300):
        for rank in range(4):
            program.compute(
                rank, 5 * MS + (step * 7 + rank * 3) % 11 * 10 * US + (4 * MS if rank == 3 else 0)
            )
        program.collective("MPI_Allreduce", program.job.world if step % 10 == 9 else three)
    said = text(program.end())
    assert "Cause           rank 3 on node00 causes 9" in said and " % of the waiting\n" in said


def test_a_rank_that_sends_few_of_the_messages_is_not_said_to_be_late_in_few(text):
    """Rank 0 receives most from others, and waits for each of them."""
    program = Program(24)
    for step in range(40):
        for rank in range(1, 24):
            program.compute(rank, 10 * rank * US + (9 * MS if rank == 23 else 0))
            program.send(rank, 0)
        for rank in range(1, 24):
            program.receive(0, rank)
        program.collective("MPI_Bcast", program.job.world, root=0)
    said = text(program.end())
    assert "rank 23 on node00 causes 9" in said and " nearly all of it in " not in said


def test_waiting_for_changing_ranks_names_nobody(text):
    said = text(hiccups(lambda number: (0, 2, 1, 3, 3, 1, 0, 2)[number % 8]))
    assert re.match("No rank is late beyond chance: .* rank . causes 2..* of that, the most.", said)


@pytest.mark.parametrize("ranks", ["0", "1-2", "0-2"])
def test_the_rank_that_causes_most_is_sought_among_all_ranks(text, ranks):
    chance = random.Random(1)
    job = repeated(
        [HostClock()] * 3,
        60,
        100 * MS,
        lambda step, rank: (
            chance.randrange(10 * US) + 90 * MS * (rank == 1 and step in (10, 20, 30))
        ),
        US,
    )
    assert "rank 1 causes 99.9 % of the waiting, half of" in text(job, "--rank", ranks)


def ending(ends_ns: list[int], arrivals_ns: list[int]) -> Job:
    """Ranks that enter MPI_Finalize and return from it."""
    job = Job([HostClock(77)] * len(ends_ns), wall_ns=2 * SECOND)
    job.collective("MPI_Barrier", [0] * len(ends_ns), [MS] * len(ends_ns))
    for rank, (arrival_ns, end_ns) in enumerate(zip(arrivals_ns, ends_ns)):
        job.rows["rank"][rank] |= {"wall_ns": end_ns, "counted_ns": end_ns}
        job.call("MPI_Finalize", arrival_ns, end_ns, rank)
    return job


def test_waiting_in_finalize_is_said_beside_the_verdict(late, text, report, tmp_path):
    job = ending([2_000 * MS, 1_990 * MS, 2_000 * MS], [500 * MS, 1_900 * MS, 700 * MS])
    (row,) = late(job, "run", "--rank", "0")
    assert (row["finalize_wait_ns"], row["finalize_last_rank"], row["late_ranks"]) == (
        2_600 * MS,
        1,
        None,
    )
    said = (
        "At the end      the other ranks wait 1.30 s on average in MPI_Finalize for rank "
        "1; counted nowhere else"
    )
    assert said in text(job) and said in report("summary", job.write(tmp_path / "run.db")).out


@pytest.mark.parametrize("ends", [[1_000, 2_000, 2_000], [2_000, 2_000, 2_000]])
def test_where_ranks_do_not_wait_for_each_other_in_finalize_nothing_is_said(late, text, ends):
    """One returned before the last came; or all come together, and MPI takes its time."""
    arrivals = [500, 1_900, 700] if ends[0] == 1_000 else [1_500, 1_501, 1_500]
    job = ending([ms * MS for ms in ends], [ms * MS for ms in arrivals])
    assert (late(job, "run")[0]["finalize_last_rank"] is None) == (ends[0] == 1_000)
    assert "At the end" not in text(job)


def test_of_two_ranks_that_are_late_by_chance_one_causes_half(text):
    """No few long waits, and both can be waited for."""
    said = text(late_job(None, [HostClock()] * 2)).splitlines()[0]
    assert re.search(r"^No rank is late beyond chance: .* rank \d causes 5.\.. % of that", said)


def test_less_than_half_of_the_time_gives_no_verdict_and_says_where_the_rest_is(late, text):
    job = late_job(1, [HostClock()] * 2)
    job.call("MPI_Recv", 0, 2 * SECOND)
    (row,) = late(job, "run")
    assert row["verdict"] == "unknown" and row["coverage"] < 0.05 and row["late_ranks"] is None
    assert "not known: only" in text(job) and "per rank in MPI_Recv" in text(job)


def on_background_threads(job: Job) -> Job:
    for rank in range(len(job.hosts)):
        job.thread(rank, is_main=0)
    return job


def test_a_late_rank_is_named_by_the_calls_of_background_threads(late, text):
    """DistributedDataParallel's thread calls MPI when it is handed a bucket."""
    job = on_background_threads(late_job(1, [HostClock()] * 2))
    (row,) = late(job, "run")
    assert (
        row["verdict"],
        row["late_ranks"],
        row["background_share"],
        row["negotiated_share"],
    ) == ("imbalance", "1", 1, 0)
    assert "100.0 % of that time on background threads" in text(job)
    (row,) = late(on_background_threads(late_job(None, [HostClock()] * 2)), "run")
    assert row["late_ranks"] is None


@pytest.mark.parametrize("late_rank", [0, 1])
def test_the_cause_of_waiting_is_followed_through_background_threads(late, late_rank):
    (run,) = late(on_background_threads(passing("line", 4, 1, late_rank)), "run")
    assert (run["verdict"], run["late_ranks"]) == ("imbalance", str(late_rank))


BITS = {
    "datatype": "MPI_LONG_LONG",
    "type_bytes": 8,
    "extent": 8,
    "blocks": 1,
    "count": 1,
    "op": "MPI_BAND",
    "is_in_place": 0,
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


def test_a_thread_that_negotiates_accuses_nobody(late, text):
    job = negotiated(late_job(1, [HostClock()] * 2))
    (row,) = late(job, "run")
    assert (row["verdict"], row["late_ranks"], row["negotiated_share"]) == ("unknown", None, 1)
    said = text(job)
    assert (
        "100.0 % of the time inside MPI is on a thread that negotiates" in said
        and "times last" not in said
    )


def test_a_main_thread_that_reduces_bits_does_not_negotiate(late):
    (row,) = late(negotiated(late_job(1, [HostClock()] * 2), is_main=1), "run")
    assert (row["verdict"], row["late_ranks"], row["negotiated_share"]) == ("imbalance", "1", 0)


def beside_negotiation(late_ns: int, transfer_ns: int, negotiated_late_ns: int) -> Job:
    """Ranks wait for rank 1 in the calls of their main threads, and for rank 0 in those of threads
    that negotiate."""
    chance, job = random.Random(5), Job([HostClock(77)] * 2, wall_ns=60 * 20 * MS)
    job.world.thread, main = 1, job.group(range(2))
    for step in range(60):
        begins = [step * 20 * MS + chance.randrange(100 * US) for _ in range(2)]
        job.collective(
            "MPI_Allreduce",
            [begins[0] + negotiated_late_ns, begins[1]],
            [50 * US] * 2,
            message_bytes=8,
        )
        begins = [step * 20 * MS + 10 * MS + chance.randrange(100 * US) for _ in range(2)]
        job.collective(
            "MPI_Allreduce", [begins[0], begins[1] + late_ns], [transfer_ns] * 2, group=main
        )
    for rank in range(2):
        job.thread(rank, is_main=1)
    return negotiated(job)


@pytest.mark.parametrize(
    "late_ns, transfer_ns, negotiated_late_ns, verdict, named",
    [
        (2 * MS, 50 * US, MS, "imbalance", "1"),
        (0, MS, MS, "transfer", None),
        (2 * MS, 50 * US, 5 * MS, "unknown", None),
    ],
    ids=["late", "negotiated late", "mostly negotiated"],
)
def test_in_a_mixed_job_nobody_is_judged_by_the_calls_that_are_negotiated(
    late, text, late_ns, transfer_ns, negotiated_late_ns, verdict, named
):
    job = beside_negotiation(late_ns, transfer_ns, negotiated_late_ns)
    (row,) = late(job, "run")
    assert (row["verdict"], row["late_ranks"]) == (verdict, named), row
    is_said = " is on threads that negotiate, where nobody is judged" in " ".join(text(job).split())
    assert is_said == (row["negotiated_share"] < 0.5)


def test_a_background_thread_with_a_part_of_the_calls_is_said(text):
    job = late_job(1, [HostClock()] * 2)
    assert "on background threads" not in text(job)
    job.thread(1, is_main=0)
    assert "100 collectives, 2.4 % of that time on background threads" in text(job)


def test_each_kind_of_waiting_has_its_time(late, text):
    job = one_host(3)
    waits = {
        "MPI_Allreduce": 900,
        "MPI_Barrier": 700,
        "MPI_Bcast": 500,
        "MPI_Reduce": 300,
        "MPI_Scan": 100,
    }
    for number, (call, wait_ns) in enumerate(waits.items()):
        arrivals = [number * MS, number * MS, number * MS]
        arrivals[1 if call == "MPI_Reduce" else 0] += wait_ns
        job.collective(call, arrivals, [10] * 3, root=0)
    rows = late(job, "state")
    assert [(row["wait_state"], row["calls"], row["wait_ns"]) for row in rows] == [
        *[("wait at n x n", 2, 1_800), ("wait at barrier", 2, 1_400), ("late broadcast", 2, 1_000)],
        *[("early reduce", 1, 300), ("early scan", 2, 200)],
    ]
    assert sum(row["share"] for row in rows) == pytest.approx(1)
    assert "wait at barrier" in text(job)


def test_a_wait_in_waitall_has_the_kind_of_its_collective(late):
    job = one_host(2)
    ends = job.collective("MPI_Ibcast", [7_000, 0], [50, 50], root=0)
    for rank, end_ns in enumerate(ends):
        job.call("MPI_Wait", end_ns - 1_000, end_ns, rank)
    (row,) = late(job, "state")
    assert (row["wait_state"], row["calls"], row["wait_ns"]) == ("late broadcast", 1, 950)
    assert column(late(job), "last_count") == [1, 0]  # the root, which waits for nobody
    job = one_host(2)
    for rank, end_ns in enumerate(job.collective("MPI_Ibcast", [0, 7_000], [50, 50], root=0)):
        job.call("MPI_Wait", end_ns - 10, end_ns, rank)
    assert column(late(job), "last_count") == [0, 0]  # nobody waits for a leaf


def test_a_size_has_its_skew_and_its_time_from_the_last_arrival_on(late):
    job = one_host(2)
    for step in range(100):
        job.collective(
            "MPI_Allreduce",
            [step * MS, step * MS + (step + 1) * 1_000],
            [50 * US, 60 * US],
            message_bytes=64,
        )
    (row,) = late(job, "size")
    assert (row["call"], row["bytes"], row["collectives"], row["ranks"]) == (
        "MPI_Allreduce",
        64,
        100,
        2,
    )
    assert (row["skew_p50_ns"], row["skew_p95_ns"]) == (50_000, 95_000)
    assert row["transfer_p50_ns"] == row["transfer_p99_ns"] == 60 * US
    assert row["busbw_bytes_per_s"] == pytest.approx(64 / 60e-6)  # 2 (n - 1) / n is 1 on two ranks


@pytest.mark.parametrize(
    ("call", "factor"),
    (
        ("MPI_Allreduce", 1.5),
        ("MPI_Allgather", 3),
        ("MPI_Reduce_scatter_block", 0.75),
        ("MPI_Bcast", None),
        ("MPI_Scan", None),
    ),
)
def test_bus_bandwidth_of_a_size_is_over_the_library_s_own_time(late, call, factor):
    root = 0 if call == "MPI_Bcast" else None
    job = repeated(
        [HostClock(77)] * 4, 20, MS, lambda *_: 0, 50 * US, call, message_bytes=4096, root=root
    )
    (row,) = late(job, "size")
    assert row["busbw_bytes_per_s"] == (factor and pytest.approx(factor * 4096 / 50e-6))


def test_clocks_of_two_hosts_are_aligned_before_waiting_is_measured(late):
    plain = late_job(3, [HostClock()] * 4)
    apart = late_job(3, [HostClock()] * 2 + [HostClock(9 * SECOND, 40e-6)] * 2)
    for step in range(100):  # some in which all come together tell the clocks
        for job in (plain, apart):
            job.collective("MPI_Barrier", [step * 20 * MS + 9 * MS] * 4, [5 * US] * 4)
    (row,) = late(apart, "run", "--call", "Allreduce")
    assert (row["clocks"], row["unconnected_clocks"], row["estimate_share"]) == (2, 0, 0)
    assert 0 < row["error_ns"] < 30 * US
    for true, measured in zip(
        late(plain, "rank", "--call", "Allreduce"), late(apart, "rank", "--call", "Allreduce")
    ):
        # Each of the 100 waits is off by the error at most, and the clock of two ranks runs fast by
        # 40 ppm.
        assert (
            abs(measured["wait_ns"] - true["wait_ns"])
            <= 100 * row["error_ns"] + 1e-4 * true["wait_ns"]
        )
        assert measured["last_count"] == (100 if measured["rank"] == 3 else 0)


def test_where_clocks_do_not_tell_durations_do_and_it_is_said(late, text):
    hosts = [HostClock(wall_ns=0), HostClock(9 * SECOND, wall_ns=300 * MS)]
    job = Job(hosts)
    # its sizes may be none: no clock is bound
    job.collective("MPI_Alltoallv", [0, 400 * US], [10 * US, 20 * US])
    (row,) = late(job, "run")
    assert (row["unconnected_clocks"], row["estimate_share"], row["error_ns"]) == (1, 1, 0)
    rows = late(job)
    assert (column(rows, "wait_ns"), column(rows, "transfer_ns")) == (
        [390 * US, 0],
        [20 * US, 20 * US],
    )
    assert column(rows, "cost_ns") == [0, 390 * US]
    assert "without a common collective" in text(job) and "~" in text(job, "--by", "call")


def test_two_ranks_that_are_late_in_turn_tell_their_clocks(late):
    """Half of all calls are transfer alone, but none of the collectives is."""
    job = repeated(
        [HostClock(), HostClock(9 * SECOND)],
        100,
        20 * MS,
        lambda step, rank: 10 * MS * (rank == step % 2),
        50 * US,
    )
    (row,) = late(job, "run")
    assert (row["estimate_share"], row["wait_ns"]) == (0, pytest.approx(100 * 10 * MS, rel=0.01))


@pytest.mark.parametrize("hosts", ["AB", "ABCD", "ABAA"])
def test_a_host_that_is_always_late_is_found_by_its_short_calls(late, text, hosts):
    clocks = {
        "A": HostClock(),
        "B": HostClock(9 * SECOND, 20e-6),
        "C": HostClock(4 * SECOND),
        "D": HostClock(7 * SECOND),
    }
    job = late_job(1, [clocks[host] for host in hosts])
    (row,) = late(job, "run")
    assert row["estimate_share"] == 1  # nothing says whether its clock is off or it comes late
    assert (row["verdict"], row["late_ranks"]) == ("imbalance", "1")
    assert "clocks, aligned by collectives or messages; for 100.0 % of" in text(job)


def test_a_bcast_between_clocks_that_do_not_tell_is_counted_as_not_split(late):
    job = Job([HostClock(), HostClock(9 * SECOND)])
    job.collective("MPI_Bcast", [0, 400 * US], [10 * US, 20 * US], root=0)
    (row,) = late(job, "run")
    assert (row["verdict"], row["unsure"], row["total_ns"]) == ("none", 1, 30 * US)


def test_a_part_of_the_calls_stands_for_all_of_them(late, text):
    job = one_host(2)
    for step in range(100):
        job.collective(
            "MPI_Allreduce", [step * MS, step * MS + 300 * US], [100 * US] * 2, is_sampled=step < 25
        )
    (row,) = late(job, "run")
    assert (row["collectives"], row["coverage"], row["sampled_share"]) == (25, 1, 0.25)
    assert (column(late(job), "wait_ns"), column(late(job), "transfer_ns")) == (
        [30 * MS, 0],
        [10 * MS, 10 * MS],
    )
    assert "25.0 % of the time inside MPI in 25 collectives, scaled to all\n" in text(job)


def test_the_exact_time_is_not_that_of_samples_whose_ends_were_rounded(late):
    job = repeated([HostClock(77)] * 2, 100, MS, lambda *_: 0, 100 * US)
    for made in job.made:
        made["duration_ns"] -= 1
    (row,) = late(job, "run")
    assert (row["total_ns"], row["wait_ns"] + row["transfer_ns"], row["coverage"]) == (
        200 * (100 * US - 1),
        200 * 100 * US,
        1,
    )


def test_a_collective_of_which_a_rank_has_no_sample_is_left_out(late):
    job = one_host(3)
    for step in range(2):
        job.collective("MPI_Barrier", [step * MS, step * MS + 5, step * MS + 9], [10] * 3)
    job.rows["sample"] = [
        row for row in job.rows["sample"] if (row["world_rank"], row["sequence"]) != (1, 2)
    ]
    assert late(job, "run")[0]["collectives"] == 1


def test_ranks_whose_files_are_missing_are_said_to_be_perhaps_the_late_ones(late, text):
    job = Job([HostClock()] * 4, missing=(3,))
    job.collective("MPI_Bcast", [0, 5, 9, 100], [10] * 4, root=3)
    job.collective("MPI_Barrier", [1_000, 1_005, 1_009, 1_100], [10] * 4)
    (row,) = late(job, "run")
    assert (row["collectives"], row["unsure"]) == (1, 1)  # nobody knows when the root came
    assert "rank 3: late ranks may be among them" in text(job)


def test_a_nonblocking_collective_is_waited_for_in_the_call_that_completes_it(late):
    job = one_host(2)
    for step in range(10):
        ends = job.collective("MPI_Iallreduce", [step * MS, step * MS + 7_000], [50, 50])
        for rank, end_ns in enumerate(ends):  # rank 0 waits from 2 us on
            job.call("MPI_Wait", step * MS + 2_000 + 5_010 * rank, end_ns, rank)
    rows = late(job)
    assert column(rows, "wait_ns") == [10 * 5_000, 0]
    assert (column(rows, "cost_ns"), column(rows, "last_count")) == ([0, 50_000], [0, 10])
    (by_call,) = late(job, "call")
    assert (by_call["call"], by_call["collectives"], by_call["top_rank"]) == (
        "MPI_Iallreduce",
        10,
        1,
    )


def test_a_call_that_completes_several_waits_for_the_one_that_is_ready_last(late):
    job = one_host(3)
    first = job.collective("MPI_Iallreduce", [0, 3_000, 1_000], [50] * 3)
    job.collective("MPI_Iallreduce", [100, 3_100, 9_000], [50] * 3)
    for row in job.rows["sample"]:
        row["completed_ns"] = 9_500 if row["completed_ns"] else None
    assert len(first) == 3
    job.call("MPI_Waitall", 500, 9_500, 0)
    rows = late(job)
    assert column(rows, "wait_ns") == [8_500, 0, 0]
    assert column(rows, "cost_ns") == [0, 0, 8_500]


def test_a_nonblocking_collective_whose_completing_call_is_not_sampled_is_counted_as_not_split(
    late,
):
    job = one_host(2)
    job.collective("MPI_Iallreduce", [0, 7_000], [50, 50])
    assert (late(job, "run")[0]["verdict"], late(job, "run")[0]["uncompleted"]) == ("none", 2)


def test_polls_and_requests_that_are_freed_are_said_where_they_are_not_split(text):
    job = late_job(2, [HostClock()] * 4)
    assert "polls" not in text(job)
    for rank in range(4):
        job.receive(rank, (rank + 1) % 4, 0, 200 * US, call="MPI_Irecv")
        job.call("MPI_Test", SECOND, SECOND + 9 * MS, rank)
    said = (
        "9.00 ms per rank in MPI_Test; polls, between which a rank may work; 4 nonblocking "
        "operations whose request was freed"
    )
    assert said in text(job)


def test_neighborhoods_inter_communicators_and_lonely_ranks_are_not_split(late, text):
    job = one_host(2)
    job.collective("MPI_Barrier", [0, 50], [10, 10], group=job.group((0, 1), is_inter=1))
    job.collective("MPI_Neighbor_alltoall", [0, 50], [10, 10])
    job.collective("MPI_Allreduce", [0], [10], group=job.group((0,)))
    (row,) = late(job, "run")
    assert (row["verdict"], row["total_ns"], row["coverage"]) == ("none", 60 + 10 + 60 + 10 + 10, 0)
    assert (
        "no call was split into waiting and transfer.\n\nNot split       35 ns per rank in MPI_B"
        in text(job)
    )


def test_calls_say_for_whom_they_wait_most(late):
    job = one_host(2)
    half = job.group((0, 1), "tensor")
    job.collective("MPI_Allreduce", [0, 500], [100, 100])
    job.collective("MPI_Barrier", [MS + 900, MS], [10, 10], group=half)
    rows = late(job, "call")
    assert [
        (row["call"], row["communicator"], row["top_rank"], row["top_cost_ns"]) for row in rows
    ] == [("MPI_Barrier", "tensor", 0, 900), ("MPI_Allreduce", "MPI_COMM_WORLD", 1, 500)]
    assert [(row["wait_ns"], row["transfer_ns"], row["total_ns"]) for row in rows] == [
        (900, 20, 920),
        (500, 200, 700),
    ]


def test_filters_choose_calls_communicators_sizes_regions_and_ranks(late):
    job = one_host(2)
    half = job.group((0, 1), "tensor")
    job.collective("MPI_Allreduce", [0, 500], [100, 100], message_bytes=8)
    job.collective("MPI_Allreduce", [10_000, 10_050], [100, 100], message_bytes=1 << 20, region=1)
    for rank in range(2):
        job.add("region", world_rank=rank, region=1, name="epoch/sum")
    job.collective("MPI_Barrier", [MS + 900, MS], [10, 10], group=half, message_bytes=0)
    assert column(late(job, "rank", "--call", "Barrier"), "wait_ns") == [0, 900]
    assert column(late(job, "rank", "--communicator", "tensor"), "wait_ns") == [0, 900]
    assert column(late(job, "rank", "--bytes", "1K:"), "wait_ns") == [50, 0]
    assert column(late(job, "rank", "--region", "epoch"), "wait_ns") == [50, 0]
    assert [row["total_ns"] for row in late(job, "call", "--region", "epoch")] == [250]
    assert column(late(job, "rank", "--rank", "1"), "rank") == [1]


def test_one_rank_and_no_samples_are_said(text, late):
    job = Job([HostClock()])
    assert "One rank" in text(job)


def test_without_samples_the_setting_is_named(text):
    job = one_host(2)
    job.collective("MPI_Barrier", [0, 5], [10, 10], is_sampled=False)
    assert "COMMPROF_SAMPLES" in text(job)


def test_the_picture_stacks_waiting_on_transfer():
    matplotlib = pytest.importorskip("matplotlib.figure")
    from commprof_report.late.sums import LateRankRow
    from commprof_report.plots import bars

    axes = matplotlib.Figure().add_subplot()
    ranks = [LateRankRow(rank, "a", 1, 0, 0, 0, 0, 0, 300 + rank, 100, 0.75) for rank in range(3)]
    bars.of_waits(ranks).draw(axes)
    assert [bar.get_height() for bar in axes.patches] == [100, 100, 100, 300, 301, 302]
    assert [bar.get_y() for bar in axes.patches] == [0, 0, 0, 100, 100, 100]


def test_the_page_says_who_is_late(report, tmp_path):
    path = late_job(2, [HostClock()] * 2 + [HostClock(SECOND)] * 2).write(tmp_path / "run.db")
    assert report("html", path).status == 0
    html = path.with_suffix(".html").read_text()
    assert (
        "Who is late" in html
        and "Rank 2 is late: it causes" in html
        and "waiting and transfer by rank" in html
    )


def test_clocks_can_be_aligned_again(tmp_path):
    path = late_job(2, [HostClock()] * 3).write(tmp_path / "run.db")
    arguments = argparse.Namespace(**dict.fromkeys(FILTERS))
    run = select(run_open(path, with_samples=True), arguments)
    align(run.connection)
    first, again = answers(run, align(run.connection)), answers(run, align(run.connection))
    assert first._replace(judge=None) == again._replace(judge=None)


def test_clocks_that_have_run_for_ages_are_no_error(late):
    job = Job([HostClock(1 << 62), HostClock(0)])
    job.collective("MPI_Barrier", [0, 1 << 61], [1 << 60, 5])
    assert column(late(job), "collectives") == [1, 1]


def read(ranks: int, read: int, call: str, **communicator: int) -> list[planted.Rank]:
    """The first ranks of a job; all make the same calls."""
    members = f"0-{ranks - 1}" if ranks > 1 else "0"
    world = planted.Communicator(planted.WORLD, planted.WORLD_IDENTITY, members, ranks, 0)
    known = [replace(world, comm_rank=rank, **communicator) for rank in range(read)]
    cells = [planted.Cell(call, 1 << 20, [MS] * 30)]
    return [
        planted.Rank(rank, ranks, communicators=[known[rank]], cells=cells) for rank in range(read)
    ]


LONELY = "Who is late is not known: 1 of {} processes that communicate was read"
UNTIMED = (
    "Who is late is not known: NCCL's collectives were not timed on the device (the GPU was not "
    "traced)"
)
NONE = {
    "one of two": (read(2, 1, "MPI_Allreduce"), LONELY.format(2)),
    "one that spawned two": (read(1, 1, "MPI_Bcast", remote_size=2, is_inter=1), LONELY.format(3)),
    "alone": (read(1, 1, "MPI_Allreduce"), "One rank: there is nobody to wait for"),
    "untimed": (read(2, 2, "ncclAllReduce"), UNTIMED),
    "only set-up": (read(2, 2, "MPI_Init"), "No call makes ranks wait for each other"),
}


@pytest.mark.parametrize("name", NONE)
def test_waiting_is_denied_only_where_it_could_have_been_seen(report, tmp_path, name):
    ranks, said = NONE[name]
    out = report("late", planted.write_databases(tmp_path / "run", ranks)).out
    assert out.startswith(f"{said}.\n")
    assert ("Not read        rank 1: late ranks may be among them\n" in out) == (
        name == "one of two"
    )


@pytest.mark.parametrize("has_calls", [False, True])
def test_a_rank_without_any_call_does_not_make_the_others_unsampled(report, tmp_path, has_calls):
    ranks = read(3, 3, "MPI_Recv")
    for rank in ranks[:2]:
        rank.samples = [planted.Sample("MPI_Recv", 1_000, 1_000 + MS, bytes=1 << 20)]
        rank.windows = [planted.Window(0, rank.wall_ns)]
    ranks[2].cells = ranks[2].cells if has_calls else []
    out = report("late", planted.write_databases(tmp_path / "run", ranks)).out
    assert ("not known: single calls are not sampled on all ranks" in out) == has_calls


def sampled_allreduces(
    sampled: Callable[[int], bool], transfer_ns: Callable[[int], int], late_ns: int = 0
) -> Job:
    """120 Allreduces of four ranks, of which some are sampled. late_ns: of rank 2."""
    job = Job([HostClock()] * 4, wall_ns=12 * SECOND)
    for step in range(120):
        arrivals = [step * 100 * MS + late_ns * (rank == 2) for rank in range(4)]
        job.collective("MPI_Allreduce", arrivals, [transfer_ns(step)] * 4, is_sampled=sampled(step))
    return job


@pytest.mark.parametrize(("every", "certainty"), [(120, "possible"), (3, None), (1, None)])
def test_waiting_in_one_call_of_a_thinned_log_is_possible_advice(
    report, tmp_path, every, certainty
):
    """With more calls, the rank is named instead."""
    job = sampled_allreduces(lambda step: step % every == 0, lambda step: MS, 30 * MS)
    rows = report("advise", job.write(tmp_path / "run.db"), "--json").rows
    found = {row["rule"]: row["certainty"] for row in rows if row["found"]}
    assert found.get("waiting") == certainty
    assert found.get("imbalance") == (None if certainty else "likely")


def test_one_long_call_of_a_thinned_log_makes_no_verdict(late, report, text, tmp_path):
    """The one that was sampled stands for 120 with nothing known of the others."""
    job = sampled_allreduces(lambda step: step == 50, lambda step: 10 * MS)
    (row,) = late(job, "run")
    assert (row["verdict"], row["transfer_calls"], row["coverage"]) == ("unknown", 1, 1)
    said = (
        "Who is late is not known: half of the transfer is in 1 of 1 analysed call, too few to "
        "stand for all.\n"
    )
    assert text(job).startswith(said)
    assert "Based on        0.83 % of the time inside MPI in 1 collective, scaled to all\n" in text(
        job
    )
    headline, *_ = report("summary", tmp_path / "run.db").out.partition("\n\n")
    assert " ".join(headline.split()) == said.rstrip()


def test_an_outlier_of_a_thinned_log_makes_no_verdict(late):
    """Ten calls are sampled, of which one lasts longer than all the others."""
    job = sampled_allreduces(
        lambda step: step % 12 == 0, lambda step: 40 * MS if step == 60 else MS
    )
    (row,) = late(job, "run")
    assert (row["verdict"], row["transfer_calls"], row["collectives"]) == ("unknown", 1, 10)


def test_transfer_in_most_calls_of_a_thinned_log_is_the_verdict(late, report, text, tmp_path):
    job = sampled_allreduces(lambda step: step % 12 == 0, lambda step: 10 * MS)
    (row,) = late(job, "run")
    assert (row["verdict"], row["transfer_calls"]) == ("transfer", 5)
    assert text(job).startswith("Transfer costs most: 10.0 % of the time, waiting for ranks 0.")
    basis = "8.3 % of the time inside MPI in 10 collectives, scaled to all"
    assert f"Based on        {basis}\n" in text(job)
    assert f"Based on {basis}" in " ".join(report("summary", tmp_path / "run.db").out.split())


@pytest.mark.parametrize(
    ("transfer_ns", "where"),
    [
        (lambda step: 10 * MS, ""),
        (
            lambda step: 90 * MS if step == 40 else 600 * US,
            "half of the transfer is in 1 of 120 analysed calls",
        ),
    ],
    ids=["all", "one"],
)
def test_few_calls_with_half_of_the_transfer_are_said(text, transfer_ns, where):
    said = text(sampled_allreduces(lambda step: True, transfer_ns))
    assert where in said and ("half of" in said) == bool(where)


@pytest.mark.parametrize(
    ("late", "begin"),
    [
        ((1,), "Rank 1 is late: "),
        ((1, 3), "Different ranks are late in different calls: rank 1 in MPI_Allreduce on first, "),
        ((0, 1), "Transfer costs most: "),
    ],
)
def test_each_half_of_a_job_may_have_a_late_rank(late, begin, text):
    """Nothing joins the halves."""
    job = Job([HostClock()] * 4, wall_ns=40 * 100 * MS)
    halves = job.group((0, 1), "first"), job.group((2, 3), "second")
    for step in range(40):
        for half in halves:
            arrivals = [step * 100 * MS + 40 * MS * (rank in late) for rank in half.ranks]
            job.collective("MPI_Allreduce", arrivals, [2 * MS] * 2, group=half)
    assert " ".join(text(job).split()).startswith(begin)


@pytest.mark.parametrize(("ranks", "enough"), [(2, 9), (3, 8), (64, 8)])
def test_so_many_late_arrivals_of_one_rank_are_beyond_chance(ranks, enough):
    assert enough_arrivals(ranks) == enough
    assert enough == 8 or ranks * ranks**-enough < 0.004 <= ranks * ranks ** (1 - enough)
