"""The split calls that the user chose, scaled to all calls: only some calls may be sampled, the
cells hold the time of all."""

from __future__ import annotations

import json
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any

from ..base.arrays import np
from ..base import query
from ..base.columns import (
    NONE, Columns, Flags, Floats, Ints, Texts, found_in, grouped, joined, read,
)
from .reading import are_chosen
from .waits import Waits

SQL = query.beside(__file__)


@dataclass(frozen=True)
class Scaled:
    """The chosen waits, those of which the cells know the time of all such calls."""

    rows: Ints  # of the run's Waits
    waits: Waits
    # how many nanoseconds one sampled nanosecond of this rank, call and communicator represents
    factor: Floats
    exact: Columns  # the time of all calls of a rank on a communicator


def chosen_rows(connection: Any, waits: Waits, texts: Texts) -> Ints:
    """The waits that the user selected, whatever their rank."""
    found = are_chosen(
        connection, texts, call=waits.call, identity=waits.identity, region=waits.region
    )
    low_bytes, high_bytes = connection.chosen.sizes
    found &= (waits.bytes >= (low_bytes or 0)) | (low_bytes is None)
    return np.flatnonzero(found & ((waits.bytes <= (high_bytes or 0)) | (high_bytes is None)))


def scale(connection: Connection, waits: Waits, rows: Ints, texts: Texts) -> Scaled:
    """waits: of the run; rows: of those that the user selected."""
    waits = waits.take(rows)
    exact = _exact(connection, waits, texts)
    factor = np.where(
        waits.is_blocking_collective, _of_collectives(waits, exact),
        _of_completions(connection, waits, texts),
    )
    is_counted = factor > 0
    return Scaled(rows[is_counted], waits.take(is_counted), factor[is_counted], exact)


def _exact(connection: Connection, waits: Waits, texts: Texts) -> Columns:
    """exact.sql; if a rank calls NCCL's point-to-point operations on a communicator, its groups
    there are not extrapolated: only the split ones count."""
    exact = read(Columns, SQL.run(connection, "exact"), texts)
    mixed = [
        (rank, texts.number(identity)) for rank, identity in SQL.run(connection, "mixed_groups")
    ]
    if not mixed:
        return exact
    ranks, identities = (np.array(column, np.int64) for column in zip(*mixed))

    def is_mixed(table: Columns) -> Flags:
        is_group = table.call == texts.number("ncclGroup")
        return is_group & (found_in((table.world_rank, table.identity), (ranks, identities)) >= 0)

    split = waits.take(is_mixed(waits))
    order, groups = grouped(split.world_rank, split.identity, split.call)
    first = order[groups.first]
    keys = split.world_rank[first], split.identity[first], split.call[first]
    total_ns = groups.sum((split.wait_ns + split.transfer_ns)[order])
    of_split = Columns(**dict(zip(vars(exact), (*keys, groups.counts, total_ns))))
    return joined(Columns, [exact.take(~is_mixed(exact)), of_split])


def _factors(sampled: Ints, sampled_ns: Floats, count: Floats, total_ns: Floats) -> Floats:
    is_whole = (sampled >= count) | (sampled_ns == 0)
    return np.where(is_whole, 1.0, np.maximum(1.0, total_ns / np.where(is_whole, 1, sampled_ns)))


def _of_collectives(waits: Waits, exact: Columns) -> Floats:
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
        Columns, SQL.run(connection, "completed_calls", calls=json.dumps(names)), texts
    )
    factors = np.append(
        _factors(counted.samples, counted.sampled_ns, counted.count, counted.total_ns), 0.0
    )
    return factors[found_in((waits.world_rank, call), (counted.world_rank, counted.call))]
