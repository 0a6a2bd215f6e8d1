"""COMMPROF_CVARS: the MPI library's control variables as facts, and a job that uses MPI_T itself
(programs/control_variables.calls)."""

import pytest

pytestmark = pytest.mark.slow

# An integer that both libraries have under another name, and its environment variable.
VARIABLE = {
    "openmpi": ("coll_tuned_priority", "OMPI_MCA_coll_tuned_priority"),
    "mpich": ("MPIR_CVAR_ALLREDUCE_SHORT_MSG_SIZE", "MPIR_CVAR_ALLREDUCE_SHORT_MSG_SIZE"),
    "impi": ("MPIR_CVAR_ALLREDUCE_SHORT_MSG_SIZE", "MPIR_CVAR_ALLREDUCE_SHORT_MSG_SIZE"),
}
ON = {"COMMPROF_CVARS": "on"}


@pytest.fixture
def variable(mpi):
    return VARIABLE[mpi.family][0]


@pytest.fixture
def is_47(mpi):
    return {VARIABLE[mpi.family][1]: "47"}


def cvars(run, rank: int) -> dict[str, str]:
    return {
        key.removeprefix("cvar."): value
        for key, value in run.facts(rank).items()
        if key.startswith("cvar.")
    }


def test_control_variables_are_recorded_on_one_rank_of_a_node(profile, variable, is_47):
    """Also those that nobody has set, and how many there are; without the setting none is."""
    run = profile("control_variables", 2, variable, "within", env=ON | is_47)
    assert cvars(run, 0)[variable] == "47"
    run = profile("control_variables", 2, variable, "within", env=ON)
    found = cvars(run, 0)
    assert found[variable] == run.outcome.stdout.split(",")[0]
    recorded, _, there = run.facts(0)["cvars"].partition(" of ")
    assert 100 < len(found) == int(recorded) <= int(there)
    assert not cvars(run, 1)
    run = profile("control_variables", 2, variable, "within")
    assert not cvars(run, 0) and "cvars" not in run.facts(0)


@pytest.mark.parametrize("when", ["always", "within"])
def test_a_program_that_uses_mpi_t_itself_sees_no_difference(profile, plain, variable, when):
    run = profile("control_variables", 2, variable, when, env=ON)
    assert sorted(run.outcome.stdout.splitlines()) == sorted(
        plain("control_variables", 2, variable, when).stdout.splitlines()
    )
    assert run.counts("MPI_Allreduce") == [1, 1]


def test_mpi_t_is_finalized_again(profile, plain, mpi, variable):
    if mpi.abi != "Open MPI":
        pytest.skip("MPI_T stays initialized, because MPICH cannot initialize it a second time")
    run = profile("control_variables", 2, variable, "never", env=ON)
    assert (
        run.outcome.stdout
        == plain("control_variables", 2, variable, "never").stdout
        == 2 * "MPI_T is not initialized\n"
    )


def test_none_is_read_from_an_open_mpi_that_would_crash(profile, mpi, variable):
    if mpi.abi != "Open MPI":
        pytest.skip("a fault of Open MPI, if a program initializes MPI_T before MPI")
    run = profile("control_variables", 2, variable, "always", env=ON)
    assert not cvars(run, 0)
    assert run.facts(0)["cvars"].startswith("0 of ")


@pytest.mark.parametrize("how", ["funneled", "on_another_thread"])
def test_jobs_of_other_thread_levels_are_recorded_as_ever(profile, how):
    with_variables, without = (profile("lifetime", 2, how, env=env) for env in (ON, {}))
    assert with_variables.rank_row(0)["thread_level"] == without.rank_row(0)["thread_level"]
    assert with_variables.counts("MPI_Barrier") == without.counts("MPI_Barrier") == [2, 2]
