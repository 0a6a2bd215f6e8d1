"""Algorithms in turns within a launch, and tuning files that are taken, by what ranks send: no test
here judges a time."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest

from .harness import launch
from .libraries import Mpi
from .reporter import answer
from .test_replay import REPLAY

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
    better: int
    name: str


KINDS = {
    "openmpi": Kind(
        "Open MPI",
        "OMPI_MCA_coll_tuned_allreduce_algorithm",
        "coll_tuned_allreduce_algorithm,coll_tuned_allreduce_algorithm_segmentsize",
        "segmented_ring",
        5,
        3,
        "recursive_doubling",
    ),
    "mpich": Kind(
        "MPICH",
        "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM",
        "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM,-",
        "smp",
        2,
        3,
        "recursive_doubling",
    ),
}
SETTINGS = {
    "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
    "OMPI_MCA_pml_monitoring_enable": "1",
}


@pytest.fixture
def kind(mpi: Mpi) -> Kind:
    version = mpi_version(mpi)
    if mpi.family not in KINDS or not version.startswith(("Open MPI v4.1", "MPICH Version:\t4.0")):
        pytest.skip(f"tune is tried with Open MPI 4.1 and MPICH 4.0, not with {version}")
    return KINDS[mpi.family]


def mpi_version(mpi: Mpi) -> str:
    found = launch(mpi, 1, [str(REPLAY), "--algorithms"], Path.cwd(), {})
    return found.stdout.partition("library ")[2].partition("\n")[0]


@pytest.fixture
def kit(tmp_path: Path) -> Path:
    text = KIT + "".join(f"program {rank} 0 0\n" + "0 0\n0 1\n" * 6 for rank in range(RANKS))
    digest = hashlib.sha256(text.encode()).hexdigest()
    path = tmp_path / "job.kit"
    path.write_bytes(gzip.compress(f"commprof-kit 1\nsha256 {digest}\n{text}".encode()))
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


def evidence(mpi: Mpi, kind: Kind, kit: Path, folder: Path, sent: list[set[tuple]]) -> None:
    """The result of a search that found the better algorithm twice as fast in eight launches."""
    library = launch(mpi, 1, [str(REPLAY), "--algorithms"], folder, {}).stdout.splitlines()
    path = next(line[5:] for line in library if line.startswith("path "))
    counts = [[[int(word) for word in rank] for rank in next(iter(each))] for each in sent]
    segment = 0 if mpi.family == "openmpi" else None
    tried = [
        {"candidate": ["as launched", -1, None], "counts": counts[0]},
        {"candidate": [kind.name, kind.better, segment], "counts": counts[1]},
    ]
    (folder / "evidence.json").write_text(
        json.dumps(
            {
                "format": "commprof-tune",
                "version": 1,
                "family": kind.family,
                "library": "test",
                "path": path,
                "kit": "0" * 64,
                "launch": f"{shlex.join(mpi.mpirun)} -n {RANKS} {{}}",
                "counted": "any",
                "launches": 10,
                "seconds": 1.0,
                "rows": [
                    {
                        "call": "MPI_Allreduce",
                        "bytes": BYTES,
                        "ranks": RANKS,
                        "share": 0.5,
                        "tried": [{**each, "transfer_ns": 1.0, "fate": ""} for each in tried],
                        "pairs": [[100.0, 50.0 + number] for number in range(8)],
                    }
                ],
            }
        )
    )


def test_a_file_is_written_and_taken_where_a_bad_algorithm_was_set(
    mpi, kind, kit, tmp_path, monkeypatch
):
    """Also with the variable that set it, which takes precedence over a file of MPICH's; and only
    by the calls that the rule is for. Without the file verify says that it was not taken."""
    monkeypatch.setenv("PATH", f"{REPLAY.parent}:{os.environ['PATH']}")
    for name, value in {**mpi.environment, kind.variable: kind.forced}.items():
        monkeypatch.setenv(name, value)
    row = f"MPI_Allreduce,{BYTES},{RANKS},{kind.row}"
    found = raced(
        mpi, kit, f"{row},-,{kind.better}", tmp_path / "race", **{kind.variable: kind.forced}
    )
    evidence(mpi, kind, kit, tmp_path, [found[0], found[1]])
    assert answer("tune", "write", tmp_path).exit_status == 0
    outcome = answer("tune", "verify", tmp_path)
    assert outcome.exit_status == 0, outcome
    assert "Taken           1 of 1 rule" in outcome.stdout
    settings = tmp_path / "settings.sh"
    settings.write_text(
        "".join(line for line in settings.read_text().splitlines(True) if "unset" in line)
    )
    outcome = answer("tune", "verify", tmp_path)
    assert outcome.exit_status == 1 and "NOT taken: MPI_Allreduce" in outcome.stdout
