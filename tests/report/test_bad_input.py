"""Input that is missing, damaged, foreign or hostile: said in one line, and what can be read is
read."""

from __future__ import annotations

import json
import os
import sqlite3
from dataclasses import replace

import fuzz
import planted
import pytest
from commprof_report.run import database
from commprof_report.run.database import NEWEST, schema_of
from planted import Cell, Communicator, Rank
from test_steps import LOOP, pair, slow_job


def lines(answer) -> list[str]:
    return answer.err.splitlines()


def test_a_missing_rank_is_named_and_the_others_are_read(report, run_folder):
    (run_folder / "rank-2.db").unlink()
    answer = report("summary", run_folder)
    said = f"hvprof-report: {run_folder}: rank 2 of 4 is missing\n"
    assert (answer.status, answer.err) == (0, said)
    assert "3 of 4 ranks" in answer.out and "Not read        rank 2 of 4\n" in answer.out


def test_of_a_rank_with_database_and_ledger_one_is_read(report, run_folder):
    """The ledger where the database is damaged, or not there."""
    whole, database = report("sizes", run_folder, "--json").out, run_folder / "rank-1.db"
    planted.write_ledger(run_folder / "rank-1.ledger", planted.training_rank(1))
    answer = report("sizes", run_folder, "--json")
    assert (answer.out, answer.err) == (whole, "")
    database.write_bytes(b"SQLite format 3\0 and then nonsense")
    answer = report("sizes", run_folder, "--json")
    assert answer.out == whole
    assert len(lines(answer)) == 1 and "rank-1.db: is damaged: " in answer.err
    database.unlink()
    answer = report("sizes", run_folder, "--json")
    assert (answer.out, answer.err) == (whole, "")


def test_a_file_that_has_another_rank_than_its_name_is_read_once(report, run_folder):
    """While other ranks have ledgers, the folder is listed again for ranks that
    have begun since."""
    planted.write_ledger(run_folder / "rank-2.ledger", planted.training_rank(2))
    (run_folder / "rank-2.db").unlink()
    (run_folder / "rank-1.db").rename(run_folder / "rank-7.db")
    assert report("calls", run_folder).err == ""
    planted.execute(run_folder / "rank-0.db", "UPDATE rank SET world_rank = 256")
    answer = report("calls", run_folder)
    assert answer.status == 0 and len(set(lines(answer))) == len(lines(answer)) == 2, answer.err


def test_a_file_that_asks_for_too_much_memory_is_said_to(report, run_folder, monkeypatch):
    def check(path, *_):
        raise MemoryError

    monkeypatch.setattr(database, "_database_check", check)
    path = run_folder / "rank-0.db"
    said = f"hvprof-report: {path}: is damaged, or holds more than fits into memory\n"
    assert report("calls", path).err == said


def test_of_two_runs_in_a_folder_the_newest_is_shown(report, run_folder):
    hour_before_ns = planted.START_UNIX_NS - 3_600 * planted.SECOND
    older = {"run_id": "job-0", "start_unix_ns": hour_before_ns, "world_rank": 7, "world_size": 8}
    old = replace(planted.training_rank(0), **older)
    planted.write_database(run_folder / "rank-7.db", old)
    answer = report("calls", run_folder, "--json")
    assert answer.rows[0]["count"] == 640
    (line,) = lines(answer)
    assert "holds 2 runs; the newest, 'job-1' of " in line and "left out: 'job-0' of " in line


def test_folders_of_other_jobs_and_snapshots_are_mentioned_and_not_counted(report, run_folder):
    for name in ("earlier-1", "spawned-a", "snapshot-1"):
        planted.write_databases(run_folder / name, planted.training_run())
    (run_folder / "snapshot-2").mkdir()  # what was in it has been moved aside
    (run_folder / "rank-2.db.tmp").write_bytes(b"half a database")
    answer = report("summary", run_folder)
    assert answer.err == ""
    for what in ("1 earlier run in earlier", "1 spawned job in spawned", "1 snapshot in snapshot"):
        assert f"{what}-*, not counted here" in answer.out
    assert report("calls", run_folder, "--json").rows[0]["count"] == 640


@pytest.mark.parametrize(
    "version, said",
    [(NEWEST + 1, "newer than this reporter reads"), (4, "older than this reporter reads (9): ")],
)
def test_another_version_of_the_schema_is_refused_by_name(report, run_folder, version, said):
    change = f"PRAGMA user_version = {version}; ALTER TABLE rank DROP COLUMN gpu_state"
    planted.execute(run_folder / "rank-0.db", change)
    answer = report("calls", run_folder, "--json")
    assert answer.status == 0 and answer.rows[0]["count"] == 480
    assert f"rank-0.db: has schema version {version}, {said}" in lines(answer)[0]


def test_a_newer_ledger_is_refused_by_name(report, tmp_path):
    data = bytearray(planted.ledger_bytes(planted.training_rank(0)))
    data[16] = 12
    path = tmp_path / "rank-0.ledger"
    path.write_bytes(data)
    answer = report(tmp_path)
    said = "has ledger version 12, newer than this reporter reads (11): read it with the "
    said += "hvprof-report of the commprof that wrote it, or a newer one"
    assert (answer.status, answer.err) == (1, f"hvprof-report: {path}: {said}\n")


def foreign_database(path) -> None:
    planted.execute(path, "CREATE TABLE rank (world_rank)")


NOT_OURS = {
    "an empty file": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("hello"),
    "a database of somebody else": foreign_database,
    "a database header alone": lambda path: path.write_bytes(b"SQLite format 3\0"),
    "a ledger header cut short": lambda path: path.write_bytes(b"commprof-ledger\n" + bytes(100)),
    "a ledger of zeros": lambda path: path.write_bytes(b"commprof-ledger\n" + bytes(8_000)),
    "a folder": lambda path: path.mkdir(),
}


@pytest.mark.parametrize("what", NOT_OURS)
def test_a_file_that_is_not_ours_is_one_line_and_status_1(report, tmp_path, what):
    path = tmp_path / "rank-0.db"
    NOT_OURS[what](path)
    answer = report("sizes", tmp_path)
    assert (answer.status, answer.out, len(lines(answer))) == (1, "", 1)
    assert answer.err.startswith(f"hvprof-report: {path}: ")


def test_an_empty_file_and_a_foreign_database_are_called_what_they_are(report, tmp_path):
    foreign_database(tmp_path / "rank-0.db")
    assert "is an SQLite database, but not one of commprof's" in report(tmp_path).err
    (tmp_path / "rank-0.db").write_bytes(b"")
    assert report(tmp_path).err.endswith("rank-0.db: is empty\n")


def test_a_folder_without_a_run_and_no_folder_are_said(report, tmp_path):
    (tmp_path / "empty").mkdir()
    for path, said in (
        (tmp_path / "empty", "holds no rank-<n>.db and no rank-<n>.ledger (it is empty)"),
        (tmp_path, "holds no rank-<n>.db and no rank-<n>.ledger"),
        (tmp_path / "x", "no such file or folder"),
    ):
        answer = report(path)
        assert (answer.status, answer.err) == (1, f"hvprof-report: {path}: {said}\n")


HOSTILE = {
    "text for a number": "UPDATE cell SET bytes = 'many' WHERE cell = 1",
    "a rank outside the job": "UPDATE rank SET world_rank = 4000000000",
    "text for a rank": "UPDATE rank SET world_size = 'four'",
    "a view for a table": "ALTER TABLE cell RENAME TO other; CREATE VIEW cell AS SELECT * FROM "
    "other",
    "a view of another name": "CREATE VIEW notes AS SELECT * FROM cell; PRAGMA writable_schema = "
    "ON; UPDATE sqlite_master SET sql = replace(sql, 'notes', 'cell') WHERE name = 'notes'",
    "a table twice": "PRAGMA writable_schema = ON; INSERT INTO sqlite_master SELECT * FROM "
    "sqlite_master WHERE name = 'peer'",
    "a table of another kind": "PRAGMA writable_schema = ON; UPDATE sqlite_master SET type = "
    "'view' WHERE name = 'peer'",
    "a missing table": "DROP TABLE peer",
    "a missing column": "ALTER TABLE cell DROP COLUMN blocked_ns",
    "no rank": "DELETE FROM rank",
    "a computed column": "DROP TABLE fact; CREATE TABLE fact (world_rank INTEGER NOT NULL, key "
    "TEXT NOT NULL, value TEXT GENERATED ALWAYS AS (hex(zeroblob(length(key) * 10000000))), "
    "PRIMARY KEY (world_rank, key)) WITHOUT ROWID",
    "a column with a default": "ALTER TABLE thread ADD COLUMN more TEXT DEFAULT 'a long text'",
    "ranks of two runs": "CREATE TEMP TABLE other AS SELECT * FROM rank; UPDATE other SET "
    "world_rank = 5, world_size = 1 << 24;"
    " INSERT INTO rank SELECT * FROM other",
    "numbers of cells that run over": "UPDATE cell SET cell = 9223372036854775807 WHERE cell = 1",
}


ADDED = {
    "an index": "CREATE INDEX by_time ON cell (total_ns, call)",
    "an index on an expression": "CREATE INDEX by_size ON sample (abs(bytes)) WHERE bytes > 0",
    "a view": "CREATE VIEW slow AS SELECT * FROM cell WHERE max_ns > 1000000",
    "a view that cannot be read": "CREATE VIEW broken AS SELECT missing FROM nowhere",
    "statistics": "ANALYZE",
    "statistics that lie": "ANALYZE; UPDATE sqlite_stat1 SET stat = '1 1 1 1'",
    "a table of notes": "CREATE TABLE notes (at INTEGER PRIMARY KEY AUTOINCREMENT, text); INSERT "
    "INTO notes (text) VALUES ('slow switch')",
    "a table named as a function": "CREATE TABLE sum (a AS (abs(b)), b); INSERT INTO sum (b) "
    "VALUES (1)",
    "a trigger": "CREATE TRIGGER more AFTER INSERT ON cell BEGIN DELETE FROM rank; END",
}


@pytest.mark.slow
@pytest.mark.parametrize("what", ADDED)
def test_what_the_owner_of_a_database_has_added_is_ignored(report, run_folder, tmp_path, what):
    words = [("calls",), ("sizes",), ("late",), ("export",)]
    before = [report(*word, run_folder, "--json").out for word in words]
    for path in run_folder.iterdir():
        planted.execute(path, ADDED[what])
    for word, expected in zip(words, before):
        answer = report(*word, run_folder, "--json")
        assert (answer.status, answer.err) == (0, "")
        assert answer.out == expected
    assert report("merge", run_folder, tmp_path / "merged.db").status == 0
    planted.execute(tmp_path / "merged.db", ADDED[what])
    assert report("export", tmp_path / "merged.db", "--json").out == before[-1]


def test_what_an_index_says_is_checked_like_a_table(report, run_folder):
    """SQLite reads what it needs from an index that has it all, and this one has other values than
    its table."""
    columns = ", ".join(["count", *(name for name in fuzz.TABLES["cell"] if name != "count")])
    lies = f"CREATE TABLE lies AS SELECT {columns} FROM cell; UPDATE lies SET total_ns = 'text'; "
    lies += f"CREATE INDEX of_lies ON lies ({columns}); CREATE INDEX of_cells ON cell ({columns});"
    lies += "PRAGMA writable_schema = ON; UPDATE sqlite_master SET rootpage = (SELECT rootpage "
    lies += "FROM sqlite_master WHERE name = 'of_lies') WHERE name = 'of_cells'"
    planted.execute(run_folder / "rank-1.db", lies)
    answer = report("export", run_folder, "--json", "--table", "cell")
    assert answer.status == 0 and "text" not in {row["total_ns"] for row in answer.rows}


def test_an_older_version_is_read_by_its_upgrade(report, run_folder):
    planted.execute(run_folder / "rank-1.db", "DELETE FROM sample_epoch")
    planted.execute(run_folder / "rank-1.db", "UPDATE signature SET received_at = NULL")
    expected = report("export", run_folder, "--json").out
    rewrite(run_folder / "rank-1.db", schema_of(9))
    assert report("export", run_folder, "--json") == (0, expected, "")


def rewrite(path, schema: str) -> None:
    """Puts the rows of a database, as far as there are columns for them, under another schema."""
    newest = path.rename(path.with_suffix(".newest"))
    planted.execute(path, schema)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("ATTACH ? AS newest", (str(newest),))
    for table in fuzz.TABLES:
        found = connection.execute(f"PRAGMA main.table_info({table})").fetchall()
        columns = ", ".join(row[1] for row in found)
        if columns:
            insert = f"INSERT OR IGNORE INTO main.{table} ({columns})"
            connection.execute(f"{insert} SELECT {columns} FROM newest.{table}")
    connection.close()


@pytest.mark.slow
@pytest.mark.parametrize("what", HOSTILE)
def test_a_database_with_impossible_content_is_left_out_and_named(report, run_folder, what):
    planted.execute(run_folder / "rank-1.db", HOSTILE[what])
    answer = report("sizes", run_folder, "--json", "--call", "Allreduce", "--bytes", "4M")
    assert (answer.status, answer.rows[0]["count"]) == (0, 300)
    assert lines(answer)[0].startswith(f"hvprof-report: {run_folder}/rank-1.db: is damaged: ")
    assert len(lines(answer)) == 2


def test_many_damaged_chunks_are_one_line(report, tmp_path):
    path = planted.write_ledger(tmp_path / "rank-0.ledger", Rank(0, 1))
    data = bytearray(path.read_bytes())
    data[40:44] = (1_000).to_bytes(4, "little")
    path.write_bytes(data + bytes(900 * 65_536))
    chunks = len(data) // 65_536 + 900
    assert lines(report("calls", path))[:2] == [
        f"hvprof-report: {path}: is cut short: {chunks} of 1000 chunks are there",
        f"hvprof-report: {path}: chunk {chunks - 900}-{chunks - 1} is damaged and left out",
    ]


def test_a_rank_without_an_end_or_a_sign_of_life_is_not_stuck(report, run_folder):
    running = "UPDATE rank SET ended = 'running', end_unix_ns = NULL, wall_ns = NULL"
    inside = "UPDATE thread SET doing_is_inside = 1"
    planted.execute(run_folder / "rank-1.db", f"{running}; {inside}")
    assert report("stuck", run_folder).status == 0


def test_names_from_files_cannot_steer_the_terminal(report, tmp_path):
    evil = "\x1b]0;owned\x07\x1b[2Jlabel\u202e\n"
    rank = Rank(0, 1, run_id=evil, facts={"host": evil, "command_line": evil, "mpi_version": evil})
    rank.communicators = [Communicator(2, 77, "0", 1, 0, name=evil)]
    rank.cells, rank.threads = [Cell("MPI_Bcast", 8, [100])], [(0, evil, 0)]
    planted.write_database(tmp_path / "rank-0.db", rank)
    planted.execute(tmp_path / "rank-0.db", "UPDATE cell SET call = char(27) || '[31mMPI_Evil'")
    for command in ("summary", "calls", "sizes", "latency", "communicators", "ranks", "peers"):
        for form in ([], ["--csv"]):
            out = report(command, tmp_path, *form).out
            assert not set(out) & set("\x1b\x07\u202e")
    wrong = report("sizes", tmp_path, "--call", "nothing\x1b[31m")
    assert "\x1b" not in wrong.err


def test_facts_may_be_missing(report, tmp_path):
    planted.write_database(tmp_path / "rank-0.db", Rank(0, 1))
    planted.execute(tmp_path / "rank-0.db", "DELETE FROM fact")
    answer = report("summary", tmp_path)
    assert (answer.status, answer.err) == (0, "")
    assert "unknown program" in answer.out


NAMES = {
    "bytes that are no text": os.fsdecode(b"na\xefve \xf0("),
    "what URIs and formats use": "50%41?mode=x#&{0} %s",
    "control characters": "\u202e\x1b[31m\n",
}
WRITTEN = (("calls", "--plot", "OUT/picture.png"), ("steps", "--plot", "OUT/picture.svg"))


@pytest.fixture(params=NAMES.values(), ids=NAMES)
def odd_folder(request, tmp_path):
    """A run of databases and a ledger in a folder of an odd name."""
    folder = planted.write_databases(tmp_path / request.param / "run", planted.gpu_run())
    (folder / "rank-3.db").unlink()
    planted.write_ledger(folder / "rank-3.ledger", planted.gpu_rank(3))
    return folder


@pytest.mark.slow
def test_a_run_may_lie_in_a_folder_of_any_name(report, odd_folder):
    for words in (*fuzz.COMMANDS, *WRITTEN):
        command, *options = (word.replace("OUT", str(odd_folder.parent)) for word in words)
        answer = report(command, odd_folder, *options)
        assert (answer.status, answer.err) == (0, ""), words
        assert not fuzz.CONTROLS.search(answer.out), words
        if "--json" in words and "--output" not in words:
            json.loads(answer.out)
    merged = odd_folder.parent / "merged.db"
    assert report("calls", merged, "--json").out == report("calls", odd_folder, "--json").out


@pytest.mark.slow
@pytest.mark.parametrize("name", ("{", "}", "{0.__class__}", "%s%n", "$title", "\\N{BEL}"))
def test_names_from_files_are_no_formats(report, tmp_path, name):
    folder = planted.write_databases(tmp_path / "run", pair(slow_job(30, True)))
    named = "; ".join(f"UPDATE {table} SET call = call || '{name}'" for table in ("sample", "cell"))
    call = f"('MPI_Allreduce{name}', 'collective', 'mpi', 'blocking', 'allreduce', 'all')"
    for path in folder.iterdir():
        planted.execute(path, f"{named}; DELETE FROM call; INSERT INTO call VALUES {call}")
    for command in ("summary", "calls", "late", "advise", "traffic"):
        assert report(command, folder).status == 0, command
    assert report("html", folder, "--output", tmp_path / "page.html").status == 0
    rows = report("steps", folder, "--json", "--per-step", *LOOP).rows
    assert f"more in MPI_Allreduce{name}" in rows[30]["why"]


@pytest.mark.parametrize("column", ("type", "name", "tbl_name", "sql"))
@pytest.mark.parametrize("table", ("cell", "notes"))
def test_blobs_in_the_schema_are_no_text_and_no_trouble(report, run_folder, table, column):
    change = f"UPDATE sqlite_master SET {column} = CAST({column} AS BLOB) WHERE name = '{table}'"
    for statement in ("CREATE TABLE notes (x)", f"PRAGMA writable_schema = ON; {change}"):
        planted.execute(run_folder / "rank-1.db", statement)
    answer = report("calls", run_folder, "--json")
    assert answer.status == 0 and answer.rows[0]["count"] in (480, 640)


@pytest.fixture(scope="module")
def reader(tmp_path_factory) -> database.RunConnection:
    """A run, and a rank's rows as its source, which has no constraints."""
    path = planted.write_database(tmp_path_factory.mktemp("file") / "x.db", planted.gpu_rank(1))
    connection = database.database_create()
    connection.execute("ATTACH ? AS file", (str(path),))
    connection.execute("ATTACH ':memory:' AS source")
    for kind, table, sql in database._entries_after(schema_of(NEWEST)):
        if kind == "table":
            lax = sql.replace("CREATE TABLE ", "CREATE TABLE source.", 1).replace(" NOT NULL", "")
            connection.execute(lax)
            connection.execute(f"INSERT INTO source.{table} SELECT * FROM file.{table}")
    return connection


def is_read(reader: database.RunConnection, table: str, change: str = "") -> bool:
    """Whether the rows of a table are, after a change of them."""
    reader.execute("BEGIN")
    try:
        if change:
            reader.execute(f"UPDATE source.{table} SET {change}")
            assert reader.execute("SELECT changes()").fetchone() > (0,), change
        reader.execute(database._copying(table, NEWEST, "0"), {"cell": 0, "activity": 0})
        return True
    except (sqlite3.IntegrityError, sqlite3.OperationalError) as error:
        assert "user-defined function" in str(error) or "NOT NULL" in str(error)
        return False
    finally:
        reader.execute("ROLLBACK")


OUTSIDE = {
    "INTEGER": ("-1", "(1 << 62) + 1", "'x'"),
    "SIGNED INTEGER": ("-(1 << 62) - 1", "(1 << 62) + 1", "'x'"),
    "BOOLEAN": ("-1", "2", "'x'"),
    "TEXT": ("x'00ff'",),
}


@pytest.mark.parametrize("table", database._columns())
def test_no_column_holds_a_value_of_another_type(reader, table):
    assert is_read(reader, table)
    for name, kind in database._columns()[table].items():
        of_one = f"WHERE {name} IS (SELECT {name} FROM source.{table} LIMIT 1)"
        is_key = (table, name) in (("rank", "world_rank"), ("cell", "cell"))  # of integers alone
        is_key |= (table, name) == ("gpu_activity", "activity")
        for value in OUTSIDE[kind][: 2 if is_key else 3]:
            assert not is_read(reader, table, f"{name} = {value} {of_one}"), (name, value)


@pytest.mark.parametrize("table", database._columns())
def test_no_column_lacks_a_value_that_it_needs(reader, table):
    for _, name, _, is_needed, _, key in reader.execute(
        f"PRAGMA main.table_info({table})"
    ).fetchall():
        if is_needed and not key:
            assert not is_read(reader, table, f"{name} = NULL"), name


BROKEN = {  # constraints beyond types
    "rank": "ended = 'exploded'; gpu_state = 'exploded'; world_size = (1 << 24) + 1",
    "call": "library = 'gloo'",
    "communicator": "library = 'gloo'",
    "cell": "memory_kind = 'disk'; memory_kind = 'host>host'; measure = 'gpu' WHERE cell = 1",
    "bucket": "bucket = bucket + 346",
    "sample": "world_rank = 77; end_ns = start_ns - 1; sequence = 0; completed_ns = start_ns - 1; "
    "peer = -3; number = 65536; signature = 65536; device_start_ns = NULL; "
    "device_end_ns = device_start_ns - 1; device_end_ns = 1 WHERE device_end_ns IS NULL",
    "sample_message": "direction = 'both'; number = 0; end_ns = start_ns - 1; "
    "completed_ns = start_ns - 1; peer = -3",
    "sample_start": "operation = 0; number = 0; completed_ns = start_ns - 1",
    "sample_epoch": "object = 0; number = 0; partners = 0; end_ns = start_ns - 1",
    "sample_window": "begin_ns = end_ns + 1",
    "step": "end_ns = begin_ns - 1",
    "gpu_activity": "kind = 'thought'; copy = 'to nobody'; min_ns = max_ns + 1",
    "gpu_bucket": "bucket = bucket + 346",
    "gpu_tracing": "end_ns = begin_ns - 1; ended = 'exploded'",
    "gpu_sample": "world_rank = 77; end_ns = start_ns - 1; kind = ''",
    "gpu_sample_window": "begin_ns = end_ns + 1",
}


@pytest.mark.parametrize("table", BROKEN)
def test_no_row_breaks_a_constraint(reader, table):
    for change in BROKEN[table].split("; "):
        assert not is_read(reader, table, change), change


def test_rows_of_a_file_are_inserted_one_by_one_and_checked(reader):
    """SQLite copies whole records of an equal table, unchecked, for INSERT ... SELECT * FROM alone;
    then its program has no opcode Column."""
    for table in database._columns():
        statement = database._copying(table, NEWEST, "0")
        numbers = {"cell": 0, "activity": 0}
        opcodes = [row[1] for row in reader.execute("EXPLAIN " + statement, numbers)]
        assert "Column" in opcodes, statement


def test_every_constraint_of_the_schema_is_a_condition_of_what_is_copied():
    for version in (NEWEST - 1, NEWEST):
        for _, table, sql in database._entries_after(schema_of(version)):
            assert len(database.CHECKS.findall(sql)) == sql.count("CHECK"), table


def test_a_fact_without_a_key_is_no_reason(report, run_folder):
    planted.execute(run_folder / "rank-1.db", "INSERT INTO fact VALUES (1, '', 'x')")
    assert report("summary", run_folder).status == 0
