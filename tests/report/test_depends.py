"""The ranks that each rank of a collective depends on (late/depends.py), against the definition,
one rank at a time, over random collectives of every kind."""

from __future__ import annotations

import random

from commprof_report.base import Texts, np
from commprof_report.late.depends import (
    Collectives,
    KINDS,
)

RANKS = 5


def collectives(seed: int, texts: Texts) -> tuple[Collectives, list[tuple[str, int]]]:
    """Some of random kinds, each on all ranks; and the kind and the root of each."""
    chosen = random.Random(seed)
    kinds = [(chosen.choice(KINDS), chosen.randrange(RANKS)) for _ in range(12)]
    each, rank = np.divmod(np.arange(RANKS * len(kinds)), RANKS)
    numbers = np.array([texts.number(kind) for kind, _ in kinds])
    rows = Collectives(
        identity=0 * each,
        sequence=each,
        world_rank=rank,
        kind=numbers[each],
        is_root=rank == np.array([root for _, root in kinds])[each],
        arrived_ns=np.array([chosen.randrange(8) for _ in rank]),  # several at a time
    )
    return rows, kinds
