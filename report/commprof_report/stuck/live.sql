-- For how long has each thread been in a call that counts as time in MPI, and is it a collective?
SELECT world_rank, thread, family IS 'collective', doing_ns
FROM doing
LEFT JOIN call ON call.name = doing_call
WHERE doing_is_inside AND family IS NOT 'setup' AND library IS NOT 'nccl';
