"""Several run folders: those that together form one run, and those in a common parent folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from ..base import units
from ..base.errors import ReportError, UsageError
from .rank_files import (
    RankFile, file_scan, is_of_rank, rank_of_file, rank_paths, run_describe, runs_split,
)

DEPTH = 2  # levels of subfolders that are searched: as deep as <host>/<rank>
MOST_ENTRIES = 100_000  # that are searched before giving up: a home directory may be large
MOST_FOLDERS = 2  # of a run that are listed in a message
MOST_RUNS = 20


class FoundRun(NamedTuple):
    """A run, and the folders with its files."""

    folders: list[Path]
    file: RankFile  # one of its files
    ranks: list[int]

    @property
    def start_unix_ns(self) -> int:
        return self.file.start_unix_ns

    def describe(self) -> str:
        folders = " ".join(map(str, self.folders[:MOST_FOLDERS]))
        more = f" ... ({len(self.folders):,} folders)" if len(self.folders) > MOST_FOLDERS else ""
        ranks = f"{units.rank_names(self.ranks)} of {self.file.run[1]}"
        return (
            f"{folders}{more}: {self.file.program or 'unknown program'}, {ranks}, "
            f"{units.timestamp(self.start_unix_ns)}"
        )


def one_run(files: Sequence[RankFile]) -> None:
    """Raises ReportError unless these files, one from each folder, belong to the same run."""
    runs = runs_split(list(files))
    if len(runs) > 1:
        described = " and ".join(f"{run_describe(run)} in {run[0].folder}" for run in runs[:2])
        raise ReportError(
            "these folders", f"hold {len(runs)} runs, {described}: name the folders of one"
        )
    holders: dict[int, Path] = {}
    for file in files:
        for rank in file.ranks:
            other = holders.setdefault(rank.world_rank, file.folder)
            if other != file.folder:
                raise ReportError(
                    "these folders",
                    f"are not one run: rank {rank.world_rank} is in {other} and in {file.folder}",
                )


def runs_find(folder: Path) -> list[FoundRun]:
    """The runs in the subfolders, oldest first; one file of each folder is read."""
    found = {run.file.path: run for run in islice(_folders_with_ranks(folder), MOST_ENTRIES)}
    runs = []
    for files in runs_split([run.file for run in found.values()]):
        parts = [found[file.path] for file in files]
        ranks = [rank for part in parts for rank in part.ranks]
        is_one = len(set(ranks)) == len(ranks)
        # jobs of one rank may share the launcher's job id
        runs += [_joined(parts)] if is_one else parts
    return sorted(runs, key=lambda run: run.start_unix_ns)


def _joined(parts: Sequence[FoundRun]) -> FoundRun:
    folders = sorted(folder for part in parts for folder in part.folders)
    return FoundRun(folders, parts[0].file, [rank for part in parts for rank in part.ranks])


def _folders_with_ranks(top: Path) -> Iterator[FoundRun]:
    entries = 0
    for place, subfolders, names in os.walk(top):
        folder, files = Path(place), sorted(filter(is_of_rank, names))
        depth = len(folder.relative_to(top).parts)
        entries += len(files) + len(subfolders)
        if files and depth:
            yield from _found(folder, files)
        if depth == DEPTH or (files and depth):
            subfolders.clear()
        if entries >= MOST_ENTRIES:
            return


def _found(folder: Path, names: Sequence[str]) -> Iterator[FoundRun]:
    """The run in a folder; nothing if none of its files can be read."""
    paths = rank_paths(folder, names, [])
    ranks = sorted({rank_of_file(path) for path in paths})
    for path in paths:
        try:
            yield FoundRun([folder], file_scan(path), ranks)
            return
        except ReportError:
            continue


def runs_inside(folder: Path) -> list[str]:
    """A line for each run in the subfolders, newest first."""
    runs = runs_find(folder)[::-1]
    lines = [run.describe() for run in runs[:MOST_RUNS]]
    return lines + ([f"and {len(runs) - MOST_RUNS:,} more"] if len(runs) > MOST_RUNS else [])


def newest_run(folder: Path) -> list[Path]:
    """The folders of the newest run: this folder if it is a run folder, else subfolders. Raises
    UsageError if there is none."""
    if any(map(is_of_rank, os.listdir(folder))):
        return [folder]
    runs = runs_find(folder)
    if not runs:
        raise UsageError(
            "RUN", "there is no run here; name a run folder (see hvprof-report --help)"
        )
    return runs[-1].folders
