"""Sides of planted runs, for comparisons: two ranks and three Allreduces a step, differences of
known size, and what was measured."""

from __future__ import annotations

import json
import math
import random
import sqlite3
from itertools import product
from pathlib import Path
from tempfile import mkdtemp

from commprof_report.experiment.plan import folder_of
from planted import SECOND, execute
from planted_job import HostClock, Job

MS, US = 1_000_000, 1_000
BLOCKS = 8
LARGE, SMALL, TINY = 4 << 20, 64 << 10, 8
TRANSFERS = {LARGE: 2 * MS, SMALL: 200 * US, TINY: US}
SKEW_NS = 300 * US


def planted(
    path: Path,
    start_s: float,
    factors: dict[int, float],
    calls: int = 12,
    hosts: int = 1,
    command: str = "lib/app 1",
    slow_steps: int = 0,
    slow_factor: float = 1.0,
) -> Path:
    """A run of two ranks: in each step three Allreduces; to the larger ones rank 1 comes 300 us
    later. Transfers times the size's factor. The first, slow steps last half as long again, and
    their transfers `slow_factor` times as long."""
    clocks = [HostClock(77, wall_ns=round(start_s * SECOND)) for _ in range(hosts)]
    job = Job([clocks[0], clocks[-1]])
    for step in range(calls):
        scale = slow_factor if step < slow_steps else 1.0
        for place, (size, transfer_ns) in enumerate(TRANSFERS.items()):
            come_ns = (step * 3 + place + 1) * 20 * MS + min(step, slow_steps) * 30 * MS
            arrivals = [come_ns, come_ns + (0 if size == TINY else SKEW_NS)]
            spent_ns = round(transfer_ns * factors.get(size, 1.0) * scale)
            job.collective("MPI_Allreduce", arrivals, [spent_ns] * 2, message_bytes=size)
    facts = {"command_line": f"{command} {calls}"}
    facts["mpi_version"] = "Open MPI v4.1.4, package: Debian OpenMPI"
    for rank, (key, value) in product(range(2), facts.items()):
        job.add("fact", world_rank=rank, key=key, value=value)
    return job.write(path)


def sides(
    folder: Path,
    factors: dict[int, float],
    noise: float = 0.01,
    blocks: int = BLOCKS,
    calls: int = 12,
    **of_second,
) -> list[Path]:
    """In turns A B B A ..., one minute apart. All transfers of a run have the same noise."""
    folder.mkdir(exist_ok=True)
    chance, runs = random.Random(1), []
    for block in range(blocks):
        for place, side in enumerate("ab" if block % 2 == 0 else "ba"):
            scale = math.exp(chance.gauss(0, noise))
            changes = factors if side == "b" else {}
            own = {size: scale * changes.get(size, 1.0) for size in TRANSFERS}
            how = {"calls": calls, **(of_second if side == "b" else {})}
            path = folder / f"{side}-{block}.db"
            runs.append(planted(path, 60 * (2 * block + place), own, **how))
    return runs


def words(runs: list[Path]) -> list[object]:
    first, second = ([run for run in runs if run.name[0] == side] for side in "ab")
    return [*first, "--", *second]


def changed(runs: list[Path], statement: str) -> list[Path]:
    """A copy of the runs in which the statement was executed on each run of b."""
    copies = [run.parent / "changed" / run.name for run in runs]
    for run, copy in zip(runs, copies):
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(run.read_bytes())
        if run.name[0] == "b":
            execute(copy, statement)
    return copies


def on_a(runs: list[Path], statement: str) -> list[Path]:
    """The same runs, in which the statement was executed on each run of a."""
    for run in runs:
        if run.name[0] == "a":
            execute(run, statement)
    return runs


def waited(share: float) -> str:
    """Rank 1 waited for a core for this share of the time."""
    return "".join(
        "INSERT INTO cpu_time SELECT world_rank, 0, counted_ns * {0}, 0, counted_ns * {0} * {1} * "
        "(world_rank = 1), 0, 0, 0, 0, 0, 0 FROM rank;".format(at, share)
        for at in (0, 1)
    )


def remove_rank(run: Path, rank: int) -> None:
    """As if the file of this rank had not been there."""
    connection = sqlite3.connect(run)
    of_ranks = (
        "SELECT t.name FROM sqlite_master AS t, pragma_table_info(t.name) AS c "
        "WHERE t.type = 'table' AND c.name = 'world_rank'"
    )
    for (table,) in connection.execute(of_ranks).fetchall():
        connection.execute(f"DELETE FROM {table} WHERE world_rank = ?", (rank,))
    connection.commit()
    connection.close()


def fact(key: str, value: str, rank: int | None = None) -> str:
    ranks = "" if rank is None else f" WHERE world_rank = {rank}"
    return f"INSERT OR REPLACE INTO fact SELECT world_rank, '{key}', '{value}' FROM rank{ranks};"


def measured(
    runs: list[Path], factor, hosts: tuple[str, ...] = ("node00",), noise: float = 0.003
) -> list[Path]:
    """The same runs, before which the hosts were measured: factor(run, host, measure) times what a
    healthy host takes."""
    chance = random.Random(5)
    folder = Path(mkdtemp(dir=runs[0].parent))
    copies = [folder / run.name for run in runs]
    for run, copy in zip(runs, copies):
        copy.write_bytes(run.read_bytes())
        folder_of(copy).mkdir()
        for host in hosts:
            healthy = {"arithmetic_ns": 1_000_000, "memory_ns": 4_000_000}
            values = {
                name: round(ns * factor(run.name, host, name) * math.exp(chance.gauss(0, noise)))
                for name, ns in healthy.items()
            }
            (folder_of(copy) / host).write_text(json.dumps(values))
    return copies


def experiment(folder: Path, runs: list[Path]) -> Path:
    arms = [{"name": side, "command": f"mpirun {side}"} for side in "ab"]
    plan = {"format": "commprof-experiment", "version": 1, "arms": arms}
    (folder / "experiment.json").write_text(json.dumps(plan))
    with open(folder / "runs.jsonl", "w") as lines:
        for run in runs:
            done = {"block": int(run.stem[2:]) + 1, "arm": run.name[0], "status": "ok"}
            print(json.dumps({**done, "folder": str(run.relative_to(folder))}), file=lines)
    return folder
