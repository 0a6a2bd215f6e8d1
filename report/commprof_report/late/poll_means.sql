-- By rank the mean time of an unsuccessful poll, of the function that takes longest.
SELECT world_rank, max(mean_ns)
FROM (SELECT world_rank, 1.0 * sum(total_ns) / sum(count) AS mean_ns
      FROM cell WHERE measure = 'poll' GROUP BY world_rank, call)
GROUP BY world_rank;
