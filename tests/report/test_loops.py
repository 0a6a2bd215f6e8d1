"""The steps that are found in a sequence of calls are those that made it."""

from __future__ import annotations

import numpy as np
import pytest
import training
from commprof_report.base import Columns, Texts
from commprof_report.loops.levels import Kind, find_loops
from commprof_report.steps import lines
from commprof_report.steps.stepping import VISITS, steps_of
from training import Job

LEAST_BULK = 100  # bytes; what control traffic is, is another test's concern
ROOTED = ("MPI_Bcast", "MPI_Gather", "MPI_Reduce", "MPI_Barrier", "MPI_File_write_at")


def calls_of(job: Job) -> tuple[lines.OwnCalls, Columns, Texts]:
    made = [one for one in job.made if one.sequence is not None]
    sequence = np.array([one.sequence for one in made])
    texts = Texts()
    call = texts.all([one.call for one in made])
    sizes = np.array([one.bytes for one in made])
    is_bulk = sizes >= LEAST_BULK
    is_rooted = np.array([name in ROOTED for name in texts.texts])
    is_barrier = np.array([name == "MPI_Barrier" for name in texts.texts], bool)
    similar = lines.by_first_use(call, lines.repeated(call, sizes))
    kind = np.where(is_rooted[call], Kind.ROOTED, np.where(is_bulk, Kind.DATA, Kind.SMALL))
    kind[is_barrier[call]] = Kind.BARRIER
    start = np.array([one.begin_ns for one in made])
    end = np.where(is_bulk, [one.last_ns for one in made], [one.end_ns for one in made])
    none_known = np.zeros(len(made), np.int64)
    what = (call, call, similar, similar, kind, is_bulk, sizes, none_known)
    own = lines.OwnCalls(*what, sequence, none_known, start, end)
    none = np.zeros(len(texts.texts), bool)
    is_reduction = np.array([lines.is_reduction(name) for name in texts.texts])
    is_bcast = np.array([name == "MPI_Bcast" for name in texts.texts], bool)
    about = Columns(
        is_reduction=is_reduction,
        is_broadcast=is_bcast,
        is_barrier=is_barrier,
        is_start=none,
        has_own_size=none,
    )
    return own, about, texts


def test_no_loop_spans_a_hole():
    loops = find_loops(np.array([1, 2, 1, 2]), np.array([0, 0, 1, 1]))
    assert loops.bodies == []


def test_parameters_handed_out_before_a_few_steps_do_not_hide_them():
    job = Job()
    training.parameters(job, [96_068] * 40 + [76])
    for step in range(12):
        job.compute(30 * training.MS)
        for size in (2_504_752, 1_181_696, 156_288):
            job.call("Allreduce", size, step)
    found = steps_of(*calls_of(job), False)
    assert found.functions == {"MPI_Allreduce": 3}
    assert (len(found.spans), found.confidence) == (12, 1.0)


@pytest.mark.parametrize(
    ("sizes", "around", "evidence"),
    [
        ((40_000, 9_000, 300_000), 0, ("the only loop",)),
        ((40_000, 9_000), 0, ()),  # as a layer
        ((8, 16, 24), 0, ()),  # as a solver
        ((40_000, 9_000, 300_000), 12, ()),  # as blocks of a network, with a loss after twelve
    ],
)
def test_the_only_loop_is_the_step_if_its_ranks_wait_in_several_calls(sizes, around, evidence):
    job = Job()
    for place in range(240):
        job.compute(training.MS)
        for size in sizes:
            job.call("Allreduce", size)
        if around and place % around == around - 1:
            job.call("Allreduce", 8)
    assert steps_of(*calls_of(job), False).evidence == evidence


def test_a_turn_before_the_loops_that_computes_shows_which_of_them_is_the_step():
    """The first forces of molecular dynamics, which prints energies every tenth step; a turn that
    only exchanges halos shows nothing, and an overhead of the first step is of a step."""
    for first_ns, barriers, expected in (
        (training.MS, 1, (40, ("a turn before the others, and a barrier",))),
        (0, 1, (41, ())),
        (training.MS, 4, (41, ())),
    ):
        job = Job()
        job.call("Allreduce", 8)
        job.compute(first_ns)
        job.call("Allreduce", 4)
        job.call("Barrier", 0)
        for step in range(40):
            job.call("Allreduce", 8)
            job.compute(training.MS)
            if step % 10 == 9:
                job.call("Allreduce", 16)
                job.call("Barrier", 0) if barriers > 1 else None
        found = steps_of(*calls_of(job), False)
        inner = found.levels[-1] if found.levels else found
        assert (len(inner.spans), found.evidence) == expected


def test_of_regions_in_each_other_the_outer_one_is_the_step():
    job = Job()
    for _ in range(240):
        job.compute(training.MS)
        job.call("Allreduce", 400_000)
        job.call("Allreduce", 8)
    inner = VISITS.row("substep", 240, int(0.9 * job.now_ns), 0)
    for outer, evidence in (
        ([], ("region 'substep'",)),
        ([VISITS.row("run", 1, job.now_ns, 0)], ("region 'substep'",)),
        ([VISITS.row("step", 60, job.now_ns, 0)], ()),
    ):
        assert steps_of(*calls_of(job), False, [*outer, inner]).evidence == evidence


def test_a_region_that_is_visited_once_a_step_and_has_most_of_the_time_is_evidence():
    job = Job()
    for _ in range(20):
        for _ in range(12):
            job.compute(training.MS)
            job.call("Allreduce", 400_000)
        job.call("Allreduce", 8)
    own, *others = calls_of(job)
    for name, number, share, evidence in (
        ("train", 20, 0.9, ("region 'train'",)),
        ("layer", 240, 0.9, ("region 'layer'",)),
        ("epoch", 20, 0.9, ()),
        ("output", 20, 0.1, ()),
        ("other", 31, 0.9, ()),
    ):
        visits = [VISITS.row(name, number, int(share * job.now_ns), 0)]
        assert steps_of(own, *others, False, visits).evidence[:1] == evidence, name
    chosen = [steps_of(own, *others, False, (), "", loop) for loop in (1, 2)]
    assert [(len(one.spans), one.evidence) for one in chosen] == [
        (20, ("--loop",)),
        (240, ("--loop",)),
    ]
