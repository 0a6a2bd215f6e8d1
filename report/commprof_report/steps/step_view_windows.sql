-- The parts of each rank's own time that are drawn: of the chosen steps (:steps, JSON), with a margin (:margin, share of the step).
DROP TABLE IF EXISTS temp.step_view_window;
CREATE TEMP TABLE step_view_window (world_rank INTEGER NOT NULL, begin_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL);
INSERT INTO temp.step_view_window
SELECT world_rank, begin_ns - CAST(:margin * (end_ns - begin_ns) AS INTEGER), end_ns + CAST(:margin * (end_ns - begin_ns) AS INTEGER)
FROM temp.run_step
WHERE step IN (SELECT value FROM json_each(:steps));
CREATE INDEX temp.step_view_window_of_rank ON step_view_window (world_rank, begin_ns, end_ns);
