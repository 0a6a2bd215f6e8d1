"""Which files are in a run folder, and which of them belong to the run that is reported; which run
folders together form one run, and which are in a common parent folder.
"""

from __future__ import annotations

from collections import namedtuple
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path

from ..base import (
    ReportError,
    Row,
    UsageError,
    Value,
    gathered,
    present,
    regular_open,
    side_by_side,
    units,
    watched,
)
from .database import (
    ARCHIVE,
    RankOfFile,
    archive_members,
    database_of,
    database_open,
    file_of,
    ranks_in,
    unpacked,
)
from .ledger import MAGIC, ledger_read_facts
from .ledger_format import PREFIX, LedgerIsNotHere

RANK_FILE = re.compile(r"rank-(\d+)\.(db|ledger)")
SQLITE_MAGIC = b"SQLite format 3\0"
STUB_START = PREFIX[: len(SQLITE_MAGIC)]
LEDGER_ON_NODE = re.compile(r"[0-9a-f]{16}-rank-\d+-[0-9a-f]+\.ledger")
FOREVER = 1 << 63
FILES_OF_PART = 128  # that are read side by side with other parts


class RankFile(namedtuple("RankFile", "path is_ledger ranks")):
    """A readable file and the ranks in it: one, or many if it was merged."""

    @property
    def folder(self) -> Path:
        return file_of(self.path).parent

    @property
    def start_unix_ns(self) -> int:
        return min(rank.start_unix_ns for rank in self.ranks)

    @property
    def end_unix_ns(self) -> int:
        return max(FOREVER if rank.end_unix_ns is None else rank.end_unix_ns for rank in self.ranks)

    @property
    def run(self) -> tuple[str, int]:
        return self.ranks[0].run_id, self.ranks[0].world_size


# subfolders of a run folder
ASIDES = {
    "earlier-": "earlier run",
    "job-": "other job",
    "spawned-": "spawned job",
    "snapshot-": "snapshot",
}


# The contents of a run folder: files by rank, subfolders with other runs by kind, and problems.
Folder = namedtuple("Folder", "files asides problems")


def folder_scan(folder: Path) -> Folder:
    """Reads enough of every rank's file to know its run. An archive is a folder, too."""
    above, names = (folder, _names(folder)) if folder.is_dir() else (folder.parent, {folder.name})
    problems: list[ReportError] = []
    paths = rank_paths(above, names, problems)
    parts = in_parts(paths)
    scanned = watched(side_by_side(_part_scanned, parts), "looking at", len(parts), "parts")
    found = [*chain(*scanned)]
    problems += [file for file in found if isinstance(file, ReportError)]
    asides = {  # but for empty ones, whose contents were moved aside
        prefix: sum(name.startswith(prefix) and any((folder / name).glob("*")) for name in names)
        for prefix in ASIDES
    }
    if not paths and not problems:
        what = "holds no rank-<n>.db and no rank-<n>.ledger" + " (it is empty)" * (not names)
        problems.append(ReportError(folder, what))
    return Folder([file for file in found if isinstance(file, RankFile)], asides, problems)


def in_parts(files: Sequence[Value]) -> list[Sequence[Value]]:
    return [files[first : first + FILES_OF_PART] for first in range(0, len(files), FILES_OF_PART)]


def _part_scanned(paths: Sequence[Path]) -> list[RankFile | ReportError]:
    return [*map(_scanned, paths)]


def _scanned(path: Path) -> RankFile | ReportError:
    """The file at a path, or what is wrong with it."""
    try:
        return as_ledger_or_database(path, file_scan)
    except ReportError as error:
        return error


def as_ledger_or_database(path: Path, read: Callable[[Path], Value]) -> Value:
    """A ledger that has disappeared since its folder was listed has become a database."""
    try:
        return read(path)
    except (ReportError, FileNotFoundError) as error:
        database = database_of(path)
        is_replaced = isinstance(error, LedgerIsNotHere) and file_of(database).exists()
        if path.exists() and not is_replaced:
            raise
        return read(database)


def newcomers(paths: Sequence[Path], files: Sequence[RankFile]) -> list[RankFile]:
    """The ledgers of ranks that have begun since the folders were listed. Other ranks, which were
    read later than that, may wait for them."""
    known = {rank.world_rank for file in files for rank in file.ranks}
    # a damaged file may hold another rank
    known |= {int(match[1]) for file in files if (match := RANK_FILE.fullmatch(file.path.name))}
    folders = filter(Path.is_dir, paths if any(file.is_ledger for file in files) else ())
    listed = (path for folder in folders for path in rank_paths(folder, _names(folder), []))
    new = (_scanned(path) for path in listed if rank_of_file(path) not in known)
    found = [file for file in new if isinstance(file, RankFile)]  # others were reported then
    run = next(run for run in runs_split([*files, *found]) if files[0] in run)
    return [file for file in found if file in run]


def files_mode(paths: Iterable[Path]) -> int:
    """The mode of a file that is made from these files and run folders: who may not read all of
    them may not read it."""
    mode = 0o666
    for path in paths:
        with suppress(OSError):
            own = os.stat(file_of(path)).st_mode
            # who may enter a folder may read a file in it
            mode &= (own & 0o111) * 0o6 if stat.S_ISDIR(own) else own
            for name in _names(path) if stat.S_ISDIR(own) else ():
                if is_of_rank(name):
                    mode &= (path / name).stat().st_mode
    return mode & 0o666 | 0o600


def is_of_rank(name: str) -> bool:
    """Whether a file of this name has ranks: one, or in an archive those of a node."""
    return bool(RANK_FILE.fullmatch(name) or ARCHIVE.fullmatch(name))


def rank_paths(folder: Path, names: Iterable[str], problems: list[ReportError]) -> list[Path]:
    """The ranks' files, databases first, also those in archives."""
    names = sorted(names)
    paths = [folder / name for name in names if RANK_FILE.fullmatch(name)]
    for archive in (folder / name for name in names if ARCHIVE.fullmatch(name)):
        try:
            paths += [
                archive / name for name in archive_members(archive) if RANK_FILE.fullmatch(name)
            ]
        except ReportError as error:
            problems.append(error)
    return sorted(paths, key=lambda path: (rank_of_file(path), path.suffix, path.name))


def problems_joined(problems: Sequence[ReportError]) -> Iterator[ReportError]:
    """Stubs that differ only in the rank are one problem: a job that was killed at its start may
    leave thousands on other hosts."""
    general = ((LEDGER_ON_NODE.sub("*.ledger", problem.what), problem) for problem in problems)
    alike = gathered(
        (what if what != problem.what else str(problem), problem) for what, problem in general
    )
    for what, same in alike.items():
        yield (
            same[0]
            if len(same) == 1
            else ReportError(f"{same[0].subject} and {len(same) - 1:,} more", what)
        )


def spawned_ranks(folder: Path) -> int:
    """How many ranks of spawned jobs have files beside those of a run."""
    ranks = 0
    for spawned in folder.glob("spawned-*"):
        with suppress(OSError):  # a file, or not readable
            ranks += len({path.stem for path in rank_paths(spawned, _names(spawned), [])})
    return ranks


def _names(folder: Path) -> set[str]:
    """The names in the folder, listed twice: a ledger may be replaced by its database during one
    listing, which then finds neither."""
    return {name for _ in range(2) for name in os.listdir(folder)}


def rank_of_file(path: Path) -> int:
    """The rank whose file has this name, one of rank_paths."""
    return int(present(RANK_FILE.fullmatch(path.name))[1])


def file_scan(path: Path) -> RankFile:
    """Reads enough of a single file to know its run."""
    try:
        with unpacked(path) as on_disk, regular_open(on_disk) as file:
            start = file.read(16)
    except OSError as error:
        raise ReportError(path, error.strerror or str(error)) from None
    if start == SQLITE_MAGIC:
        with database_open(path) as (connection, _, _):
            return RankFile(path, False, ranks_in(path, connection))
    if start in (MAGIC, STUB_START):
        return RankFile(path, True, [_ledger_rank(path)])
    raise ReportError(
        path,
        "is empty" if not start.strip(b"\0") else "is neither a commprof database nor a ledger",
    )


def _ledger_rank(path: Path) -> Row:
    ledger = ledger_read_facts(path)
    header, facts = ledger.header, ledger.facts
    # the wall clock may have been set back
    earliest_end_unix_ns = header.start_unix_ns + header.end_ns - header.start_ns
    end_unix_ns = max(header.end_unix_ns, earliest_end_unix_ns) if header.ended else None
    return RankOfFile(
        facts.get("run_id", ""),
        header.world_rank,
        header.world_size,
        header.start_unix_ns,
        end_unix_ns,
        facts.get("program", ""),
    )


def runs_split(files: list[RankFile]) -> list[list[RankFile]]:
    """Groups files by run, oldest first. Files belong to one run if run id and world size are equal
    and they overlap in time."""
    by_name: dict[tuple[str, int], list[list[RankFile]]] = {}
    latest_end_unix_ns = 0  # of the files of runs[-1]; files with the same run id are adjacent
    for file in sorted(files, key=lambda file: (file.run, file.start_unix_ns)):
        runs = by_name.setdefault(file.run, [])
        if not runs or file.start_unix_ns > latest_end_unix_ns:
            runs.append([])
            latest_end_unix_ns = file.end_unix_ns
        runs[-1].append(file)
        latest_end_unix_ns = max(latest_end_unix_ns, file.end_unix_ns)
    every = [run for runs in by_name.values() for run in runs]
    return sorted(every, key=lambda run: max(file.start_unix_ns for file in run))


def run_describe(files: list[RankFile]) -> str:
    """A short description of one run, for a message."""
    run_id, world_size = files[0].run
    ranks = [rank.world_rank for file in files for rank in file.ranks]
    started = units.timestamp(min(file.start_unix_ns for file in files))
    return f"'{run_id}' of {started} (rank {units.rank_list(ranks)} of {world_size})"


DEPTH = 2  # levels of subfolders that are searched: as deep as <host>/<rank>
MOST_ENTRIES = 100_000  # that are searched before giving up: a home directory may be large
MOST_FOLDERS = 2  # of a run that are listed in a message
MOST_RUNS = 20


def one_run(files: Sequence[RankFile]) -> None:
    """Raises ReportError unless these files, one from each folder, belong to the same run."""
    runs = runs_split(list(files))
    if len(runs) > 1:
        described = " and ".join(f"{run_describe(run)} in {run[0].folder}" for run in runs[:2])
        raise ReportError(
            "these folders",
            f"hold {len(runs)} runs, {described}: name the folders of one, or ask hvprof-report "
            "compare",
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


def runs_find(folder: Path) -> list[list[RankFile]]:
    """The runs in the subfolders, oldest first: a file of each folder, with all ranks that have
    files there."""
    runs = []
    for files in runs_split([*_folders_with_ranks(folder)]):
        ranks = [rank.world_rank for file in files for rank in file.ranks]
        # jobs of one rank may share the launcher's job id
        runs += [files] if len({*ranks}) == len(ranks) else [[file] for file in files]
    return sorted(runs, key=lambda files: files[0].start_unix_ns)


def folders_of(files: Iterable[RankFile]) -> list[Path]:
    return sorted(file.folder for file in files)


def _folders_with_ranks(top: Path) -> Iterator[RankFile]:
    """The first file of each folder that can be read; only that is read."""
    entries = 0
    for place, subfolders, names in os.walk(top):
        folder, files = Path(place), sorted(filter(is_of_rank, names))
        depth = len(folder.relative_to(top).parts)
        entries += len(files) + len(subfolders)
        if files and depth:
            paths = rank_paths(folder, files, [])
            ranks = sorted({rank_of_file(path) for path in paths})
            readable = (file for file in map(_scanned, paths) if isinstance(file, RankFile))
            for file in islice(readable, 1):
                about = file.ranks[0]
                yield file._replace(ranks=[about._replace(world_rank=rank) for rank in ranks])
        if depth == DEPTH or (files and depth):
            subfolders.clear()
        if entries >= MOST_ENTRIES:
            return


def _run_line(files: Sequence[RankFile]) -> str:
    first, folders = files[0], folders_of(files)
    more = f" ... ({len(folders):,} folders)" if len(folders) > MOST_FOLDERS else ""
    ranks = units.rank_names(rank.world_rank for file in files for rank in file.ranks)
    return (
        f"{' '.join(map(str, folders[:MOST_FOLDERS]))}{more}: "
        f"{first.ranks[0].program or 'unknown program'}, {ranks} of {first.run[1]}, "
        f"{units.timestamp(first.start_unix_ns)}"
    )


def runs_inside(folder: Path) -> list[str]:
    """A line for each run in the subfolders, newest first."""
    runs = runs_find(folder)[::-1]
    lines = [_run_line(files) for files in runs[:MOST_RUNS]]
    return lines + ([f"and {len(runs) - MOST_RUNS:,} more"] if len(runs) > MOST_RUNS else [])


def newest_run(folder: Path) -> list[Path]:
    """The folders of the newest run: this folder if it is a run folder, else subfolders. Raises
    UsageError if there is none."""
    if any(map(is_of_rank, os.listdir(folder))):
        return [folder]
    runs = runs_find(folder)
    if runs:
        return folders_of(runs[-1])
    raise UsageError("RUN", "there is no run here; name a run folder (see hvprof-report --help)")
