"""Two rows of view `message` with equal communicator, ranks, tag and number are one message by the
program's own log."""

import pytest

COMPLETING = """
    SELECT count(*) FROM message
    WHERE completed_ns IS NOT NULL AND completed_ns NOT IN (SELECT end_ns FROM sample
        WHERE call IN ('MPI_Wait', 'MPI_Waitall'))"""
BY_ANOTHER_THREAD = """
    WITH wait AS (SELECT thread, end_ns FROM sample WHERE call IN ('MPI_Wait', 'MPI_Waitall'))
    SELECT count(*) FROM message
    WHERE completed_ns IN (SELECT end_ns FROM wait)
        AND (thread, completed_ns) NOT IN (SELECT thread, end_ns FROM wait)"""
UNKNOWN = """
    SELECT tag, group_concat(DISTINCT call), count(*) FILTER (WHERE number IS NULL)
    FROM (SELECT * FROM message ORDER BY call) WHERE direction = 'received' GROUP BY tag"""
KEY = """
    SELECT identity, direction, peer, tag, number, start_monotonic_ns + start_ns
    FROM message JOIN communicator USING (world_rank, communicator) JOIN rank USING (world_rank)"""


@pytest.fixture
def numbered(mpi, profile, tmp_path_factory):
    """numbered(rounds, threads): the run and the folder of its program's own log."""

    def ran(rounds, threads, samples="4M"):
        name = f"numbered-{mpi.name}-{rounds}-{threads}-{samples}"
        folder = tmp_path_factory.getbasetemp() / name
        folder.mkdir(exist_ok=True)
        env = {"TRUTH": str(folder), "COMMPROF_SAMPLES": samples, "COMMPROF_CLOCK": "monotonic"}
        return profile("numbered_messages", 2, str(rounds), str(threads), env=env), folder

    return ran


def truth_of(folder, rank):
    """By direction, peer and tag: when each message was posted, and its id."""
    known = {}
    for line in (folder / f"truth-{rank}").read_text().splitlines():
        direction, _, *numbers = line.split()
        before, after, peer, tag, ident = map(int, numbers)
        known.setdefault((direction, peer, tag), []).append((before, after, ident))
    return known


def ids_of(run, folder, direction):
    """By sender, receiver, communicator, tag and number: the ids that the log allows. Threads may
    post at the same time."""
    found, unknown = {}, 0
    for rank in range(run.ranks):
        truth = truth_of(folder, rank)
        for identity, where, peer, tag, number, start_ns in run.query(rank, KEY):
            if where != direction or number is None:
                unknown += where == direction
                continue
            ids = {
                ident
                for before, after, ident in truth[direction, peer, tag]
                if before <= start_ns <= after
            }
            ranks = (rank, peer) if direction == "sent" else (peer, rank)
            assert ids
            assert (*ranks, identity, tag, number) not in found
            found[(*ranks, identity, tag, number)] = ids
    return found, unknown


@pytest.mark.parametrize(
    "rounds, threads, samples",
    (
        (300, 1, "4M"),
        pytest.param(300, 0, "4M", marks=pytest.mark.slow),
        pytest.param(300, 2, "4M", marks=pytest.mark.slow),
        pytest.param(4_000, 1, "256K", marks=pytest.mark.slow),
    ),
)
def test_equal_numbers_are_the_same_message(numbered, rounds, threads, samples):
    run, folder = numbered(rounds, threads, samples)
    sent, _ = ids_of(run, folder, "sent")
    received, _ = ids_of(run, folder, "received")
    both = sent.keys() & received.keys()
    assert [key for key in both if not sent[key] & received[key]] == []
    # of the small log, windows may remain that the two ranks do not have in common
    assert samples != "4M" or len(both) > 1_500


def test_messages_from_any_source_and_matched_ones_have_numbers_unless_others_overtake_them(
    numbered,
):
    run, _ = numbered(300, 1)
    found = {tag: (calls, unknown) for tag, calls, unknown in run.query(1, UNKNOWN)}
    in_order, overtaken, matched, exchanged, persistent = (
        found.get(tag) for tag in (20, 21, 22, 23, 51)
    )
    assert in_order == ("MPI_Irecv", 0) and persistent == ("MPI_Recv_init", 0)
    assert matched == ("MPI_Imrecv,MPI_Mrecv", 0)
    assert exchanged in (None, ("MPI_Isendrecv", 0))  # MPI 3 has none
    assert overtaken is not None and overtaken[0] == "MPI_Irecv" and overtaken[1] > 50


def test_a_message_completes_with_the_call_that_completed_it(numbered):
    run, _ = numbered(300, 1)
    assert [run.query(rank, COMPLETING) for rank in range(2)] == [[(0,)]] * 2
    open_ones = (
        "SELECT DISTINCT call FROM message WHERE completed_ns IS NULL AND (call LIKE "
        "'MPI_I%' OR call LIKE '%init')"
    )
    assert [run.query(rank, open_ones) for rank in range(2)] == [[]] * 2


@pytest.mark.slow
def test_a_message_of_a_thread_is_not_completed_by_another_thread(numbered):
    run, _ = numbered(300, 2)
    assert [run.query(rank, BY_ANOTHER_THREAD) for rank in range(2)] == [[(0,)]] * 2
