"""Fixtures: `clone`, what a clone of this tree has; `archive`, what `make dist` makes of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from mpi.libraries import REPOSITORY

from .tools import say

AUTHOR = ("-c", "user.name=test", "-c", "user.email=test@localhost")


@pytest.fixture(scope="session")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of this tree that git knows or would take, changes included, as one commit."""
    folder = tmp_path_factory.mktemp("clone") / "commprof"
    for name in say("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z").split(
        "\0"
    ):
        if name and (REPOSITORY / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, folder / name)
    say("git", "init", "--quiet", folder)
    say("git", "add", "--all", folder=folder)
    say("git", *AUTHOR, "commit", "--quiet", "--message", "all", folder=folder)
    return folder


@pytest.fixture(scope="session")
def archive(clone: Path) -> Path:
    say("make", "-s", "dist", folder=clone)
    (found,) = (clone / "build/dist").glob("commprof-*.tar.gz")
    return found
