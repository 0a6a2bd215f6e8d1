"""The faults that excuse a library from some programs (libraries.FAULTS) are its own: they show
without the profiler."""

import tempfile

import pytest

from .harness import command_for, launch
from .libraries import FAULTS

pytestmark = pytest.mark.slow

# One program of each fault, its ranks and arguments.
EXAMPLES = {
    "error_codes errors_return": ("error_codes", 2, ("errors_return",)),
    "in_place_nonblocking.*": ("in_place_nonblocking", 4, ()),
    "freed_early": ("freed_early", 2, ()),
    "null_pointers": ("null_pointers", 2, ()),
    "odds_and_ends": ("odds_and_ends", 2, ()),
    "collectives_persistent.*": ("collectives_persistent", 4, ()),
    "files.*": ("files", 2, (tempfile.gettempdir(),)),
    "generalized": ("generalized", 2, ()),
    "guarded_statuses": ("guarded_statuses", 2, ()),
    "session_and_world": ("session_and_world", 2, ()),
    "talkative|surroundings": ("talkative", 4, ()),
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.library}: {fault.program}")
def test_a_known_fault_shows_without_the_profiler(mpi, tmp_path, fault):
    program, ranks, arguments = EXAMPLES[fault.program]
    if not mpi.fault(program, arguments) or fault.what not in mpi.fault(program, arguments):
        pytest.skip(f"{mpi.name} has it not")
    runs = (
        launch(mpi, ranks, [*command_for(mpi, program), *arguments], tmp_path, {})
        for _ in range(20)
    )
    assert any(run.exit_status != 0 for run in runs)
