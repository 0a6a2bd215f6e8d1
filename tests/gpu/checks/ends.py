"""How processes end; processes that use no GPU; ranks of a real MPI."""

from __future__ import annotations

import signal
from collections.abc import Iterator

from jobs import Jobs
from table import Row, row, same, skip

# How it ends -> its exit status
HOW = {
    "normal": 0,
    "at work": 0,
    "reset": 0,
    "exit": 0,
    "exit in a thread": 0,
    "fork": 0,
    "workers": 0,
    "os._exit": 0,
    "SIGTERM": -signal.SIGTERM,
    "SIGKILL": -signal.SIGKILL,
    "MPI_Abort": 3,
}


def ends(jobs: Jobs) -> Iterator[Row]:
    for how, status in HOW.items():
        if how == "workers" and jobs.why_no_torch == "no PyTorch":
            yield skip("end: workers of a DataLoader", jobs.why_no_torch)
            continue
        job = jobs.run("exits", how, needs_torch=how == "workers", limit_s=40)
        if job.hung or job.status != status or not job.truth.get("traced", True):
            yield row(
                f"end: {how}",
                f"status {status}, traced",
                f"status {job.status}",
                False,
                job.problem,
            )
            continue
        planted = job.truth["kernels"]
        kept = job.counts().get("planted_end", 0)
        seen = f"status {job.status}, {kept} kernels, {job.complaints or 'no word'}"
        yield row(
            f"end: {how}",
            f"status {status}, {planted} kernels, no word",
            seen,
            kept >= planted and not job.complaints,
        )


def untouched(jobs: Jobs) -> Iterator[Row]:
    with_it, without = jobs.run("untouched"), jobs.run("untouched", profiled=False)
    with_it.must("a process that uses no GPU")
    without.must("a process that uses no GPU")
    what = "imports PyTorch" if with_it.truth["torch"] else "has no PyTorch to import"
    yield same(
        f"NVIDIA's libraries in a process that {what}",
        without.truth["libraries"],
        with_it.truth["libraries"],
    )
    yield same("a context in it", False, with_it.truth["context"])
    yield same("its GPU side", [("dormant",)], with_it.query("SELECT gpu_state FROM rank"))


def ranks(jobs: Jobs) -> Iterator[Row]:
    if not jobs.several:
        yield skip("two ranks of an MPI", jobs.why_not_several)
        return
    launcher = (jobs.several.mpirun, "-n", "2")
    job = jobs.run("several", under=launcher, GPU_TEST_MPI=jobs.several.calls)
    job.must(f"two ranks ({jobs.several.name})")
    for rank in range(2):
        planted = job.truth[f"rank {rank}"][0]
        yield same(
            f"kernels of rank {rank} of 2 ({jobs.several.name})",
            planted,
            job.counts(rank).get("planted_rank", 0),
        )
        sql = "SELECT memory_kind FROM cell WHERE call = 'MPI_Allreduce'"
        yield same(
            f"memory kind of rank {rank}'s buffers", [("pinned>host",)], job.query(sql, rank)
        )
    sql = "SELECT uuid FROM gpu_device"
    uuids = {uuid for rank in range(2) for (uuid,) in job.query(sql, rank)}
    yield row("UUIDs of the GPU that both use", "one", ", ".join(sorted(uuids)), len(uuids) == 1)
    (totals,) = job.report("gpu", "--by", "run")
    yield same("devices of both ranks, as hvprof-report counts them", 1, totals["devices"])
    job = jobs.run("several", "abort", under=launcher, limit_s=40, GPU_TEST_MPI=jobs.several.calls)
    seen = "hung" if job.hung else f"status {job.status}"
    yield row(
        "MPI_Abort of two ranks", "ends, status not 0", seen, not job.hung and job.status != 0
    )
    yield same("kernels of rank 0 after MPI_Abort", 20, job.counts().get("planted_rank", 0))
