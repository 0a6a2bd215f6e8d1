-- The largest numbers of cells and activities in the run; those of another file are numbered from there on.
SELECT
    (SELECT coalesce(max(cell), 0) FROM main.cell) AS first_cell,
    (SELECT coalesce(max(activity), 0) FROM main.gpu_activity) AS first_activity;
