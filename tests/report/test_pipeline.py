"""`hvprof-report pipeline`: stages, replicas, bubbles and the stage that the others wait for, on
planted pipelines."""

from __future__ import annotations

import random
from itertools import permutations

import parallel
import planted
import planted_job
import pytest
from cases import of
from commprof_report.roles.world import MessageRow, MessageTime, graph
from planted import Cell

SHAPES = [(4, 1), (2, 2), (8, 1), (4, 2), (2, 4)]  # stages, replicas: 4 and 8 ranks


@pytest.fixture
def stages_of(report, tmp_path):
    def ask(ranks):
        return report("pipeline", planted.write_databases(tmp_path / "run", ranks), "--json").rows

    return ask


@pytest.mark.parametrize(("stages", "replicas"), SHAPES)
def test_every_rank_is_a_stage_of_its_pipeline_in_order(stages_of, stages, replicas):
    rows = stages_of(parallel.pipeline_run(stages, replicas))
    found = [of(row, "pipeline stage rank") for row in rows]
    assert found == [(1 + rank // stages, rank % stages, rank) for rank in range(stages * replicas)]
    assert {(row["stages"], row["replicas"]) for row in rows} == {(stages, replicas)}


def working(
    stages: int, replicas: int, slow: int | None, both_ways: bool = True
) -> planted_job.Job:
    """Rank = replica x stages + stage. In 100 micro-batches each stage computes 1 ms or so, the
    slow one 20 ms; the pipelines meet in a Barrier after every fourth."""
    chance, ranks = random.Random(1), stages * replicas
    program = planted_job.Program(ranks)
    ways = [range(stages), range(stages)[::-1]][: 1 + both_ways]
    for batch in range(100):
        for first in range(0, ranks, stages):
            for way in ways:
                for before, stage, after in zip([None, *way], way, [*way[1:], None]):
                    if before is not None:
                        program.receive(first + stage, first + before)
                    work_ns = 20_000_000 if stage == slow else 1_000_000
                    program.compute(first + stage, work_ns + chance.randrange(50_000))
                    if after is not None:
                        program.send(first + stage, first + after)
        if batch % 4 == 3:
            program.collective("MPI_Barrier", program.job.world)
    for rank, peer in program.sent_ns:
        what = {"world_rank": rank, "call": "MPI_Send", "direction": "sent", "communicator": 0}
        sums = {"count": 100, "bytes": 100_000, "time_ns": 100_000}
        program.job.add("peer", **what, peer=peer, **sums)
    return program.end()


@pytest.mark.slow
@pytest.mark.parametrize("both_ways", (True, False))
@pytest.mark.parametrize(("stages", "replicas"), SHAPES)
def test_each_slow_stage_is_the_one_waited_for(report, tmp_path, stages, replicas, both_ways):
    for slow in (None, *range(stages)):
        path = working(stages, replicas, slow, both_ways).write(tmp_path / f"{slow}.db")
        rows = report("pipeline", path, "--json").rows
        found = [row["stage"] for row in rows if row["is_waited_for"]]
        assert found == ([] if slow is None else [slow] * replicas), slow


def test_messages_that_go_one_way_tell_the_direction(stages_of):
    rows = stages_of(parallel.pipeline_run(4, 1, both_ways=False, reverse=True))
    assert [of(row, "rank is_direction_known") for row in rows] == [(3, 1), (2, 1), (1, 1), (0, 1)]


def test_a_slow_replica_does_not_make_a_stage_of_the_other_guilty(stages_of, report, tmp_path):
    """Rank 2 is outside MPI for longer. Rank 3 waits for its messages, both ranks of the first
    pipeline in Allreduce."""
    ranks = parallel.pipeline_run(2, 2)[:2] + parallel.pipeline_run(2, 2, slow=0)[2:]
    for rank in ranks:
        spent_ns = 40_000_000 if rank.world_rank < 2 else 1_000_000
        ends = [step * 100_000_000 + 99_000_000 for step in range(100)]
        summed = ("MPI_Allreduce", parallel.GRADIENT_BYTES, [spent_ns] * 100, parallel.REPLICA)
        rank.cells[-1] = planted.Cell(*summed)
        rank.samples += [
            planted.Sample("MPI_Allreduce", end_ns - spent_ns, end_ns, parallel.REPLICA, sequence)
            for sequence, end_ns in enumerate(ends, 1)
        ]
    assert [row["rank"] for row in stages_of(ranks) if row["is_waited_for"]] == [2]
    lines = report("pipeline", tmp_path / "run").out.splitlines()
    first, second = (line for line in lines if line[:2] in ("1:", "2:"))
    assert "no stage is notably waited for" in first
    assert "the others wait for stage 0 (rank 2)" in second


def test_a_pipeline_of_which_less_than_half_is_known_accuses_no_stage(stages_of, report, tmp_path):
    ranks = parallel.pipeline_run(4, 1, slow=1)
    for rank in ranks:
        rank.cells.append(planted.Cell("MPI_Probe", 0, [20_000_000] * 200))
    rows = stages_of(ranks)
    assert {of(row, "is_waited_for wait_ns") for row in rows} == {(0, None)}
    assert 0 < rows[0]["coverage"] < 0.5
    assert "which stage is slow is not known" in report("pipeline", tmp_path / "run").out


def test_a_ring_and_a_web_are_no_pipelines(report, run_folder, tmp_path):
    answer = report("pipeline", run_folder)
    assert "Ranks 0-3 exchange messages, but not along a line" in answer.out
    assert "No pipeline" in answer.out
    assert report("pipeline", run_folder, "--json").rows == []
    web = graph(MessageRow(*pair, 10, 100) for pair in permutations(range(4), 2))
    assert (web.chains, web.webs) == ([], [[0, 1, 2, 3]])


def test_a_rank_that_passes_nothing_on_is_no_stage():
    """Rank 0 gives work to 1 and 2, or collects theirs. Its twin gives it to 1, who sends it on to
    2."""
    for pairs, is_pipeline in (
        (((0, 1), (0, 2)), False),
        (((1, 0), (2, 0)), False),
        (((0, 1), (1, 2)), True),
    ):
        found = graph(MessageRow(*pair, 10, 10_000) for pair in pairs)
        assert (len(found.chains), len(found.stars)) == ((1, 0) if is_pipeline else (0, 1))


def both(one: int, other: int, there: int = 10_000, back: int = 10_000) -> list[MessageRow]:
    return [MessageRow(one, other, 10, there), MessageRow(other, one, 10, back)]


@pytest.mark.parametrize(
    ("rows", "servers"),
    [
        ([*both(0, 1), *both(0, 2), *both(0, 3)], [0]),
        ([*both(2, 0), *both(2, 1), *both(2, 3)], [2]),
        ([*both(0, 2), *both(0, 3), *both(0, 4), *both(1, 2), *both(1, 3), *both(1, 4)], [0, 1]),
        ([*both(0, 1), *both(0, 2), *both(0, 3), *both(1, 2)], None),  # workers talk
        ([*both(0, 2), *both(0, 3), *both(0, 4), *both(1, 2)], None),  # server 1 has one
        ([*both(0, 1), *both(0, 2)], [0]),  # 1 > 0 > 2 would be no order of ranks
        ([*both(1, 0), *both(1, 2)], None),  # 0 > 1 > 2
        ([*both(1, 0, 10_000, 100), *both(1, 2, 10_000, 100)], [1]),  # requests, and replies
        ([*both(1, 0, 100, 10_000), *both(1, 2, 10_000, 100)], None),  # passed on
    ],
)
def test_a_rank_that_all_others_exchange_messages_with_is_their_server(rows, servers):
    found = graph(rows)
    assert [star.servers for star in found.stars] == ([] if servers is None else [servers])
    assert bool(found.chains) == (rows[0][:2] != (0, 1) and len(rows) == 4 and servers is None)


@pytest.mark.parametrize(
    ("pairs", "sentence"),
    [
        (
            [(0, 1), (0, 2), (0, 3), (1, 0), (2, 0), (3, 0)],
            "Rank 0 serves ranks 1-3 as a master or parameter server: these exchange messages with "
            "it, and none with each other.",
        ),
        (
            [pair for low in (0, 1) for high in (2, 3, 4) for pair in ((low, high), (high, low))],
            "Ranks 0-1 serve ranks 2-4 as masters or parameter servers: these exchange messages "
            "with them, and none with each other.",
        ),
        (
            [(1, 0), (2, 0), (3, 0)],
            "Rank 0 receives messages from ranks 1-3, which exchange none with each other.",
        ),
        (
            [(2, 0), (2, 1), (2, 3)],
            "Rank 2 sends messages to ranks 0-1,3, which exchange none with each other.",
        ),
    ],
)
def test_who_serves_whom_is_said(report, tmp_path, pairs, sentence):
    folder = planted.write_databases(tmp_path, sending_run(pairs))
    assert report("pipeline", folder).out.startswith(sentence + "\nNo pipeline")


def sending_run(pairs: list[tuple[int, int]]) -> list[planted.Rank]:
    size = 1 + max(map(max, pairs))
    ranks = [planted.Rank(rank, size) for rank in range(size)]
    for own in ranks:
        own.communicators = [parallel.world(own.world_rank, size)]
        own.cells = [Cell("MPI_Send", 4_000, [1_000] * 20)]
    for sender, receiver in pairs:
        ranks[sender].peers.append(("MPI_Send", "sent", receiver, 20, 80_000, 20_000))
    return ranks


LINE = [*both(0, 1), *both(1, 2), *both(2, 3)]


def exchanged(rank: int, size: int, is_first: bool) -> list[MessageTime]:
    """Ten times: one message to each neighbour in a line, and one from each; is_first: it sends
    before it receives."""
    peers = [peer for peer in (rank - 1, rank + 1) if 0 <= peer < size]
    return [
        MessageTime(rank, peer, is_sent, 0)
        for _ in range(10)
        for is_sent in ((1, 0) if is_first else (0, 1))
        for peer in peers
    ]


@pytest.mark.parametrize("is_first", [lambda rank: True, lambda rank: rank % 2 == 0])
def test_borders_that_neighbours_exchange_are_not_passed_on(is_first):
    for size in (3, 4):
        rows = [row for row in LINE if max(row.sender, row.receiver) < size]
        times = [time for rank in range(size) for time in exchanged(rank, size, is_first(rank))]
        found = graph(rows, times)
        assert (found.exchanges, found.chains) == ([list(range(size))], [])


def test_two_ranks_that_answer_each_other_are_stages_and_two_that_exchange_are_not():
    for is_first, is_pipeline in ((lambda rank: rank == 0, True), (lambda rank: True, False)):
        times = [time for rank in (0, 1) for time in exchanged(rank, 2, is_first(rank))]
        assert bool(graph(both(0, 1), times).chains) == is_pipeline


def test_a_few_messages_are_no_pipeline():
    """A spare rank that is told that the job is over."""
    assert [len(graph([MessageRow(0, 4, count, 4)]).chains) for count in (1, 7, 8)] == [0, 0, 1]


def test_a_pipeline_with_a_missing_rank_is_shown_as_far_as_it_is_known(report, tmp_path):
    folder = planted.write_databases(tmp_path / "run", parallel.pipeline_run(4, 1, slow=1)[:3])
    rows = report("pipeline", folder, "--json").rows
    found = [(row["rank"], row["bubble_share"] is None) for row in rows]
    assert found == [(0, False), (1, False), (2, False), (3, True)]
    assert "not all of its ranks were read" in report("pipeline", folder).out
