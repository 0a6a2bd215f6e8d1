"""commprof-run --doctor: what it says of real programs, and that its verdict is its exit status."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .harness import COMMPROF_RUN, LIBRARY, Outcome, compile_program, unprofiled_environment
from .test_places import NO_PLACE
from .libraries import SYSTEM_PYTHON as PYTHON

pytestmark = pytest.mark.slow

HELLO = "int main(void) { return 0; }"
# The mark of an MPI library is that it defines PMPI_Init.
FAKE_MPI = """
int PMPI_Init(int *c, char ***v) { (void)c, (void)v; return 0; }
int PMPI_Send(void) { return 0; }
int MPI_Init(int *c, char ***v) __attribute__((weak, alias("PMPI_Init")));
int MPI_Send(void) __attribute__((weak, alias("PMPI_Send")));
"""
CALLS_FORTRAN = "void mpi_init_(void); int main(void) { mpi_init_(); }"
CALLS_MPI = "int MPI_Init(int *, char ***); int main(void) { return MPI_Init(0, 0); }"


def doctor(
    program: object,
    run: Path = COMMPROF_RUN,
    *arguments: object,
    around: tuple[str, ...] = (),
    **environment: str,
) -> Outcome:
    command = [*around, run, "--doctor", program, *arguments]
    env = unprofiled_environment() | environment
    ended = subprocess.run(command, capture_output=True, text=True, timeout=600, env=env)
    return Outcome(ended.returncode, ended.stdout, ended.stderr)


def findings(outcome: Outcome, kind: str) -> list[str]:
    lines = outcome.stdout.splitlines()
    return [line.removeprefix(kind).strip() for line in lines if line.startswith(kind)]


def has(outcome: Outcome, kind: str, text: str) -> bool:
    return any(text in line for line in findings(outcome, kind))


def only_problem(outcome: Outcome) -> str:
    assert outcome.exit_status == 1, outcome
    assert outcome.stdout.splitlines()[-1] == "verdict: cannot be profiled, for the problem above"
    (problem,) = findings(outcome, "PROBLEM")
    return problem


def can_be_profiled(outcome: Outcome) -> bool:
    verdict = outcome.stdout.splitlines()[-1]
    is_so = verdict.startswith("verdict: can be profiled") and not findings(outcome, "PROBLEM")
    return outcome.exit_status == 0 and is_so


def compiled(folder: Path, name: str, source: str, *flags: str, compiler: str = "gcc") -> Path:
    (folder / f"{name}.c").write_text(source)
    subprocess.run([compiler, "-w", f"{name}.c", "-o", name, *flags], cwd=folder, check=True)
    return folder / name


def fake_mpi(folder: Path, source: str = FAKE_MPI, *flags: str) -> str:
    compiled(
        folder, "libfakempi.so", source, "-shared", "-fPIC", "-Wl,-soname,libfakempi.so.3", *flags
    )
    (folder / "libfakempi.so.3").symlink_to("libfakempi.so")
    return f"-L{folder} -lfakempi -Wl,-rpath,{folder}"


def executable(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_a_program_s_mpi_is_named_with_path_soname_version_and_abi(mpi):
    if mpi.name.startswith("impi") and mpi.name.endswith("-abi"):
        pytest.skip("it is the launcher's environment that chooses this library for the program")
    outcome = doctor(compile_program(mpi, "pcontrol"))
    assert can_be_profiled(outcome), outcome
    soname, version = mpi.soname, mpi.says
    (line,) = (line for line in findings(outcome, "ok") if line.startswith("MPI: /"))
    assert f"({soname})" in line and version in line
    assert f"ABI: {mpi.abi}" in findings(outcome, "ok")
    assert outcome.stderr == ""


def test_nothing_of_the_program_runs(mpi, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert can_be_profiled(doctor(compile_program(mpi, "talkative")))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("program", ["fortran_f08", "fortran_use_mpi", "fortran_mpif"])
def test_fortran_is_seen_to_reach_mpi_by_its_names(mpi, program):
    mpi.require_fortran(program)
    outcome = doctor(compile_program(mpi, program))
    assert can_be_profiled(outcome), outcome
    (line,) = (line for line in findings(outcome, "ok") if line.startswith("Fortran: "))
    assert int(line.split(": its ")[1].split()[0]) > 50


def test_fortran_functions_that_take_another_way_are_a_problem(tmp_path):
    link = fake_mpi(tmp_path, FAKE_MPI + "int inner_send(void) { return 0; }").split()
    layer = """
        int PMPI_Init(void *, void *); int inner_send(void);
        void mpi_init_(void) { PMPI_Init(0, 0); }
        void mpi_send_(void) { inner_send(); }"""
    compiled(tmp_path, "liblayer.so", layer, "-shared", "-fPIC", *link)
    program = compiled(tmp_path, "program", CALLS_FORTRAN, f"{tmp_path}/liblayer.so", *link)
    around = "1 of 2 functions do not call MPI by names that are intercepted, such as MPI_Send"
    assert around in only_problem(doctor(program))


FOLDED = FAKE_MPI + "void mpi_init_(void) { MPI_Init(0, 0); } void mpi_send_(void) { MPI_Send(); }"


@pytest.mark.parametrize("flags", [(), ("-Wl,-Bsymbolic",)], ids=["reaches", "does not"])
def test_fortran_inside_the_c_library_is_covered_if_it_calls_by_name(tmp_path, flags):
    link = fake_mpi(tmp_path, FOLDED, *flags).split()
    outcome = doctor(compiled(tmp_path, "program", CALLS_FORTRAN, *link))
    if flags:
        assert "are part of libfakempi.so.3 and do not call MPI" in only_problem(outcome)
    else:
        assert can_be_profiled(outcome), outcome


def test_an_unknown_abi_is_no_problem_but_noted(tmp_path):
    outcome = doctor(compiled(tmp_path, "program", CALLS_MPI, *fake_mpi(tmp_path).split()))
    assert can_be_profiled(outcome), outcome
    assert has(outcome, "note", "ABI: none of the known ones")


def test_mpich_s_own_static_library_is_recognised(tmp_path):
    archive = Path("/usr/lib/x86_64-linux-gnu/libmpich.a")
    if not archive.exists():
        pytest.skip(f"no {archive} here")
    # what MPICH itself needs does not matter here
    flags = [str(archive), "-Wl,--unresolved-symbols=ignore-all", "-no-pie"]
    program = compiled(tmp_path, "program", CALLS_MPI, *flags)
    assert "linked into it statically" in only_problem(doctor(program))


NAMES_MPI_INIT = 'const char *volatile name = "MPI_Init";'
STATIC = FAKE_MPI + CALLS_MPI


@pytest.mark.parametrize(
    "source, flag, problem",
    [
        (STATIC, "-g", "linked into it statically"),
        (STATIC, "-static", "linked statically, its MPI too"),
        (NAMES_MPI_INIT + STATIC, "-s", "seems to be linked into it statically"),
    ],
)
def test_mpi_linked_statically_is_a_problem(tmp_path, source, flag, problem):
    assert problem in only_problem(doctor(compiled(tmp_path, "program", source, flag)))


def opens_mpi(folder: Path) -> Path:
    source = '#include <dlfcn.h>\nint main(void) { return !dlopen("libmpi.so.40", RTLD_NOW); }'
    return compiled(folder, "program", source, "-ldl")


def test_a_program_that_opens_mpi_itself_can_be_profiled(tmp_path):
    outcome, without = (
        doctor(opens_mpi(tmp_path), **env) for env in ({}, {"COMMPROF_DLSYM": "off"})
    )
    assert can_be_profiled(outcome), outcome
    assert has(outcome, "note", "look-ups by dlsym are intercepted, too")
    assert has(without, "note", "are not seen; add --dlsym") and not has(outcome, "note", "--dlsym")


@pytest.mark.parametrize("module", ["ctypes", "cffi", "numba_mpi", "numpy"])
def test_a_script_that_looks_mpi_up_is_recognized(module, tmp_path):
    (tmp_path / "script.py").write_text(f"import {module}\n")
    outcome = doctor(PYTHON, COMMPROF_RUN, tmp_path / "script.py")
    if module == "numpy":
        assert "script:" not in outcome.stdout and "PyTorch" not in outcome.stdout
    else:
        assert has(outcome, "ok", f"script: it names {module}; ")


@pytest.mark.parametrize(
    "call, note",
    [
        ('"gloo"', "PyTorch: the script names gloo, which is not profiled"),
        ("", "PyTorch: NCCL and MPI are profiled; gloo, "),
    ],
)
@pytest.mark.parametrize("start", ["python", "torchrun"])
def test_gloo_is_noted(call, note, start, tmp_path):
    torchrun = executable(tmp_path / "torchrun", f"#!{PYTHON}\n")
    (tmp_path / "script.py").write_text(f"torch.distributed.init_process_group({call})\n")
    program = torchrun if start == "torchrun" else PYTHON
    outcome = doctor(program, COMMPROF_RUN, tmp_path / "script.py")
    assert has(outcome, "note", note), outcome


@pytest.mark.parametrize("bit, word", [(0o4755, "set-user-ID"), (0o2755, "set-group-ID")])
def test_a_program_with_rights_of_its_own_is_a_problem(mpi, tmp_path, bit, word):
    """One's own set-user-ID program is only noted."""
    if os.getuid() != 0:
        pytest.skip("only root can give a file to somebody else")
    program = shutil.copy(compile_program(mpi, "pcontrol"), tmp_path / "program")
    program.chmod(0o4755)
    outcome = doctor(program)
    assert can_be_profiled(outcome) and has(outcome, "note", "rights: "), outcome
    os.chown(program, 65534, 65534)
    program.chmod(bit)
    assert f"{word}: the loader ignores LD_PRELOAD" in only_problem(doctor(program))


def test_a_32_bit_program_is_a_problem(tmp_path):
    if not shutil.which("i686-linux-gnu-gcc"):
        pytest.skip("no i686-linux-gnu-gcc here")
    program = compiled(tmp_path, "program", HELLO, compiler="i686-linux-gnu-gcc")
    assert "is for 32-bit x86" in only_problem(doctor(program))


def test_a_program_for_another_machine_is_a_problem(tmp_path):
    program = compiled(tmp_path, "program", HELLO)
    image = bytearray(program.read_bytes())
    image[18:20] = (243).to_bytes(2, "little")
    program.write_bytes(image)
    assert "is for 64-bit RISC-V" in only_problem(doctor(program))


def test_a_program_for_musl_is_a_problem(tmp_path):
    loader = tmp_path / "ld-musl-x86_64.so.1"
    loader.write_text("")
    program = compiled(tmp_path, "program", HELLO, f"-Wl,--dynamic-linker={loader}")
    assert "C library: musl" in only_problem(doctor(program))


def test_a_c_library_that_is_too_old_is_a_problem(mpi, tmp_path):
    """As the loader says it: a profiler that asks for a version that this libc does not have."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "lib").mkdir()
    (tmp_path / "map").write_text("GLIBC_2.99 { global: *; };")
    future = ["-shared", "-fPIC", "-nostdlib", "-Wl,-soname,libc.so.6", "-Wl,--version-script=map"]
    compiled(tmp_path, "future.so", "int later(void) { return 0; }", *future)
    ours, library = "int later(void); int ours(void) { return later(); }", "lib/libcommprof.so"
    compiled(tmp_path, library, ours, "-shared", "-fPIC", "-nostdlib", "future.so")
    run = shutil.copy(COMMPROF_RUN, tmp_path / "bin/commprof-run")
    problem = only_problem(doctor(compile_program(mpi, "pcontrol"), run))
    assert problem.startswith("C library: too old for the profiler: ") and "GLIBC_2.99" in problem


def test_a_path_that_the_loader_splits_is_no_problem_with_a_link_alone(mpi, tmp_path):
    shutil.copytree(COMMPROF_RUN.parents[1] / "lib", tmp_path / "a b" / "lib")
    (tmp_path / "a b/bin").mkdir()
    run, program = tmp_path / "a b/bin/commprof-run", compile_program(mpi, "pcontrol")
    shutil.copy(COMMPROF_RUN, run)
    outcome = doctor(program, run, TMPDIR=str(tmp_path))
    assert can_be_profiled(outcome), outcome
    assert f"preload: through the link {tmp_path}/" in outcome.stdout
    if os.getuid() != 0:
        pytest.skip("only root can have other folders")
    around = ("unshare", "--mount", "sh", "-c", NO_PLACE, "sh")
    without = {"around": around, "TMPDIR": str(tmp_path / "a b")}
    cannot = f"{tmp_path}/a b/lib/libcommprof.so cannot be preloaded: the loader splits paths at "
    assert only_problem(doctor(program, run, **without)).startswith(f"preload: {cannot}")
    refused = subprocess.run(
        [*around, run, "/bin/true"],
        capture_output=True,
        text=True,
        env=unprofiled_environment() | {"TMPDIR": str(tmp_path / "a b")},
    )
    assert (refused.returncode, refused.stderr.count("\n")) == (126, 1)
    assert f"commprof-run: {cannot}" in refused.stderr


SANITIZERS = {
    "address": "-fsanitize=address",
    "static": "-fsanitize=address -static-libasan",
    "thread": "-fsanitize=thread",
    "undefined": "-fsanitize=undefined",
}


@pytest.mark.parametrize("kind", SANITIZERS)
def test_a_program_with_a_sanitizer_is_profiled_like_others(mpi, profile, plain, kind):
    flags = SANITIZERS[kind].split()
    program = str(compile_program(mpi, "pcontrol", *flags, suffix=f"-{kind}"))
    asan = {"ASAN_OPTIONS": "detect_leaks=0"}  # MPI libraries leak
    if plain(program, 2, env=asan).exit_status != 0:
        pytest.skip(f"{mpi.name} does not run with {flags[0]}, without the profiler either")
    assert can_be_profiled(doctor(program))
    assert profile(program, 2, env=asan).counts("MPI_Allreduce") == [8, 8]


def test_a_runtime_that_must_be_first_is_a_problem_until_it_is(tmp_path):
    """As the runtimes of old compilers."""
    old = 'const char *const said = "ASan runtime does not come first in initial library list";'
    compiled(tmp_path, "libasan.so.1", old, "-shared", "-fPIC", "-Wl,-soname,libasan.so.1")
    linked = ["-Wl,--no-as-needed", *fake_mpi(tmp_path).split(), f"{tmp_path}/libasan.so.1"]
    program = compiled(tmp_path, "program", CALLS_MPI, *linked)
    needed = f"start commprof-run with LD_PRELOAD={tmp_path}/libasan.so.1"
    assert needed in only_problem(doctor(program))
    assert can_be_profiled(doctor(program, LD_PRELOAD=f"{tmp_path}/libasan.so.1"))


def test_a_library_that_is_missing_is_a_problem(tmp_path):
    program = compiled(tmp_path, "program", CALLS_MPI, *fake_mpi(tmp_path).split())
    (tmp_path / "libfakempi.so.3").unlink()
    missing = "libraries: libfakempi.so.3 is not found: the program does not start here"
    assert missing in findings(doctor(program), "PROBLEM")


def test_a_script_is_followed_to_its_interpreter(tmp_path):
    outcome = doctor(executable(tmp_path / "script", f"#!/usr/bin/env -S {PYTHON} -u\nprint()\n"))
    assert f"script: {tmp_path}/script is run by {PYTHON}" in findings(outcome, "ok")
    assert f"program: {PYTHON}, " in outcome.stdout and can_be_profiled(outcome), outcome
    for text in ("#!/bin/sh\ntrue\n", "true\n"):
        outcome = doctor(executable(tmp_path / "script", text))
        assert can_be_profiled(outcome), outcome
        assert has(outcome, "note", "runs other programs, which inherit the profiler")
    missing = executable(tmp_path / "script", "#!/no/such/shell\n")
    assert "/no/such/shell: No such file" in only_problem(doctor(missing))


@pytest.mark.parametrize("options", ["", "-u", "-W ignore", "-uX dev"])
def test_a_python_script_that_is_missing_is_a_problem(tmp_path, options):
    words, script = [PYTHON, COMMPROF_RUN, *options.split()], tmp_path / "train.py"
    assert only_problem(doctor(*words, script)) == f"script: {script}: No such file or directory"
    script.write_text("")
    assert can_be_profiled(doctor(*words, script, "no-file"))


NO_SCRIPT = ("-m no_module", "-c print()", "-Xdev --check-hash-based-pycs always x.py", "-")


@pytest.mark.parametrize("words", NO_SCRIPT)
def test_what_need_be_no_script_of_python_is_not_looked_for(words):
    assert can_be_profiled(doctor(PYTHON, COMMPROF_RUN, *words.split()))


def test_python_is_asked_which_mpi_its_mpi4py_loads(tmp_path):
    (tmp_path / "mpi4py.py").write_text("raise ImportError('none here')")
    without = doctor(PYTHON, PYTHONPATH=str(tmp_path))
    assert can_be_profiled(without), without
    assert has(without, "note", "mpi4py cannot be imported (none here)")
    if subprocess.run([PYTHON, "-c", "import mpi4py"], capture_output=True).returncode != 0:
        pytest.skip(f"{PYTHON} has no mpi4py")
    outcome = doctor(PYTHON)
    assert can_be_profiled(outcome), outcome
    assert (
        has(outcome, "ok", "MPI: /")
        and has(outcome, "ok", "libmpi")
        and has(outcome, "ok", "ABI: ")
    )


@pytest.mark.parametrize("launcher", ["mpirun", "/usr/bin/mpiexec.hydra", "srun"])
def test_a_launcher_belongs_in_front(launcher):
    assert "put commprof-run after it" in only_problem(doctor(launcher))


def test_what_cannot_be_run_is_a_problem(tmp_path):
    (tmp_path / "text").write_text("text")
    executable(tmp_path / "zeros", "\0" * 100)
    for program, problem in (
        ("/no/such/program", "No such file or directory"),
        ("no-such-program", "No such file or directory"),
        (tmp_path / "text", "is not executable"),
        (tmp_path, "is not executable"),
        (tmp_path / "zeros", "is neither a program nor a script"),
    ):
        assert problem in only_problem(doctor(program))


@pytest.mark.one_mpi
def test_a_damaged_program_is_survived(mpi, tmp_path):
    image = compile_program(mpi, "pcontrol").read_bytes()
    program = executable(tmp_path / "program", "")
    lengths = (4, 20, 64, 100, 1000, 5000, len(image) // 2, len(image) - 100)
    damaged = [image[:length] for length in lengths]
    for bytes in [*damaged, *(image[:at] + b"\xff" + image[at + 1 :] for at in range(64))]:
        program.write_bytes(bytes)
        assert doctor(program).exit_status in (0, 1)


def test_preloads_that_are_there_already_are_noted(mpi):
    tool = compile_program(mpi, "other_tool", "-shared", "-fPIC")
    outcome = doctor(
        compile_program(mpi, "pcontrol"), LD_PRELOAD=f"{tool}:{LIBRARY}:libc.so.6:/no/such.so"
    )
    assert can_be_profiled(outcome), outcome
    notes = "\n".join(findings(outcome, "note"))
    assert f"{tool} in LD_PRELOAD intercepts MPI as well" in notes
    assert f"{LIBRARY} is already in LD_PRELOAD" in notes
    assert "libc.so.6 in LD_PRELOAD stays preloaded" in notes
    assert "/no/such.so in LD_PRELOAD: No such file" in notes


def test_the_test_s_own_python_can_be_examined():
    assert doctor(sys.executable).exit_status == 0
