"""SQLite files of a rank or of a merged run: checked before anything in them is trusted, then
copied."""

from __future__ import annotations

import os
import re
import sqlite3
from collections import Counter, namedtuple
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple, Tuple, TypeVar
from urllib.parse import quote

from .. import APPLICATION_ID
from ..base import query
from ..base.errors import ReportError, version_check
from ..base.query import Row
from .archive import unpacked
from .sampled import Sampled
from .thinning import SAMPLED, Thinning
from .unseen import view_text
from .versions import NEWEST, OLDEST, last_buckets_of, schema_of, values_of

SQL = query.beside(__file__)

DAMAGE = (sqlite3.Error, UnicodeError, MemoryError)  # sqlite3 raises all of these on damaged files
HISTOGRAMS = ("bucket", "gpu_bucket")
SAMPLES = (*SAMPLED, "signature", "sample_window", "step", "gpu_sample_window")
NUMBERED = ("cell", "activity")  # columns: each file counts them from 1
# of what a file holds; a Python function takes twice as long
TEXT = partial(str, encoding="utf-8", errors="replace")
# memory for a run, and for the tables that commands create from it, before SQLite uses temporary
# files
CACHE_KIB = 262_144


# Conditions on a value, by the declared type of its column (schema.sql). 2^62 ns are 146 years; two
# such sums do not overflow.
TYPES = {
    "INTEGER": f"typeof({{0}}) = 'integer' AND {{0}} BETWEEN 0 AND {1 << 62}",
    "SIGNED INTEGER": f"typeof({{0}}) = 'integer' AND {{0}} BETWEEN -{1 << 62} AND {1 << 62}",
    "BOOLEAN": "typeof({0}) = 'integer' AND {0} IN (0, 1)",
    "TEXT": "typeof({0}) = 'text'",
}


class Checked(NamedTuple):
    """A database written by commprof."""

    version: int
    is_plain: bool  # its owner has added nothing


RankOfFile = namedtuple(
    "RankOfFile", "run_id world_rank world_size start_unix_ns end_unix_ns program"
)


class RunConnection(sqlite3.Connection):
    """Inserts many rows in one transaction. Without it SQLite would end one after each row, and
    visit all pages changed so far each time."""

    sampled: Sampled | None = None  # its sampled calls (sampled.py), once they are known
    chosen: Any = None  # what the filters leave of it (cells.py)

    def executemany(self, statement: str, rows: Iterable) -> sqlite3.Cursor:
        if self.in_transaction:
            return super().executemany(statement, rows)
        self.execute("BEGIN")
        try:
            return super().executemany(statement, rows)
        finally:
            if self.in_transaction:
                self.execute("COMMIT")


def database_create() -> RunConnection:
    """Creates an empty database with our schema, in memory as long as it is small."""
    connection = sqlite3.connect("", uri=True, isolation_level=None, factory=RunConnection)
    connection.text_factory = TEXT
    connection.create_function("impossible_values", 0, _impossible_values)
    connection.execute("PRAGMA trusted_schema = OFF")
    for database in ("main", "temp"):
        connection.execute(f"PRAGMA {database}.cache_size = -{CACHE_KIB}")
    connection.executescript(schema_of(NEWEST))
    return connection


def database_ranks(path: Path) -> list[Row]:
    """The ranks in a file. Raises ReportError if it is not a commprof database."""
    with _opened(path) as connection:
        _database_check(path, connection)
        ranks = SQL.ask(connection, "ranks_of_file", RankOfFile)
    if not ranks:
        raise ReportError(path, "is damaged: it holds no rank")
    if (
        not all(_is_rank(rank) for rank in ranks)
        or len({(rank.run_id, rank.world_size) for rank in ranks}) > 1
    ):
        raise ReportError(path, "is damaged: impossible values in table rank")
    return ranks


def _is_rank(rank: Row) -> bool:
    end_unix_ns = rank.start_unix_ns if rank.end_unix_ns is None else rank.end_unix_ns
    numbers = (rank.world_rank, rank.world_size, rank.start_unix_ns, end_unix_ns)
    return isinstance(rank.run_id, str) and all(isinstance(number, int) for number in numbers)


def _database_check(path: Path, connection: sqlite3.Connection, database: str = "main") -> Checked:
    """Raises ReportError unless the tables are exactly those of our schema, except for comments and
    spaces: computed columns or defaults could make reading arbitrarily expensive. Anything that the
    owner has added to the file is never read."""
    (application_id,) = connection.execute(f"PRAGMA {database}.application_id").fetchone()
    (version,) = connection.execute(f"PRAGMA {database}.user_version").fetchone()
    if application_id != APPLICATION_ID:
        raise ReportError(path, "is an SQLite database, but not one of commprof's")
    version_check(path, "schema", version, OLDEST, NEWEST)
    wrong, is_plain = _schema_check(version, _made(connection, database))
    if wrong:
        raise ReportError(path, wrong)
    return Checked(version, is_plain)


# rows of sqlite_master: kind (a table, an index, ...), name, the statement that created it
Made = Tuple[Tuple[str, str, str], ...]


@lru_cache(maxsize=4)
def _schema_check(version: int, made: Made) -> tuple[str, bool]:
    """Fault of a schema, if any; and whether it is plain. The ranks' files have the same schema: it
    is compared once."""
    ours, theirs = _entries_of_version(version), _entries(made)
    names = Counter(name.lower() for _, name, _ in theirs)
    for kind, name, sql in ours:
        if (kind, name, sql) not in theirs or names[name] > 1:
            what = (
                "has been changed; own tables, views and indexes may be added" if names[name]
                else "is missing"
            )
            return f"is damaged: commprof's {kind} '{name}' {what}", False
    return "", {*theirs} <= {*ours, *_added_by_merge()}


def _made(connection: sqlite3.Connection, database: str = "main") -> Made:
    """SQLite accepts blobs as texts here."""
    columns = "CAST(type AS TEXT), CAST(name AS TEXT), CAST(coalesce(sql, '') AS TEXT)"
    return tuple(connection.execute(f"SELECT {columns} FROM {database}.sqlite_master"))


def _entries(made: Made) -> Made:
    """Without comments and spaces."""
    return tuple(
        (kind, name, " ".join(re.sub("--.*", "", sql).split())) for kind, name, sql in made
    )


@lru_cache
def _entries_of_version(version: int) -> Made:
    connection = sqlite3.connect(":memory:")
    connection.executescript(schema_of(version))
    return _entries(_made(connection))


@lru_cache
def _added_by_merge() -> Made:
    """Never read. No indexes: SQLite would use them, and what they say may differ from their
    tables."""
    connection = sqlite3.connect(":memory:")
    connection.executescript(SQL.text("views") + view_text())
    return _entries(_made(connection))


def database_is_plain(path: Path) -> bool:
    """Whether this is a commprof database to which nothing was added."""
    with _opened(path) as connection:
        return _database_check(path, connection).is_plain


def database_write(connection: sqlite3.Connection, path: Path) -> None:
    """Writes a run into an empty file. Raises sqlite3.Error or OSError."""
    copy = sqlite3.connect(path)
    try:
        connection.backup(copy)
    finally:
        copy.close()


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    with (
        _read_only(path) as file,
        closing(sqlite3.connect(file, uri=True, isolation_level=None)) as connection,
    ):
        connection.text_factory = TEXT
        try:
            connection.execute("PRAGMA trusted_schema = OFF")
            yield connection
        except DAMAGE as error:
            raise _damage(path, error) from None


def database_copy(
    connection: sqlite3.Connection, path: Path, with_histograms: bool, thinning: Thinning | None
) -> None:
    """Adds all rows of a file to the run, or none. Adds only the samples that `thinning` retains;
    without `thinning` none."""
    try:
        with _read_only(path) as file, _attached(connection, "source", file):
            checked = _database_check(path, connection, "source")
            if checked == Checked(NEWEST, True):
                _copy_attached(connection, path, with_histograms, thinning)
                return
        with (
            _read_only(path) as file, _attached(connection, "theirs", file),
            _attached(connection, "source", ""),
        ):
            _source_fill(connection, checked.version)
            _copy_attached(connection, path, with_histograms, thinning)
    except DAMAGE as error:
        raise _damage(path, error) from None


def _damage(path: Path, error: Exception) -> ReportError:
    is_too_large = isinstance(error, MemoryError)
    return ReportError(
        path, "is damaged, or holds more than fits into memory" if is_too_large
        else f"is damaged: {error}",
    )


Counted = TypeVar("Counted")


def database_count(
    connection: sqlite3.Connection, path: Path, count: Callable[[str, set[str]], Counted]
) -> Counted | None:
    """Count over the samples of a file that is read later, by a function of its sample tables that
    have rows. None if its owner has added something, or it is damaged."""
    with (
        suppress(ReportError, *DAMAGE), _read_only(path) as file,
        _attached(connection, "source", file),
    ):
        if _database_check(path, connection, "source") == Checked(NEWEST, True):
            return count("source", _filled(connection, SAMPLED))
    return None


def database_join(connection: sqlite3.Connection, path: Path, with_samples: bool) -> None:
    """Adds all rows of a database that this program wrote of other ranks. Raises sqlite3.Error if
    they do not fit into the run."""
    with _read_only(path) as file, _attached(connection, "source", file):
        first_cell, first_activity = SQL.run(connection, "first_numbers").fetchone()
        connection.execute("BEGIN")
        try:
            numbers = {"first_cell": first_cell, "first_activity": first_activity}
            for table in _copied(with_histograms=True, with_samples=with_samples):
                connection.execute(_copying(table, ()), numbers)
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise


@contextmanager
def _attached(connection: sqlite3.Connection, name: str, file: str) -> Iterator[None]:
    connection.execute(f"ATTACH ? AS {name}", (file,))
    try:
        yield
    finally:
        connection.execute(f"DETACH {name}")


def _source_fill(connection: sqlite3.Connection, version: int) -> None:
    """Fills `source`, a temporary database, with rows of our tables from those in the file
    `theirs`, which has this version of the schema. So the owner's indexes and statistics are not
    used by SQLite."""
    for kind, name, sql in _entries_of_version(NEWEST):
        if kind != "table":
            continue
        values = values_of(version, name)
        if values:
            columns = (row[1] for row in connection.execute(f"PRAGMA main.table_info({name})"))
            taken = ", ".join(f"{values.get(column, column)} AS {column}" for column in columns)
            connection.execute(f"CREATE TABLE source.{name} AS SELECT {taken} FROM theirs.{name}")
            continue
        connection.execute(sql.replace("CREATE TABLE ", "CREATE TABLE source.", 1))
        if values is not None:
            connection.execute(f"INSERT INTO source.{name} SELECT * FROM theirs.{name}")
    for buckets in last_buckets_of(version):
        for name in HISTOGRAMS:
            connection.execute(
                f"UPDATE source.{name} SET bucket = ?2 WHERE bucket = ?1", buckets
            )


def _copy_attached(
    connection: sqlite3.Connection, path: Path, with_histograms: bool, thinning: Thinning | None
) -> None:
    """Most tables of most files are empty: nothing is prepared for them."""
    filled = _filled(connection, _columns())
    firsts = SQL.run(connection, "first_numbers").fetchone()
    connection.execute("BEGIN")
    try:
        passed = thinning.passed("source") if thinning else {}
        for table in _copied(with_histograms, thinning is not None):
            if table in filled:
                statement = _copying(table, _rules(table), passed.get(table))
                _copy_rows(connection, path, table, statement, firsts)
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _copy_rows(
    connection: sqlite3.Connection, path: Path, table: str, statement: str, firsts: tuple[int, int]
) -> None:
    """The constraints of the schema check each row as well."""
    try:
        connection.execute(statement, dict(zip(("first_cell", "first_activity"), firsts)))
    except sqlite3.IntegrityError as error:
        raise ReportError(
            path, f"is damaged: impossible values in table {table} ({error})"
        ) from None
    except sqlite3.OperationalError as error:
        if "user-defined function" not in str(error):
            raise
        raise ReportError(path, f"is damaged: impossible values in table {table}") from None


def _copied(with_histograms: bool, with_samples: bool) -> list[str]:
    """The tables that are copied."""
    left_out = {*HISTOGRAMS} if not with_histograms else set()
    left_out |= {*SAMPLES} if not with_samples else set()
    return [table for table in _columns() if table not in left_out]


@lru_cache
def _copying(table: str, rules: tuple[str, ...], passed: str | None = None) -> str:
    """A statement that adds all rows of a table of the attached file `source` to the run; cells and
    activities get numbers that are free in the run. It ends in an error at a row that breaks one of
    the rules. passed: of a table of samples, SQL that is true for rows that are not retained; these
    are not checked.

    SQLite inserts row by row because columns are named: of SELECT * it may copy the records of a
    file as they are, and check no constraint (its transfer optimization)."""
    columns = _columns()[table]
    numbered = next(iter(columns)) in NUMBERED
    values = (
        f"{table}.{name} + :first_{name}" if name in NUMBERED and numbered else f"{table}.{name}"
        for name in columns
    )
    condition = "count > 0" if numbered else "1"
    if rules:
        skip = f"WHEN {passed} THEN 0 " if passed is not None else ""
        condition = (
            f"CASE {skip}WHEN {' AND '.join(rules)} THEN {condition} ELSE impossible_values() END"
        )
    known = " ON CONFLICT (name) DO NOTHING" * (table == "call")
    return (
        f"INSERT INTO main.{table} SELECT {', '.join(values)} FROM source.{table} "
        f"WHERE {condition}{known}"
    )


@lru_cache
def _rules(table: str) -> tuple[str, ...]:
    """The condition on each row: its values are of their columns' types (schema.sql), and it is
    about a rank that the file holds."""
    columns = _columns()[table]
    rules = [
        f"({table}.{name} IS NULL OR {TYPES[kind].format(f'{table}.{name}')})"
        for name, kind in columns.items()
    ]
    if next(iter(columns)) == "world_rank":
        rules.append(f"{table}.world_rank IN (SELECT world_rank FROM source.rank)")
    return tuple(rules)


def _impossible_values() -> None:
    """In SQL, ends a statement."""
    raise ValueError


def _filled(connection: sqlite3.Connection, tables: Iterable[str]) -> set[str]:
    """Tables of the attached file `source` that have rows."""
    names = list(tables)
    found = connection.execute(
        "SELECT " + ", ".join(f"EXISTS (SELECT 1 FROM source.{name})" for name in names)
    ).fetchone()
    return {name for name, is_filled in zip(names, found) if is_filled}


@lru_cache
def _columns() -> dict[str, dict[str, str]]:
    """The declared types of the columns of all tables that are copied: of all but the bounds of
    buckets, which are the same in each file."""
    connection = sqlite3.connect(":memory:")
    connection.executescript(schema_of(NEWEST))
    tables = [name for kind, name, _ in _entries_of_version(NEWEST) if kind == "table"]
    return {
        table: {
            name: kind for _, name, kind, *_ in connection.execute(f"PRAGMA table_info({table})")
        }
        for table in tables if table != "bucket_bound"
    }


@contextmanager
def _read_only(path: Path) -> Iterator[str]:
    """A URI that opens the file without locks: files of a run are never changed, and a read-only
    file system may not permit locks."""
    with unpacked(path) as file:
        yield f"file:{quote(os.fsencode(file.absolute()))}?mode=ro&immutable=1"
