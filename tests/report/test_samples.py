"""Single calls: which of a ledger count as sampled, and that a thinned run has those of the same
stretches of time of all ranks."""

from __future__ import annotations

import struct
from dataclasses import replace
from itertools import islice

import planted
import pytest
import stored
from commprof_report.run import ledger, ledger_samples
from commprof_report.run.ledger_format import Layout, layout, number
from commprof_report.run.ledger_samples import next_window
from commprof_report.run.run import run_open
from planted import (
    DATA,
    GAP_NS,
    SECOND,
    WORLD,
    Epoch,
    Rank,
    Sample,
    Signature,
    Span,
    Start,
    Step,
    Window,
)

MOST_EPOCHS, MOST_OBJECTS = (1 << 31) - 1, (1 << 21) - 1
# a stretch of 2^30 ns begins with the rank; its number is a multiple of 8
ROUND_UNIX_NS = planted.START_UNIX_NS // (8 * GAP_NS) * 8 * GAP_NS


def all_of(folder, question: str, **how) -> list[tuple]:
    return run_open(folder, with_samples=True, **how).connection.execute(question).fetchall()


def one_rank(**what) -> Rank:
    return Rank(
        0,
        1,
        communicators=[planted.communicators_of(0)[0]],
        threads=[(0, "main", 1), (1, "helper", 0)],
        **what,
    )


def allreduces(sequences, **what) -> list[Sample]:
    return [
        Sample("MPI_Allreduce", 2_000 * sequence, 2_000 * sequence + 100, sequence=sequence, **what)
        for sequence in sequences
    ]


def sends(start_ns, **what) -> list[Sample]:
    return [Sample("MPI_Send", at_ns, at_ns + 100, peer=0, **what) for at_ns in start_ns]


class Written:
    """A ledger whose fields can be changed before it is read. is_stored: the library stores it too,
    and that the reporter reads the same from its database is checked, unless something is
    damaged."""

    def __init__(self, path, rank: Rank) -> None:
        self.path, self.data = path, bytearray(planted.ledger_bytes(rank))
        self.is_stored = True

    def header(self, **fields: int) -> Written:
        for field, value in fields.items():
            self.put(ledger.HEADER, 0, field, value)
        return self

    def entries(self, kind: str, /, **fields: int) -> Written:
        for at in range(ledger.HEADER_BYTES, len(self.data), ledger.CHUNK_BYTES):
            chunk = ledger.CHUNK.unpack(self.data, at)
            entry = ledger.ENTRIES[number(kind)]
            for place in range(chunk.used if chunk.kind == number(kind) else 0):
                for field, value in fields.items():
                    self.put(
                        entry, at + ledger.CHUNK.itemsize + place * entry.itemsize, field, value
                    )
        return self

    def put(self, layout: Layout, at: int, field: str, value: int) -> None:
        offsets = planted.offsets(layout)
        ends = (*offsets.values(), layout.itemsize)
        width = min(end for end in ends if end > offsets[field]) - offsets[field]
        start = at + offsets[field]
        self.data[start : start + width] = value.to_bytes(width, "little", signed=value < 0)

    def ask(self, question: str) -> list[tuple]:
        self.path.write_bytes(self.data)
        run = run_open(self.path, with_samples=True)
        rows = run.connection.execute(question).fetchall()
        if self.is_stored and not run.notes:
            of_library = all_of(stored.database_of(self.path), question)
            assert sorted(of_library, key=repr) == sorted(rows, key=repr)
        return rows


@pytest.fixture
def written(tmp_path):
    return lambda rank: Written(tmp_path / "rank-0.ledger", rank)


@pytest.fixture
def both(written, tmp_path):
    """both(question, **of a rank): what its ledger answers, and its database likewise."""

    def ask(question: str, **what: object) -> list[tuple]:
        rank = one_rank(**what)
        planted.write_databases(tmp_path, [rank])
        found = written(rank).ask(question)
        assert found == all_of(tmp_path / "rank-0.db", question)
        return found

    return ask


@pytest.mark.parametrize(
    "mask, stretches",
    ((0, range(9)), (1, (0, 2, 4, 6, 8)), (3, (0, 4, 8)), (2, (0, 1, 4, 5, 8)), (6, (0, 1, 8))),
)
def test_of_threads_only_the_windows_without_bits_of_the_mask_count(written, mask, stretches):
    calls = allreduces(range(1, 10)) + sends([0] * 9)
    for place, sample in enumerate(calls):
        sample.start_ns, sample.end_ns = place % 9 * GAP_NS, place % 9 * GAP_NS + 100
    rank = one_rank(samples=calls, windows=[Window(200, 10 * SECOND)], start_unix_ns=ROUND_UNIX_NS)

    def ask(question: str) -> list[tuple]:
        return written(rank).header(window_mask=mask << planted.STRETCH).ask(question)

    returned = ask("SELECT DISTINCT end_ns >> 30 FROM sample ORDER BY 1")
    assert returned == [(stretch,) for stretch in stretches]
    assert len(ask("SELECT * FROM sample")) == 2 * len(stretches)
    sampled = ask("SELECT begin_ns, end_ns FROM sample_window WHERE thread = 0")
    for stretch in range(9):
        is_in = any(low <= stretch * GAP_NS + 300 < high for low, high in sampled)
        assert is_in == (stretch in stretches)
    assert all(high <= 10 * SECOND for _, high in sampled)


RECORDED = (ROUND_UNIX_NS + 3 * GAP_NS) // planted.WINDOW_NS, 3 * GAP_NS // planted.WINDOW_NS


def recorded_rank() -> Rank:
    """A call of each kind in each stretch that the mask leaves, and in those of the record: 3, 4
    and 5."""
    times = [stretch * GAP_NS + 1_000 for stretch in (0, 2, 3, 4, 5, 6, 8)]
    first, windows = RECORDED
    return one_rank(
        samples=sends(times),
        spans=[Span(1, at_ns, at_ns + 100) for at_ns in times],
        regions={1: "solve"},
        windows=[Window(0, 10 * SECOND)],
        start_unix_ns=ROUND_UNIX_NS,
        window_mask=1 << planted.STRETCH,
        record=(first, first + windows - 1),
        record_asked_ns=4 * SECOND,
        record_is_full=1,
    )


@pytest.mark.parametrize("write", (planted.write_databases, planted.write_ledgers))
@pytest.mark.parametrize(
    "most, stretches",
    ((None, [0, 2, 3, 4, 5, 6, 8]), (10, [0, 2, 4, 6, 8]), (500, [0, 2, 4, 6, 8])),
)
def test_the_record_is_for_those_who_read_all(tmp_path, write, most, stretches):
    """And does not count where there are too many."""
    write(tmp_path, [recorded_rank()])
    run = run_open(tmp_path, with_samples=True, most_samples=most)
    for table in ("sample", "region_span"):
        found = run.connection.execute(f"SELECT end_ns >> 30 FROM {table} ORDER BY 1").fetchall()
        assert found == [(stretch,) for stretch in stretches]
    assert not run.thinning.is_needed


@pytest.mark.parametrize("mask", range(32))
def test_the_next_window_is_the_lowest_without_bits_of_the_mask(mask):
    for window in range(-1, 64):
        assert next_window(window, mask) == next(
            number for number in range(window + 1, 200) if not number & mask
        )


def test_a_window_that_was_cut_off_is_covered_up_to_there(written):
    rank = one_rank(
        windows=[Window(200, 10 * SECOND), Window(0, 10 * SECOND, thread=1)],
        samples=sends([5 * SECOND], thread=1),
    )
    until_ns = 5 * SECOND + 1_000
    last = planted.end_of_gap(planted.START_UNIX_NS, until_ns)
    end_of_window_ns = (last + 1) * planted.WINDOW_NS - planted.START_UNIX_NS
    cut = written(rank).entries("SAMPLES", until_ticks=planted.ticks_at(until_ns), last=last)
    windows = cut.ask("SELECT thread, begin_ns, end_ns FROM sample_window")
    assert windows == [(0, 200, 10 * SECOND), (1, 0, until_ns), (1, end_of_window_ns, 10 * SECOND)]


def test_what_is_from_before_a_reset_does_not_count(written):
    rank = one_rank(samples=sends([1_000, 2_000]), windows=[Window(0, 10 * SECOND)])
    reset = written(rank).header(reset_ticks=planted.ticks_at(2_000))
    assert reset.ask("SELECT start_ns FROM sample") == [(2_000,)]
    assert reset.ask("SELECT begin_ns FROM sample_window") == [(2_000,), (2_000,)]


def test_of_steps_only_the_pages_without_bits_of_the_mask_count(written):
    rank = one_rank(steps=[Step(1, 100, 200), Step(65, 300, 400), Step(129, 500, 600)])
    masked = written(rank).header(step_mask=1)
    assert masked.ask("SELECT step FROM step ORDER BY 1") == [(1,), (129,)]


CALLED = "SELECT * FROM sample UNION ALL SELECT * FROM sample"


def test_started_collectives_are_no_calls(both):
    more = {"root": 1, "completed_ns": 300, "thread": 1}
    starts = [Start("MPI_Bcast_init", 65_535, 7, 100, 200, DATA, **more)]
    expected = [(0, 1, "MPI_Bcast_init", DATA, 65_535, 7, 1, 1_000, 100, 200, 300)]
    assert both("SELECT * FROM sample_start", starts=starts) == expected
    assert both(CALLED, starts=starts) == []


@pytest.mark.parametrize("change", ({"operation": 0}, {"number": 0}, {"number": -1}))
def test_a_started_collective_that_cannot_be_is_left_out(written, change):
    sound = Start("MPI_Bcast_init", 1, 1, 100, 200)
    damaged = replace(sound, start_ns=300, end_ns=400, **change)
    found = written(one_rank(starts=[sound, damaged])).ask("SELECT start_ns FROM sample_start")
    assert found == [(100,)]


EPOCH = Epoch("MPI_Win_start", 100, 200, peer=1, number=MOST_EPOCHS, partners=2, thread=1)


def test_the_partners_of_an_epoch_are_no_calls(both):
    all_of_them = Epoch("MPI_Win_complete", 300, 400, partners=40, object=MOST_OBJECTS)
    epochs = [EPOCH, all_of_them]
    assert both("SELECT * FROM sample_epoch", epochs=epochs) == [
        (0, 1, "MPI_Win_start", WORLD, 1, 1, MOST_EPOCHS, 2, 100, 200),
        (0, 0, "MPI_Win_complete", WORLD, MOST_OBJECTS, None, None, 40, 300, 400),
    ]
    assert both(CALLED, epochs=epochs) == []


@pytest.mark.parametrize(
    "field, value",
    (
        *(("number", 0), ("number", -1), ("peer", None), ("peer", -1), ("partners", 0)),
        *(("object", 0), ("object", MOST_OBJECTS + 1)),
    ),
)
def test_a_partner_that_cannot_be_is_left_out(written, field, value):
    damaged = replace(EPOCH, start_ns=300, end_ns=400, **{field: value})
    found = written(one_rank(epochs=[EPOCH, damaged])).ask("SELECT start_ns FROM sample_epoch")
    assert found == [(100,)]


@pytest.mark.parametrize("on_object", ((0, 1), (1, 0)))
def test_a_collective_on_an_object_that_cannot_be_is_left_out(written, on_object):
    sound = planted.Sample("MPI_Barrier", 100, 110, on_object=(1, 1))
    damaged = replace(sound, start_ns=200, end_ns=210, on_object=on_object)
    found = written(one_rank(samples=[sound, damaged])).ask("SELECT start_ns FROM sample")
    assert found == [(100,)]


@pytest.mark.parametrize(
    "field, value",
    (("signature", 1 << 16), ("count", 1 << 62), ("extent", 1 << 62), ("memory_kind", 0x40)),
)
def test_a_signature_that_cannot_be_is_left_out_and_said(written, field, value):
    one = written(one_rank(signatures=[Signature(1)]))
    assert one.ask("SELECT signature FROM signature") == [(1,)]
    one.entries("SIGNATURES", **{field: value})
    assert one.ask("SELECT signature FROM signature") == []
    assert run_open(one.path, with_samples=True).notes == [
        f"{one.path}: 1 of its signatures are damaged and left out"
    ]


@pytest.mark.parametrize("flags", (2, 4, 6, 8, 9))
def test_a_sample_with_flags_that_cannot_be_is_left_out(written, flags):
    ledger_ = written(one_rank(samples=sends([100, 300])))
    at = ledger_.data.index(struct.pack("<2Q", planted.ticks_at(100), planted.ticks_at(200)))
    ledger_.data[at + planted.offsets(layout("sample"))["region"] - 5] |= flags << 4
    both = "SELECT start_ns FROM sample UNION ALL SELECT start_ns FROM sample_message"
    assert ledger_.ask(both) == [(300,)]


@pytest.mark.parametrize(
    "field, value",  # an end before the start; a message
    (("end_ticks", 5), ("call_and_flags", 0), ("call_and_flags", 1 << 12), ("completed_ticks", 5)),
)
def test_a_collective_s_sample_that_cannot_be_is_left_out_and_said(written, field, value):
    one = written(one_rank(samples=allreduces([1, 2])))
    at = one.data.index(struct.pack("<2Q", planted.ticks_at(2_000), planted.ticks_at(2_100)))
    one.put(layout("sample"), at, field, value)
    assert one.ask("SELECT sequence FROM sample") == [(2,)]
    notes = run_open(one.path, with_samples=True).notes
    assert notes == [f"{one.path}: 1 of its samples are damaged and left out"]


def anchor(off_ns: int) -> dict[str, int]:
    anchor_ns = planted.START_NS + 4 * SECOND + off_ns
    return {"anchor_ticks": planted.ticks_at(4 * SECOND), "anchor_ns": anchor_ns}


def test_an_anchor_says_better_how_long_a_tick_is(written):
    """After 4 s the clock is known to be 400 us fast: a sample at 4 s was really made 400 us
    earlier."""
    anchored = written(one_rank(samples=sends([4 * SECOND])))
    anchored.entries("SAMPLES", **anchor(-400_000))
    anchored.is_stored = False  # when the library stores a ledger, its clock is calibrated
    assert anchored.ask("SELECT start_ns FROM sample") == [(4 * SECOND - 400_000,)]


@pytest.mark.parametrize("off_ns", (SECOND // 10, -SECOND // 10))
def test_an_anchor_that_cannot_be_is_not_believed(written, off_ns):
    anchored = written(one_rank(samples=sends([4 * SECOND])))
    anchored.entries("SAMPLES", **anchor(off_ns))
    assert anchored.ask("SELECT start_ns FROM sample") == [(4 * SECOND,)]


def pages_of(rank: Rank) -> tuple[bytes, list[int]]:
    """The chunk of samples of a ledger, and where its pages begin."""
    (chunk,) = planted.ledger_chunks(7, planted.PAGE_BYTES, planted.ledger_pages(rank))
    pages = chunk[ledger.CHUNK.itemsize :]
    places = range(0, len(pages) - planted.PAGE_BYTES, planted.PAGE_BYTES)
    return pages, [at for at in places if any(pages[at : at + 8])]


def changed(data: bytes, at: int, layout: Layout, field: str) -> bytes:
    start = at + planted.offsets(layout)[field]
    return data[:start] + bytes((data[start] ^ 1,)) + data[start + 1 :]


@pytest.mark.parametrize("field", ("owner", "first"))
def test_a_page_that_changes_its_owner_while_it_is_read_is_not_believed(field):
    pages, (first, second) = pages_of(one_rank(samples=allreduces(range(1, 66))))
    settled = ledger._pages_settled(pages, changed(pages, first, layout("page"), field))
    (page, *empty) = layout("page").array(settled)
    assert page["samples"]["sequence"][0] == 65 and not any(page["owner"] for page in empty)


def test_a_sample_that_comes_while_it_is_read_is_not_believed():
    pages, (first,) = pages_of(one_rank(samples=allreduces([1, 2])))
    sample = first + planted.offsets(layout("page"))["samples"] + layout("sample").itemsize
    other = changed(pages, sample, layout("sample"), "bytes_and_signature")
    settled = ledger._pages_settled(pages, other)
    (page,) = (page for page in layout("page").array(settled) if page["owner"])
    assert (page["samples"]["end_ticks"][:3] > 0).tolist() == [True, False, False]


@pytest.mark.parametrize("mask", [1, 1 << 20, 1 | 1 << 63, 0x5555 << 48 | 1])
def test_windows_without_end_are_few(mask):
    """As a damaged ledger may have them: 146 years of every second window."""
    windows = ledger_samples.covered(0, 1 << 62, planted.START_UNIX_NS, mask)
    assert 0 < sum(1 for _ in islice(windows, 1 << 20)) <= 2 * ledger_samples.MOST_STRETCHES + 1


# Thinning


SECONDS = 16


def busy_run() -> list[Rank]:
    """Four ranks that make an Allreduce, a message and a region each 4 ms, for 16 s; rank 2 has the
    first half of each two seconds only."""
    ranks, wall_ns = [], SECONDS * SECOND
    for world_rank in range(4):
        times = range(0, wall_ns, 4_000_000)
        if world_rank == 2:
            times = [at_ns for at_ns in times if at_ns // SECOND % 2 == 0]
        what = {"start_unix_ns": ROUND_UNIX_NS, "wall_ns": wall_ns}
        rank = Rank(world_rank, 4, windows=[Window(0, wall_ns)], **what)
        rank.communicators = [planted.communicators_of(world_rank)[0]]
        rank.samples = [
            Sample("MPI_Allreduce", at_ns, at_ns + 1_000, sequence=1 + at_ns // 4_000_000)
            for at_ns in times
        ]
        rank.samples += sends(at_ns + 2_000 for at_ns in times)
        rank.spans = [Span(1, at_ns, at_ns + 4_000) for at_ns in times]
        ranks.append(rank)
    return ranks


CALLS = 3 * 4_000 + 2_000  # of each kind


@pytest.fixture(scope="module", params=("databases", "ledgers", "merged"))
def busy(request, tmp_path_factory):
    from commprof_report.main import main

    folder, is_ledgers = tmp_path_factory.mktemp("busy"), request.param == "ledgers"
    write = planted.write_ledgers if is_ledgers else planted.write_databases
    write(folder, busy_run())
    if request.param == "merged":
        assert main(["merge", str(folder), str(folder / "all.db")]) == 0
        return folder / "all.db"
    return folder


def counts(run) -> list[int]:
    ask = run.connection.execute
    wanted = ("sample WHERE sequence IS NOT NULL", "sample WHERE sequence IS NULL", "region_span")
    return [ask(f"SELECT count(*) FROM {what}").fetchone()[0] for what in wanted]


def test_all_samples_are_read_where_they_are_few_enough(busy):
    run = run_open(busy, with_samples=True, most_samples=3 * CALLS)
    assert counts(run) == [CALLS] * 3 and not run.thinning.is_needed and run.thinning.share == 1


@pytest.mark.slow
@pytest.mark.parametrize("most", (30_000, 10_000, 3_000, 500))
def test_a_thinned_run_has_the_same_stretches_of_time_of_all_ranks_in_all_calls(busy, most):
    run = run_open(busy, with_samples=True, most_samples=most)
    collectives, messages, spans = counts(run)
    assert abs(collectives - messages) <= 64 and abs(collectives - spans) <= 64, "those of a border"
    assert most / 8 < collectives + messages + spans <= most
    sequences = "SELECT DISTINCT sequence FROM sample WHERE sequence > 0 AND world_rank = ?"
    of_all, of_part = (
        {one for (one,) in run.connection.execute(sequences, (rank,))} for rank in (0, 2)
    )
    assert of_part == {one for one in of_all if (one - 1) // 250 % 2 == 0} and of_part


def test_a_thinned_run_has_stretches_that_are_as_long_as_possible(busy):
    """A quarter of the time in four stretches or more: of 16 s, each is at most a second."""
    run = run_open(busy, with_samples=True, most_samples=3 * CALLS // 4)
    windows = "SELECT end_ns - begin_ns FROM sample_window WHERE world_rank = 0"
    lengths = [length_ns for (length_ns,) in run.connection.execute(windows)]
    assert 4 <= len(lengths) <= 12 and max(lengths) >= SECOND / 4
    assert sum(lengths) == pytest.approx(run.thinning.share * SECONDS * SECOND, rel=0.3)
