"""Fleets: many jobs made up from recorded ones, with planted nodes, users and changes. As files of
ranks in a spool, or as what the reporter makes of these."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
        yield _job(
            templates[number % len(templates)],
            number,
            fleet,
            nodes,
            work,
            wall_ns,
            start_s,
            f"user{user}",
            f"app{program}",
            chance,
            fleet.change if is_after else 1.0,
            is_after,
        )


def _job(
    template: Job,
    number: int,
    fleet: Fleet,
    nodes: Sequence[int],
    work: Sequence[float],
    wall_ns: int,
    start_s: int,
    user: str,
    program: str,
    chance: random.Random,
    factor: float,
    is_after: bool,
) -> Job:
    run = hashed(f"{fleet.seed} {number}")
    sync = [round(max(work) - own + 0.1 * wall_ns) for own in work]
    others = [(sum(sync) - own) / (len(sync) - 1) - own for own in sync]
    ranks = PER_HOST * len(nodes)
    day = _day(start_s)
    row = dict(zip((name for name in TABLES["job"] if name != "part"), template.rows["job"][0]))
    scale = wall_ns * ranks / row["rank_ns"] * math.exp(chance.gauss(0, 0.05))
    in_row, in_bucket = ([n for n in TABLES[t] if n != "part"] for t in ("row", "bucket"))
    calls, total, volume = (in_row.index(key) for key in ("calls", "total_ns", "volume_bytes"))
    rows, buckets = [], []
    for values in template.rows["row"]:
        own = [run, *values[1:]]
        slower = factor if own[in_row.index("family")] == "collective" else 1.0
        own[calls] = max(1, round(own[calls] * scale))
        own[total] = round(own[total] * scale * slower)
        own[volume] = round(own[volume] * scale)
        rows.append(tuple(own))
    for values in template.rows["bucket"]:
        buckets.append((run, *values[1:-1], max(1, round(values[-1] * scale))))
    assert in_bucket[-1] == "calls"
    row.update(
        run=run,
        run_id=str(100_000 + number),
        start_s=start_s,
        day=day,
        user_name=user,
        program=program,
        hosts=len(nodes),
        ranks=ranks,
        ranks_read=ranks,
        wall_ns=wall_ns,
        rank_ns=wall_ns * ranks,
        in_mpi_ns=PER_HOST * sum(sync),
        sync_ns=PER_HOST * sum(sync),
        uneven_ns=PER_HOST * (sum(sync) - min(sync) * len(sync)),
    )
    build = "b2" if is_after else "a1"
    settings = [(run, "env.UCX_TLS", "rc,sm"), (run, "build_id.libmpi.so.40", build)]
    hosts = [
        (
            run,
            f"node{node:03}",
            place,
            PER_HOST,
            wall_ns,
            PER_HOST * sync[place],
            int(sync[place] == min(sync)),
            round(others[place]),
        )
        for place, node in enumerate(nodes)
    ]
    return Job(
        run,
        day[:7],
        {
            "folder": [],
            "setting": settings,
            "bucket": buckets,
            "host": hosts,
            "row": rows,
            "job": [tuple(row.values())],
        },
    )


def _day(start_s: int) -> str:
    import datetime

    return datetime.datetime.fromtimestamp(start_s, datetime.timezone.utc).strftime("%Y-%m-%d")
