"""Messages as arrivals: a receive, or a blocking probe, depends on the time at which its send was
posted, a send on the time at which its receive was posted.

A send that returned, or was completed, before its receive was posted was buffered: it has not
waited for the receiver.
"""

from __future__ import annotations

from sqlite3 import Connection
from typing import NamedTuple

from ..base import query
from ..base.arrays import np
from ..base.columns import NONE, Columns, Ints, Texts, by_rank, numbered, read
from ..run.alignment import Alignment
from ..run.holes import FAR_NS, without_holes
from .clocks import Clocks
from .message_match import are_possible, matches
from .samples import are_chosen
from .waits import Arrivals

SQL = query.beside(__file__)

LONG_AGO_NS = -(1 << 62)


class Left(NamedTuple):
    """How many operations that the user chose were not split; columns.py has their meaning."""

    unsure: int
    uncompleted: int
    unmatched: int
    unnumbered: int


def messages(
    connection: Connection, alignment: Alignment, clocks: Clocks, sides: Columns, texts: Texts
) -> tuple[Arrivals, Left]:
    """sides: reading.py."""
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
            posted_ns=posted_ns, gone_ns=gone_ns, since_ns=since_ns, until_ns=until_ns,
        ),
        rank, clocks, texts,
    )
    own = np.flatnonzero(~sides.is_probe | (other >= 0))
    sides, other = sides.take(own), other[own]
    is_matched, is_gone, peer = other >= 0, sides.gone_ns != NONE, rank[other]
    is_sure, _ = clocks.tell(
        sides.identity, sides.call, rank[own], np.where(is_matched, peer, rank[own]),
        sides.start_ns, texts,
    )
    is_known, peer_ns = is_matched & is_sure, posted_ns[other]
    is_early = ~sides.is_received & (sides.is_buffered | (peer_ns >= gone_ns[own]))
    state = np.where(sides.is_received, *map(texts.number, ("late sender", "late receiver")))
    nothing = np.full(len(own), NONE)

    def if_known(values: Ints) -> Ints:
        return np.where(is_known, values, NONE)

    arrivals = Arrivals(
        rank[own],
        sides.gone_ns,
        if_known(sides.identity),
        nothing,
        if_known(sides.call),
        if_known(sides.bytes),
        if_known(state),
        np.where(is_known & ~is_early, peer_ns, LONG_AGO_NS),
        np.full(len(own), LONG_AGO_NS),
        np.where(is_known, peer, 0),
        np.zeros(len(own), bool),
        if_known(peer_ns),
        if_known(gone_ns[other]),
        is_known,
    )
    is_chosen = are_chosen(connection, texts, call=sides.call, identity=sides.identity)
    is_unmatched = is_chosen & ~is_matched
    left = (
        is_chosen & is_matched & is_gone & ~is_sure, is_chosen & is_matched & ~is_gone,
        is_unmatched, is_unmatched & sides.is_received & (sides.number == NONE),
    )
    return arrivals.take(is_gone), Left(*(int(flags.sum()) for flags in left))


def _other_sides(sides: Columns, rank: Ints, clocks: Clocks, texts: Texts) -> Ints:
    """For each side, and each probe, the row of the other side; -1: it is not known."""
    send, receive = matches(sides)
    of = sides.take(receive)
    _, error_ns = clocks.tell(of.identity, of.call, rank[receive], rank[send], of.start_ns, texts)
    is_possible = are_possible(sides, send, receive, error_ns)
    send, receive = send[is_possible], receive[is_possible]
    other = np.full(len(sides), -1)
    other[receive] = send
    is_message = ~sides.is_probe[receive]
    other[send[is_message]] = receive[is_message]
    return other


def _windows(
    connection: Connection, alignment: Alignment, rank: Ints, ended_ns: Ints, texts: Texts
) -> tuple[Ints, Ints]:
    """Begin and end of the time around each side in which its rank's messages were sampled: always,
    if the run does not say it. ended_ns: when the call that posted it returned."""
    known = read(Columns, SQL.run(connection, "sampled_windows"), texts)
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
