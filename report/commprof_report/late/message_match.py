"""Which send and which receive are one message: on one communicator, from one rank to another, with
one tag.

MPI matches such messages in the order in which they are posted, so the n-th sent is the n-th
received. Their numbers start again after 65,535. In the order of time, in which both sides' numbers
differ by less than half of that, they are counted on. There may be more messages than that between
two windows in which messages are sampled. So only windows that overlap in time are compared.

    sampled on the sender     |65533 65534 65535 1 2|                |9 10 11|
    sampled on the receiver     |65534 65535 1 2 3|                    |10 11 12|
"""

from __future__ import annotations

from ..base.arrays import np
from ..base.columns import NONE, Columns, Flags, Floats, Groups, Ints, numbered, pairs
from ..base.thresholds import whole

NUMBERS = 65_535
HALF = NUMBERS // 2
SLACK_NS = whole("late.contradiction")


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
    gone_ns = sides.gone_ns[receive]
    is_wrong = (gone_ns != NONE) & (gone_ns + error_ns + SLACK_NS < sides.posted_ns[send])
    windows = numbered(
        sides.channel[send], sides.since_ns[send], sides.since_ns[receive], sides.is_probe[receive]
    )
    return np.bincount(windows, is_wrong)[windows] == 0
