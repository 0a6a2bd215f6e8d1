"""Communicators that are made and freed without end (programs/endless_communicators.calls) leave a
bounded memory and ranks that agree."""

import pytest

MADE = 99000
FIRST_RANKS = 9000
IDENTITIES = "SELECT identity, constructor, ordinal FROM communicator ORDER BY communicator"


def grown_kilobytes(outcome):
    return [int(line.split()[-2]) for line in sorted(outcome.stdout.splitlines())]


@pytest.mark.slow
def test_memory_stays_bounded_while_communicators_come_and_go(profile, plain):
    run = profile("endless_communicators", 1, str(MADE))
    # 4,094 of them are told apart, with 2.4 kB each; the last of those fall into the time that is
    # measured, and so may all of the sample log
    assert (
        grown_kilobytes(run.outcome)[0]
        < grown_kilobytes(plain("endless_communicators", 1, str(MADE)))[0] + 2 * 4096
    )
    assert run.counts("MPI_Comm_free") == [MADE]
    assert run.rank_row(0)["dropped_calls"] == 0


@pytest.mark.slow
def test_a_parent_that_is_not_told_apart_still_has_its_calls_counted(profile):
    run = profile("endless_communicators", 1, str(MADE))
    assert [run.counts(f"MPI_Comm_{how}") for how in ("dup", "split", "create_group")] == [
        [MADE // 3]
    ] * 3
    assert run.counts("MPI_Barrier") == [MADE // 300]


def test_ranks_agree_on_communicators_that_live_one_after_the_other(profile):
    run = profile("endless_communicators", 2, str(FIRST_RANKS))
    identities = [run.query(rank, IDENTITIES) for rank in range(2)]
    assert len(identities[0]) > 4000
    assert identities[0] == identities[1]
    assert len({row[0] for row in identities[0]}) == len(identities[0])
