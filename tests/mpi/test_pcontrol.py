"""MPI_Pcontrol(0) and (1) switch counting; with a name, they follow the convention of IPM, if the
program does (programs/pcontrol_names.calls). Whatever switches counting off is named in the
database.
"""

import pytest

from .test_regions import barriers


def off(run, rank=0):
    return run.facts(rank).get("unseen.off")


def share_counted(run, rank=0):
    row = run.rank_row(rank)
    return row["counted_ns"] / row["wall_ns"]


def events(run, rank):
    named = "FROM cell JOIN region USING (world_rank, region) WHERE call = 'MPI_Pcontrol'"
    return dict(run.query(rank, f"SELECT name, sum(count) {named} GROUP BY 1"))


# what the program does: Barriers by region, events, what is said to have switched counting off
WAYS = {
    "regions": ({"solve": 15, "": 100}, {"restart": 1}, None),
    "nested": ({"outer": 5, "outer/in": 2, "": 8}, {"outer/event": 1}, None),
    # an event before the first region ends counting until that region
    "event_first": ({"": 6}, {"between": 1}, 'MPI_Pcontrol(0, "before all")'),
    # the second event of a program without regions shows what they are
    "events_alone": ({"": 6}, {"two": 1, "three": 1}, 'MPI_Pcontrol(0, "one")'),
    # a text that is left over in a register switches as if there were none
    "left_over": ({"": 10}, None, 'MPI_Pcontrol(0, "detailed"), MPI_Pcontrol(0)'),
    # one without effect names calls until the next switch
    "left_over_at_first": ({"detailed": 1, "": 4}, None, "MPI_Pcontrol(0)"),
    "no_words": ({"": 8}, None, "MPI_Pcontrol(0)"),
    # a program may switch counting off after it has named regions
    "both": ({"solve": 15, "": 110}, None, 'MPI_Pcontrol(0), MPI_Pcontrol(0, "detailed")'),
}


@pytest.mark.parametrize(("rank", "way"), enumerate(WAYS))
def test_regions_and_events_of_ipm_are_told_from_switches(profile, rank, way):
    run, (regions, named, switched) = profile("pcontrol_names", len(WAYS), *WAYS), WAYS[way]
    assert barriers(run, rank) == regions
    found = events(run, rank)
    assert named is None or found == named or (switched is None and found.items() >= named.items())
    assert off(run, rank) == switched
    assert (share_counted(run, rank) < 1) == bool(switched)


def test_python_switches_counting(profile, mpi):
    if not mpi.has_mpi4py:
        pytest.skip(f"no mpi4py for {mpi.name} here")
    run = profile("pcontrol_from_python", 1)
    assert barriers(run, 0) == {"": 15}
    assert off(run) == "MPI_Pcontrol(0)"


def test_fortran_switches_counting(profile, mpi):
    mpi.require_fortran("pcontrol_from_fortran")
    run = profile("pcontrol_from_fortran", 1)
    assert barriers(run, 0) == {"": 3}
    assert off(run) == "MPI_Pcontrol(0)"


@pytest.mark.parametrize("setting", ["COMMPROF_START=off", "COMMPROF_BEGIN_S=3600"])
def test_a_setting_that_switches_counting_off_is_named(profile, setting):
    run = profile("pcontrol_names", 1, "left_over", env=dict([setting.split("=")]))
    assert off(run) == f'{setting}, MPI_Pcontrol(0, "detailed"), MPI_Pcontrol(0)'
    assert share_counted(run) < 1


def test_a_program_that_is_counted_throughout_names_nothing(profile):
    assert off(profile("collectives_alone", 2)) is None
