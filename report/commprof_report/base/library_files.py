"""Files that the reporter has in common with the library: in the package where it is installed, in
src/ in the source tree."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from .errors import ReportError

PACKAGE = Path(__file__).resolve().parent.parent
SOURCE = PACKAGE.parent.parent / "src"


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
    installed = PACKAGE / Path(name).name
    for path in (installed, SOURCE / name):
        if path.is_file():
            return path.read_text(encoding="utf-8")
    raise ReportError(installed, "is missing; the installation is incomplete")
