"""About as many Reduces as Bcasts of one size on a communicator. How long an Allreduce would take
here is not known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..base import units
from ..base.thresholds import threshold
from ..calls.by_size import SizeRow, reduce_bcast_rows
from .findings import LIKELY, MANY, SURE, Finding, is_notable_time
from .inputs import Inputs

MORE = threshold("advice.more-bcasts")  # distributed at the start or at the end
Pair = tuple[SizeRow, SizeRow]


def find(inputs: Inputs) -> Iterator[Finding]:
    seen = {(row.identity, row.bytes) for row in reduce_bcast_rows(inputs.run.connection)}
    alike: dict[tuple, list[Pair]] = {}
    for reduce, bcast in _reduces_and_bcasts(inputs):
        key = (inputs.family(reduce.identity), reduce.memory_kind, reduce.bytes)
        alike.setdefault(key, []).append((reduce, bcast))
    for pairs in alike.values():
        reduce_ns, bcast_ns = (sum(row.total_ns for row in rows) for rows in zip(*pairs))
        if is_notable_time(min(reduce_ns, bcast_ns), inputs):
            is_seen = all((reduce.identity, reduce.bytes) in seen for reduce, _ in pairs)
            yield _one_allreduce(pairs, reduce_ns, bcast_ns, is_seen, inputs)


def _reduces_and_bcasts(inputs: Inputs) -> Iterator[Pair]:
    """Pairs of a Reduce and a Bcast of one size on a communicator, if there are about as many of
    each."""
    rows = [row for row in inputs.sizes if not row.is_folded and row.bytes]
    bcasts = {
        (row.identity, row.memory_kind, row.bytes): row for row in rows if row.call == "MPI_Bcast"
    }
    for row in rows:
        bcast = bcasts.get((row.identity, row.memory_kind, row.bytes))
        if row.call == "MPI_Reduce" and bcast is not None and are_pairs(row.count, bcast.count):
            yield row, bcast


def are_pairs(reduces: int, bcasts: int) -> bool:
    return min(reduces, bcasts) >= MANY and abs(reduces - bcasts) <= MORE * min(reduces, bcasts)


def _one_allreduce(
    pairs: Sequence[Pair], reduce_ns: int, bcast_ns: int, is_seen: bool, inputs: Inputs
) -> Finding:
    reduces, bcasts = (sum(row.count for row in rows) for rows in zip(*pairs))
    first, _ = pairs[0]
    identities, size = [reduce.identity for reduce, _ in pairs], units.size(first.bytes)
    counts = (
        f"{units.count(reduces)} of each," if reduces == bcasts
        else f"{units.count(reduces)} Reduces and {units.count(bcasts)} Bcasts"
    )
    return Finding(
        f"one MPI_Allreduce in place of MPI_Reduce and MPI_Bcast of {size} on "
        f"{inputs.where(identities)}",
        f"{counts} of {size}; Reduce takes {inputs.per_rank(reduce_ns)}, Bcast "
        f"{inputs.per_rank(bcast_ns)}{'; the last of them follow each other' if is_seen else ''}",
        "if the Bcast hands out what the Reduce has summed, an Allreduce does both, in many "
        "libraries in less time: measure it",
        SURE if is_seen else LIKELY, None, first.call, identities, first.bytes,
    )
