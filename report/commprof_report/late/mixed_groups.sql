-- On which communicators does each rank call NCCL's point-to-point operations? The cells do not distinguish an ncclGroup that holds only
-- sends and receives, where nobody waits for all, from one with a collective.
SELECT DISTINCT cell.world_rank, identity
FROM cell
JOIN call ON call.name = cell.call
JOIN communicator_of USING (world_rank, communicator)
WHERE call.library = 'nccl' AND call.family = 'point-to-point' AND measure = 'call';
