"""The search: which algorithm is fastest for each row of a kit, in launches of its replay.

1. One launch as launched: how long a pass takes, and which rows are worth it.
2. One launch with all candidates, in which messages are counted. A candidate that sends what the
   default sends is the default, or was not taken; one that the library refuses, or whose segments
   change nothing, is out, too.
3. Successive halving: in each launch the slower half of the candidates is out.
4. Several launches of what was launched and the one that is left. Each launch is one pair of
   numbers: runs differ by more than calls of a run do.

In each launch of commprof-replay candidates take turns, call by call, under the arrivals of the
job. A library that cannot switch has a launch for each candidate in its turn.
"""

from __future__ import annotations

import math
import shlex
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

from ..base import ReportError, gathered, units
from ..compare.judge import Rules, fewest_pairs
from ..experiment.plan import PLACEHOLDER, ended
from .evidence import (
    Evidence,
    Library,
    Raced,
    SWITCHING,
    Tried,
    as_launched,
    environment,
    library_read,
    segments_name,
    variable_name,
)
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
        "tune cannot search under it: it is not known how its algorithms are chosen (it is not "
        "Intel MPI, and its MPI_T has none of the variables of Open MPI and MPICH)",
    )


@dataclass
class Search:
    """say: prints a line of progress. unproven: candidates may stay whose messages cannot be
    counted."""

    launcher: Launcher
    rows: Sequence[Row]
    budget_s: float
    kit: str
    rules: Rules
    say: Callable[[str], None]
    unproven: bool = False

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
            layout=first.layout,
        )
        self.launcher.separate |= first.library.family not in SWITCHING
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
            share *= row.ranks / sum(first.layout)
            text = f"{row.call} {units.size(row.bytes)} on {row.ranks} ranks"
            self.say(f"{text}: {units.share(share)} of a pass is transfer")
            if row._replace(share=share).is_worth:
                found.append(as_launched(row.call, row.bytes, row.ranks, share))
                found[-1].nodes = first.nodes.get(number, 0)
        self.calls = {(row.call, row.bytes, row.ranks): row.calls for row in self.rows}
        return sorted(found, key=lambda row: -row.share)

    def passes(self, rows: Sequence[Raced], wanted: int, most_s: float) -> int:
        """So many that each candidate has as many turns as wanted, or as fit into the time."""
        launches = self.launcher.launches(rows)
        needed = max(
            wanted * len(row.left) / self.calls[row.call, row.bytes, row.ranks] for row in rows
        )
        each_s = most_s / launches
        return max(1, min(math.ceil(needed / launches), int(each_s / self.pass_s) - 1))

    def launch(
        self, rows: Sequence[Raced], wanted: int, most_s: float, counting: bool = False
    ) -> Outcome:
        """Passes are timed again: algorithms differ."""
        passes = self.passes(rows, wanted, most_s)
        expected_s = self.launch_s + passes * self.pass_s
        found = self.launcher.run(
            self.evidence.family, rows, passes, counting, SLACK * expected_s + 60
        )
        self.evidence.launches += self.launcher.launches(rows)
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
            return (
                ""
                if self.unproven
                else "messages cannot be counted here: that it ran is not proven"
            )
        if tried.counts == row.tried[0].counts:
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
        if kept == 1 and ordered[0].transfer_ns > row.tried[0].transfer_ns:
            kept = 0
        for tried in ordered[kept:]:
            tried.fate = SLOWER

    def last(self) -> None:
        """As many launches as fit into the time, at least as many as a verdict needs."""
        rows = self.open_rows(0)
        if not rows:
            return
        needed = fewest_pairs(self.rules.of_one(len(rows), True).level)
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


SETTINGS = "OMPI_MCA_coll_tuned_use_dynamic_rules=1"  # harmless to other libraries
COUNTING = "OMPI_MCA_pml_monitoring_enable=1"
MOST_CALLS = 4_000_000  # lines of a rank


class Call(NamedTuple):
    """A collective, by all ranks. counts: messages and bytes that each rank has sent, in order."""

    row: int
    place: int  # of the candidate
    transfer_ns: int
    is_refused: bool
    counts: tuple[tuple[int, int], ...]


class Outcome(NamedTuple):
    """pass_s: how long a pass took that is not the first, from its first call to its last. layout:
    ranks of each node, most first. nodes: by row, as in Raced."""

    library: Library
    counted: str
    calls: list[Call]
    seconds: float
    pass_s: float
    layout: list[int]
    nodes: dict[int, int]

    def of(self, row: int, place: int) -> list[Call]:
        return [call for call in self.calls if (call.row, call.place) == (row, place)]

    def transfer_ns(self, row: int, place: int) -> float | None:
        """The median of a call."""
        found = [call.transfer_ns for call in self.of(row, place) if not call.is_refused]
        return median(found) if found else None

    def counts(self, row: int, place: int) -> list[list[int]]:
        """The messages that most calls sent: those of other calls may be on their way."""
        found = Counter(call.counts for call in self.of(row, place))
        return [list(each) for each in found.most_common(1)[0][0]] if found else []


def words_of(family: str, row: Raced) -> str:
    """commprof-replay --race: the candidates that are left take turns."""
    names = ("-", "-")
    if len(row.left) > 1:
        names = variable_name(family, row.call), segments_name(family, row.call)
    words = (each.candidate.word for each in row.left)
    return ",".join(map(str, (row.call, row.bytes, row.ranks, *names, *words)))


@dataclass
class Launcher:
    """launch: the launcher's command, {} in it stands for commprof-replay. before: shell commands
    that are run first. separate: each candidate has launches of its own."""

    launch: str
    replay: str
    kit: Path
    folder: Path
    before: str = ""
    separate: bool = False
    runs: int = 0

    def launches(self, rows: Sequence[Raced]) -> int:
        """In each of which a candidate of a row, or all of them, have turns."""
        return max(len(row.left) for row in rows) if self.separate else 1

    def run(
        self,
        family: str,
        rows: Sequence[Raced],
        passes: int,
        counting: bool = False,
        timeout_s: float | None = None,
    ) -> Outcome:
        """The first pass, in which connections are made, has counts, but no times. Separate
        launches are in the order A B C, and C B A the next time."""
        if not self.separate:
            words = [words_of(family, row) for row in rows]
            return self.launched(words, {}, passes, counting, timeout_s)
        found = []
        self.runs += 1
        for place in range(self.launches(rows))[:: 1 if self.runs % 2 else -1]:
            places = [place % len(row.left) for row in rows]
            chosen: dict[str, str] = {}
            for row, own in zip(rows, places):
                chosen |= environment(family, row.call, row.left[own].candidate)
            words = [words_of("", as_launched(row.call, row.bytes, row.ranks)) for row in rows]
            outcome = self.launched(words, chosen, passes, counting, timeout_s)
            calls = [call._replace(place=places[call.row]) for call in outcome.calls]
            found.append(outcome._replace(calls=calls))
        return found[0]._replace(
            counted=min(outcome.counted for outcome in found),
            calls=[call for outcome in found for call in outcome.calls],
            seconds=sum(outcome.seconds for outcome in found),
            pass_s=fmean(outcome.pass_s for outcome in found),
        )

    def launched(
        self,
        words: Sequence[str],
        chosen: Mapping[str, str],
        passes: int,
        counting: bool,
        timeout_s: float | None,
    ) -> Outcome:
        """chosen: variables of each rank, nearer to it than those of its launcher."""
        output = self.folder / "launch"
        shutil.rmtree(output, ignore_errors=True)
        output.mkdir(parents=True)
        replay = [self.replay, "--repeat", str(passes), "--race", ";".join(words)]
        replay += ["--race-output", str(output.resolve()), str(self.kit.resolve())]
        if chosen:
            replay = ["env", *(f"{name}={value}" for name, value in chosen.items()), *replay]
        settings = f"export {SETTINGS}{f' {COUNTING}' if counting else ''}\n"
        launch = self.launch.replace(PLACEHOLDER, shlex.join(replay))
        begin_s = time.monotonic()
        with open(self.folder / "launches.log", "ab") as log:
            why = ended(f"{self.before}{settings}{launch}", None, log, timeout_s)
        files = sorted(output.glob("rank-*.race"))
        if why or not files:
            raise ReportError(self.launch, f"failed, {why or 'it wrote nothing'}; see {log.name}")
        return read(files, time.monotonic() - begin_s)


def read(files: Sequence[Path], seconds: float) -> Outcome:
    heads: list[str] = []
    ranks: dict[tuple[int, int, int], list[tuple[int, ...]]] = {}
    hosts: Counter[str] = Counter()
    spanned: dict[tuple[int, int], set[str]] = {}  # by row and communicator
    for file in files:
        turns: Counter[tuple[int, int]] = Counter()
        lines = [list(map(int, line.split())) for line in _lines(file, heads)]
        host = next((head[5:] for head in reversed(heads) if head.startswith("host ")), "")
        hosts[host] += 1
        for row, comm, *rest in lines:
            ranks.setdefault((row, comm, turns[row, comm]), []).append(tuple(rest))
            turns[row, comm] += 1
            spanned.setdefault((row, comm), set()).add(host)
    counted = {head.partition(" ")[2] for head in heads if head.startswith("counted ")} - {"no"}
    timed = [part for parts in ranks.values() for part in parts if part[0]]
    span_ns = max((part[4] for part in timed), default=0) - min(
        (part[3] for part in timed), default=0
    )
    nodes = gathered((row, len(found)) for (row, _), found in spanned.items())
    return Outcome(
        library_read(heads),
        min(counted, default="no"),
        [_call(row, parts) for (row, _, _), parts in ranks.items()],
        seconds,
        max(1e-6, span_ns * 1e-9 / max((part[0] for part in timed), default=1)),
        sorted(hosts.values(), reverse=True),
        {row: found[0] if len(set(found)) == 1 else 0 for row, found in nodes.items()},
    )


def _lines(file: Path, heads: list[str]) -> Iterator[str]:
    with open(file, encoding="utf-8", errors="replace") as text:
        for number, line in enumerate(text):
            if number > MOST_CALLS:
                raise ReportError(file, "has too many calls; give a kit of a shorter time")
            if line[:1].isdigit():
                yield line
            else:
                heads.append(line.rstrip("\n"))


def _call(row: int, parts: Sequence[Sequence[int]]) -> Call:
    passes, places, errors, begins, ends, messages, volumes = zip(*parts)
    if len(set(places)) > 1:
        raise ReportError(Path(f"row {row}"), "ranks disagree which candidate had a turn")
    return Call(
        row,
        places[0],
        max(1, max(ends) - max(begins)) if min(passes) else 0,
        any(errors),
        tuple(sorted(zip(messages, volumes))),
    )


def counted_first(outcome: Outcome) -> Outcome:
    """Without the first pass, whose calls have no times."""
    return outcome._replace(calls=[call for call in outcome.calls if call.transfer_ns])
