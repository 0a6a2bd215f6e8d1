"""The algorithms that an MPI library offers, by its own list (commprof-replay --algorithms).

The list has a line for each of MPI_T's variables that choose algorithms. Open MPI enumerates the
values. MPICH 4 does not: it describes them in a text whose lines have run together ("... recursive
doubling algorithmring - Force ring algorithm"), in the order of their numbers; the names are known
from the table of algorithms inside the library. Intel MPI's are numbers in its documentation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ..base import ReportError

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
