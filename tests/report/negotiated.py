"""A job whose MPI calls a thread makes that negotiates, as Horovod's does, and whose main thread
marks where it waits."""

from __future__ import annotations

import random

from planted_job import HostClock, Job

MS = 1_000_000
STEP_NS, STEPS = 100 * MS, 40
KIND = {"type_bytes": 8, "extent": 8, "blocks": 1, "count": 1, "is_in_place": 0}
KIND["memory_kind"] = "host"
WAIT = "train/wait for gradients"


def trained(
    late_ns: int,
    marks: bool = False,
    region: str = "",
    is_negotiated: bool = True,
    steps: int = STEPS,
    handed_over: bool = False,
) -> Job:
    """Two ranks compute for 40 ms, rank 1 longer, and wait for their gradients, which are there 7
    ms after the last one has come; a thread beside the main one negotiates and sums them. A data
    loader is waited for at the begin of each step. handed_over: what the ranks offer and agree on
    is recorded; in every tenth step they agree on a metric besides."""
    chance, job = random.Random(3), Job([HostClock(77)] * 2, wall_ns=(steps + 1) * STEP_NS)
    job.world.thread = 1
    data = job.group(range(2))
    data.thread, data.signature = 1, 2
    for step in range(steps):
        begin_ns = step * STEP_NS
        handed = [begin_ns + 40 * MS + chance.randrange(MS) + late_ns * rank for rank in range(2)]
        for late_by in (0, 10 * MS, 20 * MS) if is_negotiated else ():
            arrivals = [begin_ns + late_by + 2 * MS, begin_ns + late_by]
            job.collective("MPI_Allreduce", arrivals, [20_000] * 2, message_bytes=8)
        arrivals = [max(handed) + MS] * 2 if is_negotiated else handed
        job.collective("MPI_Allreduce", arrivals, [5 * MS] * 2, group=data)
        for rank in range(2):
            end_ns = max(handed) + 7 * MS
            if handed_over:
                times = begin_ns, handed[rank], max(handed) + MS, end_ns
                agree(job, rank, step + step // 10 + 1, 30, *times)
                if step % 10 == 9:
                    agree(job, rank, step + step // 10 + 2, 1, *[end_ns + MS] * 4)
            if marks:
                times = {"begin_ns": handed[rank], "end_ns": handed[rank] + STEP_NS}
                job.add("step", world_rank=rank, step=step + 1, thread=0, **times)
            if region:
                span(job, rank, 1, handed[rank], end_ns)
                span(job, rank, 2, begin_ns, begin_ns + 5 * MS)
    for rank in range(2):
        job.thread(rank, is_main=1)
        job.thread(rank, is_main=0, thread=1)
        for number, name in ((1, region), (2, "wait for data")) if region else ():
            job.add("region", world_rank=rank, region=number, name=name)
        for number, datatype, op in ((1, "MPI_LONG_LONG", "MPI_BAND"), (2, "MPI_FLOAT", "MPI_SUM")):
            what = {"signature": number, "datatype": datatype, "op": op, **KIND}
            job.add("signature", world_rank=rank, **what)
    for row in job.rows["sample"]:
        row["signature"] = 1 if row["communicator"] == job.world.communicator else 2
    return job


def agree(job: Job, rank: int, step: int, tensors: int, *times_ns: int) -> None:
    """times_ns: of the step before, handed over, agreed on, and done."""
    after_ns, handed_ns, agreed_ns, done_ns = times_ns
    where = {"world_rank": rank, "thread": 1, "communicator": job.world.communicator}
    handed = {"begin_ns": handed_ns, "handed_after_ns": handed_ns - MS, "handed_ns": handed_ns}
    times = {"after_ns": after_ns, **handed, "agreed_ns": agreed_ns, "done_ns": done_ns}
    job.add("negotiated_step", step=step, tensors=tensors, **where, **times)


def span(job: Job, rank: int, region: int, begin_ns: int, end_ns: int) -> None:
    job.add(
        "region_span", world_rank=rank, thread=0, region=region, begin_ns=begin_ns, end_ns=end_ns
    )
