-- The parts of each rank's own time that are drawn; without rows.
DROP TABLE IF EXISTS temp.step_view_window;
CREATE TEMP TABLE step_view_window (world_rank INTEGER NOT NULL, begin_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL);
CREATE INDEX temp.step_view_window_of_rank ON step_view_window (world_rank, begin_ns, end_ns);
