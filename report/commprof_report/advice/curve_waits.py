"""How long sampled collectives and messages last without waiting, by size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..base.arrays import np
from ..base.columns import NONE, Groups, Ints, Texts, grouped
from ..late.waits import Waits


class CurveWaitRow(NamedTuple):
    """Sampled collectives and messages of one size: the median without waiting, and the sums over
    the ranks."""

    call: str
    family: int
    side: str
    bytes: int | None
    calls: int
    collectives: int
    transfer_p50_ns: int
    wait_ns: float
    transfer_ns: float

    @property
    def ns(self) -> float:
        return self.wait_ns + self.transfer_ns


def curve_waits(
    waits: Waits, texts: Texts, families: Mapping[str, int],
    sides: Mapping[tuple[int | None, str, str], str],
) -> list[CurveWaitRow]:
    """families: by identity; waits on other communicators are left out. sides: by rank, identity
    and call; others have none."""
    family = np.array([*(families.get(text, NONE) for text in texts.texts), NONE])[waits.identity]
    is_own = (waits.completion == NONE) & (family != NONE)
    waits, family = waits.take(is_own), family[is_own]
    side = _sides(waits, texts, sides)
    keys = (waits.call, family, side, waits.bytes)
    order, _ = grouped(*keys, waits.transfer_ns)
    groups = Groups(*(key[order] for key in keys))
    transfer_ns, wait_ns = waits.transfer_ns[order], waits.wait_ns[order]
    collective_order, collectives = grouped(
        groups.of_row, waits.identity[order], waits.sequence[order]
    )
    counts = np.bincount(groups.of_row[collective_order[collectives.first]], minlength=len(groups))
    columns = (
        *(key[order[groups.first]].tolist() for key in keys),
        groups.counts.tolist(),
        counts.tolist(),
        transfer_ns[groups.first + (groups.counts - 1) // 2].tolist(),
        groups.sum(wait_ns).astype(float).tolist(),
        groups.sum(transfer_ns).astype(float).tolist(),
    )
    return [
        CurveWaitRow(
            texts.texts[call], family, SIDES[side], None if size == NONE else size, *rest
        )
        for call, family, side, size, *rest in zip(*columns)
    ]


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
