"""The calls of a mean step: how often, with how many bytes, and for how long each is made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from sqlite3 import Connection
from typing import NamedTuple

from ..base import query, units
from ..base.arrays import np
from ..base.columns import Columns, found_in, grouped, read
from ..base.field import Field, Row, row_type, text
from ..base.units import NO_VALUE, duration, share, size, three_digits
from .boundaries import Boundaries
from .sampled_calls import SampledCalls
from .spent import GROUP, CallTimes

SQL = query.beside(__file__)

CallKey = tuple[str, str, str, str]  # call, label of the communicator, family of calls, library
NEGOTIATION = "negotiation"  # in place of a call's family: control of a thread that negotiates
CALL = (
    Field(
        "call",
        "sorted by time; family `negotiation`: control collectives of a thread that "
        "[negotiates](#traffic)",
        "In one step", is_number=False,
        of_row=lambda row: row.call + ", negotiation" * (row.family == NEGOTIATION),
    ),
    text("communicator", "", "communicator", 40),
    Field("family", ""),
    Field(
        "count",
        "calls, sum of message sizes and time in a step: means "
        "over complete steps after the warm-up, and over the ranks that make the call",
        "calls", three_digits,
    ),
    Field("bytes", "", "bytes", lambda value: size(value or None)),
    Field(
        "total_ns", "", "time",
        of_row=lambda row: duration(row.total_ns) if row.total_ns or row.library == "mpi"
        else NO_VALUE,
    ),
    Field(
        "exposed_ns",
        "the part of total_ns on the driving thread; null: not `is_driven`, or NCCL's", "exposed",
    ),
    Field(
        "share_of_step", "the sum of its time over all ranks / the sum of their steps", "of step",
        share,
    ),
    Field(
        "overlap", "1 - blocked / completion time of nonblocking operations, of the whole run",
        "overlap", share,
    ),
    Field(
        "library", "`mpi`; `nccl`: total_ns is on the device", "timed on", is_number=False,
        of_row=lambda row: "host" if row.library == "mpi" else "device" if row.total_ns
        else NO_VALUE,
    ),
    Field("ranks", "the number of ranks that make the call", "ranks"),
)
StepCallRow = row_type("StepCallRow", CALL)


class Sum(NamedTuple):
    """Over ranks and steps."""

    makers: set[int]  # the ranks that make the call
    calls: int
    bytes: int
    total_ns: int
    driving_ns: int


@dataclass(frozen=True)
class CallSums:
    """The time that complete steps after the warm-up spend in each call on each communicator."""

    sums: dict[CallKey, Sum]
    steps: dict[int, int]  # by rank
    step_ns: int
    overlaps: list[query.Row]

    def rows(self, is_driven: bool, families: Mapping[str, str] | None = None) -> list[Row]:
        """families: names of communicators, by label; those of one name share rows."""
        names = families or {}
        sharing: dict[CallKey, list[CallKey]] = {}
        for call, label, family, library in self.sums:
            sharing.setdefault((call, names.get(label, label), family, library), []).append(
                (call, label, family, library)
            )
        completion_ns: dict[tuple[str, str], float] = {}
        blocked_ns: dict[tuple[str, str], float] = {}
        for one in self.overlaps:
            key = one.call, names.get(one.communicator, one.communicator)
            completion_ns[key] = completion_ns.get(key, 0) + one.completion_ns
            blocked_ns[key] = blocked_ns.get(key, 0) + one.blocked_ns
        rows = []
        for (call, label, family, library), own in sharing.items():
            parts = [self.sums[key] for key in own]
            makers = {rank for part in parts for rank in part.makers}
            steps = sum(self.steps[rank] for rank in makers)
            count, message_bytes, total_ns, driving_ns = (
                sum(column) for column in list(zip(*parts))[1:]
            )
            whole_ns = completion_ns.get((call, label))
            rows.append(
                StepCallRow(
                    call, _shown([key[1] for key in own], label, names), family, count / steps,
                    message_bytes / steps, total_ns / steps,
                    driving_ns / steps if is_driven and library == "mpi" else None,
                    total_ns / (self.step_ns or 1),
                    max(0.0, 1 - blocked_ns[call, label] / whole_ns) if whole_ns else None,
                    library, len(makers),
                )
            )
        return sorted(rows, key=lambda row: (-row.share_of_step, row.call, row.communicator))


def _shown(labels: list[str], name: str, names: Mapping[str, str]) -> str:
    """The label of the communicator, or the name of several, and how many of them there are."""
    of_family, known = sum(each == name for each in names.values()), len(set(labels))
    if known >= of_family:
        return name
    return labels[0] if known == 1 else f"{known} of {name}"


def call_sums(
    connection: Connection, sampled: SampledCalls, rows: Boundaries, times: CallTimes
) -> CallSums:
    texts = sampled.texts
    is_whole = rows.is_complete & ~rows.is_warm_up
    times, whole = times.take(is_whole[times.row]), rows.take(is_whole)
    rank = rows.world_rank[times.row]
    labels = read(Columns, SQL.run(connection, "step_labels"), texts)
    place = found_in((rank, times.communicator), (labels.world_rank, labels.communicator))
    label = np.append(labels.label, texts.number(units.NO_VALUE))[place]
    order, groups = grouped(times.name, label, times.is_control)
    columns = (
        groups.sum(column[order]).tolist()
        for column in (times.calls, times.bytes, times.total_ns, times.driving_ns)
    )
    first, ranks = order[groups.first], np.split(rank[order], groups.first[1:])
    sums = {
        _key(sampled, texts.texts[times.name[row]], texts.texts[label[row]], times.is_control[row]):
        Sum({*makers.tolist()}, *own)
        for row, makers, *own in zip(first.tolist(), ranks, *columns)
    }
    steps = Counter(whole.world_rank.tolist())
    overlap_rows = list(SQL.rows(connection, "step_overlap"))
    return CallSums(sums, steps, int(whole.step_ns.sum()), overlap_rows)


def _key(sampled: SampledCalls, call: str, label: str, is_control: bool) -> CallKey:
    about = sampled.known.calls.get(call)
    family, library = (about.family, about.library) if about else ("unknown", "mpi")
    if call == GROUP:
        family, library = "group", "nccl"
    return call, label, NEGOTIATION if is_control else family, library
