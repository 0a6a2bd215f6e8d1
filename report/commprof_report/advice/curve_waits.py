"""How long sampled collectives and messages last without waiting, by size and place.

A call follows a pause if its rank made no call before it for longer than such calls last in the
median, and for longer than the fastest of its size lasts; all other calls are in a burst. Calls
after a pause are slower for another reason than their size: other ranks are not on a core, caches
hold other data.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..base.arrays import np
from ..base.columns import NONE, Flags, Groups, Ints, Texts, grouped, joined
from ..late.waits import Waits


class CurveWaitRow(NamedTuple):
    """Sampled collectives and messages of one size at one place: durations without waiting, and the
    waiting. `calls`: of all ranks."""

    call: str
    family: int
    side: str
    bytes: int | None
    follows_pause: int
    calls: int
    collectives: int
    transfer_min_ns: int
    transfer_p25_ns: int
    transfer_p50_ns: int
    transfer_p75_ns: int
    wait_ns: float
    transfer_ns: float
    ranks: frozenset[int] = frozenset()  # that made them

    @property
    def ns(self) -> float:
        return self.wait_ns + self.transfer_ns


def curve_waits(
    waits: Waits, texts: Texts, families: Mapping[str, int],
    sides: Mapping[tuple[int | None, str, str], str], others: Waits | None = None,
) -> list[CurveWaitRow]:
    """families: by identity; waits on other communicators are left out. sides: by rank, identity
    and call; others have none. others: calls that end pauses, too, and have no curve."""
    own = waits.completion == NONE
    if others is not None:
        own = np.append(own, np.zeros(len(others), bool))
        waits = joined(Waits, [waits, others])
    family = np.array([*(families.get(text, NONE) for text in texts.texts), NONE])[waits.identity]
    is_known = family != NONE
    waits, family, own = waits.take(is_known), family[is_known], own[is_known]
    pause_ns = _pauses_ns(waits)
    waits, family, pause_ns = waits.take(own), family[own], pause_ns[own]
    side = _sides(waits, texts, sides)
    order, _ = grouped(waits.call, family, side, waits.transfer_ns)
    curves = Groups(*(key[order] for key in (waits.call, family, side)))
    typical_ns = np.empty(len(waits), np.int64)
    typical_ns[order] = curves.spread(_quantile(waits.transfer_ns[order], curves, 2))
    order, sizes = grouped(waits.call, family, side, waits.bytes)
    least_ns = np.empty(len(waits), np.int64)
    least_ns[order] = sizes.spread(sizes.min(waits.transfer_ns[order]))
    follows_pause = pause_ns > np.maximum(typical_ns, least_ns)
    return _rows(waits, (waits.call, family, side, waits.bytes, follows_pause), texts)


def _pauses_ns(waits: Waits) -> Ints:
    """Since the call before on the same rank; the first one follows a pause."""
    order = np.lexsort((waits.start_ns, waits.world_rank))
    pause_ns = np.full(len(waits), 1 << 62)
    is_next = waits.world_rank[order[1:]] == waits.world_rank[order[:-1]]
    since_ns = waits.start_ns[order[1:]] - waits.end_ns[order[:-1]]
    pause_ns[order[1:]] = np.where(is_next, since_ns, 1 << 62)
    return pause_ns


SIDES = ("", "at the root", "off the root")


def _sides(waits: Waits, texts: Texts, sides: Mapping[tuple[int | None, str, str], str]) -> Ints:
    """Places in SIDES."""
    order, groups = grouped(waits.world_rank, waits.identity, waits.call)
    found = [
        SIDES.index(
            sides.get(
                (
                    int(waits.world_rank[row]), texts.texts[waits.identity[row]],
                    texts.texts[waits.call[row]],
                ),
                "",
            )
        )
        for row in order[groups.first]
    ]
    side = np.empty(len(waits), np.int64)
    side[order] = groups.spread(np.array(found, np.int64))
    return side


def _quantile(ordered: Ints, groups: Groups, of: int, which: int = 1) -> Ints:
    """The which/of quantile of each group of ordered values: the least value that this part does
    not exceed."""
    return ordered[groups.first + np.maximum(0, -(-which * groups.counts // of) - 1)]


def _rows(waits: Waits, keys: tuple[Ints | Flags, ...], texts: Texts) -> list[CurveWaitRow]:
    order, _ = grouped(*keys, waits.transfer_ns)
    groups = Groups(*(key[order] for key in keys))
    first = order[groups.first]
    transfer_ns, wait_ns = waits.transfer_ns[order], waits.wait_ns[order]
    collective_order, collectives = grouped(
        groups.of_row, waits.identity[order], waits.sequence[order]
    )
    counts = np.bincount(groups.of_row[collective_order[collectives.first]], minlength=len(groups))
    columns = (
        *(key[first].tolist() for key in keys),
        groups.counts.tolist(),
        counts.tolist(),
        groups.min(transfer_ns).tolist(),
        *(_quantile(transfer_ns, groups, 4, which).tolist() for which in (1, 2, 3)),
        groups.sum(wait_ns).astype(float).tolist(),
        groups.sum(transfer_ns).astype(float).tolist(),
        map(frozenset, np.split(waits.world_rank[order], groups.first[1:])),
    )
    return [
        CurveWaitRow(
            texts.texts[call], family, SIDES[side], None if size == NONE else size, int(is_after),
            *rest,
        )
        for call, family, side, size, is_after, *rest in zip(*columns)
    ]
