"""Programs that are linked to our double of NCCL (tests/doubles/libnccl)."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from .doubles import FOLDER as BUILD
from .doubles import make_doubles
from .harness import C_ERRORS, C_FLAGS, PROGRAMS, compile_to
from .libraries import REPOSITORY

DOUBLE = REPOSITORY / "tests/doubles/libnccl"


@lru_cache
def doubles() -> Path:
    make_doubles(DOUBLE)
    return BUILD


PLUGIN = {"NCCL_PROFILER_PLUGIN": "STATIC_PLUGIN"}
PLUGIN_SOURCES = (str(DOUBLE / "plugin.c"), "-ldl")


def with_nccl_inside(compiler: str) -> str:
    """programs/nccl_static.c, whose NCCL only tells its profiler plugin what it does."""
    return str(compiled(compiler, "nccl_static", *PLUGIN_SOURCES, library=None))


@lru_cache
def compiled(
    compiler: str, name: str, *flags: str, library: str | None = "libnccl.so.2", output: str = ""
) -> Path:
    """A program of the programs folder, linked to a copy of the double (None: to none)."""
    binary = BUILD / "tests" / Path(compiler).name / (output or name)
    linked = [str(doubles() / library), f"-Wl,-rpath,{BUILD}"] if library else []
    source = PROGRAMS / f"{name}.c"
    command = [compiler, *C_FLAGS, *C_ERRORS, f"-I{DOUBLE}", str(source), *linked, *flags]
    compile_to(binary, command, Path(__file__), source, *DOUBLE.iterdir())
    return binary
