"""The reporter reads ledger_format.h as the compiler does."""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess

import pytest
from commprof_report.base.files import library_text
from commprof_report.run import ledger
from commprof_report.run.ledger_format import COLUMNS, FORMAT, LIMITS
from planted import ROOT, SCHEMA, bucket_of, offsets

STRUCTS = FORMAT.layouts
NUMBERS = {name: value for name, value in FORMAT.numbers.items() if name not in LIMITS}
# bit fields; the fields around them have one
WITHOUT_OFFSET = ("measure_and_flags", "call_and_flags")


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
