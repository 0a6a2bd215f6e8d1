"""No call takes more instructions than its limit (bench/instructions.py, whose counts repeat)."""

from __future__ import annotations

import platform
import re
import shutil
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "bench"))

import instructions

# As gcc 12 compiles them for x86-64, and 3 % more.
LIMITS = {
    "Allreduce": 319,
    "Bcast": 317,
    "Barrier": 271,
    "Send": 355,
    "Recv": 412,
    "triple": 1715,
    "Wait": 963,
    "Waitany": 1210,
    "comms": 532,
    "round": 754,
    "sizes": 706,
    "Gatherv": 29222,
}


@pytest.fixture(scope="module")
def added() -> dict[str, instructions.Added]:
    if not shutil.which("valgrind"):
        pytest.skip("valgrind is not here to count instructions")
    is_measured = re.search(rb"GCC: \([^)]*\) 12\.", instructions.LIBRARY.read_bytes())
    if platform.machine() != "x86_64" or not is_measured:
        pytest.skip("the limits are for gcc 12 and x86-64")
    return instructions.added()


@pytest.mark.parametrize("call", LIMITS)
def test_a_call_takes_no_more_instructions_than_its_limit(added, call):
    assert added[call].instructions <= LIMITS[call], added[call].by_function


def test_inlined_functions_are_told_apart(added):
    assert {"call.h:call_start", "cells.h:cells_count", "samples.h:sample_fill"} <= set(
        added["Allreduce"].by_function
    )
