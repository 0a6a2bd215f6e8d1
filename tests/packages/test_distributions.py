"""The archive of a release, and the packages that Debian's tools and rpmbuild make of it."""

from __future__ import annotations

import os
import re
import shutil
import tarfile
from pathlib import Path

import pytest
from mpi.libraries import REPOSITORY

from .tools import check_profiles, say

PLACES = (  # under usr/
    "bin/commprof-experiment",
    "bin/commprof-tune",
    "include/commprof.h",
    "share/pkgconfig/commprof.pc",
    "share/bash-completion/completions/hvprof-report",
    "share/doc/commprof/docs/gallery/page.png",
    "share/modulefiles/commprof/{version}.lua",
    "share/zsh/site-functions/_commprof",
)


def version_of(text: str, pattern: str) -> str:
    return re.search(pattern, text, re.MULTILINE)[1]


VERSION = version_of(
    (REPOSITORY / "report/commprof_report/__init__.py").read_text(), r'^__version__ = "(.*?)"'
)


def check_tree(root: Path, folder: Path) -> None:
    assert [
        place for place in PLACES if not (root / "usr" / place.format(version=VERSION)).is_file()
    ] == []
    assert list((root / "usr/share/man/man1").glob("commprof-run.1*"))
    check_profiles(root / "usr/bin", folder)


@pytest.mark.parametrize(
    ("file", "pattern"),
    [
        ("debian/changelog", r"\Acommprof \((.*)-1\)"),
        ("commprof.spec", r"^Version: +(.*)$"),
        ("spack/package.py", r'^    version\("(.*)"\)'),
    ],
)
def test_there_is_one_version(file, pattern):
    assert version_of((REPOSITORY / "packaging" / file).read_text(), pattern) == VERSION


def test_two_archives_of_a_release_are_the_same_bytes(clone, archive, tmp_path):
    say("make", "-s", "dist", f"BUILD={tmp_path}", folder=clone, TZ="Asia/Tokyo", LC_ALL="C")
    assert (tmp_path / "dist" / archive.name).read_bytes() == archive.read_bytes()


def test_an_archive_holds_the_tree_and_is_an_sdist(clone, archive):
    assert archive.name == f"commprof-{VERSION}.tar.gz"
    with tarfile.open(archive) as files:
        held = {member.name for member in files.getmembers() if member.isfile()}
        facts = files.extractfile(f"commprof-{VERSION}/PKG-INFO").read().decode().splitlines()
    tree = {"PKG-INFO", *say("git", "ls-files", folder=clone).splitlines()}
    assert held == {f"commprof-{VERSION}/{name}" for name in tree}
    assert {"Name: commprof", f"Version: {VERSION}"} <= set(facts)


def test_debians_tools_make_a_package(archive, tmp_path):
    if not all(map(shutil.which, ("dpkg-buildpackage", "dh", "dh_python3"))):
        pytest.skip("no dpkg-buildpackage, debhelper or dh-python")
    say("tar", "-xf", archive, "-C", tmp_path)
    source = tmp_path / f"commprof-{VERSION}"
    shutil.copytree(source / "packaging/debian", source / "debian")
    say("dpkg-buildpackage", "-b", "-us", "-uc", "-d", folder=source)
    (package,) = tmp_path.glob("commprof_*.deb")
    depends = say("dpkg-deb", "--field", package, "Depends")
    assert "libc6 (>= " in depends and "python3 (>= 3.9)" in depends and "mpi" not in depends
    say("dpkg-deb", "-x", package, tmp_path / "root")
    check_tree(tmp_path / "root", tmp_path)
    assert list(tmp_path.glob("commprof-dbgsym_*.deb"))
    say("dpkg-deb", "--control", package, tmp_path / "control")
    assert "py3compile -p commprof" in (tmp_path / "control/postinst").read_text()


def test_rpmbuild_makes_a_package(archive, tmp_path):
    if not shutil.which("rpmbuild"):
        pytest.skip("no rpmbuild")
    say(
        "rpmbuild",
        "-tb",
        "--nodeps",
        f"--define=_topdir {tmp_path}/rpm",
        f"--define=_dbpath {tmp_path}/database",
        archive,
        folder=tmp_path,
    )
    (package,) = tmp_path.glob("rpm/RPMS/*/*.rpm")
    assert package.name.startswith(f"commprof-{VERSION}-1") and os.uname().machine in package.name
    (tmp_path / "root").mkdir()
    say("rpm2archive", package)
    say("tar", "-xf", f"{package}.tgz", "-C", tmp_path / "root")
    assert list(tmp_path.rglob("root/usr/share/commprof/commprof_report/__pycache__/main.*.pyc"))
    check_tree(tmp_path / "root", tmp_path)
