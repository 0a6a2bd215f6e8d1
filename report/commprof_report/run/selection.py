"""The part of a run that the filters --call, --communicator, --region, --rank, --bytes and
--memory-kind select, and its counters as columns, in terms of the whole run.

timed: what the times of a cell are of: 'call' (unsuccessful polls included), 'completion'; for NCCL
also 'device', and 'captured', which has moved nothing yet.
"""

from __future__ import annotations

from collections import namedtuple
import argparse
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from fractions import Fraction
from functools import cached_property
from math import ceil, floor
from sqlite3 import Connection, Cursor
from typing import Any

from ..base import (
    BINS,
    Columns,
    Counters,
    Flags,
    Histogram,
    Ints,
    Row,
    Texts,
    UsageError,
    View,
    durations,
    measures,
    np,
    option,
    own,
    query,
    read,
    read_large,
    summarize,
    threshold,
    units,
    whole,
)
from .run import Run
from .unseen import reasons_found

BINARY_FACTORS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
BYTES = re.compile(
    r"(\d{1,18}|\d{1,3}(?:,\d{3})+)(?:\.(\d{1,9}))? ?(?:([KMGT])(?:iB)?|([KMGTP]B)|B)?",
    re.IGNORECASE,
)
MIXED = "mixed"
MOST = 1 << 62  # bytes
MEMORY_KINDS = ("host", "device", "managed", "pinned", MIXED)


FILTERS = ("call", "communicator", "region", "rank", "bytes", "memory_kind")


ByteRange = namedtuple("ByteRange", "low high")


def byte_range(text: str) -> ByteRange:
    """Parses LOW:HIGH, either side may be omitted; or one size."""
    low, colon, high = text.partition(":")
    if not colon:
        return _bytes(low)
    bounds = ByteRange(_bytes(low).low if low else None, _bytes(high).high if high else None)
    if bounds.low is not None and bounds.high is not None and bounds.low > bounds.high:
        raise argparse.ArgumentTypeError(f"{text}: {low} is more than {high}")
    return bounds


def _bytes(text: str) -> ByteRange:
    """Parses a size as the range of sizes that are printed so: 156 KB is 155,500
    to 156,500 bytes."""
    match = BYTES.fullmatch(text.strip())
    if not match:
        what = (
            "a size is a number, with K, M or G for 2^10, 2^20, 2^30 bytes, or with KB, MB or "
            "GB as sizes are shown"
        )
        raise argparse.ArgumentTypeError(f"{text}: {what}")
    whole, digits, binary, decimal = match.groups(default="")
    value = Fraction(f"{whole.replace(',', '')}.{digits or 0}")
    if decimal:
        unit = units.DECIMAL_FACTORS[decimal.upper()]
        half = Fraction(unit, 2 * 10 ** max(len(digits), units.digits_shown(value)))
        return ByteRange(ceil(value * unit - half), floor(value * unit + half))
    size = value * BINARY_FACTORS[binary.upper()]
    if size.denominator > 1:
        raise argparse.ArgumentTypeError(f"{text}: not a whole number of bytes")
    return ByteRange(int(size), int(size))


def rank_spans(text: str) -> list[range]:
    """Parses ranks such as 0,3-5,8-16:2."""
    spans = units.spans_in(text)
    if spans is None or not all(spans):
        raise argparse.ArgumentTypeError(f"{text}: ranks are a list like 0,3-5,8-16:2")
    return spans


OPTIONS = (
    option(
        "--call",
        action="append",
        type=units.as_read,
        metavar="NAME",
        group="filters",
        help="only these calls: Allreduce or MPI_Allreduce, in any case; repeat the option or "
        "write a,b",
    ),
    option(
        "--communicator",
        action="append",
        type=units.as_read,
        metavar="NAME",
        group="filters",
        help="only these: a label, a name, or four digits of an identity, as `communicators` "
        "prints them; may be repeated",
    ),
    option(
        "--region",
        action="append",
        type=units.as_read,
        metavar="NAME",
        group="filters",
        help="only calls in these regions and in regions inside them, as `regions` prints them; "
        "may be repeated",
    ),
    option(
        "--rank",
        type=rank_spans,
        metavar="LIST",
        group="filters",
        help="only these world ranks: 0,3-5,8-16:2",
    ),
    option(
        "--bytes",
        type=byte_range,
        metavar="LOW:HIGH",
        group="filters",
        help="only these message sizes, bounds included: 1K:4M, :64, 1G:, or one size; K, M, G: "
        "powers of 2^10; 1.18MB: all sizes printed so",
    ),
)
MEMORY_KIND = option(
    "--memory-kind",
    choices=MEMORY_KINDS,
    help="only calls whose buffers have this memory kind; mixed: sent from one kind, received "
    "into another",
)


Selection = Run  # to which filters were applied, once: they own the TEMP TABLEs named selected_


def select(run: Run, arguments: argparse.Namespace, bins: str = "exact") -> Selection:
    """Applies the filters to the run; `cells_of` then has the selected counters."""
    texts = {
        column: find(run, wanted)
        for option, column, find in (
            ("call", "call", _calls),
            ("communicator", "identity", identities_find),
            ("region", "region", _regions),
        )
        if (wanted := getattr(arguments, option))
    }
    ranks = _ranks(run, arguments.rank) if arguments.rank else None
    for column, kept in (("call", texts.get("call")), ("rank", ranks)):
        if kept:
            run.connection.execute(f"DELETE FROM selected_{column}")
            keep = f"INSERT INTO selected_{column} VALUES (?)"
            run.connection.executemany(keep, [(value,) for value in kept])
    sizes = arguments.bytes or ByteRange(None, None)
    if arguments.bytes:
        _sizes_check(run, sizes)
    memory_kind = getattr(arguments, "memory_kind", None)
    run.connection.chosen = Cells(run.connection, texts, ranks, sizes, memory_kind, bins)
    run.filters = filters(arguments)
    return run


def filters(arguments: argparse.Namespace) -> list[str]:
    """The options that select a part of the run."""
    return [f"--{name.replace('_', '-')}" for name in FILTERS if getattr(arguments, name, None)]


def _chosen(
    option: str, wanted: Iterable[str], matching: Callable[[str], set[str]], otherwise: str
) -> set[str]:
    """All that match one of the wanted texts. Raises UsageError if nothing matches one of them."""
    chosen: set[str] = set()
    for text in wanted:
        found = matching(text)
        if not found:
            raise UsageError(f"--{option} {text}", otherwise)
        chosen |= found
    return chosen


def _calls(run: Run, wanted: list[str]) -> set[str]:
    names = _column(run, "SELECT call FROM selected_call ORDER BY call")
    return _chosen(
        "call",
        [part.strip() for text in wanted for part in text.split(",") if part.strip()],
        lambda text: {name for name in names if text.lower() in (name.lower(), name[4:].lower())},
        f"this run made no such call; it made: {', '.join(names) or 'none'}",
    )


def _column(run: Run, query: str) -> list[Any]:
    return [value for (value,) in run.connection.execute(query)]


def run_communicators(connection: Connection) -> dict[str, Row]:
    """By identity, in order."""
    return {row.identity: row for row in query.rows(connection, "run/run_communicators")}


def identities_find(run: Run, wanted: list[str]) -> set[str]:
    known = query.run(run.connection, "run/known_communicators").fetchall()
    labels = ", ".join(sorted(label for _, label, _ in known))
    return _chosen(
        "communicator",
        wanted,
        lambda text: (
            {identity for identity, label, name in known if text in (label, name)}
            or {
                identity
                for identity, _, _ in known
                if len(text) >= whole("run.identity-digits") and identity.startswith(text.lower())
            }
        ),
        f"this run has no such communicator; it has: {labels}",
    )


def _regions(run: Run, wanted: list[str]) -> set[str]:
    known = _column(
        run, "SELECT DISTINCT region_name FROM region_of WHERE region_name <> '' ORDER BY 1"
    )
    return _chosen(
        "region",
        wanted,
        lambda text: {name for name in known if name == text or name.startswith(f"{text}/")},
        f"no call of this run is in such a region; there are: {', '.join(known) or 'none'}",
    )


def _sizes_check(run: Run, sizes: ByteRange) -> None:
    """Raises UsageError if no call has such a size; names the nearest one."""
    low, high = sizes.low or 0, MOST if sizes.high is None else sizes.high
    known = _column(run, "SELECT DISTINCT bytes FROM cell WHERE bytes IS NOT NULL")
    if known and not any(low <= size <= high for size in known):
        near = min(known, key=lambda size: min(abs(size - low), abs(size - high)))
        raise UsageError(
            "--bytes",
            f"no call of this run has such a size; the nearest is {units.size(near)}, "
            f"--bytes {near} (K is 1,024 bytes, KB is 1,000)",
        )


def _ranks(run: Run, spans: list[range]) -> list[int]:
    present = _column(run, "SELECT world_rank FROM rank ORDER BY world_rank")
    chosen = [rank for rank in present if any(rank in span for span in spans)]
    if not chosen:
        raise UsageError("--rank", f"the run has ranks {units.rank_list(present)}")
    return chosen


OF_TRAFFIC = ("traffic", "is_told", "is_negotiating")  # columns that are added when asked for
OF_ROWS = ("columns", "counted", "histogram")


class Cells(Counters):
    """The counters of a run as the filters leave it. kept: by column, what they leave of its texts;
    ranks: None, all; sizes: the smallest and the largest one."""

    text_names = frozenset(
        "call measure memory_kind region identity label timed traffic family library form "
        "bandwidth waits_for".split()
    )

    def __init__(
        self,
        connection: Connection,
        kept: Mapping[str, Collection[str]],
        ranks: Collection[int] | None,
        sizes: ByteRange,
        memory_kind: str | None,
        bins: str,
    ) -> None:
        self.connection, self.kept, self.ranks, self.sizes = connection, kept, ranks, sizes
        self.only_kind, self.bins = memory_kind, bins
        self.texts = Texts()

    @cached_property
    def whole(self) -> Cells:
        """All cells of the run, whatever is selected."""
        columns = columns_of(query.run(self.connection, "run/cells"), self.texts)
        low, high = BINS[self.bins](columns["bytes"], columns["is_folded"])
        return self._with({**columns, "bytes_low": low, "bytes_high": high}, ranks=None)

    @cached_property
    def columns(self) -> dict[str, np.ndarray]:
        whole = self.whole
        names = ("call", "identity", "region", "bytes", "world_rank")
        flags = self.are_left(self.texts, **{name: getattr(whole, name) for name in names})
        if self.only_kind == MIXED:
            flags &= whole.is_in("memory_kind", *(kind for kind in self.texts.texts if ">" in kind))
        elif self.only_kind:
            flags &= whole.is_in("memory_kind", self.only_kind)
        return whole.columns if flags.all() else whole.take(flags).columns

    def are_left(self, texts: Texts, **columns: Ints) -> Flags:
        """Which calls do the filters leave? Those on communicators that are not known are among
        them. columns: call, identity, region, bytes, world_rank."""
        found = np.ones(len(columns["call"]), bool)
        for name, kept in self.kept.items():
            if name in columns:
                found &= texts.among(columns[name], {None, *kept})
        for most, sign in zip(self.sizes, (-1, 1)):
            if most is not None and "bytes" in columns:
                found &= sign * columns["bytes"] <= sign * most
        if self.ranks is not None and "world_rank" in columns:
            found &= np.isin(columns["world_rank"], [*self.ranks])
        return found

    def __len__(self) -> int:
        return len(self.columns["cell"])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in OF_TRAFFIC:
            self._traffic_add()
        return self.columns[name]

    def has(self, name: str, text: str) -> bool:
        return name not in self.kept or text in self.kept[name]

    def take(self, flags: Flags) -> Cells:
        """These cells."""
        return self._with({name: values[flags] for name, values in self.columns.items()})

    def _with(self, columns: dict[str, np.ndarray], **changed: Any) -> Cells:
        found = object.__new__(Cells)
        own = {name: value for name, value in vars(self).items() if name not in OF_ROWS}
        vars(found).update({**own, **changed, "columns": columns})
        return found

    @cached_property
    def counted(self) -> dict[int, int]:
        """The selected ranks, and the time in which calls of each were counted."""
        counted = self.connection.execute("SELECT world_rank, counted_ns FROM rank_wall")
        return {rank: ns for rank, ns in counted if self.ranks is None or rank in self.ranks}

    @property
    def counted_ns(self) -> int:
        return sum(self.counted.values())

    @property
    def message_bytes(self) -> np.ndarray:
        """The bytes of all messages of a cell."""
        most = float(self.count.max(initial=0)) * float(self.bytes.max(initial=0))
        return self.count.astype(float if most >= 1 << 63 else np.int64) * self.bytes

    @cached_property
    def histogram(self) -> Histogram:
        return histogram_of(
            self.connection, self.cell, "SELECT cell AS number, bucket, count FROM bucket"
        )

    def _traffic_add(self) -> None:
        """Traffic of the whole run, whatever is selected."""
        traffic_classify(self.connection)
        known = columns_of(
            self.connection.execute("SELECT * FROM cell_traffic ORDER BY cell"), self.texts
        )
        place = np.searchsorted(known["cell"], self.cell)
        self.columns.update({name: known[name][place] for name in OF_TRAFFIC})


def histogram_of(connection: Connection, numbers: Ints, buckets: str) -> Histogram:
    """Histograms of rows with these numbers, which are in order. buckets: what selects number,
    bucket, count."""
    by_number = f"SELECT number AS place, * FROM ({buckets})"
    found = read_large(Columns, connection, by_number, Texts(), ())
    bounds = columns_of(
        connection.execute(
            "SELECT low_ns, coalesce(high_ns, 0) AS high_ns FROM bucket_bound ORDER BY bucket"
        ),
        Texts(),
    )
    row = np.searchsorted(numbers, found.number)
    is_own = np.append(numbers, -1)[row] == found.number
    own = [_small(column[is_own]) for column in (row, found.bucket, found.count)]
    return Histogram(*own, *bounds.values())


def columns_of(cursor: Cursor, texts: Texts) -> dict[str, np.ndarray]:
    """The columns of a query's answer, in as few bytes as they need."""
    return {name: _small(column) for name, column in vars(read(Columns, cursor, texts)).items()}


def _small(column: np.ndarray) -> np.ndarray:
    is_small = column.dtype == np.int64 and len(column) and -(1 << 31) <= column.min()
    return column.astype(np.int32) if is_small and column.max() < 1 << 31 else column


def cells_of(connection: Any) -> Cells:
    """The selected cells."""
    return connection.chosen


def view_rows(connection: Any, view: View) -> list[Row]:
    """The view of the selected cells."""
    return summarize(cells_of(connection), view)


VIEWS = ("named_cell", "sizes", "percentiles", "calls", "collectives", "seen")
SIZE = {
    "call": "call",
    **own("family", "library"),
    "communicator": "label",
    "identity": "identity",
    "measure": "timed",
    **own("memory_kind", "bytes", "is_folded"),
}
SIZE_KEYS = ("call", "identity", "timed", "memory_kind", "bytes", "is_folded")
PERCENTILES = {key: SIZE[key] for key in SIZE if key not in ("family", "library")}
OF_SIZES = {  # tables of a merged database, by message size; their fields
    "sizes": {
        **SIZE,
        **measures("ranks", "count", "volume_bytes"),
        **durations(),
        **measures("blocked_ns"),
    },
    "percentiles": {**PERCENTILES, **measures("count", "p50_ns", "p95_ns", "p99_ns")},
}


def views_create(connection: Any, clock_lines: Iterable[tuple]) -> None:
    """Adds to the database of a whole run what people ask of it: views.sql."""
    query.run(connection, "run/views")
    connection.execute(
        "INSERT INTO communicator_label SELECT identity, label, size, members FROM "
        "temp.run_communicator"
    )
    rows = {"clock_line": [*clock_lines], "seen": reasons_found(connection)}
    for name, fields in OF_SIZES.items():
        view = View(
            name,
            SIZE_KEYS,
            fields,
            lambda groups: [*map(groups.place, SIZE_KEYS[:4]), groups.bytes, groups.is_folded],
            having=lambda groups: groups.sum("count") > 0,
        )
        rows[name] = view_rows(connection, view)
    for table, found in rows.items():
        if found:
            places = ", ".join("?" * len(found[0]))
            connection.executemany(f"INSERT INTO {table} VALUES ({places})", found)


CONTROL_BYTES = whole("calls.control-bytes")


def traffic_classify(connection: Connection) -> None:
    """Creates the tables once for each run, however many ask. Without samples, the size decides of
    all traffic."""
    if not connection.execute(
        "SELECT 1 FROM sqlite_temp_master WHERE name = 'cell_traffic'"
    ).fetchone():
        query.run(
            connection,
            "run/traffic_class",
            fewest_rounds=whole("calls.rounds"),
            most_distributed=whole("calls.distributed"),
            most_control_bytes=whole("calls.most-control-bytes"),
            control_share=threshold("calls.control-share"),
            jump=whole("calls.control-jump"),
            control_bytes=CONTROL_BYTES,
            data_share=threshold("calls.data-share"),
        )
