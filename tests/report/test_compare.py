"""Comparisons of planted runs: differences of known size, none, and everything that makes runs no
experiment."""

from __future__ import annotations

import csv
import json
import math
import random
import re
from dataclasses import replace
from pathlib import Path

import pytest
from commprof_report.base import units
from commprof_report.commands.common import facts_text
from commprof_report.compare import sentences
from commprof_report.compare.judge import NOTHING, Rules
from commprof_report.compare.comparison import compare
from commprof_report.compare.figures import Figures, Group, figures, renamed, row_name
from commprof_report.compare.sides import Side, sides_named
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


NO_SAMPLE = "DELETE FROM sample"


@pytest.fixture
def compared(report):
    """compared(runs, *options): what `compare` answers of these runs of a and b."""
    return lambda runs, *options: report("compare", *words(runs), *options)


@pytest.fixture
def ask(compared):
    def asked(runs: list[Path], by: str, *options: object) -> list[dict]:
        answer = compared(runs, "--by", by, "--json", *options)
        assert answer.status == 0, answer.err
        return answer.rows

    return asked


@pytest.fixture
def verdict(ask):
    return lambda runs, *options: ask(runs, "verdict", *options)[0]


def test_figures_of_a_run_are_those_planted_and_those_of_late(tmp_path, report):
    run = planted(tmp_path / "run.db", 0, {})
    found, notes = figures(run)
    assert notes == []
    transfer_ns = 12 * sum(TRANSFERS.values())
    assert (found.wait_ns, found.transfer_ns) == (12 * 2 * SKEW_NS / 2, transfer_ns)
    late = report("late", run, "--by", "run", "--json").rows[0]
    assert (late["wait_ns"] / 2, late["transfer_ns"] / 2) == (found.wait_ns, found.transfer_ns)
    assert {key.bytes: row.value("transfer") for key, row in found.rows.items()} == pytest.approx(
        TRANSFERS
    )
    assert {key.bytes: row.value("time") for key, row in found.rows.items()} == {
        LARGE: 2150 * US,
        SMALL: 350 * US,
        TINY: US,
    }
    assert {row.count for row in found.rows.values()} == {24}
    assert found.wall_ns == 10 * SECOND


def messages(path: Path, set_up_ns: int = 0, rounds: int = 20, starts_ns: int = 0) -> Figures:
    """Rank 1 waits 2 ms for each message of rank 0, of which it needs 1 ms itself and its sender
    100 us. starts_ns: so much of that is in the call that starts the send. Before the first one a
    communicator is created, and a Barrier waits for rank 1."""
    job = Job([HostClock(77)] * 2)
    for rank in range(2 if set_up_ns else 0):
        job.call("MPI_Comm_dup", MS, MS + set_up_ns, rank)
    if set_up_ns:
        arrivals = [4 * MS, 4 * MS + set_up_ns]
        job.collective("MPI_Barrier", arrivals, [set_up_ns] * 2, message_bytes=0)
    for number in range(1, rounds + 1):
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
    (barriers,) = (row for key, row in other.rows.items() if key.call == "MPI_Barrier")
    assert (barriers.count, barriers.total_ns, sum(barriers.buckets.values())) == (8, 8 * MS, 8)
    assert {key.call for key in other.rows} == {
        "MPI_Irecv",
        "MPI_Isend",
        "MPI_Wait",
        "MPI_Waitall",
        "MPI_Barrier",
    }


def test_messages_have_transfer_whichever_call_does_the_work(tmp_path):
    for starts_ns in (0, 90 * US):
        found = messages(tmp_path / f"{starts_ns}.db", starts_ns=starts_ns)
        assert found.wait_ns == 20 * 2 * MS / 2
        assert found.transfer_ns == (20 * (MS + 100 * US + 200) + 4 * 2 * MS) / 2
        of_call = {key.call: row.value("transfer") for key, row in found.rows.items()}
        assert of_call["MPI_Waitall"] == pytest.approx(MS)
        assert of_call["MPI_Isend"] == 100 + starts_ns


def test_percentiles_are_those_of_sizes(slower, report):
    run = figures(slower[0])[0]
    sizes = {
        (row["call"], row["bytes"]): row
        for row in report("sizes", slower[0], "--json").rows
        if row["measure"] == "call"
    }
    for key, row in run.rows.items():
        for name in ("p50", "p99"):
            known = sizes[key.call, key.bytes][f"{name}_ns"]
            assert known is None or row.value(name) == pytest.approx(known)


def test_a_planted_difference_is_found_where_it_is(slower, ask, verdict):
    found = verdict(slower)
    assert (found["verdict"], found["metric"], found["pairs"], found["refused"]) == (
        "more",
        "transfer",
        BLOCKS,
        "",
    )
    whole = sum(TRANSFERS.values())
    expected = 0.3 * TRANSFERS[LARGE] / whole
    assert found["low"] < expected < found["high"]
    assert found["change"] == pytest.approx(expected, abs=0.03)
    rows = {row["bytes"]: row for row in ask(slower, "row")}
    assert rows[LARGE]["is_confirmed"] and rows[LARGE]["outcome"] == "more"
    assert rows[LARGE]["part_of_change"] == pytest.approx(1, abs=0.1)
    assert rows[LARGE]["change"] == pytest.approx(0.3, abs=0.03)
    assert rows[SMALL]["outcome"] in ("same", "unknown")
    assert (rows[TINY]["call"], rows[TINY]["rows"]) == ("MPI_Allreduce", 1), (
        "one small row has its own name"
    )


@pytest.mark.slow
def test_small_rows_are_added_up_per_rank_with_the_metric_that_they_have(slower, ask, compared):
    """Rank 1 has its calls of 8 bytes as 16 bytes, whose transfer is not known."""
    statement = f"UPDATE cell SET bytes = 16 WHERE bytes = {TINY} AND world_rank = 1"
    runs = on_a(changed(slower, statement), statement)
    (other,) = [row for row in ask(runs, "row") if row["call"] == "other"]
    assert (other["rows"], other["count"], other["metric"]) == (2, 24, "mixed")
    assert other["first_ns"] == pytest.approx(24 * US / 2, rel=0.02)
    assert "other (2 rows), per rank" in compared(runs).out


def test_the_text_says_what_was_found_and_why(slower, compared):
    text = compared(slower).out
    assert "Verdict         b takes more transfer: transfer +" in text
    assert f"more in {BLOCKS} of {BLOCKS} blocks" in text
    assert "Because         MPI_Allreduce 4 MiB on MPI_COMM_WORLD: transfer +3" in text
    assert "Same work       yes: 3 rows with the same calls and bytes, on 2 ranks" in text
    assert "Refused" not in text and "Note" not in text and "Also different" not in text


@pytest.mark.slow
def test_other_figures_than_the_one_judged_are_exploratory(slower, compared):
    lines = {line.split("  ")[0]: line.rstrip() for line in compared(slower).out.splitlines()}
    assert lines["Inside MPI"].endswith("exploratory") and not lines["Transfer *"].endswith(
        "exploratory"
    )
    assert lines["Wall time"].endswith("same within 2.0 %")


def test_a_row_that_may_differ_by_chance_among_all_rows_says_so():
    """Its interval is of a test of its own."""
    row = NOTHING._replace(
        outcome="unknown", low=-0.97, high=-0.67, detectable=5.2, adjusted_p=0.0638
    )
    assert sentences.remark(row, 0.02) == "may be chance among the rows (p 0.064)"
    assert sentences.remark(row._replace(high=0.1), 0.02) == "x6.2 would have been found"


def test_no_line_begins_with_the_unit_of_a_number():
    text = "transfer -1.5 % [-23 %, +22 %]; 15.5 ms more per rank, with a probability of 80 %"
    for width in range(40, 120):
        lines = facts_text([("Verdict", text)], width).splitlines()
        assert " ".join(" ".join(lines).split()) == f"Verdict {text}"
        assert not [line for line in lines if line.lstrip().startswith(("%", "ms"))], width


def test_equal_sides_are_the_same_and_nothing_is_named(equal, verdict, compared):
    assert verdict(equal)["verdict"] == "same"
    assert verdict(equal, "--min-effect", "0.1%")["verdict"] == "unknown"
    text = compared(equal).out
    assert "Verdict         same within 2.0 %: transfer " in text
    assert "Because" not in text and "exploratory" not in text


@pytest.mark.slow
def test_nothing_found_is_said_with_what_would_have_been_found(tmp_path, compared):
    text = compared(sides(tmp_path / "runs", {}, noise=0.2)).prose
    assert "Verdict no difference found: transfer " in text
    assert " would have been found with a probability of 80 %" in text


@pytest.mark.slow
def test_other_figures_can_be_judged(slower, verdict):
    assert verdict(slower, "--metric", "time")["verdict"] == "more"
    assert verdict(slower, "--metric", "wall")["verdict"] == "same"
    whole = sum(TRANSFERS.values()) + 2 * SKEW_NS / 2
    assert verdict(slower, "--metric", "time")["change"] == pytest.approx(
        0.3 * TRANSFERS[LARGE] / whole, abs=0.03
    )
    assert verdict(slower, "--metric", "p50")["metric"] == "p50"


@pytest.mark.slow
def test_the_exit_status_is_the_answer_for_ci(slower, equal, compared, tmp_path):
    """0: not slower, 1: slower by so much, 3: neither is known, also if nothing can be read."""
    gate = "--fail-if", "slower:3%"
    found = compared(slower, "--json", *gate)
    assert found.status == 1 and found.rows and "slower: b v. a: " in found.err
    assert compared(slower, "--fail-if", "slower:99%").status == 0
    assert compared(equal, *gate).status == 0
    few = compared(slower[:4], *gate)
    assert few.status == 3 and "no answer: b v. a: none: 2 pairs" in few.err
    assert compared([tmp_path / "a-none.db", tmp_path / "b-none.db"], *gate).status == 3
    assert compared(equal, "--fail-if", "faster:3%").status == 2


def test_the_run_is_the_unit_not_the_call(tmp_path, verdict):
    """Five pairs prove nothing, however many calls the runs made and however different they are;
    six do."""
    few = verdict(sides(tmp_path / "five", {LARGE: 5.0}, blocks=5, calls=40))
    assert (few["verdict"], few["p"], few["pairs_needed"]) == ("too few", None, 6)
    calls = [
        verdict(sides(tmp_path / str(calls), {LARGE: 5.0}, blocks=6, calls=calls))["p"]
        for calls in (3, 30)
    ]
    assert calls == [2 / 2**6] * 2


def test_two_single_runs_have_estimates_and_the_way_to_a_verdict(equal, slower, report):
    text = report("compare", equal[0], slower[1]).out
    assert "Verdict         none: one run of each side, so their difference may be chance" in text
    assert (
        "commprof-experiment run EXPERIMENT --arm 'a-0.db: mpirun ... {} ...' --arm 'b-0.db: mpirun"
        in " ".join(text.split())
    )
    rows = report("compare", equal[0], slower[1], "--json").rows
    assert {row["outcome"] for row in rows} == {"none"}
    assert next(row for row in rows if row["bytes"] == LARGE)["change"] == pytest.approx(
        0.3, abs=0.1
    )


@pytest.mark.slow
def test_too_few_pairs_are_told_how_many_more(slower, compared):
    more = "For a verdict: 3 more runs of each side, in turns "
    for runs, is_told in ((slower[:6], True), (slower, False)):
        assert (more in compared(runs).prose) == is_told


@pytest.mark.slow
@pytest.mark.parametrize("level, needed", [("95%", 4), ("97.5%", 5), ("99%", 5), ("99.9%", 7)])
def test_too_few_runs_that_are_not_paired_are_told_how_many_the_level_needs(
    slower, compared, verdict, level, needed
):
    few = compared(slower[: 2 * needed - 2], "--unpaired", "--level", level)
    assert (
        f"{needed - 1} + {needed - 1} runs are too few; {needed} + {needed} are needed at least"
        in few.prose
    )
    assert verdict(slower[: 2 * needed], "--unpaired", "--level", level)["verdict"] != "too few"


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [1, 3])
def test_an_experiment_of_too_few_blocks_is_told_the_command_that_adds_some(
    tmp_path, report, blocks
):
    folder = experiment(tmp_path, sides(tmp_path / "runs", {}, blocks=blocks))
    text = report("compare", folder).prose
    said = "For a verdict: commprof-experiment resume EXPERIMENT --blocks 6 "
    assert said in text and "experiment run" not in text


def test_an_experiment_among_other_runs_is_said_to_be_one(tmp_path, report):
    folder = experiment(tmp_path, sides(tmp_path / "runs", {}, blocks=1))
    said = (
        f"{folder}: is an experiment, which is compared alone: its arms are the sides; or name "
        f"runs of it, as in {folder}/block-*/ARM"
    )
    for others in ([folder, folder], [folder, "--", tmp_path / "runs/a-0.db"]):
        answer = report("compare", *others)
        assert (answer.status, answer.err) == (2, f"hvprof-report: {said}\n")


@pytest.mark.slow
def test_runs_that_do_not_alternate_are_not_paired(equal, verdict):
    """A B B A A B B A with two runs of A exchanged for others: no blocks."""
    assert verdict(equal)["pairs"] == BLOCKS
    assert verdict(equal, "--unpaired")["pairs"] is None
    unequal = equal[:-1] if equal[-1].name[0] == "a" else [run for run in equal if run != equal[-2]]
    assert verdict(unequal)["pairs"] is None
    assert verdict(unequal)["verdict"] == "same"


@pytest.mark.slow
def test_the_text_says_why_runs_are_not_in_blocks(equal, compared):
    of_all = "all runs of one side are compared with all of the other"
    assert f"Blocks          none: --unpaired; {of_all}" in compared(equal, "--unpaired").out
    assert f"Blocks          none: the sides do not alternate; {of_all}" in compared(equal[:-1]).out


@pytest.mark.slow
@pytest.mark.parametrize("level", ["50%", "99.9%"])
def test_levels_are_accepted_up_to_both_ends(equal, verdict, level):
    assert f"{100 * verdict(equal, '--level', level)['level']:.3g}%" == level


def flushes(total_ms: int) -> str:
    """Ten calls of each rank whose waiting is not known; the others take 30 ms in all."""
    cell = (
        "900 + world_rank, world_rank, 0, 'MPI_Win_flush_all', 0, 0, 'call', 'host', 0, 0, 10, "
        f"0, {total_ms * MS}, 100, {total_ms * MS}, 0"
    )
    call = (
        "INSERT INTO call SELECT 'MPI_Win_flush_all', 'rma', 'mpi', 'blocking', 'silent', 'nobody';"
    )
    return f"{call} INSERT INTO cell SELECT {cell} FROM rank;"


@pytest.mark.slow
@pytest.mark.parametrize("total_ms, said", [(1, None), (10, "74.8 %"), (100, "22.9 %")])
def test_how_much_of_the_time_waiting_and_transfer_are_known_of_is_said_unless_it_is_nearly_all(
    slower, compared, total_ms, said
):
    runs = on_a(changed(slower, flushes(total_ms)), flushes(total_ms))
    text = compared(runs, "--metric", "transfer").prose
    least = "of the time inside MPI, in the run with least"
    notes = re.findall(
        f"waiting and transfer are known for (.*?) {least}; --metric time has all of it", text
    )
    assert notes == ([said] if said else []), text
    of_time = compared(runs, "--metric", "time").prose
    assert (f"{least} Compared" in of_time) == bool(said)


@pytest.mark.slow
def test_waiting_and_transfer_of_runs_without_samples_are_unknown_not_none(slower, ask):
    runs = changed(slower, "DELETE FROM sample; DELETE FROM sample_window")
    figures_of = {row["figure"]: row for row in ask(runs, "figure")}
    assert (figures_of["wait"]["second_ns"], figures_of["transfer"]["outcome"]) == (None, "none")


PLANTED = {
    "ranks": (
        "filter",
        fact("settings.COMMPROF_RANKS", "0-1"),
        "recorded ranks differ: COMMPROF_RANKS not set in a; COMMPROF_RANKS 0-1 in b",
    ),
    "calls": (
        "filter",
        fact("settings.COMMPROF_EXCLUDE", "MPI_Bcast"),
        "COMMPROF_EXCLUDE MPI_Bcast in b",
    ),
    "bytes": (
        "work",
        "UPDATE cell SET volume_bytes = 100 * count WHERE bytes = 65536",
        "64 KiB on MPI_COMM_WORLD: 0 -> ",
    ),
    "other ranks": (
        "work",
        "UPDATE cell SET count = count + 2 - 4 * world_rank, total_ns = total_ns",
        "other ranks make the calls",
    ),
    "killed": (
        "partial",
        "UPDATE rank SET ended = 'running', wall_ns = NULL, end_unix_ns = NULL",
        "rank",
    ),
    "dropped": (
        "partial",
        "UPDATE rank SET dropped_calls = 3 WHERE world_rank = 1",
        "3 calls not recorded",
    ),
    "interrupted": (
        "partial",
        "UPDATE rank SET interrupted_calls = 2 WHERE world_rank = 0",
        "2 calls not recorded",
    ),
    "part": (
        "partial",
        "UPDATE rank SET counted_ns = wall_ns / 2",
        "between 50.0 % and 100.0 % of the wall time was counted",
    ),
    "crowded": (
        "disturbed",
        fact("last.affinity", "0"),
        "other work had cores of the ranks in 8 of 8 blocks, most in",
    ),
}
HEALTHY = {
    "polls": "INSERT INTO call SELECT 'MPI_Test', 'completion', 'mpi', 'blocking', 'silent', "
    "'nobody';"
    " INSERT INTO cell SELECT 900 + world_rank, world_rank, 0, 'MPI_Test', 0, 0, 'poll', 'host', "
    "0, 0, 10, 0, 1000, 100, 100, 0 FROM rank",
    "bound": fact("last.affinity", "0", 0) + fact("last.affinity", "1", 1),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", PLANTED)
def test_each_reason_against_a_verdict_is_named_and_can_be_allowed(case, slower, verdict, compared):
    kind, statement, said = PLANTED[case]
    runs = changed(slower, statement)
    refused = verdict(runs)
    assert (refused["verdict"], refused["refused"]) == ("refused", kind)
    text = compared(runs).out
    assert f"Refused         {kind}: " in text
    assert said in " ".join(text.split())
    assert f"--allow {kind}" in " ".join(text.split())
    assert "Because" not in text
    allowed = verdict(runs, "--allow", kind)
    assert (allowed["verdict"], allowed["refused"], allowed["allowed"]) == ("more", "", kind)


@pytest.mark.slow
def test_a_refused_comparison_of_too_few_runs_says_both(slower, compared):
    few = "; too few runs, too: 3 pairs, and 6 are needed at least"
    for runs, is_few in ((slower[:6], True), (slower, False)):
        text = compared(changed(runs, PLANTED["killed"][1])).prose
        assert "Verdict none: not the same experiment (partial)" in text
        assert (few in text) == is_few, text


@pytest.mark.slow
def test_other_work_on_one_side_alone_is_refused_and_on_both_it_is_not(slower, verdict, compared):
    runs = on_a(changed(slower, waited(0.04)), waited(0.004))
    assert verdict(runs)["refused"] == "disturbed"
    said = (
        "Refused disturbed: other work on the cores of the ranks differs between the sides: a rank "
        "waited for a core 0.40 % of the time in a, 4.0 % in b (medians of the runs)."
    )
    assert said in compared(runs).prose
    on_a(runs, "DELETE FROM cpu_time;" + waited(0.03))
    assert verdict(runs)["refused"] == ""
    assert "other work" not in compared(runs).out


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
@pytest.mark.parametrize("case", HEALTHY)
def test_what_does_no_harm_is_not_refused(case, slower, verdict):
    assert verdict(changed(slower, HEALTHY[case]))["refused"] == ""


@pytest.mark.slow
def test_another_number_of_steps_is_other_work(tmp_path, verdict, compared):
    runs = [
        run if run.name[0] == "a" else planted(run, 60 * place, {LARGE: 1.3}, calls=15)
        for place, run in enumerate(sides(tmp_path, {}))
    ]
    assert verdict(runs)["refused"] == "work; program"  # its command line asks for them
    assert re.search(r": (\d+) -> (\d+) calls in b", compared(runs).out)
    assert verdict(runs, "--allow", "work,program")["verdict"] == "more"
    many = [
        run if run.name[0] == "a" else planted(run, 60 * place, {}, calls=120)
        for place, run in enumerate(runs)
    ]
    assert re.search(r": (\d+) -> \1\d calls in b", compared(many).prose)


@pytest.mark.slow
def test_other_work_that_is_allowed_is_compared_per_call(tmp_path, verdict, compared):
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
    assert verdict(runs)["refused"] == "work; program"
    found = verdict(runs, "--allow", "work,program")
    assert (found["verdict"], found["change"]) == ("same", pytest.approx(0, abs=1e-3))
    said = "Note calls differ: transfer is compared as if each run made those of a, in 3 rows"
    assert said in compared(runs, "--allow", "work,program").prose


def same_work(text: str) -> str:
    text = re.sub(r" Efficiency [^(]*\([^)]*\)", "", text)
    return text[text.index("Same work ") : text.index(" Compared ")]


@pytest.mark.slow
def test_rows_whose_calls_vary_from_run_to_run_are_not_called_the_same(tmp_path, compared, verdict):
    """On both sides the 64 KiB are called once more in every other block."""
    runs = sides(tmp_path / "runs", {})
    said = "Same work yes: {} rows with the same calls and bytes, on 2 ranks"
    assert same_work(compared(runs).prose) == said.format(3)
    for run in runs:
        if int(run.stem[2:]) % 2:
            execute(run, f"UPDATE cell SET count = count + 1 WHERE bytes = {SMALL}")
    assert verdict(runs)["refused"] == ""
    varies = (
        "; 1 row differs between runs, between the sides by no more than within them or by "
        "less than 1.0 %"
    )
    assert same_work(compared(runs).prose) == said.format(2) + varies


@pytest.mark.slow
def test_rows_of_polls_are_no_part_of_the_work(slower, compared):
    runs = on_a(changed(slower, HEALTHY["polls"]), HEALTHY["polls"])
    said = "Same work yes: 3 rows with the same calls and bytes, on 2 ranks"
    assert same_work(compared(runs).prose) == said


@pytest.mark.slow
def test_another_placement_is_refused(tmp_path, verdict, compared):
    runs = sides(tmp_path / "runs", {}, hosts=2)
    assert "placement" in verdict(runs)["refused"]
    assert "2 ranks on 1 host in a; 2 ranks on 2 hosts (0; 1) in b" in compared(runs).prose


@pytest.mark.slow
def test_a_run_without_one_of_its_ranks_is_partial_and_nothing_else(tmp_path, verdict, compared):
    """Neither placed nor bound otherwise: where the missing rank ran is not known."""
    bound = "".join(
        fact("last.affinity", str(rank), rank) + fact("host", f"node{rank}", rank)
        for rank in (0, 1)
    )
    runs = on_a(changed(sides(tmp_path / "runs", {}), bound), bound)
    remove_rank(runs[0], 1)
    assert verdict(runs)["refused"] == "partial"
    work = same_work(compared(runs).prose)
    assert work.startswith("Same work not known: a run lacks ranks Refused ")


@pytest.mark.slow
def test_other_nodes_for_each_side_are_refused_unless_they_are_many(slower, verdict, compared):
    other = changed(slower, fact("host", "node07"))
    assert verdict(other)["refused"] == "hosts"
    assert (
        "a ran on node00, b on node07: a difference of the nodes would look the same"
        in compared(other).prose
    )
    assert verdict(other, "--allow", "hosts")["verdict"] == "more"
    for place, run in enumerate(other):
        execute(run, fact("host", f"{run.name[0]}{place % 3}"))
    assert verdict(other)["refused"] == ""


@pytest.mark.slow
@pytest.mark.parametrize("change, is_noted", [(1.03, True), (3.0, False)])
def test_a_difference_smaller_than_the_clocks_can_show_is_noted(
    tmp_path, compared, change, is_noted
):
    """Two hosts, whose clocks are known to 41 us; transfers last 0.7 ms a call."""
    factors = dict.fromkeys((LARGE, SMALL), change)
    folder = tmp_path / "runs"
    folder.mkdir()
    runs = []
    for place in range(2 * BLOCKS):
        side = "abba"[place % 4]
        own = {
            size: 1.0001 ** (place % 5) * (factor if side == "b" else 1)
            for size, factor in factors.items()
        }
        runs.append(planted(folder / f"{side}-{place}.db", 60 * place, own, hosts=2))
    text = compared(runs).prose
    assert "b takes more transfer" in text
    assert ("Note the clocks of the hosts are known to " in text) == is_noted, text
    assert (" a call in transfer; --metric time needs no clocks" in text) == is_noted


@pytest.mark.slow
def test_steps_that_settle_within_the_runs_are_noted(tmp_path, compared):
    text = compared(sides(tmp_path / "runs", {}, calls=60, slow_steps=30)).prose
    assert (
        "Note b: steps became faster within 8 of 8 runs, 90.0 ms in the first tenth, 60.0 ms in "
        "the last (a start-up, or a library that tunes itself)" in text
    )
    assert text.count("Note") == 1


@pytest.mark.slow
def test_steps_that_are_steady_are_not_noted(tmp_path, compared):
    runs = sides(tmp_path / "runs", {}, calls=40)
    assert "Note" not in compared(runs).out


@pytest.mark.slow
def test_a_library_that_tunes_itself_is_judged_by_the_steps_after_it(tmp_path, compared, verdict):
    """The transfers of b take three times as long for 20 of 60 steps, and 30 % less
    from then on."""
    settled = dict.fromkeys(TRANSFERS, 0.7)
    runs = sides(tmp_path / "runs", settled, calls=60, slow_steps=20, slow_factor=3.0 / 0.7)
    assert verdict(runs)["verdict"] == "more"
    text = compared(runs).prose
    assert (
        "(a start-up, or a library that tunes itself); all steps count, unless --skip-steps leaves "
        "out the first" in text
    )
    found = verdict(runs, "--skip-steps", "34%")
    assert (found["verdict"], found["skipped"], found["change"]) == (
        "less",
        0.34,
        pytest.approx(-0.3, abs=0.02),
    )
    text = compared(runs, "--skip-steps", "34%").prose
    assert (
        "b takes less transfer: transfer -" in text and " per rank; less in 8 of 8 blocks" in text
    )
    assert (
        text.count("Note") == 1
        and "Note the first 34.0 % of the steps of each run are left out; calls and sizes are not "
        "shown"
        in text
    )
    assert (
        "Same work yes: 3 rows with the same calls and bytes, on 2 ranks" in text
        and "Inside MPI" not in text
    )
    assert "these are the steps after those left out" in compared(runs, "--skip-steps", "10%").prose
    figures_known = [
        row["figure"]
        for row in compared(runs, "--skip-steps", "34%", "--json").rows
        if row["change"] is not None
    ]
    assert figures_known == ["step", "wait", "transfer"]


@pytest.mark.slow
def test_a_library_without_tuning_is_judged_alike_by_all_steps_and_by_the_last(tmp_path, compared):
    runs = sides(tmp_path / "runs", {LARGE: 1.3}, calls=60)
    whole, last = (
        compared(runs, "--by", "figure", "--json", *more).rows
        for more in ((), ("--skip-steps", "50%"))
    )
    for figure, part in (("step", 1), ("wait", 0.5), ("transfer", 0.5)):
        first, second = (
            next(row for row in rows if row["figure"] == figure) for rows in (whole, last)
        )
        assert second["first_ns"] == pytest.approx(part * first["first_ns"], rel=1e-3), figure
        assert (second["outcome"], second["change"]) == (
            first["outcome"],
            pytest.approx(first["change"], abs=1e-3),
        ), figure


def test_a_figure_that_some_runs_lack_is_not_compared(tmp_path, ask, compared):
    """The runs without steps may be the slowest ones, so a median of the others says nothing."""
    runs = sides(tmp_path / "runs", {}, calls=60, blocks=4)
    named = [ask(own, "figure")[0] for own in (runs, [*changed(runs[:3], NO_SAMPLE), *runs[3:]])]
    assert [(row["figure"], row["first_ns"] is None) for row in named] == [
        ("step", False),
        ("step", True),
    ]
    said = " ".join(compared([*changed(runs[:3], NO_SAMPLE), *runs[3:]]).out.split())
    assert "step is not compared: 2 of 4 runs of b have none, and hardly at random" in said


@pytest.mark.slow
def test_runs_without_steps_have_none_to_leave_out(slower, compared):
    answer = compared(changed(slower, NO_SAMPLE), "--skip-steps", "33%")
    assert answer.status == 1 and answer.err.count("\n") == 1
    assert (
        "has no known steps of which --skip-steps could leave out the first; mark the steps (man "
        "commprof_step), or record" in answer.err
    )


@pytest.mark.slow
def test_another_program_is_refused_and_another_build_of_it_is_not(tmp_path, verdict):
    assert verdict(sides(tmp_path / "other", {}, command="lib/app 2"))["refused"] == "program"
    assert verdict(sides(tmp_path / "same", {}, command="/opt/mpich/app.mpich 1"))["refused"] == ""


def single(first: Figures, second: Figures) -> list[Side]:
    return [Side("a", [first], None, 0), Side("b", [second], None, 0)]


def test_the_programs_of_both_sides_are_named_where_they_differ(template):
    other = replace(template, facts={**template.facts, "command_line": ("lib/app 2",)})
    answers = compare(single(template, other), Rules())
    assert sentences.program_text(answers) == "app 1 12 in a, app 2 in b; 2 ranks on 1 host"
    wider = replace(template, ranks=[row._replace(host=f"{row.rank}") for row in template.ranks])
    answers = compare(single(template, wider), Rules())
    assert (
        sentences.program_text(answers)
        == "app 1 12; 2 ranks on 1 host in a, 2 ranks on 2 hosts (0; 1) in b"
    )


def test_runs_with_another_number_of_ranks_are_other_work_whatever_their_rows(template):
    parts = {
        (key._replace(group=key.group._replace(size=4)), traffic): row
        for (key, traffic), row in template.parts.items()
    }
    more = replace(template, world_size=4, parts=parts)
    answers = compare(single(template, more), Rules())
    (work,) = [refusal.what for refusal in answers.refused if refusal.kind == "work"]
    assert work == "numbers of ranks differ: 2 ranks in a; 4 ranks in b"


@pytest.mark.slow
def test_another_binding_is_refused(slower, verdict, compared):
    narrow = fact("last.affinity", "0", 0) + fact("last.affinity", "1", 1)
    runs = on_a(changed(slower, narrow), fact("last.affinity", "0-1"))
    assert verdict(runs)["refused"] == "binding"
    said = "numbers of cores that a rank may use differ: 2 (of 2 in use) in a; 1 (of 2 in use) in b"
    assert said in compared(runs).prose


@pytest.mark.slow
def test_all_of_one_side_before_all_of_the_other_is_refused(slower, verdict):
    later = changed(slower, f"UPDATE rank SET start_unix_ns = start_unix_ns + {3600 * SECOND}")
    assert verdict(later)["refused"] == "order"
    assert verdict(later, "--allow", "order")["verdict"] == "more"


@pytest.mark.slow
def test_settings_that_differ_are_listed_and_those_of_the_job_are_not(slower, verdict):
    by_launcher = {
        "PMIX_RANK": "0",
        "OMPI_COMM_WORLD_RANK": "1",
        "OMPI_MCA_hwloc_base_binding_policy": "core",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "OMPI_MCA_mpi_oversubscribe": "0",
        "PSM2_DEVICES": "self,shm",
        "OMPI_MCA_PREFIXES": "mca,opal,ompi",
        "OMPI_WORLD_SIZE": "2",
        "OMPI_VERSION": "5.0.11",
        "I_MPI_ROOT": "/opt/impi",
        "I_MPI_MPIRUN": "mpirun",
    }
    planted_facts = (
        fact("env.UCX_TLS", "tcp")
        + fact("host", "other")
        + "".join(fact(f"env.{name}", value) for name, value in by_launcher.items())
    )
    also = verdict(changed(slower, planted_facts))["also_different"]
    assert also == "UCX_TLS (not set; b: tcp); hosts (node00; b: other)"
    assert verdict(slower)["also_different"] == ""


@pytest.mark.slow
def test_control_variables_are_compared_where_both_sides_recorded_them(slower, verdict):
    runs = changed(
        slower,
        fact("cvar.btl_sm_eager_limit", "8192")
        + fact("env.OMPI_MCA_btl_sm_eager_limit", "8192")
        + fact("cvar.coll_tuned_priority", "30")
        + fact("cvar.ess_base_jobid", "7")
        + fact("cvar.btl_ofi_mode", "1"),
    )
    assert verdict(runs)["also_different"] == "OMPI_MCA_btl_sm_eager_limit (not set; b: 8192)"
    on_a(
        runs,
        fact("cvar.btl_sm_eager_limit", "4096")
        + fact("cvar.coll_tuned_priority", "30")
        + fact("cvar.ess_base_jobid", "6"),
    )
    assert verdict(runs)["also_different"] == "btl_sm_eager_limit (4096; b: 8192)"


def test_nccl_reports_the_algorithm_of_each_size(tmp_path):
    job = Job([HostClock(77)] * 2)
    group = job.group((0, 1), library="nccl")
    for number, size in enumerate((LARGE, SMALL), 1):
        job.collective(
            "ncclAllReduce", [number * MS] * 2, [US] * 2, group=group, message_bytes=size
        )
        for algorithm, count in (("TREE", number), ("RING", 3 - number)):
            job.add(
                "nccl_algorithm",
                world_rank=0,
                call="ncclAllReduce",
                communicator=group.communicator,
                bytes=size,
                is_folded=0,
                algorithm=algorithm,
                protocol="LL128",
                channels=16,
                count=count,
            )
    found, _ = figures(job.write(tmp_path / "run.db"))
    assert {key.bytes: found.algorithm(key) for key in found.rows} == {
        LARGE: "ring, ll128, 16 channels",
        SMALL: "tree, ll128, 16 channels",
    }


@pytest.mark.slow
def test_nothing_is_noted_on_a_healthy_machine(tmp_path, compared):
    def made(name: str, factor) -> list[Path]:
        folder = tmp_path / name
        folder.mkdir()
        chance = random.Random(4)
        scales = [factor(place) * math.exp(chance.gauss(0, 0.01)) for place in range(16)]
        return [
            planted(
                folder / f"{'ab'[place % 2]}-{place}.db",
                60 * place,
                dict.fromkeys(TRANSFERS, scale),
            )
            for place, scale in enumerate(scales)
        ]

    assert "Note" not in compared(made("trend", lambda place: 1.03**place)).out
    assert "Note" not in compared(made("healthy", lambda place: 1.0)).out


@pytest.mark.slow
def test_a_machine_that_was_other_for_one_side_is_a_reason_against_a_verdict(
    slower, verdict, compared
):
    """Large Allreduces are 30 % slower, so transfer is 27 % slower; so are copies on one of two
    hosts."""
    slow = {"node01": 1.4}
    runs = measured(
        slower,
        lambda run, host, name: slow.get(host, 1) if run[0] == "b" and name == "memory_ns" else 1,
        ("node00", "node01"),
    )
    assert (verdict(runs)["verdict"], verdict(runs)["refused"]) == ("refused", "machine")
    said = compared(runs).prose
    assert "Refused machine: copies in memory took " in said and "arithmetic" not in said
    assert (
        "% more time before the runs of b than before those of a: as much as the "
        "sides differ in transfer" in said
    )
    assert verdict(runs, "--allow", "machine")["verdict"] == "more"
    rows = compared(runs, "--by", "run", "--json").rows
    assert {round(row["memory_ns"] / 1e6, 1) for row in rows if row["side"] == "b"} == {5.6}
    assert "host: copies in memory" in compared(runs, "--by", "run").out


@pytest.mark.slow
def test_a_machine_that_differed_by_less_than_the_sides_is_noted(slower, verdict, compared):
    runs = measured(
        slower, lambda run, host, name: 0.95 if run[0] == "b" and name == "arithmetic_ns" else 1
    )
    assert verdict(runs)["verdict"] == "more"
    said = compared(runs).prose
    assert (
        "Note the machine was not the same: arithmetic took " in said
        and " % less time before the runs of b than before those of a; " in said
    )


@pytest.mark.slow
def test_a_steady_machine_is_not_noted(slower, equal, compared):
    for runs in (slower, equal):
        steady = measured(runs, lambda run, host, name: 1)
        text = compared(steady).out
        assert "Note" not in text and "Refused" not in text, text
        assert {row["verdict"] for row in compared(steady, "--by", "verdict", "--json").rows} == {
            "more" if runs is slower else "same"
        }


@pytest.mark.slow
def test_a_measurement_that_is_not_whole_counts_as_none(slower, verdict):
    runs = measured(slower, lambda run, host, name: 1.4 if run[0] == "b" else 1)
    (folder_of(runs[0]) / "node00").write_text('{"arithmetic_ns": 1')
    assert verdict(runs)["refused"] == ""


@pytest.mark.slow
def test_a_column_for_each_side_and_the_best_is_marked_only_if_it_is_one(tmp_path, report):
    folder = tmp_path / "three"
    folder.mkdir()
    chance = random.Random(7)
    factors = {"a": 1.0, "b": 1.0, "c": 0.8}
    runs = {side: [] for side in factors}
    for place in range(30):
        side = "abccba"[place % 6]
        own = {
            LARGE: factors[side] * math.exp(chance.gauss(0, 0.02)),
            SMALL: math.exp(chance.gauss(0, 0.02)),
        }
        runs[side].append(planted(folder / f"{side}-{place}.db", 60 * place, own))
    named = [*runs["a"], "--", *runs["b"], "--", *runs["c"]]
    rows = {row["bytes"]: row for row in report("compare", *named, "--by", "size", "--json").rows}
    assert rows[LARGE]["sides"] == ["a", "b", "c"] and rows[LARGE]["best"] == "c"
    assert (rows[SMALL]["best"], rows[TINY]["best"]) == (None, None)
    assert " ms *" in report("compare", *named, "--by", "size").out
    heads, first, *_ = csv.reader(
        report("compare", *named, "--by", "size", "--csv").out.splitlines()
    )
    of_first = dict(zip(heads, first))
    assert heads[-4:] == ["a_ns", "b_ns", "c_ns", "best"] and of_first["bytes"] == str(TINY)
    assert [float(of_first[f"{side}_ns"]) for side in "abc"] == rows[TINY]["values_ns"]
    verdicts = report("compare", *named, "--by", "verdict", "--json").rows
    assert [(row["side"], row["level"], row["pairs_needed"]) for row in verdicts] == [
        ("b", 0.975, 7),
        ("c", 0.975, 7),
    ]
    assert verdicts[1]["verdict"] == "less"


@pytest.mark.slow
def test_no_side_is_the_best_of_runs_that_are_no_experiment(slower, ask, compared):
    runs = changed(slower, PLANTED["dropped"][1])
    assert {row["bytes"]: row["best"] for row in ask(slower, "size")}[LARGE] == "a"
    assert {row["best"] for row in ask(runs, "size")} == {None}
    assert (
        "no side is marked: not the same experiment (partial)" in compared(runs, "--by", "size").out
    )
    assert {row["bytes"]: row["best"] for row in ask(runs, "size", "--allow", "partial")}[
        LARGE
    ] == "a"


@pytest.mark.slow
def test_an_experiment_is_read_with_its_blocks(tmp_path, report):
    folder = experiment(tmp_path, sides(tmp_path / "runs", {LARGE: 1.3}))
    row = report("compare", folder, "--by", "verdict", "--json").rows[0]
    assert (row["side"], row["verdict"], row["pairs"], row["failed_runs"]) == (
        "b",
        "more",
        BLOCKS,
        0,
    )


def with_control(folder: Path, factor: float) -> Path:
    """Blocks of a, of b, whose large Allreduces take 30 % more, and of a-again, whose take
    `factor`."""
    chance, factors, lines = random.Random(3), {"a": 1.0, "b": 1.3, "a-again": factor}, []
    for place in range(3 * BLOCKS):
        arm = list(factors)[place % 3]
        run = folder / f"{arm}-{place}.db"
        planted(run, 60 * place, {LARGE: factors[arm] * math.exp(chance.gauss(0, 0.01))})
        lines.append(
            json.dumps({"block": place // 3 + 1, "arm": arm, "folder": run.name, "status": "ok"})
        )
    arms = [
        {"name": name, "command": "mpirun", "of": "a" if name == "a-again" else ""}
        for name in factors
    ]
    (folder / "experiment.json").write_text(
        json.dumps({"format": "commprof-experiment", "version": 1, "arms": arms})
    )
    (folder / "runs.jsonl").write_text("\n".join(lines) + "\n")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    "factor, control, said",
    [
        (1.0, "same", "A/A a-again runs the command of a: same within 2.0 %: transfer"),
        (1.3, "more", "(p 0.0078): something other than the command differs by as much"),
    ],
)
def test_a_control_shows_nothing_unless_something_other_than_the_command_differs(
    tmp_path, report, factor, control, said
):
    folder = with_control(tmp_path, factor)
    verdicts = report("compare", folder, "--by", "verdict", "--json").rows
    assert [(row["side"], row["verdict"], row["is_control"]) for row in verdicts] == [
        ("b", "more", 0),
        ("a-again", control, 1),
    ]
    assert [row["level"] for row in verdicts] == pytest.approx([0.95, 0.95]), (
        "a control costs the verdict nothing"
    )
    text = report("compare", folder).prose
    assert said in text
    assert ("something other than the command differs" in text) == (control == "more")
    sizes = {row["bytes"]: row for row in report("compare", folder, "--by", "size", "--json").rows}
    assert (sizes[LARGE]["sides"], sizes[LARGE]["best"]) == (["a", "b"], "a")


def with_control_alone(folder: Path) -> Path:
    """Eight blocks of a and of a-again, the same command."""
    runs = measured(
        sides(folder / "runs", {}),
        lambda run, _host, name: 1.0 if run[0] == "a" or name == "memory_ns" else 1.25,
    )
    experiment(folder, runs)
    plan = json.loads((folder / "experiment.json").read_text())
    plan["arms"][1] = {"name": "b", "command": "mpirun a", "of": "a"}
    (folder / "experiment.json").write_text(json.dumps(plan))
    return folder


@pytest.mark.slow
def test_an_arm_against_itself_alone_has_its_tables_and_is_refused_like_others(tmp_path, report):
    """The machine took 25 % longer before each run of the second arm."""
    folder = with_control_alone(tmp_path)
    assert report("compare", folder, "--by", "verdict", "--json").rows[0]["refused"] == "machine"
    text = report("compare", folder).out
    assert "A/A             b runs the command of a\n" in text
    assert "Refused         machine: arithmetic took " in text
    assert re.search(r"^Transfer \*", text, re.M) and re.search(r"^MPI_Allreduce", text, re.M), text
    assert report("compare", folder, "--by", "size", "--json").rows[0]["sides"] == ["a", "b"]


@pytest.mark.slow
def test_a_control_of_a_refused_experiment_has_an_estimate_and_no_verdict(tmp_path, report):
    folder = with_control(tmp_path, 1.0)
    for run in folder.glob("*.db"):
        execute(run, fact("last.affinity", "0"))
    text = report("compare", folder).prose
    assert re.search(
        r"A/A a-again runs the command of a: no verdict either; transfer [-+]0\.\d % \[", text
    ), text


@pytest.mark.slow
def test_failed_and_unfinished_runs_of_an_experiment_are_counted_and_not_compared(tmp_path, report):
    folder = experiment(tmp_path, sides(tmp_path / "runs", {}))
    more = [
        {"block": 3, "arm": "b", "folder": "runs/failed", "status": "failed"},
        {"block": 0, "arm": "a", "folder": "runs/first", "status": "warm-up"},
        {"block": 9, "arm": "a", "folder": "runs/alone", "status": "ok"},
    ]
    with open(folder / "runs.jsonl", "a") as file:
        file.write(
            "".join(json.dumps(run) + "\n" for run in more) + '{"block": 9, "arm": "b", "fol'
        )
    answer = report("compare", folder, "--by", "verdict", "--json")
    assert (answer.rows[0]["pairs"], answer.rows[0]["failed_runs"]) == (BLOCKS, 1)
    assert "1 failed run not compared" in report("compare", folder).out


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"format": "commprof-experiment", "version": 2, "arms": []}', '{"arms": 7}'],
)
def test_a_damaged_experiment_is_refused_in_one_line(tmp_path, report, text):
    (tmp_path / "experiment.json").write_text(text)
    answer = report("compare", tmp_path)
    assert answer.status == 1 and answer.err.count("\n") == 1, answer.err


WRONG = (
    [],
    ["--"],
    ["x"],
    ["x", "--"],
    ["a", "b", "c"],
    ["a", "--", "b", "--level", "3%"],
    ["a", "b", "--allow", "all,x"],
    ["a", "b", "--skip-steps", "9%", "--metric", "p50"],
    ["a", "b", "--skip-steps", "9%", "--by", "size"],
)


@pytest.mark.parametrize("arguments", WRONG)
def test_wrong_arguments_are_answered_in_one_line(report, arguments):
    answer = report("compare", *arguments)
    assert answer.status == 2 and answer.err.count("\n") == 1, answer.err


def test_a_run_of_both_sides_is_an_error_that_names_it_whatever_its_name(equal, compared, tmp_path):
    copy = tmp_path / "c-1.db"
    copy.write_bytes(equal[0].read_bytes())
    for again in (equal[0], copy):
        answer = compared(equal[:4], again)
        assert (answer.status, answer.err) == (
            2,
            f"hvprof-report: {again}: is a run of a and of B: name it on one side\n",
        )


def test_a_run_that_is_named_twice_counts_once(equal, report, tmp_path):
    copy = tmp_path / "a-9.db"
    copy.write_bytes(equal[0].read_bytes())
    once, twice = (
        report("compare", *more, *words(equal[:4]), "--by", "verdict", "--json").rows
        for more in ((), (equal[0], copy))
    )
    assert once == twice and once[0]["reference_runs"] == 2


def test_a_side_is_named_by_what_its_folders_share(tmp_path):
    def names(*groups: list[str]) -> list[str]:
        return [
            side.name
            for side in sides_named([[tmp_path / name for name in group] for group in groups])
        ]

    assert names(["openmpi-01", "openmpi-02"], ["mpich-01", "mpich-02"]) == ["openmpi", "mpich"]
    assert names(["run-1", "run-2"], ["run-3", "run-4"]) == ["A", "B"]
    assert names(["before"], ["after"]) == ["before", "after"]


def test_sides_whose_names_no_arm_can_have_get_others_in_the_command(slower, report, tmp_path):
    copies = [tmp_path / f"{name} (1, 2).db" for name in ("old", "new")]
    for copy, run in zip(copies, slower):
        copy.write_bytes(run.read_bytes())
    arms = re.findall("--arm '(.*?)'", report("compare", *copies).prose)
    assert [arm(text).name for text in arms] == ["old-1-2-.db", "new-1-2-.db"]
    assert (
        sides_named([[tmp_path / "with B 1", tmp_path / "with B 2"], [tmp_path / "x"]])[0].name
        == "with B"
    )


def test_the_same_communicator_created_in_another_way_is_recognized():
    world = Group("mpi", ("MPI_COMM_WORLD",), 4, "0-3", 0)
    split, dup = (
        Group("mpi", (made, 0, world), 4, "0-3", 0) for made in ("MPI_Comm_split", "MPI_Comm_dup")
    )
    half = Group("mpi", ("MPI_Comm_split", 0, world), 2, "0-1", 0)
    assert renamed([world, dup, half], [world, split, half]) == {dup: split}
    assert renamed([world, half], [world, split]) == {}


def test_many_alike_groups_are_one_row(tmp_path):
    """Sixteen pairs of ranks: each alone would be too small to be shown."""
    job = Job([HostClock(77)] * 32)
    for pair in range(16):
        group = job.group([2 * pair, 2 * pair + 1])
        job.collective("MPI_Allreduce", [MS, MS], [MS, MS], group=group)
    execute(
        job.write(tmp_path / "run.db"),
        "UPDATE communicator SET constructor = 'MPI_Comm_split', "
        f"parent_identity = '{job.world.identity}' WHERE size = 2",
    )
    found, _ = figures(tmp_path / "run.db")
    (key,) = found.rows
    assert found.rows[key].count == 32 and found.labels[key.group].endswith(" and 15 alike")


# Transfer per rank in milliseconds of one job under one library, twice in each of 20 blocks, on a
# busy machine: the scatter of real runs.
RECORDED = (
    (1965, 548),
    (4760, 443),
    (6295, 7150),
    (315, 3146),
    (263, 346),
    (3866, 1044),
    (548, 345),
    (318, 463),
    (1995, 3603),
    (3474, 3060),
    (9191, 7450),
    (799, 2596),
    (499, 3431),
    (3600, 6837),
    (6482, 1375),
    (5926, 511),
    (3212, 5026),
    (3307, 1722),
    (5388, 8265),
    (9389, 7270),
)
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
            transfer_ns = sum(row.transfer_ns for row in parts.values()) / 2
            start = 2 * block + (place + block) % 2
            runs[place].append(
                replace(template, start_unix_ns=start, parts=parts, transfer_ns=transfer_ns)
            )
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


@pytest.fixture
def template(tmp_path) -> Figures:
    return figures(planted(tmp_path / "run.db", 0, {}))[0]


@pytest.mark.slow
def test_experiments_without_a_difference_find_one_in_about_one_of_twenty(template):
    verdicts, rows = found_share(template, 0.0)
    assert 0.02 <= verdicts <= 0.075
    assert rows <= verdicts


@pytest.mark.slow
def test_a_difference_far_above_the_scatter_is_nearly_always_found(template):
    assert found_share(template, 9.0)[0] > 0.9


def test_rows_that_differ_in_memory_or_measure_have_names_of_their_own():
    kinds = (
        ("MPI_Send", "host", "call"),
        ("MPI_Send", "device", "call"),
        ("ncclSend", "device", "call"),
        ("ncclSend", "device", "device"),
    )
    assert [row_name(units.call_name(*kind), 4096, "tensor") for kind in kinds] == [
        "MPI_Send 4 KiB on tensor",
        "MPI_Send of device memory 4 KiB on tensor",
        "ncclSend on the host 4 KiB on tensor",
        "ncclSend on the device 4 KiB on tensor",
    ]


@pytest.mark.slow
def test_libraries_are_named_by_their_versions_unless_these_are_equal(slower, verdict):
    version = "Open MPI v{}, package: Debian {}"
    runs = on_a(
        changed(slower, fact("mpi_version", version.format("4.1.6", "b"))),
        fact("mpi_version", version.format("4.1.4", "a")),
    )
    assert verdict(runs)["also_different"] == "mpi_version (Open MPI 4.1.4; b: Open MPI 4.1.6)"
    on_a(runs, fact("mpi_version", version.format("4.1.6", "a")))
    assert (
        verdict(runs)["also_different"]
        == "mpi_version (Open MPI v4.1.6, package: Debian a; b: Open MPI v4.1.6, package: Debian b)"
    )
