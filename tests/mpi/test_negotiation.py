"""Rounds in which ranks agree on what to sum: what is counted of them, exactly."""

from __future__ import annotations

from collections import Counter

import pytest

ROUNDS, GRADIENTS, WIDE = 24, 31, 130
EPOCHS, METRICS = ROUNDS // 8, 2
NEGOTIATION = """
    SELECT words, rounds, rounds_by_name, disbelieved, offered_most, agreed, steps,
           last_offered, last_agreed, ahead_since_ns
    FROM negotiation"""
PLACES = "SELECT place, agreed FROM negotiated_place"
TRAINED = {  # plant: ranks, words, gradients, how often metrics were agreed on
    "horovod": (2, 1, GRADIENTS, 0),
    "horovod_evaluating": (2, 1, GRADIENTS, EPOCHS - 1),
    "horovod_wide": (3, 3, WIDE, EPOCHS - 1),
    "horovod_by_name": (2, 1, GRADIENTS, 0),
    "horovod_by_name_wide": (3, 3, WIDE, EPOCHS),
}


# How ranks negotiate is Horovod's, whatever the MPI; that these two are told shows that its types
# and operations are known.
BOTH = ("horovod", "horovod_by_name")


@pytest.mark.parametrize(
    "plant",
    [each if each in BOTH else pytest.param(each, marks=pytest.mark.one_mpi) for each in TRAINED],
)
def test_places_are_agreed_on_once_a_step_and_steps_are_alike_on_all_ranks(profile, plant):
    ranks, words, gradients, evaluations = TRAINED[plant]
    run = profile("plants", ranks, plant, str(ROUNDS), "2000", "4000", "1")
    # with the cache each tensor's first time goes by name
    trained = ROUNDS - ("by_name" not in plant)
    agreed = gradients * trained + METRICS * evaluations
    alike = set()
    for rank in range(ranks):
        ((*found, offered_most, said, steps, offered, last, since),) = run.query(rank, NEGOTIATION)
        rounds, named = found[1:3]
        assert (found[0], found[3]) == (words, 0)
        assert named == rounds if "by_name" in plant else 0 < named < rounds
        assert (said, offered, last, since) == (agreed, 0, 0, None)
        assert offered_most <= gradients
        places = dict(run.query(rank, PLACES))
        assert min(places) == 3 and len(places) == gradients + METRICS * bool(evaluations)
        counts = {trained: gradients} | ({evaluations: METRICS} if evaluations else {})
        assert Counter(places.values()) == counts
        tensors = run.query(rank, "SELECT step, tensors FROM negotiated_step ORDER BY step")
        # the last metrics are of a step that has not ended
        of_steps = agreed - METRICS * bool(evaluations)
        assert (len(tensors), sum(number for _, number in tensors)) == (steps, of_steps)
        alike.add((found[1], tuple(tensors)))
    assert len(alike) == 1


def test_steps_follow_each_other_and_sums_are_those_of_the_steps(profile):
    run = profile("plants", 2, "horovod", str(ROUNDS), "2000", "4000", "1")
    for rank in range(2):
        rows = run.query(
            rank,
            "SELECT after_ns, begin_ns, handed_after_ns, handed_ns, agreed_ns, done_ns "
            "FROM negotiated_step ORDER BY step",
        )
        for before, (after_ns, begin_ns, *handed_ns, agreed_ns, done_ns) in zip(
            [None, *rows], rows
        ):
            assert begin_ns <= handed_ns[1] <= agreed_ns <= done_ns
            assert handed_ns[0] <= handed_ns[1] and (not before or before[-1] == after_ns)
        exposed_ns = sum(row[-1] - row[3] for row in rows)
        assert run.query(rank, "SELECT exposed_ns FROM negotiation") == [
            (pytest.approx(exposed_ns, rel=1e-3),)
        ]


@pytest.mark.one_mpi
@pytest.mark.parametrize("late", ["0", "1"])
def test_without_the_cache_rank_0_is_known_to_be_last_where_the_others_wait_for_it(profile, late):
    run = profile("plants", 3, "horovod_by_name", str(ROUNDS), "2000", "40000", late)
    opened = "SELECT total(step > 1 AND handed_after_ns = after_ns) FROM negotiated_step"
    open_steps = [run.query(rank, opened)[0][0] for rank in range(3)]
    assert open_steps[1:] == [0, 0]
    assert open_steps[0] < ROUNDS / 2 if late == "0" else open_steps[0] > ROUNDS / 2


@pytest.mark.parametrize(
    ("program", "words", "rounds"),
    [("rounds", 1024, 4), ("rounds_large", 1024, 4), ("rounds_from_fortran", 2, 2)],
)
def test_only_such_calls_are_rounds(mpi, profile, program, words, rounds):
    if "fortran" in program:
        mpi.require_fortran(program)
    run = profile(program, 2)
    for rank, offered in enumerate((5, 2)):
        rows = run.query(
            rank, "SELECT words, rounds, rounds_ahead, agreed, offered_most FROM negotiation"
        )
        assert rows == [(words, rounds, rounds * (rank == 0), 2 * rounds, offered)]
        assert run.query(rank, PLACES) == [(3, rounds), (4, rounds)]
        assert (
            run.query(rank, "SELECT offered, agreed FROM sample WHERE offered IS NOT NULL")
            == [(offered, 2)] * rounds
        )
