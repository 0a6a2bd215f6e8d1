-- How much of the run do its samples show: of the collectives by number, of the time of threads in the windows in which they kept all?
SELECT (SELECT count(*) FROM sample) AS samples,
       (SELECT count(*) FROM gpu_sample) AS activities,
       (SELECT count(*) FROM sample WHERE sequence IS NOT NULL) * 1.0 / nullif((SELECT sum(collectives) FROM communicator), 0)
           AS collective_share,
       (SELECT total(end_ns - begin_ns) FROM sample_window)
           / nullif((SELECT total(wall_ns) FROM thread JOIN rank_wall USING (world_rank)), 0) AS window_share;
