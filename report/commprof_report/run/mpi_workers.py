"""A run read by all ranks of an MPI job, which is for runs that one node would read for too long:
mpi4py's MPI.COMM_WORLD.

    rank 0      lists the files
    each rank   reads consecutive ones into a database of its own
    in pairs    rank 2i adds the rows of rank 2i + 1 to its own, then rank 4i those of rank 4i + 2,
                ..., until rank 0 has all

The rows are the same as if one process had read the files, and so is their order.
"""

from __future__ import annotations

import sqlite3
import sys
import traceback
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..base import units
from ..base.errors import EXPECTED, ReportError, as_report
from .database import database_join, database_write
from .rank_files import RankFile
from .run import Run, file_take, run_open
from .thinning import Thinning

CHUNK_BYTES = 1 << 28  # of a message; a database may be larger than MPI's 2 GiB


def run_open_by_ranks(paths: Sequence[Path]) -> Run | None:
    """The run with all its samples, on rank 0. Raises ReportError there if nothing can be read."""
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise ReportError("--workers mpi", f"needs mpi4py: {error}") from None
    comm = MPI.COMM_WORLD

    def files_take(run: Run, files: Sequence[RankFile], _with_histograms: bool) -> None:
        comm.bcast(files)
        _part_read(comm, run, files)

    if comm.rank == 0:
        try:
            return run_open(paths, True, True, None, False, files_take)
        finally:
            comm.bcast(None)
    while (files := comm.bcast(None)) is not None:
        _part_read(comm, Run(Path()), files)
    return None


def _part_read(comm: Any, run: Run, files: Sequence[RankFile]) -> None:
    """Reads this rank's files and adds those that ranks above it have read. An error on one rank
    ends all, for they would wait for it."""
    try:
        run.thinning = run.thinning or Thinning(run.connection, None)
        for file in files_of(comm.rank, comm.size, files):
            file_take(run, file, True)
        _parts_join(comm, run.connection)
        notes = comm.gather(run.notes)
        run.notes += [note for each in (notes or [])[1:] for note in each]
    except Exception as error:
        said = (
            units.visible(str(as_report(error))) if isinstance(error, EXPECTED)
            else traceback.format_exc()
        )
        print(f"hvprof-report: rank {comm.rank}: {said}", file=sys.stderr, flush=True)
        comm.Abort(1)


def _parts_join(comm: Any, connection: sqlite3.Connection) -> None:
    with TemporaryDirectory() as aside:
        path = Path(aside) / "part.db"
        distance = 1
        while distance < comm.size:
            if comm.rank % (2 * distance):
                database_write(connection, path)
                _send(comm, comm.rank - distance, path)
                return
            if comm.rank + distance < comm.size:
                _receive(comm, comm.rank + distance, path)
                database_join(connection, path, True)
                path.unlink()
            distance *= 2


def files_of(rank: int, size: int, files: Sequence[RankFile]) -> list[RankFile]:
    """Consecutive files; all files of one rank of the run (its database and a ledger) are
    together."""
    groups = [[*group] for _, group in groupby(files, lambda file: file.ranks[0].world_rank)]
    return [
        file for group in groups[len(groups) * rank // size : len(groups) * (rank + 1) // size]
        for file in group
    ]


def _send(comm: Any, to: int, path: Path) -> None:
    with open(path, "rb") as file:
        chunk = file.read(CHUNK_BYTES)
        while chunk:
            comm.send(chunk, to)
            chunk = file.read(CHUNK_BYTES)
    comm.send(b"", to)


def _receive(comm: Any, source: int, path: Path) -> None:
    with open(path, "wb") as file:
        while chunk := comm.recv(source=source):
            file.write(chunk)
