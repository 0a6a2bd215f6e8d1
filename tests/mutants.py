#!/usr/bin/env python3
"""Faults of one token that tests do not notice.

    tests/mutants.py [--number 300] [--seed 1] FILE... -- COMMAND...

In a worktree of its own one token of the files is changed at a time, comparisons first, and COMMAND
runs there. It notices a fault if it fails, or takes three times as long as without one. Each line
is a mutant that survived; the last one counts. Run it before tests go, and after: the mutants of a
seed are the same as long as the files are.

    tests/mutants.py report/commprof_report/late/*.py -- pytest -qx tests/report/test_late.py
    tests/mutants.py src/ledger/*.c -- sh -c 'make -f tests/unit/Makefile BUILD=b && b/unit'
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TOP = Path(__file__).resolve().parents[1]
COMPARED = {"<=": "<", ">=": ">", "<": "<=", ">": ">=", "==": "!=", "!=": "=="}
OTHERS = {"&&": "||", "||": "&&", "+": "-", "-": "+", " and ": " or ", " or ": " and ", "0": "1"}
CHANGED = {**COMPARED, **OTHERS, "1": "2", "not ": ""}
WORDS = r'"""[\s\S]*?"""|/\*[\s\S]*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//.*|#.*'
OPERATORS = r" (<=|>=|==|!=|<|>|&&|\|\||[+-]) |( and | or )|\b(not )|(?<![\w.])([01])(?![\w.])"
TOKEN = re.compile(f"{WORDS}|{OPERATORS}")


class Mutant(NamedTuple):
    path: str
    at: int
    old: str

    def line(self, text: str) -> str:
        number = text.count("\n", 0, self.at) + 1
        return f"{self.path}:{number}: {self.old.strip()} -> {CHANGED[self.old].strip()}"


def mutants(path: str, text: str) -> Iterator[Mutant]:
    """Strings and comments match without a group."""
    for found in TOKEN.finditer(text):
        if found.lastindex:
            yield Mutant(path, found.start(found.lastindex), found[found.lastindex])


def chosen(paths: list[str], number: int, seed: int) -> list[Mutant]:
    every = [each for path in paths for each in mutants(path, (TOP / path).read_text())]
    random.Random(seed).shuffle(every)
    return sorted(every, key=lambda each: each.old not in COMPARED)[:number]


def passes(command: list[str], folder: Path, limit_s: float | None = None) -> bool:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, timeout=limit_s)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def main() -> None:
    options, command = sys.argv[1:], []
    if "--" in options:
        place = options.index("--")
        options, command = options[:place], options[place + 1 :]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--number", type=int, default=300, help="how many mutants (300)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (1)")
    parser.add_argument("files", nargs="+", metavar="FILE", help="from the top folder")
    asked = parser.parse_args(options)
    found, survived = chosen(asked.files, asked.number, asked.seed), 0
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        subprocess.run(["git", "worktree", "add", "-q", "--detach", tree], cwd=TOP, check=True)
        try:
            passes(command, tree)  # builds what it needs
            begin_s = time.monotonic()
            if not passes(command, tree):
                sys.exit("mutants: the command fails without a fault")
            limit_s = 10 + 3 * (time.monotonic() - begin_s)
            for mutant in found:
                text = (tree / mutant.path).read_text()
                at, after = mutant.at, mutant.at + len(mutant.old)
                (tree / mutant.path).write_text(text[:at] + CHANGED[mutant.old] + text[after:])
                if passes(command, tree, limit_s):
                    survived += 1
                    print(mutant.line(text), flush=True)
                (tree / mutant.path).write_text(text)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=TOP, check=True)
    print(f"{len(found) - survived} of {len(found)} noticed")


if __name__ == "__main__":
    main()
