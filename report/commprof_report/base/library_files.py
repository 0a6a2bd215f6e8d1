"""Files that the reporter has in common with the library: in the package where it is installed, in src/ in the source tree."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from .errors import ReportError

PACKAGE = Path(__file__).resolve().parent.parent
SOURCE = PACKAGE.parent.parent / "src"


@lru_cache
def library_text(name: str) -> str:
    """The text of a file, by its path in src/."""
    installed = PACKAGE / Path(name).name
    for path in (installed, SOURCE / name):
        if path.is_file():
            return path.read_text(encoding="utf-8")
    raise ReportError(installed, "is missing; the installation is incomplete")
