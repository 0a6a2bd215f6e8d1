"""Finds patterns in the graph of point-to-point messages. Pipelines: lines of ranks that pass bulk
messages on to fixed neighbours. Servers: ranks with which all others exchange messages that
exchange none with each other."""

from __future__ import annotations

from collections import Counter, namedtuple
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..base.gather import gathered
from ..base.thresholds import threshold, whole
from ..base.query import Row

FEWEST = whole("roles.messages")
ALIKE = threshold("roles.direction")
PASSED_ON = threshold("roles.passed-on")


# All messages from one rank to another; messages.sql.
MessageRow = namedtuple("MessageRow", "sender receiver count bytes")


class Chain(NamedTuple):
    """A line of ranks, in the order in which messages go forward."""

    ranks: tuple[int, ...]
    forward_bytes: int
    backward_bytes: int
    # False: as many bytes go in either direction; the end with the lower rank counts as the first
    # stage
    is_direction_known: bool


class Star(NamedTuple):
    """Ranks that serve others, which exchange no messages with each other."""

    servers: list[int]
    others: list[int]
    sent_bytes: int  # by the servers
    received_bytes: int

    @property
    def has_workers(self) -> bool:
        """Messages go both ways."""
        return self.sent_bytes > 0 and self.received_bytes > 0


class Graph(NamedTuple):
    chains: list[Chain]
    # lines of ranks that send to both neighbours before they have received from them
    exchanges: list[list[int]]
    stars: list[Star]
    rings: list[list[int]]
    # connected ranks of which some have more than two neighbours, or pass nothing on
    webs: list[list[int]]
    pairs: int  # of ranks that exchange bulk messages


# When a rank began to send a message, or had received one; message_times.sql.
MessageTime = namedtuple("MessageTime", "rank peer is_sent at_ns")


def graph(rows: Iterable[Row], times: Iterable[Row] = ()) -> Graph:
    """times: in order of time, for each rank; without them messages between neighbours in a line
    are taken as passed on."""
    rows = list(rows)
    sent = {(row.sender, row.receiver): row.bytes for row in rows}
    neighbours = _neighbours(rows)
    found = Graph([], [], [], [], [], sum(map(len, neighbours.values())) // 2)
    times_of = gathered((time.rank, time) for time in times)
    for ranks in _components(neighbours):
        ends = [rank for rank in ranks if len(neighbours[rank]) == 1]
        if star := _star(ranks, neighbours, sent):
            found.stars.append(star)
        elif max(len(neighbours[rank]) for rank in ranks) > 2:
            found.webs.append(ranks)
        elif not ends:
            found.rings.append(ranks)
        elif _is_passed_on(line := _walk(ends[0], neighbours), sent):
            if _is_exchange(line, sent, times_of):
                found.exchanges.append(ranks)
            else:
                found.chains.append(_chain(line, sent))
        else:
            found.webs.append(ranks)
    return found


def _neighbours(rows: Sequence[Row]) -> dict[int, list[int]]:
    """For each rank the ranks with which it exchanges bulk messages; ranks without any are left
    out."""
    exchanged: Counter[tuple[int, int]] = Counter()
    messages: Counter[tuple[int, int]] = Counter()
    for row in rows:
        pair = (min(row.sender, row.receiver), max(row.sender, row.receiver))
        exchanged[pair] += row.bytes
        messages[pair] += row.count
    bulk = threshold("roles.bulk") * max(exchanged.values(), default=0)
    return gathered(
        pair for (one, other), exchanged_bytes in sorted(exchanged.items())
        if exchanged_bytes and exchanged_bytes >= bulk and messages[one, other] >= FEWEST
        for pair in ((one, other), (other, one))
    )


def _components(neighbours: dict[int, list[int]]) -> list[list[int]]:
    """The connected components, in the order of their lowest ranks, each sorted."""
    found: list[set[int]] = []
    for rank, others in neighbours.items():
        group = {rank, *others}
        touched = [each for each in found if not group.isdisjoint(each)]
        found = [each for each in found if group.isdisjoint(each)] + [group.union(*touched)]
    return sorted(map(sorted, found))


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


def _star(
    ranks: Sequence[int], neighbours: dict[int, list[int]], sent: dict[tuple[int, int], int]
) -> Star | None:
    """If each of few ranks exchanges messages with each of the others, and there are no messages
    but these."""
    others = neighbours[min(ranks, key=lambda rank: (-len(neighbours[rank]), rank))]
    servers = [rank for rank in ranks if rank not in others]
    if len(servers) >= len(others) or not (
        all(neighbours[rank] == others for rank in servers)
        and all(neighbours[rank] == servers for rank in others)
    ):
        return None
    sent_bytes, received_bytes = (
        sum(sent.get(pair, 0) for pair in each)
        for each in zip(*(((one, two), (two, one)) for one in servers for two in others))
    )
    star = Star(servers, others, sent_bytes, received_bytes)
    return None if len(ranks) == 3 and _may_be_a_line(star, sent) else star


def _may_be_a_line(star: Star, sent: dict[tuple[int, int], int]) -> bool:
    """One rank with two others may pass messages on from one to the other, in order of ranks: then
    it sends as much as it receives."""
    (server,), (one, two) = star.servers, star.others
    if not star.has_workers or not all(sent.get((server, rank)) for rank in (one, two)):
        return _is_passed_on((one, server, two), sent)
    whole = star.sent_bytes + star.received_bytes
    return one < server < two and abs(star.sent_bytes - star.received_bytes) <= ALIKE * whole


def _is_exchange(
    line: Sequence[int], sent: dict[tuple[int, int], int],
    times_of: dict[int, list[Row]],
) -> bool:
    """Whether ranks in the middle do not wait for a message before they send one on. At one end of
    a pipeline at least messages are answered."""
    middle = [
        _passed_on(times_of[rank], source, target)
        for before, rank, after in zip(line, line[1:], line[2:]) if rank in times_of
        for source, target in ((before, after), (after, before))
        if sent.get((source, rank)) and sent.get((rank, target))
    ]
    if any(share < PASSED_ON for share in middle):
        return True
    ends = [
        _passed_on(times_of[end], peer, peer)
        for end, peer in ((line[0], line[1]), (line[-1], line[-2]))
        if end in times_of and sent.get((end, peer)) and sent.get((peer, end))
    ]
    return len(ends) == 2 and max(ends) < PASSED_ON


def _passed_on(times: Sequence[Row], source: int, target: int) -> float:
    """The share of a rank's messages to the target before which it had as many from the source."""
    received = sends = passed = 0
    for time in times:
        if time.is_sent and time.peer == target:
            sends += 1
            passed += received >= sends
        elif not time.is_sent and time.peer == source:
            received += 1
    return passed / sends if sends else 1.0


def _chain(ranks: Sequence[int], sent: dict[tuple[int, int], int]) -> Chain:
    """Forward is the direction with more bytes; if both are alike, from the end with the lower
    rank."""
    forward = sum(sent.get(pair, 0) for pair in zip(ranks, ranks[1:]))
    backward = sum(sent.get(pair, 0) for pair in zip(ranks[1:], ranks))
    is_known = abs(forward - backward) > ALIKE * (forward + backward)
    if backward > forward and is_known:
        return Chain(tuple(ranks[::-1]), backward, forward, True)
    return Chain(tuple(ranks), forward, backward, is_known)
