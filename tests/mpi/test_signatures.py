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
    """Vectors of counts are equal if their hashes are; calls that move nothing have none."""
    pairs = set()
    for rank in range(run.ranks):
        found, said = run.query(rank, SIGNED), truth(tmp_path, rank)
        assert [as_text(row[:-1]) for row in found] == [line[:-1] for line in said]
        pairs |= {(line[-1], row[-1] or "-") for row, line in zip(found, said)}
        assert run.query(rank, MOVED_NOTHING) == [(0,)]
        assert run.query(rank, "SELECT DISTINCT memory_kind FROM signature") == [("host",)]
    counts, hashes = map(set, zip(*pairs))
    assert len(pairs) == len(counts) == len(hashes) > 5


@pytest.mark.parametrize("program", ("fortran_use_mpi", "fortran_f08"))
def test_fortran_s_types_have_their_names(mpi, profile, program):
    mpi.require_fortran(program)
    sql = "SELECT DISTINCT datatype, op FROM signed_sample ORDER BY datatype, op"
    found = profile(program, 2).query(0, sql)
    assert found == [
        ("MPI_DOUBLE_PRECISION", ""),
        ("MPI_DOUBLE_PRECISION", "MPI_SUM"),
        ("MPI_INTEGER", ""),
        ("MPI_INTEGER", "MPI_MAX"),
    ]
