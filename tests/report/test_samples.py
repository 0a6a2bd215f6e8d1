"""Single calls: what of a ledger counts as kept, and that a thinned run has the same ones of all ranks."""

from __future__ import annotations

import os
import sqlite3
import struct
from dataclasses import replace

import planted
import pytest
from commprof_report.run import database, ledger, ledger_samples
from commprof_report.run import run as run_module
from commprof_report.run.run import run_open
from planted import BLOCK_SAMPLES, DATA, SECOND, WINDOW_NS, WORLD, Message, Rank, Sample, Signature, Span, Start, Step, Window

SAMPLE_TABLES = ("sample", "signature", "sample_message", "sample_start", "sample_window", "step", "region_span")
ROUND_UNIX_NS = planted.START_UNIX_NS // (8 * WINDOW_NS) * 8 * WINDOW_NS  # a window begins with the rank, at any level up to 3


def all_of(folder, question: str, **how) -> list[tuple]:
    return run_open(folder, with_samples=True, **how).connection.execute(question).fetchall()


def one_rank(**what) -> Rank:
    return Rank(0, 1, communicators=[planted.communicators_of(0)[0]], threads=[(0, "main", 1), (1, "helper", 0)], **what)


def allreduces(sequences, **what) -> list[Sample]:
    return [Sample("MPI_Allreduce", 2_000 * sequence, 2_000 * sequence + 100, sequence=sequence, **what) for sequence in sequences]


def sends(start_ns, **what) -> list[Sample]:
    return [Sample("MPI_Send", at_ns, at_ns + 100, peer=0, **what) for at_ns in start_ns]


class Written:
    """A ledger whose fields can be changed before it is read."""

    def __init__(self, path, rank: Rank) -> None:
        self.path, self.data = path, bytearray(planted.ledger_bytes(rank))

    def header(self, **fields: int) -> Written:
        for field, value in fields.items():
            self.put(ledger.HEADER, 0, field, value)
        return self

    def entries(self, kind: int, /, **fields: int) -> Written:
        for at in range(ledger.HEADER_BYTES, len(self.data), ledger.CHUNK_BYTES):
            chunk = ledger.CHUNK.unpack(self.data, at)
            layout = ledger.ENTRIES.get(kind)
            for place in range(chunk.used if chunk.kind == kind else 0):
                for field, value in fields.items():
                    self.put(layout, at + ledger.CHUNK.bytes + place * layout.bytes, field, value)
        return self

    def put(self, layout: ledger.Layout, at: int, field: str, value: int) -> None:
        ends = [end for end in (*layout.offsets.values(), layout.bytes) if end > layout.offsets[field]]
        start, end = at + layout.offsets[field], at + min(ends)
        self.data[start:end] = value.to_bytes(end - start, "little", signed=value < 0)

    def ask(self, question: str) -> list[tuple]:
        self.path.write_bytes(self.data)
        return all_of(self.path, question)


@pytest.fixture
def written(tmp_path):
    return lambda rank: Written(tmp_path / "rank-0.ledger", rank)


def test_samples_are_read_only_where_they_are_asked_for(run_folder, ledger_folder):
    for folder in (run_folder, ledger_folder):
        connection = run_open(folder).connection
        assert [connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in SAMPLE_TABLES] == [0] * len(SAMPLE_TABLES)
        assert connection.execute("SELECT count(*) FROM region").fetchone() == (8,)


@pytest.mark.parametrize("table", SAMPLE_TABLES)
def test_ledgers_and_databases_have_the_same_samples(run_folder, ledger_folder, table):
    question = f"SELECT * FROM {table}"
    from_databases = all_of(run_folder, question)
    assert sorted(map(repr, all_of(ledger_folder, question))) == sorted(map(repr, from_databases))
    assert from_databases


@pytest.mark.parametrize("level, blocks", ((0, [1, 2, 3, 4, 5]), (1, [2, 4]), (2, [4]), (5, []), (63, [])))
def test_of_a_communicator_only_the_blocks_of_its_level_count(written, level, blocks):
    rank = one_rank(samples=allreduces(range(1, 5 * BLOCK_SAMPLES + 1, 512)))
    kept = written(rank).entries(ledger.COMMUNICATORS, sample_level=level).ask("SELECT DISTINCT (sequence - 1) / 1024 + 1 FROM sample")
    assert [block for (block,) in kept] == blocks


def test_a_communicator_says_its_level(written):
    rank = one_rank()
    question = "SELECT sample_level FROM communicator"
    assert written(rank).entries(ledger.COMMUNICATORS, sample_level=7).ask(question) == [(7,)]
    assert written(rank).entries(ledger.COMMUNICATORS, sample_level=63).ask(question) == [(None,)]


def test_samples_of_a_communicator_that_nobody_has_described_are_left_out(written):
    rank = one_rank(samples=allreduces([1], communicator=77) + allreduces([1]))
    assert written(rank).ask("SELECT communicator FROM sample") == [(WORLD,)]


def test_of_threads_only_the_windows_of_the_level_count(written):
    rank = one_rank(samples=sends(range(0, 9 * WINDOW_NS, WINDOW_NS)), windows=[Window(200, 10 * SECOND)], start_unix_ns=ROUND_UNIX_NS)
    starts = written(rank).header(window_level=2).ask("SELECT start_ns FROM sample")
    assert starts == [(0,), (4 * WINDOW_NS,), (8 * WINDOW_NS,)]
    windows = written(rank).header(window_level=2).ask("SELECT begin_ns, end_ns FROM sample_window WHERE thread = 0")
    assert windows == [(200, WINDOW_NS), (4 * WINDOW_NS, 5 * WINDOW_NS), (8 * WINDOW_NS, 9 * WINDOW_NS)]


def test_no_level_no_windows(written):
    rank = one_rank(samples=sends([100]), windows=[Window(0, 10 * SECOND)])
    ledger_ = written(rank).header(window_level=63)
    assert [ledger_.ask(f"SELECT * FROM {table}") for table in ("sample", "sample_window")] == [[], []]


def test_a_ledger_without_a_log_covers_nothing(written):
    assert written(one_rank()).ask("SELECT * FROM sample_window") == []


def test_a_window_that_was_cut_off_is_covered_up_to_there(written):
    rank = one_rank(windows=[Window(200, 10 * SECOND), Window(0, 10 * SECOND, thread=1)], samples=sends([5 * SECOND], thread=1))
    until_ns = 5 * SECOND + 1_000
    end_of_window_ns = ((planted.START_UNIX_NS + 5 * SECOND) // WINDOW_NS + 1) * WINDOW_NS - planted.START_UNIX_NS
    cut = written(rank).entries(ledger.SAMPLES, until_ticks=planted.ticks_at(until_ns))
    windows = cut.ask("SELECT thread, begin_ns, end_ns FROM sample_window")
    assert windows == [(0, 200, 10 * SECOND), (1, 0, until_ns), (1, end_of_window_ns, 10 * SECOND)]


def test_what_is_from_before_a_reset_does_not_count(written):
    rank = one_rank(samples=sends([1_000, 2_000]), windows=[Window(0, 10 * SECOND)])
    reset = written(rank).header(reset_ticks=planted.ticks_at(2_000))
    assert reset.ask("SELECT start_ns FROM sample") == [(2_000,)]
    assert reset.ask("SELECT begin_ns FROM sample_window") == [(2_000,), (2_000,)]


def test_a_step_without_an_end_goes_on_until_the_rank_s(written):
    rank = one_rank(steps=[Step(1, 100, 200), Step(2, 200, 200)])
    assert written(rank).ask("SELECT step, begin_ns, end_ns FROM step") == [(1, 100, 200), (2, 200, 10 * SECOND)]


def test_of_steps_only_the_blocks_of_the_level_count(written):
    rank = one_rank(steps=[Step(1, 100, 200), Step(1_025, 300, 400), Step(2_049, 500, 600)])
    assert written(rank).header(step_level=1).ask("SELECT step FROM step") == [(1_025,)]


def test_spans_of_regions_are_told_from_calls(written):
    rank = one_rank(regions={3: "forward"}, spans=[Span(3, 100, 200, thread=1)])
    assert written(rank).ask("SELECT * FROM region_span") == [(0, 1, 3, 100, 200)]
    assert written(rank).ask("SELECT * FROM region") == [(0, 3, "forward")]


COLUMNS = "thread, call, communicator, direction, peer, tag, number, bytes, start_ns, end_ns, completed_ns"
MESSAGES = f"SELECT {COLUMNS} FROM message ORDER BY start_ns"


def test_messages_of_calls_and_further_ones_are_in_one_view(written, tmp_path):
    samples = [
        Sample("MPI_Isend", 2_000, 2_100, peer=1, tag=-3, number=65_535, completed_ns=9_000, thread=1),
        Sample("MPI_Sendrecv", 4_000, 4_200, DATA, peer=1, tag=8),
        Sample("MPI_Irecv", 5_000, 5_200, peer=-2, bytes=None),
        Sample("MPI_Recv", 6_000, 6_200),  # of MPI_PROC_NULL
        Sample("MPI_Probe", 7_000, 7_200, peer=1),
        Sample("MPI_Send_init", 8_000, 8_200, peer=1),
        Sample("MPI_Startall", 8_400, 8_600),
        Sample("MPI_Put", 8_800, 8_900, peer=1),
    ]
    messages = [
        Message("MPI_Sendrecv", "received", 4_002, 4_200, DATA, peer=0, tag=0, number=1, bytes=7, thread=1),
        Message("MPI_Send_init", "sent", 8_400, 8_600, peer=1, number=9, bytes=8, completed_ns=8_700),
    ]
    rank = one_rank(samples=samples, messages=messages)
    planted.write_databases(tmp_path, [rank])
    expected = [
        (1, "MPI_Isend", WORLD, "sent", 1, -3, 65_535, 1_000, 2_000, 2_100, 9_000),
        (0, "MPI_Sendrecv", DATA, "sent", 1, 8, None, 1_000, 4_000, 4_200, None),
        (1, "MPI_Sendrecv", DATA, "received", 0, 0, 1, 7, 4_002, 4_200, None),
        (0, "MPI_Irecv", WORLD, "received", -2, None, None, None, 5_000, 5_200, None),
        (0, "MPI_Send_init", WORLD, "sent", 1, None, 9, 8, 8_400, 8_600, 8_700),
    ]
    assert written(rank).ask(MESSAGES) == all_of(tmp_path / "rank-0.db", MESSAGES) == expected


def test_further_messages_are_no_calls(written):
    message = Message("MPI_Recv_init", "received", 100, 200, peer=0, tag=1, number=1)
    assert written(one_rank(messages=[message])).ask("SELECT * FROM sample") == []


def test_started_collectives_are_no_calls(written, tmp_path):
    rank = one_rank(starts=[Start("MPI_Bcast_init", 65_535, 7, 100, 200, DATA, root=1, completed_ns=300, thread=1)])
    planted.write_databases(tmp_path, [rank])
    expected = [(0, 1, "MPI_Bcast_init", DATA, 65_535, 7, 1, 1_000, 100, 200, 300)]
    found = "SELECT * FROM sample_start"
    assert written(rank).ask(found) == all_of(tmp_path / "rank-0.db", found) == expected
    assert written(rank).ask("SELECT * FROM sample UNION ALL SELECT * FROM sample") == []


@pytest.mark.parametrize("change", ({"operation": 0}, {"number": 0}, {"number": -1}))
def test_a_started_collective_that_cannot_be_is_left_out(written, change):
    sound = Start("MPI_Bcast_init", 1, 1, 100, 200)
    damaged = replace(sound, start_ns=300, end_ns=400, **change)
    assert written(one_rank(starts=[sound, damaged])).ask("SELECT start_ns FROM sample_start") == [(100,)]


def test_a_sample_has_its_signature_and_its_bytes(written, tmp_path):
    most = (1 << 48) - 2
    samples = [*sends([100], bytes=most, signature=65_535), *sends([300], bytes=None, signature=1), *sends([500], signature=None)]
    rank = one_rank(samples=samples, signatures=[Signature(65_535, "struct", 12, -8, None, 3), *planted.training_signatures()])
    planted.write_databases(tmp_path, [rank])
    found = "SELECT bytes, signature FROM sample ORDER BY start_ns"
    assert written(rank).ask(found) == all_of(tmp_path / "rank-0.db", found) == [(most, 65_535), (None, 1), (1_000, None)]
    joined = "SELECT start_ns, datatype, extent, op FROM signed_sample ORDER BY start_ns"
    assert all_of(tmp_path / "rank-0.db", joined) == [(100, "struct", -8, ""), (300, "MPI_FLOAT", 4, "MPI_SUM")]


@pytest.mark.parametrize("field, value", (("signature", 1 << 16), ("count", 1 << 62), ("extent", 1 << 62), ("memory_kind", 0x40)))
def test_a_signature_that_cannot_be_is_left_out_and_said(written, field, value):
    one = written(one_rank(signatures=[Signature(1)]))
    assert one.ask("SELECT signature FROM signature") == [(1,)]
    chunk = next(at for at in range(ledger.HEADER_BYTES, len(one.data), ledger.CHUNK_BYTES) if one.data[at] == ledger.SIGNATURES)
    at = chunk + ledger.CHUNK.bytes + ledger.SIGNATURE.offsets[field]
    width = {"signature": 4, "memory_kind": 1}.get(field, 8)
    one.data[at : at + width] = value.to_bytes(width, "little")
    assert one.ask("SELECT signature FROM signature") == []
    assert run_open(one.path, with_samples=True).notes == [f"{one.path}: 1 of its signatures are damaged and left out"]


@pytest.mark.parametrize("flags", (2, 4, 6, 8, 9))
def test_a_sample_with_flags_that_cannot_be_is_left_out(written, flags):
    rank = one_rank(samples=sends([100, 300]))
    ledger_ = written(rank)
    at = ledger_.data.index(struct.pack("<2Q", planted.ticks_at(100), planted.ticks_at(200))) + ledger.SAMPLE.offsets["region"] - 5
    ledger_.data[at] |= flags << 4
    assert ledger_.ask("SELECT start_ns FROM sample UNION ALL SELECT start_ns FROM sample_message") == [(300,)]


@pytest.mark.parametrize(
    "what",
    (
        {"end_ticks": 5},  # before its start
        {"communicator": 9},  # another owner's
        {"call_and_flags": 0},
        {"call_and_flags": 1 << 12},  # a message
        {"completed_ticks": 5},
    ),
)
def test_a_sample_of_a_communicator_that_cannot_be_is_left_out_and_said(report, tmp_path, what):
    field, value = next(iter(what.items()))
    data = bytearray(planted.ledger_bytes(one_rank(samples=allreduces([1, 2]))))
    at = data.index(struct.pack("<2Q", planted.ticks_at(2_000), planted.ticks_at(2_100)))
    width = struct.calcsize({"call_and_flags": "H", "communicator": "H"}.get(field, "Q"))
    at += ledger.SAMPLE.offsets[field]
    data[at : at + width] = value.to_bytes(width, "little")
    path = tmp_path / "rank-0.ledger"
    path.write_bytes(data)
    run = run_open(path, with_samples=True)
    assert run.connection.execute("SELECT sequence FROM sample").fetchall() == [(2,)]
    assert run.notes == [f"{path}: 1 of its samples are damaged and left out"]


def test_an_anchor_says_better_how_long_a_tick_is(written):
    """After 4 s the clock is known to be 400 us fast: a sample at 4 s was really made 400 us earlier."""
    rank = one_rank(samples=sends([4 * SECOND]))
    anchored = written(rank).entries(
        ledger.SAMPLES,
        anchor_ticks=planted.ticks_at(4 * SECOND),
        anchor_ns=planted.START_NS + 4 * SECOND - 400_000,
    )
    assert anchored.ask("SELECT start_ns FROM sample") == [(4 * SECOND - 400_000,)]


@pytest.mark.parametrize("off_ns", (SECOND // 10, -SECOND // 10))
def test_an_anchor_that_cannot_be_is_not_believed(written, off_ns):
    rank = one_rank(samples=sends([4 * SECOND]))
    anchor = {"anchor_ticks": planted.ticks_at(4 * SECOND), "anchor_ns": planted.START_NS + 4 * SECOND + off_ns}
    assert written(rank).entries(ledger.SAMPLES, **anchor).ask("SELECT start_ns FROM sample") == [(4 * SECOND,)]


def test_an_anchor_close_to_the_beginning_is_not_used(written):
    rank = one_rank(samples=sends([4 * SECOND]))
    anchor = {"anchor_ticks": planted.ticks_at(SECOND // 2), "anchor_ns": planted.START_NS + SECOND // 2 - 4_000}
    assert written(rank).entries(ledger.SAMPLES, **anchor).ask("SELECT start_ns FROM sample") == [(4 * SECOND,)]


def pages_of(rank: Rank) -> tuple[bytes, list[int]]:
    """The chunk of samples of a ledger, and where its pages begin."""
    chunk = planted.ledger_chunks(7, planted.PAGE_BYTES, planted.ledger_pages(rank))[0]
    pages = chunk[ledger.CHUNK.bytes :]
    return pages, [at for at in range(0, len(pages) - planted.PAGE_BYTES, planted.PAGE_BYTES) if any(pages[at : at + 8])]


def changed(data: bytes, at: int, layout: ledger.Layout, field: str) -> bytes:
    start = at + layout.offsets[field]
    return data[:start] + bytes((data[start] ^ 1,)) + data[start + 1 :]


@pytest.mark.parametrize("field", ("owner", "first"))
def test_a_page_that_changes_its_owner_while_it_is_read_is_not_believed(field):
    pages, (first, second) = pages_of(one_rank(samples=allreduces([1, 65])))
    settled = ledger._pages_settled(pages, changed(pages, first, ledger.PAGE, field))
    (page, *empty) = ledger.PAGE.unpack_all(settled)
    assert page.first == 64 and not any(page.owner for page in empty)


def test_a_sample_that_comes_while_it_is_read_is_not_believed():
    pages, (first,) = pages_of(one_rank(samples=allreduces([1, 2])))
    sample = first + ledger.PAGE.offsets["samples"] + ledger.SAMPLE.bytes
    settled = ledger._pages_settled(pages, changed(pages, sample, ledger.SAMPLE, "bytes_and_signature"))
    (page,) = (page for page in ledger.PAGE.unpack_all(settled) if page.owner)
    assert [sample.end_ticks > 0 for sample in ledger.SAMPLE.unpack_all(page.samples)[:3]] == [True, False, False]


def test_a_live_rank_s_windows_end_when_its_pages_were_read(tmp_path, monkeypatch):
    rank = one_rank(ended="running", windows=[Window(0, 0)], facts=planted.process_facts(os.getpid()))
    rank.pid = os.getpid()
    rank.samples = sends([100])
    planted.write_ledgers(tmp_path, [rank])
    monkeypatch.setattr(ledger.time, "time_ns", lambda: planted.START_UNIX_NS + 3 * SECOND)
    assert all_of(tmp_path, "SELECT begin_ns, end_ns FROM sample_window") == [(0, 3 * SECOND)] * 2


def test_windows_without_end_are_few():
    """As a damaged ledger may have them: 146 years of every second window."""
    windows = list(ledger_samples.covered(0, 1 << 62, planted.START_UNIX_NS, 1, {}))
    assert 0 < len(windows) <= ledger_samples.MOST_WINDOWS + 1


# Thinning


def busy_run() -> list[Rank]:
    """Four ranks with 4096 collectives and 96 messages in eight windows each; rank 2 has kept every second block only."""
    ranks = []
    for world_rank in range(4):
        sequences = [number for number in range(1, 4 * BLOCK_SAMPLES + 1) if world_rank != 2 or (number - 1) // BLOCK_SAMPLES % 2 == 1]
        rank = Rank(world_rank, 4, start_unix_ns=ROUND_UNIX_NS, windows=[Window(0, 10 * SECOND)])
        rank.communicators = [planted.communicators_of(world_rank)[0]]
        rank.communicators[0].sample_level = 1 if world_rank == 2 else 0
        rank.samples = allreduces(sequences) + sends(window * WINDOW_NS + 1_000 * place for window in range(8) for place in range(12))
        rank.spans = [Span(1, at_ns, at_ns + 100) for at_ns in range(0, 8 * WINDOW_NS, WINDOW_NS)]
        ranks.append(rank)
    return ranks


@pytest.fixture(scope="module", params=("databases", "ledgers", "merged"))
def busy(request, tmp_path_factory):
    from commprof_report.main import main

    folder = tmp_path_factory.mktemp("busy")
    (planted.write_ledgers if request.param == "ledgers" else planted.write_databases)(folder, busy_run())
    if request.param == "merged":
        assert main(["merge", str(folder), str(folder / "all.db")]) == 0
        return folder / "all.db"
    return folder


def test_all_samples_are_read_where_they_are_few_enough(busy):
    assert all_of(busy, "SELECT count(*) FROM sample") == [(3 * 4_096 + 2_048 + 4 * 96,)]


def test_a_thinned_run_has_the_same_samples_of_all_ranks(busy):
    kept = all_of(busy, "SELECT world_rank, group_concat(DISTINCT (sequence - 1) / 1024 + 1) FROM sample GROUP BY 1", most_samples=10_000)
    assert kept == [(world_rank, "2,4") for world_rank in range(4)]
    levels = all_of(busy, "SELECT DISTINCT sample_level FROM communicator", most_samples=10_000)
    assert levels == [(1,)]


def test_whoever_has_most_samples_gives_up_most(busy):
    run = run_open(busy, with_samples=True, most_samples=4_600)
    assert run.thinning.levels == {f"{planted.WORLD_IDENTITY:016x}": 2}
    assert run.connection.execute("SELECT count(*) FROM sample WHERE sequence IS NULL").fetchone() == (4 * 96,)


def test_windows_are_cut_with_the_calls_in_them(busy):
    """Of a block, the communicator has no more to give than they have."""
    run = run_open(busy, with_samples=True, most_samples=4 * 32 + 4 * 60)
    level = run.thinning.levels[""]
    assert level == 1
    ask = run.connection.execute
    assert ask("SELECT DISTINCT start_ns / (1 << 30) FROM sample WHERE sequence IS NULL").fetchall() == [(0,), (2,), (4,), (6,)]
    assert ask("SELECT count(*) FROM sample WHERE sequence IS NULL").fetchone() == (4 * 48,)
    assert ask("SELECT count(*) FROM region_span").fetchone() == (4 * 4,)
    windows = ask("SELECT begin_ns, end_ns FROM sample_window WHERE world_rank = 3").fetchall()
    assert windows == [(at_ns, at_ns + WINDOW_NS) for at_ns in range(0, 8 * WINDOW_NS, 2 * WINDOW_NS)] + [(8 * WINDOW_NS, 9 * WINDOW_NS)]


def test_of_the_last_block_all_ranks_keep_the_same_first_collectives(busy):
    numbers = "SELECT world_rank, count(*), min(sequence), max(sequence) FROM sample WHERE sequence IS NOT NULL GROUP BY 1"
    first = 3 * BLOCK_SAMPLES + 1
    assert all_of(busy, numbers, most_samples=2_500) == [(world_rank, 512, first, first + 511) for world_rank in range(4)]


def test_whatever_is_asked_for_some_collectives_and_the_last_window_stay(busy):
    run = run_open(busy, with_samples=True, most_samples=1)
    ask = run.connection.execute
    assert ask("SELECT count(*) FROM sample WHERE sequence IS NOT NULL").fetchone() == (4 * 32,)
    assert ask("SELECT count(*), count(DISTINCT start_ns >> 30) FROM sample WHERE sequence IS NULL").fetchone() == (4 * 12, 1)
    assert ask("SELECT count(*) FROM sample_window").fetchone() == (4,)


def test_of_each_block_less_is_kept_where_the_next_level_would_leave_little(tmp_path):
    rank = one_rank(samples=allreduces(range(1, BLOCK_SAMPLES + 10)))
    planted.write_databases(tmp_path, [rank])
    assert all_of(tmp_path, "SELECT count(*) FROM sample", most_samples=100) == [(64 + 9,)]


# Databases from anyone


@pytest.mark.parametrize(
    "table, change",
    (
        ("sample", "world_rank = 77"),
        ("sample", "end_ns = start_ns - 1"),
        ("sample", "start_ns = -1"),
        ("sample", "end_ns = (1 << 62) + 1"),
        ("sample", "sequence = 0"),
        ("sample", "completed_ns = start_ns - 1"),
        ("sample", "bytes = -1"),
        ("sample", "peer = -3"),
        ("sample", "root = 'x'"),
        ("sample", "call = x'00ff'"),
        ("sample", "tag = 'x'"),
        ("sample", "number = 65536"),
        ("sample", "signature = 65536"),
        ("signature", "world_rank = 77"),
        ("signature", "extent = 'x'"),
        ("signature", "is_in_place = 2"),
        ("sample_message", "world_rank = 77"),
        ("sample_message", "direction = 'both'"),
        ("sample_message", "number = 0"),
        ("sample_message", "end_ns = start_ns - 1"),
        ("sample_message", "completed_ns = start_ns - 1"),
        ("sample_message", "peer = -3"),
        ("sample_start", "world_rank = 77"),
        ("sample_start", "operation = 0"),
        ("sample_start", "number = 0"),
        ("sample_start", "completed_ns = start_ns - 1"),
        ("sample_window", "world_rank = 77"),
        ("sample_window", "begin_ns = end_ns + 1"),
        ("step", "world_rank = 77"),
        ("step", "step = -step"),
        ("step", "end_ns = begin_ns - 1"),
        ("region_span", "world_rank = 77"),
        ("region_span", "region = 'x'"),
        ("region", "name = x'00ff'"),
        ("communicator", "sample_level = 63"),
        ("rank", "start_monotonic_ns = -1"),
    ),
)
def test_a_database_with_samples_that_cannot_be_is_left_out(run_folder, table, change):
    connection = sqlite3.connect(run_folder / "rank-1.db")
    connection.execute("PRAGMA ignore_check_constraints = ON")
    connection.execute(f"UPDATE {table} SET {change}")
    connection.commit()
    connection.close()
    run = run_open(run_folder, with_samples=True)
    assert run.notes[0].startswith(f"{run_folder}/rank-1.db: is damaged: impossible values in table {table}")
    assert run.connection.execute("SELECT count(DISTINCT world_rank) FROM sample").fetchone() == (3,)


def test_samples_of_a_database_that_is_left_out_do_not_count(tmp_path):
    planted.write_databases(tmp_path, busy_run())
    connection = sqlite3.connect(tmp_path / "rank-1.db")
    connection.execute("UPDATE sample SET root = 'x'")
    connection.commit()
    connection.close()
    run = run_open(tmp_path, with_samples=True, most_samples=10_000)
    assert run.connection.execute("SELECT DISTINCT world_rank FROM sample").fetchall() == [(0,), (2,), (3,)]
    assert run.thinning.found == 2 * 4_096 + 2_048 + 3 * (96 + 8)


@pytest.mark.parametrize("write", (planted.write_databases, planted.write_ledgers))
def test_a_file_that_is_left_out_removes_no_samples_of_others(tmp_path, monkeypatch, write):
    """Its messages would raise the level of windows; then the collectives of the others raise that of their communicator."""
    ranks = busy_run()
    ranks[0].samples += sends(window * WINDOW_NS + 1_000 * place for window in range(8) for place in range(2_000))
    write(tmp_path, ranks)

    def full() -> sqlite3.Connection:
        connection = database.database_create()
        connection.execute("CREATE TRIGGER full BEFORE INSERT ON rank WHEN NEW.world_rank = 0 BEGIN SELECT RAISE(FAIL, 'disk is full'); END")
        return connection

    monkeypatch.setattr(run_module, "database_create", full)
    run = run_open(tmp_path, with_samples=True, most_samples=10_000)
    assert "disk is full" in run.notes[0]
    assert run.thinning.levels == {f"{planted.WORLD_IDENTITY:016x}": 1}
    assert run.connection.execute("SELECT count(*) FROM sample WHERE sequence IS NULL").fetchone() == (3 * 96,)
    assert run.connection.execute("SELECT count(*) FROM region_span").fetchone() == (3 * 8,)


def test_samples_that_are_not_retained_are_not_checked(tmp_path):
    planted.write_databases(tmp_path, busy_run())
    connection = sqlite3.connect(tmp_path / "rank-3.db")
    connection.execute("UPDATE sample SET root = 'x' WHERE sequence <= 1024")
    connection.commit()
    connection.close()
    assert run_open(tmp_path, with_samples=True, most_samples=10_000).notes == []
    assert "impossible values in table sample" in run_open(tmp_path, with_samples=True).notes[0]
