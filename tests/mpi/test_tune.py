"""Algorithms in turns within a launch, and tuning files that are taken, by what ranks send: no test
here judges a time."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest

from .harness import launch
from .libraries import Mpi
from .reporter import answer, the_program
from .test_replay import REPLAY, signed

pytestmark = pytest.mark.slow

BYTES, RANKS = 65536, 4
KIT = f"""\
library test
ranks {RANKS}
window 1
comm 0 0 0 world 0,1,2,3
comm 1 1 0 self -
type 0 MPI_FLOAT 4 4 1
call 0 MPI_Allreduce 0 0 {BYTES // 4} MPI_SUM - - - 0 - - - - - - - - -
call 1 MPI_Bcast 0 0 2048 - 0 - - - - - - - - - - - -
"""


class Kind(NamedTuple):
    """A library's algorithms of MPI_Allreduce: one that is bad here, and a better one, by value."""

    family: str
    variable: str  # of the environment
    row: str  # up to the candidates
    forced: str  # the bad one, as the variable's value
    bad: int
    better: int = 3
    name: str = "recursive_doubling"


TUNED = "coll_tuned_allreduce_algorithm"
INTRA = "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM"
KINDS = {
    "openmpi": Kind(
        "Open MPI", f"OMPI_MCA_{TUNED}", f"{TUNED},{TUNED}_segmentsize", "segmented_ring", 5
    ),
    "mpich": Kind("MPICH", INTRA, f"{INTRA},-", "smp", 2),
}
SETTINGS = {"OMPI_MCA_coll_tuned_use_dynamic_rules": "1", "OMPI_MCA_pml_monitoring_enable": "1"}


def described(mpi: Mpi) -> dict[str, str]:
    """The library, and its path."""
    words = [str(REPLAY), "--algorithms"]
    lines = launch(mpi, 1, words, Path.cwd(), {}).stdout.splitlines()
    return dict(
        line.partition(" ")[::2] for line in lines if line[:8] == "library " or line[:5] == "path "
    )


@pytest.fixture
def kind(mpi):
    version = described(mpi).get("library", "")
    if mpi.family not in KINDS or not version.startswith(("Open MPI v4.1", "MPICH Version:\t4.0")):
        pytest.skip(f"tune is tried with Open MPI 4.1 and MPICH 4.0, not with {version}")
    return KINDS[mpi.family]


@pytest.fixture
def kit(tmp_path):
    path = tmp_path / "job.kit"
    programs = (f"program {rank} 0 0\n" + "0 0\n0 1\n" * 6 for rank in range(RANKS))
    path.write_bytes(signed(KIT + "".join(programs)))
    return path


def raced(mpi: Mpi, kit: Path, row: str, folder: Path, **settings: str) -> dict[int, set[tuple]]:
    """By candidate: what the ranks sent in each call, in order."""
    folder.mkdir()
    words = ["--race", row, "--race-output", str(folder), str(kit)]
    outcome = launch(mpi, RANKS, [str(REPLAY), *words], folder, {**SETTINGS, **settings})
    assert outcome.exit_status == 0, outcome
    ranks = [
        [line.split() for line in path.read_text().splitlines() if line[0].isdigit()]
        for path in sorted(folder.glob("rank-*.race"))
    ]
    assert len(ranks) == RANKS
    found: dict[int, set[tuple]] = {}
    for call in zip(*ranks):
        (place,) = {int(words[3]) for words in call}
        found.setdefault(place, set()).add(tuple(sorted(tuple(words[-2:]) for words in call)))
    return found


def test_candidates_take_turns_within_a_launch_and_send_other_messages(mpi, kind, kit, tmp_path):
    row = f"MPI_Allreduce,{BYTES},{RANKS},{kind.row}"
    segments = ":1024" if mpi.family == "openmpi" else ""
    found = raced(mpi, kit, f"{row},-,{kind.bad}{segments},{kind.better}", tmp_path / "race")
    assert [len(sent) for _, sent in sorted(found.items())] == [1, 1, 1]
    assert len({frozenset(sent) for sent in found.values()}) == 3
    alone = raced(mpi, kit, f"{row},{kind.better}", tmp_path / "alone")
    assert alone[0] == found[2]


def test_launches_of_their_own_send_what_turns_in_one_launch_do(
    mpi, kind, kit, tmp_path, monkeypatch
):
    """By variables of the environment, as for a library that cannot switch."""
    the_program()  # which sets the path
    from commprof_report.tune.evidence import Candidate
    from commprof_report.tune.evidence import Raced, Tried
    from commprof_report.tune.search import Launcher

    for name, value in mpi.environment.items():
        monkeypatch.setenv(name, value)
    segment = 0 if mpi.family == "openmpi" else None
    candidates = [Candidate("as launched"), Candidate(kind.name, kind.better, segment)]
    row = Raced("MPI_Allreduce", BYTES, RANKS, 0.5, [Tried(each) for each in candidates])
    launched = shlex.join([*mpi.mpirun, "-n", str(RANKS)]) + " {}"
    found = [
        Launcher(launched, str(REPLAY), kit, tmp_path, separate=separate).run(
            kind.family, [row], 2, counting=True
        )
        for separate in (False, True)
    ]
    turns, own = ([outcome.counts(0, place) for place in (0, 1)] for outcome in found)
    assert turns == own and own[0] != own[1]
    assert found[1].layout == [RANKS] and found[1].nodes == {0: 1}


def test_no_call_but_that_of_the_row_has_another_algorithm(mpi, kind, kit, tmp_path):
    """A row of another size is none of the kit's; the Bcast is as launched."""
    bcast = f"MPI_Bcast,8192,{RANKS},-,-,-"
    row = f"MPI_Allreduce,{BYTES},{RANKS},{kind.row},{kind.bad}"
    before = raced(mpi, kit, f"{bcast};MPI_Allreduce,8,{RANKS},-,-,-", tmp_path / "before")
    after = raced(mpi, kit, f"{row};{bcast}", tmp_path / "after")
    assert before[0] < after[0]


def test_a_replay_without_a_race_leaves_open_mpis_monitoring_alone(mpi, kind, kit, tmp_path):
    """Counting takes the place of a function of the library; here it only hands over."""
    if mpi.family != "openmpi":
        pytest.skip("a component of Open MPI")
    settings = {
        **SETTINGS,
        "OMPI_MCA_pml_monitoring_enable_output": "3",
        "OMPI_MCA_pml_monitoring_filename": str(tmp_path / "sent"),
    }
    assert launch(mpi, RANKS, [str(REPLAY), str(kit)], tmp_path, settings).exit_status == 0
    sent = (tmp_path / "sent.0.prof").read_text().splitlines()
    assert any(line.startswith("E\t0\t1\t") for line in sent), sent


def evidence(mpi: Mpi, kind: Kind, folder: Path, sent: list[set[tuple]]) -> None:
    """The result of a search that found the better algorithm twice as fast in eight launches."""
    counts = [[[int(word) for word in rank] for rank in next(iter(each))] for each in sent]
    segment = 0 if mpi.family == "openmpi" else None
    candidates = (["as launched", -1, None], [kind.name, kind.better, segment])
    tried = [
        {"candidate": candidate, "counts": count, "transfer_ns": 1.0, "fate": ""}
        for candidate, count in zip(candidates, counts)
    ]
    row = {"call": "MPI_Allreduce", "bytes": BYTES, "ranks": RANKS, "nodes": 1, "share": 0.5}
    pairs = [[100.0, 50.0 + number] for number in range(8)]
    known = {"format": "commprof-tune", "version": 2, "layout": [RANKS], "stands": None}
    known |= {"failing": "", "family": kind.family, "library": "test", "kit": "0" * 64}
    known |= {"path": described(mpi)["path"], "counted": "any", "launches": 10, "seconds": 1.0}
    known["launch"] = f"{shlex.join(mpi.mpirun)} -n {RANKS} {{}}"
    known["rows"] = [{**row, "tried": tried, "pairs": pairs}]
    (folder / "evidence.json").write_text(json.dumps(known))


@pytest.fixture
def written(mpi, kind, kit, tmp_path, monkeypatch, request):
    """The folder of a search where a bad algorithm is set, with the file. Tests with a family are
    of that one alone."""
    arguments = getattr(request.node, "callspec").params
    if arguments.get("family", mpi.family) != mpi.family:
        pytest.skip(f"a file of {arguments['family']}")
    monkeypatch.setenv("PATH", f"{REPLAY.parent}:{os.environ['PATH']}")
    for name, value in {**mpi.environment, kind.variable: kind.forced}.items():
        monkeypatch.setenv(name, value)
    row = f"MPI_Allreduce,{BYTES},{RANKS},{kind.row}"
    forced = {kind.variable: kind.forced}
    found = raced(mpi, kit, f"{row},-,{kind.better}", tmp_path / "race", **forced)
    evidence(mpi, kind, tmp_path, [found[0], found[1]])
    assert answer("tune", "write", tmp_path).exit_status == 0
    return tmp_path


def test_a_file_is_written_and_taken_where_a_bad_algorithm_was_set(written):
    """Also with the variable that set it, which takes precedence over a file of MPICH's; and only
    by the calls that the rule is for. Without the file verify says that it was not taken."""
    outcome = answer("tune", "verify", written)
    assert outcome.exit_status == 0, outcome
    assert "Taken           1 of 1 rule" in outcome.stdout
    without_lines(written / "settings.sh", "export")
    outcome = answer("tune", "verify", written)
    assert outcome.exit_status == 1 and "NOT taken: MPI_Allreduce" in outcome.stdout


def changed(path: Path, *changes: tuple[str, str]) -> None:
    text = path.read_text()
    for before, after in changes:
        assert before in text, text
        text = text.replace(before, after)
    path.write_text(text)


def rules(folder: Path) -> Path:
    (path,) = folder.glob("rules.*")
    return path


def rewritten(folder: Path, change: tuple[str, str]) -> None:
    """By other evidence."""
    changed(folder / "evidence.json", change)
    assert answer("tune", "write", folder).exit_status == 0


def without_lines(path: Path, word: str) -> None:
    lines = path.read_text().splitlines(True)
    path.write_text("".join(line for line in lines if word not in line))


ZERO = "0 0 0 0 # as the library decides\n"
RULED = f"4 # ranks and more\n3 # sizes of messages\n{ZERO}"
# closed above them
FEWER = (("4 # ranks and more", "2 # ranks and more"), ("5 # ranks", "3 # ranks"))


def with_one_collective(folder: Path) -> None:
    table = json.loads(rules(folder).read_text())
    name = "collective=allreduce"
    rules(folder).write_text(json.dumps({name: table[name]}))


def as_json(folder: Path) -> None:
    assert answer("tune", "write", folder, "--format", "openmpi-json").exit_status == 0


NONE = ("MPIR_Allreduce_intra_recursive_doubling", "MPIR_Allreduce_intra_none")
WITHOUT_0 = (RULED, "4 # ranks and more\n2 # sizes of messages\n")
WAYS = {
    "openmpi without file": lambda folder: rules(folder).unlink(),
    "openmpi without a rule for size 0": lambda folder: changed(rules(folder), WITHOUT_0),
    "openmpi for fewer ranks": lambda folder: changed(rules(folder), *FEWER),
    "openmpi as json": as_json,
    "mpich without file": lambda folder: rules(folder).unlink(),
    "mpich with one collective": with_one_collective,
    "mpich with an unknown algorithm": lambda folder: changed(rules(folder), NONE),
    "mpich with the variable": lambda folder: without_lines(folder / "settings.sh", "unset"),
    "mpich for fewer ranks of a node": lambda folder: rewritten(
        folder, ('"nodes": 1', '"nodes": 2')
    ),
    # it needs nodes of several ranks: a communicator of one node is as large as the job's, and
    # there it ends the job
    "mpich with an algorithm of nodes": lambda folder: rewritten(
        folder, ('"recursive_doubling", 3', '"smp", 2')
    ),
}
LOUD = ("mpich without file", "mpich with one collective", "mpich with an unknown algorithm")


@pytest.mark.parametrize(("family", "way"), [(way.split()[0], way) for way in WAYS])
def test_verify_sees_each_way_in_which_a_library_ignores_a_file(written, family, way):
    WAYS[way](written)
    outcome = answer("tune", "verify", written)
    said = "failed, " if way in LOUD else "NOT taken: MPI_Allreduce"
    assert outcome.exit_status == 1 and said in outcome.stdout + outcome.stderr, outcome


@pytest.mark.parametrize("family", ["openmpi"])
def test_rules_of_open_mpi_are_open_upwards_and_win_over_a_variable(written, family):
    """A rule for 2 ranks holds for 4, where nothing closes it."""
    without_lines(written / "settings.sh", "unset")
    assert answer("tune", "verify", written).exit_status == 0
    closing = f"3 # ranks and more\n1 # sizes of messages\n{ZERO}"
    is_open = (closing, ""), ("3 # sizes of communicators", "2 # sizes")
    changed(rules(written), *FEWER, *is_open)
    assert answer("tune", "verify", written).exit_status == 0
