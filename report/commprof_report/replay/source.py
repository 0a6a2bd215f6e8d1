"""A kit as a program in one file of C, which any mpicc builds: the sources of commprof-replay, one
after the other, and the text of the kit."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from ..base.files import has_library_file, library_text
from . import kit as kits

MAIN = "tools/replay/commprof_replay.c"
OWN = re.compile(r'^#include "(.*\.h)"\n', re.M)
LIST = re.compile(r'^#include "(.*\.def)"\n', re.M)  # once in each place
SYSTEM = re.compile(r"^#include <.*>\n", re.M)
HEAD = """\
/* Copyright (c) 2026, the commprof authors. SPDX-License-Identifier: BSD-3-Clause
 *
 * The MPI calls of a job, without its program and its data. To make them again:
 *
 *     mpicc {program}.c -o {program} -ldl -lpthread
 *     mpirun -n {ranks} ./{program}
 *
 * ./{program} --help has options. Here are the sources of commprof-replay, and at the end the
 * calls, in lines, with - where there is no value:
 *
{format}
 */
#define _GNU_SOURCE
"""
LIBRARY = """
/* The rest finds MPI's functions by name, for which a linker would not link the library. */
int MPI_Init(int *, char ***);
int (*const linked_library)(int *, char ***) = MPI_Init;

/* No library is bound to a function here that has the name of one of its own. */
#pragma GCC visibility push(hidden)

/* Headers have more than is used here. */
#pragma GCC diagnostic ignored "-Wunused-function"
"""


def program_of(path: Path, name: str) -> str:
    """The C of a kit, which is checked. `name`: as whoever builds it calls the program."""
    kit, _ = kits.read(path)
    described = (kits.__doc__ or "").partition(":\n\n")[2].rstrip()
    head = HEAD.format(
        program=name, ranks=kit.ranks,
        format="\n".join(f" * {line}".rstrip() for line in described.split("\n")),
    )
    files = {
        name: LIST.sub(
            lambda list_: library_text(posixpath.join(posixpath.dirname(name), list_[1])),
            library_text(name),
        )
        for name in _sources()
    }
    includes = {line for text in files.values() for line in SYSTEM.findall(text)}
    bodies = (
        f"\n/* src/{name} */\n{SYSTEM.sub('', OWN.sub('', text))}" for name, text in files.items()
    )
    with kits.opened(path) as file:
        text = file.read().decode(errors="surrogateescape")
    return "".join(
        (
            head, *sorted(includes), LIBRARY, *bodies,
            f"\nconst char kit_inside[] =\n{_literal(text)};\n",
        )
    )


def _sources() -> list[str]:
    """The main file and all that it needs, by their paths in src/: headers first, each after those
    that it includes. Behind a header is the file of its name."""
    ordered: list[str] = []
    seen: set[str] = set()

    def add(file: str) -> None:
        if file in seen:
            return
        seen.add(file)
        for name in OWN.findall(library_text(file)):
            beside = posixpath.join(posixpath.dirname(file), name)
            add(beside if has_library_file(beside) else name)
        ordered.append(file)
        body = f"{file[:-1]}c"
        if has_library_file(body):
            add(body)

    add(MAIN)
    return sorted(ordered, key=lambda file: file.endswith(".c"))


def _literal(text: str) -> str:
    """A string of C for each line. Question marks might be trigraphs."""
    def escaped(match: re.Match) -> str:
        return "".join(f"\\{byte:03o}" for byte in match[0].encode(errors="surrogateescape"))

    return re.sub(r'[^ !#->@-\[\]-~\n]', escaped, text).rstrip("\n").replace("\n", '\\n"\n"').join(
        ('"', '\\n"')
    )
