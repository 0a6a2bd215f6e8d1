-- Which ranks are read from a copy of their ledger: of when it is, and where the ledger of a rank that did not end by itself was.
SELECT copied.world_rank,
       CAST(copied.value AS INTEGER) AS copied_unix_ns,
       CASE WHEN rank.ended = 'running' THEN ledger.value END AS ledger_file,
       host.value AS host
FROM fact AS copied
JOIN rank USING (world_rank)
LEFT JOIN fact AS ledger ON ledger.world_rank = copied.world_rank AND ledger.key = 'ledger_file'
LEFT JOIN fact AS host ON host.world_rank = copied.world_rank AND host.key = 'host'
WHERE copied.key = 'ledger_copied_unix_ns';
