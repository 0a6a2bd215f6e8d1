"""NCCL communicators that have grown (ncclCommGrow). Old ranks derive the identity from the
parent's, new ranks from the unique id. One rank knows both and records them as the fact
nccl.grown.<identity from the id>. This module replaces the latter identity by the former, also for
communicators created from such a communicator."""

from __future__ import annotations

import sqlite3

PREFIX = "nccl.grown."
TURN, BITS = 7, 64  # of identity_of_child in src/nccl/nccl_communicators.c
FORCED = 4  # bits that are set in every identity
MOST_GENERATIONS = 64


def identities_agree(connection: sqlite3.Connection) -> None:
    facts = connection.execute(
        "SELECT key, value FROM fact WHERE substr(key, 1, ?) = ?", (len(PREFIX), PREFIX)
    ).fetchall()
    if not facts:
        return
    known = {
        key[len(PREFIX) :]: value for key, value in facts
        if _is_identity(key[len(PREFIX) :]) and _is_identity(value)
    }
    children = connection.execute(
        "SELECT DISTINCT identity, parent_identity FROM communicator WHERE library = 'nccl'"
    ).fetchall()
    agreed = _agreed(
        known, [(child, parent) for child, parent in children if parent and _is_identity(child)]
    )
    for column in ("identity", "parent_identity"):
        connection.executemany(
            f"UPDATE communicator SET {column} = ? WHERE {column} = ?",
            [(new, old) for old, new in agreed.items()],
        )


def _agreed(known: dict[str, str], children: list[tuple[str, str]]) -> dict[str, str]:
    """Maps each identity that is replaced to its replacement."""
    agreed = known
    for _ in range(MOST_GENERATIONS):
        before = agreed
        agreed = {old: before.get(new, new) for old, new in before.items()}
        agreed |= {
            child: _child_agreed(child, parent, agreed[parent]) for child, parent in children
            if parent in agreed
        }
        if agreed == before:
            break
    return agreed


def _is_identity(text: str) -> bool:
    return len(text) == BITS // 4 and set(text) <= set("0123456789abcdef")


def _child_agreed(child: str, parent: str, agreed_parent: str) -> str:
    return f"{int(child, 16) ^ _turned(parent) ^ _turned(agreed_parent) | FORCED:016x}"


def _turned(identity: str) -> int:
    number = int(identity, 16)
    return (number << TURN | number >> BITS - TURN) & (1 << BITS) - 1
