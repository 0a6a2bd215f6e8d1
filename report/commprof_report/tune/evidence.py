"""The result of a search: the file evidence.json, and the rules that follow from it; before that
the algorithms that an MPI library offers, by its own list (commprof-replay --algorithms).

The list has a line for each of MPI_T's variables that choose algorithms. Open MPI enumerates the
values. MPICH 4 does not: it describes them in a text whose lines have run together ("... recursive
doubling algorithmring - Force ring algorithm"), in the order of their numbers; the names are known
from the table of algorithms inside the library. Intel MPI's are numbers in its documentation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ..base import (
    ReportError,
    format_read,
    list_in,
    number_in,
    renamed_whole,
    text_in,
    units,
    whole_in,
)
from ..compare.judge import NOTHING, Compared, Rules, contrast

OPEN_MPI, INTEL, MPICH, NCCL = "Open MPI", "Intel MPI", "MPICH", "NCCL"
# their variables, by the collective's name
VARIABLES = {
    OPEN_MPI: "coll_tuned_{}_algorithm",
    INTEL: "I_MPI_ADJUST_{}",
    MPICH: "MPIR_CVAR_{}_INTRA_ALGORITHM",
}
SWITCHING = (OPEN_MPI, MPICH)  # within a launch; by MPI_T
# how many it has; Intel MPI Library Developer Reference, I_MPI_ADJUST Family
INTEL_ALGORITHMS = {"ALLGATHER": 5, "ALLREDUCE": 12, "ALLTOALL": 4, "BCAST": 14, "REDUCE": 11}
SEGMENTS = "coll_tuned_{}_algorithm_segmentsize"
RACED = ("MPI_Allreduce", "MPI_Bcast", "MPI_Allgather", "MPI_Alltoall", "MPI_Reduce")
SEGMENT_BYTES = (8192, 65536)
NAMES = re.compile(rb"MPIR_[A-Z][a-z_]+_(?:intra|allcomm)_([a-z_]+)")
DESCRIBED = re.compile(r"(\w+) *- (?=[A-Z])")
AS_LAUNCHED = "as launched"


class Variable(NamedTuple):
    launched: int
    names: dict[int, str]  # by value


class Candidate(NamedTuple):
    """segment: bytes; None: the variable of segments is left as it is. value -1: as launched."""

    name: str
    value: int = -1
    segment: int | None = None

    @property
    def word(self) -> str:
        """For commprof-replay --race."""
        if self.value < 0:
            return "-"
        return f"{self.value}" if self.segment is None else f"{self.value}:{self.segment}"

    @property
    def text(self) -> str:
        return f"{self.name}, segments of {self.segment} B" if self.segment else self.name


@dataclass
class Library:
    version: str = ""
    path: str = ""
    variables: dict[str, Variable] = field(default_factory=dict)

    @property
    def family(self) -> str:
        """Empty: it is not known how its algorithms are chosen."""
        return next(
            (
                family
                for family, name in VARIABLES.items()
                if any(self.variable(family, call) for call in RACED)
            ),
            "",
        )

    def variable(self, family: str, call: str) -> Variable | None:
        return self.variables.get(variable_name(family, call))

    def candidates(self, call: str, size: int) -> list[Candidate]:
        """All of a collective of so many bytes, as launched first. The library's own choice, value
        0, is another one if something else was launched."""
        family = self.family
        variable = self.variable(family, call) if family else None
        found = [Candidate(AS_LAUNCHED)]
        if variable is None:
            return found
        segments: tuple[int | None, ...] = (
            (0, *(each for each in SEGMENT_BYTES if each < size)) if family == OPEN_MPI else (None,)
        )
        for value, name in variable.names.items():
            if value:
                found += [Candidate(name, value, segment) for segment in segments]
            elif variable.launched:
                found.append(Candidate(name, 0, segments[0]))
        return found


def collective(call: str) -> str:
    return call.removeprefix("MPI_").removeprefix("nccl").lower()


def variable_name(family: str, call: str) -> str:
    name = collective(call)
    return VARIABLES[family].format(name if family == OPEN_MPI else name.upper())


def segments_name(family: str, call: str) -> str:
    return SEGMENTS.format(collective(call)) if family == OPEN_MPI else "-"


def environment(family: str, call: str, candidate: Candidate) -> dict[str, str]:
    """Variables by which a launch has the candidate; none for what was launched."""
    if candidate.value < 0:
        return {}
    prefix = "OMPI_MCA_" if family == OPEN_MPI else ""
    value = candidate.name if family == MPICH else str(candidate.value)
    found = {f"{prefix}{variable_name(family, call)}": value}
    if candidate.segment is not None:
        found[f"{prefix}{segments_name(family, call)}"] = str(candidate.segment)
    return found


def library_read(lines: Iterable[str], names: frozenset[str] | None = None) -> Library:
    """names: of algorithms, which MPICH's descriptions have; those in its file if none are
    given."""
    found = Library()
    for line in lines:
        word, _, text = line.rstrip("\n").partition(" ")
        if word == "library":
            found.version = re.sub(r"\s+", " ", text).partition(", package")[0]
        elif word == "path":
            found.path = text
        elif word == "variable":
            name, launched, *rest = text.split(" ", 2)
            items = re.findall(r"(\d+)=(\S+)", "".join(rest)) if name.startswith("coll_") else []
            if name.startswith("MPIR_"):
                names = _names_in(found.path) if names is None else names
                items = [*enumerate(_described("".join(rest), names))]
            found.variables[name] = Variable(
                int(launched), {int(value): item for value, item in items}
            )
    if found.version.startswith("Intel(R) MPI"):
        found.variables = {
            VARIABLES[INTEL].format(name): Variable(
                0, {number: f"number {number}" for number in range(1, most + 1)}
            )
            for name, most in INTEL_ALGORITHMS.items()
        }
    return found


def _names_in(path: str) -> frozenset[str]:
    try:
        return frozenset(name.decode() for name in NAMES.findall(Path(path).read_bytes()))
    except OSError as error:
        raise ReportError(path, f"cannot be read: {error.strerror}") from None


def _described(text: str, names: frozenset[str]) -> list[str]:
    """The names before " - "; with the end of the line before each removed."""
    known = sorted((*names, "auto"), key=len, reverse=True)
    return [
        next((name for name in known if word.endswith(name)), word)
        for word in DESCRIBED.findall(text)
    ]


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
    long a call took as launched, and with the best candidate. nodes: that such a communicator
    spans; 0: not known, or they differ."""

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
    return format_read(
        path,
        FORMAT,
        VERSION,
        lambda values: Evidence(
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
        ),
    )


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
    own = rules.of_one(max(1, sum(bool(each.pairs) for each in evidence.rows)), True)
    return contrast(*zip(*row.pairs), rules=own) if row.pairs else NOTHING


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
