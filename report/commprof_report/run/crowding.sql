-- On which cores may each rank run, how much CPU time did it use, and what was taken from it?
SELECT world_rank AS rank, host, kernel, affinity, quota_cores, quota_cgroup, cpu_ns, elapsed_ns,
       throttled_ns, stolen_ns
FROM rank_use
ORDER BY world_rank;
