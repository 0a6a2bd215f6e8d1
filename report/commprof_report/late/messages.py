"""Messages as arrivals: a receive, or a blocking probe, depends on the time at which its send was
posted, a send on the time at which its receive was posted.

A send that returned, or was completed, before its receive was posted was buffered: it has not
waited for the receiver.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import groupby
from sqlite3 import Connection
from typing import NamedTuple

from ..base import query
from ..base.arrays import np
from ..base.columns import NONE, Flags, Groups, Ints, TextInts, Texts
from ..run.alignment import Alignment
from .clocks import Clocks
from .known import Known
from .message_match import Message, Part, matches
from .reading import MessageSides, message_sides
from .waits import Arrivals

SQL = query.beside(__file__)

LONG_AGO_NS = -(1 << 62)
# which of these calls on these communicators (NONE: not known) the user chose
AreChosen = Callable[[TextInts, TextInts, Texts], Flags]
ALWAYS = (LONG_AGO_NS, -LONG_AGO_NS)
SENT, RECEIVED, PROBE, UNNUMBERED = range(4)


class Messages(NamedTuple):
    """The arrivals of messages, and how many sides that the user chose were not split."""

    arrivals: Arrivals
    unmatched: int
    unnumbered: int  # of these
    unsure: int
    uncompleted: int


class Found(NamedTuple):
    """Sides of messages by row, and the other sides that they depend on (-1: it is not known)."""

    own: list[int]
    other: list[int]
    is_sure: list[bool]  # the clocks are accurate enough

    def add(self, own: int, other: int, is_sure: bool) -> None:
        self.own.append(own)
        self.other.append(other)
        self.is_sure.append(is_sure)


def messages(
    connection: Connection, alignment: Alignment, clocks: Clocks, known: Known,
    are_chosen: AreChosen, texts: Texts,
) -> Messages:
    sides, windows = message_sides(connection, known, texts), Windows(connection, alignment)
    rank = np.where(sides.is_received == 1, sides.receiver, sides.sender)
    posted_ns, gone_ns = (
        np.where(times == NONE, NONE, alignment.aligned(rank, times))
        for times in (sides.start_ns, sides.gone_ns)
    )
    found = _matched(sides, rank, posted_ns, gone_ns, windows, clocks, texts)
    own, other = np.array(found.own, np.int64), np.array(found.other, np.int64)
    is_matched, is_sure = other >= 0, np.array(found.is_sure, bool)
    sides, last_rank, peer_ns, peer_gone_ns = (
        sides.take(own), rank[other], posted_ns[other], gone_ns[other],
    )
    is_gone = sides.gone_ns != NONE
    is_chosen = are_chosen(sides.call, sides.identity, texts)
    is_received = sides.is_received == 1
    is_known = is_matched & is_sure
    is_early = ~is_received & ((sides.is_buffered == 1) | (peer_ns >= gone_ns[own]))
    state = np.where(is_received, texts.number("late sender"), texts.number("late receiver"))
    nothing = np.full(len(own), NONE)
    arrivals = Arrivals(
        rank[own],
        sides.gone_ns,
        np.where(is_known, sides.identity, NONE),
        nothing,
        np.where(is_known, sides.call, NONE),
        np.where(is_known, sides.bytes, NONE),
        np.where(is_known, state, NONE),
        np.where(is_known & ~is_early, peer_ns, LONG_AGO_NS),
        np.full(len(own), LONG_AGO_NS),
        np.where(is_known, last_rank, 0),
        np.zeros(len(own), bool),
        np.where(is_known, peer_ns, NONE),
        np.where(is_known, peer_gone_ns, NONE),
        is_known,
    )
    is_unnumbered = is_received & (sides.number == NONE)
    return Messages(
        arrivals.take(is_gone),
        int((is_chosen & ~is_matched).sum()),
        int((is_chosen & ~is_matched & is_unnumbered).sum()),
        int((is_chosen & is_matched & is_gone & ~is_sure).sum()),
        int((is_chosen & is_matched & ~is_gone).sum()),
    )


def _matched(
    sides: MessageSides, rank: Ints, posted_ns: Ints, gone_ns: Ints, windows: Windows,
    clocks: Clocks, texts: Texts,
) -> Found:
    """Channel by channel: sides that match, probes, and sides that do not match."""
    found = Found([], [], [])
    kind = np.where(sides.is_probe == 1, PROBE, np.where(sides.is_received == 1, RECEIVED, SENT))
    kind[(sides.number == NONE) | (sides.identity == NONE)] = UNNUMBERED
    kinds, ranks, starts, ends, identities, calls = (
        column.tolist()
        for column in (kind, rank, sides.start_ns, sides.end_ns, sides.identity, sides.call)
    )
    is_side, is_gone = (sides.is_probe == 0).tolist(), (sides.gone_ns != NONE).tolist()
    posts = [
        Message(number, at_ns, None if until_ns == NONE else until_ns, row)
        for row, (number, at_ns, until_ns) in enumerate(
            zip(sides.number.tolist(), posted_ns.tolist(), gone_ns.tolist())
        )
    ]

    def is_sure(own: int, other: int) -> bool:
        if not is_gone[own]:
            return True
        pair = ranks[own], ranks[other]
        error = clocks.error(pair, pair, starts[own])
        return clocks.resolves(texts.texts[identities[own]], texts.texts[calls[own]], error)

    groups = Groups(sides.identity, sides.sender, sides.receiver, sides.tag)
    for first, count in zip(groups.first.tolist(), groups.counts.tolist()):
        end = first + count
        own: list[list[Message]] = [[], [], [], []]
        for row in range(first, end):
            own[kinds[row]].append(posts[row])
        sent = own[SENT]
        matched: set[int] = set()
        for received in (own[RECEIVED], own[PROBE]) if sent else ():
            if not received:
                continue
            pair = ranks[sent[0].row], ranks[received[0].row]
            error = clocks.error(pair, pair, starts[sent[0].row])
            parts = windows.parts(pair[0], sent, ends), windows.parts(pair[1], received, ends)
            for send, receive in matches(*parts, error.distance_ns):
                if received is own[RECEIVED]:
                    matched |= {send.row, receive.row}
                    found.add(send.row, receive.row, is_sure(send.row, receive.row))
                found.add(receive.row, send.row, is_sure(receive.row, send.row))
        for row in range(first, end):
            if row not in matched and is_side[row]:
                found.add(row, -1, False)
    return found


class Windows:
    """When each rank's messages were sampled; always, if the run does not say it."""

    def __init__(self, connection: Connection, alignment: Alignment) -> None:
        self.alignment = alignment
        self.begins: dict[int, list[int]] = {}
        self.ends: dict[int, list[int]] = {}
        for rank, begin_ns, end_ns in SQL.run(connection, "sampled_windows"):
            begins, ends = self.begins.setdefault(rank, []), self.ends.setdefault(rank, [])
            if ends and begin_ns <= ends[-1]:
                ends[-1] = max(ends[-1], end_ns)
            else:
                begins.append(begin_ns)
                ends.append(end_ns)

    def parts(self, rank: int, messages: Sequence[Message], ends: Sequence[int]) -> list[Part]:
        """A rank's messages, window by window. ends: by row when the call returned that posted one.
        """
        begins, aligned_ns = self.begins.get(rank, [LONG_AGO_NS]), self.alignment.aligned_ns
        parts = []
        for window, group in groupby(
            messages, key=lambda message: max(0, bisect_right(begins, ends[message.row]) - 1)
        ):
            begin_ns, end_ns = (
                (begins[window], self.ends[rank][window]) if rank in self.begins else ALWAYS
            )
            parts.append(Part(aligned_ns(rank, begin_ns), aligned_ns(rank, end_ns), list(group)))
        return parts
