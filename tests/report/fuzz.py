"""Reads files that were damaged or made up by somebody who means harm: an answer or one line for
each problem, nothing else.

    tests/report/fuzz.py --cases 100000      (make fuzz)
    tests/report/fuzz.py --case 4711         repeats one, and shows what came of it

A case is a number: it decides which files there are, what is wrong with them, and which command
reads them. Cases run in forked processes, 250 in each, with limits on memory and processor time; a
process that dies has failed at its case, and another one does the rest.
"""

from __future__ import annotations

import argparse
import functools
import html.parser
import json
import os
import random
import re
import resource
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Callable, NamedTuple

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(ROOT / "report"), str(HERE)]

import planted  # noqa: E402
from commprof_report import main as program  # noqa: E402
from commprof_report.base import units  # noqa: E402
from commprof_report.commands.html import SECTIONS  # noqa: E402
from commprof_report.display import pictures, render  # noqa: E402
from commprof_report.gpu import gpu_activity  # noqa: E402
from commprof_report.main import main  # noqa: E402
from commprof_report.run import ledger  # noqa: E402
from commprof_report.run.ledger_format import Layout, layout  # noqa: E402

parser_of = functools.lru_cache(program.parser_build)  # a third of the time of a case
program.parser_build = lambda names=program.QUESTIONS: parser_of(tuple(names))
BATCH = 250
EVIL_RANKS = 32
MEMORY_BYTES = 768 << 20  # of address space, above what a child has from the start
MOST_CPU_S = 10  # for one case; the slowest sound one, a page with pictures, takes one
SILENCE_S = 180  # the longest case, on a machine that does other things too
MOST_LINES = 12  # on stderr; more means that somebody repeats himself
MOST_SHOWN = 20

EVIL = (
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "' onmouseover='alert(1)",
    "</title></style><svg/onload=alert(1)>",
    "\x1b]0;owned\x07\x1b[2J\x1b[31m",
    "a\nhvprof-report: b\r\nc\t\0d",
    "\u202etxt.exe\u2066\u200b\u2028",
    "\ud800",
    "&amp;&lt;&#60;%s%n{0}$title${body}",
    "../../../../etc/passwd",
    "x" * 5000,
    "",
    "-1,0-999999999,5-3,1-9:0,...",
    "MPI_" + "\xe9" * 70,
    "{",
)
# where a run may lie
FOLDERS = ("", "", "a b", os.fsdecode(b"na\xefve"), "50%41?mode=rw#&{", "\x1b[31m\n\u202e")
NUMBERS = (
    *(0, 1, 2, 3, 15, -1, -2, -(1 << 31), -(1 << 63), 1 << 62),
    *((1 << bits) + off for bits in (8, 16, 24, 31, 32, 53, 63, 64) for off in (-1, 0)),
    *(16, 4096, (1 << 53) + 1),
)
CONTROLS = re.compile("[\0-\x09\x0b-\x1f\x7f-\x9f\u200b\u2028\u2029\u202a-\u202e\u2066-\u2069]")

COMMANDS = [
    tuple(words.split())
    for words in """summary; summary --json; seen; seen --json; calls; sizes; latency; ranks; late;
    sizes --bins hvprof --per-rank --csv; sizes --per-rank --json; communicators; steps; traffic;
    sizes --call Allreduce --bytes 1K:; hvprof --per-rank --json; latency --bytes : --json; regions;
    communicators --json; ranks --per-rank --csv; late --by call --csv; steps --json; gpu; peers;
    steps --per-step --csv; steps --by calls --per-call; steps --region epoch; traffic --json;
    regions --csv; gpu --by run --json; gpu --by kernel --csv; gpu --by step; advise; stuck;
    peers --received --json; pipeline; pipeline --csv; advise --csv; stuck --json; top --count 1;
    export --json; export --csv --table fact; merge OUT/merged.db;
    export --json --output OUT/tables;
    export --csv --output OUT/tables; export --format prometheus; export --format perfetto;
    export --format prometheus --output OUT/metrics.prom; export --csv --table named_cell;
    export --format perfetto --from 1 --to 6 --output OUT/trace.json;
    export --csv --table collectives; html --output OUT/page.html""".split(";")
]
IN_PICTURES = [("html", "--output", "OUT/page.html")] + [
    (*words.split(), "--plot", f"OUT/picture.{ending}")
    for words, ending in (
        *((name, "svg") for name in ("calls", "hvprof", "ranks", "late", "latency")),
        *(("sizes", "png"), ("peers", "png"), ("gpu", "png"), ("latency --bytes :", "svg")),
    )
]
ONE_IN_PICTURES = 200  # drawing takes a hundred times as long as the rest


# The one program that the reporter may run, on names of kernels.
DEMANGLER = ["/bin/sh", "-c", gpu_activity.DEMANGLER]


class Failure(Exception):
    """Something forbidden has happened."""


# Faults of a file.


def random_bytes(data: bytearray, chance: random.Random) -> None:
    """A few bytes, bits or stretches."""
    for _ in range(chance.choice((1, 1, 3, 30))):
        at = chance.randrange(len(data))
        kind = chance.randrange(4)
        if kind == 0:
            data[at] = chance.randrange(256)
        elif kind == 1:
            data[at] ^= 1 << chance.randrange(8)
        elif kind == 2:
            stretch = min(chance.choice((2, 4, 8, 64, 4096)), len(data) - at)
            byte = chance.choice((b"\xff", b"\0", b"\x7f", b"A", b"\x80"))
            data[at : at + stretch] = byte * stretch
        else:
            number(data, at, chance.choice((1, 2, 4, 8)), chance)


def number(data: bytearray, at: int, width: int, chance: random.Random) -> None:
    value = chance.choice(NUMBERS) + chance.choice((0, 0, 0, -1, 1))
    order = chance.choice(("little", "big"))
    data[at : at + width] = (value % (1 << 8 * width)).to_bytes(width, order)


def cut_short(data: bytearray, chance: random.Random) -> None:
    del data[chance.randrange(len(data)) :]


def spliced(data: bytearray, chance: random.Random) -> None:
    """A stretch of the file in another place of it."""
    bytes_ = chance.choice((8, 128, 256, 2880, 4096, 65536))
    source, target = (chance.randrange(len(data)) for _ in range(2))
    if chance.random() < 0.5:
        source, target = source // bytes_ * bytes_, target // bytes_ * bytes_
    data[target : target + bytes_] = data[source : source + bytes_]


def grown(data: bytearray, chance: random.Random) -> None:
    data.extend(chance.choice((b"\0", b"\xff", bytes(data[:4096]))) * chance.choice((1, 1000)))


def ledger_header_field(data: bytearray, chance: random.Random) -> None:
    field = chance.choice(list(planted.offsets(ledger.HEADER)))
    field_change(data, ledger.HEADER, 0, field, chance)


def ledger_chunk_field(data: bytearray, chance: random.Random) -> None:
    at = any_chunk(data, chance)
    if at is not None:
        field = chance.choice(("kind", "entry_bytes", "used", "thread"))
        field_change(data, ledger.CHUNK, at, field, chance)


def ledger_entry_field(data: bytearray, chance: random.Random) -> None:
    """Fields of some entries of a chunk; of a chunk of facts, one of the lengths."""
    at = any_chunk(data, chance)
    if at is None:
        return
    chunk = ledger.CHUNK.unpack(data, at)
    is_kernel = chunk.kind == ledger.KERNELS
    entry = layout("kernel") if is_kernel else ledger.ENTRIES.get(chunk.kind, layout("fact"))
    entries = at + ledger.CHUNK.itemsize
    for _ in range(chance.choice((1, 1, 2, 8))):
        most = max(1, min(chunk.used, ledger.CHUNK_BYTES // entry.itemsize))
        start = entries + chance.randrange(most) * entry.itemsize
        if start + entry.itemsize <= len(data):
            field = chance.choice(list(planted.offsets(entry)))
            field_change(data, entry, start, field, chance)


def any_chunk(data: bytearray, chance: random.Random) -> int | None:
    chunks = (len(data) - ledger.HEADER_BYTES) // ledger.CHUNK_BYTES
    if chunks <= 0:
        return None
    return ledger.HEADER_BYTES + chance.randrange(chunks) * ledger.CHUNK_BYTES


def field_change(
    data: bytearray, layout: Layout, at: int, field: str, chance: random.Random
) -> None:
    offsets = planted.offsets(layout)
    start = at + offsets[field]
    ends = (*offsets.values(), layout.itemsize)
    width = min(end for end in ends if end > offsets[field]) - offsets[field]
    if width <= 8:
        number(data, start, width, chance)
    elif field == "blocks":
        number(data, start + 4 * chance.randrange(width // 4), 4, chance)
    elif field in ("buckets", "recent", "samples", "state_ns"):
        number(data, start + 8 * chance.randrange(width // 8), 8, chance)
    else:
        text = chance.choice(EVIL).encode("utf-8", "surrogatepass")[:width]
        data[start : start + width] = text.ljust(width, chance.choice((b"\0", b"\xff")))


def ledger_many_communicators(data: bytearray, chance: random.Random) -> None:
    """Chunks full of communicators with long lists of members."""
    lists = ("0-16777215", ",".join(map(str, range(90))), "0-999999999:1", "...", EVIL[6])
    members, same = chance.choice(lists), chance.random() < 0.3
    entries = []
    for index in range(chance.choice((1, 80))):
        identity, name = 7 if same else 1000 + index, chance.choice(("", "x", EVIL[0]))
        known = planted.Communicator(2 + index, identity, members, 4, 0, name=name)
        entries.append(planted.ledger_communicator(known))
    for chunk in planted.ledger_chunks(3, planted.COMMUNICATOR_BYTES, entries):
        data.extend(chunk)
    chunk_count(data)


def ledger_many_chunks(data: bytearray, chance: random.Random) -> None:
    """Many times the same chunk: of a kind that there is, or of none."""
    at = any_chunk(data, chance)
    if at is not None:
        is_known = chance.random() < 0.8
        chunk = bytes(data[at : at + ledger.CHUNK_BYTES]) if is_known else b""
        data.extend(chunk.ljust(ledger.CHUNK_BYTES, b"\0") * chance.choice((1, 3, 20)))
        chunk_count(data)


def chunk_count(data: bytearray) -> None:
    count = (len(data) - ledger.HEADER_BYTES) // ledger.CHUNK_BYTES
    start = planted.offsets(ledger.HEADER)["chunk_count"]
    data[start : start + 4] = count.to_bytes(4, "little")


LEDGER_DAMAGE = (
    *(random_bytes, random_bytes, cut_short, spliced, grown),
    *(ledger_header_field, ledger_header_field, ledger_chunk_field),
    *(ledger_entry_field, ledger_entry_field, ledger_entry_field),
    *(ledger_many_communicators, ledger_many_chunks),
)


def database_header(data: bytearray, chance: random.Random) -> None:
    """Page size, versions, sizes, encoding."""
    number(data, chance.randrange(16, 100), chance.choice((1, 2, 4)), chance)


def database_page(data: bytearray, chance: random.Random) -> None:
    """The header of a page of the tree, its cells' places, or the first bytes of
    one of its cells."""
    page_bytes = int.from_bytes(data[16:18], "big") or 4096
    page_bytes = 65536 if page_bytes == 1 else page_bytes
    page = chance.randrange(max(1, len(data) // page_bytes))
    at = page * page_bytes + (100 if page == 0 else 0) + chance.randrange(40)
    if at + 8 < len(data):
        number(data, at, chance.choice((1, 2, 4)), chance)


DATABASE_DAMAGE = (
    *(random_bytes, random_bytes, cut_short, spliced, grown),
    *(database_header, database_page, database_page),
)

VALUES = (
    *(value for value in NUMBERS if -(1 << 63) <= value < 1 << 63),
    *(None, 0.5, -1.5, 1e308, float("inf"), "", "text", "12", "9223372036854775808", "0-3"),
    *(b"\x00\xff", b"MPI_Send", b""),
    *(text for text in EVIL if text != "\ud800"),
)
TABLES = {
    table: [row[1] for row in schema.execute(f"PRAGMA table_info({table})")]
    for schema in [sqlite3.connect(":memory:")]
    for _ in [schema.executescript(planted.SCHEMA.read_text())]
    for (table,) in schema.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
}
TRICKS = (
    "CREATE VIEW more AS SELECT * FROM cell",
    "ALTER TABLE cell RENAME TO other; CREATE VIEW cell AS SELECT * FROM other",
    "CREATE TRIGGER t AFTER INSERT ON cell BEGIN DELETE FROM rank; END",
    "CREATE VIRTUAL TABLE v USING fts5(x)",
    "CREATE VIRTUAL TABLE v USING rtree(a, b, c)",
    "ALTER TABLE fact RENAME TO other; CREATE VIEW fact(world_rank, key, value) AS WITH RECURSIVE "
    "n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i, i, i FROM n",
    "DROP TABLE fact; CREATE TABLE fact (world_rank INTEGER, key TEXT,"
    " value TEXT GENERATED ALWAYS AS (hex(zeroblob(length(key) * 10000000))) VIRTUAL);"
    "INSERT INTO fact VALUES (1, 'host'), (1, 'program'), (1, 'mpi_version')",
    "DROP TABLE call; CREATE TABLE call (name TEXT, library TEXT, family TEXT GENERATED ALWAYS AS "
    "(upper(name)))",
    "ALTER TABLE call RENAME TO other; CREATE TABLE call (name TEXT COLLATE nocase, family)",
    "ALTER TABLE thread RENAME COLUMN name TO nam",
    "DROP TABLE bucket",
    "DROP TABLE bucket_bound",
    "CREATE INDEX i ON cell (abs(total_ns))",
    "CREATE INDEX i ON call (library, family); CREATE INDEX j ON sample (start_ns); CREATE TABLE "
    "notes (x); CREATE VIEW v AS SELECT 1",
    "ANALYZE; UPDATE sqlite_stat1 SET stat = '1 1 1 1'",
    "CREATE TABLE lies AS SELECT 1 AS library, 2 AS family, name FROM call; CREATE INDEX i ON "
    "lies (library, family, name);CREATE INDEX j ON call (library, family); PRAGMA "
    "writable_schema = ON;UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master "
    "WHERE name = 'i') WHERE name = 'j'",
    "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = CAST(sql AS BLOB) WHERE name = "
    "'cell'",
    "PRAGMA writable_schema = ON; UPDATE sqlite_master SET name = CAST(name AS BLOB)",
    "CREATE TABLE notes (x); PRAGMA writable_schema = ON; UPDATE sqlite_master SET name = x'ff', "
    "sql = x'ff' WHERE name = 'notes'",
    "CREATE VIEW notes AS SELECT 1; PRAGMA writable_schema = ON;"
    "UPDATE sqlite_master SET sql = 'CREATE VIEW fact AS SELECT 1' WHERE name = 'notes'",
    "UPDATE OR REPLACE cell SET measure = 'device'",
    "UPDATE OR REPLACE cell SET measure = 'captured'; UPDATE call SET library = 'nccl' WHERE name "
    "LIKE 'MPI_A%'",
    "UPDATE cell SET call = '{' || call; UPDATE sample SET call = '{' || call; UPDATE call SET "
    "name = '{' || name",
    "DELETE FROM rank",
    "CREATE TEMP TABLE other AS SELECT * FROM rank LIMIT 1; UPDATE other SET world_rank = "
    "world_rank + 1, world_size = 1 << 24; INSERT INTO rank SELECT * FROM other",
    "UPDATE rank SET world_size = 1 << 24",
    "UPDATE OR IGNORE rank SET run_id = run_id || '-other'",
    "PRAGMA application_id = 7",
    "PRAGMA user_version = 1",
    "PRAGMA user_version = 99",
    "PRAGMA journal_mode = WAL",
    "PRAGMA page_size = 65536; VACUUM",
    "PRAGMA page_size = 512; VACUUM",
    "PRAGMA auto_vacuum = 2; VACUUM",
    "UPDATE cell SET count = 1 << 53, total_ns = 1 << 53, max_ns = 1 << 53, volume_bytes = 1 << "
    "53, bytes = 1 << 53 WHERE cell = 1; UPDATE bucket SET count = 1 << 53",
    "UPDATE communicator SET identity = '0'",
    "UPDATE communicator SET members = '0-16777215', size = 1 << 24",
    "DELETE FROM communicator",
    "DELETE FROM call",
    "DELETE FROM bucket",
    "DELETE FROM cell",
    "WITH RECURSIVE n(i) AS (SELECT 6 UNION ALL SELECT i + 1 FROM n WHERE i < 300) INSERT INTO "
    "communicator SELECT world_rank, i, hex(i), identity, '', 'MPI_Comm_dup', i, 4, 0, 0, "
    "members, 0, 0, 3, library FROM communicator, n WHERE communicator = 2",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) INSERT OR "
    "IGNORE INTO peer"
    " SELECT world_rank, call, direction, i % 3 * 2, i * 33000, i, i, i FROM peer, n",
    "UPDATE sample_window SET begin_ns = 0, end_ns = 1 << 62",
    "UPDATE sample SET end_ns = 1 << 62, completed_ns = 1 << 62, bytes = 1 << 62, sequence = "
    "sequence << 50",
    "UPDATE sample SET start_ns = 0, end_ns = 0, communicator = 77",
    "UPDATE step SET step = step << 57",
    "UPDATE region SET name = '<b>' || name",
    "UPDATE gpu_busy SET ns = 1 << 62; UPDATE gpu_tracing SET end_ns = 1 << 62",
    "UPDATE gpu_activity SET count = 1 << 62, volume_bytes = 1 << 62, total_ns = 1 << 62, max_ns = "
    "1 << 62",
    "UPDATE gpu_sample SET start_ns = 0, end_ns = 1 << 62, communicator = 77, kernel = 77; UPDATE "
    "gpu_sample_window SET end_ns = 1 << 62",
    "UPDATE sample SET device_start_ns = 0, device_end_ns = 1 << 62, is_shared = 1",
    "UPDATE gpu_kernel SET name = '<b>' || name || char(27); UPDATE gpu_device SET name = '<b>', "
    "uuid = ''",
    "DELETE FROM gpu_device; DELETE FROM gpu_stream; DELETE FROM gpu_kernel; DELETE FROM "
    "gpu_tracing",
    "UPDATE call SET library = 'nccl'",
    "UPDATE communicator SET library = 'nccl', members = ''",
)


def database_values(path: Path, chance: random.Random) -> None:
    """Values that a column of ours never holds. The schema that stands in the file still says that
    it cannot."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript("PRAGMA synchronous = OFF; PRAGMA ignore_check_constraints = ON")
    version = connection.execute("PRAGMA schema_version").fetchone()[0]
    connection.executescript(
        "PRAGMA writable_schema = ON; CREATE TEMP TABLE kept AS SELECT name, sql FROM "
        "sqlite_master;"
        "UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '') WHERE type = 'table';"
        f"PRAGMA schema_version = {version + 1}; PRAGMA writable_schema = RESET;"
    )
    for _ in range(chance.choice((1, 1, 2, 5))):
        table = chance.choice(list(TABLES))
        column, other = chance.choice(TABLES[table]), chance.choice(TABLES[table])
        where = ""
        if chance.random() >= 0.3:
            place = f"LIMIT 1 OFFSET {chance.randrange(6)}"
            where = f" WHERE {other} = (SELECT {other} FROM {table} {place})"
        value = chance.choice(VALUES)
        is_raw_text = isinstance(value, bytes) and chance.random() < 0.5
        place = "CAST(? AS TEXT)" if is_raw_text else "?"
        try:
            connection.execute(f"UPDATE OR IGNORE {table} SET {column} = {place}{where}", (value,))
        except sqlite3.Error:
            pass  # not every value can stand in every column
    connection.executescript(
        "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = (SELECT sql FROM kept WHERE "
        "kept.name = sqlite_master.name);"
    )
    connection.close()


def database_trick(path: Path, trick: str) -> bytes:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.executescript(
            "PRAGMA synchronous = OFF; PRAGMA ignore_check_constraints = ON;" + trick
        )
    except sqlite3.OperationalError as error:
        if "no such module" not in str(error):  # not every SQLite has virtual tables
            raise
    connection.close()
    return path.read_bytes()


def evil_rank(world_rank: int, chance: random.Random) -> planted.Rank:
    """A rank whose texts and numbers are what somebody might choose to do harm."""
    rank = planted.gpu_rank(world_rank)
    texts = [text for text in EVIL if text != "\ud800"]
    evil = chance.choice(texts)
    if chance.random() < 0.5:
        rank.run_id = evil
    for key in list(rank.facts):
        if chance.random() < 0.5:
            rank.facts[key] = chance.choice(texts)
    rank.facts[chance.choice(texts)] = evil
    rank.threads = [
        (number, evil.replace("\0", "")[:15], is_main) for number, _, is_main in rank.threads
    ]
    for known in rank.communicators:
        known.name = chance.choice(texts)[:60]
        known.members = chance.choice((known.members, evil[:300]))
    for device in rank.devices:
        device.name, device.uuid = chance.choice(texts)[:30], chance.choice(texts)[:20]
    rank.kernels = {
        kernel: (chance.choice(texts), is_communication)
        for kernel, (_, is_communication) in rank.kernels.items()
    }
    rank.gpu_state = chance.choice(planted.GPU_STATES)
    rank.ended = chance.choice(list(planted.ENDED))
    rank.start_unix_ns = chance.choice((rank.start_unix_ns, 0, -1, (1 << 63) - 1, -(1 << 63)))
    if rank.ended != "running" and abs(rank.start_unix_ns) > 1 << 62:
        rank.wall_ns = 0
    rank.copied_unix_ns = chance.choice((0, 0, 1, (1 << 63) - 1))
    call, communicator = chance.choice(list(planted.CALL_NUMBERS)), chance.choice((0, 1, 2, 9))
    rank.doing = {0: planted.Doing(call, 2, communicator=communicator, peer=1)}
    return rank


# A case.


class Case(NamedTuple):
    folder: Path  # run/ is read, out/ is written
    run: Path  # a file in run/, or all of it
    words: list[str]
    in_pictures: bool


class Sound(NamedTuple):
    """Material of cases: files without fault, by rank, and some that are slow to make."""

    databases: list[bytes]
    ledgers: list[bytes]
    merged: bytes
    tricks: list[bytes]
    evil_databases: list[bytes]
    evil_ledgers: list[bytes]
    can_draw: bool


def sound_files(folder: Path) -> Sound:
    ranks = planted.gpu_run()
    planted.write_databases(folder, ranks)
    with captured():
        assert main(["merge", str(folder), str(folder / "merged.db")]) == 0
    databases = [(folder / f"rank-{rank.world_rank}.db").read_bytes() for rank in ranks]
    for rank in ranks[:2]:
        rank.ended = "running"
        rank.doing[1] = planted.Doing(
            "MPI_Wait", 8 * planted.SECOND, 1, planted.DATA, 65_536, request_call="MPI_Iallreduce"
        )
        rank.communicators[2].begun = [planted.Collective("MPI_Iallreduce", 65_536)] * 3
    ledgers = [planted.ledger_bytes(rank) for rank in ranks]
    tricks = [database_trick(copied(folder / "trick.db", databases[1]), trick) for trick in TRICKS]
    evil = [evil_rank(1, random.Random(number)) for number in range(EVIL_RANKS)]
    evil_databases = [
        planted.write_database(folder / f"evil-{place}.db", rank).read_bytes()
        for place, rank in enumerate(evil)
    ]
    evil_ledgers = [planted.ledger_bytes(rank) for rank in evil]
    merged, can_draw = (folder / "merged.db").read_bytes(), drawing_prepare(folder)
    return Sound(databases, ledgers, merged, tricks, evil_databases, evil_ledgers, can_draw)


def drawing_prepare(folder: Path) -> bool:
    """Whether pictures can be drawn. matplotlib is loaded and its fonts are found once for all
    cases."""
    os.environ.update(MPLCONFIGDIR=str(folder / "matplotlib"), OPENBLAS_NUM_THREADS="1")
    can_draw = pictures.is_possible()
    with captured():
        assert main(["html", str(folder / "rank-0.db"), "--output", str(folder / "page.html")]) == 0
    return can_draw


def copied(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def case_make(number: int, sound: Sound, folder: Path) -> Case:
    chance = random.Random(number)
    runs = folder / "run" / chance.choice(FOLDERS)
    runs.mkdir(parents=True)
    kind = chance.randrange(10)
    if kind == 0:
        run = runs / chance.choice(("merged.db", "rank-0.db", *filter(None, FOLDERS)))
        database_write(run, sound.merged, chance)
    elif kind < 6:
        run = file_write(runs, 1, sound, chance, is_damaged=True)
        run = run.rename(runs / (chance.choice(FOLDERS) or run.name))
    else:
        ranks = chance.sample(range(4), chance.choice((2, 3, 4)))
        for place, rank in enumerate(ranks):
            file_write(runs, rank, sound, chance, is_damaged=place == 0 or chance.random() < 0.3)
        run = runs
    in_pictures = chance.randrange(ONE_IN_PICTURES) == 0 and sound.can_draw
    words = chance.choice(IN_PICTURES if in_pictures else COMMANDS)
    (folder / "out").mkdir()
    words = [word.replace("OUT", str(folder / "out")) for word in words]
    return Case(folder, run, words, in_pictures)


def file_write(
    folder: Path, rank: int, sound: Sound, chance: random.Random, is_damaged: bool
) -> Path:
    ending = chance.choice(("db", "ledger"))
    path = folder / f"rank-{rank}.{ending}"
    if not is_damaged:
        path.write_bytes((sound.databases if ending == "db" else sound.ledgers)[rank])
    elif rank == 1 and chance.random() < 0.2:
        evil = sound.evil_databases if ending == "db" else sound.evil_ledgers
        path.write_bytes(chance.choice(evil))
    elif ending == "db" and rank == 1 and chance.random() < 0.3:
        path.write_bytes(chance.choice(sound.tricks))
    elif ending == "db":
        database_write(path, sound.databases[rank], chance)
    else:
        path.write_bytes(damaged(sound.ledgers[rank], LEDGER_DAMAGE, chance))
    return path


def database_write(path: Path, data: bytes, chance: random.Random) -> None:
    is_by_value = chance.random() < 0.6
    path.write_bytes(data if is_by_value else damaged(data, DATABASE_DAMAGE, chance))
    if is_by_value:
        database_values(path, chance)


def damaged(data: bytes, ways: tuple[Callable, ...], chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        if changed:
            chance.choice(ways)(changed, chance)
    return bytes(changed)


class captured:
    """stdout and stderr as a terminal would get them."""

    def __enter__(self) -> captured:
        self.before = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = self.files = [
            open(os.memfd_create("captured"), "w", encoding="utf-8", newline="") for _ in range(2)
        ]
        # main() may give stdout another file
        self.copies = [os.dup(file.fileno()) for file in self.files]
        return self

    def __exit__(self, *_: object) -> None:
        sys.stdout, sys.stderr = self.before
        texts = []
        for file, copy in zip(self.files, self.copies):
            file.close()
            with open(copy, "rb") as whole:
                whole.seek(0)
                texts.append(whole.read().decode("utf-8"))
        self.out, self.err = texts


def case_run(case: Case) -> tuple[int, str, str]:
    before = files_below(case.folder / "run")
    pictures.is_possible = lambda: case.in_pictures
    start_s = time.process_time()
    allowed.folder = str(case.folder / "out")
    with captured() as said:
        try:
            status = main([case.words[0], str(case.run), *case.words[1:]])
        finally:
            allowed.folder = None
    cpu_s = time.process_time() - start_s
    check(cpu_s < MOST_CPU_S, f"took {cpu_s:.1f} s of processor time")
    check(files_below(case.folder / "run") == before, "changed its input")
    check_said(case, status, said.out, said.err)
    check_written(case.folder / "out")
    return status, said.out, said.err


def files_below(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def check(holds: bool, what: str) -> None:
    if not holds:
        raise Failure(what)


def check_said(case: Case, status: int, out: str, err: str) -> None:
    lines = err.splitlines()
    run = units.visible(str(case.run))
    check(status in (0, 1, 2), f"status {status}")
    check(status == 0 or lines, f"status {status} without a word")
    check(len(lines) <= MOST_LINES, f"{len(lines)} lines on stderr")
    check(len(set(lines)) == len(lines), "a line on stderr twice")
    for line in lines:
        is_ours = line.startswith((f"hvprof-report: {run}", "hvprof-report: --call"))
        is_ours |= bool(re.search(r"/picture\.\w+: not drawn: \w", line))
        is_ours &= not re.search(": $|out of memory|MemoryError", line)
        check(is_ours, f"on stderr: {line[:300]}")
    for name, text in (("stdout", out), ("stderr", err)):
        if found := CONTROLS.search(text):
            around = text[max(0, found.start() - 40) : found.end() + 40]
            raise Failure(f"a control character on {name}: {around!r}")
    if "--json" in case.words and status == 0 and "--output" not in case.words:
        json.loads(out)


def check_written(folder: Path) -> None:
    for path in folder.rglob("*"):
        check(not path.name.endswith(".tmp"), f"left {path.name}")
        if path.suffix == ".html":
            Page().feed(path.read_text(encoding="utf-8"))
        elif path.suffix == ".json":
            json.loads(path.read_text(encoding="utf-8"))


class Elements(html.parser.HTMLParser):
    """The elements of a text with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: set[tuple] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.add((tag, *attributes))


class Page(html.parser.HTMLParser):
    """A page that has the elements and attributes of ours, and no others."""

    FIXED = Elements(
        (render.ROOM / "page.html").read_text()
        + render.drawing("timeline", {})
        + render.drawing("steps", {})
    ).found
    OURS = set(
        "html head meta title style body main header h1 h2 p div b wbr span dl dt dd section ul li "
        "details summary img table thead tbody tr th td a script".split()
    )
    CLASSES = set("soft cards card warn scroll number wide answers facts".split())
    ALTS = {section.title for section in SECTIONS}
    ATTRIBUTES = {
        ("div", "tabindex"): "0",
        ("section", "id"): "[a-z-]+",
        ("a", "href"): "#[a-z-]+",
        ("meta", "http-equiv"): "Content-Security-Policy",
        ("meta", "content"): r"default-src 'none'; img-src data:; style-src '[^']+'; script-src"
        r"( '[^']+')+; base-uri 'none'; form-action 'none'",
        ("img", "src"): r"data:image/svg\+xml;base64,[A-Za-z0-9+/=]+",
    }

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if (tag, *attributes) in self.FIXED:
            return
        check(tag in self.OURS, f"an element <{tag}> in the page")
        for name, value in attributes:
            pattern = self.ATTRIBUTES.get((tag, name))
            is_ours = bool(pattern and re.fullmatch(pattern, value or ""))
            is_ours |= name == "class" and value in self.CLASSES
            is_ours |= (tag, name) == ("img", "alt") and value in self.ALTS
            check(is_ours, f"an attribute {name}={value!r:.80} in the page")

    def handle_data(self, data: str) -> None:
        check(not CONTROLS.search(data), f"a control character in the page: {data[:80]!r}")


class allowed:
    """Folder in which files may be written just now; None: nobody looks."""

    folder: str | None = None


WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
MAKING = ("shutil.",) + tuple(
    f"os.{name}" for name in "mkdir rename remove rmdir link symlink truncate chmod".split()
)
RUNNING = ("subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.fork", "socket.")
RUNNING += ("sqlite3.load_extension",)


# where the reader puts a small file, and as what
TEMPORARY = re.compile(re.escape(tempfile.gettempdir()) + r"(/commprof-\w{8})?")


def audit(event: str, arguments: tuple) -> None:
    """Whatever Python is about to open for writing, make, take away or run (SQLite's own files are
    looked for afterwards)."""
    if allowed.folder is None or arguments and TEMPORARY.fullmatch(str(arguments[0])):
        return
    if event == "open":
        place, _, flags = arguments
        if isinstance(flags, int) and flags & WRITING and not isinstance(place, int):
            is_allowed = str(place).startswith((allowed.folder, os.devnull))
            check(is_allowed, f"would write {place}")
    elif event.startswith(MAKING):
        check(str(arguments[0]).startswith(allowed.folder), f"{event} {arguments[0]}")
    elif event not in ("subprocess.Popen", "os.posix_spawn") or list(arguments[1]) != DEMANGLER:
        check(not event.startswith(RUNNING), f"{event} {arguments!r:.200}")


# Children.


def limits_set() -> None:
    with open("/proc/self/statm") as statm:
        in_use = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (in_use + MEMORY_BYTES,) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, (BATCH * MOST_CPU_S,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MEMORY_BYTES,) * 2)


def child(numbers: range, sound: Sound, folder: Path, keep: Path) -> None:
    """Writes into its folder which case it is at, and a line of JSON for each failure."""
    home = folder / "home"
    home.mkdir(parents=True)
    os.chdir(home)
    os.environ.update(HOME=str(home), TMPDIR=str(home), SQLITE_TMPDIR=str(home))
    sys.addaudithook(audit)
    limits_set()
    for number in numbers:
        (folder / "at").write_text(str(number))
        signal.alarm(SILENCE_S)  # ends it
        what = case_try(number, sound, folder / str(number), home, keep)
        if what:
            with open(folder / "failed", "a") as lines:
                print(json.dumps([number, what]), file=lines)


def case_try(number: int, sound: Sound, folder: Path, home: Path, keep: Path) -> str | None:
    """Failure of a case, if any; then the case's files are kept."""
    what = None
    folder.mkdir()
    try:
        case_run(case_make(number, sound, folder))
        check(not os.listdir(home), f"wrote {os.listdir(home)} into the current folder or HOME")
    except Failure as failure:
        what = str(failure)
    except BaseException:
        what = traceback.format_exc()
    if what:
        shutil.copytree(folder / "run", keep / f"case-{number}", dirs_exist_ok=True)
    shutil.rmtree(folder)
    return what


class Fuzz:
    """All cases, so many children at a time."""

    def __init__(self, cases: range, folder: Path, keep: Path) -> None:
        self.cases, self.folder, self.keep = cases, folder, keep
        self.sound = sound_files(folder)
        self.waiting = [cases[start : start + BATCH] for start in range(0, len(cases), BATCH)][::-1]
        self.running: dict[int, range] = {}  # by process
        self.failed = self.done = 0

    def run(self, jobs: int) -> int:
        """How many failed."""
        while self.waiting or self.running:
            while self.waiting and len(self.running) < jobs:
                self.begin(self.waiting.pop())
            process, status = os.wait()
            self.ended(self.running.pop(process), status)
        return self.failed

    def begin(self, numbers: range) -> None:
        process = os.fork()
        if process:
            self.running[process] = numbers
            return
        status = 1
        try:
            child(numbers, self.sound, self.folder / f"from-{numbers.start}", self.keep)
            status = 0
        except BaseException:
            traceback.print_exc()
        os._exit(status)

    def ended(self, numbers: range, status: int) -> None:
        """A child that did not come to its end has failed at the case that it was at."""
        folder = self.folder / f"from-{numbers.start}"
        last, failed = int((folder / "at").read_text()), folder / "failed"
        for line in failed.read_text().splitlines() if failed.exists() else ():
            self.fail(*json.loads(line))
        if status:
            code = os.waitstatus_to_exitcode(status)
            self.fail(last, f"ended by {signal.Signals(-code).name}" if code < 0 else "ended")
            self.waiting += [rest] if (rest := range(last + 1, numbers.stop)) else []
        shutil.rmtree(folder, ignore_errors=True)
        before, self.done = self.done, self.done + last + 1 - numbers.start
        if self.done * 20 // len(self.cases) > before * 20 // len(self.cases):
            print(f"{self.done} of {len(self.cases)} cases, {self.failed} failed", flush=True)

    def fail(self, number: int, what: str) -> None:
        self.failed += 1
        if self.failed <= MOST_SHOWN:
            again = f"{sys.executable} {Path(__file__).resolve()} --case {number}"
            print(f"case {number}: {what.rstrip()}\n    repeat: {again}", flush=True)


def repeat(number: int, folder: Path, keep: Path) -> None:
    """One case in this process, with all that it said."""
    sound = sound_files(folder)
    scratch = folder / "case"
    scratch.mkdir()
    sys.addaudithook(audit)
    limits_set()
    case = case_make(number, sound, scratch)
    shutil.copytree(scratch / "run", keep / f"case-{number}", dirs_exist_ok=True)
    command, *words = case.words
    print(f"its files: {keep / f'case-{number}'}")
    print(f"hvprof-report {command} {case.run} {' '.join(words)}", flush=True)
    status, out, err = case_run(case)
    print(f"status {status}\n{out}{err}", end="")


def fuzz(cases: range, jobs: int, folder: Path, keep: Path) -> int:
    start_s = time.monotonic()
    failed = Fuzz(cases, folder, keep).run(jobs)
    span_s = time.monotonic() - start_s
    pace = f"{len(cases) / span_s:.0f} a second"
    print(f"cases {cases.start} to {cases.stop - 1}: {failed} failed, {pace}")
    if failed:
        print(f"the files of those that failed: {keep}")
    return failed


def arguments_read() -> argparse.Namespace:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--case", type=int, help="repeat this one")
    kept, about = ROOT / "build" / "fuzz", "where the files of failures go"
    parser.add_argument("--keep", type=Path, default=kept, help=about)
    return parser.parse_args()


if __name__ == "__main__":
    wanted = arguments_read()
    keep = wanted.keep.resolve()
    keep.mkdir(parents=True, exist_ok=True)
    cases = range(wanted.first, wanted.first + wanted.cases)
    with tempfile.TemporaryDirectory(prefix="commprof-fuzz-") as scratch:
        if wanted.case is not None:
            repeat(wanted.case, Path(scratch), keep)
        elif fuzz(cases, wanted.jobs, Path(scratch), keep):
            sys.exit(1)
