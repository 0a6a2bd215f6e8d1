"""The search: which algorithm is fastest for each row of a kit, in launches of its replay.

1. One launch as launched: how long a pass takes, and which rows are worth it.
2. One launch with all candidates, in which messages are counted. A candidate that sends what the
   default sends is the default, or was not taken; one that the library refuses, or whose segments
   change nothing, is out, too.
3. Successive halving: in each launch the slower half of the candidates is out.
4. Several launches of what was launched and the one that is left. Each launch is one pair of
   numbers: runs differ by more than calls of a run do.

In each launch candidates take turns, call by call, under the arrivals of the job.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..base import ReportError, units
from ..compare.judge import Rules, fewest_pairs
from .algorithms import Library
from .evidence import Evidence, Raced, Tried, as_launched
from .launches import Launcher, Outcome, counted_first
from .rows import Row

OF_COUNTS, OF_HALVING = 3, 12  # turns of a candidate, at least and at most
OF_LAST = 100
HALVING_SHARE = 0.4  # of the time that is left after the counts
NEVER_NS = 1e18
SLACK = 4  # a launch may take so many times as long as expected, and a minute

DEFAULT, UNCHANGED, REFUSED, SLOWER = (
    "sends what the default sends: it is the default, or was not taken",
    "segments of this size change nothing",
    "the library refuses it here",
    "slower",
)


def cannot_search(version: str) -> ReportError:
    return ReportError(
        version or "this MPI library",
        "tune cannot search under it: its MPI_T has no variables "
        "of Open MPI's or MPICH's that choose algorithms",
    )


@dataclass
class Search:
    """say: prints a line of progress."""

    launcher: Launcher
    rows: Sequence[Row]
    budget_s: float
    kit: str
    rules: Rules
    say: Callable[[str], None]

    def run(self) -> Evidence:
        self.end_s = time.monotonic() + self.budget_s
        first = self.survey()
        if not first.library.family:
            raise cannot_search(first.library.version)
        self.evidence = Evidence(
            first.library.family,
            first.library.version,
            first.library.path,
            self.kit,
            self.launcher.launch,
            "no",
            launches=1,
        )
        self.evidence.rows = self.worth(first)
        if self.evidence.rows:
            self.count(first.library)
            self.halve()
            self.last()
        self.evidence.seconds = self.budget_s - self.left_s
        return self.evidence

    @property
    def left_s(self) -> float:
        return self.end_s - time.monotonic()

    def survey(self) -> Outcome:
        rows = [as_launched(row.call, row.bytes, row.ranks) for row in self.rows]
        found = self.launcher.run("", rows, 1, timeout_s=self.left_s)
        self.pass_s = found.pass_s
        self.launch_s = max(0.0, found.seconds - 2 * found.pass_s)
        return counted_first(found)

    def worth(self, first: Outcome) -> list[Raced]:
        """Transfer over the time of a pass: a bound of what a faster algorithm could save."""
        found = []
        for number, row in enumerate(self.rows):
            calls = first.of(number, 0)
            share = sum(call.transfer_ns for call in calls) * 1e-9 / self.pass_s
            share *= row.ranks / first.world
            text = f"{row.call} {units.size(row.bytes)} on {row.ranks} ranks"
            self.say(f"{text}: {units.share(share)} of a pass is transfer")
            if row._replace(share=share).is_worth:
                found.append(as_launched(row.call, row.bytes, row.ranks, share))
        self.calls = {(row.call, row.bytes, row.ranks): row.calls for row in self.rows}
        return sorted(found, key=lambda row: -row.share)

    def passes(self, rows: Sequence[Raced], wanted: int, most_s: float) -> int:
        """So many that each candidate has as many turns as wanted, or as fit into the time."""
        needed = max(
            math.ceil(wanted * len(row.left) / self.calls[row.call, row.bytes, row.ranks])
            for row in rows
        )
        return max(1, min(needed, int(most_s / self.pass_s) - 1))

    def launch(
        self, rows: Sequence[Raced], wanted: int, most_s: float, counting: bool = False
    ) -> Outcome:
        """Passes are timed again: algorithms differ."""
        passes = self.passes(rows, wanted, most_s)
        expected_s = self.launch_s + passes * self.pass_s
        found = self.launcher.run(
            self.evidence.family, rows, passes, counting, SLACK * expected_s + 60
        )
        self.evidence.launches += 1
        self.pass_s = found.pass_s
        return found

    def count(self, library: Library) -> None:
        for row in self.evidence.rows:
            row.tried = [Tried(each) for each in library.candidates(row.call, row.bytes)]
        found = self.launch(self.evidence.rows, OF_COUNTS, self.left_s / 4, True)
        self.evidence.counted = found.counted
        for number, row in enumerate(self.evidence.rows):
            for place, tried in enumerate(row.tried):
                tried.counts = found.counts(number, place)
                tried.fate = self.fate(
                    row, tried, any(call.is_refused for call in found.of(number, place))
                )
            self.say(
                f"{row.call} {units.size(row.bytes)}: {len(row.tried) - 1} candidates, "
                f"{len(row.tried) - len(row.left)} out by their messages ({found.counted})"
            )

    def fate(self, row: Raced, tried: Tried, is_refused: bool) -> str:
        candidate = tried.candidate
        if candidate.value < 0:
            return ""
        if is_refused or not tried.counts:
            return REFUSED
        if self.evidence.counted == "no":
            return "messages cannot be counted here: that it ran is not proven"
        if tried.counts == row.launched.counts:
            return DEFAULT
        whole = [each for each in row.tried if each.candidate.value == candidate.value]
        if candidate.segment and any(
            each is not tried and each.counts == tried.counts for each in whole
        ):
            return UNCHANGED
        return ""

    def open_rows(self, most: int) -> list[Raced]:
        """With more candidates than so many beside what was launched."""
        return [row for row in self.evidence.rows if len(row.left) > most + 1]

    def halve(self) -> None:
        half_s = HALVING_SHARE * self.left_s
        rounds = max(
            (math.ceil(math.log2(len(row.left))) for row in self.open_rows(1)),
            default=1,
        )
        while rows := self.open_rows(1):
            found = counted_first(self.launch(rows, OF_HALVING, half_s / rounds))
            for number, row in enumerate(rows):
                self.drop(row, number, found)
            left = sum(len(row.left) for row in rows)
            self.say(f"halving: {left - len(rows)} candidates left in {len(rows)} rows")

    def drop(self, row: Raced, number: int, found: Outcome) -> None:
        """The slower half, but what was launched; the last one, too, if that is slower."""
        own = row.left
        for place, tried in enumerate(own):
            tried.transfer_ns = found.transfer_ns(number, place) or NEVER_NS
        ordered = sorted(own[1:], key=lambda each: each.transfer_ns)
        kept = (len(ordered) + 1) // 2
        if kept == 1 and ordered[0].transfer_ns > row.launched.transfer_ns:
            kept = 0
        for tried in ordered[kept:]:
            tried.fate = SLOWER

    def last(self) -> None:
        """As many launches as fit into the time, at least as many as a verdict needs."""
        rows = self.open_rows(0)
        if not rows:
            return
        needed = fewest_pairs(self.rules.judge(True, len(rows)).level)
        launches = 0
        while launches < needed or (self.left_s > self.launch_s and launches < 2 * needed):
            most_s = self.left_s / max(1, needed - launches)
            found = counted_first(self.launch(rows, OF_LAST, most_s))
            launches += 1
            for number, row in enumerate(rows):
                pair = [found.transfer_ns(number, place) for place in (0, 1)]
                row.pairs.append([ns for ns in pair if ns is not None])
            self.say(f"last launches: {launches} of {needed} at least")
            if self.left_s <= 0 and launches < needed:
                self.say(f"--budget ended: {needed} launches are needed for a verdict")
                break
        for row in rows:
            if any(len(pair) != 2 for pair in row.pairs):
                row.pairs = []
