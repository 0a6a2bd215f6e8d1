"""From candidates to a tuning file, without MPI: the lists of two libraries, halving, choosing, and
the files. Real launches: tests/mpi/test_tune.py."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import NamedTuple

import planted
import pytest
from commprof_report.base import ReportError, UsageError
from commprof_report.commands import tune as command
from commprof_report.compare.judge import Rules
from commprof_report.tune import evidence as evidences
from commprof_report.tune import formats, launches
from commprof_report.tune.algorithms import AS_LAUNCHED, Candidate, Variable, library_read
from commprof_report.tune.evidence import Evidence, Raced, Rule, Span, Tried, rules_of
from commprof_report.tune.launches import Call, Launcher, Outcome
from commprof_report.tune.rows import Row, rows_of_kit
from commprof_report.tune.search import DEFAULT, REFUSED, SLOWER, UNCHANGED, Search
from parallel import world
from planted import Cell, Rank, Sample, Window

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


def raced(
    size: int,
    gain: float,
    candidate: Candidate = RING,
    call: str = "MPI_Allreduce",
    ranks: int = 4,
    pairs: int = 8,
) -> Raced:
    """gain: of time in each pair of launches, about."""
    tried = [Tried(LAUNCHED, [[1, size]]), Tried(candidate, [[2, size]])]
    return Raced(
        call,
        size,
        ranks,
        0.5,
        tried,
        [[1000.0 + number, (1 - gain) * (1000.0 + 2 * number)] for number in range(pairs)],
    )


def test_open_mpi_enumerates_its_algorithms():
    library = library_read(OPEN_MPI.splitlines())
    assert (library.version, library.family) == ("Open MPI v4.1.4", "Open MPI")
    assert [each.word for each in library.candidates("MPI_Allreduce", 10_000)] == [
        "-",
        "0:0",
        "4:0",
        "4:8192",
        "5:0",
        "5:8192",
    ]  # the library's own choice is one, for another was launched
    assert [each.word for each in library.candidates("MPI_Bcast", 10_000)] == ["-"]


def test_algorithms_of_mpich_are_read_from_lines_that_run_together():
    lines = ["path x", f"variable MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM 0 {MPICH_TEXT}"]
    library = library_read(lines, frozenset(("nb", "smp", "recursive_doubling", "doubling")))
    assert library.family == "MPICH"
    assert library.variables["MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM"] == Variable(
        0, {0: "auto", 1: "nb", 2: "smp", 3: "recursive_doubling"}
    )
    assert [each.word for each in library.candidates("MPI_Allreduce", 10_000)] == [
        "-",
        "1",
        "2",
        "3",
    ]


def test_a_library_without_such_variables_has_no_family():
    assert library_read(["library Other 1", "path x", "variable some_algorithm 0 1=a"]).family == ""


def signed(text: str, path: Path) -> Path:
    digest = hashlib.sha256(text.encode()).hexdigest()
    path.write_bytes(gzip.compress(f"commprof-kit 1\nsha256 {digest}\n{text}".encode()))
    return path


def test_rows_of_a_kit_are_collectives_of_several_ranks_with_bytes(tmp_path):
    assert rows_of_kit(signed(KIT, tmp_path / "job.kit")) == [Row("MPI_Allreduce", 65536, 2, 2)]


class Machine(NamedTuple):
    """How long a call takes with each candidate, and how many messages it sends."""

    times_ns: dict[str, int]
    messages: dict[str, int]
    refused: tuple[str, ...] = ()


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
        return Outcome(
            library_read(OPEN_MPI.replace(" 5 0", " 0 0").splitlines()), "ucx", calls, 0.1, 1e-4, 4
        )

    def call(self, row: int, place: int, name: str, passed: int) -> Call:
        time_ns = self.machine.times_ns[name] * (10 + len(self.launched))
        messages = self.machine.messages[name]
        return Call(
            row,
            place,
            time_ns if passed else 0,
            name in self.machine.refused,
            ((messages, messages),) * 4,
        )


TIMES = {
    AS_LAUNCHED: 100,
    "ring": 50,
    "ring, segments of 8192 B": 60,
    "segmented_ring": 40,
    "segmented_ring, segments of 8192 B": 120,
}
SENT = {
    AS_LAUNCHED: 2,
    "ring": 6,
    "ring, segments of 8192 B": 6,
    "segmented_ring": 7,
    "segmented_ring, segments of 8192 B": 9,
}


def searched(machine: Machine) -> tuple[Evidence, Doubled]:
    launcher = Doubled("mpirun {}", "commprof-replay", Path("kit"), Path("folder"))
    launcher.machine, launcher.launched = machine, []
    rows = [Row("MPI_Allreduce", 10_000, 4, 10)]
    found = Search(launcher, rows, 60.0, "abc", Rules(), lambda text: None).run()
    return found, launcher


def test_a_search_finds_the_fastest_candidate_by_halves():
    found, launcher = searched(Machine(TIMES, SENT))
    (row,) = found.rows
    fates = {each.candidate.text: each.fate for each in row.tried}
    assert fates == {
        AS_LAUNCHED: "",
        "ring": SLOWER,
        "ring, segments of 8192 B": UNCHANGED,
        "segmented_ring": "",
        "segmented_ring, segments of 8192 B": SLOWER,
    }
    assert launcher.launched[1] == [[*TIMES]] and launcher.launched[-1] == [
        [AS_LAUNCHED, "segmented_ring"]
    ]
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


def test_the_last_candidate_is_out_if_it_is_slower_than_the_default(capsys):
    found, _ = searched(Machine({**dict.fromkeys(TIMES, 120), AS_LAUNCHED: 100}, SENT))
    assert {each.fate for each in found.rows[0].tried} == {"", UNCHANGED, SLOWER}
    assert found.rows[0].best is None and not found.rows[0].pairs
    command.print_search(found, Rules())
    assert "as launched" in capsys.readouterr().out


@pytest.mark.parametrize(("time_ns", "rows"), [(80, 0), (100, 1)])
def test_a_row_of_less_than_1_percent_is_not_searched(time_ns, rows):
    """A pass takes 0.1 ms, and has a call of 11 times that."""
    found, launcher = searched(Machine({**TIMES, AS_LAUNCHED: time_ns}, SENT))
    assert len(found.rows) == rows and (len(launcher.launched) > 1) == bool(rows)


@pytest.mark.parametrize(("gain", "count"), [(0.01, 0), (0.1, 1)])
def test_a_rule_needs_a_least_gain_beyond_the_least_effect(gain, count):
    assert len(rules_of(found_by("Open MPI", raced(65536, gain)), Rules())) == count


def test_too_few_launches_prove_nothing():
    assert rules_of(found_by("Open MPI", raced(65536, 0.5, pairs=5)), Rules()) == []


def test_neighbours_are_merged_and_a_size_without_a_gain_parts_them():
    rows = [raced(size, gain) for size, gain in ((8, 0.5), (64, 0.5), (512, 0.0), (4096, 0.5))]
    (rule,) = rules_of(found_by("Open MPI", *rows), Rules())
    assert rule.spans == (Span(8, 64, RING), Span(4096, 4096, RING))


def test_evidence_is_read_as_it_was_written(tmp_path):
    found = found_by("Open MPI", raced(65536, 0.5))
    evidences.write(tmp_path, found)
    assert evidences.read(tmp_path) == found
    (tmp_path / "evidence.json").write_text('{"format": "commprof-tune", "version": 1}')
    with pytest.raises(ReportError, match="is damaged"):
        evidences.read(tmp_path)


CLASSIC = """\
# written by hvprof-report tune for Open MPI 4 and the kit abc
2 # collectives
0 # MPI_Allgather
3 # sizes of communicators
1 # ranks and more
1 # sizes of messages
0 0 0 0 # as the library decides
8 # ranks and more
3 # sizes of messages
0 0 0 0 # as the library decides
8192 4 0 0 # ring
8193 0 0 0 # as the library decides
9 # ranks and more
1 # sizes of messages
0 0 0 0 # as the library decides
2 # MPI_Allreduce
4 # sizes of communicators
1 # ranks and more
1 # sizes of messages
0 0 0 0 # as the library decides
4 # ranks and more
5 # sizes of messages
0 0 0 0 # as the library decides
8 4 0 0 # ring
65 0 0 0 # as the library decides
65536 5 0 8192 # segmented_ring, segments of 8192 B
65537 0 0 0 # as the library decides
5 # ranks and more
3 # sizes of messages
0 0 0 0 # as the library decides
8 4 0 0 # ring
9 0 0 0 # as the library decides
6 # ranks and more
1 # sizes of messages
0 0 0 0 # as the library decides
"""
CHOSEN = [
    Rule("MPI_Allreduce", 4, (Span(8, 64, RING), Span(65536, 65536, TREE))),
    Rule("MPI_Allreduce", 5, (Span(8, 8, RING),)),
    Rule("MPI_Allgather", 8, (Span(1024, 1024, RING),)),
]


def test_a_classic_file_of_open_mpi_closes_all_that_is_open():
    """Rules are open upwards, the first one also downwards; without one for size 0 all of a
    collective are ignored. An Allgather's size is that of all ranks."""
    assert formats.openmpi_classic(found_by("Open MPI"), CHOSEN) == CLASSIC


def test_open_mpi_4_and_5_get_the_classic_file_for_they_ignore_json():
    name, chosen = formats.format_named(found_by("Open MPI"), None)
    assert name == "openmpi-classic" and not chosen.untried
    _, untried = formats.format_named(found_by("Open MPI"), "openmpi-json")
    assert "ignore it" in untried.untried


def test_a_json_file_of_open_mpi_has_closed_ranges():
    values = json.loads(formats.openmpi_json(found_by("Open MPI"), CHOSEN))
    assert values["collectives"]["allgather"] == [
        {
            "comm_size_min": 8,
            "comm_size_max": 8,
            "rules": [{"msg_size_min": 8192, "msg_size_max": 8192, "alg": 4, "segsize": 0}],
        }
    ]


def library_file(path: Path, text: str) -> Path:
    """With another table before the one that counts, as MPICH has them."""
    path.write_bytes(
        b'\x7fELF{"collective=bcast":{"composition=a":{}}}\0' + text.encode() + b"\0rest"
    )
    return path


def test_a_file_of_mpich_is_the_librarys_own_table_with_branches_before_its_own(tmp_path):
    path = library_file(tmp_path / "libmpich.so", json.dumps(TABLE))
    rules = [
        Rule("MPI_Allreduce", 4, (Span(8, 64, RING),)),
        Rule("MPI_Allgather", 8, (Span(1024, 1024, Candidate("nb", 1)),)),
    ]
    written = formats.mpich_json(found_by("MPICH", path=path), rules)
    values, own = json.loads(written), TABLE["collective=allreduce"]["comm_type=intra"]
    assert values.keys() == TABLE.keys() and list(values) == list(TABLE)
    assert values["collective=bcast"] == TABLE["collective=bcast"]
    assert (
        values["collective=allreduce"]["comm_type=inter"]
        == (TABLE["collective=allreduce"]["comm_type=inter"])
    )
    branch = values["collective=allreduce"]["comm_type=intra"]
    assert [*branch.items()] == [
        ("comm_size<4", own),
        (
            "comm_size<=4",
            {
                "avg_msg_size<8": own,
                "avg_msg_size<65": {"algorithm=MPIR_Allreduce_intra_ring": {}},
                "avg_msg_size=any": own,
            },
        ),
        ("comm_size=any", own),
    ]
    inside = values["collective=allgather"]["comm_type=intra"]["comm_size<=8"]
    assert [*inside] == ["total_msg_size<8192", "total_msg_size<8193", "total_msg_size=any"]
    assert inside["total_msg_size<8193"] == {"algorithm=MPIR_Allgather_allcomm_nb": {}}


def test_a_file_of_mpich_never_fills_whole_pages(tmp_path, monkeypatch):
    path = library_file(tmp_path / "libmpich.so", json.dumps(TABLE))
    rules = [Rule("MPI_Allreduce", 4, (Span(8, 64, RING),))]
    size = len(formats.mpich_json(found_by("MPICH", path=path), rules))
    monkeypatch.setattr(formats, "PAGE", size)
    assert len(formats.mpich_json(found_by("MPICH", path=path), rules)) == size + 1


def test_a_library_without_a_table_gets_no_file(tmp_path):
    path = library_file(tmp_path / "libmpich.so", "no table")
    with pytest.raises(ReportError, match="has no table of algorithms"):
        formats.mpich_json(found_by("MPICH", path=path), CHOSEN)


def test_files_that_cannot_be_tried_here_say_so():
    intel = found_by("Intel MPI")
    assert formats.intel_env(intel, CHOSEN[1:]) == (
        "I_MPI_ADJUST_ALLGATHER=4:1024-1024@8-8\nI_MPI_ADJUST_ALLREDUCE=4:8-8@5-5\n"
    )
    rule = Rule("MPI_Allreduce", 8, (Span(8, 64, Candidate("RING/LL128", 1)),))
    assert formats.nccl_csv(found_by("NCCL"), [rule]) == "allreduce,8,64,ring,ll128,-1,-1,8,-1,-1\n"
    for name in ("openmpi-json", "intel-env", "nccl-csv"):
        assert "not tried" in formats.FORMATS[name].untried


def test_a_format_of_another_library_is_refused():
    with pytest.raises(UsageError, match="mpich-json is for MPICH"):
        formats.format_named(found_by("Open MPI"), "mpich-json")


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


def test_nothing_is_written_without_a_gain(tmp_path, capsys):
    evidences.write(tmp_path, found_by("Open MPI", raced(65536, 0.0)))
    assert command_run("write", tmp_path) == []
    assert [path.name for path in tmp_path.iterdir()] == ["evidence.json"]
    assert "nothing to write" in capsys.readouterr().out


def command_run(action: str, *paths: Path):
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
    outcome = launches.read(files, 1.0)
    assert outcome.calls == [
        Call(0, 0, 0, False, ((1, 8), (3, 24))),
        Call(0, 1, 20, False, ((1, 8), (1, 8))),
    ]
    assert (outcome.counted, outcome.world, outcome.transfer_ns(0, 1)) == ("ucx", 2, 20)


def test_ranks_that_had_other_candidates_are_an_error(tmp_path):
    files = [race_file(tmp_path, rank, f"0 0 1 {rank} 0 1 2 0 0") for rank in range(2)]
    with pytest.raises(ReportError, match="ranks disagree"):
        launches.read(files, 1.0)


def test_rows_are_words_of_the_replayer():
    row = Raced(
        "MPI_Allreduce",
        65536,
        4,
        0.5,
        [
            Tried(LAUNCHED),
            Tried(RING),
            Tried(Candidate("linear", 1), fate=SLOWER),
            Tried(TREE),
        ],
    )
    assert launches.words_of("Open MPI", row) == (
        "MPI_Allreduce,65536,4,coll_tuned_allreduce_algorithm,"
        "coll_tuned_allreduce_algorithm_segmentsize,-,4:0,5:8192"
    )
    assert launches.words_of("", evidences.as_launched("MPI_Bcast", 8, 4)) == "MPI_Bcast,8,4,-,-,-"


def job(folder: Path, transfer_ns: int, wait_ns: int) -> Path:
    """Two ranks with 20 steps of 10 ms of work and an Allreduce, to which rank 1 comes late."""
    step_ns = 10_000_000 + wait_ns + transfer_ns
    ranks = []
    for rank in range(2):
        late_ns = wait_ns * rank
        samples = [
            Sample(
                "MPI_Allreduce",
                end - transfer_ns - wait_ns + late_ns,
                end,
                bytes=65536,
                sequence=number + 1,
            )
            for number, end in enumerate(range(step_ns, 21 * step_ns, step_ns))
        ]
        lasts_ns = transfer_ns + wait_ns - late_ns
        ranks.append(
            Rank(
                rank,
                2,
                communicators=[world(rank, 2)],
                samples=samples,
                wall_ns=21 * step_ns,
                cells=[Cell("MPI_Allreduce", 65536, [lasts_ns] * 20)],
                windows=[Window(0, 21 * step_ns)],
                facts={"boot_id": "one", "time_namespace": "time:[1]"},
            )
        )
    return planted.write_databases(folder, ranks)


@pytest.mark.parametrize(
    ("transfer_ns", "wait_ns", "said"),
    [
        (10_000_000, 0, "would be at most 50.0 %"),
        (50_000, 10_000_000, "no algorithm shortens"),
    ],
)
def test_a_plan_says_what_is_worth_it_and_refuses_where_waiting_is_the_cost(
    tmp_path, capsys, monkeypatch, transfer_ns, wait_ns, said
):
    monkeypatch.setattr(command, "listed", lambda mpi: library_read(OPEN_MPI.splitlines()))
    command_run("plan", job(tmp_path / "run", transfer_ns, wait_ns))
    found = " ".join(capsys.readouterr().out.split())
    assert said in found, found
    assert ("segmented_ring" in found) == (wait_ns == 0)
