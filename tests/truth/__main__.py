"""Plays each plant and its balanced twin many times, and says how often the reports were right:
python3 -m truth [--times N] [--only WORDS] [--markdown FILE]. docs/truth.csv has the rows that
--markdown writes, after each round of all plants; Ctrl-C ends it with what there is."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from mpi.libraries import Mpi, libraries

from .plants import PLANTS, Plant
from .statements import accused
from .trial import CONFIRMED, is_accused, is_confirmed, judge, play, told, why_not

HEADS = (
    "plant",
    "library",
    "runs",
    "right",
    "nobody",
    "wrong",
    "complaints",
    "cost error, median",
    "worst",
    "twins",
    "accused",
)
HEADS += (
    "by the logs too",
    "other commands accuse (by the logs too)",
    "gain error, to the twin",
    "to the logs",
    "worst",
)


@dataclass
class Line:
    """A plant under a library: counts over the runs whose logs show the plant, and over those of
    the twin."""

    plant: Plant
    mpi: Mpi
    runs: int = 0
    undisturbed: int = 0
    who: Counter[str] = field(default_factory=Counter)
    complaints: list[str] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    # the predicted gain, and how long the plant and its twin lasted, by the logs
    gains: list[tuple[int, int, int]] = field(default_factory=list)
    logged_gains: list[float] = field(default_factory=list)  # the prediction's relative error
    twins: int = 0
    accused: int = 0
    confirmed: int = 0
    others_accuse: Counter[str] = field(default_factory=Counter)
    others_confirmed: Counter[str] = field(default_factory=Counter)

    def play(self, folder: Path) -> list[str]:
        """Once more, and its twin, in folders of their own (statements.rows remembers folders). The
        complaints."""
        trial = play(self.mpi, self.plant, False, Path(tempfile.mkdtemp(dir=folder)))
        judgement = judge(trial)
        self.runs += 1
        complaints = list(judgement.complaints) if judgement.holds else []
        if judgement.holds:
            self.undisturbed += 1
            self.who[judgement.who] += 1
            self.complaints += complaints
            self.errors += [] if judgement.cost_error is None else [judgement.cost_error]
        gain_ns = told(trial.run).gain_ns
        shutil.rmtree(trial.run.folder.parent)
        twin = play(self.mpi, self.plant, True, Path(tempfile.mkdtemp(dir=folder)))
        if gain_ns is not None:
            self.gains.append((gain_ns, trial.truth.lasts_ns, twin.truth.lasts_ns))
            if self.plant.logs_gain:
                self.logged_gains.append(gain_ns / trial.truth.gain_ns - 1)
        self.twins += 1
        self.accused += is_accused(twin)
        self.confirmed += is_accused(twin) and is_confirmed(twin)
        for command, ranks in accused(twin.run.folder).items():
            if command == "late":
                continue
            share = twin.truth.is_for(sorted(ranks))
            self.others_accuse[command] += 1
            self.others_confirmed[command] += share >= CONFIRMED
            if share < CONFIRMED:
                complaints.append(
                    f"of the twin, {command} names {sorted(ranks)}, by the logs the cause of "
                    f"{100 * share:.0f} % of the waiting"
                )
        shutil.rmtree(twin.run.folder.parent)
        return complaints


def gain_errors(line: Line) -> list[str]:
    """To the twin of medians, as other work on the machine makes single runs longer; to the logs of
    each run the median, and the one that is farthest off."""
    if not line.gains:
        return ["-"] * 3
    gain_ns, plant_ns, twin_ns = (median(part) for part in zip(*line.gains))
    errors = [gain_ns / (plant_ns - twin_ns) - 1]
    if line.logged_gains:
        errors += [median(line.logged_gains), max(line.logged_gains, key=abs)]
    return [f"{100 * error:+.1f} %" for error in errors] + ["-"] * (3 - len(errors))


def cells(line: Line) -> list[str]:
    runs = str(line.runs) if line.runs == line.undisturbed else f"{line.undisturbed} of {line.runs}"
    errors = (
        [f"{100 * median(line.errors):.1f} %", f"{100 * max(line.errors):.1f} %"]
        if line.errors
        else ["-", "-"]
    )
    others = (
        ", ".join(
            f"{command} {count} ({line.others_confirmed[command]})"
            for command, count in line.others_accuse.items()
        )
        or "-"
    )
    who = [str(line.who[key]) for key in ("right", "nobody", "wrong")]
    counts = [len(line.complaints), *errors, line.twins, line.accused, line.confirmed]
    figures = [*map(str, counts), others, *gain_errors(line)]
    return [line.plant.name, line.mpi.name, runs, *who, *figures]


def markdown(lines: Iterable[Line]) -> str:
    rows = [HEADS, ["---"] * len(HEADS), *map(cells, lines)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def totals(lines: list[Line]) -> str:
    right, wrong = (sum(line.who[key] for line in lines) for key in ("right", "wrong"))
    undisturbed = sum(line.undisturbed for line in lines)
    twins, accused, confirmed = (
        sum(getattr(line, name) for line in lines) for name in ("twins", "accused", "confirmed")
    )
    return (
        f"{right} of {undisturbed} undisturbed runs of plants judged rightly, {wrong} with a rank "
        "wrongly accused;"
        f" {accused} of {twins} balanced twins in which late accuses a rank, {confirmed} of these "
        "by the logs too\n"
    )


def table_write(path: Path | None, lines: list[Line]) -> None:
    if path:
        path.write_text(markdown(lines) + "\n" + totals(lines))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--times", type=int, default=20, help="how often each plant is played under each MPI (20)"
    )
    parser.add_argument("--only", default="", help="plants whose name contains this")
    parser.add_argument("--markdown", type=Path, help="the file into which the table goes")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="commprof-truth-"))
    chosen = [(mpi, plant) for mpi in libraries() for plant in PLANTS if options.only in plant.name]
    lines = [Line(plant, mpi) for mpi, plant in chosen if not why_not(mpi, plant)]
    for mpi, plant in chosen:
        if reason := why_not(mpi, plant):
            print(f"{plant.name}, {mpi.name}: SKIPPED: {reason}")
    try:
        for number in range(1, options.times + 1):
            for line in lines:
                for complaint in line.play(folder):
                    print(
                        f"round {number}: {line.plant.name}, {line.mpi.name}: {complaint}",
                        flush=True,
                    )
            table_write(options.markdown, lines)
            print(f"round {number} has been played", flush=True)
    except KeyboardInterrupt:
        table_write(options.markdown, lines)
    shutil.rmtree(folder)
    print(markdown(lines), totals(lines), sep="\n")
    return any(line.complaints for line in lines)


if __name__ == "__main__":
    sys.exit(main())
