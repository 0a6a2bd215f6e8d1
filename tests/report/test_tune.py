"""From candidates to a tuning file, without MPI: the lists of two libraries, halving, choosing, and
the files. Real launches: tests/mpi/test_tune.py."""

from __future__ import annotations

import json
import re
import subprocess
from functools import partial
from pathlib import Path
from typing import NamedTuple

import planted
import pytest
from commprof_report.base import ReportError
from commprof_report.commands import tune as command
from commprof_report.compare.judge import Rules
from commprof_report.compare.sides import Checked
from commprof_report.replay import kit as kits
from commprof_report.tune import evidence as evidences, formats, search
from commprof_report.tune.evidence import (
    AS_LAUNCHED,
    Candidate,
    Evidence,
    Library,
    Raced,
    Rule,
    SWITCHING,
    Span,
    Tried,
    Variable,
    environment,
    library_read,
    rules_of,
)
from commprof_report.tune.search import (
    Call,
    DEFAULT,
    Launcher,
    Outcome,
    REFUSED,
    SLOWER,
    Search,
    UNCHANGED,
)
from commprof_report.tune.rows import Row
from compared_runs import experiment
from parallel import world
from planted import Cell, Rank, Sample, Window
from planted_job import HostClock, Job
from test_replay import signed

LAUNCHED = Candidate(AS_LAUNCHED)
RING, TREE = Candidate("ring", 4, 0), Candidate("segmented_ring", 5, 8192)
OPEN_MPI = """\
library Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4
path /usr/lib/libmpi.so.40
variable coll_tuned_allreduce_algorithm 5 0=ignore 4=ring 5=segmented_ring
"""
MPICH_TEXT = (
    "Variable to select allreduce algorithmauto - Internal algorithm selection (can be overridden "
    "with MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE)nb                       - Force nonblocking "
    "algorithmsmp                      - Force smp algorithmrecursive_doubling       - Force "
    "recursive doubling algorithm"
)
TABLE = {
    "collective=allreduce": {
        "comm_type=intra": {
            "avg_msg_size<=2048": {"algorithm=MPIR_Allreduce_intra_smp": {}},
            "avg_msg_size=any": {"algorithm=MPIR_Allreduce_intra_ring": {}},
        },
        "comm_type=inter": {"algorithm=MPIR_Allreduce_inter_reduce_exchange_bcast": {}},
    },
    "collective=allgather": {"comm_type=intra": {"algorithm=MPIR_Allgather_intra_ring": {}}},
    "collective=bcast": {"comm_type=intra": {"algorithm=MPIR_Bcast_intra_smp": {}}},
}
KIT = """\
library test
ranks 2
window 1
comm 0 0 0 world 0,1
comm 1 1 0 self -
type 0 MPI_FLOAT 4 4 1
call 0 MPI_Allreduce 0 0 16384 MPI_SUM - - - 0 - - - - - - - - -
call 1 MPI_Allreduce 1 0 16384 MPI_SUM - - - 0 - - - - - - - - -
call 2 MPI_Waitall - - - - - - - - - - - - - - - - -
call 3 MPI_Barrier 0 - - - - - - - - - - - - - - - -
program 0 0 0
0 0
~5 0
0 1
0 3
program 1 0 0
0 0
0 0
"""


def found_by(family: str, *rows: Raced, path: Path = Path("library")) -> Evidence:
    return Evidence(family, f"{family} 4", str(path), "abc", "mpirun -n 4 {}", "ucx", rows=[*rows])


def raced(size: int, gain: float) -> Raced:
    """gain: of time in each of eight pairs of launches, about."""
    tried = [Tried(LAUNCHED, [[1, size]]), Tried(RING, [[2, size]])]
    times = [[1000.0 + number, (1 - gain) * (1000.0 + 2 * number)] for number in range(8)]
    return Raced("MPI_Allreduce", size, 4, 0.5, tried, times)


def test_open_mpi_enumerates_its_algorithms():
    library = library_read(OPEN_MPI.splitlines())
    assert (library.version, library.family) == ("Open MPI v4.1.4", "Open MPI")
    words = [each.word for each in library.candidates("MPI_Allreduce", 10_000)]
    assert (
        words == "- 0:0 4:0 4:8192 5:0 5:8192".split()
    )  # its own choice, for another was launched
    assert [each.word for each in library.candidates("MPI_Bcast", 10_000)] == ["-"]


def test_algorithms_of_mpich_are_read_from_lines_that_run_together():
    lines = ["path x", f"variable MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM 0 {MPICH_TEXT}"]
    library = library_read(lines, frozenset(("nb", "smp", "recursive_doubling", "doubling")))
    assert library.family == "MPICH"
    named = {0: "auto", 1: "nb", 2: "smp", 3: "recursive_doubling"}
    assert library.variables == {"MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM": Variable(0, named)}
    assert [each.word for each in library.candidates("MPI_Allreduce", 10_000)] == "- 1 2 3".split()


def test_intel_mpi_has_numbers_and_cannot_switch():
    library = library_read(["library Intel(R) MPI Library 2021.12 for Linux* OS", "path x"])
    assert library.family == "Intel MPI" not in SWITCHING
    found = library.candidates("MPI_Alltoall", 10_000)
    assert [each.word for each in found] == ["-", "1", "2", "3", "4"]
    assert environment("Intel MPI", "MPI_Alltoall", found[2]) == {"I_MPI_ADJUST_ALLTOALL": "2"}
    assert environment("Intel MPI", "MPI_Alltoall", found[0]) == {}


class Machine(NamedTuple):
    """How long a call takes with each candidate, and how many messages it sends."""

    times_ns: dict[str, int]
    messages: dict[str, int]
    refused: tuple[str, ...] = ()
    layer: str = "ucx"
    pass_s: float = 1e-5


class Doubled(Launcher):
    """Launches nothing; each launch is slower than the one before."""

    machine: Machine
    launched: list[list[list[str]]]

    def run(self, family, rows, passes, counting=False, timeout_s=None):
        self.launched.append([[each.candidate.text for each in row.left] for row in rows])
        calls = [
            self.call(number, place, each.candidate.text, passed)
            for number, row in enumerate(rows)
            for place, each in enumerate(row.left)
            for passed in range(passes + 1)
        ]
        library = library_read(OPEN_MPI.replace(" 5 0", " 0 0").splitlines())
        layer, pass_s = self.machine.layer, self.machine.pass_s
        return Outcome(library, layer, calls, 0.1, pass_s, [4], {0: 1})

    def call(self, row: int, place: int, name: str, passed: int) -> Call:
        time_ns = self.machine.times_ns[name] * (10 + len(self.launched))
        messages = self.machine.messages[name]
        is_refused = name in self.machine.refused
        return Call(row, place, time_ns if passed else 0, is_refused, ((messages, messages),) * 4)


ALL = ["ring", "ring, segments of 8192 B", "segmented_ring", "segmented_ring, segments of 8192 B"]
TIMES = dict(zip([AS_LAUNCHED, *ALL], (100, 50, 60, 40, 120)))
SENT = dict(zip([AS_LAUNCHED, *ALL], (2, 6, 6, 7, 9)))


def searched(machine: Machine, unproven: bool = False) -> tuple[Evidence, Doubled]:
    launcher = Doubled("mpirun {}", "commprof-replay", Path("kit"), Path("folder"))
    launcher.machine, launcher.launched = machine, []
    rows = [Row("MPI_Allreduce", 10_000, 4, 10)]
    found = Search(launcher, rows, 60.0, "abc", Rules(), lambda text: None, unproven).run()
    return found, launcher


def test_a_search_finds_the_fastest_candidate_by_halves():
    found, launcher = searched(Machine(TIMES, SENT))
    (row,) = found.rows
    fates = {each.candidate.text: each.fate for each in row.tried}
    assert fates == dict(zip(TIMES, ("", SLOWER, UNCHANGED, "", SLOWER)))
    assert launcher.launched[1] == [[*TIMES]]
    assert launcher.launched[-1] == [[AS_LAUNCHED, "segmented_ring"]]
    (rule,) = rules_of(found, Rules())
    (span,) = rule.spans
    assert span == Span(10_000, 10_000, Candidate("segmented_ring", 5, 0))


def test_a_candidate_that_sends_what_the_default_sends_is_dropped():
    found, _ = searched(Machine(TIMES, {**SENT, "segmented_ring": 2}, ("ring",)))
    fates = {each.candidate.text: each.fate for each in found.rows[0].tried}
    assert fates["segmented_ring"] == DEFAULT and fates["ring"] == REFUSED


def test_a_healthy_default_gets_no_rule():
    found, _ = searched(Machine({**dict.fromkeys(TIMES, 100), "ring": 99}, SENT))
    assert found.rows[0].pairs and rules_of(found, Rules()) == []


class Separate(Launcher):
    """Each launch has the candidate that its variables choose."""

    chosen: list[dict[str, str]]

    def launched(self, words, chosen, passes, counting, timeout_s):
        self.chosen.append(dict(chosen))
        number = int(chosen.get("OMPI_MCA_coll_tuned_allreduce_algorithm", 0))
        calls = [Call(row, 0, 100 + number, False, ((number, 8),)) for row in range(len(words))]
        return Outcome(Library(), "ucx", calls, 1.0, 0.1, [4], {})


def test_a_library_that_cannot_switch_has_a_launch_for_each_candidate_in_turn():
    launcher = Separate("mpirun {}", "commprof-replay", Path("kit"), Path("folder"), separate=True)
    launcher.chosen = []
    rows = [
        Raced("MPI_Allreduce", 8, 4, 0.5, [Tried(LAUNCHED), Tried(RING), Tried(TREE)]),
        Raced("MPI_Bcast", 8, 4, 0.5, [Tried(LAUNCHED)]),
    ]
    found = launcher.run("Open MPI", rows, 1)
    name = "OMPI_MCA_coll_tuned_allreduce_algorithm"
    of_ring, of_tree = (
        {name: number, f"{name}_segmentsize": size} for number, size in (("4", "0"), ("5", "8192"))
    )
    assert launcher.chosen == [{}, of_ring, of_tree]
    assert [found.transfer_ns(0, place) for place in range(3)] == [100, 104, 105]
    assert len(found.of(1, 0)) == 3 and found.seconds == 3
    before = list(launcher.chosen)
    launcher.run("Open MPI", rows, 1)
    assert launcher.chosen[3:] == before[::-1]


@pytest.mark.parametrize(("unproven", "rules"), [(False, 0), (True, 1)])
def test_candidates_whose_messages_cannot_be_counted_are_out_unless_asked_for(unproven, rules):
    found, _ = searched(Machine(TIMES, SENT, layer="no"), unproven)
    assert len(rules_of(found, Rules())) == rules


@pytest.mark.parametrize(("share", "count"), [(0.03, 0), (0.05, 1)])
def test_there_is_no_file_for_less_than_the_least_effect_of_the_whole(share, count):
    """Half of each call is gained."""
    row = raced(65536, 0.5)
    row.share = share
    assert len(rules_of(found_by("Open MPI", row), Rules())) == count


def test_neighbours_are_merged_and_a_size_without_a_gain_parts_them():
    rows = [raced(size, gain) for size, gain in ((8, 0.5), (64, 0.5), (512, 0.0), (4096, 0.5))]
    (rule,) = rules_of(found_by("Open MPI", *rows), Rules())
    assert rule.spans == (Span(8, 64, RING), Span(4096, 4096, RING))


def test_evidence_is_read_as_it_was_written(tmp_path):
    found = found_by("Open MPI", raced(65536, 0.5))
    evidences.write(tmp_path, found)
    assert evidences.read(tmp_path) == found
    (tmp_path / "evidence.json").write_text('{"format": "commprof-tune", "version": 2}')
    with pytest.raises(ReportError, match="is damaged"):
        evidences.read(tmp_path)


CHOSEN = [
    Rule("MPI_Allreduce", 4, (Span(8, 64, RING), Span(65536, 65536, TREE))),
    Rule("MPI_Allreduce", 5, (Span(8, 8, RING),)),
    Rule("MPI_Allgather", 8, (Span(1024, 1024, RING),)),
]


def library_file(path: Path, text: str) -> Path:
    """With another table before the one that counts, as MPICH has them."""
    other = b'\x7fELF{"collective=bcast":{"composition=a":{}}}\0'
    path.write_bytes(other + text.encode() + b"\0rest")
    return path


def test_a_file_of_mpich_is_the_librarys_own_table_with_branches_before_its_own(tmp_path):
    path = library_file(tmp_path / "libmpich.so", json.dumps(TABLE))
    rules = [
        Rule("MPI_Allreduce", 4, (Span(8, 64, RING),), nodes=2),
        Rule("MPI_Allgather", 8, (Span(1024, 1024, Candidate("nb", 1)),)),
    ]
    written = formats.mpich_json(found_by("MPICH", path=path), rules)
    values, own = json.loads(written), TABLE["collective=allreduce"]["comm_type=intra"]
    assert values.keys() == TABLE.keys() and list(values) == list(TABLE)
    assert values["collective=bcast"] == TABLE["collective=bcast"]
    branches, before = values["collective=allreduce"], TABLE["collective=allreduce"]
    assert branches["comm_type=inter"] == before["comm_type=inter"]
    branch = branches["comm_type=intra"]
    of_sizes = {
        "avg_msg_size<8": own,
        "avg_msg_size<65": {"algorithm=MPIR_Allreduce_intra_ring": {}},
        "avg_msg_size=any": own,
    }
    of_nodes = {"comm_avg_ppn<=1": own, "comm_avg_ppn<=2": of_sizes, "comm_size=any": own}
    sizes = ("comm_size<=3", "comm_size<=4", "comm_size=any")
    assert [*branch.items()] == [*zip(sizes, (own, of_nodes, own))]
    assert [*branch["comm_size<=4"].items()] == [*of_nodes.items()]
    inside = values["collective=allgather"]["comm_type=intra"]["comm_size<=8"]
    assert [*inside] == ["total_msg_size<8192", "total_msg_size<8193", "total_msg_size=any"]
    assert inside["total_msg_size<8193"] == {"algorithm=MPIR_Allgather_allcomm_nb": {}}


@pytest.mark.parametrize(
    ("call", "name", "conditions"),
    [
        ("MPI_Bcast", "smp", ["comm_hierarchy=parent"]),
        ("MPI_Allreduce", "smp", ["is_commutative=yes", "comm_hierarchy=parent"]),
        ("MPI_Allreduce", "reduce_scatter_allgather", ["is_op_built_in=yes", "count=any"]),
        ("MPI_Alltoall", "brucks", ["is_sendbuf_inplace=no"]),
        ("MPI_Allgather", "ring", []),
    ],
)
def test_an_algorithm_of_mpich_has_the_conditions_that_it_needs(call, name, conditions):
    """Elsewhere it is as before; of fewer elements than ranks the exception comes first."""
    branch, before = formats.guarded(call, Candidate(name, 1), "before"), "before"
    for condition in conditions:
        (other,) = branch.keys() - {condition}
        assert branch[other] == before and ([*branch][0] == other) == (other == "count<pow2")
        branch = branch[condition]
    (algorithm,) = branch
    assert algorithm == f"algorithm=MPIR_{call[4:]}_intra_{name}"


def test_a_file_of_mpich_never_fills_whole_pages(tmp_path, monkeypatch):
    path = library_file(tmp_path / "libmpich.so", json.dumps(TABLE))
    rules = [Rule("MPI_Allreduce", 4, (Span(8, 64, RING),))]
    size = len(formats.mpich_json(found_by("MPICH", path=path), rules))
    monkeypatch.setattr(formats, "PAGE", size)
    assert len(formats.mpich_json(found_by("MPICH", path=path), rules)) == size + 1


def intel_algorithm(text: str, call: str, ranks: int, size: int) -> int:
    """As Intel MPI's reference has I_MPI_ADJUST_<call>=id:low-high@ranks-ranks;...; 0: its own."""
    for line in text.splitlines():
        name, _, value = line.partition("=")
        for rule in value.split(";") if name == f"I_MPI_ADJUST_{call}" else ():
            number, low, high, least, most = map(int, re.split("[:@-]", rule))
            if low <= size <= high and least <= ranks <= most:
                return number
    return 0


def test_variables_of_intel_mpi_are_read_as_they_were_meant():
    text = formats.intel_env(found_by("Intel MPI"), CHOSEN)
    assert intel_algorithm(text, "ALLGATHER", 8, 1024) == 4  # bytes of a rank
    read = partial(intel_algorithm, text, "ALLREDUCE")
    assert (read(4, 8), read(4, 64), read(4, 65536)) == (4, 4, 5)
    for ranks, size in ((4, 7), (4, 65), (4, 65537), (3, 8), (6, 8)):
        assert read(ranks, size) == 0


def json_algorithm(values: dict, call: str, ranks: int, size: int) -> tuple[int, int]:
    """As Open MPI 6 reads it: the first rule that matches; else (0, 0), its own."""
    for group in values["collectives"].get(call, []):
        if group["comm_size_min"] <= ranks <= group["comm_size_max"]:
            for rule in group["rules"]:
                if rule["msg_size_min"] <= size <= rule["msg_size_max"]:
                    return rule["alg"], rule["segsize"]
    return 0, 0


def test_json_of_open_mpi_is_read_as_it_was_meant():
    values = json.loads(formats.openmpi_json(found_by("Open MPI"), CHOSEN))
    assert (values["rule_file_version"], values["module"]) == (3, "tuned")
    assert json_algorithm(values, "allgather", 8, 8192) == (4, 0)  # bytes of all ranks
    read = partial(json_algorithm, values, "allreduce")
    assert (read(4, 64), read(4, 65536)) == ((4, 0), (5, 8192))
    for ranks, size in ((4, 65), (4, 65537), (5, 64), (6, 8)):
        assert read(ranks, size) == (0, 0)


@pytest.mark.parametrize(
    ("slurm", "status"), [("", 0), ("4", 0), ("4(x8)", 0), ("4(x8),2", 1), ("8(x4)", 1), ("40", 1)]
)
def test_settings_refuse_another_number_of_ranks_a_node(tmp_path, slurm, status):
    settings = tmp_path / "settings.sh"
    settings.write_text(formats.fence([4, 4]) + "export TAKEN=yes\n")
    words = ["/bin/sh", "-c", f". {settings}; status=$?; echo $TAKEN; exit $status"]
    environment = {"SLURM_TASKS_PER_NODE": slurm} if slurm else {}
    found = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert (found.returncode, found.stdout.strip()) == (status, "" if status else "yes")
    assert bool(found.stderr) == bool(status)
    assert formats.fence([4, 2]) == ""


def nccl_runs(folder: Path) -> list[Path]:
    """Eight blocks: in b, with another protocol, AllReduces of 1 MiB take half the time, and those
    of 8 MiB as long."""
    runs = []
    for block in range(8):
        for place, side in enumerate("ab" if block % 2 == 0 else "ba"):
            start_ns = 60 * (2 * block + place) * planted.SECOND
            job = Job([HostClock(77, wall_ns=start_ns)] * 2)
            group = job.group((0, 1), library="nccl")
            for number, (size, gain) in enumerate(((1 << 20, 0.5), (8 << 20, 0.0)), 1):
                lasts_ns = 1_000_000 + 1000 * block
                arrivals = [20_000_000 * number] * 2
                what = {"group": group, "message_bytes": size}
                job.collective("ncclAllReduce", arrivals, [lasts_ns] * 2, **what)
                how = {"call": "ncclAllReduce", "communicator": group.communicator, "bytes": size}
                for rank in range(2):
                    taken = lasts_ns * (1 - gain * (side == "b"))
                    cell = {"measure": "device", "duration_ns": round(taken), "region": 0}
                    job.made.append({"world_rank": rank, **how, **cell})
                protocol = "LL128" if side == "b" else "SIMPLE"
                kind = {"algorithm": "RING", "protocol": protocol, "channels": 16, "count": 1}
                job.add("nccl_algorithm", world_rank=0, is_folded=0, **how, **kind)
            runs.append(job.write(folder / f"{side}-{block}.db"))
    return runs


def test_nccls_protocol_of_a_size_is_found_written_and_seen_to_be_taken(
    tmp_path, capsys, figures_once
):
    folder = tmp_path / "runs"
    folder.mkdir()
    runs = experiment(folder, nccl_runs(folder))
    command_run("nccl", runs, "-o", tmp_path / "tuned")
    (rule,) = command_run("write", tmp_path / "tuned")
    span = Span(1 << 20, 1 << 20, Candidate("RING/LL128", 1))
    assert rule == Rule("ncclAllReduce", 2, (span,), 1)
    # NCCL's example tuner: collective, sizes with both ends, algorithm, protocol, nodes, ranks
    (line,) = (tmp_path / "tuned" / "rules.csv").read_text().splitlines()
    call, low, high, algorithm, protocol, _, *where = line.split(",")
    assert (call, int(low), int(high)) == ("allreduce", 1 << 20, 1 << 20)
    assert (algorithm, protocol, *where[:2]) == ("ring", "ll128", "1", "2")
    command_run("verify", tmp_path / "tuned", runs)
    said = capsys.readouterr().out
    assert "1 of 1 rule (recorded algorithms)" in said and "measured in the job itself" in said
    for run in folder.glob("b-*.db"):
        planted.execute(run, "UPDATE nccl_algorithm SET protocol = 'SIMPLE'")
    with pytest.raises(ReportError, match="not taken"):
        command_run("verify", tmp_path / "tuned", runs)


@pytest.mark.parametrize("is_faster", [True, False])
def test_auto_keeps_settings_only_if_the_job_itself_is_faster(tmp_path, monkeypatch, is_faster):
    """The job is recorded, compared with its replay, and runs with the file and without."""
    kit, experiments = tmp_path / "job.kit", []
    kit.write_bytes(signed(KIT))

    def experiment(folder: Path, blocks: int, arms: dict[str, str], *more: str) -> Path:
        experiments.append((folder.name, *arms.values(), *more))
        return folder

    def searched(arguments) -> None:
        evidences.write(arguments.output, found_by("Open MPI", raced(65536, 0.5)))

    check = Checked(kits.read(kit)[1], 0.9, 0.5, 4, 4, "Open MPI", 0.1, ())
    for owner, name, value in (
        (command, "record", lambda job, output: kit),
        (command, "run_experiment", experiment),
        (command, "search", searched),
        (command, "verify", lambda arguments: is_faster),
        (command.replay, "sides_checked", lambda words: ([], [])),
        (command.replay, "check", lambda jobs, replays: None),
        (command.replay, "result_of", lambda answers, replays: check),
    ):
        monkeypatch.setattr(owner, name, value)
    job, folder = "mpirun -n 4 {} ./app", tmp_path / "tuned"
    command_run("auto", "--job", job, "--launch", "mpirun -n 4 {}", "-o", folder)
    settings = folder / "settings.sh"
    assert settings.exists() == is_faster
    assert experiments == [
        ("check", job, "mpirun -n 4 {}", "--kit", str(kit)),
        ("experiment", job, f". {settings}; {job}"),
    ]
    checked = command.with_check(found_by("Open MPI"), kit)
    assert evidences.stands_text(checked) == "for 90.0 % of the job's time inside MPI"


def test_settings_unset_the_variables_that_would_win_over_the_file(tmp_path, capsys):
    evidences.write(tmp_path, found_by("Open MPI", raced(65536, 0.5)))
    assert command_run("write", tmp_path) == [Rule("MPI_Allreduce", 4, (Span(65536, 65536, RING),))]
    lines = (tmp_path / "settings.sh").read_text().splitlines()[1:]
    assert lines == [
        "unset OMPI_MCA_coll_tuned_allreduce_algorithm",
        "export OMPI_MCA_coll_tuned_use_dynamic_rules='1'",
        f"export OMPI_MCA_coll_tuned_dynamic_rules_filename='{tmp_path / 'rules.conf'}'",
    ]
    assert command.BITS in (tmp_path / "how-to-apply.txt").read_text()
    assert "1 rule, openmpi-classic" in capsys.readouterr().out


def command_run(action: str, *paths: object):
    from commprof_report.main import parser_build

    arguments = parser_build(["tune"]).parse_args(["tune", action, *map(str, paths)])
    return command.RUN[action](arguments)


def race_file(folder: Path, rank: int, *lines: str) -> Path:
    path = folder / f"rank-{rank}.race"
    path.write_text("\n".join(["counted ucx", *lines, ""]))
    return path


def test_a_calls_transfer_is_from_the_last_arrival_to_the_last_return(tmp_path):
    files = [
        race_file(tmp_path, 0, "0 0 0 0 0 10 20 3 24", "0 0 1 1 0 100 160 1 8"),
        race_file(tmp_path, 1, "0 0 0 0 0 12 22 1 8", "0 0 1 1 0 140 150 1 8"),
    ]
    outcome = search.read(files, 1.0)
    assert outcome.calls == [
        Call(0, 0, 0, False, ((1, 8), (3, 24))),
        Call(0, 1, 20, False, ((1, 8), (1, 8))),
    ]
    assert (outcome.counted, outcome.layout, outcome.transfer_ns(0, 1)) == ("ucx", [2], 20)


def test_ranks_that_had_other_candidates_are_an_error(tmp_path):
    files = [race_file(tmp_path, rank, f"0 0 1 {rank} 0 1 2 0 0") for rank in range(2)]
    with pytest.raises(ReportError, match="ranks disagree"):
        search.read(files, 1.0)


def test_rows_are_words_of_the_replayer():
    slower = Tried(Candidate("linear", 1), fate=SLOWER)
    tried = [Tried(LAUNCHED), Tried(RING), slower, Tried(TREE)]
    row = Raced("MPI_Allreduce", 65536, 4, 0.5, tried)
    assert search.words_of("Open MPI", row) == (
        "MPI_Allreduce,65536,4,coll_tuned_allreduce_algorithm,"
        "coll_tuned_allreduce_algorithm_segmentsize,-,4:0,5:8192"
    )
    assert search.words_of("", evidences.as_launched("MPI_Bcast", 8, 4)) == "MPI_Bcast,8,4,-,-,-"


def job(folder: Path, transfer_ns: int, wait_ns: int) -> Path:
    """Two ranks with 20 steps of 10 ms of work and an Allreduce, to which rank 1 comes late."""
    step_ns = 10_000_000 + wait_ns + transfer_ns
    ranks = []
    for rank, lasts_ns in enumerate((transfer_ns + wait_ns, transfer_ns)):
        own = Rank(rank, 2, communicators=[world(rank, 2)], wall_ns=21 * step_ns)
        own.samples = [
            Sample("MPI_Allreduce", end - lasts_ns, end, bytes=65536, sequence=number)
            for number, end in enumerate(range(step_ns, 21 * step_ns, step_ns), 1)
        ]
        own.cells = [Cell("MPI_Allreduce", 65536, [lasts_ns] * 20)]
        own.windows = [Window(0, 21 * step_ns)]
        own.facts = {"boot_id": "one", "time_namespace": "time:[1]"}
        ranks.append(own)
    return planted.write_databases(folder, ranks)


@pytest.mark.parametrize(
    ("transfer_ns", "wait_ns", "said"),
    [(10_000_000, 0, "would be at most 50.0 %"), (50_000, 10_000_000, "no algorithm shortens")],
)
def test_a_plan_says_what_is_worth_it_and_refuses_where_waiting_is_the_cost(
    tmp_path, capsys, monkeypatch, transfer_ns, wait_ns, said
):
    monkeypatch.setattr(command, "listed", lambda mpi: library_read(OPEN_MPI.splitlines()))
    command_run("plan", job(tmp_path / "run", transfer_ns, wait_ns))
    found = " ".join(capsys.readouterr().out.split())
    assert said in found, found
    assert ("segmented_ring" in found) == (wait_ns == 0)
