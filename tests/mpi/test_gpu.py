"""GPUs that do not exist (tests/doubles), used by real ranks: what the profile says of them is what
the program planted. This shows that our side does what it should if CUDA behaves as
tests/doubles/README.md says; it shows nothing about CUDA."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from . import doubles, reporter
from .doubles import FOLDER, SETTINGS, Truth, busy_ns, counts, is_true, program, seen, truths
from .harness import CLOCK_ERROR, COMMPROF_RUN, Run, profiled_each

pytestmark = pytest.mark.one_mpi

RANKS = 2
STEPS = 6
CHATTER = 2000  # short calls after each step, of the program that is told to be chatty
KERNELS_A_STEP = 10


@pytest.fixture(scope="session")
def trained(mpi, profile):
    """trained("staged", ..., DOUBLE_...="..."): the training program's run, and
    each rank's truth."""

    def run_training(
        *words: str, exit_status: int | None = 0, **settings: str
    ) -> tuple[Run, list[Truth]]:
        binary = program(mpi, "training", "libcuda.so.1")
        run = profile(
            binary, RANKS, str(STEPS), *words, env=SETTINGS | settings, exit_status=exit_status
        )
        return run, truths(run.outcome)

    return run_training


@pytest.fixture
def side_by_side(mpi, tmp_path):
    """side_by_side([("staged", {"DOUBLE_...": "..."}), ...]): the run of one job, in which each
    rank has words and settings of its own, and each rank's truth; nothing is said."""

    def run_training(of_ranks: Sequence[tuple[str, dict[str, str]]]) -> tuple[Run, list[Truth]]:
        training = [str(COMMPROF_RUN), program(mpi, "training", "libcuda.so.1"), str(STEPS)]
        commands = [
            ["env", *(f"{name}={value}" for name, value in own.items()), *training, *words.split()]
            for words, own in of_ranks
        ]
        run = profiled_each(mpi, commands, tmp_path, **SETTINGS)
        assert run.outcome.exit_status == 0 and complaints(run.outcome) == [], run.outcome
        return run, truths(run.outcome)

    return run_training


def as_planted(run, truth):
    """All ranks' activities are those that were launched, and nothing is said; the run."""
    assert all(is_true(seen(run, rank), truth[rank]) for rank in range(RANKS))
    assert complaints(run.outcome) == []
    return run


def state(run, rank) -> tuple[str, str]:
    """gpu_state, and the reason if there is one."""
    return str(run.rank_row(rank)["gpu_state"]), run.facts(rank).get("gpu.reason", "")


def said(command, run) -> str:
    return reporter.text(command, run.folder)


def complaints(outcome) -> list[str]:
    """Lines of the profiler or the program on stderr, but for the closing line."""
    return [
        line
        for line in outcome.stderr.splitlines()
        if line.startswith(("commprof:", "training:", "double")) and "profile of" not in line
    ]


def lines(path, pid: int | None = None) -> list[tuple[int, int, str, int]]:
    """The double's log: pid, tid, function, result."""
    split = (line.split() for line in path.read_text().splitlines()) if path.exists() else iter(())
    return [(int(a), int(b), c, int(d)) for a, b, c, d in split if pid in (None, int(a))]


# Processes without a GPU


@pytest.mark.parametrize("wanted", ["auto", "on"])
def test_a_process_without_a_gpu_opens_nothing_of_cuda(mpi, profile, wanted):
    settings = SETTINGS | {"COMMPROF_GPU": wanted}
    run = profile(program(mpi, "no_gpu"), RANKS, env=settings)
    said = run.outcome.stdout.splitlines()
    assert not [line for line in said if line.startswith("mapped")]
    if wanted == "auto" and not Path("/dev/nvidiactl").exists():
        assert "thread commprof-gpu" not in said
        assert state(run, 0) == ("none", "")
    assert not run.query(0, "SELECT * FROM gpu_device")


def test_off_is_off(trained, tmp_path):
    log = tmp_path / "log"
    run, _ = trained("staged", "alone", COMMPROF_GPU="off", DOUBLE_CUPTI_LOG=str(log))
    assert not log.exists()
    assert state(run, 0) == ("refused", "COMMPROF_GPU=off")
    assert not run.query(0, "SELECT * FROM gpu_activity")


# Counters and sensors (NVML)

POWER_CAP, HARDWARE_THERMAL = 0x4, 0x40
LINKS = {
    "nvlink": ("nvlink_sent_bytes", "nvlink_received_bytes"),
    "pcie": ("pcie_sent_bytes", "pcie_received_bytes"),
}
LIMITS = ("is_idle", "is_power_limited", "is_heat_limited", "is_hardware_limited")
READ = {"memory": ("memory_used_bytes",), "clock": ("clock_mhz",), "reasons": LIMITS, **LINKS}


def sensors(run, rank=0) -> list[dict[str, int | None]]:
    columns = [column for known in READ.values() for column in known]
    return [
        dict(zip(columns, row))
        for row in run.query(rank, f"SELECT {', '.join(columns)} FROM gpu_reading ORDER BY at_ns")
    ]


def test_planted_throttling_is_seen_and_said(trained):
    run, _ = trained(
        "staged", "fork", "sensors", DOUBLE_NVML_REASONS=str(POWER_CAP + HARDWARE_THERMAL)
    )
    for rank in range(RANKS):
        read = sensors(run, rank)
        assert {tuple(row[limit] for limit in LIMITS) for row in read} == {(0, 1, 1, 0)}
        assert {(row["clock_mhz"], row["memory_used_bytes"]) for row in read} == {
            (1200, 61 * 10**9)
        }
        for sent, received in LINKS.values():
            assert 0 <= read[0][received] < read[1][received] < read[2][received] < read[2][sent]
    for row in reporter.rows("gpu", "--by", "sensor", run.folder):
        assert (row["throttled_share"], row["power_share"], row["heat_share"]) == (1, 1, 1)
    assert complaints(run.outcome) == []


@pytest.mark.parametrize(
    "settings", [{}, {"LD_LIBRARY_PATH": f"{FOLDER}/old:{FOLDER}"}], ids=["new", "old driver"]
)
def test_a_healthy_device_is_not_throttled(trained, settings):
    run, _ = trained("staged", "sensors", **settings)
    assert {tuple(row[limit] for limit in LIMITS) for row in sensors(run)} == {(0, 0, 0, 0)}
    shown = said("gpu", run)
    assert "throttled" in shown and "  1,980  1,980     0.00 %" in shown and "61.0 GB" in shown


SHOWN = "memory_most_bytes clock_mean_mhz throttled_share nvlink_sent_bytes_per_s \
pcie_sent_bytes_per_s".split()


@pytest.mark.parametrize(("what", "key"), zip(READ, SHOWN))
def test_what_the_driver_does_not_support_is_not_known(trained, what, key):
    run, _ = trained("staged", "sensors", DOUBLE_NVML_UNSUPPORTED=what)
    assert len(sensors(run)) >= 3
    for row in sensors(run):
        assert {column for column, value in row.items() if value is None} == set(READ[what])
    assert {row[key] for row in reporter.rows("gpu", "--by", "sensor", run.folder)} == {None}


def test_without_nvml_the_rest_is_as_ever(side_by_side, tmp_path):
    """It answers nothing, does not begin, or is not there."""
    (tmp_path / "libnvidia-ml.so.1").write_bytes(b"")
    ways = [
        {"DOUBLE_NVML_UNSUPPORTED": " ".join(READ)},
        {"DOUBLE_NVML_INIT": "9"},
        {"LD_LIBRARY_PATH": f"{tmp_path}:{FOLDER}"},
    ]
    run, truth = side_by_side([("staged", way) for way in ways])
    for rank in range(len(ways)):
        assert is_true(seen(run, rank), truth[rank]) and sensors(run, rank) == []
    assert "throttled" not in said("gpu", run)


def test_communication_occupies_as_many_multiprocessors_as_it_has_blocks(trained):
    run, _ = trained("staged")
    device = "SELECT sms, communication_ns, communication_sm_ns, communication_most_sms "
    ((total_ns,),) = run.query(
        0,
        "SELECT SUM(total_ns) FROM gpu_activity JOIN gpu_kernel USING (world_rank, kernel) WHERE "
        "is_communication",
    )
    assert run.query(0, device + "FROM gpu_device") == [(132, total_ns, 16 * total_ns, 16)]
    assert "at most 16.0 of 132 SMs on average" in said("gpu", run)


# Traced activities are counted exactly

EXACT = [  # words, settings, and what the tracing library is
    ("staged", {}, ""),
    ("aware", {}, ""),
    ("staged threads", {}, ""),
    ("staged graph threads", {}, ""),
    ("staged fork", {}, ""),  # the double ends a child that calls it
    *(
        ("staged", {"DOUBLE_CUPTI_VERSION": version}, f"version {version}")
        for version in ("130001", "130101", "130301", "130500")
    ),
    ("staged threads", {"DOUBLE_DRIVER_VERSION": "12090"}, "libcupti.so.12"),
    ("staged", {"DOUBLE_DRIVER_VERSION": "14000"}, "libcupti.so.13"),
]


def test_kernels_copies_and_sets_are_those_that_were_launched(side_by_side):
    run, truth = side_by_side([line[:2] for line in EXACT])
    for rank, (_, _, library) in enumerate(EXACT):
        assert is_true(seen(run, rank), truth[rank])
        assert run.rank_row(rank)["gpu_records"] == truth[rank].records
        assert state(run, rank) == ("stopped", "")
        assert library in run.facts(rank)["gpu.tracing_library"]


def test_the_device_was_busy_as_long_as_the_launches_overlapped(trained):
    run, truth = trained("staged", "threads")
    for rank in range(RANKS):
        profiled, planted = busy_ns(run, rank), truth[rank].busy_ns
        off_ns = [profiled.get(which, 0) - planted[which] for which in range(1, len(planted))]
        assert max(map(abs, off_ns)) <= 20_000, (profiled, planted)


def test_no_call_of_mpi_is_missing_in_the_unions(trained):
    """A thread makes many calls between two looks, and is in another one at the next."""
    run, _ = trained("staged", "chatty")
    in_windows = """
        SELECT COUNT(*), SUM(MAX(0, MIN(sample.end_ns, tracing.end_ns) - MAX(start_ns, begin_ns)))
        FROM sample, gpu_tracing AS tracing WHERE call != 'MPI_Finalize'"""
    for rank in range(RANKS):
        ((count, calls_ns),) = run.query(rank, in_windows)
        ((union_ns,),) = run.query(rank, "SELECT SUM(ns) FROM gpu_busy WHERE is_in_mpi")
        assert count > CHATTER
        assert union_ns >= calls_ns - count  # each may be rounded
        assert run.rank_row(rank)["gpu_lost_intervals"] == 0


def test_what_a_graph_launches_is_marked_and_idle_believed(trained):
    run, _ = trained("staged", "graph", "threads")
    sql = """SELECT name, is_graph, SUM(count)
             FROM gpu_activity JOIN gpu_kernel USING (world_rank, kernel)
             WHERE name LIKE '%gemm%' GROUP BY 1, 2"""
    assert run.query(0, sql) == [
        ("_Z12forward_gemmPKfS0_Pfi", 1, 3 * STEPS),
        ("_Z13backward_gemmPKfS0_Pfi", 0, 3 * STEPS),
    ]
    assert "gpu.unseen_graph_launches" not in run.facts(0)
    assert "CUDA graphs" not in said("gpu", run) + said("summary", run)


def test_where_graphs_leave_no_records_idle_is_doubted(trained):
    run, _ = trained("staged", "graph", DOUBLE_CUPTI_GRAPHS="0")
    assert run.query(0, "SELECT * FROM gpu_activity WHERE is_graph") == []
    assert run.facts(0)["gpu.unseen_graph_launches"] == str(STEPS)
    lost = f"may hold kernels of CUDA graphs: {RANKS * STEPS} launches left no record"
    assert lost in said("gpu", run)
    assert "idle or in CUDA graphs that left no record" in said("summary", run)


def test_copies_from_pageable_memory_are_marked_and_the_device_is_named(trained):
    run, _ = trained("staged")
    sql = "SELECT copy, is_pageable, SUM(count) FROM gpu_activity WHERE kind = 'copy' GROUP BY 1, 2"
    copies = [("to device", 0, STEPS), ("to device", 1, STEPS), ("to host", 0, STEPS)]
    assert sorted(run.query(0, sql)) == copies
    name, uuid = "Double of a GPU", "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"
    device = (name, uuid, KERNELS_A_STEP * STEPS)
    assert run.query(0, "SELECT name, uuid, kernels FROM gpu_device")[0] == device


# Other clients of CUPTI


def test_pytorch_s_profiler_gets_all_it_traces_and_we_go_on_afterwards(trained):
    run, truth = trained("staged", "kineto")
    as_planted(run, truth)
    for rank in range(RANKS):
        assert truth[rank].kineto_kernels == STEPS // 3 * KERNELS_A_STEP
        ended = run.query(rank, "SELECT ended FROM gpu_tracing ORDER BY begin_ns")
        assert ended == [("yielded",), ("stopped",)]


def test_where_nsight_systems_traces_nothing_of_cupti_s_is_called(trained, tmp_path):
    log = tmp_path / "log"
    run, _ = trained("staged", "refused", NSYS_PROFILING_SESSION_ID="1", DOUBLE_CUPTI_LOG=str(log))
    assert lines(log) == []
    how, why = state(run, 0)
    assert how == "refused" and "Nsight Systems" in why


def test_cupti_is_called_by_one_thread_and_nothing_is_left_enabled(trained, tmp_path):
    log = tmp_path / "log"
    run, _ = trained("staged", "threads", DOUBLE_CUPTI_LOG=str(log))
    called = [function for _, _, function, _ in lines(log)]
    for on, off in (
        ("cuptiSubscribe", "cuptiUnsubscribe"),
        ("cuptiActivityEnable", "cuptiActivityDisable"),
    ):
        assert called.count(on) == called.count(off) > 0
    bounds = [bound for _, _, function, bound in lines(log) if function == "device_buffers"]
    assert sorted(bounds) == [32] * RANKS + [250] * RANKS
    assert {"cuptiFinalize", "cuptiActivityRegisterTimestampCallback"}.isdisjoint(called)
    assert run.facts(0)["gpu.device_memory"] == "9.6 MB at first, at most 102 MB a context"
    threads = {(pid, tid) for pid, tid, function, _ in lines(log) if function.startswith("cupti")}
    assert len(threads) == RANKS == len({pid for pid, tid in threads if pid != tid})


@pytest.mark.slow
def test_one_rank_in_some_is_traced_and_the_report_says_which(trained):
    run, truth = trained("staged", COMMPROF_GPU_ONE_RANK_IN="2")
    assert is_true(seen(run, 0), truth[0])
    refused = "COMMPROF_GPU_ONE_RANK_IN=2: other ranks' are"
    assert state(run, 1) == ("refused", refused)
    assert run.query(1, "SELECT COUNT(*) FROM gpu_tracing") == [(0,)]
    assert "1 window of rank 0" in said("gpu", run)
    assert f"rank 1: the GPU was not traced: {refused}" in said("gpu", run)


def test_by_default_a_short_job_is_traced_from_its_first_use_of_a_gpu_on(trained):
    run = as_planted(*trained("staged", COMMPROF_GPU_EVERY_S="once"))
    for rank in range(RANKS):
        assert run.query(rank, "SELECT ended FROM gpu_tracing") == [("stopped",)]
        assert run.facts(rank)["gpu.traced_part"] == "first use"
    assert "2 windows of ranks 0-1" in said("gpu", run)


# Faults that CUPTI may have


REFUSED = {  # tests/unit/test_cupti_backend.c has the others
    "DOUBLE_CUPTI_HOLDER=CUPTI for Score-P": "CUPTI for Score-P",
    "DOUBLE_CUPTI_FAIL=cuptiActivityEnable=35": "35",
    "DOUBLE_DRIVER_VERSION=12090 DOUBLE_CUPTI_VERSION=130001": "newer than the driver",
}


@pytest.mark.parametrize(("settings", "reason"), REFUSED.items())
def test_what_cannot_be_traced_is_refused_with_a_reason_and_in_silence(trained, settings, reason):
    given = dict(each.split("=", 1) for each in re.split(r" (?=[A-Z_]+=)", settings))
    run, truth = trained("staged", "refused", **given)
    for rank in range(RANKS):
        how, why = state(run, rank)
        assert how == "refused" and reason in why
        assert not run.query(rank, "SELECT * FROM gpu_activity")
        assert run.counts("MPI_Allreduce")[rank] == truth[rank].reductions
    assert complaints(run.outcome) == []


HANGS_AT_ONCE = ("GetVersion", "Subscribe", "ActivityEnable", "ActivityFlushAll")
LOST = "the tracing interface did not answer at the end; what it held back is lost"


# Each costs the job the two seconds for which MPI_Finalize waits.
@pytest.mark.parametrize(
    "function",
    [
        *(pytest.param(each, marks=pytest.mark.slow) for each in HANGS_AT_ONCE[:2]),
        *HANGS_AT_ONCE[2:],
        "ActivityDisable",
    ],
)
def test_a_cupti_that_hangs_does_not_hang_the_job(trained, function):
    words = ("staged", "hangs")[: 1 + (function in HANGS_AT_ONCE)]
    run, truth = trained(*words, DOUBLE_CUPTI_HANG=f"cupti{function}")
    for rank in range(RANKS):
        assert state(run, rank) == ("stopped", LOST)
        assert run.counts("MPI_Allreduce")[rank] == truth[rank].reductions
    assert complaints(run.outcome) == []
    if function == "ActivityFlushAll":
        for rank in range(RANKS):
            lost = run.query(rank, "SELECT ended, end_ns - begin_ns FROM gpu_tracing")
            assert lost == [("lost", 0)]
        for command in ("gpu", "summary"):
            assert LOST in " ".join(said(command, run).split())


def test_records_that_cupti_drops_are_counted(trained):
    run, truth = trained("staged", DOUBLE_CUPTI_DROP="5")
    for rank in range(RANKS):
        dropped = truth[rank].records // 5
        assert run.rank_row(rank)["gpu_dropped_records"] == dropped
        assert sum(counts(seen(run, rank)).values()) == truth[rank].records - dropped


@pytest.mark.parametrize("fault", ["DOUBLE_CUPTI_ZERO", "DOUBLE_CUPTI_IMPLAUSIBLE"])
def test_time_stamps_that_cannot_be_are_counted_apart(trained, fault):
    run, truth = trained("staged", **{fault: "7"})
    for rank in range(RANKS):
        wrong = truth[rank].records // 7
        assert run.rank_row(rank)["gpu_implausible_records"] == wrong
        profiled = seen(run, rank)
        assert sum(counts(profiled).values()) == truth[rank].records - wrong
        longest_ns = {
            name: what.max_ns * (1 + CLOCK_ERROR) + 1 for name, what in truth[rank].kernels.items()
        }
        assert all(what.max_ns <= longest_ns[name] for name, what in profiled.kernels.items())


def test_records_that_are_lost_are_not_made_up(trained):
    run, truth = trained("staged", DOUBLE_CUPTI_LOSE_AFTER="20")
    assert sum(counts(seen(run, 0)).values()) == 20 < truth[0].records


# How processes end


def test_exit_without_finalize_keeps_all(trained, tmp_path):
    run, truth = trained("staged", "exit", exit_status=None)
    # the double ends a process that calls it after the driver's end
    assert complaints(run.outcome) == []
    left = doubles.database_of(run, tmp_path)
    # The launcher may kill the other rank once it sees that one has exited, and lose what it wrote.
    exited = [of for of in truth if left.rank_row(of.rank)["ended"] == "exit"]
    assert exited
    for of in exited:
        assert is_true(seen(left, of.rank), of)


def test_a_killed_rank_keeps_what_was_collected(trained, tmp_path):
    run, truth = trained("staged", "killed", exit_status=None)
    last = RANKS - 1
    killed = doubles.database_of(run, tmp_path)
    assert is_true(seen(killed, last), truth[last])


# NVIDIA's own library, without a GPU


@pytest.mark.parametrize(
    "library",
    doubles.real_libraries() or [None],
    ids=lambda path: path.parts[-5] if path else "none",
)
def test_nvidia_s_own_library_without_a_driver_is_refused_in_silence(trained, library):
    """Its driver is our double, which it cannot use. That of CUDA 13.2 crashes then, and is not
    called beside an older driver."""
    if not library:
        pytest.skip("no libcupti of NVIDIA's is here (setup/cupti.sh fetches some)")
    driver = "13010" if "/13.2." in str(library) else "13050"
    run, truth = trained(
        "staged", "refused", COMMPROF_CUPTI=str(library), DOUBLE_DRIVER_VERSION=driver
    )
    how, why = state(run, 0)
    assert how == "refused" and why
    assert complaints(run.outcome) == []
    assert run.counts("MPI_Allreduce")[0] == truth[0].reductions
    assert str(FOLDER) not in run.facts(0).get("gpu.tracing_library", "")
