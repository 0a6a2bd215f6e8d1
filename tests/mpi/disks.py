"""Real file systems to put a run folder on: `disk` makes them in a file (loop) or in memory."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

LEAST_MEGABYTES = {"ext4": 16, "xfs": 320, "btrfs": 128}
MKFS = {
    "ext4": ["mkfs.ext4", "-q", "-O", "^has_journal"],
    "xfs": ["mkfs.xfs", "-q"],
    "btrfs": ["mkfs.btrfs", "-q"],
}


def run(*command: str | Path) -> None:
    """Skips the test if this machine does not let us run the command."""
    try:
        subprocess.run(
            list(map(str, command)), check=True, capture_output=True, text=True, timeout=600
        )
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no such file system here: {error} {getattr(error, 'stderr', '')}")


def mount(kind: str, folder: Path, options: str) -> None:
    if kind in MKFS:
        image = folder.with_suffix(".img")
        with image.open("wb") as file:
            file.truncate(LEAST_MEGABYTES[kind] << 20)
        run(*MKFS[kind], image)
        run("mount", "-o", f"loop{options and ',' + options}", image, folder)
    else:
        run("mount", "-t", kind, *(["-o", options] if options else []), kind, folder)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """disk("ext4"): an empty folder on such a file system; disk("tmpfs", "size=1m") with options of
    mount. Gone after the test."""
    mounted: list[Path] = []

    def mounted_disk(kind: str, options: str = "") -> Path:
        folder = tmp_path / f"{kind}-{len(mounted)}"
        folder.mkdir()
        mount(kind, folder, options)
        mounted.append(folder)
        return folder

    yield mounted_disk
    for folder in reversed(mounted):
        subprocess.run(["umount", "--lazy", str(folder)], check=False, timeout=600)


def fill(folder: Path, leave_kilobytes: int) -> None:
    """Take all room but so much."""
    filler = folder / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
    os.truncate(filler, filler.stat().st_size - (leave_kilobytes << 10))
