"""Launches of commprof-replay in which the candidates of each row take turns, and what they
wrote."""

from __future__ import annotations

import shlex
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from ..base import ReportError
from ..experiment.plan import PLACEHOLDER, ended
from .algorithms import Library, library_read, segments_name, variable_name
from .evidence import Raced

SETTINGS = {"OMPI_MCA_coll_tuned_use_dynamic_rules": "1"}  # harmless to other libraries
COUNTING = {"OMPI_MCA_pml_monitoring_enable": "1"}
MOST_CALLS = 4_000_000  # lines of a rank


class Call(NamedTuple):
    """A collective, by all ranks. counts: messages and bytes that each rank has sent, in order."""

    row: int
    place: int  # of the candidate
    transfer_ns: int
    is_refused: bool
    counts: tuple[tuple[int, int], ...]


class Outcome(NamedTuple):
    """pass_s: how long a pass took that is not the first, from its first call to its last."""

    library: Library
    counted: str
    calls: list[Call]
    seconds: float
    pass_s: float
    world: int  # ranks

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


class Launcher(NamedTuple):
    """launch: the launcher's command, {} in it stands for commprof-replay. before: shell commands
    that are run first."""

    launch: str
    replay: str
    kit: Path
    folder: Path
    before: str = ""

    def run(
        self,
        family: str,
        rows: Sequence[Raced],
        passes: int,
        counting: bool = False,
        timeout_s: float | None = None,
    ) -> Outcome:
        """The first pass, in which connections are made, has counts, but no times."""
        output = self.folder / "launch"
        shutil.rmtree(output, ignore_errors=True)
        output.mkdir(parents=True)
        begin_s = time.monotonic()
        with open(self.folder / "launches.log", "ab") as log:
            why = ended(self.command(family, rows, passes, counting, output), None, log, timeout_s)
        files = sorted(output.glob("rank-*.race"))
        if why or not files:
            raise ReportError(self.launch, f"failed, {why or 'it wrote nothing'}; see {log.name}")
        return read(files, time.monotonic() - begin_s)

    def command(
        self, family: str, rows: Sequence[Raced], passes: int, counting: bool, output: Path
    ) -> str:
        replay = shlex.join(
            [
                self.replay,
                "--repeat",
                str(passes),
                "--race",
                ";".join(words_of(family, row) for row in rows),
                "--race-output",
                str(output.resolve()),
                str(self.kit.resolve()),
            ]
        )
        settings = exports({**SETTINGS, **(COUNTING if counting else {})})
        return f"{self.before}{settings}{self.launch.replace(PLACEHOLDER, replay)}"


def exports(settings: Mapping[str, str]) -> str:
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in settings.items())


def read(files: Sequence[Path], seconds: float) -> Outcome:
    heads: list[str] = []
    ranks: dict[tuple[int, int, int], list[tuple[int, ...]]] = {}
    for file in files:
        turns: Counter[tuple[int, int]] = Counter()
        for line in _lines(file, heads):
            row, comm, *rest = map(int, line.split())
            ranks.setdefault((row, comm, turns[row, comm]), []).append(tuple(rest))
            turns[row, comm] += 1
    counted = {head.partition(" ")[2] for head in heads if head.startswith("counted ")} - {"no"}
    timed = [part for parts in ranks.values() for part in parts if part[0]]
    span_ns = max((part[4] for part in timed), default=0) - min(
        (part[3] for part in timed), default=0
    )
    return Outcome(
        library_read(heads),
        min(counted, default="no"),
        [_call(row, parts) for (row, _, _), parts in ranks.items()],
        seconds,
        max(1e-6, span_ns * 1e-9 / max((part[0] for part in timed), default=1)),
        len(files),
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
