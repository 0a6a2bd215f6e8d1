"""The recorded calls of a run as a graph, and how long they would last with other gaps and
transfers.

    rank 0  | gap |== call: waits ..........|transfer|      A call ends `transfer` after the last of
    rank 1  |       gap         |== call ===|transfer|      the starts that it depends on, its own
                                 ^ start that both depend on  among them; `gap` after that the next
                                                              one of its chain starts.

A chain is what one thread called in a window in which all calls of all ranks were sampled. A node
is the start of a call, the end of a chain, or a group: the last of several starts, which all ranks
of a collective depend on. So each node is the maximum over its edges of (source + delta), plus a
weight. Nodes are played level by level; all of a level at once. Without a change each node has
exactly its recorded time.

A transfer stays what it was even if other calls now overlap it, and the order of messages is the
recorded one. After Dimemas: Badia et al., "DIMEMAS: Predicting MPI applications behaviour in Grid
environments" (2003).

From it are the efficiencies of the POP centre of excellence: how much of the time of all ranks is
work, and what the rest is lost to.

    parallel efficiency = load balance x communication efficiency
    load balance        = mean useful time / most useful time, of all ranks
    communication       = serialization x transfer
    serialization       = most useful time / time on an ideal network
    transfer            = time on an ideal network / time

Useful is what a rank does outside MPI, or in files. On an ideal network nothing takes time to move:
calls last only as long as they wait for other ranks. After POP, "Efficiency metrics" (https://pop-
coe.eu), and Rosas, Gimenez, Labarta: "Scalability prediction for fundamental performance factors"
(2014).
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence

from ..base import NONE, Columns, Groups, Ints, by_rank, each_from, grouped, np

FAR_NS = 1 << 60
NARROW = 16  # nodes of a level: so few are played one by one
WIDE = 64  # nodes of a level: fewer are found one by one


class Calls(Columns):
    """Sampled calls, chain by chain, each in order of time. A call may not begin before the one
    before it on its chain ends. Times are on the run's axis: chain, start_ns, end_ns; is_own: its
    transfer is the rank's own time, in files."""


class Chains(Columns):
    """A row for each chain, by its number.

    world_rank, thread, window
    is_followed  it is of the thread that stands for its rank
    begin_ns  its first gap begins; the start of its first call if that is not known
    end_ns    its last gap ends; the end of its last call if that is not known
    """


class Members(Columns):
    """Members of which a group is the last: starts of calls, `delta_ns` later: group, call."""


class Depends(Columns):
    """Dependencies of calls: the start of another call, or a group, `delta_ns` later.

    call
    source    call, or the number of calls and chains + group
    delta_ns
    """


Change = namedtuple("Change", "gap_ns transfer_ns")  # to play: gaps by node, transfers by call


class Graph:
    """gap_ns: before each node (by call, then the end of each chain); transfer_ns:
    of each call."""

    def __init__(self, calls: Calls, chains: Chains, members: Members, depends: Depends) -> None:
        self.calls, self.chains = calls, chains
        count, ends = len(calls), len(calls) + len(chains)
        self.ends = slice(count, ends)
        of_chain = Groups(calls.chain)
        assert len(of_chain) == len(chains), "a chain has no call"
        self.first, self.last = of_chain.first, of_chain.first + of_chain.counts - 1
        self.following = np.arange(1, count + 1)  # node after each call
        self.following[self.last] = count + np.arange(len(chains))
        groups = int(members.group.max()) + 1 if len(members) else 0
        times_ns = np.append(calls.start_ns, chains.end_ns)
        order, by_group = grouped(members.group)
        members = self.members = members.take(order)
        reached_ns = np.full(groups, -1)
        reached_ns[members.group[by_group.first]] = by_group.max(
            calls.start_ns[members.call] + members.delta_ns
        )
        self.times_ns = np.append(times_ns, reached_ns)
        self.played_ns = int(self.lasts_ns(self.times_ns).sum())
        # what ended after the call cannot have held it up: an eager message, an error of clocks
        depends = depends.take(
            self.times_ns[depends.source] + depends.delta_ns <= calls.end_ns[depends.call]
        )
        self.of_calls = depends.take(depends.source < count)  # on other calls, not on groups
        ready_ns = calls.start_ns.copy()
        np.maximum.at(ready_ns, depends.call, self.times_ns[depends.source] + depends.delta_ns)
        # ready: all that the call depends on had started
        self.transfer_ns = calls.end_ns - ready_ns
        self.own_ns = self.transfer_ns * calls.is_own
        self.gap_ns = np.zeros(ends, np.int64)
        self.gap_ns[self.following] = times_ns[self.following] - calls.end_ns
        self.gap_ns[self.first] = calls.start_ns[self.first] - chains.begin_ns
        self.unchanged = Change(self.gap_ns, self.transfer_ns)
        self._order_nodes(
            np.concatenate([self.following, self.following[depends.call], ends + members.group]),
            np.concatenate([np.arange(count), depends.source, members.call]),
            np.concatenate([np.zeros(count, np.int64), depends.delta_ns, members.delta_ns]),
        )

    def _order_nodes(self, target: Ints, source: Ints, delta_ns: Ints) -> None:
        self.nodes, upto = _levels(target, source, len(self.times_ns))
        # not in a circle, as only broken clocks or files make
        self.is_whole = len(self.nodes) == len(self.times_ns)
        place = np.full(len(self.times_ns), -1)
        place[self.nodes] = np.arange(len(self.nodes))
        own = place[target] >= 0
        target, source, delta_ns = place[target[own]], place[source[own]], delta_ns[own]
        order, by_target = grouped(target)
        self.first_edges, self.edges = by_target.first, by_target.counts  # by node
        self.source, self.delta_ns = source[order], delta_ns[order]
        self.unbound = int(upto[0])  # nodes without edges
        is_narrow = np.diff(upto) < NARROW
        is_end = np.append(~(is_narrow[1:] & is_narrow[:-1]), True)[: len(is_narrow)]
        upto, is_narrow = np.append(upto[0], upto[1:][is_end]), is_narrow[is_end]
        edges = np.append(self.first_edges, len(target))[upto - self.unbound]
        bounds = (is_narrow, upto[:-1], upto[1:], edges[:-1], edges[1:])  # of nodes, of edges
        self.bounds = list(zip(*(part.tolist() for part in bounds)))

    def play(self, change: Change) -> Ints:
        """The time of each node."""
        gap_ns, transfer_ns = change
        weight_ns = np.zeros(len(self.times_ns), np.int64)
        weight_ns[: len(gap_ns)] = gap_ns
        weight_ns[self.following] += transfer_ns
        weight_ns[self.first] += self.chains.begin_ns
        times_ns = weight_ns[self.nodes]
        delta_ns = self.delta_ns + np.repeat(times_ns[self.unbound :], self.edges)
        times_ns[self.unbound :] = NONE
        for is_narrow, begin, end, since, until in self.bounds:
            source, own_ns = self.source[since:until], delta_ns[since:until]
            own = slice(begin - self.unbound, end - self.unbound)
            if is_narrow:
                target = np.repeat(np.arange(begin, end), self.edges[own])
                _play_edges(times_ns, target.tolist(), source.tolist(), own_ns.tolist())
            else:
                firsts = self.first_edges[own] - since
                times_ns[begin:end] = np.maximum.reduceat(times_ns[source] + own_ns, firsts)
        found = self.times_ns.copy()
        found[self.nodes] = times_ns
        return found

    def lead_ns(self, ranks: Sequence[int]) -> Ints:
        """By how much calls of these ranks start after the others that are needed there: after the
        last other member of a group, or after a call that depends on them has begun to wait."""
        starts_ns = self.calls.start_ns
        is_own = np.isin(self.chains.world_rank, ranks)[self.calls.chain]
        lead_ns = np.zeros(len(self.calls), np.int64)
        members, of_own = self.members, is_own[self.members.call]
        at_ns = starts_ns[members.call] + members.delta_ns
        others_ns = np.full(len(self.times_ns) - self.ends.stop, FAR_NS)  # by group
        groups = Groups(members.group[~of_own])
        others_ns[members.group[~of_own][groups.first]] = groups.max(at_ns[~of_own])
        np.maximum.at(lead_ns, members.call[of_own], (at_ns - others_ns[members.group])[of_own])
        depends = self.of_calls.take(is_own[self.of_calls.source] & ~is_own[self.of_calls.call])
        waited_ns = starts_ns[depends.source] + depends.delta_ns - starts_ns[depends.call]
        np.maximum.at(lead_ns, depends.source, waited_ns)
        return lead_ns

    def met(self) -> np.ndarray:
        """The ranks, two in a row, of calls that depend on each other."""
        rank, members = self.chains.world_rank[self.calls.chain], self.members
        is_same = members.group[1:] == members.group[:-1]
        of_members = np.stack([rank[members.call[:-1]], rank[members.call[1:]]], 1)[is_same]
        of_calls = np.stack([rank[self.of_calls.call], rank[self.of_calls.source]], 1)
        return np.unique(np.concatenate([of_members, of_calls]), axis=0)

    def lasts_ns(self, times_ns: Ints) -> Ints:
        """How long each window lasts, if its nodes have these times."""
        order, windows = grouped(self.chains.window)
        return windows.max(times_ns[self.ends][order]) - windows.min(self.chains.begin_ns[order])

    def useful_ns(self) -> Ints:
        """Time outside MPI and in files, by chain. Between calls that overlap, as in a damaged
        file, is none."""
        count, chain = len(self.chains), self.calls.chain
        spent_ns = np.maximum(np.append(self.gap_ns, self.own_ns), 0)
        chains = np.concatenate([chain, np.arange(count), chain])
        return np.bincount(chains, spent_ns, count).astype(np.int64)


def _play_edges(
    times_ns: Ints, targets: Sequence[int], sources: Sequence[int], deltas_ns: Sequence[int]
) -> None:
    """Edge by edge: two ranks that take turns have a node or two in each level, which are too few
    for numpy."""
    times = times_ns.data  # Python's numbers, each without a call of numpy
    for target, source, delta_ns in zip(targets, sources, deltas_ns):
        time_ns = times[source] + delta_ns
        if time_ns > times[target]:
            times[target] = time_ns


def _levels(target: Ints, source: Ints, nodes: int) -> tuple[Ints, Ints]:
    """The nodes that depend on none, those that depend only on these, and so on; and how many there
    are up to the end of each level."""
    waits_for, order = np.bincount(target, minlength=nodes), np.argsort(source, kind="stable")
    first, reached = np.searchsorted(source[order], np.arange(nodes + 1)), target[order]
    count, left, firsts, targets = np.diff(first), waits_for.data, first.tolist(), reached.tolist()
    # left: the numbers of waits_for, as Python reads them fast
    found, upto = np.flatnonzero(waits_for == 0).tolist(), [0]
    while upto[-1] < len(found):
        level = found[upto[-1] :]
        upto.append(len(found))
        if len(level) < WIDE:
            for node in level:
                for after in targets[firsts[node] : firsts[node + 1]]:
                    left[after] -= 1
                    if not left[after]:
                        found.append(after)
        else:
            _, edge = each_from(first[level], count[level])
            ready, edges = np.unique(reached[edge], return_counts=True)
            waits_for[ready] -= edges
            found += ready[waits_for[ready] == 0].tolist()
    return np.array(found, np.int64), np.array(upto[1:] or upto)


Efficiency = namedtuple(  # None: not known
    "Efficiency",
    "parallel_efficiency load_balance communication_efficiency serialization transfer_efficiency",
    defaults=[None, None, None, None, None],
)


def efficiency(useful_ns: Ints, ideal_ns: float, time_ns: float) -> Efficiency:
    """useful_ns: by rank. A rank's time outside MPI is longer than the ideal one only by rounding
    and by errors of clocks."""
    most_ns = float(useful_ns.max(initial=0))
    if not (0 < most_ns and 0 < ideal_ns and 0 < time_ns):
        return Efficiency()
    balance = float(np.mean(useful_ns)) / most_ns
    serialization, transfer = min(1.0, most_ns / ideal_ns), min(1.0, ideal_ns / time_ns)
    return Efficiency(
        balance * serialization * transfer,
        balance,
        serialization * transfer,
        serialization,
        transfer,
    )


QUANTILES = 16
PARTS = 16  # of the run, in which ranks are compared


class Usual:
    """How long the gaps or transfers of each kind are on each rank in each part of the run:
    quantiles, from the shortest to the longest."""

    def __init__(self, values_ns: Ints, kinds: Ints, ranks: Ints) -> None:
        """By rank in order of time. Kinds are numbers from 0; NONE: of no kind."""
        self.values_ns, self.ranks = values_ns, ranks
        kinds = _with_parts(kinds, ranks)
        order = np.lexsort((values_ns, ranks, kinds))
        self.order = order[kinds[order] != NONE]
        self.groups = Groups(kinds[self.order], ranks[self.order])
        first = self.order[self.groups.first]
        self.kind, self.rank = kinds[first], ranks[first]
        place = np.linspace(0, 1, QUANTILES) * (self.groups.counts[:, None] - 1)
        at = self.groups.first[:, None] + np.rint(place).astype(np.int64)
        self.quantiles = values_ns[self.order][at] if len(first) else np.empty((0, QUANTILES))

    def as_others(
        self, ranks: Sequence[int], others: Sequence[int], lead_ns: Ints | None = None
    ) -> Ints:
        """The values if those of these ranks were no longer than what the others take for the same
        kind: each quantile no longer than the median of the others' same quantile. What no
        other rank does is shorter by what others wait after it (lead_ns), if that is known."""
        found, is_own = self.values_ns.copy(), np.isin(self.rank, ranks)
        alone, is_other = [], np.isin(self.rank, others)
        for group in np.flatnonzero(is_own).tolist():
            usual = self.quantiles[(self.kind == self.kind[group]) & is_other]
            begin, count = int(self.groups.first[group]), int(self.groups.counts[group])
            rows = self.order[begin : begin + count]
            if len(usual):
                # so many values with these quantiles, in order
                place = np.linspace(0, QUANTILES - 1, count) if count > 1 else [QUANTILES / 2]
                usual_ns = np.interp(place, np.arange(QUANTILES), np.median(usual, axis=0))
                found[rows] = np.minimum(found[rows], usual_ns.astype(np.int64))
            else:
                alone.append(rows)
        rows = np.sort(np.concatenate([self.order[:0], *alone]))
        for _, own in by_rank(self.ranks[rows]):
            if lead_ns is not None:
                self._take(found, rows[own], lead_ns)
        return found

    def _take(self, found: Ints, rows: Ints, lead_ns: Ints) -> None:
        """The time that others wait at a call was lost since the call before at which they did:
        the rows, of one rank in order of time, are shorter by it, the last first."""
        left_ns = 0
        for row in rows[::-1].tolist():
            left_ns = int(lead_ns[row]) or left_ns
            taken_ns = min(left_ns, int(found[row]))
            found[row] -= taken_ns
            left_ns -= taken_ns


def _with_parts(kinds: Ints, ranks: Ints) -> Ints:
    """Kinds of which those in different parts of a rank's run differ."""
    order, groups = grouped(kinds, ranks)
    part = np.empty(len(kinds), np.int64)
    part[order] = groups.place() * PARTS // groups.spread(groups.counts)
    return np.where(kinds == NONE, NONE, kinds * PARTS + part)
