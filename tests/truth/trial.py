"""One run of a plant or of its balanced twin, and whether the reports say what the
ranks' logs say."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from hosts.cluster import HOSTS, on_hosts, refused
from mpi.harness import COMMPROF_RUN, LIBRARY, Run, command_for, compile_program, launch
from mpi.libraries import Mpi
from mpi.reporter import rows_of_ended

from . import logs
from .plants import Plant
from .ranks import expanded

CLOSE = 0.10  # share of the logged time by which a figure may be off
# share of the waiting that a plant has as its cause by the logs; below, other things disturbed the
# run
HOLDS = 0.7


# share of the waiting by which the logs confirm that a rank is late; what the reporter's verdict
# asks for
CONFIRMED = 0.5


SLOW_BYTES = 2_048  # of the plant of one slow size


class Trial(NamedTuple):
    """A run, and the truth about it."""

    plant: Plant
    is_twin: bool
    run: Run
    truth: logs.Truth


class Told(NamedTuple):
    """Statements of the reports, in the words that the tests use. All that depends on names of
    fields is in told()."""

    cause: str
    named: tuple[int, ...]
    hosts: str
    cost_ns: dict[int, int]
    wait_ns: dict[int, int]
    transfer_ns: dict[int, int]
    calls: dict[str, tuple[int, int]]  # by call: the rank waited for most, and how long
    coverage: float
    link: tuple[int | None, int | None] | None
    slow_bytes: int | None  # the size of a collective that is slow
    reason: str | None  # why the named ranks are late
    gain_ns: int | None  # by how much the run would be shorter without them


class Judgement(NamedTuple):
    holds: bool  # the logs show the plant
    who: str  # right, nobody, wrong
    cost_error: float | None  # relative to the logs
    complaints: list[str]


def why_not(mpi: Mpi, plant: Plant) -> str | None:
    """Why it cannot be played here."""
    if mpi.missing:
        return f"no {mpi.missing} here"
    if plant.program == "persistent" and not mpi.has("MPI_Allreduce_init"):
        return f"{mpi.name} has no MPI_Allreduce_init"
    if plant.where == "hosts":
        return refused()
    if plant.where == "cores" and len(os.sched_getaffinity(0)) < 2:
        return "one core"
    return None


def play(mpi: Mpi, plant: Plant, is_twin: bool, folder: Path) -> Trial:
    assert LIBRARY.exists(), "run `make` first"
    folder.mkdir(parents=True, exist_ok=True)
    delay_us = 0 if is_twin else plant.delay_us
    on_network = plant.where in ("network", "size", "link", "pair")
    late = ",".join(map(str, plant.late)) or "-1"
    words = [
        plant.program,
        str(plant.rounds),
        str(plant.base_us),
        str(0 if on_network else delay_us),
        late,
    ]
    command = [str(COMMPROF_RUN), *command_for(mpi, "plants"), *words]
    environment = {"COMMPROF_OUTPUT": str(folder / "run"), "COMMPROF_QUIET": "on"}
    if plant.samples:
        environment["COMMPROF_SAMPLES"] = plant.samples
    first = plant.ranks
    if on_network:
        layer = compile_program(mpi, "slow_network", "-shared", "-fPIC")
        command = ["env", f"LD_PRELOAD={LIBRARY}:{layer}", *command[1:]]
        environment["SLOW_NETWORK_US"] = str(delay_us)
        if plant.where == "link":
            environment["SLOW_NETWORK_RANK"] = "1"
        if plant.where == "size":
            environment["SLOW_NETWORK_BYTES"] = str(SLOW_BYTES)
        if plant.link:
            sender, receiver = plant.slow_sender, plant.link[1]
            environment |= {"SLOW_LINK_FROM": str(sender), "SLOW_LINK_TO": str(receiver)}
    if plant.where == "hosts":
        mpi = on_hosts(mpi, plant.ranks // len(HOSTS))
    if plant.where == "cores":
        first = 1
        one, other = (
            ["taskset", "-c", str(core), *command] for core in sorted(os.sched_getaffinity(0))[:2]
        )
        command = [*one, ":", "-n", "1", *other]
    outcome = launch(mpi, first, command, folder, environment)
    assert outcome.exit_status == 0, outcome
    return Trial(
        plant,
        is_twin,
        Run(plant.ranks, folder / "run", outcome),
        logs.truth_of(folder, ahead_ns(plant), plant.late),
    )


def ahead_ns(plant: Plant) -> list[int]:
    """By rank: how far its clock is ahead."""
    hosts = HOSTS if plant.where == "hosts" else HOSTS[:1]
    return [hosts[rank * len(hosts) // plant.ranks].ahead_s * 10**9 for rank in range(plant.ranks)]


def told(run: Run) -> Told:
    (whole,) = rows_of_ended("late", run.folder, "--by", "run")
    ranks = rows_of_ended("late", run.folder)
    calls = rows_of_ended("late", run.folder, "--by", "call")
    top: dict[str, tuple[int, int]] = {}
    for row in calls:
        if row["top_rank"] is not None and row["top_cost_ns"] > top.get(row["call"], (0, -1))[1]:
            top[row["call"]] = (row["top_rank"], row["top_cost_ns"])
    return Told(
        whole["verdict"],
        expanded(whole["late_ranks"]),
        whole["late_hosts"] or "",
        {row["rank"]: row.get("caused_ns", row["cost_ns"]) for row in ranks},
        {row["rank"]: row["wait_ns"] for row in ranks},
        {row["rank"]: row["transfer_ns"] for row in ranks},
        top,
        whole["coverage"] or 0.0,
        None
        if whole["slow_link_times"] is None
        else (whole["slow_link_sender"], whole["slow_link_receiver"]),
        whole["slow_size_bytes"],
        whole["late_reason"],
        whole["late_gain_ns"],
    )


def is_accused(trial: Trial) -> bool:
    """True if late names somebody in a twin."""
    said = told(trial.run)
    return bool(said.named or said.link or said.slow_bytes) or said.cause == "by-call"


def is_confirmed(trial: Trial) -> bool:
    """The logs say of the ranks that late names what it says: then they were late, though by no
    fault of the program."""
    named = told(trial.run).named
    return bool(named) and trial.truth.is_for(named) >= CONFIRMED


def figures(trial: Trial, said: Told) -> list[tuple[str, float, float]]:
    """Reported and logged values of the quantity that the plant is about."""
    plant, truth = trial.plant, trial.truth
    if plant.samples or plant.is_negotiated:
        return []
    if plant.named:
        return [
            (
                "cost of the named ranks",
                sum(said.cost_ns[rank] for rank in plant.named),
                sum(truth.root_ns[rank] for rank in plant.named),
            )
        ]
    if plant.cause == "by-call":
        return [
            (f"cost in {call}", said.calls.get(call, (0, 0))[1], truth.cost_of_call_ns[call][rank])
            for call, rank in plant.calls.items()
        ]
    if plant.cause == "transfer":
        return [("transfer", sum(said.transfer_ns.values()), sum(truth.transfer_ns.values()))]
    if plant.cause == "none":
        return []
    return [("waiting", sum(said.wait_ns.values()), sum(truth.wait_ns.values()))]


def holds(trial: Trial, said: Told) -> bool:
    """The reports rightly name nobody where ranks lack cores of their own."""
    if said.cause == "cores" and trial.plant.named:
        return False
    plant, truth = trial.plant, trial.truth
    waiting_ns, transfer_ns = sum(truth.wait_ns.values()), sum(truth.transfer_ns.values())
    if plant.cause in ("transfer", "none"):
        return plant.cause == "none" or transfer_ns > 2 * waiting_ns
    if plant.named:
        return truth.is_for(plant.named) >= HOLDS
    costs = truth.cost_of_call_ns
    return waiting_ns > transfer_ns and all(
        costs[call][rank] >= HOLDS * sum(costs[call].values()) for call, rank in plant.calls.items()
    )


def tolerance_ns(trial: Trial) -> int:
    """Between the readings of the logs and the profiler's own, over all calls."""
    return sum(trial.truth.taken_ns.values()) - sum(
        row["total_ns"]
        for row in rows_of_ended("sizes", trial.run.folder)
        if row["measure"] in ("call", "poll") and row["call"] in MEASURED
    )


def waits_as_logged(trial: Trial) -> bool:
    told_ns, truth = told(trial.run).wait_ns, trial.truth
    return all(
        abs(told_ns.get(rank, 0) - truth.wait_ns[rank])
        <= max(CLOSE * truth.wait_ns[rank], tolerance_ns(trial) + truth.unsure_ns[rank])
        for rank in range(trial.plant.ranks)
    )


MEASURED = frozenset(
    f"MPI_{name}"
    for name in "Allreduce Barrier Bcast Reduce Iallreduce Allreduce_init Start Wait Waitall Send "
    "Recv Isend Irecv Iprobe Win_create Win_free Win_post Win_start Win_complete Win_wait".split()
)


def reasons(plant: Plant) -> tuple[str | None, ...]:
    """Reasons that may be said of the named ranks. Few readings show no reason; where other work
    has the cores, a rank that computes longer waits longer for one, too."""
    known = (plant.reason,) if plant.reason == "asleep" else (plant.reason, "ready")
    return known if plant.says_why else (*known, None)


def judge(trial: Trial) -> Judgement:
    """Judgement of a plant; for twins see is_accused()."""
    plant, truth, said = trial.plant, trial.truth, told(trial.run)
    complaints = []
    # no part of the plant, or more than is surely known of it, but true
    is_beside = (
        plant.cause in ("transfer", "unknown")
        and bool(said.named)
        and truth.is_for(said.named) >= CONFIRMED
    )
    who = (
        "right"
        if said.named == plant.named or is_beside
        else "wrong"
        if set(said.named) - set(plant.named)
        else "nobody"
    )
    if who != "right":
        complaints.append(f"named are {said.named}, not {plant.named}")
    if said.link != plant.link:
        complaints.append(f"the slow link is {said.link}, not {plant.link}")
    if (said.slow_bytes == SLOW_BYTES) != (plant.where == "size"):
        complaints.append(f"the slow size is {said.slow_bytes}")
    waiting_ns, transfer_ns = sum(truth.wait_ns.values()), sum(truth.transfer_ns.values())
    prevails = waiting_ns > (2 if plant.where == "hosts" else 1 + CLOSE) * transfer_ns
    if (
        said.cause not in (plant.cause, "cores")  # of a busy machine: text names nobody then
        and plant.cause != "none"
        and not (plant.cause == "unknown" and is_beside)
        and (prevails or plant.cause == "transfer")
    ):
        complaints.append(f"the cause is said to be {said.cause}, not {plant.cause}")
    if said.named == plant.named and said.reason not in reasons(plant):
        complaints.append(f"the reason is said to be {said.reason}, not {plant.reason}")
    for call, rank in plant.calls.items():
        if said.calls.get(call, (None, 0))[0] != rank:
            complaints.append(
                f"in {call} the others wait for {said.calls.get(call)}, not for rank {rank}"
            )
    slack_ns = tolerance_ns(trial) + sum(truth.unsure_ns.values())
    # what clocks cannot tell apart is estimated by durations, which differ by transfer too
    if plant.where == "hosts":
        slack_ns += transfer_ns
    errors = []
    for what, told_ns, logged_ns in figures(trial, said):
        errors.append(abs(told_ns - logged_ns) / (logged_ns or 1))
        if abs(told_ns - logged_ns) > CLOSE * logged_ns + slack_ns:
            complaints.append(
                f"{what}: {told_ns / 1e6:.1f} ms, logged are {logged_ns / 1e6:.1f} ms"
            )
    return Judgement(holds(trial, said), who, max(errors, default=None), complaints)
