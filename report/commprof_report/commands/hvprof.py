"""Message sizes with fusion and without, calls and time per call.

The metrics that hvprof reported of Horovod (Awan, Jain, Chu, Subramoni, Panda: Communication Profiling and Characterization of Deep Learning
Workloads on Clusters with High-Performance Interconnects, Hot Interconnects 2019): the sizes of messages, how many calls carried them, and
the time per call, by the size classes of its papers: up to 128 KiB, 16 MiB, 32 MiB, 64 MiB, and above. MPI and NCCL stand beside each other;
the time of NCCL's operations is that on the device, where it is known.

Sizes are what each call carried. Only what reaches MPI or NCCL is seen: tensors that a framework has fused are one message. For the sizes
without fusion, run the job once more with fusion off (Horovod: HOROVOD_FUSION_THRESHOLD=0) and give that run with --unfused.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ..base import units
from ..calls.hvprof import HvprofRow, hvprof_rows
from ..display import page, tables
from ..display.tables import Column, volume_column
from ..run.run import Run
from ..summary.run_summary import RunSummary
from . import common, sizes

EXAMPLES = (("What Horovod fused, and into which sizes", "hvprof-report hvprof --unfused RUN2 RUN"),)
SEE_ALSO = ("advise", "sizes")
AS_RUN, UNFUSED = "as run", "unfused"
FUSION_OFF = "Horovod: HOROVOD_FUSION_THRESHOLD=0; PyTorch's DistributedDataParallel: the least bucket_cap_mb"


class Side(NamedTuple):
    """One of the runs that are looked at."""

    fusion: str
    world_size: int
    ranks: int
    rows: list[HvprofRow]


COLUMNS = (
    Column("call", lambda row: row.call, False),
    Column("size class", lambda row: units.size_range(row.bytes_low, row.bytes_high), False),
    Column("fusion", lambda row: row.fusion, False),
    Column("timed on", lambda row: sizes.timed_on(row), False),
    Column("rank", lambda row: str(row.rank)),
    Column("calls", lambda row: units.count(row.count)),
    Column("sizes", lambda row: units.count(row.sizes)),
    Column("least", lambda row: units.size(row.smallest_bytes), exact=lambda row: units.count(row.smallest_bytes)),
    Column("largest", lambda row: units.size(row.largest_bytes), exact=lambda row: units.count(row.largest_bytes)),
    volume_column("bytes", "message_bytes"),
    Column("time", lambda row: units.duration(row.total_ns)),
    Column("of call", lambda row: units.share(row.share_of_call)),
    Column("per call", lambda row: units.duration(row.mean_ns)),
    Column("p50", lambda row: units.duration(row.p50_ns)),
    Column("p99", lambda row: units.duration(row.p99_ns)),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    common.add_arguments(parser, by_memory_kind=True)
    parser.add_argument("--unfused", type=Path, metavar="RUN2", help="the same job, run with fusion off")
    parser.add_argument("--per-rank", action="store_true", help="one row a rank")


def run(arguments: argparse.Namespace) -> None:
    sides = [side(common.open_selected(arguments), AS_RUN, arguments.per_rank)]
    if arguments.unfused:
        other = argparse.Namespace(**{**vars(arguments), "run": [arguments.unfused]})
        sides.append(side(common.open_selected(other), UNFUSED, arguments.per_rank))
    if tables.is_for_scripts(arguments):
        tables.write_rows(arguments, merged(sides), HvprofRow._fields)
    else:
        for line in lines(sides, arguments.per_rank):
            common.print_line(line)


def side(run: Run, fusion: str, per_rank: bool = False) -> Side:
    rows = hvprof_rows(run.connection, fusion, per_rank)
    (ranks,) = run.connection.execute("SELECT count(*) FROM selected_rank").fetchone()
    return Side(fusion, run.world_size, ranks, rows)


def merged(sides: Sequence[Side]) -> list[HvprofRow]:
    """The rows of all runs, those of the same call and class below each other, in the order of the first."""
    rows = [row for side in sides for row in side.rows]
    place = {call: number for number, call in enumerate(dict.fromkeys((row.call, row.measure) for row in rows))}
    return sorted(rows, key=lambda row: (place[row.call, row.measure], -1 if row.rank is None else row.rank, row.bytes_low))


def best_timed(rows: Sequence[HvprofRow]) -> list[HvprofRow]:
    """Without the calls of NCCL on the host whose operations were timed on the device."""
    timed = {(row.fusion, row.call, row.bytes_low) for row in rows if row.measure == "device"}
    return [row for row in rows if row.measure != "call" or row.library == "MPI" or (row.fusion, row.call, row.bytes_low) not in timed]


def lines(sides: Sequence[Side], per_rank: bool) -> Iterator[str]:
    if not any(side.rows for side in sides):
        yield "no call of this run that fits the filters carries a message"
        return
    for each in sides:
        yield numbers_text(each)
    yield fusion_text(sides)
    yield ""
    rows = best_timed(merged(sides))
    absent = {"rank": not per_rank, "fusion": len(sides) == 1, "timed on": all(row.library == "MPI" for row in rows)}
    yield from tables.text_table([column for column in COLUMNS if not absent.get(column.head)], rows).splitlines()
    if any(row.is_start for row in rows):
        yield ""
        yield "MPI_I... calls only start an operation; `sizes --completion` has the time until it is over."


def numbers_text(each: Side) -> str:
    """MPI: 2,315 calls with a message, 579 a rank; 1.23 s a rank inside them. NCCL has a sentence of its own if it was used."""
    said = []
    for library in dict.fromkeys(row.library for row in each.rows):
        rows = [row for row in each.rows if row.library == library and row.measure == "call"]
        count, total_ns = sum(row.count for row in rows), sum(row.total_ns for row in rows)
        per_rank = f"{units.count(round(count / each.ranks))} a rank; {units.duration(total_ns / each.ranks)} a rank inside them"
        if library == "NCCL":
            device_ns = sum(row.total_ns for row in each.rows if row.measure == "device")
            per_rank += f" on the host, {units.duration(device_ns / each.ranks)} a rank on the device" if device_ns else " on the host"
        said.append(f"{library}: {units.counted(count, 'call')} that carry messages, {per_rank}")
    return f"{units.capital(each.fusion)}, {units.counted(each.world_size, 'rank')}. " + ". ".join(said or ["No call"]) + "."


def fusion_text(sides: Sequence[Side]) -> str:
    if len(sides) > 1:
        return "Sizes are what each call carried, in the one run and in the other."
    return f"Sizes are what each call carried, fused messages as one. To see them unfused, run with fusion off ({FUSION_OFF}), --unfused."


def hvprof_section(run: Run, answers: RunSummary) -> str:
    each = side(run, AS_RUN)
    if not each.rows:
        return ""
    sentence = f"By the size classes of hvprof's papers. {numbers_text(each)} {fusion_text([each])}"
    rows = best_timed(merged([each]))
    absent = {"rank", "fusion"} | ({"timed on"} if all(row.library == "MPI" for row in rows) else set())
    columns = [column for column in COLUMNS if column.head not in absent]
    return page.section("Calls by size class (hvprof)", sentence, page.table(columns, rows))
