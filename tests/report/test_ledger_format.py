"""The reporter reads ledger_format.h as the compiler does."""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess

import pytest
from commprof_report.base.files import library_text
from commprof_report.run import ledger
from commprof_report.run.ledger_format import COLUMNS, FORMAT, LIMITS, NAMES, Format
from planted import ROOT, SCHEMA, bucket_of, offsets

STRUCTS = FORMAT.layouts
NUMBERS = {name: value for name, value in FORMAT.numbers.items() if name not in LIMITS}
# bit fields; the fields around them have one
WITHOUT_OFFSET = ("measure_and_flags", "call_and_flags")
NUMBERS_BY_NAME = {
    "LEDGER_RUNNING": NAMES["ended"].index("running"),
    "LEDGER_FINALIZED": NAMES["ended"].index("finalize"),
    "LEDGER_EXITED": NAMES["ended"].index("exit"),
    "LEDGER_ABORTED": NAMES["ended"].index("abort"),
    "LEDGER_CALL": NAMES["measure"].index("call"),
    "LEDGER_COMPLETION": NAMES["measure"].index("completion"),
    "LEDGER_POLL": NAMES["measure"].index("poll"),
    "LEDGER_DEVICE_TIME": NAMES["measure"].index("device"),
    "LEDGER_CAPTURED": NAMES["measure"].index("captured"),
    "LEDGER_HOST": NAMES["memory_kind"].index("host"),
    "LEDGER_DEVICE": NAMES["memory_kind"].index("device"),
    "LEDGER_MANAGED": NAMES["memory_kind"].index("managed"),
    "LEDGER_PINNED": NAMES["memory_kind"].index("pinned"),
    "LEDGER_MEMORY_KINDS": len(NAMES["memory_kind"]),
    "LEDGER_GPU_NONE": NAMES["gpu_state"].index("none"),
    "LEDGER_GPU_DORMANT": NAMES["gpu_state"].index("dormant"),
    "LEDGER_GPU_TRACING": NAMES["gpu_state"].index("tracing"),
    "LEDGER_GPU_PAUSED": NAMES["gpu_state"].index("paused"),
    "LEDGER_GPU_YIELDED": NAMES["gpu_state"].index("yielded"),
    "LEDGER_GPU_REFUSED": NAMES["gpu_state"].index("refused"),
    "LEDGER_GPU_STOPPED": NAMES["gpu_state"].index("stopped"),
    "LEDGER_TRACING_GOES_ON": NAMES["tracing_end"].index("goes on"),
    "LEDGER_TRACING_DUTY": NAMES["tracing_end"].index("duty"),
    "LEDGER_TRACING_YIELDED": NAMES["tracing_end"].index("yielded"),
    "LEDGER_TRACING_OFF": NAMES["tracing_end"].index("off"),
    "LEDGER_TRACING_STOPPED": NAMES["tracing_end"].index("stopped"),
    "LEDGER_TRACING_LOST": NAMES["tracing_end"].index("lost"),
    "LEDGER_COPY_NONE": NAMES["copy"].index(""),
    "LEDGER_COPY_TO_DEVICE": NAMES["copy"].index("to device"),
    "LEDGER_COPY_TO_HOST": NAMES["copy"].index("to host"),
    "LEDGER_COPY_ON_DEVICE": NAMES["copy"].index("on device"),
    "LEDGER_COPY_ON_HOST": NAMES["copy"].index("on host"),
    "LEDGER_COPY_TO_PEER": NAMES["copy"].index("to peer"),
    "LEDGER_COPY_OTHER": NAMES["copy"].index("other"),
    "LEDGER_SENT": NAMES["direction"].index("sent"),
    "LEDGER_RECEIVED": NAMES["direction"].index("received"),
    "LEDGER_ACTIVITY_KERNEL": NAMES["kind"].index("kernel"),
    "LEDGER_ACTIVITY_COPY": NAMES["kind"].index("copy"),
    "LEDGER_ACTIVITY_SET": NAMES["kind"].index("memset"),
}


def c_program() -> str:
    lines = ['printf("magic %s", LEDGER_MAGIC);']
    lines += [f'printf("{name} %ld\\n", (long){name});' for name in NUMBERS]
    for struct, layout in STRUCTS.items():
        lines.append(f'printf("{struct} %zu\\n", sizeof(struct {struct}));')
        fields = [field for field in offsets(layout) if field not in WITHOUT_OFFSET]
        lines += [
            f'printf("{struct}.{field} %zu\\n", offsetof(struct {struct}, {field}));'
            for field in fields
        ]
    body = "\n".join(lines)
    header = ROOT / "src" / "ledger" / "ledger_format.h"
    return (
        f'#include <stddef.h>\n#include <stdio.h>\n#include "{header}"\nint '
        f"main(void)\n{{\n{body}\nreturn 0;\n}}\n"
    )


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
    assert {name: int(in_c[name]) % 2**64 for name in NUMBERS} == {
        name: value % 2**64 for name, value in NUMBERS.items()
    }
    assert in_c["magic"] + "\n" == ledger.MAGIC.decode()


def test_every_struct_of_the_header_is_read():
    declared = re.findall(r"^struct (\w+) \{", library_text("ledger/ledger_format.h"), re.M)
    assert declared == list(STRUCTS) and len(declared) > 15


def test_names_stand_in_the_order_of_their_numbers():
    assert {name: FORMAT.numbers[name] for name in NUMBERS_BY_NAME} == NUMBERS_BY_NAME


def test_every_table_has_the_columns_of_the_schema_in_order():
    connection = sqlite3.connect(":memory:")
    connection.executescript(SCHEMA.read_text())
    assert len(COLUMNS) == 27
    for table, columns in COLUMNS.items():
        in_schema = [
            name for (name,) in connection.execute(f"SELECT name FROM pragma_table_info('{table}')")
        ]
        assert [column.name for column in columns] == in_schema, table


@pytest.mark.parametrize("struct", STRUCTS)
def test_every_field_is_at_the_compiler_s_offset(in_c, struct):
    layout = STRUCTS[struct]
    theirs = {
        name.split(".")[1]: int(at) for name, at in in_c.items() if name.startswith(f"{struct}.")
    }
    ours = {name: at for name, at in offsets(layout).items() if name not in WITHOUT_OFFSET}
    assert ours == theirs
    assert layout.itemsize == int(in_c[struct])


def test_histogram_buckets_of_the_schema_are_those_of_the_tests():
    connection = sqlite3.connect(":memory:")
    connection.executescript(SCHEMA.read_text())
    bounds = connection.execute(
        "SELECT bucket, low_ns, high_ns FROM bucket_bound ORDER BY bucket"
    ).fetchall()
    assert [bucket_of(low) for _, low, _ in bounds] == list(range(346))
    assert all(bucket_of(high - 1) == bucket for bucket, _, high in bounds[:-1])


def test_a_member_may_be_folded_over_lines():
    folded = "struct outer {\n    uint32_t\n        first;\n    uint64_t second;\n};\n"
    assert offsets(Format(folded).layouts["outer"]) == {"first": 0, "second": 4}
