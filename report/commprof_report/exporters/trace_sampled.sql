-- How much of the run is sampled: which share of the collectives, and which share of the threads' time is in windows with all calls?
SELECT (SELECT count(*) FROM sample) AS samples,
       (SELECT count(*) FROM gpu_sample) AS activities,
       (SELECT count(*) FROM sample WHERE sequence IS NOT NULL) * 1.0 / nullif((SELECT sum(collectives) FROM communicator), 0)
           AS collective_share,
       (SELECT total(end_ns - begin_ns) FROM sample_window)
           / nullif((SELECT total(wall_ns) FROM thread JOIN rank_wall USING (world_rank)), 0) AS window_share;
