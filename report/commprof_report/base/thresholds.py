"""Every number that decides what a report names, says or refuses, in one table.

tests/report/test_thresholds.py shows each from both sides: what is said just below it, and just
above. docs/TRUTH.md prints the table (`python3 -m commprof_report.base.thresholds`).
"""

from __future__ import annotations

from typing import NamedTuple


class Threshold(NamedTuple):
    name: str  # the room, and what is compared
    value: float
    unit: str  # of the value
    why: str
    below: str  # what the test's example comes to with a value just below
    above: str  # and just above


# fmt: off
TABLE = (
    # late: who is waited for
    Threshold("late.covered", 0.5, "share of the time inside MPI that was split",
              "what most of the time is unknown of has no verdict", "unknown", "transfer"),
    Threshold("late.negotiated", 0.5, "share of the time inside MPI on threads that negotiate",
              "ranks that agree first arrive together whoever is late", "transfer", "unknown"),
    Threshold("late.notable", 0.01, "share of the counted time",
              "nobody can gain notably from less", "little", "transfer"),
    Threshold("late.blocks", 8, "blocks of late arrivals",
              "fewer cannot name one of two ranks: 2 x 2^-7 is more than 1 %", "unknown", "spread"),
)
# fmt: on

_VALUES = {each.name: each.value for each in TABLE}


def threshold(name: str) -> float:
    return _VALUES[name]


def whole(name: str) -> int:
    """A threshold that is counted."""
    value = _VALUES[name]
    assert isinstance(value, int), f"{name} is not a whole number"
    return value


def as_markdown() -> str:
    """The table of docs/TRUTH.md."""
    rows = (
        f"| `{each.name}` | {each.value:g} | {each.unit} | {each.why} | {each.below} | {each.above} |\n"
        for each in sorted(TABLE)
    )
    return (
        "| name | value | unit | why | just below | just above |\n"
        "| --- | ---: | --- | --- | --- | --- |\n" + "".join(rows)
    )


if __name__ == "__main__":
    print(as_markdown(), end="")
