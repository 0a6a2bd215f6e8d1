"""Training runs with planted faults (train.py), and what the reports must say of them by the ranks'
own logs."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from common import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "tests"))
from mpi.reporter import rows
from truth.ranks import expanded
from truth.trial import CLOSE, CONFIRMED, HOLDS

# Evidence that a rank's own work is done, without marks and regions. Horovod agrees on what to send
# first, so its ranks arrive together.
SHOWN_BY = {"ddp": "arrival", "horovod": ""}


class Plant(NamedTuple):
    """A run. The options of train.py say what is planted, and the logs repeat it."""

    name: str
    place: str  # of training_suite.PLACES
    options: str
    ranks: int = 2
    environment: dict[str, str] = {}


UNFUSED = {"HOROVOD_FUSION_THRESHOLD": "0", "HOROVOD_CYCLE_TIME": "1"}
FUSED = {"HOROVOD_CYCLE_TIME": "1"}
LONG_CYCLE = {"HOROVOD_CYCLE_TIME": "10"}
UP_TO_1_MIB = {"HOROVOD_FUSION_THRESHOLD": str(1 << 20), "HOROVOD_CYCLE_TIME": "1"}


def horovod(name: str, options: str, environment: dict[str, str], ranks: int = 2) -> Plant:
    return Plant(f"Horovod, openmpi, {name}", "openmpi", f"horovod {options}", ranks, environment)


def mpich(name: str, options: str, environment: dict[str, str]) -> Plant:
    return Plant(f"Horovod, mpich, {name}", "mpich", f"horovod {options}", 2, environment)


def ddp(name: str, options: str, ranks: int = 2) -> Plant:
    return Plant(f"DistributedDataParallel, {name}", "ddp", f"ddp {options}", ranks)


PLANTS = (
    horovod("161 tensors, not fused", "100 --evaluate 10", UNFUSED),
    horovod("161 tensors, fused", "200", FUSED),
    horovod("161 tensors, long cycle", "60", LONG_CYCLE),
    horovod("161 tensors, fused up to 1 MiB", "60 --evaluate 10", UP_TO_1_MIB),
    horovod("accumulation", "60 --accumulate 3", FUSED),
    horovod("slow rank, nothing marked", "100 --slow 1", FUSED),
    horovod("slow rank, marks", "100 --slow 1 --mark", FUSED),
    horovod("slow rank, region", "100 --slow 1 --region", FUSED),
    horovod("twin, marks", "100 --mark", FUSED),
    horovod("twin, region", "100 --region", FUSED),
    horovod("4 ranks", "60", FUSED, 4),
    horovod("slow rank of 4, region", "60 --slow 2 --slow-ms 150 --region", FUSED, 4),
    mpich("161 tensors, not fused", "40", UNFUSED),
    mpich("twin, region", "40 --region", FUSED),
    mpich("slow rank, region", "40 --slow 1 --slow-ms 200 --region", FUSED),
    ddp("twin", "100"),
    ddp("slow rank", "100 --slow 1"),
    ddp("slow rank, buffers", "100 --slow 1 --broadcast-buffers"),
    ddp("accumulation", "60 --accumulate 4"),
    ddp("slow rank of 4", "60 --slow 2 --slow-ms 150", 4),
)


class Truth(NamedTuple):
    """From the logs alone. In each step a rank's main thread begins to wait for its gradients; the
    rank that begins last causes the waiting of the others until then."""

    options: dict
    steps: int
    gradient_bytes: int
    cost_ns: Counter[int]
    in_wait_ns: list[int]  # by rank

    def is_for(self, rank: int) -> float:
        """The share of all waiting that has this rank as its cause."""
        return self.cost_ns[rank] / (self.cost_ns.total() or 1)

    @property
    def shown_by(self) -> str:
        how = "mark" if self.options["mark"] else "region" if self.options["region"] else ""
        return how or SHOWN_BY[self.options["framework"]]

    @property
    def late(self) -> tuple[int, ...]:
        return (self.options["slow"],) if self.options["slow"] >= 0 else ()


def truth_of(folder: Path) -> Truth:
    """From the files log-RANK.json in a folder."""
    paths = [folder / f"log-{rank}.json" for rank in range(count_logs(folder))]
    logs = [json.loads(path.read_text()) for path in paths]
    cost_ns: Counter[int] = Counter()
    for parts in zip(*(log["steps"][:-1] for log in logs), strict=True):
        begins = [part["wait_begin_ns"] for part in parts]
        last = max(begins)
        cost_ns[begins.index(last)] += sum(last - begin for begin in begins)
    in_wait_ns = [
        sum(step["wait_end_ns"] - step["wait_begin_ns"] for step in log["steps"][:-1])
        for log in logs
    ]
    first = logs[0]
    return Truth(first, len(first["steps"]) - 1, first["gradient_bytes"], cost_ns, in_wait_ns)


def count_logs(folder: Path) -> int:
    return len(list(folder.glob("log-*.json")))


def holds(truth: Truth) -> bool:
    """The logs show the plant: other work on the machine did not hide it."""
    return all(truth.is_for(rank) >= HOLDS for rank in truth.late)


def named(profile: Path) -> dict[str, tuple[int, ...]]:
    """Ranks that each command names. advise has no column for it: its sentence is searched."""
    (late,) = rows("late", "--by", "run", profile)
    (summary,), (steps,) = rows("summary", profile), rows("steps", profile)
    found = {
        "late": expanded(late["late_ranks"]),
        "summary": expanded(summary["late_ranks"]),
        "steps": expanded(steps["slowest_ranks"]),
    }
    of_ranks = [r for r in rows("advise", profile) if r["rule"] in ("imbalance", "slowest_rank")]
    said = " ".join(f"{row['title']} {row['evidence']}" for row in of_ranks if row["found"])
    ranks = {rank for rank in range(late["ranks"]) if f"rank {rank} " in f"{said} "}
    return found | {"advise": tuple(sorted(ranks))}


def complaints(folder: Path) -> Iterator[str]:
    """Statements of the reports of folder/profile that the logs beside it deny."""
    truth, profile = truth_of(folder), folder / "profile"
    (steps,) = rows("steps", profile)
    if steps["steps"] != truth.steps:
        yield f"steps finds {steps['steps']} of {truth.steps} steps"
    carried, has_others = steps["bytes_per_step"], truth.options["broadcast_buffers"]
    if not has_others and carried not in (None, truth.gradient_bytes):
        yield f"steps says {carried} B a step, of {truth.gradient_bytes} B of gradients"
    for command, ranks in named(profile).items():
        if truth.late and truth.shown_by and ranks != truth.late:
            yield f"{command} names {ranks}, not {truth.late}"
        elif any(truth.is_for(rank) < CONFIRMED for rank in ranks):
            shares = ", ".join(f"{truth.is_for(rank):.2f}" for rank in ranks)
            yield f"{command} names {ranks}, who cause {shares} of the waiting by the logs"
    if truth.late and not truth.shown_by:
        (late,) = rows("late", "--by", "run", profile)
        if late["verdict"] != "unknown" and not late["late_ranks"]:
            yield f"late says {late['verdict']}, though arrival does not show who is late"
    if truth.options["region"]:
        yield from complaints_of_region(truth, profile)


def complaints_of_region(truth: Truth, profile: Path) -> Iterator[str]:
    found = [row for row in rows("regions", profile) if row["region"] == "wait for gradients"]
    if not found:
        yield "regions does not have the region around the wait"
        return
    most_ns, logged_ns = found[0].get("span_max_ns"), max(truth.in_wait_ns)
    if most_ns is None or abs(most_ns - logged_ns) > CLOSE * logged_ns:
        yield f"regions says {most_ns} ns at most in the wait, logged are {logged_ns} ns"
