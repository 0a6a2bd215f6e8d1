"""Injects each fault many times and says whether any call was lost or doubled: python3 -m faults
[--times N] [--only WORDS]."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from mpi.libraries import Mpi, libraries

from . import memory_cgroup
from .table import FAULTS
from .trial import Fault, Outcome, tried

LINE = "{:46} {:8} {:>5} {:>11} {:>10} {:>10} {:>10}  {}"


def why_not(mpi: Mpi, fault: Fault) -> str | None:
    """Why this fault cannot be tried here."""
    if mpi.missing:
        return f"no {mpi.missing} here"
    if fault.python and not mpi.has_mpi4py:
        return f"no mpi4py for {mpi.name} here"
    if fault.memory_bytes:
        with memory_cgroup.limited(fault.memory_bytes) as prefix:
            return None if prefix else "no memory cgroup can be made here"
    return None


def trials(mpi: Mpi, fault: Fault, times: int, seed: int, folder: Path) -> Iterator[Outcome]:
    for number in range(times):
        chance = random.Random(f"{seed} {mpi.name} {fault.name} {number}")
        yield tried(mpi, fault, chance, folder / f"{mpi.name}-{FAULTS.index(fault)}-{number}")


def try_fault(mpi: Mpi, fault: Fault, times: int, seed: int, folder: Path) -> bool:
    """One line of the table; whether all is well."""
    outcomes = list(trials(mpi, fault, times, seed, folder))
    bad = [outcome for outcome in outcomes if outcome.complaints]
    returned, begun, found, early = (
        sum(getattr(o, name) for o in outcomes)
        for name in ("returned", "begun", "found", "ended_early")
    )
    verdict = "nothing lost or doubled" if not bad else f"WRONG in {len(bad)}"
    print(
        LINE.format(fault.name, mpi.name, times, early, returned, begun, found, verdict), flush=True
    )
    for outcome in bad:
        print(*(f"    {complaint}" for complaint in outcome.complaints), sep="\n", flush=True)
    return not bad


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--times", type=int, default=10, help="how often each fault is tried under each MPI (10)"
    )
    parser.add_argument("--only", default="", help="faults whose name contains this")
    parser.add_argument(
        "--seed", type=int, default=0, help="of the instants at which faults strike (0)"
    )
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="commprof-faults-"))
    print(
        LINE.format("fault", "MPI", "tried", "ended early", "returned", "begun", "found", "verdict")
    )
    well = True
    for mpi in libraries():
        for fault in FAULTS:
            if options.only not in fault.name:
                continue
            if reason := why_not(mpi, fault):
                print(f"{fault.name:46} {mpi.name:8} SKIPPED: {reason}")
            else:
                well &= try_fault(mpi, fault, options.times, options.seed, folder)
    if well:
        folder.rmdir()
    else:
        print(f"what the jobs left is in {folder}")
    return not well


if __name__ == "__main__":
    sys.exit(main())
