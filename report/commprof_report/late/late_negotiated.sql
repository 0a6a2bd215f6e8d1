-- On which communicators, of MPI or NCCL, do threads that negotiate communicate? Needs the TEMP TABLE negotiating of calls/traffic_class.sql.
SELECT DISTINCT identity
FROM cell
JOIN negotiating USING (world_rank, thread)
JOIN communicator USING (world_rank, communicator)
JOIN call ON call.name = cell.call
WHERE family IN ('collective', 'neighborhood');
