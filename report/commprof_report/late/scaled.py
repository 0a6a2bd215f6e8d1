"""The split calls that the user chose, scaled to all calls: only some calls may be sampled, the
cells hold the time of all."""

from __future__ import annotations

import json
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any

from ..base import query
from ..base.columns import NONE, Columns, Flags, Floats, Ints, Texts, found_in, np, read
from .depends import Waits
from .reading import are_chosen

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
    """waits: of the run; rows: of those that the user selected. If a rank calls NCCL's
    point-to-point operations on a communicator, its groups there are not extrapolated: only the
    split ones count."""
    waits, exact = waits.take(rows), read(Columns, SQL.run(connection, "exact"), texts)
    row = found_in(*(
        (table.world_rank, table.identity, table.call) for table in (waits, exact)
    ))
    own = waits.is_blocking_collective & (row >= 0)
    spent_ns = waits.wait_ns + waits.transfer_ns
    sampled, sampled_ns = (
        np.bincount(row[own], weights, len(exact)) for weights in (None, spent_ns[own])
    )
    is_mixed = _are_mixed(connection, exact, texts)
    exact = exact.changed(total_ns=np.where(is_mixed, sampled_ns, exact.total_ns))
    # 0: the cells do not know this call of this rank on this communicator
    of_collectives = np.append(_factors(sampled, sampled_ns, exact.count, exact.total_ns), 0.0)
    factor = np.where(
        waits.is_blocking_collective, of_collectives[row],
        _of_completions(connection, waits, texts),
    )
    is_counted = factor > 0
    return Scaled(
        rows[is_counted], waits.take(is_counted), factor[is_counted],
        exact.take(~is_mixed | (sampled > 0)),
    )


def _are_mixed(connection: Connection, exact: Columns, texts: Texts) -> Flags:
    mixed = read(Columns, SQL.run(connection, "mixed_groups"), texts)
    place = found_in((exact.world_rank, exact.identity), (mixed.world_rank, mixed.identity))
    return (exact.call == texts.number("ncclGroup")) & (place >= 0)


def _factors(sampled: Ints, sampled_ns: Floats, count: Floats, total_ns: Floats) -> Floats:
    is_whole = (sampled >= count) | (sampled_ns == 0)
    return np.where(is_whole, 1.0, np.maximum(1.0, total_ns / np.where(is_whole, 1, sampled_ns)))


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
