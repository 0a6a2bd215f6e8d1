"""MPI_Pcontrol(0) and (1) switch counting; with a name, they follow the convention of IPM, if the
program does (programs/pcontrol_names.calls). Whatever switches counting off is named in the
database.
"""

import pytest

from .test_regions import barriers


def off(run):
    return run.facts(0).get("unseen.off")


def share_counted(run):
    row = run.rank_row(0)
    return row["counted_ns"] / row["wall_ns"]


def events(run):
    named = "FROM cell JOIN region USING (world_rank, region) WHERE call = 'MPI_Pcontrol'"
    return dict(run.query(0, f"SELECT name, sum(count) {named} GROUP BY 1"))


def test_regions_and_events_of_ipm_leave_counting_on(profile):
    run = profile("pcontrol_names", 1, "regions")
    assert barriers(run, 0) == {"solve": 15, "": 100}
    assert events(run)["restart"] == 1
    assert (off(run), share_counted(run)) == (None, 1)


def test_regions_of_ipm_lie_in_each_other_and_have_events(profile):
    run = profile("pcontrol_names", 1, "nested")
    assert barriers(run, 0) == {"outer": 5, "outer/in": 2, "": 8}
    assert events(run)["outer/event"] == 1
    assert off(run) is None


def test_an_event_before_the_first_region_ends_counting_until_that_region_and_is_named(profile):
    run = profile("pcontrol_names", 1, "event_first")
    assert barriers(run, 0) == {"": 6}
    assert events(run) == {"between": 1}
    assert off(run) == 'MPI_Pcontrol(0, "before all")'
    assert share_counted(run) < 1


def test_the_second_event_of_a_program_without_regions_shows_what_they_are(profile):
    run = profile("pcontrol_names", 1, "events_alone")
    assert barriers(run, 0) == {"": 6}
    assert events(run) == {"two": 1, "three": 1}
    assert off(run) == 'MPI_Pcontrol(0, "one")'


def test_a_text_that_is_left_over_in_a_register_switches_as_if_there_were_none(profile):
    run = profile("pcontrol_names", 1, "left_over")
    assert barriers(run, 0) == {"": 10}
    assert off(run) == 'MPI_Pcontrol(0, "detailed"), MPI_Pcontrol(0)'


def test_a_left_over_text_without_effect_names_calls_until_the_next_switch(profile):
    run = profile("pcontrol_names", 1, "left_over_at_first")
    assert barriers(run, 0) == {"detailed": 1, "": 4}
    assert off(run) == "MPI_Pcontrol(0)"


def test_what_is_no_word_is_no_name(profile):
    run = profile("pcontrol_names", 1, "no_words")
    assert barriers(run, 0) == {"": 8}
    assert off(run) == "MPI_Pcontrol(0)"


def test_a_program_may_switch_counting_off_after_it_has_named_regions(profile):
    run = profile("pcontrol_names", 1, "both")
    assert barriers(run, 0) == {"solve": 15, "": 110}
    assert off(run) == 'MPI_Pcontrol(0), MPI_Pcontrol(0, "detailed")'


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
