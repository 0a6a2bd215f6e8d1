"""Random but well-formed runs: loops of loops of calls on some ranks, and all a run may lack."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path
from typing import Callable

from planted_job import Group, HostClock, Program

OWN_SIZE = ("MPI_Alltoallv", "MPI_Allgatherv")  # differs from rank to rank, and call to call
COLLECTIVES = (
    *OWN_SIZE,
    *OWN_SIZE,
    "MPI_Allreduce",
    "MPI_Allreduce",
    "MPI_Bcast",
    "MPI_Reduce",
    "MPI_Barrier",
    "MPI_Iallreduce",
    "MPI_Ibcast",
)
ROOTED = ("MPI_Bcast", "MPI_Ibcast", "MPI_Reduce")
SIZES = (0, 8, 8, 4_096, 65_536, 1 << 20, 30_000_000)
PAUSES_NS = (0, 0, 300, 20_000, 1_000_000, 40_000_000)
CALLS = (0, 1, 4, 30, 150, 150, 400)
Run = Callable[[], None]


class RandomRun:
    """chance: decides everything."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        clocks = [HostClock(chance.choice((0, 77, 5_000_000))) for _ in range(2)]
        ranks, several = chance.choice((1, 2, 2, 3, 6)), chance.random() < 0.2
        self.program = Program(ranks, [clocks[rank % (1 + several)] for rank in range(ranks)])
        self.job, self.ranks = self.program.job, ranks
        self.missing = chance.choice((0, 0, 0.02))  # the share of calls without a sample
        self.slow, self.left = chance.randrange(ranks), chance.choice(CALLS)
        self.groups = [self.job.world]
        for members in (range(1), range(ranks - ranks % 2), range(0, ranks, 2)):
            if members and chance.random() < 0.3:
                self.groups.append(self.job.group(members))
        if chance.random() < 0.2:
            self.job.world.thread = 1
        if chance.random() < 0.1:
            self.groups.append(self.job.group(range(ranks), library="nccl"))

    def written(self, path: Path) -> Path:
        loop = self._loop(3)
        while self.left > 0:
            for call in loop:
                call()
        job = self.program.end()
        for change in (self._threads, self._marks, self._polls, self._holes, self._ends):
            change()
        return job.write(path)

    def _loop(self, depth: int) -> list[Run]:
        """Calls, and loops of calls whose number of iterations may differ each time."""
        body: list[Run] = []
        for _ in range(self.chance.randint(1, 3)):
            if depth and self.chance.random() < 0.3:
                inner, least = self._loop(depth - 1), self.chance.randint(1, 4)
                most = least + self.chance.choice((0, 0, 2))
                body.append(
                    lambda inner=inner, least=least, most=most: [
                        call() for _ in range(self.chance.randint(least, most)) for call in inner
                    ]
                )
            else:
                body.append(partial(self._counted, self._call()))
        return body

    def _counted(self, call: Run) -> None:
        if self.left > 0:
            call()
        self.left -= 1

    def _call(self) -> Run:
        kind, size = self.chance.randrange(8), self.chance.choice(SIZES)
        if kind < 5:
            group = self.chance.choice(self.groups)
            call = "ncclAllReduce" if group.library == "nccl" else self.chance.choice(COLLECTIVES)
            return partial(self._collective, call, group, size, self.chance.choice(PAUSES_NS))
        if kind == 5:
            return partial(self._file, self.chance.choice(PAUSES_NS))
        return partial(self._message, kind == 6)

    def _compute(self, pause_ns: int) -> None:
        for rank in range(self.ranks):
            self.program.compute(rank, self.chance.choice((1, 1, 1, 3)) * pause_ns)
        self.program.compute(self.slow, pause_ns)

    def _collective(self, call: str, group: Group, size: int, pause_ns: int) -> None:
        self._compute(pause_ns)
        if call in OWN_SIZE:
            size = self.chance.choice((8, 8, size))
        self.program.collective(
            call,
            group,
            10_000 if group.library == "nccl" else self.chance.choice((0, 10_000)),
            root=0 if call in ROOTED else None,
            message_bytes=size,
            is_sampled=self.chance.random() >= self.missing,
        )

    def _file(self, pause_ns: int) -> None:
        rank = self.chance.randrange(self.ranks)
        begin_ns = self.program.now_ns[rank]
        self.program.compute(rank, pause_ns)
        self.job.call("MPI_File_write_at", begin_ns, begin_ns + pause_ns, rank)

    def _message(self, is_eager: bool) -> None:
        if self.ranks > 1:
            sender, receiver = self.chance.sample(range(self.ranks), 2)
            if is_eager:
                self.program.send(sender, receiver)
                self.program.receive(receiver, sender)
            else:
                self.program.meet(sender, receiver)

    # Changes of the rows.

    def _rows(self, table: str) -> list[dict]:
        return self.job.rows.get(table, [])

    def _threads(self) -> None:
        for rank in range(self.ranks):
            self.job.thread(rank, 1)
            if self.job.world.thread:
                self.job.thread(rank, 0, 1)

    def _marks(self) -> None:
        """Steps that the program has marked, and a region that it visits."""
        number, is_region = self.chance.choice((0, 0, 1, 3, 40)), self.chance.random() < 0.5
        for rank in range(self.ranks):
            every_ns = self.job.wall_ns // (number + 1)
            for step in range(1, number + 1):
                span = {"begin_ns": step * every_ns, "end_ns": (step + 1) * every_ns, "thread": 0}
                self.job.add("step", world_rank=rank, step=step, **span)
                if is_region:
                    span["end_ns"] -= self.chance.choice((0, every_ns, every_ns // 2))
                    self.job.add("region_span", world_rank=rank, region=1, **span)
            if is_region:
                self.job.add("region", world_rank=rank, region=1, name="wait for data")

    def _polls(self) -> None:
        """Before some calls."""
        share = self.chance.choice((0, 0, 0.3, 1))
        before_ns: dict[tuple, int] = {}
        for row in self._rows("sample"):
            thread = row["world_rank"], row["thread"]
            gap_ns = row["start_ns"] - before_ns.get(thread, row["start_ns"])
            if gap_ns > 0 and self.chance.random() < share:
                row["polled_since_ns"] = row["start_ns"] - gap_ns
                row["polled_ns"] = self.chance.randint(0, gap_ns)
            before_ns[thread] = max(row["end_ns"], before_ns.get(thread, 0))

    def _holes(self) -> None:
        """Times without samples; or none at all."""
        number = self.chance.choice((0, 0, 0, 1, 4))
        if number:
            every_ns = max(1, self.job.wall_ns // (2 * number))
            seen = [(2 * hole * every_ns, (2 * hole + 1) * every_ns) for hole in range(number)]
            for rank in range(self.ranks):
                for begin_ns, end_ns in seen:
                    self.job.window(rank, begin_ns, end_ns)
            self.job.rows["sample"] = [
                row
                for row in self._rows("sample")
                if any(begin_ns <= row["end_ns"] <= end_ns for begin_ns, end_ns in seen)
            ]
        elif self.chance.random() < 0.1:
            self.job.rows["sample"] = []

    def _ends(self) -> None:
        """A rank may be killed, another is not there."""
        ends = self.chance.choice(("finalize", "finalize", "exit", "abort", "running"))
        self._rows("rank")[-1].update(ended=ends)
        if self.ranks > 1 and self.chance.random() < 0.15:
            for table, rows in self.job.rows.items():
                self.job.rows[table] = [row for row in rows if row["world_rank"] != 0]
            self.job.missing = [0]
            self.job.made = [call for call in self.job.made if call["world_rank"] != 0]
