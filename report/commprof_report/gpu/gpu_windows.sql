-- When were the GPUs of the selected ranks traced?
SELECT world_rank AS rank, begin_ns, end_ns, ended, clock_error_ns, records
FROM gpu_tracing
WHERE world_rank IN (SELECT world_rank FROM selected_rank)
ORDER BY world_rank, begin_ns, end_ns;
