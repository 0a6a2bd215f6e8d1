"""The requests of a thread as numbers that are used again, as its calls go by.

A profile does not say which request a Start starts or a Request_free frees. A Start is given one
that was set up for such a message and is not active, one that is set up before the program begins
if there is none; a Request_free the one that was set up last of those that are not active. Which
persistent collective a Start starts is recorded. None that is started again is freed, because all
ranks must set up the same ones.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from heapq import heappop, heappush

from .kit import Call

Operation = tuple[int, int]  # communicator, and which persistent collective of it


@dataclass
class Persistent:
    """A request. `call` has the peer and tag of its first start, which those that set it up may not
    have recorded; None: it was never started."""

    request: int
    set_up: Call
    call: Call | None = None
    is_active: bool = False
    operation: Operation | None = None  # a collective

    @property
    def as_made(self) -> Call:
        if not self.call:
            return self.set_up
        return self.call._replace(
            buffer_at=self.set_up.buffer_at, received_at=self.set_up.received_at
        )

    def fits(self, call: Call, operation: Operation | None) -> bool:
        if operation or self.operation:
            return self.operation == operation
        if self.call:
            return self.call == call
        return without_message(self.set_up) == without_message(call)


def without_message(call: Call) -> Call:
    return call._replace(peer=None, tag=0, buffer_at=None, received_at=None)


class Slots:
    def __init__(self, starts: Counter[Operation]) -> None:
        self.starts = starts  # to come, of each collective
        self.free: list[int] = []
        self.used = 0
        self.persistent: dict[int, Persistent] = {}
        self.before: list[Persistent] = []  # set up before the program begins

    def take(self) -> int:
        if self.free:
            return heappop(self.free)
        self.used += 1
        return self.used - 1

    def give_back(self, request: int) -> None:
        heappush(self.free, request)

    def complete(self, request: int) -> None:
        if request in self.persistent:
            self.persistent[request].is_active = False
        else:
            self.give_back(request)

    def set_up(self, call: Call, operation: Operation | None) -> Persistent:
        request = self.take()
        self.persistent[request] = Persistent(request, call, operation=operation)
        return self.persistent[request]

    def start(self, call: Call, operation: Operation | None) -> int:
        """The request of an operation that `call` sets up."""
        idle = (own for own in self.persistent.values() if not own.is_active)
        found = next((own for own in idle if own.fits(call, operation)), None)
        if not found:
            self.used += 1  # a number that was not used before: it is set up before all others
            found = self.persistent[self.used - 1] = Persistent(
                self.used - 1, call, operation=operation
            )
            self.before.append(found)
        if operation:
            self.starts[operation] -= 1
        found.call, found.is_active = call, True
        return found.request

    def free_one(self) -> int | None:
        """None: there is none that is not active."""
        idle = [
            request for request, own in self.persistent.items()
            if not own.is_active and not (own.operation and self.starts[own.operation])
        ]
        if not idle:
            return None
        del self.persistent[idle[-1]]
        self.give_back(idle[-1])
        return idle[-1]

    def set_up_before(self) -> list[Persistent]:
        """In their order: of collectives it is the same on all ranks."""
        return sorted(self.before, key=lambda own: own.operation or (-1, 0))
