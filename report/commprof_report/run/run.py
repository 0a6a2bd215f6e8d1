"""A run: all its ranks in one database of the schema, read from databases and ledgers."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter, namedtuple
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile

from ..base import (
    ReportError,
    common_folder,
    distinct,
    gathered,
    members_listed,
    members_shown,
    query,
    side_by_side,
    spans_in,
    units,
    watched,
)
from .database import (
    ARCHIVE,
    database_copy,
    database_create,
    database_write,
    file_of,
    rows_insert,
    sums_secure,
)
from .ledger import ledger_read
from .ledger_rows import ledger_rows
from .ledger_format import CUT_OFF
from .rank_files import (
    ASIDES,
    FILES_OF_PART,
    RankFile,
    as_ledger_or_database,
    file_scan,
    files_mode,
    folder_scan,
    in_parts,
    newcomers,
    newest_run,
    one_run,
    problems_joined,
    run_describe,
    runs_inside,
    runs_split,
    spawned_ranks,
)
from .sampled import FIRST, MOST_SAMPLES, Thinning

PAGE_OF_MANY = 1 << 16  # bytes of a page in a run of many files
MOST_PLACES = 3  # of ledgers that are listed in a message


class Run:
    """The merged database, and notes for the user about files that were missing, damaged or left
    out."""

    def __init__(self, paths: Sequence[Path], thinning: Thinning | None = None) -> None:
        """paths: the files and folders that are read. thinning: None, without samples."""
        self.paths, self.path = paths, common_folder(paths)
        self.connection = database_create()
        self.thinning = thinning
        self.notes: list[str] = []  # problems, one line each
        self.remarks: list[str] = []  # for the user alone, not for the readers of a page
        self.asides: list[str] = []  # other runs in subfolders
        self.filters: list[str] = []  # options that select a part of it
        self.is_part = False  # one file of a run, given by name

    @property
    def mode(self) -> int:
        """Mode of files that are made from it."""
        return files_mode(self.paths)

    def note(self, subject: object, what: str) -> None:
        self.notes.append(units.visible(f"{subject}: {what}"))

    def ranks_check(self) -> None:
        """Notes the missing ranks, and those that ended early."""
        ranks = self.connection.execute(
            "SELECT world_rank, world_size, run_id FROM rank ORDER BY world_rank"
        ).fetchall()
        if not ranks:
            raise (
                ReportError(*self.notes.pop().split(": ", 1))
                if self.notes
                else ReportError(self.path, "holds no rank")
            )
        _, self.world_size, self.run_id = ranks[0]
        edges = [-1, *(world_rank for world_rank, _, _ in ranks), self.world_size]
        self.missing = [
            range(low + 1, high) for low, high in zip(edges, edges[1:]) if high - low > 1
        ]
        setting = self.connection.execute(
            "SELECT value FROM fact WHERE key = 'settings.COMMPROF_RANKS' ORDER BY world_rank"
        ).fetchone()
        self.profiled = profiled_ranks(
            str(setting[0]) if setting else "", edges[1:-1], self.world_size
        )
        if self.profiled:
            self.missing = units.spans_of(self.profiled.ranks.difference(edges))
        if self.missing and not self.is_part:
            missing = units.span_names(self.missing, None)
            self.note(
                self.path,
                f"{missing} of {self.world_size} {'are' if missing.startswith('ranks') else 'is'} "
                "missing",
            )
        # a job may have several programs (MPMD)
        self.programs = gathered(
            self.connection.execute(
                "SELECT value, world_rank FROM fact WHERE key = 'program' ORDER BY world_rank"
            )
        )
        if len(self.programs) > 1:
            self.note(self.path, programs_text(self))
        _copies_note(self)
        self.connection.create_function("members_listed", 2, members_listed, deterministic=True)
        self.connection.create_function("members_shown", 1, members_shown, deterministic=True)
        query.run(self.connection, "run/run")
        query.run(self.connection, "run/synchronizing")
        _early_note(self)


def run_open(
    path: Path | Sequence[Path],
    with_histograms: bool = True,
    with_samples: bool = False,
    most_samples: int | None = MOST_SAMPLES,
) -> Run:
    """Opens a run folder, a merged database, or a single rank's file; several paths are read as one
    run; without any, the newest run here. Samples of calls and GPUs, their windows, steps and spans
    of regions are read only on request, at most `most_samples` (sampled.py). Raises ReportError if
    there is nothing to read."""
    given = [path] if isinstance(path, Path) else list(path)
    paths = distinct(given) or newest_run(Path())
    run = Run(paths, Thinning(most_samples) if with_samples else None)
    if not given:
        run.remarks.append(units.visible(f"{' '.join(map(str, paths))}: the newest run here"))
    files = _files(run, paths)
    if len(files) > FILES_OF_PART:
        run.connection = database_create(PAGE_OF_MANY)
    if run.thinning:
        run.thinning.files = len(files)
    _files_take(run, files, with_histograms)
    _files_take(run, newcomers(paths, files), with_histograms)
    run.connection.source.close()
    if run.thinning:
        run.thinning.finish(run.connection)
    identities_agree(run.connection)
    sums_secure(run.connection)
    run.ranks_check()
    # a merged database has no folder: the fact tells how many ranks of spawned jobs have profiles
    spawned = sum(spawned_ranks(path) for path in paths if path.is_dir())
    if spawned:
        rank = "SELECT min(world_rank), 'spawned.profiled', ? FROM rank"
        run.connection.execute(f"INSERT OR REPLACE INTO fact {rank}", (str(spawned),))
    return run


def _files_take(run: Run, files: Sequence[RankFile], with_histograms: bool) -> None:
    """Many files are read side by side (workers.py), after the first of them have told how many
    samples there are. Ledgers change: they are read here."""
    is_alone = len(files) <= FILES_OF_PART or any(file.is_ledger for file in files)
    number = len(files) if is_alone else FIRST if run.thinning else 0
    for file in watched(files[:number], "reading", number):
        _file_take(run, file, with_histograms)
    _parts_take(run, files[number:], with_histograms)


def _parts_take(run: Run, files: Sequence[RankFile], with_histograms: bool) -> None:
    parts = in_parts(files)
    thinning = run.thinning.of_part() if run.thinning else None
    read = partial(_part_read, run.path, with_histograms, thinning)
    answers = zip(parts, side_by_side(read, parts))
    for part, (database, notes) in watched(answers, "reading", len(parts), "parts"):
        try:
            with NamedTemporaryFile(prefix="commprof-") as aside:
                aside.write(database)
                aside.flush()
                database_copy(run.connection, Path(aside.name), True, run.thinning, is_ours=True)
            run.notes += notes
            if run.thinning:
                run.thinning.added(run.connection, len(part))
        except (ReportError, OSError):  # each file of the part alone may fit into the run
            for file in part:
                _file_take(run, file, with_histograms)


def _part_read(
    path: Path, with_histograms: bool, thinning: Thinning | None, files: Sequence[RankFile]
) -> tuple[bytes, list[str]]:
    """Some ranks as a file of their own, incomplete if there is no space for it, empty if they have
    too many samples; and notes."""
    own = thinning and thinning.of_part()
    part = Run([path], own)
    for file in files:
        _file_take(part, file, with_histograms)
        if thinning and own and own.masks != thinning.masks:
            return b"", []
    with NamedTemporaryFile(prefix="commprof-") as aside:
        with suppress(sqlite3.Error):
            database_write(part.connection, Path(aside.name))
        return aside.read(), part.notes


def _files(run: Run, paths: Sequence[Path]) -> list[RankFile]:
    beside: Counter[str] = Counter()
    files: dict[str, RankFile] = {}  # by where they are, for a file may be named beside its folder
    for path in paths:
        is_folder = path.is_dir() or (ARCHIVE.fullmatch(path.name) and path.is_file())
        if not is_folder and not file_of(path).exists():
            raise ReportError(path, "no such file or folder")
        of_path = _folder_files(run, path, beside) if is_folder else [file_scan(path)]
        files.update({os.path.realpath(file.path): file for file in of_path})
    run.asides = [
        f"{units.counted(beside[prefix], noun)} in {prefix}*, not counted here"
        for prefix, noun in ASIDES.items()
        if beside[prefix]
    ]
    found = list(files.values())
    if len(paths) > 1:
        one_run(found)
    run.is_part = len(found) == 1 and not paths[0].is_dir() and len(found[0].ranks) == 1
    return found


def _folder_files(run: Run, path: Path, beside: Counter[str]) -> list[RankFile]:
    """The files of the newest run in the folder; other runs in it are added to the notes."""
    folder = folder_scan(path)
    if not folder.files:
        raise _nothing_read(path, folder.problems)
    for problem in problems_joined(folder.problems):
        run.note(problem.subject, problem.what)
    beside.update(folder.asides)
    *older, newest = runs_split(folder.files)
    if older:
        left_out = ", ".join(run_describe(files) for files in older)
        run.note(
            path,
            f"holds {len(older) + 1} runs; the newest, {run_describe(newest)}, is shown; left out: "
            f"{left_out}",
        )
    return newest


def _nothing_read(path: Path, problems: list[ReportError]) -> ReportError:
    """The error; for a folder of run folders it lists the runs in it."""
    first, *others = problems
    inside = runs_inside(path) if first.subject == str(path) else []
    if inside:
        return ReportError(
            path, "holds no rank's file itself, but folders of runs; name one of them:", inside
        )
    if not others:
        return first
    return ReportError(
        path,
        f"none of its {len(problems)} files can be read; {Path(first.subject).name} {first.what}",
    )


def _file_take(run: Run, file: RankFile, with_histograms: bool) -> None:
    """Adds a file to the run, unless its rank is there already (a database and its ledger)."""
    ranks = [rank.world_rank for rank in file.ranks]
    known = run.connection.execute(
        "SELECT run_id FROM rank WHERE world_rank IN (?, ?)", (ranks[0], ranks[-1])
    ).fetchone()
    if known:
        if not file.is_ledger:
            run.note(
                file.path,
                f"holds rank {units.rank_list(ranks)}, which another file holds too; it is "
                "left out",
            )
        return

    def take(path: Path) -> None:
        if file.is_ledger and path == file.path:
            _ledger_take(run, path, with_histograms)
        else:
            database_copy(run.connection, path, with_histograms, run.thinning)

    try:
        as_ledger_or_database(file.path, take)
    except ReportError as error:
        run.note(error.subject, error.what)
    if run.thinning:
        run.thinning.added(run.connection)


def _ledger_take(run: Run, path: Path, with_histograms: bool) -> None:
    ledger = ledger_read(path, run.thinning is not None)
    rows = ledger_rows(ledger, with_histograms)
    if run.thinning:
        run.thinning.ledger_rows_thin(rows)
    for damage in dict.fromkeys(ledger.damage):
        run.note(path, damage)
    if ledger.damage:
        rows["fact"] = [*rows["fact"], (rows["rank"][0][0], "unseen.damaged", "")]
    rows_insert(run.connection, path, rows)


def programs_text(run: Run) -> str:
    """2 programs: ocean (rank 0), ice (ranks 1-2)"""
    several = [f"{name} ({units.rank_names(ranks)})" for name, ranks in run.programs.items()]
    more = f" and {len(several) - MOST_PLACES:,} more" if len(several) > MOST_PLACES else ""
    return f"{len(several):,} programs: {', '.join(several[:MOST_PLACES])}{more}"


VERBS = ("is", "was"), ("are", "were")  # of one rank, of several


def _copies_note(run: Run) -> None:
    copies = query.run(run.connection, "run/copies").fetchall()
    copied_unix_ns = {world_rank: unix_ns for world_rank, unix_ns, _, _ in copies}
    if copied_unix_ns:
        oldest, newest = (units.timestamp(choose(copied_unix_ns.values())) for choose in (min, max))
        times = oldest if oldest == newest else f"{oldest} to {newest}"
        ranks, (are, _) = units.rank_names([*copied_unix_ns]), VERBS[len(copied_unix_ns) > 1]
        ledgers = sorted(
            {(os.path.dirname(ledger), host) for _, _, ledger, host in copies if ledger and host}
        )
        where = " and ".join(f"{folder} on host {host}" for folder, host in ledgers[:MOST_PLACES])
        more = f" and {len(ledgers) - MOST_PLACES:,} others" if len(ledgers) > MOST_PLACES else ""
        later = (
            f"; later calls are in {where}{more} alone, if that is still there" if ledgers else ""
        )
        run.note(
            run.path, f"{ranks} {are} shown as of {times}, the time of the ledger's copy{later}"
        )


EARLY = {
    "running": "{0} still running; shown up to now",
    "killed": f"{CUT_OFF}; shown up to the last finished call",
    "running or killed": f"{{0}} still running, or {CUT_OFF}; shown up to the last finished call",
}


def _early_note(run: Run) -> None:
    early = gathered(
        run.connection.execute("SELECT state, world_rank FROM rank_state ORDER BY world_rank")
    )
    for state in filter(early.get, EARLY):
        verbs = VERBS[len(early[state]) > 1]
        run.note(run.path, f"{units.rank_names(early[state])} {EARLY[state].format(*verbs)}")


# In an NCCL communicator that has grown (ncclCommGrow), old ranks derive the identity from the
# parent's, new ranks from the unique id. One rank knows both: of the latter it records the former.
GROWN = "nccl.grown."
TURN, BITS = 7, 64  # of identity_of_child in src/nccl/nccl_communicators.c
FORCED = 4  # bits that are set in every identity
MOST_GENERATIONS = 64


def identities_agree(connection: sqlite3.Connection) -> None:
    """In NCCL communicators that have grown (ncclCommGrow), old ranks derive the identity from the
    parent's, new ranks from the unique id. One rank knows both and records them as the fact
    nccl.grown.<identity from the id>. Replaces the latter identity by the former, also for
    communicators created from such a communicator."""
    facts = connection.execute(
        "SELECT key, value FROM fact WHERE substr(key, 1, ?) = ?", (len(GROWN), GROWN)
    ).fetchall()
    agreed = {
        key[len(GROWN) :]: value
        for key, value in facts
        if _is_identity(key[len(GROWN) :]) and _is_identity(value)
    }
    children = connection.execute(
        "SELECT DISTINCT identity, parent_identity FROM communicator WHERE library = 'nccl'"
    ).fetchall()
    for _ in range(MOST_GENERATIONS):
        before = agreed
        agreed = {old: before.get(new, new) for old, new in before.items()}
        agreed |= {
            child: f"{int(child, 16) ^ _turned(parent) ^ _turned(agreed[parent]) | FORCED:016x}"
            for child, parent in children
            if parent in agreed and _is_identity(child)
        }
        if agreed == before:
            break
    for column in ("identity", "parent_identity"):
        connection.executemany(
            f"UPDATE communicator SET {column} = ? WHERE {column} = ?",
            [(new, old) for old, new in agreed.items()],
        )


def _is_identity(text: str) -> bool:
    return len(text) == BITS // 4 and set(text) <= set("0123456789abcdef")


def _turned(identity: str) -> int:
    number = int(identity, 16)
    return (number << TURN | number >> BITS - TURN) & (1 << BITS) - 1


ONE_PER_NODE = "one-per-node"
MOST_LISTED = 1 << 20  # ranks that are listed; a file may claim any number


# Which ranks of a job were profiled, where COMMPROF_RANKS chose some. The others leave no file and
# are not missing. setting: as it was given, like 0-63:8.
Profiled = namedtuple("Profiled", "setting ranks")


def profiled_ranks(setting: str, present: Iterable[int], world_size: int) -> Profiled | None:
    """None: all were to be. One per node: which ones is known from their files alone."""
    if setting == ONE_PER_NODE:
        return Profiled(setting, frozenset(present))
    found = spans_in(setting)
    spans = [range(span.start, min(span.stop, world_size), span.step) for span in found or ()]
    if found is None or sum(map(len, spans)) > MOST_LISTED:
        return None
    return Profiled(setting, frozenset(present).union(*spans))


def fact_rows(connection: sqlite3.Connection) -> list[query.Row]:
    """Provenance of a run: program, host, launcher, settings."""
    return list(query.rows(connection, "run/facts"))
