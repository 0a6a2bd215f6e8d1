"""The metrics that hvprof reported of Horovod (Awan, Jain, Chu, Subramoni, Panda: Communication
Profiling and Characterization of Deep Learning Workloads on Clusters with High-Performance
Interconnects, Hot Interconnects 2019): the sizes of messages, how many calls carried them, and the
time per call, by the size classes of its papers: up to 128 KiB, 16 MiB, 32 MiB, 64 MiB, and above.
MPI and NCCL stand beside each other; the time of NCCL's operations is that on the device, where it
is known, that of nonblocking ones from start to completion. Control traffic, such as Horovod's
negotiation, has rows of its own (hvprof-report traffic). If the run has steps (hvprof-report
steps), calls, bytes and time are those of a mean step on a mean rank.

Sizes that are no powers of two are compared with the line between the powers of two below and above
(on logarithmic axes, by medians, where all have 20 calls): the paper's finding as a number.

--plot draws the time by size class, with the number of calls and the time per call; runs with
fusion and without stand beside each other.

Sizes are what each call carried. Only what reaches MPI or NCCL is seen: tensors that a framework
has fused are one message. For the sizes without fusion, run the job once more with fusion off
(Horovod: HOROVOD_FUSION_THRESHOLD=0; PyTorch's DistributedDataParallel: a small bucket_cap_mb) and
give that run with --unfused. One sentence then says what fusion did to the messages of a step, and
to the time in them. These are two single runs: `hvprof-report compare` of several runs of each says
whether a step takes less beyond chance.
"""

from __future__ import annotations

import argparse
from collections import namedtuple
from collections.abc import Sequence
from math import nan
from pathlib import Path

from ..base import Field, Row, attempt, gathered, option, shown, threshold, units
from ..calls import (
    HVPROF,
    best_timed,
    hvprof_rows,
    odd_sizes,
    size_rows,
)
from ..compare.sides import alike
from ..plots import bars as plot
from ..run import Run
from . import Command, common

OTHER_WORK = "Not the same work, so nothing is said of fusion:"
AS_RUN, UNFUSED = "as run", "unfused"
FUSED = (
    "Sizes are those of calls: a fused message counts once. To see them unfused, run once with "
    "fusion off (Horovod: HOROVOD_FUSION_THRESHOLD=0; PyTorch's DistributedDataParallel: a small "
    "bucket_cap_mb)."
)
FEWEST = threshold("commands.calls-in-step")


class Side(namedtuple("Side", "fusion ranks steps negotiates settings rows sums odd_sizes run")):
    """One of the runs that are looked at. ranks, steps: numbers. sums: its rows of all ranks
    together."""

    @property
    def title(self) -> str:
        """As run (HOROVOD_FUSION_THRESHOLD=0), 2 ranks, 59 steps"""
        settings = f" ({self.settings})" if self.settings else ""
        steps = units.counted(self.steps, "step") if self.steps else "no steps found"
        ranks = units.counted(self.run.world_size, "rank")
        return f"{units.capital(self.fusion)}{settings}, {ranks}, {steps}"


TOTALS = ("message_bytes", "total_ns")
IN_STEPS = ("calls_per_step", "bytes_per_step", "time_per_step_ns")
COLUMNS = shown(
    HVPROF,
    "call traffic bytes_low fusion measure rank count sizes smallest_bytes largest_bytes "
    f"{' '.join((*TOTALS, *IN_STEPS))} share_of_call mean_ns p50_ns p99_ns",
)


def hvprof(known: common.Analysed, arguments: argparse.Namespace) -> common.Answer:
    sides = [side(known, AS_RUN, arguments.per_rank)]
    if arguments.unfused:
        paths = argparse.Namespace(**{**vars(arguments), "run": [arguments.unfused]})
        sides.append(side(common.Analysed(common.ALL(paths)), UNFUSED, arguments.per_rank))
    return common.Answer(
        merged(sides),
        HVPROF,
        lambda: blocks(sides, arguments.per_rank, not arguments.bytes),
        lambda: (
            picture(sides),
            f" and, {UNFUSED}, ".join(
                units.counted(sum(row.count for row in best_timed(side.sums)), "call")
                for side in sides
            ),
        ),
        lambda: "no call of this run that fits the filters carries a message",
    )


def picture(sides: Sequence[Side]) -> plot.Picture | None:
    """Time of each size class, in a step where all runs have steps, with the number of calls and
    how long one takes; below each class that of the run without fusion."""
    made = [
        ((row.bytes_low, row.bytes_high, side.fusion), row, side.ranks)
        for side in sides
        for row in best_timed(side.sums)
    ]
    in_step = all(any(row.calls_per_step for row in side.sums) for side in sides)
    sums = gathered(
        (bar, (row.total_ns, row.count, row.calls_per_step or 0 if in_step else row.count / ranks))
        for bar, row, ranks in made
    )
    bars = sorted(sums, key=lambda bar: (bar[0], bar[2]))
    amounts = (
        (
            "control" if row.traffic == "control" else row.call,
            bar,
            row.time_per_step_ns or 0 if in_step else row.total_ns / ranks,
        )
        for bar, row, ranks in made
    )
    whole = [[*map(sum, zip(*sums[bar]))] for bar in bars]
    return (
        plot.Picture(
            "Calls by message size",
            [units.size_range(*bar[:2]) + f", {bar[2]}" * (len(sides) > 1) for bar in bars],
            f"time {'in a step, mean rank' if in_step else 'of a mean rank'}",
            plot.by_call(amounts, bars),
            [
                f"{number(calls)} calls, {plot.time_text(total_ns / count)} each"
                for total_ns, count, calls in whole
            ],
        )
        if made
        else None
    )


def side(known: common.Analysed, fusion: str, per_rank: bool = False) -> Side:
    run, connection = known.run, known.connection
    # those of the whole analysis, where it was made
    steps = known.steps.steps if "steps" in vars(known) and known.steps else known.boundaries
    whole = steps.whole() if steps else None
    of_steps = (
        []
        if whole is None
        else [*zip(whole.world_rank.tolist(), whole.begin_ns.tolist(), whole.end_ns.tolist())]
    )
    sums = hvprof_rows(connection, fusion, steps=of_steps)
    rows = hvprof_rows(connection, fusion, per_rank, of_steps) if per_rank else sums
    (ranks,) = connection.execute("SELECT count(*) FROM selected_rank").fetchone()
    negotiates = bool(connection.execute("SELECT 1 FROM negotiating").fetchone())
    return Side(
        fusion,
        ranks,
        0 if whole is None else len({*whole.step.tolist()}),
        negotiates,
        settings_text(run),
        rows,
        sums,
        attempt("Odd sizes", odd_sizes, size_rows(connection)) or [],
        run,
    )


def settings_text(run: Run) -> str:
    """HOROVOD_FUSION_THRESHOLD=0"""
    found = run.connection.execute(
        "SELECT DISTINCT key, value FROM fact WHERE key LIKE 'env.HOROVOD_%' ORDER BY key, value"
    ).fetchall()
    return ", ".join(
        f"{key[4:]}={value}"
        for key, value in found
        if key[4:] in ("HOROVOD_FUSION_THRESHOLD", "HOROVOD_DISABLE_GROUP_FUSION")
    )


def merged(sides: Sequence[Side]) -> list[Row]:
    """The rows of all runs, those of the same call and class below each other, in the order of the
    first."""
    rows = [row for side in sides for row in side.rows]
    place = {
        call: number
        for number, call in enumerate(dict.fromkeys((row.call, row.measure) for row in rows))
    }
    return sorted(
        rows,
        key=lambda row: (
            place[row.call, row.measure],
            -1 if row.rank is None else row.rank,
            row.traffic,
            row.bytes_low,
        ),
    )


def columns(sides: Sequence[Side], rows: Sequence[Row], per_rank: bool) -> list[Field]:
    """Sums over all ranks, or what a mean step has, if all runs have steps. Without what is the
    same for all rows."""
    telling = {
        **dict.fromkeys(TOTALS, not all(side.steps for side in sides)),
        **dict.fromkeys(IN_STEPS, all(side.steps for side in sides)),
        "rank": per_rank,
        "fusion": len(sides) > 1,
        "measure": any(row.library != "MPI" for row in rows),
        "traffic": any(row.traffic != "bulk" for row in rows),
    }
    return [column for column in COLUMNS if telling.get(column.key, True)]


def blocks(sides: Sequence[Side], per_rank: bool, has_all_sizes: bool) -> list:
    rows = best_timed(merged(sides))
    fusion = [FUSED, common.Hint("Give both runs: hvprof RUN --unfused OTHER_RUN.")]
    if len(sides) > 1:
        fusion = [difference_text(*sides)]
    return [
        [*map(numbers_text, sides), *(fusion if has_all_sizes else [])],
        common.Rows(columns(sides, rows, per_rank), rows),
        *map(odd_sizes_text, sides),
        "Nonblocking operations last from their start to completion; several may at once."
        if any(row.measure == "completion" for row in rows)
        else "",
    ]


def number(calls: float) -> str:
    """44; 4.0"""
    return units.count(round(calls)) if calls >= 10 else f"{calls:.1f}"


def numbers_text(each: Side) -> str:
    """MPI, a step and rank: bulk 4.0 calls, 4.46 MB, 12.3 ms; negotiation 31 calls, 248 B, 8.10 ms.
    Without steps the calls of the run on the host. NCCL has a sentence of its own if it was
    used."""
    libraries = gathered((row.library, row) for row in each.sums)
    said = [library_text(each, *own) for own in libraries.items()] or ["No call"]
    return f"{'. '.join([each.title, *said])}."


def library_text(each: Side, library: str, rows: Sequence[Row]) -> str:
    if not each.steps:
        count = sum(row.count for row in rows if row.measure == "call")
        a_rank = units.count(round(count / each.ranks))
        return f"{library}: {units.counted(count, 'call')} that carry messages, {a_rank} a rank"
    kinds = ("bulk", "bulk"), ("control", "negotiation" if each.negotiates else "control")
    parts = filter(None, (stepped_text(rows, *kind) for kind in kinds))
    return f"{library}, a step and rank: {'; '.join(parts) or 'no call'}"


def stepped_text(rows: Sequence[Row], traffic: str, name: str) -> str:
    """bulk 4.0 calls, 4.46 MB, 12.3 ms; empty: there are hardly any."""
    own = [row for row in best_timed(rows) if row.traffic == traffic and row.calls_per_step]
    calls, step_bytes = (
        sum(getattr(row, key) for row in own) for key in ("calls_per_step", "bytes_per_step")
    )
    if calls < FEWEST:
        return ""
    times = [row.time_per_step_ns for row in own if row.time_per_step_ns is not None]
    taken = f", {units.duration(sum(times))}" if len(times) == len(own) else ""
    return f"{name} {number(calls)} calls, {units.size(step_bytes)}{taken}"


def difference_text(as_run: Side, unfused: Side) -> str:
    """44 messages of 101 KB a step became 4.0 of 1.12 MB; time in MPI_Allreduce -68 % (38.1 ms a
    step -> 12.3 ms)."""
    in_steps = bool(as_run.steps and unfused.steps)
    what = "a step" if in_steps else "a rank"
    first, second = sent(unfused, in_steps), sent(as_run, in_steps)
    call = max(first, key=lambda name: first[name][1], default="")
    ranks = [each.run.world_size for each in (unfused, as_run)]
    if ranks[0] != ranks[1]:
        return f"{OTHER_WORK} {units.counted(ranks[0], 'rank')} unfused, {ranks[1]} as run."
    if not first or not second:
        return "Neither the one run nor the other sends in bulk, so fusion has nothing to do."
    if call not in second:
        return f"{OTHER_WORK} {call} carries most bytes unfused, and none as run."
    (old_calls, old_bytes, old_ns), (calls, sum_bytes, ns) = first[call], second[call]
    if not alike(old_bytes, sum_bytes):
        carries = f"{call} carries {units.size(old_bytes)} {what} unfused"
        return f"{OTHER_WORK} {carries}, {units.size(sum_bytes)} as run."
    time = f"how long {call} took to move them is not known"
    if ns / (old_ns or nan) > 0:
        values = f"{units.duration(old_ns)} {what} -> {units.duration(ns)}"
        time = f"time in {call} {units.change(ns / old_ns - 1)} ({values})"
    fuses_alike = as_run.negotiates and unfused.negotiates and as_run.settings == unfused.settings
    chance = " Both runs fuse alike: their cuts differ by chance." * fuses_alike
    return (
        f"{number(old_calls)} messages of {units.size(old_bytes / old_calls)} {what} became "
        f"{number(calls)} of {units.size(sum_bytes / calls)}; {time}.{chance}"
    )


def sent(side: Side, in_steps: bool) -> dict[str, list[float]]:
    """Calls, bytes and time of bulk data by call, in a step or over the run on a rank; nan: the
    time is not that of the messages."""
    found: dict[str, list[float]] = {}
    for row in best_timed(side.sums):
        calls, sum_bytes, spent_ns = (
            (row.calls_per_step, row.bytes_per_step, row.time_per_step_ns)
            if in_steps
            else (each / side.ranks for each in (row.count, row.message_bytes, row.total_ns))
        )
        is_timed = not row.is_start and (row.library == "MPI" or row.measure == "device")
        if row.traffic == "bulk" and calls and sum_bytes:
            values = calls, sum_bytes, nan if spent_ns is None or not is_timed else spent_ns
            found[row.call] = [*map(sum, zip(values, found.get(row.call, (0, 0, 0))))]
    return found


def odd_sizes_text(each: Side) -> str:
    """Sizes that are no powers of two: MPI_Allreduce takes 12.1 % more than on the line between
    powers of two (4.20 ms in 1,200 calls of 5 sizes)."""
    said = [
        f"{odd.call} takes {units.share(abs(odd.share))} {'more' if odd.excess_ns > 0 else 'less'} "
        f"than on the line between powers of two ({units.duration(abs(odd.excess_ns))} in "
        f"{units.counted(odd.calls, 'call')} of {units.counted(odd.sizes, 'size')}, by medians)"
        for odd in each.odd_sizes
    ]
    return f"Sizes that are no powers of two: {'; '.join(said)}." if said else ""


COMMANDS = {
    "hvprof": Command(
        __doc__,
        (
            *common.DRAWN_BY_MEMORY_KIND,
            option(
                "--unfused", type=Path, metavar="RUN2", help="the same job, run with fusion off"
            ),
            option("--per-rank", action="store_true", help="one row a rank"),
        ),
        common.View(hvprof, common.ALL),
        (
            ("What Horovod fused, and into which sizes", "hvprof-report hvprof --unfused RUN2 RUN"),
            ("The figures of hvprof's paper", "hvprof-report hvprof --plot hvprof.pdf RUN"),
        ),
        ("advise", "compare", "sizes", "steps", "traffic"),
    )
}
