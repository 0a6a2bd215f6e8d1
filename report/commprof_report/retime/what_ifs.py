"""Changes of a graph: other gaps, other transfers."""

from __future__ import annotations

from collections.abc import Sequence

from ..base.columns import NONE, Floats, Groups, Ints, by_rank, grouped, np

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

    def as_others(self, ranks: Sequence[int], lead_ns: Ints | None = None) -> Ints:
        """The values if those of these ranks were no longer than what the other ranks take for the
        same kind: each quantile no longer than the median of the others' same quantile. What no
        other rank does is shorter by what others wait after it (lead_ns), if that is known."""
        found, is_own = self.values_ns.copy(), np.isin(self.rank, ranks)
        alone = []
        for group in np.flatnonzero(is_own).tolist():
            others = self.quantiles[(self.kind == self.kind[group]) & ~is_own]
            begin, count = int(self.groups.first[group]), int(self.groups.counts[group])
            rows = self.order[begin : begin + count]
            if len(others):
                usual_ns = _spread(np.median(others, axis=0), count)
                found[rows] = np.minimum(found[rows], usual_ns)
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


def _spread(quantiles: Floats, count: int) -> Ints:
    """So many values with these quantiles, in order."""
    place = np.linspace(0, QUANTILES - 1, count) if count > 1 else np.array([QUANTILES / 2])
    return np.interp(place, np.arange(QUANTILES), quantiles).astype(np.int64)
