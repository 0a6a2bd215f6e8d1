"""Run the mpi4py test suite with and without the profiler, and compare what came of every test.

mpi4py.sh sets up what this needs. Each combination of library, version and ranks runs once without the profiler and once
with it. A test that ended differently runs again, its whole module alone, REPEATS times each way: it is flaky if its outcome
varies without the profiler, else it is broken by us. The exit status is 1 if any is broken, or if a profile is not whole."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parents[2]
SUITES = REPOSITORY / os.environ.get("SUITES", "build/suites")
BUILD = REPOSITORY / os.environ.get("BUILD", "build")
TIMEOUT_S = 900
REPEATS = 3

VERSIONS = ("3.1.6", "4.1.2")
RANKS = (1, 2)


class Mpi(NamedTuple):
    name: str
    launch_options: tuple[str, ...]
    environment: dict[str, str]


MPIS = (
    Mpi(
        "openmpi",
        ("--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "--mca", "btl", "self,vader,tcp"),  # tcp: for spawned processes
        {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"},
    ),
    Mpi("mpich", (), {}),
)


class Exclusion(NamedTuple):
    """A module that hangs without the profiler."""

    mpi: str
    versions: tuple[str, ...]
    ranks: tuple[int, ...]
    module: str


EXCLUSIONS = (
    Exclusion("openmpi", ("3.1.6", "4.1.2"), (1, 2), "test_spawn"),  # now and then
    Exclusion("mpich", ("4.1.2",), (2,), "test_util_sync"),  # always
)


class Combination(NamedTuple):
    mpi: Mpi
    version: str
    ranks: int

    def __str__(self) -> str:
        return f"{self.mpi.name}-{self.version}-{self.ranks}"

    @property
    def excluded(self) -> list[str]:
        return [e.module for e in EXCLUSIONS if e.mpi == self.mpi.name and self.version in e.versions and self.ranks in e.ranks]


class Run(NamedTuple):
    """What came of one run of the suite."""

    exit_status: int | None  # None: it hung
    outcomes: dict[tuple[int, str], str]  # (rank, test) -> outcome, 'unfinished' if it began and did not end
    folder: Path


class Profile(NamedTuple):
    databases: int
    calls: int
    functions: int  # how many different ones


class Comparison(NamedTuple):
    combination: Combination
    plain: Run
    profiled: Run
    profile: Profile
    flaky: list[str]
    broken: list[str]
    said: list[str]  # our lines on stderr, other than the closing one


def launch(combination: Combination, folder: Path, *arguments: str, is_profiled: bool) -> Run:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    home = SUITES / f"mpi4py-{combination.version}-{combination.mpi.name}"
    command = [
        f"mpirun.{combination.mpi.name}",
        *combination.mpi.launch_options,
        *("-n", str(combination.ranks)),
        *([str(BUILD / "bin/commprof-run")] if is_profiled else []),
        *(str(home / "bin/python"), str(Path(__file__).with_name("recorded_tests.py")), str(folder)),
        *(str(SUITES / f"mpi4py-{combination.version}" / "test/runtests.py"), *arguments),
        *(word for module in combination.excluded for word in ("-e", module)),
    ]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("COMMPROF_", "LD_PRELOAD"))}
    environment = inherited | combination.mpi.environment | {"COMMPROF_OUTPUT": str(folder / "profile")}
    with (folder / "output").open("w") as output:
        job = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=folder, env=environment, start_new_session=True
        )
        exit_status = wait_or_end(job)
    return Run(exit_status, dict(outcomes(folder, combination.ranks)), folder)


def wait_or_end(job: subprocess.Popen) -> int | None:
    """Its exit status; None for a job that hangs, which is ended: mpirun first, so that it can end its ranks."""
    try:
        return job.wait(TIMEOUT_S)
    except subprocess.TimeoutExpired:
        job.terminate()
    try:
        job.wait(20)
    except subprocess.TimeoutExpired:
        pass
    try:
        os.killpg(job.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    job.wait()
    return None


def outcomes(folder: Path, ranks: int) -> Iterator[tuple[tuple[int, str], str]]:
    """What each rank's file says; the last line about a test counts."""
    for rank in range(ranks):
        file = folder / f"rank-{rank}"
        for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
            outcome, _, test = line.rpartition(" ")
            yield (rank, test), "unfinished" if outcome == "begin" else outcome


def differing(plain: Run, profiled: Run) -> list[str]:
    """The tests whose outcome differs on any rank; a test that one run did not reach differs too."""
    keys = plain.outcomes.keys() | profiled.outcomes.keys()
    return sorted({test for rank, test in keys if plain.outcomes.get((rank, test)) != profiled.outcomes.get((rank, test))})


def repeated(combination: Combination, test: str, *, is_profiled: bool) -> list[str]:
    """What comes of a test on all ranks when its module runs alone, again and again."""
    module = test.split(".")[0]
    folder = SUITES / "runs" / f"{combination}-again"
    runs = [launch(combination, folder, "-i", f"{module}$", is_profiled=is_profiled) for _ in range(REPEATS)]
    return [",".join(run.outcomes.get((rank, test), "absent") for rank in range(combination.ranks)) for run in runs]


def is_flaky(combination: Combination, test: str) -> bool:
    without, within = (repeated(combination, test, is_profiled=is_profiled) for is_profiled in (False, True))
    print(f"  {test}: again without the profiler {without}, with it {within}", flush=True)
    return len(set(without)) > 1 or set(without) == set(within)


def passed_everywhere(run: Run, ranks: int) -> list[str]:
    tests = {test for _, test in run.outcomes}
    return [test for test in tests if all(run.outcomes.get((rank, test)) == "passed" for rank in range(ranks))]


CALLS = "SELECT call, SUM(count) FROM cell WHERE measure IN ('call', 'poll') GROUP BY call"


def read_profile(folder: Path, ranks: int) -> Profile:
    databases = [path for rank in range(ranks) if (path := folder / f"rank-{rank}.db").exists()]
    counts = [row for path in databases for row in rows(path, CALLS)]
    return Profile(len(databases), sum(count for _, count in counts), len({call for call, _ in counts}))


def rows(database: Path, sql: str) -> list[tuple]:
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        return connection.execute(sql).fetchall()


def our_lines(output: Path) -> list[str]:
    lines = output.read_text(encoding="utf-8", errors="replace").splitlines()
    return [line for line in lines if "commprof" in line and "commprof: profile of" not in line]


def compare(combination: Combination, arguments: list[str]) -> Comparison:
    folder = SUITES / "runs" / str(combination)
    plain = launch(combination, folder / "without", *arguments, is_profiled=False)
    profiled = launch(combination, folder / "with", *arguments, is_profiled=True)
    different = differing(plain, profiled)
    broken = [test for test in different if not is_flaky(combination, test)]
    if profiled.exit_status != plain.exit_status and not different:
        broken.append(f"exit status {profiled.exit_status} with the profiler, {plain.exit_status} without")
    profile = read_profile(profiled.folder / "profile", combination.ranks)
    if profile.databases != combination.ranks or not profile.calls:
        broken.append(f"{profile.databases} databases with {profile.calls} calls")
    flaky = [test for test in different if test not in broken]
    return Comparison(combination, plain, profiled, profile, flaky, broken, our_lines(profiled.folder / "output"))


HEADINGS = "| MPI | mpi4py | ranks | tests | passed without | passed with | differ | flaky | calls | functions |"


def table_line(comparison: Comparison) -> str:
    combination, plain, profiled, profile, flaky, broken, _ = comparison
    tests = {test for _, test in plain.outcomes}
    passed = [len(passed_everywhere(run, combination.ranks)) for run in (plain, profiled)]
    cells = [combination.mpi.name, combination.version, combination.ranks, len(tests), *passed, len(broken), len(flaky)]
    return "| " + " | ".join(map(str, [*cells, profile.calls, profile.functions])) + " |"


def chosen(arguments: argparse.Namespace) -> Iterator[Combination]:
    for mpi in MPIS:
        for version in VERSIONS:
            if (SUITES / f"mpi4py-{version}-{mpi.name}" / "ready").exists():
                yield from (
                    Combination(mpi, version, ranks)
                    for ranks in RANKS
                    if mpi.name in (arguments.mpi or mpi.name)
                    and version in (arguments.version or version)
                    and ranks in (arguments.ranks or RANKS)
                )


def main() -> int:
    parser = argparse.ArgumentParser(prog="mpi4py.sh", description="the mpi4py test suite, with the profiler and without")
    parser.add_argument("--mpi", action="append", choices=[mpi.name for mpi in MPIS])
    parser.add_argument("--version", action="append", choices=VERSIONS)
    parser.add_argument("--ranks", action="append", type=int, choices=RANKS)
    parser.add_argument("--include", metavar="REGEX", help="only the modules that match")
    arguments = parser.parse_args()
    if not (BUILD / "bin/commprof-run").exists():
        sys.exit(f"mpi4py.sh: no {BUILD}/bin/commprof-run; run `make` first")

    comparisons = []
    for combination in chosen(arguments):
        print(f"mpi4py {combination.version}, {combination.mpi.name}, ranks: {combination.ranks}", flush=True)
        comparisons.append(compare(combination, ["-i", arguments.include] if arguments.include else []))
    if not comparisons:
        print("SKIPPED: the mpi4py suite: nothing to run it with")
        return 0

    print("", HEADINGS, "|---|---|" + "---:|" * 8, *map(table_line, comparisons), sep="\n")
    for comparison in comparisons:
        for word, lines in (("differs", comparison.broken), ("flaky", comparison.flaky), ("said", comparison.said)):
            for line in lines:
                print(f"{comparison.combination}: {word}: {line}")
    return any(comparison.broken for comparison in comparisons)


sys.exit(main())
