"""Planted effects: an experiment whose arms differ by how long a layer below the profiler delays
each MPI_Allreduce: by 5, 10 and 30 %.

    cd tests && python3 -m mpi.effects [--blocks 60] [--of 10] [--own] [--plain] [FOLDER]

takes every ten blocks as an experiment of its own: how often is each effect found, and the same arm
against itself, and what do these experiments say that they would find with a probability of 80 %?
The ranks run before all other processes, with real-time priority, so the experiment is quiet on a
busy machine; --plain leaves that out. With --own the delay is not a part of a fixed time, but of
that which each call takes by itself. tests/mpi/test_compare.py runs a short form.
"""

from __future__ import annotations

import argparse
import math
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from statistics import median

from .harness import LIBRARY, command_for, compile_program, unprofiled_environment
from .libraries import REPOSITORY, Mpi, libraries

EXPERIMENT = REPOSITORY / "build/bin/commprof-experiment"
REAL_TIME = ("chrt", "-f", "1")
DELAY_US, ROUNDS, OWN_ROUNDS, WORK_US = 4000, 40, 2000, 100
EFFECTS = (5, 10, 30)  # %


@lru_cache
def has_real_time() -> bool:
    return subprocess.run([*REAL_TIME, "true"], capture_output=True).returncode == 0


def arm(mpi: Mpi, name: str, effect: int, priority: Sequence[str], is_own: bool) -> str:
    layer = compile_program(mpi, "slow_network", "-shared", "-fPIC")
    delayed = [
        *priority,
        "env",
        f"LD_PRELOAD={LIBRARY}:{layer}",
        f"SLOW_NETWORK_PERCENT={effect}"
        if is_own
        else f"SLOW_NETWORK_US={DELAY_US * (100 + effect) // 100}",
    ]
    rounds = str(OWN_ROUNDS if is_own else ROUNDS)
    program = [*command_for(mpi, "plants"), "blocking", rounds, str(WORK_US), "0", "-1"]
    return f"{name}: {shlex.join([*mpi.mpirun, '-n', '2'])} {{}} {shlex.join([*delayed, *program])}"


def run(
    mpi: Mpi,
    folder: Path,
    effects: Sequence[int],
    blocks: int,
    priority: Sequence[str] = REAL_TIME,
    is_own: bool = False,
) -> Path:
    """The experiment: arms `base`, `base-again`, and one for each effect, named like `5`."""
    named = {"base": 0, **{str(effect): effect for effect in effects}}
    arms = [
        word
        for name, effect in named.items()
        for word in ("--arm", arm(mpi, name, effect, priority, is_own))
    ]
    words = [str(EXPERIMENT), "run", "exp", "--aa", "--blocks", str(blocks), *arms]
    subprocess.run(
        words,
        check=True,
        cwd=folder,
        env=unprofiled_environment() | mpi.environment,
        stdout=subprocess.DEVNULL,
    )
    return folder / "exp"


def judge(experiment: Path, blocks_of_each: int) -> None:
    """Prints a line for each arm."""
    sys.path.insert(0, str(REPOSITORY / "report"))
    from commprof_report.compare.comparison import compare
    from commprof_report.compare.figures import figures
    from commprof_report.compare.judge import Rules
    from commprof_report.compare.sides import experiment_read

    chosen = experiment_read(experiment)
    reference, *sides = (
        each._replace(runs=[figures(path)[0] for path in each.paths], of="") for each in chosen
    )
    print("arm         transfer  experiments  found  same  would have been found")
    for side in sides:
        verdicts = []
        for first in range(0, len(side.runs) - blocks_of_each + 1, blocks_of_each):
            part = slice(first, first + blocks_of_each)
            both = [
                each._replace(runs=each.runs[part], blocks=each.blocks[part])
                for each in (reference, side)
            ]
            verdicts.append(compare(both, Rules(allowed=("disturbed",))).pairs[0].verdict)
        outcomes = Counter(verdict.verdict for verdict in verdicts)
        change, seen = (
            median(values)
            for values in (
                [each.change for each in verdicts],
                [each.detectable or math.inf for each in verdicts],
            )
        )
        found = outcomes["more"] + outcomes["less"]
        print(
            f"{side.name:<10} {100 * change:>+8.1f} % {len(verdicts):>11} {found:>6} "
            f"{outcomes['same']:>5}  {100 * seen:.2g} % (median)"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--blocks", type=int, default=60)
    parser.add_argument(
        "--of", type=int, default=10, help="blocks of each experiment that is judged"
    )
    parser.add_argument("--own", action="store_true", help="a part of each call's own time")
    parser.add_argument("--plain", action="store_true", help="ranks without real-time priority")
    given = parser.parse_args()
    where = given.folder or Path(tempfile.mkdtemp())
    where.mkdir(parents=True, exist_ok=True)
    library = next(mpi for mpi in libraries() if not mpi.missing and mpi.family == "mpich")
    priority = () if given.plain else REAL_TIME
    judge(run(library, where, EFFECTS, given.blocks, priority, given.own), given.of)
