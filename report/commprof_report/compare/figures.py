"""Figures of one run for a comparison: one number for each row and each figure of the run, and what
it ran on.

The unit of a comparison is the run, so each row of a run has one mean, and each run one value of
each figure.

Communicators stand for the same thing in several runs, and in several parts of one run, by their
description. A communicator is described by how it was created: call, parent, size, pattern of its
ranks, how many alike were created before it. That is also what its identity is computed from, so
equal identities have equal descriptions. Parts of one split, such as 64 tensor-parallel groups of 8
ranks, share a description and are compared together: each alone would be too small a part of the
run to be shown.

Times are those after the set-up of a job, which is no part of a comparison: communicators are
created, and Barriers follow before any other call. These wait for the launch and set up
connections.

Calls that only start operations cannot wait, so their time is transfer: whether the start or the
completion of a message does the work depends on the library.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter, namedtuple
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from operator import or_
from pathlib import Path
from sqlite3 import Connection
from statistics import fmean
from typing import Any, Tuple

from ..base import (
    Flags,
    Floats,
    Ints,
    Members,
    NONE,
    ReportError,
    View,
    gathered,
    measures,
    members_text,
    np,
    of_buckets,
    own,
    query,
    summarize,
    sums,
    threshold,
    total,
    units,
)
from ..experiment.plan import canaries_read
from ..gpu.gpu_activity import nccl_algorithm_text
from ..late import (
    Sums,
    Waits,
    late_ranks,
    rounded,
    share,
    transfer_shares,
)
from ..run import Cells, Selection, align, cells_of, crowding, run_open, select
from ..steps.long_steps import Trend, trend
from ..steps.step_costs import StepRow
from ..steps.steps_summary import StepsSummary, mean, steps_or_none

WHOLE_RUN = argparse.Namespace(call=None, communicator=None, region=None, rank=None, bytes=None)
PERCENTILES = {"p50": 50, "p99": 99}
FIGURES = ("step", "wait", "transfer", "time", "wall")


# run_ranks.sql; core_wait: share of its time waiting for a core; null: not known
RankRow = namedtuple(
    "RankRow",
    "rank host affinity state wall_ns counted_ns unrecorded_calls start_unix_ns threads core_wait",
)


# Work of a run: steps, and the bytes of the calls that make one up (null: marked, or of sizes that
# ranks have of their own)
StepWork = namedtuple("StepWork", "count bytes")


# Identity of a row. group: that of its communicator; per: its value is the time of a call, or in a
# step.
Key = namedtuple("Key", "call group bytes memory_kind measure per", defaults=["call"])
Part = Tuple[Key, str]  # of a row, and the kind of its traffic


def row_name(name: str, size: int | None, communicator: str) -> str:
    """MPI_Allreduce 4 MiB on MPI_COMM_WORLD, where name is that of the call."""
    of_size = f" {units.size(size)}" if size else ""
    return f"{name}{of_size}{f' on {communicator}' if communicator else ''}"


def cores_in(mask: int) -> int:
    return bin(mask).count("1")


@dataclass
class Row:
    """The calls of a row in one run, over all ranks. steps: of all ranks together, in a row per
    step."""

    family: str
    library: str
    count: int = 0
    volume_bytes: int = 0
    total_ns: int = 0
    min_ns: int = 1 << 62
    max_ns: int = 0
    transfer_ns: float = 0.0
    split_ns: int = 0  # the part of total_ns of which the transfer is known
    calls: Counter[int] = field(default_factory=Counter)  # by rank
    bytes: Counter[int] = field(default_factory=Counter)
    buckets: Counter[tuple[int, int]] = field(default_factory=Counter)  # by bounds
    steps: int = 0

    def add(self, other: Row) -> None:
        for name in ("count", "volume_bytes", "total_ns", "transfer_ns", "split_ns"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.min_ns, self.max_ns = min(self.min_ns, other.min_ns), max(self.max_ns, other.max_ns)
        for name in ("calls", "bytes", "buckets"):
            getattr(self, name).update(getattr(other, name))

    @property
    def values(self) -> int:
        """How many values make up its time."""
        return self.steps or self.count

    @property
    def is_split(self) -> bool:
        return 0 < self.total_ns == self.split_ns

    def value(self, metric: str) -> float | None:
        """Nanoseconds per call, or per step; null: no call returned."""
        if not self.count:
            return None
        if metric in PERCENTILES:
            buckets = ((*bounds, count) for bounds, count in self.buckets.items())
            return of_buckets(buckets, PERCENTILES[metric], self.min_ns, self.max_ns)
        return (
            self.transfer_ns if metric == "transfer" and self.is_split else self.total_ns
        ) / self.values

    def time_ns(self, metric: str) -> float:
        """As if each call, or step, took the row's value."""
        return (self.value(metric) or 0.0) * self.values


class Figures(
    namedtuple(
        "Figures",
        "path run_id start_unix_ns world_size ranks missing facts step_ns wait_ns transfer_ns "
        "time_ns step_trend wall_ns coverage estimate_share error_ns crowding parts steps "
        "negotiates labels canaries nccl_algorithms joined",
        defaults=[{}],
    )
):
    """A run. Times of the run are nanoseconds per rank; null: not known.

    ranks        rows of RankRow; missing: how many were not read
    facts        all values of each key
    step_trend   Trend; steps: StepWork
    crowding     in words
    parts        the rows by their kinds of traffic
    negotiates   a thread of it agrees with the other ranks on what to send
    labels       of communicators, by Group
    canaries     by host; nccl_algorithms: by call, Group and bytes
    joined       the row per step that takes a part (row_table.py)
    """

    @cached_property
    def rows(self) -> dict[Key, Row]:
        steps = round(self.steps.count * len(self.ranks)) if self.steps else 0
        rows: dict[Key, Row] = {}
        for part, row in self.parts.items():
            key = self.joined.get(part, part[0])
            whole = Row(row.family, row.library, steps=steps if key.per == "step" else 0)
            rows.setdefault(key, whole).add(row)
        return rows

    def algorithm(self, key: Key) -> str:
        """Empty: not known."""
        return self.nccl_algorithms.get((key.call, key.group, key.bytes or 0), "")

    def fact(self, key: str) -> str:
        return next(iter(self.facts.get(key, ())), "")

    @property
    def identity(self) -> tuple[str, int, int]:
        """The same for two copies of a run, and for no other run."""
        return self.run_id, self.start_unix_ns, sum(row.total_ns for row in self.rows.values())

    @property
    def placement(self) -> tuple[int, ...]:
        """The host of each rank, as a number in order of appearance."""
        numbers: dict[str | None, int] = {}
        return tuple(numbers.setdefault(row.host, len(numbers)) for row in self.ranks)

    @property
    def masks(self) -> tuple[int, ...]:
        return tuple(crowding.cores_of(row.affinity) for row in self.ranks)

    @property
    def masks_of_hosts(self) -> dict[int, int]:
        """The cores that the ranks of each host may use together."""
        of_hosts = gathered(zip(self.placement, self.masks))
        return {host: reduce(or_, masks) for host, masks in of_hosts.items()}

    @property
    def library(self) -> str:
        return units.library_name(self.fact("mpi_version")) or "unknown library"

    @property
    def core_wait(self) -> float | None:
        """The share of the time in which ranks waited for a core, on average; null: not known of
        all. Of many ranks one always waits long."""
        shares = [row.core_wait for row in self.ranks if row.core_wait is not None]
        return fmean(shares) if shares and len(shares) == len(self.ranks) else None

    @property
    def longest_core_wait(self) -> float | None:
        """The share of the rank that waited most, as the others wait for it."""
        is_known = self.core_wait is not None
        return max(row.core_wait or 0.0 for row in self.ranks) if is_known else None

    @property
    def core_wait_text(self) -> str:
        return (
            f"ranks waited for a core {units.share(self.core_wait)} of the time, one of them "
            f"{units.share(self.longest_core_wait)}"
        )

    @property
    def crowds_itself(self) -> bool:
        """Threads that communicate beside main threads leave no core to each of them."""
        threads = [row.threads for row in self.ranks]
        cores = self.masks_of_hosts
        return (
            max(threads) > 1
            and all(self.masks)
            and any(
                sum(own) > cores_in(cores[host])
                for host, own in gathered(zip(self.placement, threads)).items()
            )
        )

    @property
    def is_disturbed(self) -> bool:
        """Waiting for cores, but not for other threads of the same ranks."""
        is_waiting = (self.core_wait or 0) >= threshold("compare.disturbed")
        is_crowded = self.core_wait is None and bool(self.crowding)
        return not self.crowds_itself and (is_waiting or is_crowded)

    def canary_ns(self, name: str) -> float | None:
        """Time of the slowest host; null: not measured."""
        return max((getattr(canary, name) for canary in self.canaries.values()), default=None)

    def of_run(self, metric: str) -> float | None:
        """The figure of the whole run that a metric is judged by. For a percentile, each call
        counts as if it took that of its row."""
        if metric not in PERCENTILES:
            return getattr(self, f"{metric}_ns")
        return sum(row.time_ns(metric) for row in self.rows.values()) / max(1, len(self.ranks))


def figures(path: Path, skipped: float = 0.0) -> tuple[Figures, list[str]]:
    """Reads a run; also returns what there is to say about its files. skipped: the share of the
    steps, from the first one on, that is left out of the times of the run; those that only sums
    know are null then."""
    run = select(run_open(path, with_histograms=True, with_samples=True), WHOLE_RUN)
    try:
        found, steps, times = _figures(path, run)
        found = _without_first_steps(times, found, steps, skipped) if skipped else found
        return found, run.remarks + run.notes
    finally:
        run.connection.close()


def _figures(path: Path, run: Selection) -> tuple[Figures, list[StepRow], Times]:
    connection = run.connection
    alignment = align(connection)
    split = late_ranks.split(run, alignment)
    times = times_of(split)
    found = steps_or_none(run, alignment)
    steps = found.summary
    ranks = _ranks(connection)
    groups, labels = groups_of(connection, run.world_size)
    crowded = crowding.crowding(connection)
    cells = cells_of(connection)
    facts = connection.execute("SELECT DISTINCT key, value FROM fact ORDER BY key, value")
    whole = Figures(
        path=path,
        run_id=run.run_id,
        start_unix_ns=min(row.start_unix_ns for row in ranks),
        world_size=run.world_size,
        ranks=ranks,
        missing=sum(map(len, run.missing)),
        facts={key: tuple(values) for key, values in gathered(facts).items()},
        step_ns=steps.step_ns,
        step_trend=Trend(*(getattr(steps, name) for name in Trend._fields)),
        **times.of_ranks(len(ranks)),
        time_ns=times.total_ns / len(ranks),
        wall_ns=max((row.wall_ns for row in ranks if row.wall_ns is not None), default=None),
        coverage=times.coverage,
        estimate_share=split.run.estimate_share or 0.0,
        error_ns=math.ceil(split.of_all.error_ns),
        crowding=crowding.sentence(crowded) if crowded else None,
        parts=_parts(cells, times, groups),
        steps=_step_work(cells, found),
        negotiates=bool(connection.execute("SELECT 1 FROM negotiating").fetchone()),
        labels=labels,
        canaries=canaries_read(path),
        nccl_algorithms={
            (call, groups.get(identity, NO_GROUP), size): nccl_algorithm_text(*how)
            for call, identity, size, *how in query.run(connection, "compare/run_nccl_algorithms")
        },
    )
    return whole, found.costs.steps, times


def _ranks(connection: Connection) -> list[Any]:
    """With core_wait, which run_ranks.sql leaves open."""
    waited = {rank: crowding.use_of([row]) for rank, row in crowding.cpu_times(connection).items()}
    shares = {
        rank: use.core_wait_ns / use.counted_ns for rank, use in waited.items() if use.counted_ns
    }
    rows = query.ask(connection, "compare/run_ranks", RankRow)
    return [row._replace(core_wait=shares.get(row.rank)) for row in rows]


def _without_first_steps(
    times: Times, run: Figures, steps: Sequence[StepRow], skipped: float
) -> Figures:
    if run.step_ns is None:
        way_out = (
            "mark the steps (man commprof_step), or record from a later time on (COMMPROF_BEGIN_S)"
        )
        raise ReportError(
            run.path,
            f"has no known steps of which --skip-steps could leave out the first; {way_out}",
        )
    left = sorted(steps, key=lambda row: row.begin_ns)[int(skipped * len(steps)) :]
    begin_ns = left[0].begin_ns
    steady = [row for row in left if not row.is_warm_up]
    return run._replace(
        time_ns=None,
        wall_ns=None,
        step_trend=trend([row.step_ns for row in steady]),
        step_ns=mean([row for row in steady if row.is_complete] or steady, "step_ns"),
        **times.of_ranks(len(run.ranks), begin_ns),
    )


def _step_work(cells: Cells, found: StepsSummary) -> StepWork | None:
    """By calls, the number of steps follows from all bytes of the run in the calls that make them
    up: a step may be lost at either end."""
    steps, detection, loop = found.summary, found.steps.detection, found.steps.detection.found
    if not steps.delimited_by:
        return None
    if not loop.bytes:
        return StepWork(steps.total_steps or steps.steps, None)
    is_step = cells.is_in("call", *loop.functions) & cells.is_in("measure", "call")
    counted = cells.take(
        is_step & cells.is_in("identity", detection.identity) & cells.is_in("traffic", "bulk")
    )
    run_bytes = counted.volume_bytes.sum(dtype=float) / max(1, len(np.unique(counted.world_rank)))
    return StepWork(round(run_bytes / loop.bytes) or steps.steps, loop.bytes)


def _are_rows(cells: Any) -> Flags:
    """Set-up, calls that create communicators, and completions are none."""
    is_apart = cells.is_in("family", "setup", "communicator")
    return ~(is_apart | cells.is_in("timed", "completion", "captured"))


PARTS = View(  # with a histogram
    "Part",
    (
        "call",
        "identity",
        # null if each rank has a size of its own
        lambda cells: np.where(
            cells.is_in("bandwidth", "own-size"), np.int64(NONE), cells.bytes_high
        ),
        "memory_kind",
        "timed",
        "traffic",
    ),
    {
        **own("call", "identity", "memory_kind", "traffic"),
        "measure": "timed",
        "bytes": lambda groups: groups.keys[2],
    },
    lambda groups: [np.arange(len(groups))],
    lambda cells: _are_rows(cells) & cells.is_in("measure", "call", "device"),
)
PARTS_OF_RANKS = View(  # unsuccessful polls count by their time only: their number depends on it
    "PartOfRank",
    (*PARTS.keys, "world_rank"),
    {
        **PARTS.fields,  # type: ignore[dict-item]
        **own("family", "library", "world_rank"),
        "count": total("count", lambda cells: ~cells.is_in("measure", "poll")),
        **measures("volume_bytes", "total_ns", "min_ns", "max_ns"),
    },
    lambda groups: (
        groups.world_rank,
        groups.place("call"),
        groups.place("identity"),
        groups.keys[2],
        groups.place("memory_kind"),
        groups.place("timed"),
    ),
    _are_rows,
)


def _parts(cells: Cells, times: Times, groups: dict[str, Group]) -> dict[Part, Row]:
    rows: dict[Part, Row] = {}

    def part_of(row: query.Row) -> Part:
        group = groups.get(row.identity, NO_GROUP)
        return Key(row.call, group, row.bytes, row.memory_kind, row.measure), row.traffic

    for call in summarize(cells, PARTS_OF_RANKS):
        is_barrier = call.call == BARRIER and call.measure == "call"
        early = times.first_barriers.get((call.identity, call.world_rank), []) if is_barrier else []
        count, total_ns = call.count - len(early), call.total_ns - sum(early)
        if is_barrier and not count:
            continue
        share = times.share(call.call, call.identity, call.bytes)
        is_split = share is not None and (call.library == "mpi") == (call.measure == "call")
        rows.setdefault(part_of(call), Row(call.family, call.library)).add(
            Row(
                call.family,
                call.library,
                count,
                call.volume_bytes,
                total_ns,
                call.min_ns,
                call.max_ns,
                (share or 0) * total_ns * is_split,
                total_ns * is_split,
                Counter({call.world_rank: count}),
                Counter({call.world_rank: call.volume_bytes}),
            )
        )
    parts, histogram = summarize(cells, PARTS), sums(cells, PARTS.keys, PARTS.where).histograms()
    low_ns, high_ns = histogram.low_ns[histogram.bucket], histogram.high_ns[histogram.bucket]
    high_ns = np.where(high_ns, high_ns, 2 * low_ns)
    for place, bounds, calls in zip(
        histogram.row.tolist(), zip(low_ns.tolist(), high_ns.tolist()), histogram.count.tolist()
    ):
        part = parts[place]
        row = rows.get(part_of(part))
        early = [
            ns
            for (identity, _), durations in times.first_barriers.items()
            for ns in durations
            if (part.call, part.identity) == (BARRIER, identity) and bounds[0] <= ns < bounds[1]
        ]
        count = int(calls) - len(early)
        if row and count > 0:
            row.buckets[bounds] += count
    return rows


# The description of a communicator. created: constructor, ordinal and the parent's description; of
# predefined ones the name. shape: its world ranks, less the first, as text; empty if they are not
# known.
Group = namedtuple("Group", "library created size shape is_inter")
NO_GROUP = Group("mpi", (), 0, "", 0)  # of calls without a communicator


def groups_of(connection: Connection, world_size: int) -> tuple[dict[str, Group], dict[Group, str]]:
    """The group of each identity, and the label of each group."""
    rows = {row.identity: row for row in query.rows(connection, "compare/communicators_of_run")}
    groups = {identity: _described(row, rows, world_size) for identity, row in rows.items()}
    members = gathered((group, rows[identity]) for identity, group in groups.items())
    # MPI_COMM_WORLD; Comm_split {0-1} and 3 alike
    return groups, {
        group: first.label + f" and {len(others)} alike" * bool(others)
        for group, (first, *others) in members.items()
    }


def renamed(groups: Sequence[Group], known: Sequence[Group]) -> dict[Group, Group]:
    """Groups of a run that another run does not have, mapped to those of the other run with the
    same ranks, in order: the same communicators, created in another way."""
    own, other = (
        gathered((group._replace(created=()), group) for group in some if group not in those)
        for some, those in ((groups, {*known}), (known, {*groups}))
    )
    return {
        group: same
        for members, alike in own.items()
        for group, same in zip(alike, other.get(members, ()))
    }


def _described(row: query.Row, rows: dict[str, query.Row], world_size: int) -> Group:
    parent = rows.get(row.parent_identity or "")
    created: tuple = (
        (row.constructor, row.ordinal, _described(parent, rows, world_size))
        if parent and row.constructor
        else (row.name,)
    )
    members = Members(row.members)
    ranks = list(members.below(world_size)) if members.is_whole else []
    return Group(
        row.library,
        created,
        row.size,
        members_text([rank - ranks[0] for rank in ranks]),
        row.is_inter,
    )


BARRIER = "MPI_Barrier"


class Times(
    namedtuple(
        "Times",
        "begin_ns wait_ns transfer_ns total_ns is_split first_barriers shares shares_of_calls",
    )
):
    """begin_ns (on the run's axis), wait_ns, transfer_ns: of sampled calls of all ranks, scaled to
    all such calls. total_ns: of all calls. is_split: a call was analysed. first_barriers:
    durations, by communicator and rank. shares: of transfer, by call, communicator and bytes; of
    calls that complete requests, or only start them, by call."""

    def of_ranks(self, ranks: int, since_ns: int = NONE) -> dict[str, float | None]:
        """wait_ns and transfer_ns per rank, from a time on; null: no call was analysed."""
        is_known, own = self.is_split or not self.total_ns, self.begin_ns >= since_ns
        return {
            name: rounded(getattr(self, name)[own].sum()) / ranks if is_known else None
            for name in ("wait_ns", "transfer_ns")
        }

    @property
    def coverage(self) -> float:
        known_ns = float((self.wait_ns + self.transfer_ns).sum()) if self.is_split else 0.0
        return share(known_ns, max(known_ns, self.total_ns)) or 0.0

    def share(self, call: str, identity: str, size: int | None) -> float | None:
        return self.shares.get((call, identity, size), self.shares_of_calls.get(call))


def times_of(split: late_ranks.Split) -> Times:
    calls, texts = split.known.calls, split.sums.texts
    left, early = _without_first_barriers(split)
    of_calls = sums(split.inside, ["call"], lambda cells: ~cells.is_in("family", "communicator"))
    inside = dict(zip(of_calls.texts(of_calls.call).tolist(), of_calls.sum("total_ns").tolist()))
    early_ns = (early.wait_ns + early.transfer_ns).tolist()
    barriers = gathered(
        ((texts.texts[identity], rank), ns)
        for identity, rank, ns in zip(early.identity, early.world_rank.tolist(), early_ns)
    )
    starting = {
        name
        for name, call in calls.items()
        if name in inside
        and call.only_starts
        and (call.library, call.family != "io") == ("mpi", True)
    }
    begin_ns, starts_ns = _starts(split, {call: inside[call] for call in starting})
    return Times(
        np.append(left.waits.start_ns, begin_ns),
        np.append(left.wait_ns, np.zeros(len(starts_ns))),
        np.append(left.transfer_ns, starts_ns),
        sum(inside.values()) - sum(map(sum, barriers.values())),
        len(left.waits) > 0,
        barriers,
        transfer_shares(left, calls),
        _completing(left) | dict.fromkeys(starting, 1.0),
    )


def _without_first_barriers(split: late_ranks.Split) -> tuple[Sums, Waits]:
    """The sums without Barriers that a rank makes before its first other call, and these."""
    sums, called = split.sums, split.of_all.called
    is_other = ~split.known.which(
        called.calls.call,
        sums.texts,
        lambda call: call.family == "communicator" or call.call == BARRIER,
    )
    ranks, first = np.unique(called.calls.world_rank[is_other], return_index=True)
    first_ns = np.full(max(called.ranks, default=0) + 1, NONE)
    first_ns[ranks] = called.start_ns[is_other][first]

    waits = sums.waits
    is_early = sums.texts.among(waits.call, {BARRIER})
    is_early &= waits.start_ns < first_ns[waits.world_rank]
    own = ~is_early
    left = Sums(sums.rows[own], waits.take(own), sums.factor[own], sums.exact, sums.texts)
    return left, waits.take(is_early)


def _starts(split: late_ranks.Split, inside: dict[str, int]) -> tuple[Ints, Floats]:
    """Begin and time of the sampled calls among these, scaled to the time of all."""
    called, texts = split.of_all.called, split.sums.texts
    own = texts.among(called.calls.call, inside)
    calls = called.calls.take(own)
    sampled_ns = (calls.end_ns - calls.start_ns).astype(float)
    of_call = np.bincount(calls.call, sampled_ns, len(texts.texts))
    all_ns = np.array([inside.get(text, 0.0) for text in texts.texts])
    return called.start_ns[own], sampled_ns * (all_ns / np.maximum(1, of_call))[calls.call]


def _completing(sums: Sums) -> dict[str, float]:
    """The share of transfer in calls that complete requests."""
    waits, own = sums.waits, sums.waits.completion != NONE
    number = len(sums.texts.texts)
    wait_ns, transfer_ns = (
        np.bincount(waits.completion[own], ns[own], number).tolist()
        for ns in (sums.wait_ns, sums.transfer_ns)
    )
    return {
        text: transfer / (wait + transfer)
        for text, wait, transfer in zip(sums.texts.texts, wait_ns, transfer_ns)
        if wait + transfer
    }
