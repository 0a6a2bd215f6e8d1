"""Every include goes the way that the layer list of docs/ARCHITECTURE.md allows, and no units use
each other in a circle."""

from __future__ import annotations

import re
from pathlib import Path

import layers

SOURCE = layers.REPOSITORY / "src"


def _unit(file: str) -> str:
    """call.c and call.h are one unit, src/record/call; tables (calls.def) stand for themselves."""
    return re.sub(r"\.[ch]$", "", file)


def _included(file: Path, name: str) -> Path:
    beside = file.parent / name
    return beside if beside.exists() else SOURCE / name


def c_arrows(text_of: dict[Path, str]) -> list[layers.Arrow]:
    """From each file's unit to the units that it includes; format headers that may be used from
    anywhere keep their ending."""
    arrows = []
    for file, text in text_of.items():
        for name in re.findall(r'^\s*#\s*include\s*"([^"]+)"', text, re.M):
            used = _included(file, name).resolve().relative_to(layers.REPOSITORY)
            arrows.append((_unit(str(file.relative_to(layers.REPOSITORY))), _unit(str(used))))
    return arrows


def _sources() -> dict[Path, str]:
    return {
        file: file.read_text()
        for file in sorted(SOURCE.rglob("*"))
        if file.suffix in (".c", ".h", ".def")
    }


def _c_faults(page: str, text_of: dict[Path, str]) -> list[str]:
    units = {_unit(str(file.relative_to(layers.REPOSITORY))) for file in text_of}
    return layers.faults(sorted(units), c_arrows(text_of), layers.read(page, "src/"))


def test_includes_follow_the_layer_list() -> None:
    assert _c_faults(layers.PAGE.read_text(), _sources()) == []


def _with_include(room_file: str, name: str) -> list[str]:
    text_of = _sources()
    text_of[SOURCE / room_file] += f'#include "{name}"\n'
    return _c_faults(layers.PAGE.read_text(), text_of)


def test_an_include_of_an_upper_room_is_found() -> None:
    assert _with_include("ledger/copy.c", "output/store.h") == [
        "src/ledger/copy uses src/output/store: src/ledger/ may not use src/output/"
    ]


def test_a_circle_within_a_room_is_found() -> None:
    assert _with_include("ledger/ledger.h", "copy.h") == [
        "a circle: src/ledger/copy, src/ledger/ledger"
    ]


def test_a_room_that_the_list_lacks_is_found() -> None:
    page = re.sub(r"^- `src/base/`.*\n", "", layers.PAGE.read_text(), flags=re.M)
    assert "src/base/clock is in no room of the list" in _c_faults(page, _sources())


def test_a_list_in_the_wrong_order_is_found() -> None:
    wrong = layers.Layers({"src/ledger/": ("src/base/",), "src/base/": ()}, ())
    assert layers.faults_of_list(wrong) == [
        "src/ledger/ uses src/base/, which does not stand before it in the list"
    ]


def test_a_mutex_is_locked_only_where_no_signal_of_the_job_can_be_delivered() -> None:
    """base/quiet.h says why. A pthread_once waits like a mutex."""
    naked = re.compile(
        r"pthread_(?:mutex_(?:try|timed)?lock|spin_lock|rwlock_\w+|once|cond_wait)\("
    )
    assert [str(file.name) for file, text in _sources().items() if naked.search(text)] == [
        "quiet.c"
    ] + PTHREAD_ONCE


PTHREAD_ONCE = ["recording.c"]  # in MPI_Init, before any call is recorded
