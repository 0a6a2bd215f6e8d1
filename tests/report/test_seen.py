"""Gaps of a run's profile are named, with their size and the way out; for a run that was seen whole
nothing is said."""

from __future__ import annotations

import json
import re
from pathlib import Path

import planted
import pytest
from cases import of
from planted import Communicator

SECOND = planted.SECOND


def ranks_with(**fields: object) -> list[planted.Rank]:
    """The planted run; rank 0 has these fields, or facts."""
    ranks = planted.training_run()
    ranks[0].facts = {**ranks[0].facts, **fields.pop("facts", {})}
    ranks[0].communicators += fields.pop("communicators", [])
    for name, value in fields.items():
        setattr(ranks[0], name, value)
    return ranks


def inter(constructor: str, processes: int) -> list[Communicator]:
    made = {"constructor": constructor, "remote_size": processes, "is_inter": 1}
    return [Communicator(9, 0x99, "0", 1, 0, **made)]


UNSEEN = {
    "dropped": (
        dict(dropped_calls=1_234),
        "1,234 calls dropped: the ledger was full, on rank 0 (commprof-run --memory 256M)",
    ),
    "dropped-messages": (
        dict(dropped_messages=2),
        "2 messages missing in the table of peers: the ledger was full, on rank 0"
        " (commprof-run --memory 256M)",
    ),
    "dropped-completions": (
        dict(dropped_completions=1),
        "1 completion dropped: the ledger was full, on rank 0 (commprof-run --memory 256M)",
    ),
    "untracked": (
        dict(untracked_requests=1),
        "1 request not followed to completion: there was no memory, on rank 0",
    ),
    "off": (
        dict(counted_ns=4 * SECOND, facts={"unseen.off": "MPI_Pcontrol(0)"}),
        "60.0 % of the time not recorded: MPI_Pcontrol(0), on rank 0 (leave recording on)",
    ),
    "reset": (
        dict(reset_unix_ns=planted.START_UNIX_NS + 2 * SECOND, counted_ns=8 * SECOND),
        "20.0 % of the time set to zero by MPI_Pcontrol(2), on rank 0 (leave that call out)",
    ),
    "excluded": (
        dict(facts={"settings.COMMPROF_EXCLUDE": "MPI_Test,MPI_Iprobe"}),
        "calls that COMMPROF_EXCLUDE names: MPI_Test,MPI_Iprobe, on rank 0 (leave it unset)",
    ),
    "spawned": (
        dict(communicators=inter("MPI_Comm_spawn", 2)),
        "2 processes spawned without a profile beside this one",
    ),
    "spawned_multiple": (
        dict(communicators=inter("MPI_Comm_spawn_multiple", 1)),
        "1 process spawned without a profile beside this one",
    ),
    "sizes": (
        dict(facts={"mpi_abi": "unknown"}),
        "sizes of messages: the ABI of this MPI library is not known, on rank 0",
    ),
    "gpu": (
        dict(gpu_state="refused", facts={"gpu.reason": "no libcupti for CUDA 13.0"}),
        "GPUs not traced: no libcupti for CUDA 13.0, on rank 0",
    ),
    "interrupted": (
        dict(interrupted_calls=12),
        "12 calls left by an exception or longjmp, or made by a signal handler in the profiler's "
        "own code, on rank 0",
    ),
    "bypass": (
        dict(facts={"unseen.bypass": "/opt/libx.so"}),
        "calls that reach MPI past the profiler, from: /opt/libx.so, on rank 0",
    ),
    "lookups": (
        dict(facts={"unseen.dlsym": "7"}),
        "7 look-ups of MPI functions not answered, as COMMPROF_DLSYM=off, on rank 0 (commprof-run "
        "--dlsym)",
    ),
    "library": (
        dict(facts={"unseen.library": "/opt/libmpi.so.12"}),
        "calls to a second MPI library: /opt/libmpi.so.12, on rank 0",
    ),
    "gloo": (
        dict(facts={"unseen.gloo": "PyTorch"}),
        "communication over gloo, by: PyTorch, on rank 0 (the backends MPI or NCCL)",
    ),
    "tool": (
        dict(facts={"unseen.tool": "/opt/libmpiP.so"}),
        "calls that a tool before the profiler makes itself count as the job's: /opt/libmpiP.so, "
        "on rank 0",
    ),
    "nccl": (
        dict(facts={"nccl.unknown_operation": "ncclFoo"}),
        "an NCCL operation that this version does not know: ncclFoo, on rank 0 (a newer commprof)",
    ),
    "graphs": (
        dict(facts={"gpu.unseen_graph_launches": "3"}),
        "3 graph launches of CUDA left no record, on rank 0",
    ),
}


@pytest.fixture
def seen(report, tmp_path):
    """The line Seen of summary, in one piece."""

    def ask(ranks: list[planted.Rank], form=planted.write_databases) -> str:
        run = form(tmp_path / f"run-{len(list(tmp_path.iterdir()))}", ranks)
        (line,) = re.findall(r"^Seen (.*(?:\n .*)*)", report("summary", run).out, re.M)
        return " ".join(line.split())

    return ask


@pytest.mark.parametrize("reason", UNSEEN)
def test_each_reason_is_named_with_its_size_and_the_way_out(seen, reason):
    fields, said = UNSEEN[reason]
    assert seen(ranks_with(**fields)).startswith(f"not all: {said}")


@pytest.mark.parametrize("form", (planted.write_databases, planted.write_ledgers))
def test_of_a_run_that_was_seen_whole_nothing_is_said(seen, form):
    assert seen(planted.training_run(), form) == "all calls"


def test_a_running_job_has_been_seen_so_far(seen):
    ranks = planted.training_run()
    ranks[2].ended, ranks[2].end_unix_ns = "running", 0
    assert seen(ranks, planted.write_ledgers) == "all calls so far"


def test_what_is_counted_but_not_apart_is_no_loss(seen, report, tmp_path):
    ranks = ranks_with(folded_cells=2, facts={"region_refused": "epoch/4096"})
    assert seen(ranks) == "all calls"
    rows = report("seen", planted.write_databases(tmp_path / "folded", ranks), "--json").rows
    assert [of(row, "reason effect amount detail") for row in rows] == [
        ("cells", "merged", 2, ""),
        ("regions", "merged", None, "epoch/4096"),
    ]
    said = "Less detail 2 cells merged into cells of several sizes or communicators, "
    assert said in report("summary", tmp_path / "folded").prose


def test_ranks_that_are_not_there_are_counted(seen):
    assert seen(planted.training_run()[:3]).startswith("not all: 1 rank not read or not profiled")
    chosen = planted.training_run()[:2]
    for rank in chosen:
        rank.facts = {**rank.facts, "settings.COMMPROF_RANKS": "0-1"}
    said = "2 ranks not profiled: COMMPROF_RANKS=0-1 (run without COMMPROF_RANKS)"
    assert seen(chosen) == f"not all: {said}"


def test_spawned_processes_with_a_profile_beside_the_run_are_seen(report, tmp_path):
    ranks = ranks_with(communicators=inter("MPI_Comm_spawn", 4))
    run = planted.write_databases(tmp_path / "run", ranks)
    assert report("seen", run, "--json").rows[0]["amount"] == 4
    planted.write_databases(run / "spawned-1-of-4", planted.training_run())
    assert report("seen", run, "--json").rows == []
    assert report("merge", run, tmp_path / "all.db").status == 0  # which has no folder beside it
    assert report("seen", tmp_path / "all.db").out == "Seen            all calls\n"


def test_of_a_damaged_ledger_not_all_was_seen(report, ledger_folder):
    path = ledger_folder / "rank-0.ledger"
    path.write_bytes(path.read_bytes()[:-100_000])
    (row,) = report("seen", ledger_folder, "--json").rows
    assert (row["reason"], row["ranks"]) == ("damaged", "0")


def test_summary_json_says_the_same(report, tmp_path):
    run = planted.write_databases(tmp_path / "run", ranks_with(dropped_calls=3))
    (row,) = report("summary", run, "--json").rows
    said = "3 calls dropped: the ledger was full, on rank 0 (commprof-run --memory 256M)"
    assert of(row, "is_all_seen seen") == (0, f"not all: {said}")
    whole = planted.write_databases(tmp_path / "whole", planted.training_run())
    assert report("summary", whole, "--json").rows[0]["is_all_seen"] == 1


def test_one_rank_that_waits_for_processes_without_a_profile_is_not_called_alone(report, tmp_path):
    for number, known, said in (
        (9, inter("MPI_Comm_spawn", 2), "not known: 1 of 3 processes that communicate was read."),
        (0, [], "One rank: there is nobody to wait for."),
    ):
        cells = [planted.Cell("MPI_Bcast", 400, [7 * SECOND], number)]
        rank = planted.Rank(0, 1, facts=planted.facts_of(0), communicators=known, cells=cells)
        folder = planted.write_databases(tmp_path / str(number), [rank])
        assert said in report("summary", folder).prose


# Communicators of whose collectives the log kept nothing.

SAID = "2 of 3 communicators, 0.12 % of the time in collectives: Comm_split {0-1}, Comm_split {2-3}"
COMMANDS = ("summary", "late", "steps", "advise", "html", "export --format perfetto")


def training_run(without: int | None = None) -> list[planted.Rank]:
    """without: a communicator of each rank, none of whose calls are sampled."""
    ranks = planted.training_run()
    for rank in ranks:
        rank.samples = [
            sample
            for sample in rank.samples
            if without is None or sample.communicator != rank.communicators[without].communicator
        ]
    return ranks


HALVES = 2  # the communicator that is a half of the ranks


@pytest.fixture
def said(report, tmp_path):
    """Output of a command on a run, without line breaks."""

    def ask(command: str, ranks: list[planted.Rank]) -> str:
        folder = planted.write_databases(tmp_path / "run", ranks)
        words = command.split()
        if words[0] == "html":
            assert report("html", folder, "--output", tmp_path / "page.html").status == 0
            return (tmp_path / "page.html").read_text()
        answer = report(words[0], folder, *words[1:])
        assert answer.status == 0
        return " ".join((answer.out + answer.err).split())

    return ask


@pytest.mark.parametrize("command", COMMANDS)
def test_communicators_without_samples_are_named(said, no_pictures, command):
    assert SAID in said(command, training_run(HALVES))


NO_LOG = (
    "no single call was sampled: COMMPROF_SAMPLES=0, the default of COMMPROF_PROFILE=site; "
    "commprof-run --samples 4M samples them"
)


def run_without_a_log(**settings: str) -> list[planted.Rank]:
    ranks = planted.training_run()
    for rank in ranks:
        rank.samples = []
        rank.facts.update({f"settings.COMMPROF_{name}": value for name, value in settings.items()})
    return ranks


@pytest.mark.parametrize("command", ("summary", "late", "steps", "advise", "html"))
def test_a_job_that_keeps_no_log_has_it_said_with_the_way_to_one(said, no_pictures, command):
    text = said(command, run_without_a_log(SAMPLES="0", PROFILE="site"))
    assert NO_LOG in text and "No samples" not in text and "can mark its steps" not in text


def test_a_log_that_a_user_has_switched_off_is_not_the_sites_doing(said):
    assert "was sampled: COMMPROF_SAMPLES=0; commprof-run" in said(
        "late", run_without_a_log(SAMPLES="0", PROFILE="full")
    )


def test_where_the_settings_are_not_known_the_reason_is_not_either(said):
    assert "not known: single calls are not sampled on all ranks (COMMPROF_SAMPLES)" in said(
        "late", run_without_a_log()
    )


# Runs of which COMMPROF_RANKS chose some ranks.


@pytest.fixture
def chosen(tmp_path):
    """The planted run of four ranks, with this setting and the files of these ranks."""

    def write(setting: str, *ranks: int) -> Path:
        run = planted.training_run()
        for rank in run:
            rank.facts["settings.COMMPROF_RANKS"] = setting
        return planted.write_databases(tmp_path / "run", [run[rank] for rank in ranks])

    return write


@pytest.mark.parametrize(
    ("setting", "ranks"),
    [("0-3:2", (0, 2)), ("one-per-node", (0, 3)), ("1,3-3", (1, 3)), ("0-2,2-900", (0, 1, 2, 3))],
)
def test_ranks_that_were_not_chosen_are_not_missing(report, chosen, setting, ranks):
    answer = report("summary", chosen(setting, *ranks))
    assert answer.err == ""
    assert f"{len(ranks)} of 4 ranks (chosen: {setting})" in answer.out or (
        len(ranks) == 4 and f"4 ranks (chosen: {setting})" in answer.out
    )


def test_a_chosen_rank_without_a_file_is_missing(report, chosen):
    run = chosen("0-3:2", 0)
    planted.write_databases(run, [planted.training_run()[1]])
    answer = report("summary", run, "--json")
    assert "rank 2 of 4 is missing" in answer.err
    (row,) = answer.rows
    assert of(row, "ranks_read missing_ranks profiled_ranks") == (2, 1, "0-3:2")


def test_late_says_that_it_is_of_a_part(report, chosen):
    run = chosen("0-3:2", 0, 2)
    part = (
        "Part            2 of 4 ranks were chosen to be profiled (0-3:2): late ranks may be "
        "among the others"
    )
    assert part in report("late", run).out
    assert "Not read" not in report("late", run).out


def test_stuck_accuses_no_rank_that_was_not_chosen(report, chosen):
    answer = report("stuck", chosen("0-3:2", 0, 2), "--json")
    assert "left no file" not in json.dumps(answer.rows)
    assert {row["rank"] for row in answer.rows if row["kind"] == "position"} <= {0, 2}


@pytest.mark.parametrize("setting", ["", "rubbish", "3-", "0-16777215:0", "9" * 20, "0-999999999"])
def test_a_setting_that_says_nothing_chooses_all(report, chosen, setting):
    answer = report("summary", chosen(setting, 0, 2), "--json")
    assert "ranks 1,3 of 4 are missing" in answer.err
