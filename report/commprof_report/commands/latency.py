"""Histogram of the durations of one call at one message size.

Without --call it shows the call with the most time; without --bytes, the size of that call with the
most time. A range adds the sizes in it up (--bytes : adds all). An octave, in which the duration
doubles, has eight equal buckets, so a duration is known to 1/16. Bars show calls per octave: the
count alone would drop by half wherever buckets become twice as wide. --plot
draws the histogram of one size, and of several sizes a map: the calls per octave at each size, with
the percentiles as lines, for each communicator. The text merges neighbouring
buckets where there are more than 24; --json and --csv have all. NCCL's operations are shown by
their time on the device, nonblocking operations by that from start to completion; where these are
not known, by the time of the calls that start them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence

from ..base import units
from ..base.siblings import Family, Sibling, families
from ..calls.by_size import (
    DurationRow, PercentilesRow, SizeRow, best_timed, rank_durations, size_rows,
)
from ..calls.histogram import LatencyRow, dominating_size, latency_rows, merged, size_durations
from ..display import page, tables
from ..display.colours import of_call
from ..display.tables import Column
from ..plots import duration_histogram as plot
from ..plots import histograms
from ..plots import size_density as map_plot
from ..roles import roles
from ..roles.world import world_of
from ..run.run import Run
from ..run.selection import Selection
from . import common, sizes

EXAMPLES = (
    ("Allreduces of 4 MiB", "hvprof-report latency --call Allreduce --bytes 4M RUN"),
    ("Broadcasts of all sizes together", "hvprof-report latency --call Bcast --bytes : RUN"),
    (
        "A map of durations over message size",
        "hvprof-report latency --call Bcast --bytes : --plot bcast.png RUN",
    ),
)
SEE_ALSO = ("sizes",)
BAR_WIDTH, MOST_BARS = 40, 24
LARGEST = (1 << 63) - 1
# rows in the page, those of which each rank is offered
MOST_OVERLAID, MOST_BY_RANK, MOST_RANKS = 8, 3, 64
# families whose durations say nothing by themselves
WITHOUT_WORK = ("setup", "completion", "probe")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    common.add_arguments(parser, draws=True, by_memory_kind=True)


def run(arguments: argparse.Namespace) -> None:
    run = common.open_selected(arguments, with_samples=bool(arguments.plot))
    rows = histogram(run, arguments)
    if arguments.plot:
        save_picture(arguments, run, rows)
    if tables.is_for_scripts(arguments):
        tables.write_rows(arguments, rows, LatencyRow._fields)
    elif not rows:
        print(nothing_text(run, arguments))
    else:
        print_text(rows)


def save_picture(arguments: argparse.Namespace, run: Selection, rows: list[LatencyRow]) -> None:
    """The histogram of one size, or the map of several."""
    calls, why_none = (
        units.counted(sum(row.count for row in rows), "call"), nothing_text(run, arguments),
    )
    if rows and rows[0].bytes_low != rows[0].bytes_high:
        names = roles.families(world_of(run.connection))
        own = [
            row for row in size_rows(run.connection, families=names)
            if (row.call, row.measure) == (rows[0].call, rows[0].measure)
        ]
        if len({row.bytes for row in own if row.bytes}) > 1:
            panels = map_plot.panels_of(own, size_durations(run.connection, names))
            common.picture_save(arguments, run, map_plot, panels, calls, why_none)
            return
    picture = plot.Picture(rows, siblings(run, arguments, rows[0])) if rows else None
    common.picture_save(arguments, run, plot, picture, calls, why_none)


def histogram(run: Run, arguments: argparse.Namespace) -> list[LatencyRow]:
    """The buckets of the call and size that were asked for, or that took the most time of what was
    asked for."""
    chosen = dominating_size(run.connection)
    if chosen is None:
        return []
    low, high = chosen.bytes_low, chosen.bytes_high
    if arguments.bytes:
        low = min(arguments.bytes.low or 0, LARGEST)
        high = None if arguments.bytes.high is None else min(arguments.bytes.high, LARGEST)
    return latency_rows(run.connection, chosen.call, low, high, chosen.measure)


def siblings(run: Run, arguments: argparse.Namespace, shown: LatencyRow) -> list[Family]:
    """Families of communicators, by the median of the calls that are shown, if these
    have one size."""
    names, key = (
        roles.families(world_of(run.connection)),
        (shown.call, shown.measure, shown.bytes_low, shown.bytes_low),
    )
    rows = size_rows(run.connection)
    chosen = [
        row for row in rows
        if (row.call, row.measure, row.bytes_low, row.bytes_high) == key and row.p95_ns is not None
    ]
    return families(
        (
            names.get(row.identity, row.communicator),
            Sibling(row.communicator, row.p50_ns, row.p50_ns),
        )
        for row in chosen
    )


def nothing_text(run: Selection, arguments: argparse.Namespace) -> str:
    return common.nothing_text(run, "call")


def print_text(buckets: list[LatencyRow]) -> None:
    rows = merged(buckets, MOST_BARS)
    densest = max(row.density for row in rows)
    columns = (
        Column("from", lambda row: units.duration(row.low_ns)),
        Column("to", lambda row: units.duration(row.high_ns)),
        Column("count", lambda row: units.count(row.count)),
        Column("share", lambda row: units.share(row.share)),
        Column("up to here", lambda row: units.share(row.cumulative_share)),
        Column("calls per octave", lambda row: bar(row.density, densest), False),
    )
    common.print_line(plot.title(rows))
    print("\n" + tables.text_table(columns, rows))


def bar(density: float, densest: float) -> str:
    return "#" * max(1, round(BAR_WIDTH * density / densest))


def latency_section(run: Run, rows: Sequence[SizeRow], names: Mapping[str, str]) -> str:
    """Histograms of the rows with the most time, and of their ranks, two of which the reader
    overlays. rows: those of sizes, one for a family of communicators; names: of these, by identity.
    """
    working = [row for row in best_timed(rows) if row.family not in WITHOUT_WORK]
    is_one_communicator = len({row.communicator for row in working}) == 1
    largest = sorted(working, key=lambda row: -row.total_ns)[:MOST_OVERLAID]
    curves = [
        curve for place, row in enumerate(largest)
        for curve in curves_of(run, row, names, is_one_communicator, place < MOST_BY_RANK)
    ]
    if not curves:
        return ""
    sentence = (
        "How long single calls took, for the calls and sizes with the most time. Two separate "
        "hills are two different situations: for example"
        " calls that find all ranks ready, and calls that wait for one. The second list lays "
        "another size, or a rank, over the first. The mouse"
        " or the arrow keys read off how many calls took how long."
    )
    options = [(curve.name, [curve]) for curve in curves]
    panels = map_plot.panels_of(
        [row for row in working if sizes.carries_messages(row)],
        size_durations(run.connection, names),
    )
    drawing = common.picture(map_plot, panels, "durations by message size")
    if drawing:
        sentence += (
            " The map shows the durations at each size, the darker the more calls, for the calls "
            "and communicators with the most time."
        )
    choices = [
        histograms.Choice("Show", options),
        histograms.Choice("beside", [("nothing", []), *options]),
    ]
    drawn = page.histograms(histograms.data(choices))
    return page.section("Calls in detail", sentence, drawn, drawing)


def curves_of(
    run: Run, row: SizeRow, names: Mapping[str, str], is_one_communicator: bool, by_rank: bool
) -> Iterable[histograms.Curve]:
    """Curves of a row, that of all ranks first."""
    size = (
        f" {units.size_range(row.bytes_low, row.bytes_high)}" if sizes.carries_messages(row) else ""
    )
    place = "" if is_one_communicator else f", {units.shortened(row.communicator, 36)}"
    name = f"{units.call_name(row.call, row.memory_kind, row.measure)}{size}{place}"
    family = [identity for identity, name in names.items() if name == row.communicator]
    found = rank_durations(run.connection, row, MOST_RANKS if by_rank else 0, family)
    yield histograms.Curve(
        name, note(row.count, row),
        summed(bucket for own in found.buckets.values() for bucket in own), of_call(row.call),
    )
    by_rank_buckets = {rank: own for rank, own in found.buckets.items() if rank >= 0}
    if len(by_rank_buckets) > 1:
        for rank, own in by_rank_buckets.items():
            calls = sum(bucket.count for bucket in own)
            yield histograms.Curve(
                f"{name}, rank {rank}", note(calls, found.percentiles[rank]), summed(own),
                of_call(row.call),
            )


def summed(buckets: Iterable[DurationRow]) -> list[tuple[tuple[int, int], int]]:
    """Only the last bucket has another end on each rank: the longest duration."""
    found: dict[int, tuple[int, int]] = {}
    for bucket in buckets:
        high_ns, count = found.get(bucket.low_ns, (0, 0))
        found[bucket.low_ns] = max(high_ns, bucket.high_ns), count + bucket.count
    return [((low_ns, high_ns), count) for low_ns, (high_ns, count) in sorted(found.items())]


def note(calls: int, row: SizeRow | PercentilesRow) -> str:
    """1,200 calls; median 2.10 ms, 95 % 2.40 ms: the percentiles that there are
    calls enough for."""
    percentiles = (("median", row.p50_ns), ("95 %", row.p95_ns), ("99 %", row.p99_ns))
    known = [f"{name} {units.duration(ns)}" for name, ns in percentiles if ns is not None]
    return f"{units.counted(calls, 'call')}; {', '.join(known)}"
