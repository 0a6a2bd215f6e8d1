"""Which send and which receive are one message: on one communicator, from one rank to another, with
one tag.

MPI matches such messages in the order in which they are posted, so the n-th sent is the n-th
received. Their numbers start again after 65,535, and there may be more messages than that between
two windows in which messages are sampled. So only windows that overlap in time are compared: near
each other in time, both sides' numbers differ by less than half of 65,535.

    sampled on the sender     |65533 65534 65535 1 2|                |9 10 11|
    sampled on the receiver     |65534 65535 1 2 3|                    |10 11 12|
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from ..base.thresholds import whole

NUMBERS = 65_535
SLACK_NS = whole("late.contradiction")


class Message(NamedTuple):
    """One side of a message. Times are on the axis of the run."""

    number: int
    posted_ns: int
    gone_ns: int | None  # the operation was complete; None: not seen
    row: Any  # what the caller knows of it


class Part:
    """Messages of one side, all whose posting call returned in a window. There is at least one."""

    def __init__(self, begin_ns: int, end_ns: int, messages: Sequence[Message]) -> None:
        """`messages`: in the order of posting."""
        self.begin_ns, self.end_ns = begin_ns, end_ns
        # threads that post at once may have got their numbers the other way round
        counted = sorted(_counted(messages), key=itemgetter(0))
        self.places = [place for place, _ in counted]  # numbers, counted on beyond NUMBERS
        self.messages = [message for _, message in counted]
        self.posted_ns = [message.posted_ns for message in self.messages]

    def first_from(self, time_ns: int) -> int:
        """Index of the first message that was posted then or later, else of the last."""
        return min(bisect_left(self.posted_ns, time_ns), len(self.messages) - 1)


Match = tuple[Message, Message]  # sent, received


def matches(sent: Sequence[Part], received: Sequence[Part], error_ns: float) -> Iterator[Match]:
    """Parts in order of time; error_ns: by how much the two sides' clocks may differ. If a receive
    would have been completed before its send was posted, numbers are wrong, and nothing in these
    windows matches."""
    one = other = 0
    while one < len(sent) and other < len(received):
        if (
            sent[one].begin_ns < received[other].end_ns
            and received[other].begin_ns < sent[one].end_ns
        ):
            found = list(_match(sent[one], received[other]))
            if not any(_is_impossible(*match, error_ns + SLACK_NS) for match in found):
                yield from found
        if sent[one].end_ns < received[other].end_ns:
            one += 1
        else:
            other += 1


def _is_impossible(send: Message, receive: Message, error_ns: float) -> bool:
    return receive.gone_ns is not None and receive.gone_ns + error_ns < send.posted_ns


def _match(sent: Part, received: Part) -> Iterator[Match]:
    begin_ns = max(sent.begin_ns, received.begin_ns)
    near, far = sent.first_from(begin_ns), received.first_from(begin_ns)
    apart = _distance(sent.messages[near].number, received.messages[far].number)
    # from the receiver's places to the sender's
    shift = sent.places[near] + apart - received.places[far]
    one = bisect_left(sent.places, received.places[0] + shift)
    other = bisect_left(received.places, sent.places[0] - shift)
    while one < len(sent.places) and other < len(received.places):
        ahead = received.places[other] + shift - sent.places[one]
        if ahead == 0:
            yield sent.messages[one], received.messages[other]
        one += ahead >= 0
        other += ahead <= 0


def _counted(messages: Sequence[Message]) -> Iterator[tuple[int, Message]]:
    place = messages[0].number
    for message in messages:
        place += _distance(place, message.number)
        yield place, message


def _distance(number: int, other: int) -> int:
    """From one number to another, whichever way is shorter."""
    half = NUMBERS // 2
    return (other - number + half) % NUMBERS - half
