"""The first calls of a process do what later ones do: MPI_Init has looked up the rest."""

from .harness import compile_program


def test_the_first_calls_of_a_program_ask_the_dynamic_linker_nothing(mpi, profile):
    program = compile_program(mpi, "first_calls", "-rdynamic", "-D_GNU_SOURCE", "-ldl")
    assert (
        profile(str(program), 2).outcome.stdout == "asked in MPI_Init, 0 times in the first calls\n"
    )
