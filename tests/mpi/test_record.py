"""A window that a long job records (COMMPROF_RECORD): beside a log that thins, all calls are in the
kit, and no report rests on more than before."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from .harness import COMMPROF_RUN, Run, command_for, profiled
from .libraries import libraries
from .reporter import answer, text
from .test_replay import PASSES, counted, numbers, replayed

pytestmark = [pytest.mark.slow, pytest.mark.one_mpi]

RANKS, REDUCED, FEWEST = 2, 200, 4
PHASE = re.compile(r"phase (\d+) (\d+) (\d+)")
SETTINGS = {"COMMPROF_SAMPLES": "64K", "COMMPROF_RECORD": "1@0.4"}


def run_opened(folder: Path, **how):
    from commprof_report.run.run import run_open  # here, where reporter.py has set the path

    return run_open(folder, with_samples=True, **how)


def kit_of(folder: Path, path: Path):
    """It with its programs, which the reader only counts, and what was printed about it."""
    outcome = answer("replay", "kit", folder, "-o", path)
    assert outcome.exit_status == 0, outcome
    from commprof_report.replay import kit as kits  # here, where reporter.py has set the path

    kit, program = kits.read(path)[0], []
    for line in kits.opened(path).read().decode().splitlines():
        first, *others = line.split()
        if first == "call":
            kit.calls.append(kits.Call(others[1], count=int(others[4].replace("-", "0"))))
        elif first == "program":
            program = kit.programs[int(others[0]), int(others[1])] = []
        elif first.lstrip("~").isdigit():
            call, *requests = map(int, others)
            gap_ns, is_asleep = int(first.lstrip("~")), first[0] == "~"
            program.append(kits.Made(gap_ns, call, tuple(requests), is_asleep))
    assert sum(map(len, kit.programs.values())) == kit.made.total()
    return kit, outcome.stdout


def made_by_phase(kit) -> dict[str, Counter[int]]:
    """By call and phase: how often the ranks make it."""
    found: dict[str, Counter[int]] = {"MPI_Allreduce": Counter(), "MPI_Sendrecv": Counter()}
    for program in kit.programs.values():
        for made in program:
            call = kit.calls[made.call]
            if call.name in found:
                found[call.name][call.count - 1] += 1
    return found


def phases_within(stdout: str, records: list[tuple[int, int]]) -> set[int]:
    """The phases that the program itself says lay in the records of all ranks."""
    begin_ns, end_ns = max(begin for begin, _ in records), min(end for _, end in records)
    return {
        int(phase)
        for phase, began, ended in PHASE.findall(stdout)
        if begin_ns <= int(began) and int(ended) <= end_ns
    }


def check_kit(kit, stdout: str, records: list[tuple[int, int]], fewest: int = FEWEST) -> None:
    """The calls of each phase in the window that all ranks have; of those at its ends a part."""
    inner = phases_within(stdout, records)
    made = made_by_phase(kit)
    assert len(inner) >= fewest
    for phase in inner:
        assert made["MPI_Allreduce"][phase] == RANKS * REDUCED, phase
        assert made["MPI_Sendrecv"][phase] == RANKS, phase
    phases = set(made["MPI_Allreduce"])
    assert len(phases) - len(inner) <= 2 and phases == set(range(min(phases), max(phases) + 1))


def records_of(run: Run) -> list[tuple[int, int]]:
    """By the ranks' own clock, which is one on a host."""
    rows = map(run.rank_row, range(run.ranks))
    return [
        tuple(row["start_monotonic_ns"] + row[f"record_{end}_ns"] for end in ("begin", "end"))
        for row in rows
    ]


@pytest.fixture(scope="module")
def run(profile):
    """A job of more than its window, whose log has thinned."""
    return profile("phases", RANKS, "1800", env=SETTINGS)


def test_a_kit_has_all_calls_of_the_recorded_window(run, tmp_path):
    for rank in range(RANKS):
        assert run.rank_row(rank)["window_mask"] > 0  # the log has thinned
    kit, said = kit_of(run.folder, tmp_path / "job.kit")
    check_kit(kit, run.outcome.stdout, records_of(run), fewest=0)  # a second may see no phase end
    assert kit.window_ns <= 1e9
    assert re.search(r"^Recorded +[\d.]+ m?s of the 1.00 s asked for$", said, re.M), said
    assert said.splitlines()[1:] == text("replay", "show", tmp_path / "job.kit").splitlines()


def test_the_recorded_window_is_replayed_with_equal_counts(run, tmp_path):
    kit, said = kit_of(run.folder, tmp_path / "job.kit")
    made = numbers(next(line for line in said.splitlines() if line.startswith("Calls ")))
    for library in libraries():
        if not library.missing:
            again = replayed(library, RANKS, tmp_path / "job.kit", tmp_path / library.name)
            calls, _ = counted(again)
            assert calls == Counter({call: PASSES * count for call, count in made.items()})


def samples_read(folder: Path, **how) -> int:
    connection = run_opened(folder, **how).connection
    (count,) = connection.execute("SELECT count(*) FROM sample").fetchone()
    return count


def test_other_reports_rest_on_the_log_alone(run, tmp_path):
    """Samples of one time would outweigh those of all the others. A merged run has all."""
    in_log = (
        "SELECT count(*) FROM sample JOIN rank USING (world_rank) "
        "WHERE (start_unix_ns + end_ns) >> 20 & window_mask = 0"
    )
    in_logs = sum(run.query(rank, in_log)[0][0] for rank in range(RANKS))
    assert samples_read(run.folder) == in_logs < samples_read(run.folder, most_samples=None)
    text("merge", run.folder, tmp_path / "all.db")
    assert samples_read(tmp_path / "all.db") == in_logs
    kits = [kit_of(run.folder, tmp_path / "1.kit"), kit_of(tmp_path / "all.db", tmp_path / "2.kit")]
    assert kits[0][0] == kits[1][0]


def test_a_record_without_room_ends_early_and_says_so(mpi, profile, tmp_path):
    env = {**SETTINGS, "COMMPROF_RECORD": "60@0.1", "COMMPROF_MEMORY": "1M"}
    run = profile("phases", RANKS, "1800", env=env)
    kit, said = kit_of(run.folder, tmp_path / "job.kit")
    check_kit(kit, run.outcome.stdout, records_of(run))
    line = re.compile(r"^Recorded +.*: no more room on 2 of 2 ranks \(COMMPROF_MEMORY\)$", re.M)
    assert line.search(said) and line.search(text("replay", "show", tmp_path / "job.kit")), said
    seen = json.loads(text("seen", run.folder, "--json"))
    assert "record" in {row["reason"] for row in seen}


def test_a_job_that_is_killed_leaves_the_window(mpi, tmp_path):
    command = [COMMPROF_RUN, *command_for(mpi, "phases"), "1800", "kill"]
    settings = {**SETTINGS, "COMMPROF_RECORD": "60@0.05", "COMMPROF_LEDGER": "/dev/shm"}
    outcome = profiled(mpi, RANKS, command, tmp_path, **settings).outcome
    assert outcome.exit_status != 0
    connection = run_opened(tmp_path / "run", most_samples=None).connection
    records = connection.execute(
        "SELECT start_monotonic_ns + record_begin_ns, start_monotonic_ns + record_end_ns FROM rank"
    ).fetchall()
    kit, _ = kit_of(tmp_path / "run", tmp_path / "job.kit")
    check_kit(kit, outcome.stdout, records)


def test_a_job_that_ends_before_its_window_says_so_and_a_wrong_window_is_refused(profile, tmp_path):
    run = profile("phases", RANKS, "50", env={"COMMPROF_RECORD": "1@3600"})
    _, said = kit_of(run.folder, tmp_path / "job.kit")
    assert "nothing of the 1.00 s asked for: the job ended before; the kit is of another" in said
    run = profile("phases", RANKS, "50", env={"COMMPROF_RECORD": "20s"})
    lines = [line for line in run.outcome.stderr.splitlines() if "COMMPROF_RECORD" in line]
    assert lines == ["commprof: COMMPROF_RECORD=20s is not understood (SECONDS[@START]); using 0"]
