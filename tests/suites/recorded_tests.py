"""Run the mpi4py test suite in one rank and write down, line by line, what came of every test.

    recorded_tests.py FOLDER RUNTESTS [argument of the suite]...

The suite's own output mixes the ranks' lines. Here each rank has a file of its own,
FOLDER/rank-<n>, with a line `begin NAME` before and `OUTCOME NAME` after each test, so that a test
that crashed or hung is the one without an outcome. No MPI call is added: the rank comes from the
launcher's environment."""

from __future__ import annotations

import os
import runpy
import sys
import unittest
from pathlib import Path

RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK")


def rank_of_this_process() -> int:
    return next((int(os.environ[name]) for name in RANK_VARIABLES if name in os.environ), 0)


class Recording(unittest.TextTestResult):
    """A result that writes each test's outcome when it is known; a test with subtests has the worst
    of them."""

    file = None

    def write(self, word: str, test: unittest.TestCase) -> None:
        print(word, test.id(), file=self.file, flush=True)

    def startTest(self, test: unittest.TestCase) -> None:
        self.outcome = "passed"
        self.write("begin", test)
        super().startTest(test)

    def stopTest(self, test: unittest.TestCase) -> None:
        super().stopTest(test)
        self.write(self.outcome, test)

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        self.outcome = "skipped" if self.outcome == "passed" else self.outcome
        super().addSkip(test, reason)

    def addFailure(self, test: unittest.TestCase, err: tuple) -> None:
        self.outcome = "failed"
        super().addFailure(test, err)

    def addError(self, test: unittest.TestCase, err: tuple) -> None:
        self.outcome = "failed"
        # what failed is the set-up of a class or a module: no test began
        if not isinstance(test, unittest.TestCase):
            self.write("failed", test)
        super().addError(test, err)

    def addSubTest(
        self, test: unittest.TestCase, subtest: unittest.TestCase, err: tuple | None
    ) -> None:
        if err is not None:
            self.outcome = "failed"
        super().addSubTest(test, subtest, err)

    def addExpectedFailure(self, test: unittest.TestCase, err: tuple) -> None:
        self.outcome = "failed as expected"
        super().addExpectedFailure(test, err)

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:
        self.outcome = "failed"
        super().addUnexpectedSuccess(test)


def main() -> None:
    folder, script = Path(sys.argv[1]), sys.argv[2]
    Recording.file = (folder / f"rank-{rank_of_this_process()}").open("w", encoding="utf-8")
    unittest.TextTestRunner.resultclass = Recording
    sys.dont_write_bytecode = True
    sys.argv = [script, *sys.argv[3:]]
    sys.path[0] = str(Path(script).parent)
    runpy.run_path(script, run_name="__main__")


main()
