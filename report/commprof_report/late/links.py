"""Slow links: pairs of ranks whose messages take longer than the same messages between others.

A message's transfer lasts from when both sides had posted it to the return of the call that sends,
receives or completes it. A call that completes several messages shows none of them alone. Where a
side came late to its call, some of the transfer is not seen. So messages of a pair, seen in part or
whole, are compared with those of other pairs that were waited for, which were seen whole: of the
same call, communicator and size, and likewise within a host or between two.

    other pairs, waited for    ..|..:...|          their medians: the time of such a message
    rank 1 to rank 2                        ..|....:.....|    its lower quartile is 9 times that
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..base.columns import NONE, Floats, Groups, Ints, Texts, grouped, np, of_groups
from ..base import threshold, whole
from .depends import Waits
from .reading import CallInfo

FEWEST = whole("late.blocks")


class Link(NamedTuple):
    sender: int
    receiver: int
    messages: int  # of the call and size below
    call: str
    bytes: int | None
    times: float  # median transfer, over that between others
    excess_ns: float  # of all its messages of slow calls and sizes, over the time between others


def slow_links(
    waits: Waits, factor: Floats, infos: Mapping[str, CallInfo],
    hosts: Mapping[int, str | None], texts: Texts,
) -> list[Link]:
    """waits, and how many nanoseconds each of theirs represents. The slowest link first."""
    is_message = texts.among(
        waits.call, {name for name, info in infos.items() if info.family == "point-to-point"}
    )
    is_alone = ~waits.is_polled & (waits.operations == 1) & is_message
    own = np.flatnonzero((waits.peer != NONE) & ~waits.is_estimate & is_alone)
    waits, factor = waits.take(own), factor[own]
    is_sent = ~texts.among(waits.call, {name for name in infos if "recv" in name.lower()})
    is_near = _host_numbers(waits.world_rank, hosts) == _host_numbers(waits.peer, hosts)
    order, pairs = grouped(
        waits.call, waits.identity, waits.bytes, is_near, waits.world_rank, waits.peer
    )
    waits, factor = waits.take(order), factor[order]
    is_sent, is_near = is_sent[order], is_near[order]
    kinds = Groups(waits.call, waits.identity, waits.bytes, is_near)
    others_ns = _between_others(waits, pairs, kinds)
    found: dict[tuple[int, int], list[Link]] = {}
    low_ns, middle_ns = (of_groups(waits.transfer_ns, pairs, percent) for percent in (25, 50))
    is_slow = low_ns >= threshold("late.slow-link") * others_ns
    is_slow &= (others_ns > 0) & (pairs.counts >= FEWEST)
    for pair in np.flatnonzero(is_slow).tolist():
        first = pairs.first[pair]
        rows = slice(first, first + pairs.counts[pair])
        excess_ns = np.maximum(0, waits.transfer_ns[rows] - others_ns[pair]) * factor[rows]
        ends = int(waits.world_rank[first]), int(waits.peer[first])
        sender, receiver = ends if is_sent[first] else ends[::-1]
        size = int(waits.bytes[first])
        found.setdefault((sender, receiver), []).append(
            Link(
                sender, receiver, int(pairs.counts[pair]), texts.texts[waits.call[first]],
                None if size == NONE else size, float(middle_ns[pair] / others_ns[pair]),
                float(excess_ns.sum()),
            )
        )
    return sorted(map(_of_pair, found.values()), key=lambda link: -link.excess_ns)


def _of_pair(links: list[Link]) -> Link:
    """The sender's calls and the receiver's last alike: the side that lost more counts."""
    by_call: dict[str, float] = {}
    for link in links:
        by_call[link.call] = by_call.get(link.call, 0.0) + link.excess_ns
    most = max(by_call, key=lambda call: by_call[call])
    longest = max((link for link in links if link.call == most), key=lambda link: link.excess_ns)
    return longest._replace(excess_ns=by_call[most])


def _host_numbers(ranks: Ints, hosts: Mapping[int, str | None]) -> Ints:
    names = {name: number for number, name in enumerate(dict.fromkeys(hosts.values()))}
    number_of = np.full(max([*hosts, int(ranks.max(initial=0))]) + 1, -1)
    number_of[list(hosts)] = [names[name] for name in hosts.values()]
    return number_of[ranks]


def _between_others(waits: Waits, pairs: Groups, kinds: Groups) -> Floats:
    """For each pair the typical time of such a message: of messages that were waited for, the
    median over the pairs of their medians; 0: too few pairs have any."""
    is_whole = waits.wait_ns > 0
    of_pair = Groups(pairs.of_row[is_whole])
    median_ns = of_groups(waits.transfer_ns[is_whole], of_pair, 50)
    of_kind = Groups(kinds.of_row[is_whole][of_pair.first])
    typical_ns = np.where(
        of_kind.counts >= whole("late.pairs"), of_groups(median_ns, of_kind, 50), 0
    )
    by_kind = np.zeros(len(kinds), np.int64)
    by_kind[kinds.of_row[is_whole][of_pair.first][of_kind.first]] = typical_ns
    return by_kind[kinds.of_row[pairs.first]]
