"""Files that `make install` puts under a prefix, and those that `make uninstall` leaves there."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HELP_THAT_NAMES_DOCS = [
    ["commprof-run", "--help"],
    ["hvprof-report", "--help"],
    ["hvprof-report", "sizes", "--help"],
]


def make(*words: object) -> None:
    done = subprocess.run(
        ["make", "-s", *map(str, words)], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def say(*command: object) -> str:
    return subprocess.run(
        list(map(str, command)), capture_output=True, text=True, errors="replace", check=True
    ).stdout


def files_under(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if not path.is_dir())


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("install") / "usr"
    make("install", f"PREFIX={folder}")
    return folder


def test_uninstall_removes_every_file(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libother.so").touch()
    make("install", f"PREFIX={tmp_path}", "DEBUG_INFO=1")
    assert len(files_under(tmp_path)) > 50
    make("uninstall", f"PREFIX={tmp_path}")
    assert files_under(tmp_path) == [tmp_path / "lib" / "libother.so"]


def test_installed_libraries_have_no_debug_information_and_that_beside_them_is_found(
    prefix, tmp_path
):
    sections = say("readelf", "--sections", "--wide", prefix / "lib" / "libcommprof.so")
    assert ".dynsym" in sections and ".debug_info" not in sections and ".symtab" not in sections
    make("install", f"PREFIX={tmp_path}", "DEBUG_INFO=1")
    assert ".debug_info" in say(
        "readelf", "--sections", "--wide", tmp_path / "lib" / "libcommprof.so.debug"
    )
    assert "libcommprof.so.debug" in say(
        "readelf", "--string-dump=.gnu_debuglink", tmp_path / "lib" / "libcommprof.so"
    )


def test_an_old_python_is_named(tmp_path):
    (tmp_path / "python3").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "python3").chmod(0o755)
    path = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["make", "-s", "install", f"PREFIX={tmp_path}"],
        cwd=ROOT,
        env=path,
        capture_output=True,
        text=True,
    )
    assert (
        done.returncode != 0
        and "Python 3.9 or newer" in done.stderr
        and "make install-programs" in done.stderr
    ), done.stderr


def test_there_is_one_version(prefix):
    latest = re.search(r"^## (\S+?),? ", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE).group(1)
    programs = [each.name for each in (prefix / "bin").iterdir()]
    assert len(programs) == 5
    for name in programs:
        assert say(prefix / "bin" / name, "--version").split()[1:] == [latest], name


def test_documents_that_help_points_to_are_installed(prefix):
    documents = prefix / "share" / "doc" / "commprof"
    said = "".join(
        say(prefix / "bin" / program, *words) for program, *words in HELP_THAT_NAMES_DOCS
    )
    named = set(re.findall(r"docs/\w+\.md", said))
    assert "docs/SCHEMA.md" in named
    assert [name for name in named if not (documents / name).is_file()] == []
    # which README shows
    assert (documents / "LICENSE").is_file() and (documents / "docs/gallery/page.png").is_file()


def test_paths_that_administrators_are_told_are_installed(prefix):
    text = (ROOT / "docs/SITES.md").read_text()
    (told,) = re.findall(r"make install PREFIX=(/\S+)", text)
    named = set(re.findall(r"/opt/commprof/(?:\S+/)?(?:bin|lib|share)/[\w/.-]*\w", text))
    assert f"{told}/share/modulefiles" in named
    assert [
        name
        for name in named
        if not (name.startswith(told) and Path(f"{prefix}{name[len(told) :]}").exists())
    ] == []


def test_examples_that_pages_point_to_are_installed(prefix):
    share = prefix / "share"
    pages = "".join(page.read_text() for page in sorted((share / "man").rglob("*.[1-8]")))
    named = set(
        re.findall(r"examples/[\w/.]*\w", pages + (share / "doc/commprof/README.md").read_text())
    )
    assert "examples/steps_and_regions/commprof_marks.py" in named
    assert [name for name in named if not (share / "doc/commprof" / name).exists()] == []


@pytest.mark.parametrize(
    ("page", "form"),
    [("man1/commprof-run.1", ".It Fl -{option} Ar "), ("man7/commprof.7", ".It Ev {variable}\n")],
)
def test_manual_pages_have_every_setting_with_its_default(prefix, page, form):
    text = (prefix / "share" / "man" / page).read_text()
    said = say("env", "-i", prefix / "bin" / "commprof-run", "--help")
    settings = re.findall(r"^  --(\S+) \S+   (COMMPROF_\w+)   \[(.*)\]", said, re.MULTILINE)
    assert len(settings) > 15
    for option, variable, value in settings:
        item = text.partition(form.format(option=option, variable=variable))[2].partition("\n.It ")[
            0
        ]
        assert item and (value == "not set" or f"Default: {value}." in item), variable


def test_the_reporter_is_installed_compiled_unless_it_is_for_a_package(prefix, tmp_path):
    """Python would compile it anew at each command: users seldom may write there."""
    modules = list((prefix / "share" / "commprof").rglob("*.py"))
    assert (
        all(
            list((module.parent / "__pycache__").glob(f"{module.stem}.*.pyc")) for module in modules
        )
        and len(modules) > 50
    )
    make("install", f"DESTDIR={tmp_path}", "PREFIX=/usr")
    assert list(tmp_path.rglob("*.pyc")) == []
