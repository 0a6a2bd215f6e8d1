"""Messages between coroutines over MPI, in the manner of MPI4Dask: no call blocks, every request is
polled.

MPI has no event that a coroutine could wait for, so each one that waits asks MPI_Test again
whenever its turn comes. That makes most of the calls of such a program polls that find nothing.
"""

import asyncio
import pickle
import traceback
from typing import Any, Coroutine, Optional, Tuple

import numpy as np
from mpi4py import MPI

Message = Tuple[str, ...]


async def or_abort(coroutine: Coroutine[Any, Any, None]) -> None:
    """An exception ends the job: the other ranks would wait for this one for ever."""
    try:
        await coroutine
    except Exception:
        traceback.print_exc()
        MPI.COMM_WORLD.Abort(1)


async def completed(request: MPI.Request) -> None:
    while not request.Test():
        await asyncio.sleep(0)


class Connection:
    """To one other rank. A message is up to three in MPI: two lengths, what is to be done, and the
    values that go with it."""

    def __init__(self, peer: int) -> None:
        self.peer = peer

    async def send(self, *message: Any, values: Optional[np.ndarray] = None) -> None:
        values = np.empty(0) if values is None else values
        text = np.frombuffer(pickle.dumps((message, values.shape)), np.uint8)
        parts = [np.array([text.nbytes, values.nbytes]), text, values]
        # All are begun before the first is waited for, so that those of another coroutine cannot
        # come between.
        requests = [MPI.COMM_WORLD.Isend(part, dest=self.peer) for part in parts if part.nbytes]
        for request in requests:
            await completed(request)

    async def receive(self) -> Tuple[Message, np.ndarray]:
        lengths = await self.receive_part(2, np.int64)
        text = await self.receive_part(lengths[0], np.uint8)
        values = await self.receive_part(lengths[1] // 8, np.float64) if lengths[1] else np.empty(0)
        message, shape = pickle.loads(text.tobytes())
        return message, values.reshape(shape)

    async def receive_part(self, length: int, of: type) -> np.ndarray:
        part = np.empty(length, of)
        await completed(MPI.COMM_WORLD.Irecv(part, source=self.peer))
        return part
