"""Adds runs to a store: those that are named, or all in a spool that are new and quiet."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ..base import Progress, ReportError
from ..base.forked import forked
from ..run.database import file_of
from ..run.rank_files import RankFile, folder_scan, is_of_rank, runs_split
from .job import Job, job_read, run_key
from .store import Store, jobs_write, known

AT_ONCE = 64  # folders that a process reads
IN_PART = 5_000  # jobs of a file


class Added(NamedTuple):
    jobs: int = 0
    known: int = 0
    not_quiet: int = 0


class Read(NamedTuple):
    jobs: list[Job]
    known: int
    not_quiet: int
    problems: list[tuple[str, str]]


def folders_below(spool: Path) -> list[Path]:
    """All folders with files of ranks: of jobs, and of those that share a folder or were
    spawned."""
    return [Path(top) for top, _, names in os.walk(spool) if any(map(is_of_rank, names))]


def add(
    store: Store, folders: Sequence[Path], cluster: str, quiet_s: float, problems: list[ReportError]
) -> Added:
    """quiet_s: a run that lacks a rank's database is left for later until nothing in its folder has
    changed for so long."""
    have = known(store)
    parts = [folders[first : first + AT_ONCE] for first in range(0, len(folders), AT_ONCE)]
    fresh: dict[int, Job] = {}
    whole = Added()
    with Progress("reading", len(parts)) as progress:
        for read in forked(partial(_part_read, have, quiet_s), parts):
            fresh.update({job.run: job for job in read.jobs})
            problems += [ReportError(*problem) for problem in read.problems]
            whole = Added(
                whole.jobs, whole.known + read.known, whole.not_quiet + read.not_quiet
            )
            progress.step()
            if len(fresh) >= IN_PART:
                jobs_write(store, list(fresh.values()), cluster)
                whole, fresh = whole._replace(jobs=whole.jobs + len(fresh)), {}
    jobs_write(store, list(fresh.values()), cluster)
    return whole._replace(jobs=whole.jobs + len(fresh))


def _part_read(have: set[int], quiet_s: float, folders: Sequence[Path]) -> Read:
    jobs: list[Job] = []
    problems: list[tuple[str, str]] = []
    skipped = {"known": 0, "not_quiet": 0}
    for folder in folders:
        found = folder_scan(folder)
        problems += [(problem.subject, problem.what) for problem in found.problems]
        for files in runs_split(found.files) if found.files else ():
            why = (
                "known" if run_key(files) in have
                else "" if _is_quiet(files, quiet_s) else "not_quiet"
            )
            if why:
                skipped[why] += 1
                continue
            try:
                jobs.append(job_read(files))
            except ReportError as error:
                problems.append((error.subject, error.what))
    return Read(jobs, skipped["known"], skipped["not_quiet"], problems)


def _is_quiet(files: Sequence[RankFile], quiet_s: float) -> bool:
    ranks = {rank.world_rank for file in files if not file.is_ledger for rank in file.ranks}
    if len(ranks) >= files[0].run[1]:
        return True
    newest_s = max(os.stat(file_of(file.path)).st_mtime for file in files)
    return time.time() - newest_s >= quiet_s
