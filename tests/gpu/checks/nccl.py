"""NCCL: through PyTorch, where wrappers see it, and by name, where only a plugin could."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path

from jobs import Job, Jobs
from machine import DOUBLES, LIBRARY, nccl_path
from table import Row, failed, row, same, skip

# Two ranks share a GPU where NCCL takes them for two hosts and has nothing but sockets. NVIDIA does
# not support it.
ON_ONE_GPU = {
    "NCCL_P2P_DISABLE": "1",
    "NCCL_SHM_DISABLE": "1",
    "NCCL_IB_DISABLE": "1",
    "NCCL_SOCKET_IFNAME": "lo",
    "NCCL_MAX_NCHANNELS": "1",
}


def through_pytorch(jobs: Jobs) -> Iterator[Row]:
    for ranks in (1, 2):
        settings = ON_ONE_GPU if ranks > 1 else {}
        store = jobs.out / f"store-{ranks}"
        unprofiled = jobs.run(
            "nccl_operations",
            str(store) + "-alone",
            profiled=False,
            copies=ranks,
            needs_torch=True,
            limit_s=45,
            **settings,
        )
        if unprofiled.hung or unprofiled.status:
            yield skip(
                f"NCCL, {ranks} rank{'s' * (ranks > 1)}",
                f"it does not work here without us: {unprofiled.problem}",
            )
            continue
        job = jobs.run(
            "nccl_operations",
            str(store),
            copies=ranks,
            needs_torch=True,
            dump=f"nccl-{ranks}",
            limit_s=60,
            **settings,
        )
        yield from (
            [failed(f"NCCL, {ranks} rank{'s' * (ranks > 1)}", job.problem)]
            if job.problem
            else counted(job, ranks)
        )


def counted(job: Job, ranks: int) -> Iterator[Row]:
    # of each rank what it told last
    for truth in {truth["rank"]: truth for truth in job.truths}.values():
        rank, of = truth["rank"], f"rank {truth['rank']} of {ranks}"
        sql = (
            "SELECT call, bytes, measure, SUM(count) FROM cell WHERE call LIKE 'nccl%' GROUP BY "
            "call, bytes, measure"
        )
        seen = {(call, size, measure): count for call, size, measure, count in job.query(sql, rank)}
        for call, (times, size) in truth["operations"].items():
            yield same(f"{call} of {size} bytes, {of}", times, seen.get((call, size, "call"), 0))
            if ranks > 1:
                yield same(
                    f"{call} on the device, {of}", times, seen.get((call, size, "device"), 0)
                )
        if truth["group"]:
            times, size = truth["group"]
            yield same(
                f"{times} operations in a group, {of}",
                times,
                seen.get(("ncclAllReduce", size, "call"), 0),
            )
            grouped = sum(
                count
                for (call, _, measure), count in seen.items()
                if call == "ncclGroup" and measure == "device"
            )
            yield row(
                f"the group's time on the device, {of}",
                "under ncclGroup",
                f"{grouped} groups",
                ranks == 1 or grouped >= 1,
            )
        else:
            yield skip(f"operations in a group, {of}", truth.get("why_no_group", ""))
        if truth["captured"]:
            times, size, replays = truth["captured"]
            yield same(
                f"operations captured in a graph, {of}",
                times,
                seen.get(("ncclAllReduce", size, "captured"), 0),
            )
            sql = """SELECT SUM(count) FROM gpu_activity JOIN gpu_kernel USING (world_rank, kernel)
                     WHERE is_graph AND is_communication"""
            kernels = job.query(sql, rank)[0][0] or 0
            yield row(
                f"kernels of its {replays} replays, {of}",
                replays if ranks > 1 else "any",
                kernels,
                ranks == 1 or kernels == replays,
            )
        else:
            yield skip(f"operations captured in a graph, {of}", truth.get("why_no_captured", ""))
        names = [
            name
            for (name,) in job.query("SELECT name FROM gpu_kernel WHERE is_communication", rank)
        ]
        yield row(
            f"communication kernels, {of}",
            "some" if ranks > 1 else "any",
            ", ".join(names) or "none",
            ranks == 1 or bool(names),
        )
        unmatched = job.query("SELECT gpu_unmatched_operations FROM rank", rank)[0][0]
        yield row(
            f"operations without a time on the device, {of}",
            0 if ranks > 1 else "any",
            unmatched,
            ranks == 1 or unmatched == 0,
        )


def without_pytorch(jobs: Jobs) -> Iterator[Row]:
    """A program in C whose operations CUDA's events time one by one."""
    library = str(DOUBLES / "libnccl.so.2") if jobs.is_double else nccl_path()
    if not library:
        yield skip("NCCL's times", "no libnccl.so.2")
        return
    words = [
        "-Wl,--no-as-needed",
        library,
        f"-Wl,-rpath,{Path(library).parent}",
        "-Wl,--allow-shlib-undefined",
    ]
    program = jobs.built(
        "NCCL's times", "nccl_times", *words, *[str(DOUBLES / "libcuda.so.1")] * jobs.is_double
    )
    for ranks in (1, 2):
        settings = ON_ONE_GPU if ranks > 1 else {}
        alone = jobs.run(
            program,
            str(jobs.out / f"nccl-times-{ranks}-alone"),
            profiled=False,
            copies=ranks,
            limit_s=20,
            **settings,
        )
        if alone.problem:
            yield skip(
                f"NCCL's times, {ranks} rank{'s' * (ranks > 1)}",
                f"it does not work here without us: {alone.problem}",
            )
            continue
        job = jobs.run(
            program,
            str(jobs.out / f"nccl-times-{ranks}"),
            copies=ranks,
            dump=f"nccl-times-{ranks}",
            limit_s=25,
            **settings,
        )
        yield from (
            [failed(f"NCCL's times, {ranks} ranks", job.problem)]
            if job.problem
            else timed(job, ranks)
        )


def timed(job: Job, ranks: int) -> Iterator[Row]:
    """The events enclose the kernel; on one rank there is none but a copy."""
    sql = (
        "SELECT measure, SUM(count), SUM(total_ns) FROM cell WHERE call = '{}' AND bytes = {} "
        "GROUP BY measure"
    )
    for truth in job.truths:
        rank = truth.pop("rank")
        for call, (times, size, events_ns) in truth.items():
            seen = {
                measure: numbers for measure, *numbers in job.query(sql.format(call, size), rank)
            }
            of = f"{call}, rank {rank} of {ranks}"
            yield same(f"calls of {of}", times, seen.get("call", [0])[0])
            count, device_ns = seen.get("device", [0, 0])
            if ranks > 1 or count:
                expected, told = (
                    f"{times} in {events_ns} ns or little less",
                    f"{count} in {device_ns} ns",
                )
                yield row(
                    f"device time of {of}",
                    expected,
                    told,
                    count == times and 0.5 * events_ns <= device_ns <= 1.02 * events_ns,
                )


def by_name(jobs: Jobs) -> Iterator[Row]:
    library = nccl_path()
    if not library:
        yield skip("NCCL by name", "no libnccl.so.2")
        return
    ours = ctypes.CDLL(str(LIBRARY))
    if not any(hasattr(ours, f"ncclProfiler_v{version}") for version in range(1, 10)):
        yield skip(
            "NCCL by name",
            "the library exports no ncclProfiler_v*: NCCL that is called by name is not seen",
        )
        return
    settings = {**ON_ONE_GPU, "NCCL_PROFILER_PLUGIN": "STATIC_PLUGIN", "COMMPROF_NCCL": "on"}
    alone = jobs.run(
        "nccl_by_name",
        library,
        str(jobs.out / "nccl-id-alone"),
        profiled=False,
        copies=2,
        limit_s=25,
        **settings,
    )
    if alone.problem:
        yield skip("NCCL by name", f"it does not work here without us: {alone.problem}")
        return
    job = jobs.run(
        "nccl_by_name", library, str(jobs.out / "nccl-id"), copies=2, limit_s=50, **settings
    )
    job.must("NCCL by name")
    for truth in job.truths:
        (times, size) = truth["operations"]["ncclAllReduce"]
        sql = (
            f"SELECT SUM(count) FROM cell WHERE call = 'ncclAllReduce' AND bytes = {size} AND "
            "measure = 'call'"
        )
        yield same(
            f"ncclAllReduce by name, rank {truth['rank']} of 2",
            times,
            job.query(sql, truth["rank"])[0][0] or 0,
        )
