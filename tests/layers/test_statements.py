"""The reporter only shrinks: statements of each room, and lines of SQL, are at most those in
statements.txt. `python3 tests/layers/test_statements.py` lowers the numbers there; a room that has
to grow says in its commit what another one let go."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

REPORT = Path(__file__).resolve().parents[2] / "report" / "commprof_report"
LIMITS = Path(__file__).with_name("statements.txt")


def is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def counted() -> dict[str, int]:
    """By room; modules above all rooms are one, and lines of SQL another."""
    found: Counter[str] = Counter()
    for path in REPORT.rglob("*.py"):
        room = path.parent.name if path.parent != REPORT else "top"
        nodes = ast.walk(ast.parse(path.read_text()))
        found[room] += sum(
            isinstance(node, (ast.stmt, ast.ExceptHandler)) and not is_docstring(node)
            for node in nodes
        )
    lines = sum(len(path.read_text().splitlines()) for path in REPORT.rglob("*.sql"))
    return {**dict(sorted(found.items())), "sum": sum(found.values()), "SQL": lines}


def limits() -> dict[str, int]:
    return {room: int(most) for room, most in map(str.split, LIMITS.read_text().splitlines())}


def test_no_room_grows():
    known = limits()
    grown = {room: n for room, n in counted().items() if n > known.get(room, 0)}
    assert grown == {}, "more than in statements.txt"


if __name__ == "__main__":
    known = limits() if LIMITS.exists() else {}
    LIMITS.write_text(
        "".join(f"{room} {min(n, known.get(room, n))}\n" for room, n in counted().items())
    )
