"""A job's calls made again from its kit, by both MPI libraries: the same calls with the same sizes
on the same communicators, in each pass."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from .harness import COMMPROF_RUN, Run, launch
from .libraries import REPOSITORY, Mpi, libraries
from .reporter import answer

pytestmark = pytest.mark.slow

REPLAY = REPOSITORY / "build/bin/commprof-replay"
PASSES = 2
NEVER = "1@1000"  # a record that does not begin: the kit is of the samples, with vectors of counts
PROGRAMS = (  # with their ranks and arguments
    ("collectives", 4),
    ("collectives_nonblocking", 4),
    ("communicators", 4),
    ("loops", 4, "dynamics", "40"),
    ("many_threads", 2),
    ("training_loop", 2, "nonblocking", "20"),
    ("pairs", 4, "5", "1000"),
    ("nonblocking", 2),
    ("late_messages", 4, "-1", "persistent", "1000", "0", "20"),
    ("late_messages", 2, "-1", "probed", "1000", "0", "20"),
    ("late_messages", 2, "-1", "matched", "1000", "0", "20"),
    ("numbered_messages", 2, "12", "1"),
    ("started_collectives", 2, "14"),
)
MADE = re.compile(r"(MPI_\w+) ([\d,]+)")


def numbers(text: str) -> Counter[str]:
    return Counter({call: int(count.replace(",", "")) for call, count in MADE.findall(text)})


def counted(folder: Path) -> tuple[Counter[str], Counter[tuple]]:
    """By call, and by call, size and what was measured; without set-up."""
    calls = json.loads(answer("calls", folder, "--json").stdout)
    sizes = json.loads(answer("sizes", folder, "--json").stdout)
    own = {row["call"] for row in calls if row["family"] not in ("setup", "communicator")}
    by_size: Counter[tuple] = Counter()
    for row in sizes:
        if row["call"] in own:
            by_size[row["call"], row["bytes"], row["measure"]] += row["count"]
    return Counter({row["call"]: row["count"] for row in calls if row["call"] in own}), by_size


def kit_of(run: Run, folder: Path) -> Path:
    kit = folder / "job.kit"
    assert answer("replay", "kit", run.folder, "-o", kit).exit_status == 0
    return kit


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda words: "-".join(map(str, words)))
def test_a_replay_makes_the_calls_of_its_kit_in_each_pass(
    mpi, profile, tmp_path, tmp_path_factory, program
):
    check_calls(mpi, profile, tmp_path, tmp_path_factory, program)


@pytest.mark.parametrize("name", ["many_threads", "collectives", "loops", "numbered_messages"])
def test_a_replayer_with_sanitizers_makes_them_and_has_no_error(
    mpi, profile, tmp_path, tmp_path_factory, name
):
    replay = REPOSITORY / "build/tests/sanitized/bin/commprof-replay"
    build = ["make", "ASAN=1", "UBSAN=1", f"BUILD={replay.parents[1]}", replay]
    subprocess.run(build, check=True, cwd=REPOSITORY, stdout=subprocess.DEVNULL)
    (program,) = (each for each in PROGRAMS if each[0] == name)
    check_calls(mpi, profile, tmp_path, tmp_path_factory, program, replay)


def check_calls(mpi, profile, tmp_path, tmp_path_factory, program, replay=REPLAY):
    """The kit has the calls of the run, and its replay makes them."""
    name, ranks, *arguments = program
    if name == "started_collectives":
        mpi.require("MPI_Allreduce_init")
    settings = {"TRUTH": str(tmp_path_factory.getbasetemp()), "COMMPROF_RECORD": NEVER}
    run = profile(name, ranks, *arguments, env=settings)
    kit = kit_of(run, tmp_path)
    lines = answer("replay", "show", kit).stdout.splitlines()
    made, late, left_out = (
        numbers("\n".join(line for line in lines if line.startswith(head)))
        for head in ("Calls ", "Completed last ", "  MPI_")
    )
    calls, sizes = counted(run.folder)
    assert made + left_out == calls
    whole = {key: count for key, count in sizes.items() if key[0] not in left_out}
    assert made
    for library in libraries():
        if name == "started_collectives" and not library.has("MPI_Allreduce_init"):
            continue
        again = replayed(library, ranks, kit, tmp_path / library.name, replay=replay)
        calls, sizes = counted(again)
        assert calls == Counter({call: PASSES * count for call, count in made.items()})
        for key, count in whole.items():
            assert sizes[key] == PASSES * count or (key[0] in late and key[2] == "completion"), key


def test_counts_and_buffers_of_a_recorded_job_are_in_its_kit(mpi, profile, tmp_path):
    """Slices of one buffer overlap in the replay as in the job; one buffer serves all steps."""
    steps = 20
    run = profile("reused_buffers", 3, str(steps), env={"COMMPROF_RECORD": "100"})
    kit = kit_of(run, tmp_path)
    lines = gzip.decompress(kit.read_bytes()).decode().splitlines()
    calls = [line.split()[2:] for line in lines if line.startswith("call ")]
    buffers = {
        name: {tuple(words[-3:-1]) for of, *words in calls if of == name} for name, *_ in calls
    }
    (_, first), (_, second) = sorted(buffers["MPI_Allreduce"], key=lambda pair: int(pair[1]))
    ((weights, _),) = buffers["MPI_Bcast"]
    assert int(second) - int(first) == 4 * 512
    assert buffers["MPI_Reduce_scatter"] == {(first, weights)}
    assert len(buffers["MPI_Alltoallv"]) == 1
    assert sum(line.startswith("vector ") for line in lines) == 14
    made = {
        f"MPI_{name}": times * 3 * steps
        for name, times in (("Allreduce", 2), ("Bcast", 1), ("Alltoallv", 1), ("Reduce_scatter", 1))
    }
    for library in libraries():
        found, _ = counted(replayed(library, 3, kit, tmp_path / library.name))
        assert found == Counter({call: PASSES * count for call, count in made.items()})


def replayed(
    library: Mpi, ranks: int, kit: Path, folder: Path, *options: str, replay: Path = REPLAY
) -> Path:
    return profiled(library, ranks, [replay, *options, kit], folder)


def profiled(library: Mpi, ranks: int, command: list[object], folder: Path) -> Path:
    folder.mkdir()
    words = [COMMPROF_RUN, command[0], "--repeat", PASSES, "--gaps", "none", *command[1:]]
    settings = {
        "COMMPROF_OUTPUT": str(folder / "run"),
        "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0",  # preloaded libraries come first
    }
    outcome = launch(library, ranks, [str(word) for word in words], folder, settings)
    assert outcome.exit_status == 0, outcome
    return folder / "run"


def program_of(library: Mpi, kit: Path, folder: Path) -> Path:
    """The kit as a program, which this library's compiler accepts without a warning."""
    source, program = folder / "job.c", folder / f"job-{library.name}"
    assert answer("replay", "source", kit, "-o", source).exit_status == 0
    command = [library.mpicc, "-Wall", "-Wextra", "-Werror", source, "-o", program]
    subprocess.run([*command, "-ldl", "-lpthread"], check=True)
    return program


def test_a_kit_as_a_program_makes_its_calls(mpi, profile, tmp_path):
    """Under each library, with no other file."""
    kit = kit_of(profile("collectives", 4), tmp_path)
    for library in libraries():
        program = program_of(library, kit, tmp_path)
        own = counted(profiled(library, 4, [program], tmp_path / library.name))
        assert own == counted(replayed(library, 4, kit, tmp_path / f"{library.name}-kit"))
        assert own[0]["MPI_Allreduce"] > 0


def test_a_kit_as_a_program_uses_the_library_that_it_is_linked_with(mpi, profile, tmp_path):
    """Not that of the launcher, which does not know its ranks."""
    kit = kit_of(profile("pairs", 4, "5", "1000"), tmp_path)
    program = str(program_of(mpi, kit, tmp_path))
    for library in libraries():
        outcome = launch(library, 4, [program, "--gaps", "none"], tmp_path, mpi.environment)
        if library == mpi:
            assert outcome.exit_status == 0, outcome
        else:
            line = "the kit in this program: is a job of 4 ranks; this one has 1"
            assert outcome.exit_status == 2 and line in outcome.stderr, outcome


def test_the_profile_says_which_kit_was_replayed_and_how(mpi, profile, tmp_path):
    kit = kit_of(profile("pairs", 4, "5", "1000"), tmp_path)
    digest = answer("replay", "show", kit).stdout.partition("SHA-256 ")[2].split()[0]
    folder = replayed(mpi, 4, kit, tmp_path / "again", "--arrival=barrier")
    facts = {
        row["key"].removeprefix("env.COMMPROF_REPLAY_"): row["value"]
        for row in json.loads(answer("export", folder).stdout)
        if row["table"] == "fact" and row["key"].startswith("env.COMMPROF_REPLAY_")
    }
    assert facts == {"KIT": digest, "GAPS": "none", "ARRIVAL": "barrier", "REPEAT": str(PASSES)}


def test_a_kit_that_does_not_fit_ends_the_job_with_a_line(mpi, profile, tmp_path):
    kit = kit_of(profile("pairs", 4, "5", "1000"), tmp_path)
    outcome = launch(mpi, 2, [str(REPLAY), str(kit)], tmp_path, {})
    assert outcome.exit_status == 2
    assert f"{kit}: is a job of 4 ranks; this one has 2" in outcome.stderr
    kit.write_bytes(kit.read_bytes()[:-20])
    outcome = launch(mpi, 4, [str(REPLAY), str(kit)], tmp_path, {})
    assert outcome.exit_status == 2 and f"{kit}: is damaged" in outcome.stderr


def sleeping(kit: Path) -> set[tuple[str, bool]]:
    """Calls that are made after a gap, and whether its thread sleeps in it."""
    lines = gzip.decompress(kit.read_bytes()).decode().splitlines()
    names = dict(re.findall(r"^call (\d+) (\w+)", "\n".join(lines), re.M))
    made = [line.split() for line in lines if re.match("~?[1-9]", line)]
    return {(names[call], gap.startswith("~")) for gap, call, *_ in made}


def test_a_replay_sleeps_in_the_gaps_in_which_the_job_slept(mpi, profile, tmp_path):
    """And computes in the others; its own kit says so."""
    kit, again = kit_of(profile("two_gaps", 2, "120", "20"), tmp_path), tmp_path / "again.kit"
    assert sleeping(kit) == {("MPI_Allreduce", False), ("MPI_Bcast", True)}
    folder = replayed(mpi, 2, kit, tmp_path / "replay", "--gaps", "recorded")
    assert answer("replay", "kit", folder, "-o", again).exit_status == 0
    assert sleeping(again) == sleeping(kit)


def signed(text: str) -> bytes:
    digest = hashlib.sha256(text.encode()).hexdigest()
    return gzip.compress(f"commprof-kit 1\nsha256 {digest}\n{text}".encode())


OF_TWO_RANKS = """\
ranks 2
window 1
comm 0 0 0 world 0,1
comm 1 1 0 self -
type 0 MPI_DOUBLE 8 8 1
"""
POLLED = (
    OF_TWO_RANKS
    + """\
call 0 MPI_Irecv 0 0 5 - - 1 7 0 - - - - - - - - -
call 1 MPI_Test - - - - - - - - - - - - - - - - 5000000
call 2 MPI_Iprobe 0 - - - - 1 7 0 - - - - - - - - 5000000
call 3 MPI_Recv 0 0 5 - - 1 7 0 - - - - - - - - -
call 4 MPI_Send 0 0 5 - - 0 7 0 - - - - - - - - -
program 0 0 0
0 0 0
0 1 0
0 2
0 3
program 1 0 0
300000000 4
300000000 4
"""
)


def test_a_replay_does_something_else_between_polls(mpi, tmp_path):
    """As long as the job did: 5 ms."""
    kit = tmp_path / "job.kit"
    kit.write_bytes(signed(POLLED))
    folder = replayed(mpi, 2, kit, tmp_path / "replay", "--gaps", "recorded")
    rows = json.loads(answer("export", folder).stdout)
    for call in ("MPI_Test", "MPI_Iprobe"):
        own = [row for row in rows if row.get("call") == call and row["world_rank"] == 0]
        polls = sum(row["count"] for row in own if row.get("measure") == "poll")
        away_ns = sum(
            row["start_ns"] - row["polled_since_ns"] - row["polled_ns"]
            for row in own
            if row["table"] == "sample"
        )
        assert 0 < polls * 5e6 <= away_ns


ONE_RANK = """\
ranks 1
window 1
comm 0 0 0 world 0
comm 1 1 0 self -
type 0 MPI_DOUBLE 8 8 1
"""
OTHER_CLOCK = ("unshare", "--time", "--monotonic", "1000", "--fork", "--kill-child")
BY_ITSELF = (
    ONE_RANK
    + """\
call 0 MPI_Send_init 0 0 5 - - 0 7 0 - - - - - - - - -
call 1 MPI_Recv_init 0 0 5 - - 0 7 0 - - - - - - - - -
call 2 MPI_Startall - - - - - - - - - - - - - - - - -
call 3 MPI_Waitany - - - - - - - - - - - - - - - - -
call 4 MPI_Start - - - - - - - - - - - - - - - - -
call 5 MPI_Isend 0 0 5 - - 0 7 0 - - - - - - - - -
call 6 MPI_Iprobe 0 - - - - 0 7 0 - - - - - - - - -
call 7 MPI_Improbe 0 - - - - 0 7 0 - - - - - - - - -
call 8 MPI_Imrecv 0 0 5 - - 0 7 0 - - - - - - - - -
call 9 MPI_Testsome - - - - - - - - - - - - - - - - -
call 10 MPI_Request_free - - - - - - - - - - - - - - - - -
call 11 MPI_Mprobe 0 - - - - 0 7 0 - - - - - - - - -
call 12 MPI_Mrecv - 0 5 - - - - 0 - - - - - - - - -
call 13 MPI_Send_init 1 0 9 - - 0 7 0 - - - - - - - - -
call 14 MPI_Recv_init 1 0 9 - - 0 7 0 - - - - - - - - -
program 0 0 2
0 0 0
0 1 1
0 2 0 1
0 3 0 1
0 0 2
0 4 2
0 6
0 7 3
0 8 3
0 9 2 3
0 10 2
0 5 2
0 11 3
0 12 3
0 9 2
0 10 1
program 0 1 2
0 13 0
0 14 1
0 2 0 1
0 3 0 1
"""
)


DONE = {"Startall": 2, "Waitany": 4, "Request_free": 2} | dict.fromkeys(
    "Send_init Start Iprobe Improbe Imrecv Isend Mprobe Mrecv".split(), 1
)


def test_persistent_operations_and_probes_are_made(mpi, tmp_path):
    """By two threads. Those set up before the programs are not counted; what is open at their end
    is completed."""
    kit = tmp_path / "job.kit"
    kit.write_bytes(signed(BY_ITSELF))
    calls, sizes = counted(replayed(mpi, 1, kit, tmp_path / "replay"))
    done = {name[4:]: count for name, count in calls.items() if name != "MPI_Testsome"}
    assert done == {name: PASSES * count for name, count in DONE.items()}
    assert sizes["MPI_Mrecv", 40, "call"] == PASSES


HOSTILE = (
    ONE_RANK
    + """\
type 1 vector 2147483647 2147483647 1
vector 0 5
call 0 MPI_Allgatherv 0 0 5 - - - - 0 0 - - - - - - - -
program 0 0 0
0 0
"""
)


@pytest.mark.parametrize(
    "old, new, why",
    [
        ("MPI_DOUBLE 8 8", "MPI_DOUBLE 1 1", "MPI_DOUBLE has another size here"),
        ("Allgatherv 0 0 5", "Allgatherv 0 1 2147483647", "no memory has room for a message of"),
        ("Allgatherv 0 0 5 - - - - 0 0", "Allgatherv 0 0 5 - - - - 0 -", "the kit lacks arguments"),
        ("0 0\n", "0 0 1\n", "its requests are not in order"),
        ("world 0", "world -", "a communicator cannot be made"),
    ],
)
def test_a_kit_for_which_buffers_would_be_too_small_is_refused(mpi, tmp_path, old, new, why):
    kit = tmp_path / "job.kit"
    kit.write_bytes(signed(HOSTILE))
    assert launch(mpi, 1, [str(REPLAY), str(kit)], tmp_path, {}).exit_status == 0
    head, _, tail = HOSTILE.rpartition(old)
    kit.write_bytes(signed(head + new + tail))
    outcome = launch(mpi, 1, [str(REPLAY), str(kit)], tmp_path, {})
    # on full cores MPICH's mpirun exits with 1 after MPI_Abort(2), one time in 50
    statuses = (1, 2) if mpi.name == "mpich" else (2,)
    assert outcome.exit_status in statuses and why in outcome.stderr, outcome


ALLTOALLW = """\
type 1 vector 0 0 1
vector 0 9000000
call 0 MPI_Alltoallw 0 1 0 - - - - 0 0 - - - - 0 - - -
program 0 0 0
0 0
"""


def test_counts_of_alltoallw_are_bytes_whatever_its_type_says(mpi, tmp_path):
    """Else its buffers would be too small."""
    kit = tmp_path / "job.kit"
    kit.write_bytes(signed(ONE_RANK + ALLTOALLW))
    outcome = launch(mpi, 1, [str(REPLAY), str(kit)], tmp_path, {})
    assert outcome.exit_status == 0, outcome


def test_what_is_made_around_calls_is_not_counted(mpi, profile, tmp_path):
    """Agreements of all ranks, barriers; and buffers are no calls."""
    kit = kit_of(profile("training_loop", 2, "nonblocking", "20"), tmp_path)
    found = [
        counted(replayed(mpi, 2, kit, tmp_path / str(number), *options.split()))
        for number, options in enumerate(
            (
                "",
                "--arrival together",
                "--arrival barrier",
                "--buffers hot",
                "--arrival together --buffers cold",
            )
        )
    ]
    assert found == [found[0]] * 5


def test_ranks_of_two_clocks_agree_on_a_time(mpi, profile, tmp_path):
    """Rank 1 lives in a time namespace: else rank 0 would wait 1000 s."""
    if subprocess.run([*OTHER_CLOCK, "true"], capture_output=True).returncode:
        pytest.skip("no time namespaces here")
    kit = kit_of(profile("training_loop", 2, "nonblocking", "20"), tmp_path)
    words = [str(REPLAY), "--arrival", "together", "--gaps", "none", str(kit)]
    command = [*words, ":", "-n", "1", *OTHER_CLOCK, *words]
    outcome = launch(mpi, 1, command, tmp_path, {})
    assert outcome.exit_status == 0 and "pass 1 of 1 took" in outcome.stdout, outcome


def test_an_unknown_way_is_refused(mpi, tmp_path):
    for option in ("--arrival", "--buffers", "--gaps"):
        outcome = launch(mpi, 1, [str(REPLAY), option, "other", "job.kit"], tmp_path, {})
        assert outcome.exit_status == 2 and "usage:" in outcome.stderr


TWO_RANKS = (
    OF_TWO_RANKS
    + """\
call 0 MPI_Send 0 0 1 - - 1 7 0 - - - - - - - - -
call 1 MPI_Recv 0 0 1 - - 0 7 0 - - - - - - - - -
call 2 MPI_Irecv 0 0 1 - - 0 7 0 - - - - - - - - -
call 3 MPI_Bcast 0 0 1 - 0 - - 0 - - - - - - - - -
call 4 MPI_Bcast 0 0 1 - 1 - - 0 - - - - - - - - -
program 0 0 0
"""
)
MORE = TWO_RANKS.replace("type 0", "comm 2 0 2 dup 0,1\ntype 0")
AGAIN = ("--repeat", "2")


def launch_each(mpi, folder: Path, *ranks: tuple, patience_s: int):
    """Each rank with a kit of its own, and options."""
    command: list[str] = []
    for number, (text, *options) in enumerate(ranks):
        kit = folder / f"{number}.kit"
        kit.write_bytes(signed(text))
        words = [str(REPLAY), "--patience", str(patience_s), *options, str(kit)]
        command += [":", "-n", "1", *words] if number else words
    return launch(mpi, 1, command, folder, {})


@pytest.mark.parametrize(
    "rest, other, where",
    [
        ("program 1 0 0\n0 1\n", (), "1 waits in MPI_Recv from 0, line 15 of the kit"),
        ("0 4\nprogram 1 0 0\n0 3\n", (), "0 waits in MPI_Bcast with root 1, line 14 of the kit"),
        (
            "program 1 0 0\n0 2 0\n",
            (),
            "1 waits in MPI_Wait after its calls, for MPI_Irecv from 0, line 15 of the kit",
        ),
        ("", (MORE,), "1 waits in MPI_Comm_dup for communicator 2"),
        ("", (TWO_RANKS, *AGAIN), "0 waits in MPI_Finalize"),
    ],
    ids=["message", "root", "request", "object", "end"],
)
def test_a_replay_that_hangs_says_where_and_ends(mpi, tmp_path, rest, other, where):
    text = TWO_RANKS + rest
    outcome = launch_each(mpi, tmp_path, (text,), other or (text,), patience_s=4)
    assert f"s: rank {where}" in outcome.stderr, outcome
    # MPICH's mpirun may drop the last line, and adds what it makes of the other rank to the status
    is_mpich = mpi.name == "mpich"
    assert "; the job is ended (--patience 4)" in outcome.stderr or is_mpich, outcome
    assert outcome.exit_status == 3 or (is_mpich and outcome.exit_status), outcome


def test_a_replay_that_computes_does_not_hang(mpi, tmp_path):
    """Rank 0 sends 3 s later than rank 1 receives, which says that it waits."""
    text = TWO_RANKS.replace("window 1", f"window {10**12}")
    text += "~3000000000 0\nprogram 1 0 0\n0 1\n"
    outcome = launch_each(mpi, tmp_path, (text,), (text,), patience_s=1)
    assert outcome.exit_status == 0, outcome
    told = "no call has ended for 1 s: rank 1 waits in MPI_Recv from 0, line 16 of"
    assert told in outcome.stderr
    assert "rank 0" not in outcome.stderr
