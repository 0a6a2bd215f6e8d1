"""ledger.py says the same as ledger_format.h, byte for byte."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from commprof_report.run import ledger, ledger_gpu, ledger_samples
from planted import ROOT

STRUCTS = {
    "ledger_header": ledger.HEADER,
    "ledger_chunk": ledger.CHUNK,
    "ledger_call": ledger.CALL,
    "ledger_fact": ledger.FACT,
    "ledger_communicator": ledger.COMMUNICATOR,
    "ledger_collective": ledger.COLLECTIVE,
    "ledger_cell": ledger.CELL,
    "ledger_peer": ledger.PEER,
    "ledger_thread": ledger.THREAD,
    "ledger_page": ledger.PAGE,
    "ledger_sample": ledger.SAMPLE,
    "ledger_region": ledger.REGION,
    "ledger_kernel": ledger.KERNEL,
    "ledger_activity": ledger.ACTIVITY,
    "ledger_activity_sample": ledger.ACTIVITY_SAMPLE,
    "ledger_stream": ledger.STREAM,
    "ledger_device": ledger.DEVICE,
    "ledger_tracing": ledger.TRACING,
    "ledger_algorithm": ledger.ALGORITHM,
}
BIT_FIELD = "measure_and_flags"  # has no offset in C; the fields around it have
CONSTANTS = {
    "LEDGER_VERSION": ledger.VERSION,
    "LEDGER_HEADER_BYTES": ledger.HEADER_BYTES,
    "LEDGER_CHUNK_BYTES": ledger.CHUNK_BYTES,
    "LEDGER_MOST_CHUNKS": ledger.MOST_CHUNKS,
    "LEDGER_CHUNK_HEADER_BYTES": ledger.CHUNK.bytes,
    "HISTOGRAM_BUCKETS": ledger.HISTOGRAM_BUCKETS,
    "LEDGER_CALLS": ledger.CALLS,
    "LEDGER_FACTS": ledger.FACTS,
    "LEDGER_COMMUNICATORS": ledger.COMMUNICATORS,
    "LEDGER_CELLS": ledger.CELLS,
    "LEDGER_PEERS": ledger.PEERS,
    "LEDGER_THREADS": ledger.THREADS,
    "LEDGER_SAMPLES": ledger.SAMPLES,
    "LEDGER_REGIONS": ledger.REGIONS,
    "LEDGER_KERNELS": ledger.KERNELS,
    "LEDGER_ACTIVITIES": ledger.ACTIVITIES,
    "LEDGER_STREAMS": ledger.STREAMS,
    "LEDGER_DEVICES": ledger.DEVICES,
    "LEDGER_TRACINGS": ledger.TRACINGS,
    "LEDGER_ALGORITHMS": ledger.ALGORITHMS,
    "LEDGER_NOBODY": ledger.NOBODY,
    "LEDGER_OF_COMMUNICATOR": ledger.OF_COMMUNICATOR,
    "LEDGER_OF_THREAD": ledger.OF_THREAD,
    "LEDGER_OF_STEPS": ledger.OF_STEPS,
    "LEDGER_OF_STREAM": ledger.OF_STREAM,
    "LEDGER_PAGE_SAMPLES": ledger.PAGE_SAMPLES,
    "LEDGER_BLOCK_SAMPLES": ledger.BLOCK_SAMPLES,
    "LEDGER_WINDOW_NS_LOG2": ledger.WINDOW_NS_LOG2,
    "LEDGER_SAMPLE_LEVEL_NONE": ledger.LEVEL_NONE,
    "LEDGER_CELL_FOLDED": ledger.CELL_FOLDED,
    "LEDGER_RECENT_COLLECTIVES": ledger.RECENT_COLLECTIVES,
    "LEDGER_NO_RANK": ledger.NO_RANK,
    "LEDGER_NO_TAG": ledger.NO_TAG,
    "LEDGER_PEER_OUTSIDE": ledger.PEER_OUTSIDE,
    "LEDGER_PEER_ANY": ledger.PEER_ANY,
    "LEDGER_DOING_SLOT_BIT": ledger.DOING_SLOT_BIT,
    "LEDGER_DOING_INSIDE_BIT": ledger.DOING_INSIDE_BIT,
    "LEDGER_DOING_AWAITED_BIT": ledger.DOING_AWAITED_BIT,
    "LEDGER_COMMUNICATOR_INTER": ledger.COMMUNICATOR_INTER,
    "LEDGER_COMMUNICATOR_FREED": ledger.COMMUNICATOR_FREED,
    "LEDGER_COMMUNICATOR_NCCL": ledger.COMMUNICATOR_NCCL,
    "LEDGER_RUNNING": ledger.ENDED.index("running"),
    "LEDGER_FINALIZED": ledger.ENDED.index("finalize"),
    "LEDGER_EXITED": ledger.ENDED.index("exit"),
    "LEDGER_ABORTED": ledger.ENDED.index("abort"),
    "LEDGER_CALL": ledger.MEASURES.index("call"),
    "LEDGER_COMPLETION": ledger.MEASURES.index("completion"),
    "LEDGER_POLL": ledger.MEASURES.index("poll"),
    "LEDGER_DEVICE_TIME": ledger.MEASURES.index("device"),
    "LEDGER_CAPTURED": ledger.MEASURES.index("captured"),
    "LEDGER_HOST": ledger.PLACES.index("host"),
    "LEDGER_DEVICE": ledger.PLACES.index("device"),
    "LEDGER_MANAGED": ledger.PLACES.index("managed"),
    "LEDGER_PINNED": ledger.PLACES.index("pinned"),
    "LEDGER_PLACES": len(ledger.PLACES),
    "LEDGER_PLACE_TO_BIT": ledger.PLACE_TO_BIT,
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
    "LEDGER_COMPUTING": ledger_gpu.COMPUTING,
    "LEDGER_COMMUNICATING": ledger_gpu.COMMUNICATING,
    "LEDGER_COPYING": ledger_gpu.COPYING,
    "LEDGER_IN_MPI": ledger_gpu.IN_MPI,
    "LEDGER_BUSY_STATES": ledger.STATES.size // 8,
    "LEDGER_COPY_NONE": ledger_samples.COPIES.index(""),
    "LEDGER_COPY_TO_DEVICE": ledger_samples.COPIES.index("to device"),
    "LEDGER_COPY_TO_HOST": ledger_samples.COPIES.index("to host"),
    "LEDGER_COPY_ON_DEVICE": ledger_samples.COPIES.index("on device"),
    "LEDGER_COPY_ON_HOST": ledger_samples.COPIES.index("on host"),
    "LEDGER_COPY_TO_PEER": ledger_samples.COPIES.index("to peer"),
    "LEDGER_COPY_OTHER": ledger_samples.COPIES.index("other"),
    "LEDGER_ACTIVITY_GRAPH": ledger_samples.ACTIVITY_GRAPH,
    "LEDGER_ACTIVITY_PAGEABLE": ledger_gpu.PAGEABLE,
    "LEDGER_ACTIVITY_MANAGED": ledger_gpu.MANAGED,
    "LEDGER_DEVICE_SPAN_SHARED": ledger_samples.DEVICE_SPAN_SHARED,
    "LEDGER_DEVICE_SPAN_UNIT_NS": ledger_samples.DEVICE_SPAN_UNIT_NS,
    "LEDGER_SENT": ledger.DIRECTIONS.index("sent"),
    "LEDGER_RECEIVED": ledger.DIRECTIONS.index("received"),
}


def c_program() -> str:
    lines = ['printf("magic %s", LEDGER_MAGIC);', 'printf("bytes_unknown %llu\\n", (unsigned long long)LEDGER_BYTES_UNKNOWN);']
    lines += [f'printf("{name} %ld\\n", (long){name});' for name in CONSTANTS]
    for struct, layout in STRUCTS.items():
        lines.append(f'printf("{struct} %zu\\n", sizeof(struct {struct}));')
        fields = [field for field in layout.offsets if field not in (BIT_FIELD, "reserved")]
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


def test_every_constant_is_the_same_in_c_and_python(in_c):
    assert {name: int(in_c[name]) for name in CONSTANTS} == CONSTANTS
    assert in_c["magic"] + "\n" == ledger.MAGIC.decode()
    assert int(in_c["bytes_unknown"]) == ledger.BYTES_UNKNOWN


@pytest.mark.parametrize("struct", STRUCTS)
def test_every_field_is_at_the_same_offset_in_c_and_python(in_c, struct):
    layout = STRUCTS[struct]
    theirs = {name.split(".")[1]: int(at) for name, at in in_c.items() if name.startswith(f"{struct}.")}
    ours = {name: at for name, at in layout.offsets.items() if name not in (BIT_FIELD, "reserved")}
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
