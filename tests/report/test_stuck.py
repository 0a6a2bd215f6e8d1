"""Who waits for whom: planted positions, mismatches and circles."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import time

import parallel
import planted
import pytest
from cases import of
from commprof_report.run.run import run_open
from commprof_report.run.selection import FILTERS, select
from commprof_report.stuck import doing as analysis
from planted import (
    ANY_SOURCE,
    SECOND,
    START_UNIX_NS,
    Collective,
    CpuTime,
    Doing,
    Rank,
    process_facts,
)

NOW_S = 60  # the moment of all reading, since the ranks' start
BARRIER, ALLREDUCE = Collective("MPI_Barrier"), Collective("MPI_Allreduce", 8)


@pytest.fixture(autouse=True)
def now(monkeypatch):
    monkeypatch.setattr(time, "clock_gettime_ns", lambda _: planted.START_NS + NOW_S * SECOND)


def recv(peer: int, since_s: float = 10, tag: int = 3) -> Doing:
    return Doing("MPI_Recv", round(since_s * SECOND), bytes=4, peer=peer, tag=tag)


def inside(call: str, since_s: float = 10, **details: object) -> Doing:
    return Doing(call, round(since_s * SECOND), **details)


def outside(call: str, since_s: float = 10) -> Doing:
    return Doing(call, round(since_s * SECOND), is_inside=0)


def job(begun: list[list[Collective]], doing: list[Doing | None]) -> list[Rank]:
    """Ranks that live, with what they have begun on MPI_COMM_WORLD and what they are doing."""
    size = len(doing)
    ranks = [
        Rank(own, size, ended="running", pid=os.getpid(), facts=process_facts(os.getpid()))
        for own in range(size)
    ]
    for own, rank in enumerate(ranks):
        rank.communicators = [parallel.world(own, size)]
        rank.communicators[0].begun = begun[own]
        rank.doing = {0: doing[own]} if doing[own] else {}
    return ranks


def messages(*doing: Doing | None) -> list[Rank]:
    return job([[] for _ in doing], list(doing))


def hang_of_all_kinds() -> list[Rank]:
    """A mismatch, a circle, and ranks that wait for one that computes."""
    begun = [[ALLREDUCE, BARRIER], [ALLREDUCE, ALLREDUCE], [ALLREDUCE], [ALLREDUCE], [ALLREDUCE]]
    return job(begun, [inside("MPI_Barrier"), recv(0), recv(3), recv(2), outside("MPI_Allreduce")])


@pytest.fixture
def stuck(report, tmp_path):
    def ask(ranks: list[Rank], *options: str):
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        folder = planted.write_ledgers(
            tmp_path / "run", [rank for rank in ranks if rank.ended == "running"]
        )
        planted.write_databases(folder, [rank for rank in ranks if rank.ended != "running"])
        return report("stuck", folder, *options)

    return ask


def verdict(answer) -> list[str]:
    return answer.out.split("\n\n")[0].splitlines()


def of_kind(answer, kind: str) -> list[dict]:
    return [row for row in answer.rows if row["kind"] == kind]


@pytest.mark.parametrize(
    ("made", "awaited"),
    [
        # whether rank 2 comes does not matter before the root has come
        (Collective("MPI_Bcast", 8, 3), {(3,): [0, 1]}),
        # the root has come: its data may go through others
        (Collective("MPI_Bcast", 8, 0), {(2, 3): [0, 1]}),
        (Collective("MPI_Scatter", 8, 2), {(2,): [0, 1]}),
        (Collective("MPI_Reduce", 8, 0), {(2, 3): [0, 1]}),
    ],
)
def test_who_is_behind_in_a_collective_is_waited_for_as_in_late(stuck, made, awaited):
    begun = [[ALLREDUCE, made]] * 2 + [[ALLREDUCE]] * 2
    doing = [inside(made.call)] * 2 + [outside("MPI_Allreduce", 9)] * 2
    rows = stuck(job(begun, doing), "--json")
    assert {tuple(row["waited_for"]): row["waiting"] for row in of_kind(rows, "awaited")} == awaited


def test_in_a_scan_ranks_below_are_waited_for(stuck):
    begun = [[ALLREDUCE], [ALLREDUCE, Collective("MPI_Scan", 8)], [ALLREDUCE]]
    before = outside("MPI_Allreduce", 9)
    rows = stuck(job(begun, [before, inside("MPI_Scan"), before]), "--json")
    assert [row["waited_for"] for row in of_kind(rows, "wait")] == [[0]]


@pytest.mark.parametrize(
    ("first", "second", "what"),
    [
        (Collective("MPI_Allreduce", 8), Collective("MPI_Allreduce", 16), "bytes"),
        (Collective("MPI_Bcast", 8, 0), Collective("MPI_Bcast", 8, 1), "root"),
        (Collective("MPI_Allreduce", 8), Collective("MPI_Iallreduce", 8), "call"),
        (Collective("MPI_Iallreduce", 8), Collective("MPI_Iallreduce", 16), "bytes"),
        (Collective("MPI_Alltoallv", 8), Collective("MPI_Alltoallv", 16), None),
        (Collective("MPI_Ialltoallv", 8), Collective("MPI_Ialltoallv", 16), None),
        (Collective("MPI_Allreduce", 8), Collective("MPI_Allreduce", None), None),
        (Collective("MPI_Bcast", 8, None), Collective("MPI_Bcast", 8, 1), None),
    ],
)
def test_function_root_and_size_must_agree_where_they_must_and_are_known(
    stuck, first, second, what
):
    doing = [inside(first.call), inside(second.call)]
    rows = stuck(job([[BARRIER, first], [BARRIER, second]], doing), "--json")
    found = [of(row, "sequence what is_first") for row in of_kind(rows, "mismatch")]
    assert found == ([(2, what, 1)] * 2 if what else [])


def test_of_several_nonblocking_collectives_the_one_that_somebody_has_not_begun_is_waited_for(
    stuck,
):
    started = [Collective("MPI_Iallreduce", 8)] * 3
    waiting = inside("MPI_Waitall", request_call="MPI_Iallreduce", bytes=8)
    ranks = job([started, started[:1]], [waiting, outside("MPI_Iallreduce")])
    (row,) = of_kind(stuck(ranks, "--json"), "wait")
    assert of(row, "sequence waited_for") == (2, [1])
    said = "  rank 0: in MPI_Waitall for MPI_Iallreduce (8 B), collective 2, for 50.0 s"
    assert said in stuck(ranks).out


def test_one_of_many_requests_is_no_reason_to_blame_its_peer(stuck):
    waiting = inside("MPI_Waitany", request_call="MPI_Irecv", bytes=64, peer=1)
    (row,) = of_kind(stuck(messages(waiting, outside("MPI_Send")), "--json"), "wait")
    assert (row["peer"], row["waited_for"]) == (1, [])


def test_ranks_that_ended_or_left_no_file_are_what_is_waited_for(stuck):
    ranks = job([[BARRIER]] + [[]] * 4, [inside("MPI_Barrier")] + [None] * 4)
    ranks[1].ended, ranks[1].wall_ns = "finalize", 9 * SECOND
    ranks[2].ended, ranks[2].abort_code = "abort", 5
    killed(ranks[3:4])
    answer = stuck(ranks[:4])
    assert verdict(answer) == [
        "Rank 0 waits for rank 1, which has reached MPI_Finalize.",
        "Rank 0 waits for rank 2, which has called MPI_Abort(5).",
        "Rank 0 waits for rank 3, which was killed or left by _exit or exec, before its "
        "first call of MPI.",
        "Rank 0 waits for rank 4, which left no file.",
    ]
    assert "rank 4 of 5 is missing" in answer.err


def killed(ranks: list[Rank]) -> list[Rank]:
    for rank in ranks:
        rank.facts["process_start"] = "1"  # another process has its number now
    return ranks


def of_other_nodes(ranks: list[Rank]) -> list[Rank]:
    for rank in ranks:
        rank.facts = {}
    return ranks


def step_of_four(since_s: float = 10) -> list[Rank]:
    """Rank 2 computes; the others are in the next Allreduce."""
    begun = [[ALLREDUCE, ALLREDUCE] if own != 2 else [ALLREDUCE] for own in range(4)]
    inside_it, before = inside("MPI_Allreduce", since_s), outside("MPI_Allreduce", 9.998)
    return job(begun, [inside_it if own != 2 else before for own in range(4)])


def one_killed() -> list[Rank]:
    ranks = step_of_four()
    killed(ranks[2:3])
    return ranks


def sending(*since_s: float) -> list[Doing]:
    """Outside MPI after a send."""
    return [outside("MPI_Send", since) for since in since_s]


def copied(ranks: list[Rank], *seconds: int) -> list[Rank]:
    for rank, second in zip(ranks, seconds):
        rank.copied_unix_ns = START_UNIX_NS + second * SECOND
    return of_other_nodes(ranks)


def of_copies(second: int) -> list[Rank]:
    begun = [[BARRIER], []]
    return copied(job(begun, [inside("MPI_Barrier", 10), outside("MPI_Send", 3)]), 30, second)


ALL_3, ALL_4 = (
    f"All {count} ranks ended without MPI_Finalize: killed, or left by _exit or exec."
    for count in (3, 4)
)
ANYWHERE = "in MPI_Recv (4 B from any rank, tag 7) on MPI_COMM_WORLD"
IF_IT_HUNG = "If the job hung before that: "
VERDICTS = {  # what is planted, how each line begins that is said of it, and options
    "a mismatch at the oldest on record may not be the first": (
        lambda: job(
            [[ALLREDUCE] * 20, [BARRIER] * 20], [inside("MPI_Allreduce"), inside("MPI_Barrier")]
        ),
        ["Collective 6 on MPI_COMM_WORLD does not match: .*oldest on record: they may have diff"],
    ),
    "a rank that receives from itself is a circle of one": (
        lambda: messages(recv(0)),
        ["A circle: 0 waits for 0."],
    ),
    "a circle may go through a collective and a message": (
        lambda: job([[BARRIER], []], [inside("MPI_Barrier"), recv(0)]),
        ["A circle: 0 waits for 1, 1 waits for 0."],
    ),
    "a message from anywhere blames nobody": (
        lambda: messages(recv(ANY_SOURCE, tag=7), recv(0)),
        [
            f"Rank 1 waits for rank 0, which is {ANYWHERE}, which may come from anywhere, for "
            "50.0 s."
        ],
    ),
    "nor where nobody waits for its receiver": (
        lambda: messages(recv(ANY_SOURCE, tag=7), outside("MPI_Send")),
        [f"Rank 0: {ANYWHERE}, for 50.0 s; no rank in particular is waited for."],
    ),
    "a rank that was quiet long before all were killed is named": (
        lambda: killed(step_of_four(30)),
        [
            "Ranks 0-1,3 wait, directly or not, for rank 2, which was outside MPI after "
            "MPI_Allreduce, and began or ended its last call 20.0 s before the last one of the jo",
            ALL_4,
        ],
    ),
    "that long is what a user says": (
        lambda: killed(step_of_four(30)),
        [f"{ALL_4} Nothing shows that", IF_IT_HUNG],
        *("--after", "25"),
    ),
    "ranks that went quiet before the others are named": (
        lambda: killed(messages(*sending(10, 12, 30))),
        [f"{ALL_3} Ranks 0-1 went quiet 18.0 s or more before the others: ended first, or hung."],
    ),
    "a wait that lasted while others went on is sure after all were killed": (
        lambda: killed(job([[BARRIER], [], []], [inside("MPI_Barrier"), *sending(30, 30)])),
        ["Rank 0 waits for ranks 1-2, each of which was outside MPI after MPI_Send.", ALL_3],
    ),
    "messages on their way when all were killed are no circle for sure": (
        lambda: killed(messages(recv(1), recv(0))),
        ["All 2 ranks ended", f"{IF_IT_HUNG}a circle, 0 waits for 1, 1 waits for 0."],
    ),
    "unless others went on": (
        lambda: killed(messages(recv(1), recv(0), *sending(30))),
        ["A circle: 0 waits for 1, 1 waits for 0.", ALL_3],
    ),
    "collectives that do not match are named whenever the job was killed": (
        lambda: killed(
            job(
                [[ALLREDUCE, BARRIER], [ALLREDUCE, ALLREDUCE]],
                [inside("MPI_Barrier"), inside("MPI_Allreduce")],
            )
        ),
        ["Collective 2 on MPI_COMM_WORLD does not match: ", "All 2 ranks ended"],
    ),
    "ranks that may have been killed are treated likewise": (
        lambda: of_other_nodes(step_of_four())[:3],
        [
            "None of the 3 ranks that left a file came to an end; whether they still run cannot be "
            "seen from here. Nothing shows that one ended first or hung: their last calls began or "
            "ended within 2.00 ms.",
            f"{IF_IT_HUNG}ranks 0-1 wait, directly or not, for rank 2, which was outside MPI after "
            "MPI_Allreduce.",
            f"{IF_IT_HUNG}ranks 0-1 wait, directly or not, for rank 3, which left no file.",
        ],
    ),
    "one killed rank is named while the others wait": (
        one_killed,
        [
            "Ranks 0-1,3 wait, directly or not, for rank 2, which was killed or left by _exit or "
            "exec, outside MPI after MPI_Allreduce, for"
        ],
    ),
    "a copy that is older than the wait says nothing about it": (
        lambda: of_copies(9),
        ["Rank 0: in MPI_Barrier on MPI_COMM_WORLD, collective 1, for 20.0 s or more"],
    ),
    "a newer one does": (
        lambda: of_copies(11),
        ["Rank 0 waits for rank 1, which is or was outside MPI after MPI_Send"],
    ),
    "unless that is not long": (lambda: of_copies(11), ["Nothing is stuck"], "--after", "21"),
}


@pytest.mark.parametrize("name", VERDICTS)
def test_who_is_stuck_and_on_whom_is_said(stuck, name):
    make, begins, *options = VERDICTS[name]
    found = verdict(stuck(make(), *options))
    assert len(found) == len(begins), found
    for line, begin in zip(found, begins):
        assert re.match(".*".join(map(re.escape, begin.split(".*"))), line), line


def test_a_healthy_job_that_was_killed_as_a_whole_blames_nobody(stuck):
    answer = stuck(killed(step_of_four()))
    assert verdict(answer) == [
        f"{ALL_4} Nothing shows that one ended first or hung: their last calls began or ended "
        "within 2.00 ms.",
        "If the job hung before that: ranks 0-1,3 wait, directly or not, for rank 2, which was "
        "outside MPI after MPI_Allreduce.",
    ]
    places = "  ranks 0-1,3: in MPI_Allreduce on MPI_COMM_WORLD\n  rank 2: outside MPI after "
    assert answer.out.split("\n\n")[1] == f"Where they were\n{places}MPI_Allreduce"
    rows = stuck(killed(step_of_four()), "--json")
    said = [of(row, "what is_sure") for row in of_kind(rows, "verdict")]
    assert said == [("killed", 1), ("awaited", 0)]
    assert [row["is_sure"] for row in of_kind(rows, "awaited")] == [0]


def test_the_time_of_change_of_a_ledger_is_no_sign_of_life(report, tmp_path):
    """Whoever copies a run folder changes it."""
    folder = planted.write_ledgers(tmp_path / "run", killed(step_of_four()))
    for own, ledger in enumerate(sorted(folder.iterdir())):
        os.utime(ledger, (START_UNIX_NS // SECOND + 100 * own,) * 2)
    assert verdict(report("stuck", folder))[0].startswith(f"{ALL_4} Nothing shows that")


def work(monkeypatch, folder, ranks: list[Rank]) -> int:
    """Calls of functions of the analysis, and nodes and edges of the graph of waits."""
    counted, make = [0], analysis._graph

    def graph_counted(*arguments: object) -> dict:
        graph = make(*arguments)
        counted[0] += sum(1 + len(str(node)) + len(ahead) for node, ahead in graph.items())
        return graph

    def count(frame, event: str, _: object) -> None:
        counted[0] += event == "call" and frame.f_code.co_filename == analysis.__file__

    run = run_open(planted.write_ledgers(folder, ranks), with_histograms=False)
    select(run, argparse.Namespace(**dict.fromkeys(FILTERS)))
    with monkeypatch.context() as patched:
        patched.setattr(analysis, "_graph", graph_counted)
        sys.setprofile(count)
        found = analysis.stuck(run, 5 * SECOND)
        sys.setprofile(None)
    assert len(found.waits) * 2 == len(ranks) and found.awaited
    return counted[0]


def half_inside(
    call: str, count: int, root: int | None = None, is_copied: bool = False
) -> list[Rank]:
    begun = [[]] * count + [[Collective(call, 8, root)]] * count
    ranks = job(begun, [outside("MPI_Send")] * count + [inside(call)] * count)
    for rank in ranks if is_copied else []:
        rank.copied_unix_ns = START_UNIX_NS + 30 * SECOND
    return ranks


@pytest.mark.slow
@pytest.mark.parametrize(
    "call, more",
    [
        *(("MPI_Barrier", ()), ("MPI_Bcast", (0,)), ("MPI_Reduce", (0,)), ("MPI_Scan", ())),
        ("MPI_Allreduce", (None, True)),
    ],
)
def test_twice_as_many_ranks_are_twice_the_work(monkeypatch, tmp_path, call, more):
    few, many = (
        work(monkeypatch, tmp_path / str(count), half_inside(call, count, *more))
        for count in (60, 120)
    )
    assert many < 2.2 * few


def test_a_run_that_came_to_its_end_was_not_stuck(report, run_folder):
    assert report("stuck", run_folder).out == "Nothing was stuck: all ranks reached MPI_Finalize.\n"


def test_what_no_figure_can_know_of_calls_that_have_not_returned_is_said(report, stuck, tmp_path):
    """A deadlock from the start: nothing was finished. Its twins have finished nothing either, and
    are in no call, or only just."""
    twins = [outside("MPI_Recv"), outside("MPI_Recv")], [recv(1, NOW_S - 0.1), recv(0, NOW_S - 0.1)]
    for doing, is_unfinished in ([recv(1), recv(0)], True), *((twin, False) for twin in twins):
        stuck(messages(*doing))
        said = {c: report(c, tmp_path / "run").prose for c in ("late", "summary", "advise")}
        nothing = "No finished call makes ranks wait for each other."
        not_returned = "ranks 0-1 have not returned from their last call"
        assert (f"Unfinished {not_returned}" in said["late"]) == is_unfinished
        assert said["summary"].startswith(nothing) == is_unfinished
        assert (f"({not_returned})" in said["advise"]) == is_unfinished
        assert "No advice" in said["advise"]


@pytest.mark.parametrize("is_killed", [True, False])
def test_since_when_nothing_has_moved_is_said(stuck, is_killed):
    """In a killed job by the last readings of its CPU time, which also make a wait sure."""
    ranks = step_of_four()
    for rank in ranks:
        rank.cpu_times = [CpuTime(136 * SECOND, SECOND)] if is_killed else []
    answer = stuck(killed(ranks) if is_killed else ranks)
    assert "Nothing has moved since " in answer.prose and "Nothing shows" not in answer.prose
    assert verdict(answer)[0].startswith("Ranks 0-1,3 wait, directly or not, for rank 2, which ")
    (still,) = of_kind(stuck(ranks, "--json"), "still")
    assert still["since_unix_ns"] == START_UNIX_NS + 10 * SECOND
    assert (still["lasted_ns"] == 126 * SECOND) == is_killed


@pytest.mark.parametrize(
    "since_s, behind, said",
    [
        ((20, None, 30), [1], "ranks 0,2 have waited 40.0 s for 28 tensors that rank 1 has not "),
        ((20, 30, 30), [], "ranks 0-2 have waited 40.0 s for 28 tensors that others have not "),
        ((57, None, None), None, "Nothing is stuck"),
    ],
    ids=["one is behind", "each lacks others", "a healthy step"],
)
def test_a_rank_that_negotiates_without_handing_over_is_named(
    report, tmp_path, since_s, behind, said
):
    ranks = job([[ALLREDUCE]] * 3, [outside("MPI_Allreduce", 59.99)] * 3)
    for rank, since in zip(ranks, since_s):
        rank.cells = [planted.Cell("MPI_Allreduce", bytes=8, thread=1, durations=[2_000])]
        ahead = {"last": (28, 0), "ahead_since_ns": since * SECOND} if since else {}
        rank.negotiations = [planted.Negotiation(90, last_ns=59 * SECOND, **ahead)]
    folder = planted.write_ledgers(tmp_path / "run", ranks)
    assert said in report("stuck", folder).out
    found = [row for row in report("stuck", folder, "--json").rows if row["kind"] == "unhanded"]
    assert [row["behind"] for row in found] == ([] if behind is None else [behind])
    assert "behind now: " in report("top", folder, "--count", "1").out
    metrics = report("export", "--format", "prometheus", folder).out
    assert metrics.count("commprof_negotiation_rounds_total{") == 3
