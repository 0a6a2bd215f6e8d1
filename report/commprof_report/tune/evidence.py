"""The result of a search: the file evidence.json, and the rules that follow from it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..base import ReportError, units
from ..base.files import (
    json_read,
    list_in,
    number_in,
    renamed_whole,
    text_in,
    whole_in,
)
from ..compare.judge import NOTHING, Compared, Rules
from .algorithms import AS_LAUNCHED, NCCL, Candidate

FILE, FORMAT, VERSION = "evidence.json", "commprof-tune", 2
MOST = 10**15


@dataclass
class Tried:
    """A candidate of a row. counts: messages and bytes that each rank sends in a call, in order;
    fate: why it is out, or empty."""

    candidate: Candidate
    counts: list[list[int]] = field(default_factory=list)
    transfer_ns: float = 0.0
    fate: str = ""


@dataclass
class Raced:
    """Calls of one size on communicators of so many ranks. share: of the time of the replay that
    they take from the last arrival to the last return. pairs: in each of the last launches, how
    long a call took as launched, and with the best candidate."""

    call: str
    bytes: int
    ranks: int
    share: float
    tried: list[Tried] = field(default_factory=list)
    pairs: list[list[float]] = field(default_factory=list)
    nodes: int = 0

    @property
    def left(self) -> list[Tried]:
        """The candidates that are not out, of which what was launched is the first."""
        return [each for each in self.tried if not each.fate]

    @property
    def best(self) -> Tried | None:
        """The other one that is left."""
        return self.left[1] if len(self.left) == 2 and self.pairs else None


def as_launched(call: str, size: int, ranks: int, share: float = 0.0) -> Raced:
    return Raced(call, size, ranks, share, [Tried(Candidate(AS_LAUNCHED))])


@dataclass
class Evidence:
    family: str
    library: str  # its version
    path: str
    kit: str  # SHA-256
    launch: str
    counted: str  # by which messages were counted; no: that algorithms ran is not proven
    launches: int = 0
    seconds: float = 0.0
    rows: list[Raced] = field(default_factory=list)
    layout: list[int] = field(default_factory=list)  # ranks of each node, most first
    stands: float | None = None  # share of the job's time inside MPI; None: not checked
    failing: str = ""  # rows for which it does not stand


def write(folder: Path, evidence: Evidence) -> None:
    text = json.dumps({"format": FORMAT, "version": VERSION, **asdict(evidence)}, indent=1)
    with renamed_whole(folder / FILE) as aside:
        aside.write_text(f"{text}\n", encoding="utf-8")


def read(folder: Path) -> Evidence:
    path = folder / FILE
    if not path.exists():
        raise ReportError(folder, f"has no {FILE}: hvprof-report tune search writes it")
    values = json_read(path)
    try:
        if text_in(values, "format") != FORMAT or whole_in(values, "version", 0, MOST) != VERSION:
            raise ReportError(path, f"is not version {VERSION} of {FORMAT}")
        return Evidence(
            text_in(values, "family"),
            text_in(values, "library"),
            text_in(values, "path"),
            text_in(values, "kit"),
            text_in(values, "launch"),
            text_in(values, "counted"),
            whole_in(values, "launches", 0, MOST),
            number_in(values, "seconds", 0, MOST, 0),
            [_row(row) for row in list_in(values, "rows")],
            [int(ranks) for ranks in list_in(values, "layout")],
            None if values["stands"] is None else number_in(values, "stands", 0, 1.001),
            text_in(values, "failing"),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ReportError(path, f"is damaged: {error}") from None


def _row(values: Any) -> Raced:
    return Raced(
        text_in(values, "call"),
        whole_in(values, "bytes", 0, MOST),
        whole_in(values, "ranks", 1, MOST),
        number_in(values, "share", 0, MOST, 0),
        [
            Tried(Candidate(*each["candidate"]), each["counts"], each["transfer_ns"], each["fate"])
            for each in list_in(values, "tried")
        ],
        [[float(ns) for ns in pair] for pair in list_in(values, "pairs")],
        whole_in(values, "nodes", 0, MOST),
    )


def judged(evidence: Evidence, row: Raced, rules: Rules) -> Compared:
    """The best candidate against what was launched. All rows hold together at the level."""
    judge = rules.judge(True, max(1, sum(bool(each.pairs) for each in evidence.rows)))
    return judge.contrast(*zip(*row.pairs)) if row.pairs else NOTHING


def is_gain(found: Compared, least: float) -> bool:
    """The least gain that the interval holds exceeds the least effect."""
    return found.high is not None and found.high < -least


@dataclass(frozen=True)
class Span:
    """Sizes, both included, that get an algorithm; in bytes as our reports have them."""

    low: int
    high: int
    candidate: Candidate


@dataclass(frozen=True)
class Rule:
    """The spans of a call on communicators of so many ranks on so many nodes, in order. Outside of
    them the library decides as without a file. nodes 0: not known."""

    call: str
    ranks: int
    spans: tuple[Span, ...]
    nodes: int = 0

    @property
    def per_node(self) -> int:
        """The most ranks of a node, if they are spread evenly."""
        return -(-self.ranks // self.nodes) if self.nodes else 0


def rules_of(evidence: Evidence, rules: Rules) -> list[Rule]:
    """A gain at one size is no gain at another: between two sizes of the job an algorithm applies
    only if both have it. There are none unless all together gain more than the least effect."""
    groups: dict[tuple[str, int], dict[int, list[tuple[float, Raced]]]] = {}
    for row in evidence.rows:
        answer = judged(evidence, row, rules)
        least = answer.high or 0.0 if row.best and is_gain(answer, rules.min_effect) else 0.0
        sizes = groups.setdefault((row.call, row.ranks), {})
        sizes.setdefault(row.bytes, []).append((least, row))
    found, whole = [], 0.0
    for (call, ranks), sizes in sorted(groups.items()):
        chosen: list[tuple[int, Candidate | None]] = []
        for size, own in sorted(sizes.items()):
            least, row = min(own, key=lambda each: each[0])
            whole -= least * row.share
            chosen.append((size, row.best.candidate if row.best and least else None))
        nodes = {row.nodes for own in sizes.values() for _, row in own}
        if spans := _merged(chosen):
            found.append(Rule(call, ranks, spans, nodes.pop() if len(nodes) == 1 else 0))
    return found if whole > rules.min_effect else []


def _merged(chosen: Sequence[tuple[int, Candidate | None]]) -> tuple[Span, ...]:
    spans: list[Span] = []
    before = None
    for size, candidate in chosen:
        if candidate and candidate == before:
            spans[-1] = Span(spans[-1].low, size, candidate)
        elif candidate:
            spans.append(Span(size, size, candidate))
        before = candidate
    return tuple(spans)


def gains(evidence: Evidence, rules: Rules) -> list[Raced]:
    """The rows whose candidates the rules have."""
    found = rules_of(evidence, rules)
    return [
        row
        for row in evidence.rows
        if row.best
        and any(
            (row.call, row.ranks) == (rule.call, rule.ranks)
            and span.low <= row.bytes <= span.high
            and row.best.candidate == span.candidate
            for rule in found
            for span in rule.spans
        )
    ]


def stands_text(evidence: Evidence) -> str:
    """Fidelity, beside each number of a search."""
    if evidence.family == NCCL:
        return "measured in the job itself"
    if evidence.stands is None:
        return (
            "for an unknown share of the job (hvprof-report replay check JOB... -- REPLAY... -o "
            "KIT.check, then search again)"
        )
    failing = f"; not for {evidence.failing}" if evidence.failing else ""
    return f"for {units.share(evidence.stands)} of the job's time inside MPI{failing}"


def fingerprint(counts: Sequence[Sequence[int]]) -> str:
    """The messages that the ranks of a call send, as people read them."""
    messages, volume = (sum(each) for each in zip(*counts)) if counts else (0, 0)
    return f"{messages} messages of {volume} B in all"
