#!/usr/bin/python3
"""Train a linear model as a graph of tasks: rank 0 schedules, the others work, and fetch from each
other what a task needs.

The manner of MPI4Dask: coroutines that send and receive with Isend, Irecv and MPI_Test in a loop.
Exits 1 unless the loss fell.
"""

import argparse
import asyncio
import sys
from typing import Any, Coroutine, Dict, List

import numpy as np
from mpi4py import MPI

from graph import Graph, needs, place, training_graph
from messages import Connection, or_abort

SCHEDULER = 0


class Process:
    """Common part of scheduler and workers: values that are here or will be, and a listener for
    each other rank."""

    def __init__(self) -> None:
        rank, size = MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size
        self.connections = {peer: Connection(peer) for peer in range(size) if peer != rank}
        self.values: Dict[str, "asyncio.Future[np.ndarray]"] = {}
        self.tasks: List["asyncio.Task[None]"] = []

    def value(self, name: str) -> "asyncio.Future[np.ndarray]":
        return self.values.setdefault(name, asyncio.get_running_loop().create_future())

    def begin(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(asyncio.create_task(or_abort(coroutine)))

    async def fetch(self, name: str, owner: int) -> np.ndarray:
        if name not in self.values:
            self.value(name)
            await self.connections[owner].send("get", name)
        return await self.values[name]

    async def listen(self, peer: int) -> None:
        """Until the peer says that nothing more will come: a receive that is never matched would
        outlive MPI."""
        while True:
            (what, *arguments), values = await self.connections[peer].receive()
            if what == "close":
                return
            await getattr(self, "on_" + what)(peer, values, *arguments)

    async def close(self) -> None:
        for connection in self.connections.values():
            await connection.send("close")

    async def live(self, *others: Any) -> None:
        await asyncio.gather(*map(self.listen, self.connections), *others)
        await asyncio.gather(*self.tasks)

    async def on_value(self, peer: int, values: np.ndarray, name: str) -> None:
        self.value(name).set_result(values)


class Scheduler(Process):
    def __init__(self, graph: Graph, wanted: List[str]) -> None:
        super().__init__()
        self.graph, self.wanted = graph, wanted
        self.owner = place(graph, sorted(self.connections))
        self.unfinished = set(graph)
        self.waits_for = {name: set(needs(graph, name)) for name in graph}
        self.needed_by: Dict[str, List[str]] = {name: [] for name in graph}
        for name in graph:
            for needed in needs(graph, name):
                self.needed_by[needed].append(name)
        self.results: List[np.ndarray] = []

    async def assign(self, name: str) -> None:
        owners = {needed: self.owner[needed] for needed in needs(self.graph, name)}
        await self.connections[self.owner[name]].send("run", name, self.graph[name], owners)

    async def on_done(self, worker: int, _: np.ndarray, name: str) -> None:
        for other in self.needed_by[name]:
            self.waits_for[other].remove(name)
            if not self.waits_for[other]:
                await self.assign(other)
        self.unfinished.remove(name)
        if not self.unfinished:
            self.begin(self.finish())

    async def start(self) -> None:
        for name in [name for name, needed in self.waits_for.items() if not needed]:
            await self.assign(name)

    async def finish(self) -> None:
        self.results = [await self.fetch(name, self.owner[name]) for name in self.wanted]
        await self.close()


class Worker(Process):
    async def on_run(
        self, _: int, values: np.ndarray, name: str, task: tuple, owners: Dict[str, int]
    ) -> None:
        self.begin(self.run(name, task, owners))

    async def run(self, name: str, task: tuple, owners: Dict[str, int]) -> None:
        function, *arguments = task
        fetched = {other: await self.fetch(other, owner) for other, owner in owners.items()}
        self.value(name).set_result(
            function(*(fetched.get(argument, argument) for argument in arguments))
        )
        await self.connections[SCHEDULER].send("done", name)

    async def on_get(self, peer: int, _: np.ndarray, name: str) -> None:
        self.begin(self.connections[peer].send("value", name, values=await self.values[name]))

    async def listen(self, peer: int) -> None:
        await super().listen(peer)
        if peer == SCHEDULER:
            await self.close()


def schedule(epochs: int, chunks: int, rows: int, features: int) -> bool:
    """Whether the loss fell."""
    graph = training_graph(epochs, chunks, rows, features)
    scheduler = Scheduler(graph, [f"weights {epoch + 1}" for epoch in range(epochs)])
    asyncio.run(or_abort(scheduler.live(scheduler.start())))
    losses = [result[-1] for result in scheduler.results]
    print(
        f"{len(graph)} tasks on {len(scheduler.connections)} workers: loss {losses[0]:.3f} -> "
        f"{losses[-1]:.3f}",
        flush=True,
    )
    return losses[-1] < losses[0]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--epochs", type=int, default=20, help="default: %(default)s")
    parser.add_argument(
        "--chunks",
        type=int,
        default=12,
        help="of the data, over all workers (default: %(default)s)",
    )
    parser.add_argument("--rows", type=int, default=8192, help="of a chunk (default: %(default)s)")
    parser.add_argument("--features", type=int, default=1023, help="default: %(default)s")
    arguments = parser.parse_args()

    learned = True
    if MPI.COMM_WORLD.rank == SCHEDULER:
        learned = schedule(arguments.epochs, arguments.chunks, arguments.rows, arguments.features)
    else:
        asyncio.run(or_abort(Worker().live()))
    # a rank that leaves without MPI_Finalize may end the job: none leaves before all are done
    MPI.COMM_WORLD.Barrier()
    return 0 if learned else 1


if __name__ == "__main__":
    sys.exit(main())
