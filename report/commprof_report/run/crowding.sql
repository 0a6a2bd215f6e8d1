-- On which cores may each rank run, and what did it use of them?
SELECT world_rank AS rank, host, kernel, affinity, quota_cores, quota_cgroup, cpu_ns, elapsed_ns, involuntary_switches
FROM rank_use
ORDER BY world_rank;
