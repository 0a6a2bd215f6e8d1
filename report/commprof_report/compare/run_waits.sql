-- Waiting and transfer in the analysed blocking calls; bytes as in run_rows.sql.
SELECT late_call.call, identity, CASE bandwidth WHEN 'own-size' THEN NULL ELSE bytes END AS bytes,
       total(wait_ns) AS wait_ns, total(transfer_ns) AS transfer_ns
FROM late_call
JOIN call ON call.name = late_call.call
WHERE completion IS NULL
GROUP BY 1, 2, 3;
