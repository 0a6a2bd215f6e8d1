"""The run as a graph that can be played again (retime/graph.py), and what would be gained without
some ranks being late.

The calls are those of all threads, each a chain, in the windows in which all calls of all ranks
were sampled. Efficiencies are those of the threads of the ranks' timelines. A call depends on the
starts that the wait split knows: those of a collective's other members as far as they matter to
this rank, of the other side of a message, of the call with which a rank came back that had made no
progress. Of NCCL the kernels on the devices are the calls, in a graph of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from sqlite3 import Connection

from ..base import (
    NONE,
    Columns,
    Flags,
    Groups,
    Ints,
    Texts,
    by_rank,
    found_in,
    grouped,
    joined,
    np,
    numbered,
    threshold,
)
from ..retime.graph import (
    Calls,
    Chains,
    Change,
    Depends,
    Efficiency,
    Graph,
    Members,
    Usual,
    efficiency,
)
from ..run import Alignment, Calls as SampledCalls, FAR_NS, holes_aligned, storable, without_holes
from ..run.sampled import sampled
from .depends import (
    ALL,
    LONG_AGO_NS,
    LOWER,
    NEIGHBORS,
    ROOT_FIRST,
    ROOT_LAST,
    Collectives,
    Operations,
    Waits,
    before,
    of_alike,
)
from .reading import Known
from .wait_split import Called, LATE_PARTNER, NO_PROGRESS, WaitSplit
from .verdict import MAJORITY, jobs

ROUNDED_NS = 2  # times on the run's axis


class Played(Columns):
    """The calls of the graph, by rank, thread and window, in order of time: world_rank, thread,
    window, call; entered_ns (with unsuccessful polls before it), start_ns, end_ns, on the run's
    axis; own_end_ns, in the rank's own time; is_own: on files."""


class Part:
    """A graph of a run's calls. share: the part of the run's time that its windows have. Calls that
    were not split may wait; before and after a change they take the least of such calls."""

    def __init__(
        self, graph: Graph, share: float, gaps: Ints, transfers: Ints, least_ns: Ints, wait: Ints
    ) -> None:
        """gaps, transfers: kinds of gaps by node, and of transfers by call. least_ns: the
        transfers with the least of each call that was not split. wait: its row of Waits by call."""
        self.graph, self.share, self.wait = graph, share, wait
        chain = np.append(graph.calls.chain, np.arange(len(graph.chains)))
        self.ranks = graph.chains.world_rank[chain]  # by node, without groups
        self.gaps = Usual(graph.gap_ns, gaps, self.ranks)
        self.transfers = Usual(least_ns, transfers, self.ranks[: len(graph.calls)])
        self.unchanged = graph.unchanged._replace(transfer_ns=least_ns)
        self.before_ns = graph.play(self.unchanged)

    def without(self, ranks: Sequence[int]) -> Change:
        """These ranks take no longer than those do with which they communicate, through others or
        not."""
        lead_ns = np.zeros(len(self.graph.gap_ns), np.int64)
        lead_ns[: len(self.graph.calls)] = self.graph.lead_ns(ranks)
        theirs = [job for job in self.jobs if not job.isdisjoint(ranks)]
        others = sorted(set[int]().union(*theirs) - {*ranks})
        usual = self.unchanged._replace(
            gap_ns=self.gaps.as_others(ranks, others, lead_ns),
            transfer_ns=self.transfers.as_others(ranks, others),
        )
        excess_ns = (
            int((before - after).sum()) for before, after in zip(self.unchanged[:2], usual[:2])
        )
        return (
            usual
            if is_by_transfers(*excess_ns)
            else usual._replace(transfer_ns=self.unchanged.transfer_ns)
        )

    @cached_property
    def jobs(self) -> list[set[int]]:
        return jobs([*{*self.ranks.tolist()}], dict(enumerate(self.graph.met().tolist())))

    def saved_ns(self, times_ns: Ints) -> float:
        before_ns, after_ns = (
            int(self.graph.lasts_ns(times).sum()) for times in (self.before_ns, times_ns)
        )
        return max(0, before_ns - after_ns) / self.share

    def gained(self, ranks: Sequence[int]) -> tuple[float, float, bool]:
        """Without these ranks being late: by how much the run is shorter; by how much threads of
        the other ranks are done sooner, on average, or the run is shorter; and whether the graph
        shows it. Threads of a rank wait for one another in ways that are not seen: where one is
        done sooner by twice what the run is, that may be so."""
        chains, times_ns = self.graph.chains, self.graph.play(self.without(ranks))
        saved_ns = self.saved_ns(times_ns)
        others = np.flatnonzero(~np.isin(chains.world_rank, ranks))
        order, threads = grouped(chains.world_rank[others], chains.thread[others])
        sooner_ns = threads.sum((self.before_ns - times_ns)[self.graph.ends][others[order]])
        each_ns = np.append(sooner_ns, 0)[: max(1, len(threads))] / self.share
        is_shown = chains.is_followed.all() or saved_ns >= MAJORITY * float(each_ns.max())
        return saved_ns, max(saved_ns, float(each_ns.mean())), bool(is_shown)

    @cached_property
    def ideal_ns(self) -> Ints:
        """Times of the nodes on an ideal network."""
        return self.graph.play(self.graph.unchanged._replace(transfer_ns=self.graph.own_ns))

    @cached_property
    def efficiency(self) -> Efficiency:
        graph, own = self.graph, self.graph.chains.is_followed
        useful_ns = np.bincount(numbered(graph.chains.world_rank[own]), graph.useful_ns()[own])
        return efficiency(useful_ns, int(graph.lasts_ns(self.ideal_ns).sum()), graph.played_ns)

    def efficiency_within(self, spans: Mapping[int, Ints]) -> Efficiency:
        """As efficiency, of spans of time of each rank (rows of begin and end), as far as they were
        played. The ideal time and the time are those of the rank with the longest ones."""
        sums, chains = [], self.graph.chains
        for rank, (known_ns, ideal_ns, useful_ns) in self._times.items():
            at = spans.get(rank, np.empty((0, 2), np.int64))
            own = (chains.world_rank == rank) & chains.is_followed
            first = np.searchsorted(chains.begin_ns[own], at[:, 0], "right") - 1
            at = at[(first >= 0) & (at[:, 1] <= chains.end_ns[own][first])]
            played = (np.interp(at, known_ns, ns) for ns in (useful_ns, ideal_ns))
            sums.append([float(np.diff(ns, axis=1).sum()) for ns in (*played, at)])
        useful_ns, ideal_ns, time_ns = np.array(sums).reshape(-1, 3).T
        return efficiency(useful_ns[time_ns > 0], ideal_ns.max(initial=0), time_ns.max(initial=0))

    @cached_property
    def _times(self) -> dict[int, tuple[Ints, Ints, Ints]]:
        """By rank: times, in order; the same on an ideal network, where a call ends when all that
        it depends on has begun; and the useful time up to then."""
        graph, calls, chains = self.graph, self.graph.calls, self.graph.chains
        gap_ns, ideal_ns, after = graph.gap_ns, self.ideal_ns, graph.following
        number, of_chain = len(calls), np.arange(len(chains))
        rows = np.concatenate(
            [
                (calls.chain, calls.start_ns, ideal_ns[:number], gap_ns[:number]),
                (calls.chain, calls.end_ns, ideal_ns[after] - gap_ns[after], graph.own_ns),
                (of_chain, chains.begin_ns, chains.begin_ns, of_chain * 0),
                (of_chain, chains.end_ns, ideal_ns[graph.ends], gap_ns[number:]),
            ],
            axis=1,
        )
        rows = rows[:, chains.is_followed[rows[0]]]
        rows = rows[:, np.argsort(rows[1], kind="stable")]
        chain, known_ns, at_ns, worked_ns = rows
        return {
            rank: (known_ns[own], at_ns[own], worked_ns[own].cumsum())
            for rank, own in by_rank(chains.world_rank[chain])
        }


class Retimed:
    """host: calls of MPI; device: NCCL's kernels; None: they were not sampled, or make no graph, as
    those of several threads of a rank may."""

    def __init__(self, host: Part | None, device: Part | None, sampled_share: float | None) -> None:
        """sampled_share: of the run's time in calls; windows may hold calls that were not
        sampled."""
        self.parts = [part for part in (host, device) if part]
        self.host, self.device = host, device
        played = max((part.share for part in self.parts), default=0.0)
        # the part of the run that was played; 0: nothing
        self.share = min(played, sampled_share or 0.0)
        self.scale = played / self.share if self.share else 0.0
        self.gained = lru_cache(maxsize=None)(
            lambda ranks: [part.gained(ranks) for part in self.parts]
        )

    def gain_ns(self, ranks: tuple[int, ...]) -> int:
        """How much shorter the run would be if these ranks took no longer than the others do,
        scaled to all of it; no more than another rank is done sooner, and so never more than that
        one spends in calls. 0: nothing was played."""
        return self._most(min(saved_ns, sooner_ns) for saved_ns, sooner_ns, _ in self.gained(ranks))

    def shows(self, ranks: tuple[int, ...]) -> bool:
        return all(is_shown for *_, is_shown in self.gained(ranks))

    def sooner_ns(self, ranks: tuple[int, ...]) -> int:
        """How much sooner other ranks, or all, would be done."""
        return self._most(sooner_ns for _, sooner_ns, _ in self.gained(ranks))

    def _most(self, gains_ns: Iterable[float]) -> int:
        return round(round(max(gains_ns, default=0)) * self.scale)


def retimed(
    connection: Connection,
    alignment: Alignment,
    known: Known,
    split: WaitSplit,
    sampled_share: float | None,
) -> Retimed:
    waits, texts, collectives = split.waits, split.texts, split.sure
    set_up = split.called.every.take(split.called.is_set_up)
    run = _Run(connection, alignment, known, set_up, texts)
    windows = without_holes(*holes_aligned(connection, alignment)[1:])

    def part(played: Played, windows: Ints, own: Collectives, is_host: bool) -> Part | None:
        wait = found_in((played.world_rank, played.start_ns), (waits.world_rank, waits.start_ns))
        # files that no other rank has to come to are used in a rank's own time
        in_files = known.which(played.call, texts, lambda call: call.family == "io")
        is_played = ~in_files | (wait >= 0)
        played, wait = played.changed(is_own=in_files).take(is_played), wait[is_played]
        if not len(played):
            return None
        chains = _chains(played, windows, run, split.called.threads)
        edges = _Edges(played, len(chains))
        members, depends = edges.of_collectives(own, texts)
        if is_host:
            of_messages = edges.of_messages(split.later, texts)
            depends = joined(Depends, [depends, of_messages, edges.of_waits(waits, known, texts)])
        return _part(played, chains, members, depends, run.share(windows), wait, known, texts)

    kernels = collectives.take(collectives.is_nccl)
    return Retimed(
        part(
            _on_host(split.called, alignment, windows),
            windows,
            collectives.take(~collectives.is_nccl),
            True,
        ),
        part(_on_device(kernels), np.array([[-FAR_NS, FAR_NS]]), kernels, False),
        sampled_share,
    )


def _part(
    played: Played,
    chains: Chains,
    members: Members,
    depends: Depends,
    share: float,
    wait: Ints,
    known: Known,
    texts: Texts,
) -> Part | None:
    """None: nothing lasted, or clocks are broken. share: see Part."""
    chain = Groups(played.world_rank, played.thread, played.window)
    calls = Calls(
        chain=chain.of_row,
        start_ns=played.entered_ns,
        end_ns=played.end_ns,
        is_own=played.is_own,
    )
    graph = Graph(calls, chains, members, depends)
    if not graph.is_whole or graph.played_ns <= 0 or share <= 0:
        return None
    previous = np.append(played.call, NONE)[before(chain.of_row)]
    gaps = np.append(numbered(previous, played.call), np.full(len(chains), NONE))
    is_rooted = known.which(played.call, texts, lambda call: call.is_rooted)
    least_ns = of_alike(Groups.min, graph.transfer_ns, played.call)
    cannot_wait = known.which(played.call, texts, lambda call: call.only_starts)
    least_ns = np.where((wait >= 0) | cannot_wait, graph.transfer_ns, least_ns)
    return Part(graph, share, gaps, np.where(is_rooted, NONE, played.call), least_ns, wait)


def _on_host(called: Called, alignment: Alignment, windows: Ints) -> Played:
    """Polls count as part of the call that they came before."""
    samples = called.every.take(~called.is_set_up)
    samples = samples.take(np.lexsort((samples.thread, samples.world_rank)))
    start_ns = alignment.aligned(samples.world_rank, samples.start_ns)
    is_poll = (samples.polled_ns != NONE) & (samples.start_ns == samples.polled_since_ns)
    end_ns = start_ns + samples.end_ns - samples.start_ns
    window = np.searchsorted(windows[:, 0], end_ns) - 1
    own = np.flatnonzero(~is_poll & (window >= 0) & (end_ns <= windows[window, 1]))
    samples, start_ns, end_ns = samples.take(own), start_ns[own], end_ns[own]
    window = window[own]
    before_ns = np.append(end_ns, NONE)[
        before(Groups(samples.world_rank, samples.thread, window).of_row)
    ]
    polled_ns = np.where(samples.polled_ns == NONE, 0, samples.polled_ns)
    entered_ns = np.minimum(start_ns, np.maximum(before_ns, start_ns - polled_ns))
    return Played(
        world_rank=samples.world_rank,
        thread=samples.thread,
        window=window,
        call=samples.call,
        entered_ns=entered_ns,
        start_ns=start_ns,
        end_ns=end_ns,
        own_end_ns=samples.end_ns,
    )


def _on_device(rows: Collectives) -> Played:
    found = Played(
        world_rank=rows.world_rank,
        thread=np.full(len(rows), NONE),
        window=np.zeros(len(rows), np.int64),
        call=rows.call,
        entered_ns=rows.begun_ns,
        start_ns=rows.begun_ns,
        end_ns=rows.begun_ns + rows.end_ns - rows.start_ns,
        own_end_ns=rows.end_ns,
    )
    return found.take(np.lexsort((found.end_ns, found.start_ns, found.world_rank)))


class _Run:
    """When each rank's run began and ended, on the run's axis, between set-up and MPI_Finalize as
    far as these were sampled."""

    def __init__(
        self,
        connection: Connection,
        alignment: Alignment,
        known: Known,
        set_up: SampledCalls,
        texts: Texts,
    ) -> None:
        calls = sampled(connection).calls
        is_setup = known.which(calls.call, texts, lambda call: call.family == "setup")
        calls = joined(SampledCalls, [calls.take(is_setup), set_up])
        begins, ends = (
            alignment.aligned(calls.world_rank, times) for times in (calls.start_ns, calls.end_ns)
        )
        self.setup = {rank: (begins[own], ends[own]) for rank, own in by_rank(calls.world_rank)}
        walls = connection.execute("SELECT world_rank, coalesce(wall_ns, 0) FROM rank_wall")
        bounds = [
            (rank, *(storable(alignment.aligned_ns(rank, time_ns)) for time_ns in (0, wall_ns)))
            for rank, wall_ns in walls
        ]
        self.begins = {rank: begin_ns for rank, begin_ns, _ in bounds}
        self.end_ns = max((end_ns for *_, end_ns in bounds), default=0)

    def around(self, rank: int, first_ns: int, last_ns: int) -> tuple[int, int]:
        """Since when a rank ran before its first call in a window, and until when, as far as it is
        known, after its last one."""
        begin_ns = self.begins.get(rank, first_ns)
        begins, ends = self.setup.get(rank, (np.array([], np.int64), np.array([], np.int64)))
        after = begins[begins >= last_ns]
        return (
            min(first_ns, int(ends[ends <= first_ns].max(initial=begin_ns))),
            int(after.min()) if len(after) else last_ns,
        )

    def share(self, windows: Ints) -> float:
        """The part of the run that these have."""
        begin_ns = min(self.begins.values(), default=0)
        own_ns = np.clip(windows, begin_ns, self.end_ns)
        return float((own_ns[:, 1] - own_ns[:, 0]).sum()) / max(1, self.end_ns - begin_ns)


def _chains(played: Played, windows: Ints, run: _Run, threads: Mapping[int, int]) -> Chains:
    """The time of a rank in a window before its first call is known. After the last one it is not,
    unless the run ends: it may be in a call that is not sampled. Only the thread with a rank's last
    call then goes on. threads: those of the timelines, by rank; a device has none."""
    groups = Groups(played.world_rank, played.thread, played.window)
    first, last = groups.first, groups.first + groups.counts - 1
    rank, thread, window = played.world_rank[first], played.thread[first], played.window[first]
    order, of_rank = grouped(rank, window)
    is_last = np.zeros(len(rank), bool)
    is_last[order[of_rank.first_most(played.end_ns[last][order])]] = True
    begin_ns, end_ns = played.entered_ns[first].copy(), played.end_ns[last].copy()
    for chain, own in enumerate(rank.tolist()):
        since_ns, until_ns = run.around(own, int(begin_ns[chain]), int(end_ns[chain]))
        begin_ns[chain] = min(begin_ns[chain], max(windows[window[chain], 0], since_ns))
        if is_last[chain] and windows[window[chain], 1] >= until_ns:
            end_ns[chain] = until_ns
    is_followed = (thread == NONE) | (thread == [threads.get(own, NONE) for own in rank.tolist()])
    return Chains(
        world_rank=rank,
        thread=thread,
        window=window,
        begin_ns=begin_ns,
        end_ns=end_ns,
        is_followed=is_followed,
    )


class _Edges:
    """Dependencies of the calls."""

    def __init__(self, played: Played, chains: int) -> None:
        self.played, self.first_group = played, len(played) + chains
        self.rows = {
            rank: rows[np.argsort(played.start_ns[rows], kind="stable")]
            for rank, rows in by_rank(played.world_rank)
        }

    def at(self, ranks: Ints, times_ns: Ints, until_ns: Ints | None = None) -> tuple[Ints, Ints]:
        """The call at whose start, or how much later, a rank did something at that time; -1: it has
        none. It is the next one if that starts before until_ns, which is just after that time if
        it is not given."""
        until_ns = times_ns + ROUNDED_NS if until_ns is None else until_ns
        call, delta_ns = np.full(len(ranks), -1), np.zeros(len(ranks), np.int64)
        for rank, own in by_rank(ranks):
            if rank not in self.rows:
                continue
            starts_ns = self.played.start_ns[self.rows[rank]]
            after = np.searchsorted(starts_ns, times_ns[own] - ROUNDED_NS)
            is_next = np.append(starts_ns, FAR_NS)[after] < until_ns[own]
            place = np.where(is_next, after, after - 1)
            call[own] = np.where(place >= 0, self.rows[rank][place], -1)
            next_ns = starts_ns[np.minimum(place, len(starts_ns) - 1)]
            begun_ns = np.where(is_next, next_ns, times_ns[own])
            delta_ns[own] = begun_ns - self.played.entered_ns[call[own]]
        return call, delta_ns

    def started(self, ranks: Ints, starts_ns: Ints) -> Ints:
        return found_in((ranks, starts_ns), (self.played.world_rank, self.played.start_ns))

    def ended(self, ranks: Ints, ends_ns: Ints) -> Ints:
        return found_in((ranks, ends_ns), (self.played.world_rank, self.played.own_end_ns))

    def of_collectives(self, rows: Collectives, texts: Texts) -> tuple[Members, Depends]:
        start_ns = rows.begun_ns
        call, delta_ns = self.at(rows.world_rank, start_ns)
        waiting = np.where(
            rows.is_blocking,
            self.started(rows.world_rank, start_ns),
            self.ended(rows.world_rank, rows.completed_ns),
        )
        groups = Groups(rows.identity, rows.sequence)
        is_played = groups.spread(groups.min(call) >= 0)
        is_all, is_first, is_last = (
            rows.kind == texts.number(kind) for kind in (ALL, ROOT_FIRST, ROOT_LAST)
        )
        # where durations stand for arrivals the shortest call came last
        left_ns = start_ns + rows.end_ns - rows.start_ns
        shortest = groups.first_most(rows.start_ns - rows.end_ns)
        shift_ns = np.where(rows.is_estimate, groups.spread(left_ns[shortest]) - left_ns, 0)
        own = np.flatnonzero(is_played & (is_all | is_last))
        group = numbered(groups.of_row[own])
        members = Members(group=group, call=call[own], delta_ns=delta_ns[own] + shift_ns[own])
        waits = (waiting[own] >= 0) & (is_all | rows.is_root)[own]
        by_all = Depends(
            call=waiting[own][waits],
            source=self.first_group + group[waits],
            delta_ns=-shift_ns[own][waits],
        )
        root = groups.spread(np.minimum(groups.first_at(rows.is_root), len(rows) - 1))
        own = np.flatnonzero(is_played & is_first & ~rows.is_root & (waiting >= 0))
        by_root = Depends(call=waiting[own], source=call[root[own]], delta_ns=delta_ns[root[own]])
        return members, joined(Depends, [by_all, by_root, self.of_partners(rows, texts)])

    def of_partners(self, rows: Collectives, texts: Texts) -> Depends:
        """A rank may need others in the library's algorithm: the one
        that started last before it returned, if that explains its duration."""
        rows = rows.take(rows.is_blocking & ~rows.is_estimate & (rows.kind != texts.number(ALL)))
        start_ns = rows.begun_ns
        lasts_ns, count = rows.end_ns - rows.start_ns, len(rows)
        group = np.tile(Groups(rows.identity, rows.sequence).of_row, 2)
        order = np.lexsort((np.append(start_ns, start_ns + lasts_ns), group))
        latest = np.maximum.accumulate(np.where(order < count, np.arange(2 * count), -1))
        partner = np.empty(2 * count, np.int64)
        partner[order] = order[latest]
        partner = partner[count:]
        after_ns = start_ns + lasts_ns - start_ns[partner]
        waiting = self.started(rows.world_rank, start_ns)
        source, delta_ns = self.at(rows.world_rank[partner], start_ns[partner])
        own = (waiting >= 0) & (source >= 0) & (source != waiting)
        own &= depends(lasts_ns - after_ns, lasts_ns)
        return Depends(call=waiting[own], source=source[own], delta_ns=delta_ns[own])

    def of_messages(self, messages: Operations, texts: Texts) -> Depends:
        """A send depends on its receive, unless such sends, or larger ones, are known to return
        before that is posted: then they are buffered."""
        messages = messages.take(messages.is_known & (messages.peer_ns != NONE))
        is_send = texts.among(messages.wait_state, {"late receiver"})
        is_buffered = is_send & (messages.last_ns == LONG_AGO_NS)
        most_bytes = messages.bytes[is_buffered].max(initial=NONE)
        messages = messages.take(~is_send | (messages.bytes > most_bytes))
        waiting = self.ended(messages.world_rank, messages.gone_ns)
        source, delta_ns = self.at(messages.last_rank, messages.peer_ns)
        own = (waiting >= 0) & (source >= 0)
        return Depends(call=waiting[own], source=source[own], delta_ns=delta_ns[own])

    def of_waits(self, waits: Waits, known: Known, texts: Texts) -> Depends:
        """For progress; and for the rank that came last, where not all that matter are known here
        (Scan, neighborhoods)."""
        others = known.which(waits.call, texts, lambda call: call.kind in (LOWER, NEIGHBORS))
        is_progress = texts.among(waits.wait_state, {NO_PROGRESS, LATE_PARTNER})
        own = (others | is_progress) & ~waits.is_polled & (waits.last_rank != NONE)
        waits = waits.take(own)
        waiting = self.started(waits.world_rank, waits.start_ns)
        source, delta_ns = self.at(waits.last_rank, waits.start_ns + waits.wait_ns, waits.end_ns)
        own = (waiting >= 0) & (source >= 0)
        return Depends(call=waiting[own], source=source[own], delta_ns=delta_ns[own])


def is_by_transfers(gaps_ns: int, transfers_ns: int) -> bool:
    """By how much ranks take longer. If it is hardly by transfers, these are longer because the
    ranks come last: the others poll, or have to get a core first."""
    return transfers_ns >= threshold("late.by-transfers") * (gaps_ns + transfers_ns)


def depends(before_ns: Ints, lasts_ns: Ints) -> Flags:
    """Whether calls depend on the member that began last before they returned; before_ns: their
    time before that."""
    return before_ns >= threshold("late.partner") * lasts_ns
