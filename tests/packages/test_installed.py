"""Files that `make install` puts under a prefix for the tools of a site: modulefiles, pkg-config,
completion."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from .tools import say

LMOD = Path("/usr/share/lmod/lmod/libexec/lmod")


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("install") / "usr"
    say("make", "-s", "install", f"PREFIX={folder}")
    return folder


@pytest.fixture(scope="module")
def version(prefix: Path) -> str:
    return say(prefix / "bin/commprof-run", "--version").split()[1]


def bash_offers(prefix: Path, *words: str) -> list[str]:
    """Bash's completions of the last word."""
    script = (
        f"source $0; COMP_WORDS=({' '.join(map(repr, words))}); COMP_CWORD={len(words) - 1}; "
        f"_commprof_words; echo ${{COMPREPLY[@]}}"
    )
    return say(
        "bash", "-c", script, prefix / f"share/bash-completion/completions/{words[0]}"
    ).split()


def test_bash_completes_commands_options_and_choices(prefix):
    offered = bash_offers(prefix, "hvprof-report", "s")
    assert set(offered) == {"summary", "seen", "steps", "sizes", "stuck"}
    assert bash_offers(prefix, "hvprof-report", "sizes", "--per") == ["--per-rank"]
    assert bash_offers(prefix, "hvprof-report", "late", "--by", "") == [
        "rank",
        "host",
        "call",
        "state",
        "size",
        "run",
    ]
    assert bash_offers(prefix, "hvprof-report", "sizes", "run") == []  # files
    assert bash_offers(prefix, "commprof-experiment", "re") == ["resume"]
    assert bash_offers(prefix, "commprof-tune", "p") == ["plan"]
    assert bash_offers(prefix, "commprof-tune", "search", "--bud") == ["--budget"]


def test_bash_completes_the_settings(prefix):
    assert bash_offers(prefix, "commprof-run", "--mem") == ["--memory"]
    assert bash_offers(prefix, "commprof-run", "--no-q") == ["--no-quiet"]
    assert bash_offers(prefix, "commprof-run", "--quiet", "") == ["on", "off"]
    assert {"--doctor", "--help", "--version", "--canary"} <= set(
        bash_offers(prefix, "commprof-run", "--")
    )


def test_zsh_completes_the_same(prefix):
    if not shutil.which("zsh"):
        pytest.skip("no zsh")
    stub = "compdef() { : }; compset() { : }; compadd() { print -rl -- $@ }"
    script = (
        f'autoload -U +X bashcompinit && bashcompinit; {stub}; words=("$@"); CURRENT=$#words; '
        "source $0"
    )
    function = prefix / "share/zsh/site-functions/_commprof"

    def offers(*words: str) -> list[str]:
        return say("zsh", "-f", "-c", script, function, *words).splitlines()

    assert {"sizes", "steps"} <= set(offers("hvprof-report", "s"))
    assert "--per-rank" in offers("hvprof-report", "sizes", "--per")
    assert {"rank", "host"} <= set(offers("hvprof-report", "late", "--by", ""))
    assert {"on", "off"} <= set(offers("commprof-run", "--quiet", ""))


@pytest.mark.parametrize("kind", ["lua", "tcl"])
def test_a_module_brings_the_programs_to_the_path(prefix, version, kind, tmp_path):
    """Lmod reads modulefiles in Tcl, too."""
    if not LMOD.exists():
        pytest.skip("no lmod")
    (tmp_path / "commprof").mkdir()
    name = version + (".lua" if kind == "lua" else "")
    shutil.copy(prefix / "share/modulefiles/commprof" / name, tmp_path / "commprof" / name)
    said = say(
        LMOD,
        "bash",
        "load",
        f"commprof/{version}",
        MODULEPATH=str(tmp_path),
        LMOD_SYSTEM_DEFAULT_MODULES="",
        PATH="/usr/bin:/bin",
    )
    path = say("bash", "-c", f"{said}\necho $PATH", PATH="/usr/bin:/bin").strip()
    assert path.startswith(f"{prefix}/bin:"), said
    assert "LD_PRELOAD" not in said and "COMMPROF_" not in said


def test_pkg_config_knows_the_header(prefix, version):
    if not shutil.which("pkg-config"):
        pytest.skip("no pkg-config")
    known = {"PKG_CONFIG_PATH": str(prefix / "share/pkgconfig")}
    assert say("pkg-config", "--modversion", "commprof", **known).strip() == version
    assert say("pkg-config", "--cflags", "--libs", "commprof", **known).split() == [
        f"-I{prefix}/include"
    ]
    assert Path(say("pkg-config", "--variable=library", "commprof", **known).strip()).is_file()


def test_the_paths_are_those_of_the_prefix_not_of_the_staging_folder(tmp_path):
    say("make", "-s", "install", f"DESTDIR={tmp_path}", "PREFIX=/opt/commprof")
    modules = tmp_path / "opt/commprof/share/modulefiles/commprof"
    module = next(modules.glob("*.lua")).name
    for name in ("share/pkgconfig/commprof.pc", f"share/modulefiles/commprof/{module}"):
        text = (tmp_path / "opt/commprof" / name).read_text()
        assert "/opt/commprof" in text and str(tmp_path) not in text and "@" not in text
