"""A run in Prometheus's text exposition format (version 0.0.4), for a node exporter's text-file
collector."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from sqlite3 import Connection
from typing import NamedTuple

from ..base import query, units
from ..base.present import present
from ..base.query import Row
from ..calls.by_rank import rank_rows
from ..gpu import gpu_activity
from ..gpu.overlap import COMMUNICATING, COMPUTING, COPYING, IN_MPI
from ..late.judgement import Kind
from ..late.late_ranks import Late
from ..run.facts import fact_rows
from ..run.run import Run
from ..stuck.live import LiveRow, live_rows
from ..stuck.negotiating import NegotiatingRow, negotiating_rows

ESCAPES = str.maketrans({"\\": r"\\", '"': r"\""})

SQL = query.beside(__file__)


class Sample(NamedTuple):
    labels: dict[str, object]
    value: float
    suffix: str = ""  # of the name, in a histogram


def text(run: Run, late: Late) -> Iterator[str]:
    """The lines of the text. Labels that all samples of a run share come first. `late`: the run's
    analysis of waiting."""
    connection = run.connection
    ranks = live_rows(connection)
    totals = total_rows(connection)
    on_device = device_total_rows(connection)
    run_label: dict[str, object] = {"run": run.run_id}
    for name, kind, help_text, samples in (
        (
            "commprof_run_info",
            "gauge",
            "Program and MPI library of the run, always 1.",
            [_run_info(run)],
        ),
        (
            "commprof_up", "gauge",
            "1: the rank's process is seen to run, 0: it has ended; absent if unknown.", _up(ranks),
        ),
        ("commprof_rank_info", "gauge", "Host and state of the rank, always 1.", _rank_info(ranks)),
        (
            "commprof_wall_seconds", "gauge",
            "Time from MPI_Init to the end or the last sign of life.", _wall(ranks),
        ),
        (
            "commprof_counted_seconds", "gauge",
            "Part of the wall time during which calls were counted.", _counted(run),
        ),
        (
            "commprof_last_sign_timestamp_seconds", "gauge",
            "End or last sign of life, since 1970.", _last_sign(ranks),
        ),
        (
            "commprof_in_call_seconds", "gauge",
            "Time that the rank has been inside its current call.", _in_call(ranks),
        ),
        ("commprof_calls_total", "counter", "Calls.", _totals(totals, lambda row: row.count)),
        (
            "commprof_bytes_total", "counter", "Bytes passed to calls.",
            _totals(totals, lambda row: row.volume_bytes),
        ),
        (
            "commprof_time_seconds_total", "counter", "Time inside calls.",
            _totals(totals, lambda row: row.total_ns / 1e9),
        ),
        *_device_metrics(on_device),
        *_wait_metrics(late),
        *_negotiation_metrics(negotiating_rows(connection)),
        (
            "commprof_dropped_calls_total", "counter", "Calls that could not be recorded.",
            _unrecorded(run),
        ),
        (
            "commprof_gpu_seconds_total", "counter",
            "Traced time of GPUs, by what they did at the same time.", _gpu_busy(run),
        ),
        (
            "commprof_gpu_dropped_records_total", "counter",
            "Records of GPU activity that were lost.", _gpu_dropped(run),
        ),
        (
            "commprof_call_duration_seconds", "histogram", "Durations of single calls.",
            _durations(run),
        ),
    ):
        yield f"# HELP {name} {help_text}"
        yield f"# TYPE {name} {kind}"
        for sample in samples:
            labels = ",".join(
                f'{key}="{_escaped(value)}"'
                for key, value in {**run_label, **sample.labels}.items()
            )
            yield f"{name}{sample.suffix}{{{labels}}} {sample.value!r}"


def _escaped(value: object) -> str:
    return units.visible(str(value)).translate(ESCAPES)


def _run_info(run: Run) -> Sample:
    facts: dict[str, str] = {}
    for fact in fact_rows(run.connection):
        facts.setdefault(fact.key, fact.value)
    labels = {key: facts.get(key, "") for key in ("program", "mpi_abi", "commprof_version")}
    return Sample({**labels, "world_size": run.world_size}, 1)


def _up(ranks: Iterable[LiveRow]) -> Iterator[Sample]:
    for row in ranks:
        if row.state != "running or killed":
            yield Sample({"rank": row.rank}, int(row.state == "running"))


def _rank_info(ranks: Iterable[LiveRow]) -> Iterator[Sample]:
    for row in ranks:
        yield Sample({"rank": row.rank, "host": row.host or "", "state": row.state}, 1)


def _wall(ranks: Iterable[LiveRow]) -> Iterator[Sample]:
    for row in ranks:
        if row.wall_ns is not None:
            yield Sample({"rank": row.rank}, row.wall_ns / 1e9)


def _counted(run: Run) -> Iterator[Sample]:
    for row in rank_rows(run.connection):
        yield Sample({"rank": row.rank}, row.counted_ns / 1e9)


def _last_sign(ranks: Iterable[LiveRow]) -> Iterator[Sample]:
    for row in ranks:
        if row.last_unix_ns is not None:
            yield Sample({"rank": row.rank}, row.last_unix_ns / 1e9)


def _in_call(ranks: Iterable[LiveRow]) -> Iterator[Sample]:
    for row in ranks:
        if row.doing_is_inside and row.doing_ns is not None:
            labels: dict[str, object] = {
                "rank": row.rank, "call": row.doing_call,
                "communicator": row.doing_communicator or "",
            }
            yield Sample(labels, row.doing_ns / 1e9)


def _totals(totals: Iterable[Row], amount) -> Iterator[Sample]:
    for row in totals:
        labels = {"rank": row.rank, "call": row.call, "communicator": row.communicator}
        yield Sample(
            {**labels, "library": row.library} if row.library == "nccl" else labels, amount(row)
        )


def _device_metrics(rows: list[Row]) -> Iterator[tuple[str, str, str, list[Sample]]]:
    """Metrics of NCCL's operations on the device, if any was timed."""
    if rows:
        labels = [
            {
                "rank": row.rank, "call": row.call, "communicator": row.communicator,
                "library": "nccl",
            }
            for row in rows
        ]
        counts = [Sample(own, row.count) for own, row in zip(labels, rows)]
        times = [Sample(own, row.total_ns / 1e9) for own, row in zip(labels, rows)]
        yield (
            "commprof_device_operations_total", "counter",
            "NCCL's operations that were timed on the device.", counts,
        )
        yield (
            "commprof_device_time_seconds_total", "counter",
            "Time of these operations on the device.", times,
        )


def _wait_metrics(late: Late) -> Iterator[tuple[str, str, str, list[Sample]]]:
    """Metrics of waiting, if any call was split; of its causes, unless a thread that negotiates
    hides them."""
    if late.run.verdict is Kind.NONE:
        return
    waited = [Sample({"rank": row.rank}, row.wait_ns / 1e9) for row in late.ranks]
    yield (
        "commprof_wait_seconds", "gauge",
        "Part of the time inside calls in which the rank waited for others, as far as it is known.",
        waited,
    )
    if not late.is_negotiated:
        caused = [Sample({"rank": row.rank}, row.caused_ns / 1e9) for row in late.ranks]
        yield (
            "commprof_caused_wait_seconds", "gauge",
            "Waiting of other ranks of which the rank is the root cause.", caused,
        )
        unknown = [Sample({}, late.run.unknown_cause_ns / 1e9)]
        yield (
            "commprof_unknown_cause_wait_seconds", "gauge",
            "Waiting of all ranks whose root cause is not known.", unknown,
        )
    coverage = [Sample({}, present(late.run.coverage))]
    yield (
        "commprof_wait_coverage_ratio", "gauge",
        "Share of the time inside MPI of which it is known whether ranks waited.", coverage,
    )


def _negotiation_metrics(
    rows: list[NegotiatingRow],
) -> Iterator[tuple[str, str, str, list[Sample]]]:
    """Metrics of ranks that negotiate, as Horovod's, if any does. Threads of a rank on a
    communicator are added up."""
    for name, help_text, amount in (
        ("rounds", "Rounds in which ranks agreed on what to sum.", lambda row: row.rounds),
        (
            "rounds_ahead", "Rounds in which the rank offered more than all agreed on.",
            lambda row: row.rounds_ahead,
        ),
        (
            "ahead_seconds", "Time from such a round to the next: it waited for others.",
            lambda row: row.ahead_ns / 1e9,
        ),
    ):
        sums: dict[tuple[int, str], float] = {}
        for row in rows:
            key = row.rank, row.communicator
            sums[key] = sums.get(key, 0) + amount(row)
        if rows:
            yield f"commprof_negotiation_{name}_total", "counter", help_text, [
                Sample({"rank": rank, "communicator": communicator}, value)
                for (rank, communicator), value in sums.items()
            ]


def _unrecorded(run: Run) -> Iterator[Sample]:
    for row in rank_rows(run.connection):
        yield Sample({"rank": row.rank}, row.dropped_calls + row.interrupted_calls)


def _gpu_busy(run: Run) -> Iterator[Sample]:
    """For each device the time in each combination of states; they add up to the traced time."""
    numbers = {
        (row.rank, row.device): row.number for row in gpu_activity.device_facts(run.connection)
    }
    states = {
        "computing": COMPUTING, "communicating": COMMUNICATING, "copying": COPYING,
        "in_mpi": IN_MPI,
    }
    for row in gpu_activity.busy_rows(run.connection):
        labels = {state: int(bool(row.state & bit)) for state, bit in states.items()}
        yield Sample(
            {"rank": row.rank, "device": numbers.get((row.rank, row.device), ""), **labels},
            row.ns / 1e9,
        )


def _gpu_dropped(run: Run) -> Iterator[Sample]:
    for row in gpu_activity.rank_rows(run.connection):
        if row.state not in gpu_activity.UNSEEN:
            yield Sample({"rank": row.rank}, row.dropped_records)


def _durations(run: Run) -> Iterator[Sample]:
    """For each rank and call its buckets, sum and count, adjacent."""
    for (rank, call), rows in groupby(
        duration_rows(run.connection), lambda row: (row.rank, row.call)
    ):
        for row in rows:
            bound = "+Inf" if row.bound_ns is None else repr(row.bound_ns / 1e9)
            yield Sample({"rank": rank, "call": call, "le": bound}, row.count, "_bucket")
        yield Sample({"rank": rank, "call": call}, row.total_ns / 1e9, "_sum")
        yield Sample({"rank": rank, "call": call}, row.count, "_count")


def total_rows(connection: Connection) -> list[Row]:
    return list(SQL.rows(connection, "totals"))


def device_total_rows(connection: Connection) -> list[Row]:
    return list(SQL.rows(connection, "device_totals"))


def duration_rows(connection: Connection) -> list[Row]:
    return list(SQL.rows(connection, "duration_buckets"))
