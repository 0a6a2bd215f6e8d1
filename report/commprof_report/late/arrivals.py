"""What calls wait for: the ranks on which the operations that they complete depend, and when each of these arrived.

A call may complete several operations: requests of collectives and messages, both messages of a Sendrecv. The operation that is ready last
decides when it can return. A call of which any operation's arrival is not known is not split.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from sqlite3 import Connection
from typing import NamedTuple, Optional

from ..base import query
from ..run.alignment import Alignment, storable

SQL = query.beside(__file__)

LONG_AGO_NS = -(1 << 62)


class Share(NamedTuple):
    """How long a rank waited, for which rank, and how much of that is due to that rank alone."""

    wait_ns: int
    alone_ns: int
    last_rank: int | None


NO_SHARE = Share(0, 0, None)


def share(start: int, duration: int, last: int, before_last: int, last_rank: int) -> Share:
    wait_ns = min(max(last - start, 0), duration)
    without_ns = min(max(min(before_last, last) - start, 0), duration)
    return Share(wait_ns, wait_ns - without_ns, last_rank)


def waited(found: Share) -> Share:
    return found if found.wait_ns else NO_SHARE


class Operation(NamedTuple):
    """sequence: of a collective; None: a message."""

    identity: str
    sequence: int | None
    call: str
    bytes: int | None
    wait_state: str


class Arrival(NamedTuple):
    """What the completion of an operation on one rank depends on, as aligned timestamps."""

    operation: Operation
    last_ns: int
    without_ns: int  # the last arrival of any other rank than last_rank
    last_rank: int
    is_last: bool  # of a collective in which all wait for all: the rank itself started last
    peer_ns: int | None = None  # of a message: when last_rank posted its side, waited for or not


class CompletionRow(NamedTuple):
    """A call that completes operations; completions.sql."""

    world_rank: int
    completion: str | None
    region: str
    start_ns: int
    end_ns: int


IsChosen = Callable[[str, Optional[str]], bool]


def chosen(connection: Connection) -> IsChosen:
    """Whether the user chose a call on a communicator (None: not known)."""
    calls = {call for (call,) in connection.execute("SELECT call FROM selected_call")}
    identities = {identity for (identity,) in connection.execute("SELECT identity FROM selected_communicator")}
    return lambda call, identity: call in calls and (identity is None or identity in identities)


class Completions:
    """The arrivals that calls depend on, by rank and return of the call."""

    def __init__(self) -> None:
        self.arrivals: dict[tuple[int, int], list[Arrival | None]] = {}

    def add(self, world_rank: int, end_ns: int, arrival: Arrival | None) -> None:
        """None: an operation of which the arrival is not known."""
        self.arrivals.setdefault((world_rank, end_ns), []).append(arrival)

    def rows(self, connection: Connection, alignment: Alignment) -> Iterator[tuple]:
        """Rows of late_call."""
        numbers = count(-1, -1)
        for call in map(CompletionRow._make, SQL.run(connection, "completions")):
            arrivals = self.arrivals.pop((call.world_rank, call.end_ns), None)
            if arrivals and None not in arrivals:
                yield _row(call, alignment.aligned_ns(call.world_rank, call.start_ns), arrivals, numbers)

    def left(self, is_chosen: IsChosen) -> int:
        """After rows(): the number of operations' completions whose calls are not sampled."""
        return sum(any(one is None or is_chosen(one.operation.call, one.operation.identity) for one in own) for own in self.arrivals.values())


def _row(call: CompletionRow, start_ns: int, arrivals: Sequence[Arrival], numbers: Iterator[int]) -> tuple:
    duration_ns = call.end_ns - call.start_ns
    ready = max(arrivals, key=lambda arrival: arrival.last_ns)
    others = [arrival.last_ns if arrival.last_rank != ready.last_rank else arrival.without_ns for arrival in arrivals]
    wait_ns, alone_ns, last_rank = waited(share(start_ns, duration_ns, ready.last_ns, max(others), ready.last_rank))
    identity, sequence, name, message_bytes, wait_state = ready.operation
    start_ns = storable(start_ns)
    what = (identity, next(numbers) if sequence is None else sequence, call.world_rank, name, message_bytes, call.region)
    waiting = (wait_ns, duration_ns - wait_ns, alone_ns, last_rank, ready.is_last, 0)
    peer = None if ready.peer_ns is None else ready.last_rank
    return (*what, start_ns, start_ns + duration_ns, *waiting, call.completion, wait_state if wait_ns else None, peer, ready.peer_ns)
