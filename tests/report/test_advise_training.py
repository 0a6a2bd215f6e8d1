"""`hvprof-report advise` of training whose framework communicates on a thread beside the main one:
Horovod, DistributedDataParallel."""

from __future__ import annotations

import shutil

import planted
import pytest
from planted import Step
from sampled_bursts import BITS, STEPS, Call, bursts

MIB, MS = 1 << 20, 1_000_000
ROUND = Call(16, 3_000, signature=BITS)
LAYERS = [Call(size, 60_000) for size in (1_000, 2_000, 1_000, 3_000)]
LARGE = Call(MIB, MS)
UNFUSED = {"env.HOROVOD_FUSION_THRESHOLD": "0"}


@pytest.fixture
def advise(report, tmp_path):
    def ask(calls, **more):
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        folder = planted.write_databases(tmp_path / "run", bursts(calls, **{"thread": 1, **more}))
        rows = report("advise", folder, "--json").rows
        return {row["rule"]: row for row in reversed(rows)}

    return ask


def test_fusion_that_is_off_is_named_with_what_it_would_save(advise):
    """4 layers a step, three of at most 2 kB; the round before them is no message that could be
    fused, nor is the first of the five messages of each round."""
    row = advise([ROUND, LARGE, *LAYERS], facts=UNFUSED)["small_messages"]
    assert row["title"] == "tensor fusion is off (HOROVOD_FUSION_THRESHOLD is 0)"
    fused_ns = sum(layer.bytes for layer in LAYERS) * MS / MIB
    assert row["saving_ns"] == pytest.approx(0.8 * STEPS * (4 * 60_000 - fused_ns))
    assert row["evidence"].startswith(
        "400 calls a rank of 1,000 B to 3,000 B (4.00 a step) carry 700 KB."
    )
    assert row["suggestion"].startswith("leave HOROVOD_FUSION_THRESHOLD out")


EVERY_51_MS = [Step(number, number * 51 * MS, (number + 1) * 51 * MS) for number in range(1, 90)]


def idle_rounds(apart_ns: int) -> list[Call]:
    return [ROUND, LARGE, ROUND._replace(pause_ns=apart_ns), ROUND._replace(pause_ns=apart_ns)]


@pytest.mark.parametrize(("apart_ms", "is_long"), [(15, 1), (2, 0)])
def test_a_cycle_that_is_long_beside_the_step_is_named(advise, apart_ms, is_long):
    row = advise(
        idle_rounds(apart_ms * MS), facts={"env.HOROVOD_CYCLE_TIME": "15"}, steps=EVERY_51_MS
    )["cycle"]
    assert (row["found"], row["saving_ns"]) == (is_long, None)
    if is_long:
        assert row["title"] == "a cycle of 15.0 ms is long beside steps of 51.0 ms"
        assert (
            "(HOROVOD_CYCLE_TIME is 15)" in row["evidence"]
            and "7.50 ms on average, 14.7 % of the step" in row["evidence"]
        )


def test_the_first_message_of_a_round_is_not_fused_with_the_others(advise):
    """In each step one round sends 1 kB after a pause, the other one 1 MiB: neither had another
    message to be sent with."""
    first = ROUND._replace(pause_ns=2 * MS)
    rounds = [ROUND, Call(1_000, 900_000, pause_ns=MS), first, LARGE._replace(pause_ns=2 * MS)]
    small = {"env.HOROVOD_FUSION_THRESHOLD": "4096"}
    assert not advise(rounds, facts=small)["small_messages"]["found"]
    more = Call(1_000, 900_000, pause_ns=MS)
    row = advise([*rounds, *4 * [more]], facts=small)["small_messages"]
    assert row["found"] and "The 66.7 % of them that could be sent with others" in row["evidence"]


@pytest.mark.parametrize(("threshold", "is_found"), [("4096", 1), ("67108864", 0)])
def test_a_threshold_that_is_in_the_way_is_named(advise, threshold, is_found):
    """If the threshold is not in the way, a longer cycle has a price, too."""
    row = advise([ROUND, LARGE, *LAYERS], facts={"env.HOROVOD_FUSION_THRESHOLD": threshold})[
        "small_messages"
    ]
    assert row["found"] == is_found
    assert (
        not is_found
        or row["suggestion"] == "raise HOROVOD_FUSION_THRESHOLD, which is 4096, above 1 MiB"
    )


@pytest.mark.parametrize(("thread", "is_found"), [(1, 0), (0, 1)])
def test_buckets_that_come_while_the_main_thread_computes_are_not_fused(advise, thread, is_found):
    """They compete with the computation, whatever their size."""
    buckets = [
        LARGE,
        Call(50_000, 900_000, pause_ns=5 * MS),
        Call(50_000, 900_000, pause_ns=5 * MS),
    ]
    assert advise(buckets, thread=thread)["small_messages"]["found"] == is_found
