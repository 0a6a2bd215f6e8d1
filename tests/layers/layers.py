"""The layer list of docs/ARCHITECTURE.md, and what in the source goes against it.

A unit is one file of code, or a source file with its header; an arrow leads from a unit to one that
it includes or imports.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent.parent
PAGE = REPOSITORY / "docs/ARCHITECTURE.md"

Arrow = tuple[str, str]


@dataclass(frozen=True)
class Layers:
    """Rooms from bottom to top, each with the rooms that it may use; and the files that all may use
    (patterns)."""

    uses: dict[str, tuple[str, ...]]
    anywhere: tuple[str, ...]

    def room_of(self, unit: str) -> str | None:
        return max((room for room in self.uses if unit.startswith(room)), key=len, default=None)


def read(page: str, top: str) -> Layers:
    """The list's rooms under the folder `top`: items `src/room/` (other, rooms), and the line of
    what may be used from anywhere."""
    section = re.search(r"^## Layers$(.*?)(?=^## |\Z)", page, re.M | re.S)
    assert section, "docs/ARCHITECTURE.md has no section Layers"
    rows = re.findall(r"^- `(\S+/)`(?: \(([^)]*)\))?:", section[1], re.M)
    uses = {
        room: tuple(top + name + "/" for name in re.findall(r"\w+", names))
        for room, names in rows
        if room.startswith(top)
    }
    anywhere = re.search(r"^From anywhere: (.*)$", section[1], re.M)
    return Layers(uses, tuple(re.findall(r"`([^`]+)`", anywhere[1])) if anywhere else ())


def faults_of_list(layers: Layers) -> list[str]:
    """A room may use only rooms that stand before it: then the list has no circle."""
    rooms = list(layers.uses)
    return [
        f"{room} uses {used}, which does not stand before it in the list"
        for at, room in enumerate(rooms)
        for used in layers.uses[room]
        if used not in rooms[:at]
    ]


def forbidden(arrows: Iterable[Arrow], layers: Layers) -> list[str]:
    """Arrows from one room to another that the list does not allow."""
    wrong = []
    for user, used in sorted(set(arrows)):
        rooms = layers.room_of(user), layers.room_of(used)
        if (
            rooms[0] is None
            or rooms[1] is None
            or rooms[0] == rooms[1]
            or any(fnmatch(used, pattern) for pattern in layers.anywhere)
        ):
            continue
        if rooms[1] not in layers.uses[rooms[0]]:
            wrong.append(f"{user} uses {used}: {rooms[0]} may not use {rooms[1]}")
    return wrong


def homeless(units: Iterable[str], layers: Layers) -> list[str]:
    """Units in no room of the list, and rooms of the list without a unit."""
    units = list(units)
    rooms = {layers.room_of(unit) for unit in units}
    missing = [
        f"{unit} is in no room of the list" for unit in units if layers.room_of(unit) is None
    ]
    return missing + [
        f"{room} is in the list and has no files" for room in layers.uses if room not in rooms
    ]


def circles(arrows: Iterable[Arrow]) -> list[str]:
    """Each set of units that reach each other, as one line (Tarjan's strongly connected
    components)."""
    graph: dict[str, set[str]] = {}
    for user, used in arrows:
        graph.setdefault(user, set()).add(used)
        graph.setdefault(used, set())
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(unit: str) -> None:
        number[unit] = lowest[unit] = len(number)
        stack.append(unit)
        for used in sorted(graph[unit]):
            if used not in number:
                visit(used)
                lowest[unit] = min(lowest[unit], lowest[used])
            elif used in stack:
                lowest[unit] = min(lowest[unit], number[used])
        if lowest[unit] == number[unit]:
            at = stack.index(unit)
            if len(stack) - at > 1:
                found.append("a circle: " + ", ".join(sorted(stack[at:])))
            del stack[at:]

    for unit in sorted(graph):
        if unit not in number:
            visit(unit)
    return found


def faults(units: Iterable[str], arrows: Iterable[Arrow], layers: Layers) -> list[str]:
    """All that goes against the list. An arrow from a unit to itself is none."""
    arrows = [arrow for arrow in arrows if arrow[0] != arrow[1]]
    return (
        faults_of_list(layers)
        + homeless(units, layers)
        + forbidden(arrows, layers)
        + circles(arrows)
    )
