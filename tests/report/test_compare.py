"""Comparisons of planted runs: differences of known size, none, and everything that makes runs no
experiment."""

from __future__ import annotations

import csv
import json
import math
import random
import re
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from cases import Columns, No, Row, check, of
from commprof_report.compare import comparison
from commprof_report.compare.comparison import compare
from commprof_report.compare.figures import Figures, Group, figures, renamed
from commprof_report.compare.judge import NOTHING, Rules
from commprof_report.compare.sides import Side
from commprof_report.experiment.plan import folder_of
from commprof_report.experiment_main import arm
from compared_runs import (
    BLOCKS,
    LARGE,
    MS,
    SKEW_NS,
    SMALL,
    TINY,
    TRANSFERS,
    US,
    changed,
    execute,
    experiment,
    fact,
    measured,
    on_a,
    planted,
    remove_rank,
    sides,
    waited,
    words,
)
from planted import SECOND
from planted_job import HostClock, Job

pytestmark = pytest.mark.usefixtures("figures_once")

NO_SAMPLE = "DELETE FROM sample"
WHOLE_NS = sum(TRANSFERS.values())
LARGE_SHARE = 0.3 * TRANSFERS[LARGE] / WHOLE_NS


@pytest.fixture
def compared(report):
    """compared(runs, *options): what `compare` answers of these runs of a and b."""
    return lambda runs, *options: report("compare", *words(runs), *options)


@pytest.fixture
def verdict(compared):
    return lambda runs, *options: compared(runs, "--by", "verdict", "--json", *options).rows[0]


# Figures


def test_figures_of_a_run_are_those_planted_and_those_of_late(tmp_path, report):
    run = planted(tmp_path / "run.db", 0, {})
    found, notes = figures(run)
    assert (notes, found.wall_ns) == ([], 10 * SECOND)
    assert (found.wait_ns, found.transfer_ns) == (12 * 2 * SKEW_NS / 2, 12 * WHOLE_NS)
    late = report("late", run, "--by", "run", "--json").rows[0]
    assert (late["wait_ns"] / 2, late["transfer_ns"] / 2) == (found.wait_ns, found.transfer_ns)
    rows = {key.bytes: row for key, row in found.rows.items()}
    assert {size: row.value("transfer") for size, row in rows.items()} == pytest.approx(TRANSFERS)
    times = {LARGE: 2150 * US, SMALL: 350 * US, TINY: US}
    assert {size: row.value("time") for size, row in rows.items()} == times
    assert {row.count for row in rows.values()} == {24}
    sizes = {row["bytes"]: row for row in report("sizes", run, "--json").rows}
    for size, row in rows.items():
        for name in ("p50", "p99"):
            known = sizes[size][f"{name}_ns"]
            assert known is None or row.value(name) == pytest.approx(known)


def messages(path: Path, set_up_ns: int = 0, starts_ns: int = 0) -> Figures:
    """Rank 1 waits 2 ms for each message of rank 0, of which it needs 1 ms itself and its sender
    100 us. starts_ns: so much of that is in the call that starts the send. Before the first one a
    communicator is created, and a Barrier waits for rank 1."""
    job = Job([HostClock(77)] * 2)
    for rank in range(2 if set_up_ns else 0):
        job.call("MPI_Comm_dup", MS, MS + set_up_ns, rank)
    if set_up_ns:
        arrivals = [4 * MS, 4 * MS + set_up_ns]
        job.collective("MPI_Barrier", arrivals, [set_up_ns] * 2, message_bytes=0)
    for number in range(1, 21):
        at = 50 * number * MS
        job.receive(1, 0, at, at + 4 * MS, call="MPI_Irecv")
        job.call("MPI_Waitall", at + MS, at + 4 * MS, 1)
        job.send(0, 1, at + 3 * MS, at + 4 * MS, call="MPI_Isend")
        job.rows["sample"][-1]["end_ns"] += starts_ns
        job.made[-1]["duration_ns"] += starts_ns
        job.call("MPI_Wait", at + 3900 * US + starts_ns, at + 4 * MS, 0)
        if number % 5 == 0:
            job.collective("MPI_Barrier", [at + 9 * MS] * 2, [MS] * 2, message_bytes=0)
    return figures(job.write(path))[0]


def test_set_up_is_no_part_of_figures_and_rows_and_a_later_barrier_is(tmp_path):
    plain, other = messages(tmp_path / "a.db"), messages(tmp_path / "b.db", 2 * MS)
    for name in ("wait_ns", "transfer_ns", "time_ns", "coverage"):
        assert getattr(plain, name) == getattr(other, name), name
    assert plain.coverage == 1
    calls = {key.call: row for key, row in other.rows.items()}
    assert calls.keys() == {f"MPI_{name}" for name in "Irecv Isend Wait Waitall Barrier".split()}
    barriers = calls["MPI_Barrier"]
    assert (barriers.count, barriers.total_ns, sum(barriers.buckets.values())) == (8, 8 * MS, 8)


def test_the_same_communicator_created_in_another_way_is_recognized():
    world = Group("mpi", ("MPI_COMM_WORLD",), 4, "0-3", 0)
    split, dup = (
        Group("mpi", (made, 0, world), 4, "0-3", 0) for made in ("MPI_Comm_split", "MPI_Comm_dup")
    )
    half = Group("mpi", ("MPI_Comm_split", 0, world), 2, "0-1", 0)
    assert renamed([world, dup, half], [world, split, half]) == {dup: split}
    assert renamed([world, half], [world, split]) == {}


def test_a_row_that_may_differ_by_chance_among_all_rows_says_so():
    """Its interval is of a test of its own."""
    row = NOTHING._replace(
        outcome="unknown", low=-0.97, high=-0.67, detectable=5.2, adjusted_p=0.0638
    )
    assert comparison.remark(row, 0.02) == "may be chance among the rows (p 0.064)"
    assert comparison.remark(row._replace(high=0.1), 0.02) == "x6.2 would have been found"


# Sentences about two sides


@dataclass
class Made:
    """Two sides without a difference; two, of which b has 30 % more transfer; a folder for more."""

    equal: list[Path]
    slower: list[Path]
    folder: Path

    def sides(self, factors: dict[int, float] | None = None, **how: object) -> list[Path]:
        return sides(self.folder / "runs", factors or {}, **how)

    def both(self, statement: str) -> list[Path]:
        return on_a(changed(self.slower, statement), statement)


@pytest.fixture
def made(equal, slower, tmp_path):
    return Made(equal, slower, tmp_path)


def is_(verdict: str, *words: str, **more: object) -> tuple:
    return (f"compare --by verdict {' '.join(words)}", Row({"side": "b"}, verdict=verdict, **more))


def refused(kind: str, *words: str) -> tuple:
    return (f"compare --by verdict {' '.join(words)}", Row({"side": "b"}, refused=kind))


def said(*words: str) -> tuple:
    return ("compare", *words)


def flushes(total_ms: int) -> str:
    """Ten calls of each rank whose waiting is not known; the others take 30 ms in all."""
    cell = (
        "900 + world_rank, world_rank, 0, 'MPI_Win_flush_all', 0, 0, 'call', 'host', 0, 0, 10, "
        f"0, {total_ms * MS}, 100, {total_ms * MS}, 0"
    )
    call = "'MPI_Win_flush_all', 'rma', 'mpi', 'blocking', 'silent', 'nobody'"
    return f"INSERT INTO call SELECT {call}; INSERT INTO cell SELECT {cell} FROM rank;"


POLLS = (
    "INSERT INTO call SELECT 'MPI_Test', 'completion', 'mpi', 'blocking', 'silent', 'nobody'; "
    "INSERT INTO cell SELECT 900 + world_rank, world_rank, 0, 'MPI_Test', 0, 0, 'poll', 'host', "
    "0, 0, 10, 0, 1000, 100, 100, 0 FROM rank"
)
BOUND = fact("last.affinity", "0", 0) + fact("last.affinity", "1", 1)
ON_HOSTS = "".join(fact("host", f"node{rank}", rank) for rank in (0, 1))
# of the job, not of the settings
BY_LAUNCHER = {
    "PMIX_RANK": "0",
    "OMPI_COMM_WORLD_RANK": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "core",
    "OMPI_MCA_mpi_oversubscribe": "0",
    "PSM2_DEVICES": "self,shm",
    "OMPI_MCA_PREFIXES": "mca,opal,ompi",
    "OMPI_VERSION": "5.0.11",
    "I_MPI_ROOT": "/opt/impi",
}
SETTINGS = (
    fact("env.UCX_TLS", "tcp")
    + fact("host", "other")
    + "".join(fact(f"env.{name}", value) for name, value in BY_LAUNCHER.items())
)
CVARS = fact("cvar.btl_sm_eager_limit", "8192") + fact("cvar.coll_tuned_priority", "30")
OTHER_CVARS = fact("cvar.btl_sm_eager_limit", "4096") + fact("cvar.coll_tuned_priority", "30")
KILLED = "UPDATE rank SET ended = 'running', wall_ns = NULL, end_unix_ns = NULL"
DROPPED = "UPDATE rank SET dropped_calls = 3 WHERE world_rank = 1"
VERSION = "Open MPI v{}, package: Debian {}"
SAME_WORK = "Same work yes: {} rows with the same calls and bytes, on 2 ranks"
BUSY = (
    "disturbed: other work on the cores of the ranks differs between the sides: a rank waited for "
    "a core 0.40 % of the time in a, 4.0 % in b (medians of the runs)."
)
UNKNOWN_SHARE = (
    "waiting and transfer are known for {} of the time inside MPI, in the run with least"
)
REASONS = {  # why there is no verdict: planted in b, what is said of it
    "other ranks recorded": (
        "filter",
        fact("settings.COMMPROF_RANKS", "0-1"),
        "recorded ranks differ: COMMPROF_RANKS not set in a; COMMPROF_RANKS 0-1 in b",
    ),
    "other calls recorded": (
        "filter",
        fact("settings.COMMPROF_EXCLUDE", "MPI_Bcast"),
        "COMMPROF_EXCLUDE MPI_Bcast in b",
    ),
    "other bytes": (
        "work",
        "UPDATE cell SET volume_bytes = 100 * count WHERE bytes = 65536",
        "64 KiB on MPI_COMM_WORLD: 0 -> ",
    ),
    "other ranks call": (
        "work",
        "UPDATE cell SET count = count + 2 - 4 * world_rank, total_ns = total_ns",
        "other ranks make the calls",
    ),
    "killed": ("partial", KILLED, "rank"),
    "dropped": ("partial", DROPPED, "3 calls not recorded"),
    "interrupted": (
        "partial",
        "UPDATE rank SET interrupted_calls = 2 WHERE world_rank = 0",
        "2 calls not recorded",
    ),
    "counted in part": (
        "partial",
        "UPDATE rank SET counted_ns = wall_ns / 2",
        "between 50.0 % and 100.0 % of the wall time was counted",
    ),
    "crowded": (
        "disturbed",
        fact("last.affinity", "0"),
        "other work had cores of the ranks in 8 of 8 blocks, most in",
    ),
    "other nodes": (
        "hosts",
        fact("host", "node07"),
        "a ran on node00, b on node07: a difference of the nodes would look the same",
    ),
    "one side after the other": (
        "order",
        f"UPDATE rank SET start_unix_ns = start_unix_ns + {3600 * SECOND}",
        "",
    ),
}
JUDGED = {
    **{
        f"refused: {name}": (
            lambda made, statement=statement: changed(made.slower, statement),
            is_("refused", refused=kind),
            said(f"Refused {kind}: ", why, f"--allow {kind}", No("Because")),
            is_("more", "--allow", kind, refused="", allowed=kind),
        )
        for name, (kind, statement, why) in REASONS.items()
    },
    "small rows are added up per rank with the metric that they have": (
        # rank 1 has its calls of 8 bytes as 16 bytes, whose transfer is not known
        lambda made: made.both(f"UPDATE cell SET bytes = 16 WHERE bytes = {TINY} AND world_rank"),
        (
            "compare --by row",
            Row({"call": "other"}, rows=2, count=24, metric="mixed")
            | {"first_ns": pytest.approx(24 * US / 2, rel=0.02)},
        ),
        said("other (2 rows), per rank"),
    ),
    "other figures can be judged": (
        lambda made: made.slower,
        is_(
            "more",
            "--metric time",
            change=pytest.approx(0.3 * TRANSFERS[LARGE] / (WHOLE_NS + SKEW_NS), abs=0.03),
        ),
        is_("same", "--metric wall"),
        ("compare --by verdict --metric p50", {"metric": "p50"}),
        ("compare --by size", Row({"bytes": LARGE}, best="a")),
        ("compare", No("For a verdict: ")),
    ),
    "nothing found is said with what would have been found": (
        lambda made: made.sides(noise=0.2),
        said("Verdict no difference found: transfer ", " would have been found with a probability"),
    ),
    "too few pairs are told how many more": (
        lambda made: made.slower[:6],
        said("For a verdict: 3 more runs of each side, in turns "),
    ),
    **{
        f"too few runs that are not paired are told how many the level {level} needs": (
            lambda made, needed=needed: made.slower[: 2 * needed - 2],
            (
                f"compare --unpaired --level {level}",
                f"{needed - 1} + {needed - 1} runs are too few; {needed} + {needed} are needed ",
            ),
        )
        for level, needed in (("95%", 4), ("97.5%", 5), ("99.9%", 7))
    },
    "a refused comparison of too few runs says both": (
        lambda made: changed(made.slower[:6], KILLED),
        said(
            "Verdict none: not the same experiment (partial)",
            "; too few runs, too: 3 pairs, and 6 are needed at least",
        ),
    ),
    "runs of equal sides are in blocks, unless they are not wanted so": (
        lambda made: made.equal,
        is_("same", pairs=BLOCKS),
        is_("same", "--unpaired", pairs=None),
        ("compare --unpaired", "Blocks none: --unpaired; all runs of one side are compared with "),
        *[(f"compare --by verdict --level {level:%}", {"level": level}) for level in (0.5, 0.999)],
    ),
    "runs that do not alternate are not paired": (
        lambda made: made.equal[:-1],
        is_("same", pairs=None),
        said("Blocks none: the sides do not alternate; "),
    ),
    "waiting and transfer are known for nearly all of the time": (
        lambda made: made.both(flushes(1)),
        ("compare --metric transfer", No("waiting and transfer are known for")),
    ),
    "how much of the time they are known of is said": (
        lambda made: made.both(flushes(10)),
        ("compare --metric transfer", f"{UNKNOWN_SHARE.format('74.8 %')}; --metric time has all "),
        ("compare --metric time", f"{UNKNOWN_SHARE.format('74.8 %')} Compared"),
    ),
    "waiting and transfer of runs without samples are unknown, not none": (
        lambda made: changed(made.slower, "DELETE FROM sample; DELETE FROM sample_window"),
        (
            "compare --by figure",
            Row({"figure": "wait"}, second_ns=None),
            Row({"figure": "transfer"}, outcome="none"),
        ),
    ),
    "other work on one side alone is refused": (
        lambda made: on_a(changed(made.slower, waited(0.04)), waited(0.004)),
        refused("disturbed"),
        said(BUSY),
    ),
    "other work on both sides is not": (
        lambda made: on_a(changed(made.slower, waited(0.04)), waited(0.03)),
        refused(""),
        said(No("other work")),
    ),
    "bound ranks are not refused": (lambda made: changed(made.slower, BOUND), refused("")),
    "rows of polls are no part of the work": (
        lambda made: made.both(POLLS),
        refused(""),
        said(SAME_WORK.format(3)),
    ),
    "other nodes are not refused where they are many": (
        lambda made: [
            run
            for place, run in enumerate(changed(made.slower, ""))
            if execute(run, fact("host", f"{run.name[0]}{place % 3}")) is None
        ],
        refused(""),
    ),
    "another placement is refused": (
        lambda made: made.sides(hosts=2),
        ("compare --by verdict", Row({}, refused=lambda kinds: "placement" in kinds)),
        said("2 ranks on 1 host in a; 2 ranks on 2 hosts (0; 1) in b"),
    ),
    "another binding is refused": (
        lambda made: on_a(changed(made.slower, BOUND), fact("last.affinity", "0-1")),
        refused("binding"),
        said("numbers of cores that a rank may use differ: 2 (of 2 in use) in a; 1 (of 2 in use) "),
    ),
    "another program is refused": (
        lambda made: made.sides(command="lib/app 2"),
        refused("program"),
    ),
    "another build of it is not": (
        lambda made: made.sides(command="/opt/mpich/app.mpich 1"),
        refused(""),
    ),
    "steps that settle within the runs are noted": (
        lambda made: made.sides(calls=60, slow_steps=30),
        said(
            "Note b: steps became faster within 8 of 8 runs, 90.0 ms in the first tenth, 60.0 ms "
            "in the last (a start-up, or a library that tunes itself)"
        ),
    ),
    "steady steps are not": (lambda made: made.sides(calls=40), said(No("Note"))),
    # transfers of b take three times as long for 20 of 60 steps, and 30 % less from then on
    "a library that tunes itself is judged by the steps after it": (
        lambda made: made.sides(
            dict.fromkeys(TRANSFERS, 0.7), calls=60, slow_steps=20, slow_factor=3.0 / 0.7
        ),
        is_("more"),
        said("all steps count, unless --skip-steps leaves out the first"),
        is_("less", "--skip-steps 34%", skipped=0.34, change=pytest.approx(-0.3, abs=0.02)),
        (
            "compare --skip-steps 34%",
            "b takes less transfer: transfer -",
            " per rank; less in 8 of 8 blocks",
            "Note the first 34.0 % of the steps of each run are left out; calls and sizes are not ",
            SAME_WORK.format(3),
            No("Inside MPI"),
            No("became faster"),
        ),
        ("compare --skip-steps 10%", "these are the steps after those left out"),
    ),
    "settings that differ are listed and those of the job are not": (
        lambda made: changed(made.slower, SETTINGS),
        is_("refused", also_different="UCX_TLS (not set; b: tcp); hosts (node00; b: other)"),
    ),
    "control variables are not compared where one side has none": (
        lambda made: changed(made.slower, CVARS + fact("env.OMPI_MCA_btl_sm_eager_limit", "8192")),
        is_("more", also_different="OMPI_MCA_btl_sm_eager_limit (not set; b: 8192)"),
    ),
    "they are where both have": (
        lambda made: on_a(changed(made.slower, CVARS), OTHER_CVARS),
        is_("more", also_different="btl_sm_eager_limit (4096; b: 8192)"),
    ),
    "libraries are named by their versions": (
        lambda made: on_a(
            changed(made.slower, fact("mpi_version", VERSION.format("4.1.6", "b"))),
            fact("mpi_version", VERSION.format("4.1.4", "a")),
        ),
        is_("more", also_different="mpi_version (Open MPI 4.1.4; b: Open MPI 4.1.6)"),
    ),
    "and in full where these are equal": (
        lambda made: on_a(
            changed(made.slower, fact("mpi_version", VERSION.format("4.1.6", "b"))),
            fact("mpi_version", VERSION.format("4.1.6", "a")),
        ),
        is_(
            "more",
            also_different="mpi_version (Open MPI v4.1.6, package: Debian a; b: Open MPI v4.1.6, "
            "package: Debian b)",
        ),
    ),
    "no side is the best of runs that are no experiment": (
        lambda made: changed(made.slower, DROPPED),
        (
            "compare --by size",
            "no side is marked: not the same experiment (partial)",
            Columns(best=[None] * 3),
        ),
        ("compare --by size --allow partial", Row({"bytes": LARGE}, best="a")),
    ),
    # large Allreduces are 30 % slower, so transfer is 27 % slower, and copies on one of two hosts
    "a machine that was other for one side is a reason against a verdict": (
        lambda made: measured(
            made.slower,
            lambda run, host, name: (
                1.4 if (run[0], host, name) == ("b", "node01", "memory_ns") else 1
            ),
            ("node00", "node01"),
        ),
        is_("refused", refused="machine"),
        said(
            "Refused machine: copies in memory took ",
            "% more time before the runs of b than before those of a: as much as the sides differ ",
            No("arithmetic"),
        ),
        is_("more", "--allow machine"),
        ("compare --by run", "host: copies in memory"),
    ),
    "a machine that differed by less than the sides is noted": (
        lambda made: measured(
            made.slower,
            lambda run, host, name: 0.95 if (run[0], name) == ("b", "arithmetic_ns") else 1,
        ),
        is_("more"),
        said(
            "Note the machine was not the same: arithmetic took ",
            " % less time before the runs of b than before those of a; ",
        ),
    ),
    "a steady machine is not noted": (
        lambda made: measured(made.slower, lambda *_: 1),
        is_("more"),
        said(No("Note"), No("Refused")),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", JUDGED)
def test_two_sides_are_judged_by_what_was_planted(report, made, tmp_path, name):
    make, *checks = JUDGED[name]
    check(report, tmp_path, make(made), *checks)


def test_a_planted_difference_is_found_where_it_is(report, tmp_path, slower):
    check(
        report,
        tmp_path,
        slower,
        is_("more", metric="transfer", pairs=BLOCKS, refused="", also_different="")
        + ({"change": pytest.approx(LARGE_SHARE, abs=0.03), "low": lambda low: low < LARGE_SHARE},),
        (
            "compare --by row",
            Row({"bytes": LARGE}, is_confirmed=1, outcome="more")
            | {"change": pytest.approx(0.3, abs=0.03), "part_of_change": pytest.approx(1, abs=0.1)},
            Row({"bytes": SMALL}, outcome=lambda outcome: outcome in ("same", "unknown")),
            Row({"bytes": TINY}, call="MPI_Allreduce", rows=1),  # one small row has its own name
        ),
        said(
            "Verdict b takes more transfer: transfer +",
            f"more in {BLOCKS} of {BLOCKS} blocks",
            "Because MPI_Allreduce 4 MiB on MPI_COMM_WORLD: transfer +3",
            SAME_WORK.format(3),
            *map(No, ("Refused", "Note", "Also different")),
        ),
    )


def test_equal_sides_are_the_same_and_nothing_is_named(report, tmp_path, equal):
    check(
        report,
        tmp_path,
        equal,
        is_("same"),
        is_("unknown", "--min-effect 0.1%"),
        said("Verdict same within 2.0 %: transfer ", No("Because"), No("exploratory")),
    )


@pytest.mark.slow
def test_the_exit_status_is_the_answer_for_ci(slower, equal, compared, tmp_path):
    """0: not slower, 1: slower by so much, 3: neither is known, also if nothing can be read."""
    gate = "--fail-if", "slower:3%"
    found = compared(slower, "--json", *gate)
    assert found.status == 1 and found.rows and "slower: b v. a: " in found.err
    few = compared(slower[:4], *gate)
    assert few.status == 3 and "no answer: b v. a: none: 2 pairs" in few.err
    nothing = [tmp_path / "a-none.db", tmp_path / "b-none.db"]
    for runs, what, status in (
        (slower, "slower:99%", 0),
        (equal, "slower:3%", 0),
        (nothing, "slower:3%", 3),
        (equal, "faster:3%", 2),
    ):
        assert compared(runs, "--fail-if", what).status == status


def test_the_run_is_the_unit_not_the_call(tmp_path, verdict):
    """Five pairs prove nothing, however many calls the runs made and however different they are;
    six do."""
    few = verdict(sides(tmp_path / "five", {LARGE: 5.0}, blocks=5, calls=40))
    assert of(few, "verdict p pairs_needed") == ("too few", None, 6)
    for calls in (3, 30):
        runs = sides(tmp_path / str(calls), {LARGE: 5.0}, blocks=6, calls=calls)
        assert verdict(runs)["p"] == 2 / 2**6


@pytest.mark.slow
def test_a_disturbed_block_is_noted_with_its_size_and_most_are_refused(slower, verdict, compared):
    runs = on_a(changed(slower, waited(0)), waited(0))
    of_b = [run for run in runs if run.name[0] == "b"]
    for number, run in enumerate(of_b):
        execute(run, "DELETE FROM cpu_time;" + waited(0.2))
        answer = verdict(runs)["refused"]
        assert answer == ("disturbed" if number + 1 > BLOCKS / 2 else ""), number
        if number == 0:
            said = (
                f"Note other work had cores of the ranks in 1 of 8 blocks, most in {run}: ranks "
                "waited for a core 10.0 % of the time, one of them 20.0 %; it makes intervals wider"
            )
            assert said in compared(runs).prose


@pytest.mark.slow
def test_another_number_of_steps_is_other_work_and_may_be_compared_per_call(
    tmp_path, verdict, compared
):
    """Twice the steps, of which each takes as long."""
    runs = [
        planted(
            tmp_path / f"{name}-{block}.db",
            60 * (2 * block + place),
            dict.fromkeys(TRANSFERS, 1 + 0.001 * block),
            calls=12 if name == "a" else 24,
        )
        for block in range(BLOCKS)
        for place, name in enumerate("ab")
    ]
    assert verdict(runs)["refused"] == "work; program"  # its command line asks for them
    assert re.search(r": (\d+) -> (\d+) calls in b", compared(runs).prose)
    allow = ("--allow", "work,program")
    found = verdict(runs, *allow)
    assert (found["verdict"], found["change"]) == ("same", pytest.approx(0, abs=1e-3))
    said = "Note calls differ: transfer is compared as if each run made those of a, in 3 rows"
    assert said in compared(runs, *allow).prose


@pytest.mark.slow
def test_rows_whose_calls_vary_from_run_to_run_are_not_called_the_same(tmp_path, compared, verdict):
    """On both sides the 64 KiB are called once more in every other block."""
    runs = sides(tmp_path / "runs", {})
    for run in runs:
        if int(run.stem[2:]) % 2:
            execute(run, f"UPDATE cell SET count = count + 1 WHERE bytes = {SMALL}")
    assert verdict(runs)["refused"] == ""
    varies = "; 1 row differs between runs, between the sides by no more than within them or by "
    assert SAME_WORK.format(2) + varies in compared(runs).prose


@pytest.mark.slow
def test_a_run_without_one_of_its_ranks_is_partial_and_nothing_else(tmp_path, verdict, compared):
    """Neither placed nor bound otherwise: where the missing rank ran is not known."""
    runs = sides(tmp_path / "runs", {})
    for run in runs:
        execute(run, BOUND + ON_HOSTS)
    remove_rank(runs[0], 1)
    assert verdict(runs)["refused"] == "partial"
    assert "Same work not known: a run lacks ranks" in compared(runs).prose


@pytest.mark.slow
@pytest.mark.parametrize("change, is_noted", [(1.03, True), (3.0, False)])
def test_a_difference_smaller_than_the_clocks_can_show_is_noted(
    tmp_path, compared, change, is_noted
):
    """Two hosts, whose clocks are known to 41 us; transfers last 0.7 ms a call."""
    runs = []
    for place in range(2 * BLOCKS):
        side = "abba"[place % 4]
        factor = 1.0001 ** (place % 5) * (change if side == "b" else 1)
        own = dict.fromkeys((LARGE, SMALL), factor)
        runs.append(planted(tmp_path / f"{side}-{place}.db", 60 * place, own, hosts=2))
    text = compared(runs).prose
    assert "b takes more transfer" in text
    assert ("Note the clocks of the hosts are known to " in text) == is_noted, text
    assert (" a call in transfer; --metric time needs no clocks" in text) == is_noted


@pytest.mark.slow
def test_a_library_without_tuning_is_judged_alike_by_all_steps_and_by_the_last(tmp_path, compared):
    runs = sides(tmp_path / "runs", {LARGE: 1.3}, calls=60)
    whole, last = (
        {row["figure"]: row for row in compared(runs, "--by", "figure", "--json", *more).rows}
        for more in ((), ("--skip-steps", "50%"))
    )
    for figure, part in (("step", 1), ("wait", 0.5), ("transfer", 0.5)):
        first, second = whole[figure], last[figure]
        assert second["first_ns"] == pytest.approx(part * first["first_ns"], rel=1e-3), figure
        assert second["outcome"] == first["outcome"], figure
        assert second["change"] == pytest.approx(first["change"], abs=1e-3), figure


def test_a_figure_that_some_runs_lack_is_not_compared(report, tmp_path):
    """The runs without steps may be the slowest ones, so a median of the others says nothing."""
    runs = sides(tmp_path / "runs", {}, calls=60, blocks=4)
    check(report, tmp_path, runs, ("compare --by figure", Row({"figure": "step"}, outcome="none")))
    check(
        report,
        tmp_path,
        [*changed(runs[:3], NO_SAMPLE), *runs[3:]],
        ("compare --by figure", Row({"figure": "step"}, first_ns=None)),
        said("step is not compared: 2 of 4 runs of b have none, and hardly at random"),
    )


@pytest.mark.slow
def test_runs_without_steps_have_none_to_leave_out(slower, compared):
    answer = compared(changed(slower, NO_SAMPLE), "--skip-steps", "33%")
    assert answer.status == 1 and answer.err.count("\n") == 1
    assert "has no known steps of which --skip-steps could leave out the first" in answer.err


def single(first: Figures, second: Figures) -> list[Side]:
    return [Side("a", [first], None, 0), Side("b", [second], None, 0)]


@pytest.fixture
def template(tmp_path) -> Figures:
    return figures(planted(tmp_path / "run.db", 0, {}))[0]


def test_the_programs_of_both_sides_are_named_where_they_differ(template):
    other = template._replace(facts={**template.facts, "command_line": ("lib/app 2",)})
    answers = compare(single(template, other), Rules())
    assert comparison.program_text(answers) == "app 1 12 in a, app 2 in b; 2 ranks on 1 host"
    wider = template._replace(ranks=[row._replace(host=f"{row.rank}") for row in template.ranks])
    answers = compare(single(template, wider), Rules())
    hosts = "2 ranks on 1 host in a, 2 ranks on 2 hosts (0; 1) in b"
    assert comparison.program_text(answers) == f"app 1 12; {hosts}"


def test_runs_with_another_number_of_ranks_are_other_work_whatever_their_rows(template):
    parts = {
        (key._replace(group=key.group._replace(size=4)), traffic): row
        for (key, traffic), row in template.parts.items()
    }
    answers = compare(single(template, template._replace(world_size=4, parts=parts)), Rules())
    (work,) = [refusal.what for refusal in answers.refused if refusal.kind == "work"]
    assert work == "numbers of ranks differ: 2 ranks in a; 4 ranks in b"


@pytest.mark.slow
@pytest.mark.parametrize("trend", [1.03, 1.0])
def test_nothing_is_noted_on_a_machine_that_is_healthy_or_becomes_slower(tmp_path, compared, trend):
    chance = random.Random(4)
    runs = []
    for place in range(16):
        factors = dict.fromkeys(TRANSFERS, trend**place * math.exp(chance.gauss(0, 0.01)))
        runs.append(planted(tmp_path / f"{'ab'[place % 2]}-{place}.db", 60 * place, factors))
    assert "Note" not in compared(runs).out


@pytest.mark.slow
def test_a_measurement_that_is_not_whole_counts_as_none(slower, verdict):
    runs = measured(slower, lambda run, host, name: 1.4 if run[0] == "b" else 1)
    (folder_of(runs[0]) / "node00").write_text('{"arithmetic_ns": 1')
    assert verdict(runs)["refused"] == ""


@pytest.mark.slow
def test_a_column_for_each_side_and_the_best_is_marked_only_if_it_is_one(tmp_path, report):
    chance = random.Random(7)
    runs = {side: [] for side in "abc"}
    for place in range(30):
        side = "abccba"[place % 6]
        large = (0.8 if side == "c" else 1) * math.exp(chance.gauss(0, 0.02))
        own = {LARGE: large, SMALL: math.exp(chance.gauss(0, 0.02))}
        runs[side].append(planted(tmp_path / f"{side}-{place}.db", 60 * place, own))
    named = [*runs["a"], "--", *runs["b"], "--", *runs["c"], "--by"]
    rows = {row["bytes"]: row for row in report("compare", *named, "size", "--json").rows}
    assert rows[LARGE]["sides"] == ["a", "b", "c"]
    assert [rows[size]["best"] for size in (LARGE, SMALL, TINY)] == ["c", None, None]
    assert " ms *" in report("compare", *named, "size").out
    heads, first, *_ = csv.reader(report("compare", *named, "size", "--csv").out.splitlines())
    of_first = dict(zip(heads, first))
    assert heads[-4:] == ["a_ns", "b_ns", "c_ns", "best"] and of_first["bytes"] == str(TINY)
    assert [float(of_first[f"{side}_ns"]) for side in "abc"] == rows[TINY]["values_ns"]
    verdicts = report("compare", *named, "verdict", "--json").rows
    assert [of(row, "side level pairs_needed") for row in verdicts] == [
        ("b", 0.975, 7),
        ("c", 0.975, 7),
    ]
    assert verdicts[1]["verdict"] == "less"


# Experiments


@pytest.mark.slow
def test_an_experiment_is_read_with_its_blocks_and_without_what_failed(tmp_path, report):
    folder = experiment(tmp_path, sides(tmp_path / "runs", {LARGE: 1.3}))
    check(report, tmp_path, folder, is_("more", pairs=BLOCKS, failed_runs=0))
    more = [
        {"block": 3, "arm": "b", "folder": "runs/failed", "status": "failed"},
        {"block": 0, "arm": "a", "folder": "runs/first", "status": "warm-up"},
        {"block": 9, "arm": "a", "folder": "runs/alone", "status": "ok"},
    ]
    lines = "".join(json.dumps(run) + "\n" for run in more)
    with open(folder / "runs.jsonl", "a") as file:
        file.write(lines + '{"block": 9, "arm": "b", "fol')
    failed = said("1 failed run not compared")
    check(report, tmp_path, folder, is_("more", pairs=BLOCKS, failed_runs=1), failed)


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [1, 3])
def test_an_experiment_of_too_few_blocks_is_told_the_command_that_adds_some(
    tmp_path, report, blocks
):
    folder = experiment(tmp_path, sides(tmp_path / "runs", {}, blocks=blocks))
    resume = "For a verdict: commprof-experiment resume EXPERIMENT --blocks 6 "
    check(report, tmp_path, folder, said(resume, No("experiment run")))


def test_an_experiment_among_other_runs_is_said_to_be_one(tmp_path, report):
    folder = experiment(tmp_path, sides(tmp_path / "runs", {}, blocks=1))
    said = (
        f"{folder}: is an experiment, which is compared alone: its arms are the sides; or name "
        f"runs of it, as in {folder}/block-*/ARM"
    )
    for others in ([folder, folder], [folder, "--", tmp_path / "runs/a-0.db"]):
        answer = report("compare", *others)
        assert (answer.status, answer.err) == (2, f"hvprof-report: {said}\n")


def with_control(folder: Path, factor: float) -> Path:
    """Blocks of a, of b, whose large Allreduces take 30 % more, and of a-again, whose take
    `factor`."""
    chance, factors, lines = random.Random(3), {"a": 1.0, "b": 1.3, "a-again": factor}, []
    for place in range(3 * BLOCKS):
        arm = list(factors)[place % 3]
        run = folder / f"{arm}-{place}.db"
        planted(run, 60 * place, {LARGE: factors[arm] * math.exp(chance.gauss(0, 0.01))})
        about = {"block": place // 3 + 1, "arm": arm, "folder": run.name, "status": "ok"}
        lines.append(json.dumps(about) + "\n")
    arms = [
        {"name": name, "command": "mpirun", "of": "a" if name == "a-again" else ""}
        for name in factors
    ]
    plan = {"format": "commprof-experiment", "version": 1, "arms": arms}
    (folder / "experiment.json").write_text(json.dumps(plan))
    (folder / "runs.jsonl").write_text("".join(lines))
    return folder


DIFFERS = "something other than the command differs"


@pytest.mark.slow
@pytest.mark.parametrize(
    "factor, control, words",
    [
        (1.0, "same", ["A/A a-again runs the command of a: same within 2.0 %: ", No(DIFFERS)]),
        (1.3, "more", [f"(p 0.0078): {DIFFERS} by as much"]),
    ],
)
def test_a_control_shows_nothing_unless_something_other_than_the_command_differs(
    tmp_path, report, factor, control, words
):
    """It costs the verdict nothing."""
    folder = with_control(tmp_path, factor)
    is_control = Columns(side=["b", "a-again"], verdict=["more", control], is_control=[0, 1])
    levels = Columns(level=pytest.approx([0.95, 0.95]))
    best = Row({"bytes": LARGE}, sides=["a", "b"], best="a")
    verdicts, sizes = "compare --by verdict", "compare --by size"
    check(report, tmp_path, folder, (verdicts, is_control, levels), said(*words), (sizes, best))


@pytest.mark.slow
def test_an_arm_against_itself_alone_has_its_tables_and_is_refused_like_others(tmp_path, report):
    """The machine took 25 % longer before each run of the second arm."""

    def took(run: str, _host: str, name: str) -> float:
        return 1.0 if run[0] == "a" or name == "memory_ns" else 1.25

    folder = experiment(tmp_path, measured(sides(tmp_path / "runs", {}), took))
    plan = json.loads((folder / "experiment.json").read_text())
    plan["arms"][1] = {"name": "b", "command": "mpirun a", "of": "a"}
    (folder / "experiment.json").write_text(json.dumps(plan))
    tables = ("A/A b runs the command of a ", "Refused machine: arithmetic took ", "Transfer * ")
    check(report, tmp_path, folder, refused("machine"), said(*tables, " MPI_Allreduce "))


@pytest.mark.slow
def test_a_control_of_a_refused_experiment_has_an_estimate_and_no_verdict(tmp_path, report):
    folder = with_control(tmp_path, 1.0)
    for run in folder.glob("*.db"):
        execute(run, fact("last.affinity", "0"))
    neither = "A/A a-again runs the command of a: no verdict either; transfer "
    check(report, tmp_path, folder, said(neither))


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"format": "commprof-experiment", "version": 2, "arms": []}', '{"arms": 7}'],
)
def test_a_damaged_experiment_is_refused_in_one_line(tmp_path, report, text):
    (tmp_path / "experiment.json").write_text(text)
    answer = report("compare", tmp_path)
    assert answer.status == 1 and answer.err.count("\n") == 1, answer.err


# How sides are named


WRONG = (
    "",
    "--",
    "x",
    "x --",
    "a b c",
    "a -- b --level 3%",
    "a b --allow all,x",
    "a b --skip-steps 9% --metric p50",
    "a b --skip-steps 9% --by size",
)


@pytest.mark.parametrize("arguments", WRONG)
def test_wrong_arguments_are_answered_in_one_line(report, arguments):
    answer = report("compare", *arguments.split())
    assert answer.status == 2 and answer.err.count("\n") == 1, answer.err


def test_a_run_of_both_sides_is_an_error_that_names_it_whatever_its_name(equal, compared, tmp_path):
    copy = tmp_path / "c-1.db"
    copy.write_bytes(equal[0].read_bytes())
    for again in (equal[0], copy):
        answer = compared(equal[:4], again)
        said = f"hvprof-report: {again}: is a run of a and of B: name it on one side\n"
        assert (answer.status, answer.err) == (2, said)


def test_a_run_that_is_named_twice_counts_once(equal, report, tmp_path):
    copy = tmp_path / "a-9.db"
    copy.write_bytes(equal[0].read_bytes())
    once, twice = (
        report("compare", *more, *words(equal[:4]), "--by", "verdict", "--json").rows
        for more in ((), (equal[0], copy))
    )
    assert once == twice and once[0]["reference_runs"] == 2


def test_sides_whose_names_no_arm_can_have_get_others_in_the_command(slower, report, tmp_path):
    copies = [tmp_path / f"{name} (1, 2).db" for name in ("old", "new")]
    for copy, run in zip(copies, slower):
        copy.write_bytes(run.read_bytes())
    arms = re.findall("--arm '(.*?)'", report("compare", *copies).prose)
    assert [arm(text).name for text in arms] == ["old-1-2-.db", "new-1-2-.db"]


# Transfer per rank in milliseconds of one job under one library, twice in each of 20 blocks, on a
# busy machine: the scatter of real runs.
RECORDED = [
    [int(ms) for ms in pair.split("/")]
    for pair in (
        "1965/548 4760/443 6295/7150 315/3146 263/346 3866/1044 548/345 318/463 1995/3603 "
        "3474/3060 9191/7450 799/2596 499/3431 3600/6837 6482/1375 5926/511 3212/5026 3307/1722 "
        "5388/8265 9389/7270"
    ).split()
]
EXPERIMENTS = 200


def resampled(chance: random.Random, template: Figures, effect: float) -> list[Side]:
    """Ten blocks in turns; each row of a block has the transfer of a recorded block, its sides
    exchanged at random. The second side takes `effect` more."""
    runs: list[list[Figures]] = [[], []]
    for block in range(10):
        drawn = {key: chance.sample(chance.choice(RECORDED), 2) for key in template.rows}
        for place in range(2):
            scales = {
                key: pair[place] * (1 + effect * place) / 1_000 for key, pair in drawn.items()
            }
            parts = {
                part: replace(row, transfer_ns=row.transfer_ns * scales[part[0]])
                for part, row in template.parts.items()
            }
            made = {"parts": parts, "start_unix_ns": 2 * block + (place + block) % 2}
            made["transfer_ns"] = sum(row.transfer_ns for row in parts.values()) / 2
            runs[place].append(template._replace(**made))
    return [Side(name, own, None, 0) for name, own in zip("ab", runs)]


def found_share(template: Figures, effect: float) -> tuple[float, float]:
    """The shares of the experiments with a difference in the verdict, and with a confirmed row."""
    chance = random.Random(2026)
    verdicts = rows = 0
    for _ in range(EXPERIMENTS):
        (pair,) = compare(resampled(chance, template, effect), Rules()).pairs
        verdicts += pair.verdict.verdict in ("less", "more")
        rows += any(row.is_confirmed for row in pair.rows)
    return verdicts / EXPERIMENTS, rows / EXPERIMENTS


@pytest.mark.slow
def test_experiments_find_a_difference_far_above_the_scatter_and_none_by_chance(template):
    verdicts, rows = found_share(template, 0.0)
    assert 0.02 <= verdicts <= 0.075 and rows <= verdicts
    assert found_share(template, 9.0)[0] > 0.9
