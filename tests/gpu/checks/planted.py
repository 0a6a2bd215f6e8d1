"""Truth of programs/planted.py, and what the profile says of it."""

from __future__ import annotations

from collections.abc import Iterator

import dumps
from jobs import Job, Jobs
from table import Row, failed, row, same

CLOCK_STEP_NS = 2_000  # a GPU's own timer may go in steps of a microsecond
LAUNCH_NS = 100_000  # of a kernel on a busy machine, at most, on the average of many


def planted(jobs: Jobs, what: str, form: str = "", **settings: str) -> Job:
    dump = "" if what == "cycle" else "-".join([what, *form.split()])
    return jobs.run(
        "planted",
        what,
        *[form] * bool(form),
        dump=dump,
        limit_s=45 if what == "cycle" else 25,
        **settings,
    )


def records(jobs: Jobs) -> Iterator[Row]:
    job = planted(jobs, "kernels").must("kernels")
    truth = job.truth
    seen = {name: numbers for name, numbers in job.kernels().items() if name in truth["kernels"]}
    yield same(
        "kernels by name",
        {name: count for name, (count, _) in truth["kernels"].items()},
        {name: n[0] for name, n in seen.items()},
    )
    for name, (count, duration_ns) in truth["kernels"].items():
        _, total_ns, shortest_ns, _ = seen.get(name, (0, 0, 0, 0))
        at_least = duration_ns - CLOCK_STEP_NS
        passed = shortest_ns >= at_least and total_ns <= count * (duration_ns + LAUNCH_NS)
        seen_ns = f"{shortest_ns} ns at least, {total_ns // count} ns on average"
        yield row(f"duration of {name}", f"each {duration_ns} ns or little more", seen_ns, passed)
    if truth.get("events_ns"):
        on_stream_ns = seen["planted_long"][1] + seen["planted_short"][1] // 2
        passed = 0.9 * truth["events_ns"] <= on_stream_ns <= 1.01 * truth["events_ns"]
        yield row(
            "kernels of a stream against CUDA's events",
            f"at most {truth['events_ns']} ns",
            f"about {on_stream_ns} ns",
            passed,
        )
    devices = job.query("SELECT number, name, kernels FROM gpu_device")
    yield row(
        "device",
        "device 0 has the kernels",
        devices,
        [number for number, _, kernels in devices if kernels] == [0],
    )
    sql = (
        "SELECT COUNT(DISTINCT stream) FROM gpu_activity JOIN gpu_kernel USING (world_rank, "
        "kernel) WHERE name LIKE 'planted_%'"
    )
    yield same("streams", 2, job.query(sql)[0][0])
    sql = (
        "SELECT gpu_dropped_records, gpu_implausible_records, gpu_late_records, "
        "gpu_unattributed_records FROM rank"
    )
    yield same("records dropped, implausible, late, unattributed", (0, 0, 0, 0), job.query(sql)[0])
    facts = dict(job.query("SELECT key, value FROM fact WHERE key LIKE 'gpu%'"))
    yield row(
        "CUPTI",
        "a library",
        facts.get("gpu.tracing_library", "none"),
        "gpu.tracing_library" in facts,
    )
    yield same("complaints", [], job.complaints)


def copies(jobs: Jobs) -> Iterator[Row]:
    job = planted(jobs, "copies").must("copies")
    each = tuple(job.truth["each"])
    sql = (
        "SELECT copy, is_pageable, SUM(count), SUM(volume_bytes) FROM gpu_activity WHERE kind = "
        "'copy' GROUP BY copy, is_pageable"
    )
    seen = {(copy, pageable): (count, volume) for copy, pageable, count, volume in job.query(sql)}
    for way in job.truth["ways"]:
        direction, _, memory = way.partition(", ")
        yield same(
            f"copies {way}: how many, bytes",
            each,
            seen.get((direction, int(memory == "pageable")), (0, 0)),
        )
    sets = job.query(
        "SELECT SUM(count), SUM(volume_bytes) FROM gpu_activity WHERE kind = 'memset'"
    )[0]
    yield same("memsets: how many, bytes", each, tuple(sets))


def correlation(jobs: Jobs) -> Iterator[Row]:
    """Checks the records as they came."""
    planted(jobs, "graph", "traced").must("correlation ids")
    planted(jobs, "copies").must("correlation ids")
    paths = [
        path
        for what in ("graph-traced", "copies")
        for path in (jobs.out / "buffers" / what).glob("*.dump")
    ]
    found = [record for path in paths for record in dumps.records(path)]
    for kind in ("kernel", "copy", "memset"):
        ids = [record.correlation for record in found if record.kind == kind]
        nonzero = sum(map(bool, ids))
        seen_ids = f"{nonzero} of {len(ids)} are not 0, {len(set(ids))} differ"
        yield row(
            f"correlation ids of {kind} records",
            "not 0",
            seen_ids,
            bool(ids) and nonzero == len(ids),
        )


GRAPH_CREATED = {
    "traced": "while traced",
    "before": "before the profiler",
    "between": "between two windows",
    "off and on": "in an earlier window",
}


def graph(jobs: Jobs) -> Iterator[Row]:
    """Each in a process of its own: what one graph makes of CUPTI shall not change another."""
    sql = """SELECT is_graph, SUM(count)
             FROM gpu_activity JOIN gpu_kernel USING (world_rank, kernel)
             WHERE name = 'planted_graph' GROUP BY 1"""
    for form, created in GRAPH_CREATED.items():
        check = f"kernels of a graph created {created}"
        job = planted(jobs, "graph", form)
        if job.problem:
            yield failed(check, job.problem)
        else:
            yield same(check, [(1, job.truth["launches"])], job.query(sql))


def clock(jobs: Jobs) -> Iterator[Row]:
    job = planted(jobs, "moments").must("clock")
    sql = """SELECT start_monotonic_ns + start_ns, start_monotonic_ns + end_ns
             FROM gpu_sample JOIN rank USING (world_rank)
             JOIN gpu_kernel USING (world_rank, kernel) WHERE name = 'planted_moment' ORDER BY 1"""
    spans, brackets = job.query(sql), job.truth["brackets"]
    yield same("kernels kept one by one", len(brackets), len(spans))
    if len(spans) != len(brackets):
        return
    early = [before - start for (start, _), (before, _) in zip(spans, brackets)]
    late = [end - after for (_, end), (_, after) in zip(spans, brackets)]
    seen = (
        f"{max(early)} ns before the launch, {max(late)} ns after the return, at most "
        "(negative: within)"
    )
    yield row(
        "kernels within launch and return of the wait",
        "all, to 5000 ns",
        seen,
        max(early + late) <= 5_000,
    )
    error = job.query("SELECT MAX(clock_error_ns) FROM gpu_tracing")[0][0]
    yield row(
        "error of the clock, as the profile says", "a number", f"{error} ns", error is not None
    )


OVERLAPS = ("partly hidden", "hidden", "after computing", "beside a copy")


def overlap(jobs: Jobs) -> Iterator[Row]:
    sql = """SELECT SUM(ns), SUM(ns * (1 - is_computing)) FROM gpu_busy WHERE is_communicating"""
    for form in OVERLAPS:
        job = planted(jobs, "overlap", form)
        if job.problem:
            yield failed(f"communication {form}", job.problem)
            continue
        seen = [value or 0 for value in job.query(sql)[0]]
        all_ns = job.truth["communicating_ns"]
        for name, truth_ns, seen_ns in zip(
            ("communication", "exposed communication"), (all_ns, job.truth["exposed_ns"]), seen
        ):
            expected = f"{truth_ns} ns to 5 % of {all_ns} ns"
            yield row(
                f"{name}, {form}, against CUDA's events",
                expected,
                f"{seen_ns} ns",
                abs(seen_ns - truth_ns) <= all_ns / 20,
            )


def cycle(jobs: Jobs) -> Iterator[Row]:
    job = planted(jobs, "cycle", COMMPROF_GPU_COLLECT_MS="10").must("tracing off and on")
    windows = f"kernels in {job.truth['cycles']} windows of tracing"
    yield same(windows, job.truth["launches"], job.counts().get("planted_cycle", 0))
    how = {how for (how,) in job.query("SELECT ended FROM gpu_tracing")}
    yield row(
        "how windows ended: not lost to a client that is not there",
        "off, stopped",
        ", ".join(sorted(how)),
        how <= {"off", "stopped"},
    )
    yield row(
        "from off to all collected, from on to tracing",
        "a number",
        f"{job.truth['off_ms']} ms, {job.truth['on_ms']} ms",
        True,
    )


def memory_kinds(jobs: Jobs) -> Iterator[Row]:
    job = jobs.run("memory_kinds")
    job.must("memory_kinds")
    sql = (
        "SELECT bytes, memory_kind, SUM(count) FROM cell WHERE call = 'MPI_Allreduce' GROUP BY "
        "bytes, memory_kind"
    )
    seen = job.query(sql)
    for size, kind in job.truth["sizes"].items():
        yield same(
            f"100 calls with {kind} memory",
            [(kind, 100)],
            [(where, count) for of, where, count in seen if of == int(size)],
        )
    queries, changes = job.query(
        "SELECT gpu_memory_kind_queries, gpu_memory_kind_changes FROM rank"
    )[0]
    yield row("questions to the driver about 500 calls", "fewer", queries, queries < 500)
    yield same("its answers that had changed", 0, changes)
