"""The negotiation of a framework such as Horovod: a background thread that agrees with the other ranks, in every cycle, on what to send.

It is recognised by its calls, not by a name: a thread other than the main one makes small collectives again and again at regular times, many of
them without a bulk collective before the next, and bulk collectives now and then. A round begins with each call of the most frequent of the
small collectives. docs/SCHEMA.md has the definition.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter
from sqlite3 import Connection
from statistics import median
from typing import NamedTuple

from ..base import query
from .traffic import traffic_classify

SQL = query.beside(__file__)

FEWEST_ROUNDS = 50
FEWEST_IDLE = 0.25  # share of the rounds without bulk
ALIKE = 1.25  # times from a round without bulk to the next are alike up to this ratio
REGULAR = 0.25  # share of them that must be alike; 0.08 at random times


class Negotiation(NamedTuple):
    """Of the lowest rank with such a thread; all ranks take part in each round."""

    call: str  # with which each round begins
    world_rank: int
    rounds: int  # sampled
    cycle_ns: float  # the usual time from the begin of a round without bulk to the next round
    idle_share: float  # share of the rounds without bulk
    begins_ns: list[int]  # of the rounds, in the rank's own time
    bulk_bytes: int  # of the whole run, a rank, on threads other than the main one
    bulk_ns: float


class NegotiatingRow(NamedTuple):
    """negotiating_calls.sql"""

    world_rank: int
    thread: int
    identity: str
    sequence: int
    call: str
    start_ns: int
    is_bulk: int


class Round(NamedTuple):
    begin_ns: int
    next_ns: int | None  # begin of the next round; None: samples in between are missing
    has_bulk: bool


def negotiation(connection: Connection) -> Negotiation | None:
    """The run must have been opened with samples."""
    traffic_classify(connection)
    rows = map(NegotiatingRow._make, SQL.run(connection, "negotiating_calls"))
    for _, of_thread in groupby(rows, key=attrgetter("world_rank", "thread")):
        found = _recognise(list(of_thread))
        if found:
            bulk_bytes, bulk_ns = SQL.run(connection, "background_bulk").fetchone()
            return found._replace(bulk_bytes=bulk_bytes, bulk_ns=bulk_ns)
    return None


def _recognise(rows: Sequence[NegotiatingRow]) -> Negotiation | None:
    small = Counter((row.identity, row.call) for row in rows if not row.is_bulk)
    if not small or not any(row.is_bulk for row in rows):
        return None
    ((first, count),) = small.most_common(1)
    if count < FEWEST_ROUNDS:
        return None
    rounds = _rounds(rows, first)
    idle = [each.next_ns - each.begin_ns for each in rounds if each.next_ns is not None and not each.has_bulk]
    idle_share = sum(not each.has_bulk for each in rounds) / len(rounds)
    if len(idle) < FEWEST_ROUNDS or idle_share < FEWEST_IDLE or len(_alike(idle)) < REGULAR * len(idle):
        return None
    return Negotiation(first[1], rows[0].world_rank, len(rounds), median(_alike(idle)), idle_share, [each.begin_ns for each in rounds], 0, 0.0)


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


def _alike(times: Sequence[int]) -> list[int]:
    """The most times that are alike."""
    ordered = sorted(times)
    ends = [bisect_right(ordered, ALIKE * time) for time in ordered]
    first = max(range(len(ordered)), key=lambda place: ends[place] - place)
    return ordered[first : ends[first]]
