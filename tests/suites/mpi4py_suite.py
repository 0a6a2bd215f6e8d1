"""Run the mpi4py test suite with and without the profiler, and compare what came of every test.

mpi4py.sh sets up what this needs. Each combination of library, version and ranks runs once without
the profiler and once with it. A test that ended differently runs again, its module alone, REPEATS
times each way, to tell what the profiler breaks from what is flaky. The exit status is 1 if
anything is broken, or if a profile is not whole."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from common import (
    AS_ROOT,
    BROKEN,
    BUILD,
    FLAKY,
    ONCE,
    SUITES,
    ended_by,
    our_lines,
    require_build,
    rows,
    unprofiled_environment,
    verdict,
)

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
        # tcp: for spawned processes
        ("--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "--mca", "btl", "self,vader,tcp"),
        AS_ROOT,
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
        return [
            e.module
            for e in EXCLUSIONS
            if e.mpi == self.mpi.name and self.version in e.versions and self.ranks in e.ranks
        ]


class Run(NamedTuple):
    """Outcome of one run of the suite."""

    exit_status: int | None  # None: it hung
    # (rank, test) -> outcome, 'unfinished' if it began and did not end
    outcomes: dict[tuple[int, str], str]
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
    verdicts: dict[str, str]
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
        *(
            str(home / "bin/python"),
            str(Path(__file__).with_name("recorded_tests.py")),
            str(folder),
        ),
        *(str(SUITES / f"mpi4py-{combination.version}" / "test/runtests.py"), *arguments),
        *(word for module in combination.excluded for word in ("-e", module)),
    ]
    environment = (
        unprofiled_environment()
        | combination.mpi.environment
        | {"COMMPROF_OUTPUT": str(folder / "profile")}
    )
    with (folder / "output").open("w") as output:
        job = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
        exit_status = ended_by(job, TIMEOUT_S)
    return Run(exit_status, dict(outcomes(folder, combination.ranks)), folder)


def outcomes(folder: Path, ranks: int) -> Iterator[tuple[tuple[int, str], str]]:
    """Outcomes in each rank's file; the last line about a test counts."""
    for rank in range(ranks):
        file = folder / f"rank-{rank}"
        for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
            outcome, _, test = line.rpartition(" ")
            yield (rank, test), "unfinished" if outcome == "begin" else outcome


def differing(plain: Run, profiled: Run) -> list[str]:
    """The tests whose outcome differs on any rank; a test that one run did not
    reach differs too."""
    keys = plain.outcomes.keys() | profiled.outcomes.keys()
    return sorted(
        {
            test
            for rank, test in keys
            if plain.outcomes.get((rank, test)) != profiled.outcomes.get((rank, test))
        }
    )


def repeated(combination: Combination, module: str, *, is_profiled: bool) -> list[Run]:
    """A module alone, again and again."""
    folder = SUITES / "runs" / str(combination) / f"again-{module}"
    names = [f"{'with' if is_profiled else 'without'}-{i}" for i in range(REPEATS)]
    return [
        launch(combination, folder / name, "-i", f"^{module}(.py)?$", is_profiled=is_profiled)
        for name in names
    ]


def judged(combination: Combination, plain: Run, profiled: Run) -> Iterator[tuple[str, str]]:
    """Each test that differs, and what that means. A crash hides what follows it, so every module
    that has such a test runs by itself."""
    tests = differing(plain, profiled)
    for module in sorted({test.split(".")[0] for test in tests}):
        again = [
            repeated(combination, module, is_profiled=is_profiled) for is_profiled in (False, True)
        ]
        for test in (test for test in tests if test.split(".")[0] == module):
            first = [outcome_of(test, run, combination.ranks) for run in (plain, profiled)]
            without, within = (
                [outcome_of(test, run, combination.ranks) for run in runs] for runs in again
            )
            print(
                f"  {test}: without the profiler {first[0]}, again {without}; with it {first[1]}, "
                f"again {within}",
                flush=True,
            )
            yield test, verdict({first[0], *without}, first[1], set(within))


def outcome_of(test: str, run: Run, ranks: int) -> str:
    """On all ranks; written once if it is the same everywhere."""
    return ", ".join(sorted({run.outcomes.get((rank, test), "absent") for rank in range(ranks)}))


def passed_everywhere(run: Run, ranks: int) -> list[str]:
    tests = {test for _, test in run.outcomes}
    return [
        test
        for test in tests
        if all(run.outcomes.get((rank, test)) == "passed" for rank in range(ranks))
    ]


CALLS = "SELECT call, SUM(count) FROM cell WHERE measure IN ('call', 'poll') GROUP BY call"


def read_profile(folder: Path, ranks: int) -> Profile:
    databases = [path for rank in range(ranks) if (path := folder / f"rank-{rank}.db").exists()]
    counts = [row for path in databases for row in rows(path, CALLS)]
    return Profile(
        len(databases), sum(count for _, count in counts), len({call for call, _ in counts})
    )


def compare(combination: Combination, arguments: list[str]) -> Comparison:
    folder = SUITES / "runs" / str(combination)
    plain = launch(combination, folder / "without", *arguments, is_profiled=False)
    profiled = launch(combination, folder / "with", *arguments, is_profiled=True)
    verdicts = dict(judged(combination, plain, profiled))
    if profiled.exit_status != plain.exit_status and not verdicts:
        verdicts[
            f"exit status {profiled.exit_status} with the profiler, {plain.exit_status} without"
        ] = BROKEN
    profile = read_profile(profiled.folder / "profile", combination.ranks)
    if profile.databases != combination.ranks or not profile.calls:
        verdicts[f"{profile.databases} databases with {profile.calls} calls"] = BROKEN
    return Comparison(
        combination, plain, profiled, profile, verdicts, our_lines(profiled.folder / "output")
    )


HEADINGS = (
    "| MPI | mpi4py | ranks | tests | passed without | passed with | broken | once | flaky "
    "| calls | functions |"
)


def table_line(comparison: Comparison) -> str:
    combination, plain, profiled, profile, verdicts, _ = comparison
    tests = {test for _, test in plain.outcomes}
    passed = [len(passed_everywhere(run, combination.ranks)) for run in (plain, profiled)]
    cells = [combination.mpi.name, combination.version, combination.ranks, len(tests), *passed]
    cells += [list(verdicts.values()).count(verdict) for verdict in (BROKEN, ONCE, FLAKY)]
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
    parser = argparse.ArgumentParser(
        prog="mpi4py.sh", description="the mpi4py test suite, with the profiler and without"
    )
    parser.add_argument("--mpi", action="append", choices=[mpi.name for mpi in MPIS])
    parser.add_argument("--version", action="append", choices=VERSIONS)
    parser.add_argument("--ranks", action="append", type=int, choices=RANKS)
    parser.add_argument("--include", metavar="REGEX", help="only the modules that match")
    arguments = parser.parse_args()
    require_build(parser.prog)

    comparisons = []
    for combination in chosen(arguments):
        print(
            f"mpi4py {combination.version}, {combination.mpi.name}, ranks: {combination.ranks}",
            flush=True,
        )
        comparisons.append(
            compare(combination, ["-i", arguments.include] if arguments.include else [])
        )
    if not comparisons:
        print("SKIPPED: the mpi4py suite: nothing to run it with")
        return 0

    print("", HEADINGS, "|---|---|" + "---:|" * 9, *map(table_line, comparisons), sep="\n")
    for comparison in comparisons:
        for test, verdict_on_it in comparison.verdicts.items():
            print(f"{comparison.combination}: {verdict_on_it}: {test}")
        for line in comparison.said:
            print(f"{comparison.combination}: said: {line}")
    return any(BROKEN in comparison.verdicts.values() for comparison in comparisons)


sys.exit(main())
