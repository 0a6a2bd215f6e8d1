"""What pip makes of a clone and of an sdist: a wheel with the library, commprof-run and the reports, which run from its environment."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest
from mpi.harness import compile_program, unprofiled_environment
from mpi.libraries import AS_ROOT, OPEN_MPI, REPOSITORY, SYSTEM_PYTHON

CROSS_COMPILER = {"CC": "aarch64-linux-gnu-gcc", "STRIP": "aarch64-linux-gnu-strip"}
MACHINES = {"x86_64": "Advanced Micro Devices X86-64", "aarch64": "AArch64"}
SHARED = ("lib/libcommprof.so", "lib/libcommprof-dlsym.so", "include/commprof.h", "include/commprof/counters.def")


def say(*command: object, folder: Path = REPOSITORY, **environment: str) -> str:
    surroundings = unprofiled_environment() | AS_ROOT | environment
    done = subprocess.run(list(map(str, command)), cwd=folder, env=surroundings, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def environment_create(folder: Path, *packages: object) -> Path:
    """A virtual environment with these packages."""
    say(SYSTEM_PYTHON, "-m", "venv", folder)
    if packages:
        say(folder / "bin/pip", "install", "--quiet", *packages)
    return folder / "bin"


@pytest.fixture(scope="module")
def hatchling(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The build backend by itself, to write an sdist; pip fetches its own. Without a registry there is neither."""
    folder = tmp_path_factory.mktemp("hatchling")
    offered = subprocess.run([SYSTEM_PYTHON, "-m", "pip", "download", "--quiet", "hatchling", "-d", folder], capture_output=True, text=True)
    if offered.returncode != 0:
        pytest.skip(f"pip gets no hatchling here: {offered.stderr.strip().splitlines()[-1]}")
    return environment_create(folder / "environment", "--no-index", f"--find-links={folder}", "hatchling") / "hatchling"


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of this tree that git would have in a clone, changes included."""
    folder = tmp_path_factory.mktemp("clone") / "commprof"
    for name in say("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z").split("\0"):
        if name and (REPOSITORY / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, folder / name)
    say("git", "init", "--quiet", folder)
    return folder


@pytest.fixture(scope="module")
def sdist(hatchling: Path, clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    say(hatchling, "build", "-t", "sdist", "-d", folder, folder=clone)
    return next(folder.glob("commprof-*.tar.gz"))


def wheel_build(source: Path, folder: Path, **environment: str) -> Path:
    say(SYSTEM_PYTHON, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, source, **environment)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheel_build(sdist, tmp_path_factory.mktemp("wheel"))


def files_of(wheel: Path, machine: str, folder: Path) -> Path:
    """The unpacked `data` of a wheel, the part that goes under the prefix, and its scripts."""
    assert wheel.name.endswith(f"-py3-none-manylinux_2_17_{machine}.whl"), wheel.name
    with zipfile.ZipFile(wheel) as files:
        files.extractall(folder)
    return next(folder.glob("commprof-*.data"))


def newest_glibc(file: Path) -> tuple[int, ...]:
    versions = re.findall(r"\bGLIBC_([0-9.]+)", say("objdump", "-p", file))
    return max(tuple(map(int, version.split("."))) for version in versions)


def check_programs(wheel: Path, machine: str, folder: Path) -> None:
    data = files_of(wheel, machine, folder)
    assert [name for name in SHARED if not (data / "data" / name).is_file()] == []
    for file in (data / "data/lib/libcommprof.so", data / "data/lib/libcommprof-dlsym.so", data / "scripts/commprof-run"):
        assert MACHINES[machine] in say("readelf", "-h", file)
        assert newest_glibc(file) <= (2, 17)


def check_profiles(environment: Path, folder: Path) -> None:
    """With the programs of an environment: a job, and its summary."""
    job = compile_program(OPEN_MPI, "pcontrol")
    say("mpirun", "--oversubscribe", "-n", "2", environment / "commprof-run", "--output", folder / "run", job)
    summary = say(environment / "hvprof-report", "summary", folder / "run", folder=folder)
    assert "2 ranks on 1 host" in summary and "In MPI" in summary
    assert say(environment / "commprof-experiment", "--help").startswith("usage: commprof-experiment")


def test_a_wheel_holds_libraries_that_run_on_glibc_2_17(wheel, tmp_path):
    check_programs(wheel, os.uname().machine, tmp_path)


def test_a_wheel_for_aarch64_is_built_by_its_cross_compiler(hatchling, clone, tmp_path):
    if not shutil.which(CROSS_COMPILER["CC"]):
        pytest.skip(f"no {CROSS_COMPILER['CC']}")
    check_programs(wheel_build(clone, tmp_path / "wheel", **CROSS_COMPILER), "aarch64", tmp_path / "files")


def test_a_wheel_profiles_a_job_and_leaves_nothing_when_it_is_removed(wheel, tmp_path):
    environment = environment_create(tmp_path / "environment")
    before = set(environment.parent.rglob("*"))
    say(environment / "pip", "install", "--quiet", "--no-deps", wheel)
    check_profiles(environment, tmp_path)
    say(environment / "pip", "uninstall", "--quiet", "--yes", "commprof")
    assert [path for path in set(environment.parent.rglob("*")) - before if path.is_file()] == []


def test_pip_installs_from_a_clone_with_pictures(hatchling, clone, tmp_path):
    environment = environment_create(tmp_path / "environment", f"{clone}[plot]")
    check_profiles(environment, tmp_path)
    say(environment / "hvprof-report", "calls", "--plot", tmp_path / "calls.svg", tmp_path / "run")
    assert (tmp_path / "calls.svg").read_text().startswith("<?xml")


def test_an_sdist_holds_the_tree(sdist, clone):
    with tarfile.open(sdist) as files:
        held = {name.partition("/")[2] for name in files.getnames()}
    tracked = {path.relative_to(clone).as_posix() for path in clone.rglob("*") if path.is_file() and ".git" not in path.parts}
    assert tracked - held == set()


def test_two_builds_give_the_same_sdist(hatchling, clone, sdist, tmp_path):
    say(hatchling, "build", "-t", "sdist", "-d", tmp_path, folder=clone)
    assert (tmp_path / sdist.name).read_bytes() == sdist.read_bytes()
