"""The faults that excuse a library from some programs (libraries.FAULTS) are its own: they show without the profiler."""

import pytest

from .harness import command_for, launch
from .libraries import FAULTS

# One program of each fault, and on how many ranks. Where a library does something else than the others without failing, the
# line that says so.
EXAMPLES = {
    "error_codes.*": ("error_codes", 2, (), "Waitall ignored: class 0"),
    "error_codes errors_return": ("error_codes", 2, ("errors_return",), None),
    "in_place_nonblocking.*": ("in_place_nonblocking", 4, (), None),
    "freed_early": ("freed_early", 2, (), None),
    "session_and_world": ("session_and_world", 2, (), None),
    "talkative|surroundings": ("talkative", 4, (), None),
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.library}: {fault.program}")
def test_a_known_fault_shows_without_the_profiler(mpi, tmp_path, fault):
    program, ranks, arguments, sign = EXAMPLES[fault.program]
    if not mpi.fault(program, arguments) or fault.what not in mpi.fault(program, arguments):
        pytest.skip(f"{mpi.name} has it not")
    runs = (launch(mpi, ranks, [*command_for(mpi, program), *arguments], tmp_path, {}) for _ in range(20))
    assert any(sign in run.stdout if sign else run.exit_status != 0 for run in runs)
