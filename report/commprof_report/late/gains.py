"""By how much the waiting of another rank would shrink at most, had some ranks not been late.

Of each wait the part that they caused. A rank may wait on for the next one: the last of the others,
without the rank through which they caused the wait. Where arrival times are not used, a longer call
stands for an earlier arrival; a completing call stands for an arrival. Calls for messages depend on
ranks that are not known here: the part that the last rank caused alone; if the call waits for
messages of others, too, no more than by how much longer than these the named rank was in its own
time (own_time.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..base.arrays import np
from ..base.columns import NONE, Flags, Floats, Ints, found_in, grouped
from .own_time import Compared
from .root_causes import Causes
from .scaled import Scaled
from .waits import Waits

Span = tuple[int, int]


class Gains:
    def __init__(self, chosen: Waits, scaled: Scaled, causes: Causes, compared: Compared) -> None:
        """chosen: of all ranks. causes: of the scaled waits."""
        self.scaled, self.causes, self.compared = scaled, causes, compared
        arrivals = chosen.take(chosen.sequence > 0)
        self.ranks = arrivals.world_rank
        self.arrival_ns = np.where(
            arrivals.is_estimate, arrivals.start_ns - arrivals.end_ns, arrivals.start_ns
        )
        order, self.groups = grouped(arrivals.identity, arrivals.sequence, arrivals.call)
        self.order = order
        keys = (arrivals.identity, arrivals.sequence, arrivals.call)
        waits = scaled.waits
        own = (waits.identity, waits.sequence, waits.call)
        self.group_of_wait = found_in(own, [key[order[self.groups.first]] for key in keys])
        self.arrival_of_wait = found_in((*own, waits.world_rank), (*keys, arrivals.world_rank))
        self.compared_of_wait = found_in(
            (compared.identity, compared.sequence), (waits.identity, waits.sequence)
        )

    def gain_ns(self, ranks: Sequence[int], spans: Sequence[Span] | None = None) -> int:
        """Because one late rank alone gains nothing while another is as late: these ranks together.
        Scaled to all calls; or of the sampled calls within spans of time that do not overlap."""
        waits, caused_ns = self.scaled.waits, self._caused_ns(ranks)
        saved = (caused_ns > 0) & ~np.isin(waits.world_rank, ranks)
        if spans is not None:
            saved &= _within(waits.start_ns + waits.wait_ns, spans)
        factor = self.scaled.factor if spans is None else np.ones(len(waits))
        part = np.divide(factor * caused_ns, waits.wait_ns, where=saved, out=np.zeros(len(waits)))
        rest_ns = np.maximum(0, waits.wait_ns - np.maximum(0, self._next_ns(ranks)))
        gain_ns = part * np.where(waits.sequence < 0, waits.alone_ns, rest_ns)
        if not saved.any():
            return 0
        by_rank = np.bincount(waits.world_rank[saved], gain_ns[saved])
        return int(np.floor(by_rank.max() + 0.5))

    def _caused_ns(self, ranks: Sequence[int]) -> Floats:
        """Part of each wait that these ranks caused."""
        own = self.causes.take(np.isin(self.causes.cause_rank, ranks))
        caused_ns, excess_ns = own.caused_ns.copy(), self._excess_ns(ranks)[own.wait]
        is_bounded = (own.cause_rank == self.scaled.waits.last_rank[own.wait]) & (excess_ns != NONE)
        caused_ns[is_bounded] = np.minimum(caused_ns, excess_ns)[is_bounded]
        return np.bincount(own.wait, caused_ns, len(self.scaled.waits))

    def _excess_ns(self, ranks: Sequence[int]) -> Ints:
        """Excess of each wait for a message of a named rank: how much longer that was in its own
        time than the others; NONE: not known."""
        compared = self.compared
        is_own = (
            np.isin(compared.awaited_rank, ranks) & (compared.own_ns != NONE)
            & (self.compared_of_wait >= 0)
        )
        awaited, others = (
            self._most_own_ns(is_own & which)
            for which in (
                compared.world_rank == compared.awaited_rank, ~np.isin(compared.world_rank, ranks),
            )
        )
        return np.where((awaited == NONE) | (others == NONE), NONE, np.maximum(0, awaited - others))

    def _most_own_ns(self, rows: Flags) -> Ints:
        most_ns = np.full(len(self.scaled.waits), NONE)
        np.maximum.at(most_ns, self.compared_of_wait[rows], self.compared.own_ns[rows])
        return most_ns

    def _next_ns(self, ranks: Sequence[int]) -> Ints:
        """Time in each wait for a collective from the rank's own arrival to that of the next one
        that is not named; 0: none did."""
        left_out = np.isin(self.ranks, ranks)[self.order]
        times = np.where(left_out, NONE, self.arrival_ns[self.order])
        latest = self.groups.first_most(times)
        before_ns = self.groups.max(
            np.where(np.arange(len(times)) == self.groups.spread(latest), NONE, times)
        )
        is_known = (self.group_of_wait >= 0) & (self.arrival_of_wait >= 0)
        group = np.where(is_known, self.group_of_wait, 0)
        if not len(times):
            return np.zeros(len(group), np.int64)
        is_through = self.scaled.waits.last_rank == self.ranks[self.order[latest]][group]
        next_ns = np.where(is_through, before_ns[group], times[latest][group])
        return np.where(
            is_known & (next_ns != NONE), next_ns - self.arrival_ns[self.arrival_of_wait], 0
        )


def _within(times_ns: Ints, spans: Sequence[Span]) -> Flags:
    """True for times within a span; of spans that begin together the last one counts."""
    begins, ends = np.array(sorted(dict(spans).items()), np.int64).reshape(-1, 2).T
    place = np.searchsorted(begins, times_ns, "right") - 1
    return (place >= 0) & (times_ns <= np.append(ends, NONE)[place])
