-- Adds all rows of the attached file `source` to the run; cells and activities get numbers that are free in the run.
-- Both have the tables of schema.sql to the letter, so * names the same columns in the same order. `WHERE 1` makes SQLite insert row by
-- row: without it, it copies the records of a file as they are, and checks no constraint (its transfer optimization).
-- Numbered rows list their columns, because SQL has no * without one of them; one that is missing here is an error with the first file.
INSERT INTO main.rank SELECT * FROM source.rank WHERE 1;

INSERT INTO main.fact SELECT * FROM source.fact WHERE 1;

INSERT INTO main.thread SELECT * FROM source.thread WHERE 1;

INSERT INTO main.call SELECT * FROM source.call WHERE 1 ON CONFLICT (name) DO NOTHING;

INSERT INTO main.communicator SELECT * FROM source.communicator WHERE 1;

INSERT INTO main.recent_collective SELECT * FROM source.recent_collective WHERE 1;

INSERT INTO main.cell SELECT
    cell + :first_cell, world_rank, thread, call, communicator, bytes, measure, memory_kind, region, is_folded, count,
    volume_bytes, total_ns, min_ns, max_ns, blocked_ns
FROM source.cell
WHERE count > 0;

INSERT INTO main.peer SELECT * FROM source.peer WHERE 1;

INSERT INTO main.region SELECT * FROM source.region WHERE 1;

INSERT INTO main.gpu_device SELECT * FROM source.gpu_device WHERE 1;

INSERT INTO main.gpu_reading SELECT * FROM source.gpu_reading WHERE 1;

INSERT INTO main.gpu_busy SELECT * FROM source.gpu_busy WHERE 1;

INSERT INTO main.gpu_stream SELECT * FROM source.gpu_stream WHERE 1;

INSERT INTO main.gpu_kernel SELECT * FROM source.gpu_kernel WHERE 1;

INSERT INTO main.gpu_activity SELECT
    activity + :first_activity, world_rank, stream, kind, kernel, copy, is_graph, is_pageable, is_managed, bytes, count,
    volume_bytes, total_ns, min_ns, max_ns
FROM source.gpu_activity
WHERE count > 0;

INSERT INTO main.nccl_algorithm SELECT * FROM source.nccl_algorithm WHERE 1;

INSERT INTO main.gpu_tracing SELECT * FROM source.gpu_tracing WHERE 1;
