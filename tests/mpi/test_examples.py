"""The examples, each under the profiler: what a training pattern dictates is what the profile
shows, call by call.

Counts and bytes are worked out here from the sizes that each example is run with, not read from it.
"""

import os
import re
import subprocess
from functools import lru_cache

import pytest

from . import libraries, reporter
from .harness import REPOSITORY, unprofiled_environment

pytestmark = [pytest.mark.slow, pytest.mark.one_mpi]

EXAMPLES = REPOSITORY / "examples"
RANKS = 4
REAL, DOUBLE = 4, 8  # bytes


@pytest.fixture
def python_example(profile, mpi):
    """python_example("folder", "--sizes ..."): the run of folder/train.py."""
    if not mpi.has_mpi4py:
        pytest.skip(f"no mpi4py for {mpi.name} here")

    def run(folder, options="", **more):
        script = str(EXAMPLES / folder / "train.py")
        return profile(mpi.python, RANKS, script, *options.split(), **more)

    return run


@pytest.fixture
def c_example(profile, mpi):
    """c_example("folder/source.c", arguments...): its run, compiled as its README says."""

    return lambda source, *arguments: profile(
        compiled(mpi.name, mpi.mpicc, source), RANKS, *map(str, arguments)
    )


@lru_cache
def compiled(mpi_name, mpicc, source, *more):
    binary = REPOSITORY / "build/tests" / mpi_name / source.replace("/", "-").removesuffix(".c")
    binary.parent.mkdir(parents=True, exist_ok=True)
    flags = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", *more]
    subprocess.run([mpicc, *flags, "-o", str(binary), str(EXAMPLES / source), "-lm"], check=True)
    return str(binary)


def require_torch(mpi, ask="import torch"):
    """Skips a test unless this MPI library's Python has mpi4py and a PyTorch that answers yes."""
    if (
        not mpi.has_mpi4py
        or subprocess.run([mpi.python, "-c", ask], stderr=subprocess.DEVNULL).returncode
    ):
        pytest.skip(f"no mpi4py for {mpi.name} here, or not: {ask}")


def on_communicator(run, rank, name, call, measure="call"):
    """bytes -> how often, of a call on a communicator with this name."""
    return {
        cell.bytes: cell.count
        for cell in run.cells(rank, call, measure)
        if cell.communicator == name
    }


def others_than(run, rank, *calls):
    """Calls that are neither these nor set-up."""
    setup = {"MPI_Init", "MPI_Init_thread", "MPI_Finalize", "MPI_Comm_split", "MPI_Comm_set_name"}
    return run.calls(rank) - setup - {f"MPI_{call}" for call in calls}


def messages(run, rank, direction):
    """(peer, bytes in all) -> how often, as this side counted."""
    return {
        peer.peer: (peer.count, peer.bytes)
        for peer in run.peers(rank)
        if peer.direction == direction
    }


def report(command, run, *options):
    """The rows of hvprof-report, which reads the ledgers of ranks without MPI_Finalize too."""
    return reporter.rows(command, run.folder, *options)


def steps_found(run):
    (found,) = report("steps", run)
    return found["steps"]


def each(count, *sizes, root=None):
    """For each rank: these sizes so often, with a volume at the root alone if there is one."""
    return [
        {size: (count, count * size if root in (None, rank) else 0) for size in sizes}
        for rank in range(RANKS)
    ]


def test_data_parallel(mpi, python_example):
    """A small ResNet of 33 tensors; its gradients travel in 4 buckets."""
    steps, tensors = 2 * 128 // 16, 33
    require_torch(mpi)
    run = python_example("data_parallel", "--epochs 2 --pictures 128 --batch 16")
    (parameters,) = map(int, re.findall(r"(\d+) parameters", run.outcome.stdout))
    for sizes in run.sizes("MPI_Allreduce"):
        bulk = {size: count for size, (count, _) in sizes.items() if size > 1000}
        assert list(bulk.values()) == [steps] * 4
        assert sum(bulk) == parameters * REAL
        # losses, scores, and the verdict
        small = {size: count for size, (count, _) in sizes.items() if size < 1000}
        assert small == {REAL: steps + 1, 3 * DOUBLE: 2}
    # each tensor in the beginning, and all in the end
    assert run.counts("MPI_Bcast") == [tensors + 1] * RANKS
    carried = sum(volume for _, volume in run.sizes("MPI_Bcast")[0].values())
    assert carried == 2 * parameters * REAL
    assert steps_found(run) == steps
    assert not others_than(run, 0, "Allreduce", "Bcast")


FRAMEWORK_STEPS = 100
GRADIENTS = REAL * (64 * 512 + 512 + 512 * 512 + 512 + 512 * 10 + 10)
CONTROL = 32  # bytes; what carries gradients is larger


@pytest.mark.parametrize("framework", ["ddp", "horovod"])
def test_frameworks_carry_each_gradient_once_and_their_steps_are_found(profile, mpi, framework):
    """DistributedDataParallel and Horovod on the same network; what they fuse differs from run to
    run, its sum does not. Horovod has more calls of its control."""
    python = mpi.python
    if framework == "ddp":
        require_torch(mpi, "import torch.distributed as parts; exit(not parts.is_mpi_available())")
    else:
        home = REPOSITORY / os.environ.get("SUITES", "build/suites") / f"horovod-{mpi.name}"
        if not (home / "ready").exists():
            pytest.skip(f"no Horovod for {mpi.name} here; tests/suites/training.sh builds it")
        python = str(home / "bin/python")
    script = str(EXAMPLES / f"frameworks/{framework}_train.py")
    run = profile(python, 2, script, str(FRAMEWORK_STEPS))
    results = set(re.findall(r"result \d \S+ (\S+)", run.outcome.stdout))
    assert len(results) == 1, "the replicas differ"
    own_thread = "SELECT DISTINCT is_main FROM cell JOIN thread USING (thread) WHERE call = "
    for rank in range(2):
        cells = run.cells(rank, "MPI_Allreduce")
        carried = sum(cell.volume_bytes for cell in cells if cell.bytes > CONTROL)
        assert carried == FRAMEWORK_STEPS * GRADIENTS
        assert run.query(rank, own_thread + "'MPI_Allreduce'") == [(0,)]
        on = {"ddp": "MPI_COMM_WORLD", "horovod": "MPI_Comm_dup"}[framework]
        assert {cell.communicator for cell in cells} == {on}
        control = sum(cell.count for cell in cells if cell.bytes <= CONTROL)
        assert control == 0 if framework == "ddp" else control > FRAMEWORK_STEPS
    least = FRAMEWORK_STEPS if framework == "ddp" else 0.9 * FRAMEWORK_STEPS
    assert least <= steps_found(run) <= FRAMEWORK_STEPS


def test_hybrid_parallel(python_example):
    """2 replicas (ranks 0, 1 and 2, 3) of 2 partitions of 2 layers: activations and their gradients
    stay in the pipeline, gradients of parameters cross the replicas a layer at a time."""
    epochs, passes, layers, width = 2, 20 * 4, 4, 64
    activations, layer = 32 // 4 * width * REAL, (width + 1) * width * REAL
    sizes = "--epochs 2 --batches 10 --batch 32 --micro-batches 4 --layers 4 --width 64"
    run = python_example("hybrid_parallel", sizes)
    for rank in range(RANKS):
        pipeline, replicas = f"pipeline of replica {rank // 2}", f"replicas of partition {rank % 2}"
        for call in ("MPI_Send", "MPI_Recv"):
            assert on_communicator(run, rank, pipeline, call) == {activations: passes}
        for direction in ("sent", "received"):
            moved = {rank ^ 1: (passes, passes * activations)}
            assert messages(run, rank, direction) == moved
        summed = on_communicator(run, rank, replicas, "MPI_Allreduce")
        assert summed == {layer: passes // 4 * layers // 2}
        assert on_communicator(run, rank, replicas, "MPI_Bcast") == {layer * layers // 2: 1}
        losses = on_communicator(run, rank, "MPI_COMM_WORLD", "MPI_Allreduce")
        assert losses == {DOUBLE: epochs + 1}
    stages = {(row["pipeline"], row["rank"]): row for row in report("pipeline", run)}
    assert {place: row["replica_communicator"] for place, row in stages.items()} == {
        (rank // 2 + 1, rank): f"replicas of partition {rank % 2}" for rank in range(RANKS)
    }
    assert not others_than(run, 0, "Send", "Recv", "Allreduce", "Bcast")


def test_memory_aware(python_example):
    """Replica A over ranks 0, 1, 2, 3 and replica B over 3, 2, 1, 0; 4 partitions of 2 layers. Each
    neighbour gets one replica's activations and the other's gradients."""
    steps, layers, width = 20, 8, 64
    activations, layer = 16 * width * REAL, (width + 1) * width * REAL
    sizes = "--epochs 2 --batches 10 --batch 16 --layers 8 --width 64"
    run = python_example("memory_aware", sizes)
    for rank in range(RANKS):
        neighbours = [each for each in (rank - 1, rank + 1) if 0 <= each < RANKS]
        everyone = dict.fromkeys(neighbours, (2 * steps, 2 * steps * activations))
        assert messages(run, rank, "sent") == messages(run, rank, "received") == everyone
        assert run.counts("MPI_Wait")[rank] == 4 * steps * len(neighbours)
        holders = run.communicator(rank, "MPI_Comm_split")  # of a partition
        assert holders.world_ranks == sorted([rank, 3 - rank])
        summed = on_communicator(run, rank, holders.name, "MPI_Allreduce")
        assert summed == {layer: steps * 2 * layers // RANKS}
    stages = [(row["rank"], row["stage"]) for row in report("pipeline", run)]
    assert stages == [(rank, rank) for rank in range(RANKS)]
    assert not others_than(run, 0, "Isend", "Irecv", "Wait", "Allreduce", "Bcast")


def test_parameter_server(c_example):
    epochs, steps, widths = 3, 30, (32, 128, 64, 8)
    layers = [(inputs + 1) * outputs * DOUBLE for inputs, outputs in zip(widths, widths[1:])]
    run = c_example("parameter_server/train.c", epochs, 10)
    losses = [float(loss) for loss in re.findall(r"loss (\S+)", run.outcome.stdout)]
    assert len(losses) == epochs and losses[-1] < losses[0]
    # parameters go out before each step and once at the end; gradients come back after each step,
    # the loss after each epoch
    assert run.sizes("MPI_Bcast") == each(steps + 1, *layers, root=0)
    gradients, loss = each(steps, *layers), {DOUBLE: (epochs, epochs * DOUBLE)}
    assert run.sizes("MPI_Reduce") == [of_rank | loss for of_rank in gradients]
    assert steps_found(run) == steps
    assert not others_than(run, 1, "Bcast", "Reduce", "Gather")
    assert run.peers(0) == set()


def test_kmeans(c_example):
    centres, counts = 8 * 16 * DOUBLE, 8 * DOUBLE
    run = c_example("kmeans/kmeans.c", 5000)
    said = run.outcome.stdout
    (iterations,) = map(int, re.findall(r"converged after (\d+) iterations", said))
    assert run.sizes("MPI_Allreduce") == each(iterations, centres, counts, DOUBLE)
    assert run.sizes("MPI_Bcast") == each(1, centres, root=0)
    assert sum(map(int, re.findall(r"(\d+) points around", said))) == RANKS * 5000
    (found,) = report("steps", run)
    assert (found["steps"], found["evidence"]) == (iterations, "the only loop")
    assert not others_than(run, 0, "Allreduce", "Bcast")


def test_cuml_like(python_example):
    features, components, iterations = 64, 8, 50
    sizes = "--rows 2000 --features 64 --components 8 --iterations 50"
    run = python_example("cuml_like", sizes)
    assert "models are equal" in run.outcome.stdout
    # statistics and gradients are known to all; what rank 0 solves is reduced to it and broadcast
    gradients = each(iterations, (components + 1) * DOUBLE)
    moments = each(1, 2 * features * DOUBLE)
    both = [first | second for first, second in zip(gradients, moments)]
    assert run.sizes("MPI_Allreduce") == both
    assert run.sizes("MPI_Reduce") == each(1, features**2 * DOUBLE, DOUBLE)
    assert run.sizes("MPI_Bcast") == each(1, features * components * DOUBLE, root=0)
    assert not others_than(run, 0, "Allreduce", "Reduce", "Bcast", "Gather")


def test_dask_like(python_example):
    """Rank 0 schedules 6 chunks of data, two on each worker; the weights are on rank 1. Polls that
    find nothing are told from those that do."""
    values = (511 + 1) * DOUBLE
    run = python_example("dask_like", "--epochs 4 --chunks 6 --rows 512 --features 511")
    first, last = re.search(r"loss (\S+) -> (\S+)", run.outcome.stdout).groups()
    assert float(last) < float(first)
    for rank in range(RANKS):
        # weights go from rank 1 to the others in each epoch, gradients of each chunk back
        sent = {1: 3 * 4, 2: 4 * 2, 3: 4 * 2}.get(rank, 0)
        of_sizes = run.sizes("MPI_Isend")[rank]
        assert max(size for size in of_sizes if size != values) < values
        assert of_sizes.get(values, (0, 0)) == (sent, sent * values)
        calls = ("MPI_Isend", "MPI_Irecv")
        completions = [run.counts(call, "completion")[rank] for call in calls]
        begun = [run.counts(call)[rank] for call in calls]
        assert run.counts("MPI_Test")[rank] == sum(completions) == sum(begun)
        assert run.counts("MPI_Test", "poll")[rank] > run.counts("MPI_Test")[rank]
    assert report("pipeline", run) == []
    assert not others_than(run, 1, "Isend", "Irecv", "Test", "Barrier")


def test_background_thread(mpi, profile):
    """Its marks and its bytes, of 24 tensors; tests/truth has its late ranks (plants horovod_*)."""
    source = "background_thread/train.c"
    program = compiled(mpi.name, mpi.mpicc, source, "-pthread", f"-I{REPOSITORY / 'include'}")
    run = profile(program, 2, "30", "-1", "0", "steps")
    (found,) = report("steps", run)
    assert (found["delimited_by"], found["steps"]) == ("marks", 30)
    bulk = sum(volume for size, (_, volume) in run.sizes("MPI_Allreduce")[0].items() if size > 8)
    tensors = (100 + at if at % 2 else 2_000 * (at + 1) + at for at in range(24))
    assert bulk == 30 * REAL * sum(tensors)


def test_two_libraries_replay_a_job_and_the_verdict_has_the_share_that_they_stand_for(tmp_path):
    for library in libraries.OPEN_MPI, libraries.MPICH:
        if library.missing:
            pytest.skip(f"{library.name} is not installed: no {library.missing}")
    script = [EXAMPLES / "replay-libraries.sh", tmp_path / "work", "1", "2000"]
    ended = subprocess.run(script, capture_output=True, text=True, env=unprofiled_environment())
    assert ended.returncode == 0, ended.stdout + ended.stderr
    last = " ".join(ended.stdout[ended.stdout.rindex("Program ") :].split())
    assert last.startswith("Program replay of kit ") and "; 2 ranks on 1 host" in last
    assert "openmpi: 1 run, Open MPI" in last and "mpich: 1 run, MPICH" in last
    assert "Same work yes: " in last
    assert re.search(r"Stands for \d+\.\d+ % of the job's time inside MPI", last)
