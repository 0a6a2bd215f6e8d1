"""Whatever ends a job, no call that was made is lost and none is counted twice: each fault of `make
check-faults` once, under one library after the other."""

import random

import pytest

from faults.__main__ import why_not
from faults.table import FAULTS
from faults.trial import tried

from .libraries import libraries

pytestmark = pytest.mark.slow


def library_for(fault):
    possible = [mpi for mpi in libraries() if not why_not(mpi, fault)]
    return possible[FAULTS.index(fault) % len(possible)] if possible else None


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_no_call_is_lost_or_doubled(fault, tmp_path):
    mpi = library_for(fault)
    if not mpi:
        pytest.skip("; ".join(why_not(mpi, fault) for mpi in libraries()))
    assert tried(mpi, fault, random.Random(fault.name), tmp_path / "trial").complaints == []
