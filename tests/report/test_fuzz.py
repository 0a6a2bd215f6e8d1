"""The first cases of `make fuzz`, which reads a hundred thousand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CASES = 1500


@pytest.mark.slow
def test_damaged_and_made_up_files_are_answered_or_named(tmp_path):
    fuzz = Path(__file__).with_name("fuzz.py")
    words = [sys.executable, fuzz, "--cases", str(CASES), "--keep", tmp_path]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
