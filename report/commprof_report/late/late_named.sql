-- The ranks and the times for late_gain: what would be gained, had these ranks not been late then?
DROP TABLE IF EXISTS temp.late_named;
DROP TABLE IF EXISTS temp.late_span;
CREATE TEMP TABLE late_named (world_rank INTEGER NOT NULL);
CREATE TEMP TABLE late_span (begin_ns INTEGER PRIMARY KEY, end_ns INTEGER NOT NULL);
