"""GPUs that several ranks share, and what their ranks did on them together.

    rank 0   ####....##....    from single activities, on the clock of the host
    rank 1   ..######......
    device   ########.#....    the union, as far as the activities of all these ranks are known

The sums of each rank (table gpu_busy) do not say what ran at once, so they only bound the time in
which the device was idle.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import chain
from sqlite3 import Connection
from typing import NamedTuple

from ..base.gather import gathered
from ..base.query import Row
from ..run.holes import holes, sampled_spans
from .overlap import ON_DEVICE, Interval, added, common, joined, time_by_states
from .sampled import NO_DEVICE, Spans, intervals, known_spans

Group = list[Row]  # the ranks of one device, in order


class Together(NamedTuple):
    """Joint activity of the ranks of a shared device, where all of that is known. Times are the
    host's CLOCK_MONOTONIC."""

    known: Spans
    intervals: list[Interval]


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
    known = known_spans(connection)
    ranks = {own.rank for group in shared for own in group if own.rank in known}
    by_rank = dict(intervals(connection, ranks))
    return [_together(group, known, by_rank) for group in shared]


def _together(
    group: Group, known: dict[int, dict[int, Spans]], by_rank: dict[int, dict[int, list[Interval]]]
) -> Together:
    if not has_one_clock(group):
        return Together([], [])
    own_spans = (known.get(own.rank, {}).get(own.device, []) for own in group)
    spans = reduce(common, map(moved, own_spans, (own.start_monotonic_ns for own in group)))
    found: list[Interval] = []
    for own in group:
        of_rank = by_rank.get(own.rank, {})
        ran = chain(of_rank.get(own.device, []), of_rank.get(NO_DEVICE, []))
        found += moved_intervals(ran, own.start_monotonic_ns)
    return Together(spans, found)


def moved(spans: Iterable[tuple[int, int]], by_ns: int) -> Spans:
    return [(begin_ns + by_ns, end_ns + by_ns) for begin_ns, end_ns in spans]


def moved_intervals(found: Iterable[Interval], by_ns: int) -> list[Interval]:
    return [(begin_ns + by_ns, end_ns + by_ns, state) for begin_ns, end_ns, state in found]


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
        found.append(added(time_by_states(both.intervals, spans)))
    return found


def idle_bounds(
    group: Group, windows: dict[int, Spans], states: Sequence[Sequence[int]]
) -> tuple[float, float] | None:
    """The least and the most that a shared device can have been idle, as shares of the time in
    which all its ranks were traced. `windows`: when each rank was traced; `states`: each rank's own
    sums. Within that time a rank was busy for as long as its sums say, less at most what fits into
    the rest of its windows; and it may have been busy where nothing is summed up."""
    if not has_one_clock(group):
        return None
    own_windows = [
        moved(joined(windows.get(own.rank, ())), own.start_monotonic_ns) for own in group
    ]
    traced_ns = _length(reduce(common, own_windows))
    if not traced_ns:
        return None
    most_busy_ns = least_busy_ns = 0
    for spans, state_ns in zip(own_windows, states):
        busy_ns = sum(ns for state, ns in enumerate(state_ns) if state & ON_DEVICE)
        unsummed_ns = max(0, _length(spans) - sum(state_ns))
        most_busy_ns += min(traced_ns, busy_ns + unsummed_ns)
        least_busy_ns = max(least_busy_ns, busy_ns - (_length(spans) - traced_ns))
    least = 1 - min(traced_ns, most_busy_ns) / traced_ns
    return least, 1 - min(traced_ns, least_busy_ns) / traced_ns


def _length(spans: Spans) -> int:
    return sum(end_ns - begin_ns for begin_ns, end_ns in spans)
