"""`make bench` runs in no other test: its programs build, at least."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "bench"))

import run
import toy


def test_each_program_builds(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "BUILD", tmp_path)
    built = [
        run.compile_copy(),
        *(toy.build(tmp_path, name) for name in ("growth", "instructions", "end")),
    ]
    built += [
        run.compile_program(name, mpi)
        for name in ("overhead", "memory", "first_calls")
        for mpi in run.LIBRARIES
    ]
    assert all(program.is_file() for program in built)
