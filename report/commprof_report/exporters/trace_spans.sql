-- The other tracks of a timeline, but for steps: regions by thread; the times in which a thread's calls without a sequence number are all
-- sampled; when GPUs were traced; the times in which a stream's activities are all sampled, if that is not always so.
SELECT world_rank AS rank, 'regions' AS track, thread, coalesce(name, 'region ' || region) AS name, begin_ns, end_ns
FROM region_span LEFT JOIN region USING (world_rank, region)
UNION ALL
SELECT world_rank, 'sampled', thread, 'all calls sampled', begin_ns, end_ns
FROM sample_window
WHERE (world_rank, thread) IN (SELECT world_rank, thread FROM sample_window GROUP BY world_rank, thread HAVING count(*) > 1)
UNION ALL
SELECT world_rank, 'gpu traced', 0, 'traced, then ' || ended, begin_ns, end_ns FROM gpu_tracing
UNION ALL
SELECT world_rank, 'gpu sampled', stream, 'all activity sampled', begin_ns, end_ns
FROM gpu_sample_window
WHERE (world_rank, stream) IN (SELECT world_rank, stream FROM gpu_sample_window GROUP BY world_rank, stream HAVING count(*) > 1)
ORDER BY 1, 2, 3, 5, 6 DESC;
