"""Messages: a receive, or a blocking probe, depends on the time at which its send was posted, a
send on the time at which its receive was posted.

A send that returned, or was completed, before its receive was posted was buffered: it has not
waited for the receiver.

MPI matches messages on one communicator, from one rank to another, with one tag, in the order in
which they are posted, so the n-th sent is the n-th received. Their numbers start again after
65,535. In the order of time, in which both sides' numbers differ by less than half of that, they
are counted on. There may be more messages than that between two windows in which messages are
sampled. So only windows that overlap in time are compared.

    sampled on the sender     |65533 65534 65535 1 2|                |9 10 11|
    sampled on the receiver     |65534 65535 1 2 3|                    |10 11 12|

Epochs of post, start, complete and wait (PSCW) of windows: an origin waits for the
Win_post of its targets, a target for the Win_complete of its origins.

    target  |========= computes ======>| Win_post |====>| Win_wait  waits for the origin |
    origin  | Win_start  waits for the target     |=== computes ==========>| Win_complete |

A library may let Win_start return before the targets have posted. Then Win_complete waits for them,
and for what the targets must do to move the data (wait_split.py).

Slow links: pairs of ranks whose messages take longer than the same messages between others.

A message's transfer lasts from when both sides had posted it to the return of the call that sends,
receives or completes it. A call that completes messages with several partners shows none of them
alone: one is slow if the other side's call is, too; else only the rank is known. Where a side came
late to its call, some of the transfer is not seen. So messages of a pair, seen in part or
whole, are compared with those of other pairs that were waited for, which were seen whole: of the
same call, communicator and size, and likewise within a host or between two.

    other pairs, waited for    ..|..:...|          their medians: the time of such a message
    rank 1 to rank 2                        ..|....:.....|    its lower quartile is 9 times that
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping, Sequence
from sqlite3 import Connection

from ..base import (
    Columns,
    Flags,
    Floats,
    Groups,
    Ints,
    NONE,
    Texts,
    by,
    by_rank,
    found_in,
    grouped,
    np,
    numbered,
    of_groups,
    pairs,
    query,
    read,
    threshold,
    whole,
)
from ..run import Alignment, FAR_NS, cells_of, without_holes
from ..run.sampled import sampled
from .depends import LONG_AGO_NS, Operations, Waits
from .reading import CallInfo, Clocks, Known
from .verdict import LEVEL, Suspects, costs_of

NUMBERS = 65_535
HALF = NUMBERS // 2


def messages(
    connection: Connection, alignment: Alignment, clocks: Clocks, sides: Columns, texts: Texts
) -> tuple[Operations, dict[str, int]]:
    """And how many of those that the user chose were not split. sides: reading.py."""
    rank = np.where(sides.is_received, sides.receiver, sides.sender)
    posted_ns, ended_ns, gone_ns = (
        np.where(times == NONE, NONE, alignment.aligned(rank, times))
        for times in (sides.start_ns, sides.end_ns, sides.gone_ns)
    )
    since_ns, until_ns = _windows(connection, alignment, rank, ended_ns, texts)
    other = _other_sides(
        sides.changed(
            channel=numbered(sides.identity, sides.sender, sides.receiver, sides.tag),
            number=np.where(sides.identity == NONE, NONE, sides.number),
            posted_ns=posted_ns,
            gone_ns=gone_ns,
            since_ns=since_ns,
            until_ns=until_ns,
        ),
        rank,
        clocks,
    )
    own = np.flatnonzero(~sides.is_probe | (other >= 0))
    sides, other, rank = sides.take(own), other[own], rank[own]
    is_matched, is_gone = other >= 0, sides.gone_ns != NONE
    peer = np.where(is_matched, sides.sender + sides.receiver - rank, rank)
    error = clocks.between(rank, peer, sides.start_ns)
    is_sure = clocks.are_sure(sides.identity, sides.call, error)
    is_known, peer_ns = is_matched & is_sure, posted_ns[other]
    is_early = ~sides.is_received & (sides.is_buffered | (peer_ns >= gone_ns[own]))
    nothing, no = np.full(len(own), NONE), np.zeros(len(own), bool)
    operations = Operations(
        world_rank=rank,
        gone_ns=sides.gone_ns,
        identity=sides.identity,
        sequence=nothing,
        call=sides.call,
        bytes=sides.bytes,
        last_rank=peer,
        is_last=no,
        wait_state=np.where(
            sides.is_received, *map(texts.number, ("late sender", "late receiver"))
        ),
        last_ns=np.where(is_known & ~is_early, peer_ns, LONG_AGO_NS),
        is_estimate=no,
        peer_ns=peer_ns,
        peer_gone_ns=gone_ns[other],
        is_known=is_known,
    )
    is_chosen = cells_of(connection).are_left(texts, call=sides.call, identity=sides.identity)
    is_unmatched = is_chosen & ~is_matched
    left = {
        "unsure": is_chosen & is_matched & is_gone & ~is_sure,
        "uncompleted": is_chosen & is_matched & ~is_gone,
        "unmatched": is_unmatched,
        "unnumbered": is_unmatched & sides.is_received & (sides.number == NONE),
    }
    return operations.take(is_gone), {name: int(flags.sum()) for name, flags in left.items()}


def _other_sides(sides: Columns, rank: Ints, clocks: Clocks) -> Ints:
    """For each side, and each probe, the row of the other side; -1: it is not known."""
    send, receive = matches(sides)
    error = clocks.between(rank[receive], rank[send], sides.start_ns[receive])
    is_possible = are_possible(sides, send, receive, error.distance_ns)
    send, receive = send[is_possible], receive[is_possible]
    other = np.full(len(sides), -1)
    other[receive] = send
    is_message = ~sides.is_probe[receive]
    other[send[is_message]] = receive[is_message]
    return other


def matches(sides: Columns) -> tuple[Ints, Ints]:
    """Rows of sends, and of the receives and probes of the same messages. sides: channel, number
    (NONE: not known), is_received, posted_ns; since_ns, until_ns: the window in which it was
    sampled. Times are on the run's axis."""
    order = np.flatnonzero(sides.number != NONE)
    order = order[np.lexsort((sides.posted_ns[order], sides.channel[order]))]
    number, channels = sides.number[order], Groups(sides.channel[order])
    # threads that post at once may have got their numbers the other way round
    upto = np.cumsum((np.diff(number, prepend=0) + HALF) % NUMBERS - HALF)
    place = upto - channels.spread((upto - number)[channels.first])
    message, is_received = numbered(channels.of_row, place), sides.is_received[order]
    sent, received = order[~is_received], order[is_received]
    by_message = np.argsort(message[~is_received], kind="stable")
    row, entry = pairs(message[is_received], message[~is_received][by_message])
    send, receive = sent[by_message[entry]], received[row]
    is_near = (sides.since_ns[send] < sides.until_ns[receive]) & (
        sides.since_ns[receive] < sides.until_ns[send]
    )
    return send[is_near], receive[is_near]


def are_possible(sides: Columns, send: Ints, receive: Ints, error_ns: Floats) -> Flags:
    """If a receive would have been completed before its send was posted, numbers are wrong, and
    nothing in these windows matches. sides: gone_ns (the operation was complete; NONE: not seen),
    is_probe, too. error_ns: by how much the two sides' clocks may differ."""
    gone_ns, slack_ns = sides.gone_ns[receive], error_ns + whole("late.contradiction")
    is_wrong = (gone_ns != NONE) & (gone_ns + slack_ns < sides.posted_ns[send])
    windows = numbered(
        sides.channel[send], sides.since_ns[send], sides.since_ns[receive], sides.is_probe[receive]
    )
    return np.bincount(windows, is_wrong)[windows] == 0


def _windows(
    connection: Connection, alignment: Alignment, rank: Ints, ended_ns: Ints, texts: Texts
) -> tuple[Ints, Ints]:
    """Begin and end of the time around each side in which its rank's messages were sampled: always,
    if the run does not say it. ended_ns: when the call that posted it returned."""
    known = read(Columns, query.run(connection, "late/sampled_windows"), texts)
    begins, ends = (
        alignment.aligned(known.world_rank, times) for times in (known.begin_ns, known.end_ns)
    )
    of_rank = dict(by_rank(known.world_rank))
    since_ns, until_ns = np.full(len(rank), -FAR_NS), np.full(len(rank), FAR_NS)
    for each, own in by_rank(rank):
        if each in of_rank:
            rows = of_rank[each]
            windows = without_holes(*without_holes(begins[rows], ends[rows]).T)
            place = np.maximum(0, np.searchsorted(windows[:, 0], ended_ns[own], "right") - 1)
            since_ns[own], until_ns[own] = windows[place].T
    return since_ns, until_ns


SIDES = {"MPI_Win_start"}, {"MPI_Win_complete"}, {"MPI_Win_post"}, {"MPI_Win_wait", "MPI_Win_test"}


def epoch_operations(
    connection: Connection,
    alignment: Alignment,
    clocks: Clocks,
    rows: Columns,
    known: Known,
    texts: Texts,
) -> tuple[Operations, Flags]:
    """And which of them would be known, were the clocks more accurate. rows (sampled_epochs.sql): a
    partner of a sampled call, or all of them, which are not known then; identity: of the
    communicator on which the window was created; object: which of its windows; number: of the epoch
    between these two; partners: of the call. Times are the rank's own."""
    start_ns, end_ns = (
        alignment.aligned(rows.world_rank, times) for times in (rows.start_ns, rows.end_ns)
    )
    is_start, is_complete, is_post, is_wait = (texts.among(rows.call, side) for side in SIDES)
    is_origin = is_start | is_complete
    begun, post, complete, wait = (
        _of_epoch(rows, is_origin, side) for side in (is_start, is_post, is_complete, is_wait)
    )
    last_ns = _at(np.where(is_wait, complete, post), start_ns)
    error = clocks.between(rows.world_rank, rows.peer, rows.start_ns)
    is_sure = clocks.are_sure(rows.identity, rows.call, error)
    has_returned = is_start & (last_ns >= end_ns + error.distance_ns)
    of_call = numbered(rows.world_rank, rows.call, rows.start_ns, rows.end_ns)
    # all partners of a call must have a row
    is_known = (last_ns != NONE) & (np.bincount(of_call)[of_call] == rows.partners)
    # the partner's part ends with its post for Win_start, else with the epoch
    partner_gone_ns = _at(np.where(is_start, post, np.where(is_complete, wait, complete)), end_ns)
    nothing, no = np.full(len(rows), NONE), np.zeros(len(rows), bool)
    found = Operations(
        world_rank=rows.world_rank,
        gone_ns=rows.end_ns,
        identity=rows.identity,
        sequence=nothing,
        call=rows.call,
        last_rank=rows.peer,
        is_last=no,
        is_estimate=no,
        bytes=_moved_bytes(connection, rows, np.where(is_complete, begun, -1), known, texts),
        wait_state=np.where(is_wait, *map(texts.number, ("late complete", "late post"))),
        last_ns=np.where(has_returned | ~is_known, LONG_AGO_NS, last_ns),
        peer_ns=last_ns,
        peer_gone_ns=partner_gone_ns,
        is_known=is_known & is_sure,
    )
    is_own = is_origin | is_wait
    return found.take(is_own), (is_known & ~is_sure)[is_own]


def _at(rows: Ints, values: Ints) -> Ints:
    """The values at these rows; NONE at row -1."""
    return np.append(values, NONE)[rows]


def _of_epoch(rows: Columns, is_origin: Flags, side: Flags) -> Ints:
    """For each row the row of that side that is of the same epoch; -1: it is not known. is_origin:
    which rows are an origin's."""
    origin = np.where(is_origin, rows.world_rank, rows.peer)
    target = np.where(is_origin, rows.peer, rows.world_rank)
    keys = rows.identity, rows.object, origin, target, rows.number
    places = np.flatnonzero(side & (rows.number != NONE))
    return np.append(places, -1)[found_in(keys, [key[places] for key in keys])]


def _moved_bytes(
    connection: Connection, rows: Columns, begun: Ints, known: Known, texts: Texts
) -> Ints:
    """Bytes that a rank has put, got and accumulated since the row `begun`, the Win_start that this
    Win_complete ends, on whatever window: only calls that move the same amount can be compared.
    NONE: another call (-1)."""
    calls = sampled(connection).calls
    calls = calls.take(
        known.which(calls.call, texts, lambda call: call.family == "rma") & (calls.bytes > 0)
    )
    calls = calls.take(np.lexsort((calls.start_ns, calls.world_rank)))
    found = np.full(len(rows), NONE)
    for rank, own in by_rank(rows.world_rank):
        own = own[begun[own] >= 0]
        low, high = np.searchsorted(calls.world_rank, [rank, rank + 1])
        times, moved = calls.start_ns[low:high], np.append(0, np.cumsum(calls.bytes[low:high]))
        begin, end = (np.searchsorted(times, rows.start_ns[of]) for of in (begun[own], own))
        found[own] = moved[end] - moved[begin]
    return found


class Link(namedtuple("Link", "sender receiver call times excess_ns")):
    """From which rank to which; None: not known, as one call completes the messages of several.
    times: median transfer, over that between others. excess_ns: of all its messages of slow calls
    and sizes, over the time between others."""

    @property
    def route(self) -> str:
        """from rank 1 to rank 2"""
        return " ".join(
            f"{word} rank {rank}"
            for word, rank in (("from", self.sender), ("to", self.receiver))
            if rank is not None
        )


def slow_links(
    waits: Waits,
    factor: Floats,
    messages: Columns,
    infos: Mapping[str, CallInfo],
    hosts: Mapping[int, str | None],
    texts: Texts,
) -> list[Link]:
    """waits, and how many nanoseconds each of theirs represents. messages: of what these calls
    complete: wait (its row), call, identity, bytes, peer, wait_state (if it waited). The slowest
    link first."""
    is_message = texts.among(
        messages.call, {name for name, info in infos.items() if info.family == "point-to-point"}
    )
    messages = messages.take(is_message & ~waits.is_estimate[messages.wait])
    waits, factor = waits.take(messages.wait), factor[messages.wait]
    ranks = zip(waits.world_rank.tolist(), messages.peer.tolist())
    waits = waits.changed(
        call=messages.call,
        identity=messages.identity,
        bytes=messages.bytes,
        peer=messages.peer,
        is_sent=messages.wait_state == texts.number("late receiver"),
        is_near=np.array([hosts.get(rank) == hosts.get(peer) for rank, peer in ranks], bool),
    )
    kind = waits.call, waits.identity, waits.bytes, waits.is_near
    order, pairs = grouped(*kind, waits.world_rank, waits.peer)
    waits, factor = waits.take(order), factor[order]
    kinds = Groups(*(column[order] for column in kind))
    others_ns = _between_others(waits, pairs, kinds)
    excess_ns = np.maximum(0, waits.transfer_ns - pairs.spread(others_ns)) * factor
    low_ns, middle_ns = (of_groups(waits.transfer_ns, pairs, percent) for percent in (25, 50))
    is_slow = (others_ns > 0) & (low_ns >= threshold("late.slow-link") * others_ns)
    if not is_slow.any():
        return []
    # pairs in place of ranks, and what their messages of one kind, one after the other, take more
    # than usual in place of waiting
    arrival = numbered(pairs.place(), kinds.of_row)
    costs = costs_of(arrival.tolist(), pairs.of_row.tolist(), excess_ns.tolist())
    members = {kind: own.tolist() for kind, own in by_rank(kinds.of_row[pairs.first])}
    suspects = Suspects(costs.changed(identity=kinds.of_row), range(len(pairs)), members)
    slow: list[tuple[Link, tuple[int, int], bool]] = []
    sure = [pair for pair in np.flatnonzero(is_slow).tolist() if suspects.chance(pair) < LEVEL]
    for pair in sure:
        rows = slice(pairs.first[pair], pairs.first[pair] + pairs.counts[pair])
        ends = int(waits.world_rank[rows.start]), int(waits.peer[rows.start])
        link = Link(
            *(ends if waits.is_sent[rows.start] else ends[::-1]),
            texts.texts[waits.call[rows.start]],
            float(middle_ns[pair] / others_ns[pair]),
            float(excess_ns[rows].sum()),
        )
        slow.append((link, ends, bool((waits.operations[rows] == 1).all())))
    return sorted(map(_of_pair, _by_ends(slow)), key=lambda link: -link.excess_ns)


def _by_ends(slow: list[tuple[Link, tuple[int, int], bool]]) -> list[list[Link]]:
    """Links, with the rank whose calls they are of and its partner, and whether these calls
    complete one message."""
    seen = {(*link[:2], rank) for link, (rank, _), _ in slow}
    sure = [
        link for link, (_, partner), is_alone in slow if is_alone or (*link[:2], partner) in seen
    ]
    found = [*by(sure, lambda link: link[:2]).values()]
    known = {rank for link in sure for rank in link[:2]}
    for rank, own in by(slow, lambda each: each[1][0]).items():
        links = [link for link, *_ in own]
        links = [link for link in links if link.receiver == rank] or links
        if rank not in known and len({link[:2] for link in links}) > 1:
            most = max(links, key=lambda link: link.excess_ns)
            links = [
                most._replace(sender=None)
                if most.receiver == rank
                else most._replace(receiver=None)
            ]
        found += [links] * (rank not in known)
    return found


def _of_pair(links: list[Link]) -> Link:
    """The sender's calls and the receiver's last alike: the side that lost more counts."""

    def excess_ns(own: Sequence[Link]) -> float:
        return sum(link.excess_ns for link in own)

    most = max(by(links, lambda link: link.call).values(), key=excess_ns)
    return max(most, key=lambda link: link.excess_ns)._replace(excess_ns=excess_ns(most))


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
