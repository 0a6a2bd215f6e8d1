-- On which cores may each rank run, and how much CPU time did it use?
SELECT world_rank AS rank, host, kernel, affinity, quota_cores, quota_cgroup, cpu_ns, elapsed_ns, involuntary_switches
FROM rank_use
ORDER BY world_rank;
