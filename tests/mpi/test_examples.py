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
    """python_example("folder", sizes...): the run of folder/train.py."""
    if not mpi.has_mpi4py:
        pytest.skip(f"no mpi4py for {mpi.name} here")

    def run(folder, *arguments, **options):
        return profile(
            mpi.python, RANKS, str(EXAMPLES / folder / "train.py"), *map(str, arguments), **options
        )

    return run


@pytest.fixture
def c_example(profile, mpi):
    """c_example("folder/source.c", arguments...): its run, compiled as its README says."""

    return lambda source, *arguments: profile(
        compiled(mpi.name, mpi.mpicc, source), RANKS, *map(str, arguments)
    )


@lru_cache
def compiled(mpi_name, mpicc, source):
    binary = REPOSITORY / "build/tests" / mpi_name / source.replace("/", "-").removesuffix(".c")
    binary.parent.mkdir(parents=True, exist_ok=True)
    flags = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror"]
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


def calls_but_setup(run, rank):
    setup = {"MPI_Init", "MPI_Init_thread", "MPI_Finalize", "MPI_Comm_split", "MPI_Comm_set_name"}
    return run.calls(rank) - setup


def sent(run, rank):
    """(peer, bytes in all) -> how often, as the sender counted."""
    return {
        peer.peer: (peer.count, peer.bytes) for peer in run.peers(rank) if peer.direction == "sent"
    }


def received(run, rank):
    return {
        peer.peer: (peer.count, peer.bytes)
        for peer in run.peers(rank)
        if peer.direction == "received"
    }


def report(command, run, *options):
    """The rows of hvprof-report, which reads the ledgers of ranks without MPI_Finalize too."""
    return reporter.rows(command, run.folder, *options)


def report_sizes(run, call):
    return {
        (row["rank"], row["bytes"]): row["count"]
        for row in report("sizes", run, "--call", call, "--per-rank")
    }


def messages_of_pairs(run):
    return {
        (row["sender"], row["receiver"]): (row["count"], row["bytes"])
        for row in report("peers", run)
    }


def steps_found(run):
    (found,) = report("steps", run)
    return found["steps"]


class TestDataParallel:
    """A small ResNet of 33 tensors; its gradients travel in 4 buckets."""

    EPOCHS, PICTURES, BATCH, TENSORS = 2, 128, 16, 33
    STEPS = EPOCHS * PICTURES // BATCH

    @pytest.fixture
    def run(self, mpi, python_example):
        require_torch(mpi)
        return python_example("data_parallel", "--epochs", 2, "--pictures", 128, "--batch", 16)

    def test_each_step_averages_all_gradients_in_four_buckets(self, run):
        (parameters,) = map(int, re.findall(r"(\d+) parameters", run.outcome.stdout))
        for sizes in run.sizes("MPI_Allreduce"):
            bulk = {bytes: count for bytes, (count, _) in sizes.items() if bytes > 1000}
            assert list(bulk.values()) == [self.STEPS] * 4
            assert sum(bulk) == parameters * REAL

    def test_small_allreduces_are_the_losses_the_scores_and_the_verdict(self, run):
        for sizes in run.sizes("MPI_Allreduce"):
            small = {bytes: count for bytes, (count, _) in sizes.items() if bytes < 1000}
            assert small == {REAL: self.STEPS + 1, 3 * DOUBLE: 2}

    def test_each_tensor_is_broadcast_in_the_beginning_and_all_in_the_end(self, run):
        (parameters,) = map(int, re.findall(r"(\d+) parameters", run.outcome.stdout))
        assert run.counts("MPI_Bcast") == [self.TENSORS + 1] * RANKS
        assert (
            sum(volume for _, volume in run.sizes("MPI_Bcast")[0].values()) == 2 * parameters * REAL
        )

    def test_its_steps_are_found(self, run):
        assert steps_found(run) == self.STEPS

    def test_no_other_call_is_made(self, run):
        assert calls_but_setup(run, 0) == {"MPI_Allreduce", "MPI_Bcast"}


class TestFrameworks:
    """DistributedDataParallel and Horovod on the same network; what they fuse differs from run to
    run, its sum does not."""

    RANKS, STEPS = 2, 100
    GRADIENTS = REAL * (64 * 512 + 512 + 512 * 512 + 512 + 512 * 10 + 10)
    CONTROL = 32  # bytes; what carries gradients is larger

    def run(self, profile, python, program):
        return profile(python, self.RANKS, str(EXAMPLES / "frameworks" / program), str(self.STEPS))

    @pytest.fixture
    def ddp(self, profile, mpi):
        require_torch(mpi, "import torch.distributed as parts; exit(not parts.is_mpi_available())")
        return self.run(profile, mpi.python, "ddp_train.py")

    @pytest.fixture
    def horovod(self, profile, mpi):
        home = REPOSITORY / os.environ.get("SUITES", "build/suites") / f"horovod-{mpi.name}"
        if not (home / "ready").exists():
            pytest.skip(f"no Horovod for {mpi.name} here; tests/suites/training.sh builds it")
        return self.run(profile, str(home / "bin/python"), "horovod_train.py")

    def of_control(self, run, rank):
        return sum(
            cell.count for cell in run.cells(rank, "MPI_Allreduce") if cell.bytes <= self.CONTROL
        )

    def check(self, run):
        assert len(set(re.findall(r"result \d \S+ (\S+)", run.outcome.stdout))) == 1, (
            "the replicas differ"
        )
        for rank in range(self.RANKS):
            carried = sum(
                cell.volume_bytes
                for cell in run.cells(rank, "MPI_Allreduce")
                if cell.bytes > self.CONTROL
            )
            assert carried == self.STEPS * self.GRADIENTS
            threads = run.query(
                rank,
                "SELECT DISTINCT is_main FROM cell JOIN thread USING (thread) WHERE call = "
                "'MPI_Allreduce'",
            )
            assert threads == [(0,)], "its own thread communicates"

    def test_ddp_carries_each_gradient_once_on_the_world(self, ddp):
        self.check(ddp)
        assert {cell.communicator for cell in ddp.cells(0, "MPI_Allreduce")} == {"MPI_COMM_WORLD"}
        assert self.of_control(ddp, 0) == 0

    def test_horovod_carries_each_gradient_once_beside_more_calls_of_its_control(self, horovod):
        self.check(horovod)
        assert {cell.communicator for cell in horovod.cells(0, "MPI_Allreduce")} == {"MPI_Comm_dup"}
        assert self.of_control(horovod, 0) > self.STEPS

    def test_steps_of_ddp_are_found(self, ddp):
        assert steps_found(ddp) == self.STEPS

    def test_steps_of_horovod_are_found_though_their_calls_differ(self, horovod):
        assert 0.9 * self.STEPS <= steps_found(horovod) <= self.STEPS


class TestHybridParallel:
    """2 replicas (ranks 0, 1 and 2, 3) of 2 partitions of 2 layers."""

    EPOCHS, BATCHES, BATCH, MICRO_BATCHES, LAYERS, WIDTH = 2, 10, 32, 4, 4, 64
    STEPS = EPOCHS * BATCHES
    ACTIVATIONS = BATCH // MICRO_BATCHES * WIDTH * REAL
    LAYER = (WIDTH + 1) * WIDTH * REAL

    @pytest.fixture
    def run(self, python_example):
        sizes = {
            "epochs": 2,
            "batches": 10,
            "batch": 32,
            "micro-batches": 4,
            "layers": 4,
            "width": 64,
        }
        return python_example(
            "hybrid_parallel",
            *(word for name, size in sizes.items() for word in (f"--{name}", size)),
        )

    def test_it_learns_and_its_replicas_agree(self, run):
        assert "the loss fell" in run.outcome.stdout
        assert "the replicas are equal" in run.outcome.stdout

    @pytest.mark.parametrize("rank", range(RANKS))
    def test_activations_and_their_gradients_stay_in_the_pipeline(self, run, rank):
        passes = self.STEPS * self.MICRO_BATCHES
        neighbour = rank ^ 1
        name = f"pipeline of replica {rank // 2}"
        assert on_communicator(run, rank, name, "MPI_Send") == {self.ACTIVATIONS: passes}
        assert on_communicator(run, rank, name, "MPI_Recv") == {self.ACTIVATIONS: passes}
        assert (
            sent(run, rank)
            == received(run, rank)
            == {neighbour: (passes, passes * self.ACTIVATIONS)}
        )

    @pytest.mark.parametrize("rank", range(RANKS))
    def test_gradients_of_parameters_cross_the_replicas_a_layer_at_a_time(self, run, rank):
        replicas = f"replicas of partition {rank % 2}"
        assert on_communicator(run, rank, replicas, "MPI_Allreduce") == {
            self.LAYER: self.STEPS * self.LAYERS // 2
        }
        assert on_communicator(run, rank, replicas, "MPI_Bcast") == {
            self.LAYER * self.LAYERS // 2: 1
        }
        assert on_communicator(run, rank, "MPI_COMM_WORLD", "MPI_Allreduce") == {
            DOUBLE: self.EPOCHS + 1
        }

    def test_pipelines_and_replicas_are_rows_and_columns_of_the_ranks(self, run):
        world_ranks = {
            communicator.name: communicator.world_ranks
            for rank in range(RANKS)
            for communicator in run.communicators(rank, "MPI_Comm_split")
        }
        assert world_ranks == {
            "pipeline of replica 0": [0, 1],
            "pipeline of replica 1": [2, 3],
            "replicas of partition 0": [0, 2],
            "replicas of partition 1": [1, 3],
        }

    def test_its_pipelines_are_found(self, run):
        stages = {
            (row["pipeline"], row["rank"]): row["replica_communicator"]
            for row in report("pipeline", run)
        }
        assert stages == {
            (1, 0): "replicas of partition 0",
            (1, 1): "replicas of partition 1",
            (2, 2): "replicas of partition 0",
            (2, 3): "replicas of partition 1",
        }

    def test_no_other_call_is_made(self, run):
        assert calls_but_setup(run, 0) == {"MPI_Send", "MPI_Recv", "MPI_Allreduce", "MPI_Bcast"}


class TestMemoryAware:
    """Replica A over ranks 0, 1, 2, 3 and replica B over 3, 2, 1, 0; 4 partitions of 2 layers."""

    EPOCHS, BATCHES, BATCH, LAYERS, WIDTH = 2, 10, 16, 8, 64
    STEPS = EPOCHS * BATCHES
    ACTIVATIONS = BATCH * WIDTH * REAL
    LAYER = (WIDTH + 1) * WIDTH * REAL

    @pytest.fixture
    def run(self, python_example):
        sizes = {"epochs": 2, "batches": 10, "batch": 16, "layers": 8, "width": 64}
        return python_example(
            "memory_aware", *(word for name, size in sizes.items() for word in (f"--{name}", size))
        )

    def test_it_learns_and_its_replicas_agree(self, run):
        assert "the loss fell" in run.outcome.stdout
        assert "the replicas are equal" in run.outcome.stdout

    @pytest.mark.parametrize("rank", range(RANKS))
    def test_each_neighbour_gets_one_replica_s_activations_and_the_other_s_gradients(
        self, run, rank
    ):
        neighbours = [neighbour for neighbour in (rank - 1, rank + 1) if 0 <= neighbour < RANKS]
        messages = 2 * self.STEPS
        everyone = {neighbour: (messages, messages * self.ACTIVATIONS) for neighbour in neighbours}
        assert sent(run, rank) == received(run, rank) == everyone

    @pytest.mark.parametrize("rank", range(RANKS))
    def test_each_message_is_begun_and_then_waited_for(self, run, rank):
        messages = 2 * self.STEPS * (1 if rank in (0, 3) else 2)
        assert on_communicator(run, rank, "MPI_COMM_WORLD", "MPI_Isend") == {
            self.ACTIVATIONS: messages
        }
        assert on_communicator(run, rank, "MPI_COMM_WORLD", "MPI_Irecv", "completion") == {
            self.ACTIVATIONS: messages
        }
        assert run.counts("MPI_Wait")[rank] == 2 * messages

    @pytest.mark.parametrize("rank", range(RANKS))
    def test_gradients_are_added_up_by_the_two_that_hold_a_partition(self, run, rank):
        holders = run.communicator(rank, "MPI_Comm_split")
        assert holders.world_ranks == sorted([rank, 3 - rank])
        assert on_communicator(run, rank, holders.name, "MPI_Allreduce") == {
            self.LAYER: self.STEPS * 2 * self.LAYERS // RANKS
        }

    def test_its_pipeline_is_found(self, run):
        stages = [(row["rank"], row["stage"]) for row in report("pipeline", run)]
        assert stages == [(rank, rank) for rank in range(RANKS)]

    def test_no_other_call_is_made(self, run):
        assert calls_but_setup(run, 0) == {
            "MPI_Isend",
            "MPI_Irecv",
            "MPI_Wait",
            "MPI_Allreduce",
            "MPI_Bcast",
        }


class TestParameterServer:
    EPOCHS, BATCHES = 3, 10
    STEPS = EPOCHS * BATCHES
    WIDTHS = (32, 128, 64, 8)
    LAYERS = [(inputs + 1) * outputs * DOUBLE for inputs, outputs in zip(WIDTHS, WIDTHS[1:])]

    @pytest.fixture
    def run(self, c_example):
        return c_example("parameter_server/train.c", self.EPOCHS, self.BATCHES)

    def test_its_loss_falls(self, run):
        losses = [float(loss) for loss in re.findall(r"loss (\S+)", run.outcome.stdout)]
        assert len(losses) == self.EPOCHS
        assert losses[-1] < losses[0]

    def test_parameters_go_out_before_each_step_and_once_at_the_end(self, run):
        calls = self.STEPS + 1
        assert run.sizes("MPI_Bcast") == [
            {layer: (calls, calls * layer if rank == 0 else 0) for layer in self.LAYERS}
            for rank in range(RANKS)
        ]

    def test_gradients_come_back_after_each_step_and_the_loss_after_each_epoch(self, run):
        layers = {layer: (self.STEPS, self.STEPS * layer) for layer in self.LAYERS}
        assert (
            run.sizes("MPI_Reduce")
            == [{DOUBLE: (self.EPOCHS, self.EPOCHS * DOUBLE), **layers}] * RANKS
        )

    def test_its_steps_are_found(self, run):
        assert steps_found(run) == self.STEPS

    def test_no_other_call_is_made(self, run):
        assert calls_but_setup(run, 1) == {"MPI_Bcast", "MPI_Reduce", "MPI_Gather"}
        assert run.peers(0) == set()


class TestKmeans:
    CLUSTERS, DIMENSIONS = 8, 16

    @pytest.fixture
    def run(self, c_example):
        return c_example("kmeans/kmeans.c", 5000)

    def test_each_iteration_adds_up_sums_counts_and_changes(self, run):
        (iterations,) = map(
            int, re.findall(r"converged after (\d+) iterations", run.outcome.stdout)
        )
        sums, counts, changes = (
            self.CLUSTERS * self.DIMENSIONS * DOUBLE,
            self.CLUSTERS * DOUBLE,
            DOUBLE,
        )
        assert (
            run.sizes("MPI_Allreduce")
            == [{bytes: (iterations, iterations * bytes) for bytes in (sums, counts, changes)}]
            * RANKS
        )

    def test_the_first_centres_come_from_rank_0(self, run):
        centres = self.CLUSTERS * self.DIMENSIONS * DOUBLE
        assert run.sizes("MPI_Bcast") == [{centres: (1, centres)}] + [{centres: (1, 0)}] * 3

    def test_all_points_are_in_a_cluster(self, run):
        assert sum(map(int, re.findall(r"(\d+) points around", run.outcome.stdout))) == RANKS * 5000

    def test_its_iterations_are_the_loop_that_is_shown(self, run):
        (iterations,) = map(
            int, re.findall(r"converged after (\d+) iterations", run.outcome.stdout)
        )
        (found,) = report("steps", run)  # nothing but the loop shows that it is the step
        assert found["loops"].startswith(f"loop 1: {iterations} x (Allreduce")

    def test_no_other_call_is_made(self, run):
        assert calls_but_setup(run, 0) == {"MPI_Allreduce", "MPI_Bcast"}


class TestCumlLike:
    FEATURES, COMPONENTS, ITERATIONS = 64, 8, 50

    @pytest.fixture
    def run(self, python_example):
        return python_example(
            "cuml_like", "--rows", 2000, "--features", 64, "--components", 8, "--iterations", 50
        )

    def test_it_learns_and_its_ranks_agree(self, run):
        assert "models are equal" in run.outcome.stdout

    def test_statistics_and_gradients_are_known_to_all(self, run):
        moments, gradient = 2 * self.FEATURES * DOUBLE, (self.COMPONENTS + 1) * DOUBLE
        assert (
            run.sizes("MPI_Allreduce")
            == [{gradient: (self.ITERATIONS, self.ITERATIONS * gradient), moments: (1, moments)}]
            * RANKS
        )

    def test_what_rank_0_solves_is_reduced_to_it_and_broadcast(self, run):
        covariance, directions = self.FEATURES**2 * DOUBLE, self.FEATURES * self.COMPONENTS * DOUBLE
        assert (
            run.sizes("MPI_Reduce") == [{covariance: (1, covariance), DOUBLE: (1, DOUBLE)}] * RANKS
        )
        assert (
            run.sizes("MPI_Bcast") == [{directions: (1, directions)}] + [{directions: (1, 0)}] * 3
        )

    def test_no_other_call_is_made(self, run):
        assert calls_but_setup(run, 0) == {"MPI_Allreduce", "MPI_Reduce", "MPI_Bcast", "MPI_Gather"}


class TestDaskLike:
    """Rank 0 schedules; of 6 chunks of data, rank 1 has 2 and 5, rank 2 has 0 and 3, rank 3 has 1
    and 4; the weights are on rank 1."""

    EPOCHS, CHUNKS, FEATURES, WORKERS = 4, 6, 511, 3
    TASKS = 1 + CHUNKS + EPOCHS * (CHUNKS + 1)
    VALUES = (FEATURES + 1) * DOUBLE
    CHUNKS_EACH = CHUNKS // WORKERS
    SIZES = ("--epochs", 4, "--chunks", 6, "--rows", 512, "--features", 511)

    # Messages to other ranks, and of them those with values; each without is two in MPI, each with
    # values three.
    TASKS_OF = {
        1: 1 + CHUNKS_EACH + EPOCHS * (CHUNKS_EACH + 1),
        2: CHUNKS_EACH * (1 + EPOCHS),
        3: CHUNKS_EACH * (1 + EPOCHS),
    }
    WEIGHTS, GRADIENTS = EPOCHS, EPOCHS * CHUNKS_EACH  # from rank 1 to another worker, and back

    @pytest.fixture
    def run(self, python_example):
        return python_example("dask_like", *self.SIZES)

    def test_it_learns(self, run):
        first, last = re.search(r"loss (\S+) -> (\S+)", run.outcome.stdout).groups()
        assert float(last) < float(first)

    def messages(self, sender, receiver):
        """(all, with values)"""
        closing = 1
        if sender == 0:
            asked = self.EPOCHS if receiver == 1 else 0  # the result of each epoch
            return self.TASKS_OF[receiver] + asked + closing, 0
        if receiver == 0:
            asked = self.EPOCHS if sender == 1 else 0
            return self.TASKS_OF[sender] + asked + closing, asked
        if sender == 1:
            return self.WEIGHTS + self.GRADIENTS + closing, self.WEIGHTS
        if receiver == 1:
            return self.WEIGHTS + self.GRADIENTS + closing, self.GRADIENTS
        return closing, 0

    @pytest.mark.parametrize("rank", range(RANKS))
    def test_the_graph_dictates_who_sends_how_often_to_whom(self, run, rank):
        others = [other for other in range(RANKS) if other != rank]
        assert {peer: count for peer, (count, _) in sent(run, rank).items()} == {
            other: 2 * self.messages(rank, other)[0] + self.messages(rank, other)[1]
            for other in others
        }
        assert {peer: count for peer, (count, _) in received(run, rank).items()} == {
            other: 2 * self.messages(other, rank)[0] + self.messages(other, rank)[1]
            for other in others
        }

    @pytest.mark.parametrize("rank", range(RANKS))
    def test_weights_and_gradients_stand_out_by_their_size(self, run, rank):
        with_values = sum(self.messages(rank, other)[1] for other in range(RANKS) if other != rank)
        sizes = run.sizes("MPI_Isend")[rank]
        assert max(bytes for bytes in sizes if bytes != self.VALUES) < self.VALUES
        assert sizes.get(self.VALUES, (0, 0)) == (with_values, with_values * self.VALUES)

    @pytest.mark.parametrize("rank", range(RANKS))
    def test_polls_that_find_nothing_are_told_from_those_that_do(self, run, rank):
        completions = sum(
            cell.count
            for call in ("MPI_Isend", "MPI_Irecv")
            for cell in run.cells(rank, call, "completion")
        )
        found = run.counts("MPI_Test")[rank]
        polls = run.counts("MPI_Test", "poll")[rank]
        assert (
            found
            == completions
            == sum(run.counts(call)[rank] for call in ("MPI_Isend", "MPI_Irecv"))
        )
        assert polls > found

    def test_it_is_no_pipeline(self, run):
        assert report("pipeline", run) == []

    def test_no_other_call_is_made(self, run):
        assert calls_but_setup(run, 1) == {"MPI_Isend", "MPI_Irecv", "MPI_Test", "MPI_Barrier"}

    def test_ranks_that_leave_without_finalize_lose_nothing(self, run, python_example):
        left = python_example(
            "dask_like", *self.SIZES, env={"MPI4PY_RC_FINALIZE": "0"}, exit_status=None
        )
        assert {row["state"] for row in report("ranks", left, "--per-rank")} <= {"exit", "killed"}
        assert {row["call"] for row in report("calls", left)} == {
            *calls_but_setup(run, 0),
            "MPI_Init_thread",
        }
        for call in ("MPI_Isend", "MPI_Irecv"):
            assert report_sizes(left, call) == report_sizes(run, call)
        assert messages_of_pairs(left) == messages_of_pairs(run)


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
