"""The memory of a thread's buffers in a replay: buffers that overlapped in the job do so again, in
the same way; the others stand one behind the other, as far from the begin of a page as in the
job."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from .kit import Call, Kit, stem

PAGE = 4096
NO_BUFFERS = (None, None)


class Memory:
    def __init__(self, buffers: Sequence[tuple[int, int]]) -> None:
        """`buffers`: address and bytes, in the order of their use."""
        self.begins: list[int] = []  # of what buffers cover together, in the order of addresses
        end = -1
        for address, size in sorted(set(buffers)):
            if address > end:
                self.begins.append(address)
            end = max(end, address + size)
        self.shifts = self._places(buffers)

    def _places(self, buffers: Sequence[tuple[int, int]]) -> dict[int, int]:
        """How far each part moves: the first that is used comes first."""
        ends: dict[int, int] = {}
        for address, size in buffers:
            begin = self._begin(address)
            ends[begin] = max(ends.get(begin, 0), address + size)
        shifts, free = {}, 0
        for begin, end in ends.items():
            place = -(-free // PAGE) * PAGE + begin % PAGE
            shifts[begin], free = place - begin, place + end - begin
        return shifts

    def _begin(self, address: int) -> int:
        return self.begins[bisect_right(self.begins, address) - 1]

    def at(self, address: int) -> int:
        return address + self.shifts[self._begin(address)]

    def placed(self, call: Call, buffers: tuple[int | None, int | None]) -> Call:
        """The call with its buffers, which have these addresses."""
        if buffers == NO_BUFFERS:
            return call
        buffer_at, received_at = (None if at is None else self.at(at) for at in buffers)
        return call._replace(buffer_at=buffer_at, received_at=received_at)


def spans(kit: Kit, vectors: Sequence[Sequence[int]], call: Call) -> tuple[int, int]:
    """Bytes from the begin of what a call sends, and of what it receives, to their ends at most."""
    size = len(kit.comms[call.comm or 0].members) or 1
    name = stem(call.name)

    def span(elements: int, of: int | None) -> int:
        type_ = kit.types[of] if of is not None else None
        return elements * abs(type_.extent) + type_.bytes if type_ else elements

    def counted(vector: int | None) -> int:
        return span(sum(vectors[vector]), call.type) if vector is not None else 0

    own, elements = span(call.count or 0, call.type), call.count or 0
    of_all = span(size * elements, call.type)
    sent = of_all if name in ("scatter", "alltoall", "reduce_scatter_block") else own
    received = of_all if name in ("gather", "allgather", "alltoall") else own
    if name in ("gatherv", "allgatherv"):
        return own, counted(call.vector)
    if name in ("scatterv", "reduce_scatter"):
        return counted(call.vector), own
    if call.received_vector is not None:
        return counted(call.vector), counted(call.received_vector)
    if call.received_count is not None:
        return own, span(call.received_count, call.received_type)
    return sent, received
