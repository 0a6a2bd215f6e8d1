"""Tests that are rows of a table: a planted run, and what commands say of it.

"a rank that is late is named": (
    lambda: late_job(2),
    ("late --by run", {"verdict": "imbalance", "late_ranks": "2"}),
    ("late", "Rank 2 is late: it causes 100.0 % of the waiting.", No("in turn")),
),
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path

import compared_runs
import planted
import pytest
from planted_job import Job
from read_once import read_once


def by_seed(seeds: Iterable[int], first: int) -> list:
    """For parametrize; those from `first` on are slow."""
    return [pytest.param(seed, marks=[pytest.mark.slow] * (seed >= first)) for seed in seeds]


class No(str):
    """Words that the text does not have."""


class Columns(dict):
    """By key, the values of all rows in their order."""


class Row(dict):
    """Values of the only row that has those of `where`."""

    def __init__(self, where: dict, **values: object) -> None:
        super().__init__(values)
        self.where = where

    def __or__(self, more: dict) -> Row:
        return Row(self.where, **self, **more)


def of(row: dict, names: str) -> tuple:
    return tuple(row[name] for name in names.split())


def has(row: dict, values: dict) -> bool:
    """A function among the values says whether the row's is right."""
    return all(
        expected(row[key]) if callable(expected) else row[key] == expected
        for key, expected in values.items()
    )


def written(run: object, path: Path) -> list[object]:
    """A job or ranks, or a function that makes them, as files; paths as they are, those of runs of
    two sides as sides."""
    run = run() if callable(run) else run
    if isinstance(run, Path):
        return [run]
    if isinstance(run, Job):
        return [run.write(path)]
    is_sides = isinstance(run[0], Path)
    return compared_runs.words(run) if is_sides else [planted.write_databases(path, run)]


def check(report, path: Path, run: object, *checks: tuple) -> None:
    """Each check: a command with its options; then words that its text has but for line breaks,
    and with --json values of its only row, Columns, the number of rows, or what holds of them."""
    paths = written(run, path)
    with read_once():
        for command, *expected in checks:
            name, *options = shlex.split(command)
            check_answer(report, [name, *paths, *options], expected)


def check_answer(report, words: list[object], expected: list[object]) -> None:
    """words: a command line."""
    texts = [one for one in expected if isinstance(one, str)]
    if texts:
        answer = report(*words)
        assert answer.status == 0, answer.err
        for text in texts:
            assert (text in answer.prose) != isinstance(text, No), (text, answer.out)
    if len(texts) < len(expected):
        check_rows(report(*words, "--json").rows, expected)


def check_rows(rows: list[dict], expected: list[object]) -> None:
    for one in expected:
        if callable(one):
            assert one(rows), rows
        elif isinstance(one, int):
            assert len(rows) == one
        elif isinstance(one, Columns):
            assert {key: [row[key] for row in rows] for key in one} == one
        elif isinstance(one, Row):
            (found,) = [row for row in rows if has(row, one.where)]
            assert has(found, one), ({key: found[key] for key in one}, one)
        elif isinstance(one, dict):
            (found,) = rows
            assert has(found, one), ({key: found[key] for key in one}, one)
