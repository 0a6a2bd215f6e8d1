"""SQLite files of a rank or of a merged run: checked before anything in them is trusted, then
copied.

<archive>/rank-<n>.db is the path of one in an archive with the databases of a node's ranks,
node-*.tar, from which it is unpacked while it is read. An archive is untrusted input, and ranks may
be appending to it. Bytes after its last whole member are no part of it.

Databases of every version of the schema from release 0.1.0 on stay readable. A version is written
down as what it has added to the one before: the schema of an older version is schema.sql without
what was added later, and rows of older versions get the values given here.
"""

from __future__ import annotations

import os
import re
import sqlite3
import tarfile
import threading
from collections import Counter, namedtuple
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import lru_cache, partial
from io import BytesIO
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, BinaryIO, List, Tuple
from urllib.parse import quote

from .. import APPLICATION_ID
from ..base import (
    ReportError,
    Row,
    is_full,
    library_text,
    query,
    regular_open,
    version_check,
)
from .sampled import SAMPLED, Sampled, Thinning

# sqlite3 raises all of these on damaged files
DAMAGE = (sqlite3.Error, UnicodeError, MemoryError, OverflowError)
HISTOGRAMS = ("bucket", "gpu_bucket")
SAMPLES = (*SAMPLED, "signature", "sample_window", "step", "gpu_sample_window")
NUMBERED = {"cell": "cell", "activity": "gpu_activity"}  # columns that each file counts from 1
TAKEN = {  # by table, SQL: which of its sound rows are new to the run
    **dict.fromkeys(("cell", "bucket", "gpu_activity", "gpu_bucket"), "count IS NOT 0"),
    # another library than those that are known is checked by the schema, whatever the name
    "call": "name NOT IN (SELECT name FROM main.call) OR library NOT IN (SELECT library FROM "
    "main.call)",
}
# SQL: whether a row of `call` was checked in another file; the ranks' tables are equal
CALL = "(name, family, library, form, bandwidth, waits_for)"
KNOWN_CALL = f"coalesce({CALL} IN (SELECT {CALL[1:-1]} FROM main.call), 0)"
# of what a file holds; a Python function takes twice as long
TEXT = partial(str, encoding="utf-8", errors="replace")
# memory for a run, and for the tables that commands create from it, before SQLite uses temporary
# files
CACHE_KIB = 262_144
HEADER_BYTES = 100  # of an SQLite file
MOST_COPIED = 1 << 24  # bytes of a file that is copied before it is read


# Conditions on a value, by the declared type of its column (schema.sql). 2^62 ns are 146 years; two
# such sums do not overflow.
TYPES = {
    "INTEGER": f"typeof({{0}}) = 'integer' AND {{0}} BETWEEN 0 AND {1 << 62}",
    "SIGNED INTEGER": f"typeof({{0}}) = 'integer' AND {{0}} BETWEEN -{1 << 62} AND {1 << 62}",
    "BOOLEAN": "typeof({0}) = 'integer' AND {0} IN (0, 1)",
    "TEXT": "typeof({0}) = 'text'",
}
# the constraints of a table; parentheses inside them are at most two deep
CHECKS = re.compile(r"CHECK \(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)")


RankOfFile = namedtuple(
    "RankOfFile", "run_id world_rank world_size start_unix_ns end_unix_ns program"
)


class Source:
    """The database that a connection has attached as `source`.

    A small file is copied to where the one before it was, unless the two have different layouts or
    schemas: SQLite reads its pages again, but prepares no statement again, which would take it
    longer than to read the file. It does so because each copy has another change counter in its
    header."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.copy: BinaryIO = BytesIO()  # the file where small files are put, after the first
        self.layout = b""  # of the sound file that is there; empty: of none
        self.made: Made = []
        self.found = 0, False  # version and plainness of a file of this layout and schema
        self.copies = 0

    def put(self, path: Path) -> tuple[int, bool]:
        """Attaches the file in place of the one before; version and plainness as _database_check
        gives them. The files of a run are never changed, and read without locks: a read-only file
        system may not permit them."""
        with unpacked(path) as on_disk, regular_open(on_disk) as file:
            before, self.layout = self.layout, b""
            header = bytearray(file.read(HEADER_BYTES))
            layout = bytes(header[16:18] + header[20:24] + header[40:72])
            is_alike = layout == before
            if not self._copied(header, file.fileno(), is_alike):
                layout, is_alike = b"", False
                self._attach(on_disk, "immutable")
        made = _made(self.connection, "source")
        if is_alike and made != self.made:
            return self.put(path)
        if not is_alike:
            self.found = _database_check(path, header, made)
        self.layout, self.made = layout, made
        return self.found

    def _copied(self, header: bytearray, file: int, is_alike: bool) -> bool:
        """False: the file is large, or there is no space for a copy."""
        self.copies += 1
        header[18:20] = b"\1\1"  # of a file in WAL mode: what was checkpointed
        header[24:28] = self.copies.to_bytes(4, "big")
        file_bytes = os.fstat(file).st_size
        if not HEADER_BYTES <= file_bytes <= MOST_COPIED:
            return False
        with suppress(OSError), ExitStack() as stack:
            if not is_alike:
                self.copy.close()
                name = stack.enter_context(NamedTemporaryFile(prefix="commprof-")).name
                self.copy = open(name, "r+b", buffering=0)
            self.copy.seek(0)
            is_whole = os.sendfile(self.copy.fileno(), file, 0, file_bytes) == file_bytes
            os.pwrite(self.copy.fileno(), header, 0)
            self.copy.truncate(file_bytes)
            if is_whole and not is_alike:
                self._attach(Path(name), "nolock")
            return is_whole
        return False

    def _attach(self, path: Path, how: str) -> None:
        self._detach()
        place = f"file:{quote(os.fsencode(path.absolute()))}?mode=ro&{how}=1"
        self.connection.execute("ATTACH ? AS source", (place,))

    def close(self) -> None:
        """No more files are read. Whatever the last one holds has no names in the run then."""
        self._detach()
        self.copy.close()

    def _detach(self) -> None:
        with suppress(sqlite3.OperationalError):  # there may be none
            self.connection.execute("DETACH source")


class RunConnection(sqlite3.Connection):
    """Inserts many rows in one transaction. Without it SQLite would end one after each row, and
    visit all pages changed so far each time."""

    sampled: Sampled | None = None  # its sampled calls (sampled.py), once they are known
    chosen: Any = None  # what the filters leave of it (selection.py)
    source: Source  # the file that is read

    def executemany(self, statement: str, rows: Iterable) -> sqlite3.Cursor:
        if self.in_transaction:
            return super().executemany(statement, rows)
        with self:
            self.execute("BEGIN")
            return super().executemany(statement, rows)


def database_create(page_bytes: int = 4_096) -> RunConnection:
    """Creates an empty database with our schema, in memory as long as it is small. At the end of
    each transaction SQLite visits all pages that are not in a file: of a large run they should be
    few."""
    connection = _connection("")
    connection.execute(f"PRAGMA page_size = {page_bytes}")
    connection.execute("PRAGMA journal_mode = MEMORY")
    connection.create_function("impossible_values", 0, lambda: 1 / 0)  # ends a statement
    for database in ("main", "temp"):
        connection.execute(f"PRAGMA {database}.cache_size = -{CACHE_KIB}")
    connection.executescript(schema_of(NEWEST))
    # _copying has checked what is inserted; and rows_insert has it checked
    connection.execute("PRAGMA ignore_check_constraints = ON")
    return connection


def _connection(name: str) -> RunConnection:
    connection = sqlite3.connect(name, uri=True, isolation_level=None, factory=RunConnection)
    connection.text_factory = TEXT
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.source = Source(connection)
    return connection


def ranks_in(path: Path, connection: sqlite3.Connection) -> list[Row]:
    """The ranks in a file that is open."""
    ranks = query.ask(connection, "run/ranks_of_file", RankOfFile)
    if not ranks:
        raise ReportError(path, "is damaged: it holds no rank")
    kinds: tuple[Any, ...] = (str, int, int, int, (int, type(None)))
    are_right = all(isinstance(*each) for rank in ranks for each in zip(rank, kinds))
    if not are_right or len({(rank.run_id, rank.world_size) for rank in ranks}) > 1:
        raise ReportError(path, "is damaged: impossible values in table rank")
    return ranks


def _database_check(path: Path, header: bytearray, made: Made) -> tuple[int, bool]:
    """Version of the schema, and whether the file's owner has added nothing. Raises ReportError
    unless the tables are exactly those of our schema, except for comments and spaces: computed
    columns or defaults could make reading arbitrarily expensive. Anything that the owner has added
    to the file is never read. header: of the file, in SQLite's format, which has both numbers."""
    version, application_id = (int.from_bytes(header[at : at + 4], "big") for at in (60, 68))
    if application_id != APPLICATION_ID:
        raise ReportError(path, "is an SQLite database, but not one of commprof's")
    version_check(path, "schema", version, OLDEST, NEWEST)
    ours, theirs = _entries_after(schema_of(version)), _entries(made)
    names = Counter(name.lower() for _, name, _ in theirs)
    for kind, name, sql in ours:
        if (kind, name, sql) not in theirs or names[name] > 1:
            what = (
                "has been changed; own tables, views and indexes may be added"
                if names[name]
                else "is missing"
            )
            raise ReportError(path, f"is damaged: commprof's {kind} '{name}' {what}")
    # no indexes: SQLite would use them, and what they say may differ from their tables
    added = {*theirs}.difference(ours)
    return version, not added or added <= {*_entries_after(query.text("run/views"))}


# rows of sqlite_master: kind (a table, an index, ...), name, the statement that created it, and its
# root page
Made = List[Tuple[Any, ...]]


def _made(connection: sqlite3.Connection, database: str = "main") -> Made:
    """SQLite accepts blobs as texts here. It is read for each file: as bytes in half the time."""
    texts = ", ".join(f"CAST(coalesce({name}, '') AS BLOB)" for name in ("type", "name", "sql"))
    return connection.execute(f"SELECT {texts}, rootpage FROM {database}.sqlite_master").fetchall()


def _entries(made: Made) -> list[tuple[str, ...]]:
    """Without comments and spaces."""
    return [
        (TEXT(kind), TEXT(name), " ".join(re.sub("--.*", "", TEXT(sql)).split()))
        for kind, name, sql, _ in made
    ]


@lru_cache
def _entries_after(script: str) -> list[tuple[str, ...]]:
    return _entries(_made(_after(script)))


@lru_cache
def _after(script: str) -> sqlite3.Connection:
    """A database in memory that is what a script makes of it; all threads read it."""
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    connection.executescript(script)
    return connection


def database_is_plain(path: Path) -> bool:
    """Whether this is a commprof database to which nothing was added."""
    with database_open(path) as (_, _, is_plain):
        return is_plain


def database_write(connection: sqlite3.Connection, path: Path) -> None:
    """Writes a run into an empty file. Raises sqlite3.Error or OSError."""
    with closing(sqlite3.connect(path)) as copy:
        connection.backup(copy)


@contextmanager
def database_open(path: Path) -> Iterator[tuple[sqlite3.Connection, int, bool]]:
    """The file, the version of its schema, and whether its owner has added nothing to it. A thread
    has one at a time: the next takes its place."""
    connection = _reader(os.getpid(), threading.get_ident())
    with damage_named(path):
        yield (connection, *connection.source.put(path))


@lru_cache(maxsize=1)
def _reader(process: int, thread: int) -> RunConnection:
    """The connection with which a thread opens one file after the other."""
    return _connection(":memory:")


def database_copy(
    connection: RunConnection,
    path: Path,
    with_histograms: bool,
    thinning: Thinning | None = None,
    is_ours: bool = False,
) -> None:
    """Adds all rows of a file to the run, or none. Adds only the samples that `thinning` retains;
    without `thinning` none. is_ours: the reporter has written the file, and checked its rows."""
    left_out = (*HISTOGRAMS * (not with_histograms), *SAMPLES * (thinning is None))
    passed = {"call": KNOWN_CALL}
    with damage_named(path):
        version, _ = connection.source.put(path)
        wanted = [
            table
            for table in _columns()
            if table not in left_out and values_of(version, table) is not None
        ]
        # most tables of most files are empty: nothing is prepared for them
        exists = ", ".join(f"EXISTS (SELECT 1 FROM source.{table})" for table in wanted)
        are_filled = connection.execute(f"SELECT {exists}").fetchone()
        filled = [table for table, is_filled in zip(wanted, are_filled) if is_filled]
        if thinning:
            thinning.expect(connection, filled)
            passed |= thinning.passed(connection, filled, "source")
        first = free_numbers(connection)
        with connection:
            connection.execute("BEGIN")
            for table in filled:
                statement = _copying(table, version, passed.get(table, "0"), is_ours)
                try:
                    connection.execute(statement, first)
                except (sqlite3.IntegrityError, sqlite3.OperationalError) as error:
                    is_constraint = isinstance(error, sqlite3.IntegrityError)
                    if not is_constraint and "user-defined function" not in str(error):
                        raise
                    why = f"impossible values in table {table}" + f" ({error})" * is_constraint
                    raise ReportError(path, f"is damaged: {why}") from None


@contextmanager
def damage_named(path: Path) -> Iterator[None]:
    """Raises ReportError for what sqlite3 raises."""
    try:
        yield
    except DAMAGE as error:
        if is_full(error):  # of the run, whichever file was added last
            raise
        is_too_large = isinstance(error, MemoryError)
        why = ", or holds more than fits into memory" if is_too_large else f": {error}"
        raise ReportError(path, f"is damaged{why}") from None


def free_numbers(connection: sqlite3.Connection) -> dict[str, int]:
    """The largest number of a cell and of an activity in the run; those of another file follow
    it."""
    largest = (f"coalesce((SELECT max({name}) FROM main.{NUMBERED[name]}), 0)" for name in NUMBERED)
    return dict(zip(NUMBERED, connection.execute(f"SELECT {', '.join(largest)}").fetchone()))


@lru_cache(maxsize=256)
def _copying(table: str, version: int, passed: str, is_ours: bool = False) -> str:
    """A statement that adds all rows of a table of the attached file `source` to the run; cells and
    activities get numbers that are free in the run. It ends in an error at a row in which a value
    is not of its column's type or breaks a constraint (schema.sql), or which is about a rank that
    the file does not hold. passed: SQL that is true for rows that are not retained; these are not
    checked. is_ours: of others only whether their numbers are free.

    SQLite inserts row by row because columns are named: of SELECT * it may copy the records of a
    file as they are (its transfer optimization). It uses no index: what one of the owner's says may
    differ from the table."""
    columns, older = _columns()[table], values_of(version, table) or {}
    read = ", ".join(f"{older.get(name, name)} AS {name}" for name in columns)
    added = [f"{name} + :{name}" if name in NUMBERED else name for name in columns]
    rules = (
        [TYPES["INTEGER"].format(name) for name in columns if name in NUMBERED]
        if is_ours
        else _rules(table)
    )
    condition = (
        f"CASE WHEN {passed} THEN 0 WHEN {' AND '.join(rules) or 1} "
        f"THEN ({TAKEN.get(table, 1)}) ELSE impossible_values() END"
    )
    return (
        f"INSERT INTO main.{table} SELECT {', '.join(added)} "
        f"FROM (SELECT {read} FROM source.{table} NOT INDEXED) AS {table} WHERE {condition}"
    )


def _rules(table: str) -> list[str]:
    """SQL: conditions that the rows of a file meet. SQLite would gather the texts of a constraint
    measure IN ('call', ...) again for each row that it inserts, but not for one that it selects."""
    columns = _columns()[table]
    (created,) = (sql for _, name, sql in _entries_after(schema_of(NEWEST)) if name == table)
    return [
        *(f"({name} IS NULL OR {TYPES[kind].format(name)})" for name, kind in columns.items()),
        *(f"coalesce({check}, 1)" for check in CHECKS.findall(created)),
        *[f"{table}.world_rank IN (SELECT world_rank FROM source.rank)"]
        * ("world_rank" in columns),
    ]


def rows_insert(
    connection: sqlite3.Connection, path: Path, tables: Mapping[str, Sequence[tuple]]
) -> None:
    """Adds all rows of a ledger to the run, or none; of rows with equal keys the first. Raises
    ReportError."""
    first = free_numbers(connection)
    with damage_named(path), connection:
        connection.execute("PRAGMA ignore_check_constraints = OFF")
        connection.execute("BEGIN")
        for table, rows in tables.items():
            places = ", ".join(
                f"? + {first[name]}" if name in first else "?" for name in _columns()[table]
            )
            connection.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({places})", rows)


@lru_cache
def _columns() -> dict[str, dict[str, str]]:
    """The declared types of the columns of all tables that are copied: of all but the bounds of
    buckets, which are the same in each file."""
    connection = _after(schema_of(NEWEST))
    tables = [name for kind, name, _ in _entries_after(schema_of(NEWEST)) if kind == "table"]
    return {
        table: {
            name: kind for _, name, kind, *_ in connection.execute(f"PRAGMA table_info({table})")
        }
        for table in tables
        if table != "bucket_bound"
    }


ARCHIVE = re.compile(r"node-\d+-.+\.tar")
BLOCK = tarfile.BLOCKSIZE


def archive_members(archive: Path) -> dict[str, tuple[int, int]]:
    """By name where each member begins, and how many bytes it has. Raises ReportError if the
    archive cannot be read."""
    try:
        status = os.stat(archive)
        return _members(archive, status.st_size, status.st_mtime_ns)
    except OSError as error:
        raise ReportError(archive, error.strerror or str(error)) from None


@lru_cache(maxsize=4096)
def _members(archive: Path, archive_bytes: int, _changed_ns: int) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    begin = BLOCK
    with regular_open(archive) as file, suppress(tarfile.HeaderError):
        while True:
            file.seek(begin - BLOCK)
            header = tarfile.TarInfo.frombuf(file.read(BLOCK), "utf-8", "surrogateescape")
            if not 0 <= header.size <= archive_bytes - begin:
                break
            found.setdefault(header.name, (begin, header.size))
            begin += -(-header.size // BLOCK) * BLOCK + BLOCK
    return found


def file_of(path: Path) -> Path:
    """The file on the disk: the path itself, or the archive that it is in."""
    return path.parent if ARCHIVE.fullmatch(path.parent.name) and path.parent.is_file() else path


def database_of(ledger: Path) -> Path:
    """The database that a ledger has become: a file of its own, or one in an archive beside it."""
    own = ledger.with_suffix(".db")
    for archive in [] if own.exists() else ledger.parent.glob("node-*.tar"):
        with suppress(ReportError):
            if ARCHIVE.fullmatch(archive.name) and own.name in archive_members(archive):
                return archive / own.name
    return own


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """The file itself; a temporary one for that of an archive."""
    if file_of(path) == path:
        yield path
        return
    member = archive_members(path.parent).get(path.name)
    if not member:
        raise ReportError(path, "is not in the archive")
    begin, member_bytes = member
    with ExitStack() as stack:
        try:
            archive = stack.enter_context(regular_open(path.parent))
            aside = stack.enter_context(NamedTemporaryFile(prefix="commprof-"))
            archive.seek(begin)
            aside.write(archive.read(member_bytes))
            aside.flush()
        except OSError as error:
            raise ReportError(path, f"cannot be unpacked: {error.strerror or error}") from None
        yield Path(aside.name)


MOST_SUM = (1 << 63) - 1  # largest integer of SQLite
ALMOST = 0.999  # share of MOST_SUM; a sum of floats is not exact


class LargeSum:
    """SQL's sum() without overflow: exact up to SQLite's largest integer, a float beyond."""

    def __init__(self) -> None:
        self.sum: int | float | None = None

    def step(self, value: int | float | None) -> None:
        if value is not None:
            self.sum = value if self.sum is None else self.sum + value

    def finalize(self) -> int | float | None:
        return self.sum if self.sum is None or abs(self.sum) <= MOST_SUM else float(self.sum)


def sums_secure(connection: sqlite3.Connection) -> None:
    """SQLite's sum() fails with an error beyond 2^63. Ours is slow, so it replaces it only in runs
    whose sums may come near, after the files were read: views of a trusted schema alone, which is
    ours, may call it. Window functions must use total(), because Python cannot replace sum() there.
    """
    (largest,) = query.run(connection, "run/largest_sum").fetchone()
    if largest > ALMOST * MOST_SUM:
        # typeshed knows aggregates of one integer alone
        connection.create_aggregate("sum", 1, LargeSum)  # type: ignore[arg-type]
        connection.execute("PRAGMA trusted_schema = ON")


# By version and table: the columns that it has added, each with its value in older rows; None: the
# table itself. The columns that ranks_of_file.sql reads never change.
ADDED: dict[int, dict[str, dict[str, str] | None]] = {
    10: {
        "rank": {
            "dropped_messages": "0",
            "dropped_completions": "0",
            "interrupted_calls": "0",
            "window_mask": "0",
            "record_begin_ns": "NULL",
            "record_end_ns": "NULL",
            "record_asked_ns": "NULL",
            "record_is_full": "0",
        },
        "gpu_device": {
            "sms": "NULL",
            "communication_ns": "0",
            "communication_sm_ns": "0",
            "communication_most_sms": "0",
            "memory_bytes": "NULL",
        },
        "sample": {
            "object": "NULL",
            "object_sequence": "NULL",
            "polled_since_ns": "NULL",
            "polled_ns": "NULL",
            "offered": "NULL",
            "agreed": "NULL",
        },
        "signature": {"buffer_at": "NULL", "received_at": "NULL"},
        "sample_epoch": None,
        "gpu_reading": None,
        "cpu_time": None,
        "negotiation": None,
        "negotiated_place": None,
        "negotiated_step": None,
    },
}
# By version: the last bucket of histograms, of all longer durations, before it and from it on.
LAST_BUCKET = {10: (289, 345)}
NEWEST, OLDEST = max(ADDED), min(ADDED) - 1


@lru_cache
def schema_of(version: int) -> str:
    """The statements that create an empty database of a version. An added column has a line of
    schema.sql to itself."""
    schema = library_text("output/schema.sql")
    for newer in range(version + 1, NEWEST + 1):
        for table, columns in ADDED[newer].items():
            (created,) = re.findall(rf"^CREATE TABLE {table} \(.*?^\)[^;]*;$", schema, re.M | re.S)
            lines = rf"^ +({'|'.join(columns or ())}) .*\n"
            older = re.sub(lines, "", created, flags=re.M) if columns else ""
            schema = schema.replace(created, older)
        before, since = LAST_BUCKET.get(newer, (0, 0))
        schema = schema.replace(f"bucket <= {since})", f"bucket <= {before})")
    return schema.replace(f"user_version = {NEWEST};", f"user_version = {version};")


def values_of(version: int, table: str) -> Mapping[str, str] | None:
    """The columns of today's table that a version lacks, with their values in its rows; None: it
    lacks the table."""
    lacks: dict[str, str] = {}
    for newer in range(version + 1, NEWEST + 1):
        columns = ADDED[newer].get(table, {})
        if columns is None:
            return None
        lacks.update(columns)
        if newer in LAST_BUCKET and table in ("bucket", "gpu_bucket"):
            before, since = LAST_BUCKET[newer]
            lacks["bucket"] = f"CASE bucket WHEN {before} THEN {since} ELSE bucket END"
    return lacks
