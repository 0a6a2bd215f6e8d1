"""Libraries built here, on whatever glibc, load on glibc 2.17: the versions that their symbols ask
for."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

BUILD = Path(__file__).resolve().parents[2] / "build"
SOURCES = BUILD.parent / "src"
OLDEST = (2, 17)


def private_headers(file: Path) -> str:
    return subprocess.run(
        ["objdump", "-p", str(file)], check=True, capture_output=True, text=True
    ).stdout


def required(file: Path) -> dict[str, set[tuple[int, ...]]]:
    """The versions that a file asks for, by the library that it expects them in."""
    versions: dict[str, set[tuple[int, ...]]] = {}
    library = ""
    for line in private_headers(file).partition("Version References:")[2].splitlines():
        if found := re.match(r"  required from (\S+):", line):
            library = found[1]
            versions[library] = set()
        elif found := re.search(r" GLIBC_([0-9.]+)$", line):
            versions[library].add(tuple(map(int, found[1].split("."))))
    return versions


def newer_symbols(file: Path) -> list[str]:
    table = subprocess.run(
        ["objdump", "-T", str(file)], check=True, capture_output=True, text=True
    ).stdout
    symbols = re.findall(r"\*UND\*.*?\(?GLIBC_([0-9.]+)\)?\s+(\w+)", table)
    return [
        f"{name}@{version}"
        for version, name in symbols
        if tuple(map(int, version.split("."))) > OLDEST
    ]


@pytest.fixture(params=["lib/libcommprof.so", "bin/commprof-run", "bin/commprof-replay"])
def built(request: pytest.FixtureRequest) -> Path:
    file: Path = BUILD / request.param
    assert file.exists(), "run `make` first"
    if "libc.so.6" not in required(file):
        pytest.skip("built with another C library than glibc")
    return file


def test_no_symbol_is_newer_than_2_17(built: Path) -> None:
    """One that is: see MOVED_FROM in the Makefile for a function that has moved,
    src/base/old_glibc.c for a new one."""
    assert newer_symbols(built) == []


def test_the_symbols_are_read(built: Path) -> None:
    assert max(required(built)["libc.so.6"]) <= OLDEST
    assert min(required(built)["libc.so.6"]) >= (2, 2, 5)


def test_numbers_are_read_by_functions_that_the_library_has_itself() -> None:
    """glibc 2.38 has new ones under the old names, for its headers' users: a build on an older one
    cannot tell."""
    families = (
        r"\b(__isoc23_)?(ato(?:i|l|ll|q)|(?:v?[fs]?|)scanf"
        r"|(?:str|wcs)to(?:l|ul|ll|ull|q|uq|imax|umax))\("
    )
    used, own = set(), set()
    for file in SOURCES.glob("**/*.[ch]"):
        for is_own, name in re.findall(families, file.read_text()):
            if is_own:
                own.add(name)
            elif file.name != "old_glibc.c":
                used.add("strtol" if name in ("atoi", "atol") else name)
    assert used == own, "see src/base/old_glibc.c"


def test_functions_that_moved_are_asked_of_the_libraries_that_had_them() -> None:
    library = BUILD / "lib/libcommprof.so"
    if "libc.so.6" not in required(library):
        pytest.skip("built with another C library than glibc")
    assert {"libdl.so.2", "libpthread.so.0"} <= set(
        re.findall(r"NEEDED +(\S+)", private_headers(library))
    )
    assert {"libdl.so.2", "libpthread.so.0"} <= set(required(library))
