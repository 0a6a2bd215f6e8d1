"""The time that a GPU spent in each combination of states, from intervals that may overlap; all
overlap figures are sums of these times.

    computing      ======   =====            one time for each of the 16 combinations; they add up
    communicating     =========      ==      over windows, devices and ranks, and their sum is the
                                             analysed time

The library computes the same sums for the whole run (src/gpu/overlap.c); here they are computed for
each step from single activities, and for GPUs that several ranks share, from what these did on
them together, as far as all activities of a device were sampled:

    rank 0   ####....##....    from single activities, on the clock of the host
    rank 1   ..######......
    device   ########.#....    the union, as far as the activities of all these ranks are known

The sums of each rank (table gpu_busy) do not say what ran at once.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter

from ..base import (
    Columns,
    Connection,
    Ints,
    Row,
    Texts,
    gathered,
    joined,
    np,
    query,
    read,
    threshold,
)
from ..run.unseen import holes, sampled_spans, without_holes
from ..run.sampled import sampled

COMPUTING, COMMUNICATING, COPYING, IN_MPI = 1, 2, 4, 8
KINDS = (COMPUTING, COMMUNICATING, COPYING, IN_MPI)
SPAN = 0  # among these: a span that is analysed
STATES = 16
ON_DEVICE = COMPUTING | COMMUNICATING | COPYING

Spans = Ints  # a row of begin and end for each

# Times of one or several devices, as defined in docs/SCHEMA.md, Words.
Busy = namedtuple(
    "Busy",
    "traced_ns computing_ns communicating_ns copying_ns in_mpi_ns exposed_ns strictly_exposed_ns "
    "hidden_ns only_copying_ns idle_ns starved_ns exposed_mpi_ns",
)


def busy(state_ns: Sequence[int]) -> Busy:
    """Computes them from the time in each combination of states."""

    def time_in(states: int, not_in: int = 0) -> int:
        return sum(
            ns
            for state, ns in enumerate(state_ns)
            if state & states == states and not state & not_in
        )

    return Busy(
        traced_ns=sum(state_ns),
        computing_ns=time_in(COMPUTING),
        communicating_ns=time_in(COMMUNICATING),
        copying_ns=time_in(COPYING),
        in_mpi_ns=time_in(IN_MPI),
        exposed_ns=time_in(COMMUNICATING, COMPUTING),
        strictly_exposed_ns=time_in(COMMUNICATING, COMPUTING | COPYING),
        hidden_ns=time_in(COMMUNICATING | COMPUTING),
        only_copying_ns=time_in(COPYING, COMPUTING | COMMUNICATING),
        idle_ns=time_in(0, ON_DEVICE),
        starved_ns=time_in(IN_MPI, ON_DEVICE),
        exposed_mpi_ns=time_in(IN_MPI, COMPUTING),
    )


def time_by_states(active: Columns, spans: Spans | Sequence[tuple[int, int]]) -> np.ndarray:
    """For each span the time in each combination of states. active: intervals of one state each.
    Spans are disjoint and in order."""
    active = active.take(active.start_ns < active.end_ns)
    begins, ends = np.array(spans, np.int64).reshape(-1, 2).T
    edges_ns = np.concatenate([active.start_ns, active.end_ns, begins, ends])
    order = np.argsort(edges_ns, kind="stable")
    of = np.concatenate([active.state, active.state, np.full(2 * len(begins), SPAN)])[order]
    change = np.repeat([1, -1] * 2, np.repeat([len(active), len(begins)], 2))[order]
    running = {kind: np.cumsum(np.where(of == kind, change, 0)) > 0 for kind in (SPAN, *KINDS)}
    states = np.sum([kind * running[kind] for kind in KINDS], axis=0)
    span = np.cumsum((of == SPAN) & (change > 0)) - 1
    lasted_ns = np.diff(edges_ns[order], append=edges_ns.max(initial=0))
    found = np.zeros((len(begins), STATES), np.int64)
    inside = running[SPAN]
    np.add.at(found, (span[inside], states[inside]), lasted_ns[inside])
    return found


def spans_joined(spans: Iterable[Sequence[int]]) -> Spans:
    """The spans in order; those that overlap or touch are joined."""
    begins_ns, ends_ns = np.array([*spans], np.int64).reshape(-1, 2).T
    return without_holes(*without_holes(begins_ns, ends_ns).T)


def common(*lists: Spans) -> Spans:
    """The intersection of lists of spans, each a result of spans_joined()."""
    return without_holes(*np.concatenate([without_holes(*spans.T) for spans in lists]).T)


NO_DEVICE = 0  # of a rank in MPI
OTHER_STREAM = 1023  # represents several streams, of any device


def incomplete_ranks(connection: Connection) -> dict[int, int | None]:
    """Ranks whose times in each state, and samples, lack too much, as records came too late; and
    how long the missing activities were (None: not known)."""
    return dict(query.run(connection, "gpu/gpu_late", most_share=threshold("gpu.late")))


def activities(connection: Connection) -> Columns:
    """The sampled activities of GPUs, each as one of the states of overlap.py."""
    return read(Columns, query.run(connection, "gpu/gpu_intervals"), Texts())


def intervals(connection: Connection) -> Columns:
    """The same beside the sampled calls of MPI, which are on no device; in the order of ranks."""
    texts, calls, _, _ = sampled(connection)
    of_mpi = connection.execute("SELECT name FROM call WHERE library = 'mpi'")
    calls = calls.take(texts.among(calls.call, {name for (name,) in of_mpi}))
    in_mpi = calls.changed(device=np.full(len(calls), NO_DEVICE), state=np.full(len(calls), IN_MPI))
    found = joined(Columns, [activities(connection), in_mpi])
    return found.take(np.argsort(found.world_rank, kind="stable"))


def on_device(active: Columns, rank: int, device: int) -> Columns:
    """Intervals of a device of a rank, and of the rank in MPI."""
    of_rank = active.take(slice(*np.searchsorted(active.world_rank, [rank, rank + 1])))
    return of_rank.take(np.isin(of_rank.device, (device, NO_DEVICE)))


def known_spans(connection: Connection) -> dict[int, dict[int, Spans]]:
    """By rank and device, the spans in which all activities of the device were sampled."""
    tracings = connection.execute("SELECT world_rank, begin_ns, end_ns FROM gpu_tracing")
    traced = gathered((rank, span) for rank, *span in tracings)
    unattributed = connection.execute(
        "SELECT world_rank FROM gpu_stream WHERE stream = ?", (OTHER_STREAM,)
    )
    unsure = {rank for (rank,) in unattributed}  # some of its streams are of no known device
    incomplete = incomplete_ranks(connection)
    known: dict[int, dict[int, Spans]] = {}
    windows_of_all = query.rows(connection, "gpu/gpu_sampled")
    for (rank, device), of_device in groupby(windows_of_all, key=attrgetter("rank", "device")):
        streams = (
            spans_joined((row.begin_ns, row.end_ns) for row in rows if row.begin_ns is not None)
            for _, rows in groupby(of_device, key=attrgetter("stream"))
        )
        known.setdefault(rank, {})[device] = common(spans_joined(traced.get(rank, [])), *streams)
    return {
        rank: devices
        for rank, devices in known.items()
        if any(map(len, devices.values()))
        and not (rank in unsure and len(devices) > 1)
        and rank not in incomplete
    }


Group = list[Row]  # the ranks of one device, in order


# Joint activity of the ranks of a shared device, where all of that is known (spans). Times are the
# host's CLOCK_MONOTONIC.
Together = namedtuple("Together", "known active")


def device_groups(facts: Iterable[Row]) -> list[Group]:
    """One for each device, known by its host and UUID; without them each rank has its own."""
    return [
        *gathered(
            (
                (own.kernel_id, own.uuid) if own.kernel_id and own.uuid else (own.rank, own.device),
                own,
            )
            for own in facts
        ).values()
    ]


def together(connection: Connection, shared: Sequence[Group]) -> list[Together]:
    """For each of these groups. Reads single activities only if there are any."""
    if not shared:
        return []
    known, active = known_spans(connection), intervals(connection)
    return [_together(group, known, active) for group in shared]


def _together(group: Group, known: dict[int, dict[int, Spans]], active: Columns) -> Together:
    if len({own.clock_id for own in group}) > 1 or group[0].clock_id is None:
        return Together(spans_joined([]), active.take(slice(0)))
    unknown = spans_joined([])
    spans = common(
        *(
            known.get(own.rank, {}).get(own.device, unknown) + own.start_monotonic_ns
            for own in group
        )
    )
    found = [
        active_moved(on_device(active, own.rank, own.device), own.start_monotonic_ns)
        for own in group
    ]
    return Together(spans, joined(Columns, found))


def active_moved(active: Columns, by_ns: int) -> Columns:
    return active.changed(start_ns=active.start_ns + by_ns, end_ns=active.end_ns + by_ns)


def states_together(connection: Connection, shared: Sequence[Group]) -> list[list[int]]:
    """For each of these groups, the time in each combination of states, where the calls of its
    ranks are all sampled, too."""
    missing = holes(connection) if shared else {}
    found = []
    for group, both in zip(shared, together(connection, shared)):
        spans = (sampled_spans(missing.get(own.rank, ())) + own.start_monotonic_ns for own in group)
        found.append(time_by_states(both.active, common(both.known, *spans)).sum(axis=0).tolist())
    return found
