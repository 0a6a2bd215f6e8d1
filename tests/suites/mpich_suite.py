"""Run MPICH's own test suite with and without the profiler, and compare what came of every test.

mpich.sh sets up what this needs. Each line of the suite's lists that wants at most RANKS ranks is
built and runs once each way. A test that ended differently runs REPEATS times more each way, to
tell what the profiler breaks from what is flaky. The exit status is 1 if anything is broken."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from common import (
    BROKEN,
    BUILD,
    FLAKY,
    ONCE,
    SUITES,
    ended_by,
    our_lines,
    require_build,
    unprofiled_environment,
    verdict,
)

TIMEOUT_S = 600
REPEATS = 3
RANKS = 2
TESTS = SUITES / "mpich/tests"
RUNS = SUITES / "runs/mpich"
PASSED, FAILED, HUNG, NOT_BUILT = "passed", "failed", "unfinished", "not built"
FOLDERS = (
    "attr coll comm cxx datatype errhan f08 f77 f90 group info init io part pt2pt rma "
    "threads topo".split()
)


class Test(NamedTuple):
    """A line of a list: `program ranks name=value...`."""

    folder: str
    program: str
    ranks: int
    options: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return " ".join(
            [
                f"{self.folder}/{self.program}",
                str(self.ranks),
                *(f"{name}={value}" for name, value in self.options),
            ]
        )

    def words(self, name: str) -> list[str]:
        return [value for option, value in self.options if option == name]


def tests_of(folder: str) -> Iterator[Test]:
    """Tests of a folder's list and of the lists of the folders that it names."""
    file = TESTS / folder / "testlist"
    for line in file.read_text().splitlines() if file.exists() else []:
        words = line.partition("#")[0].split()
        if not words or words[0].startswith("!"):
            continue
        if (TESTS / folder / words[0]).is_dir():
            yield from tests_of(f"{folder}/{words[0]}")
            continue
        ranks = int(words[1]) if len(words) > 1 and words[1].isdigit() else 2
        options = tuple(tuple(word.split("=", 1)) for word in words[2:] if "=" in word)
        yield Test(folder, words[0], ranks, options)


def is_wanted(test: Test, only: str) -> bool:
    return (
        test.ranks <= RANKS and not test.words("xfail") and re.search(only, str(test)) is not None
    )


def is_built(test: Test) -> bool:
    command = ["make", "--silent", "-C", TESTS / test.folder, test.program]
    return (
        subprocess.run(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL
        ).returncode
        == 0
    )


def launch(test: Test, output: Path, *, is_profiled: bool) -> str:
    """Outcome of one run. A test says `No Errors`, and nothing else; one with resultTest=TestStatus
    may end as it likes."""
    output.parent.mkdir(parents=True, exist_ok=True)
    profiler = [str(BUILD / "bin/commprof-run")] if is_profiled else []
    program = [*profiler, f"./{test.program}", *test.words("arg")]
    command = ["mpiexec.mpich", "-n", str(test.ranks), *program]
    settings = dict(word.split("=", 1) for word in test.words("env")) | {
        "COMMPROF_OUTPUT": str(output) + ".profile"
    }
    with output.open("w") as file:
        job = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, cwd=TESTS / test.folder,
            env=unprofiled_environment() | settings, start_new_session=True,
        )  # fmt: skip
        status = ended_by(job, TIMEOUT_S)
    return HUNG if status is None else outcome(test, status, output.read_text(errors="replace"))


def outcome(test: Test, status: int, text: str) -> str:
    lines = [
        line
        for line in text.splitlines()
        if line.strip() and not line.startswith("commprof: profile of")
    ]
    if test.words("resultTest"):
        return f"status {min(status, 1)}"
    says_so = any(
        re.fullmatch(r"\s*(no errors|test passed)\s*", line, re.IGNORECASE) for line in lines
    )
    return PASSED if status == 0 and says_so and len(lines) == 1 else FAILED


class Ended(NamedTuple):
    """How a test ended without the profiler and with it; and if differently, what that means."""

    test: Test
    without: str
    profiled: str
    verdict: str
    said: list[str]


def compare(number: int, test: Test) -> Ended:
    if not is_built(test):
        return Ended(test, NOT_BUILT, NOT_BUILT, "", [])
    first = [launch(test, RUNS / f"{number}-{way}", is_profiled=bool(way)) for way in (0, 1)]
    said = our_lines(RUNS / f"{number}-1")
    if first[0] == first[1]:
        return Ended(test, *first, "", said)
    again = [
        {launch(test, RUNS / f"{number}-{way}-{i}", is_profiled=bool(way)) for i in range(REPEATS)}
        for way in (0, 1)
    ]
    return Ended(test, *first, verdict({first[0]} | again[0], first[1], again[1]), said)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="mpich.sh", description="MPICH's test suite, with the profiler and without"
    )
    parser.add_argument(
        "--only", metavar="REGEX", default="", help="only the lines that match, such as ^comm/"
    )
    arguments = parser.parse_args()
    require_build(parser.prog)
    tests = [
        test for folder in FOLDERS for test in tests_of(folder) if is_wanted(test, arguments.only)
    ]
    ended: list[Ended] = []
    for number, test in enumerate(tests):
        ended.append(compare(number, test))
        last = ended[-1]
        if last.verdict or last.said:
            print(
                f"{test}: without the profiler {last.without}, with it {last.profiled}: "
                f"{last.verdict}",
                *last.said,
                flush=True,
            )
        elif number % 50 == 49:
            print(f"{number + 1} of {len(tests)} lines", flush=True)

    print(
        "",
        "| folder | lines | not built | passed without | passed with | broken | once | flaky |",
        "|---|" + "---:|" * 7,
        sep="\n",
    )
    for folder in dict.fromkeys(test.folder.split("/")[0] for test in tests):
        print(
            table_line(folder, [each for each in ended if each.test.folder.split("/")[0] == folder])
        )
    print(table_line("all", ended))
    return any(each.verdict == BROKEN for each in ended)


def table_line(name: str, ended: list[Ended]) -> str:
    passed = [sum(each[way] in (PASSED, "status 0") for each in ended) for way in (1, 2)]
    verdicts = Counter(each.verdict for each in ended)
    not_built = sum(each.without == NOT_BUILT for each in ended)
    numbers = (len(ended), not_built, *passed, *(verdicts[word] for word in (BROKEN, ONCE, FLAKY)))
    return f"| {name} | " + " | ".join(map(str, numbers)) + " |"


sys.exit(main())
