"""The negotiation of a framework such as Horovod: a background thread that agrees with the other
ranks, in every cycle, on what to send.

It is recognised by its calls, not by a name: a thread other than the main one that reduces bits
(MPI_BAND, MPI_BOR) or gathers bytes again and again (traffic_class.sql). A round begins with each
call of the most frequent of its control collectives. docs/SCHEMA.md has the definition.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from sqlite3 import Connection
from statistics import median
from typing import NamedTuple

from ..base import query
from ..base.thresholds import threshold, whole
from ..run.traffic_class import traffic_classify

SQL = query.beside(__file__)

FEWEST_IDLE = whole("calls.idle-rounds")
ALIKE = threshold("calls.alike")
REGULAR = threshold("calls.regular")


class Negotiation(NamedTuple):
    """Rounds are those of the lowest rank with such a thread; all ranks take part in each round.
    Times and bytes are of the whole run, as means over the ranks that have such a thread."""

    call: str  # with which each round begins
    world_rank: int
    rounds: int  # sampled
    # the usual time from the begin of a round without bulk to the next round; None: they are not
    # alike
    cycle_ns: float | None
    idle_share: float  # share of the rounds without bulk
    begins_ns: list[int]  # of the rounds, in the rank's own time
    bulk_bytes: int
    bulk_ns: float
    control_ns: float


class NegotiatingRow(NamedTuple):
    """negotiating_calls.sql"""

    world_rank: int
    thread: int
    identity: str
    sequence: int
    call: str
    start_ns: int
    is_bulk: int


class TimeRow(NamedTuple):
    """negotiated_time.sql"""

    bulk_bytes: int
    bulk_ns: float
    control_ns: float


class Round(NamedTuple):
    begin_ns: int
    next_ns: int | None  # begin of the next round; None: samples in between are missing
    has_bulk: bool


def negotiation(connection: Connection) -> Negotiation | None:
    """The run must have been opened with samples."""
    traffic_classify(connection)
    rows = SQL.ask(connection, "negotiating_calls", NegotiatingRow)
    kinds = Counter((row.identity, row.call) for row in rows if not row.is_bulk)
    if not kinds:
        return None
    ((first, _),) = kinds.most_common(1)
    rounds = _rounds(rows, first)
    begins_ns = [each.begin_ns for each in rounds]
    idle_share = sum(not each.has_bulk for each in rounds) / len(rounds)
    (spent,) = SQL.ask(connection, "negotiated_time", TimeRow)
    return Negotiation(
        first[1], rows[0].world_rank, len(rounds), usual_cycle_ns(rounds), idle_share, begins_ns,
        *spent,
    )


def _rounds(rows: Iterable[NegotiatingRow], first: tuple[str, str]) -> list[Round]:
    rounds: list[Round] = []
    latest: dict[str, int] = {}
    is_whole = True
    for row in rows:
        is_whole &= row.sequence == latest.get(row.identity, row.sequence - 1) + 1
        latest[row.identity] = row.sequence
        if row.is_bulk and rounds:
            rounds[-1] = rounds[-1]._replace(has_bulk=True)
        elif (row.identity, row.call) == first and not row.is_bulk:
            if rounds and is_whole:
                rounds[-1] = rounds[-1]._replace(next_ns=row.start_ns)
            rounds.append(Round(row.start_ns, None, False))
            is_whole = True
    return rounds


def usual_cycle_ns(rounds: Iterable[Round]) -> float | None:
    idle = sorted(
        each.next_ns - each.begin_ns for each in rounds
        if each.next_ns is not None and not each.has_bulk
    )
    alike = _alike(idle)
    return median(alike) if len(idle) >= FEWEST_IDLE and len(alike) >= REGULAR * len(idle) else None


def _alike(ordered: Sequence[int]) -> Sequence[int]:
    """The most times that are alike."""
    ends = [bisect_right(ordered, ALIKE * time) for time in ordered]
    first = max(range(len(ordered)), key=lambda place: ends[place] - place, default=0)
    return ordered[first : ends[first]] if ordered else ordered
