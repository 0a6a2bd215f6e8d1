"""Fixtures: `mpi`, each library of this machine in turn; `profile` and `plain`, run a program with
and without the profiler; `disk`, a file system to put a run folder on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from .disks import disk as disk
from .harness import COMMPROF_RUN, LIBRARY, Outcome, Run, command_for, launch
from .libraries import Mpi, libraries


@pytest.fixture(scope="session", params=libraries(), ids=lambda mpi: mpi.name)
def mpi(request: pytest.FixtureRequest) -> Mpi:
    library: Mpi = request.param
    if library.missing:
        pytest.skip(f"{library.name} is not installed: no {library.missing}")
    return library


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test marked `one_mpi` is slow under all libraries but the first that is here; `make
    nightly` alone runs it there if it is slow anyway."""
    first = next((mpi for mpi in libraries() if not mpi.missing), None)
    for item in items:
        library = item.callspec.params.get("mpi") if hasattr(item, "callspec") else None
        if item.get_closest_marker("one_mpi") and library not in (None, first):
            is_slow = item.get_closest_marker("slow")
            item.add_marker(pytest.mark.nightly if is_slow else pytest.mark.slow)


def skip_if_faulty(mpi: Mpi, program: str, arguments: tuple[str, ...]) -> None:
    if fault := mpi.fault(program, arguments):
        pytest.skip(f"{fault}, without the profiler too")


@pytest.fixture(scope="session")
def profile(mpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Run]:
    """profile("program", ranks, *arguments, env={...}): the program's run under the profiler. The
    same request gives the same run again, so that many tests can ask about one. `exit_status` is
    what mpirun must return; None: anything. `preload` takes the libraries to preload by hand, in
    their order, in place of commprof-run."""
    runs: dict[object, Run] = {}

    def profiled(
        program: str,
        ranks: int,
        *arguments: str,
        env: dict[str, str] | None = None,
        exit_status: int | None = 0,
        preload: tuple[Path, ...] = (),
    ) -> Run:
        skip_if_faulty(mpi, program, arguments)
        asked = (program, ranks, arguments, tuple((env or {}).items()), preload)
        if asked not in runs:
            assert LIBRARY.exists(), "run `make` first"
            folder = tmp_path_factory.mktemp(f"{mpi.name}-{Path(program).name}")
            prefix = (
                ["env", "LD_PRELOAD=" + ":".join(map(str, preload))]
                if preload
                else [str(COMMPROF_RUN)]
            )
            command = [*prefix, *command_for(mpi, program), *arguments]
            environment = {"COMMPROF_OUTPUT": str(folder / "run"), **(env or {})}
            runs[asked] = Run(
                ranks, folder / "run", launch(mpi, ranks, command, folder, environment)
            )
        run = runs[asked]
        assert exit_status in (None, run.outcome.exit_status), run.outcome
        return run

    return profiled


@pytest.fixture(scope="session")
def plain(mpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Outcome]:
    """plain("program", ranks, *arguments, env={...}): the program's outcome without the profiler;
    the same again for the same request."""
    outcomes: dict[object, Outcome] = {}

    def unprofiled(
        program: str, ranks: int, *arguments: str, env: dict[str, str] | None = None
    ) -> Outcome:
        skip_if_faulty(mpi, program, arguments)
        asked = (program, ranks, arguments, tuple((env or {}).items()))
        if asked not in outcomes:
            folder = tmp_path_factory.mktemp(f"{mpi.name}-plain")
            command = [*command_for(mpi, program), *arguments]
            outcomes[asked] = launch(mpi, ranks, command, folder, env or {})
        return outcomes[asked]

    return unprofiled
