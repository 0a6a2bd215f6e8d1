"""All that every command says with --json about recordings of all kinds, as it was taken last.
`make golden` shows what has changed since, command by command; `make golden TAKE=1` takes it."""

from __future__ import annotations

import contextlib
import io
import json
import lzma
import math
import os
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
TAKEN = HERE.parent / "data" / "golden.json.xz"
sys.path[:0] = [str(HERE.parents[1] / "report"), str(HERE), str(HERE.parent)]

import compared_runs  # noqa: E402
import planted  # noqa: E402
from commprof_report.main import main  # noqa: E402
from read_once import figures_once, read_once  # noqa: E402
from truth import recordings  # noqa: E402

RUNS = (
    *"training gpus gpu example.db mpi killed".split(),
    *(
        f"{name}/run.db"
        for name in (
            "slow-rank-of-gpipe-2-stages-x-2 slow-rank-of-Horovod-regions "
            "slow-rank-of-DistributedDataParallel-twin late-target-of-an-epoch late-root-of-Bcast "
            "late-sender-eager slow-host-of-two-with-other-clocks noisy-neighbour-on-a-core "
            "a-rank-that-sleeps slow-master receiver-held-up-persistent-message "
            "slow-rank-before-Iallreduce-and-Waitall-twin Horovod-slow-rank Horovod-healthy "
            "Horovod-slow-rank-without-cache"
        ).split()
    ),
)
COMMANDS = (
    *("summary", "seen", "steps", "late --by run", "late --by rank"),
    *"advise traffic calls sizes latency hvprof communicators ranks regions gpu peers".split(),
    *("pipeline", "stuck"),
)
TABLES = (  # of the first runs
    *("steps --per-step", "steps --per-call", "steps --critical-path", "steps --by calls"),
    *(f"late --by {by}" for by in ("host", "call", "state", "size")),
    *(f"gpu --by {by}" for by in "rank sensor kernel copy stream algorithm step window".split()),
    *("sizes --rank 0", "calls --call Allreduce --bytes 1:1M"),
)
SIDES = "a0 a1 a2 a3 a4 a5 a6 a7 -- b0 b1 b2 b3 b4 b5 b6 b7"
OF_SIDES = (
    *(f"compare --json --by {by}" for by in ("verdict", "figure", "row", "size", "run")),
    "replay --json check",
)
SHOWN = 20  # differences of a command
DIGITS = 9  # of a number; further ones depend on the processor


def write_runs() -> None:
    """Into the working directory."""
    planted.write_databases(Path("training"), planted.training_run())
    planted.write_ledgers(Path("killed"), planted.gpu_run())
    planted.write_databases(Path("gpus"), planted.gpu_run())
    with tarfile.open(HERE / "recordings" / "schema-9.tar.xz") as archive:
        archive.extractall()
    packed = HERE.parents[1] / "docs" / "example-run.db.xz"
    Path("example.db").write_bytes(lzma.decompress(packed.read_bytes()))
    recordings.unpack(Path(), RUNS)
    sides = compared_runs.sides(Path("sides"), {compared_runs.LARGE: 1.3})
    for side in "ab":
        for number, run in enumerate(each for each in sides if each.name[0] == side):
            run.rename(f"{side}{number}")


def answer(*words: str) -> object:
    """All that the command prints: the values of --json, or lines."""
    printed, said = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
        status = main(list(words))
    printed.seek(0)
    text = printed.read()
    values = json.loads(text) if "--json" in words and text else text.splitlines()
    return {"status": status, "values": rounded(values)}


def rounded(value: object) -> object:
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    if isinstance(value, float) and math.isfinite(value):
        return float(f"{value:.{DIGITS}g}")
    return value


def answers() -> dict[str, object]:
    """By command line."""
    lines = [f"{command} --json {run}" for command in COMMANDS for run in RUNS]
    lines += [f"{command} --json {run}" for command in TABLES for run in RUNS[:4]]
    lines += [f"{command} {SIDES}" for command in OF_SIDES]
    lines += [f"export --format prometheus {run}" for run in RUNS[:4]]
    lines += [f"export --format perfetto {run}" for run in RUNS[:2]]
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            write_runs()
            with read_once(), figures_once():
                return {line: answer(*line.split()) for line in lines}
        finally:
            os.chdir(before)


def differences(was: object, now: object, at: str = "") -> Iterator[str]:
    if isinstance(was, dict) and isinstance(now, dict):
        for key in [*was, *(key for key in now if key not in was)]:
            yield from differences(was.get(key, "nothing"), now.get(key, "nothing"), f"{at} {key}")
    elif isinstance(was, list) and isinstance(now, list):
        if len(was) != len(now):
            yield f"{at}: {len(was)} -> {len(now)} rows"
        for place, (one, other) in enumerate(zip(was, now)):
            yield from differences(one, other, f"{at} {place}")
    elif was != now:
        yield f"{at}: {json.dumps(was)[:200]} -> {json.dumps(now)[:200]}"


def changed() -> Iterator[str]:
    taken, found = taken_last(), answers()
    for command in [*taken, *(each for each in found if each not in taken)]:
        lines = list(differences(taken.get(command, "nothing"), found.get(command, "nothing")))
        if lines:
            yield f"{command}: {len(lines)} differences"
            yield from (f"   {line}" for line in lines[:SHOWN])


def taken_last() -> dict[str, object]:
    return json.loads(lzma.decompress(TAKEN.read_bytes()))


if __name__ == "__main__":
    if sys.argv[1:] == ["take"]:
        text = json.dumps(answers(), separators=(",", ":"))
        TAKEN.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
    else:
        print("\n".join(changed()) or "every command says what it said")
