"""The examples of commprof_step(3) compile, run, and mark what they promise. Python's run beside
stand-ins for the frameworks."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest
from planted import ROOT

MARKS = ROOT / "examples" / "steps_and_regions"
PAGE = (ROOT / "docs" / "man" / "commprof_step.3").read_text()
BLOCKS = re.findall(r"^\.Bd -literal.*?\n(.*?)^\.Ed", PAGE, re.MULTILINE | re.DOTALL)
C, FORTRAN = "for (int i", "call commprof_mark"
C_PROGRAM = "static void forward(void) {}\nint main(void)\n{\nconst int steps = 3;\n%s\n}\n"
FORTRAN_PROGRAM = "%scontains\nsubroutine forward\nend subroutine\nend program\n"


def block(words: str) -> str:
    """The example that has these words."""
    (found,) = (each for each in BLOCKS if words in each)
    return found


def run(*words: object) -> None:
    subprocess.run([*map(str, words)], check=True)


def test_the_example_in_c_compiles_and_runs(tmp_path):
    program = tmp_path / "marks.c"
    program.write_text('#include "commprof.h"\n' + C_PROGRAM % block(C))
    run("gcc", "-Wall", "-Werror", f"-I{ROOT / 'include'}", program, "-o", tmp_path / "marks")
    run(tmp_path / "marks")


def test_the_example_in_fortran_compiles_and_runs(tmp_path):
    program, marks = tmp_path / "program.f90", tmp_path / "marks.o"
    run("gcc", "-c", f"-I{ROOT / 'include'}", MARKS / "commprof_marks.c", "-o", marks)
    program.write_text("program p\nuse commprof_marks\n" + FORTRAN_PROGRAM % block(FORTRAN))
    sources = MARKS / "commprof_marks.f90", program, marks
    run("gfortran", f"-J{tmp_path}", *sources, "-o", tmp_path / "marks")
    run(tmp_path / "marks")


class Hooks:
    """A model, its only parameter, or an optimizer: what was registered, by name."""

    def __init__(self) -> None:
        self.called: dict[str, list] = {}
        self.require_backward_grad_sync = True

    def __getattr__(self, name: str):
        return lambda hook: self.called.setdefault(name, []).append(hook)

    def parameters(self):
        return iter([self])

    def call(self, name: str) -> None:
        for hook in self.called.get(name, []):
            hook(None)


@pytest.fixture
def marked():
    """The marks made, and a stand-in for commprof_marks."""
    said: list[str] = []

    @contextlib.contextmanager
    def region(name: str):
        said.append(f"[{name}")
        yield
        said.append("]")

    return said, SimpleNamespace(step=lambda: said.append("step"), region=region)


@pytest.mark.parametrize("is_synchronized", [(True,), (False, False, True), (True, True)])
def test_the_region_of_ddp_is_around_the_waits_of_passes_that_synchronize(marked, is_synchronized):
    """Also with gradient accumulation; twice two steps."""
    said, marks = marked
    model, optimizer = Hooks(), Hooks()
    given = {"model": model, "optimizer": optimizer, "contextlib": contextlib}
    exec(block("require_backward_grad_sync"), {**given, "commprof_marks": marks})
    for _ in range(2):
        for model.require_backward_grad_sync in is_synchronized:
            model.call("register_forward_pre_hook")
            said.append("forward")
            model.call("register_hook")
        optimizer.call("register_step_pre_hook")
        said.append("optimizer")
    wait = ["[wait for gradients", "]"]
    passes = [["forward", *(wait if sync else [])] for sync in is_synchronized]
    assert said == 2 * [*(each for one in passes for each in one), "optimizer"]


@pytest.mark.parametrize(
    "words, wanted",
    [
        ("optimizer.synchronize = ", ["[wait for gradients", "synchronize", "]"]),
        ("on_after_backward", ["step"]),
        ("commprof_marks.step()\nwith", ["step", "[forward", "forward", "]"]),
    ],
)
def test_the_other_examples_in_python_mark_what_they_are_about(marked, words, wanted, monkeypatch):
    said, marks = marked
    monkeypatch.setitem(sys.modules, "commprof_marks", marks)
    optimizer = SimpleNamespace(synchronize=lambda: said.append("synchronize"))
    lightning = SimpleNamespace(Callback=object)
    given = {"commprof_marks": marks, "optimizer": optimizer, "pytorch_lightning": lightning}
    given["forward"] = lambda: said.append("forward")
    exec(block(words), given)
    if "synchronize" in wanted:
        optimizer.synchronize()
    if "Marks" in given:
        given["Marks"]().on_after_backward(None, None)
    assert said == wanted


def test_every_example_is_tried():
    tried = (C, FORTRAN, "require_backward_grad_sync", "optimizer.synchronize = ")
    tried += ("on_after_backward", "commprof_marks.step()\nwith")
    assert len(BLOCKS) == len({block(words) for words in tried})
