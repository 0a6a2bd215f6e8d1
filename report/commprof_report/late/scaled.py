"""The split calls that the user chose, scaled to all calls: only some calls may be sampled, the
cells hold the time of all."""

from __future__ import annotations

import json
from dataclasses import dataclass
from sqlite3 import Connection

from ..base.arrays import np
from ..base import query
from ..base.columns import (
    NONE, Columns, Flags, Floats, Ints, TextInts, Texts, found_in, grouped, joined, read,
)
from .waits import Waits

SQL = query.beside(__file__)


@dataclass(frozen=True)
class Exact(Columns):
    """The time of all calls of a rank on a communicator; exact.sql. If ncclGroups may hold no
    collective, the time is that of the split ones."""

    world_rank: Ints
    identity: TextInts
    call: TextInts
    count: Floats  # may exceed 64 bits, as the next one
    total_ns: Floats


@dataclass(frozen=True)
class CompletedCalls(Columns):
    """completed_calls.sql"""

    world_rank: Ints
    call: TextInts
    samples: Ints
    sampled_ns: Floats
    count: Floats
    total_ns: Floats


@dataclass(frozen=True)
class Scaled:
    """The chosen waits, those of which the cells know the time of all such calls."""

    rows: Ints  # of the run's Waits
    waits: Waits
    # how many nanoseconds one sampled nanosecond of this rank, call and communicator represents
    factor: Floats
    exact: Exact


def chosen_rows(connection: Connection, waits: Waits, texts: Texts) -> Flags:
    """Which of the waits did the user select, whatever their rank?"""
    found = np.ones(len(waits), bool)
    for numbers, column, table in (
        (waits.call, "call", "selected_call"),
        (waits.identity, "identity", "selected_communicator"),
        (waits.region, "region_name", "selected_region"),
    ):
        found &= texts.among(
            numbers, {text for (text,) in connection.execute(f"SELECT {column} FROM {table}")}
        )
    low_bytes, high_bytes = connection.execute(
        "SELECT low_bytes, high_bytes FROM selected_size"
    ).fetchone()
    message_bytes = np.where(waits.bytes == NONE, -1, waits.bytes)
    return found & (message_bytes >= low_bytes) & (message_bytes <= high_bytes)


def scale(connection: Connection, waits: Waits, texts: Texts) -> Scaled:
    """waits: of the run."""
    rows = np.flatnonzero(chosen_rows(connection, waits, texts))
    waits = waits.take(rows)
    exact = _exact(connection, waits, texts)
    factor = np.where(
        waits.is_blocking_collective, _of_collectives(waits, exact),
        _of_completions(connection, waits, texts),
    )
    is_counted = factor > 0
    return Scaled(rows[is_counted], waits.take(is_counted), factor[is_counted], exact)


def _exact(connection: Connection, waits: Waits, texts: Texts) -> Exact:
    """If a rank calls NCCL's point-to-point operations on a communicator, its groups there are not
    extrapolated: only the split ones count."""
    exact = read(Exact, SQL.run(connection, "exact"), texts)
    mixed = [
        (rank, texts.number(identity)) for rank, identity in SQL.run(connection, "mixed_groups")
    ]
    if not mixed:
        return exact
    ranks, identities = (np.array(column, np.int64) for column in zip(*mixed))

    def is_mixed(table: Exact | Waits) -> Flags:
        is_group = table.call == texts.number("ncclGroup")
        return is_group & (found_in((table.world_rank, table.identity), (ranks, identities)) >= 0)

    split = waits.take(is_mixed(waits))
    order, groups = grouped(split.world_rank, split.identity, split.call)
    first = order[groups.first]
    keys = split.world_rank[first], split.identity[first], split.call[first]
    of_split = Exact(*keys, groups.counts, groups.sum((split.wait_ns + split.transfer_ns)[order]))
    return joined(Exact, [exact.take(~is_mixed(exact)), of_split])


def _factors(sampled: Ints, sampled_ns: Floats, count: Floats, total_ns: Floats) -> Floats:
    is_whole = (sampled >= count) | (sampled_ns == 0)
    return np.where(is_whole, 1.0, np.maximum(1.0, total_ns / np.where(is_whole, 1, sampled_ns)))


def _of_collectives(waits: Waits, exact: Exact) -> Floats:
    """0: the cells do not know this call of this rank on this communicator."""
    is_own = waits.is_blocking_collective
    order, groups = grouped(waits.world_rank, waits.identity, waits.call)
    first = order[groups.first]
    row = found_in(
        (waits.world_rank[first], waits.identity[first], waits.call[first]),
        (exact.world_rank, exact.identity, exact.call),
    )
    sampled = groups.sum(is_own[order].astype(np.int64))
    sampled_ns = groups.sum(np.where(is_own, waits.wait_ns + waits.transfer_ns, 0)[order])
    of_group = np.zeros(len(first))
    is_known = row >= 0
    known = exact.take(row[is_known])
    of_group[is_known] = _factors(
        sampled[is_known], sampled_ns[is_known], known.count, known.total_ns
    )
    factor = np.empty(len(waits))
    factor[order] = groups.spread(of_group)
    return factor


def _of_completions(connection: Connection, waits: Waits, texts: Texts) -> Floats:
    """Calls that complete requests have no communicator, and messages may be split in part: the
    factor of each call that waits for requests or a message is that of all its samples, whatever
    they completed. 0: as above."""
    call = np.where(waits.completion == NONE, waits.call, waits.completion)
    names = [texts.text(number) for number in np.unique(call[~waits.is_blocking_collective])]
    counted = read(
        CompletedCalls, SQL.run(connection, "completed_calls", calls=json.dumps(names)), texts
    )
    factors = np.append(
        _factors(counted.samples, counted.sampled_ns, counted.count, counted.total_ns), 0.0
    )
    return factors[found_in((waits.world_rank, call), (counted.world_rank, counted.call))]
