"""Fleets: many jobs made up from recorded ones, with planted nodes, users and changes. As files of
ranks in a spool, or as what the reporter makes of these."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from commprof_report.fleet.job import SECOND_NS, Job, hashed, job_read
from commprof_report.fleet.store import TABLES
from commprof_report.run.rank_files import folder_scan

FIRST_S = 1_793_491_200  # 2026-11-01
DAY_S = 86_400
PER_HOST = 4


@dataclass
class Fleet:
    """Plants of a fleet. slow_node works 5 % longer; own_node: there, one user's jobs alone do;
    change_day: from then on, the calls of one program take `change` times as long."""

    jobs: int = 2000
    days: int = 30
    nodes: int = 64
    users: int = 12
    programs: int = 8
    seed: int = 1
    slow_node: int | None = None
    own_node: int | None = None
    slow: float = 0.05
    change_day: int | None = None
    change: float = 1.3
    noise: float = 0.02


def template_of(folder: Path) -> Job:
    return job_read(folder_scan(folder).files)


def jobs_of(fleet: Fleet, templates: Sequence[Job]) -> Iterator[Job]:
    """Nodes of a job are in the order of their names, as schedulers give them; in a third of the
    programs the first rank has more work."""
    chance = random.Random(fleet.seed)
    for number in range(fleet.jobs):
        user, program = chance.randrange(fleet.users), chance.randrange(fleet.programs)
        nodes = sorted(chance.sample(range(fleet.nodes), 2 << program % 3))
        wall_ns = round(SECOND_NS * math.exp(chance.gauss(7, 0.6)))
        day = chance.randrange(fleet.days)
        start_s = FIRST_S + day * DAY_S + chance.randrange(DAY_S)
        work = [
            0.7
            * wall_ns
            * (1 + chance.gauss(0, fleet.noise))
            * (1 + 0.04 * (place == 0 and program % 3 == 0))
            * (1 + fleet.slow * (node == fleet.slow_node))
            * (1 + fleet.slow * (node == fleet.own_node and user == 3))
            for place, node in enumerate(nodes)
        ]
        is_after = fleet.change_day is not None and day >= fleet.change_day and program == 1
        own = {"run": hashed(f"{fleet.seed} {number}"), "run_id": str(100_000 + number)}
        own |= {"start_s": start_s, "day": _day(start_s), "wall_ns": wall_ns}
        own |= {"user_name": f"user{user}", "program": f"app{program}", "hosts": len(nodes)}
        template, change = templates[number % len(templates)], fleet.change if is_after else 1.0
        yield _job(template, own, nodes, work, chance, change, is_after)


def _job(
    template: Job,
    own: dict,
    nodes: Sequence[int],
    work: Sequence[float],
    chance: random.Random,
    change: float,
    is_after: bool,
) -> Job:
    """own: columns of its row. change: of the time of its collectives."""
    run, wall_ns, ranks = own["run"], own["wall_ns"], PER_HOST * len(nodes)
    sync = [round(max(work) - each + 0.1 * wall_ns) for each in work]
    others = [(sum(sync) - each) / (len(sync) - 1) - each for each in sync]
    row = dict(zip(_columns("job"), template.rows["job"][0]))
    scale = wall_ns * ranks / row["rank_ns"] * math.exp(chance.gauss(0, 0.05))
    rows = []
    for values in template.rows["row"]:
        cell = dict(zip(_columns("row"), values), run=run)
        slower = change if cell["family"] == "collective" else 1.0
        cell["calls"] = max(1, round(cell["calls"] * scale))
        cell["total_ns"] = round(cell["total_ns"] * scale * slower)
        cell["volume_bytes"] = round(cell["volume_bytes"] * scale)
        rows.append(tuple(cell.values()))
    assert _columns("bucket")[-1] == "calls"
    buckets = [
        (run, *values[1:-1], max(1, round(values[-1] * scale)))
        for values in template.rows["bucket"]
    ]
    row |= {**own, "ranks": ranks, "ranks_read": ranks, "rank_ns": wall_ns * ranks}
    row["in_mpi_ns"] = row["sync_ns"] = PER_HOST * sum(sync)
    row["uneven_ns"] = PER_HOST * (sum(sync) - min(sync) * len(sync))
    build = "b2" if is_after else "a1"
    settings = [(run, "env.UCX_TLS", "rc,sm"), (run, "build_id.libmpi.so.40", build)]
    hosts = [
        (run, f"node{node:03}", place, PER_HOST, wall_ns, PER_HOST * waits)
        + (int(waits == min(sync)), round(more))
        for place, (node, waits, more) in enumerate(zip(nodes, sync, others))
    ]
    tables = {"folder": [], "setting": settings, "bucket": buckets, "host": hosts, "row": rows}
    return Job(run, own["day"][:7], {**tables, "job": [tuple(row.values())]})


def _columns(table: str) -> list[str]:
    return [name for name in TABLES[table] if name != "part"]


def _day(start_s: int) -> str:
    return datetime.fromtimestamp(start_s, timezone.utc).strftime("%Y-%m-%d")
