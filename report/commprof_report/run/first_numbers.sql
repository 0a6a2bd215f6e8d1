-- Above which numbers are cells and activities of another file free in the run?
SELECT
    (SELECT coalesce(max(cell), 0) FROM main.cell) AS first_cell,
    (SELECT coalesce(max(activity), 0) FROM main.gpu_activity) AS first_activity;
