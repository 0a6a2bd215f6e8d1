"""Plays each plant and its balanced twin many times, and says how often the reports were right: python3 -m truth [--times N] [--only WORDS]
[--markdown FILE]. The table of docs/TRUTH.md is what --markdown writes."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import NamedTuple

from mpi.libraries import Mpi, libraries

from .plants import PLANTS, Plant
from .trial import is_accused, is_confirmed, judge, other_accusations, play, why_not

HEADS = ("plant", "library", "runs", "right", "nobody", "wrong", "complaints", "cost error, median", "worst", "twins", "accused")
HEADS += ("by the logs too", "other commands accuse")


class Line(NamedTuple):
    """A plant under a library: counts over the runs whose logs show the plant, and over those of the twin."""

    plant: Plant
    library: str
    runs: int
    undisturbed: int
    who: dict[str, int]
    complaints: list[str]
    errors: list[float]
    twins: int
    accused: int
    confirmed: int
    others_accuse: dict[str, int]


def line_of(mpi: Mpi, plant: Plant, times: int, folder: Path) -> Line:
    who = {"right": 0, "nobody": 0, "wrong": 0}
    complaints: list[str] = []
    errors: list[float] = []
    others: dict[str, int] = {}
    undisturbed = accused = confirmed = 0
    for number in range(times):
        trial = play(mpi, plant, False, folder / "plant")
        judgement = judge(trial)
        if judgement.holds:
            undisturbed += 1
            who[judgement.who] += 1
            complaints += [f"run {number}: {complaint}" for complaint in judgement.complaints]
            errors += [judgement.cost_error] if judgement.cost_error is not None else []
        shutil.rmtree(folder / "plant")
        twin = play(mpi, plant, True, folder / "twin")
        accused += is_accused(twin)
        confirmed += is_accused(twin) and is_confirmed(twin)
        for command in other_accusations(twin.run):
            others[command] = others.get(command, 0) + 1
        shutil.rmtree(folder / "twin")
    return Line(plant, mpi.name, times, undisturbed, who, complaints, errors, times, accused, confirmed, others)


def cells(line: Line) -> list[str]:
    runs = str(line.runs) if line.runs == line.undisturbed else f"{line.undisturbed} of {line.runs}"
    errors = [f"{100 * median(line.errors):.1f} %", f"{100 * max(line.errors):.1f} %"] if line.errors else ["-", "-"]
    others = ", ".join(f"{command} {count}" for command, count in line.others_accuse.items()) or "-"
    who = [str(line.who[key]) for key in ("right", "nobody", "wrong")]
    counts = [len(line.complaints), *errors, line.twins, line.accused, line.confirmed]
    return [line.plant.name, line.library, runs, *who, *map(str, counts), others]


def markdown(lines: Iterable[Line]) -> str:
    rows = [HEADS, ["---"] * len(HEADS), *map(cells, lines)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def totals(lines: list[Line]) -> str:
    right, wrong = (sum(line.who[key] for line in lines) for key in ("right", "wrong"))
    undisturbed = sum(line.undisturbed for line in lines)
    twins, accused, confirmed = (sum(getattr(line, name) for line in lines) for name in ("twins", "accused", "confirmed"))
    return (
        f"{right} of {undisturbed} undisturbed runs of plants judged rightly, {wrong} with a rank wrongly accused;"
        f" {accused} of {twins} balanced twins in which late accuses a rank, {confirmed} of these by the logs too\n"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20, help="how often each plant is played under each MPI (20)")
    parser.add_argument("--only", default="", help="plants whose name contains this")
    parser.add_argument("--markdown", type=Path, help="the file into which the table goes")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="commprof-truth-"))
    lines = []
    for mpi in libraries():
        for plant in PLANTS:
            if options.only not in plant.name:
                continue
            if reason := why_not(mpi, plant):
                print(f"{plant.name}, {mpi.name}: SKIPPED: {reason}", flush=True)
                continue
            lines.append(line_of(mpi, plant, options.times, folder))
            print(", ".join(f"{head}: {cell}" for head, cell in zip(HEADS, cells(lines[-1]))), flush=True)
            print(*(f"    {complaint}" for complaint in lines[-1].complaints), sep="\n", flush=True)
            if options.markdown:
                options.markdown.write_text(markdown(lines) + "\n" + totals(lines))
    folder.rmdir()
    print(totals(lines))
    return any(line.complaints for line in lines)


if __name__ == "__main__":
    sys.exit(main())
