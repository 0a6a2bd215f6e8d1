"""include/commprof.h in every language, compiler and kind of program that is at hand: it compiles
without a warning, finds the library's functions where they are preloaded, and does nothing where
they are not."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

INCLUDE = Path(__file__).resolve().parents[2] / "include"
LANGUAGES = [f"{cc} -std={std}" for cc in ("gcc", "clang") for std in ("c99", "c11")]
LANGUAGES += ["g++ -std=c++11", "clang++ -std=c++11"]
KINDS = ["-O0", "-O2", "-O0 -fno-pie -no-pie", "-O2 -fno-pie -no-pie"]
KINDS += ["-O2 -fPIE -pie", "-O2 -fPIC -pie", "-O2 -fno-plt", "-O2 -flto"]
STATIC = ["-O0 -static", "-O2 -static"]
LINKERS = ["bfd", "gold", "lld"]

PROGRAM = """
#include <commprof.h>
#include <stdio.h>

int marks(void)
{
    void (*volatile step)(void) = commprof_step; /* a function that has an address */
    step();
    commprof_step();
    commprof_region_begin("epoch");
    commprof_region_end();
    return commprof_is_recording();
}
"""
MAIN = "int marks(void); int main(void) { return marks(); }"

# In the place of libcommprof.so: what was called, as decimal digits.
LIBRARY = """
static int called;
void commprof_step(void) { called += 1; }
void commprof_region_begin(const char *name) { called += name[0] == 'e' ? 10 : 0; }
void commprof_region_end(void) { called += 100; }
int commprof_is_recording(void) { return called; }
"""


def compile_it(tmp_path: Path, command: str, text: str, name: str, *more: str) -> Path:
    suffix = ".cpp" if "++" in command else ".c"
    source = tmp_path / f"{name}{suffix}"
    source.write_text(text + "\n")
    flags = ["-Wall", "-Wextra", "-pedantic", "-Werror", f"-I{INCLUDE}"]
    done = subprocess.run(
        [*command.split(), *flags, str(source), *more, "-o", str(tmp_path / name)],
        capture_output=True,
        text=True,
    )
    if done.returncode and ("cannot find" in done.stderr or "unable to find" in done.stderr):
        pytest.skip(done.stderr.splitlines()[0])
    assert done.returncode == 0, done.stderr
    return tmp_path / name


def called(program: Path, library: Path | None) -> int:
    environment = (
        {**os.environ, "LD_PRELOAD": str(library)} if library else {**os.environ, "LD_PRELOAD": ""}
    )
    return subprocess.run([str(program)], env=environment).returncode


@pytest.fixture
def library(tmp_path) -> Path:
    return compile_it(tmp_path, "cc", LIBRARY, "library.so", "-shared", "-fPIC")


@pytest.fixture(params=LANGUAGES)
def language(request) -> str:
    if not shutil.which(request.param.split()[0]):
        pytest.skip(f"no {request.param.split()[0]} here")
    return request.param


@pytest.mark.parametrize("kind", KINDS)
def test_a_program_of_any_kind_finds_the_library_that_is_preloaded(
    tmp_path, library, language, kind
):
    program = compile_it(
        tmp_path, f"{language} {kind}", PROGRAM + "int main(void) { return marks(); }", "program"
    )
    assert (called(program, library), called(program, None)) == (112, 0)


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("kind", ["-O2", "-O2 -fno-pie -no-pie"])
def test_whatever_linker_has_made_it(tmp_path, library, linker, kind):
    if not shutil.which(f"ld.{linker}"):
        pytest.skip(f"no ld.{linker} here")
    program = compile_it(tmp_path, f"gcc {kind} -fuse-ld={linker}", PROGRAM + MAIN, "program")
    assert (called(program, library), called(program, None)) == (112, 0)


@pytest.mark.parametrize("kind", STATIC)
def test_a_static_program_does_nothing(tmp_path, library, language, kind):
    program = compile_it(
        tmp_path, f"{language} {kind}", PROGRAM + "int main(void) { return marks(); }", "program"
    )
    assert called(program, library) == 0


def test_a_shared_library_finds_it_too(tmp_path, library, language):
    shared = compile_it(tmp_path, f"{language} -shared -fPIC", PROGRAM, "shared.so")
    program = compile_it(tmp_path, language, MAIN, "program", str(shared))
    assert (called(program, library), called(program, None)) == (112, 0)
