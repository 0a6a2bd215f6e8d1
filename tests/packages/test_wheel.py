"""Wheels that pip makes of a clone and of a release's archive: with the library, commprof-run and
the reports, which run in an environment."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
from mpi.libraries import SYSTEM_PYTHON

from .tools import check_profiles, say

CROSS_COMPILER = {"CC": "aarch64-linux-gnu-gcc", "STRIP": "aarch64-linux-gnu-strip"}
MACHINES = {"x86_64": "Advanced Micro Devices X86-64", "aarch64": "AArch64"}
SHARED = ("lib/libcommprof.so", "include/commprof.h", "include/commprof/counters.def")


def environment_create(folder: Path, *packages: object) -> Path:
    """A virtual environment with these packages."""
    say(SYSTEM_PYTHON, "-m", "venv", folder)
    if packages:
        say(folder / "bin/pip", "install", "--quiet", *packages)
    return folder / "bin"


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> None:
    """pip fetches the build backend. Without a registry there are no wheels."""
    folder = tmp_path_factory.mktemp("hatchling")
    offered = subprocess.run(
        [SYSTEM_PYTHON, "-m", "pip", "download", "--quiet", "hatchling", "-d", folder],
        capture_output=True,
        text=True,
    )
    if offered.returncode != 0:
        pytest.skip(f"pip gets no hatchling here: {offered.stderr.strip().splitlines()[-1]}")


def wheel_build(source: Path, folder: Path, **environment: str) -> Path:
    say(
        SYSTEM_PYTHON,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        folder,
        source,
        **environment,
    )
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def wheel(registry: None, archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheel_build(archive, tmp_path_factory.mktemp("wheel"))


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
    for file in (data / "data/lib/libcommprof.so", data / "scripts/commprof-run"):
        assert MACHINES[machine] in say("readelf", "-h", file)
        assert newest_glibc(file) <= (2, 17)


def check_environment(environment: Path, folder: Path) -> None:
    check_profiles(environment, folder)
    assert say(environment / "commprof-experiment", "--help").startswith(
        "usage: commprof-experiment"
    )
    assert say(environment / "commprof-tune", "--help").startswith("usage: hvprof-report tune")


def test_a_wheel_holds_libraries_that_run_on_glibc_2_17(wheel, tmp_path):
    check_programs(wheel, os.uname().machine, tmp_path)


def test_a_wheel_for_aarch64_is_built_by_its_cross_compiler(registry, clone, tmp_path):
    if not shutil.which(CROSS_COMPILER["CC"]):
        pytest.skip(f"no {CROSS_COMPILER['CC']}")
    check_programs(
        wheel_build(clone, tmp_path / "wheel", **CROSS_COMPILER), "aarch64", tmp_path / "files"
    )


def test_a_wheel_profiles_a_job_and_leaves_nothing_when_it_is_removed(wheel, tmp_path):
    environment = environment_create(tmp_path / "environment", "numpy")
    before = set(environment.parent.rglob("*"))
    say(environment / "pip", "install", "--quiet", "--no-deps", wheel)
    check_environment(environment, tmp_path)
    say(environment / "pip", "uninstall", "--quiet", "--yes", "commprof")
    assert [path for path in set(environment.parent.rglob("*")) - before if path.is_file()] == []


def test_pip_installs_from_a_clone_with_pictures(registry, clone, tmp_path):
    environment = environment_create(tmp_path / "environment", f"{clone}[plot]")
    check_environment(environment, tmp_path)
    say(environment / "hvprof-report", "calls", "--plot", tmp_path / "calls.svg", tmp_path / "run")
    assert (tmp_path / "calls.svg").read_text().startswith("<?xml")
