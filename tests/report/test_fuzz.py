"""Files with random damage: an answer or one line for each problem, never a crash, never long."""

from __future__ import annotations

import random
import time

import planted
import pytest

SEEDS = 150
MOST_S = 5.0


def mutated(data: bytes, chance: random.Random) -> bytes:
    """A few bytes changed, a stretch overwritten, or the end cut off."""
    damaged = bytearray(data)
    for _ in range(chance.choice((1, 1, 3, 30))):
        at = chance.randrange(len(damaged))
        if chance.random() < 0.5:
            damaged[at] = chance.randrange(256)
        else:
            stretch = chance.choice((4, 8, 64))
            damaged[at : at + stretch] = chance.choice((b"\xff", b"\0", b"\x7f", b"A")) * stretch
    return bytes(damaged[: chance.randrange(len(damaged))] if chance.random() < 0.15 else damaged)


def check(report, path, command: str) -> None:
    start_s = time.monotonic()
    answer = report(*command.split(), path)
    assert time.monotonic() - start_s < MOST_S
    assert answer.status in (0, 1)
    assert all(line.startswith("hvprof-report: ") for line in answer.err.splitlines())
    assert len(answer.err.splitlines()) <= 5
    assert answer.status == 0 or len(answer.err.splitlines()) == 1


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """Small files of one rank, so that damage meets something."""
    rank = planted.training_rank(1)
    rank.ended = "running"
    rank.doing[1] = planted.Doing("MPI_Wait", 8 * planted.SECOND, 1, planted.DATA, 65_536, awaited="MPI_Iallreduce")
    rank.communicators[2].begun = [planted.Collective("MPI_Iallreduce", 65_536)] * 3
    folder = tmp_path_factory.mktemp("sound")
    planted.write_database(folder / "rank-1.db", rank)
    return {"db": (folder / "rank-1.db").read_bytes(), "ledger": planted.ledger_bytes(rank)}


COMMANDS = ("summary", "sizes", "latency", "ranks", "peers", "communicators", "stuck", "top --count 1", "export --format prometheus")


@pytest.mark.parametrize("ending", ("db", "ledger"))
def test_damaged_files_are_answered_or_named(report, tmp_path, sound, ending):
    for seed in range(SEEDS):
        chance = random.Random(seed)
        path = tmp_path / f"rank-1.{ending}"
        path.write_bytes(mutated(sound[ending], chance))
        check(report, path, COMMANDS[seed % len(COMMANDS)])


def test_damaged_ledger_headers_are_answered_or_named(report, tmp_path, sound):
    for seed in range(SEEDS):
        chance = random.Random(seed)
        header = mutated(sound["ledger"][:192], chance)
        path = tmp_path / "rank-1.ledger"
        path.write_bytes(header + sound["ledger"][len(header) :])
        check(report, path, COMMANDS[seed % len(COMMANDS)])
