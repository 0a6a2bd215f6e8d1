"""The filters --call, --communicator, --region, --rank, --bytes and --memory-kind, which select a
part of a run."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable
from fractions import Fraction
from math import ceil, floor
from typing import Any, NamedTuple

from ..base import query, units
from ..base.errors import UsageError
from ..base.options import option
from ..base.thresholds import whole
from .cells import Chosen
from .run import Run

SQL = query.beside(__file__)

BINARY_FACTORS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
BYTES = re.compile(
    r"(\d{1,18}|\d{1,3}(?:,\d{3})+)(?:\.(\d{1,9}))? ?(?:([KMGT])(?:iB)?|([KMGTP]B)|B)?",
    re.IGNORECASE,
)
RANKS = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
FEWEST_DIGITS = whole("run.identity-digits")
MIXED = "mixed"
MOST = 1 << 62  # bytes
MEMORY_KINDS = ("host", "device", "managed", "pinned", MIXED)


FILTERS = ("call", "communicator", "region", "rank", "bytes", "memory_kind")


class ByteRange(NamedTuple):
    low: int | None
    high: int | None


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


def rank_spans(text: str) -> list[tuple[int, int]]:
    """Parses ranks such as 0,3-5."""
    spans = []
    for part in text.split(","):
        match = RANKS.fullmatch(part.strip())
        if not match or (match[2] and int(match[2]) < int(match[1])):
            raise argparse.ArgumentTypeError(f"{text}: ranks are a list like 0,3-5")
        spans.append((int(match[1]), int(match[2] or match[1])))
    return spans


OPTIONS = (
    option(
        "--call", action="append", type=units.as_read, metavar="NAME", group="filters",
        help="only these calls: Allreduce or MPI_Allreduce, in any case; repeat the option or "
        "write a,b",
    ),
    option(
        "--communicator", action="append", type=units.as_read, metavar="NAME", group="filters",
        help="only these: a label, a name, or four digits of an identity, as `communicators` "
        "prints them; may be repeated",
    ),
    option(
        "--region", action="append", type=units.as_read, metavar="NAME", group="filters",
        help="only calls in these regions and in regions inside them, as `regions` prints them; "
        "may be repeated",
    ),
    option(
        "--rank", type=rank_spans, metavar="LIST", group="filters",
        help="only these world ranks: 0,3-5",
    ),
    option(
        "--bytes", type=byte_range, metavar="LOW:HIGH", group="filters",
        help="only these message sizes, bounds included: 1K:4M, :64, 1G:, or one size; K, M, G: "
        "powers of 2^10; 1.18MB: all sizes printed so",
    ),
)
MEMORY_KIND = option(
    "--memory-kind", choices=MEMORY_KINDS,
    help="only calls whose buffers have this memory kind; mixed: sent from one kind, received "
    "into another",
)


class Selection(Run):
    """A run to which filters were applied, once. Owns the TEMP TABLEs named selected_."""

    def __init__(self, run: Run, filters: list[str]) -> None:
        vars(self).update(vars(run))
        self.filters = filters


def select(run: Run, arguments: argparse.Namespace, bins: str = "exact") -> Selection:
    """Applies the filters to the run; cells.py then has the selected counters."""
    texts = {}
    if arguments.call:
        texts["call"] = _calls(run, arguments.call)
    if arguments.communicator:
        texts["identity"] = identities_find(run, arguments.communicator)
    if arguments.region:
        texts["region"] = _regions(run, arguments.region)
    ranks = _ranks(run, arguments.rank) if arguments.rank else None
    for column, kept in {**texts, **({"rank": ranks} if ranks else {})}.items():
        forget, keep = KEEP[column]
        run.connection.execute(forget)
        run.connection.executemany(keep, [(value,) for value in kept])
    if getattr(arguments, "memory_kind", None):
        texts["memory_kind"] = _memory_kinds(run, arguments.memory_kind)
    sizes = arguments.bytes or ByteRange(None, None)
    bounds = (-1 if sizes.low is None else sizes.low, MOST if sizes.high is None else sizes.high)
    run.connection.execute(
        "INSERT INTO selected_size VALUES (?, ?)", [min(bound, MOST) for bound in bounds]
    )
    run.connection.chosen = Chosen(run.connection, texts, ranks, sizes, bins)
    return Selection(run, filters(arguments))


def filters(arguments: argparse.Namespace) -> list[str]:
    """The options that select a part of the run."""
    return [f"--{name.replace('_', '-')}" for name in FILTERS if getattr(arguments, name, None)]


# by column: SQL that forgets all of the run, and that keeps a value
KEEP = {
    "call": ("DELETE FROM selected_call", "INSERT INTO selected_call VALUES (?)"),
    "rank": ("DELETE FROM selected_rank", "INSERT INTO selected_rank VALUES (?)"),
    "identity": (
        "DELETE FROM selected_communicator", "INSERT INTO selected_communicator VALUES (?)"
    ),
    "region": ("DELETE FROM selected_region", "INSERT INTO selected_region VALUES (?)"),
}


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
        "call", [part.strip() for text in wanted for part in text.split(",") if part.strip()],
        lambda text: {name for name in names if text.lower() in (name.lower(), _short(name))},
        f"this run made no such call; it made: {', '.join(names) or 'none'}",
    )


def _column(run: Run, query: str) -> list[Any]:
    return [value for (value,) in run.connection.execute(query)]


def _short(name: str) -> str:
    """A call's name without its library: MPI_Allreduce and ncclAllReduce are both allreduce."""
    name = name.lower()
    return name[4:] if name.startswith(("mpi_", "nccl")) else name


def identities_find(run: Run, wanted: list[str]) -> set[str]:
    known = SQL.run(run.connection, "known_communicators").fetchall()
    labels = ", ".join(sorted(label for _, label, _ in known))
    return _chosen(
        "communicator", wanted,
        lambda text: {identity for identity, label, name in known if text in (label, name)}
        or {
            identity for identity, _, _ in known
            if len(text) >= FEWEST_DIGITS and identity.startswith(text.lower())
        },
        f"this run has no such communicator; it has: {labels}",
    )


def _regions(run: Run, wanted: list[str]) -> set[str]:
    known = _column(
        run, "SELECT region_name FROM selected_region WHERE region_name <> '' ORDER BY 1"
    )
    return _chosen(
        "region", wanted,
        lambda text: {name for name in known if name == text or name.startswith(f"{text}/")},
        f"no call of this run is in such a region; there are: {', '.join(known) or 'none'}",
    )


def _memory_kinds(run: Run, wanted: str) -> set[str]:
    known = _column(run, "SELECT DISTINCT memory_kind FROM cell")
    return {kind for kind in known if kind == wanted or (wanted == MIXED and ">" in kind)}


def _ranks(run: Run, spans: list[tuple[int, int]]) -> list[int]:
    present = _column(run, "SELECT world_rank FROM rank ORDER BY world_rank")
    chosen = [rank for rank in present if any(low <= rank <= high for low, high in spans)]
    if not chosen:
        raise UsageError("--rank", "none of these ranks is in the run")
    return chosen
