-- For how long have the GPUs of each rank been summed up, and for how long did something run in it?
SELECT world_rank, CAST(total(ns) AS INTEGER),
       CAST(total(CASE WHEN is_computing OR is_communicating OR is_copying THEN ns END) AS INTEGER)
FROM gpu_busy
GROUP BY world_rank;
