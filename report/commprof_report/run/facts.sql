-- Which facts are recorded about the run? One row per key and value, with the ranks that have it.
SELECT key, value, count(*) AS ranks, min(world_rank) AS first_rank
FROM fact
WHERE key NOT IN ('process_state', 'last_sign_unix_ns', 'ledger_modified_unix_ns', 'ledger_copied_unix_ns', 'process_start')
  AND key NOT GLOB 'begin.*' AND key NOT GLOB 'last.*' AND key NOT GLOB 'sources.*' -- each rank has its own
GROUP BY key, value
ORDER BY key LIKE 'cvar.%', key LIKE 'env.%', key LIKE 'settings.%', key, min(world_rank);
