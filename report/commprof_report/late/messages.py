"""Messages as arrivals: a receive, or a blocking probe, depends on the time at which its send was
posted, a send on the time at which its receive was posted.

A send that returned, or was completed, before its receive was posted was buffered: it has not
waited for the receiver.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import add, itemgetter
from sqlite3 import Connection
from typing import NamedTuple, Optional

from ..base import query
from ..base.arrays import np
from ..base.columns import NONE, Columns, Ints, Texts, rows_of
from ..base.present import present
from ..run.alignment import Alignment, storable
from .clocks import Clocks
from .known import Known
from .message_match import Message, Part, matches
from .reading import message_sides

SQL = query.beside(__file__)

LONG_AGO_NS = -(1 << 62)
IsChosen = Callable[[str, Optional[str]], bool]  # a call on a communicator (None: not known)
ALWAYS = (LONG_AGO_NS, -LONG_AGO_NS)


class MessageRow(NamedTuple):
    """One side of a message; a row of reading.MessageSides, and its times on the run's axis."""

    identity: str | None
    sender: int
    receiver: int
    tag: int | None
    start_ns: int
    end_ns: int
    is_received: int
    gone_ns: int | None
    number: int | None
    call: str
    bytes: int | None
    is_buffered: int
    is_probe: int  # no side: a call that found the message
    posted_ns: int
    completed_ns: int | None  # of gone_ns

    @property
    def world_rank(self) -> int:
        return self.receiver if self.is_received else self.sender


@dataclass(frozen=True)
class OnAxis(Columns):
    posted_ns: Ints
    completed_ns: Ints


class Messages:
    """The arrivals of messages, and how many sides that the user chose were not split."""

    def __init__(self, is_chosen: IsChosen, clocks: Clocks) -> None:
        self.is_chosen, self.clocks = is_chosen, clocks
        self.arrivals: list[tuple] = []  # rows of waits.Arrivals
        self.unmatched = self.unnumbered = self.unsure = self.uncompleted = 0

    def unknown(self, row: MessageRow) -> None:
        """Its arrival is not known."""
        self.arrivals.append(
            (
                row.world_rank, row.gone_ns, None, None, None, None, None, LONG_AGO_NS, LONG_AGO_NS,
                0, False, None, None, False,
            )
        )

    def unmatch(self, row: MessageRow) -> None:
        is_chosen = self.is_chosen(row.call, row.identity)
        self.unmatched += is_chosen
        self.unnumbered += bool(is_chosen and row.is_received and row.number is None)
        if row.gone_ns is not None:
            self.unknown(row)

    def add(self, own: Message, other: Message, ready_ns: int) -> None:
        row, last_rank = own.row, other.row.world_rank
        pair = (row.world_rank, last_rank)
        if row.gone_ns is None:
            self.uncompleted += self.is_chosen(row.call, row.identity)
        elif not self.clocks.resolves(
            row.identity, row.call, self.clocks.error(pair, pair, row.start_ns)
        ):
            self.unsure += self.is_chosen(row.call, row.identity)
            self.unknown(row)
        else:
            if ready_ns >= present(own.gone_ns) and not row.is_received:
                ready_ns = LONG_AGO_NS
            state = "late sender" if row.is_received else "late receiver"
            operation = (row.identity, None, row.call, row.bytes, state)
            gone_ns = None if other.gone_ns is None else storable(other.gone_ns)
            times = (ready_ns, LONG_AGO_NS, last_rank, False, storable(other.posted_ns), gone_ns)
            self.arrivals.append((row.world_rank, row.gone_ns, *operation, *times, True))


def messages(
    connection: Connection, alignment: Alignment, clocks: Clocks, known: Known, is_chosen: IsChosen
) -> Messages:
    found = Messages(is_chosen, clocks)
    windows = Windows(connection, alignment)
    texts = Texts()
    sides = message_sides(connection, known, texts)
    rank = np.where(sides.is_received == 1, sides.receiver, sides.sender)
    posted_ns, gone_ns = (
        np.where(times == NONE, NONE, alignment.aligned(rank, times))
        for times in (sides.start_ns, sides.gone_ns)
    )
    on_axis = OnAxis(posted_ns, gone_ns)
    both = map(add, rows_of(sides, texts), rows_of(on_axis, texts))
    for _, group in groupby(map(MessageRow._make, both), key=itemgetter(0, 1, 2, 3)):
        rows = list(group)
        matched = set()
        for sent, received in _matches(rows, windows, clocks, is_probe=0):
            matched |= {id(sent.row), id(received.row)}
            found.add(sent, received, LONG_AGO_NS if sent.row.is_buffered else received.posted_ns)
            found.add(received, sent, sent.posted_ns)
        for sent, probe in _matches(rows, windows, clocks, is_probe=1):
            found.add(probe, sent, sent.posted_ns)
        for row in rows:
            if id(row) not in matched and not row.is_probe:
                found.unmatch(row)
    return found


def _matches(
    rows: Sequence[MessageRow], windows: Windows, clocks: Clocks, is_probe: int
) -> Iterator[tuple[Message, Message]]:
    known = [row for row in rows if row.number is not None and row.identity is not None]
    sent = [row for row in known if not row.is_received]
    received = [row for row in known if row.is_received and row.is_probe == is_probe]
    if not sent or not received:
        return iter(())
    pair = (sent[0].sender, sent[0].receiver)
    error = clocks.error(pair, pair, sent[0].start_ns)
    return matches(windows.parts(sent), windows.parts(received), error.distance_ns)


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

    def parts(self, rows: Sequence[MessageRow]) -> list[Part]:
        """The messages of one side, window by window."""
        rank = rows[0].world_rank
        begins, aligned_ns = self.begins.get(rank, [LONG_AGO_NS]), self.alignment.aligned_ns
        messages = [
            Message(present(row.number), row.posted_ns, row.completed_ns, row) for row in rows
        ]
        parts = []
        for window, group in groupby(
            messages, key=lambda message: max(0, bisect_right(begins, message.row.end_ns) - 1)
        ):
            begin_ns, end_ns = (
                (begins[window], self.ends[rank][window]) if rank in self.begins else ALWAYS
            )
            parts.append(Part(aligned_ns(rank, begin_ns), aligned_ns(rank, end_ns), list(group)))
        return parts
