"""Finds pipelines in the graph of point-to-point messages: lines of ranks that pass bulk messages
to fixed neighbours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..base.thresholds import threshold, whole

BULK = threshold("roles.bulk")
FEWEST = whole("roles.messages")
ALIKE = threshold("roles.direction")


class MessageRow(NamedTuple):
    """All messages from one rank to another; messages.sql."""

    sender: int
    receiver: int
    count: int  # type: ignore[assignment]  # hides tuple.count
    bytes: int


class Chain(NamedTuple):
    """A line of ranks, in the order in which messages go forward."""

    ranks: tuple[int, ...]
    forward_bytes: int
    backward_bytes: int
    # False: as many bytes go in either direction; the end with the lower rank counts as the first
    # stage
    is_direction_known: bool


class Graph(NamedTuple):
    chains: list[Chain]
    rings: list[list[int]]
    # connected ranks of which some have more than two neighbours, or pass nothing on
    webs: list[list[int]]
    pairs: int  # of ranks that exchange bulk messages


def graph(rows: Iterable[MessageRow]) -> Graph:
    rows = list(rows)
    sent = {(row.sender, row.receiver): row.bytes for row in rows}
    neighbours = _neighbours(rows)
    found = Graph([], [], [], sum(map(len, neighbours.values())) // 2)
    for ranks in _components(neighbours):
        ends = [rank for rank in ranks if len(neighbours[rank]) == 1]
        if max(len(neighbours[rank]) for rank in ranks) > 2:
            found.webs.append(ranks)
        elif not ends:
            found.rings.append(ranks)
        elif _is_passed_on(line := _walk(ends[0], neighbours), sent):
            found.chains.append(_chain(line, sent))
        else:
            found.webs.append(ranks)
    return found


def _neighbours(rows: Sequence[MessageRow]) -> dict[int, list[int]]:
    """For each rank the ranks with which it exchanges bulk messages; ranks without any are left
    out."""
    exchanged: Counter[tuple[int, int]] = Counter()
    messages: Counter[tuple[int, int]] = Counter()
    for row in rows:
        pair = (min(row.sender, row.receiver), max(row.sender, row.receiver))
        exchanged[pair] += row.bytes
        messages[pair] += row.count
    bulk = BULK * max(exchanged.values(), default=0)
    neighbours: dict[int, list[int]] = {}
    for (one, other), exchanged_bytes in sorted(exchanged.items()):
        if exchanged_bytes and exchanged_bytes >= bulk and messages[one, other] >= FEWEST:
            neighbours.setdefault(one, []).append(other)
            neighbours.setdefault(other, []).append(one)
    return neighbours


def _components(neighbours: dict[int, list[int]]) -> list[list[int]]:
    """The connected components, in the order of their lowest ranks, each sorted."""
    found, seen = [], set()
    for start in sorted(neighbours):
        if start in seen:
            continue
        group, ahead = [], [start]
        seen.add(start)
        while ahead:
            rank = ahead.pop()
            group.append(rank)
            ahead += [other for other in neighbours[rank] if other not in seen]
            seen.update(neighbours[rank])
        found.append(sorted(group))
    return found


def _walk(start: int, neighbours: dict[int, list[int]]) -> tuple[int, ...]:
    """The ranks from one end of a line to the other."""
    ranks = [start]
    while True:
        ahead = [other for other in neighbours[ranks[-1]] if other not in ranks[-2:-1]]
        if not ahead:
            return tuple(ranks)
        ranks.append(ahead[0])


def _is_passed_on(ranks: Sequence[int], sent: dict[tuple[int, int], int]) -> bool:
    """Each rank but the first and the last receives from one neighbour and sends to the other."""
    return all(
        (sent.get((before, rank)) and sent.get((rank, after)))
        or (sent.get((after, rank)) and sent.get((rank, before)))
        for before, rank, after in zip(ranks, ranks[1:], ranks[2:])
    )


def _chain(ranks: Sequence[int], sent: dict[tuple[int, int], int]) -> Chain:
    """Forward is the direction with more bytes; if both are alike, from the end with the lower
    rank."""
    forward = sum(sent.get(pair, 0) for pair in zip(ranks, ranks[1:]))
    backward = sum(sent.get(pair, 0) for pair in zip(ranks[1:], ranks))
    is_known = abs(forward - backward) > ALIKE * (forward + backward)
    if backward > forward and is_known:
        return Chain(tuple(ranks[::-1]), backward, forward, True)
    return Chain(tuple(ranks), forward, backward, is_known)
