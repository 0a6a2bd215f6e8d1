-- How much of the waiting has no known cause?
SELECT CAST(round(total(caused_ns * factor)) AS INTEGER)
FROM late_scaled
JOIN late_cause USING (wait)
WHERE cause_rank IS NULL AND world_rank IN (SELECT world_rank FROM selected_rank);
