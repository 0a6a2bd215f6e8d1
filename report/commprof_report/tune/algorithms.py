"""The algorithms that an MPI library offers, by its own list (commprof-replay --algorithms).

The list has a line for each of MPI_T's variables that choose algorithms. Open MPI enumerates the
values. MPICH 4 does not: it describes them in a text whose lines have run together ("... recursive
doubling algorithmring - Force ring algorithm"), in the order of their numbers; the names are known
from the table of algorithms inside the library.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ..base import ReportError

OPEN_MPI, MPICH = "Open MPI", "MPICH"
# variables of the two libraries, by the collective's name
VARIABLES = {OPEN_MPI: "coll_tuned_{}_algorithm", MPICH: "MPIR_CVAR_{}_INTRA_ALGORITHM"}
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
        """Empty: its algorithms cannot be chosen by MPI_T."""
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
    return call.removeprefix("MPI_").lower()


def variable_name(family: str, call: str) -> str:
    name = collective(call)
    return VARIABLES[family].format(name.upper() if family == MPICH else name)


def segments_name(family: str, call: str) -> str:
    return SEGMENTS.format(collective(call)) if family == OPEN_MPI else "-"


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
