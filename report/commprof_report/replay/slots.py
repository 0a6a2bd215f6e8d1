"""The requests of a thread as numbers that are used again, as its calls go by.

A profile does not say which request a Start starts or a Request_free frees. A Start is given one
that was set up for such a message and is not active, one that is set up before the program begins
if there is none; a Request_free the one that was set up last of those that are not active.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush

from .kit import Call


@dataclass
class Persistent:
    """A request that was set up by a call without a peer and tag: those of its first start. None:
    it was never started."""

    request: int
    set_up: Call
    call: Call | None = None
    is_active: bool = False

    @property
    def as_made(self) -> Call:
        return self.call or self.set_up

    def fits(self, call: Call) -> bool:
        return self.call == call if self.call else self.set_up == without_message(call)


def without_message(call: Call) -> Call:
    return call._replace(peer=None, tag=0)


class Slots:
    def __init__(self) -> None:
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

    def set_up(self, call: Call) -> Persistent:
        request = self.take()
        self.persistent[request] = Persistent(request, without_message(call))
        return self.persistent[request]

    def start(self, call: Call) -> int:
        """The request of a message that `call` sets up."""
        found = next(
            (own for own in self.persistent.values() if not own.is_active and own.fits(call)), None
        )
        if not found:
            self.used += 1  # none that was used before: it is set up before all others
            found = self.persistent[self.used - 1] = Persistent(
                self.used - 1, without_message(call)
            )
            self.before.append(found)
        found.call, found.is_active = call, True
        return found.request

    def free_one(self) -> int | None:
        """None: there is none that is not active."""
        idle = [request for request, own in self.persistent.items() if not own.is_active]
        if not idle:
            return None
        del self.persistent[idle[-1]]
        self.give_back(idle[-1])
        return idle[-1]
