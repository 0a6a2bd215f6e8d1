"""The reporter reads ledger_format.h as the compiler does."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from commprof_report.base.library_files import library_text
from commprof_report.run import ledger, ledger_gpu, ledger_samples
from commprof_report.run.ledger_format import FORMAT, LIMITS
from planted import ROOT

STRUCTS = FORMAT.layouts
NUMBERS = {name: value for name, value in FORMAT.numbers.items() if name not in LIMITS}
WITHOUT_OFFSET = ("measure_and_flags",)  # bit fields; the fields around them have one
NAMES = {
    "LEDGER_RUNNING": ledger.ENDED.index("running"),
    "LEDGER_FINALIZED": ledger.ENDED.index("finalize"),
    "LEDGER_EXITED": ledger.ENDED.index("exit"),
    "LEDGER_ABORTED": ledger.ENDED.index("abort"),
    "LEDGER_CALL": ledger.MEASURES.index("call"),
    "LEDGER_COMPLETION": ledger.MEASURES.index("completion"),
    "LEDGER_POLL": ledger.MEASURES.index("poll"),
    "LEDGER_DEVICE_TIME": ledger.MEASURES.index("device"),
    "LEDGER_CAPTURED": ledger.MEASURES.index("captured"),
    "LEDGER_HOST": ledger.MEMORY_KINDS.index("host"),
    "LEDGER_DEVICE": ledger.MEMORY_KINDS.index("device"),
    "LEDGER_MANAGED": ledger.MEMORY_KINDS.index("managed"),
    "LEDGER_PINNED": ledger.MEMORY_KINDS.index("pinned"),
    "LEDGER_MEMORY_KINDS": len(ledger.MEMORY_KINDS),
    "LEDGER_GPU_NONE": ledger_gpu.GPU_STATES.index("none"),
    "LEDGER_GPU_DORMANT": ledger_gpu.GPU_STATES.index("dormant"),
    "LEDGER_GPU_TRACING": ledger_gpu.GPU_STATES.index("tracing"),
    "LEDGER_GPU_PAUSED": ledger_gpu.GPU_STATES.index("paused"),
    "LEDGER_GPU_YIELDED": ledger_gpu.GPU_STATES.index("yielded"),
    "LEDGER_GPU_REFUSED": ledger_gpu.GPU_STATES.index("refused"),
    "LEDGER_GPU_STOPPED": ledger_gpu.GPU_STATES.index("stopped"),
    "LEDGER_TRACING_GOES_ON": ledger_gpu.TRACING_ENDED.index("goes on"),
    "LEDGER_TRACING_DUTY": ledger_gpu.TRACING_ENDED.index("duty"),
    "LEDGER_TRACING_YIELDED": ledger_gpu.TRACING_ENDED.index("yielded"),
    "LEDGER_TRACING_OFF": ledger_gpu.TRACING_ENDED.index("off"),
    "LEDGER_TRACING_STOPPED": ledger_gpu.TRACING_ENDED.index("stopped"),
    "LEDGER_TRACING_LOST": ledger_gpu.TRACING_ENDED.index("lost"),
    "LEDGER_COPY_NONE": ledger_samples.COPIES.index(""),
    "LEDGER_COPY_TO_DEVICE": ledger_samples.COPIES.index("to device"),
    "LEDGER_COPY_TO_HOST": ledger_samples.COPIES.index("to host"),
    "LEDGER_COPY_ON_DEVICE": ledger_samples.COPIES.index("on device"),
    "LEDGER_COPY_ON_HOST": ledger_samples.COPIES.index("on host"),
    "LEDGER_COPY_TO_PEER": ledger_samples.COPIES.index("to peer"),
    "LEDGER_COPY_OTHER": ledger_samples.COPIES.index("other"),
    "LEDGER_SENT": ledger.DIRECTIONS.index("sent"),
    "LEDGER_RECEIVED": ledger.DIRECTIONS.index("received"),
}


def c_program() -> str:
    lines = ['printf("magic %s", LEDGER_MAGIC);']
    lines += [f'printf("{name} %ld\\n", (long){name});' for name in NUMBERS]
    for struct, layout in STRUCTS.items():
        lines.append(f'printf("{struct} %zu\\n", sizeof(struct {struct}));')
        fields = [field for field in layout.offsets if field not in WITHOUT_OFFSET]
        lines += [f'printf("{struct}.{field} %zu\\n", offsetof(struct {struct}, {field}));' for field in fields]
    body = "\n".join(lines)
    header = ROOT / "src" / "ledger" / "ledger_format.h"
    return f'#include <stddef.h>\n#include <stdio.h>\n#include "{header}"\nint main(void)\n{{\n{body}\nreturn 0;\n}}\n'


@pytest.fixture(scope="module")
def in_c(tmp_path_factory) -> dict[str, str]:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("format")
    (folder / "format.c").write_text(c_program())
    subprocess.run([compiler, "-o", folder / "format", folder / "format.c"], check=True)
    output = subprocess.run([folder / "format"], check=True, capture_output=True, text=True).stdout
    return dict(line.split(" ", 1) for line in output.splitlines())


def test_every_number_is_the_compiler_s(in_c):
    assert {name: int(in_c[name]) % 2**64 for name in NUMBERS} == {name: value % 2**64 for name, value in NUMBERS.items()}
    assert in_c["magic"] + "\n" == ledger.MAGIC.decode()


def test_every_struct_of_the_header_is_read():
    declared = re.findall(r"^struct (\w+) \{", library_text("ledger/ledger_format.h"), re.M)
    assert declared == list(STRUCTS) and len(declared) > 15


def test_names_stand_in_the_order_of_their_numbers():
    assert {name: FORMAT.numbers[name] for name in NAMES} == NAMES
    assert FORMAT.numbers["LEDGER_MEMORY_KINDS"] == len(ledger.MEMORY_KINDS)


@pytest.mark.parametrize("struct", STRUCTS)
def test_every_field_is_at_the_compiler_s_offset(in_c, struct):
    layout = STRUCTS[struct]
    theirs = {name.split(".")[1]: int(at) for name, at in in_c.items() if name.startswith(f"{struct}.")}
    ours = {name: at for name, at in layout.offsets.items() if name not in WITHOUT_OFFSET}
    assert ours == theirs
    assert layout.bytes == int(in_c[struct])


def test_histogram_buckets_of_the_schema_are_those_of_the_tests():
    import sqlite3

    from planted import SCHEMA, bucket_of

    connection = sqlite3.connect(":memory:")
    connection.executescript(SCHEMA.read_text())
    bounds = connection.execute("SELECT bucket, low_ns, high_ns FROM bucket_bound ORDER BY bucket").fetchall()
    assert [bucket_of(low) for _, low, _ in bounds] == list(range(290))
    assert all(bucket_of(high - 1) == bucket for bucket, _, high in bounds[:-1])
