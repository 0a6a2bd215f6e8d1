"""The signatures of sampled calls, row by row against what the program says of its calls; the same
from the ledger of a rank that was killed as from its database."""

import pytest

SIGNED = """
    SELECT call, datatype, type_bytes, extent, blocks, count, op, is_commutative, is_in_place,
           counts_hash
    FROM sample LEFT JOIN signature USING (world_rank, signature)
    WHERE bytes > 0 AND request_call = ''
        AND call NOT IN ('MPI_Start', 'MPI_Win_fence', 'MPI_Win_free')
    ORDER BY start_ns"""
MOVED_NOTHING = "SELECT count(*) FROM sample WHERE bytes = 0 AND signature IS NOT NULL"


@pytest.fixture
def run(profile, tmp_path):
    return profile("signatures", 3, env={"TRUTH": str(tmp_path)})


def truth(folder, rank):
    return [tuple(line.split("|")) for line in (folder / f"truth-{rank}").read_text().splitlines()]


def as_text(row):
    return tuple("-" if value is None else str(value) for value in row)


def test_each_call_has_the_signature_that_the_program_says(run, tmp_path):
    for rank in range(run.ranks):
        assert [as_text(row[:-1]) for row in run.query(rank, SIGNED)] == [
            line[:-1] for line in truth(tmp_path, rank)
        ]


def test_vectors_of_counts_are_equal_if_their_hashes_are(run, tmp_path):
    pairs = {
        (said[-1], row[-1] or "-")
        for rank in range(run.ranks)
        for row, said in zip(run.query(rank, SIGNED), truth(tmp_path, rank))
    }
    assert (
        len(pairs)
        == len({counts for counts, _ in pairs})
        == len({hashed for _, hashed in pairs})
        > 5
    )


def test_calls_that_move_nothing_have_none(run):
    assert [run.query(rank, MOVED_NOTHING) for rank in range(run.ranks)] == [[(0,)]] * run.ranks


def test_memory_is_the_host_s(run):
    assert [
        run.query(rank, "SELECT DISTINCT memory_kind FROM signature") for rank in range(run.ranks)
    ] == [[("host",)]] * run.ranks


@pytest.mark.parametrize("program", ("fortran_use_mpi", "fortran_f08"))
def test_fortran_s_types_have_their_names(mpi, profile, program):
    mpi.require_fortran(program)
    found = profile(program, 2).query(
        0, "SELECT DISTINCT datatype, op FROM signed_sample ORDER BY datatype, op"
    )
    assert found == [
        ("MPI_DOUBLE_PRECISION", ""),
        ("MPI_DOUBLE_PRECISION", "MPI_SUM"),
        ("MPI_INTEGER", ""),
        ("MPI_INTEGER", "MPI_MAX"),
    ]
