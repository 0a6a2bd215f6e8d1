"""What `hvprof-report advise` says of real ranks that send in good and bad shape (programs/message_shapes.c)."""

from __future__ import annotations


from . import reporter
from .harness import Run


def advice(run: Run) -> list[dict]:
    return reporter.rows("advise", run.folder)


def found(run: Run) -> dict[str, dict]:
    return {row["rule"]: row for row in advice(run) if row["found"]}


def test_many_small_allreduces_beside_few_large_ones_are_to_be_fused_first_of_all(profile):
    run = profile("message_shapes", 2, "many_small")
    first = advice(run)[0]
    assert (first["rule"], first["bytes"], first["communicator"]) == ("small_messages", 72, "MPI_COMM_WORLD")
    assert 0 < first["saving_ns"] < sum(cell.total_ns for rank in range(2) for cell in run.cells(rank, "MPI_Allreduce"))


def test_reduces_and_bcasts_that_belong_together_could_be_allreduces(profile):
    row = found(profile("message_shapes", 2, "pairs"))["reduce_and_bcast"]
    assert (row["bytes"], row["certainty"]) == (4 << 18, "sure")


def test_large_messages_alone_are_not_to_be_fused(profile):
    rules = found(profile("message_shapes", 2, "large"))
    assert not {"small_messages", "tiny_messages", "padding", "jumps", "reduce_and_bcast", "polling", "overlap"} & set(rules)
