"""GPUs that several ranks share, and what their ranks did on them together.

    rank 0   ####....##....    from single activities, on the clock of the host
    rank 1   ..######......
    device   ########.#....    the union, as far as the activities of all these ranks are known

The sums of each rank (table gpu_busy) do not say what ran at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from sqlite3 import Connection
from typing import NamedTuple

from ..base.columns import Columns, joined
from ..base.gather import gathered
from ..base.query import Row
from ..run.holes import holes, sampled_spans
from .overlap import Spans, common, time_by_states
from .sampled import intervals, known_spans, on_device

Group = list[Row]  # the ranks of one device, in order


class Together(NamedTuple):
    """Joint activity of the ranks of a shared device, where all of that is known. Times are the
    host's CLOCK_MONOTONIC."""

    known: Spans
    active: Columns


def groups(facts: Iterable[Row]) -> list[Group]:
    """One for each device, known by its host and UUID; without them each rank has its own."""
    return [*gathered(
        ((own.kernel_id, own.uuid) if own.kernel_id and own.uuid else (own.rank, own.device), own)
        for own in facts
    ).values()]


def has_one_clock(group: Group) -> bool:
    return len({own.clock_id for own in group}) == 1 and group[0].clock_id is not None


def together(connection: Connection, shared: Sequence[Group]) -> list[Together]:
    """For each of these groups. Reads single activities only if there are any."""
    if not shared:
        return []
    known, active = known_spans(connection), intervals(connection)
    return [_together(group, known, active) for group in shared]


def _together(group: Group, known: dict[int, dict[int, Spans]], active: Columns) -> Together:
    if not has_one_clock(group):
        return Together([], active.take(slice(0)))
    own_spans = (known.get(own.rank, {}).get(own.device, []) for own in group)
    spans = reduce(common, map(moved, own_spans, (own.start_monotonic_ns for own in group)))
    found = [
        active_moved(on_device(active, own.rank, own.device), own.start_monotonic_ns)
        for own in group
    ]
    return Together(spans, joined(Columns, found))


def moved(spans: Iterable[tuple[int, int]], by_ns: int) -> Spans:
    return [(begin_ns + by_ns, end_ns + by_ns) for begin_ns, end_ns in spans]


def active_moved(active: Columns, by_ns: int) -> Columns:
    return active.changed(start_ns=active.start_ns + by_ns, end_ns=active.end_ns + by_ns)


def states_together(connection: Connection, shared: Sequence[Group]) -> list[list[int]]:
    """For each of these groups, the time in each combination of states, where the calls of its
    ranks are all sampled, too."""
    missing = holes(connection) if shared else {}
    found = []
    for group, both in zip(shared, together(connection, shared)):
        spans = both.known
        for own in group:
            sampled = sampled_spans(missing.get(own.rank, ())).tolist()
            spans = common(spans, moved(sampled, own.start_monotonic_ns))
        found.append(time_by_states(both.active, spans).sum(axis=0).tolist())
    return found
