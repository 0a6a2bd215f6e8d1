-- Which settings and versions did one rank run with?
SELECT key, value
FROM fact
WHERE key LIKE 'env.%' OR key LIKE 'cvar.%' OR key LIKE 'build_id.%'
   OR key IN ('cpu_model', 'kernel', 'mpi_version')
ORDER BY key;
