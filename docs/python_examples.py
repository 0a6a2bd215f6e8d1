"""Runs the examples of docs/PYTHON.md on the recorded run docs/example-run.db.xz and prints the
page with what they say today.

python3 docs/python_examples.py >PYTHON.md    (from the top folder, with report/ in PYTHONPATH or
                                              the package installed)

Without pandas, what needs it is printed as it stands on the page."""

from __future__ import annotations

import contextlib
import doctest
import io
import lzma
import os
import sys
import tempfile
import textwrap
import warnings
from pathlib import Path

DOCS = Path(__file__).resolve().parent


def said(source: str, names: dict[str, object]) -> str:
    """Output of the interpreter; of an exception its last line, as doctest expects it."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            exec(compile(source, "example", "single"), names)
        except ModuleNotFoundError:
            raise
        except Exception as error:
            what = f"{type(error).__module__}.{type(error).__qualname__}: {error}"
            return f"Traceback (most recent call last):\n...\n{what}\n"
    return out.getvalue()


def shown(example: doctest.Example, names: dict[str, object]) -> str:
    first, *rest = example.source.splitlines()
    try:
        answer = said(example.source, names)
    except ModuleNotFoundError as error:
        print(f"{error}: left as it was: {first}", file=sys.stderr)
        answer = example.want
    lines = [f">>> {first}", *(f"... {line}" for line in rest), *answer.splitlines()]
    return textwrap.indent("\n".join(lines) + "\n", " " * example.indent)


def page(text: str) -> str:
    names: dict[str, object] = {}
    return "".join(
        part if isinstance(part, str) else shown(part, names)
        for part in doctest.DocTestParser().parse(text)
    )


if __name__ == "__main__":
    warnings.simplefilter("error")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "run.db").write_bytes(
            lzma.decompress((DOCS / "example-run.db.xz").read_bytes())
        )
        os.chdir(folder)
        sys.stdout.write(page((DOCS / "PYTHON.md").read_text(encoding="utf-8")))
