"""A run in Prometheus's text exposition format (version 0.0.4), for a node exporter's text-file
collector."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable, Iterator
from typing import Any, Callable

from ..base import (
    present,
    summarize,
    units,
)
from ..calls import (
    DEVICE_TOTALS,
    TOTALS,
    rank_rows,
)
from ..gpu import gpu_activity
from ..late import (
    Kind,
    Late,
)
from ..run import cells_of, fact_rows, Run
from ..stuck.doing import negotiating_rows


NEGOTIATIONS = (
    ("rounds", "Rounds in which ranks agreed on what to sum.", lambda row: row.rounds),
    (
        "rounds_ahead",
        "Rounds in which the rank offered more than all agreed on.",
        lambda row: row.rounds_ahead,
    ),
    (
        "ahead_seconds",
        "Time from such a round to the next: it waited for others.",
        lambda row: _seconds(row.ahead_ns),
    ),
)
ESCAPES = str.maketrans({"\\": r"\\", '"': r"\""})

Sample = namedtuple("Sample", "labels value")  # labels: by name


def text(run: Run, late: Late | None) -> Iterator[str]:
    """The lines of the text; a metric without samples has none. Labels that all samples of a run
    share come first. `late`: the run's analysis of waiting."""
    connection = run.connection
    ranks = rank_rows(connection)
    negotiating = negotiating_rows(connection)
    totals, on_device = (summarize(cells_of(connection), view) for view in (TOTALS, DEVICE_TOTALS))
    of_call = {"call": "call", "communicator": "communicator", "library": "library"}
    run_label: dict[str, object] = {"run": run.run_id}
    split = late if late and late.run.verdict is not Kind.NONE else None
    has_causes = split and not split.is_negotiated  # a thread that negotiates hides them
    facts = {fact.key: fact.value for fact in reversed(fact_rows(connection))}
    about = {key: facts.get(key, "") for key in ("program", "mpi_abi", "commprof_version")}
    for name, kind, help_text, samples in (
        (
            "commprof_run_info",
            "gauge",
            "Program and MPI library of the run, always 1.",
            [Sample({**about, "world_size": run.world_size}, 1)],
        ),
        (
            "commprof_up",
            "gauge",
            "1: the rank's process is seen to run, 0: it has ended; absent if unknown.",
            _of(ranks, lambda row: {"running": 1, "running or killed": None}.get(row.state, 0)),
        ),
        (
            "commprof_rank_info",
            "gauge",
            "Host and state of the rank, always 1.",
            _of(ranks, lambda row: 1, host="host", state="state"),
        ),
        (
            "commprof_wall_seconds",
            "gauge",
            "Time from MPI_Init to the end or the last sign of life.",
            _of(ranks, lambda row: _seconds(row.wall_ns)),
        ),
        (
            "commprof_counted_seconds",
            "gauge",
            "Part of the wall time during which calls were counted.",
            _of(ranks, lambda row: _seconds(row.counted_ns)),
        ),
        (
            "commprof_last_sign_timestamp_seconds",
            "gauge",
            "End or last sign of life, since 1970.",
            _of(ranks, lambda row: _seconds(row.last_unix_ns)),
        ),
        (
            "commprof_in_call_seconds",
            "gauge",
            "Time that the rank has been inside its current call.",
            _of(
                ranks,
                lambda row: _seconds(row.doing_ns) if row.doing_is_inside else None,
                call="doing_call",
                communicator="doing_communicator",
            ),
        ),
        (
            "commprof_calls_total",
            "counter",
            "Calls.",
            _of(totals, lambda row: row.count, **of_call),
        ),
        (
            "commprof_bytes_total",
            "counter",
            "Bytes passed to calls.",
            _of(totals, lambda row: row.volume_bytes, **of_call),
        ),
        (
            "commprof_time_seconds_total",
            "counter",
            "Time inside calls.",
            _of(totals, lambda row: _seconds(row.total_ns), **of_call),
        ),
        (
            "commprof_device_operations_total",
            "counter",
            "NCCL's operations that were timed on the device.",
            _of(on_device, lambda row: row.count, **of_call),
        ),
        (
            "commprof_device_time_seconds_total",
            "counter",
            "Time of these operations on the device.",
            _of(on_device, lambda row: _seconds(row.total_ns), **of_call),
        ),
        (
            "commprof_wait_seconds",
            "gauge",
            "Part of the time inside calls in which the rank waited for others, as far as it is "
            "known.",
            _of(split.ranks if split else (), lambda row: _seconds(row.wait_ns)),
        ),
        (
            "commprof_caused_wait_seconds",
            "gauge",
            "Waiting of other ranks of which the rank is the root cause.",
            _of(split.ranks if split and has_causes else (), lambda row: _seconds(row.caused_ns)),
        ),
        (
            "commprof_unknown_cause_wait_seconds",
            "gauge",
            "Waiting of all ranks whose root cause is not known.",
            [Sample({}, split.run.unknown_cause_ns / 1e9)] if split and has_causes else [],
        ),
        (
            "commprof_wait_coverage_ratio",
            "gauge",
            "Share of the time inside MPI of which it is known whether ranks waited.",
            [Sample({}, present(split.run.coverage))] if split else [],
        ),
        *(
            (
                f"commprof_negotiation_{name}_total",
                "counter",
                text,
                _of(negotiating, amount, communicator="communicator", thread="thread"),
            )
            for name, text, amount in NEGOTIATIONS
            if negotiating
        ),
        (
            "commprof_dropped_calls_total",
            "counter",
            "Calls that could not be recorded.",
            _of(ranks, lambda row: row.dropped_calls + row.interrupted_calls),
        ),
        (
            "commprof_gpu_dropped_records_total",
            "counter",
            "Records of GPU activity that were lost.",
            _of(
                gpu_activity.rank_rows(connection),
                lambda row: None if row.state in gpu_activity.UNSEEN else row.dropped_records,
            ),
        ),
    ):
        for number, sample in enumerate(samples):
            if not number:
                yield f"# HELP {name} {help_text}"
                yield f"# TYPE {name} {kind}"
            labels = ",".join(
                f'{key}="{units.visible(str(value)).translate(ESCAPES)}"'
                for key, value in {**run_label, **sample.labels}.items()
            )
            yield f"{name}{{{labels}}} {sample.value!r}"


def _seconds(ns: int | None) -> float | None:
    return None if ns is None else ns / 1e9


def _of(
    rows: Iterable[Any], value: Callable[[Any], float | None], **labels: str
) -> Iterator[Sample]:
    """A sample of each row whose value is known. labels: the columns that they show; MPI is not
    named as a library."""
    for row in rows:
        if (amount := value(row)) is not None:
            shown = {label: getattr(row, key) for label, key in {"rank": "rank", **labels}.items()}
            yield Sample(
                {
                    label: "" if text is None else text
                    for label, text in shown.items()
                    if (label, text) != ("library", "mpi")
                },
                amount,
            )
