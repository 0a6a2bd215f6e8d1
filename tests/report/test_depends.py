"""The ranks that each rank of a collective depends on (late/depends.py), against the definition,
one rank at a time, over random collectives of every kind."""

from __future__ import annotations

import random

import pytest
from commprof_report.base import Texts, np
from commprof_report.late.depends import (
    ALL,
    Collectives,
    KINDS,
    LOWER,
    NEIGHBORS,
    ROOT_FIRST,
    ROOT_LAST,
    Sources,
    awaited,
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


def whom(kind: str, root: int, rank: int, edges: set[tuple[int, int]]) -> set[int]:
    """The ranks that one depends on."""
    everyone = set(range(RANKS))
    return {
        ALL: everyone,
        ROOT_FIRST: {root} - {rank},
        ROOT_LAST: everyone - {root} if rank == root else set(),
        LOWER: set(range(rank)),
        NEIGHBORS: {source for own, source in edges if own == rank},
    }[kind]


@pytest.mark.parametrize("seed", range(20))
def test_each_rank_depends_on_the_last_of_those_that_its_kind_of_collective_says(seed: int):
    texts, chosen = Texts(), random.Random(seed)
    rows, kinds = collectives(seed, texts)
    edges = sorted({(chosen.randrange(RANKS), chosen.randrange(RANKS)) for _ in range(7)})
    edges = [(own, source) for own, source in edges if own != source]
    own, source = np.array(edges, np.int64).reshape(-1, 2).T
    ranks = np.arange(RANKS)
    known = Sources(0 * own, own, source, (0 * ranks, ranks))
    found = awaited(rows, rows.arrived_ns, known, texts)
    for row in range(len(rows)):
        kind, root = kinds[row // RANKS]
        first, at = row - row % RANKS, rows.arrived_ns.tolist()
        awaited_ranks = whom(kind, root, row % RANKS, set(edges))
        last = max(awaited_ranks, key=lambda rank: (at[first + rank], -rank), default=None)
        assert found[row] == (-1 if last is None else first + last)
