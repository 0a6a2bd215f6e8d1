"""Recorded runs of plants and of their twins, with the ranks' own logs, in tests/data:
tests/report/test_plants.py reads them. `python3 -m truth.recordings [PLANT...]` records plants
again (all), after a change of a plant, on a machine with little other work: it keeps of some runs
the one whose logs show best the plant, or that nobody is late, whatever the reports say of it."""

from __future__ import annotations

import shutil
import sqlite3
import sys
import tarfile
import tempfile
from collections.abc import Container
from contextlib import closing
from pathlib import Path

from mpi import reporter
from mpi.harness import Outcome, Run
from mpi.libraries import libraries

from . import logs
from .plants import PLANTS, TWINS, Plant
from .trial import Trial, ahead_ns, holds, play, told, why_not

ARCHIVE = Path(__file__).resolve().parents[1] / "data/plants.tar.xz"
RUNS = 5
LARGE = ("1f1b", "horovod_marks")  # others like them are recorded
ACCUSING = ("serve", "ring")  # docs/TRUTH.md: twins in which single ranks are slower, too
RECORDED = [
    plant
    for plant in PLANTS
    if plant.is_recorded and plant.program not in LARGE and not plant.samples
]
RECORDED_TWINS = [plant for plant in TWINS if plant in RECORDED and plant.program not in ACCUSING]


def unpack(folder: Path, wanted: Container[str] | None = None) -> None:
    """Some of the files, or all."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, [one for one in archive if not wanted or one.name in wanted])
    for database in folder.glob("*/run.db"):
        renew(database)


def renew(path: Path) -> None:
    """With the tables and columns that the schema has got since then, before its release; rows that
    every database has are those of today."""
    reporter.the_program()
    from commprof_report.run.database import ADDED, NEWEST, schema_of  # of the path set there

    old = path.rename(path.with_suffix(".old"))
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript("PRAGMA synchronous = OFF;" + schema_of(NEWEST))
        database.execute("ATTACH ? AS old", (str(old),))
        tables = "SELECT name FROM main.sqlite_schema WHERE type = 'table'"
        names = "SELECT name FROM pragma_table_info(?, ?)"
        for (table,) in database.execute(tables).fetchall():
            was, now = (
                [name for (name,) in database.execute(names, (table, schema))]
                for schema in ("old", "main")
            )
            values = [name if name in was else ADDED[NEWEST][table][name] for name in now if was]
            if was:
                rows = f"SELECT {', '.join(values)} FROM old.{table}"
                database.execute(f"INSERT OR IGNORE INTO {table} ({', '.join(now)}) {rows}")
    old.unlink()


def name_of(plant: Plant, is_twin: bool) -> str:
    return plant.name.replace(" ", "-").replace(",", "") + ("-twin" if is_twin else "")


def recorded(folder: Path, plant: Plant, is_twin: bool = False) -> Trial:
    """From a folder into which all were unpacked."""
    own = folder / name_of(plant, is_twin)
    run = Run(plant.ranks, own / "run.db", Outcome(0, "", ""))
    return Trial(plant, is_twin, run, logs.truth_of(own, ahead_ns(plant), plant.late))


def shows(trial: Trial) -> float:
    """How clearly the logs alone show the plant, or that nobody is late: up to 1."""
    plant, truth = trial.plant, trial.truth
    if trial.is_twin:
        return 1 - max(truth.is_for([rank]) for rank in range(plant.ranks))
    return holds(trial, told(trial.run)) * (truth.is_for(plant.named) if plant.named else 1)


def record(plant: Plant, is_twin: bool, folder: Path) -> None:
    """Under the first library that can play it."""
    mpi = next(mpi for mpi in libraries() if not why_not(mpi, plant))
    own = folder / name_of(plant, is_twin)
    best = -1.0
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as aside:
            trial = play(mpi, plant, is_twin, Path(aside))
            if (clear := shows(trial)) <= best:
                continue
            best = clear
            shutil.rmtree(own, ignore_errors=True)
            own.mkdir()
            reporter.text("merge", "--anonymous", trial.run.folder, own / "run.db")
            for log in Path(aside).glob("log-*"):
                shutil.copy(log, own)
    print(f"{own.name}: {best:.2f}", flush=True)


def without_owner(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


def main(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        unpack(folder)  # real Horovod's stay as they are
        for plant in RECORDED:
            if plant.name in names or not names:
                record(plant, False, folder)
                if plant in RECORDED_TWINS:
                    record(plant, True, folder)
        with tarfile.open(ARCHIVE, "w:xz", preset=9) as archive:
            # databases one after the other repeat much of each other
            for path in sorted(folder.glob("*/*"), key=lambda path: (path.suffix, path)):
                archive.add(path, path.relative_to(folder), filter=without_owner)


if __name__ == "__main__":
    main(sys.argv[1:])
