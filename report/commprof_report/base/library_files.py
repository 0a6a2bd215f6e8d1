"""Files that the reporter has in common with the library: in the package's src/ where it is
installed, in src/ in the source tree."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from .errors import ReportError

PACKAGE = Path(__file__).resolve().parent.parent
FOLDERS = (PACKAGE / "src", PACKAGE.parent.parent / "src")


@lru_cache
def source_text(name: str) -> str:
    """The same of C: without comments, with the macros expanded that it defines right before it
    includes a list of entries (`*.def`)."""
    text = re.sub(r"/\*.*?\*/", "", library_text(name), flags=re.S)
    return re.sub(r'((?:#define \w+\(name\).*\n)+)#include "(?:.*/)?(\w+\.def)"\n', _entries, text)


def _entries(include: re.Match) -> str:
    bodies = dict(re.findall(r"#define (\w+)\(name\) *(.*)", include[1]))
    entries = re.findall(r"^(\w+)\((\w+)\)", library_text(f"ledger/{include[2]}"), re.M)
    return "".join(
        re.sub(r"\bname\b", name, bodies[macro]) + "\n" for macro, name in entries if bodies[macro]
    )


@lru_cache
def library_text(name: str) -> str:
    """The text of a file, by its path in src/."""
    path = _path_of(name)
    if not path:
        raise ReportError(FOLDERS[0] / name, "is missing; the installation is incomplete")
    return path.read_text(encoding="utf-8")


def has_library_file(name: str) -> bool:
    return _path_of(name) is not None


def _path_of(name: str) -> Path | None:
    return next((folder / name for folder in FOLDERS if (folder / name).is_file()), None)
