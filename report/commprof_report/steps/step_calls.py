"""The calls of a mean step: how often, with how many bytes, and for how long each is made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from sqlite3 import Connection

from ..base import query, units
from ..base.columns import Columns, Ints, TextInts, found_in, grouped, np, read
from ..base.field import Field, Row, row_type, text
from ..base.units import NO_VALUE, duration, share, size, three_digits
from .boundaries import Boundaries
from .sampled_calls import SampledCalls
from .spent import GROUP, CallTimes

SQL = query.beside(__file__)

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


@dataclass(frozen=True)
class CallSums:
    """The time that complete steps after the warm-up spend in each call on each communicator."""

    sampled: SampledCalls
    times: CallTimes
    rank: Ints  # of each row of times
    label: TextInts
    steps: Counter[int]  # by rank
    step_ns: int
    overlaps: list[query.Row]

    def rows(self, is_driven: bool, families: Mapping[str, str] | None = None) -> list[Row]:
        """families: names of communicators, by label; those of one name share rows."""
        names, texts = families or {}, self.sampled.texts
        completion_ns: Counter[tuple[str, str]] = Counter()
        blocked_ns: Counter[tuple[str, str]] = Counter()
        for one in self.overlaps:
            key = one.call, names.get(one.communicator, one.communicator)
            completion_ns[key] += one.completion_ns
            blocked_ns[key] += one.blocked_ns
        named = texts.all([names.get(text, text) for text in texts.texts])[self.label]
        order, groups = grouped(self.times.name, named, self.times.is_control)
        rows = []
        for own_rows in np.split(order, groups.first[1:]) if len(order) else ():
            own, first = self.times.take(own_rows), own_rows[0]
            call, label = texts.texts[own.name[0]], texts.texts[named[first]]
            family, library = _family(self.sampled, call, bool(own.is_control[0]))
            makers = {*self.rank[own_rows].tolist()}
            steps = sum(self.steps[rank] for rank in makers)
            count, message_bytes, total_ns, driving_ns = (
                int(column.sum())
                for column in (own.calls, own.bytes, own.total_ns, own.driving_ns)
            )
            whole_ns = completion_ns[call, label]
            labels = {texts.texts[each] for each in self.label[own_rows].tolist()}
            rows.append(
                StepCallRow(
                    call, _shown(labels, label, names), family, count / steps,
                    message_bytes / steps, total_ns / steps,
                    driving_ns / steps if is_driven and library == "mpi" else None,
                    total_ns / (self.step_ns or 1),
                    max(0.0, 1 - blocked_ns[call, label] / whole_ns) if whole_ns else None,
                    library, len(makers),
                )
            )
        return sorted(rows, key=lambda row: (-row.share_of_step, row.call, row.communicator))


def _shown(labels: set[str], name: str, names: Mapping[str, str]) -> str:
    """The label of the communicator, or the name of several, and how many of them there are."""
    if len(labels) >= sum(each == name for each in names.values()):
        return name
    return next(iter(labels)) if len(labels) == 1 else f"{len(labels)} of {name}"


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
    steps, overlaps = Counter(whole.world_rank.tolist()), list(SQL.rows(connection, "step_overlap"))
    return CallSums(sampled, times, rank, label, steps, int(whole.step_ns.sum()), overlaps)


def _family(sampled: SampledCalls, call: str, is_control: bool) -> tuple[str, str]:
    """The family and the library."""
    if call == GROUP:
        return "group", "nccl"
    about = sampled.known.calls.get(call)
    family, library = (about.family, about.library) if about else ("unknown", "mpi")
    return NEGOTIATION if is_control else family, library
